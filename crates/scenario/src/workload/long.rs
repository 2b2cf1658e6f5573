//! Long flows between fixed pairs, all running at the same time; optionally repeated at a period.
//!
//! Source: Al-Fares et al., SIGCOMM 2008, section 5.4. Patterns: [`super::pairs`]. The period: the background flows of STAM (Zang, Lan, Hu, Acta
//! Electronica Sinica 47(10), 2019), section 5.1.

use super::pairs::Pairs;
use super::size::Unit;
use super::{Draw, Drawn, Env, MAX_TIME, Picks, Workload};
use base::params::{Auto, Problem};
use base::registry::Meta;
use base::{Bytes, Dur, HostId, Offered, Streams, Time};

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "long flows between fixed pairs of hosts: a permutation, a pattern like stride(4), or a list",
    source: "permutation traffic of Al-Fares et al., SIGCOMM 2008 section 5.4; the patterns of DiFS (2013) section IV-A; the long flows of MERP section 5.1",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of long flows.
    pub struct Params {
        /// Senders and receivers. `permutation`: every host sends to one host and receives from one
        /// host, at random. `stride(i)`: host x sends to host x + i. `staggered(p, q)`: a host
        /// sends to a host at its switch with probability p, to a host at another switch of its pod
        /// with probability q, else to a host of another pod. `random(x)`: every host has x flows,
        /// each to any other host; `random` means x = 1. Or a list like `h0->h3, h1->h4`.
        pairs: Pairs = "permutation", "Al-Fares et al., SIGCOMM 2008 section 5.4";
        /// Size of each flow; `auto`: flows never finish, and the run needs an `end`.
        size: Auto<Bytes> = "auto" in Auto::Set(Bytes(1))..=Auto::Set(Bytes(1_000_000_000_000)), "permanent flows";
        /// Unit of the size: application bytes, or bytes on the wire.
        size_unit: Unit = "payload", "application view";
        /// Start of the first flow.
        start: Dur = "0s" in Dur::ZERO..=MAX_TIME, "flowloom: with the run";
        /// Time between the starts of consecutive flows, in the order of their sources.
        stagger: Dur = "0s" in Dur::ZERO..=MAX_TIME, "flowloom: all flows start at the same time";
        /// Number of flows of each pair, one after another.
        repeat: u32 = "1" in 1..=10_000_000, "a single flow", quiet;
        /// Time from the start of a pair's flow to the start of the pair's next flow.
        interval: Dur = "80ms" in Dur(1)..=MAX_TIME, "STAM section 5.1";
    }
}

/// Size of a flow that does not finish in a run: it takes 80 s at 100 Gbps, more than two hours at
/// 1 Gbps.
const PERMANENT: u64 = 1_000_000_000_000;

/// Returns the problems that depend on the rest of the scenario.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut add = |key, message: String, hint: &str| found.push(Problem { key, message, hint: hint.to_owned() });
    let count = params.pairs.count(env.net).unwrap_or_else(|misfit| {
        add("pairs", misfit.message, &misfit.hint);
        0
    });
    if params.size == Auto::Auto && env.end.is_none() {
        add(
            "size",
            "flows of size `auto` never finish, but the run has no `end`".to_owned(),
            "write `end = \"1s\"` at the top of the file, or a `size`",
        );
    }
    let first = params.stagger.0.saturating_mul(count).saturating_add(params.start.0);
    if first > MAX_TIME.0 {
        add("stagger", format!("the last flow would start after {MAX_TIME}"), "write a shorter `stagger`");
    } else if params.interval.0.saturating_mul(u64::from(params.repeat - 1)).saturating_add(first) > MAX_TIME.0 {
        add("repeat", format!("the last flow would start after {MAX_TIME}"), "write a smaller `repeat` or a shorter `interval`");
    }
    if params.size == Auto::Auto && params.repeat > 1 {
        add("repeat", format!("`{}`: flows of size `auto` never finish", params.repeat), "write a `size`");
    }
    found
}

/// The workload.
pub struct Long {
    params: Params,
    flows: u64,
}

impl Long {
    /// Creates the workload with these parameters.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let flows = params.pairs.count(env.net).unwrap_or(0);
        Long { params: params.clone(), flows: flows.saturating_mul(params.repeat.into()) }
    }
    /// Returns the parameters that have no effect with the values of the others.
    pub fn ignored(params: &Params) -> Vec<&'static str> {
        if params.repeat == 1 { vec!["interval"] } else { Vec::new() }
    }
}

