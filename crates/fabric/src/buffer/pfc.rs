//! Priority flow control: a switch pauses a neighbour before one of its own ports overflows, so
//! that no packet of a lossless class is dropped.
//!
//! Source: IEEE 802.1Qbb (clauses 35 and 36 of IEEE 802.1Q-2018) for the orders; Zhu et al., "Congestion Control for Large-Scale RDMA
//! Deployments", SIGCOMM 2015, section 4, for dynamic thresholds and headroom; `switch-mmu.cc` of HPCC's simulator
//! (alibaba-edu/High-Precision-Congestion-Control) for what counts where.
//!
//! Model: an order is valid until the next one; the pause time in real orders and their renewal are
//! left out. Therefore `loss` of a cable never drops orders: a port whose order to resume was lost
//! would stay paused forever. An order is sent before all packets that wait at its port, but waits
//! for the packet in transmission. Bytes count from the arrival of a packet to the start of its
//! transmission, as in all buffers.
//!
//! | parameter | default | from |
//! |---|---|---|
//! | `total` | 12 MB | Zhu et al. section 4: the Trident II switch |
//! | `lossless` | 1 | disciplines without classes have only class 0 |
//! | `xoff` | dynamic | Zhu et al. section 4 |
//! | `alpha` | 1/8 | HPCC's simulator: a shift of 3 |
//! | `resume` | 3 KB | HPCC's simulator: `resume_offset` |
//! | `headroom` | what can still arrive after an order | Zhu et al. section 4; IEEE 802.1Qbb annex O |
//! | `on_deadlock` | `stop` | flowloom |
//!
//! Assumed:
//! - Packets that a switch has created, and packets of classes from `lossless` on, wait in the
//!   shared part and are dropped when it is full.
//! - `headroom = "auto"` has room, per port and lossless class, for: the packet that exceeds the
//!   threshold, a packet in transmission that delays the order, the order itself, the bytes on the
//!   cable in both directions, and the packet whose transmission the neighbour has just started.
//! - `xoff = "auto"` is `alpha` times the free space of the shared part.

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
            Counter { name: "pauses", unit: "", about: "number of times that the far end paused a class of the port" },
            Counter { name: "paused_ps", unit: "ps", about: "time for which classes of the port were paused, summed over classes" },
            $(
                Counter { name: concat!("pauses_", $class), unit: "", about: concat!("number of times that the far end paused class ", $class) },
                Counter { name: concat!("paused_", $class, "_ps"), unit: "ps", about: concat!("time for which class ", $class, " was paused") },
            )*
        ]
    };
}

/// Counters of all classes together and, if several classes are lossless, of each class.
const COUNTERS: [Counter; 2 + 2 * CLASSES] = by_class!(0 1 2 3 4 5 6 7);

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "pauses neighbours, by class, before a port overflows (lossless Ethernet)",
    source: "IEEE 802.1Qbb; Zhu et al., SIGCOMM 2015, section 4",
    counters: &COUNTERS,
    // A port whose queue has a limit would drop packets of lossless classes.
    implies: &[("qdisc.limit", "unlimited")],
    ..Meta::PLAIN
};

base::choice! {
    /// What a run does when it finds switches that wait for each other forever.
    pub enum OnDeadlock {
        /// The run ends and reports which ports wait for each other.
        Stop = "stop",
        /// The run reports the deadlock and continues: senders may give up, links may fail.
        GoOn = "go_on",
    }
}

/// Number of classes that orders can name.
const CLASSES: usize = 8;

base::params! {
    /// Parameters of priority flow control.
    pub struct Params {
        /// The switch's buffer: the shared part plus the headroom of all ports.
        total: Bytes = "12MB", "Zhu et al. section 4: the Trident II switch";
        /// Classes below this are lossless.
        lossless: u32 = "1" in 1..=8, "disciplines without classes have only class 0";
        /// Threshold: a neighbour is paused when more bytes than this arrived from it in one class
        /// and still wait.
        xoff: Auto<Bytes> = "auto", "Zhu et al. section 4: `alpha` times the free space";
        /// With `xoff = "auto"`: the threshold of one port and class as a fraction of the free
        /// space.
        alpha: Fraction = "0.125", "HPCC's simulator: a shift of 3";
        /// A neighbour is resumed when the waiting bytes are this much below the threshold, or
        /// zero.
        resume: Bytes = "3KB", "HPCC's simulator";
        /// Room for packets that arrive after the order to pause, per port and lossless class.
        headroom: Auto<Bytes> = "auto", "IEEE 802.1Qbb annex O: what can be in flight";
        /// What happens when ports wait for each other in a circle, so that none of them ever sends
        /// again.
        on_deadlock: OnDeadlock = "stop", "flowloom: the run could not continue otherwise";
    }
}

