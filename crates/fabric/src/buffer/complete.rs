//! Complete sharing: any port may use the whole buffer of the switch.
//!
//! Source: Kamoun and Kleinrock, "Analysis of Shared Finite Storage in a Computer Network Node Environment Under General Traffic Conditions",
//! IEEE Transactions on Communications 28(7), 1980, section II.
//!
//! | parameter | default | from |
//! |---|---|---|
//! | `total` | 4 MB | Alizadeh et al., DCTCP, SIGCOMM 2010, section 3.4: the Triumph switch |
//!
//! Assumed: a packet fits if the switch does not exceed the total with it.

use super::{Buffer, Env, Place};
use crate::queue::Backlog;
use base::Limit;
use base::params::Problem;
use base::registry::Meta;
use proto::Packet;

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "any port may use the whole buffer of the switch",
    source: "Kamoun and Kleinrock, IEEE Trans. Communications 28(7), 1980",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of a buffer that is shared completely.
    pub struct Params {
        /// Most packets or bytes that may wait at all ports of a switch together.
        total: Limit = "4MB", "DCTCP section 3.4: the Triumph switch";
    }
}

/// Returns the problems of parameters that depend on the network.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    super::check_total(params.total, *env)
}

/// The buffer.
pub struct Complete {
    total: Limit,
}

impl Complete {
    /// Returns the buffer of a switch.
    pub fn new(params: &Params, _env: &Env<'_>) -> Self {
        Complete { total: params.total }
    }
    /// Returns 0: the buffer counts nothing by port.
    pub fn counters(_params: &Params) -> usize {
        0
    }
}

impl Buffer for Complete {
    fn admits(&mut self, packet: &Packet, _place: Place, _port: Backlog, all: Backlog) -> bool {
        all.fits(packet, self.total)
    }
    fn most(&self) -> Limit {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::tests::PLACE;
    use base::FlowId;

    #[test]
    fn the_total_counts_whatever_the_port() {
        let packet = Packet::data(FlowId(0), 0, 1460, 40);
        let all = Backlog { packets: 2, bytes: 3000 };
        for (total, fits) in
            [(Limit::Bytes(4500), true), (Limit::Bytes(4499), false), (Limit::Packets(3), true), (Limit::Packets(2), false)]
        {
            let mut buffer = Complete::new(&Params { total }, &Env { mtu_bytes: 1500, links: &[] });
            assert_eq!([Backlog::default(), all].map(|port| buffer.admits(&packet, PLACE, port, all)), [fits; 2], "{total}");
        }
    }

    #[test]
    fn a_total_below_one_packet_is_a_problem() {
        let of = |total| check(&Params { total }, &Env { mtu_bytes: 1500, links: &[] }).len();
        assert_eq!([of(Limit::Bytes(1499)), of(Limit::Bytes(1500)), of(Limit::Packets(0)), of(Limit::Unlimited)], [1, 0, 1, 0]);
    }
}
