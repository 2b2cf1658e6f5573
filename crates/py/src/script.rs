//! Plug-ins in Python: a class whose methods are called through the table of functions of a plug-in.
//! docs/plugins.md describes the class. An exception becomes a failure of the plug-in.
#![allow(unsafe_code)]

use crate::attributes::{attribute, check_names, is_used, text_of};
use crate::errors::InputError;
use base::params::nearest;
use plugin::abi::{
    Counter, FAILED, Flow, Head, KNOWS_DEADLINE, KNOWS_SIZE, NEVER, OK, Own, Parameter, RoomTable, StateBytes, Type, VERSION,
    Value, sizes_of,
};
use plugin::congestion::{Ack, CongestionTable, Host, Loss, NO_EFFECT, TIMEOUT, Window};
use plugin::library::{Code, Library};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

/// An acknowledgment of new data, as a Python plug-in sees it.
#[pyclass(frozen, get_all, name = "Ack", module = "flowloom._core")]
struct AckOf {
    now_ps: u64,
    acked: u64,
    slow_start: u64,
    snd_una: u64,
    snd_nxt: u64,
    srtt_ps: u64,
    rtt_ps: Option<u64>,
    waited_ps: u64,
    ece: bool,
    window_limited: bool,
    may_change: bool,
}

/// The window of a flow, which `on_ack` may change.
#[pyclass(get_all, set_all, name = "Window", module = "flowloom._core")]
struct WindowOf {
    cwnd: u64,
    ssthresh: u64,
}

/// A loss.
#[pyclass(frozen, get_all, name = "Loss", module = "flowloom._core")]
struct LossOf {
    flight: u64,
    timeout: bool,
    after_mark: bool,
}

/// The configuration of a host.
#[pyclass(frozen, get_all, name = "Host", module = "flowloom._core")]
struct HostOf {
    smss: u64,
    header: u64,
    init_window: u64,
    nic_rate_bps: u64,
    max_rtt_ps: u64,
}

/// A flow when it opens.
#[pyclass(frozen, get_all, name = "Flow", module = "flowloom._core")]
struct FlowOf {
    number: u64,
    size: u64,
    start_ps: u64,
    deadline_ps: Option<u64>,
}

/// The class of a plug-in.
struct Class {
    class: Py<PyType>,
    parameters: Vec<(Py<PyString>, Type)>,
}

/// The controller of a host.
struct Controller {
    class: &'static Class,
    host: Py<HostOf>,
    values: Vec<Py<PyAny>>,
}

fn time(ps: u64) -> Option<u64> {
    (ps != NEVER).then_some(ps)
}

impl From<&Ack> for AckOf {
    fn from(ack: &Ack) -> AckOf {
        let Ack { now_ps, acked, slow_start, snd_una, snd_nxt, srtt_ps, waited_ps, ece, window_limited, may_change, .. } = *ack;
        let rtt_ps = time(ack.rtt_ps);
        AckOf { now_ps, acked, slow_start, snd_una, snd_nxt, srtt_ps, rtt_ps, waited_ps, ece, window_limited, may_change }
    }
}

impl From<&Window> for WindowOf {
    fn from(window: &Window) -> WindowOf {
        WindowOf { cwnd: window.cwnd, ssthresh: window.ssthresh }
    }
}

/// Loads the class of a Python file. The error completes a sentence about the plug-in.
pub fn load(path: &str, text: &str, digest: &str) -> Result<Library, String> {
    Python::attach(|py| {
        let table = table(py, path, text, &format!("flowloom_plugin_{digest}")).map_err(|error| why(py, &error))?;
        // Safety: the table and all that it names live for ever.
        unsafe { Library::new(table, path, digest, Code::Python) }
    })
}

/// Returns the folder of the package `wasmtime`, without importing it. Its own loader would load the library too.
pub fn wasmtime() -> Option<PathBuf> {
    Python::attach(|py| {
        let spec = py.import("importlib.util").ok()?.call_method1("find_spec", ("wasmtime",)).ok()?;
        let folders: Vec<PathBuf> = spec.getattr("submodule_search_locations").ok()?.extract().ok()?;
        folders.into_iter().next()
    })
}

