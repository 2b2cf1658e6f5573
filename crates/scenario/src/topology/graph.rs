//! A network from a graph: node-link JSON, as networkx writes it, or GraphML.
//!
//! ```text
//! {"nodes": [{"id": "h0"}, {"id": "tor0", "kind": "switch"}],
//!  "links": [{"source": "h0", "target": "tor0", "rate": "10Gbps", "delay": "1us", "loss": "0.001"}]}
//! ```
//! A link may have `rate`, `delay` and `loss`; the scenario gives the values that a link does not
//! have. Rates and delays are texts with units, or plain numbers in `rate_unit` and `delay_unit`. A
//! node may have a `kind`, `host` or `switch`, and a `tier`; without a kind, nodes with one link
//! are hosts. A node of the kind `host` may have several links, one for each of its NICs. The tier
//! of a switch is its distance from the nearest host. `attributes` maps our attribute names to
//! those of the file, if they differ. GraphML's hyperedges, graphs inside nodes or edges, second
//! graphs and data without a declared key are refused. In a directed graph, a link and its reverse
//! are one cable and must have equal values: both directions of a cable are equal.
//!
//! Source: `node_link_data` of networkx, whose links are `links` or, from version 3.4 on, `edges`; the GraphML primer.

use super::edges::{self, Edge, Edges, NodeOfFile, OfFile, Read};
use super::{Cables, Env};
use crate::files::columns::{Columns, RateUnit, TimeUnit};
use crate::files::tokens::shortened;
use base::params::Problem;
use base::registry::Meta;
use base::units::parse_fraction;
use base::{Dur, Rate};
use roxmltree::Node as Element;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt::Display;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "a network from a graph: node-link JSON of networkx, or GraphML",
    source: "networkx.node_link_data; the GraphML primer",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of a network from a graph.
    pub struct Params {
        ..cables: Cables {}
        /// Path of the file, `.json` or `.graphml`; relative to the scenario.
        path: String = "", "";
        /// Rate of the links for which the file gives no rate.
        rate: Rate = "10Gbps" in super::MIN_RATE..=super::MAX_RATE, "flowloom: that of most hosts";
        /// Delay of the links for which the file gives no delay.
        delay: Dur = "1us" in super::MIN_DELAY..=super::MAX_DELAY, "flowloom: 200 m of fibre";
        /// Names of attributes in the file, if they differ from ours, like `{ rate = "capacity" }`;
        /// `own`: our names.
        attributes: Columns = "own", "networkx defines no names for them", quiet;
        /// Unit of the rates in the file; `text`: each rate has its own unit.
        rate_unit: RateUnit = "text", "networkx defines no unit", quiet;
        /// Unit of the delays in the file; `text`: each delay has its own unit.
        delay_unit: TimeUnit = "text", "networkx defines no unit", quiet;
    }
}

const ATTRIBUTES: [&str; 5] = ["rate", "delay", "loss", "kind", "tier"];

/// Returns the problems that depend on the rest of the scenario.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    match params.attributes.among(&ATTRIBUTES, "attribute") {
        Ok(_) => edges::check::<Format>(params, env),
        Err(message) => {
            vec![Problem {
                key: "attributes",
                message,
                hint: "write a table like `attributes = { rate = \"capacity\" }`".to_owned(),
            }]
        }
    }
}

/// A network from a graph.
pub type Graph = OfFile<Format>;

/// The file format.
pub struct Format;

impl Read for Format {
    type Params = Params;
    const HINT: &'static str =
        "links have a source, a target and optionally `rate`, `delay` and `loss`, like \"10Gbps\", \"1us\", \"0.001\"";
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

/// A node or a link of a file.
struct Part {
    /// The number of the node or link in a JSON file, the offset of its element in a GraphML file.
    at: usize,
    values: BTreeMap<String, Value>,
}

/// The value of an attribute.
#[derive(Clone)]
enum Value {
    /// A text, or a number as a text.
    Text(String),
    /// A JSON value of another type.
    Other(String),
}

impl Part {
    /// Renames attributes from the names in the file to ours. An attribute that has one of our
    /// names but is not mapped to it is removed.
    fn rename(&mut self, names: &[(&str, String)]) {
        let theirs: Vec<Option<Value>> = names.iter().map(|(_, theirs)| self.values.get(theirs).cloned()).collect();
        for ((ours, _), value) in names.iter().zip(theirs) {
            match value {
                Some(value) => self.values.insert((*ours).to_owned(), value),
                None => self.values.remove(*ours),
            };
        }
    }
}

/// Returns the place of a node or a link in its file: `graph.json: link 3`, `graph.graphml:12:4`.
type Place<'a> = Box<dyn Fn(&'static str, usize) -> String + 'a>;

