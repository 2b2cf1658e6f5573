//! Reading claims.

use super::params::{ClaimKind, ClaimParams};
use super::reading::{did_you_mean, quoted, reader};
use crate::text::diag::Item;
use crate::text::part::{Part, listed};
use base::params::{Param as _, Params as _, Raw};

/// Reads a claim. Asks for the keys that its kind needs, and refuses those without effect.
pub(super) fn claim(part: Part<'_>, names: &[String], problems: &mut Vec<Item>) -> ClaimParams {
    part.refuse_unknown(ClaimParams::FIELDS, &[], problems);
    let before = problems.len();
    let params = ClaimParams::read(&mut reader(part, ClaimParams::FIELDS, problems));
    let given = |key: &str| part.table.get(key).is_some();
    let mut refuse = |key: &str, message: String, label: &str, hint: String| problems.push(part.problem(key, message, label, hint));
    if params.id.is_empty() && given("id") {
        refuse("id", "is empty".to_owned(), "must be a text", "write the name of the claim".to_owned());
    }
    if let Some(Raw::Bool(printed)) = part.table.get("printed").map(|entry| entry.node.raw()) {
        let hint = "write the value that the paper prints: `0.41`, `\"40 % less\"`".to_owned();
        refuse("printed", format!("`{printed}` is not a number or a text"), "must be a number or a text", hint);
    }
    if let Some(name) = params.scenario.as_ref().filter(|name| !names.is_empty() && !names.contains(name)) {
        refuse(
            "scenario",
            format!("there is no scenario `{name}`"),
            &did_you_mean(name, names),
            format!("the search has {}", quoted(names)),
        );
    }
    if let (Some(low), Some(high)) = (&params.at_least, &params.at_most)
        && low.value > high.value
    {
        let message = format!("`{}` is below `at_least`, which is `{}`", high.show(), low.show());
        refuse(
            "at_most",
            message,
            "no number is within these bounds",
            "write the smallest number in `at_least`, the largest in `at_most`".to_owned(),
        );
    }
    if params.metric.is_none() {
        for key in ["kind", "system", "versus", "printed"].into_iter().filter(|key| given(key)) {
            let hint = format!("the claim in `claims.toml` has its own: remove `{key}`, or add `metric` for a claim of this file");
            refuse(key, "has no effect without `metric`".to_owned(), "not used", hint);
        }
    } else if before == problems.len() {
        claim_keys(part, &params, problems);
    }
    params
}

/// Checks the keys of a claim with a metric.
fn claim_keys(part: Part<'_>, params: &ClaimParams, problems: &mut Vec<Item>) {
    let kind = params.kind.unwrap_or(ClaimKind::Value);
    for (key, value) in [("system", &params.system), ("versus", &params.versus)] {
        let (needed, word) = (kind.needs().contains(&key), kind.show());
        if needed && value.is_none() {
            let message = format!("`{}` is missing", part.name_of(key));
            let hint = format!("a claim of kind `{word}` needs {}", listed(kind.needs().iter().copied()));
            problems.push(Item::new(part.at, message, format!("needs `{key}`"), hint).absent());
        } else if !needed && part.table.get(key).is_some() {
            let hint = format!("remove `{key}`, or write another `kind`");
            problems.push(part.problem(key, format!("has no effect on a claim of kind `{word}`"), "not used", hint));
        }
    }
    if params.system.is_some() && params.system == params.versus {
        problems.push(part.problem("versus", "is the same system as `system`", "nothing to compare", "name two systems"));
    }
    if params.at_least.is_none() && params.at_most.is_none() {
        let message = format!("`{}` has no bounds", part.path);
        let hint = "add `at_least` or `at_most`: the numbers with which the claim holds";
        problems.push(Item::new(part.at, message, "needs `at_least` or `at_most`", hint).absent());
    }
}
