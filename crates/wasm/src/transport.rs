//! Room: transports. A machine is a host; states are those that the simulator has for its flows.

use crate::calls::{GuestContext, HostFunction, connect, fills, plain, region, word};
use crate::functions::{address, create_with, with_machine};
use crate::interface::{I32, I64};
use crate::module::{CREATE, roles};
use crate::table::GuestRoom;
use plugin::abi::{Head, Own, Packet, Value};
use plugin::transport::{Context, Delivery, Endpoint, NOTHING, Sample, SeenFlow, TransportCalls, TransportTable};
use std::ffi::c_void;

roles! {
    ON_FLOW "on_flow" "(i32 i32 i32) -> (i32)",
    ON_PACKET "on_packet" "(i32 i32 i32) -> (i32)",
    ON_TIMER "on_timer" "(i32 i32 i32 i32) -> (i32)",
    POLL "poll" "(i32 i32 i32) -> (i32)",
    GIVE_UP "give_up" "(i32 i32 i32) -> (i32)",
    SAMPLE "sample" "(i32 i32 i32 i32) -> (i32)",
}

/// The functions of the simulator, in the order of `flowloom_transport_calls`.
const CALLS: [HostFunction<TransportCalls>; 14] = [
    plain!(arm: 1 u32, 2 u32, 3 u64 => I32),
    plain!(disarm: 1 u32, 2 u32 => I32),
    HostFunction {
        name: "control",
        takes: &[I32],
        gives: I32,
        run: |c| {
            c.queues()?;
            let packet = c.read::<Packet>(1)?;
            Ok(word(unsafe { (c.calls.control)(c.handle, &packet) }))
        },
    },
    HostFunction {
        name: "deliver",
        takes: &[I32, I64, I64, I32],
        gives: I32,
        run: |c| {
            let deliver = |to: *mut Delivery| unsafe { (c.calls.deliver)(c.handle, c.u32(1), c.u64(2), c.u64(3), to) };
            if c.u32(4) == 0 { Ok(word(deliver(std::ptr::null_mut()))) } else { c.fill(4, Delivery::default(), deliver) }
        },
    },
    plain!(finished: 1 u32 => I32),
    plain!(close: 1 u32 => I32),
    plain!(terminate: 1 u32 => I32),
    plain!(timeout: 1 u32 => I32),
    plain!(fast_retransmit: 1 u32 => I32),
    plain!(count: 1 u32, 2 u32, 3 u64 => I32),
    plain!(random: => I64),
    fills!(view: SeenFlow::NONE),
    plain!(payload: 1 u32, 2 u64 => I64),
    HostFunction { name: "state", takes: &[I32], gives: I32, run: |c| c.state(unsafe { (c.calls.state)(c.handle, c.u32(1)) }) },
];

impl GuestRoom for TransportTable {
    const ROLES: &'static [(&'static str, &'static str)] = ROLES;
    const WITH_POINTERS: &'static [(&'static str, u32)] =
        &[("context", size_of::<GuestContext>() as u32), ("transport_calls", 4 * CALLS.len() as u32)];
    const OWN: u32 = region::OWN;
    const OPENS: bool = false;
    fn of(head: Head, [uses, reserved]: [u32; 2], has: impl Fn(usize) -> bool) -> TransportTable {
        TransportTable {
            head,
            uses,
            reserved,
            create: has(CREATE).then_some(create),
            on_flow: has(ON_FLOW).then_some(of_flow::<ON_FLOW>),
            on_packet: has(ON_PACKET).then_some(on_packet),
            on_timer: has(ON_TIMER).then_some(on_timer),
            poll: has(POLL).then_some(poll),
            give_up: has(GIVE_UP).then_some(of_flow::<GIVE_UP>),
            sample: has(SAMPLE).then_some(sample),
        }
    }
}

// Safety of the functions below: the simulator passes the block that `create` has filled, and
// structures that live as long as the call.

unsafe extern "C" fn create(context: *const c_void, own: *mut c_void, endpoint: *const Endpoint, values: *const Value) -> i32 {
    unsafe { create_with(context, own, endpoint, values, |guest| connect(guest, &CALLS)) }
}
unsafe extern "C" fn of_flow<const ROLE: usize>(own: *mut c_void, cx: *const Context, flow: u32) -> i32 {
    unsafe { with_machine(own, |guest| guest.call_in(&*cx, ROLE, [flow.into()], &[])) }
}
unsafe extern "C" fn on_packet(own: *mut c_void, cx: *const Context, packet: *const Packet) -> i32 {
    unsafe { with_machine(own, |guest| guest.call_with_packet(&*cx, ON_PACKET, &mut { *packet }, &[])) }
}
unsafe extern "C" fn on_timer(own: *mut c_void, cx: *const Context, kind: u32, flow: u32) -> i32 {
    unsafe { with_machine(own, |guest| guest.call_in(&*cx, ON_TIMER, [kind.into(), flow.into()], &[])) }
}
unsafe extern "C" fn poll(own: *mut c_void, cx: *const Context, packet: *mut Packet) -> i32 {
    unsafe { with_machine(own, |guest| guest.call_with_packet(&*cx, POLL, &mut *packet, &[NOTHING])) }
}
unsafe extern "C" fn sample(own: Own, state: *const c_void, flow: u32, sample: *mut Sample) -> i32 {
    let state = if state.is_null() { 0 } else { unsafe { address(state) } };
    let sample = unsafe { &mut *sample };
    let call = |guest: &mut crate::guest::Guest| {
        guest.write(region::SAMPLE, sample);
        let [own, to] = [region::OWN, region::SAMPLE].map(|offset| guest.at(offset));
        let status = guest.call(SAMPLE, [own, state.into(), flow.into(), to], &[]);
        *sample = guest.read(region::SAMPLE);
        status
    };
    unsafe { with_machine(own, call) }
}

#[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
mod tests {
    use super::*;
    use crate::calls::tests::layout_of_calls;
    use crate::table::tests::{check, layout};

    #[test]
    fn the_layout_is_that_of_the_header() {
        let mut checks = layout::<TransportTable>("transport", ["uses", "reserved"]);
        checks.extend(layout_of_calls("context", "transport_calls", &CALLS));
        check("transport", &checks);
    }
}
