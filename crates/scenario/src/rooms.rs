//! The only list of rooms, and the list of tables without a kind.

use crate::event::params::{EventParams, FailureParams, RandomParams};
use crate::files::Files;
use crate::plan::keys::{Head, NicParams, SampleParams};
use crate::plan::measure::Measure;
use crate::plan::seeds::AutoSeeds;
use crate::seek::{ClaimParams, SeekParams, SettingParams};
use crate::system::engine::Engine;
use base::params::{Field, Params as _};
use base::registry::{Entry, Room};
use std::path::Path;

/// All rooms, in the order of `flowloom list`.
pub const ROOMS: &[Room] = &[
    proto::transport::ROOM,
    proto::policy::ROOM,
    fabric::qdisc::ROOM,
    fabric::buffer::ROOM,
    fabric::router::ROOM,
    fabric::agent::ROOM,
    fabric::controller::ROOM,
    fabric::receiver::ROOM,
    crate::topology::ROOM,
    crate::workload::ROOM,
    crate::deadline::ROOM,
    fabric::ideal::ROOM,
];

/// Loads the plug-in in a file, whose path is relative to the current folder. Returns its entry with
/// its room. The error is a complete message.
pub fn of_file(path: &str) -> Result<(&'static Room, &'static Entry), String> {
    let library = Files::new(Path::new("")).plugin(path)?;
    let rooms = ROOMS.iter().filter(|room| room.name == library.functions.room());
    let all = rooms.flat_map(|room| room.entries.iter().map(move |entry| (room, entry)));
    let made = all.filter_map(|(room, entry)| entry.meta.plugin.map(|_| (room, entry.of_plugin(library))));
    let mut problem = String::new();
    for (room, entry) in made {
        match entry {
            Ok(entry) => return Ok((room, entry)),
            Err(why) => problem = why,
        }
    }
    Err(format!("cannot use the plug-in `{path}`: {problem}"))
}

/// A table of a scenario without a kind.
#[derive(Clone, Copy, Debug)]
pub struct TableOf {
    /// Its dotted name; empty for the scenario itself.
    pub name: &'static str,
    /// Its purpose, in one line.
    pub about: &'static str,
    /// Its keys.
    pub fields: &'static [Field],
}

/// All tables without a kind, for `list` and `explain`.
pub const TABLES: [TableOf; 12] = [
    TableOf { name: "", about: "the scenario itself", fields: Head::FIELDS },
    TableOf { name: "seed", about: "keys for `seed = \"auto\"`: as many seeds as a precision needs", fields: AutoSeeds::FIELDS },
    TableOf { name: "engine", about: "the simulation engine: packets, or fluids with max-min fair rates", fields: Engine::FIELDS },
    TableOf { name: "event", about: "a link or switch that goes down or comes up", fields: EventParams::FIELDS },
    TableOf { name: "event.random", about: "links or switches drawn by the seed", fields: RandomParams::FIELDS },
    TableOf { name: "failure", about: "how the network reacts to events", fields: FailureParams::FIELDS },
    TableOf { name: "measure", about: "the measurement window of rates, utilisation and queue lengths", fields: Measure::FIELDS },
    TableOf { name: "sample", about: "time series to record", fields: SampleParams::FIELDS },
    TableOf { name: "seek", about: "a search over open settings, which `flowloom seek` runs", fields: SeekParams::FIELDS },
    TableOf {
        name: "seek.setting",
        about: "an open setting; in addition, `keys` lists the keys that it sets (`NAME:KEY`: only in the scenario NAME; `profile`: the choices are profiles), and `choices` lists values that are not numbers",
        fields: SettingParams::FIELDS,
    },
    TableOf { name: "seek.claim", about: "a claim to search for, or to judge afterwards", fields: ClaimParams::FIELDS },
    TableOf { name: "system.nic", about: "the ports of hosts", fields: NicParams::FIELDS },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_of_rooms_and_entries_are_unique() {
        let mut words = BTreeSet::new();
        for room in ROOMS {
            assert!([room.name, room.plural].into_iter().all(|word| words.insert(word)), "{}", room.name);
            assert!(!room.noun.is_empty() && !room.about.is_empty() && !room.entries.is_empty(), "{}", room.name);
            let names: BTreeSet<&str> = room.names().collect();
            assert_eq!(names.len(), room.entries.len(), "two entries of {} have the same name", room.name);
        }
    }
}
