//! Classes by bytes sent: shared by policies that demote flows. A flow starts in the first class
//! and moves down one class at each demotion threshold. This file has the thresholds as parameters,
//! the counting of bytes, and aging by consecutive timeouts.
//!
//! Source: W. Bai et al., "Information-Agnostic Flow Scheduling for Commodity Data Centers", NSDI 2015, section 4; the authors' ns-2
//! (HKUST-SING/PIAS-NS2) and host module (HKUST-SING/PIAS-Software, `pias4`) for counting, the module for aging.

use super::published;
use super::traffic::Traffic;
use crate::contract::Env;
use crate::packet::{Kind, Packet};
use base::Limit;
use base::params::{Auto, Param, Problem, Raw};
use std::ops::Range;

base::choice! {
    /// Which bytes of a flow are counted.
    pub enum Count {
        /// The bytes before the packet: the packet is in the class of its first byte, and a retransmission keeps
        /// its class.
        Offset = "offset",
        /// The bytes of all packets so far, this one included, that ended beyond all packets before them: no
        /// retransmissions. The packet is in the class of the last of these bytes.
        Sent = "sent",
    }
}

/// The counts of a flow that the host sends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    /// Bytes sent since the count was 0.
    sent: u64,
    /// The end of all packets so far, as an offset.
    end: u64,
    /// Where bytes are counted from, as an offset.
    from: u64,
    /// All bytes below are acknowledged.
    acked: u64,
    /// Timeouts since the last ACK of new bytes.
    timeouts: u32,
}

impl Counted {
    /// Returns the bytes before the byte that classes a packet with payload, which is sent now.
    #[inline]
    pub fn on_send(&mut self, packet: &Packet, count: Count) -> u64 {
        let bytes = packet.bytes();
        let before = self.before(&bytes, count);
        if bytes.end > self.end {
            self.sent += u64::from(packet.payload);
            self.end = bytes.end;
        }
        before
    }
    /// Returns the bytes before the byte that classes a packet with these bytes of the flow, if it is sent now.
    #[inline]
    pub fn before(&self, bytes: &Range<u64>, count: Count) -> u64 {
        match count {
            Count::Offset => bytes.start.saturating_sub(self.from),
            Count::Sent if bytes.end > self.end => (self.sent + bytes.end - bytes.start).saturating_sub(1),
            Count::Sent => self.sent.saturating_sub(1),
        }
    }
    /// Handles a packet of the flow: an ACK of new bytes resets the count of consecutive timeouts.
    pub fn on_receive(&mut self, packet: &Packet) {
        if packet.kind == Kind::ACK && packet.offset > self.acked {
            (self.acked, self.timeouts) = (packet.offset, 0);
        }
    }
    /// Counts a timeout. Returns whether the flow ages: whether this is timeout number `most` in a
    /// row. The count of bytes then restarts from 0.
    pub fn on_timeout(&mut self, most: u32) -> bool {
        self.timeouts += 1;
        let ages = self.timeouts >= most;
        if ages {
            (self.sent, self.from, self.timeouts) = (0, self.acked, 0);
        }
        ages
    }
}

/// Returns the class of a byte with `bytes` bytes before it: the number of thresholds, in bytes, that
/// these bytes have reached.
#[inline]
pub fn class(thresholds: &[u64], bytes: u64) -> u8 {
    let reached = thresholds.iter().take_while(|threshold| **threshold <= bytes).count();
    u8::try_from(reached).unwrap_or(u8::MAX)
}

/// Returns the class of a size or a time between `bounds`: a value equal to a bound counts as below it.
#[inline]
pub fn class_of(bounds: &[u64], value: u64) -> u8 {
    class(bounds, value.saturating_sub(1))
}

/// A list of limits as written in a scenario.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub struct Limits(pub Vec<Limit>);

impl Param for Limits {
    fn expects() -> String {
        "a list of limits in packets or bytes, like `30pkt, 300pkt`".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        let wrong = || format!("is not {}", Self::expects());
        let Raw::Str(text) = raw else { return Err(wrong()) };
        let limits = text.split(',').map(base::units::parse_limit).collect::<Result<Vec<_>, _>>().map_err(|_| wrong())?;
        if limits.contains(&Limit::Unlimited) { Err(wrong()) } else { Ok(Limits(limits)) }
    }
    fn show(&self) -> String {
        self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}

impl Limits {
    /// Returns a list of limits in bytes.
    pub fn of_bytes(bytes: &[u64]) -> Limits {
        Limits(bytes.iter().map(|bytes| Limit::Bytes(*bytes)).collect())
    }
    /// Returns the limits in bytes of payload.
    pub fn in_bytes(&self, env: &Env<'_>) -> Vec<u64> {
        let bytes = |limit: &Limit| match limit {
            Limit::Packets(n) => u64::from(*n) * u64::from(env.mss()),
            Limit::Bytes(n) => *n,
            Limit::Unlimited => u64::MAX,
        };
        self.0.iter().map(bytes).collect()
    }
}

/// Demotion thresholds as written in a scenario, where they are not computed.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub enum Thresholds {
    /// `"published"`: those of the authors of PIAS for the size distribution that is offered.
    Published,
    /// `"30pkt, 300pkt"`
    List(Limits),
}

