//! Multipath TCP: a flow is sent over several TCP subflows, whose windows grow together no faster than that of one TCP.
//!
//! Source: RFC 6356 (linked increases); RFC 8684 sections 3.3 and 3.3.6 (data sequence numbers,
//! reinjection); C. Raiciu et al., "Improving Datacenter Performance and Robustness with Multipath
//! TCP", SIGCOMM 2011, section 4 (subflows by ports under ECMP); D. Wischik et al., "Design,
//! Implementation and Evaluation of Congestion Control for Multipath TCP", NSDI 2011; csg-htsim,
//! `mtcp.cpp`. Each subflow is a sender of `kit/tcp` with NewReno's rules.
//!
//! Model: that of `kit/tcp`. The receive window has no limit, so that no subflow waits for another.
//! The header has the length of TCP's. The size of a flow is read only for `min_bytes`.
//!
//! | rule | from |
//! |---|---|
//! | in congestion avoidance `b` acknowledged bytes add `min(alpha b SMSS / total, b SMSS / cwnd)` | RFC 6356 eq. 1 |
//! | `alpha = total max(w / rtt^2) / (sum of w / rtt)^2` | RFC 6356 eq. 2 |
//! | in fast recovery a window counts with its `ssthresh` | csg-htsim |
//! | slow start and recovery as in NewReno, separately for each subflow | RFC 6356 section 3 |
//! | a subflow that may send takes the next bytes that no subflow has sent | Raiciu et al. section 4 |
//! | after a timeout of a subflow, other subflows also send its unacknowledged bytes | RFC 8684 section 3.3.6 |
//!
//! Assumed:
//! - All subflows open when the flow starts, each with a handshake if handshakes are on. The first
//!   one has the source port of the flow. The ports of the others are drawn like those of flows;
//!   under routers that hash, each port selects a path. With `paths = "index"`, subflow `i` takes
//!   path `flow + i` modulo the number of paths of the flow.
//! - `alpha` is recomputed after one window of all subflows is acknowledged, after every loss, and
//!   when a subflow opens. It is a multiple of 2^-24; fractions of a byte of a window are kept.
//!   Subflows without a round-trip sample do not count in it.
//! - A loss halves FlightSize, down to one segment.
//! - Subflows take turns, segment by segment. Bytes that another subflow has lost go before new
//!   bytes, the first bytes of the flow first. One other subflow sends them. They are retransmitted
//!   after each further timeout of the subflow that lost them, until they are acknowledged.
//! - Every ACK carries the byte below which the connection has received everything (DATA_ACK). When
//!   the connection has all bytes, the sender closes all subflows.
//! - Bytes retransmitted over another subflow count as retransmissions and give no round-trip
//!   sample.
//! - `cwnd` and `ssthresh` of a sample are sums over the subflows; its round trip is the shortest.

mod connection;
mod inbound;
mod label;
mod lia;

use crate::contract::{Bursts, Cx, Env, Timeout, Timers, Transport};
use crate::flow::Sample;
use crate::kit::late::GiveUp;
use crate::kit::tcp::{Answer, Blocks, Connections, Echo, Options};
use crate::packet::{Kind, Packet};
use crate::turns::RoundRobin;
use base::params::Problem;
use base::registry::{Counter, Meta, Needs};
use base::{Bytes, FlowId, FlowMap, Time, TimerKey};
use connection::{AckResult, Connection, Rules};
use inbound::Inbound;
pub use label::Paths;
use lia::Lia;
use std::ops::Range;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "multipath TCP: several subflows with coupled windows, each on its own path",
    source: "RFC 6356, RFC 8684; Raiciu et al., SIGCOMM 2011",
    needs: Needs { least_limit: 1.0, ..Needs::NONE },
    many_paths: true,
    counters: &[
        Counter { name: "subflows", unit: "", about: "subflows opened by the sender" },
        Counter {
            name: "reinjected_bytes",
            unit: "bytes",
            about: "bytes that another subflow also sent after a timeout of their subflow",
        },
    ],
    host: "htsim: one first-in first-out queue without a limit; Linux: byte queue limits",
    ..Meta::PLAIN
};

