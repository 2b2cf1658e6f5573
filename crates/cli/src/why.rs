//! `flowloom why`: where the time of flows of a finished run went. The point is run again, with a trace of these flows alone.

use crate::sweep::Error;
use crate::text::count;
use base::FlowId;
use fabric::net::Net;
use scenario::{Memory, Options, Plan};
use sim::outcome::Engine;
use sim::why::Breakdown;
use sim::{Continue, Progress};
use std::path::Path;
use std::sync::Arc;
use tables::{PROGRAM, PointKey, PointManifest, Results};

/// How many flows are shown where none is named.
const SLOWEST: usize = 5;

/// Where the time of some flows of a point went.
#[derive(Clone, Debug)]
pub struct Why {
    /// The point.
    pub point: PointKey,
    /// Its network.
    pub net: Arc<Net>,
    /// The flows in the order asked for, the slowest first where none was named.
    pub flows: Vec<Breakdown>,
}

/// Runs a point of `results` again and tells where the time of its `flows` went; without flows, of the slowest. Without a point it is the
/// only one, or the one with the slowest flow. `dir` is the folder of the scenario, for the files that it reads.
pub fn why(
    results: &Results,
    point: Option<&str>,
    flows: &[u32],
    dir: &Path,
    control: &mut dyn FnMut(Progress) -> Continue,
) -> Result<Why, Error> {
    let (point, slowest) = chosen(results, point, flows)?;
    let flows: Vec<u32> = if flows.is_empty() { slowest } else { flows.to_vec() };
    let plan = again(results, dir)?;
    let hash = |p: &scenario::Point| format!("{:016x}", p.config_hash());
    let spec = plan.points.iter().find(|p| p.id == point.key.id).filter(|p| hash(p) == point.config_hash).map(|p| &p.run);
    let spec = spec.ok_or_else(|| {
        let id = &point.key.id;
        Error::Input(format!(
            "`{id}` cannot be run again: its scenario reads other files, or reads otherwise with this version\nhint: {FILES}"
        ))
    })?;
    let ids: Vec<FlowId> = flows.iter().map(|id| FlowId(*id)).collect();
    let (outcome, mut found) =
        sim::why::why(spec, &ids, control).map_err(|source| Error::Run { point: point.key.id.clone(), source })?;
    if !outcome.complete {
        return Err(Error::Stopped);
    }
    if format!("{:016x}", outcome.counters.digest) != point.counters.digest {
        let hint = format!("it was run with {}, and this is {PROGRAM}: run it again with this version", point.program);
        return Err(Error::Input(format!("`{}` comes out otherwise when it is run again\nhint: {hint}", point.key.id)));
    }
    if let Some(id) = flows.iter().find(|id| !found.iter().any(|flow| flow.flow.flow_id == **id)) {
        let all = outcome.flows.len();
        let (what, hint) = match outcome.flows.get(*id as usize) {
            Some(_) => ("did not finish", "take one with a `fct_ps` in the table of flows".to_owned()),
            None => ("is not there", format!("the point has {}, from 0 on", count(all, "flow"))),
        };
        return Err(Error::Input(format!("flow {id} {what} in `{}`\nhint: {hint}", point.key.id)));
    }
    found.sort_by_key(|flow| flows.iter().position(|id| *id == flow.flow.flow_id));
    Ok(Why { point: point.key.clone(), net: Arc::clone(&spec.net), flows: found })
}

const FILES: &str = "give the folder of the scenario by `--files`, with the files as they were, and the version that ran it";

/// The point asked for, and its slowest flows.
fn chosen<'a>(results: &'a Results, point: Option<&str>, flows: &[u32]) -> Result<(&'a PointManifest, Vec<u32>), Error> {
    let simulated: Vec<&PointManifest> = results.done().filter(|point| point.engine == Engine::Packet.name()).collect();
    if simulated.is_empty() && results.done().next().is_some() {
        let hint = "where the time of a flow went is known of packets: run the scenario with `engine = \"packet\"`";
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
            "no finished point of a simulated system is called `{id}`{near}\nhint: one of {}",
            names()
        )));
    }
    if points.len() > 1 && !flows.is_empty() {
        let message = format!("the run has {}: which flow {} is meant?", count(points.len(), "point"), flows[0]);
        return Err(Error::Input(format!("{message}\nhint: name the point by `--point`: {}", names())));
    }
    let mut slowest: Option<(f64, &PointManifest, Vec<u32>)> = None;
    for point in points {
        let found = results.slowest(point, SLOWEST)?;
        let most = found.first().map_or(0.0, |(slowdown, _)| *slowdown);
        if slowest.as_ref().is_none_or(|(before, ..)| most > *before) {
            slowest = Some((most, point, found.into_iter().map(|(_, id)| id).collect()));
        }
    }
    match slowest {
        Some((_, point, ids)) if !ids.is_empty() || !flows.is_empty() => Ok((point, ids)),
        _ => Err(Error::Input("no flow has finished\nhint: a later `end` in the scenario gives flows more time".to_owned())),
    }
}

/// The plan of a run, from what its manifest says.
fn again(results: &Results, dir: &Path) -> Result<Plan, Error> {
    // The point has run before, whatever memory it took.
    let options = Options { memory: Memory::UNLIMITED, ..Options::default() };
    scenario::load(&results.manifest.config, &results.manifest.name, dir, &options).map_err(|found| {
        let first = found.items().first().map_or(String::new(), |item| format!(": {}", item.message));
        Error::Input(format!("the scenario of `{}` cannot be read again{first}\nhint: {FILES}", results.path().display()))
    })
}
