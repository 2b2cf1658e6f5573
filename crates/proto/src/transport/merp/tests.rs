use super::*;
use crate::kit::script::{self, Script};
use base::Time;
use base::given::{Given, GivenPart};
use base::params::Auto;

const FULL: u64 = 999_000_000;
const SLOW: u64 = 1_000_000;
const THETA: u64 = 800_000_000;
/// Length of a full packet at FULL.
const GAP: Dur = Dur(12_012_013);

fn at_us(us: u64) -> Time {
    Time(us * 1_000_000)
}

fn host_with(flows: &[u64], change: impl FnOnce(&mut Params)) -> Script<Merp> {
    let mut params = Params::defaults();
    change(&mut params);
    let flows = flows.iter().enumerate().map(|(i, size)| script::flow(i as u32, *size)).collect();
    Script::new(Merp::new(&params, &script::env()), flows)
}

fn host(flows: &[u64]) -> Script<Merp> {
    host_with(flows, |_| ())
}

/// Answers `to` with a grant of `asr_bps`, and returns the packets that the host then sends.
fn answer(s: &mut Script<Merp>, to: &Packet, kind: Kind, asr_bps: u64) -> Vec<Packet> {
    answer_with(s, to, kind, Answer { asr_bps, ..Answer::default() })
}

fn answer_with(s: &mut Script<Merp>, to: &Packet, kind: Kind, answer: Answer) -> Vec<Packet> {
    let mut ack = Packet::new(to.flow, kind, 40);
    ack.flags = to.flags & Packet::RETX;
    let answer = Answer { theta_bps: THETA, tx_time_ps: to.sent_at.ps(), acked: to.offset, ..answer };
    ack.set_ext(answer, &mut s.ext);
    s.packet(ack)
}

fn header(s: &Script<Merp>, packet: &Packet) -> Header {
    packet.get_ext(&s.ext)
}

fn kinds(packets: &[Packet]) -> Vec<Kind> {
    packets.iter().map(|p| p.kind).collect()
}

/// Opens flow 0 at time 0 and answers its SYN at 100 us.
fn opened(s: &mut Script<Merp>, asr_bps: u64) -> Vec<Packet> {
    let syn = s.open(0).remove(0);
    s.advance(at_us(100));
    answer(s, &syn, Kind::SYNACK, asr_bps)
}

#[test]
fn a_syn_opens_with_the_capacity_of_the_nic_and_no_expectation() {
    let mut s = host(&[14_600]);
    let sent = s.open(0);
    assert_eq!(kinds(&sent), [Kind::SYN]);
    assert_eq!((sent[0].prio, sent[0].wire_len, sent[0].payload), (HIGH, 40, 0));
    let h = header(&s, &sent[0]);
    assert_eq!((h.asr_bps, h.expected_ps, h.theta_bps), (1_000_000_000, 0, THETA));
    assert_eq!((h.pauses, h.ports(), h.expected_echo_ps), (0, 0, 0));
    assert_eq!((h.rtt_ps, h.theta_share()), (129_280_000, Fraction(800_000_000)));
    assert_eq!(h.bits & (Header::REROUTE | UNKNOWN), 0);
}

#[test]
fn a_grant_above_theta_means_data_and_one_of_theta_means_probes() {
    let sent = opened(&mut host(&[14_600]), THETA + 1);
    assert_eq!(kinds(&sent), [Kind::DATA]);
    assert_eq!((sent[0].prio, sent[0].wire_len, sent[0].payload, sent[0].offset), (MIDDLE, 1500, 1460, 0));
    let sent = opened(&mut host(&[14_600]), THETA);
    assert_eq!(kinds(&sent), [DET]);
    assert_eq!((sent[0].prio, sent[0].wire_len, sent[0].payload), (LOW, 40, 0));
}

/// The sender's part of vector U1: 100 packets of a single flow leave 12.012013 us apart from the
/// SYNACK on.
#[test]
fn data_is_paced_without_a_window() {
    let mut s = host_with(&[146_000], |p| p.min_rto = Auto::Set(Dur::from_secs(1)));
    assert_eq!(opened(&mut s, FULL).len(), 1);
    let sent = s.advance(Time(100_000_000 + 99 * GAP.0));
    let seen: Vec<(u64, Time)> = sent.iter().map(|p| (p.offset, p.sent_at)).collect();
    let expected: Vec<(u64, Time)> = (1..100).map(|i| (i * 1460, at_us(100) + GAP * i)).collect();
    assert_eq!(seen, expected);
}

