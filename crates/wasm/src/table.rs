//! Reads the table of a plug-in from its memory, in the layout that C has in WebAssembly (pointers
//! and indices of functions have 32 bits), and makes the table that the simulator calls.

use crate::functions::{Machine, State, close, destroy, failure};
use crate::module::{Bare, CREATE, GuestModule, MOST_ROLES, VALUES, text};
use crate::wasmtime::Module;
use plugin::abi::{Counter, Head, MOST_STRUCTURES, Parameter, RoomTable, VERSION, sizes_of};
use plugin::congestion::{CONGESTION, CongestionTable};
use plugin::library::{MOST, MOST_BYTES};
use plugin::policy::{POLICY, PolicyTable};
use plugin::qdisc::{QDISC, QdiscTable};
use plugin::router::{ROUTER, RouterTable};
use plugin::transport::{TRANSPORT, TransportTable};
use std::ffi::{CString, c_char};
use std::ptr;

/// What messages call the table.
const TABLE: &str = "the table of its function `flowloom_plugin`";

/// The offset of `create` in a table: the head, and two words.
const FUNCTIONS_AT: u32 = 136;
/// Sizes of structures with pointers in WebAssembly.
const PARAMETER_SIZE: u32 = 32;
const COUNTER_SIZE: u32 = 12;

/// Reads the fields of structures of C in their order.
struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    /// Begins at a structure of `size` bytes, of `what`.
    fn new(bytes: &'a [u8], at: u32, size: u64, what: &str) -> Result<Fields<'a>, String> {
        if at == 0 || u64::from(at) + size > bytes.len() as u64 {
            return Err(format!("{what} has the address {at}, and its memory has {} bytes", bytes.len()));
        }
        Ok(Fields { bytes, at: at as usize })
    }
    fn u32(&mut self) -> u32 {
        let word = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_le_bytes(*bytes));
        self.at += 4;
        word
    }
    /// Words of 64 bits are aligned to 8 bytes, from the start of a structure that is.
    fn u64(&mut self) -> u64 {
        self.at = self.at.next_multiple_of(8);
        let [low, high] = [self.u32(), self.u32()].map(u64::from);
        high << 32 | low
    }
    /// Returns a text that lives for ever; null for the address 0.
    fn text(&mut self, what: &str) -> Result<*const c_char, String> {
        let at = self.u32();
        if at == 0 {
            return Ok(ptr::null());
        }
        let found = text(self.bytes, at);
        let found = found.ok_or_else(|| format!("{what} has the address {at}, where its memory has no text"))?;
        Ok(CString::new(found).map_or(ptr::null(), |text| text.into_raw().cast_const()))
    }
}

/// The table of a room that modules may implement. Its functions begin after the head and two words of 32 bits.
pub trait GuestRoom: RoomTable {
    /// The names of its functions after `create`, and their types.
    const ROLES: &'static [(&'static str, &'static str)];
    /// Structures with pointers that its functions take, by their names in C after `flowloom_`, and their sizes in WebAssembly.
    const WITH_POINTERS: &'static [(&'static str, u32)] = &[];
    /// The offset of a machine in the region of the simulator.
    const OWN: u32;
    /// Whether one of its functions opens states.
    const OPENS: bool;
    /// Returns whether the machines of a group share an instance, from the two words after the head of the table.
    fn shares(_words: [u32; 2]) -> bool {
        false
    }
    /// Size of the table in WebAssembly.
    const TABLE_SIZE: u32 = (FUNCTIONS_AT + 4 * (1 + Self::ROLES.len() as u32)).next_multiple_of(8);
    /// Makes the table, with the two words after its head. `has` returns whether there is a function.
    fn of(head: Head, words: [u32; 2], has: impl Fn(usize) -> bool) -> Self;
}

/// Makes the table of a compiled file, and returns its head.
pub fn table(module: Module, grows: bool) -> Result<*const Head, String> {
    let bare = Bare::first(&module)?;
    let mut fields = Fields::new(bare.bytes(), bare.table, 12, TABLE)?;
    if bare.table % 8 != 0 {
        return Err(format!("{TABLE} has the address {}, which is not a multiple of 8", bare.table));
    }
    // Version and room come first in every version.
    let [version, room] = [fields.u32(), fields.u32()];
    if version != VERSION {
        return Err(format!(
            "it is made for version {version} of plug-ins, and this program has version {VERSION}: build it again"
        ));
    }
    match room {
        CONGESTION => read::<CongestionTable>(module, bare, grows),
        QDISC => read::<QdiscTable>(module, bare, grows),
        ROUTER => read::<RouterTable>(module, bare, grows),
        POLICY => read::<PolicyTable>(module, bare, grows),
        TRANSPORT => read::<TransportTable>(module, bare, grows),
        _ => Err(format!("it is for room {room}, which this program does not have")),
    }
}

