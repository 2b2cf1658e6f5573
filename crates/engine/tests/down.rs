//! Links that go down and come up, in the engine and in the reference engine: which packets are
//! lost, which are delivered, and how the link starts again.

mod packet;
mod reference;

use base::{Dur, Hold, LinkId, Rate, Time};
use engine::{Driver, Engine, Far, Fifo, LinkSpec, LinkStats, Links, Pause, Sent, World};
use packet::{Order, Packet, lists};
use reference::Reference;

/// An action on a link.
#[derive(Clone, Copy, Debug)]
enum Do {
    /// The host sends packets of 1000 bytes over the link.
    Send(u32, usize),
    /// Global actions.
    Down(u32),
    Up(u32),
}
use Do::{Down, Send, Up};

/// The link that is served lazily.
const LAZY: LinkId = LinkId(1);

/// Two links, the second served lazily from a plain queue, and a list of actions.
struct Bench {
    sends: Vec<(Time, Do)>,
    actions: Vec<(Time, Do)>,
    sent: u32,
    queue: Vec<Packet>,
    served: Option<Packet>,
    /// (link, number, when)
    delivered: Vec<(u32, u32, u64)>,
    /// Numbers of packets lost on and at links when these went down, and of packets sent while they
    /// were down.
    lost: Vec<u32>,
    refused: Vec<u32>,
}

impl World for Bench {
    type Packet = Packet;
    fn deliver(&mut self, links: &mut impl Links<Packet>, link: LinkId, _far: Far, packet: &mut Packet) {
        self.delivered.push((link.0, packet.number, links.now().0));
    }
    fn passes(&mut self, _link: LinkId, _packet: &mut Packet, _now: Time) -> bool {
        true
    }
    fn enqueue(&mut self, _link: LinkId, packet: &mut Packet, _now: Time) -> (u32, u64) {
        self.queue.push(*packet);
        (self.queue.len() as u32, 1000 * self.queue.len() as u64)
    }
    fn not_before(&self, _link: LinkId, _start: Time) -> Option<Hold> {
        unreachable!("no port is shaped")
    }
    fn dequeue(&mut self, _link: LinkId, _start: Time) -> &Packet {
        self.served = Some(self.queue.remove(0));
        self.served.as_ref().expect("it has just been set")
    }
    /// Now and then a window is refused, so that the tree handles some events.
    fn open_until(&mut self, now: Time) -> Time {
        if self.sends.len().is_multiple_of(3) { now } else { Time::MAX }
    }
    fn wake(&mut self, links: &mut impl Links<Packet>, host: u32) {
        while let Some(Send(link, packets)) = pop(&mut self.sends, links.now()) {
            (0..packets).for_each(|_| self.send(links, LinkId(link)));
        }
        links.set_wake(host, next(&self.sends));
    }
}

impl Bench {
    fn act(&mut self, links: &mut impl Driver<Packet>) {
        while let Some(what) = pop(&mut self.actions, links.now()) {
            match what {
                Down(link) => self.take_down(links, LinkId(link)),
                Up(link) => links.link_up(LinkId(link)),
                Send(..) => unreachable!("the host's"),
            }
        }
        links.set_action(next(&self.actions));
    }
}

/// Returns when the first action of a list is due.
fn next(list: &[(Time, Do)]) -> Time {
    list.first().map_or(Time::MAX, |(at, _)| *at)
}

/// Removes the first action if it is due.
fn pop(list: &mut Vec<(Time, Do)>, now: Time) -> Option<Do> {
    (next(list) == now).then(|| list.remove(0).1)
}

impl Bench {
    fn take_down(&mut self, links: &mut impl Driver<Packet>, link: LinkId) {
        links.catch_up(self, link, links.now().before(Dur(1)));
        self.lost.extend(links.link_down(link).iter().map(|packet| packet.number));
        assert_eq!((links.on_link(link), links.waiting(link)), (Vec::new(), 0));
        if link == LAZY {
            self.lost.extend(self.queue.drain(..).map(|packet| packet.number));
        }
    }
    fn send(&mut self, links: &mut impl Links<Packet>, link: LinkId) {
        let mut packet = Packet { number: self.sent, len: 1000, arrival: links.now() };
        self.sent += 1;
        match links.send(self, link, &mut packet) {
            Sent::Starts(_) | Sent::Waits => {}
            Sent::Dropped => panic!("no limit"),
            Sent::Down => self.refused.push(packet.number),
        }
    }
}

/// The results of a run of 1 ms.
#[derive(Debug, PartialEq)]
struct Seen {
    delivered: Vec<(u32, u32, u64)>,
    lost: Vec<u32>,
    refused: Vec<u32>,
    /// By link: packets sent, bytes sent, packets delivered, lost after they were sent, lost before
    /// they were sent.
    counts: Vec<[u64; 5]>,
    busy: Vec<u64>,
    area: Vec<u64>,
}

