//! Nodes: hosts and switches with their ports, and the handling of the engine's events.

pub mod arrivals;
pub mod closing;
pub mod drops;
mod events;
mod forward;
pub mod held;
mod holding;
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
