//! The attributes of the class of a plug-in in Python: those that flowloom uses, and names that are close to them.

use crate::errors::InputError;
use base::params::misspelled;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// The methods of a class that flowloom calls.
const CALLED: [&str; 9] = ["open", "on_ack", "on_loss", "on_mark", "before_loss", "on_sent", "most", "not_before", "inherit"];
/// The attributes of a class that flowloom reads.
const READ: [&str; 5] = ["name", "source", "ecn", "knows", "parameters"];
/// The attributes that flowloom sets on every object.
const SET: [&str; 2] = ["host", "flow"];

/// Whether flowloom uses an attribute of this name.
pub fn is_used(name: &str) -> bool {
    CALLED.iter().chain(&READ).chain(&SET).any(|known| *known == name)
}

/// Fails if a public attribute of a class is probably a misspelled name that flowloom uses. Other names are helpers of the
/// author, and names that begin with `_` are never checked.
pub fn check_names(class: &Bound<'_, PyType>) -> PyResult<()> {
    for name in class.dir()? {
        let name: String = name.extract()?;
        let known = CALLED.into_iter().chain(READ).chain(SET);
        let wrong = |why: String| Err(InputError::new_err(why));
        if name.starts_with('_') || READ.contains(&name.as_str()) {
            continue;
        }
        if SET.contains(&name.as_str()) {
            return wrong(format!("its class has an attribute `{name}`, which flowloom sets on every object"));
        }
        if CALLED.contains(&name.as_str()) {
            if !class.getattr(&name)?.is_callable() {
                return wrong(format!("its `{name}` is not a method"));
            }
        } else if let Some(near) = misspelled(&name, known) {
            return wrong(format!(
                "its class has `{name}`, which flowloom does not use; did you mean `{near}`? A name of your own that is as similar must begin with `_`"
            ));
        } else if name.starts_with("on_") {
            let methods = CALLED.map(|method| format!("`{method}`")).join(", ");
            return wrong(format!(
                "its class has `{name}`, which flowloom does not call; it calls {methods}. A method of your own must begin with `_` instead of `on_`"
            ));
        }
    }
    Ok(())
}

/// Returns an attribute of a class, if the class has it.
pub fn attribute<'py>(class: &Bound<'py, PyType>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    if class.hasattr(name)? { class.getattr(name).map(Some) } else { Ok(None) }
}

/// Returns an attribute of a class that is a text, if the class has it.
pub fn text_of(class: &Bound<'_, PyType>, name: &str) -> PyResult<Option<String>> {
    let Some(value) = attribute(class, name)?.filter(|value| name != "__doc__" || !value.is_none()) else { return Ok(None) };
    let text = value.extract::<String>();
    text.map(Some).map_err(|_| InputError::new_err(format!("its `{name}` is {value:?}: a text is allowed")))
}
