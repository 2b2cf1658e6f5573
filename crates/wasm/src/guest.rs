//! A plug-in in the memory of its own instance, one for each controller of a host: its functions are
//! called with addresses of blocks and structures in that memory.
//!
//! The instance's memory has a region of the simulator, which never moves: values, structures of
//! calls, the block of the controller, and the blocks of flows. The plug-in may overwrite it, which
//! harms only itself: the simulator reads windows from it, and no addresses.

use crate::interface::{Func, RawVal, StoreItem};
use crate::module::{Bare, CALLS, FUEL, GuestModule, ROLES, Role, VALUES, text};
use crate::wasmtime::Store;
use plugin::abi::{FAILED, Flow, OK, Value};
use plugin::congestion::{Ack, Host, Loss, NO_EFFECT, Window};
use std::ptr;

/// The region of the simulator, as offsets: what every call needs is close to the first states.
mod region {
    pub const VALUES: u32 = 0;
    pub const HOST: u32 = VALUES + 8 * super::VALUES as u32;
    pub const FLOW: u32 = HOST + 40;
    pub const LOSS: u32 = FLOW + 32;
    pub const RESULT: u32 = LOSS + 16;
    /// From here on, cache lines of `on_ack`.
    pub const WINDOW: u32 = (RESULT + 8).next_multiple_of(64);
    pub const ACK: u32 = WINDOW + 16;
    pub const OWN: u32 = (ACK + 80).next_multiple_of(16);
}

/// The controller of a host. What every call needs comes first, because hosts take turns and the processor's caches are small.
#[repr(C, align(64))]
pub struct Guest {
    store: Store,
    /// The first byte of the memory, which moves when the memory grows.
    base: *mut u8,
    /// The address of the region.
    region: u32,
    /// Calls until the fuel is filled up.
    calls: u32,
    /// Whether functions may let the memory grow.
    grows: bool,
    functions: [Func; ROLES.len()],
    module: &'static GuestModule,
    memory: StoreItem,
    /// The rest of the region, for states.
    next: u32,
    end: u32,
    /// Addresses of states that are free.
    free: Vec<u32>,
    /// Why it may not be called any more: a trap leaves it in the middle of a function.
    broken: Option<String>,
    /// What has failed last.
    why: String,
    totals: Vec<u64>,
    /// The controller and the states that use it.
    pub uses: usize,
}