#[test]
fn the_gap_counts_from_the_moment_the_nic_took_the_packet() {
    let mut s = host(&[14_600]);
    opened(&mut s, FULL);
    s.now = at_us(150);
    assert_eq!(s.advance(at_us(150)).len(), 1);
    assert_eq!(s.advance(at_us(180))[0].sent_at, at_us(150) + GAP);
}

#[test]
fn a_change_of_rate_counts_from_the_departure_before() {
    let mut s = host(&[146_000]);
    let first = opened(&mut s, FULL).remove(0);
    s.advance(at_us(105));
    // 1500 B at 900 Mb/s: 13.333334 us after 100 us.
    assert_eq!(answer(&mut s, &first, Kind::ACK, 900_000_000), []);
    let second = s.advance(at_us(114)).remove(0);
    assert_eq!(second.sent_at, Time(113_333_334));
    // At 1 Gb/s the third packet would have been due at 125.33 us: it leaves now.
    s.advance(at_us(126));
    let third = answer(&mut s, &second, Kind::ACK, 1_000_000_000);
    assert_eq!((third.len(), third[0].sent_at), (1, at_us(126)));
}

#[test]
fn waiting_flows_probe_at_the_granted_rate_without_end() {
    let mut s = host(&[14_600]);
    opened(&mut s, SLOW);
    // 40 B at 1 Mb/s.
    for i in 1..20 {
        let sent = s.advance(at_us(100 + i * 320));
        assert_eq!(sent.iter().map(|p| (p.kind, p.sent_at)).collect::<Vec<_>>(), [(DET, at_us(100 + i * 320))]);
        answer(&mut s, &sent[0], DETACK, SLOW);
    }
    let mut s = host_with(&[14_600], |p| p.det_min_gap = Dur::from_us(500));
    opened(&mut s, SLOW);
    assert_eq!(s.advance(at_us(601)).iter().map(|p| p.sent_at).collect::<Vec<_>>(), [at_us(600)]);
    let mut s = host_with(&[14_600], |p| p.det_size = Bytes(80));
    assert_eq!(opened(&mut s, SLOW)[0].wire_len, 80);
    assert_eq!(s.advance(at_us(740))[0].sent_at, at_us(740));
}

#[test]
fn a_boost_starts_data_at_once_at_the_rate_it_carries() {
    let mut s = host(&[146_000]);
    opened(&mut s, SLOW);
    let det = s.advance(at_us(420)).remove(0);
    s.advance(at_us(500));
    let sent = answer(&mut s, &det, BOOST, 900_000_000);
    assert_eq!((kinds(&sent), sent[0].sent_at), (vec![Kind::DATA], at_us(500)));
    assert_eq!(s.advance(at_us(514))[0].sent_at, Time(513_333_334));
}

/// A DET is unanswered for a round trip, 129.28 us: probes leave as SYNs, after 256 of them only
/// every second one, until a DET is answered.
#[test]
fn probes_that_do_not_get_through_leave_as_syns() {
    let mut s = host(&[14_600]);
    let first = opened(&mut s, SLOW).remove(0);
    let probe_at = |n: u64| at_us(100 + 320 * n);
    let sent = s.advance(probe_at(264));
    let of = |p: &Packet| (p.kind, p.prio, p.has(Packet::RETX), p.wire_len);
    let (det, syn) = ((DET, LOW, false, 40), (Kind::SYN, HIGH, true, 40));
    let expected: Vec<_> = (1..=264).map(|n| if n == 1 || n > 258 && n % 2 == 1 { det } else { syn }).collect();
    assert!(sent.iter().map(of).eq(expected), "{:?}", kinds(&sent[250..]));
    assert_eq!(sent[263].sent_at, probe_at(264), "SYNs are sent in place of DETs");
    answer(&mut s, &sent[263], Kind::SYNACK, SLOW);
    assert_eq!(kinds(&s.advance(probe_at(266))), [DET, Kind::SYN], "the SYNACK does not show that DETs get through");
    // Finally two DETACKs arrive.
    answer(&mut s, &first, DETACK, SLOW);
    assert_eq!(kinds(&s.advance(probe_at(267))), [Kind::SYN]);
    answer(&mut s, &Packet { sent_at: probe_at(267), ..sent[0] }, DETACK, SLOW);
    assert_eq!(kinds(&s.advance(probe_at(268))), [DET]);
    // The answer to a SYN is a grant like any other.
    let syn = s.advance(probe_at(269)).remove(0);
    s.advance(probe_at(270));
    assert_eq!(kinds(&answer(&mut s, &Packet { sent_at: probe_at(270), ..syn }, Kind::SYNACK, FULL)), [Kind::DATA]);
}

