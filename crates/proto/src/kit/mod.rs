//! Pieces that transports are built of.

pub mod order;
#[cfg(test)]
pub mod pipe;
pub mod ranges;
pub mod reassembly;
pub mod rtt;
pub mod scoreboard;
pub mod script;
pub mod tcp;
