//! Room: routers. The table of functions, and the structures that they take.
//!
//! The simulator knows the shortest paths and which links are up. The plug-in chooses among the next hops
//! of a switch: for the path of a flow, or packet by packet.

pub mod author;
pub mod example;
pub mod machine;

use crate::abi::{Head, Own, Packet, RoomTable, StateBytes, Value};
use std::ffi::c_void;

pub use author::{Calls, Router};

/// The number of the room.
pub const ROUTER: u32 = 4;

/// Where a router decides: at no switch, it plans the paths of flows.
pub const AHEAD: u32 = 0;
/// Where a router decides: at every switch for packets from a flow's source. The paths of others are planned.
pub const THERE: u32 = 1;
/// Where a router decides: at every switch for all packets.
pub const BOTH_WAYS: u32 = 2;

/// The network of a router.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Number of nodes: hosts and switches.
    pub nodes: u64,
    /// Number of links. A cable has two.
    pub links: u64,
    /// Number of hosts.
    pub hosts: u64,
    /// Longest unloaded round trip.
    pub max_rtt_ps: u64,
    /// Seed of the run. With the number of a switch, it is the seed of the random numbers of a switch.
    pub seed: u64,
}

/// A choice to make.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The current time; [`NEVER`](crate::abi::NEVER) if a path is planned.
    pub now_ps: u64,
    /// The number of the node: a switch, or a host with several NICs.
    pub node: u64,
    /// The number of the flow; [`NEVER`](crate::abi::NEVER) if a path is planned.
    pub flow: u64,
    /// Source address of the packet.
    pub src: u32,
    /// Destination address of the packet.
    pub dst: u32,
    /// Source port of the packet.
    pub src_port: u32,
    /// Destination port of the packet.
    pub dst_port: u32,
    /// IP protocol of the packet.
    pub protocol: u32,
    /// CRC-32 (IEEE 802.3) of the five-tuple, as `ecmp` computes it.
    pub hash: u32,
}

/// A next hop.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// The number of the link.
    pub link: u64,
    /// Its rate.
    pub rate_bps: u64,
    /// Bytes that wait at its port, without the packet in transmission; 0 unless the table has `loads`, and if a
    /// path is planned.
    pub waiting: u64,
    /// Not zero if a packet is in transmission; 0 in the same cases.
    pub busy: u32,
    /// Zero.
    pub reserved: u32,
}

/// The table of a router. A machine of the room is the router of the network; a state belongs to a switch. On
/// several threads, each has its own machine, and the state of a switch is in one of them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RouterTable {
    /// The common part.
    pub head: Head,
    /// Where it decides: [`AHEAD`], [`THERE`] or [`BOTH_WAYS`].
    pub decides: u32,
    /// Not zero if it reads the loads of ports.
    pub loads: u32,
    /// Fills the block of the network's router. `values` has a value for each parameter. Fails if the values
    /// contradict each other.
    pub create: Option<
        unsafe extern "C" fn(context: *const c_void, own: *mut c_void, network: *const Network, values: *const Value) -> i32,
    >,
    /// Chooses among at least two next hops, which are in rising order of links and up, for the path of a flow.
    /// The choice must depend on the arguments only. Without it, paths are planned as by `ecmp`.
    pub choose: Option<unsafe extern "C" fn(Own, hop: *const Hop, *const Candidate, count: u64, index: *mut u64) -> i32>,
    /// Fills the state of a switch that decides for the first time.
    pub open: Option<unsafe extern "C" fn(Own, StateBytes, node: u64) -> i32>,
    /// Chooses among at least two next hops, which are in rising order of links and up, for a packet.
    pub decide: Option<
        unsafe extern "C" fn(
            Own,
            StateBytes,
            hop: *const Hop,
            packet: *const Packet,
            *const Candidate,
            count: u64,
            index: *mut u64,
        ) -> i32,
    >,
}

// Safety: a table is constant, and its functions may be called on any thread.
unsafe impl Sync for RouterTable {}
unsafe impl Send for RouterTable {}

// Safety: `repr(C)`, and the head comes first.
unsafe impl RoomTable for RouterTable {
    const ROOM: u32 = ROUTER;
    const STRUCTURES: &'static [(&'static str, usize)] = &[
        ("network", size_of::<Network>()),
        ("hop", size_of::<Hop>()),
        ("candidate", size_of::<Candidate>()),
        ("packet", size_of::<Packet>()),
    ];
    fn check(&self) -> Result<(), String> {
        if self.decides > BOTH_WAYS {
            return Err(format!("its `decides` is {}: 0 to {BOTH_WAYS} are allowed", self.decides));
        }
        if self.decides == AHEAD && self.choose.is_none() {
            return Err("it has no function `choose`, and plans paths".to_owned());
        }
        if self.decides != AHEAD && self.decide.is_none() {
            return Err("it has no function `decide`, and decides at switches".to_owned());
        }
        if self.create.is_none() && self.head.own_size > 0 {
            return Err("it has no function `create`, but a router of some size".to_owned());
        }
        if self.head.knows > 0 || self.head.counter_count > 0 {
            return Err("a router has no counters and knows no flows: its `counter_count` and `knows` must be 0".to_owned());
        }
        Ok(())
    }
}
