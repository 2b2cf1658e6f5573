//! A run in parts: the cut of the network, the threads that run the parts, and the exchange between
//! them.

mod barrier;
pub mod cut;
mod exchange;
pub mod part;
mod sync;
pub mod threads;
pub mod whole;
