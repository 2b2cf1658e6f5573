//! Ideal schedules of flows as fluids: infinitely small packets and instant control.
//!
//! [`link`] serves one link, exactly if the numbers are exact. [`network`] serves a network, in
//! floating point. The entries of the room [`ideal`](crate::ideal) decide which flows they serve.
//! [`max_min`] shares a network fairly.

pub mod flow;
pub mod link;
pub mod max_min;
pub mod network;
