//! The flow engine: the flows of a point as fluids with max-min fair rates, over the paths that the point's
//! routers and controllers give them.
//!
//! It is an engine, not an ideal schedule ([`crate::fluid`]): the network, routers, controllers, failures and
//! workloads are those of the packet engine, called in the same order and with the same delays, and the
//! outcome has the same rows.
//!
//! Source: max-min fairness of TCP as in Hedera (NSDI 2010), section 5, whose simulator has flows with rates
//! instead of packets.
//!
//! Model: at any time, from its start to its last byte, each flow has the max-min fair rate of its path and no
//! other rate: a transport has no windows, losses or slow start, and a port has no queue. Under a router that
//! spreads packets evenly over next hops, a flow loads each link of its shortest paths by a share of its rate.
//! Links carry wire bytes, headers included. The last byte of a flow arrives later than in the fluid. The
//! difference is the time by which the flow in an unloaded network takes longer than its bytes at the rate of
//! its slowest link. So a flow that is alone has slowdown 1.
//!
//! Assumed:
//! - ACKs take no capacity, and packets that switches make take none either. Packets of switches are real
//!   packets with propagation and serialisation delays, and never wait.
//! - A flow without a live path keeps its bytes and goes on when it has a path again. Nothing is lost. The same
//!   holds for a flow that is spread over links and would lose a part of its packets.
//! - Bytes count as delivered when they leave the sender, except for the last bytes of a flow.
//! - With `step`, a flow that starts or changes its path has no rate until rates are next computed.

mod moving;
mod rows;
mod run;
mod switches;
mod watch;
mod world;

pub use run::run;
