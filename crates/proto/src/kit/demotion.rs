//! Classes by bytes sent: what policies that demote flows share. A flow starts in the first class and goes down one class at each
//! demotion threshold. Here are the thresholds as parameters, the counting of bytes, and aging by consecutive timeouts.
//!
//! Source: W. Bai et al., "Information-Agnostic Flow Scheduling for Commodity Data Centers", NSDI 2015, section 4; the authors' host
//! module for counting and aging.

use super::published;
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

/// Thresholds as written.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub struct Thresholds(pub Vec<Limit>);

impl Param for Thresholds {
    fn expects() -> String {
        "a list of limits in packets or bytes, like `30pkt, 300pkt`".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        let wrong = || format!("is not {}", Self::expects());
        let Raw::Str(text) = raw else { return Err(wrong()) };
        let limits = text.split(',').map(base::units::parse_limit).collect::<Result<Vec<_>, _>>().map_err(|_| wrong())?;
        if limits.contains(&Limit::Unlimited) { Err(wrong()) } else { Ok(Thresholds(limits)) }
    }
    fn show(&self) -> String {
        self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}

impl Thresholds {
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

/// The thresholds in bytes of payload; or why there are none.
pub fn in_bytes(thresholds: &Auto<Thresholds>, env: &Env<'_>) -> Result<Vec<u64>, String> {
    match thresholds {
        Auto::Set(list) => Ok(list.in_bytes(env)),
        Auto::Auto => published::thresholds(env.offered).map(|row| row.to_vec()),
    }
}

/// What is wrong with the thresholds under `key`, of which the first lies below class `first`, or with why there are none.
pub fn problems(key: &'static str, found: Result<Vec<u64>, String>, first: usize, env: &Env<'_>) -> Vec<Problem> {
    let problem = |message: String, hint: &str| Problem { key, message, hint: hint.to_owned() };
    let bytes = match found {
        Ok(bytes) => bytes,
        Err(why) => {
            return vec![problem(format!("`auto` has no thresholds here: {why}"), "write the thresholds, like `30pkt, 300pkt`")];
        }
    };
    let mut problems = Vec::new();
    if let Some(pair) = bytes.windows(2).find(|pair| pair[0] >= pair[1]) {
        let message = format!("`{}B` does not lie below the next threshold, `{}B`", pair[0], pair[1]);
        problems.push(problem(message, "write the thresholds in rising order"));
    }
    let classes = first + bytes.len() + 1;
    if let Some(has) = env.given.value::<u32>("qdisc", "classes").filter(|has| (*has as usize) < classes) {
        let message = format!("{} thresholds make {classes} classes, the switches have {has}", bytes.len());
        problems.push(problem(message, &format!("set `qdisc.classes` to {classes}, or write fewer thresholds")));
    }
    problems
}
