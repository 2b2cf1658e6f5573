//! An estimate, made before a run, of the memory that the run takes.

use crate::outcome::{FlowRow, PacketRow, PortRow, SampleRow};
use crate::probe::Seen;
use base::Dur;
use fabric::port::Port;
use fabric::routing::Planned;
use proto::host::FlowRecord;
use proto::{Flow, Packet};
use scenario::RunSpec;

/// Bytes per link: its record, ring, counts and leaf in the tree, and its share of hosts and routes. Measured on fat trees.
const PER_LINK: u64 = 1300;
/// Packets on a link and at its port, averaged over a network at full load.
const PACKETS_PER_LINK: u64 = 40;
/// Bytes per flow beside its rows: the state of the protocol, parts of which are kept for later flows.
const PER_FLOW: u64 = 200;
/// Writing a row of a table takes about as much memory again.
const WRITTEN: u64 = 2;

/// The most bytes that a run of `spec` with these `flows` is expected to hold at once, results included: within a factor of two.
pub fn estimate(spec: &RunSpec, flows: &[Flow]) -> u64 {
    let size = |bytes: usize| bytes as u64;
    let (links, count) = (size(spec.net.links().len()), size(flows.len()));
    let per_link = PER_LINK + PACKETS_PER_LINK * size(size_of::<Packet>()) + size(size_of::<Port>() + size_of::<PortRow>());
    let state = size(size_of::<Flow>() + size_of::<FlowRecord>() + size_of::<Planned>());
    let per_flow = PER_FLOW + state + WRITTEN * size(size_of::<FlowRow>());
    let mut bytes = links.saturating_mul(per_link).saturating_add(count.saturating_mul(per_flow));
    let Some(sample) = &spec.sample else { return bytes };
    let last = flows.iter().filter(|flow| flow.wait.is_none()).map(|flow| flow.start).max().unwrap_or_default();
    let looks = spec.end.unwrap_or(last).0 / sample.interval.max(Dur(1)).0;
    // Two rows for each port and open flow; a few percent of the flows are open at a time.
    let ports = if sample.port.is_some() { 1 } else { links };
    // A few values for each flow at each port on its way.
    let hops = u64::from(spec.net.nodes().iter().map(|node| node.tier).max().unwrap_or_default()) * 2;
    let of_agents = if sample.agents { 4 * hops * (count / 20 + 1) } else { 0 };
    let rows = of_agents + 2 * (u64::from(sample.ports) * ports + u64::from(sample.flows) * (count / 20 + 1));
    bytes = bytes.saturating_add(looks.saturating_mul(rows).saturating_mul(WRITTEN * size(size_of::<SampleRow>())));
    if sample.packets {
        // Packets and as many ACKs, to the top of the network and back down.
        let tiers = u64::from(spec.net.nodes().iter().map(|node| node.tier).max().unwrap_or_default());
        let packets: u64 = flows.iter().map(|flow| flow.size_wire_bytes / u64::from(spec.mtu_bytes) + 1).sum();
        let row = size(size_of::<Seen>()) + WRITTEN * size(size_of::<PacketRow>());
        bytes = bytes.saturating_add(packets.saturating_mul(4 * tiers * row));
    }
    bytes
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
        let plan = load(&text, "test", ".".as_ref(), &Options::default()).unwrap_or_else(|e| panic!("{e}"));
        let spec = &plan.points[0].run;
        estimate(spec, &spec.flows().unwrap())
    }

    /// A run of this size takes 28 MB, of which 4 MB are the program itself.
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
}
