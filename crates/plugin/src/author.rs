//! The side of the author: what the tables of all rooms share when they are made from the
//! implementation of a room's trait. A panic does not leave the plug-in: the function returns that it
//! has failed.

use crate::abi::{Counter, FAILED, Head, OK, Parameter, RoomTable, Type, VERSION, Value, sizes_of};
use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a plug-in declares.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// The name of the protocol: lower case letters, digits and `_`.
    pub name: &'static CStr,
    /// One line about it.
    pub summary: &'static CStr,
    /// Paper or RFC.
    pub source: &'static CStr,
    /// What it knows of a flow in advance: a sum of [`KNOWS_SIZE`](crate::abi::KNOWS_SIZE) and
    /// [`KNOWS_DEADLINE`](crate::abi::KNOWS_DEADLINE).
    pub knows: u32,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Its counters.
    pub counters: &'static [Counter],
}

impl Declaration {
    /// Creates a declaration without parameters and counters.
    pub const fn new(name: &'static CStr, summary: &'static CStr) -> Declaration {
        Declaration { name, summary, source: c"a plug-in", knows: 0, parameters: &[], counters: &[] }
    }
}

impl Parameter {
    /// Declares a parameter.
    pub const fn new(kind: Type, name: &'static CStr, default: &'static CStr, about: &'static CStr) -> Parameter {
        Parameter {
            name: name.as_ptr(),
            default_text: default.as_ptr(),
            lowest: std::ptr::null(),
            highest: std::ptr::null(),
            source: c"the plug-in".as_ptr(),
            about: about.as_ptr(),
            kind: kind as u32,
            reserved: 0,
        }
    }
    /// Sets the range.
    pub const fn range(mut self, lowest: &'static CStr, highest: &'static CStr) -> Parameter {
        (self.lowest, self.highest) = (lowest.as_ptr(), highest.as_ptr());
        self
    }
    /// Sets the source of the default.
    pub const fn source(mut self, source: &'static CStr) -> Parameter {
        self.source = source.as_ptr();
        self
    }
}

impl Counter {
    /// Declares a counter.
    pub const fn new(name: &'static CStr, unit: &'static CStr, about: &'static CStr) -> Counter {
        Counter { name: name.as_ptr(), unit: unit.as_ptr(), about: about.as_ptr() }
    }
}

/// The values of the parameters, in their order.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a>(pub &'a [Value]);

impl Values<'_> {
    /// Returns a whole number, fraction, time, size or rate. Panics if there is no such parameter.
    pub fn integer(&self, index: usize) -> u64 {
        self.0[index].0
    }
    /// Returns a number.
    pub fn number(&self, index: usize) -> f64 {
        f64::from_bits(self.0[index].0)
    }
    /// Returns a flag.
    pub fn flag(&self, index: usize) -> bool {
        self.0[index].0 != 0
    }
}

/// Exports the table of a plug-in under the name that the simulator looks for. Before the type comes
/// the module of its room: `export!(congestion, Mine)`.
#[macro_export]
macro_rules! export {
    ($room:ident, $machine:ty) => {
        /// Returns the head of the table of the plug-in.
        #[unsafe(no_mangle)]
        pub extern "C" fn flowloom_plugin() -> *const $crate::abi::Head {
            static TABLE: $crate::$room::author::TableOf = $crate::$room::author::table::<$machine>();
            (&raw const TABLE).cast()
        }
    };
}

impl Head {
    /// Returns the head of a table of type `T`, whose blocks are an `M` for each machine and an `S` for
    /// each state.
    pub const fn of<T: RoomTable, M, S>(declared: Declaration) -> Head {
        const { assert!(align_of::<M>() <= 16 && align_of::<S>() <= 16, "blocks are aligned to 16 bytes") };
        Head {
            version: VERSION,
            room: T::ROOM,
            size: size_of::<T>() as u32,
            parameter_size: size_of::<Parameter>() as u32,
            counter_size: size_of::<Counter>() as u32,
            knows: declared.knows,
            sizes: sizes_of::<T>(),
            name: declared.name.as_ptr(),
            summary: declared.summary.as_ptr(),
            source: declared.source.as_ptr(),
            parameters: declared.parameters.as_ptr(),
            parameter_count: declared.parameters.len() as u64,
            counters: declared.counters.as_ptr(),
            counter_count: declared.counters.len() as u64,
            own_size: size_of::<M>() as u64,
            state_size: size_of::<S>() as u64,
            context: std::ptr::null(),
            close: if std::mem::needs_drop::<S>() { Some(end::<S>) } else { None },
            destroy: if std::mem::needs_drop::<M>() { Some(end::<M>) } else { None },
            failure: Some(failure),
        }
    }
}

/// Ends a block.
unsafe extern "C" fn end<T>(block: *mut c_void) {
    // Safety: the simulator passes a block that was filled with a `T`.
    let _ = catch_unwind(AssertUnwindSafe(|| unsafe { block.cast::<T>().drop_in_place() }));
}

thread_local! {
    /// Why the last function on this thread has failed.
    static FAILURE: RefCell<CString> = RefCell::new(CString::default());
}

unsafe extern "C" fn failure() -> *const c_char {
    // The text lives until the next failure on this thread.
    FAILURE.with(|text| text.borrow().as_ptr())
}

/// Records why a function fails. Returns its result.
pub(crate) fn fail(why: &str) -> i32 {
    let text = CString::new(why.replace('\0', " ")).unwrap_or_default();
    FAILURE.with(|known| *known.borrow_mut() = text);
    FAILED
}

fn words(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text,
        (None, None) => "a panic",
    }
}

/// Runs a function of the plug-in. A panic becomes a failure.
#[inline(always)]
pub(crate) fn guard(run: impl FnOnce() -> i32) -> i32 {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| fail(words(&*panic)))
}

/// Fills the block of a machine with the result of `make`.
///
/// # Safety
///
/// `own` is a block for an `M`; `values` has a value for each parameter.
pub(crate) unsafe fn create<M>(
    declared: Declaration,
    own: *mut c_void,
    values: *const Value,
    make: impl FnOnce(Values<'_>) -> Result<M, String>,
) -> i32 {
    guard(|| {
        let count = declared.parameters.len();
        let values = if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(values, count) } };
        match make(Values(values)) {
            Ok(machine) => {
                unsafe { own.cast::<M>().write(machine) };
                OK
            }
            Err(why) => fail(&why),
        }
    })
}
