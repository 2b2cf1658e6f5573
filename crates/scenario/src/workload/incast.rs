//! Many senders, one receiver, all at once.
//!
//! Senders are the hosts after the receiver in the order of their numbers, round and round: with more senders than hosts some hosts
//! send several flows. The flows of one round are a group. Each flow starts up to `jitter` after its round, drawn by the seed.
//!
//! Source: Vasudevan et al., SIGCOMM 2009, section 2.
//!
//! Assumed: the jitter is uniform; the source gives none.

use super::hosts::HostName;
use super::load::Traffic;
use super::size::Unit;
use super::{Drawn, Env, FanIn, MAX_TIME, Workload, hosts};
use base::params::Problem;
use base::registry::Meta;
use base::{Bytes, Dur, HostId, Offered, Streams, Time};

/// What `list` and `check` know of it.
pub const META: Meta = Meta {
    summary: "many senders, one receiver, all at once; again after an interval if wanted",
    source: "Vasudevan et al., SIGCOMM 2009 section 2; MERP section 6.3",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of an incast.
    pub struct Params {
        /// How many flows arrive at once.
        senders: u32 = "" in 1..=10_000_000, "";
        /// Size of each.
        size: Bytes = "" in Bytes(1)..=Bytes(1_000_000_000_000), "";
        /// What the size counts: application bytes, or bytes on the wire.
        size_unit: Unit = "payload", "application view";
        /// The host that receives.
        receiver: HostName = "h0", "flowloom: the first host";
        /// When the first round starts.
        start: Dur = "0s" in Dur::ZERO..=MAX_TIME, "flowloom: with the run";
        /// How many rounds.
        repeat: u32 = "1" in 1..=10_000_000, "a single round";
        /// From one round to the next.
        interval: Dur = "10ms" in Dur(1)..=MAX_TIME, "longer than a round of a few MB at 10 Gb/s";
        /// Each flow starts so much later than its round at most, drawn uniformly by the seed.
        jitter: Dur = "10us" in Dur::ZERO..=MAX_TIME, "flowloom: servers do not answer in the same instant, and seeds differ";
    }
}

/// Problems that show only against the rest of the scenario.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut add = |key, message: String, hint: &str| found.push(Problem { key, message, hint: hint.to_owned() });
    match hosts::host(env.net, &params.receiver.0) {
        Err(message) => add("receiver", message, "`receiver` is the name of a host"),
        Ok(_) if env.net.hosts().len() < 2 => {
            add("receiver", "the network has no other host".to_owned(), "take a larger network");
        }
        Ok(_) => {}
    }
    let last = params
        .interval
        .0
        .saturating_mul(u64::from(params.repeat - 1))
        .saturating_add(params.start.0)
        .saturating_add(params.jitter.0);
    if last > MAX_TIME.0 {
        add("repeat", format!("the last round would start after {MAX_TIME}"), "take fewer rounds or a shorter `interval`");
    }
    found
}

/// The workload.
pub struct Incast(Params);

impl Incast {
    /// With these parameters.
    pub fn new(params: &Params, _env: &Env<'_>) -> Self {
        Incast(params.clone())
    }
    /// Parameters that have no effect beside the others.
    pub fn ignored(params: &Params) -> Vec<&'static str> {
        if params.repeat == 1 { vec!["interval"] } else { Vec::new() }
    }
}

