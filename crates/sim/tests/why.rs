//! Where the time of flows went: the parts of every flow sum to its completion time, and small cases have the parts that they must have.

mod common;
use base::{FlowId, Time};
use common::{all_systems, plan};
use sim::why::{Breakdown, Part, why};
use sim::{Continue, Outcome};

fn explain(point: &scenario::Point) -> (Outcome, Vec<Breakdown>) {
    let flows: Vec<FlowId> = (0..point.run.flows().unwrap().len() as u32).map(FlowId).collect();
    why(&point.run, &flows, &mut |_| Continue::Yes).unwrap_or_else(|e| panic!("{}: {e}", point.id))
}

/// The flows of a scenario with one point.
fn one(text: &str) -> Vec<Breakdown> {
    explain(&plan(text).points[0]).1
}

fn ps(found: &Breakdown, part: impl Fn(Part) -> bool) -> u64 {
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
            assert!(why(&point.run, &[FlowId(0)], &mut |_| Continue::Yes).is_err(), "{}: subflows have no one history", point.id);
            continue;
        }
        let (outcome, found) = explain(&point);
        assert_eq!(outcome.counters.digest, common::run_point(&point).counters.digest, "{}: another run", point.id);
        assert_eq!(found.len(), outcome.flows.iter().filter(|flow| flow.finish_ps.is_some()).count());
        for flow in &found {
            let about = format!("{}, flow {}", point.id, flow.flow.flow_id);
            assert_eq!(flow.totals().iter().map(|(_, ps)| ps).sum::<u64>(), flow.flow.fct_ps().unwrap(), "{about}");
            assert_eq!(flow.spans[0].begin, Time(flow.flow.start_ps.unwrap()), "{about}");
            assert!(flow.spans.windows(2).all(|pair| pair[0].end == pair[1].begin && pair[0].part != pair[1].part), "{about}");
            // No packet is faster than light, and the last one crosses every link.
            assert!(ps(flow, |part| part == Part::Propagation) > 0 && ps(flow, |part| part == Part::Transmission) > 0, "{about}");
            named.extend(flow.totals().into_iter().map(|(part, _)| part.name()));
            most = most.max(flow.spans.len());
        }
    }
    assert!(most > 20 && named.len() == 6, "{most} {named:?}");
}

const LONE: &str =
    "[topology]\nkind = 'star'\nhosts = 3\n[workload.one]\nkind = 'incast'\njitter = '0s'\nsenders = 1\nsize = '14600B'\n";

#[test]
fn a_lone_flow_at_line_rate_is_transmission_and_propagation() {
    let found =
        &one(&format!("{LONE}[[system]]\ntransport = {{ kind = 'pfabric', init_cwnd = 20, max_cwnd = 20 }}\nqdisc = 'pfabric'\n"))
            [0];
    // Ten packets of 1500 B over two links of 10 Gb/s and 1 us: 11 x 1.2 us and 2 x 1 us.
    assert_eq!(found.totals(), [(Part::Transmission, 11 * 1_200_000), (Part::Propagation, 2_000_000)]);
    assert_eq!(found.flow.fct_ps(), Some(found.flow.ideal_fct_ps));
}

#[test]
fn a_handshake_and_a_window_are_round_trips() {
    let tcp = |more: &str| one(&format!("{LONE}[[system]]\ntransport = {{ kind = 'newreno', init_window = 5{more} }}\n"));
    // Two headers over two links each: 4 x 32 ns and 4 x 1 us.
    let trip = 4 * 32_000 + 4 * 1_000_000;
    let found = &tcp("")[0];
    assert_eq!(ps(found, |part| part == Part::Handshake), trip);
    // The first packet is answered after its own 2 x 1.2 us and 2 us; the answer takes half a trip, and sets off the sixth.
    assert_eq!(ps(found, |part| part == Part::Wait), trip / 2);
    assert_eq!(ps(&tcp(", handshake = false")[0], |part| part == Part::Handshake), 0);
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
fn what_is_sent_again_costs_the_time_since_it_was_sent_first() {
    let text = format!(
        "{LONE}[[event]]\nlink = ['s0', 'h0']\nat = '6us'\nuntil = '20us'\n[[system]]\n\
                        transport = {{ kind = 'newreno', handshake = false, min_rto = '1ms', init_rto = '3ms' }}\n"
    );
    let found = &one(&text)[0];
    let again = ps(found, |part| part == Part::Retransmission);
    assert!((1_000_000_000..4_000_000_000).contains(&again), "{found:?}");
    assert!(found.flow.fct_ps().unwrap() - again < 100_000_000, "{found:?}");
    // A SYN that is lost is sent again too.
    let syn = &one(&text.replace("handshake = false, ", "").replace("at = '6us'", "at = '1us'"))[0];
    assert_eq!(ps(syn, |part| part == Part::Retransmission), 3_000_000_000, "{syn:?}");
    assert_eq!(ps(syn, |part| part == Part::Handshake), 4 * 32_000 + 4 * 1_000_000);
}
