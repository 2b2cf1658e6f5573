//! The epochs of a flow at the leaf of its destination, which puts rerouted packets behind the TAIL
//! (section 3.3).

use crate::router::conweave::header::{EPOCHS, StampClock, WeaveHeader, WeaveMark};
use base::{Dur, Time};

/// The state of a flow at the leaf of its destination.
#[derive(Clone, Debug)]
pub struct EpochReceiver {
    epoch: u8,
    /// Whether rerouted packets of the epoch pass: the TAIL has arrived, or the resume timer has
    /// expired.
    passes: bool,
    /// The last packet of the epoch on the first path: its timestamp, and when it arrived.
    old: Option<(u16, Time)>,
    /// The timestamp of the epoch's TAIL, from a rerouted packet.
    tail: u16,
    /// The packets that are held.
    hold: Option<Hold>,
}

/// The hold queue of a flow.
#[derive(Clone, Copy, Debug)]
struct Hold {
    /// The epoch whose rerouted packets opened the queue.
    epoch: u8,
    /// When the queue is released.
    until: Time,
}

/// The result of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ruling {
    /// Whether the packet is held.
    pub held: bool,
    /// Whether the packet belongs to the flow's present epoch. Packets of earlier epochs pass, and
    /// have no other effect.
    pub current: bool,
    /// Whether the packet opens a hold queue.
    pub opens: bool,
    /// Whether the packet would have been held, but no hold queue was left.
    pub unheld: bool,
    /// The new time of the flow's resume timer.
    pub timer: Option<Time>,
}

impl EpochReceiver {
    /// Returns the state of a flow whose first packet has this epoch.
    pub fn new(epoch: u8) -> EpochReceiver {
        let before = (epoch + EPOCHS - 1) % EPOCHS;
        EpochReceiver { epoch: before, passes: false, old: None, tail: 0, hold: None }
    }

    /// Handles a packet. `[extra, default]` are the margin of the resume timer, and the time until
    /// the TAIL if no packet of the first path is known; `queue_left` is whether a hold queue is
    /// left.
    pub fn receive(
        &mut self,
        header: WeaveHeader,
        now: Time,
        [extra, default]: [Dur; 2],
        clock: StampClock,
        queue_left: bool,
    ) -> Ruling {
        let ahead = (header.epoch + EPOCHS - self.epoch) % EPOCHS;
        let mut ruling = Ruling { held: false, current: ahead != EPOCHS - 1, opens: false, unheld: false, timer: None };
        if !ruling.current {
            return ruling;
        }
        if ahead > 0 {
            (self.epoch, self.passes, self.old) = (header.epoch, false, None);
            // The sender no longer waits for the TAIL of the earlier epoch.
            if let Some(hold) = &mut self.hold {
                hold.until = now;
                ruling.timer = Some(now);
            }
        }
        // Packets of an earlier epoch leave first, at the end of this instant.
        ruling.held = self.hold.is_some_and(|hold| hold.epoch != self.epoch);
        if header.mark == WeaveMark::Rerouted {
            self.tail = header.stamp;
            match self.hold {
                _ if self.passes => {}
                Some(_) => ruling.held = true,
                None if queue_left => {
                    let until = self.resume_at(now, default, clock).after(extra).max(now);
                    self.hold = Some(Hold { epoch: self.epoch, until });
                    (ruling.held, ruling.opens, ruling.timer) = (true, true, Some(until));
                }
                None => ruling.unheld = true,
            }
            return ruling;
        }
        self.old = Some((header.stamp, now));
        match &mut self.hold {
            Some(hold) if hold.epoch == self.epoch => {
                let left = clock.gap(header.stamp, self.tail);
                hold.until = if header.mark == WeaveMark::Tail { now } else { now.after(left).after(extra) };
                ruling.timer = Some(hold.until);
            }
            _ => self.passes |= header.mark == WeaveMark::Tail,
        }
        ruling
    }

    /// Returns when the TAIL is expected: as long after the last packet of the first path as the
    /// sender sent the TAIL after that packet (Appendix A).
    fn resume_at(&self, now: Time, default: Dur, clock: StampClock) -> Time {
        match self.old {
            Some((stamp, at)) => at.after(clock.gap(stamp, self.tail)),
            None => now.after(default),
        }
    }

    /// Handles the flow's resume timer. Returns whether a hold queue is released.
    pub fn release(&mut self) -> bool {
        let Some(hold) = self.hold.take() else { return false };
        self.passes |= hold.epoch == self.epoch;
        true
    }
}
