//! One run on several threads: the parts of the network run independently in windows of time.
//!
//! No packet crosses from one part to another in less than the smallest delay of a link between parts. So
//! in a window that is not longer than this delay the parts are independent. Between two windows they
//! exchange the packets that arrive in the next window, and skip the time in which no part has events. The
//! results are those of one thread: the order of the events of a node does not depend on the part that
//! owns it, nodes of different parts affect each other by packets only, and packets carry their arrival
//! times.

use crate::node::share::FlowChange;
use crate::node::world::Carried;
use crate::parallel::cut::Cut;
use crate::parallel::exchange::{Exchange, PartStatus, Turn};
use crate::parallel::part::Part;
use crate::parallel::sync::SPINS;
use crate::probe::Probe;
use base::{LinkId, Time};
use engine::{Driver as _, Engine, Links as _, Pause};
use proto::packet::Ext;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

/// Why the parts stopped together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// No event is left before the given time, which all parts have reached.
    Until,
    /// The budget of events is used up.
    Budget,
    /// The last flow may end before the next window ends, so events must be handled one by one.
    Careful,
}

/// The message from one part to another between two windows.
#[derive(Default)]
pub struct PartMessage {
    packets: Vec<(LinkId, Carried)>,
    /// The header blocks of these packets, in their order.
    blocks: Vec<Ext>,
    /// Starts and ends of flows.
    changes: Vec<FlowChange>,
    /// Whether the sending part's world is [special](crate::node::world::World::special).
    special: bool,
}

impl PartMessage {
    fn is_empty(&self) -> bool {
        self.packets.is_empty() && self.changes.is_empty()
    }
}

/// The parts that run on one thread.
type Crew<P> = Vec<Part<Engine<Carried>, P>>;

/// The limits of a run of parts.
#[derive(Clone, Copy)]
struct Bounds {
    /// The latest time.
    until: Time,
    /// The number of events of all parts after which they stop.
    most: u64,
}

/// The threads of a run. The thread that calls [`Team::run`] runs the first parts; the other threads live
/// as long as the team.
pub struct Team<P> {
    cut: Arc<Cut>,
    exchange: Arc<Exchange<PartMessage>>,
    /// Parts per thread; the last thread may have fewer.
    each: usize,
    workers: Vec<Worker<P>>,
}

/// A thread that runs the parts that it is given.
struct Worker<P> {
    /// `None` once the thread shall end.
    orders: Option<Sender<(Crew<P>, Bounds)>>,
    done: Receiver<(Crew<P>, Option<Stop>)>,
    thread: Option<JoinHandle<()>>,
}

impl<P: Probe + Send + 'static> Team<P> {
    /// Creates the threads for the parts of a cut. Each thread has at least one part.
    pub fn new(cut: &Arc<Cut>, threads: usize) -> Team<P> {
        let parts = cut.crossing.len();
        let each = parts.div_ceil(threads.max(1));
        let exchange = Arc::new(Exchange::new(parts, parts.div_ceil(each)));
        let worker = |first| Worker::new(first, Arc::clone(cut), Arc::clone(&exchange));
        let workers = (0..parts).step_by(each).skip(1).map(worker).collect();
        Team { cut: Arc::clone(cut), exchange, each, workers }
    }
}

impl<P: Probe + Send + 'static> Worker<P> {
    fn new(first: usize, cut: Arc<Cut>, exchange: Arc<Exchange<PartMessage>>) -> Worker<P> {
        let (orders, to_do) = channel::<(Crew<P>, Bounds)>();
        let (sender, done) = channel();
        let work = move || {
            while let Ok((mut parts, bounds)) = receive(&to_do) {
                let stop = Windows { parts: &mut parts, first, cut: &cut, exchange: &exchange, bounds }.run();
                if sender.send((parts, stop)).is_err() {
                    return;
                }
            }
        };
        Worker { orders: Some(orders), done, thread: Some(std::thread::spawn(work)) }
    }
}

impl<P> Worker<P> {
    fn give(&self, parts: Crew<P>, bounds: Bounds) {
        // A thread that has failed is detected when its parts are taken back.
        let _ = self.orders.as_ref().map(|orders| orders.send((parts, bounds)));
    }
    /// Takes the parts back. If the thread has panicked, the calling thread panics too.
    fn take_back(&mut self) -> Crew<P> {
        match receive(&self.done) {
            Ok((parts, _)) => parts,
            Err(RecvError) => match self.thread.take().map(JoinHandle::join) {
                Some(Err(panic)) => resume_unwind(panic),
                _ => unreachable!("a thread runs as long as it has orders"),
            },
        }
    }
}

