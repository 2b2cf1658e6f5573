//! The side of the simulator: checks the table of a plug-in once, and calls its functions.
//!
//! A plug-in that is loaded is trusted code: [`Library::new`] is the only unsafe function here.

use crate::abi::{
    Ack, CONGESTION, Counter, FAILED, Flow, Host, KNOWS_DEADLINE, KNOWS_SIZE, Loss, NO_EFFECT, OK, Parameter, Table, Type, VERSION,
    Value, Window,
};
use crate::example;
use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_void};
use std::fmt;
use std::panic::resume_unwind;
use std::ptr;
use std::sync::OnceLock;

/// The name that scenarios use in place of a file for the plug-in of this crate.
pub const EXAMPLE_FILE: &str = "example";

/// Largest number of parameters and of counters, and the longest text, in bytes.
const MOST: (u64, u64, usize) = (64, 16, 4096);
/// Largest block, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// A plug-in whose table is checked. It is never unloaded.
#[derive(Debug)]
pub struct Library {
    table: Table,
    /// Its file, as the scenario names it.
    pub file: String,
    /// The SHA-256 of the file in hexadecimal digits; empty for the plug-in of this crate.
    pub digest: String,
    /// The name of the protocol.
    pub name: String,
    /// One line about it.
    pub summary: String,
    /// Paper or RFC.
    pub source: String,
    /// Its parameters.
    pub parameters: Vec<Declared>,
    /// Its counters: name, unit and description.
    pub counters: Vec<[String; 3]>,
    /// Where its functions run.
    pub code: Code,
}

/// Where the functions of a plug-in run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// In the process, with its rights: trusted code.
    Native,
    /// In the Python interpreter, on one thread.
    Python,
}

/// A parameter as the plug-in declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// Its key.
    pub name: String,
    /// Its type.
    pub kind: Type,
    /// Its default, as a scenario writes it.
    pub default: String,
    /// The ends of its range.
    pub range: Option<(String, String)>,
    /// Source of the default.
    pub source: String,
    /// A sentence that describes it.
    pub about: String,
}

