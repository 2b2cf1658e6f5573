//! TCP NewReno.

use super::{Cx, Env, Transport};
use crate::flow::Sample;
use crate::packet::{Kind, Packet};
use base::params::{Auto, Problem};
use base::registry::{Meta, Needs};
use base::{Dur, FlowId, TimerKey};

/// What `list` and `check` know of it.
pub const META: Meta = Meta {
    summary: "TCP NewReno: slow start, congestion avoidance, fast retransmit and recovery without SACK",
    source: "RFC 5681, RFC 6582, RFC 6298",
    needs: Needs::NONE,
};

base::params! {
    /// Parameters of TCP NewReno.
    pub struct Params {
        /// Smallest retransmission timeout.
        min_rto: Dur = "200ms" in Dur::from_us(1)..=Dur::from_secs(60), "ns-2 scripts of the DCTCP line; RFC 6298 (2.4) asks for 1 s";
        /// Retransmission timeout before the first round-trip sample.
        init_rto: Auto<Dur> = "1s", "RFC 6298 (2.1); `auto`: as `min_rto`";
        /// Largest retransmission timeout.
        max_rto: Dur = "60s", "RFC 6298 (2.5)";
        /// Clock granularity G in the timeout formula and in the times at which timers fire; 0 is a perfect clock.
        clock: Dur = "0us", "simulation";
        /// Initial window in segments; `auto`: by segment size.
        init_window: Auto<u32> = "auto" in Auto::Set(1)..=Auto::Set(1000), "RFC 5681 section 3.1: 3 for 1460-byte segments";
        /// Largest window in segments; `auto`: no limit.
        max_cwnd: Auto<u32> = "auto", "no receive window in the model";
        /// Open every connection with a SYN and a SYNACK.
        handshake: bool = "true", "RFC 9293";
        /// Data packets per ACK: 1 or 2.
        ack_every: u32 = "1" in 1..=2, "RFC 5681 section 4.2 allows 2";
        /// Longest wait of a delayed ACK.
        delayed_ack: Dur = "40ms", "common stacks";
        /// Send new data on the first two duplicate ACKs.
        limited_transmit: bool = "false", "RFC 3042";
        /// Leave recovery at `ssthresh` instead of the smaller of it and FlightSize + SMSS.
        full_ack_ssthresh: bool = "false", "RFC 6582 section 3.2 step 3, option 2";
    }
}

/// Problems that show only against the network.
pub fn check(_params: &Params, _env: &Env) -> Vec<Problem> {
    Vec::new()
}

/// The machine of one host.
pub struct NewReno;

impl NewReno {
    /// A host without flows.
    pub fn new(_params: &Params, _env: &Env) -> Self {
        NewReno
    }
}

impl Transport for NewReno {
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
