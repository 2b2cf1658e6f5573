//! Warnings about queues that are shorter than a transport needs. The needs of a transport are data:
//! [`Needs`](base::registry::Needs) and [`Bursts`](proto::Bursts).

use crate::files::Files;
use crate::plan::draft::{Built, Draft, Section, Variant, with_slot};
use crate::system::envs::{self, Envs};
use crate::system::slots::System;
use crate::text::diag::Item;
use crate::workload::{FanIn, Workload as _};
use base::{Bytes, Dur, Limit, Offers, Rate};
use fabric::buffer::Buffer as _;
use fabric::qdisc::{self, Qdisc as _};
use proto::{Bursts, Transport as _};

/// Losses give a warning only if the shortest timeout exceeds this many round trips.
const SLOW: u64 = 10;

/// Returns the warnings about a system: the worst of each kind.
pub(crate) fn warnings(draft: &Draft, files: &Files, section: &Section<System>) -> Vec<Item> {
    let mut worst: [Option<(f64, Item)>; 4] = [const { None }; 4];
    for built in draft.topology.variants.iter().map(|variant| &variant.value) {
        let offers = || {
            let first = draft.workloads.iter().enumerate().filter_map(|(i, workload)| Some((i, &workload.variants.first()?.value)));
            first.map(|(i, demand)| envs::offered(&demand.workload, &draft.workload_env(built, files, i))).collect()
        };
        let fan_ins = fan_ins(draft, files, built);
        for variant in &section.variants {
            let system = &variant.value;
            let envs = Envs::new(draft.site(built), system.ports_and_router(), system.given(), Offers::new(offers));
            let case = Case { section, variant, built, ports: ports(system, &envs), nic: envs.fastest_nic_rate() };
            let transport = system.transport.build(&envs.transport(envs.fastest_host()));
            let slow = transport.timers().least.map(|least| least.after).filter(|after| *after > built.max_rtt * SLOW);
            let bursts = transport.bursts();
            let found =
                [case.below_bdp(), case.early_marks(), case.incast(draft, &fan_ins, bursts, slow), case.granted(bursts, slow)];
            for (worst, found) in worst.iter_mut().zip(found) {
                if let Some((share, item)) = found
                    && worst.as_ref().is_none_or(|(before, _)| share < *before)
                {
                    *worst = Some((share, item));
                }
            }
        }
    }
    worst.into_iter().flatten().map(|(_, item)| item).collect()
}

/// Returns the name and the fan-in of each workload that has a fan-in, from its variant with most
/// bytes.
fn fan_ins(draft: &Draft, files: &Files, built: &Built) -> Vec<(String, FanIn)> {
    let most = |(index, section): (usize, &Section<crate::plan::spec::Demand>)| {
        let env = draft.workload_env(built, files, index);
        let all = section.variants.iter().filter_map(|variant| variant.value.workload.build(&env).fan_in(&env));
        Some((section.name.clone(), all.max_by_key(|fan_in| u128::from(fan_in.flows) * u128::from(fan_in.size_bytes))?))
    };
    draft.workloads.iter().enumerate().filter_map(most).collect()
}

/// A kind of switch port.
pub(super) struct Port {
    env: qdisc::Env,
    /// The bytes that may wait at the port, and the parameter that sets this limit.
    pub(super) room: Option<(Bytes, Setting)>,
    /// The parameter that sets the marking threshold, and the threshold.
    mark: Option<(&'static str, Limit)>,
}

/// The slot and the key of a parameter.
pub(super) type Setting = (&'static str, &'static str);

/// Returns the kinds of switch ports in a system.
pub(super) fn ports(system: &System, envs: &Envs<'_>) -> Vec<Port> {
    let switch = envs.checked().buffer().into_iter().next();
    let shared = system.buffer.as_ref().zip(switch).map(|(buffer, switch)| buffer.build(&switch).most());
    let port = |env: qdisc::Env| {
        let packet = Bytes(u64::from(env.mtu_bytes));
        let own = system.qdisc.limit(&env).in_bytes(packet).map(|bytes| (bytes, ("qdisc", "limit")));
        let shared = shared.and_then(|limit| limit.in_bytes(packet)).map(|bytes| (bytes, ("buffer", "total")));
        let room = own.into_iter().chain(shared).min_by_key(|(bytes, _)| *bytes);
        Port { env, room, mark: system.qdisc.build(&env).marks_above() }
    };
    envs.kinds_of_ports().into_iter().map(|link| envs.qdisc(link)).filter(|env| !env.host_port).map(port).collect()
}

/// A system in one variant on one network.
struct Case<'a> {
    section: &'a Section<System>,
    variant: &'a Variant<System>,
    built: &'a Built,
    ports: Vec<Port>,
    /// Rate of the fastest NIC.
    nic: Rate,
}

/// The configured share of the value that is needed, and the warning.
type Short = Option<(f64, Item)>;

