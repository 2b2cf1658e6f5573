//! Selections of `[sample]`: the ports and the flows that are recorded.

use base::params::{Param, Raw, nearest};
use base::{FlowId, LinkId};
use fabric::net::Net;
use std::collections::BTreeSet;

/// The value that selects everything.
const ALL: &str = "all";

/// A set of flows: all, or ids and ranges of ids. Ranges include both ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd)]
pub enum FlowSet {
    /// Every flow.
    #[default]
    All,
    /// Flows in these ranges, which are sorted and do not touch each other.
    Ranges(Vec<(u32, u32)>),
}

impl FlowSet {
    /// Returns whether a flow is in the set.
    pub fn has(&self, flow: FlowId) -> bool {
        match self {
            FlowSet::All => true,
            FlowSet::Ranges(ranges) => {
                let after = ranges.partition_point(|(first, _)| *first <= flow.0);
                after > 0 && flow.0 <= ranges[after - 1].1
            }
        }
    }
    /// Returns the largest id that is named.
    pub fn last(&self) -> Option<u32> {
        match self {
            FlowSet::All => None,
            FlowSet::Ranges(ranges) => ranges.last().map(|(_, last)| *last),
        }
    }
}

impl Param for FlowSet {
    fn expects() -> String {
        "flows by id, like `12, 15, 100..199`, or `all`".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        let wrong = || format!("is not {}", Self::expects());
        let text = match raw {
            Raw::Int(id) => id.to_string(),
            Raw::Str(text) if text.trim() == ALL => return Ok(FlowSet::All),
            Raw::Str(text) => text.clone(),
            _ => return Err(wrong()),
        };
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for part in text.split(',').map(str::trim) {
            let (first, last) = part.split_once("..").unwrap_or((part, part));
            let id = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
            let (first, last) = (id(first)?, id(last)?);
            if last < first {
                return Err(format!("has the range `{part}`, whose end is below its start"));
            }
            ranges.push((first, last));
        }
        ranges.sort_unstable();
        ranges.dedup_by(|next, before| {
            let joined = next.0 <= before.1.saturating_add(1);
            if joined {
                before.1 = before.1.max(next.1);
            }
            joined
        });
        Ok(FlowSet::Ranges(ranges))
    }
    fn show(&self) -> String {
        match self {
            FlowSet::All => ALL.to_owned(),
            FlowSet::Ranges(ranges) => {
                let range = |(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first}..{last}") };
                ranges.iter().map(range).collect::<Vec<_>>().join(", ")
            }
        }
    }
}

/// Returns the ports that a text names, or `None` for `all`. Names are separated by commas; `*`
/// matches any characters: `leaf0->*`.
pub fn ports(net: &Net, text: &str) -> Result<Option<Vec<LinkId>>, String> {
    if text.trim() == ALL {
        return Ok(None);
    }
    let names: Vec<String> = (0..net.links().len() as u32).map(|link| net.link_name(LinkId(link))).collect();
    let mut found = BTreeSet::new();
    for wanted in text.split(',').map(str::trim) {
        let matching = names.iter().zip(0..).filter(|(name, _)| matches(wanted, name)).map(|(_, link)| LinkId(link));
        let matching: Vec<LinkId> = matching.collect();
        if matching.is_empty() {
            let near = nearest(wanted, names.iter().map(String::as_str)).or(names.first().map(String::as_str));
            let near = near.map_or(String::new(), |near| format!("; a port is named after the ends of its link, like `{near}`"));
            return Err(format!("there is no port `{wanted}`{near}"));
        }
        found.extend(matching);
    }
    Ok(Some(found.into_iter().collect()))
}

/// Returns whether a name matches a pattern in which `*` matches any characters.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(head) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let Some(tail) = parts.pop() else { return true };
    for part in parts {
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    name.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_named_by_ids_and_ranges() {
        let read = |text: &str| FlowSet::parse(&Raw::Str(text.to_owned()));
        let set = read("15, 100..199, 12,13..14,150..250").unwrap();
        assert_eq!(set.show(), "12..15, 100..250");
        assert_eq!(read(&set.show()), Ok(set.clone()));
        let has: Vec<u32> = [0, 11, 12, 15, 16, 99, 100, 250, 251].into_iter().filter(|id| set.has(FlowId(*id))).collect();
        assert_eq!((has, set.last()), (vec![12, 15, 100, 250], Some(250)));
        assert_eq!(FlowSet::parse(&Raw::Int(7)), Ok(FlowSet::Ranges(vec![(7, 7)])));
        assert!(read("all").unwrap().has(FlowId(u32::MAX)));
        for wrong in ["", "a", "1..", "-1", "1;2", "4294967296"] {
            assert!(read(wrong).unwrap_err().starts_with("is not flows by id, like"), "{wrong}");
        }
        assert_eq!(read("9..3").unwrap_err(), "has the range `9..3`, whose end is below its start");
    }

    #[test]
    fn a_star_matches_any_characters() {
        for (pattern, name, wanted) in [
            ("leaf0->*", "leaf0->h3", true),
            ("leaf0->*", "leaf01->h3", false),
            ("*->h3", "leaf0->h3", true),
            ("*->h3", "leaf0->h33", false),
            ("leaf*->h*", "leaf12->h3", true),
            ("*", "anything", true),
            ("a*b*b", "ab", false),
            ("a*b*b", "abb", true),
            ("leaf0->h3", "leaf0->h3", true),
        ] {
            assert_eq!(matches(pattern, name), wanted, "{pattern} {name}");
        }
    }
}
