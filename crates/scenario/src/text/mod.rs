//! A scenario as text: the tree of its keys and values with their places, sweeps, and everything that is wrong with it.

pub mod diag;
pub mod part;
pub mod sweep;
pub mod tree;
