//! Fluid references: [`point`] serves the flows of a scenario by an [ideal schedule](fabric::ideal).
//! [`theory`] has closed forms of queueing theory, against which fluids and the simulator are tested.

pub mod point;
pub mod theory;
