//! The configuration that follows from parameters and network.

use super::{Classes, GrantOrder, Params};
use crate::contract::Env;
use base::params::Auto;
use base::{Bytes, Dur, Fraction, Rate};

/// The configuration of a host.
#[derive(Clone, Debug)]
pub struct Config {
    /// A bandwidth-delay product of the host in payload bytes.
    pub bdp: u64,
    /// B.
    pub bucket: u64,
    /// The largest bucket of a sender.
    pub sender_bucket: u64,
    /// SThr.
    pub sender_threshold: u64,
    /// UnschT.
    pub unsched_threshold: u64,
    /// Bytes that a message up to UnschT sends without credit.
    pub unsched_bytes: u64,
    /// Weight of one observation in alpha.
    pub g: Fraction,
    /// Initial value of alpha.
    pub alpha: Fraction,
    /// The smallest window for `csn`.
    pub min_window_csn: u64,
    /// The smallest window for CE.
    pub min_window_ecn: u64,
    /// The message to which the receiver grants next.
    pub policy: GrantOrder,
    /// Share of packets for receivers in turn.
    pub fair_share: Fraction,
    /// Time between two GRANTs.
    pub gap: Dur,
    /// Class of packets that use credit.
    pub scheduled_class: u8,
    /// Time without data after which missing bytes are requested again.
    pub resend_after: Dur,
    /// Time without an answer after which the sender requests credit again.
    pub ask_after: Dur,
    /// Payload of a full packet.
    pub mss: u64,
    /// Length of a packet without payload.
    pub header: u16,
}

impl Config {
    /// Derives the configuration from parameters and network.
    pub fn new(params: &Params, env: &Env<'_>) -> Config {
        let mss = u64::from(env.mss());
        // As many full packets as keep a link of this rate busy for a round trip: with fewer, credit that comes back
        // leaves gaps.
        let bdp = |rate: Rate| rate.bytes_in(env.max_rtt).div_ceil(env.mtu_bytes.into()).max(1) * mss;
        let (host, flow) = (bdp(env.host_rate), bdp(env.nic_rate));
        let bytes = |key, given: Auto<Bytes>, auto: u64| env.auto(key, given, Bytes(auto)).0;
        let sender_bucket = bytes("sender_bucket", params.sender_bucket, host);
        let share_of_bucket =
            |share: Fraction| u128::from(sender_bucket) * u128::from(share.ppb()) / u128::from(Fraction::ONE.ppb());
        // Credit is granted in full packets: with a smaller window nothing would be granted.
        let least = |share: Fraction| (share_of_bucket(share) as u64).max(mss);
        let resend_after = env.auto("resend_after", params.resend_after, Dur::from_ms(5).max(env.max_rtt * 10));
        Config {
            bdp: host,
            bucket: bytes("bucket", params.bucket, host + host / 2),
            sender_bucket,
            sender_threshold: bytes("sender_threshold", params.sender_threshold, host.div_ceil(2)),
            unsched_threshold: bytes("unsched_threshold", params.unsched_threshold, flow),
            unsched_bytes: bytes("unsched_bytes", params.unsched_bytes, flow),
            g: params.g,
            alpha: params.alpha,
            min_window_csn: least(params.min_window_csn),
            min_window_ecn: least(params.min_window_ecn),
            policy: params.policy,
            fair_share: params.fair_share,
            gap: env.host_rate.times(params.pace).gap(env.mtu_bytes.into()),
            scheduled_class: u8::from(params.classes == Classes::Two),
            resend_after,
            ask_after: env.auto("ask_after", params.ask_after, resend_after * 2),
            mss,
            header: env.header_bytes,
        }
    }
    /// Returns the number of bytes that a message of `size` bytes sends without credit.
    pub fn unscheduled(&self, size: u64) -> u64 {
        if size <= self.unsched_threshold { size.min(self.unsched_bytes) } else { 0 }
    }
}
