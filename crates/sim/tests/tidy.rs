//! Reads the source tree and checks it against the rules of docs/architecture.md.

#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/plain.rs"]
mod plain;
#[path = "tidy/words.rs"]
mod words;

use scenario::ROOMS;
use std::collections::{BTreeMap, BTreeSet};
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

#[test]
fn every_entry_says_where_it_comes_from_and_is_tested() {
    for (room, entries) in ROOMS.iter().map(|room| (room.folder(), room.entries)) {
        for entry in entries {
            let place = format!("{room}/{}.rs", entry.name);
            assert!(entry.head().contains("Source:"), "{place} has no `Source:` in its header");
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

/// A file of a room is dead if no line of the room's `mod.rs` names it.
#[test]
fn no_room_has_a_dead_file() {
    for (room, entries) in ROOMS.iter().map(|room| (room.folder(), room.entries)) {
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

/// Entries that fill a slot of a system are run by the tests that walk the registry.
#[test]
fn every_entry_is_used_by_a_scenario_or_a_test() {
    let mut text = String::new();
    for folder in ["papers", "examples", "crates/sim/tests", "crates/scenario"] {
        for path in files(&root().join(folder), &[".toml", ".rs", ".py"]) {
            text += &read(&path);
        }
    }
    let walked = |room: &&base::registry::Room| scenario::SLOTS.iter().any(|slot| slot.room.name == room.name);
    for (room, entries) in ROOMS.iter().filter(|room| !walked(room)).map(|room| (room.folder(), room.entries)) {
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

/// The crates, and the crates of this workspace that each may use: arrows lead down only.
const CRATES: [(&str, &[&str]); 11] = [
    ("plugin", &[]),
    ("wasm", &["plugin"]),
    ("base", &["plugin"]),
    ("engine", &["base"]),
    ("proto", &["base", "plugin"]),
    ("fabric", &["base", "plugin", "proto"]),
    ("scenario", &["base", "plugin", "wasm", "proto", "fabric"]),
    ("sim", &["base", "plugin", "engine", "proto", "fabric", "scenario"]),
    ("tables", &["base", "proto", "fabric", "scenario", "sim"]),
    ("cli", &["base", "proto", "fabric", "scenario", "sim", "tables"]),
    ("py", &["base", "plugin", "proto", "fabric", "scenario", "sim", "tables", "cli"]),
];

/// The files of a crate as (path below `src`, text), tests left out.
fn sources(name: &str) -> Vec<(String, String)> {
    let src = root().join("crates").join(name).join("src");
    let is_test = |path: &Path| {
        path.file_name().is_some_and(|name| ["tests.rs", "testing.rs"].iter().any(|end| name.to_string_lossy().ends_with(end)))
    };
    let all = files(&src, &[".rs"]).into_iter().filter(|path| !is_test(path));
    all.map(|path| (path.strip_prefix(&src).unwrap().display().to_string(), read(&path))).collect()
}

#[test]
fn no_crate_arrow_leads_up() {
    let folders = fs::read_dir(root().join("crates")).unwrap();
    assert_eq!(folders.count(), CRATES.len(), "a crate is missing in the list");
    for (name, may_use) in CRATES {
        let manifest = read(&root().join("crates").join(name).join("Cargo.toml"));
        let own = manifest.split("\n[").find(|section| section.starts_with("dependencies]")).unwrap_or_default();
        for (other, _) in CRATES {
            let uses = own.lines().any(|line| line.starts_with(&format!("{other} ")) || line.starts_with(&format!("{other}.")));
            assert!(!uses || may_use.contains(&other), "crates/{name} uses crates/{other}, which is above it");
        }
    }
}

/// Returns how many folders the files that a text includes lie above its own folder, at most.
fn highest_include(text: &str) -> usize {
    let includes = ["include_str!(", "include_bytes!("].into_iter().flat_map(|word| text.split(word).skip(1));
    includes
        .map(|rest| {
            rest.trim_start_matches("concat!(").trim_start_matches('"').split("../").take_while(|part| part.is_empty()).count()
        })
        .max()
        .unwrap_or(0)
}

/// `make crates` compiles the packages. This test finds what would break them: a crate that is not published, a page of the
/// registry without a text, a file outside the package.
#[test]
fn crates_that_are_published_need_only_each_other_and_their_own_files() {
    assert_eq!(
        ["include_str!(\"../../a\")", "include_str!(concat!(\"../\", \"a\"))", "include_bytes!(\"a\")", ""].map(highest_include),
        [2, 1, 0, 0]
    );
    let manifest = |name: &str| read(&root().join("crates").join(name).join("Cargo.toml"));
    let published: Vec<&str> =
        CRATES.into_iter().map(|(name, _)| name).filter(|name| !manifest(name).contains("\npublish = false\n")).collect();
    assert_eq!(published, ["plugin", "wasm", "base", "engine", "proto", "fabric", "scenario", "sim"]);
    for &name in &published {
        let manifest = manifest(name);
        for key in ["description", "license", "readme", "keywords", "categories", "rust-version"] {
            assert!(manifest.contains(&format!("\n{key}")), "crates/{name} has no `{key}`");
        }
        let (_, may_use) = CRATES.into_iter().find(|(known, _)| *known == name).unwrap();
        assert!(may_use.iter().all(|other| published.contains(other)), "crates/{name} needs a crate that is not published");
        for (path, text) in sources(name) {
            let folders = path.matches(['/', '\\']).count();
            assert!(highest_include(&text) <= folders + 1, "crates/{name}/src/{path} includes a file outside the crate");
        }
    }
}

#[test]
fn no_file_or_folder_needs_one_that_needs_it() {
    let mut found = Vec::new();
    for (name, _) in CRATES {
        let src = format!("crates/{name}/src/");
        let rooms: Vec<&str> = ROOMS.iter().filter_map(|room| room.folder().strip_prefix(&src)).collect();
        let files = sources(name);
        let mut folders: Vec<&str> = files.iter().filter_map(|(path, _)| Some(path.split_once('/')?.0)).collect();
        folders.dedup();
        for units in [rooms, folders] {
            let circles = circles::circles(&circles::of_crate(&files, &units));
            found.extend(circles.into_iter().map(|circle| format!("crates/{name}: {}", circle.join(", "))));
        }
    }
    assert!(found.is_empty(), "files that need each other:\n{}", found.join("\n"));
}

/// A longer file should be split.
#[test]
fn files_are_of_a_size_to_be_read() {
    let mut long = Vec::new();
    let rust =
        CRATES.iter().flat_map(|(name, _)| sources(name).into_iter().map(move |(path, text)| (format!("{name}/src/{path}"), text)));
    let python = files(&root().join("python/flowloom"), &[".py"]).into_iter().map(|path| (path.display().to_string(), read(&path)));
    for (path, text) in rust.chain(python) {
        let lines = text.split("\n#[cfg(test)]").next().unwrap_or_default().lines().count();
        if lines > 500 {
            long.push(format!("{path} has {lines} lines above its tests"));
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

/// A room's `mod.rs` lists its entries and names none of them outside the list.
#[test]
fn no_room_knows_its_entries() {
    for room in ROOMS {
        let code = circles::code(&read(&root().join(room.file)));
        for entry in ROOMS.iter().flat_map(|room| room.entries) {
            let path = format!("{}::", entry.name);
            let named = code.match_indices(&path).any(|(at, _)| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'));
            assert!(!named, "{} names `{}`", room.file, entry.name);
        }
    }
}

/// Entries whose names are ordinary words or terms of the field, which generic code needs for other things.
const ORDINARY: [&str; 18] = [
    "chain",
    "collective",
    "complete",
    "credit",
    "exponential",
    "file",
    "fixed",
    "incast",
    "long",
    "plugin",
    "ps",
    "rail",
    "requests",
    "slack",
    "strict",
    "table",
    "trim",
    "uniform",
];

/// Where generic code may name entries: (file, entries, why).
const MAY_NAME: [(&str, &[&str], &str); 14] = [
    ("cli/src/args.rs", &["hpcc", "htsim", "merp", "newreno", "srpt", "ssp"], "examples in help texts"),
    ("cli/src/args/copied.rs", &["goal"], "examples in help texts"),
    ("cli/src/args/replay.rs", &["dctcp", "merp"], "examples in help texts"),
    (
        "cli/src/explain.rs",
        &["cubic", "dcqcn", "hpcc", "newreno", "powertcp", "timely", "uet"],
        "what is nearest to protocols that flowloom lacks",
    ),
    ("fabric/src/controller/mod.rs", &["ecmp"], "a hint that names the default router"),
    ("scenario/src/checks/check.rs", &["ecmp"], "hints that name the default router"),
    ("scenario/src/load.rs", &["poisson"], "a hint that names a workload that steers its load"),
    ("scenario/src/read/head.rs", &["srpt"], "an example in a message"),
    ("scenario/src/read/system.rs", &["newreno"], "an example in a message"),
    ("scenario/src/read/topology.rs", &["single_tree"], "an example in a message"),
    ("scenario/src/read/workload.rs", &["poisson"], "an example in a message"),
    ("scenario/src/system/slots.rs", &["droptail", "ecmp"], "what fills a slot that a scenario leaves out"),
    ("scenario/src/workload/cdf.rs", &["homa", "hpcc", "karuna"], "distributions have the names of their papers"),
    ("tables/src/dictionary.rs", &["homa"], "an example of a counter"),
];

/// Whether a file, from the folder of the crates, belongs to an entry of a room.
fn is_of_entry(path: &str) -> bool {
    let stems = |room: &base::registry::Room| {
        let folder = room.folder().trim_start_matches("crates/");
        room.names().map(|name| format!("{folder}/{name}")).collect::<Vec<_>>()
    };
    let mut stems = ROOMS.iter().flat_map(stems);
    stems.any(|stem| path == format!("{stem}.rs") || path.starts_with(&format!("{stem}/")))
}

/// Code outside the files of entries names no entry, neither in an identifier nor in a string: an entry's special cases are
/// in its file. Sources of defaults cite papers, which are written in capitals.
#[test]
fn generic_code_names_no_entry() {
    let plain = |word: &str| word.to_lowercase().replace('_', "");
    let entries = ROOMS.iter().flat_map(|room| room.entries);
    let names: BTreeMap<String, &str> = entries.map(|entry| (plain(entry.name), entry.name)).collect();
    let (mut wrong, mut used) = (Vec::new(), BTreeSet::new());
    for (name, _) in CRATES {
        for (path, mut text) in sources(name) {
            let path = format!("{name}/src/{}", path.replace('\\', "/"));
            if is_of_entry(&path) {
                continue;
            }
            if ROOMS.iter().any(|room| room.file == format!("crates/{path}")) {
                let (above, registry) = text.split_once("base::registry! {").expect("the list of a room");
                let lines = above.lines().filter(|line| !line.starts_with("pub mod "));
                text = format!(
                    "{}{}",
                    lines.collect::<Vec<_>>().join("\n"),
                    registry.split_once("\n}").map_or("", |(_, below)| below)
                );
            }
            for (word, quoted) in words::words(&text) {
                let entry = names.get(&plain(&word)).filter(|entry| !quoted || **entry == word);
                let Some(entry) = entry.filter(|entry| !ORDINARY.contains(entry)) else { continue };
                if MAY_NAME.iter().any(|(file, may, _)| *file == path && may.contains(entry)) {
                    used.insert((path.clone(), *entry));
                } else {
                    wrong.push(format!("crates/{path} names `{entry}`"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (file, may, why) in MAY_NAME {
        let unused = may.iter().find(|entry| !used.contains(&(file.to_owned(), **entry)));
        assert!(
            unused.is_none() && !why.is_empty(),
            "crates/{file} does not name `{}`: delete the exception",
            unused.unwrap_or(&"")
        );
    }
}

/// Names that several types may have: code writes them with their modules.
const CONVENTIONAL: [&str; 6] = ["Cx", "Env", "Error", "Options", "Params", "State"];

/// Other names that two types or more have, and why.
const SHARED: [(&str, &str); 15] = [
    ("Engine", "the engine of packets, the engine that a scenario asks for, and the one that an outcome is from"),
    ("Fifo", "a queue that the engine serves, as the engine and as a discipline describe it"),
    ("Format", "formats of files: of distributions, of flows, of exports"),
    ("Outcome", "what a run and what a command has come to"),
    ("Path", "a path that a host asks for, and a path through the network"),
    ("Pause", "an order to pause, and what the engine does for it"),
    ("Point", "a point of a plan, and of results"),
    ("Reader", "what reads parameters, and what reads tables"),
    ("Results", "results, and their class in Python"),
    ("Sample", "what a sender shows of a flow, and the table `[sample]` that asks for it"),
    ("Scenario", "a scenario built in Rust, and the class of scenarios in Python"),
    ("Sent", "what has become of a packet at a port, and what a sender keeps of one"),
    ("Size", "the size of a network, and of a flow"),
    ("Timers", "timers, and the timeouts that a transport declares"),
    ("World", "the contract of the engine, and what fulfils it"),
];

/// A public type of generic code has a unique name. Types in the files of entries are private to the entries.
#[test]
fn no_two_types_have_one_name() {
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    // The types of the crate for authors of plug-ins are those of the contract, without the workspace.
    for (name, _) in CRATES.into_iter().filter(|(name, _)| *name != "plugin") {
        for (path, text) in sources(name) {
            let path = format!("{name}/src/{}", path.replace('\\', "/"));
            if is_of_entry(&path) {
                continue;
            }
            let words: Vec<String> = words::words(&text).into_iter().filter(|word| !word.1).map(|word| word.0).collect();
            for three in words.windows(3).filter(|three| three[0] == "pub") {
                // What macros write has names in lower case.
                let is_type = three[2].starts_with(char::is_uppercase);
                if is_type && ["struct", "enum", "trait", "type", "union"].contains(&three[1].as_str()) {
                    files.entry(three[2].clone()).or_default().push(path.clone());
                }
            }
        }
    }
    files.retain(|name, files| files.len() > 1 && !CONVENTIONAL.contains(&name.as_str()));
    let may = |name: &str| SHARED.iter().any(|(shared, why)| *shared == name && !why.is_empty());
    let wrong: Vec<String> =
        files.iter().filter(|(name, _)| !may(name)).map(|(name, files)| format!("{name}: {files:?}")).collect();
    assert!(wrong.is_empty(), "types of one name:\n{}", wrong.join("\n"));
    let unused = SHARED.iter().find(|(shared, _)| !files.contains_key(*shared));
    assert!(unused.is_none(), "no two types are called `{}`: delete the exception", unused.map_or("", |unused| unused.0));
}

/// No trait object per packet or per event: the crates that handle packets and events have none.
#[test]
fn the_core_has_no_boxed_trait_objects() {
    for name in ["engine", "proto", "fabric", "sim"] {
        for (path, text) in sources(name) {
            assert!(!circles::code(&text).contains("Box<dyn"), "crates/{name}/src/{path} boxes a trait object");
        }
    }
}

/// The tree on the page has every room, and calls no other folder a room.
#[test]
fn the_page_on_architecture_has_all_rooms() {
    let page = read(&root().join("docs/architecture.md"));
    let is_room = |line: &&str| line.split_whitespace().nth(1) == Some("ROOM");
    let listed: Vec<&str> = page.lines().filter(is_room).filter_map(|line| line.trim_start().split('/').next()).collect();
    for room in ROOMS {
        let folder = room.folder().rsplit('/').next().unwrap();
        assert!(listed.contains(&folder), "docs/architecture.md leaves out the room {folder}");
    }
    assert_eq!(listed.len(), ROOMS.len(), "{listed:?}");
}
