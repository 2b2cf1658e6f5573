//! `flowloom schema`: a JSON Schema of scenarios for editors, made from the rooms, slots and tables
//! with which scenarios are read.
//!
//! The schema covers keys, kinds and the types of values. Only `flowloom check` knows rules between
//! keys and the units of texts.

use base::params::{Field, Param as _, Shape};
use base::registry::{Entry, Room};
use scenario::{IdealName, ROOMS, SLOTS, TABLES};
use serde_json::{Map, Value, json};

/// Returns the schema as text.
pub fn text() -> String {
    format!("{:#}\n", schema())
}

/// Returns the schema of a scenario file (JSON Schema draft 7, which TOML editors support).
pub fn schema() -> Value {
    let mut keys = keys(table(""), Swept::No);
    keys.extend(self::keys(table("seed"), Swept::No));
    let own = [
        ("name", described(json!({"type": "string"}), "name of the scenario and of its results folder")),
        ("seed", described(seed(), "seeds of the random streams, or `auto`: as many seeds as the precision needs")),
        (
            "ideal",
            described(
                Swept::Yes.of(value_schema(&IdealName::shape(), None)),
                "ideal schedules of the same flows, computed in addition to the systems",
            ),
        ),
        ("topology", reference("topology")),
        ("workload", json!({"type": "object", "minProperties": 1, "additionalProperties": reference("workload")})),
        ("system", json!({"type": "array", "minItems": 1, "items": system()})),
        ("event", json!({"type": "array", "items": event()})),
        ("failure", object(self::keys(table("failure"), Swept::Yes), &[])),
        ("engine", engine()),
        ("measure", object(self::keys(table("measure"), Swept::No), &[])),
        ("sample", object(self::keys(table("sample"), Swept::No), &[])),
        ("seek", seek()),
        ("profile", described(json!({"type": "object"}), "keys that replace those of the scenario with `--profile NAME`")),
    ];
    keys.extend(own.map(|(key, value)| (key.to_owned(), value)));
    let mut whole = object(keys, &["topology", "workload", "system"]);
    whole["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    whole["title"] = json!("flowloom scenario");
    whole["definitions"] = ROOMS.iter().map(|room| (room.name.to_owned(), part(room))).collect::<Map<_, _>>().into();
    whole
}

/// Returns the schema of `[seek]` with its lists of settings and claims.
fn seek() -> Value {
    let texts =
        |about| described(json!({"type": "array", "minItems": 1, "items": {"type": ["string", "number", "boolean"]}}), about);
    let mut setting = keys(table("seek.setting"), Swept::No);
    setting.insert("keys".to_owned(), texts("keys of the scenario that the setting sets, written as for `--set`"));
    setting.insert("choices".to_owned(), texts("values of the setting, if they are not numbers"));
    let mut whole = keys(table("seek"), Swept::No);
    whole.insert("scenarios".to_owned(), texts("scenario files; without them, this file is the scenario"));
    whole.insert(
        "setting".to_owned(),
        json!({"type": "array", "minItems": 1, "items": object(setting, &["name", "keys", "source"])}),
    );
    whole.insert("claim".to_owned(), json!({"type": "array", "items": object(keys(table("seek.claim"), Swept::No), &["id"])}));
    object(whole, &["setting"])
}

/// Whether a key may be swept: a list of values instead of one value.
#[derive(Clone, Copy)]
enum Swept {
    Yes,
    No,
}

impl Swept {
    fn of(self, one: Value) -> Value {
        match self {
            Swept::Yes => json!({"anyOf": [one, {"type": "array", "minItems": 1, "items": one}]}),
            Swept::No => one,
        }
    }
}

fn table(name: &str) -> &'static [Field] {
    TABLES.iter().find(|table| table.name == name).map(|table| table.fields).expect("a table of scenarios")
}

fn reference(room: &str) -> Value {
    json!({"$ref": format!("#/definitions/{room}")})
}

fn described(mut value: Value, about: &str) -> Value {
    value["description"] = json!(about.trim());
    value
}

fn object(keys: Map<String, Value>, required: &[&str]) -> Value {
    json!({"type": "object", "additionalProperties": false, "properties": keys, "required": required})
}

/// Returns the schemas of keys, with their descriptions and defaults.
fn keys(fields: &[Field], swept: Swept) -> Map<String, Value> {
    let one = |field: &Field| {
        let mut value = swept.of(value_schema(&(field.shape)(), field.range()));
        let source =
            if field.default.is_empty() { String::new() } else { format!(" Default: {} ({}).", field.default, field.source) };
        value["description"] = json!(format!("{}{source}", field.about.trim()));
        (field.name.to_owned(), value)
    };
    fields.iter().map(one).collect()
}

