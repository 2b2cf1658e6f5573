//! Flows one by one, from a CSV or a Parquet file.
//!
//! Columns: `src`, `dst` (names of hosts, or their numbers), `size_bytes`, `start` (a time with
//! unit); optional: `deadline` (the time at which the flow should have finished, with unit, counted
//! from the start of the run) and `group` (a whole number).
//!
//! A flow may wait for other flows: `after` lists the rows of these flows, counted from 1 and
//! separated by spaces, and `delay` is the time from the last of their ends to the start of the
//! flow (default `0s`). A flow with `after` has no `start`, and its `deadline` counts from its
//! start.
//!
//! Files of other programs may have other names for the columns, and further columns: `columns`
//! maps our names to those of the file, and `time_unit` is the unit of their times. A
//! `flows.parquet` of our own results is recognized by its columns: its flows are repeated, each at
//! the time at which it started in that run.
//!
//! Source: own format.

use super::cdf::MAX_SIZE_BYTES;
use super::listed::once;
use super::size::{self, Packets, Unit};
use super::{After, Draw, Drawn, Env, MAX_TIME, Workload};
use crate::files::columns::{Columns, TimeUnit};
use crate::files::rows::{self, Row, Wanted, of_csv, of_parquet};
use base::params::Problem;
use base::registry::Meta;
use base::{Dur, HostId, Offered, Streams, Time};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "flows one by one, from a file",
    source: "own format: src,dst,size_bytes,start[,deadline,group,after,delay]",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of a table of flows.
    pub struct Params {
        /// Path of a CSV or Parquet file with the columns `src`, `dst`, `size_bytes`, `start` and
        /// optionally `deadline`, `group`, `after`, `delay`; relative to the scenario.
        path: String = "", "";
        /// Unit of sizes: application bytes, or bytes on the wire.
        size_unit: Unit = "payload", "application view";
        /// Names of columns in the file, if they differ from ours, like `{ src = "from", size_bytes
        /// = "bytes" }`; the file may then have further columns. `own`: our names.
        columns: Columns = "own", "own format", quiet;
        /// Unit of times; `text`: each time has its own unit.
        time_unit: TimeUnit = "text", "own format", quiet;
    }
}

const NEEDED: [&str; 4] = ["src", "dst", "size_bytes", "start"];
const OPTIONAL: [&str; 4] = ["deadline", "group", "after", "delay"];

/// Names of columns in our own results that differ from the names here.
const RESULTS: [(&str, &str); 3] = [("start", "start_ps"), ("deadline", "deadline_ps"), ("group", "group_id")];

/// Returns pairs of our name and the name in the file, for columns whose names differ. The error is
/// a complete message.
fn names(columns: &Columns) -> Result<Vec<(&'static str, String)>, String> {
    columns.among(&[NEEDED, OPTIONAL].concat(), "column of flows")
}

/// Returns the problems that depend on the rest of the scenario.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let hint = "the file has the columns `src,dst,size_bytes,start[,deadline,group,after,delay]`, like `h0,h3,1500000,10us`";
    if let Err(message) = names(&params.columns) {
        let hint = "write a table like `columns = { src = \"from\", dst = \"to\", size_bytes = \"bytes\" }`".to_owned();
        return vec![Problem { key: "columns", message, hint }];
    }
    match read(params, env) {
        Ok(read) if read.flows.is_empty() => {
            vec![Problem { key: "path", message: format!("`{}` has no flows", params.path), hint: hint.to_owned() }]
        }
        Ok(_) => Vec::new(),
        Err(message) => vec![Problem { key: "path", message, hint: hint.to_owned() }],
    }
}

/// The state for reading the rows of a table.
struct Reading<'a> {
    hosts: BTreeMap<&'a str, HostId>,
    time_unit: TimeUnit,
    size_unit: Unit,
    packets: Packets,
    /// In our own results, groups are numbered over the whole run: here they are numbered again
    /// from 0.
    groups: Option<BTreeMap<u64, u32>>,
}

