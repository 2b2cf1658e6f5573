//! Compares systems flow by flow. All systems of a scenario carry the same flows, so the randomness
//! of the workload affects all systems in the same way.

use crate::absent::refuse_absent;
use crate::arrow::words;
use crate::chosen::{mask, with_filter};
use crate::error::{Error, Result};
use crate::estimate::{self, Estimate};
use crate::filter::Filter;
use crate::keys::{SweptColumn, swept};
use crate::manifest::PointManifest;
use crate::parquet;
use crate::results::Results;
use crate::schema::{COMPARE, Note, schema};
use crate::tail::{self, TailRatio};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, UInt32Array, UInt64Array};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Two systems at one value of every swept key.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Label of system a.
    pub system_a: String,
    /// Label of system b.
    pub system_b: String,
    /// Values of the swept keys of both systems.
    pub swept: Vec<Option<String>>,
    /// Flows that finished in both systems.
    pub flows: u64,
    /// Flows that finished only in system a, and only in system b.
    pub only: (u64, u64),
    /// Share of the paired flows that finished earlier in b; estimate over seeds.
    pub b_faster: Estimate,
    /// The ratios of the paired flows.
    pub ratios: Ratios,
    /// Two-sided p-value of a mean ratio of 1, corrected for the number of pairs of the table.
    pub p_holm: Option<f64>,
    /// Deadline miss rates of a and of b; estimates over seeds, without values if there are no
    /// deadlines.
    pub miss_rates: (Estimate, Estimate),
}

/// How much longer flows take in system b than in system a. All ratios are b / a; with the systems swapped, all are the
/// reciprocals, and so are the ends of their intervals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ratios {
    /// Median of fct(b) / fct(a); estimate over seeds.
    pub median: Estimate,
    /// Geometric mean of fct(b) / fct(a); estimate over seeds. The arithmetic mean of ratios exceeds 1 in both directions
    /// as soon as they vary.
    pub mean: Estimate,
    /// Mean of fct(b) over mean of fct(a); estimate over seeds.
    pub of_means: Estimate,
    /// 99th percentile of the slowdown in b over that in a.
    pub tail: TailRatio,
    /// Two-sided p-value of the hypothesis that `mean` is 1.
    pub p: Option<f64>,
    /// How many more seeds would separate `mean` from 1: see [`estimate::more_seeds`].
    pub more_seeds: Option<u32>,
}

/// The completion times of a flow in two systems, and its ideal one.
#[derive(Clone, Copy, Debug)]
struct Paired {
    a: f64,
    b: f64,
    ideal: f64,
}

impl Ratios {
    /// Computes the ratios from the paired flows of each seed; every seed has at least one.
    fn of(seeds: &[Vec<Paired>]) -> Ratios {
        let over_seeds = |f: fn(&[Paired]) -> f64| seeds.iter().map(|flows| f(flows)).collect::<Vec<f64>>();
        let means = over_seeds(|flows| {
            let logs = flows.iter().map(|flow| base::math::ln(flow.b / flow.a));
            base::math::exp(logs.sum::<f64>() / flows.len() as f64)
        });
        let medians = over_seeds(|flows| {
            let mut ratios: Vec<f64> = flows.iter().map(|flow| flow.b / flow.a).collect();
            ratios.sort_unstable_by(f64::total_cmp);
            let (low, high) = (ratios[(ratios.len() - 1) / 2], ratios[ratios.len() / 2]);
            if low == high { low } else { (low * high).sqrt() }
        });
        let of_means = over_seeds(|flows| {
            let sum = |time: fn(&Paired) -> f64| flows.iter().map(time).sum::<f64>();
            sum(|flow| flow.b) / sum(|flow| flow.a)
        });
        let slowdowns: Vec<Vec<[f64; 2]>> =
            seeds.iter().map(|flows| flows.iter().map(|flow| [flow.a / flow.ideal, flow.b / flow.ideal]).collect()).collect();
        Ratios {
            median: Estimate::of_ratios(&medians),
            mean: Estimate::of_ratios(&means),
            of_means: Estimate::of_ratios(&of_means),
            tail: tail::ratio(&slowdowns),
            p: estimate::p_of_ratios(&means),
            more_seeds: estimate::more_seeds(&means),
        }
    }
}

