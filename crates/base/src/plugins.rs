//! The parameters and counters that plug-ins declare: read, shown and described like those of
//! built-in entries.

use crate::params::{Field, Param, Params, Problem, Raw, Reader, read_field};
use crate::registry::{Counter, Entry, FILE, Meta};
use crate::{Bytes, Dur, Fraction, Rate};
use plugin::abi::{Type, Value};
use plugin::library::{Declared, EXAMPLE_FILE, Failure, Library};

/// The parameters that all plug-ins of a room have.
pub trait RoomParams: Params {
    /// Returns the plug-in that flowloom contains.
    fn example() -> &'static Library;
    /// Returns whether a plug-in has the parameter `name`.
    fn has(_library: &Library, _name: &str) -> bool {
        true
    }
}

/// Parameters of a plug-in: those of all plug-ins of its room, followed by its own.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginParams<C> {
    /// The parameters of all plug-ins of its room.
    pub common: C,
    /// The parameters that the plug-in declares.
    pub own: Own,
}

impl<C: RoomParams> Params for PluginParams<C> {
    const FIELDS: &'static [Field] = C::FIELDS;
    fn read(reader: &mut dyn Reader) -> Self {
        let common = C::read(reader);
        let library = reader.plugin().unwrap_or_else(C::example);
        PluginParams { common, own: Own::read(library, reader) }
    }
    fn show(&self) -> Vec<(&'static str, String)> {
        let common = self.common.show().into_iter().filter(|(name, _)| C::has(self.own.library, name));
        common.chain(self.own.show()).collect()
    }
    fn plugin(&self) -> Option<&'static Library> {
        Some(self.own.library)
    }
    /// Returns the parameters of the plug-in that flowloom contains.
    fn defaults() -> Self {
        Self::read(&mut OfExample)
    }
}

/// The values of the parameters that a plug-in declares.
#[derive(Clone, Debug)]
pub struct Own {
    library: &'static Library,
    /// Each value as it is passed, and as it is written.
    values: Vec<(Value, String)>,
}

impl PartialEq for Own {
    fn eq(&self, other: &Own) -> bool {
        std::ptr::eq(self.library, other.library) && self.values == other.values
    }
}

impl Own {
    /// Reads the parameters of a plug-in.
    pub fn read(library: &'static Library, reader: &mut dyn Reader) -> Own {
        Own { library, values: library.parameters.iter().map(|declared| read(declared, reader)).collect() }
    }
    /// Returns the plug-in.
    pub fn library(&self) -> &'static Library {
        self.library
    }
    /// Returns the values as they are passed.
    pub fn values(&self) -> Vec<Value> {
        self.values.iter().map(|(value, _)| *value).collect()
    }
    /// Returns all parameters as (name, value as written).
    fn show(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.library.parameters.iter().zip(&self.values).map(|(declared, (_, shown))| (declared.name.as_str(), shown.clone()))
    }
}

/// Reads the defaults of the plug-in that flowloom contains.
struct OfExample;

impl Reader for OfExample {
    fn get(&mut self, key: &'static str) -> Option<Raw> {
        (key == FILE).then(|| Raw::Str(EXAMPLE_FILE.to_owned()))
    }
    fn fail(&mut self, _: &'static str, _: String) {}
}

/// Reads a parameter that a plug-in declares.
fn read(declared: &'static Declared, reader: &mut dyn Reader) -> (Value, String) {
    fn of<T: Param + Clone + PartialOrd>(
        declared: &'static Declared,
        reader: &mut dyn Reader,
        word: fn(&T) -> u64,
    ) -> (Value, String) {
        let end = |text: &str| T::parse(&Raw::Str(text.to_owned())).expect("checked when the plug-in was loaded");
        let range = declared.range.as_ref().map(|(low, high)| end(low)..=end(high));
        let value: T = read_field(reader, &declared.name, &declared.default, range);
        (Value(word(&value)), value.show())
    }
    match declared.kind {
        Type::Integer => of::<u64>(declared, reader, |n| *n),
        Type::Number => of::<f64>(declared, reader, |x| x.to_bits()),
        Type::Fraction => of::<Fraction>(declared, reader, |part| part.ppb()),
        Type::Time => of::<Dur>(declared, reader, |time| time.0),
        Type::Size => of::<Bytes>(declared, reader, |size| size.0),
        Type::Rate => of::<Rate>(declared, reader, |rate| rate.0),
        Type::Flag => of::<bool>(declared, reader, |flag| u64::from(*flag)),
    }
}

/// Returns the problem of a scenario with a plug-in whose machine cannot be created.
pub fn problem(failure: Failure) -> Problem {
    Problem { key: FILE, message: failure.to_string(), hint: "change its parameters, or the plug-in".to_owned() }
}

/// Makes the entry of a plug-in from `plain`, the entry of all plug-ins of its room, and `meta`, which
/// the plug-in's texts, counters and parameters are added to. The error completes a sentence about the
/// plug-in.
pub fn entry(plain: Entry, meta: Meta, library: &'static Library) -> Result<Entry, String> {
    let mut fields = plain.fields.to_vec();
    for declared in &library.parameters {
        if fields.iter().any(|known| known.name == declared.name) || declared.name == "kind" {
            return Err(format!("its parameter `{}` has a name that is already taken", declared.name));
        }
        fields.push(field(declared)?);
    }
    let mut counters: Vec<Counter> = Vec::new();
    for [name, unit, about] in &library.counters {
        if counters.iter().any(|known| known.name == name) {
            return Err(format!("it has two counters `{name}`"));
        }
        counters.push(Counter { name, unit, about });
    }
    let knows = [(library.knows_size(), "size"), (library.knows_deadline(), "deadline")];
    let knows: Vec<&'static str> = knows.into_iter().filter(|(knows, _)| *knows).map(|(_, what)| what).collect();
    let meta =
        Meta { summary: &library.summary, source: &library.source, knows: Vec::leak(knows), counters: Vec::leak(counters), ..meta };
    Ok(Entry { meta: Box::leak(Box::new(meta)), fields: Vec::leak(fields), plugin: Some(library), ..plain })
}

/// Returns a parameter of a plug-in as a field.
fn field(declared: &'static Declared) -> Result<Field, String> {
    match declared.kind {
        Type::Integer => field_of::<u64>(declared),
        Type::Number => field_of::<f64>(declared),
        Type::Fraction => field_of::<Fraction>(declared),
        Type::Time => field_of::<Dur>(declared),
        Type::Size => field_of::<Bytes>(declared),
        Type::Rate => field_of::<Rate>(declared),
        Type::Flag => field_of::<bool>(declared),
    }
}

fn field_of<T: Param + PartialOrd>(declared: &'static Declared) -> Result<Field, String> {
    let Declared { name, default, range, source, about, .. } = declared;
    let parse = |what: &str, text: &str| {
        let value = T::parse(&Raw::Str(text.to_owned()));
        value.map_err(|why| format!("the {what} of its parameter `{name}`, `{text}`, {why}"))
    };
    let value = parse("default", default)?;
    if let Some((low, high)) = range
        && !value.within(&(parse("smallest value", low)?..=parse("largest value", high)?))
    {
        return Err(format!("the default of its parameter `{name}`, `{default}`, is not from `{low}` to `{high}`"));
    }
    Ok(Field {
        name,
        expects: T::expects,
        shape: T::shape,
        default,
        declared: || None,
        written: range.as_ref().map(|(low, high)| (low.as_str(), high.as_str())),
        source,
        about,
        quiet: false,
    })
}
