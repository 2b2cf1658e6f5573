//! An estimate, made before a run, of the memory that the run takes.

use crate::outcome::{AgentRow, FlowRow, PacketRow, PortRow, SampleRow};
use crate::probe::Seen;
use base::{Dur, HostId, Rate, Time};
use fabric::net::Link;
use fabric::port::Port;
use fabric::routes::Routes;
use fabric::routing::Planned;
use proto::flow::Join;
use proto::host::FlowRecord;
use proto::{Flow, Packet};
use scenario::{RunSpec, RunTraffic, Sample, Unloaded};

/// Bytes per link: its record, ring, counts and leaf in the tree, and its share of the memory of
/// hosts. Measured on fat trees.
const PER_LINK: u64 = 1300;
/// Packets on a link and at its port: the average over a network at full load.
const PACKETS_PER_LINK: u64 = 40;
/// Bytes per flow in addition to its rows: the state of the protocol. Parts of this state are kept
/// and used again by later flows.
const PER_FLOW: u64 = 200;
/// Copies of the list of flows and joins that a flow or a join waits for: in the workload, in the flow or
/// join, and in the state of waiting flows.
const COPIES_OF_WAITS: u64 = 3;
/// Copies of each row of a table: writing a row takes about as much memory as the row.
const WRITTEN: u64 = 2;
/// Rows per sample of a time series. For each open flow: rate, window, threshold and round-trip time;
/// for each port: queue and utilisation.
const ROWS: [u64; 2] = [4, 2];

/// The bytes that a run is expected to hold at the same time, results included, by use. Accurate
/// within a factor of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryEstimate {
    /// Ports, packets on links, and routes.
    pub network: u64,
    /// Flows and their rows.
    pub flows: u64,
    /// Time series.
    pub samples: u64,
    /// The packet trace.
    pub trace: u64,
}

impl MemoryEstimate {
    /// Returns the sum of all parts.
    pub fn total(&self) -> u64 {
        [self.flows, self.samples, self.trace].into_iter().fold(self.network, u64::saturating_add)
    }
    /// Returns the largest part: its name, its bytes, and how to change the scenario to make it
    /// smaller.
    pub fn largest(&self) -> (&'static str, u64, &'static str) {
        let parts = [
            ("the network", self.network, "simulate fewer nodes"),
            ("flows", self.flows, "simulate fewer flows"),
            ("time series", self.samples, "set a longer `interval` in `[sample]`, record fewer series, or set an earlier `end`"),
            (
                "the packet trace",
                self.trace,
                "restrict `[sample]` with `only_flows`, `only_ports`, `start` or `end`, or leave out `packets`",
            ),
        ];
        parts.into_iter().max_by_key(|(_, bytes, _)| *bytes).unwrap_or(("", 0, ""))
    }
}

/// The times in which the flows of a run are open, estimated from flow sizes, NIC rates and round-trip
/// times. The estimate assumes that each host sends and receives one flow after another, and that each flow
/// takes some round trips to reach its rate. With queues inside the network and losses, flows take
/// longer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Course {
    flows: u64,
    /// Number of pairs of a flow or join and a flow or join for which it waits.
    waits: u64,
    joins: u64,
    /// Time at which the last flow ends.
    until: Time,
    /// Sum over the recorded flows of the recorded time in which the flow is open, in picoseconds.
    open_ps: u128,
    /// Sum over the recorded flows of this time multiplied by the number of links of the flow's path.
    open_hops_ps: u128,
    /// Transmissions of data packets and ACKs at recorded ports, without retransmissions.
    hops: u64,
}