/// A point of one of the runs, with its flows.
struct Point<'a> {
    /// The index of the run, and the label of the system in it.
    system: (usize, &'a str),
    dir: PathBuf,
    manifest: &'a PointManifest,
    flows: Flows,
}

/// The points of two systems with the same seed.
type Seed<'a> = (&'a Point<'a>, &'a Point<'a>);

/// The data of a point's flows that is compared.
#[derive(Default)]
struct Flows {
    size_bytes: Vec<u64>,
    start_ps: Vec<Option<i64>>,
    fct_ps: Vec<Option<i64>>,
    ideal_fct_ps: Vec<i64>,
    /// Whether the flow is compared.
    chosen: Vec<bool>,
    /// For each compared flow with a deadline, whether the flow met it.
    met: Vec<bool>,
}

/// Compares every pair of systems in one or more run folders, over the flows that count, or that a
/// filter chooses in both. If several runs use a label, the name of the run's folder is put in
/// front of it, or the whole path if this does not tell them apart.
pub fn pairs(dirs: &[PathBuf], filter: Option<&Filter>) -> Result<(Vec<String>, Vec<Pair>)> {
    let mut known: Vec<PathBuf> = Vec::new();
    for dir in dirs {
        let whole = dir.canonicalize().unwrap_or_else(|_| dir.clone());
        if known.contains(&whole) {
            return Err(Error::SameRun { path: dir.clone() });
        }
        known.push(whole);
    }
    let runs = dirs.iter().map(|dir| Results::open(dir)).collect::<Result<Vec<_>>>()?;
    filter.map_or(Ok(()), |filter| refuse_absent(&runs, filter))?;
    let mut keys: Vec<String> = Vec::new();
    for key in runs.iter().flat_map(|run| &run.manifest.sweep_keys) {
        if !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    let mut points = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        for manifest in run.done() {
            let (dir, system) = (run.point_dir(&manifest.key), (number, manifest.key.system.as_str()));
            points.push(Point { system, flows: read(&run.flows_file(manifest)?, filter)?, dir, manifest });
        }
    }
    let mut systems: Vec<(usize, &str)> = Vec::new();
    for point in &points {
        if !systems.contains(&point.system) {
            systems.push(point.system);
        }
    }
    let mut pairs = Vec::new();
    for (i, a) in systems.iter().enumerate() {
        for b in &systems[i + 1..] {
            for (swept, seeds) in pair_systems(&points, &keys, *a, *b) {
                pairs.push(pair([name(&runs, *a), name(&runs, *b)], swept, &seeds)?);
            }
        }
    }
    if pairs.is_empty() {
        let n = systems.len();
        return Err(Error::NothingToCompare(format!("{n} system{} without a common point", if n == 1 { "" } else { "s" })));
    }
    let corrected = holm(&pairs.iter().map(|pair| pair.ratios.p).collect::<Vec<_>>());
    for (pair, p) in pairs.iter_mut().zip(corrected) {
        pair.p_holm = p;
    }
    Ok((keys, pairs))
}

/// Corrects p-values for their number, by the step-down method of S. Holm, "A Simple Sequentially Rejective Multiple Test
/// Procedure", 1979: of `n` values, the k-th smallest, from 0, is multiplied by n - k, and none is smaller than one before it.
fn holm(values: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut order: Vec<(f64, usize)> = values.iter().enumerate().filter_map(|(i, p)| Some(((*p)?, i))).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut corrected, mut least) = (vec![None; values.len()], 0.0f64);
    for (k, (p, i)) in order.iter().enumerate() {
        least = least.max(p * (order.len() - k) as f64).min(1.0);
        corrected[*i] = Some(least);
    }
    corrected
}

