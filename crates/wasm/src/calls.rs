//! The functions of the simulator that a module may call while one of its functions runs.
//!
//! A module imports nothing. As in C, it gets a structure of pointers to functions: in WebAssembly,
//! indices of its table of functions, to which the functions of the simulator are added. They check
//! all addresses that they are passed: one that is not in the memory is a trap.

use crate::functions::open_while_running;
use crate::guest::{Guest, GuestShared, region::OF_ROOM};
use crate::interface::{Func, I32, Opaque, RawVal};
use crate::module::EXPORTS;
use crate::wasmtime::GuestMemory;
use plugin::abi::{OK, Packet};
use plugin::host::{Context, Endpoint, Sample};
use std::ffi::c_void;
use std::ptr;
use std::rc::Rc;

/// Most calls of one function that fill a queue of the simulator: packets, flows that are given up.
const MOST_QUEUED: u32 = 10_000;

/// The region of the simulator of a room whose functions take a context, as offsets.
pub mod region {
    use super::{Endpoint, GuestContext, Packet, Sample};
    /// The most functions that a module may call.
    pub const MOST_CALLS: usize = 14;
    pub const ENDPOINT: u32 = super::OF_ROOM;
    /// `flowloom_policy_calls` or `flowloom_transport_calls`.
    pub const CALLS: u32 = ENDPOINT + size_of::<Endpoint>() as u32;
    pub const SAMPLE: u32 = CALLS + 4 * MOST_CALLS as u32;
    /// From here on, cache lines of most calls.
    pub const PACKET: u32 = (SAMPLE + size_of::<Sample>() as u32).next_multiple_of(64);
    pub const CONTEXT: u32 = PACKET + size_of::<Packet>() as u32;
    pub const OWN: u32 = (CONTEXT + size_of::<GuestContext>() as u32).next_multiple_of(16);
}

/// A context in an instance: `flowloom_context` and `flowloom_policy_context` of wasm32.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct GuestContext {
    pub now_ps: u64,
    /// The address of the structure of functions.
    pub calls: u32,
    /// The address of the context.
    pub handle: u32,
    pub host: u32,
    pub reserved: u32,
}

/// A function of the simulator, among those of `C`.
pub struct HostFunction<C: 'static> {
    /// Its name in C.
    pub name: &'static str,
    /// The kinds of its arguments after the handle.
    pub takes: &'static [u8],
    /// The kind of its result.
    pub gives: u8,
    /// Carries out a call. Returns the result, or why there is a trap.
    pub run: fn(&HostCall<'_, C>) -> Result<u64, String>,
}

/// Writes the [`HostFunction`] of a function that takes and gives plain values: where its arguments are, and their types.
macro_rules! plain {
    ($name:ident: $($at:literal $type:ident),* => I32) => {
        plain!(@ $name: $($at $type),* => $crate::interface::I32, |c| Ok($crate::calls::word(unsafe { (c.calls.$name)(c.handle, $(c.$type($at)),*) })))
    };
    ($name:ident: $($at:literal $type:ident),* => I64) => {
        plain!(@ $name: $($at $type),* => $crate::interface::I64, |c| Ok(unsafe { (c.calls.$name)(c.handle, $(c.$type($at)),*) }))
    };
    (@ $name:ident: $($at:literal $type:ident),* => $gives:expr, $run:expr) => {
        $crate::calls::HostFunction { name: stringify!($name), takes: &[$(plain!(@ $type)),*], gives: $gives, run: $run }
    };
    (@ u32) => { $crate::interface::I32 };
    (@ u64) => { $crate::interface::I64 };
}

/// Writes the [`HostFunction`] of a function that fills a structure for a flow: its address is argument 2.
macro_rules! fills {
    ($name:ident: $empty:expr) => {
        $crate::calls::HostFunction {
            name: stringify!($name),
            takes: &[$crate::interface::I32; 2],
            gives: $crate::interface::I32,
            run: |c| c.fill(2, $empty, |to| unsafe { (c.calls.$name)(c.handle, c.u32(1), to) }),
        }
    };
}
pub(crate) use {fills, plain};

