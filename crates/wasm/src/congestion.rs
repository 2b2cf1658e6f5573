//! Room: congestion control on the TCP machine. A machine is the controller of a host, a state belongs to a flow.

use crate::functions::{address, create, open, with_state};
use crate::guest::{Guest, region::OF_ROOM};
use crate::module::{CREATE, roles};
use crate::table::GuestRoom;
use plugin::abi::{FAILED, Flow, Head, OK, Own, StateBytes};
use plugin::congestion::{Ack, CongestionTable, Loss, NO_EFFECT, Window};
use std::ffi::c_void;
use std::ptr;

roles! {
    OPEN "open" "(i32 i32 i32) -> (i32)",
    ON_ACK "on_ack" "(i32 i32 i32 i32) -> (i32)",
    ON_LOSS "on_loss" "(i32 i32 i32 i32 i32) -> (i32)",
    ON_MARK "on_mark" "(i32 i32 i32 i32 i32) -> (i32)",
    BEFORE_LOSS "before_loss" "(i32 i32 i32 i64) -> (i32)",
    ON_SENT "on_sent" "(i32 i32 i64 i64) -> (i32)",
    MOST "most" "(i32 i32 i32) -> (i32)",
    NOT_BEFORE "not_before" "(i32 i32 i64 i32) -> (i32)",
    INHERIT "inherit" "(i32 i32 i32) -> (i32)",
    COUNT "count" "(i32 i32) -> (i32)",
}

/// The region of the simulator, as offsets: what every call needs is close to the first states.
mod region {
    pub const HOST: u32 = super::OF_ROOM;
    pub const FLOW: u32 = HOST + 40;
    pub const LOSS: u32 = FLOW + 32;
    pub const RESULT: u32 = LOSS + 16;
    /// From here on, cache lines of `on_ack`.
    pub const WINDOW: u32 = (RESULT + 8).next_multiple_of(64);
    pub const ACK: u32 = WINDOW + 16;
    pub const OWN: u32 = (ACK + size_of::<super::Ack>() as u32).next_multiple_of(16);
}

impl GuestRoom for CongestionTable {
    const ROLES: &'static [(&'static str, &'static str)] = ROLES;
    const OWN: u32 = region::OWN;
    const OPENS: bool = true;
    fn shares([_, shares]: [u32; 2]) -> bool {
        shares == 1
    }
    fn of(head: Head, [ecn, shares]: [u32; 2], has: impl Fn(usize) -> bool) -> CongestionTable {
        CongestionTable {
            head,
            ecn,
            shares,
            create: has(CREATE).then_some(create),
            open: has(OPEN).then_some(on_open),
            on_ack: has(ON_ACK).then_some(on_ack),
            on_loss: has(ON_LOSS).then_some(on_loss),
            on_mark: has(ON_MARK).then_some(on_mark),
            before_loss: has(BEFORE_LOSS).then_some(before_loss),
            on_sent: has(ON_SENT).then_some(on_sent),
            most: has(MOST).then_some(most),
            not_before: has(NOT_BEFORE).then_some(not_before),
            inherit: has(INHERIT).then_some(inherit),
            count: has(COUNT).then_some(count),
        }
    }
}

impl Guest {
    #[inline]
    fn on_ack(&mut self, [own, state]: [u64; 2], window: &mut Window, ack: &Ack) -> i32 {
        self.write(region::WINDOW, window);
        self.write_words(region::ACK, words_of(ack));
        let words = [own, state, self.at(region::WINDOW), self.at(region::ACK)];
        let status = self.call(ON_ACK, words, &[]);
        *window = self.read(region::WINDOW);
        status
    }
    fn on_mark(&mut self, [own, state]: [u64; 2], window: &Window, ack: &Ack, cwnd: &mut u64) -> i32 {
        self.write(region::WINDOW, window);
        self.write(region::ACK, ack);
        self.write(region::RESULT, cwnd);
        let [window, ack, result] = [region::WINDOW, region::ACK, region::RESULT].map(|offset| self.at(offset));
        let status = self.call(ON_MARK, [own, state, window, ack, result], &[NO_EFFECT]);
        *cwnd = self.read(region::RESULT);
        status
    }
    fn on_loss(&mut self, [own, state]: [u64; 2], window: &Window, loss: &Loss, ssthresh: &mut u64) -> i32 {
        self.write(region::WINDOW, window);
        self.write(region::LOSS, loss);
        self.write(region::RESULT, ssthresh);
        let [window, loss, result] = [region::WINDOW, region::LOSS, region::RESULT].map(|offset| self.at(offset));
        let status = self.call(ON_LOSS, [own, state, window, loss, result], &[]);
        *ssthresh = self.read(region::RESULT);
        status
    }
    #[inline]
    fn most(&mut self, [own, state]: [u64; 2], most: &mut u64) -> i32 {
        self.write(region::RESULT, most);
        let status = self.call(MOST, [own, state, self.at(region::RESULT)], &[]);
        *most = self.read(region::RESULT);
        status
    }
    #[inline]
    fn not_before(&mut self, [own, state]: [u64; 2], srtt_ps: u64, at_ps: &mut u64) -> i32 {
        self.write(region::RESULT, at_ps);
        let status = self.call(NOT_BEFORE, [own, state, srtt_ps, self.at(region::RESULT)], &[]);
        *at_ps = self.read(region::RESULT);
        status
    }
}

