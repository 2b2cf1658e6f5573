//! Tests of policies of plug-ins: what they may do, and what ends a run.

use super::*;
use crate::flow::Flow;
use crate::kit::pipe::both_ways;
use crate::kit::script::{self, Script};
use crate::packet::Kind;
use crate::policy_host::PolicyHost;
use crate::policy_script::PolicyScript;
use crate::transport::{AnyTransport, newreno};
use ::plugin::abi::{Counter, Parameter, Type, Value};
use ::plugin::host::Endpoint;
use ::plugin::policy::author;
use ::plugin::{Declaration, Values};
use base::{Dur, HostId};
use std::panic::{AssertUnwindSafe, catch_unwind};

type Does = fn(&mut abi::Packet, &mut author::Cx<'_>);

/// Does what its parameter says to each packet that the host sends, and counts its other calls in a
/// counter: one digit for each.
struct Puppet(Does);

impl author::Policy for Puppet {
    const DECLARATION: Declaration = Declaration {
        counters: &[Counter::new(c"calls", c"calls", c"A power of ten for each kind of call.")],
        parameters: &[Parameter::new(Type::Integer, c"act", c"0", c"What it does.")],
        ..Declaration::new(c"puppet", c"Does what it is asked for")
    };
    const USES: u32 = 0;
    fn create(_: &Endpoint, values: Values<'_>) -> Result<Self, String> {
        Ok(Puppet(ACTS[values.integer(0) as usize].0))
    }
    fn on_send(&mut self, packet: &mut abi::Packet, cx: &mut author::Cx<'_>) {
        self.0(packet, cx);
    }
    fn on_receive(&mut self, packet: &abi::Packet, cx: &mut author::Cx<'_>) {
        cx.count(packet.flow, 0, 1);
    }
    fn on_open(&mut self, flow: u32, cx: &mut author::Cx<'_>) {
        cx.count(flow, 0, 10);
        for (kind, at) in [(0, 1_000), (1, u64::MAX), (2, 0)] {
            cx.arm(flow, kind, cx.now() + 1 + at.min(1 << 63));
        }
        cx.disarm(flow, 1);
    }
    fn on_finish(&mut self, flow: u32, cx: &mut author::Cx<'_>) {
        cx.count(flow, 0, if cx.has_finished(flow) { 100 } else { 0 });
    }
    fn on_close(&mut self, flow: u32, cx: &mut author::Cx<'_>) {
        cx.count(flow, 0, 1_000);
        // Ends with the flow.
        cx.arm(flow, 0, cx.now() + 5);
    }
    fn on_timeout(&mut self, flow: u32, cx: &mut author::Cx<'_>) {
        cx.count(flow, 0, 10_000);
    }
    fn on_timer(&mut self, kind: u32, flow: Option<u32>, cx: &mut author::Cx<'_>) {
        cx.count(flow.unwrap(), 0, 100_000 * u64::from(1 + kind));
    }
}

/// What a policy of host 0 does, which sends flow 0, receives flow 1, and does not know flow 2; and
/// why it is not allowed, unless it is.
const ACTS: [(Does, &str); 18] = [
    (|_, _| {}, ""),
    (|packet, _| (packet.prio, packet.flags) = (255, packet.flags ^ abi::Packet::ECT), ""),
    (|packet, cx| packet.prio = cx.sample(packet.flow).in_flight.min(1) as u8, ""),
    (|packet, _| packet.rank = 1, "it sets the rank 1, but `uses` does not declare ranks"),
    (|packet, _| packet.wire_len += 8, "it changes more of a packet of flow 0 than class, rank and ECT"),
    (|packet, _| packet.flow = 1, "it changes more"),
    (|packet, _| packet.kind = abi::Packet::POLICY, "it changes more"),
    (|packet, _| packet.offset += 1, "it changes more"),
    (|packet, _| packet.words[1] = 1, "it changes more"),
    (|packet, _| packet.flags |= Packet::TAGGED, "it changes more"),
    (|packet, _| packet.flags |= abi::Packet::CE, "it changes more"),
    (|packet, _| packet.route[0] = 1, "it changes more"),
    (|_, cx| cx.arm_host(4, 0), "it calls `arm`, but the kind of the timer is 4"),
    (|_, cx| cx.disarm(2, 0), "it calls `disarm`, but host 0 is not an end of flow 2"),
    (|_, cx| cx.terminate(1), "it calls `terminate`, but host 0 does not send flow 1"),
    (|_, cx| assert_eq!(cx.sample(1), Sample::default()), "it calls `sample`"),
    (|_, cx| cx.count(0, 1, 1), "the plug-in declares 1 counters, and no counter 1"),
    (
        |_, cx| assert!(!cx.has_finished(0) && cx.flow(99) == SeenFlow::NONE),
        "it calls `finished`, but host 0 does not receive flow 0",
    ),
];

const COUNTERS: [base::registry::Counter; 1] = [base::registry::Counter { name: "calls", unit: "calls", about: "Calls." }];
const OF_PUPPET: Meta = Meta { counters: &COUNTERS, ..Meta::PLAIN };

fn library(change: impl FnOnce(&mut PolicyTable)) -> Result<(&'static Library, &'static PolicyTable), String> {
    let mut table = author::table::<Puppet>();
    change(&mut table);
    let table: &'static PolicyTable = Box::leak(Box::new(table));
    // Safety: a table of this test.
    #[allow(unsafe_code)]
    let library = unsafe { Library::new((&raw const *table).cast(), "puppet.so", "", ::plugin::library::Code::Native) }?;
    Ok((Box::leak(Box::new(library)), table))
}

fn host(act: usize, change: impl FnOnce(&mut PolicyTable)) -> PolicyScript<Plugin> {
    let (library, table) = library(change).unwrap();
    let machine = Machine::new(library, &plugins::endpoint(&script::env()), &[Value(act as u64)]);
    let mut flows = both_ways(&[3 * 1460, 1460]);
    flows.push(Flow { src: HostId(2), dst: HostId(3), ..script::flow(2, 1) });
    let mut tcp = newreno::Params::defaults();
    tcp.tcp.handshake = false;
    let transport = AnyTransport::NewReno(newreno::NewReno::new(&tcp, &script::env()));
    let policy = PolicyHost::new(Plugin::of(machine, library, table), &OF_PUPPET, 0);
    let mut script = PolicyScript::new(Script::new(transport, flows), policy);
    script.host.table.keep_counters(1);
    script
}

#[test]
fn what_is_not_allowed_ends_the_run() {
    for (act, (_, why)) in ACTS.iter().enumerate().filter(|(_, (_, why))| !why.is_empty()) {
        let mut host = host(act, |_| {});
        let run = catch_unwind(AssertUnwindSafe(|| host.open(0)));
        let message = run.expect_err(why).downcast::<Failure>().unwrap().to_string();
        assert!(
            message.starts_with("the plug-in `puppet` (`puppet.so`) failed in `on_send`: ") && message.contains(why),
            "{message}"
        );
    }
}

#[test]
fn a_policy_sets_class_rank_and_ect() {
    let plain = host(0, |_| {}).open(0);
    let changed = host(1, |_| {}).open(0);
    let wanted: Vec<Packet> =
        plain.iter().map(|packet| Packet { prio: 255, flags: packet.flags ^ Packet::ECT, ..*packet }).collect();
    assert_eq!((changed, plain.len()), (wanted, 3));
    let ranked = host(3, |table| table.uses = USES_RANKS).open(0);
    assert_eq!(ranked, plain.iter().map(|packet| Packet { rank: 1, ..*packet }).collect::<Vec<_>>());
    // The sample is that of the transport: the packet itself is in flight when the NIC takes it.
    assert_eq!(host(2, |_| {}).open(0)[0].prio, 1);
}

#[test]
fn a_policy_is_called_for_both_ends_of_flows_and_for_its_timers() {
    let mut host = host(0, |_| {});
    host.open(0);
    host.advance(Time(2_000));
    // Opened once; the timers 0 and 2 have come.
    assert_eq!(host.host.table.counts(FlowId(0)), [10 + 100_000 + 300_000]);
    host.packet(Packet::data(FlowId(1), 0, 1460, 40));
    assert_eq!(host.host.table.counts(FlowId(1)), [1 + 100]);
    host.packet(Packet { offset: 3 * 1460, flags: Packet::BACK, ..Packet::new(FlowId(0), Kind::ACK, 40) });
    assert_eq!(host.host.table.counts(FlowId(0)), [1 + 10 + 1_000 + 400_000]);
    host.advance(Time::ZERO + Dur::from_secs(9));
    assert_eq!(host.host.table.counts(FlowId(0)), [1 + 10 + 1_000 + 400_000]);
    // A flow whose packets are lost.
    let mut host = self::host(0, |_| {});
    host.open(0);
    host.advance(Time::ZERO + Dur::from_secs(2));
    let timeouts = u64::from(host.host.table.get(FlowId(0)).stats.timeouts);
    assert_eq!((host.host.table.counts(FlowId(0)), timeouts > 0), (&[10 + 400_000 + 10_000 * timeouts][..], true));
}

#[test]
fn functions_that_a_table_does_not_have_are_not_called() {
    let mut host = host(0, |table| {
        (table.on_receive, table.on_open, table.on_timer) = (None, None, None);
        (table.on_finish, table.on_close, table.on_timeout) = (None, None, None);
    });
    assert_eq!(host.open(0).len(), 3);
    host.packet(Packet::data(FlowId(1), 0, 1460, 40));
    host.packet(Packet { offset: 3 * 1460, flags: Packet::BACK, ..Packet::new(FlowId(0), Kind::ACK, 40) });
    assert_eq!([0, 1].map(|flow| host.host.table.counts(FlowId(flow))), [[0], [0]]);
    assert!(host.host.table.get(FlowId(0)).closed);
}

#[test]
fn tables_that_do_not_fit_are_refused() {
    type Change = fn(&mut PolicyTable);
    let cases: [(Change, &str); 5] = [
        (|t| t.head.size += 8, "its table has"),
        (|t| t.head.sizes[4] = 3, "its `flowloom_policy_context` has 3 bytes"),
        (|t| t.create = None, "no function `create`"),
        (|t| t.on_send = None, "no function `on_send`"),
        (|t| t.uses = 8, "its `uses` is 8"),
    ];
    for (change, why) in cases {
        let message = library(change).unwrap_err();
        assert!(message.contains(why), "{why}: {message}");
    }
}

#[test]
fn the_entry_of_a_policy_says_what_it_uses() {
    let (puppet, _) = library(|table| (table.uses, table.head.knows) = (USES_MARKS | USES_CLASSES, abi::KNOWS_SIZE)).unwrap();
    let made = entry(puppet).unwrap();
    assert_eq!((made.meta.needs.marks, made.meta.ranks, made.meta.knows), (true, false, &["size"][..]));
    assert!(made.meta.implies.contains(&("qdisc.mark", "auto")) && made.fields.last().unwrap().name == "act");
    let (puppet, _) = library(|table| table.uses = USES_RANKS).unwrap();
    assert!(entry(puppet).is_ok_and(|made| made.meta.ranks && made.meta.implies.is_empty()));
    assert_eq!(entry(Library::example_transport()).unwrap_err(), "it is a transport, and not for this part of a system");
}
