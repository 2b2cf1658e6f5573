//! Plug-ins in files: DCTCP in C and in Rust gives the bytes of the built-in one, and plug-ins that
//! misbehave end a run with an error or within their bounds.
//!
//! The tests call the C compiler and the Rust compiler, which build the project.

#[allow(dead_code, reason = "most of it serves `runs`")]
#[path = "runs/common.rs"]
mod common;
#[path = "plugins/qdisc.rs"]
mod qdisc;
#[path = "plugins/router.rs"]
mod router;

#[path = "plugins/policies.rs"]
mod policies;
#[path = "plugins/transports.rs"]
mod transports;

use crate::common::assert_equal;
use scenario::{Options, Plan};
use sim::{Continue, EventOrder, Outcome, RunError, Threads};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A folder for the files of these tests.
fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plugins");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn succeeds(command: &mut Command) {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Compiles a text in C without warnings. Returns the name of the library in the folder of these tests.
fn c(name: &str, text: &str) -> String {
    compile(name, text, &["-Wall", "-Wextra", "-Werror"])
}

/// Compiles a text in C that was changed in such a way that the compiler may warn.
fn changed_c(name: &str, text: &str) -> String {
    compile(name, text, &["-w"])
}

fn compile(name: &str, text: &str, more: &[&str]) -> String {
    let (source, library) = (folder().join(format!("{name}.c")), format!("{name}.so"));
    std::fs::write(&source, text).unwrap();
    let include = format!("-I{}", root().join("crates/plugin/include").display());
    let flags = ["-std=c11", "-O2", "-fPIC", "-shared", &include, "-o"];
    succeeds(Command::new("cc").args(more).args(flags).arg(folder().join(&library)).arg(&source));
    library
}

/// The plug-in that `flowloom new` writes in C for congestion control.
fn template() -> String {
    template_of("transport", "c")
}

/// The plug-in that `flowloom new` writes for a part of a system in a language.
fn template_of(part: &str, lang: &str) -> String {
    let end = if lang == "rust" { "rs" } else { lang };
    std::fs::read_to_string(root().join(format!("crates/plugin/new/{part}/{lang}/mine.{end}"))).unwrap()
}

fn rustc() -> Command {
    let mut rustc = Command::new(std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned()));
    rustc.args(["--edition", "2024", "-O", "--out-dir"]).arg(folder());
    rustc
}

