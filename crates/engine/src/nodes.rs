//! The nodes of a network and their next events, for runs in [windows](crate::windows).

use crate::agenda::Agenda;
use crate::nth::{nth, nth_mut};
use crate::ring::prefetch;
use base::{Dur, LinkId, Time};
use std::ops::Range;

/// The nodes of a network.
pub struct Nodes {
    /// By link: the nodes at which it starts and ends.
    pub ends: Vec<[u32; 2]>,
    /// By node: the ids of the links that start there.
    pub out: Vec<Range<u32>>,
    /// By waker: its node.
    pub wakers: Vec<u32>,
    /// By node: whether another engine has it; empty if this engine has all nodes.
    pub foreign: Vec<bool>,
}

/// Turns of nodes whose events are known.
pub const AHEAD: usize = 16;

/// The first arrivals of a node in a window, in order. A key has the time since the start of the
/// window in ps, then the place. Places are in the order of links, so that equal times are in the
/// order of the tree.
#[derive(Default)]
pub struct Due {
    pub keys: Vec<u64>,
    pub count: usize,
    /// The first arrival after the window.
    pub later: Time,
}

/// The node of links that end in another engine.
const FOREIGN: u32 = u32::MAX;

/// Where a link ends.
#[derive(Clone, Copy)]
struct Lane {
    /// The index of its first arrival in [`Windows::first`].
    place: u32,
    node: u32,
}

/// A node.
#[derive(Clone, Copy)]
pub struct WindowNode {
    /// The first place of the links that end here; those of the next node follow.
    places: u32,
    /// Its waker; the one that never wakes if it has none.
    pub waker: u32,
    /// The links that start here: the first one, and the one after the last.
    pub out: [u32; 2],
    /// Whether packets may wait in a discipline of its ports.
    pub waits: bool,
}

/// The state of runs in windows.
#[derive(Default)]
pub struct Windows {
    pub agenda: Agenda,
    /// The length of a window: at most the smallest delay of a link.
    pub width: Dur,
    /// By link.
    lanes: Box<[Lane]>,
    /// By waker: its node.
    wakers: Box<[u32]>,
    /// By node, and one more.
    pub nodes: Box<[WindowNode]>,
    /// By place: when the first packet arrives; `Time::MAX` if there is none.
    pub first: Box<[Time]>,
    /// By place: the link.
    pub links: Box<[u32]>,
    /// For how many windows the tree runs when the last flow may end soon. It doubles each time:
    /// towards the end there may be no flow that is sure to stay open.
    pub careful: u64,
    /// Whether windows are used even if they are slower.
    pub always: bool,
    /// How many events were handled by the tree when windows were thin the last time.
    pub thin: u64,
    /// Until this number of events the tree handles them.
    pub tree_until: u64,
    /// Events in windows, and turns of nodes, since it was last decided whether windows are thin.
    pub counts: [u64; 2],
    /// The nodes of a window.
    pub turns: Vec<u32>,
    /// The arrivals of the next nodes.
    pub due: [Due; AHEAD],
    /// By node: whether another engine has it; empty if this engine has all nodes. Then a run stays in
    /// windows when it pauses.
    pub foreign: Box<[bool]>,
}

impl Windows {
    /// Returns the state for these nodes. `width` is at most the smallest delay of a link.
    pub fn new(nodes: &Nodes, width: Dur, always: bool) -> Windows {
        let count = nodes.out.len();
        let mut wakers = vec![nodes.wakers.len() as u32; count];
        (0..).zip(&nodes.wakers).for_each(|(waker, node)| wakers[*node as usize] = waker);
        let mut links: Vec<u32> = (0..nodes.ends.len() as u32).collect();
        links.sort_by_key(|link| nodes.ends[*link as usize][1]);
        let mut lanes = vec![Lane { place: 0, node: 0 }; links.len()];
        let mut places = vec![0; count + 1];
        for (place, link) in (0..).zip(&links) {
            let node = nodes.ends[*link as usize][1];
            let is_foreign = nodes.foreign.get(node as usize).copied().unwrap_or(false);
            lanes[*link as usize] = Lane { place, node: if is_foreign { FOREIGN } else { node } };
            places[node as usize + 1] = place + 1;
        }
        for n in 1..=count {
            places[n] = places[n].max(places[n - 1]);
        }
        let node = |n: usize| {
            let out = nodes.out.get(n).map_or([0, 0], |out| [out.start, out.end]);
            WindowNode { places: places[n], waker: wakers.get(n).copied().unwrap_or(0), out, waits: false }
        };
        Windows {
            agenda: Agenda::new(count),
            width,
            lanes: lanes.into(),
            wakers: nodes.wakers.clone().into(),
            nodes: (0..=count).map(node).collect(),
            first: vec![Time::MAX; links.len()].into(),
            links: links.into(),
            careful: 8,
            always,
            thin: 0,
            tree_until: 0,
            counts: [0; 2],
            turns: Vec::new(),
            due: Default::default(),
            foreign: nodes.foreign.clone().into(),
        }
    }
    /// Notes the arrival of the first packet of a link.
    #[inline(always)]
    pub fn note(&mut self, link: LinkId, arrival: Time) {
        let Lane { place, node } = *nth(&self.lanes, link.index());
        *nth_mut(&mut self.first, place as usize) = arrival;
        if node != FOREIGN {
            self.agenda.note(node, arrival);
        }
    }
    /// Prefetches where a link ends.
    #[inline(always)]
    pub fn prefetch_lane(&self, link: u32) {
        prefetch(self.lanes.as_ptr().wrapping_add(link as usize));
    }
    /// Notes when a waker is woken.
    pub fn note_wake(&mut self, waker: u32, at: Time) {
        self.agenda.note(self.wakers[waker as usize], at);
    }
    /// Returns the places of the links that end at a node.
    #[inline(always)]
    pub fn places(&self, node: u32) -> Range<usize> {
        nth(&self.nodes, node as usize).places as usize..nth(&self.nodes, node as usize + 1).places as usize
    }
}
