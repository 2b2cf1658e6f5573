//! Mathematics with the same bits on every platform: the functions of `libm`, never those of the system.
//!
//! Samplers and statistics only. No float is a time, a size or a sequence number.

pub use libm::{ceil, exp, floor, log as ln, pow, sqrt};
