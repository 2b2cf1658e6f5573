use super::*;
use crate::qdisc::tests::{check_passing, drain, enqueue, packet};
use base::params::Params as _;
use base::registry::Meta;
use base::{Dur, Fraction, LinkId};
use proptest::prelude::*;
use proto::Transport;
use proto::kit::burst::Sent;
use proto::kit::script::{self, Script};
use proto::transport::{aeolus, ssp};
use std::collections::VecDeque;

/// A port of 100 Gb/s with full packets of 1538 bytes.
fn env() -> Env {
    Env {
        rate: Rate::from_gbps(100),
        mtu_bytes: 1538,
        max_rtt: Dur::from_us(10),
        host_port: false,
        to_host: false,
        link: LinkId(0),
        seed: 1,
    }
}

fn queue(change: impl FnOnce(&mut Params)) -> Credit {
    let mut params = Params::defaults();
    change(&mut params);
    assert_eq!((Credit::fifo(&params, &env()), Credit::limit(&params, &env())), (None, params.limit.or(Limit::Packets(250))));
    Credit::new(&params, &env())
}

fn credit(n: u64) -> Packet {
    Packet { kind: Kind::CREDIT, ..packet(0, n, 84) }
}
fn control(n: u64) -> Packet {
    Packet { kind: Kind::ACK, ..packet(0, n, 84) }
}
fn droppable(n: u64) -> Packet {
    packet(0, n, 1538)
}
fn protected(n: u64) -> Packet {
    Packet { flags: Packet::ECT, ..droppable(n) }
}
fn probe(n: u64) -> Packet {
    Packet { kind: Kind::PROBE, ..packet(0, n, 84) }
}

/// Numbers of the packets that are dropped.
fn dropped(q: &mut Credit, packets: impl IntoIterator<Item = Packet>) -> Vec<u64> {
    packets.into_iter().flat_map(|packet| enqueue(q, packet)).map(|(_, n)| n).collect()
}

/// Credits of 84 bytes arrive every 100 ns at 100 Gb/s: after the burst, one leaves every 129.76
/// ns. Of 60 credits, five find eight waiting and are dropped.
#[test]
fn golden_departures_of_credits() {
    let mut q = queue(|_| ());
    let (mut idle, mut starts, mut lost) = (Time::ZERO, Vec::new(), Vec::new());
    let line = env().rate.tx_time(84);
    let mut serve = |q: &mut Credit, until: Time, idle: &mut Time| {
        while q.backlog().packets > 0 {
            let at = q.not_before(*idle).map_or(*idle, |hold| hold.until);
            if at >= until {
                break;
            }
            assert!(q.dequeue(at).is_some());
            starts.push(at.0.div_ceil(10_000));
            *idle = at + line;
        }
    };
    for n in 0..60 {
        let now = Time(n * 100_000);
        serve(&mut q, now, &mut idle);
        idle = idle.max(now);
        lost.extend(dropped(&mut q, [credit(n)]));
    }
    serve(&mut q, Time::MAX, &mut idle);
    // In units of 10 ns.
    assert_eq!(starts[..9], [0, 10, 20, 30, 40, 52, 65, 78, 91]);
    assert_eq!(lost, [40, 44, 48, 53, 57]);
    assert_eq!(q.counts(), [5, 0, 0, 0]);
}

/// Bytes and credits per second of the table in section 2 of ExpressPass, worked out for four rates.
#[test]
fn golden_rates_of_credits() {
    for (gbps, bytes) in [(10, 64_734_895), (25, 161_837_237), (40, 258_939_580), (100, 647_348_951)] {
        let env = Env { rate: Rate::from_gbps(gbps), ..env() };
        assert_eq!(rate(&Params::defaults(), &env).0 / 8, bytes);
    }
    let half = Params { rate: Auto::Set(RateOr::Fraction(Fraction(500_000_000))), ..Params::defaults() };
    assert_eq!(rate(&half, &env()), Rate::from_gbps(50));
}

