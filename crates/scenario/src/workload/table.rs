//! Flows one by one, from a CSV file.
//!
//! Columns `src`, `dst` (names of hosts, or their numbers), `size_bytes`, `start` (a time with unit) and, if wanted, `deadline` (the time
//! at which the flow should have finished, with unit, counted from the start of the run) and `group` (a whole number).
//!
//! A flow may wait for others: `after` names the rows of these flows, counted from 1 and separated by spaces, and `delay` is the time from
//! the last of their ends to the start of the flow (`0s` where it is empty). Such a flow has no `start`, and its `deadline` counts from its start.
//!
//! Files of others may call columns otherwise and have more of them: `columns` gives our names and the file's, and `time_unit` what their times count.
//!
//! Source: own format.

use super::after::earliest_roots;
use super::cdf::MAX_SIZE_BYTES;
use super::size::{self, Unit};
use super::{After, Drawn, Env, MAX_TIME, Workload};
use crate::csv_rows::{Row, renamed};
use base::params::Problem;
use base::registry::Meta;
use base::units::parse_dur;
use base::{Dur, HostId, Offered, Streams, Time};
use std::collections::BTreeMap;

/// What `list` and `check` know of it.
pub const META: Meta = Meta {
    summary: "flows one by one, from a file",
    source: "own format: src,dst,size_bytes,start[,deadline,group,after,delay]",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of a table of flows.
    pub struct Params {
        /// CSV file with the columns `src`, `dst`, `size_bytes`, `start` and, if wanted, `deadline`, `group`, `after`, `delay`; relative to the scenario.
        path: String = "", "";
        /// What sizes count: application bytes, or bytes on the wire.
        size_unit: Unit = "payload", "application view";
        /// What the file calls columns that it calls otherwise, like `src=from, size_bytes=bytes`; it may have more columns then. `own`: as above.
        columns: String = "own", "own format", quiet;
        /// What times count; `text`: each time has its unit.
        time_unit: TimeUnit = "text", "own format", quiet;
    }
}

base::choice! {
    /// What times count.
    pub enum TimeUnit {
        /// Each time has its unit.
        Text = "text",
        /// Seconds.
        S = "s",
        /// Milliseconds.
        Ms = "ms",
        /// Microseconds.
        Us = "us",
        /// Nanoseconds.
        Ns = "ns",
        /// Picoseconds.
        Ps = "ps",
    }
}

const NEEDED: [&str; 4] = ["src", "dst", "size_bytes", "start"];
const OPTIONAL: [&str; 4] = ["deadline", "group", "after", "delay"];

/// The columns that are called otherwise: our names and the file's.
fn columns(text: &str) -> Result<Option<Vec<(&'static str, String)>>, String> {
    if text == "own" {
        return Ok(None);
    }
    let pair = |pair: &str| {
        let (ours, theirs) = pair.split_once('=').ok_or_else(|| format!("`{}` is not like `src=from`", pair.trim()))?;
        let known = NEEDED.iter().chain(&OPTIONAL).find(|name| **name == ours.trim());
        let known = known
            .ok_or_else(|| format!("`{}` is no column of flows: one of {}", ours.trim(), [NEEDED, OPTIONAL].concat().join(", ")))?;
        Ok((*known, theirs.trim().to_owned()))
    };
    text.split(',').map(pair).collect::<Result<Vec<_>, String>>().map(Some)
}

/// Problems that show only against the rest of the scenario.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let hint = "the file has the columns `src,dst,size_bytes,start[,deadline,group,after,delay]`, like `h0,h3,1500000,10us`";
    if let Err(message) = columns(&params.columns) {
        return vec![Problem { key: "columns", message, hint: "like `src=from, dst=to, size_bytes=bytes`".to_owned() }];
    }
    match read(params, env) {
        Ok(flows) if flows.is_empty() => {
            vec![Problem { key: "path", message: format!("`{}` has no flows", params.path), hint: hint.to_owned() }]
        }
        Ok(_) => Vec::new(),
        Err(message) => vec![Problem { key: "path", message, hint: hint.to_owned() }],
    }
}