fn read<T: GuestRoom>(code: Module, bare: Bare, grows: bool) -> Result<*const Head, String> {
    let bytes = bare.bytes();
    let mut fields = Fields::new(bytes, bare.table, T::TABLE_SIZE.into(), TABLE)?;
    let [version, room, size, parameter_size, counter_size, knows] = std::array::from_fn(|_| fields.u32());
    let wanted = |name: &str, found: u32, wanted: u32| {
        if found == wanted { Ok(()) } else { Err(format!("its `{name}` has {found} bytes instead of {wanted}")) }
    };
    wanted("table", size, T::TABLE_SIZE)?;
    wanted("flowloom_parameter", parameter_size, PARAMETER_SIZE)?;
    wanted("flowloom_counter", counter_size, COUNTER_SIZE)?;
    let sizes: [u32; MOST_STRUCTURES] = std::array::from_fn(|_| fields.u32());
    for ((name, native), found) in T::STRUCTURES.iter().zip(sizes) {
        let with_pointers = T::WITH_POINTERS.iter().find(|(with, _)| with == name);
        wanted(&format!("flowloom_{name}"), found, with_pointers.map_or(*native as u32, |(_, size)| *size))?;
    }
    let name = fields.text("its `name`")?;
    let summary = fields.text("its `summary`")?;
    let source = fields.text("its `source`")?;
    let [parameters, parameter_count] = [u64::from(fields.u32()), fields.u64()];
    let [counters, counter_count] = [u64::from(fields.u32()), fields.u64()];
    let [own_size, state_size] = [fields.u64(), fields.u64()];
    for (name, bytes) in [("own_size", own_size), ("state_size", state_size)] {
        if bytes > MOST_BYTES {
            return Err(format!("its `{name}` is {bytes}: at most {MOST_BYTES} bytes are allowed"));
        }
    }
    let context = fields.u32();
    let mut functions = [0; MOST_ROLES];
    let (of_head, of_room) = functions.split_at_mut(CREATE);
    of_head.iter_mut().for_each(|index| *index = fields.u32());
    let words = [fields.u32(), fields.u32()];
    of_room.iter_mut().take(1 + T::ROLES.len()).for_each(|index| *index = fields.u32());
    for (role, index) in functions.iter().enumerate().filter(|(_, index)| **index != 0) {
        bare.function(T::ROLES, role, *index)?;
    }
    // Too many are refused when the table is checked.
    let parameters = if parameter_count > MOST.0 { Vec::new() } else { declared(bytes, parameters as u32, parameter_count)? };
    let counters = if counter_count > MOST.1 { Vec::new() } else { counted(bytes, counters as u32, counter_count)? };
    let made = GuestModule {
        table: bare.table,
        functions,
        roles: T::ROLES,
        words,
        context,
        own: T::OWN,
        own_size: own_size as u32,
        shares: T::shares(words),
        state_size: state_size as u32,
        counters: counters.len(),
        parameters: parameters.len().min(VALUES),
        code,
        grows,
    };
    let (parameters, counters) = (Vec::leak(parameters).as_ptr(), Vec::leak(counters).as_ptr());
    let declared = Head {
        version,
        room,
        size: size_of::<T>() as u32,
        parameter_size: size_of::<Parameter>() as u32,
        counter_size: size_of::<Counter>() as u32,
        knows,
        sizes: sizes_of::<T>(),
        name,
        summary,
        source,
        parameters,
        parameter_count,
        counters,
        counter_count,
        own_size,
        state_size,
        context: ptr::null(),
        close: None,
        destroy: None,
        failure: Some(failure),
    };
    let has = |role: usize| functions[role] != 0;
    T::of(declared, words, has).check()?;
    // The blocks of the simulator name the instance and addresses.
    let head = Head {
        own_size: size_of::<Machine>() as u64,
        state_size: if T::OPENS || state_size > 0 { size_of::<State>() as u64 } else { 0 },
        context: ptr::from_ref(Box::leak(Box::new(made))).cast(),
        close: Some(close),
        destroy: Some(destroy),
        ..declared
    };
    Ok(ptr::from_ref(Box::leak(Box::new(T::of(head, words, |role| role == CREATE || has(role))))).cast())
}

