//! The C interface of wasmtime, as far as plug-ins need it.
//!
//! Declarations are those of the headers `wasm.h` and `wasmtime.h` of version 50; `_bindings.py` of
//! the Python package `wasmtime` has the same structures.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr;

/// A pointer to something that only wasmtime knows.
pub type Opaque = *mut c_void;

/// `wasm_byte_vec_t`, `wasm_name_t`: bytes.
#[repr(C)]
pub struct ByteVec {
    pub size: usize,
    pub data: *mut u8,
}

/// `wasm_valtype_vec_t`, `wasm_importtype_vec_t`, `wasm_frame_vec_t`: a list of pointers.
#[repr(C)]
pub struct PointerVec {
    pub size: usize,
    data: *mut Opaque,
}

impl PointerVec {
    pub const EMPTY: PointerVec = PointerVec { size: 0, data: ptr::null_mut() };
    pub unsafe fn items(&self) -> &[Opaque] {
        if self.size == 0 { &[] } else { unsafe { std::slice::from_raw_parts(self.data, self.size) } }
    }
}

/// `wasmtime_func_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Func {
    /// The number of its store.
    pub store: u64,
    pub private: Opaque,
}

impl Func {
    /// No function: its store has number 0.
    pub const NONE: Func = Func { store: 0, private: ptr::null_mut() };
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct InStore {
    store: u64,
    private: u32,
}

/// `wasmtime_memory_t` and `wasmtime_table_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct StoreItem {
    first: InStore,
    second: u32,
}

/// `wasmtime_instance_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct InstanceItem {
    pub store: u64,
    pub private: usize,
}

/// The contents of an [`Extern`].
#[repr(C)]
#[derive(Clone, Copy)]
pub union OfExtern {
    pub func: Func,
    pub item: StoreItem,
}

/// `wasmtime_extern_t`: what a module exports.
#[repr(C)]
pub struct Extern {
    pub kind: u8,
    pub of: OfExtern,
}

/// Kinds of exports.
pub const EXTERN_FUNC: u8 = 0;
pub const EXTERN_TABLE: u8 = 2;
pub const EXTERN_MEMORY: u8 = 3;

#[repr(C)]
#[derive(Clone, Copy)]
pub union OfVal {
    pub func: Func,
    pub largest: [u64; 3],
}

/// `wasmtime_val_t`: a value with its type.
#[repr(C)]
pub struct Val {
    pub kind: u8,
    pub of: OfVal,
}

/// Kinds of values: whole numbers of 32 and of 64 bits, a function.
pub const I32: u8 = 0;
pub const I64: u8 = 1;
pub const FUNCREF: u8 = 5;

/// `wasmtime_func_unchecked_callback_t`: a function of this program that modules call, with its environment, its caller, and a place for each
/// argument and result. Returns a trap, or null.
pub type Callback = unsafe extern "C" fn(*mut c_void, Opaque, *mut RawVal, usize) -> Opaque;
/// Ends an environment.
pub type Finalizer = unsafe extern "C" fn(*mut c_void);

/// `wasmtime_val_raw_t`: an argument or a result. Little endian.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
pub struct RawVal {
    /// An `i64`, or an `i32` in its lower half.
    pub word: u64,
    rest: MaybeUninit<u64>,
}

impl RawVal {
    /// Returns an argument.
    #[inline(always)]
    pub fn new(word: u64) -> RawVal {
        RawVal { word, rest: MaybeUninit::uninit() }
    }
}

