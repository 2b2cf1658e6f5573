//! Scenarios that can run and may mislead: what is said about them, and that nothing is said about sensible ones.

use scenario::{Options, Plan, Style};
use std::path::Path;

fn load(text: &str) -> Plan {
    scenario::load(text, "w.toml", Path::new("."), &Options::default()).unwrap_or_else(|e| panic!("{e}\nin\n{text}"))
}

/// (line, message) of each warning.
fn warned(text: &str) -> Vec<(usize, String)> {
    load(text).warnings.items().iter().map(|item| (item.line, item.message.clone())).collect()
}

/// A scenario about which nothing is said, of which a test changes lines.
const SOUND: &str = r#"
[topology]
kind = "single_tree"
[workload.web]
kind = "poisson"
load = [0.2, 0.4]
[[system]]
label = "TCP"
transport = { kind = "newreno", min_rto = "10ms", init_rto = "10ms" }
[[system]]
label = "DCTCP"
transport = { kind = "dctcp", min_rto = "10ms", init_rto = "10ms" }
qdisc = "ecn_threshold"
[[system]]
label = "pFabric"
transport = { kind = "pfabric", handshake = true }
qdisc = "pfabric"
[sample]
interval = "1ms"
"#;

fn changed(from: &str, to: &str) -> Vec<(usize, String)> {
    assert!(SOUND.contains(from), "{from}");
    warned(&SOUND.replace(from, to))
}

#[test]
fn a_sensible_scenario_has_no_warnings() {
    assert_eq!(warned(SOUND), []);
    assert_eq!(load(SOUND).warnings.render(Style::Plain), "");
}

#[test]
fn load_beyond_a_link_is_named_with_the_link() {
    // Six of nine hosts are in other racks, and all of 0.75 of the hosts' 9 Gb/s cross 3 Gb/s of uplinks: 2.25 times the load.
    let message = "`workload.web.load`: `0.8` offers the link `tor0->root` 1.80 times its rate of 1Gbps";
    assert_eq!(changed("[0.2, 0.4]", "[0.2, 0.8]"), [(6, message.to_owned())]);
    assert_eq!(changed("[0.2, 0.4]", "0.44"), []);
    assert_eq!(changed("[0.2, 0.4]", "0.45").len(), 1);
    // Loads of workloads add up; those of a burst that comes once do not count.
    let other = |more: &str| changed("[0.2, 0.4]", &format!("0.3\n[workload.other]\n{more}"));
    assert_eq!(other("kind = \"poisson\"\nload = 0.3").len(), 1);
    assert_eq!(other("kind = \"incast\"\nsenders = 8\nsize = \"10MB\""), []);
    let every = other("kind = \"incast\"\nsenders = 8\nsize = \"1MB\"\nrepeat = 3\ninterval = \"10ms\"");
    assert!(every[0].1.contains("`workload.other.interval`: `10ms` offers the link `tor0->h0`"), "{every:?}");
    // The largest of several networks' warnings is told.
    let text = SOUND.replace("kind = \"single_tree\"", "kind = \"single_tree\"\nuplink_rate = [\"500Mbps\", \"300Mbps\"]");
    assert!(warned(&text)[0].1.ends_with("3.00 times its rate of 300Mbps"), "{:?}", warned(&text));
}

#[test]
fn a_transport_that_needs_marks_is_warned_of_ports_that_never_mark() {
    for qdisc in ["\"droptail\"", "{ kind = \"ecn_threshold\", mark = \"unlimited\" }", "{ kind = \"red_ecn\", chosen = \"drop\" }"]
    {
        let found = changed("qdisc = \"ecn_threshold\"", &format!("qdisc = {qdisc}"));
        assert!(
            found.len() == 1 && found[0].0 == 12 && found[0].1.starts_with("`dctcp` needs marks, and no port marks"),
            "{found:?}"
        );
    }
    assert_eq!(changed("qdisc = \"ecn_threshold\"", "qdisc = \"red_ecn\""), []);
}

