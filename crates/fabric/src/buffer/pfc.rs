//! Priority flow control: a switch has the neighbour pause before a port of its own overflows, so that nothing of a lossless class is dropped.
//!
//! Source: IEEE 802.1Qbb (clauses 35 and 36 of IEEE 802.1Q-2018) for the orders; Zhu et al., "Congestion Control for Large-Scale RDMA
//! Deployments", SIGCOMM 2015, section 4, for dynamic thresholds and headroom; `switch-mmu.cc` of HPCC's simulator
//! (alibaba-edu/High-Precision-Congestion-Control) for what counts where.
//!
//! Model: an order stands until the next one; the time that a real order carries, and its renewal, are left out. So orders are not among the packets
//! that a cable with `loss` loses at random: one that is lost for good would hold a port for ever. An order goes before
//! all that waits at its port and waits for the packet in transmission. Bytes count from the arrival of a packet to the start of its
//! transmission, as everywhere.
//!
//! | parameter | default | from |
//! |---|---|---|
//! | `total` | 12 MB | Zhu et al. section 4: the Trident II switch |
//! | `lossless` | 1 | the disciplines without classes have class 0 alone |
//! | `xoff` | dynamic | Zhu et al. section 4 |
//! | `alpha` | 1/8 | HPCC's simulator: a shift of 3 |
//! | `resume` | 3 KB | HPCC's simulator: `resume_offset` |
//! | `headroom` | what can still come after an order | Zhu et al. section 4; IEEE 802.1Qbb annex O |
//! | `on_deadlock` | `stop` | flowloom |
//!
//! Assumed:
//! - What a switch has made itself, and classes from `lossless` on, wait in the shared part and are dropped when that is full.
//! - `headroom = "auto"` holds, for each port and lossless class: the packet that passes the threshold, one that keeps the order waiting, the
//!   order, what the cable holds there and back, and the packet that the neighbour has just begun.
//! - `xoff = "auto"` is `alpha` times what is free of the shared part.

use super::{Buffer, Env, ORDER_BYTES, Pause, Place};
use crate::net::Link;
use crate::queue::Backlog;
use base::params::{Auto, Problem};
use base::registry::{Counter, Meta};
use base::{Bytes, Fraction};
use proto::Packet;
use std::collections::VecDeque;

macro_rules! by_class {
    ($($class:literal)*) => {
        [
            Counter { name: "pauses", unit: "", about: "times that the far end had a class of the port pause" },
            Counter { name: "paused_ps", unit: "ps", about: "time for which classes of the port were held back, summed over classes" },
            $(
                Counter { name: concat!("pauses_", $class), unit: "", about: concat!("pauses of class ", $class, " alone") },
                Counter { name: concat!("paused_", $class, "_ps"), unit: "ps", about: concat!("time for which class ", $class, " was held back") },
            )*
        ]
    };
}

/// Of all classes together and, where several are lossless, of each.
const COUNTERS: [Counter; 2 + 2 * CLASSES] = by_class!(0 1 2 3 4 5 6 7);

/// What `list` and `check` know of it.
pub const META: Meta = Meta {
    summary: "neighbours pause before a port overflows, class by class (lossless Ethernet)",
    source: "IEEE 802.1Qbb; Zhu et al., SIGCOMM 2015, section 4",
    counters: &COUNTERS,
    // A port that drops is no part of a lossless network.
    implies: &[("qdisc.limit", "unlimited")],
    ..Meta::PLAIN
};

base::choice! {
    /// What a run does when it finds switches that wait for each other for ever.
    pub enum OnDeadlock {
        /// It ends, and says which ports wait for each other.
        Stop = "stop",
        /// It says so and goes on: senders may give up, links fail.
        GoOn = "go_on",
    }
}

/// Most classes that orders can name.
const CLASSES: usize = 8;

base::params! {
    /// Parameters of priority flow control.
    pub struct Params {
        /// The switch's buffer: what is shared, and the headroom of all ports.
        total: Bytes = "12MB", "Zhu et al. section 4: the Trident II switch";
        /// Classes below this are lossless.
        lossless: u32 = "1" in 1..=8, "disciplines without classes have class 0 alone";
        /// A neighbour pauses when more than this of one class has come from it and waits.
        xoff: Auto<Bytes> = "auto", "Zhu et al. section 4: `alpha` times what is free";
        /// With `xoff = "auto"`: how much of what is free one port and class may hold.
        alpha: Fraction = "0.125", "HPCC's simulator: a shift of 3";
        /// It goes on when so much less than the threshold waits, or nothing.
        resume: Bytes = "3KB", "HPCC's simulator";
        /// Room for what comes after the order, for each port and lossless class.
        headroom: Auto<Bytes> = "auto", "IEEE 802.1Qbb annex O: what can be on its way";
        /// What happens when ports wait for each other in a circle, so that none ever sends again.
        on_deadlock: OnDeadlock = "stop", "flowloom: nothing else happens then";
    }
}

