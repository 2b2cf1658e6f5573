//! What a module declares: the types of its functions, and an instance that has only been asked for
//! its table.

use crate::interface::{Func, RawVal};
use crate::wasmtime::{GuestMemory, Instance, Module, Store, StoreLimits};
use std::rc::Rc;

/// The function that a file exports, its memory, and its table of functions.
pub const EXPORTS: [&str; 3] = ["flowloom_plugin", "memory", "__indirect_function_table"];

/// Limits of the first instance of a module: a memory of 16 MiB, 4 tables of 10,000 entries.
const FIRST: StoreLimits = [16 << 20, 10_000, 1, 4, 1];
/// Limits of the instances of machines. Each has as many tables as the first one.
pub const EACH: StoreLimits = [FIRST[0], FIRST[1], i64::MAX, i64::MAX, i64::MAX];
/// Limits of an instance that machines share.
pub const SHARED: StoreLimits = [256 << 20, FIRST[1], 1, FIRST[3], FIRST[4]];
/// Longest text, in bytes.
const TEXT: usize = 4096;
/// Largest number of values of parameters.
pub const VALUES: usize = 64;

/// Functions of a plug-in as indices: those that the tables of all rooms have, before those of the room.
pub const CLOSE: usize = 0;
pub const DESTROY: usize = 1;
pub const FAILURE: usize = 2;
pub const CREATE: usize = 3;
/// The names of these functions and their types.
pub const COMMON: [(&str, &str); 4] =
    [("close", "(i32) -> ()"), ("destroy", "(i32) -> ()"), ("failure", "() -> (i32)"), ("create", "(i32 i32 i32 i32) -> (i32)")];
/// The most functions of a table.
pub const MOST_ROLES: usize = 14;

/// Names the functions of a room with their types, in the order of its table, after `create`.
macro_rules! roles {
    ($($role:ident $name:literal $type:literal,)*) => {
        const ROLES: &[(&str, &str)] = &[$(($name, $type),)*];
        const _: () = assert!(ROLES.len() + $crate::module::COMMON.len() <= $crate::module::MOST_ROLES);
        roles!(@ $crate::module::CREATE + 1; $($role)*);
    };
    (@ $at:expr; $role:ident $($rest:ident)*) => {
        const $role: usize = $at;
        roles!(@ $at + 1; $($rest)*);
    };
    (@ $at:expr;) => {};
}
pub(crate) use roles;

/// A module with what its table declares.
pub struct GuestModule {
    /// The compiled file.
    pub code: Module,
    /// The address of its table.
    pub table: u32,
    /// The index of each function in the module's table of functions; 0: it does not exist.
    pub functions: [u32; MOST_ROLES],
    /// The names of the functions of its room and their types.
    pub roles: &'static [(&'static str, &'static str)],
    /// The two words after the head of its table.
    pub words: [u32; 2],
    /// Passed to `create`.
    pub context: u32,
    /// The offset of a machine in the region of the simulator.
    pub own: u32,
    /// Bytes of a machine.
    pub own_size: u32,
    /// Whether the machines of a group share an instance.
    pub shares: bool,
    /// Bytes of a state.
    pub state_size: u32,
    /// The number of its counters.
    pub counters: usize,
    /// The number of its parameters.
    pub parameters: usize,
    /// Whether its functions may let the memory grow.
    pub grows: bool,
}

/// Returns whether a module may have the instruction `memory.grow`: its code `0x40`, and the number 0 in any length. Other bytes may look
/// like it.
pub fn may_grow(content: &[u8]) -> bool {
    content.windows(2).any(|pair| pair[0] == 0x40 && pair[1] & 0x7f == 0)
}

/// An instance without the region of the simulator.
pub struct Bare {
    /// The instance.
    pub instance: Instance,
    /// Its memory.
    pub memory: GuestMemory,
    /// The address of its table.
    pub table: u32,
}

impl Bare {
    /// Creates the first instance of a module.
    pub fn first(module: &Module) -> Result<Bare, String> {
        Bare::new(module, Rc::new(Store::new(module.wasmtime(), FIRST)))
    }
    /// Creates an instance and asks for its table.
    pub fn new(module: &Module, store: Rc<Store>) -> Result<Bare, String> {
        let start = |why| format!("it cannot be started: {why}");
        let instance = Instance::new(module, store).map_err(start)?;
        let [function, memory, _] = EXPORTS;
        let memory = instance.memory(memory).ok_or_else(|| format!("it exports no memory `{memory}`"))?;
        let asked = instance.function(function).ok_or_else(|| format!("it exports no function `{function}`"))?;
        let found = instance.type_of(&asked);
        if found != "() -> (i32)" {
            return Err(format!("its function `{function}` has the type {found} instead of () -> (i32)"));
        }
        let mut words = [RawVal::new(0)];
        // Safety: the type was checked.
        let table = unsafe { instance.call(asked.private, &mut words) };
        table.map_err(|failed| format!("its function `{function}` fails: {}", instance.why(failed)))?;
        Ok(Bare { instance, memory, table: words[0].word as u32 })
    }
    /// Returns the memory of the instance.
    pub fn bytes(&self) -> &[u8] {
        let (base, size) = (self.memory.base(), self.memory.size());
        // Safety: nothing runs while the bytes are borrowed.
        if size == 0 { &[] } else { unsafe { std::slice::from_raw_parts(base, size) } }
    }
    /// Returns the function with an index, if its type is that of its role. `roles` are those of the room.
    pub fn function(&self, roles: &[(&str, &str)], role: usize, index: u32) -> Result<Func, String> {
        let (name, wanted) = if role < COMMON.len() { COMMON[role] } else { roles[role - COMMON.len()] };
        let [.., table] = EXPORTS;
        let found = self.instance.at(table, index);
        let found = found.ok_or_else(|| format!("its `{name}` is {index}, which is no function of its exported `{table}`"))?;
        let of = self.instance.type_of(&found);
        if of == wanted { Ok(found) } else { Err(format!("its function `{name}` has the type {of} instead of {wanted}")) }
    }
}

/// Returns the text at an address, without the zero byte at its end.
pub fn text(bytes: &[u8], at: u32) -> Option<&[u8]> {
    let rest = bytes.get(at as usize..).filter(|_| at != 0)?;
    let length = rest.iter().take(TEXT).position(|byte| *byte == 0)?;
    rest.get(..length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_found_in_every_encoding() {
        // The specification of WebAssembly, 5.4.6: memory.grow is 0x40 and the index of the memory; numbers may have leading zeros.
        for grows in [&[0x40, 0x00][..], &[1, 0x40, 0x80, 0x00], &[0x40, 0x80, 0x80, 0x00, 2]] {
            assert!(may_grow(grows), "{grows:?}");
        }
        // A block without a result, and `local.get` in it.
        assert!(!may_grow(&[0x02, 0x40, 0x20, 0x00, 0x0b]));
    }

    #[test]
    fn a_text_ends_within_the_memory() {
        assert_eq!(text(b"\0ab\0c", 1), Some(&b"ab"[..]));
        for at in [0, 4, 5, u32::MAX] {
            assert_eq!(text(b"\0ab\0c", at), None, "{at}");
        }
    }
}
