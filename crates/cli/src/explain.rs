//! The command `flowloom explain`.

use crate::Failure;
use crate::named::{Item, NAMED, Named};
use crate::text::columns;
use base::params::{Field, nearest};
use base::registry::{Entry, Needs, Room};
use scenario::{ROOMS, SLOTS, Slot, TABLES};
use std::fmt::Write as _;
use std::path::Path;

/// Returns the explanations of everything that has the name `kind`. Fails if the name is unknown.
pub fn text(kind: &str) -> Result<String, Failure> {
    if Path::new(kind).extension().is_some_and(|end| PLUGINS.iter().any(|known| end == *known)) {
        let (room, entry) = scenario::of_file(kind).map_err(Failure::input)?;
        return Ok(explain_entry(room, entry));
    }
    let entries = ROOMS.iter().flat_map(|room| room.entries.iter().map(move |entry| (room, entry)));
    let mut texts: Vec<String> =
        entries.filter(|(_, entry)| entry.name == kind).map(|(room, entry)| explain_entry(room, entry)).collect();
    for (list, item) in NAMED.iter().flat_map(|list| (list.items)().into_iter().map(move |item| (list, item))) {
        if item.name == kind {
            texts.push(explain_item(list, &item));
        }
    }
    // `event` also shows `event.random`.
    let tables = TABLES.iter().filter(|table| !table.name.is_empty() && table.name.split('.').any(|part| part == kind));
    texts.extend(tables.map(|table| format!("table {}: {}\n{}", table.name, table.about, parameters(table.fields))));
    if texts.is_empty() {
        if let Some(known) = familiar(kind) {
            return Err(Failure::input(known));
        }
        let tables = TABLES.iter().flat_map(|table| table.name.split('.')).filter(|name| !name.is_empty());
        let named = NAMED.iter().flat_map(|list| (list.items)()).map(|item| item.name);
        let names = ROOMS.iter().flat_map(|room| room.entries.iter().map(|e| e.name)).chain(named).chain(tables);
        let near = nearest(kind, names).map_or(String::new(), |name| format!("; did you mean `{name}`?"));
        return Err(Failure::input(format!("there is no `{kind}`{near}\nhint: `flowloom list` prints all names")));
    }
    Ok(texts.join("\n"))
}

/// The extensions of plug-ins.
const PLUGINS: [&str; 5] = ["so", "dylib", "dll", "wasm", "py"];

/// Protocols that flowloom does not have: their names, the nearest transport, and what both have in
/// common.
const ABSENT: &[(&[&str], &str, &str)] = &[
    (&["bic", "htcp"], "cubic", "its window also grows with the time since the last loss, but by another function"),
    (&["quic"], "newreno", "RFC 9002 takes its congestion control from NewReno"),
    (&["vegas", "ledbat"], "newreno", "it is TCP without a model of the delay of the path"),
    (
        &["roce", "rocev2", "rdma", "irn"],
        "dcqcn",
        "it is RDMA over Ethernet, as are `timely`, `hpcc` and `powertcp`; `irn` is their `recovery`",
    ),
    (&["uec", "ultraethernet", "nscc", "rccc"], "uet", "it is Ultra Ethernet transport; `nscc` and `rccc` are values of its `cc`"),
    (&["eqds"], "uet", "with `cc = \"rccc\"`, receivers grant credit, and switches trim packets instead of dropping them"),
];

/// Returns the message for a well-known protocol that has no entry: it names the nearest transport.
/// `None` for other names.
fn familiar(kind: &str) -> Option<String> {
    let kind = kind.to_ascii_lowercase();
    if ["tcp", "reno"].contains(&kind.as_str()) {
        let transports = ROOMS.iter().find(|room| room.name == "transport")?.entries;
        let machine = transports.iter().find(|entry| entry.name == "newreno")?.machine;
        let family = transports.iter().filter(|entry| entry.machine == machine).map(|entry| format!("`{}`", entry.name));
        let names = family.collect::<Vec<_>>().join(", ");
        return Some(format!("there is no `{kind}`; the variants of TCP are {names}\nhint: `flowloom explain newreno`"));
    }
    let (_, near, why) = ABSENT.iter().find(|(names, ..)| names.contains(&kind.as_str()))?;
    Some(format!("flowloom has no `{kind}`; the nearest transport is `{near}`: {why}\nhint: `flowloom explain {near}`"))
}

fn explain_item(list: &Named, item: &Item) -> String {
    let kind = list.plural.trim_end_matches('s');
    let source = if item.source.is_empty() { String::new() } else { format!(" [{}]", item.source) };
    let more = Some((item.more)(item.name)).filter(|more| !more.is_empty()).map_or(String::new(), |more| format!("\n{more}"));
    format!("{kind} {}: {}{source}\n{more}", item.name, item.summary)
}

