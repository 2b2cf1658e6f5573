use super::*;
use crate::kit::pipe::{Fate, Pipe};
use crate::kit::script::{self, Script};
use base::params::Params as _;

const GBPS: u64 = 1_000_000_000;
/// The unloaded round trip of the tests' flows.
const RTT: Dur = Dur::from_ns(129_280);
/// A full packet at 1 Gb/s.
const FULL: Dur = Dur::from_us(12);

fn at_us(us: u64) -> Time {
    Time::ZERO + Dur::from_us(us)
}

fn host_with(flows: Vec<Flow>, change: impl FnOnce(&mut Params)) -> Script<Pdq> {
    let mut params = Params::defaults();
    change(&mut params);
    Script::new(Pdq::new(&params, &script::env()), flows)
}

/// One flow of this many full packets, with its deadline in microseconds.
fn host(packets: u64, deadline_us: Option<u64>) -> Script<Pdq> {
    host_with(vec![Flow { deadline: deadline_us.map(at_us), ..script::flow(0, packets * 1460) }], |_| ())
}

fn header(s: &Script<Pdq>, packet: &Packet) -> Header {
    packet.get_ext(&s.ext)
}

fn kinds(packets: &[Packet]) -> Vec<Kind> {
    packets.iter().map(|p| p.kind).collect()
}

/// Answers `to` with its header after `change`; all bytes below `next` have arrived. Returns the
/// packets that the host sends.
fn answer(s: &mut Script<Pdq>, to: &Packet, next: u64, change: impl FnOnce(&mut Header)) -> Vec<Packet> {
    let kind = match to.kind {
        Kind::SYN => Kind::SYNACK,
        Kind::DATA => Kind::ACK,
        _ => Kind::PROBEACK,
    };
    let mut answer = Header { tx_time_ps: to.sent_at.ps(), acked: to.offset, ..header(s, to) };
    answer.paused_by = 0;
    change(&mut answer);
    let mut ack = Packet { offset: next * 1460, ..Packet::new(to.flow, kind, 40) };
    ack.set_ext(answer, &mut s.ext);
    s.packet(ack)
}

fn pause(header: &mut Header) {
    header.pause(LinkId(6));
}

/// Opens flow 0 at time 0 and answers its SYN after 100 us.
fn opened(s: &mut Script<Pdq>, change: impl FnOnce(&mut Header)) -> Vec<Packet> {
    let syn = s.open(0).remove(0);
    s.advance(at_us(100));
    answer(s, &syn, 0, change)
}

#[test]
fn a_syn_requests_the_rate_of_the_nic() {
    let mut s = host(10, None);
    let sent = s.open(0);
    assert_eq!(kinds(&sent), [Kind::SYN]);
    assert_eq!((sent[0].wire_len, sent[0].payload), (40, 0));
    let h = header(&s, &sent[0]);
    assert_eq!((h.rate_bps, h.paused_by, h.probe_rtts), (GBPS, 0, 0));
    // Ten full packets at 1 Gb/s.
    assert_eq!((h.expected_ps, h.rtt_ps), ((FULL * 10).ps(), RTT.ps()));
}

#[test]
fn without_syn_probe_the_first_probe_requests_a_rate() {
    let mut s = host_with(vec![script::flow(0, 14_600)], |p| p.syn_probe = false);
    let syn = s.open(0).remove(0);
    assert!(!syn.has(Packet::EXT));
    s.advance(at_us(100));
    let sent = s.packet(Packet::new(FlowId(0), Kind::SYNACK, 40));
    assert_eq!(kinds(&sent), [Kind::PROBE]);
    // The SYNACK gave a round-trip sample.
    assert_eq!(header(&s, &sent[0]).rtt_ps, Dur::from_us(100).ps());
    let mut receiver = host_with(vec![script::flow(0, 14_600)], |p| p.syn_probe = false).at_host(1);
    let reply = receiver.packet(syn).remove(0);
    assert_eq!((reply.kind, reply.has(Packet::EXT)), (Kind::SYNACK, false));
}

