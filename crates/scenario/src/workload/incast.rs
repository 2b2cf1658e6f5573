//! Many senders that send to one receiver at the same time.
//!
//! The flows of a round are a group. Each flow starts up to `jitter` after its round, drawn by the
//! seed. Rounds start at equal intervals or at random, a given number of times or until a time.
//! With `load`, the bytes of a round determine the interval:
//!
//! `interval = senders * wire bytes of a flow / (load * reference)`.
//!
//! With `senders = 32`, `load = 0.1` and `until = "web"`, incasts with a tenth of the capacity run
//! in addition to the workload `web` until the last flow of `web` starts.
//!
//! With `request`, the receiver sends a flow of that size to each sender, and the answer starts
//! when the request has arrived. The workload `requests` is a closed loop instead: the next request
//! starts when all answers have ended.
//!
//! Source: Vasudevan et al., SIGCOMM 2009, section 2.
//!
//! Assumed:
//! - The jitter is uniform; the source gives none.
//! - `select = "next"`: senders are the hosts after the receiver in the order of their numbers,
//!   starting again at host 0 after the last host. With more senders than hosts some hosts send
//!   several flows. With `"random"`, no host sends a second flow of a round before every other host
//!   has a flow.
//! - With random arrivals, the first round starts one gap after `start`. Gaps are rounded to whole
//!   picoseconds.

use super::hosts::HostName;
use super::load::{LoadRef, OfferedTraffic};
use super::size::Unit;
use super::{After, Draw, Drawn, Env, FanIn, MAX_TIME, Picks, Workload, hosts};
use base::params::{Auto, Param, Problem, Raw};
use base::registry::Meta;
use base::{Bytes, Dur, Fraction, HostId, Offered, Rate, Rng, Streams, Time, math};

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "many senders send to one receiver at the same time; optionally repeated at an interval, at random or at a load",
    source: "Vasudevan et al., SIGCOMM 2009 section 2; MERP section 6.3",
    ..Meta::PLAIN
};

/// The receiver of the flows of a round.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd)]
pub enum Receiver {
    /// This host.
    Host(HostName),
    /// A random host in each round, drawn by the seed.
    Random,
    /// Each host in turn, one per round.
    Rotating,
}

impl Param for Receiver {
    fn expects() -> String {
        format!("{}, `random` or `rotating`", HostName::expects())
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Str(text) if text == "random" => Ok(Receiver::Random),
            Raw::Str(text) if text == "rotating" => Ok(Receiver::Rotating),
            _ => HostName::parse(raw).map(Receiver::Host),
        }
    }
    fn show(&self) -> String {
        match self {
            Receiver::Host(name) => name.show(),
            Receiver::Random => "random".to_owned(),
            Receiver::Rotating => "rotating".to_owned(),
        }
    }
}

/// The end of the rounds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd)]
pub enum Until {
    /// At this time.
    At(Dur),
    /// At the last flow of another workload that starts at a known time.
    Workload(String),
}

impl Param for Until {
    fn expects() -> String {
        "a time, like `10ms`, or the name of another workload".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        match (Dur::parse(raw), raw) {
            (Ok(time), _) => Ok(Until::At(time)),
            (Err(_), Raw::Str(name)) => Ok(Until::Workload(name.clone())),
            (Err(_), _) => Err(format!("is not {}", Self::expects())),
        }
    }
    fn show(&self) -> String {
        match self {
            Until::At(time) => time.show(),
            Until::Workload(name) => name.clone(),
        }
    }
}

base::choice! {
    /// The hosts that send.
    pub enum Select {
        /// The hosts after the receiver, by number.
        Next = "next",
        /// Different hosts in each round, drawn by the seed.
        Random = "random",
    }
}

base::choice! {
    /// The starts of rounds.
    pub enum Arrivals {
        /// At equal intervals.
        Fixed = "fixed",
        /// At random, as a Poisson process: the interval is the mean.
        Poisson = "poisson",
    }
}

