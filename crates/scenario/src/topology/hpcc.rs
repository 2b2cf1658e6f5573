//! A network from a topology file of HPCC's simulator, which many other programs based on ns-3 read
//! too.
//!
//! ```text
//! 6 2 5                              nodes, switches, links
//! 4 5                                the switches; all other nodes are hosts
//! 0 4 100Gbps 1000ns 0.000000        both ends of a link, rate, delay, loss probability of a packet
//! ...
//! ```
//! Line breaks may be anywhere; comments may follow the last link. The name of a node is its
//! number. Every link is full duplex; the tier of a switch is its distance from the nearest host.
//!
//! Source: simulation/mix of alibaba-edu/High-Precision-Congestion-Control. The files of SimAI,
//! which have three more numbers in the first line, are read too: the number of GPUs of a server,
//! the number of NVSwitches and the type of GPU.
//!
//! Model: a host with several links, as in `ali_32host_10rack.txt`, is a host with several NICs.
//! A GPU with a link to an NVSwitch and a link to the network has two NICs. GPUs of a server
//! communicate over their NVSwitch, as with NCCL, also if the network has a path of as many links.
//! `nvswitches = "leave_out"` leaves out the NVSwitches, so that GPUs of a
//! server communicate over the network.

use super::edges::{self, Edge, Edges, NodeOfFile, OfFile, Read};
use super::{Cables, Env};
use crate::files::tokens::{Tokens, Word};
use base::params::Problem;
use base::registry::Meta;
use base::units::{parse_dur, parse_fraction, parse_rate};

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
    const HINT: &'static str = "the file begins with the numbers of nodes, switches and links; the switches follow, then the links, like `0 4 100Gbps 1000ns 0`";
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

fn read(params: &Params, env: &Env<'_>) -> Result<Edges, String> {
    let text = env.files.text(&params.path)?;
    let mut tokens = Tokens::new(&params.path, &text);
    let first = text.lines().find(|line| !line.trim().is_empty()).map_or(0, |line| line.split_whitespace().count());
    let nodes = tokens.whole("the number of nodes", 2, MOST_NODES)?;
    // SimAI: nodes, GPUs of a server, NVSwitches, switches, links, type of GPU and, in newer files,
    // one more number.
    let simai = first >= 6;
    let inner = if simai {
        tokens.whole("the number of GPUs of a server", 0, MOST_NODES)?;
        tokens.whole("the number of NVSwitches", 0, nodes)?
    } else {
        0
    };
    let switches = tokens.whole("the number of switches", 0, nodes - inner)? + inner;
    let links = tokens.whole("the number of links", 1, u64::from(u32::MAX))?;
    for _ in 5..first.min(7) {
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
        let rate = tokens.parse("a rate", |text| edges::rate(parse_rate(text)?))?;
        let delay = tokens.parse("a delay", |text| edges::delay(parse_dur(text)?))?;
        let loss = tokens.parse("a loss", |text| edges::loss(parse_fraction(text)?))?;
        if !ends.iter().any(|end| left_out[*end]) {
            cables.push(Edge { ends, rate, delay, loss: Some(loss) });
        }
    }
    tokens.end_or_comments("the last link", |_| false)?;
    let kept: Vec<usize> = (0..host.len()).filter(|id| !left_out[*id]).collect();
    let place = |id: usize| kept.partition_point(|kept| *kept < id);
    let cables = cables.into_iter().map(|cable| Edge { ends: cable.ends.map(place), ..cable }).collect();
    let nodes = kept.iter().map(|&id| NodeOfFile { name: id.to_string(), host: host[id], tier: None, in_server: inner_switch[id] });
    Edges::new(nodes.collect(), cables).map_err(|why| format!("{}: {why}", params.path))
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
        Ok(net.build())
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
            ("6 2", "ends before the number of links"),
            ("6 7 5\n", "topology.txt:1:3: `7` is not the number of switches"),
            ("6 2 5\n4 9\n", "topology.txt:2:3: `9` is not a node: nodes are numbered from 0 to 5"),
            ("6 2 5\n4 4\n", "topology.txt:2:3: `4` is listed twice"),
            ("3 1 2\n2\n0 2 1Gbps 1us 0\n1 1 1Gbps 1us 0\n", "`1` is also the other end: a link from a node to itself"),
            ("3 1 2\n2\n0 2 1Gbps 1us 0\n", "ends before the last of 2 links"),
            ("3 1 2\n2\n0 2 1Gbps 1us 0\n1 2 1Gb 1us 0\n", "`1Gb` is not a rate"),
            ("3 1 2\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0.6\n", "`0.6` is not a loss: is out of range"),
            ("3 1 2\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n7\n", "`7` follows the last link"),
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
