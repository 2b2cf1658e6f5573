use super::*;
use crate::flow::FlowStats;
use crate::kit::pipe::{Fate, Pipe, both_ways, fates, patterns};
use crate::kit::script::{self, Script};
use base::Time;
use base::given::{Given, GivenPart, Offered, Offers};
use base::params::{Param as _, Params as _, Raw};
use proptest::prelude::*;

const MSS: u64 = 1460;
/// A bandwidth-delay product at 10 Gb/s: six full packets and 940 bytes.
const RTT: u64 = 9700;

fn list(text: &str) -> Auto<Cutoffs> {
    Auto::parse(&Raw::Str(text.to_owned())).expect("cutoffs")
}

/// Levels 0 and 1 up to 2 KB and 20 KB, level 2 above, and five scheduled levels; a RESEND after
/// ten round trips without packets.
fn params() -> Params {
    let resend_after = Auto::Set(Dur::from_ns(1_292_800));
    Params { rtt_bytes: Auto::Set(Bytes(RTT)), cutoffs: list("2KB, 20KB"), resend_after, ..Params::defaults() }
}

fn host_with(params: &Params, sizes: &[u64]) -> Script<Homa> {
    let flows = sizes.iter().zip(0..).map(|(size, id)| script::flow(id, *size)).collect();
    let mut host = Script::new(Homa::new(params, &script::env()), flows);
    host.table.keep_counters(META.counters.len());
    host
}

fn host(sizes: &[u64]) -> Script<Homa> {
    host_with(&params(), sizes)
}

/// A receiver whose messages come from different hosts.
fn receiver(params: &Params, sizes: &[u64]) -> Script<Homa> {
    let mut host = host_with(params, sizes).at_host(1);
    for (flow, src) in host.flows.iter_mut().zip(2..) {
        flow.src = HostId(src);
    }
    host
}

fn at(ns: u64) -> Time {
    Time::ZERO + Dur::from_ns(ns)
}

fn data(flow: u32, offset: u64, payload: u64) -> Packet {
    Packet::data(FlowId(flow), offset, payload as u16, 40)
}

/// Delivers all unscheduled data of a message; returns what the receiver sends.
fn unscheduled(r: &mut Script<Homa>, flow: u32) -> Vec<Packet> {
    let all = r.flows[flow as usize].size_bytes.min(RTT);
    (0..all).step_by(MSS as usize).flat_map(|from| r.packet(data(flow, from, MSS.min(all - from)))).collect()
}

fn granted(flow: u32, to: u64, level: u8) -> Packet {
    let mut packet = Packet { offset: to, ..Packet::new(FlowId(flow), GRANT, 40) };
    packet.set(Grant { level, received: to.saturating_sub(RTT) });
    packet
}

fn resend(flow: u32, from: u64, end: u64) -> Packet {
    let mut packet = Packet { offset: from, ..Packet::new(FlowId(flow), RESEND, 40) };
    packet.set(Resend { end, level: 0 });
    packet
}

/// Flow, offset, payload and level of the data that was sent.
fn sent(packets: &[Packet]) -> Vec<(u32, u64, u16, u8)> {
    packets.iter().filter(|p| p.kind == Kind::DATA).map(|p| (p.flow.0, p.offset, p.payload, p.prio)).collect()
}

/// Flow, granted byte and level of the GRANTs.
fn grants(packets: &[Packet]) -> Vec<(u32, u64, u8)> {
    let grants = packets.iter().filter(|p| p.kind == GRANT);
    grants.map(|p| (p.flow.0, p.offset, p.get::<Grant>().level)).collect()
}

fn kinds(packets: &[Packet]) -> Vec<(Kind, u64)> {
    packets.iter().map(|p| (p.kind, p.offset)).collect()
}

