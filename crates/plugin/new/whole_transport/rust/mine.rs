//! The transport `mine`: so far it is stop and wait (RFC 1350 section 2). A flow has one packet in the network, and sends the next
//! one when this packet is acknowledged.

use flowloom_plugin::abi::{Counter, Packet, Parameter, Type};
use flowloom_plugin::transport::{Cx, Endpoint, Sample, Transport};
use flowloom_plugin::{Declaration, Values};
use std::collections::{BTreeMap, VecDeque};

/// The timer of a flow.
const RTO: u32 = 0;

/// A host.
struct StopAndWait {
    header: u16,
    rto: u64,
    ready: VecDeque<u32>,
    senders: BTreeMap<u32, Sender>,
}

/// A flow at its sender.
#[derive(Default)]
struct Sender {
    acked: u64,
    in_flight: u16,
    again: bool,
}

impl Transport for StopAndWait {
    const DECLARATION: Declaration = Declaration {
        source: c"RFC 1350",
        parameters: &[Parameter::new(Type::Time, c"rto", c"10ms", c"Retransmission timeout.")
            .range(c"1us", c"60s")
            .source(c"as TCP's min_rto")],
        counters: &[Counter::new(c"repeats", c"packets", c"Retransmitted packets.")],
        ..Declaration::new(c"mine", c"stop and wait: one packet of a flow at a time, to be changed")
    };

    fn create(endpoint: &Endpoint, values: Values<'_>) -> Result<Self, String> {
        let (header, rto) = (endpoint.header as u16, values.integer(0));
        Ok(StopAndWait { header, rto, ready: VecDeque::new(), senders: BTreeMap::new() })
    }

    fn on_flow(&mut self, flow: u32, _: &mut Cx<'_>) {
        self.senders.insert(flow, Sender::default());
        self.ready.push_back(flow);
    }

    fn on_packet(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let flow = packet.flow;
        if packet.kind == Packet::DATA {
            let delivery = cx.deliver(packet);
            cx.control(Packet { offset: delivery.next, ..Packet::bare(flow, Packet::ACK, self.header) });
            return;
        }
        let Some(sender) = self.senders.get_mut(&flow).filter(|sender| packet.offset > sender.acked) else { return };
        *sender = Sender { acked: packet.offset, ..Sender::default() };
        if cx.payload(flow, packet.offset) == 0 {
            self.give_up(flow, cx);
            cx.close(flow);
        } else {
            cx.disarm(flow, RTO);
            if !self.ready.contains(&flow) {
                self.ready.push_back(flow);
            }
        }
    }

    fn on_timer(&mut self, _: u32, flow: Option<u32>, cx: &mut Cx<'_>) {
        let Some((flow, sender)) = flow.and_then(|flow| Some((flow, self.senders.get_mut(&flow)?))) else { return };
        (sender.in_flight, sender.again) = (0, true);
        cx.note_timeout(flow);
        cx.count(flow, 0, 1);
        self.ready.push_back(flow);
    }

    fn poll(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let flow = self.ready.pop_front()?;
        let sender = self.senders.get_mut(&flow)?;
        sender.in_flight = cx.payload(flow, sender.acked);
        cx.arm(flow, RTO, cx.now() + self.rto);
        let flags = if sender.again { Packet::RETX } else { 0 };
        Some(Packet { flags, ..Packet::data(flow, sender.acked, sender.in_flight, self.header) })
    }

    fn give_up(&mut self, flow: u32, _: &mut Cx<'_>) {
        self.senders.remove(&flow);
        self.ready.retain(|ready| *ready != flow);
    }

    fn sample(&self, flow: u32) -> Sample {
        self.senders
            .get(&flow)
            .map_or(Sample::default(), |sender| Sample { in_flight: sender.in_flight.into(), ..Sample::default() })
    }
}

flowloom_plugin::export!(transport, StopAndWait);

/// Packets in, packets out.
#[cfg(test)]
mod tests {
    use super::*;
    use flowloom_plugin::abi::Value;
    use flowloom_plugin::mock::{Call, Mock};
    use flowloom_plugin::transport::Delivery;

    const MSS: u64 = 1460;
    const RTO_PS: u64 = 1_000_000_000;

    /// A host with a flow of three packets, the last of 80 bytes, and its simulator.
    fn opened() -> (StopAndWait, Mock) {
        let (nic_rate_bps, host_rate_bps) = (10_000_000_000, 10_000_000_000);
        let endpoint = Endpoint { mtu: 1500, header: 40, nic_rate_bps, host_rate_bps, max_rtt_ps: 20_000_000, classes: 8 };
        let mut host = StopAndWait::create(&endpoint, Values(&[Value(RTO_PS)])).unwrap();
        let mut simulator = Mock::new(MSS, 2 * MSS + 80);
        simulator.transport(|cx| host.on_flow(5, cx));
        (host, simulator)
    }

    fn ack(offset: u64) -> Packet {
        Packet { offset, ..Packet::bare(5, Packet::ACK, 40) }
    }

    #[test]
    fn each_packet_waits_for_the_ack_of_the_packet_before_it() {
        let (mut host, mut simulator) = opened();
        for (packet, payload) in [(0, MSS), (1, MSS), (2, 80)] {
            let sent = simulator.transport(|cx| host.poll(cx));
            let timer = Call::Arm { flow: 5, kind: RTO, at_ps: RTO_PS };
            assert_eq!(sent, (Some(Packet::data(5, packet * MSS, payload as u16, 40)), vec![timer]));
            assert_eq!(simulator.transport(|cx| host.poll(cx)), (None, vec![]));
            // A late duplicate has no effect.
            assert_eq!(simulator.transport(|cx| host.on_packet(&ack(packet * MSS), cx)), ((), vec![]));
            let end = packet * MSS + payload;
            let call = if packet < 2 { Call::Disarm { flow: 5, kind: RTO } } else { Call::Close(5) };
            assert_eq!(simulator.transport(|cx| host.on_packet(&ack(end), cx)), ((), vec![call]));
        }
        assert_eq!(simulator.transport(|cx| host.poll(cx)).0, None);
    }

    #[test]
    fn a_lost_packet_is_retransmitted_after_the_timeout() {
        let (mut host, mut simulator) = opened();
        simulator.transport(|cx| host.poll(cx));
        simulator.now_ps = RTO_PS;
        let counted = vec![Call::Timeout(5), Call::Count { flow: 5, counter: 0, more: 1 }];
        assert_eq!(simulator.transport(|cx| host.on_timer(RTO, Some(5), cx)), ((), counted));
        let expected = Packet { flags: Packet::RETX, ..Packet::data(5, 0, MSS as u16, 40) };
        let timer = Call::Arm { flow: 5, kind: RTO, at_ps: 2 * RTO_PS };
        assert_eq!(simulator.transport(|cx| host.poll(cx)), (Some(expected), vec![timer]));
    }

    #[test]
    fn a_receiver_acknowledges_all_bytes_that_have_arrived_in_order() {
        let (mut host, mut simulator) = opened();
        simulator.delivery = Delivery { next: MSS, new_bytes: MSS, block_start: 0, block_end: MSS };
        let calls = vec![
            Call::Deliver { flow: 5, offset: 0, length: MSS },
            Call::Control(Packet { offset: MSS, ..Packet::bare(5, Packet::ACK, 40) }),
        ];
        assert_eq!(simulator.transport(|cx| host.on_packet(&Packet::data(5, 0, MSS as u16, 40), cx)), ((), calls));
    }
}
