//! Plug-ins: a congestion controller on the TCP machine, from a file that is loaded at run time.
//!
//! The file `path` is a shared library with a table of functions, or a Python file with a class; its
//! own parameters follow those of the TCP machine. docs/plugins.md explains how to write one.
//! `path = "example"` is the plug-in that flowloom contains: DCTCP.
//!
//! Source: the plug-in.
//!
//! Model: that of `kit/tcp`. The plug-in decides how the window grows and how far it is cut, what may
//! be in flight, and when the next segment may leave. It has no part at the receiver, and no record
//! of deliveries.
//!
//! Assumed:
//! - A window, a threshold and a limit of bytes in flight are at least one segment and at most 2^48
//!   bytes, whatever the plug-in returns; the threshold before the first loss is infinite.
//! - A departure is at most one second after the last call of the plug-in for the flow, and not in
//!   the past.

use crate::contract::Env;
use crate::kit::tcp::{Ack, Cause, Congestion, Ecn, Loss, Options, Tcp, Window};
use ::plugin::abi::{self, DUPLICATES, NEVER, TIMEOUT, Type, Value};
use ::plugin::library::{Block, Controller, Declared, Failure, Library};
use base::params::{Field, Param, Params as _, Problem, Raw, Reader, read_field};
use base::registry::{Counter, Entry, Meta, Needs};
use base::{Bytes, Dur, Fraction, Rate, Time};

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "a congestion controller from a file: a shared library, or Python",
    source: "the plug-in",
    needs: Needs { least_limit: 1.0, ..Needs::NONE },
    implies: &[("transport.path", ::plugin::library::EXAMPLE_FILE), ("qdisc.kind", "ecn_threshold")],
    plugin: Some(entry),
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of all plug-ins.
    pub struct Common {
        ..tcp: Options {}
        /// The file of the plug-in, relative to the folder of the scenario: a shared library or a Python file; `example`: the plug-in that
        /// flowloom contains.
        path: String = "", "";
    }
}

/// Parameters of a plug-in: those of all plug-ins, followed by its own.
#[derive(Clone, Debug)]
pub struct Params {
    /// The parameters of all plug-ins.
    pub common: Common,
    library: &'static Library,
    /// Its own parameters: the value that is passed, and the value as written.
    own: Vec<(Value, String)>,
}

impl PartialEq for Params {
    fn eq(&self, other: &Params) -> bool {
        std::ptr::eq(self.library, other.library) && (&self.common, &self.own) == (&other.common, &other.own)
    }
}

impl base::params::Params for Params {
    const FIELDS: &'static [Field] = Common::FIELDS;
    fn read(reader: &mut dyn Reader) -> Self {
        let common = Common::read(reader);
        let library = reader.plugin().unwrap_or_else(Library::example);
        let own = library.parameters.iter().map(|declared| read(declared, reader)).collect();
        Params { common, library, own }
    }
    fn show(&self) -> Vec<(&'static str, String)> {
        let own =
            self.library.parameters.iter().zip(&self.own).map(|(declared, (_, shown))| (declared.name.as_str(), shown.clone()));
        self.common.show().into_iter().chain(own).collect()
    }
    fn plugin(&self) -> Option<&'static Library> {
        Some(self.library)
    }
    /// Returns the parameters of the plug-in that flowloom contains.
    fn defaults() -> Self {
        Params::read(&mut OfExample)
    }
}

/// Reads the defaults of the plug-in that flowloom contains.
struct OfExample;

