//! The memory that a network needs, estimated before the network is built.

use super::Size;
use crate::memory::{Memory, gigabytes};
use crate::text::diag::Item;
use crate::text::part::Part;
use fabric::routes::CELL_BYTES;

/// Returns the memory of a network that is built, in bytes: hosts, links in both directions, next
/// hops of all switches to the switches of hosts.
pub(crate) fn when_built(size: Size) -> u64 {
    let cells = size.switches.saturating_mul(size.switches.min(size.hosts));
    let links = size.cables.saturating_mul(2 * 1024);
    size.hosts.saturating_mul(4096).saturating_add(links).saturating_add(cells.saturating_mul(CELL_BYTES))
}

/// Returns the additional memory of a run, in bytes: ports, queues and packets of the links.
pub(crate) fn in_a_run(size: Size) -> u64 {
    size.cables.saturating_mul(2 * 3072)
}

/// Returns an error if the network, together with the other networks of the sweep, does not fit
/// into memory.
pub(crate) fn too_large(part: Part<'_>, size: Size, bytes: u64, memory: Memory) -> Option<Item> {
    (bytes > memory.bytes).then(|| {
        let Size { hosts, switches, cables } = size;
        let counts = format!("{hosts} hosts, {switches} switches and {cables} cables");
        let message = format!("a network of {counts} would need {} of memory", gigabytes(bytes));
        part.problem("kind", message, "too large", format!("{memory}: use fewer nodes, or raise the limit with `--memory`"))
    })
}
