//! The part of the network simulator flowloom that runs in switches, and the network itself.
//!
//! [`net`] describes hosts, switches and links; [`routes`] has the next hops of every destination. Each
//! entry of [`qdisc`] (queue disciplines), [`buffer`] (shared memory of switches), [`router`], [`agent`]
//! (logic of ports), [`controller`] and [`receiver`] is a module with `META`, `Params` and a machine.
//! [`ideal`] has ideal schedules of flows, for comparison.
//!
//! ```
//! use base::{Dur, HostId, Rate};
//! use fabric::{net::NetBuilder, routes::Routes};
//!
//! let mut net = NetBuilder::default();
//! let hosts = [net.host("a", None), net.host("b", None)];
//! let switch = net.switch("s", 1);
//! hosts.map(|host| net.cable(host, switch, Rate::from_gbps(10), Dur::from_us(1)));
//! let net = net.build();
//! let routes = Routes::new(&net, &[]);
//! let next = routes.candidates(switch, HostId(1));
//! assert_eq!((next.len(), net.link_name(next[0])), (1, "s->b".to_owned()));
//! // A packet of 1000 + 40 bytes is sent twice, each time over 1 us of cable.
//! assert_eq!(routes.ideal_fct(&net, HostId(0), HostId(1), 1000, 1460, 40), (Rate::from_gbps(10).tx_time(1040) + Dur::from_us(1)) * 2);
//! ```
//!
//! Sans-IO, like [`proto`], which has the part that runs on hosts. The crate `flowloom-sim` runs both in
//! virtual time.

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
