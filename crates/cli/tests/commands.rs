//! Commands as users type them: exit codes, output and files.

use cli::why::Which;
use cli::{Console, Outcome, Signal, exit};
use std::fs;
use std::path::Path;
use tables::manifest;

const SMALL: &str = r#"
seed = [1, 2]
[topology]
kind = "star"
hosts = 4
[workload.web]
kind = "poisson"
flows = 20
load = 0.4
[measure]
flows = "all"
[[system]]
label = "TCP"
transport = "newreno"
[profile.smoke]
workload.web.flows = 5
"#;

/// Runs a command and returns its outcome, its standard output and its standard error.
fn output(args: &[&str], signal: Option<Signal>) -> (Outcome, String, String) {
    output_until(args, &mut || signal)
}

fn output_until(args: &[&str], signals: &mut dyn FnMut() -> Option<Signal>) -> (Outcome, String, String) {
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let outcome = cli::main(&args, &mut Console { out: &mut out, err: &mut err, terminal: false, signals });
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (outcome, text(out), text(err))
}

fn flowloom(args: &[&str]) -> Outcome {
    output(args, None).0
}

/// A temporary folder with `small.toml`: the folder, the file and a path for results.
fn folder() -> (tempfile::TempDir, String, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (file, out) = (path("small.toml"), path("out"));
    fs::write(&file, SMALL).unwrap();
    (dir, file, out)
}

fn exit_code(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Exit(code) => u64::from(*code),
        Outcome::Python(options) => options["exit"].as_u64().unwrap(),
    }
}

#[test]
fn check_reports_errors_with_their_places_as_json() {
    let (_dir, file, _) = folder();
    let json = |args: &[&str]| {
        let (outcome, out, err) = output(args, None);
        assert!(err.is_empty(), "{err}");
        (exit_code(&outcome), serde_json::from_str::<serde_json::Value>(&out).unwrap())
    };
    let (code, fine) = json(&["check", &file, "--format", "json"]);
    assert_eq!((code, &fine["valid"], &fine["points"], &fine["systems"][0]), (0, &true.into(), &2.into(), &"TCP".into()));
    let queue = &fine["queues"][0];
    assert_eq!((&queue["system"], &queue["key"], &queue["at"][0]["length"]), (&"TCP".into(), &"limit".into(), &"100pkt".into()));
    assert!(queue["rule"].as_str().unwrap().contains("bandwidth-delay products") && queue["at"][0]["rate_bps"].is_u64());

    fs::write(&file, SMALL.replace("load = 0.4", "load = 0.4\nlode = 1")).unwrap();
    let (code, wrong) = json(&["check", &file, "--format", "json"]);
    assert_eq!((code, &wrong["valid"], &wrong["points"]), (2, &false.into(), &serde_json::Value::Null));
    let found = &wrong["diagnostics"][0];
    let place = ["line", "col", "end_line", "end_col"].map(|key| found[key].as_u64().unwrap());
    assert_eq!((place, &found["severity"], &found["file"]), ([10, 1, 10, 5], &"error".into(), &file.clone().into()));
    assert!(found["message"].as_str().unwrap().contains("lode") && found["hint"].as_str().unwrap().contains("load"));

    let (code, gone) = json(&["check", "no-such.toml", "--format", "json"]);
    assert_eq!((code, &gone["diagnostics"][0]["line"]), (2, &serde_json::Value::Null));
    assert!(gone["diagnostics"][0]["message"].as_str().unwrap().starts_with("cannot read"));
}

#[test]
fn the_schema_is_printed() {
    let (outcome, out, _) = output(&["schema"], None);
    let schema: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((exit_code(&outcome), &schema["required"][0]), (0, &"topology".into()));
}