fn read(params: &Params, env: &Env<'_>) -> Result<Vec<Drawn>, String> {
    let text = env.files.text(&params.path)?;
    let all = (0..env.net.hosts().len() as u32).map(HostId);
    let hosts: BTreeMap<&str, HostId> = all.map(|h| (super::hosts::name_of(env.net, h), h)).collect();
    let names = columns(&params.columns)?;
    let table = renamed(&params.path, &text, &NEEDED, &OPTIONAL, names.as_deref())?;
    let flows = table.map(|row| flow(&row?, &hosts, params, env)).collect::<Result<Vec<Drawn>, String>>()?;
    let beyond = |flow: &Drawn| flow.after.iter().flat_map(|after| &after.flows).any(|(other, _)| *other as usize >= flows.len());
    if let Some(number) = flows.iter().position(beyond) {
        return Err(format!(
            "{}: flow {} waits for a row that is not there; the last row is {}",
            params.path,
            number + 1,
            flows.len()
        ));
    }
    earliest_roots(&flows).map_err(|e| format!("{}: {e}", params.path))?;
    Ok(flows)
}

fn flow(row: &Row<'_>, hosts: &BTreeMap<&str, HostId>, params: &Params, env: &Env<'_>) -> Result<Drawn, String> {
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
        let at = row.parse(column, |text| params.time_unit.read(text))?;
        if at > MAX_TIME { Err(row.wrong(column, &format!("`{at}` is after {MAX_TIME}"))) } else { Ok(Time(at.0)) }
    };
    let after = after(row, params)?;
    if after.is_some() && row.optional("start").is_some() {
        return Err(row.wrong("start", "a flow that waits for others has no start of its own: leave it empty"));
    }
    let start = if after.is_some() { Time::ZERO } else { time("start")? };
    let deadline = row.optional("deadline").is_some().then(|| time("deadline")).transpose()?;
    if deadline.is_some_and(|d| d <= start) {
        return Err(row.wrong("deadline", "does not lie after the start; it counts from the start of the run"));
    }
    let group = |text: &str| text.parse::<u32>().map_err(|_| "is not a whole number below 2^32".to_owned());
    let group = row.optional("group").is_some().then(|| row.parse("group", group)).transpose()?;
    Ok(Drawn { src, dst, size_bytes: env.payload(size, params.size_unit), start, deadline, group, after })
}

impl TimeUnit {
    /// A time in this unit.
    fn read(self, text: &str) -> Result<Dur, String> {
        let unit = match self {
            TimeUnit::Text => return parse_dur(text),
            TimeUnit::S => "s",
            TimeUnit::Ms => "ms",
            TimeUnit::Us => "us",
            TimeUnit::Ns => "ns",
            TimeUnit::Ps => "ps",
        };
        // `5m` with the unit `s` is not 5 ms.
        if !text.ends_with(|last: char| last.is_ascii_digit()) {
            return Err(format!("is not a number of {unit}"));
        }
        parse_dur(&format!("{text}{unit}"))
    }
}

/// The flows that the flow of a row waits for.
fn after(row: &Row<'_>, params: &Params) -> Result<Option<After>, String> {
    let delay = row.optional("delay").is_some().then(|| row.parse("delay", |text| params.time_unit.read(text))).transpose()?;
    if row.optional("after").is_none() {
        return match delay {
            Some(_) => Err(row.wrong("delay", "is given, and `after` is not")),
            None => Ok(None),
        };
    }
    let number = |word: &str| {
        word.parse().ok().and_then(|n: u32| n.checked_sub(1)).ok_or_else(|| format!("`{word}` is not the number of a row"))
    };
    let mut flows = row.parse("after", |text: &str| text.split_whitespace().map(number).collect::<Result<Vec<u32>, String>>())?;
    flows.sort_unstable();
    flows.dedup();
    Ok(Some(After::new(&flows, delay.unwrap_or(Dur::ZERO))))
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
    /// Parameters that have no effect beside the others.
    pub fn ignored(_params: &Params) -> Vec<&'static str> {
        Vec::new()
    }
}