/// Counter: subflows.
const SUBFLOWS: usize = 0;
/// Counter: bytes that another subflow sent too.
const REINJECTED: usize = 1;

base::params! {
    /// Parameters of multipath TCP.
    pub struct Params {
        ..tcp: Options {}
        /// Number of subflows of a connection.
        subflows: u32 = "8" in 1..=64, "Raiciu et al. section 4: eight in a fat tree";
        /// Flows of fewer bytes have one subflow.
        min_bytes: Bytes = "0B" in Bytes(0)..=Bytes(1_000_000_000_000), "flowloom: off; 100 KB spares short flows the handshakes";
        /// Whether the other subflows also send the unacknowledged bytes of a subflow after its
        /// timeout.
        reinject: bool = "true", "RFC 8684 section 3.3.6";
        /// How a subflow gets its path: by its own source port, or by an index.
        paths: Paths = "port", "Raiciu et al. section 4: ECMP";
    }
}

/// Returns the contradictions between parameters.
pub fn check(params: &Params, _env: &Env<'_>) -> Vec<Problem> {
    let mut problems = params.tcp.check();
    if params.tcp.give_up != GiveUp::Never {
        let message = "`mptcp` cannot give up flows: no subflow knows how many bytes of the flow are left".to_owned();
        problems.push(Problem { key: "give_up", message, hint: "remove `give_up`".to_owned() });
    }
    if params.tcp.connections == Connections::Peer {
        let message = "every flow of `mptcp` opens subflows of its own".to_owned();
        problems.push(Problem { key: "connections", message, hint: "remove `connections`".to_owned() });
    }
    problems
}

/// Timer: the first retransmission timeout of a flow's subflows, at the sender.
const RTO: u8 = 0;
/// Timer: the first delayed ACK of a flow's subflows, at the receiver.
const DELAYED_ACK: u8 = 1;

/// The machine of one host.
pub struct Mptcp {
    rules: Rules,
    subflows: u8,
    min_bytes: u64,
    connections: FlowMap<Connection>,
    inbound: Inbound,
    // Connections that may send. A connection's `ready` says whether it is in; closed ones are
    // skipped when their turn comes.
    ready: RoundRobin,
}

impl Mptcp {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let config = params.tcp.config(env);
        let rules = Rules { config, lia: Lia { smss: config.smss }, paths: params.paths, reinject: params.reinject };
        Mptcp {
            rules,
            subflows: params.subflows as u8,
            min_bytes: params.min_bytes.0,
            connections: FlowMap::default(),
            inbound: Inbound::default(),
            ready: RoundRobin::default(),
        }
    }

    /// Updates the queue and the timer after a change of a connection.
    fn settle(ready: &mut RoundRobin, flow: FlowId, connection: &mut Connection, cx: &mut Cx<'_>) {
        Self::arm(flow, RTO, connection.due(), cx);
        if !connection.ready {
            connection.ready = true;
            ready.add(flow);
        }
    }

    /// Sets a timer for all subflows, which have more deadlines than a flow has timers.
    fn arm(flow: FlowId, kind: u8, due: Time, cx: &mut Cx<'_>) {
        if due == Time::MAX { cx.disarm(flow, kind) } else { cx.arm(flow, kind, due) }
    }

    fn on_ack(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let flow = packet.flow;
        // An ACK of a closed connection is a late duplicate.
        let Some(connection) = self.connections.get_mut(flow) else { return };
        let mut answer = Answer { next: packet.offset, echo: Echo::read(packet), ..Answer::default() };
        let blocks = packet.has(Packet::EXT).then(|| packet.get_ext::<Blocks>(cx.ext));
        if let Some(blocks) = &blocks {
            answer.echo.feedback = blocks.feedback;
        }
        match connection.on_ack(answer, blocks.as_ref(), &self.rules, cx) {
            AckResult::Done => {
                self.connections.remove(flow);
                return cx.close(flow);
            }
            AckResult::Loss => cx.note_fast_retransmit(flow),
            AckResult::Other => {}
        }
        Self::settle(&mut self.ready, flow, connection, cx);
    }
}

