//! Room: routers. A machine is the router of a network, a state belongs to a switch.

use crate::functions::{create, open, with_machine, with_state};
use crate::guest::{Guest, region::OF_ROOM};
use crate::module::{CREATE, roles};
use crate::table::GuestRoom;
use plugin::abi::{FAILED, Head, OK, Own, Packet, StateBytes};
use plugin::router::{Candidate, Hop, Network, RouterTable};

roles! {
    CHOOSE "choose" "(i32 i32 i32 i64 i32) -> (i32)",
    OPEN "open" "(i32 i32 i64) -> (i32)",
    DECIDE "decide" "(i32 i32 i32 i32 i32 i64 i32) -> (i32)",
}

/// The region of the simulator, as offsets.
mod region {
    use super::{Hop, Network, Packet};
    pub const NETWORK: u32 = super::OF_ROOM;
    pub const HOP: u32 = NETWORK + size_of::<Network>() as u32;
    pub const PACKET: u32 = HOP + size_of::<Hop>() as u32;
    /// The index of a next hop.
    pub const RESULT: u32 = PACKET + size_of::<Packet>() as u32;
    pub const OWN: u32 = (RESULT + 8).next_multiple_of(16);
}

impl GuestRoom for RouterTable {
    const ROLES: &'static [(&'static str, &'static str)] = ROLES;
    const OWN: u32 = region::OWN;
    const OPENS: bool = true;
    fn of(head: Head, [decides, loads]: [u32; 2], has: impl Fn(usize) -> bool) -> RouterTable {
        RouterTable {
            head,
            decides,
            loads,
            create: has(CREATE).then_some(create),
            choose: has(CHOOSE).then_some(choose),
            // A module without the function has states, too.
            open: Some(on_open),
            decide: has(DECIDE).then_some(decide),
        }
    }
}

impl Guest {
    /// Writes a choice and its next hops. Returns the address of the next hops.
    fn show_hop(&mut self, hop: &Hop, candidates: &[Candidate], index: u64) -> Option<u64> {
        self.write(region::HOP, hop);
        self.write(region::RESULT, &index);
        self.write_list(candidates).map(u64::from)
    }
    fn chosen(&self, index: &mut u64, status: i32) -> i32 {
        *index = self.read(region::RESULT);
        status
    }
    fn choose(&mut self, hop: &Hop, candidates: &[Candidate], index: &mut u64) -> i32 {
        let Some(list) = self.show_hop(hop, candidates, *index) else { return FAILED };
        let [own, hop, result] = [region::OWN, region::HOP, region::RESULT].map(|offset| self.at(offset));
        let status = self.call(CHOOSE, [own, hop, list, candidates.len() as u64, result], &[]);
        self.chosen(index, status)
    }
    fn decide(&mut self, [own, state]: [u64; 2], hop: &Hop, packet: &Packet, candidates: &[Candidate], index: &mut u64) -> i32 {
        let Some(list) = self.show_hop(hop, candidates, *index) else { return FAILED };
        self.write(region::PACKET, packet);
        let [hop, packet, result] = [region::HOP, region::PACKET, region::RESULT].map(|offset| self.at(offset));
        let status = self.call(DECIDE, [own, state, hop, packet, list, candidates.len() as u64, result], &[]);
        self.chosen(index, status)
    }
}

// Safety of the functions below: the simulator passes the blocks that `create` and `open` have
// filled, and structures that live as long as the call.

unsafe extern "C" fn choose(own: Own, hop: *const Hop, candidates: *const Candidate, count: u64, index: *mut u64) -> i32 {
    let candidates = unsafe { std::slice::from_raw_parts(candidates, count as usize) };
    unsafe { with_machine(own, |guest| guest.choose(&*hop, candidates, &mut *index)) }
}
unsafe extern "C" fn on_open(own: Own, state: StateBytes, node: u64) -> i32 {
    let call = |guest: &mut Guest, [own, state]: [u64; 2]| {
        if guest.has(OPEN) { guest.call(OPEN, [own, state, node], &[]) } else { OK }
    };
    unsafe { open(own, state, call) }
}
unsafe extern "C" fn decide(
    _: Own,
    state: StateBytes,
    hop: *const Hop,
    packet: *const Packet,
    candidates: *const Candidate,
    count: u64,
    index: *mut u64,
) -> i32 {
    let candidates = unsafe { std::slice::from_raw_parts(candidates, count as usize) };
    unsafe { with_state(state, |guest, blocks| guest.decide(blocks, &*hop, &*packet, candidates, &mut *index)) }
}

#[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
mod tests {
    use super::*;
    use crate::table::tests::{check, layout};

    #[test]
    fn the_layout_is_that_of_the_header() {
        check("router", &layout::<RouterTable>("router", ["decides", "loads"]));
    }
}
