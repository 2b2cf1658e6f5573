//! Plug-ins: a queue discipline from a file that is loaded at run time.
//!
//! The file `path` is a shared library or a module of WebAssembly with a table of functions; its own parameters follow `limit`.
//! docs/plugins.md explains how to write one. `path = "example"` is the plug-in that flowloom contains:
//! first in, first out, with a marking threshold.
//!
//! Source: the plug-in.
//!
//! Model: the port keeps the packets, in up to 64 queues. A queue sends its packets in the order of
//! their ranks, then of their arrival. The plug-in decides which packets are admitted, dropped, trimmed
//! and marked, where they wait, and which queue sends. Plug-ins do not hold packets back while the port
//! is idle (no shaping), do not drop packets that leave, and have one class for PFC.
//!
//! Assumed:
//! - A port never holds more than `limit`: a packet that is admitted and does not fit after the
//!   evictions is dropped.
//! - A packet that finds its port idle never waits and is never marked; the plug-in only sees it.
//! - Packets that are not ECN-capable are not marked, and no packet is marked by a plug-in that does not
//!   declare that it marks.
//! - Packets that are lost with their link leave without a call of the plug-in.

use super::{Backlog, Env, Fifo, Qdisc};
use crate::refused::Refused;
use ::plugin::library::{Failure, Library};
use ::plugin::qdisc::machine::Discipline;
use ::plugin::qdisc::{self, Place, Port, QdiscTable, UNLIMITED, Verdict, Waiting};
use base::params::{Auto, Params as _, Problem};
use base::plugins::{PluginParams, RoomParams, problem};
use base::registry::{Entry, Meta, PluginRoom};
use base::{FlowId, Limit, Time, Wire as _};
use proto::{Kind, Packet, plugins};
use std::collections::VecDeque;

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "a queue discipline from a file: a shared library or a module of WebAssembly",
    source: "the plug-in",
    implies: &[("qdisc.path", ::plugin::library::EXAMPLE_FILE), ("transport.kind", "dctcp")],
    queue_lengths: &["limit"],
    packets_only: "the plug-in decides on single packets",
    plugin: Some(PluginRoom { entry, example: Library::example_qdisc }),
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of all plug-ins.
    pub struct Common {
        /// Most packets or bytes that may wait; the packet in transmission does not count.
        limit: Auto<Limit> = "auto", "as droptail: the larger of 100 packets and 2 bandwidth-delay products";
        /// The file of the plug-in, relative to the folder of the scenario: a shared library or a module of WebAssembly; `example`:
        /// the plug-in that flowloom contains.
        path: String = "", "";
    }
}

impl RoomParams for Common {
    fn example() -> &'static Library {
        Library::example_qdisc()
    }
}

/// Parameters of a plug-in.
pub type Params = PluginParams<Common>;

/// Makes the entry of a plug-in. The error completes a sentence about the plug-in.
fn entry(library: &'static Library) -> Result<Entry, String> {
    let marks = library.table::<QdiscTable>()?.marks != 0;
    // Marks need a transport that reacts to them.
    let meta = Meta { implies: if marks { META.implies } else { &META.implies[..1] }, ..META };
    let plain =
        Entry { name: "plugin", meta: &META, fields: Common::FIELDS, text: include_str!("plugin.rs"), machine: None, plugin: None };
    base::plugins::entry(plain, meta, library)
}

/// Returns the contradictions between parameters: those that the plug-in reports too.
pub fn check(params: &Params, env: &Env) -> Vec<Problem> {
    let mut problems = super::check_limit(params.common.limit, env);
    problems.extend(discipline(params, env).err().map(problem));
    problems
}

fn discipline(params: &Params, env: &Env) -> Result<Discipline, Failure> {
    let (limit_packets, limit_bytes) = match Plugin::limit(params, env) {
        Limit::Packets(packets) => (packets.into(), UNLIMITED),
        Limit::Bytes(bytes) => (UNLIMITED, bytes),
        Limit::Unlimited => (UNLIMITED, UNLIMITED),
    };
    let port = Port {
        rate_bps: env.rate.0,
        mtu: env.mtu_bytes.into(),
        max_rtt_ps: env.max_rtt.0,
        limit_packets,
        limit_bytes,
        link: env.link.0.into(),
        seed: env.seed,
        host_port: env.host_port.into(),
        reserved: 0,
    };
    Discipline::new(params.own.library(), &port, &params.own.values())
}