/// Problems that show only against the network.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let reserved = Pfc::new(params, env).reserved();
    if reserved + u64::from(env.mtu_bytes) > params.total.0 {
        let message = format!(
            "`{}` is less than the headroom of {} ports and {} lossless classes, {}",
            params.total,
            env.links.len(),
            params.lossless,
            Bytes(reserved)
        );
        problems.push(Problem { key: "total", message, hint: "write a larger `total`, or fewer `lossless` classes".to_owned() });
    }
    if env.links.len() > usize::from(u8::MAX) {
        let message = format!("a switch has {} ports", env.links.len());
        problems.push(Problem { key: "kind", message, hint: "ports are paused at switches of at most 255 ports".to_owned() });
    }
    problems
}

/// What can still come over a cable after its port has decided to have the neighbour pause.
fn headroom(link: &Link, mtu: u64) -> u64 {
    let rtt = link.delay + link.delay;
    link.rate.bytes_in(rtt) + 1 + 3 * mtu + u64::from(ORDER_BYTES)
}

/// What has come from one neighbour in one class and waits.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    shared: u64,
    headroom: u64,
    paused: bool,
}

/// The buffer of one switch.
#[derive(Debug)]
pub struct Pfc {
    /// What ports share: the total without headroom.
    shared: u64,
    /// What waits of it.
    used: u64,
    lossless: usize,
    xoff: Option<u64>,
    alpha: Fraction,
    resume: u64,
    /// By port.
    headroom: Vec<u64>,
    /// By port and class.
    held: Vec<Held>,
    /// What waits of each lossless class, by the port it came in on, the port it waits at, and class.
    waiting: Vec<u64>,
    ports: usize,
    ends_at_deadlock: bool,
    /// Neighbours that pause, by port and class.
    paused: Vec<(u8, u8)>,
    orders: VecDeque<Pause>,
    /// Headroom is as large as rate and length of each cable ask for.
    promises: bool,
    /// Packets of lossless classes that found none.
    refused: u64,
}

impl Pfc {
    /// Of one switch.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let room = |link: &Link| match params.headroom {
            Auto::Set(bytes) => bytes.0,
            Auto::Auto => headroom(link, env.mtu_bytes.into()),
        };
        let mut pfc = Pfc {
            shared: 0,
            used: 0,
            lossless: params.lossless as usize,
            xoff: match params.xoff {
                Auto::Set(bytes) => Some(bytes.0),
                Auto::Auto => None,
            },
            alpha: params.alpha,
            resume: params.resume.0,
            headroom: env.links.iter().map(room).collect(),
            held: vec![Held::default(); env.links.len() * CLASSES],
            waiting: vec![0; env.links.len() * env.links.len() * params.lossless as usize],
            ports: env.links.len(),
            ends_at_deadlock: params.on_deadlock == OnDeadlock::Stop,
            paused: Vec::new(),
            orders: VecDeque::new(),
            promises: params.headroom == Auto::Auto,
            refused: 0,
        };
        pfc.shared = params.total.0.saturating_sub(pfc.reserved());
        pfc
    }
    /// How many of the counters in META it has.
    pub fn counters(params: &Params) -> usize {
        2 + if params.lossless > 1 { 2 * params.lossless as usize } else { 0 }
    }
    /// The headroom of all ports.
    fn reserved(&self) -> u64 {
        self.headroom.iter().sum::<u64>() * self.lossless as u64
    }
    /// What may wait in the shared part of one port and class before its neighbour pauses, while `used` of that part is taken.
    fn threshold(&self, used: u64) -> u64 {
        let free = self.shared.saturating_sub(used);
        self.xoff.unwrap_or_else(|| (u128::from(self.alpha.0) * u128::from(free) / u128::from(Fraction::ONE.0)) as u64)
    }
    /// The place of a port and class, of packets that may not be lost.
    fn slot(&self, place: Place) -> Option<(usize, u8)> {
        let port = place.from.filter(|_| usize::from(place.class) < self.lossless)?;
        Some((usize::from(port) * CLASSES + usize::from(place.class), port))
    }
    /// Where the bytes of a lossless class are counted that came in on one port and wait at another.
    fn between(&self, from: u8, to: u8, class: u8) -> usize {
        (usize::from(from) * self.ports + usize::from(to)) * self.lossless + usize::from(class)
    }
    /// Whether the neighbour from which this has come pauses on.
    fn stays(&self, held: Held, threshold: u64) -> bool {
        held.headroom > 0 || held.shared > 0 && held.shared + self.resume > threshold
    }
    /// What is left of what came in on one port in a class when all has left but what is stuck.
    fn rest(&self, (port, class): (u8, u8), stuck: &dyn Fn(u8, u8) -> bool) -> Held {
        let held = self.held[usize::from(port) * CLASSES + usize::from(class)];
        let rest: u64 = (0..self.ports as u8).filter(|to| stuck(*to, class)).map(|to| self.waiting((port, class), to)).sum();
        // Headroom is free again first.
        let headroom = held.headroom.saturating_sub(held.headroom + held.shared - rest);
        Held { headroom, shared: rest - headroom, ..held }
    }
    /// Has those neighbours go on from whom little enough waits.
    fn settle(&mut self) {
        let threshold = self.threshold(self.used);
        let mut paused = std::mem::take(&mut self.paused);
        paused.retain(|&(port, class)| {
            let slot = usize::from(port) * CLASSES + usize::from(class);
            let stays = self.stays(self.held[slot], threshold);
            if !stays {
                self.held[slot].paused = false;
                self.orders.push_back(Pause { port, class, on: false });
            }
            stays
        });
        self.paused = paused;
    }
}