impl Reader for OfExample {
    fn get(&mut self, key: &'static str) -> Option<Raw> {
        (key == base::registry::FILE).then(|| Raw::Str(::plugin::library::EXAMPLE_FILE.to_owned()))
    }
    fn fail(&mut self, _: &'static str, _: String) {}
}

/// Reads a parameter that a plug-in declares.
fn read(declared: &'static Declared, reader: &mut dyn Reader) -> (Value, String) {
    fn of<T: Param + Clone + PartialOrd>(
        declared: &'static Declared,
        reader: &mut dyn Reader,
        word: fn(&T) -> u64,
    ) -> (Value, String) {
        let end = |text: &str| T::parse(&Raw::Str(text.to_owned())).expect("checked when the plug-in was loaded");
        let range = declared.range.as_ref().map(|(low, high)| end(low)..=end(high));
        let value: T = read_field(reader, &declared.name, &declared.default, range);
        (Value(word(&value)), value.show())
    }
    match declared.kind {
        Type::Integer => of::<u64>(declared, reader, |n| *n),
        Type::Number => of::<f64>(declared, reader, |x| x.to_bits()),
        Type::Fraction => of::<Fraction>(declared, reader, |part| part.ppb()),
        Type::Time => of::<Dur>(declared, reader, |time| time.0),
        Type::Size => of::<Bytes>(declared, reader, |size| size.0),
        Type::Rate => of::<Rate>(declared, reader, |rate| rate.0),
        Type::Flag => of::<bool>(declared, reader, |flag| u64::from(*flag)),
    }
}

/// Makes the entry of a plug-in. The error completes a sentence about the plug-in.
fn entry(library: &'static Library) -> Result<Entry, String> {
    let mut fields = Common::FIELDS.to_vec();
    for declared in &library.parameters {
        if fields.iter().any(|known| known.name == declared.name) || declared.name == "kind" {
            return Err(format!("its parameter `{}` has a name that is already taken", declared.name));
        }
        fields.push(field(declared)?);
    }
    let mut counters: Vec<Counter> = Vec::new();
    for [name, unit, about] in &library.counters {
        if counters.iter().any(|known| known.name == name) {
            return Err(format!("it has two counters `{name}`"));
        }
        counters.push(Counter { name, unit, about });
    }
    let knows = [(library.knows_size(), "size"), (library.knows_deadline(), "deadline")];
    let knows: Vec<&'static str> = knows.into_iter().filter(|(knows, _)| *knows).map(|(_, what)| what).collect();
    let marks = library.ecn() != 0;
    let meta = Meta {
        summary: &library.summary,
        source: &library.source,
        needs: Needs { marks, deadlines: library.knows_deadline(), ..META.needs },
        implies: if marks { META.implies } else { &[] },
        knows: Vec::leak(knows),
        counters: Vec::leak(counters),
        ..META
    };
    let (meta, fields) = (Box::leak(Box::new(meta)), Vec::leak(fields));
    let text = include_str!("plugin.rs");
    Ok(Entry { name: "plugin", meta, fields, text, machine: Some(crate::kit::tcp::TEXT), plugin: Some(library) })
}

/// Returns a parameter of a plug-in as a field.
fn field(declared: &'static Declared) -> Result<Field, String> {
    match declared.kind {
        Type::Integer => field_of::<u64>(declared),
        Type::Number => field_of::<f64>(declared),
        Type::Fraction => field_of::<Fraction>(declared),
        Type::Time => field_of::<Dur>(declared),
        Type::Size => field_of::<Bytes>(declared),
        Type::Rate => field_of::<Rate>(declared),
        Type::Flag => field_of::<bool>(declared),
    }
}

fn field_of<T: Param + PartialOrd>(declared: &'static Declared) -> Result<Field, String> {
    let Declared { name, default, range, source, about, .. } = declared;
    let parse = |what: &str, text: &str| {
        let value = T::parse(&Raw::Str(text.to_owned()));
        value.map_err(|why| format!("the {what} of its parameter `{name}`, `{text}`, {why}"))
    };
    let value = parse("default", default)?;
    if let Some((low, high)) = range
        && !value.within(&(parse("smallest value", low)?..=parse("largest value", high)?))
    {
        return Err(format!("the default of its parameter `{name}`, `{default}`, is not from `{low}` to `{high}`"));
    }
    Ok(Field {
        name,
        expects: T::expects,
        shape: T::shape,
        default,
        declared: || None,
        written: range.as_ref().map(|(low, high)| (low.as_str(), high.as_str())),
        source,
        about,
        quiet: false,
    })
}

/// Returns the contradictions between parameters: those that the plug-in reports too.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let mut problems = params.common.tcp.check();
    if let Err(failure) = controller(params, env) {
        let hint = "change its parameters, or the plug-in".to_owned();
        problems.push(Problem { key: base::registry::FILE, message: failure.to_string(), hint });
    }
    problems
}

fn controller(params: &Params, env: &Env<'_>) -> Result<Controller, Failure> {
    let config = params.common.tcp.config(env);
    let host = abi::Host {
        smss: config.smss,
        header: config.header.into(),
        init_window: config.init_window,
        nic_rate_bps: env.nic_rate.0,
        max_rtt_ps: env.max_rtt.0,
    };
    let values: Vec<Value> = params.own.iter().map(|(value, _)| *value).collect();
    Controller::new(params.library, &host, &values)
}

/// The machine of one host.
pub type Plugin = Tcp<Foreign>;

