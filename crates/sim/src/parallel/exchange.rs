//! Where the parts of a run meet between two windows: each leaves what it has for the others, all wait, and each takes what was left for it.
//!
//! What is left and what is read of one meeting lie apart from those of the next. So one wait a window is enough: no part can be two meetings
//! ahead of another.

use super::barrier::Barrier;
use super::sync::{AtomicU64, Mutex, Ordering};

/// Which of two neighbouring meetings: they take turns.
pub type Turn = usize;

/// What a part tells all others before a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slate {
    /// Nothing happens in it before this, in ps.
    pub next: u64,
    /// A flow that ends in it is open until this at least, in ps.
    pub open_until: u64,
    /// Events that it has handled.
    pub events: u64,
}

/// The words of a slate, on cache lines of their own.
#[repr(align(128))]
struct Words([AtomicU64; 3]);

/// All that the threads of a run share. `M` is what one part leaves for another.
pub struct Exchange<M> {
    parts: usize,
    barrier: Barrier,
    /// By turn and part.
    slates: [Vec<Words>; 2],
    /// By turn, by sender and receiver.
    messages: [Vec<Mutex<M>>; 2],
}

impl<M: Default> Exchange<M> {
    /// For so many parts on so many threads.
    pub fn new(parts: usize, threads: usize) -> Exchange<M> {
        let words = || (0..parts).map(|_| Words([(); 3].map(|()| AtomicU64::new(0)))).collect();
        let empty = || (0..parts * parts).map(|_| Mutex::new(M::default())).collect();
        Exchange { parts, barrier: Barrier::new(threads as u32), slates: [words(), words()], messages: [empty(), empty()] }
    }
    /// How many parts there are.
    pub fn parts(&self) -> usize {
        self.parts
    }
    /// Leaves something for another part, in exchange for what that part has emptied two meetings before.
    pub fn leave(&self, turn: Turn, [from, to]: [usize; 2], message: &mut M) {
        std::mem::swap(message, &mut *self.messages[turn][from * self.parts + to].lock().expect("no thread has failed"));
    }
    /// Shows what others have left for a part, sender by sender. It is to be emptied.
    pub fn take(&self, turn: Turn, to: usize, mut read: impl FnMut(&mut M)) {
        for from in (0..self.parts).filter(|from| *from != to) {
            read(&mut self.messages[turn][from * self.parts + to].lock().expect("no thread has failed"));
        }
    }
    /// Tells all others about a part.
    pub fn tell(&self, turn: Turn, part: usize, slate: Slate) {
        let words = [slate.next, slate.open_until, slate.events];
        self.slates[turn][part].0.iter().zip(words).for_each(|(place, word)| place.store(word, Ordering::Relaxed));
    }
    /// What all parts have told.
    pub fn slates(&self, turn: Turn) -> impl Iterator<Item = Slate> {
        self.slates[turn].iter().map(|Words(words)| {
            let [next, open_until, events] = [0, 1, 2].map(|n: usize| words[n].load(Ordering::Relaxed));
            Slate { next, open_until, events }
        })
    }
    /// Waits for all threads. `None`: another has failed.
    pub fn wait(&self) -> Option<()> {
        self.barrier.wait()
    }
    /// Does what a thread does. If it panics, the others do not wait for it.
    pub fn guard<R>(&self, act: impl FnOnce() -> R) -> R {
        self.barrier.guard(act)
    }
}
