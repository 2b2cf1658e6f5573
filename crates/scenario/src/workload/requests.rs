//! Requests in a closed loop: an aggregator sends a request to its workers, and the next request
//! when all answers have ended.
//!
//! Each answer is a flow from a worker to the aggregator. Workers are the hosts after the
//! aggregator in the order of their numbers, starting again at host 0 after the last host. The
//! answers to one request are a group. The answers to the next request start `think_time` after the
//! last answer has ended. An answer has ended when its last byte is at the aggregator, when its
//! sender has given up, or when it is `give_up_after` old. An answer that is too old is not
//! stopped.
//!
//! Source: STAM (Zang, Lan, Hu, Acta Electronica Sinica 47(10), 2019), section 5.1.
//!
//! Assumed: the request itself is not a packet; a worker gets it no sooner than a packet without
//! payload would arrive. `think_time = "auto"` is one round trip of the worker: a full packet to
//! the aggregator and a packet without payload back over an idle network. An answer that never ends
//! delays the next request by `give_up_after`; the source gives no time, and 100 ms is four times
//! its latest deadline. `repeat = "auto"` draws twice as many requests as the aggregator's link can
//! carry from `start` to `end`, since not all bytes of answers that are given up are sent.

use super::hosts::HostName;
use super::sizes::Sizes;
use super::{After, Draw, Drawn, Env, FanIn, MAX_TIME, Workload, hosts};
use base::params::{Auto, Problem};
use base::registry::Meta;
use base::{Dur, HostId, Offered, Streams, Time, math};
use fabric::routes::{self, Routes};

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "an aggregator sends a request to its workers, and the next request when all have answered",
    source: "STAM (2019) section 5.1",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of requests.
    pub struct Params {
        ..sizes: Sizes {
            size = "uniform", "STAM section 5.1.1";
            min = "100KB", "STAM section 5.1.1";
            max = "500KB", "STAM section 5.1.1";
        }
        /// Number of answers to a request.
        workers: u32 = "" in 1..=10_000, "";
        /// The host that sends the requests.
        aggregator: HostName = "h0", "flowloom: the first host";
        /// Start of the answers to the first request.
        start: Dur = "0s" in Dur::ZERO..=MAX_TIME, "flowloom: with the run";
        /// Number of requests; `auto`: as many as possible before the run's `end`.
        repeat: Auto<u32> = "auto" in Auto::Set(1)..=Auto::Set(1_000_000), "STAM section 5.1: the next starts when all have answered";
        /// Time from the last end of an answer to the start of the next answers; `auto`: one round
        /// trip.
        think_time: Auto<Dur> = "auto" in Auto::Set(Dur::ZERO)..=Auto::Set(MAX_TIME), "flowloom: the request reaches the worker, and a packet comes back";
        /// Age at which an answer counts as ended for the next request.
        give_up_after: Dur = "100ms" in Dur(1)..=MAX_TIME, "flowloom: four times the latest deadline of STAM section 5.1.1";
    }
}

/// Maximum number of pairs of an answer and an answer that it waits for. Each pair takes about 40
/// bytes.
const MOST_PAIRS: u64 = 10_000_000;

/// Returns the problems that depend on the rest of the scenario.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let mut found = params.sizes.problems(env);
    let mut add = |key, message: String, hint: &str| found.push(Problem { key, message, hint: hint.to_owned() });
    let aggregator = hosts::host(env.net, &params.aggregator.0);
    match &aggregator {
        Err(message) => add("aggregator", message.clone(), "`aggregator` is the name of a host"),
        Ok(_) if env.net.hosts().len() < 2 => {
            add("aggregator", "the network has no other host".to_owned(), "use a larger network");
        }
        Ok(_) => {}
    }
    match (params.repeat, env.end) {
        (Auto::Auto, None) => add(
            "repeat",
            "with `auto`, requests never stop, but the run has no `end`".to_owned(),
            "write `end = \"1s\"` at the top of the file, or a `repeat`",
        ),
        (Auto::Auto, Some(end)) if end.0 <= params.start.0 => {
            add("start", format!("`{}` is not before the run's `end`", params.start), "write an earlier `start`, or a later `end`");
        }
        _ => {}
    }
    if found.is_empty() {
        let workers = u64::from(params.workers);
        let pairs = (Requests::new(params, env).requests - 1).saturating_mul(workers * workers);
        if pairs > MOST_PAIRS {
            let message = format!("each of {workers} answers waits for {workers} others, which is {pairs} pairs over all requests");
            let hint = format!("at most {MOST_PAIRS} are allowed: write fewer `workers`, a smaller `repeat` or an earlier `end`");
            found.push(Problem { key: "workers", message, hint });
        }
    }
    found
}

