//! MERP hosts.

use super::{Cx, Env, Transport};
use crate::flow::Sample;
use crate::packet::{Kind, Packet};
use base::params::Problem;
use base::registry::{Meta, Needs};
use base::{Bytes, Dur, FlowId, RateOr, TimerKey};

/// What `list` and `check` know of it.
pub const META: Meta = Meta {
    summary: "MERP hosts: paced by the rate that switches grant, probing while paused",
    source: "Zhang et al., IEEE TPDS 28(11) 2017, sections 4.1 and 4.2",
    needs: Needs { agent: &["merp"], qdisc: &["strict"], ..Needs::NONE },
};

base::choice! {
    /// How the expected rate travels between ports.
    pub enum EsrSync {
        /// Echoed by the sender in a field of its own; recovers one round trip after contention ends.
        Fresh = "fresh",
        /// Echoed in the same field: can only fall (the literal reading).
        Sticky = "sticky",
        /// Downstream only, no echo.
        Downstream = "downstream",
        /// Not at all.
        None = "none",
    }
}

base::params! {
    /// Parameters of MERP's hosts.
    pub struct Params {
        /// Detecting-rate threshold: above it a flow sends DATA.
        theta: RateOr = "0.8", "section 6.1: 0.8 Gb/s on 1 Gb/s";
        /// Size of a DET packet; the other packets without payload have the size of a header.
        det_size: Bytes = "40B", "spec 2: with 1500 B a third-ranked flow would probe every 12 ms";
        /// Smallest gap between DET packets of a flow.
        det_min_gap: Dur = "0us", "literal";
        /// Smallest retransmission timeout.
        min_rto: Dur = "1ms", "spec 3.6";
        /// Timeout of the first SYN, doubling.
        syn_rto: Dur = "1ms", "spec 3.1";
        /// Times a FIN is sent before the sender gives up on its FINACK.
        fin_tries: u32 = "8" in 1..=100, "spec 3.7";
        /// How the sender echoes the expected rate; must be as the agent's.
        esr_sync: EsrSync = "fresh", "spec 5";
    }
}

/// Problems that show only against the network.
pub fn check(_params: &Params, _env: &Env) -> Vec<Problem> {
    Vec::new()
}

/// The machine of one host.
pub struct Merp;

impl Merp {
    /// A host without flows.
    pub fn new(_params: &Params, _env: &Env) -> Self {
        Merp
    }
}

impl Transport for Merp {
    fn on_flow(&mut self, _flow: FlowId, _cx: &mut Cx<'_>) {
        todo!()
    }
    fn on_packet(&mut self, _packet: &Packet, _cx: &mut Cx<'_>) {
        todo!()
    }
    fn on_timer(&mut self, _key: TimerKey, _cx: &mut Cx<'_>) {
        todo!()
    }
    fn poll_transmit(&mut self, _cx: &mut Cx<'_>) -> Option<Packet> {
        todo!()
    }
    fn sample(&self, _flow: FlowId) -> Option<Sample> {
        None
    }
    fn kind_name(&self, _kind: Kind) -> Option<&'static str> {
        None
    }
}
