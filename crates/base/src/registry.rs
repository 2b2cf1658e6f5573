//! Rooms: a trait, and one line per entry in the room's `mod.rs`.
//!
//! [`registry!`](crate::registry!) turns those lines into an enum over the entries (dispatch is one `match`), an enum over their
//! parameters, and the table that `list`, `explain` and `check` read.

use crate::params::Field;
use plugin::library::Library;
use std::sync::{Mutex, PoisonError};

/// The parameter that names the file of a plug-in.
pub const FILE: &str = "path";

/// The declaration of an entry. Most entries need only the first two fields: `Meta { summary:
/// "...", source: "...", ..Meta::PLAIN }`.
#[derive(Clone, Copy, Debug)]
pub struct Meta {
    /// One line for `list`.
    pub summary: &'static str,
    /// Paper or RFC.
    pub source: &'static str,
    /// The other parts that the entry needs in a system; checked before a run.
    pub needs: Needs,
    /// Settings of other parts that apply if the scenario does not set them, as (dotted key of the
    /// system, value as written): `("nic.low_water", "1B")`.
    pub implies: &'static [(&'static str, &'static str)],
    /// What the entry knows about a flow before the bytes of the flow are sent: `size`, `deadline`;
    /// `paths`: the links of its paths.
    pub knows: &'static [&'static str],
    /// Whether it sends the packets of a flow over several paths. The router must then plan paths.
    pub many_paths: bool,
    /// Whether it writes the ranks of packets, or its own header in place of the rank. Only one
    /// part of a system may do so.
    pub ranks: bool,
    /// Whether a policy sets the classes or ranks of data, so that hosts whose flows take turns let
    /// the flow with the best class send first.
    pub classes: bool,
    /// The host in the program or system that the source of a transport or policy measured: how the
    /// packets of its flows reach the NIC.
    pub host: &'static str,
    /// Bytes by which a policy may lengthen packets beyond the MTU. Ports must have room for
    /// packets of this length.
    pub lengthens: u16,
    /// Names of its own packet kinds, in the order of their numbers.
    pub kinds: &'static [&'static str],
    /// Kinds of packets that a transport accepts although most transports do not: `trimmed`,
    /// `returned`. With other transports, they count as losses.
    pub takes: &'static [&'static str],
    /// Its counters, in the order of their numbers.
    pub counters: &'static [Counter],
    /// The values per flow that an agent reports, as (name, comment). A name ends in its unit; the
    /// comment may be empty.
    pub shows: &'static [(&'static str, &'static str)],
    /// Parameters that are lengths of a switch's queue: limits, or plain numbers of packets.
    /// Figures of queues draw them as lines.
    pub queue_lengths: &'static [&'static str],
    /// Why the flow engine, in which flows are fluids with max-min fair rates, does not model the
    /// entry and refuses it; empty if the flow engine models it.
    pub packets_only: &'static str,
    /// How plug-ins are loaded, if it is the entry of all plug-ins of its room: its parameter [`FILE`]
    /// names the file.
    pub plugin: Option<PluginRoom>,
    /// Whether it reads the backlog of its port and the bytes that the port has sent. These values
    /// are kept only for such entries.
    pub reads_port: bool,
}

/// How a room loads plug-ins.
#[derive(Clone, Copy, Debug)]
pub struct PluginRoom {
    /// Makes the entry of a plug-in. The error completes a sentence about the plug-in.
    pub entry: fn(&'static Library) -> Result<Entry, String>,
    /// Returns the plug-in of this room that flowloom contains.
    pub example: fn() -> &'static Library,
}

/// A counter of an entry, which is a column of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Name of the column, which follows the name of the entry: `credits_wasted`.
    pub name: &'static str,
    /// Unit: `packets`, `B`.
    pub unit: &'static str,
    /// Description of the counter.
    pub about: &'static str,
}

impl Meta {
    /// A declaration with empty summary and source and without any other properties.
    pub const PLAIN: Meta = Meta {
        summary: "",
        source: "",
        needs: Needs::NONE,
        implies: &[],
        knows: &[],
        many_paths: false,
        ranks: false,
        classes: false,
        host: "",
        lengthens: 0,
        kinds: &[],
        takes: &[],
        counters: &[],
        shows: &[],
        queue_lengths: &[],
        packets_only: "",
        plugin: None,
        reads_port: false,
    };
}

