//! The side of the author of a queue discipline: makes the table from an implementation of [`Qdisc`].

use super::{DROP, MARK, NONE, Place, Port, QdiscTable, Queue, TRIM, View};
use crate::abi::{Head, OK, Packet, Value};
use crate::author::{self, Declaration, Values, guard};
use std::ffi::c_void;

/// A queue discipline of a port. The simulator keeps the packets; the discipline says where they wait.
pub trait Qdisc: Sized + Send + 'static {
    /// Its name, parameters and counters.
    const DECLARATION: Declaration;
    /// Number of queues of a port: 1 to [`MOST_QUEUES`](super::MOST_QUEUES).
    const QUEUES: u32 = 1;
    /// Whether it may mark packets.
    const MARKS: bool = false;
    /// The optional methods to call.
    const CALLS: Calls = Calls::ALL;
    /// Creates the discipline of a port. The error says which values contradict each other.
    fn create(port: &Port, values: Values<'_>) -> Result<Self, String>;
    /// Called when a packet arrives that does not start at once; `waiting` does not have it.
    fn enqueue(&mut self, now_ps: u64, waiting: Waiting<'_>, packet: &Packet) -> Verdict;
    /// Returns the queue that sends its first packet. By default, the first queue that has packets.
    fn dequeue(&mut self, _now_ps: u64, waiting: Waiting<'_>) -> u32 {
        waiting.queues.iter().position(|queue| queue.packets > 0).unwrap_or(0) as u32
    }
    /// Called after a packet was admitted, until it returns `None`. Returns the queue whose last packet
    /// is dropped.
    fn evict(&mut self, _now_ps: u64, _waiting: Waiting<'_>) -> Option<u32> {
        None
    }
    /// Called when a packet leaves its queue; `waiting` does not have it any more. Returns whether the
    /// packet is marked, if it is ECN-capable.
    fn on_dequeue(&mut self, _now_ps: u64, _waiting: Waiting<'_>, _packet: &Packet) -> bool {
        false
    }
    /// Called when a packet finds the port idle, and is sent without waiting.
    fn on_pass(&mut self, _now_ps: u64, _packet: &Packet) {}
    /// Returns the totals of the declared counters, which never decrease.
    fn counters(&self) -> &[u64] {
        &[]
    }
}

/// What happens to an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It waits in this place.
    Admit(Place),
    /// It loses its payload, and waits in this place.
    Trim(Place),
    /// It is dropped.
    Drop,
}

/// The packets that wait at a port.
#[derive(Clone, Copy, Debug)]
pub struct Waiting<'a> {
    /// Packets in all queues.
    pub packets: u64,
    /// Bytes in all queues.
    pub bytes: u64,
    /// The queues.
    pub queues: &'a [Queue],
}

impl<'a> Waiting<'a> {
    /// Reads a view.
    ///
    /// # Safety
    ///
    /// `view` has this number of queues.
    unsafe fn of(view: *const View, queues: u32) -> Waiting<'a> {
        unsafe {
            let View { packets, bytes, queues: first } = *view;
            Waiting { packets, bytes, queues: std::slice::from_raw_parts(first, queues as usize) }
        }
    }
}

/// The optional methods that the simulator calls: those that a discipline implements. A method that is
/// not called costs nothing.
#[derive(Clone, Copy, Debug)]
pub struct Calls {
    /// [`Qdisc::dequeue`].
    pub dequeue: bool,
    /// [`Qdisc::evict`].
    pub evict: bool,
    /// [`Qdisc::on_dequeue`].
    pub on_dequeue: bool,
    /// [`Qdisc::on_pass`].
    pub on_pass: bool,
}

impl Calls {
    /// All optional methods.
    pub const ALL: Calls = Calls { dequeue: true, evict: true, on_dequeue: true, on_pass: true };
    /// No optional methods.
    pub const NONE: Calls = Calls { dequeue: false, evict: false, on_dequeue: false, on_pass: false };
}

/// The type of the table.
pub type TableOf = QdiscTable;

/// Returns the table of a discipline.
pub const fn table<Q: Qdisc>() -> QdiscTable {
    let calls = Q::CALLS;
    QdiscTable {
        head: Head::of::<QdiscTable, Q, ()>(Q::DECLARATION),
        queues: Q::QUEUES,
        marks: Q::MARKS as u32,
        create: Some(create::<Q>),
        enqueue: Some(enqueue::<Q>),
        dequeue: if calls.dequeue { Some(dequeue::<Q>) } else { None },
        evict: if calls.evict { Some(evict::<Q>) } else { None },
        on_dequeue: if calls.on_dequeue { Some(on_dequeue::<Q>) } else { None },
        on_pass: if calls.on_pass { Some(on_pass::<Q>) } else { None },
        count: if Q::DECLARATION.counters.is_empty() { None } else { Some(count::<Q>) },
    }
}

// Safety of the functions below: the simulator passes the block that `create` has filled, and
// structures that live as long as the call; a view has as many queues as the table says.

unsafe extern "C" fn create<Q: Qdisc>(_: *const c_void, own: *mut c_void, port: *const Port, values: *const Value) -> i32 {
    unsafe { author::create(Q::DECLARATION, own, values, |values| Q::create(&*port, values)) }
}
unsafe extern "C" fn enqueue<Q: Qdisc>(
    own: *mut c_void,
    now_ps: u64,
    view: *const View,
    packet: *const Packet,
    place: *mut Place,
) -> i32 {
    guard(|| unsafe {
        let (result, at) = match (*own.cast::<Q>()).enqueue(now_ps, Waiting::of(view, Q::QUEUES), &*packet) {
            Verdict::Admit(at) => (OK, at),
            Verdict::Trim(at) => (TRIM, at),
            Verdict::Drop => return DROP,
        };
        *place = at;
        result
    })
}
unsafe extern "C" fn dequeue<Q: Qdisc>(own: *mut c_void, now_ps: u64, view: *const View, queue: *mut u32) -> i32 {
    guard(|| unsafe {
        *queue = (*own.cast::<Q>()).dequeue(now_ps, Waiting::of(view, Q::QUEUES));
        OK
    })
}
unsafe extern "C" fn evict<Q: Qdisc>(own: *mut c_void, now_ps: u64, view: *const View, queue: *mut u32) -> i32 {
    guard(|| unsafe {
        match (*own.cast::<Q>()).evict(now_ps, Waiting::of(view, Q::QUEUES)) {
            Some(number) => {
                *queue = number;
                OK
            }
            None => NONE,
        }
    })
}
unsafe extern "C" fn on_dequeue<Q: Qdisc>(own: *mut c_void, now_ps: u64, view: *const View, packet: *const Packet) -> i32 {
    guard(|| unsafe {
        let marks = (*own.cast::<Q>()).on_dequeue(now_ps, Waiting::of(view, Q::QUEUES), &*packet);
        if marks { MARK } else { OK }
    })
}
unsafe extern "C" fn on_pass<Q: Qdisc>(own: *mut c_void, now_ps: u64, packet: *const Packet) -> i32 {
    guard(|| unsafe {
        (*own.cast::<Q>()).on_pass(now_ps, &*packet);
        OK
    })
}
unsafe extern "C" fn count<Q: Qdisc>(own: *const c_void) -> *const u64 {
    let counters = unsafe { &*own.cast::<Q>() }.counters();
    if counters.len() < Q::DECLARATION.counters.len() { std::ptr::null() } else { counters.as_ptr() }
}
