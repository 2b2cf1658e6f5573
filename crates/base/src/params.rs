//! Parameters as data: each parameter is declared once, with its type, default, range and source.
//! Parameters are read from scenario files and printed by `explain` and `check`.
//!
//! [`params!`](crate::params!) generates the struct, the table of fields and the reader. All
//! problems of a file are collected: after an error, reading continues with the default.

use crate::units::OUT_OF_RANGE;
use plugin::library::Library;
use std::ops::RangeInclusive;

mod by_name;
mod near;
mod types;

pub use near::{misspelled, nearest};

/// A value as written, before its type is known.
#[derive(Clone, Debug, PartialEq)]
pub enum Raw {
    /// A whole number.
    Int(i64),
    /// Any other number, with its digits as written.
    Float(String),
    /// A truth value.
    Bool(bool),
    /// Text.
    Str(String),
    /// A table: keys and values in the order of the file.
    Table(Vec<(String, Raw)>),
    /// Something else, by name: "a list", "a date".
    Other(&'static str),
}

impl Raw {
    /// Returns the value as text, for literals that may be written with or without quotes.
    fn text(&self) -> Option<String> {
        match self {
            Raw::Int(n) => Some(n.to_string()),
            Raw::Float(digits) => Some(digits.clone()),
            Raw::Str(text) => Some(text.clone()),
            Raw::Bool(_) | Raw::Table(_) | Raw::Other(_) => None,
        }
    }
}

/// The form of the values of a type in a file, for schemas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `3`
    Integer,
    /// `0.8`
    Number,
    /// `true`
    Bool,
    /// `"web"`
    Text,
    /// A text with a unit, or a bare number: `"10us"`, `0.8`.
    Literal,
    /// One of these texts.
    OneOf(Vec<&'static str>),
    /// This text, or a value of another shape.
    Or(&'static str, Box<Shape>),
    /// A table of texts, or the table written as a text: `{ src = "from" }`, `"src=from"`
    Texts,
}

/// A type that a parameter can have.
pub trait Param: Sized {
    /// Returns what is allowed, for messages and `explain`: "a time, like `10us`".
    fn expects() -> String;
    /// Returns the form of values in a file.
    fn shape() -> Shape {
        Shape::Literal
    }
    /// Reads a value. The error completes a sentence that begins with the value: "is not ...".
    fn parse(raw: &Raw) -> Result<Self, String>;
    /// Returns the value as a scenario writes it.
    fn show(&self) -> String;
    /// Returns whether the value is in `range`.
    fn within(&self, range: &RangeInclusive<Self>) -> bool
    where
        Self: PartialOrd,
    {
        range.contains(self)
    }
    /// Returns the value that was meant if the number is in per cent; `None` for values that are no fractions.
    fn of_percent(&self) -> Option<Self> {
        None
    }
}

/// A named problem with a parameter's value, found after reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The parameter.
    pub key: &'static str,
    /// What is wrong. Begins with the value or the rule.
    pub message: String,
    /// What to do.
    pub hint: String,
}

/// One parameter, for `explain` and the check of unknown keys.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its key.
    pub name: &'static str,
    /// What is allowed.
    pub expects: fn() -> String,
    /// The form of its values in a file.
    pub shape: fn() -> Shape,
    /// Its default, as a scenario writes it; empty if the parameter must be given.
    pub default: &'static str,
    /// The ends of the range that the program declares.
    pub declared: fn() -> Option<(String, String)>,
    /// The ends of the range that a plug-in declares, as a scenario writes them.
    pub written: Option<(&'static str, &'static str)>,
    /// Source of the default.
    pub source: &'static str,
    /// Description of the parameter.
    pub about: &'static str,
    /// Whether it is left out of the written plan if it has its default. The hash of a point covers
    /// the written plan, so a parameter that is added later must be quiet: scenarios that do not
    /// use it keep their hashes.
    pub quiet: bool,
}

