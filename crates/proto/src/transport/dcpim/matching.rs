//! One step of parallel iterative matching: a host chooses among the bids that it has received. Senders choose among
//! REQUESTs, receivers among GRANTs.

use super::CHOOSE;
use super::config::Config;
use super::header::{GRANT, Offer};
use crate::contract::Cx;
use crate::packet::Packet;
use base::{FlowId, Rng};

/// A REQUEST at a sender, or a GRANT at a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bid {
    /// The flow that it names.
    pub flow: FlowId,
    /// Number of packets of this flow that have not arrived.
    pub missing: u32,
    /// Number of channels.
    pub channels: u8,
}

/// Gives `free` channels to bids, to those with the fewest missing packets first if `shortest`, else in random order.
/// Each chosen bid is passed to `take` with the channels that it gets. Removes all bids.
pub fn choose(bids: &mut Vec<Bid>, mut free: u8, shortest: bool, rng: &mut Rng, mut take: impl FnMut(Bid)) {
    if shortest {
        bids.sort_unstable_by_key(|bid| std::cmp::Reverse((bid.missing, bid.flow)));
    }
    while free > 0 && !bids.is_empty() {
        let at = if shortest { bids.len() - 1 } else { rng.below(bids.len() as u64) as usize };
        let bid = bids.swap_remove(at);
        let channels = bid.channels.min(free);
        free -= channels;
        take(Bid { channels, ..bid });
    }
    bids.clear();
}

/// The REQUESTs at a sender, and the channels that were accepted.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    bids: Vec<Bid>,
    round: u64,
    /// The phase in which channels were accepted, and their number.
    accepted: (u64, u8),
}

impl Requests {
    /// Handles a REQUEST: the sender chooses in the middle of the round.
    pub fn on_request(&mut self, config: &Config, packet: &Packet, cx: &mut Cx<'_>) {
        let Offer { round, channels, missing } = packet.get();
        let at = config.start(round).after(config.round / 2);
        if cx.now > at || round < self.round {
            // It is too late for this round.
            return;
        }
        if round > self.round {
            self.bids.clear();
            self.round = round;
        }
        self.bids.push(Bid { flow: packet.flow, missing, channels });
        cx.arm_host(CHOOSE, at);
    }

    /// Grants the channels that are free in this phase.
    pub fn grant(&mut self, config: &Config, cx: &mut Cx<'_>) {
        let (round, phase) = (self.round, self.round / config.rounds);
        let used = if self.accepted.0 == phase { self.accepted.1 } else { 0 };
        let (io, rng) = (&mut *cx.io, &mut *cx.rng);
        choose(&mut self.bids, config.channels.saturating_sub(used), config.shortest_first(round), rng, |bid| {
            let mut grant = Packet::new(bid.flow, GRANT, config.header);
            grant.set(Offer { round, channels: bid.channels, missing: bid.missing });
            io.control.push_back(grant);
        });
    }

    /// Handles an ACCEPT.
    pub fn on_accept(&mut self, config: &Config, packet: &Packet) {
        let Offer { round, channels, .. } = packet.get();
        let phase = round / config.rounds;
        if phase > self.accepted.0 {
            self.accepted = (phase, 0);
        }
        if phase == self.accepted.0 {
            self.accepted.1 = self.accepted.1.saturating_add(channels);
        }
    }
}
