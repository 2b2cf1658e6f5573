//! Parameters as data: each declared once, with its type, default, range and source, read from scenario files and shown by
//! `explain` and `check`.
//!
//! [`params!`](crate::params!) writes the struct, the table of fields and the reader. All problems of a file are collected:
//! reading goes on with the default after an error.

use std::ops::RangeInclusive;

mod types;

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
    /// The value as text, for literals that may stand with or without quotes.
    fn text(&self) -> Option<String> {
        match self {
            Raw::Int(n) => Some(n.to_string()),
            Raw::Float(digits) => Some(digits.clone()),
            Raw::Str(text) => Some(text.clone()),
            Raw::Bool(_) | Raw::Table(_) | Raw::Other(_) => None,
        }
    }
}

/// What the values of a type look like in a file, for schemas.
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
    /// A table of texts, or the same as one text: `{ src = "from" }`, `"src=from"`
    Texts,
}

/// A type that a parameter can have.
pub trait Param: Sized {
    /// What is allowed, for messages and `explain`: "a time, like `10us`".
    fn expects() -> String;
    /// What values look like in a file.
    fn shape() -> Shape {
        Shape::Literal
    }
    /// Reads a value. The error completes a sentence that begins with the value: "is not ...".
    fn parse(raw: &Raw) -> Result<Self, String>;
    /// The value as it would be written.
    fn show(&self) -> String;
    /// Whether the value lies in `range`.
    fn within(&self, range: &RangeInclusive<Self>) -> bool
    where
        Self: PartialOrd,
    {
        range.contains(self)
    }
}

/// A named problem with a parameter's value, found after reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The parameter.
    pub key: &'static str,
    /// What is wrong, beginning with the value or the rule.
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
    /// What its values look like in a file.
    pub shape: fn() -> Shape,
    /// Its default, as it would be written; empty when it must be given.
    pub default: &'static str,
    /// The ends of its range, as they would be written: `(1, 100)`.
    pub range: fn() -> Option<(String, String)>,
    /// Where the default comes from.
    pub source: &'static str,
    /// What it does.
    pub about: &'static str,
    /// It is written out only where it is not at its default. For parameters that are younger than the hashes of points, which are taken
    /// of what is written: a scenario that does not name them keeps its hash.
    pub quiet: bool,
}

impl Field {
    /// Whether `value` is left out where all parameters are written.
    pub fn leaves_out(&self, value: &str) -> bool {
        self.quiet && value == self.default
    }
}

/// Where parameters are read from.
pub trait Reader {
    /// The value of `key`, if it was given. Marks the key as known.
    fn get(&mut self, key: &'static str) -> Option<Raw>;
    /// Reports a problem with the value of `key`, or with its absence.
    fn fail(&mut self, key: &'static str, message: String);
}

/// A set of parameters. Written by [`params!`](crate::params!).
pub trait Params: Sized + Clone {
    /// All fields in order.
    const FIELDS: &'static [Field];
    /// Reads all fields; those not given, or wrong, get their defaults.
    fn read(reader: &mut dyn Reader) -> Self;
    /// All fields as (name, value as written).
    fn show(&self) -> Vec<(&'static str, String)>;
    /// All fields at their defaults. Panics when a field has none.
    fn defaults() -> Self {
        struct Nothing;
        impl Reader for Nothing {
            fn get(&mut self, _: &'static str) -> Option<Raw> {
                None
            }
            fn fail(&mut self, key: &'static str, message: String) {
                panic!("parameter `{key}` has no usable default: {message}");
            }
        }
        Self::read(&mut Nothing)
    }
}

/// Reads one field. Called by [`params!`](crate::params!).
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
            Some(range) if !value.within(&range) => out_of_range(&shown, key, &range),
            _ => return value,
        },
        Err(e) => match range {
            // The range of the parameter, not that of its type.
            Some(range) if e.starts_with(OUT_OF_RANGE) => out_of_range(&shown, key, &range),
            _ => format!("{shown} {e}"),
        },
    };
    reader.fail(key, problem);
    if default.is_empty() { T::fallback(key) } else { fallback(default) }
}

/// How the errors of [`Param::parse`] begin for a number that the type cannot hold.
const OUT_OF_RANGE: &str = "is out of range";

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

