//! Reading settings.

use super::keys::{KeyError, SettingKey};
use super::params::{Literal, SettingParams};
use super::range::Range;
use super::reading::{did_you_mean, is_same, quoted, reader, texts};
use crate::text::diag::{Item, Place};
use crate::text::part::Part;
use base::params::{Param as _, Params as _};

/// An open setting.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its parameters.
    pub params: SettingParams,
    /// The keys that it sets, all to the same value.
    pub keys: Vec<SettingKey>,
    /// Its values, if they are numbers.
    pub range: Option<Range>,
    /// Its values, if they are listed.
    pub choices: Vec<String>,
    /// Its usual value, written as the search writes values.
    pub usual: Option<String>,
}

/// Reads a setting, with the places of its keys.
pub(super) fn setting(part: Part<'_>, names: &[String], problems: &mut Vec<Item>) -> (Setting, Vec<Place>) {
    part.refuse_unknown(SettingParams::FIELDS, &["keys", "choices"], problems);
    let before = problems.len();
    let params = SettingParams::read(&mut reader(part, SettingParams::FIELDS, problems));
    if params.name.is_empty() && part.table.get("name").is_some() {
        problems.push(part.problem("name", "is empty", "must be a text", "write the name of the setting in tables and figures"));
    }
    let (keys, places) = setting_keys(part, names, problems).into_iter().unzip();
    let choices: Vec<String> =
        texts(part, "choices", "values: `[\"tail\", \"push_out\"]`", problems).into_iter().map(|(text, _)| text).collect();
    let mut made = Setting { params, keys, range: None, choices, usual: None };
    if problems.len() == before {
        made.range = range(part, &made, problems);
        made.usual = usual(part, &made, problems);
    }
    (made, places)
}

/// Reads the keys of a setting, with their places.
fn setting_keys(part: Part<'_>, names: &[String], problems: &mut Vec<Item>) -> Vec<(SettingKey, Place)> {
    const EXPECTS: &str = "keys as after `--set`: `[\"system.SSP.transport.unsched_bytes\"]`";
    if part.table.get("keys").is_none() {
        let hint = "write keys as after `--set`: `keys = [\"workload.web.load\"]`";
        problems.push(part.problem("keys", "names no key of the scenario", "nothing is set", hint).absent());
    }
    let mut found = Vec::new();
    for (text, at) in texts(part, "keys", EXPECTS, problems) {
        let mut refuse = |why: String, label: String, hint: String| {
            problems.push(Item::new(at, format!("`{}`: {why}", part.name_of("keys")), label, hint));
        };
        match SettingKey::read(&text, names) {
            Ok(key) => found.push((key, at)),
            Err(KeyError::Scenario(name)) => {
                refuse(
                    format!("there is no scenario `{name}`"),
                    did_you_mean(&name, names),
                    format!("the search has {}", quoted(names)),
                );
            }
            Err(KeyError::NotDotted) => {
                let hint = "put names with dots or spaces in quotes: `system.\"MERP 0.9\".agent.alpha`".to_owned();
                refuse(format!("`{text}` is not a dotted key"), "not a key".to_owned(), hint);
            }
            Err(KeyError::NoEffect) => {
                let hint = "name keys on which results depend".to_owned();
                refuse(format!("`{text}` has no effect on results"), "not searched".to_owned(), hint);
            }
        }
    }
    found
}

/// Reads the range of a setting. Returns `None` if its values are listed.
fn range(part: Part<'_>, setting: &Setting, problems: &mut Vec<Item>) -> Option<Range> {
    let Setting { params, keys, choices, .. } = setting;
    let mut refuse = |key: &str, message: String, label: &str, hint: &str| {
        problems.push(part.problem(key, message, label, hint));
        None
    };
    let choose = "write its range or its values";
    match (&params.low, &params.high) {
        (None, None) if part.table.get("log").is_some() => {
            refuse("log", "has no effect on `choices`".to_owned(), "ignored", "remove `log`")
        }
        (None, None) if choices.len() >= 2 => None,
        (None, None) => {
            refuse("choices", "a setting needs `low` and `high`, or at least two `choices`".to_owned(), "too few values", choose)
        }
        (Some(low), Some(high)) if choices.is_empty() => match Range::between(&low.0, &high.0) {
            None => refuse(
                "low",
                format!("`{}` and `{}` are not two numbers with compatible units", low.0, high.0),
                "no range",
                "write numbers with units, like `8KB` and `1MB`, and at most 18 digits; list other values as `choices`",
            ),
            Some(_) if keys.iter().any(SettingKey::is_profile) => {
                refuse("low", "a profile is no number".to_owned(), "no range", "list the profiles as `choices`")
            }
            Some(found) if found.low >= found.high => refuse(
                "high",
                format!("`{}` is not above `low`, which is `{}`", high.0, low.0),
                "too small",
                "write the smallest value in `low` and the largest in `high`",
            ),
            Some(found) if params.log && !found.is_positive() => {
                refuse("low", format!("`{}` has no logarithm", low.0), "must be above 0", "raise `low`, or remove `log`")
            }
            found => found,
        },
        _ => refuse("low", "a setting has either `low` and `high`, or `choices`".to_owned(), "only one is allowed", choose),
    }
}

/// Reads the usual value of a setting.
fn usual(part: Part<'_>, setting: &Setting, problems: &mut Vec<Item>) -> Option<String> {
    // The text itself: `none` may be one of the choices.
    let Literal(given) = Literal::parse(&part.table.get("usual")?.node.raw()).ok()?;
    let mut refuse = |why: &str, label: String, hint: String| {
        problems.push(part.problem("usual", format!("`{given}` {why}"), label, hint));
        None
    };
    match &setting.range {
        Some(range) => {
            let ends = [&setting.params.low, &setting.params.high].map(|end| end.as_ref().map_or("", |end| end.0.as_str()));
            let from_to = format!("from `{}` to `{}`", ends[0], ends[1]);
            match range.value(&given) {
                Ok(value) => Some(value),
                Err(why) => refuse(
                    &why,
                    format!("must be {from_to}"),
                    "write a value of the range, widen the range, or remove `usual`".to_owned(),
                ),
            }
        }
        None if setting.choices.is_empty() => None,
        None => match setting.choices.iter().find(|choice| is_same(choice, &given)) {
            Some(choice) => Some(choice.clone()),
            None => {
                let label = did_you_mean(&given, &setting.choices);
                refuse("is not one of the `choices`", label, format!("the choices are {}", quoted(&setting.choices)))
            }
        },
    }
}
