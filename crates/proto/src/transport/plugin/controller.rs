//! Plug-ins for congestion control: a controller on the TCP machine.

use crate::kit::tcp::{Ack, Cause, Congestion, Ecn, Loss, Window};
use ::plugin::abi::{Flow, NEVER};
use ::plugin::block::Block;
use ::plugin::congestion::controller::Controller;
use ::plugin::congestion::{self, DUPLICATES, TIMEOUT};
use base::{Dur, Time};
use std::cell::Cell;
use std::marker::PhantomData;

/// The controller of a plug-in. `R` is what a flow has besides the state of the plug-in.
pub struct Foreign<R> {
    controller: Controller,
    ecn: Ecn,
    /// Whether the plug-in has seen the current ACK, whose mark had no effect.
    seen: Cell<bool>,
    rest: PhantomData<fn() -> R>,
}

/// The state of one flow. It is small: a run touches those of all flows in turns.
pub struct State<R> {
    block: Block,
    rest: R,
}

/// What a flow has besides the state of the plug-in.
pub trait Rest {
    /// Whether connections use ECN exactly, without asking.
    const EXACT: bool;
    /// Returns that of a flow that opens.
    fn open(controller: &Controller, now: Time) -> Self;
    /// Returns what only plug-ins with counters, or with functions for every segment, need.
    fn more(&self) -> Option<&More>;
    /// Returns it, mutable.
    fn more_mut(&mut self) -> Option<&mut More>;
}

/// What only plug-ins with counters, or with functions for every segment, need.
pub struct More {
    /// When the plug-in was last called.
    called: Time,
    /// The counters when they were last read.
    counted: Vec<u64>,
}

/// For plug-ins that use ECN exactly and need nothing: they cost the least.
impl Rest for () {
    const EXACT: bool = true;
    fn open(_: &Controller, _: Time) -> Self {}
    #[inline(always)]
    fn more(&self) -> Option<&More> {
        None
    }
    #[inline(always)]
    fn more_mut(&mut self) -> Option<&mut More> {
        None
    }
}

impl Rest for Option<Box<More>> {
    const EXACT: bool = false;
    fn open(controller: &Controller, now: Time) -> Self {
        let more = || Box::new(More { called: now, counted: vec![0; controller.library().counters.len()] });
        controller.has_more().then(more)
    }
    #[inline(always)]
    fn more(&self) -> Option<&More> {
        self.as_deref()
    }
    #[inline(always)]
    fn more_mut(&mut self) -> Option<&mut More> {
        self.as_deref_mut()
    }
}

impl<R: Rest> State<R> {
    #[inline(always)]
    fn note(&mut self, now: Time) {
        if let Some(more) = self.rest.more_mut() {
            more.called = now;
        }
    }
}

impl<R> Foreign<R> {
    /// Creates the controller of a host.
    pub fn new(controller: Controller, ecn: Ecn) -> Self {
        Foreign { controller, ecn, seen: Cell::new(false), rest: PhantomData }
    }
    #[cold]
    fn bound(&self, window: &mut Window) {
        window.cwnd = self.controller.bounded(window.cwnd);
        if window.ssthresh != u64::MAX {
            window.ssthresh = self.controller.bounded(window.ssthresh);
        }
    }
}

impl<R: Rest> Congestion for Foreign<R> {
    type State = State<R>;

    #[inline(always)]
    fn ecn(&self) -> Ecn {
        if R::EXACT { Ecn::Exact } else { self.ecn }
    }

    fn open(&self, flow: &crate::Flow) -> State<R> {
        let library = self.controller.library();
        let opens = Flow {
            number: flow.id.0.into(),
            size: if library.knows_size() { flow.size_bytes } else { 0 },
            start_ps: flow.start.0,
            deadline_ps: flow.deadline.filter(|_| library.knows_deadline()).map_or(NEVER, |deadline| deadline.0),
        };
        State { block: self.controller.open(&opens), rest: R::open(&self.controller, flow.start) }
    }

    fn inherit(&self, state: &mut State<R>, before: &State<R>) {
        self.controller.inherit(&mut state.block, &before.block);
    }

    #[inline(always)]
    fn on_feedback(&self, state: &mut State<R>, ack: &Ack<'_>) {
        state.note(ack.now());
        // Otherwise the machine calls `on_mark` or `on_ack` next.
        if !ack.may_change {
            let mut window = Window { cwnd: 0, ssthresh: 0 };
            self.controller.on_ack(&mut state.block, &mut window, &ack.seen);
        }
    }

    #[inline]
    fn on_ack(&self, state: &mut State<R>, window: &mut Window, ack: &Ack<'_>) {
        if ack.ece && self.seen.take() {
            return;
        }
        self.controller.on_ack(&mut state.block, window, &ack.seen);
        // An infinite threshold stays so.
        if self.controller.is_outside(window.cwnd) || self.controller.is_outside(window.ssthresh) && window.ssthresh != u64::MAX {
            self.bound(window);
        }
    }

