//! A plug-in in the memory of an instance, one for each machine of its room (the controller of a host, the
//! discipline of a port), unless the plug-in declares that they may share one: its functions are called with
//! addresses of blocks and structures in that memory.
//!
//! The instance's memory has a region of the simulator, which never moves: values, structures of
//! calls, the block of the machine, and the blocks of states. The plug-in may overwrite it, which
//! harms only itself: the simulator reads results from it, and no addresses.

use crate::interface::{Opaque, RawVal};
use crate::module::{Bare, CLOSE, CREATE, DESTROY, FAILURE, GuestModule, MOST_ROLES, VALUES, text};
use crate::wasmtime::{Failed, GuestMemory, Instance, Store};
use plugin::abi::{FAILED, OK, Value};
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;
use std::rc::Rc;

/// The region of the simulator, as offsets. A room continues it with the structures of its functions and the block of the machine.
pub mod region {
    /// Values of parameters.
    pub const VALUES: u32 = 0;
    /// The structure that `create` takes, and others of the room.
    pub const OF_ROOM: u32 = VALUES + 8 * super::VALUES as u32;
}

/// What an instance shares with the functions of the simulator that it calls while one of its functions runs.
pub struct GuestShared {
    /// The memory of the instance.
    pub memory: GuestMemory,
    /// Bytes of a state.
    state_size: u32,
    /// The rest of the region, for states.
    next: Cell<u32>,
    end: Cell<u32>,
    /// Addresses of states that are free.
    free: RefCell<Vec<u32>>,
    /// The machines and the states that use it, and the group.
    pub uses: Cell<usize>,
    /// The instance, once it has a place.
    pub guest: Cell<*mut Guest>,
    /// The functions of the simulator and their handle, while a function of the plug-in runs that may call them; null otherwise.
    pub running: Cell<(*const c_void, *mut c_void)>,
    /// Calls that this function may still make of those that fill a queue of the simulator.
    pub queued: Cell<u32>,
}

impl GuestShared {
    /// Returns a new block of the region, aligned to 16 bytes.
    fn block(&self, memory: GuestMemory, bytes: u32) -> Option<u32> {
        let bytes = bytes.max(1).next_multiple_of(16);
        if self.end.get() - self.next.get() < bytes {
            // No block has the address 0, which is NULL.
            let pages = (bytes + 16).div_ceil(1 << 16);
            let first = memory.grow(pages)?;
            // The plug-in may have let its memory grow, so that the new pages do not follow those before them.
            if first != self.end.get() || first == 0 {
                self.next.set(first.max(16));
            }
            self.end.set(first + (pages << 16));
        }
        let at = self.next.get();
        self.next.set(at + bytes);
        Some(at)
    }
    /// Returns the address of a state that is zero. The error says that there is no memory.
    pub fn state(&self, memory: GuestMemory) -> Result<u32, &'static str> {
        let free = self.free.borrow_mut().pop();
        let state = free.or_else(|| self.block(memory, self.state_size)).ok_or(NO_MEMORY)?;
        // Safety: a block of the region.
        unsafe { memory.base().add(state as usize).write_bytes(0, self.state_size as usize) }
        Ok(state)
    }
    /// Takes the block of a state back.
    pub fn unused(&self, state: u32) {
        self.free.borrow_mut().push(state);
    }
}

/// An instance. What every call needs comes first, because instances take turns and the processor's caches are small.
#[repr(C, align(64))]
pub struct Guest {
    instance: Instance,
    /// The first byte of the memory, which moves when the memory grows.
    base: *mut u8,
    /// The address of the region.
    region: u32,
    /// Whether functions may let the memory grow.
    grows: bool,
    /// Whether a trap has left it in the middle of a function.
    trapped: bool,
    /// Those of its room come first.
    functions: [Opaque; MOST_ROLES],
    module: &'static GuestModule,
    memory: GuestMemory,
    /// A block for lists of any length, and its size.
    list: (u32, u32),
    /// Why it may not be called any more.
    trap: String,
    /// What has failed last.
    why: String,
    totals: Vec<u64>,
    shared: Rc<GuestShared>,
}

