//! A receiver-driven transport: the first packets of a flow are sent at once, and the receiver asks
//! for each of the others, at the rate of its link, for the flow with the fewest packets missing.
//!
//! Source: the ideas are those of pHost (CoNEXT 2015) and Homa (SIGCOMM 2018), without their
//! priorities. Both ends know the size of a flow: it is in each packet of the sender.

use crate::abi::{Counter, KNOWS_SIZE, Packet, Parameter, Type};
use crate::author::{Declaration, Values};
use crate::transport::{Cx, Endpoint, Sample, Transport};
use std::collections::{BTreeMap, VecDeque};

/// Packet: a flow begins, or its sender has received nothing for a while. Word 0 is its size.
const OPEN: u8 = Packet::OWN;
/// Packet: the receiver asks for the packet at `offset`. Word 0 is the number of bytes that it has.
const ASK: u8 = Packet::OWN + 1;

/// Timer of a flow at its sender: no packet of the receiver has arrived.
const SILENCE: u32 = 0;
/// Timer of a flow at its receiver: a packet that was asked for has not arrived.
const MISSING: u32 = 1;
/// Timer of a host: the link has room for another packet.
const PACE: u32 = 2;

/// One more expiry of a timer doubles its time, up to this number.
const MOST_DOUBLINGS: u32 = 6;
/// Expiries after which a receiver waits for its sender.
const MOST_TRIES: u32 = 8;

/// A host.
pub struct Example {
    header: u16,
    /// Payload of a full packet.
    mss: u64,
    /// Payload of a full packet for each packet of a bandwidth-delay product.
    window: u64,
    /// Time of a full packet on the host's links.
    packet_ps: u64,
    timeout_ps: u64,
    /// The host asks for the next packet no earlier.
    next_ask_ps: u64,
    senders: BTreeMap<u32, Sender>,
    /// Packets to send, as flow and offset.
    ready: VecDeque<(u32, u64)>,
    receivers: BTreeMap<u32, Receiver>,
}

/// A flow that the host sends.
struct Sender {
    size: u64,
    /// By packet: whether it was sent.
    sent: Vec<bool>,
    sent_bytes: u64,
    /// Bytes that the receiver has.
    arrived: u64,
    silences: u32,
}

/// A flow that the host receives.
struct Receiver {
    /// By packet: whether it has arrived.
    arrived: Vec<bool>,
    /// Number of packets that have arrived, and their bytes.
    packets: u64,
    bytes: u64,
    /// Number of packets that were asked for, those that are sent at once included.
    asked: u64,
    /// Packets to ask for again.
    again: VecDeque<u64>,
    tries: u32,
}

impl Receiver {
    fn missing(&self) -> u64 {
        self.arrived.len() as u64 - self.packets
    }
    /// Returns whether there is a packet to ask for.
    fn wants(&self) -> bool {
        !self.again.is_empty() || self.asked < self.arrived.len() as u64 && self.tries == 0
    }
}

impl Example {
    /// Asks for a packet if the link has room for it, or sets the timer for it.
    fn ask(&mut self, cx: &mut Cx<'_>) {
        // The flows of silent senders do not hold up the others.
        let coming: u64 = self.receivers.values().filter(|flow| flow.tries == 0).map(|flow| flow.asked - flow.packets).sum();
        let best = self
            .receivers
            .iter_mut()
            .filter(|(_, flow)| flow.wants() && (coming * self.mss < self.window || !flow.again.is_empty()));
        let Some((number, flow)) = best.min_by_key(|(number, flow)| (flow.missing(), **number)) else { return };
        if cx.now() >= self.next_ask_ps {
            let packet = flow.again.pop_front().unwrap_or_else(|| {
                flow.asked += 1;
                flow.asked - 1
            });
            let (offset, words) = (packet * self.mss, [flow.bytes, 0]);
            cx.control(Packet { offset, words, ..Packet::bare(*number, ASK, self.header) });
            cx.arm(*number, MISSING, cx.now() + self.timeout_ps);
            self.next_ask_ps = cx.now() + self.packet_ps;
        }
        cx.arm_host(PACE, self.next_ask_ps);
    }

    fn forget(&mut self, flow: u32) {
        self.senders.remove(&flow);
        self.ready.retain(|(of, _)| *of != flow);
    }

    fn wait(&self, flow: u32, timer: u32, expiries: u32, cx: &mut Cx<'_>) {
        cx.arm(flow, timer, cx.now() + (self.timeout_ps << expiries.min(MOST_DOUBLINGS)));
    }

    /// Handles a packet of the sender.
    fn receive(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let flow = packet.flow;
        if !cx.has_finished(flow) {
            let (size, first) = (packet.words[0], self.window.div_ceil(self.mss));
            let new = || {
                let packets = size.div_ceil(self.mss);
                let arrived = vec![false; packets as usize];
                Receiver { arrived, packets: 0, bytes: 0, asked: first.min(packets), again: VecDeque::new(), tries: 0 }
            };
            let receiver = self.receivers.entry(flow).or_insert_with(new);
            receiver.tries = 0;
            if packet.kind == Packet::DATA {
                let index = packet.offset / self.mss;
                receiver.packets += u64::from(!std::mem::replace(&mut receiver.arrived[index as usize], true));
                receiver.again.retain(|packet| *packet != index);
                receiver.bytes += cx.deliver(packet).new_bytes;
            }
            self.wait(flow, MISSING, 0, cx);
        }
        if cx.has_finished(flow) {
            self.receivers.remove(&flow);
            cx.control(Packet { offset: packet.words[0], ..Packet::bare(flow, Packet::ACK, self.header) });
            cx.close(flow);
        }
        self.ask(cx);
    }
}

