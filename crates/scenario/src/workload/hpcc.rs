//! Flows from a flow file of HPCC's simulator, which many other programs based on ns-3 read too.
//!
//! ```text
//! 2                                  number of flows
//! 0 5 3 100 1500000 2.000010         a flow
//! ...
//! ```
//! The columns depend on the program. They decide which program a file is for: the kinds of numbers
//! in its lines must fit exactly one of these dialects, unless `dialect` names one.
//!
//! | dialect | columns |
//! |---|---|
//! | `hpcc`: HPCC, ns3-datacenter | source, destination, priority group, port, bytes, start |
//! | `conweave`: conweave-ns3 | source, destination, priority group or port, bytes, start |
//! | `ns3-rdma`: ns3-rdma | source, destination, priority group, packets, start, stop |
//! | `parsimon`: Parsimon, m3 | number of the flow, source, destination, priority group, port, bytes, start |
//! | `hpcc-stop`: variants of HPCC | source, destination, priority group, port, bytes, start, stop |
//!
//! Each flow is a line. Starts and stops are in seconds, and are rounded to picoseconds. Source and
//! destination are names of hosts (in a topology of kind `hpcc` their numbers), or else numbers of
//! hosts.
//!
//! As in these programs, the first line says how many flows are read. Further lines are left out,
//! with a warning if they are flows or begin with a number; other lines are comments. Fewer flows are
//! an error.
//!
//! Source: simulation/mix and `ReadFlowInput` in simulation/scratch/third.cc of
//! alibaba-edu/High-Precision-Congestion-Control; docs/formats.md names the files of the other
//! programs.
//!
//! Model: priority groups, ports and numbers of flows are read and have no effect; a policy sets
//! priorities. Stops have no effect, with a warning: a flow ends when all of its bytes have arrived.
//!
//! Assumed: flows need not be sorted by their start, although HPCC's simulator requires it. A packet
//! of ns3-rdma has 1000 bytes, the `PACKET_PAYLOAD_SIZE` of its mix/config.txt.

use super::cdf::MAX_SIZE_BYTES;
use super::listed::{self, Hosts, Listed};
use super::{Draw, Drawn, Env};
use crate::files::Files;
use crate::files::ns3;
use crate::files::tokens::{Tokens, Word, not_counted};
use base::params::Problem;
use base::registry::Meta;
use base::{Dur, Time};

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "flows from a flow file of HPCC's simulator and its relatives (ns-3)",
    source: "alibaba-edu/High-Precision-Congestion-Control, simulation/mix",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of flows from a file.
    pub struct Params {
        /// Path of the file; relative to the scenario.
        path: String = "", "";
        /// The program whose columns the file has.
        dialect: Dialect = "auto", "the columns decide", quiet;
    }
}

base::choice! {
    /// The program whose columns a flow file has.
    pub enum Dialect {
        /// The one that the lines of the file fit.
        Auto = "auto",
        /// Source, destination, priority group, port, bytes, start.
        Hpcc = "hpcc",
        /// Source, destination, priority group or port, bytes, start.
        Conweave = "conweave",
        /// Source, destination, priority group, packets, start, stop.
        Rdma = "ns3-rdma",
        /// Number of the flow, source, destination, priority group, port, bytes, start.
        Parsimon = "parsimon",
        /// Source, destination, priority group, port, bytes, start, stop.
        HpccStop = "hpcc-stop",
    }
}

/// Returns the problems that depend on the rest of the scenario.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    listed::check::<Format>(params, env)
}

/// Flows from a flow file of HPCC's simulator.
pub type Hpcc = Listed<Format>;

/// The file format.
pub struct Format;

impl listed::Format for Format {
    type Params = Params;
    const HINT: &'static str = "the file begins with the number of flows; a flow is a line like `0 5 3 100 1500000 2.00001`. \
                                `flowloom explain workload hpcc` lists the columns of other programs";
    fn path(params: &Params) -> &str {
        &params.path
    }
    fn read(params: &Params, files: &Files, hosts: &Hosts<'_>) -> Result<Draw, String> {
        read(params, files, hosts)
    }
}