/// Something to go on with after an error in a parameter that has no default, so that all errors of a file are found.
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
    /// The value given, or else `derived`.
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
    /// A range binds given values only: `auto` lies in every range.
    fn within(&self, range: &RangeInclusive<Self>) -> bool
    where
        Self: PartialOrd,
    {
        matches!(self, Auto::Auto) || range.contains(self)
    }
}

/// A value that need not be there: `none`.
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
    /// A range binds given values only.
    fn within(&self, range: &RangeInclusive<Self>) -> bool
    where
        Self: PartialOrd,
    {
        self.is_none() || range.contains(self)
    }
}

/// The name among `names` nearest to `wrong`, if one is near enough to be meant; one that contains it goes first.
pub fn nearest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    names
        .into_iter()
        .map(|name| (distance(wrong, name), name))
        .filter(|(d, name)| *d <= name.len().max(wrong.len()).div_ceil(3))
        .min_by_key(|(d, name)| (!name.contains(wrong), *d))
        .map(|(_, name)| name)
}

/// Edit distance of Levenshtein.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let next = (corner + usize::from(ca != *cb)).min(row[j] + 1).min(row[j + 1] + 1);
            corner = std::mem::replace(&mut row[j + 1], next);
        }
    }
    row[b.len()]
}

/// Declares a set of parameters: per field its documentation, type, default literal, optional range and the default's source.
///
/// A set may begin with all fields of another one, in braces those of which the default differs. With `quiet` behind its source a field is
/// written out only where it is not at its default ([`Field::quiet`]); the default then stands there as it would be written.
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
                    range: || {
                        let range: Vec<std::ops::RangeInclusive<$ty>> = vec![$($range)?];
                        range.first().map(|r| ($crate::params::Param::show(r.start()), $crate::params::Param::show(r.end())))
                    },
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

/// The fields of a block with other defaults, and then `own`. Called by [`params!`](crate::params!).
pub const fn join<const N: usize>(block: &[Field], defaults: &[(&str, &'static str, &'static str)], own: &[Field]) -> [Field; N] {
    // Called with two empty sets only by mistake, which does not compile.
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
            // Beyond the end: the block has no such field.
            i += 1;
        }
        (all[i].default, all[i].source) = (default, source);
        d += 1;
    }
    all
}

/// Whether two texts are the same, in a constant.
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
    /// Where parameters are read from.
    pub reader: &'a mut dyn Reader,
    /// (key, default as it would be written).
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
}

/// Declares a choice among names: an enum whose variants are written as texts.
#[macro_export]
macro_rules! choice {
    ($(#[$doc:meta])* pub enum $name:ident { $($(#[doc = $about:literal])* $variant:ident = $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
        pub enum $name { $($(#[doc = $about])* $variant),* }
        impl $name {
            /// Its words, and what each of them says of itself.
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
            /// Need not be there.
            count: Option<u32> = "none" in Some(1)..=Some(9), "here";
            /// A limit.
            limit: Limit = "100pkt", "here";
            /// Must be given.
            size: Bytes = "", "";
        }
    }

    params! {
        /// A set that begins with another.
        pub struct Longer {
            ..example: Example { window = "7", "there"; size = "1KB", "there"; }
            /// Its own.
            gain: u32 = "2", "here";
        }
    }

    #[test]
    fn words_of_a_choice_say_what_they_are() {
        let words = Sync::WORDS.iter().map(|(word, about)| (*word, about.trim()));
        assert_eq!(words.collect::<Vec<_>>(), [("fresh", "Fresh."), ("sticky", "Sticky.")]);
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
        // What is given counts, in the block as elsewhere, and so do ranges.
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
    fn defaults_stand_where_nothing_is_given() {
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
                // `size` is missing in each.
                assert_eq!(given.1.len(), problems, "{key} {written:?}: {:?}", given.1);
            }
        }
    }

    #[test]
    fn the_nearest_name_is_near() {
        assert_eq!(nearest("websaerch", ["websearch", "datamining"]), Some("websearch"));
        assert_eq!(nearest("xyz", ["websearch", "datamining"]), None);
        assert_eq!(nearest("tcp", ["mcp", "dctcp"]), Some("dctcp"));
    }
}
