//! The levels of Homa's packets: how many are for unscheduled and how many for scheduled packets,
//! and the cutoffs between the unscheduled ones.

use crate::kit::demotion::{self, Limits};
use crate::kit::traffic::Traffic;
use base::given::Offered;
use base::params::{Param, Raw};
use std::collections::VecDeque;

/// Cutoffs as written in a scenario, where they are not computed from the workloads.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub enum Cutoffs {
    /// `"online"`: computed from the sizes that a receiver has seen.
    Online,
    /// `"300B, 5KB"`
    List(Limits),
}

impl Param for Cutoffs {
    fn expects() -> String {
        format!("`online`, or {}", Limits::expects())
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        if *raw == Raw::Str("online".to_owned()) {
            return Ok(Cutoffs::Online);
        }
        Limits::parse(raw).map(Cutoffs::List).map_err(|_| format!("is not {}", Self::expects()))
    }
    fn show(&self) -> String {
        match self {
            Cutoffs::Online => "online".to_owned(),
            Cutoffs::List(limits) => limits.show(),
        }
    }
}

/// The parameters, other than sizes, from which levels are computed.
#[derive(Clone, Debug)]
pub struct Law {
    /// Number of levels (P), at least two.
    pub priorities: u8,
    /// Number of levels of scheduled packets (S), if it is set.
    pub scheduled: Option<u8>,
    /// Most unscheduled bytes of a message.
    pub rtt_bytes: u64,
    /// Bytes of grants per scheduled byte, if grants count as traffic.
    pub grants: f64,
}

/// The levels of a receiver's packets; 0 is the highest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    /// Rising sizes in bytes: messages up to the first size are in level 0, up to the second in
    /// level 1, and so on; messages above the last size are one level lower.
    pub cutoffs: Vec<u64>,
    /// Number of the lowest levels, which are for scheduled packets (S).
    pub scheduled: u8,
}

impl Law {
    /// Returns the levels for a distribution of sizes.
    pub fn levels(&self, sizes: &Traffic<'_>) -> Levels {
        let (all, first) = (sizes.mean(), sizes.mean_below(self.rtt_bytes));
        let grants = (all - first) * self.grants;
        let share = (grants + first) / (grants + all);
        // Rounded to the nearest.
        let wanted = (share * f64::from(self.priorities) + 0.5) as u8;
        let unscheduled = self.scheduled.map_or(wanted.clamp(1, self.priorities - 1), |scheduled| self.priorities - scheduled);
        let cutoffs = sizes.equal_first_bytes(unscheduled.into(), self.rtt_bytes, grants);
        Levels { cutoffs, scheduled: self.priorities - unscheduled }
    }
    /// Returns the levels with these cutoffs.
    pub fn with_cutoffs(&self, cutoffs: Vec<u64>) -> Levels {
        let left = usize::from(self.priorities).saturating_sub(cutoffs.len() + 1);
        Levels { scheduled: self.scheduled.unwrap_or(left as u8), cutoffs }
    }
}

impl Levels {
    /// Returns the cutoffs as a scenario writes them, or `none`.
    pub fn show_cutoffs(&self) -> String {
        if self.cutoffs.is_empty() { "none".to_owned() } else { Limits::of_bytes(&self.cutoffs).show() }
    }
    /// Returns the level of unscheduled bytes of a message of `bytes` bytes.
    #[inline]
    pub fn unscheduled(&self, bytes: u64) -> u8 {
        demotion::class_of(&self.cutoffs, bytes)
    }
}

/// Number of messages before the first cutoffs, and at least between two sets of cutoffs.
const FIRST: u64 = 100;

/// The sizes of the last messages at a receiver.
#[derive(Clone, Debug)]
pub struct Online {
    window: usize,
    sizes: VecDeque<u64>,
    seen: u64,
    next: u64,
}

