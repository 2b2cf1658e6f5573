//! The pairs of hosts of long flows: a permutation, a pattern like `stride(4)`, or a list.
//!
//! Source: Cui and Qian, "DiFS: Distributed Flow Scheduling for Data Center Networks", 2013, section IV-A, after the benchmark of Al-Fares et
//! al., "Hedera", NSDI 2010.
//!
//! Assumed: the receivers of `random(x)` are drawn independently, so that two flows of a host may
//! have the same receiver.

use super::hosts;
use base::params::{Param, Raw, nearest};
use base::{Fraction, HostId, Rng};
use fabric::net::Net;
use std::collections::BTreeMap;

/// Pairs of hosts as a parameter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd)]
pub enum Pairs {
    /// `permutation`: every host sends to one other host and receives from one other host, at random.
    Permutation,
    /// `stride(i)`: host x sends to host x + i, modulo the number of hosts.
    Stride(u32),
    /// `staggered(p, q)`: a host sends to a host at its switch with probability p, to a host at
    /// another switch of its pod with probability q, else to a host of another pod.
    Staggered {
        /// Probability of a receiver at the same switch.
        rack: Fraction,
        /// Probability of a receiver at another switch of the same pod.
        pod: Fraction,
    },
    /// `random` or `random(x)`: every host has one flow, or x flows, each to any other host.
    Random(u32),
    /// A list like `h0->h3, h1->h4`.
    List(String),
}

const NAMES: [&str; 4] = ["permutation", "stride", "staggered", "random"];

impl Param for Pairs {
    fn expects() -> String {
        "`permutation`, `stride(4)`, `staggered(0.5, 0.3)`, `random`, `random(2)`, or pairs like `h0->h3, h1->h4`".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        let Raw::Str(text) = raw else { return Err("is not a pattern of pairs".to_owned()) };
        if text.contains("->") {
            return Ok(Pairs::List(text.clone()));
        }
        let (name, rest) = text.trim().split_once('(').map_or((text.trim(), None), |(name, rest)| (name.trim(), Some(rest)));
        let given: Vec<&str> = match rest.map(|rest| rest.strip_suffix(')')) {
            None => Vec::new(),
            Some(Some(values)) => values.split(',').map(str::trim).collect(),
            Some(None) => return Err("has no closing `)`".to_owned()),
        };
        let count = |digits: &str| digits.parse().map_err(|_| format!("has `{digits}`, which is not a whole number"));
        let share = |text: &str| Fraction::parse(&Raw::Str(text.to_owned())).map_err(|e| format!("has `{text}`, which {e}"));
        match (name, &given[..]) {
            ("permutation", []) => Ok(Pairs::Permutation),
            ("stride", [step]) => count(step).map(Pairs::Stride),
            ("staggered", [rack, pod]) => match (share(rack)?, share(pod)?) {
                (rack, pod) if rack.0.saturating_add(pod.0) > ALL => Err("has probabilities whose sum is above 1".to_owned()),
                (rack, pod) => Ok(Pairs::Staggered { rack, pod }),
            },
            ("random", []) => Ok(Pairs::Random(1)),
            ("random", [flows]) => count(flows).map(Pairs::Random),
            _ if NAMES.contains(&name) => Err(format!("has the wrong number of values for `{name}`")),
            _ => {
                let did = nearest(name, NAMES).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                Err(format!("is not a pattern of pairs{did}"))
            }
        }
    }
    fn show(&self) -> String {
        match self {
            Pairs::Permutation => "permutation".to_owned(),
            Pairs::Stride(step) => format!("stride({step})"),
            Pairs::Staggered { rack, pod } => format!("staggered({}, {})", rack.show(), pod.show()),
            Pairs::Random(1) => "random".to_owned(),
            Pairs::Random(flows) => format!("random({flows})"),
            Pairs::List(text) => text.clone(),
        }
    }
}

/// A probability of 1.
const ALL: u64 = 1_000_000_000;

/// An error: pairs that do not fit a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// What is wrong.
    pub message: String,
    /// What is allowed.
    pub hint: String,
}

