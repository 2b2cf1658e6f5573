//! MERP ports: a table of the flows that cross the port, with their virtual deadlines, and the
//! rates that the port grants them.
//!
//! Source: S. Zhang, Z. Qian, H. Wu, S. Lu, "Efficient Data Center Flow Scheduling Without Starvation Using Expansion Ratio", IEEE
//! TPDS 28(11), 2017, section 4.3: Alg. 1 (distributed rate controller), Alg. 2 (virtual deadlines, in [`mod@vdg`]), Alg. 3 (rates).
//!
//! Model: a table has no limit unless `table_limit` is set (section 4.4 counts 349 525 entries in 4
//! MB). Computation takes no time.
//!
//! Assumed:
//! - Every egress port has a table, including host NICs: otherwise several flows of one host would
//!   never be arbitrated. Only SYN, DATA, DET and FIN change it; ACKs do nothing. `C` is the line
//!   rate of the port.
//! - Sizes are wire bytes: payload and one header per packet.
//! - esr is stored as a time, size / esr = vdl - aT: the smallest esr is the largest time, infinity
//!   is 0.
//! - A flow is entered when its SYN is admitted; a repeated SYN changes nothing. Nearly everything
//!   else happens when packets start to leave: synchronisation and the grant, the remaining size of
//!   the flow, and its deletion by FIN, so that DATA queued before the FIN is still known.
//! - The remaining size of a flow is counted from the highest byte that left, so that
//!   retransmissions do not count twice.
//! - DATA or a departing SYN of an unknown flow enters the flow. A DET does not, since it may
//!   follow its own FIN: it is granted as if two flows were ahead, and marked, so that a live
//!   sender opens the flow again.
//! - An entry without a packet for `stale` plus four probes at the detecting rate is deleted when
//!   it matters: before virtual deadlines are computed, and when it ranks ahead of a flow that
//!   requests a rate. Senders keep the entries of live flows fresh.
//! - `esr_sync = "fresh"`: a packet collects the largest time that ports computed by themselves.
//!   The port uses the larger one of that time and the time of the whole path that the sender
//!   received one round trip ago. `sticky` overwrites the port's own value, which is Alg. 1 l. 9-10
//!   taken literally.
//! - Ties in the ranking are broken by (vdl, aT, id).
//! - The round trip of Alg. 3 l. 6 is that of the second flow: it must react within it.
//! - Theta is relative to the sender's NIC: a slower port lowers it in the packet, since otherwise
//!   no grant would ever exceed it.
//!
//! Deviates: the paper has none of these rules, and each is an option:
//! - `skip_paused`: a flow paused by another port does not count in the ranking. Without this rule
//!   a flow that ranks first here but is paused by another port keeps this port idle. PDQ has this
//!   rule.
//! - `name_all`: packets name every port that pauses the flow: ports before this one with their
//!   current state, later ports with the state from the newest ACK. If packets named only the first
//!   such port, a flow that waits at two ports would hold one of them once it is free, for a round
//!   trip and a probe, until the flow is informed about the other port.
//! - `rank_needs_rs`: a flow with no bytes left to cross the port does not count in the ranking.
//! - `stale`: an entry that is silent for long is deleted when it matters.
//! - `ack_share`, off by default: grants leave room for the ACKs of the reverse direction. ACKs of
//!   40 bytes for packets of 1500 take 2.7 % of a link, for which an alpha of 0.999 has no room: if
//!   both directions are busy, queues grow until packets are dropped.
//! - `hold_granted`, off by default: a flow that sends is paused because of flows that were granted
//!   their rate within the last round trip, not because of flows that wait. A flow that waits is
//!   paused because of all flows ahead of it, and an early start counts the remaining bytes of all
//!   of them, not only of the first.
//! - `early_start`, 1 by default: the round trips in Alg. 3 l. 6.
//! - `count_queue`, off by default: DATA in the queue counts as remaining bytes of the first flow,
//!   so that early starts do not add up to a full queue.
//! - `det_min_rate`, off by default.

use super::{Agent, Env, PortCx};
use base::params::{Auto, Problem};
use base::registry::{Meta, Needs};
use base::{Dur, FlowId, FlowMap, Fraction, Rate, Time};
use proto::transport::merp::{DET, EsrSync, Header, OVERFLOW, STATELESS, UNKNOWN, wire_span};
use proto::{Kind, Packet};

mod leaders;
pub mod vdg;

