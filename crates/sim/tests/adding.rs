//! The examples of docs/adding.md, one per room: each is added to a copy of the source tree by its file and its lines in the room's
//! `mod.rs`, and nothing else. The copy passes the compiler's checks. In `make slow` the tests of the examples pass too, and the
//! page's scenario runs with all of them.

use scenario::ROOMS;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PAGE: &str = "docs/adding.md";
/// The crates in which rooms are, and those that they need or that run them.
const CRATES: [&str; 8] = ["plugin", "wasm", "base", "engine", "proto", "fabric", "scenario", "sim"];

/// An example of the page.
#[derive(Debug, PartialEq, Eq)]
struct Example {
    /// The folder of its room: `crates/fabric/src/qdisc`.
    folder: String,
    /// Its name: `lifo`.
    name: String,
    /// Its line among the entries: `lifo: Lifo`.
    entry: String,
    /// Its file.
    code: String,
}

/// The files of a source tree by path.
type Tree = BTreeMap<String, String>;

/// The examples of a page: a line ``File `path`; in `mod.rs` `pub mod name;` and `name: Type`.``, then a block of Rust.
fn examples(page: &str) -> Result<Vec<Example>, String> {
    let mut found = Vec::new();
    for part in page.split("\nFile `").skip(1) {
        let (line, rest) = part.split_once('\n').ok_or("a line ends the page")?;
        let (path, lists) = line.split_once('`').ok_or("a path has no end")?;
        let wrong = |why: &str| Err(format!("{path}: {why}"));
        let words: Vec<&str> = lists.split('`').skip(1).step_by(2).collect();
        let [list, line, entry] = words[..] else { return wrong("its lines are not one `mod` line and one entry of `mod.rs`") };
        let Some((folder, name)) = path.rsplit_once('/').and_then(|(f, n)| Some((f, n.strip_suffix(".rs")?))) else {
            return wrong("is no file of Rust");
        };
        if !ROOMS.iter().any(|room| room.folder() == folder) {
            return wrong("does not lie in the folder of a room");
        }
        if list != "mod.rs" {
            return wrong(&format!("changes `{list}`: an example changes its room's `mod.rs` and nothing else"));
        }
        if line != format!("pub mod {name};") || !entry.starts_with(&format!("{name}: ")) {
            return wrong(&format!("`{line}` and `{entry}` are not its lines"));
        }
        let code = rest
            .trim_start()
            .strip_prefix("```rust\n")
            .and_then(|rest| rest.split_inclusive("\n```\n").next()?.strip_suffix("```\n"));
        let Some(code) = code else { return wrong("no block of Rust follows") };
        found.push(Example { folder: folder.into(), name: name.into(), entry: entry.into(), code: code.into() });
    }
    Ok(found)
}

/// Adds an example to a tree: a new file, a `mod` line, an entry.
fn add(example: &Example, tree: &mut Tree) -> Result<(), String> {
    let Example { folder, name, entry, code } = example;
    let file = format!("{folder}/{name}.rs");
    if tree.insert(file.clone(), code.clone()).is_some() {
        return Err(format!("{file} is already there"));
    }
    let place = format!("{folder}/mod.rs");
    let list = tree.get_mut(&place).ok_or(format!("{place} is not there"))?;
    let (modules, registry) = list.split_once("base::registry! {").ok_or(format!("{place} has no registry"))?;
    let (words, rest) = registry.split_once("entries {").ok_or(format!("{place} lists no entries"))?;
    let (others, methods) = rest.split_once('}').ok_or(format!("{place} does not end its entries"))?;
    let others = others.trim_end().trim_end_matches(',');
    *list = format!("{modules}pub mod {name};\n\nbase::registry! {{{words}entries {{{others}, {entry} }}{methods}");
    Ok(())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Puts all files below `dir` into the tree.
fn collect(dir: &str, tree: &mut Tree) {
    for entry in fs::read_dir(root().join(dir)).unwrap_or_else(|e| panic!("{dir}: {e}")) {
        let entry = entry.expect("a readable folder");
        let path = format!("{dir}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            collect(&path, tree);
        } else if let Ok(text) = fs::read_to_string(entry.path()) {
            tree.insert(path, text);
        }
    }
}

/// Makes the folder hold exactly these files. Files that do not change are not written, so that they are not compiled
/// again.
fn write(tree: &Tree, folder: &Path) {
    let mut folders = vec![folder.to_owned()];
    while let Some(dir) = folders.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten() {
            let path = entry.expect("a readable folder").path();
            let name = path.strip_prefix(folder).expect("below it").to_string_lossy().replace('\\', "/");
            if path.is_dir() {
                folders.push(path);
            } else if !tree.contains_key(&name) {
                fs::remove_file(&path).expect("the copy may be changed");
            }
        }
    }
    for (name, text) in tree {
        let path = folder.join(name);
        if fs::read_to_string(&path).ok().as_ref() != Some(text) {
            fs::create_dir_all(path.parent().expect("below the folder")).expect("the copy may be changed");
            fs::write(&path, text).expect("the copy may be changed");
        }
    }
}

