//! What is said about the points of a sweep that has ended.

use crate::text;
use std::collections::BTreeMap;
use tables::{PointManifest, Results};

/// Returns a note on the points that did not run in windows although they were wanted.
pub fn not_in_windows(points: &[PointManifest]) -> Option<String> {
    let mut others = points.iter().filter_map(|point| Some((&point.key.id, point.not_windows.as_ref()?)));
    let (id, why) = others.next()?;
    let more = match others.count() {
        0 => String::new(),
        n => format!(" and {} more", text::count(n, "point")),
    };
    Some(format!("note: `{id}`{more} ran by the tree, not in windows: {why}"))
}

/// Returns the error for finished points that are missing. `counted` has their manifests' hashes.
pub fn lost(results: &Results, counted: &BTreeMap<String, String>) -> Option<tables::Error> {
    const NAMED: usize = 10;
    let there: BTreeMap<&str, &str> = results.done().map(|point| (point.key.id.as_str(), point.manifest_hash.as_str())).collect();
    let gone = counted.iter().filter(|(id, hash)| there.get(id.as_str()) != Some(&hash.as_str()));
    let gone: Vec<String> = gone.map(|(id, _)| format!("`{id}`")).collect();
    let more = if gone.len() > NAMED { format!(" and {} more", gone.len() - NAMED) } else { String::new() };
    let named = format!("{}{more}", gone[..gone.len().min(NAMED)].join(", "));
    (!gone.is_empty()).then(|| tables::Error::Lost { path: results.path().to_owned(), points: gone.len(), named })
}
