//! Reads the kinds of figures and the formats of exports from the Python modules that draw and
//! write them, so that `list`, `explain` and help texts name them without a second list. Python is
//! not run: the sources are read as text, and the build fails if they look different.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// The folders of the Python package with one module per entry, and the file with their entries
/// that the crate includes.
const ROOMS: [(&str, &str); 2] = [("figures/kinds", "figures.rs"), ("exports", "formats.rs")];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    for (folder, file) in ROOMS {
        fs::write(out.join(file), entries(&Path::new("../../python/flowloom").join(folder)))
            .expect("cargo's folder can be written");
    }
}

/// The entries of a room as a Rust array of (name, summary, table of results that is needed), in
/// the order of the room's list.
fn entries(folder: &Path) -> String {
    let path = folder.join("__init__.py");
    let text = read(&path);
    let list = between(&text, "= room(", "]").unwrap_or_else(|| panic!("{} has no list `room(__name__, [...])`", path.display()));
    let names: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    assert!(!names.is_empty(), "the list in {} is empty", path.display());
    let entries: Vec<String> = names.iter().map(|name| entry(name, &folder.join(format!("{name}.py")))).collect();
    format!("&[{}]", entries.join(", "))
}

/// The entry that a module describes with `META = Meta("summary", needs="table", ...)`.
fn entry(name: &str, path: &Path) -> String {
    let text = read(path);
    let wrong =
        |what: &str| -> ! { panic!("{} has no {what}; it needs `META = Meta(\"summary\", needs=\"table\")`", path.display()) };
    let meta = between(&text, "\nMETA = Meta(", "\n)").unwrap_or_else(|| wrong("`META`"));
    let summary = literals(meta).unwrap_or_else(|| wrong("summary that is a plain string in double quotes"));
    let needs = between(meta, "needs=\"", "\"").unwrap_or_else(|| wrong("`needs`"));
    format!("({name:?}, {summary:?}, {needs:?})")
}

/// The value of a Python expression that begins with string literals, which Python joins. `None` if
/// it begins otherwise.
fn literals(text: &str) -> Option<String> {
    let (mut value, mut rest) = (String::new(), text.trim_start());
    while let Some((part, after)) = rest.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
        value += part;
        rest = after.trim_start();
    }
    (rest.starts_with(',') && !value.is_empty() && !value.contains(['\\', '\n'])).then_some(value)
}

/// The text between the first `start` and the first `end` after it.
fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    Some(text.split_once(start)?.1.split_once(end)?.0)
}

fn read(path: &Path) -> String {
    println!("cargo::rerun-if-changed={}", path.display());
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
