//! The slow reference engine: a plain discrete-event engine with a binary heap, an explicit event
//! for every service start and every delivery, and explicit queues. It must give the same results
//! as the engine in every scenario.

use base::{Dur, Hold, Limit, LinkId, Time};
use engine::{Driver, Far, LinkSpec, LinkStats, Links, Pause, Sent, Wire, World};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Classes of events, in their order at equal times.
const ACTION: u8 = 0;
const SERVICE: u8 = 1;
const DELIVERY: u8 = 2;
const WAKE: u8 = 3;

struct Port<P> {
    spec: LinkSpec,
    far: Far,
    up: bool,
    free_at: Time,
    queue: VecDeque<P>,
    wire: VecDeque<P>,
    waiting: u32,
    /// The last answer of the discipline, or the arrival of the last packet.
    not_before: Time,
    busy: Dur,
    stats: LinkStats,
}

/// The plain engine.
pub struct Reference<P> {
    heap: BinaryHeap<Reverse<(Time, u8, u32)>>,
    ports: Vec<Port<P>>,
    wakes: Vec<Time>,
    action: Time,
    now: Time,
    events: u64,
    stopped: bool,
}

impl<P: Wire> Reference<P> {
    fn port(&mut self, id: LinkId) -> &mut Port<P> {
        &mut self.ports[id.index()]
    }
    fn schedule(&mut self, at: Time, class: u8, id: u32) {
        self.heap.push(Reverse((at, class, id)));
    }
    /// Starts the transmission of a packet now.
    fn start(&mut self, id: LinkId, mut packet: P) {
        let (now, port) = (self.now, &mut self.ports[id.index()]);
        assert!(port.free_at <= now, "two packets on one transmitter");
        let tx = port.spec.rate.tx_time(u64::from(packet.wire_len()));
        port.free_at = now + tx;
        port.busy += tx;
        port.stats.tx_packets += 1;
        port.stats.tx_bytes += u64::from(packet.wire_len());
        let arrival = now + tx + port.spec.delay;
        packet.set_arrival(arrival);
        port.wire.push_back(packet);
        // Two events per hop.
        self.schedule(now + tx, SERVICE, id.0);
        self.schedule(arrival, DELIVERY, id.0);
    }
    /// Starts the next packet if the transmitter is idle and a packet may start.
    fn on_service<W: World<Packet = P>>(&mut self, world: &mut W, id: LinkId) {
        let (now, port) = (self.now, self.port(id));
        if port.free_at > now {
            return;
        }
        if port.spec.fifo.is_some() {
            if let Some(packet) = port.queue.pop_front() {
                self.start(id, packet);
            }
        } else if port.waiting > 0 {
            if port.spec.shaped
                && let Some(Hold { until: time, .. }) = world.not_before(id, now)
            {
                assert!(time > now);
                port.not_before = time;
                if time != Time::MAX {
                    self.schedule(time, SERVICE, id.0);
                }
                return;
            }
            let packet = if port.spec.shaped { *world.dequeue_shaped(id, now) } else { *world.dequeue(id, now) };
            let port = self.port(id);
            port.waiting -= 1;
            port.stats.waited(packet.wire_len(), now - packet.arrival());
            self.start(id, packet);
        }
    }
}

