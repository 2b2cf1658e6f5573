//! The side of the simulator: checks the table of a plug-in once, and calls its functions.
//!
//! A plug-in that is loaded is trusted code: [`Library::new`] is the only unsafe function here.

use crate::abi::{Counter, Create, Head, KNOWS_DEADLINE, KNOWS_SIZE, OK, Parameter, RoomTable, Type, VERSION, Value};
use crate::block::Block;
use crate::congestion::{self, CONGESTION, CongestionTable};
use crate::policy::{self, POLICY, PolicyTable};
use crate::qdisc::{self, QDISC, QdiscTable};
use crate::router::{self, ROUTER, RouterTable};
use crate::transport::{self, TRANSPORT, TransportTable};
use std::ffi::{CStr, c_char};
use std::fmt;
use std::panic::resume_unwind;
use std::sync::OnceLock;

/// The name that scenarios use in place of a file for the plug-in of this crate.
pub const EXAMPLE_FILE: &str = "example";
/// As [`EXAMPLE_FILE`], for the transport of this crate that is not a congestion controller.
pub const EXAMPLE_TRANSPORT: &str = "example_transport";

/// Largest number of parameters and of counters, and the longest text, in bytes.
pub const MOST: (u64, u64, usize) = (64, 16, 4096);
/// Largest block, in bytes.
pub const MOST_BYTES: u64 = 1 << 20;

/// A plug-in whose table is checked. It is never unloaded.
#[derive(Debug)]
pub struct Library {
    head: Head,
    /// The functions of its room.
    pub functions: Functions,
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

/// The functions of a plug-in, by its room.
#[derive(Clone, Copy, Debug)]
pub enum Functions {
    /// Congestion control on the TCP machine.
    Congestion(CongestionTable),
    /// Transports.
    Transport(TransportTable),
    /// A queue discipline.
    Qdisc(QdiscTable),
    /// A router.
    Router(RouterTable),
    /// Policies.
    Policy(PolicyTable),
}

impl Functions {
    /// Returns the part of a system that the plug-in is for, as scenarios name it.
    pub fn room(&self) -> &'static str {
        match self {
            Functions::Congestion(_) | Functions::Transport(_) => "transport",
            Functions::Qdisc(_) => "qdisc",
            Functions::Router(_) => "router",
            Functions::Policy(_) => "policy",
        }
    }
    /// Returns what the plug-in is, in words.
    fn noun(&self) -> &'static str {
        match self {
            Functions::Congestion(_) => "congestion control, a `transport`",
            Functions::Transport(_) => "a transport",
            Functions::Qdisc(_) => "a queue discipline, a `qdisc`",
            Functions::Router(_) => "a router",
            Functions::Policy(_) => "a policy",
        }
    }
}

/// A table among [`Functions`].
pub trait InRoom: RoomTable {
    /// Returns the table, if the functions are those of the room.
    fn of(functions: &Functions) -> Option<&Self>;
}

macro_rules! in_room {
    ($($table:ident: $room:ident),*) => {
        $(impl InRoom for $table {
            fn of(functions: &Functions) -> Option<&$table> {
                if let Functions::$room(table) = functions { Some(table) } else { None }
            }
        })*
    };
}

in_room!(CongestionTable: Congestion, TransportTable: Transport, QdiscTable: Qdisc, RouterTable: Router, PolicyTable: Policy);