base::params! {
    /// Parameters of an incast.
    pub struct Params {
        /// Number of flows of a round.
        senders: u32 = "" in 1..=10_000_000, "";
        /// Size of each flow.
        size: Bytes = "" in Bytes(1)..=Bytes(1_000_000_000_000), "";
        /// Unit of the size: application bytes, or bytes on the wire.
        size_unit: Unit = "payload", "application view";
        /// The host that receives; `random`: a random host in each round; `rotating`: each host in
        /// turn, one per round.
        receiver: Receiver = "h0", "flowloom: the first host";
        /// The hosts that send: those after the receiver, or random hosts drawn for each round.
        select: Select = "next", "flowloom: the same in every round", quiet;
        /// Start of the first round.
        start: Dur = "0s" in Dur::ZERO..=MAX_TIME, "flowloom: with the run";
        /// Number of rounds.
        repeat: u32 = "1" in 1..=10_000_000, "a single round";
        /// Time until which rounds start, or the name of a workload whose last flow start ends the
        /// rounds; instead of `repeat`.
        until: Option<Until> = "none", "the count ends the rounds", quiet;
        /// Time between the starts of two rounds.
        interval: Dur = "10ms" in Dur(1)..=MAX_TIME, "longer than a round of a few MB at 10 Gb/s";
        /// Offered load: wire bytes of the answers as a fraction of `load_ref`. Sets the interval.
        load: Option<Fraction> = "none" in Some(Fraction(1_000))..=Some(Fraction(10_000_000_000)), "only `interval`", quiet;
        /// Reference of the load: the NICs of all hosts, the uplinks of top-of-rack switches, or a
        /// rate.
        load_ref: LoadRef = "hosts", "as `poisson`", quiet;
        /// Starts of rounds; `auto`: at equal intervals, but at random with `load`.
        arrivals: Auto<Arrivals> = "auto", "flowloom: with `load` as in `poisson`", quiet;
        /// Maximum delay of a flow after the start of its round, drawn uniformly by the seed.
        jitter: Dur = "10us" in Dur::ZERO..=MAX_TIME, "flowloom: servers do not answer in the same instant, and seeds differ";
        /// Size of the request to each sender; the answer starts when the request has arrived.
        request: Option<Bytes> = "none" in Some(Bytes(1))..=Some(Bytes(1_000_000_000_000)), "flowloom: servers answer at known times", quiet;
    }
}

/// Maximum number of rounds.
const MOST_ROUNDS: u64 = 10_000_000;

/// Returns the problems that depend on the rest of the scenario.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut add = |key, message: String, hint: &str| found.push(Problem { key, message, hint: hint.to_owned() });
    let receiver = match &params.receiver {
        Receiver::Host(name) => hosts::host(env.net, &name.0).map(|_| ()),
        Receiver::Random | Receiver::Rotating => Ok(()),
    };
    match receiver {
        Err(message) => add("receiver", message, "`receiver` is the name of a host, `random` or `rotating`"),
        Ok(()) if env.net.hosts().len() < 2 => {
            add("receiver", "the network has no other host".to_owned(), "use a larger network");
        }
        Ok(()) => {}
    }
    if let Some(load) = params.load {
        if params.load_ref.bps(env.net) == 0 {
            let hint = "this network has one switch tier: write `load_ref = \"hosts\"` or a rate";
            add("load_ref", "`uplinks`: no top-of-rack switch of this network has a link to another switch".to_owned(), hint);
        }
        if params.repeat == 1 && params.until.is_none() {
            let message = format!("`{load}` sets the time between rounds, but there is a single round");
            add("load", message, "write `repeat`, or `until` with a time or the name of another workload");
        }
    }
    if let Some(Until::At(until)) = params.until
        && until <= params.start
    {
        add("until", format!("`{until}` is not after `start`, `{}`", params.start), "write a later time");
    }
    if found.is_empty() {
        let last = match params.until {
            None => interval_ps(params, env) * f64::from(params.repeat - 1) + params.start.0 as f64 + params.jitter.0 as f64,
            Some(_) => 0.0,
        };
        if last > MAX_TIME.0 as f64 {
            let hint = "write a smaller `repeat` or a shorter `interval`";
            found.push(Problem {
                key: "repeat",
                message: format!("the last round would start after {MAX_TIME}"),
                hint: hint.to_owned(),
            });
        }
    }
    found
}

/// Returns the mean time between the starts of two rounds, in picoseconds.
fn interval_ps(params: &Params, env: &Env<'_>) -> f64 {
    params.load.map_or(params.interval.0 as f64, |load| {
        let offered = load.0 as f64 * params.load_ref.bps(env.net) as f64;
        f64::from(params.senders) * wire(params, env) as f64 * 8e12 * 1e9 / offered
    })
}

