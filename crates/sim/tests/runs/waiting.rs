//! Flows that wait for the ends of others, in whole runs.

use crate::common::{eager_ring, file, kinds, plan, run, run_point, system, table_of};
use base::{Dur, FlowId, JoinId};
use proto::flow::Join;
use sim::outcome::{FlowRow, StopReason};

/// Writes a table of flows with `after` and `delay`, and returns its workload section.
fn table(name: &str, rows: &str) -> String {
    table_of(&format!("waiting-{name}"), &format!("src,dst,size_bytes,start,deadline,after,delay\n{rows}"))
}

const STAR: &str = "[topology]\nkind = 'star'\nhosts = 4\nrate = '1Gbps'\ndelay = '10us'\n";

/// A host learns of an end at another host when a bare header could have arrived.
#[test]
fn a_closed_loop_starts_each_flow_with_the_end_before_it() {
    let rows = "h0,h1,1000,5us,,,\nh1,h0,20000,,2ms,1,3us\nh0,h1,1000,,,2,\nh3,h0,1000,,,1,1us\n";
    let outcome = run(&format!("{STAR}{}{}", table("loop", rows), system("newreno", "100pkt")));
    let [request, answer, next, third] = &outcome.flows[..] else { panic!("four flows") };
    let (end, start) = (|row: &FlowRow| row.finish_ps.unwrap(), |row: &FlowRow| row.start_ps.unwrap());
    assert_eq!(start(answer), end(request) + 3_000_000);
    assert_eq!(answer.deadline_ps, Some(start(answer) + 2_000_000_000));
    assert_eq!(start(next), end(answer), "no delay, the same host");
    // 40 bytes over two links of 1 Gb/s and 10 us.
    assert_eq!(start(third), end(request) + 2 * (320_000 + 10_000_000));
    assert_eq!(outcome.stop_reason, StopReason::Finished);
}

/// Ids and source ports of flows are drawn before the run and do not depend on when a system starts the flows.
#[test]
fn every_transport_runs_a_closed_loop() {
    let rows: String = (0..40)
        .map(|i| {
            if i < 4 {
                format!("h{i},h{},9000,{i}us,,,\n", (i + 1) % 4)
            } else {
                format!("h{},h{},{},,,{},2us\n", (i + 1) % 4, i % 4, 500 * i, i - 3)
            }
        })
        .collect();
    let flows = table("all", &rows);
    for name in kinds("transport") {
        let plan = plan(&format!("end = '10s'\n{STAR}{flows}{}", system(name, "100pkt")));
        let (first, second) = (run_point(&plan.points[0]), run_point(&plan.points[0]));
        assert_eq!(first, second, "{name}");
        assert_eq!(first.stop_reason, StopReason::Finished, "{name}");
        let drawn = plan.points[0].run.flows().unwrap();
        for (flow, wait) in drawn.iter().filter_map(|flow| Some((flow.id, flow.wait.as_ref()?))) {
            let last = wait.on.iter().map(|(on, _)| first.flows[on.index()].finish_ps.unwrap()).max().unwrap();
            assert!(first.flows[flow.index()].start_ps.unwrap() >= last + 2_000_000, "{name}: flow {flow}");
        }
    }
}

/// The run ends before the first flow does, so the flow that waits for it never starts.
#[test]
fn a_flow_whose_turn_never_comes_has_not_started() {
    let rows = "h0,h1,100000000,0s,,,\nh1,h0,1000,,,1,\n";
    let outcome = run(&format!("end = '1ms'\n{STAR}{}{}", table("never", rows), system("newreno", "100pkt")));
    let never = &outcome.flows[1];
    assert_eq!((outcome.stop_reason, never.start_ps, never.finish_ps, never.tx_packets), (StopReason::End, None, None, 0));
}

/// PDQ terminates a hopeless flow at its sender: this is an end, known at the sender at once.
#[test]
fn a_flow_that_is_given_up_has_ended() {
    let rows = "h0,h1,100000000,0s,1ms,,\nh0,h2,1000,,,1,5us\n";
    let outcome = run(&format!("{STAR}{}{}", table("given-up", rows), system("pdq", "100pkt")));
    assert!(outcome.flows[0].terminated && outcome.flows[1].finish_ps.is_some());
}

