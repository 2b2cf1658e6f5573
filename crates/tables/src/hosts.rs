//! The goodput of hosts in the measurement window, and the goodput that a non-blocking network
//! would give.

use fabric::schedule::max_min;
use sim::outcome::{FlowRow, Measured, PortRow};
use std::collections::BTreeMap;

/// Returns the goodput in the window of each host that is the destination of a flow, in bit/s,
/// ordered by host. `None` for an ideal schedule, which has no counts over time.
pub fn goodput_bps(flows: &[&FlowRow], window: Measured) -> Option<Vec<f64>> {
    let mut bytes: BTreeMap<u32, u64> = BTreeMap::new();
    for flow in flows {
        *bytes.entry(flow.dst).or_default() += flow.window_delivered_bytes?;
    }
    Some(bytes.into_values().map(|bytes| bytes as f64 * 8e12 / (window.until_ps - window.from_ps) as f64).collect())
}

/// Returns the goodput, in bit/s, that the flows would have if only the links of hosts limited
/// them: the sum of their max-min fair rates, minus headers. `None` unless the same flows send from
/// the start to the end of the window.
pub fn non_blocking_bps(flows: &[&FlowRow], ports: &[PortRow], window: Measured) -> Option<f64> {
    let throughout = |flow: &&FlowRow| {
        flow.start_ps.is_some_and(|start| start <= window.from_ps) && flow.finish_ps.is_none_or(|finish| finish >= window.until_ps)
    };
    if flows.is_empty() || !flows.iter().all(throughout) {
        return None;
    }
    // For each host, in the order of nodes: number and total rate of its NICs, and of the ports
    // that lead to it.
    let mut hosts: BTreeMap<u32, [(u32, u64); 2]> = BTreeMap::new();
    for nic in ports.iter().filter(|port| port.tier == 0) {
        let [(count, rate), _] = hosts.entry(nic.node).or_default();
        (*count, *rate) = (*count + 1, *rate + nic.rate_bps);
    }
    for port in ports {
        if let Some([_, (count, rate)]) = hosts.get_mut(&port.peer) {
            (*count, *rate) = (*count + 1, *rate + port.rate_bps);
        }
    }
    if hosts.values().any(|[up, down]| up.0 != down.0) {
        return None;
    }
    let of = |side: usize| hosts.values().map(move |sides| sides[side].1 as f64);
    let capacity: Vec<f64> = of(0).chain(of(1)).collect();
    let path = |flow: &&FlowRow| vec![flow.src as usize, hosts.len() + flow.dst as usize];
    let rates = max_min::rates(&capacity, flows.iter().map(path).collect());
    Some(rates.iter().zip(flows).map(|(rate, flow)| rate * flow.size_bytes as f64 / flow.size_wire_bytes as f64).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Measured = Measured { from_ps: 1_000_000_000_000, until_ps: 3_000_000_000_000, delivered_bytes: 0 };

    fn flow(src: u32, dst: u32, bytes: u64) -> FlowRow {
        let (size_bytes, size_wire_bytes) = (9_000, 10_000);
        FlowRow {
            src,
            dst,
            size_bytes,
            size_wire_bytes,
            start_ps: Some(0),
            window_delivered_bytes: Some(bytes),
            ..FlowRow::default()
        }
    }

    /// Three hosts at a switch. The switch is node 0, and the link of the last host is slow.
    fn star() -> Vec<PortRow> {
        let port = |node, peer, tier, rate_bps| PortRow { node, peer, tier, rate_bps, ..PortRow::default() };
        let hosts = [(1, 1000), (2, 1000), (3, 400)];
        hosts.into_iter().flat_map(|(host, rate)| [port(0, host, 1, rate), port(host, 0, 0, rate)]).collect()
    }

    #[test]
    fn hosts_receive_what_their_flows_do() {
        let flows = [flow(0, 1, 250), flow(2, 1, 500), flow(1, 0, 0)];
        let of = |flows: &[FlowRow]| goodput_bps(&flows.iter().collect::<Vec<_>>(), WINDOW);
        assert_eq!(of(&flows), Some(vec![0.0, 3000.0]));
        assert_eq!(of(&[FlowRow { window_delivered_bytes: None, ..flow(0, 1, 0) }]), None);
    }

    #[test]
    fn only_the_links_of_hosts_limit_flows() {
        let of = |flows: &[FlowRow]| non_blocking_bps(&flows.iter().collect::<Vec<_>>(), &star(), WINDOW);
        // Host 1 receives 400 from the slow host and the rest from host 0; nine tenths are payload.
        assert_eq!(of(&[flow(0, 1, 0), flow(2, 1, 0)]), Some(900.0));
        assert_eq!(of(&[flow(0, 2, 0), flow(1, 0, 0)]), Some(0.9 * 1400.0));
        // Host 0 has 1000 for both of its flows, and one flow is limited to 400.
        assert_eq!(of(&[flow(0, 1, 0), flow(0, 2, 0), flow(1, 2, 0)]), Some(0.9 * 1200.0));
        // With a second NIC host 2 receives 1400.
        let port = |node, peer, tier| PortRow { node, peer, tier, rate_bps: 1000, ..PortRow::default() };
        let two = [star(), vec![port(9, 3, 1), port(3, 9, 0)]].concat();
        let flows = [flow(0, 2, 0), flow(1, 2, 0)];
        assert_eq!(non_blocking_bps(&flows.iter().collect::<Vec<_>>(), &two, WINDOW), Some(0.9 * 1400.0));
        let late = FlowRow { start_ps: Some(WINDOW.from_ps + 1), ..flow(0, 1, 0) };
        let short = FlowRow { finish_ps: Some(WINDOW.until_ps - 1), ..flow(0, 1, 0) };
        for other in [late, short] {
            assert_eq!(of(&[flow(0, 2, 0), other]), None);
        }
        assert_eq!(of(&[]), None);
    }
}
