//! Offered load: wire bytes of first transmissions of data packets, as a fraction of a reference
//! rate.
//!
//! `rate of flows * mean wire bytes of a flow = load * reference`.

use base::params::{Param, Raw};
use base::units::parse_rate;
use base::{HostId, Rate};
use fabric::net::{HOST_TIER, Net, TOR_TIER};

/// The reference rate of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadRef {
    /// The sum of all hosts' NIC rates.
    Hosts,
    /// The sum of the rates from top-of-rack switches to other switches.
    Uplinks,
    /// This rate.
    Rate(Rate),
}

/// The average traffic of a workload: a total rate, divided equally among sources, and for each
/// source equally among its targets.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferedTraffic {
    /// The parameter that sets the total.
    pub key: &'static str,
    /// The total in bits per second, as wire bytes of first transmissions.
    pub bps: f64,
    /// Hosts that send.
    pub sources: Vec<HostId>,
    /// Hosts that receive: a source sends to all of them except itself.
    pub targets: Vec<HostId>,
    /// Whether a source sends only to hosts at other switches.
    pub across: bool,
}

impl Param for LoadRef {
    fn expects() -> String {
        "`hosts`, `uplinks` or a rate, like `10Gbps`".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Str(s) if s == "hosts" => Ok(LoadRef::Hosts),
            Raw::Str(s) if s == "uplinks" => Ok(LoadRef::Uplinks),
            Raw::Str(s) => match parse_rate(s) {
                Ok(Rate(0)) => Err("is 0: a reference rate must be positive".to_owned()),
                Ok(rate) => Ok(LoadRef::Rate(rate)),
                Err(_) => Err(format!("is not {}", Self::expects())),
            },
            _ => Err(format!("is not {}", Self::expects())),
        }
    }
    fn show(&self) -> String {
        match self {
            LoadRef::Hosts => "hosts".to_owned(),
            LoadRef::Uplinks => "uplinks".to_owned(),
            LoadRef::Rate(rate) => rate.to_string(),
        }
    }
}

impl PartialOrd for LoadRef {
    /// Compares rates only.
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        match (self, other) {
            (LoadRef::Rate(a), LoadRef::Rate(b)) => a.partial_cmp(b),
            _ => None,
        }
    }
}

impl LoadRef {
    /// Returns the reference rate in bits per second; zero if the network has no such links.
    pub fn bps(self, net: &Net) -> u64 {
        let sum = |rates: &mut dyn Iterator<Item = Rate>| rates.fold(0u64, |sum, r| sum.saturating_add(r.0));
        let tier = |node| net.node(node).tier;
        match self {
            LoadRef::Rate(rate) => rate.0,
            LoadRef::Hosts => sum(&mut net.links().iter().filter(|l| tier(l.from) == HOST_TIER).map(|l| l.rate)),
            LoadRef::Uplinks => {
                let up = net.links().iter().filter(|l| tier(l.from) == TOR_TIER && tier(l.to) != HOST_TIER);
                sum(&mut up.map(|l| l.rate))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::testing::build;

    #[test]
    fn references_count_one_direction() {
        let tree = build("single_tree", &[("uplink_rate", "2Gbps")]);
        assert_eq!((LoadRef::Hosts.bps(&tree), LoadRef::Uplinks.bps(&tree)), (9_000_000_000, 6_000_000_000));
        let star = build("star", &[]);
        assert_eq!((LoadRef::Hosts.bps(&star), LoadRef::Uplinks.bps(&star)), (80_000_000_000, 0));
        // Core links are not uplinks of top-of-rack switches.
        assert_eq!(LoadRef::Uplinks.bps(&build("fat_tree", &[])), 16_000_000_000);
        assert_eq!(LoadRef::Rate(Rate(5)).bps(&star), 5);
    }

    #[test]
    fn references_are_read_and_shown() {
        for text in ["hosts", "uplinks", "10Gbps"] {
            assert_eq!(LoadRef::parse(&Raw::Str(text.into())).unwrap().show(), text);
        }
        for bad in [Raw::Str("host".into()), Raw::Int(3), Raw::Str("0bps".into())] {
            assert!(LoadRef::parse(&bad).is_err());
        }
    }
}
