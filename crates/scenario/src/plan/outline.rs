//! Systems as keys and values, for scenarios that are built in Rust; and for an entry a minimal system
//! with the entries that it needs in other slots and the settings that its META implies, for tests.
//! The reader of scenarios does not use them.

use crate::plan::render::quoted;
use crate::system::slots::{SLOTS, slots};
use std::collections::VecDeque;

/// A system as dotted keys with their values, in the order in which they were set. A method per slot
/// puts an entry with its parameters in the slot; a slot without an entry stays empty or has its default.
///
/// ```
/// use base::params::Params as _;
/// let limit = base::params::Auto::Set(base::Limit::Packets(50));
/// let queue = fabric::qdisc::droptail::Params { limit, ..fabric::qdisc::droptail::Params::defaults() };
/// let system = scenario::Outline::named("TCP").transport(proto::transport::newreno::Params::defaults()).qdisc(queue);
/// assert_eq!(system.get("qdisc.limit"), Some("50pkt"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline(Vec<(String, String)>);

/// Generates the methods that fill slots from the table of slots.
macro_rules! fill {
    ($($(#[doc = $about:literal])+ $slot:ident: $($module:ident)::+, $unfilled:ident $(($kind:literal, $source:literal))?;)*) => {
        impl Outline {
            $(
                #[doc = concat!("Puts an entry in the slot `", stringify!($slot), "`, in place of the entry that was there.")]
                ///
                $(#[doc = $about])+
                pub fn $slot(self, entry: impl Into<$($module)::+::AnyParams>) -> Outline {
                    let entry = entry.into();
                    self.fill(stringify!($slot), entry.name(), entry.changed())
                }
            )*
        }
    };
}
slots!(fill);

impl Outline {
    /// Creates a system with this label and empty slots.
    pub fn named(label: &str) -> Outline {
        Outline::default().set("label", label)
    }
    fn fill(self, slot: &str, kind: &str, values: Vec<(&'static str, String)>) -> Outline {
        let system = self.without(slot).set(&format!("{slot}.kind"), kind);
        values.iter().fold(system, |system, (key, value)| system.set(&format!("{slot}.{key}"), value))
    }
    /// Sets a key of the system, such as `qdisc.limit`, replacing an earlier value.
    pub fn set(mut self, key: &str, value: &str) -> Outline {
        match self.0.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => value.clone_into(old),
            None => self.0.push((key.to_owned(), value.to_owned())),
        }
        self
    }
    /// Removes all keys of a part, such as `router` or `nic.qdisc`.
    pub fn without(mut self, part: &str) -> Outline {
        self.0.retain(|(key, _)| !key.strip_prefix(part).is_some_and(|rest| rest.starts_with('.')));
        self
    }
    /// Returns the keys, in the order in which they were set.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_str())
    }
    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }
    /// Returns the `[[system]]` table as TOML.
    pub fn toml(&self) -> String {
        let lines = self.0.iter().map(|(key, value)| format!("{key} = {}\n", quoted(value)));
        format!("[[system]]\n{}", lines.collect::<String>())
    }
}

/// Returns a system with the entry `kind` in `slot`, labelled with the name of the entry. Settings
/// that the entry implies take precedence over the entries that it needs, and both over the
/// settings and needs of other parts. If no part needs a transport, the system gets the first
/// transport of the room. Panics if the slot or the entry does not exist.
pub fn system_of(slot: &str, kind: &str) -> Outline {
    let mut system = Outline::default().set("label", kind).set(&format!("{slot}.kind"), kind);
    let mut waiting = VecDeque::from([(slot.to_owned(), kind.to_owned())]);
    loop {
        while let Some((slot, kind)) = waiting.pop_front() {
            let entry =
                crate::system::slots::slot(&slot).room.entry(&kind).unwrap_or_else(|| panic!("no {slot} is called `{kind}`"));
            let needed =
                SLOTS.iter().filter_map(|slot| Some((format!("{}.kind", slot.name), *slot.wanted(&entry.meta.needs).first()?)));
            let implied = entry.meta.implies.iter().map(|(key, value)| ((*key).to_owned(), *value));
            for (key, value) in implied.chain(needed) {
                if system.get(&key).is_some() {
                    continue;
                }
                system = system.set(&key, value);
                // The kind of host, `nic.kind`, is no entry.
                if let Some((slot, "kind")) = key.split_once('.').filter(|(slot, _)| *slot != "nic") {
                    waiting.push_back((slot.to_owned(), value.to_owned()));
                }
            }
        }
        if system.get("transport.kind").is_some() {
            return system;
        }
        let first = proto::transport::ENTRIES[0].name;
        system = system.set("transport.kind", first);
        waiting.push_back(("transport".to_owned(), first.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, load};

    /// The outline of every entry that can be part of a system can run.
    #[test]
    fn every_entry_has_a_system() {
        let rest = "[topology]\nkind = 'leaf_spine'\n[workload.web]\nkind = 'poisson'\nflows = 1\n";
        for slot in SLOTS {
            for kind in slot.room.names() {
                let text = format!("{rest}{}", system_of(slot.name, kind).toml());
                let plan =
                    load(&text, "outline.toml", ".".as_ref(), &Options::default()).unwrap_or_else(|e| panic!("{e}\nin\n{text}"));
                let parts = plan.points[0].run.system.parts();
                assert!(parts.iter().any(|part| part.slot.name == slot.name && part.entry.name == kind), "{text}");
            }
        }
    }

    #[test]
    fn needs_and_implied_settings_are_followed() {
        let memr = system_of("router", "memr");
        let kind = |slot: &str| memr.get(&format!("{slot}.kind"));
        assert_eq!((kind("agent"), kind("transport"), kind("qdisc")), (Some("merp"), Some("merp"), Some("strict")));
        assert_eq!(memr.get("qdisc.evict"), Some("worst_class"));
        assert_eq!(system_of("qdisc", "pfabric").get("nic.low_water"), Some("1B"));
        let limited = system_of("transport", "newreno").set("qdisc.limit", "9pkt").set("qdisc.limit", "8pkt");
        assert_eq!(limited.toml(), "[[system]]\nlabel = \"newreno\"\ntransport.kind = \"newreno\"\nqdisc.limit = \"8pkt\"\n");
        let bare = limited.set("transport.min_rto", "1ms").without("transport").without("qd");
        assert_eq!(bare.keys().collect::<Vec<_>>(), ["label", "qdisc.limit"]);
    }
}
