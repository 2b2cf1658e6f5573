//! PIAS: a flow starts in the first class and goes down one class at each threshold of bytes sent, so that short flows go first although
//! no size is known.
//!
//! Source: W. Bai et al., "Information-Agnostic Flow Scheduling for Commodity Data Centers", NSDI 2015, section 4; the authors' ns-2
//! scripts, where the thresholds come from, and their host module, where counting and aging come from.
//!
//! Model: sizes are not known. Ports must serve classes in strict order (`strict`) for the classes to have any effect; the authors have
//! eight, and DCTCP with one marking threshold per port.
//!
//! Thresholds of `auto`, in packets of 1460 bytes of payload, by the load offered (authors' ns-2 scripts):
//!
//! | load | web search | data mining |
//! |---|---|---|
//! | 0.5 | 1059 1412 1643 1869 2008 2115 2184 | 805 1106 1401 10693 11970 21162 22272 |
//! | 0.6 | 956 1381 1718 2028 2297 2551 2660 | 840 1232 1617 11950 12238 21494 25720 |
//! | 0.7 | 999 1305 1564 1763 1956 2149 2309 | 907 1301 1619 12166 12915 21313 26374 |
//! | 0.8 | 909 1329 1648 1960 2143 2337 2484 | 745 1083 1391 13689 14936 21149 27245 |
//! | 0.9 | 759 1132 1456 1737 2010 2199 2325 | 750 1083 1416 13705 14952 21125 28253 |
//!
//! Assumed:
//! - The class of a packet is that of its first byte: the first class whose threshold is not below the number of bytes before it.
//! - Packets without payload are in the first class, whoever sends them.
//! - `auto` takes the row nearest to the load, the upper one of two that are as near; below 0.5 that of 0.5, above 0.9 that of 0.9. The
//!   load is the sum over all workloads of the law.
//! - A workload is web search or data mining if its size law passes through the upper points of the published one, from 0.53 or 0.8 on,
//!   give or take 0.02: the tables in use differ below.
//! - With aging and `count = "offset"`, bytes are counted from the first one that was not acknowledged when the count went back to 0.
//! - Timeouts are consecutive if no ACK of new bytes arrives between them.
//!
//! Deviates: with `count = "sent"` bytes sent again count again, as the host module sees packets and not flows.

use super::{Cx, Policy};
use crate::contract::Env;
use crate::packet::{Kind, Packet};
use base::given::Offered;
use base::params::{Auto, Param, Problem, Raw};
use base::registry::Meta;
use base::{FlowId, FlowMap, Fraction, Limit};

/// What `list` and `check` know of it.
pub const META: Meta = Meta {
    summary: "PIAS: classes go down with the bytes that a flow has sent; no sizes are known",
    source: "Bai et al., NSDI 2015; the authors' ns-2 scripts and host module",
    beside: &[
        ("policy.thresholds", "30pkt, 300pkt"),
        ("transport.kind", "dctcp"),
        ("qdisc.kind", "strict"),
        ("qdisc.classes", "8"),
    ],
    ..Meta::PLAIN
};

base::choice! {
    /// Which bytes of a flow count.
    pub enum Count {
        /// Those before the packet's first byte: what is sent again keeps its class.
        Offset = "offset",
        /// All that were sent, and sent again, before the packet.
        Sent = "sent",
    }
}

base::params! {
    /// Parameters of PIAS.
    pub struct Params {
        /// Thresholds between the classes, rising, in full packets or in bytes of payload; `auto`: those of the workload at its load.
        thresholds: Auto<Thresholds> = "auto", "authors' ns-2 scripts";
        /// Which bytes of a flow count.
        count: Count = "offset", "authors' ns-2 scripts; their host module: `sent`";
        /// Consecutive timeouts bring a flow back to the first class.
        aging: bool = "false", "authors' ns-2 scripts; their host module has it";
        /// How many consecutive timeouts it takes.
        aging_after: u32 = "3" in 1..=100, "authors' host module";
    }
}

/// Thresholds as written.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub struct Thresholds(pub Vec<Limit>);

