//! First in, first out, with one marking threshold on the instantaneous queue length.
//!
//! Source: Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, section 3.1.

use crate::abi::{Packet, Parameter, Type};
use crate::author::{Declaration, Values};
use crate::qdisc::{Calls, Place, Port, Qdisc, Verdict, Waiting};

/// The discipline of a port.
pub struct Example {
    limit_packets: u64,
    limit_bytes: u64,
    /// Packets are marked if more wait.
    mark: u64,
}

impl Qdisc for Example {
    const DECLARATION: Declaration = Declaration {
        source: c"Alizadeh et al., SIGCOMM 2010, section 3.1",
        parameters: &[Parameter::new(
            Type::Integer,
            c"mark",
            c"0",
            c"Threshold (K): packets are marked while more packets wait; 0: the larger of 20 and 0.78 bandwidth-delay products.",
        )
        .range(c"0", c"1000000000")
        .source(c"DCTCP section 3.4")],
        ..Declaration::new(c"example", c"first in, first out; packets are marked while the queue is longer than a threshold")
    };
    const MARKS: bool = true;
    const CALLS: Calls = Calls::NONE;

    fn create(port: &Port, values: Values<'_>) -> Result<Self, String> {
        let &Port { limit_packets, limit_bytes, .. } = port;
        let mark = match values.integer(0) {
            0 => {
                // 78 hundredths of the product, in bits and picoseconds, are divided by the bits of a packet.
                let product = u128::from(port.rate_bps) * u128::from(port.max_rtt_ps) * 78;
                product.div_ceil(8 * 100 * 1_000_000_000_000 * u128::from(port.mtu)).max(20) as u64
            }
            mark => mark,
        };
        Ok(Example { limit_packets, limit_bytes, mark })
    }

    fn enqueue(&mut self, _now_ps: u64, waiting: Waiting<'_>, packet: &Packet) -> Verdict {
        let (packets, bytes) = (waiting.packets + 1, waiting.bytes + u64::from(packet.wire_len));
        if packets > self.limit_packets || bytes > self.limit_bytes {
            return Verdict::Drop;
        }
        Verdict::Admit(Place { mark: (packets > self.mark).into(), ..Place::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::Value;

    /// 0.78 bandwidth-delay products of 10 Gb/s and 100 us are 65 packets.
    #[test]
    fn the_default_threshold_is_that_of_dctcp() {
        let port = Port {
            rate_bps: 10_000_000_000,
            mtu: 1500,
            max_rtt_ps: 100_000_000,
            limit_packets: 100,
            limit_bytes: crate::qdisc::UNLIMITED,
            link: 0,
            seed: 1,
            host_port: 0,
            reserved: 0,
        };
        let mark = |port: &Port, value| Example::create(port, Values(&[Value(value)])).unwrap().mark;
        assert_eq!([mark(&port, 0), mark(&port, 7), mark(&Port { rate_bps: 1_000_000_000, ..port }, 0)], [65, 7, 20]);
    }
}