impl Course {
    /// Returns the number of flows.
    pub fn flows(&self) -> u64 {
        self.flows
    }
    /// Estimates when the flows of a run are open.
    pub fn of(spec: &RunSpec, RunTraffic { flows, joins, .. }: &RunTraffic) -> Course {
        // Paths and times are needed for samples only.
        let routes = spec.sample.is_some().then(|| Routes::new(&spec.net, &[]));
        let end = spec.end.unwrap_or(Time::MAX);
        let ports = Recorded::of(spec);
        // By host: when all flows so far have been sent, and when all have been received.
        let mut busy = vec![[Time::ZERO; 2]; spec.net.hosts().len()];
        let mut course = Course { flows: flows.len() as u64, joins: joins.len() as u64, ..Course::default() };
        course.waits = joins.iter().map(|join| (join.on.len() + join.joins.len()) as u64).sum();
        for flow in flows {
            let begin = flow.wait.as_ref().map_or(flow.start, |wait| wait.not_before);
            course.waits += flow.wait.as_ref().map_or(0, |wait| (wait.on.len() + wait.joins.len()) as u64);
            let mut own = [(flow.src, 0), (flow.dst, 1)].map(|(host, side)| {
                let takes = time_of(flow.size_wire_bytes, spec.net.host_rate(host));
                let free = &mut busy[host.index()][side];
                *free = (*free).max(begin).after(takes);
                (*free, takes)
            });
            own.sort_unstable();
            let [_, (finish, takes)] = own;
            let Some(routes) = routes.as_ref().filter(|_| begin < end) else { continue };
            let links = routes.distance(spec.net.hosts()[flow.src.index()], flow.dst).unwrap_or_default();
            let packets = flow.size_wire_bytes.div_ceil(u64::from(spec.mtu_bytes));
            // A handshake, the last packet, and a window that doubles in two round trips, as with delayed ACKs.
            let trips = spec.unloaded(routes, flow).rtt.0.saturating_mul(u64::from(2 + 2 * packets.checked_ilog2().unwrap_or(0)));
            let last = finish.after(Dur(trips)).min(end);
            course.until = course.until.max(last);
            let Some(sample) = spec.sample.as_ref().filter(|sample| sample.only_flows.has(flow.id)) else { continue };
            let recorded = last.min(sample.end).since(begin.max(sample.start));
            let open = u128::from(recorded.0);
            course.open_ps += open;
            course.open_hops_ps += open * u128::from(links);
            // The share of the flow that is sent before the run ends. The receiver sends as many ACKs as
            // it gets packets. `share` is the share of both that falls into the recorded time.
            let sent = takes.0.saturating_sub(finish.since(end).0) as f64 / takes.0.max(1) as f64;
            let share = recorded.0 as f64 / last.since(begin).0.max(1) as f64;
            let on_ports = ports.on_path(spec, sample, flow, u64::from(links));
            let hops = (packets as f64 * sent).ceil() * share * on_ports;
            course.hops = course.hops.saturating_add(hops.ceil() as u64);
        }
        course
    }

    /// Estimates the memory that a run of `spec` takes with these flows.
    pub fn estimate(&self, spec: &RunSpec) -> MemoryEstimate {
        let size = |bytes: usize| bytes as u64;
        let links = size(spec.net.links().len());
        let per_link = PER_LINK + PACKETS_PER_LINK * size(size_of::<Packet>()) + size(size_of::<Port>() + size_of::<PortRow>());
        // The routes of the healthy network. With failures also the routes before and after a change.
        let routes = Routes::bytes(&spec.net) * if spec.failures.is_some() { 3 } else { 1 };
        let state = size(size_of::<Flow>() + size_of::<FlowRecord>() + size_of::<Planned>() + size_of::<Unloaded>());
        let per_flow = PER_FLOW + state + WRITTEN * size(size_of::<FlowRow>());
        let per_wait = COPIES_OF_WAITS * size(size_of::<(u32, Dur)>());
        let per_join = COPIES_OF_WAITS * size(size_of::<Join>());
        let waits = self.waits.saturating_mul(per_wait).saturating_add(self.joins.saturating_mul(per_join));
        let flows = self.flows.saturating_mul(per_flow).saturating_add(waits);
        let mut found = MemoryEstimate { network: (links * per_link).saturating_add(routes), flows, ..MemoryEstimate::default() };
        let Some(sample) = spec.sample.as_ref().filter(|_| spec.ideal.is_none()) else { return found };
        let interval = u128::from(sample.interval.0.max(1));
        let looks = u128::from(self.until.min(sample.end).since(sample.start).0) / interval;
        let chosen = sample.only_ports.as_ref().map_or(links, |ports| size(ports.len()));
        let ports = if sample.port.is_some() { 1 } else { u128::from(chosen) };
        let [per_open_flow, per_port] = ROWS.map(u128::from);
        let rows = u128::from(sample.ports) * looks * ports * per_port
            + u128::from(sample.flows) * self.open_ps / interval * per_open_flow;
        // An agent records a few values for each flow at each port of its path.
        let of_agents = u128::from(sample.agents) * self.open_hops_ps / interval * per_open_flow;
        let of_agents = of_agents * u128::from(chosen) / u128::from(links.max(1));
        let bytes = |rows: u128, row: usize| u64::try_from(rows * row as u128 * 5 / 4).unwrap_or(u64::MAX);
        found.samples = bytes(rows, size_of::<SampleRow>()).saturating_add(bytes(of_agents, size_of::<AgentRow>()));
        if sample.packets && !spec.engine.is_flow() {
            found.trace = self.hops.saturating_mul(size(size_of::<Seen>()) + WRITTEN * size(size_of::<PacketRow>()));
        }
        found
    }
}

