//! Tests of every policy: it tags each packet once, and neither loses nor adds packets of the
//! transport.

use super::*;
use crate::flow::Flow;
use crate::kit::script::{self, Script};
use crate::packet::Kind;
use crate::policy_host::PolicyHost;
use crate::policy_script::PolicyScript;
use crate::transport::newreno;
use base::Dur;
use base::chosen::Chosen;
use base::params::{Auto, Params as _, Raw, Reader};
use base::registry::Entry;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Reads the parameters that an entry's META implies; used in tests.
struct Implied(&'static Meta);

impl Reader for Implied {
    fn get(&mut self, key: &'static str) -> Option<Raw> {
        let own = self.0.implies.iter().find(|(name, _)| name.strip_prefix("policy.") == Some(key));
        own.map(|(_, value)| Raw::Str((*value).to_owned()))
    }
    fn fail(&mut self, key: &'static str, message: String) {
        panic!("{key}: {message}");
    }
}

/// `check` and manifests show what is chosen for every `auto`.
#[test]
fn every_value_chosen_for_auto_is_recorded() {
    let offers = script::offers();
    for entry in ENTRIES {
        let chosen = Chosen::default();
        let env = Env { offered: &offers, chosen: Some(&chosen), ..script::env() };
        AnyParams::read(entry.name, &mut script::AllAuto(entry)).expect("an entry of the room").build(&env);
        let mut recorded: Vec<_> = chosen.into_values().into_iter().map(|(key, _)| key).collect();
        let mut wanted = script::can_be_auto(entry);
        recorded.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(recorded, wanted, "{}: resolve parameters with `Env::auto`", entry.name);
    }
}

fn transport() -> AnyTransport {
    let mut tcp = newreno::Params::defaults();
    (tcp.tcp.init_window, tcp.tcp.handshake) = (Auto::Set(4), false);
    (tcp.tcp.min_rto, tcp.tcp.init_rto) = (Auto::Set(Dur::from_ms(1)), Auto::Set(Dur::from_ms(1)));
    AnyTransport::NewReno(newreno::NewReno::new(&tcp, &script::env()))
}

/// An event at a host.
#[derive(Clone, Debug)]
enum Event {
    /// An ACK for this many eighths of the bytes sent of a flow.
    Ack(u32, u64),
    /// This many microseconds pass.
    Wait(u64),
}

/// A call to the host.
enum Act {
    Open(u32),
    Packet(Packet),
    Wait(Dur),
}

/// Opens the flows, then applies the events. Returns all packets that the host sends.
fn sent(flows: &[Flow], events: &[Event], mut host: impl FnMut(Act) -> Vec<Packet>) -> Vec<Packet> {
    let mut sent: Vec<Packet> = (0..flows.len() as u32).flat_map(|flow| host(Act::Open(flow))).collect();
    for event in events {
        let act = match *event {
            Event::Ack(flow, eighths) => {
                let ends = sent.iter().filter(|packet| packet.flow.0 == flow).map(|p| p.offset + u64::from(p.payload));
                let offset = ends.max().unwrap_or(0) * eighths / 8;
                Act::Packet(Packet { offset, ..Packet::new(FlowId(flow), Kind::ACK, 40) })
            }
            Event::Wait(us) => Act::Wait(Dur::from_us(us)),
        };
        sent.extend(host(act));
    }
    sent
}

/// Returns the packets that the host sends without a policy.
fn plain(flows: &[Flow], events: &[Event]) -> Vec<Packet> {
    let mut host = Script::new(transport(), flows.to_vec());
    sent(flows, events, |act| match act {
        Act::Open(flow) => host.open(flow),
        Act::Packet(packet) => host.packet(packet),
        Act::Wait(time) => host.advance(host.now + time),
    })
}

/// Returns the packets that the host sends under a policy. Every tag is a block of its own, and
/// only packets hold blocks.
fn tagged(entry: &Entry, flows: &[Flow], events: &[Event]) -> Vec<Packet> {
    let params = AnyParams::read(entry.name, &mut Implied(entry.meta)).expect("an entry of the room");
    assert_eq!(params.check(&script::env()), []);
    let mut script =
        PolicyScript::new(Script::new(transport(), flows.to_vec()), PolicyHost::new(params.build(&script::env()), entry.meta, 0));
    script.host.table.keep_counters(entry.meta.counters.len());
    let sent = sent(flows, events, |act| match act {
        Act::Open(flow) => script.open(flow),
        Act::Packet(packet) => script.packet(packet),
        Act::Wait(time) => script.advance(script.host.now + time),
    });
    let blocks: Vec<u32> = sent.iter().filter(|packet| packet.has(Packet::TAGGED)).map(|packet| packet.rank).collect();
    assert_eq!(blocks.iter().collect::<BTreeSet<_>>().len(), blocks.len(), "{}: two packets have one tag", entry.name);
    sent.iter().for_each(|packet| packet.free(&mut script.host.ext));
    assert!(script.host.ext.is_empty(), "{}: a tag without a packet", entry.name);
    sent
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_policy_loses_or_duplicates_a_packet_or_a_tag(
        sizes in prop::collection::vec((1u64..200_000, any::<bool>()), 1..4),
        events in prop::collection::vec(prop_oneof![
            (0u32..3, 0u64..=8).prop_map(|(flow, eighths)| Event::Ack(flow, eighths)),
            (1u64..9_000).prop_map(Event::Wait),
        ], 0..20),
    ) {
        // Deadlines are later than all events: no policy has a reason to give a flow up.
        let flow = |(&(size, due), id): (&(u64, bool), u32)| Flow { deadline: due.then(|| Time::ZERO + Dur::from_secs(60)), ..script::flow(id, size) };
        let flows: Vec<Flow> = sizes.iter().zip(0..).map(flow).collect();
        let known = |event: &Event| !matches!(event, Event::Ack(flow, _) if *flow as usize >= flows.len());
        let events: Vec<Event> = events.into_iter().filter(known).collect();
        let content = |packet: &Packet| (packet.kind, packet.flow, packet.offset, packet.payload, packet.words, packet.sent_at);
        let wanted: Vec<_> = plain(&flows, &events).iter().map(content).collect();
        for entry in ENTRIES {
            let sent = tagged(entry, &flows, &events);
            // A policy may send packets of its own.
            let of_transport = sent.iter().filter(|packet| packet.kind.0 < crate::Kind::POLICY);
            prop_assert_eq!(of_transport.map(content).collect::<Vec<_>>(), wanted.clone(), "{}", entry.name);
            prop_assert_eq!(&sent, &tagged(entry, &flows, &events), "{}", entry.name);
        }
    }
}
