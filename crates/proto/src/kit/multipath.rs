//! Load balancing over paths by entropy values: the choice of the path of each packet of a flow,
//! with feedback about the path of each answer.
//!
//! An entropy value (EV) is a number that a sender writes into a packet and that switches hash in
//! addition to the addresses. Packets with different EVs take different paths; several EVs may
//! share a path.
//!
//! Source: uet-htsim, the simulator of the Ultra Ethernet Consortium (UEC), uec_mp.cpp and buffer_reps.cpp; T. Bonato et al., "REPS: Recycled Entropy
//! Packet Spraying for Adaptive Load Balancing and Failure Mitigation", EuroSys 2026, arXiv 2407.21625,
//! for the idea of `reps`. The rules are those of the program.
//!
//! Assumed: the text of the Ultra Ethernet specification was not read; all rules are those of the
//! program. As notes of readers summarize section 3.6.16, `bitmap` and `reps` are its examples; it
//! recommends 256 EVs, and that a marked EV rests for a round trip unless half of the paths are
//! congested. A flow with a single path keeps its EV; section 3.6.16.2 permits a change after
//! congestion, when the flow is idle or every ten round trips.
//!
//! Deviates: EVs are 0 to `entropies` - 1. The program adds random upper bits, the same for all
//! packets of a flow, to the EVs of `oblivious` and `bitmap`; here the hash of switches covers the
//! flow's addresses and ports, so that flows between the same hosts take different paths in any
//! case. The program does not keep the EVs of packets and reports EV 0 at a timeout
//! (UNKNOWN_EV); here the sender reports the EV of the lost packet. `reps` also freezes if switches
//! do not trim, where the program stops with an error. Each unmarked ACK allows one packet on its
//! EV; the program has a constant for more (repsMaxLifetimeEntropy = 1).
//!
//! `reps` of the program and the algorithms of the paper agree in the buffer of 8 EVs, in which an
//! unmarked ACK overwrites the oldest EV, in the order in which EVs are taken, each once, and in random EVs
//! if there is none, as for the first packets of a flow. They differ in these rules, which were compared with
//! a translation of the paper and with the program of its authors (REPS_EuroSys_Artifact at b751588), since the
//! paper itself was not at hand:
//!
//! | rule | program, and here | paper |
//! |---|---|---|
//! | a flow freezes (algorithm 1, appendix A) | after a timeout; the program needs trimming | after a timeout if ports trim; otherwise if no round trip was long before it: 1.65 unloaded ones in its program |
//! | EVs of a frozen flow (algorithm 2) | all slots of the buffer in turn | EVs that were not taken, oldest first; if there are none, all slots in turn |
//! | the end (algorithm 1) | the first answer of any kind after 10 ms; the buffer is emptied | the first unmarked ACK after a constant time, 100 us in runs of its program; the buffer is kept, but its program empties it |
//! | exploration after the end (algorithm 2) | 16 packets with random EVs | as many packets as a bandwidth-delay product has |
//! | a flow that was idle for long (section 3.1) | goes on with its buffer | sends random EVs for a bandwidth-delay product |
//! | number of EVs (section 4.7) | 64 | 65 536; 256 suffice |
//!
//! `reps_freeze` and `reps_explore` set the third and fourth rule; the buffer is emptied in any case.

use base::params::Problem;
use base::{Dur, Rng, Time};
use std::collections::VecDeque;

base::choice! {
    /// How a sender chooses the entropy value of a packet.
    pub enum LoadBalancing {
        /// All values in turn, in an order that is drawn again for each pass.
        Oblivious = "oblivious",
        /// As `oblivious`, without values that have a penalty for marks, trimmed packets or
        /// timeouts.
        Bitmap = "bitmap",
        /// The values of recent unmarked ACKs, otherwise random values. After a timeout, only
        /// values of recent unmarked ACKs for a while.
        Reps = "reps",
        /// All values in turn in the first window, then the values of unmarked ACKs, each once,
        /// otherwise random values.
        RepsLegacy = "reps_legacy",
        /// The values of unmarked ACKs, each once, otherwise as `bitmap`.
        Mixed = "mixed",
    }
}