/// 1000 bytes take 1 us at 8 Gb/s; the wire is 3 us long.
fn run_on<D: Driver<Packet>>(todo: &[(u64, Do)], order: Order) -> Seen {
    let link =
        |fifo| LinkSpec { rate: Rate::from_gbps(8), delay: Dur::from_us(3), fifo, watched: false, shaped: false, shared: None };
    let fifo = Some(Fifo::default());
    let mut driver = D::new(&[(link(fifo), Far::Host(0)), (link(None), Far::Host(0))], 1);
    order.set(&mut driver, 2);
    let all = todo.iter().map(|(ns, what)| (Time(ns * 1000), *what));
    let (sends, actions): (Vec<_>, Vec<_>) = all.partition(|(_, what)| matches!(what, Send(..)));
    driver.set_action(next(&actions));
    driver.set_wake(0, next(&sends));
    let mut world = Bench {
        sends,
        actions,
        sent: 0,
        queue: Vec::new(),
        served: None,
        delivered: Vec::new(),
        lost: Vec::new(),
        refused: Vec::new(),
    };
    while driver.run(&mut world, Time(1_000_000_000), u64::MAX) == Pause::Action {
        world.act(&mut driver);
    }
    assert_eq!((driver.now(), world.sends.len() + world.actions.len()), (Time(1_000_000_000), 0), "the present is the end");
    let links = [LinkId(0), LinkId(1)];
    let stats: Vec<LinkStats> = links.iter().map(|link| driver.stats(*link)).collect();
    assert!(stats.iter().all(|stats| stats.drops == 0), "what a dead link loses is no drop");
    Seen {
        delivered: world.delivered,
        lost: world.lost,
        refused: world.refused,
        counts: stats.iter().map(|s| [s.tx_packets, s.tx_bytes, s.delivered, s.lost_sent, s.lost_unsent]).collect(),
        busy: links.iter().map(|link| driver.busy(*link).0 / 1000).collect(),
        area: stats.iter().map(|s| s.queue_area).collect(),
    }
}

fn run(todo: &[(u64, Do)]) -> Seen {
    let slow = run_on::<Reference<Packet>>(todo, Order::Time);
    for order in [Order::Time, Order::Windows] {
        assert_eq!(run_on::<Engine<Packet>>(todo, order), slow, "{order:?} {todo:?}");
    }
    slow
}

/// At 5.5 us: two of eight packets have been delivered (at 4 and 5), three are on the wire, one is
/// in transmission, two wait.
#[test]
fn waiting_transmitted_and_flying_packets_are_lost() {
    for link in [0, 1] {
        let seen = run(&[(0, Send(link, 8)), (5_500, Down(link))]);
        assert_eq!(seen.delivered, [(link, 0, 4_000_000), (link, 1, 5_000_000)]);
        assert_eq!(seen.lost, [2, 3, 4, 5, 6, 7]);
        // The port's own waiting packets were never sent; those of a discipline are counted by the
        // owner of the discipline.
        let unsent = if link == 0 { 2 } else { 0 };
        assert_eq!(seen.counts[link as usize], [6, 6000, 2, 4, unsent]);
        assert_eq!(seen.busy[link as usize], 5_500, "the sixth is cut short");
    }
}

/// The counted waiting time of a packet that arrived at 0 and was lost at 5.5 us is 5.5 us, not the
/// 6 or 7 us until its start.
#[test]
fn what_was_counted_of_the_future_is_taken_back() {
    let area = |starts_ps: [u64; 7]| starts_ps.iter().map(|ps| 1000 * (ps >> 10)).sum::<u64>();
    let us = 1_000_000;
    let whole = run(&[(0, Send(0, 8))]);
    assert_eq!(whole.area[0], area([1, 2, 3, 4, 5, 6, 7].map(|n| n * us)));
    let cut = run(&[(0, Send(0, 8)), (5_500, Down(0))]);
    let back = [6 * us - 5_500_000, 7 * us - 5_500_000].iter().map(|ps| 1000 * (ps >> 10)).sum::<u64>();
    assert_eq!(cut.area[0], whole.area[0] - back);
}

/// Global actions come first: a delivery and a start of service of the same instant do not happen,
/// those just before do.
#[test]
fn events_before_the_failure_happen() {
    for link in [0, 1] {
        let seen = run(&[(0, Send(link, 8)), (5_000, Down(link))]);
        assert_eq!((seen.delivered.len(), seen.counts[link as usize][0], seen.busy[link as usize]), (1, 5, 5_000));
        let seen = run(&[(1, Send(link, 8)), (5_002, Down(link))]);
        assert_eq!((seen.delivered.len(), seen.counts[link as usize][0]), (2, 6));
    }
}

#[test]
fn nothing_is_sent_while_it_is_down_and_the_port_starts_empty() {
    for link in [0, 1] {
        let seen = run(&[
            (0, Send(link, 3)),
            (500, Down(link)),
            (600, Send(link, 2)),
            (900, Up(link)),
            (900, Send(link, 2)),
            // Down again with one packet delivered, and the other on the wire.
            (5_400, Down(link)),
            (5_400, Up(link)),
            (7_000, Send(link, 1)),
        ]);
        assert_eq!((seen.lost, seen.refused), (vec![0, 1, 2, 6], vec![3, 4]));
        assert_eq!(seen.delivered, [(link, 5, 4_900_000), (link, 7, 11_000_000)]);
        assert_eq!(seen.busy[link as usize], 500 + 2_000 + 1_000);
        assert_eq!(seen.counts[link as usize][..4], [4, 4000, 2, 2]);
    }
}

/// Many random lists: both engines agree, and no packet disappears.
#[test]
fn random_lists_agree() {
    for n in 0..lists(300) {
        let mut rng = base::Rng::stream(n, "down", &[]);
        let (mut at, mut up, mut todo) = (0, [true; 2], Vec::new());
        for _ in 0..40 {
            at += [0, 250, 500, 1000, 1400, 5000][rng.below(6) as usize];
            let link = rng.below(2) as usize;
            let what = match rng.below(4) {
                0 if up[link] => Down(link as u32),
                0 => Up(link as u32),
                _ => Send(link as u32, 1 + rng.below(4) as usize),
            };
            match what {
                Send(..) => {}
                _ => up[link] = !up[link],
            }
            todo.push((at, what));
        }
        let sent: usize = todo.iter().map(|(_, what)| if let Send(_, packets) = what { *packets } else { 0 }).sum();
        let seen = run(&todo);
        assert_eq!(seen.delivered.len() + seen.lost.len() + seen.refused.len(), sent);
    }
}
