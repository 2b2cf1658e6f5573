//! A host: its transport, its timers, the flows it is to open, and the NIC that pulls packets from them.

use base::{Dur, FlowId, LinkId, Rng, Time};
use proto::transport::{AnyTransport, HostIo};

/// One host.
pub struct Host {
    /// The transport's machine.
    pub transport: AnyTransport,
    /// Timers and control packets.
    pub io: HostIo,
    /// Random numbers of its protocol.
    pub rng: Rng,
    /// The NIC.
    pub nic: LinkId,
    /// When everything that the NIC holds will have been sent: its backlog is what remains of that.
    pub drained_at: Time,
    /// The transport is polled while the backlog is at most this.
    pub low_water: Dur,
    /// The flows it opens, by start; and how many it has opened.
    starts: Vec<(Time, FlowId)>,
    started: usize,
}

impl Host {
    /// A host that will open `starts`, which must be sorted.
    pub fn new(transport: AnyTransport, rng: Rng, nic: LinkId, low_water: Dur, starts: Vec<(Time, FlowId)>) -> Host {
        debug_assert!(starts.is_sorted());
        Host { transport, io: HostIo::default(), rng, nic, drained_at: Time::ZERO, low_water, starts, started: 0 }
    }
    /// Takes the next flow that is due at `now`.
    pub fn pop_start(&mut self, now: Time) -> Option<FlowId> {
        let &(at, flow) = self.starts.get(self.started)?;
        (at <= now).then(|| {
            self.started += 1;
            flow
        })
    }
    /// Whether the NIC may take another packet.
    #[inline]
    pub fn has_room(&self, now: Time) -> bool {
        self.drained_at.0 <= now.0.saturating_add(self.low_water.0)
    }
    /// When the host must wake next, given whether the NIC's backlog stopped it from sending.
    #[inline]
    pub fn next_wake(&self, blocked: bool) -> Time {
        let start = self.starts.get(self.started).map_or(Time::MAX, |(at, _)| *at);
        let room = if blocked { self.drained_at.before(self.low_water) } else { Time::MAX };
        start.min(self.io.timers.next_wake()).min(room)
    }
}
