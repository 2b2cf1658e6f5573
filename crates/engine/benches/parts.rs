//! Parts of the engine by themselves: tree, first-in first-out port. `make bench-parts`.
#![allow(missing_docs)] // What the macros make.

use base::{Dur, Hold, Limit, LinkId, Rate, Time};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use engine::tree::Tree;
use engine::{Driver, Engine, Far, Fifo, LinkSpec, Links, Wire, World};

/// As large as the packets of the product.
#[derive(Clone, Copy)]
struct Packet {
    arrival: Time,
    body: [u64; 7],
}

const PACKET: Packet = Packet { arrival: Time::ZERO, body: [1500; 7] };

impl Wire for Packet {
    fn wire_len(&self) -> u32 {
        self.body[0] as u32
    }
    fn arrival(&self) -> Time {
        self.arrival
    }
    fn set_arrival(&mut self, at: Time) {
        self.arrival = at;
    }
}

/// Every leaf is set again, later, when it is first: the hold model.
fn tree(c: &mut Criterion) {
    let mut group = c.benchmark_group("tree: set the first leaf later");
    for leaves in [64u32, 1024, 16_384] {
        let mut tree = Tree::new(leaves);
        (0..leaves).for_each(|leaf| tree.set(leaf, Time(u64::from(leaf.wrapping_mul(2_654_435_761) % 2_000_000))));
        let mut step = 12345u64;
        group.bench_function(BenchmarkId::from_parameter(leaves), |b| {
            b.iter(|| {
                step = step.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let (at, leaf) = tree.decode(tree.first());
                tree.set(leaf, at + Dur(1 + (step >> 43)));
            });
        });
    }
}

/// Two switches that throw packets at each other.
struct PingPong;

impl World for PingPong {
    type Packet = Packet;
    fn deliver(&mut self, links: &mut impl Links<Packet>, link: LinkId, _far: Far, packet: &mut Packet) {
        links.send(self, LinkId(1 - link.0), packet);
    }
    fn passes(&mut self, _: LinkId, _: &mut Packet, _: Time) -> bool {
        true
    }
    fn enqueue(&mut self, _: LinkId, _: &mut Packet, _: Time) -> (u32, u64) {
        unreachable!("first in, first out")
    }
    fn not_before(&self, _: LinkId, _: Time) -> Option<Hold> {
        unreachable!("no port is shaped")
    }
    fn dequeue(&mut self, _: LinkId, _: Time) -> &Packet {
        unreachable!("first in, first out")
    }
    fn wake(&mut self, _: &mut impl Links<Packet>, _: u32) {}
}

fn fifo_port(c: &mut Criterion) {
    let mut group = c.benchmark_group("first-in first-out port: one hop");
    // One packet at a time, or a queue of thirty.
    for packets in [1, 60] {
        let fifo = Some(Fifo { limit: Limit::Packets(100), mark: Limit::Unlimited });
        let spec =
            LinkSpec { rate: Rate::from_gbps(10), delay: Dur::from_us(1), fifo, watched: false, shaped: false, shared: None };
        let mut engine = Engine::new(&[(spec, Far::Switch(1)), (spec, Far::Switch(0))], 0);
        for n in 0..packets {
            engine.send(&mut PingPong, LinkId(n % 2), &mut { PACKET });
        }
        group.bench_function(BenchmarkId::from_parameter(packets), |b| b.iter(|| engine.run(&mut PingPong, Time::MAX, 1)));
    }
}

criterion_group!(parts, tree, fifo_port);
criterion_main!(parts);
