//! Scenarios that are built in Rust: the same plans as those of files.

use base::params::{Auto, Params as _};
use base::{Bytes, Dur, Limit, Rate};
use fabric::{qdisc, router};
use proto::transport::dctcp;
use scenario::topology::{dumbbell, star};
use scenario::workload::{incast, long};
use scenario::{Options, Outline, Scenario, load};

fn network() -> dumbbell::Params {
    dumbbell::Params { left: 3, rate: Rate::from_gbps(1), ..dumbbell::Params::defaults() }
}

fn flows() -> long::Params {
    long::Params { size: Auto::Set(Bytes(150_000)), stagger: Dur::from_us(3), ..long::Params::defaults() }
}

fn system() -> Outline {
    let queue = qdisc::ecn_threshold::Params { mark: Auto::Set(Limit::Packets(20)), ..qdisc::ecn_threshold::Params::defaults() };
    Outline::named("DCTCP")
        .transport(dctcp::Params::of(&[("sack", "true")]).unwrap())
        .qdisc(queue)
        .router(router::ecmp::Params::defaults())
}

/// The plan has the same text as that of a file, in which every value has its source.
#[test]
fn a_scenario_built_in_rust_is_that_of_a_file() {
    let text = "[topology]\nkind = 'dumbbell'\nleft = 3\nrate = '1Gbps'\n[workload.'web 2']\nkind = 'long'\nsize = '150KB'\nstagger = '3us'\n\
        [[system]]\nlabel = 'DCTCP'\ntransport = { kind = 'dctcp', sack = true }\nqdisc = { kind = 'ecn_threshold', mark = '20pkt' }\n\
        router = 'ecmp'\n";
    let options = Options { set: vec![("seed".to_owned(), "[3, 5]".to_owned())], ..Options::default() };
    let file = load(text, "scenario", ".".as_ref(), &options).unwrap_or_else(|e| panic!("{e}"));
    let built = Scenario::new(network()).workload("web 2", flows()).system(system()).set("seed", "[3, 5]");
    let plan = built.plan().unwrap_or_else(|e| panic!("{e}\nin\n{}", built.toml()));
    assert_eq!((plan.resolved(), &plan.points), (file.resolved(), &file.points));
    assert_eq!(plan.points.iter().map(|point| point.seed).collect::<Vec<_>>(), [3, 5]);
}

#[test]
fn a_default_is_not_written_and_a_field_without_default_is() {
    assert_eq!(network().changed(), [("left", "3".to_owned()), ("rate", "1Gbps".to_owned())]);
    assert_eq!(star::Params::defaults().changed(), []);
    let incast = incast::Params { repeat: 3, ..incast::Params::of(&[("size", "30KB"), ("senders", "8")]).unwrap() };
    assert_eq!(incast.changed(), [("senders", "8"), ("size", "30KB"), ("repeat", "3")].map(|(key, value)| (key, value.to_owned())));
}

/// The policy implies `qdisc.mark = "auto"`; the default of the queue discipline is no marks.
#[test]
fn implied_settings_apply_to_what_has_its_default() {
    let mark = |queue: qdisc::pifo::Params| {
        let system = system().policy(proto::policy::edf_sjf::Params::defaults()).qdisc(queue);
        let plan = Scenario::new(network()).workload("web", flows()).system(system).plan();
        let parts = plan.unwrap_or_else(|e| panic!("{e}")).points[0].run.system.parts();
        let values = parts.into_iter().find(|part| part.slot.name == "qdisc").map(|part| part.values).unwrap_or_default();
        values.into_iter().find(|(key, _)| *key == "mark").map(|(_, value)| value)
    };
    let defaults = qdisc::pifo::Params::defaults();
    assert_eq!(defaults.mark, Auto::Set(Limit::Unlimited));
    assert_eq!(mark(defaults.clone()).as_deref(), Some("auto"));
    assert_eq!(mark(qdisc::pifo::Params { mark: Auto::Set(Limit::Packets(9)), ..defaults }).as_deref(), Some("9pkt"));
}

#[test]
fn problems_are_values_with_their_places() {
    let none = Scenario::new(network()).plan().unwrap_err().to_string();
    assert!(none.contains("the scenario has no system") && none.contains("workload"), "{none}");
    let wide = dumbbell::Params { left: 0, ..network() };
    let found = Scenario::new(wide).workload("a\"b", flows()).system(system()).set("mtuu", "1").plan().unwrap_err();
    let messages: Vec<&str> = found.items().iter().map(|item| item.message.as_str()).collect();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(messages[0].contains("`0` is out of range: `left` goes from 1"), "{messages:?}");
    assert!(messages[1].contains("unknown key `mtuu`"), "{messages:?}");
    let twice = Scenario::new(network()).workload("web", flows()).workload("web", flows()).system(system()).plan();
    assert!(twice.unwrap_err().to_string().contains("duplicate key"));
}
