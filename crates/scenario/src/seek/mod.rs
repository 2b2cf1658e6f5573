//! `[seek]`: the open settings of a scenario, and the objective of a search over them.
//!
//! The search itself is in Python (`flowloom seek`). This module reads the table and reports its
//! problems with their places. It refuses every key that has no effect.

mod claim;
mod keys;
mod params;
mod range;
mod reading;
mod setting;

use crate::plan::keys::is_plain_name;
use crate::text::diag::{Diagnostics, Item, Place, Sources};
use crate::text::part::{Part, listed};
use crate::text::tree::{Table, parse_file};
use base::params::{Param as _, Params as _};
use claim::claim;
use reading::{listed_tables, reader, texts};
use setting::setting;
use std::path::Path;

pub use keys::SettingKey;
pub use params::{ClaimBound, ClaimKind, ClaimParams, Literal, Objective, SeekParams, SettingParams, Want};
pub use range::{Decimal, Range};
pub use setting::Setting;

/// `[seek]` of a file.
#[derive(Clone, Debug)]
pub struct Seek {
    /// Its parameters.
    pub params: SeekParams,
    /// The parameters that the file gives.
    pub given: Vec<&'static str>,
    /// Files of scenarios, relative to the file; none: the file itself is the scenario.
    pub scenarios: Vec<String>,
    /// The open settings.
    pub settings: Vec<Setting>,
    /// The claims.
    pub claims: Vec<ClaimParams>,
}

/// Reads the table `[seek]` of a file. Returns `None` if the file has no such table.
pub fn seek(text: &str, file: &str) -> Result<Option<Seek>, Diagnostics> {
    let mut sources = Sources::default();
    sources.add(file, text);
    let (mut syntax, mut problems) = (Vec::new(), Vec::new());
    let root = parse_file(text, &mut syntax);
    let found = read(&root, &stem(file), &mut problems);
    if found.as_ref().is_some_and(|seek| !seek.scenarios.is_empty()) {
        refuse_others(&root, &mut problems);
    }
    if syntax.is_empty() && problems.is_empty() { Ok(found) } else { Err(Diagnostics::new(sources, syntax, problems)) }
}

/// Refuses all keys of a file that searches other scenarios, except `name` and `seek`.
fn refuse_others(root: &Table, problems: &mut Vec<Item>) {
    let part = Part { table: root, at: Place::new(0, 0..0), path: "" };
    for entry in root.entries.iter().filter(|entry| !["name", "seek"].contains(&entry.key.as_str())) {
        let hint = "this file searches the files in `scenarios`: only `name` and `[seek]` are read from it";
        problems.push(Item::new(entry.key_at, format!("`{}` has no effect", entry.key), "next to `scenarios`", hint));
    }
    if root.get("name").is_some_and(|entry| !entry.node.text().is_some_and(is_plain_name)) {
        let hint = "the name is that of the folder of results: write letters, digits, `-`, `_`, `.` and spaces";
        problems.push(part.problem("name", "is not a plain name", "must be a plain name", hint));
    }
}

