//! Virtual deadline generation (VDG): the order in which a port should serve its flows so that the
//! largest expansion ratio is as small as possible.
//!
//! Source: Zhang et al., IEEE TPDS 28(11) 2017, section 4.3, Alg. 2 and Eq. 5.
//!
//! The flow whose expansion ratio would be smallest if it came last is placed last; then the
//! remaining flows are placed in the same way. A flow placed last at `X = now + tx_time(R)`, where
//! `R` is the bytes of all flows not yet placed, has `ER = C (X - arrived) / size`. This is
//! Lawler's least-cost-last rule, so the largest expansion ratio is optimal for the present flows.
//! Flows are served in the reverse order of removal.
//!
//! Assumed: among flows with equal expansion ratios, the flow with the largest (size, arrived, rs,
//! id) is placed last.

use base::{Rate, Time};
use std::cmp::Ordering;

/// A flow at a port. Sizes in wire bytes.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Size of the flow, at least 1.
    pub size: u64,
    /// Bytes still to cross the port.
    pub rs: u64,
    /// When the flow arrived at the port; not later than the present.
    pub arrived: Time,
    /// The id of the flow, unique in a table.
    pub id: u32,
}

/// The place of a flow in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Index into the entries.
    pub index: usize,
    /// The virtual deadline: when the flow ends if it and all flows served before it are served
    /// back to back at line rate.
    pub vdl: Time,
}

/// Buffers of [`kinetic`], kept between calls to avoid allocations.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    tree: Vec<Node>,
    lines: Vec<Line>,
}

/// Largest number of entries for which the plain loop is faster.
pub const PLAIN_LIMIT: usize = 32;

/// Runs Alg. 2 by the faster method. `out` is cleared and filled in the order of removal: the flow
/// to serve last comes first.
pub fn vdg(now: Time, rate: Rate, entries: &[Entry], out: &mut Vec<Placed>, scratch: &mut Scratch) {
    if entries.len() <= PLAIN_LIMIT {
        plain(now, rate, entries, out);
    } else {
        kinetic(now, rate, entries, out, scratch);
    }
}

/// Runs Alg. 2 literally: finds the smallest of all remaining flows, n times.
pub fn plain(now: Time, rate: Rate, entries: &[Entry], out: &mut Vec<Placed>) {
    out.clear();
    out.extend((0..entries.len()).map(|index| Placed { index, vdl: now }));
    let mut left: u64 = entries.iter().map(|e| e.rs).sum();
    for k in 0..out.len() {
        let x = rate.tx_time(left).ps();
        let mut last = (k, Line::of(now, &entries[out[k].index], out[k].index));
        for (i, placed) in out.iter().enumerate().skip(k + 1) {
            let line = Line::of(now, &entries[placed.index], placed.index);
            if line.goes_after(&last.1, x, entries) {
                last = (i, line); // Alg. 2 l. 5-8
            }
        }
        out.swap(k, last.0);
        out[k].vdl = Time(now.ps() + x); // Alg. 2 l. 9
        left -= entries[out[k].index].rs;
    }
}

/// Computes the same result as [`plain`] in O(n log² n). Each flow's expansion ratio is a line in
/// X. X only decreases, and each step removes the lowest line: a kinetic tournament over a complete
/// binary tree, where each node stores the X down to which its winner is valid.
pub fn kinetic(now: Time, rate: Rate, entries: &[Entry], out: &mut Vec<Placed>, scratch: &mut Scratch) {
    out.clear();
    let leaves = entries.len().next_power_of_two();
    let Scratch { tree, lines } = scratch;
    tree.clear();
    tree.resize(2 * leaves, Node::EMPTY);
    lines.clear();
    lines.extend(entries.iter().enumerate().map(|(i, e)| Line::of(now, e, i)));
    for i in 0..entries.len() {
        tree[leaves + i].winner = i as u32;
    }
    let mut tournament = Tournament { tree, lines, entries };
    let mut left: u64 = entries.iter().map(|e| e.rs).sum();
    let mut x = rate.tx_time(left).ps();
    for node in (1..leaves).rev() {
        tournament.pull(node, x);
    }
    for _ in 0..entries.len() {
        if leaves > 1 {
            tournament.advance(1, x);
        }
        let index = tournament.tree[1].winner as usize;
        out.push(Placed { index, vdl: Time(now.ps() + x) });
        let mut node = leaves + index;
        tournament.tree[node].winner = NONE;
        while node > 1 {
            node /= 2;
            tournament.pull(node, x);
        }
        left -= entries[index].rs;
        x = rate.tx_time(left).ps();
    }
}

