//! Shared by the tests of transports on this state machine: hand-made packets, sent packets as
//! words, and random losses.

use super::*;
use crate::kit::pipe::{Fate, Pipe, both_ways, patterns};
use crate::kit::script::{self, Script};
use base::Rng;

pub const MSS: u64 = 1460;

pub fn host<R: Rules>(machine: Burst<R>, sizes: &[u64]) -> Script<Burst<R>> {
    let flows = sizes.iter().zip(0..).map(|(size, id)| script::flow(id, *size)).collect();
    let mut host = Script::new(machine, flows);
    host.table.keep_counters(COUNTERS.len());
    host
}

pub fn us(n: u64) -> Time {
    Time::ZERO + Dur::from_us(n)
}

/// A credit; all bytes before segment `acked` have arrived.
pub fn credit(flow: u32, number: u32, acked: u64) -> Packet {
    let mut packet = Packet { offset: acked * MSS, ..Packet::new(FlowId(flow), Kind::CREDIT, 84) };
    packet.set(Offer { number, srtt_ps: 0 });
    packet
}

/// A segment with this number, with or without a credit.
pub fn segment(number: u64, segment: u64, credit: Option<u32>) -> Packet {
    let mut packet = Packet::data(FlowId(0), segment * MSS, MSS as u16, 40);
    packet.set(Sent::new(number, credit.map(|number| Answered { number, sent: Time::ZERO })));
    packet
}

pub fn probe(number: u64, from: u64) -> Packet {
    let mut packet = Packet::new(FlowId(0), Kind::PROBE, 40);
    packet.set(Asked { number, from });
    packet
}

pub fn report(kind: Kind, numbers: Range<u64>) -> Packet {
    let mut packet = Packet::new(FlowId(0), kind, 40);
    packet.set(BurstReport { from: numbers.start, to: numbers.end });
    packet
}

pub fn request() -> Packet {
    Packet::new(FlowId(0), REQUEST, 40)
}

pub fn stop() -> Packet {
    Packet::new(FlowId(0), STOP, 40)
}

pub fn nack(numbers: Range<u64>) -> Packet {
    report(NACK, numbers)
}

/// The packets that were sent: `U0#3` and `S0#3` are segment 0 with number 3, unscheduled and
/// scheduled.
pub fn seen(packets: &[Packet]) -> Vec<String> {
    let word = |packet: &Packet| match packet.kind {
        Kind::DATA => {
            let sent: Sent = packet.get();
            let class = if sent.credit().is_none() { "U" } else { "S" };
            assert_eq!(packet.has(Packet::RETX), packet.has(Packet::RETX) && class == "S", "bursts are new");
            format!("{class}{}#{}", packet.offset / MSS, sent.number())
        }
        Kind::PROBE => {
            let Asked { number, from } = packet.get();
            if from == number { format!("probe {number}") } else { format!("probe {number} from {from}") }
        }
        Kind::CREDIT => "credit".to_owned(),
        kind => {
            let BurstReport { from, to } = packet.get();
            let word = kind.word().or(KINDS.get(usize::from(kind.0 - Kind::OWN.min(kind.0))).copied()).unwrap_or("other");
            if kind == REQUEST || kind == STOP { word.to_owned() } else { format!("{word} {from}..{to}") }
        }
    };
    packets.iter().map(word).collect()
}

/// Joins two hosts that send each other flows of these sizes, and runs until no packet or timer is
/// left. Fails unless each byte has arrived once and no state is left.
pub fn exchange<R: Rules>(machine: impl Fn() -> Burst<R>, sizes: &[u64], fate: impl FnMut(&Packet) -> Fate) -> Vec<Packet> {
    let flows = both_ways(sizes);
    let host = || Script::new(machine(), flows.clone());
    let mut pipe = Pipe::new(host(), host(), Dur::from_us(60));
    pipe.run(fate);
    assert!(
        pipe.hosts.iter().all(|host| host.machine.senders.is_empty() && host.machine.receivers.is_empty()),
        "state is left over"
    );
    pipe.log
}

/// Random losses of data and of control packets in both directions, each up to a half, at all times
/// of a flow.
pub fn lose_at_random<R: Rules>(machine: impl Fn() -> Burst<R>, usual: u32) {
    for pattern in 0..u64::from(patterns(usual)) {
        let rng = &mut Rng::stream(15, "losses", &[pattern]);
        // Some flows have more missing numbers than fit one answer.
        let most = if pattern % 50 == 7 { 1_000_000 } else { 80_000 };
        let sizes: Vec<u64> = (0..1 + rng.below(3)).map(|_| 1 + rng.below(most)).collect();
        let losses = [(); 4].map(|()| 0.5 * rng.unit());
        exchange(&machine, &sizes, |packet| {
            let back = packet.kind == Kind::CREDIT || matches!(packet.kind, NACK | STOP | Kind::ACK | Kind::PROBEACK);
            let class = usize::from(packet.payload > 0) + 2 * usize::from(back == (packet.flow.0 % 2 == 0));
            if rng.unit() < losses[class] { Fate::Drop } else { Fate::Pass }
        });
    }
}