/// Ports learn how long the sender takes to use a grant: a round trip, and half the gap between
/// probes while it probes.
#[test]
fn the_header_has_the_time_a_grant_takes_to_be_used() {
    let mut s = host(&[146_000]);
    let data = opened(&mut s, FULL).remove(0);
    assert_eq!(header(&s, &data).rtt_ps, 129_280_000);
    answer(&mut s, &data, Kind::ACK, SLOW);
    let det = s.advance(at_us(500)).remove(0);
    assert_eq!((det.kind, header(&s, &det).rtt_ps), (DET, 129_280_000 + 160_000_000));
}

/// Without `probe_lead` the header has only the round trip.
#[test]
fn a_lead_for_probes_is_an_option() {
    let mut s = host_with(&[146_000], |p| p.probe_lead = false);
    let det = opened(&mut s, SLOW).remove(0);
    assert_eq!((det.kind, header(&s, &det).rtt_ps), (DET, 129_280_000));
}

/// The round trip of an empty network is 129.28 us here; 40 B at 0.1 Mb/s take 3.2 ms.
#[test]
fn a_probe_each_round_trip_is_an_option() {
    for (rate, least, gap_ns) in [(100_000, 0, 129_280), (SLOW, 0, 129_280), (10 * SLOW, 0, 32_000), (SLOW, 500, 500_000)] {
        let mut s = host_with(&[14_600], |p| (p.probe_each_rtt, p.det_min_gap) = (true, Dur::from_us(least)));
        opened(&mut s, rate);
        assert!(s.advance(Time(at_us(100).ps() + gap_ns * 1000 - 1)).is_empty());
        assert_eq!(s.advance(Time(at_us(100).ps() + gap_ns * 1000)).len(), 1, "{rate} bit/s");
    }
}

/// Without `syn_probes` DETs follow DETs, answered or not, but a port that does not know the flow
/// gets a SYN.
#[test]
fn syns_among_probes_are_an_option() {
    let mut s = host_with(&[14_600], |p| p.syn_probes = false);
    let first = opened(&mut s, SLOW).remove(0);
    assert!(s.advance(at_us(100 + 320 * 20)).iter().all(|p| p.kind == DET));
    answer_with(&mut s, &first, DETACK, Answer { asr_bps: SLOW, bits: UNKNOWN, ..Answer::default() });
    assert_eq!(kinds(&s.advance(at_us(100 + 320 * 21))), [Kind::SYN]);
}

/// At 0.05 % of 1 Gb/s a SYN of 40 B takes 640 us: every second probe may be one.
#[test]
fn the_share_of_syns_is_an_option() {
    let mut s = host_with(&[14_600], |p| p.syn_share = Fraction(500_000));
    opened(&mut s, SLOW);
    let sent = s.advance(at_us(100 + 320 * 8));
    assert_eq!(kinds(&sent), [DET, Kind::SYN, DET, Kind::SYN, DET, Kind::SYN, DET, Kind::SYN]);
}

#[test]
fn a_dataack_preempts() {
    let mut s = host(&[146_000]);
    let first = opened(&mut s, FULL).remove(0);
    let second = s.advance(at_us(120)).remove(0);
    // The probe leaves its own length after the previous DATA, not the length of that DATA.
    assert_eq!(answer(&mut s, &first, Kind::ACK, SLOW), []);
    let sent = s.advance(at_us(500));
    assert_eq!(sent.iter().map(|p| (p.kind, p.sent_at)).collect::<Vec<_>>(), [(DET, second.sent_at + Dur::from_us(320))]);
    // The second packet's ACK does not release the flow again: the probe left later, and its answer
    // arrived first.
    answer(&mut s, &sent[0], DETACK, SLOW);
    assert_eq!(kinds(&answer(&mut s, &second, Kind::ACK, FULL)), []);
    assert_eq!(kinds(&s.advance(at_us(800))), [DET]);
}

