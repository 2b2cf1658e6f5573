//! The queue discipline of docs/adding.md compiles, and one file and its lines in one `mod.rs` are all that it takes.

mod adding;

use adding::{AnyParams, ENTRIES, Env, Qdisc};
use base::params::{Raw, Reader};
use base::{FlowId, Limit, LinkId, Rate, Time};
use fabric::queue;
use proto::Packet;

/// The page's first block of Rust is the file that is compiled here.
#[test]
fn the_page_shows_what_is_compiled() {
    let page = include_str!("../../../docs/adding.md");
    let code = page.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next());
    assert_eq!(code, Some(include_str!("adding/lifo.rs")));
}

struct Given(Vec<String>);
impl Reader for Given {
    fn get(&mut self, key: &'static str) -> Option<Raw> {
        (key == "limit").then(|| Raw::Str("2pkt".to_owned()))
    }
    fn fail(&mut self, key: &'static str, message: String) {
        self.0.push(format!("{key}: {message}"));
    }
}

/// From a name and a value in a scenario to packets, through what the registry lines made.
#[test]
fn the_registry_lines_are_enough() {
    assert_eq!(ENTRIES[0].name, "lifo");
    assert!(ENTRIES[0].head().contains("Source:"));
    let mut given = Given(Vec::new());
    let params = AnyParams::read("lifo", &mut given).expect("the entry is found by its name");
    assert_eq!((given.0, params.show()), (Vec::new(), vec![("limit", "2pkt".to_owned())]));
    let env = Env { rate: Rate::from_gbps(1), mtu_bytes: 1500, host_port: false, link: LinkId(0), seed: 1 };
    assert_eq!((params.limit(&env), params.fifo(&env), params.check(&env)), (Limit::Packets(2), None, Vec::new()));
    let mut queue = params.build(&env);
    let mut drops = Vec::new();
    for offset in 0..3 {
        queue.enqueue(&Packet::data(FlowId(0), offset, 1460, 40), Time::ZERO, &mut drops);
    }
    assert_eq!((drops.len(), queue.backlog().packets, queue.dequeue(Time::ZERO).map(|p| p.offset)), (1, 2, Some(2)));
}
