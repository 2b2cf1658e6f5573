//! Homa in whole runs.

use crate::common::{run, system_of, table};
use sim::Outcome;

/// A message of 1000 packets, which two shorter ones preempt for 0.8 ms at their common receiver; no port drops anything.
fn preempted(resend_after: &str) -> Outcome {
    let flows = table("homa-preempted", &[(1, 0, 1_460_000, 0), (2, 0, 500_000, 100_000_000), (3, 0, 500_000, 100_000_000)]);
    let homa =
        system_of("transport", "homa", "unlimited").set("transport.rtt_bytes", "auto").set("transport.resend_after", resend_after);
    run(&format!("[topology]\nkind = 'star'\nhosts = 4\nrate = '10Gbps'\ndelay = '1us'\n{flows}{}", homa.toml()))
}

/// RESENDs that receivers sent, and packets that were retransmitted.
fn repeated(outcome: &Outcome) -> (u64, u64) {
    let place = outcome.flow_counters.iter().position(|named| named.counter.name == "resends").expect("a counter of `homa`");
    (outcome.flows.iter().map(|flow| flow.counts[place]).sum(), outcome.flows.iter().map(|flow| flow.retx_packets).sum())
}

/// By default a preempted message is not requested again: section 3.7 waits for a few milliseconds. 300 us are
/// too short.
#[test]
fn a_preempted_message_is_not_requested_again() {
    let (patient, hasty) = (preempted("auto"), preempted("300us"));
    assert_eq!((repeated(&patient), patient.counters.dropped_packets), ((0, 0), 0));
    let (asked, sent) = repeated(&hasty);
    assert!(asked > 0 && sent > 0, "the case shows nothing: {asked} RESENDs, {sent} packets");
    let last = |outcome: &Outcome| outcome.flows.iter().filter_map(|flow| flow.finish_ps).max().expect("all messages finish");
    assert!(last(&patient) < last(&hasty), "{} and {} ps", last(&patient), last(&hasty));
}