#[test]
fn a_run_leaves_its_results_and_hands_the_summary_to_python() {
    let (_dir, file, out) = folder();
    let done = flowloom(&["run", &file, "--out", &out]);
    let Outcome::Python(options) = &done else { panic!("{done:?}") };
    assert_eq!((options["command"].as_str(), options["dirs"][0].as_str(), exit_code(&done)), (Some("run"), Some(out.as_str()), 0));
    let results = tables::Results::open(Path::new(&out)).unwrap();
    assert!(results.complete() && results.manifest.complete);
    assert_eq!((results.points.len(), results.manifest.workloads.as_slice()), (2, ["web".to_owned()].as_slice()));
    assert!(results.manifest.peak_memory_bytes.is_none_or(|bytes| bytes > 1 << 20));
    for name in ["manifest.json", "points.parquet", "summary.parquet"] {
        assert!(Path::new(&out).join(name).is_file(), "{name}");
    }
    // The manifest holds the whole scenario: the run can be repeated from its folder.
    let again = scenario::load(&results.manifest.config, "manifest", ".".as_ref(), &scenario::Options::default());
    let again: Vec<String> = again.unwrap_or_else(|e| panic!("{e}")).points.into_iter().map(|p| p.id).collect();
    assert_eq!(again, results.manifest.points.iter().map(|p| p.id.clone()).collect::<Vec<_>>());
}

#[test]
fn options_reach_the_plan() {
    let (_dir, file, out) = folder();
    flowloom(&[
        "run",
        &file,
        "--out",
        &out,
        "--set",
        "workload.web.load=[0.1,0.2]",
        "--seed",
        "7",
        "--profile",
        "smoke",
        "--jobs",
        "1",
    ]);
    let results = tables::Results::open(Path::new(&out)).unwrap();
    let points: Vec<(u64, Vec<(String, String)>)> = results.points.iter().map(|p| (p.key.seed, p.key.swept.clone())).collect();
    let load = |value: &str| vec![("workload.web.load".to_owned(), value.to_owned())];
    assert_eq!(points, [(7, load("0.1")), (7, load("0.2"))]);
    assert_eq!((results.manifest.profile.as_deref(), results.manifest.jobs), (Some("smoke"), 1));
    assert_eq!(results.points[0].metric("flows"), Some(5.0));
}

#[test]
fn bad_input_is_reported_and_writes_nothing() {
    let (dir, file, out) = folder();
    let broken = dir.path().join("broken.toml");
    fs::write(&broken, SMALL.replace("hosts", "hots")).unwrap();
    let binary = dir.path().join("binary.toml");
    fs::write(&binary, [0xff, 0xfe, 0x00]).unwrap();
    let missing = dir.path().join("missing.toml");
    let path = |p: &Path| p.to_str().unwrap().to_owned();
    for bad in [path(&broken), path(&binary), path(&missing), path(dir.path())] {
        for command in ["check", "run"] {
            let args: Vec<&str> = if command == "run" { vec!["run", &bad, "--out", &out] } else { vec!["check", &bad] };
            let (outcome, out, err) = output(&args, None);
            assert_eq!((outcome, out.as_str()), (Outcome::Exit(exit::INPUT), ""), "{command} {bad}");
            assert!(err.contains("error: ") && err.lines().last().unwrap().trim().starts_with("hint: "), "{err}");
        }
    }
    let settings: [&[&str]; 6] = [
        &["--set", "x.y=1"],
        &["--set", "nothing"],
        &["--seed", "1,1"],
        &["--seed", "one"],
        &["--profile", "none"],
        &["--jobs", "-1"],
    ];
    for more in settings {
        let args: Vec<&str> = ["run", &file, "--out", &out].into_iter().chain(more.iter().copied()).collect();
        assert_eq!(flowloom(&args), Outcome::Exit(exit::INPUT), "{more:?}");
    }
    assert!(!Path::new(&out).exists());
}

#[test]
fn problems_with_the_disk_have_their_exit_code() {
    let (dir, file, out) = folder();
    fs::create_dir(&out).unwrap();
    fs::write(Path::new(&out).join("thesis.tex"), "x").unwrap();
    assert_eq!(flowloom(&["run", &file, "--out", &out]), Outcome::Exit(exit::STORAGE), "other things are there");
    let under_a_file = format!("{file}/out");
    assert_eq!(flowloom(&["run", &file, "--out", &under_a_file]), Outcome::Exit(exit::STORAGE), "below a file");
    let held = dir.path().join("held");
    let _held = tables::RunDir::take(&held).unwrap();
    assert_eq!(flowloom(&["run", &file, "--out", held.to_str().unwrap()]), Outcome::Exit(exit::STORAGE), "in use");
    #[cfg(target_os = "linux")]
    assert_eq!(flowloom(&["run", &file, "--out", "/proc/flowloom"]), Outcome::Exit(exit::STORAGE), "not writable");
}

