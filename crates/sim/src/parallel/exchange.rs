//! The exchange between the parts of a run between two windows: each part leaves messages for the other
//! parts, all parts wait, and each part takes the messages that were left for it.
//!
//! Two consecutive meetings use separate storage. So one wait per window is enough: no part can be two
//! meetings ahead of another part.

use super::barrier::Barrier;
use super::sync::{AtomicU64, Mutex, Ordering};

/// The storage that a meeting uses: 0 or 1, alternately.
pub type Turn = usize;

/// The status that a part reports to all other parts before a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartStatus {
    /// The part has no event before this time, in ps.
    pub next: u64,
    /// A flow that ends in the part is open at least until this time, in ps.
    pub open_until: u64,
    /// Events that the part has handled.
    pub events: u64,
}

/// The words of a status, on separate cache lines.
#[repr(align(128))]
struct Words([AtomicU64; 3]);

/// The state that the threads of a run share. `M` is the type of a message from one part to another.
pub struct Exchange<M> {
    parts: usize,
    barrier: Barrier,
    /// By turn and part.
    statuses: [Vec<Words>; 2],
    /// By turn, by sender and receiver.
    messages: [Vec<Mutex<M>>; 2],
}

impl<M: Default> Exchange<M> {
    /// Creates the exchange of `parts` parts on `threads` threads.
    pub fn new(parts: usize, threads: usize) -> Exchange<M> {
        let words = || (0..parts).map(|_| Words([(); 3].map(|()| AtomicU64::new(0)))).collect();
        let empty = || (0..parts * parts).map(|_| Mutex::new(M::default())).collect();
        Exchange { parts, barrier: Barrier::new(threads as u32), statuses: [words(), words()], messages: [empty(), empty()] }
    }
    /// Returns the number of parts.
    pub fn parts(&self) -> usize {
        self.parts
    }
    /// Leaves a message for another part. `message` becomes the message of two meetings before, which that
    /// part has emptied.
    pub fn leave(&self, turn: Turn, [from, to]: [usize; 2], message: &mut M) {
        std::mem::swap(message, &mut *self.messages[turn][from * self.parts + to].lock().expect("no thread has failed"));
    }
    /// Calls `read` with each message that another part has left for part `to`. `read` must empty the
    /// message.
    pub fn take(&self, turn: Turn, to: usize, mut read: impl FnMut(&mut M)) {
        for from in (0..self.parts).filter(|from| *from != to) {
            read(&mut self.messages[turn][from * self.parts + to].lock().expect("no thread has failed"));
        }
    }
    /// Publishes the status of a part to all other parts.
    pub fn publish(&self, turn: Turn, part: usize, status: PartStatus) {
        let words = [status.next, status.open_until, status.events];
        self.statuses[turn][part].0.iter().zip(words).for_each(|(place, word)| place.store(word, Ordering::Relaxed));
    }
    /// Returns the status of each part.
    pub fn statuses(&self, turn: Turn) -> impl Iterator<Item = PartStatus> {
        self.statuses[turn].iter().map(|Words(words)| {
            let [next, open_until, events] = [0, 1, 2].map(|n: usize| words[n].load(Ordering::Relaxed));
            PartStatus { next, open_until, events }
        })
    }
    /// Waits for all threads. Returns `None` if another thread has failed.
    pub fn wait(&self) -> Option<()> {
        self.barrier.wait()
    }
    /// Runs the work of a thread. If it panics, the other threads do not wait for it.
    pub fn guard<R>(&self, act: impl FnOnce() -> R) -> R {
        self.barrier.guard(act)
    }
}
