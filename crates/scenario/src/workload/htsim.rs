//! Flows from a connection matrix of htsim, the simulator of NDP and its successors.
//!
//! ```text
//! Nodes 8
//! Connections 3
//! Triggers 1
//! 0->5 id 1 start 0 size 200000 send_done_trigger 1
//! 5->2 id 2 trigger 1 size 64000
//! 1->3 start 1000000 size 9000 prio 1            start in picoseconds; older files: microseconds
//! 1->3 id 4 msg start 0 size 9000                uet-htsim: a message of connection 4
//! trigger id 1 oneshot
//! ```
//! Hosts are given by number or by name. A flow with `trigger` starts when that trigger fires: a
//! `oneshot` when the flow that names it is done, a `barrier` when `count` flows that name it are
//! done.
//!
//! Source: Broadcom/csg-htsim, spcl/HTSIM and ultraethernet/uet-htsim, `connection_matrix.cpp`.
//!
//! Model: priorities are read and have no effect. A flow is done when its last byte has arrived,
//! also for `send_done_trigger`. Every message of a connection is a flow of its own.
//!
//! Assumed: a `multishot` trigger, which starts one of its flows each time, is refused unless one
//! flow fires it and one flow waits for it. `addon` is refused, because the size of a flow is fixed
//! from the start. Failures are refused: they are events of the scenario.

use super::cdf::MAX_SIZE_BYTES;
use super::listed::{self, Hosts, Listed};
use super::{After, Draw, Drawn, Env};
use crate::files::Files;
use crate::files::tokens::{Line, Tokens, Word, lines};
use base::params::Problem;
use base::registry::Meta;
use base::{Dur, Time};
use std::collections::BTreeMap;

/// The META of this entry, for `list` and `check`.
pub const META: Meta =
    Meta { summary: "flows from a connection matrix of htsim", source: "Broadcom/csg-htsim, spcl/HTSIM", ..Meta::PLAIN };

base::choice! {
    /// The unit of `start`.
    pub enum StartUnit {
        /// Picoseconds.
        Ps = "ps",
        /// Microseconds, as in older files.
        Us = "us",
    }
}

base::params! {
    /// Parameters of flows from a file.
    pub struct Params {
        /// Path of the file; relative to the scenario.
        path: String = "", "";
        /// Unit of `start` in the file.
        start_unit: StartUnit = "ps", "current sources";
    }
}

/// Returns the problems that depend on the rest of the scenario.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    listed::check::<Format>(params, env)
}

/// Flows from a connection matrix of htsim.
pub type Htsim = Listed<Format>;

/// The file format.
pub struct Format;

/// A trigger.
#[derive(Default)]
struct Trigger {
    /// Number of flows that must be done, from the line of the trigger; `None` if it has no line.
    count: Option<usize>,
    shots: bool,
    fired_by: Vec<u32>,
    awaited_by: usize,
}

const MOST: u64 = u32::MAX as u64;

