//! Nodes: hosts and switches with their ports, and what the engine's events do in them.

pub mod arrivals;
pub mod drops;
mod events;
mod forward;
pub mod host;
pub mod lossy;
mod nic;
mod nics;
pub mod open;
pub mod pausing;
pub mod receiving;
pub mod share;
pub mod waiting;
pub mod world;