impl Guest {
    /// Creates an instance, in a store.
    pub fn new(module: &'static GuestModule, store: Rc<Store>) -> Result<Guest, String> {
        let bare = Bare::new(&module.code, store)?;
        if bare.table != module.table {
            return Err("its function `flowloom_plugin` returns another table than before".to_owned());
        }
        let mut functions = [ptr::null_mut(); MOST_ROLES];
        for (role, index) in module.functions.iter().enumerate().filter(|(_, index)| **index != 0) {
            functions[place(role)] = bare.function(module.roles, role, *index)?.private;
        }
        let Bare { instance, memory, .. } = bare;
        let shared = Rc::new(GuestShared {
            memory,
            state_size: module.state_size,
            next: Cell::new(0),
            end: Cell::new(0),
            free: RefCell::default(),
            uses: Cell::new(1),
            guest: Cell::new(ptr::null_mut()),
            running: Cell::new((ptr::null(), ptr::null_mut())),
            queued: Cell::new(0),
        });
        let mut guest = Guest {
            instance,
            base: ptr::null_mut(),
            region: 0,
            grows: module.grows,
            trapped: false,
            functions,
            module,
            memory,
            list: (0, 0),
            trap: String::new(),
            why: String::new(),
            totals: vec![0; module.counters],
            shared,
        };
        guest.region = guest.block(module.own + module.own_size).ok_or(NO_MEMORY)?;
        Ok(guest)
    }
    /// Creates a machine, and returns its address. `about` describes its place, like the configuration of a host. On failure,
    /// [`Guest::why`] has the reason.
    pub fn create<T: Copy>(&mut self, about: &T, values: &[Value]) -> Option<u32> {
        let own = if self.module.shares { self.block(self.module.own_size) } else { Some(self.own()) };
        let Some(own) = own else {
            NO_MEMORY.clone_into(&mut self.why);
            return None;
        };
        for (i, value) in values.iter().enumerate() {
            self.write(region::VALUES + 8 * i as u32, &value.0);
        }
        self.write(region::OF_ROOM, about);
        let words = [self.module.context.into(), own.into(), self.at(region::OF_ROOM), self.at(region::VALUES)];
        (!self.has(CREATE) || self.call(CREATE, words, &[]) == OK).then_some(own)
    }
    /// Returns why the last function has failed.
    pub fn why(&self) -> &str {
        &self.why
    }
    /// Returns what it shares with the functions of the simulator.
    pub fn shared(&self) -> &Rc<GuestShared> {
        &self.shared
    }
    /// Returns the address of a machine that does not share it.
    fn own(&self) -> u32 {
        self.region + self.module.own
    }
    /// Returns its module.
    pub fn module(&self) -> &'static GuestModule {
        self.module
    }
    /// Returns the instance.
    pub fn instance(&mut self) -> &mut Instance {
        &mut self.instance
    }
    /// Declares that functions may let the memory grow.
    pub fn grows(&mut self) {
        self.grows = true;
    }
    /// Returns the two words after the head of its table.
    pub fn words(&self) -> [u32; 2] {
        self.module.words
    }
    /// Returns whether the plug-in has a function.
    pub fn has(&self, role: usize) -> bool {
        self.module.functions[role] != 0
    }
    /// Returns a new block of the region, aligned to 16 bytes.
    fn block(&mut self, bytes: u32) -> Option<u32> {
        let block = self.shared.block(self.memory, bytes);
        self.base = self.memory.base();
        block
    }
    /// Returns the place of an offset of the region.
    #[inline(always)]
    fn place<T>(&self, offset: u32) -> *mut T {
        // Safety: the region has a place for it, and a memory never shrinks.
        unsafe { self.base.add(self.region as usize + offset as usize).cast() }
    }
    /// Writes a structure of whole numbers at an offset of the region.
    #[inline(always)]
    pub fn write<T: Copy>(&mut self, offset: u32, value: &T) {
        // Safety: as above.
        unsafe { copy(value, self.place(offset)) }
    }
    /// Writes a list of structures of whole numbers. Returns its address; `None` on failure, for which [`Guest::why`] has the reason.
    pub fn write_list<T: Copy>(&mut self, list: &[T]) -> Option<u32> {
        let bytes = size_of_val(list) as u32;
        if bytes > self.list.1 {
            let larger = bytes.next_power_of_two();
            let Some(at) = self.block(larger) else {
                NO_MEMORY.clone_into(&mut self.why);
                return None;
            };
            self.list = (at, larger);
        }
        // Safety: a block of the region that is large enough.
        unsafe { ptr::copy_nonoverlapping(list.as_ptr().cast(), self.base.add(self.list.0 as usize), bytes as usize) }
        Some(self.list.0)
    }
    /// Writes words of 64 bits at an offset of the region.
    #[inline(always)]
    pub fn write_words<const N: usize>(&mut self, offset: u32, words: [u64; N]) {
        for (at, word) in words.into_iter().enumerate() {
            // Safety: as above.
            unsafe { self.place::<u64>(offset).add(at).write_volatile(word) }
        }
    }
    /// Reads a structure of whole numbers at an offset of the region.
    #[inline(always)]
    pub fn read<T: Copy>(&self, offset: u32) -> T {
        let mut value = MaybeUninit::uninit();
        // Safety: as above.
        unsafe {
            copy(self.place(offset), value.as_mut_ptr());
            value.assume_init()
        }
    }
    /// Calls a function. Returns [`OK`], a status among `others`, or [`FAILED`], for which [`Guest::why`] has the reason.
    #[inline(always)]
    pub fn call<const N: usize>(&mut self, role: usize, words: [u64; N], others: &[i32]) -> i32 {
        let mut raw = words.map(RawVal::new);
        if !self.run(role, &mut raw) {
            return FAILED;
        }
        let status = raw[0].word as i32;
        if status == OK || others.contains(&status) { status } else { self.failed(status) }
    }
    #[inline(always)]
    fn run(&mut self, role: usize, raw: &mut [RawVal]) -> bool {
        if self.trapped {
            return self.again();
        }
        // Safety: the type of the function was checked, and each type has at most as many results as arguments, or one.
        let done = unsafe { self.instance.call(self.functions[place(role)], raw) };
        if self.grows {
            self.base = self.memory.base();
        }
        match done {
            Ok(()) => true,
            Err(failed) => self.trapped(failed),
        }
    }
    #[cold]
    fn trapped(&mut self, failed: Failed) -> bool {
        let why = self.instance.why(failed);
        (self.trapped, self.trap) = (true, why.clone());
        self.why = why;
        false
    }
    /// Fails as it has failed before.
    #[cold]
    fn again(&mut self) -> bool {
        self.why.clone_from(&self.trap);
        false
    }
    /// Asks the plug-in why a function has failed. Returns [`FAILED`].
    #[cold]
    fn failed(&mut self, status: i32) -> i32 {
        self.why = if status == FAILED { String::new() } else { format!("it returned {status}") };
        let mut raw = [RawVal::new(0)];
        if self.has(FAILURE) && self.run(FAILURE, &mut raw) {
            let text = self.text(raw[0].word as u32).map(|text| String::from_utf8_lossy(text).into_owned());
            self.why = text.unwrap_or_default();
        }
        FAILED
    }
    fn text(&self, at: u32) -> Option<&[u8]> {
        // Safety: nothing runs while the bytes are borrowed.
        let bytes = unsafe { std::slice::from_raw_parts(self.base, self.memory.size()) };
        text(bytes, at)
    }
    /// Returns the address of an offset of the region, as an argument.
    #[inline(always)]
    pub fn at(&self, offset: u32) -> u64 {
        u64::from(self.region) + u64::from(offset)
    }

    /// Returns the address of a state that is zero. On failure, [`Guest::why`] has the reason.
    pub fn state(&mut self) -> Option<u32> {
        let state = self.shared.state(self.memory);
        self.base = self.memory.base();
        state.map_err(|why| why.clone_into(&mut self.why)).ok()
    }
    /// Calls a function that returns the address of counters. Returns null if it fails.
    pub fn totals<const N: usize>(&mut self, role: usize, words: [u64; N]) -> *const u64 {
        let mut raw = words.map(RawVal::new);
        if !self.run(role, &mut raw) {
            return ptr::null();
        }
        let (at, size) = (raw[0].word as u32 as usize, self.memory.size());
        if at == 0 || at + 8 * self.totals.len() > size {
            self.why = format!("it returns the address {at}, and its memory has {size} bytes");
            return ptr::null();
        }
        // Safety: within the memory.
        unsafe { ptr::copy_nonoverlapping(self.base.add(at), self.totals.as_mut_ptr().cast(), 8 * self.totals.len()) }
        self.totals.as_ptr()
    }
    /// Calls `close`, and takes the block of a state back.
    pub fn close(&mut self, state: u32) {
        if self.has(CLOSE) {
            self.run(CLOSE, &mut [RawVal::new(state.into())]);
        }
        self.shared.unused(state);
    }
    /// Calls `destroy` for the machine at an address.
    pub fn destroy(&mut self, own: u32) {
        if self.has(DESTROY) {
            self.run(DESTROY, &mut [RawVal::new(own.into())]);
        }
    }
}

/// Returns the place of a function among those of a guest.
const fn place(role: usize) -> usize {
    (role + MOST_ROLES - CREATE) % MOST_ROLES
}

/// Copies a structure word by word. A wider load of words that were stored one by one just before would wait until the stores have
/// reached the cache.
///
/// # Safety
///
/// As for [`ptr::copy`].
#[inline(always)]
unsafe fn copy<T: Copy>(from: *const T, to: *mut T) {
    if align_of::<T>() < 8 {
        return unsafe { to.write_unaligned(from.read_unaligned()) };
    }
    let (from, to) = (from.cast::<MaybeUninit<u64>>(), to.cast::<MaybeUninit<u64>>());
    for word in 0..size_of::<T>() / 8 {
        // Volatile, so that the compiler does not make wider ones of them.
        unsafe { to.add(word).write_volatile(from.add(word).read_volatile()) }
    }
}

/// Why a block cannot be made.
const NO_MEMORY: &str = "its memory is full: an instance has at most 16 MiB, or 256 MiB if hosts share it";
