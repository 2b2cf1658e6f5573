//! Conservation of packets and bytes per port, per switch and in total, checked at the end of every
//! run, also in release builds.
//!
//! Hosts count the packets that they send and receive, links the packets that they carry, ports the
//! packets that they hold and drop. The counts are independent, so the audit detects a packet that is
//! lost or made without a count. A broken invariant aborts the run, since its results would be wrong.

use crate::node::world::{Carried, NodeCounts};
use crate::parallel::part::Part;
use crate::parallel::whole::Whole;
use crate::probe::Probe;
use base::{HostId, LinkId, NodeId};
use engine::Driver;
use fabric::buffer::Buffer;
use fabric::queue::Backlog;
use proto::Packet;
use std::sync::Arc;

/// Packets inside the network at the end, and packets lost there.
#[derive(Default)]
struct Inside {
    /// Packets lost on links and at ports.
    lost: u64,
    /// Data packets that queues dropped.
    data_drops: u64,
    packets: u64,
    bytes: u64,
    ext_blocks: usize,
}

/// Checks all invariants. Panics with a message that names the first broken invariant.
pub fn check<E: Driver<Carried>, P: Probe>(whole: &mut Whole<E, P>) {
    let net = &*Arc::clone(whole.net());
    let (now, nodes) = (whole.now(), whole.nodes());
    let mut inside = Inside::default();
    // By node: packets that the node offered to its ports, counted by the ports.
    let mut offered = vec![0u64; net.nodes().len()];
    let mut arrived = vec![0u64; net.nodes().len()];
    for id in (0..net.links().len() as u32).map(LinkId) {
        let at_random = whole.lost_at_random(id);
        let Part { world, engine } = whole.at_port(id);
        let (link, stats) = (net.link(id), engine.stats(id));
        let on_link = engine.on_link(id);
        assert_eq!(
            stats.tx_packets,
            stats.delivered + stats.lost_sent + on_link.len() as u64,
            "port {}: the packets sent are not the sum of those delivered, lost and on the wire",
            net.link_name(id)
        );
        let waiting = world.ports[id.index()].as_ref().map_or(Backlog::default(), |port| port.backlog());
        assert_eq!(
            waiting.packets,
            engine.waiting(id),
            "port {}: the engine and the queue discipline count different numbers of waiting packets",
            net.link_name(id)
        );
        let drops = world.drops[id.index()];
        assert_eq!(stats.drops, drops.all(), "port {}: the packets dropped are not the sum over all kinds", net.link_name(id));
        inside.data_drops += drops.data;
        offered[link.from.index()] += stats.tx_packets + stats.drops + stats.lost_unsent + u64::from(waiting.packets);
        inside.lost += stats.lost_sent + stats.lost_unsent + at_random;
        arrived[link.to.index()] += stats.delivered - at_random;
        inside.packets += on_link.len() as u64 + u64::from(waiting.packets);
        inside.bytes += on_link.iter().map(|p| u64::from(p.wire_len)).sum::<u64>() + waiting.bytes;
        inside.ext_blocks += on_link.iter().map(Packet::blocks).sum::<usize>();
        if let Some(port) = &mut world.ports[id.index()] {
            // The run is over: empty the port to count the header blocks of its packets.
            while let Some(packet) = port.drain(now) {
                inside.ext_blocks += packet.blocks();
            }
            assert_eq!(port.backlog(), Backlog::default(), "port {}: the drained queue is not empty", net.link_name(id));
        }
    }
    // By node: packets that the router holds there.
    let mut held = vec![0u64; net.nodes().len()];
    for part in &mut whole.parts {
        for (held, packets) in held.iter_mut().zip(&mut part.world.held) {
            let backlog = packets.backlog();
            *held += u64::from(backlog.packets);
            inside.packets += u64::from(backlog.packets);
            inside.bytes += backlog.bytes;
            inside.ext_blocks += packets.drain();
            assert_eq!(packets.backlog(), Backlog::default(), "the packets held in a switch are not those counted");
        }
    }
    for node in (0..net.nodes().len() as u32).map(NodeId).filter(|node| net.host(*node).is_none()) {
        let name = &net.node(node).name;
        let own = nodes[node.index()];
        assert_eq!(
            arrived[node.index()] + own.made,
            offered[node.index()] + own.no_route + own.taken + held[node.index()],
            "switch {name}: the packets that arrived or were made are not the sum of those sent, waiting, held, dropped, lost, consumed and without a route"
        );
    }
    for world in whole.parts.iter().map(|part| &part.world).filter(|world| world.known_down.is_empty()) {
        let broken: u64 = world.buffers.iter().map(|buffer| buffer.broken_promises()).sum();
        assert_eq!(broken, 0, "buffers dropped packets for which headroom was reserved");
    }
    check_totals(whole, &inside, &offered, &arrived);
}

