//! The limit of the memory of a scenario.

use std::fmt;

/// The limit of the memory of networks, flows and the results of a run, and the source of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The limit in bytes.
    pub bytes: u64,
    /// The source of the limit.
    pub source: Source,
}

/// The source of a memory limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The user.
    Given,
    /// The memory that is free on this machine.
    Free,
    /// A default, because the operating system does not report free memory.
    Assumed,
}

impl Memory {
    /// No limit.
    pub const UNLIMITED: Memory = Memory { bytes: u64::MAX, source: Source::Given };
}

impl Default for Memory {
    fn default() -> Memory {
        Memory { bytes: 16_000_000_000, source: Source::Assumed }
    }
}

/// Completes a sentence: `21.5 GB are free`.
impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = gigabytes(self.bytes);
        match self.source {
            Source::Given => write!(f, "{bytes} are allowed by `--memory`"),
            Source::Free => write!(f, "{bytes} are free"),
            Source::Assumed => write!(f, "at most {bytes} are allowed"),
        }
    }
}

/// Returns bytes as messages write them.
pub fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_says_where_it_comes_from() {
        let of = |source| Memory { bytes: 2_450_000_000, source }.to_string();
        assert_eq!(of(Source::Given), "2.5 GB are allowed by `--memory`");
        assert_eq!(of(Source::Free), "2.5 GB are free");
        assert_eq!(Memory::default().to_string(), "at most 16.0 GB are allowed");
    }
}