use leaders::{Leaders, Rank};
use vdg::vdg;

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "MERP ports: flow table, virtual deadlines (VDG), rate adjustment",
    source: "Zhang et al., IEEE TPDS 28(11) 2017, section 4.3, Alg. 1 to 3",
    needs: Needs { transport: &["merp"], qdisc: &["strict"], ..Needs::NONE },
    shows: &[
        ("virtual_deadline_s", "from the start of the run"),
        ("expansion_ratio", ""),
        ("left_bytes", ""),
        ("paused", "by another port"),
    ],
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of MERP's ports.
    pub struct Params {
        /// Largest fraction of the line rate that a flow is granted (alpha).
        alpha: Fraction = "0.999" in Fraction(1)..=Fraction(999_999_999), "section 6.1";
        /// Fraction of alpha C that no flow is granted: room for the ACKs of the reverse direction.
        ack_share: Fraction = "0" in Fraction(0)..=Fraction(100_000_000), "section 4.3: only alpha";
        /// How expected rates travel between ports; must be equal to the setting of the hosts.
        esr_sync: EsrSync = "fresh", "flowloom, see Assumed: with the literal `sticky` rates can only decrease";
        /// Whether a flow paused by another port is left out of this port's ranking.
        skip_paused: bool = "true", "flowloom, see Deviates: without it the single tree is unstable above half load";
        /// Packets name every port that pauses their flow, not only the first.
        name_all: bool = "true", "flowloom, see Deviates: otherwise a flow that waits at two ports holds one of them";
        /// Whether a flow with no bytes left to cross this port is left out of the ranking.
        rank_needs_rs: bool = "true", "flowloom, see Deviates: otherwise a finished flow ranks first for another round trip";
        /// Pause a flow that sends only because of flows that were granted their rate within the
        /// last round trip.
        hold_granted: bool = "false", "flowloom, see Deviates: in section 4.3 the first flow holds the port";
        /// Early start: the next flow is granted its rate when the bytes ahead of it take less than
        /// this many round trips.
        early_start: Fraction = "1" in Fraction(0)..=Fraction(1_000_000_000_000), "Alg. 3 l. 6";
        /// Count DATA in the queue as bytes ahead of a flow that is granted its rate early.
        count_queue: bool = "false", "flowloom, see Deviates: Alg. 3 l. 6 counts only the first flow";
        /// An entry that is silent for longer than this, plus the turns of the other flows' probes,
        /// is deleted.
        stale: Dur = "20ms" in Dur(1)..=Dur::from_secs(3600), "flowloom, see Assumed: dead senders, lost FINs";
        /// Smallest detecting rate of the second flow.
        det_min_rate: Rate = "0bps", "Alg. 3 l. 9 without a minimum";
        /// Largest number of flows in a port's table; further flows run TCP NewReno on the
        /// bandwidth that MERP leaves.
        table_limit: Auto<u32> = "auto" in Auto::Set(1)..=Auto::Set(u32::MAX), "section 4.4: a limit is never reached";
    }
}

/// Returns the problems of parameters that depend on the network.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let detecting = env.rate.times(params.alpha.complement());
    if detecting.0 == 0 {
        problems.push(Problem {
            key: "alpha",
            message: format!("`{}` of {} leaves no rate for the probes of paused flows", params.alpha, env.rate),
            hint: "write a smaller `alpha`; the paper has 0.999".to_owned(),
        });
    }
    problems
}

/// A flow at a port. Sizes in wire bytes.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Size of the flow.
    pub size: u64,
    /// Bytes that have not started to leave the port.
    pub rs: u64,
    /// When the flow arrived at the port (aT).
    pub arrived: Time,
    /// Size / expected sending rate as this port computed it: vdl - aT.
    pub local: Dur,
    /// Like `local`, after synchronisation with the other ports.
    pub expected: Dur,
    /// Whether another port pauses the flow.
    pub paused_by_other_port: bool,
    /// When its last packet started to leave the port.
    pub last_seen: Time,
    /// One round trip after the flow was last granted its rate (`hold_granted`); 0: it was never
    /// granted, or was paused since.
    pub held_until: Time,
}

impl Row {
    /// Returns the virtual deadline.
    pub fn vdl(&self) -> Time {
        self.arrived.after(self.expected)
    }
}

