//! Shaped ports, in the engine and in the reference engine. The discipline makes every decision
//! visible: a packet may start only some time after it arrived, depending on its length; among
//! packets that may start the newest goes first, and with more than three waiting packets the
//! oldest is dropped.

mod packet;
mod reference;

use base::{Dur, Hold, LinkId, Rate, Rng, Time};
use engine::{Driver, Engine, Far, LinkSpec, Links, Pause, Sent, World};
use packet::{Order, Packet, lists};
use reference::Reference;

const PORT: LinkId = LinkId(0);

/// An action at some time in nanoseconds.
#[derive(Clone, Copy, Debug)]
enum Do {
    /// A packet of this many bytes is sent.
    Send(u32),
    /// Packets of this many bytes are held back, or released.
    Hold(u32),
    Release(u32),
    /// Global actions: the port is read, the link goes down, the link comes up.
    Look,
    Down,
    Up,
}

/// Returns when a packet that is not held back may start: with 40 bytes 3 us after its arrival,
/// with 500 bytes at once, with 1000 bytes after 1.5 us.
fn may_start(packet: &Packet) -> Time {
    packet.arrival
        + Dur::from_ns(match packet.len {
            40 => 3000,
            1000 => 1500,
            _ => 0,
        })
}

#[derive(Default)]
struct Bench {
    /// The actions of the host.
    sends: Vec<(Time, Do)>,
    /// Lengths of packets that are held back.
    held: Vec<u32>,
    actions: Vec<(Time, Do)>,
    sent: u32,
    waiting: Vec<Packet>,
    served: Option<Packet>,
    seen: Seen,
}

/// The observable results.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    /// (number, time).
    delivered: Vec<(u32, Time)>,
    /// (number, start of service).
    starts: Vec<(u32, Time)>,
    dropped: Vec<u32>,
    /// Numbers of packets lost with the link, or sent while it was down.
    lost: Vec<u32>,
    /// At each reading: numbers of the waiting packets, how long the port had been busy, when it is
    /// idle, and when the next packet may start.
    looks: Vec<(Vec<u32>, Dur, Time, Time)>,
    /// Packets and bytes sent, most bytes that waited, integral of waiting bytes.
    counts: [u64; 4],
}

impl Bench {
    fn may_start(&self, packet: &Packet) -> Time {
        if self.held.contains(&packet.len) { Time::MAX } else { may_start(packet) }
    }
    fn send(&mut self, links: &mut impl Links<Packet>, len: u32) {
        let mut packet = Packet { number: self.sent, len, arrival: links.now() };
        self.sent += 1;
        match links.send(self, PORT, &mut packet) {
            Sent::Waits | Sent::Starts(_) => {}
            Sent::Down => self.seen.lost.push(packet.number),
            sent => panic!("{sent:?} at a shaped port"),
        }
    }
}

impl World for Bench {
    type Packet = Packet;
    fn deliver(&mut self, links: &mut impl Links<Packet>, _link: LinkId, _far: Far, packet: &mut Packet) {
        self.seen.delivered.push((packet.number, links.now()));
    }
    fn passes(&mut self, _link: LinkId, packet: &mut Packet, now: Time) -> bool {
        // A fourth waiting packet would drop the oldest.
        let passes = self.may_start(packet) <= now && self.waiting.len() < 3;
        if passes {
            self.seen.starts.push((packet.number, now));
        }
        passes
    }
    fn enqueue(&mut self, _link: LinkId, packet: &mut Packet, now: Time) -> (u32, u64) {
        assert_eq!(packet.arrival, now, "packet {} did not come now", packet.number);
        self.waiting.push(*packet);
        if self.waiting.len() > 3 {
            self.seen.dropped.push(self.waiting.remove(0).number);
        }
        (self.waiting.len() as u32, self.waiting.iter().map(|packet| u64::from(packet.len)).sum())
    }
    fn not_before(&self, _link: LinkId, start: Time) -> Option<Hold> {
        let first = self.waiting.iter().rev().min_by_key(|packet| self.may_start(packet)).expect("somebody waits");
        let until = self.may_start(first);
        (until > start).then_some(Hold { until, wire_len: first.len })
    }
    fn dequeue(&mut self, _link: LinkId, start: Time) -> &Packet {
        let next = self.waiting.iter().rposition(|packet| self.may_start(packet) <= start).expect("one may start");
        let packet = self.waiting.remove(next);
        self.seen.starts.push((packet.number, start));
        self.served.insert(packet)
    }
    /// Now and then a window is refused, so that the tree handles some events.
    fn open_until(&mut self, now: Time) -> Time {
        if self.sends.len().is_multiple_of(3) { now } else { Time::MAX }
    }
    fn wake(&mut self, links: &mut impl Links<Packet>, host: u32) {
        let now = links.now();
        while self.sends.first().is_some_and(|(at, _)| *at == now) {
            match self.sends.remove(0).1 {
                Do::Send(len) => self.send(links, len),
                Do::Hold(len) => links.alter(self, PORT, |world| world.held.push(len)),
                Do::Release(len) => links.alter(self, PORT, |world| world.held.retain(|held| *held != len)),
                action => unreachable!("{action:?} is not the host's"),
            }
        }
        links.set_wake(host, self.sends.first().map_or(Time::MAX, |(at, _)| *at));
    }
}