#[test]
fn strict_ends_with_1_when_flows_are_unfinished() {
    let (_dir, file, out) = folder();
    let args = ["run", &file, "--out", &out, "--set", "end=1us"];
    let args = [args.as_slice(), SOUND].concat();
    assert_eq!(exit_code(&flowloom(&args)), 0);
    let strict = output(&[args.as_slice(), &["--strict"]].concat(), None);
    assert!(exit_code(&strict.0) == u64::from(exit::CHECK) && strict.2.contains("1000 flows did not finish"), "{}", strict.2);
}

/// The options with which `small.toml` has no warnings.
const SOUND: &[&str] = &[
    "--seed=1",
    "--set=workload.web.flows=1000",
    "--set=workload.web.size=fixed",
    "--set=workload.web.mean=3KB",
    "--set=system.TCP.transport={ kind = \"newreno\", min_rto = \"1ms\", init_rto = \"1ms\" }",
];

#[test]
fn warnings_are_shown_once_and_strict_makes_them_errors() {
    let (_dir, file, out) = folder();
    let heavy = ["--set", "workload.web.load=1.5"];
    for command in [vec!["check", &file], vec!["run", &file, "--out", &out]] {
        let (outcome, _, err) = output(&[&command[..], SOUND].concat(), None);
        assert!(exit_code(&outcome) == 0 && !err.contains("warning"), "{err}");
        assert_eq!(exit_code(&flowloom(&[&command[..], SOUND, &["--strict"]].concat())), 0);
        let _ = fs::remove_dir_all(&out);

        let (outcome, plan, err) = output(&[&command[..], SOUND, &heavy].concat(), None);
        assert!(exit_code(&outcome) == 0 && !plan.contains("warning"), "{err}");
        assert_eq!(err.matches("warning: `workload.web.load`: `1.5` offers the link `").count(), 1, "{err}");
        assert!(err.contains("[command line:1:") && err.contains("  hint: the queue of this link grows"), "{err}");
        let _ = fs::remove_dir_all(&out);

        let (outcome, _, err) = output(&[&command[..], SOUND, &heavy, &["--strict"]].concat(), None);
        assert_eq!(outcome, Outcome::Exit(exit::CHECK));
        assert!(err.contains("error: `workload.web.load`"), "{err}");
        assert!(!Path::new(&out).exists(), "nothing is written");
    }
}

#[test]
fn a_signal_ends_the_run_with_its_code_and_the_same_command_goes_on() {
    let (dir, file, _) = folder();
    for (signal, code) in [(Signal::Interrupt, exit::INTERRUPTED), (Signal::Terminate, exit::TERMINATED)] {
        let out = dir.path().join(format!("{code}"));
        let args = ["run", &file, "--out", out.to_str().unwrap(), "--set", "workload.web.flows=2000", "--jobs", "1"];
        // The signal comes when the run has begun, before the second of its two points.
        let (outcome, _, err) = output_until(&args, &mut || out.join("manifest.json").exists().then_some(signal));
        assert_eq!(outcome, Outcome::Exit(code));
        assert!(err.contains("run the same command again to continue"), "{err}");
        assert!(!tables::Results::open(&out).unwrap().manifest.complete);
        assert_eq!(exit_code(&flowloom(&args)), 0);
        assert!(tables::Results::open(&out).unwrap().manifest.complete);
    }
}

#[test]
fn help_and_versions_are_no_mistakes() {
    for args in [&["--version"] as &[&str], &["--help"], &["run", "--help"], &["list", "transports"], &["completions", "bash"]] {
        let (outcome, out, err) = output(args, None);
        assert_eq!((outcome, err.as_str()), (Outcome::Exit(exit::DONE), ""), "{args:?}");
        assert!(!out.is_empty());
    }
    for args in [&[] as &[&str], &["simulate"], &["run"], &["list", "things"], &["explain", "newrenoo"], &["plot"]] {
        let (outcome, out, err) = output(args, None);
        assert_eq!((outcome, out.as_str()), (Outcome::Exit(exit::INPUT), ""), "{args:?}");
        assert!(!err.is_empty());
    }
}