/// A flow's expansion ratio as a line in x = X - now: `(x + age) / size`, without the factor of the
/// capacity, which is common to all flows.
#[derive(Clone, Copy, Debug)]
struct Line {
    age: u64,
    size: u64,
    index: usize,
}

impl Line {
    fn of(now: Time, entry: &Entry, index: usize) -> Line {
        debug_assert!(entry.size > 0 && entry.arrived <= now);
        Line { age: now.since(entry.arrived).ps(), size: entry.size, index }
    }
    /// Returns whether this flow is placed after `other` when both are candidates at `x`: it has
    /// the smaller expansion ratio, cross-multiplied to stay exact; on a tie the larger key.
    fn goes_after(&self, other: &Line, x: u64, entries: &[Entry]) -> bool {
        // The product of two 64-bit factors fits, so no check is needed. x + age is X - arrived, a
        // time span within the run.
        let product = |a: &Line, b: &Line| u128::from(x + a.age).wrapping_mul(u128::from(b.size));
        match product(self, other).cmp(&product(other, self)) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => {
                let key = |line: &Line| (line.size, entries[line.index].arrived, entries[line.index].rs, entries[line.index].id);
                key(self) > key(other)
            }
        }
    }
    /// Returns the smallest x from which on `self` is at or below the steeper `other`.
    fn holds_down_to(&self, other: &Line) -> u64 {
        let rise = u128::from(self.age).wrapping_mul(u128::from(other.size));
        let fall = u128::from(other.age).wrapping_mul(u128::from(self.size));
        // At a crossing with negative x the port would already be done.
        let gap = rise.saturating_sub(fall);
        if gap == 0 { 0 } else { u64::try_from(gap.div_ceil(u128::from(self.size - other.size))).unwrap_or(u64::MAX) }
    }
}

/// A match of the tournament. `winner` is the entry with the lowest line in the subtree.
#[derive(Clone, Copy, Debug)]
struct Node {
    winner: u32,
    /// Smallest x for which all winners of this subtree are valid.
    fail: u64,
}

impl Node {
    const EMPTY: Node = Node { winner: NONE, fail: 0 };
}

/// No entry.
const NONE: u32 = u32::MAX;

struct Tournament<'a> {
    tree: &'a mut [Node],
    lines: &'a [Line],
    entries: &'a [Entry],
}

