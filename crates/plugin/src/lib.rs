//! Plug-ins of the network simulator flowloom: protocols in a file that the simulator loads at run time.
//!
//! The author of a plug-in implements a trait and exports it with a macro, as in the example below. The
//! crate has no dependencies. The simulator is the crate `flowloom-sim`.
//!
//! A plug-in belongs to a room, and exports a table of functions. The module of a room ([`congestion`],
//! [`transport`], [`policy`], [`qdisc`], [`router`]) has the table, the trait that an author implements,
//! and an example; [`host`] is what transports and policies share. [`abi`] is common to all tables, and
//! `include/flowloom.h` has the same for C. [`author`] makes a table from an implementation, and [`mock`]
//! is a simulator for its tests. [`library`] is the side of the simulator: it checks tables.
//!
//! ```
//! use flowloom_plugin::{Ack, Congestion, Declaration, Flow, Host, Loss, Values, Window};
//!
//! /// Half the growth of Reno.
//! struct Slow {
//!     smss: u64,
//! }
//!
//! impl Congestion for Slow {
//!     type State = ();
//!     const DECLARATION: Declaration = Declaration::new(c"slow", c"Half the growth of Reno");
//!     fn create(host: &Host, _values: Values<'_>) -> Result<Slow, String> {
//!         Ok(Slow { smss: host.smss })
//!     }
//!     fn open(&self, _flow: &Flow) {}
//!     fn on_ack(&self, _state: &mut (), window: &mut Window, ack: &Ack) {
//!         if ack.window_limited {
//!             window.cwnd += (self.smss * self.smss / window.cwnd / 2).max(1);
//!         }
//!     }
//!     fn on_loss(&self, _state: &mut (), _window: &Window, loss: &Loss) -> u64 {
//!         (loss.flight / 2).max(2 * self.smss)
//!     }
//! }
//!
//! flowloom_plugin::export!(congestion, Slow);
//! ```

pub mod abi;
pub mod author;
pub mod block;
pub mod congestion;
pub mod group;
pub mod host;
pub mod library;
pub mod mock;
pub mod policy;
pub mod qdisc;
pub mod router;
pub mod transport;

pub use abi::{Counter, Flow, Parameter};
pub use author::{Declaration, Values};
pub use congestion::{Ack, Calls, Congestion, Host, Loss, Window};
