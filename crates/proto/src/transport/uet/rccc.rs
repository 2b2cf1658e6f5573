//! RCCC, the congestion control of the receiver: a sender needs credit, which the receiver grants to
//! its messages in turn at the rate of its link. Functions of `uec.cpp` are cited in brackets.

use crate::kit::pull_pacer::PullPacer;
use base::{FlowId, FlowMap, Time};
use std::collections::VecDeque;

/// Bytes of a quantum of credit (UEC_PULL_QUANTUM).
pub(super) const QUANTUM: u64 = 256;

/// Quanta for which the pacer waits after a pull without credit (UecPullPacer::doNextEvent).
const EMPTY_PULL: i64 = 1024 / QUANTUM as i64;

/// The constants of all messages of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RcccConfig {
    /// A full packet on the wire.
    pub(super) mtu: u64,
    /// Credit of a sender at the start, and the most that it may have (_configured_maxwnd).
    pub(super) most: u64,
    /// Quanta that a pull grants.
    pub(super) per_pull: u64,
}

/// What a sender has to send when it computes its pull target.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    /// Bytes that were never sent.
    pub(super) new: u64,
    /// Lost bytes.
    pub(super) lost: u64,
    /// The window of another control.
    pub(super) window: Option<u64>,
    /// Number of connections of the host that are ready to send, this one included.
    pub(super) busy: u64,
}

/// The credit of a connection at its sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct SenderCredit {
    /// Bytes that may be sent; the last packet may exceed them.
    credit: i64,
    /// The largest pull number: quanta granted since the start.
    pulled: i64,
    /// Whether the credit is that of the start: nothing has come from the receiver.
    speculating: bool,
}

impl SenderCredit {
    /// Creates the credit of a connection that opens (startConnection).
    pub(super) fn new(config: &RcccConfig) -> SenderCredit {
        SenderCredit { credit: config.most as i64, pulled: 0, speculating: true }
    }
    /// Returns the bytes that may be sent.
    pub(super) fn bytes(&self) -> u64 {
        self.credit.max(0) as u64
    }
    /// Returns whether the receiver has not answered yet.
    pub(super) fn is_speculating(&self) -> bool {
        self.speculating
    }
    /// Takes the credit of a packet of `wire` bytes. Any credit allows a packet.
    pub(super) fn spend(&mut self, wire: u64) {
        self.credit -= wire as i64;
    }
    /// Takes back the rest of the credit of the start: the receiver has answered (stopSpeculating).
    pub(super) fn stop_speculating(&mut self) {
        if self.speculating {
            self.speculating = false;
            self.credit = self.credit.min(0);
        }
    }
    /// Handles a pull number (handlePull).
    pub(super) fn on_pull(&mut self, config: &RcccConfig, number: i64) {
        if number > self.pulled {
            let more = (number - self.pulled).saturating_mul(QUANTUM as i64);
            self.credit = self.credit.saturating_add(more).min(config.most as i64);
            self.pulled = number;
        }
    }
    /// Returns the pull number up to which the sender wants credit (computePullTarget).
    pub(super) fn target(&self, config: &RcccConfig, demand: Demand) -> i64 {
        let all = (demand.new + demand.lost).min(config.most);
        let limit = demand.window.map_or(u64::MAX, |window| window + config.mtu);
        let mut more = all.min(limit) as i64 - self.credit;
        if self.speculating && demand.new > 0 {
            more = more.max(config.mtu as i64);
        }
        more /= demand.busy.max(1) as i64;
        // Less would not allow the packet that asks for more.
        if demand.new + demand.lost > 0 {
            more = more.max(1 - self.credit);
        }
        self.pulled + more.div_euclid(QUANTUM as i64) + i64::from(more.rem_euclid(QUANTUM as i64) > 0)
    }
}

/// The pulls of a message at its receiver.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PullState {
    /// Quanta granted, and quanta that the sender wants, both since the start.
    granted: i64,
    target: i64,
    /// Whether the message is in the queue of those with demand, and of those without.
    active: bool,
    idle: bool,
    /// Number of pulls sent.
    sent: u32,
}

impl PullState {
    /// Handles a pull target. Returns whether it is new (handlePullTarget).
    pub(super) fn on_target(&mut self, target: i64) -> bool {
        let new = target > self.target;
        self.target = self.target.max(target);
        new
    }
}

