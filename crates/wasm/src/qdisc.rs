//! Room: queue disciplines. A machine is the discipline of a port; there are no states.

use crate::functions::{create, with_machine};
use crate::guest::{Guest, region::OF_ROOM};
use crate::module::{CREATE, roles};
use crate::table::GuestRoom;
use plugin::abi::{FAILED, Head, OK, Packet};
use plugin::qdisc::{DROP, MARK, MOST_QUEUES, NONE, Place, Port, QdiscTable, Queue, TRIM, View};
use std::ffi::c_void;
use std::ptr;

roles! {
    ENQUEUE "enqueue" "(i32 i64 i32 i32 i32) -> (i32)",
    DEQUEUE "dequeue" "(i32 i64 i32 i32) -> (i32)",
    EVICT "evict" "(i32 i64 i32 i32) -> (i32)",
    ON_DEQUEUE "on_dequeue" "(i32 i64 i32 i32) -> (i32)",
    ON_PASS "on_pass" "(i32 i64 i32) -> (i32)",
    COUNT "count" "(i32) -> (i32)",
}

/// The view of a port in an instance: `flowloom_view` of wasm32.
#[repr(C)]
#[derive(Clone, Copy)]
struct GuestView {
    packets: u64,
    bytes: u64,
    /// The address of the queues.
    queues: u32,
    padding: u32,
}

/// The region of the simulator, as offsets.
mod region {
    use super::{GuestView, MOST_QUEUES, Packet, Place, Port, Queue};
    pub const PORT: u32 = super::OF_ROOM;
    pub const PACKET: u32 = PORT + size_of::<Port>() as u32;
    pub const PLACE: u32 = PACKET + size_of::<Packet>() as u32;
    /// The number of a queue.
    pub const RESULT: u32 = PLACE + size_of::<Place>() as u32;
    pub const VIEW: u32 = RESULT + 8;
    pub const QUEUES: u32 = VIEW + size_of::<GuestView>() as u32;
    pub const OWN: u32 = (QUEUES + MOST_QUEUES * size_of::<Queue>() as u32).next_multiple_of(16);
}

impl GuestRoom for QdiscTable {
    const ROLES: &'static [(&'static str, &'static str)] = ROLES;
    const WITH_POINTERS: &'static [(&'static str, u32)] = &[("view", size_of::<GuestView>() as u32)];
    const OWN: u32 = region::OWN;
    const OPENS: bool = false;
    fn of(head: Head, [queues, marks]: [u32; 2], has: impl Fn(usize) -> bool) -> QdiscTable {
        QdiscTable {
            head,
            queues,
            marks,
            create: has(CREATE).then_some(create),
            enqueue: has(ENQUEUE).then_some(enqueue),
            dequeue: has(DEQUEUE).then_some(dequeue),
            evict: has(EVICT).then_some(evict),
            on_dequeue: has(ON_DEQUEUE).then_some(on_dequeue),
            on_pass: has(ON_PASS).then_some(on_pass),
            count: has(COUNT).then_some(count),
        }
    }
}

impl Guest {
    fn port(&self) -> u64 {
        self.at(region::OWN)
    }
    /// Writes the view of a port. Returns its address.
    fn show(&mut self, view: &View) -> u64 {
        let queues = self.at(region::QUEUES) as u32;
        self.write(region::VIEW, &GuestView { packets: view.packets, bytes: view.bytes, queues, padding: 0 });
        // Safety: a view has as many queues as the table says, which are at most `MOST_QUEUES`.
        let shown = unsafe { std::slice::from_raw_parts(view.queues, self.words()[0] as usize) };
        for (i, queue) in shown.iter().enumerate() {
            self.write(region::QUEUES + (i * size_of::<Queue>()) as u32, queue);
        }
        self.at(region::VIEW)
    }
    fn show_packet(&mut self, packet: &Packet) -> u64 {
        self.write(region::PACKET, packet);
        self.at(region::PACKET)
    }
    fn enqueue(&mut self, now_ps: u64, view: &View, packet: &Packet, place: &mut Place) -> i32 {
        let (view, packet) = (self.show(view), self.show_packet(packet));
        self.write(region::PLACE, place);
        let words = [self.port(), now_ps, view, packet, self.at(region::PLACE)];
        let status = self.call(ENQUEUE, words, &[DROP, TRIM]);
        *place = self.read(region::PLACE);
        status
    }
    /// Calls a function that chooses a queue.
    fn choose_queue(&mut self, role: usize, now_ps: u64, view: &View, queue: &mut u32, others: &[i32]) -> i32 {
        let view = self.show(view);
        self.write(region::RESULT, queue);
        let status = self.call(role, [self.port(), now_ps, view, self.at(region::RESULT)], others);
        *queue = self.read(region::RESULT);
        status
    }
}

// Safety of the functions below: the simulator passes the block that `create` has filled, and
// structures that live as long as the call.

unsafe extern "C" fn enqueue(own: *mut c_void, now_ps: u64, view: *const View, packet: *const Packet, place: *mut Place) -> i32 {
    unsafe { with_machine(own, |guest| guest.enqueue(now_ps, &*view, &*packet, &mut *place)) }
}
unsafe extern "C" fn dequeue(own: *mut c_void, now_ps: u64, view: *const View, queue: *mut u32) -> i32 {
    unsafe { with_machine(own, |guest| guest.choose_queue(DEQUEUE, now_ps, &*view, &mut *queue, &[])) }
}
unsafe extern "C" fn evict(own: *mut c_void, now_ps: u64, view: *const View, queue: *mut u32) -> i32 {
    unsafe { with_machine(own, |guest| guest.choose_queue(EVICT, now_ps, &*view, &mut *queue, &[NONE])) }
}
unsafe extern "C" fn on_dequeue(own: *mut c_void, now_ps: u64, view: *const View, packet: *const Packet) -> i32 {
    let call = |guest: &mut Guest| {
        let (view, packet) = unsafe { (guest.show(&*view), guest.show_packet(&*packet)) };
        guest.call(ON_DEQUEUE, [guest.port(), now_ps, view, packet], &[MARK])
    };
    unsafe { with_machine(own, call) }
}
unsafe extern "C" fn on_pass(own: *mut c_void, now_ps: u64, packet: *const Packet) -> i32 {
    let call = |guest: &mut Guest| {
        let packet = guest.show_packet(unsafe { &*packet });
        guest.call(ON_PASS, [guest.port(), now_ps, packet], &[])
    };
    unsafe { with_machine(own, call) }
}
unsafe extern "C" fn count(own: *const c_void) -> *const u64 {
    let mut totals = ptr::null();
    let call = |guest: &mut Guest| {
        totals = guest.totals(COUNT, [guest.port()]);
        if totals.is_null() { FAILED } else { OK }
    };
    unsafe { with_machine(own, call) };
    totals
}

#[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
mod tests {
    use super::*;
    use crate::table::tests::{check, layout};

    #[test]
    fn the_layout_is_that_of_the_header() {
        let mut checks = layout::<QdiscTable>("qdisc", ["queues", "marks"]);
        checks.push("offsetof(flowloom_view, queues) == 16".to_owned());
        check("qdisc", &checks);
    }
}