impl<P: Wire> Links<P> for Reference<P> {
    fn now(&self) -> Time {
        self.now
    }
    fn stop(&mut self) {
        self.stopped = true;
    }
    fn wake_at(&self, waker: u32) -> Time {
        self.wakes[waker as usize]
    }
    fn set_wake(&mut self, waker: u32, at: Time) {
        self.wakes[waker as usize] = at;
        if at != Time::MAX {
            self.schedule(at, WAKE, waker);
        }
    }
    fn send<W: World<Packet = P>>(&mut self, world: &mut W, id: LinkId, packet: &mut P) -> Sent {
        let (now, len) = (self.now, u64::from(packet.wire_len()));
        let port = self.port(id);
        if !port.up {
            return Sent::Down;
        }
        let Some(engine::Fifo { limit, mark }) = port.spec.fifo else {
            if port.free_at <= now && port.waiting == 0 && !port.spec.shaped {
                assert!(world.passes(id, packet, now), "it is not shaped");
                self.start(id, *packet);
                return Sent::Starts(now);
            }
            if port.spec.shared.is_some() && !world.admits(id, packet, now) {
                return Sent::Waits;
            }
            let shaped = port.spec.shaped;
            let (packets, mut bytes) = if shaped { world.enqueue_shaped(id, packet, now) } else { world.enqueue(id, packet, now) };
            let port = self.port(id);
            (port.waiting, port.not_before) = (packets, now);
            if port.spec.shaped {
                let sent = port.stats.tx_bytes;
                self.on_service(world, id);
                // A packet that starts at once does not wait.
                bytes -= self.port(id).stats.tx_bytes - sent;
            }
            let stats = self.stats_mut(id);
            stats.max_queue_bytes = stats.max_queue_bytes.max(bytes);
            return Sent::Waits;
        };
        if port.free_at <= now {
            assert!(port.queue.is_empty());
            self.start(id, *packet);
            return Sent::Starts(now);
        }
        let waiting: u64 = port.queue.iter().map(|p| u64::from(p.wire_len())).sum();
        let within = |bound| match bound {
            Limit::Packets(n) => port.queue.len() < n as usize,
            Limit::Bytes(n) => waiting + len <= n,
            Limit::Unlimited => true,
        };
        if !within(limit) {
            port.stats.dropped(len as u32);
            return Sent::Dropped;
        }
        let rate = port.spec.rate;
        let start = port.queue.iter().fold(port.free_at, |at, p| at + rate.tx_time(u64::from(p.wire_len())));
        port.stats.waited(len as u32, start - now);
        port.stats.max_queue_bytes = port.stats.max_queue_bytes.max(waiting + len);
        if !within(mark) {
            port.stats.marks += u64::from(packet.mark());
        }
        port.queue.push_back(*packet);
        Sent::Starts(start)
    }
    /// Does nothing: every start is an event of its own, and has happened.
    fn catch_up<W: World<Packet = P>>(&mut self, _world: &mut W, _id: LinkId, _until: Time) {}
    fn alter<W: World<Packet = P>>(&mut self, world: &mut W, id: LinkId, change: impl FnOnce(&mut W)) {
        change(world);
        self.port(id).not_before = self.now;
        self.on_service(world, id);
    }
    fn waiting(&self, id: LinkId) -> u32 {
        self.ports[id.index()].waiting
    }
    fn tx_time(&self, id: LinkId, bytes: u32) -> Dur {
        self.ports[id.index()].spec.rate.tx_time(u64::from(bytes))
    }
    fn busy(&self, id: LinkId) -> Dur {
        let port = &self.ports[id.index()];
        Dur(port.busy.0 - port.free_at.since(self.now).0.min(port.busy.0))
    }
    /// Ignores `until`: service that has started is no longer in the queue.
    fn fifo_backlog(&mut self, id: LinkId, _until: Time) -> (u32, u64) {
        let queue = &self.ports[id.index()].queue;
        (queue.len() as u32, queue.iter().map(|p| u64::from(p.wire_len())).sum())
    }
    fn free_at(&self, id: LinkId) -> Time {
        self.ports[id.index()].free_at
    }
    fn next_start(&self, id: LinkId) -> Time {
        let port = &self.ports[id.index()];
        if port.waiting > 0 { port.free_at.max(port.not_before) } else { Time::MAX }
    }
    fn stats_mut(&mut self, id: LinkId) -> &mut LinkStats {
        &mut self.port(id).stats
    }
}

