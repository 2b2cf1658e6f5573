//! Where threads wait for each other.

use super::sync::{AtomicU32, Condvar, Mutex, Ordering, SPINS, spin_loop};

/// A barrier that is passed by all of its threads together, as often as they like. A thread spins for a short time and then sleeps: one that spun
/// on would keep from its core what it waits for, if cores are few.
#[repr(align(128))]
pub struct Barrier {
    threads: u32,
    arrived: AtomicU32,
    /// How often all have passed; [`BROKEN`] once a thread has failed and will not come. Changes under the lock of `asleep`.
    passed: AtomicU32,
    /// Threads that sleep.
    asleep: Mutex<u32>,
    wake: Condvar,
}

/// No count of passes.
const BROKEN: u32 = u32::MAX;

impl Barrier {
    /// A barrier for so many threads.
    pub fn new(threads: u32) -> Barrier {
        let zero = || AtomicU32::new(0);
        Barrier { threads, arrived: zero(), passed: zero(), asleep: Mutex::new(0), wake: Condvar::new() }
    }
    /// Waits for all threads. All that any of them wrote before, all may read afterwards. `None`: another has failed.
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
        let mut asleep = self.asleep.lock().expect("nobody panics with this lock");
        while self.passed.load(Ordering::Acquire) == passed {
            *asleep += 1;
            asleep = self.wake.wait(asleep).expect("nobody panics with this lock");
            *asleep -= 1;
        }
        (self.passed.load(Ordering::Acquire) != BROKEN).then_some(())
    }
    /// Lets all go on. `None`: one has failed.
    fn pass(&self, passed: u32) -> Option<()> {
        let asleep = self.asleep.lock().expect("nobody panics with this lock");
        let broken = self.passed.load(Ordering::Relaxed) == BROKEN;
        if !broken {
            self.passed.store(passed, Ordering::Release);
        }
        if *asleep > 0 {
            self.wake.notify_all();
        }
        (!broken).then_some(())
    }
    /// Does what a thread does. If it panics, the others do not wait for it.
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