/// An ideal applies the rule to its own ends, which come before those of packets.
#[test]
fn ideals_start_flows_by_their_own_ends() {
    let rows = "h0,h1,1000,5us,,,\nh1,h0,20000,,2ms,1,3us\nh0,h1,1000,,,2,\nh3,h2,1000,,,1,1us\n";
    let plan =
        plan(&format!("ideal = ['srpt', 'ps', 'edf', 'merp']\n{STAR}{}{}", table("ideal", rows), system("newreno", "100pkt")));
    for point in plan.points.iter().filter(|point| point.run.ideal.is_some()) {
        let outcome = run_point(point);
        let [request, answer, next, third] = &outcome.flows[..] else { panic!("four flows") };
        // The flows do not meet: each takes its ideal time.
        assert!(outcome.flows.iter().all(|row| row.fct_ps().unwrap().abs_diff(row.ideal_fct_ps) <= 2), "{:?}", point.label);
        assert_eq!(answer.start_ps.unwrap(), request.finish_ps.unwrap() + 3_000_000);
        assert_eq!(answer.deadline_ps, Some(answer.start_ps.unwrap() + 2_000_000_000));
        assert_eq!(next.start_ps, answer.finish_ps);
        assert_eq!(third.start_ps.unwrap(), request.finish_ps.unwrap() + 2 * (320_000 + 10_000_000));
    }
}

/// An aggregator asks again as soon as all have answered, and gives up on an answer that is too old, which goes on.
#[test]
fn requests_follow_each_other_in_a_closed_loop() {
    let workload =
        "[workload.query]\nkind = 'requests'\nworkers = 3\nrepeat = 4\naggregator = 'h3'\nmax = '200KB'\ndeadline = '3ms'\n";
    for (more, gives_up) in [("", false), ("give_up_after = '2ms'\nthink_time = '1ms'\n", true)] {
        let workload = workload.replace("deadline", &format!("{more}deadline"));
        for ideals in ["", "ideal = ['ps', 'stam']\n"] {
            let plan = plan(&format!("{ideals}{STAR}{workload}{}", system("newreno", "100pkt")));
            let drawn = plan.points[0].run.flows().unwrap();
            for point in &plan.points {
                let outcome = run_point(point);
                let start = |row: &FlowRow| row.start_ps.unwrap();
                // A packet of 1500 bytes over two links of 1 Gb/s and 10 us, and 40 bytes back.
                let delay = if gives_up { 1_000_000_000 } else { 2 * (12_000_000 + 320_000) + 4 * 10_000_000 };
                let mut old = 0;
                for (row, flow) in outcome.flows.iter().zip(&drawn) {
                    assert_eq!((row.group_id, row.dst), (Some(u64::from(row.flow_id / 3)), 3));
                    assert_eq!(row.deadline_ps, Some(start(row) + 3_000_000_000));
                    let Some(wait) = &flow.wait else { continue };
                    let answers = wait.on.iter().map(|(on, _)| &outcome.flows[on.index()]);
                    let ends = answers.map(|answer| {
                        let given_up = start(answer) + wait.give_up_after.unwrap().0;
                        old += u32::from(answer.finish_ps.unwrap() > given_up);
                        answer.finish_ps.unwrap().min(given_up)
                    });
                    assert_eq!(start(row), ends.max().unwrap() + delay, "{} {:?}", row.flow_id, point.label);
                }
                assert_eq!(old > 0, gives_up, "{:?}", point.label);
                assert_eq!(outcome.stop_reason, StopReason::Finished);
            }
        }
    }
}

/// As many requests are drawn as may fit before the end. Requests that do not begin are rows without a start.
#[test]
fn requests_beyond_the_end_have_not_started() {
    let workload = "[workload.query]\nkind = 'requests'\nworkers = 3\ndeadline = '3ms'\n";
    let outcome = run(&format!("end = '100ms'\n{STAR}{workload}{}", system("newreno", "100pkt")));
    let begun = outcome.flows.iter().take_while(|row| row.start_ps.is_some()).count();
    assert!(begun > 0 && begun % 3 == 0 && begun < outcome.flows.len());
    for row in &outcome.flows[begun..] {
        assert_eq!((row.start_ps, row.deadline_ps, row.finish_ps, row.tx_packets), (None, None, None, 0));
    }
    // At 1 Gb/s a request of 0.9 MB takes 7 ms at least, and some lose packets.
    assert!((5..=14).contains(&(begun / 3)), "{begun}");
    assert_eq!((outcome.stop_reason, outcome.counters.end_ps), (StopReason::End, 100_000_000_000));
}

