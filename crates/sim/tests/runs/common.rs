//! Scenarios for tests: every entry of the registry in systems that it can run in, on a topology and a
//! workload given as text.
//!
//! A new entry needs no line here: [`kinds`] walks the rooms, the `META` of an entry says what it implies for
//! other slots, and combinations that the check of scenarios refuses are skipped. The lists below hold only
//! parameters that differ from the defaults.

use base::registry::Entry;
use base::{Dur, Rng};
use scenario::{Options, Outline, Plan, Point, ROOMS, SLOTS};
use sim::cut::Cut;
use sim::{Continue, Outcome, Threads};
use std::sync::Arc;

/// Parameters that replace an entry's defaults in every test. With them short queues mark, and flows of few
/// packets reach every phase.
const TUNED: [(&str, &str); 19] = [
    ("buffer", "complete total=60KB"),
    ("buffer", "dynamic total=40pkt alpha=0.5"),
    ("buffer", "pfc total=1GB xoff=3KB lossless=8"),
    ("qdisc", "red_ecn th_min=2pkt th_max=8pkt wq=0.2 max_p=0.3"),
    ("qdisc", "ecn_threshold mark=2pkt"),
    ("qdisc", "plugin mark=2"),
    ("transport", "dctcp sack=true"),
    ("transport", "cubic min_rtt_thresh=10us max_rtt_thresh=20us"),
    ("transport", "botcp occ_long=2 occ_short=4 occ_max=8"),
    ("transport", "homa rtt_bytes=3KB"),
    ("transport", "sird unsched_threshold=3KB sender_threshold=1460B"),
    ("transport", "dcpim short=2"),
    // The example is DCTCP.
    ("transport", "plugin g=0.25"),
    ("policy", "dard interval=200us jitter=300us poll=150us elephant=3KB delta=0"),
    ("router", "dard expiry=200us"),
    ("router", "difs elephant_bytes=3KB period=100us flow_timeout=1ms"),
    ("controller", "rebalance period=20us latency=7us threshold=0"),
    ("controller", "hedera period=200us latency=7us large_bytes=3KB t0=20"),
    ("receiver", "receive_queue rate=8Gbps per_packet=50ns hosts=h0..h2"),
];

/// Entries with other parameters, which are tried in addition to every entry with its usual parameters.
const VARIANTS: [(&str, &str); 37] = [
    ("policy", "pias thresholds=3KB,20KB count=sent aging=true aging_after=1"),
    ("policy", "plugin path=example first=3KB growth=7 sent=true aging=1"),
    ("policy", "edf_sjf by=remaining"),
    ("policy", "edf_sjf order=quantised times=100us,1ms,10ms sizes=3KB,20KB,60KB"),
    ("policy", "karuna type2_fraction=0.5 sizes=3KB,20KB thresholds=3KB,20KB aging_after=1"),
    ("policy", "aemon levels=8 thresholds=1pkt,2pkt,4pkt,8pkt,16pkt,32pkt,64pkt"),
    ("policy", "stam classes=2 thresholds=3KB init_rtt=10us tj=measured terminate=paper metadata=charged"),
    // No divisor of retransmission timeouts: probes fill short queues of NICs whenever they leave.
    ("policy", "dard initial=turn poll=20011ns interval=30us"),
    ("qdisc", "ecn_threshold mark=4KB"),
    ("qdisc", "ecn_threshold mark=2pkt at=dequeue"),
    ("qdisc", "red_ecn th_min=3KB th_max=3KB wq=1 chosen=mark_only"),
    ("qdisc", "red_ecn th_min=3KB th_max=9KB wq=1 max_p=0.5 spacing=geometric chosen=mark_only at=dequeue"),
    ("qdisc", "token_bucket rate=0.7 burst=1500B"),
    ("qdisc", "token_bucket rate=0.4Gbps burst=9KB"),
    ("qdisc", "trim headers=2pkt weight=2"),
    ("qdisc", "trim headers=200B full=drop trimmed=arriving"),
    ("qdisc", "strict classes=3 evict=worst_class mark=2pkt"),
    ("transport", "plugin path=example_transport timeout=500us"),
    ("transport", "bbr ecn=true quantum_time=1ms ack_every=2"),
    ("transport", "dctcp connections=peer"),
    ("transport", "uet connections=peer load_balancing=reps"),
    ("transport", "uet cc=both ack_bytes=1B sleek=true"),
    ("router", "spray mode=round_robin"),
    ("router", "conga mode=edge flowlet_gap=20us uplink_in_ce=true"),
    ("router", "fastest_path period=30us paths=2"),
    ("router", "letflow flowlet_timeout=20us flowlets=5"),
    ("router", "drill samples=1 memory=2"),
    ("router", "conweave theta_reply=3us theta_inactive=40us resume_extra=5us queues=1"),
    ("router", "difs elephant_bytes=0B rebalance=nsim ties=lowest count_intra_pod=false"),
    ("router", "difs measure=rate period=50us rate_slack=0"),
    // Some ports of MERP have room for few flows.
    ("agent", "merp table_limit=1"),
    ("agent", "merp table_limit=4"),
    ("receiver", "receive_queue rate=0.9Gbps limit=20pkt"),
    ("controller", "rebalance period=150us latency=0s"),
    ("controller", "rebalance period=50us latency=400us threshold=0.1"),
    ("controller", "hedera period=150us latency=0s placement=gff"),
    ("controller", "hedera period=130us large=rate large_rate=0.01 key=src"),
];

