//! `flowloom why`: where flows of a finished run spent their time. Reruns the point with a trace of
//! these flows.

use crate::sweep::Error;
use crate::text::count;
use base::{FlowId, Time};
use fabric::net::Net;
use scenario::{Memory, Options, Plan, RunSpec};
use sim::outcome::{Engine, PacketRow};
use sim::why::{Breakdown, Life, Watched};
use sim::{Continue, Progress};
use std::path::Path;
use std::sync::Arc;
use tables::{FlowLife, PROGRAM, PointKey, PointManifest, Results};

/// The number of flows that are shown if the user names none.
pub const SLOWEST: usize = 5;

/// The flows of a point to explain.
#[derive(Clone, Debug)]
pub enum Which {
    /// This many flows with the largest slowdown.
    Slowest(usize),
    /// The flows with these ids.
    These(Vec<u32>),
}

/// Where some flows of a point spent their time.
#[derive(Clone, Debug)]
pub struct Why {
    /// The point.
    pub point: PointKey,
    /// Its network.
    pub net: Arc<Net>,
    /// The flows in the order of the request, or the slowest first if no flow was named.
    pub flows: Vec<Breakdown>,
    /// The packets around the flows, if requested.
    pub packets: Option<Vec<PacketRow>>,
}

/// Reruns a point of `results` and returns where some of its flows spent their time. Without
/// `point`, takes the only point, or the point with the slowest flow. With `trace`, reruns the
/// point once more to record the packets around the flows. `dir` is the folder of the scenario, for
/// the files that it reads.
pub fn why(
    results: &Results,
    point: Option<&str>,
    flows: &Which,
    trace: bool,
    dir: &Path,
    control: &mut dyn FnMut(Progress) -> Continue,
) -> Result<Why, Error> {
    let (point, flows) = chosen(results, point, flows)?;
    let lives = lives(results, point, &flows)?;
    if let Some(open) = lives.iter().find(|life| life.open.end == Time::MAX) {
        let hint = "choose a flow that has a `fct_ps` in the table of flows";
        return Err(Error::Input(format!("flow {} did not finish in `{}`\nhint: {hint}", open.flow.0, point.key.id)));
    }
    let plan = again(results, dir)?;
    let spec = spec_of(&plan, point)?;
    let failed = |source| Error::Run { point: point.key.id.clone(), source };
    sim::why::explains(spec).map_err(failed)?;
    let watched = watch(spec, point, &lives, control)?;
    let mut found = watched.breakdowns().map_err(failed)?;
    found.sort_by_key(|flow| flows.iter().position(|id| *id == flow.flow.flow_id));
    let packets = if trace { Some(around(&watched, point, control)?) } else { None };
    Ok(Why { point: point.key.clone(), net: Arc::clone(&spec.net), flows: found, packets })
}

/// Reruns a point of `results` and returns the packets around some of its flows: see
/// [`Watched::around`].
pub fn packets_around(
    results: &Results,
    point: Option<&str>,
    flows: &[u32],
    dir: &Path,
    control: &mut dyn FnMut(Progress) -> Continue,
) -> Result<Vec<PacketRow>, Error> {
    let (point, flows) = chosen(results, point, &Which::These(flows.to_vec()))?;
    let lives = lives(results, point, &flows)?;
    let plan = again(results, dir)?;
    let watched = watch(spec_of(&plan, point)?, point, &lives, control)?;
    around(&watched, point, control)
}

fn around(
    watched: &Watched<'_>,
    point: &PointManifest,
    control: &mut dyn FnMut(Progress) -> Continue,
) -> Result<Vec<PacketRow>, Error> {
    let (packets, complete) = watched.around(control).map_err(|source| Error::Run { point: point.key.id.clone(), source })?;
    if complete { Ok(packets) } else { Err(Error::Stopped) }
}

/// Reruns a point. Fails if its results differ from those of the first run.
fn watch<'a>(
    spec: &'a RunSpec,
    point: &PointManifest,
    lives: &[Life],
    control: &mut dyn FnMut(Progress) -> Continue,
) -> Result<Watched<'a>, Error> {
    let watched = sim::why::watch(spec, lives, control).map_err(|source| Error::Run { point: point.key.id.clone(), source })?;
    if !watched.outcome.complete {
        return Err(Error::Stopped);
    }
    if format!("{:016x}", watched.outcome.counters.digest) != point.counters.digest {
        let hint =
            format!("the results are of flowloom {}, and this is {PROGRAM}: run the scenario with this version", point.program);
        return Err(Error::Input(format!("`{}` gives other results when it is rerun\nhint: {hint}", point.key.id)));
    }
    Ok(watched)
}

