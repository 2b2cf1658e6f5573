//! The basis of every other crate: time, units, identifiers, maps, random streams, parameters.
//!
//! This crate knows nothing of networks, and depends on no other flowloom crate.

pub mod given;
pub mod header;
pub mod ids;
pub mod map;
pub mod math;
pub mod params;
pub mod plugins;
pub mod registry;
pub mod rng;
pub mod slab;
pub mod text;
pub mod time;
pub mod timers;
pub mod units;
pub mod wire;

pub use given::{Given, Offered, Offers};
pub use ids::{FlowId, HostId, JoinId, LinkId, NodeId, PortId};
pub use map::FlowMap;
pub use rng::{Rng, Streams};
pub use slab::Slab;
pub use time::{Dur, Time};
pub use timers::{TimerKey, Timers};
pub use units::{Bytes, Fraction, Limit, Rate, RateOr};
pub use wire::{Hold, Wire};