impl Tournament<'_> {
    /// Repeats the match of a node at `x`.
    fn pull(&mut self, node: usize, x: u64) {
        let (left, right) = (self.tree[2 * node], self.tree[2 * node + 1]);
        self.tree[node] = if right.winner == NONE {
            left
        } else if left.winner == NONE {
            right
        } else {
            let (a, b) = (&self.lines[left.winner as usize], &self.lines[right.winner as usize]);
            let (winner, loser) = if b.goes_after(a, x, self.entries) { (b, a) } else { (a, b) };
            // Only a steeper line can overtake as x decreases. At the crossing itself the larger
            // size remains the winner, by the tie-break.
            let own = if loser.size < winner.size { winner.holds_down_to(loser) } else { 0 };
            Node { winner: winner.index as u32, fail: left.fail.max(right.fail).max(own) }
        };
    }
    /// Repeats all matches whose winners are not valid at `x`.
    fn advance(&mut self, node: usize, x: u64) {
        if x >= self.tree[node].fail {
            return;
        }
        // Leaves are always valid, so a node that is not has children.
        self.advance(2 * node, x);
        self.advance(2 * node + 1, x);
        self.pull(node, x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    /// 1000 ps per byte: the capacity "1" of the vectors, with 1000 ps for a unit of time.
    const UNIT: Rate = Rate(8_000_000_000);
    const BYTE_PS: u64 = 1000;

    fn entry(id: u32, arrived: u64, size: u64, rs: u64) -> Entry {
        Entry { size, rs, arrived: Time(arrived * BYTE_PS), id }
    }

    /// Runs all three functions and checks that they agree.
    fn run(now: Time, rate: Rate, entries: &[Entry]) -> Vec<Placed> {
        let (mut slow, mut fast, mut either) = (Vec::new(), Vec::new(), Vec::new());
        let mut scratch = Scratch::default();
        plain(now, rate, entries, &mut slow);
        kinetic(now, rate, entries, &mut fast, &mut scratch);
        vdg(now, rate, entries, &mut either, &mut scratch);
        assert_eq!(slow, fast);
        assert_eq!(slow, either);
        slow
    }

    /// Expected rows: (flow, expansion ratio as numerator and denominator, vdl in ps), in the order of removal.
    fn check(now_ps: u64, rate: Rate, entries: &[Entry], expected: &[(u32, u64, u64, u64)]) {
        let out = run(Time(now_ps), rate, entries);
        assert_eq!(out.len(), expected.len());
        for (placed, &(id, num, den, vdl)) in out.iter().zip(expected) {
            let e = &entries[placed.index];
            assert_eq!((e.id, placed.vdl), (id, Time(vdl)));
            assert_eq!((placed.vdl - e.arrived).ps() * den, num * rate.tx_time(e.size).ps(), "ER of flow {id}");
        }
    }

    #[test]
    fn table_1_of_the_paper() {
        check(0, UNIT, &[entry(0, 0, 3, 3), entry(2, 0, 4, 4)], &[(2, 7, 4, 7000), (0, 1, 1, 3000)]);
        check(3000, UNIT, &[entry(1, 3, 3, 3), entry(2, 0, 4, 4)], &[(1, 7, 3, 10_000), (2, 7, 4, 7000)]);
    }

    #[test]
    fn equal_arrivals_go_by_size() {
        let flows = [entry(1, 0, 1, 1), entry(2, 0, 2, 2), entry(3, 0, 3, 3), entry(4, 0, 4, 4)];
        check(0, UNIT, &flows, &[(4, 5, 2, 10_000), (3, 2, 1, 6000), (2, 3, 2, 3000), (1, 1, 1, 1000)]);
    }

    #[test]
    fn flows_of_different_ages() {
        let flows = [entry(1, 0, 10, 6), entry(2, 7, 2, 2), entry(3, 5, 5, 4), entry(4, 8, 1, 1)];
        check(8000, UNIT, &flows, &[(1, 21, 10, 21_000), (3, 2, 1, 15_000), (2, 2, 1, 11_000), (4, 1, 1, 9000)]);
    }

    #[test]
    fn ties_go_to_the_larger_key() {
        let flows = [entry(1, 0, 4, 4), entry(2, 0, 4, 2), entry(3, 0, 8, 8), entry(4, 0, 4, 4)];
        let rate = Rate(16_000_000_000);
        check(0, rate, &flows, &[(3, 9, 4, 9000), (4, 5, 2, 5000), (1, 3, 2, 3000), (2, 1, 2, 1000)]);
    }

    #[test]
    fn a_gigabit_port() {
        let us = |t: u64| Time(t * 1_000_000);
        let flow = |id, arrived, size, rs| Entry { size, rs, arrived: us(arrived), id };
        let flows = [
            flow(1, 0, 150_000, 25_000),
            flow(2, 990, 3000, 3000),
            flow(3, 200, 1_500_000, 1_400_000),
            flow(4, 1000, 15_000, 15_000),
        ];
        let expected =
            [(3, 1543, 1500, 12_544_000_000), (1, 28, 25, 1_344_000_000), (4, 6, 5, 1_144_000_000), (2, 17, 12, 1_024_000_000)];
        check(us(1000).ps(), Rate::from_gbps(1), &flows, &expected);
    }

    #[test]
    fn the_largest_ratio_need_not_be_the_last_flow() {
        let flows = [entry(1, 0, 100, 100), entry(2, 80, 20, 20), entry(3, 90, 10, 10), entry(4, 95, 3, 3)];
        check(95_000, UNIT, &flows, &[(1, 57, 25, 228_000), (2, 12, 5, 128_000), (3, 9, 5, 108_000), (4, 1, 1, 98_000)]);
    }

    #[test]
    fn an_empty_table_and_one_flow() {
        check(7000, UNIT, &[], &[]);
        check(7000, UNIT, &[entry(1, 7, 5, 5)], &[(1, 1, 1, 12_000)]);
    }

    /// A table of at most `most` flows; small ranges make ties frequent. Some flows have no bytes
    /// left.
    fn random_table(rng: &mut Rng, most: u64, range: u64) -> (Time, Vec<Entry>) {
        let now = rng.below(range + 1);
        let n = 1 + rng.below(most);
        let entries = (0..n as u32).map(|id| {
            let size = 1 + rng.below(range);
            let rs = rng.below(size + 1);
            entry(id ^ 5, now - rng.below(now + 1), size, rs)
        });
        (Time(now * BYTE_PS), entries.collect())
    }

    #[test]
    fn fast_equals_plain() {
        let mut rng = Rng::stream(1, "vdg/fast", &[]);
        let (mut slow, mut fast, mut scratch) = (Vec::new(), Vec::new(), Scratch::default());
        let rates = [UNIT, Rate::from_gbps(10), Rate::from_gbps(3)];
        for round in 0..110_000 {
            let (most, range) = match round % 4 {
                0 => (20, 4),
                1 => (20, 12),
                2 => (20, 1_000_000),
                _ => (if round % 100 == 3 { 200 } else { 30 }, [6, 100, 1 << 40][round % 3]),
            };
            let (now, entries) = random_table(&mut rng, most, range);
            let rate = rates[round % 3];
            plain(now, rate, &entries, &mut slow);
            kinetic(now, rate, &entries, &mut fast, &mut scratch);
            assert_eq!(slow, fast, "round {round}: {now:?} {entries:?}");
        }
    }

    /// Every line is on the lower envelope at some x: neighbours i and i - 1 cross at 2n (2i - 1) +
    /// i² - i, and x decreases from 4n² in steps of 4n, so that the winner changes as often as
    /// possible.
    #[test]
    fn fast_equals_plain_on_an_envelope() {
        let (mut slow, mut fast, mut scratch) = (Vec::new(), Vec::new(), Scratch::default());
        for n in [2u64, 3, 33, 64, 400] {
            let now = Time(n * n * BYTE_PS);
            let entries: Vec<Entry> = (1..=n).map(|i| entry(i as u32, n * n - i * i, 4 * (2 * n + i), 4 * n)).collect();
            plain(now, UNIT, &entries, &mut slow);
            kinetic(now, UNIT, &entries, &mut fast, &mut scratch);
            assert_eq!(slow, fast);
        }
    }

    /// Computes the lexicographically next permutation; returns `false` after the last.
    fn next_permutation(p: &mut [usize]) -> bool {
        let Some(i) = (1..p.len()).rev().find(|&i| p[i - 1] < p[i]) else { return false };
        let j = (i..p.len()).rev().find(|&j| p[j] > p[i - 1]).expect("p[i] is larger");
        p.swap(i - 1, j);
        p[i..].reverse();
        true
    }

    /// Returns the larger of two ratios.
    fn larger(a: (u64, u64), b: (u64, u64)) -> (u64, u64) {
        if u128::from(a.0) * u128::from(b.1) >= u128::from(b.0) * u128::from(a.1) { a } else { b }
    }

    fn max_ratio(now: Time, entries: &[Entry], order: impl Iterator<Item = usize>) -> (u64, u64) {
        let mut end = now;
        order.fold((0, 1), |worst, i| {
            end += UNIT.tx_time(entries[i].rs);
            larger(worst, ((end - entries[i].arrived).ps(), entries[i].size))
        })
    }

    #[test]
    fn no_order_has_a_smaller_maximum() {
        let mut rng = Rng::stream(1, "vdg/optimal", &[]);
        for _ in 0..2000 {
            let (now, entries) = random_table(&mut rng, 6, 12);
            let ours = max_ratio(now, &entries, run(now, UNIT, &entries).iter().rev().map(|p| p.index));
            let mut order: Vec<usize> = (0..entries.len()).collect();
            loop {
                let other = max_ratio(now, &entries, order.iter().copied());
                assert_eq!(larger(other, ours), other, "{now:?} {entries:?} {order:?}");
                if !next_permutation(&mut order) {
                    break;
                }
            }
        }
    }

    /// The largest ratio is the smallest theta with which earliest deadline first meets all
    /// deadlines `arrived + theta size / C`.
    #[test]
    fn earliest_deadline_first_agrees() {
        let mut rng = Rng::stream(1, "vdg/edf", &[]);
        for _ in 0..3000 {
            let (now, entries) = random_table(&mut rng, 12, 40);
            let (p, q) = max_ratio(now, &entries, run(now, UNIT, &entries).iter().rev().map(|p| p.index));
            // Deadlines times q, with theta = p / q and slightly less; the factor 999 keeps
            // "slightly less" an integer.
            let feasible = |p: u64, q: u64| {
                let deadline = |e: &Entry| u128::from(e.arrived.ps()) * u128::from(q) + u128::from(p) * u128::from(e.size);
                let mut order: Vec<&Entry> = entries.iter().collect();
                order.sort_by_key(|e| deadline(e));
                let mut end = now;
                order.iter().all(|e| {
                    end += UNIT.tx_time(e.rs);
                    u128::from(end.ps()) * u128::from(q) <= deadline(e)
                })
            };
            assert!(feasible(p, q));
            assert!(p == 0 || !feasible(p * 999 - 1, q * 999), "{now:?} {entries:?}");
        }
    }

    /// While the port serves the order at full rate, running VDG again changes no deadline.
    #[test]
    fn deadlines_do_not_move_while_the_port_is_busy() {
        let mut rng = Rng::stream(1, "vdg/invariance", &[]);
        for _ in 0..3000 {
            let (mut now, mut entries) = random_table(&mut rng, 12, 40);
            entries.retain(|e| e.rs > 0);
            let by_id = |now, entries: &[Entry]| {
                let mut all: Vec<(u32, Time)> = run(now, UNIT, entries).iter().map(|p| (entries[p.index].id, p.vdl)).collect();
                all.sort();
                all
            };
            let mut promised = by_id(now, &entries);
            while !entries.is_empty() {
                let first = run(now, UNIT, &entries).last().expect("not empty").index;
                let served = 1 + rng.below(entries[first].rs);
                now += UNIT.tx_time(served);
                entries[first].rs -= served;
                if entries[first].rs == 0 {
                    let id = entries.remove(first).id;
                    let end = promised.iter().position(|p| p.0 == id).map(|i| promised.remove(i).1);
                    assert_eq!(end, Some(now));
                }
                assert_eq!(by_id(now, &entries), promised);
            }
        }
    }

    #[test]
    fn nothing_is_allocated_after_the_first_call() {
        let mut rng = Rng::stream(1, "vdg/scratch", &[]);
        let table: Vec<Entry> = (0..100).map(|id| entry(id, 0, 1 + rng.below(100), 1)).collect();
        let (mut out, mut scratch) = (Vec::new(), Scratch::default());
        vdg(Time(0), UNIT, &table, &mut out, &mut scratch);
        let before = (out.as_ptr(), scratch.tree.as_ptr(), scratch.lines.as_ptr());
        vdg(Time(0), UNIT, &table[..70], &mut out, &mut scratch);
        assert_eq!((out.as_ptr(), scratch.tree.as_ptr(), scratch.lines.as_ptr()), before);
    }
}