/// Returns [`pairs`] as a table.
pub fn table(dirs: &[PathBuf], filter: Option<&Filter>) -> Result<RecordBatch> {
    let (keys, pairs) = pairs(dirs, filter)?;
    let (mut fields, mut arrays): (Vec<_>, Vec<ArrayRef>) = (Vec::new(), Vec::new());
    for (i, key) in keys.iter().enumerate() {
        let column = SweptColumn::new(key, pairs.iter().filter_map(|p| p.swept[i].as_deref()));
        fields.push(column.field());
        arrays.push(column.array(pairs.iter().map(|p| p.swept[i].as_deref())));
    }
    fields.extend(COMPARE.iter().map(Note::field));
    let count = |f: fn(&Pair) -> u64| Arc::new(UInt64Array::from_iter_values(pairs.iter().map(f)));
    let number = |f: fn(&Pair) -> Option<f64>| Arc::new(pairs.iter().map(f).collect::<Float64Array>());
    let own: [ArrayRef; 21] = [
        words(pairs.iter().map(|p| Some(p.system_a.as_str()))),
        words(pairs.iter().map(|p| Some(p.system_b.as_str()))),
        Arc::new(UInt32Array::from_iter_values(pairs.iter().map(|p| p.ratios.mean.n))),
        count(|p| p.flows),
        count(|p| p.only.0),
        count(|p| p.only.1),
        number(|p| p.b_faster.mean),
        number(|p| p.ratios.median.mean),
        number(|p| p.ratios.mean.mean),
        number(|p| p.ratios.mean.ci95.map(|ci| ci.0)),
        number(|p| p.ratios.mean.ci95.map(|ci| ci.1)),
        number(|p| p.p_holm),
        Arc::new(pairs.iter().map(|p| p.ratios.more_seeds).collect::<UInt32Array>()),
        number(|p| p.ratios.of_means.mean),
        number(|p| p.ratios.of_means.ci95.map(|ci| ci.0)),
        number(|p| p.ratios.of_means.ci95.map(|ci| ci.1)),
        number(|p| p.ratios.tail.ratio),
        number(|p| p.ratios.tail.ci95.map(|ci| ci.0)),
        number(|p| p.ratios.tail.ci95.map(|ci| ci.1)),
        number(|p| p.miss_rates.0.mean),
        number(|p| p.miss_rates.1.mean),
    ];
    arrays.extend(own);
    let about = "comparison of systems, paired by flow";
    Ok(RecordBatch::try_new(schema(fields, about), arrays).expect("columns follow their notes"))
}

/// Returns the name of a system of one of the runs.
fn name(runs: &[Results], (number, label): (usize, &str)) -> String {
    if runs.iter().filter(|run| run.manifest.points.iter().any(|point| point.system == label)).count() < 2 {
        return label.to_owned();
    }
    let folder = |run: &Results| Some(run.path().canonicalize().ok()?.file_name()?.to_string_lossy().into_owned());
    let own = folder(&runs[number]).unwrap_or_default();
    let name = format!("{own}/{label}");
    let same_folder = runs.iter().filter(|run| folder(run).as_ref() == Some(&own)).count() > 1;
    let same_label = runs.iter().any(|run| run.manifest.points.iter().any(|point| point.system == name));
    if same_folder || same_label { format!("{}/{label}", runs[number].path().display()) } else { name }
}

