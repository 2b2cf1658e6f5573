//! The configuration of a host, from the parameters and the environment.

use super::nscc::NsccConfig;
use super::rccc::{QUANTUM, RcccConfig};
use super::{Cc, Delivery, Params, UetConnections, UetProfile};
use crate::contract::Env;
use crate::kit::multipath::MultipathOptions;
use base::params::Param as _;
use base::{Bytes, Dur, Fraction, Rate};

/// The configuration of a host.
#[derive(Clone, Debug)]
pub(super) struct UetConfig {
    /// Payload and header of a full packet.
    pub(super) mss: u64,
    pub(super) header: u16,
    /// Whether the sender and the receiver control congestion.
    pub(super) sender_cc: bool,
    pub(super) receiver_cc: bool,
    pub(super) nscc: NsccConfig,
    pub(super) rccc: RcccConfig,
    /// Time between two quanta of credit that a receiver grants.
    pub(super) quantum_gap: Dur,
    /// Bytes per ACK.
    pub(super) ack_bytes: u64,
    /// The retransmission timeout.
    pub(super) rto: Dur,
    /// Whether the unloaded round trip is that of the flow's path, and whether NACKs are samples.
    pub(super) own_rtt: bool,
    pub(super) rtt_of_nacks: bool,
    /// Whether the messages to one host share a connection.
    pub(super) peer: bool,
    /// Whether losses are inferred from later arrivals.
    pub(super) sleek: bool,
    /// Whether packets are delivered in order.
    pub(super) ordered: bool,
    pub(super) multipath: MultipathOptions,
}

impl UetConfig {
    pub(super) fn new(params: &Params, env: &Env<'_>) -> UetConfig {
        let (mss, nscc) = (u64::from(env.mss()), nscc(params, env));
        // A window holds several times the bytes that an ACK waits for.
        let quarter = (env.nic_rate.bytes_in(nscc.network_rtt) / 4).clamp(1, ACK_BYTES);
        let same = params.profile == UetProfile::UetHtsim;
        UetConfig {
            mss,
            header: env.header_bytes,
            sender_cc: params.cc != Cc::Rccc,
            receiver_cc: params.cc != Cc::Nscc,
            rccc: RcccConfig {
                mtu: env.mtu_bytes.into(),
                most: nscc.largest(nscc.network_rtt),
                per_pull: (mss * u64::from(params.pull_packets) / QUANTUM).max(1),
            },
            nscc,
            quantum_gap: env.host_rate.times(params.pull_rate).gap(QUANTUM),
            ack_bytes: env.auto("ack_bytes", params.ack_bytes, Bytes(if same { ACK_BYTES } else { quarter })).0,
            rto: env.auto("min_rto", params.min_rto, if same { rto(env) } else { env.timeout(rto(env)) }),
            own_rtt: params.own_rtt,
            rtt_of_nacks: params.rtt_of_nacks || same,
            peer: params.connections == UetConnections::Peer,
            sleek: params.sleek && params.cc != Cc::Rccc,
            ordered: params.delivery == Delivery::Ordered,
            multipath: params.multipath.clone(),
        }
    }
}

/// Bytes that arrive before a receiver acknowledges them, in uet-htsim.
const ACK_BYTES: u64 = 16_384;

/// Returns the timeout of `main_uec.cpp`: 15 us and the time of six full queues. A queue
/// without limit counts as one bandwidth-delay product.
fn rto(env: &Env<'_>) -> Dur {
    let limit = env.queue_limit.in_bytes(Bytes(env.mtu_bytes.into())).map_or(env.bdp_bytes(), |bytes| bytes.0);
    // Longer limits are no limits in practice.
    let queue = limit.min(1 << 40);
    Dur(Dur::from_us(15).0.saturating_add(env.nic_rate.gap(queue).0.saturating_mul(6)))
}

/// Returns the constants of NSCC (initNsccParams).
pub(super) fn nscc(params: &Params, env: &Env<'_>) -> NsccConfig {
    let network_rtt = env.auto("base_rtt", params.base_rtt, env.max_rtt.max(Dur(1)));
    let trims = env.given.kind("qdisc") == Some("trim") && env.given.value("qdisc", "trims") != Some(false);
    let target = env.auto("target_delay", params.target_delay, if trims { network_rtt * 3 / 4 } else { network_rtt });
    let bdp = env.nic_rate.bytes_in(network_rtt);
    let reference = params.reference_rate.bytes_in(params.reference_rtt);
    let scaled = |part: Fraction, bytes: u64| NsccConfig::scaled(part, bytes, bdp, reference);
    let mss = u64::from(env.mss());
    let config = NsccConfig {
        mtu: env.mtu_bytes.into(),
        rate: Rate(env.nic_rate.bps()),
        network_rtt,
        target,
        max_window: params.max_window,
        init_window: match params.init_window {
            base::params::Auto::Auto => None,
            base::params::Auto::Set(bytes) => Some(bytes.0),
        },
        alpha: scaled(params.alpha, mss),
        fair_increase: scaled(params.fair_increase, mss),
        eta: scaled(params.eta, mss),
        reference_rtt: params.reference_rtt,
        fast_increase: scaled(params.fast_increase, 1),
        fast_delay: env.auto(
            "fast_delay",
            params.fast_delay,
            match params.profile {
                UetProfile::Network => Dur::from_us(1).max(network_rtt / 12),
                UetProfile::UetHtsim => Dur::from_us(1),
            },
        ),
        gamma: params.gamma,
        max_decrease: params.max_decrease,
        delay_gain: params.delay_gain,
        quick_adapt: params.quick_adapt,
        qa_gate: params.qa_gate,
        qa_delay: target.times(params.qa_delay),
        adjust_bytes: u64::from(params.adjust_packets) * u64::from(env.mtu_bytes),
        adjust_period: env.auto("adjust_period", params.adjust_period, network_rtt),
    };
    env.note_auto("init_window", config.init_window.is_none(), || {
        let most = Bytes(config.largest(network_rtt)).show();
        if params.own_rtt { format!("up to {most}") } else { most }
    });
    config
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::script;
    use base::params::Params as _;

    /// At 1 Gb/s and 50 us a quarter of a bandwidth-delay product is 1562 bytes, and three round trips are longer than the
    /// program's timeout without queues.
    #[test]
    fn a_profile_has_the_values_of_the_program() {
        let queue_limit = base::Limit::Bytes(0);
        let env = Env { nic_rate: Rate::from_gbps(1), max_rtt: Dur::from_us(50), queue_limit, ..script::env() };
        let of = |profile| {
            let config = UetConfig::new(&Params { profile, ..Params::defaults() }, &env);
            (config.ack_bytes, config.nscc.fast_delay, config.rto, config.rtt_of_nacks)
        };
        assert_eq!(of(UetProfile::UetHtsim), (16_384, Dur::from_us(1), Dur::from_us(15), true));
        assert_eq!(of(UetProfile::Network), (1562, Dur::from_us(50) / 12, Dur::from_us(150), false));
    }
}