/// Returns the wire bytes of a flow.
fn wire(params: &Params, env: &Env<'_>) -> u64 {
    env.packets.wire(env.payload(params.size.0, params.size_unit))
}

/// An incast.
pub struct Incast {
    params: Params,
    /// Mean time between the starts of two rounds.
    interval_ps: f64,
    /// Latest start of a round, if it is known.
    until: Option<Time>,
}

impl Incast {
    /// Creates the workload with these parameters.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let until = params.until.as_ref().and_then(|until| match until {
            Until::At(time) => Some(Time::ZERO + *time),
            Until::Workload(name) => env.last_start(name),
        });
        Incast { params: params.clone(), interval_ps: interval_ps(params, env), until }
    }
    /// Returns the parameters that have no effect with the values of the others.
    pub fn ignored(params: &Params) -> Vec<&'static str> {
        let once = params.repeat == 1 && params.until.is_none();
        let none = [
            ("interval", once || params.load.is_some()),
            ("arrivals", once),
            ("repeat", params.until.is_some()),
            ("load_ref", params.load.is_none()),
        ];
        none.into_iter().filter(|(_, without)| *without).map(|(key, _)| key).collect()
    }
    fn is_random(&self) -> bool {
        let auto = if self.params.load.is_some() { Arrivals::Poisson } else { Arrivals::Fixed };
        self.params.arrivals.or(auto) == Arrivals::Poisson
    }
    /// Returns an upper bound of the number of rounds. With `until` and random arrivals, it is more
    /// than ten standard deviations above the mean.
    fn most_rounds(&self) -> u64 {
        match (&self.params.until, self.until) {
            (None, _) => self.params.repeat.into(),
            // The other workload has not been drawn yet.
            (Some(_), None) => 1,
            (Some(_), Some(until)) => {
                let mean = until.since(Time::ZERO + self.params.start).0 as f64 / self.interval_ps.max(1.0);
                let spare = if self.is_random() { 10.0 * math::sqrt(mean) + 10.0 } else { 1.0 };
                (mean + spare).min(MOST_ROUNDS as f64) as u64
            }
        }
    }
    /// Draws the starts of all rounds.
    fn rounds(&self, env: &Env<'_>, streams: &mut Streams) -> Result<Vec<Dur>, String> {
        if let (Some(Until::Workload(name)), None) = (&self.params.until, self.until) {
            return Err(format!("`until` names the workload `{name}`, which has no flow that starts at a known time"));
        }
        let mut gaps = self.is_random().then(|| streams.take("workload/arrivals", &[env.index]));
        let mut starts = Vec::new();
        let mut now = self.params.start;
        for round in 0..self.most_rounds() {
            match &mut gaps {
                Some(rng) => now = Dur(now.0.saturating_add(whole(rng.exponential(self.interval_ps)))),
                None => now = Dur(self.params.start.0.saturating_add(whole(self.interval_ps * round as f64))),
            }
            if self.until.is_some_and(|until| Time(now.0) > until) {
                break;
            }
            if now > MAX_TIME {
                return Err(format!("round {round} of `incast` would start after {MAX_TIME}"));
            }
            starts.push(now);
        }
        Ok(starts)
    }
}

/// Rounds to whole picoseconds.
fn whole(ps: f64) -> u64 {
    math::floor(ps + 0.5) as u64
}

/// Draws `count` hosts other than `dst`. Every host is drawn once before any host is drawn twice.
fn draw_others(count: u32, hosts: u32, dst: HostId, rng: &mut Rng) -> Vec<HostId> {
    let mut others: Vec<u32> = (0..hosts).filter(|host| *host != dst.0).collect();
    let mut drawn = Vec::with_capacity(count as usize);
    while drawn.len() < count as usize {
        let pass = others.len().min(count as usize - drawn.len());
        for place in 0..pass {
            let other = place + rng.below((others.len() - place) as u64) as usize;
            others.swap(place, other);
            drawn.push(HostId(others[place]));
        }
    }
    drawn
}

