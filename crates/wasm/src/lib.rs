//! Plug-ins in WebAssembly: makes the table of a plug-in from a file of the same source in C or
//! Rust, compiled for WebAssembly.
//!
//! The file has no imports: it cannot read files or the clock, and it is deterministic. Each machine
//! of a room, like the controller of a host, is an instance of its own, with its own memory, so that a
//! result does not depend on the number of threads. A congestion control may declare that its result
//! does not depend on them anyway; then the hosts of a part of a run share an instance, which is faster.
//! The engine is wasmtime, from the Python package of this name.
#![allow(unsafe_code)]

mod calls;
mod congestion;
mod functions;
mod guest;
mod interface;
mod module;
mod policy;
mod qdisc;
mod router;
mod table;
mod transport;
mod wasmtime;

use plugin::library::{Code, Library};
pub use wasmtime::{Find, PACKAGE, set_wasmtime};

/// Loads a plug-in, from its path, its content and the SHA-256 of its content. The error completes
/// a sentence about the plug-in.
pub fn load(path: &str, content: &[u8], digest: &str) -> Result<Library, String> {
    /// The first bytes of a module: `\0asm` and version 1.
    const MAGIC: [u8; 8] = *b"\0asm\x01\0\0\0";
    if !content.starts_with(&MAGIC) {
        return Err("it is not a module of WebAssembly".to_owned());
    }
    let module = wasmtime::Wasmtime::get()?.module(content)?;
    let head = table::table(module, module::may_grow(content))?;
    // Safety: the table and all that it names live for ever.
    unsafe { Library::new(head, path, digest, Code::Sandbox) }
}