/// Returns a text that lives for ever.
fn kept(text: &str) -> PyResult<*const c_char> {
    Ok(CString::new(text).map_err(|_| InputError::new_err("a text has a zero byte"))?.into_raw())
}

/// Makes the table of a file. Python keeps modules by their names, so that `module` differs for each content.
fn table(py: Python<'_>, path: &str, text: &str, module: &str) -> PyResult<*const Head> {
    let name = module;
    let [code, file, module] =
        [text, path, module].map(|text| CString::new(text).map_err(|_| InputError::new_err("it has a zero byte")));
    let module = PyModule::from_code(py, &code?, &file?, &module?)?;
    let mut classes = Vec::new();
    let mut others = Vec::new();
    for (_, value) in module.dict() {
        if !value.is_instance_of::<PyType>() || value.getattr("__module__")?.extract::<String>()? != name {
            continue;
        }
        let class = value.cast_into::<PyType>()?;
        if class.hasattr("on_ack")? && class.hasattr("on_loss")? { classes.push(class) } else { others.push(class) }
    }
    let [class] = classes.as_slice() else {
        if classes.is_empty() {
            // A misspelled method is a better reason.
            others.iter().try_for_each(check_names)?;
        }
        let found = classes.len();
        return Err(InputError::new_err(format!("it must have one class with `on_ack` and `on_loss`, and has {found}")));
    };
    check_names(class)?;
    let name = match text_of(class, "name")? {
        Some(name) => name,
        None => class.name()?.to_string().to_lowercase(),
    };
    let about = text_of(class, "__doc__")?;
    let source = text_of(class, "source")?.unwrap_or_else(|| "the plug-in".to_owned());
    let ecn = match text_of(class, "ecn")?.as_deref() {
        None | Some("off") => 0,
        Some("classic") => 1,
        Some("exact") => 2,
        Some(other) => {
            return Err(InputError::new_err(format!("its `ecn` is `{other}`: `off`, `classic` or `exact` is allowed")));
        }
    };
    let mut knows = 0;
    let words = attribute(class, "knows")?.map_or(Ok(Vec::new()), |words| {
        let read = words.extract::<Vec<String>>();
        read.map_err(|_| InputError::new_err(format!("its `knows` is {words:?}: a tuple such as `(\"size\",)` is allowed")))
    });
    for word in words? {
        knows |= match word.as_str() {
            "size" => KNOWS_SIZE,
            "deadline" => KNOWS_DEADLINE,
            other => return Err(InputError::new_err(format!("its `knows` has `{other}`: `size` and `deadline` are allowed"))),
        };
    }
    let mut parameters = Vec::new();
    let mut kinds = Vec::new();
    if let Some(declared) = attribute(class, "parameters")? {
        let wrong = || InputError::new_err(format!("its `parameters` is {declared:?}: a dict of dicts, by name, is allowed"));
        for (key, value) in declared.cast::<PyDict>().map_err(|_| wrong())? {
            let name = key.extract::<String>().map_err(|_| wrong())?;
            let not_a_dict = |_| InputError::new_err(format!("its parameter `{name}` is {value:?}: a dict is allowed"));
            let (parameter, kind) = parameter(class, &name, value.cast::<PyDict>().map_err(not_a_dict)?)?;
            parameters.push(parameter);
            kinds.push((key.cast_into::<PyString>()?.unbind(), kind));
        }
    }
    let has = |method: &str| class.hasattr(method);
    let (count, parameters) = (parameters.len() as u64, Vec::leak(parameters).as_ptr());
    let context: &'static Class = Box::leak(Box::new(Class { class: class.clone().unbind(), parameters: kinds }));
    let head = Head {
        version: VERSION,
        room: CongestionTable::ROOM,
        size: size_of::<CongestionTable>() as u32,
        parameter_size: size_of::<Parameter>() as u32,
        counter_size: size_of::<Counter>() as u32,
        knows,
        sizes: sizes_of::<CongestionTable>(),
        name: kept(&name)?,
        summary: kept(about.as_deref().unwrap_or("a Python class").lines().next().unwrap_or_default())?,
        source: kept(&source)?,
        parameters,
        parameter_count: count,
        counters: std::ptr::null(),
        counter_count: 0,
        own_size: size_of::<Controller>() as u64,
        state_size: size_of::<Py<PyAny>>() as u64,
        context: std::ptr::from_ref(context).cast(),
        close: Some(close),
        destroy: Some(destroy),
        failure: Some(failure),
    };
    let table = CongestionTable {
        head,
        ecn,
        shares: 0,
        create: Some(create),
        open: Some(open),
        on_ack: Some(on_ack),
        on_loss: Some(on_loss),
        on_mark: if has("on_mark")? { Some(on_mark) } else { None },
        before_loss: if has("before_loss")? { Some(before_loss) } else { None },
        on_sent: if has("on_sent")? { Some(on_sent) } else { None },
        most: if has("most")? { Some(most) } else { None },
        not_before: if has("not_before")? { Some(not_before) } else { None },
        inherit: if has("inherit")? { Some(inherit) } else { None },
        count: None,
    };
    Ok(std::ptr::from_ref(Box::leak(Box::new(table))).cast())
}

