//! A network from a topology file of HPCC's simulator, which many other programs based on ns-3 read
//! too.
//!
//! ```text
//! 6 2 5                              nodes, switches, links
//! 4 5                                the switches; all other nodes are hosts
//! 0 4 100Gbps 1000ns 0.000000        both ends of a link, rate, delay, loss probability of a packet
//! ...
//! ```
//! The first line depends on the program:
//!
//! | program | first line |
//! |---|---|
//! | HPCC, conweave-ns3, ns3-rdma, Parsimon, ASTRA-sim's ns-3 | nodes, switches, links |
//! | ns3-datacenter (PowerTCP) | nodes, switches, ToR switches, links |
//! | ns3-datacenter (Reverie) | nodes, switches, ToR switches, links, and two rates in bit/s |
//! | SimAI | nodes, GPUs of a server, NVSwitches, switches, links, type of GPU, and perhaps one more number |
//!
//! After the first line, line breaks may be anywhere. The name of a node is its number. Every link
//! is full duplex; the tier of a switch is its distance from the nearest host.
//!
//! Rates, delays and losses are written as for ns-3: a rate without a unit is in bits per second, a
//! delay without a unit in seconds, exponents are allowed, and the units are those of ns-3's
//! `DataRate` and `Time`. Fractions of a bit per second are cut off. Delays are rounded to
//! picoseconds, where ns-3 keeps nanoseconds by default; a delay of less than half a picosecond is
//! an error, because every link needs a delay.
//!
//! As in these programs, the first line says how many links are read. Further lines are left out,
//! with a warning if they begin with a number; other lines are comments. Fewer links are an error.
//!
//! Source: simulation/mix and simulation/scratch/third.cc of
//! alibaba-edu/High-Precision-Congestion-Control; docs/formats.md names the files of the other
//! programs.
//!
//! Model: a host with several links, as in `ali_32host_10rack.txt`, is a host with several NICs.
//! A GPU with a link to an NVSwitch and a link to the network has two NICs. GPUs of a server
//! communicate over their NVSwitch, as with NCCL, also if the network has a path of as many links.
//! `nvswitches = "leave_out"` leaves out the NVSwitches, so that GPUs of a
//! server communicate over the network. The numbers of ToR switches and GPUs, the two rates and the
//! type of GPU in the first line have no effect: links have the rates in their lines.

use super::edges::{self, Edge, Edges, NodeOfFile, OfFile, Read};
use super::{Cables, Env};
use crate::files::ns3;
use crate::files::tokens::{Tokens, Word, not_counted};
use base::params::Problem;
use base::registry::Meta;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "a network from a topology file of HPCC's simulator (ns-3)",
    source: "alibaba-edu/High-Precision-Congestion-Control, simulation/mix",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of a network from a file.
    pub struct Params {
        ..cables: Cables {}
        /// Path of the file; relative to the scenario.
        path: String = "", "";
        /// How the NVSwitches of SimAI's files are read.
        nvswitches: NvSwitches = "keep", "SimAI: they are nodes", quiet;
    }
}

base::choice! {
    /// How the switches inside servers are read.
    pub enum NvSwitches {
        /// GPUs of a server communicate over its NVSwitch.
        Keep = "keep",
        /// NVSwitches and their links are left out.
        LeaveOut = "leave_out",
    }
}

/// Returns the problems that depend on the rest of the scenario.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    edges::check::<Format>(params, env)
}

/// A network from a file of HPCC's simulator.
pub type Hpcc = OfFile<Format>;

/// The file format.
pub struct Format;

impl Read for Format {
    type Params = Params;
    const HINT: &'static str =
        "the first line counts nodes, switches and links; the switches follow, then the links, like `0 4 100Gbps 1000ns 0`";
    fn cables(params: &Params) -> &Cables {
        &params.cables
    }
    fn path(params: &Params) -> &str {
        &params.path
    }
    fn read(params: &Params, env: &Env<'_>) -> Result<Edges, String> {
        read(params, env)
    }
}

/// Maximum number of nodes: more than any file of that simulator has.
const MOST_NODES: u64 = 1 << 20;

/// The numbers that the first line of a file begins with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum First {
    /// HPCC: nodes, switches, links.
    Hpcc,
    /// ns3-datacenter: nodes, switches, ToR switches, links.
    Datacenter,
    /// SimAI: nodes, GPUs of a server, NVSwitches, switches, links.
    SimAi,
}