/// The tree with all examples, and the test that runs the page's scenario.
fn tree_with(examples: &[Example], scenario: &str) -> Tree {
    let mut tree = Tree::new();
    for name in CRATES {
        collect(&format!("crates/{name}"), &mut tree);
    }
    for name in ["Cargo.toml", "Cargo.lock", "clippy.toml", "rustfmt.toml"] {
        tree.insert(name.to_owned(), read(&root().join(name)));
    }
    for example in examples {
        add(example, &mut tree).unwrap_or_else(|why| panic!("{PAGE}: {why}"));
    }
    // With another version than the real packages, the copies get other names in the target folder.
    let manifest = tree.get_mut("Cargo.toml").expect("just read");
    *manifest = manifest.replacen("[workspace.package]\nversion = \"", "[workspace.package]\nversion = \"0.0.0-adding+", 1);
    assert!(manifest.contains("0.0.0-adding"), "Cargo.toml gives the packages a version");
    *manifest = manifest.replace(&format!("version = \"{}\", package", env!("CARGO_PKG_VERSION")), "package");
    let tests = "crates/sim/tests";
    let own = tree.remove(&format!("{tests}/adding/scenario.rs")).expect("it is next to this file");
    tree.retain(|path, _| !path.starts_with(tests));
    tree.insert(format!("{tests}/adding.rs"), own);
    tree.insert(format!("{tests}/adding/scenario.toml"), scenario.to_owned());
    let names: String = examples.iter().map(|e| format!("{} {}\n", e.folder, e.name)).collect();
    tree.insert(format!("{tests}/adding/examples.txt"), names);
    tree
}

#[test]
fn every_example_is_one_file_and_its_lines_in_a_list() {
    let page = read(&root().join(PAGE));
    let examples = examples(&page).unwrap_or_else(|why| panic!("{PAGE}: {why}"));
    let with: BTreeSet<&str> = examples.iter().map(|example| example.folder.as_str()).collect();
    for room in ROOMS {
        assert!(with.contains(room.folder()), "{PAGE} has no example of the room `{}`", room.name);
    }
    let scenario = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("the page has a scenario");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder");
    let copy = target.join("adding");
    write(&tree_with(&examples, scenario), &copy);

    for example in &examples {
        assert!(example.code.contains("#[test]"), "{PAGE}: the example {} has no test of its own", example.name);
    }
    let rooms = ["-p", "flowloom-proto", "-p", "flowloom-fabric", "-p", "flowloom-scenario"];
    let run = ["-p", "flowloom-sim", "--test", "adding"];
    if std::env::var_os("FLOWLOOM_FUZZ").is_none() {
        // As `make test` compiles, so that the libraries are checked already.
        let checked = root().join(".cargo/checked.toml");
        let check = ["check", "--release", "--config", checked.to_str().expect("a path in UTF-8")];
        cargo(&copy, target, &check, &[&rooms[..], &["--tests"]].concat(), &[]);
        cargo(&copy, target, &check, &run, &[]);
        return;
    }
    let libs = [&rooms[..], &["--lib"]].concat();
    // The tests of the examples, and those of their rooms and of systems, which walk the lists.
    let rooms: BTreeSet<String> = ROOMS.iter().map(|room| room.folder().replace("crates/", "").replace("/src/", " ")).collect();
    let rooms: Vec<&str> = rooms.iter().filter_map(|room| room.split_once(' ')).map(|room| room.1).collect();
    let mut filters: Vec<String> = rooms.iter().map(|room| format!("{room}::tests::")).collect();
    filters.push("outline::tests::every_entry".to_owned());
    filters.extend(examples.iter().map(|e| format!("{}::{}::tests::", e.folder.rsplit('/').next().unwrap_or_default(), e.name)));
    filters.extend(["--format", "pretty", "--color", "never"].map(str::to_owned));
    let mut said = cargo(&copy, target, &["test"], &libs, &filters);
    said += &cargo(&copy, target, &["test"], &run, &filters[filters.len() - 4..]);
    for Example { folder, name, .. } in &examples {
        let test = format!("{}::{name}::tests::", folder.rsplit('/').next().unwrap_or_default());
        let passed = said.lines().any(|line| line.contains(&test) && line.ends_with("... ok"));
        assert!(passed, "{PAGE}: no test of the example {name} ran\n{said}");
    }
}

