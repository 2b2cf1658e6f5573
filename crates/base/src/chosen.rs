//! Records the values chosen for `auto`.

use std::sync::{Mutex, PoisonError};

/// The parameters of an entry that are `auto`, each with the value chosen for it.
#[derive(Debug, Default)]
pub struct Chosen(Mutex<Vec<(&'static str, String)>>);

impl Chosen {
    /// Records the value of a parameter, as a scenario writes it. A later record of the same parameter replaces it.
    pub fn note(&self, key: &'static str, value: String) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => *known = value,
            None => all.push((key, value)),
        }
    }
    /// Returns all records, in the order of their first values.
    pub fn into_values(self) -> Vec<(&'static str, String)> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