impl First {
    /// Returns the form of a first line, and how many further words it has.
    fn of(tokens: &Tokens<'_>, line: &str) -> Result<(First, usize), String> {
        let words: Vec<Word<'_>> = Tokens::new("", line).collect();
        // The smallest rate of a link is larger than any number that SimAI has here.
        let rate = |word: &Word<'_>| ns3::rate(word.text).is_ok_and(|rate| rate >= super::MIN_RATE);
        let number = |word: &Word<'_>| word.text.parse::<f64>().is_ok();
        match words[..] {
            [_, _, _] => Ok((First::Hpcc, 0)),
            [_, _, _, _] => Ok((First::Datacenter, 0)),
            [.., low, high] if words.len() == 6 && rate(&low) && rate(&high) => Ok((First::Datacenter, 2)),
            [_, _, _, _, _, gpu] if !number(&gpu) => Ok((First::SimAi, 1)),
            [_, _, _, _, _, gpu, last] if !number(&gpu) && number(&last) => Ok((First::SimAi, 2)),
            _ => Err(tokens.about(format!(
                "the first line has {} words, but none of the known forms: `nodes switches links` (HPCC), `nodes switches ToRs \
                 links` or `nodes switches ToRs links rate rate` (ns3-datacenter), `nodes GPUs-of-a-server NVSwitches switches \
                 links GPU-type` (SimAI)",
                words.len()
            ))),
        }
    }
}

fn read(params: &Params, env: &Env<'_>) -> Result<Edges, String> {
    let text = env.files.text(&params.path)?;
    let mut tokens = Tokens::new(&params.path, &text);
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if first.is_empty() {
        tokens.need("the number of nodes")?;
    }
    let (form, more) = First::of(&tokens, first)?;
    let nodes = tokens.whole("the number of nodes", 2, MOST_NODES)?;
    let inner = if form == First::SimAi {
        tokens.whole("the number of GPUs of a server", 0, MOST_NODES)?;
        tokens.whole("the number of NVSwitches", 0, nodes)?
    } else {
        0
    };
    let switches = tokens.whole("the number of switches", 0, nodes - inner)? + inner;
    if form == First::Datacenter {
        tokens.whole("the number of ToR switches", 0, switches)?;
    }
    let links = tokens.whole("the number of links", 1, u64::from(u32::MAX))?;
    for _ in 0..more {
        tokens.need("the rest of the first line")?;
    }
    let mut host = vec![true; nodes as usize];
    let (mut inner_switch, mut left_out) = (vec![false; nodes as usize], vec![false; nodes as usize]);
    for number in 0..switches {
        let word = tokens.need("the last switch")?;
        let id = node(&tokens, &word, nodes)?;
        if !std::mem::replace(&mut host[id], false) {
            return Err(tokens.wrong(&word, "is listed twice as a switch"));
        }
        // NVSwitches come first.
        inner_switch[id] = number < inner;
        left_out[id] = inner_switch[id] && params.nvswitches == NvSwitches::LeaveOut;
    }
    let mut cables = Vec::new();
    for _ in 0..links {
        let last = format!("the last of {links} links");
        let (a, b) = (tokens.need(&last)?, tokens.need(&last)?);
        let ends = [node(&tokens, &a, nodes)?, node(&tokens, &b, nodes)?];
        if ends[0] == ends[1] {
            return Err(tokens.wrong(&b, "is also the other end: a link from a node to itself"));
        }
        let rate = tokens.parse("a rate", |text| edges::rate(ns3::rate(text)?))?;
        let delay = tokens.parse("a delay", |text| edges::delay(ns3::time(text)?))?;
        let loss = tokens.parse("a loss", |text| edges::loss(ns3::fraction(text)?))?;
        if !ends.iter().any(|end| left_out[*end]) {
            cables.push(Edge { ends, rate, delay, loss: Some(loss) });
        }
    }
    let is_link = |line: &[Word<'_>]| {
        let [a, b, rate, delay, loss] = line else { return false };
        let end = |word: &Word<'_>| word.text.parse::<u64>().is_ok();
        end(a) && end(b) && ns3::rate(rate.text).is_ok() && ns3::time(delay.text).is_ok() && ns3::fraction(loss.text).is_ok()
    };
    let further = not_counted(&mut tokens, links, "link", is_link);
    let kept: Vec<usize> = (0..host.len()).filter(|id| !left_out[*id]).collect();
    let place = |id: usize| kept.partition_point(|kept| *kept < id);
    let cables = cables.into_iter().map(|cable| Edge { ends: cable.ends.map(place), ..cable }).collect();
    let nodes = kept.iter().map(|&id| NodeOfFile { name: id.to_string(), host: host[id], tier: None, in_server: inner_switch[id] });
    let edges = Edges::new(nodes.collect(), cables);
    let because = further.as_ref().map_or(String::new(), |further| format!("; {further}"));
    let edges = edges.map_err(|why| tokens.about(format!("{why}{because}")))?;
    if let Some(message) = further {
        let hint = "raise the number of links in the first line if these links belong to the network, or remove them";
        env.files.warn(&params.path, message, hint);
    }
    Ok(edges)
}

