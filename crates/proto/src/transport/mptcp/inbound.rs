//! The receiving half: each subflow is acknowledged separately, and the connection puts the bytes
//! of all subflows in order.

use super::label::{Label, Paths};
use crate::contract::Cx;
use crate::kit::tcp::receiver::{Acks, Arrival, Receiver};
use crate::kit::tcp::{Answer, Config, Echo, Ecn, synack};
use crate::packet::Packet;
use crate::reassembly::Reassembly;
use base::{Dur, FlowId, FlowMap, Time};
use std::ops::Range;

/// The connections that end at a host.
#[derive(Default)]
pub struct Inbound {
    flows: FlowMap<Connection>,
}

/// A connection at its receiver.
#[derive(Default)]
struct Connection {
    /// All bytes below have arrived (DATA_ACK).
    next: u64,
    /// The subflows by number, as far as data of them has arrived.
    subflows: Vec<Subflow>,
}

/// A subflow at its receiver.
struct Subflow {
    arrived: Reassembly,
    receiver: Receiver,
    /// When its delayed ACK is due; `Time::MAX` if none is held.
    due: Time,
}

/// The ACKs of a subflow.
struct Lane<'a, 'b> {
    flow: FlowId,
    subflow: u8,
    data_ack: u64,
    due: &'a mut Time,
    config: &'a Config,
    paths: Paths,
    cx: &'a mut Cx<'b>,
}

impl Acks for Lane<'_, '_> {
    fn send(&mut self, answer: Answer, blocks: &[Range<u64>]) {
        let label = Label { subflow: self.subflow, at: answer.next };
        let answer = Answer { echo: Echo { feedback: label.word(), ..answer.echo }, next: self.data_ack, ..answer };
        let mut ack = answer.packet(self.flow, self.config.header, blocks, self.cx.ext);
        ack.path_tag = self.paths.tag(self.flow, self.subflow, self.cx);
        self.cx.control(ack);
    }
    fn delay(&mut self, after: Option<Dur>) {
        *self.due = after.map_or(Time::MAX, |after| self.cx.now.after(after));
    }
}

impl Inbound {
    /// Answers a SYN of a subflow.
    pub fn on_syn(packet: &Packet, config: &Config, paths: Paths, cx: &mut Cx<'_>) {
        let mut answer = synack(packet, Ecn::Off, config);
        answer.path_tag = paths.tag(packet.flow, Label::of(packet.words[0]).subflow, cx);
        cx.control(answer);
    }

    /// Handles data of a subflow. Returns when the next delayed ACK of the flow is due.
    pub fn on_data(&mut self, packet: &Packet, config: &Config, paths: Paths, cx: &mut Cx<'_>) -> Time {
        let flow = packet.flow;
        let Label { subflow: number, at } = Label::of(packet.words[0]);
        let delivery = cx.deliver(flow, packet.offset, packet.payload);
        let done = delivery.next == cx.flow(flow).size_bytes;
        let connection = self.flows.or_insert_with(flow, Connection::default);
        connection.next = delivery.next;
        let blank = || Subflow { arrived: Reassembly::default(), receiver: Receiver::default(), due: Time::MAX };
        if connection.subflows.len() <= usize::from(number) {
            connection.subflows.resize_with(usize::from(number) + 1, blank);
        }
        let subflow = &mut connection.subflows[usize::from(number)];
        let delivery = subflow.arrived.on_bytes(at, packet.payload.into());
        let arrival = Arrival { packet, echo: Echo::of(packet), start: at, delivery: &delivery, done };
        let data_ack = connection.next;
        let mut lane = Lane { flow, subflow: number, data_ack, due: &mut subflow.due, config, paths, cx };
        subflow.receiver.on_segment(&arrival, Ecn::Off, config, &mut lane);
        if done {
            // Later packets are answered by an ACK of the whole connection, whatever their subflow.
            self.flows.remove(flow);
            return Time::MAX;
        }
        connection.due()
    }

    /// Sends the delayed ACKs that are due. Returns when the next one of the flow is due.
    pub fn on_timer(&mut self, flow: FlowId, config: &Config, paths: Paths, cx: &mut Cx<'_>) -> Time {
        let Some(connection) = self.flows.get_mut(flow) else { return Time::MAX };
        let (now, data_ack) = (cx.now, connection.next);
        for (number, subflow) in connection.subflows.iter_mut().enumerate().filter(|(_, subflow)| subflow.due <= now) {
            let mut lane = Lane { flow, subflow: number as u8, data_ack, due: &mut subflow.due, config, paths, cx };
            subflow.receiver.on_timer(&mut lane);
        }
        connection.due()
    }
}

impl Connection {
    fn due(&self) -> Time {
        self.subflows.iter().map(|subflow| subflow.due).min().unwrap_or(Time::MAX)
    }
}