/// The needs of an entry. Each list names alternatives: one of them must be present. An empty list
/// requires nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    /// Transports.
    pub transport: &'static [&'static str],
    /// Policies.
    pub policy: &'static [&'static str],
    /// Queue disciplines at switch ports.
    pub qdisc: &'static [&'static str],
    /// Buffers of switches.
    pub buffer: &'static [&'static str],
    /// Routers.
    pub router: &'static [&'static str],
    /// Agents.
    pub agent: &'static [&'static str],
    /// Controllers.
    pub controller: &'static [&'static str],
    /// Receivers.
    pub receiver: &'static [&'static str],
    /// Parameters that must have the same value in another part, as (part, parameter): `("agent", "esr_sync")`.
    pub alike: &'static [(&'static str, &'static str)],
    /// Whether answers to a packet must take its path in reverse: ACKs the path of data, or data
    /// the path of its credits.
    pub reverse_path: bool,
    /// Whether it uses ECN marks, so that some port should mark. A system without marks runs with a
    /// warning.
    pub marks: bool,
    /// The queue limit below which its flows leave a link idle, in bandwidth-delay products. A
    /// lower limit runs with a warning. 0: none.
    pub least_limit: f64,
    /// The marking threshold below which its flows leave a link idle, in bandwidth-delay products.
    /// A lower threshold runs with a warning. 0: none.
    pub least_mark: f64,
    /// Whether it uses deadlines, so that some flow should have a deadline. A scenario without
    /// deadlines runs with a warning.
    pub deadlines: bool,
}

impl Needs {
    /// No needs.
    pub const NONE: Needs = Needs {
        transport: &[],
        policy: &[],
        qdisc: &[],
        buffer: &[],
        router: &[],
        agent: &[],
        controller: &[],
        receiver: &[],
        alike: &[],
        reverse_path: false,
        marks: false,
        least_limit: 0.0,
        least_mark: 0.0,
        deadlines: false,
    };
}

/// A room: its names and its entries. Generated by [`registry!`](crate::registry!).
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Its name in scenarios, `explain` and messages: `qdisc`.
    pub name: &'static str,
    /// Its name in `list`: `qdiscs`.
    pub plural: &'static str,
    /// The noun for an entry: `queue discipline`.
    pub noun: &'static str,
    /// The task of its entries, in one line.
    pub about: &'static str,
    /// The file that lists its entries, from the root of the source tree.
    pub file: &'static str,
    /// Its entries.
    pub entries: &'static [Entry],
}

impl Room {
    /// Returns the entry with this name.
    pub fn entry(&self, name: &str) -> Option<&'static Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }
    /// Returns the names of all entries.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + Clone + use<> {
        self.entries.iter().map(|entry| entry.name)
    }
    /// Returns the folder of its entries, from the root of the source tree.
    pub fn folder(&self) -> &'static str {
        self.file.rsplit_once(['/', '\\']).map_or("", |(folder, _)| folder)
    }
}

/// One entry of a room.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Name of its file, its TOML kind and its column label.
    pub name: &'static str,
    /// Its declaration.
    pub meta: &'static Meta,
    /// Its parameters.
    pub fields: &'static [Field],
    /// The text of its file. The file header lists the assumptions.
    pub text: &'static str,
    /// The text of the file of the shared state machine, if the entry uses one.
    pub machine: Option<&'static str>,
    /// The plug-in that has made the entry, if any.
    pub plugin: Option<&'static Library>,
}

impl Entry {
    /// Returns the file header: the `//!` lines without the comment signs.
    pub fn head(&self) -> String {
        head(self.text)
    }
    /// Returns the file header of the shared state machine, if the entry uses one.
    pub fn machine_head(&self) -> Option<String> {
        self.machine.map(head)
    }
}

/// The entries of plug-ins that were made so far.
static MADE: Mutex<Vec<&'static Entry>> = Mutex::new(Vec::new());

impl Entry {
    /// Returns the entry of a plug-in, if this is the entry of all plug-ins. It is made once. The error
    /// completes a sentence about the plug-in.
    pub fn of_plugin(&'static self, library: &'static Library) -> Result<&'static Entry, String> {
        let make = self.meta.plugin.ok_or("it is not for this part of a system")?.entry;
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        // The entries of plug-ins have one name in all rooms, but each has a file of its own.
        let is_it = |entry: &&&Entry| entry.text == self.text && entry.plugin.is_some_and(|known| std::ptr::eq(known, library));
        if let Some(known) = made.iter().find(is_it) {
            return Ok(known);
        }
        let entry: &'static Entry = Box::leak(Box::new(make(library)?));
        made.push(entry);
        Ok(entry)
    }
}

