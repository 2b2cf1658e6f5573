//! A host: its transport, its timers, the flows that it will open, and its NICs, which pull packets from the transport.

use base::{Dur, FlowId, HostId, LinkId, Rng, Slab, Time};
use proto::host::{FlowTable, HostIo};
use proto::packet::Ext;
use proto::transport::AnyTransport;
use proto::{Cx, Flow};

/// A NIC of a host.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct HostNic {
    /// When all packets in the NIC will have been sent. The backlog of the NIC is the time from now to then.
    pub drained_at: Time,
    /// The backlog up to which the transport is polled.
    pub low_water: Dur,
    /// The link of the NIC.
    pub link: LinkId,
    /// Whether the NIC's queue discipline is shaped. It may hold packets back, so the backlog does not follow
    /// from the packets sent.
    pub shaped: bool,
}

impl HostNic {
    /// Returns whether the NIC may take another packet.
    #[inline]
    pub fn has_room(&self, now: Time) -> bool {
        self.drained_at.0 <= now.0.saturating_add(self.low_water.0)
    }
    /// Returns when the NIC's backlog reaches the low-water mark, if nothing holds its packets back.
    #[inline]
    pub fn room_at(&self) -> Time {
        self.drained_at.before(self.low_water)
    }
}

/// A host. The fields that every event needs come first, in few cache lines.
#[repr(C, align(64))]
pub struct Host {
    /// The first or only NIC.
    pub nic: HostNic,
    /// When the host opens its next flow.
    next_start: Time,
    /// Timers and control packets.
    pub io: HostIo,
    /// The transport.
    pub transport: AnyTransport,
    /// Random numbers of the transport.
    pub rng: Rng,
    /// The flows that the host will open, the next one last.
    starts: Vec<(Time, FlowId)>,
    /// The other NICs, by port.
    pub others: Vec<HostNic>,
}

impl Host {
    /// Creates a host with these NICs, by port, that will open the flows in `starts`, which must be sorted.
    pub fn new(transport: AnyTransport, rng: Rng, mut nics: Vec<HostNic>, mut starts: Vec<(Time, FlowId)>) -> Host {
        debug_assert!(starts.is_sorted());
        starts.reverse();
        let next_start = Host::next_of(&starts);
        let nic = nics.remove(0);
        Host { nic, next_start, io: HostIo::default(), transport, rng, starts, others: nics }
    }
    /// Returns all NICs, by port.
    pub fn nics(&self) -> impl Iterator<Item = &HostNic> {
        std::iter::once(&self.nic).chain(&self.others)
    }
    /// Returns the NIC of a link; `None` if the link leaves another node.
    pub fn nic_mut(&mut self, link: LinkId) -> Option<&mut HostNic> {
        if self.nic.link == link { Some(&mut self.nic) } else { self.others.iter_mut().find(|nic| nic.link == link) }
    }
    /// Returns the host's transport, and the context in which it handles an event.
    #[inline(always)]
    pub fn at<'a>(
        &'a mut self,
        now: Time,
        host: HostId,
        flows: &'a [Flow],
        ext: &'a mut Slab<Ext>,
        table: &'a mut FlowTable,
    ) -> (&'a mut AnyTransport, Cx<'a>) {
        (&mut self.transport, Cx { now, host, flows, ext, rng: &mut self.rng, io: &mut self.io, table })
    }
    fn next_of(starts: &[(Time, FlowId)]) -> Time {
        starts.last().map_or(Time::MAX, |(at, _)| *at)
    }
    /// Adds a flow that the host will open at a time.
    pub fn add_start(&mut self, at: Time, flow: FlowId) {
        let place = self.starts.partition_point(|start| *start > (at, flow));
        self.starts.insert(place, (at, flow));
        self.next_start = Host::next_of(&self.starts);
    }
    /// Removes a start that was added.
    pub fn remove_start(&mut self, at: Time, flow: FlowId) {
        let place = self.starts.partition_point(|start| *start > (at, flow));
        debug_assert_eq!(self.starts.get(place), Some(&(at, flow)));
        self.starts.remove(place);
        self.next_start = Host::next_of(&self.starts);
    }
    /// Takes the next flow that is due at `now`.
    #[inline]
    pub fn pop_start(&mut self, now: Time) -> Option<FlowId> {
        if self.next_start > now {
            return None;
        }
        let (_, flow) = self.starts.pop()?;
        self.next_start = Host::next_of(&self.starts);
        Some(flow)
    }
    /// Returns when the host must wake next, if a NIC has room again at `room`.
    #[inline]
    pub fn next_wake(&self, room: Time) -> Time {
        self.next_start.min(self.io.timers.next_wake()).min(room)
    }
}
