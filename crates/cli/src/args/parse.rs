//! Parsers of option values.

use base::units::parse_bytes;
use sim::EventOrder;

pub(super) fn jobs(text: &str) -> Result<usize, String> {
    let n = text.parse().ok().filter(|n| *n > 0);
    n.ok_or_else(|| "it must be a whole number of at least 1; without the option one point runs per core".to_owned())
}

pub(super) fn memory(text: &str) -> Result<u64, String> {
    let found = parse_bytes(text).map_err(|why| format!("it {why}"))?;
    Some(found.0).filter(|bytes| *bytes > 0).ok_or_else(|| "it must be more than 0B".to_owned())
}

pub(super) fn tail(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..1.0).contains(share));
    share.ok_or_else(|| "it must be at least 0 and less than 1, such as `0.99`".to_owned())
}

/// Number of threads per point; 0 means `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadsArg(pub usize);

pub(super) fn threads(text: &str) -> Result<ThreadsArg, String> {
    let n = if text == "auto" { Some(0) } else { text.parse().ok().filter(|n| *n > 0) };
    n.map(ThreadsArg).ok_or_else(|| "it must be `auto` or a whole number of at least 1".to_owned())
}

/// The order of events in a run by packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineArg(pub EventOrder);

pub(super) fn engine(text: &str) -> Result<EngineArg, String> {
    EventOrder::named(text).map(EngineArg).ok_or_else(|| "it must be `auto`, `tree` or `windows`".to_owned())
}

/// A shard: one of several shares of the points of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The number of this shard, from 1.
    pub number: usize,
    /// The number of shards.
    pub of: usize,
}

impl Shard {
    /// Returns the indices of its points among `points` points. Neighbouring points take similar
    /// time, so they go to different shards.
    pub fn points(self, points: usize) -> Vec<usize> {
        (self.number - 1..points).step_by(self.of).collect()
    }
}

pub(super) fn shard(text: &str) -> Result<Shard, String> {
    let numbers = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
    match numbers {
        Some((number, of)) if 1 <= number && number <= of => Ok(Shard { number, of }),
        _ => Err("it must be the number of a shard and the number of shards, from `1/10` to `10/10` for ten shards".to_owned()),
    }
}

pub(super) fn place(text: &str) -> Result<String, String> {
    let host_and_port =
        |rest: &str| rest.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    match text.strip_prefix("dask://") {
        Some(rest) if host_and_port(rest) => Ok(text.to_owned()),
        None if ["local", "dask", "slurm"].contains(&text) => Ok(text.to_owned()),
        _ => Err("it must be `local`, `dask`, `dask://HOST:PORT` or `slurm`".to_owned()),
    }
}

pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("it must be a key and a value, such as `workload.web.load=0.8`")?;
    let key = key.trim();
    if key.is_empty() {
        return Err("there is no key before the `=`".to_owned());
    }
    Ok((key.to_owned(), value.trim().to_owned()))
}