/// A port with the discipline of a plug-in. It lies apart, so that the ports of other disciplines do not
/// have its size.
#[derive(Clone)]
pub struct Plugin(Box<PluginPort>);

/// See [`Plugin`].
struct PluginPort {
    /// The functions of the plug-in, or why its discipline could not be created: then a run fails with the
    /// first packet. `None`: a copy, which is only for reading and for taking packets out.
    discipline: Option<Result<Discipline, Failure>>,
    limit: Limit,
    /// Whether the plug-in may mark packets.
    can_mark: bool,
    queues: Queues,
    marks: u64,
    /// The packet that is lent to the caller.
    served: Packet,
}

/// A copy has the packets, but not the discipline, whose block of bytes only the plug-in understands.
impl Clone for PluginPort {
    fn clone(&self) -> Self {
        let &PluginPort { limit, can_mark, ref queues, marks, served, .. } = self;
        PluginPort { discipline: None, limit, can_mark, queues: queues.clone(), marks, served }
    }
}

/// The packets of a port.
#[derive(Clone)]
struct Queues {
    /// The packets of each queue with their ranks, by rank, then by arrival.
    packets: Vec<VecDeque<(u64, Packet)>>,
    /// What the plug-in sees of each queue.
    shown: Vec<qdisc::Queue>,
    backlog: Backlog,
}

impl Queues {
    fn new(count: u32) -> Queues {
        let count = count as usize;
        Queues { packets: vec![VecDeque::new(); count], shown: vec![qdisc::Queue::default(); count], backlog: Backlog::default() }
    }
    #[inline]
    fn waiting(&self) -> Waiting<'_> {
        Waiting { packets: self.backlog.packets.into(), bytes: self.backlog.bytes, queues: &self.shown }
    }
    /// Enqueues a packet. Returns how many packets of the queue come before it.
    #[inline]
    fn push(&mut self, packet: &Packet, place: Place) -> usize {
        let number = place.queue as usize;
        let queue = &mut self.packets[number];
        let at = match queue.back() {
            Some((last, _)) if *last > place.rank => queue.partition_point(|(rank, _)| *rank <= place.rank),
            _ => queue.len(),
        };
        queue.insert(at, (place.rank, *packet));
        self.backlog.add(packet);
        self.shown[number].bytes += u64::from(packet.wire_len);
        self.show(number);
        at
    }
    /// Removes a packet of a queue, which must exist.
    #[inline]
    fn take(&mut self, number: usize, at: usize) -> Option<Packet> {
        let queue = &mut self.packets[number];
        let (_, packet) = if at == 0 { queue.pop_front() } else { queue.remove(at) }?;
        self.backlog.remove(&packet);
        self.shown[number].bytes -= u64::from(packet.wire_len);
        self.show(number);
        Some(packet)
    }
    /// Updates what the plug-in sees of a queue.
    #[inline]
    fn show(&mut self, number: usize) {
        let queue = &self.packets[number];
        let shown = &mut self.shown[number];
        shown.packets = queue.len() as u32;
        shown.first = queue.front().map_or(0, |(_, packet)| packet.wire_len.into());
    }
    /// Returns the first queue that has packets.
    fn first_filled(&self) -> Option<usize> {
        self.packets.iter().position(|queue| !queue.is_empty())
    }
}

impl Plugin {
    /// Returns a port with empty queues.
    pub fn new(params: &Params, env: &Env) -> Self {
        let table = params.own.library().table::<QdiscTable>();
        let (queues, marks) = table.map_or((1, 0), |table| (table.queues, table.marks));
        Plugin(Box::new(PluginPort {
            discipline: Some(discipline(params, env)),
            limit: Self::limit(params, env),
            can_mark: marks != 0,
            queues: Queues::new(queues),
            marks: 0,
            served: Packet::new(FlowId(0), Kind::DATA, 0),
        }))
    }
    /// Returns the limit of the queue.
    pub fn limit(params: &Params, env: &Env) -> Limit {
        env.limit(params.common.limit, 100)
    }
    /// Returns `None`: the engine cannot simulate this discipline by itself.
    pub fn fifo(_params: &Params, _env: &Env) -> Option<Fifo> {
        None
    }
}

