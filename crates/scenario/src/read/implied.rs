//! Settings that the META of an entry implies for other parts (`implies`). They are written into
//! the system's table before it is read, where the scenario does not set them.

use crate::files::Files;
use crate::system::slots::{HostKind, SLOTS, Slot};
use crate::text::tree::{Node, Table, Value, parse_value};
use base::params::{Param as _, Raw};
use base::registry::{Entry, FILE};

/// The key of the number of packets that the NIC holds.
const LOW_WATER: &str = "nic.low_water";

/// Adds the implied settings of its entries to every system.
pub(crate) fn fill(root: &mut Table, files: &Files) {
    if let Some(Value::List(systems)) = root.get_mut("system").map(|entry| &mut entry.node.value) {
        systems.iter_mut().filter_map(Node::table_mut).for_each(|system| fill_system(system, files));
    }
}

fn fill_system(system: &mut Table, files: &Files) {
    // Earlier entries take precedence. The transport, whose slot is first, comes late: a policy or
    // an agent has stricter needs for queues. The router comes last: its own packets work with any
    // queues.
    // A low-water mark of the scenario or of a transport that chooses its packets late keeps the kind of host, unless the
    // scenario asks for `ns2`.
    let nic = |key: &str| system.get("nic").and_then(|nic| nic.node.table()?.get(key));
    let keeps = nic("low_water").is_some() || chooses_late(system, files);
    let pushes = nic("kind").and_then(|kind| kind.node.text()) == Some(HostKind::Ns2.show().as_str());
    let (routers, others): (Vec<&Slot>, Vec<&Slot>) = SLOTS.iter().rev().partition(|slot| slot.name == "router");
    for slot in others.into_iter().chain(routers) {
        let Some((entry, kind)) = part(system, slot, files) else { continue };
        // Values for the entry's own slot are for tests only; a scenario uses its defaults.
        for (key, value) in
            entry.meta.implies.iter().filter(|(key, _)| key.split_once('.').is_none_or(|(part, _)| part != slot.name))
        {
            if *key == "nic.kind" && keeps || *key == LOW_WATER && pushes {
                continue;
            }
            put(system, key, value, &kind);
        }
    }
}

/// Returns whether the transport of a system implies how many packets the NIC holds.
fn chooses_late(system: &Table, files: &Files) -> bool {
    let transport = SLOTS.iter().find(|slot| slot.name == "transport").and_then(|slot| part(system, slot, files));
    transport.is_some_and(|(entry, _)| entry.meta.implies.iter().any(|(key, _)| *key == LOW_WATER))
}

/// Returns the entry that a system names in a slot, and the node that names it.
fn part(system: &Table, slot: &Slot, files: &Files) -> Option<(&'static Entry, Node)> {
    let table = system.get(slot.name)?.node.table()?;
    let kind = &table.get("kind")?.node;
    let entry = slot.room.entry(kind.text()?)?;
    let Some(room) = entry.meta.plugin else { return Some((entry, kind.clone())) };
    // The first of several plug-ins counts. What cannot be loaded is reported by the reader.
    let path = match &table.get(FILE)?.node {
        Node { value: Value::List(paths), .. } => paths.first()?.text()?,
        node => node.text()?,
    };
    Some((entry.of_plugin(files.plugin_of(room, path).ok()?).ok()?, kind.clone()))
}

/// Sets a key of a part, such as `qdisc.classes`, if the system does not set it and the kind of the
/// part has this parameter.
fn put(system: &mut Table, key: &str, value: &str, source: &Node) {
    let (part, field) = key.split_once('.').expect("a key names a part and a parameter of it");
    let slot = SLOTS.iter().find(|slot| slot.name == part);
    if let Some(slot) = slot.filter(|_| field != "kind") {
        let named = system.get(part).and_then(|entry| entry.node.table()?.get("kind")?.node.text());
        let entry = named.or(slot.default_kind()).and_then(|kind| slot.room.entry(kind));
        if !entry.is_some_and(|entry| entry.fields.iter().any(|known| known.name == field)) {
            return;
        }
    }
    if system.get(part).is_none() {
        system.put(part, source.at, Node { value: Value::Table(Table::default()), ..source.clone() });
    }
    let Some(table) = system.get_mut(part).and_then(|entry| entry.node.table_mut()) else { return };
    if table.get(field).is_none() {
        let value = match parse_value(value, 0, 0).value {
            Value::Scalar(raw) => raw,
            Value::List(_) | Value::Table(_) => Raw::Str(value.to_owned()),
        };
        table.put(field, source.at, Node { value: Value::Scalar(value), ..source.clone() });
    }
}