/// The recorded ports of a network. The ports at both ends of a host's cable are known to be on the
/// host's paths. Ports between switches count by the share of them that is recorded.
struct Recorded {
    /// The share of the ports between switches that is recorded.
    inner: f64,
}

impl Recorded {
    fn of(spec: &RunSpec) -> Recorded {
        let Some(ports) = spec.sample.as_ref().and_then(|sample| sample.only_ports.as_ref()) else {
            return Recorded { inner: 1.0 };
        };
        let inner = |link: &&Link| spec.net.host(link.from).is_none() && spec.net.host(link.to).is_none();
        let all = spec.net.links().iter().filter(inner).count();
        let chosen = ports.iter().map(|link| spec.net.link(*link)).filter(inner).count();
        Recorded { inner: chosen as f64 / all.max(1) as f64 }
    }
    /// Returns the expected number of recorded ports that a packet of a flow and its ACK pass, on a
    /// path of `links` links in each direction.
    fn on_path(&self, spec: &RunSpec, sample: &Sample, flow: &Flow, links: u64) -> f64 {
        // Each NIC of a host is equally likely to be on the path.
        let at_end = |host: HostId| {
            let ports = spec.net.nics(host).flat_map(|nic| [nic, spec.net.link(nic).reverse]);
            ports.filter(|link| sample.has_port(*link)).count() as f64 / spec.net.nics(host).len() as f64
        };
        at_end(flow.src) + at_end(flow.dst) + self.inner * (2 * links).saturating_sub(4) as f64
    }
}

