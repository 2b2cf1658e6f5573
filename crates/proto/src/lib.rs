//! What runs on hosts: packets, flows, transports, policies.
//!
//! Sans-IO: time comes in as an argument, packets and timers go out as values. The crate uses no
//! clock, socket, file, thread, log or global.

pub mod contract;
pub mod flow;
pub mod hops;
pub mod host;
pub mod kit;
pub mod packet;
pub mod plugins;
pub mod policy;
pub mod policy_host;
pub mod policy_script;
pub mod ranges;
pub mod reassembly;
pub mod transport;

pub use contract::{Bursts, Cx, Env, Timeout, Timers, Transport};
pub use flow::{Flow, FlowStats};
pub use packet::{Kind, Packet};
