//! The functions that all rooms have in their tables, and what those of a room have in common: they call a guest, and keep the
//! reason of a failure for the simulator, which asks for it.

use crate::guest::{Guest, GuestShared};
use crate::module::{EACH, GuestModule, SHARED};
use crate::wasmtime::{GuestMemory, Store};
use plugin::abi::{FAILED, OK, StateBytes, Value};
use plugin::group::shared;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_void};
use std::ptr;
use std::rc::Rc;

thread_local! {
    /// Why the last function on this thread has failed.
    static FAILURE: RefCell<CString> = RefCell::new(CString::default());
}

/// The block of a machine at the simulator: its instance, and its address there.
#[derive(Clone, Copy)]
pub struct Machine {
    guest: *mut Guest,
    own: u32,
}

/// The block of a state, of a flow or of a switch: its instance, which outlives it, its address there, and that of its machine.
#[derive(Clone, Copy)]
pub struct State {
    guest: *mut Guest,
    at: u32,
    own: u32,
}

/// What the machines of a group share: the store of those with instances of their own, and an instance of each module whose machines share
/// one, which the group uses.
struct Group {
    store: Rc<Store>,
    guests: RefCell<Vec<*mut Guest>>,
}

impl Group {
    /// Returns the group of a machine of a module that is created now.
    fn now(module: &GuestModule) -> Rc<Group> {
        shared(|| Group { store: Rc::new(Store::new(module.code.wasmtime(), EACH)), guests: RefCell::default() })
    }
    /// Returns an instance for a machine, whose use [`release`] ends.
    fn guest(&self, module: &'static GuestModule) -> Result<*mut Guest, String> {
        let new = |store| Ok(Box::into_raw(Box::new(Guest::new(module, store)?)));
        if !module.shares {
            return new(Rc::clone(&self.store));
        }
        let mut guests = self.guests.borrow_mut();
        // Safety: the group uses them.
        let known = guests.iter().find(|guest| ptr::eq(unsafe { (***guest).module() }, module)).copied();
        let guest = known.map_or_else(|| new(Rc::new(Store::new(module.code.wasmtime(), SHARED))), Ok)?;
        if known.is_none() {
            guests.push(guest);
        }
        unsafe { (*guest).shared().uses.update(|uses| uses + 1) };
        Ok(guest)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for guest in self.guests.take() {
            // Safety: the first use is that of the group.
            unsafe { release(guest) }
        }
    }
}

/// Ends a use of an instance.
///
/// # Safety
///
/// The use has begun, and nothing else borrows the instance.
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
    let guest = unsafe { &mut *(*own.cast::<Machine>()).guest };
    let status = call(guest);
    if status < OK { fail(guest.why()) } else { status }
}

/// Calls a function of a guest for a state, with the address of the machine and that of the state. A failure has a reason.
///
/// # Safety
///
/// [`open`] has filled the block, and the machine is used on this thread only.
#[inline(always)]
pub unsafe fn with_state(state: *const c_void, call: impl FnOnce(&mut Guest, [u64; 2]) -> i32) -> i32 {
    let State { guest, at, own } = unsafe { *state.cast() };
    let guest = unsafe { &mut *guest };
    let status = call(guest, [own, at].map(u64::from));
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
        // The function that runs has the address of the machine.
        *state = State { guest: shared.guest.get(), at: shared.state(memory)?, own: 0 };
        shared.uses.update(|uses| uses + 1);
    }
    Ok(state.at)
}

/// Opens a state: fills its block. `call` fills the state in the instance, with the address of the machine and that of the state.
///
/// # Safety
///
/// [`create`] has filled the block of the machine, and the machine is used on this thread only.
pub unsafe fn open(own: *const c_void, state: StateBytes, call: impl FnOnce(&mut Guest, [u64; 2]) -> i32) -> i32 {
    let Machine { guest, own } = unsafe { *own.cast() };
    let used = unsafe { &mut *guest };
    let Some(at) = used.state() else { return fail(used.why()) };
    if call(used, [own, at].map(u64::from)) != OK {
        used.shared().unused(at);
        return fail(used.why());
    }
    used.shared().uses.update(|uses| uses + 1);
    unsafe { state.cast::<State>().write(State { guest, at, own }) };
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
    let guest = match Group::now(module).guest(module) {
        Ok(guest) => guest,
        Err(why) => return fail(&why),
    };
    let used = unsafe { &mut *guest };
    used.shared().guest.set(guest);
    let made = connect(used).and_then(|()| used.create(unsafe { &*about }, values).ok_or_else(|| used.why().to_owned()));
    match made {
        Ok(at) => unsafe { own.cast::<Machine>().write(Machine { guest, own: at }) },
        Err(why) => {
            unsafe { release(guest) }
            return fail(&why);
        }
    }
    OK
}
/// Ends a state, if it was opened.
pub unsafe extern "C" fn close(state: StateBytes) {
    let State { guest, at, .. } = unsafe { *state.cast() };
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
    let Machine { guest, own } = unsafe { *own.cast() };
    unsafe {
        (*guest).destroy(own);
        release(guest);
    }
}
/// Returns why the last function on this thread has failed.
pub unsafe extern "C" fn failure() -> *const c_char {
    FAILURE.with(|text| text.borrow().as_ptr())
}