/// Reads `{"type": "fraction", "default": "0.8", "range": ("0", "1"), "about": "A sentence.", "source": "a paper"}`.
fn parameter(class: &Bound<'_, PyType>, name: &str, declared: &Bound<'_, PyDict>) -> PyResult<(Parameter, Type)> {
    const TYPES: [(&str, Type); 7] = [
        ("integer", Type::Integer),
        ("number", Type::Number),
        ("fraction", Type::Fraction),
        ("time", Type::Time),
        ("size", Type::Size),
        ("rate", Type::Rate),
        ("flag", Type::Flag),
    ];
    let wrong = |why: String| InputError::new_err(format!("its parameter `{name}` {why}"));
    if class.hasattr(name)? {
        return Err(wrong("has the name of an attribute of the class".to_owned()));
    }
    if is_used(name) {
        return Err(wrong("has the name of an attribute that flowloom uses".to_owned()));
    }
    const KEYS: [&str; 5] = ["type", "default", "range", "about", "source"];
    for (key, _) in declared {
        let key = key.str()?.to_string();
        if !KEYS.contains(&key.as_str()) {
            let did = nearest(&key, KEYS).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            return Err(wrong(format!("has the unknown key `{key}`{did}")));
        }
    }
    let text = |key: &str| -> PyResult<Option<String>> {
        declared
            .get_item(key)?
            .map(|value| {
                if value.is_instance_of::<pyo3::types::PyBool>() {
                    Ok(value.str()?.to_string().to_lowercase())
                } else {
                    Ok(value.str()?.to_string())
                }
            })
            .transpose()
    };
    let needed = |key: &str| text(key)?.ok_or_else(|| wrong(format!("has no `{key}`")));
    let kind = needed("type")?;
    let kind = TYPES.into_iter().find(|(word, _)| *word == kind).map(|(_, kind)| kind).ok_or_else(|| {
        let words: Vec<String> = TYPES.iter().map(|(word, _)| format!("`{word}`")).collect();
        wrong(format!("has the type `{kind}`; allowed are {}", words.join(", ")))
    })?;
    let (mut lowest, mut highest) = (std::ptr::null(), std::ptr::null());
    if let Some(range) = declared.get_item("range")? {
        let ends = range.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>();
        let (low, high) =
            ends.map_err(|_| wrong(format!("has the range {range:?}: a pair such as `(\"0\", \"1\")` is allowed")))?;
        (lowest, highest) = (kept(&low.str()?.to_string())?, kept(&high.str()?.to_string())?);
    }
    let source = text("source")?.unwrap_or_else(|| "the plug-in".to_owned());
    let [name, default_text, about] = [name.to_owned(), needed("default")?, needed("about")?];
    let parameter = Parameter {
        name: kept(&name)?,
        default_text: kept(&default_text)?,
        lowest,
        highest,
        source: kept(&source)?,
        about: kept(&about)?,
        kind: kind as u32,
        reserved: 0,
    };
    Ok((parameter, kind))
}