/// Returns the transmission time of `bytes` at `rate`; the longest time if the result is out of range.
fn time_of(bytes: u64, rate: Rate) -> Dur {
    let ps = u128::from(bytes) * 8_000_000_000_000 / u128::from(rate.0.max(1));
    Dur(u64::try_from(ps).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::{Options, load};

    fn of(more: &str) -> u64 {
        let text = format!(
            "end = '10ms'\n[topology]\nkind = 'fat_tree'\nk = 16\n[workload.all]\nkind = 'long'\nsize = '1MB'\n\
             [[system]]\ntransport = 'newreno'\n{more}"
        );
        estimate(&text).total()
    }

    fn estimate(text: &str) -> MemoryEstimate {
        let plan = load(text, "test", ".".as_ref(), &Options::default()).unwrap_or_else(|e| panic!("{e}"));
        let spec = &plan.points[0].run;
        Course::of(spec, &spec.traffic().unwrap()).estimate(spec)
    }

    fn long(topology: &str, end: &str, size: &str, sample: &str) -> MemoryEstimate {
        estimate(&format!(
            "end = '{end}'\n[topology]\n{topology}\n[workload.all]\nkind = 'long'\n{size}\n[[system]]\ntransport = 'newreno'\n[sample]\n{sample}"
        ))
    }

    /// A run of this size takes 28 MB; 4 MB of them are the program itself.
    #[test]
    fn a_large_network_is_as_large_as_measured() {
        let bytes = of("");
        assert!((12_000_000..48_000_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn series_and_traces_count() {
        let plain = of("");
        // A thousand samples of 6144 ports.
        let series = of("[sample]\ninterval = '10us'\nports = true");
        assert!(series > plain + 1000 * 6144 * 2 * 40, "{series}");
        // A thousand flows of 700 packets over six links and back.
        let trace = of("[sample]\ninterval = '10us'\npackets = true");
        assert!(trace > plain + 1024 * 700 * 12 * 80, "{trace}");
    }

    /// Measured: 205 480 packets and as many ACKs, over two links each, took 182 MB.
    #[test]
    fn a_trace_is_as_large_as_measured() {
        let star = "kind = 'star'\nhosts = 2\n";
        let found = long(star, "10s", "pairs = 'h0->h1'\nsize = '300MB'", "packets = true");
        assert!((150_000_000..220_000_000).contains(&found.trace), "{found:?}");
        assert_eq!(found.largest().0, "the packet trace");
        // A run that ends early traces only the packets that the first host could send: 1.25 MB in
        // 822 packets.
        let cut = long(star, "1ms", "pairs = 'h0->h1'", "packets = true");
        assert!((700_000..830_000).contains(&cut.trace), "{cut:?}");
    }

    /// Counted: 274 packets of a flow of 400 KB and as many ACKs pass each port of their path.
    #[test]
    fn a_trace_counts_what_is_selected() {
        let topology = "kind = 'leaf_spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 2";
        let of = |more: &str| {
            let found = long(
                topology,
                "10s",
                "pairs = 'h0->h2, h1->h3'\nsize = '400KB'",
                &format!("ports = false\npackets = true\n{more}"),
            );
            found.trace as f64 / (size_of::<Seen>() as f64 + WRITTEN as f64 * size_of::<PacketRow>() as f64)
        };
        let near =
            |more: &str, wanted: f64| assert!((of(more) / wanted - 1.0).abs() < 0.05, "{more}: {} and not {wanted}", of(more));
        near("", 2.0 * 274.0 * 8.0);
        near("only_flows = 1", 274.0 * 8.0);
        // The port to one host carries the data of one flow and no ACKs. Two of the eight ports between
        // switches are a quarter of them.
        near("only_ports = 'leaf1->h2'", 274.0);
        near("only_ports = 'leaf0->spine*'", 2.0 * 274.0 * 4.0 / 4.0);
        assert!(of("end = '100us'") < 0.8 * of("") && of("start = '5s'") == 0.0);
    }

    /// A flow along the whole chain crosses 201 links, a flow between neighbours 3.
    #[test]
    fn a_trace_counts_the_links_of_paths() {
        let of = |pair: &str| {
            let pairs = format!("pairs = '{pair}'\nsize = '1MB'");
            long("kind = 'chain'\nhosts_per_switch = 1\nswitches = 200", "1s", &pairs, "packets = true").trace
        };
        assert_eq!(of("h0->h199") / of("h0->h1"), 201 / 3);
    }

    /// Measured: 39.5 million samples of eight ports during a flow of 3 GB took 1530 MB.
    #[test]
    fn series_are_as_long_as_flows_last() {
        let star = "kind = 'star'\nhosts = 4\n";
        let of = |end, interval| {
            let sample = format!("ports = true\ninterval = '{interval}'");
            long(star, end, "pairs = 'h0->h1'\nsize = '3GB'", &sample).samples
        };
        assert!((1_500_000_000..2_500_000_000).contains(&of("100s", "1us")), "{}", of("100s", "1us"));
        assert_eq!(of("100s", "1us") / of("1s", "1us"), 2);
        // Measured: the run lasts 188 ms, and the NIC sends for 2.4 ms.
        let slow = long(
            "kind = 'chain'\nhosts_per_switch = 1\nswitches = 2000",
            "100s",
            "pairs = 'h0->h1999'\nsize = '3MB'",
            "ports = true\ninterval = '1ms'",
        );
        // For each millisecond two rows of 50 bytes for 7998 ports.
        assert!((90..380).contains(&(slow.samples / (2 * 50 * 7998))), "{slow:?}");
        // Flows that never finish are open until the end of the run: 10^12 samples of 1000 flows.
        let found = long("kind = 'star'\nhosts = 1000", "1000s", "", "flows = true\ninterval = '1ns'");
        assert!(found.samples > 100_000_000_000_000_000, "{found:?}");
        assert_eq!(found.largest().0, "time series");
    }

    /// Measured: `check` of a chain of 8000 switches with one host each takes 620 MB, a run little more.
    #[test]
    fn routes_count() {
        let found = estimate(
            "[topology]\nkind = 'chain'\nhosts_per_switch = 1\nswitches = 2000\n[workload.all]\nkind = 'long'\nsize = '1MB'\n\
             pairs = 'h0->h1'\n[[system]]\ntransport = 'newreno'\n",
        );
        assert!((40_000_000..80_000_000).contains(&found.network), "{found:?}");
        assert_eq!(found.largest().0, "the network");
    }
}