#[test]
fn a_short_message_goes_at_once_and_its_ack_closes_it() {
    let mut h = host(&[2 * MSS + 1, 2000, 30_000]);
    assert_eq!(sent(&h.open(0)), [(0, 0, 1460, 1), (0, 1460, 1460, 1), (0, 2920, 1, 1)]);
    assert_eq!(sent(&h.open(1))[1], (1, 1460, 540, 0));
    assert_eq!(h.open(2)[0].prio, 2);
    let mut r = host(&[2 * MSS + 1]).at_host(1);
    assert_eq!([1, 0].map(|n| r.packet(data(0, n * MSS, MSS))), [vec![], vec![]]);
    let acks = r.packet(data(0, 2 * MSS, 1));
    assert_eq!((kinds(&acks), acks[0].wire_len, acks[0].prio), (vec![(Kind::ACK, 2921)], 40, 0));
    assert!(r.machine.inbound.is_empty() && !r.is_armed(0, MISSING));
    h.packet(acks[0]);
    assert!(h.table.get(FlowId(0)).closed && !h.is_armed(0, ASK));
    assert_eq!(h.packet(acks[0]), []);
    // Late data of a complete message is acknowledged again.
    assert_eq!(kinds(&r.packet(data(0, 0, MSS))), [(Kind::ACK, 2921)]);
}

#[test]
fn the_rest_of_a_long_message_goes_as_it_is_granted() {
    let mut h = host(&[20_000]);
    let first = h.open(0);
    assert_eq!((first.len(), sent(&first)[6]), (7, (0, 8760, 940, 1)));
    assert_eq!(sent(&h.packet(granted(0, 11_160, 6))), [(0, 9700, 1460, 6)]);
    // Of two GRANTs, the one with the larger offset holds, also if it arrived first.
    h.nic_busy = true;
    h.packet(granted(0, 14_080, 4));
    h.packet(granted(0, 12_620, 7));
    h.nic_busy = false;
    assert_eq!(sent(&h.sent()), [(0, 11_160, 1460, 4), (0, 12_620, 1460, 4)]);
    let last = sent(&h.packet(granted(0, 20_000, 7)));
    assert_eq!((last.len(), last[4]), (5, (0, 19_920, 80, 7)));
    assert_eq!(h.table.counts(FlowId(0))[UNSCHEDULED_BYTES..], [RTT, 20_000 - RTT]);
    assert_eq!(h.machine.sample(FlowId(0)).map(|s| s.in_flight_bytes), Some(RTT));
}

#[test]
fn the_message_with_the_fewest_bytes_left_goes_first() {
    let mut h = host(&[20_000, 9000, 4000, 4000]);
    h.nic_busy = true;
    (0..4).for_each(|flow| drop(h.open(flow)));
    h.nic_busy = false;
    let order: Vec<u32> = h.sent().iter().map(|p| p.flow.0).collect();
    assert_eq!(order, [[2; 3].as_slice(), &[3; 3], &[1; 7], &[0; 7]].concat());
    // 10 300 bytes are left of the first message, as of a fifth one that has sent nothing; with a
    // GRANT it goes before longer messages only.
    h.nic_busy = true;
    h.packet(granted(0, 11_160, 6));
    h.packet(resend(1, 0, 1460));
    h.nic_busy = false;
    assert_eq!(sent(&h.sent()), [(1, 0, 1460, 0), (0, 9700, 1460, 6)]);
}

#[test]
fn levels_can_follow_the_bytes_left() {
    let remaining = Params { unsched_prio: UnschedPrio::Remaining, cutoffs: list("2KB, 5KB, 20KB"), ..params() };
    let levels: Vec<u8> = host_with(&remaining, &[8000]).open(0).iter().map(|p| p.prio).collect();
    assert_eq!(levels, [2, 2, 2, 1, 1, 0]);
}

/// The window is `rtt_bytes`, and GRANTs are a packet time apart, which is 12 us here.
#[test]
fn grants_follow_arrivals_and_are_paced() {
    let mut r = receiver(&params(), &[30_000]);
    assert_eq!(grants(&r.packet(data(0, 0, MSS))), [(0, 11_160, 7)]);
    // The second GRANT is possible at once and waits.
    r.now = at(1_000);
    assert_eq!(r.packet(data(0, MSS, MSS)), []);
    r.now = at(5_000);
    assert_eq!(r.packet(data(0, 2 * MSS, 100)), []);
    let next = r.advance(at(24_000));
    assert_eq!((grants(&next), next[0].sent_at), (vec![(0, 12_620, 7), (0, 12_720, 7)], at(12_000)));
    assert_eq!(next[1].sent_at, at(24_000));
    assert_eq!(next[1].get::<Grant>().received, 3020);
    // With a full window, the receiver waits for granted bytes to arrive.
    assert_eq!(r.table.counts(FlowId(0))[..3], [3, 0, 3020]);
    assert_eq!(r.advance(at(5_000 + 1_292_799)), []);
    assert_eq!(kinds(&r.advance(at(5_000 + 1_292_800))), [(RESEND, 3020)]);
}

