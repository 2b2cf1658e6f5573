//! Failures as data: which links and switches go down and come up, and when.
//!
//! Every `[[event]]` names a cable or a node, or says how many to draw at random. A cable is down
//! while any event holds it down: a cable between two failed switches comes up only when both
//! switches are up. Random draws depend only on the seed and on the index of the event in the
//! scenario (stream `failure`), so that all systems lose the same links; a larger draw contains a
//! smaller draw.

pub mod change;
pub mod holds;
pub mod params;
pub mod target;

#[cfg(test)]
mod tests;

pub use change::Change;
pub use holds::Holds;
pub use params::{Event, Failures};
pub use target::Target;