/// A pull that leaves now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Granted {
    /// The message.
    pub(super) flow: FlowId,
    /// The pull number.
    pub(super) number: i64,
    /// New quanta.
    pub(super) quanta: u64,
    /// Number of pulls of the message, this one included.
    pub(super) count: u32,
}

/// The pulls of a host (UecPullPacer): messages with demand take turns, then those without.
#[derive(Clone, Debug)]
pub(super) struct PullQueue {
    /// When the next pull may leave: one quantum per gap.
    pub(super) pacer: PullPacer,
    active: VecDeque<FlowId>,
    idle: VecDeque<FlowId>,
}

impl PullQueue {
    /// Creates an empty queue.
    pub(super) fn new(pacer: PullPacer) -> PullQueue {
        PullQueue { pacer, active: VecDeque::new(), idle: VecDeque::new() }
    }
    /// Adds a message, unless it is in the queue (requestPull).
    pub(super) fn request(&mut self, flow: FlowId, pull: &mut PullState) {
        if !pull.active {
            pull.active = true;
            self.active.push_back(flow);
        }
    }
    /// Returns the next pull, which leaves now. Messages that are complete lose their turn.
    pub(super) fn next(&mut self, config: &RcccConfig, messages: &mut FlowMap<PullState>, now: Time) -> Option<Granted> {
        let per_pull = config.per_pull as i64;
        let (granted, wait) = loop {
            if let Some(flow) = self.active.pop_front() {
                let Some(pull) = messages.get_mut(flow) else { continue };
                // A pull grants no more than the sender has asked for.
                let quanta = per_pull.min(pull.target - pull.granted).max(0);
                (pull.granted, pull.sent) = (pull.granted + quanta, pull.sent + 1);
                if pull.target > pull.granted {
                    self.active.push_back(flow);
                } else {
                    pull.active = false;
                    if !pull.idle {
                        pull.idle = true;
                        self.idle.push_back(flow);
                    }
                }
                let wait = if quanta == 0 { EMPTY_PULL } else { quanta };
                break (Granted { flow, number: pull.granted, quanta: quanta as u64, count: pull.sent }, wait);
            }
            let flow = self.idle.pop_front()?;
            let Some(pull) = messages.get_mut(flow) else { continue };
            // Beyond its target a sender gets at most the credit of the start.
            (pull.granted, pull.sent) = (pull.granted + per_pull, pull.sent + 1);
            pull.idle = pull.granted - pull.target < (config.most / QUANTUM) as i64;
            if pull.idle {
                self.idle.push_back(flow);
            }
            break (Granted { flow, number: pull.granted, quanta: per_pull as u64, count: pull.sent }, per_pull);
        };
        self.pacer.take(now);
        self.pacer.hold(wait as u64 - 1, now);
        Some(granted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Dur;

    /// Packets of 4150 bytes, 225 000 bytes at the start, and 63 quanta per pull.
    const CONFIG: RcccConfig = RcccConfig { mtu: 4150, most: 225_000, per_pull: 4 * 4086 / QUANTUM };

    fn demand(new: u64, lost: u64) -> Demand {
        Demand { new, lost, window: None, busy: 1 }
    }

    #[test]
    fn the_credit_of_the_start_ends_with_the_first_answer() {
        let mut credit = SenderCredit::new(&CONFIG);
        credit.spend(4150);
        assert_eq!((credit.bytes(), credit.is_speculating()), (220_850, true));
        credit.stop_speculating();
        assert_eq!((credit.bytes(), credit.is_speculating()), (0, false));
        credit.on_pull(&CONFIG, 4);
        credit.stop_speculating();
        assert_eq!(credit.bytes(), 1024, "only once");
    }

    #[test]
    fn pulls_are_numbered_and_fill_the_credit_up_to_its_bound() {
        let mut credit = SenderCredit::new(&CONFIG);
        credit.stop_speculating();
        credit.on_pull(&CONFIG, 10);
        credit.on_pull(&CONFIG, 7);
        assert_eq!(credit.bytes(), 2560, "an old number");
        credit.spend(4150);
        assert_eq!((credit.bytes(), credit.credit), (0, -1590));
        credit.on_pull(&CONFIG, 17);
        assert_eq!(credit.bytes(), 202);
        credit.on_pull(&CONFIG, 100_000);
        assert_eq!(credit.bytes(), 225_000);
    }

    #[test]
    fn the_target_is_the_demand_beyond_the_credit() {
        let mut credit = SenderCredit::new(&CONFIG);
        // The demand is bounded, and there is credit for all of it but one packet.
        credit.spend(4150);
        assert_eq!(credit.target(&CONFIG, demand(10_000_000, 0)), 17, "4150 bytes");
        // At the start a sender asks for a packet at least, whatever credit it has.
        assert_eq!([1, 0].map(|new| credit.target(&CONFIG, demand(new, 0))), [17, -862]);
        credit.stop_speculating();
        credit.on_pull(&CONFIG, 10);
        assert_eq!(credit.target(&CONFIG, demand(2560, 0)), 10);
        assert_eq!([(2561, 0), (2560, 1), (2560, 257)].map(|(new, lost)| credit.target(&CONFIG, demand(new, lost))), [11, 11, 12]);
        let window = |window, busy| Demand { window: Some(window), busy, ..demand(100_000, 0) };
        // 8000 + 4150 - 2560 = 9590 bytes are 37.5 quanta.
        assert_eq!(credit.target(&CONFIG, window(8000, 1)), 10 + 38);
        assert_eq!(credit.target(&CONFIG, window(8000, 4)), 10 + 10, "2397 bytes are 9.4 quanta");
        // 4150 bytes more than the credit: 1591 bytes are 6.2 quanta, and allow a packet.
        credit.spend(4150);
        assert_eq!(credit.target(&CONFIG, window(8000, 1)), 10 + 54);
        assert_eq!([(1, 20), (0, 20)].map(|(new, busy)| credit.target(&CONFIG, Demand { busy, ..demand(new, 0) })), [17, 11]);
    }

    /// Grants of 63 quanta to messages with demand in turn, no more than asked for; then credit
    /// beyond the target.
    #[test]
    fn messages_with_demand_take_turns() {
        let config = RcccConfig { most: 140 * QUANTUM, ..CONFIG };
        let mut queue = PullQueue::new(PullPacer::new(Dur::from_ns(1)));
        let mut messages = FlowMap::default();
        for (flow, target) in [(0, 100), (1, 70), (2, 0)] {
            let mut pull = PullState::default();
            assert_eq!(pull.on_target(target), target > 0);
            assert!(!pull.on_target(target - 1));
            queue.request(FlowId(flow), &mut pull);
            queue.request(FlowId(flow), &mut pull);
            messages.insert(FlowId(flow), pull);
        }
        let mut now = Time::ZERO;
        let mut next = |messages: &mut FlowMap<PullState>, wait: u64| {
            let granted = queue.next(&config, messages, now)?;
            now = now.after(Dur::from_ns(wait));
            assert!(queue.pacer.is_free(now) && !queue.pacer.is_free(Time(now.0 - 1)), "a gap of {wait} quanta");
            Some((granted.flow.0, granted.number, granted.quanta))
        };
        assert_eq!(next(&mut messages, 63), Some((0, 63, 63)));
        assert_eq!(next(&mut messages, 63), Some((1, 63, 63)));
        assert_eq!(next(&mut messages, 4), Some((2, 0, 0)), "no demand");
        assert_eq!(next(&mut messages, 37), Some((0, 100, 37)));
        assert_eq!(next(&mut messages, 7), Some((1, 70, 7)));
        // Without demand, in the order in which it ended; message 1 is complete.
        messages.remove(FlowId(1));
        let idle: Vec<_> = (0..3).map(|_| next(&mut messages, 63)).collect();
        assert_eq!(idle, [Some((2, 63, 63)), Some((0, 163, 63)), Some((2, 126, 63))]);
        let idle: Vec<_> = (0..3).map(|_| next(&mut messages, 63)).collect();
        assert_eq!(
            idle,
            [Some((0, 226, 63)), Some((2, 189, 63)), Some((0, 289, 63))],
            "up to 140 quanta or more beyond the target"
        );
        assert_eq!(queue.next(&config, &mut messages, now), None);
    }
}