/// The names of all entries that can fill a place of a system: a slot, or `nic.qdisc`.
pub fn kinds(place: &str) -> Vec<&'static str> {
    ROOMS.iter().find(|one| one.name == room(place)).expect("a room of this name").names().collect()
}

/// Every entry of a place and its [`VARIANTS`], as [`with`] takes them.
pub fn choices(place: &str) -> Vec<&'static str> {
    let variants = VARIANTS.iter().filter(|variant| variant.0 == room(place)).map(|variant| variant.1);
    kinds(place).into_iter().chain(variants).collect()
}

/// The entry of this name that can fill a place of a system: a slot, or `nic.qdisc`.
fn entry(place: &str, kind: &str) -> &'static Entry {
    let room = room(place);
    let found = ROOMS.iter().find(|one| one.name == room).and_then(|one| one.entry(kind));
    found.unwrap_or_else(|| panic!("no {room} is called `{kind}`"))
}

fn room(place: &str) -> &str {
    place.rsplit('.').next().unwrap_or(place)
}

/// The kind and the parameters in `"kind key=value key=value"`.
fn words(choice: &str) -> (&str, impl Iterator<Item = (&str, &str)>) {
    let mut words = choice.split(' ');
    (words.next().unwrap_or(choice), words.filter_map(|word| word.split_once('=')))
}

/// Sets the parameters that replace an entry's defaults in tests: a queue of `limit`, no timeout above 10 ms,
/// and those in [`TUNED`].
fn tune(mut system: Outline, place: &str, kind: &str, limit: &str) -> Outline {
    let long = |default: &str| base::units::parse_dur(default).is_ok_and(|time| time > Dur::from_ms(10));
    for field in entry(place, kind).fields {
        let value = match field.name {
            "limit" => limit,
            "min_rto" | "init_rto" if long(field.default) => "10ms",
            _ => continue,
        };
        system = system.set(&format!("{place}.{}", field.name), value);
    }
    let own = TUNED.iter().filter(|tuned| tuned.0 == room(place)).map(|tuned| words(tuned.1)).filter(|(known, _)| *known == kind);
    own.flat_map(|(_, pairs)| pairs).fold(system, |system, (key, value)| system.set(&format!("{place}.{key}"), value))
}

/// The system around an entry, as [`scenario::system_of`] makes it, with queues of `limit` and the tests' parameters.
pub fn system_of(slot: &str, kind: &str, limit: &str) -> Outline {
    let outline = scenario::system_of(slot, kind);
    let mut system = Outline::default();
    for slot in SLOTS {
        let Some(kind) = outline.get(&format!("{}.kind", slot.name)).or(slot.default_kind()) else { continue };
        let tuned = tune(system.clone(), slot.name, kind, limit);
        if tuned != system {
            system = tuned.set(&format!("{}.kind", slot.name), kind);
        }
    }
    // Parameters that the entries of the outline set for each other take precedence, except over `limit`: only a
    // buffer needs queues without one.
    let set = |key: &&str| !key.ends_with(".limit") || outline.get(key) == Some("unlimited");
    outline.keys().filter(set).fold(system, |system, key| system.set(key, outline.get(key).unwrap_or_default()))
}

