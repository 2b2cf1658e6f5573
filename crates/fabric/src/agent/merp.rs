//! MERP ports.

pub mod vdg;

use super::{Agent, Cx, Env};
use base::params::Problem;
use base::registry::{Meta, Needs};
use base::{Dur, Fraction, Rate};
use proto::Packet;
use proto::transport::merp::EsrSync;

/// What `list` and `check` know of it.
pub const META: Meta = Meta {
    summary: "MERP ports: flow table, virtual deadlines (VDG), rate adjustment",
    source: "Zhang et al., IEEE TPDS 28(11) 2017, section 4.3, algorithms 1 to 3",
    needs: Needs { transport: &["merp"], qdisc: &["strict"], ..Needs::NONE },
};

base::params! {
    /// Parameters of MERP's ports.
    pub struct Params {
        /// Largest share of the line rate that a flow is granted.
        alpha: Fraction = "0.999" in Fraction(1)..=Fraction(999_999_999), "section 6.1";
        /// How expected rates travel between ports; must be as the hosts'.
        esr_sync: EsrSync = "fresh", "spec 5: the literal `sticky` can only fall";
        /// A flow paused elsewhere does not hold this port.
        skip_paused: bool = "true", "spec 5, PDQ's rule: without it the single tree is unstable above half load";
        /// A flow with nothing left to cross this port does not count in the ranking.
        rank_needs_rs: bool = "true", "spec 6.3";
        /// An entry silent for longer is deleted.
        stale: Dur = "20ms", "spec 5";
        /// Smallest detecting rate of the second flow; 0: literal Alg. 3.
        det_min_rate: Rate = "0bps", "spec 6.4";
    }
}

/// Problems that show only against the network.
pub fn check(_params: &Params, _env: &Env) -> Vec<Problem> {
    Vec::new()
}

/// The port's flow table.
pub struct Merp;

impl Merp {
    /// An empty table.
    pub fn new(_params: &Params, _env: &Env) -> Self {
        Merp
    }
}

impl Agent for Merp {
    fn on_enqueue(&mut self, _packet: &Packet, _cx: &mut Cx<'_>) {
        todo!()
    }
    fn on_depart(&mut self, _packet: &mut Packet, _cx: &mut Cx<'_>) {
        todo!()
    }
    fn on_link_down(&mut self) {
        todo!()
    }
}