/// Whatever entry says that it needs deadlines is warned of where no flow has one, and no other entry is.
#[test]
fn an_entry_that_needs_deadlines_is_warned_of_flows_without() {
    let rest = "[topology]\nkind = 'leaf_spine'\n[workload.a]\nkind = 'poisson'\n[workload.b]\nkind = 'poisson'\nload = 0.1\n";
    let slots = scenario::SLOTS.iter();
    for (slot, entry) in slots.flat_map(|slot| slot.room.entries.iter().map(move |entry| (slot.name, entry))) {
        let system = scenario::system_of(slot, entry.name).toml();
        let about = |text: &str| warned(text).into_iter().filter(|(_, message)| message.contains("needs deadlines")).count();
        let parts = load(&format!("{rest}{system}")).points[0].run.system.parts();
        let needed = parts.iter().any(|part| part.entry.meta.needs.deadlines);
        assert_eq!(about(&format!("{rest}{system}")), usize::from(needed), "{system}");
        assert_eq!(about(&format!("{rest}deadline = '20ms'\n{system}")), 0, "{system}");
    }
}

#[test]
fn timeouts_out_of_proportion_and_unlike_are_named() {
    // The longest round trip of the tree is 2 x 4 x 10 us and 4 x 12.3 us of transmission.
    let all = |value: &str| warned(&SOUND.replace("10ms\", init_rto = \"10ms", value));
    assert_eq!(all("13ms\", init_rto = \"13ms"), []);
    let long = all("14ms\", init_rto = \"14ms");
    assert_eq!(long.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [9, 12]);
    assert!(long[0].1.ends_with("`14ms` is 108 times the longest unloaded round trip, which is 129.28us"), "{long:?}");
    // Below a millisecond no number of round trips is too many: these are 7.7 and 9.7 us.
    let fast = |rto: &str| {
        let text = SOUND.replace("10ms\", init_rto = \"10ms", &format!("{rto}\", init_rto = \"{rto}"));
        warned(&text.replace(
            "kind = \"single_tree\"",
            "kind = \"single_tree\"\nrate = \"100Gbps\"\nuplink_rate = \"100Gbps\"\ndelay = \"1us\"",
        ))
    };
    assert_eq!(fast("1ms"), []);
    assert!(fast("1001us")[0].1.contains("`1.001ms` is "), "{:?}", fast("1001us"));
    // A timeout that expires before any answer can come.
    let short = all("129us\", init_rto = \"129us");
    assert_eq!(short.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [9, 12]);
    assert!(short[0].1.ends_with("`129us` is less than the longest unloaded round trip, which is 129.28us"), "{short:?}");
    assert_eq!(all("130us\", init_rto = \"130us"), []);
    let one = changed("\"newreno\", min_rto = \"10ms\"", "\"newreno\", min_rto = \"1ms\"");
    assert_eq!(one, []);
    let one = changed("\"newreno\", min_rto = \"10ms\"", "\"newreno\", min_rto = \"500us\"");
    assert_eq!(
        one,
        [(12, "`system.DCTCP.transport.min_rto`: `10ms` is 20 times the `min_rto` of `TCP`, which is 500us".to_owned())]
    );
    // What a system sweeps is unlike on purpose.
    assert_eq!(changed("\"newreno\", min_rto = \"10ms\"", "\"newreno\", min_rto = [\"10ms\", \"200us\"]"), []);
}

#[test]
fn unlike_handshakes_are_named() {
    let found = changed(", handshake = true", "");
    assert_eq!(found, [(16, "flows of `pFabric` open without a handshake, and those of `TCP`, `DCTCP` with one".to_owned())]);
}