#[test]
fn grants_apply_in_the_order_of_the_packets_they_answer() {
    let mut s = host(&[146_000]);
    let first = opened(&mut s, FULL).remove(0);
    let second = s.advance(at_us(113)).remove(0);
    answer(&mut s, &second, Kind::ACK, FULL);
    answer(&mut s, &first, Kind::ACK, SLOW);
    assert_eq!(kinds(&s.advance(at_us(125))), [Kind::DATA]);
}

#[test]
fn the_expected_rate_is_echoed_as_configured() {
    let echoed = |sync| {
        let mut s = host_with(&[146_000], |p| p.esr_sync = sync);
        let syn = s.open(0).remove(0);
        let said = Answer { asr_bps: FULL, expected_ps: 77, paused: 5, ..Answer::default() };
        let data = answer_with(&mut s, &syn, Kind::SYNACK, said).remove(0);
        let h = header(&s, &data);
        assert_eq!((h.asr_bps, h.pauses, h.ports()), (1_000_000_000, 5 << 32, 0));
        (h.expected_ps, h.expected_echo_ps)
    };
    assert_eq!(echoed(EsrSync::Fresh), (0, 77));
    assert_eq!(echoed(EsrSync::Sticky), (77, 0));
    assert_eq!(echoed(EsrSync::Downstream), (0, 0));
    assert_eq!(echoed(EsrSync::None), (0, 0));
}

#[test]
fn packets_older_than_one_rto_are_retransmitted_before_new_ones() {
    let mut s = host(&[1460 * 1000]);
    let first = opened(&mut s, FULL);
    assert_eq!(s.machine.sample(FlowId(0)).unwrap().srtt, Dur::from_us(100));
    // RTT samples of 100 us: the RTO is its minimum of 1 ms. The first packet left at 100 us.
    let early = s.advance(at_us(1099));
    assert!(early.iter().all(|p| !p.has(Packet::RETX)));
    assert_eq!(s.machine.sample(FlowId(0)).unwrap().in_flight_bytes, 1460 * (1 + early.len() as u64));
    // One packet has been in flight for one RTO.
    let mut sent = s.advance(at_us(1112));
    assert_eq!((sent.len(), sent[0].offset, sent[0].has(Packet::RETX)), (1, 0, true));
    // The RTO has doubled: the second packet is lost 2 ms after it left.
    sent.extend(s.advance(at_us(2111)));
    assert_eq!(sent.iter().filter(|p| p.has(Packet::RETX)).count(), 1);
    let next = s.advance(at_us(2125)).remove(0);
    assert_eq!((next.offset, next.has(Packet::RETX)), (1460, true));
    assert_eq!((first[0].offset, s.machine.flows.get(FlowId(0)).unwrap().tx.timeouts), (0, 2));
}

#[test]
fn packets_acknowledged_meanwhile_are_not_retransmitted() {
    let mut s = host(&[1460 * 3]);
    let mut sent = opened(&mut s, FULL);
    sent.extend(s.advance(at_us(130)));
    assert_eq!(sent.len(), 3);
    // The second packet arrived; the others count as lost at 1100 us and 1124 us, when the flow is
    // paused.
    answer(&mut s, &sent[1], Kind::ACK, SLOW);
    assert_eq!(s.advance(at_us(1099)), [], "everything is in flight: no probes");
    let probes = s.advance(at_us(3500));
    assert!(probes.len() > 3 && probes.iter().all(|p| p.kind == DET || p.kind == Kind::SYN));
    // A late ACK for the first packet, then the grant.
    answer(&mut s, &sent[0], Kind::ACK, SLOW);
    let data = answer(&mut s, probes.last().unwrap(), Kind::SYNACK, FULL);
    assert_eq!(data.iter().map(|p| (p.kind, p.offset, p.has(Packet::RETX))).collect::<Vec<_>>(), [(Kind::DATA, 2920, true)]);
    assert_eq!(s.advance(at_us(3600)), []);
}

#[test]
fn the_cumulative_point_acknowledges_too() {
    let mut s = host(&[1460 * 3]);
    let mut sent = opened(&mut s, FULL);
    sent.extend(s.advance(at_us(130)));
    let mut ack = Packet { offset: 2 * 1460, ..Packet::new(FlowId(0), Kind::ACK, 40) };
    let body = Answer { asr_bps: FULL, theta_bps: THETA, tx_time_ps: sent[1].sent_at.ps(), acked: 1460, ..Answer::default() };
    ack.set_ext(body, &mut s.ext);
    assert_eq!(s.packet(ack), []);
    assert_eq!(kinds(&answer(&mut s, &sent[2], Kind::ACK, FULL)), [Kind::FIN]);
}