base::params! {
    /// Options of load balancing by entropy values.
    pub struct MultipathOptions {
        /// How a sender chooses the entropy value of a packet: `oblivious`, all in turn; `bitmap`, without values
        /// that have a penalty; `reps` and `reps_legacy`, values of unmarked ACKs first, then random values;
        /// `mixed`, values of unmarked ACKs first, then as `bitmap`.
        load_balancing: LoadBalancing = "mixed", "UEC's simulator, main_uec.cpp";
        /// Number of entropy values of a flow, a power of two.
        entropies: u32 = "64" in 1..=16_384, "UEC's simulator, main_uec.cpp: path_entropy_size";
        /// Penalty of an entropy value for a mark, with `bitmap` and `mixed`. A value with a penalty is skipped when its
        /// turn comes, and its penalty decreases by one.
        mark_penalty: u32 = "1" in 0..=255, "UEC's simulator, UecMpBitmap::processEv";
        /// Penalty of an entropy value for a trimmed packet.
        trim_penalty: u32 = "4" in 0..=255, "UEC's simulator, UecMpBitmap::processEv";
        /// Largest penalty of an entropy value; also the penalty for a timeout.
        max_penalty: u32 = "15" in 1..=255, "UEC's simulator, UecMpBitmap::UecMpBitmap";
        /// Number of entropy values that `reps` keeps.
        reps_buffer: u32 = "8" in 1..=16_384, "UEC's simulator, buffer_reps.cpp: repsBufferSize";
        /// Time after a timeout for which `reps` takes only entropy values of its buffer; `0s`: it never does.
        reps_freeze: Dur = "10ms" in Dur::ZERO..=Dur::from_secs(60), "UEC's simulator, buffer_reps.cpp: exit_freeze_after";
        /// Number of packets with random entropy values that `reps` sends after that time.
        reps_explore: u32 = "16" in 0..=1_000_000, "UEC's simulator, UecMpReps::processEv";
    }
}

impl MultipathOptions {
    /// Returns the contradictions between options.
    pub fn check(&self) -> Vec<Problem> {
        let problem = || Problem {
            key: "entropies",
            message: format!("`{}` is not a power of two", self.entropies),
            hint: format!("write `{}` or `{}`", self.entropies.next_power_of_two() / 2, self.entropies.next_power_of_two()),
        };
        (!self.entropies.is_power_of_two()).then(problem).into_iter().collect()
    }
}

/// The answer to a packet, as feedback about its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathFeedback {
    /// The packet arrived without a mark.
    Good,
    /// The packet arrived with a mark.
    Marked,
    /// A switch trimmed the packet.
    Trimmed,
    /// No answer arrived in time.
    Timeout,
}

/// The load balancer of one flow at its sender.
#[derive(Clone, Debug)]
pub struct Multipath {
    /// Number of EVs, a power of two.
    entropies: u16,
    balancer: Balancer,
}

#[derive(Clone, Debug)]
enum Balancer {
    /// The EV of all packets: a single path.
    Single(u16),
    Oblivious(EvWalk),
    Bitmap(SkipMap),
    Reps(RepsBuffer),
    /// The EVs to reuse, oldest first, and the EV of the last packet.
    Legacy(VecDeque<u16>, u16),
    /// The EVs to reuse, oldest first.
    Mixed(VecDeque<u16>, SkipMap),
}

impl Multipath {
    /// Creates the load balancer of a flow that sends all packets with one EV, drawn at random.
    pub fn single(options: &MultipathOptions, rng: &mut Rng) -> Multipath {
        let entropies = options.entropies as u16;
        Multipath { entropies, balancer: Balancer::Single(draw(entropies, rng)) }
    }

    /// Creates the load balancer of a flow that has sent nothing.
    pub fn new(options: &MultipathOptions, rng: &mut Rng) -> Multipath {
        let entropies = options.entropies as u16;
        let balancer = match options.load_balancing {
            LoadBalancing::Oblivious => Balancer::Oblivious(EvWalk::new(entropies, rng)),
            LoadBalancing::Bitmap => Balancer::Bitmap(SkipMap::new(options, rng)),
            LoadBalancing::Reps => Balancer::Reps(RepsBuffer::new(options)),
            LoadBalancing::RepsLegacy => Balancer::Legacy(VecDeque::new(), 0),
            LoadBalancing::Mixed => Balancer::Mixed(VecDeque::new(), SkipMap::new(options, rng)),
        };
        Multipath { entropies, balancer }
    }

