//! An egress port that needs more than a first-in first-out queue: a discipline, and what stands beside it.

use crate::agent::{AnyAgent, PortState};
use crate::qdisc::{AnyQdisc, Qdisc};
use crate::queue::{Backlog, Queue};
use base::{Dur, Hold, Time};
use proto::{Kind, Packet};

/// A port.
pub struct Port {
    /// Holds the packets that wait.
    pub qdisc: AnyQdisc,
    /// Watches and rewrites what passes.
    pub agent: Option<AnyAgent>,
    /// What the agent sees of the port, if it reads that.
    pub state: PortState,
    /// The agent reads the port's state, or the router watches the port: one look for both.
    pub minded: bool,
    /// The router is told of what leaves.
    pub watched: bool,
    /// Where neighbours may pause each other.
    pub pausing: Option<Box<Pausing>>,
}

/// What a port has that the far end of its cable may pause, and that sends such orders itself.
#[derive(Clone, Debug, Default)]
pub struct Pausing {
    /// Bit `c`: packets of class `c` are held back.
    held: u8,
    /// Orders to the far end. They go before all that waits, and nothing holds them back.
    orders: Queue,
    /// By class: since when it is held.
    since: [Time; 8],
    /// By class: how often it was paused, and for how long.
    paused: [(u64, Dur); 8],
    /// Orders that it has been given for the far end, and orders that have come from there, since the link last died.
    orders_out: u64,
    orders_in: u64,
}

impl Pausing {
    /// The packets of a class are held back from now on, or no longer.
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
    /// The link has died, and with it what the far end has said.
    pub fn clear(&mut self, now: Time) {
        for class in (0..8).filter(|class| self.is_held(*class)).collect::<Vec<u8>>() {
            self.set(class, false, now);
        }
        (self.orders_in, self.orders_out) = (0, 0);
    }
    /// Whether the packets of a class are held back.
    pub fn is_held(&self, class: u8) -> bool {
        self.held >> class & 1 != 0
    }
    /// Whether some of the orders that the port at the far end has given have not come yet.
    pub fn expects_orders(&self, far: &Pausing) -> bool {
        self.orders_in != far.orders_out
    }
    /// How often classes were paused, and for how many picoseconds up to now: of all classes together, then of each.
    pub fn counts(&self, now: Time) -> impl Iterator<Item = u64> + Clone {
        let open = |class: u8| if self.is_held(class) { now - self.since[usize::from(class)] } else { Dur::ZERO };
        let each: [(u64, Dur); 8] = std::array::from_fn(|class| (self.paused[class].0, self.paused[class].1 + open(class as u8)));
        let all = each.iter().fold((0, Dur::ZERO), |sum, class| (sum.0 + class.0, sum.1 + class.1));
        [all].into_iter().chain(each).flat_map(|(pauses, paused)| [pauses, paused.0])
    }
}

impl Port {
    /// Whether its packets may be kept waiting although the transmitter is idle.
    pub fn is_shaped(&self) -> bool {
        self.pausing.is_some() || self.qdisc.is_shaped()
    }
    /// What the packets that wait at `now` have waited so far, as [`Qdisc::waited`] says.
    pub fn waited(&self, now: Time) -> u64 {
        let mut orders = self.pausing.as_ref().map_or_else(Queue::default, |pausing| pausing.orders.clone());
        let orders = std::iter::from_fn(|| orders.pop().copied());
        let waited = |order: Packet| u64::from(order.wire_len) * ((now - order.arrival).0 >> 10);
        self.qdisc.waited(now) + orders.map(waited).sum::<u64>()
    }
    /// What waits: in the discipline, and orders.
    pub fn backlog(&self) -> Backlog {
        let mut all = self.qdisc.backlog();
        if let Some(pausing) = &self.pausing {
            all.add_all(pausing.orders.backlog());
        }
        all
    }
    /// Takes out a packet that will not be served, as [`Qdisc::drain`] does.
    pub fn drain(&mut self, now: Time) -> Option<Packet> {
        let order = self.pausing.as_mut().and_then(|pausing| pausing.orders.pop().copied());
        order.or_else(|| self.qdisc.drain(now))
    }
    /// An order waits until the transmitter is idle.
    pub fn push_order(&mut self, order: &Packet) {
        debug_assert_eq!(order.kind, Kind::PAUSE);
        let pausing = self.pausing.as_mut().expect("a port that sends orders");
        pausing.orders.push(order);
        pausing.orders_out += 1;
    }
    /// When nothing may start at `start`, with packets that wait: until when, as [`Qdisc::not_before`] says.
    pub fn held_before(&self, start: Time) -> Option<Hold> {
        let pausing = self.pausing.as_ref()?;
        if !pausing.orders.is_empty() {
            None
        } else if pausing.held != 0 && !self.qdisc.has_except(pausing.held) {
            Some(Hold { until: Time::MAX, wire_len: 0 })
        } else {
            self.qdisc.not_before(start)
        }
    }
    /// Takes out what is served next: an order, or a packet that is not held back.
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