/// The content of a file in either format.
struct Parts<'a> {
    directed: bool,
    nodes: Vec<Part>,
    links: Vec<Part>,
    place: Place<'a>,
}

/// A node or a link with the data for messages.
struct Seen<'a> {
    what: &'static str,
    part: &'a Part,
    place: &'a Place<'a>,
}

impl<'a> Parts<'a> {
    fn nodes(&'a self) -> impl Iterator<Item = Seen<'a>> {
        self.nodes.iter().map(|part| Seen { what: "node", part, place: &self.place })
    }
    fn links(&'a self) -> impl Iterator<Item = Seen<'a>> {
        self.links.iter().map(|part| Seen { what: "link", part, place: &self.place })
    }
}

impl<'a> Seen<'a> {
    /// Returns a message with the place of the node or link.
    fn wrong(&self, why: impl Display) -> String {
        format!("{}: {why}", (self.place)(self.what, self.part.at))
    }
    fn get(&self, key: &str) -> Result<Option<&'a str>, String> {
        match self.part.values.get(key) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(Value::Other(value)) => Err(self.wrong(format!("`{key}` is `{value}`, but must be a text or a number"))),
        }
    }
    fn need(&self, key: &str) -> Result<&'a str, String> {
        let missing = || self.wrong(format!("there is no `{key}` that is a text or a number"));
        self.get(key).ok().flatten().ok_or_else(missing)
    }
    fn parse<T>(&self, key: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, String> {
        let wrong = |text: &str, why: String| self.wrong(format!("`{text}` is not a {key}: {why}"));
        self.get(key)?.map(|text| read(text).map_err(|why| wrong(text, why))).transpose()
    }
}

fn read(params: &Params, env: &Env<'_>) -> Result<Edges, String> {
    let text = env.files.text(&params.path)?;
    let mut parts = if text.trim_start().starts_with('<') { graphml(&params.path, &text) } else { node_link(&params.path, &text) }?;
    let names = params.attributes.among(&ATTRIBUTES, "attribute")?;
    parts.nodes.iter_mut().chain(&mut parts.links).for_each(|part| part.rename(&names));
    let mut index = BTreeMap::new();
    for node in parts.nodes() {
        let name = node.need("id")?;
        edges::name(name).map_err(|why| node.wrong(format!("`{name}` {why}")))?;
        if index.insert(name, index.len()).is_some() {
            return Err(node.wrong(format!("node `{name}` is given twice")));
        }
    }
    let mut cables: Vec<Edge> = Vec::new();
    // In a directed graph: indices in `cables`, by ends, of links whose reverse has not been read.
    let mut single: BTreeMap<[usize; 2], Vec<usize>> = BTreeMap::new();
    for link in parts.links() {
        let end = |key| {
            let name = link.need(key)?;
            index.get(name).copied().ok_or_else(|| link.wrong(format!("there is no node `{name}`")))
        };
        let ends = [end("source")?, end("target")?];
        if ends[0] == ends[1] {
            return Err(link.wrong("a link from a node to itself"));
        }
        let rate = link.parse("rate", |text| edges::rate(params.rate_unit.read(text)?))?.unwrap_or(params.rate);
        let delay = link.parse("delay", |text| edges::delay(params.delay_unit.read(text)?))?.unwrap_or(params.delay);
        let loss = link.parse("loss", |text| edges::loss(parse_fraction(text)?))?;
        let cable = Edge { ends, rate, delay, loss };
        if let Some(other) = single.get_mut(&[ends[1], ends[0]]).and_then(Vec::pop) {
            let of = |edge: &Edge| {
                let loss = edge.loss.map_or("of all links".to_owned(), |loss| loss.to_string());
                format!("rate {}, delay {}, loss {loss}", edge.rate, edge.delay)
            };
            let [here, there] = [&cable, &cables[other]].map(of);
            if here != there {
                let why = format!("this link ({here}) and its reverse ({there}) are one cable, so their values must be equal");
                return Err(link.wrong(why));
            }
            continue;
        }
        if parts.directed {
            single.entry(ends).or_default().push(cables.len());
        }
        cables.push(cable);
    }
    let mut degree = vec![0; parts.nodes.len()];
    cables.iter().flat_map(|cable| cable.ends).for_each(|end| degree[end] += 1);
    let nodes = parts.nodes().zip(degree).map(|(node, degree)| {
        let host = match node.get("kind")? {
            None => degree == 1,
            Some("host") => true,
            Some("switch") => false,
            Some(other) => return Err(node.wrong(format!("`{other}` is neither `host` nor `switch`"))),
        };
        let tier = node.parse("tier", |text| match text.parse::<u8>() {
            Ok(tier) if (tier == 0) == host => Ok(tier),
            _ => Err("hosts are tier 0, switches 1 to 255".to_owned()),
        })?;
        Ok(NodeOfFile { name: node.need("id")?.to_owned(), host, tier, in_server: false })
    });
    let nodes = nodes.collect::<Result<Vec<NodeOfFile>, String>>()?;
    if !nodes.iter().any(|node| node.host) {
        return Err(format!("{}: there is no host: no node has exactly one link or the kind `host`", params.path));
    }
    Edges::new(nodes, cables).map_err(|why| format!("{}: {why}", params.path))
}

