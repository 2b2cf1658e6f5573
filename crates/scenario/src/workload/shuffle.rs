//! Every host fetches data from every other host, in its own random order, a few at a time: the
//! shuffle of a MapReduce job.
//!
//! A fetch is a flow from another host to the host that fetches. The fetches of a host are a group,
//! so that the completion time of the group is the completion time of the host.
//!
//! Source: DiFS (Cui and Qian, 2013), section IV-C.
//!
//! Model: without disks, as in the source.
//!
//! Assumed: the request for a fetch is not a packet; the sending host gets it no sooner than a
//! packet without payload would arrive. With `parallel` above 1, fetch i of a host waits for its
//! fetch i - `parallel`, not for the fetch that ends first.

use super::size::Unit;
use super::{After, Draw, Drawn, Env, MAX_TIME, Workload};
use base::params::Problem;
use base::registry::Meta;
use base::{Bytes, Dur, HostId, Offered, Streams, Time};

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "every host fetches from every other host, in random order, a few at a time",
    source: "DiFS (2013) section IV-C",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of a shuffle.
    pub struct Params {
        /// Amount of data that a host fetches from each other host.
        size: Bytes = "" in Bytes(1)..=Bytes(1_000_000_000_000), "";
        /// Unit of the size: application bytes, or bytes on the wire.
        size_unit: Unit = "payload", "application view";
        /// Number of fetches of a host that run at the same time. The next fetch starts when an
        /// earlier fetch has ended.
        parallel: u32 = "1" in 1..=100_000, "DiFS section IV-C: sequentially";
        /// Start of the first fetches.
        start: Dur = "0s" in Dur::ZERO..=MAX_TIME, "flowloom: with the run";
    }
}

/// Returns the problems that depend on the rest of the scenario.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let others = (env.net.hosts().len() as u64).saturating_sub(1);
    let problem = |key, message: String, hint: String| Some(Problem { key, message, hint });
    let found = match others {
        0 => problem("parallel", "the network has fewer than two hosts".to_owned(), "use a larger network".to_owned()),
        _ if u64::from(params.parallel) > others => {
            let message = format!("`{}`: a host fetches from only {others} other hosts", params.parallel);
            problem("parallel", message, format!("write `parallel = {others}` or less"))
        }
        _ => None,
    };
    found.into_iter().collect()
}

/// A shuffle.
pub struct Shuffle {
    params: Params,
    hosts: u64,
}

impl Shuffle {
    /// Creates the workload with these parameters.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        Shuffle { params: params.clone(), hosts: env.net.hosts().len() as u64 }
    }
    /// Returns the parameters that have no effect with the values of the others.
    pub fn ignored(_params: &Params) -> Vec<&'static str> {
        Vec::new()
    }
}

impl Workload for Shuffle {
    fn draw(&self, env: &Env<'_>, streams: &mut Streams) -> Result<Draw, String> {
        let (p, hosts) = (&self.params, self.hosts as u32);
        let mut rng = streams.take("workload/pairs", &[env.index]);
        let size_bytes = env.payload(p.size.0, p.size_unit);
        let mut flows: Vec<Drawn> = Vec::with_capacity(self.flows() as usize);
        for dst in (0..hosts).map(HostId) {
            let mut from: Vec<HostId> = (0..hosts).map(HostId).filter(|src| *src != dst).collect();
            // Fisher-Yates shuffle.
            for i in (1..from.len()).rev() {
                from.swap(i, rng.below(i as u64 + 1) as usize);
            }
            for (place, src) in (0..).zip(from) {
                let before = (flows.len() as u32).checked_sub(p.parallel).filter(|_| place >= p.parallel);
                let after = before.map(|before| Box::new(After::new(&[before], Dur::ZERO)));
                let start = if after.is_none() { Time::ZERO + p.start } else { Time::ZERO };
                flows.push(Drawn { src, dst, size_bytes, start, deadline: None, group: Some(dst.0), connection: None, after });
            }
        }
        Ok(flows.into())
    }
    fn flows(&self) -> u64 {
        self.hosts.saturating_mul(self.hosts.saturating_sub(1))
    }
    fn offered(&self, env: &Env<'_>) -> Offered {
        Offered { load: None, sizes: vec![(env.payload(self.params.size.0, self.params.size_unit), 1.0)] }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;

    #[test]
    fn every_host_fetches_from_all_others_one_after_the_other() {
        let bench = Bench::new("fat_tree", &[]);
        let set = [("size", "500MB"), ("start", "1ms")];
        let flows = bench.draw("shuffle", &set, 1);
        assert_eq!(flows.len(), 240);
        let mut orders = Vec::new();
        for (dst, fetches) in flows.chunks(15).enumerate() {
            let order: Vec<u32> = fetches.iter().map(|flow| flow.src.0).collect();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..16).filter(|src| *src != dst as u32).collect::<Vec<_>>());
            orders.push(order.iter().map(|src| (src + 16 - dst as u32) % 16).collect::<Vec<_>>());
            assert!(fetches.iter().all(|flow| flow.dst.0 == dst as u32 && flow.group == Some(dst as u32)));
            assert!(fetches.iter().all(|flow| flow.size_bytes == 500_000_000 && flow.deadline.is_none()));
            assert_eq!((fetches[0].start, &fetches[0].after), (Time(1_000_000_000), &None));
            for (place, fetch) in fetches.iter().enumerate().skip(1) {
                let before = (15 * dst + place - 1) as u32;
                assert_eq!(fetch.after.as_deref(), Some(&After::new(&[before], Dur::ZERO)));
            }
        }
        orders.sort_unstable();
        orders.dedup();
        assert_eq!(orders.len(), 16, "each host has its own order");
        assert_ne!(flows, bench.draw("shuffle", &set, 2));
    }

    #[test]
    fn several_fetches_run_at_a_time() {
        let bench = Bench::new("star", &[("hosts", "5")]);
        let flows = bench.draw("shuffle", &[("size", "1MB"), ("parallel", "3")], 1);
        let waits: Vec<Option<u32>> = flows[4..8].iter().map(|flow| flow.after.as_ref().map(|after| after.flows[0].0)).collect();
        assert_eq!(waits, [None, None, None, Some(4)]);
        assert!(bench.draw("shuffle", &[("size", "1MB"), ("parallel", "4")], 1).iter().all(|flow| flow.after.is_none()));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let bench = Bench::new("star", &[("hosts", "4")]);
        let refused = |bench: &Bench, set: &[(&'static str, &str)]| bench.read("shuffle", set).err().unwrap();
        assert!(refused(&bench, &[]).contains("`size` is missing"));
        assert_eq!(refused(&bench, &[("size", "1MB"), ("parallel", "4")]), "parallel: `4`: a host fetches from only 3 other hosts");
        assert!(refused(&Bench::new("star", &[("hosts", "1")]), &[("size", "1MB")]).contains("fewer than two hosts"));
    }
}
