//! A barrier, at which threads wait for each other.

use super::sync::{AtomicU32, Condvar, Mutex, Ordering, SPINS, spin_loop};

/// A barrier that all of its threads pass together, any number of times. A waiting thread spins for a
/// short time and then sleeps: if it went on spinning and there were fewer cores than threads, it could
/// occupy the core that the other threads need.
#[repr(align(128))]
pub struct Barrier {
    threads: u32,
    arrived: AtomicU32,
    /// How often all threads have passed; [`BROKEN`] once a thread has failed and will not arrive. It
    /// changes only under the lock of `asleep`.
    passed: AtomicU32,
    /// Number of threads that sleep.
    asleep: Mutex<u32>,
    wake: Condvar,
}

/// The value of `passed` of a broken barrier; never a count of passes.
const BROKEN: u32 = u32::MAX;

impl Barrier {
    /// Creates a barrier for `threads` threads.
    pub fn new(threads: u32) -> Barrier {
        let zero = || AtomicU32::new(0);
        Barrier { threads, arrived: zero(), passed: zero(), asleep: Mutex::new(0), wake: Condvar::new() }
    }
    /// Waits for all threads. Afterwards each thread sees everything that any thread wrote before. Returns
    /// `None` if another thread has failed.
    pub fn wait(&self) -> Option<()> {
        let passed = self.passed.load(Ordering::Acquire);
        if passed == BROKEN {
            return None;
        }
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            return self.pass((passed + 1) % BROKEN);
        }
        for _ in 0..SPINS {
            let now = self.passed.load(Ordering::Acquire);
            if now != passed {
                return (now != BROKEN).then_some(());
            }
            spin_loop();
        }
        let mut asleep = self.asleep.lock().expect("no thread panics while it holds this lock");
        while self.passed.load(Ordering::Acquire) == passed {
            *asleep += 1;
            asleep = self.wake.wait(asleep).expect("no thread panics while it holds this lock");
            *asleep -= 1;
        }
        (self.passed.load(Ordering::Acquire) != BROKEN).then_some(())
    }
    /// Lets all threads go on. Returns `None` if a thread has failed.
    fn pass(&self, passed: u32) -> Option<()> {
        let asleep = self.asleep.lock().expect("no thread panics while it holds this lock");
        let broken = self.passed.load(Ordering::Relaxed) == BROKEN;
        if !broken {
            self.passed.store(passed, Ordering::Release);
        }
        if *asleep > 0 {
            self.wake.notify_all();
        }
        (!broken).then_some(())
    }
    /// Runs the work of a thread. If it panics, the other threads do not wait for it.
    pub fn guard<R>(&self, act: impl FnOnce() -> R) -> R {
        let breaks = Breaks(self);
        let result = act();
        std::mem::forget(breaks);
        result
    }
}

/// Breaks the barrier when dropped.
struct Breaks<'a>(&'a Barrier);

impl Drop for Breaks<'_> {
    fn drop(&mut self) {
        self.0.pass(BROKEN);
    }
}