/// A call of a function of the simulator.
pub struct HostCall<'a, C> {
    /// The functions of the simulator.
    pub calls: &'a C,
    /// Passed to them.
    pub handle: *mut c_void,
    name: &'static str,
    words: &'a [RawVal],
    shared: &'a GuestShared,
    memory: GuestMemory,
}

impl<C> HostCall<'_, C> {
    /// Returns an argument. The handle is argument 0.
    pub fn u32(&self, argument: usize) -> u32 {
        self.words[argument].word as u32
    }
    /// As [`HostCall::u32`], of 64 bits.
    pub fn u64(&self, argument: usize) -> u64 {
        self.words[argument].word
    }
    /// Counts a call that fills a queue of the simulator.
    pub fn queues(&self) -> Result<(), String> {
        let left = self.shared.queued.get().checked_sub(1);
        let left = left.ok_or_else(|| format!("it calls `{}` more than {MOST_QUEUED} times in a function", self.name))?;
        self.shared.queued.set(left);
        Ok(())
    }
    /// Returns where the structure is whose address an argument has.
    fn structure<T: Copy>(&self, argument: usize) -> Result<*mut T, String> {
        let (at, size) = (self.u32(argument) as usize, self.memory.size());
        if at == 0 || at + size_of::<T>() > size {
            return Err(format!("it calls `{}` with the address {at}, and its memory has {size} bytes", self.name));
        }
        // Safety: within the memory.
        Ok(unsafe { self.memory.base().add(at).cast() })
    }
    /// Reads a structure of whole numbers.
    pub fn read<T: Copy>(&self, argument: usize) -> Result<T, String> {
        // Safety: within the memory.
        Ok(unsafe { self.structure::<T>(argument)?.read_unaligned() })
    }
    /// Makes a call that fills a structure of whole numbers, unless it fails.
    pub fn fill<T: Copy>(&self, argument: usize, mut value: T, run: impl FnOnce(*mut T) -> i32) -> Result<u64, String> {
        let to = self.structure::<T>(argument)?;
        let status = run(&mut value);
        if status == OK {
            // Safety: within the memory, which has not grown since.
            unsafe { to.write_unaligned(value) }
        }
        Ok(word(status))
    }
    /// Returns the address of a state that the simulator has; 0 if there is none.
    pub fn state(&self, state: *mut c_void) -> Result<u64, String> {
        if state.is_null() {
            return Ok(0);
        }
        // Safety: a state of the simulator is zero at first.
        let at = unsafe { open_while_running(state, self.shared, self.memory) };
        at.map(u64::from).map_err(str::to_owned)
    }
}

/// Returns a status as a result.
pub fn word(status: i32) -> u64 {
    u64::from(status as u32)
}

/// A function of the simulator in an instance.
struct Connected<C: 'static> {
    function: &'static HostFunction<C>,
    shared: Rc<GuestShared>,
    /// The handle that the plug-in gets.
    handle: u32,
}

/// Carries out a call.
///
/// # Safety
///
/// The environment is a [`Connected`], and there is a word for each argument and result.
unsafe extern "C" fn enter<C: 'static>(environment: *mut c_void, caller: Opaque, words: *mut RawVal, _: usize) -> Opaque {
    let Connected { function, shared, handle } = unsafe { &*environment.cast::<Connected<C>>() };
    let name = function.name;
    let memory = shared.memory.of_caller(caller);
    let arguments = unsafe { std::slice::from_raw_parts(words, 1 + function.takes.len()) };
    let (calls, host) = shared.running.get();
    let result = if calls.is_null() {
        Err(format!("it calls `{name}` in a function that has no context"))
    } else if arguments[0].word as u32 != *handle {
        Err(format!("it calls `{name}` with another handle than that of the context"))
    } else {
        // Safety: the simulator has passed these functions and their handle to the function that runs.
        let calls = unsafe { &*calls.cast::<C>() };
        (function.run)(&HostCall { calls, handle: host, name, words: arguments, shared, memory })
    };
    match result {
        Ok(word) => {
            // Safety: each function has a result.
            unsafe { (*words).word = word };
            ptr::null_mut()
        }
        Err(why) => memory.trap(&why),
    }
}