impl Online {
    /// Creates an empty record that keeps up to `window` messages.
    pub fn new(window: u32) -> Online {
        Online { window: window as usize, sizes: VecDeque::new(), seen: 0, next: FIRST }
    }
    /// Records a message. Returns whether new cutoffs are due.
    pub fn note(&mut self, size: u64) -> bool {
        self.sizes.push_back(size);
        if self.sizes.len() > self.window {
            self.sizes.pop_front();
        }
        self.seen += 1;
        let due = self.seen == self.next;
        if due {
            self.next += FIRST.max(self.sizes.len() as u64 / 10);
        }
        due
    }
    /// Returns the distribution of the recorded sizes.
    pub fn offered(&self) -> Offered {
        let mut sorted: Vec<u64> = self.sizes.iter().copied().collect();
        sorted.sort_unstable();
        let (mut points, mut below) = (Vec::new(), 0);
        for sizes in sorted.chunk_by(|a, b| a == b) {
            for count in [below, below + sizes.len()] {
                points.push((sizes[0], count as f64 / sorted.len() as f64));
            }
            below += sizes.len();
        }
        Offered { load: None, sizes: points }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAW: Law = Law { priorities: 8, scheduled: None, rtt_bytes: 9700, grants: 0.0 };

    fn toy() -> [Offered; 1] {
        let mut online = Online::new(10_000);
        for (size, count) in [(5000, 15), (100, 50), (50_000, 5), (1000, 30)] {
            (0..count).for_each(|_| {
                online.note(size);
            });
        }
        [online.offered()]
    }

    /// 44 % of the bytes are unscheduled: four of eight levels, three of which are used.
    #[test]
    fn levels_and_cutoffs_share_unscheduled_bytes() {
        let toy = toy();
        let sizes = Traffic::of_sizes(&toy).unwrap();
        let levels = LAW.levels(&sizes);
        assert_eq!(levels, Levels { cutoffs: vec![5000, 50_000], scheduled: 4 });
        let of = |bytes| levels.unscheduled(bytes);
        assert_eq!([1, 5000, 5001, 50_000, 50_001].map(of), [0, 0, 1, 1, 2]);
        // Of three levels, two are unscheduled if one scheduled level is set; the rule would give
        // one: 3 * 0.44 rounds to 1.
        let cutoffs = |law: &Law| (law.levels(&sizes).cutoffs, law.levels(&sizes).scheduled);
        assert_eq!(cutoffs(&Law { scheduled: Some(6), ..LAW }), (vec![5000], 6));
        assert_eq!(cutoffs(&Law { priorities: 3, ..LAW }), (vec![], 2));
        assert_eq!(cutoffs(&Law { priorities: 2, rtt_bytes: 100_000, ..LAW }), (vec![], 1));
        assert_eq!(cutoffs(&Law { rtt_bytes: 1, ..LAW }), (vec![], 7));
        // 2015 bytes of grants per message of 3600: 64 % of all bytes are unscheduled, and the
        // first two of five parts hold only grants.
        assert_eq!(cutoffs(&Law { grants: 1.0, ..LAW }), (vec![1, 1000, 5000], 3));
    }

    #[test]
    fn given_cutoffs_leave_the_other_levels_to_scheduled_packets() {
        assert_eq!(LAW.with_cutoffs(vec![10, 20]), Levels { cutoffs: vec![10, 20], scheduled: 5 });
        assert_eq!(Law { scheduled: Some(1), ..LAW }.with_cutoffs(vec![]), Levels { cutoffs: vec![], scheduled: 1 });
    }

    #[test]
    fn the_last_messages_count_and_cutoffs_come_at_times() {
        let mut online = Online::new(2000);
        let due: Vec<u64> = (1..=2500).filter(|n| online.note(if *n <= 500 { 7 } else { 9 })).collect();
        assert_eq!(due[..10], [100, 200, 300, 400, 500, 600, 700, 800, 900, 1000]);
        assert_eq!(due[10..], [1100, 1210, 1331, 1464, 1610, 1771, 1948, 2142, 2342]);
        assert_eq!(online.offered().sizes, [(9, 0.0), (9, 1.0)]);
        let mut two = Online::new(4);
        [5, 3, 5, 5, 5].into_iter().for_each(|size| {
            two.note(size);
        });
        assert_eq!(two.offered().sizes, [(3, 0.0), (3, 0.25), (5, 0.25), (5, 1.0)]);
    }
}
