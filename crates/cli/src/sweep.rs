//! Runs the points of a plan on a pool of threads and writes them to a folder.
//!
//! Points start in the order of their expected work, largest first, so that no long point runs alone
//! at the end. Results are in the order of the plan. Every point writes its own files when it ends,
//! so a stopped run keeps its finished points and the same call continues from there.

use crate::clock::{self, Watch};
use crate::ended::{lost, not_in_windows};
use crate::jobs::{Jobs, Wanted};
use crate::patience::patiently;
use crate::prepare::{Prepared, prepare};
use crate::text;
use rayon::{ThreadPool, ThreadPoolBuilder};
use scenario::{Plan, Point, RunSpec};
use sim::{Continue, EventOrder, Outcome, Progress, RunError, Threads};
use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;
use tables::keys::FlowColumns;
use tables::manifest::{self, Input, Ran};
use tables::schema::{CounterColumn, SCHEMA_VERSION};
use tables::{Found, PointKey, PointManifest, Results, RunDir, RunManifest, State};

/// The error of a sweep.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A workload that cannot be drawn.
    #[error("{0}")]
    Input(String),
    /// A point that cannot run.
    #[error("point `{point}`: {source}")]
    Run {
        /// The point.
        point: String,
        /// The reason.
        source: sim::RunError,
    },
    /// The sweep was stopped before a point had started.
    #[error("stopped before the run: nothing was written")]
    Stopped,
    /// A problem with storage.
    #[error(transparent)]
    Storage(#[from] tables::Error),
    /// A bug of this program.
    #[error(transparent)]
    Broken(Box<Broken>),
}

/// A point that ended in a panic.
#[derive(Debug, thiserror::Error)]
#[error("point `{point}` broke an invariant: {message}\n  seed {seed}, after event {events}, at {now}")]
pub struct Broken {
    /// The point.
    pub point: String,
    /// Its seed.
    pub seed: u64,
    /// Events handled at the last progress report.
    pub events: u64,
    /// Simulated time at the last progress report.
    pub now: base::Time,
    /// The assertion.
    pub message: String,
}

impl Error {
    /// Returns the hint for the user.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Error::Input(_) | Error::Stopped => None,
            Error::Run { .. } => Some("`flowloom check` prints the whole plan"),
            Error::Storage(e) => e.hint(),
            Error::Broken(_) => {
                Some("this is a bug of flowloom, not an error in the scenario: report it with the scenario and this message")
            }
        }
    }
}

/// How to run a plan.
#[derive(Clone, Debug)]
pub struct Settings<'a> {
    /// Points to run at the same time; 0: as many as the cores allow.
    pub jobs: usize,
    /// Threads per point; 0: uses idle cores where this is faster.
    pub threads: usize,
    /// The order of the events of points that run by packets.
    pub order: EventOrder,
    /// The folder for the results.
    pub out: &'a Path,
    /// The profiles of the plan, for the manifest.
    pub profiles: &'a [String],
    /// Whether results of another run in the folder may be replaced and removed.
    pub overwrite: bool,
    /// The larger plan that this plan is a part of. Its other points in the folder are kept.
    pub whole: Option<&'a Plan>,
    /// Points to run, by index; `None`: all. The manifest lists all points; other results are kept.
    pub only: Option<&'a [usize]>,
}

impl Settings<'_> {
    fn is_chosen(&self, point: usize) -> bool {
        self.only.is_none_or(|only| only.contains(&point))
    }
}

/// The progress of a sweep.
#[derive(Clone, Debug, Default)]
pub struct Tick<'a> {
    /// Notes for the user: see [`Report::notes`].
    pub notes: &'a [String],
    /// Points done, including those that were kept from an earlier run.
    pub points_done: usize,
    /// All points.
    pub points: usize,
    /// The point that has been running for the longest time, if any.
    pub point: Option<&'a str>,
    /// Its simulated time.
    pub now: base::Time,
    /// Flows finished, in all points that were run.
    pub flows_done: u64,
    /// Flows of all points that have begun.
    pub flows: u64,
    /// Events handled.
    pub events: u64,
    /// Wall time so far, in seconds.
    pub elapsed_s: f64,
    /// Estimated remaining wall time in seconds, once enough work is done for an estimate.
    pub remaining_s: Option<f64>,
}

/// The outcome of a sweep.
#[derive(Debug)]
pub struct Report {
    /// The results.
    pub results: Results,
    /// Points that were run to their end.
    pub ran: usize,
    /// Points that were already finished.
    pub kept: usize,
    /// Events handled.
    pub events: u64,
    /// Packets moved over a link.
    pub hops: u64,
    /// Wall time summed over all threads of all points, in seconds.
    pub busy_s: f64,
    /// Wall time of the sweep, in seconds.
    pub wall_s: f64,
    /// Notes of the first tick: damaged points that are rerun, and fewer jobs than requested.
    pub notes: Vec<String>,
}

