//! The event engine of the network simulator flowloom: links that carry packets, ports that serve
//! them, wakers (hosts and switches), and the order of all their events.
//!
//! A program that simulates uses the crate `flowloom-sim`, which fills the engine with hosts and
//! switches. This crate is for other worlds: implement [`World`], describe each link with a
//! [`LinkSpec`], and run them with an [`Engine`]. The types of packets are those of the world; see
//! [`Wire`].
//!
//! It moves packets and does not know protocols, queue disciplines or routes. One event is pending
//! per entity: the delivery of a link's first packet, a waker's next wake-up, the next global
//! action. The events are in a winner tree ([`tree`]); packets are stored by value in one ring per
//! link. At equal times global actions come first, then deliveries by link, then wakers by number.
//! A service start needs no event: a first-in first-out port computes departures at arrival
//! ([`link`]); every other port is served lazily: the next packet is chosen when the port is
//! touched, or when its last packet is delivered, and is the same packet that would have been
//! chosen at the start of service.

mod agenda;
pub mod cut;
mod engine;
mod lazy;
pub mod link;
mod nodes;
mod nth;
mod ring;
mod shaped;
mod spec;
mod stats;
pub mod tree;
mod windows;
mod world;

pub use base::Wire;
pub use engine::Engine;
pub use link::Sent;
pub use nodes::Nodes;
pub use ring::prefetch;
pub use spec::{Far, Fifo, LinkSpec};
pub use stats::LinkStats;
pub use world::{Driver, Links, Pause, World};
