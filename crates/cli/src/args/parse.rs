//! Parsers of option values.

use super::Args;
use base::units::parse_bytes;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command, CommandFactory as _, FromArgMatches as _};
use sim::EventOrder;

/// Parses the command line `args`, which does not include the name of the program. An empty value is refused for every option,
/// so that no command takes it for an option that was not given.
pub fn parse(args: &[String]) -> Result<Args, clap::Error> {
    let mut command = Args::command();
    let matches = command.try_get_matches_from_mut(std::iter::once("flowloom").chain(args.iter().map(String::as_str)))?;
    refuse_empty(&mut command, &matches)?;
    Args::from_arg_matches(&matches)
}

fn refuse_empty(command: &mut Command, matches: &ArgMatches) -> Result<(), clap::Error> {
    let Some((name, matches)) = matches.subcommand() else { return Ok(()) };
    let command = command.find_subcommand_mut(name).expect("clap has parsed the name");
    for id in matches.ids() {
        let values = matches.try_get_raw(id.as_str()).ok().flatten();
        let argument = command.get_arguments().find(|argument| argument.get_id() == id);
        let Some((argument, mut values)) = argument.map(ToString::to_string).zip(values) else { continue };
        if values.any(|value| value.to_string_lossy().trim().is_empty()) {
            let mut error = clap::Error::new(ErrorKind::InvalidValue).with_cmd(command);
            error.insert(ContextKind::InvalidArg, ContextValue::String(argument));
            error.insert(ContextKind::InvalidValue, ContextValue::String(String::new()));
            return Err(error);
        }
    }
    Ok(())
}

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
    let value = value.trim();
    if value.is_empty() {
        return Err("there is no value after the `=`; an empty text is written `\"\"`".to_owned());
    }
    Ok((key.to_owned(), value.to_owned()))
}