impl<P: Wire> Driver<P> for Reference<P> {
    fn new(links: &[(LinkSpec, Far)], wakers: u32) -> Self {
        let port = |&(spec, far): &(LinkSpec, Far)| Port {
            spec,
            far,
            up: true,
            free_at: Time::ZERO,
            queue: VecDeque::new(),
            wire: VecDeque::new(),
            waiting: 0,
            not_before: Time::ZERO,
            busy: Dur::ZERO,
            stats: LinkStats::default(),
        };
        Reference {
            heap: BinaryHeap::new(),
            ports: links.iter().map(port).collect(),
            wakes: vec![Time::MAX; wakers as usize],
            action: Time::MAX,
            now: Time::ZERO,
            events: 0,
            stopped: false,
        }
    }
    fn set_action(&mut self, at: Time) {
        self.action = at;
        if at != Time::MAX {
            self.schedule(at, ACTION, 0);
        }
    }
    fn run<W: World<Packet = P>>(&mut self, world: &mut W, end: Time, budget: u64) -> Pause {
        self.stopped = false;
        for _ in 0..budget {
            let next = self.heap.peek().filter(|Reverse((at, ..))| *at < end);
            let Some(&Reverse((at, class, id))) = next else {
                if end != Time::MAX {
                    self.now = end;
                }
                return Pause::End;
            };
            self.heap.pop();
            assert!(at >= self.now);
            self.now = at;
            self.events += 1;
            match class {
                // Wake-ups that were moved leave stale entries in the heap.
                ACTION if self.action == at => {
                    self.action = Time::MAX;
                    return Pause::Action;
                }
                WAKE if self.wakes[id as usize] == at => {
                    self.wakes[id as usize] = Time::MAX;
                    world.wake(self, id);
                }
                SERVICE => self.on_service(world, LinkId(id)),
                DELIVERY => {
                    let port = &mut self.ports[id as usize];
                    port.stats.delivered += 1;
                    let mut packet = port.wire.pop_front().expect("a packet on the wire");
                    assert_eq!(packet.arrival(), at);
                    let far = port.far;
                    world.deliver(self, LinkId(id), far, &mut packet);
                }
                _ => {}
            }
            if self.stopped {
                return Pause::Stopped;
            }
        }
        Pause::Budget
    }
    fn events(&self) -> u64 {
        self.events
    }
    /// Returns the statistics as the engine counts them: waiting packets of a first-in first-out
    /// port already count as sent.
    fn stats(&mut self, id: LinkId) -> LinkStats {
        let (packets, bytes) = self.fifo_backlog(id, self.now);
        let mut stats = self.ports[id.index()].stats;
        stats.tx_packets += u64::from(packets);
        stats.tx_bytes += bytes;
        stats
    }
    fn queue_area(&self, id: LinkId) -> u64 {
        let port = &self.ports[id.index()];
        let (mut start, mut to_come) = (port.free_at, 0);
        for packet in &port.queue {
            let len = u64::from(packet.wire_len());
            to_come += len * ((start - self.now).0 >> 10);
            start += port.spec.rate.tx_time(len);
        }
        port.stats.queue_area - to_come
    }
    fn on_link(&self, id: LinkId) -> Vec<P> {
        let port = &self.ports[id.index()];
        port.wire.iter().chain(&port.queue).copied().collect()
    }
    fn link_down(&mut self, id: LinkId) -> Vec<P> {
        let (lost, now, port) = (self.on_link(id), self.now, self.port(id));
        assert!(port.up, "link {id} goes down twice");
        // A start at exactly this time, by an action before this one, does not count.
        let begins = |packet: &&P| {
            let tx_time = port.spec.rate.tx_time(u64::from(packet.wire_len()));
            packet.arrival().before(port.spec.delay).before(tx_time) >= now
        };
        let unsent: Vec<u64> = port.wire.iter().filter(begins).map(|packet| u64::from(packet.wire_len())).collect();
        port.stats.tx_packets -= unsent.len() as u64;
        port.stats.tx_bytes -= unsent.iter().sum::<u64>();
        port.stats.lost_sent += (port.wire.len() - unsent.len()) as u64;
        port.stats.lost_unsent += (port.queue.len() + unsent.len()) as u64;
        // The waiting times were counted on arrival, up to starts that never happen.
        let mut start = port.free_at;
        for packet in &port.queue {
            let len = u64::from(packet.wire_len());
            port.stats.queue_area -= len * ((start - now).0 >> 10);
            start += port.spec.rate.tx_time(len);
        }
        port.queue.clear();
        port.wire.clear();
        (port.waiting, port.not_before) = (0, Time::ZERO);
        port.up = false;
        port.busy = port.busy - port.free_at.since(now);
        port.free_at = port.free_at.min(now);
        self.heap.retain(|Reverse((_, class, other))| *other != id.0 || (*class != SERVICE && *class != DELIVERY));
        lost
    }
    fn link_up(&mut self, id: LinkId) {
        self.port(id).up = true;
    }
}
