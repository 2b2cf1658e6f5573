//! The parts of switches and of the network: ports with queue disciplines and agents, routers,
//! controllers, the network itself, and the receivers of hosts.
//!
//! Sans-IO, like `proto`.

pub mod agent;
pub mod bucket;
pub mod buffer;
pub mod controller;
pub mod flowlets;
pub mod fluid;
pub mod hosts;
pub mod ideal;
pub mod lengths;
pub mod net;
pub mod paths;
pub mod port;
pub mod qdisc;
pub mod queue;
pub mod receiver;
pub mod refused;
pub mod router;
pub mod routes;
pub mod routing;
pub mod schedule;
#[cfg(test)]
mod testing;
pub mod threshold;
