//! A checked scenario: the draft of its sections, the plan with its points and their flows, and
//! both as TOML.

pub mod draft;
pub mod flows;
pub mod keys;
pub mod measure;
pub mod offered;
pub mod outline;
pub mod render;
pub mod resolved;
pub mod seeds;
pub mod selection;
pub mod spec;
pub mod state;
pub mod steady;
pub mod tasks;
pub mod unloaded;
