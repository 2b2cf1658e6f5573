//! Packets that queues dropped, by kind.

use proto::{Kind, Packet};

/// Counts of dropped packets by kind. They are separate, since a dropped credit or trimmed header costs less
/// than dropped data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// Packets with payload.
    pub data: u64,
    /// Credits, which a rate limiter drops on purpose.
    pub credits: u64,
    /// Headers of data packets whose payload a port had cut off.
    pub trimmed: u64,
    /// All other packets: ACKs, handshakes, requests, grants, tokens, probes, feedback.
    pub control: u64,
}

impl Drops {
    /// Counts a dropped packet.
    pub fn count(&mut self, packet: &Packet) {
        let count = match packet.kind {
            _ if packet.payload > 0 => &mut self.data,
            Kind::CREDIT => &mut self.credits,
            kind if kind.is_refused() => &mut self.trimmed,
            _ => &mut self.control,
        };
        *count += 1;
    }
    /// Returns the number of all dropped packets.
    pub fn all(self) -> u64 {
        self.data + self.credits + self.trimmed + self.control
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::FlowId;

    #[test]
    fn each_packet_counts_for_its_kind() {
        let data = Packet::data(FlowId(0), 0, 1460, 40);
        let of = |kind| Packet::new(FlowId(0), kind, 40);
        let (mut trimmed, mut returned, mut returned_header) = (data, data, data);
        trimmed.trim(64);
        returned.turn_back();
        returned_header.trim(64);
        returned_header.turn_back();
        let dropped = [
            (data, Drops { data: 1, ..Drops::default() }),
            (returned, Drops { data: 1, ..Drops::default() }),
            (of(Kind::CREDIT), Drops { credits: 1, ..Drops::default() }),
            (trimmed, Drops { trimmed: 1, ..Drops::default() }),
            (returned_header, Drops { trimmed: 1, ..Drops::default() }),
            (of(Kind::ACK), Drops { control: 1, ..Drops::default() }),
            (of(Kind::SYN), Drops { control: 1, ..Drops::default() }),
            (of(Kind(Kind::OWN)), Drops { control: 1, ..Drops::default() }),
        ];
        let mut all = Drops::default();
        for (packet, expected) in dropped {
            let mut drops = Drops::default();
            drops.count(&packet);
            assert_eq!(drops, expected, "{packet:?}");
            all.count(&packet);
        }
        assert_eq!((all, all.all()), (Drops { data: 2, credits: 1, trimmed: 2, control: 3 }, 8));
    }
}
