//! What a checked scenario is: a draft of its sections, the points of its plan with their flows, and how both are written out.

pub mod alone;
pub mod draft;
pub mod flows;
pub mod keys;
pub mod measure;
pub mod offered;
pub mod outline;
pub mod resolved;
pub mod seeds;
pub mod selection;
pub mod shown;
pub mod spec;
pub mod state;
pub mod steady;