/// Most memory for the counters of a switch: 11 000 ports with one lossless class.
const MOST_COUNTERS_BYTES: u64 = 1_000_000_000;

/// Returns the problems of parameters that depend on the network.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let reserved = Pfc::new(params, env).reserved();
    if reserved + u64::from(env.mtu_bytes) > params.total.0 {
        let message = format!(
            "`{}` has no room for a packet beyond the headroom of {} ports and {} lossless classes, {}",
            params.total,
            env.links.len(),
            params.lossless,
            Bytes(reserved)
        );
        problems.push(Problem { key: "total", message, hint: "write a larger `total`, or fewer `lossless` classes".to_owned() });
    }
    let ports = env.links.len();
    let counters = 8 * (ports * ports) as u64 * u64::from(params.lossless);
    if counters > MOST_COUNTERS_BYTES {
        problems.push(Problem {
            key: "kind",
            message: format!("a switch has {ports} ports: to count what waits between each two of them takes {}", Bytes(counters)),
            hint: "use a topology whose switches have fewer ports, fewer `lossless` classes, or another buffer".to_owned(),
        });
    }
    let needed = env.links.iter().map(|link| headroom(link, env.mtu_bytes.into())).max().unwrap_or(0);
    if let Auto::Set(given) = params.headroom
        && given.0 < needed
    {
        let message = format!(
            "`{given}` is too little: {} can arrive on a cable after an order to pause, and would be dropped",
            Bytes(needed)
        );
        problems.push(Problem {
            key: "headroom",
            message,
            hint: "remove `headroom`, so that each cable gets what it needs".to_owned(),
        });
    }
    problems
}

/// Returns how many bytes can still arrive over a cable after its port has decided to pause the
/// neighbour.
fn headroom(link: &Link, mtu: u64) -> u64 {
    let rtt = link.delay + link.delay;
    link.rate.bytes_in(rtt) + 1 + 3 * mtu + u64::from(ORDER_BYTES)
}

/// Bytes that wait and arrived from one neighbour in one class.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    shared: u64,
    headroom: u64,
    paused: bool,
}

/// The buffer of one switch.
#[derive(Debug)]
pub struct Pfc {
    /// Size of the shared part: the total without headroom.
    shared: u64,
    /// Bytes in use in the shared part.
    used: u64,
    lossless: usize,
    xoff: Option<u64>,
    alpha: Fraction,
    resume: u64,
    /// Headroom of each lossless class, by port.
    headroom: Vec<u64>,
    /// Waiting bytes by port of arrival and class.
    held: Vec<Held>,
    /// Waiting bytes of lossless classes, by port of arrival, port of departure, and class.
    waiting: Vec<u64>,
    ports: usize,
    ends_at_deadlock: bool,
    /// Paused neighbours, by port and class.
    paused: Vec<(u16, u8)>,
    orders: VecDeque<Pause>,
    /// Packets of lossless classes for which there was no headroom.
    refused: u64,
}