#[test]
fn tails_of_few_flows_are_named() {
    assert_eq!(changed("load =", "flows = 1000\nload ="), []);
    let found = changed("load =", "flows = [2000, 200]\nload =");
    assert_eq!(found, [(4, "`workload.web`: 200 flows leave 2 above the 99th percentile".to_owned())]);
    // A burst is no sample of anything.
    let incast = "kind = \"incast\"\nsenders = 8\nsize = \"20KB\"";
    assert_eq!(changed("kind = \"poisson\"\nload = [0.2, 0.4]", incast), []);
}

#[test]
fn sampled_keys_that_show_nothing_are_named() {
    for (more, key) in [
        ("ports = false", "ports"),
        ("ports = false\nflows = true\nport = \"tor0->root\"", "port"),
        ("ports = false\npackets = true", "interval"),
    ] {
        let found = warned(&format!("{SOUND}{more}\n"));
        assert!(found.len() == 1 && found[0].1.starts_with(&format!("`sample.{key}`: ")), "{found:?}");
    }
    assert!(warned(&format!("end = \"1ms\"\n{SOUND}"))[0].1.starts_with("`sample.interval`: "));
}

#[test]
fn a_controller_slower_than_the_run_is_named() {
    let with = |end: &str, controller: &str| {
        warned(&format!(
            "{end}{}",
            SOUND.replace("[sample]", &format!("[[system]]\ntransport = \"newreno\"\n{controller}\n[sample]"))
        ))
    };
    let late = |end| with(end, "controller = { kind = \"rebalance\", latency = \"1s\", period = \"2s\" }");
    let message = "`system.newreno.controller.period`: `rebalance` looks at the network after 2s and acts 1s later";
    assert_eq!(late("end = \"3s\"\n"), [(21, message.to_owned())]);
    assert_eq!((late("end = \"3001ms\"\n"), late("")), (vec![], vec![]));
    // At its defaults it acts after 2 ms.
    let by_default = with("end = \"2ms\"\n", "controller = \"rebalance\"");
    assert!(by_default.len() == 1 && by_default[0].0 == 21, "{by_default:?}");
}

#[test]
fn a_precision_beside_given_seeds_has_no_effect() {
    let found = warned(&format!("seed = [1, 2]\nprecision = \"5%\"{SOUND}"));
    assert_eq!(found, [(2, "`precision` has no effect: the seeds are given".to_owned())]);
    assert_eq!(warned(&format!("seed = \"auto\"\nprecision = \"5%\"{SOUND}")), []);
}

/// The flow engine has neither transports nor queues; a scenario that runs under both engines is not warned.
#[test]
fn what_the_flow_engine_ignores_is_named() {
    let scenario = |engine: &str, more: &str| {
        format!(
            "engine = {engine}\n[topology]\nkind = \"single_tree\"\nloss = 0.01\n[workload.web]\nkind = \"poisson\"\nload = 0.4\n\
             [[system]]\ntransport = {{ kind = \"dctcp\", min_rto = \"10ms\" }}\nnic = {{ low_water = \"1B\" }}\n{more}"
        )
    };
    let expected = [
        (2, "`topology.loss` has no effect: the flow engine has no packets to lose"),
        (9, "no effect under the flow engine: `transport.min_rto`, `nic`"),
    ];
    let expected = expected.map(|(line, message)| (line, message.to_owned()));
    let mut found = warned(&scenario("\"flow\"", ""));
    found.sort();
    assert_eq!(found, expected);
    assert_eq!(warned(&scenario("\"packet\"", "")), []);
    assert_eq!(warned(&scenario("[\"packet\", \"flow\"]", "")), []);
    let traced = warned(&scenario("\"flow\"", "[sample]\nports = true\nagents = true\npackets = true\n"));
    for message in ["no packets to trace", "agents of ports have nothing to do"] {
        assert!(traced.iter().any(|(_, said)| said.contains(message)), "{traced:?}");
    }
}

