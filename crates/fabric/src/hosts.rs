//! Hosts written as text: `all`, `h0`, `h0..h3`.

use crate::net::Net;
use base::HostId;
use std::collections::BTreeSet;

/// Returns the host with this name, or else with this number.
pub fn host(net: &Net, name: &str) -> Result<HostId, String> {
    if let Some(found) = (0..net.hosts().len() as u32).map(HostId).find(|h| name_of(net, *h) == name) {
        return Ok(found);
    }
    if let Some(number) = name.parse().ok().filter(|n| (*n as usize) < net.hosts().len()) {
        return Ok(HostId(number));
    }
    if net.nodes().iter().any(|n| n.name == name) {
        return Err(format!("`{name}` is a switch"));
    }
    let (first, last) = (HostId(0), HostId(net.hosts().len().saturating_sub(1) as u32));
    match net.hosts() {
        [] => Err("the network has no hosts".to_owned()),
        _ => Err(format!("there is no host `{name}`: the hosts are `{}` to `{}`", name_of(net, first), name_of(net, last))),
    }
}

/// Returns a host's name.
pub fn name_of(net: &Net, host: HostId) -> &str {
    &net.node(net.hosts()[host.index()]).name
}

/// Returns a set of hosts in rising order: `all`, or names and ranges separated by commas; ranges
/// include both ends.
pub fn set(net: &Net, text: &str) -> Result<Vec<HostId>, String> {
    if text.trim() == "all" {
        return Ok((0..net.hosts().len() as u32).map(HostId).collect());
    }
    let mut found = BTreeSet::new();
    for part in text.split(',').map(str::trim) {
        let (first, last) = part.split_once("..").unwrap_or((part, part));
        let (first, last) = (host(net, first.trim())?, host(net, last.trim())?);
        if last < first {
            return Err(format!("the range `{part}` runs backwards"));
        }
        found.extend((first.0..=last.0).map(HostId));
    }
    Ok(found.into_iter().collect())
}
