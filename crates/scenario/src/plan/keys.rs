//! Keys of the tables without a kind, and the limits of a scenario.

use crate::plan::selection::FlowSet;
use crate::system::slots::HostKind;
use crate::topology::MAX_DELAY;
use crate::workload::MAX_TIME;
use base::params::Auto;
use base::{Bytes, Dur, Limit, Time};
use xxhash_rust::xxh3::xxh3_64;

base::params! {
    /// Top-level keys of a scenario.
    pub struct Head {
        /// Latest end of a run; `auto`: when all flows have finished and closed.
        end: Auto<Dur> = "auto" in Auto::Set(Dur(1))..=Auto::Set(MAX_TIME), "a run ends with its last flow";
        /// Largest packet on the wire, headers included.
        mtu: Bytes = "1500B" in Bytes(64)..=Bytes(65_535), "Ethernet";
        /// Header bytes of every packet; also the size of a packet without payload.
        header: Bytes = "40B" in Bytes(1)..=Bytes(1_000), "IPv4 and TCP without options";
    }
}

base::params! {
    /// Time series.
    pub struct SampleParams {
        /// Time between two samples.
        interval: Dur = "10us" in Dur(1_000)..=MAX_DELAY, "flowloom: the time of a packet at 1 Gb/s";
        /// Records the queue length and utilisation of every port.
        ports: bool = "true", "what most plots show";
        /// The only port that is recorded, like `tor0->root`; `none`: all ports.
        port: Option<String> = "none", "flowloom: all ports";
        /// Records the rate and window of every open flow.
        flows: bool = "false", "flowloom: the table is large";
        /// Records how many packets of its router every switch has sent and received, if any.
        switches: bool = "false", "flowloom: for routers that send packets";
        /// Records the values that the agents of ports keep for each flow (MERP, PDQ).
        agents: bool = "false", "flowloom: the table is very large";
        /// Records every packet.
        packets: bool = "false", "flowloom: the trace is very large";
        /// Start of the recording.
        start: Dur = "0s" in Dur::ZERO..=MAX_TIME, "flowloom: the whole run", quiet;
        /// End of the recording; `auto`: the end of the run.
        end: Auto<Dur> = "auto" in Auto::Set(Dur(1))..=Auto::Set(MAX_TIME), "flowloom: the whole run", quiet;
        /// Ports whose series, agent tables and packets are recorded: `all`, or names like
        /// `leaf0->h3, spine1->*`, where `*` matches any characters.
        only_ports: String = "all", "flowloom: all ports", quiet;
        /// Flows whose series, agent values and packets are recorded: `all`, or ids and ranges like
        /// `12, 100..199`.
        only_flows: FlowSet = "all", "flowloom: all flows", quiet;
    }
}

base::params! {
    /// Host ports.
    pub struct NicParams {
        /// The kind of host: `pull`, the NIC holds two packets and asks the flow whose next packet has the best class and rank,
        /// which a transport with an order of its own ignores; `turns`, the same, but flows take turns whatever their classes;
        /// `ns2`, all packets wait at the NIC in a queue like those of switch ports, with its limit and its marks.
        kind: HostKind = "pull", "Linux: a queue for each class and byte queue limits; entries that were measured with ns-2 imply `ns2`", quiet;
        /// Low-water mark: the NIC asks the transport for packets while its backlog is at most this; `auto`: 2 MTU, one packet on
        /// the wire and one after it, and `unlimited` for `ns2`; `unlimited`: always.
        low_water: Auto<Limit> = "auto", "flowloom: the shortest backlog that keeps the wire busy";
    }
}

impl Head {
    /// Returns the latest end of a run.
    pub fn latest_end(&self) -> Option<Time> {
        match self.end {
            Auto::Auto => None,
            Auto::Set(end) => Some(Time(end.0)),
        }
    }
}

/// Maximum number of points.
pub(crate) const MAX_POINTS: u64 = 100_000;

/// Returns whether a text can be the name of a folder on every operating system.
pub(crate) fn is_plain_name(text: &str) -> bool {
    let ends = |c: char| c == '.' || c == ' ';
    !text.is_empty() && text.len() <= MAX_NAME && !text.starts_with(ends) && !text.ends_with(ends) && text.chars().all(is_plain)
}

fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ' ')
}

/// Maximum length of a plain name, in bytes.
const MAX_NAME: usize = 100;

/// Returns a plain name for any text: the text itself if it is a plain name, else its plain
/// characters and a hash, so that different texts have different names.
pub fn plain_name(text: &str) -> String {
    if is_plain_name(text) {
        return text.to_owned();
    }
    let mut name: String = text.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    let tail = format!("-{:08x}", xxh3_64(text.as_bytes()) as u32);
    while name.len() + tail.len() > MAX_NAME {
        name.pop();
    }
    format!("{}{tail}", name.trim_matches(['.', ' ', '-'])).trim_start_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_texts_have_different_plain_names() {
        let long = "x".repeat(300);
        let longer = "x".repeat(301);
        let texts = ["a b", "a-b", "a/b", "a:b", "../a", "", ".", "..", "🦀", "🐌", &long, &longer, "ä", "a ", "con\n"];
        let names: Vec<String> = texts.iter().map(|text| plain_name(text)).collect();
        for (i, name) in names.iter().enumerate() {
            assert!(is_plain_name(name), "{name:?}");
            assert!(!names[..i].contains(name), "{name:?}");
        }
        assert_eq!((names[0].as_str(), names[1].as_str(), names[12].as_str()), ("a b", "a-b", "ä"));
    }
}