/// The vector of section 3.4: of levels 5 to 7, two active messages have the lower ones, and a
/// shorter one that comes next has the highest.
#[test]
fn active_messages_have_the_lowest_of_the_scheduled_levels() {
    let three = Params { scheduled_levels: Auto::Set(3), cutoffs: list("20KB"), ..params() };
    let mut r = receiver(&three, &[RTT + 4000, RTT + 20_000, RTT + 2000, RTT + 30_000]);
    assert_eq!(grants(&r.packet(data(1, 0, MSS))), [(1, RTT + 1460, 7)]);
    assert_eq!(grants(&r.packet(data(0, 0, MSS))), [(0, RTT + 1460, 6)]);
    r.now = at(20_000);
    let two: Vec<_> = [0, 1].into_iter().flat_map(|flow| grants(&r.packet(data(flow, MSS, MSS)))).collect();
    assert_eq!(two, [(0, RTT + 2920, 6), (1, RTT + 2920, 7)]);
    r.now = at(40_000);
    // The first has 1080 bytes left, fewer than the third.
    let three: Vec<_> = [2, 0, 1].into_iter().flat_map(|flow| grants(&r.packet(data(flow, 2 * MSS, MSS)))).collect();
    assert_eq!(three, [(2, RTT + 1460, 6), (0, RTT + 4000, 6), (1, RTT + 4380, 7)]);
    assert_eq!(r.machine.inbound.levels_of(&[4000, 20_000]), [6, 7]);
    assert_eq!(r.machine.inbound.levels_of(&[2000, 4000, 20_000]), [5, 6, 7]);
    assert_eq!(r.machine.inbound.levels_of(&[1, 2, 3, 4, 5]), [5, 6, 7, 7, 7]);
}

#[test]
fn of_each_sender_one_message_is_granted_and_of_these_no_more_than_the_degree() {
    let one = Params { overcommitment: Auto::Set(1), ..params() };
    let mut r = receiver(&one, &[RTT + 2000, RTT + 6000]);
    let first: Vec<_> = [1, 0].into_iter().flat_map(|flow| unscheduled(&mut r, flow)).collect();
    // The longer message was first, and keeps its grants.
    assert_eq!(grants(&first), [(1, RTT + 1460, 7), (0, RTT + 1460, 7)]);
    // When the shorter message is fully granted, the longer one continues.
    assert_eq!(grants(&r.advance(at(12_000))), [(0, RTT + 2000, 7), (1, RTT + 2920, 7)]);
    assert_eq!(grants(&r.advance(at(100_000))), [(1, RTT + 4380, 7), (1, RTT + 5840, 7), (1, RTT + 6000, 7)]);

    // From one host, the second message waits for the first at any degree, and the GRANTs of both
    // are a packet time apart.
    let mut r = host(&[RTT + 2000, RTT + 3000]).at_host(1);
    let now: Vec<_> = [0, 1].into_iter().flat_map(|flow| unscheduled(&mut r, flow)).collect();
    assert_eq!(grants(&now), [(0, RTT + 1460, 7)]);
    let later = r.advance(at(100_000));
    assert_eq!(grants(&later), [(0, RTT + 2000, 7), (1, RTT + 1460, 7), (1, RTT + 2920, 7), (1, RTT + 3000, 7)]);
    let times: Vec<_> = later.iter().map(|p| p.sent_at.0 / 1_000_000).collect();
    assert_eq!(times, [12, 24, 36, 48]);
}

#[test]
fn the_end_of_a_message_can_be_boosted() {
    let boost = Params { tail_boost: Bytes(2000), ..params() };
    let mut r = receiver(&boost, &[RTT + 2000 + MSS]);
    unscheduled(&mut r, 0);
    let levels: Vec<u8> = grants(&r.advance(at(100_000))).iter().map(|grant| grant.2).collect();
    assert_eq!(levels, [0, 0]);
    assert_eq!(r.machine.inbound.levels_of(&[2000]), [0]);
    assert_eq!(r.machine.inbound.levels_of(&[2001]), [7]);
}

