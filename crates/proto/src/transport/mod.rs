//! Room: transports. One state machine per host owns all its flows; sender and receiver are in one
//! file.
//!
//! [`Transport`] is the contract.

use crate::contract::{Bursts, Cx, Env, SharedSequence, Timers, Transport};
use crate::flow::Sample;
use crate::kit::{burst, roce, tcp};
use crate::packet::Packet;
use crate::turns::RoundRobin;
use base::{FlowId, TimerKey};
use std::ops::Range;

pub mod aemon;
pub mod aeolus;
pub mod bbr;
pub mod botcp;
pub mod cubic;
pub mod d2tcp;
pub mod dcpim;
pub mod dcqcn;
pub mod dctcp;
pub mod expresspass;
pub mod homa;
pub mod hpcc;
pub mod l2dct;
pub mod mcp;
pub mod merp;
pub mod mptcp;
pub mod ndp;
pub mod newreno;
pub mod pdq;
pub mod pfabric;
pub mod phost;
pub mod plugin;
pub mod powertcp;
pub mod sird;
pub mod ssp;
pub mod swift;
pub mod tcp_ecn;
pub mod theta_powertcp;
pub mod timely;
pub mod uet;

base::registry! {
    room AnyTransport: Transport, env Env<'_>;
    named "transport", "transports", "transport": "the transport protocol of hosts";
    entries {
        newreno: NewReno on tcp::TEXT, tcp_ecn: TcpEcn on tcp::TEXT, dctcp: Dctcp on tcp::TEXT, d2tcp: D2tcp on tcp::TEXT,
        l2dct: L2dct on tcp::TEXT, mcp: Mcp on tcp::TEXT, aemon: Aemon on tcp::TEXT, botcp: Botcp on tcp::TEXT,
        cubic: Cubic on tcp::TEXT, bbr: Bbr on tcp::TEXT, swift: Swift on tcp::TEXT, mptcp: Mptcp on tcp::TEXT,
        plugin: Plugin on tcp::TEXT,
        pfabric: Pfabric, merp: Merp, pdq: Pdq, expresspass: ExpressPass, aeolus: Aeolus on burst::TEXT,
        ssp: Ssp on burst::TEXT, phost: Phost, homa: Homa, ndp: Ndp,
        dcqcn: Dcqcn on roce::TEXT, timely: Timely on roce::TEXT, hpcc: Hpcc on roce::TEXT,
        powertcp: PowerTcp on roce::TEXT, theta_powertcp: ThetaPowerTcp on roce::TEXT,
        sird: Sird, dcpim: Dcpim, uet: Uet,
    }
    methods {
        fn on_flow(&mut self, flow: FlowId, cx: &mut Cx<'_>);
        fn on_packet(&mut self, packet: &Packet, cx: &mut Cx<'_>);
        fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>);
        fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet>;
        fn turns(&mut self) -> Option<&mut RoundRobin>;
        fn next_of(&self, turn: FlowId) -> Option<(FlowId, Range<u64>)>;
        fn remove_sender(&mut self, flow: FlowId) -> bool;
        fn give_up(&mut self, flow: FlowId, cx: &mut Cx<'_>);
        fn on_path(&mut self, flow: FlowId, path: u16, alive: bool, cx: &mut Cx<'_>);
        fn sample(&self, flow: FlowId) -> Option<Sample>;
        fn timers(&self) -> Timers;
        fn bursts(&self) -> Bursts;
        fn shared_sequence(&self) -> Option<SharedSequence>;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::HostEvent;
    use crate::kit::pipe::{Fate, Pipe};
    use crate::kit::script::{self, Script};
    use crate::packet::Kind;
    use ::plugin::library::Library;
    use base::chosen::Chosen;
    use base::params::{Problem, Raw, Reader};
    use base::{Dur, Time};

    /// A transport to test: an entry, with the plug-in if it is that of plug-ins and not the default.
    #[derive(Clone, Copy)]
    struct Tested {
        name: &'static str,
        library: Option<&'static Library>,
    }

    /// All transports: every entry, and the whole transport that flowloom contains as a plug-in.
    fn all() -> impl Iterator<Item = Tested> {
        let entries = ENTRIES.iter().map(|entry| Tested { name: entry.name, library: None });
        entries.chain([Tested { name: "plugin", library: Some(Library::example_transport()) }])
    }

    impl Tested {
        fn params(self) -> AnyParams {
            AnyParams::read(self.name, &mut ForTests(self)).expect("an entry of the room")
        }
    }

    impl std::fmt::Display for Tested {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(self.library.map_or(self.name, |library| &library.name))
        }
    }

    /// Reads the parameters that an entry's META implies, and no others; used in tests.
    struct ForTests(Tested);

    impl Reader for ForTests {
        fn get(&mut self, name: &'static str) -> Option<Raw> {
            let meta = ROOM.entry(self.0.name).expect("an entry of the room").meta;
            let mut own = meta.implies.iter().filter_map(|(key, value)| Some((key.strip_prefix("transport.")?, value)));
            own.find(|(key, _)| *key == name).map(|(_, value)| Raw::Str((*value).to_owned()))
        }
        fn plugin(&self) -> Option<&'static Library> {
            self.0.library
        }
        fn fail(&mut self, key: &'static str, message: String) {
            panic!("{key}: {message}");
        }
    }

    /// A host with a flow of a hundred packets and a policy that receives its events.
    fn host(tested: Tested) -> Script<AnyTransport> {
        let mut host = Script::new(tested.params().build(&script::env()), vec![script::flow(0, 100 * 1460)]);
        host.io.has_policy = true;
        host
    }

    #[test]
    fn policies_receive_every_timeout_and_both_ends() {
        for tested in all() {
            let mut pipe = Pipe::new(host(tested), host(tested), Dur::from_us(50));
            let (mut data, mut ends) = (0, 0);
            // All packets sent at the start are lost, twice the last packets with their probes, and
            // twice the last one, so that only a timer can find the loss.
            pipe.run(|packet| {
                let ours = [Kind::DATA, Kind::PROBE].contains(&packet.kind);
                data += u32::from(ours);
                let is_end = packet.kind == Kind::DATA && packet.offset + u64::from(packet.payload) == 100 * 1460;
                ends += u32::from(is_end);
                let lost = packet.sent_at == Time::ZERO || ((98..104).contains(&data) && ours) || (is_end && ends <= 2);
                if lost { Fate::Drop } else { Fate::Pass }
            });
            let [sender, receiver] = &mut pipe.hosts;
            let timeouts = sender.table.get(FlowId(0)).stats.timeouts;
            let mut expected = vec![HostEvent::Timeout(FlowId(0)); timeouts as usize];
            expected.push(HostEvent::Close(FlowId(0)));
            assert_eq!(sender.io.events, expected, "{tested}");
            assert!(timeouts > 0, "{tested}: no timeout");
            assert_eq!(receiver.io.events, [HostEvent::Finish(FlowId(0))], "{tested}");
        }
    }

    /// Flows that take turns know the packet that they would send, also after losses.
    #[test]
    fn the_next_packet_is_known_before_it_is_sent() {
        let mut known = Vec::new();
        for tested in all() {
            let (mut sender, mut receiver) = (host(tested), host(tested).at_host(1));
            sender.nic_busy = true;
            let (mut flying, mut sent, mut again) = (sender.open(0), 0, 0);
            if sender.machine.turns().is_none() {
                continue;
            }
            for _ in 0..200 {
                while let Some((next, packet)) = sender.with(|machine, cx| {
                    let next = machine.next_of(FlowId(0));
                    machine.poll_transmit(cx).map(|packet| (next, packet))
                }) {
                    assert_eq!(next, Some((packet.flow, packet.bytes())), "{tested}: packet {sent}");
                    sent += 1;
                    again += u32::from(packet.has(Packet::RETX));
                    // MPTCP retransmits on the subflow of a packet, which it knows late.
                    if sent % 13 != 5 || tested.name == "mptcp" {
                        flying.push(packet);
                    }
                }
                let back: Vec<_> = flying.drain(..).flat_map(|packet| carry(packet, &mut sender, &mut receiver)).collect();
                (sender.now, receiver.now) = (sender.now.after(Dur::from_us(100)), receiver.now.after(Dur::from_us(100)));
                flying.extend(back.into_iter().flat_map(|packet| carry(packet, &mut receiver, &mut sender)));
                flying.extend(sender.advance(sender.now.after(Dur::from_ms(1))));
                for packet in receiver.advance(sender.now) {
                    flying.extend(carry(packet, &mut receiver, &mut sender));
                }
            }
            assert!(sent >= 20 && (again > 0 || tested.name == "mptcp"), "{tested}: {sent} packets, {again} retransmissions");
            known.push(tested.name);
        }
        assert!(
            ["newreno", "dctcp", "mcp", "dcqcn", "ndp", "mptcp", "plugin"].iter().all(|name| known.contains(name)),
            "{known:?}"
        );
    }

    #[test]
    fn samples_of_a_flow_are_correct() {
        for tested in all() {
            // Two packets and a byte.
            let (mut sender, mut receiver) = (host(tested), host(tested).at_host(1));
            for host in [&mut sender, &mut receiver] {
                host.flows[0] = script::flow(0, 2 * 1460 + 1);
            }
            let (mut flying, mut most, mut silent) = (sender.open(0), 0, false);
            while let Some(sample) = sender.machine.sample(FlowId(0)) {
                let payload = flying.iter().map(|packet| u64::from(packet.payload)).sum();
                // Without an acknowledgment per packet, a sender learns late which packets have
                // arrived.
                let known = if silent { sample.in_flight_bytes >= payload } else { sample.in_flight_bytes == payload };
                assert!(known, "{tested}: {} and {payload}", sample.in_flight_bytes);
                assert!(payload == 0 || sample.cwnd_bytes > 0 || sample.rate.0 > 0, "{tested}");
                most = most.max(sample.srtt.0);
                let back: Vec<_> = flying.drain(..).flat_map(|packet| carry(packet, &mut sender, &mut receiver)).collect();
                silent |= payload > 0 && back.iter().all(|packet| packet.kind != Kind::ACK);
                sender.now = sender.now.after(Dur::from_us(100));
                receiver.now = sender.now;
                flying.extend(back.into_iter().flat_map(|packet| carry(packet, &mut receiver, &mut sender)));
                flying.extend(sender.advance(sender.now));
                for packet in receiver.advance(receiver.now) {
                    flying.extend(carry(packet, &mut receiver, &mut sender));
                }
            }
            // Some transports measure no round trip.
            assert!([0, 100_000_000].contains(&most), "{tested}: {most}");
        }
    }

    #[test]
    fn a_flow_can_be_given_up_at_any_time() {
        for tested in all() {
            for answered in [false, true] {
                let (mut sender, mut receiver) = (host(tested), host(tested).at_host(1));
                // More than any transport sends in three round trips.
                for host in [&mut sender, &mut receiver] {
                    host.flows[0] = script::flow(0, 10_000 * 1460);
                }
                let mut flying = sender.open(0);
                for _ in 0..3 * u32::from(answered) {
                    let back: Vec<_> = flying.drain(..).flat_map(|packet| carry(packet, &mut sender, &mut receiver)).collect();
                    flying.extend(back.into_iter().flat_map(|packet| carry(packet, &mut receiver, &mut sender)));
                }
                assert!(sender.machine.sample(FlowId(0)).is_some());
                sender.give_up(0);
                let record = sender.table.get(FlowId(0));
                assert!(record.closed && record.terminated && sender.table.all_done(), "{tested}");
                assert_eq!(sender.io.events.back(), Some(&HostEvent::Close(FlowId(0))), "{tested}");
                assert_eq!(sender.machine.sample(FlowId(0)), None, "{tested}");
                // The host sends no packets after that, whatever is still answered, and an unknown
                // flow cannot be given up.
                let back: Vec<_> = flying.drain(..).flat_map(|packet| carry(packet, &mut sender, &mut receiver)).collect();
                let late: Vec<_> = back.into_iter().flat_map(|packet| carry(packet, &mut receiver, &mut sender)).collect();
                assert_eq!((late, sender.give_up(0), sender.advance(Time(u64::MAX / 2))), (vec![], vec![], vec![]), "{tested}");
            }
        }
    }

    /// On a path of 80 ms every default timeout leaves time for an answer, and no default is
    /// refused.
    #[test]
    fn no_default_timer_is_below_the_round_trip_of_the_path() {
        let env = Env { max_rtt: Dur::from_ms(80), ..script::env() };
        for tested in all() {
            let params = tested.params();
            let Timers { first, least, .. } = params.build(&env).timers();
            for timeout in first.into_iter().chain(least) {
                assert!(timeout.after >= env.max_rtt, "{tested}: `{}` is {}", timeout.key, timeout.after);
            }
            let about_times = |problem: &Problem| problem.message.contains("round trip");
            assert!(!params.check(&env).iter().any(about_times), "{tested}: {:?}", params.check(&env));
        }
    }

    /// `check` and manifests show what is chosen for every `auto`.
    #[test]
    fn every_value_chosen_for_auto_is_recorded() {
        let (offers, mut given) = (script::offers(), 0);
        for entry in ENTRIES {
            let chosen = Chosen::default();
            let env = Env { offered: &offers, chosen: Some(&chosen), ..script::env() };
            AnyParams::read(entry.name, &mut script::AllAuto(entry)).expect("an entry of the room").build(&env);
            let (mut recorded, mut wanted): (Vec<_>, _) =
                (chosen.into_values().into_iter().map(|(key, _)| key).collect(), script::can_be_auto(entry));
            recorded.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(recorded, wanted, "{}: resolve parameters with `Env::auto`", entry.name);
            given += wanted.len();
        }
        assert!(given > 100, "{given}");
    }

    /// Moves a packet and its header from one host to the other. Returns the answers.
    fn carry(mut packet: Packet, from: &mut Script<AnyTransport>, to: &mut Script<AnyTransport>) -> Vec<Packet> {
        if packet.has(Packet::EXT) {
            let block = *from.ext.get(packet.ext());
            from.ext.remove(packet.ext());
            packet.words[0] = u64::from(to.ext.insert(block));
        }
        let answers = to.packet(packet);
        packet.free(&mut to.ext);
        answers
    }
}
