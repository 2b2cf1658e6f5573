//! Labels of subflows: a word in the header of their packets, and the paths of the packets.

use crate::contract::Cx;
use crate::packet::Packet;
use base::FlowId;

base::choice! {
    /// How a subflow gets its path.
    pub enum Paths {
        /// Each subflow has its own source port, and the router plans its path; the first subflow
        /// has the port of the flow.
        Port = "port",
        /// The subflows take the paths of the flow in turn, by index.
        Index = "index",
    }
}

impl Paths {
    /// Returns the path tag for packets that this host sends on a subflow.
    pub fn tag(self, flow: FlowId, subflow: u8, cx: &Cx<'_>) -> u16 {
        match self {
            Paths::Port if subflow == 0 => 0,
            Paths::Port => Packet::BY_PORT + u16::from(subflow),
            Paths::Index => {
                let paths = u32::from(cx.paths(flow));
                // Tags count from 1; flows begin with different paths.
                ((flow.0 % paths + u32::from(subflow)) % paths) as u16 + 1
            }
        }
    }
}

/// Word 0 of every header: a subflow and a position in the subflow's bytes. In data it is the
/// position of the payload, in an ACK the position below which all bytes have arrived. The packet's
/// offset is the same for the bytes of the connection (RFC 8684 section 3.3: data sequence mapping
/// and DATA_ACK).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// The subflow's number.
    pub subflow: u8,
    /// Position, below 2^56.
    pub at: u64,
}

impl Label {
    /// Packs the label into a word.
    pub fn word(self) -> u64 {
        u64::from(self.subflow) << 56 | self.at
    }
    /// Unpacks a label.
    pub fn of(word: u64) -> Label {
        Label { subflow: (word >> 56) as u8, at: word & ((1 << 56) - 1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::script::{self, Script};
    use crate::transport::newreno::{NewReno, Params};
    use base::params::Params as _;

    #[test]
    fn a_label_is_one_word() {
        for label in
            [Label { subflow: 0, at: 0 }, Label { subflow: 63, at: 1_000_000_000_000 }, Label { subflow: 255, at: (1 << 56) - 1 }]
        {
            assert_eq!(Label::of(label.word()), label);
        }
    }

    #[test]
    fn subflows_have_their_own_ports_or_take_the_paths_in_turn() {
        let machine = NewReno::new(&Params::defaults(), &script::env());
        let mut host = Script::new(machine, (0..3).map(|id| script::flow(id, 1)).collect());
        host.table.set_paths(FlowId(2), false, 3);
        let mut tags = |paths: Paths, flow| host.with(|_, cx| [0, 1, 2, 3].map(|subflow| paths.tag(FlowId(flow), subflow, cx)));
        assert_eq!(tags(Paths::Port, 2), [0, 0x8001, 0x8002, 0x8003]);
        assert_eq!((tags(Paths::Index, 2), tags(Paths::Index, 1)), ([3, 1, 2, 3], [1; 4]));
    }
}
