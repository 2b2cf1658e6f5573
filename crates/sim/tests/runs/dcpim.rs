//! dcPIM in whole runs.

use crate::common::{run, system_of, table};
use sim::Outcome;

/// A packet time at 10 Gb/s, in picoseconds.
const PACKET: u64 = 1_200_000;

/// Flows between hosts of a star at 10 Gb/s. An unloaded round trip is 6.464 us, a round 8.4032 us, a phase 33.6 us or 28 packets.
fn star(name: &str, rows: &[(u32, u32, u64, u64)], rounds: &str, seed: u32) -> Outcome {
    let flows = table(name, rows);
    let dcpim = system_of("transport", "dcpim", "unlimited").set("transport.short", "auto").set("transport.rounds", rounds);
    run(&format!("seed = {seed}\n[topology]\nkind = 'star'\nhosts = 9\nrate = '10Gbps'\ndelay = '1us'\n{flows}{}", dcpim.toml()))
}

fn last(outcome: &Outcome) -> u64 {
    outcome.flows.iter().filter_map(|flow| flow.finish_ps).max().expect("all flows finish")
}

#[test]
fn a_short_flow_takes_the_time_of_an_idle_network() {
    // The NOTIFY of 32 ns goes first, then the packet: two links of 1.2 us and 1 us.
    assert_eq!(last(&star("dcpim-short", &[(1, 0, 1460, 0)], "4", 1)), 32_000 + 4_400_000);
}

/// A flow of 1000 packets is matched in the first phase. The first token leaves when the second phase begins, and the last data
/// arrives a round trip after its token. A phase has room for a token more than the link carries.
#[test]
fn a_long_flow_begins_with_the_next_phase_and_then_fills_the_link() {
    let last = last(&star("dcpim-long", &[(1, 0, 1_460_000, 0)], "4", 1));
    let (start, rtt) = (4 * 8_403_200, 6_464_000);
    assert!((start + 999 * PACKET * 28 / 29..=start + 1000 * PACKET + rtt).contains(&last), "{last} ps");
}

/// All hosts send to all others. More rounds match more hosts. Little waits, since tokens leave at the rate of the link: at most
/// the packets of a window (8.8 us with full packets both ways, 7.3 packets) and two control packets for each other host.
#[test]
fn more_rounds_use_more_of_the_links() {
    let hosts = |src: u32| (0..9).filter(move |dst| *dst != src).map(move |dst| (src, dst, 1_460_000, 0));
    let rows: Vec<_> = (0..9).flat_map(hosts).collect();
    let ideal = 8000 * PACKET;
    // Single runs differ by 3 %.
    let times = ["1", "2", "4"].map(|rounds| {
        let of_seed = |seed| {
            let outcome = star("dcpim-all", &rows, rounds, seed);
            let most = outcome.ports.iter().map(|port| port.max_queue_bytes).max();
            assert!(most.is_some_and(|most| most <= 8 * 1500 + 16 * 40), "{rounds}: {most:?}");
            last(&outcome)
        };
        (1..=8).map(of_seed).sum::<u64>() / 8
    });
    assert!(times[0] > times[1] && times[1] > times[2] && times[2] < ideal * 5 / 4, "{times:?}, at full use {ideal} ps");
}