fn head(text: &str) -> String {
    let lines = text.lines().take_while(|line| line.starts_with("//!"));
    lines.map(|line| line.strip_prefix("//! ").unwrap_or(&line[3..])).collect::<Vec<_>>().join("\n")
}

/// Builds a room from its lines. Each file exports `META`, `Params` and the type named on its line,
/// which has `fn new(params: &Params, env: &Env) -> Self`. After an optional `on` follows the text
/// of the file of a state machine that several entries share.
///
/// After `named` follow the names of the [`Room`]: name, plural, noun, and the task of its entries.
///
/// With `derive Clone` after the environment, `$Any` is `Clone`; all entries must be `Clone` then.
///
/// `statics` lists associated functions of every entry, `fn(params: &Params, env: &Env) -> R`.
/// `AnyParams` has them as methods, for properties of an entry that are needed before it is built.
/// With `()` after the name, the function takes only the parameters.
///
/// Generates `enum $Any` with the room's trait implemented by one `match` per method, `enum AnyParams`, `ENTRIES` and `ROOM`.
#[macro_export]
macro_rules! registry {
    (
        room $any:ident : $tr:ident , env $env:ty $(, derive $derive:ident)? ;
        named $name:literal , $plural:literal , $noun:literal : $about:literal ;
        entries $entries:tt
        methods { $($method:tt)* }
        $(statics { $($static:tt)* })?
    ) => {
        /// The room.
        pub const ROOM: $crate::registry::Room = $crate::registry::Room {
            name: $name,
            plural: $plural,
            noun: $noun,
            about: $about,
            file: file!(),
            entries: ENTRIES,
        };
        $crate::registry!(@types [$($derive)?] $any $env, $entries);
        $($crate::registry!(@statics $env, $entries $($static)*);)?
        $crate::registry!(@impl $any $tr $entries [] $($method)*);
    };

    (@types [$($derive:ident)?] $any:ident $env:ty, { $($name:ident : $ty:ident $(on $machine:path)?),* $(,)? }) => {
        /// Any entry of the room. Its tag is a separate byte, so that a `match` does not derive the
        /// tag from the fields of an entry.
        #[repr(u8)]
        #[allow(clippy::large_enum_variant)]
        #[derive($($derive)?)]
        pub enum $any { $(#[doc = concat!("See [`", stringify!($name), "`].")] $ty($name::$ty)),* }

        /// The parameters of any entry of the room.
        #[derive(Clone, Debug, PartialEq)]
        pub enum AnyParams { $(#[doc = concat!("See [`", stringify!($name), "`].")] $ty($name::Params)),* }

        $(impl From<$name::Params> for AnyParams {
            fn from(params: $name::Params) -> AnyParams {
                AnyParams::$ty(params)
            }
        })*

        /// All entries of the room.
        pub const ENTRIES: &[$crate::registry::Entry] = &[$($crate::registry::Entry {
            name: stringify!($name),
            meta: &$name::META,
            fields: <$name::Params as $crate::params::Params>::FIELDS,
            text: include_str!(concat!(stringify!($name), ".rs")),
            machine: {
                let machine: &[&'static str] = &[$($machine)?];
                machine.first().copied()
            },
            plugin: None,
        }),*];

        impl AnyParams {
            /// Reads the parameters of the entry `name`, or returns `None` if there is no such entry.
            pub fn read(name: &str, reader: &mut dyn $crate::params::Reader) -> Option<AnyParams> {
                $(if name == stringify!($name) {
                    return Some(AnyParams::$ty(<$name::Params as $crate::params::Params>::read(reader)));
                })*
                None
            }
            /// Returns the default parameters of the entry `name`, or `None` if there is no such
            /// entry.
            pub fn defaults(name: &str) -> Option<AnyParams> {
                $(if name == stringify!($name) {
                    return Some(AnyParams::$ty(<$name::Params as $crate::params::Params>::defaults()));
                })*
                None
            }
            /// Returns the name of the entry.
            pub fn name(&self) -> &'static str {
                match self { $(AnyParams::$ty(_) => stringify!($name)),* }
            }
            /// Returns all parameters as (name, value as written).
            pub fn show(&self) -> Vec<(&'static str, String)> {
                match self { $(AnyParams::$ty(p) => $crate::params::Params::show(p)),* }
            }
            /// Returns the parameters that do not have their defaults, as (name, value as written): see
            /// [`Params::changed`]($crate::params::Params::changed).
            pub fn changed(&self) -> Vec<(&'static str, String)> {
                match self { $(AnyParams::$ty(p) => $crate::params::Params::changed(p)),* }
            }
            /// Returns the problems that depend on the environment.
            pub fn check(&self, env: &$env) -> Vec<$crate::params::Problem> {
                match self { $(AnyParams::$ty(p) => $name::check(p, env)),* }
            }
            /// Returns the declaration of the entry.
            pub fn meta(&self) -> &'static $crate::registry::Meta {
                self.entry().meta
            }
            /// Returns the entry.
            pub fn entry(&self) -> &'static $crate::registry::Entry {
                let entry = ROOM.entry(self.name()).expect("every entry is in its room");
                match self { $(AnyParams::$ty(p) => $crate::params::Params::plugin(p)),* }
                    .map_or(entry, |library| entry.of_plugin(library).expect("checked when it was read"))
            }
            /// Builds the entry.
            pub fn build(&self, env: &$env) -> $any {
                match self { $(AnyParams::$ty(p) => $any::$ty($name::$ty::new(p, env))),* }
            }
        }
    };

    (@statics $env:ty, $entries:tt) => {};
    (@statics $env:ty, $entries:tt $(#[$doc:meta])* fn $m:ident -> $r:ty ; $($rest:tt)*) => {
        $crate::registry!(@static $env, $entries, $(#[$doc])* $m $r);
        $crate::registry!(@statics $env, $entries $($rest)*);
    };
    (@statics $env:ty, $entries:tt $(#[$doc:meta])* fn $m:ident() -> $r:ty ; $($rest:tt)*) => {
        $crate::registry!(@static_of_params $entries, $(#[$doc])* $m $r);
        $crate::registry!(@statics $env, $entries $($rest)*);
    };
    (@static_of_params { $($name:ident : $ty:ident $(on $machine:path)?),* $(,)? }, $(#[$doc:meta])* $m:ident $r:ty) => {
        impl AnyParams {
            $(#[$doc])*
            pub fn $m(&self) -> $r {
                match self { $(AnyParams::$ty(p) => $name::$ty::$m(p)),* }
            }
        }
    };
    (@static $env:ty, { $($name:ident : $ty:ident $(on $machine:path)?),* $(,)? }, $(#[$doc:meta])* $m:ident $r:ty) => {
        impl AnyParams {
            $(#[$doc])*
            pub fn $m(&self, env: &$env) -> $r {
                match self { $(AnyParams::$ty(p) => $name::$ty::$m(p, env)),* }
            }
        }
    };

    // Methods are collected in [$done] one at a time, then the whole impl is written.
    (@impl $any:ident $tr:ident $entries:tt [$($done:tt)*]) => {
        impl $tr for $any { $($done)* }
    };
    (@impl $any:ident $tr:ident $entries:tt [$($done:tt)*]
        fn $m:ident(&mut self $(, $a:ident : $t:ty)* $(,)?) $(-> $r:ty)? ; $($rest:tt)*
    ) => {
        $crate::registry!(@impl $any $tr $entries [$($done)*
            #[inline(always)]
            fn $m(&mut self $(, $a: $t)*) $(-> $r)? { $crate::registry!(@match self $any $entries $m ($($a),*)) }
        ] $($rest)*);
    };
    (@impl $any:ident $tr:ident $entries:tt [$($done:tt)*]
        fn $m:ident(&self $(, $a:ident : $t:ty)* $(,)?) $(-> $r:ty)? ; $($rest:tt)*
    ) => {
        $crate::registry!(@impl $any $tr $entries [$($done)*
            #[inline(always)]
            fn $m(&self $(, $a: $t)*) $(-> $r)? { $crate::registry!(@match self $any $entries $m ($($a),*)) }
        ] $($rest)*);
    };
    (@impl $any:ident $tr:ident $entries:tt [$($done:tt)*]
        fn $m:ident<$g:ident : $bound:path>(&self $(, $a:ident : $t:ty)* $(,)?) $(-> $r:ty)? ; $($rest:tt)*
    ) => {
        $crate::registry!(@impl $any $tr $entries [$($done)*
            #[inline(always)]
            fn $m<$g: $bound>(&self $(, $a: $t)*) $(-> $r)? { $crate::registry!(@match self $any $entries $m ($($a),*)) }
        ] $($rest)*);
    };
    (@match $self:ident $any:ident { $($name:ident : $ty:ident $(on $machine:path)?),* $(,)? } $m:ident $args:tt) => {
        match $self { $($any::$ty(x) => $crate::registry!(@call x $m $args)),* }
    };
    (@call $x:ident $m:ident ($($a:ident),*)) => { $x.$m($($a),*) };
}