impl Field {
    /// Returns the ends of its range, as a scenario writes them: `(1, 100)`.
    pub fn range(&self) -> Option<(String, String)> {
        self.written.map(|(low, high)| (low.to_owned(), high.to_owned())).or_else(self.declared)
    }
    /// Returns whether `value` is left out of the written plan.
    pub fn leaves_out(&self, value: &str) -> bool {
        self.quiet && value == self.default
    }
}

/// A source from which parameters are read.
pub trait Reader {
    /// Returns the value of `key`, if given. Marks the key as known.
    fn get(&mut self, key: &'static str) -> Option<Raw>;
    /// Reports a problem with the value of `key`, or with its absence.
    fn fail(&mut self, key: &'static str, message: String);
    /// Returns the plug-in whose parameters are read, if they are those of a plug-in.
    fn plugin(&self) -> Option<&'static Library> {
        None
    }
}

/// A set of parameters. Generated by [`params!`](crate::params!).
pub trait Params: Sized + Clone {
    /// All fields in order.
    const FIELDS: &'static [Field];
    /// Reads all fields. Fields that are not given, or are wrong, get their defaults.
    fn read(reader: &mut dyn Reader) -> Self;
    /// Returns all fields as (name, value as written).
    fn show(&self) -> Vec<(&'static str, String)>;
    /// Returns the plug-in that declares these parameters, if one does.
    fn plugin(&self) -> Option<&'static Library> {
        None
    }
    /// Returns the fields that do not have their defaults, and those that have none, as (name, value as
    /// written): the keys that a scenario must set.
    fn changed(&self) -> Vec<(&'static str, String)> {
        by_name::changed(self)
    }
    /// Returns all fields with these values, as a scenario writes them, or else with their defaults. Fails
    /// if a field is unknown, a value is wrong, or a field without a default is missing.
    fn of(values: &[(&str, &str)]) -> Result<Self, String> {
        by_name::of(values)
    }
    /// Returns all fields with their defaults. Panics if a field has no default: use [`of`](Params::of) then.
    fn defaults() -> Self {
        Self::of(&[]).unwrap_or_else(|problem| panic!("there is no default: {problem}"))
    }
}

/// Reads a field. Called by [`params!`](crate::params!).
pub fn read_field<T: Param + Clone + PartialOrd>(
    reader: &mut dyn Reader,
    key: &'static str,
    default: &'static str,
    range: Option<RangeInclusive<T>>,
) -> T {
    let fallback = |text: &str| T::parse(&Raw::Str(text.to_owned())).unwrap_or_else(|e| panic!("default `{text}` of `{key}` {e}"));
    let Some(raw) = reader.get(key) else {
        if default.is_empty() {
            reader.fail(key, format!("`{key}` is missing: it must be {}", T::expects()));
            return T::fallback(key);
        }
        return fallback(default);
    };
    let shown = raw.text().map_or_else(|| describe(&raw), |text| format!("`{text}`"));
    let problem = match T::parse(&raw) {
        Ok(value) => match range {
            Some(range) if !value.within(&range) => {
                let meant = value.of_percent().filter(|meant| meant.within(&range));
                let meant = meant.map_or(String::new(), |meant| format!("; did you mean `{}`?", meant.show()));
                out_of_range(&shown, key, &range) + &meant
            }
            _ => return value,
        },
        Err(e) => match range {
            // Names the range of the parameter, not the range of its type.
            Some(range) if e.starts_with(OUT_OF_RANGE) => out_of_range(&shown, key, &range),
            _ => format!("{shown} {e}"),
        },
    };
    reader.fail(key, problem);
    if default.is_empty() { T::fallback(key) } else { fallback(default) }
}

fn out_of_range<T: Param>(shown: &str, key: &str, range: &RangeInclusive<T>) -> String {
    format!("{shown} {OUT_OF_RANGE}: `{key}` goes from {} to {}", range.start().show(), range.end().show())
}

fn describe(raw: &Raw) -> String {
    match raw {
        Raw::Bool(b) => format!("`{b}`"),
        Raw::Table(_) => "a table".to_owned(),
        Raw::Other(what) => (*what).to_owned(),
        _ => String::new(),
    }
}

/// A value with which reading continues after an error in a parameter without a default, so that
/// all errors of a file are found.
trait Fallback: Param {
    fn fallback(key: &str) -> Self {
        let candidates =
            [Raw::Int(1), Raw::Str("1".into()), Raw::Str("1us".into()), Raw::Str("1Gbps".into()), Raw::Str("1KB".into())];
        candidates
            .iter()
            .find_map(|raw| Self::parse(raw).ok())
            .or_else(|| Self::parse(&Raw::Bool(false)).ok())
            .unwrap_or_else(|| panic!("`{key}` needs a default: its type has no plain value"))
    }
}
impl<T: Param> Fallback for T {}

/// A value, or `"auto"`: computed from the network before the run.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum Auto<T> {
    /// `"auto"`
    Auto,
    /// A value that was given.
    Set(T),
}

