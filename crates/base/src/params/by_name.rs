//! Parameters that a program sets by name, and those that it has set.

use super::{Params, Raw, Reader};
use plugin::library::Library;

/// Reads values by name and collects the problems.
struct Named<'a>(&'a [(&'a str, &'a str)], Vec<String>);

impl Reader for Named<'_> {
    fn get(&mut self, key: &'static str) -> Option<Raw> {
        self.0.iter().find(|(name, _)| *name == key).map(|(_, value)| Raw::Str((*value).to_owned()))
    }
    fn fail(&mut self, key: &'static str, message: String) {
        self.1.push(format!("`{key}`: {message}"));
    }
}

/// See [`Params::of`].
pub(super) fn of<P: Params>(values: &[(&str, &str)]) -> Result<P, String> {
    let unknown = values.iter().filter(|(name, _)| P::FIELDS.iter().all(|field| field.name != *name));
    let mut named = Named(values, unknown.map(|(name, _)| format!("`{name}` is not a parameter")).collect());
    let params = P::read(&mut named);
    if named.1.is_empty() { Ok(params) } else { Err(named.1.join("\n")) }
}

/// Gives the fields that have no default, and the plug-in.
struct Required<'a>(&'a [(&'static str, String)], Option<&'static Library>);

impl Reader for Required<'_> {
    fn get(&mut self, key: &'static str) -> Option<Raw> {
        self.0.iter().find(|(name, _)| *name == key).map(|(_, value)| Raw::Str(value.clone()))
    }
    // Problems with a value are found when the scenario is read.
    fn fail(&mut self, _: &'static str, _: String) {}
    fn plugin(&self) -> Option<&'static Library> {
        self.1
    }
}

/// See [`Params::changed`].
pub(super) fn changed<P: Params>(params: &P) -> Vec<(&'static str, String)> {
    let no_default = |name: &str| P::FIELDS.iter().any(|field| field.name == name && field.default.is_empty());
    let shown = params.show();
    let required: Vec<_> = shown.iter().filter(|(name, _)| no_default(name)).cloned().collect();
    let defaults = P::read(&mut Required(&required, params.plugin())).show();
    shown.into_iter().filter(|field| no_default(field.0) || !defaults.contains(field)).collect()
}
