//! The rest of the scenario as an entry sees it, as plain data: the kinds and parameters of the
//! other parts of its system, and the load and sizes of the workloads. An entry reads the values
//! that it needs by name, so that it does not depend on other rooms.

use crate::Fraction;
use crate::params::{Param, Raw};
use std::fmt;
use std::ops::Deref;
use std::sync::OnceLock;

/// The parts of a system, by slot. Empty slots are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given(Vec<GivenPart>);

/// One part of a system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenPart {
    /// The slot that it fills: `agent`.
    pub slot: &'static str,
    /// The name of its entry.
    pub kind: &'static str,
    /// All its parameters as (name, value as written).
    pub values: Vec<(&'static str, String)>,
}

impl Given {
    /// Creates a system with these parts, in the order of the slots.
    pub fn new(parts: Vec<GivenPart>) -> Given {
        Given(parts)
    }
    /// Returns a system without parts, for tests of single entries.
    pub fn none() -> &'static Given {
        static NONE: Given = Given(Vec::new());
        &NONE
    }
    /// Returns all parts.
    pub fn parts(&self) -> &[GivenPart] {
        &self.0
    }
    /// Returns the kind in a slot, or `None` if the slot is empty.
    pub fn kind(&self, slot: &str) -> Option<&'static str> {
        self.part(slot).map(|part| part.kind)
    }
    /// Returns a parameter of the part in a slot, as a scenario writes it.
    pub fn param(&self, slot: &str, key: &str) -> Option<&str> {
        self.part(slot)?.values.iter().find(|(name, _)| *name == key).map(|(_, value)| value.as_str())
    }
    /// Returns a parameter of the part in a slot as a value. Returns `None` also if the text is not
    /// a `T`.
    pub fn value<T: Param>(&self, slot: &str, key: &str) -> Option<T> {
        T::parse(&Raw::Str(self.param(slot, key)?.to_owned())).ok()
    }
    fn part(&self, slot: &str) -> Option<&GivenPart> {
        self.0.iter().find(|part| part.slot == slot)
    }
}

/// The load and the size law of a workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offered {
    /// The offered load, as a fraction of the workload's reference; `None`: it has no load.
    pub load: Option<Fraction>,
    /// The size law as points (application bytes, probability of at most that size), both
    /// ascending. The last probability is 1. No size is below the first point; between two points,
    /// probabilities are interpolated. Two points with the same size are a probability mass at this
    /// size.
    pub sizes: Vec<(u64, f64)>,
}

/// The load and the size law of each workload, in the order of the scenario; computed at the first
/// use.
pub struct Offers<'a> {
    made: OnceLock<Vec<Offered>>,
    make: Option<Make<'a>>,
}

type Make<'a> = Box<dyn Fn() -> Vec<Offered> + Send + Sync + 'a>; // Called once a run, never for a packet.

impl<'a> Offers<'a> {
    /// Creates a value that `make` computes at the first use.
    pub fn new(make: impl Fn() -> Vec<Offered> + Send + Sync + 'a) -> Offers<'a> {
        Offers { made: OnceLock::new(), make: Some(Box::new(make)) }
    }
    /// Returns an empty list of workloads, for tests of single entries.
    pub fn none() -> &'static Offers<'static> {
        static NONE: Offers<'static> = Offers { made: OnceLock::new(), make: None };
        &NONE
    }
}

impl Deref for Offers<'_> {
    type Target = [Offered];
    fn deref(&self) -> &[Offered] {
        self.made.get_or_init(|| self.make.as_ref().map_or(Vec::new(), |make| make()))
    }
}

impl fmt::Debug for Offers<'_> {
    /// Does not compute the value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Offers").field(&self.made.get()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    #[test]
    fn parts_are_found_by_slot_and_key() {
        let values = vec![("alpha", "0.9".to_owned()), ("mode", "fresh".to_owned())];
        let given = Given::new(vec![GivenPart { slot: "agent", kind: "merp", values }]);
        assert_eq!((given.kind("agent"), given.kind("router")), (Some("merp"), None));
        assert_eq!((given.param("agent", "mode"), given.param("agent", "beta")), (Some("fresh"), None));
        assert_eq!(given.value("agent", "alpha"), Some(Fraction(900_000_000)));
        assert_eq!(given.value::<Fraction>("agent", "mode"), None);
        assert_eq!(Given::none().parts(), []);
    }

    #[test]
    fn offers_are_computed_once_and_only_when_read() {
        let calls = AtomicU32::new(0);
        let make = || {
            calls.fetch_add(1, Relaxed);
            vec![Offered { load: None, sizes: vec![(1, 1.0)] }]
        };
        let offers = Offers::new(make);
        assert_eq!((format!("{offers:?}").as_str(), calls.load(Relaxed)), ("Offers(None)", 0));
        assert_eq!((offers.len(), offers[0].sizes[0], calls.load(Relaxed)), (1, (1, 1.0), 1));
        assert!(Offers::none().is_empty());
    }
}