impl<T> Auto<T> {
    /// Returns the given value, or `derived` for `auto`.
    pub fn or(self, derived: T) -> T {
        match self {
            Auto::Auto => derived,
            Auto::Set(value) => value,
        }
    }
}

impl<T: Param> Param for Auto<T> {
    fn expects() -> String {
        format!("{} or `auto`", T::expects())
    }
    fn shape() -> Shape {
        Shape::Or("auto", Box::new(T::shape()))
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Str(s) if s == "auto" => Ok(Auto::Auto),
            _ => T::parse(raw).map(Auto::Set),
        }
    }
    fn show(&self) -> String {
        match self {
            Auto::Auto => "auto".to_owned(),
            Auto::Set(value) => value.show(),
        }
    }
    /// A range applies only to given values: `auto` is in every range.
    fn within(&self, range: &RangeInclusive<Self>) -> bool
    where
        Self: PartialOrd,
    {
        matches!(self, Auto::Auto) || range.contains(self)
    }
}

/// An optional value: `none` if it is absent.
impl<T: Param> Param for Option<T> {
    fn expects() -> String {
        format!("{} or `none`", T::expects())
    }
    fn shape() -> Shape {
        Shape::Or("none", Box::new(T::shape()))
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Str(s) if s == "none" => Ok(None),
            _ => T::parse(raw).map(Some),
        }
    }
    fn show(&self) -> String {
        self.as_ref().map_or_else(|| "none".to_owned(), T::show)
    }
    /// A range applies only to given values.
    fn within(&self, range: &RangeInclusive<Self>) -> bool
    where
        Self: PartialOrd,
    {
        self.is_none() || range.contains(self)
    }
    fn of_percent(&self) -> Option<Self> {
        self.as_ref().and_then(T::of_percent).map(Some)
    }
}