    /// Returns the EV of the next packet of a flow that has sent `sent` packets and has a window of
    /// `window` packets (UecMultipath::nextEntropy).
    pub fn next(&mut self, sent: u64, window: u64, rng: &mut Rng) -> u16 {
        let entropies = self.entropies;
        match &mut self.balancer {
            Balancer::Single(entropy) => *entropy,
            Balancer::Oblivious(walk) => walk.next(rng),
            Balancer::Bitmap(skip) => skip.next(rng),
            Balancer::Reps(buffer) => buffer.next().unwrap_or_else(|| draw(entropies, rng)),
            Balancer::Legacy(reuse, last) => {
                *last = if sent < window.min(entropies.into()) {
                    (*last + 1) % entropies
                } else {
                    reuse.pop_front().unwrap_or_else(|| draw(entropies, rng))
                };
                *last
            }
            Balancer::Mixed(reuse, skip) => reuse.pop_front().unwrap_or_else(|| skip.next(rng)),
        }
    }

    /// Handles the answer at `now` to a packet with this EV (UecMultipath::processEv).
    pub fn heard(&mut self, entropy: u16, feedback: PathFeedback, now: Time) {
        let entropy = entropy & (self.entropies - 1);
        match &mut self.balancer {
            Balancer::Single(_) | Balancer::Oblivious(_) => {}
            Balancer::Bitmap(skip) => skip.heard(entropy, feedback),
            Balancer::Reps(buffer) => buffer.heard(entropy, feedback, now),
            Balancer::Legacy(reuse, _) => reuse.extend((feedback == PathFeedback::Good).then_some(entropy)),
            Balancer::Mixed(reuse, skip) => {
                skip.heard(entropy, feedback);
                reuse.extend((feedback == PathFeedback::Good).then_some(entropy));
            }
        }
    }
}

/// Draws an EV.
fn draw(entropies: u16, rng: &mut Rng) -> u16 {
    rng.below(entropies.into()) as u16
}

/// Passes over all EVs. In each pass the order is 0, 1, 2, ... with the bits of a random number
/// inverted; the number is drawn again for the next pass (UecMpOblivious).
#[derive(Clone, Debug)]
struct EvWalk {
    entropies: u16,
    index: u16,
    xor: u16,
}

impl EvWalk {
    fn new(entropies: u16, rng: &mut Rng) -> EvWalk {
        EvWalk { entropies, index: 0, xor: draw(entropies, rng) }
    }
    fn current(&self) -> u16 {
        self.index ^ self.xor
    }
    fn advance(&mut self, rng: &mut Rng) {
        self.index += 1;
        if self.index == self.entropies {
            (self.index, self.xor) = (0, draw(self.entropies, rng));
        }
    }
    fn next(&mut self, rng: &mut Rng) -> u16 {
        let entropy = self.current();
        self.advance(rng);
        entropy
    }
}

/// Passes over all EVs without those that have a penalty (UecMpBitmap).
#[derive(Clone, Debug)]
struct SkipMap {
    walk: EvWalk,
    /// Penalties by EV.
    penalties: Vec<u8>,
    mark: u8,
    trim: u8,
    max: u8,
}

impl SkipMap {
    fn new(options: &MultipathOptions, rng: &mut Rng) -> SkipMap {
        SkipMap {
            walk: EvWalk::new(options.entropies as u16, rng),
            penalties: vec![0; options.entropies as usize],
            mark: options.mark_penalty as u8,
            trim: options.trim_penalty as u8,
            max: options.max_penalty as u8,
        }
    }
    fn has_penalty(&self) -> bool {
        self.penalties[usize::from(self.walk.current())] > 0
    }
    /// Returns the next EV without a penalty. Only the first EV that is skipped loses one unit of
    /// its penalty. If all EVs have a penalty, the EV after one full pass is taken
    /// (UecMpBitmap::nextEntropy).
    fn next(&mut self, rng: &mut Rng) -> u16 {
        if self.has_penalty() {
            self.penalties[usize::from(self.walk.current())] -= 1;
            for _ in 0..self.walk.entropies {
                self.walk.advance(rng);
                if !self.has_penalty() {
                    break;
                }
            }
        }
        self.walk.next(rng)
    }
    /// Adds the penalty for an answer (UecMpBitmap::processEv).
    fn heard(&mut self, entropy: u16, feedback: PathFeedback) {
        let more = match feedback {
            PathFeedback::Good => 0,
            PathFeedback::Marked => self.mark,
            PathFeedback::Trimmed => self.trim,
            PathFeedback::Timeout => self.max,
        };
        let penalty = &mut self.penalties[usize::from(entropy)];
        *penalty = penalty.saturating_add(more).min(self.max);
    }
}

