//! Pieces that transports are built of.

pub mod alpha;
pub mod order;
pub mod pace;
#[cfg(test)]
pub mod pipe;
pub mod rtt;
pub mod scoreboard;
pub mod script;
pub mod tcp;