impl Param for Thresholds {
    fn expects() -> String {
        "a list of limits in packets or bytes, like `30pkt, 300pkt`".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        let wrong = || format!("is not {}", Self::expects());
        let Raw::Str(text) = raw else { return Err(wrong()) };
        let limits = text.split(',').map(base::units::parse_limit).collect::<Result<Vec<_>, _>>().map_err(|_| wrong())?;
        if limits.contains(&Limit::Unlimited) { Err(wrong()) } else { Ok(Thresholds(limits)) }
    }
    fn show(&self) -> String {
        self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}

/// Problems that show only against the network, the workloads and the other parts of the system.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let problem = |message: String, hint: &str| Problem { key: "thresholds", message, hint: hint.to_owned() };
    let bytes = match thresholds(params, env) {
        Ok(bytes) => bytes,
        Err(why) => {
            return vec![problem(format!("`auto` has no thresholds here: {why}"), "write the thresholds, like `30pkt, 300pkt`")];
        }
    };
    let mut problems = Vec::new();
    if let Some(pair) = bytes.windows(2).find(|pair| pair[0] >= pair[1]) {
        let message = format!("`{}B` does not lie below the next threshold, `{}B`", pair[0], pair[1]);
        problems.push(problem(message, "write the thresholds in rising order"));
    }
    let classes = bytes.len() + 1;
    if let Some(has) = env.given.value::<u32>("qdisc", "classes").filter(|has| (*has as usize) < classes) {
        let message = format!("{} thresholds make {classes} classes, the switches have {has}", bytes.len());
        problems.push(problem(message, &format!("set `qdisc.classes` to {classes}, or write fewer thresholds")));
    }
    problems
}

/// The thresholds in bytes of payload; or why there are none.
fn thresholds(params: &Params, env: &Env<'_>) -> Result<Vec<u64>, String> {
    let Auto::Set(Thresholds(limits)) = &params.thresholds else {
        let (table, load) = offered(env.offered)?;
        return Ok(table[row(load)].iter().map(|packets| packets * PAYLOAD).collect());
    };
    let bytes = |limit: &Limit| match limit {
        Limit::Packets(n) => u64::from(*n) * u64::from(env.mss()),
        Limit::Bytes(n) => *n,
        Limit::Unlimited => u64::MAX,
    };
    Ok(limits.iter().map(bytes).collect())
}

/// The table of the law that is offered, and its load.
fn offered(all: &[Offered]) -> Result<(&'static Table, Fraction), String> {
    let mut found: Option<(&Law, u64)> = None;
    for (one, load) in all.iter().filter_map(|one| Some((one, one.load?))) {
        let Some(law) = LAWS.iter().find(|law| law.points.iter().all(|point| passes(&one.sizes, point))) else { continue };
        match &mut found {
            Some((known, sum)) if known.name == law.name => *sum += load.ppb(),
            Some((known, _)) => return Err(format!("the workloads offer both {} and {}", known.name, law.name)),
            None => found = Some((law, load.ppb())),
        }
    }
    let (law, load) = found.ok_or("no workload offers web search or data mining at a load")?;
    Ok((&law.thresholds, Fraction(load)))
}

/// The row of a load.
fn row(load: Fraction) -> usize {
    let tenths = (load.ppb() + 50_000_000) / 100_000_000;
    tenths.clamp(5, 9) as usize - 5
}

/// Whether a size law passes through a point, give or take [`TOLERANCE`].
fn passes(sizes: &[(u64, f64)], &(size, probability): &(u64, f64)) -> bool {
    let above = sizes.partition_point(|point| point.0 <= size);
    let seen = match (above.checked_sub(1).map(|i| sizes[i]), sizes.get(above)) {
        (None, _) => 0.0,
        (Some((_, p)), None) => p,
        (Some((x0, p0)), Some(&(x1, p1))) => p0 + (p1 - p0) * (size - x0) as f64 / (x1 - x0) as f64,
    };
    (seen - probability).abs() <= TOLERANCE
}

/// The machine of one host.
pub struct Pias {
    /// In bytes of payload, rising.
    thresholds: Vec<u64>,
    count: Count,
    /// Consecutive timeouts that bring a flow back, if any do.
    aging: Option<u32>,
    flows: FlowMap<Counted>,
}

