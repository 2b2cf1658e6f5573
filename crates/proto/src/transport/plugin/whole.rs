//! Plug-ins that are whole transports: the machine of a host, and what it may do.

use crate::contract::{Cx, Env, Transport};
use crate::flow::{Flow, Sample};
use crate::packet::{Kind, Packet};
use crate::plugins::{self, Caller, MOST_COUNTED, NEVER_DUE};
use ::plugin::abi;
use ::plugin::block::Block;
use ::plugin::host::machine::{HostServices, new_state};
use ::plugin::library::Library;
use ::plugin::transport::machine::{Machine, TransportServices};
use ::plugin::transport::{self, Delivery, SeenFlow, TransportTable, USES_RANKS};
use base::{Dur, FlowId, FlowMap, Rate, Time, TimerKey};

/// The flags that a plug-in may set.
const FLAGS: u16 = Packet::ECT | Packet::ECE | Packet::RETX;

/// A host of a whole transport.
pub struct Whole {
    machine: Machine,
    kept: Kept,
}

/// What the simulator keeps for a host of a plug-in.
struct Kept {
    /// Flows that the host sends and that are not closed.
    open: FlowMap<()>,
    /// The states of flows at this host. Blocks do not move.
    states: FlowMap<Box<Block>>,
    library: &'static Library,
    table: &'static TransportTable,
    header: u16,
    mtu: u16,
    /// Whether packets may have ranks.
    ranks: bool,
}

impl Whole {
    /// Creates a host without flows.
    pub fn new(machine: Machine, library: &'static Library, table: &'static TransportTable, env: &Env<'_>) -> Whole {
        let kept = Kept {
            open: FlowMap::default(),
            states: FlowMap::default(),
            library,
            table,
            header: env.header_bytes,
            mtu: env.mtu_bytes,
            ranks: table.uses & USES_RANKS != 0,
        };
        Whole { machine, kept }
    }
    /// Returns the machine, and the functions that it may call while it handles `packet`.
    #[inline(always)]
    fn with<'x, 'a>(&'x mut self, packet: Option<&'x Packet>, cx: &'x mut Cx<'a>) -> (&'x mut Machine, Access<'x, 'a>) {
        (&mut self.machine, Access { kept: &mut self.kept, cx, packet, ended: Vec::new(), wrong: None })
    }
}

impl Transport for Whole {
    fn on_flow(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        self.kept.open.insert(flow, ());
        let (machine, mut access) = self.with(None, cx);
        machine.on_flow(&mut access, flow.0);
    }
    fn on_packet(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        if cx.flow(packet.flow).src == cx.host && !self.kept.open.contains(packet.flow) {
            return;
        }
        let shown = plugins::shown_to_host(packet);
        let (machine, mut access) = self.with(Some(packet), cx);
        machine.on_packet(&mut access, &shown);
    }
    fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>) {
        let (machine, mut access) = self.with(None, cx);
        machine.on_timer(&mut access, key.kind.into(), key.flow.0);
    }
    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let (machine, mut access) = self.with(None, cx);
        let packet = machine.poll(&mut access)?;
        match access.checked(&packet) {
            Ok(packet) => Some(packet),
            Err(why) => machine.refuse("poll", why),
        }
    }
    fn remove_sender(&mut self, flow: FlowId) -> bool {
        self.kept.states.remove(flow);
        self.kept.open.remove(flow).is_some()
    }
    fn give_up(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        if self.kept.open.contains(flow) {
            let (machine, mut access) = self.with(None, cx);
            machine.give_up(&mut access, flow.0);
            drop(access);
            if self.remove_sender(flow) {
                cx.terminate(flow);
            }
        }
    }
    fn sample(&self, flow: FlowId) -> Option<Sample> {
        if !self.kept.open.contains(flow) {
            return None;
        }
        let transport::Sample { cwnd, ssthresh, srtt_ps, rate_bps, in_flight } =
            self.machine.sample(self.kept.states.get(flow).map(|state| &**state), flow.0);
        let (srtt, rate) = (Dur(srtt_ps), Rate(rate_bps));
        Some(Sample { cwnd_bytes: cwnd, ssthresh_bytes: ssthresh, srtt, rate, in_flight_bytes: in_flight })
    }
}

