//! Independent flows that arrive at random: an open loop at a given load.
//!
//! `load * reference = rate of flows * mean wire bytes of a flow`; the mean is that of the law, not
//! of the sample. With heavy tails the mean of a sample is mostly lower: `normalize_load` changes
//! the arrival times so that the sample offers exactly the load.
//!
//! Assumed: gaps are rounded to whole picoseconds; the first flow arrives one gap after `start`; no size is above 1 TB.
//!
//! Source: the open-loop workloads of MERP (TPDS 2017) section 6.1, pFabric (SIGCOMM 2013) section 5.1 and others.

use super::hosts;
use super::load::{LoadRef, OfferedTraffic};
use super::size::{SizeLaw, Unit};
use super::sizes::Sizes;
use super::{Draw, Drawn, Env, MAX_TIME, Outside, Picks, Workload};
use base::params::{Auto, Problem};
use base::registry::Meta;
use base::{Dur, Fraction, HostId, Offered, Rate, Rng, Streams, Time, math};

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "independent flows at a given load: Poisson arrivals, random pairs, sizes from a law or a table",
    source: "open-loop workload of MERP section 6.1, pFabric section 5.1 and others",
    ..Meta::PLAIN
};

base::choice! {
    /// Source and destination of a flow.
    pub enum Pairs {
        /// A random source and a different random destination.
        Uniform = "uniform",
        /// A random source and a random destination at another switch.
        CrossRack = "cross_rack",
    }
}

base::params! {
    /// Parameters of Poisson arrivals.
    pub struct Params {
        ..sizes: Sizes {}
        /// Number of flows.
        flows: u32 = "10000" in 1..=100_000_000, "flowloom: ten flows lie above p99.9; MERP's figures need 30000";
        /// Offered load: wire bytes of first transmissions as a fraction of `load_ref`.
        load: Fraction = "0.5" in Fraction(1_000)..=Fraction(10_000_000_000), "flowloom: half load";
        /// Reference of the load: the NICs of all hosts, the uplinks of top-of-rack switches, or a
        /// rate.
        load_ref: LoadRef = "hosts", "pFabric and most others; `uplinks` fits MERP section 6.1";
        /// Source and destination of a flow.
        pairs: Pairs = "uniform", "MERP section 6.1 names none; all-to-all in pFabric section 5.1";
        /// Hosts that send: `all`, or names and ranges like `h0, h2..h5`.
        src: String = "all", "all-to-all";
        /// Hosts that receive.
        dst: String = "all", "all-to-all";
        /// Start of the arrivals.
        start: Dur = "0s" in Dur::ZERO..=MAX_TIME, "flowloom: with the run";
        /// Latest start of a flow; `auto`: `flows` flows start.
        until: Auto<Dur> = "auto" in Auto::Set(Dur::ZERO)..=Auto::Set(MAX_TIME), "the count ends the arrivals";
        /// Whether to scale the arrival times so that the sample offers exactly `load`.
        normalize_load: bool = "false", "the law's own mean sets the rate";
    }
}

/// Returns the problems that depend on the rest of the scenario.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let mut found = params.sizes.problems(env);
    let mut add = |key, message: String, hint: &str| found.push(Problem { key, message, hint: hint.to_owned() });
    if params.load_ref.bps(env.net) == 0 {
        let hint = "this network has one switch tier: write `load_ref = \"hosts\"` or a rate";
        add("load_ref", "`uplinks`: no top-of-rack switch of this network has a link to another switch".to_owned(), hint);
    }
    let sources = hosts::set(env.net, &params.src).map_err(|e| ("src", e));
    let targets = hosts::set(env.net, &params.dst).map_err(|e| ("dst", e));
    const HINT: &str = "write `all`, or names and ranges like `h0, h2..h5`";
    match (sources, targets) {
        (Ok(sources), Ok(targets)) => {
            let choice = Choice { env, pairs: params.pairs, sources, targets };
            if let Some(source) = choice.without_destination() {
                let name = hosts::name_of(env.net, source);
                let hint = "write more hosts in `dst`, or use a larger network";
                add("dst", format!("host `{name}` has no destination"), hint);
            }
        }
        (a, b) => [a.err(), b.err()].into_iter().flatten().for_each(|(key, message)| add(key, message, HINT)),
    }
    if let Auto::Set(until) = params.until
        && until <= params.start
    {
        add(
            "until",
            format!("`{until}` is not after `start`, `{}`", params.start),
            "write a later time, or remove `until` to start all flows",
        );
    }
    if params.normalize_load && params.until != Auto::Auto {
        let message = "`true` moves arrivals, also beyond `until`".to_owned();
        add("normalize_load", message, "write only one of `normalize_load` and `until`");
    }
    if found.is_empty() {
        found.extend(too_long(params, env));
    }
    found
}