impl Case<'_> {
    /// Returns the name of the part with the largest need, and the need.
    fn most(&self, need: fn(&base::registry::Needs) -> f64) -> Option<(&'static str, f64)> {
        let parts = self.variant.value.parts().into_iter().map(|part| (part.entry.name, need(&part.entry.meta.needs)));
        parts.filter(|(_, need)| *need > 0.0).max_by(|a, b| a.1.total_cmp(&b.1))
    }
    /// Returns the bandwidth-delay product of flows at a port, in bytes.
    fn bdp(&self, env: &qdisc::Env) -> f64 {
        env.rate.min(self.nic).bytes_in(self.built.max_rtt) as f64
    }
    fn item(&self, (slot, key): Setting, message: String, label: &str, hint: String) -> Item {
        with_slot(self.section, self.variant, slot, |part| part.problem(key, message, label, hint))
    }
    /// Warns of a limit below the bandwidth-delay products that a transport needs to keep a link
    /// busy.
    fn below_bdp(&self) -> Short {
        let (name, need) = self.most(|needs| needs.least_limit)?;
        let share = |port: &Port| {
            let (room, setting) = port.room?;
            let wanted = need * self.bdp(&port.env);
            // One packet is in transmission.
            let packet = u64::from(port.env.mtu_bytes);
            (((room.0 + packet) as f64) < wanted)
                .then(|| ((room.0 as f64 / wanted), room, setting, packets(wanted, packet), port.env.rate))
        };
        let (share, room, setting, least, rate) = self.ports.iter().filter_map(share).min_by(|a, b| a.0.total_cmp(&b.0))?;
        let rtt = self.built.max_rtt;
        let message = format!(
            "a port of {rate} holds {room}, only {share:.2} of what a link carries in the longest unloaded round trip of {rtt}"
        );
        let hint = format!("after a loss `{name}` leaves the link idle, which lowers its throughput: {}", more(setting, least));
        Some((share, self.item(setting, message, "below a bandwidth-delay product", hint)))
    }
    /// Warns of a marking threshold below the bandwidth-delay products that a transport needs to
    /// keep a link busy.
    fn early_marks(&self) -> Short {
        let (name, need) = self.most(|needs| needs.least_mark)?;
        let share = |port: &Port| {
            let (key, mark) = port.mark?;
            let packet = u64::from(port.env.mtu_bytes);
            let wanted = need * self.bdp(&port.env);
            let has = mark.in_bytes(Bytes(packet))?.0 as f64;
            (has < wanted).then(|| (has / wanted, key, mark, packets(wanted, packet), port.env.rate))
        };
        let (share, key, mark, least, rate) = self.ports.iter().filter_map(share).min_by(|a, b| a.0.total_cmp(&b.0))?;
        let message =
            format!("`{mark}` at {rate} is less than the {least} packets, {need:.2} bandwidth-delay products, that `{name}` needs");
        let hint = format!(
            "after marks `{name}` leaves the link idle, which lowers its throughput: write `{key} = \"{least}pkt\"` or more, or \
             `{key} = \"auto\"`"
        );
        Some((share, self.item(("qdisc", key), message, "marks too early", hint)))
    }
    /// Returns the port at which the flows to a receiver meet, and the bytes that it holds.
    fn last_port(&self) -> Option<(&Port, Bytes, Setting)> {
        let rooms = self.ports.iter().filter_map(|port| port.room.map(|(room, setting)| (port, room, setting)));
        let slow = |port: &Port| port.env.rate <= self.nic;
        rooms.min_by_key(|(port, room, _)| (!slow(port), *room))
    }
    /// Warns if the first packets of an incast exceed what a port holds.
    fn incast(&self, draft: &Draft, fan_ins: &[(String, FanIn)], bursts: Bursts, slow: Option<Dur>) -> Short {
        let (port, room, setting) = self.last_port()?;
        let timeout = slow?;
        let packets_of = draft.packets();
        let waits = |(name, fan_in): &(String, FanIn)| {
            let first = bursts.first_bytes.min(fan_in.size_bytes);
            let wire = if first == 0 { 0 } else { packets_of.wire(first) };
            // While the bytes arrive, the link carries those of one flow, and more if the starts of
            // flows are spread out.
            let bytes = wire.saturating_mul(fan_in.flows.saturating_sub(1)).saturating_sub(port.env.rate.bytes_in(fan_in.spread));
            (bytes > room.0).then(|| (bytes, name.clone(), fan_in.flows))
        };
        let (bytes, workload, flows) = fan_ins.iter().filter_map(waits).max()?;
        let transport = self.variant.value.transport.name();
        let message = format!(
            "{flows} flows of `{workload}` let {} wait before `{transport}` can slow them down, but a port of {} holds {room}",
            Bytes(bytes),
            port.env.rate
        );
        let least = packets(bytes as f64, u64::from(port.env.mtu_bytes));
        let hint =
            format!("lost packets wait for timeouts of {timeout}, which dominate completion times: {}", more(setting, least));
        Some((room.0 as f64 / bytes as f64, self.item(setting, message, "too short for this incast", hint)))
    }
    /// Warns if the packets that a receiver grants exceed what a port holds.
    fn granted(&self, bursts: Bursts, slow: Option<Dur>) -> Short {
        let (port, room, setting) = self.last_port()?;
        let (timeout, wanted) = (slow?, bursts.granted_bytes);
        (wanted > room.0).then(|| {
            let transport = self.variant.value.transport.name();
            let message = format!(
                "receivers of `{transport}` let up to {} wait at their ports, but a port of {} holds {room}",
                Bytes(wanted),
                port.env.rate
            );
            let least = packets(wanted as f64, u64::from(port.env.mtu_bytes));
            let hint =
                format!("lost packets wait for timeouts of {timeout}, which dominate completion times: {}", more(setting, least));
            (room.0 as f64 / wanted as f64, self.item(setting, message, "too short for this transport", hint))
        })
    }
}

/// Returns the number of full packets that hold this many bytes.
fn packets(bytes: f64, packet: u64) -> u64 {
    (bytes / packet as f64).ceil() as u64
}

/// Returns the hint: how to make room for this many packets.
fn more((slot, key): Setting, packets: u64) -> String {
    match slot {
        "buffer" => format!("raise `{key}` until one port can hold {packets} packets"),
        _ => format!("write `{key} = \"{packets}pkt\"` or more, or `{key} = \"unlimited\"` and a shared `buffer`"),
    }
}