/// Where the functions of a plug-in run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// In the process, with its rights: trusted code.
    Native,
    /// In the Python interpreter, on one thread.
    Python,
    /// In a sandbox: WebAssembly.
    Sandbox,
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
    /// `head` is null or points to the head of a table that a plug-in keeps for ever. If its version and
    /// its sizes are those of this program, all its pointers and functions are as [`Head`] and the
    /// table of its room say.
    pub unsafe fn new(head: *const Head, file: &str, digest: &str, code: Code) -> Result<Library, String> {
        if head.is_null() || !head.is_aligned() {
            return Err("its function `flowloom_plugin` returns no table".to_owned());
        }
        // Version, room and size come first in every version.
        let (version, room) = unsafe { ((*head).version, (*head).room) };
        if version != VERSION {
            return Err(format!(
                "it is made for version {version} of plug-ins, and this program has version {VERSION}: build it again"
            ));
        }
        let functions = match room {
            CONGESTION => Functions::Congestion(unsafe { read(head)? }),
            QDISC => Functions::Qdisc(unsafe { read(head)? }),
            ROUTER => Functions::Router(unsafe { read(head)? }),
            TRANSPORT => Functions::Transport(unsafe { read(head)? }),
            POLICY => Functions::Policy(unsafe { read(head)? }),
            _ => return Err(format!("it is for room {room}, which this program does not have")),
        };
        let head = unsafe { *head };
        for (name, bytes) in [("own_size", head.own_size), ("state_size", head.state_size)] {
            if bytes > MOST_BYTES {
                return Err(format!("its `{name}` is {bytes}: at most {MOST_BYTES} bytes are allowed"));
            }
        }
        if head.knows > KNOWS_SIZE | KNOWS_DEADLINE {
            return Err(format!("its `knows` is {}: a sum of {KNOWS_SIZE} and {KNOWS_DEADLINE} is allowed", head.knows));
        }
        for (name, count, most) in
            [("parameter_count", head.parameter_count, MOST.0), ("counter_count", head.counter_count, MOST.1)]
        {
            if count > most {
                return Err(format!("its `{name}` is {count}: at most {most} are allowed"));
            }
        }
        let [name, summary, source] = [("name", head.name), ("summary", head.summary), ("source", head.source)]
            .map(|(what, text)| unsafe { text_of(text) }.map_err(|why| format!("its `{what}` {why}")));
        let name = name?;
        if !is_word(&name) {
            return Err(format!("its name `{}` is not a word of lower case letters, digits and `_`", name.escape_debug()));
        }
        let (parameters, counters) =
            unsafe { (slice(head.parameters, head.parameter_count)?.to_vec(), slice(head.counters, head.counter_count)?.to_vec()) };
        let parameters = parameters.iter().map(|one| unsafe { declared(one) }).collect::<Result<_, _>>()?;
        let counters = counters.iter().map(|one| unsafe { counter(one) }).collect::<Result<Vec<_>, _>>()?;
        let (file, digest) = (file.to_owned(), digest.to_owned());
        Ok(Library { head, functions, file, digest, name, summary: summary?, source: source?, parameters, counters, code })
    }
    /// Returns the plug-in of this crate: `path = "example"`.
    pub fn example() -> &'static Library {
        static TABLE: CongestionTable = congestion::author::table::<congestion::example::Example>();
        static EXAMPLE: OnceLock<Library> = OnceLock::new();
        EXAMPLE.get_or_init(|| Library::of_crate(&TABLE, EXAMPLE_FILE))
    }
    /// Returns the queue discipline of this crate.
    pub fn example_qdisc() -> &'static Library {
        static TABLE: QdiscTable = qdisc::author::table::<qdisc::example::Example>();
        static EXAMPLE: OnceLock<Library> = OnceLock::new();
        EXAMPLE.get_or_init(|| Library::of_crate(&TABLE, EXAMPLE_FILE))
    }
    /// Returns the router of this crate.
    pub fn example_router() -> &'static Library {
        static TABLE: RouterTable = router::author::table::<router::example::Example>();
        static EXAMPLE: OnceLock<Library> = OnceLock::new();
        EXAMPLE.get_or_init(|| Library::of_crate(&TABLE, EXAMPLE_FILE))
    }
    /// Returns the plug-in of this crate with this table.
    fn of_crate<T: RoomTable>(table: &'static T, file: &str) -> Library {
        // Safety: a table of this crate.
        unsafe { Library::new(std::ptr::from_ref(table).cast(), file, "", Code::Native) }.expect("a valid table")
    }
    /// Returns the functions of a plug-in for a room. The error completes a sentence about the plug-in.
    pub fn table<T: InRoom>(&self) -> Result<&T, String> {
        T::of(&self.functions).ok_or_else(|| format!("it is {}, and not for this part of a system", self.functions.noun()))
    }
    /// Returns the plug-in of this crate that is a whole transport: `path = "example_transport"`.
    pub fn example_transport() -> &'static Library {
        static TABLE: TransportTable = transport::author::table::<transport::example::Example>();
        static EXAMPLE: OnceLock<Library> = OnceLock::new();
        EXAMPLE.get_or_init(|| Library::of_crate(&TABLE, EXAMPLE_TRANSPORT))
    }
    /// Returns the plug-in of this crate that is a policy.
    pub fn example_policy() -> &'static Library {
        static TABLE: PolicyTable = policy::author::table::<policy::example::Example>();
        static EXAMPLE: OnceLock<Library> = OnceLock::new();
        EXAMPLE.get_or_init(|| Library::of_crate(&TABLE, EXAMPLE_FILE))
    }
    /// Returns whether the plug-in knows the size of a flow in advance.
    pub fn knows_size(&self) -> bool {
        self.head.knows & KNOWS_SIZE != 0
    }
    /// Returns whether the plug-in knows the deadline of a flow.
    pub fn knows_deadline(&self) -> bool {
        self.head.knows & KNOWS_DEADLINE != 0
    }
    /// Creates a machine with the function of its table, which gets `about` and a value for each parameter.
    /// Returns the table and the block of the machine.
    pub(crate) fn create<T: InRoom, A, const NEAR: usize>(
        &'static self,
        function: impl FnOnce(&T) -> Create<A>,
        about: &A,
        values: &[Value],
    ) -> Result<(&'static T, Block<NEAR>), Failure> {
        assert_eq!(values.len(), self.parameters.len(), "a value for each parameter");
        let table = self.table::<T>().map_err(|why| self.wrong("create", why))?;
        let mut own = Block::new(self.head.own_size);
        if let Some(create) = function(table) {
            // Safety: the table was checked.
            let status = unsafe { create(self.head.context, own.at(), std::ptr::from_ref(about), values.as_ptr()) };
            if status != OK {
                return Err(self.failure("create"));
            }
            own.ends_with(self.head.destroy);
        }
        Ok((table, own))
    }
    /// Returns the failure of a function whose result is wrong.
    pub fn wrong(&self, function: &'static str, why: String) -> Failure {
        Failure { file: self.file.clone(), name: self.name.clone(), function, why }
    }
    /// Returns the failure of a function of this plug-in.
    pub(crate) fn failure(&self, function: &'static str) -> Failure {
        // Safety: the text is valid until the next call on this thread.
        let text = self.head.failure.and_then(|text| unsafe { text_of(text()) }.ok());
        Failure { file: self.file.clone(), name: self.name.clone(), function, why: text.unwrap_or_default() }
    }
}

/// Reads the table of a room.
unsafe fn read<T: RoomTable>(head: *const Head) -> Result<T, String> {
    let (size, sizes, parameter, counter) = unsafe { ((*head).size, (*head).sizes, (*head).parameter_size, (*head).counter_size) };
    if size as usize != size_of::<T>() {
        return Err(format!("its table has {size} bytes instead of {}", size_of::<T>()));
    }
    let of_all = [("parameter", parameter, size_of::<Parameter>()), ("counter", counter, size_of::<Counter>())];
    let of_room = T::STRUCTURES.iter().zip(sizes).map(|((name, wanted), found)| (*name, found, *wanted));
    if let Some((name, found, wanted)) = of_all.into_iter().chain(of_room).find(|(_, found, wanted)| *found as usize != *wanted) {
        return Err(format!("its `flowloom_{name}` has {found} bytes instead of {wanted}"));
    }
    // Safety: a table begins with its head, and has the size of this one.
    let table = unsafe { *head.cast::<T>() };
    table.check().map(|()| table)
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
