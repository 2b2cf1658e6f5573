//! Every parameter of every entry at the ends of its range and of its type: the check refuses the value, or a run with it
//! ends without a panic and does not stay at time zero.

use crate::common::{kinds, sized, system_of, table};
use base::params::{Field, Shape};
use scenario::{Memory, Options, Outline, ROOMS, SLOTS, TABLES};
use sim::Continue;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Events after which a run is stopped.
const EVENTS: u64 = 400_000;

/// The values to try: the ends of the declared range, and of every type with the same form.
fn values(field: &Field) -> Vec<String> {
    let (low, high) = field.range().unzip();
    let mut values: Vec<String> = low.into_iter().chain(high).collect();
    values.extend(of_shape(&(field.shape)()).into_iter().map(str::to_owned));
    values
}

fn of_shape(shape: &Shape) -> Vec<&'static str> {
    match shape {
        Shape::Integer => vec!["0", "1", "255", "65535", "4294967295", "9223372036854775807", "18446744073709551615"],
        Shape::Number => vec!["0", "-1e300", "1e-300", "1", "1e300"],
        Shape::Bool => vec!["false", "true"],
        Shape::Text | Shape::Texts => vec!["", "x", "0B", "1B,2B", "18446744073709551615B", "1ps", "18446744073709551615ps"],
        Shape::OneOf(words) => words.clone(),
        Shape::Or(word, other) => std::iter::once(*word).chain(of_shape(other)).collect(),
        Shape::Literal => vec![
            "0s",
            "1ps",
            "50ms",
            "1000s",
            "1000000s",
            "18446744073709551615ps",
            "0B",
            "1B",
            "1MB",
            "1000000GB",
            "18446744073709551615B",
            "0pkt",
            "1pkt",
            "4294967295pkt",
            "unlimited",
            "1bps",
            "1Gbps",
            "1000000Gbps",
            "18446744073709551615bps",
            "0",
            "0.000000001",
            "1",
            "1000000000",
            "9223372036",
        ],
    }
}

fn folder() -> &'static std::path::Path {
    std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// Options with a limit of memory, so that values which need more are refused before they take minutes.
fn options() -> Options {
    Options { memory: Memory { bytes: 1_000_000_000, source: scenario::memory::Source::Given }, ..Options::default() }
}

/// Loads and runs a scenario. Returns why it is wrong; `None` if it is refused or runs.
fn wrong(text: &str) -> Option<String> {
    let tried = catch_unwind(AssertUnwindSafe(|| {
        let plan = scenario::load(text, "test.toml", folder(), &options()).ok()?;
        for point in &plan.points {
            let mut stopped = None;
            let outcome = sim::run(&point.run, &mut |progress| {
                stopped = Some(progress.now);
                if progress.events > EVENTS { Continue::No } else { Continue::Yes }
            });
            if let Ok(outcome) = outcome
                && !outcome.complete
                && outcome.counters.end_ps == 0
            {
                return Some("the run stays at time zero".to_owned());
            }
        }
        None
    }));
    match tried {
        Ok(found) => found,
        Err(panic) => {
            let message = panic.downcast_ref::<String>().cloned();
            Some(message.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default())
        }
    }
}

/// Flows of one packet and of many to one host, and back.
fn flows() -> String {
    table("ends", &[(1, 0, 100_000, 0), (2, 0, 100_000, 0), (3, 0, 1, 1_000_000), (0, 1, 50_000, 2_000_000), (2, 3, 3_000_000, 0)])
}

/// The parameters that an entry or a table needs.
fn given(kind: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let all: &[(&str, &str)] = match kind {
        "training" => &[("layers", "2"), ("activation", "'1KB'"), ("gradient", "'1KB'"), ("forward", "'1us'"), ("data", "2")],
        "fixed" => &[("after", "'1ms'")],
        "collective" => &[("bytes", "'64KB'")],
        "event" => &[("link", "['h0', 'tor0']"), ("until", "'5us'")],
        "incast" => &[("senders", "3"), ("size", "'40KB'")],
        "poisson" => &[("flows", "20")],
        "requests" => &[("workers", "3")],
        "shuffle" => &[("size", "'40KB'")],
        _ => &[],
    };
    all.iter().copied()
}