fn explain_entry(room: &Room, entry: &Entry) -> String {
    let mut text = format!("{} {}: {}\n", room.name, entry.name, entry.meta.summary);
    let head = entry.head();
    let (body, parts) = (body(&head), tagged(&head));
    if !body.is_empty() {
        let _ = writeln!(text, "\n{}", plain(&body));
    }
    if !parts.iter().any(|(tag, _)| tag == "Source") {
        let _ = writeln!(text, "\nSource: {}", entry.meta.source);
    }
    write_parts(&mut text, &parts);
    if let Some(machine) = entry.machine_head() {
        let _ = writeln!(text, "\nIt runs on: {}", plain(machine.lines().next().unwrap_or_default()));
        write_parts(&mut text, &tagged(&machine));
    }
    if !entry.meta.host.is_empty() {
        let _ = writeln!(text, "\nHost of the source: {}", entry.meta.host);
    }
    let needs = needs(&entry.meta.needs);
    if !needs.is_empty() {
        let _ = writeln!(text, "\nNeeds: {needs}");
    }
    text.push_str(&parameters(entry.fields));
    text
}

/// Returns the tag at the start of a line and the rest of the line.
fn tag(line: &str) -> Option<(&'static str, &str)> {
    const TAGS: [&str; 4] = ["Source", "Model", "Assumed", "Deviates"];
    TAGS.into_iter().find_map(|tag| Some((tag, line.strip_prefix(tag)?.strip_prefix(':')?)))
}