/// The agent of one port: its flow table.
pub struct Merp {
    params: Params,
    rate: Rate,
    /// alpha C, less `ack_share`.
    full: Rate,
    /// (1 - alpha) C.
    detecting: Rate,
    /// An entry that is silent for longer is deleted.
    patience: Dur,
    header_bytes: u16,
    table: FlowMap<Row>,
    leaders: Leaders,
    /// A superset of the flows whose `held_until` has not passed (`hold_granted`).
    holders: Vec<FlowId>,
    /// When the DATA in the queue will have left, estimated from the waiting time of the last
    /// departed DATA (`count_queue`).
    queued_until: Time,
    // Buffers.
    entries: Vec<vdg::Entry>,
    placed: Vec<vdg::Placed>,
    scratch: vdg::Scratch,
}

impl Merp {
    /// Returns the agent of a port with an empty table.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let detecting = Rate(env.rate.times(params.alpha.complement()).0.max(1));
        Merp {
            params: params.clone(),
            rate: env.rate,
            full: env.rate.times(params.alpha).times(params.ack_share.complement()),
            detecting,
            patience: params.stale + detecting.gap(u64::from(env.header_bytes)) * 4,
            header_bytes: env.header_bytes,
            table: FlowMap::default(),
            leaders: Leaders::default(),
            holders: Vec::new(),
            queued_until: Time::ZERO,
            entries: Vec::new(),
            placed: Vec::new(),
            scratch: vdg::Scratch::default(),
        }
    }
    /// Returns the flows at the port.
    pub fn table(&self) -> &FlowMap<Row> {
        &self.table
    }

    /// Returns the rank of a flow that may hold the port; `None` for other flows.
    #[inline]
    fn rank(params: &Params, flow: FlowId, row: &Row) -> Option<Rank> {
        let eligible = (row.rs > 0 || !params.rank_needs_rs) && !(row.paused_by_other_port && params.skip_paused);
        eligible.then(|| (row.vdl(), row.arrived, flow))
    }

    /// Enters a new flow and computes all virtual deadlines (Alg. 1 l. 5-7).
    fn enter(&mut self, flow: FlowId, size: u64, rs: u64, now: Time) {
        self.drop_stale(now);
        let row = Row {
            size,
            rs,
            arrived: now,
            local: Dur::ZERO,
            expected: Dur::ZERO,
            paused_by_other_port: false,
            last_seen: now,
            held_until: Time::ZERO,
        };
        self.table.insert(flow, row); // Alg. 2 l. 1-2
        self.entries.clear();
        for (flow, row) in self.table.iter() {
            self.entries.push(vdg::Entry { size: row.size, rs: row.rs, arrived: row.arrived, id: flow.0 });
        }
        vdg(now, self.rate, &self.entries, &mut self.placed, &mut self.scratch);
        for placed in &self.placed {
            let flow = FlowId(self.entries[placed.index].id);
            let row = self.table.get_mut(flow).expect("taken from the table above");
            row.local = placed.vdl.since(row.arrived); // Alg. 2 l. 15-16
            row.expected = row.local;
        }
        self.leaders.is_known = false;
    }

    fn remove(&mut self, flow: FlowId) {
        if let Some(row) = self.table.remove(flow) {
            self.leaders.on_change(flow, Self::rank(&self.params, flow, &row), None);
        }
    }

    fn is_stale(&self, row: &Row, now: Time) -> bool {
        row.last_seen.after(self.patience) < now
    }
    fn drop_stale(&mut self, now: Time) {
        self.entries.clear();
        for (flow, row) in self.table.iter() {
            if self.is_stale(row, now) {
                self.entries.push(vdg::Entry { size: row.size, rs: row.rs, arrived: row.arrived, id: flow.0 });
            }
        }
        for i in 0..self.entries.len() {
            self.remove(FlowId(self.entries[i].id));
        }
    }

    /// Returns whether the table is full. Deletes silent entries first if it is.
    fn is_full(&mut self, now: Time) -> bool {
        let Auto::Set(limit) = self.params.table_limit else { return false };
        if self.table.len() >= limit as usize {
            self.drop_stale(now);
        }
        self.table.len() >= limit as usize
    }

    /// Returns the time that represents the expected rate of a flow whose packet passes the port
    /// (Alg. 1 l. 10-11): the largest of the port's own, the packet's and the sender's echo.
    fn expected(params: &Params, row: &Row, header: &Header) -> Dur {
        match params.esr_sync {
            EsrSync::None => row.expected,
            _ => row.local.max(Dur(header.expected_ps.max(header.expected_echo_ps))),
        }
    }

    /// Synchronises a known flow's row with its packet (Alg. 1 l. 9-11). Returns the new row.
    fn sync(&mut self, flow: FlowId, packet: &Packet, header: &mut Header, cx: &PortCx<'_>) -> Option<Row> {
        let params = &self.params;
        let row = self.table.get_mut(flow)?;
        let from = Self::rank(params, flow, row);
        if packet.kind == Kind::DATA {
            let left = wire_span(packet, &cx.flows[flow.index()], self.header_bytes).end;
            row.rs = row.rs.min(row.size - left);
        }
        row.expected = Self::expected(params, row, header);
        if params.esr_sync != EsrSync::None {
            header.expected_ps = header.expected_ps.max(row.local.ps()); // Alg. 1 l. 9
        }
        if params.esr_sync == EsrSync::Sticky {
            row.local = row.expected;
        }
        row.paused_by_other_port = header.is_paused_by_other_port();
        row.last_seen = cx.now;
        self.leaders.on_change(flow, from, Self::rank(params, flow, row));
        Some(*row)
    }

    fn find_leaders(&mut self) {
        let mut leaders = Leaders::known();
        for (flow, row) in self.table.iter() {
            if let Some(rank) = Self::rank(&self.params, flow, row) {
                leaders.insert(rank, flow);
            }
        }
        self.leaders = leaders;
    }

    /// Returns how many flows rank ahead of `flow`, at most two, and the remaining bytes of the
    /// first.
    fn ahead(&mut self, flow: FlowId, row: &Row, now: Time) -> (usize, u64) {
        let mine = (row.vdl(), row.arrived, flow);
        'again: loop {
            if !self.leaders.is_known {
                self.find_leaders();
            }
            let (mut ahead, mut first_rs) = (0, 0);
            for &(rank, other) in self.leaders.list() {
                if rank >= mine || ahead == 2 {
                    break;
                }
                let row = self.table.get(other).expect("leaders are in the table");
                if self.is_stale(row, now) {
                    self.remove(other);
                    continue 'again;
                }
                if ahead == 0 {
                    first_rs = row.rs;
                }
                ahead += 1;
            }
            return (ahead, first_rs);
        }
    }

    /// Returns how many flows hold the port against `flow`, and their remaining bytes
    /// (`hold_granted`).
    fn holding(&mut self, flow: FlowId, row: &Row, kind: Kind, now: Time) -> (usize, u64) {
        let (params, table, mine) = (&self.params, &self.table, (row.vdl(), row.arrived, flow));
        let left = |other: FlowId, row: &Row| Self::rank(params, other, row).filter(|rank| *rank < mine).map(|_| row.rs);
        let add = |(flows, bytes): (usize, u64), rs: u64| (flows + 1, bytes.saturating_add(rs));
        if kind != Kind::DATA {
            return table.iter().filter_map(|(other, row)| left(other, row)).fold((0, 0), add);
        }
        self.holders.retain(|&other| table.get(other).is_some_and(|row| row.held_until >= now));
        self.holders.iter().filter_map(|&other| left(other, table.get(other)?)).fold((0, 0), add)
    }
    fn note_grant(&mut self, flow: FlowId, granted: bool, header: &Header, now: Time) {
        let Some(row) = self.table.get_mut(flow) else { return };
        row.held_until = if granted { now.after(Dur(header.rtt_ps)) } else { Time::ZERO };
        if granted && !self.holders.contains(&flow) {
            self.holders.push(flow);
        }
    }

    /// Returns whether `left` bytes take less than `early_start` round trips at alpha C (Alg. 3 l.
    /// 6).
    fn is_early(&self, left: u64, header: &Header, now: Time) -> bool {
        let queued = if self.params.count_queue { self.queued_until.since(now) } else { Dur::ZERO };
        let sight = Dur(header.rtt_ps).times(self.params.early_start);
        // Unit: bits times ps per second.
        let bits = u128::from(left) * 8_000_000_000_000 + u128::from(queued.0) * u128::from(self.rate.0);
        bits < u128::from(self.full.0) * u128::from(sight.0)
    }

    /// Alg. 3: grants a rate or pauses the flow. `known` is the flow's row, if it has one.
    fn adjust(&mut self, flow: FlowId, known: Option<Row>, kind: Kind, header: &mut Header, now: Time) {
        header.theta_bps = header.theta_bps.min(self.rate.times(header.theta_share()).0);
        let held = self.params.hold_granted;
        let (ahead, left) = match &known {
            None => (2, u64::MAX),
            Some(row) if held => self.holding(flow, row, kind, now),
            Some(row) => self.ahead(flow, row, now),
        };
        let granted = ahead == 0 || (ahead == 1 || held) && self.is_early(left, header, now);
        if held {
            self.note_grant(flow, granted, header, now);
        }
        if granted {
            header.asr_bps = header.asr_bps.min(self.full.0); // Alg. 3 l. 2, 7
            return header.leave(false);
        }
        let detecting = if ahead == 1 {
            let others = self.table.len() as u64 - 1;
            self.detecting.0.saturating_mul(others).max(self.params.det_min_rate.0) // Alg. 3 l. 9
        } else {
            self.detecting.0 // Alg. 3 l. 12
        };
        header.asr_bps = header.asr_bps.min(detecting).min(header.theta_bps);
        header.leave(self.params.name_all || header.paused() == 0);
    }

    /// Marks the SYN of a flow for which the table has no room.
    fn refuse(&mut self, syn: &Packet, cx: &mut PortCx<'_>) {
        let mut header: Header = syn.get_ext(cx.ext);
        header.bits |= STATELESS;
        syn.put_ext(header, cx.ext);
    }
}