fn node(tokens: &Tokens<'_>, word: &Word<'_>, nodes: u64) -> Result<usize, String> {
    let found = word.text.parse::<u64>().ok().filter(|id| *id < nodes);
    found
        .map(|id| id as usize)
        .ok_or_else(|| tokens.wrong(word, format!("is not a node: nodes are numbered from 0 to {}", nodes - 1)))
}

#[cfg(test)]
mod tests {
    use super::super::Topology;
    use super::*;
    use crate::files::Files;
    use crate::files::tokens::testing::mangled;
    use base::params::Params as _;
    use fabric::net::NetBuilder;

    const SAMPLE: &str = "6 2 5\n4 5 \n0 4 100Gbps 1000ns 0.000000\n1 4 100Gbps 1000ns 0\n2 5 100Gbps 1us 0\n3 5 100Gbps 1us 0.001\n\
                          4 5 400Gbps 0.002ms 0.000000\n";

    /// Two servers of two GPUs, each GPU with a link to its server's NVSwitch (4, 5) and a link to
    /// the switch of the racks (6).
    const SERVERS: &str = "7 2 2 1 8 H100\n4 5\n6\n0 4 2880Gbps 25ns 0\n1 4 2880Gbps 25ns 0\n2 5 2880Gbps 25ns 0\n3 5 2880Gbps 25ns 0\n\
                           0 6 400Gbps 500ns 0\n1 6 400Gbps 500ns 0\n2 6 400Gbps 500ns 0\n3 6 400Gbps 500ns 0\n";

    fn attempt(text: &str) -> Result<fabric::net::Net, String> {
        attempt_with(text, NvSwitches::Keep)
    }

    fn attempt_with(text: &str, nvswitches: NvSwitches) -> Result<fabric::net::Net, String> {
        warned(text, nvswitches).map(|(net, _)| net)
    }

