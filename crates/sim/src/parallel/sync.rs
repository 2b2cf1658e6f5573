//! What threads meet by. A test of [`crate::parallel::exchange`] puts those of a model checker in their place.

pub use std::hint::spin_loop;
pub use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
pub use std::sync::{Condvar, Mutex};

/// How often a thread looks before it sleeps: some 50 µs, as long as the longest waits for a part that has more to do in a window. To sleep and to be
/// woken takes longer than most windows.
pub const SPINS: u32 = 4000;