fn check_totals<E: Driver<Carried>, P: Probe>(whole: &Whole<E, P>, inside: &Inside, offered: &[u64], arrived: &[u64]) {
    let (net, traffic, nodes) = (whole.net(), whole.traffic(), whole.nodes());
    let hosts = || (0..net.hosts().len() as u32).map(|h| net.hosts()[HostId(h).index()].index());
    assert_eq!(
        traffic.sent,
        hosts().map(|n| offered[n] - nodes[n].made).sum::<u64>(),
        "the packets that hosts sent are not the packets that their NICs got, PAUSE frames excluded"
    );
    assert_eq!(
        traffic.received,
        hosts().map(|n| arrived[n] - nodes[n].taken).sum::<u64>(),
        "the packets that hosts received are not the packets delivered to them, PAUSE frames excluded"
    );
    let all = |count: fn(&NodeCounts) -> u64| nodes.iter().map(count).sum::<u64>();
    assert_eq!(
        traffic.lost,
        inside.lost + all(|node| node.no_route),
        "the packets lost are not the sum of those lost on links, at ports and without a route"
    );
    let of_flows: u64 = whole.parts.iter().flat_map(|part| part.world.table.records()).map(|record| record.lost_link).sum();
    assert_eq!(traffic.lost - traffic.lost_own, of_flows, "the packets lost are not the sum of those of flows and of routers");
    let of_flows: u64 = whole.parts.iter().flat_map(|part| part.world.table.records()).map(|record| record.drops).sum();
    assert_eq!(inside.data_drops, of_flows, "the data packets that queues dropped are not the sum over all flows");
    let (packets, bytes) = (inside.packets + traffic.lost, inside.bytes + traffic.lost_bytes);
    assert_eq!(
        traffic.sent + all(|node| node.made),
        traffic.received + traffic.dropped + packets + all(|node| node.taken),
        "the packets sent or made are not the sum of those received, consumed, dropped, lost and still in the network"
    );
    assert_eq!(
        traffic.sent_bytes + all(|node| node.made_bytes),
        traffic.received_bytes + traffic.dropped_bytes + traffic.trimmed_bytes + bytes + all(|node| node.taken_bytes),
        "the bytes sent or made are not the sum of those received, consumed, dropped, trimmed, lost and still in the network"
    );
    let worlds = || whole.parts.iter().map(|part| &part.world);
    let control: usize = worlds().flat_map(|world| &world.hosts).flat_map(|host| &host.io.control).map(Packet::blocks).sum();
    let received = worlds().flat_map(|world| &world.receivers).flatten().flat_map(|of| &of.waiting);
    let received: usize = received.map(|waits| waits.packet.blocks()).sum();
    let blocks: usize = worlds().map(|world| world.ext.len()).sum();
    assert_eq!(blocks, inside.ext_blocks + control + received, "extension headers were leaked or freed twice");
    for flow in whole.flows() {
        let record = whole.end(flow.id, true).world.table.get(flow.id);
        assert!(record.delivered_bytes <= flow.size_bytes, "flow {}: more bytes were delivered than the flow has", flow.id);
        assert!(record.finish >= flow.start, "flow {}: it finished before it started", flow.id);
    }
}