impl Workload for Long {
    fn draw(&self, env: &Env<'_>, streams: &mut Streams) -> Result<Draw, String> {
        let p = &self.params;
        let pairs = p.pairs.draw(env.net, &mut streams.take("workload/pairs", &[env.index]))?;
        let size_bytes = env.payload(p.size.or(Bytes(PERMANENT)).0, p.size_unit);
        let flow = |(round, (i, &(src, dst))): (u32, (usize, &(HostId, HostId)))| {
            let start = Time::ZERO + p.start + p.stagger * i as u64 + p.interval * u64::from(round);
            Drawn { src, dst, size_bytes, start, deadline: None, group: None, connection: None, after: None }
        };
        Ok((0..p.repeat)
            .flat_map(|round| pairs.iter().enumerate().map(move |pair| (round, pair)))
            .map(flow)
            .collect::<Vec<_>>()
            .into())
    }
    fn flows(&self) -> u64 {
        self.flows
    }
    fn picks(&self, env: &Env<'_>) -> Option<Picks> {
        (!matches!(self.params.pairs, Pairs::List(_) | Pairs::Stride(_))).then(|| Picks::all(env))
    }
    fn offered(&self, env: &Env<'_>) -> Offered {
        let size = self.params.size.or(Bytes(PERMANENT)).0;
        Offered { load: None, sizes: vec![(env.payload(size, self.params.size_unit), 1.0)] }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;

    #[test]
    fn a_permutation_joins_every_host_once() {
        let bench = Bench::new("fat_tree", &[]);
        for seed in 0..20 {
            let flows = bench.draw("long", &[("size", "1GB"), ("stagger", "1ms")], seed);
            let mut to: Vec<u32> = flows.iter().map(|f| f.dst.0).collect();
            to.sort_unstable();
            assert_eq!(to, (0..16).collect::<Vec<_>>());
            assert_eq!((flows[3].src, flows[3].start), (HostId(3), Time(3_000_000_000)));
        }
        let one = bench.draw("long", &[("size", "1GB")], 1);
        assert_ne!(one, bench.draw("long", &[("size", "1GB")], 2));
        // Two hosts have only one derangement.
        let two = Bench::new("star", &[("hosts", "2")]).draw("long", &[("size", "1GB")], 1);
        assert_eq!(two.iter().map(|f| f.dst.0).collect::<Vec<_>>(), [1, 0]);
    }

    #[test]
    fn pairs_send_again_at_a_period() {
        let bench = Bench::new("star", &[]);
        let set = [("pairs", "h1->h0, h2->h0"), ("size", "10MB"), ("repeat", "3"), ("start", "1ms"), ("stagger", "2ms")];
        let starts = |set: &[(&'static str, &str)]| -> Vec<(u32, u64)> {
            bench.draw("long", set, 1).iter().map(|f| (f.src.0, f.start.0 / 1_000_000_000)).collect()
        };
        assert_eq!(starts(&set), [(1, 1), (2, 3), (1, 81), (2, 83), (1, 161), (2, 163)]);
        assert_eq!(starts(&[&set[..], &[("interval", "5ms")]].concat())[4], (1, 11));
        let refused = |set: &[(&'static str, &str)]| bench.read("long", &[&[("pairs", "h0->h1")], set].concat()).err().unwrap();
        assert!(
            refused(&[("size", "1MB"), ("repeat", "3"), ("interval", "600000s")]).contains("repeat: the last flow would start")
        );
        assert!(refused(&[("repeat", "2")]).contains("repeat: `2`: flows of size `auto` never finish"));
    }

    #[test]
    fn permanent_flows_need_an_end() {
        let bench = Bench::new("star", &[]);
        assert!(bench.read("long", &[]).err().unwrap().contains("no `end`"));
        let flows = bench.draw("long", &[("pairs", "h0->h1, h2->h1"), ("size", "5MB"), ("size_unit", "wire")], 1);
        assert_eq!(flows.iter().map(|f| f.size_bytes).collect::<Vec<_>>(), [5_000_000 - 3334 * 40; 2]);
        assert!(bench.read("long", &[("pairs", "h0->h9"), ("size", "1MB")]).err().unwrap().contains("no host"));
        assert!(bench.read("long", &[("size", "1MB"), ("stagger", "1000000s")]).err().unwrap().contains("would start after"));
    }
}
