//! Room: policies. A machine is the policy of a host; states are those that the simulator has for its flows.

use crate::calls::{GuestContext, HostFunction, connect, fills, plain, region, word};
use crate::functions::{create_with, with_machine};
use crate::interface::I32;
use crate::module::{CREATE, roles};
use crate::table::GuestRoom;
use plugin::abi::{Head, Packet, Value};
use plugin::host::{Endpoint, Sample, SeenFlow};
use plugin::policy::{PolicyCalls, PolicyContext, PolicyTable};
use std::ffi::c_void;

roles! {
    ON_SEND "on_send" "(i32 i32 i32) -> (i32)",
    ON_RECEIVE "on_receive" "(i32 i32 i32) -> (i32)",
    ON_OPEN "on_open" "(i32 i32 i32) -> (i32)",
    ON_TIMEOUT "on_timeout" "(i32 i32 i32) -> (i32)",
    ON_FINISH "on_finish" "(i32 i32 i32) -> (i32)",
    ON_CLOSE "on_close" "(i32 i32 i32) -> (i32)",
    ON_TIMER "on_timer" "(i32 i32 i32 i32) -> (i32)",
}

/// The functions of the simulator, in the order of `flowloom_policy_calls`.
const CALLS: [HostFunction<PolicyCalls>; 9] = [
    plain!(arm: 1 u32, 2 u32, 3 u64 => I32),
    plain!(disarm: 1 u32, 2 u32 => I32),
    HostFunction {
        name: "terminate",
        takes: &[I32],
        gives: I32,
        run: |c| {
            c.queues()?;
            Ok(word(unsafe { (c.calls.terminate)(c.handle, c.u32(1)) }))
        },
    },
    plain!(finished: 1 u32 => I32),
    fills!(sample: Sample::default()),
    plain!(count: 1 u32, 2 u32, 3 u64 => I32),
    plain!(random: => I64),
    fills!(view: SeenFlow::NONE),
    HostFunction { name: "state", takes: &[I32], gives: I32, run: |c| c.state(unsafe { (c.calls.state)(c.handle, c.u32(1)) }) },
];

impl GuestRoom for PolicyTable {
    const ROLES: &'static [(&'static str, &'static str)] = ROLES;
    const WITH_POINTERS: &'static [(&'static str, u32)] =
        &[("policy_context", size_of::<GuestContext>() as u32), ("policy_calls", 4 * CALLS.len() as u32)];
    const OWN: u32 = region::OWN;
    const OPENS: bool = false;
    fn of(head: Head, [uses, reserved]: [u32; 2], has: impl Fn(usize) -> bool) -> PolicyTable {
        PolicyTable {
            head,
            uses,
            reserved,
            create: has(CREATE).then_some(create),
            on_send: has(ON_SEND).then_some(on_send),
            on_receive: has(ON_RECEIVE).then_some(on_receive),
            on_open: has(ON_OPEN).then_some(of_flow::<ON_OPEN>),
            on_timeout: has(ON_TIMEOUT).then_some(of_flow::<ON_TIMEOUT>),
            on_finish: has(ON_FINISH).then_some(of_flow::<ON_FINISH>),
            on_close: has(ON_CLOSE).then_some(of_flow::<ON_CLOSE>),
            on_timer: has(ON_TIMER).then_some(on_timer),
        }
    }
}

// Safety of the functions below: the simulator passes the block that `create` has filled, and
// structures that live as long as the call.

unsafe extern "C" fn create(context: *const c_void, own: *mut c_void, endpoint: *const Endpoint, values: *const Value) -> i32 {
    unsafe { create_with(context, own, endpoint, values, |guest| connect(guest, &CALLS)) }
}
unsafe extern "C" fn on_send(own: *mut c_void, cx: *const PolicyContext, packet: *mut Packet) -> i32 {
    unsafe { with_machine(own, |guest| guest.call_with_packet(&*cx, ON_SEND, &mut *packet, &[])) }
}
unsafe extern "C" fn on_receive(own: *mut c_void, cx: *const PolicyContext, packet: *const Packet) -> i32 {
    unsafe { with_machine(own, |guest| guest.call_with_packet(&*cx, ON_RECEIVE, &mut { *packet }, &[])) }
}
unsafe extern "C" fn of_flow<const ROLE: usize>(own: *mut c_void, cx: *const PolicyContext, flow: u32) -> i32 {
    unsafe { with_machine(own, |guest| guest.call_in(&*cx, ROLE, [flow.into()], &[])) }
}
unsafe extern "C" fn on_timer(own: *mut c_void, cx: *const PolicyContext, kind: u32, flow: u32) -> i32 {
    unsafe { with_machine(own, |guest| guest.call_in(&*cx, ON_TIMER, [kind.into(), flow.into()], &[])) }
}

#[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
mod tests {
    use super::*;
    use crate::calls::tests::layout_of_calls;
    use crate::table::tests::{check, layout};

    #[test]
    fn the_layout_is_that_of_the_header() {
        let mut checks = layout::<PolicyTable>("policy", ["uses", "reserved"]);
        checks.extend(layout_of_calls("policy_context", "policy_calls", &CALLS));
        check("policy", &checks);
    }
}