#[test]
fn profiles_are_laid_over_in_order_and_named() {
    let (dir, file, out) = folder();
    let small = dir.path().join("small.toml");
    fs::write(&small, format!("{SMALL}[profile.literal]\nworkload.web = {{ flows = 7, load = 0.1 }}\n")).unwrap();
    let (outcome, plan, _) = output(&["check", &file, "--profile", "literal,smoke"], None);
    assert_eq!(outcome, Outcome::Exit(exit::DONE));
    let line = |start: &str| plan.lines().find(|l| l.starts_with(start)).unwrap();
    assert!(line("flows").ends_with("# profile smoke") && line("load =").ends_with("# profile literal"), "{plan}");
    flowloom(&["run", &file, "--out", &out, "--profile", "literal,smoke"]);
    let results = tables::Results::open(Path::new(&out)).unwrap();
    assert_eq!((results.manifest.profile.as_deref(), results.points[0].metric("flows")), (Some("literal,smoke"), Some(5.0)));
    let (outcome, _, err) = output(&["check", &file, "--profile", "literal,smok"], None);
    assert_eq!(outcome, Outcome::Exit(exit::INPUT));
    assert!(err.contains("there is no profile `smok`") && err.contains("did you mean `smoke`?"), "{err}");
}

#[test]
fn check_prints_a_plan_that_is_a_scenario_again() {
    let (dir, file, _) = folder();
    let (outcome, plan, err) = output(&["check", &file, "--profile", "smoke"], None);
    assert_eq!(outcome, Outcome::Exit(exit::DONE));
    assert!(err.contains("2 points") && plan.contains("flows = 5"), "{err}{plan}");
    let again = dir.path().join("again.toml");
    fs::write(&again, &plan).unwrap();
    assert_eq!(flowloom(&["check", again.to_str().unwrap()]), Outcome::Exit(exit::DONE));
}

#[test]
fn automatic_seeds_say_how_they_ended() {
    let (_dir, file, out) = folder();
    let auto = ["run", &file, "--out", &out, "--set", "seed=auto", "--set", "max_seeds=4"];
    let run = |more: &[&str]| output(&[&auto, &SOUND[1..], more].concat(), None);
    let (outcome, _, err) = run(&["--set", "precision=0.1%", "--strict"]);
    assert!(exit_code(&outcome) == u64::from(exit::CHECK) && err.contains("\n4 seeds, the limit: "), "{err}");
    let (outcome, _, err) = run(&["--set", "precision=100%", "--strict"]);
    assert!(exit_code(&outcome) == 0 && err.contains("\n3 seeds: the 95 % intervals of `mean_slowdown` are within 100 %"), "{err}");
    let (outcome, _, err) = run(&["--set", "metric=mean_slowdwn"]);
    assert!(outcome == Outcome::Exit(exit::INPUT) && err.contains("there is no metric `mean_slowdwn`"), "{err}");
}