impl Transport for Mptcp {
    fn on_flow(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let subflows = if cx.flow(flow).size_bytes < self.min_bytes { 1 } else { self.subflows };
        let mut connection = Connection::new(flow, subflows, &self.rules, cx);
        if self.rules.config.handshake {
            for number in 0..subflows {
                let syn = connection.open(number, false, &self.rules, cx);
                cx.control(syn);
            }
        } else {
            cx.count(flow, SUBFLOWS, subflows.into());
        }
        Self::settle(&mut self.ready, flow, &mut connection, cx);
        self.connections.insert(flow, connection);
    }

    fn on_packet(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let flow = packet.flow;
        let Rules { config, paths, .. } = &self.rules;
        match packet.kind {
            Kind::DATA => {
                let due = self.inbound.on_data(packet, config, *paths, cx);
                if config.ack_every > 1 {
                    Self::arm(flow, DELAYED_ACK, due, cx);
                }
            }
            Kind::ACK => self.on_ack(packet, cx),
            Kind::SYN => Inbound::on_syn(packet, config, *paths, cx),
            Kind::SYNACK => {
                if let Some(connection) = self.connections.get_mut(flow)
                    && connection.on_synack(packet, &self.rules, cx)
                {
                    cx.count(flow, SUBFLOWS, 1);
                    Self::settle(&mut self.ready, flow, connection, cx);
                }
            }
            // No other kind is sent.
            _ => {}
        }
    }

    fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>) {
        let flow = key.flow;
        if key.kind == DELAYED_ACK {
            let due = self.inbound.on_timer(flow, &self.rules.config, self.rules.paths, cx);
            return Self::arm(flow, DELAYED_ACK, due, cx);
        }
        let Some(connection) = self.connections.get_mut(flow) else { return };
        while let Some(number) = connection.take_due(cx.now) {
            cx.note_timeout(flow);
            if let Some(syn) = connection.on_timeout(number, &self.rules, cx) {
                cx.control(syn);
            }
        }
        Self::settle(&mut self.ready, flow, connection, cx);
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        loop {
            let flow = self.ready.take()?;
            let Some(connection) = self.connections.get_mut(flow) else { continue };
            connection.ready = false;
            let Some((packet, reinjected)) = connection.poll(&self.rules, cx) else { continue };
            if reinjected > 0 {
                cx.count(flow, REINJECTED, reinjected);
            }
            Self::settle(&mut self.ready, flow, connection, cx);
            return Some(packet);
        }
    }

    fn turns(&mut self) -> Option<&mut RoundRobin> {
        Some(&mut self.ready)
    }

    fn next_of(&self, turn: FlowId) -> Option<(FlowId, Range<u64>)> {
        Some((turn, self.connections.get(turn)?.next_bytes(self.rules.config.smss)?))
    }

    fn remove_sender(&mut self, flow: FlowId) -> bool {
        self.connections.remove(flow).is_some()
    }

    fn sample(&self, flow: FlowId) -> Option<Sample> {
        self.connections.get(flow).map(Connection::sample)
    }

    fn timers(&self) -> Timers {
        let (handshake, rtt) = (self.rules.config.handshake, self.rules.config.rtt);
        let (first, least) = (Timeout::new("init_rto", rtt.init_rto), Timeout::new("min_rto", rtt.min_rto));
        Timers { handshake, first, least, fixed: false }
    }

    fn bursts(&self) -> Bursts {
        let config = &self.rules.config;
        let window = config.init_window.min(config.max_window);
        Bursts { first_bytes: window.saturating_mul(self.subflows.into()), granted_bytes: 0 }
    }
}

#[cfg(test)]
mod tests;
