//! A system: a list of named slots and the entries in them. The table at the end of this file is
//! the only list of slots; the struct, its reader and writer, its keys and its checks, and the methods
//! that fill slots in Rust are generated from this table.

use crate::system::envs::Envs;
use base::given::{Given, GivenPart};
use base::params::{Problem, Reader};
use base::registry::{Entry, Meta, Needs, Room};
use plugin::library::Library;

/// A named place for one part of a system.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Its key in `[[system]]`.
    pub name: &'static str,
    /// The room whose entries can fill it.
    pub room: Room,
    /// What happens if a system does not fill it.
    pub unfilled: Unfilled,
    wanted: fn(&Needs) -> &'static [&'static str],
}

/// What happens if a system does not fill a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfilled {
    /// The system is refused.
    Refused,
    /// The slot stays empty and is not written.
    Empty,
    /// An entry with its defaults fills the slot.
    Default {
        /// The entry.
        kind: &'static str,
        /// Source of the default.
        source: &'static str,
    },
}

impl Slot {
    /// Returns the entries that satisfy `needs` in this slot; an empty list requires nothing.
    pub fn wanted(&self, needs: &Needs) -> &'static [&'static str] {
        (self.wanted)(needs)
    }
    /// Returns the kind that fills the slot if a system names none.
    pub fn default_kind(&self) -> Option<&'static str> {
        match self.unfilled {
            Unfilled::Default { kind, .. } => Some(kind),
            Unfilled::Refused | Unfilled::Empty => None,
        }
    }
}

/// Returns the slot with this name. Panics if there is none.
pub(crate) fn slot(name: &str) -> &'static Slot {
    SLOTS.iter().find(|slot| slot.name == name).unwrap_or_else(|| panic!("`{name}` is not a slot of a system"))
}

