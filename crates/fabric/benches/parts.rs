//! Parts of switches by themselves: queues of served ports, MERP's virtual deadlines plain and fast. `make bench-parts`.
#![allow(missing_docs)] // What the macros make.

use base::params::{Auto, Params as _};
use base::{Dur, FlowId, LinkId, Rate, Rng, Time};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use fabric::agent::merp::vdg::{Entry, Scratch, kinetic, plain};
use fabric::qdisc::{Env, Qdisc, pfabric, pifo, strict};
use fabric::refused::Refused;
use proto::{Kind, Packet};

/// One packet in, one out, of so many that wait.
fn port(c: &mut Criterion, name: &str, waiting: u32, queue: &mut impl Qdisc) {
    let mut refused = Refused::new();
    let packet = |n: u32| Packet { prio: (n % 8) as u8, rank: n % 13, ..Packet::new(FlowId(n % 5), Kind::DATA, 1500) };
    (0..waiting).for_each(|n| assert!(queue.enqueue(&mut packet(n), Time::ZERO, &mut refused)));
    let mut n = waiting;
    c.bench_function(name, |b| {
        b.iter(|| {
            n += 1;
            queue.enqueue(&mut packet(n), Time::ZERO, &mut refused);
            queue.dequeue(Time::ZERO).copied()
        });
    });
}

fn ports(c: &mut Criterion) {
    let env =
        Env { rate: Rate::from_gbps(10), mtu_bytes: 1500, max_rtt: Dur::from_us(100), host_port: false, link: LinkId(0), seed: 0 };
    port(c, "strict: packet in and out", 20, &mut strict::Strict::new(&strict::Params::defaults(), &env));
    port(c, "pfabric: packet in and out", 20, &mut pfabric::Pfabric::new(&pfabric::Params::defaults(), &env));
    for waiting in [20, 240] {
        let params = pifo::Params { limit: Auto::Set(base::Limit::Unlimited), ..pifo::Params::defaults() };
        port(c, &format!("pifo: packet in and out, {waiting} waiting"), waiting, &mut pifo::Pifo::new(&params, &env));
    }
}

/// A table of `n` flows, half of them already served in part.
fn table(n: u32) -> Vec<Entry> {
    let mut rng = Rng::stream(1, "bench/vdg", &[u64::from(n)]);
    let entry = |id| {
        let size = 1 + rng.below(1_000_000);
        Entry { size, rs: 1 + rng.below(size), arrived: Time(rng.below(1_000_000_000)), id }
    };
    (0..n).map(entry).collect()
}

fn vdg(c: &mut Criterion) {
    let (now, rate) = (Time(1_000_000_000), Rate::from_gbps(1));
    let (mut out, mut scratch) = (Vec::new(), Scratch::default());
    let mut group = c.benchmark_group("vdg");
    for n in [10, 30, 100, 300, 1000, 3000] {
        let entries = table(n);
        group.bench_function(BenchmarkId::new("plain", n), |b| b.iter(|| plain(now, rate, &entries, &mut out)));
        group.bench_function(BenchmarkId::new("fast", n), |b| b.iter(|| kinetic(now, rate, &entries, &mut out, &mut scratch)));
    }
}

criterion_group!(parts, ports, vdg);
criterion_main!(parts);