/// The most recent EVs of unmarked ACKs (UecMpReps, CircularBufferREPS).
#[derive(Clone, Debug)]
struct RepsBuffer {
    /// The EVs: a circular buffer.
    slots: Vec<u16>,
    size: usize,
    /// The slot that is written next.
    head: usize,
    /// Number of EVs before `head` that were not taken.
    fresh: usize,
    freeze: Dur,
    /// End of the time in which only EVs of the buffer are taken, and the slot that is read next.
    frozen: Option<(Time, usize)>,
    explore: u32,
    /// Number of packets that take random EVs.
    exploring: u32,
}

impl RepsBuffer {
    fn new(options: &MultipathOptions) -> RepsBuffer {
        let size = options.reps_buffer as usize;
        RepsBuffer {
            slots: Vec::new(),
            size,
            head: 0,
            fresh: 0,
            freeze: options.reps_freeze,
            frozen: None,
            explore: options.reps_explore,
            exploring: 0,
        }
    }
    /// Returns the EV of the next packet; `None` if the EV is random (UecMpReps::nextEntropy).
    fn next(&mut self) -> Option<u16> {
        if self.exploring > 0 {
            self.exploring -= 1;
            return None;
        }
        if let Some((_, next)) = &mut self.frozen {
            // CircularBufferREPS::remove_frozen: all EVs in turn, whether taken before or not.
            let entropy = self.slots.get(*next).copied();
            *next = (*next + 1) % self.slots.len().max(1);
            return entropy;
        }
        // CircularBufferREPS::remove_earliest_fresh.
        let oldest = (self.head + self.size).checked_sub(self.fresh).filter(|_| self.fresh > 0)?;
        self.fresh -= 1;
        Some(self.slots[oldest % self.size])
    }
    /// Handles an answer (UecMpReps::processEv).
    fn heard(&mut self, entropy: u16, feedback: PathFeedback, now: Time) {
        if feedback == PathFeedback::Timeout && self.frozen.is_none() && self.exploring == 0 && self.freeze > Dur::ZERO {
            self.frozen = Some((now.after(self.freeze), 0));
        }
        if self.frozen.is_some_and(|(until, _)| now > until) {
            self.slots.clear();
            (self.head, self.fresh, self.frozen, self.exploring) = (0, 0, None, self.explore);
        }
        if feedback == PathFeedback::Good {
            self.add(entropy);
        }
    }
    /// Overwrites the oldest EV (CircularBufferREPS::add).
    fn add(&mut self, entropy: u16) {
        if self.slots.len() < self.size {
            self.slots.push(entropy);
        } else {
            self.slots[self.head] = entropy;
        }
        self.head = (self.head + 1) % self.size;
        self.fresh = (self.fresh + 1).min(self.size);
    }
}

#[cfg(test)]
mod tests {
    use super::PathFeedback::{Good, Marked, Timeout, Trimmed};
    use super::*;
    use base::params::Params as _;

