//! Flows as fluids on the links of a network, with max-min fair rates. The flow engine uses them,
//! and so does the start of a run in a steady state.

mod ends;
mod flows;
mod rates;

pub use flows::{Flows, FluidPath};