fn declared(bytes: &[u8], at: u32, count: u64) -> Result<Vec<Parameter>, String> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let mut fields = Fields::new(bytes, at, count * u64::from(PARAMETER_SIZE), "the list of its parameters")?;
    let mut one = || {
        let mut text = || fields.text("a text of one of its parameters");
        let (name, default_text, lowest, highest, source, about) = (text()?, text()?, text()?, text()?, text()?, text()?);
        let (kind, reserved) = (fields.u32(), fields.u32());
        Ok(Parameter { name, default_text, lowest, highest, source, about, kind, reserved })
    };
    (0..count).map(|_| one()).collect()
}

fn counted(bytes: &[u8], at: u32, count: u64) -> Result<Vec<Counter>, String> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let mut fields = Fields::new(bytes, at, count * u64::from(COUNTER_SIZE), "the list of its counters")?;
    let mut text = || fields.text("a text of one of its counters");
    (0..count).map(|_| Ok(Counter { name: text()?, unit: text()?, about: text()? })).collect()
}

#[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
pub mod tests {
    use super::*;
    use crate::module::COMMON;
    use plugin::abi::Value;
    use std::path::Path;
    use std::process::Command;

    /// Returns what the header must agree with, for the table of a room with these two words after its head.
    pub fn layout<T: GuestRoom>(table: &str, words: [&str; 2]) -> Vec<String> {
        let mut checks = vec![
            format!("sizeof(flowloom_{table}) == {}", T::TABLE_SIZE),
            format!("sizeof(flowloom_parameter) == {PARAMETER_SIZE}"),
            format!("sizeof(flowloom_counter) == {COUNTER_SIZE}"),
            format!("sizeof(flowloom_value) == {}", size_of::<Value>()),
            "offsetof(flowloom_head, sizes) == 24 && offsetof(flowloom_head, name) == 56".to_owned(),
            "offsetof(flowloom_head, parameters) == 68 && offsetof(flowloom_head, parameter_count) == 72".to_owned(),
            "offsetof(flowloom_head, counters) == 80 && offsetof(flowloom_head, counter_count) == 88".to_owned(),
            "offsetof(flowloom_head, own_size) == 96 && offsetof(flowloom_head, state_size) == 104".to_owned(),
            "offsetof(flowloom_head, context) == 112 && sizeof(flowloom_head) == 128".to_owned(),
        ];
        for (i, word) in words.into_iter().enumerate() {
            checks.push(format!("offsetof(flowloom_{table}, {word}) == {}", 128 + 4 * i));
        }
        for (i, (name, _)) in COMMON.iter().chain(T::ROLES).enumerate() {
            let (of, at) = if i < CREATE { ("head", 116 + 4 * i) } else { (table, 136 + 4 * (i - CREATE)) };
            checks.push(format!("offsetof(flowloom_{of}, {name}) == {at}"));
        }
        for (name, native) in T::STRUCTURES {
            let size = T::WITH_POINTERS.iter().find(|(with, _)| with == name).map_or(*native as u32, |(_, size)| *size);
            checks.push(format!("sizeof(flowloom_{name}) == {size}"));
        }
        checks
    }

    /// Compares with the header. The C compiler lays structures out as for WebAssembly if pointers have 32 bits and words of
    /// 64 bits are aligned to 8 bytes.
    pub fn check(table: &str, checks: &[String]) {
        let lines: Vec<String> = checks.iter().map(|check| format!("_Static_assert({check}, \"{check}\");")).collect();
        let folder = std::env::temp_dir();
        let source = folder.join(format!("flowloom-layout-{table}-{}.c", std::process::id()));
        std::fs::write(&source, format!("#include \"flowloom.h\"\n{}\n", lines.join("\n"))).unwrap();
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin/include");
        let mut cc = Command::new("cc");
        cc.args(["-m32", "-malign-double", "-ffreestanding", "-std=c11", "-fsyntax-only", "-I"]).arg(include).arg(&source);
        let output = cc.output().unwrap();
        std::fs::remove_file(&source).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// A table with a field for each offset has its values where they are read.
    #[test]
    fn fields_are_read_in_the_order_of_c() {
        let bytes: Vec<u8> = (0..64_u8).collect();
        let mut fields = Fields::new(&bytes, 8, 56, "it").unwrap();
        assert_eq!(fields.u32(), 0x0b0a_0908);
        assert_eq!(fields.u64(), 0x1716_1514_1312_1110);
        assert_eq!(fields.u32(), 0x1b1a_1918);
        assert_eq!(fields.at, 28);
        for (at, size) in [(0, 1), (1, 64), (64, 1), (u32::MAX, 4)] {
            assert!(Fields::new(&bytes, at, size, "it").is_err_and(|why| why.starts_with("it has the address ")), "{at} {size}");
        }
    }
}
