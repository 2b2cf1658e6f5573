use super::*;
use crate::kit::burst::tests::{
    MSS, credit, exchange, host, lose_at_random, nack, probe, report, request, seen, segment, stop, us,
};
use crate::kit::credits::Feedback;
use crate::kit::pipe::Fate;
use crate::kit::script::{self, Script};
use crate::packet::{Kind, Packet};
use base::params::{Auto, Params as _};
use base::{Dur, FlowId};

/// Parameters with bursts of one bandwidth-delay product, which is 12 packets here; retransmissions
/// are never protected.
fn params(change: impl FnOnce(&mut Params)) -> Params {
    let mut params = Params::defaults();
    params.burst.unsched_bytes = Auto::Auto;
    params.protect_after = 0;
    change(&mut params);
    params
}

fn with(change: impl FnOnce(&mut Params), sizes: &[u64]) -> Script<Ssp> {
    host(Ssp::new(&params(change), &script::env()), sizes)
}

fn machine() -> Ssp {
    Ssp::new(&params(|_| ()), &script::env())
}

/// The default: 36 kB are 25 packets.
#[test]
fn a_burst_has_36_kb() {
    let mut h = host(Ssp::new(&Params::defaults(), &script::env()), &[100 * MSS]);
    assert_eq!(h.open(0).iter().filter(|packet| packet.payload > 0).count(), 25);
}

#[test]
fn bursts_and_probes_are_protected_and_scheduled_packets_are_not() {
    let mut h = with(|_| (), &[20 * MSS]);
    let sent = h.open(0);
    assert_eq!((sent.len(), seen(&sent[1..2]), seen(&sent[13..])), (14, vec!["U0#0".to_owned()], vec!["probe 12".to_owned()]));
    assert!(sent[1..].iter().all(|packet| packet.has(Packet::ECT)));
    let answer = h.packet(credit(0, 0, 0));
    assert_eq!((seen(&answer), answer[0].has(Packet::ECT)), (vec!["S12#12".to_owned()], false));
}

#[test]
fn the_burst_has_a_budget_of_whole_packets() {
    for (bytes, packets) in [(0, 0), (1, 1), (1460, 1), (1461, 2), (5 * MSS, 5)] {
        let mut h = with(|params| params.burst.unsched_bytes = Auto::Set(Bytes(bytes)), &[20 * MSS]);
        let sent = h.open(0);
        assert_eq!(sent.iter().filter(|packet| packet.payload > 0).count(), packets, "{bytes}");
        assert_eq!(sent.len(), 1 + packets + usize::from(packets > 0));
        assert_eq!(h.table.counts(FlowId(0))[2], packets as u64 * MSS);
    }
}

/// Golden vector: of the numbers 0 to 9 one is lost, and the probe has the number 10.
#[test]
fn golden_reports() {
    for (lost, reporter, word) in [(7, 8, "nack 7..8"), (9, 10, "nack 9..10")] {
        let mut r = with(|_| (), &[20 * MSS]).at_host(1);
        for number in (0..10).filter(|number| *number != lost) {
            let credit = (number > 5).then_some(number as u32);
            let expected: &[&str] = if number == reporter { &[word] } else { &[] };
            assert_eq!(seen(&r.packet(segment(number, number, credit))), expected, "{number}");
        }
        let expected: &[&str] = if reporter == 10 { &[word] } else { &[] };
        assert_eq!(seen(&r.packet(probe(10, 10))), expected);
    }
}

#[test]
fn credits_send_lost_packets_first_and_waste_is_probed_once() {
    let mut h = with(|_| (), &[13 * MSS]);
    h.open(0);
    h.packet(nack(2..4));
    let answers: Vec<Packet> = (0..6).flat_map(|n| h.packet(credit(0, n, 0))).collect();
    assert_eq!(seen(&answers), ["S2#12", "S3#13", "S12#14", "probe 15"]);
    // A lost retransmission is reported by its own number. The report also ends the series of
    // wasted credits.
    h.packet(nack(13..14));
    let answers: Vec<Packet> = (6..9).flat_map(|n| h.packet(credit(0, n, 2))).collect();
    assert_eq!(seen(&answers), ["S3#15", "probe 16"]);
    assert_eq!(h.table.counts(FlowId(0))[..7], [9, 5, 12 * MSS, 4 * MSS, 3 * MSS, 2, 1]);
    // Packets that have arrived are not retransmitted.
    h.packet(nack(14..15));
    assert_eq!(seen(&h.packet(credit(0, 9, 13))), [""; 0]);
    h.packet(stop());
    assert!(h.table.get(FlowId(0)).closed);
}

#[test]
fn unconfirmed_packets_are_retransmitted_if_so_configured() {
    let mut h = with(|params| params.burst.resend_unconfirmed = true, &[3 * MSS]);
    h.open(0);
    let answers: Vec<Packet> = (0..3).flat_map(|n| h.packet(credit(0, n, 1))).collect();
    assert_eq!(seen(&answers), ["S1#3", "S2#4", "probe 5"]);
}

