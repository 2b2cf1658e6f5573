//! A network from a list of cables.
//!
//! ```text
//! a,b,rate,delay            name,kind,tier      (optional second file)
//! h0,tor0,10Gbps,1us        h0,host,
//! tor0,spine0,40Gbps,1us    tor0,switch,1
//! ```
//! Every line is a full-duplex cable. Without a file of nodes, nodes with one cable are hosts. A
//! host with several cables, one for each of its NICs, needs a file of nodes. The tier of a switch
//! is its distance from the nearest host. Hosts are numbered in the order of the file of nodes or,
//! without this file, of the file of cables.
//!
//! Source: own format.

use super::edges::{self, Edge, Edges, NodeOfFile};
use super::{Cables, Env, Size, Topology};
use crate::files::rows::rows;
use base::params::Problem;
use base::registry::Meta;
use base::units::{parse_dur, parse_fraction, parse_rate};
use fabric::net::NetBuilder;
use std::collections::BTreeMap;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta { summary: "a network from a list of cables in a file", source: "own format", ..Meta::PLAIN };

base::params! {
    /// Parameters of a network from a file.
    pub struct Params {
        ..cables: Cables {}
        /// Path of a CSV file with the columns `a`, `b`, `rate`, `delay` and optionally `loss`;
        /// relative to the scenario.
        path: String = "", "";
        /// Path of a CSV file with the columns `name`, `kind` (`host` or `switch`) and optionally
        /// `tier`; `auto`: nodes with one cable are hosts.
        nodes: String = "auto", "what most edge lists mean";
    }
}

/// Returns the problems that depend on the rest of the scenario.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    match read(params, env) {
        Ok(_) => Vec::new(),
        Err((key, message)) => vec![Problem { key, message, hint: HINT.to_owned() }],
    }
}

const HINT: &str = "`path` is a CSV file with the columns `a,b,rate,delay[,loss]`, like `h0,tor0,10Gbps,1us`; \
                    `nodes` is a CSV file with the columns `name,kind[,tier]`";

/// A network from a list of cables.
pub struct File {
    cables: Cables,
    files: Vec<String>,
    net: Edges,
}

impl File {
    /// Creates the topology with these parameters. A file that [`check`] refuses gives an empty
    /// network.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let files = [&params.path, &params.nodes].into_iter().filter(|p| *p != "auto").cloned().collect();
        File { cables: params.cables.clone(), files, net: read(params, env).unwrap_or_default() }
    }
}

impl Topology for File {
    fn size(&self) -> Size {
        self.net.size()
    }
    fn build(&self, net: &mut NetBuilder) {
        self.net.build(&self.cables, net);
    }
    fn files(&self) -> Vec<String> {
        self.files.clone()
    }
}