fn stem(file: &str) -> String {
    Path::new(file).file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Reads the table from the root of a file. `name` is the name of the scenario in the file; empty:
/// unknown.
pub(crate) fn read(root: &Table, name: &str, problems: &mut Vec<Item>) -> Option<Seek> {
    let entry = root.get("seek")?;
    let Some(table) = entry.node.table() else {
        problems.push(Item::new(entry.node.at, "`seek` is not a table", "must be a table", "write `[seek]`"));
        return None;
    };
    let part = Part { table, at: entry.key_at, path: "seek" };
    part.refuse_unknown(SeekParams::FIELDS, &["scenarios", "setting", "claim"], problems);
    let params = SeekParams::read(&mut reader(part, SeekParams::FIELDS, problems));
    if params.profile.as_deref() == Some("") {
        let hint = "name a profile of the scenarios, or remove `profile`";
        problems.push(part.problem("profile", "is empty", "names no profile", hint));
    }
    let files = texts(part, "scenarios", "files of scenarios: `[\"load.toml\"]`", problems);
    let names = scenario_names(part, &files, name, problems);
    let settings: Vec<(Setting, Vec<Place>)> = listed_tables(table, "setting", problems)
        .into_iter()
        .map(|(path, table, at)| setting(Part { table, at, path: &path }, &names, problems))
        .collect();
    let claims: Vec<ClaimParams> = listed_tables(table, "claim", problems)
        .into_iter()
        .map(|(path, table, at)| claim(Part { table, at, path: &path }, &names, problems))
        .collect();
    refuse_overlaps(part, &params, &settings, problems);
    let settings: Vec<Setting> = settings.into_iter().map(|(setting, _)| setting).collect();
    refuse_names(part, &settings, &claims, problems);
    objective(part, &params, &files, &claims, problems);
    let mut refuse = |message: &str, label: &str, hint: &str| problems.push(Item::new(part.at, message, label, hint));
    if settings.is_empty() {
        refuse(
            "`seek` has no setting",
            "nothing to search over",
            "add `[[seek.setting]]` with `name`, `keys`, `low`, `high` and `source`",
        );
    }
    let given = SeekParams::FIELDS.iter().map(|field| field.name).filter(|key| table.get(key).is_some()).collect();
    let scenarios = files.into_iter().map(|(file, _)| file).collect();
    Some(Seek { params, given, scenarios, settings, claims })
}

/// Refuses parameters that have no effect under the objective, and asks for those that it needs.
fn objective(part: Part<'_>, params: &SeekParams, files: &[(String, Place)], claims: &[ClaimParams], problems: &mut Vec<Item>) {
    const COMPARED: [&str; 3] = ["metric", "system", "versus"];
    let word = params.objective.show();
    let given = |key: &str| part.table.get(key).is_some();
    let useless = |keys: &[&str], why: &str| {
        let found = keys.iter().filter(|key| given(key));
        let item = |key: &&str| part.problem(key, format!("has no effect {why}"), "not used", format!("remove `{key}`"));
        found.map(item).collect::<Vec<Item>>()
    };
    let with = format!("with `objective = \"{word}\"`");
    match params.objective {
        Objective::Claims => {
            problems.extend(useless(&COMPARED, &format!("{with}: each claim has its own")));
            problems.extend(useless(&["want", "keep"], &with));
            if claims.iter().all(|claim| claim.fit) {
                problems.extend(useless(&["confirm"], "if no claim has `fit = false`"));
            }
            if !claims.iter().any(|claim| claim.fit) {
                let hint = "add `[[seek.claim]]` with the `id` of a claim";
                problems.push(Item::new(part.at, "`seek` has no claim to search for", "no `[[seek.claim]]` with `fit`", hint));
            }
        }
        Objective::Ratio => {
            problems.extend(useless(&["confirm", "claim"], &with));
            if [&params.metric, &params.system, &params.versus].iter().any(|given| given.is_none()) {
                let message = format!("`objective = \"{word}\"` needs {}", listed(COMPARED));
                let hint = format!("write {}", listed(COMPARED.into_iter().filter(|key| !given(key))));
                problems.push(Item::new(part.at, message, "one is missing", hint));
            } else if params.system == params.versus {
                let message = "is the same system as `system`";
                problems.push(part.problem("versus", message, "the ratio is always 1", "name two systems"));
            }
            if files.len() > 1 {
                let hint = "a ratio is searched for in a single scenario";
                problems.push(part.problem("scenarios", "lists several files", "must be one", hint));
            }
        }
    }
}

/// Returns the names of the scenarios of the search.
fn scenario_names(part: Part<'_>, files: &[(String, Place)], own: &str, problems: &mut Vec<Item>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (file, at) in files {
        let name = stem(file);
        if names.contains(&name) {
            let message = format!("`{}`: two scenarios are called `{name}`", part.name_of("scenarios"));
            problems.push(Item::new(*at, message, "named before", "the name of a scenario is that of its file: rename one"));
        }
        names.push(name);
    }
    if names.is_empty() && !own.is_empty() {
        names.push(own.to_owned());
    }
    names
}