/// Returns the functions of the plug-in. Ends the run if its discipline could not be created.
#[inline(always)]
fn functions(discipline: &mut Option<Result<Discipline, Failure>>) -> &mut Discipline {
    match discipline {
        Some(Ok(discipline)) => discipline,
        Some(Err(failure)) => failure.clone().raise(),
        None => panic!("a copy of a port is only for reading and for taking packets out"),
    }
}

impl Qdisc for Plugin {
    fn enqueue(&mut self, packet: &mut Packet, now: Time, refused: &mut Refused) -> bool {
        let PluginPort { discipline, limit, can_mark, queues, marks, .. } = &mut *self.0;
        let discipline = functions(discipline);
        let (place, trims) = match discipline.enqueue(now.0, queues.waiting(), &plugins::shown(packet)) {
            Verdict::Admit(place) => (place, false),
            Verdict::Trim(place) => (place, true),
            Verdict::Drop => {
                refused.drop(packet);
                return false;
            }
        };
        if trims {
            // A packet without any bytes would not take part in the service of a link.
            refused.trim(packet, place.trim_to.clamp(1, u16::MAX.into()) as u16);
        }
        *marks += u64::from(*can_mark && place.mark != 0 && packet.mark());
        let at = queues.push(packet, place);
        let number = place.queue as usize;
        let mut stays = true;
        while queues.backlog.packets > 0
            && let Some(evicts) = discipline.evict(now.0, queues.waiting())
        {
            let last = queues.packets[evicts].len() - 1;
            stays &= (evicts, last) != (number, at);
            queues.take(evicts, last).iter().for_each(|last| refused.drop(last));
        }
        // Only the arriving packet can exceed the limit. Packets that come before it in its queue were not
        // dropped, since the last one is dropped first.
        if stays && queues.backlog.exceeds(*limit) {
            stays = false;
            queues.take(number, at).iter().for_each(|own| refused.drop(own));
        }
        stays
    }
    fn dequeue(&mut self, now: Time) -> Option<&mut Packet> {
        let PluginPort { discipline, can_mark, queues, marks, served, .. } = &mut *self.0;
        if queues.backlog.packets == 0 {
            return None;
        }
        let discipline = functions(discipline);
        let number = discipline.dequeue(now.0, queues.waiting());
        *served = queues.take(number, 0)?;
        if discipline.has_on_dequeue() {
            let mark = discipline.on_dequeue(now.0, queues.waiting(), &plugins::shown(served));
            *marks += u64::from(mark && *can_mark && served.mark());
        }
        Some(served)
    }
    fn drain(&mut self, _now: Time) -> Option<Packet> {
        self.0.queues.first_filled().and_then(|number| self.0.queues.take(number, 0))
    }
    fn waited(&self, now: Time) -> u64 {
        let all = self.0.queues.packets.iter().flatten();
        all.map(|(_, packet)| u64::from(packet.wire_len) * ((now - packet.arrival).0 >> 10)).sum()
    }
    fn backlog(&self) -> Backlog {
        self.0.queues.backlog
    }
    /// Returns `true`: what a plug-in counts must not depend on when the engine looks at the port.
    fn watches(&self) -> bool {
        true
    }
    fn passes(&mut self, packet: &Packet, now: Time) -> bool {
        let discipline = functions(&mut self.0.discipline);
        if discipline.has_on_pass() {
            discipline.on_pass(now.0, &plugins::shown(packet));
        }
        true
    }
    fn marks(&self) -> u64 {
        self.0.marks
    }
    fn can_mark(&self) -> bool {
        self.0.can_mark
    }
    fn lengths(&self) -> Vec<(&'static str, Limit)> {
        vec![("limit", self.0.limit)]
    }
    fn counts(&self) -> &[u64] {
        match &self.0.discipline {
            Some(Ok(discipline)) => discipline.counters(),
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::tests::{drain, enqueue, env, names, packet};
    use crate::refused::Refusal;
    use ::plugin::abi::{self, Counter, Parameter, Type, Value};
    use ::plugin::library::Code;
    use ::plugin::{Declaration, Values};
    use base::params::{Raw, Reader};
    use base::plugins::Own;
    use proptest::prelude::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Queues of [`Steered`].
    const QUEUES: u32 = 4;
    // What `Steered` does with a packet, in its priority.
    const ADMIT: u8 = 0;
    const TRIM: u8 = 1;
    const DROP: u8 = 2;
    const PANIC: u8 = 3;

    /// Does what packets say: the action is their priority, the queue and the rank are their words, and they
    /// are marked if their rank is not 0.
    struct Steered {
        /// The queue that sends; `u32::MAX`: the default.
        sends: u64,
        /// The queue that drops its last packet while more than `most` packets wait.
        evicts: u64,
        most: u64,
        /// Packets that were seen: at arrivals, at departures, at an idle port.
        counts: [u64; 3],
    }

    impl ::plugin::qdisc::Qdisc for Steered {
        const DECLARATION: Declaration = Declaration {
            counters: &[
                Counter::new(c"arrived", c"packets", c"Packets that arrived."),
                Counter::new(c"left", c"packets", c"Packets that left."),
                Counter::new(c"passed", c"packets", c"Packets that passed."),
            ],
            parameters: &[
                Parameter::new(Type::Integer, c"sends", c"4294967295", c"The queue that sends."),
                Parameter::new(Type::Integer, c"evicts", c"0", c"The queue that drops."),
                Parameter::new(Type::Integer, c"most", c"1000", c"Packets that may wait."),
            ],
            ..Declaration::new(c"steered", c"Does what packets say")
        };
        const QUEUES: u32 = QUEUES;
        const MARKS: bool = true;
        fn create(port: &Port, values: Values<'_>) -> Result<Self, String> {
            assert_eq!((port.rate_bps, port.mtu, port.max_rtt_ps, port.seed), (1_000_000_000, 1500, 100_000_000, 1));
            let [sends, evicts, most] = [0, 1, 2].map(|i| values.integer(i));
            if most == 13 {
                return Err("13 is unlucky".to_owned());
            }
            Ok(Steered { sends, evicts, most, counts: [0; 3] })
        }
        fn enqueue(&mut self, _: u64, _: Waiting<'_>, packet: &abi::Packet) -> Verdict {
            self.counts[0] += 1;
            let place = Place { rank: packet.words[1], queue: packet.words[0] as u32, trim_to: 64, mark: packet.rank, reserved: 0 };
            match packet.prio {
                ADMIT => Verdict::Admit(place),
                TRIM => Verdict::Trim(place),
                DROP => Verdict::Drop,
                _ => panic!("as the packet says"),
            }
        }
        fn dequeue(&mut self, _: u64, waiting: Waiting<'_>) -> u32 {
            let filled = waiting.queues.iter().position(|queue| queue.packets > 0).unwrap_or(9) as u64;
            if self.sends == u64::from(u32::MAX) { filled as u32 } else { self.sends as u32 }
        }
        fn evict(&mut self, _: u64, waiting: Waiting<'_>) -> Option<u32> {
            (waiting.packets > self.most).then_some(self.evicts as u32)
        }
        fn on_dequeue(&mut self, _: u64, waiting: Waiting<'_>, packet: &abi::Packet) -> bool {
            self.counts[1] += 1;
            packet.rank == 0 && waiting.packets == 2
        }
        fn on_pass(&mut self, _: u64, _: &abi::Packet) {
            self.counts[2] += 1;
        }
        fn counters(&self) -> &[u64] {
            &self.counts
        }
    }

    fn library(change: impl FnOnce(&mut QdiscTable)) -> Result<&'static Library, String> {
        let mut table = qdisc::author::table::<Steered>();
        change(&mut table);
        let table: *const QdiscTable = Box::leak(Box::new(table));
        // Safety: a table of this test.
        #[allow(unsafe_code)]
        let library = unsafe { Library::new(table.cast(), "steered.so", "", Code::Native) }?;
        Ok(Box::leak(Box::new(library)))
    }

    /// Reads the parameters of [`Steered`].
    struct Of([u64; 3]);

    impl Reader for Of {
        fn get(&mut self, key: &'static str) -> Option<Raw> {
            let at = ["sends", "evicts", "most"].iter().position(|known| *known == key)?;
            Some(Raw::Int(self.0[at] as i64))
        }
        fn fail(&mut self, key: &'static str, message: String) {
            panic!("{key}: {message}");
        }
    }

    fn params(library: &'static Library, limit: Limit, values: [u64; 3]) -> Params {
        let common = Common { limit: Auto::Set(limit), path: "steered.so".to_owned() };
        Params { common, own: Own::read(library, &mut Of(values)) }
    }

    const FIRST: u64 = u32::MAX as u64;

    fn port(limit: Limit, values: [u64; 3]) -> Plugin {
        Plugin::new(&params(library(|_| {}).unwrap(), limit, values), &env())
    }

    fn free() -> Plugin {
        port(Limit::Unlimited, [FIRST, 0, 1000])
    }

    /// A packet of a flow that is admitted into a queue at a rank.
    fn to(flow: u32, queue: u64, rank: u64) -> Packet {
        Packet { words: [queue, rank], ..packet(flow, 0, 1500) }
    }

    fn sent(port: &mut Plugin) -> Vec<u32> {
        std::iter::from_fn(|| port.dequeue(Time::ZERO).copied()).map(|packet| packet.flow.0).collect()
    }

    /// Returns the message of the failure that ends the run.
    fn failure<T>(run: impl FnOnce() -> T) -> String {
        let panic = catch_unwind(AssertUnwindSafe(run)).map(|_| ()).expect_err("a failure");
        panic.downcast::<Failure>().expect("a failure of a plug-in").to_string()
    }

    #[test]
    fn a_queue_is_ordered_by_rank_then_by_arrival() {
        let mut q = free();
        for (flow, rank) in [5, 3, 5, u64::MAX, 0, 3].into_iter().enumerate() {
            assert_eq!(enqueue(&mut q, to(flow as u32, 1, rank)), []);
        }
        assert_eq!(sent(&mut q), [4, 1, 5, 0, 2, 3]);
        assert_eq!(q.backlog(), Backlog::default());
    }

    #[test]
    fn the_plug_in_chooses_the_queue_or_the_first_one_sends() {
        let fill = |mut q: Plugin| {
            [(0, 3), (1, 1), (2, 2), (3, 1)]
                .into_iter()
                .for_each(|(flow, queue)| assert_eq!(enqueue(&mut q, to(flow, queue, 0)), []));
            q
        };
        assert_eq!(sent(&mut fill(free())), [1, 3, 2, 0]);
        let without = library(|table| table.dequeue = None).unwrap();
        assert_eq!(sent(&mut fill(Plugin::new(&params(without, Limit::Unlimited, [0, 0, 1000]), &env()))), [1, 3, 2, 0]);
        let mut q = fill(port(Limit::Unlimited, [2, 0, 1000]));
        assert_eq!(q.dequeue(Time::ZERO).map(|packet| packet.flow.0), Some(2));
    }

    #[test]
    fn the_last_packet_of_the_named_queue_is_evicted() {
        let mut q = port(Limit::Unlimited, [FIRST, 1, 3]);
        for (flow, queue, rank) in [(0, 1, 5), (1, 1, 9), (2, 0, 0)] {
            assert_eq!(enqueue(&mut q, to(flow, queue, rank)), []);
        }
        assert_eq!(enqueue(&mut q, to(3, 2, 0)), [(1, 0)]);
        // The arriving packet itself, which does not stay.
        assert_eq!(enqueue(&mut q, to(4, 1, 5)), [(4, 0)]);
        assert_eq!(enqueue(&mut q, to(5, 1, 4)), [(0, 0)]);
        assert_eq!(drain(&mut q), [(2, 0), (5, 0), (3, 0)]);
        // Several packets at once, until the port is empty.
        let mut q = port(Limit::Unlimited, [FIRST, 1, 0]);
        assert_eq!(enqueue(&mut q, to(0, 1, 0)), [(0, 0)]);
    }

    #[test]
    fn no_more_than_the_limit_waits() {
        let mut q = port(Limit::Packets(2), [FIRST, 0, 1000]);
        let packets = [to(0, 0, 5), to(1, 1, 0), to(2, 0, 1), to(3, 3, 0)];
        assert_eq!(packets.into_iter().flat_map(|packet| enqueue(&mut q, packet)).collect::<Vec<_>>(), [(2, 0), (3, 0)]);
        // Evictions make room, as far as they go.
        let mut q = port(Limit::Bytes(3000), [FIRST, 0, 2]);
        let packets = [to(0, 0, 0), to(1, 1, 0), to(2, 1, 0)];
        assert_eq!(packets.into_iter().flat_map(|packet| enqueue(&mut q, packet)).collect::<Vec<_>>(), [(0, 0)]);
        assert_eq!(q.backlog(), Backlog { packets: 2, bytes: 3000 });
    }

    #[test]
    fn only_data_is_trimmed_and_keeps_a_byte() {
        let mut q = free();
        let mut refused = Refused::new();
        let data = Packet { prio: TRIM, payload: 1460, ..to(0, 2, 0) };
        assert!(q.enqueue(&mut { data }, Time::ZERO, &mut refused));
        assert_eq!(refused.pop(), Some(Refusal::Trimmed { packet: data, to: 64 }));
        let sent = *q.dequeue(Time::ZERO).unwrap();
        assert_eq!((sent.kind, sent.wire_len, sent.payload), (Kind::TRIMMED, 64, 0));
        let ack = Packet { prio: TRIM, kind: Kind::ACK, ..to(0, 2, 0) };
        let message = failure(|| q.enqueue(&mut { ack }, Time::ZERO, &mut refused));
        assert_eq!(
            message,
            "the plug-in `steered` (`steered.so`) failed in `enqueue`: it trims a packet of kind 1: only data is trimmed"
        );
    }

    #[test]
    fn capable_packets_are_marked_at_arrival_or_departure() {
        let capable = |flow, rank| Packet { flags: Packet::ECT, rank, ..to(flow, 0, 0) };
        let marked = |q: &mut Plugin, packets: &[Packet]| {
            packets.iter().for_each(|packet| {
                let mut refused = Refused::new();
                assert!(q.enqueue(&mut { *packet }, Time::ZERO, &mut refused) && refused.is_empty());
            });
            let all: Vec<_> = std::iter::from_fn(|| q.dequeue(Time::ZERO).copied()).collect();
            all.iter().filter(|packet| packet.has(Packet::CE)).map(|packet| packet.flow.0).collect::<Vec<_>>()
        };
        // At arrival.
        let both = [capable(0, 0), capable(1, 1), Packet { flags: 0, ..capable(2, 1) }, capable(3, 1)];
        let mut q = free();
        assert_eq!((marked(&mut q, &both), q.marks(), q.can_mark()), (vec![1, 3], 2, true));
        // At departure: the packet that leaves two others behind.
        let plain = [capable(0, 0), capable(1, 0), capable(2, 0), capable(3, 0)];
        let mut q = free();
        assert_eq!((marked(&mut q, &plain), q.marks()), (vec![1], 1));
        // A plug-in that does not declare marks.
        let silent = library(|table| table.marks = 0).unwrap();
        let mut q = Plugin::new(&params(silent, Limit::Unlimited, [FIRST, 0, 1000]), &env());
        assert_eq!((marked(&mut q, &both), q.marks(), q.can_mark()), (vec![], 0, false));
    }

    #[test]
    fn every_packet_is_seen_once_and_counted() {
        let mut q = free();
        assert!(q.watches() && q.passes(&packet(0, 0, 40), Time::ZERO));
        [0, 1].into_iter().for_each(|flow| assert_eq!(enqueue(&mut q, to(flow, 0, 0)), []));
        assert_eq!(enqueue(&mut q, Packet { prio: DROP, ..to(2, 0, 0) }), [(2, 0)]);
        assert_eq!(sent(&mut q), [0, 1]);
        assert_eq!(q.counts(), [3, 2, 1]);
    }

    /// A port whose link fails is emptied, and read by a window of measurement, without the plug-in.
    #[test]
    fn packets_are_taken_out_and_read_without_the_plug_in() {
        let mut q = port(Limit::Unlimited, [7, 0, 1000]);
        for (flow, queue) in [(0, 2), (1, 0), (2, 2)] {
            assert_eq!(enqueue(&mut q, Packet { arrival: Time(1024 * u64::from(flow)), ..to(flow, queue, 0) }), []);
        }
        assert_eq!(q.waited(Time(4096)), 1500 * (4 + 3 + 2));
        let mut copy = q.clone();
        assert_eq!(copy.counts(), []);
        assert_eq!(drain(&mut copy), [(1, 0), (0, 0), (2, 0)]);
        assert_eq!(q.counts(), [3, 0, 0]);
        assert_eq!(drain(&mut q), [(1, 0), (0, 0), (2, 0)]);
    }

    #[test]
    fn a_copy_does_not_end_the_machine() {
        static ENDED: AtomicU64 = AtomicU64::new(0);
        extern "C" fn end(_: *mut std::ffi::c_void) {
            ENDED.fetch_add(1, Ordering::Relaxed);
        }
        let own = library(|table| table.head.destroy = Some(end)).unwrap();
        let q = Plugin::new(&params(own, Limit::Unlimited, [FIRST, 0, 1000]), &env());
        drop(q.clone());
        assert_eq!(ENDED.load(Ordering::Relaxed), 0);
        drop(q);
        assert_eq!(ENDED.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn results_without_meaning_end_the_run() {
        let mut refused = Refused::new();
        let mut of = |mut q: Plugin, packets: &[Packet]| {
            failure(|| {
                packets.iter().for_each(|packet| _ = q.enqueue(&mut { *packet }, Time::ZERO, &mut refused));
                q.dequeue(Time::ZERO).map(|_| ())
            })
        };
        let start = "the plug-in `steered` (`steered.so`) failed in ";
        let ends = |message: String, end: &str| assert_eq!(message, format!("{start}{end}"));
        ends(of(free(), &[to(0, 4, 0)]), "`enqueue`: the port has no queue 4: it has 4");
        ends(of(free(), &[to(0, u64::from(u32::MAX), 0)]), "`enqueue`: the port has no queue 4294967295: it has 4");
        ends(of(port(Limit::Unlimited, [1, 0, 1000]), &[to(0, 2, 0)]), "`dequeue`: queue 1 has no packets");
        ends(of(port(Limit::Unlimited, [64, 0, 1000]), &[to(0, 2, 0)]), "`dequeue`: the port has no queue 64: it has 4");
        ends(of(port(Limit::Unlimited, [FIRST, 1, 0]), &[to(0, 2, 0)]), "`evict`: queue 1 has no packets");
        ends(of(port(Limit::Unlimited, [FIRST, 4, 0]), &[to(0, 2, 0)]), "`evict`: the port has no queue 4: it has 4");
        ends(of(free(), &[Packet { prio: PANIC, ..to(0, 0, 0) }]), "`enqueue`: as the packet says");
        // Its machine cannot be created: the run fails at the first packet, `check` before.
        let unlucky = params(library(|_| {}).unwrap(), Limit::Packets(9), [FIRST, 0, 13]);
        ends(of(Plugin::new(&unlucky, &env()), &[to(0, 0, 0)]), "`create`: 13 is unlucky");
        let problems = check(&unlucky, &env());
        assert_eq!(problems.len(), 1);
        assert!(problems[0].key == "path" && problems[0].message.ends_with("13 is unlucky"), "{problems:?}");
    }

    #[test]
    fn unknown_results_and_missing_totals_end_the_run() {
        extern "C" fn seven(_: *mut std::ffi::c_void, _: u64, _: *const qdisc::View, _: *mut u32) -> i32 {
            7
        }
        extern "C" fn nothing(_: *const std::ffi::c_void) -> *const u64 {
            std::ptr::null()
        }
        let of = |change: fn(&mut QdiscTable)| {
            let mut q = Plugin::new(&params(library(change).unwrap(), Limit::Unlimited, [FIRST, 0, 1000]), &env());
            failure(move || {
                enqueue(&mut q, to(0, 0, 0));
                let _ = q.dequeue(Time::ZERO);
                q.counts().len()
            })
        };
        assert!(of(|table| table.dequeue = Some(seven)).ends_with("`dequeue`: it returned 7, which is none of its results"));
        assert!(of(|table| table.evict = Some(seven)).ends_with("`evict`: it returned 7, which is none of its results"));
        assert!(of(|table| table.count = Some(nothing)).contains("failed in `count`"));
    }

    #[test]
    fn tables_that_do_not_fit_are_refused() {
        let refused = |change: fn(&mut QdiscTable)| library(change).unwrap_err();
        assert_eq!(refused(|table| table.enqueue = None), "it has no function `enqueue`");
        assert_eq!(refused(|table| table.create = None), "it has no function `create`, but a discipline of some size");
        assert_eq!(refused(|table| table.queues = 0), "its `queues` is 0: 1 to 64 are allowed");
        assert_eq!(refused(|table| table.queues = 65), "its `queues` is 65: 1 to 64 are allowed");
        assert_eq!(refused(|table| table.count = None), "it declares counters, but has no function `count`");
        assert_eq!(
            refused(|table| table.head.sizes[4] = 56),
            format!("its `flowloom_packet` has 56 bytes instead of {}", size_of::<abi::Packet>())
        );
        assert_eq!(
            refused(|table| table.head.state_size = 8),
            "a queue discipline has no flows: its `knows` and `state_size` must be 0"
        );
        let message = entry(Library::example()).unwrap_err();
        assert_eq!(message, "it is congestion control, a `transport`, and not for this part of a system");
        assert!(Discipline::new(Library::example(), &example_port(), &[Value(0); 3]).is_err());
    }

    fn example_port() -> Port {
        Port { rate_bps: 1, mtu: 1, max_rtt_ps: 1, limit_packets: 1, limit_bytes: 1, link: 0, seed: 0, host_port: 0, reserved: 0 }
    }

    #[test]
    fn a_limit_below_one_packet_is_a_problem() {
        for (limit, problems) in [(Limit::Packets(0), 1), (Limit::Bytes(1499), 1), (Limit::Bytes(1500), 0), (Limit::Unlimited, 0)] {
            assert_eq!(check(&params(library(|_| {}).unwrap(), limit, [0, 0, 9]), &env()).len(), problems, "{limit}");
        }
    }

    #[test]
    fn the_entry_of_a_plug_in_implies_a_transport_only_if_it_marks() {
        let marks = entry(Library::example_qdisc()).unwrap();
        assert_eq!(marks.meta.implies.len(), 2);
        let silent = entry(library(|table| table.marks = 0).unwrap()).unwrap();
        assert_eq!(silent.meta.implies, [("qdisc.path", "example")]);
        assert_eq!(silent.meta.counters.iter().map(|counter| counter.name).collect::<Vec<_>>(), ["arrived", "left", "passed"]);
        assert_eq!(silent.fields.iter().map(|field| field.name).collect::<Vec<_>>(), ["limit", "path", "sends", "evicts", "most"]);
    }

    proptest! {
        /// Compared with lists of packets. The numbers that the plug-in sees are those of the lists.
        #[test]
        fn queues_are_lists(steps in prop::collection::vec((0u8..4, 0u32..4, 0u64..3, 40u16..1500), 0..200)) {
            let mut queues = Queues::new(4);
            let mut plain = vec![Vec::<(u64, Packet)>::new(); 4];
            for (n, (step, number, rank, len)) in steps.into_iter().enumerate() {
                let list = &mut plain[number as usize];
                match step {
                    0 => {
                        let first = (!list.is_empty()).then(|| list.remove(0).1);
                        prop_assert_eq!(queues.take(number as usize, 0), first);
                    }
                    1 => {
                        let last = list.pop().map(|(_, packet)| packet);
                        let at = queues.packets[number as usize].len().saturating_sub(1);
                        prop_assert_eq!(queues.take(number as usize, at), last);
                    }
                    _ => {
                        let packet = packet(number, n as u64, len);
                        let at = list.iter().filter(|(known, _)| *known <= rank).count();
                        list.insert(at, (rank, packet));
                        prop_assert_eq!(queues.push(&packet, Place { rank, queue: number, ..Place::default() }), at);
                    }
                }
                let bytes = |list: &[(u64, Packet)]| list.iter().map(|(_, packet)| u64::from(packet.wire_len)).sum::<u64>();
                let waiting = queues.waiting();
                prop_assert_eq!(waiting.packets, plain.iter().map(|list| list.len() as u64).sum::<u64>());
                prop_assert_eq!(waiting.bytes, plain.iter().map(|list| bytes(list)).sum::<u64>());
                for (shown, list) in waiting.queues.iter().zip(&plain) {
                    let first = list.first().map_or(0, |(_, packet)| packet.wire_len.into());
                    prop_assert_eq!(*shown, qdisc::Queue { bytes: bytes(list), packets: list.len() as u32, first });
                }
            }
            let left: Vec<Packet> = std::iter::from_fn(|| queues.first_filled().and_then(|number| queues.take(number, 0))).collect();
            prop_assert_eq!(names(&left), names(&plain.into_iter().flatten().map(|(_, packet)| packet).collect::<Vec<_>>()));
        }
    }
}