impl Buffer for Pfc {
    fn admits(&mut self, packet: &Packet, place: Place, _port: Backlog, _all: Backlog) -> bool {
        let len = u64::from(packet.wire_len);
        let fits = self.used + len <= self.shared;
        let Some((slot, port)) = self.slot(place) else {
            self.used += if fits { len } else { 0 };
            return fits;
        };
        let (threshold, room) = (self.threshold(self.used), self.headroom[usize::from(port)]);
        let between = self.between(port, place.to, place.class);
        let held = &mut self.held[slot];
        // Headroom is for what comes after the order, and the packet that makes it necessary.
        if held.headroom == 0 && fits && held.shared + len <= threshold {
            held.shared += len;
            self.used += len;
            self.waiting[between] += len;
            return true;
        }
        if held.headroom + len > room {
            self.refused += 1;
            return false;
        }
        held.headroom += len;
        self.waiting[between] += len;
        if !held.paused {
            held.paused = true;
            self.paused.push((port, place.class));
            self.orders.push_back(Pause { port, class: place.class, on: true });
        }
        true
    }
    fn on_leave(&mut self, packet: &Packet, place: Place) {
        let len = u64::from(packet.wire_len);
        match self.slot(place) {
            None => self.used -= len,
            Some((slot, port)) => {
                let between = self.between(port, place.to, place.class);
                self.waiting[between] -= len;
                // Headroom is free again first.
                let held = &mut self.held[slot];
                let room = held.headroom.min(len);
                held.headroom -= room;
                held.shared -= len - room;
                self.used -= len - room;
            }
        }
        if !self.paused.is_empty() {
            self.settle();
        }
    }
    fn on_link_down(&mut self, port: u8) {
        self.paused.retain(|(paused, _)| *paused != port);
        self.orders.retain(|order| order.port != port);
        let from = usize::from(port) * CLASSES;
        self.held[from..from + CLASSES].iter_mut().for_each(|held| held.paused = false);
    }
    fn pauses(&self) -> bool {
        true
    }
    fn next_pause(&mut self) -> Option<Pause> {
        self.orders.pop_front()
    }
    fn broken_promises(&self) -> u64 {
        if self.promises { self.refused } else { 0 }
    }
    fn paused(&self) -> &[(u8, u8)] {
        &self.paused
    }
    fn stay_paused(&self, stuck: &dyn Fn(u8, u8) -> bool) -> Vec<(u8, u8)> {
        // The more is free, the more may wait: what is stuck of all neighbours stays taken.
        let all = (0..self.ports as u8).flat_map(|port| (0..self.lossless as u8).map(move |class| (port, class)));
        let threshold = self.threshold(all.map(|from| self.rest(from, stuck).shared).sum());
        self.paused.iter().copied().filter(|from| self.stays(self.rest(*from, stuck), threshold)).collect()
    }
    fn waiting(&self, (port, class): (u8, u8), to: u8) -> u64 {
        self.waiting[self.between(port, to, class)]
    }
    fn ends_at_deadlock(&self) -> bool {
        self.ends_at_deadlock
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::params::Params as _;
    use base::{Dur, FlowId, LinkId, NodeId, PortId, Rate};

    fn links(n: usize) -> Vec<Link> {
        let link = |port| Link {
            from: NodeId(0),
            to: NodeId(1),
            port: PortId(port),
            reverse: LinkId(0),
            rate: Rate::from_gbps(10),
            delay: Dur::from_us(1),
            loss: Fraction::default(),
        };
        (0..n as u32).map(link).collect()
    }

    fn pfc(n: usize, params: Params) -> Pfc {
        Pfc::new(&params, &Env { mtu_bytes: 1500, links: &links(n) })
    }

    fn place(from: u8, class: u8) -> Place {
        Place { from: Some(from), to: 3, class }
    }

    fn packet() -> Packet {
        Packet::data(FlowId(0), 0, 1460, 40)
    }

    fn admits(pfc: &mut Pfc, place: Place) -> bool {
        pfc.admits(&packet(), place, Backlog::default(), Backlog::default())
    }

    fn orders(pfc: &mut Pfc) -> Vec<(u8, u8, bool)> {
        std::iter::from_fn(|| pfc.next_pause()).map(|order| (order.port, order.class, order.on)).collect()
    }

    fn fixed(xoff: u64) -> Params {
        Params { xoff: Auto::Set(Bytes(xoff)), resume: Bytes(1500), ..Params::defaults() }
    }

    /// There and back 2 us, 2500 bytes; three full packets and the order. A byte for what rounds down.
    #[test]
    fn headroom_follows_from_rate_and_length() {
        assert_eq!(pfc(4, Params::defaults()).headroom, [2500 + 1 + 4500 + 64; 4]);
        let pfc = pfc(4, Params { headroom: Auto::Set(Bytes(20_000)), lossless: 2, ..Params::defaults() });
        assert_eq!((pfc.reserved(), pfc.shared), (160_000, 12_000_000 - 160_000));
    }

    #[test]
    fn a_neighbour_pauses_above_the_threshold_and_goes_on_below() {
        let mut pfc = pfc(4, fixed(3000));
        assert!((0..2).all(|_| admits(&mut pfc, place(1, 0))));
        assert_eq!(orders(&mut pfc), []);
        // Another neighbour has a threshold of its own.
        assert!(admits(&mut pfc, place(2, 0)));
        assert!(admits(&mut pfc, place(1, 0)) && admits(&mut pfc, place(1, 0)));
        assert_eq!(orders(&mut pfc), [(1, 0, true)], "once");
        // Two packets in the headroom leave first, then one of those below the threshold: 1500 and 1500 are no more than 3000.
        for left in [false, false] {
            pfc.on_leave(&packet(), place(1, 0));
            assert_eq!((orders(&mut pfc).is_empty(), !pfc.paused().is_empty()), (!left, true));
        }
        pfc.on_leave(&packet(), place(1, 0));
        assert_eq!((orders(&mut pfc), !pfc.paused().is_empty()), (vec![(1, 0, false)], false));
    }

    /// 160 KB are shared: alpha times what is free.
    #[test]
    fn a_threshold_follows_what_is_free() {
        let params = Params { total: Bytes(160_000 + 4 * 7065), alpha: Fraction(Fraction::ONE.0 / 8), ..Params::defaults() };
        let mut pfc = pfc(4, params);
        assert_eq!(pfc.threshold(pfc.used), 20_000);
        let taken = (0..).take_while(|_| admits(&mut pfc, place(0, 0)) && orders(&mut pfc).is_empty()).count();
        // q = (160 000 - q) / 8 at 17 778 bytes.
        assert_eq!((taken, pfc.used), (11, 16_500));
    }

    #[test]
    fn what_comes_behind_the_headroom_is_lost() {
        let mut pfc = pfc(4, Params { headroom: Auto::Set(Bytes(3000)), ..fixed(1500) });
        assert_eq!([(); 5].map(|()| admits(&mut pfc, place(1, 0))), [true, true, true, false, false]);
        assert_eq!(orders(&mut pfc), [(1, 0, true)]);
    }

    #[test]
    fn other_classes_and_packets_of_the_switch_are_dropped_when_the_shared_part_is_full() {
        let mut pfc = pfc(4, Params { total: Bytes(4 * 7065 + 4500), ..fixed(1500) });
        let own = Place { from: None, ..place(0, 0) };
        assert_eq!(
            [place(1, 1), own, place(1, 1), place(1, 1), own].map(|place| admits(&mut pfc, place)),
            [true, true, true, false, false]
        );
        assert_eq!((pfc.used, orders(&mut pfc)), (4500, vec![]));
        // A lossless class has its headroom still.
        assert!(admits(&mut pfc, place(1, 0)));
        assert_eq!(orders(&mut pfc), [(1, 0, true)]);
        pfc.on_leave(&packet(), own);
        assert_eq!(pfc.used, 3000);
    }

    /// Two neighbours pause: of the first, one packet waits at port 2 and three at port 3; of the second, two at port 3.
    #[test]
    fn who_waits_for_stuck_ports_stays_paused() {
        let mut pfc = pfc(4, fixed(1500));
        let to = |from, to| Place { to, ..place(from, 0) };
        assert!([to(0, 2), to(0, 3), to(0, 3), to(0, 3), to(1, 3), to(1, 3)].into_iter().all(|place| admits(&mut pfc, place)));
        assert_eq!(pfc.paused(), [(0, 0), (1, 0)]);
        assert_eq!([2, 3].map(|port| pfc.waiting((0, 0), port)), [1500, 4500]);
        // Without port 3 a packet of the first is left, below the threshold by what lets it go on. The packets at port 3 hold both.
        assert_eq!(pfc.stay_paused(&|port, _| port == 2), [(0, 0)]);
        let eased = Pfc { resume: 0, ..pfc };
        assert_eq!(eased.stay_paused(&|port, _| port == 2), []);
        assert_eq!(eased.stay_paused(&|port, class| (port, class) == (3, 0)), [(0, 0), (1, 0)]);
        assert_eq!(eased.stay_paused(&|_, class| class == 1), []);
    }

    /// What others keep waiting lowers the threshold, and with it what may wait before a neighbour goes on.
    #[test]
    fn a_dynamic_threshold_counts_what_is_stuck_of_all_neighbours() {
        let params = Params {
            total: Bytes(30_000 + 4 * 7065),
            alpha: Fraction(Fraction::ONE.0 / 4),
            resume: Bytes(0),
            ..Params::defaults()
        };
        let stay = |of_first: u8| {
            let mut pfc = pfc(4, params.clone());
            let taken = [(0, of_first); 4].into_iter().chain([(1, 2), (1, 3), (1, 3), (1, 3), (2, 3), (2, 3), (2, 3)]);
            assert!(taken.into_iter().all(|(from, to)| admits(&mut pfc, Place { to, ..place(from, 0) })));
            // The last packet of the second neighbour and of the third found less free than 6000 and 4500 bytes ask for.
            assert_eq!((pfc.paused(), pfc.used), (&[(1, 0), (2, 0)][..], 13_500));
            pfc.stay_paused(&|port, _| port == 3)
        };
        // Three packets of the second stay at port 3. All that stays there leaves less than they need, or, without the first neighbour's, more.
        assert_eq!(stay(3), [(1, 0), (2, 0)]);
        assert_eq!(stay(2), [(2, 0)]);
    }

    #[test]
    fn classes_are_counted_apart_where_several_are_lossless() {
        let counters = |lossless| Pfc::counters(&Params { lossless, ..Params::defaults() });
        assert_eq!([1, 2, 8].map(counters), [2, 6, COUNTERS.len()]);
    }

    #[test]
    fn a_dead_link_is_forgotten() {
        let mut pfc = pfc(4, fixed(0));
        assert!(admits(&mut pfc, place(1, 0)));
        pfc.on_link_down(1);
        assert_eq!((orders(&mut pfc), !pfc.paused().is_empty()), (vec![], false));
        // What waits still counts, and the next packet has the neighbour pause again.
        assert!(admits(&mut pfc, place(1, 0)));
        assert_eq!((orders(&mut pfc), !pfc.paused().is_empty()), (vec![(1, 0, true)], true));
    }

    #[test]
    fn a_total_below_the_headroom_is_a_problem() {
        let links = links(4);
        let of =
            |total| check(&Params { total: Bytes(total), ..Params::defaults() }, &Env { mtu_bytes: 1500, links: &links }).len();
        assert_eq!([4 * 7065 + 1499, 4 * 7065 + 1500].map(of), [1, 0]);
    }
}
