//! Tests of events on networks.

use super::change::{Change, changes, when};
use super::holds::Holds;
use super::params::{Event, EventParams, RandomParams};
use super::target::{Target, node, of_tier, tiers};
use crate::topology::testing::build;
use base::Time;
use base::params::{Params as _, Raw, Reader};
use fabric::net::Net;

/// Returns an event with these keys; keys like `random.count` make it a random draw.
fn event(set: &[(&'static str, &str)]) -> Event {
    struct Given<'a>(&'a [(&'static str, &'a str)], &'a str);
    impl Reader for Given<'_> {
        fn get(&mut self, key: &'static str) -> Option<Raw> {
            let (_, value) = self.0.iter().find(|(k, _)| k.strip_prefix(self.1) == Some(key))?;
            Some(Raw::Str((*value).to_owned()))
        }
        fn fail(&mut self, key: &'static str, message: String) {
            panic!("{key}: {message}");
        }
    }
    let random = set.iter().any(|(key, _)| key.starts_with("random."));
    let random = random.then(|| RandomParams::read(&mut Given(set, "random.")));
    Event { name: String::new(), params: EventParams::read(&mut Given(set, "")), random }
}

fn happens(net: &Net, events: &[Event], seed: u64) -> Result<Vec<String>, String> {
    let found = changes(events, net, seed).map_err(|(event, p)| format!("{event} {}: {}", p.key, p.message))?;
    assert!(found.is_sorted());
    let show = |c: &Change| format!("{} {} {}", when(c.at), if c.up { "up" } else { "down" }, c.target.name(net));
    Ok(found.iter().map(show).collect())
}

#[test]
fn events_are_put_in_order() {
    let net = build("fat_tree", &[]);
    let events = [
        event(&[("at", "5ms"), ("link", "core3--agg0_1"), ("state", "up")]),
        event(&[("at", "2ms"), ("node", "core0"), ("until", "7ms")]),
        event(&[("link", "agg0_1--core3")]),
        event(&[("at", "9ms"), ("node", "core0")]),
    ];
    let expected = ["0s down agg0_1--core3", "2ms down core0", "5ms up agg0_1--core3", "7ms up core0", "9ms down core0"];
    assert_eq!(happens(&net, &events, 1).unwrap(), expected);
}

#[test]
fn what_goes_down_goes_up_before_it_goes_down_again() {
    let net = build("fat_tree", &[]);
    let down = |at| event(&[("at", at), ("node", "core0")]);
    let up = |at| event(&[("at", at), ("node", "core0"), ("state", "up")]);
    for (events, why) in [
        (vec![up("1ms")], "0 at: `core0` comes up at `1ms`, but is not down then"),
        (vec![up("1ms"), down("2ms")], "0 at: `core0` comes up at `1ms`, but is not down then"),
        (vec![down("3ms"), down("2ms")], "0 at: `core0` goes down at `3ms`, but is already down since `2ms`"),
        (vec![down("1ms"), up("1ms")], "1 at: `core0` changes twice at `1ms`"),
        (
            vec![event(&[("node", "core0"), ("until", "4ms")]), down("3ms")],
            "1 at: `core0` goes down at `3ms`, but is already down since `0s`",
        ),
        (
            vec![event(&[("node", "core0"), ("until", "4ms")]), up("2ms")],
            "0 until: `core0` comes up at `4ms`, but is not down then",
        ),
        (vec![event(&[("node", "core9")])], "0 node: there is no node `core9`: did you mean `core0`?"),
        (vec![event(&[("link", "agg0_1--core0")])], "0 link: no cable joins `agg0_1` and `core0`: did you mean `core2`?"),
        (vec![event(&[("link", "core0--core0")])], "0 link: no cable joins `core0` and `core0`"),
    ] {
        let message = happens(&net, &events, 1).unwrap_err();
        assert!(message.starts_with(why), "{message}");
    }
}

#[test]
fn draws_depend_on_seed_and_event_and_grow() {
    let net = build("fat_tree", &[]);
    let draw = |count: &str, seed| happens(&net, &[event(&[("random.count", count), ("random.tier", "core-agg")])], seed).unwrap();
    assert_eq!(draw("3", 1), draw("3", 1));
    assert!((2..9).any(|seed| draw("3", seed) != draw("3", 1)));
    for (fewer, more) in [("1", "2"), ("2", "7"), ("7", "16")] {
        assert!(draw(fewer, 4).iter().all(|one| draw(more, 4).contains(one)), "{fewer} of {more}");
    }
    assert_eq!(draw("16", 5).len(), 16);
    let two = [event(&[("random.count", "1")]), event(&[("at", "1ms"), ("random.count", "1"), ("until", "2ms")])];
    let pairs: Vec<_> = (1..20).map(|seed| happens(&net, &two, seed).unwrap()).collect();
    assert!(pairs.iter().any(|p| p[0].rsplit(' ').next() != p[1].rsplit(' ').next()));
    assert!(pairs.iter().all(|p| p[1].rsplit(' ').next() == p[2].rsplit(' ').next()));
}

/// Each of 32 cables with probability 0.25, over 400 seeds: within four standard deviations of the mean.
#[test]
fn a_probability_is_one_for_each() {
    let net = build("fat_tree", &[]);
    let draw = |p: &str, seed| happens(&net, &[event(&[("random.probability", p)])], seed).unwrap();
    let all: usize = (0..400).map(|seed| draw("0.25", seed).len()).sum();
    let (mean, deviation) = (12_800.0 * 0.25, (12_800.0 * 0.25 * 0.75_f64).sqrt());
    assert!((all as f64 - mean).abs() < 4.0 * deviation, "{all}");
    assert!(draw("0.2", 3).iter().all(|one| draw("0.5", 3).contains(one)));
    assert_eq!((draw("0", 3).len(), draw("1", 3).len()), (0, 32));
}

#[test]
fn tiers_are_called_by_what_their_names_begin_with() {
    let net = build("fat_tree", &[]);
    let size = |net: &Net, tier: &str| of_tier(net, tier).map(|all| all.len());
    for (tier, n) in [("fabric", 32), ("edge-agg", 16), ("core-agg", 16), ("host-edge", 16), ("core", 4), ("agg", 8), ("host", 16)]
    {
        assert_eq!(size(&net, tier), Ok(n), "{tier}");
    }
    let (message, hint) = of_tier(&net, "cor-agg").unwrap_err();
    assert_eq!(message, "there is no tier `cor-agg`: did you mean `core-agg`?");
    assert!(hint.ends_with("`fabric`, `host-edge`, `edge-agg`, `agg-core`, `host`, `edge`, `agg`, `core`"), "{hint}");
    assert!(size(&net, "edge-core").is_err());
    let net = build("leaf_spine", &[]);
    assert!(size(&net, "leaf-spine").is_ok() && size(&net, "spine").is_ok());
    let net = build("chain", &[("switches", "3")]);
    assert_eq!(tiers(&net).len(), 2);
    assert_eq!(size(&net, "fabric"), Ok(2));
}

#[test]
fn a_link_is_down_while_anything_holds_it_down() {
    let net = build("fat_tree", &[]);
    let mut holds = Holds::new(&net);
    let id = |name: &str| node(&net, name).unwrap();
    let change = |up, target| Change { at: Time::ZERO, event: 0, up, target };
    let (cable, core) = (Target::Cables(id("agg0_0"), id("core0")), Target::Node(id("core0")));
    assert_eq!(holds.apply(&net, &change(false, cable)).len(), 2);
    assert_eq!(holds.apply(&net, &change(false, core)).len(), 6, "the first cable is down already");
    assert_eq!(holds.apply(&net, &change(true, cable)), []);
    assert_eq!(holds.apply(&net, &change(true, core)).len(), 8);
    let of_edge = Target::Node(id("edge0_0"));
    holds.apply(&net, &change(false, of_edge));
    let islands = holds.islands(&net);
    assert_eq!([id("h0"), id("h1"), id("edge0_0"), id("h2"), id("core3")].map(|n| islands[n.index()].0), [0, 1, 16, 2, 2]);
}
