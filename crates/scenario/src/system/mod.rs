//! Systems: the slots that entries of rooms fill, the environments of the entries, and engines and
//! ideal references.

pub mod engine;
pub mod envs;
pub mod ideal;
pub mod slots;
