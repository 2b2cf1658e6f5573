//! The breakdown of completion times: the parts of every flow sum to its completion time, and small cases have the
//! expected parts.

use crate::common::{all_systems, plan};
use base::{Dur, FlowId, Time};
use proto::Timeout;
use sim::outcome::PacketRow;
use sim::why::{Breakdown, Life, LossCause, TimePart, watch};
use sim::{Continue, Outcome};
use std::collections::BTreeSet;

/// The flows that began, each with the time in which it was open.
fn lives(outcome: &Outcome) -> Vec<Life> {
    let began = outcome.flows.iter().filter_map(|flow| Some((flow, flow.start_ps?)));
    let open = |start: u64, finish: Option<u64>| Time(start)..finish.map_or(Time::MAX, Time);
    began.map(|(flow, start)| Life { flow: FlowId(flow.flow_id), open: open(start, flow.finish_ps) }).collect()
}

fn explain(point: &scenario::Point) -> (Outcome, Vec<Breakdown>) {
    let lives = lives(&crate::common::run_point(point));
    let watched = watch(&point.run, &lives, &mut |_| Continue::Yes).unwrap_or_else(|e| panic!("{}: {e}", point.id));
    let found = watched.breakdowns().unwrap_or_else(|e| panic!("{}: {e}", point.id));
    (watched.outcome, found)
}

/// The flows of a scenario with one point.
fn one(text: &str) -> Vec<Breakdown> {
    explain(&plan(text).points[0]).1
}

fn ps(found: &Breakdown, part: impl Fn(TimePart) -> bool) -> u64 {
    found.totals().into_iter().filter(|(own, _)| part(*own)).map(|(_, ps)| ps).sum()
}

const SMALL: &str = "[topology]\nkind = 'single_tree'\nloss = 0.002\n[workload.web]\nkind = 'poisson'\nflows = 60\nload = 0.8\n\
                     load_ref = 'uplinks'\nsize = 'pareto'\nmean = '30KB'\nshape = 1.5\n";

#[test]
fn the_parts_of_every_flow_are_its_completion_time() {
    let events = "[[event]]\nlink = ['tor0', 'root']\nat = '3ms'\nuntil = '5ms'\n";
    let systems: String = all_systems("10pkt").iter().map(scenario::Outline::toml).collect();
    let (mut most, mut named) = (0, std::collections::BTreeSet::new());
    for point in plan(&format!("{SMALL}{systems}{events}")).points {
        if point.run.system.transport.meta().many_paths {
            let watched = watch(&point.run, &[], &mut |_| Continue::Yes).unwrap();
            assert!(watched.breakdowns().is_err(), "{}: the time of flows on several paths cannot be broken down", point.id);
            continue;
        }
        let (outcome, found) = explain(&point);
        assert_eq!(outcome.counters.digest, crate::common::run_point(&point).counters.digest, "{}: another run", point.id);
        // Packets that NICs send while a flow is closed do not affect the flow's breakdown.
        let whole: Vec<Life> = found.iter().map(|f| Life { flow: FlowId(f.flow.flow_id), open: Time::ZERO..Time::MAX }).collect();
        assert_eq!(watch(&point.run, &whole, &mut |_| Continue::Yes).unwrap().breakdowns().unwrap(), found, "{}", point.id);
        assert_eq!(found.len(), outcome.flows.iter().filter(|flow| flow.finish_ps.is_some()).count());
        for flow in &found {
            let about = format!("{}, flow {}", point.id, flow.flow.flow_id);
            assert_eq!(flow.totals().iter().map(|(_, ps)| ps).sum::<u64>(), flow.flow.fct_ps().unwrap(), "{about}");
            assert_eq!(flow.spans[0].begin, Time(flow.flow.start_ps.unwrap()), "{about}");
            assert!(flow.spans.windows(2).all(|pair| pair[0].end == pair[1].begin && pair[0].part != pair[1].part), "{about}");
            // Each packet takes time on each link, and the last packet crosses every link.
            assert!(
                ps(flow, |part| part == TimePart::Propagation) > 0 && ps(flow, |part| part == TimePart::Transmission) > 0,
                "{about}"
            );
            named.extend(flow.totals().into_iter().map(|(part, _)| part.name()));
            most = most.max(flow.spans.len());
        }
    }
    assert!(most > 20 && named.len() == 7, "{most} {named:?}");
}