/// Returns the number of requests that are drawn if no number is given.
fn as_many_as_fit(params: &Params, env: &Env<'_>) -> Option<u64> {
    let (law, aggregator) = (params.sizes.law(env).ok()?, hosts::host(env.net, &params.aggregator.0).ok()?);
    // Both directions of a cable have the same rate.
    let access = env.net.host_rate(aggregator);
    let span = env.end?.0.checked_sub(params.start.0)?;
    let bytes = env.packets.mean_wire(&law, params.sizes.size_unit) * f64::from(params.workers);
    let each = (bytes * 8e12 / access.0 as f64).min(params.give_up_after.0 as f64);
    Some(math::ceil(2.0 * span as f64 / each) as u64)
}

/// Requests in a closed loop.
pub struct Requests {
    params: Params,
    requests: u64,
}

impl Requests {
    /// Creates the workload with these parameters.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let requests = match params.repeat {
            Auto::Set(requests) => u64::from(requests),
            Auto::Auto => as_many_as_fit(params, env).unwrap_or(1).max(1),
        };
        Requests { params: params.clone(), requests }
    }
    /// Returns the parameters that have no effect with the values of the others.
    pub fn ignored(params: &Params) -> Vec<&'static str> {
        let single = params.repeat == Auto::Set(1);
        params.sizes.ignored().into_iter().chain(["think_time", "give_up_after"].into_iter().filter(|_| single)).collect()
    }
}