#[test]
fn karn_and_probes_give_no_samples() {
    let mut s = host(&[14_600]);
    s.open(0);
    let again = s.advance(at_us(1000)).remove(0);
    s.advance(at_us(1050));
    let det = answer(&mut s, &again, Kind::SYNACK, SLOW).remove(0);
    assert_eq!(s.machine.sample(FlowId(0)).unwrap().srtt, Dur::ZERO);
    s.advance(at_us(1300));
    let data = answer(&mut s, &det, BOOST, FULL).remove(0);
    assert_eq!(s.machine.sample(FlowId(0)).unwrap().srtt, Dur::ZERO);
    assert_eq!(header(&s, &data).rtt_ps, 129_280_000);
    s.advance(at_us(1310));
    answer(&mut s, &data, Kind::ACK, FULL);
    assert_eq!(s.machine.sample(FlowId(0)).unwrap().srtt, Dur::from_us(10));
}

#[test]
fn a_syn_is_repeated_with_doubling_gaps_and_finally_requests_another_path() {
    let mut s = host(&[14_600]);
    s.open(0);
    let sent = s.advance(at_us(16_000));
    let seen: Vec<_> = sent.iter().map(|p| (p.sent_at, p.has(Packet::RETX), header(&s, p).bits & Header::REROUTE != 0)).collect();
    let expected = [(1, false), (3, false), (7, true), (15, false)].map(|(ms, reroute)| (at_us(1000 * ms), true, reroute));
    assert_eq!(seen, expected);
}

#[test]
fn three_timeouts_without_an_ack_ask_for_another_path() {
    let mut s = host(&[1460]);
    let data = opened(&mut s, FULL);
    // Lost at 1.1, 3.1 and 7.1 ms.
    let sent = s.advance(at_us(7_200));
    assert_eq!(kinds(&sent), [Kind::DATA, Kind::DATA, Kind::SYN, Kind::DATA]);
    assert_eq!(header(&s, &sent[2]).bits & Header::REROUTE, Header::REROUTE);
    assert_eq!(sent[3].sent_at, at_us(7_100));
    assert_eq!(kinds(&answer(&mut s, &data[0], Kind::ACK, FULL)), [Kind::FIN]);
}

#[test]
fn an_ack_resets_the_count_of_timeouts() {
    let mut s = host(&[1460 * 2]);
    opened(&mut s, FULL);
    let mut sent = s.advance(at_us(3_500));
    assert_eq!(s.machine.flows.get(FlowId(0)).unwrap().silent, 2);
    let first = sent.iter().position(|p| p.offset == 0).map(|i| sent.remove(i)).unwrap();
    answer(&mut s, &first, Kind::ACK, FULL);
    assert_eq!(s.machine.flows.get(FlowId(0)).unwrap().silent, 0);
    assert!(s.advance(at_us(9_000)).iter().all(|p| p.kind == Kind::DATA));
}

#[test]
fn a_packet_that_waits_for_the_nic_obeys_a_lower_rate_granted_meanwhile() {
    let mut s = host(&[146_000]);
    let first = opened(&mut s, FULL).remove(0);
    // The second packet is due, but the NIC is busy and does not poll; then the first one's ACK grants 0.81 Gb/s.
    let mut rng = base::Rng::stream(1, "nic", &[]);
    let mut ack = Packet::new(FlowId(0), Kind::ACK, 40);
    let body = Answer { asr_bps: 810_000_000, theta_bps: THETA, tx_time_ps: first.sent_at.ps(), ..Answer::default() };
    ack.set_ext(body, &mut s.ext);
    let now = at_us(113);
    let mut cx =
        Cx { now, host: base::HostId(0), flows: &s.flows, ext: &mut s.ext, rng: &mut rng, io: &mut s.io, table: &mut s.table };
    let due = cx.io.timers.pop_due(now).expect("the second packet is due");
    s.machine.on_timer(due, &mut cx);
    s.machine.on_packet(&ack, &mut cx);
    assert_eq!(s.machine.poll_transmit(&mut cx), None);
    // 1500 B at 0.81 Gb/s: 14.814815 us after the first.
    assert_eq!(s.advance(at_us(120))[0].sent_at, Time(114_814_815));
}

