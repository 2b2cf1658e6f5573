//! The engine with its settings, compiled modules, and instances.
//!
//! The library is that of the Python package `wasmtime`, version 50. Another version is refused,
//! because its structures may differ.

use crate::interface::{
    Callback, EXTERN_FUNC, EXTERN_MEMORY, EXTERN_TABLE, Extern, FUNCREF, Finalizer, Func, Functions, InstanceItem, OfExtern, OfVal,
    Opaque, PointerVec, RawVal, StoreItem, Val, text,
};
use std::cell::Cell;
use std::error::Error as _;
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::ptr;
use std::rc::Rc;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The version of the package whose structures this file declares.
const MAJOR: &str = "50";

/// The environment variable that names the folder of the package, for programs without Python.
pub const PACKAGE: &str = "FLOWLOOM_WASMTIME";

/// Largest stack of a call, in bytes.
const STACK: usize = 256 << 10;

/// Instructions that so many calls in a row of the instances of a store may execute together. A call of fewer than their quotient never
/// runs out of fuel, whatever the other instances do.
const FUEL: u64 = 500_000_000;
const CALLS: u32 = 64;

/// Bytes by which a memory may grow in place: a page of WebAssembly, and a page of the system, so that the memories of hosts
/// do not begin at multiples of a power of two, which would be in the same sets of the processor's caches.
const GROWTH: u64 = (64 << 10) + (4 << 10);

/// The library and its engine. Neither is ever unloaded.
pub struct Wasmtime {
    functions: Functions,
    engine: Opaque,
}

// Safety: an engine may be used on any thread.
unsafe impl Send for Wasmtime {}
unsafe impl Sync for Wasmtime {}

/// Returns the folder of the Python package, if it is installed.
pub type Find = fn() -> Option<PathBuf>;

static FIND: OnceLock<Find> = OnceLock::new();

/// Sets how the Python package is found. The first call counts.
pub fn set_wasmtime(find: Find) {
    let _ = FIND.set(find);
}

impl Wasmtime {
    /// Returns the library, which the first call loads. The error completes a sentence about a
    /// plug-in.
    pub fn get() -> Result<&'static Wasmtime, String> {
        static LOADED: Mutex<Option<&'static Wasmtime>> = Mutex::new(None);
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = *loaded {
            return Ok(known);
        }
        let package = std::env::var_os(PACKAGE).map(PathBuf::from).or_else(|| FIND.get().and_then(|find| find()));
        let package =
            package.ok_or("WebAssembly needs the Python package `wasmtime`: install it with `pip install 'flowloom[wasm]'`")?;
        let made: &'static Wasmtime = Box::leak(Box::new(Wasmtime::of(&package)?));
        *loaded = Some(made);
        Ok(made)
    }
    fn of(package: &Path) -> Result<Wasmtime, String> {
        let found = version(package).unwrap_or_else(|| "of unknown version".to_owned());
        if found.split('.').next() != Some(MAJOR) {
            return Err(format!(
                "WebAssembly needs version {MAJOR} of the Python package `wasmtime`, and `{}` is {found}: `pip install 'flowloom[wasm]'`",
                package.display()
            ));
        }
        let system = if cfg!(windows) {
            "win32"
        } else if cfg!(target_os = "macos") {
            "darwin"
        } else {
            "linux"
        };
        let name = if cfg!(windows) { "_wasmtime" } else { "_libwasmtime" };
        let folder = package.join(format!("{system}-{}", std::env::consts::ARCH));
        let file = folder.join(format!("{name}{}", std::env::consts::DLL_SUFFIX));
        // Safety: the library of the package, whose version is known.
        let library = unsafe { libloading::Library::new(&file) };
        let reason = |why: libloading::Error| why.source().map_or_else(|| why.to_string(), ToString::to_string);
        let library =
            library.map_err(|why| format!("the library of the Python package `wasmtime` cannot be loaded: {}", reason(why)))?;
        let functions = unsafe { Functions::of(&library) };
        let functions = functions.map_err(|why| format!("the library of the Python package `wasmtime` is not complete: {why}"))?;
        std::mem::forget(library);
        let engine = unsafe { engine(&functions) };
        Ok(Wasmtime { functions, engine })
    }
    /// Compiles a module, which is kept for ever, and may have no imports.
    pub fn module(&'static self, content: &[u8]) -> Result<Module, String> {
        let f = &self.functions;
        let (mut module, mut imports) = (ptr::null_mut(), PointerVec::EMPTY);
        unsafe {
            let error = (f.wasmtime_module_new)(self.engine, content.as_ptr(), content.len(), &mut module);
            if !error.is_null() {
                return Err(f.error(error));
            }
            (f.wasmtime_module_imports)(module, &mut imports);
            let name = |one| format!("`{}.{}`", text(&*(f.wasm_importtype_module)(one)), text(&*(f.wasm_importtype_name)(one)));
            let names: Vec<String> = imports.items().iter().take(MOST_NAMES).map(|one| name(*one)).collect();
            let more = if imports.size > MOST_NAMES { " and others" } else { "" };
            (f.wasm_importtype_vec_delete)(&mut imports);
            if !names.is_empty() {
                return Err(format!("it imports {}{more}, and a plug-in may import nothing", names.join(", ")));
            }
        }
        Ok(Module { wasmtime: self, module })
    }
}