impl Plugin {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let config = params.common.tcp.config(env);
        let library = params.library;
        let ecn = match library.ecn() {
            0 => Ecn::Off,
            1 => Ecn::Classic,
            _ => Ecn::Exact,
        };
        let (size, deadline, counters) = (library.knows_size(), library.knows_deadline(), library.counters.len());
        Tcp::with(config, Foreign { controller: controller(params, env), ecn, smss: config.smss, size, deadline, counters })
    }
}

/// The controller of a plug-in.
pub struct Foreign {
    /// Its functions, or why its controller could not be created: then a run fails with its first flow.
    controller: Result<Controller, Failure>,
    ecn: Ecn,
    smss: u64,
    /// Whether the plug-in knows sizes.
    size: bool,
    /// Whether the plug-in knows deadlines.
    deadline: bool,
    /// The number of counters.
    counters: usize,
}

/// The state of one flow.
pub struct State {
    block: Block,
    /// The last acknowledgment of new data, as the plug-in sees it.
    ack: abi::Ack,
    /// When the plug-in was last called.
    called: Time,
    /// The counters when they were last read.
    counted: Vec<u64>,
}

impl Foreign {
    #[inline(always)]
    fn controller(&self) -> &Controller {
        match &self.controller {
            Ok(controller) => controller,
            Err(failure) => failure.clone().raise(),
        }
    }
    /// Returns a number of bytes from a plug-in within the bounds of windows.
    #[inline(always)]
    fn bounded(&self, bytes: u64) -> u64 {
        bytes.clamp(self.smss, MOST_BYTES)
    }
}

#[inline(always)]
fn passed(ack: &Ack<'_>) -> abi::Ack {
    abi::Ack {
        now_ps: ack.now.0,
        acked: ack.acked,
        slow_start: ack.slow_start,
        snd_una: ack.snd_una,
        snd_nxt: ack.snd_nxt,
        srtt_ps: ack.srtt.0,
        rtt_ps: ack.rtt.map_or(NEVER, |rtt| rtt.0),
        waited_ps: ack.waited.0,
        ece: ack.ece.into(),
        window_limited: ack.window_limited.into(),
    }
}

#[inline(always)]
fn window_of(window: &Window) -> abi::Window {
    abi::Window { cwnd: window.cwnd, ssthresh: window.ssthresh }
}

impl Congestion for Foreign {
    type State = State;

    #[inline(always)]
    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn open(&self, flow: &crate::Flow) -> State {
        let opens = abi::Flow {
            number: flow.id.0.into(),
            size: if self.size { flow.size_bytes } else { 0 },
            start_ps: flow.start.0,
            deadline_ps: flow.deadline.filter(|_| self.deadline).map_or(NEVER, |deadline| deadline.0),
        };
        let (block, counted) = (self.controller().open(&opens), vec![0; self.counters]);
        State { block, ack: abi::Ack::NONE, called: flow.start, counted }
    }

    fn inherit(&self, state: &mut State, before: &State) {
        self.controller().inherit(&mut state.block, &before.block);
    }

    #[inline]
    fn on_feedback(&self, state: &mut State, ack: &Ack<'_>) {
        state.called = ack.now;
        state.ack = passed(ack);
        self.controller().on_feedback(&mut state.block, &state.ack);
    }

    #[inline]
    fn on_ack(&self, state: &mut State, window: &mut Window, _ack: &Ack<'_>) {
        let mut changed = window_of(window);
        self.controller().on_ack(&mut state.block, &mut changed, &state.ack);
        window.cwnd = self.bounded(changed.cwnd);
        if changed.ssthresh != window.ssthresh {
            window.ssthresh = self.bounded(changed.ssthresh);
        }
    }

    fn on_mark(&self, state: &mut State, window: &Window, _ack: &Ack<'_>) -> Option<u64> {
        self.controller().on_mark(&mut state.block, &window_of(window), &state.ack).map(|cwnd| self.bounded(cwnd))
    }

    fn before_loss(&self, state: &mut State, cause: Cause, now: Time) {
        state.called = now;
        let cause = if cause == Cause::Timeout { TIMEOUT } else { DUPLICATES };
        self.controller().before_loss(&mut state.block, cause, now.0);
    }

    fn on_loss(&self, state: &mut State, window: &Window, loss: Loss) -> u64 {
        let cause = if loss.cause == Cause::Timeout { TIMEOUT } else { DUPLICATES };
        let loss = abi::Loss { flight: loss.flight, cause, after_mark: loss.after_mark.into() };
        self.bounded(self.controller().on_loss(&mut state.block, &window_of(window), &loss))
    }

    #[inline]
    fn on_sent(&self, state: &mut State, now: Time, sent: u64) {
        state.called = now;
        self.controller().on_sent(&mut state.block, now.0, sent);
    }

