//! A scenario as text: the tree of its keys and values with their places, sweeps, and diagnostics.

pub mod diag;
pub mod located;
pub mod part;
pub mod sweep;
pub mod tree;