/// Declares a set of parameters: for each field its documentation, type, default literal, optional
/// range and source of the default.
///
/// A set may begin with all fields of another set; the braces list fields with another default.
/// With `quiet` after its source, a field is left out of the written plan if it has its default
/// ([`Field::quiet`]); the default must be given as `show` writes it.
///
/// ```
/// use base::params::{Params as _, Auto};
/// base::params! {
///     /// Parameters of timers.
///     pub struct Timers {
///         /// Smallest retransmission timeout.
///         min_rto: base::Dur = "200ms", "RFC 6298";
///         /// Largest retransmission timeout.
///         max_rto: base::Dur = "60s", "RFC 6298";
///     }
/// }
/// base::params! {
///     /// Parameters of an example.
///     pub struct Params {
///         ..timers: Timers { min_rto = "5ms", "the paper"; }
///         /// Initial window in segments.
///         init_window: u32 = "3" in 1..=100, "RFC 5681 section 3.1";
///     }
/// }
/// assert_eq!(Params::defaults().timers.min_rto, base::Dur::from_ms(5));
/// assert_eq!(Params::FIELDS.iter().map(|f| (f.name, f.default)).collect::<Vec<_>>(),
///     [("min_rto", "5ms"), ("max_rto", "60s"), ("init_window", "3")]);
/// ```
#[macro_export]
macro_rules! params {
    ($(#[$doc:meta])* pub struct $name:ident {
        $(..$block:ident : $block_ty:ident { $($key:ident = $other:literal, $why:literal ;)* })?
        $($(#[doc = $about:literal])+ $field:ident : $ty:ty = $default:literal $(in $range:expr)? , $source:literal $(, $quiet:ident)? ;)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $(#[doc = concat!("See [`", stringify!($block_ty), "`].")] pub $block: $block_ty,)?
            $($(#[doc = $about])+ pub $field: $ty),*
        }
        impl $crate::params::Params for $name {
            const FIELDS: &'static [$crate::params::Field] = {
                const OWN: &[$crate::params::Field] = &[$($crate::params::Field {
                    name: stringify!($field),
                    expects: <$ty as $crate::params::Param>::expects,
                    shape: <$ty as $crate::params::Param>::shape,
                    default: $default,
                    declared: || {
                        let range: Vec<std::ops::RangeInclusive<$ty>> = vec![$($range)?];
                        range.first().map(|r| ($crate::params::Param::show(r.start()), $crate::params::Param::show(r.end())))
                    },
                    written: None,
                    source: $source,
                    about: concat!($($about),+),
                    quiet: false $(|| $crate::params!(@quiet $quiet))?,
                }),*];
                $crate::params!(@fields OWN $($block_ty [$((stringify!($key), $other, $why)),*])?)
            };
            #[allow(unused_variables, unused_mut, unused_assignments, clippy::let_and_return)]
            fn read(reader: &mut dyn $crate::params::Reader) -> Self {
                $name {
                    $($block: <$block_ty as $crate::params::Params>::read(&mut $crate::params::Instead {
                        reader: &mut *reader,
                        defaults: &[$((stringify!($key), $other)),*],
                    }),)?
                    $($field: {
                        let mut range: Option<std::ops::RangeInclusive<$ty>> = None;
                        $(range = Some($range);)?
                        $crate::params::read_field::<$ty>(reader, stringify!($field), $default, range)
                    }),*
                }
            }
            #[allow(clippy::let_and_return)]
            fn show(&self) -> Vec<(&'static str, String)> {
                let shown = vec![$((stringify!($field), $crate::params::Param::show(&self.$field))),*];
                $(let shown = [$crate::params::Params::show(&self.$block), shown].concat();)?
                shown
            }
        }
    };
    (@quiet quiet) => { true };
    (@fields $own:ident) => { $own };
    (@fields $own:ident $block:ident $defaults:tt) => {{
        const BLOCK: &[$crate::params::Field] = <$block as $crate::params::Params>::FIELDS;
        const ALL: [$crate::params::Field; BLOCK.len() + $own.len()] = $crate::params::join(BLOCK, &$defaults, $own);
        &ALL
    }};
}

/// Returns the fields of a block with other defaults, followed by `own`. Called by
/// [`params!`](crate::params!).
pub const fn join<const N: usize>(block: &[Field], defaults: &[(&str, &'static str, &'static str)], own: &[Field]) -> [Field; N] {
    // Two empty sets do not compile.
    let mut all = [if block.is_empty() { own[0] } else { block[0] }; N];
    let mut i = 0;
    while i < N {
        all[i] = if i < block.len() { block[i] } else { own[i - block.len()] };
        i += 1;
    }
    let mut d = 0;
    while d < defaults.len() {
        let (name, default, source) = defaults[d];
        let mut i = 0;
        while !same(all[i].name, name) {
            // An index out of bounds here means that the block has no such field.
            i += 1;
        }
        (all[i].default, all[i].source) = (default, source);
        d += 1;
    }
    all
}

/// Returns whether two texts are equal, in constants.
const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

/// A reader with other defaults for some keys. Used by [`params!`](crate::params!).
pub struct Instead<'a> {
    /// The source of parameters.
    pub reader: &'a mut dyn Reader,
    /// (key, default as a scenario writes it).
    pub defaults: &'a [(&'static str, &'static str)],
}

impl Reader for Instead<'_> {
    fn get(&mut self, key: &'static str) -> Option<Raw> {
        let default = || self.defaults.iter().find(|(name, _)| *name == key).map(|(_, text)| Raw::Str((*text).to_owned()));
        self.reader.get(key).or_else(default)
    }
    fn fail(&mut self, key: &'static str, message: String) {
        self.reader.fail(key, message);
    }
    fn plugin(&self) -> Option<&'static Library> {
        self.reader.plugin()
    }
}

