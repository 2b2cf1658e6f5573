//! The event engine: links that carry packets, ports that serve them, hosts that wake, and the one order of all their events.
//!
//! It moves packets and knows nothing of protocols, queue disciplines or routes. One event is pending per entity: the delivery of a
//! link's first packet, a host's next wake-up, the next global action. They stand in a winner tree ([`tree`]); packets lie by value
//! in one ring per link. At equal times global actions come first, then deliveries by link, then hosts by id. A service
//! start needs no event: a first-in first-out port computes departures at arrival ([`link`]), every other port is served lazily: which
//! packet goes next is asked when the port is touched, or when its last packet is delivered, and is what it would have been then.

pub mod cut;
mod engine;
mod lazy;
pub mod link;
mod ring;
mod shaped;
mod spec;
mod stats;
pub mod tree;
mod world;

pub use base::Wire;
pub use engine::Engine;
pub use link::Sent;
pub use spec::{Far, Fifo, LinkSpec};
pub use stats::LinkStats;
pub use world::{Driver, Links, Pause, World};