unsafe extern "C" fn end<C: 'static>(environment: *mut c_void) {
    // Safety: the store has ended, which has used it.
    drop(unsafe { Box::from_raw(environment.cast::<Connected<C>>()) });
}

/// Adds functions of the simulator to the table of an instance, and writes their structure.
pub fn connect<C: 'static>(guest: &mut Guest, functions: &'static [HostFunction<C>]) -> Result<(), String> {
    assert!(functions.len() <= region::MOST_CALLS, "the region has a place for each function");
    let (shared, handle) = (Rc::clone(guest.shared()), guest.at(region::CONTEXT) as u32);
    let instance = guest.instance();
    let make = |function: &'static HostFunction<C>| {
        let environment = Box::into_raw(Box::new(Connected { function, shared: Rc::clone(&shared), handle }));
        let takes = [&[I32], function.takes].concat();
        // Safety: the environment is that of `enter`, and ends once.
        unsafe { instance.host(&takes, function.gives, enter::<C>, environment.cast(), end::<C>) }
    };
    let made: Vec<Func> = functions.iter().map(make).collect();
    let [.., table] = EXPORTS;
    let first = guest.instance().add(table, &made).ok_or_else(|| {
        format!(
            "its table `{table}` cannot grow, and the functions of the simulator need {} places: link it with `--growable-table`",
            made.len()
        )
    })?;
    for at in 0..made.len() as u32 {
        guest.write(region::CALLS + 4 * at, &(first + at));
    }
    guest.grows();
    Ok(())
}

impl Guest {
    /// Calls a function that may call the simulator, with a context as its second argument. `rest` are the arguments after it.
    #[inline]
    pub fn call_in<C, const N: usize>(&mut self, cx: &Context<C>, role: usize, rest: [u64; N], others: &[i32]) -> i32 {
        let [own, calls, handle] = [region::OWN, region::CALLS, region::CONTEXT].map(|offset| self.at(offset));
        let context =
            GuestContext { now_ps: cx.now_ps, calls: calls as u32, handle: handle as u32, host: cx.host, reserved: cx.reserved };
        self.write(region::CONTEXT, &context);
        self.shared().running.set((cx.calls.cast(), cx.handle));
        self.shared().queued.set(MOST_QUEUED);
        let status = match rest[..] {
            [one] => self.call(role, [own, handle, one], others),
            [one, two] => self.call(role, [own, handle, one, two], others),
            _ => self.call(role, [own, handle], others),
        };
        self.shared().running.set((ptr::null(), ptr::null_mut()));
        status
    }
    /// Calls a function that may call the simulator, with a context and a packet, which it may fill or change.
    #[inline]
    pub fn call_with_packet<C>(&mut self, cx: &Context<C>, role: usize, packet: &mut Packet, others: &[i32]) -> i32 {
        self.write(region::PACKET, packet);
        let status = self.call_in(cx, role, [self.at(region::PACKET)], others);
        *packet = self.read(region::PACKET);
        status
    }
}

#[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
pub mod tests {
    use super::*;
    use crate::interface::I64;

    /// Returns what the header must agree with, for a context and a structure of functions, whose types are compared, too.
    pub fn layout_of_calls<C>(context: &str, calls: &str, functions: &[HostFunction<C>]) -> Vec<String> {
        let fields = ["now_ps", "calls", "handle", "host", "reserved"].into_iter().zip([0, 8, 12, 16, 20]);
        let mut checks: Vec<String> = fields.map(|(field, at)| format!("offsetof(flowloom_{context}, {field}) == {at}")).collect();
        for (i, function) in functions.iter().enumerate() {
            checks.push(format!("offsetof(flowloom_{calls}, {}) == {}", function.name, 4 * i));
            // In C, results of 64 bits are whole numbers; others are statuses and, in `state`, an address.
            let pointer = format!("((flowloom_{calls} *)0)->{}", function.name);
            let arguments: Vec<String> =
                function.takes.iter().map(|kind| if *kind == I64 { "(uint64_t)0" } else { "0" }.to_owned()).collect();
            let call = format!("{pointer}({})", [vec!["(void *)0".to_owned()], arguments].concat().join(", "));
            checks.push(format!("sizeof({call}) == {}", if function.gives == I64 { 8 } else { 4 }));
        }
        checks
    }
}