/// Returns a problem if the last flow would start after [`MAX_TIME`].
fn too_long(params: &Params, env: &Env<'_>) -> Option<Problem> {
    let gap = mean_gap_ps(params, env, &params.sizes.law(env).ok()?);
    let span = gap * f64::from(params.flows) + params.start.0 as f64;
    (params.until == Auto::Auto && span > MAX_TIME.0 as f64).then(|| Problem {
        key: "load",
        message: format!(
            "`{}` spreads {} flows over {:.0} s, but at most {MAX_TIME} are allowed",
            params.load,
            params.flows,
            span * 1e-12
        ),
        hint: "raise `load`, write fewer `flows`, or write an `until`".to_owned(),
    })
}

/// Returns the mean time between arrivals.
fn mean_gap_ps(params: &Params, env: &Env<'_>, law: &SizeLaw) -> f64 {
    let offered = params.load.0 as f64 * params.load_ref.bps(env.net) as f64;
    env.packets.mean_wire(law, params.sizes.size_unit) * 8e12 * 1e9 / offered
}

/// Poisson arrivals.
pub struct Poisson(Params);

impl Poisson {
    /// Creates the workload with these parameters.
    pub fn new(params: &Params, _env: &Env<'_>) -> Self {
        Poisson(params.clone())
    }
    /// Returns the parameters that have no effect with the values of the others.
    pub fn ignored(params: &Params) -> Vec<&'static str> {
        params.sizes.ignored()
    }
}

impl Workload for Poisson {
    fn draw(&self, env: &Env<'_>, streams: &mut Streams) -> Result<Draw, String> {
        let p = &self.0;
        let mut source = Source::new(p, env, streams, "workload")?;
        let until = p.until.or(MAX_TIME);
        let mut flows = Vec::new();
        let mut now = p.start;
        for _ in 0..p.flows {
            now = source.next(now);
            if now > until && p.until != Auto::Auto {
                break;
            }
            if now > MAX_TIME {
                return Err(format!(
                    "flow {} of `poisson` would start after {MAX_TIME}: raise `load` or write fewer `flows`",
                    flows.len()
                ));
            }
            flows.push(source.flow(now));
        }
        if p.normalize_load {
            self.normalize(env, &mut flows, p.load_ref.bps(env.net) as f64)?;
        }
        Ok(flows.into())
    }
    fn arrivals(&self, env: &Env<'_>, streams: &mut Streams, when: &Outside) -> Result<Option<Vec<Drawn>>, String> {
        if self.0.start > Dur::ZERO || self.0.until != Auto::Auto {
            return Ok(None);
        }
        let mut source = Source::new(&self.0, env, streams, when.name)?;
        let mut flows = Vec::new();
        let mut now = source.next(Dur(when.from.0));
        while now.0 < when.until.0 {
            flows.push(source.flow(now));
            now = source.next(now);
        }
        Ok(Some(flows))
    }
    fn flows(&self) -> u64 {
        self.0.flows.into()
    }
    fn files(&self) -> Vec<String> {
        self.0.sizes.files()
    }
    fn reference(&self, env: &Env<'_>) -> Option<(Rate, Time)> {
        Some((Rate(self.0.load_ref.bps(env.net)), Time(self.0.start.0)))
    }
    fn traffic(&self, env: &Env<'_>) -> Option<OfferedTraffic> {
        let p = &self.0;
        let bps = p.load.0 as f64 / 1e9 * p.load_ref.bps(env.net) as f64;
        let (sources, targets) = (hosts::set(env.net, &p.src).ok()?, hosts::set(env.net, &p.dst).ok()?);
        Some(OfferedTraffic { key: "load", bps, sources, targets, across: p.pairs == Pairs::CrossRack })
    }
    fn picks(&self, env: &Env<'_>) -> Option<Picks> {
        let OfferedTraffic { sources, targets, across, .. } = self.traffic(env)?;
        Some(Picks { sources, targets, across })
    }
    fn offered(&self, env: &Env<'_>) -> Offered {
        let sizes = self.0.sizes.law(env).map_or(Vec::new(), |law| env.packets.points(&law, self.0.sizes.size_unit));
        Offered { load: Some(self.0.load), sizes }
    }
}