fn read(path: &Path, filter: Option<&Filter>) -> Result<Flows> {
    let mut flows = Flows::default();
    let names = with_filter(&["size_bytes", "start_ps", "fct_ps", "ideal_fct_ps", "deadline_met"], filter);
    for batch in parquet::read(path, Some(&names))? {
        let batch = batch.map_err(|e| Error::damaged(path, e))?;
        let column = |name: &str| batch.column_by_name(name).ok_or_else(|| Error::damaged(path, format!("no column `{name}`")));
        let chosen = mask(&batch, filter, path)?;
        flows.size_bytes.extend(column("size_bytes")?.as_primitive::<UInt64Type>().values());
        flows.start_ps.extend(column("start_ps")?.as_primitive::<Int64Type>().iter());
        flows.fct_ps.extend(column("fct_ps")?.as_primitive::<Int64Type>().iter());
        flows.ideal_fct_ps.extend(column("ideal_fct_ps")?.as_primitive::<Int64Type>().values());
        let met = column("deadline_met")?.as_boolean().iter().zip(&chosen);
        flows.met.extend(met.filter_map(|(met, chosen)| met.filter(|_| *chosen)));
        flows.chosen.extend(chosen);
    }
    Ok(flows)
}

/// The values of the swept keys at which two systems have points with the same seed, and these points.
type Place<'a> = (Vec<Option<String>>, Vec<Seed<'a>>);

