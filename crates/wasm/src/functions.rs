//! The functions that all rooms have in their tables, and what those of a room have in common: they call a guest, and keep the
//! reason of a failure for the simulator, which asks for it.

use crate::guest::{Guest, GuestShared};
use crate::module::GuestModule;
use crate::wasmtime::GuestMemory;
use plugin::abi::{FAILED, OK, StateBytes, Value};
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_void};

thread_local! {
    /// Why the last function on this thread has failed.
    static FAILURE: RefCell<CString> = RefCell::new(CString::default());
}

/// The state of a flow or of a switch: its machine, which outlives it, and its address there.
pub struct State {
    guest: *mut Guest,
    at: u32,
}

/// Ends a use of a machine.
///
/// # Safety
///
/// The use has begun, and nothing else borrows the machine.
unsafe fn release(guest: *mut Guest) {
    unsafe {
        let left = (*guest).shared().uses.get() - 1;
        (*guest).shared().uses.set(left);
        if left == 0 {
            drop(Box::from_raw(guest));
        }
    }
}

/// Keeps the reason of a failure.
#[cold]
fn fail(why: &str) -> i32 {
    FAILURE.with(|known| *known.borrow_mut() = CString::new(why.replace('\0', " ")).unwrap_or_default());
    FAILED
}

/// Calls a function of a guest. A failure has a reason.
///
/// # Safety
///
/// [`create`] has filled the block, and the machine is used on this thread only.
#[inline(always)]
pub unsafe fn with_machine(own: *const c_void, call: impl FnOnce(&mut Guest) -> i32) -> i32 {
    let guest = unsafe { &mut **own.cast::<*mut Guest>() };
    let status = call(guest);
    if status < OK { fail(guest.why()) } else { status }
}

/// Calls a function of a guest for a state. A failure has a reason.
///
/// # Safety
///
/// [`open`] has filled the block, and the machine is used on this thread only.
#[inline(always)]
pub unsafe fn with_state(state: *const c_void, call: impl FnOnce(&mut Guest, u32) -> i32) -> i32 {
    let (guest, at) = unsafe {
        let state = &*state.cast::<State>();
        (&mut *state.guest, state.at)
    };
    let status = call(guest, at);
    if status < OK { fail(guest.why()) } else { status }
}

/// Returns the address of a state in its instance; 0 if it was not opened.
///
/// # Safety
///
/// The block is zero, or [`open`] or [`open_while_running`] has filled it.
pub unsafe fn address(state: *const c_void) -> u32 {
    unsafe { (*state.cast::<State>()).at }
}

/// Opens a state while a function of the machine runs, unless it is open. Returns its address.
///
/// # Safety
///
/// As for [`address`]. The memory is that of the caller.
pub unsafe fn open_while_running(state: StateBytes, shared: &GuestShared, memory: GuestMemory) -> Result<u32, &'static str> {
    let state = unsafe { &mut *state.cast::<State>() };
    if state.guest.is_null() {
        *state = State { at: shared.state(memory)?, guest: shared.guest.get() };
        shared.uses.update(|uses| uses + 1);
    }
    Ok(state.at)
}

/// Opens a state: fills its block. `call` fills the state in the instance.
///
/// # Safety
///
/// [`create`] has filled the block of the machine, and the machine is used on this thread only.
pub unsafe fn open(own: *const c_void, state: StateBytes, call: impl FnOnce(&mut Guest, u32) -> i32) -> i32 {
    let guest = unsafe { *own.cast::<*mut Guest>() };
    let used = unsafe { &mut *guest };
    let Some(at) = used.state() else { return fail(used.why()) };
    if call(used, at) != OK {
        used.shared().unused(at);
        return fail(used.why());
    }
    used.shared().uses.update(|uses| uses + 1);
    unsafe { state.cast::<State>().write(State { guest, at }) };
    OK
}

// Safety of the functions below: the simulator passes the blocks that `create` and `open` have
// filled, and structures that live as long as the call.

/// Creates a machine in its block.
pub unsafe extern "C" fn create<T: Copy>(context: *const c_void, own: *mut c_void, about: *const T, values: *const Value) -> i32 {
    unsafe { create_with(context, own, about, values, |_| Ok(())) }
}
/// As [`create`]. `connect` gives the instance the functions of the simulator.
///
/// # Safety
///
/// As for [`create`].
pub unsafe fn create_with<T: Copy>(
    context: *const c_void,
    own: *mut c_void,
    about: *const T,
    values: *const Value,
    connect: impl FnOnce(&mut Guest) -> Result<(), String>,
) -> i32 {
    let module = unsafe { &*context.cast::<GuestModule>() };
    let values = if module.parameters == 0 { &[] } else { unsafe { std::slice::from_raw_parts(values, module.parameters) } };
    match Guest::new(module, unsafe { &*about }, values, connect) {
        Ok(guest) => {
            let guest = Box::into_raw(Box::new(guest));
            unsafe {
                (*guest).shared().guest.set(guest);
                own.cast::<*mut Guest>().write(guest);
            }
            OK
        }
        Err(why) => fail(&why),
    }
}
/// Ends a state, if it was opened.
pub unsafe extern "C" fn close(state: StateBytes) {
    let State { guest, at } = unsafe { state.cast::<State>().read() };
    if guest.is_null() {
        return;
    }
    unsafe {
        (*guest).close(at);
        release(guest);
    }
}
/// Ends a machine.
pub unsafe extern "C" fn destroy(own: *mut c_void) {
    let guest = unsafe { *own.cast::<*mut Guest>() };
    unsafe {
        (*guest).destroy();
        release(guest);
    }
}
/// Returns why the last function on this thread has failed.
pub unsafe extern "C" fn failure() -> *const c_char {
    FAILURE.with(|text| text.borrow().as_ptr())
}