impl Library {
    /// Checks a table. The error says what is wrong with the plug-in, as the end of a sentence.
    ///
    /// # Safety
    ///
    /// `table` is null or points to memory that a plug-in keeps for ever. If its version and its
    /// sizes are those of this program, all its pointers and functions are as [`Table`] says.
    pub unsafe fn new(table: *const Table, file: &str, digest: &str, code: Code) -> Result<Library, String> {
        if table.is_null() || !table.is_aligned() {
            return Err("its function `flowloom_plugin` returns no table".to_owned());
        }
        // Version, room and size come first in every version.
        let (version, room, size) = unsafe { ((*table).version, (*table).room, (*table).size) };
        if version != VERSION {
            return Err(format!(
                "it is made for version {version} of plug-ins, and this program has version {VERSION}: build it again"
            ));
        }
        if room != CONGESTION {
            return Err(format!("it is for room {room}, and congestion control has number {CONGESTION}"));
        }
        if size as usize != size_of::<Table>() {
            return Err(format!("its table has {size} bytes instead of {}", size_of::<Table>()));
        }
        let table = unsafe { *table };
        let sizes = [
            ("parameter", table.parameter_size, size_of::<Parameter>()),
            ("counter", table.counter_size, size_of::<Counter>()),
            ("host", table.host_size, size_of::<Host>()),
            ("flow", table.flow_size, size_of::<Flow>()),
            ("window", table.window_size, size_of::<Window>()),
            ("ack", table.ack_size, size_of::<Ack>()),
            ("loss", table.loss_size, size_of::<Loss>()),
        ];
        if let Some((name, found, wanted)) = sizes.into_iter().find(|(_, found, wanted)| *found as usize != *wanted) {
            return Err(format!("its `flowloom_{name}` has {found} bytes instead of {wanted}"));
        }
        let needed = [("open", table.open.is_some()), ("on_ack", table.on_ack.is_some()), ("on_loss", table.on_loss.is_some())];
        if let Some((name, _)) = needed.into_iter().find(|(_, present)| !present) {
            return Err(format!("it has no function `{name}`"));
        }
        if table.create.is_none() && table.own_size > 0 {
            return Err("it has no function `create`, but a controller of some size".to_owned());
        }
        for (name, bytes) in [("own_size", table.own_size), ("state_size", table.state_size)] {
            if bytes > MOST_BYTES {
                return Err(format!("its `{name}` is {bytes}: at most {MOST_BYTES} bytes are allowed"));
            }
        }
        if table.ecn > 2 {
            return Err(format!("its `ecn` is {}: 0, 1 or 2 are allowed", table.ecn));
        }
        if table.knows > KNOWS_SIZE | KNOWS_DEADLINE {
            return Err(format!("its `knows` is {}: a sum of {KNOWS_SIZE} and {KNOWS_DEADLINE} is allowed", table.knows));
        }
        for (name, count, most) in
            [("parameter_count", table.parameter_count, MOST.0), ("counter_count", table.counter_count, MOST.1)]
        {
            if count > most {
                return Err(format!("its `{name}` is {count}: at most {most} are allowed"));
            }
        }
        if table.counter_count > 0 && table.count.is_none() {
            return Err("it declares counters, but has no function `count`".to_owned());
        }
        let [name, summary, source] = [("name", table.name), ("summary", table.summary), ("source", table.source)]
            .map(|(what, text)| unsafe { text_of(text) }.map_err(|why| format!("its `{what}` {why}")));
        let name = name?;
        if !is_word(&name) {
            return Err(format!("its name `{}` is not a word of lower case letters, digits and `_`", name.escape_debug()));
        }
        let (parameters, counters) = unsafe {
            (slice(table.parameters, table.parameter_count)?.to_vec(), slice(table.counters, table.counter_count)?.to_vec())
        };
        let parameters = parameters.iter().map(|one| unsafe { declared(one) }).collect::<Result<_, _>>()?;
        let counters = counters.iter().map(|one| unsafe { counter(one) }).collect::<Result<Vec<_>, _>>()?;
        let (file, digest) = (file.to_owned(), digest.to_owned());
        Ok(Library { table, file, digest, name, summary: summary?, source: source?, parameters, counters, code })
    }
    /// Returns the plug-in of this crate: `path = "example"`.
    pub fn example() -> &'static Library {
        static TABLE: Table = Table::of::<example::Example>();
        static EXAMPLE: OnceLock<Library> = OnceLock::new();
        // Safety: a table of this crate.
        EXAMPLE.get_or_init(|| unsafe { Library::new(&raw const TABLE, EXAMPLE_FILE, "", Code::Native) }.expect("a valid table"))
    }
    /// Returns how connections use ECN: 0 not, 1 as RFC 3168, 2 exactly, as RFC 8257.
    pub fn ecn(&self) -> u32 {
        self.table.ecn
    }
    /// Returns whether the plug-in knows the size of a flow in advance.
    pub fn knows_size(&self) -> bool {
        self.table.knows & KNOWS_SIZE != 0
    }
    /// Returns whether the plug-in knows the deadline of a flow.
    pub fn knows_deadline(&self) -> bool {
        self.table.knows & KNOWS_DEADLINE != 0
    }
    /// Returns the failure of a function of this plug-in.
    fn failure(&self, function: &'static str) -> Failure {
        // Safety: the text is valid until the next call on this thread.
        let text = self.table.failure.and_then(|text| unsafe { text_of(text()) }.ok());
        Failure { file: self.file.clone(), name: self.name.clone(), function, why: text.unwrap_or_default() }
    }
}

/// Returns a text. The error completes a sentence that begins with its name.
unsafe fn text_of(text: *const c_char) -> Result<String, String> {
    if text.is_null() {
        return Err("is missing".to_owned());
    }
    // Safety: the plug-in ends texts with a zero byte. No more bytes are read than a text may have.
    let length = (0..MOST.2).find(|at| unsafe { *text.add(*at) } == 0).ok_or_else(|| format!("is longer than {} bytes", MOST.2))?;
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length + 1) };
    let text = CStr::from_bytes_with_nul(bytes).map_err(|_| "is not a text".to_owned())?;
    text.to_str().map(str::to_owned).map_err(|_| "is not UTF-8 text".to_owned())
}

unsafe fn slice<'a, T>(first: *const T, count: u64) -> Result<&'a [T], String> {
    match count {
        0 => Ok(&[]),
        _ if first.is_null() || !first.is_aligned() => {
            Err("it declares parameters or counters, but the list is missing".to_owned())
        }
        _ => Ok(unsafe { std::slice::from_raw_parts(first, count as usize) }),
    }
}