fn read(params: &Params, env: &Env<'_>) -> Result<Arc<Draw>, String> {
    once("table", params, env, || flows(params, env).map(Draw::from), &params.path)
}

fn flows(params: &Params, env: &Env<'_>) -> Result<Vec<Drawn>, String> {
    let all = (0..env.net.hosts().len() as u32).map(HostId);
    let hosts: BTreeMap<&str, HostId> = all.map(|h| (super::hosts::name_of(env.net, h), h)).collect();
    let mut reading =
        Reading { hosts, time_unit: params.time_unit, size_unit: params.size_unit, packets: env.packets, groups: None };
    let names = names(&params.columns)?;
    let others = |names| Wanted { needed: &NEEDED, optional: &OPTIONAL, names };
    let given = Some(names.as_slice()).filter(|names| !names.is_empty());
    let own = RESULTS.map(|(ours, theirs)| (ours, theirs.to_owned()));
    let mut flows: Vec<Drawn> = Vec::new();
    if is_parquet(&params.path) {
        let mut is_result = false;
        let wanted = |header: &[String]| {
            is_result = given.is_none() && own.iter().all(|(_, theirs)| header.contains(theirs));
            others(if is_result { Some(&own) } else { given })
        };
        let table = of_parquet(&params.path, env.files.bytes(&params.path)?, wanted)?;
        if is_result {
            (reading.time_unit, reading.groups) = (TimeUnit::Ps, Some(BTreeMap::new()));
        }
        table.each(|row| reading.flow(&row).map(|flow| flows.push(flow)))?;
    } else {
        let text = env.files.text(&params.path)?;
        for row in of_csv(&params.path, &text, others(given))? {
            flows.push(reading.flow(&row?)?);
        }
    }
    let beyond = |flow: &Drawn| flow.after.iter().flat_map(|after| &after.flows).any(|(other, _)| *other as usize >= flows.len());
    if let Some(number) = flows.iter().position(beyond) {
        return Err(format!(
            "{}: flow {} waits for a row that does not exist; the last row is {}",
            params.path,
            number + 1,
            flows.len()
        ));
    }
    Ok(flows)
}

fn is_parquet(path: &str) -> bool {
    path.len() >= 8 && path.as_bytes()[path.len() - 8..].eq_ignore_ascii_case(b".parquet")
}

impl Reading<'_> {
    fn flow(&mut self, row: &Row<'_>) -> Result<Drawn, String> {
        let host = |column| {
            let text = row.get(column)?;
            let number = || text.parse().ok().filter(|n| (*n as usize) < self.hosts.len()).map(HostId);
            self.hosts.get(text).copied().or_else(number).ok_or_else(|| row.wrong(column, &format!("there is no host `{text}`")))
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
            let at = row.parse(column, |text| self.time_unit.read(text))?;
            if at > MAX_TIME { Err(row.wrong(column, &format!("`{at}` is after {MAX_TIME}"))) } else { Ok(Time(at.0)) }
        };
        let after = after(row, self.time_unit)?;
        if after.is_some() && row.optional("start").is_some() {
            return Err(row.wrong("start", "must be empty, because a flow with `after` starts when other flows have ended"));
        }
        if self.groups.is_some() && row.optional("start").is_none() {
            return Err(row.wrong("start_ps", "this flow never started: it waited for a flow that did not end"));
        }
        let start = if after.is_some() { Time::ZERO } else { time("start")? };
        let deadline = row.optional("deadline").is_some().then(|| time("deadline")).transpose()?;
        if deadline.is_some_and(|d| d <= start) {
            return Err(row.wrong("deadline", "is not after the start of the flow; it counts from the start of the run"));
        }
        let number = |text: &str| text.parse::<u32>().map_err(|_| "is not a whole number below 2^32".to_owned());
        let group = row.optional("group").is_some();
        let group = match &mut self.groups {
            Some(groups) if group => {
                let (group, next) = (row.parse("group", whole)?, groups.len() as u32);
                Some(*groups.entry(group).or_insert(next))
            }
            _ => group.then(|| row.parse("group", number)).transpose()?,
        };
        Ok(Drawn {
            src,
            dst,
            size_bytes: self.packets.payload(size, self.size_unit),
            start,
            deadline,
            group,
            connection: None,
            after,
        })
    }
}

