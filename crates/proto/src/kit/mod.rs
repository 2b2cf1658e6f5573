//! Pieces that transports are built of.

pub mod ranges;
pub mod reassembly;
pub mod rtt;
pub mod script;