#[test]
fn a_flow_that_a_port_does_not_know_is_opened_again() {
    let mut s = host(&[14_600]);
    let det = opened(&mut s, SLOW).remove(0);
    let lost = Answer { asr_bps: SLOW, bits: UNKNOWN, ..Answer::default() };
    assert_eq!(answer_with(&mut s, &det, DETACK, lost), [], "the next probe is not due yet");
    let syn = s.advance(at_us(420)).remove(0);
    assert_eq!((syn.kind, syn.has(Packet::RETX)), (Kind::SYN, true));
    answer(&mut s, &syn, Kind::SYNACK, SLOW);
    assert_eq!(kinds(&s.advance(at_us(740))), [DET], "the port knows the flow now");
}

#[test]
fn a_fin_is_repeated_until_its_ack_or_given_up() {
    let mut s = host(&[1460]);
    let data = opened(&mut s, FULL);
    assert_eq!(kinds(&answer(&mut s, &data[0], Kind::ACK, FULL)), [Kind::FIN]);
    assert_eq!(answer(&mut s, &data[0], Kind::ACK, FULL), [], "a duplicate changes nothing");
    assert_eq!(kinds(&s.advance(at_us(1200))), [Kind::FIN]);
    s.packet(Packet::new(FlowId(0), Kind::FINACK, 40));
    assert!(s.table.get(FlowId(0)).closed && s.next_wake() > at_us(3_000));
    s.packet(Packet::new(FlowId(0), Kind::FINACK, 40));

    let mut s = host_with(&[1460], |p| p.fin_tries = 3);
    let data = opened(&mut s, FULL);
    answer(&mut s, &data[0], Kind::ACK, FULL);
    // At 1.1 and 3.1 ms; given up at 7.1 ms.
    assert_eq!(s.advance(at_us(7_099)).iter().map(|p| p.sent_at).collect::<Vec<_>>(), [at_us(1_100), at_us(3_100)]);
    assert!(!s.table.get(FlowId(0)).closed);
    assert_eq!(s.advance(at_us(100_000)), []);
    assert!(s.table.get(FlowId(0)).closed);
    assert_eq!(s.table.get(FlowId(0)).stats.timeouts, 2);
    assert_eq!(s.machine.sample(FlowId(0)), None);
}

#[test]
fn flows_due_at_once_take_turns() {
    let mut s = host(&[14_600, 14_600]);
    let syns = [s.open(0).remove(0), s.open(1).remove(0)];
    for syn in &syns {
        answer(&mut s, syn, Kind::SYNACK, FULL);
    }
    let flows: Vec<u32> = s.advance(at_us(50)).iter().map(|p| p.flow.0).collect();
    assert_eq!(flows, [0, 1, 0, 1, 0, 1, 0, 1]);
}

/// Returns what a receiver answers to a packet.
fn receive(s: &mut Script<Merp>, mut packet: Packet, header: Header) -> (Packet, Answer) {
    packet.sent_at = at_us(7);
    packet.set_ext(header, &mut s.ext);
    let mut sent = s.packet(packet);
    assert_eq!(sent.len(), 1);
    let ack = sent.remove(0);
    assert_ne!(ack.ext(), packet.ext(), "an ACK has a block of its own");
    (ack, ack.get_ext(&s.ext))
}