impl<P> Drop for Worker<P> {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, the panic was passed on already, or this thread is panicking itself.
            let _ = thread.join();
        }
    }
}

/// Receives from another thread. Polls first, since the wait is rarely longer than a window.
fn receive<T>(from: &Receiver<T>) -> Result<T, RecvError> {
    for _ in 0..SPINS {
        match from.try_recv() {
            Ok(what) => return Ok(what),
            Err(TryRecvError::Disconnected) => return Err(RecvError),
            Err(TryRecvError::Empty) => std::hint::spin_loop(),
        }
    }
    from.recv()
}

impl<P: Probe + Send + 'static> Team<P> {
    /// Runs all parts from the present, which must be the same in all parts, until `until` at most, or for
    /// about `budget` events.
    pub fn run(&mut self, parts: &mut Crew<P>, until: Time, budget: u64) -> Stop {
        let done: u64 = parts.iter().map(|part| part.engine.events()).sum();
        let bounds = Bounds { until, most: done.saturating_add(budget) };
        for worker in self.workers.iter().rev() {
            let own = parts.len().div_ceil(self.each) - 1;
            worker.give(parts.split_off(own * self.each), bounds);
        }
        let stop = Windows { parts, first: 0, cut: &self.cut, exchange: &self.exchange, bounds }.run();
        for worker in &mut self.workers {
            parts.append(&mut worker.take_back());
        }
        stop.expect("the failure of another thread was passed on")
    }
}

/// The run of the parts of one thread, window by window.
struct Windows<'a, P> {
    parts: &'a mut [Part<Engine<Carried>, P>],
    /// The number of the first part.
    first: usize,
    cut: &'a Cut,
    exchange: &'a Exchange<PartMessage>,
    bounds: Bounds,
}

impl<P: Probe> Windows<'_, P> {
    /// Runs window after window. Returns `None` if another thread has failed.
    fn run(&mut self) -> Option<Stop> {
        let exchange = self.exchange;
        exchange.guard(|| {
            let mut out: Vec<PartMessage> = (0..exchange.parts()).map(|_| PartMessage::default()).collect();
            for turn in [0, 1].into_iter().cycle() {
                for n in 0..self.parts.len() {
                    self.post(turn, n, &mut out);
                }
                exchange.wait()?;
                for n in 0..self.parts.len() {
                    self.collect(turn, n);
                }
                if let Some(stop) = self.run_window(turn) {
                    self.parts.iter_mut().for_each(|part| part.engine.leave_windows());
                    return Some(stop);
                }
            }
            unreachable!("windows go on until they stop")
        })
    }

    /// Hands over the packets that arrive in other parts in the next window, and publishes the time of the
    /// next event of a part.
    fn post(&mut self, turn: Turn, n: usize, out: &mut [PartMessage]) {
        let Part { engine, world } = &mut self.parts[n];
        let number = self.first + n;
        let before = engine.now().after(self.cut.window).min(self.bounds.until);
        let mut next = Time::MAX;
        for &(link, to) in &self.cut.crossing[number] {
            let PartMessage { packets, blocks, .. } = &mut out[usize::from(to)];
            let from = packets.len();
            let rest = engine.give(world, link, before, |packet| packets.push((link, packet)));
            if rest < Time::MAX {
                next = next.min(rest.before(self.cut.window));
            }
            for (_, packet) in &packets[from..] {
                next = next.min(packet.arrival);
                packet.take_blocks(&mut world.ext, blocks);
            }
        }
        if let Some(share) = world.share.as_mut().filter(|share| !share.changes.is_empty()) {
            // Another part may start a flow for it, but learns of a change no sooner than a header would arrive.
            let learnt = share.changes.iter().map(|change| change.now.after(self.cut.window));
            next = learnt.min().map_or(next, |learnt| next.min(learnt));
            for (_, own) in out.iter_mut().enumerate().filter(|(to, _)| *to != number) {
                own.changes.extend_from_slice(&share.changes);
            }
            share.changes.clear();
        }
        let (next, open_until) = (next.min(engine.upcoming().at), world.open_until(engine.now()));
        self.exchange.publish(turn, number, PartStatus { next: next.0, open_until: open_until.0, events: engine.events() });
        for (to, own) in out.iter_mut().enumerate().filter(|(_, own)| !own.is_empty()) {
            own.special = world.special;
            self.exchange.leave(turn, [number, to], own);
        }
    }

    /// Takes the messages of other parts to a part.
    fn collect(&mut self, turn: Turn, n: usize) {
        let Part { engine, world } = &mut self.parts[n];
        self.exchange.take(turn, self.first + n, |PartMessage { packets, blocks, changes, special }| {
            world.special |= *special;
            changes.drain(..).for_each(|change| world.on_change(engine, &change));
            let mut blocks = blocks.drain(..);
            for (link, mut packet) in packets.drain(..) {
                packet.place_blocks(&mut world.ext, &mut blocks);
                engine.put(link, &packet);
            }
        });
    }

    /// Runs the next window, or returns why there is none. All threads come to the same result.
    fn run_window(&mut self, turn: Turn) -> Option<Stop> {
        let Bounds { until, most } = self.bounds;
        let (mut next, mut open_until, mut events) = (u64::MAX, 0, 0);
        for status in self.exchange.statuses(turn) {
            next = next.min(status.next);
            open_until = open_until.max(status.open_until);
            events += status.events;
        }
        let start = Time(next).max(self.parts[0].engine.now());
        let end = start.after(self.cut.window).min(until);
        let stop = if start >= until {
            Some(Stop::Until)
        } else if events >= most {
            Some(Stop::Budget)
        } else if Time(open_until) < end {
            Some(Stop::Careful)
        } else {
            None
        };
        for Part { engine, world } in &mut *self.parts {
            match stop {
                None => while engine.run(world, end, u64::MAX) != Pause::End {},
                Some(Stop::Until) if until < Time::MAX => engine.pass(until),
                Some(_) => {}
            }
        }
        stop
    }
}