impl Pairs {
    /// Returns the number of pairs in a network.
    pub fn count(&self, net: &Net) -> Result<u64, Misfit> {
        let n = net.hosts().len() as u64;
        let misfit = |message: String, hint: String| Err(Misfit { message, hint });
        if let Pairs::List(text) = self {
            let hint = format!("write {}", Self::expects());
            return hosts::pairs(net, text).map(|list| list.len() as u64).map_err(|message| Misfit { message, hint });
        }
        if n < 2 {
            return misfit(format!("`{}` needs at least two hosts", self.show()), "use a larger network".to_owned());
        }
        match self {
            Pairs::Stride(step) if u64::from(*step) % n == 0 => {
                let message = format!("`{}`: each of the {n} hosts would send to itself", self.show());
                misfit(message, format!("write `stride(1)` to `stride({})`", n - 1))
            }
            Pairs::Random(flows) if !(1..n).contains(&u64::from(*flows)) => {
                let message = format!("`{}`: a host can send to {} other hosts", self.show(), n - 1);
                misfit(message, format!("write `random(1)` to `random({})`", n - 1))
            }
            Pairs::Staggered { rack, pod } => match Places::of(net).missing([rack.0, pod.0, ALL - rack.0 - pod.0]) {
                Some((host, class)) => {
                    let message = format!("`{}`: `{}` has no host {}", self.show(), hosts::name_of(net, host), class.name());
                    misfit(message, format!("set the probability of a host {} to 0, or use another network", class.name()))
                }
                None => Ok(n),
            },
            Pairs::Random(flows) => Ok(n * u64::from(*flows)),
            _ => Ok(n),
        }
    }

    /// Draws the pairs, sorted by sender; pairs of a list keep their order.
    pub fn draw(&self, net: &Net, rng: &mut Rng) -> Result<Vec<(HostId, HostId)>, String> {
        self.count(net).map_err(|misfit| misfit.message)?;
        let n = net.hosts().len() as u32;
        let all = (0..n).map(HostId);
        Ok(match self {
            Pairs::List(text) => hosts::pairs(net, text)?,
            Pairs::Permutation => all.zip(derangement(n, rng)).collect(),
            Pairs::Stride(step) => all.map(|src| (src, HostId((src.0 + step % n) % n))).collect(),
            Pairs::Random(flows) => {
                let other = |src: HostId, rng: &mut Rng| HostId((src.0 + 1 + rng.below(u64::from(n) - 1) as u32) % n);
                all.flat_map(|src| (0..*flows).map(move |_| src)).map(|src| (src, other(src, rng))).collect()
            }
            Pairs::Staggered { rack, pod } => {
                let places = Places::of(net);
                let other = |src: HostId| {
                    let drawn = rng.below(ALL);
                    let class = match drawn {
                        _ if drawn < rack.0 => Class::Rack,
                        _ if drawn < rack.0 + pod.0 => Class::Pod,
                        _ => Class::Beyond,
                    };
                    places.draw(src, class, rng)
                };
                all.clone().zip(all.map(other)).collect()
            }
        })
    }
}

/// Draws a permutation of `n` hosts in which no host stays at its place.
fn derangement(n: u32, rng: &mut Rng) -> Vec<HostId> {
    let mut to: Vec<HostId> = (0..n).map(HostId).collect();
    // Shuffles (Fisher-Yates) until no host sends to itself: all derangements are equally likely;
    // 2.7 attempts on average.
    while to.iter().zip(0..).any(|(dst, src)| dst.0 == src) {
        for i in (1..n as usize).rev() {
            to.swap(i, rng.below(i as u64 + 1) as usize);
        }
    }
    to
}

/// The distance class of two hosts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Rack,
    Pod,
    Beyond,
}

impl Class {
    fn name(self) -> &'static str {
        match self {
            Class::Rack => "at its switch",
            Class::Pod => "at another switch of its pod",
            Class::Beyond => "in another pod",
        }
    }
}

/// By host: the ids of its switch and of its pod.
struct Places {
    rack: Vec<u32>,
    pod: Vec<u32>,
}