    #[inline(never)]
    fn on_mark(&self, state: &mut State<R>, window: &Window, ack: &Ack<'_>) -> Option<u64> {
        let controller = &self.controller;
        if !controller.has_on_mark() {
            return None;
        }
        let seen = congestion::Ack { may_change: false, ..ack.seen };
        controller.on_ack(&mut state.block, &mut { *window }, &seen);
        let cut = controller.on_mark(&mut state.block, window, &seen);
        self.seen.set(cut.is_none());
        cut.map(|cwnd| self.controller.bounded(cwnd))
    }

    fn before_loss(&self, state: &mut State<R>, cause: Cause, now: Time) {
        state.note(now);
        let cause = if cause == Cause::Timeout { TIMEOUT } else { DUPLICATES };
        self.controller.before_loss(&mut state.block, cause, now.0);
    }

    fn on_loss(&self, state: &mut State<R>, window: &Window, loss: Loss) -> u64 {
        let cause = if loss.cause == Cause::Timeout { TIMEOUT } else { DUPLICATES };
        let loss = congestion::Loss { flight: loss.flight, cause, after_mark: loss.after_mark, reserved: [0; 3] };
        self.controller.bounded(self.controller.on_loss(&mut state.block, window, &loss))
    }

    #[inline]
    fn on_sent(&self, state: &mut State<R>, now: Time, sent: u64) {
        if let Some(more) = state.rest.more_mut() {
            more.called = now;
            self.controller.on_sent(&mut state.block, now.0, sent);
        }
    }

    #[inline(always)]
    fn most(&self, state: &State<R>) -> u64 {
        if state.rest.more().is_some() { self.controller.limit(&state.block) } else { u64::MAX }
    }

    #[inline]
    fn not_before(&self, state: &State<R>, srtt: Dur) -> Time {
        let Some(more) = state.rest.more() else { return Time::ZERO };
        let latest = || more.called.after(Dur::from_secs(1));
        self.controller.not_before(&state.block, srtt.0).map_or(Time::ZERO, |at| Time(at).min(latest()))
    }