/// Returns the schema of a value. Ranges apply only to numbers without a unit.
fn value_schema(shape: &Shape, range: Option<(String, String)>) -> Value {
    let number = |kind: &str| {
        let mut value = json!({"type": kind});
        if let Some((low, high)) = &range {
            for (key, end) in [("minimum", low), ("maximum", high)] {
                if let Ok(number) = end.parse::<serde_json::Number>() {
                    value[key] = json!(number);
                }
            }
        }
        value
    };
    match shape {
        Shape::Integer => number("integer"),
        Shape::Number => number("number"),
        Shape::Bool => json!({"type": "boolean"}),
        Shape::Text => json!({"type": "string"}),
        Shape::Literal => json!({"type": ["string", "number"]}),
        Shape::OneOf(names) => json!({"enum": names}),
        Shape::Texts => {
            json!({"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}]})
        }
        Shape::Or(word, other) => json!({"anyOf": [{"const": word}, value_schema(other, range)]}),
    }
}

/// Returns the schema of an entry of a room: a table with its kind or, except for topologies and
/// workloads, its name.
fn part(room: &Room) -> Value {
    let default = SLOTS.iter().filter(|slot| slot.room.name == room.name).find_map(|slot| slot.default_kind());
    let named = !["topology", "workload"].contains(&room.name);
    let mut forms: Vec<Value> = Vec::new();
    if named {
        // A law of deadlines may also be a time.
        let names: Vec<&str> = room.names().collect();
        forms.push(if room.name == "deadline" { json!({"type": "string"}) } else { json!({"enum": names}) });
    }
    forms.extend(room.entries.iter().map(|entry| kind(room, entry, default == Some(entry.name))));
    json!({"description": room.about, "anyOf": forms})
}

/// Returns the schema of the table of an entry.
fn kind(room: &Room, entry: &Entry, is_default: bool) -> Value {
    let mut keys = keys(entry.fields, Swept::Yes);
    keys.insert("kind".to_owned(), described(json!({"const": entry.name}), entry.meta.summary));
    if room.name == "workload" {
        keys.insert("deadline".to_owned(), reference("deadline"));
    }
    let mut form = object(keys, if is_default { &[] } else { &["kind"] });
    if entry.meta.plugin.is_some() {
        // Only the file of a plug-in knows its own keys.
        form["additionalProperties"] = json!(true);
    }
    described(form, entry.meta.summary)
}

fn system() -> Value {
    let mut keys: Map<String, Value> = SLOTS.iter().map(|slot| (slot.name.to_owned(), reference(slot.room.name))).collect();
    keys.insert("label".to_owned(), described(json!({"type": "string"}), "name of the system in tables and figures"));
    let mut nic = self::keys(table("system.nic"), Swept::Yes);
    // The kind may be left out: then it is the discipline of the switches, with other parameters.
    nic.insert("qdisc".to_owned(), json!({"anyOf": [reference("qdisc"), {"type": "object"}]}));
    let kind = self::keys(table("system.nic"), Swept::No).remove("kind").unwrap_or_default();
    nic.insert("kind".to_owned(), kind.clone());
    keys.insert("nic".to_owned(), json!({"anyOf": [kind, object(nic, &[])]}));
    // No key is required: a policy may imply its transport.
    object(keys, &[])
}

fn event() -> Value {
    let mut keys = keys(table("event"), Swept::Yes);
    keys.insert("random".to_owned(), object(self::keys(table("event.random"), Swept::Yes), &[]));
    object(keys, &[])
}

/// Returns the schema of `engine`: `"flow"`, `["packet", "flow"]`, or a table.
fn engine() -> Value {
    let keys = keys(table("engine"), Swept::Yes);
    let kind = keys["kind"].clone();
    json!({"anyOf": [kind, object(keys, &[])]})
}

fn seed() -> Value {
    let one = json!({"type": "integer", "minimum": 0});
    json!({"anyOf": [one, {"const": "auto"}, {"type": "array", "minItems": 1, "uniqueItems": true, "items": one}]})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_has_every_entry_with_all_its_parameters() {
        let schema = schema();
        for room in ROOMS {
            let forms = schema["definitions"][room.name]["anyOf"].as_array().unwrap();
            for entry in room.entries {
                let form = forms.iter().find(|form| form["properties"]["kind"]["const"] == entry.name).unwrap();
                for field in entry.fields {
                    let about = form["properties"][field.name]["description"].as_str().unwrap();
                    assert!(
                        about.starts_with(field.about.trim()) && about.contains(field.default),
                        "{} {}",
                        entry.name,
                        field.name
                    );
                }
            }
        }
    }

    #[test]
    fn numbers_have_their_ranges_and_choices_their_names() {
        let range = Some(("1".to_owned(), "100".to_owned()));
        assert_eq!(value_schema(&Shape::Integer, range.clone()), json!({"type": "integer", "minimum": 1, "maximum": 100}));
        let auto = Shape::Or("auto", Box::new(Shape::Integer));
        assert_eq!(value_schema(&auto, range)["anyOf"][1]["maximum"], 100);
        assert_eq!(value_schema(&Shape::Literal, Some(("1us".to_owned(), "1s".to_owned()))), json!({"type": ["string", "number"]}));
        assert_eq!(value_schema(&Shape::OneOf(vec!["a", "b"]), None), json!({"enum": ["a", "b"]}));
    }
}
