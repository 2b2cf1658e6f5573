//! Flows one by one, from a CSV file.
//!
//! Columns `src`, `dst` (names of hosts, or their numbers), `size_bytes`, `start` (a time with unit) and, if wanted, `deadline` (the time
//! at which the flow should have finished, with unit, counted from the start of the run) and `group` (a whole number).
//!
//! Source: own format.

use super::cdf::MAX_SIZE_BYTES;
use super::size::Unit;
use super::{Draft, Env, MAX_TIME, Workload};
use crate::csv_rows::{Row, rows};
use base::params::Problem;
use base::registry::{Meta, Needs};
use base::units::parse_dur;
use base::{HostId, Rate, Streams, Time};
use std::collections::BTreeMap;

/// What `list` and `check` know of it.
pub const META: Meta = Meta {
    summary: "flows one by one, from a file",
    source: "own format: src,dst,size_bytes,start[,deadline,group]",
    needs: Needs::NONE,
};

base::params! {
    /// Parameters of a table of flows.
    pub struct Params {
        /// CSV file with the columns `src`, `dst`, `size_bytes`, `start` and, if wanted, `deadline`, `group`; relative to the scenario.
        path: String = "", "";
        /// What sizes count: application bytes, or bytes on the wire.
        size_unit: Unit = "payload", "application view";
    }
}

/// Problems that show only against the rest of the scenario.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let hint = "the file has the columns `src,dst,size_bytes,start[,deadline,group]`, like `h0,h3,1500000,10us`";
    match read(params, env) {
        Ok(flows) if flows.is_empty() => {
            vec![Problem { key: "path", message: format!("`{}` has no flows", params.path), hint: hint.to_owned() }]
        }
        Ok(_) => Vec::new(),
        Err(message) => vec![Problem { key: "path", message, hint: hint.to_owned() }],
    }
}

fn read(params: &Params, env: &Env<'_>) -> Result<Vec<Draft>, String> {
    let text = env.files.text(&params.path)?;
    let all = (0..env.net.hosts().len() as u32).map(HostId);
    let hosts: BTreeMap<&str, HostId> = all.map(|h| (super::hosts::name_of(env.net, h), h)).collect();
    let table = rows(&params.path, &text, &["src", "dst", "size_bytes", "start"], &["deadline", "group"])?;
    table.map(|row| flow(&row?, &hosts, params, env)).collect()
}

fn flow(row: &Row<'_>, hosts: &BTreeMap<&str, HostId>, params: &Params, env: &Env<'_>) -> Result<Draft, String> {
    let host = |column| {
        let text = row.get(column)?;
        let number = || text.parse().ok().filter(|n| (*n as usize) < hosts.len()).map(HostId);
        hosts.get(text).copied().or_else(number).ok_or_else(|| row.wrong(column, &format!("there is no host `{text}`")))
    };
    let (src, dst) = (host("src")?, host("dst")?);
    if src == dst {
        return Err(row.wrong("dst", "a flow from a host to itself"));
    }
    let whole = |text: &str| text.parse::<u64>().map_err(|_| "is not a whole number".to_owned());
    let size = row.parse("size_bytes", whole)?;
    if !(1..=MAX_SIZE_BYTES).contains(&size) {
        return Err(row.wrong("size_bytes", &format!("`{size}` is out of range: from 1 to {MAX_SIZE_BYTES}")));
    }
    let time = |column| {
        let at = row.parse(column, parse_dur)?;
        if at > MAX_TIME { Err(row.wrong(column, &format!("`{at}` is after {MAX_TIME}"))) } else { Ok(Time(at.0)) }
    };
    let start = time("start")?;
    let deadline = row.optional("deadline").is_some().then(|| time("deadline")).transpose()?;
    if deadline.is_some_and(|d| d <= start) {
        return Err(row.wrong("deadline", "does not lie after the start; it counts from the start of the run"));
    }
    let group = |text: &str| text.parse::<u32>().map_err(|_| "is not a whole number below 2^32".to_owned());
    let group = row.optional("group").is_some().then(|| row.parse("group", group)).transpose()?;
    Ok(Draft { src, dst, size_bytes: env.payload(size, params.size_unit), start, deadline, group })
}

/// The workload.
pub struct Table {
    params: Params,
    flows: u64,
}

impl Table {
    /// With these parameters.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let flows = env.files.text(&params.path).map_or(0, |text| text.lines().count() as u64);
        Table { params: params.clone(), flows }
    }
}

impl Workload for Table {
    fn draw(&self, env: &Env<'_>, _streams: &mut Streams) -> Result<Vec<Draft>, String> {
        read(&self.params, env)
    }
    fn flows(&self) -> u64 {
        self.flows
    }
    fn ignored(&self) -> Vec<&'static str> {
        Vec::new()
    }
    fn files(&self) -> Vec<String> {
        vec![self.params.path.clone()]
    }
    fn reference(&self, _env: &Env<'_>) -> Option<(Rate, Time)> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::files::Files;

    fn attempt(text: &str) -> Result<Vec<Draft>, String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("flows.csv"), text).unwrap();
        let bench = Bench { files: Files::new(dir.path()), ..Bench::new("single_tree", &[]) };
        bench.read("table", &[("path", "flows.csv")])?;
        Ok(bench.draw("table", &[("path", "flows.csv")], 1))
    }

    #[test]
    fn rows_become_flows() {
        let flows = attempt("src,dst,size_bytes,start,deadline,group\nh0,h3,1500,10us,,\n8,h0,1,0s,2ms,7\n").unwrap();
        let expected = [
            Draft { src: HostId(0), dst: HostId(3), size_bytes: 1500, start: Time(10_000_000), deadline: None, group: None },
            Draft {
                src: HostId(8),
                dst: HostId(0),
                size_bytes: 1,
                start: Time(0),
                deadline: Some(Time(2_000_000_000)),
                group: Some(7),
            },
        ];
        assert_eq!(flows, expected);
        assert_eq!(attempt("dst,src,start,size_bytes\n1,0,1ns,5\n").unwrap().len(), 1);
    }

    #[test]
    fn bad_rows_are_named() {
        for (row, why) in [
            ("h0,h0,1,0s,,", "itself"),
            ("h0,h9,1,0s,,", "column `dst`: there is no host `h9`"),
            ("h0,h1,0,0s,,", "out of range"),
            ("h0,h1,1.5,0s,,", "`1.5` is not a whole number"),
            ("h0,h1,1,5,,", "has no unit"),
            ("h0,h1,1,2000000s,,", "is after"),
            ("h0,h1,1,2s,1s,", "not lie after the start"),
            ("h0,h1,1,2s,2s,", "not lie after the start"),
            ("h0,h1,1,0s,,x", "`x` is not a whole number"),
            ("h0,h1,1", "3 values"),
        ] {
            let message = attempt(&format!("src,dst,size_bytes,start,deadline,group\n{row}\n")).unwrap_err();
            assert!(message.contains(why) && message.contains("flows.csv:2"), "{row}: {message}");
        }
        assert!(attempt("src,dst,size_bytes,start\n").unwrap_err().contains("no flows"));
        assert!(attempt("src,dst,start\n").unwrap_err().contains("`size_bytes`"));
    }
}
