//! References and, later, runs.

pub mod fluid;