    fn options(load_balancing: LoadBalancing, entropies: u32) -> MultipathOptions {
        MultipathOptions { load_balancing, entropies, ..MultipathOptions::defaults() }
    }
    fn random() -> Rng {
        Rng::stream(1, "multipath", &[])
    }
    /// Returns the EVs of the next `count` packets of a flow after its first window.
    fn take(flow: &mut Multipath, count: usize, rng: &mut Rng) -> Vec<u16> {
        (0..count).map(|_| flow.next(u64::MAX, 0, rng)).collect()
    }
    /// Returns a flow whose first pass inverts the bits `xor`.
    fn walking(load_balancing: LoadBalancing, entropies: u32, xor: u16) -> Multipath {
        let mut flow = Multipath::new(&options(load_balancing, entropies), &mut random());
        match &mut flow.balancer {
            Balancer::Oblivious(walk) | Balancer::Bitmap(SkipMap { walk, .. }) | Balancer::Mixed(_, SkipMap { walk, .. }) => {
                walk.xor = xor;
            }
            _ => {}
        }
        flow
    }
    fn heard(flow: &mut Multipath, entropy: u16, feedback: PathFeedback) {
        flow.heard(entropy, feedback, Time::ZERO);
    }
    fn penalties(flow: &Multipath) -> &[u8] {
        match &flow.balancer {
            Balancer::Bitmap(skip) | Balancer::Mixed(_, skip) => &skip.penalties,
            _ => &[],
        }
    }

    #[test]
    fn only_powers_of_two_are_valid() {
        assert_eq!(options(LoadBalancing::Mixed, 64).check(), []);
        let problems = options(LoadBalancing::Mixed, 48).check();
        assert_eq!((problems.len(), problems[0].key, problems[0].hint.as_str()), (1, "entropies", "write `32` or `64`"));
    }

    #[test]
    fn a_single_path_keeps_its_value() {
        let mut rng = random();
        let first = |rng: &mut Rng| {
            let mut flow = Multipath::single(&options(LoadBalancing::Mixed, 64), rng);
            let entropy = flow.next(0, 16, rng);
            [Good, Marked, Trimmed, Timeout].iter().for_each(|&feedback| heard(&mut flow, entropy, feedback));
            assert_eq!(take(&mut flow, 20, rng), [entropy; 20]);
            entropy
        };
        // 200 flows draw nearly all of the 64 values.
        let values: std::collections::BTreeSet<u16> = (0..200).map(|_| first(&mut rng)).collect();
        assert!(values.len() > 50 && values.iter().all(|entropy| *entropy < 64), "{values:?}");
    }

    #[test]
    fn oblivious_inverts_bits_and_draws_them_again_after_each_pass() {
        let (mut flow, mut rng) = (walking(LoadBalancing::Oblivious, 8, 0b101), random());
        assert_eq!(take(&mut flow, 7, &mut rng), [5, 4, 7, 6, 1, 0, 3]);
        // PathFeedback changes nothing.
        (0..8).for_each(|entropy| heard(&mut flow, entropy, Timeout));
        let xor = draw(8, &mut rng.clone());
        let pass: Vec<u16> = [2].into_iter().chain((0..8).map(|index| index ^ xor)).collect();
        assert_eq!(take(&mut flow, 9, &mut rng), pass);
    }

    #[test]
    fn the_first_order_of_a_flow_is_random() {
        let mut rng = random();
        let mut counts = [0; 8];
        for _ in 0..800 {
            let first = Multipath::new(&options(LoadBalancing::Oblivious, 8), &mut rng).next(0, 1, &mut rng);
            counts[usize::from(first)] += 1;
        }
        assert!(counts.iter().all(|count| (60..140).contains(count)), "{counts:?}");
    }

    #[test]
    fn penalties_add_up_to_the_largest() {
        let mut flow = walking(LoadBalancing::Bitmap, 4, 0);
        let mut after = |entropy, feedback| {
            heard(&mut flow, entropy, feedback);
            penalties(&flow).to_vec()
        };
        assert_eq!(after(0, Good), [0, 0, 0, 0]);
        assert_eq!(after(1, Marked), [0, 1, 0, 0]);
        assert_eq!(after(1, Marked), [0, 2, 0, 0]);
        assert_eq!(after(2, Trimmed), [0, 2, 4, 0]);
        assert_eq!(after(3, Timeout), [0, 2, 4, 15]);
        assert_eq!(after(3, Marked), [0, 2, 4, 15]);
        (0..3).for_each(|_| drop(after(2, Trimmed)));
        assert_eq!(after(2, Good), [0, 2, 15, 15], "an unmarked ACK removes no penalty, and 16 is above the largest");
        // Only the bits of the index count.
        assert_eq!(after(4, Marked), [1, 2, 15, 15]);
    }