/// A host fetches from one host at a time, from all in the end, and the group of its fetches ends with the last.
#[test]
fn a_shuffle_runs_in_a_closed_loop_at_every_host() {
    let workload = "[workload.shuffle]\nkind = 'shuffle'\nsize = '20KB'\n";
    let outcome = run(&format!("[topology]\nkind = 'fat_tree'\n{workload}{}", system("newreno", "100pkt")));
    assert_eq!((outcome.flows.len(), outcome.stop_reason), (240, StopReason::Finished));
    for host in 0..16 {
        let mut fetches: Vec<&FlowRow> = outcome.flows.iter().filter(|flow| flow.dst == host).collect();
        fetches.sort_by_key(|fetch| fetch.start_ps);
        assert_eq!(fetches.len(), 15);
        assert!(fetches.iter().all(|fetch| fetch.group_id == fetches[0].group_id));
        for pair in fetches.windows(2) {
            // 40 bytes over two to six links of 1 Gb/s and 10 us.
            let wait = pair[1].start_ps.unwrap() - pair[0].finish_ps.unwrap();
            assert!((2 * 10_320_000..=6 * 10_320_000).contains(&wait), "{wait}");
        }
    }
}

/// A program: rank 0 computes and sends to rank 1; rank 1 receives, computes and sends to rank 2; rank 2 sends only after
/// it has received and its own computation is over.
#[test]
fn the_messages_of_a_program_wait_for_messages_and_computations() {
    let text = "num_ranks 3\nrank 0 {\na: calc 7000\nb: send 9000b to 1\nb requires a\n}\nrank 1 {\na: recv 9000b from 0\nb: calc 3000\nb requires a\n\
                c: send 100000b to 2\nc requires b\n}\nrank 2 {\na: recv 100000b from 1\nb: calc 5000000\nc: send 1b to 0\nc requires a\nc requires b\n}\n";
    let workload = format!("[workload.program]\nkind = 'goal'\npath = '{}'\n", file("waiting.goal", text));
    let plan = plan(&format!("ideal = ['ps']\n{STAR}{workload}{}", system("newreno", "100pkt")));
    assert_eq!(plan.points.len(), 2);
    for point in &plan.points {
        let outcome = run_point(point);
        let row = |dst: u32| outcome.flows.iter().find(|row| row.dst == dst).unwrap();
        let (start, end) = (|dst: u32| row(dst).start_ps.unwrap(), |dst: u32| row(dst).finish_ps.unwrap());
        assert_eq!((start(1), start(2), start(0)), (7_000_000, end(1) + 3_000_000, 5_000_000_000), "{:?}", point.label);
        assert!(end(2) < start(0), "{:?}", point.label);
    }
}

/// Time of a message of 1000 bytes: a handshake of 40 bytes in both directions, and 1040 bytes, over two links of 1 Gb/s and 10 us.
const MESSAGE: u64 = 2 * (2 * (320_000 + 10_000_000)) + 2 * (8_320_000 + 10_000_000);

/// A rank forwards a message when it has received the message, and not before. In a ring without other flows, the steps follow each
/// other without a gap.
#[test]
fn an_all_reduce_takes_the_time_of_its_steps() {
    let workload = "[workload.gradients]\nkind = 'collective'\nbytes = '4KB'\n";
    let plan = plan(&format!("{STAR}{workload}{}", system("newreno", "100pkt")));
    let (outcome, drawn) = (run_point(&plan.points[0]), plan.points[0].run.flows().unwrap());
    assert_eq!((outcome.stop_reason, outcome.flows.len()), (StopReason::Finished, 4 * 2 * 3));
    let end = |flow: usize| outcome.flows[flow].finish_ps.unwrap();
    for (row, flow) in outcome.flows.iter().zip(&drawn) {
        let on = flow.wait.iter().flat_map(|wait| &wait.on).map(|(on, _)| end(on.index())).max();
        assert_eq!(row.start_ps, Some(on.unwrap_or(0)));
    }
    let last = (0..outcome.flows.len()).map(end).max().unwrap();
    // Each of 6 steps takes a message, behind at most one acknowledgment at each link.
    assert!((6 * MESSAGE..=6 * (MESSAGE + 2 * 320_000)).contains(&last), "{last}");
}