#[test]
fn data_is_paced_at_the_allotted_rate() {
    let mut s = host(10, None);
    let sent = opened(&mut s, |h| h.rate_bps = GBPS / 2);
    assert_eq!(kinds(&sent), [Kind::DATA]);
    assert_eq!((sent[0].offset, sent[0].payload, sent[0].wire_len), (0, 1460, 1500));
    let sent = s.advance(at_us(148));
    assert_eq!(sent.iter().map(|p| p.sent_at).collect::<Vec<_>>(), [at_us(124), at_us(148)]);
    let h = header(&s, &sent[1]);
    // Two packets have left; the packet that leaves now counts.
    assert_eq!((h.rate_bps, h.expected_ps, h.rtt_ps), (GBPS, (FULL * 8).ps(), Dur::from_us(100).ps()));
    // The rate doubles: the next packet is due 12 us after the previous one.
    s.advance(at_us(150));
    assert_eq!(answer(&mut s, &sent[0], 1, |h| h.rate_bps = GBPS), []);
    assert_eq!(s.advance(at_us(170)).iter().map(|p| p.sent_at).collect::<Vec<_>>(), [at_us(160)]);
}

/// The last packet of a flow may be short, and lost packets are to be retransmitted.
#[test]
fn the_expected_time_is_that_of_the_packets_to_be_sent() {
    let mut s = host_with(vec![script::flow(0, 2 * 1460 + 85)], |_| ());
    let syn = s.open(0).remove(0);
    assert_eq!(header(&s, &syn).expected_ps, (FULL * 2 + Dur::from_us(1)).ps());
    s.advance(at_us(100));
    answer(&mut s, &syn, 0, |_| ());
    let sent = s.advance(at_us(200));
    assert_eq!(header(&s, &sent[1]).expected_ps, Dur::from_us(1).ps(), "only the last packet");
    // The first packet is lost after 1 ms; then all three, 2 ms after the second packet left.
    let again = s.advance(at_us(3000));
    assert!(again.iter().all(|p| p.has(Packet::RETX)));
    let waits: Vec<u64> = again.iter().map(|p| header(&s, p).expected_ps / 1_000_000).collect();
    assert_eq!((again[1].sent_at, waits), (at_us(2112), vec![12, 25, 13, 12]));
}

#[test]
fn a_paused_flow_probes_and_names_the_port_that_pauses_it() {
    let mut s = host(10, None);
    // One round trip after the SYN, which took 100 us: that is now.
    let mut sent = opened(&mut s, pause);
    assert_eq!(kinds(&sent), [Kind::PROBE]);
    let probe = sent.remove(0);
    assert_eq!((probe.wire_len, probe.payload, probe.sent_at), (40, 0, at_us(100)));
    let h = header(&s, &probe);
    assert_eq!((h.paused_by, h.rate_bps), (7, GBPS));
    assert!(h.is_paused_by_other_port(LinkId(5)) && !h.is_paused_by_other_port(LinkId(6)));
    // One probe at a time.
    assert_eq!(s.advance(at_us(700)), []);
    assert_eq!(kinds(&answer(&mut s, &probe, 0, |_| ())), [Kind::DATA], "released");
}

#[test]
fn probes_are_spaced_as_ports_require() {
    for (rtts, us) in [(0, 100), (800_000_000, 100), (1_800_000_000, 180), (5_000_000_000, 500)] {
        let mut s = host(10, None);
        let first = opened(&mut s, |h| {
            pause(h);
            h.probe_rtts = rtts;
        });
        let first = first.into_iter().chain(s.advance(at_us(900))).next().unwrap();
        assert_eq!((first.kind, first.sent_at), (Kind::PROBE, at_us(us.max(100))));
    }
}

#[test]
fn a_lost_probe_is_repeated_with_back_off() {
    let mut s = host(10, None);
    let mut probes = opened(&mut s, pause);
    probes.extend(s.advance(at_us(10_000)));
    // The smallest timeout is 1 ms.
    let times: Vec<u64> = probes.iter().map(|p| p.sent_at.ps() / 1_000_000).collect();
    assert_eq!(times, [100, 1100, 3100, 7100]);
    // The answer to an earlier probe does not answer the last one.
    answer(&mut s, &probes[2], 0, pause);
    assert_eq!(s.machine.flows.get(FlowId(0)).unwrap().probing, Some(at_us(7100)));
    answer(&mut s, &probes[3], 0, pause);
    assert_eq!(s.machine.flows.get(FlowId(0)).unwrap().probing, Some(at_us(10_000)), "the next probe left at once");
}

