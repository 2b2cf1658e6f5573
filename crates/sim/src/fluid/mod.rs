//! Fluid references: [`point`] serves the flows of a scenario by an [ideal schedule](fabric::ideal).
//! [`optimum`] searches the best schedule of a few flows on one link. [`theory`] has closed forms of
//! queueing theory, against which fluids and the simulator are tested.

pub mod optimum;
pub mod point;
pub mod theory;