/// A system with another part in a place: a slot, or `nic.qdisc`. The part is one of the place's [`choices`].
/// Other places get the parts that it needs, except for the transport.
pub fn with(system: &Outline, place: &str, choice: &str, limit: &str) -> Outline {
    let (kind, pairs) = words(choice);
    let plain = system.clone().without(place).set(&format!("{place}.kind"), kind);
    // The parameters of a plug-in are those of its file.
    let of_file = choice.contains(" path=");
    let mut system = if of_file { plain } else { tune(plain, place, kind, limit) };
    for (key, value) in entry(place, kind).meta.implies {
        if let Some(key) = key.strip_prefix(room(place)) {
            system = system.set(&format!("{place}{key}"), value);
        }
    }
    for slot in SLOTS.iter().filter(|slot| slot.name != "transport") {
        let wanted = slot.wanted(&entry(place, kind).meta.needs);
        let present = system.get(&format!("{}.kind", slot.name)).or(slot.default_kind());
        if let Some(needed) = wanted.first()
            && !present.is_some_and(|present| wanted.contains(&present))
        {
            system = with(&system, slot.name, needed, limit);
        }
    }
    pairs.fold(system, |system, (key, value)| system.set(&format!("{place}.{key}"), value))
}

/// Whether the check lets a system pass on this topology and workload.
pub fn fits(rest: &str, system: &Outline) -> bool {
    load(&format!("{rest}{}", system.toml())).is_ok()
}

/// Every choice for a slot with every transport that it fits, and the system around every entry, as far as the
/// check accepts them on this topology and workload.
pub fn systems_with(slot: &str, limit: &str, rest: &str) -> Vec<Outline> {
    let mut found: Vec<Outline> = Vec::new();
    for transport in kinds("transport") {
        let plain = system_of("transport", transport, limit);
        for choice in choices(slot) {
            let system = with(&plain, slot, choice, limit).set("label", &format!("{transport}, {choice}"));
            if fits(rest, &system) {
                found.push(system);
            }
        }
    }
    for kind in kinds(slot) {
        let own = system_of(slot, kind, limit).set("label", &format!("{kind} as a {slot}"));
        if !found.iter().any(|system| same(system, &own)) && fits(rest, &own) {
            found.push(own);
        }
    }
    found
}

/// The system around every entry of every slot, each once.
pub fn all_systems(limit: &str) -> Vec<Outline> {
    let mut found: Vec<Outline> = Vec::new();
    for slot in SLOTS {
        for kind in kinds(slot.name) {
            let own = system_of(slot.name, kind, limit).set("label", &format!("{kind} as a {}", slot.name));
            if !found.iter().any(|system| same(system, &own)) {
                found.push(own);
            }
        }
    }
    found
}

/// Whether two systems differ only in the label.
fn same(a: &Outline, b: &Outline) -> bool {
    let lines = |system: &Outline| {
        let mut lines: Vec<_> =
            system.keys().filter(|key| *key != "label").map(|key| (key.to_owned(), system.get(key).map(str::to_owned))).collect();
        lines.sort();
        lines
    };
    lines(a) == lines(b)
}

/// A system's label.
pub fn label(system: &Outline) -> &str {
    system.get("label").expect("every system has a label")
}

/// The `[[system]]` table of a transport with switch queues of `limit`.
pub fn system(transport: &str, limit: &str) -> String {
    system_of("transport", transport, limit).toml()
}

fn load(text: &str) -> Result<Plan, String> {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    scenario::load(text, "test.toml", dir, &Options::default()).map_err(|e| format!("{e}\nin\n{text}"))
}

