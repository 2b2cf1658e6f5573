//! `[seek]`: the open settings of a scenario, and the objective of a search over them.
//!
//! The search itself is in Python (`flowloom seek`). This file reads the table and reports its
//! problems with their places.

use crate::text::diag::{Diagnostics, Item, Sources};
use crate::text::part::{Part, PartReader};
use crate::text::tree::{Node, Table, Value, parse_file};
use base::Fraction;
use base::params::{Field, Param, Params as _, Raw};
use base::units::{parse_bytes, parse_dur, parse_rate};

base::choice! {
    /// The objective of a search.
    pub enum Objective {
        /// Finds the settings under which claims hold.
        Claims = "claims",
        /// Finds the settings under which a system is worst, or best, compared with another system.
        Ratio = "ratio",
    }
}

base::choice! {
    /// The ratios to search for.
    pub enum Want {
        /// The largest ratio.
        Largest = "largest",
        /// The smallest ratio.
        Smallest = "smallest",
    }
}

base::params! {
    /// A search over open settings.
    pub struct SeekParams {
        /// `claims`: finds where the claims hold; `ratio`: finds where `metric` of `system` divided
        /// by that of `versus` is largest or smallest.
        objective: Objective = "claims", "flowloom: the question about most papers";
        /// Profiles that are applied to the scenarios first, like `"small"` or `"a,b"`: use sizes
        /// at which a point takes seconds.
        profile: Option<String> = "none", "flowloom: the scenarios as they are";
        /// Number of places that fill the space evenly (a scrambled Sobol sequence); rounded up to
        /// a power of two.
        points: u32 = "64" in 2..=65_536, "flowloom: a share of a tenth is known to 4 points in 100";
        /// Number of additional places that an optimiser chooses near the claims or near the
        /// extreme ratio; not used for shares of the space.
        refine: u32 = "32" in 0..=65_536, "flowloom: half of the design";
        /// Number of places, among those where most claims hold, at which claims with `fit = false`
        /// are judged too.
        confirm: u32 = "4" in 1..=65_536, "flowloom: enough to see whether they agree";
        /// Seed of the design and of the optimiser.
        draw: u32 = "1", "flowloom: any";
        /// The metric of `ratio`; `flowloom list metrics` prints all names.
        metric: Option<String> = "none", "needed by `objective = \"ratio\"`";
        /// The system in the numerator of `ratio`.
        system: Option<String> = "none", "needed by `objective = \"ratio\"`";
        /// The system in the denominator of `ratio`.
        versus: Option<String> = "none", "needed by `objective = \"ratio\"`";
        /// The ratios to search for.
        want: Want = "largest", "flowloom: metrics are mostly better when small, so this is where `system` is worst";
        /// Minimum share of the logarithm of a ratio that must remain when its scenario is made
        /// smaller.
        keep: Fraction = "0.8" in Fraction(0)..=Fraction::ONE, "flowloom: the same finding, in a smaller scenario";
    }
}

base::params! {
    /// An open setting.
    pub struct SettingParams {
        /// Name of the setting in tables and figures.
        name: String = "", "";
        /// Smallest value, in any unit of its keys.
        low: Option<Literal> = "none", "needed unless there are `choices`";
        /// Largest value.
        high: Option<Literal> = "none", "needed unless there are `choices`";
        /// Whether values are spread evenly by their logarithm.
        log: bool = "false", "flowloom: evenly by value";
        /// The usual value in other work, which figures mark.
        usual: Option<Literal> = "none", "flowloom: nothing is marked";
        /// Source of the range: another paper, a default of a program or product.
        source: String = "", "";
    }
}