/// A tenth of the bytes goes to the oldest message, although a shorter one could take all.
#[test]
fn the_oldest_message_has_a_share() {
    for (share, least, most) in [(0, 1, 1), (100_000_000, 20, 24)] {
        let one = Params { overcommitment: Auto::Set(1), oldest_share: Fraction(share), ..params() };
        let mut r = receiver(&one, &[900_000, 400_000]);
        let (mut oldest, mut arrived) = (grants(&unscheduled(&mut r, 0)), RTT);
        unscheduled(&mut r, 1);
        for packet in 0..200 {
            r.now = r.now.after(Dur::from_us(20));
            let mut new = r.packet(data(1, RTT + packet * MSS, MSS));
            // The granted bytes of the oldest message arrive.
            while arrived + MSS <= oldest.last().map_or(0, |grant| grant.1) {
                new.extend(r.packet(data(0, arrived, MSS)));
                arrived += MSS;
            }
            oldest.extend(grants(&new).iter().filter(|grant| grant.0 == 0));
        }
        assert!((least..=most).contains(&oldest.len()), "{share}: {}", oldest.len());
        // While the shorter message is active, it has the highest scheduled level.
        assert!(oldest[0].2 == 7 && oldest[1..].iter().all(|grant| grant.2 == 3));
    }
}

#[test]
fn missing_bytes_are_asked_for_until_they_come() {
    let mut r = receiver(&params(), &[30_000]);
    r.packet(data(0, 0, MSS));
    r.packet(data(0, 3 * MSS, MSS));
    r.advance(at(1_000_000));
    let asked = r.advance(at(3_000_000));
    let range = |p: &Packet| (p.kind, p.offset, p.get::<Resend>().end, p.sent_at);
    let times = [1_292_800, 2 * 1_292_800];
    assert_eq!(asked.iter().map(range).collect::<Vec<_>>(), times.map(|ns| (RESEND, 1460, 4380, at(ns))));
    // A BUSY restarts the timer.
    r.packet(Packet::new(FlowId(0), BUSY, 40));
    assert_eq!(r.advance(at(3_000_000 + 1_292_799)), []);
    assert_eq!(r.advance(at(3_000_000 + 1_292_800)).len(), 1);
    // All granted bytes have arrived: ungranted bytes are not missing. Six full packets and 940
    // bytes were unscheduled.
    let mut all = unscheduled(&mut r, 0);
    all.extend(r.advance(at(4_400_000)));
    let to = grants(&all).last().expect("more was granted").1;
    assert_eq!(r.machine.inbound.pending(0), to - RTT);
    assert_eq!(r.table.counts(FlowId(0))[1], 3);
    // The sender does not have the message: the receiver sends no more RESENDs.
    r.packet(Packet::new(FlowId(0), UNKNOWN, 40));
    assert_eq!((r.advance(at(1_000_000_000)), r.machine.inbound.is_empty()), (vec![], true));
}

/// "A few ms" (section 3.7), and never less than ten round trips.
#[test]
fn silence_lasts_five_milliseconds_by_default() {
    for (rtt_us, ms) in [(10, 5), (129, 5), (500, 5), (600, 6)] {
        let env = Env { max_rtt: Dur::from_us(rtt_us), ..script::env() };
        assert_eq!(Homa::new(&Params::defaults(), &env).resend_after, Dur::from_ms(ms));
    }
}

#[test]
fn bytes_that_are_not_granted_are_not_missing() {
    let one = Params { overcommitment: Auto::Set(1), ..params() };
    let mut r = receiver(&one, &[RTT + 2000, RTT + 3000]);
    unscheduled(&mut r, 0);
    unscheduled(&mut r, 1);
    r.packet(data(0, RTT, 1000));
    assert!(!r.is_armed(1, MISSING) && r.is_armed(0, MISSING));
}