/// What a function of the plug-in may do while it runs.
struct Access<'x, 'a> {
    kept: &'x mut Kept,
    cx: &'x mut Cx<'a>,
    /// The packet that it handles.
    packet: Option<&'x Packet>,
    /// The states of flows that it has closed. The function may still use them.
    #[allow(clippy::vec_box, reason = "the blocks must not move")]
    ended: Vec<Box<Block>>,
    /// The first call that was not allowed.
    wrong: Option<String>,
}

impl<'a> Access<'_, 'a> {
    fn caller(&self) -> Caller<'a> {
        Caller { library: self.kept.library, host: self.cx.host, flows: self.cx.flows }
    }
    /// Returns an open flow that this host sends.
    fn open(&self, flow: u32) -> Result<&'a Flow, String> {
        let found = self.caller().sent(flow)?;
        if self.kept.open.contains(found.id) { Ok(found) } else { Err(format!("flow {flow} is closed")) }
    }
    /// Returns a packet of the plug-in as it is sent, or why it cannot be sent.
    fn checked(&self, packet: &abi::Packet) -> Result<Packet, String> {
        let abi::Packet { offset, words, flow, rank, wire_len, payload, kind, prio, flags, .. } = *packet;
        let wrong = |what: String| Err(format!("its packet of flow {flow} {what}"));
        let found = self.caller().flow(flow)?;
        let kind = Kind(kind);
        if !(kind <= Kind::PROBEACK || kind == Kind::CREDIT || (Kind::OWN..Kind::POLICY).contains(&kind.0)) {
            return wrong(format!("has kind {}, which transports do not send", kind.0));
        }
        if (payload > 0) != (kind == Kind::DATA) {
            return wrong(format!("has kind {} and {payload} bytes of payload: data has payload, other packets have none", kind.0));
        }
        if kind == Kind::DATA {
            self.open(flow)?;
            if offset.checked_add(payload.into()).is_none_or(|end| end > found.size_bytes) {
                return wrong(format!("has {payload} bytes from {offset} on: the flow ends before"));
            }
        }
        let least = u32::from(self.kept.header) + u32::from(payload);
        if u32::from(wire_len) < least || wire_len > self.kept.mtu {
            return wrong(format!("has {wire_len} bytes on the wire: {least} to {} are possible", self.kept.mtu));
        }
        let flags = flags & !Packet::BACK;
        if flags & !FLAGS != 0 {
            return wrong(format!(
                "has the flags {flags}: a sum of {}, {} and {} is allowed",
                Packet::ECT,
                Packet::ECE,
                Packet::RETX
            ));
        }
        if rank != 0 && !self.kept.ranks {
            return wrong(format!("has the rank {rank}, but `uses` does not declare ranks"));
        }
        Ok(Packet { offset, words, rank, payload, prio, flags, ..Packet::new(found.id, kind, wire_len) })
    }
    /// Ends the host's part of a flow.
    fn end(&mut self, flow: u32, given_up: bool) -> Result<(), String> {
        let found = if given_up { plugins::may_be_given_up(self.open(flow)?)? } else { self.caller().flow(flow)? };
        if found.src == self.cx.host {
            self.open(flow)?;
            self.kept.open.remove(found.id);
            if given_up { self.cx.terminate(found.id) } else { self.cx.close(found.id) }
        } else {
            self.cx.io.timers.forget(found.id);
        }
        self.ended.extend(self.kept.states.remove(found.id));
        Ok(())
    }
}

