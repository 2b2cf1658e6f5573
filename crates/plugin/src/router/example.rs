//! Packet spraying in turn: each packet takes the next one of its next hops.
//!
//! Source: Cao et al., "Per-packet Load-balanced, Low-Latency Routing for Clos-based Data Center Networks", CoNEXT 2013, section 3.

use crate::abi::Packet;
use crate::author::{Declaration, Values};
use crate::router::{BOTH_WAYS, Calls, Candidate, Hop, Network, Router};

/// The router of a network.
pub struct Example;

impl Router for Example {
    /// The turn of each set of next hops, by the first link of the set.
    type State = Vec<(u64, u64)>;
    const DECLARATION: Declaration = Declaration {
        source: c"Cao et al., CoNEXT 2013, section 3",
        ..Declaration::new(c"example", c"packet spraying in turn: each packet takes the next one of its next hops")
    };
    const DECIDES: u32 = BOTH_WAYS;
    const CALLS: Calls = Calls { choose: false, decide: true };

    fn create(_network: &Network, _values: Values<'_>) -> Result<Self, String> {
        Ok(Example)
    }

    fn open(&self, _node: u64) -> Self::State {
        Vec::new()
    }

    fn decide(&self, turns: &mut Self::State, _hop: &Hop, _packet: &Packet, candidates: &[Candidate]) -> u64 {
        let (first, count) = (candidates[0].link, candidates.len() as u64);
        let at = turns.iter().position(|(link, _)| *link == first).unwrap_or_else(|| {
            turns.push((first, 0));
            turns.len() - 1
        });
        let chosen = turns[at].1 % count;
        turns[at].1 = chosen + 1;
        chosen
    }
}