/// Reads the flows that the flow of a row waits for.
fn after(row: &Row<'_>, time_unit: TimeUnit) -> Result<Option<Box<After>>, String> {
    let delay = row.optional("delay").is_some().then(|| row.parse("delay", |text| time_unit.read(text))).transpose()?;
    if let Some(delay) = delay.filter(|delay| *delay > MAX_TIME) {
        return Err(row.wrong("delay", &format!("`{delay}` is longer than {MAX_TIME}")));
    }
    if row.optional("after").is_none() {
        return match delay {
            Some(_) => Err(row.wrong("delay", "is given, but `after` is empty")),
            None => Ok(None),
        };
    }
    let number = |word: &str| {
        word.parse().ok().and_then(|n: u32| n.checked_sub(1)).ok_or_else(|| format!("`{word}` is not the number of a row"))
    };
    let mut flows = row.parse("after", |text: &str| text.split_whitespace().map(number).collect::<Result<Vec<u32>, String>>())?;
    flows.sort_unstable();
    flows.dedup();
    Ok(Some(Box::new(After::new(&flows, delay.unwrap_or(Dur::ZERO)))))
}

/// Flows from a table.
pub struct Table {
    params: Params,
    count: u64,
    /// Read at the first request: a file may have millions of flows, and most callers need only
    /// their number.
    flows: OnceCell<Result<Arc<Draw>, String>>,
}

impl Table {
    /// Creates the workload with these parameters.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let path = &params.path;
        let count = if is_parquet(path) {
            env.files.bytes(path).and_then(|bytes| rows::count_of_parquet(path, bytes)).unwrap_or(0)
        } else {
            env.files.text(path).map_or(0, |text| text.lines().count() as u64)
        };
        Table { params: params.clone(), count, flows: OnceCell::new() }
    }
    /// Returns the parameters that have no effect with the values of the others.
    pub fn ignored(_params: &Params) -> Vec<&'static str> {
        Vec::new()
    }
    fn read(&self, env: &Env<'_>) -> Result<&[Drawn], &String> {
        self.flows.get_or_init(|| read(&self.params, env)).as_ref().map(|read| read.flows.as_slice())
    }
}