fn is_word(text: &str) -> bool {
    text.len() <= 40
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

unsafe fn declared(one: &Parameter) -> Result<Declared, String> {
    let name = unsafe { text_of(one.name) }.map_err(|why| format!("the name of a parameter {why}"))?;
    if !is_word(&name) {
        return Err(format!("its parameter `{}` is not a word of lower case letters, digits and `_`", name.escape_debug()));
    }
    const TYPES: [Type; 7] = [Type::Integer, Type::Number, Type::Fraction, Type::Time, Type::Size, Type::Rate, Type::Flag];
    let kind = TYPES.into_iter().find(|kind| *kind as u32 == one.kind);
    let kind = kind.ok_or_else(|| format!("its parameter `{name}` has the unknown type {}", one.kind))?;
    let text = |what: &str, text| unsafe { text_of(text) }.map_err(|why| format!("the {what} of its parameter `{name}` {why}"));
    let range = match (one.lowest.is_null(), one.highest.is_null()) {
        (true, true) => None,
        _ => Some((text("smallest value", one.lowest)?, text("largest value", one.highest)?)),
    };
    let (default, source, about) =
        (text("default", one.default_text)?, text("source", one.source)?, text("description", one.about)?);
    if about.trim().is_empty() || default.is_empty() {
        return Err(format!("its parameter `{name}` has no description or no default"));
    }
    Ok(Declared { name, kind, default, range, source, about })
}

unsafe fn counter(one: &Counter) -> Result<[String; 3], String> {
    let [name, unit, about] = [one.name, one.unit, one.about]
        .map(|text| unsafe { text_of(text) }.map_err(|why| format!("a text of one of its counters {why}")));
    let name = name?;
    if !is_word(&name) {
        return Err(format!("its counter `{}` is not a word of lower case letters, digits and `_`", name.escape_debug()));
    }
    Ok([name, unit?, about?])
}

/// The failure of a function of a plug-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The file of the plug-in.
    pub file: String,
    /// The name of the protocol.
    pub name: String,
    /// The function.
    pub function: &'static str,
    /// Why it has failed, in the words of the plug-in; may be empty.
    pub why: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { file, name, function, why } = self;
        write!(f, "the plug-in `{name}` (`{file}`) failed in `{function}`")?;
        if why.is_empty() { Ok(()) } else { write!(f, ": {why}") }
    }
}

impl Failure {
    /// Ends the run: unwinds to the code that catches failures of plug-ins.
    #[cold]
    pub fn raise(self) -> ! {
        resume_unwind(Box::new(self))
    }
}

/// Sixteen bytes of a block.
#[repr(C, align(16))]
struct Chunk(UnsafeCell<[u8; 16]>);

/// A block of bytes of a plug-in: the controller of a host, or the state of a flow.
pub struct Block {
    chunks: Box<[Chunk]>,
    end: Option<unsafe extern "C" fn(*mut c_void)>,
}

// Safety: a plug-in may be called on any thread, for one host on one thread at a time.
unsafe impl Send for Block {}

impl Block {
    fn new(bytes: u64) -> Block {
        let chunks = (0..bytes.div_ceil(16)).map(|_| Chunk(UnsafeCell::new([0; 16]))).collect();
        Block { chunks, end: None }
    }
    #[inline(always)]
    fn at(&self) -> *mut c_void {
        self.chunks.as_ptr().cast_mut().cast()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some(end) = self.end {
            // Safety: `create` or `open` has filled the block.
            unsafe { end(self.at()) }
        }
    }
}

/// The controller of a host.
pub struct Controller {
    library: &'static Library,
    table: &'static Table,
    own: Block,
}

// Safety of the calls below: the table was checked, `own` was filled by `create`, and states were
// filled by `open` of the same plug-in.

