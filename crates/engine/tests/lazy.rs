//! Ports with a discipline, in the engine and in the reference engine. The discipline makes every
//! decision visible: the newest packet goes first, and with more than three waiting packets the
//! oldest is dropped.

mod packet;
mod reference;

use base::{Dur, Hold, LinkId, Rate, Rng, Time};
use engine::{Driver, Engine, Far, LinkSpec, Links, Pause, Sent, World};
use packet::{Order, Packet, lists};
use reference::Reference;

const PORT: LinkId = LinkId(0);

/// An action at some time: a packet of this many bytes is sent, or the port is read as a global
/// action.
#[derive(Clone, Copy, Debug)]
enum Do {
    Send(u32),
    Look,
}

#[derive(Default)]
struct Bench {
    sends: Vec<(Time, u32)>,
    looks: Vec<Time>,
    sent: u32,
    waiting: Vec<Packet>,
    served: Option<Packet>,
    seen: Seen,
}

/// The observable results.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    /// (number, time), in order of delivery.
    delivered: Vec<(u32, Time)>,
    /// Numbers of packets that found the port idle, if it is watched.
    passed: Vec<u32>,
    dropped: Vec<u32>,
    /// Numbers of the packets that waited at each reading, and how long the port had been busy.
    looks: Vec<(Vec<u32>, Dur)>,
    /// Packets and bytes sent, most bytes that waited, integral of waiting bytes.
    counts: [u64; 4],
}

impl World for Bench {
    type Packet = Packet;
    fn deliver(&mut self, links: &mut impl Links<Packet>, _link: LinkId, _far: Far, packet: &mut Packet) {
        self.seen.delivered.push((packet.number, links.now()));
    }
    fn passes(&mut self, _link: LinkId, packet: &mut Packet, _now: Time) -> bool {
        self.seen.passed.push(packet.number);
        true
    }
    fn enqueue(&mut self, _link: LinkId, packet: &mut Packet, now: Time) -> (u32, u64) {
        assert_eq!(packet.arrival, now, "packet {} did not come now", packet.number);
        self.waiting.push(*packet);
        if self.waiting.len() > 3 {
            self.seen.dropped.push(self.waiting.remove(0).number);
        }
        (self.waiting.len() as u32, self.waiting.iter().map(|packet| u64::from(packet.len)).sum())
    }
    fn not_before(&self, _link: LinkId, _start: Time) -> Option<Hold> {
        unreachable!("no port is shaped")
    }
    fn dequeue(&mut self, _link: LinkId, _start: Time) -> &Packet {
        self.served = self.waiting.pop();
        self.served.as_ref().expect("somebody waits")
    }
    /// Now and then a window is refused, so that the tree handles some events.
    fn open_until(&mut self, now: Time) -> Time {
        if self.sends.len().is_multiple_of(3) { now } else { Time::MAX }
    }
    fn wake(&mut self, links: &mut impl Links<Packet>, host: u32) {
        let now = links.now();
        while self.sends.first().is_some_and(|(at, _)| *at == now) {
            let (arrival, len) = self.sends.remove(0);
            let mut packet = Packet { number: self.sent, len, arrival };
            self.sent += 1;
            assert!(matches!(links.send(self, PORT, &mut packet), Sent::Starts(_) | Sent::Waits));
        }
        links.set_wake(host, self.sends.first().map_or(Time::MAX, |(at, _)| *at));
    }
}

impl Bench {
    fn act(&mut self, links: &mut impl Driver<Packet>) {
        let now = self.looks.remove(0);
        links.catch_up(self, PORT, now.before(Dur(1)));
        assert_eq!(links.waiting(PORT) as usize, self.waiting.len());
        self.seen.looks.push((self.waiting.iter().map(|packet| packet.number).collect(), links.busy(PORT)));
        links.set_action(self.looks.first().copied().unwrap_or(Time::MAX));
    }
}

