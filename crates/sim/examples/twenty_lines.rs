//! Eight DCTCP flows across a leaf-spine with ECMP, without a scenario file.
use sim::base::params::{Auto, Params as _};
use sim::base::{Bytes, Limit};
use sim::fabric::{qdisc::ecn_threshold, router::ecmp};
use sim::proto::transport::dctcp;
use sim::scenario::{Outline, Scenario, topology::leaf_spine, workload::long, workload::pairs::Pairs};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let network = leaf_spine::Params { leaves: 2, spines: 2, hosts_per_leaf: 4, ..leaf_spine::Params::defaults() };
    let flows = long::Params { pairs: Pairs::Stride(4), size: Auto::Set(Bytes(1_000_000)), ..long::Params::defaults() };
    let queue = ecn_threshold::Params { mark: Auto::Set(Limit::Packets(65)), ..ecn_threshold::Params::defaults() };
    let dctcp = Outline::named("DCTCP").transport(dctcp::Params::defaults()).qdisc(queue).router(ecmp::Params::defaults());
    let plan = Scenario::new(network).workload("transfers", flows).system(dctcp).plan()?;
    for flow in sim::run(&plan.points[0].run, &mut |_| sim::Continue::Yes)?.flows {
        let fct_us = flow.fct_ps().map_or(f64::NAN, |ps| ps as f64 / 1e6);
        println!("h{} -> h{}: {} bytes in {fct_us:.1} us", flow.src, flow.dst, flow.size_bytes);
    }
    Ok(())
}
