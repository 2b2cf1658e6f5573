//! Scenarios that cannot run, with one mistake or a few each, and the error messages.
//!
//! `bad/*.toml` may begin with options of the command line: `# set: key=value`, `# profile: name`
//! or `# seed: 1,2`.

use scenario::{Options, Style};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn options(text: &str) -> Options {
    let mut options = Options::default();
    for line in text.lines().map_while(|l| l.strip_prefix("# ")) {
        match line.split_once(": ").expect("`# key: value`") {
            ("set", setting) => options.set.push(setting.split_once('=').map(|(k, v)| (k.into(), v.into())).expect("key=value")),
            ("profile", name) => options.profiles = scenario::profiles(name),
            ("seed", list) => options.seeds = Some(list.split(',').map(|n| n.parse().expect("a number")).collect()),
            (other, _) => panic!("`{other}` is no option"),
        }
    }
    options
}

fn cases() -> Vec<(String, String)> {
    let read = |path: PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(&path).unwrap())
    };
    let entries = std::fs::read_dir(folder().join("bad")).unwrap().map(|e| e.unwrap().path());
    let mut cases: Vec<_> = entries.filter(|p| p.extension().is_some_and(|e| e == "toml")).map(read).collect();
    cases.sort();
    cases
}

/// Replaces each list of all entries of a room by a placeholder, so that a new entry changes no
/// message.
fn without_entries(text: String) -> String {
    let rooms = scenario::ROOMS.iter().filter(|room| room.entries.len() > 1);
    rooms.fold(text, |text, room| {
        let all = room.names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        text.replace(&all, &format!("<all {}>", room.plural))
    })
}

#[test]
fn every_mistake_is_explained() {
    let cases = cases();
    assert!(cases.len() >= 60, "{} cases", cases.len());
    let mut all = String::new();
    for (name, text) in cases {
        let found = scenario::load(&text, &name, &folder(), &options(&text)).expect_err(&name);
        let shown = found.to_string();
        assert!(shown.is_ascii() || !text.is_ascii(), "{shown}");
        for item in found.items() {
            let place = format!("{}:{}:{}", item.file, item.line, item.col);
            assert!(shown.contains(&format!("[{place}]")), "{place} in\n{shown}");
            assert!(!item.message.is_empty() && !item.hint.is_empty() && !item.label.is_empty(), "{item:?}");
            assert!(item.message.starts_with(|c: char| !c.is_uppercase() || c == 'T') && !item.message.ends_with('.'), "{item}");
        }
        assert!(shown.matches('^').count() >= found.items().len(), "a caret for each\n{shown}");
        assert!(shown.lines().last().unwrap().trim_start().starts_with("hint: "), "{shown}");
        assert!(!found.render(Style::Unicode).contains('\u{1b}') && found.render(Style::Colour).contains('\u{1b}'));
        let places: Vec<_> = found.items().iter().filter(|i| i.file == name).map(|i| (i.line, i.col)).collect();
        assert!(places.is_sorted(), "{name}: {places:?}");
        // Long lines are cut, because they only list values.
        let short = without_entries(shown);
        let short = short.lines().map(|l| if l.len() > 200 { format!("{}...", &l[..120]) } else { l.to_owned() });
        all.push_str(&format!("=== {name}\n{}\n\n", short.collect::<Vec<_>>().join("\n")));
    }
    insta::assert_snapshot!("every_mistake", all);
}

/// A file of flows may be large, and a mistake in a system is reported without reading it.
#[test]
fn a_file_of_flows_is_read_only_if_nothing_else_is_wrong() {
    let messages = |system: &str| {
        let workload = "[workload.list]\nkind = \"goal\"\npath = \"none.goal\"\n";
        let text = format!("topology = \"single_tree\"\n{workload}[[system]]\ntransport = \"{system}\"\nqdisc = \"droptail\"\n");
        let found = scenario::load(&text, "t.toml", &folder(), &Options::default()).expect_err("the file does not exist");
        found.items().iter().map(|item| item.message.clone()).collect::<Vec<_>>()
    };
    let missing = "cannot read the file `none.goal`: there is no such file";
    let qdisc = "`pfabric` needs the queue discipline `pfabric`, but this system has `droptail`";
    let unknown = "unknown transport `newrenno`";
    for (system, expected) in [("newreno", missing), ("pfabric", qdisc), ("newrenno", unknown)] {
        let found = messages(system);
        assert!(found.len() == 1 && found[0].contains(expected), "{system}: {found:?}");
    }
}