/// Returns an exception in words, with the last line of the plug-in that it went through.
fn why(py: Python<'_>, error: &PyErr) -> String {
    if error.is_instance_of::<InputError>(py) {
        return error.value(py).to_string();
    }
    let name = error.get_type(py).name().map_or_else(|_| "an exception".to_owned(), |name| name.to_string());
    let text = format!("{name}: {}", error.value(py));
    let line = || -> PyResult<Option<u32>> {
        let mut trace = error.traceback(py).map(Bound::into_any);
        let mut line = None;
        while let Some(known) = trace.filter(|trace| !trace.is_none()) {
            line = Some(known.getattr("tb_lineno")?.extract()?);
            trace = Some(known.getattr("tb_next")?);
        }
        Ok(line)
    };
    match line() {
        Ok(Some(line)) => format!("{text} (line {line})"),
        _ => text,
    }
}

thread_local! {
    /// Why the last function on this thread has failed.
    static FAILURE: RefCell<CString> = RefCell::new(CString::default());
}

unsafe extern "C" fn failure() -> *const c_char {
    FAILURE.with(|text| text.borrow().as_ptr())
}

fn fail(why: &str) -> i32 {
    FAILURE.with(|known| *known.borrow_mut() = CString::new(why.replace('\0', " ")).unwrap_or_default());
    FAILED
}

thread_local! {
    /// Keeps the interpreter's state of this thread. Without it, every call would make a new one, which
    /// takes several times as long as the call.
    static THREAD: () = {
        // Safety: the first call makes the state, the second releases the interpreter.
        unsafe {
            pyo3::ffi::PyGILState_Ensure();
            pyo3::ffi::PyEval_SaveThread();
        }
    };
}

/// Calls Python. An exception becomes a failure.
fn python(call: impl FnOnce(Python<'_>) -> PyResult<i32>) -> i32 {
    THREAD.with(|()| ());
    let run = || Python::attach(|py| call(py).unwrap_or_else(|error| fail(&why(py, &error))));
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| fail("a panic"))
}

/// Returns the object of a flow.
///
/// # Safety
///
/// `open` has filled the block.
unsafe fn object<'py>(py: Python<'py>, state: *const c_void) -> &'py Bound<'py, PyAny> {
    unsafe { (*state.cast::<Py<PyAny>>()).bind(py) }
}

// Safety of the functions below: the simulator passes the blocks that `create` and `open` have
// filled, and structures that live as long as the call.

