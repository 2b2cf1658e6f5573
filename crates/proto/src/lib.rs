//! What runs on hosts: packets, flows, transports.
//!
//! Sans-IO: time comes in as an argument, packets and timers go out as values. No clock, socket, file, thread, log or global.

pub mod flow;
pub mod kit;
pub mod packet;
pub mod transport;

pub use flow::{Flow, FlowStats};
pub use packet::{Kind, Packet};
