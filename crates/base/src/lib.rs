//! The basis of every crate of the network simulator flowloom: time, units, identifiers, maps, random
//! streams, parameters.
//!
//! A program that simulates needs [`Time`], [`Dur`], [`Rate`], [`Bytes`] and the other units, which are
//! whole picoseconds, bit/s and bytes, and the trait [`params::Params`], which gives every set of
//! parameters its defaults. The crate `flowloom-sim` exports this crate and runs simulations.
//!
//! [`registry!`] and [`params!`] declare the entries of a room, such as the transports, and their
//! parameters. Random numbers come from [`Streams`] that are named, so that they do not depend on each
//! other.
//!
//! ```
//! use base::{Dur, Rate, Time};
//! // 1500 bytes at 10 Gb/s take 1.2 us.
//! let sent = Time::ZERO + Rate::from_gbps(10).tx_time(1500);
//! assert_eq!(sent.since(Time::ZERO), Dur::from_ns(1200));
//! ```

pub mod chosen;
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