    #[inline(always)]
    fn count(&self, state: &mut State<R>, mut add: impl FnMut(usize, u64)) {
        let Some(more) = state.rest.more_mut() else { return };
        self.controller.counters(&state.block, |counter, total| {
            let counted = std::mem::replace(&mut more.counted[counter], total);
            if total > counted {
                add(counter, total - counted);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Common, Params, Plugin, check, entry};
    use super::*;
    use crate::kit::script;
    use crate::kit::tcp::Options;
    use ::plugin::abi::{Counter, Parameter, Type, Value};
    use ::plugin::congestion::{CongestionTable, Host};
    use ::plugin::library::{Failure, Library};
    use ::plugin::{Congestion as _, Declaration, Values};
    use base::params::{Params as _, Raw, Reader};
    use base::plugins::Own;

    /// Answers with extreme values, or fails, depending on its parameter.
    struct Hostile(u64);

    impl ::plugin::Congestion for Hostile {
        type State = u64;
        const DECLARATION: Declaration = Declaration {
            counters: &[Counter::new(c"acks", c"packets", c"ACKs of new data.")],
            parameters: &[Parameter::new(Type::Integer, c"answer", c"0", c"The answer to all questions.")],
            ..Declaration::new(c"hostile", c"Answers with extreme values")
        };
        fn create(_: &Host, values: Values<'_>) -> Result<Self, String> {
            if values.integer(0) == 13 { Err("13 is unlucky".to_owned()) } else { Ok(Hostile(values.integer(0))) }
        }
        fn open(&self, _: &Flow) -> u64 {
            0
        }
        fn on_ack(&self, acks: &mut u64, window: &mut congestion::Window, _: &congestion::Ack) {
            *acks += 1;
            assert!(self.0 != 7, "seven");
            (window.cwnd, window.ssthresh) = (self.0, self.0);
        }
        fn on_mark(&self, _: &mut u64, _: &congestion::Window, _: &congestion::Ack) -> Option<u64> {
            Some(self.0)
        }
        fn on_loss(&self, _: &mut u64, _: &congestion::Window, _: &congestion::Loss) -> u64 {
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

    fn library(change: impl FnOnce(&mut CongestionTable)) -> Result<&'static Library, String> {
        let mut table = congestion::author::table::<Hostile>();
        change(&mut table);
        let table: *const CongestionTable = Box::leak(Box::new(table));
        // Safety: a table of this test.
        #[allow(unsafe_code)]
        let library = unsafe { Library::new(table.cast(), "hostile.so", "", ::plugin::library::Code::Native) }?;
        Ok(Box::leak(Box::new(library)))
    }

    /// Reads the parameter of [`Hostile`].
    struct Answer(i64);

    impl Reader for Answer {
        fn get(&mut self, key: &'static str) -> Option<Raw> {
            (key == "answer").then_some(Raw::Int(self.0))
        }
        fn fail(&mut self, key: &'static str, message: String) {
            panic!("{key}: {message}");
        }
    }

    fn params(library: &'static Library, answer: i64) -> Params {
        let common = Common { path: "hostile.so".to_owned(), tcp: Options::defaults() };
        Params { common, own: Own::read(library, &mut Answer(answer)) }
    }

    fn foreign(answer: u64) -> Foreign<Option<Box<More>>> {
        let library = library(|_| {}).unwrap();
        let smss = 1460;
        let host = Host { smss, header: 40, init_window: 10 * smss, nic_rate_bps: 10_000_000_000, max_rtt_ps: 20_000_000 };
        let controller = Controller::new(library, &host, &[Value(answer)]).unwrap();
        Foreign::new(controller, Ecn::Exact)
    }

    #[test]
    fn values_of_a_plug_in_are_bounded() {
        let flow = script::flow(0, 1460);
        for (answer, bytes) in [(0, 1460), (1459, 1460), (5000, 5000), (1 << 48, 1 << 48), (1 << 63, 1 << 48), (u64::MAX, 1 << 48)]
        {
            let foreign = foreign(answer);
            let mut state = foreign.open(&flow);
            let mut window = Window { cwnd: 3 * 1460, ssthresh: u64::MAX };
            let ack = script::ack_with(&flow, 1460, |ack| ack.now_ps = 5);
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

    /// Records its calls: 1 for an ACK that may change the window, 2 for another ACK, 3 for a mark,
    /// which has no effect at windows of one segment.
    struct Recorder;

    impl ::plugin::Congestion for Recorder {
        type State = u64;
        const DECLARATION: Declaration = Declaration {
            counters: &[Counter::new(c"calls", c"calls", c"One digit for each call.")],
            ..Declaration::new(c"recorder", c"Records its calls")
        };
        fn create(_: &Host, _: Values<'_>) -> Result<Self, String> {
            Ok(Recorder)
        }
        fn open(&self, _: &Flow) -> u64 {
            0
        }
        fn on_ack(&self, calls: &mut u64, window: &mut congestion::Window, ack: &congestion::Ack) {
            *calls = *calls * 10 + if ack.may_change { 1 } else { 2 };
            window.cwnd += 100;
        }
        fn on_mark(&self, calls: &mut u64, window: &congestion::Window, _: &congestion::Ack) -> Option<u64> {
            *calls = *calls * 10 + 3;
            (window.cwnd > 1460).then_some(window.cwnd / 2)
        }
        fn on_loss(&self, _: &mut u64, _: &congestion::Window, _: &congestion::Loss) -> u64 {
            0
        }
        fn counters(calls: &u64) -> &[u64] {
            std::slice::from_ref(calls)
        }
    }

    fn recorder<R>() -> Foreign<R> {
        let table: *const CongestionTable = Box::leak(Box::new(congestion::author::table::<Recorder>()));
        // Safety: a table of this test.
        #[allow(unsafe_code)]
        let library = unsafe { Library::new(table.cast(), "recorder.so", "", ::plugin::library::Code::Native) }.unwrap();
        let host = Host { smss: 1460, header: 40, init_window: 0, nic_rate_bps: 1, max_rtt_ps: 1 };
        let controller = Controller::new(Box::leak(Box::new(library)), &host, &[]).unwrap();
        Foreign::new(controller, Ecn::Exact)
    }

    /// Handles an ACK as the machine does. Returns the window and the digits that were recorded.
    fn handle<R: Rest>(foreign: &Foreign<R>, state: &mut State<R>, recovery: bool, marked: bool, cwnd: u64) -> (u64, Vec<u64>) {
        let flow = script::flow(0, 1460);
        let mut window = Window { cwnd, ssthresh: u64::MAX };
        let ack = script::ack_with(&flow, 1, |ack| (ack.may_change, ack.ece) = (!recovery, marked));
        foreign.on_feedback(state, &ack);
        if !recovery {
            match if marked { foreign.on_mark(state, &window, &ack) } else { None } {
                Some(cwnd) => window.cwnd = cwnd,
                None => foreign.on_ack(state, &mut window, &ack),
            }
        }
        let mut calls = Vec::new();
        foreign.count(state, |_, n| calls.push(n));
        (window.cwnd, calls)
    }

    #[test]
    fn every_ack_is_seen_once_and_before_its_mark() {
        // (in recovery, the machine asks for the mark, window before, window after, calls)
        let cases = [
            (false, false, 5000, 5100, 1),
            (true, false, 5000, 5000, 2),
            (false, true, 5000, 2500, 23),
            (false, true, 1460, 1460, 23),
        ];
        let (records, plain) = (recorder::<Option<Box<More>>>(), recorder::<()>());
        for (recovery, marked, before, after, calls) in cases {
            let what = format!("{recovery} {marked} {before}");
            let flow = script::flow(0, 1460);
            let (mut state, mut bare) = (records.open(&flow), plain.open(&flow));
            assert_eq!(handle(&records, &mut state, recovery, marked, before), (after, vec![calls]), "{what}");
            assert_eq!(handle(&plain, &mut bare, recovery, marked, before), (after, vec![]), "{what}");
            // The next ACK, of another flow, is seen too, even if the machine does not ask for its mark.
            let mut window = Window { cwnd: 5000, ssthresh: u64::MAX };
            let next = script::ack_with(&flow, 1, |ack| (ack.may_change, ack.ece) = (true, true));
            plain.on_ack(&mut plain.open(&flow), &mut window, &next);
            assert_eq!(window.cwnd, 5100, "{what}");
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
        // Such a controller, although it uses ECN exactly, is not a plain one, which counts nothing.
        let host = Plugin::new(&params(library(|_| {}).unwrap(), 5000), &script::env());
        assert!(matches!(host, Plugin::Other(other) if matches!(*other, super::super::Other::Controller(_))));
    }

    #[test]
    fn a_panic_of_a_plug_in_is_a_failure_of_the_run() {
        let foreign = foreign(7);
        let flow = script::flow(0, 1460);
        let (mut state, mut window) = (foreign.open(&flow), Window { cwnd: 1460, ssthresh: 1460 });
        let run = std::panic::AssertUnwindSafe(|| foreign.on_ack(&mut state, &mut window, &script::ack(&flow, 1)));
        let failure = std::panic::catch_unwind(run).unwrap_err().downcast::<Failure>().unwrap();
        assert_eq!(failure.to_string(), "the plug-in `hostile` (`hostile.so`) failed in `on_ack`: seven");
        let unlucky = params(library(|_| {}).unwrap(), 13);
        let mut host = script::Script::new(Plugin::new(&unlucky, &script::env()), vec![flow]);
        let failure = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| host.open(0))).unwrap_err();
        assert!(failure.downcast::<Failure>().unwrap().to_string().ends_with("failed in `create`: 13 is unlucky"));
        let problems = check(&unlucky, &script::env());
        assert!(problems[0].message.ends_with("failed in `create`: 13 is unlucky"), "{problems:?}");
    }

    #[test]
    fn tables_that_do_not_fit_are_refused() {
        type Change = fn(&mut CongestionTable);
        let cases: [(Change, &str); 12] = [
            (|t| t.head.version = 2, "version 2 of plug-ins"),
            (|t| t.head.room = 9, "room 9"),
            (|t| t.head.size -= 8, "its table has"),
            (|t| t.head.sizes[3] = 3, "its `flowloom_ack` has 3 bytes"),
            (|t| t.on_ack = None, "no function `on_ack`"),
            (|t| t.create = None, "no function `create`"),
            (|t| t.head.state_size = u64::MAX, "`state_size`"),
            (|t| t.ecn = 3, "`ecn` is 3"),
            (|t| t.head.parameter_count = 1 << 40, "`parameter_count`"),
            (|t| t.head.name = std::ptr::null(), "its `name` is missing"),
            (|t| t.head.name = c"A b".as_ptr(), "not a word"),
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
        const fn one(kind: Type, name: &'static std::ffi::CStr, default: &'static std::ffi::CStr) -> [Parameter; 1] {
            [Parameter::new(kind, name, default, c"A parameter.").range(c"1", c"9")]
        }
        const TAKEN: [Parameter; 1] = one(Type::Integer, c"min_rto", c"1");
        const OUTSIDE: [Parameter; 1] = one(Type::Integer, c"answer", c"10");
        const NO_TIME: [Parameter; 1] = one(Type::Time, c"answer", c"1");
        for (parameters, why) in [(&TAKEN, "already taken"), (&OUTSIDE, "is not from `1` to `9`"), (&NO_TIME, "has no unit")] {
            let library = library(|table| table.head.parameters = parameters.as_ptr()).unwrap();
            let message = entry(library).unwrap_err();
            assert!(message.contains(why), "{why}: {message}");
        }
        let made = entry(library(|_| {}).unwrap()).unwrap();
        let last = made.fields.last().unwrap();
        assert_eq!((last.name, last.default, last.about), ("answer", "0", "The answer to all questions."));
        assert_eq!((made.meta.counters[0].name, made.meta.implies.len(), made.meta.needs.marks), ("acks", 0, false));
    }
}