impl Bench {
    fn act(&mut self, links: &mut impl Driver<Packet>) {
        let now = links.now();
        while let Some((_, what)) = self.actions.first().copied().filter(|(at, _)| *at == now) {
            self.actions.remove(0);
            links.catch_up(self, PORT, now.before(Dur(1)));
            let waiting: Vec<u32> = self.waiting.iter().map(|packet| packet.number).collect();
            assert_eq!(links.waiting(PORT) as usize, waiting.len());
            match what {
                Do::Send(_) | Do::Hold(_) | Do::Release(_) => unreachable!("the host's"),
                Do::Look => self.seen.looks.push((waiting, links.busy(PORT), links.free_at(PORT), links.next_start(PORT))),
                Do::Down => {
                    self.seen.lost.extend(links.link_down(PORT).iter().map(|packet| packet.number));
                    self.seen.lost.extend(waiting);
                    self.waiting.clear();
                    assert_eq!((links.waiting(PORT), links.next_start(PORT)), (0, Time::MAX));
                }
                Do::Up => links.link_up(PORT),
            }
        }
        links.set_action(self.actions.first().map_or(Time::MAX, |(at, _)| *at));
    }
}

/// 1000 bytes take 1 us at 8 Gb/s.
fn run_on<D: Driver<Packet>>(todo: &[(u64, Do)], delay: Dur, order: Order) -> Seen {
    let spec = LinkSpec { rate: Rate::from_gbps(8), delay, fifo: None, watched: false, shaped: true, shared: None };
    let mut driver = D::new(&[(spec, Far::Host(0))], 1);
    order.set(&mut driver, 1);
    let mut world = Bench::default();
    for (ns, what) in todo {
        match what {
            Do::Send(_) | Do::Hold(_) | Do::Release(_) => world.sends.push((Time(ns * 1000), *what)),
            _ => world.actions.push((Time(ns * 1000), *what)),
        }
    }
    driver.set_wake(0, world.sends.first().map_or(Time::MAX, |(at, _)| *at));
    driver.set_action(world.actions.first().map_or(Time::MAX, |(at, _)| *at));
    while driver.run(&mut world, Time::MAX, u64::MAX) == Pause::Action {
        world.act(&mut driver);
    }
    assert!(world.waiting.is_empty(), "what waits is served in the end");
    let stats = driver.stats(PORT);
    world.seen.counts = [stats.tx_packets, stats.tx_bytes, stats.max_queue_bytes, stats.queue_area];
    world.seen
}

fn run(todo: &[(u64, Do)], delay: Dur) -> Seen {
    let slow = run_on::<Reference<Packet>>(todo, delay, Order::Time);
    for order in [Order::Time, Order::Windows] {
        assert_eq!(run_on::<Engine<Packet>>(todo, delay, order), slow, "{order:?} {todo:?}");
    }
    slow
}

fn starts(seen: &Seen) -> Vec<(u32, u64)> {
    seen.starts.iter().map(|(number, at)| (*number, at.0 / 1000)).collect()
}

/// Each packet at an idle port and at a busy port, with an empty wire and not.
#[test]
fn packets_start_when_they_may() {
    for delay in [Dur::from_ns(10), Dur::from_us(100)] {
        // At an idle port without waiting packets: at once, or when its time has come.
        assert_eq!(starts(&run(&[(100, Do::Send(500))], delay)), [(0, 100)]);
        assert_eq!(starts(&run(&[(100, Do::Send(40))], delay)), [(0, 3100)]);
        // A packet that may start earlier passes a waiting packet, and brings the next start
        // forward.
        assert_eq!(
            starts(&run(&[(0, Do::Send(40)), (1000, Do::Send(1000)), (2000, Do::Send(500))], delay)),
            [(2, 2000), (1, 2500), (0, 3500)]
        );
        // The transmitter is busy with packet 1 until 1.5 us, and packet 0 may start at 1.5 us: no
        // time in between is lost.
        assert_eq!(starts(&run(&[(0, Do::Send(1000)), (1000, Do::Send(500))], delay)), [(1, 1000), (0, 1500)]);
    }
}