/// Prepares a plan on another thread. Calls `tick` several times a second and fails with
/// [`Error::Stopped`] if it returns [`Continue::No`].
pub fn prepare_patiently(
    plan: Plan,
    only: Option<Vec<usize>>,
    tick: &mut dyn FnMut(&Tick<'_>) -> Continue,
) -> Result<(Plan, Vec<Prepared>), Error> {
    let (watch, points) = (Watch::start(), plan.points.len());
    let drawn =
        patiently(move || prepare(&plan, only.as_deref()).map(|prepared| (plan, prepared)).map_err(Error::Input), &mut || {
            tick(&Tick { points, elapsed_s: watch.seconds(), ..Tick::default() })
        });
    drawn.unwrap_or(Err(Error::Stopped))
}

/// Runs the points that are not yet in the folder. Calls `tick` several times a second on this
/// thread. If it returns [`Continue::No`], the sweep stops: running points are interrupted and
/// waiting points are not started. `prepared` comes from [`crate::prepare::prepare`].
pub fn run(
    plan: &Plan,
    prepared: &[Prepared],
    settings: &Settings<'_>,
    tick: &mut dyn FnMut(&Tick<'_>) -> Continue,
) -> Result<Report, Error> {
    run_with(plan, prepared, settings, &sim::run_threads, tick)
}

/// The type of [`sim::run_threads`], which tests replace.
type Simulate<'a> =
    dyn Fn(&RunSpec, Threads, EventOrder, &mut dyn FnMut(Progress) -> Continue) -> Result<Outcome, RunError> + Sync + 'a;

fn run_with(
    plan: &Plan,
    prepared: &[Prepared],
    settings: &Settings<'_>,
    simulate: &Simulate<'_>,
    tick: &mut dyn FnMut(&Tick<'_>) -> Continue,
) -> Result<Report, Error> {
    let watch = Watch::start();
    let dir = RunDir::take(settings.out)?;
    let keys: Vec<PointKey> = plan.points.iter().map(key).collect();
    let Before { mut todo, done: mut counted, mut notes } = to_run(&dir, &keys, prepared, settings)?;
    todo.retain(|&i| settings.is_chosen(i));
    todo.sort_by_key(|&i| std::cmp::Reverse(prepared[i].work));
    let sizes = todo.iter().map(|&i| prepared[i].bytes).collect();
    let jobs = Jobs::that_fit(Wanted::on_this_machine(settings.jobs, settings.threads), sizes, clock::memory_now(plan.memory));
    notes.extend(jobs.note());
    let mut run_manifest = RunManifest { done: counted.clone(), ..first_manifest(plan, settings, &keys, jobs.jobs) };
    dir.write_manifest(&run_manifest)?;
    let points = settings.only.map_or(keys.len(), <[usize]>::len);
    let kept = points - todo.len();
    let mut sweep = Sweep {
        watches: prepared.iter().map(|p| PointWatch { work: p.work, ..PointWatch::default() }).collect(),
        stop: AtomicBool::new(false),
        simulate,
        threads: jobs.threads,
        order: settings.order,
        plan,
        keys: &keys,
        prepared,
        dir: &dir,
        workloads: run_manifest.workloads.clone(),
        columns: FlowColumns::new(&run_manifest, counted_of_flows(settings.whole.unwrap_or(plan))),
        points,
        notes: &notes,
    };
    let pool = ThreadPoolBuilder::new()
        .num_threads(jobs.jobs)
        .build()
        .map_err(|e| Error::Input(format!("cannot start {} threads: {e}", jobs.jobs)))?;
    let ended = sweep.run_points(&pool, &todo, kept, watch, tick);
    let stopped = *sweep.stop.get_mut();

    let done = ended.points.iter().filter(|point| point.state == State::Done);
    counted.extend(done.map(|point| (point.key.id.clone(), point.manifest_hash.clone())));
    run_manifest.ended = clock::now();
    run_manifest.wall_s = watch.seconds();
    run_manifest.peak_memory_bytes = clock::peak_memory_bytes();
    run_manifest.done.clear(); // `gather` must not compare with the points from before the run.
    let written = Results::gather(dir.path(), run_manifest).and_then(|mut results| {
        let lost = lost(&results, &counted);
        results.manifest.complete = ended.failure.is_none() && results.complete();
        results.manifest.stop_reason = match (&ended.failure, &lost) {
            (Some(_), _) => "failed",
            (None, Some(_)) => "lost",
            (None, None) if results.complete() => "finished",
            (None, None) if stopped => "stopped",
            (None, None) => "share",
        }
        .to_owned();
        let written = dir.finish(results);
        lost.map_or(written, Err)
    });
    if let Some(failure) = ended.failure {
        return Err(failure);
    }
    notes.extend(not_in_windows(&ended.points));
    let sum = |f: fn(&PointManifest) -> u64| ended.points.iter().map(f).sum();
    Ok(Report {
        results: written?,
        ran: ended.done(),
        kept,
        events: sum(|p| p.counters.events),
        hops: sum(|p| p.counters.hops),
        busy_s: ended.points.iter().map(|p| p.wall_s * f64::from(p.threads)).sum(),
        wall_s: watch.seconds(),
        notes,
    })
}

/// The points that a run finds in its folder.
struct Before {
    /// Unfinished points, by index in the plan.
    todo: Vec<usize>,
    /// Finished points, each with the hash of its manifest.
    done: BTreeMap<String, String>,
    notes: Vec<String>,
}

/// Looks for the points in the folder. Fails if it holds results of another run and `overwrite` is
/// not set; the folder is then left as it is. With `overwrite`, removes these results.
fn to_run(dir: &RunDir, keys: &[PointKey], prepared: &[Prepared], settings: &Settings<'_>) -> Result<Before, Error> {
    let former = manifest::read::<RunManifest>(&dir.path().join(manifest::FILE)).ok().flatten();
    let was_whole = |key: &PointKey| former.as_ref().is_some_and(|run| run.complete && run.points.contains(key));
    let (mut todo, mut done) = (Vec::new(), BTreeMap::new());
    let (mut damaged, mut foreign) = (Vec::new(), Vec::new());
    for (i, (key, prepared)) in keys.iter().zip(prepared).enumerate() {
        match dir.find(key, &prepared.config_hash)? {
            Found::Finished(hash) => {
                done.insert(key.id.clone(), hash);
                continue;
            }
            Found::Nothing if was_whole(key) => damaged.push((key, "its folder is gone".to_owned())),
            Found::Nothing => {}
            Found::Damaged(why) => damaged.push((key, why.to_string())),
            Found::Other(why) => foreign.push((key.id.clone(), why)),
        }
        todo.push(i);
    }
    let whole: Vec<PointKey> = settings.whole.map_or(keys.to_vec(), |plan| plan.points.iter().map(key).collect());
    let others = dir.others(&whole)?;
    let results = others.iter().filter(|(_, done)| *done).map(|(id, _)| (id.clone(), "which is not a point of this scenario"));
    foreign.extend(results);
    if let Some((first, why)) = foreign.first().filter(|_| !settings.overwrite) {
        let (path, points, first) = (dir.path().to_owned(), foreign.len(), first.clone());
        return Err(tables::Error::OtherResults { path, points, first, why }.into());
    }
    // Points that run now are replaced when they end. Here only the others are removed.
    let left = todo.iter().filter(|&&i| !settings.is_chosen(i)).map(|&i| keys[i].id.as_str());
    let stale = left.filter(|id| foreign.iter().any(|(other, _)| other == id));
    let mut ids = others.iter().map(|(id, _)| id.as_str()).chain(damaged.iter().map(|(key, _)| key.id.as_str())).chain(stale);
    ids.try_for_each(|id| dir.remove_point(id))?;
    let note = damaged.first().map(|(key, why)| {
        let more = if damaged.len() > 1 { format!(", and {} more", damaged.len() - 1) } else { String::new() };
        format!("note: {} rerun: `{}`, because {why}{more}", text::are(damaged.len(), "point"), key.id)
    });
    Ok(Before { todo, done, notes: note.into_iter().collect() })
}

fn key(point: &Point) -> PointKey {
    PointKey { id: point.id.clone(), system: point.label.clone(), seed: point.seed, swept: point.swept.clone() }
}

/// Returns the counters of flows of all systems of a plan.
fn counted_of_flows(plan: &Plan) -> Vec<CounterColumn> {
    let packets = plan.points.iter().filter(|point| point.run.ideal.is_none() && !point.run.engine.is_flow());
    packets.flat_map(|point| CounterColumn::all(&sim::flow_counters(&point.run))).collect()
}

/// Returns the manifest of a run before its first point.
fn first_manifest(plan: &Plan, settings: &Settings<'_>, keys: &[PointKey], jobs: usize) -> RunManifest {
    RunManifest {
        schema_version: SCHEMA_VERSION,
        program: tables::PROGRAM.to_owned(),
        name: plan.name.clone(),
        profile: (!settings.profiles.is_empty()).then(|| settings.profiles.join(",")),
        stop_reason: "running".to_owned(),
        started: clock::now(),
        jobs: jobs as u32,
        workloads: plan.points.first().map_or(Vec::new(), |p| p.run.workloads.iter().map(|(name, _)| name.clone()).collect()),
        sweep_keys: plan.sweep_keys.clone(),
        labels: plan.labels.clone(),
        points: keys.to_vec(),
        inputs: plan.inputs().into_iter().map(|(path, hash)| Input { path, hash }).collect(),
        config: plan.resolved().to_owned(),
        ..RunManifest::default()
    }
}

/// The progress of one point, written by its thread.
#[derive(Debug, Default)]
struct PointWatch {
    work: u64,
    begun: AtomicBool,
    ended: AtomicBool,
    now: AtomicU64,
    events: AtomicU64,
    flows: AtomicU64,
    flows_done: AtomicU64,
}

/// The state that all threads share.
struct Sweep<'a> {
    watches: Vec<PointWatch>,
    stop: AtomicBool,
    simulate: &'a Simulate<'a>,
    threads: Threads,
    order: EventOrder,
    plan: &'a Plan,
    keys: &'a [PointKey],
    prepared: &'a [Prepared],
    dir: &'a RunDir,
    workloads: Vec<String>,
    columns: FlowColumns,
    /// Number of requested points, including those that were kept.
    points: usize,
    notes: &'a [String],
}

/// The results of the threads.
#[derive(Default)]
struct Ended {
    points: Vec<PointManifest>,
    failure: Option<Error>,
}

impl Ended {
    fn done(&self) -> usize {
        self.points.iter().filter(|point| point.state == State::Done).count()
    }
}

/// The time between two ticks.
const TICK: Duration = Duration::from_millis(50);

impl Sweep<'_> {
    fn run_points(
        &self,
        pool: &ThreadPool,
        todo: &[usize],
        kept: usize,
        watch: Watch,
        tick: &mut dyn FnMut(&Tick<'_>) -> Continue,
    ) -> Ended {
        let (sender, receiver) = channel();
        pool.in_place_scope_fifo(|scope| {
            for &i in todo {
                let sender = sender.clone();
                scope.spawn_fifo(move |_| self.run_and_send(i, &sender));
            }
            drop(sender);
            let mut ended = Ended::default();
            loop {
                match receiver.recv_timeout(TICK) {
                    Ok(Ok(point)) => ended.points.push(point),
                    Ok(Err(failure)) => {
                        self.stop.store(true, Relaxed);
                        // Only the first failure is reported: the others may follow from it.
                        ended.failure.get_or_insert(failure);
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                if tick(&self.tick(todo, kept, ended.done(), watch)) == Continue::No {
                    self.stop.store(true, Relaxed);
                }
            }
            ended
        })
    }

    fn run_and_send(&self, i: usize, sender: &Sender<Result<PointManifest, Error>>) {
        if self.stop.load(Relaxed) {
            return;
        }
        self.watches[i].begun.store(true, Relaxed);
        let result = self.run_point(i);
        self.watches[i].ended.store(true, Relaxed);
        // The receiver outlives the threads.
        let _ = sender.send(result);
    }

    fn run_point(&self, i: usize) -> Result<PointManifest, Error> {
        let (point, seen) = (&self.plan.points[i], &self.watches[i]);
        let (watch, started) = (Watch::start(), clock::now());
        let mut control = |progress: Progress| {
            seen.now.store(progress.now.0, Relaxed);
            seen.events.store(progress.events, Relaxed);
            seen.flows.store(progress.flows as u64, Relaxed);
            seen.flows_done.store(progress.finished as u64, Relaxed);
            if self.stop.load(Relaxed) { Continue::No } else { Continue::Yes }
        };
        // After a panic, only the atomics of the closure's state are read again.
        let run = catch_unwind(AssertUnwindSafe(|| (self.simulate)(&point.run, self.threads, self.order, &mut control)));
        let outcome = match run {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(source)) => return Err(Error::Run { point: point.id.clone(), source }),
            Err(panic) => {
                let (events, now) = (seen.events.load(Relaxed), base::Time(seen.now.load(Relaxed)));
                let message = panic_message(panic.as_ref()).to_owned();
                return Err(Error::Broken(Box::new(Broken { point: point.id.clone(), seed: point.seed, events, now, message })));
            }
        };
        seen.events.store(outcome.counters.events, Relaxed);
        seen.flows.store(outcome.flows.len() as u64, Relaxed);
        seen.flows_done.store(outcome.flows.iter().filter(|flow| flow.finish_ps.is_some()).count() as u64, Relaxed);
        let Prepared { config_hash, flows_hash, .. } = self.prepared[i].clone();
        let ran = Ran { config_hash, flows_hash, started, ended: clock::now(), wall_s: watch.seconds() };
        Ok(self.dir.write_point(&self.keys[i], &outcome, &ran, (&self.workloads, &self.columns))?)
    }

    fn tick(&self, todo: &[usize], kept: usize, done: usize, watch: Watch) -> Tick<'_> {
        let sum = |f: fn(&PointWatch) -> &AtomicU64| self.watches.iter().map(|w| f(w).load(Relaxed)).sum();
        let running = todo.iter().copied().find(|&i| self.watches[i].begun.load(Relaxed) && !self.watches[i].ended.load(Relaxed));
        let elapsed_s = watch.seconds();
        let (all, ahead) = todo.iter().fold((0.0, 0.0), |(all, ahead), &i| {
            let w = &self.watches[i];
            let share = w.flows_done.load(Relaxed) as f64 / w.flows.load(Relaxed).max(1) as f64;
            let share = if w.ended.load(Relaxed) { 1.0 } else { share };
            (all + w.work as f64, ahead + w.work as f64 * share)
        });
        let enough = all > 0.0 && ahead > 0.02 * all;
        Tick {
            notes: self.notes,
            points_done: kept + done,
            points: self.points,
            point: running.map(|i| self.keys[i].id.as_str()),
            now: base::Time(running.map_or(0, |i| self.watches[i].now.load(Relaxed))),
            flows_done: sum(|w| &w.flows_done),
            flows: sum(|w| &w.flows),
            events: sum(|w| &w.events),
            elapsed_s,
            remaining_s: enough.then(|| elapsed_s * (all - ahead) / ahead),
        }
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::Options;
    use sim::outcome::StopReason;
    use std::sync::Mutex;

    /// Two systems, two seeds, two loads: 8 points.
    fn plan() -> Plan {
        let text = r#"
            seed = [1, 2]
            [topology]
            kind = "star"
            hosts = 4
            [workload.web]
            kind = "poisson"
            flows = 20
            load = [0.2, 0.4]
            [measure]
            flows = "all"
            [[system]]
            label = "A"
            transport = "newreno"
            [[system]]
            label = "B"
            transport = "newreno"
            qdisc = { kind = "droptail", limit = "5pkt" }
        "#;
        scenario::load(text, "t.toml", ".".as_ref(), &Options::default()).unwrap_or_else(|e| panic!("{e}"))
    }

    fn settings(out: &Path) -> Settings<'_> {
        Settings { jobs: 2, threads: 1, order: EventOrder::Auto, out, profiles: &[], overwrite: false, whole: None, only: None }
    }
    fn go_on(_: &Tick<'_>) -> Continue {
        Continue::Yes
    }

    #[test]
    fn only_requested_points_run_and_the_rest_later() {
        let (plan, dirs) = (plan(), [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()]);
        run(&plan, &prepare(&plan, None).unwrap(), &settings(dirs[0].path()), &mut go_on).unwrap();
        let mut last = (0, 0);
        let mut part = |only: &[usize], overwrite| {
            let settings = Settings { only: Some(only), overwrite, ..settings(dirs[1].path()) };
            let prepared = prepare(&plan, Some(only)).unwrap();
            let report = run(&plan, &prepared, &settings, &mut |tick| {
                last = (tick.points_done, tick.points);
                Continue::Yes
            });
            let report = report.unwrap();
            let manifest = &report.results.manifest;
            (report.ran, report.kept, manifest.complete, manifest.stop_reason.clone(), last)
        };
        assert_eq!(part(&[1, 6], false), (2, 0, false, "share".to_owned(), (2, 2)));
        assert_eq!(part(&[1, 2], false), (1, 1, false, "share".to_owned(), (2, 2)));
        // Nothing runs.
        assert_eq!(part(&[], false), (0, 0, false, "share".to_owned(), (2, 2)));
        assert_eq!(part(&[0, 3, 4, 5, 7], false), (5, 0, true, "finished".to_owned(), (5, 5)));
        let tables = |i: usize| {
            let tables = files(dirs[i].path()).into_iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "parquet"));
            let named = tables.map(|(path, content)| (path.strip_prefix(dirs[i].path()).unwrap().to_owned(), content));
            named.collect::<BTreeMap<_, _>>()
        };
        assert!(tables(0) == tables(1) && tables(0).len() == 2 + 2 * plan.points.len());
        // Results of another scenario are refused, even if this shard does not replace them.
        let other =
            scenario::load(&plan.resolved().replace("flows = 20", "flows = 21"), "t.toml", ".".as_ref(), &Options::default());
        let other = other.unwrap_or_else(|e| panic!("{e}"));
        let prepared = prepare(&other, Some(&[0])).unwrap();
        let settings = Settings { only: Some(&[0]), ..settings(dirs[1].path()) };
        let refused = run(&other, &prepared, &settings, &mut go_on).unwrap_err();
        assert!(matches!(refused, Error::Storage(tables::Error::OtherResults { points: 8, .. })), "{refused}");
        let report = run(&other, &prepared, &Settings { overwrite: true, ..settings }, &mut go_on).unwrap();
        assert_eq!((report.ran, report.results.done().count()), (1, 1));
    }

    #[test]
    fn systems_of_a_sweep_have_the_same_flows_and_different_hashes() {
        let plan = plan();
        let prepared = prepare(&plan, None).unwrap();
        for (p, point) in prepared.iter().zip(&plan.points) {
            for (q, other) in prepared.iter().zip(&plan.points) {
                let same_flows = point.seed == other.seed && point.swept == other.swept;
                assert_eq!(p.flows_hash == q.flows_hash, same_flows, "{} {}", point.id, other.id);
                assert_eq!(p.config_hash == q.config_hash, point.id == other.id, "{} {}", point.id, other.id);
            }
        }
    }

    #[test]
    fn a_stopped_run_continues_to_the_results_of_an_unstopped_run() {
        let (plan, dirs) = (plan(), [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()]);
        let whole = run(&plan, &prepare(&plan, None).unwrap(), &settings(dirs[0].path()), &mut go_on).unwrap();
        assert_eq!((whole.ran, whole.kept, whole.results.complete()), (8, 0, true));

        // The third point waits until it is stopped.
        let begun = Mutex::new(0);
        let waits = |spec: &RunSpec, _: Threads, _: EventOrder, control: &mut dyn FnMut(Progress) -> Continue| {
            *begun.lock().unwrap() += 1;
            if *begun.lock().unwrap() < 3 {
                return sim::run(spec, control);
            }
            let progress = Progress { now: base::Time(1), finished: 0, flows: 1, events: 1 };
            while control(progress) == Continue::Yes {
                std::thread::yield_now();
            }
            Ok(Outcome { complete: false, stop_reason: StopReason::Stopped, ..Outcome::default() })
        };
        let mut stop_after_two =
            |tick: &Tick<'_>| if tick.points_done == 2 && tick.point.is_some() { Continue::No } else { Continue::Yes };
        let one = Settings { jobs: 1, ..settings(dirs[1].path()) };
        let stopped = run_with(&plan, &prepare(&plan, None).unwrap(), &one, &waits, &mut stop_after_two).unwrap();
        assert_eq!((stopped.ran, stopped.kept, stopped.results.complete()), (2, 0, false));
        assert_eq!((stopped.results.manifest.complete, stopped.results.manifest.stop_reason.as_str()), (false, "stopped"));
        assert_eq!(stopped.results.points.iter().filter(|p| p.state == State::Interrupted).count(), 1);

        let resumed = run(&plan, &prepare(&plan, None).unwrap(), &settings(dirs[1].path()), &mut go_on).unwrap();
        assert_eq!((resumed.ran, resumed.kept, resumed.results.complete()), (6, 2, true));
        for name in ["points.parquet", "summary.parquet", &format!("{}/flows.parquet", plan.points[7].id)] {
            let [a, b] = [0, 1].map(|i: usize| std::fs::read(dirs[i].path().join(name)).unwrap());
            assert!(a == b, "{name} differs");
        }
        let again = run(&plan, &prepare(&plan, None).unwrap(), &settings(dirs[1].path()), &mut go_on).unwrap();
        assert_eq!((again.ran, again.kept), (0, 8));
    }

    #[test]
    fn a_changed_setting_reruns_the_points_that_it_affects() {
        let (plan, dir) = (plan(), tempfile::tempdir().unwrap());
        run(&plan, &prepare(&plan, None).unwrap(), &settings(dir.path()), &mut go_on).unwrap();
        let mut changed = plan.clone();
        for point in changed.points.iter_mut().filter(|p| p.label == "B") {
            point.run.system.nic.low_water_bytes = None;
        }
        let over = Settings { overwrite: true, ..settings(dir.path()) };
        let report = run(&changed, &prepare(&changed, None).unwrap(), &over, &mut go_on).unwrap();
        assert_eq!((report.ran, report.kept), (4, 4));
    }

    /// All files below a folder, with their contents.
    fn files(dir: &Path) -> BTreeMap<std::path::PathBuf, Vec<u8>> {
        let mut all = BTreeMap::new();
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { all.extend(files(&path)) } else { drop(all.insert(path.clone(), std::fs::read(&path).unwrap())) }
        }
        all
    }

    #[test]
    fn results_of_another_run_are_neither_replaced_nor_left_behind() {
        let (plan, dir) = (plan(), tempfile::tempdir().unwrap());
        run(&plan, &prepare(&plan, None).unwrap(), &settings(dir.path()), &mut go_on).unwrap();
        let before = files(dir.path());
        let mut other_setting = plan.clone();
        other_setting.points[0].run.system.nic.low_water_bytes = None;
        let mut fewer = plan.clone();
        fewer.points.truncate(6);
        let old = dir.path().join(&plan.points[3].id).join(manifest::FILE);
        for (plan, first, why) in
            [(&other_setting, &plan.points[0].id, "other settings"), (&fewer, &plan.points[6].id, "not a point of this scenario")]
        {
            let error = run(plan, &prepare(plan, None).unwrap(), &settings(dir.path()), &mut go_on).unwrap_err();
            assert!(error.to_string().contains(why) && error.to_string().contains(first), "{error}");
            assert!(error.hint().unwrap().contains("--overwrite"));
            assert!(files(dir.path()) == before, "nothing was touched");
        }
        let point: PointManifest = manifest::read(&old).unwrap().unwrap();
        manifest::write(&old, &PointManifest { program: "0.0.1+0".into(), ..point }).unwrap();
        let error = run(&plan, &prepare(&plan, None).unwrap(), &settings(dir.path()), &mut go_on).unwrap_err();
        assert!(error.to_string().contains("1 point, such as") && error.to_string().contains("another version"), "{error}");
        let report =
            run(&fewer, &prepare(&fewer, None).unwrap(), &Settings { overwrite: true, ..settings(dir.path()) }, &mut go_on)
                .unwrap();
        assert_eq!((report.ran, report.kept, report.results.points.len()), (1, 5, 6));
        assert!(!dir.path().join(&plan.points[7].id).exists(), "no orphans");
        // New points are added; existing points are kept.
        let report = run(&plan, &prepare(&plan, None).unwrap(), &settings(dir.path()), &mut go_on).unwrap();
        assert_eq!((report.ran, report.kept), (2, 6));
    }

    #[test]
    fn a_damaged_point_is_rerun_and_reported() {
        let (plan, dir) = (plan(), tempfile::tempdir().unwrap());
        run(&plan, &prepare(&plan, None).unwrap(), &settings(dir.path()), &mut go_on).unwrap();
        let whole = files(dir.path());
        let file = |i: usize, name: &str| dir.path().join(&plan.points[i].id).join(name);
        let flows = file(1, "flows.parquet");
        std::fs::write(&flows, &whole[&flows][..100]).unwrap();
        std::fs::remove_file(file(2, "ports.parquet")).unwrap();
        std::fs::write(file(3, manifest::FILE), "{").unwrap();
        std::fs::remove_dir_all(file(4, "")).unwrap();
        let mut notes = Vec::new();
        let report = run(&plan, &prepare(&plan, None).unwrap(), &settings(dir.path()), &mut |tick| {
            notes = tick.notes.to_vec();
            Continue::Yes
        })
        .unwrap();
        assert_eq!((report.ran, report.kept), (4, 4));
        assert_eq!(notes, report.notes);
        let start =
            format!("note: 4 points are rerun: `{}`, because `{}` is damaged: it has 100", plan.points[1].id, flows.display());
        assert!(notes[0].starts_with(&start) && notes[0].ends_with("and 3 more"), "{notes:?}");
        let again = files(dir.path());
        assert!(again.keys().eq(whole.keys()));
        assert!(whole.iter().all(|(path, bytes)| path.extension().is_none_or(|e| e != "parquet") || again[path] == *bytes));
        assert!(run(&plan, &prepare(&plan, None).unwrap(), &settings(dir.path()), &mut go_on).unwrap().notes.is_empty());
    }

    #[test]
    fn points_that_are_removed_during_a_run_are_reported() {
        let plan = plan();
        let points = |ids: &[usize]| ids.iter().map(|&i| plan.points[i].id.clone()).collect::<Vec<_>>();
        // Removes a folder when this many points are done. Returns the error and the outcome of the
        // next run.
        let tried = |done: usize, gone: &dyn Fn(&Path) -> std::path::PathBuf| {
            let dir = tempfile::tempdir().unwrap();
            let out = dir.path().join("r");
            let one = Settings { jobs: 1, ..settings(&out) };
            let mut removed = false;
            let ended = run(&plan, &prepare(&plan, None).unwrap(), &one, &mut |tick| {
                if tick.points_done == done && !removed {
                    std::fs::remove_dir_all(gone(&out)).unwrap();
                    removed = true;
                }
                Continue::Yes
            });
            let again = run(&plan, &prepare(&plan, None).unwrap(), &one, &mut go_on);
            (ended.unwrap_err(), again.map(|report| (report.ran, report.kept, report.results.manifest.complete)))
        };
        // The largest point runs first, so the finished points are read from the folder.
        let first = |out: &Path| {
            let done = |point: &&Point| out.join(&point.id).join(manifest::FILE).exists();
            out.join(&plan.points.iter().find(done).unwrap().id)
        };
        let (error, again) = tried(8, &first);
        let Error::Storage(tables::Error::Lost { points: 1, named, .. }) = &error else { panic!("{error}") };
        assert!(points(&[0, 1, 2, 3, 4, 5, 6, 7]).iter().any(|id| *named == format!("`{id}`")) && error.hint().is_some());
        assert_eq!(again.unwrap(), (1, 7, true));
        let (error, again) = tried(8, &|out| out.to_owned());
        assert!(matches!(&error, Error::Storage(tables::Error::Lost { points: 8, .. })), "{error}");
        assert_eq!(again.unwrap(), (8, 0, true));
    }

    #[test]
    fn lost_points_are_noted_in_the_manifest() {
        let (plan, dir) = (plan(), tempfile::tempdir().unwrap());
        // The last point to run removes the first.
        let removes = |spec: &RunSpec, _: Threads, _: EventOrder, control: &mut dyn FnMut(Progress) -> Continue| {
            let done = plan.points.iter().map(|point| dir.path().join(&point.id)).filter(|dir| dir.exists());
            let done: Vec<_> = done.collect();
            if done.len() == 7 {
                std::fs::remove_dir_all(&done[0]).unwrap();
            }
            sim::run(spec, control)
        };
        let one = Settings { jobs: 1, ..settings(dir.path()) };
        let error = run_with(&plan, &prepare(&plan, None).unwrap(), &one, &removes, &mut go_on).unwrap_err();
        assert!(matches!(&error, Error::Storage(tables::Error::Lost { points: 1, .. })), "{error}");
        let results = Results::open(dir.path()).unwrap();
        let manifest = &results.manifest;
        assert_eq!((manifest.complete, manifest.stop_reason.as_str(), manifest.done.len()), (false, "lost", 7));
        assert_eq!((results.points.len(), results.complete()), (7, false));
    }

    #[test]
    fn a_panic_is_a_broken_invariant_and_keeps_what_is_finished() {
        let (plan, dir) = (plan(), tempfile::tempdir().unwrap());
        let breaks = |spec: &RunSpec, _: Threads, _: EventOrder, control: &mut dyn FnMut(Progress) -> Continue| {
            if spec.seed == 2 {
                control(Progress { now: base::Time(7_000_000), finished: 0, flows: 1, events: 42 });
                panic!("a packet was lost");
            }
            sim::run(spec, control)
        };
        let one = Settings { jobs: 1, ..settings(dir.path()) };
        let error = run_with(&plan, &prepare(&plan, None).unwrap(), &one, &breaks, &mut go_on).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Broken(_)) && error.hint().is_some());
        for part in ["-seed2", "a packet was lost", "seed 2", "event 42", "7us"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let results = Results::open(dir.path()).unwrap();
        assert_eq!((results.manifest.complete, results.manifest.stop_reason.as_str()), (false, "failed"));
        assert!(dir.path().join("points.parquet").exists());
    }

    #[test]
    fn a_point_that_cannot_run_is_named() {
        let (plan, dir) = (plan(), tempfile::tempdir().unwrap());
        let fails = |_: &RunSpec, _: Threads, _: EventOrder, _: &mut dyn FnMut(Progress) -> Continue| {
            Err(RunError::Workload("no flows".into()))
        };
        let error = run_with(&plan, &prepare(&plan, None).unwrap(), &settings(dir.path()), &fails, &mut go_on).unwrap_err();
        assert!(error.to_string().starts_with("point `") && error.to_string().ends_with("no flows"), "{error}");
    }

    #[test]
    fn ticks_come_on_this_thread_and_count_up_to_all_points() {
        let (plan, dir) = (plan(), tempfile::tempdir().unwrap());
        let (mut last, mut flows) = (0, 0);
        run(&plan, &prepare(&plan, None).unwrap(), &settings(dir.path()), &mut |tick| {
            assert!(tick.points_done >= last && tick.points == 8);
            (last, flows) = (tick.points_done, tick.flows_done);
            Continue::Yes
        })
        .unwrap();
        assert_eq!((last, flows), (8, 8 * 20));
    }

    #[test]
    fn nothing_is_written_when_the_folder_is_in_use() {
        let (plan, dir) = (plan(), tempfile::tempdir().unwrap());
        let _held = RunDir::take(dir.path()).unwrap();
        let error = run(&plan, &prepare(&plan, None).unwrap(), &settings(dir.path()), &mut go_on).unwrap_err();
        assert!(matches!(error, Error::Storage(tables::Error::InUse { .. })));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "only the lock");
    }
}
