//! Ideal references: ideal schedules that the systems of a scenario are compared with.

use base::params::{Param, Raw, Shape, nearest};
use fabric::ideal::{AnyIdeal, AnyParams, ROOM};

/// An entry of the room of ideal schedules, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub struct IdealName(&'static str);

impl IdealName {
    /// Returns all ideal schedules.
    pub fn all() -> impl Iterator<Item = IdealName> {
        ROOM.names().map(IdealName)
    }
    fn params(self) -> AnyParams {
        AnyParams::defaults(self.0).expect("an entry of the room")
    }
    /// Returns its label in tables and figures.
    pub fn label(self) -> &'static str {
        self.params().label()
    }
    /// Builds the schedule.
    pub fn build(self) -> AnyIdeal {
        self.params().build(&())
    }
}

impl Param for IdealName {
    fn expects() -> String {
        let names: Vec<String> = ROOM.names().map(|name| format!("`{name}`")).collect();
        format!("one of {}", names.join(", "))
    }
    fn shape() -> Shape {
        Shape::OneOf(ROOM.names().collect())
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        let Raw::Str(word) = raw else { return Err(format!("is not {}", Self::expects())) };
        let near = || nearest(word, ROOM.names()).map_or(String::new(), |name| format!("; did you mean `{name}`?"));
        ROOM.entry(word).map(|entry| IdealName(entry.name)).ok_or_else(|| format!("is not {}{}", Self::expects(), near()))
    }
    fn show(&self) -> String {
        self.0.to_owned()
    }
}
