//! Rooms: a trait, and one line per entry in the room's `mod.rs`.
//!
//! [`registry!`](crate::registry!) turns those lines into an enum over the entries (dispatch is one `match`), an enum over their
//! parameters, and the table that `list`, `explain` and `check` read.

use crate::params::Field;

/// What an entry says of itself. Most entries need only the first two: `Meta { summary: "...", source: "...", ..Meta::PLAIN }`.
#[derive(Clone, Copy, Debug)]
pub struct Meta {
    /// One line for `list`.
    pub summary: &'static str,
    /// Paper or RFC.
    pub source: &'static str,
    /// What must stand beside it in a system, checked before a run.
    pub needs: Needs,
    /// What stands beside it where the scenario is silent, as (dotted key of the system, value as written): `("nic.low_water", "1B")`.
    pub implies: &'static [(&'static str, &'static str)],
    /// What it knows of a flow before the flow's bytes are sent: `size`, `deadline`; `paths`: the links that its paths take.
    pub knows: &'static [&'static str],
    /// It sends the packets of a flow over several paths, which the router must therefore plan.
    pub many_paths: bool,
    /// It writes the ranks of packets, or a header of its own in the place of the rank, which one part of a system may do.
    pub ranks: bool,
    /// Bytes by which a policy may lengthen packets beyond the MTU. What waits at ports must have room for such packets.
    pub lengthens: u16,
    /// Names of the packet kinds of its own, in the order of their numbers.
    pub kinds: &'static [&'static str],
    /// Kinds of packets that a transport takes although most do not: `trimmed`, `returned`. They end at the hosts of any other.
    pub takes: &'static [&'static str],
    /// What it counts, in the order of the counters' numbers.
    pub counters: &'static [Counter],
    /// The values of each flow that an agent shows, as (name, remark). A name ends in its unit; the remark may be empty.
    pub shows: &'static [(&'static str, &'static str)],
    /// Parameters that are lengths of a switch's queue: limits, or bare numbers of packets. Figures of queues draw them as lines.
    pub queue_lengths: &'static [&'static str],
    /// Why it means nothing to flows that are fluids with max-min fair rates, so that the flow engine refuses it; empty where that engine can
    /// stand for it.
    pub packets_only: &'static str,
    /// It reads what waits at its port and what that has sent, which is kept for nobody else.
    pub reads_port: bool,
}

/// A number that an entry counts, and a column of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// The column, behind the name of the entry: `credits_wasted`.
    pub name: &'static str,
    /// Its unit: `packets`, `B`.
    pub unit: &'static str,
    /// What is counted.
    pub about: &'static str,
}

impl Meta {
    /// Nothing beyond a summary and a source, which are empty.
    pub const PLAIN: Meta = Meta {
        summary: "",
        source: "",
        needs: Needs::NONE,
        implies: &[],
        knows: &[],
        many_paths: false,
        ranks: false,
        lengthens: 0,
        kinds: &[],
        takes: &[],
        counters: &[],
        shows: &[],
        queue_lengths: &[],
        packets_only: "",
        reads_port: false,
    };
}

/// What an entry needs of the rest of its system. Of each list, one; an empty list asks for nothing.
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
    /// What answers a packet must take its path backwards: ACKs that of data, data that of its credits.
    pub reverse_path: bool,
    /// Its rule rests on marks, so that some port should mark; a system without marks runs, and is warned of.
    pub marks: bool,
    /// The queue limit below which its flows leave a link idle, in bandwidth-delay products; a lower limit runs with a warning. 0: none.
    pub least_limit: f64,
    /// The marking threshold below which its flows leave a link idle, in bandwidth-delay products; a lower one runs with a warning. 0: none.
    pub least_mark: f64,
    /// Its rule rests on deadlines, so that some flow should have one; a scenario without deadlines runs, and is warned of.
    pub deadlines: bool,
}

impl Needs {
    /// Nothing.
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

/// A room: its words and its entries. Written by [`registry!`](crate::registry!).
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Its name in scenarios, `explain` and messages: `qdisc`.
    pub name: &'static str,
    /// Its name in `list`: `qdiscs`.
    pub plural: &'static str,
    /// What an entry is called: `queue discipline`.
    pub noun: &'static str,
    /// What its entries decide, in one line.
    pub about: &'static str,
    /// The file that lists its entries, from the root of the source tree.
    pub file: &'static str,
    /// Its entries.
    pub entries: &'static [Entry],
}

