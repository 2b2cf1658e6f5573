//! Reads the table of a plug-in from its memory, in the layout that C has in WebAssembly (pointers
//! and indices of functions have 32 bits), and makes the table that the simulator calls.

use crate::guest::Guest;
use crate::module::{Bare, EXPORTS, GuestModule, ROLES, Role, VALUES, text};
use crate::wasmtime::Module;
use plugin::abi::{Counter, FAILED, Flow, Head, OK, Own, Parameter, StateBytes, VERSION, Value};
use plugin::congestion::{Ack, CONGESTION, CongestionTable, Host, Loss, Window};
use plugin::library::{MOST, MOST_BYTES};
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_void};
use std::ptr;

/// Sizes of structures with pointers in WebAssembly.
const TABLE_SIZE: u32 = 184;
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
        let word = self.bytes[self.at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
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

/// Makes the table of a compiled file.
pub fn table(module: Module, grows: bool) -> Result<CongestionTable, String> {
    let bare = Bare::new(&module)?;
    let [function, ..] = EXPORTS;
    let bytes = bare.bytes();
    let what = format!("the table of its function `{function}`");
    let mut fields = Fields::new(bytes, bare.table, 12, &what)?;
    if bare.table % 8 != 0 {
        return Err(format!("{what} has the address {}, which is not a multiple of 8", bare.table));
    }
    // Version, room and size come first in every version.
    let [version, room, size] = std::array::from_fn(|_| fields.u32());
    if version != VERSION {
        return Err(format!(
            "it is made for version {version} of plug-ins, and this program has version {VERSION}: build it again"
        ));
    }
    if room != CONGESTION {
        return Err(format!("it is for room {room}, and WebAssembly is for congestion control, which has number {CONGESTION}"));
    }
    let [parameter_size, counter_size, knows] = std::array::from_fn(|_| fields.u32());
    let sizes = std::array::from_fn(|_| fields.u32());
    for (name, found, wanted) in [
        ("table", size, TABLE_SIZE),
        ("flowloom_parameter", parameter_size, PARAMETER_SIZE),
        ("flowloom_counter", counter_size, COUNTER_SIZE),
    ] {
        if found != wanted {
            return Err(format!("its `{name}` has {found} bytes instead of {wanted}"));
        }
    }
    Fields::new(bytes, bare.table, TABLE_SIZE.into(), &what)?;
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
    let mut functions = [0; ROLES.len()];
    let (of_head, of_room) = functions.split_at_mut(Role::Create as usize);
    of_head.iter_mut().for_each(|index| *index = fields.u32());
    let [ecn, reserved] = [fields.u32(), fields.u32()];
    of_room.iter_mut().for_each(|index| *index = fields.u32());
    for (role, index) in functions.iter().enumerate().filter(|(_, index)| **index != 0) {
        bare.function(role, *index)?;
    }
    let has = |role: Role| functions[role as usize] != 0;
    if !has(Role::Create) && own_size > 0 {
        return Err("it has no function `create`, but a controller of some size".to_owned());
    }
    // Too many are refused when the table is checked.
    let parameters = if parameter_count > MOST.0 { Vec::new() } else { declared(bytes, parameters as u32, parameter_count)? };
    let counters = if counter_count > MOST.1 { Vec::new() } else { counted(bytes, counters as u32, counter_count)? };
    let made = GuestModule {
        table: bare.table,
        functions,
        context,
        own_size: own_size as u32,
        state_size: state_size as u32,
        counters: counters.len(),
        parameters: parameters.len().min(VALUES),
        code: module,
        grows,
    };
    let made: &'static GuestModule = Box::leak(Box::new(made));
    let (parameters, counters) = (Vec::leak(parameters).as_ptr(), Vec::leak(counters).as_ptr());
    let head = Head {
        version,
        room,
        size: size_of::<CongestionTable>() as u32,
        parameter_size: size_of::<Parameter>() as u32,
        counter_size: size_of::<Counter>() as u32,
        knows,
        sizes,
        name,
        summary,
        source,
        parameters,
        parameter_count,
        counters,
        counter_count,
        own_size: size_of::<*mut Guest>() as u64,
        state_size: size_of::<State>() as u64,
        context: ptr::from_ref(made).cast(),
        close: Some(close),
        destroy: Some(destroy),
        failure: Some(failure),
    };
    Ok(CongestionTable {
        head,
        ecn,
        reserved,
        create: Some(create),
        open: has(Role::Open).then_some(open),
        on_ack: has(Role::OnAck).then_some(on_ack),
        on_loss: has(Role::OnLoss).then_some(on_loss),
        on_mark: has(Role::OnMark).then_some(on_mark),
        before_loss: has(Role::BeforeLoss).then_some(before_loss),
        on_sent: has(Role::OnSent).then_some(on_sent),
        most: has(Role::Most).then_some(most),
        not_before: has(Role::NotBefore).then_some(not_before),
        inherit: has(Role::Inherit).then_some(inherit),
        count: has(Role::Count).then_some(count),
    })
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

thread_local! {
    /// Why the last function on this thread has failed.
    static FAILURE: RefCell<CString> = RefCell::new(CString::default());
}

unsafe extern "C" fn failure() -> *const c_char {
    FAILURE.with(|text| text.borrow().as_ptr())
}

#[cold]
fn fail(why: &str) -> i32 {
    FAILURE.with(|known| *known.borrow_mut() = CString::new(why.replace('\0', " ")).unwrap_or_default());
    FAILED
}

/// The state of a flow: its controller, which outlives it, and its address there.
struct State {
    guest: *mut Guest,
    at: u32,
}

/// Ends a use of a controller.
///
/// # Safety
///
/// The use has begun, and nothing else borrows the controller.
unsafe fn release(guest: *mut Guest) {
    unsafe {
        (*guest).uses -= 1;
        if (*guest).uses == 0 {
            drop(Box::from_raw(guest));
        }
    }
}

/// Calls a function of a guest for a flow. Another status than [`OK`] has a reason.
///
/// # Safety
///
/// `open` has filled the block, and the controller is used on this thread only.
#[inline(always)]
unsafe fn with(state: *const c_void, call: impl FnOnce(&mut Guest, u32) -> i32) -> i32 {
    let (guest, at) = unsafe {
        let state = &*state.cast::<State>();
        (&mut *state.guest, state.at)
    };
    let status = call(guest, at);
    if status < OK { fail(guest.why()) } else { status }
}

// Safety of the functions below: the simulator passes the blocks that `create` and `open` have
// filled, and structures that live as long as the call.

unsafe extern "C" fn create(context: *const c_void, own: *mut c_void, host: *const Host, values: *const Value) -> i32 {
    let module = unsafe { &*context.cast::<GuestModule>() };
    let values = if module.parameters == 0 { &[] } else { unsafe { std::slice::from_raw_parts(values, module.parameters) } };
    match Guest::new(module, unsafe { &*host }, values) {
        Ok(guest) => {
            unsafe { own.cast::<*mut Guest>().write(Box::into_raw(Box::new(guest))) };
            OK
        }
        Err(why) => fail(&why),
    }
}
unsafe extern "C" fn open(own: Own, state: StateBytes, flow: *const Flow) -> i32 {
    let guest = unsafe { *own.cast::<*mut Guest>() };
    let used = unsafe { &mut *guest };
    match used.open(unsafe { &*flow }) {
        Some(at) => {
            used.uses += 1;
            unsafe { state.cast::<State>().write(State { guest, at }) };
            OK
        }
        None => fail(used.why()),
    }
}
unsafe extern "C" fn on_ack(_: Own, state: StateBytes, window: *mut Window, ack: *const Ack) -> i32 {
    unsafe { with(state, |guest, at| guest.on_ack(at, &mut *window, &*ack)) }
}
unsafe extern "C" fn on_loss(_: Own, state: StateBytes, window: *const Window, loss: *const Loss, ssthresh: *mut u64) -> i32 {
    unsafe { with(state, |guest, at| guest.on_loss(at, &*window, &*loss, &mut *ssthresh)) }
}
unsafe extern "C" fn on_mark(_: Own, state: StateBytes, window: *const Window, ack: *const Ack, cwnd: *mut u64) -> i32 {
    unsafe { with(state, |guest, at| guest.on_mark(at, &*window, &*ack, &mut *cwnd)) }
}
unsafe extern "C" fn before_loss(_: Own, state: StateBytes, cause: u32, now_ps: u64) -> i32 {
    unsafe { with(state, |guest, at| guest.before_loss(at, cause, now_ps)) }
}
unsafe extern "C" fn on_sent(_: Own, state: StateBytes, now_ps: u64, sent: u64) -> i32 {
    unsafe { with(state, |guest, at| guest.on_sent(at, now_ps, sent)) }
}
unsafe extern "C" fn most(_: Own, state: *const c_void, most: *mut u64) -> i32 {
    unsafe { with(state, |guest, at| guest.most(at, &mut *most)) }
}
unsafe extern "C" fn not_before(_: Own, state: *const c_void, srtt_ps: u64, at_ps: *mut u64) -> i32 {
    unsafe { with(state, |guest, at| guest.not_before(at, srtt_ps, &mut *at_ps)) }
}
unsafe extern "C" fn inherit(_: Own, state: StateBytes, before: *const c_void) -> i32 {
    // A connection stays at its host, so that both flows have one controller.
    let before = unsafe { (*before.cast::<State>()).at };
    unsafe { with(state, |guest, at| guest.inherit(at, before)) }
}
unsafe extern "C" fn count(_: Own, state: *const c_void) -> *const u64 {
    let mut totals = ptr::null();
    unsafe {
        with(state, |guest, at| {
            totals = guest.count(at);
            if totals.is_null() { FAILED } else { OK }
        });
    }
    totals
}
unsafe extern "C" fn close(state: StateBytes) {
    let State { guest, at } = unsafe { state.cast::<State>().read() };
    unsafe {
        (*guest).close(at);
        release(guest);
    }
}
unsafe extern "C" fn destroy(own: *mut c_void) {
    let guest = unsafe { *own.cast::<*mut Guest>() };
    unsafe {
        (*guest).destroy();
        release(guest);
    }
}

#[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
mod tests {
    use super::*;
    use std::path::Path;
    use std::process::Command;

    /// The C compiler lays structures out as for WebAssembly if pointers have 32 bits and words of
    /// 64 bits are aligned to 8 bytes.
    #[test]
    fn the_layout_is_that_of_the_header() {
        let mut checks = vec![
            format!("sizeof(flowloom_congestion) == {TABLE_SIZE}"),
            format!("sizeof(flowloom_parameter) == {PARAMETER_SIZE}"),
            format!("sizeof(flowloom_counter) == {COUNTER_SIZE}"),
            "offsetof(flowloom_head, sizes) == 24 && offsetof(flowloom_head, name) == 56".to_owned(),
            "offsetof(flowloom_head, parameters) == 68 && offsetof(flowloom_head, parameter_count) == 72".to_owned(),
            "offsetof(flowloom_head, counters) == 80 && offsetof(flowloom_head, counter_count) == 88".to_owned(),
            "offsetof(flowloom_head, own_size) == 96 && offsetof(flowloom_head, context) == 112".to_owned(),
            "offsetof(flowloom_head, close) == 116 && offsetof(flowloom_congestion, ecn) == 128".to_owned(),
        ];
        for (i, (name, _)) in ROLES.iter().enumerate() {
            let create = Role::Create as usize;
            let (of, at) = if i < create { ("head", 116 + 4 * i) } else { ("congestion", 136 + 4 * (i - create)) };
            checks.push(format!("offsetof(flowloom_{of}, {name}) == {at}"));
        }
        for (name, size) in [
            ("host", size_of::<Host>()),
            ("flow", size_of::<Flow>()),
            ("window", size_of::<Window>()),
            ("ack", size_of::<Ack>()),
            ("loss", size_of::<Loss>()),
            ("value", size_of::<Value>()),
        ] {
            checks.push(format!("sizeof(flowloom_{name}) == {size}"));
        }
        let lines: Vec<String> = checks.iter().map(|check| format!("_Static_assert({check}, \"{check}\");")).collect();
        let folder = std::env::temp_dir();
        let source = folder.join(format!("flowloom-layout-{}.c", std::process::id()));
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