impl Guest {
    /// Creates the controller of a host.
    pub fn new(module: &'static GuestModule, host: &Host, values: &[Value]) -> Result<Guest, String> {
        let bare = Bare::new(&module.code)?;
        if bare.table != module.table {
            return Err("its function `flowloom_plugin` returns another table than before".to_owned());
        }
        let mut functions = [Func::NONE; ROLES.len()];
        for (role, index) in module.functions.iter().enumerate().filter(|(_, index)| **index != 0) {
            functions[role] = bare.function(role, *index)?;
        }
        let Bare { store, memory, .. } = bare;
        let (free, totals) = (Vec::new(), vec![0; module.counters]);
        let mut guest = Guest {
            store,
            base: ptr::null_mut(),
            region: 0,
            calls: 0,
            grows: module.grows,
            functions,
            module,
            memory,
            next: 0,
            end: 0,
            free,
            broken: None,
            why: String::new(),
            totals,
            uses: 1,
        };
        guest.region = guest.block(region::OWN + module.own_size).ok_or(NO_MEMORY)?;
        for (i, value) in values.iter().enumerate() {
            guest.write(region::VALUES + 8 * i as u32, &value.0);
        }
        guest.write(region::HOST, host);
        if module.functions[Role::Create as usize] != 0 {
            let at = |offset| u64::from(guest.region + offset);
            let words = [module.context.into(), at(region::OWN), at(region::HOST), at(region::VALUES)];
            if guest.call(Role::Create, words) != OK {
                return Err(guest.why);
            }
        }
        Ok(guest)
    }
    /// Returns why the last function has failed.
    pub fn why(&self) -> &str {
        &self.why
    }
    /// Returns a new block of the region, aligned to 16 bytes.
    fn block(&mut self, bytes: u32) -> Option<u32> {
        let bytes = bytes.max(1).next_multiple_of(16);
        if self.end - self.next < bytes {
            // No block has the address 0, which is NULL.
            let pages = (bytes + 16).div_ceil(1 << 16);
            let first = self.store.grow(&self.memory, pages)?;
            self.base = self.store.base(&self.memory);
            // The plug-in may have let its memory grow, so that the new pages do not follow those before them.
            if first != self.end || first == 0 {
                self.next = first.max(16);
            }
            self.end = first + (pages << 16);
        }
        let at = self.next;
        self.next += bytes;
        Some(at)
    }
    /// Writes a structure of whole numbers at an offset of the region.
    #[inline(always)]
    fn write<T: Copy>(&mut self, offset: u32, value: &T) {
        // Safety: the region has a place for it, and a memory never shrinks.
        unsafe { self.base.add((self.region + offset) as usize).cast::<T>().write_unaligned(*value) }
    }
    #[inline(always)]
    fn read<T: Copy>(&self, offset: u32) -> T {
        // Safety: as above.
        unsafe { self.base.add((self.region + offset) as usize).cast::<T>().read_unaligned() }
    }
    /// Calls a function. Returns its result; [`FAILED`] if it traps.
    #[inline(always)]
    fn call<const N: usize>(&mut self, role: Role, words: [u64; N]) -> i32 {
        let mut raw = words.map(RawVal::new);
        if !self.run(role, &mut raw) {
            return FAILED;
        }
        let status = raw[0].word as i32;
        if status != OK && (status, role) != (NO_EFFECT, Role::OnMark) {
            self.failed();
        }
        status
    }
    #[inline(always)]
    fn run(&mut self, role: Role, raw: &mut [RawVal]) -> bool {
        if self.calls == 0 && !self.ready() {
            return false;
        }
        self.calls -= 1;
        // Safety: the type of the function was checked, and each type has at most as many results as arguments, or one.
        let done = unsafe { self.store.call(&self.functions[role as usize], raw) };
        if self.grows {
            self.base = self.store.base(&self.memory);
        }
        match done {
            Ok(()) => true,
            Err(why) => self.trapped(why),
        }
    }
    #[cold]
    fn trapped(&mut self, why: String) -> bool {
        (self.calls, self.broken) = (0, Some(why.clone()));
        self.why = why;
        false
    }
    /// Fills the fuel up, unless the instance is broken.
    #[cold]
    fn ready(&mut self) -> bool {
        if let Some(why) = &self.broken {
            self.why.clone_from(why);
            return false;
        }
        self.store.set_fuel(FUEL);
        self.calls = CALLS;
        true
    }
    /// Asks the plug-in why a function has failed.
    #[cold]
    fn failed(&mut self) {
        self.why.clear();
        if self.module.functions[Role::Failure as usize] == 0 {
            return;
        }
        let mut raw = [RawVal::new(0)];
        if self.run(Role::Failure, &mut raw) {
            self.why = self.text(raw[0].word as u32).map_or(String::new(), |text| String::from_utf8_lossy(text).into_owned());
        }
    }
    fn text(&self, at: u32) -> Option<&[u8]> {
        // Safety: nothing runs while the bytes are borrowed.
        let bytes = unsafe { std::slice::from_raw_parts(self.base, self.store.size(&self.memory)) };
        text(bytes, at)
    }
    #[inline(always)]
    fn at(&self, offset: u32) -> u64 {
        u64::from(self.region + offset)
    }
    #[inline(always)]
    fn own(&self) -> u64 {
        self.at(region::OWN)
    }