/// Imports that a message names.
const MOST_NAMES: usize = 4;

/// Returns the version of the package in a folder, from the name of the folder with its metadata.
fn version(package: &Path) -> Option<String> {
    let files = std::fs::read_dir(package.parent()?).ok()?;
    let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
    names.filter_map(|name| Some(name.strip_prefix("wasmtime-")?.strip_suffix(".dist-info")?.to_owned())).min()
}

/// Makes an engine whose code gives the same results everywhere.
unsafe fn engine(f: &Functions) -> Opaque {
    unsafe {
        let config = (f.wasm_config_new)();
        (f.wasmtime_config_consume_fuel_set)(config, true);
        (f.wasmtime_config_max_wasm_stack_set)(config, STACK);
        // Explicit checks of bounds instead of guard pages: no signal handlers in the user's process, no address space for
        // thousands of hosts, and fewer misses in the caches.
        (f.wasmtime_config_signals_based_traps_set)(config, false);
        (f.wasmtime_config_memory_reservation_set)(config, 0);
        (f.wasmtime_config_memory_reservation_for_growth_set)(config, GROWTH);
        (f.wasmtime_config_memory_guard_size_set)(config, 0);
        (f.wasmtime_config_cranelift_nan_canonicalization_set)(config, true);
        (f.wasmtime_config_parallel_compilation_set)(config, false);
        for off in [
            f.wasmtime_config_wasm_threads_set,
            f.wasmtime_config_wasm_relaxed_simd_set,
            f.wasmtime_config_wasm_multi_memory_set,
            f.wasmtime_config_wasm_memory64_set,
            f.wasmtime_config_wasm_exceptions_set,
            f.wasmtime_config_wasm_gc_set,
        ] {
            off(config, false);
        }
        (f.wasm_engine_new_with_config)(config)
    }
}

/// A compiled module.
pub struct Module {
    wasmtime: &'static Wasmtime,
    module: Opaque,
}

// Safety: a module may be used on any thread.
unsafe impl Send for Module {}
unsafe impl Sync for Module {}

impl Module {
    /// Returns the library.
    pub fn wasmtime(&self) -> &'static Wasmtime {
        self.wasmtime
    }
}

/// A store of wasmtime. Machines that run on one thread at a time together share one, so that what wasmtime reads in every call stays in
/// the processor's caches.
pub struct Store {
    wasmtime: &'static Wasmtime,
    store: Opaque,
    context: Opaque,
    /// Calls until its fuel is filled up.
    calls: Cell<u32>,
}

impl Drop for Store {
    fn drop(&mut self) {
        unsafe { (self.wasmtime.functions.wasmtime_store_delete)(self.store) }
    }
}

/// The failure of a call, for [`Instance::why`].
pub struct Failed {
    error: Opaque,
    trap: Opaque,
}

/// Limits of a store: bytes of a memory, entries of a table, and the numbers of instances, tables and memories.
pub type StoreLimits = [i64; 5];