#[test]
fn a_resend_is_answered_by_data_or_busy_or_unknown() {
    let mut h = host(&[20_000, 3000]);
    h.open(0);
    h.open(1);
    let again = h.packet(resend(0, 1460, 4380));
    assert_eq!(sent(&again), [(0, 1460, 1460, 0), (0, 2920, 1460, 0)]);
    assert!(again.iter().all(|p| p.has(Packet::RETX)));
    assert_eq!(h.table.get(FlowId(0)).stats, FlowStats { timeouts: 1, fast_retransmits: 0 });
    // A RESEND grants bytes that were never sent, and counts as no timeout.
    assert_eq!(sent(&h.packet(resend(0, 9700, 11_160))), [(0, 9700, 1460, 0)]);
    assert_eq!(h.table.get(FlowId(0)).stats.timeouts, 1);
    // Another message goes first: the bytes come later. If they are requested twice, they are sent
    // once.
    h.nic_busy = true;
    h.packet(resend(1, 0, 1460));
    assert_eq!(kinds(&h.packet(resend(0, 0, 1460))), [(BUSY, 0)]);
    assert_eq!(kinds(&h.packet(resend(0, 0, 1460))), [(BUSY, 0)]);
    h.nic_busy = false;
    assert_eq!(sent(&h.sent()), [(1, 0, 1460, 0), (0, 0, 1460, 0)]);
    assert_eq!((h.table.counts(FlowId(0))[BUSIES], h.table.get(FlowId(0)).stats.timeouts), (2, 2));
    h.give_up(0);
    assert_eq!(kinds(&h.packet(resend(0, 0, 1460))), [(UNKNOWN, 0)]);
}

#[test]
fn a_sender_without_answer_retransmits_its_first_packet() {
    let mut h = host(&[20_000]);
    h.open(0);
    assert_eq!(h.advance(at(2_585_599)), []);
    let again = h.advance(at(2_585_600));
    assert_eq!((sent(&again), again[0].has(Packet::RETX)), (vec![(0, 0, 1460, 1)], true));
    // After a GRANT the receiver is responsible, until all bytes are sent.
    h.packet(granted(0, 11_160, 6));
    assert_eq!(h.advance(at(100_000_000)), []);
    h.packet(granted(0, 20_000, 6));
    assert_eq!(sent(&h.advance(at(102_585_600))), [(0, 0, 1460, 1)]);
    assert_eq!(h.table.get(FlowId(0)).stats.timeouts, 2);

    // The receiver has the message: it answers with its last GRANT, also if it has granted only the
    // unscheduled bytes.
    let one = Params { overcommitment: Auto::Set(1), ..params() };
    let mut r = receiver(&one, &[RTT + 2000, RTT + 3000]);
    unscheduled(&mut r, 0);
    unscheduled(&mut r, 1);
    let request = Packet { flags: Packet::RETX, ..data(1, 0, MSS) };
    assert_eq!(grants(&r.packet(request)), [(1, RTT, 7)]);
    // Other data that arrives twice is not answered.
    assert_eq!(r.packet(Packet { flags: Packet::RETX, ..data(1, MSS, MSS) }), []);
}

#[test]
fn tries_can_be_bounded() {
    let bounded = Params { tries: 3, ..params() };
    let mut h = host_with(&bounded, &[20_000]);
    h.open(0);
    assert_eq!(h.advance(at(1_000_000_000)).len(), 3);
    assert!(h.table.get(FlowId(0)).terminated && h.table.all_done());
    let mut r = receiver(&bounded, &[20_000]);
    r.packet(data(0, 0, MSS));
    assert_eq!(r.advance(at(1_000_000_000)).len(), 3);
    assert!(r.machine.inbound.is_empty());
    // A forgotten message can return, with data beyond the first grant of a new message, and is
    // granted more.
    assert_eq!(grants(&r.packet(data(0, 11_160, MSS))), [(0, 11_160, 7)]);
    assert_eq!(r.machine.inbound.pending(0), RTT - MSS);
}