#[test]
fn why_is_asked_of_python_and_answered_from_the_folder() {
    let (_dir, file, out) = folder();
    flowloom(&["run", &file, "--out", &out]);
    let Outcome::Python(options) = flowloom(&["why", &out, "--flow", "3,1", "--point", "tcp-seed2"]) else { panic!("no options") };
    assert_eq!(
        (&options["command"], &options["flow"], &options["point"]),
        (&"why".into(), &serde_json::json!([3, 1]), &"tcp-seed2".into())
    );

    let results = tables::Results::open(Path::new(&out)).unwrap();
    let ask = |point: Option<&str>, flows: &[u32]| {
        let which = if flows.is_empty() { Which::Slowest(5) } else { Which::These(flows.to_vec()) };
        cli::why::why(&results, point, &which, false, Path::new("."), &mut |_| sim::Continue::Yes).map_err(|e| e.to_string())
    };
    let found = ask(Some("tcp-seed2"), &[3, 1]).unwrap();
    assert_eq!(found.flows.iter().map(|flow| flow.flow.flow_id).collect::<Vec<_>>(), [3, 1]);
    for flow in &found.flows {
        assert_eq!(flow.totals().iter().map(|(_, ps)| ps).sum::<u64>(), flow.flow.fct_ps().unwrap());
    }
    // Without flows: those with the largest slowdown of all points.
    let slowest = ask(None, &[]).unwrap();
    let most = results.done().map(|point| results.slowest(point, 1).unwrap()[0]).max_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
    assert_eq!((slowest.flows.len(), slowest.flows[0].flow.flow_id), (5, most.1));
    assert!(slowest.flows.is_sorted_by(|a, b| a.flow.slowdown() >= b.flow.slowdown()));
    for (point, flow, wanted) in [
        (None, 3, "the run has 2 points, so flow 3 is ambiguous\nhint: choose one with `--point`: `tcp-seed1`, `tcp-seed2`"),
        (Some("tcp-seed3"), 3, "there is no finished point `tcp-seed3` of the packet engine; did you mean `tcp-seed1`?"),
        (Some("tcp-seed1"), 2000, "flow 2000 does not exist in `tcp-seed1`\nhint: the point has "),
    ] {
        let error = ask(point, &[flow]).unwrap_err();
        assert!(error.starts_with(wanted), "{error}");
    }
    // A trace has the packets of the flow and of others. `packets_around` returns the same packets.
    let mut go_on = |_| sim::Continue::Yes;
    let traced = cli::why::why(&results, Some("tcp-seed2"), &Which::These(vec![3]), true, Path::new("."), &mut go_on).unwrap();
    let packets = cli::why::packets_around(&results, Some("tcp-seed2"), &[3], Path::new("."), &mut go_on).unwrap();
    assert_eq!((&traced.flows, &traced.packets), (&found.flows[..1].to_vec(), &Some(packets.clone())));
    assert!(packets.iter().any(|row| row.flow_id == 3) && packets.iter().any(|row| row.flow_id != 3));
    // A rerun with another result is refused.
    let (path, mut point) = (Path::new(&out).join("tcp-seed1/manifest.json"), results.points[0].clone());
    point.counters.digest = "0123456789abcdef".to_owned();
    manifest::write(&path, &point).unwrap();
    let mut run = results.manifest.clone();
    run.done.clear();
    manifest::write(&Path::new(&out).join("manifest.json"), &run).unwrap();
    let results = tables::Results::open(Path::new(&out)).unwrap();
    let which = Which::These(vec![3]);
    let error = cli::why::why(&results, Some("tcp-seed1"), &which, false, Path::new("."), &mut |_| sim::Continue::Yes).unwrap_err();
    assert!(error.to_string().contains("gives other results when it is rerun"), "{error}");
}

#[test]
fn python_gets_its_options() {
    let options = |args: &[&str]| match flowloom(args) {
        Outcome::Python(options) => options,
        other => panic!("{other:?}"),
    };
    let plot = options(&["plot", "r", "--kind", "metrics,fct_cdf", "--at", "load=0.8", "--format", "pdf", "--out", "x"]);
    assert_eq!(
        plot,
        serde_json::json!({"command": "plot", "dirs": ["r"], "kind": ["metrics", "fct_cdf"], "at": [["load", "0.8"]], "where": null, "format": ["pdf"], "out": "x",
            "systems": [], "metrics": [], "statistic": [], "workload": null, "span": null, "by": null, "style": "screen", "width": null,
            "height": null, "font": null})
    );
    let plot = options(&["plot", "r", "--workload", "job", "--span", "1ms,2ms", "--by", "rail"]);
    assert_eq!((&plot["workload"], &plot["span"], &plot["by"]), (&"job".into(), &"1ms,2ms".into(), &"rail".into()));
    let why = options(&["why", "r", "--collective", "slowest", "--point", "a"]);
    assert_eq!((&why["collective"], &why["point"], &why["flow"]), (&"slowest".into(), &"a".into(), &serde_json::json!([])));
    assert_eq!(flowloom(&["why", "r", "--collective", "slowest", "--flow", "1"]), Outcome::Exit(exit::INPUT));
    let papers = options(&["papers", "merp", "fig5", "--profile", "smoke", "--strict"]);
    assert_eq!(
        papers,
        serde_json::json!({
            "command": "papers", "name": "merp", "figure": "fig5", "profile": "smoke", "jobs": null, "out": null,
            "overwrite": false, "update": null, "strict": true
        })
    );
    assert_eq!(options(&["papers", "merp", "--update"])["update"], "docs/papers/merp");
    assert_eq!(options(&["papers", "merp", "fig5", "--update=x"])["update"], "x");
    assert_eq!(options(&["papers"])["profile"], "paper");
    assert_eq!(options(&["compare", "a", "b"]), serde_json::json!({"command": "compare", "dirs": ["a", "b"], "where": null}));
    assert_eq!(options(&["table", "a", "--where", "drops == 0"])["where"], "drops == 0");
    assert_eq!(options(&["report", "a"]), serde_json::json!({"command": "report", "dirs": ["a"], "where": null, "out": null}));
}

