//! Random scenarios over the whole space of topologies, workloads, systems and buffers, with every invariant on.
//!
//! 80 scenarios here, more with `FLOWLOOM_FUZZ=<count>` (`make slow`). A failure prints the scenario.

mod common;
use base::Rng;
use common::{SYSTEMS, plan, run_point, system, table};
use sim::outcome::StopReason;

/// A random scenario, and whether its buffers are deep enough that every flow must finish well before the end.
fn scenario(rng: &mut Rng, n: u64) -> (String, bool) {
    let mut pick = |choices: &[&str]| choices[rng.below(choices.len() as u64) as usize].to_owned();
    let rate = pick(&["1Gbps", "3Gbps", "10Gbps", "100Gbps"]);
    let delay = pick(&["1ns", "1us", "10us", "123456ps"]);
    let topology = pick(&[
        "kind = 'single_tree'",
        "kind = 'single_tree'\nracks = 2\nhosts_per_rack = 2",
        "kind = 'star'\nhosts = 7",
        "kind = 'dumbbell'\nleft = 3\nright = 4",
        "kind = 'chain'\nswitches = 4\nhosts_per_switch = 2",
        "kind = 'chain'\nswitches = 10\nhosts_per_switch = 1",
        "kind = 'fat_tree'\nk = 4",
    ]);
    let topology = format!("[topology]\n{topology}\nrate = '{rate}'\ndelay = '{delay}'\n");
    let hosts = 4;
    let load = pick(&["0.3", "0.7", "1.2"]);
    let size = pick(&[
        "size = 'fixed'\nmean = '1B'",
        "size = 'fixed'\nmean = '1461B'",
        "size = 'pareto'\nmean = '20KB'\nshape = 1.3",
        "size = 'exponential'\nmean = '50KB'",
        "size = 'uniform'\nmin = '1B'\nmax = '100KB'",
        "size = 'cdf'\ncdf = 'fb-hadoop-hpcc'",
    ]);
    let kind = pick(&["poisson", "poisson", "incast", "table"]);
    let transport = pick(&SYSTEMS.map(|s| s.0));
    let limit = pick(&["1pkt", "3pkt", "20pkt", "100pkt", "1500B", "30KB", "unlimited"]);
    let low_water = pick(&["3KB", "0B", "unlimited"]);
    let workload = match kind.as_str() {
        "poisson" => format!("[workload.web]\nkind = 'poisson'\nflows = 40\nload = {load}\n{size}\n"),
        "incast" => "[workload.burst]\nkind = 'incast'\nsenders = 3\nsize = '40KB'\nreceiver = 0\n".to_owned(),
        _ => {
            // Ties everywhere: everyone starts at once.
            let rows: Vec<_> = (0..30)
                .map(|_| {
                    let (src, hop) = (rng.below(hosts), 1 + rng.below(hosts - 1));
                    (src as u32, ((src + hop) % hosts) as u32, 1 + rng.below(30_000), rng.below(2) * 1_000_000)
                })
                .collect();
            table(&format!("fuzz-{n}"), &rows)
        }
    };
    let text = format!(
        "seed = {}\nend = '30s'\n{topology}{workload}{}nic = {{ low_water = '{low_water}' }}\n",
        1 + rng.below(1000),
        system(&transport, &limit)
    );
    (text, !["1pkt", "3pkt", "1500B"].contains(&limit.as_str()))
}

#[test]
fn random_scenarios_keep_every_invariant() {
    let count = std::env::var("FLOWLOOM_FUZZ").ok().and_then(|n| n.parse().ok()).unwrap_or(80);
    for n in 0..count {
        let mut rng = Rng::stream(20, "fuzz", &[n]);
        let (text, deep) = scenario(&mut rng, n);
        let check = || {
            let outcome = run_point(&plan(&text).points[0]);
            for flow in &outcome.flows {
                if let Some(fct) = flow.fct_ps() {
                    assert!(fct >= flow.ideal_fct_ps, "flow {} beats the ideal: {fct} < {} ps", flow.flow_id, flow.ideal_fct_ps);
                }
                assert!(flow.tx_packets >= flow.retx_packets);
            }
            if deep {
                assert_eq!(outcome.stop_reason, StopReason::Finished, "flows are left unfinished");
            }
        };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check));
        assert!(result.is_ok(), "scenario {n} failed:\n{text}");
    }
}
