//! The flow engine: the flows of a point as fluids with max-min fair rates, over the paths that its routers and controllers give them.
//!
//! It is an engine, not an ideal ([`crate::fluid`]): the network, routers, controllers, failures and workloads are those of the packet
//! engine, called in the same order and with the same delays, and the outcome has the same rows.
//!
//! Source: max-min fairness of TCP as in Hedera (NSDI 2010), section 5, whose simulator has flows with rates instead of packets.
//!
//! Model: at any time each flow has the max-min fair rate of its path, from its start to its last byte, and no other rate: a transport has no
//! windows, no losses and no slow start, a port no queue. Under a router that spreads packets evenly over next hops, a flow loads each link of its
//! shortest paths by a share of its rate. Links carry wire bytes, headers included. The last byte arrives as much later than
//! the fluid's as the flow alone takes longer than its bytes at the rate of its slowest link: so a lone flow has slowdown 1.
//!
//! Assumed:
//! - ACKs take no capacity, and packets that switches make take none either. These are real packets with the delays of propagation and
//!   serialisation, and never wait.
//! - A flow without a live path keeps its bytes and goes on when it has one. Nothing is lost. The same holds for a flow that is spread over links
//!   and would lose a part of its packets.
//! - Bytes count as delivered when they leave the sender, but for the last ones.
//! - With `step`, a flow that starts or moves has no rate until rates are next worked out.

mod moving;
mod rows;
mod run;
mod switches;
mod watch;
mod world;

pub use run::run;
