//! Keys of settings: the same key in different spellings, and keys that contain others.

use crate::text::tree::parse_key;

/// The key whose values are profiles.
const PROFILE: &str = "profile";

/// A key as after `--set`, for all scenarios of the search or for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingKey {
    /// The scenario for which the key is set; `None`: all.
    pub scenario: Option<String>,
    /// The key in the scenario, as the file writes it.
    pub(super) key: String,
    /// The names in the key.
    path: Vec<String>,
}

impl SettingKey {
    /// Reads `KEY` or `NAME:KEY`. `scenarios` are the names of the scenarios of the search; empty:
    /// unknown. The error completes a sentence that begins with the key.
    pub(super) fn read(text: &str, scenarios: &[String]) -> Result<SettingKey, KeyError> {
        let scenario = text.split_once(':').filter(|(name, _)| {
            // A colon may also be part of a label: `system.a:b.qdisc.mark`.
            scenarios.iter().any(|known| known == name) || !name.contains(['.', '"', '\''])
        });
        let (scenario, key) = scenario.map_or((None, text), |(name, key)| (Some(name.to_owned()), key));
        if let Some(name) = scenario.clone().filter(|name| !scenarios.is_empty() && !scenarios.contains(name)) {
            return Err(KeyError::Scenario(name));
        }
        let path = parse_key(key).ok_or(KeyError::NotDotted)?;
        match path[0].as_str() {
            "seek" => Err(KeyError::NoEffect),
            "name" if path.len() == 1 => Err(KeyError::NoEffect),
            _ => Ok(SettingKey { scenario, key: key.trim().to_owned(), path }),
        }
    }
    /// Returns the key in the scenario: `profile`, if the values of the key are profiles.
    pub fn written(&self) -> &str {
        if self.is_profile() { PROFILE } else { &self.key }
    }
    /// Returns the names in the key.
    pub fn path(&self) -> &[String] {
        &self.path
    }
    /// Returns whether the values of the key are profiles.
    pub(super) fn is_profile(&self) -> bool {
        self.path == [PROFILE]
    }
    /// Returns whether two keys are set in the same scenario.
    pub(super) fn meets(&self, other: &SettingKey) -> bool {
        self.scenario.is_none() || other.scenario.is_none() || self.scenario == other.scenario
    }
    /// Returns whether two keys set the same values: they are equal, or one contains the other. Keys
    /// for profiles do not, because all profiles of a place are applied.
    pub(super) fn overlaps(&self, other: &SettingKey) -> bool {
        let shorter = self.path.len().min(other.path.len());
        self.meets(other) && self.path[..shorter] == other.path[..shorter] && !self.is_profile()
    }
}

/// Why a text is no key of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyError {
    /// It names a scenario that the search does not have.
    Scenario(String),
    /// It is not a dotted key.
    NotDotted,
    /// No result of a scenario depends on it.
    NoEffect,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> SettingKey {
        SettingKey::read(text, &["one".to_owned(), "two.small".to_owned()]).unwrap()
    }

    #[test]
    fn a_key_has_one_meaning_in_all_spellings() {
        for (one, other) in [
            ("a.b", "a.b"),
            ("a.b", " a . \"b\""),
            ("a.b", "a.'b'.c"),
            ("one:a.b", "a.b.c"),
            ("two.small:a.b", "two.small:a"),
            ("system.A.transport", "system.A.transport.kind"),
        ] {
            assert!(key(one).overlaps(&key(other)) && key(other).overlaps(&key(one)), "{one} {other}");
        }
        for (one, other) in [("a.b", "a.bc"), ("one:a.b", "two.small:a.b"), ("profile", "profile"), ("a.\"b.c\"", "a.b.c")] {
            assert!(!key(one).overlaps(&key(other)), "{one} {other}");
        }
        let own = key("two.small:workload.w.load");
        assert_eq!((own.scenario.as_deref(), own.key.as_str()), (Some("two.small"), "workload.w.load"));
        assert_eq!(key("system.a:b.label").scenario, None);
        assert_eq!((key("one:'profile'").written(), key("a.b").written()), ("profile", "a.b"));
    }

    #[test]
    fn texts_that_are_no_keys_are_refused() {
        for (text, error) in [
            ("three:a.b", KeyError::Scenario("three".to_owned())),
            ("a..b", KeyError::NotDotted),
            ("one:", KeyError::NotDotted),
            ("seek.points", KeyError::NoEffect),
            ("one:name", KeyError::NoEffect),
        ] {
            assert_eq!(SettingKey::read(text, &["one".to_owned()]), Err(error), "{text}");
        }
        assert!(SettingKey::read("three:a.b", &[]).is_ok(), "the names of the scenarios are not known");
    }
}
