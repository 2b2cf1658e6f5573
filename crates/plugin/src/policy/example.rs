//! PIAS: a flow starts in the first class and moves down one class at each threshold of bytes sent.
//!
//! Source: W. Bai et al., "Information-Agnostic Flow Scheduling for Commodity Data Centers", NSDI 2015, section 4.

use crate::abi::{Packet, Parameter, Type};
use crate::author::{Declaration, Values};
use crate::host::{Endpoint, USES_CLASSES};
use crate::policy::{Cx, Policy};
use std::collections::BTreeMap;

/// The policy of a host.
pub struct Example {
    /// In bytes, rising.
    thresholds: Vec<u64>,
    /// Whether packets count when they are sent, except for retransmissions, and not the bytes before the packet.
    sent: bool,
    /// Number of consecutive timeouts that return a flow to the first class; 0: none.
    aging: u64,
    flows: BTreeMap<u32, Counted>,
}

/// The counts of a flow that the host sends.
#[derive(Default)]
struct Counted {
    /// Bytes sent since the count was 0.
    sent: u64,
    /// The end of all packets so far, as an offset.
    end: u64,
    /// Where bytes are counted from, as an offset.
    from: u64,
    acked: u64,
    /// Timeouts since the last ACK of new bytes.
    timeouts: u64,
}

impl Policy for Example {
    const DECLARATION: Declaration = Declaration {
        source: c"Bai et al., NSDI 2015",
        parameters: &[
            Parameter::new(Type::Integer, c"classes", c"3", c"Number of classes.").range(c"2", c"8"),
            Parameter::new(Type::Size, c"first", c"43800B", c"The first threshold: payload that a flow sends in the first class.")
                .range(c"1B", c"1GB")
                .source(c"30 full packets"),
            Parameter::new(Type::Integer, c"growth", c"10", c"Ratio of each threshold to the one before it.").range(c"2", c"100"),
            Parameter::new(Type::Flag, c"sent", c"false", c"Whether bytes sent count, as in the authors' module."),
            Parameter::new(Type::Integer, c"aging", c"0", c"Consecutive timeouts that return a flow to the first class; 0: none.")
                .range(c"0", c"100"),
        ],
        ..Declaration::new(c"example_policy", c"PIAS: a flow moves to lower classes with the bytes it has sent")
    };
    const USES: u32 = USES_CLASSES;

    fn create(endpoint: &Endpoint, values: Values<'_>) -> Result<Self, String> {
        let (classes, first, growth) = (values.integer(0), values.integer(1), values.integer(2));
        if classes > endpoint.classes {
            return Err(format!("`classes` is {classes}, but the switches have {}", endpoint.classes));
        }
        let thresholds = std::iter::successors(Some(first), |before| Some(before.saturating_mul(growth)));
        let thresholds = thresholds.take(classes as usize - 1).collect();
        Ok(Example { thresholds, sent: values.flag(3), aging: values.integer(4), flows: BTreeMap::new() })
    }

    fn on_open(&mut self, flow: u32, _: &mut Cx<'_>) {
        self.flows.insert(flow, Counted::default());
    }

    fn on_send(&mut self, packet: &mut Packet, _: &mut Cx<'_>) {
        packet.prio = 0;
        let Some(flow) = self.flows.get_mut(&packet.flow).filter(|_| packet.payload > 0) else { return };
        let end = packet.offset + u64::from(packet.payload);
        if end > flow.end {
            flow.sent += u64::from(packet.payload);
            flow.end = end;
        }
        let before = if self.sent { flow.sent.saturating_sub(1) } else { packet.offset.saturating_sub(flow.from) };
        packet.prio = self.thresholds.iter().filter(|threshold| **threshold <= before).count() as u8;
    }

    fn on_receive(&mut self, packet: &Packet, _: &mut Cx<'_>) {
        let Some(flow) = self.flows.get_mut(&packet.flow) else { return };
        if packet.kind == Packet::ACK && packet.offset > flow.acked {
            (flow.acked, flow.timeouts) = (packet.offset, 0);
        }
    }

    fn on_timeout(&mut self, flow: u32, _: &mut Cx<'_>) {
        let Some(flow) = self.flows.get_mut(&flow).filter(|_| self.aging > 0) else { return };
        flow.timeouts += 1;
        if flow.timeouts >= self.aging {
            *flow = Counted { from: flow.acked, acked: flow.acked, end: flow.end, ..Counted::default() };
        }
    }

    fn on_close(&mut self, flow: u32, _: &mut Cx<'_>) {
        self.flows.remove(&flow);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::Value;
    use crate::mock::Mock;

    const MSS: u64 = 1460;

    /// The policy of a host with flow 5, with thresholds of 2 and 4 packets. `aging` is the number of timeouts.
    fn opened(aging: u64) -> (Example, Mock) {
        let (nic_rate_bps, host_rate_bps) = (10_000_000_000, 10_000_000_000);
        let endpoint = Endpoint { mtu: 1500, header: 40, nic_rate_bps, host_rate_bps, max_rtt_ps: 20_000_000, classes: 8 };
        let mut policy = Example::create(&endpoint, Values(&[3, 2 * MSS, 2, 0, aging].map(Value))).unwrap();
        let mut simulator = Mock::new(MSS, 10 * MSS);
        simulator.policy(|cx| policy.on_open(5, cx));
        (policy, simulator)
    }

    /// The class of a packet of data.
    fn class(policy: &mut Example, simulator: &mut Mock, number: u64) -> u8 {
        let mut packet = Packet::data(5, number * MSS, MSS as u16, 40);
        simulator.policy(|cx| policy.on_send(&mut packet, cx));
        packet.prio
    }

    #[test]
    fn a_flow_moves_down_at_each_threshold() {
        let (mut policy, mut simulator) = opened(0);
        let classes = [0, 1, 2, 3, 4, 5].map(|number| class(&mut policy, &mut simulator, number));
        assert_eq!(classes, [0, 0, 1, 1, 2, 2]);
        // ACKs are in the first class.
        let mut ack = Packet { prio: 7, ..Packet::bare(5, Packet::ACK, 40) };
        simulator.policy(|cx| policy.on_send(&mut ack, cx));
        assert_eq!(ack.prio, 0);
    }

    #[test]
    fn consecutive_timeouts_return_a_flow_to_the_first_class() {
        let (mut policy, mut simulator) = opened(2);
        assert_eq!(class(&mut policy, &mut simulator, 5), 2);
        simulator.policy(|cx| policy.on_timeout(5, cx));
        // An ACK of new bytes begins the count of timeouts again.
        simulator.policy(|cx| policy.on_receive(&Packet { offset: 5 * MSS, ..Packet::bare(5, Packet::ACK, 40) }, cx));
        simulator.policy(|cx| policy.on_timeout(5, cx));
        assert_eq!(class(&mut policy, &mut simulator, 5), 2);
        simulator.policy(|cx| policy.on_timeout(5, cx));
        assert_eq!(class(&mut policy, &mut simulator, 5), 0);
    }
}