fn assert_none(wrong: Vec<String>) {
    assert!(wrong.is_empty(), "{} values are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_parameter_of_a_system_runs_at_both_ends() {
    let mut found = Vec::new();
    let base = format!("end = '20ms'\n[topology]\nkind = 'single_tree'\n{}", flows());
    let mut tried = 0;
    let mut one = |place: &str, name: &str, system: &Outline, field: &Field| {
        for value in values(field) {
            tried += 1;
            let system = system.clone().set(&format!("{place}.{}", field.name), &value);
            if let Some(why) = wrong(&format!("{base}{}", system.toml())) {
                found.push(format!("{place}.{} = {value} of {name}: {why}", field.name));
            }
        }
    };
    for slot in SLOTS {
        let room = ROOMS.iter().find(|room| room.name == slot.name).expect("a room of each slot");
        for kind in kinds(slot.name) {
            let system = system_of(slot.name, kind, "20pkt");
            let fields = room.entry(kind).expect("its own entry").fields;
            fields.iter().for_each(|field| one(slot.name, kind, &system, field));
        }
    }
    let nic = TABLES.iter().find(|table| table.name == "system.nic").expect("the table of NICs");
    let system = system_of("transport", "dctcp", "20pkt");
    nic.fields.iter().for_each(|field| one("nic", "dctcp", &system, field));
    assert!(tried > 10_000, "only {tried} values are tried");
    assert_none(found);
}

/// The line of a scenario that sets a parameter.
fn line(field: &Field, value: &str) -> String {
    match (field.shape)() {
        Shape::Integer | Shape::Number | Shape::Bool => format!("{} = {value}\n", field.name),
        _ => format!("{} = '{value}'\n", field.name),
    }
}

/// A scenario around the parameters of an entry of a room, or of a table without a kind; `None` for rooms of systems.
fn around(place: &str, set: &str) -> Option<String> {
    let net = "[topology]\nkind = 'single_tree'\n";
    let incast = "[workload.w]\nkind = 'incast'\nsenders = 3\nsize = '40KB'\n";
    let system = system_of("transport", "dctcp", "20pkt").toml();
    let head = "end = '1ms'\n";
    Some(match place {
        "" => format!("{set}{net}{}{system}", flows()),
        "topology" => format!("{head}[topology]\n{set}{}{system}", flows()),
        "workload" => format!("{head}{net}[workload.w]\n{set}{system}"),
        "deadline" => format!("{head}{net}{incast}[workload.w.deadline]\n{set}{system}"),
        "event" => format!("{head}{net}{incast}[[event]]\n{set}{system}"),
        "failure" => {
            let event = "[[event]]\nlink = ['h0', 'tor0']\nuntil = '5us'\n";
            format!("{head}{net}{incast}{event}[failure]\n{set}{system}")
        }
        "engine" | "measure" | "sample" => format!("{head}{net}{incast}[{place}]\n{set}{system}"),
        _ => return None,
    })
}

#[test]
fn every_parameter_of_a_scenario_runs_at_both_ends() {
    // Large networks and long jobs take minutes.
    let is_tried = |place: &str, value: &str| match value.parse::<u64>() {
        Ok(number) if place == "topology" => number < 255 || sized(false, true),
        Ok(number) if place == "workload" => number != 65_535 || sized(false, true),
        _ => true,
    };
    let entries = ROOMS.iter().flat_map(|room| room.entries.iter().map(move |entry| (room.name, Some(entry.name), entry.fields)));
    let tables = TABLES.iter().map(|table| (table.name, None, table.fields));
    let mut found = Vec::new();
    for (place, kind, fields) in entries.chain(tables) {
        // Entries that read a file have few other parameters.
        if around(place, "").is_none() || fields.iter().any(|field| field.name == "path") {
            continue;
        }
        let kind_line = kind.map_or(String::new(), |kind| format!("kind = '{kind}'\n"));
        let with = |own: Option<(&Field, &str)>| {
            let others = given(kind.unwrap_or(place)).filter(|(key, _)| own.is_none_or(|(field, _)| field.name != *key));
            let others: String = others.map(|(key, value)| format!("{key} = {value}\n")).collect();
            let own = own.map_or(String::new(), |(field, value)| line(field, value));
            around(place, &format!("{kind_line}{others}{own}")).unwrap_or_default()
        };
        let plain = scenario::load(&with(None), "test.toml", folder(), &Options::default());
        assert!(plain.is_ok(), "{place} {kind:?} is refused as it is: {}", plain.err().unwrap());
        for field in fields {
            for value in values(field).iter().filter(|value| is_tried(place, value)) {
                if let Some(why) = wrong(&with(Some((field, value)))) {
                    found.push(format!("{place} {kind:?}: {} = {value}: {why}", field.name));
                }
            }
        }
    }
    assert_none(found);
}
