//! A system: a list of named slots, and what fills them. The table at the end of this file is the only list of slots; from it follow the
//! struct, how it is read and written, which keys it may have, and its checks.

use crate::system::envs::Envs;
use base::given::{Given, GivenPart};
use base::params::{Problem, Reader};
use base::registry::{Entry, Meta, Needs, Room};

/// A named place for one part of a system.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Its key in `[[system]]`.
    pub name: &'static str,
    /// What can fill it.
    pub room: Room,
    /// What happens when a system does not fill it.
    pub unfilled: Unfilled,
    wanted: fn(&Needs) -> &'static [&'static str],
}

/// What happens when a system does not fill a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfilled {
    /// It is refused.
    Refused,
    /// The slot stays empty, and nothing of it is written.
    Empty,
    /// An entry fills it with its defaults.
    Default {
        /// The entry.
        kind: &'static str,
        /// Where the default comes from.
        source: &'static str,
    },
}

impl Slot {
    /// What `needs` asks for in this slot: one of these, or anything when there are none.
    pub fn wanted(&self, needs: &Needs) -> &'static [&'static str] {
        (self.wanted)(needs)
    }
    /// The kind where a system names none.
    pub fn default_kind(&self) -> Option<&'static str> {
        match self.unfilled {
            Unfilled::Default { kind, .. } => Some(kind),
            Unfilled::Refused | Unfilled::Empty => None,
        }
    }
}

/// The slot of this name. Panics when there is none.
pub(crate) fn slot(name: &str) -> &'static Slot {
    SLOTS.iter().find(|slot| slot.name == name).unwrap_or_else(|| panic!("`{name}` is no slot of a system"))
}

/// A part of a system as data.
#[derive(Clone, Debug)]
pub struct SystemPart {
    /// The slot that it fills.
    pub slot: &'static Slot,
    /// Its entry.
    pub entry: &'static Entry,
    /// All its parameters as (name, value as written).
    pub values: Vec<(&'static str, String)>,
}

/// A host's port.
#[derive(Clone, Debug, PartialEq)]
pub struct Nic {
    /// What holds the packets that wait.
    pub qdisc: fabric::qdisc::AnyParams,
    /// Low-water mark: the NIC asks the transport for packets while its backlog is at most this; `None`: always.
    pub low_water_bytes: Option<u64>,
}

/// Where a system is read from.
pub(crate) trait Source {
    /// Reads the part in a slot: `Some(None)` when the slot is empty, `None` when something is wrong, which is reported.
    fn part<T>(&mut self, slot: &'static Slot, read: fn(&str, &mut dyn Reader) -> Option<T>) -> Option<Option<T>>;
    /// Reads the host ports; `None` when something is wrong, which is reported.
    fn nic(&mut self) -> Option<Nic>;
}

impl System {
    /// What its parts may know of each other.
    pub(crate) fn given(&self) -> Given {
        let given = |part: SystemPart| GivenPart { slot: part.slot.name, kind: part.entry.name, values: part.values };
        Given::new(self.parts().into_iter().map(given).collect())
    }
    /// Whether ACKs take the path of the data backwards: some part needs it.
    pub fn reverse_path(&self) -> bool {
        self.metas().iter().any(|meta| meta.needs.reverse_path)
    }
    /// The discipline at ports of switches, and the router: what the environments of other parts depend on.
    pub fn ports_and_router(&self) -> (&fabric::qdisc::AnyParams, &fabric::router::AnyParams) {
        (&self.qdisc, &self.router)
    }
    /// The discipline at ports of hosts, or of switches.
    pub fn qdisc_at(&self, host_port: bool) -> &fabric::qdisc::AnyParams {
        if host_port { &self.nic.qdisc } else { &self.qdisc }
    }
}

/// Writes [`System`] from the table of slots. A line is the slot's name, the module of its room, and what happens when it is not filled.
macro_rules! system {
    ($($(#[doc = $about:literal])+ $slot:ident: $($module:ident)::+, $unfilled:ident $(($kind:literal, $source:literal))?;)*) => {
        /// One curve: what runs on hosts and in switches.
        #[derive(Clone, Debug, PartialEq)]
        pub struct System {
            /// Its name in tables and figures.
            pub label: String,
            $($(#[doc = $about])+ pub $slot: system!(@type $unfilled $($module)::+::AnyParams),)*
            /// At every host port.
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
            /// Its parts, by slot.
            pub fn parts(&self) -> Vec<SystemPart> {
                let mut parts = Vec::new();
                $(if let Some(params) = system!(@filled $unfilled self.$slot) {
                    let slot = slot(stringify!($slot));
                    let entry = slot.room.entry(params.name()).expect("every entry is in its room");
                    parts.push(SystemPart { slot, entry, values: params.show() });
                })*
                parts
            }
            /// What its parts say of themselves.
            pub fn metas(&self) -> Vec<&'static Meta> {
                let mut metas = Vec::new();
                $(metas.extend(system!(@filled $unfilled self.$slot).map(|params| params.meta()));)*
                metas
            }
            /// Reads every slot; all that is wrong with any of them is reported.
            pub(crate) fn read(label: &str, from: &mut impl Source) -> Option<System> {
                $(let $slot = from.part(slot(stringify!($slot)), $($module)::+::AnyParams::read);)*
                let nic = from.nic();
                Some(System { label: label.to_owned(), $($slot: system!(@taken $unfilled $slot),)* nic: nic? })
            }
            /// Checks every part in each kind of environment that it meets.
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

system! {
    /// On hosts.
    transport: proto::transport, needed;
    /// On hosts, between the transport and the NIC.
    policy: proto::policy, optional;
    /// At every switch port.
    qdisc: fabric::qdisc, default("droptail", "what most switches do");
    /// In every switch: what its ports share.
    buffer: fabric::buffer, optional;
    /// Which of several next hops a flow takes.
    router: fabric::router, default("ecmp", "what most networks do");
    /// At every port, beside the queue.
    agent: fabric::agent, optional;
    /// For the whole network.
    controller: fabric::controller, optional;
    /// On hosts: what packets that come in wait for.
    receiver: fabric::receiver, optional;
}

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
