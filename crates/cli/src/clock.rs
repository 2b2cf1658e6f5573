//! The wall clock and the memory of the machine. No other file reads them.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use chrono::{DateTime, SecondsFormat, Utc};
use scenario::Memory;
use scenario::memory::Source;
use std::time::{Instant, SystemTime};

/// A stop watch.
#[derive(Clone, Copy, Debug)]
pub struct Watch(Instant);

impl Watch {
    /// Starts a stop watch.
    pub fn start() -> Watch {
        Watch(Instant::now())
    }
    /// Returns the seconds since the start.
    pub fn seconds(self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// Returns the date and time in UTC, to the second.
pub fn now() -> String {
    DateTime::<Utc>::from(SystemTime::now()).to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Returns the peak memory of this process in bytes. `None` on systems without `/proc`, which only
/// Linux has.
pub fn peak_memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Returns the memory that a command may use: the limit given by the user, or else the free memory.
pub fn memory(given: Option<u64>) -> Memory {
    let found = given.map(|bytes| (bytes, Source::Given)).or_else(|| Some((free_memory_bytes()?, Source::Free)));
    found.map_or(Memory::default(), |(bytes, source)| Memory { bytes, source })
}

/// Returns the memory that the points of a plan may use. Without a limit given by the user, this is
/// the memory that is free now.
pub fn memory_now(plan: Memory) -> Memory {
    memory(Some(plan.bytes).filter(|_| plan.source == Source::Given))
}

/// Returns the free memory in bytes, within the limits of the control group and of the process.
/// `None` on systems without `/proc`: there a plan has no limit unless the user gives one.
fn free_memory_bytes() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let number = |path: &str| read(path)?.trim().parse::<u64>().ok();
    let left = |limit: &str, used: &str| Some(number(limit)?.saturating_sub(number(used)?));
    let groups = [
        left("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        left("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ];
    let info = read("/proc/meminfo")?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
    groups.into_iter().flatten().chain([kib * 1024]).chain(free_addresses()).min()
}

/// Returns how much the address space of the process may still grow, if it is limited (`ulimit -v`).
fn free_addresses() -> Option<u64> {
    let read = |path: &str, key: &str| {
        let text = std::fs::read_to_string(path).ok()?;
        let words = text.lines().find_map(|line| line.strip_prefix(key))?;
        words.split_whitespace().next()?.parse::<u64>().ok()
    };
    let limit = read("/proc/self/limits", "Max address space")?;
    Some(limit.saturating_sub(read("/proc/self/status", "VmSize:")? * 1024))
}
