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

/// What `list` and `check` know of it.
pub const META: Meta = Meta {
    summary: "neighbours pause before a port overflows, class by class (lossless Ethernet)",
    source: "IEEE 802.1Qbb; Zhu et al., SIGCOMM 2015, section 4",
    counters: &[
        Counter { name: "pauses", unit: "", about: "times that the far end had a class of the port pause" },
        Counter { name: "paused_ps", unit: "ps", about: "time for which classes of the port were held back, summed over classes" },
    ],
    // A port that drops is no part of a lossless network.
    beside: &[("qdisc.limit", "unlimited")],
    ..Meta::PLAIN
};

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
            paused: Vec::new(),
            orders: VecDeque::new(),
            promises: params.headroom == Auto::Auto,
            refused: 0,
        };
        pfc.shared = params.total.0.saturating_sub(pfc.reserved());
        pfc
    }
    /// The headroom of all ports.
    fn reserved(&self) -> u64 {
        self.headroom.iter().sum::<u64>() * self.lossless as u64
    }
    /// What may wait in the shared part of one port and class before its neighbour pauses.
    fn threshold(&self) -> u64 {
        let free = self.shared.saturating_sub(self.used);
        self.xoff.unwrap_or_else(|| (u128::from(self.alpha.0) * u128::from(free) / u128::from(Fraction::ONE.0)) as u64)
    }
    /// The place of a port and class, of packets that may not be lost.
    fn slot(&self, place: Place) -> Option<(usize, u8)> {
        let port = place.from.filter(|_| usize::from(place.class) < self.lossless)?;
        Some((usize::from(port) * CLASSES + usize::from(place.class), port))
    }
    /// Has those neighbours go on from whom little enough waits.
    fn settle(&mut self) {
        let threshold = self.threshold();
        let mut paused = std::mem::take(&mut self.paused);
        paused.retain(|&(port, class)| {
            let held = &mut self.held[usize::from(port) * CLASSES + usize::from(class)];
            let stays = held.headroom > 0 || held.shared > 0 && held.shared + self.resume > threshold;
            if !stays {
                held.paused = false;
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
        let (threshold, room) = (self.threshold(), self.headroom[usize::from(port)]);
        let held = &mut self.held[slot];
        // Headroom is for what comes after the order, and the packet that makes it necessary.
        if held.headroom == 0 && fits && held.shared + len <= threshold {
            held.shared += len;
            self.used += len;
            return true;
        }
        if held.headroom + len > room {
            self.refused += 1;
            return false;
        }
        held.headroom += len;
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
            Some((slot, _)) => {
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
    fn has_paused(&self) -> bool {
        !self.paused.is_empty()
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
            assert_eq!((orders(&mut pfc).is_empty(), pfc.has_paused()), (!left, true));
        }
        pfc.on_leave(&packet(), place(1, 0));
        assert_eq!((orders(&mut pfc), pfc.has_paused()), (vec![(1, 0, false)], false));
    }

    /// 160 KB are shared: alpha times what is free.
    #[test]
    fn a_threshold_follows_what_is_free() {
        let params = Params { total: Bytes(160_000 + 4 * 7065), alpha: Fraction(Fraction::ONE.0 / 8), ..Params::defaults() };
        let mut pfc = pfc(4, params);
        assert_eq!(pfc.threshold(), 20_000);
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

    #[test]
    fn a_dead_link_is_forgotten() {
        let mut pfc = pfc(4, fixed(0));
        assert!(admits(&mut pfc, place(1, 0)));
        pfc.on_link_down(1);
        assert_eq!((orders(&mut pfc), pfc.has_paused()), (vec![], false));
        // What waits still counts, and the next packet has the neighbour pause again.
        assert!(admits(&mut pfc, place(1, 0)));
        assert_eq!((orders(&mut pfc), pfc.has_paused()), (vec![(1, 0, true)], true));
    }

    #[test]
    fn a_total_below_the_headroom_is_a_problem() {
        let links = links(4);
        let of =
            |total| check(&Params { total: Bytes(total), ..Params::defaults() }, &Env { mtu_bytes: 1500, links: &links }).len();
        assert_eq!([4 * 7065 + 1499, 4 * 7065 + 1500].map(of), [1, 0]);
    }
}