/// Reads the JSON of networkx. Values may be numbers.
fn node_link<'a>(path: &'a str, text: &str) -> Result<Parts<'a>, String> {
    let graph: Json = serde_json::from_str(text).map_err(|e| format!("{path}:{}:{}: this is not JSON", e.line(), e.column()))?;
    let place = move |what: &'static str, at: usize| format!("{path}: {what} {}", at + 1);
    let list = |keys: &[&str], what: &'static str| {
        let found = keys.iter().find_map(|key| graph.get(*key)).and_then(Json::as_array);
        let found = found.ok_or_else(|| format!("{path}: there is no list `{}`", keys[0]))?;
        let part = |(at, value): (usize, &Json)| {
            let fields = value.as_object().ok_or_else(|| format!("{} is not an object", place(what, at)))?;
            Ok(Part { at, values: fields.iter().map(|(key, value)| (key.clone(), json_value(value))).collect() })
        };
        found.iter().enumerate().map(part).collect::<Result<Vec<Part>, String>>()
    };
    let directed = graph.get("directed").unwrap_or(&Json::Bool(false));
    let directed = directed.as_bool().ok_or_else(|| format!("{path}: `directed` is `{directed}`, but must be true or false"))?;
    let (nodes, links) = (list(&["nodes"], "node")?, list(&["links", "edges"], "link")?);
    Ok(Parts { directed, nodes, links, place: Box::new(place) })
}

fn json_value(value: &Json) -> Value {
    let number = |number: &serde_json::Number| match number.as_f64().filter(|_| number.is_f64()) {
        // Without an exponent, like all numbers of a scenario.
        Some(float) => float.to_string(),
        None => number.to_string(),
    };
    match value {
        Json::String(text) => Value::Text(text.clone()),
        Json::Number(value) => Value::Text(number(value)),
        other => Value::Other(shortened(&other.to_string())),
    }
}

