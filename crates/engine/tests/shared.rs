//! Ports that share a buffer, in the engine and in the reference engine: two ports hold at most
//! four waiting packets together, so that the packets that wait at one port decide which packets
//! the other admits.

mod packet;
mod reference;

use base::{Dur, Hold, LinkId, Rate, Rng, Time};
use engine::{Driver, Engine, Far, LinkSpec, Links, Pause, Sent, World};
use packet::{Order, Packet, lists};
use reference::Reference;

const ROOM: usize = 4;

#[derive(Default)]
struct Bench {
    /// (time, port, bytes).
    sends: Vec<(Time, u32, u32)>,
    sent: u32,
    waiting: [Vec<Packet>; 2],
    served: Option<Packet>,
    /// Whether the second port is shaped; then every packet enters it.
    shaped: bool,
    seen: Seen,
}

/// The observable results.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    /// (number, time).
    delivered: Vec<(u32, Time)>,
    dropped: Vec<u32>,
    /// For each port: most bytes that waited, integral of waiting bytes.
    counts: Vec<[u64; 2]>,
}

impl World for Bench {
    type Packet = Packet;
    fn deliver(&mut self, links: &mut impl Links<Packet>, _link: LinkId, _far: Far, packet: &mut Packet) {
        self.seen.delivered.push((packet.number, links.now()));
    }
    fn passes(&mut self, link: LinkId, _packet: &mut Packet, _now: Time) -> bool {
        !self.shaped || link == LinkId(0)
    }
    fn admits(&mut self, _link: LinkId, packet: &mut Packet, _now: Time) -> bool {
        let admits = self.waiting.iter().map(Vec::len).sum::<usize>() < ROOM;
        if !admits {
            self.seen.dropped.push(packet.number);
        }
        admits
    }
    fn enqueue(&mut self, link: LinkId, packet: &mut Packet, _now: Time) -> (u32, u64) {
        let queue = &mut self.waiting[link.index()];
        queue.push(*packet);
        assert!(queue.len() <= ROOM);
        (queue.len() as u32, queue.iter().map(|packet| u64::from(packet.len)).sum())
    }
    /// At the second port, which is shaped, a packet may start 2 us after its arrival.
    fn not_before(&self, link: LinkId, start: Time) -> Option<Hold> {
        let Packet { arrival, len: wire_len, .. } = self.waiting[link.index()][0];
        let until = arrival + Dur::from_us(2);
        (until > start).then_some(Hold { until, wire_len })
    }
    fn dequeue(&mut self, link: LinkId, _start: Time) -> &Packet {
        self.served.insert(self.waiting[link.index()].remove(0))
    }
    /// Now and then a window is refused, so that the tree handles some events.
    fn open_until(&mut self, now: Time) -> Time {
        if self.sends.len().is_multiple_of(3) { now } else { Time::MAX }
    }
    fn wake(&mut self, links: &mut impl Links<Packet>, host: u32) {
        let now = links.now();
        while self.sends.first().is_some_and(|(at, ..)| *at == now) {
            let (arrival, port, len) = self.sends.remove(0);
            let mut packet = Packet { number: self.sent, len, arrival };
            self.sent += 1;
            assert!(matches!(links.send(self, LinkId(port), &mut packet), Sent::Starts(_) | Sent::Waits));
        }
        links.set_wake(host, self.sends.first().map_or(Time::MAX, |(at, ..)| *at));
    }
}

/// 1000 bytes take 1 us at 8 Gb/s. Times are in nanoseconds.
fn run_on<D: Driver<Packet>>(sends: &[(u64, u32, u32)], delay: Dur, shaped: bool, order: Order) -> Seen {
    let link = |shaped| LinkSpec { rate: Rate::from_gbps(8), delay, fifo: None, watched: true, shaped, shared: Some(7) };
    let mut driver = D::new(&[(link(false), Far::Host(0)), (link(shaped), Far::Host(0))], 1);
    order.set(&mut driver, 2);
    let sends = sends.iter().map(|(ns, port, len)| (Time(ns * 1000), *port, *len)).collect();
    let mut world = Bench { sends, shaped, ..Bench::default() };
    driver.set_wake(0, world.sends[0].0);
    assert_eq!(driver.run(&mut world, Time::MAX, u64::MAX), Pause::End);
    let stats = [0, 1].map(|link| driver.stats(LinkId(link)));
    world.seen.counts = stats.iter().map(|stats| [stats.max_queue_bytes, stats.queue_area]).collect();
    world.seen
}

fn run(sends: &[(u64, u32, u32)], delay: Dur, shaped: bool) -> Seen {
    let slow = run_on::<Reference<Packet>>(sends, delay, shaped, Order::Time);
    for order in [Order::Time, Order::Windows] {
        assert_eq!(run_on::<Engine<Packet>>(sends, delay, shaped, order), slow, "{order:?} {sends:?}");
    }
    slow
}

#[test]
fn what_has_left_one_port_makes_room_at_the_other() {
    // Five packets at port 0: one is sent, four wait. The second one leaves the queue at 1 us,
    // whether the port is touched or not.
    let mut sends = vec![(0, 0, 1000); 5];
    sends.extend([(0, 1, 1000), (500, 1, 1000), (900, 1, 1000), (1000, 1, 1000), (1000, 1, 1000)]);
    // At port 1 packet 5 finds it idle and passes; 6 and 7 find no room; 8 finds it idle; 9 takes
    // the place that is free.
    assert_eq!(run(&sends, Dur::from_us(100), false).dropped, [6, 7]);
}

#[test]
fn random_lists_agree() {
    let mut dropped = 0;
    for n in 0..lists(400) {
        let mut rng = Rng::stream(n, "shared", &[]);
        let (mut at, mut sends) = (0, Vec::new());
        for _ in 0..80 {
            at += [0, 0, 250, 500, 1000, 2500][rng.below(6) as usize];
            sends.push((at, rng.below(2) as u32, [40, 500, 1000][rng.below(3) as usize]));
        }
        let seen = run(&sends, Dur::from_ns([1, 700, 20_000][rng.below(3) as usize]), n % 2 == 0);
        assert_eq!(seen.delivered.len() + seen.dropped.len(), sends.len());
        dropped += seen.dropped.len();
    }
    assert!(dropped as u64 > lists(1000), "the room fills up: {dropped} packets are dropped");
}
