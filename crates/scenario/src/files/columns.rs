//! Names of columns and attributes in files of other programs, and units of the plain numbers in
//! these files.

use base::params::{Param, Raw, Shape};
use base::units::{parse_dur, parse_rate};
use base::{Dur, Rate};

/// Pairs of our name and the name in the file, for columns whose names differ. Empty: the file has
/// our names.
#[derive(Clone, Debug, Default, PartialEq, PartialOrd)]
pub struct Columns(pub Vec<(String, String)>);

impl Columns {
    /// Checks that all our names are among `known`, and returns the pairs. The error is a complete
    /// message that calls a name a `what`.
    pub fn among(&self, known: &[&'static str], what: &str) -> Result<Vec<(&'static str, String)>, String> {
        let find = |(ours, theirs): &(String, String)| {
            let name = known.iter().find(|name| **name == ours.as_str());
            let unknown = || format!("`{ours}` is not a known {what}: write one of {}", known.join(", "));
            Ok((*name.ok_or_else(unknown)?, theirs.clone()))
        };
        self.0.iter().map(find).collect()
    }
}

/// The value for a file that has our names.
const OWN: &str = "own";

impl Param for Columns {
    fn expects() -> String {
        "a table of names, like `{ src = \"from\" }`, or a text, like `src=from`".to_owned()
    }
    fn shape() -> Shape {
        Shape::Texts
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        let names: Vec<(String, String)> = match raw {
            Raw::Str(text) if text == OWN => Vec::new(),
            Raw::Str(text) => text.split(',').map(pair).collect::<Result<_, String>>()?,
            Raw::Table(entries) => entries.iter().map(entry).collect::<Result<_, String>>()?,
            _ => return Err(format!("is not {}", Self::expects())),
        };
        // `show` writes the names as a text, from which `parse` must read the same names.
        match names.iter().find(|(_, theirs)| theirs.is_empty() || theirs.contains([',', '='])) {
            Some((ours, theirs)) => Err(format!("has `{theirs}` for `{ours}`: a name has no comma and no equals sign")),
            None => Ok(Columns(names)),
        }
    }
    fn show(&self) -> String {
        if self.0.is_empty() {
            return OWN.to_owned();
        }
        self.0.iter().map(|(ours, theirs)| format!("{ours}={theirs}")).collect::<Vec<_>>().join(", ")
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (ours, theirs) = text.split_once('=').ok_or_else(|| format!("has `{}`, which is not like `src=from`", text.trim()))?;
    Ok((ours.trim().to_owned(), theirs.trim().to_owned()))
}

fn entry((ours, theirs): &(String, Raw)) -> Result<(String, String), String> {
    match theirs {
        Raw::Str(theirs) => Ok((ours.clone(), theirs.clone())),
        _ => Err(format!("has no text in quotes for `{ours}`")),
    }
}

base::choice! {
    /// The unit of times in a file.
    pub enum TimeUnit {
        /// Each time is written with its own unit.
        Text = "text",
        /// Seconds.
        S = "s",
        /// Milliseconds.
        Ms = "ms",
        /// Microseconds.
        Us = "us",
        /// Nanoseconds.
        Ns = "ns",
        /// Picoseconds.
        Ps = "ps",
    }
}

base::choice! {
    /// The unit of rates in a file.
    pub enum RateUnit {
        /// Each rate is written with its own unit.
        Text = "text",
        /// Bits per second.
        Bps = "bps",
        /// Kilobits per second.
        Kbps = "kbps",
        /// Megabits per second.
        Mbps = "Mbps",
        /// Gigabits per second.
        Gbps = "Gbps",
        /// Terabits per second.
        Tbps = "Tbps",
    }
}

impl TimeUnit {
    /// Parses a time in this unit.
    pub fn read(self, text: &str) -> Result<Dur, String> {
        if self == TimeUnit::Text { parse_dur(text) } else { parse_dur(&with_unit(text, &self.show())?) }
    }
}

impl RateUnit {
    /// Parses a rate in this unit.
    pub fn read(self, text: &str) -> Result<Rate, String> {
        if self == RateUnit::Text { parse_rate(text) } else { parse_rate(&with_unit(text, &self.show())?) }
    }
}

/// Appends the unit to a plain number. An exponent, as Python writes it for small and large numbers,
/// is written out.
fn with_unit(text: &str, unit: &str) -> Result<String, String> {
    // `5m` with the unit `s` is not 5 ms.
    let plain = || text.ends_with(|last: char| last.is_ascii_digit()).then(|| text.to_owned());
    let number = if text.contains(['e', 'E']) { without_exponent(text) } else { plain() };
    number.map(|number| format!("{number}{unit}")).ok_or_else(|| format!("is not a plain number in the unit {unit}"))
}

/// Writes a number with an exponent without the exponent: `1e-06` as `0.000001`.
fn without_exponent(text: &str) -> Option<String> {
    let (number, exponent) = text.split_once(['e', 'E'])?;
    let exponent = exponent.parse::<i32>().ok().filter(|exponent| (-30..=30).contains(exponent))?;
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{decimals}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let point = i32::try_from(whole.len()).ok()? + exponent;
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    let digits = format!("{}{digits}{}", zeros(1 - point), zeros(point - digits.len() as i32));
    let (whole, decimals) = digits.split_at(point.max(1) as usize);
    let decimals = decimals.trim_end_matches('0');
    Some(if decimals.is_empty() { whole.to_owned() } else { format!("{whole}.{decimals}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_numbers_count_a_unit() {
        assert_eq!(TimeUnit::Us.read("2.5"), Ok(Dur::from_ns(2500)));
        assert_eq!(TimeUnit::Text.read("2.5us"), Ok(Dur::from_ns(2500)));
        assert_eq!(TimeUnit::S.read("5m").unwrap_err(), "is not a plain number in the unit s");
        assert_eq!(RateUnit::Gbps.read("0.5"), Ok(Rate(500_000_000)));
        assert!(RateUnit::Text.read("0.5").is_err());
        // As Python writes small and large floats.
        assert_eq!(
            ["1e-06", "2.5E-6", "1.5e+1", "0e0"].map(|text| TimeUnit::S.read(text).map(|time| time.to_string())),
            ["1us", "2.5us", "15s", "0ps"].map(|text| Ok(text.to_owned()))
        );
        assert_eq!(RateUnit::Bps.read("2.5e10"), Ok(Rate(25_000_000_000)));
        for bad in ["1e", "e5", "1e5.5", "-1e5", "1e99", "1e-5s", ""] {
            assert!(TimeUnit::S.read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_are_among_those_that_are_known() {
        let columns = |ours: &str| Columns(vec![(ours.to_owned(), "from".to_owned())]);
        assert_eq!(columns("src").among(&["dst", "src"], "column"), Ok(vec![("src", "from".to_owned())]));
        assert_eq!(
            columns("source").among(&["dst", "src"], "column").unwrap_err(),
            "`source` is not a known column: write one of dst, src"
        );
    }

    #[test]
    fn a_table_and_its_text_are_the_same() {
        let text = |text: &str| Raw::Str(text.to_owned());
        let table = Raw::Table(vec![("src".to_owned(), text("from")), ("size_bytes".to_owned(), text("the bytes"))]);
        let columns = Columns::parse(&table).unwrap();
        assert_eq!(columns.show(), "src=from, size_bytes=the bytes");
        assert_eq!(Columns::parse(&text(&columns.show())), Ok(columns));
        assert_eq!(Columns::parse(&text("own")).map(|own| own.show()), Ok("own".to_owned()));
    }

    #[test]
    fn values_that_are_not_names_are_refused() {
        let fail = |raw: Raw| Columns::parse(&raw).unwrap_err();
        assert_eq!(fail(Raw::Str("from".to_owned())), "has `from`, which is not like `src=from`");
        assert_eq!(fail(Raw::Table(vec![("src".to_owned(), Raw::Int(3))])), "has no text in quotes for `src`");
        let comma = Raw::Table(vec![("src".to_owned(), Raw::Str("a,b".to_owned()))]);
        assert_eq!(fail(comma), "has `a,b` for `src`: a name has no comma and no equals sign");
        assert!(fail(Raw::Int(3)).starts_with("is not a table of names"));
    }
}
