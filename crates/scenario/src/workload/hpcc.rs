//! Flows from a flow file of HPCC's simulator, which many other programs based on ns-3 read too.
//!
//! ```text
//! 2                                  number of flows
//! 0 5 3 100 1500000 2.000010         source, destination, priority group, port, bytes, start in seconds
//! ...
//! ```
//! Line breaks may be anywhere. Source and destination are names of hosts (in a topology of kind
//! `hpcc` their numbers), or else numbers of hosts. Comments may follow the last flow, as in the
//! files of that simulator. A comment must not begin with a number or the name of a host: such a
//! text is an error, because it could be another flow.
//!
//! Source: simulation/mix of alibaba-edu/High-Precision-Congestion-Control.
//!
//! Model: priority groups and ports are read and have no effect; a policy sets priorities.
//!
//! Assumed: flows need not be sorted by their start, although that simulator requires it.

use super::cdf::MAX_SIZE_BYTES;
use super::listed::{self, Hosts, Listed};
use super::{Draw, Drawn, Env};
use crate::files::Files;
use crate::files::tokens::Tokens;
use base::params::Problem;
use base::registry::Meta;
use base::units::parse_dur;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "flows from a flow file of HPCC's simulator (ns-3)",
    source: "alibaba-edu/High-Precision-Congestion-Control, simulation/mix",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of flows from a file.
    pub struct Params {
        /// Path of the file; relative to the scenario.
        path: String = "", "";
    }
}

/// Returns the problems that depend on the rest of the scenario.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    listed::check::<Format>(params, env)
}

/// Flows from a flow file of HPCC's simulator.
pub type Hpcc = Listed<Format>;

/// The file format.
pub struct Format;

impl listed::Format for Format {
    type Params = Params;
    const HINT: &'static str = "the file begins with the number of flows; a flow is a line like `0 5 3 100 1500000 2.00001`";
    fn path(params: &Params) -> &str {
        &params.path
    }
    fn read(params: &Params, files: &Files, hosts: &Hosts<'_>) -> Result<Draw, String> {
        let text = files.text(&params.path)?;
        let mut tokens = Tokens::new(&params.path, &text);
        let count = tokens.whole("the number of flows", 0, u64::from(u32::MAX))?;
        let last = format!("the last of {count} flows");
        let mut flows = Vec::new();
        for _ in 0..count {
            let (src, dst) = (tokens.need(&last)?, tokens.need(&last)?);
            let (src, dst) = hosts.pair(&tokens, &src, &dst)?;
            tokens.whole("a priority group", 0, u64::from(u16::MAX))?;
            tokens.whole("a port", 0, u64::from(u16::MAX))?;
            let size_bytes = tokens.whole("a size in bytes", 1, MAX_SIZE_BYTES)?;
            let start = tokens.parse("a start in seconds", |text| listed::start(parse_dur(&format!("{text}s"))?))?;
            flows.push(Drawn { src, dst, size_bytes, start, deadline: None, group: None, connection: None, after: None });
        }
        tokens.end_or_comments("the last flow", |name| hosts.named(name).is_some())?;
        Ok(flows.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tokens::testing::mangled;
    use base::{HostId, Time};

    const SAMPLE: &str = "3\n0 5 3 100 1500000 2.000010\n7 1 3 200 1 2\n1 0 3 100 64000 2.000000001 \n";

    fn attempt(text: &str) -> Result<Vec<Drawn>, String> {
        listed::testing::attempt("hpcc", text, &[])
    }

    #[test]
    fn lines_become_flows() {
        let flows = attempt(SAMPLE).unwrap();
        let flow = |src, dst, size_bytes, start| Drawn {
            src: HostId(src),
            dst: HostId(dst),
            size_bytes,
            start: Time(start),
            deadline: None,
            group: None,
            connection: None,
            after: None,
        };
        let expected =
            [flow(0, 5, 1_500_000, 2_000_010_000_000), flow(7, 1, 1, 2_000_000_000_000), flow(1, 0, 64_000, 2_000_000_001_000)];
        assert_eq!(flows, expected);
        assert_eq!(attempt(&format!("{SAMPLE}\n\nFirst line: # of flows\n")).unwrap(), expected, "comments");
        assert_eq!(attempt("1 h2 h3 3 100 9 0").unwrap()[0].dst, HostId(3), "names of hosts, and line breaks anywhere");
    }

    #[test]
    fn mistakes_are_named_with_their_places() {
        let cases = [
            ("0\n", "has no flows"),
            ("2\n0 1 3 100 9 2\n", "flows.txt: the file ends before the last of 2 flows"),
            ("1\n0 99 3 100 9 2\n", "flows.txt:2:3: `99` is not a host"),
            ("1\n4 4 3 100 9 2\n", "flows.txt:2:3: `4` is also the source: a flow from a host to itself"),
            ("1\n0 1 3 100 0 2\n", "`0` is not a size in bytes"),
            ("1\n0 1 3 100 9 2e9\n", "`2e9` is not a start in seconds"),
            ("1\n0 1 3 100 9 -1\n", "`-1` is not a start in seconds"),
            ("1\n0 1 3 100 9 2000000\n", "`2000000` is not a start in seconds: is too large"),
            ("1\n0 1 3 100 9 2\n0 1 3 100 9 2\n", "flows.txt:3:1: `0` follows the last flow"),
            ("1\n0 1 3 100 9 2\nh0 h1 3 100 9 2\n", "flows.txt:3:1: `h0` follows the last flow"),
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
