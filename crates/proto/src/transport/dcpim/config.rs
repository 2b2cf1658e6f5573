//! The configuration that follows from parameters and network.

use super::Params;
use crate::contract::Env;
use base::{Dur, Time};

/// The configuration of a host.
#[derive(Clone, Debug)]
pub struct Config {
    /// Rounds of a matching.
    pub rounds: u64,
    /// Channels of a host.
    pub channels: u8,
    /// Rounds of a matching in which the shortest flows go first.
    pub shortest_rounds: u64,
    /// Length of a round.
    pub round: Dur,
    /// Packets that a channel carries in a phase.
    pub channel_packets: u64,
    /// Most packets of a flow that is sent at once.
    pub short: u64,
    /// Largest number of unanswered tokens of a flow that has all channels of its receiver.
    pub window: u64,
    /// Time from the last token after which unanswered tokens count as answered.
    pub window_timeout: Dur,
    /// Time from the last token that a flow needs until tokens for missing packets.
    pub resend: Dur,
    /// Time from the first NOTIFY to the second.
    pub notify_after: Dur,
    /// Time without packets of the receiver after which a sender that has sent everything announces the flow again.
    pub idle: Dur,
    /// Time between two tokens of a host that uses all its channels.
    pub gap: Dur,
    /// How long tokens live beyond the end of their phase.
    pub grace: Dur,
    /// Payload of a full packet.
    pub mss: u64,
    /// Length of a packet without payload.
    pub header: u16,
}

impl Config {
    /// Derives the configuration from parameters and network.
    pub fn new(params: &Params, env: &Env<'_>) -> Config {
        let gap = env.host_rate.gap(env.mtu_bytes.into());
        // leafSpineTopology.cpp, set_up_parameter: full packets in both directions, rounded up to packets.
        let bdp = env.nic_rate.bytes_in(env.full_rtt).div_ceil(env.mtu_bytes.into());
        let bdp = u32::try_from(bdp).unwrap_or(u32::MAX).max(1);
        let (rounds, round) = (u64::from(params.rounds), env.max_rtt.times(params.beta).max(Dur(1)));
        let channels = params.channels as u8;
        Config {
            rounds,
            channels,
            shortest_rounds: params.shortest_rounds.into(),
            round,
            // params.cpp: pim_link_pkts.
            channel_packets: ((round * rounds).0 / gap.0 / u64::from(channels)).max(1),
            short: env.auto("short", params.short, bdp).into(),
            window: env.auto("window", params.window, bdp).into(),
            window_timeout: env.auto("window_timeout", params.window_timeout, env.full_rtt + env.full_rtt / 10),
            resend: env.auto("resend", params.resend, env.full_rtt),
            notify_after: env.auto("notify_after", params.notify_after, env.max_rtt * 3),
            idle: env.auto("idle", params.idle, env.timeout(Dur::from_ms(10))),
            gap,
            grace: env.max_rtt / 2 + gap * u64::from(channels),
            mss: env.mss().into(),
            header: env.header_bytes,
        }
    }
    /// Returns the number of packets of a flow.
    pub fn packets(&self, size_bytes: u64) -> u64 {
        size_bytes.div_ceil(self.mss)
    }
    /// Returns the number of packets of a flow that are sent at once.
    pub fn unscheduled(&self, packets: u64) -> u64 {
        if packets <= self.short { packets } else { 0 }
    }
    /// Returns when a round begins.
    pub fn start(&self, round: u64) -> Time {
        Time::ZERO + self.round * round
    }
    /// Returns the round at `now`.
    pub fn round_at(&self, now: Time) -> u64 {
        now.0 / self.round.0
    }
    /// Returns whether the shortest flows go first in a round.
    pub fn shortest_first(&self, round: u64) -> bool {
        round % self.rounds < self.shortest_rounds
    }
    /// Returns when the tokens of a phase expire.
    pub fn expiry(&self, phase: u64) -> Time {
        self.start((phase + 1).saturating_mul(self.rounds)).after(self.grace)
    }
}
