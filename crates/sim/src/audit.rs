//! Conservation, checked at the end of every run, release builds included: packets and bytes per port, per switch and in all.
//!
//! Hosts count what they send and receive, links what they carry, ports what they hold and drop. The counts are kept apart, so a
//! packet lost or made anywhere shows here. A broken invariant ends the run: the results would be wrong.

use crate::probe::Probe;
use crate::world::{Carried, World};
use base::{HostId, LinkId, NodeId};
use engine::Driver;
use fabric::net::Net;
use fabric::qdisc::{Backlog, Qdisc};
use proto::Packet;

/// What is inside the network.
#[derive(Default)]
struct Inside {
    /// Not inside any more: lost on links and at their ports.
    lost: u64,
    packets: u64,
    bytes: u64,
    ext_blocks: usize,
}

/// Checks everything. Panics with the rule that is broken.
pub fn check<P: Probe>(world: &mut World<P>, engine: &mut impl Driver<Carried>, net: &Net) {
    let mut inside = Inside::default();
    // What each node put into its ports, by the ports' own counts.
    let mut offered = vec![0u64; net.nodes().len()];
    let mut arrived = vec![0u64; net.nodes().len()];
    for id in (0..net.links().len() as u32).map(LinkId) {
        let (link, stats) = (net.link(id), engine.stats(id));
        let on_link = engine.on_link(id);
        assert_eq!(
            stats.tx_packets,
            stats.delivered + stats.lost_sent + on_link.len() as u64,
            "port {}: packets sent are not packets delivered, lost or on the wire",
            net.link_name(id)
        );
        let waiting = world.ports[id.index()].as_ref().map_or(Backlog::default(), |port| port.qdisc.backlog());
        assert_eq!(waiting.packets, engine.waiting(id), "port {}: the engine's count of waiting packets is off", net.link_name(id));
        offered[link.from.index()] += stats.tx_packets + stats.drops + stats.lost_unsent + u64::from(waiting.packets);
        inside.lost += stats.lost_sent + stats.lost_unsent;
        arrived[link.to.index()] += stats.delivered;
        inside.packets += on_link.len() as u64 + u64::from(waiting.packets);
        inside.bytes += on_link.iter().map(|p| u64::from(p.wire_len)).sum::<u64>() + waiting.bytes;
        inside.ext_blocks += on_link.iter().filter(|p| p.has(Packet::EXT)).count();
        if let Some(port) = &mut world.ports[id.index()] {
            // The run is over: empty the port to count the header blocks that its packets hold.
            while let Some(packet) = port.qdisc.dequeue(engine.now()) {
                inside.ext_blocks += usize::from(packet.has(Packet::EXT));
            }
            assert_eq!(port.qdisc.backlog(), Backlog::default(), "port {}: an emptied queue holds something", net.link_name(id));
        }
    }
    for node in (0..net.nodes().len() as u32).map(NodeId).filter(|node| net.host(*node).is_none()) {
        let name = &net.node(node).name;
        assert_eq!(
            arrived[node.index()],
            offered[node.index()] + world.no_route[node.index()],
            "switch {name}: packets in are not packets out, waiting, dropped, lost or without a route"
        );
    }
    check_totals(world, &inside, &offered, &arrived, net);
}

fn check_totals<P: Probe>(world: &World<P>, inside: &Inside, offered: &[u64], arrived: &[u64], net: &Net) {
    let traffic = &world.traffic;
    let hosts = || (0..net.hosts().len() as u32).map(|h| net.hosts()[HostId(h).index()].index());
    assert_eq!(traffic.sent, hosts().map(|n| offered[n]).sum::<u64>(), "packets sent by hosts are not packets offered to NICs");
    assert_eq!(
        traffic.received,
        hosts().map(|n| arrived[n]).sum::<u64>(),
        "packets received by hosts are not packets delivered to them"
    );
    let no_route: u64 = world.no_route.iter().sum();
    assert_eq!(traffic.lost, inside.lost + no_route, "packets lost are not lost on links, at ports or without a route");
    let of_flows: u64 = world.table.records().iter().map(|record| record.lost_link).sum();
    assert_eq!(traffic.lost, of_flows, "packets lost are not the flows' packets lost");
    let (packets, bytes) = (inside.packets + traffic.lost, inside.bytes + traffic.lost_bytes);
    assert_eq!(
        traffic.sent,
        traffic.received + traffic.dropped + packets,
        "packets sent are not received, dropped, lost or inside"
    );
    assert_eq!(
        traffic.sent_bytes,
        traffic.received_bytes + traffic.dropped_bytes + bytes,
        "bytes sent are not received, dropped, lost or inside"
    );
    let control: usize = world.hosts.iter().flat_map(|host| &host.io.control).filter(|p| p.has(Packet::EXT)).count();
    assert_eq!(world.ext.len(), inside.ext_blocks + control, "header blocks are left over or missing");
    for (flow, record) in world.flows.iter().zip(world.table.records()) {
        assert!(record.delivered_bytes <= flow.size_bytes, "flow {} has more bytes delivered than it has", flow.id);
        assert!(record.finish >= flow.start, "flow {} finished before it started", flow.id);
    }
}