impl Room {
    /// The entry of this name.
    pub fn entry(&self, name: &str) -> Option<&'static Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }
    /// The names of all entries.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + Clone + use<> {
        self.entries.iter().map(|entry| entry.name)
    }
    /// The folder of its entries, from the root of the source tree.
    pub fn folder(&self) -> &'static str {
        self.file.rsplit_once(['/', '\\']).map_or("", |(folder, _)| folder)
    }
}

/// One entry of a room.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// File, TOML kind and column label in one.
    pub name: &'static str,
    /// What it says of itself.
    pub meta: &'static Meta,
    /// Its parameters.
    pub fields: &'static [Field],
    /// The text of its file, whose head holds the assumptions.
    pub text: &'static str,
    /// The text of the file of the machine that it shares with others, if it does.
    pub machine: Option<&'static str>,
}

impl Entry {
    /// The file's head: its `//!` lines without the marks.
    pub fn head(&self) -> String {
        head(self.text)
    }
    /// The same of the machine that it shares with others, if it does.
    pub fn machine_head(&self) -> Option<String> {
        self.machine.map(head)
    }
}

fn head(text: &str) -> String {
    let lines = text.lines().take_while(|line| line.starts_with("//!"));
    lines.map(|line| line.strip_prefix("//! ").unwrap_or(&line[3..])).collect::<Vec<_>>().join("\n")
}

/// Builds a room from its lines. Each file exports `META`, `Params` and the type named on its line, which has
/// `fn new(params: &Params, env: &Env) -> Self`. After `on` may stand the text of the file of a machine that several entries share.
///
/// Behind `named` stand the words of the [`Room`]: name, plural, noun, and what its entries decide.
///
/// With `derive Clone` behind the environment `$Any` is `Clone`, as all entries then must be.
///
/// Under `statics` stand associated functions of every entry, `fn(params: &Params, env: &Env) -> R`, which `AnyParams` then has as
/// methods: what must be known of an entry before it is built. With `()` behind the name the function takes the parameters alone.
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
        /// Any entry of the room. Its tag stands by itself, so that a `match` need not work it out of an entry's fields.
        #[repr(u8)]
        #[allow(clippy::large_enum_variant)]
        #[derive($($derive)?)]
        pub enum $any { $(#[doc = concat!("See [`", stringify!($name), "`].")] $ty($name::$ty)),* }

        /// The parameters of any entry of the room.
        #[derive(Clone, Debug, PartialEq)]
        pub enum AnyParams { $(#[doc = concat!("See [`", stringify!($name), "`].")] $ty($name::Params)),* }

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
        }),*];

        impl AnyParams {
            /// Reads the parameters of the entry `name`, or returns `None` when there is no such entry.
            pub fn read(name: &str, reader: &mut dyn $crate::params::Reader) -> Option<AnyParams> {
                $(if name == stringify!($name) {
                    return Some(AnyParams::$ty(<$name::Params as $crate::params::Params>::read(reader)));
                })*
                None
            }
            /// The parameters of the entry `name` at their defaults, or `None` when there is no such entry.
            pub fn defaults(name: &str) -> Option<AnyParams> {
                $(if name == stringify!($name) {
                    return Some(AnyParams::$ty(<$name::Params as $crate::params::Params>::defaults()));
                })*
                None
            }
            /// The entry's name.
            pub fn name(&self) -> &'static str {
                match self { $(AnyParams::$ty(_) => stringify!($name)),* }
            }
            /// All parameters as (name, value as written).
            pub fn show(&self) -> Vec<(&'static str, String)> {
                match self { $(AnyParams::$ty(p) => $crate::params::Params::show(p)),* }
            }
            /// Problems that show only against the network.
            pub fn check(&self, env: &$env) -> Vec<$crate::params::Problem> {
                match self { $(AnyParams::$ty(p) => $name::check(p, env)),* }
            }
            /// What the entry says of itself.
            pub fn meta(&self) -> &'static $crate::registry::Meta {
                match self { $(AnyParams::$ty(_) => &$name::META),* }
            }
            /// Builds the machine.
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
        $crate::registry!(@static_alone $entries, $(#[$doc])* $m $r);
        $crate::registry!(@statics $env, $entries $($rest)*);
    };
    (@static_alone { $($name:ident : $ty:ident $(on $machine:path)?),* $(,)? }, $(#[$doc:meta])* $m:ident $r:ty) => {
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

    // One method at a time, collected in [$done], then the whole impl at once.
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