/// After a hundred messages the receiver has its own cutoffs, and sends them to senders with
/// another version.
#[test]
fn online_cutoffs_follow_the_messages_and_are_sent() {
    let online = Params { cutoffs: list("online"), ..params() };
    let sizes: Vec<u64> = (0..101).map(|n| if n % 2 == 0 { 1000 } else { 1400 }).collect();
    let mut h = host_with(&online, &sizes);
    let mut r = host_with(&online, &sizes).at_host(1);
    let (mut levels, mut received) = (Vec::new(), Vec::new());
    for flow in 0..101 {
        for packet in h.open(flow) {
            levels.push((packet.prio, packet.get::<Version>().version));
            for answer in r.packet(packet) {
                if answer.kind == CUTOFFS {
                    let cutoffs: CutoffList = answer.get_ext(&r.ext);
                    received.push((flow, cutoffs.version, cutoffs.cutoffs()));
                    let mut carried = answer;
                    carried.words[0] = h.ext.insert(*r.ext.get(answer.ext())).into();
                    h.packet(carried);
                    carried.free(&mut h.ext);
                    answer.free(&mut r.ext);
                }
            }
        }
    }
    // All bytes are unscheduled: seven levels for two sizes, the smaller with 5/12 of the bytes.
    assert_eq!(received, [(99, 1, vec![1000, 1400])]);
    assert_eq!((levels[99], levels[100]), ((0, 0), (0, 1)));
    assert!(h.ext.is_empty() && r.ext.is_empty());
    assert_eq!(levels_of(&h.machine.levels, h.machine.by_receiver.as_ref(), HostId(1)).1.unscheduled(1400), 1);
    assert_eq!(levels_of(&h.machine.levels, h.machine.by_receiver.as_ref(), HostId(2)).1.unscheduled(1400), 0);
    // An older version changes nothing.
    let mut old = Packet::new(FlowId(0), CUTOFFS, 40);
    old.set_ext(CutoffList::new(0, &[5]), &mut h.ext);
    h.packet(old);
    assert_eq!(levels_of(&h.machine.levels, h.machine.by_receiver.as_ref(), HostId(1)).0, 1);
}

#[test]
fn auto_takes_the_sizes_of_the_workloads() {
    let points = vec![(100, 0.5), (1000, 0.5), (1000, 0.8), (5000, 0.8), (5000, 0.95), (50_000, 0.95), (50_000, 1.0)];
    let offers = Offers::new(|| vec![Offered { load: None, sizes: points.clone() }]);
    let env = Env { offered: &offers, ..script::env() };
    let auto = Params { cutoffs: Auto::Auto, ..params() };
    assert_eq!(check(&auto, &env), []);
    assert_eq!(Homa::new(&auto, &env).levels, Levels { cutoffs: vec![5000, 50_000], scheduled: 4 });
    // Without workloads there is one level.
    assert_eq!(Homa::new(&auto, &script::env()).levels, Levels { cutoffs: vec![], scheduled: 7 });
}

#[test]
fn contradictions_are_found() {
    let keys = |params: &Params, env: &Env<'_>| check(params, env).iter().map(|p| p.key).collect::<Vec<_>>();
    let plain = script::env();
    assert_eq!(check(&params(), &plain), []);
    assert_eq!(keys(&Params::defaults(), &plain), ["cutoffs"]);
    assert_eq!(keys(&Params { cutoffs: list("5KB, 5KB"), ..params() }, &plain), ["cutoffs"]);
    assert_eq!(keys(&Params { cutoffs: list("1KB, 2KB, 3KB"), priorities: 4, ..params() }, &plain), ["cutoffs"]);
    assert_eq!(keys(&Params { cutoffs: list("1KB, 2KB"), priorities: 4, ..params() }, &plain), [""; 0]);
    assert_eq!(keys(&Params { scheduled_levels: Auto::Set(6), ..params() }, &plain), ["cutoffs"]);
    assert_eq!(keys(&Params { cutoffs: list("online"), scheduled_levels: Auto::Set(8), ..params() }, &plain), ["scheduled_levels"]);
    let short = Auto::Set(Dur::from_us(100));
    assert_eq!(keys(&Params { resend_after: short, ask_after: short, ..params() }, &plain), ["resend_after", "ask_after"]);
    let part = |slot, kind, values| GivenPart { slot, kind, values };
    let given = Given::new(vec![part("qdisc", "strict", vec![("classes", "4".to_owned())]), part("policy", "pias", vec![])]);
    let env = Env { given: &given, ..plain };
    assert_eq!(keys(&params(), &env), ["kind", "priorities"]);
    assert_eq!(keys(&Params { priorities: 4, ..params() }, &env), ["kind"]);
    let message = |params: &Params| check(params, &env)[0].message.clone();
    let many = Params { cutoffs: list("1KB, 2KB, 3KB, 4KB"), priorities: 4, ..params() };
    assert_eq!(message(&many), "4 cutoffs make 5 unscheduled levels; `priorities` leaves 3 next to 1 scheduled");
    assert_eq!(message(&Params { cutoffs: list("3KB, 2KB"), ..params() }), "`3000B` is not below the next cutoff, `2000B`");
}