#[test]
fn a_receiver_copies_what_the_ports_wrote() {
    let mut s = host(&[14_600]).at_host(1);
    let header = Header { asr_bps: 5, expected_ps: 6, theta_bps: 7, pauses: 3 | 9 << 32, bits: UNKNOWN, ..Header::default() };
    let bare = |kind| Packet::new(FlowId(0), kind, 40);
    let copied = Answer { asr_bps: 5, expected_ps: 6, theta_bps: 7, tx_time_ps: 7_000_000, paused: 3, acked: 0, bits: UNKNOWN };
    let (ack, answer) = receive(&mut s, bare(Kind::SYN), header);
    assert_eq!((ack.kind, ack.prio, ack.wire_len, answer), (Kind::SYNACK, HIGH, 40, copied));
    let late = Packet { flags: Packet::RETX, ..Packet::data(FlowId(0), 1460, 1460, 40) };
    let (ack, answer) = receive(&mut s, late, header);
    assert_eq!((ack.kind, ack.prio, ack.offset, answer), (Kind::ACK, MIDDLE, 0, Answer { acked: 1460, ..copied }));
    assert!(ack.has(Packet::RETX));
    for _ in 0..2 {
        let (ack, answer) = receive(&mut s, Packet::data(FlowId(0), 0, 1460, 40), header);
        assert_eq!((ack.kind, ack.offset, answer), (Kind::ACK, 2920, copied), "duplicates are acknowledged again");
    }
    let (ack, answer) = receive(&mut s, bare(DET), header);
    assert_eq!((ack.kind, ack.prio, answer), (DETACK, LOW, copied));
    let sent = s.packet(bare(Kind::FIN));
    assert_eq!((sent.len(), sent[0].kind, sent[0].prio, sent[0].has(Packet::EXT)), (1, Kind::FINACK, MIDDLE, false));
}

#[test]
fn a_probe_granted_more_than_theta_is_answered_by_a_boost() {
    let mut s = host(&[14_600]).at_host(1);
    let det = Packet::new(FlowId(0), DET, 40);
    let kind = |s: &mut Script<Merp>, asr_bps| receive(s, det, Header { asr_bps, theta_bps: THETA, ..Header::default() }).0;
    assert_eq!(kind(&mut s, THETA).kind, DETACK);
    let boost = kind(&mut s, THETA + 1);
    assert_eq!((boost.kind, boost.prio, boost.wire_len), (BOOST, HIGH, 40));
}

#[test]
fn wire_spans_count_one_header_per_packet() {
    let flow = script::flow(0, 1460 * 2 + 10);
    let span = |offset, payload| wire_span(&Packet::data(FlowId(0), offset, payload, 40), &flow, 40);
    assert_eq!([span(0, 1460), span(1460, 1460), span(2920, 10)], [0..1500, 1500..3000, 3000..3050]);
    let flow = script::flow(0, 1460 * 2);
    assert_eq!(wire_span(&Packet::data(FlowId(0), 1460, 1460, 40), &flow, 40), 1500..3000);
}

#[test]
fn parameters_are_checked() {
    let problems = |change: fn(&mut Params)| {
        let mut params = Params::defaults();
        change(&mut params);
        check(&params, &script::env()).iter().map(|p| p.key).collect::<Vec<_>>()
    };
    assert!(problems(|_| ()).is_empty());
    assert_eq!(problems(|p| p.det_size = Bytes(39)), ["det_size"]);
    assert_eq!(problems(|p| p.det_size = Bytes(1501)), ["det_size"]);
    assert_eq!(problems(|p| (p.min_rto, p.max_rto) = (Auto::Set(Dur::from_ms(1)), Dur::from_us(999))), ["min_rto"]);
    assert_eq!(problems(|p| (p.syn_rto, p.max_rto) = (Auto::Set(Dur::from_ms(2)), Dur::from_ms(1))), ["syn_rto"]);
}

#[test]
fn no_policy_may_change_the_classes() {
    let system = Given::new(vec![GivenPart { slot: "policy", kind: "pias", values: Vec::new() }]);
    let problems = check(&Params::defaults(), &Env { given: &system, ..script::env() });
    assert_eq!(problems.iter().map(|problem| problem.key).collect::<Vec<_>>(), ["kind"]);
}

#[test]
fn theta_must_be_below_the_largest_grant() {
    let agent = |kind| GivenPart { slot: "agent", kind, values: vec![("alpha", "0.999".to_owned())] };
    let (merp, other) = (Given::new(vec![agent("merp")]), Given::new(vec![agent("other")]));
    let problems = |theta, given: &Given| {
        let params = Params { theta: RateOr::Rate(Rate(theta)), ..Params::defaults() };
        check(&params, &Env { given, ..script::env() })
    };
    assert_eq!(problems(998_999_999, &merp), []);
    let problem = problems(999_000_000, &merp).pop().expect("no grant exceeds theta");
    assert_eq!(problem.key, "theta");
    assert!(problem.message.contains("`999Mbps` is not below the largest grant, 999Mbps"), "{}", problem.message);
    assert_eq!(problems(999_000_000, &other), []);
}

#[test]
fn own_kinds_have_the_papers_names() {
    assert_eq!([DET, DETACK, BOOST].map(|k| k.name(&[(Kind::OWN, &META)])), ["det", "detack", "boost"]);
}

