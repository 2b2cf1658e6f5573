//! What a checked scenario is: a draft of its sections, the points of its plan with their flows, and how both are written out.

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
pub mod unloaded;