#[test]
fn what_starts_at_once_never_waited() {
    let delay = Dur::from_us(1);
    assert_eq!(run(&[(0, Do::Send(500))], delay).counts, [1, 500, 0, 0]);
    assert_eq!(run(&[(0, Do::Send(1000))], delay).counts, [1, 1000, 1000, 1000 * (1_500_000 >> 10)]);
}

/// Service first: at 3 us packet 0 may start, and does so before the other packet arrives. Global
/// actions come before service.
#[test]
fn service_precedes_all_else_of_its_instant_but_actions() {
    let delay = Dur::from_us(1);
    let todo = [(0, Do::Send(40)), (3000, Do::Look), (3000, Do::Send(500)), (3001, Do::Look)];
    let seen = run(&todo, delay);
    assert_eq!(starts(&seen), [(0, 3000), (1, 3040)]);
    assert_eq!((&seen.looks[0].0, seen.looks[0].3), (&vec![0], Time(3_000_000)));
    assert_eq!((&seen.looks[1].0, seen.looks[1].3), (&vec![1], Time(3_040_000)));
}

#[test]
fn a_dead_link_has_nothing_to_serve_and_starts_as_new() {
    let todo =
        [(0, Do::Send(40)), (1000, Do::Send(1000)), (1200, Do::Down), (1300, Do::Send(500)), (1400, Do::Up), (1500, Do::Send(40))];
    for delay in [Dur::from_ns(10), Dur::from_us(100)] {
        let seen = run(&todo, delay);
        assert_eq!((starts(&seen), seen.lost), (vec![(3, 4500)], vec![0, 1, 2]));
    }
}

/// Packets that are held back start at the release, if nothing else delays them; packets that have
/// started are not stopped.
#[test]
fn what_is_held_starts_when_it_is_released() {
    for delay in [Dur::from_ns(10), Dur::from_us(100)] {
        // The first packet is in transmission when packets of its length are held back; the second
        // waits for the release.
        let todo = [(0, Do::Send(500)), (100, Do::Hold(500)), (200, Do::Send(500)), (7000, Do::Release(500))];
        assert_eq!(starts(&run(&todo, delay)), [(0, 0), (1, 7000)]);
        // Other packets pass in the meantime, and a released packet waits for the transmitter.
        let todo = [(0, Do::Hold(500)), (0, Do::Send(500)), (1000, Do::Send(1000)), (3000, Do::Release(500)), (5000, Do::Hold(40))];
        assert_eq!(starts(&run(&todo, delay)), [(1, 2500), (0, 3500)]);
        // Held at the instant at which it would start: service comes first.
        let todo = [(0, Do::Send(40)), (3000, Do::Hold(40)), (3000, Do::Send(40)), (9000, Do::Release(40))];
        assert_eq!(starts(&run(&todo, delay)), [(0, 3000), (1, 9000)]);
        // Held just before that instant.
        let todo = [(0, Do::Send(40)), (2999, Do::Hold(40)), (4000, Do::Release(40))];
        assert_eq!(starts(&run(&todo, delay)), [(0, 4000)]);
    }
}

/// Bursts, gaps, ties and holds, readings and failures, with a wire that is mostly empty and with
/// one that is not.
#[test]
fn random_lists_agree() {
    for n in 0..lists(600) {
        let mut rng = Rng::stream(n, "shaped", &[]);
        let (mut at, mut todo, mut up) = (0, Vec::new(), true);
        for _ in 0..60 {
            at += [0, 0, 250, 500, 1000, 1500, 4000][rng.below(7) as usize];
            let what = match rng.below(14) {
                0 | 1 => Do::Look,
                12 if n % 3 > 0 => Do::Hold([40, 500, 1000][rng.below(3) as usize]),
                13 if n % 3 > 0 => Do::Release([40, 500, 1000][rng.below(3) as usize]),
                2 if up && n % 2 == 0 => Do::Down,
                2 | 3 if !up => Do::Up,
                _ => Do::Send([40, 500, 1000][rng.below(3) as usize]),
            };
            match what {
                Do::Down => up = false,
                Do::Up => up = true,
                _ => {}
            }
            todo.push((at, what));
        }
        todo.extend([40, 500, 1000].map(|len| (at, Do::Release(len))));
        let delay = Dur::from_ns([1, 700, 3000, 20_000][rng.below(4) as usize]);
        let seen = run(&todo, delay);
        let sent = todo.iter().filter(|(_, what)| matches!(what, Do::Send(_))).count();
        assert_eq!(seen.delivered.len() + seen.dropped.len() + seen.lost.len(), sent);
        let looked = todo.iter().filter(|(_, what)| !matches!(what, Do::Look)).copied().collect::<Vec<_>>();
        assert_eq!(
            Seen { looks: Vec::new(), ..run(&looked, delay) },
            Seen { looks: Vec::new(), ..seen },
            "looking changes nothing"
        );
    }
}