base::params! {
    /// A claim of a search.
    pub struct ClaimParams {
        /// Name of the claim. Without `metric`, the name of a claim in the `claims.toml` of the
        /// same folder.
        id: String = "", "";
        /// Whether to search for the claim; if `false`, the claim is judged afterwards, where the
        /// other claims hold.
        fit: bool = "true", "flowloom: a claim is listed to be looked for";
        /// The value printed in the paper, as text.
        printed: Literal = "-", "flowloom: nothing";
        /// How the number is computed from the metric, as in `flowloom papers`.
        kind: Option<String> = "none", "that of the claim in `claims.toml`";
        /// The metric.
        metric: Option<String> = "none", "that of the claim in `claims.toml`";
        /// The system that the claim is about.
        system: Option<String> = "none", "that of the claim in `claims.toml`";
        /// The system that `system` is compared with.
        versus: Option<String> = "none", "that of the claim in `claims.toml`";
        /// The scenario on which the claim is judged: the name of its file without the extension.
        scenario: Option<String> = "none", "the first, or that of the claim's figure";
        /// The smallest number with which the claim holds.
        at_least: Option<Literal> = "none", "that of the claim in `claims.toml`";
        /// The largest number with which the claim holds.
        at_most: Option<Literal> = "none", "that of the claim in `claims.toml`";
    }
}

/// A value as written after `--set KEY=`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd)]
pub struct Literal(pub String);

impl Param for Literal {
    fn expects() -> String {
        "a number or a text".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Int(n) => Ok(Literal(n.to_string())),
            Raw::Float(text) | Raw::Str(text) => Ok(Literal(text.clone())),
            Raw::Bool(b) => Ok(Literal(b.to_string())),
            Raw::Table(_) | Raw::Other(_) => Err(format!("is not {}", Self::expects())),
        }
    }
    fn show(&self) -> String {
        self.0.clone()
    }
}

/// The numbers that a setting may take.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// Smallest number, in `unit`.
    pub low: f64,
    /// Largest number, in `unit`.
    pub high: f64,
    /// The unit that is written after a number; may be empty.
    pub unit: String,
    /// Whether only whole numbers are allowed.
    pub whole: bool,
}

/// An open setting.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its parameters.
    pub params: SettingParams,
    /// The keys that it sets, all to the same value: as after `--set`, `NAME:KEY` for a single
    /// scenario, or `profile`.
    pub keys: Vec<String>,
    /// Its values, if they are numbers.
    pub range: Option<Range>,
    /// Its values, if they are listed.
    pub choices: Vec<String>,
}

/// `[seek]` of a file.
#[derive(Clone, Debug)]
pub struct Seek {
    /// Its parameters.
    pub params: SeekParams,
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
    let found = read(&root, &mut problems);
    if syntax.is_empty() && problems.is_empty() { Ok(found) } else { Err(Diagnostics::new(sources, syntax, problems)) }
}

/// Reads the table from the root of a file.
pub(crate) fn read(root: &Table, problems: &mut Vec<Item>) -> Option<Seek> {
    let entry = root.get("seek")?;
    let Some(table) = entry.node.table() else {
        problems.push(Item::new(entry.node.at, "`seek` is not a table", "must be a table", "write `[seek]`"));
        return None;
    };
    let part = Part { table, at: entry.key_at, path: "seek" };
    part.refuse_unknown(SeekParams::FIELDS, &["scenarios", "setting", "claim"], problems);
    let params = SeekParams::read(&mut reader(part, SeekParams::FIELDS, problems));
    let scenarios = texts(part, "scenarios", "files of scenarios: `[\"load.toml\"]`", problems);
    let tables = |key: &'static str, problems: &mut Vec<Item>| listed_tables(table, key, problems);
    let settings: Vec<Setting> = tables("setting", problems)
        .into_iter()
        .map(|(path, table, at)| setting(Part { table, at, path: &path }, problems))
        .collect();
    let claims: Vec<ClaimParams> = tables("claim", problems)
        .into_iter()
        .map(|(path, table, at)| {
            let part = Part { table, at, path: &path };
            part.refuse_unknown(ClaimParams::FIELDS, &[], problems);
            ClaimParams::read(&mut reader(part, ClaimParams::FIELDS, problems))
        })
        .collect();
    let mut refuse = |message: &str, label: &str, hint: &str| problems.push(Item::new(part.at, message, label, hint));
    if settings.is_empty() {
        refuse(
            "`seek` has no setting",
            "nothing to search over",
            "add `[[seek.setting]]` with `name`, `keys`, `low`, `high` and `source`",
        );
    }
    if let Some(name) = repeated(settings.iter().map(|s| s.params.name.as_str())) {
        refuse(&format!("two settings are called `{name}`"), "in this table", "give every setting its own `name`");
    }
    if let Some(id) = repeated(claims.iter().map(|c| c.id.as_str())) {
        refuse(&format!("two claims are called `{id}`"), "in this table", "give every claim its own `id`");
    }
    match params.objective {
        Objective::Claims if !claims.iter().any(|claim| claim.fit) => {
            refuse(
                "`seek` has no claim to search for",
                "no `[[seek.claim]]` with `fit`",
                "add `[[seek.claim]]` with the `id` of a claim",
            );
        }
        Objective::Ratio if !claims.is_empty() => {
            refuse("`seek` has `objective = \"ratio\"` and claims", "only one is allowed", "remove `objective`, or the claims");
        }
        Objective::Ratio if [&params.metric, &params.system, &params.versus].iter().any(|given| given.is_none()) => {
            refuse(
                "`objective = \"ratio\"` needs `metric`, `system` and `versus`",
                "one is missing",
                "write the metric and the two systems",
            );
        }
        _ => {}
    }
    Some(Seek { params, scenarios, settings, claims })
}

