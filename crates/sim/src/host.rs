//! A host: its transport, its timers, the flows it is to open, and the NIC that pulls packets from them.

use base::{Dur, FlowId, LinkId, Rng, Time};
use proto::transport::{AnyTransport, HostIo};

/// One host. What every event needs comes first, in few lines of the cache.
#[repr(C, align(64))]
pub struct Host {
    /// When everything that the NIC holds will have been sent: its backlog is what remains of that.
    pub drained_at: Time,
    /// The transport is polled while the backlog is at most this.
    pub low_water: Dur,
    /// When it opens the next flow.
    next_start: Time,
    /// The NIC.
    pub nic: LinkId,
    /// Timers and control packets.
    pub io: HostIo,
    /// The transport's machine.
    pub transport: AnyTransport,
    /// Random numbers of its protocol.
    pub rng: Rng,
    /// The flows it opens, the next one last.
    starts: Vec<(Time, FlowId)>,
}

impl Host {
    /// A host that will open `starts`, which must be sorted.
    pub fn new(transport: AnyTransport, rng: Rng, nic: LinkId, low_water: Dur, mut starts: Vec<(Time, FlowId)>) -> Host {
        debug_assert!(starts.is_sorted());
        starts.reverse();
        let next_start = Host::next_of(&starts);
        Host { drained_at: Time::ZERO, low_water, next_start, nic, io: HostIo::default(), transport, rng, starts }
    }
    fn next_of(starts: &[(Time, FlowId)]) -> Time {
        starts.last().map_or(Time::MAX, |(at, _)| *at)
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
    /// Whether the NIC may take another packet.
    #[inline]
    pub fn has_room(&self, now: Time) -> bool {
        self.drained_at.0 <= now.0.saturating_add(self.low_water.0)
    }
    /// When the host must wake next, given whether the NIC's backlog stopped it from sending.
    #[inline]
    pub fn next_wake(&self, blocked: bool) -> Time {
        let room = if blocked { self.drained_at.before(self.low_water) } else { Time::MAX };
        self.next_start.min(self.io.timers.next_wake()).min(room)
    }
}