    #[test]
    fn a_value_with_a_penalty_is_skipped_once_for_each_unit() {
        let (mut flow, mut rng) = (walking(LoadBalancing::Bitmap, 4, 0), random());
        (0..2).for_each(|_| heard(&mut flow, 1, Marked));
        heard(&mut flow, 2, Marked);
        // The turn of 1 comes first: it loses a unit, and 2 is skipped without loss.
        assert_eq!(take(&mut flow, 2, &mut rng), [0, 3]);
        assert_eq!(penalties(&flow), [0, 1, 1, 0]);
    }

    #[test]
    fn if_all_values_have_a_penalty_one_full_pass_is_made() {
        let mut flow = walking(LoadBalancing::Bitmap, 4, 0);
        (0..4).for_each(|entropy| heard(&mut flow, entropy, Timeout));
        let mut rng = random();
        let xor = draw(4, &mut rng.clone());
        // Four steps from index 0: the first value of the next pass.
        assert_eq!(take(&mut flow, 1, &mut rng), [xor]);
        assert_eq!(penalties(&flow), [14, 15, 15, 15]);
        // A single value whose penalty ends is taken at once.
        let mut one = walking(LoadBalancing::Bitmap, 1, 0);
        heard(&mut one, 0, Timeout);
        assert_eq!((take(&mut one, 20, &mut rng), penalties(&one)), (vec![0; 20], &[0][..]));
    }

    #[test]
    fn reps_takes_random_values_until_one_is_known_to_be_good() {
        let mut flow = Multipath::new(&options(LoadBalancing::Reps, 64), &mut random());
        let mut rng = random();
        let wanted: Vec<u16> = (0..5).scan(rng.clone(), |rng, _| Some(draw(64, rng))).collect();
        assert_eq!(take(&mut flow, 2, &mut rng), wanted[..2]);
        [Marked, Trimmed].iter().for_each(|&feedback| heard(&mut flow, 9, feedback));
        assert_eq!(take(&mut flow, 1, &mut rng), wanted[2..3]);
        [40, 41, 40].iter().for_each(|&entropy| heard(&mut flow, entropy, Good));
        // Oldest first, each once.
        assert_eq!(take(&mut flow, 5, &mut rng), [40, 41, 40, wanted[3], wanted[4]]);
    }

    #[test]
    fn reps_keeps_the_last_eight_values() {
        let mut flow = Multipath::new(&options(LoadBalancing::Reps, 64), &mut random());
        let mut rng = random();
        (1..=11).for_each(|entropy| heard(&mut flow, entropy, Good));
        assert_eq!(take(&mut flow, 3, &mut rng), [4, 5, 6]);
        heard(&mut flow, 12, Good);
        assert_eq!(take(&mut flow, 6, &mut rng), [7, 8, 9, 10, 11, 12]);
        let wanted = draw(64, &mut rng.clone());
        assert_eq!(take(&mut flow, 1, &mut rng), [wanted]);
    }

    #[test]
    fn after_a_timeout_reps_reuses_its_buffer_and_then_explores() {
        let mut flow = Multipath::new(&options(LoadBalancing::Reps, 64), &mut random());
        let mut rng = random();
        let at = |us| Time::ZERO + Dur::from_us(us);
        [1, 2, 3].iter().for_each(|&entropy| heard(&mut flow, entropy, Good));
        assert_eq!(take(&mut flow, 2, &mut rng), [1, 2]);
        // Values that were taken are taken again, in the order of the buffer.
        flow.heard(50, Timeout, at(100));
        assert_eq!(take(&mut flow, 5, &mut rng), [1, 2, 3, 1, 2]);
        // An unmarked ACK adds to the buffer, which is read on from the same slot.
        flow.heard(4, Good, at(200));
        assert_eq!(take(&mut flow, 3, &mut rng), [3, 4, 1]);
        // A second timeout does not prolong the time; it ends with the first answer after 10 ms.
        flow.heard(50, Timeout, at(9_000));
        flow.heard(5, Marked, at(10_100));
        assert_eq!(take(&mut flow, 1, &mut rng), [2]);
        flow.heard(6, Good, Time(at(10_100).0 + 1));
        let wanted: Vec<u16> = (0..16).scan(rng.clone(), |rng, _| Some(draw(64, rng))).collect();
        assert_eq!(take(&mut flow, 15, &mut rng), wanted[..15]);
        // A timeout has no effect while the flow explores. The buffer has only the new value.
        flow.heard(7, Timeout, at(10_200));
        assert_eq!(take(&mut flow, 2, &mut rng), [wanted[15], 6]);
        assert_eq!(take(&mut flow.clone(), 1, &mut rng.clone()), [draw(64, &mut rng.clone())]);
        // Frozen with an empty buffer, values are random.
        let mut empty = Multipath::new(&options(LoadBalancing::Reps, 64), &mut random());
        empty.heard(7, Timeout, at(0));
        assert_eq!(take(&mut empty, 16, &mut random()), (0..16).scan(random(), |rng, _| Some(draw(64, rng))).collect::<Vec<_>>());
    }