fn reader<'a>(part: Part<'a>, fields: &'a [Field], problems: &'a mut Vec<Item>) -> PartReader<'a> {
    PartReader { part, fields, problems, instead: None, plugin: None }
}

/// Returns the tables of a list like `[[seek.setting]]`, with their names in messages and their
/// places.
fn listed_tables<'a>(table: &'a Table, key: &str, problems: &mut Vec<Item>) -> Vec<(String, &'a Table, crate::text::diag::Place)> {
    let Some(entry) = table.get(key) else { return Vec::new() };
    let nodes = match &entry.node.value {
        Value::List(nodes) if nodes.iter().all(|node| node.table().is_some()) => nodes,
        _ => {
            let hint = format!("write `[[seek.{key}]]`, with two brackets, before each {key}");
            problems.push(Item::new(
                entry.key_at,
                format!("`seek.{key}` is not a list of tables"),
                format!("must be [[seek.{key}]]"),
                hint,
            ));
            return Vec::new();
        }
    };
    let one = |(i, node): (usize, &'a Node)| Some((format!("seek.{key}.{i}"), node.table()?, node.at));
    nodes.iter().enumerate().filter_map(one).collect()
}

/// Reads a list of texts, or a single text.
fn texts(part: Part<'_>, key: &str, expects: &str, problems: &mut Vec<Item>) -> Vec<String> {
    let Some(entry) = part.table.get(key) else { return Vec::new() };
    let nodes = match &entry.node.value {
        Value::List(nodes) => nodes.as_slice(),
        _ => std::slice::from_ref(&entry.node),
    };
    let mut found = Vec::new();
    for node in nodes {
        match Literal::parse(&node.raw()) {
            Ok(Literal(text)) if !found.contains(&text) => found.push(text),
            Ok(_) => problems.push(Item::new(
                node.at,
                format!("`{}`: {} is given twice", part.name_of(key), node.named()),
                "given before",
                format!("`{key}` lists {expects}"),
            )),
            Err(why) => problems.push(Item::new(
                node.at,
                format!("`{}`: {} {why}", part.name_of(key), node.named()),
                "here",
                format!("`{key}` lists {expects}"),
            )),
        }
    }
    found
}

fn setting(part: Part<'_>, problems: &mut Vec<Item>) -> Setting {
    part.refuse_unknown(SettingParams::FIELDS, &["keys", "choices"], problems);
    let before = problems.len();
    let params = SettingParams::read(&mut reader(part, SettingParams::FIELDS, problems));
    let keys = texts(part, "keys", "keys as after `--set`: `[\"system.SSP.transport.unsched_bytes\"]`", problems);
    let choices = texts(part, "choices", "values: `[\"tail\", \"push_out\"]`", problems);
    if problems.len() > before {
        return Setting { params, keys, range: None, choices };
    }
    let mut refuse = |key: &str, message: String, label: &str, hint: &str| problems.push(part.problem(key, message, label, hint));
    if keys.is_empty() {
        refuse(
            "keys",
            "names no key of the scenario".to_owned(),
            "nothing is set",
            "write keys as after `--set`: `keys = [\"workload.web.load\"]`",
        );
    }
    let mut range = None;
    match (&params.low, &params.high) {
        (Some(low), Some(high)) if choices.is_empty() => match numbers(&low.0, &high.0) {
            Some(found) if found.low >= found.high => {
                refuse(
                    "high",
                    format!("`{}` is not above `low`, which is `{}`", high.0, low.0),
                    "too small",
                    "write the smallest value in `low` and the largest in `high`",
                );
            }
            Some(found) if params.log && found.low <= 0.0 => {
                refuse("low", format!("`{}` has no logarithm", low.0), "must be above 0", "raise `low`, or remove `log`");
            }
            Some(found) => range = Some(found),
            None => refuse(
                "low",
                format!("`{}` and `{}` are not two numbers with compatible units", low.0, high.0),
                "no range",
                "write numbers with units, like `8KB` and `1MB`; list other values as `choices`",
            ),
        },
        (None, None) if choices.len() >= 2 => {}
        (None, None) => refuse(
            "choices",
            "a setting needs `low` and `high`, or at least two `choices`".to_owned(),
            "too few values",
            "write its range or its values",
        ),
        _ => refuse(
            "low",
            "a setting has either `low` and `high`, or `choices`".to_owned(),
            "only one is allowed",
            "write its range or its values",
        ),
    }
    if params.log && range.is_none() && params.low.is_none() {
        refuse("log", "has no effect on `choices`".to_owned(), "ignored", "remove `log`");
    }
    Setting { params, keys, range, choices }
}

/// Reads two numbers with compatible units, in the smallest unit of their kind.
fn numbers(low: &str, high: &str) -> Option<Range> {
    let both = |read: &dyn Fn(&str) -> Option<f64>| Some((read(low)?, read(high)?));
    let range = |(low, high), unit: &str, whole| Range { low, high, unit: unit.to_owned(), whole };
    if let Some(found) = both(&|text| text.parse::<f64>().ok().filter(|x| x.is_finite())) {
        let whole = low.parse::<i64>().is_ok() && high.parse::<i64>().is_ok();
        return Some(range(found, "", whole));
    }
    let bytes = |text: &str| parse_bytes(text).ok().map(|bytes| bytes.0 as f64);
    let nanoseconds = |text: &str| parse_dur(text).ok().map(|time| time.0 as f64 / 1e3);
    let rate = |text: &str| parse_rate(text).ok().map(|rate| rate.0 as f64);
    let of_units = [(both(&bytes), "B"), (both(&nanoseconds), "ns"), (both(&rate), "bps")];
    if let Some((found, unit)) = of_units.into_iter().find_map(|(found, unit)| Some((found?, unit))) {
        return Some(range(found, unit, true));
    }
    // Any other unit that both have: `20pkt`, `5%`.
    let split = |text: &str| {
        let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+')))?;
        Some((text[..end].parse::<f64>().ok()?, text[..end].parse::<i64>().is_ok(), text[end..].to_owned()))
    };
    let ((low, one, unit), (high, other, same)) = (split(low)?, split(high)?);
    (unit == same).then(|| range((low, high), &unit, one && other))
}

fn repeated<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = Vec::new();
    for name in names {
        if seen.contains(&name) {
            return Some(name);
        }
        seen.push(name);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTING: &str =
        "[[seek.setting]]\nname = \"burst\"\nkeys = [\"a.b\"]\nlow = \"8KB\"\nhigh = \"1MB\"\nlog = true\nsource = \"x\"\n";

    fn messages(text: &str) -> Vec<String> {
        match seek(text, "f.toml") {
            Ok(_) => Vec::new(),
            Err(found) => found.items().iter().map(|item| item.message.clone()).collect(),
        }
    }

    #[test]
    fn settings_are_numbers_in_one_unit_or_choices() {
        let whole = format!("[seek]\n{SETTING}[[seek.claim]]\nid = \"c\"\n");
        let found = seek(&whole, "f.toml").unwrap().unwrap();
        let burst = &found.settings[0];
        assert_eq!(burst.range, Some(Range { low: 8e3, high: 1e6, unit: "B".into(), whole: true }));
        assert_eq!((burst.keys.as_slice(), found.params.points, found.claims[0].fit), (&["a.b".to_owned()][..], 64, true));
        let both = |low, high| numbers(low, high).map(|r| (r.low, r.high, r.unit, r.whole));
        assert_eq!(both("1us", "2ms"), Some((1e3, 2e6, "ns".into(), true)));
        assert_eq!(both("1Gbps", "10Gbps"), Some((1e9, 1e10, "bps".into(), true)));
        assert_eq!(both("20pkt", "400pkt"), Some((20.0, 400.0, "pkt".into(), true)));
        assert_eq!(both("0.5%", "4%"), Some((0.5, 4.0, "%".into(), false)));
        assert_eq!(both("1", "16"), Some((1.0, 16.0, String::new(), true)));
        assert_eq!(both("0.1", "1"), Some((0.1, 1.0, String::new(), false)));
        for (low, high) in [("1us", "1KB"), ("1pkt", "1KB"), ("a", "b"), ("nan", "1"), ("1", "inf"), ("", "")] {
            assert_eq!(both(low, high), None, "{low} {high}");
        }
        let choices = whole.replace("low = \"8KB\"\nhigh = \"1MB\"\nlog = true", "choices = [1, \"two\", true, 0.5]");
        assert_eq!(seek(&choices, "f.toml").unwrap().unwrap().settings[0].choices, ["1", "two", "true", "0.5"]);
        assert!(seek("seed = 1\n", "f.toml").unwrap().is_none());
    }

    #[test]
    fn mistakes_are_reported_together() {
        let claim = "[[seek.claim]]\nid = \"c\"\n";
        for (text, wanted) in [
            (format!("[seek]\n{claim}"), "`seek` has no setting"),
            (format!("[seek]\n{SETTING}"), "`seek` has no claim to search for"),
            (format!("[seek]\n{SETTING}{claim}fit = false\n"), "`seek` has no claim to search for"),
            (format!("[seek]\n{SETTING}{SETTING}{claim}"), "two settings are called `burst`"),
            (format!("[seek]\n{SETTING}{claim}{claim}"), "two claims are called `c`"),
            (
                format!("[seek]\n{}{claim}", SETTING.replace("8KB", "2MB")),
                "`seek.setting.0.high`: `1MB` is not above `low`, which is `2MB`",
            ),
            (format!("[seek]\n{}{claim}", SETTING.replace("8KB", "0B")), "`seek.setting.0.low`: `0B` has no logarithm"),
            (
                format!("[seek]\n{}{claim}", SETTING.replace("1MB", "1us")),
                "`seek.setting.0.low`: `8KB` and `1us` are not two numbers with compatible units",
            ),
            (
                format!("[seek]\n{}{claim}", SETTING.replace("keys = [\"a.b\"]\n", "")),
                "`seek.setting.0.keys`: names no key of the scenario",
            ),
            (
                format!("[seek]\n{}{claim}", SETTING.replace("[\"a.b\"]", "[\"a.b\", \"a.b\"]")),
                "`seek.setting.0.keys`: `a.b` is given twice",
            ),
            (
                format!("[seek]\n{SETTING}choices = [1, 2]\n{claim}"),
                "`seek.setting.0.low`: a setting has either `low` and `high`, or `choices`",
            ),
            (
                format!("[seek]\n{}{claim}", SETTING.replace("low = \"8KB\"\n", "")),
                "`seek.setting.0.low`: a setting has either `low` and `high`, or `choices`",
            ),
            (format!("[seek]\nobjective = \"ratio\"\n{SETTING}"), "`objective = \"ratio\"` needs `metric`, `system` and `versus`"),
            (
                format!("[seek]\nobjective = \"ratios\"\n{SETTING}"),
                "`seek.objective`: `ratios` is not one of `claims`, `ratio`; did you mean `ratio`?",
            ),
            (format!("[seek]\npionts = 3\n{SETTING}{claim}"), "unknown key `pionts` in [seek]"),
            ("seek = 3\n".to_owned(), "`seek` is not a table"),
            ("[seek]\nsetting = 3\n[[seek.claim]]\nid = \"c\"\n".to_owned(), "`seek.setting` is not a list of tables"),
        ] {
            let found = messages(&text);
            assert!(found.iter().any(|message| message == wanted), "{wanted}\n{found:#?}");
        }
    }
}
