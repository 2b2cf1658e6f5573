//! Packet spraying: each packet takes its own next hop, independent of its flow.
//!
//! Source: Dixit et al., "On the Impact of Packet Spraying in Data Center Networks", INFOCOM 2013 (random); Cao et al., "Per-packet
//! Load-balanced, Low-Latency Routing for Clos-based Data Center Networks", CoNEXT 2013, section 3 (round robin).
//!
//! Model: packets of a flow overtake each other, so a transport that interprets reordering as loss
//! performs badly; transports on the TCP machine do not with `dup_threshold = "never"`. The flow engine has no packets that could overtake: each switch divides the rate
//! of a flow equally among the live next hops, which is the mean of both modes.
//!
//! | parameter | default | from |
//! |---|---|---|
//! | `mode` | `random` | Dixit et al. section III |
//!
//! Assumed:
//! - Acknowledgments are sprayed like data.
//! - `round_robin` keeps one turn per switch and set of next hops, like a switch that stores it in
//!   the route entry; all turns begin at the first next hop. The next hop is chosen at each switch
//!   on the way up, not by the source for the whole path as in Cao et al. ns-2 keeps a turn per switch and destination
//!   host: with fast retransmit its means differ by up to a fifth, without (`dup_threshold = "never"`) by 0.4 %.

use super::{Decides, Duties, Env, Router};
use crate::paths::FiveTuple;
use base::params::Problem;
use base::registry::Meta;
use base::{LinkId, NodeId, Rng};

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "packet spraying: each packet takes its own next hop",
    source: "Dixit et al., INFOCOM 2013; Cao et al., CoNEXT 2013",
    ..Meta::PLAIN
};

base::choice! {
    /// How a packet's next hop is chosen.
    pub enum Mode {
        /// Uniform and independent for each packet.
        Random = "random",
        /// In turn.
        RoundRobin = "round_robin",
    }
}

base::params! {
    /// Parameters of packet spraying.
    pub struct Params {
        /// How a packet's next hop is chosen.
        mode: Mode = "random", "Dixit et al. section III";
    }
}

/// Returns the problems of parameters that depend on the network.
pub fn check(_params: &Params, _env: &Env<'_>) -> Vec<Problem> {
    Vec::new()
}

/// The state of all switches.
pub enum Spray {
    /// The random number generator of each node.
    Random(Vec<Rng>),
    /// For each set of next hops, by its first link: the turn.
    RoundRobin(Vec<u32>),
}

impl Spray {
    /// Returns the router of a network.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        match params.mode {
            Mode::Random => {
                let nodes = 0..env.net.nodes().len() as u64;
                Spray::Random(nodes.map(|node| Rng::stream(env.seed, "router/pick", &[node])).collect())
            }
            Mode::RoundRobin => Spray::RoundRobin(vec![0; env.net.links().len()]),
        }
    }
    /// Returns that the router decides for every packet at each switch with several next hops.
    pub fn duties(_params: &Params, _env: &Env<'_>) -> Duties {
        Duties { decides: Decides::Evenly, ..Duties::PLAN }
    }
}

impl Router for Spray {
    fn choose(&mut self, at: NodeId, _path: &FiveTuple, candidates: &[LinkId]) -> u32 {
        let n = candidates.len() as u32;
        match self {
            Spray::Random(nodes) => nodes[at.index()].below(u64::from(n)) as u32,
            Spray::RoundRobin(turns) => {
                let turn = &mut turns[candidates[0].index()];
                let chosen = *turn % n;
                *turn = chosen + 1;
                chosen
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{Net, NetBuilder};
    use crate::routes::Routes;
    use base::{Dur, Rate};

    const TUPLE: FiveTuple = FiveTuple { src: 1, dst: 2, protocol: 6, src_port: 3, dst_port: 4 };

    /// A switch with 8 cables to another.
    fn net() -> Net {
        let mut b = NetBuilder::default();
        let (s, t) = (b.switch("s", 1), b.switch("t", 1));
        for _ in 0..8 {
            b.cable(s, t, Rate::from_gbps(1), Dur::from_us(1));
        }
        b.build()
    }
    fn spray(net: &Net, mode: Mode, seed: u64) -> Spray {
        Spray::new(
            &Params { mode },
            &Env { net, routes: &Routes::new(net, &[]), seed, max_rtt: base::Dur::ZERO, given: base::Given::none() },
        )
    }
    fn picks(router: &mut Spray, at: u32, candidates: &[LinkId], n: usize) -> Vec<u32> {
        (0..n).map(|_| router.choose(NodeId(at), &TUPLE, candidates)).collect()
    }

    #[test]
    fn round_robin_takes_turns_per_set() {
        let net = net();
        let mut router = spray(&net, Mode::RoundRobin, 1);
        let (a, b) = ([0, 1, 2].map(LinkId), [3, 4].map(LinkId));
        assert_eq!(picks(&mut router, 0, &a, 4), [0, 1, 2, 0]);
        assert_eq!(picks(&mut router, 0, &b, 3), [0, 1, 0]);
        assert_eq!(picks(&mut router, 0, &a, 2), [1, 2]);
        // One next hop of the set has failed.
        assert_eq!(picks(&mut router, 0, &a[..2], 3), [1, 0, 1]);
    }

    #[test]
    fn random_choices_are_uniform_and_independent() {
        let net = net();
        let links = [0, 1, 2, 3].map(LinkId);
        let chosen = picks(&mut spray(&net, Mode::Random, 1), 0, &links, 32_000);
        let mut pairs = [0.0; 16];
        for pair in chosen.chunks(2) {
            pairs[(4 * pair[0] + pair[1]) as usize] += 1.0;
        }
        let chi: f64 = pairs.iter().map(|c| (c - 1000.0) * (c - 1000.0) / 1000.0).sum();
        // 99.9 % quantile of chi-square with 15 degrees of freedom.
        assert!(chi < 37.697, "{pairs:?}: {chi}");
    }

    #[test]
    fn random_choices_depend_on_seed_and_switch() {
        let net = net();
        let links = [0, 1, 2, 3].map(LinkId);
        let draw = |seed, at| picks(&mut spray(&net, Mode::Random, seed), at, &links, 100);
        assert_eq!(draw(1, 0), draw(1, 0));
        assert_ne!(draw(1, 0), draw(2, 0));
        assert_ne!(draw(1, 0), draw(1, 1));
    }
}
