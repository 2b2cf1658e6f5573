//! Plug-ins of flowloom: protocols in a file that the simulator loads at run time.
//!
//! [`abi`] is the table of functions that a plug-in exports; `include/flowloom.h` is the same table
//! for C. [`author`] makes the table from an implementation of [`Congestion`]; [`example`] is a
//! complete plug-in. [`library`] is the side of the simulator: it checks a table, and calls it.
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
//!         if ack.window_limited != 0 {
//!             window.cwnd += (self.smss * self.smss / window.cwnd / 2).max(1);
//!         }
//!     }
//!     fn on_loss(&self, _state: &mut (), _window: &Window, loss: &Loss) -> u64 {
//!         (loss.flight / 2).max(2 * self.smss)
//!     }
//! }
//!
//! flowloom_plugin::export!(Slow);
//! ```

pub mod abi;
pub mod author;
pub mod example;
pub mod library;

pub use abi::{Ack, Counter, Flow, Host, Loss, Parameter, Table, Window};
pub use author::{Calls, Congestion, Declaration, Values};
