//! A run in parts: how a network is cut, each part on a thread of its own, and where they meet.

mod barrier;
pub mod cut;
mod exchange;
pub mod part;
mod sync;
pub mod threads;
pub mod whole;