impl Poisson {
    /// Scales the arrival times so that the wire bytes of all flows, divided by the time to the
    /// last arrival, are exactly the load.
    fn normalize(&self, env: &Env<'_>, flows: &mut [Drawn], reference: f64) -> Result<(), String> {
        let start = Time(self.0.start.0);
        let span = flows.last().map_or(Dur::ZERO, |f| f.start.since(start)).0 as f64;
        let bytes: f64 = flows.iter().map(|f| env.packets.wire(f.size_bytes) as f64).sum();
        let wanted = bytes * 8e12 * 1e9 / (self.0.load.0 as f64 * reference);
        if span == 0.0 {
            return Ok(());
        }
        if wanted > MAX_TIME.0 as f64 {
            return Err(format!("`poisson` would last longer than {MAX_TIME}: raise `load` or write fewer `flows`"));
        }
        for flow in flows {
            let since = flow.start.since(start).0 as f64;
            flow.start = start + Dur(math::floor(since * (wanted / span) + 0.5) as u64);
        }
        Ok(())
    }
}

/// Draws one flow after another from random streams.
struct Source<'a> {
    env: &'a Env<'a>,
    unit: Unit,
    law: SizeLaw,
    mean_gap_ps: f64,
    choice: Choice<'a>,
    arrivals: Rng,
    sizes: Rng,
    pairs: Rng,
}

impl<'a> Source<'a> {
    fn new(p: &Params, env: &'a Env<'a>, streams: &mut Streams, name: &str) -> Result<Source<'a>, String> {
        let [arrivals, sizes, pairs] =
            ["arrivals", "sizes", "pairs"].map(|what| streams.take(&format!("{name}/{what}"), &[env.index]));
        let law = p.sizes.law(env)?;
        let choice = Choice { env, pairs: p.pairs, sources: hosts::set(env.net, &p.src)?, targets: hosts::set(env.net, &p.dst)? };
        Ok(Source { env, unit: p.sizes.size_unit, mean_gap_ps: mean_gap_ps(p, env, &law), law, choice, arrivals, sizes, pairs })
    }
    /// Draws the time of the next arrival after an arrival at `now`.
    fn next(&mut self, now: Dur) -> Dur {
        let gap = math::floor(self.arrivals.exponential(self.mean_gap_ps) + 0.5);
        Dur(now.0.saturating_add(gap as u64))
    }
    fn flow(&mut self, now: Dur) -> Drawn {
        let size_bytes = self.env.payload(self.law.draw(&mut self.sizes), self.unit);
        let (src, dst) = self.choice.draw(&mut self.pairs);
        Drawn { src, dst, size_bytes, start: Time(now.0), deadline: None, group: None, connection: None, after: None }
    }
}

/// The choice of source and destination of a flow.
struct Choice<'a> {
    env: &'a Env<'a>,
    pairs: Pairs,
    sources: Vec<HostId>,
    targets: Vec<HostId>,
}