impl Workload for Table {
    fn draw(&self, env: &Env<'_>, _streams: &mut Streams) -> Result<Draw, String> {
        self.read(env).map(|flows| flows.to_vec().into()).map_err(String::clone)
    }
    fn flows(&self) -> u64 {
        self.count
    }
    fn files(&self) -> Vec<String> {
        vec![self.params.path.clone()]
    }
    fn deadlines(&self, env: &Env<'_>) -> bool {
        self.read(env).into_iter().flatten().any(|flow| flow.deadline.is_some())
    }
    fn offered(&self, env: &Env<'_>) -> Offered {
        let sizes = self.read(env).into_iter().flatten().map(|flow| flow.size_bytes).collect();
        Offered { load: None, sizes: size::points_of_sample(sizes) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::files::Files;
    use crate::files::tokens::testing::{damaged, mangled};

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
    fn deadlines_of_rows_are_reported() {
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
                connection: None,
                after: None,
            },
            Drawn {
                src: HostId(8),
                dst: HostId(0),
                size_bytes: 1,
                start: Time(0),
                deadline: Some(Time(2_000_000_000)),
                group: Some(7),
                connection: None,
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
        assert_eq!(flows[1].after.as_deref(), Some(&After::new(&[0], Dur::from_us(2))));
        assert_eq!((flows[1].deadline, flows[0].after.is_none()), (Some(Time(1_000_000_000)), true));
        assert_eq!(flows[2].after.as_deref(), Some(&After::new(&[0, 1], Dur::ZERO)));
        for (row, why) in [
            ("h0,h1,1,0s,1,", "column `start`: must be empty"),
            ("h0,h1,1,,0,", "`0` is not the number of a row"),
            ("h0,h1,1,,x,", "`x` is not the number of a row"),
            ("h0,h1,1,0s,,1us", "column `delay`: is given"),
            ("h0,h1,1,,1,2000000s", "column `delay`: `2000000s` is out of range: the largest value is `1000000s`"),
            ("h0,h1,1,,2,", "flow 1 waits for a row that does not exist; the last row is 1"),
            ("h0,h1,1,,1,", "flow 1 waits for itself"),
        ] {
            let message = attempt(&format!("src,dst,size_bytes,start,after,delay\n{row}\n")).unwrap_err();
            assert!(message.contains(why), "{row}: {message}");
        }
    }

    #[test]
    fn files_of_other_programs_have_other_names_and_more_columns() {
        let text = "id,from,to,bytes,t\n7,h0,h3,1500,12.5\n";
        let names = ("columns", "src=from, dst = to,size_bytes=bytes, start=t");
        let flows = attempt_with(text, &[names, ("time_unit", "us")]).unwrap();
        assert_eq!(
            (flows[0].src, flows[0].dst, flows[0].size_bytes, flows[0].start),
            (HostId(0), HostId(3), 1500, Time(12_500_000))
        );
        for (columns, unit, why) in [
            (names.1, "text", "`12.5` has no unit"),
            ("src=from", "us", "there is no column `dst`; the columns are `id`, `from`, `to`, `bytes`, `t`"),
            ("src=from,dst=to,size_bytes=bytes,start=t,group=g", "us", "no column `g`"),
            ("source=from", "us", "`source` is not a known column of flows: write one of src, dst"),
            ("from", "us", "`from` has `from`, which is not like `src=from`"),
        ] {
            let message = attempt_with(text, &[("columns", columns), ("time_unit", unit)]).unwrap_err();
            assert!(message.contains(why), "{columns}: {message}");
        }
        let message = attempt_with(&text.replace("12.5", "5m"), &[names, ("time_unit", "s")]).unwrap_err();
        assert!(message.contains("column `start`: `5m` is not a plain number in the unit s"), "{message}");
    }

    /// Returns a Parquet file with these columns: whole numbers, or texts if a value is not a number.
    fn parquet(columns: &[(&str, &[&str])]) -> Vec<u8> {
        use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
        use parquet::file::writer::SerializedFileWriter;
        use parquet::schema::parser::parse_message_type;
        let number = |values: &[&str]| values.iter().all(|v| v.is_empty() || v.parse::<i64>().is_ok());
        let column = |(name, values): &(&str, &[&str])| {
            format!("optional {} {name};", if number(values) { "int64" } else { "binary" }).replace("binary", "BYTE_ARRAY")
        };
        let schema = format!("message flows {{ {} }}", columns.iter().map(column).collect::<String>());
        let schema = std::sync::Arc::new(parse_message_type(&schema).unwrap());
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, Default::default()).unwrap();
        let mut group = writer.next_row_group().unwrap();
        for (_, values) in columns {
            let there: Vec<i16> = values.iter().map(|v| i16::from(!v.is_empty())).collect();
            let given = values.iter().filter(|v| !v.is_empty());
            let mut column = group.next_column().unwrap().unwrap();
            if number(values) {
                let numbers: Vec<i64> = given.map(|v| v.parse().unwrap()).collect();
                column.typed::<Int64Type>().write_batch(&numbers, Some(&there), None).unwrap();
            } else {
                let texts: Vec<ByteArray> = given.map(|v| ByteArray::from(*v)).collect();
                column.typed::<ByteArrayType>().write_batch(&texts, Some(&there), None).unwrap();
            }
            column.close().unwrap();
        }
        group.close().unwrap();
        writer.into_inner().unwrap()
    }

    fn attempt_parquet(bytes: &[u8], options: &[(&'static str, &str)]) -> Result<Vec<Drawn>, String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f.parquet"), bytes).unwrap();
        let bench = Bench { files: Files::new(dir.path()), ..Bench::new("single_tree", &[]) };
        let options = [&[("path", "f.parquet")], options].concat();
        bench.read("table", &options)?;
        Ok(bench.draw("table", &options, 1))
    }

    #[test]
    fn parquet_files_are_read_and_our_own_results_are_recognized() {
        let bytes = parquet(&[("to", &["h3", "h0"]), ("bytes", &["1500", "1"]), ("from", &["h0", "8"]), ("t", &["12", "0"])]);
        let columns = [("columns", "src=from, dst=to, size_bytes=bytes, start=t"), ("time_unit", "us")];
        let flows = attempt_parquet(&bytes, &columns).unwrap();
        assert_eq!(
            (flows[0].src, flows[0].dst, flows[0].size_bytes, flows[0].start),
            (HostId(0), HostId(3), 1500, Time(12_000_000))
        );
        let results: [(&str, &[&str]); 7] = [
            ("flow_id", &["0", "1", "2"]),
            ("src", &["0", "1", "2"]),
            ("dst", &["3", "4", "5"]),
            ("size_bytes", &["9", "8", "7"]),
            ("start_ps", &["5", "6", "7"]),
            ("deadline_ps", &["", "9000", ""]),
            ("group_id", &["4294967301", "", "4294967300"]),
        ];
        let flows = attempt_parquet(&parquet(&results), &[]).unwrap();
        let seen: Vec<_> = flows.iter().map(|flow| (flow.start.0, flow.deadline.map(|at| at.0), flow.group)).collect();
        assert_eq!(seen, [(5, None, Some(0)), (6, Some(9000), None), (7, None, Some(1))]);
        let mut never = results;
        never[4].1 = &["5", "", "7"];
        let message = attempt_parquet(&parquet(&never), &[]).unwrap_err();
        assert_eq!(
            message,
            "path: f.parquet: row 2: column `start_ps`: this flow never started: it waited for a flow that did not end"
        );
        let message = attempt_parquet(&bytes, &[]).unwrap_err();
        assert!(message.contains("f.parquet: there is no column `src`; the columns are"), "{message}");
    }

    /// A damaged file gives an error or other values, never a panic.
    #[test]
    fn damaged_parquet_files_are_refused() {
        let bytes = parquet(&[("src", &["0", "1"]), ("dst", &["3", "4"]), ("size_bytes", &["9", "8"]), ("start_ps", &["5", "6"])]);
        let columns = [("columns", "start=start_ps"), ("time_unit", "ps")];
        assert_eq!(attempt_parquet(&bytes, &columns).unwrap().len(), 2);
        for end in 0..bytes.len() {
            assert!(
                attempt_parquet(&bytes[..end], &columns).unwrap_err().contains("f.parquet: this is not a valid Parquet file"),
                "{end}"
            );
        }
        for bytes in damaged(&bytes) {
            let _ = attempt_parquet(&bytes, &columns);
        }
    }

    #[test]
    fn no_file_breaks_the_reader() {
        let sample = "src,dst,size_bytes,start,deadline,group,after,delay\nh0,h3,1500,10us,,,,\n8,0,1,0s,2ms,7,,\nh3,\"h0\",9000,,1ms,,1 2,2us\n";
        assert_eq!(attempt(sample).unwrap().len(), 3);
        for text in mangled(sample) {
            let _ = attempt(&text);
        }
    }

    #[test]
    fn bad_rows_are_named() {
        for (row, why) in [
            ("h0,h0,1,0s,,", "itself"),
            ("h0,h9,1,0s,,", "column `dst`: there is no host `h9`"),
            ("h0,h1,0,0s,,", "out of range"),
            ("h0,h1,1.5,0s,,", "`1.5` is not a whole number"),
            ("h0,h1,1,5,,", "has no unit"),
            ("h0,h1,1,2000000s,,", "is out of range: the largest value is `1000000s`"),
            ("h0,h1,1,2s,1s,", "not after the start of the flow"),
            ("h0,h1,1,2s,2s,", "not after the start of the flow"),
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
