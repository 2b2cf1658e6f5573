//! Aeolus on ExpressPass: a flow sends a burst at line rate before its first credit, and ports drop
//! packets of bursts before these disturb scheduled packets.
//!
//! Source: S. Hu et al., "Aeolus: A Building Block for Proactive Transport in Datacenters", SIGCOMM
//! 2020; its abstract at APNet 2018; the authors' testbed code (github.com/gaoxiongzeng/dpdk-18.05,
//! app/test-pmd/flowgen.c). The state machine is `kit/burst`, the credits are those of ExpressPass.
//!
//! Model: senders and receivers know the size of a flow. Ports must shape credits and drop packets
//! early that are not ECN-capable (`credit`), and data must return over the cables of its credits.
//!
//! | rule | from |
//! |---|---|
//! | unscheduled packets at line rate, up to one bandwidth-delay product, until the first credit | section 3.1 |
//! | unscheduled packets are not ECN-capable, all others are: above 6 KB ports drop only the former (`qdisc.drop`, `qdisc.rule`) | section 3.2 |
//! | a probe behind the last unscheduled packet, also where a credit ended the burst | section 3.3 |
//! | the receiver acknowledges each unscheduled packet and each probe | section 3.3 |
//! | packets sent before an acknowledged packet and not acknowledged are lost, since paths are FIFO | section 3.3 |
//! | a credit sends a lost packet, else a new one, else an unscheduled one that is not acknowledged, else nothing | section 3.3; APNet 2018 |
//! | a retransmission is a scheduled packet | section 3.3 |
//! | after a timeout the sender repeats its request and its probe | testbed code |
//!
//! Assumed:
//! - In a host, scheduled packets go before unscheduled ones. Among unscheduled packets, the flow
//!   that came first goes first.
//! - The receiver reports lost scheduled packets by their numbers, as in ExpressPass. Only full
//!   buffers and links can lose them.
//! - In the testbed code the receiver answers a probe with the number of missing bytes; here it
//!   answers with an acknowledgment.

use crate::contract::Env;
use crate::kit::burst::{self, Burst, Class, Detection, Options, Rules, Waiting};
use base::params::Problem;
use base::registry::{Meta, Needs};

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "Aeolus on ExpressPass: a burst at line rate before the first credit, dropped early to protect scheduled packets",
    source: "Hu et al., SIGCOMM 2020",
    needs: Needs { qdisc: &["credit"], reverse_path: true, ..Needs::NONE },
    implies: &[("qdisc.drop", "6KB")],
    kinds: burst::KINDS,
    counters: burst::COUNTERS,
    knows: &["size"],
    host: "DPDK: a sender that hands packets to the NIC in bursts",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of Aeolus.
    pub struct Params {
        ..burst: Options {}
    }
}

/// Returns the problems that depend on the network, and contradictions between parameters.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    burst::check(&params.burst, env)
}

/// The machine of one host.
pub type Aeolus = Burst<ScheduledFirst>;

impl Aeolus {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        Burst::with(&params.burst, env, ScheduledFirst)
    }
}

/// Scheduled packets go first in hosts and are protected at ports.
#[derive(Clone, Copy, Debug)]
pub struct ScheduledFirst;

impl Rules for ScheduledFirst {
    const PROTECTED: Class = Class::Scheduled;

    fn detection(&self) -> Detection {
        Detection::BurstAcks
    }
    fn order(&self, waiting: Waiting) -> u64 {
        u64::from(waiting.class == Class::Unscheduled)
    }
}

#[cfg(test)]
mod tests;
