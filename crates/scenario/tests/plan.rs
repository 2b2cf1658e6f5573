//! Plans of scenarios that can run: their points, the written plan, and the flows that are drawn.

use scenario::{HostKind, Options, Plan};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

const TREE: &str = r#"
seed = [1, 2]
end = "20s"
[topology]
kind = "single_tree"
[workload.web]
kind = "poisson"
flows = 50
load = [0.2, 0.8]
size_unit = "wire"
[workload.burst]
kind = "incast"
senders = 3
size = "64KB"
jitter = "0s"
[[system]]
label = "MERP"
transport = { kind = "merp" }
qdisc = { kind = "strict", classes = 4, evict = "worst_class", limit = "100pkt" }
agent = { kind = "merp", alpha = [0.99, 0.999] }
[[system]]
label = "pFabric"
transport = "pfabric"
qdisc = { kind = "pfabric", limit = ["50pkt", "150KB"] }
nic = { low_water = "unlimited" }
[[system]]
transport = { kind = "newreno", min_rto = "10ms" }
[sample]
interval = "100us"
[profile.smoke]
seed = 7
workload.web = { flows = 5, load = 0.5 }
system.MERP.agent.alpha = 0.9
[profile.fixed]
workload.burst = { kind = "poisson", flows = 4, size = "fixed", mean = "15KB" }
topology = { kind = "star", hosts = 5 }
"#;

fn load(text: &str, options: &Options) -> Plan {
    scenario::load(text, "tree.toml", Path::new("."), options).unwrap_or_else(|e| panic!("{e}\nin\n{text}"))
}
fn plain(text: &str) -> Plan {
    load(text, &Options::default())
}
fn set(pairs: &[(&str, &str)]) -> Options {
    Options { set: pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(), ..Options::default() }
}
fn profile(name: &str) -> Options {
    Options { profiles: scenario::profiles(name), ..Options::default() }
}

#[test]
fn points_are_systems_by_sweeps_by_seeds() {
    let plan = plain(TREE);
    assert_eq!((plan.name.as_str(), plan.points.len()), ("tree", 8 + 8 + 4));
    assert_eq!(plan.labels, ["MERP", "pFabric", "newreno"]);
    assert_eq!(plan.sweep_keys, ["workload.web.load", "system.agent.alpha", "system.qdisc.limit"]);
    let ids: Vec<&str> = plan.points.iter().map(|p| p.id.as_str()).collect();
    assert_eq!(ids[..3], ["merp-load0.2-alpha0.99-seed1", "merp-load0.2-alpha0.99-seed2", "merp-load0.2-alpha0.999-seed1"]);
    assert_eq!(
        ids[8..11],
        ["pfabric-load0.2-limit50pkt-seed1", "pfabric-load0.2-limit50pkt-seed2", "pfabric-load0.2-limit150kb-seed1"]
    );
    assert_eq!(ids[19], "newreno-load0.8-seed2");
    assert_eq!(plan.points[19].swept, [("workload.web.load".to_owned(), "0.8".to_owned())]);
    let run = &plan.points[8].run;
    assert_eq!((run.system.nic.low_water_bytes, run.seed, run.mtu_bytes, run.header_bytes), (None, 1, 1500, 40));
    assert_eq!(run.end, Some(base::Time(20_000_000_000_000)));
    assert_eq!(run.sample.as_ref().unwrap().interval, base::Dur::from_us(100));
}

#[test]
fn folders_are_unique_and_plain() {
    let text = r#"
        [topology]
        kind = "star"
        [workload.a]
        kind = "poisson"
        load = [0.1, 0.2]
        [workload.b]
        kind = "poisson"
        load = [0.1, 0.2]
        size = "cdf"
        cdf = ["websearch", "homa-w1"]
        [[system]]
        label = "A/B"
        transport = "newreno"
        [[system]]
        label = "a b"
        transport = { kind = "newreno", min_rto = ["1ms", "1.5ms"] }
        [[system]]
        label = "Äö"
        transport = "newreno"
        [[system]]
        label = "a long name, longer than any folder should be, and with all that follows longer still than that"
        transport = "newreno"
    "#;
    let plan = plain(text);
    let mut ids: Vec<&str> = plan.points.iter().map(|p| p.id.as_str()).collect();
    assert_eq!(ids[0], "a-b-a.load0.1-cdfwebsearch-b.load0.1-seed1");
    assert_eq!(ids[8], "a-b-2-a.load0.1-cdfwebsearch-b.load0.1-min_rto1ms-seed1");
    assert!(
        ids.iter()
            .all(|id| id.len() <= 120 && id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b".-_".contains(&b)))
    );
    let n = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((ids.len(), n), (8 + 16 + 8 + 8, 40));
}

