//! The synchronisation primitives of the threads of a run. A test of [`crate::parallel::exchange`]
//! replaces them with those of a model checker.

pub use std::hint::spin_loop;
pub use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
pub use std::sync::{Condvar, Mutex};

/// How often a thread polls before it sleeps: some 50 µs, as long as the longest waits for a part that
/// has more to do in a window. Sleeping and waking up takes longer than most windows.
pub const SPINS: u32 = 4000;