/// Declares the functions of the library and how they are found.
macro_rules! functions {
    ($($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions of the library.
        #[allow(missing_docs, reason = "the headers of wasmtime describe them")]
        pub struct Functions {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }
        impl Functions {
            pub unsafe fn of(library: &libloading::Library) -> Result<Functions, libloading::Error> {
                Ok(Functions { $($name: unsafe { *library.get(stringify!($name))? },)* })
            }
        }
    };
}

functions! {
    wasm_config_new() -> Opaque;
    wasmtime_config_consume_fuel_set(Opaque, bool);
    wasmtime_config_max_wasm_stack_set(Opaque, usize);
    wasmtime_config_signals_based_traps_set(Opaque, bool);
    wasmtime_config_memory_reservation_set(Opaque, u64);
    wasmtime_config_memory_reservation_for_growth_set(Opaque, u64);
    wasmtime_config_memory_guard_size_set(Opaque, u64);
    wasmtime_config_cranelift_nan_canonicalization_set(Opaque, bool);
    wasmtime_config_parallel_compilation_set(Opaque, bool);
    wasmtime_config_wasm_threads_set(Opaque, bool);
    wasmtime_config_wasm_relaxed_simd_set(Opaque, bool);
    wasmtime_config_wasm_multi_memory_set(Opaque, bool);
    wasmtime_config_wasm_memory64_set(Opaque, bool);
    wasmtime_config_wasm_exceptions_set(Opaque, bool);
    wasmtime_config_wasm_gc_set(Opaque, bool);
    wasm_engine_new_with_config(Opaque) -> Opaque;
    wasmtime_module_new(Opaque, *const u8, usize, *mut Opaque) -> Opaque;
    wasmtime_module_imports(Opaque, *mut PointerVec);
    wasm_importtype_module(Opaque) -> *const ByteVec;
    wasm_importtype_name(Opaque) -> *const ByteVec;
    wasm_importtype_vec_delete(*mut PointerVec);
    wasmtime_store_new(Opaque, *mut c_void, Option<Finalizer>) -> Opaque;
    wasmtime_store_context(Opaque) -> Opaque;
    wasmtime_store_limiter(Opaque, i64, i64, i64, i64, i64);
    wasmtime_store_delete(Opaque);
    wasmtime_context_set_fuel(Opaque, u64) -> Opaque;
    wasmtime_instance_new(Opaque, Opaque, *const Extern, usize, *mut InstanceItem, *mut Opaque) -> Opaque;
    wasmtime_instance_export_get(Opaque, *const InstanceItem, *const c_char, usize, *mut Extern) -> bool;
    wasmtime_memory_data(Opaque, *const StoreItem) -> *mut u8;
    wasmtime_memory_data_size(Opaque, *const StoreItem) -> usize;
    wasmtime_memory_grow(Opaque, *const StoreItem, u64, *mut u64) -> Opaque;
    wasmtime_table_get(Opaque, *const StoreItem, u64, *mut Val) -> bool;
    wasmtime_table_grow(Opaque, *const StoreItem, u64, *const Val, *mut u64) -> Opaque;
    wasmtime_table_set(Opaque, *const StoreItem, u64, *const Val) -> Opaque;
    wasm_valtype_new(u8) -> Opaque;
    wasm_valtype_vec_new(*mut PointerVec, usize, *const Opaque);
    wasm_functype_new(*mut PointerVec, *mut PointerVec) -> Opaque;
    wasmtime_func_new_unchecked(Opaque, Opaque, Callback, *mut c_void, Option<Finalizer>, *mut Func);
    wasmtime_caller_context(Opaque) -> Opaque;
    wasmtime_trap_new(*const c_char, usize) -> Opaque;
    wasmtime_func_type(Opaque, *const Func) -> Opaque;
    wasm_functype_params(Opaque) -> *const PointerVec;
    wasm_functype_results(Opaque) -> *const PointerVec;
    wasm_functype_delete(Opaque);
    wasm_valtype_kind(Opaque) -> u8;
    wasmtime_func_call_unchecked(Opaque, *const Func, *mut RawVal, usize, *mut Opaque) -> Opaque;
    wasmtime_error_message(Opaque, *mut ByteVec);
    wasmtime_error_delete(Opaque);
    wasmtime_trap_code(Opaque, *mut u8) -> bool;
    wasm_trap_message(Opaque, *mut ByteVec);
    wasm_trap_trace(Opaque, *mut PointerVec);
    wasm_trap_delete(Opaque);
    wasmtime_frame_func_name(Opaque) -> *const ByteVec;
    wasm_frame_vec_delete(*mut PointerVec);
    wasm_byte_vec_delete(*mut ByteVec);
}

/// The trap of code that has no fuel left.
const OUT_OF_FUEL: u8 = 11;

/// Returns bytes as text.
pub unsafe fn text(bytes: &ByteVec) -> String {
    if bytes.size == 0 {
        return String::new();
    }
    String::from_utf8_lossy(unsafe { std::slice::from_raw_parts(bytes.data, bytes.size) }).trim_end_matches('\0').to_owned()
}

impl Functions {
    /// Returns the text of an error, on one line, and deletes the error.
    pub unsafe fn error(&self, error: Opaque) -> String {
        let mut message = ByteVec { size: 0, data: ptr::null_mut() };
        unsafe {
            (self.wasmtime_error_message)(error, &mut message);
            (self.wasmtime_error_delete)(error);
            let whole = text(&message);
            (self.wasm_byte_vec_delete)(&mut message);
            let lines = whole.lines().map(str::trim).filter(|line| !line.is_empty() && *line != "Caused by:");
            lines.map(|line| line.strip_prefix("0: ").unwrap_or(line)).collect::<Vec<_>>().join(": ")
        }
    }
    /// Returns the text of a trap, with the function of the module in which it happened, and
    /// deletes the trap.
    unsafe fn trap(&self, trap: Opaque) -> String {
        let (mut message, mut trace) = (ByteVec { size: 0, data: ptr::null_mut() }, PointerVec::EMPTY);
        let mut code = u8::MAX;
        unsafe {
            (self.wasm_trap_message)(trap, &mut message);
            (self.wasm_trap_trace)(trap, &mut trace);
            (self.wasmtime_trap_code)(trap, &mut code);
            let whole = text(&message);
            let why = match whole.split_once("wasm trap: ") {
                _ if code == OUT_OF_FUEL => "it has used up its fuel: does it loop for ever?",
                Some((_, why)) => why.lines().next().unwrap_or_default(),
                // The reason that a function of this program has given.
                None if whole.contains("Caused by:") => whole.lines().last().unwrap_or_default().trim(),
                None => whole.lines().next().unwrap_or_default(),
            };
            let name = trace.items().first().map(|frame| (self.wasmtime_frame_func_name)(*frame));
            let name = name.filter(|name| !name.is_null()).map(|name| format!(" (in the function `{}` of the file)", text(&*name)));
            let why = format!("{why}{}", name.unwrap_or_default());
            (self.wasm_frame_vec_delete)(&mut trace);
            (self.wasm_byte_vec_delete)(&mut message);
            (self.wasm_trap_delete)(trap);
            why
        }
    }
    /// Returns why a function has failed.
    #[cold]
    pub unsafe fn why(&self, error: Opaque, trap: Opaque) -> String {
        if trap.is_null() { unsafe { self.error(error) } } else { unsafe { self.trap(trap) } }
    }
}