/// The queue of the NIC is that of the switches without its limit; settings of the NIC override it.
#[test]
fn host_ports_follow_the_switches() {
    let nic = |line: &str| {
        let text = format!("[topology]\nkind='star'\n[workload.w]\nkind='poisson'\n[[system]]\ntransport='newreno'\n{line}\n");
        let plan = plain(&text);
        assert_eq!(plain(plan.resolved()).points, plan.points, "{}", plan.resolved());
        let show =
            |q: &fabric::qdisc::AnyParams| format!("{} {:?}", q.name(), q.show().into_iter().map(|(_, v)| v).collect::<Vec<_>>());
        plan.points.iter().map(|p| show(&p.run.system.nic.qdisc)).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(nic(""), r#"droptail ["unlimited"]"#);
    assert_eq!(
        nic("qdisc = { kind = 'strict', classes = 3, limit = '9pkt' }"),
        r#"strict ["3", "prio", "unlimited", "arriving", "unlimited"]"#
    );
    let swept = nic("qdisc = { kind = 'strict', classes = [3, 4] }");
    assert_eq!(
        swept,
        r#"strict ["3", "prio", "unlimited", "arriving", "unlimited"]; strict ["4", "prio", "unlimited", "arriving", "unlimited"]"#
    );
    let limited = nic("qdisc = { kind = 'strict', classes = 3 }\nnic = { qdisc = { limit = '20KB' } }");
    assert_eq!(limited, r#"strict ["3", "prio", "20KB", "arriving", "unlimited"]"#);
    assert_eq!(nic("qdisc = 'strict'\nnic = { qdisc = 'droptail', low_water = '1pkt' }"), r#"droptail ["unlimited"]"#);
    // A host like ns-2's has the limit of the ports, too.
    let limited = "qdisc = { kind = 'droptail', limit = '9pkt' }";
    assert_eq!(nic(&format!("{limited}\nnic = 'ns2'")), r#"droptail ["9pkt"]"#);
    assert_eq!(nic(&format!("{limited}\nnic = {{ kind = 'ns2', qdisc = {{ limit = '20KB' }} }}")), r#"droptail ["20KB"]"#);
}

/// Each port has the limit and the threshold for its own rate, and `check` prints them.
#[test]
fn queues_that_are_left_to_a_rule_fit_their_ports() {
    let network = "[topology]\nkind='leaf_spine'\nleaves=2\nspines=2\nhosts_per_leaf=2\nhost_rate='10Gbps'\nspine_rate='100Gbps'\ndelay='12us'\n";
    let text = |qdisc: &str| {
        format!(
            "{network}[workload.w]\nkind='poisson'\n[[system]]\nlabel='x'\ntransport={{ kind='dctcp', stack='fine' }}\nqdisc={qdisc}\n"
        )
    };
    let plan = plain(&text("'ecn_threshold'"));
    let run = &plan.points[0].run;
    // Eight links of 12 us; a full packet is stored at four of them, two of 10 and two of 100 Gb/s, and so is the header of its answer.
    assert_eq!(run.max_rtt, base::Dur(8 * 12_000_000 + 2 * (1_200_000 + 120_000) + 2 * (32_000 + 3_200)));
    let of = |name: &str| {
        let link = (0..).map(base::LinkId).find(|link| run.net.link_name(*link) == name).expect("a port");
        let (params, env) = run.port(link);
        (params.limit(&env).to_string(), fabric::qdisc::Qdisc::marks_above(&params.build(&env)).map(|(_, mark)| mark.to_string()))
    };
    // 98.7 us: 82.3 packets at 10 Gb/s.
    let expect = |limit: &str, mark: &str| (limit.to_owned(), Some(mark.to_owned()));
    assert_eq!(of("leaf0->h0"), expect("165pkt", "65pkt"));
    assert_eq!(of("leaf0->spine0"), expect("1646pkt", "642pkt"));
    assert_eq!(of("h0->leaf0"), expect("unlimited", "65pkt"));
    let lines: Vec<&str> = plan.resolved().lines().filter(|line| line.contains("= auto: ")).collect();
    let rule = "the larger of 100 packets and 2 bandwidth-delay products; round trip 98710.4ns";
    assert_eq!(lines[0], format!("# x: ecn_threshold: limit = auto: 165pkt at 10Gbps, 1646pkt at 100Gbps ({rule})"));
    assert!(
        lines.len() == 2 && lines[1].starts_with("# x: ecn_threshold: mark = auto: 65pkt at 10Gbps, 642pkt at 100Gbps (DCTCP"),
        "{lines:?}"
    );
    assert_eq!(plan.queues.iter().map(|queue| queue.key).collect::<Vec<_>>(), ["limit", "mark"]);
    assert_eq!(plain(plan.resolved()).points, plan.points);

    // Given lengths are not listed. A length that is equal for all values of a sweep has a single
    // line.
    assert_eq!(plain(&text("{ kind='ecn_threshold', limit='9pkt', mark='3pkt' }")).queues, []);
    assert_eq!(plain(&text("{ kind='strict', classes=[2, 4] }")).queues.len(), 1);
    assert_eq!(plain(&format!("engine='flow'\n{}", text("'droptail'"))).queues, []);
    // Other parts of the system see the lengths too.
    let stam = |mark: &str| {
        plain(&text(&format!(
            "{{ kind='strict', classes=16, mark={mark} }}\npolicy='stam'\n[workload.v]\nkind='poisson'\ndeadline='9ms'"
        )))
        .resolved()
        .to_owned()
    };
    let notes = |mark: &str| stam(mark).lines().filter(|line| line.contains("stam: ")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(notes("'auto'"), notes("'65pkt'"));
}

#[test]
fn what_is_written_out_reads_back_as_the_same_plan() {
    let seeds = Options { seeds: Some(vec![5, 3]), ..set(&[("workload.web.load", "[0.3,0.4]"), ("name", "other")]) };
    for options in [Options::default(), profile("smoke"), profile("fixed"), seeds] {
        let plan = load(TREE, &options);
        let again = plain(plan.resolved());
        assert_eq!(
            (again.points, again.sweep_keys, again.labels),
            (plan.points.clone(), plan.sweep_keys.clone(), plan.labels.clone())
        );
        assert_eq!(again.name, plan.name);
        // The text of a single point gives the same point, too.
        for point in &plan.points {
            let single = plain(&point.resolved());
            assert_eq!((single.points.len(), &single.points[0].run), (1, &point.run));
            assert_eq!(single.points[0].config_hash(), point.config_hash());
        }
    }
}

/// Ideal references follow the systems, once per network, workload and seed, whatever the systems
/// sweep.
#[test]
fn ideal_references_are_points_of_their_own() {
    let text = r#"
        seed = [1, 2]
        ideal = ["srpt", "big_switch"]
        [topology]
        kind = "star"
        [workload.web]
        kind = "poisson"
        load = [0.2, 0.4]
        [[system]]
        transport = { kind = "newreno", min_rto = ["5ms", "10ms"] }
        [[system]]
        label = "other"
        transport = "newreno"
        [sample]
        ports = true
    "#;
    let plan = plain(text);
    assert_eq!(plan.labels, ["newreno", "other", "ideal SRPT", "ideal big switch"]);
    let (systems, ideals): (Vec<_>, Vec<_>) = plan.points.iter().partition(|p| p.run.ideal.is_none());
    assert_eq!((systems.len(), ideals.len()), (8 + 4, 2 * 4));
    let ids: Vec<&str> = ideals.iter().map(|p| p.id.as_str()).collect();
    let srpt = ["ideal-srpt-load0.2-seed1", "ideal-srpt-load0.2-seed2", "ideal-srpt-load0.4-seed1", "ideal-srpt-load0.4-seed2"];
    assert_eq!(ids[..4], srpt);
    for ideal in ideals {
        let same = systems.iter().find(|p| p.label == "other" && p.seed == ideal.seed && p.swept == ideal.swept).unwrap();
        assert_eq!(same.run.flows(), ideal.run.flows());
        assert_eq!(ideal.run.sample, None, "an ideal reference has no series");
    }
    let again = plain(plan.resolved());
    assert_eq!((again.points, again.labels), (plan.points.clone(), plan.labels.clone()));
    // An ideal reference does not depend on systems: it is not run again when a system changes.
    let changed = load(text, &set(&[("system.other.qdisc.limit", "9pkt"), ("system.newreno.transport.min_rto", "1ms")]));
    let hashes = |plan: &scenario::Plan| -> Vec<(String, u64)> {
        plan.points.iter().filter(|p| p.run.ideal.is_some()).map(|p| (p.id.clone(), p.config_hash())).collect()
    };
    assert_eq!(hashes(&changed), hashes(&plan));
    let off = load(text, &set(&[("ideal", "[]")]));
    assert!(off.points.iter().all(|p| p.run.ideal.is_none()) && off.labels.len() == 2);
}

#[test]
fn what_is_written_out_says_where_it_is_from() {
    let options = Options { seeds: Some(vec![4]), ..set(&[("system.pFabric.transport.rto", "450us")]) };
    let text = load(TREE, &Options { profiles: vec!["smoke".to_owned()], ..options }).resolved().to_owned();
    let line = |start: &str| text.lines().find(|l| l.starts_with(start)).unwrap_or_else(|| panic!("{start} in\n{text}")).to_owned();
    for (start, end) in [
        ("name", "# default: the file's name"),
        ("seed", "# --seed"),
        ("end", "\"20s\""),
        ("mtu", "# default: Ethernet"),
        ("racks", "# default: MERP section 6.1"),
        ("load", "# profile smoke"),
        ("alpha", "# profile smoke"),
        ("rto", "# --set"),
        ("size_unit", "\"wire\""),
    ] {
        assert!(line(start).ends_with(end), "{}", line(start));
    }
}

#[test]
fn profiles_and_settings_change_what_they_name() {
    let smoke = load(TREE, &profile("smoke"));
    assert_eq!(smoke.points.iter().map(|p| p.seed).collect::<Vec<_>>(), [7; 4]);
    assert_eq!(smoke.sweep_keys, ["system.qdisc.limit"]);
    assert!(smoke.points.iter().all(|p| p.run.flows().unwrap().len() == 8));
    // A table with another kind replaces the table.
    let fixed = load(TREE, &profile("fixed"));
    assert_eq!(fixed.points[0].run.net.hosts().len(), 5);
    let sizes: Vec<u64> = fixed.points[0].run.flows().unwrap().iter().filter(|f| f.workload == 1).map(|f| f.size_bytes).collect();
    assert_eq!(sizes, [15_000; 4]);
    let options = set(&[
        ("system.newreno.transport", "pfabric"),
        ("system.newreno.qdisc.kind", "pfabric"),
        ("system.newreno.qdisc.limit", "9pkt"),
    ]);
    let last = load(TREE, &options).points.pop().unwrap();
    assert_eq!((last.label.as_str(), last.run.system.transport.name()), ("pfabric", "pfabric"));
}

#[test]
fn profiles_are_applied_in_order() {
    let text = format!("{TREE}[profile.literal]\nmtu = \"9000B\"\nworkload.web = {{ flows = 9, size_unit = \"payload\" }}\n");
    let flows = |names: &str| {
        let plan = load(&text, &profile(names));
        let web = plan.points[0].run.flows().unwrap().iter().filter(|f| f.workload == 0).count();
        (web, plan.points[0].run.mtu_bytes, plan.points[0].seed)
    };
    assert_eq!((flows("smoke"), flows("literal")), ((5, 1500, 7), (9, 9000, 1)));
    assert_eq!((flows("literal,smoke"), flows("smoke, literal")), ((5, 9000, 7), (9, 9000, 7)));
    // The written plan names the profile that set a value.
    let plan = load(&text, &profile("literal,smoke"));
    for (start, end) in [("mtu", "# profile literal"), ("flows", "# profile smoke"), ("size_unit", "# profile literal")] {
        let line = plan.resolved().lines().find(|l| l.starts_with(start)).unwrap();
        assert!(line.ends_with(end), "{line}");
    }
    assert_eq!(plain(plan.resolved()).points, plan.points);
    // A profile that is not chosen is checked separately.
    let broken = format!("{text}[profile.other]\nmtu = 5\n");
    let found = scenario::load(&broken, "tree.toml", Path::new("."), &profile("literal,smoke")).unwrap_err();
    assert_eq!(found.items().len(), 1, "{found}");
    let found = scenario::load(&text, "tree.toml", Path::new("."), &profile("smoke,litral,smoke")).unwrap_err().to_string();
    for part in [
        "there is no profile `litral`",
        "did you mean `literal`?",
        "profile `smoke` is given twice",
        "--profile smoke,litral,smoke",
    ] {
        assert!(found.contains(part), "{part} in\n{found}");
    }
}

#[test]
fn all_systems_see_the_same_flows() {
    let plan = plain(TREE);
    let flows = |i: usize| plan.points[i].run.flows().unwrap();
    assert_eq!(flows(0), flows(2));
    assert_eq!(flows(0), flows(8));
    assert_ne!(flows(0), flows(1), "another seed");
    let all = flows(0);
    assert_eq!(all.len(), 53);
    assert!(all.is_sorted_by_key(|f| (f.start, f.workload)));
    assert!(all.iter().enumerate().all(|(i, f)| f.id.index() == i && f.src != f.dst && f.src_port >= 1024));
    assert_eq!(
        all.iter().filter(|f| f.group != u64::MAX).map(|f| (f.group, f.size_wire_bytes)).collect::<Vec<_>>(),
        [(1 << 32, 65_760); 3]
    );
    // Same arrivals and sizes at another load: only the times differ.
    let (low, high) = (flows(0), flows(4));
    let sizes = |flows: &[proto::Flow]| {
        flows.iter().filter(|f| f.workload == 0).map(|f| (f.size_bytes, f.src, f.dst, f.src_port)).collect::<Vec<_>>()
    };
    assert_eq!(sizes(&low), sizes(&high));
}

#[test]
fn messages_of_a_connection_have_one_source_port() {
    let ring = "[topology]\nkind='star'\nhosts=4\n[workload.w]\nkind='collective'\nbytes='400KB'\nchunk='10KB'\nchannels=3\n\
                [[system]]\ntransport='newreno'\n";
    let flows = |ports: &str| load(ring, &set(&[("workload.w.ports", ports)])).points[0].run.flows().unwrap();
    // The ports that each pair of neighbours uses.
    let used = |flows: &[proto::Flow]| {
        let mut ports: Vec<_> = flows.iter().map(|flow| (flow.src, flow.dst, flow.src_port)).collect();
        ports.sort_unstable();
        ports.dedup();
        ports.len()
    };
    let [message, channel, peer] = ["message", "channel", "peer"].map(flows);
    assert_eq!((message.len(), used(&message), used(&channel), used(&peer)), (4 * 6 * 12, 4 * 6 * 12, 4 * 3, 4));
    // Nothing else differs, and a connection has the port of its first message.
    let rest = |flows: &[proto::Flow]| flows.iter().map(|flow| proto::Flow { src_port: 0, ..flow.clone() }).collect::<Vec<_>>();
    assert!(rest(&message) == rest(&channel) && rest(&message) == rest(&peer));
    assert_eq!(message[0].src_port, peer[0].src_port);
}

/// A change here changes every result ever published with these scenarios.
#[test]
fn flow_tables_are_stable() {
    let hash = |point: &scenario::Point| {
        let rows = point.run.flows().unwrap().into_iter().map(|f| {
            format!("{} {} {} {} {} {} {}\n", f.src, f.dst, f.size_bytes, f.size_wire_bytes, f.start.0, f.src_port, f.workload)
        });
        xxh3_64(rows.collect::<String>().as_bytes())
    };
    let plan = load(TREE, &set(&[("workload.burst.jitter", "0s")]));
    assert_eq!([hash(&plan.points[0]), hash(&plan.points[1]), hash(&plan.points[4])], FLOW_TABLES);
    let laws = "[topology]\nkind='fat_tree'\n[workload.a]\nkind='poisson'\nflows=100\nsize='cdf'\ncdf='websearch-ns2'\n\
                [workload.b]\nkind='poisson'\nflows=100\nsize='exponential'\npairs='cross_rack'\n[workload.c]\nkind='long'\nsize='1GB'\n\
                [[system]]\ntransport='newreno'\n";
    assert_eq!(hash(&plain(laws).points[0]), LAWS);
}

const FLOW_TABLES: [u64; 3] = [11470425836158631508, 4987691585069166182, 7388427830184951625];
const LAWS: u64 = 17454926824099580383;

#[test]
fn realised_load_is_near_the_nominal_one() {
    let text = "[topology]\nkind='star'\n[workload.a]\nkind='poisson'\nflows=20000\nload=0.3\nsize='exponential'\n\
                [workload.b]\nkind='poisson'\nflows=20000\nload=0.4\nnormalize_load=true\n[workload.c]\nkind='incast'\nsenders=2\nsize='1KB'\n\
                [[system]]\ntransport='newreno'\n";
    let run = &plain(text).points[0].run;
    let flows = run.flows().unwrap();
    let loads = run.realised_loads(&flows);
    let of = |i: usize| loads[i].1.unwrap_or(-1.0);
    assert!((of(0) - 0.3).abs() < 0.01 && (of(1) - 0.4).abs() < 1e-6 && of(2) == -1.0, "{loads:?}");
    assert!((run.realised_load(&flows).unwrap() - of(0) - of(1)).abs() < 1e-12);
}

#[test]
fn the_hash_covers_all_that_matters_and_files_too() {
    let dir = tempfile::tempdir().unwrap();
    let write = |size: u32| std::fs::write(dir.path().join("f.csv"), format!("src,dst,size_bytes,start\n0,1,{size},0s\n")).unwrap();
    let text = "name='x'\n[topology]\nkind='star'\n[workload.t]\nkind='table'\npath='f.csv'\n[[system]]\ntransport='newreno'\n";
    let hash = |text: &str, options: &Options| scenario::load(text, "x.toml", dir.path(), options).unwrap().points[0].config_hash();
    write(100);
    let first = hash(text, &Options::default());
    assert_eq!(first, hash(&text.replace("name='x'", "# another name"), &Options::default()));
    for change in [
        ("topology.hosts", "9"),
        ("topology.loss", "0.01"),
        ("topology.host_delay", "1us"),
        ("mtu", "9000B"),
        ("seed", "2"),
        ("end", "1s"),
        ("system.newreno.transport.min_rto", "1ms"),
        ("sample.ports", "true"),
        ("measure.from", "10%"),
    ] {
        assert_ne!(first, hash(text, &set(&[change])), "{change:?}");
    }
    // Quiet parameters at their defaults are not written.
    assert_eq!(first, hash(text, &set(&[("topology.loss", "0"), ("topology.host_delay", "0s"), ("measure.until", "auto")])));
    write(101);
    assert_ne!(first, hash(text, &Options::default()));
}

/// Equal selections give equal hashes, however they are written.
#[test]
fn selections_of_samples_are_read_back() {
    let text = |more: &str| {
        format!("topology='leaf_spine'\n[workload.w]\nkind='poisson'\n[[system]]\ntransport='newreno'\n[sample]\n{more}")
    };
    let plan = |more: &str| plain(&text(more));
    let all = plan("only_ports='h0->*, spine0->leaf0'\nonly_flows='4, 2..3'\nstart='1ms'\nend='2ms'");
    let sample = all.points[0].run.sample.clone().unwrap();
    let net = &all.points[0].run.net;
    let ports: Vec<String> = sample.only_ports.iter().flatten().map(|link| net.link_name(*link)).collect();
    assert_eq!(ports, ["h0->leaf0", "spine0->leaf0"]);
    assert_eq!((sample.start, sample.end), (base::Time(1_000_000_000), base::Time(2_000_000_000)));
    assert_eq!(plain(all.resolved()).points[0].run.sample, Some(sample));
    let other = plan("only_ports='spine0->leaf0, h0->leaf0'\nonly_flows='2,3,4'\nstart='1000us'\nend='2ms'");
    assert_eq!(all.points[0].config_hash(), other.points[0].config_hash());
    let whole = plan("start='0s'\nend='auto'\nonly_ports='all'\nonly_flows='all'");
    assert_eq!(whole.points[0].config_hash(), plan("").points[0].config_hash());
    for more in ["start='1us'", "end='1s'", "only_ports='h0->*'", "only_flows=1"] {
        assert_ne!(whole.points[0].config_hash(), plan(more).points[0].config_hash(), "{more}");
    }
}

#[test]
fn large_plans_are_read_in_time() {
    // 20000 points, sizes of a table among them.
    let loads: Vec<String> = (1..=100).map(|i| format!("0.{i:03}")).collect();
    let seeds: Vec<String> = (0..100).map(|i| i.to_string()).collect();
    let text = format!(
        "seed=[{}]\n[topology]\nkind='leaf_spine'\n[workload.w]\nkind='poisson'\nload=[{}]\nsize='cdf'\n[[system]]\ntransport='newreno'\n[[system]]\nlabel='b'\ntransport='newreno'\n",
        seeds.join(","),
        loads.join(",")
    );
    let plan = plain(&text);
    assert_eq!(plan.points.len(), 20_000);
    assert!(std::sync::Arc::ptr_eq(&plan.points[0].run.net, &plan.points[19_999].run.net));
}

#[test]
fn the_examples_are_sound() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let files = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path());
    for path in files.filter(|path| path.extension().is_some_and(|e| e == "toml")) {
        let text = std::fs::read_to_string(&path).unwrap();
        let plan = scenario::load(&text, &path.display().to_string(), &folder, &Options::default());
        assert!(!plan.unwrap_or_else(|e| panic!("{e}")).points.is_empty());
    }
}

const EVENTS: &str = r#"
seed = [1, 2]
end = "1s"
topology = "fat_tree"
[workload.web]
kind = "poisson"
flows = 100
load = 0.5
[[event]]
at = "10ms"
link = ["agg0_1", "core3"]
until = "20ms"
[[event]]
random = { count = [1, 2], tier = "core-agg" }
[failure]
converge = "5ms"
[[system]]
transport = "newreno"
"#;

#[test]
fn events_are_tables_by_number() {
    let plan = plain(EVENTS);
    assert_eq!(plan.sweep_keys, ["event.2.random.count"]);
    let ids: Vec<&str> = plan.points.iter().map(|p| p.id.as_str()).collect();
    assert_eq!(ids, ["newreno-count1-seed1", "newreno-count1-seed2", "newreno-count2-seed1", "newreno-count2-seed2"]);
    for text in ["[event.1]\n", "link = \"agg0_1--core3\"", "[event.2.random]\n", "count = [1, 2]", "[failure]\n"] {
        assert!(plan.resolved().contains(text), "{text} in\n{}", plan.resolved());
    }
    let words = "# events with seed 2, event.2.random.count = 2\n#   0s down agg2_0--core1, agg2_1--core3\n\
                 #   10ms down agg0_1--core3\n#   20ms up agg0_1--core3\n";
    assert!(plan.resolved().ends_with(words), "{}", plan.resolved());
    // Reading the written plan gives the same plan.
    let again = plain(plan.resolved());
    assert_eq!((again.points.len(), again.resolved()), (4, plain(again.resolved()).resolved()));
    for (a, b) in plan.points.iter().zip(&again.points) {
        assert_eq!((a.config_hash(), &a.run.failures, a.run.changes()), (b.config_hash(), &b.run.failures, b.run.changes()));
        assert_eq!(plain(&a.resolved()).points[0].config_hash(), a.config_hash());
    }
}

#[test]
fn events_change_the_results_and_not_the_flows() {
    let plan = plain(EVENTS);
    let (one, two) = (&plan.points[0], &plan.points[2]);
    assert_ne!(one.config_hash(), two.config_hash());
    assert_eq!(one.run.flows(), two.run.flows());
    assert_eq!((one.run.changes().len(), two.run.changes().len()), (3, 4));
    let other = load(EVENTS, &set(&[("failure.detect", "1us")]));
    assert_ne!(one.config_hash(), other.points[0].config_hash());
}

#[test]
fn events_are_set_and_swept_by_number_or_name() {
    let changed =
        [("event.1.at", "5ms"), ("event.2.random.count", "3"), ("event.1.link", "[[\"agg0_0\", \"core0\"], \"agg0_0--core1\"]")];
    let plan = load(EVENTS, &set(&changed));
    assert_eq!(plan.sweep_keys, ["event.1.link"]);
    assert_eq!(plan.points[2].id, "newreno-linkagg0_0--core1-seed1");
    assert_eq!(plan.points[2].run.failures.as_ref().unwrap().events[0].params.at, base::Dur::from_ms(5));
    let named = EVENTS.replacen("[[event]]", "[event.cut]", 1).replacen("[[event]]", "[event.more]", 1);
    let text = format!("{named}[profile.smoke]\nevent.cut.at = \"1ms\"\nfailure.converge = \"0s\"\n");
    let plan = load(&text, &profile("smoke"));
    assert_eq!(plan.sweep_keys, ["event.more.random.count"]);
    let failures = plan.points[0].run.failures.as_ref().unwrap();
    assert_eq!((failures.events[0].name.as_str(), failures.events[0].params.at), ("cut", base::Dur::from_ms(1)));
    assert_eq!(failures.params.converge, base::Dur::ZERO);
}

#[test]
fn hosts_may_stay_disconnected_with_unreachable_run() {
    let cut = format!("{EVENTS}[event.3]\nnode = \"edge0_0\"\n").replacen("[[event]]", "[event.1]", 1).replacen(
        "[[event]]",
        "[event.2]",
        1,
    );
    let refused = scenario::load(&cut, "x.toml", Path::new("."), &Options::default()).unwrap_err();
    assert_eq!(refused.items().len(), 1);
    assert!(refused.items()[0].message.starts_with("`event.3`: "), "{refused}");
    assert!(load(&cut, &set(&[("failure.unreachable", "run")])).points.len() == 4);
    // The node comes up again: no hosts stay disconnected.
    assert!(load(&cut, &set(&[("event.3.until", "10ms")])).points.len() == 4);
}
/// Hosts do not forward: a host with a NIC at each of two switches does not connect the other hosts
/// of these switches.
#[test]
fn a_host_with_several_nics_is_not_a_bridge() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("nodes.csv"), "name,kind\nboth,host\nleft,host\nright,host\ns,switch\nt,switch\n").unwrap();
    let attempt = |more: &str, rest: &str| {
        let cables = format!("a,b,rate,delay\nboth,s,1Gbps,1us\nboth,t,1Gbps,1us\nleft,s,1Gbps,1us\nright,t,1Gbps,1us\n{more}");
        std::fs::write(dir.path().join("cables.csv"), cables).unwrap();
        let text = format!(
            "[topology]\nkind = 'file'\npath = 'cables.csv'\nnodes = 'nodes.csv'\n[workload.all]\nkind = 'long'\nsize = '1MB'\n\
             pairs = 'left->right, both->right'\n[[system]]\ntransport = 'newreno'\n{rest}"
        );
        scenario::load(&text, "t.toml", dir.path(), &Options::default()).map(|_| ()).map_err(|e| e.to_string())
    };
    let message = attempt("", "").unwrap_err();
    assert!(message.contains("from `left` to `right`") && message.contains("hosts do not forward"), "{message}");
    assert_eq!(attempt("s,t,1Gbps,1us\n", ""), Ok(()));
    let message = attempt("s,t,1Gbps,1us\n", "[[event]]\nlink = 's--t'\nat = '1ms'\n").unwrap_err();
    assert!(message.contains("1 of 2 flows have no path from `1ms` on: `left` to `right` (1)"), "{message}");
    assert_eq!(attempt("s,t,1Gbps,1us\n", "[[event]]\nlink = 'both--t'\nat = '1ms'\n"), Ok(()));
}

/// TREE with a law for the deadlines of `web`.
fn with_deadline(law: &str) -> String {
    TREE.replace("size_unit = \"wire\"", &format!("size_unit = \"wire\"\ndeadline = {law}"))
}

/// (start, size, deadline from the start) of each flow of `web`, in ps and bytes.
fn web(plan: &Plan) -> Vec<(u64, u64, Option<u64>)> {
    let flows = plan.points[0].run.flows().unwrap();
    let row = |f: &proto::Flow| (f.start.ps(), f.size_bytes, f.deadline.map(|d| d.since(f.start).ps()));
    flows.iter().filter(|f| f.workload == 0).map(row).collect()
}

#[test]
fn deadlines_do_not_change_the_flows() {
    const MS: u64 = 1_000_000_000;
    let flows = |plan: &Plan| plan.points[0].run.flows().unwrap();
    let before = flows(&plain(TREE));
    assert!(before.iter().all(|f| f.deadline.is_none()));
    for law in [
        "'20ms'",
        "{ kind = 'fixed', after = '20ms' }",
        "{ kind = 'exponential', mean = '5ms' }",
        "{ kind = 'uniform', min = '1ms' }",
        "{ kind = 'slack', factor = 3 }",
    ] {
        let after = flows(&plain(&with_deadline(law)));
        assert!(after.iter().all(|f| f.deadline.is_some_and(|d| d > f.start) == (f.workload == 0)), "{law}");
        let bare: Vec<_> = after.into_iter().map(|f| proto::Flow { deadline: None, ..f }).collect();
        assert_eq!(bare, before, "{law}");
    }
    assert!(web(&plain(&with_deadline("'20ms'"))).iter().all(|f| f.2 == Some(20 * MS)));
    // A packet of 1500 bytes and a packet of 41 bytes on four links of 1 Gb/s and 10 us: on the
    // last link, the short packet follows immediately.
    let one = with_deadline("{ kind = 'slack', factor = 2 }").replace("size_unit", "size = 'fixed'\nmean = '1541B'\nsize_unit");
    let ideal = if web(&plain(&one))[0].2 == Some(2 * (48_000_000 + 328_000 + 40_000_000)) { 4 } else { 2 };
    let expected = 2 * (12_000_000 * ideal + 328_000 + 10_000_000 * ideal);
    assert_eq!(web(&plain(&one))[0].2, Some(expected), "on {ideal} links");
}

/// The share is kept in the order of starts. This is not the order of drawing: the flows of an
/// incast start at random.
#[test]
fn flows_with_a_deadline_have_their_share_of_the_bytes() {
    let text = TREE.replace(
        "jitter = \"0s\"",
        "jitter = '1ms'\nrepeat = 40\ninterval = '100us'\ndeadline = { kind = 'fixed', after = '20ms' }",
    );
    for (workload, name) in [(0, "web"), (1, "burst")] {
        let drawn = |share: &str| {
            let options =
                [("workload.web.deadline", "{ kind = 'exponential' }"), (&*format!("workload.{name}.deadline.share"), share)];
            let mut flows = load(&text, &set(&options)).points[0].run.flows().unwrap();
            flows.retain(|flow| flow.workload == workload);
            flows
        };
        let every = drawn("1");
        assert!(every.iter().all(|flow| flow.deadline.is_some()) && drawn("0").iter().all(|flow| flow.deadline.is_none()));
        let some = drawn("0.3");
        let (mut with, mut all) = (0.0, 0.0);
        for (flow, of_every) in some.iter().zip(&every) {
            assert_eq!(flow.deadline.is_some(), all == 0.0 || with < 0.3 * all, "{name}: flow {}", flow.id);
            assert!(flow.deadline.is_none() || flow == of_every, "a flow's deadline does not depend on the share");
            with += if flow.deadline.is_some() { flow.size_bytes as f64 } else { 0.0 };
            all += flow.size_bytes as f64;
        }
        assert!(some.iter().filter(|flow| flow.deadline.is_some()).count() > 1);
    }
    let swept = plain(&with_deadline("{ kind = 'uniform', share = [0.2, 0.8] }"));
    assert_eq!(swept.sweep_keys[0], "workload.web.deadline.share");
    let has_share = |line: &str| line.trim_start().starts_with("share =") || line.contains(" share =");
    assert!(!plain(&with_deadline("'20ms'")).resolved().lines().any(has_share), "a quiet key: left out at its default");
    assert!(plain(&with_deadline("{ kind = 'fixed', after = '20ms', share = 0.3 }")).resolved().lines().any(has_share));
}

#[test]
fn deadlines_are_swept_and_set_like_any_parameter() {
    let swept = plain(&with_deadline("['5ms', '20ms']"));
    assert_eq!(swept.sweep_keys, ["workload.web.deadline.after", "workload.web.load", "system.agent.alpha", "system.qdisc.limit"]);
    assert_eq!(swept.points[0].id, "merp-after5ms-load0.2-alpha0.99-seed1");
    let swept = plain(&with_deadline("{ kind = 'exponential', mean = ['5ms', '20ms'] }"));
    assert_eq!(swept.sweep_keys[0], "workload.web.deadline.mean");
    let law = |text: &str, options: &Options| load(text, options).points[0].run.workloads[0].1.deadline.clone().unwrap().show();
    let fixed = vec![("share", "1".to_owned()), ("after", "30ms".to_owned())];
    let exponential = with_deadline("{ kind = 'exponential', mean = '5ms' }");
    assert_eq!(law(&exponential, &set(&[("workload.web.deadline", "30ms")])), fixed);
    assert_eq!(law(TREE, &set(&[("workload.web.deadline", "30ms")])), fixed);
    assert_eq!(law(&exponential, &set(&[("workload.web.deadline.mean", "7ms")]))[1].1, "7ms");
    assert_eq!(law(&with_deadline("'9ms'"), &set(&[("workload.web.deadline.after", "30ms")])), fixed);
    let profiled = TREE.replace("load = 0.5 }", "load = 0.5, deadline = { kind = 'uniform' } }");
    assert_eq!(law(&profiled, &profile("smoke")).len(), 3);
    for text in [with_deadline("'20ms'"), exponential] {
        let plan = plain(&text);
        assert_eq!(load(plan.resolved(), &Options::default()).points, plan.points);
        let single = load(&plan.points[0].resolved(), &Options::default());
        assert_eq!(single.points[0].run, plan.points[0].run);
    }
}

/// `implies` of an entry's META applies to settings that the file does not give, and only to them.
#[test]
fn entries_imply_settings_of_other_parts() {
    let rest = "[topology]\nkind = 'star'\nhosts = 3\n[workload.web]\nkind = 'poisson'\nflows = 1\n[[system]]\n";
    let of = |system: &str| load(&format!("{rest}{system}"), &Options::default()).points[0].run.system.clone();
    let dctcp = of("transport = 'dctcp'");
    assert_eq!((dctcp.qdisc.name(), dctcp.nic.qdisc.name()), ("ecn_threshold", "ecn_threshold"));
    assert_eq!(of("transport = 'dctcp'\nqdisc = 'droptail'").qdisc.name(), "droptail");
    let low_water = |nic: &str| of(&format!("transport = 'pfabric'\nqdisc = 'pfabric'\n{nic}")).nic.low_water_bytes;
    assert_eq!([low_water(""), low_water("nic = { low_water = '3KB' }")], [Some(1), Some(3000)]);
    assert_eq!([low_water("nic = 'pull'"), low_water("nic = 'ns2'")], [Some(1), None]);
    // A transport that chooses its packets late, and a low-water mark of the scenario, keep the kind of host.
    let host = |system: &str| {
        let nic = of(system).nic;
        (nic.kind, nic.low_water_bytes)
    };
    assert_eq!(host("transport = 'dctcp'\npolicy = 'pias'"), (HostKind::Ns2, None));
    assert_eq!(host("transport = 'dctcp'\npolicy = 'pias'\nnic = 'pull'"), (HostKind::Pull, Some(3000)));
    assert_eq!(host("transport = 'dctcp'\npolicy = 'pias'\nnic.low_water = 'unlimited'"), (HostKind::Pull, None));
    assert_eq!(host("transport = 'timely'\npolicy = 'pias'"), (HostKind::Pull, Some(1)));
    assert_eq!(host("transport = 'dctcp'\npolicy = 'karuna'\nqdisc = 'strict'"), (HostKind::Pull, Some(3000)));
    let of_qdisc = |system: &scenario::System, key: &str| {
        let qdisc = system.parts().into_iter().find(|part| part.slot.name == "qdisc").expect("every system has one");
        qdisc.values.into_iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    };
    // Queues that the policy implies take precedence over those of the transport.
    let pias = of("transport = 'dctcp'\npolicy = { kind = 'pias', thresholds = '3KB' }");
    assert_eq!((pias.qdisc.name(), of_qdisc(&pias, "classes").as_deref()), ("strict", Some("8")));
    let few = of("transport = 'newreno'\npolicy = { kind = 'pias', thresholds = '3KB' }\nqdisc = { kind = 'strict', classes = 2 }");
    assert_eq!(of_qdisc(&few, "classes").as_deref(), Some("2"));
    // Queues that the transport implies take precedence over those of the router.
    let difs = |transport: &str| {
        let text = format!(
            "[topology]\nkind = 'fat_tree'\n[workload.web]\nkind = 'poisson'\nflows = 1\n[[system]]\nrouter = 'difs'\n{transport}"
        );
        load(&text, &Options::default()).points[0].run.system.clone()
    };
    let [newreno, dctcp] = ["transport = 'newreno'", "transport = 'dctcp'"].map(difs);
    assert_eq!((of_qdisc(&newreno, "class_of").as_deref(), dctcp.qdisc.name()), (Some("control_first"), "ecn_threshold"));
    // DCTCP has marks on the ports of PIAS, unless the scenario says otherwise.
    let mark = |qdisc: &str| {
        let text = format!("transport = 'dctcp'\npolicy = {{ kind = 'pias', thresholds = '3KB' }}\n{qdisc}");
        let warnings = load(&format!("{rest}{text}"), &Options::default()).warnings;
        assert!(!warnings.items().iter().any(|item| item.message.contains("needs ECN marks")));
        of_qdisc(&of(&text), "mark")
    };
    assert_eq!([mark(""), mark("qdisc = { kind = 'strict', mark = '20pkt' }")].map(Option::unwrap), ["auto", "20pkt"]);
}

#[test]
fn automatic_seeds_are_written_out_and_read_back() {
    let text = TREE.replace("seed = [1, 2]", "seed = \"auto\"\nmax_seeds = 7");
    let found = plain(&text);
    assert_eq!((found.points.len(), found.with_seeds(3).points.len()), (10 * 7, 10 * 3));
    for line in ["seed = \"auto\"", "precision = \"5%\"", "metric = \"mean_slowdown\"", "max_seeds = 7"] {
        assert!(found.resolved().contains(line), "{line} in\n{}", found.resolved());
    }
    assert!(plain(found.resolved()).points == found.points && plain(found.resolved()).auto.is_some());
    // A seed of an automatic run is the point of that seed.
    let listed = plain(&text.replace("seed = \"auto\"\nmax_seeds = 7", "seed = [1, 2, 3]"));
    assert_eq!(listed.points, found.with_seeds(3).points);
    let options = Options { seeds: Some(vec![5]), ..Options::default() };
    assert!(load(&text, &options).auto.is_none() && load(&text, &options).points.len() == 10);
    assert!(load(&text.replace("\"auto\"", "3"), &set(&[("seed", "auto")])).auto.is_some());
}

/// The values that a policy derives follow the plan as comments, for each swept value; systems
/// without a policy have none.
#[test]
fn notes_of_policies_follow_the_plan() {
    let text = "[topology]\nkind = 'leaf_spine'\n[workload.web]\nkind = 'poisson'\nsize = 'cdf'\nload = [0.5, 0.8]\n\
                [[system]]\nlabel = 'PIAS'\ntransport = 'dctcp'\npolicy = 'pias'\n[[system]]\ntransport = 'newreno'\n";
    let found = plain(text);
    let notes: Vec<&str> = found.resolved().lines().filter(|line| line.contains("predicted mean FCT")).collect();
    assert_eq!(notes.len(), 2, "{}", found.resolved());
    assert!(notes[0].starts_with("# PIAS, workload.web.load = 0.5: pias: thresholds "), "{notes:?}");
    assert!(notes[1].contains("workload.web.load = 0.8") && notes[0] != notes[1]);
    assert!(plain(found.resolved()).points == found.points);
    assert!(!plain(TREE).resolved().contains("M/G/1"));
}

/// Thresholds may exist for one swept law of sizes but not for another law.
#[test]
fn a_policy_must_accept_every_variant_of_the_workloads() {
    let text = "[topology]\nkind = 'leaf_spine'\n[workload.web]\nkind = 'poisson'\nsize = 'cdf'\ncdf = ['websearch', 'fb-hadoop']\n\
                [[system]]\ntransport = 'dctcp'\npolicy = { kind = 'pias', thresholds = 'published' }\n";
    let refused = scenario::load(text, "sizes.toml", Path::new("."), &Options::default()).unwrap_err().to_string();
    let message = "no workload offers web search or data mining at a load, with workload.web.cdf = fb-hadoop";
    assert!(refused.contains(message), "{refused}");
    assert_eq!(plain(&text.replace("published", "auto")).points.len(), 2);
}

/// Incasts that take a tenth of the capacity, in addition to random flows, until the last random
/// flow that counts starts. The order of the tables does not matter.
#[test]
fn incasts_run_with_another_workload() {
    let web = "[workload.web]\nkind = 'poisson'\nflows = 2000\nload = 0.4\nsize = 'fixed'\nmean = '100KB'\n";
    let burst = "[workload.burst]\nkind = 'incast'\nsenders = 8\nsize = '20KB'\nload = 0.1\nuntil = 'web'\nreceiver = 'random'\nselect = 'random'\n";
    let text = |workloads: &str| format!("[topology]\nkind = 'leaf_spine'\n{workloads}[[system]]\ntransport = 'newreno'\n");
    for (workloads, own) in [([web, burst], 1), ([burst, web], 0)] {
        let plan = plain(&text(&workloads.concat()));
        let flows = plan.points[0].run.flows().unwrap();
        let last =
            |workload| flows.iter().filter(|flow| flow.measured && flow.workload == workload).map(|flow| flow.start).max().unwrap();
        // The last round may start later by the jitter.
        assert!(last(own).0 <= last(1 - own).0 + 10_000_000 && last(own).0 > last(1 - own).0 * 9 / 10);
        let loads = plan.points[0].run.realised_loads(&flows);
        let realised = loads[usize::from(own)].1.unwrap();
        assert!((realised - 0.1).abs() < 0.015, "{realised}");
        assert_eq!(plain(plan.resolved()).points, plan.points);
    }
    let refused = |until: &str, more: &str| {
        let text = text(&format!("{web}{}{more}", burst.replace("'web'", until)));
        scenario::load(&text, "x.toml", Path::new("."), &Options::default()).expect_err("refused").to_string()
    };
    let unknown = refused("'wed'", "");
    assert!(unknown.contains("`wed` is neither a time nor a workload of this scenario; did you mean `web`?"), "{unknown}");
    let other = burst.replace("workload.burst", "workload.more");
    assert!(refused("'more'", &other).contains("`more` cannot be used here: its own `until` names a workload too"));
    assert!(refused("'burst'", "").contains("`burst` cannot be used here: its own `until` names a workload too"));
}

/// `check` prints the values chosen for `auto`, and runs have them in their manifests.
#[test]
fn values_chosen_for_auto_are_printed() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("cables.csv"), "a,b,rate,delay\nh0,s,10Gbps,1us\nh1,s,10Gbps,1us\nh2,s,40Gbps,1us\n").unwrap();
    let load = |systems: &str, rest: &str| {
        let text = format!(
            "[topology]\nkind = 'file'\npath = 'cables.csv'\n[workload.all]\nkind = 'poisson'\nsize = 'fixed'\nmean = '15KB'\n\
             load = [0.2, 0.4]\n{rest}{systems}"
        );
        scenario::load(&text, "t.toml", dir.path(), &Options::default()).unwrap_or_else(|e| panic!("{e}"))
    };
    let system = |kind: &str, more: &str| format!("[[system]]\nlabel = '{kind}'\ntransport = {{ kind = '{kind}'{more} }}\n");
    let lines =
        |plan: &Plan| plan.resolved().lines().filter(|line| line.contains(": auto: ")).map(str::to_owned).collect::<Vec<String>>();
    let of = |kind: &str, more: &str| lines(&load(&system(kind, more), "")).concat();
    // The longest round trip: a full packet of 1500 bytes and one of 40 bytes on two links of 10 Gb/s, and four delays of
    // 1 us: 2.4 + 0.064 + 4 us. Timeouts: 4.096 us times 2^14. A thousandth, and a hundredth, of the rates of the two
    // hosts.
    let dcqcn = of("dcqcn", "");
    for part in [
        "# dcqcn, workload.all.load = 0.2: dcqcn: auto: ",
        "base_rtt = 6.464us",
        "min_rate = 10Mbps to 40Mbps",
        "rto = 67108.864us",
    ] {
        assert!(dcqcn.contains(part), "{part} in {dcqcn}");
    }
    assert!(dcqcn.contains("rate_ai = 10Mbps to 40Mbps; rate_hai = 100Mbps to 400Mbps"), "{dcqcn}");
    // Without effect: `rto_low` and `window` with go-back-N. Given: `rto`.
    assert!(!["rto_low", "window"].iter().any(|key| dcqcn.contains(key)), "{dcqcn}");
    assert!(!of("dcqcn", ", rto = '1ms'").contains("rto"));
    let irn = of("dcqcn", ", recovery = 'irn'");
    assert!(irn.contains("window = bdp; ") && irn.contains("rto_low = 100us") && irn.contains("rto = 320us"), "{irn}");
    // (1 - 0.95) / 100 of 10 and 40 Gb/s.
    assert!(of("hpcc", "").contains("rate_ai = 5Mbps to 20Mbps"), "{}", of("hpcc", ""));
    let swift = of("swift", "");
    assert!(swift.contains("base_target = 6.464us; ") && swift.contains("per_hop = by path; fs_range = 32.32us"), "{swift}");
    // 8080 and 32320 bytes in a round trip: 8080 of 15000 bytes are unscheduled at the slower hosts (4.3 of 8 levels), all at
    // the faster one.
    let homa = of("homa", ", cutoffs = 'auto'");
    let parts = ["rtt_bytes = 8080B to 32320B", "cutoffs = 15KB", "scheduled_levels = 4 to 1", "overcommitment = 4 to 1"];
    assert!(
        parts.iter().all(|part| homa.contains(part))
            && ["resend_after = 5ms", "ask_after = 10ms"].iter().all(|part| homa.contains(part)),
        "{homa}"
    );
    // A value that is equal for both loads has one line.
    assert_eq!(lines(&load(&system("dcqcn", ""), "")).len(), 1);
    // The flow engine uses no transport.
    let text = "[topology]\nkind = 'star'\n[workload.all]\nkind = 'poisson'\n[[system]]\ntransport = 'dcqcn'\n";
    assert_eq!((lines(&plain(text)).len(), lines(&plain(&format!("engine = 'flow'\n{text}"))).len()), (1, 0));
    // Thresholds of a policy are in its note.
    let pias = "[[system]]\nlabel = 'P'\npolicy = 'pias'\n";
    let plan = load(pias, "");
    assert!(plan.resolved().contains("# P, workload.all.load = 0.2: pias: thresholds "), "{}", plan.resolved());
    assert!(lines(&plan).iter().all(|line| !line.contains("thresholds")), "{:?}", lines(&plan));
}