impl listed::Format for Format {
    type Params = Params;
    const HINT: &'static str = "a flow is a line like `0->5 start 0 size 200000`";
    fn path(params: &Params) -> &str {
        &params.path
    }
    fn read(params: &Params, files: &Files, hosts: &Hosts<'_>) -> Result<Draw, String> {
        let text = files.text(&params.path)?;
        let mut tokens = Tokens::new(&params.path, &text);
        let read = lines(&mut tokens);
        let (mut flows, mut waits) = (Vec::new(), Vec::new());
        let mut triggers: BTreeMap<u64, Trigger> = BTreeMap::new();
        let mut counts: BTreeMap<&str, (u64, Word<'_>)> = BTreeMap::new();
        let mut listed = 0;
        for mut line in read {
            let Some(first) = line.words.next() else { continue };
            match first.text {
                "Nodes" | "Connections" | "Triggers" | "Failures" => {
                    let count = line.number(&tokens, first.text, 0, MOST)?;
                    line.end(&tokens)?;
                    if counts.insert(first.text, (count, first)).is_some() {
                        return Err(tokens.wrong(&first, "is given twice"));
                    }
                }
                "trigger" => {
                    trigger(&tokens, &mut line, &mut triggers)?;
                    listed += 1;
                }
                "failure" => return Err(tokens.wrong(&first, "is not supported: write an `[[event]]` in the scenario")),
                _ => {
                    let number = flows.len() as u32;
                    let (flow, on) = flow(&tokens, (first, line), params, hosts, (number, &mut triggers))?;
                    flows.push(flow);
                    waits.push(on);
                }
            }
        }
        for (key, found) in [("Connections", flows.len() as u64), ("Triggers", listed), ("Failures", 0)] {
            if let Some((count, word)) = counts.get(key).filter(|(count, _)| *count != found) {
                return Err(tokens.wrong(word, format!("is {count}, but the file has {found}")));
            }
        }
        for (flow, on) in flows.iter_mut().zip(waits) {
            if let Some((id, word)) = on {
                flow.after = Some(Box::new(After::new(&fires(&tokens, &word, id, &triggers)?, Dur::ZERO)));
            }
        }
        Ok(flows.into())
    }
}

fn trigger(tokens: &Tokens<'_>, line: &mut Line<'_>, triggers: &mut BTreeMap<u64, Trigger>) -> Result<(), String> {
    let first = line.last;
    let (mut id, mut kind, mut count) = (None, None, None);
    while let Some(key) = line.words.next() {
        match key.text {
            "id" => id = Some(line.number(tokens, "id", 1, MOST)?),
            "count" => count = Some(line.number(tokens, "count", 1, MOST)? as usize),
            "oneshot" | "multishot" | "barrier" if kind.is_none() => kind = Some(key),
            "oneshot" | "multishot" | "barrier" => return Err(tokens.wrong(&key, "is a second kind of this trigger")),
            _ => return Err(tokens.wrong(&key, "is not a trigger: write `oneshot`, `multishot` or `barrier`")),
        }
    }
    let (Some(id), Some(kind)) = (id, kind) else {
        return Err(tokens.wrong(&first, "ends a trigger that needs an `id` and one of `oneshot`, `multishot`, `barrier`"));
    };
    let count = match (kind.text, count) {
        ("barrier", Some(count)) => count,
        ("barrier", None) => return Err(tokens.wrong(&kind, "needs a `count`")),
        (_, None) => 1,
        (_, Some(_)) => return Err(tokens.wrong(&kind, "has a `count`, but only a `barrier` can have a `count`")),
    };
    let known = triggers.entry(id).or_default();
    if known.count.replace(count).is_some() {
        return Err(tokens.wrong(&kind, format!("is the second line of trigger {id}")));
    }
    known.shots = kind.text == "multishot";
    Ok(())
}

/// Reads a flow and the trigger that it waits for.
fn flow<'a>(
    tokens: &Tokens<'_>,
    (ends, mut line): (Word<'a>, Line<'a>),
    params: &Params,
    hosts: &Hosts<'_>,
    (number, triggers): (u32, &mut BTreeMap<u64, Trigger>),
) -> Result<(Drawn, Option<(u64, Word<'a>)>), String> {
    let Some((src, dst)) = ends.text.split_once("->") else {
        return Err(tokens.wrong(&ends, "is neither a flow, like `0->5`, nor a keyword at the start of a line"));
    };
    let (src, dst) = hosts.pair(tokens, &Word { text: src, ..ends }, &Word { text: dst, ..ends })?;
    let (mut start, mut size, mut waits) = (None, None, None);
    while let Some(key) = line.words.next() {
        match key.text {
            "id" => drop(line.number(tokens, "id", 1, MOST)?),
            // The number of the message may be left out.
            "msg" if line.words.as_slice().first().is_some_and(|word| word.text.parse::<u64>().is_ok()) => {
                line.number(tokens, "msg", 1, MOST)?;
            }
            "msg" => {}
            "prio" => drop(line.number(tokens, "prio", 0, MOST)?),
            "size" => size = Some(line.number(tokens, "size", 1, MAX_SIZE_BYTES)?),
            "start" => {
                let word = line.value(tokens, "start")?;
                let unit = if params.start_unit == StartUnit::Ps { "ps" } else { "us" };
                let at = base::units::parse_dur(&format!("{}{unit}", word.text)).and_then(listed::start);
                start = Some(at.map_err(|why| tokens.wrong(&word, format!("is not a start: {why}")))?);
            }
            "trigger" => {
                let id = line.number(tokens, "trigger", 1, MOST)?;
                triggers.entry(id).or_default().awaited_by += 1;
                waits = Some((id, key));
            }
            "send_done_trigger" | "recv_done_trigger" => {
                let id = line.number(tokens, key.text, 1, MOST)?;
                triggers.entry(id).or_default().fired_by.push(number);
            }
            "addon" => return Err(tokens.wrong(&key, "is not supported: the size of a flow is fixed from the start")),
            _ => return Err(tokens.wrong(&key, "is not a key of a flow")),
        }
    }
    let Some(size_bytes) = size else { return Err(tokens.wrong(&ends, "has no `size`")) };
    let start = match (start, &waits) {
        (Some(start), None) => start,
        (None, Some(_)) => Time::ZERO,
        _ => return Err(tokens.wrong(&ends, "needs either `start` or `trigger`")),
    };
    Ok((Drawn { src, dst, size_bytes, start, deadline: None, group: None, connection: None, after: None }, waits))
}

/// Returns the flows that must be done before a trigger starts the flows that wait for it.
fn fires(tokens: &Tokens<'_>, at: &Word<'_>, id: u64, triggers: &BTreeMap<u64, Trigger>) -> Result<Vec<u32>, String> {
    let trigger = &triggers[&id];
    let wrong = |why: String| Err(tokens.wrong(at, why));
    let Some(count) = trigger.count else { return wrong(format!("{id} has no line of its own")) };
    if trigger.shots && (trigger.awaited_by, trigger.fired_by.len()) != (1, 1) {
        return wrong(format!("{id} is `multishot`, which starts one flow each time: this is not supported"));
    }
    let found = trigger.fired_by.len();
    if found != count {
        return wrong(format!("{id} fires after {count} flows, but {found} flows name it"));
    }
    Ok(trigger.fired_by.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tokens::testing::mangled;
    use base::HostId;

    const SAMPLE: &str = "# a matrix\nNodes 9\nConnections 5\nTriggers 2\n0->5 id 1 start 0 size 200000 send_done_trigger 1\n\
                          1->5 start 1000000 size 9000 recv_done_trigger 1 # and more\n5->2 id 3 trigger 1 size 64000 send_done_trigger 2\n\
                          2->3 trigger 2 size 7 prio 4\n\n2->4 size 8 trigger 2\ntrigger count 2 barrier id 1\ntrigger id 2 oneshot\n";

    fn attempt(text: &str, more: &[(&'static str, &str)]) -> Result<Vec<Drawn>, String> {
        listed::testing::attempt("htsim", text, more)
    }

    #[test]
    fn lines_become_flows_and_triggers_what_they_wait_for() {
        let flows = attempt(SAMPLE, &[]).unwrap();
        let seen: Vec<_> = flows.iter().map(|f| (f.src.0, f.dst.0, f.size_bytes)).collect();
        assert_eq!(seen, [(0, 5, 200_000), (1, 5, 9000), (5, 2, 64_000), (2, 3, 7), (2, 4, 8)]);
        assert_eq!((flows[1].start, flows[0].src), (Time(1_000_000), HostId(0)));
        let after = |i: usize| flows[i].after.as_ref().map(|after| after.flows.iter().map(|on| on.0).collect::<Vec<u32>>());
        assert_eq!([after(0), after(2), after(3), after(4)], [None, Some(vec![0, 1]), Some(vec![2]), Some(vec![2])]);
        let messages = attempt("0->1 id 1 msg start 0 size 7\n0->1 id 1 msg 2 size 9 start 5\n", &[]).unwrap();
        assert_eq!(messages.iter().map(|f| (f.start.0, f.size_bytes)).collect::<Vec<_>>(), [(0, 7), (5, 9)]);
        let older = attempt("0->1 start 3 size 9\n", &[("start_unit", "us")]).unwrap();
        assert_eq!(older[0].start, Time(3_000_000));
    }

    #[test]
    fn mistakes_are_named_with_their_places() {
        let cases = [
            ("", "has no flows"),
            ("Connections 1 2\n0->1 start 0 size 9\n", "flows.txt:1:15: `2` has no meaning here"),
            ("Connections 1\nConnections 1\n0->1 start 0 size 9\n", "flows.txt:2:1: `Connections` is given twice"),
            ("Connections 2\n0->1 start 0 size 9\n", "flows.txt:1:1: `Connections` is 2, but the file has 1"),
            ("0->1 start 0\n", "flows.txt:1:1: `0->1` has no `size`"),
            ("0->1 size 9\n", "needs either `start` or `trigger`"),
            ("0->1 size 9 start 0 trigger 1\n", "needs either `start` or `trigger`"),
            ("0->1 size\n", "flows.txt:1:6: `size` ends the line before the value of `size`"),
            ("0->1 start 0 size 9 msg 0\n", "flows.txt:1:25: `0` is not a value of `msg`"),
            ("0->1 start 0 size 9 color 3\n", "flows.txt:1:21: `color` is not a key of a flow"),
            ("0->99 start 0 size 9\n", "`99` is not a host"),
            ("0->0 start 0 size 9\n", "to itself"),
            ("flow 0 1\n", "`flow` is neither a flow"),
            ("0->1 trigger 1 size 9\n", "`trigger` 1 has no line of its own"),
            ("0->1 trigger 1 size 9\ntrigger id 1 oneshot\n", "1 fires after 1 flows, but 0 flows name it"),
            ("trigger id 1 twice\n", "`twice` is not a trigger"),
            ("trigger id 1 oneshot\ntrigger id 1 oneshot\n", "is the second line of trigger 1"),
            ("trigger id 0 oneshot\n", "`0` is not a value of `id`"),
            ("trigger oneshot\n", "flows.txt:1:9: `oneshot` ends a trigger that needs an `id`"),
            ("trigger id 1 oneshot barrier count 2\n", "`barrier` is a second kind"),
            ("trigger id 1 barrier\n", "`barrier` needs a `count`"),
            ("trigger id 1 oneshot count 2\n", "`oneshot` has a `count`"),
            ("0->1 trigger 1 size 9 addon\n", "`addon` is not supported"),
            ("failure switch_type TOR\n", "write an `[[event]]`"),
            (
                "0->1 start 0 size 9 send_done_trigger 1\n1->2 trigger 1 size 9\n1->3 trigger 1 size 9\ntrigger id 1 multishot\n",
                "1 is `multishot`",
            ),
            ("0->1 trigger 1 size 9 send_done_trigger 1\ntrigger id 1 oneshot\n", "flow 1 waits for itself"),
        ];
        for (text, why) in cases {
            let message = attempt(text, &[]).unwrap_err();
            assert!(message.contains(why), "{text:?}: {message}");
        }
    }

    #[test]
    fn no_file_breaks_the_reader() {
        for text in mangled(SAMPLE) {
            let _ = attempt(&text, &[]);
        }
    }
}
