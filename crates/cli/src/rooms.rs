//! Everything with a name that scenarios are built from, room by room.

use base::registry::Entry;

/// A room: its name in scenarios, its name in `list`, its entries.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// As in `explain` and error messages: `qdisc`.
    pub name: &'static str,
    /// As in `list`: `qdiscs`.
    pub plural: &'static str,
    /// What its entries are.
    pub about: &'static str,
    /// Its entries.
    pub entries: &'static [Entry],
}

/// All rooms but the metrics.
pub const ROOMS: [Room; 7] = [
    Room { name: "transport", plural: "transports", about: "what hosts speak", entries: proto::transport::ENTRIES },
    Room { name: "qdisc", plural: "qdiscs", about: "how ports queue and drop", entries: fabric::qdisc::ENTRIES },
    Room { name: "router", plural: "routers", about: "which of several paths a flow takes", entries: fabric::router::ENTRIES },
    Room { name: "agent", plural: "agents", about: "logic of ports beside the queue", entries: fabric::agent::ENTRIES },
    Room { name: "topology", plural: "topologies", about: "how nodes are connected", entries: scenario::topology::ENTRIES },
    Room { name: "workload", plural: "workloads", about: "which flows there are", entries: scenario::workload::ENTRIES },
    Room {
        name: "deadline",
        plural: "deadlines",
        about: "what time a workload's flows may take",
        entries: scenario::deadline::ENTRIES,
    },
];

/// The parts of a file's head that begin with a tag: (`Assumed`, text), in the order of the file.
pub fn tagged(head: &str) -> Vec<(String, String)> {
    const TAGS: [&str; 4] = ["Source", "Model", "Assumed", "Deviates"];
    let mut parts: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in head.lines() {
        let tag = TAGS.into_iter().find_map(|tag| line.strip_prefix(tag)?.strip_prefix(':').map(|rest| (tag, rest)));
        match tag {
            Some((tag, rest)) => {
                parts.push((tag.to_owned(), rest.trim().to_owned()));
                inside = true;
            }
            None if line.trim().is_empty() => inside = false,
            None if inside => {
                let text = &mut parts.last_mut().expect("inside a part").1;
                text.push('\n');
                text.push_str(line.trim_end());
            }
            None => {}
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tagged_parts_end_at_an_empty_line_or_the_next_tag() {
        let head = "One sentence.\n\nSource: a paper,\nsection 2.\nModel: nothing left out.\n\nMore: text.\n\nAssumed:\n- one\n  thing\n- two\n";
        let parts = tagged(head);
        let parts: Vec<(&str, &str)> = parts.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(
            parts,
            [("Source", "a paper,\nsection 2."), ("Model", "nothing left out."), ("Assumed", "\n- one\n  thing\n- two")]
        );
    }
}
