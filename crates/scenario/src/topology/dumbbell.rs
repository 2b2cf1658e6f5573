//! Two groups of hosts with one link between them.
//!
//! ```text
//!    h0 \             / h2
//!        s0 ------- s1
//!    h1 /             \ h3
//! ```
//! Source: RFC 5166 section 3, and most of the literature.

use super::{Cables, Env, MAX_DELAY, MAX_RATE, MIN_DELAY, MIN_RATE, Size, Topology};
use base::params::{Auto, Problem};
use base::registry::Meta;
use base::{Dur, Rate};
use fabric::net::NetBuilder;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "two groups of hosts with one link between them",
    source: "RFC 5166 section 3, and most of the literature",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of a dumbbell.
    pub struct Params {
        ..cables: Cables {}
        /// Number of hosts at switch `s0`; they have the lowest numbers.
        left: u32 = "2" in 1..=1_000_000, "the smallest";
        /// Number of hosts at switch `s1`; they have the highest numbers.
        right: u32 = "2" in 1..=1_000_000, "the smallest";
        /// Rate of the hosts' links.
        rate: Rate = "10Gbps" in MIN_RATE..=MAX_RATE, "common hosts";
        /// Rate of the link between the switches; `auto`: equal to `rate`.
        bottleneck_rate: Auto<Rate> = "auto" in Auto::Set(MIN_RATE)..=Auto::Set(MAX_RATE), "shared by all";
        /// Propagation delay of every link.
        delay: Dur = "1us" in MIN_DELAY..=MAX_DELAY, "cables and processing";
    }
}

/// Returns no problems: all combinations of values are valid.
pub fn check(_params: &Params, _env: &Env<'_>) -> Vec<Problem> {
    Vec::new()
}

/// The dumbbell.
pub struct Dumbbell(Params);

impl Dumbbell {
    /// Creates the topology with these parameters.
    pub fn new(params: &Params, _env: &Env<'_>) -> Self {
        Dumbbell(params.clone())
    }
}

impl Topology for Dumbbell {
    fn size(&self) -> Size {
        let hosts = u64::from(self.0.left) + u64::from(self.0.right);
        Size { hosts, switches: 2, cables: hosts + 1 }
    }
    fn build(&self, net: &mut NetBuilder) {
        self.0.cables.set(net);
        let p = &self.0;
        let hosts: Vec<_> = (0..p.left + p.right).map(|i| net.host(format!("h{i}"), None)).collect();
        let ends = [net.switch("s0", 1), net.switch("s1", 1)];
        for (i, host) in hosts.into_iter().enumerate() {
            net.cable(host, ends[usize::from(i >= p.left as usize)], p.rate, p.delay);
        }
        net.cable(ends[0], ends[1], p.bottleneck_rate.or(p.rate), p.delay);
    }
}

#[cfg(test)]
mod tests {
    use crate::topology::testing::{build, links};

    #[test]
    fn one_link_joins_the_sides() {
        let net = build("dumbbell", &[("left", "1"), ("right", "2"), ("bottleneck_rate", "1Gbps"), ("delay", "5us")]);
        let links = links(&net);
        assert_eq!(links.iter().filter(|l| l.contains("1Gbps")).collect::<Vec<_>>(), ["s0->s1 1Gbps 5us", "s1->s0 1Gbps 5us"]);
        assert_eq!(links[..3], ["h0->s0 10Gbps 5us", "h1->s1 10Gbps 5us", "h2->s1 10Gbps 5us"]);
    }
}
