//! The configuration that follows from parameters and network.

use super::{Free, Params};
use crate::contract::Env;
use base::Dur;

/// The authors' number of free tokens per flow, and of unanswered tokens.
const PACKETS: u32 = 8;

/// The configuration of a host.
#[derive(Clone, Debug)]
pub struct Config {
    /// Largest number of free tokens of a flow.
    pub free_tokens: u64,
    /// Which flows begin with free tokens.
    pub free: Free,
    /// Whether each free token uses up a turn of the receiving host's tokens.
    pub hold: bool,
    /// How long a token may be used after its arrival.
    pub lifetime: Dur,
    /// Largest number of unanswered tokens of a flow.
    pub window: u64,
    /// Time until a flow with more unanswered tokens gets the next token.
    pub downgrade: Dur,
    /// Time from the last token that a flow needs until tokens for missing packets.
    pub resend: Dur,
    /// Time from the first RTS to the second.
    pub rts: Dur,
    /// Time without packets of a flow after which a receiver stops its tokens, and a sender repeats
    /// its RTS.
    pub idle: Dur,
    /// Whether senders report on long flows.
    pub notify: bool,
    /// The time of a full packet on the host's link: T.
    pub packet: Dur,
    /// Time between two tokens of a host: like T, but at the rate of all NICs of the host.
    pub token_gap: Dur,
    /// Payload of a full packet.
    pub mss: u64,
    /// Length of a packet without payload.
    pub header: u16,
}

impl Config {
    /// Derives the configuration from parameters and network.
    pub fn new(params: &Params, env: &Env<'_>) -> Config {
        let packet = env.nic_rate.tx_time(env.mtu_bytes.into());
        let bdp = u32::try_from(env.bdp_bytes().div_ceil(env.mtu_bytes.into())).unwrap_or(u32::MAX).max(PACKETS);
        let lifetime = env.auto("lifetime", params.lifetime, packet + packet / 2);
        Config {
            free_tokens: env.auto("free_tokens", params.free_tokens, bdp).into(),
            free: params.free,
            hold: params.hold,
            lifetime,
            window: env.auto("window", params.window, bdp).into(),
            downgrade: env.auto("downgrade", params.downgrade, env.max_rtt * 3),
            resend: env.auto("resend", params.resend, (packet * 9).max(env.max_rtt + lifetime)),
            rts: env.auto("rts", params.rts, env.max_rtt * 3),
            idle: env.auto("idle", params.idle, env.timeout(Dur::from_ms(10))),
            notify: params.notify,
            packet,
            token_gap: env.host_rate.tx_time(env.mtu_bytes.into()),
            mss: env.mss().into(),
            header: env.header_bytes,
        }
    }
    /// Returns the number of packets of a flow.
    pub fn packets(&self, size_bytes: u64) -> u64 {
        size_bytes.div_ceil(self.mss)
    }
    /// Returns the number of free tokens of a flow of `packets` packets.
    pub fn free_tokens(&self, packets: u64) -> u64 {
        match self.free {
            Free::Short if !self.is_short(packets) => 0,
            Free::All | Free::Short => packets.min(self.free_tokens),
        }
    }
    /// Returns whether a flow of `packets` packets needs no other tokens.
    pub fn is_short(&self, packets: u64) -> bool {
        packets <= self.free_tokens
    }
}
