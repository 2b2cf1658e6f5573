//! The side of the simulator: the discipline of a plug-in at one port. It checks what the functions
//! return.

use super::{DROP, MARK, NONE, Place, Port, QdiscTable, TRIM, Verdict, View, Waiting};
use crate::abi::{FAILED, OK, Packet, Value};
use crate::block::Block;
use crate::library::{Failure, Library};

/// The discipline of a port.
pub struct Discipline {
    library: &'static Library,
    table: &'static QdiscTable,
    own: Block,
}

// Safety of the calls below: the table was checked, `own` was filled by `create`, and a view has as
// many queues as the table says.

impl Discipline {
    /// Creates the discipline of a port. There is a value for each parameter.
    pub fn new(library: &'static Library, port: &Port, values: &[Value]) -> Result<Discipline, Failure> {
        let (table, own) = library.create(|table: &QdiscTable| table.create, port, values)?;
        Ok(Discipline { library, table, own })
    }
    /// Returns the view that functions get.
    fn view(&self, waiting: Waiting<'_>) -> View {
        let Waiting { packets, bytes, queues } = waiting;
        assert_eq!(queues.len(), self.table.queues as usize, "as many queues as the table says");
        View { packets, bytes, queues: queues.as_ptr() }
    }
    /// Ends the run because of the result of a function.
    #[cold]
    fn fail(&self, status: i32, function: &'static str) -> ! {
        match status {
            FAILED => self.library.failure(function).raise(),
            other => self.library.wrong(function, format!("it returned {other}, which is none of its results")).raise(),
        }
    }
    /// Ends the run if a function without results of its own has failed.
    #[inline(always)]
    fn done(&self, status: i32, function: &'static str) {
        if status != OK {
            self.fail(status, function);
        }
    }
    /// Returns a queue that must have packets.
    fn filled(&self, queue: u32, waiting: Waiting<'_>, function: &'static str) -> usize {
        match waiting.queues.get(queue as usize) {
            Some(known) if known.packets > 0 => queue as usize,
            Some(_) => self.library.wrong(function, format!("queue {queue} has no packets")).raise(),
            None => self.no_queue(queue, function),
        }
    }
    #[cold]
    fn no_queue(&self, queue: u32, function: &'static str) -> ! {
        self.library.wrong(function, format!("the port has no queue {queue}: it has {}", self.table.queues)).raise()
    }
    /// Calls `enqueue`. The place of the verdict exists, and only data is trimmed.
    #[inline]
    pub fn enqueue(&mut self, now_ps: u64, waiting: Waiting<'_>, packet: &Packet) -> Verdict {
        let (view, mut place) = (self.view(waiting), Place::default());
        let kind = packet.kind;
        let status =
            self.table.enqueue.map_or(FAILED, |enqueue| unsafe { enqueue(self.own.at(), now_ps, &view, packet, &mut place) });
        let verdict = match status {
            OK => Verdict::Admit(place),
            TRIM if kind == Packet::DATA => Verdict::Trim(place),
            TRIM => self.library.wrong("enqueue", format!("it trims a packet of kind {kind}: only data is trimmed")).raise(),
            DROP => return Verdict::Drop,
            other => self.fail(other, "enqueue"),
        };
        if place.queue >= self.table.queues {
            self.no_queue(place.queue, "enqueue");
        }
        verdict
    }
    /// Calls `evict`. Returns a queue that has packets.
    #[inline]
    pub fn evict(&mut self, now_ps: u64, waiting: Waiting<'_>) -> Option<usize> {
        let evict = self.table.evict?;
        let (view, mut queue) = (self.view(waiting), u32::MAX);
        match unsafe { evict(self.own.at(), now_ps, &view, &mut queue) } {
            NONE => None,
            status => {
                self.done(status, "evict");
                Some(self.filled(queue, waiting, "evict"))
            }
        }
    }
    /// Calls `dequeue`. Returns a queue that has packets; there must be one.
    #[inline]
    pub fn dequeue(&mut self, now_ps: u64, waiting: Waiting<'_>) -> usize {
        let Some(dequeue) = self.table.dequeue else {
            return waiting.queues.iter().position(|queue| queue.packets > 0).unwrap_or(0);
        };
        let (view, mut queue) = (self.view(waiting), u32::MAX);
        self.done(unsafe { dequeue(self.own.at(), now_ps, &view, &mut queue) }, "dequeue");
        self.filled(queue, waiting, "dequeue")
    }
    /// Returns whether the plug-in has `on_dequeue`.
    #[inline(always)]
    pub fn has_on_dequeue(&self) -> bool {
        self.table.on_dequeue.is_some()
    }
    /// Calls `on_dequeue`. Returns whether the packet is to be marked.
    #[inline]
    pub fn on_dequeue(&mut self, now_ps: u64, waiting: Waiting<'_>, packet: &Packet) -> bool {
        let Some(on_dequeue) = self.table.on_dequeue else { return false };
        let view = self.view(waiting);
        match unsafe { on_dequeue(self.own.at(), now_ps, &view, packet) } {
            MARK => true,
            status => {
                self.done(status, "on_dequeue");
                false
            }
        }
    }
    /// Returns whether the plug-in has `on_pass`.
    #[inline(always)]
    pub fn has_on_pass(&self) -> bool {
        self.table.on_pass.is_some()
    }
    /// Calls `on_pass`.
    #[inline]
    pub fn on_pass(&mut self, now_ps: u64, packet: &Packet) {
        if let Some(on_pass) = self.table.on_pass {
            self.done(unsafe { on_pass(self.own.at(), now_ps, packet) }, "on_pass");
        }
    }
    /// Returns the totals of the counters.
    pub fn counters(&self) -> &[u64] {
        let Some(count) = self.table.count else { return &[] };
        let totals = unsafe { count(self.own.at()) };
        if totals.is_null() || !totals.is_aligned() {
            self.library.failure("count").raise();
        }
        // Safety: `count` returns a total for each counter, which stays until the next call.
        unsafe { std::slice::from_raw_parts(totals, self.library.counters.len()) }
    }
}