const LONE: &str =
    "[topology]\nkind = 'star'\nhosts = 3\n[workload.one]\nkind = 'incast'\njitter = '0s'\nsenders = 1\nsize = '14600B'\n";

#[test]
fn a_lone_flow_at_line_rate_is_transmission_and_propagation() {
    let found =
        &one(&format!("{LONE}[[system]]\ntransport = {{ kind = 'pfabric', init_cwnd = 20, max_cwnd = 20 }}\nqdisc = 'pfabric'\n"))
            [0];
    // Ten packets of 1500 B over two links of 10 Gb/s and 1 us: 11 x 1.2 us and 2 x 1 us.
    assert_eq!(found.totals(), [(TimePart::Transmission, 11 * 1_200_000), (TimePart::Propagation, 2_000_000)]);
    assert_eq!(found.flow.fct_ps(), Some(found.flow.ideal_fct_ps));
}

#[test]
fn a_handshake_and_a_window_are_round_trips() {
    let tcp = |more: &str| one(&format!("{LONE}[[system]]\ntransport = {{ kind = 'newreno', init_window = 5{more} }}\n"));
    // Two headers over two links each: 4 x 32 ns and 4 x 1 us.
    let trip = 4 * 32_000 + 4 * 1_000_000;
    let found = &tcp("")[0];
    assert_eq!(ps(found, |part| part == TimePart::Handshake), trip);
    // The first packet is acknowledged after its own 2 x 1.2 us and 2 us. The ACK takes half a trip, and lets the sender send
    // the sixth packet.
    assert_eq!(ps(found, |part| part == TimePart::Wait), trip / 2);
    assert_eq!(ps(&tcp(", handshake = false")[0], |part| part == TimePart::Handshake), 0);
}

#[test]
fn waiting_behind_others_is_the_queue_of_a_port() {
    let text = "[topology]\nkind = 'star'\nhosts = 3\n[workload.two]\nkind = 'incast'\njitter = '0s'\nsenders = 2\nsize = '1460B'\n\
                [[system]]\ntransport = { kind = 'pfabric' }\nqdisc = 'pfabric'\n";
    let (found, net) = (one(text), &plan(text).points[0].run.net);
    let queues: Vec<(u64, u64)> =
        found.iter().map(|flow| (ps(flow, |part| part.port() == net.link_named("s0->h0")), flow.flow.fct_ps().unwrap())).collect();
    assert_eq!(queues.iter().map(|(queue, _)| *queue).collect::<Vec<_>>(), [0, 1_200_000]);
    assert_eq!(queues[1].1 - queues[0].1, 1_200_000);
    // Two flows of one host take turns at its NIC.
    let text = text.replace("hosts = 3", "hosts = 2");
    let nic = plan(&text).points[0].run.net.link_named("h1->s0");
    let found = one(&text);
    assert_eq!(found.iter().map(|flow| ps(flow, |part| part.port() == nic)).max(), Some(1_200_000), "{found:?}");
}

#[test]
fn a_retransmission_costs_the_time_since_the_first_transmission() {
    let text = format!(
        "{LONE}[[event]]\nlink = ['s0', 'h0']\nat = '6us'\nuntil = '20us'\n[[system]]\n\
                        transport = {{ kind = 'newreno', handshake = false, min_rto = '1ms', init_rto = '3ms' }}\n"
    );
    let (found, net) = (&one(&text)[0], &plan(&text).points[0].run.net);
    let again = |found: &Breakdown| -> Vec<(LossCause, u64)> {
        let loss = |(part, ps)| if let TimePart::Retransmission(loss) = part { Some((loss, ps)) } else { None };
        found.totals().into_iter().filter_map(loss).collect()
    };
    let [(loss, time)] = again(found)[..] else { panic!("{found:?}") };
    assert!((1_000_000_000..4_000_000_000).contains(&time), "{found:?}");
    assert!(found.flow.fct_ps().unwrap() - time < 100_000_000, "{found:?}");
    // A packet had been acknowledged when the link went down. The missing packet reached a switch without a path.
    assert_eq!((loss.timer, loss.port), (Timeout::new("min_rto", Dur::from_ms(1)), net.link_named("h1->s0")), "{found:?}");
    // A lost SYN is retransmitted too.
    let syn = &one(&text.replace("handshake = false, ", "").replace("at = '6us'", "at = '1us'"))[0];
    let loss = LossCause { timer: Timeout::new("init_rto", Dur::from_ms(3)), port: net.link_named("s0->h0") };
    assert_eq!(again(syn), [(loss, 3_000_000_000)], "{syn:?}");
    assert_eq!(ps(syn, |part| part == TimePart::Handshake), 4 * 32_000 + 4 * 1_000_000);
}

