//! Runs long work without progress reports on a thread of its own, so that a signal can end the
//! wait for it.

use sim::Continue;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Waits for `work` and calls `wait` several times a second. Returns `None` if `wait` returns
/// [`Continue::No`]: the work is then abandoned and ends with the process, so it must not write
/// anything.
pub fn patiently<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static, wait: &mut dyn FnMut() -> Continue) -> Option<T> {
    let (sender, receiver) = channel();
    let thread = std::thread::spawn(move || sender.send(catch_unwind(AssertUnwindSafe(work))));
    loop {
        match receiver.recv_timeout(Duration::from_millis(20)) {
            Ok(Ok(done)) => return Some(done),
            // A panic of the work continues on this thread.
            Ok(Err(panic)) => resume_unwind(panic),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => unreachable!("the thread {:?} sends before it ends", thread.thread().id()),
        }
        if wait() == Continue::No {
            return None;
        }
    }
}
