//! The queue lengths that `auto` gives at the ports of each system, for `check`.

use crate::plan::draft::Draft;
use crate::plan::spec::QueueLength;
use crate::system::envs::Envs;
use base::params::Param as _;
use base::text::escaped;
use base::{Limit, Offers};
use fabric::qdisc::Qdisc as _;

/// Returns a length as a comment line of the plan.
pub(crate) fn line(length: &QueueLength) -> String {
    let QueueLength { system, swept, qdisc, key, rule, max_rtt, at } = length;
    let with: String = swept.iter().map(|(key, value)| format!(", {key} = {value}")).collect();
    let at: Vec<String> = at.iter().map(|(rate, limit)| format!("{} at {rate}", limit.show())).collect();
    let text = format!("# {system}{with}: {qdisc}: {key} = auto: {} ({rule}; round trip {max_rtt})", at.join(", "));
    format!("{}\n", escaped(&text))
}

/// Returns all queue lengths that `auto` sets. A length that is equal for several swept values is
/// listed once.
pub(crate) fn lengths(draft: &Draft) -> Vec<QueueLength> {
    let mut found: Vec<QueueLength> = Vec::new();
    if draft.engine.variants.iter().all(|engine| engine.value.is_flow()) {
        return found;
    }
    for section in &draft.systems {
        for (topology, variant) in draft.topology.variants.iter().flat_map(|t| section.variants.iter().map(move |v| (t, v))) {
            let system = &variant.value;
            let site = draft.site(&topology.value);
            let envs = Envs::new(site, system.ports_and_router(), system.given(), Offers::new(Vec::new));
            let ports = envs.switch_port_of_each_rate().into_iter().map(|port| envs.qdisc(port));
            let queues: Vec<_> = ports.map(|env| (env.rate, system.qdisc.build(&env).lengths())).collect();
            let swept: Vec<_> = topology.swept.iter().chain(&variant.swept).cloned().collect();
            for field in fabric::qdisc::ROOM.entry(system.qdisc.name()).map_or(&[][..], |entry| entry.fields) {
                let auto = system.qdisc.show().iter().any(|(key, value)| *key == field.name && value == "auto");
                if !auto || !system.qdisc.meta().queue_lengths.contains(&field.name) {
                    continue;
                }
                let of = |lengths: &Vec<(&str, Limit)>| lengths.iter().find(|(key, _)| *key == field.name).map(|(_, limit)| *limit);
                let length = QueueLength {
                    system: section.name.clone(),
                    swept: swept.clone(),
                    qdisc: system.qdisc.name(),
                    key: field.name,
                    rule: field.source,
                    max_rtt: site.max_rtt,
                    at: queues.iter().filter_map(|(rate, lengths)| Some((*rate, of(lengths)?))).collect(),
                };
                let same = |known: &QueueLength| QueueLength { swept: swept.clone(), ..known.clone() } == length;
                if !found.iter().any(same) {
                    found.push(length);
                }
            }
        }
    }
    found
}
