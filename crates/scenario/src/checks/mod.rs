//! What is wrong with a scenario as a whole, what may mislead, and what `check` tells of it.

pub mod check;
pub mod cut_off;
pub mod flow_engine;
pub mod notes;
pub mod queues;
pub mod short_queues;
pub mod warn;
