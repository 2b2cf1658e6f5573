//! Flows from an input trace of YAPS, the simulator of pHost and pFabric's successors.
//!
//! ```text
//! 0 1.000012 x x 14 x x 3 77         number, start in seconds, two ignored fields, packets of 1460 bytes, two ignored fields, source, destination
//! ```
//! Source and destination are numbers of hosts, or names. Starts are rounded to picoseconds.
//!
//! Source: NetSys/simulator, `coresim/` and `ext/`: flows of `FlowReader`.

use super::cdf::MAX_SIZE_BYTES;
use super::listed::{self, Hosts, Listed};
use super::{Draw, Drawn, Env};
use crate::files::Files;
use crate::files::ns3;
use crate::files::tokens::Tokens;
use base::params::Problem;
use base::registry::Meta;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta { summary: "flows from an input trace of YAPS", source: "NetSys/simulator", ..Meta::PLAIN };

base::params! {
    /// Parameters of flows from a file.
    pub struct Params {
        /// Path of the file; relative to the scenario.
        path: String = "", "";
    }
}

/// Application bytes in a packet of YAPS.
const PACKET_BYTES: u64 = 1460;

/// Returns the problems that depend on the rest of the scenario.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    listed::check::<Format>(params, env)
}

/// Flows from an input trace of YAPS.
pub type Yaps = Listed<Format>;

/// The file format.
pub struct Format;

impl listed::Format for Format {
    type Params = Params;
    const HINT: &'static str = "a flow is a line of nine words like `0 1.000012 0 0 14 0 0 3 77`";
    fn path(params: &Params) -> &str {
        &params.path
    }
    fn read(params: &Params, files: &Files, hosts: &Hosts<'_>) -> Result<Draw, String> {
        let text = files.text(&params.path)?;
        let mut tokens = Tokens::new(&params.path, &text);
        let (mut flows, mut line) = (Vec::new(), Vec::new());
        while tokens.line(&mut line) {
            let [_, start, _, _, packets, _, _, src, dst] = line[..] else {
                return Err(tokens.wrong(&line[0], format!("begins a line of {} words, but a flow has nine", line.len())));
            };
            let at = ns3::seconds(start.text).and_then(listed::start);
            let at = at.map_err(|why| tokens.wrong(&start, format!("is not a start in seconds: {why}")))?;
            let most = MAX_SIZE_BYTES / PACKET_BYTES;
            let count = packets.text.parse::<u64>().ok().filter(|count| (1..=most).contains(count));
            let count = count.ok_or_else(|| {
                tokens.wrong(&packets, format!("is not a number of packets: must be a whole number from 1 to {most}"))
            })?;
            let (src, dst) = hosts.pair(&tokens, &src, &dst)?;
            flows.push(Drawn {
                src,
                dst,
                size_bytes: count * PACKET_BYTES,
                start: at,
                deadline: None,
                group: None,
                connection: None,
                after: None,
            });
        }
        Ok(flows.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tokens::testing::mangled;
    use base::{HostId, Time};

    const SAMPLE: &str = "0 1.000012 x x 14 x x 3 7\n1 11e-1 0 0 1 0 0 8 0\n";

    fn attempt(text: &str) -> Result<Vec<Drawn>, String> {
        listed::testing::attempt("yaps", text, &[])
    }

    #[test]
    fn lines_become_flows() {
        let flows = attempt(SAMPLE).unwrap();
        let seen: Vec<_> = flows.iter().map(|f| (f.src, f.dst, f.size_bytes, f.start)).collect();
        assert_eq!(
            seen,
            [(HostId(3), HostId(7), 20_440, Time(1_000_012_000_000)), (HostId(8), HostId(0), 1460, Time(1_100_000_000_000))]
        );
    }

    #[test]
    fn mistakes_are_named_with_their_places() {
        let cases = [
            ("", "has no flows"),
            ("0 1.0 0 0 14 0 0 3\n", "flows.txt:1:1: `0` begins a line of 8 words, but a flow has nine"),
            ("0 1.0 0 0 14 0 0 3\n7 1 1.0 0 0 14 0 0 3 7\n", "begins a line of 8 words"),
            ("0 soon 0 0 14 0 0 3 7\n", "flows.txt:1:3: `soon` is not a start in seconds"),
            ("0 1.0 0 0 0 0 0 3 7\n", "`0` is not a number of packets"),
            ("0 1.0 0 0 1 0 0 3 99\n", "`99` is not a host"),
            ("0 1.0 0 0 1 0 0 3 3\n", "to itself"),
        ];
        for (text, why) in cases {
            let message = attempt(text).unwrap_err();
            assert!(message.contains(why), "{text:?}: {message}");
        }
    }

    #[test]
    fn no_file_breaks_the_reader() {
        for text in mangled(SAMPLE) {
            let _ = attempt(&text);
        }
    }
}
