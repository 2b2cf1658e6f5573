//! Flows as fluids that an ideal schedule serves: infinitely small packets and instant control.
//!
//! [`link`] serves one link, exactly with exact numbers. [`network`] serves a network, in floating point. Which flows they serve is up to the
//! entries of the room [`ideal`](crate::ideal). [`max_min`] shares a network fairly.

pub mod flow;
pub mod link;
pub mod max_min;
pub mod network;