/// Returns when the flows were open.
fn lives(results: &Results, point: &PointManifest, flows: &[u32]) -> Result<Vec<Life>, Error> {
    let all = results.lives(point)?;
    let life = |id: &u32| {
        let wrong = |what: &str, hint: String| Error::Input(format!("flow {id} {what} in `{}`\nhint: {hint}", point.key.id));
        let found = all.binary_search_by_key(id, |life| life.flow_id);
        let at =
            found.map_err(|_| wrong("does not exist", format!("the point has {} with ids from 0", count(all.len(), "flow"))))?;
        let FlowLife { start_ps, finish_ps, .. } = all[at];
        let start =
            start_ps.ok_or_else(|| wrong("never began", "choose a flow that has a `start_ps` in the table of flows".to_owned()))?;
        Ok(Life { flow: FlowId(*id), open: Time(start)..finish_ps.map_or(Time::MAX, Time) })
    };
    flows.iter().map(life).collect()
}

const FILES: &str =
    "give the folder of the scenario with `--files`, with unchanged files, and use the version of flowloom that ran it";

/// Finds the run of a point in the plan that was read from the manifest.
fn spec_of<'a>(plan: &'a Plan, point: &PointManifest) -> Result<&'a RunSpec, Error> {
    let hash = |p: &scenario::Point| format!("{:016x}", p.config_hash());
    let spec = plan.points.iter().find(|p| p.id == point.key.id).filter(|p| hash(p) == point.config_hash).map(|p| &p.run);
    spec.ok_or_else(|| {
        let id = &point.key.id;
        Error::Input(format!(
            "`{id}` cannot be rerun: files that its scenario reads have changed, or this version reads the scenario differently\nhint: {FILES}"
        ))
    })
}

/// Returns the requested point and flows.
fn chosen<'a>(results: &'a Results, point: Option<&str>, flows: &Which) -> Result<(&'a PointManifest, Vec<u32>), Error> {
    let simulated: Vec<&PointManifest> = results.done().filter(|point| point.engine == Engine::Packet.name()).collect();
    if simulated.is_empty() && results.done().next().is_some() {
        let hint = "only the packet engine records where flows spend their time: run the scenario with `engine = \"packet\"`";
        return Err(Error::Input(format!("no point was run by the packet engine\nhint: {hint}")));
    }
    let names = || simulated.iter().take(20).map(|point| format!("`{}`", point.key.id)).collect::<Vec<_>>().join(", ");
    let points: Vec<&PointManifest> = match point {
        Some(id) => simulated.iter().copied().filter(|point| point.key.id == id).collect(),
        None => simulated.clone(),
    };
    if let (Some(id), []) = (point, points.as_slice()) {
        let near = base::params::nearest(id, simulated.iter().map(|point| point.key.id.as_str()));
        let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        return Err(Error::Input(format!(
            "there is no finished point `{id}` of the packet engine{near}\nhint: one of {}",
            names()
        )));
    }
    let none =
        || Error::Input("no flow has finished\nhint: write a later `end` in the scenario to give flows more time".to_owned());
    let number = match flows {
        Which::These(flows) => {
            let [point] = points[..] else {
                let which = flows.first().map_or(String::new(), |flow| format!(", so flow {flow} is ambiguous"));
                let message = format!("the run has {}{which}", count(points.len(), "point"));
                return Err(Error::Input(format!("{message}\nhint: choose one with `--point`: {}", names())));
            };
            return Ok((point, flows.clone()));
        }
        Which::Slowest(number) => *number,
    };
    let mut slowest: Option<(f64, &PointManifest, Vec<u32>)> = None;
    for point in points {
        let found = results.slowest(point, number)?;
        let most = found.first().map_or(0.0, |(slowdown, _)| *slowdown);
        if slowest.as_ref().is_none_or(|(before, ..)| most > *before) {
            slowest = Some((most, point, found.into_iter().map(|(_, id)| id).collect()));
        }
    }
    slowest.filter(|(.., ids)| !ids.is_empty()).map(|(_, point, ids)| (point, ids)).ok_or_else(none)
}

/// Reads the plan of a run from the scenario in its manifest.
fn again(results: &Results, dir: &Path) -> Result<Plan, Error> {
    // The point has run before, so its memory is not checked again.
    let options = Options { memory: Memory::UNLIMITED, ..Options::default() };
    scenario::load(&results.manifest.config, &results.manifest.name, dir, &options).map_err(|found| {
        let first = found.items().first().map_or(String::new(), |item| format!(": {}", item.message));
        Error::Input(format!("the scenario of `{}` cannot be read again{first}\nhint: {FILES}", results.path().display()))
    })
}