/// A column of a flow file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Number,
    Src,
    Dst,
    Group,
    Port,
    Bytes,
    Packets,
    Start,
    Stop,
}
use Column::{Bytes, Dst, Group, Number, Packets, Port, Src, Start, Stop};

impl Column {
    /// Returns its name in messages.
    fn name(self) -> &'static str {
        match self {
            Number => "the number of a flow",
            Src => "a source",
            Dst => "a destination",
            Group => "a priority group",
            Port => "a port",
            Bytes => "a size in bytes",
            Packets => "a number of packets",
            Start => "a start in seconds",
            Stop => "a stop in seconds after the start",
        }
    }
}

/// All dialects with their columns.
const DIALECTS: [(Dialect, &[Column]); 5] = [
    (Dialect::Hpcc, &[Src, Dst, Group, Port, Bytes, Start]),
    (Dialect::Conweave, &[Src, Dst, Group, Bytes, Start]),
    (Dialect::Rdma, &[Src, Dst, Group, Packets, Start, Stop]),
    (Dialect::Parsimon, &[Number, Src, Dst, Group, Port, Bytes, Start]),
    (Dialect::HpccStop, &[Src, Dst, Group, Port, Bytes, Start, Stop]),
];

/// A dialect with its columns.
type Known = (Dialect, &'static [Column]);

/// Application bytes in a packet of ns3-rdma.
const PACKET_BYTES: u64 = 1000;

fn read(params: &Params, files: &Files, hosts: &Hosts<'_>) -> Result<Draw, String> {
    let text = files.text(&params.path)?;
    let mut tokens = Tokens::new(&params.path, &text);
    let count = tokens.whole("the number of flows", 0, u64::from(u32::MAX))?;
    let known = match DIALECTS.into_iter().find(|(dialect, _)| *dialect == params.dialect) {
        Some(given) => given,
        None => recognised(tokens.clone(), count)?,
    };
    let (mut flows, mut line) = (Vec::new(), Vec::new());
    for _ in 0..count {
        if !tokens.line(&mut line) {
            return Err(tokens.about(format!("the file ends before the last of {count} flows")));
        }
        flows.push(flow(&tokens, hosts, known, &line)?);
    }
    if let Some(message) = not_counted(&mut tokens, count, "flow", |line| misfit(known, line).is_none()) {
        files.warn(&params.path, message, "raise the number of flows in the first line if these flows should run, or remove them");
    }
    if count > 0 && known.1.contains(&Stop) {
        let message = "the stops of flows have no effect: a flow ends when all of its bytes have arrived".to_owned();
        files.warn(
            &params.path,
            message,
            "the program of this file ends a flow at its stop: compare the flows that finish after it",
        );
    }
    Ok(flows.into())
}

/// Returns the only dialect that the counted lines fit.
fn recognised(mut tokens: Tokens<'_>, count: u64) -> Result<Known, String> {
    let (mut left, mut line) = (DIALECTS.to_vec(), Vec::new());
    for _ in 0..count {
        if !tokens.line(&mut line) {
            break;
        }
        let fit: Vec<Known> = left.iter().copied().filter(|known| misfit(*known, &line).is_none()).collect();
        match fit[..] {
            [] => return Err(fits_none(&tokens, &left, &line)),
            [only] => return Ok(only),
            _ => left = fit,
        }
    }
    match left[..] {
        // An empty file; the number of flows does not depend on the dialect.
        [first, ..] if line.is_empty() => Ok(first),
        _ => Err(tokens.about(format!("the lines fit the dialects {}: choose with `dialect`", names(&left)))),
    }
}

/// Returns dialects with their columns as text.
fn names(known: &[Known]) -> String {
    let one = |(dialect, columns): &Known| {
        let columns: Vec<String> = columns.iter().map(|column| format!("{column:?}").to_lowercase()).collect();
        format!("`{}` (`{}`)", base::params::Param::show(dialect), columns.join(" "))
    };
    known.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Returns the message about a line that fits none of these dialects.
fn fits_none(tokens: &Tokens<'_>, known: &[Known], line: &[Word<'_>]) -> String {
    let wrong = known.iter().filter(|(_, columns)| columns.len() == line.len()).filter_map(|known| misfit(*known, line));
    // Of several dialects, the one that more columns fit.
    match wrong.rev().max_by_key(|(place, _)| *place) {
        Some((place, column)) => {
            let why = ns3::seconds(line[place].text).err().filter(|_| column == Start);
            tokens.wrong(&line[place], format!("is not {}{}", column.name(), why.map_or(String::new(), |why| format!(": {why}"))))
        }
        None => {
            let why = format!("begins a line of {} words, but a flow is one of {}", line.len(), names(known));
            tokens.wrong(&line[0], why)
        }
    }
}

/// Returns the first word that cannot be in its column, with the column. Values are only compared
/// with what a program could mean by them, so that a mistake in a value does not make the line one
/// of another dialect.
fn misfit((_, columns): Known, line: &[Word<'_>]) -> Option<(usize, Column)> {
    if columns.len() != line.len() {
        return Some((0, columns[0]));
    }
    let whole = |text: &str, most: u64| text.parse::<u64>().is_ok_and(|number| number <= most);
    let at = |column: Column| columns.iter().position(|other| *other == column).and_then(|i| ns3::seconds(line[i].text).ok());
    let fits = |(i, column): (usize, Column)| match column {
        Src | Dst => true,
        Group | Port => whole(line[i].text, u16::MAX.into()),
        Number | Bytes | Packets => whole(line[i].text, u64::MAX),
        Start => ns3::seconds(line[i].text).is_ok(),
        Stop => at(Stop) > at(Start),
    };
    columns.iter().copied().enumerate().find(|column| !fits(*column))
}

/// Reads a line as a flow.
fn flow(tokens: &Tokens<'_>, hosts: &Hosts<'_>, known: Known, line: &[Word<'_>]) -> Result<Drawn, String> {
    let (dialect, columns) = known;
    if columns.len() != line.len() {
        return Err(fits_none(tokens, &[known], line));
    }
    let word = |column: Column| columns.iter().position(|other| *other == column).map(|i| &line[i]);
    let need = |column: Column| word(column).unwrap_or(&line[0]);
    let whole = |column: Column, least: u64, most: u64| {
        let word = need(column);
        let found = word.text.parse().ok().filter(|number| (least..=most).contains(number));
        found.ok_or_else(|| tokens.wrong(word, format!("is not {}: must be a whole number from {least} to {most}", column.name())))
    };
    let (src, dst) = hosts.pair(tokens, need(Src), need(Dst))?;
    if let Some((place, column)) = misfit(known, line).filter(|(_, column)| matches!(column, Number | Group | Port)) {
        return Err(tokens.wrong(&line[place], format!("is not {}", column.name())));
    }
    let size_bytes = match dialect {
        Dialect::Rdma => whole(Packets, 1, MAX_SIZE_BYTES / PACKET_BYTES)? * PACKET_BYTES,
        _ => whole(Bytes, 1, MAX_SIZE_BYTES)?,
    };
    let seconds = |column: Column, read: fn(Dur) -> Result<Time, String>| {
        let at = ns3::seconds(need(column).text).and_then(read);
        at.map_err(|why| tokens.wrong(need(column), format!("is not {}: {why}", column.name())))
    };
    let start = seconds(Start, listed::start)?;
    if word(Stop).is_some() && seconds(Stop, |at| Ok(Time(at.0)))? <= start {
        return Err(tokens.wrong(need(Stop), format!("is not {}", Stop.name())));
    }
    Ok(Drawn { src, dst, size_bytes, start, deadline: None, group: None, connection: None, after: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tokens::testing::mangled;
    use base::{HostId, Time};

    const SAMPLE: &str = "3\n0 5 3 100 1500000 2.000010\n7 1 3 200 1 2\n1 0 3 100 64000 2.000000001 \n";

    fn attempt(text: &str) -> Result<Vec<Drawn>, String> {
        listed::testing::attempt("hpcc", text, &[])
    }

    fn flow(src: u32, dst: u32, size_bytes: u64, start: u64) -> Drawn {
        Drawn {
            src: HostId(src),
            dst: HostId(dst),
            size_bytes,
            start: Time(start),
            deadline: None,
            group: None,
            connection: None,
            after: None,
        }
    }

    #[test]
    fn lines_become_flows() {
        let flows = attempt(SAMPLE).unwrap();
        let expected =
            [flow(0, 5, 1_500_000, 2_000_010_000_000), flow(7, 1, 1, 2_000_000_000_000), flow(1, 0, 64_000, 2_000_000_001_000)];
        assert_eq!(flows, expected);
        assert_eq!(attempt(&format!("{SAMPLE}\n\nFirst line: # of flows\n")).unwrap(), expected, "comments");
        assert_eq!(attempt("1 h2 h3 3 100 9 0").unwrap()[0].dst, HostId(3), "names of hosts, in the first line");
        assert_eq!(attempt("1\n0 1 3 100 9 1e-05\n").unwrap(), [flow(0, 1, 9, 10_000_000)]);
    }

    #[test]
    fn the_columns_say_which_program_a_file_is_for() {
        const S: u64 = 1_000_000_000_000;
        for (text, dialect, read) in [
            // conweave-ns3: its generator writes the count over an estimate that ends in a space.
            (
                "2 \n0 1 3 64000 2.000001000\n1 2 3 9 2.000001001\n",
                "conweave",
                [flow(0, 1, 64_000, 2 * S + 1_000_000), flow(1, 2, 9, 2 * S + 1_001_000)],
            ),
            // ns3-rdma: mix/flow.txt.
            (
                "2\n2 1 3 10000000 2.0 9.5\n3 1 3 40 2 9.5\n\n\nFirst line: flow #\n",
                "ns3-rdma",
                [flow(2, 1, 10_000_000_000, 2 * S), flow(3, 1, 40_000, 2 * S)],
            ),
            ("2\n0 2 1 3 100 5000 0.001\n1 3 1 3 100 7 0.5\n", "parsimon", [flow(2, 1, 5_000, S / 1000), flow(3, 1, 7, S / 2)]),
            (
                "2\n2 1 3 100 5000 2 9.5\n3 1 3 100 7 2.5 9.5\n",
                "hpcc-stop",
                [flow(2, 1, 5_000, 2 * S), flow(3, 1, 7, 2 * S + S / 2)],
            ),
            // Sizes of a few bytes, as in mix/flow01.txt of ERD: the second line decides.
            ("2\n2 1 3 100 2 2.5\n3 1 3 100 16 2\n", "hpcc", [flow(2, 1, 2, 2 * S + S / 2), flow(3, 1, 16, 2 * S)]),
        ] {
            assert_eq!(attempt(text).as_deref(), Ok(&read[..]), "{text:?}");
            let given = listed::testing::attempt("hpcc", text, &[("dialect", dialect)]);
            assert_eq!(given.as_deref(), Ok(&read[..]), "{text:?} as {dialect}");
        }
    }

    #[test]
    fn lines_that_fit_two_programs_are_refused_unless_one_is_named() {
        const S: u64 = 1_000_000_000_000;
        for (line, dialects) in [
            ("2 1 3 100 2 9", [("hpcc", flow(2, 1, 2, 9 * S)), ("ns3-rdma", flow(2, 1, 100_000, 2 * S))]),
            ("2 1 3 4 5 6 7", [("parsimon", flow(1, 3, 6, 7 * S)), ("hpcc-stop", flow(2, 1, 5, 6 * S))]),
        ] {
            let text = format!("1\n{line}\n");
            let message = attempt(&text).unwrap_err();
            assert!(
                message.contains("flows.txt: the lines fit the dialects `") && message.ends_with("choose with `dialect`"),
                "{message}"
            );
            for (dialect, read) in dialects {
                assert!(message.contains(&format!("`{dialect}` (`")), "{message}");
                assert_eq!(listed::testing::attempt("hpcc", &text, &[("dialect", dialect)]), Ok(vec![read]));
            }
        }
        // A size of 0 is a mistake in HPCC's file; the line must not become one of ns3-rdma.
        let message = attempt("1\n0 1 3 100 0 2\n").unwrap_err();
        assert!(message.contains("`hpcc`") && message.contains("`ns3-rdma`"), "{message}");
    }

    /// As in HPCC's own `mix/flow.txt`, which counts 2 flows.
    #[test]
    fn the_first_line_says_how_many_flows_are_read() {
        let text = "2\n2 1 3 100 9000 2\n3 1 3 100 9000 2\n4 1 3 100 9000 2\n5 1 3 100 9000 2\n7\n\nFirst line: # of flows\n...\n";
        let (flows, warnings) = listed::testing::warned("hpcc", text, &[]).unwrap();
        let expected = "the file counts 2 flows; from line 4 on, these are left out: 2 flows, 1 other line, 2 comments";
        assert_eq!((flows.len(), warnings), (2, vec![expected.to_owned()]));
        let stop = "1\n2 1 3 10 2.0 9.5\n";
        let (_, warnings) = listed::testing::warned("hpcc", stop, &[]).unwrap();
        assert_eq!(warnings, ["the stops of flows have no effect: a flow ends when all of its bytes have arrived"]);
        let comments = "1\n2 1 3 100 9000 2\n\nFirst line: # of flows\nsrc0 dst0 3 dst_port0 size0 start_time0\n...\n";
        assert_eq!(listed::testing::warned("hpcc", comments, &[]).unwrap().1, Vec::<String>::new());
        // A flow between hosts that are given by their names is not a comment.
        let names = "1\n0 1 3 100 9 2\nh0 h1 3 100 9 2\n";
        assert!(listed::testing::warned("hpcc", names, &[]).unwrap().1[0].ends_with("from line 3 on, these are left out: 1 flow"));
    }

    #[test]
    fn mistakes_are_named_with_their_places() {
        let cases = [
            ("0\n", "has no flows"),
            ("x\n", "flows.txt:1:1: `x` is not the number of flows"),
            ("2\n0 1 3 100 9 2\n", "flows.txt: the file ends before the last of 2 flows"),
            ("1\n0 99 3 100 9 2\n", "flows.txt:2:3: `99` is not a host"),
            ("1\n4 4 3 100 9 2\n", "flows.txt:2:3: `4` is also the source: a flow from a host to itself"),
            ("2\n0 1 3 100 9 2\n0 1 3 100 0 2\n", "flows.txt:3:11: `0` is not a size in bytes: must be a whole number from 1"),
            ("2\n0 1 3 100 9 2\n0 1 3 65536 9 2\n", "flows.txt:3:7: `65536` is not a port"),
            (
                "2\n0 1 3 100 9 2\n0 1 3 100 9 2 7\n",
                "flows.txt:3:1: `0` begins a line of 7 words, but a flow is one of `hpcc` (`src dst group port bytes start`)",
            ),
            (
                "1\n0 1 3 100\n",
                "flows.txt:2:1: `0` begins a line of 4 words, but a flow is one of `hpcc` (`src dst group port bytes start`), `conweave`",
            ),
            ("1\n0 1 3 100 9 2e9\n", "flows.txt:2:13: `2e9` is not a start in seconds: is too large"),
            ("2\n0 1 3 100 9 2\n0 1 3 100 9 2e6\n", "`2e6` is not a start in seconds: it is after"),
            ("1\n0 1 3 100 9 -1\n", "flows.txt:2:13: `-1` is not a start in seconds"),
            ("1\n0 1 3 100 9 2s\n", "`2s` is not a start in seconds"),
            ("2\n0 1 3 100 9 2\n0 1 3 100 9 2000000\n", "`2000000` is not a start in seconds: it is after"),
            ("2\n2 1 3 10 2.0 9.5\n2 1 3 10 2.0 2\n", "flows.txt:3:14: `2` is not a stop in seconds after the start"),
            ("1\n2 1 3 70000 2.5 x\n", "flows.txt:2:17: `x` is not a stop in seconds"),
        ];
        for (text, why) in cases {
            let message = attempt(text).unwrap_err();
            assert!(message.contains(why), "{text:?}: {message}");
        }
    }

    #[test]
    fn no_file_breaks_the_reader() {
        for text in mangled(SAMPLE).chain(mangled("2\n2 1 3 10 2.0 9.5\n3 1 3 40 2 9.5\n")) {
            let _ = attempt(&text);
        }
    }
}
