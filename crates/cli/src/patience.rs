//! Work that may be long and does not say how far it is: done on a thread of its own, so that a signal ends the wait for it.

use sim::Continue;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Waits for `work` and calls `wait` several times a second. `None`: `wait` says to stop. The work is then left to end with the process, so
/// that it must not write anything.
pub fn patiently<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static, wait: &mut dyn FnMut() -> Continue) -> Option<T> {
    let (sender, receiver) = channel();
    let thread = std::thread::spawn(move || sender.send(catch_unwind(AssertUnwindSafe(work))));
    loop {
        match receiver.recv_timeout(Duration::from_millis(20)) {
            Ok(Ok(done)) => return Some(done),
            // A panic goes on where the work was asked for.
            Ok(Err(panic)) => resume_unwind(panic),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => unreachable!("the thread {:?} sends before it ends", thread.thread().id()),
        }
        if wait() == Continue::No {
            return None;
        }
    }
}
