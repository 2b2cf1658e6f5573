//! Mathematical functions with bit-identical results on every platform: those of `libm`, never
//! those of the system.
//!
//! For samplers and statistics only: no float is a time, a size or a sequence number.

pub use libm::{ceil, exp, floor, log as ln, pow, sqrt};