/// The backward pass of stage 1 follows its forward pass, and the next step follows the reduced gradients.
#[test]
fn a_training_step_is_as_long_as_its_passes_and_messages() {
    let workload = "[workload.job]\nkind = 'training'\ndata = 2\npipeline = 2\nlayers = 2\nactivation = '1KB'\ngradient = '2KB'\n\
                    forward = '100us'\niterations = 3\n";
    let outcome = run(&format!("{STAR}{workload}{}", system("newreno", "100pkt")));
    assert_eq!(outcome.stop_reason, StopReason::Finished);
    // In a step, each replica sends activations and gradients, and each pair of ranks two messages in a ring of two.
    assert_eq!(outcome.flows.len(), 3 * (2 * 2 + 2 * 4));
    let last = outcome.flows.iter().map(|row| row.finish_ps.unwrap()).max().unwrap();
    // Forward and backward passes of both stages take 600 us. Two messages between stages and two in a ring follow them, and the message
    // of the gradients to stage 0 leaves stage 1 together with its first message in its ring.
    let step = 600_000_000 + 4 * MESSAGE + 8_320_000;
    assert!((3 * step..3 * (step + 1_000_000)).contains(&last), "{last}");
}

/// Returns all ends for which a list waits, those of its joins included.
fn ends(on: &[(FlowId, Dur)], on_joins: &[(JoinId, Dur)], joins: &[Join], host: u32) -> Vec<(FlowId, Dur)> {
    let mut all = on.to_vec();
    for (join, delay) in on_joins {
        let join = &joins[join.index()];
        assert_eq!(join.host.0, host);
        all.extend(ends(&join.on, &join.joins, joins, host).into_iter().map(|(flow, gap)| (flow, gap + *delay)));
    }
    all
}

/// In packets, in the flow engine and in ideals: a flow starts when its source has learned of all ends for which it waits,
/// directly or through joins. The flows of another workload are between those of the program.
#[test]
fn a_flow_that_waits_for_joins_starts_with_the_last_of_their_ends() {
    let web = "[workload.web]\nkind = 'poisson'\nload = 0.3\nflows = 30\nsize = 'fixed'\nmean = '2KB'\n";
    for engine in ["", "engine = 'flow'\n"] {
        let ideal = if engine.is_empty() { "ideal = ['ps', 'srpt']\n" } else { "" };
        let star = STAR.replace("hosts = 4", "hosts = 9");
        let plan = plan(&format!("{engine}{ideal}{star}{}{web}{}", eager_ring(9, 16), system("newreno", "100pkt")));
        let traffic = plan.points[0].run.traffic().unwrap();
        assert!(traffic.joins.iter().any(|join| !join.joins.is_empty()));
        for point in &plan.points {
            let outcome = run_point(point);
            assert_eq!(outcome.stop_reason, StopReason::Finished, "{:?}", point.label);
            for flow in &traffic.flows {
                let Some(wait) = &flow.wait else { continue };
                let learned = |(on, delay): (FlowId, Dur)| {
                    let row = &outcome.flows[on.index()];
                    // 40 bytes over two links of 1 Gb/s and 10 us.
                    let latency = if row.dst == flow.src.0 { 0 } else { 2 * (320_000 + 10_000_000) };
                    row.finish_ps.unwrap() + delay.0.max(latency)
                };
                let ends = ends(&wait.on, &wait.joins, &traffic.joins, flow.src.0);
                let expected = ends.into_iter().map(learned).fold(wait.not_before.0, u64::max);
                assert_eq!(outcome.flows[flow.id.index()].start_ps, Some(expected), "{:?} {}", point.label, flow.id);
            }
        }
    }
}