impl HostServices for Access<'_, '_> {
    fn arm(&mut self, flow: u32, kind: u32, at_ps: u64) -> Option<()> {
        self.allowed("arm", |own| {
            let (flow, kind) = own.caller().timer(flow, kind)?;
            if at_ps >= NEVER_DUE {
                own.cx.disarm(flow, kind)
            } else {
                own.cx.arm(flow, kind, Time(at_ps))
            }
            Ok(())
        })
    }
    fn disarm(&mut self, flow: u32, kind: u32) -> Option<()> {
        self.allowed("disarm", |own| {
            let (flow, kind) = own.caller().timer(flow, kind)?;
            own.cx.disarm(flow, kind);
            Ok(())
        })
    }
    fn finished(&mut self, flow: u32) -> Option<bool> {
        self.allowed("finished", |own| Ok(own.cx.has_finished(own.caller().received(flow)?.id)))
    }
    fn terminate(&mut self, flow: u32) -> Option<()> {
        self.allowed("terminate", |own| own.end(flow, true))
    }
    fn count(&mut self, flow: u32, counter: u32, more: u64) -> Option<()> {
        self.allowed("count", |own| {
            let (flow, counter) = own.caller().counter(flow, counter)?;
            own.cx.count(flow, counter, more.min(MOST_COUNTED));
            Ok(())
        })
    }
    fn random(&mut self) -> u64 {
        self.cx.rng.bits()
    }
    fn view(&mut self, flow: u32) -> Option<SeenFlow> {
        self.allowed("view", |own| own.caller().view(flow))
    }
    fn state(&mut self, flow: u32) -> Option<&Block> {
        let table = self.kept.table;
        let flow = self.allowed("state", |own| {
            if table.head.state_size == 0 {
                return Err("its `state_size` is 0".to_owned());
            }
            let found = own.caller().flow(flow)?;
            if found.src == own.cx.host { own.open(flow).map(|open| open.id) } else { Ok(found.id) }
        })?;
        Some(self.kept.states.or_insert_with(flow, || Box::new(new_state(&table.head))))
    }
    fn here(&self) -> (u64, u32) {
        (self.cx.now.0, self.cx.host.0)
    }
    fn wrong(&mut self) -> &mut Option<String> {
        &mut self.wrong
    }
}

impl TransportServices for Access<'_, '_> {
    fn control(&mut self, packet: &abi::Packet) -> Option<()> {
        self.allowed("control", |own| {
            let packet = own.checked(packet)?;
            own.cx.control(packet);
            Ok(())
        })
    }
    fn deliver(&mut self, flow: u32, offset: u64, length: u64) -> Option<Delivery> {
        self.allowed("deliver", |own| {
            let found = own.caller().received(flow)?;
            let carried = own.packet.filter(|packet| packet.kind == Kind::DATA && packet.flow == found.id);
            let carried = carried.map_or(0..0, |packet| packet.bytes());
            let end = offset.checked_add(length).filter(|end| offset >= carried.start && *end <= carried.end);
            if end.is_none() {
                return Err(format!("this packet does not carry {length} bytes of flow {flow} from {offset} on"));
            }
            let delivery = own.cx.deliver(found.id, offset, length as u16);
            let (block_start, block_end) = (delivery.block.start, delivery.block.end);
            Ok(Delivery { next: delivery.next, new_bytes: delivery.new_bytes, block_start, block_end })
        })
    }
    fn close(&mut self, flow: u32) -> Option<()> {
        self.allowed("close", |own| own.end(flow, false))
    }
    fn timeout(&mut self, flow: u32) -> Option<()> {
        self.allowed("timeout", |own| {
            let found = own.open(flow)?;
            own.cx.note_timeout(found.id);
            Ok(())
        })
    }
    fn fast_retransmit(&mut self, flow: u32) -> Option<()> {
        self.allowed("fast_retransmit", |own| {
            let found = own.open(flow)?;
            own.cx.note_fast_retransmit(found.id);
            Ok(())
        })
    }
    fn payload(&mut self, flow: u32, offset: u64) -> Option<u64> {
        let mss = u64::from(self.kept.mtu - self.kept.header);
        self.allowed("payload", |own| Ok(own.open(flow)?.size_bytes.saturating_sub(offset).min(mss)))
    }
}

#[cfg(test)]
mod tests;