/// A part of a system as data.
#[derive(Clone, Debug)]
pub struct SystemPart {
    /// The slot that it fills.
    pub slot: &'static Slot,
    /// Its entry.
    pub entry: &'static Entry,
    /// All parameters as (name, value as written).
    pub values: Vec<(&'static str, String)>,
}

base::choice! {
    /// How packets of the flows of a host reach its NIC.
    pub enum HostKind {
        /// The NIC holds two packets. It asks the flow whose next packet has the best class and rank;
        /// equals, and all flows if the policy sets neither, take turns.
        Pull = "pull",
        /// The NIC holds two packets. Flows take turns, whatever the classes of their packets.
        Turns = "turns",
        /// All packets wait at the NIC, in a queue like those of switch ports, with its limit and marks.
        Ns2 = "ns2",
    }
}

/// The port of a host.
#[derive(Clone, Debug, PartialEq)]
pub struct Nic {
    /// The kind of host.
    pub kind: HostKind,
    /// The queue discipline.
    pub qdisc: fabric::qdisc::AnyParams,
    /// Low-water mark: the NIC asks the transport for packets while its backlog is at most this; `None`: always.
    pub low_water_bytes: Option<u64>,
}

/// A source from which a system is read.
pub(crate) trait Source {
    /// Reads the part in a slot. Returns `Some(None)` if the slot is empty, and `None` after a
    /// problem, which is reported.
    fn part<T>(&mut self, slot: &'static Slot, read: fn(&str, &mut dyn Reader) -> Option<T>) -> Option<Option<T>>;
    /// Reads the host ports. Returns `None` after a problem, which is reported.
    fn nic(&mut self) -> Option<Nic>;
}

impl System {
    /// Returns its parts as plain data for each other.
    pub(crate) fn given(&self) -> Given {
        let given = |part: SystemPart| GivenPart { slot: part.slot.name, kind: part.entry.name, values: part.values };
        Given::new(self.parts().into_iter().map(given).collect())
    }
    /// Returns the plug-ins among its parts and at host ports. Those of switches may appear twice.
    pub fn plugins(&self) -> impl Iterator<Item = &'static Library> + use<> {
        self.parts().into_iter().map(|part| part.entry).chain([self.nic.qdisc.entry()]).filter_map(|entry| entry.plugin)
    }
    /// Returns whether some part needs ACKs to take the path of the data in reverse.
    pub fn reverse_path(&self) -> bool {
        self.metas().iter().any(|meta| meta.needs.reverse_path)
    }
    /// Returns whether hosts may change the paths of their flows, and with them the paths of the replies, which other nodes send.
    pub fn changes_both_paths(&self) -> bool {
        self.reverse_path() && self.metas().iter().any(|meta| meta.knows.contains(&"paths"))
    }
    /// Returns the queue discipline at switch ports and the router: the environments of other parts
    /// depend on them.
    pub fn ports_and_router(&self) -> (&fabric::qdisc::AnyParams, &fabric::router::AnyParams) {
        (&self.qdisc, &self.router)
    }
    /// Returns the queue discipline at ports of hosts, or of switches.
    pub fn qdisc_at(&self, host_port: bool) -> &fabric::qdisc::AnyParams {
        if host_port { &self.nic.qdisc } else { &self.qdisc }
    }
}

/// Generates [`System`] from the table of slots. A line is the name of the slot, the module of its
/// room, and what happens if it is not filled.
macro_rules! system {
    ($($(#[doc = $about:literal])+ $slot:ident: $($module:ident)::+, $unfilled:ident $(($kind:literal, $source:literal))?;)*) => {
        /// A system under test: all that runs on hosts and in switches. It gives one curve in
        /// figures.
        #[derive(Clone, Debug, PartialEq)]
        pub struct System {
            /// Its name in tables and figures.
            pub label: String,
            $($(#[doc = $about])+ pub $slot: system!(@type $unfilled $($module)::+::AnyParams),)*
            /// Every host port.
            pub nic: Nic,
        }

        /// All slots of a system, in the order in which they are written.
        pub const SLOTS: &[Slot] = &[$(Slot {
            name: stringify!($slot),
            room: $($module)::+::ROOM,
            unfilled: system!(@unfilled $unfilled $(($kind, $source))?),
            wanted: |needs| needs.$slot,
        }),*];

        impl System {
            /// Returns its parts, by slot.
            pub fn parts(&self) -> Vec<SystemPart> {
                let mut parts = Vec::new();
                $(if let Some(params) = system!(@filled $unfilled self.$slot) {
                    let slot = slot(stringify!($slot));
                    parts.push(SystemPart { slot, entry: params.entry(), values: params.show() });
                })*
                parts
            }
            /// Returns the META of its parts.
            pub fn metas(&self) -> Vec<&'static Meta> {
                let mut metas = Vec::new();
                $(metas.extend(system!(@filled $unfilled self.$slot).map(|params| params.meta()));)*
                metas
            }
            /// Reads every slot; the problems of all slots are reported.
            pub(crate) fn read(label: &str, from: &mut impl Source) -> Option<System> {
                $(let $slot = from.part(slot(stringify!($slot)), $($module)::+::AnyParams::read);)*
                let nic = from.nic();
                Some(System { label: label.to_owned(), $($slot: system!(@taken $unfilled $slot),)* nic: nic? })
            }
            /// Checks every part in each kind of environment that it can have.
            pub(crate) fn check(&self, envs: &Envs<'_>, report: &mut dyn FnMut(&'static Slot, Vec<Problem>)) {
                let envs = envs.checked();
                $(if let Some(params) = system!(@filled $unfilled self.$slot) {
                    for env in envs.$slot() {
                        report(slot(stringify!($slot)), params.check(&env));
                    }
                })*
            }
        }
    };

    (@type optional $type:ty) => { Option<$type> };
    (@type $other:ident $type:ty) => { $type };
    (@unfilled needed) => { Unfilled::Refused };
    (@unfilled optional) => { Unfilled::Empty };
    (@unfilled default ($kind:literal, $source:literal)) => { Unfilled::Default { kind: $kind, source: $source } };
    (@filled optional $value:expr) => { $value.as_ref() };
    (@filled $other:ident $value:expr) => { Some(&$value) };
    (@taken optional $read:expr) => { $read? };
    (@taken $other:ident $read:expr) => { $read?? };
}

/// Calls a macro with the table of slots.
macro_rules! slots {
    ($then:ident) => {
        $then! {
            /// The transport of hosts.
            transport: proto::transport, needed;
            /// The policy of hosts, between the transport and the NIC.
            policy: proto::policy, optional;
            /// The queue discipline of every switch port.
            qdisc: fabric::qdisc, default("droptail", "what most switches do");
            /// The buffer of every switch, which its ports share.
            buffer: fabric::buffer, optional;
            /// The router, which chooses among several next hops.
            router: fabric::router, default("ecmp", "what most networks do");
            /// The agent of every port, next to the queue.
            agent: fabric::agent, optional;
            /// The controller of the network.
            controller: fabric::controller, optional;
            /// The receiver of hosts, for which arriving packets may wait.
            receiver: fabric::receiver, optional;
        }
    };
}
pub(crate) use slots;

slots!(system);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_entries_and_needs_name_them() {
        for slot in SLOTS {
            assert!(slot.default_kind().is_none_or(|kind| slot.room.entry(kind).is_some()), "{}", slot.name);
        }
        for entry in crate::rooms::ROOMS.iter().flat_map(|room| room.entries) {
            for slot in SLOTS {
                let unknown = slot.wanted(&entry.meta.needs).iter().find(|kind| slot.room.entry(kind).is_none());
                assert_eq!(unknown, None, "`{}` needs it as its {}", entry.name, slot.name);
            }
            for (part, key) in entry.meta.needs.alike {
                let other = slot(part).wanted(&entry.meta.needs).iter().filter_map(|kind| slot(part).room.entry(kind));
                assert!(entry.fields.iter().any(|f| f.name == *key), "`{}` has no parameter `{key}`", entry.name);
                assert!(other.flat_map(|e| e.fields).any(|f| f.name == *key), "no {part} of `{}` has `{key}`", entry.name);
            }
        }
    }
}