/// Twenty packets leave at line rate. The 15th and the 16th are on the link when it fails. Four follow them, and their ACKs
/// show the loss.
#[test]
fn a_loss_that_acks_show_has_a_port_and_no_timer() {
    let text = format!(
        "{}[[event]]\nlink = ['s0', 'h0']\nat = '20.5us'\nuntil = '20.9us'\n[[system]]\n\
         transport = {{ kind = 'newreno', handshake = false, init_window = 20 }}\n",
        LONE.replace("14600B", "29200B")
    );
    let (found, net) = (&one(&text)[0], &plan(&text).points[0].run.net);
    let loss = LossCause { timer: None, port: net.link_named("s0->h0") };
    let time = ps(found, |part| part == TimePart::Retransmission(loss));
    assert!(found.flow.timeouts == 0 && found.flow.retx_packets >= 2, "{found:?}");
    assert!((1_000_000..30_000_000).contains(&time), "some round trips: {found:?}");
    assert_eq!(time, ps(found, |part| part.name() == "retransmission"));
}

const LEAVES: &str = "[topology]\nkind = 'leaf_spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 3\n[workload.web]\nkind = 'poisson'\nflows = 80\n\
                      load = 0.7\nsize = 'pareto'\nmean = '40KB'\nshape = 1.5\n[sample]\nports = false\npackets = true\n";

/// A trace around a flow has the rows of a whole trace: all packets of the flow and, for each packet that passed a port of
/// its path while it was open, every row at these ports and at the ports that lead there.
#[test]
fn a_trace_around_a_flow_is_a_part_of_the_whole_trace() {
    let systems: String = all_systems("20pkt").iter().map(scenario::Outline::toml).collect();
    let mut fifos = 0;
    for point in plan(&format!("{LEAVES}{systems}")).points {
        let whole = crate::common::run_point(&point);
        let most = |life: &Life| whole.flows[life.flow.index()].fct_ps().unwrap_or(0);
        let life = lives(&whole).into_iter().max_by_key(most).unwrap();
        let watched = watch(&point.run, std::slice::from_ref(&life), &mut |_| Continue::Yes).unwrap();
        let (rows, complete) = watched.around(&mut |_| Continue::Yes).unwrap();
        assert!(complete);
        let mut others = whole.packets.iter();
        assert!(
            rows.iter().all(|row| others.any(|other| other == row)),
            "{}: rows and their order are those of the whole trace",
            point.id
        );
        let own = |rows: &[PacketRow]| rows.iter().filter(|row| row.flow_id == life.flow.0).cloned().collect::<Vec<_>>();
        assert_eq!(own(&rows), own(&whole.packets), "{}", point.id);
        let ports: BTreeSet<u32> = own(&rows).iter().map(|row| row.port_id).collect();
        let (from, until) = (life.open.start.0, own(&rows).last().unwrap().time_ps);
        let here = |rows: &[PacketRow]| {
            let here = |row: &&PacketRow| ports.contains(&row.port_id) && (from..=until).contains(&row.time_ps);
            rows.iter().filter(here).cloned().collect::<Vec<_>>()
        };
        assert_eq!(here(&rows), here(&whole.packets), "{}", point.id);
        assert!(here(&rows).len() > own(&rows).len() && rows.len() < whole.packets.len(), "{}", point.id);
        // Each packet at a port of the path has come over a port that leads there. Where ranks decide, it may have come long ago.
        if !["droptail", "ecn_threshold", "red_ecn"].contains(&point.run.system.qdisc.name()) {
            continue;
        }
        fifos += 1;
        let links = point.run.net.links();
        let hosts = |port: u32| point.run.net.host(links[port as usize].from).is_some();
        for row in here(&rows).iter().filter(|row| !hosts(row.port_id) && row.kind == "data") {
            let into = |other: &&PacketRow| {
                let same = (other.flow_id, other.offset, other.kind) == (row.flow_id, row.offset, row.kind);
                same && links[other.port_id as usize].to == links[row.port_id as usize].from && other.end_ps <= row.time_ps
            };
            assert!(rows.iter().any(|other| into(&other)), "{}: {row:?}", point.id);
        }
    }
    assert!(fifos > 3, "{fifos}");
}
