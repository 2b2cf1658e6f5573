//! Classes by bytes sent: what policies that demote flows share. A flow starts in the first class and goes down one class at each
//! demotion threshold. Here are the thresholds as parameters, the counting of bytes, and aging by consecutive timeouts.
//!
//! Source: W. Bai et al., "Information-Agnostic Flow Scheduling for Commodity Data Centers", NSDI 2015, section 4; the authors' host
//! module for counting and aging.

use super::published;
use super::traffic::Traffic;
use crate::contract::Env;
use crate::packet::{Kind, Packet};
use base::Limit;
use base::params::{Auto, Param, Problem, Raw};

base::choice! {
    /// Which bytes of a flow count.
    pub enum Count {
        /// Those before the packet's first byte: what is sent again keeps its class.
        Offset = "offset",
        /// All that were sent, and sent again, before the packet.
        Sent = "sent",
    }
}

/// What is counted of a flow that the host sends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    /// Bytes sent since the count was 0.
    sent: u64,
    /// Where bytes are counted from, as an offset.
    from: u64,
    /// All bytes below are acknowledged.
    acked: u64,
    /// Timeouts since.
    timeouts: u32,
}

impl Counted {
    /// The bytes that count before a packet with payload, which is sent now.
    #[inline]
    pub fn on_send(&mut self, packet: &Packet, count: Count) -> u64 {
        let before = match count {
            Count::Offset => packet.offset.saturating_sub(self.from),
            Count::Sent => self.sent,
        };
        self.sent += u64::from(packet.payload);
        before
    }
    /// A packet of the flow arrived: an ACK of new bytes ends the row of timeouts.
    pub fn on_receive(&mut self, packet: &Packet) {
        if packet.kind == Kind::ACK && packet.offset > self.acked {
            (self.acked, self.timeouts) = (packet.offset, 0);
        }
    }
    /// A timeout. Says whether the flow ages: whether it was the last of `most` in a row. The count then goes back to 0.
    pub fn on_timeout(&mut self, most: u32) -> bool {
        self.timeouts += 1;
        let ages = self.timeouts >= most;
        if ages {
            (self.sent, self.from, self.timeouts) = (0, self.acked, 0);
        }
        ages
    }
}

/// The class of a packet with so many bytes before it: the first class whose threshold, in bytes, is not below them.
#[inline]
pub fn class(thresholds: &[u64], bytes: u64) -> u8 {
    let below = thresholds.iter().take_while(|threshold| **threshold < bytes).count();
    u8::try_from(below).unwrap_or(u8::MAX)
}

/// A list of limits as written.
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
    /// In bytes of payload.
    pub fn in_bytes(&self, env: &Env<'_>) -> Vec<u64> {
        let bytes = |limit: &Limit| match limit {
            Limit::Packets(n) => u64::from(*n) * u64::from(env.mss()),
            Limit::Bytes(n) => *n,
            Limit::Unlimited => u64::MAX,
        };
        self.0.iter().map(bytes).collect()
    }
}

/// Demotion thresholds as written, where they are not computed.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub enum Thresholds {
    /// `"published"`: those of the authors of PIAS for the law that is offered.
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

/// The thresholds in bytes of payload; or why there are none. `auto` computes those between `levels` levels; of the published ones those
/// are taken whose numbers `published` has.
pub fn in_bytes(thresholds: &Auto<Thresholds>, levels: usize, published: &[usize], env: &Env<'_>) -> Result<Vec<u64>, String> {
    match thresholds {
        Auto::Set(Thresholds::List(limits)) => Ok(limits.in_bytes(env)),
        Auto::Set(Thresholds::Published) => {
            let row = published::thresholds(env.offered)?;
            Ok(published.iter().map(|number| row[*number]).collect())
        }
        Auto::Auto => Ok(Traffic::of(env.offered)?.thresholds(levels)),
    }
}

/// How many classes the switches have: eight where their discipline does not say.
pub fn classes(env: &Env<'_>) -> usize {
    env.given.value::<u32>("qdisc", "classes").map_or(8, |classes| classes as usize)
}

/// What the thresholds are, and what they are worth for the traffic that is offered.
pub fn note(what: &str, thresholds: &[u64], env: &Env<'_>) -> Option<String> {
    let objective = Traffic::of(env.offered).ok()?.objective(thresholds);
    let bytes: Vec<String> = thresholds.iter().map(|bytes| format!("{bytes}B")).collect();
    Some(format!("{what} {}: mean FCT of the M/G/1 levels {objective:.4} times that of a mean flow alone", bytes.join(", ")))
}

/// What is wrong with thresholds under `key`, which are `written` so and were found to be these, or why none were. The first lies below
/// class `first`.
pub fn problems(key: &'static str, written: &str, found: Result<Vec<u64>, String>, first: usize, env: &Env<'_>) -> Vec<Problem> {
    let problem = |message: String, hint: &str| Problem { key, message, hint: hint.to_owned() };
    let bytes = match found {
        Ok(bytes) => bytes,
        Err(why) => {
            let hint = "write the thresholds, like `30pkt, 300pkt`";
            return vec![problem(format!("`{written}` has no thresholds here: {why}"), hint)];
        }
    };
    let mut problems = Vec::new();
    if let Some(pair) = bytes.windows(2).find(|pair| pair[0] >= pair[1]) {
        let message = format!("`{}B` does not lie below the next threshold, `{}B`", pair[0], pair[1]);
        problems.push(problem(message, "write the thresholds in rising order"));
    }
    let classes = first + bytes.len() + 1;
    if let Some(Problem { message, hint, .. }) = too_few_classes(key, classes, env) {
        problems.push(problem(format!("{} thresholds make {message}", bytes.len()), &format!("{hint}, or write fewer thresholds")));
    }
    problems
}

/// Fewer classes at the switches than a policy sets.
pub fn too_few_classes(key: &'static str, classes: usize, env: &Env<'_>) -> Option<Problem> {
    let has = env.given.value::<u32>("qdisc", "classes").filter(|has| (*has as usize) < classes)?;
    let message = format!("{classes} classes, the switches have {has}");
    Some(Problem { key, message, hint: format!("set `qdisc.classes` to {classes}") })
}
