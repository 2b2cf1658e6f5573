//! How large a network may be: looked at before it is built.

use super::Size;
use crate::diag::Item;
use crate::part::Part;

/// Memory that a run may need by our estimate: 16 GB.
pub(crate) const MAX_BYTES: u64 = 16_000_000_000;
/// Memory that a network needs: hosts, links in both directions, next hops between switches.
pub(crate) fn memory_of(size: Size) -> u64 {
    let tables = size.switches.saturating_mul(size.switches).saturating_mul(32);
    let links = size.cables.saturating_mul(2 * 1024);
    size.hosts.saturating_mul(4096).saturating_add(links).saturating_add(tables)
}

/// A network that would not fit, alone or with those of the same sweep.
pub(crate) fn too_large(part: Part<'_>, size: Size, bytes: u64) -> Option<Item> {
    (bytes > MAX_BYTES).then(|| {
        let Size { hosts, switches, cables } = size;
        let counts = format!("{hosts} hosts, {switches} switches and {cables} cables");
        let message = format!("a network of {counts} would need {} of memory", gigabytes(bytes));
        part.problem("kind", message, "too large", format!("at most {} are allowed: take fewer nodes", gigabytes(MAX_BYTES)))
    })
}

/// Bytes as a message names them.
pub(crate) fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}
