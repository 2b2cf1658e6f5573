//! Reads the source tree and holds it to the house rules of docs/architecture.md.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files below `dir` that end in one of `endings`, sorted.
fn files(dir: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name.starts_with('.') || ["target", "results", "__pycache__", "node_modules"].contains(&name.as_str()) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The rooms, and where their entries' files are.
fn rooms() -> Vec<(&'static str, Vec<&'static base::registry::Entry>)> {
    vec![
        ("crates/proto/src/transport", proto::transport::ENTRIES.iter().collect()),
        ("crates/fabric/src/qdisc", fabric::qdisc::ENTRIES.iter().collect()),
        ("crates/fabric/src/router", fabric::router::ENTRIES.iter().collect()),
        ("crates/fabric/src/agent", fabric::agent::ENTRIES.iter().collect()),
        ("crates/scenario/src/topology", scenario::topology::ENTRIES.iter().collect()),
        ("crates/scenario/src/workload", scenario::workload::ENTRIES.iter().collect()),
        ("crates/scenario/src/deadline", scenario::deadline::ENTRIES.iter().collect()),
    ]
}

#[test]
fn every_entry_says_where_it_comes_from_and_is_tested() {
    for (room, entries) in rooms() {
        for entry in entries {
            let place = format!("{room}/{}.rs", entry.name);
            assert!(entry.head().contains("Source:"), "{place} has no `Source:` in its head");
            assert!(
                entry.text.contains("#[cfg(test)]") || root().join(room).join(entry.name).join("tests.rs").exists(),
                "{place} has no tests"
            );
            assert!(!entry.meta.summary.is_empty() && !entry.meta.source.is_empty(), "{place}: empty META");
            for field in entry.fields {
                assert!(!field.about.trim().is_empty(), "{place}: `{}` is not explained", field.name);
                assert!(
                    field.default.is_empty() || !field.source.is_empty(),
                    "{place}: the default of `{}` has no source",
                    field.name
                );
            }
        }
    }
}

/// A file in a room that no line of its `mod.rs` names is dead.
#[test]
fn no_room_has_a_dead_file() {
    for (room, entries) in rooms() {
        let list = read(&root().join(room).join("mod.rs"));
        for path in files(&root().join(room), &[".rs"])
            .iter()
            .filter(|p| p.parent().unwrap().ends_with(Path::new(room).file_name().unwrap()))
        {
            let stem = path.file_stem().unwrap().to_string_lossy();
            assert!(stem == "mod" || list.contains(&format!("mod {stem};")), "{} is in no `mod.rs`", path.display());
        }
        assert!(!entries.is_empty(), "{room} is empty");
    }
}

#[test]
fn every_entry_is_used_by_a_scenario_or_a_test() {
    let mut text = String::new();
    for folder in ["papers", "examples", "crates/sim/tests", "crates/scenario"] {
        for path in files(&root().join(folder), &[".toml", ".rs", ".py"]) {
            text += &read(&path);
        }
    }
    for (room, entries) in rooms() {
        for entry in entries {
            let quoted = [format!("'{}'", entry.name), format!("\"{}\"", entry.name)];
            assert!(quoted.iter().any(|q| text.contains(q)), "no scenario uses {room}/{}", entry.name);
        }
    }
}

#[test]
fn no_banned_word_is_in_the_tree() {
    // Split so that this file does not contain them.
    let banned = [
        concat!("todo", "!("),
        concat!("unimple", "mented!("),
        concat!("dbg", "!("),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
        concat!("../", "shared"),
        concat!("/wo", "rk/"),
        concat!("crates", ".io"),
        concat!("pypi", ".org"),
    ];
    for path in files(&root(), &[".rs", ".py", ".toml", ".md", ".yml", "Makefile", ".pyi"]) {
        let text = read(&path);
        for word in banned {
            assert!(!text.contains(word), "{} contains `{word}`", path.display());
        }
    }
}

/// The core depends on nothing that could make two runs differ, and a file that no longer fits a screenful of screens wants splitting.
#[test]
fn core_files_are_of_a_size_to_be_read() {
    for crate_name in ["base", "engine", "proto", "fabric", "scenario", "sim"] {
        for path in files(&root().join("crates").join(crate_name).join("src"), &[".rs"]) {
            let lines = read(&path).lines().count();
            assert!(lines <= 900, "{} has {lines} lines", path.display());
        }
    }
}