impl Pfc {
    /// Returns the buffer of a switch.
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
            refused: 0,
        };
        pfc.shared = params.total.0.saturating_sub(pfc.reserved());
        pfc
    }
    /// Returns how many of the counters in META the buffer has.
    pub fn counters(params: &Params) -> usize {
        2 + if params.lossless > 1 { 2 * params.lossless as usize } else { 0 }
    }
    /// Returns the headroom of all ports and lossless classes.
    fn reserved(&self) -> u64 {
        self.headroom.iter().sum::<u64>() * self.lossless as u64
    }
    /// Returns how much of one port and class may wait in the shared part before the neighbour is
    /// paused, when `used` of that part is in use.
    fn threshold(&self, used: u64) -> u64 {
        let free = self.shared.saturating_sub(used);
        self.xoff.unwrap_or_else(|| (u128::from(self.alpha.0) * u128::from(free) / u128::from(Fraction::ONE.0)) as u64)
    }
    /// Returns the index in `held` and the port of arrival of a lossless packet; `None` for other
    /// packets.
    fn slot(&self, place: Place) -> Option<(usize, u16)> {
        let port = place.from.filter(|_| usize::from(place.class) < self.lossless)?;
        Some((usize::from(port) * CLASSES + usize::from(place.class), port))
    }
    /// Returns the index in `waiting` of the bytes that arrived at one port and wait at another, in
    /// a lossless class.
    fn between(&self, from: u16, to: u16, class: u8) -> usize {
        (usize::from(from) * self.ports + usize::from(to)) * self.lossless + usize::from(class)
    }
    /// Returns whether the neighbour that sent these bytes stays paused.
    fn stays(&self, held: Held, threshold: u64) -> bool {
        held.headroom > 0 || held.shared > 0 && held.shared + self.resume > threshold
    }
    /// Returns what is left of the bytes that arrived at a port in a class when all packets have
    /// left except those that are stuck.
    fn rest(&self, (port, class): (u16, u8), stuck: &dyn Fn(u16, u8) -> bool) -> Held {
        let held = self.held[usize::from(port) * CLASSES + usize::from(class)];
        let rest: u64 = (0..self.ports as u16).filter(|to| stuck(*to, class)).map(|to| self.waiting((port, class), to)).sum();
        // Headroom is freed first.
        let headroom = held.headroom.saturating_sub(held.headroom + held.shared - rest);
        Held { headroom, shared: rest - headroom, ..held }
    }
    /// Resumes the neighbours from which few enough bytes wait.
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
        // Headroom is used by the packet that exceeds the threshold and by the packets that arrive
        // after the order.
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
                // Headroom is freed first.
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
    fn on_link_down(&mut self, port: u16) {
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
        self.refused
    }
    fn paused(&self) -> &[(u16, u8)] {
        &self.paused
    }
    fn stay_paused(&self, stuck: &dyn Fn(u16, u8) -> bool) -> Vec<(u16, u8)> {
        // A neighbour resumes below a threshold that grows with the free space; stuck packets of
        // all neighbours keep their space.
        let all = (0..self.ports as u16).flat_map(|port| (0..self.lossless as u8).map(move |class| (port, class)));
        let threshold = self.threshold(all.map(|from| self.rest(from, stuck).shared).sum());
        self.paused.iter().copied().filter(|from| self.stays(self.rest(*from, stuck), threshold)).collect()
    }
    fn waiting(&self, (port, class): (u16, u8), to: u16) -> u64 {
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

    fn place(from: u16, class: u8) -> Place {
        Place { from: Some(from), to: 3, class }
    }

    fn packet() -> Packet {
        Packet::data(FlowId(0), 0, 1460, 40)
    }

    fn admits(pfc: &mut Pfc, place: Place) -> bool {
        pfc.admits(&packet(), place, Backlog::default(), Backlog::default())
    }

    fn orders(pfc: &mut Pfc) -> Vec<(u16, u8, bool)> {
        std::iter::from_fn(|| pfc.next_pause()).map(|order| (order.port, order.class, order.on)).collect()
    }

    fn fixed(xoff: u64) -> Params {
        Params { xoff: Auto::Set(Bytes(xoff)), resume: Bytes(1500), ..Params::defaults() }
    }

    /// 2 us both ways are 2500 bytes, plus three full packets and the order, plus one byte for
    /// rounding down.
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
        // Another neighbour has its own threshold.
        assert!(admits(&mut pfc, place(2, 0)));
        assert!(admits(&mut pfc, place(1, 0)) && admits(&mut pfc, place(1, 0)));
        assert_eq!(orders(&mut pfc), [(1, 0, true)], "once");
        // Two packets in the headroom leave first, then one of those below the threshold: 1500 and
        // 1500 are at most 3000.
        for left in [false, false] {
            pfc.on_leave(&packet(), place(1, 0));
            assert_eq!((orders(&mut pfc).is_empty(), !pfc.paused().is_empty()), (!left, true));
        }
        pfc.on_leave(&packet(), place(1, 0));
        assert_eq!((orders(&mut pfc), !pfc.paused().is_empty()), (vec![(1, 0, false)], false));
    }

    /// 160 KB are shared; the threshold is alpha times the free space.
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
        // A lossless class still has its headroom.
        assert!(admits(&mut pfc, place(1, 0)));
        assert_eq!(orders(&mut pfc), [(1, 0, true)]);
        pfc.on_leave(&packet(), own);
        assert_eq!(pfc.used, 3000);
    }

    /// Two neighbours are paused. Of the first, one packet waits at port 2 and three at port 3; of
    /// the second, two at port 3.
    #[test]
    fn neighbours_of_stuck_ports_stay_paused() {
        let mut pfc = pfc(4, fixed(1500));
        let to = |from, to| Place { to, ..place(from, 0) };
        assert!([to(0, 2), to(0, 3), to(0, 3), to(0, 3), to(1, 3), to(1, 3)].into_iter().all(|place| admits(&mut pfc, place)));
        assert_eq!(pfc.paused(), [(0, 0), (1, 0)]);
        assert_eq!([2, 3].map(|port| pfc.waiting((0, 0), port)), [1500, 4500]);
        // If only port 2 is stuck, one packet of the first neighbour remains. The neighbour stays
        // paused because of `resume`, and resumes without it. The packets at port 3 keep both paused.
        assert_eq!(pfc.stay_paused(&|port, _| port == 2), [(0, 0)]);
        let eased = Pfc { resume: 0, ..pfc };
        assert_eq!(eased.stay_paused(&|port, _| port == 2), []);
        assert_eq!(eased.stay_paused(&|port, class| (port, class) == (3, 0)), [(0, 0), (1, 0)]);
        assert_eq!(eased.stay_paused(&|_, class| class == 1), []);
    }

    /// Packets of other neighbours lower the threshold, and with it how much may wait before a
    /// neighbour is resumed.
    #[test]
    fn a_dynamic_threshold_counts_what_is_stuck_of_all_neighbours() {
        let params = Params {
            total: Bytes(30_000 + 4 * 7065),
            alpha: Fraction(Fraction::ONE.0 / 4),
            resume: Bytes(0),
            ..Params::defaults()
        };
        let stay = |of_first: u16| {
            let mut pfc = pfc(4, params.clone());
            let taken = [(0, of_first); 4].into_iter().chain([(1, 2), (1, 3), (1, 3), (1, 3), (2, 3), (2, 3), (2, 3)]);
            assert!(taken.into_iter().all(|(from, to)| admits(&mut pfc, Place { to, ..place(from, 0) })));
            // At the last packets of the second and third neighbour, the free space gave thresholds
            // below 6000 and 4500 bytes.
            assert_eq!((pfc.paused(), pfc.used), (&[(1, 0), (2, 0)][..], 13_500));
            pfc.stay_paused(&|port, _| port == 3)
        };
        // Three packets of the second neighbour stay at port 3. The free space that all packets at
        // port 3 leave is too small for it to resume, but large enough without those of the first
        // neighbour.
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
        // Waiting packets still count, and the next packet pauses the neighbour again.
        assert!(admits(&mut pfc, place(1, 0)));
        assert_eq!((orders(&mut pfc), !pfc.paused().is_empty()), (vec![(1, 0, true)], true));
    }

    /// A headroom of one byte less than can arrive after an order is refused, as are counters that take gigabytes.
    #[test]
    fn lossless_classes_have_the_headroom_that_the_longest_cable_needs() {
        let mut links = links(4);
        links[2].delay = Dur::from_us(10);
        // 20 us at 10 Gb/s are 25 000 bytes.
        let needed = 25_000 + 1 + 4500 + 64;
        let of = |headroom| {
            let params = Params { headroom: Auto::Set(Bytes(headroom)), ..Params::defaults() };
            check(&params, &Env { mtu_bytes: 1500, links: &links })
        };
        assert_eq!(of(needed), []);
        let problem = of(needed - 1);
        assert_eq!((problem.len(), problem[0].key), (1, "headroom"));
        assert!(problem[0].message.starts_with("`29564B` is too little: 29565B can arrive"), "{problem:?}");
        assert!(of(0).iter().any(|problem| problem.key == "headroom"));
        let links = super::tests::links(12_000);
        let params = Params { total: Bytes(1_000_000_000), ..Params::defaults() };
        let keys: Vec<_> = check(&params, &Env { mtu_bytes: 1500, links: &links }).iter().map(|problem| problem.key).collect();
        assert_eq!(keys, ["kind"]);
    }

    #[test]
    fn a_total_below_the_headroom_is_a_problem() {
        let links = links(4);
        let of =
            |total| check(&Params { total: Bytes(total), ..Params::defaults() }, &Env { mtu_bytes: 1500, links: &links }).len();
        assert_eq!([4 * 7065 + 1499, 4 * 7065 + 1500].map(of), [1, 0]);
    }
}