#[test]
fn a_flow_with_a_very_low_rate_probes_as_if_it_were_paused() {
    let mut s = host(10, None);
    // 12 ms a packet.
    let first = opened(&mut s, |h| h.rate_bps = 1_000_000);
    assert_eq!(kinds(&first), [Kind::DATA]);
    let sent = s.advance(at_us(900));
    assert_eq!((kinds(&sent), sent[0].sent_at), (vec![Kind::PROBE], at_us(200)));
    assert_eq!(kinds(&answer(&mut s, &sent[0], 0, |h| h.rate_bps = GBPS)), [Kind::DATA]);
}

#[test]
fn a_pause_stops_data_at_once() {
    let mut s = host(10, None);
    let first = opened(&mut s, |_| ()).remove(0);
    s.advance(at_us(160));
    assert_eq!(answer(&mut s, &first, 1, pause), []);
    // The last DATA left at 160 us and requested a rate.
    let sent = s.advance(at_us(400));
    assert!(kinds(&sent) == [Kind::PROBE] && sent[0].sent_at > at_us(200), "{sent:?}");
}

#[test]
fn an_overtaken_answer_is_not_applied() {
    let mut s = host(10, None);
    let first = opened(&mut s, |_| ()).remove(0);
    let second = s.advance(at_us(112)).remove(0);
    s.advance(at_us(120));
    answer(&mut s, &second, 0, |_| ());
    answer(&mut s, &first, 2, pause);
    assert_eq!(s.advance(at_us(124)).len(), 1, "still sending");
}

#[test]
fn the_receiver_copies_the_header() {
    let mut s = host(2, None).at_host(1);
    for (kind, reply) in [(Kind::SYN, Kind::SYNACK), (Kind::PROBE, Kind::PROBEACK), (Kind::DATA, Kind::ACK)] {
        let mut packet =
            if kind == Kind::DATA { Packet::data(FlowId(0), 1460, 1460, 40) } else { Packet::new(FlowId(0), kind, 40) };
        packet.sent_at = at_us(5);
        let sent = Header { rate_bps: 77, paused_by: 0, expected_ps: 8, rtt_ps: 9, probe_rtts: 10, ..Header::default() };
        packet.set_ext(sent, &mut s.ext);
        let ack = s.packet(packet).remove(0);
        assert_eq!((ack.kind, ack.wire_len, ack.offset), (reply, 40, 0));
        let acked = if kind == Kind::DATA { 1460 } else { 0 };
        assert_eq!(header(&s, &ack), Header { tx_time_ps: at_us(5).ps(), acked, ..sent });
    }
}

#[test]
fn a_pause_that_no_port_on_the_path_confirms_is_cleared() {
    let mut s = host(2, None).at_host(1);
    let mut reply = |rate_bps| {
        let mut probe = Packet::new(FlowId(0), Kind::PROBE, 40);
        probe.set_ext(Header { rate_bps, paused_by: 3, ..Header::default() }, &mut s.ext);
        let ack = s.packet(probe).remove(0);
        let answer = header(&s, &ack);
        (answer.rate_bps, answer.paused_by)
    };
    assert_eq!((reply(0), reply(GBPS)), ((0, 3), (0, 0)), "nor does it grant a rate");
    // The next probe requests a rate from every port again.
    let mut s = host(2, None);
    let first = opened(&mut s, |h| h.rate_bps = 0);
    assert_eq!((first[0].kind, header(&s, &first[0]).paused_by), (Kind::PROBE, 0));
}

#[test]
fn the_last_ack_ends_the_flow_with_a_fin() {
    let mut s = host(1, None);
    let data = opened(&mut s, |_| ()).remove(0);
    let sent = answer(&mut s, &data, 1, |_| ());
    assert_eq!(kinds(&sent), [Kind::FIN]);
    assert!(s.table.get(FlowId(0)).closed && !s.table.get(FlowId(0)).terminated);
    assert_eq!(s.machine.sample(FlowId(0)), None);
}