    #[inline]
    fn most(&self, state: &State) -> u64 {
        self.controller().most(&state.block).max(self.smss)
    }

    #[inline]
    fn not_before(&self, state: &State, srtt: Dur) -> Time {
        let latest = || state.called.after(Dur::from_secs(1));
        self.controller().not_before(&state.block, srtt.0).map_or(Time::ZERO, |at| Time(at).min(latest()))
    }

    #[inline(always)]
    fn count(&self, state: &mut State, mut add: impl FnMut(usize, u64)) {
        if self.counters > 0 {
            let counted = &mut state.counted;
            self.controller().counters(&state.block, |counter, total| {
                let more = total.saturating_sub(counted[counter]);
                if more > 0 {
                    add(counter, more);
                    counted[counter] = total;
                }
            });
        }
    }
}

/// Largest window, in bytes: more than a run can send.
const MOST_BYTES: u64 = 1 << 48;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::script;
    use ::plugin::{Congestion as _, Declaration, Host, Table, Values};

    /// Answers with extreme values, or fails, depending on its parameter.
    struct Hostile(u64);

    impl ::plugin::Congestion for Hostile {
        type State = u64;
        const DECLARATION: Declaration = Declaration {
            counters: &[abi::Counter::new(c"acks", c"packets", c"ACKs of new data.")],
            parameters: &[abi::Parameter::new(Type::Integer, c"answer", c"0", c"The answer to all questions.")],
            ..Declaration::new(c"hostile", c"Answers with extreme values")
        };
        fn create(_: &Host, values: Values<'_>) -> Result<Self, String> {
            if values.integer(0) == 13 { Err("13 is unlucky".to_owned()) } else { Ok(Hostile(values.integer(0))) }
        }
        fn open(&self, _: &abi::Flow) -> u64 {
            0
        }
        fn on_ack(&self, acks: &mut u64, window: &mut abi::Window, _: &abi::Ack) {
            *acks += 1;
            assert!(self.0 != 7, "seven");
            (window.cwnd, window.ssthresh) = (self.0, self.0);
        }
        fn on_mark(&self, _: &mut u64, _: &abi::Window, _: &abi::Ack) -> Option<u64> {
            Some(self.0)
        }
        fn on_loss(&self, _: &mut u64, _: &abi::Window, _: &abi::Loss) -> u64 {
            self.0
        }
        fn most(&self, _: &u64) -> u64 {
            self.0
        }
        fn not_before(&self, _: &u64, _: u64) -> u64 {
            self.0
        }
        fn counters(acks: &u64) -> &[u64] {
            std::slice::from_ref(acks)
        }
    }

    fn library(change: impl FnOnce(&mut Table)) -> Result<&'static Library, String> {
        let mut table = Table::of::<Hostile>();
        change(&mut table);
        let table: &'static Table = Box::leak(Box::new(table));
        // Safety: a table of this test.
        #[allow(unsafe_code)]
        let library = unsafe { Library::new(table, "hostile.so", "", ::plugin::library::Code::Native) }?;
        Ok(Box::leak(Box::new(library)))
    }

    fn params(library: &'static Library, answer: u64) -> Params {
        let common = Common { path: "hostile.so".to_owned(), tcp: Options::defaults() };
        Params { common, library, own: vec![(Value(answer), answer.to_string())] }
    }

    fn foreign(answer: u64) -> Foreign {
        let library = library(|_| {}).unwrap();
        let smss = 1460;
        let controller = controller(&params(library, answer), &script::env());
        Foreign { controller, ecn: Ecn::Exact, smss, size: false, deadline: false, counters: 1 }
    }

    #[test]
    fn values_of_a_plug_in_are_bounded() {
        let flow = script::flow(0, 1460);
        for (answer, bytes) in [(0, 1460), (1459, 1460), (5000, 5000), (1 << 48, 1 << 48), (1 << 63, 1 << 48), (u64::MAX, 1 << 48)]
        {
            let foreign = foreign(answer);
            let mut state = foreign.open(&flow);
            let mut window = Window { cwnd: 3 * 1460, ssthresh: u64::MAX };
            let ack = Ack { now: Time(5), ..script::ack(&flow, 1460) };
            // The machine calls it before all others.
            foreign.on_feedback(&mut state, &ack);
            foreign.on_ack(&mut state, &mut window, &ack);
            // A threshold that stays infinite was not changed.
            let ssthresh = if answer == u64::MAX { u64::MAX } else { bytes };
            assert_eq!((window.cwnd, window.ssthresh), (bytes, ssthresh), "{answer}");
            assert_eq!(foreign.on_mark(&mut state, &window, &ack), Some(bytes));
            let loss = Loss { cause: Cause::Timeout, flight: 1, after_mark: false };
            assert_eq!(foreign.on_loss(&mut state, &window, loss), bytes);
            assert_eq!(foreign.most(&state), answer.max(1460));
            assert_eq!(foreign.not_before(&state, Dur::ZERO), Time(answer.min(5 + Dur::from_secs(1).0)));
        }
    }

    #[test]
    fn counters_are_added_once() {
        let foreign = foreign(5000);
        let flow = script::flow(0, 1460);
        let (mut state, mut window) = (foreign.open(&flow), Window { cwnd: 1460, ssthresh: 1460 });
        let mut seen = Vec::new();
        for _ in 0..2 {
            foreign.on_ack(&mut state, &mut window, &script::ack(&flow, 1));
            foreign.count(&mut state, |counter, n| seen.push((counter, n)));
            foreign.count(&mut state, |counter, n| seen.push((counter, n)));
        }
        assert_eq!(seen, [(0, 1), (0, 1)]);
    }

    #[test]
    fn a_panic_of_a_plug_in_is_a_failure_of_the_run() {
        let foreign = foreign(7);
        let flow = script::flow(0, 1460);
        let (mut state, mut window) = (foreign.open(&flow), Window { cwnd: 1460, ssthresh: 1460 });
        let run = std::panic::AssertUnwindSafe(|| foreign.on_ack(&mut state, &mut window, &script::ack(&flow, 1)));
        let failure = std::panic::catch_unwind(run).unwrap_err().downcast::<Failure>().unwrap();
        assert_eq!(failure.to_string(), "the plug-in `hostile` (`hostile.so`) failed in `on_ack`: seven");
        let failed = super::tests::foreign(13);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| failed.open(&flow))).is_err());
        let problems = check(&params(library(|_| {}).unwrap(), 13), &script::env());
        assert!(problems[0].message.ends_with("failed in `create`: 13 is unlucky"), "{problems:?}");
    }

    #[test]
    fn tables_that_do_not_fit_are_refused() {
        type Change = fn(&mut Table);
        let cases: [(Change, &str); 12] = [
            (|t| t.version = 2, "version 2 of plug-ins"),
            (|t| t.room = 9, "room 9"),
            (|t| t.size -= 8, "its table has"),
            (|t| t.ack_size = 3, "its `flowloom_ack` has 3 bytes"),
            (|t| t.on_ack = None, "no function `on_ack`"),
            (|t| t.create = None, "no function `create`"),
            (|t| t.state_size = u64::MAX, "`state_size`"),
            (|t| t.ecn = 3, "`ecn` is 3"),
            (|t| t.parameter_count = 1 << 40, "`parameter_count`"),
            (|t| t.name = std::ptr::null(), "its `name` is missing"),
            (|t| t.name = c"A b".as_ptr(), "not a word"),
            (|t| t.count = None, "no function `count`"),
        ];
        for (change, why) in cases {
            let message = library(change).unwrap_err();
            assert!(message.contains(why), "{why}: {message}");
        }
        assert_eq!(Hostile::DECLARATION.parameters.len(), 1);
    }

    #[test]
    fn parameters_of_a_plug_in_are_checked() {
        const fn one(kind: Type, name: &'static std::ffi::CStr, default: &'static std::ffi::CStr) -> [abi::Parameter; 1] {
            [abi::Parameter::new(kind, name, default, c"A parameter.").range(c"1", c"9")]
        }
        const TAKEN: [abi::Parameter; 1] = one(Type::Integer, c"min_rto", c"1");
        const OUTSIDE: [abi::Parameter; 1] = one(Type::Integer, c"answer", c"10");
        const NO_TIME: [abi::Parameter; 1] = one(Type::Time, c"answer", c"1");
        for (parameters, why) in [(&TAKEN, "already taken"), (&OUTSIDE, "is not from `1` to `9`"), (&NO_TIME, "has no unit")] {
            let library = library(|table| table.parameters = parameters.as_ptr()).unwrap();
            let message = entry(library).unwrap_err();
            assert!(message.contains(why), "{why}: {message}");
        }
        let made = entry(library(|_| {}).unwrap()).unwrap();
        let last = made.fields.last().unwrap();
        assert_eq!((last.name, last.default, last.about), ("answer", "0", "The answer to all questions."));
        assert_eq!((made.meta.counters[0].name, made.meta.implies.len(), made.meta.needs.marks), ("acks", 0, false));
    }
}
