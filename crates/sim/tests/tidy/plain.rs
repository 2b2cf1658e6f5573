//! Lists retired words in comments and pages, public doc comments whose first sentence has no verb, and long subjects of commits.
//!
//! The list does not fail a test: `cargo test -p flowloom-sim --test tidy words -- --nocapture` prints it.

use super::{files, read, root};
use std::collections::BTreeMap;
use std::process::Command;

/// Words that comments and pages no longer use. Listed once per line, in any case. Limits: a pair of words is
/// not found across two lines, words in backticks do not count, and a plain use (`tell apart`) counts too.
#[rustfmt::skip]
const RETIRED: [&str; 18] = [
    "beside", "hear of", "heard", "hears of", "mail", "news", "notice", "of which", "remark", "remarks", "sent again",
    "stand", "stands", "stood", "strangers", "tell", "tells", "told",
];
/// First words of functions that are verbs and do not end in `s`.
const VERBS: [&str; 2] = ["Called", "See"];
/// First words of other items that begin a sentence without a verb.
const FRAGMENTS: [&str; 5] = ["As", "Of", "That", "What", "Who"];
const PLACES: usize = 20;
/// Longest subject of a commit in characters, as in CONTRIBUTING.md.
const SUBJECT: usize = 72;

/// Returns the lines of a file in which words are looked for, with their numbers: comments of Rust, comments and
/// texts in three quotes of Python, and lines of pages outside code blocks.
///
/// Limit: a comment begins at the first mark that follows an even number of quotes in its line.
fn prose<'a>(name: &str, text: &'a str) -> Vec<(usize, &'a str)> {
    let (mark, block) = match name.rsplit('.').next() {
        Some("rs") => ("//", None),
        Some("md") => ("", Some("```")),
        _ => ("#", Some("\"\"\"")),
    };
    let (mut inside, mut found) = (false, Vec::new());
    for (number, line) in (1..).zip(text.lines()) {
        let switches = block.map_or(0, |block| line.matches(block).count());
        if mark.is_empty() {
            found.extend((!inside && switches == 0).then_some((number, line)));
        } else if inside || switches > 0 {
            found.push((number, line));
        } else {
            let mut marks = line.match_indices(mark).map(|(at, _)| at);
            let comment = marks.find(|at| line[..*at].matches('"').count() % 2 == 0);
            found.extend(comment.map(|at| (number, &line[at..])));
        }
        inside ^= switches % 2 == 1;
    }
    found
}

/// Returns the retired words of a line.
fn retired(line: &str) -> Vec<&'static str> {
    let outside: Vec<&str> = line.split('`').step_by(2).collect();
    let plain = outside.join(" . ").to_lowercase().replace(|c: char| !c.is_alphanumeric() && c != '_', " ");
    let plain = format!(" {} ", plain.split_whitespace().collect::<Vec<_>>().join(" "));
    RETIRED.into_iter().filter(|word| plain.contains(&format!(" {word} "))).collect()
}

/// Returns the first lines of doc comments of `pub` items whose first sentence has no verb, with their numbers.
///
/// Rule: a function's first word must end in `s` or be in [`VERBS`]; another item's must not be in [`FRAGMENTS`], since
/// a noun phrase may say what the item is. Limits: `Bytes of a flow` passes for a function, since a noun may end in
/// `s`; methods of traits and items behind attributes of several lines are not read.
fn verbless(text: &str) -> Vec<(usize, &str)> {
    let (mut first, mut found) = (None, Vec::new());
    for (number, line) in (1..).zip(text.split("\n#[cfg(test)]").next().unwrap_or(text).lines()) {
        let line = line.trim_start();
        if let Some(doc) = line.strip_prefix("///") {
            first.get_or_insert((number, doc.trim()));
        } else if !line.starts_with("#[")
            && let Some((number, doc)) = first.take()
            && line.starts_with("pub ")
        {
            let word = doc.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            let is_function = line.split('(').next().is_some_and(|head| head.contains(" fn "));
            let is_verb = word.ends_with('s') || VERBS.contains(&word);
            found.extend((if is_function { !is_verb } else { FRAGMENTS.contains(&word) }).then_some((number, doc)));
        }
    }
    found
}

#[test]
fn retired_words_and_docs_without_a_verb_are_listed() {
    let (mut counts, mut places) = (BTreeMap::<String, [usize; 2]>::new(), [Vec::new(), Vec::new()]);
    for path in files(&root(), &[".rs", ".py", ".pyi", ".md"]) {
        let name = path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/");
        let part = match name.split('/').collect::<Vec<_>>()[..] {
            ["crates", of, ..] if name.ends_with(".rs") => format!("crates/{of}"),
            ["python", ..] if !name.ends_with(".md") => "python".to_owned(),
            ["docs", _] => "docs".to_owned(),
            _ => continue,
        };
        let text = read(&path);
        let words = prose(&name, &text).into_iter().flat_map(|(n, line)| retired(line).into_iter().map(move |word| (n, word)));
        let docs = if name.ends_with(".rs") { verbless(&text) } else { Vec::new() };
        let found = [words.collect(), docs];
        for (n, found) in found.into_iter().enumerate() {
            counts.entry(part.clone()).or_default()[n] += found.len();
            places[n].extend(found.into_iter().map(|(number, what)| format!("  {name}:{number}: {what}")));
        }
    }
    for (part, [words, docs]) in counts {
        println!("{part}: {words} retired words, {docs} public doc comments without a verb");
    }
    for (what, places) in ["retired words", "public doc comments without a verb"].into_iter().zip(places) {
        println!("{what}, the first {PLACES} of {}:\n{}", places.len(), places[..places.len().min(PLACES)].join("\n"));
    }
    // Nothing is listed where there is no git.
    let log = Command::new("git").args(["log", "-100", "--format=%h %s"]).current_dir(root()).output();
    let log = log.map(|log| String::from_utf8_lossy(&log.stdout).into_owned()).unwrap_or_default();
    let is_long = |line: &&str| line.split_once(' ').is_some_and(|(_, subject)| subject.chars().count() > SUBJECT);
    let long: Vec<&str> = log.lines().filter(is_long).collect();
    println!("{} of the last 100 commits have a subject of more than {SUBJECT} characters:\n{}", long.len(), long.join("\n"));
}

#[test]
fn retired_words_and_docs_without_a_verb_are_found() {
    let rust = "/// Of a port.\npub struct A;\n/// Whether it is told.\n#[inline]\npub fn b() {} // \"x\" stood\n\
                /// Returns `news`.\npub fn c(d: &str) { e(\"// mail\") }\n/// What.\nfn f() {}\n";
    assert_eq!(verbless(rust), [(1, "Of a port."), (3, "Whether it is told.")]);
    let words =
        |name, text| prose(name, text).into_iter().flat_map(|(n, line)| retired(line).into_iter().map(move |word| (n, word)));
    assert_eq!(words("a.rs", rust).collect::<Vec<_>>(), [(3, "told"), (5, "stood")]);
    let python = "\"\"\"Packets, of\nwhich. Heard\"\"\"\nmail = 'news'  # Sent again.\ntold = 1\n";
    assert_eq!(words("a.py", python).collect::<Vec<_>>(), [(2, "heard"), (3, "sent again")]);
    assert_eq!(words("a.md", "Stands.\n```\nstood\n```\ntells\n").collect::<Vec<_>>(), [(1, "stands"), (5, "tells")]);
}