impl Controller {
    /// Creates the controller of a host. There is a value for each parameter.
    pub fn new(library: &'static Library, host: &Host, values: &[Value]) -> Result<Controller, Failure> {
        assert_eq!(values.len(), library.parameters.len(), "a value for each parameter");
        let table = &library.table;
        let mut own = Block::new(table.own_size);
        if let Some(create) = table.create {
            let status = unsafe { create(table.context, own.at(), ptr::from_ref(host), values.as_ptr()) };
            if status != OK {
                return Err(library.failure("create"));
            }
            own.end = table.destroy;
        }
        Ok(Controller { library, table, own })
    }
    /// Ends the run, if a function has failed.
    #[inline(always)]
    fn done(&self, status: i32, function: &'static str) {
        if status != OK {
            self.library.failure(function).raise();
        }
    }
    /// Returns the state of a flow that opens.
    pub fn open(&self, flow: &Flow) -> Block {
        let mut state = Block::new(self.table.state_size);
        if let Some(open) = self.table.open {
            self.done(unsafe { open(self.own.at(), state.at(), flow) }, "open");
        }
        state.end = self.table.close;
        state
    }
    /// Calls `inherit`.
    pub fn inherit(&self, state: &mut Block, before: &Block) {
        if let Some(inherit) = self.table.inherit {
            self.done(unsafe { inherit(self.own.at(), state.at(), before.at()) }, "inherit");
        }
    }
    /// Calls `on_feedback`.
    #[inline(always)]
    pub fn on_feedback(&self, state: &mut Block, ack: &Ack) {
        if let Some(on_feedback) = self.table.on_feedback {
            self.done(unsafe { on_feedback(self.own.at(), state.at(), ack) }, "on_feedback");
        }
    }
    /// Calls `on_ack`.
    #[inline(always)]
    pub fn on_ack(&self, state: &mut Block, window: &mut Window, ack: &Ack) {
        if let Some(on_ack) = self.table.on_ack {
            self.done(unsafe { on_ack(self.own.at(), state.at(), window, ack) }, "on_ack");
        }
    }
    /// Calls `on_mark`. Returns the new window.
    pub fn on_mark(&self, state: &mut Block, window: &Window, ack: &Ack) -> Option<u64> {
        let on_mark = self.table.on_mark?;
        let mut cwnd = window.cwnd;
        let status = unsafe { on_mark(self.own.at(), state.at(), window, ack, &mut cwnd) };
        if status == NO_EFFECT {
            return None;
        }
        self.done(status, "on_mark");
        Some(cwnd)
    }
    /// Calls `before_loss`.
    pub fn before_loss(&self, state: &mut Block, cause: u32, now_ps: u64) {
        if let Some(before_loss) = self.table.before_loss {
            self.done(unsafe { before_loss(self.own.at(), state.at(), cause, now_ps) }, "before_loss");
        }
    }
    /// Calls `on_loss`. Returns the new slow-start threshold.
    pub fn on_loss(&self, state: &mut Block, window: &Window, loss: &Loss) -> u64 {
        let mut ssthresh = window.ssthresh;
        let status =
            self.table.on_loss.map_or(FAILED, |on_loss| unsafe { on_loss(self.own.at(), state.at(), window, loss, &mut ssthresh) });
        self.done(status, "on_loss");
        ssthresh
    }
    /// Calls `on_sent`.
    #[inline(always)]
    pub fn on_sent(&self, state: &mut Block, now_ps: u64, sent: u64) {
        if let Some(on_sent) = self.table.on_sent {
            self.done(unsafe { on_sent(self.own.at(), state.at(), now_ps, sent) }, "on_sent");
        }
    }
    /// Calls `most`; `u64::MAX` without it.
    #[inline(always)]
    pub fn most(&self, state: &Block) -> u64 {
        let mut most = u64::MAX;
        if let Some(function) = self.table.most {
            self.done(unsafe { function(self.own.at(), state.at(), &mut most) }, "most");
        }
        most
    }
    /// Calls `not_before`; `None` without it.
    #[inline(always)]
    pub fn not_before(&self, state: &Block, srtt_ps: u64) -> Option<u64> {
        let function = self.table.not_before?;
        let mut at = 0;
        self.done(unsafe { function(self.own.at(), state.at(), srtt_ps, &mut at) }, "not_before");
        Some(at)
    }
    /// Calls `each` with every counter and its total.
    #[inline(always)]
    pub fn counters(&self, state: &Block, mut each: impl FnMut(usize, u64)) {
        let Some(count) = self.table.count else { return };
        let totals = unsafe { count(self.own.at(), state.at()) };
        if totals.is_null() {
            self.library.failure("count").raise();
        }
        for i in 0..self.library.counters.len() {
            // Safety: `count` returns a total for each counter.
            each(i, unsafe { *totals.add(i) });
        }
    }
}
