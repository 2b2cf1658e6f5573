//! docs/transports.md: the needs, knowledge and counters of every transport, from its META.

use base::registry::{Entry, Needs};
use proto::transport::ROOM;
use std::path::Path;

const HEAD: &str = "# Transports

Written by `make docs` from the `META` of the transports; do not edit.

What each transport needs of switches and of hosts, what it knows of a flow before the flow's bytes are sent, and its source.
\"Default\" is what is used unless the scenario sets it. `flowloom check` refuses a system without the other needs, and warns if marks are missing.
`flowloom explain NAME` shows the parameters and the assumptions.

| transport | needs of switches | needs of hosts | knows | host of the source | source |
|---|---|---|---|---|---|
";

const COUNTERS: &str = "
## Counters

Each transport counts these per flow. Each is a column of `flows.parquet`.

| column | unit | counts |
|---|---|---|
";

/// Returns names as code, in a list.
fn names(names: &[&str], last: &str) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match &names[..] {
        [all @ .., end] if !all.is_empty() => format!("{} {last} {end}", all.join(", ")),
        names => names.join(""),
    }
}

/// Returns the defaults of one part of an entry's system: the kind, and the settings as written.
fn implied(entry: &Entry, part: &str) -> (Option<&'static str>, Vec<String>) {
    let own = entry.meta.implies.iter().filter_map(|(key, value)| Some((key.strip_prefix(part)?.strip_prefix('.')?, *value)));
    let (kinds, settings): (Vec<_>, Vec<_>) = own.partition(|(key, _)| *key == "kind");
    (kinds.first().map(|(_, kind)| *kind), settings.iter().map(|(key, value)| format!("`{key} = {value}`")).collect())
}

/// Returns an entry's needs in one slot of its system.
fn slot(entry: &Entry, noun: &str, part: &str, wanted: &[&str]) -> Option<String> {
    let (kind, settings) = implied(entry, part);
    let mut text = match kind {
        _ if !wanted.is_empty() => format!("{noun} {}", names(wanted, "or")),
        Some(kind) if entry.meta.plugin.is_some() => format!("{noun} `{kind}` by default if the plug-in uses marks"),
        Some(kind) => format!("{noun} `{kind}` by default"),
        None if settings.is_empty() => return None,
        None => noun.to_owned(),
    };
    if !settings.is_empty() {
        text += &format!(" with {} by default", settings.join(", "));
    }
    Some(text)
}

fn of_switches(entry: &Entry) -> String {
    let meta = entry.meta;
    let Needs { qdisc, buffer, agent, router, controller, .. } = meta.needs;
    let mut all: Vec<String> = [
        slot(entry, "queues", "qdisc", qdisc),
        slot(entry, "the buffer", "buffer", buffer),
        slot(entry, "the agent", "agent", agent),
        slot(entry, "the router", "router", router),
        slot(entry, "the controller", "controller", controller),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut when = |needed: bool, text: &str| all.extend(needed.then(|| text.to_owned()));
    when(meta.needs.marks, "marks");
    when(meta.needs.reverse_path, "a router that gives both directions of a flow the same cables");
    when(meta.many_paths, "a router that plans paths");
    if all.is_empty() { "nothing".to_owned() } else { all.join("; ") }
}

fn of_hosts(entry: &Entry) -> String {
    let meta = entry.meta;
    let mut all: Vec<String> = [slot(entry, "the policy", "policy", meta.needs.policy)].into_iter().flatten().collect();
    let (kind, nic) = implied(entry, "nic");
    all.extend(kind.map(|kind| format!("hosts as `{kind}` by default")));
    if !nic.is_empty() {
        all.push(format!("a NIC with {} by default", nic.join(", ")));
    }
    if meta.ranks {
        all.push("no policy that ranks packets".to_owned());
    }
    if meta.needs.deadlines {
        all.push("flows with deadlines".to_owned());
    }
    if !meta.takes.is_empty() {
        all.push(format!("takes packets that were {}", names(meta.takes, "and")));
    }
    if all.is_empty() { "nothing".to_owned() } else { all.join("; ") }
}

fn text() -> String {
    let (mut rows, mut counters) = (String::new(), String::new());
    for entry in ROOM.entries {
        let knows = if entry.meta.knows.is_empty() { "nothing".to_owned() } else { entry.meta.knows.join(", ") };
        let (switches, hosts) = (of_switches(entry), of_hosts(entry));
        rows += &format!("| `{}` | {switches} | {hosts} | {knows} | {} | {} |\n", entry.name, entry.meta.host, entry.meta.source);
        for counter in entry.meta.counters {
            counters += &format!("| `{}.{}` | {} | {} |\n", entry.name, counter.name, counter.unit, counter.about);
        }
    }
    let mut text = format!("{HEAD}{rows}\n");
    for entry in ROOM.entries {
        text += &format!("- `{}`: {}\n", entry.name, entry.meta.summary);
    }
    format!("{text}{COUNTERS}{counters}")
}

#[test]
fn the_checked_in_table_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/transports.md");
    if std::env::var_os("FLOWLOOM_UPDATE").is_some() {
        std::fs::write(&path, text()).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text(), "docs/transports.md does not match the transports: run `make docs`");
}

/// Needs, defaults and counters each have a text.
#[test]
fn each_need_has_its_text() {
    let row = |name: &str| text().lines().find(|line| line.starts_with(&format!("| `{name}` |"))).unwrap_or_default().to_owned();
    assert!(row("newreno").contains("| nothing | nothing | nothing |"));
    assert!(row("merp").contains("queues `strict` with `classes = 4`, `evict = worst_class` by default; the agent `merp` |"));
    assert!(row("dctcp").contains("queues `ecn_threshold` by default; marks |"));
    assert!(row("plugin").contains("| queues `ecn_threshold` by default if the plug-in uses marks |"));
    assert!(row("expresspass").contains("the same cables |"));
    assert!(row("pfabric").contains("a NIC with `low_water = 1B` by default; no policy that ranks packets | size |"));
    assert!(row("botcp").contains("| hosts as `ns2` by default | nothing | ns-2: "));
    assert!(
        ROOM.entries.iter().chain(proto::policy::ROOM.entries).all(|entry| !entry.meta.host.is_empty()),
        "an entry without a host"
    );
    assert!(text().contains("| `mptcp.subflows` |  | subflows"));
}