/// Answers the SYN of flow 0 with a SYNACK that says that the table of a port is full.
fn overflow(s: &mut Script<Merp>, syn: &Packet) -> Vec<Packet> {
    answer_with(s, syn, Kind::SYNACK, Answer { asr_bps: FULL, bits: STATELESS, ..Answer::default() })
}

#[test]
fn a_marked_syn_is_answered_with_a_marked_synack() {
    let mut s = host(&[14_600]).at_host(1);
    let mut syn = Packet::new(FlowId(0), Kind::SYN, 40);
    syn.set_ext(Header { bits: STATELESS | Header::REROUTE, ..Header::default() }, &mut s.ext);
    let ack = s.packet(syn);
    assert_eq!((kinds(&ack), ack[0].get_ext::<Answer>(&s.ext).bits), (vec![Kind::SYNACK], STATELESS));
}

#[test]
fn an_overflowed_flow_uses_tcp_in_its_own_class() {
    let mut s = host(&[14_600]);
    let syn = s.open(0).remove(0);
    s.advance(at_us(100));
    let sent = overflow(&mut s, &syn);
    // NewReno's initial window, without headers of MERP.
    assert_eq!(kinds(&sent), [Kind::DATA; 3]);
    assert!(sent.iter().all(|p| p.prio == OVERFLOW && !p.has(Packet::EXT)));
    // A second SYNACK changes nothing.
    assert_eq!(overflow(&mut s, &syn), []);
    // The receiver answers in the same class; its ACK opens the window.
    let mut receiver = host(&[14_600]).at_host(1);
    let ack = receiver.packet(sent[0]);
    assert_eq!((kinds(&ack), ack[0].prio, ack[0].offset, ack[0].has(Packet::EXT)), (vec![Kind::ACK], OVERFLOW, 1460, false));
    let more = s.packet(ack[0]);
    assert_eq!(
        more.iter().map(|p| (p.kind, p.prio, p.offset)).collect::<Vec<_>>(),
        [3, 4].map(|n| (Kind::DATA, OVERFLOW, n * 1460))
    );
    // No more answers arrive: TCP's timer retransmits, in its class, and no FIN ends the flow.
    let resent = s.advance(at_us(3000));
    assert_eq!((resent[0].offset, resent[0].prio, resent[0].has(Packet::RETX)), (1460, OVERFLOW, true));
    for acked in 2..=10 {
        let mut ack = ack[0];
        ack.offset = acked * 1460;
        s.packet(ack);
    }
    assert!(s.table.get(FlowId(0)).closed && s.advance(at_us(10_000_000)).is_empty());
}

#[test]
fn an_overflowed_open_flow_continues_where_it_was() {
    let mut s = host(&[14_600]);
    let first = opened(&mut s, FULL).remove(0);
    let more = s.advance(at_us(130));
    assert_eq!((first.offset, more.len()), (0, 2));
    // The first packet is acknowledged; the port does not know the flow.
    let header = Answer { asr_bps: SLOW, bits: UNKNOWN, ..Answer::default() };
    s.advance(at_us(1200));
    let mut ack = Packet::new(FlowId(0), Kind::ACK, 40);
    (ack.offset, ack.flags) = (1460, Packet::RETX);
    ack.set_ext(Answer { theta_bps: THETA, tx_time_ps: first.sent_at.ps() + 1, ..header }, &mut s.ext);
    s.packet(ack);
    // All packets are in flight; losses make the flow probe.
    let syn = s.advance(at_us(2300)).into_iter().find(|p| p.kind == Kind::SYN).expect("it opens the flow again");
    let sent = overflow(&mut s, &syn);
    let seen: Vec<(u64, u8, bool)> = sent.iter().map(|p| (p.offset / 1460, p.prio, p.has(Packet::RETX))).collect();
    assert_eq!(seen[0], (1, OVERFLOW, true));
    // TCP accepts an ACK of MERP's packets in flight: it knows all their bytes.
    let mut tcp = Packet { prio: OVERFLOW, offset: 3 * 1460, ..Packet::new(FlowId(0), Kind::ACK, 40) };
    crate::kit::tcp::Echo::default().write(&mut tcp);
    assert!(s.packet(tcp).iter().all(|p| p.prio == OVERFLOW && p.offset >= 3 * 1460));
}
