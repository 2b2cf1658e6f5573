//! SSP: a flow sends a burst at line rate before its first credit, ports drop scheduled packets to
//! let bursts pass, and hosts send small flows first.
//!
//! Source: Y. Bai et al., "SSP: Speeding up Small Flows for Proactive Transport in Datacenters",
//! CLUSTER 2020; only the abstract is public. The rest is a reconstruction on ExpressPass (SIGCOMM
//! 2017) and Aeolus (SIGCOMM 2020), the two systems that the abstract compares with. The state
//! machine is `kit/burst`.
//!
//! | rule | from |
//! |---|---|
//! | unscheduled packets at line rate when a flow arrives, as in pHost and Homa | abstract |
//! | a port drops scheduled packets once a queue builds up, so that unscheduled packets survive | abstract |
//! | senders give small flows priority, by shortest job first | abstract |
//!
//! Model: senders and receivers know the size of a flow. Ports must shape credits and drop packets
//! early that are not ECN-capable (`credit`), and data must return over the cables of its credits.
//!
//! Assumed:
//! - The option that changes a choice is given in parentheses.
//! - The credits are those of ExpressPass (`feedback`), and stop once the receiver has all bytes.
//! - The burst has 36 kB (`unsched_bytes`), and ends with the first credit. This value is
//!   calibrated: among the settings that the abstract leaves open, the burst has the largest
//!   effect, and each of the three printed numbers is reproduced at some burst between 30 and 46
//!   kB, whatever the round trip. At the other defaults two of them are reproduced. Aeolus has one
//!   bandwidth-delay product (`auto`): at 100 Gbit/s and 52 us this is 650 kB, with which small
//!   flows gain far more than printed, queues fill the buffer, and large flows lose.
//! - Scheduled packets are not ECN-capable, unscheduled and control packets are: Aeolus' ports with
//!   the classes exchanged.
//! - A scheduled packet is dropped if 6 KB wait on its arrival (`qdisc.drop`, `qdisc.rule`),
//!   Aeolus' threshold, of whatever class (`qdisc.when`).
//! - Unscheduled packets may fill the buffer (`qdisc.protect`).
//! - The receiver finds lost packets by their numbers, and reports them (`detection`).
//! - The next credits of a flow send lost packets before new ones, and ports protect the
//!   retransmissions, both as in Aeolus. With `protect_after = 0` retransmissions are scheduled
//!   packets, which may be dropped again.
//! - A credit that finds no lost and no new packet is wasted (`resend_unconfirmed`); the first such
//!   credit after data sends a probe.
//! - A dropped scheduled packet counts as a lost credit, as it would in ExpressPass (`count_drop_as_credit_loss`).
//! - Shortest job first is strict, by the size of the flow, for each packet of the host; ties go by
//!   arrival (`sender_prio`).

use crate::contract::Env;
use crate::kit::burst::{self, Burst, Class, Detection, Options, Rules, Waiting};
use base::Bytes;
use base::params::Problem;
use base::registry::{Meta, Needs};

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "SSP, reconstructed from its abstract: a burst at line rate before the first credit, ports drop scheduled packets first; small flows first",
    source: "Bai et al., CLUSTER 2020",
    needs: Needs { qdisc: &["credit"], reverse_path: true, ..Needs::NONE },
    implies: &[("qdisc.drop", "6KB")],
    kinds: burst::KINDS,
    counters: burst::COUNTERS,
    knows: &["size"],
    host: "not public; ExpressPass, on which it builds: ns-2",
    ..Meta::PLAIN
};

base::choice! {
    /// Which end finds lost packets.
    pub enum Finder {
        /// The receiver, which reports missing numbers.
        Receiver = "receiver",
        /// The sender, from acknowledgments of all packets.
        Sender = "sender",
    }
}

base::choice! {
    /// Which packet of a host goes first.
    pub enum SenderPrio {
        /// A packet of the smallest flow.
        Sjf = "sjf",
        /// Packets of small flows before the others.
        TwoLevel = "two_level",
        /// A packet of the flow with the fewest bytes left to be sent.
        Srpt = "srpt",
        /// The packet that came first.
        Off = "off",
    }
}

base::params! {
    /// Parameters of SSP.
    pub struct Params {
        ..burst: Options {
            unsched_bytes = "36KB", "flowloom: reproduces the abstract's numbers";
            resend_unconfirmed = "false", "flowloom: not in the abstract";
            backstop = "300us", "flowloom";
        }
        /// Which end finds lost packets.
        detection: Finder = "receiver", "flowloom";
        /// Number of losses after which a packet is retransmitted in the class of unscheduled
        /// packets; 0: never.
        protect_after: u32 = "1", "flowloom: at once, as in Aeolus";
        /// Which packet of a host goes first.
        sender_prio: SenderPrio = "sjf", "abstract: shortest job first";
        /// Largest small flow, with `sender_prio = "two_level"`.
        small: Bytes = "100KB", "abstract: small flows have up to 100 KB";
    }
}

/// Returns the problems that depend on the network, and contradictions between parameters.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    burst::check(&params.burst, env)
}

/// The machine of one host.
pub type Ssp = Burst<SmallFirst>;

impl Ssp {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let Params { detection, protect_after, sender_prio, small, .. } = *params;
        Burst::with(&params.burst, env, SmallFirst { detection, protect_after, sender_prio, small })
    }
}

/// Small flows go first in hosts, and unscheduled packets are protected at ports.
#[derive(Clone, Copy, Debug)]
pub struct SmallFirst {
    detection: Finder,
    protect_after: u32,
    sender_prio: SenderPrio,
    small: Bytes,
}

impl Rules for SmallFirst {
    const PROTECTED: Class = Class::Unscheduled;

    fn detection(&self) -> Detection {
        match self.detection {
            Finder::Receiver => Detection::Reports,
            Finder::Sender => Detection::Acks,
        }
    }
    fn order(&self, waiting: Waiting) -> u64 {
        match self.sender_prio {
            SenderPrio::Sjf => waiting.size,
            SenderPrio::TwoLevel => u64::from(waiting.size > self.small.0),
            SenderPrio::Srpt => waiting.left,
            SenderPrio::Off => 0,
        }
    }
    fn class(&self, losses: u32) -> Class {
        let protected = self.protect_after > 0 && losses >= self.protect_after;
        if protected { Class::Unscheduled } else { Class::Scheduled }
    }
}

#[cfg(test)]
mod tests;
