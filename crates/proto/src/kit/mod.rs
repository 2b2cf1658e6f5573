//! Pieces that transports and policies are built of.

pub mod alpha;
pub mod burst;
pub mod credits;
pub mod demotion;
pub mod gaps;
pub mod hystart;
pub mod int;
pub mod late;
pub mod multipath;
pub mod order;
pub mod pace;
#[cfg(test)]
pub mod pipe;
pub mod published;
pub mod pull_pacer;
pub mod roce;
pub mod rtt;
pub mod scoreboard;
pub mod script;
pub mod tcp;
pub mod tokens;
pub mod traffic;