/// The state machine that several transports share is explained with each of them.
#[test]
fn explain_prints_what_the_machine_assumes_too() {
    let (_, text, _) = output(&["explain", "dctcp"], None);
    for part in ["Source: RFC 8257", "It runs on: One TCP machine", "\n  g ", "\n  min_rto ", "\n  sack ", "Karn"] {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
    }
}

#[test]
fn hidden_characters_of_names_are_escaped_in_all_that_is_printed() {
    let (dir, file, _) = folder();
    let label = "a\u{202e}b\u{200b}\u{e0067}";
    fs::write(&file, SMALL.replace("TCP", label)).unwrap();
    let printed = |args: &[&str], code: u64| {
        let (outcome, out, err) = output(args, None);
        assert_eq!(exit_code(&outcome), code, "{err}");
        assert!(!out.contains(|c| c != '\n' && base::text::is_hidden(c)) && !err.contains(['\u{202e}', '\u{2066}', '\u{1b}']));
        (out, err)
    };
    // The escapes of TOML and JSON read back as the label.
    let resolved = printed(&["check", &file], 0).0;
    assert!(resolved.contains(r#"label = "a\u202Eb\u200B\U000E0067""#), "{resolved}");
    let again = dir.path().join("again.toml");
    fs::write(&again, resolved).unwrap();
    let json = printed(&["check", again.to_str().unwrap(), "--format", "json"], 0).0;
    assert!(json.contains(r"a\u202eb\u200b\udb40\udc67"), "{json}");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap()["systems"][0], label);

    let second = format!(
        "{}\n[[system]]\nlabel = 'a\\u{{202e}}b\\u{{200b}}\\u{{e0067}}'\ntransport = \"newreno\"\n",
        SMALL.replace("TCP", label)
    );
    fs::write(&file, second).unwrap();
    let (_, err) = printed(&["check", &file], 2);
    assert!(err.contains(r"two systems have the label `a\u{202e}b\u{200b}\u{e0067}`"), "{err}");
    let (_, err) = printed(&["check", "no\u{1b}[31m\u{2066}.toml"], 2);
    assert!(err.contains(r"cannot read `no\u{1b}[31m\u{2066}.toml`"), "{err}");
}

#[test]
fn a_run_is_not_written_into_results_and_says_what_it_read() {
    let (dir, file, out) = folder();
    let sizes = include_bytes!("../../scenario/src/files/cdf/websearch.cdf.csv");
    fs::write(dir.path().join("sizes.cdf.csv"), sizes).unwrap();
    fs::write(&file, SMALL.replace("load = 0.4", "load = 0.4\nsize = \"cdf\"\ncdf = \"sizes.cdf.csv\"")).unwrap();
    let (done, _, err) = output(&["run", &file, "--out", &out], None);
    assert_eq!(exit_code(&done), 0, "{err}");
    let inputs = tables::Results::open(Path::new(&out)).unwrap().manifest.inputs;
    assert_eq!(inputs, [manifest::Input { path: "sizes.cdf.csv".into(), hash: tables::parquet::hash(sizes) }]);
    let point = format!("{out}/tcp-seed1");
    let before = fs::read(format!("{point}/manifest.json")).unwrap();
    for args in [["run", &file, "--out", &point], ["merge", &out, "--out", &point]] {
        let (refused, _, err) = output(&args, None);
        assert_eq!(exit_code(&refused), u64::from(exit::STORAGE));
        assert!(err.contains("it is in the folder of a point\nhint: choose another place with `--out`"), "{err}");
    }
    assert_eq!(fs::read(format!("{point}/manifest.json")).unwrap(), before);
}

#[test]
fn a_selected_flow_that_does_not_exist_is_refused_and_writes_nothing() {
    let (_dir, file, out) = folder();
    fs::write(&file, format!("{SMALL}[sample]\nonly_flows = \"3, 90..1000\"\n")).unwrap();
    for args in [vec!["check", &file], vec!["run", &file, "--out", &out]] {
        let (outcome, printed, err) = output(&args, None);
        assert_eq!((outcome, printed.as_str()), (Outcome::Exit(exit::INPUT), ""), "{err}");
        assert!(err.starts_with("error: `sample.only_flows`: point `tcp-seed1` has no flow 1000\nhint: it has "), "{err}");
    }
    assert!(!Path::new(&out).exists());
}

#[test]
fn a_point_that_does_not_fit_into_memory_is_refused_and_writes_nothing() {
    let (_dir, file, out) = folder();
    let sampled =
        format!("end = \"900s\"\n{}[sample]\nports = true\ninterval = \"10ns\"\n", SMALL.replace("flows = 20", "flows = 20000"));
    fs::write(&file, sampled).unwrap();
    for args in [vec!["check", &file], vec!["run", &file, "--out", &out]] {
        let (outcome, printed, err) = output(&[args, vec!["--memory", "2GB"]].concat(), None);
        assert_eq!((outcome, printed.as_str()), (Outcome::Exit(exit::INPUT), ""), "{err}");
        let [message, hint] = err.lines().collect::<Vec<_>>()[..] else { panic!("{err}") };
        assert!(message.starts_with("error: point `tcp-seed1` needs about "), "{err}");
        assert!(
            message.contains(" GB of memory, but 2.0 GB are allowed by `--memory`: ") && message.ends_with(" hold time series"),
            "{err}"
        );
        assert!(hint.starts_with("hint: set a longer `interval` in `[sample]`"), "{err}");
    }
    assert!(!Path::new(&out).exists());
    // The network alone does not fit: the message has its place.
    let (outcome, _, err) = output(&["check", &file, "--memory", "20kB"], None);
    assert!(
        outcome == Outcome::Exit(exit::INPUT) && err.contains("small.toml:5:8") && err.contains("0.0 GB are allowed by `--memory`"),
        "{err}"
    );
    for bad in ["0B", "8", "much"] {
        assert_eq!(flowloom(&["check", &file, "--memory", bad]), Outcome::Exit(exit::INPUT), "{bad}");
    }
    // A limit above the memory of the machine is allowed.
    assert_eq!(flowloom(&["check", &file, "--memory", "1000TB"]), Outcome::Exit(exit::DONE));
}

#[test]
fn a_scenario_that_is_missing_names_an_example_that_exists() {
    // Tests run in the folder of the crate, which has no examples.
    let (outcome, _, err) = output(&["run", "missing.toml"], None);
    assert_eq!(outcome, Outcome::Exit(exit::INPUT));
    assert!(err.contains("`flowloom examples demo`") && !err.contains("examples/demo.toml"), "{err}");
}

#[test]
fn new_plug_ins_are_written_by_python() {
    let Outcome::Python(options) = flowloom(&["new", "transport", "mine", "--lang", "c"]) else { panic!("not handed to Python") };
    let expected = serde_json::json!({
        "command": "new", "part": "transport", "name": "mine", "lang": "c", "out": null, "overwrite": false
    });
    assert_eq!(options, expected);
    for part in ["whole_transport", "policy", "qdisc", "router"] {
        let Outcome::Python(options) = flowloom(&["new", part, "mine", "--lang", "rust"]) else { panic!("not handed to Python") };
        assert_eq!((&options["part"], &options["lang"]), (&part.into(), &"rust".into()));
    }
    for wrong in [["transport", "mine", "--lang", "java"], ["queue", "mine", "--lang", "c"]] {
        assert_eq!(flowloom(&[&["new"], &wrong[..]].concat()), Outcome::Exit(exit::INPUT));
    }
    let Outcome::Exit(exit::INPUT) = flowloom(&["explain", "none.so"]) else { panic!("a file that does not exist") };
}

#[test]
fn examples_and_exercises_are_copied_by_python() {
    for command in ["examples", "lab"] {
        let Outcome::Python(listed) = flowloom(&[command]) else { panic!("not handed to Python") };
        assert_eq!(listed, serde_json::json!({"command": command, "names": [], "out": null, "overwrite": false}));
        let Outcome::Python(copied) = flowloom(&[command, "a", "b", "--out", "x", "--overwrite"]) else {
            panic!("not handed to Python")
        };
        assert_eq!(copied, serde_json::json!({"command": command, "names": ["a", "b"], "out": "x", "overwrite": true}));
        assert_eq!(flowloom(&[command, "--out", "x"]), Outcome::Exit(exit::INPUT));
    }
}
