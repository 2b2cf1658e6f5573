//! Selections of `[sample]`: the recorded rows are a part of the rows recorded without a selection, and the run is the
//! same.

use crate::common::{plan, run_point};
use base::{FlowId, Time};
use scenario::Sample;
use sim::Outcome;

const LEAVES: &str = "[topology]\nkind = 'leaf_spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 3\n[workload.web]\nkind = 'poisson'\nflows = 60\n\
                      load = 0.7\nsize = 'pareto'\nmean = '40KB'\nshape = 1.5\n";
const SYSTEMS: &str = "[[system]]\nlabel = 'TCP'\ntransport = 'dctcp'\n[[system]]\nlabel = 'MERP'\ntransport = 'merp'\nqdisc = 'strict'\nagent = 'merp'\n\
                       [[system]]\nlabel = 'pFabric'\ntransport = 'pfabric'\nqdisc = 'pfabric'\n";
const ALL: &str = "[sample]\ninterval = '7us'\nports = true\nflows = true\nswitches = true\nagents = true\npackets = true\n";
const SOME: &str = "start = '100us'\nend = '401us'\nonly_ports = 'leaf0->*, h2->leaf0'\nonly_flows = '3..40, 57'\n";

fn outcomes(text: &str) -> Vec<(Sample, Outcome)> {
    plan(text).points.iter().map(|point| (point.run.sample.clone().unwrap(), run_point(point))).collect()
}

/// The rows of `all` that the selection `sample` records.
fn part(sample: &Sample, all: &Outcome) -> Outcome {
    let port = |id: u32| sample.has_port(base::LinkId(id));
    let flow = |id: u32| sample.only_flows.has(FlowId(id));
    let at = |time: u64| sample.covers(Time(time));
    let mut part = all.clone();
    part.samples.retain(|row| match row.metric.split_once('.').unwrap().0 {
        "port" => at(row.time_ps) && port(row.entity),
        "flow" => at(row.time_ps) && flow(row.entity),
        _ => at(row.time_ps),
    });
    part.agents.retain(|row| at(row.time_ps) && port(row.port_id) && flow(row.flow_id));
    part.packets.retain(|row| at(row.time_ps) && port(row.port_id) && flow(row.flow_id));
    part
}

#[test]
fn a_selection_records_a_part_of_the_whole() {
    let fluid = "[[system]]\ntransport = 'dctcp'\n";
    for (engine, systems) in [("", SYSTEMS), ("engine = 'flow'\n", fluid)] {
        let all = outcomes(&format!("{engine}{LEAVES}{systems}{ALL}"));
        let some = outcomes(&format!("{engine}{LEAVES}{systems}{ALL}{SOME}"));
        assert_eq!(all.len(), some.len());
        for ((_, all), (sample, some)) in all.iter().zip(&some) {
            let wanted = part(sample, all);
            if engine.is_empty() {
                assert_eq!((&some.flows, &some.ports, some.counters.digest), (&all.flows, &all.ports, all.counters.digest));
                assert_eq!(some.samples, wanted.samples);
            }
            // The flow engine adds up floating-point numbers at every sample, so that other samples have other last digits.
            assert_eq!(some.samples.len(), wanted.samples.len());
            for (a, b) in some.samples.iter().zip(&wanted.samples) {
                assert_eq!((a.time_ps, a.entity, a.metric), (b.time_ps, b.entity, b.metric));
                assert!((a.value - b.value).abs() <= 1e-6 * b.value.abs() + 1e-9, "{a:?} {b:?}");
            }
            assert_eq!(some.agents, wanted.agents);
            assert_eq!(some.packets, wanted.packets);
            for metric in ["port.utilisation", "flow.rate_bps"] {
                assert!(some.samples.iter().any(|row| row.metric == metric && row.value > 0.0), "{metric}");
            }
            assert!(some.samples.len() * 3 < all.samples.len());
            assert_eq!(some.packets.is_empty(), !engine.is_empty());
        }
        assert_eq!(some.iter().any(|(_, outcome)| !outcome.agents.is_empty()), engine.is_empty());
    }
}

/// Each selection by itself, and time limits at which an event happens: the start is recorded, the end is not.
#[test]
fn each_selection_works_alone() {
    let text = |more: &str| format!("{LEAVES}[[system]]\ntransport = 'dctcp'\n{ALL}{more}");
    let all = outcomes(&text("")).remove(0).1;
    let packet = &all.packets[all.packets.len() / 2];
    let time = format!("start = '{}ps'\nend = '{}ps'\n", packet.time_ps, packet.time_ps + 1);
    let wholes = ["start = '70us'\nend = '140us'\n", "only_ports = 'spine1->leaf0'\n", "only_flows = 7\n", &time];
    for more in wholes {
        let (sample, some) = outcomes(&text(more)).remove(0);
        let wanted = part(&sample, &all);
        assert_eq!((&some.samples, &some.packets), (&wanted.samples, &wanted.packets), "{more}");
        assert!(!some.packets.is_empty() && some.packets.len() < all.packets.len(), "{more}");
    }
    assert!(outcomes(&text(wholes[0])).remove(0).1.samples.iter().any(|row| row.time_ps == 70_000_000));
    // Nothing is recorded before the first interval is over.
    assert!(outcomes(&text("end = '6us'\n")).remove(0).1.samples.is_empty());
}

/// A trace of parts of a run on several threads has the rows of a trace of the whole.
#[test]
fn a_selection_holds_on_several_threads() {
    let point = &plan(&format!("{LEAVES}[[system]]\ntransport = 'dctcp'\n{ALL}{SOME}")).points[0];
    let cut = sim::run_threads(&point.run, sim::Threads::Exactly(2), sim::EventOrder::Auto, &mut |_| sim::Continue::Yes).unwrap();
    assert_eq!(cut.threads, 2);
    assert_eq!(cut.packets, run_point(point).packets);
}

/// PIAS sets the class of data by the bytes before it. ACKs have the highest class, and so has every packet where nothing sets classes.
#[test]
fn a_trace_has_the_class_of_each_packet() {
    let pias = "[[system]]\nlabel = 'PIAS'\ntransport = 'dctcp'\npolicy = { kind = 'pias', thresholds = '10000B, 40000B' }\n\
                qdisc = { kind = 'strict', classes = 3 }\n[[system]]\ntransport = 'dctcp'\n";
    let outcomes = outcomes(&format!("{LEAVES}{pias}{ALL}"));
    let classes = |of: usize, kind: &str| -> Vec<(u64, u8)> {
        outcomes[of].1.packets.iter().filter(|row| row.kind == kind).map(|row| (row.offset, row.class)).collect()
    };
    let data = classes(0, "data");
    for &(offset, class) in &data {
        assert_eq!(class, u8::from(offset > 10_000) + u8::from(offset > 40_000), "data at {offset}");
    }
    assert!((0..3).all(|class| data.iter().any(|row| row.1 == class)));
    let acks = classes(0, "ack");
    assert!(!acks.is_empty() && acks.iter().all(|row| row.1 == 0));
    assert!(outcomes[1].1.packets.iter().all(|row| row.class == 0));
}