impl Store {
    /// Creates a store without instances.
    pub fn new(wasmtime: &'static Wasmtime, [memory, entries, instances, tables, memories]: StoreLimits) -> Store {
        let functions = &wasmtime.functions;
        unsafe {
            let store = (functions.wasmtime_store_new)(wasmtime.engine, ptr::null_mut(), None);
            (functions.wasmtime_store_limiter)(store, memory, entries, instances, tables, memories);
            Store { wasmtime, store, context: (functions.wasmtime_store_context)(store), calls: Cell::new(0) }
        }
    }
    /// Counts a call, and fills the fuel up if it is time.
    #[inline(always)]
    fn count(&self) {
        if self.calls.get() == 0 {
            self.fill();
        }
        self.calls.set(self.calls.get() - 1);
    }
    #[cold]
    fn fill(&self) {
        self.calls.set(CALLS);
        let error = unsafe { (self.wasmtime.functions.wasmtime_context_set_fuel)(self.context, FUEL) };
        assert!(error.is_null(), "the engine counts instructions");
    }
}

/// An instance of a module: its memory, its tables and its globals, which it shares with no other.
#[repr(C)]
pub struct Instance {
    store: Rc<Store>,
    item: InstanceItem,
}

impl Instance {
    /// Creates an instance of a module, and calls its start function.
    pub fn new(module: &Module, store: Rc<Store>) -> Result<Instance, String> {
        let functions = &module.wasmtime.functions;
        store.count();
        let (mut item, mut trap) = (InstanceItem { store: 0, private: 0 }, ptr::null_mut());
        unsafe {
            let error = (functions.wasmtime_instance_new)(store.context, module.module, ptr::null(), 0, &mut item, &mut trap);
            if error.is_null() && trap.is_null() { Ok(Instance { store, item }) } else { Err(functions.why(error, trap)) }
        }
    }
    /// Calls a function. Results replace arguments.
    ///
    /// # Safety
    ///
    /// The function is one of this instance. `words` has a place for each of its arguments and results, and holds its arguments.
    #[inline(always)]
    pub unsafe fn call(&self, function: Opaque, words: &mut [RawVal]) -> Result<(), Failed> {
        let Store { wasmtime, context, .. } = *self.store;
        self.store.count();
        let function = Func { store: self.item.store, private: function };
        let mut trap = ptr::null_mut();
        let call = wasmtime.functions.wasmtime_func_call_unchecked;
        let error = unsafe { call(context, &function, words.as_mut_ptr(), words.len(), &mut trap) };
        if error.is_null() && trap.is_null() { Ok(()) } else { Err(Failed { error, trap }) }
    }
    /// Returns why a call has failed.
    pub fn why(&self, Failed { error, trap }: Failed) -> String {
        unsafe { self.store.wasmtime.functions.why(error, trap) }
    }
    fn export(&self, name: &str, kind: u8) -> Option<OfExtern> {
        let mut found = Extern { kind: u8::MAX, of: OfExtern { func: Func::NONE } };
        let of = self.store.wasmtime.functions.wasmtime_instance_export_get;
        let exists = unsafe { of(self.store.context, &self.item, name.as_ptr().cast(), name.len(), &mut found) };
        (exists && found.kind == kind).then_some(found.of)
    }
    /// Returns an exported function.
    pub fn function(&self, name: &str) -> Option<Func> {
        self.export(name, EXTERN_FUNC).map(|of| unsafe { of.func })
    }
    /// Returns the exported memory.
    pub fn memory(&self, name: &str) -> Option<GuestMemory> {
        let item = self.export(name, EXTERN_MEMORY).map(|of| unsafe { of.item })?;
        Some(GuestMemory { wasmtime: self.store.wasmtime, context: self.store.context, item })
    }
    /// Returns the function at an index of an exported table; `None` if there is none.
    pub fn at(&self, table: &str, index: u32) -> Option<Func> {
        let table = unsafe { self.export(table, EXTERN_TABLE)?.item };
        let mut found = Val { kind: u8::MAX, of: OfVal { largest: [0; 3] } };
        let exists =
            unsafe { (self.store.wasmtime.functions.wasmtime_table_get)(self.store.context, &table, index.into(), &mut found) };
        let func = unsafe { found.of.func };
        (exists && found.kind == FUNCREF && func.store != 0).then_some(func)
    }
    /// Returns the type of a function as text: `(i32 i64) -> (i32)`.
    pub fn type_of(&self, function: &Func) -> String {
        const KINDS: [&str; 4] = ["i32", "i64", "f32", "f64"];
        let f = &self.store.wasmtime.functions;
        unsafe {
            let whole = (f.wasmtime_func_type)(self.store.context, function);
            let words = |list: *const PointerVec| {
                let kinds = (*list).items().iter().map(|one| (f.wasm_valtype_kind)(*one));
                kinds.map(|kind| KINDS.get(usize::from(kind)).copied().unwrap_or("ref")).collect::<Vec<_>>().join(" ")
            };
            let text = format!("({}) -> ({})", words((f.wasm_functype_params)(whole)), words((f.wasm_functype_results)(whole)));
            (f.wasm_functype_delete)(whole);
            text
        }
    }
    /// Makes a function of this program for modules, with its types of values, and its environment, which `end` ends with the store.
    ///
    /// # Safety
    ///
    /// The function takes such an environment, and fills the results.
    pub unsafe fn host(&mut self, takes: &[u8], gives: u8, call: Callback, environment: *mut c_void, end: Finalizer) -> Func {
        let f = &self.store.wasmtime.functions;
        let mut made = Func::NONE;
        unsafe {
            let list = |kinds: &[u8]| {
                let kinds: Vec<Opaque> = kinds.iter().map(|kind| (f.wasm_valtype_new)(*kind)).collect();
                let mut list = PointerVec::EMPTY;
                (f.wasm_valtype_vec_new)(&mut list, kinds.len(), kinds.as_ptr());
                list
            };
            let of = (f.wasm_functype_new)(&mut list(takes), &mut list(&[gives]));
            (f.wasmtime_func_new_unchecked)(self.store.context, of, call, environment, Some(end), &mut made);
            (f.wasm_functype_delete)(of);
        }
        made
    }
    /// Adds functions to an exported table. Returns the index of the first one.
    pub fn add(&mut self, table: &str, functions: &[Func]) -> Option<u32> {
        let f = &self.store.wasmtime.functions;
        let table = unsafe { self.export(table, EXTERN_TABLE)?.item };
        let value = |func| Val { kind: FUNCREF, of: OfVal { func } };
        let mut first = 0;
        unsafe {
            let delete = |error: Opaque| {
                error.is_null() || {
                    (f.wasmtime_error_delete)(error);
                    false
                }
            };
            let done =
                delete((f.wasmtime_table_grow)(self.store.context, &table, functions.len() as u64, &value(Func::NONE), &mut first))
                    && (first..)
                        .zip(functions)
                        .all(|(at, func)| delete((f.wasmtime_table_set)(self.store.context, &table, at, &value(*func))));
            done.then_some(first as u32)
        }
    }
}