#[test]
fn credits_with_tokens_go_first_then_control_then_data_and_probes_by_arrival() {
    let mut q = queue(|_| ());
    let all = [protected(1), probe(2), droppable(3), control(4), control(5), credit(6), credit(7), credit(8)];
    assert_eq!(dropped(&mut q, all), []);
    let mut order = Vec::new();
    while q.not_before(Time::ZERO).is_none()
        && let Some(packet) = q.dequeue(Time::ZERO)
    {
        order.push(packet.offset);
    }
    // The burst is two credits; the third waits 129.76 ns for its tokens.
    assert_eq!(order, [6, 7, 4, 5, 1, 2, 3]);
    assert_eq!((q.not_before(Time::ZERO), q.backlog().packets), (Some(Hold { until: Time(129_761), wire_len: 84 }), 1));
}

/// V1 of both papers: with a threshold of 6 KB four droppable packets are admitted, or three if the
/// arriving packet counts; protected packets fill the buffer.
#[test]
fn golden_admission() {
    for (rule, admitted) in [(Rule::Before, 4), (Rule::After, 3)] {
        let change = |params: &mut Params| {
            (params.drop, params.rule, params.limit) = (Limit::Bytes(6000), rule, Auto::Set(Limit::Packets(10)));
        };
        let mut q = queue(change);
        assert_eq!(dropped(&mut q, (0..6).map(droppable)), Vec::from_iter(admitted..6));
        // Protected packets are admitted up to the limit; probes have a limit of their own.
        assert_eq!(dropped(&mut q, (6..16).map(protected)), Vec::from_iter(16 - admitted..16));
        assert_eq!(dropped(&mut q, (16..20).map(probe)), []);
        assert_eq!(q.counts(), [0, 6 - admitted, 6 - admitted, admitted]);
        assert_eq!(drain(&mut q).len(), 14);
    }
}

#[test]
fn droppable_data_may_be_dropped_only_while_protected_data_waits() {
    let mut q = queue(|params| (params.drop, params.when) = (Limit::Packets(1), When::BesideProtected));
    assert_eq!(dropped(&mut q, [droppable(0), droppable(1), probe(2), droppable(3), protected(4), droppable(5)]), [5]);
    (0..5).for_each(|_| assert!(q.dequeue(Time::ZERO).is_some()));
    // No protected packet waits any more.
    assert_eq!(dropped(&mut q, [droppable(6), droppable(7)]), []);
    assert_eq!(q.counts(), [0, 1, 0, 0]);
}

#[test]
fn each_class_has_its_limit() {
    let change = |params: &mut Params| {
        (params.limit, params.protect) = (Auto::Set(Limit::Packets(4)), Limit::Bytes(2 * 1538));
        (params.probes, params.credits) = (Limit::Packets(1), Limit::Packets(2));
    };
    let mut q = queue(change);
    assert_eq!(dropped(&mut q, (0..3).map(protected)), [2]);
    assert_eq!(dropped(&mut q, (3..6).map(droppable)), [5]);
    assert_eq!(dropped(&mut q, [probe(6), probe(7), credit(8), credit(9), credit(10)]), [7, 10]);
    assert_eq!(dropped(&mut q, (11..99).map(control)), [], "control packets have no limit");
    assert_eq!(q.counts(), [1, 0, 0, 1]);
}

/// A threshold below the size of a packet would make a host drop what it sends.
#[test]
fn ports_of_hosts_drop_nothing_early() {
    let change = |params: &mut Params| (params.drop, params.protect) = (Limit::Bytes(1500), Limit::Bytes(1500));
    let all = || (0..4).map(droppable).chain((4..8).map(protected));
    assert_eq!(dropped(&mut queue(change), all()), [1, 2, 3, 4, 5, 6, 7]);
    let mut params = Params::defaults();
    change(&mut params);
    assert_eq!(dropped(&mut Credit::new(&params, &Env { host_port: true, ..env() }), all()), []);
}