/// Reads GraphML: attributes are `data` elements whose keys have names; a key may have a default.
fn graphml<'a>(path: &'a str, text: &'a str) -> Result<Parts<'a>, String> {
    let document =
        roxmltree::Document::parse(text).map_err(|e| format!("{path}:{}:{}: this is not XML", e.pos().row, e.pos().col))?;
    let place = move |_: &'static str, at: usize| {
        let before = &text[..at];
        let line = before.rfind('\n').map_or(before, |end| &before[end + 1..]);
        format!("{path}:{}:{}", before.matches('\n').count() + 1, line.chars().count() + 1)
    };
    let wrong = |element: &Element<'_, '_>, why: String| format!("{}: {why}", place("", element.range().start));
    let mut graphs = document.descendants().filter(|e| is(e, "graph"));
    let graph = graphs.next().ok_or_else(|| format!("{path}: there is no graph"))?;
    let mut names = BTreeMap::new();
    let mut defaults: BTreeMap<&str, BTreeMap<String, Value>> = BTreeMap::new();
    for key in document.descendants().filter(|e| is(e, "key")) {
        let Some(id) = key.attribute("id") else { continue };
        let name = key.attribute("attr.name");
        names.insert(id, name);
        let default = key.children().find(|e| is(e, "default")).and_then(|e| e.text());
        if let (Some(name), Some(default)) = (name, default) {
            let of_kind = defaults.entry(key.attribute("for").unwrap_or("all")).or_default();
            of_kind.insert(name.to_owned(), Value::Text(default.trim().to_owned()));
        }
    }
    let (mut nodes, mut links) = (Vec::new(), Vec::new());
    for element in graph.children().filter(Element::is_element) {
        let tag = element.tag_name().name();
        let found = match tag {
            "node" => &mut nodes,
            "edge" => &mut links,
            "hyperedge" => {
                return Err(wrong(&element, "a hyperedge is not a cable: only links between two nodes are read".to_owned()));
            }
            _ => continue,
        };
        if let Some(inner) = element.children().find(|e| is(e, "graph")) {
            return Err(wrong(&inner, format!("a graph inside `{tag}` is not read: write all nodes and edges in one graph")));
        }
        let mut values = BTreeMap::new();
        for of in ["all", tag] {
            values.extend(defaults.get(of).into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())));
        }
        for data in element.children().filter(|e| is(e, "data")) {
            let key = data.attribute("key").unwrap_or_default();
            let Some(name) = names.get(key) else {
                return Err(wrong(&data, format!("no `<key>` declares the key `{key}` of this data")));
            };
            // A key without a name holds private data of a program, like colours.
            if let Some(name) = name {
                values.insert((*name).to_owned(), Value::Text(data.text().unwrap_or("").trim().to_owned()));
            }
        }
        values.extend(element.attributes().map(|a| (a.name().to_owned(), Value::Text(a.value().to_owned()))));
        found.push(Part { at: element.range().start, values });
    }
    if let Some(second) = graphs.next() {
        return Err(wrong(&second, "a second graph is not read: write all nodes and edges in one graph".to_owned()));
    }
    Ok(Parts { directed: graph.attribute("edgedefault") == Some("directed"), nodes, links, place: Box::new(place) })
}

/// Returns whether an element has this name, in any name space.
fn is(element: &Element<'_, '_>, name: &str) -> bool {
    element.is_element() && element.tag_name().name() == name
}

#[cfg(test)]
mod tests {
    use super::super::Topology;
    use super::*;
    use crate::files::Files;
    use crate::files::tokens::testing::mangled;
    use base::params::Params as _;
    use fabric::net::NetBuilder;

    const JSON: &str = r#"{"directed": false, "multigraph": false, "graph": {},
 "nodes": [{"id": "h0"}, {"id": "h1"}, {"tier": 2, "id": "top"}, {"id": 3, "kind": "switch"}],
 "edges": [{"source": "h0", "target": 3, "rate": "1Gbps", "delay": "2us"}, {"source": "h1", "target": 3, "loss": 0.001},
           {"source": 3, "target": "top"}, {"source": "top", "target": 3}]}"#;
    const XML: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="edge" attr.name="rate" attr.type="string"><default>40Gbps</default></key>
  <key id="d1" for="node" attr.name="kind" attr.type="string"/>
  <graph edgedefault="directed">
    <node id="a"/><node id="b"/>
    <node id="s"><data key="d1">switch</data></node>
    <edge source="a" target="s"><data key="d0">1Gbps</data></edge>
    <edge source="s" target="a"><data key="d0">1Gbps</data></edge>
    <edge source="b" target="s"/>
  </graph>