/// Refuses names that are the names of two columns of the table of places.
fn refuse_names(part: Part<'_>, settings: &[Setting], claims: &[ClaimParams], problems: &mut Vec<Item>) {
    let own = |name: &str| (name.to_owned(), "column of the table of places");
    let mut seen = vec![own("place"), own("stage")];
    let settings = settings.iter().map(|setting| ("setting", &setting.params.name));
    for (noun, name) in settings.chain(claims.iter().map(|claim| ("claim", &claim.id))) {
        let judged = (noun == "claim").then(|| (format!("{name} holds"), "column of the table of places"));
        for column in std::iter::once((name.clone(), noun)).chain(judged) {
            if let Some((_, other)) = seen.iter().find(|(seen, _)| *seen == column.0) {
                let message = match other {
                    other if *other == noun => format!("two {noun}s are called `{name}`"),
                    other => format!("the {noun} `{name}` has the name of a {other}"),
                };
                let hint = "settings and claims are columns of the table of places: give each its own name";
                problems.push(Item::new(part.at, message, "in this table", hint));
                break;
            }
            seen.push(column);
        }
    }
}

/// Refuses keys that two settings set, and profiles that two settings, or a setting and the search, choose.
fn refuse_overlaps(part: Part<'_>, params: &SeekParams, settings: &[(Setting, Vec<Place>)], problems: &mut Vec<Item>) {
    let every: Vec<(usize, &SettingKey, Place)> = settings
        .iter()
        .enumerate()
        .flat_map(|(i, (setting, places))| setting.keys.iter().zip(places).map(move |(key, at)| (i, key, *at)))
        .collect();
    for (n, (i, key, at)) in every.iter().enumerate() {
        let path = format!("{}.setting.{i}.keys", part.path);
        let setting = &settings[*i].0;
        if let Some((other, first, _)) = every[..n].iter().find(|(_, first, _)| first.overlaps(key)) {
            let message = format!(
                "`{path}`: `{}` is set by the setting `{}` too, as `{}`",
                key.key, settings[*other].0.params.name, first.key
            );
            let hint = "all settings have a value at every place: name each key in one setting; a key contains all keys that begin with it, so set the kind of a part as `PART.kind`";
            problems.push(Item::new(*at, message, "set twice", hint));
        }
        if !key.is_profile() {
            continue;
        }
        let chosen = |text: &str| text.split(',').map(|name| name.trim().to_owned()).collect::<Vec<_>>();
        let own: Vec<String> = setting.choices.iter().flat_map(|choice| chosen(choice)).collect();
        let others = every[..n].iter().filter(|(other, first, _)| other != i && first.is_profile() && first.meets(key));
        let before =
            others.flat_map(|(other, ..)| &settings[*other].0.choices).chain(&params.profile).flat_map(|choice| chosen(choice));
        if let Some(name) = before.into_iter().find(|name| own.contains(name)) {
            let message = format!(
                "`{}.setting.{i}.choices`: the profile `{name}` is chosen by another setting or by `seek.profile` too",
                part.path
            );
            problems.push(Item::new(*at, message, "chosen twice", "all profiles of a place are applied: list each profile once"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTING: &str =
        "[[seek.setting]]\nname = \"burst\"\nkeys = [\"a.b\"]\nlow = \"8KB\"\nhigh = \"1MB\"\nlog = true\nsource = \"x\"\n";
    const CLAIM: &str = "[[seek.claim]]\nid = \"c\"\n";
    const OWN: &str = "[[seek.claim]]\nid = \"o\"\nmetric = \"m\"\nkind = \"ratio\"\nsystem = \"A\"\nversus = \"B\"\nat_most = 1\n";
    const RATIO: &str = "objective = \"ratio\"\nmetric = \"m\"\nsystem = \"A\"\nversus = \"B\"\n";

    fn messages(text: &str) -> Vec<String> {
        match seek(text, "f.toml") {
            Ok(_) => Vec::new(),
            Err(found) => found.items().iter().map(|item| item.message.clone()).collect(),
        }
    }

    #[test]
    fn settings_are_numbers_in_one_unit_or_choices() {
        let whole = format!("[seek]\n{SETTING}{CLAIM}");
        let found = seek(&whole, "f.toml").unwrap().unwrap();
        let burst = &found.settings[0];
        assert_eq!(burst.range, Range::between("8000B", "1000000B"));
        assert_eq!((burst.keys[0].key.as_str(), found.params.points, found.claims[0].fit), ("a.b", 64, true));
        let choices =
            whole.replace("low = \"8KB\"\nhigh = \"1MB\"\nlog = true", "choices = [1, \"none\", true, 0.5]\nusual = \"none\"");
        let setting = seek(&choices, "f.toml").unwrap().unwrap().settings.remove(0);
        assert_eq!(
            (setting.choices, setting.usual.as_deref()),
            (["1", "none", "true", "0.5"].map(str::to_owned).to_vec(), Some("none"))
        );
        let usual = whole.replace("log = true", "usual = \"64KiB\"");
        assert_eq!(seek(&usual, "f.toml").unwrap().unwrap().settings[0].usual.as_deref(), Some("65536B"));
        assert!(seek("seed = 1\n", "f.toml").unwrap().is_none());
    }

    #[test]
    fn complete_tables_are_read() {
        let second = SETTING.replace("burst", "other").replace("a.b", "f:c.d");
        for text in [
            format!("[seek]\n{SETTING}{second}{CLAIM}at_least = \"1/3\"\nat_most = 1\n"),
            format!("[seek]\nconfirm = 2\n{SETTING}{OWN}{CLAIM}fit = false\nscenario = \"f\"\n"),
            format!("[seek]\n{RATIO}want = \"smallest\"\nkeep = 0.5\n{SETTING}"),
            format!("name = \"n\"\n[seek]\nscenarios = [\"one.toml\", \"two.toml\"]\n{}{CLAIM}", SETTING.replace("a.b", "two:a.b")),
            format!("[seek]\n{SETTING}{}", OWN.replace("ratio", "measured").replace("system = \"A\"\nversus = \"B\"\n", "")),
            format!("[seek]\n{SETTING}{}", OWN.replace("ratio", "value").replace("versus = \"B\"\n", "")),
        ] {
            assert_eq!(messages(&text), [""; 0], "{text}");
        }
    }

    #[test]
    fn mistakes_are_reported_together() {
        let setting = |from: &str, to: &str| format!("[seek]\n{}{CLAIM}", SETTING.replace(from, to));
        let claim = |from: &str, to: &str| format!("[seek]\n{SETTING}{}", OWN.replace(from, to));
        let head = |head: &str| format!("[seek]\n{head}\n{SETTING}{CLAIM}");
        let ratio = |head: &str| format!("[seek]\n{RATIO}{head}\n{SETTING}");
        let second = |name: &str, keys: &str| {
            format!("[seek]\n{SETTING}{}{CLAIM}", SETTING.replace("burst", name).replace("[\"a.b\"]", keys))
        };
        let profiles = |head: &str, choices: &str| {
            let one = "[[seek.setting]]\nname = \"p\"\nkeys = [\"profile\"]\nchoices = [\"x\", \"y\"]\nsource = \"s\"\n";
            format!("[seek]\n{head}\n{one}{}{CLAIM}", one.replace("\"p\"", "\"q\"").replace("[\"x\", \"y\"]", choices))
        };
        for (text, wanted) in [
            (format!("[seek]\n{CLAIM}"), "`seek` has no setting"),
            (format!("[seek]\n{SETTING}"), "`seek` has no claim to search for"),
            (format!("[seek]\n{SETTING}{CLAIM}fit = false\n"), "`seek` has no claim to search for"),
            ("seek = 3\n".to_owned(), "`seek` is not a table"),
            (format!("[seek]\nsetting = 3\n{CLAIM}"), "`seek.setting` is not a list of tables"),
            (head("pionts = 3"), "unknown key `pionts` in [seek]"),
            // Names.
            (second("burst", "[\"c.d\"]"), "two settings are called `burst`"),
            (format!("[seek]\n{SETTING}{CLAIM}{CLAIM}"), "two claims are called `c`"),
            (second("c", "[\"c.d\"]"), "the claim `c` has the name of a setting"),
            (second("c holds", "[\"c.d\"]"), "the claim `c` has the name of a setting"),
            (setting("burst", "stage"), "the setting `stage` has the name of a column of the table of places"),
            (setting("burst", ""), "`seek.setting.0.name`: is empty"),
            // Keys.
            (second("other", "[\"a.b\"]"), "`seek.setting.1.keys`: `a.b` is set by the setting `burst` too, as `a.b`"),
            (second("other", "[\"c.d\", \"a.b.c\"]"), "`seek.setting.1.keys`: `a.b.c` is set by the setting `burst` too, as `a.b`"),
            (second("other", "\"a\""), "`seek.setting.1.keys`: `a` is set by the setting `burst` too, as `a.b`"),
            (second("other", "[\"f:a.'b'\"]"), "`seek.setting.1.keys`: `a.'b'` is set by the setting `burst` too, as `a.b`"),
            (
                setting("[\"a.b\"]", "[\"a.b\", \"a . b\"]"),
                "`seek.setting.0.keys`: `a . b` is set by the setting `burst` too, as `a.b`",
            ),
            (setting("[\"a.b\"]", "[\"a.b\", \"a.b\"]"), "`seek.setting.0.keys`: `a.b` is given twice"),
            (setting("keys = [\"a.b\"]\n", ""), "`seek.setting.0.keys`: names no key of the scenario"),
            (setting("[\"a.b\"]", "[]"), "`seek.setting.0.keys`: is empty"),
            (setting("a.b", "g:a.b"), "`seek.setting.0.keys`: there is no scenario `g`"),
            (setting("a.b", "a..b"), "`seek.setting.0.keys`: `a..b` is not a dotted key"),
            (setting("a.b", "seek.points"), "`seek.setting.0.keys`: `seek.points` has no effect on results"),
            (setting("a.b", "profile"), "`seek.setting.0.low`: a profile is no number"),
            (
                profiles("", "[\"z\", \"w, y\"]"),
                "`seek.setting.1.choices`: the profile `y` is chosen by another setting or by `seek.profile` too",
            ),
            (
                profiles("profile = \"u,x\"", "[\"v\", \"w\"]"),
                "`seek.setting.0.choices`: the profile `x` is chosen by another setting or by `seek.profile` too",
            ),
            // Values.
            (setting("8KB", "2MB"), "`seek.setting.0.high`: `1MB` is not above `low`, which is `2MB`"),
            (setting("8KB", "0B"), "`seek.setting.0.low`: `0B` has no logarithm"),
            (setting("1MB", "1us"), "`seek.setting.0.low`: `8KB` and `1us` are not two numbers with compatible units"),
            (
                setting("log = true", "choices = [1, 2]"),
                "`seek.setting.0.low`: a setting has either `low` and `high`, or `choices`",
            ),
            (setting("low = \"8KB\"\n", ""), "`seek.setting.0.low`: a setting has either `low` and `high`, or `choices`"),
            (setting("log = true", "choices = []"), "`seek.setting.0.choices`: is empty"),
            (setting("low = \"8KB\"\nhigh = \"1MB\"", "choices = [1, 2]"), "`seek.setting.0.log`: has no effect on `choices`"),
            (
                setting("low = \"8KB\"\nhigh = \"1MB\"\nlog = true", "choices = [1]"),
                "`seek.setting.0.choices`: a setting needs `low` and `high`, or at least two `choices`",
            ),
            (
                setting("low = \"8KB\"\nhigh = \"1MB\"\nlog = true", "choices = [\"1KB\", \"1000B\"]"),
                "`seek.setting.0.choices`: `1000B` is given twice",
            ),
            (setting("log = true", "usual = \"2MB\""), "`seek.setting.0.usual`: `2MB` is out of the range from `low` to `high`"),
            (setting("log = true", "usual = \"9pkt\""), "`seek.setting.0.usual`: `9pkt` is not in the unit of `low` and `high`"),
            (
                setting("low = \"8KB\"\nhigh = \"1MB\"\nlog = true", "choices = [1, 2]\nusual = 3"),
                "`seek.setting.0.usual`: `3` is not one of the `choices`",
            ),
            // Parameters without effect.
            (head("metric = \"m\""), "`seek.metric`: has no effect with `objective = \"claims\"`: each claim has its own"),
            (head("want = \"largest\""), "`seek.want`: has no effect with `objective = \"claims\"`"),
            (head("keep = 0.5"), "`seek.keep`: has no effect with `objective = \"claims\"`"),
            (head("confirm = 2"), "`seek.confirm`: has no effect if no claim has `fit = false`"),
            (ratio("confirm = 2"), "`seek.confirm`: has no effect with `objective = \"ratio\"`"),
            (ratio("") + CLAIM, "`seek.claim`: has no effect with `objective = \"ratio\"`"),
            (ratio("scenarios = [\"a.toml\", \"b.toml\"]"), "`seek.scenarios`: lists several files"),
            (format!("[seek]\nobjective = \"ratio\"\n{SETTING}"), "`objective = \"ratio\"` needs `metric`, `system`, `versus`"),
            (ratio("").replace("\"B\"", "\"A\""), "`seek.versus`: is the same system as `system`"),
            (head("objective = \"ratios\""), "`seek.objective`: `ratios` is not one of `claims`, `ratio`; did you mean `ratio`?"),
            (head("scenarios = [\"a/f.toml\", \"b/f.toml\"]"), "`seek.scenarios`: two scenarios are called `f`"),
            (head("profile = \"\""), "`seek.profile`: is empty"),
            (head("scenarios = []"), "`seek.scenarios`: is empty"),
            (format!("seed = 1\n{}", head("scenarios = [\"f.toml\"]")), "`seed` has no effect"),
            (format!("name = \"../n\"\n{}", head("scenarios = [\"f.toml\"]")), "`name`: is not a plain name"),
            // Claims.
            (claim("at_most = 1", "at_most = 1\nat_least = 2"), "`seek.claim.0.at_most`: `1` is below `at_least`, which is `2`"),
            (claim("at_most = 1", "at_most = \"1/0\""), "`seek.claim.0.at_most`: `1/0` is not a number, like `0.8` or `1/3`"),
            (
                claim("at_most = 1", "at_most = \"80%\""),
                "`seek.claim.0.at_most`: `80%` is not a number, like `0.8` or `1/3`; did you mean `0.8`?",
            ),
            (claim("at_most = 1", "at_most = nan"), "`seek.claim.0.at_most`: `nan` is not a number, like `0.8` or `1/3`"),
            (claim("at_most = 1", "at_most = true"), "`seek.claim.0.at_most`: `true` is not a number, like `0.8` or `1/3`"),
            (claim("at_most = 1", "at_most = 1\nprinted = true"), "`seek.claim.0.printed`: `true` is not a number or a text"),
            (claim("at_most = 1", "at_most = 1\nprinted = nan"), "`seek.claim.0.printed`: `nan` is not finite"),
            (claim("at_most = 1", "at_most = [1]"), "`seek.claim.0.at_most`: a list is not a number, like `0.8` or `1/3`"),
            (claim("at_most = 1\n", ""), "`seek.claim.0` has no bounds"),
            (
                claim("\"ratio\"", "\"reductoin\""),
                "`seek.claim.0.kind`: `reductoin` is not one of `value`, `ratio`, `reduction`, `increase`, `difference`, `measured`; did you mean `reduction`?",
            ),
            (
                claim("\"ratio\"", "\"spread\""),
                "`seek.claim.0.kind`: `spread` is not one of `value`, `ratio`, `reduction`, `increase`, `difference`, `measured`",
            ),
            (claim("versus = \"B\"\n", ""), "`seek.claim.0.versus` is missing"),
            (claim("system = \"A\"\n", ""), "`seek.claim.0.system` is missing"),
            (claim("\"ratio\"", "\"value\""), "`seek.claim.0.versus`: has no effect on a claim of kind `value`"),
            (claim("kind = \"ratio\"\n", ""), "`seek.claim.0.versus`: has no effect on a claim of kind `value`"),
            (claim("\"ratio\"", "\"measured\""), "`seek.claim.0.system`: has no effect on a claim of kind `measured`"),
            (claim("\"B\"", "\"A\""), "`seek.claim.0.versus`: is the same system as `system`"),
            (claim("metric = \"m\"\n", ""), "`seek.claim.0.kind`: has no effect without `metric`"),
            (claim("metric = \"m\"\n", "printed = 3\n"), "`seek.claim.0.printed`: has no effect without `metric`"),
            (claim("at_most = 1", "at_most = 1\nscenario = \"g\""), "`seek.claim.0.scenario`: there is no scenario `g`"),
        ] {
            let found = messages(&text);
            assert!(found.iter().any(|message| message == wanted), "{wanted}\n{found:#?}\n{text}");
        }
    }
}