fn variants() -> Vec<Params> {
    let plain = params();
    vec![
        plain.clone(),
        Params { cutoffs: list("online"), unsched_prio: UnschedPrio::Remaining, window: 3, ..plain.clone() },
        Params { overcommitment: Auto::Set(1), tail_boost: Bytes(3000), grant_bytes: Auto::Set(Bytes(4000)), ..plain.clone() },
        Params { oldest_share: Fraction(300_000_000), rtt_bytes: Auto::Set(Bytes(1000)), ..plain },
    ]
}

fn pipe(params: &Params, sizes: &[u64]) -> Pipe<Homa> {
    let flows = both_ways(sizes);
    let host = || Script::new(Homa::new(params, &script::env()), flows.clone());
    let mut pipe = Pipe::new(host(), host(), Dur::from_us(60));
    // At most a window of a message is on its way.
    pipe.watch = |host| {
        let window = host.machine.rtt_bytes;
        assert!((0..host.flows.len() as u32).all(|flow| host.machine.inbound.pending(flow) <= window));
    };
    pipe
}

/// Without losses every byte is sent once.
#[test]
fn without_losses_each_byte_is_sent_once() {
    let mut pipe = pipe(&params(), &[300 * MSS + 7, RTT, 1]);
    pipe.run(|_| Fate::Pass);
    let count = |kind: Kind| pipe.log.iter().filter(|packet| packet.kind == kind).count();
    let bytes: u64 = pipe.log.iter().map(|packet| u64::from(packet.payload)).sum();
    assert_eq!(bytes, 300 * MSS + 7 + RTT + 1);
    assert_eq!((count(Kind::ACK), count(RESEND), count(BUSY), count(CUTOFFS), count(UNKNOWN)), (3, 0, 0, 0, 0));
    // All data arrives at once: the next window takes seven GRANTs, the last of 940 bytes; the 44
    // windows and six GRANTs after it are scheduled.
    assert!((309..=315).contains(&count(GRANT)), "{} GRANTs", count(GRANT));
    let unscheduled = |p: &&Packet| p.flow == FlowId(0) && p.prio < 3 && p.kind == Kind::DATA;
    assert_eq!(pipe.log.iter().filter(unscheduled).map(|p| u64::from(p.payload)).sum::<u64>(), RTT);
}

/// Shorter messages are never in a lower level than longer ones.
#[test]
fn unscheduled_levels_follow_sizes() {
    let mut h = host(&[1, 2000, 2001, 9000, 20_000, 20_001, 1_000_000]);
    let levels: Vec<u8> = (0..7).map(|flow| h.open(flow)[0].prio).collect();
    assert!(levels.is_sorted() && levels == [0, 0, 1, 1, 1, 2, 2]);
}

#[test]
fn a_packet_dropped_once_at_any_place_is_recovered() {
    for params in variants() {
        for lost in 0..40 {
            let (mut pipe, mut n) = (pipe(&params, &[20 * MSS]), 0);
            pipe.run(|_| {
                n += 1;
                if n == lost + 1 { Fate::Drop } else { Fate::Pass }
            });
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(patterns(200)))]
    /// All bytes arrive once, senders close and timers end, whatever happens to the first 300 packets.
    #[test]
    fn survives_loss_reordering_and_duplication(
        variant in 0usize..4,
        sizes in prop::collection::vec(1u64..60_000, 1..6),
        fates in fates(300, &[]),
    ) {
        pipe(&variants()[variant], &sizes).run_fates(fates);
    }
}