/// What is counted of a flow that the host sends.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    /// Bytes sent since the count was 0.
    sent: u64,
    /// Where bytes are counted from, as an offset.
    from: u64,
    /// All bytes below are acknowledged.
    acked: u64,
    /// Timeouts since.
    timeouts: u32,
}

impl Pias {
    /// A host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let thresholds = thresholds(params, env).expect("checked with the scenario");
        let aging = params.aging.then_some(params.aging_after);
        Pias { thresholds, count: params.count, aging, flows: FlowMap::default() }
    }
    /// The class of a packet with so many bytes before it.
    #[inline]
    fn class(&self, bytes: u64) -> u8 {
        let below = self.thresholds.iter().take_while(|threshold| **threshold < bytes).count();
        u8::try_from(below).unwrap_or(u8::MAX)
    }
}

impl Policy for Pias {
    fn on_open(&mut self, flow: FlowId, _cx: &mut Cx<'_>) {
        self.flows.insert(flow, Counted::default());
    }
    #[inline]
    fn on_send(&mut self, packet: &mut Packet, _cx: &mut Cx<'_>) {
        packet.prio = 0;
        if packet.payload == 0 {
            return;
        }
        let Some(counted) = self.flows.get_mut(packet.flow) else { return };
        let bytes = match self.count {
            Count::Offset => packet.offset.saturating_sub(counted.from),
            Count::Sent => counted.sent,
        };
        counted.sent += u64::from(packet.payload);
        packet.prio = self.class(bytes);
    }
    fn on_receive(&mut self, packet: &mut Packet, _cx: &mut Cx<'_>) -> bool {
        if self.aging.is_some()
            && packet.kind == Kind::ACK
            && let Some(counted) = self.flows.get_mut(packet.flow)
            && packet.offset > counted.acked
        {
            (counted.acked, counted.timeouts) = (packet.offset, 0);
        }
        true
    }
    fn on_timeout(&mut self, flow: FlowId, _cx: &mut Cx<'_>) {
        let (Some(most), Some(counted)) = (self.aging, self.flows.get_mut(flow)) else { return };
        counted.timeouts += 1;
        if counted.timeouts >= most {
            (counted.sent, counted.from, counted.timeouts) = (0, counted.acked, 0);
        }
    }
    fn on_close(&mut self, flow: FlowId, _cx: &mut Cx<'_>) {
        self.flows.remove(flow);
    }
}

/// Thresholds in packets of [`PAYLOAD`], by load: 0.5 to 0.9.
type Table = [[u64; 7]; 5];

/// A size law with thresholds of its own.
struct Law {
    name: &'static str,
    /// What it is known by: (bytes, probability of at most that size).
    points: &'static [(u64, f64)],
    thresholds: Table,
}

/// Bytes of payload in a packet of the tables.
const PAYLOAD: u64 = 1460;
/// How far a law may miss a point.
const TOLERANCE: f64 = 0.02;

const LAWS: [Law; 2] = [
    Law {
        name: "web search",
        points: &[
            (77_380, 0.53),
            (194_180, 0.6),
            (973_820, 0.7),
            (1_946_180, 0.8),
            (4_866_180, 0.9),
            (9_733_820, 0.97),
            (29_200_000, 1.0),
        ],
        thresholds: [
            [1059, 1412, 1643, 1869, 2008, 2115, 2184],
            [956, 1381, 1718, 2028, 2297, 2551, 2660],
            [999, 1305, 1564, 1763, 1956, 2149, 2309],
            [909, 1329, 1648, 1960, 2143, 2337, 2484],
            [759, 1132, 1456, 1737, 2010, 2199, 2325],
        ],
    },
    Law {
        name: "data mining",
        points: &[(10_220, 0.8), (389_820, 0.9), (3_076_220, 0.95), (97_333_820, 0.99), (973_333_820, 1.0)],
        thresholds: [
            [805, 1106, 1401, 10_693, 11_970, 21_162, 22_272],
            [840, 1232, 1617, 11_950, 12_238, 21_494, 25_720],
            [907, 1301, 1619, 12_166, 12_915, 21_313, 26_374],
            [745, 1083, 1391, 13_689, 14_936, 21_149, 27_245],
            [750, 1083, 1416, 13_705, 14_952, 21_125, 28_253],
        ],
    },
];

#[cfg(test)]
mod tests;
