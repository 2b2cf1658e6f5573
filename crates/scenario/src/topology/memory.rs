//! How large a network may be: looked at before it is built.

use super::Size;
use crate::memory::{Memory, gigabytes};
use crate::text::diag::Item;
use crate::text::part::Part;
use fabric::routes::CELL_BYTES;

/// Memory that a network needs as soon as it is built: hosts, links in both directions, next hops of all switches to the switches of
/// hosts.
pub(crate) fn when_built(size: Size) -> u64 {
    let cells = size.switches.saturating_mul(size.switches.min(size.hosts));
    let links = size.cables.saturating_mul(2 * 1024);
    size.hosts.saturating_mul(4096).saturating_add(links).saturating_add(cells.saturating_mul(CELL_BYTES))
}

/// Memory that a run needs in addition: ports, queues and packets of the links.
pub(crate) fn in_a_run(size: Size) -> u64 {
    size.cables.saturating_mul(2 * 3072)
}

/// A network that would not fit, alone or with those of the same sweep.
pub(crate) fn too_large(part: Part<'_>, size: Size, bytes: u64, memory: Memory) -> Option<Item> {
    (bytes > memory.bytes).then(|| {
        let Size { hosts, switches, cables } = size;
        let counts = format!("{hosts} hosts, {switches} switches and {cables} cables");
        let message = format!("a network of {counts} would need {} of memory", gigabytes(bytes));
        part.problem("kind", message, "too large", format!("{memory}: take fewer nodes, or set another limit with `--memory`"))
    })
}