impl Workload for Table {
    fn draw(&self, env: &Env<'_>, _streams: &mut Streams) -> Result<Vec<Drawn>, String> {
        read(&self.params, env)
    }
    fn flows(&self) -> u64 {
        self.flows
    }
    fn files(&self) -> Vec<String> {
        vec![self.params.path.clone()]
    }
    fn deadlines(&self, env: &Env<'_>) -> bool {
        read(&self.params, env).is_ok_and(|flows| flows.iter().any(|flow| flow.deadline.is_some()))
    }
    fn offered(&self, env: &Env<'_>) -> Offered {
        let sizes = read(&self.params, env).map_or(Vec::new(), |flows| flows.into_iter().map(|flow| flow.size_bytes).collect());
        Offered { load: None, sizes: size::points_of_sample(sizes) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::files::Files;

    fn attempt(text: &str) -> Result<Vec<Drawn>, String> {
        attempt_with(text, &[])
    }

    fn attempt_with(text: &str, options: &[(&'static str, &str)]) -> Result<Vec<Drawn>, String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("flows.csv"), text).unwrap();
        let bench = Bench { files: Files::new(dir.path()), ..Bench::new("single_tree", &[]) };
        let options = [&[("path", "flows.csv")], options].concat();
        bench.read("table", &options)?;
        Ok(bench.draw("table", &options, 1))
    }

    #[test]
    fn it_knows_whether_some_row_has_a_deadline() {
        let dir = tempfile::tempdir().unwrap();
        for (rows, some) in [("h0,h3,1,10us,", false), ("h0,h3,1,0s,\nh0,h3,1,10us,2ms", true)] {
            std::fs::write(dir.path().join("flows.csv"), format!("src,dst,size_bytes,start,deadline\n{rows}\n")).unwrap();
            let bench = Bench { files: Files::new(dir.path()), ..Bench::new("single_tree", &[]) };
            let table = bench.read("table", &[("path", "flows.csv")]).unwrap();
            assert_eq!(table.deadlines(&bench.env()), some, "{rows}");
        }
    }

    #[test]
    fn rows_become_flows() {
        let flows = attempt("src,dst,size_bytes,start,deadline,group\nh0,h3,1500,10us,,\n8,h0,1,0s,2ms,7\n").unwrap();
        let expected = [
            Drawn {
                src: HostId(0),
                dst: HostId(3),
                size_bytes: 1500,
                start: Time(10_000_000),
                deadline: None,
                group: None,
                after: None,
            },
            Drawn {
                src: HostId(8),
                dst: HostId(0),
                size_bytes: 1,
                start: Time(0),
                deadline: Some(Time(2_000_000_000)),
                group: Some(7),
                after: None,
            },
        ];
        assert_eq!(flows, expected);
        assert_eq!(attempt("dst,src,start,size_bytes\n1,0,1ns,5\n").unwrap().len(), 1);
    }

    #[test]
    fn flows_may_wait_for_others() {
        let flows =
            attempt("src,dst,size_bytes,start,deadline,after,delay\nh0,h3,1500,10us,,,\nh3,h0,9000,,1ms,1,2us\nh0,h3,1,,,2 1,\n")
                .unwrap();
        assert_eq!(flows[1].after, Some(After::new(&[0], Dur::from_us(2))));
        assert_eq!((flows[1].deadline, flows[0].after.is_none()), (Some(Time(1_000_000_000)), true));
        assert_eq!(flows[2].after, Some(After::new(&[0, 1], Dur::ZERO)));
        for (row, why) in [
            ("h0,h1,1,0s,1,", "column `start`: a flow that waits"),
            ("h0,h1,1,,0,", "`0` is not the number of a row"),
            ("h0,h1,1,,x,", "`x` is not the number of a row"),
            ("h0,h1,1,0s,,1us", "column `delay`: is given"),
            ("h0,h1,1,,2,", "flow 1 waits for a row that is not there; the last row is 1"),
            ("h0,h1,1,,1,", "flow 1 waits for itself"),
        ] {
            let message = attempt(&format!("src,dst,size_bytes,start,after,delay\n{row}\n")).unwrap_err();
            assert!(message.contains(why), "{row}: {message}");
        }
    }

    #[test]
    fn files_of_others_have_other_names_and_more_columns() {
        let text = "id,from,to,bytes,t\n7,h0,h3,1500,12.5\n";
        let names = ("columns", "src=from, dst = to,size_bytes=bytes, start=t");
        let flows = attempt_with(text, &[names, ("time_unit", "us")]).unwrap();
        assert_eq!(
            (flows[0].src, flows[0].dst, flows[0].size_bytes, flows[0].start),
            (HostId(0), HostId(3), 1500, Time(12_500_000))
        );
        for (columns, unit, why) in [
            (names.1, "text", "`12.5` has no unit"),
            ("src=from", "us", "the header has no column `dst`; columns are `id`, `from`, `to`, `bytes`, `t`"),
            ("src=from,dst=to,size_bytes=bytes,start=t,group=g", "us", "no column `g`"),
            ("source=from", "us", "`source` is no column of flows: one of src, dst"),
            ("from", "us", "`from` is not like `src=from`"),
        ] {
            let message = attempt_with(text, &[("columns", columns), ("time_unit", unit)]).unwrap_err();
            assert!(message.contains(why), "{columns}: {message}");
        }
        let message = attempt_with(&text.replace("12.5", "5m"), &[names, ("time_unit", "s")]).unwrap_err();
        assert!(message.contains("column `start`: `5m` is not a number of s"), "{message}");
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