    /// Returns the address of the state of a flow that opens.
    pub fn open(&mut self, flow: &Flow) -> Option<u32> {
        let size = self.module.state_size;
        let Some(state) = self.free.pop().or_else(|| self.block(size)) else {
            NO_MEMORY.clone_into(&mut self.why);
            return None;
        };
        // Safety: a block of the region.
        unsafe { self.base.add(state as usize).write_bytes(0, size as usize) }
        self.write(region::FLOW, flow);
        let words = [self.own(), state.into(), self.at(region::FLOW)];
        if self.call(Role::Open, words) == OK {
            return Some(state);
        }
        self.free.push(state);
        None
    }
    /// Calls `inherit`.
    pub fn inherit(&mut self, state: u32, before: u32) -> i32 {
        self.call(Role::Inherit, [self.own(), state.into(), before.into()])
    }
    /// Calls `on_ack`.
    #[inline]
    pub fn on_ack(&mut self, state: u32, window: &mut Window, ack: &Ack) -> i32 {
        self.write(region::WINDOW, window);
        self.write(region::ACK, ack);
        let status = self.call(Role::OnAck, [self.own(), state.into(), self.at(region::WINDOW), self.at(region::ACK)]);
        *window = self.read(region::WINDOW);
        status
    }
    /// Calls `on_mark`.
    pub fn on_mark(&mut self, state: u32, window: &Window, ack: &Ack, cwnd: &mut u64) -> i32 {
        self.write(region::WINDOW, window);
        self.write(region::ACK, ack);
        self.write(region::RESULT, cwnd);
        let [window, ack, result] = [region::WINDOW, region::ACK, region::RESULT].map(|offset| self.at(offset));
        let status = self.call(Role::OnMark, [self.own(), state.into(), window, ack, result]);
        *cwnd = self.read(region::RESULT);
        status
    }
    /// Calls `before_loss`.
    pub fn before_loss(&mut self, state: u32, cause: u32, now_ps: u64) -> i32 {
        self.call(Role::BeforeLoss, [self.own(), state.into(), cause.into(), now_ps])
    }
    /// Calls `on_loss`.
    pub fn on_loss(&mut self, state: u32, window: &Window, loss: &Loss, ssthresh: &mut u64) -> i32 {
        self.write(region::WINDOW, window);
        self.write(region::LOSS, loss);
        self.write(region::RESULT, ssthresh);
        let [window, loss, result] = [region::WINDOW, region::LOSS, region::RESULT].map(|offset| self.at(offset));
        let status = self.call(Role::OnLoss, [self.own(), state.into(), window, loss, result]);
        *ssthresh = self.read(region::RESULT);
        status
    }
    /// Calls `on_sent`.
    #[inline]
    pub fn on_sent(&mut self, state: u32, now_ps: u64, sent: u64) -> i32 {
        self.call(Role::OnSent, [self.own(), state.into(), now_ps, sent])
    }
    /// Calls `most`.
    #[inline]
    pub fn most(&mut self, state: u32, most: &mut u64) -> i32 {
        self.write(region::RESULT, most);
        let status = self.call(Role::Most, [self.own(), state.into(), self.at(region::RESULT)]);
        *most = self.read(region::RESULT);
        status
    }
    /// Calls `not_before`.
    #[inline]
    pub fn not_before(&mut self, state: u32, srtt_ps: u64, at_ps: &mut u64) -> i32 {
        self.write(region::RESULT, at_ps);
        let status = self.call(Role::NotBefore, [self.own(), state.into(), srtt_ps, self.at(region::RESULT)]);
        *at_ps = self.read(region::RESULT);
        status
    }
    /// Calls `count`. Returns null if it fails.
    pub fn count(&mut self, state: u32) -> *const u64 {
        let mut raw = [self.own(), state.into()].map(RawVal::new);
        if !self.run(Role::Count, &mut raw) {
            return ptr::null();
        }
        let (at, size) = (raw[0].word as u32 as usize, self.store.size(&self.memory));
        if at == 0 || at + 8 * self.totals.len() > size {
            self.why = format!("it returns the address {at}, and its memory has {size} bytes");
            return ptr::null();
        }
        // Safety: within the memory.
        unsafe { ptr::copy_nonoverlapping(self.base.add(at), self.totals.as_mut_ptr().cast(), 8 * self.totals.len()) }
        self.totals.as_ptr()
    }
    /// Calls `close`, and takes the block of a flow back.
    pub fn close(&mut self, state: u32) {
        if self.module.functions[Role::Close as usize] != 0 {
            self.run(Role::Close, &mut [RawVal::new(state.into())]);
        }
        self.free.push(state);
    }
    /// Calls `destroy`.
    pub fn destroy(&mut self) {
        if self.module.functions[Role::Destroy as usize] != 0 {
            self.run(Role::Destroy, &mut [RawVal::new(self.own())]);
        }
    }
}

/// Why a block cannot be made.
const NO_MEMORY: &str = "its memory is full: a host's controller has at most 16 MiB";