/// The packets that a transport sends for a large flow at 100 Gb/s: unscheduled and scheduled
/// packets.
fn bursts_and_answers(machine: impl Transport) -> [Vec<Packet>; 2] {
    let mut host = Script::new(machine, vec![script::flow(0, 10_000_000)]);
    let mut sent = host.open(0);
    for _ in 0..400 {
        sent.extend(host.packet(Packet::new(base::FlowId(0), Kind::CREDIT, 84)));
    }
    let data: Vec<Packet> = sent.into_iter().filter(|packet| packet.kind == Kind::DATA).collect();
    let (unscheduled, scheduled) = data.into_iter().partition(|packet| packet.get::<Sent>().numbers as u32 == Sent::NO_CREDIT);
    [unscheduled, scheduled]
}

/// A short port with the threshold of the qdisc that a transport implies.
fn port_of(meta: &Meta) -> Credit {
    let (_, drop) = meta.implies.iter().find(|(key, _)| *key == "qdisc.drop").expect("a threshold");
    let drop = Limit::parse(&base::params::Raw::Str((*drop).to_owned())).expect("a limit");
    queue(|params| (params.drop, params.limit) = (drop, Auto::Set(Limit::Packets(20))))
}

/// What each port does with a trace of data whose two classes are exchanged.
#[test]
fn aeolus_and_ssp_with_their_classes_exchanged_mirror_each_other() {
    let env = proto::Env { nic_rate: env().rate, mtu_bytes: 1538, header_bytes: 78, max_rtt: Dur::from_us(52), ..script::env() };
    let aeolus = bursts_and_answers(aeolus::Aeolus::new(&aeolus::Params::defaults(), &env));
    // Bursts of the same length as those of Aeolus.
    let mut like = ssp::Params::defaults();
    like.burst.unsched_bytes = Auto::Auto;
    let [unscheduled, scheduled] = bursts_and_answers(ssp::Ssp::new(&like, &env));
    let mut ports = [(port_of(&aeolus::META), aeolus), (port_of(&ssp::META), [scheduled, unscheduled])];
    let mut rng = base::Rng::stream(1, "mirror", &[]);
    let (mut steps, mut lost) = ([0; 2], [0; 2]);
    for _ in 0..700 {
        let (class, serves) = (rng.below(2) as usize, rng.below(5) < 2);
        let seen = ports.each_mut().map(|(port, data)| {
            let packet = data[class][steps[class]];
            let before = enqueue(port, packet).len();
            (before, serves.then(|| port.dequeue(Time::ZERO).is_some()), port.backlog(), port.counts().to_vec())
        });
        assert_eq!(seen[0], seen[1]);
        lost[class] += seen[0].0;
        steps[class] += 1;
    }
    // The droppable class loses packets first: in Aeolus the unscheduled packets, in SSP the
    // scheduled ones.
    assert!(lost[0] > 100 && lost[1] > 0 && lost[0] > 2 * lost[1], "{lost:?}");
}

#[test]
fn what_passes_is_as_what_entered_and_left() {
    let kinds = [credit, control, droppable, protected, probe];
    // Three of eleven packets are credits, whose tokens arrive in 130 ns: too many of them in the
    // first half of every hundred packets.
    let at = |n: u64| Time(1000 * (0..n).map(|before| [20, 60][before as usize / 50 % 2]).sum::<u64>() + n * n % 97);
    let packets: Vec<(Time, Packet)> = (0u64..2000).map(|n| (at(n), kinds[n as usize * 7 % 11 % 5](n))).collect();
    for drop in [Limit::Bytes(0), Limit::Bytes(6000), Limit::Unlimited] {
        for rule in [Rule::Before, Rule::After] {
            let passed = check_passing(&queue(|params| (params.drop, params.rule) = (drop, rule)), &packets);
            assert!(passed[0] > 100 && passed[1] > 100, "{passed:?}");
        }
    }
    check_passing(&queue(|params| params.protect = Limit::Bytes(1000)), &packets);
}

#[test]
fn a_link_that_comes_up_has_a_full_bucket() {
    let mut q = queue(|_| ());
    assert_eq!(dropped(&mut q, (0..3).map(credit)), []);
    (0..2).for_each(|_| assert!(q.dequeue(Time::ZERO).is_some()));
    assert_eq!(drain(&mut q), [(0, 2)]);
    q.on_link_up(Time(1000));
    assert_eq!(dropped(&mut q, (3..5).map(credit)), []);
    (0..2).for_each(|_| assert!(q.not_before(Time(1000)).is_none() && q.dequeue(Time(1000)).is_some()));
}