/// Returns the places of two systems.
fn pair_systems<'a>(points: &'a [Point<'a>], keys: &[String], a: (usize, &str), b: (usize, &str)) -> Vec<Place<'a>> {
    let mut groups: Vec<Place<'a>> = Vec::new();
    let of = |system: (usize, &str)| points.iter().filter(move |p| p.system == system).collect::<Vec<_>>();
    let (all_a, all_b) = (of(a), of(b));
    for pa in all_a {
        for pb in all_b.iter().filter(|pb| pb.manifest.key.seed == pa.manifest.key.seed) {
            let Some(values) = common(keys, pa, pb) else { continue };
            match groups.iter_mut().find(|(v, _)| *v == values) {
                Some((_, pairs)) => pairs.push((pa, pb)),
                None => groups.push((values, vec![(pa, pb)])),
            }
        }
    }
    groups
}

/// Returns the swept values of two points. `None` if a key that both points have differs.
fn common(keys: &[String], a: &Point<'_>, b: &Point<'_>) -> Option<Vec<Option<String>>> {
    let value = |key: &String| match (swept(&a.manifest.key, key), swept(&b.manifest.key, key)) {
        (Some(x), Some(y)) if x != y => None,
        (x, y) => Some(x.or(y).map(str::to_owned)),
    };
    keys.iter().map(value).collect()
}

fn pair([system_a, system_b]: [String; 2], swept: Vec<Option<String>>, seeds: &[Seed<'_>]) -> Result<Pair> {
    let (mut only, mut faster, mut paired) = ((0, 0), Vec::new(), Vec::new());
    for (pa, pb) in seeds {
        check_same_flows(pa, pb)?;
        let mut flows = Vec::new();
        for flow in (0..pa.flows.fct_ps.len()).filter(|&flow| pa.flows.chosen[flow] && pb.flows.chosen[flow]) {
            match (pa.flows.fct_ps[flow], pb.flows.fct_ps[flow]) {
                (Some(a), Some(b)) => {
                    flows.push(Paired { a: a as f64, b: b as f64, ideal: pa.flows.ideal_fct_ps[flow] as f64 });
                }
                (Some(_), None) => only.0 += 1,
                (None, Some(_)) => only.1 += 1,
                (None, None) => {}
            }
        }
        if !flows.is_empty() {
            faster.push(flows.iter().filter(|flow| flow.b < flow.a).count() as f64 / flows.len() as f64);
            paired.push(flows);
        }
    }
    Ok(Pair {
        system_a,
        system_b,
        swept,
        flows: paired.iter().map(|flows| flows.len() as u64).sum(),
        only,
        b_faster: Estimate::of(&faster),
        ratios: Ratios::of(&paired),
        p_holm: None,
        miss_rates: (miss_rate(seeds.iter().map(|(a, _)| *a)), miss_rate(seeds.iter().map(|(_, b)| *b))),
    })
}

/// Returns the deadline miss rate over points that differ only in their seeds.
fn miss_rate<'a>(points: impl Iterator<Item = &'a Point<'a>>) -> Estimate {
    let rate = |met: &Vec<bool>| met.iter().filter(|met| !**met).count() as f64 / met.len() as f64;
    let rates: Vec<f64> = points.map(|point| &point.flows.met).filter(|met| !met.is_empty()).map(rate).collect();
    Estimate::of(&rates)
}

fn check_same_flows(a: &Point<'_>, b: &Point<'_>) -> Result<()> {
    // Flows that wait may start at different times in two systems. Their hash covers what they wait
    // for.
    if !a.manifest.flows_hash.is_empty() && a.manifest.flows_hash == b.manifest.flows_hash {
        return Ok(());
    }
    let (fa, fb) = (&a.flows, &b.flows);
    let (n, m) = (fa.fct_ps.len(), fb.fct_ps.len());
    let differs = (0..n.min(m)).find(|&i| fa.size_bytes[i] != fb.size_bytes[i] || fa.start_ps[i] != fb.start_ps[i]);
    match differs.or((n != m).then_some(n.min(m))) {
        Some(flow) => Err(Error::DifferentFlows { a: a.dir.clone(), b: b.dir.clone(), flow: flow as u32 }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::FlowColumns;
    use crate::manifest::{PointKey, Ran};
    use crate::results::tests::{outcome, run_manifest};
    use crate::run_dir::RunDir;
    use base::Rng;
    use sim::Outcome;

    fn key(system: &str, seed: u64, swept: &[(&str, &str)]) -> PointKey {
        let swept: Vec<(String, String)> = swept.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let values: String = swept.iter().map(|(_, v)| format!("-{v}")).collect();
        PointKey { id: format!("{system}{values}-seed{seed}"), system: system.into(), seed, swept }
    }

    /// An outcome with flows that take this many milliseconds; `None`: unfinished.
    fn taking(ms: &[Option<u64>]) -> Outcome {
        let mut out = outcome(ms.len() as u32);
        for (flow, ms) in out.flows.iter_mut().zip(ms) {
            flow.finish_ps = ms.map(|ms| flow.start_ps.unwrap() + ms * 1_000_000_000);
        }
        out
    }

    fn write(path: &Path, points: &[(PointKey, Outcome)]) {
        let run = RunDir::take(path).unwrap();
        let keys: Vec<PointKey> = points.iter().map(|(key, _)| key.clone()).collect();
        run.write_manifest(&run_manifest(&keys)).unwrap();
        for (key, outcome) in points {
            run.write_point(key, outcome, &Ran::default(), (&["web".into()], &FlowColumns::default())).unwrap();
        }
    }

    #[test]
    fn flows_are_paired_within_a_seed() {
        let dir = tempfile::tempdir().unwrap();
        let points = [
            (key("A", 1, &[]), taking(&[Some(1), Some(2), Some(4), None, Some(1)])),
            (key("B", 1, &[]), taking(&[Some(2), Some(1), Some(8), Some(1), None])),
            (key("A", 2, &[]), taking(&[Some(2), Some(2)])),
            (key("B", 2, &[]), taking(&[Some(1), Some(1)])),
            (key("B", 3, &[]), taking(&[Some(1)])),
        ];
        write(dir.path(), &points);
        let (_, pairs) = pairs(&[dir.path().to_owned()], None).unwrap();
        let [pair] = &pairs[..] else { panic!("{pairs:?}") };
        assert_eq!((pair.system_a.as_str(), pair.system_b.as_str()), ("A", "B"));
        assert_eq!((pair.flows, pair.only), (5, (1, 1)));
        // Seed 1: ratios 2, 0.5, 2, whose geometric mean is 2^(1/3), and means 11/3 and 7/3 ms. Seed 2: 0.5, 0.5.
        let near =
            |found: Estimate, values: [f64; 2]| (found.mean.unwrap() - Estimate::of_ratios(&values).mean.unwrap()).abs() < 1e-12;
        assert!(near(pair.ratios.mean, [2.0f64.cbrt(), 0.5]), "{:?}", pair.ratios.mean);
        assert!(near(pair.ratios.of_means, [11.0 / 7.0, 0.5]), "{:?}", pair.ratios.of_means);
        assert!(pair.ratios.mean.ci95.unwrap().0 > 0.0, "no ratio is negative");
        assert_eq!(pair.ratios.median, Estimate::of_ratios(&[2.0, 0.5]));
        assert_eq!(pair.b_faster, Estimate::of(&[1.0 / 3.0, 1.0]));
        assert_eq!(pair.miss_rates, (Estimate::default(), Estimate::default()));
        let table = table(&[dir.path().to_owned()], None).unwrap();
        assert_eq!((table.num_rows(), table.num_columns()), (1, COMPARE.len()));
    }

    #[test]
    fn systems_of_different_runs_are_never_taken_for_one_system() {
        let dir = tempfile::tempdir().unwrap();
        // Two folders with one name, and a system that is called like that of another run with its folder.
        let runs = ["a/demo", "b/demo", "c"].map(|name| dir.path().join(name));
        write(&runs[0], &[(key("A", 1, &[]), taking(&[Some(1)]))]);
        write(&runs[1], &[(key("A", 1, &[]), taking(&[Some(2)]))]);
        let other = PointKey { id: "other-seed1".into(), ..key("demo/A", 1, &[]) };
        write(&runs[2], &[(key("A", 1, &[]), taking(&[Some(3)])), (other, taking(&[Some(4)]))]);
        let named = |runs: &[PathBuf]| -> Vec<(String, String)> {
            pairs(runs, None).unwrap().1.into_iter().map(|pair| (pair.system_a, pair.system_b)).collect()
        };
        let [a, b] = [0, 1].map(|i| format!("{}/A", runs[i].display()));
        assert_eq!(named(&runs[..2]), [(a.clone(), b.clone())]);
        let all = named(&runs);
        assert_eq!(all.len(), 6, "four systems have six pairs: {all:?}");
        assert_eq!(all[0], (a.clone(), b));
        let [a, c, other] = [a, "c/A".to_owned(), "demo/A".to_owned()];
        let two = named(&[runs[0].clone(), runs[2].clone()]);
        assert_eq!(two, [(a.clone(), c.clone()), (a, other.clone()), (c, other)]);
    }

    #[test]
    fn a_filter_for_what_no_run_has_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &[(key("A", 1, &[]), taking(&[Some(1)])), (key("B", 1, &[]), taking(&[Some(1)]))]);
        let of = |text: &str| pairs(&[dir.path().to_owned()], Some(&Filter::parse(text).unwrap()));
        assert!(
            matches!(of("workload == 'wbe'"), Err(Error::Filter(wrong)) if wrong.to_string().contains("did you mean \"web\"?"))
        );
        assert!(of("workload == 'web' and size_bytes > 1GB").is_ok_and(|(_, pairs)| pairs[0].flows == 0));
    }

    #[test]
    fn swapping_systems_gives_the_reciprocals() {
        for case in 0..1000 {
            let mut rng = Rng::stream(case, "test/swap", &[]);
            let seeds = (0..1 + rng.below(4)).map(|_| {
                let draw = |_| {
                    let ideal = 1.0 + rng.exponential(10.0);
                    let mut time = || ideal * (1.0 + rng.exponential(3.0));
                    Paired { a: time(), b: time(), ideal }
                };
                (0..1 + case as usize % 250).map(draw).collect::<Vec<_>>()
            });
            let seeds: Vec<Vec<Paired>> = seeds.collect();
            let swap = |flows: &Vec<Paired>| flows.iter().map(|f| Paired { a: f.b, b: f.a, ideal: f.ideal }).collect();
            let (there, back) = (Ratios::of(&seeds), Ratios::of(&seeds.iter().map(swap).collect::<Vec<_>>()));
            let is_reciprocal = |x: Option<f64>, y: Option<f64>| match (x, y) {
                (Some(x), Some(y)) => (x * y - 1.0).abs() < 1e-9,
                (x, y) => x.is_none() && y.is_none(),
            };
            let estimate = |e: Estimate| [e.mean, e.ci95.map(|ci| ci.0), e.ci95.map(|ci| ci.1)];
            let tail = |t: TailRatio| [t.ratio, t.ci95.map(|ci| ci.0), t.ci95.map(|ci| ci.1)];
            let all = |r: &Ratios| [estimate(r.median), estimate(r.mean), estimate(r.of_means), tail(r.tail)];
            for ([mean, low, high], [mean_back, low_back, high_back]) in all(&there).into_iter().zip(all(&back)) {
                let same = is_reciprocal(mean, mean_back) && is_reciprocal(low, high_back) && is_reciprocal(high, low_back);
                assert!(same, "case {case}: {there:?} and {back:?}");
            }
            assert_eq!(there.p.is_some(), seeds.len() > 1, "case {case}");
            assert!(there.p.zip(back.p).is_none_or(|(x, y)| (x - y).abs() < 1e-9), "case {case}: {:?} and {:?}", there.p, back.p);
        }
    }

    #[test]
    fn many_pairs_are_corrected_for() {
        // An example of Holm's method that is worked out in textbooks: 0.01, 0.04, 0.03 and 0.005.
        let corrected = holm(&[Some(0.01), Some(0.04), None, Some(0.03), Some(0.005)]);
        let expected = [Some(0.03), Some(0.06), None, Some(0.06), Some(0.02)];
        for (found, right) in corrected.iter().zip(expected) {
            assert!(found.zip(right).map_or(*found == right, |(x, y)| (x - y).abs() < 1e-12), "{corrected:?}");
        }
        assert_eq!(holm(&[Some(0.7), Some(0.9)]), [Some(1.0), Some(1.0)], "no more than 1");
        assert_eq!(holm(&[Some(0.04)]), [Some(0.04)], "nothing to correct for");
    }

    #[test]
    fn deadlines_are_compared_where_there_are_any() {
        let dir = tempfile::tempdir().unwrap();
        let due = |ms: &[Option<u64>], deadlines: &[Option<u64>]| {
            let mut out = taking(ms);
            for (flow, deadline) in out.flows.iter_mut().zip(deadlines) {
                flow.deadline_ps = deadline.map(|ms| flow.start_ps.unwrap() + ms * 1_000_000_000);
            }
            out
        };
        let deadlines = [Some(2), Some(2), None, Some(2)];
        let points = [
            (key("A", 1, &[]), due(&[Some(1), Some(3), Some(9), None], &deadlines)),
            (key("B", 1, &[]), due(&[Some(1), Some(2), Some(9), None], &deadlines)),
            (key("A", 2, &[]), due(&[Some(1)], &[Some(1)])),
            (key("B", 2, &[]), due(&[Some(2)], &[Some(1)])),
        ];
        write(dir.path(), &points);
        let (_, pairs) = pairs(&[dir.path().to_owned()], None).unwrap();
        assert_eq!(pairs[0].miss_rates, (Estimate::of(&[2.0 / 3.0, 0.0]), Estimate::of(&[1.0 / 3.0, 1.0])));
    }

    #[test]
    fn swept_values_must_agree_where_both_have_them() {
        let dir = tempfile::tempdir().unwrap();
        let load = "workload.web.load";
        let points = [
            (key("A", 1, &[(load, "0.5"), ("system.agent.alpha", "0.9")]), outcome(1)),
            (key("A", 1, &[(load, "0.5"), ("system.agent.alpha", "0.8")]), outcome(1)),
            (key("A", 1, &[(load, "0.7"), ("system.agent.alpha", "0.8")]), outcome(1)),
            (key("B", 1, &[(load, "0.5")]), outcome(1)),
        ];
        write(dir.path(), &points);
        let (keys, pairs) = pairs(&[dir.path().to_owned()], None).unwrap();
        let at = |name: &str| keys.iter().position(|k| k == name).unwrap();
        let found: Vec<_> = pairs
            .iter()
            .map(|p| (p.swept[at(load)].clone().unwrap(), p.swept[at("system.agent.alpha")].clone().unwrap()))
            .collect();
        assert_eq!(found, [("0.5".to_owned(), "0.9".to_owned()), ("0.5".to_owned(), "0.8".to_owned())]);
    }

    #[test]
    fn a_system_of_two_runs_has_the_folder_in_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let dirs = ["before", "after"].map(|n| dir.path().join(n));
        write(&dirs[0], &[(key("A", 1, &[]), taking(&[Some(2)]))]);
        write(&dirs[1], &[(key("A", 1, &[]), taking(&[Some(1)])), (key("B", 1, &[]), taking(&[Some(1)]))]);
        let (_, pairs) = pairs(&dirs, None).unwrap();
        let names: Vec<_> =
            pairs.iter().map(|p| format!("{} {} {:?}", p.system_a, p.system_b, p.ratios.mean.mean.unwrap())).collect();
        assert_eq!(names, ["before/A after/A 0.5", "before/A B 0.5", "after/A B 1.0"]);
    }

    #[test]
    fn a_run_is_not_compared_with_itself() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r");
        write(&path, &[(key("A", 1, &[]), taking(&[Some(2)]))]);
        let again = path.join("..").join("r");
        assert!(matches!(pairs(&[path.clone(), again.clone()], None), Err(Error::SameRun { path }) if path == again));
    }

    #[test]
    fn waiting_flows_with_equal_hashes_are_paired() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::take(dir.path()).unwrap();
        let keys = [key("A", 1, &[]), key("B", 1, &[])];
        run.write_manifest(&run_manifest(&keys)).unwrap();
        let mut late = taking(&[Some(2), Some(2)]);
        late.flows[1].start_ps = Some(5_000_000_007);
        late.flows[1].finish_ps = Some(9_000_000_007);
        let outcomes = [taking(&[Some(1), Some(1)]), late];
        let write = |hashes: [&str; 2]| {
            for ((key, outcome), hash) in keys.iter().zip(&outcomes).zip(hashes) {
                run.write_point(
                    key,
                    outcome,
                    &Ran { flows_hash: hash.into(), ..Ran::default() },
                    (&["web".into()], &FlowColumns::default()),
                )
                .unwrap();
            }
            pairs(&[dir.path().to_owned()], None)
        };
        let mean = write(["a5", "a5"]).unwrap().1[0].ratios.mean;
        // Ratios 2 and 4.
        assert!((mean.mean.unwrap() - 8.0f64.sqrt()).abs() < 1e-12 && mean.ci95.is_none(), "{mean:?}");
        assert!(matches!(write(["a5", "b6"]), Err(Error::DifferentFlows { flow: 1, .. })));
    }

    #[test]
    fn different_flows_and_lone_systems_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut other = outcome(2);
        other.flows[1].size_bytes += 1;
        write(dir.path(), &[(key("A", 1, &[]), outcome(2)), (key("B", 1, &[]), other)]);
        assert!(matches!(pairs(&[dir.path().to_owned()], None), Err(Error::DifferentFlows { flow: 1, .. })));
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &[(key("A", 1, &[]), outcome(2)), (key("B", 1, &[]), outcome(3))]);
        assert!(matches!(pairs(&[dir.path().to_owned()], None), Err(Error::DifferentFlows { flow: 2, .. })));
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &[(key("A", 1, &[]), outcome(2)), (key("B", 2, &[]), outcome(2))]);
        assert!(matches!(pairs(&[dir.path().to_owned()], None), Err(Error::NothingToCompare(_))));
    }
}
