//! Failures as data: which links and switches go down and come up, and when.
//!
//! Every `[[event]]` names a cable, a node, or how many to draw at random. What it takes down stays down while any event holds it
//! down: a cable between two dead switches needs both to come back. Random draws depend on the seed and the event's place in the
//! scenario only (stream `failure`), so that all systems lose the same links; of two counts the larger draw includes the smaller.

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
