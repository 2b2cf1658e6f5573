//! A long flow and an endless stream of short flows: the long flow starves where the shortest flow goes first, and is served under MERP,
//! where waiting raises its expansion ratio (MERP, section 2).

use crate::common::{run, system, table};

const MS: u64 = 1_000_000_000;

/// When the long flow and the last short flow finish, in ps. The 600 packets of the long flow take 7.2 ms, the 300 of a short flow 3.6 ms. A
/// short flow starts every 3.6 ms, so that the short flows load the link fully by themselves.
fn ends(transport: &str, shorts: u32) -> [u64; 2] {
    let stream = (0..shorts).map(|i| (2 + i % 6, 0, 300 * 1460, MS / 10 + u64::from(i) * 3_600_000_000));
    let rows: Vec<_> = std::iter::once((1, 0, 600 * 1460, 0)).chain(stream).collect();
    let flows = table(&format!("starvation-{transport}-{shorts}"), &rows);
    let outcome = run(&format!(
        "[topology]\nkind = 'star'\nhosts = 8\nrate = '1Gbps'\ndelay = '10us'\n{flows}{}",
        system(transport, "100pkt")
    ));
    let end = |flows: &[sim::outcome::FlowRow]| flows.iter().map(|flow| flow.finish_ps.expect("finished")).max().expect("flows");
    [end(&outcome.flows[..1]), end(&outcome.flows[1..])]
}

#[test]
fn shortest_first_starves_a_long_flow_and_merp_does_not() {
    for shorts in [40, 80] {
        let stream = u64::from(shorts) * 3_600_000_000;
        let [long, _] = ends("pfabric", shorts);
        assert!(long > stream, "pFabric: done at {long} ps of a stream of {stream} ps");
        // The long flow waits for three short flows, and as long again for changes of flow, whatever the length of the stream.
        let [long, last] = ends("merp", shorts);
        assert!(long < 44 * MS, "MERP: done at {long} ps of a stream of {stream} ps");
        assert!(last > long, "{last}");
    }
}