impl Workload for Requests {
    fn draw(&self, env: &Env<'_>, streams: &mut Streams) -> Result<Draw, String> {
        let p = &self.params;
        let (law, mut sizes) = (p.sizes.law(env)?, streams.take("workload/sizes", &[env.index]));
        let dst = hosts::host(env.net, &p.aggregator.0)?;
        let others = env.net.hosts().len() as u32 - 1;
        if others == 0 {
            return Err("`requests` needs at least two hosts".to_owned());
        }
        let worker = |i: u32| HostId((dst.0 + 1 + i % others) % (others + 1));
        let think: Vec<Dur> = match p.think_time {
            Auto::Set(time) => vec![time; p.workers as usize],
            Auto::Auto => {
                let (routes, packets) = (Routes::new(env.net, &[]), env.packets);
                let rtt = |path: &Vec<routes::CostedHop>| routes::rtt(path, packets.mtu, packets.header);
                let shortest = |src| routes.shapes(env.net, src, dst).iter().map(rtt).min().unwrap_or_default();
                (0..p.workers).map(|i| shortest(worker(i))).collect()
            }
        };
        let mut flows = Vec::new();
        for request in 0..self.requests as u32 {
            let before = request.checked_sub(1).map(|before| before * p.workers..request * p.workers);
            for i in 0..p.workers {
                let after = before.clone().map(|before| {
                    let after = After::new(&before.collect::<Vec<u32>>(), think[i as usize]);
                    Box::new(After { give_up_after: Some(p.give_up_after), ..after })
                });
                flows.push(Drawn {
                    src: worker(i),
                    dst,
                    size_bytes: env.payload(law.draw(&mut sizes), p.sizes.size_unit),
                    start: if request == 0 { Time::ZERO + p.start } else { Time::ZERO },
                    deadline: None,
                    group: Some(request),
                    connection: None,
                    after,
                });
            }
        }
        Ok(flows.into())
    }
    fn flows(&self) -> u64 {
        self.requests.saturating_mul(self.params.workers.into())
    }
    fn files(&self) -> Vec<String> {
        self.params.sizes.files()
    }
    fn fan_in(&self, env: &Env<'_>) -> Option<FanIn> {
        let size_bytes = self.offered(env).sizes.last()?.0;
        Some(FanIn { flows: self.params.workers.into(), size_bytes, spread: Dur::ZERO })
    }
    fn offered(&self, env: &Env<'_>) -> Offered {
        let Params { sizes, .. } = &self.params;
        Offered { load: None, sizes: sizes.law(env).map_or(Vec::new(), |law| env.packets.points(&law, sizes.size_unit)) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;

    #[test]
    fn answers_wait_for_all_of_the_request_before() {
        let bench = Bench::new("star", &[("hosts", "4")]);
        let set = [("workers", "4"), ("repeat", "3"), ("aggregator", "h2"), ("start", "1ms"), ("give_up_after", "50ms")];
        let flows = bench.draw("requests", &set, 1);
        assert_eq!(flows.iter().map(|f| f.src.0).collect::<Vec<_>>(), [3, 0, 1, 3].repeat(3));
        assert!(flows.iter().all(|f| f.dst == HostId(2) && (100_000..=500_000).contains(&f.size_bytes)));
        assert_eq!(flows.iter().map(|f| f.group.unwrap()).collect::<Vec<_>>(), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
        assert!(flows[..4].iter().all(|f| f.after.is_none() && f.start == Time(1_000_000_000)));
        // Two links of 10 Gb/s and 1 us: a full packet in one direction, a header back.
        let delay = Dur::from_ns(2 * (1200 + 1000) + 2 * (32 + 1000));
        let after =
            |flows: Vec<u32>, delay| Some(Box::new(After { give_up_after: Some(Dur::from_ms(50)), ..After::new(&flows, delay) }));
        assert!(flows[4..8].iter().all(|f| f.after == after(vec![0, 1, 2, 3], delay)));
        assert_eq!(flows[11].after, after(vec![4, 5, 6, 7], delay));
        let slow = bench.draw("requests", &[&set[..], &[("think_time", "3ms")]].concat(), 1);
        assert_eq!(slow[11].after, after(vec![4, 5, 6, 7], Dur::from_ms(3)));
        let sizes = |seed| bench.draw("requests", &set, seed).iter().map(|f| f.size_bytes).collect::<Vec<_>>();
        assert!(sizes(1) == sizes(1) && sizes(1) != sizes(2));
    }

    /// A request with 20 answers has 6.16 MB on the wire on average, which take 4.93 ms on the
    /// access link of 10 Gb/s: 203 requests a second; twice as many are drawn.
    #[test]
    fn as_many_requests_as_fit_before_the_end() {
        let bench = Bench::new("star", &[("hosts", "21")]);
        let drawn = |set: &[(&'static str, &str)]| {
            let env = Env { end: Some(Time::ZERO + Dur::from_secs(1)), ..bench.env() };
            let params = Params { workers: 20, ..read(set) };
            assert_eq!(check(&params, &env), []);
            let machine = Requests::new(&params, &env);
            let Draw { flows, .. } = machine.draw(&env, &mut Streams::new(1)).unwrap();
            assert_eq!(flows.len() as u64, machine.flows());
            flows.last().unwrap().group.unwrap() + 1
        };
        assert_eq!((drawn(&[]), drawn(&[("start", "500ms")])), (406, 203));
        assert_eq!(drawn(&[("give_up_after", "1ms")]), 2000);
        assert_eq!(drawn(&[("repeat", "7")]), 7);
    }

    fn read(set: &[(&'static str, &str)]) -> Params {
        struct Given<'a>(&'a [(&'static str, &'a str)]);
        impl base::params::Reader for Given<'_> {
            fn get(&mut self, key: &'static str) -> Option<base::params::Raw> {
                self.0.iter().find(|(k, _)| *k == key).map(|(_, v)| base::params::Raw::Str((*v).to_owned()))
            }
            fn fail(&mut self, _key: &'static str, _message: String) {}
        }
        <Params as base::params::Params>::read(&mut Given(set))
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let bench = Bench::new("star", &[]);
        for (set, why) in [
            (vec![], "`workers` is missing"),
            (vec![("workers", "2")], "repeat: with `auto`, requests never stop"),
            (vec![("workers", "2"), ("repeat", "1"), ("aggregator", "s0")], "aggregator: `s0` is a switch"),
            (vec![("workers", "2"), ("repeat", "1"), ("min", "2MB")], "min: `2MB` is above"),
            (
                vec![("workers", "1000"), ("repeat", "12")],
                "workers: each of 1000 answers waits for 1000 others, which is 11000000 pairs",
            ),
        ] {
            let message = bench.read("requests", &set).err().unwrap();
            assert!(message.contains(why), "{set:?}: {message}");
        }
        let env = Env { end: Some(Time(5)), ..bench.env() };
        let late = check(&Params { workers: 2, start: Dur(5), ..read(&[]) }, &env);
        assert_eq!(late[0].message, "`5ps` is not before the run's `end`");
        let one = Bench::new("star", &[("hosts", "1")]);
        assert!(one.read("requests", &[("workers", "2"), ("repeat", "1")]).err().unwrap().contains("no other host"));
    }
}