impl Workload for Incast {
    fn draw(&self, env: &Env<'_>, streams: &mut Streams) -> Result<Vec<Drawn>, String> {
        let p = &self.0;
        let dst = hosts::host(env.net, &p.receiver.0)?;
        let others = env.net.hosts().len() as u32 - 1;
        if others == 0 {
            return Err("`incast` needs two hosts".to_owned());
        }
        let size_bytes = env.payload(p.size.0, p.size_unit);
        let mut rng = streams.take("workload/jitter", &[env.index]);
        let mut jitter = || if p.jitter == Dur::ZERO { Dur::ZERO } else { Dur(rng.below(p.jitter.0)) };
        let mut flow = |round: u32, i: u32| Drawn {
            src: HostId((dst.0 + 1 + i % others) % (others + 1)),
            dst,
            size_bytes,
            start: Time::ZERO + p.start + p.interval * u64::from(round) + jitter(),
            deadline: None,
            group: Some(round),
            after: None,
        };
        let all = (0..p.repeat).flat_map(|round| (0..p.senders).map(move |i| (round, i)));
        Ok(all.map(|(round, i)| flow(round, i)).collect())
    }
    fn flows(&self) -> u64 {
        u64::from(self.0.senders) * u64::from(self.0.repeat)
    }
    fn traffic(&self, env: &Env<'_>) -> Option<Traffic> {
        let p = &self.0;
        let dst = hosts::host(env.net, &p.receiver.0).ok()?;
        let hosts = env.net.hosts().len() as u32;
        let wire = env.packets.wire(env.payload(p.size.0, p.size_unit));
        let bps = f64::from(p.senders) * wire as f64 * 8e12 / p.interval.0 as f64;
        // With more senders than hosts the shares of hosts differ by a flow, which is left out.
        let sources = (0..p.senders.min(hosts.saturating_sub(1))).map(|i| HostId((dst.0 + 1 + i) % hosts)).collect();
        let traffic = Traffic { key: "interval", bps, sources, targets: vec![dst], across: false };
        (p.repeat > 1).then_some(traffic)
    }
    fn fan_in(&self, env: &Env<'_>) -> Option<FanIn> {
        let p = &self.0;
        let size_bytes = env.payload(p.size.0, p.size_unit);
        Some(FanIn { flows: p.senders.into(), size_bytes, spread: p.jitter })
    }
    fn offered(&self, env: &Env<'_>) -> Offered {
        Offered { load: None, sizes: vec![(env.payload(self.0.size.0, self.0.size_unit), 1.0)] }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;

    #[test]
    fn senders_go_round_the_other_hosts() {
        let bench = Bench::new("star", &[("hosts", "4")]);
        let set = [("senders", "5"), ("size", "64KB"), ("receiver", "h2"), ("repeat", "2"), ("start", "1ms"), ("jitter", "0s")];
        let flows = bench.draw("incast", &set, 1);
        assert_eq!(flows.len(), 10);
        assert_eq!(flows[..5].iter().map(|f| f.src.0).collect::<Vec<_>>(), [3, 0, 1, 3, 0]);
        assert!(flows.iter().all(|f| f.dst == HostId(2) && f.size_bytes == 64_000));
        assert_eq!((flows[4].start, flows[5].start), (Time(1_000_000_000), Time(11_000_000_000)));
        assert_eq!((flows[4].group, flows[5].group), (Some(0), Some(1)));
        let offered = bench.read("incast", &set).unwrap().offered(&bench.env());
        assert_eq!((offered.load, offered.sizes), (None, vec![(64_000, 1.0)]));
    }

    #[test]
    fn flows_start_a_little_late_and_seeds_differ() {
        let bench = Bench::new("star", &[("hosts", "9")]);
        let starts = |jitter: &str, seed| -> Vec<u64> {
            let flows = bench.draw("incast", &[("senders", "8"), ("size", "1KB"), ("start", "1ms"), ("jitter", jitter)], seed);
            flows.iter().map(|flow| flow.start.0 - 1_000_000_000).collect()
        };
        let first = starts("5us", 1);
        assert!(first.iter().all(|late| *late < 5_000_000) && first.iter().max() > Some(&2_500_000), "{first:?}");
        assert_eq!(first, starts("5us", 1));
        assert_ne!(first, starts("5us", 2));
        assert!(starts("0s", 1).iter().all(|late| *late == 0));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let bench = Bench::new("star", &[]);
        for (set, why) in [
            (vec![("size", "1KB")], "`senders` is missing"),
            (vec![("senders", "2"), ("size", "1KB"), ("receiver", "s0")], "a switch"),
            (vec![("senders", "2"), ("size", "1KB"), ("repeat", "10000000"), ("interval", "1000s")], "would start after"),
        ] {
            let message = bench.read("incast", &set).err().unwrap();
            assert!(message.contains(why), "{set:?}: {message}");
        }
        let one = Bench::new("star", &[("hosts", "1")]);
        assert!(one.read("incast", &[("senders", "2"), ("size", "1KB")]).err().unwrap().contains("no other host"));
    }
}
