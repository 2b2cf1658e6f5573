//! Fluid references: ideal schedules of the same flows, with infinitely small packets and instant control.
//!
//! [`link`] serves one link, exactly with exact numbers. [`optimum`] searches the best schedule of a few flows on one link. [`network`] serves a network, in floating point; it is a reference, not an engine.
//! [`point`] serves the flows of a scenario.
//! [`theory`] has closed forms of queueing theory, against which both fluids and the simulator are tested.

pub mod flow;
pub mod link;
pub mod max_min;
pub mod network;
pub mod optimum;
mod order;
pub mod point;
pub mod theory;
