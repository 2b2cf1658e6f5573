//! The side of the simulator: a controller of a plug-in.

use super::{Ack, CongestionTable, Host, Loss, NO_EFFECT, Window};
use crate::abi::{FAILED, Flow, OK, Own, StateBytes, Value};
use crate::block::Block;
use crate::library::{Failure, Library};

/// Largest window, in bytes: more than a run can send.
const MOST_BYTES: u64 = 1 << 48;

/// A function that is called with every acknowledgment.
type OnAck = unsafe extern "C" fn(Own, StateBytes, *mut Window, *const Ack) -> i32;

/// The controller of a host. What an acknowledgment needs lies side by side: a run touches those of all
/// hosts in turns.
#[repr(C)]
pub struct Controller {
    own: Block<2>,
    on_ack: OnAck,
    /// The smallest window: a segment.
    smss: u64,
    /// The largest window, less the smallest.
    span: u64,
    table: &'static CongestionTable,
    library: &'static Library,
}

// Safety of the calls below: the table was checked, `own` was filled by `create`, and states were
// filled by `open` of the same plug-in.

impl Controller {
    /// Creates the controller of a host. There is a value for each parameter.
    pub fn new(library: &'static Library, host: &Host, values: &[Value]) -> Result<Controller, Failure> {
        let (table, own) = library.create(|table: &CongestionTable| table.create, host, values)?;
        let on_ack = table.on_ack.expect("no table without it is accepted");
        let (smss, span) = (host.smss, MOST_BYTES - host.smss);
        Ok(Controller { own, on_ack, smss, span, table, library })
    }
    /// Returns a number of bytes from a plug-in within the bounds of windows.
    pub fn bounded(&self, bytes: u64) -> u64 {
        bytes.clamp(self.smss, MOST_BYTES)
    }
    /// Returns whether [`Controller::bounded`] would change it.
    #[inline(always)]
    pub fn is_outside(&self, bytes: u64) -> bool {
        bytes.wrapping_sub(self.smss) > self.span
    }
    /// Returns the limit of bytes in flight: at least a segment.
    #[inline(never)]
    pub fn limit(&self, state: &Block) -> u64 {
        self.most(state).unwrap_or(u64::MAX).max(self.smss)
    }
    /// Returns the plug-in.
    pub fn library(&self) -> &'static Library {
        self.library
    }
    /// Ends the run, if a function has failed.
    #[inline(always)]
    fn done(&self, status: i32, function: &'static str) {
        if status != OK {
            self.library.failure(function).raise();
        }
    }
    /// Returns the state of a flow that opens.
    pub fn open(&self, flow: &Flow) -> Block {
        let mut state = Block::new(self.table.head.state_size);
        if let Some(open) = self.table.open {
            self.done(unsafe { open(self.own.at(), state.at(), flow) }, "open");
        }
        state.ends_with(self.table.head.close);
        state
    }
    /// Calls `inherit`.
    pub fn inherit(&self, state: &mut Block, before: &Block) {
        if let Some(inherit) = self.table.inherit {
            self.done(unsafe { inherit(self.own.at(), state.at(), before.at()) }, "inherit");
        }
    }
    /// Calls `on_ack`.
    #[inline(always)]
    pub fn on_ack(&self, state: &mut Block, window: &mut Window, ack: &Ack) {
        self.done(unsafe { (self.on_ack)(self.own.at(), state.at(), window, ack) }, "on_ack");
    }
    /// Returns whether the plug-in has `on_mark`.
    #[inline(always)]
    pub fn has_on_mark(&self) -> bool {
        self.table.on_mark.is_some()
    }
    /// Calls `on_mark`. Returns the new window.
    pub fn on_mark(&self, state: &mut Block, window: &Window, ack: &Ack) -> Option<u64> {
        let on_mark = self.table.on_mark?;
        let mut cwnd = window.cwnd;
        let status = unsafe { on_mark(self.own.at(), state.at(), window, ack, &mut cwnd) };
        if status == NO_EFFECT {
            return None;
        }
        self.done(status, "on_mark");
        Some(cwnd)
    }
    /// Calls `before_loss`.
    pub fn before_loss(&self, state: &mut Block, cause: u32, now_ps: u64) {
        if let Some(before_loss) = self.table.before_loss {
            self.done(unsafe { before_loss(self.own.at(), state.at(), cause, now_ps) }, "before_loss");
        }
    }
    /// Calls `on_loss`. Returns the new slow-start threshold.
    pub fn on_loss(&self, state: &mut Block, window: &Window, loss: &Loss) -> u64 {
        let mut ssthresh = window.ssthresh;
        let status =
            self.table.on_loss.map_or(FAILED, |on_loss| unsafe { on_loss(self.own.at(), state.at(), window, loss, &mut ssthresh) });
        self.done(status, "on_loss");
        ssthresh
    }
    /// Calls `on_sent`.
    #[inline(always)]
    pub fn on_sent(&self, state: &mut Block, now_ps: u64, sent: u64) {
        if let Some(on_sent) = self.table.on_sent {
            self.done(unsafe { on_sent(self.own.at(), state.at(), now_ps, sent) }, "on_sent");
        }
    }
    /// Calls `most`; `None` without it.
    #[inline(always)]
    fn most(&self, state: &Block) -> Option<u64> {
        let function = self.table.most?;
        let mut most = u64::MAX;
        self.done(unsafe { function(self.own.at(), state.at(), &mut most) }, "most");
        Some(most)
    }
    /// Calls `not_before`; `None` without it.
    #[inline(always)]
    pub fn not_before(&self, state: &Block, srtt_ps: u64) -> Option<u64> {
        let function = self.table.not_before?;
        let mut at = 0;
        self.done(unsafe { function(self.own.at(), state.at(), srtt_ps, &mut at) }, "not_before");
        Some(at)
    }
    /// Returns whether the plug-in has counters, or functions that are called for every segment.
    pub fn has_more(&self) -> bool {
        let CongestionTable { on_sent, most, not_before, count, .. } = self.table;
        on_sent.is_some() || most.is_some() || not_before.is_some() || count.is_some()
    }
    /// Calls `each` with every counter and its total.
    #[inline(always)]
    pub fn counters(&self, state: &Block, mut each: impl FnMut(usize, u64)) {
        let Some(count) = self.table.count else { return };
        let totals = unsafe { count(self.own.at(), state.at()) };
        if totals.is_null() {
            self.library.failure("count").raise();
        }
        for i in 0..self.library.counters.len() {
            // Safety: `count` returns a total for each counter.
            each(i, unsafe { *totals.add(i) });
        }
    }
}
