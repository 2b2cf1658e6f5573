//! The side of the simulator: a controller of a plug-in.

use super::{Ack, CongestionTable, Host, Loss, NO_EFFECT, Window};
use crate::abi::{FAILED, Flow, OK, Value};
use crate::block::Block;
use crate::library::{Failure, Library};
use std::ffi::c_void;

/// The controller of a host. It is small: a run touches those of all hosts in turns.
pub struct Controller {
    table: &'static CongestionTable,
    /// Where `block` lies.
    own: *mut c_void,
    library: &'static Library,
    #[allow(dead_code, reason = "ends with the controller")]
    block: Box<Block>,
}

// Safety: a plug-in may be called on any thread, for one controller on one thread at a time.
unsafe impl Send for Controller {}

// Safety of the calls below: the table was checked, `own` was filled by `create`, and states were
// filled by `open` of the same plug-in.

impl Controller {
    /// Creates the controller of a host. There is a value for each parameter.
    pub fn new(library: &'static Library, host: &Host, values: &[Value]) -> Result<Controller, Failure> {
        let (table, own) = library.create(|table: &CongestionTable| table.create, host, values)?;
        let block = Box::new(own);
        let own = block.at();
        Ok(Controller { table, own, library, block })
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
            self.done(unsafe { open(self.own, state.at(), flow) }, "open");
        }
        state.ends_with(self.table.head.close);
        state
    }
    /// Calls `inherit`.
    pub fn inherit(&self, state: &mut Block, before: &Block) {
        if let Some(inherit) = self.table.inherit {
            self.done(unsafe { inherit(self.own, state.at(), before.at()) }, "inherit");
        }
    }
    /// Calls `on_ack`.
    #[inline(always)]
    pub fn on_ack(&self, state: &mut Block, window: &mut Window, ack: &Ack) {
        if let Some(on_ack) = self.table.on_ack {
            self.done(unsafe { on_ack(self.own, state.at(), window, ack) }, "on_ack");
        }
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
        let status = unsafe { on_mark(self.own, state.at(), window, ack, &mut cwnd) };
        if status == NO_EFFECT {
            return None;
        }
        self.done(status, "on_mark");
        Some(cwnd)
    }
    /// Calls `before_loss`.
    pub fn before_loss(&self, state: &mut Block, cause: u32, now_ps: u64) {
        if let Some(before_loss) = self.table.before_loss {
            self.done(unsafe { before_loss(self.own, state.at(), cause, now_ps) }, "before_loss");
        }
    }
    /// Calls `on_loss`. Returns the new slow-start threshold.
    pub fn on_loss(&self, state: &mut Block, window: &Window, loss: &Loss) -> u64 {
        let mut ssthresh = window.ssthresh;
        let status =
            self.table.on_loss.map_or(FAILED, |on_loss| unsafe { on_loss(self.own, state.at(), window, loss, &mut ssthresh) });
        self.done(status, "on_loss");
        ssthresh
    }
    /// Calls `on_sent`.
    #[inline(always)]
    pub fn on_sent(&self, state: &mut Block, now_ps: u64, sent: u64) {
        if let Some(on_sent) = self.table.on_sent {
            self.done(unsafe { on_sent(self.own, state.at(), now_ps, sent) }, "on_sent");
        }
    }
    /// Calls `most`; `None` without it.
    #[inline(always)]
    pub fn most(&self, state: &Block) -> Option<u64> {
        let function = self.table.most?;
        let mut most = u64::MAX;
        self.done(unsafe { function(self.own, state.at(), &mut most) }, "most");
        Some(most)
    }
    /// Calls `not_before`; `None` without it.
    #[inline(always)]
    pub fn not_before(&self, state: &Block, srtt_ps: u64) -> Option<u64> {
        let function = self.table.not_before?;
        let mut at = 0;
        self.done(unsafe { function(self.own, state.at(), srtt_ps, &mut at) }, "not_before");
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
        let totals = unsafe { count(self.own, state.at()) };
        if totals.is_null() {
            self.library.failure("count").raise();
        }
        for i in 0..self.library.counters.len() {
            // Safety: `count` returns a total for each counter.
            each(i, unsafe { *totals.add(i) });
        }
    }
}