/// Declares a choice among names: an enum whose variants are written as texts.
#[macro_export]
macro_rules! choice {
    ($(#[$doc:meta])* pub enum $name:ident { $($(#[doc = $about:literal])* $variant:ident = $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
        pub enum $name { $($(#[doc = $about])* $variant),* }
        impl $name {
            /// Its values as texts, each with its description.
            pub const WORDS: &[(&str, &str)] = &[$(($text, concat!($($about),*))),*];
        }
        impl $crate::params::Param for $name {
            fn expects() -> String {
                let names = [$(concat!("`", $text, "`")),*];
                format!("one of {}", names.join(", "))
            }
            fn shape() -> $crate::params::Shape {
                $crate::params::Shape::OneOf(vec![$($text),*])
            }
            fn parse(raw: &$crate::params::Raw) -> Result<Self, String> {
                match raw {
                    $($crate::params::Raw::Str(s) if s == $text => Ok($name::$variant),)*
                    $crate::params::Raw::Str(s) => {
                        let near = $crate::params::nearest(s, [$($text),*]).map_or(String::new(), |n| format!("; did you mean `{n}`?"));
                        Err(format!("is not {}{near}", Self::expects()))
                    }
                    _ => Err(format!("is not {}", Self::expects())),
                }
            }
            fn show(&self) -> String {
                match self { $($name::$variant => $text.to_owned()),* }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, Dur, Limit};
    use std::collections::BTreeMap;

    choice! {
        /// A choice.
        pub enum Sync { /// Fresh.
            Fresh = "fresh", /// Sticky.
            Sticky = "sticky" }
    }
    params! {
        /// All kinds of parameters.
        pub struct Example {
            /// A time.
            min_rto: Dur = "200ms", "here";
            /// A count.
            window: u32 = "3" in 1..=100, "here";
            /// A choice.
            sync: Sync = "fresh", "here";
            /// Derived.
            cwnd: Auto<u32> = "auto" in Auto::Set(1)..=Auto::Set(9), "here";
            /// Optional.
            count: Option<u32> = "none" in Some(1)..=Some(9), "here";
            /// A limit.
            limit: Limit = "100pkt", "here";
            /// Must be given.
            size: Bytes = "", "";
        }
    }

    params! {
        /// A set that begins with another set.
        pub struct Longer {
            ..example: Example { window = "7", "there"; size = "1KB", "there"; }
            /// Its own.
            gain: u32 = "2", "here";
        }
    }

    #[test]
    fn values_of_a_choice_have_descriptions() {
        let words = Sync::WORDS.iter().map(|(word, about)| (*word, about.trim()));
        assert_eq!(words.collect::<Vec<_>>(), [("fresh", "Fresh."), ("sticky", "Sticky.")]);
    }

    #[test]
    fn fields_are_set_by_name_and_all_mistakes_are_reported() {
        let given = Example::of(&[("size", "1KB"), ("window", "9"), ("cwnd", "auto")]).unwrap();
        assert_eq!((given.window, given.cwnd, given.size), (9, Auto::Auto, Bytes(1000)));
        let problems = Example::of(&[("window", "101"), ("sise", "1KB")]).unwrap_err();
        let found: Vec<&str> = problems.lines().map(|line| line.split_once(' ').unwrap().0).collect();
        assert_eq!(found, ["`sise`", "`window`:", "`size`:"], "{problems}");
        // A field without a default has always changed.
        let changed = |params: &Example| params.changed().iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>();
        assert_eq!(changed(&given), ["window=9", "size=1KB"]);
        let wrong = Example { window: 0, sync: Sync::Sticky, limit: Limit::Unlimited, ..given };
        assert_eq!(changed(&wrong), ["window=0", "sync=sticky", "limit=unlimited", "size=1KB"]);
        assert_eq!(Longer { gain: 3, ..Longer::defaults() }.changed(), [("gain", "3".to_owned())]);
    }

    #[test]
    fn a_set_may_begin_with_another() {
        let longer = Longer::defaults();
        let shown: Vec<String> = longer.show().iter().map(|(k, v)| format!("{k}={v}")).collect();
        let all = ["min_rto=200ms", "window=7", "sync=fresh", "cwnd=auto", "count=none", "limit=100pkt", "size=1KB", "gain=2"];
        assert_eq!(shown, all);
        let fields: Vec<String> = Longer::FIELDS.iter().map(|f| format!("{}={}", f.name, f.default)).collect();
        assert_eq!(
            (fields, Longer::FIELDS[1].source, Longer::FIELDS[0].source),
            (all.map(str::to_owned).to_vec(), "there", "here")
        );
        // Given values and ranges apply to the fields of the block too.
        let mut given = Given::default();
        given.0.extend([("window", Raw::Int(9)), ("gain", Raw::Int(3)), ("cwnd", Raw::Int(10))]);
        let longer = Longer::read(&mut given);
        assert_eq!((longer.example.window, longer.gain, given.1.len()), (9, 3, 1));
    }

    #[derive(Default)]
    struct Given(BTreeMap<&'static str, Raw>, Vec<String>);
    impl Reader for Given {
        fn get(&mut self, key: &'static str) -> Option<Raw> {
            self.0.get(key).cloned()
        }
        fn fail(&mut self, key: &'static str, message: String) {
            self.1.push(format!("{key}: {message}"));
        }
    }

    #[test]
    fn fields_that_are_not_given_have_defaults() {
        let mut given = Given::default();
        given.0.insert("size", Raw::Str("2MB".into()));
        let example = Example::read(&mut given);
        assert!(given.1.is_empty(), "{:?}", given.1);
        let shown: Vec<String> = example.show().iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(shown, ["min_rto=200ms", "window=3", "sync=fresh", "cwnd=auto", "count=none", "limit=100pkt", "size=2MB"]);
    }

    #[test]
    fn all_problems_are_collected() {
        let mut given = Given::default();
        given.0.insert("min_rto", Raw::Int(5));
        given.0.insert("window", Raw::Int(0));
        given.0.insert("sync", Raw::Str("stcky".into()));
        given.0.insert("cwnd", Raw::Bool(true));
        Example::read(&mut given);
        let text = given.1.join("\n");
        assert_eq!(given.1.len(), 5, "{text}");
        for part in ["has no unit", "goes from 1 to 100", "did you mean `sticky`", "cwnd: `true` is not", "`size` is missing"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn auto_and_none_lie_in_every_range() {
        for (key, word) in [("cwnd", "auto"), ("count", "none")] {
            for (written, problems) in [(Raw::Str(word.into()), 1), (Raw::Int(9), 1), (Raw::Int(0), 2), (Raw::Int(10), 2)] {
                let mut given = Given::default();
                given.0.insert(key, written.clone());
                Example::read(&mut given);
                // Each case also reports that `size` is missing.
                assert_eq!(given.1.len(), problems, "{key} {written:?}: {:?}", given.1);
            }
        }
    }

    #[test]
    fn the_nearest_name_is_near() {
        assert_eq!(nearest("websaerch", ["websearch", "datamining"]), Some("websearch"));
        assert_eq!(nearest("xyz", ["websearch", "datamining"]), None);
        assert_eq!(nearest("tcp", ["mcp", "dctcp"]), Some("dctcp"));
        assert_eq!(nearest("wbe", ["incast", "web"]), Some("web"), "swapped letters");
    }

    #[test]
    fn a_misspelled_name_differs_in_few_letters() {
        let known = ["on_mark", "not_before", "ecn", "name", "most"];
        for (wrong, right) in
            [("on_makr", "on_mark"), ("not_befor", "not_before"), ("ecm", "ecn"), ("onMark", "on_mark"), ("ECN", "ecn")]
        {
            assert_eq!(misspelled(wrong, known), Some(right), "{wrong}");
        }
        for own in ["rate", "update", "window", "before", "mean"] {
            assert_eq!(misspelled(own, known), None, "{own}");
        }
    }
}