impl Places {
    fn of(net: &Net) -> Places {
        let rack = (0..net.hosts().len() as u32).map(|host| hosts::rack(net, HostId(host)).0).collect();
        Places { rack, pod: hosts::pods(net).into_iter().map(|pod| pod.0).collect() }
    }
    fn class(&self, a: HostId, b: HostId) -> Class {
        match () {
            () if self.rack[a.index()] == self.rack[b.index()] => Class::Rack,
            () if self.pod[a.index()] == self.pod[b.index()] => Class::Pod,
            () => Class::Beyond,
        }
    }
    /// Returns the first host without another host of a class whose probability is not 0, and the
    /// class. `probability` is in the order of [`Class`].
    fn missing(&self, probability: [u64; 3]) -> Option<(HostId, Class)> {
        let count = |numbers: &[u32]| {
            let mut found: BTreeMap<u32, usize> = BTreeMap::new();
            numbers.iter().for_each(|number| *found.entry(*number).or_default() += 1);
            found
        };
        let (racks, pods) = (count(&self.rack), count(&self.pod));
        let lacks = |host: usize| {
            let (rack, pod) = (racks[&self.rack[host]], pods[&self.pod[host]]);
            let others = [rack - 1, pod - rack, self.rack.len() - pod];
            let classes = [Class::Rack, Class::Pod, Class::Beyond];
            classes.into_iter().zip(probability.iter().zip(others)).find(|(_, (p, others))| **p > 0 && *others == 0)
        };
        (0..self.rack.len()).find_map(|host| lacks(host).map(|(class, _)| (HostId(host as u32), class)))
    }
    /// Draws a host of a class; all hosts of the class are equally likely.
    fn draw(&self, src: HostId, class: Class, rng: &mut Rng) -> HostId {
        let all = (0..self.rack.len() as u32).map(HostId);
        let fits: Vec<HostId> = all.filter(|&dst| dst != src && self.class(src, dst) == class).collect();
        fits[rng.below(fits.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::testing::build;

    fn read(text: &str) -> Result<Pairs, String> {
        Pairs::parse(&Raw::Str(text.to_owned()))
    }
    fn drawn(net: &Net, text: &str, seed: u64) -> Vec<(u32, u32)> {
        let rng = &mut Rng::stream(seed, "pairs", &[]);
        read(text).unwrap().draw(net, rng).unwrap().into_iter().map(|(src, dst)| (src.0, dst.0)).collect()
    }

    #[test]
    fn patterns_are_read_as_they_are_shown() {
        for text in ["permutation", "stride(4)", "staggered(0.5, 0.3)", "random", "random(2)", "h0->h3, h1->h4"] {
            assert_eq!(read(text).unwrap().show(), text);
        }
        assert_eq!(read(" stride( 4 ) "), Ok(Pairs::Stride(4)));
        for (text, why) in [
            ("strid(1)", "did you mean `stride`?"),
            ("stride", "the wrong number of values"),
            ("random(1, 2)", "the wrong number of values"),
            ("stride(4", "has no closing `)`"),
            ("stride(-1)", "has `-1`, which is not a whole number"),
            ("staggered(0.5, x)", "has `x`"),
            ("staggered(0.8, 0.3)", "whose sum is above 1"),
            ("h0", "is not a pattern of pairs"),
        ] {
            assert!(read(text).unwrap_err().contains(why), "{text}: {:?}", read(text));
        }
    }

    #[test]
    fn a_stride_wraps_around_the_hosts() {
        let net = build("fat_tree", &[]);
        let all = drawn(&net, "stride(4)", 1);
        assert_eq!(all[..2], [(0, 4), (1, 5)]);
        assert_eq!(all[12..], [(12, 0), (13, 1), (14, 2), (15, 3)]);
        assert_eq!(drawn(&net, "stride(20)", 1), all);
    }

    /// Shares of the classes within five standard deviations; receivers of a class are equally
    /// likely.
    #[test]
    fn staggered_receivers_are_as_near_as_the_probabilities_say() {
        let net = build("fat_tree", &[]);
        let mut classes = [0u32; 3];
        let mut to_h0 = [0u32; 16];
        for seed in 0..2000 {
            for (src, dst) in drawn(&net, "staggered(0.5, 0.3)", seed) {
                // Two hosts at an edge switch, four in a pod.
                let class = if src / 2 == dst / 2 { 0 } else { 1 + usize::from(src / 4 != dst / 4) };
                classes[class] += 1;
                to_h0[src as usize] += u32::from(dst == 0);
            }
        }
        for (found, share) in classes.iter().zip([0.5f64, 0.3, 0.2]) {
            let deviation = (32_000.0 * share * (1.0 - share)).sqrt();
            assert!((f64::from(*found) - 32_000.0 * share).abs() < 5.0 * deviation, "{classes:?}");
        }
        // From its neighbour half the time, from the rest of its pod 0.15 each, from beyond 0.2 / 12 each.
        for (src, found) in to_h0.iter().enumerate().skip(1) {
            let share: f64 = [0.5, 0.15, 0.2 / 12.0][usize::from(src > 1) + usize::from(src > 3)];
            let deviation = (2000.0 * share * (1.0 - share)).sqrt();
            assert!((f64::from(*found) - 2000.0 * share).abs() < 5.0 * deviation, "{to_h0:?}");
        }
    }

    #[test]
    fn random_receivers_are_any_other_host() {
        let net = build("star", &[("hosts", "4")]);
        let mut found = [[0u32; 4]; 4];
        for seed in 0..1000 {
            let flows = drawn(&net, "random(3)", seed);
            assert_eq!(flows.iter().map(|(src, _)| *src).collect::<Vec<_>>(), [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
            flows.iter().for_each(|(src, dst)| found[*src as usize][*dst as usize] += 1);
        }
        for (src, row) in found.iter().enumerate() {
            assert!(row.iter().enumerate().all(|(dst, n)| if dst == src { *n == 0 } else { (850..1150).contains(n) }), "{found:?}");
        }
        assert_ne!(drawn(&net, "random(3)", 1), drawn(&net, "random(3)", 2));
    }

    #[test]
    fn patterns_fit_the_network() {
        let tree = build("fat_tree", &[]);
        let star = build("star", &[("hosts", "4")]);
        let leaves = build("leaf_spine", &[]);
        let one = build("star", &[("hosts", "1")]);
        for (net, text, why, hint) in [
            (&tree, "stride(16)", "`stride(16)`: each of the 16 hosts would send to itself", "`stride(1)` to `stride(15)`"),
            (&tree, "stride(0)", "would send to itself", "`stride(15)`"),
            (&tree, "random(16)", "`random(16)`: a host can send to 15 other hosts", "`random(1)` to `random(15)`"),
            (&tree, "random(0)", "a host can send to 15 other hosts", "`random(1)`"),
            (&one, "permutation", "`permutation` needs at least two hosts", "larger"),
            (&one, "stride(1)", "needs at least two hosts", "larger"),
            (&star, "staggered(0.5, 0.3)", "`h0` has no host at another switch of its pod", "to 0, or use another"),
            (&star, "staggered(0.5, 0)", "`h0` has no host in another pod", "to 0, or use another"),
            (&leaves, "staggered(0.5, 0.3)", "no host at another switch of its pod", "to 0, or use another"),
            (&build("fat_tree", &[("k", "2")]), "staggered(0.5, 0)", "`h0` has no host at its switch", "at its switch to 0"),
        ] {
            let Misfit { message, hint: found } = read(text).unwrap().count(net).unwrap_err();
            assert!(message.contains(why) && found.contains(hint), "{text}: {message} / {found}");
        }
        assert_eq!(read("staggered(0.5, 0)").unwrap().count(&leaves), Ok(leaves.hosts().len() as u64));
        assert_eq!(read("staggered(1, 0)").unwrap().count(&star), Ok(4));
        assert_eq!(read("random(3)").unwrap().count(&star), Ok(12));
    }
}