#[test]
fn syns_are_repeated() {
    let mut s = host(1, None);
    s.open(0);
    let again = s.advance(at_us(3500));
    let times: Vec<u64> = again.iter().map(|p| p.sent_at.ps() / 1_000_000).collect();
    assert_eq!((kinds(&again), times), (vec![Kind::SYN; 2], vec![1000, 3000]));
    assert!(again.iter().all(|p| p.has(Packet::RETX)));
}

/// Early termination. Ten packets take 120 us.
#[test]
fn a_flow_that_cannot_meet_its_deadline_gives_up() {
    // The deadline cannot be met from the start: nothing is sent.
    let mut s = host(10, Some(119));
    assert_eq!(s.open(0), []);
    assert!(s.table.get(FlowId(0)).terminated && s.table.all_done());
    // With 120 us the deadline can just be met, not a moment later.
    let mut s = host(10, Some(120));
    assert_eq!(kinds(&s.open(0)), [Kind::SYN]);
    assert_eq!(kinds(&s.advance(Time(1))), [Kind::FIN], "it clears the ports");
    // Without early termination the flow goes on.
    let late = Flow { deadline: Some(at_us(5)), ..script::flow(0, 14_600) };
    assert_eq!(kinds(&host_with(vec![late], |p| p.early_termination = false).open(0)), [Kind::SYN]);
}

#[test]
fn a_paused_flow_gives_up_a_round_trip_before_its_deadline() {
    let mut s = host(2, Some(1000));
    opened(&mut s, pause);
    // The measured round trip is 100 us; two packets would take 24 us.
    s.advance(at_us(900));
    assert!(!s.table.get(FlowId(0)).terminated);
    assert_eq!(kinds(&s.advance(at_us(901))), [Kind::FIN]);
    assert!(s.table.get(FlowId(0)).terminated);
}

#[test]
fn a_flow_that_has_sent_all_bytes_waits_for_its_acks_until_the_deadline() {
    let mut s = host(2, Some(1000));
    let sent = opened(&mut s, |_| ());
    let more = s.advance(at_us(200));
    assert_eq!((sent.len(), more.len()), (1, 1));
    // Paused with no packets left to send: all are in flight.
    answer(&mut s, &sent[0], 1, pause);
    assert_eq!(s.advance(at_us(1000)), []);
    assert!(!s.table.get(FlowId(0)).closed);
    assert_eq!(kinds(&s.advance(at_us(1001))), [Kind::FIN]);
    // Packets in flight may still arrive.
    s.table.deliver(&s.flows[0].clone(), 0, 1460, at_us(1002));
    assert!(s.table.all_done());
    s.table.deliver(&s.flows[0].clone(), 1460, 1460, at_us(1003));
    assert!(s.table.all_done() && s.table.unfinished() == 0);
}

#[test]
fn flows_of_a_host_send_at_their_own_rates() {
    let mut s = host_with(vec![script::flow(0, 14_600), script::flow(1, 14_600)], |_| ());
    let syns = [s.open(0).remove(0), s.open(1).remove(0)];
    s.advance(at_us(100));
    answer(&mut s, &syns[0], 0, |h| h.rate_bps = GBPS / 2);
    answer(&mut s, &syns[1], 0, |h| h.rate_bps = GBPS / 4);
    let sent = s.advance(at_us(195));
    let times = |flow| sent.iter().filter(|p| p.flow == FlowId(flow)).map(|p| p.sent_at.ps() / 1_000_000).collect::<Vec<_>>();
    assert_eq!((times(0), times(1)), (vec![124, 148, 172], vec![148]));
}

#[test]
fn everything_arrives_through_a_pipe_that_loses_doubles_and_delays() {
    let flows = vec![script::flow(0, 100_000), script::flow(1, 1), script::flow(2, 1460)];
    let machine = || Pdq::new(&Params::defaults(), &script::env());
    let mut pipe = Pipe::new(Script::new(machine(), flows.clone()), Script::new(machine(), flows), Dur::from_us(60));
    let mut n = 0;
    pipe.run(|_| {
        n += 1;
        match n % 7 {
            0 => Fate::Drop,
            3 => Fate::Late(Dur::from_us(90)),
            5 => Fate::Twice,
            _ => Fate::Pass,
        }
    });
}
