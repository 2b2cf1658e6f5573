//! The part of the network simulator flowloom that runs on hosts: packets, flows, transports, policies.
//!
//! Each transport in [`transport`] and each policy in [`policy`] is a module with `META` (what it is,
//! its source, what it needs), `Params` (every parameter with its default and the source of the default)
//! and a state machine that implements [`Transport`] or [`Policy`](policy::Policy). [`kit`] has their
//! building blocks: the TCP machine, pacing, retransmission timers, credits.
//!
//! Sans-IO: time comes in as an argument, packets and timers go out as values. The crate uses no
//! clock, socket, file, thread, log or global variable. A machine therefore runs without a network, on packets that
//! are made by hand; [`kit::script`] does this:
//!
//! ```
//! use base::params::Params as _;
//! use proto::kit::script::{self, Script};
//! use proto::{Kind, transport::dctcp};
//!
//! let machine = dctcp::Dctcp::new(&dctcp::Params::defaults(), &script::env());
//! let mut host = Script::new(machine, vec![script::flow(0, 100_000)]);
//! let sent = host.open(0);
//! assert_eq!((sent.len(), sent[0].kind, sent[0].wire_len), (1, Kind::SYN, 40));
//! ```
//!
//! The crate `flowloom-fabric` has the parts of switches, and `flowloom-sim` runs both in a network.

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
pub mod turns;

pub use contract::{Bursts, Cx, Env, SharedSequence, Timeout, Timers, Transport};
pub use flow::{Flow, FlowStats};
pub use packet::{Kind, Packet};