impl Choice<'_> {
    fn allows(&self, src: HostId, dst: HostId) -> bool {
        src != dst && (self.pairs == Pairs::Uniform || !hosts::same_rack(self.env.net, src, dst))
    }
    /// Returns a source without a possible destination, if any.
    fn without_destination(&self) -> Option<HostId> {
        self.sources.iter().copied().find(|s| !self.targets.iter().any(|d| self.allows(*s, *d)))
    }
    /// Draws a random source, then a random destination among those that the source may have.
    fn draw(&self, rng: &mut Rng) -> (HostId, HostId) {
        let pick = |rng: &mut Rng, set: &[HostId]| set[rng.below(set.len() as u64) as usize];
        let src = pick(rng, &self.sources);
        loop {
            let dst = pick(rng, &self.targets);
            if self.allows(src, dst) {
                return (src, dst);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cdf::SHIPPED;
    use super::super::testing::Bench;
    use super::*;

    fn wire(bench: &Bench, flows: &[Drawn]) -> f64 {
        flows.iter().map(|f| bench.env().packets.wire(f.size_bytes) as f64).sum()
    }

    #[test]
    fn arrivals_offer_the_load() {
        let bench = Bench::new("single_tree", &[]);
        for (load, load_ref, reference) in [("0.8", "uplinks", 3e9), ("0.2", "hosts", 9e9), ("1.5", "4Gbps", 4e9)] {
            let set = [("flows", "40000"), ("load", load), ("load_ref", load_ref), ("size", "exponential")];
            let flows = bench.draw("poisson", &set, 1);
            let span = flows.last().unwrap().start.as_secs_f64();
            let realised = wire(&bench, &flows) * 8.0 / span / reference;
            let nominal: f64 = load.parse().unwrap();
            assert!((realised / nominal - 1.0).abs() < 0.03, "{load} {load_ref}: {realised}");
        }
    }

    #[test]
    fn gaps_are_exponential() {
        let bench = Bench::new("star", &[]);
        let flows = bench.draw("poisson", &[("flows", "20000"), ("size", "fixed"), ("load", "0.4")], 2);
        let mut before = 0;
        let mut gaps: Vec<f64> = flows.iter().map(|f| (f.start.0 - std::mem::replace(&mut before, f.start.0)) as f64).collect();
        gaps.sort_by(f64::total_cmp);
        // 1.5 MB in 1028 packets over 80 Gbps at load 0.4.
        let mean = (1_500_000.0 + 1028.0 * 40.0) * 8e12 / (0.4 * 80e9);
        let d = gaps.iter().enumerate().map(|(i, g)| ((i + 1) as f64 / 20_000.0 - (1.0 - math::exp(-g / mean))).abs());
        let d = d.fold(0.0, f64::max) * 20_000f64.sqrt();
        assert!(d < 1.95, "Kolmogorov-Smirnov {d}");
    }

    #[test]
    fn pairs_are_uniform_over_different_hosts() {
        let bench = Bench::new("single_tree", &[]);
        let flows = bench.draw("poisson", &[("flows", "72000")], 3);
        let mut counts = [[0u32; 9]; 9];
        flows.iter().for_each(|f| counts[f.src.index()][f.dst.index()] += 1);
        // Chi-square with 71 degrees of freedom: below 120 in 999 of 1000 cases.
        let off = (0..81).filter(|i| i / 9 != i % 9).map(|i| f64::from(counts[i / 9][i % 9]) - 1000.0);
        let chi: f64 = off.map(|d| d * d / 1000.0).sum();
        assert!(chi < 120.0, "{chi}");
        let cross = bench.draw("poisson", &[("flows", "2000"), ("pairs", "cross_rack")], 3);
        assert!(cross.iter().all(|f| f.src.0 / 3 != f.dst.0 / 3));
        let some = bench.draw("poisson", &[("flows", "2000"), ("src", "h0..h1"), ("dst", "h1, h5")], 3);
        let mut seen: Vec<(u32, u32)> = some.iter().map(|f| (f.src.0, f.dst.0)).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, [(0, 1), (0, 5), (1, 5)]);
    }

    #[test]
    fn normalized_samples_offer_the_load_exactly() {
        let bench = Bench::new("single_tree", &[]);
        let set = [("flows", "3000"), ("load", "0.7"), ("shape", "1.05"), ("start", "5ms"), ("normalize_load", "true")];
        let flows = bench.draw("poisson", &set, 4);
        let span = flows.last().unwrap().start.as_secs_f64() - 5e-3;
        let realised = wire(&bench, &flows) * 8.0 / span / 9e9;
        assert!((realised - 0.7).abs() < 1e-9, "{realised}");
        let plain = bench.draw("poisson", &set[..4], 4);
        assert!(flows.iter().zip(&plain).all(|(a, b)| (a.size_bytes, a.src, a.dst) == (b.size_bytes, b.src, b.dst)));
    }

    #[test]
    fn until_cuts_the_tail() {
        let bench = Bench::new("single_tree", &[]);
        let all = bench.draw("poisson", &[("flows", "500")], 5);
        let cut = bench.draw("poisson", &[("flows", "500"), ("until", "100ms")], 5);
        assert!(!cut.is_empty() && cut.len() < all.len());
        assert_eq!(cut[..], all[..cut.len()]);
        assert!(all[cut.len()].start > Time(Dur::from_ms(100).0));
    }

    #[test]
    fn load_and_size_law_are_plain_data() {
        let bench = Bench::new("star", &[]);
        let offered = |set: &[(&'static str, &str)]| bench.read("poisson", set).unwrap().offered(&bench.env());
        let shipped = SHIPPED.iter().find(|s| s.name == "datamining").unwrap().table();
        let table = offered(&[("load", "0.7"), ("size", "cdf"), ("cdf", "datamining")]);
        assert_eq!((table.load, table.sizes), (Some(Fraction(700_000_000)), shipped.points()));
        // The median of an exponential law is mean ln 2.
        let sizes = offered(&[("size", "exponential"), ("mean", "100KB")]).sizes;
        assert_eq!(sizes.iter().find(|(_, cum)| *cum == 0.5), Some(&(69_315, 0.5)));
        let wire = offered(&[("size", "fixed"), ("mean", "3000B"), ("size_unit", "wire")]);
        assert_eq!(wire.sizes, [(2920, 1.0)]);
    }

    #[test]
    fn other_parameters_do_not_change_the_sizes() {
        let bench = Bench::new("single_tree", &[]);
        let sizes =
            |set: &[(&'static str, &str)]| -> Vec<u64> { bench.draw("poisson", set, 6).iter().map(|f| f.size_bytes).collect() };
        let first = sizes(&[("flows", "100")]);
        assert_eq!(first, sizes(&[("flows", "100"), ("load", "0.9"), ("pairs", "cross_rack")]));
        assert_eq!(first[..50], sizes(&[("flows", "50")]));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let bench = Bench::new("star", &[]);
        for (set, why) in [
            (vec![("load_ref", "uplinks")], "load_ref: `uplinks`"),
            (vec![("size", "uniform"), ("min", "2MB")], "min: `2MB` is above"),
            (vec![("size", "cdf"), ("cdf", "websaerch")], "did you mean `websearch`"),
            (vec![("size", "cdf"), ("cdf", "none.csv")], "no such file"),
            (vec![("src", "h0"), ("dst", "h0")], "dst: host `h0` has no destination"),
            (vec![("pairs", "cross_rack")], "has no destination"),
            (vec![("src", "x"), ("dst", "y")], "src: there is no host `x`"),
            (vec![("normalize_load", "true"), ("until", "1s")], "also beyond `until`"),
            (vec![("start", "2s"), ("until", "1s")], "until: `1s` is not after `start`, `2s`"),
            (vec![("load", "0.000001"), ("load_ref", "1bps")], "load: `0.000001` spreads 10000 flows"),
            (vec![("load", "40")], "load: `40` is out of range: `load` goes from 0.000001 to 10; did you mean `0.4`?"),
        ] {
            let message = bench.read("poisson", &set).err().unwrap();
            assert!(message.contains(why), "{set:?}: {message}");
        }
    }
}