unsafe extern "C" fn create(context: *const c_void, own: *mut c_void, host: *const Host, values: *const Value) -> i32 {
    python(|py| {
        let (class, host) = unsafe { (&*context.cast::<Class>(), &*host) };
        let Host { smss, header, init_window, nic_rate_bps, max_rtt_ps } = *host;
        let host = Py::new(py, HostOf { smss, header, init_window, nic_rate_bps, max_rtt_ps })?;
        let value = |(i, (_, kind)): (usize, &(_, Type))| -> PyResult<Py<PyAny>> {
            let word = unsafe { (*values.add(i)).0 };
            Ok(match kind {
                Type::Number => f64::from_bits(word).into_pyobject(py)?.into_any().unbind(),
                Type::Flag => (word != 0).into_pyobject(py)?.to_owned().into_any().unbind(),
                _ => word.into_pyobject(py)?.into_any().unbind(),
            })
        };
        let values = class.parameters.iter().enumerate().map(value).collect::<PyResult<Vec<_>>>()?;
        unsafe { own.cast::<Controller>().write(Controller { class, host, values }) };
        Ok(OK)
    })
}
unsafe extern "C" fn open(own: Own, state: StateBytes, flow: *const Flow) -> i32 {
    python(|py| {
        let (own, flow) = unsafe { (&*own.cast::<Controller>(), &*flow) };
        let object = own.class.class.bind(py).call0()?;
        object.setattr(intern!(py, "host"), &own.host)?;
        let Flow { number, size, start_ps, deadline_ps } = *flow;
        object.setattr(intern!(py, "flow"), Py::new(py, FlowOf { number, size, start_ps, deadline_ps: time(deadline_ps) })?)?;
        for ((name, _), value) in own.class.parameters.iter().zip(&own.values) {
            object.setattr(name, value)?;
        }
        if object.hasattr(intern!(py, "open"))? {
            object.call_method0(intern!(py, "open"))?;
        }
        unsafe { state.cast::<Py<PyAny>>().write(object.unbind()) };
        Ok(OK)
    })
}
unsafe extern "C" fn on_ack(_: Own, state: StateBytes, window: *mut Window, ack: *const Ack) -> i32 {
    python(|py| {
        let (object, window, ack) = unsafe { (object(py, state), &mut *window, &*ack) };
        let changed = Bound::new(py, WindowOf::from(&*window))?;
        object.call_method1(intern!(py, "on_ack"), (&changed, AckOf::from(ack)))?;
        let changed = changed.borrow();
        (window.cwnd, window.ssthresh) = (changed.cwnd, changed.ssthresh);
        Ok(OK)
    })
}
unsafe extern "C" fn on_loss(_: Own, state: StateBytes, window: *const Window, loss: *const Loss, ssthresh: *mut u64) -> i32 {
    python(|py| {
        let (object, window, loss) = unsafe { (object(py, state), &*window, &*loss) };
        let loss = LossOf { flight: loss.flight, timeout: loss.cause == TIMEOUT, after_mark: loss.after_mark };
        let found = object.call_method1(intern!(py, "on_loss"), (WindowOf::from(window), loss))?;
        unsafe { *ssthresh = found.extract()? };
        Ok(OK)
    })
}
unsafe extern "C" fn on_mark(_: Own, state: StateBytes, window: *const Window, ack: *const Ack, cwnd: *mut u64) -> i32 {
    python(|py| {
        let (object, window, ack) = unsafe { (object(py, state), &*window, &*ack) };
        match object.call_method1(intern!(py, "on_mark"), (WindowOf::from(window), AckOf::from(ack)))?.extract::<Option<u64>>()? {
            Some(cut) => {
                unsafe { *cwnd = cut };
                Ok(OK)
            }
            None => Ok(NO_EFFECT),
        }
    })
}
unsafe extern "C" fn before_loss(_: Own, state: StateBytes, cause: u32, now_ps: u64) -> i32 {
    python(|py| unsafe { object(py, state) }.call_method1(intern!(py, "before_loss"), (cause == TIMEOUT, now_ps)).map(|_| OK))
}
unsafe extern "C" fn on_sent(_: Own, state: StateBytes, now_ps: u64, sent: u64) -> i32 {
    python(|py| unsafe { object(py, state) }.call_method1(intern!(py, "on_sent"), (now_ps, sent)).map(|_| OK))
}
unsafe extern "C" fn most(_: Own, state: *const c_void, most: *mut u64) -> i32 {
    python(|py| {
        let found = unsafe { object(py, state) }.call_method0(intern!(py, "most"))?;
        unsafe { *most = found.extract()? };
        Ok(OK)
    })
}
unsafe extern "C" fn not_before(_: Own, state: *const c_void, srtt_ps: u64, at_ps: *mut u64) -> i32 {
    python(|py| {
        let found = unsafe { object(py, state) }.call_method1(intern!(py, "not_before"), (srtt_ps,))?;
        unsafe { *at_ps = found.extract()? };
        Ok(OK)
    })
}
unsafe extern "C" fn inherit(_: Own, state: StateBytes, before: *const c_void) -> i32 {
    python(|py| unsafe { object(py, state).call_method1(intern!(py, "inherit"), (object(py, before),)) }.map(|_| OK))
}
unsafe extern "C" fn close(state: StateBytes) {
    python(|_| {
        unsafe { state.cast::<Py<PyAny>>().drop_in_place() };
        Ok(OK)
    });
}
unsafe extern "C" fn destroy(own: *mut c_void) {
    python(|_| {
        unsafe { own.cast::<Controller>().drop_in_place() };
        Ok(OK)
    });
}
