//! Aeolus on ExpressPass: a flow sends a burst at line rate before its first credit, and ports drop packets of bursts before they disturb others.
//!
//! Source: S. Hu et al., "Aeolus: A Building Block for Proactive Transport in Datacenters", SIGCOMM 2020; its abstract at APNet 2018; the authors'
//! testbed code (github.com/gaoxiongzeng/dpdk-18.05, app/test-pmd/flowgen.c). The machine is `kit/burst`, the credits are those of ExpressPass.
//!
//! Model: senders and receivers know the size of a flow. Ports must shape credits and drop early what is not ECN-capable (`credit`), and data must
//! return over the cables of its credits.
//!
//! | rule | from |
//! |---|---|
//! | unscheduled packets at line rate, up to one bandwidth-delay product, until the first credit | section 3.1 |
//! | unscheduled packets are not ECN-capable, all others are: ports drop the former alone, at 6 KB (`qdisc.drop`, `qdisc.rule`) | section 3.2 |
//! | a probe behind the last unscheduled packet, also where a credit ended the burst | section 3.3 |
//! | the receiver acknowledges each unscheduled packet and each probe | section 3.3 |
//! | what was sent before an acknowledged packet and is not acknowledged is lost, since paths are FIFO | section 3.3 |
//! | a credit sends a lost packet, else a new one, else an unscheduled one that is not acknowledged, else nothing | section 3.3; APNet 2018 |
//! | a retransmission is a scheduled packet | section 3.3 |
//! | a timeout asks and probes again | testbed code |
//!
//! Assumed:
//! - In a host scheduled packets go before unscheduled ones, and among those the flow that came first.
//! - Lost scheduled packets, which full buffers and links alone can lose, are reported by the receiver, as in ExpressPass; by their numbers.
//! - In the testbed code the receiver answers a probe with the number of bytes that are missing; here it answers with an acknowledgment.

use crate::contract::Env;
use crate::kit::burst::{self, Burst, Class, Detection, Options, Rules, Waiting};
use base::params::Problem;
use base::registry::{Meta, Needs};

/// What `list` and `check` know of it.
pub const META: Meta = Meta {
    summary: "Aeolus on ExpressPass: a burst at line rate before the first credit, dropped before it disturbs scheduled packets",
    source: "Hu et al., SIGCOMM 2020",
    needs: Needs { qdisc: &["credit"], reverse_path: true, ..Needs::NONE },
    implies: &[("qdisc.drop", "6KB")],
    kinds: burst::KINDS,
    counters: burst::COUNTERS,
    knows: &["size"],
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of Aeolus.
    pub struct Params {
        ..burst: Options {}
    }
}

/// Problems that show only against the network, or between parameters.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    burst::check(&params.burst, env)
}

/// The machine of one host.
pub type Aeolus = Burst<ScheduledFirst>;

impl Aeolus {
    /// A host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        Burst::with(&params.burst, env, ScheduledFirst)
    }
}

/// Scheduled packets go first in hosts and are protected in ports.
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