type Fault = (&'static str, String);

/// A node as declared in the file of nodes: host or switch, and its tier.
struct Declared {
    host: bool,
    tier: Option<u8>,
}

fn read(params: &Params, env: &Env<'_>) -> Result<Edges, Fault> {
    let mut names: Vec<String> = Vec::new();
    let mut index: BTreeMap<String, usize> = BTreeMap::new();
    let mut declared: Vec<Declared> = Vec::new();
    if params.nodes != "auto" {
        let fault = |message| ("nodes", message);
        let text = env.files.text(&params.nodes).map_err(fault)?;
        for row in rows(&params.nodes, &text, &["name", "kind"], &["tier"]).map_err(fault)? {
            let row = row.map_err(fault)?;
            let name = row.get("name").map_err(fault)?;
            let host = match row.get("kind").map_err(fault)? {
                "host" => true,
                "switch" => false,
                other => return Err(fault(row.wrong("kind", &format!("`{other}` is neither `host` nor `switch`")))),
            };
            let tier = match row.optional("tier") {
                Some(tier) => match tier.parse() {
                    Ok(tier) if (tier == 0) == host => Some(tier),
                    _ => return Err(fault(row.wrong("tier", &format!("`{tier}`: hosts are tier 0, switches 1 to 255")))),
                },
                None => None,
            };
            if index.insert(name.to_owned(), names.len()).is_some() {
                return Err(fault(row.wrong("name", &format!("node `{name}` is given twice"))));
            }
            names.push(name.to_owned());
            declared.push(Declared { host, tier });
        }
    }
    let cables = read_cables(params, env, &mut names, &mut index).map_err(|message| ("path", message))?;
    let mut degree = vec![0; names.len()];
    cables.iter().flat_map(|cable| cable.ends).for_each(|end| degree[end] += 1);
    let nodes = names.into_iter().enumerate().map(|(i, name)| {
        let known = declared.get(i);
        NodeOfFile { name, host: known.map_or(degree[i] == 1, |d| d.host), tier: known.and_then(|d| d.tier), in_server: false }
    });
    Edges::new(nodes.collect(), cables).map_err(|message| ("nodes", message))
}

fn read_cables(
    params: &Params,
    env: &Env<'_>,
    names: &mut Vec<String>,
    index: &mut BTreeMap<String, usize>,
) -> Result<Vec<Edge>, String> {
    let known_only = !names.is_empty();
    let text = env.files.text(&params.path)?;
    let mut cables = Vec::new();
    for row in rows(&params.path, &text, &["a", "b", "rate", "delay"], &["loss"])? {
        let row = row?;
        let mut end = |column: &'static str| -> Result<usize, String> {
            let name = row.get(column)?;
            edges::name(name).map_err(|why| row.wrong(column, &format!("`{name}` {why}")))?;
            if let Some(known) = index.get(name) {
                return Ok(*known);
            }
            if known_only {
                return Err(row.wrong(column, &format!("`{name}` is not among the nodes of `{}`", params.nodes)));
            }
            names.push(name.to_owned());
            index.insert(name.to_owned(), names.len() - 1);
            Ok(names.len() - 1)
        };
        let (a, b) = (end("a")?, end("b")?);
        if a == b {
            return Err(row.wrong("b", "a cable from a node to itself"));
        }
        let rate = row.parse("rate", |text| edges::rate(parse_rate(text)?))?;
        let delay = row.parse("delay", |text| edges::delay(parse_dur(text)?))?;
        let loss = row.optional("loss").map(|_| row.parse("loss", |text| edges::loss(parse_fraction(text)?))).transpose()?;
        cables.push(Edge { ends: [a, b], rate, delay, loss });
    }
    if cables.is_empty() {
        return Err(format!("`{}` has no cables", params.path));
    }
    Ok(cables)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Files;
    use crate::files::tokens::testing::mangled;
    use base::params::Params as _;

    fn attempt(cables: &str, nodes: Option<&str>) -> Result<fabric::net::Net, String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("cables.csv"), cables).unwrap();
        std::fs::write(dir.path().join("nodes.csv"), nodes.unwrap_or("")).unwrap();
        let params =
            Params { path: "cables.csv".into(), nodes: nodes.map_or("auto", |_| "nodes.csv").into(), cables: Cables::defaults() };
        let files = Files::new(dir.path());
        let env = Env { files: &files };
        if let Some(problem) = check(&params, &env).pop() {
            return Err(problem.message);
        }
        let mut net = NetBuilder::default();
        File::new(&params, &env).build(&mut net);
        Ok(net.build())
    }

    #[test]
    fn no_file_breaks_the_reader() {
        let cables = "a,b,rate,delay,loss\nh0,tor0,10Gbps,1us,\nh1,tor0,10Gbps,1us,0.001\ntor0,spine0,40Gbps,1.5us,0\n";
        let nodes = "name,kind,tier\nh0,host,\nh1,host,0\ntor0,switch,\nspine0,switch,2\n";
        assert!(attempt(cables, Some(nodes)).is_ok());
        for text in mangled(cables) {
            let _ = attempt(&text, None);
        }
        for text in mangled(nodes) {
            let _ = attempt(cables, Some(&text));
        }
    }

    #[test]
    fn ends_are_hosts_and_tiers_count_from_them() {
        let net = attempt("a,b,rate,delay\nx,tor,1Gbps,1us\ntor,top,10Gbps,2us\n tor2 , top,10Gbps,2us\ny,tor2,1Gbps,1us\n", None)
            .unwrap();
        let nodes: Vec<(&str, u8)> = net.nodes().iter().map(|n| (n.name.as_str(), n.tier)).collect();
        assert_eq!(nodes, [("x", 0), ("y", 0), ("tor", 1), ("top", 2), ("tor2", 1)]);
        assert_eq!(crate::topology::testing::links(&net)[0], "x->tor 1Gbps 1us");
    }

    #[test]
    fn a_file_of_nodes_names_hosts() {
        let cables = "a,b,rate,delay\ns,t,1Gbps,1us\ns,x,1Gbps,1us\n";
        let net = attempt(cables, Some("name,kind,tier\nx,host,\ns,switch,\nt,switch,7\n")).unwrap();
        let nodes: Vec<(&str, u8)> = net.nodes().iter().map(|n| (n.name.as_str(), n.tier)).collect();
        assert_eq!(nodes, [("x", 0), ("s", 1), ("t", 7)]);
        let unknown = attempt(cables, Some("name,kind\nx,host\ns,switch\n")).unwrap_err();
        assert!(unknown.contains("cables.csv:2") && unknown.contains("`t` is not among"), "{unknown}");
    }

    #[test]
    fn cables_may_have_a_loss_of_their_own() {
        let net = attempt("a,b,rate,delay,loss\nx,s,1Gbps,1us,0.001\ny,s,1Gbps,1us,\n", None).unwrap();
        let losses: Vec<String> = net.links().iter().map(|link| link.loss.to_string()).collect();
        assert_eq!(losses, ["0.001", "0", "0.001", "0"]);
    }

    #[test]
    fn bad_lines_are_named() {
        let head = "a,b,rate,delay\n";
        for (lines, why) in [
            ("x,x,1Gbps,1us\n", "to itself"),
            ("x,s,1Gb,1us\n", "unit `Gb`"),
            ("x,s,1bps,1us\n", "out of range"),
            ("x,s,1Gbps,0us\n", "out of range"),
            ("x,,1Gbps,1us\n", "`b` is empty"),
            ("x y,s,1Gbps,1us\n", "not a name"),
            ("x,s\n", "2 values"),
            ("", "no cables"),
        ] {
            let message = attempt(&format!("{head}{lines}"), None).unwrap_err();
            assert!(message.contains(why), "{lines:?}: {message}");
            assert!(lines.is_empty() || message.contains("cables.csv:2"), "{message}");
        }
        assert!(attempt("from,to\n", None).unwrap_err().contains("column"));
        let lossy = attempt("a,b,rate,delay,loss\nx,s,1Gbps,1us,0.6\n", None).unwrap_err();
        assert!(lossy.contains("cables.csv:2: column `loss`") && lossy.contains("out of range"), "{lossy}");
        let none =
            attempt("a,b,rate,delay\nx,s,1Gbps,1us\nx,t,1Gbps,1us\n", Some("name,kind\nx,host\ny,host\ns,switch\nt,switch\n"));
        assert!(none.unwrap_err().contains("host `y` has no cable"));
    }

    #[test]
    fn a_host_may_have_several_cables() {
        let cables = "a,b,rate,delay\nx,s,1Gbps,1us\nx,t,1Gbps,1us\ny,t,1Gbps,1us\ny,t,1Gbps,1us\ns,t,1Gbps,1us\n";
        let net = attempt(cables, Some("name,kind\nx,host\ny,host\ns,switch\nt,switch\n")).unwrap();
        let nics = |host| net.nics(base::HostId(host)).map(|nic| net.link_name(nic)).collect::<Vec<_>>();
        assert_eq!([nics(0), nics(1)], [["x->s", "x->t"], ["y->t", "y->t"]]);
        // Without a file of nodes, all these nodes are switches, because none has exactly one cable.
        assert_eq!(attempt(cables, None).unwrap().hosts().len(), 0);
    }
}
