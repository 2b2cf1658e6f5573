//! Systems: the slots that entries of rooms fill, what each entry is told of the others, and the engines and ideals beside them.

pub mod engine;
pub mod envs;
pub mod ideal;
pub mod slots;
