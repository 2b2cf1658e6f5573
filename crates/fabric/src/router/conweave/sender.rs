//! The epochs of a flow at the leaf of its source (section 3.2).

use crate::router::conweave::header::{EPOCHS, StampClock, WeaveHeader, WeaveMark};
use crate::router::conweave::paths::LeafPaths;
use base::{Dur, LinkId, Rng, Time};

/// The state of a flow at the leaf of its source.
#[derive(Clone, Debug)]
pub struct EpochSender {
    epoch: u8,
    /// The path of the next packet; `None` before the first packet.
    path: Option<u8>,
    /// When the last packet was sent.
    last: Time,
    /// Until when the other leaf must answer the epoch's request. `Time::MAX` if it has answered, or
    /// if the flow stays on its path since no better path was found.
    deadline: Time,
    /// Whether the other leaf has answered, so that the next packet begins an epoch.
    settled: bool,
    /// Whether the other leaf has answered after the deadline.
    late: bool,
    /// The timestamp of the epoch's TAIL, once the flow is rerouted.
    tail: Option<u16>,
}

impl EpochSender {
    /// Returns the state of a flow that has sent nothing. The first epoch is 1.
    pub fn new() -> EpochSender {
        EpochSender { epoch: 0, path: None, last: Time::ZERO, deadline: Time::MAX, settled: false, late: false, tail: None }
    }

    /// Returns the path of the next packet; `None` before the first packet.
    pub fn path(&self) -> Option<u8> {
        self.path
    }

    /// Returns the header of the next packet; `None` if no path is alive. `[reply, inactive]` are
    /// the cutoff of answers and the silence that ends an epoch.
    pub fn send(
        &mut self,
        now: Time,
        [reply, inactive]: [Dur; 2],
        clock: StampClock,
        paths: &LeafPaths,
        live: impl Fn(&[LinkId]) -> bool,
        rng: &mut Rng,
    ) -> Option<WeaveHeader> {
        let silent = now.since(self.last) > inactive;
        self.last = now;
        let stamp = clock.stamp(now);
        let header = |path, epoch, mark| Some(WeaveHeader { path, epoch, mark, stamp });
        let present = self.path.filter(|path| live(paths.links(*path)));
        let Some(path) = present.filter(|_| !silent) else {
            let path = paths.draw(now, None, &live, rng).or(present).or_else(|| paths.any(&live, rng))?;
            self.path = Some(path);
            self.begin(now, reply);
            return header(path, self.epoch, WeaveMark::Request);
        };
        if self.settled {
            self.begin(now, reply);
            return header(path, self.epoch, WeaveMark::Request);
        }
        if let Some(stamp) = self.tail {
            return Some(WeaveHeader { path, epoch: self.epoch, mark: WeaveMark::Rerouted, stamp });
        }
        if now <= self.deadline {
            return header(path, self.epoch, WeaveMark::Plain);
        }
        match paths.draw(now, Some(path), live, rng) {
            Some(better) => {
                (self.path, self.tail, self.deadline) = (Some(better), Some(stamp), Time::MAX);
                header(path, self.epoch, WeaveMark::Tail)
            }
            // The flow stays. The late reply, which may have arrived already, begins the next epoch.
            None if self.late => {
                self.begin(now, reply);
                header(path, self.epoch, WeaveMark::Request)
            }
            None => {
                self.deadline = Time::MAX;
                header(path, self.epoch, WeaveMark::Plain)
            }
        }
    }

    fn begin(&mut self, now: Time, reply: Dur) {
        self.epoch = (self.epoch + 1) % EPOCHS;
        (self.deadline, self.settled, self.late, self.tail) = (now.after(reply), false, false, None);
    }

    /// Handles the answer to the request of an epoch (RTT_REPLY).
    pub fn on_reply(&mut self, epoch: u8, now: Time) {
        if epoch != self.epoch || self.tail.is_some() {
            return;
        }
        if now <= self.deadline {
            (self.deadline, self.settled) = (Time::MAX, true);
        } else {
            self.late = true;
        }
    }
    /// Handles the answer to the TAIL of an epoch (CLEAR).
    pub fn on_clear(&mut self, epoch: u8) {
        self.settled |= epoch == self.epoch && self.tail.is_some();
    }
}