impl Param for Thresholds {
    fn expects() -> String {
        format!("`published`, or {}", Limits::expects())
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        if *raw == Raw::Str("published".to_owned()) {
            return Ok(Thresholds::Published);
        }
        Limits::parse(raw).map(Thresholds::List).map_err(|_| format!("is not {}", Self::expects()))
    }
    fn show(&self) -> String {
        match self {
            Thresholds::Published => "published".to_owned(),
            Thresholds::List(limits) => limits.show(),
        }
    }
}

/// Returns the thresholds in bytes of payload, or the reason why there are none. `auto` computes
/// the thresholds between `levels` levels; from the published ones, those with the numbers in
/// `published` are taken.
pub fn in_bytes(thresholds: &Auto<Thresholds>, levels: usize, published: &[usize], env: &Env<'_>) -> Result<Vec<u64>, String> {
    match thresholds {
        Auto::Set(Thresholds::List(limits)) => Ok(limits.in_bytes(env)),
        Auto::Set(Thresholds::Published) => {
            let row = published::thresholds(env.offered)?;
            Ok(published.iter().map(|number| row[*number]).collect())
        }
        Auto::Auto => {
            let found = Traffic::of(env.offered)?.thresholds(levels);
            env.note_auto("thresholds", true, || Limits::of_bytes(&found).show());
            Ok(found)
        }
    }
}

/// Returns the number of classes at the switches: eight if their discipline does not say.
pub fn classes(env: &Env<'_>) -> usize {
    env.given.value::<u32>("qdisc", "classes").map_or(8, |classes| classes as usize)
}

/// Returns a line with the thresholds and their objective for the offered traffic.
pub fn note(what: &str, thresholds: &[u64], env: &Env<'_>) -> Option<String> {
    let objective = Traffic::of(env.offered).ok()?.objective(thresholds);
    let bytes: Vec<String> = thresholds.iter().map(|bytes| format!("{bytes}B")).collect();
    Some(format!(
        "{what} {}: predicted mean FCT {objective:.4} times that of a mean-size flow in an idle network (M/G/1 levels)",
        bytes.join(", ")
    ))
}

/// Returns the problems with thresholds under `key`: `written` is their text in the scenario,
/// `found` their values or the reason why there are none. The class above the first threshold is
/// `first`.
pub fn problems(key: &'static str, written: &str, found: Result<Vec<u64>, String>, first: usize, env: &Env<'_>) -> Vec<Problem> {
    let problem = |message: String, hint: &str| Problem { key, message, hint: hint.to_owned() };
    let bytes = match found {
        Ok(bytes) => bytes,
        Err(why) => {
            let hint = "write the thresholds, like `30pkt, 300pkt`";
            return vec![problem(format!("cannot use `{written}`: {why}"), hint)];
        }
    };
    let mut problems = Vec::new();
    if let Some(pair) = bytes.windows(2).find(|pair| pair[0] >= pair[1]) {
        let message = format!("`{}B` is not below the next threshold, `{}B`", pair[0], pair[1]);
        problems.push(problem(message, "write the thresholds in rising order"));
    }
    let classes = first + bytes.len() + 1;
    if let Some(Problem { message, hint, .. }) = too_few_classes(key, classes, env) {
        problems.push(problem(format!("{} thresholds make {message}", bytes.len()), &format!("{hint}, or write fewer thresholds")));
    }
    problems
}

/// Returns a problem if the switches have fewer classes than a policy uses.
pub fn too_few_classes(key: &'static str, classes: usize, env: &Env<'_>) -> Option<Problem> {
    let has = env.given.value::<u32>("qdisc", "classes").filter(|has| (*has as usize) < classes)?;
    let message = format!("{classes} classes, the switches have {has}");
    Some(Problem { key, message, hint: format!("set `qdisc.classes` to {classes}") })
}