/// Runs a command of cargo in the copy, with arguments for its tests, and returns what it prints.
fn cargo(copy: &Path, target: &Path, command: &[&str], packages: &[&str], filters: &[String]) -> String {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.current_dir(copy).args(command).args(["--offline", "--quiet"]).args(packages);
    if !filters.is_empty() {
        cargo.arg("--").args(filters);
    }
    // The runner of `make test` sets RUSTC_BOOTSTRAP, which would change how build scripts compile.
    cargo.env("CARGO_TARGET_DIR", target).env("CARGO_TERM_COLOR", "never").env_remove("RUSTC_BOOTSTRAP");
    // Compiling is most of the work.
    cargo.envs([("CARGO_PROFILE_DEV_OPT_LEVEL", "0"), ("CARGO_PROFILE_DEV_DEBUG", "0"), ("CARGO_INCREMENTAL", "0")]);
    let done = cargo.output().unwrap_or_else(|e| panic!("cargo: {e}"));
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    let hint = format!("the copy with all examples of {PAGE} is {}", copy.display());
    assert!(done.status.success(), "the examples do not compile, or a test fails; {hint}\n{err}\n{out}");
    assert!(!err.contains("warning:"), "the examples compile with warnings; {hint}\n{err}");
    out.into_owned()
}

/// A page with one example.
fn page(path: &str, rest: &str) -> String {
    format!("# Page\n\nFile `{path}`; in `{rest}`.\n\n```rust\n//! Code.\n```\n")
}

#[test]
fn an_example_that_changes_anything_else_is_refused() {
    let good = page("crates/fabric/src/qdisc/lifo.rs", "mod.rs` `pub mod lifo;` and `lifo: Lifo");
    let all = examples(&good).expect("an example");
    assert_eq!((all.len(), all[0].name.as_str(), all[0].code.as_str()), (1, "lifo", "//! Code.\n"));
    for (path, rest, why) in [
        ("crates/fabric/src/queue.rs", "mod.rs` `pub mod queue;` and `queue: Queue", "the folder of a room"),
        ("crates/fabric/src/qdisc/lifo.toml", "mod.rs` `pub mod lifo;` and `lifo: Lifo", "no file of Rust"),
        ("crates/fabric/src/qdisc/lifo.rs", "lib.rs` `pub mod lifo;` and `lifo: Lifo", "changes `lib.rs`"),
        ("crates/fabric/src/qdisc/lifo.rs", "mod.rs` `pub use lifo::*;` and `lifo: Lifo", "are not its lines"),
        ("crates/fabric/src/qdisc/lifo.rs", "mod.rs` `pub mod lifo;` and `fifo: Lifo", "are not its lines"),
        (
            "crates/fabric/src/qdisc/lifo.rs",
            "mod.rs` `pub mod lifo;`, `lifo: Lifo` and `fn lifo();",
            "are not one `mod` line and one entry",
        ),
    ] {
        let message = examples(&page(path, rest)).expect_err(why);
        assert!(message.contains(why), "{message}");
    }
    let bare = good.replace("```rust\n//! Code.\n```\n", "");
    assert!(examples(&bare).expect_err("no code").contains("no block of Rust"));
}

#[test]
fn an_example_never_takes_the_place_of_a_file() {
    let example =
        &examples(&page("crates/fabric/src/qdisc/lifo.rs", "mod.rs` `pub mod lifo;` and `lifo: Lifo")).expect("an example")[0];
    let list = "pub mod droptail;\n\nbase::registry! {\n    entries { droptail: DropTail }\n}\n";
    let mut tree = Tree::from([("crates/fabric/src/qdisc/mod.rs".to_owned(), list.to_owned())]);
    add(example, &mut tree).expect("there is no such file");
    let changed = "pub mod droptail;\n\npub mod lifo;\n\nbase::registry! {\n    entries { droptail: DropTail, lifo: Lifo }\n}\n";
    assert_eq!(tree["crates/fabric/src/qdisc/mod.rs"], changed);
    assert_eq!(add(example, &mut tree), Err("crates/fabric/src/qdisc/lifo.rs is already there".to_owned()));
}
