//! What runs in switches: ports' queue disciplines, agents and routers, and the network they stand in.
//!
//! Sans-IO, like `proto`.

pub mod agent;
pub mod net;
pub mod port;
pub mod qdisc;
pub mod queue;
pub mod router;
pub mod routes;