impl Workload for Incast {
    fn draw(&self, env: &Env<'_>, streams: &mut Streams) -> Result<Draw, String> {
        let p = &self.params;
        let hosts = env.net.hosts().len() as u32;
        if hosts < 2 {
            return Err("`incast` needs at least two hosts".to_owned());
        }
        let size_bytes = env.payload(p.size.0, p.size_unit);
        let starts = self.rounds(env, streams)?;
        let [mut jitter, mut pairs] = ["workload/jitter", "workload/pairs"].map(|name| streams.take(name, &[env.index]));
        let mut flows: Vec<Drawn> = Vec::new();
        for (round, start) in (0..).zip(starts) {
            let dst = match &p.receiver {
                Receiver::Host(name) => hosts::host(env.net, &name.0)?,
                Receiver::Random => HostId(pairs.below(hosts.into()) as u32),
                Receiver::Rotating => HostId(round % hosts),
            };
            let next = |i: u32| HostId((dst.0 + 1 + i % (hosts - 1)) % hosts);
            let sources = match p.select {
                Select::Next => (0..p.senders).map(next).collect(),
                Select::Random => draw_others(p.senders, hosts, dst, &mut pairs),
            };
            for src in sources {
                let late = if p.jitter == Dur::ZERO { Dur::ZERO } else { Dur(jitter.below(p.jitter.0)) };
                let start = Time::ZERO + start + late;
                let flow = Drawn { src, dst, size_bytes, start, deadline: None, group: Some(round), connection: None, after: None };
                let Some(request) = p.request else {
                    flows.push(flow);
                    continue;
                };
                let number = flows.len() as u32;
                flows.push(Drawn { src: dst, dst: src, size_bytes: request.0, ..flow.clone() });
                flows.push(Drawn { start: Time::ZERO, after: Some(Box::new(After::new(&[number], Dur::ZERO))), ..flow });
            }
        }
        Ok(flows.into())
    }
    fn flows(&self) -> u64 {
        let each = if self.params.request.is_some() { 2 } else { 1 };
        u64::from(self.params.senders).saturating_mul(self.most_rounds()).saturating_mul(each)
    }
    fn clocked(&self) -> bool {
        true
    }
    fn until_workload(&self) -> Option<&str> {
        match &self.params.until {
            Some(Until::Workload(name)) => Some(name),
            _ => None,
        }
    }
    fn reference(&self, env: &Env<'_>) -> Option<(Rate, Time)> {
        let p = &self.params;
        // Answers to requests start when the requests have ended, so they have no load.
        p.load.filter(|_| p.request.is_none()).map(|_| (Rate(p.load_ref.bps(env.net)), Time(p.start.0)))
    }
    fn traffic(&self, env: &Env<'_>) -> Option<OfferedTraffic> {
        let p = &self.params;
        let hosts = env.net.hosts().len() as u32;
        let bps = f64::from(p.senders) * wire(p, env) as f64 * 8e12 / self.interval_ps;
        let key = if p.load.is_some() { "load" } else { "interval" };
        let all = || (0..hosts).map(HostId).collect::<Vec<_>>();
        let (sources, targets) = match (&p.receiver, p.select) {
            (Receiver::Host(name), select) => {
                let dst = hosts::host(env.net, &name.0).ok()?;
                // With more senders than hosts, some hosts send one flow more than others; this
                // difference is ignored.
                let senders = if select == Select::Random { hosts - 1 } else { p.senders.min(hosts.saturating_sub(1)) };
                ((0..senders).map(|i| HostId((dst.0 + 1 + i) % hosts)).collect(), vec![dst])
            }
            _ => (all(), all()),
        };
        let traffic = OfferedTraffic { key, bps, sources, targets, across: false };
        (p.repeat > 1 || p.until.is_some()).then_some(traffic)
    }
    fn picks(&self, env: &Env<'_>) -> Option<Picks> {
        let p = &self.params;
        match &p.receiver {
            Receiver::Random => Some(Picks::all(env)),
            _ if p.select == Select::Next => None,
            Receiver::Rotating => Some(Picks::all(env)),
            Receiver::Host(name) => Some(Picks { targets: vec![hosts::host(env.net, &name.0).ok()?], ..Picks::all(env) }),
        }
    }
    fn fan_in(&self, env: &Env<'_>) -> Option<FanIn> {
        let p = &self.params;
        let size_bytes = env.payload(p.size.0, p.size_unit);
        Some(FanIn { flows: p.senders.into(), size_bytes, spread: p.jitter })
    }
    fn offered(&self, env: &Env<'_>) -> Offered {
        let p = &self.params;
        let size = env.payload(p.size.0, p.size_unit);
        let sizes = match p.request {
            None => vec![(size, 1.0)],
            Some(Bytes(request)) if request == size => vec![(size, 1.0)],
            Some(Bytes(request)) => vec![(size.min(request), 0.5), (size.max(request), 0.5), (size.max(request), 1.0)],
        };
        Offered { load: p.load, sizes }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;

    #[test]
    fn senders_are_the_hosts_after_the_receiver() {
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

    /// (source, destination, start in ps, group) of each flow.
    fn drawn(set: &[(&'static str, &str)], seed: u64) -> Vec<(u32, u32, u64, u32)> {
        let bench = Bench::new("leaf_spine", &[("leaves", "2"), ("spines", "2"), ("hosts_per_leaf", "8")]);
        let flows = bench.draw("incast", set, seed);
        flows.iter().map(|f| (f.src.0, f.dst.0, f.start.0, f.group.unwrap())).collect()
    }

    #[test]
    fn receivers_rotate_or_are_drawn() {
        let plain = [("senders", "3"), ("size", "1KB"), ("repeat", "40"), ("jitter", "0s")];
        let with = |receiver| drawn(&[&plain[..], &[("receiver", receiver)]].concat(), 1);
        let of = |flows: &[(u32, u32, u64, u32)]| flows.iter().step_by(3).map(|f| f.1).collect::<Vec<_>>();
        assert_eq!(of(&with("rotating")), (0..40).map(|round| round % 16).collect::<Vec<_>>());
        let random = of(&with("random"));
        let different: std::collections::BTreeSet<_> = random.iter().collect();
        assert!(different.len() > 10 && random != of(&with("rotating")), "{random:?}");
        assert!(with("random").chunks(3).all(|round| round.iter().all(|f| f.1 == round[0].1 && f.0 != f.1)));
        // Senders are the hosts after their receiver.
        assert!(with("rotating").chunks(3).all(|round| (1..).zip(round).all(|(i, f)| f.0 == (f.1 + i) % 16)));
    }

    #[test]
    fn drawn_senders_differ_until_all_hosts_have_sent() {
        let with = |senders, seed| {
            let set = [("senders", senders), ("size", "1KB"), ("repeat", "50"), ("receiver", "random"), ("select", "random")];
            drawn(&set, seed)
        };
        let mut counts = [0; 16];
        for round in with("6", 1).chunks(6) {
            let different: std::collections::BTreeSet<_> = round.iter().map(|f| f.0).collect();
            assert!(different.len() == 6 && !different.contains(&round[0].1), "{round:?}");
            round.iter().for_each(|f| counts[f.0 as usize] += 1);
        }
        // 300 flows from 16 hosts: 18.75 each.
        assert!(counts.iter().all(|count| (6..=34).contains(count)), "{counts:?}");
        assert!(with("6", 1) == with("6", 1) && with("6", 1) != with("6", 2));
        // 40 senders of 15 hosts: two or three flows each.
        for round in with("40", 1).chunks(40) {
            let mut counts = [0; 16];
            round.iter().for_each(|f| counts[f.0 as usize] += 1);
            let own = round[0].1 as usize;
            assert!(
                (0..16).all(|host| if host == own { counts[host] == 0 } else { (2..=3).contains(&counts[host]) }),
                "{counts:?}"
            );
        }
    }

    #[test]
    fn rounds_come_at_random_with_the_interval_as_mean() {
        let set = [("senders", "1"), ("size", "1KB"), ("repeat", "4000"), ("interval", "100us"), ("jitter", "0s")];
        let starts = |more: &[(&'static str, &str)]| drawn(&[&set[..], more].concat(), 1).iter().map(|f| f.2).collect::<Vec<_>>();
        let random = starts(&[("arrivals", "poisson")]);
        assert_eq!(random.len(), 4000);
        let gaps: Vec<f64> =
            std::iter::once(random[0]).chain(random.windows(2).map(|w| w[1] - w[0])).map(|ps| ps as f64 * 1e-6).collect();
        let mean = gaps.iter().sum::<f64>() / 4000.0;
        let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / 4000.0).sqrt();
        // Exponential: both are 100 us, with standard errors of 1.6 and 2.2 us.
        assert!((mean - 100.0).abs() < 5.0 && (deviation - 100.0).abs() < 7.0, "{mean} and {deviation}");
        // Fixed arrivals take nothing from the random stream: older scenarios keep their flows.
        assert_eq!(starts(&[]), (0..4000).map(|round| round * 100_000_000).collect::<Vec<_>>());
        assert_eq!(starts(&[("arrivals", "fixed")]), starts(&[]));
    }

    /// 16 hosts of 10 Gb/s: a tenth is 16 Gb/s; a round of eight answers has 8 x 64 KB and 44 headers of 40 bytes each.
    #[test]
    fn a_load_sets_the_interval() {
        let set =
            [("senders", "8"), ("size", "64KB"), ("load", "0.1"), ("until", "200ms"), ("receiver", "random"), ("jitter", "0s")];
        let round_bits = 8.0 * 8.0 * (64_000.0 + 44.0 * 40.0);
        let offered = |more: &[(&'static str, &str)]| {
            let flows = drawn(&[&set[..], more].concat(), 3);
            let span = flows.last().unwrap().2 as f64 * 1e-12;
            assert!(span <= 0.2 && span > 0.19, "{span}");
            (flows.len() as f64 / 8.0 * round_bits / span / 160e9, flows.len())
        };
        let (random, _) = offered(&[]);
        // 760 rounds: a standard error of 3.6 %.
        assert!((random / 0.1 - 1.0).abs() < 0.11, "{random}");
        let (fixed, flows) = offered(&[("arrivals", "fixed")]);
        assert!((fixed / 0.1 - 1.0).abs() < 0.003 && flows == 8 * 761, "{fixed}, {flows}");
        let bench = Bench::new("leaf_spine", &[("leaves", "2"), ("spines", "2"), ("hosts_per_leaf", "8")]);
        let machine = bench.read("incast", &set).unwrap();
        let traffic = machine.traffic(&bench.env()).unwrap();
        assert!((traffic.bps / 16e9 - 1.0).abs() < 1e-9 && traffic.sources.len() == 16 && traffic.targets.len() == 16);
        assert_eq!(machine.reference(&bench.env()), Some((Rate(160_000_000_000), Time::ZERO)));
    }

    #[test]
    fn answers_wait_for_their_requests() {
        let bench = Bench::new("star", &[("hosts", "4")]);
        let set = [("senders", "2"), ("size", "64KB"), ("request", "100B"), ("repeat", "2"), ("jitter", "0s"), ("receiver", "h1")];
        let flows = bench.draw("incast", &set, 1);
        let ends = flows.iter().map(|f| (f.src.0, f.dst.0, f.size_bytes)).collect::<Vec<_>>();
        assert_eq!(ends[..4], [(1, 2, 100), (2, 1, 64_000), (1, 3, 100), (3, 1, 64_000)]);
        assert_eq!(flows.iter().map(|f| f.group.unwrap()).collect::<Vec<_>>(), [0, 0, 0, 0, 1, 1, 1, 1]);
        for (number, pair) in (0..).step_by(2).zip(flows.chunks(2)) {
            assert_eq!((&pair[0].after, &pair[1].after), (&None, &Some(Box::new(After::new(&[number], Dur::ZERO)))));
        }
        assert_eq!(flows[4].start, Time(10_000_000_000));
    }

    /// The digest is from a version without these parameters: the flows are the same.
    #[test]
    fn flows_of_older_settings_stay() {
        let bench = Bench::new("star", &[("hosts", "9")]);
        let set = [("senders", "8"), ("size", "64KB"), ("receiver", "h3"), ("repeat", "7"), ("interval", "3ms"), ("jitter", "8us")];
        let mut digest = 0u64;
        for flow in bench.draw("incast", &set, 5) {
            for word in [flow.src.0.into(), flow.dst.0.into(), flow.size_bytes, flow.start.0, flow.group.unwrap().into()] {
                digest = (digest ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(7);
            }
        }
        assert_eq!(digest, OLDER);
    }

    const OLDER: u64 = 0x5526_8d51_1bea_d3d8;

    #[test]
    fn what_contradicts_itself_is_refused() {
        let bench = Bench::new("star", &[]);
        let plain = [("senders", "2"), ("size", "1KB")];
        for (more, why) in [
            (vec![("load", "0.1")], "load: `0.1` sets the time between rounds, but there is a single round"),
            (vec![("load", "0.1"), ("repeat", "3"), ("load_ref", "uplinks")], "load_ref: `uplinks`"),
            (vec![("until", "1ms"), ("start", "1ms")], "until: `1ms` is not after `start`, `1ms`"),
            (vec![("receiver", "h99")], "receiver: there is no host `h99`"),
        ] {
            let message = bench.read("incast", &[&plain[..], &more].concat()).err().unwrap();
            assert!(message.contains(why), "{more:?}: {message}");
        }
    }
}