#[test]
fn packets_that_were_lost_often_are_protected() {
    let mut h = with(|params| params.protect_after = 2, &[MSS]);
    h.open(0);
    let protected = [0u64, 1, 2, 3].map(|number| {
        h.packet(nack(number..number + 1));
        let sent = h.packet(credit(0, number as u32, 0));
        assert_eq!(seen(&sent), [format!("S0#{}", number + 1)]);
        sent[0].has(Packet::ECT)
    });
    assert_eq!(protected, [false, true, true, true]);
}

#[test]
fn the_sender_may_find_lost_packets_by_acknowledgments() {
    let change = |params: &mut Params| params.detection = Finder::Sender;
    let mut r = with(change, &[20 * MSS]).at_host(1);
    assert_eq!(seen(&r.packet(segment(1, 1, None))), ["ack 0..1"]);
    assert_eq!(seen(&r.packet(segment(3, 3, Some(0)))), ["ack 2..3"]);
    assert_eq!(seen(&r.packet(probe(4, 4))), ["probeack 4..4"]);
    let mut h = with(change, &[3 * MSS]);
    h.open(0);
    h.packet(report(Kind::ACK, 1..1));
    assert_eq!(seen(&h.packet(credit(0, 0, 0))), ["S0#3"]);
    // Number 2 was sent before number 3, which has arrived.
    h.packet(report(Kind::ACK, 3..3));
    assert_eq!(seen(&h.packet(credit(0, 1, 0))), ["S2#4"]);
}

/// Returns the order of departures of three flows with their sizes in packets; the last flow has a
/// credit, and one packet of its burst has left.
fn order(prio: SenderPrio) -> Vec<String> {
    let change = |params: &mut Params| {
        (params.sender_prio, params.small) = (prio, Bytes(3 * MSS));
        params.burst.unsched_bytes = Auto::Set(Bytes(2 * MSS));
    };
    let mut h = with(change, &[5 * MSS, 3 * MSS, 6 * MSS]);
    h.nic_busy = true;
    h.open(2);
    h.packet(credit(2, 0, 0));
    (1..5).for_each(|n| drop(h.packet(credit(2, n, 0))));
    h.open(0);
    h.open(1);
    h.nic_busy = false;
    let sent = h.sent();
    let data = sent.iter().filter(|packet| packet.payload > 0);
    data.map(|packet| format!("{}:{}", packet.flow, seen(&[*packet])[0])).collect()
}

#[test]
fn small_flows_go_first_in_a_host() {
    let flow = |flow: u32, class: &str, n: u64| (0..n).map(move |i| format!("{flow}:{class}{i}#{i}")).collect::<Vec<_>>();
    let (five, three, six) = (flow(0, "U", 2), flow(1, "U", 2), flow(2, "S", 5));
    assert_eq!(order(SenderPrio::Sjf), [three.clone(), five.clone(), six.clone()].concat());
    assert_eq!(order(SenderPrio::TwoLevel), [three.clone(), six.clone(), five.clone()].concat());
    assert_eq!(order(SenderPrio::Off), [six.clone(), five.clone(), three.clone()].concat());
    // One packet is left of the largest flow at its last credit, two at the credit before.
    let srpt = order(SenderPrio::Srpt);
    assert_eq!(srpt[..3], six[..3]);
    let small: Vec<&String> = srpt.iter().filter(|word| !word.starts_with('2')).collect();
    assert_eq!(small, [&three[0], &three[1], &five[0], &five[1]]);
}

#[test]
fn a_receiver_sends_credits_from_the_first_packet_to_the_last_byte() {
    for first in [request(), segment(0, 0, None), probe(3, 3)] {
        let mut r = with(|_| (), &[2 * MSS]).at_host(1);
        r.packet(first);
        let credits = seen(&r.advance(us(1000)));
        // One credit every 202.75 us: a sixteenth of the largest rate.
        assert!(credits.len() == 5 && credits.iter().all(|word| word == "credit"), "{credits:?}");
        r.packet(segment(0, 0, None));
        assert_eq!(seen(&r.packet(segment(1, 1, None))), ["stop"]);
        assert_eq!(r.advance(us(100_000)), []);
        // Late data is not answered; a late request and a late probe are.
        let answers = [segment(2, 1, Some(0)), request(), probe(3, 3)].map(|late| seen(&r.packet(late)));
        assert_eq!(answers, [vec![], vec!["stop".to_owned()], vec!["stop".to_owned()]]);
    }
    let mut r = with(|_| (), &[2 * MSS]).at_host(1);
    r.packet(request());
    assert!(r.advance(us(60_000)).last().map(|packet| packet.sent_at) < Some(us(10_000)), "a time without packets stops credits");
}

