//! Rooms: a trait, and one line per entry in the room's `mod.rs`.
//!
//! [`registry!`](crate::registry!) turns those lines into an enum over the entries (dispatch is one `match`), an enum over their
//! parameters, and the table that `list`, `explain` and `check` read.

use crate::params::Field;

/// What an entry says of itself.
#[derive(Clone, Copy, Debug)]
pub struct Meta {
    /// One line for `list`.
    pub summary: &'static str,
    /// Paper or RFC.
    pub source: &'static str,
    /// What must stand beside it in a system, checked before a run.
    pub needs: Needs,
}

/// What an entry needs of the rest of its system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    /// One of these transports.
    pub transport: &'static [&'static str],
    /// One of these queue disciplines at switch ports.
    pub qdisc: &'static [&'static str],
    /// One of these agents.
    pub agent: &'static [&'static str],
    /// ACKs must take the data path backwards.
    pub reverse_path: bool,
}

impl Needs {
    /// Nothing.
    pub const NONE: Needs = Needs { transport: &[], qdisc: &[], agent: &[], reverse_path: false };
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
/// Under `statics` stand associated functions of every entry, `fn(params: &Params, env: &Env) -> R`, which `AnyParams` then has as
/// methods: what must be known of an entry before it is built.
///
/// Generates `enum $Any` with the room's trait implemented by one `match` per method, `enum AnyParams`, and `ENTRIES`.
#[macro_export]
macro_rules! registry {
    (
        room $any:ident : $tr:ident , env $env:ty ;
        entries $entries:tt
        methods { $($method:tt)* }
        $(statics { $($static:tt)* })?
    ) => {
        $crate::registry!(@types $any $env, $entries);
        $($crate::registry!(@statics $env, $entries $($static)*);)?
        $crate::registry!(@impl $any $tr $entries [] $($method)*);
    };

    (@types $any:ident $env:ty, { $($name:ident : $ty:ident $(on $machine:path)?),* $(,)? }) => {
        /// Any entry of the room. Its tag stands by itself, so that a `match` need not work it out of an entry's fields.
        #[repr(u8)]
        #[allow(clippy::large_enum_variant)]
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
    (@match $self:ident $any:ident { $($name:ident : $ty:ident $(on $machine:path)?),* $(,)? } $m:ident $args:tt) => {
        match $self { $($any::$ty(x) => $crate::registry!(@call x $m $args)),* }
    };
    (@call $x:ident $m:ident ($($a:ident),*)) => { $x.$m($($a),*) };
}