/// The plan of a scenario text. Panics with the diagnostics.
pub fn plan(text: &str) -> Plan {
    load(text).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs a point to its end.
pub fn run_point(point: &Point) -> Outcome {
    sim::run(&point.run, &mut |_| Continue::Yes).unwrap_or_else(|e| panic!("{}: {e}", point.id))
}

/// Runs a point in parts on threads; in `make slow` each part has a thread of its own.
///
/// Parts exchange the same packets on one thread as on several, and cost no waiting.
pub fn run_in_parts(point: &Point, parts: usize, threads: usize) -> Outcome {
    let threads = sized(threads, parts);
    let cut = Cut::choose(&point.run, Threads::Exactly(parts)).unwrap_or_else(|e| panic!("{}: {e:?}", point.id));
    assert_eq!(cut.crossing.len(), parts, "{}", point.id);
    let outcome = sim::run_cut(&point.run, &Arc::new(cut), threads, sim::EventOrder::Auto, &mut |_| Continue::Yes)
        .unwrap_or_else(|e| panic!("{}: {e}", point.id));
    assert_eq!(outcome.threads as usize, threads, "{}", point.id);
    outcome
}

/// Runs the only point of a scenario text to its end.
pub fn run(text: &str) -> Outcome {
    let plan = plan(text);
    assert_eq!(plan.points.len(), 1, "one point expected in\n{text}");
    run_point(&plan.points[0])
}

/// Writes a flow table `rows` (src, dst, size in bytes, start in ps) and returns its workload section.
pub fn table(name: &str, rows: &[(u32, u32, u64, u64)]) -> String {
    let mut text = String::from("src,dst,size_bytes,start\n");
    for (src, dst, size, start) in rows {
        text += &format!("{src},{dst},{size},{start}ps\n");
    }
    table_of(name, &text)
}

/// Writes a flow table and returns its workload section.
pub fn table_of(name: &str, csv: &str) -> String {
    format!("[workload.flows]\nkind = 'table'\npath = '{}'\n", file(&format!("{name}.csv"), csv))
}

/// Writes a program of ranks in a ring, and returns its workload section. Messages are eager, so that no flow ends when
/// a rank sends the next message: flows wait for joins.
pub fn eager_ring(ranks: u32, steps: u32) -> String {
    let mut text = format!("num_ranks {ranks}\n");
    for rank in 0..ranks {
        text += &format!("rank {rank} {{\n");
        for step in 0..steps {
            // Messages have different sizes, and computations different lengths.
            let (to, from) = ((rank + 1 + step % 2) % ranks, (rank + 2 * ranks - 1 - step % 2) % ranks);
            let size = |rank: u32| 1000 + 700 * ((rank + step) % 5);
            text += &format!("c{step}: calc {}\ns{step}: send {}b to {to} tag {step}\n", 40 * ((rank + step) % 4), size(rank));
            text += &format!("r{step}: recv {}b from {from} tag {step}\ns{step} requires c{step}\n", size(from));
            if let Some(last) = step.checked_sub(1) {
                text += &format!("c{step} requires s{last}\nc{step} requires r{last}\n");
            }
        }
        text += "}\n";
    }
    format!("[workload.program]\nkind = 'goal'\npath = '{}'\n", file("eager-ring.goal", &text))
}

/// Writes a file that scenarios may name, and returns its name.
///
/// Tests run in parallel, and several may write the same file: its name depends on its content, and a rename keeps a test
/// from reading half a file.
pub fn file(name: &str, text: &str) -> String {
    let (stem, suffix) = name.split_once('.').expect("a name with a suffix");
    let name = format!("{stem}-{:016x}.{suffix}", xxhash_rust::xxh3::xxh3_64(text.as_bytes()));
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(&name);
    let own = path.with_extension(format!("{}-{:?}", std::process::id(), std::thread::current().id()));
    std::fs::write(&own, text).and_then(|()| std::fs::rename(&own, &path)).expect("the test folder is writable");
    name
}

/// The `n`th random scenario, and whether its buffers are deep enough that every flow must finish well before the end.
pub fn random_scenario(n: u64) -> (String, bool) {
    let rng = &mut Rng::stream(20, "fuzz", &[n]);
    let events_rng = &mut Rng::stream(20, "fuzz/events", &[n]);
    let cables_rng = &mut Rng::stream(20, "fuzz/cables", &[n]);
    let mut pick_cables = |choices: &[&str]| choices[cables_rng.below(choices.len() as u64) as usize].to_owned();
    let measure_rng = &mut Rng::stream(20, "fuzz/measure", &[n]);
    let mut pick_events = |choices: &[&str]| choices[events_rng.below(choices.len() as u64) as usize].to_owned();
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
        "kind = 'leaf_spine'\nleaves = 3\nspines = 4\nhosts_per_leaf = 2\nhost_rate = 'RATE'\nspine_rate = 'RATE'",
    ]);
    // One in six has hosts with several NICs.
    let topology = match Rng::stream(20, "fuzz/nics", &[n]).below(12) {
        0 => "kind = 'rail'\npods = 2\nservers = 2\nnics = 2\nspines = 2\nspine_cables = 1\nnic_rate = 'RATE'".to_owned(),
        1 => "kind = 'rail'\npods = 2\nservers = 3\nnics = 3\nplanes = 'per_rail'\nspines = 1\nspine_cables = 2\nnic_rate = 'RATE'"
            .to_owned(),
        _ => topology,
    };
    let rates = if topology.contains("RATE") { String::new() } else { format!("rate = '{rate}'\n") };
    let topology = format!("[topology]\n{}\n{rates}delay = '{delay}'\n", topology.replace("RATE", &rate));
    let topology = topology + &pick_cables(&["", "", "loss = 0.001\n", "loss = 0.1\n"]);
    let topology = topology + &pick_cables(&["", "", "host_delay = '1ps'\n", "host_delay = '5us'\n"]);
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
    let kind = pick(&["poisson", "poisson", "incast", "table", "waiting", "requests"]);
    let limit = pick(&["1pkt", "3pkt", "20pkt", "100pkt", "1500B", "30KB", "unlimited"]);
    let host = pick(&["low_water 3KB", "low_water 0B", "low_water unlimited", "kind turns", "kind ns2"]);
    let deadline = pick(&["", "", "deadline = '300us'\n", "deadline = { kind = 'slack', factor = 3 }\n"]);
    let workload = match kind.as_str() {
        "poisson" => format!("[workload.web]\nkind = 'poisson'\nflows = 40\nload = {load}\n{size}\n"),
        "incast" => "[workload.burst]\nkind = 'incast'\nsenders = 3\nsize = '40KB'\nreceiver = 'h0'\njitter = '0s'\n".to_owned(),
        // Some answers are too old before they have ended.
        "requests" => {
            "[workload.query]\nkind = 'requests'\nworkers = 3\nrepeat = 5\nmin = '1KB'\nmax = '40KB'\ngive_up_after = '200us'\n"
                .to_owned()
        }
        _ => table_of(&format!("fuzz-{n}"), &random_table(hosts, kind == "waiting", rng)),
    };
    let (events, lasting) = random_events(&topology, &mut pick_events);
    let deep = !["1pkt", "3pkt", "1500B"].contains(&limit.as_str()) && !topology.contains("loss = 0.1");
    // Senders of flows that are cut off permanently retransmit again and again, and receivers that lose most of what comes
    // send credits for as long.
    let end = match (lasting, deep) {
        (true, _) => "5ms",
        (false, true) => "30s",
        (false, false) => "100ms",
    };
    let windows = ["", "until = 'end'", "from = '20%'\nuntil = '60%'", "from = '7us'\nuntil = '90us'", "from = '30us'"];
    let window = windows[measure_rng.below(windows.len() as u64) as usize];
    let events = format!("{events}[measure]\n{window}\n");
    let rest = format!("seed = {}\nend = '{end}'\n{topology}{workload}{deadline}{events}", 1 + rng.below(1000));
    let (key, value) = host.split_once(' ').unwrap_or_default();
    let system = random_system(&rest, &limit, rng).set(&format!("nic.{key}"), value);
    // Probes of a router may fill a queue of two headers whenever a timer of a sender expires.
    let system = system.toml();
    let deep = deep && !system.contains("headers = \"2pkt\"");
    (format!("{rest}{system}"), deep && !lasting)
}