/// 1000 bytes take 1 us at 8 Gb/s; the delay of the wire is 3 us. Times are in nanoseconds.
fn run_on<D: Driver<Packet>>(todo: &[(u64, Do)], watched: bool, order: Order) -> Seen {
    let spec = LinkSpec { rate: Rate::from_gbps(8), delay: Dur::from_us(3), fifo: None, watched, shaped: false, shared: None };
    let mut driver = D::new(&[(spec, Far::Host(0))], 1);
    order.set(&mut driver, 1);
    let mut world = Bench::default();
    for (ns, what) in todo {
        match what {
            Do::Send(len) => world.sends.push((Time(ns * 1000), *len)),
            Do::Look => world.looks.push(Time(ns * 1000)),
        }
    }
    driver.set_wake(0, world.sends.first().map_or(Time::MAX, |(at, _)| *at));
    driver.set_action(world.looks.first().copied().unwrap_or(Time::MAX));
    while driver.run(&mut world, Time::MAX, u64::MAX) == Pause::Action {
        world.act(&mut driver);
    }
    let stats = driver.stats(PORT);
    world.seen.counts = [stats.tx_packets, stats.tx_bytes, stats.max_queue_bytes, stats.queue_area];
    if !watched {
        // Only the reference engine reports them.
        world.seen.passed.clear();
    }
    world.seen
}

fn run(todo: &[(u64, Do)], watched: bool) -> Seen {
    let slow = run_on::<Reference<Packet>>(todo, watched, Order::Time);
    for order in [Order::Time, Order::Windows] {
        assert_eq!(run_on::<Engine<Packet>>(todo, watched, order), slow, "{order:?} {todo:?}");
    }
    slow
}

fn order(seen: &Seen) -> Vec<u32> {
    seen.delivered.iter().map(|(number, _)| *number).collect()
}

#[test]
fn a_single_waiting_packet_starts_next_unless_another_comes_before_its_start() {
    let send = |ns| (ns, Do::Send(1000));
    // Packet 1 waits from 0.5 to 1 us, packet 2 from 1.2 to 2 us, packet 3 from 2.5 to 3 us.
    assert_eq!(order(&run(&[send(0), send(500), send(1200), send(2500)], false)), [0, 1, 2, 3]);
    // Packet 2 arrives before packet 1 has started, and is newer.
    assert_eq!(order(&run(&[send(0), send(500), send(999)], false)), [0, 2, 1]);
    // Service first at ties: packet 1 has started when packet 2 arrives.
    assert_eq!(order(&run(&[send(0), send(500), send(1000), send(1500)], false)), [0, 1, 3, 2]);
}

#[test]
fn reading_the_port_shows_the_waiting_packet_and_changes_nothing() {
    let todo =
        [(0, Do::Send(1000)), (400, Do::Send(500)), (700, Do::Look), (1000, Do::Look), (1001, Do::Look), (2000, Do::Send(40))];
    let seen = run(&todo, false);
    let us = |ns| Dur::from_ns(ns);
    assert_eq!(seen.looks, [(vec![1], us(700)), (vec![1], us(1000)), (vec![], us(1001))]);
    let unseen = run(&todo.into_iter().filter(|(_, what)| matches!(what, Do::Send(_))).collect::<Vec<_>>(), false);
    assert_eq!((&seen.delivered, seen.counts), (&unseen.delivered, unseen.counts));
    assert_eq!(seen.counts, [3, 1540, 500, 500 * (600_000 >> 10)]);
}

/// Bursts, gaps and ties, with and without readings, watched and not.
#[test]
fn random_lists_agree() {
    for n in 0..lists(400) {
        let mut rng = Rng::stream(n, "lazy", &[]);
        let (mut at, mut todo) = (0, Vec::new());
        for _ in 0..60 {
            at += [0, 0, 250, 500, 1000, 1500, 4000][rng.below(7) as usize];
            let look = rng.below(4) == 0 && !matches!(todo.last(), Some((last, Do::Look)) if *last == at);
            todo.push((at, if look { Do::Look } else { Do::Send([40, 500, 1000][rng.below(3) as usize]) }));
        }
        let [plain, watched] = [false, true].map(|watched| run(&todo, watched));
        assert_eq!(plain, Seen { passed: Vec::new(), ..watched }, "watching changes nothing");
    }
}