/// Returns the part of a file header between its first paragraph and its first tag. For file
/// formats it describes the format.
fn body(head: &str) -> String {
    let lines = head.lines().skip_while(|line| !line.trim().is_empty()).take_while(|line| tag(line).is_none());
    let mut inside = false;
    let mut text = String::new();
    for line in lines {
        if line.starts_with("```") {
            inside = !inside;
        } else {
            text.push_str(if inside { "  " } else { "" });
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    text.trim_matches('\n').to_owned()
}

/// Returns the tagged parts of a file header as (tag, text), such as (`Assumed`, text), in the
/// order of the file.
fn tagged(head: &str) -> Vec<(String, String)> {
    let mut parts: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in head.lines() {
        match tag(line) {
            Some((tag, rest)) => {
                parts.push((tag.to_owned(), rest.trim().to_owned()));
                inside = true;
            }
            None if line.trim().is_empty() => inside = false,
            None if inside => {
                let text = &mut parts.last_mut().expect("inside a part").1;
                text.push('\n');
                text.push_str(line.trim_end());
            }
            None => {}
        }
    }
    parts
}

fn write_parts(text: &mut String, parts: &[(String, String)]) {
    for (tag, part) in parts {
        let part = plain(part);
        let _ = writeln!(text, "\n{tag}:{}{}", if part.starts_with('\n') { "" } else { " " }, part.trim_end());
    }
}

/// Removes the marks of links from documentation.
fn plain(text: &str) -> String {
    text.replace("[`", "`").replace("`]", "`").replace("`mod@", "`")
}

fn parameters(fields: &[Field]) -> String {
    if fields.is_empty() {
        return "\nNo parameters.\n".to_owned();
    }
    let mut text = String::new();
    let head = ["parameter", "default", "allowed", "default from"].map(str::to_owned).to_vec();
    let mut rows = vec![head];
    for field in fields {
        let default = if field.default.is_empty() { "(must be given)" } else { field.default };
        let allowed =
            field.range().map_or_else(field.expects, |(low, high)| format!("{}; from {low} to {high}", (field.expects)()));
        rows.push(vec![field.name.to_owned(), default.to_owned(), allowed, field.source.to_owned()]);
    }
    let aligned = columns("  ", &rows);
    let mut lines = aligned.lines();
    let _ = writeln!(text, "\n{}", lines.next().unwrap_or_default());
    for (line, field) in lines.zip(fields) {
        let _ = writeln!(text, "{line}\n      {}", field.about.trim());
    }
    text
}

fn needs(needs: &Needs) -> String {
    let one_of = |slot: &Slot| {
        let wanted = slot.wanted(needs);
        (!wanted.is_empty()).then(|| format!("{} {}", slot.name, wanted.join(" or ")))
    };
    let alike = |(part, key): &(&str, &str)| format!("the same `{key}` as the {part}");
    let reverse = needs.reverse_path.then(|| "both directions of a flow on the same cables".to_owned());
    let marks = needs.marks.then(|| "ports that mark".to_owned());
    let share = |need: f64, what: &str| (need > 0.0).then(|| format!("{what} of at least {need:.2} bandwidth-delay products"));
    let queues = share(needs.least_limit, "queue limits").into_iter().chain(share(needs.least_mark, "marking thresholds"));
    let deadlines = needs.deadlines.then(|| "flows with deadlines".to_owned());
    let parts = SLOTS
        .iter()
        .filter_map(one_of)
        .chain(needs.alike.iter().map(alike))
        .chain(reverse)
        .chain(marks)
        .chain(queues)
        .chain(deadlines);
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit;

    #[test]
    fn tagged_parts_end_at_an_empty_line_or_the_next_tag() {
        let head = "One sentence.\n\nSource: a paper,\nsection 2.\nModel: nothing left out.\n\nMore: text.\n\nAssumed:\n- one\n  thing\n- two\n";
        let parts = tagged(head);
        let parts: Vec<(&str, &str)> = parts.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(
            parts,
            [("Source", "a paper,\nsection 2."), ("Model", "nothing left out."), ("Assumed", "\n- one\n  thing\n- two")]
        );
    }

    #[test]
    fn the_body_of_a_header_is_shown_without_fences() {
        let head = "One\nsentence.\n\n```text\na 1\n\nb 2\n```\nMore, and\n\nmore.\n\nSource: a paper.\n\nLast.\n";
        assert_eq!(body(head), "  a 1\n  \n  b 2\nMore, and\n\nmore.");
        assert_eq!(body("One sentence.\n\nSource: a paper."), "");
        let hpcc = text("hpcc").unwrap();
        assert!(hpcc.contains("\n  6 2 5 ") && hpcc.contains("\n  0 5 3 100 1500000 2.000010 "), "{hpcc}");
    }

    #[test]
    fn every_entry_is_explained_with_all_its_parameters() {
        for room in ROOMS {
            for entry in room.entries {
                let text = text(entry.name).unwrap();
                assert!(text.contains(&format!("{} {}: ", room.name, entry.name)));
                assert!(text.contains("Source: "), "{}", entry.name);
                for field in entry.fields {
                    let row = |line: &str| line.split_whitespace().next() == Some(field.name);
                    assert!(text.lines().any(row), "{} {}", entry.name, field.name);
                    assert!(text.contains(field.about.trim()) && text.contains(field.source));
                }
                for (tag, _) in tagged(&entry.head()) {
                    assert!(text.contains(&format!("{tag}:")), "{} {tag}", entry.name);
                }
            }
        }
    }

    #[test]
    fn a_name_in_several_rooms_is_explained_in_all() {
        let text = text("merp").unwrap();
        assert!(text.contains("transport merp: ") && text.contains("agent merp: "));
    }

    #[test]
    fn tables_are_explained() {
        let event = text("event").unwrap();
        assert!(event.contains("table event: ") && event.contains("table event.random: ") && event.contains("probability"));
        assert!(text("failure").unwrap().contains("converge") && text("nic").unwrap().contains("low_water"));
        assert!(text("failur").unwrap_err().text.contains("did you mean `failure`?"));
    }

    #[test]
    fn metrics_are_explained_and_wrong_names_corrected() {
        let metric = text("mean_fct_s").unwrap();
        assert!(metric.starts_with("metric mean_fct_s: ") && metric.contains("[s]"), "{metric}");
        let sizes = text("websearch").unwrap();
        assert!(
            sizes.starts_with("distribution websearch: ") && sizes.contains("standard deviation") && sizes.contains("####"),
            "{sizes}"
        );
        assert!(
            text("srpt").unwrap().contains("ideal srpt: Every link serves")
                && text("heatmap").unwrap().starts_with("figure heatmap: ")
        );
        assert!(text("websearhc").unwrap_err().text.contains("did you mean `websearch`?"));
        let failure = text("newrenoo").unwrap_err();
        assert_eq!(failure.exit, exit::INPUT);
        assert!(failure.text.contains("did you mean `newreno`?") && failure.text.lines().last().unwrap().starts_with("hint: "));
        assert!(!text("qqqqqqqqqq").unwrap_err().text.contains("did you mean"));
    }
    #[test]
    fn names_that_users_know_lead_to_the_nearest_transport() {
        for name in ["tcp", "TCP", "reno"] {
            let message = text(name).unwrap_err().text;
            let (first, hint) = message.split_once('\n').unwrap();
            assert!(
                first.contains("the variants of TCP are `newreno`, `tcp_ecn`, `dctcp`") && first.contains("`mptcp`"),
                "{message}"
            );
            assert!(!first.contains("pfabric") && hint == "hint: `flowloom explain newreno`", "{message}");
        }
        let failure = text("roce").unwrap_err();
        assert_eq!(failure.exit, exit::INPUT);
        assert!(failure.text.contains("flowloom has no `roce`; the nearest transport is `dcqcn`: "), "{}", failure.text);
        for (names, near, _) in ABSENT {
            assert!(text(near).unwrap().contains(&format!("transport {near}: ")), "{names:?}");
        }
    }
}
