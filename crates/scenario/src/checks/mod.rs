//! Errors and warnings about a scenario as a whole, and the comments that `check` prints after the
//! plan.

pub mod check;
pub mod cut_off;
pub mod flow_engine;
pub mod hosts;
pub mod no_path;
pub mod notes;
pub mod overtaking;
pub mod queues;
pub mod short_queues;
pub mod warn;
