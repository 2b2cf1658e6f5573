//! Circles of files: files that need items defined in each other.
//!
//! An arrow leads from a file to each file whose module its text names, by `use` or in place, tests left out. Re-exports and imports
//! inside functions count. The `mod.rs` of a room and its entries are one file; the arrow from a file to the module that declares it
//! does not count.

use std::collections::{BTreeMap, BTreeSet};

/// Arrows between files by name.
pub type Arrows = BTreeMap<String, BTreeSet<String>>;

/// Returns the circles: sets of two or more files that reach each other.
pub fn circles(arrows: &Arrows) -> Vec<Vec<String>> {
    let reach = |from: &str| {
        let (mut seen, mut stack) = (BTreeSet::new(), vec![from]);
        while let Some(file) = stack.pop() {
            for next in arrows.get(file).into_iter().flatten() {
                if seen.insert(next.as_str()) {
                    stack.push(next);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&str, BTreeSet<&str>> = arrows.keys().map(|file| (file.as_str(), reach(file))).collect();
    let mut found = BTreeSet::new();
    for (file, from_here) in reached.iter().filter(|(file, reached)| reached.contains(*file)) {
        let back = |other: &&&str| reached.get(**other).is_some_and(|reached| reached.contains(file));
        found.insert(from_here.iter().filter(back).map(|file| (*file).to_owned()).collect::<Vec<_>>());
    }
    found.into_iter().filter(|circle| circle.len() > 1).collect()
}

/// Returns the code of a Rust file above its tests, without comments and texts in quotes.
pub fn code(text: &str) -> String {
    let above = text.split("\n#[cfg(test)]").next().unwrap_or(text);
    let lines = above.lines().map(|line| {
        let mut quotes = line.split('"');
        let unquoted: String = quotes.by_ref().step_by(2).collect();
        unquoted.split("//").next().unwrap_or_default().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the arrows of a crate, from its files as (path below `src`, text). Each folder in `rooms` counts as one file.
pub fn of_crate(files: &[(String, String)], rooms: &[&str]) -> Arrows {
    // A module's path, `transport::merp`, of a file: `transport/merp.rs`, `transport/mod.rs`.
    let module = |path: &str| {
        let path = path.trim_end_matches(".rs");
        let path = path.strip_suffix("/mod").unwrap_or(path);
        if path == "lib" { String::new() } else { path.replace('/', "::") }
    };
    let modules: BTreeMap<String, &str> = files.iter().map(|(path, _)| (module(path), path.as_str())).collect();
    let unit = |path: &str| {
        let room = rooms.iter().find(|room| path.starts_with(&format!("{room}/")));
        room.map_or_else(|| path.to_owned(), |room| format!("{room}/mod.rs"))
    };
    let mut arrows = Arrows::new();
    for (path, text) in files {
        let here = module(path);
        let own = unit(path);
        arrows.entry(own.clone()).or_default();
        for named in paths_in(&code(text), &here) {
            // The longest beginning of the path that is a module.
            let mut end = named.len();
            let target = loop {
                if let Some(file) = modules.get(&named[..end].join("::")) {
                    break *file;
                }
                end -= 1;
            };
            let parent = here.rsplit_once("::").map_or("", |(parent, _)| parent);
            let is_parent = named[..end].join("::") == parent && !here.is_empty();
            let target = unit(target);
            if target != own && !is_parent {
                arrows.entry(own.clone()).or_default().insert(target);
            }
        }
    }
    arrows
}

/// All paths that begin with `crate`, `super` or `self` in a text, `use` groups spelled out, as segments from the root of the crate.
fn paths_in(code: &str, here: &str) -> Vec<Vec<String>> {
    let here: Vec<String> = here.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
    let mut found = Vec::new();
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '$')) {
                continue;
            }
            let mut root = here.clone();
            let mut rest = &code[at..];
            while let Some(up) = rest.strip_prefix("super::") {
                root.pop();
                rest = up;
            }
            if let Some(below) = rest.strip_prefix("crate::") {
                root.clear();
                rest = below;
            }
            rest = rest.strip_prefix("self::").unwrap_or(rest);
            spell_out(rest, &root, &mut found);
        }
    }
    found
}

/// One path or `{group}` of paths at the start of `rest`, behind `root`. Returns what follows.
fn spell_out<'a>(rest: &'a str, root: &[String], found: &mut Vec<Vec<String>>) -> &'a str {
    let rest = rest.trim_start();
    if let Some(mut inside) = rest.strip_prefix('{') {
        loop {
            inside = spell_out(inside, root, found).trim_start();
            match inside.strip_prefix(',') {
                Some(more) if !more.trim_start().starts_with('}') => inside = more,
                Some(more) => return more.trim_start().strip_prefix('}').unwrap_or(more),
                None => return inside.strip_prefix('}').unwrap_or(inside),
            }
        }
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let (word, after) = rest.split_at(end);
    let mut path = root.to_vec();
    if word != "self" && !word.is_empty() {
        path.push(word.to_owned());
    }
    match after.strip_prefix("::") {
        Some(deeper) if !word.is_empty() => spell_out(deeper, &path, found),
        _ => {
            found.push(path);
            let renamed = after.trim_start().strip_prefix("as ");
            let skip = |text: &'a str| text.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
            renamed.map_or_else(|| after.strip_prefix('*').unwrap_or(after), skip)
        }
    }
}

#[test]
fn circles_are_found() {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let files = [
        file("lib.rs", "mod a;\npub use a::A;\n"),
        file("a.rs", "use crate::b::{self, c::{D, E as F}, G};\n"),
        file("b/mod.rs", "use super::a::A; // crate::room\n"),
        file("b/c.rs", "use super::G; fn f() { crate::room::one::go() }\n#[cfg(test)]\nuse crate::a;\n"),
        file("room/mod.rs", "pub mod one;\n"),
        file("room/one.rs", "const X: &str = \"crate::a\"; use super::Room;\n"),
    ];
    let arrows = of_crate(&files, &["room"]);
    let to = |from: &str| arrows[from].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!((to("a.rs"), to("b/mod.rs"), to("b/c.rs")), (vec!["b/c.rs", "b/mod.rs"], vec!["a.rs"], vec!["room/mod.rs"]));
    assert_eq!(circles(&arrows), [["a.rs", "b/mod.rs"]]);
}
