//! The router `mine`: so far, after a pause of more than `gap`, a flow takes the next hop at whose port the fewest bytes wait.
//!
//! Flowlets: Kandula et al., "Dynamic Load Balancing Without Packet Reordering", CCR 2007.

use flowloom_plugin::abi::{Packet, Parameter, Type};
use flowloom_plugin::router::{BOTH_WAYS, Calls, Candidate, Hop, Network, Router};
use flowloom_plugin::{Declaration, Values};

const FLOWLETS: usize = 1024;

/// The router of the network.
struct Flowlets {
    gap_ps: u64,
}

/// A flowlet at a switch.
#[derive(Clone, Copy)]
struct Flowlet {
    link: u64,
    last_ps: u64,
}

impl Router for Flowlets {
    /// Flows share a flowlet by the hash of their five-tuple.
    type State = Vec<Option<Flowlet>>;
    const DECLARATION: Declaration = Declaration {
        source: c"Kandula et al., CCR 2007",
        parameters: &[Parameter::new(Type::Time, c"gap", c"100us", c"Pause that ends a flowlet.")
            .range(c"0s", c"1s")
            .source(c"the longest round trip of most networks")],
        ..Declaration::new(c"mine", c"each flowlet begins at the shortest queue, to be changed")
    };
    const DECIDES: u32 = BOTH_WAYS;
    const LOADS: bool = true;
    const CALLS: Calls = Calls { choose: false, decide: true };

    fn create(_network: &Network, values: Values<'_>) -> Result<Self, String> {
        Ok(Flowlets { gap_ps: values.integer(0) })
    }

    fn open(&self, _node: u64) -> Self::State {
        vec![None; FLOWLETS]
    }

    fn decide(&self, flowlets: &mut Self::State, hop: &Hop, _packet: &Packet, candidates: &[Candidate]) -> u64 {
        let flowlet = &mut flowlets[hop.hash as usize % FLOWLETS];
        let going_on = flowlet.filter(|flowlet| hop.now_ps - flowlet.last_ps <= self.gap_ps);
        // A new flowlet, or the link of the old one is down.
        let chosen = going_on
            .and_then(|flowlet| candidates.iter().position(|candidate| candidate.link == flowlet.link))
            .or_else(|| (0..candidates.len()).min_by_key(|index| candidates[*index].waiting))
            .unwrap_or(0);
        *flowlet = Some(Flowlet { link: candidates[chosen].link, last_ps: hop.now_ps });
        chosen as u64
    }
}

flowloom_plugin::export!(router, Flowlets);

/// Packets in, next hops out.
#[cfg(test)]
mod tests {
    use super::*;
    use flowloom_plugin::abi::Value;

    const US: u64 = 1_000_000;

    #[test]
    fn flowlets_stay_together_and_begin_at_the_shortest_queue() {
        let network = Network { nodes: 6, links: 16, hosts: 4, max_rtt_ps: 20 * US, seed: 1 };
        let router = Flowlets::create(&network, Values(&[Value(10 * US)])).unwrap();
        let mut switch = router.open(4);
        // The index of the next hop of a packet of a flow, with the links that are up and the bytes that wait there.
        let mut decide = |now_us: u64, hash: u32, up: &[(u64, u64)]| {
            let hop = Hop { now_ps: now_us * US, node: 4, flow: 0, src: 0, dst: 3, src_port: 1, dst_port: 2, protocol: 6, hash };
            let candidate = |&(link, waiting)| Candidate { link, waiting, ..Candidate::default() };
            router.decide(&mut switch, &hop, &Packet::EMPTY, &up.iter().map(candidate).collect::<Vec<_>>())
        };
        assert_eq!(decide(0, 7, &[(8, 9000), (9, 500)]), 1, "the shortest queue");
        assert_eq!(decide(10, 7, &[(8, 0), (9, 9000)]), 1, "a pause of exactly the gap does not end the flowlet");
        assert_eq!(decide(10, 8, &[(8, 0), (9, 9000)]), 0, "another flow");
        assert_eq!(decide(21, 7, &[(8, 0), (9, 9000)]), 0, "a new flowlet");
        assert_eq!(decide(22, 7, &[(9, 9000), (10, 0)]), 1, "its link is down");
    }
}