    /// Returns the network of a file and the warnings about it.
    fn warned(text: &str, nvswitches: NvSwitches) -> Result<(fabric::net::Net, Vec<String>), String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("topology.txt"), text).unwrap();
        let params = Params { path: "topology.txt".into(), cables: Cables::defaults(), nvswitches };
        let files = Files::new(dir.path());
        let env = Env { files: &files };
        if let Some(problem) = check(&params, &env).pop() {
            return Err(problem.message);
        }
        let mut net = NetBuilder::default();
        Hpcc::new(&params, &env).build(&mut net);
        Ok((net.build(), files.warnings().into_iter().map(|warning| warning.message).collect()))
    }

    #[test]
    fn nodes_links_and_losses_are_those_of_the_file() {
        let net = attempt(SAMPLE).unwrap();
        let nodes: Vec<(&str, u8)> = net.nodes().iter().map(|n| (n.name.as_str(), n.tier)).collect();
        assert_eq!(nodes, [("0", 0), ("1", 0), ("2", 0), ("3", 0), ("4", 1), ("5", 1)]);
        let links = crate::topology::testing::links(&net);
        assert_eq!((links[0].as_str(), links.len()), ("0->4 100Gbps 1us", 10));
        assert!(links.contains(&"5->4 400Gbps 2us".to_owned()));
        let lossy = net.links().iter().filter(|link| link.loss.to_string() == "0.001").count();
        assert_eq!(lossy, 2, "both directions");
        let one_line = SAMPLE.split_once('\n').map(|(head, rest)| format!("{head}\n{}", rest.replace('\n', " "))).unwrap();
        assert_eq!(attempt(&one_line).unwrap().links().len(), 10, "line breaks may be anywhere");
    }

    /// Rates as in `topology-256.txt` of ns3-datacenter; the second line has two rates as in the
    /// files of its Reverie.
    #[test]
    fn files_of_ns3_datacenter_count_tor_switches() {
        let links = "2 3\n0 2 25000000000.0 1us 0\n1 3 25000000000.0 1us 0\n2 3 100000000000 0.000002 0\n";
        for first in ["4 2 2 3", "4 2 2 3 25000000000 100000000000"] {
            let net = attempt(&format!("{first}\n{links}")).unwrap();
            assert_eq!(net.hosts().len(), 2);
            let links = crate::topology::testing::links(&net);
            assert_eq!((links.len(), links[0].as_str()), (6, "0->2 25Gbps 1us"), "{first}");
            assert!(links.contains(&"2->3 100Gbps 2us".to_owned()), "{links:?}");
        }
    }

    #[test]
    fn rates_delays_and_losses_are_those_of_ns3() {
        let link = |values: &str| {
            let net = attempt(&format!("3 1 2\n2\n0 2 {values}\n1 2 1Gbps 1us 0\n"))
                .map_err(|why| why[..why.len().min(80)].to_owned())?;
            Ok::<_, String>(format!("{} {} {}", net.links()[0].rate, net.links()[0].delay, net.links()[0].loss))
        };
        for (values, read) in [
            ("25000000000.0 1us 0", "25Gbps 1us 0"),
            ("25000000000 2us 0", "25Gbps 2us 0"),
            ("100Gbps 0.000001 0", "100Gbps 1us 0"),
            ("100Gbps 1e-6s 1e-6", "100Gbps 1us 0.000001"),
            ("12.5GB/s 1500fs 0.0", "100Gbps 2ps 0"),
        ] {
            assert_eq!(link(values).as_deref(), Ok(read), "{values}");
        }
        for (values, why) in [
            ("1gbps 1us 0", "topology.txt:3:5: `1gbps` is not a rate: has the unit `gbps`"),
            ("1Gbps 0.4ps 0", "topology.txt:3:11: `0.4ps` is not a delay: is out of range: from 1ps"),
            ("1Gbps 1us 1e-10", "topology.txt:3:15: `1e-10` is not a loss: is less than 0.000000001"),
        ] {
            assert!(link(values).unwrap_err().starts_with(why), "{values}: {:?}", link(values));
        }
    }

    /// As in HPCC's own `mix/topology.txt`.
    #[test]
    fn the_first_line_says_how_many_links_are_read() {
        let (net, warnings) =
            warned("3 1 2\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n\nFirst line: nodes\n...\n", NvSwitches::Keep).unwrap();
        assert_eq!((net.links().len(), warnings), (4, Vec::new()), "comments alone need no warning");
        let more = "3 1 2\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n0 67 25Gbps 0.001ms 0\n0 68 25Gbps 0.001ms 0\n7\n\nsrc dst rate\n";
        let (net, warnings) = warned(more, NvSwitches::Keep).unwrap();
        let expected = "the file counts 2 links; from line 5 on, these are left out: 2 links, 1 other line, 1 comment";
        assert_eq!((net.links().len(), warnings), (4, vec![expected.to_owned()]));
        // The smallest case: host 1 loses its only link.
        let message = attempt("3 1 1\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n").map(|_| ()).unwrap_err();
        assert_eq!(
            message,
            "topology.txt: host `1` has no cable; the file counts 1 link; from line 4 on, these are left out: 1 link"
        );
    }

    #[test]
    fn files_of_simai_have_more_numbers_in_the_first_line() {
        let net = attempt("5 2 1 1 4 H100\n3\n4\n0 3 1Gbps 1ns 0\n1 3 1Gbps 1ns 0\n2 4 1Gbps 1ns 0\n3 4 1Gbps 1ns 0\n").unwrap();
        assert_eq!((net.hosts().len(), net.nodes().len()), (3, 5));
        let net = attempt_with(SERVERS, NvSwitches::LeaveOut).unwrap();
        let names: Vec<&str> = net.nodes().iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["0", "1", "2", "3", "6"]);
        assert_eq!(crate::topology::testing::links(&net)[3], "3->6 400Gbps 500ns");
        let net = attempt(SERVERS).unwrap();
        let nics: Vec<String> = net.nics(base::HostId(3)).map(|nic| net.link_name(nic)).collect();
        assert_eq!(nics, ["3->5", "3->6"]);
        // GPUs of a server are at the same distance over their NVSwitch and over the rack, and use the
        // NVSwitch; other servers are reached over the rack.
        let routes = fabric::routes::Routes::new(&net, &[]);
        let from_first = |dst: u32| {
            routes.candidates(net.hosts()[0], base::HostId(dst)).iter().map(|nic| net.link_name(*nic)).collect::<Vec<_>>()
        };
        assert_eq!((from_first(1), from_first(2)), (vec!["0->4".to_owned()], vec!["0->6".to_owned()]));
    }

    /// As in `ali_32host_10rack.txt`: each host has a link to both switches of its rack. Host 2 has
    /// two links to one of these switches.
    #[test]
    fn hosts_may_have_several_links() {
        let net = attempt(
            "8 5 12\n3 4 5 6 7\n0 3 25Gbps 1000ns 0.000000\n0 4 25Gbps 1000ns 0.000000\n1 3 25Gbps 1000ns 0\n1 4 25Gbps 1000ns 0\n\
             2 5 25Gbps 1000ns 0\n2 6 25Gbps 1000ns 0\n2 6 25Gbps 1000ns 0\n3 7 100Gbps 1000ns 0\n4 7 100Gbps 1000ns 0\n5 7 100Gbps 1000ns 0\n\
             6 7 100Gbps 1000ns 0\n6 7 100Gbps 1000ns 0\n",
        )
        .unwrap();
        let nics = |host| net.nics(base::HostId(host)).map(|nic| net.link_name(nic)).collect::<Vec<_>>();
        assert_eq!(
            (nics(0), nics(2)),
            (vec!["0->3".to_owned(), "0->4".to_owned()], ["2->5", "2->6", "2->6"].map(str::to_owned).to_vec())
        );
        assert_eq!(net.host_rate(base::HostId(2)), base::Rate::from_gbps(75));
    }

    #[test]
    fn mistakes_are_named_with_their_places() {
        let cases = [
            ("", "the file ends before the number of nodes"),
            ("6 2", "topology.txt: the first line has 2 words, but none of the known forms: `nodes switches links` (HPCC)"),
            ("6 2 1 0 5", "the first line has 5 words"),
            ("7 2 2 1 8 0", "the first line has 6 words"),
            ("6 2 3 5", "topology.txt:1:5: `3` is not the number of ToR switches"),
            ("6 2 5", "ends before the last switch"),
            ("6 7 5\n", "topology.txt:1:3: `7` is not the number of switches"),
            ("6 2 5\n4 9\n", "topology.txt:2:3: `9` is not a node: nodes are numbered from 0 to 5"),
            ("6 2 5\n4 4\n", "topology.txt:2:3: `4` is listed twice"),
            ("3 1 2\n2\n0 2 1Gbps 1us 0\n1 1 1Gbps 1us 0\n", "`1` is also the other end: a link from a node to itself"),
            ("3 1 2\n2\n0 2 1Gbps 1us 0\n", "ends before the last of 2 links"),
            ("3 1 2\n2\n0 2 1Gbps 1us 0\n1 2 1Gb 1us 0\n", "`1Gb` is not a rate"),
            ("3 1 2\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0.6\n", "`0.6` is not a loss: is out of range"),
            ("3 1 2\n2\n0 2 1Gbps 1us 0\n0 2 1Gbps 1us 0\n", "host `1` has no cable"),
            ("99999999999999999999 1 1\n", "is not the number of nodes"),
        ];
        for (text, why) in cases {
            let message = attempt(text).map(|_| ()).unwrap_err();
            assert!(message.contains(why), "{text:?}: {message}");
        }
    }

    #[test]
    fn no_file_breaks_the_reader() {
        for text in mangled(SAMPLE) {
            let _ = attempt(&text);
        }
        for text in mangled(SERVERS) {
            let _ = attempt_with(&text, NvSwitches::LeaveOut);
        }
    }
}