/// Half of all scheduled packets are dropped, and no credits.
#[test]
fn a_dropped_packet_is_a_lost_credit_unless_configured_otherwise() {
    let credits = |count: bool| {
        let change = |params: &mut Params| {
            (params.burst.count_drop_as_credit_loss, params.burst.pace.feedback) = (count, Feedback::Paper);
        };
        let mut r = with(change, &[2_000 * MSS]).at_host(1);
        r.packet(request());
        let mut sent = 0;
        for n in 0..200 {
            sent += r.advance(us(100 * n)).iter().filter(|packet| packet.kind == Kind::CREDIT).count();
            r.packet(segment(2 * n, 2 * n, Some(2 * n as u32)));
        }
        sent
    };
    let (yes, no) = (credits(true), credits(false));
    assert!(no > 10 * yes, "{yes} credits and {no}");
}

#[test]
fn bytes_of_the_first_round_trip_are_counted() {
    let mut r = with(|_| (), &[4 * MSS]).at_host(1);
    for (n, at) in [(0, 0), (1, 129), (2, 130), (3, 131)] {
        r.now = us(at);
        r.packet(segment(n, n, None));
    }
    assert_eq!(r.table.counts(FlowId(0))[7], 2 * MSS);
}

#[test]
fn without_progress_a_flow_requests_all_missing_numbers() {
    let mut h = with(|_| (), &[3 * MSS]);
    h.open(0);
    // Three unloaded round trips are 387.84 us. Wasted credits are no progress.
    assert_eq!(seen(&h.advance(us(390))), ["request", "probe 3 from 0"]);
    h.packet(credit(0, 0, 1));
    (1..5).for_each(|n| drop(h.packet(credit(0, n, 1))));
    assert_eq!(seen(&h.advance(us(390 + 388))), ["request", "probe 3 from 1"]);
    let mut r = with(|_| (), &[9 * MSS]).at_host(1);
    assert_eq!(seen(&r.packet(segment(4, 4, None))), ["nack 0..4"]);
    assert_eq!(seen(&r.packet(segment(6, 6, None))), ["nack 5..6"]);
    assert_eq!(seen(&r.packet(probe(8, 1))), ["nack 1..4", "nack 5..6", "nack 7..8"]);
}

/// The second answer to a probe has the numbers for which the first had no space.
#[test]
fn numbers_that_do_not_fit_one_answer_are_in_the_next() {
    let mut r = with(|_| {}, &[300 * MSS]).at_host(1);
    // Every second one of 200 packets is lost: 100 gaps.
    for number in (0..200).step_by(2) {
        r.packet(segment(number, number, None));
    }
    let gaps = |which: std::ops::Range<u64>| which.map(|i| format!("nack {}..{}", 2 * i + 1, 2 * i + 2)).collect::<Vec<_>>();
    let mut ask = || seen(&r.packet(probe(200, 1)));
    assert_eq!(ask(), gaps(0..64));
    // The sender can settle none of the gaps, since a later packet has arrived and an earlier one
    // has not.
    assert_eq!(ask(), [gaps(64..100), gaps(0..28)].concat());
    assert_eq!(ask(), gaps(28..92));
}

/// No unscheduled packet leaves after the first credit or above the budget; without losses each segment is sent once.
#[test]
fn without_losses_each_byte_is_sent_once() {
    let log = exchange(machine, &[100 * MSS + 7], |_| Fate::Pass);
    let words = seen(&log);
    let first = words.iter().position(|word| word == "credit").expect("a credit");
    let unscheduled: Vec<usize> = (0..words.len()).filter(|at| words[*at].starts_with('U')).collect();
    assert!(unscheduled.len() == 12 && unscheduled.iter().all(|at| *at < first + 12), "{unscheduled:?}");
    let count = |letter| words.iter().filter(|word| word.starts_with(letter)).count();
    assert_eq!((count('S'), count('n'), count('r')), (101 - 12, 0, 1));
    let stops = words.iter().filter(|word| *word == "stop").count();
    assert!((1..=2).contains(&stops), "{stops}");
}

#[test]
fn contradictions_are_problems() {
    let wrong = params(|params| params.burst.idle = Auto::Set(Dur::from_us(1)));
    assert_eq!(check(&wrong, &script::env()).iter().map(|problem| problem.key).collect::<Vec<_>>(), ["idle"]);
    assert_eq!(check(&Params::defaults(), &script::env()), []);
}

#[test]
fn each_byte_arrives_once_whatever_is_lost() {
    lose_at_random(machine, 60);
    let sender = params(|params| {
        (params.detection, params.protect_after) = (Finder::Sender, 1);
        (params.burst.resend_unconfirmed, params.sender_prio) = (true, SenderPrio::Srpt);
        params.burst.unsched_bytes = Auto::Set(Bytes(0));
    });
    lose_at_random(|| Ssp::new(&sender, &script::env()), 20);
}