#[test]
fn a_burst_below_a_credit_and_a_rate_of_nothing_are_problems() {
    let keys = |change: fn(&mut Params)| {
        let mut params = Params::defaults();
        change(&mut params);
        check(&params, &env()).iter().map(|problem| problem.key).collect::<Vec<_>>()
    };
    assert_eq!(keys(|_| ()), [""; 0]);
    assert_eq!(keys(|params| params.burst = Bytes(83)), ["burst"]);
    assert_eq!(keys(|params| params.rate = Auto::Set(RateOr::Fraction(Fraction(0)))), ["rate"]);
    assert_eq!(keys(|params| params.limit = Auto::Set(Limit::Bytes(1537))), ["limit"]);
}

proptest! {
    /// A simple model: one list per class, and each rule written out.
    #[test]
    fn it_behaves_as_the_model(ops in prop::collection::vec((0u8..6, 1u64..200), 1..200), after in any::<bool>(), with_protected in any::<bool>()) {
        let change = |params: &mut Params| {
            (params.limit, params.drop, params.protect) = (Auto::Set(Limit::Packets(6)), Limit::Packets(3), Limit::Packets(5));
            (params.probes, params.credits) = (Limit::Packets(2), Limit::Packets(3));
            params.rule = if after { Rule::After } else { Rule::Before };
            params.when = if with_protected { When::BesideProtected } else { When::Any };
        };
        let mut q = queue(change);
        let (mut credits, mut controls, mut data) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        let (mut now, mut sent) = (0u64, Vec::<u64>::new());
        for (n, (kind, wait)) in (0u64..).zip(ops) {
            let of = |data: &VecDeque<(u64, u8)>, kind| data.iter().filter(|(_, k)| *k == kind).count();
            match kind {
                0 => {
                    let lost = dropped(&mut q, [credit(n)]);
                    prop_assert_eq!(lost.len(), usize::from(credits.len() >= 3));
                    if lost.is_empty() { credits.push_back(n); }
                }
                1 => { dropped(&mut q, [control(n)]); controls.push_back(n); }
                2..5 => {
                    let (u, s) = (of(&data, 3), of(&data, 2));
                    let (packet, fits) = match kind {
                        2 => {
                            let early = u + s + usize::from(after) >= 3 && (!with_protected || u > 0);
                            (droppable(n), u + s < 6 && !early)
                        }
                        3 => (protected(n), u + s < 5),
                        _ => (probe(n), of(&data, 4) < 2),
                    };
                    prop_assert_eq!(dropped(&mut q, [packet]).is_empty(), fits);
                    if fits { data.push_back((n, kind)); }
                }
                _ => {
                    now += wait * 1000;
                    // Earliest time: when the tokens of all bytes sent so far, less the burst, have
                    // arrived.
                    let bytes = |count: u64| (count * 84).saturating_sub(168) * 8;
                    let token = |sent: &[u64]| {
                        let window = |i: usize| sent[i] + (bytes((sent.len() - i) as u64 + 1) * 1622).div_ceil(84) * 10;
                        (0..sent.len()).map(window).max().unwrap_or(0)
                    };
                    let ready = !credits.is_empty() && token(&sent) <= now;
                    let expected = if ready {
                        sent.push(now);
                        credits.pop_front()
                    } else {
                        controls.pop_front().or_else(|| data.pop_front().map(|(n, _)| n))
                    };
                    if expected.is_none() && !credits.is_empty() {
                        prop_assert!(q.not_before(Time(now)).is_some());
                    } else {
                        prop_assert_eq!(q.dequeue(Time(now)).map(|packet| packet.offset), expected);
                    }
                }
            }
            prop_assert_eq!(q.backlog().packets as usize, credits.len() + controls.len() + data.len());
        }
    }
}