/// Compiles a plug-in in Rust, whose text uses the crate for authors. Returns the name of the library.
fn rust(name: &str, text: &str) -> String {
    static CRATE: OnceLock<()> = OnceLock::new();
    // Without the workspace.
    CRATE.get_or_init(|| {
        let source = root().join("crates/plugin/src/lib.rs");
        succeeds(rustc().args(["--crate-type", "rlib", "--crate-name", "flowloom_plugin"]).arg(source));
    });
    let source = folder().join(format!("{name}.rs"));
    std::fs::write(&source, text).unwrap();
    let library = format!("flowloom_plugin={}", folder().join("libflowloom_plugin.rlib").display());
    succeeds(rustc().args(["--crate-type", "cdylib", "--extern", &library]).arg(source));
    format!("{}{name}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX)
}

/// The example of a room of the crate for authors as a library.
fn example(room: &str) -> String {
    let text = std::fs::read_to_string(root().join(format!("crates/plugin/src/{room}/example.rs"))).unwrap();
    let text = text.replace("crate::", "flowloom_plugin::");
    rust(&format!("example_{room}"), &format!("{text}\nflowloom_plugin::export!({room}, Example);\n"))
}

fn load(text: &str) -> Result<Plan, String> {
    scenario::load(text, "plugins.toml", &folder(), &Options::default()).map_err(|problems| problems.to_string())
}

/// The benchmark of DCTCP, cut short, with another transport.
fn bench(transport: &str) -> Plan {
    let text = std::fs::read_to_string(root().join("bench/dctcp.toml")).unwrap();
    let text = text.replace("10ms", "1ms").replace("kind = \"dctcp\"", transport);
    load(&text).unwrap_or_else(|problems| panic!("{problems}"))
}

fn outcome(plan: &Plan, threads: usize) -> Result<Outcome, RunError> {
    sim::run_threads(&plan.points[0].run, Threads::Exactly(threads), EventOrder::Auto, &mut |_| Continue::Yes)
}

/// Blocks of docs/plugins.md that are parts of files are in these files.
#[test]
fn the_docs_show_parts_of_examples_and_templates() {
    let page = std::fs::read_to_string(root().join("docs/plugins.md")).unwrap();
    let parts: Vec<_> = page.split("<!-- not run: a part of crates/").skip(1).collect();
    assert!(parts.len() >= 7, "{}", parts.len());
    for part in parts {
        let (path, rest) = part.split_once(';').unwrap();
        let block = rest.split_once("```").and_then(|(_, rest)| rest.split_once('\n')).unwrap().1.split("```").next().unwrap();
        let text = std::fs::read_to_string(root().join("crates").join(path)).unwrap();
        assert!(block.lines().count() > 3 && text.contains(block), "the page differs from crates/{path}:\n{block}");
    }
}

#[test]
fn dctcp_as_a_plug_in_gives_the_same_bytes() {
    let builtin = outcome(&bench("kind = \"dctcp\""), 1).unwrap();
    assert!(builtin.counters.events > 100_000);
    for path in ["example", &c("same", &template()), &example("congestion")] {
        let plan = bench(&format!("kind = \"plugin\", path = \"{path}\""));
        for threads in [1, 2] {
            let outcome = outcome(&plan, threads).unwrap();
            assert_eq!(outcome.threads, threads as u32);
            assert_equal(&builtin, &outcome, &format!("{path} on {threads} threads"));
        }
    }
}

#[test]
fn parameters_of_a_plug_in_are_those_of_the_built_in_one() {
    let path = c("gain", &template());
    let dctcp = outcome(&bench("kind = \"dctcp\", g = 0.5, alpha = 0, min_cwnd = 2"), 1).unwrap();
    let plan = bench(&format!("kind = \"plugin\", path = \"{path}\", g = 0.5, alpha = 0, min_cwnd = 2"));
    assert_equal(&dctcp, &outcome(&plan, 1).unwrap(), "other parameters");
    assert!(plan.points[0].resolved().contains("g = 0.5\nalpha = 0\nmin_cwnd = 2\n"), "{}", plan.points[0].resolved());
}

const NET: &str = "end = '3ms'\n[topology]\nkind = 'star'\nhosts = 4\n[workload.in]\nkind = 'long'\n";

fn with(transport: &str) -> String {
    format!("{NET}[[system]]\nlabel = 'P'\ntransport = {{ kind = 'plugin', {transport} }}\n")
}

#[test]
fn mistakes_in_parameters_have_their_place() {
    let path = c("places", &template());
    let message = load(&with(&format!("path = '{path}', gg = 0.5"))).unwrap_err();
    assert!(message.contains("unknown key `gg`") && message.contains("did you mean `g`?"), "{message}");
    assert!(message.contains("plugins.toml:9:"), "{message}");
    let message = load(&with(&format!("path = '{path}', g = 2"))).unwrap_err();
    assert!(message.contains("`g` goes from 0.000000001 to 1") && message.contains("Gain: the weight"), "{message}");
    let message = load(&with("g = 2")).unwrap_err();
    assert!(message.contains("`system.P.transport.path` is missing"), "{message}");
    let message = load(&with("path = 'none.so'")).unwrap_err();
    assert!(message.contains("cannot read the file `none.so`") && message.contains("plugins.toml:9:"), "{message}");
    let plan = load(&with(&format!("path = '{path}', g = [0.1, 0.2]"))).unwrap();
    assert_eq!(plan.points.len(), 2);
    assert!(plan.resolved().contains("native code, which runs with your rights"), "{}", plan.resolved());
    assert_eq!(plan.resolved().matches("native code").count(), 1);
    // ECN implies ports that mark.
    assert!(plan.resolved().contains("ecn_threshold"), "{}", plan.resolved());
}

#[test]
fn the_hash_of_a_plug_in_is_part_of_the_configuration() {
    let text = |path: &str| with(&format!("path = '{path}'"));
    let load = |path: &str| load(&text(path)).unwrap();
    let one = load(&c("hash", &template()));
    let (_, hash) = one.inputs().pop_first().unwrap();
    assert_eq!((hash.len(), hash.starts_with("sha256:")), (7 + 64, true), "{hash}");
    // Built again with other constants, in the same process.
    let two = load(&c("hash", &template().replace("2 * c->smss", "4 * c->smss")));
    assert_ne!(one.points[0].config_hash(), two.points[0].config_hash());
    assert_ne!(outcome(&one, 1).unwrap().counters.digest, 0);
}

#[test]
fn counters_of_a_plug_in_are_counters_of_flows() {
    let text = template()
        .replace("uint64_t owed; ", "uint64_t cuts; uint64_t owed; ")
        .replace("    const struct state *s = state;\n    (void)ack;", "    struct state *s = state;\n    s->cuts++;\n    (void)ack;")
        .replace("            .own_size", "            .counters = counters, .counter_count = 1, .own_size")
        .replace("    .inherit", "    .count = count, .inherit")
        .replace(
            "static const flowloom_congestion",
            "static const flowloom_counter counters[] = {{\"cuts\", \"cuts\", \"Cuts of the window by marks.\"}};\n\
             static const uint64_t *count(const void *own, const void *state) {\n    (void)own;\n    return &((const struct state *)state)->cuts;\n}\n\
             static const flowloom_congestion",
        );
    let path = c("counts", &text);
    let plain = outcome(&bench("kind = \"dctcp\""), 1).unwrap();
    for threads in [1, 2] {
        let outcome = outcome(&bench(&format!("kind = \"plugin\", path = \"{path}\"")), threads).unwrap();
        assert_eq!(outcome.counters.events, plain.counters.events);
        assert_eq!(outcome.flow_counters.iter().map(|counter| counter.column()).collect::<Vec<_>>(), ["mine.cuts"]);
        let cuts = outcome.flows.iter().map(|flow| flow.counts[0]).collect::<Vec<_>>();
        let marks = outcome.flows.iter().map(|flow| flow.marks).collect::<Vec<_>>();
        assert!(cuts.iter().zip(&marks).all(|(cuts, marks)| cuts <= marks) && cuts.iter().sum::<u64>() > 100, "{cuts:?} {marks:?}");
    }
}

#[test]
fn a_plug_in_sees_only_what_it_declares() {
    let net = NET.replace("kind = 'long'", "kind = 'incast'\nsenders = 3\nsize = '30KB'\ndeadline = '2ms'");
    let text = template().replace(
        "    (void)flow;\n",
        "    if (flow->size != SIZE || flow->deadline_ps != DEADLINE)\n        return FLOWLOOM_FAILED;\n",
    );
    let cases = [
        ("0", "0", "FLOWLOOM_NEVER"),
        ("FLOWLOOM_KNOWS_SIZE", "30000", "FLOWLOOM_NEVER"),
        ("FLOWLOOM_KNOWS_DEADLINE", "0", "flow->start_ps + UINT64_C(2000000000)"),
        ("FLOWLOOM_KNOWS_SIZE | FLOWLOOM_KNOWS_DEADLINE", "30000", "flow->start_ps + UINT64_C(2000000000)"),
    ];
    for (n, (knows, size, deadline)) in cases.into_iter().enumerate() {
        let text = text.replace("SIZE ||", &format!("{size} ||")).replace("DEADLINE)", &format!("{deadline})"));
        let path =
            c(&format!("knows{n}"), &text.replace("            .own_size", &format!("            .knows = {knows}, .own_size")));
        let plan = load(&format!("{net}[[system]]\ntransport = {{ kind = 'plugin', path = '{path}' }}\n"))
            .unwrap_or_else(|e| panic!("{e}"));
        let knows: Vec<_> = plan.points[0].run.system.transport.meta().knows.to_vec();
        assert_eq!((knows.contains(&"size"), knows.contains(&"deadline")), (size != "0", deadline != "FLOWLOOM_NEVER"));
        assert!(outcome(&plan, 1).is_ok(), "{n}");
    }
}

#[test]
fn plug_ins_that_do_not_fit_are_refused() {
    let cases = [
        ("version", ".name", ".version = 7, .name", "version 7 of plug-ins"),
        ("room", ".name", ".room = 99, .name", "it is for room 99"),
        ("size", ".name", ".size = 8, .name", "its table has 8 bytes"),
        ("ack", ".name", ".sizes[3] = 4, .name", "its `flowloom_ack` has 4 bytes"),
        ("missing", "    .on_loss = on_loss,", "", "no function `on_loss`"),
        ("unknown", "FLOWLOOM_INTEGER", "77", "unknown type 77"),
        ("default", "\"0.0625\"", "\"quick\"", "the default of its parameter `g`, `quick`, is not"),
        ("taken", "\"min_cwnd\"", "\"min_rto\"", "already taken"),
        ("huge", ".state_size = sizeof(struct state)", ".state_size = UINT64_C(1) << 60", "at most 1048576 bytes"),
        ("table", "return &table.head", "return NULL", "returns no table"),
    ];
    for (name, old, new, why) in cases {
        let text = template().replace(old, new);
        assert_ne!(text, template(), "{name}");
        let message = load(&with(&format!("path = '{}'", changed_c(name, &text)))).unwrap_err();
        assert!(message.contains(why) && message.contains(&format!("{name}.so")), "{name}: {message}");
    }
    let none = c("none_exported", "int other(void); int other(void) { return 1; }\n");
    assert!(load(&with(&format!("path = '{none}'"))).unwrap_err().contains("exports no function `flowloom_plugin`"));
    let whole = std::fs::read(folder().join(&none)).unwrap();
    for part in [whole.len() - 1, whole.len() / 2, 100] {
        std::fs::write(folder().join("half.so"), &whole[..part]).unwrap();
        assert!(load(&with("path = 'half.so'")).unwrap_err().contains("cut off"), "{part}");
    }
}

#[test]
fn plug_ins_that_fail_end_the_run_with_an_error() {
    for threads in [1, 2] {
        let cut = "    const struct state *s = state;\n    (void)ack;\n";
        let text = template().replace(cut, &format!("{cut}    return FLOWLOOM_FAILED;\n"));
        assert_ne!(text, template());
        let plan = bench(&format!("kind = \"plugin\", path = \"{}\"", changed_c("fails", &text)));
        match outcome(&plan, threads).unwrap_err() {
            RunError::Plugin(message) => assert_eq!(message, "the plug-in `mine` (`fails.so`) failed in `on_mark`"),
            other => panic!("{other}"),
        }
    }
    let text = template().replace("    (void)context;\n", "    (void)context;\n    return FLOWLOOM_FAILED;\n");
    let message = load(&with(&format!("path = '{}'", changed_c("refuses", &text)))).unwrap_err();
    assert!(message.contains("failed in `create`") && message.contains("plugins.toml:9:"), "{message}");
}

/// Whatever a plug-in returns, all flows end and the audit holds.
#[test]
fn extreme_values_are_bounded() {
    let net = "end = '1s'\n[topology]\nkind = 'star'\nhosts = 4\n[workload.in]\nkind = 'incast'\nsenders = 3\nsize = '300KB'\n";
    for (n, value) in ["0", "1", "UINT64_C(1) << 63", "UINT64_MAX"].into_iter().enumerate() {
        let text = template()
            .replace("static int32_t on_ack", &format!("static uint64_t garbage = {value};\nstatic int32_t on_ack"))
            .replace("window->cwnd += ack->slow_start", "window->cwnd = garbage")
            .replace("*cwnd = most_of(", "*cwnd = garbage; (void)(")
            .replace("*ssthresh = most_of(", "*ssthresh = garbage; (void)(")
            .replace("    .inherit", "    .most = most, .not_before = not_before, .inherit")
            .replace("static const flowloom_congestion", "static int32_t most(const void *own, const void *state, uint64_t *most) {\n    (void)own; (void)state; *most = garbage; return FLOWLOOM_OK;\n}\nstatic int32_t not_before(const void *own, const void *state, uint64_t srtt, uint64_t *at) {\n    (void)own; (void)state; (void)srtt; *at = garbage & 1; return FLOWLOOM_OK;\n}\nstatic const flowloom_congestion");
        let path = changed_c(&format!("garbage{n}"), &text);
        let plan = load(&format!(
            "{net}[[system]]\ntransport = {{ kind = 'plugin', path = '{path}' }}\nqdisc = {{ kind = 'ecn_threshold', limit = '20pkt', mark = '5pkt' }}\n"
        ));
        let outcome = outcome(&plan.unwrap_or_else(|e| panic!("{e}")), 1).unwrap();
        assert!(outcome.flows.iter().all(|flow| flow.finish_ps.is_some()), "{value}");
    }
}
