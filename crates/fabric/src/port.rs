//! An egress port that needs more than a first-in first-out queue: its discipline, its agent and
//! its pause state.

use crate::agent::{AnyAgent, PortState};
use crate::qdisc::{AnyQdisc, Qdisc};
use crate::queue::{Backlog, Queue};
use base::{Dur, Hold, Time};
use proto::{Kind, Packet};

/// An egress port.
pub struct Port {
    /// The discipline that holds the waiting packets.
    pub qdisc: AnyQdisc,
    /// The agent, which sees and may rewrite the packets that pass.
    pub agent: Option<AnyAgent>,
    /// The state of the port for the agent, if the agent reads it.
    pub state: PortState,
    /// Whether the agent reads the port's state or the router watches the port: a single flag to
    /// test on the hot path.
    pub minded: bool,
    /// Whether the router sees the packets that leave.
    pub watched: bool,
    /// The pause state, if neighbours may pause each other.
    pub pausing: Option<Box<Pausing>>,
}

/// The pause state of a port: the classes that the far end of its cable has paused, and the port's
/// own orders to the far end.
#[derive(Clone, Debug, Default)]
pub struct Pausing {
    /// Bit `c`: packets of class `c` are paused.
    held: u8,
    /// Whether a pause of any class holds all packets back: the port's discipline divides them into
    /// other classes than the far end. A NIC pauses the queue that has the packets of the paused
    /// priority (IEEE 802.1Q-2018, clauses 8.6.6 and 8.6.8: priorities are mapped to queues).
    pub whole: bool,
    /// Orders to the far end. They are sent before all waiting packets, and cannot be paused.
    orders: Queue,
    /// Since when each class is paused.
    since: [Time; 8],
    /// How often each class was paused, and for how long.
    paused: [(u64, Dur); 8],
    /// Number of orders queued for the far end, and of orders received from it, since the link last
    /// failed.
    orders_out: u64,
    orders_in: u64,
}

impl Pausing {
    /// Pauses or resumes the packets of a class.
    pub fn set(&mut self, class: u8, on: bool, now: Time) {
        let bit = 1u8.checked_shl(class.into()).unwrap_or(0);
        let was = self.held & bit != 0;
        self.orders_in += 1;
        if on && !was {
            self.since[usize::from(class)] = now;
            self.paused[usize::from(class)].0 += 1;
        } else if was && !on {
            self.paused[usize::from(class)].1 += now - self.since[usize::from(class)];
        }
        self.held = if on { self.held | bit } else { self.held & !bit };
    }
    /// Resumes all classes because the link has failed, which ends the pauses by the far end.
    pub fn clear(&mut self, now: Time) {
        for class in (0..8).filter(|class| self.is_held(*class)).collect::<Vec<u8>>() {
            self.set(class, false, now);
        }
        (self.orders_in, self.orders_out) = (0, 0);
    }
    /// Returns whether the packets of a class are paused.
    pub fn is_held(&self, class: u8) -> bool {
        self.held >> class & 1 != 0
    }
    /// Returns whether some orders of the port at the far end have not arrived yet.
    pub fn expects_orders(&self, far: &Pausing) -> bool {
        self.orders_in != far.orders_out
    }
    /// Returns how often classes were paused, and for how many picoseconds up to now: for all
    /// classes together, then for each class.
    pub fn counts(&self, now: Time) -> impl Iterator<Item = u64> + Clone {
        let open = |class: u8| if self.is_held(class) { now - self.since[usize::from(class)] } else { Dur::ZERO };
        let each: [(u64, Dur); 8] = std::array::from_fn(|class| (self.paused[class].0, self.paused[class].1 + open(class as u8)));
        let all = each.iter().fold((0, Dur::ZERO), |sum, class| (sum.0 + class.0, sum.1 + class.1));
        [all].into_iter().chain(each).flat_map(|(pauses, paused)| [pauses, paused.0])
    }
}

impl Port {
    /// Returns whether packets may be held back while the transmitter is idle.
    pub fn is_shaped(&self) -> bool {
        self.pausing.is_some() || self.qdisc.is_shaped()
    }
    /// Returns whether the far end has paused a class.
    pub fn is_paused(&self) -> bool {
        self.pausing.as_ref().is_some_and(|pausing| pausing.held != 0)
    }
    /// Returns the total waiting time so far of the packets that wait at `now`; see
    /// [`Qdisc::waited`].
    pub fn waited(&self, now: Time) -> u64 {
        let mut orders = self.pausing.as_ref().map_or_else(Queue::default, |pausing| pausing.orders.clone());
        let orders = std::iter::from_fn(|| orders.pop().copied());
        let waited = |order: Packet| u64::from(order.wire_len) * ((now - order.arrival).0 >> 10);
        self.qdisc.waited(now) + orders.map(waited).sum::<u64>()
    }
    /// Returns the packets and bytes that wait: in the discipline, and orders.
    pub fn backlog(&self) -> Backlog {
        let mut all = self.qdisc.backlog();
        if let Some(pausing) = &self.pausing {
            all.add_all(pausing.orders.backlog());
        }
        all
    }
    /// Removes a packet that will not be served; see [`Qdisc::drain`].
    pub fn drain(&mut self, now: Time) -> Option<Packet> {
        let order = self.pausing.as_mut().and_then(|pausing| pausing.orders.pop().copied());
        order.or_else(|| self.qdisc.drain(now))
    }
    /// Queues an order until the transmitter is idle.
    pub fn push_order(&mut self, order: &Packet) {
        debug_assert_eq!(order.kind, Kind::PAUSE);
        let pausing = self.pausing.as_mut().expect("a port that sends orders");
        pausing.orders.push(order);
        pausing.orders_out += 1;
    }
    /// Returns until when no waiting packet may start, if none may start at `start`; see
    /// [`Qdisc::not_before`].
    pub fn held_before(&self, start: Time) -> Option<Hold> {
        let pausing = self.pausing.as_ref()?;
        if !pausing.orders.is_empty() {
            None
        } else if pausing.held != 0 && (pausing.whole || !self.qdisc.has_except(pausing.held)) {
            Some(Hold { until: Time::MAX, wire_len: 0 })
        } else {
            self.qdisc.not_before(start)
        }
    }
    /// Dequeues the next to be served: an order, or a packet that is not paused.
    #[inline]
    pub fn dequeue(&mut self, now: Time) -> Option<&mut Packet> {
        let Some(pausing) = &mut self.pausing else { return self.qdisc.dequeue(now) };
        if !pausing.orders.is_empty() {
            return pausing.orders.pop();
        }
        match pausing.held {
            0 => self.qdisc.dequeue(now),
            held => self.qdisc.dequeue_except(held, now),
        }
    }
}