/// Returns whether a packet belongs to a flow that overflowed a table.
#[inline]
fn is_stateless(packet: &Packet, cx: &PortCx<'_>) -> bool {
    packet.prio == OVERFLOW || packet.kind == Kind::SYN && packet.get_ext::<Header>(cx.ext).bits & STATELESS != 0
}

impl Agent for Merp {
    fn on_arrive(&mut self, packet: &mut Packet, cx: &mut PortCx<'_>) {
        if is_stateless(packet, cx) {
            self.remove(packet.flow);
        }
    }
    fn on_enqueue(&mut self, packet: &Packet, cx: &mut PortCx<'_>) {
        if packet.kind != Kind::SYN || self.table.contains(packet.flow) || is_stateless(packet, cx) {
            return;
        }
        if self.is_full(cx.now) {
            return self.refuse(packet, cx);
        }
        let size = cx.flows[packet.flow.index()].size_wire_bytes;
        self.enter(packet.flow, size, size, cx.now);
    }
    fn on_depart(&mut self, packet: &mut Packet, cx: &mut PortCx<'_>) {
        let flow = packet.flow;
        match packet.kind {
            Kind::SYN | Kind::DATA | DET => {}
            Kind::FIN => return self.remove(flow), // Alg. 1 l. 1-4
            _ => return,
        }
        if is_stateless(packet, cx) {
            return;
        }
        if packet.kind != DET && !self.table.contains(flow) && !self.is_full(cx.now) {
            let meta = &cx.flows[flow.index()];
            let gone = if packet.kind == Kind::DATA { wire_span(packet, meta, self.header_bytes).start } else { 0 };
            self.enter(flow, meta.size_wire_bytes, meta.size_wire_bytes - gone, cx.now);
        }
        let mut header: Header = packet.get_ext(cx.ext);
        if self.params.count_queue && packet.kind == Kind::DATA {
            let entered = packet.arrival.max(packet.sent_at);
            self.queued_until = cx.now.after(cx.now.since(entered));
        }
        let known = self.sync(flow, packet, &mut header, cx);
        if known.is_none() {
            header.bits |= UNKNOWN;
        }
        self.adjust(flow, known, packet.kind, &mut header, cx.now); // Alg. 1 l. 12
        packet.put_ext(header, cx.ext);
    }
    fn on_link_down(&mut self) {
        self.table.clear();
        self.leaders = Leaders::default();
        self.holders.clear();
        self.queued_until = Time::ZERO;
    }
    fn show(&self, value: &mut dyn FnMut(FlowId, &'static str, f64)) {
        for (flow, row) in self.table.iter() {
            value(flow, "virtual_deadline_s", row.vdl().as_secs_f64());
            // Eq. 5: the time from arrival to virtual deadline, divided by the time of its bytes at
            // line rate.
            value(flow, "expansion_ratio", row.expected.as_secs_f64() / self.rate.tx_time(row.size).as_secs_f64());
            value(flow, "left_bytes", row.rs as f64);
            value(flow, "paused", f64::from(u8::from(row.paused_by_other_port)));
        }
    }
}

#[cfg(test)]
mod line_tests;
#[cfg(test)]
mod tests;