/// Returns the words of an ACK. Its flags are read one by one, as they were stored just before; see [`Guest::write`].
#[inline(always)]
fn words_of(ack: &Ack) -> [u64; size_of::<Ack>() / 8] {
    let Ack { now_ps, acked, slow_start, snd_una, snd_nxt, srtt_ps, rtt_ps, waited_ps, .. } = *ack;
    let flag = |flag: &bool| u64::from(unsafe { ptr::from_ref(flag).cast::<u8>().read_volatile() });
    let flags = flag(&ack.ece) | flag(&ack.window_limited) << 8 | flag(&ack.may_change) << 16;
    [now_ps, acked, slow_start, snd_una, snd_nxt, srtt_ps, rtt_ps, waited_ps, flags]
}

// Safety of the functions below: the simulator passes the blocks that `create` and `open` have
// filled, and structures that live as long as the call.

unsafe extern "C" fn on_open(own: Own, state: StateBytes, flow: *const Flow) -> i32 {
    let call = |guest: &mut Guest, [own, state]: [u64; 2]| {
        guest.write(region::FLOW, unsafe { &*flow });
        guest.call(OPEN, [own, state, guest.at(region::FLOW)], &[])
    };
    unsafe { open(own, state, call) }
}
unsafe extern "C" fn on_ack(_: Own, state: StateBytes, window: *mut Window, ack: *const Ack) -> i32 {
    unsafe { with_state(state, |guest, blocks| guest.on_ack(blocks, &mut *window, &*ack)) }
}
unsafe extern "C" fn on_loss(_: Own, state: StateBytes, window: *const Window, loss: *const Loss, ssthresh: *mut u64) -> i32 {
    unsafe { with_state(state, |guest, blocks| guest.on_loss(blocks, &*window, &*loss, &mut *ssthresh)) }
}
unsafe extern "C" fn on_mark(_: Own, state: StateBytes, window: *const Window, ack: *const Ack, cwnd: *mut u64) -> i32 {
    unsafe { with_state(state, |guest, blocks| guest.on_mark(blocks, &*window, &*ack, &mut *cwnd)) }
}
unsafe extern "C" fn before_loss(_: Own, state: StateBytes, cause: u32, now_ps: u64) -> i32 {
    unsafe { with_state(state, |guest, [own, state]| guest.call(BEFORE_LOSS, [own, state, cause.into(), now_ps], &[])) }
}
unsafe extern "C" fn on_sent(_: Own, state: StateBytes, now_ps: u64, sent: u64) -> i32 {
    unsafe { with_state(state, |guest, [own, state]| guest.call(ON_SENT, [own, state, now_ps, sent], &[])) }
}
unsafe extern "C" fn most(_: Own, state: *const c_void, most: *mut u64) -> i32 {
    unsafe { with_state(state, |guest, blocks| guest.most(blocks, &mut *most)) }
}
unsafe extern "C" fn not_before(_: Own, state: *const c_void, srtt_ps: u64, at_ps: *mut u64) -> i32 {
    unsafe { with_state(state, |guest, blocks| guest.not_before(blocks, srtt_ps, &mut *at_ps)) }
}
unsafe extern "C" fn inherit(_: Own, state: StateBytes, before: *const c_void) -> i32 {
    // A connection stays at its host, so that both flows have one controller.
    let before = unsafe { address(before) };
    unsafe { with_state(state, |guest, [own, state]| guest.call(INHERIT, [own, state, before.into()], &[])) }
}
unsafe extern "C" fn count(_: Own, state: *const c_void) -> *const u64 {
    let mut totals = ptr::null();
    unsafe {
        with_state(state, |guest, blocks| {
            totals = guest.totals(COUNT, blocks);
            if totals.is_null() { FAILED } else { OK }
        });
    }
    totals
}

#[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
mod tests {
    use super::*;
    use crate::table::tests::{check, layout};

    #[test]
    fn the_layout_is_that_of_the_header() {
        let mut checks = layout::<CongestionTable>("congestion", ["ecn", "shares"]);
        checks
            .push(format!("{} == sizeof(flowloom_host) + sizeof(flowloom_flow) + sizeof(flowloom_loss)", region::RESULT - OF_ROOM));
        check("congestion", &checks);
    }
}
