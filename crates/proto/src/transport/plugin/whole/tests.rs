//! Tests of whole transports: what they may do, and what ends a run.

use super::*;
use crate::host::HostEvent;
use crate::kit::pipe::both_ways;
use crate::kit::script::{self, Script};
use ::plugin::abi::{Counter, NEVER, Parameter, Type, Value};
use ::plugin::library::Failure;
use ::plugin::transport::{Endpoint, NO_FLOW, author};
use ::plugin::{Declaration, Values};
use base::HostId;
use std::panic::{AssertUnwindSafe, catch_unwind};

type Does = fn(&mut author::Cx<'_>);

/// Does what its parameter says when a flow opens, and sends the packet that its other parameter
/// says when the NIC asks.
struct Puppet {
    act: Option<Does>,
    packet: Option<abi::Packet>,
    seen: u64,
}

impl author::Transport for Puppet {
    const DECLARATION: Declaration = Declaration {
        counters: &[Counter::new(c"seen", c"packets", c"Packets that it has seen.")],
        parameters: &[
            Parameter::new(Type::Integer, c"act", c"0", c"The call."),
            Parameter::new(Type::Integer, c"packet", c"0", c"The packet."),
        ],
        ..Declaration::new(c"puppet", c"Does what it must not do")
    };
    fn create(_: &Endpoint, values: Values<'_>) -> Result<Self, String> {
        let [act, packet] = [0, 1].map(|at| values.integer(at).checked_sub(1));
        Ok(Puppet { act: act.map(|n| CALLS[n as usize].0), packet: packet.map(|n| PACKETS[n as usize].0), seen: 0 })
    }
    fn on_flow(&mut self, _: u32, cx: &mut author::Cx<'_>) {
        if let Some(act) = self.act {
            act(cx);
        }
    }
    fn on_packet(&mut self, packet: &abi::Packet, cx: &mut author::Cx<'_>) {
        self.seen += 1;
        cx.count(packet.flow, 0, self.seen);
        if packet.words == [1, 0] {
            cx.deliver(&abi::Packet { payload: packet.payload + 1, ..*packet });
        } else if packet.kind == abi::Packet::DATA {
            let delivery = cx.deliver(packet);
            cx.control(abi::Packet { offset: delivery.next, ..*packet });
        } else {
            cx.close(packet.flow);
        }
    }
    fn on_timer(&mut self, kind: u32, flow: Option<u32>, cx: &mut author::Cx<'_>) {
        let words = [kind.into(), cx.now()];
        cx.control(abi::Packet { words, ..abi::Packet::bare(flow.unwrap_or(1), abi::Packet::ACK, 40) });
    }
    fn poll(&mut self, _: &mut author::Cx<'_>) -> Option<abi::Packet> {
        self.packet.take()
    }
    fn give_up(&mut self, _: u32, _: &mut author::Cx<'_>) {}
}

/// Calls that are not allowed at host 0, which sends flow 0, receives flow 1, and does not know
/// flow 2.
const CALLS: [(Does, &str); 18] = [
    (|cx| cx.arm(0, 4, 0), "it calls `arm`, but the kind of the timer is 4"),
    (|cx| cx.arm(2, 0, 0), "it calls `arm`, but host 0 is not an end of flow 2"),
    (|cx| cx.arm(3, 0, 0), "host 0 is not an end of flow 3"),
    (|cx| cx.disarm_host(9), "it calls `disarm`"),
    (|cx| cx.control(abi::Packet::bare(2, abi::Packet::ACK, 40)), "it calls `control`, but host 0 is not an end of flow 2"),
    (
        |cx| assert_eq!(cx.deliver(&abi::Packet::data(1, 0, 1460, 40)).new_bytes, 0),
        "this packet does not carry 1460 bytes of flow 1 from 0 on",
    ),
    (|cx| assert_eq!(cx.deliver(&abi::Packet::data(0, 0, 1, 40)).next, 0), "host 0 does not receive flow 0"),
    (|cx| assert!(!cx.has_finished(0)), "it calls `finished`"),
    (|cx| cx.close(2), "it calls `close`"),
    (|cx| [0, 0].map(|flow| cx.close(flow)).iter().for_each(drop), "it calls `close`, but flow 0 is closed"),
    (|cx| cx.terminate(1), "it calls `terminate`, but host 0 does not send flow 1"),
    (|cx| cx.note_timeout(1), "it calls `timeout`"),
    (|cx| cx.note_fast_retransmit(1), "it calls `fast_retransmit`"),
    (|cx| cx.count(0, 1, 1), "the plug-in declares 1 counters, and no counter 1"),
    (|cx| assert_eq!(cx.flow(2).number, 0), "it calls `view`"),
    (|cx| assert_eq!(cx.payload(1, 0), 0), "it calls `payload`"),
    // The first one is reported.
    (|cx| [2, 3].map(|flow| cx.close(flow)).iter().for_each(drop), "not an end of flow 2"),
    (|_| panic!("out of ideas"), "failed in `on_flow`: out of ideas"),
];

const ACK: abi::Packet = abi::Packet::bare(0, abi::Packet::ACK, 40);
const DATA: abi::Packet = abi::Packet::data(0, 0, 1460, 40);

/// Packets that host 0 cannot send.
const PACKETS: [(abi::Packet, &str); 14] = [
    (abi::Packet { flow: 99, ..ACK }, "not an end of flow 99"),
    (abi::Packet { kind: abi::Packet::TRIMMED, ..ACK }, "has kind 8, which transports do not send"),
    (abi::Packet { kind: 11, ..ACK }, "has kind 11"),
    (abi::Packet { kind: abi::Packet::POLICY, ..ACK }, "has kind 128"),
    (abi::Packet { payload: 0, ..DATA }, "has kind 0 and 0 bytes of payload"),
    (abi::Packet { payload: 1, ..ACK }, "has kind 1 and 1 bytes of payload"),
    (abi::Packet { offset: 1, ..DATA }, "has 1460 bytes from 1 on: the flow ends before"),
    (abi::Packet { offset: u64::MAX, ..DATA }, "the flow ends before"),
    (abi::Packet { flow: 1, ..DATA }, "host 0 does not send flow 1"),
    (abi::Packet { wire_len: 1499, ..DATA }, "has 1499 bytes on the wire: 1500 to 1500 are possible"),
    (abi::Packet { wire_len: u16::MAX, ..ACK }, "40 to 1500 are possible"),
    (abi::Packet { flags: Packet::EXT, ..ACK }, "has the flags 32"),
    (abi::Packet { flags: Packet::TAGGED | Packet::ECT, ..ACK }, "has the flags 130"),
    (abi::Packet { rank: 1, ..ACK }, "has the rank 1, but `uses` does not declare ranks"),
];

fn host(act: u64, packet: u64, change: impl FnOnce(&mut TransportTable)) -> Script<Whole> {
    let mut table = author::table::<Puppet>();
    change(&mut table);
    let table: &'static TransportTable = Box::leak(Box::new(table));
    // Safety: a table of this test.
    #[allow(unsafe_code)]
    let library = unsafe { Library::new((&raw const *table).cast(), "puppet.so", "", ::plugin::library::Code::Native) };
    let library: &'static Library = Box::leak(Box::new(library.unwrap()));
    let env = script::env();
    let machine = Machine::new(library, &plugins::endpoint(&env), &[Value(act), Value(packet)]).unwrap();
    let mut flows = both_ways(&[1460, 3000]);
    flows.push(Flow { src: HostId(2), dst: HostId(3), ..script::flow(2, 1) });
    let mut host = Script::new(Whole::new(machine, library, table, &env), flows);
    host.table.keep_counters(1);
    host
}

fn failure<R>(run: impl FnOnce() -> R) -> String {
    let Err(panic) = catch_unwind(AssertUnwindSafe(run)) else { panic!("it does not fail") };
    panic.downcast::<Failure>().expect("a failure of a plug-in").to_string()
}

#[test]
fn calls_that_are_not_allowed_end_the_run() {
    for (n, (_, why)) in (1..).zip(CALLS) {
        let mut host = host(n, 0, |_| {});
        let message = failure(|| host.open(0));
        assert!(
            message.starts_with("the plug-in `puppet` (`puppet.so`) failed in `on_flow`: ") && message.contains(why),
            "{message}"
        );
        // No such call has left anything.
        assert!(host.io.control.is_empty() && host.next_wake() == Time::MAX, "{why}");
    }
}

#[test]
fn packets_that_cannot_be_sent_end_the_run() {
    for (n, (packet, why)) in (1..).zip(PACKETS) {
        let message = failure(|| host(0, n, |_| {}).open(0));
        assert!(message.contains("failed in `poll`: ") && message.contains(why), "{packet:?}: {message}");
    }
    // Ranks are declared.
    let mut host = host(0, PACKETS.len() as u64, |table| table.uses = USES_RANKS);
    assert_eq!(host.open(0)[0].rank, 1);
    // Data of a flow that is given up.
    let mut host = self::host(0, 8, |_| {});
    host.nic_busy = true;
    host.open(0);
    host.give_up(0);
    host.nic_busy = false;
    assert!(failure(|| host.sent()).contains("flow 0 is closed"));
}

#[test]
fn a_plug_in_delivers_what_a_packet_carries_and_nothing_else() {
    let mut host = host(0, 0, |_| {});
    let data = Packet::data(FlowId(1), 0, 1460, 40);
    let longer = Packet { words: [1, 0], ..data };
    let message = failure(|| host.packet(longer));
    assert!(
        message.contains("failed in `on_packet`: it calls `deliver`") && message.contains("does not carry 1461 bytes"),
        "{message}"
    );
    assert_eq!(host.table.get(FlowId(1)).delivered_bytes, 0);
    // What the puppet answers is data of a flow that it does not send.
    assert!(failure(|| host.packet(data)).contains("it calls `control`, but host 0 does not send flow 1"));
    assert_eq!((host.table.get(FlowId(1)).delivered_bytes, host.table.counts(FlowId(1))), (1460, &[1 + 2][..]));
}

#[test]
fn a_closed_sender_sees_no_packets() {
    let mut host = host(0, 0, |_| {});
    host.io.has_policy = true;
    host.open(0);
    assert!(host.machine.sample(FlowId(0)).is_some());
    let ack = Packet { flags: Packet::BACK, ..Packet::new(FlowId(0), Kind::ACK, 40) };
    for seen in [1, 1] {
        assert_eq!(host.packet(ack), []);
        assert_eq!((host.table.counts(FlowId(0)), host.machine.sample(FlowId(0))), (&[seen][..], None));
    }
    assert_eq!(host.io.events, [HostEvent::Close(FlowId(0))]);
}

#[test]
fn timers_are_due_in_order_and_never_in_the_past() {
    let mut host = host(0, 0, |_| {});
    host.now = Time(5_000);
    host.open(0);
    host.with(|whole, cx| {
        let (_, mut access) = whole.with(None, cx);
        for (flow, kind, at) in [(0, 0, 9_000), (NO_FLOW, 1, 7_000), (0, 2, 1), (0, 3, u64::MAX), (1, 3, 1 << 63), (1, 1, 8_000)] {
            access.arm(flow, kind, at);
        }
        access.disarm(1, 1);
        assert_eq!(access.wrong, None);
    });
    let sent = host.advance(Time(u64::MAX / 4));
    let due: Vec<_> = sent.iter().map(|packet| (packet.flow.0, packet.words)).collect();
    assert_eq!(due, [(0, [2, 5_000]), (1, [1, 7_000]), (0, [0, 9_000])]);
    assert_eq!(host.next_wake(), Time::MAX);
}

#[test]
fn a_plug_in_sees_of_flows_and_packets_what_it_may_see() {
    for (knows, size, deadline_ps) in [(0, 0, NEVER), (abi::KNOWS_SIZE, 3000, NEVER), (abi::KNOWS_DEADLINE, 0, 77)] {
        let mut host = host(0, 0, |table| table.head.knows = knows);
        host.flows[1].deadline = Some(Time(77));
        host.open(0);
        host.with(|whole, cx| {
            let (_, mut access) = whole.with(None, cx);
            let view = SeenFlow { number: 1, size, start_ps: 0, deadline_ps, source: 1, destination: 0 };
            assert_eq!(access.view(1), Some(view));
            let payload = [0, 1000, 1460, 5000].map(|offset| access.payload(0, offset));
            assert_eq!(payload, [1460, 460, 0, 0].map(Some));
        });
    }
    let packet = Packet {
        rank: 9,
        path_tag: 3,
        route: [1; 6],
        flags: Packet::CE | Packet::TAGGED | 1 << 9,
        ..Packet::data(FlowId(1), 7, 8, 40)
    };
    let seen = plugins::shown_to_host(&packet);
    assert_eq!((seen.rank, seen.path_tag, seen.route, seen.flags), (0, 0, [0; 6], Packet::CE));
    assert_eq!((seen.offset, seen.payload, plugins::shown_to_host(&Packet { flags: 0, ..packet }).rank), (7, 8, 9));
}

#[test]
fn tables_that_do_not_fit_are_refused() {
    type Change = fn(&mut TransportTable);
    let cases: [(Change, &str); 6] = [
        (|t| t.head.size -= 8, "its table has"),
        (|t| t.head.sizes[6] = 3, "its `flowloom_transport_calls` has 3 bytes"),
        (|t| t.on_timer = None, "no function `on_timer`"),
        (|t| t.give_up = None, "no function `give_up`"),
        (|t| t.uses = 8, "its `uses` is 8"),
        (|t| t.head.room = 1, "its table has"),
    ];
    for (change, why) in cases {
        let mut table = author::table::<Puppet>();
        change(&mut table);
        let table: *const TransportTable = Box::leak(Box::new(table));
        // Safety: a table of this test.
        #[allow(unsafe_code)]
        let message = unsafe { Library::new(table.cast(), "puppet.so", "", ::plugin::library::Code::Native) }.unwrap_err();
        assert!(message.contains(why), "{why}: {message}");
    }
}