/// Returns to each part the packets that it has handed over and that have not arrived. Must be called
/// before a [step].
pub fn recall<P: Probe>(parts: &mut [Part<Engine<Carried>, P>], cut: &Cut) {
    for from in 0..parts.len() {
        for &(link, to) in &cut.crossing[from] {
            let mut blocks = Vec::new();
            let far = &mut parts[usize::from(to)];
            let mut packets = far.engine.take_all(link);
            packets.iter().for_each(|packet| packet.take_blocks(&mut far.world.ext, &mut blocks));
            let near = &mut parts[from];
            let mut blocks = blocks.into_iter();
            packets.iter_mut().for_each(|packet| packet.place_blocks(&mut near.world.ext, &mut blocks));
            near.engine.take_back(link, &packets);
        }
    }
}

/// Returns the time of the next event of all parts.
pub fn next<P: Probe>(parts: &mut [Part<Engine<Carried>, P>]) -> Time {
    parts.iter_mut().map(|part| part.engine.upcoming().at).min().unwrap_or(Time::MAX)
}

/// Passes the flow changes of one part to all other parts.
fn spread<P: Probe>(parts: &mut [Part<Engine<Carried>, P>], from: usize) {
    let changes = parts[from].world.share.as_mut().map_or(Vec::new(), |share| std::mem::take(&mut share.changes));
    for change in changes {
        for (_, Part { engine, world }) in parts.iter_mut().enumerate().filter(|(to, _)| *to != from) {
            world.on_change(engine, &change);
        }
    }
}

/// Handles the next event of all parts. Returns whether the run may stop after this event; `None` if there
/// is no event before `until`, which all parts have then reached.
pub fn step<P: Probe>(parts: &mut [Part<Engine<Carried>, P>], cut: &Cut, until: Time) -> Option<bool> {
    let upcoming = parts.iter_mut().map(|part| part.engine.upcoming()).enumerate();
    let (at, next) = upcoming.min_by_key(|(_, next)| *next).expect("a run has parts");
    if next.at >= until {
        parts.iter_mut().filter(|_| until < Time::MAX).for_each(|part| part.engine.pass(until));
        return None;
    }
    let crosses = parts[at].engine.link_of(next).and_then(|link| Some((link, cut.end_elsewhere(link, at)?)));
    let Some((link, to)) = crosses else {
        let Part { engine, world } = &mut parts[at];
        let stopped = engine.run_one(world) == Pause::Stopped;
        spread(parts, at);
        if stopped {
            parts.iter_mut().for_each(|part| part.engine.pass(next.at));
        }
        return Some(stopped);
    };
    let Part { engine, world } = &mut parts[at];
    let Some(mut packet) = engine.take_first(world, link, next.at) else { return Some(false) };
    let mut blocks = Vec::new();
    packet.take_blocks(&mut world.ext, &mut blocks);
    let special = world.special;
    let Part { engine, world } = &mut parts[to];
    world.special |= special;
    packet.place_blocks(&mut world.ext, &mut blocks.into_iter());
    let stopped = engine.hand_over(world, link, next.at, &mut packet);
    spread(parts, to);
    if stopped {
        parts.iter_mut().for_each(|part| part.engine.pass(next.at));
    }
    Some(stopped)
}