#[test]
fn warnings_have_the_form_of_errors() {
    let plan = load(&SOUND.replace("[0.2, 0.4]", "0.9"));
    let shown = plan.warnings.render(Style::Plain);
    for part in ["warning: `workload.web.load`: `0.9` offers", "[w.toml:6:8]", "load = 0.9", "^^^", "hint: its queue grows"] {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
    assert!(plan.warnings.as_errors().render(Style::Plain).contains("error: `workload.web.load`"));
    // Nothing of it concerns the points.
    assert_eq!(plan.points.len(), 3);
}

/// A system that needs packets beside a swept engine: it has points by packets alone.
#[test]
fn a_system_that_needs_packets_runs_by_packets_alone() {
    let plan = load(&SOUND.replace("\n[topology]", "engine = [\"packet\", \"flow\"]\n[topology]"));
    let found: Vec<(usize, String)> = plan.warnings.items().iter().map(|item| (item.line, item.message.clone())).collect();
    let why = "the flow engine cannot stand for the transport `pfabric`: its ports serve the flow with the fewest bytes left first";
    assert_eq!(found, [(16, format!("`pFabric` runs by packets alone: {why}"))]);
    let points =
        |label: &str, flow: bool| plan.points.iter().filter(|p| p.label == label && p.run.engine.is_flow() == flow).count();
    assert_eq!([("TCP", false), ("TCP", true), ("pFabric", false), ("pFabric", true)].map(|(l, f)| points(l, f)), [2, 2, 2, 0]);
}

/// Warnings about an incast on a leaf-spine network with hosts at 10 Gb/s, whose bandwidth-delay product is a little less than 40 packets.
fn fabric(system: &str) -> Vec<(usize, String)> {
    incast(32, system)
}

fn incast(senders: u32, system: &str) -> Vec<(usize, String)> {
    let topology = "[topology]\nkind = 'leaf_spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 20\ndelay = '5us'\n";
    warned(&format!(
        "{topology}[workload.burst]\nkind = 'incast'\nsenders = {senders}\nsize = '64KB'\njitter = '0s'\n[[system]]\n{system}"
    ))
}

fn about(found: &[(usize, String)], words: &str) -> usize {
    found.iter().filter(|(_, message)| message.contains(words)).count()
}

#[test]
fn queues_below_a_bandwidth_delay_product_are_named() {
    let with = |limit: &str| {
        fabric(&format!(
            "transport = {{ kind = 'newreno', init_window = 1, stack = 'fine' }}\nqdisc = {{ kind = 'droptail', limit = {limit} }}"
        ))
    };
    let found = with("'20pkt'");
    assert_eq!(about(&found, "of what a link carries in the longest unloaded round trip"), 1, "{found:?}");
    assert!(found[0].1.starts_with("`system.newreno.qdisc.limit`: a port of 10Gbps holds 30KB"), "{found:?}");
    for enough in ["'40pkt'", "'auto'", "'unlimited'", "'64KB'"] {
        assert_eq!(with(enough), [], "{enough}");
    }
    // The worst of several values is named, at the value of the shared buffer where that is less.
    assert_eq!(about(&with("['40pkt', '20pkt', '10pkt']"), "holds 15KB"), 1);
    let shared =
        "transport = { kind = 'newreno', init_window = 1, stack = 'fine' }\nbuffer = { kind = 'dynamic', total = '40KB' }\n";
    let found = fabric(shared);
    assert!(found.len() == 1 && found[0].1.starts_with("`system.newreno.buffer.total`: a port of 10Gbps holds 20KB"), "{found:?}");
    // No part of pFabric relies on it.
    assert_eq!(about(&fabric("transport = 'pfabric'\nqdisc = { kind = 'pfabric', limit = '9pkt' }"), "holds"), 0);
}

#[test]
fn marks_that_come_too_early_are_named() {
    let with = |mark: &str| {
        fabric(&format!(
            "transport = {{ kind = 'dctcp', init_window = 1, stack = 'fine' }}\nqdisc = {{ kind = 'ecn_threshold', mark = {mark} }}"
        ))
    };
    // A seventh of the product of hosts.
    let found = with("'4pkt'");
    assert!(
        found.len() == 1 && found[0].1.contains("`4pkt` at 10Gbps is less than 6 packets, 0.14 bandwidth-delay products"),
        "{found:?}"
    );
    assert_eq!((with("'6pkt'"), with("'auto'")), (vec![], vec![]));
    let red = |low: &str| {
        fabric(&format!(
            "transport = {{ kind = 'dctcp', init_window = 1, stack = 'fine' }}\nqdisc = {{ kind = 'red_ecn', th_min = {low} }}"
        ))
    };
    assert_eq!((about(&red("'4pkt'"), "`system.dctcp.qdisc.th_max`"), red("'6pkt'")), (1, vec![]));
}

/// 31 more first windows of 10 packets than the link carries at once, against 100 packets; half as many of one packet fit.
#[test]
fn an_incast_beyond_the_queue_is_named_where_losses_cost_timeouts() {
    let tcp = |more: &str, queue: &str| {
        about(&fabric(&format!("transport = {{ kind = 'newreno', stack = 'fine'{more} }}\n{queue}")), "can slow them down")
    };
    let plain = "qdisc = { kind = 'droptail', limit = '100pkt' }";
    // Timeouts of 200 us are less than ten round trips.
    assert_eq!(tcp("", plain), 0);
    assert_eq!(tcp(", min_rto = '1ms'", plain), 1);
    assert_eq!(tcp(", min_rto = '1ms', init_window = 3", plain), 0);
    assert_eq!(tcp(", min_rto = '1ms'", "qdisc = { kind = 'droptail', limit = '311pkt' }"), 0);
    assert_eq!(tcp(", min_rto = '1ms'", "qdisc = { kind = 'droptail', limit = 'unlimited' }"), 0);
    // Ports trim what does not fit, so that no timeout is waited for.
    assert_eq!(about(&fabric("transport = 'ndp'\nqdisc = 'trim'"), "can slow them down"), 0);
}

#[test]
fn homa_is_warned_of_queues_below_what_it_grants() {
    let homa = |senders, overcommitment: u32, limit: &str| {
        let transport = format!("transport = {{ kind = 'homa', overcommitment = {overcommitment} }}");
        incast(senders, &format!("{transport}\nqdisc = {{ kind = 'strict', limit = {limit} }}"))
    };
    // Six products of a little less than 40 packets.
    let found = homa(3, 7, "'100pkt'");
    assert!(found.len() == 1 && found[0].1.contains("receivers of `homa` let up to"), "{found:?}");
    assert_eq!((homa(3, 7, "'240pkt'"), homa(3, 1, "'100pkt'")), (vec![], vec![]));
    let found = homa(32, 1, "'100pkt'");
    assert!(found.len() == 1 && found[0].1.contains("before `homa` can slow them down"), "{found:?}");
    assert_eq!(homa(32, 7, "'2500pkt'"), []);
}

/// What users copy compares like with like.
#[test]
fn examples_and_the_readme_have_no_warnings() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = root.join("examples");
    let read = |path: &Path| std::fs::read_to_string(path).expect("a file of the tree");
    let names = std::fs::read_dir(&folder).expect("the examples").map(|entry| entry.expect("readable").path());
    let mut all: Vec<_> = names
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .map(|path| (path.display().to_string(), read(&path)))
        .collect();
    all.sort();
    let readme = read(&root.join("README.md"));
    let scenarios = readme.split("```toml\n").skip(1).filter_map(|block| block.split("```").next());
    all.extend(scenarios.filter(|block| block.contains("[[system]]")).map(|block| ("README.md".to_owned(), block.to_owned())));
    assert!(all.len() >= 14 && all.last().is_some_and(|(name, _)| name == "README.md"), "{}", all.len());
    for (name, text) in all {
        let plan = scenario::load(&text, &name, &folder, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(plan.warnings.render(Style::Plain), "", "{name}");
    }
}