    #[test]
    fn reps_never_freezes_for_no_time() {
        let options = MultipathOptions { reps_freeze: Dur::ZERO, ..options(LoadBalancing::Reps, 64) };
        let mut flow = Multipath::new(&options, &mut random());
        heard(&mut flow, 1, Good);
        heard(&mut flow, 1, Timeout);
        let mut rng = random();
        let wanted = draw(64, &mut rng.clone());
        assert_eq!(take(&mut flow, 2, &mut rng), [1, wanted]);
    }

    #[test]
    fn legacy_reps_counts_through_the_first_window_and_then_reuses_values() {
        let mut flow = Multipath::new(&options(LoadBalancing::RepsLegacy, 4), &mut random());
        let mut rng = random();
        let first = |flow: &mut Multipath, rng: &mut Rng, window| (0..3).map(|n| flow.next(n, window, rng)).collect::<Vec<_>>();
        heard(&mut flow, 0, Good);
        assert_eq!(first(&mut flow, &mut rng, 3), [1, 2, 3]);
        (0..12).for_each(|n| heard(&mut flow, n % 4, if n % 4 == 2 { Marked } else { Good }));
        assert_eq!(take(&mut flow, 10, &mut rng), [0, 0, 1, 3, 0, 1, 3, 0, 1, 3]);
        let wanted = draw(4, &mut rng.clone());
        assert_eq!(take(&mut flow, 1, &mut rng), [wanted]);
        // The first window counts up to the number of values.
        let mut other = Multipath::new(&options(LoadBalancing::RepsLegacy, 2), &mut random());
        let wanted = draw(2, &mut rng.clone());
        assert_eq!(first(&mut other, &mut rng, 100), [1, 0, wanted]);
    }

    #[test]
    fn mixed_reuses_values_first_and_skips_values_otherwise() {
        let (mut flow, mut rng) = (walking(LoadBalancing::Mixed, 8, 0), random());
        assert_eq!(take(&mut flow, 2, &mut rng), [0, 1]);
        heard(&mut flow, 2, Marked);
        [0, 1].iter().for_each(|&entropy| heard(&mut flow, entropy, Good));
        assert_eq!(take(&mut flow, 4, &mut rng), [0, 1, 3, 4]);
        // A value with a penalty is reused if an unmarked ACK carries it.
        heard(&mut flow, 5, Timeout);
        heard(&mut flow, 5, Good);
        assert_eq!(take(&mut flow, 3, &mut rng), [5, 6, 7]);
        assert_eq!(penalties(&flow), [0, 0, 0, 0, 0, 14, 0, 0]);
    }

    #[test]
    fn every_balancer_stays_below_the_number_of_values() {
        use LoadBalancing::{Bitmap, Mixed, Oblivious, Reps, RepsLegacy};
        for (load_balancing, entropies) in
            [Oblivious, Bitmap, Reps, RepsLegacy, Mixed].into_iter().flat_map(|kind| [1, 2, 64, 16_384].map(|n| (kind, n)))
        {
            let mut rng = random();
            let mut flow = Multipath::new(&options(load_balancing, entropies), &mut rng);
            for n in 0..2000 {
                let entropy = flow.next(n, 100, &mut rng);
                assert!(u32::from(entropy) < entropies, "{load_balancing:?}");
                let feedback = [Good, Good, Marked, Trimmed, Timeout][rng.below(5) as usize];
                flow.heard(entropy, feedback, Time::ZERO + Dur::from_us(100 * n));
            }
        }
    }
}
