//! Workloads that read flows from a file of another program.

use super::hosts::name_of;
use super::size;
use super::{Draw, Drawn, Env, MAX_TIME, Workload};
use crate::files::Files;
use crate::files::tokens::{Tokens, Word};
use base::params::Problem;
use base::{Dur, HostId, Offered, Streams, Time};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;

/// A file format for flows.
pub trait Format {
    /// The parameters of the workload.
    type Params: Debug;
    /// The hint of error messages: a description of the format.
    const HINT: &'static str;
    /// Returns the path of the file.
    fn path(params: &Self::Params) -> &str;
    /// Reads all flows, and the tasks of a program. `hosts` are the hosts of the network. The error
    /// names the place.
    fn read(params: &Self::Params, files: &Files, hosts: &Hosts<'_>) -> Result<Draw, String>;
    /// Returns all files that are read.
    fn files(params: &Self::Params, _files: &Files) -> Vec<String> {
        vec![Self::path(params).to_owned()]
    }
}

/// The hosts of a network; files name them by name or by number.
pub struct Hosts<'a> {
    names: BTreeMap<&'a str, HostId>,
}

impl<'a> Hosts<'a> {
    pub(super) fn of(env: &Env<'a>) -> Self {
        let all = (0..env.net.hosts().len() as u32).map(HostId);
        Hosts { names: all.map(|host| (name_of(env.net, host), host)).collect() }
    }
    /// Returns the number of hosts.
    pub(super) fn count(&self) -> u32 {
        self.names.len() as u32
    }
    /// Returns the host with this name or this number.
    pub(super) fn named(&self, name: &str) -> Option<HostId> {
        let number = || name.parse().ok().filter(|n| *n < self.count()).map(HostId);
        self.names.get(name).copied().or_else(number)
    }
    /// Returns the host that a word names.
    pub(super) fn find(&self, tokens: &Tokens<'_>, word: &Word<'_>) -> Result<HostId, String> {
        self.named(word.text).ok_or_else(|| tokens.wrong(word, "is not a host of this network"))
    }
    /// Returns source and destination of a flow.
    pub(super) fn pair(&self, tokens: &Tokens<'_>, src: &Word<'_>, dst: &Word<'_>) -> Result<(HostId, HostId), String> {
        let ends = (self.find(tokens, src)?, self.find(tokens, dst)?);
        if ends.0 == ends.1 { Err(tokens.wrong(dst, "is also the source: a flow from a host to itself")) } else { Ok(ends) }
    }
}

/// Checks that a run can have this start. The error is the end of a sentence.
pub fn start(at: Dur) -> Result<Time, String> {
    if at > MAX_TIME { Err(format!("it is after {MAX_TIME}")) } else { Ok(Time(at.0)) }
}

/// Returns the problems that depend on the rest of the scenario.
pub fn check<F: Format>(params: &F::Params, env: &Env<'_>) -> Vec<Problem> {
    let problem = |message| vec![Problem { key: "path", message, hint: F::HINT.to_owned() }];
    match read::<F>(params, env) {
        Ok(read) if read.flows.is_empty() => problem(format!("`{}` has no flows", F::path(params))),
        Ok(_) => Vec::new(),
        Err(message) => problem(message),
    }
}

fn read<F: Format>(params: &F::Params, env: &Env<'_>) -> Result<Arc<Draw>, String> {
    once(std::any::type_name::<F>(), params, env, || F::read(params, env.files, &Hosts::of(env)), F::path(params))
}

/// Returns the flows of the file at `path`, read and planned once for all points of all systems.
/// `read` may depend only on the parameters, the names of hosts, the sizes of packets and the
/// contents of files.
pub(super) fn once(
    format: &str,
    params: &impl Debug,
    env: &Env<'_>,
    read: impl FnOnce() -> Result<Draw, String>,
    path: &str,
) -> Result<Arc<Draw>, String> {
    let hosts: Vec<&str> = (0..env.net.hosts().len() as u32).map(|host| name_of(env.net, HostId(host))).collect();
    env.files.made(format!("{format} {params:?} {:?} {}", env.packets, hosts.join(" ")), || {
        let read = read()?;
        super::after::earliest_roots(&read.flows, &read.joins).map_err(|e| format!("{path}: {e}"))?;
        Ok(read)
    })
}

/// A workload that is read from a file.
pub struct Listed<F> {
    files: Vec<String>,
    read: Result<Arc<Draw>, String>,
    format: PhantomData<F>,
}

impl<F: Format> Listed<F> {
    /// Creates the workload with these parameters.
    pub fn new(params: &F::Params, env: &Env<'_>) -> Self {
        Listed { files: F::files(params, env.files), read: read::<F>(params, env), format: PhantomData }
    }
    /// Returns the parameters that have no effect with the values of the others.
    pub fn ignored(_params: &F::Params) -> Vec<&'static str> {
        Vec::new()
    }
}

impl<F: Format> Workload for Listed<F> {
    fn draw(&self, _env: &Env<'_>, _streams: &mut Streams) -> Result<Draw, String> {
        self.read.as_ref().map(|read| Draw::clone(read)).map_err(String::clone)
    }
    fn planned(&self) -> Option<&[Drawn]> {
        self.read.as_ref().ok().map(|draw| draw.flows.as_slice())
    }
    fn flows(&self) -> u64 {
        self.read.as_ref().map_or(0, |read| read.flows.len() as u64)
    }
    fn files(&self) -> Vec<String> {
        self.files.clone()
    }
    fn offered(&self, _env: &Env<'_>) -> Offered {
        let sizes = self.read.iter().flat_map(|read| &read.flows).map(|flow| flow.size_bytes).collect();
        Offered { load: None, sizes: size::points_of_sample(sizes) }
    }
}

/// For the tests of formats.
#[cfg(test)]
pub(super) mod testing {
    use super::super::Drawn;
    use super::super::testing::Bench;
    use crate::files::Files;

    /// Returns the flows of a file of this kind on a tree of nine hosts, or the error.
    pub fn attempt(kind: &str, text: &str, more: &[(&'static str, &str)]) -> Result<Vec<Drawn>, String> {
        warned(kind, text, more).map(|(flows, _)| flows)
    }

    /// Returns the flows of a file of this kind, and the warnings about the file.
    pub fn warned(kind: &str, text: &str, more: &[(&'static str, &str)]) -> Result<(Vec<Drawn>, Vec<String>), String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("flows.txt"), text).unwrap();
        let bench = Bench { files: Files::new(dir.path()), ..Bench::new("single_tree", &[]) };
        let set = [&[("path", "flows.txt")], more].concat();
        bench.read(kind, &set)?;
        let flows = bench.draw(kind, &set, 1);
        Ok((flows, bench.files.warnings().into_iter().map(|warning| warning.message).collect()))
    }
}
