//! Warnings about queues that are shorter than a transport relies on. What it relies on is data: [`Needs`](base::registry::Needs) and
//! [`Bursts`](proto::Bursts).

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

/// A loss that costs a timeout of more round trips than this is worth a warning.
const SLOW: u64 = 10;

/// The warnings about a system, the worst one of each kind.
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

/// The name and the fan-in of each workload that has one; of its variants the one with most bytes.
fn fan_ins(draft: &Draft, files: &Files, built: &Built) -> Vec<(String, FanIn)> {
    let most = |(index, section): (usize, &Section<crate::plan::spec::Demand>)| {
        let env = draft.workload_env(built, files, index);
        let all = section.variants.iter().filter_map(|variant| variant.value.workload.build(&env).fan_in(&env));
        Some((section.name.clone(), all.max_by_key(|fan_in| u128::from(fan_in.flows) * u128::from(fan_in.size_bytes))?))
    };
    draft.workloads.iter().enumerate().filter_map(most).collect()
}

/// A kind of switch port.
struct Port {
    env: qdisc::Env,
    /// What may wait there, in bytes, and the parameter that says so.
    room: Option<(Bytes, Setting)>,
    /// Above what the queue marks, and the parameter that says so.
    mark: Option<(&'static str, Limit)>,
}

/// The slot and the key of a parameter.
type Setting = (&'static str, &'static str);

/// The kinds of switch ports in a system.
fn ports(system: &System, envs: &Envs<'_>) -> Vec<Port> {
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

/// How much of what is needed there is, and the warning.
type Short = Option<(f64, Item)>;

impl Case<'_> {
    /// The part of the system that needs most of something, with its name.
    fn most(&self, need: fn(&base::registry::Needs) -> f64) -> Option<(&'static str, f64)> {
        let parts = self.variant.value.parts().into_iter().map(|part| (part.entry.name, need(&part.entry.meta.needs)));
        parts.filter(|(_, need)| *need > 0.0).max_by(|a, b| a.1.total_cmp(&b.1))
    }
    /// Bytes of the bandwidth-delay product of flows at a port.
    fn bdp(&self, env: &qdisc::Env) -> f64 {
        env.rate.min(self.nic).bytes_in(self.built.max_rtt) as f64
    }
    fn item(&self, (slot, key): Setting, message: String, label: &str, hint: String) -> Item {
        with_slot(self.section, self.variant, slot, |part| part.problem(key, message, label, hint))
    }
    /// A limit below the bandwidth-delay products that a transport needs to keep a link busy.
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
        let message =
            format!("a port of {rate} holds {room}, {share:.2} of what a link carries in the longest unloaded round trip, {rtt}");
        let hint = format!("`{name}` leaves links idle after a loss: {}", more(setting, least));
        Some((share, self.item(setting, message, "below a bandwidth-delay product", hint)))
    }
    /// A threshold below the share of a bandwidth-delay product that a transport needs to keep a link busy.
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
        let message = format!("`{mark}` at {rate} is less than {least} packets, {need:.2} bandwidth-delay products");
        let hint =
            format!("`{name}` leaves links idle after marks: write at least `{key} = \"{least}pkt\"`, or `{key} = \"auto\"`");
        Some((share, self.item(("qdisc", key), message, "marks too early", hint)))
    }
    /// The port at which a receiver's flows meet, and the bytes that it holds.
    fn last_port(&self) -> Option<(&Port, Bytes, Setting)> {
        let rooms = self.ports.iter().filter_map(|port| port.room.map(|(room, setting)| (port, room, setting)));
        let slow = |port: &Port| port.env.rate <= self.nic;
        rooms.min_by_key(|(port, room, _)| (!slow(port), *room))
    }
    /// First packets of an incast that no port holds.
    fn incast(&self, draft: &Draft, fan_ins: &[(String, FanIn)], bursts: Bursts, slow: Option<Dur>) -> Short {
        let (port, room, setting) = self.last_port()?;
        let timeout = slow?;
        let packets_of = draft.packets();
        let waits = |(name, fan_in): &(String, FanIn)| {
            let first = bursts.first_bytes.min(fan_in.size_bytes);
            let wire = if first == 0 { 0 } else { packets_of.wire(first) };
            // The link carries one flow's bytes while they arrive, and more while flows start one after another.
            let bytes = wire.saturating_mul(fan_in.flows.saturating_sub(1)).saturating_sub(port.env.rate.bytes_in(fan_in.spread));
            (bytes > room.0).then(|| (bytes, name.clone(), fan_in.flows))
        };
        let (bytes, workload, flows) = fan_ins.iter().filter_map(waits).max()?;
        let transport = self.variant.value.transport.name();
        let message = format!(
            "{flows} flows of `{workload}` let {} wait before `{transport}` can slow them down, and a port of {} holds {room}",
            Bytes(bytes),
            port.env.rate
        );
        let least = packets(bytes as f64, u64::from(port.env.mtu_bytes));
        let hint = format!("losses wait for timeouts of {timeout}: {}", more(setting, least));
        Some((room.0 as f64 / bytes as f64, self.item(setting, message, "shorter than an incast", hint)))
    }
    /// Packets that receivers ask for and no port holds.
    fn granted(&self, bursts: Bursts, slow: Option<Dur>) -> Short {
        let (port, room, setting) = self.last_port()?;
        let (timeout, wanted) = (slow?, bursts.granted_bytes);
        (wanted > room.0).then(|| {
            let transport = self.variant.value.transport.name();
            let message = format!(
                "receivers of `{transport}` let up to {} wait at their ports, and a port of {} holds {room}",
                Bytes(wanted),
                port.env.rate
            );
            let least = packets(wanted as f64, u64::from(port.env.mtu_bytes));
            let hint = format!("losses wait for timeouts of {timeout}: {}", more(setting, least));
            (room.0 as f64 / wanted as f64, self.item(setting, message, "shorter than the transport's rule", hint))
        })
    }
}

/// Full packets that hold so many bytes.
fn packets(bytes: f64, packet: u64) -> u64 {
    (bytes / packet as f64).ceil() as u64
}

/// How to have room for so many packets.
fn more((slot, key): Setting, packets: u64) -> String {
    match slot {
        "buffer" => format!("let one port hold {packets} packets, by a larger `{key}`"),
        _ => format!("write at least `{key} = \"{packets}pkt\"`, or `{key} = \"unlimited\"` beside a `buffer` that ports share"),
    }
}