/// The memory of an instance. It must not be used after its store has ended.
#[derive(Clone, Copy)]
pub struct GuestMemory {
    wasmtime: &'static Wasmtime,
    context: Opaque,
    item: StoreItem,
}

impl GuestMemory {
    /// Returns where it begins. It may move when it grows.
    #[inline(always)]
    pub fn base(&self) -> *mut u8 {
        unsafe { (self.wasmtime.functions.wasmtime_memory_data)(self.context, &self.item) }
    }
    /// Returns its size in bytes.
    pub fn size(&self) -> usize {
        unsafe { (self.wasmtime.functions.wasmtime_memory_data_size)(self.context, &self.item) }
    }
    /// Lets it grow by some pages of 64 KiB. Returns the address of the first new one.
    pub fn grow(&self, pages: u32) -> Option<u32> {
        let mut before = 0;
        let error = unsafe { (self.wasmtime.functions.wasmtime_memory_grow)(self.context, &self.item, pages.into(), &mut before) };
        if error.is_null() {
            return u32::try_from(before << 16).ok();
        }
        unsafe { (self.wasmtime.functions.wasmtime_error_delete)(error) };
        None
    }
    /// Returns the memory for a function of this program that a module calls.
    pub fn of_caller(&self, caller: Opaque) -> GuestMemory {
        GuestMemory { context: unsafe { (self.wasmtime.functions.wasmtime_caller_context)(caller) }, ..*self }
    }
    /// Returns a trap with a reason.
    #[cold]
    pub fn trap(&self, why: &str) -> Opaque {
        unsafe { (self.wasmtime.functions.wasmtime_trap_new)(why.as_ptr().cast(), why.len()) }
    }
}
