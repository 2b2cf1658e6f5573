//! Flows as fluids on the links of a network, with max-min fair rates: what the flow engine moves, and what runs before a run that starts in
//! a steady state.

mod ends;
mod flows;
mod rates;

pub use flows::{Flows, FluidPath};