</graphml>"#;

    fn attempt(name: &str, text: &str) -> Result<fabric::net::Net, String> {
        attempt_with(name, text, plain())
    }

    fn plain() -> Params {
        Params {
            cables: Cables::defaults(),
            path: String::new(),
            rate: Rate::from_gbps(10),
            delay: Dur::from_us(1),
            attributes: Columns::default(),
            rate_unit: RateUnit::Text,
            delay_unit: TimeUnit::Text,
        }
    }

    fn attempt_with(name: &str, text: &str, params: Params) -> Result<fabric::net::Net, String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(name), text).unwrap();
        let params = Params { path: name.into(), ..params };
        let files = Files::new(dir.path());
        let env = Env { files: &files };
        if let Some(problem) = check(&params, &env).pop() {
            return Err(problem.message);
        }
        let mut net = NetBuilder::default();
        Graph::new(&params, &env).build(&mut net);
        Ok(net.build())
    }

    fn nodes(net: &fabric::net::Net) -> Vec<(&str, u8)> {
        net.nodes().iter().map(|n| (n.name.as_str(), n.tier)).collect()
    }

    #[test]
    fn node_link_json_becomes_a_network() {
        let net = attempt("g.json", JSON).unwrap();
        assert_eq!(nodes(&net), [("h0", 0), ("h1", 0), ("top", 2), ("3", 1)]);
        let links = crate::topology::testing::links(&net);
        assert_eq!(links.len(), 8, "an undirected graph may have cables side by side");
        assert_eq!((links[0].as_str(), links[1].as_str()), ("h0->3 1Gbps 2us", "h1->3 10Gbps 1us"));
        assert_eq!(net.links().iter().filter(|link| link.loss.to_string() == "0.001").count(), 2);
        assert_eq!(attempt("g.json", &JSON.replace("edges", "links")).unwrap().links().len(), 8, "older networkx");
    }

    #[test]
    fn graphml_becomes_a_network() {
        let net = attempt("g.graphml", XML).unwrap();
        assert_eq!(nodes(&net), [("a", 0), ("b", 0), ("s", 1)]);
        assert_eq!(
            crate::topology::testing::links(&net),
            ["a->s 1Gbps 1us", "b->s 40Gbps 1us", "s->a 1Gbps 1us", "s->b 40Gbps 1us"]
        );
    }

    #[test]
    fn a_host_may_have_several_links() {
        let text = JSON.replace("{\"id\": \"h0\"}", "{\"id\": \"h0\", \"kind\": \"host\"}");
        let text = text.replace("{\"source\": 3, \"target\": \"top\"}", "{\"source\": \"h0\", \"target\": \"top\"}");
        let net = attempt("g.json", &text).unwrap();
        let nics: Vec<String> = net.nics(base::HostId(0)).map(|nic| net.link_name(nic)).collect();
        assert_eq!(nics, ["h0->3", "h0->top"]);
    }

    #[test]
    fn attributes_may_have_other_names_and_numbers_without_units() {
        let text = r#"{"nodes": [{"id": 0, "rate": 7}, {"id": 1}, {"id": 2, "role": "switch"}], "links": [
            {"source": 0, "target": 2, "capacity": 2.5, "latency": 1e-6, "rate": "none"}, {"source": 1, "target": 2, "latency": 0.002}]}"#;
        let names = [("rate", "capacity"), ("delay", "latency"), ("kind", "role")];
        let attributes = Columns(names.map(|(ours, theirs)| (ours.to_owned(), theirs.to_owned())).to_vec());
        let params = Params { attributes, rate_unit: RateUnit::Gbps, delay_unit: TimeUnit::S, ..plain() };
        let net = attempt_with("g.json", text, params).unwrap();
        assert_eq!(crate::topology::testing::links(&net)[..2], ["0->2 2500Mbps 1us", "1->2 10Gbps 2ms"]);
        let unknown = Params { attributes: Columns(vec![("speed".into(), "capacity".into())]), ..plain() };
        let message = attempt_with("g.json", text, unknown).map(|_| ()).unwrap_err();
        assert_eq!(message, "`speed` is not a known attribute: write one of rate, delay, loss, kind, tier");
    }

    #[test]
    fn both_directions_of_a_cable_agree() {
        let nodes = r#"{"directed": true, "nodes": [{"id": "a"}, {"id": "s", "kind": "switch"}, {"id": "t", "kind": "switch"}], "links": ["#;
        let link =
            |ends: [&str; 2], rate: &str| format!(r#"{{"source": "{}", "target": "{}", "rate": "{rate}"}}"#, ends[0], ends[1]);
        let with = |links: &[String]| attempt("g.json", &format!("{nodes}{}]}}", links.join(", ")));
        let host = link(["a", "s"], "1Gbps");
        let (there, back) = (link(["s", "t"], "1Gbps"), link(["t", "s"], "1Gbps"));
        let net = with(&[host.clone(), there.clone(), there.clone(), back.clone(), back]).unwrap();
        assert_eq!(net.links().len(), 2 * 3, "two parallel cables");
        let message = with(&[host, there, link(["t", "s"], "2Gbps")]).map(|_| ()).unwrap_err();
        assert_eq!(
            message,
            "g.json: link 3: this link (rate 2Gbps, delay 1us, loss of all links) and its reverse (rate 1Gbps, delay 1us, \
             loss of all links) are one cable, so their values must be equal"
        );
    }

    #[test]
    fn mistakes_are_named_with_their_places() {
        let json = |nodes: &str, links: &str| format!("{{\"nodes\": [{nodes}], \"links\": [{links}]}}");
        let (two, cable) = ("{\"id\": 0}, {\"id\": 1}", "{\"source\": 0, \"target\": 1}");
        let cases = [
            ("{".to_owned(), "g.json:1:1: this is not JSON"),
            ("{}".to_owned(), "there is no list `nodes`"),
            (json(two, "3"), "link 1 is not an object"),
            (json("{\"id\": 0}, {\"id\": 0}", ""), "node 2: node `0` is given twice"),
            (json(two, "{\"source\": 0}"), "link 1: there is no `target`"),
            (json("{\"id\": [0, 1]}, {\"id\": 1}", ""), "node 1: there is no `id` that is a text or a number"),
            (json("{\"id\": \"New York\"}, {\"id\": 1}", ""), "node 1: `New York` is not a name: no spaces"),
            (json(two, "{\"source\": 0, \"target\": 7}"), "link 1: there is no node `7`"),
            (json(two, "{\"source\": 0, \"target\": 0}"), "itself"),
            (json(two, "{\"source\": 0, \"target\": 1, \"rate\": 10}"), "link 1: `10` is not a rate"),
            (json(two, "{\"source\": 0, \"target\": 1, \"loss\": 0.9}"), "`0.9` is not a loss: is out of range"),
            (json("{\"id\": 0, \"kind\": \"router\"}, {\"id\": 1}", cable), "node 1: `router` is neither"),
            (json("{\"id\": 0, \"tier\": 4}, {\"id\": 1}", cable), "`4` is not a tier: hosts are tier 0"),
            (json(two, ""), "there is no host"),
            (json(two, "").replacen('{', "{\"directed\": 1, ", 1), "g.json: `directed` is `1`, but must be true or false"),
        ];
        for (text, why) in cases {
            let message = attempt("g.json", &text).map(|_| ()).unwrap_err();
            assert!(message.contains(why), "{text}: {message}");
        }
        for value in ["[\"1Gbps\"]", "{\"value\":1}", "true", "null"] {
            for key in ["rate", "delay", "loss"] {
                let text = json(two, &format!("{{\"source\": 0, \"target\": 1, \"{key}\": {value}}}"));
                let message = attempt("g.json", &text).map(|_| ()).unwrap_err();
                assert_eq!(message, format!("g.json: link 1: `{key}` is `{value}`, but must be a text or a number"));
            }
        }
        for (from, to, why) in [
            ("</graphml>", "", "this is not XML"),
            ("<graph ", "<grape ", "this is not XML"),
            ("1Gbps", "fast", "g.graphml:8:5: `fast` is not a rate"),
            ("<node id=\"a\"/>", "<node id=\"a\"><graph/></node>", "g.graphml:6:18: a graph inside `node` is not read"),
            ("<edge source=\"b\"", "<edge><graph/></edge><edge source=\"b\"", "g.graphml:10:11: a graph inside `edge` is not read"),
            ("<edge source=\"b\"", "<hyperedge/><edge source=\"b\"", "g.graphml:10:5: a hyperedge is not a cable"),
            ("</graphml>", "<graph/></graphml>", "g.graphml:12:1: a second graph is not read"),
            ("key=\"d1\"", "key=\"d7\"", "g.graphml:7:18: no `<key>` declares the key `d7` of this data"),
            ("<data key=\"d1\"", "<data", "g.graphml:7:18: no `<key>` declares the key `` of this data"),
            ("target=\"s\"><data", "target=\"t\"><data", "g.graphml:8:5: there is no node `t`"),
        ] {
            let message = attempt("g.graphml", &XML.replacen(from, to, 1)).map(|_| ()).unwrap_err();
            assert!(message.contains(why), "{to}: {message}");
        }
    }

    /// A key for private data of a program, such as colours, has no name; attributes that a network
    /// does not have may have any type.
    #[test]
    fn data_that_no_network_has_is_ignored() {
        let colour = "<key id=\"d9\" for=\"node\" yfiles.type=\"nodegraphics\"/><graph ";
        let text = XML.replace("<graph ", colour).replace("<node id=\"b\"/>", "<node id=\"b\"><data key=\"d9\">red</data></node>");
        assert!(attempt("g.graphml", &text).is_ok());
        assert!(attempt("g.json", &JSON.replace("{\"id\": \"h1\"}", "{\"id\": \"h1\", \"pos\": [1, 2]}")).is_ok());
    }

    #[test]
    fn a_byte_order_mark_is_accepted() {
        for (name, text) in [("g.json", JSON), ("g.graphml", XML)] {
            assert!(attempt(name, &format!("\u{feff}{text}")).is_ok(), "{name}");
        }
    }

    #[test]
    fn no_file_breaks_the_reader() {
        for sample in [JSON, XML] {
            for text in mangled(sample) {
                let _ = attempt("g", &text);
            }
        }
    }
}