/// The system of a transport with other parts in some of its places: any that the check accepts.
fn random_system(rest: &str, limit: &str, rng: &mut Rng) -> Outline {
    let mut any = |list: &[&'static str]| list[rng.below(list.len() as u64) as usize];
    let mut system = system_of("transport", any(&kinds("transport")), limit);
    // Agents fit few transports and controllers few routers: each scenario tries one.
    for place in SLOTS.iter().map(|slot| slot.name).filter(|slot| *slot != "transport").chain(["nic.qdisc"]) {
        let other = with(&system, place, any(&choices(place)), limit);
        if (any(&["yes", "no"]) == "yes" || ["agent", "controller"].contains(&place)) && fits(rest, &other) {
            system = other;
        }
    }
    system
}

/// Thirty flows with ties everywhere: all start at one of two instants, or wait for one or two of those before them.
fn random_table(hosts: u64, waiting: bool, rng: &mut Rng) -> String {
    let mut csv = String::from("src,dst,size_bytes,start,after,delay\n");
    for row in 0..30 {
        let (src, hop, size) = (rng.below(hosts), 1 + rng.below(hosts - 1), 1 + rng.below(30_000));
        csv += &format!("{src},{},{size},", (src + hop) % hosts);
        csv += &if waiting && row > 0 && rng.below(3) > 0 {
            let on = [1 + rng.below(row), 1 + rng.below(row)];
            let on = if rng.below(2) == 0 || on[0] == on[1] { on[0].to_string() } else { format!("{} {}", on[0], on[1]) };
            format!(",{on},{}\n", ["", "1us", "30us"][rng.below(3) as usize])
        } else {
            format!("{}us,,\n", rng.below(2))
        };
    }
    csv
}

/// Up to two events for a random scenario, and whether one of them is permanent, so that flows may stay unfinished.
fn random_events(topology: &str, pick: &mut impl FnMut(&[&str]) -> String) -> (String, bool) {
    let (mut text, mut lasting) = (String::new(), false);
    for _ in 0..pick(&["0", "0", "1", "2"]).parse().expect("a number") {
        let fabric = "random = { probability = 0.4 }";
        let target = pick(&["node = 'h0'", "random = { count = 1, tier = 'host' }", fabric, fabric, fabric]);
        // A star has no cables between switches.
        let target =
            if topology.contains("'star'") && target == fabric { "random = { count = 2, tier = 'host' }" } else { &target };
        let at = pick(&["0s", "1us", "3us", "50us"]);
        let until = pick(&["until = '60us'", "until = '400us'", "until = '3ms'", ""]);
        if text.contains("'h0'") && target.contains("'h0'") {
            continue;
        }
        lasting |= until.is_empty();
        text += &format!("[[event]]\n{target}\nat = '{at}'\n{until}\n");
    }
    if !text.is_empty() {
        let (detect, converge) = (pick(&["0s", "5us", "200us"]), pick(&["0s", "20us", "1ms"]));
        text += &format!("[failure]\ndetect = '{detect}'\nconverge = '{converge}'\nunreachable = 'run'\n");
    }
    (text, lasting)
}

/// The number of random scenarios: `usual`, or `FLOWLOOM_FUZZ` if it is set (`make slow`).
pub fn fuzz_count(usual: u64) -> u64 {
    std::env::var("FLOWLOOM_FUZZ").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// The numbers of the random scenarios: `usual` of them or `FLOWLOOM_FUZZ`, from `FLOWLOOM_FUZZ_FROM` (0) on.
pub fn fuzz_numbers(usual: u64) -> std::ops::Range<u64> {
    let from = std::env::var("FLOWLOOM_FUZZ_FROM").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    from..from + fuzz_count(usual)
}

/// Returns the size of a test: `usual`, or `long` in `make slow`.
pub fn sized<T>(usual: T, long: T) -> T {
    if fuzz_count(0) > 0 { long } else { usual }
}

/// Asserts that two runs have the same outcome.
pub fn assert_equal(one: &Outcome, many: &Outcome, what: &str) {
    for (a, b) in one.flows.iter().zip(&many.flows) {
        assert_eq!(a, b, "{what}");
    }
    for (a, b) in one.ports.iter().zip(&many.ports) {
        assert_eq!(a, b, "{what}");
    }
    assert_eq!((&one.tasks, &one.parts), (&many.tasks, &many.parts), "{what}");
    assert_eq!(one.counters, many.counters, "{what}");
    assert_eq!(one.samples, many.samples, "{what}");
    assert_eq!(one.agents, many.agents, "{what}");
    assert_eq!(one.packets, many.packets, "{what}");
    assert_eq!((one.complete, one.stop_reason), (many.complete, many.stop_reason), "{what}");
}