impl Transport for Example {
    const DECLARATION: Declaration = Declaration {
        source: c"an example",
        knows: KNOWS_SIZE,
        parameters: &[
            Parameter::new(Type::Time, c"timeout", c"1ms", c"Time after which an end repeats itself; at least three round trips.")
                .range(c"1us", c"10s"),
            Parameter::new(
                Type::Number,
                c"window",
                c"1",
                c"Packets in the network that a receiver allows, in bandwidth-delay products.",
            )
            .range(c"0.1", c"100"),
        ],
        counters: &[Counter::new(c"asked_again", c"packets", c"Packets that the receiver has asked for again.")],
        ..Declaration::new(c"example_transport", c"the receiver asks for packets at the rate of its link")
    };

    fn create(endpoint: &Endpoint, values: Values<'_>) -> Result<Self, String> {
        let (rate, rtt_ps) = (endpoint.nic_rate_bps as f64, endpoint.max_rtt_ps as f64);
        let mss = endpoint.mtu - endpoint.header;
        Ok(Example {
            header: endpoint.header as u16,
            mss,
            window: (rate * rtt_ps / 8e12 * values.number(1)) as u64 + mss,
            packet_ps: (endpoint.mtu as f64 * 8e12 / endpoint.host_rate_bps as f64) as u64,
            timeout_ps: values.integer(0).max(3 * endpoint.max_rtt_ps),
            next_ask_ps: 0,
            senders: BTreeMap::new(),
            ready: VecDeque::new(),
            receivers: BTreeMap::new(),
        })
    }

    fn on_flow(&mut self, flow: u32, cx: &mut Cx<'_>) {
        let size = cx.flow(flow).size;
        let packets = size.div_ceil(self.mss);
        self.senders.insert(flow, Sender { size, sent: vec![false; packets as usize], sent_bytes: 0, arrived: 0, silences: 0 });
        self.ready.extend((0..packets.min(self.window.div_ceil(self.mss))).map(|packet| (flow, packet * self.mss)));
        self.wait(flow, SILENCE, 0, cx);
    }

    fn on_packet(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        match packet.kind {
            Packet::DATA | OPEN => self.receive(packet, cx),
            Packet::ACK => {
                self.forget(packet.flow);
                cx.close(packet.flow);
            }
            ASK => {
                let Some(sender) = self.senders.get_mut(&packet.flow) else { return };
                (sender.arrived, sender.silences) = (sender.arrived.max(packet.words[0]), 0);
                self.ready.push_back((packet.flow, packet.offset));
                self.wait(packet.flow, SILENCE, 0, cx);
            }
            _ => {}
        }
    }

    fn on_timer(&mut self, kind: u32, flow: Option<u32>, cx: &mut Cx<'_>) {
        match (kind, flow) {
            (SILENCE, Some(flow)) => {
                let Some(sender) = self.senders.get_mut(&flow) else { return };
                sender.silences += 1;
                let (words, silences) = ([sender.size, 0], sender.silences);
                cx.note_timeout(flow);
                cx.control(Packet { words, ..Packet::bare(flow, OPEN, self.header) });
                self.wait(flow, SILENCE, silences, cx);
            }
            (MISSING, Some(flow)) => {
                let asked_and_missing = |flow: &&mut Receiver| flow.asked > flow.packets;
                let Some(receiver) = self.receivers.get_mut(&flow).filter(asked_and_missing) else { return };
                receiver.tries += 1;
                receiver.again = (0..receiver.asked).filter(|packet| !receiver.arrived[*packet as usize]).collect();
                cx.count(flow, 0, receiver.again.len() as u64);
                let tries = receiver.tries;
                if tries < MOST_TRIES {
                    self.wait(flow, MISSING, tries, cx);
                }
                self.ask(cx);
            }
            _ => self.ask(cx),
        }
    }

    fn poll(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let (flow, offset) = self.ready.pop_front()?;
        let sender = self.senders.get_mut(&flow)?;
        let payload = cx.payload(flow, offset);
        let again = std::mem::replace(&mut sender.sent[(offset / self.mss) as usize], true);
        sender.sent_bytes += if again { 0 } else { u64::from(payload) };
        let flags = if again { Packet::RETX } else { 0 };
        Some(Packet { words: [sender.size, 0], flags, ..Packet::data(flow, offset, payload, self.header) })
    }

    fn give_up(&mut self, flow: u32, _: &mut Cx<'_>) {
        self.forget(flow);
    }

    fn sample(&self, flow: u32) -> Sample {
        let Some(sender) = self.senders.get(&flow) else { return Sample::default() };
        Sample { cwnd: self.window, in_flight: sender.sent_bytes.saturating_sub(sender.arrived), ..Sample::default() }
    }
}
