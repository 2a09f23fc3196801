//! What crosses the border to Python: arguments, blocks of memory, errors and panics.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::CStr;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use burn_runner::Error;
use burn_runner::diagnostic::{Diagnostic, Diagnostics, Sources};
use burn_runner::model::Refusal;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyCapsule, PyString, PyTuple};
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde_json::{Value as Json, json};

/// A function that Python calls.
pub type Native = fn(Python<'_>, &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>>;

/// Why a function has no outcome.
pub enum Failure {
    /// The request is wrong, or could not be carried out.
    Error(Error),
    /// A panic, with its place.
    Panic(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Error(Error::Refused(refusal))
    }
}

/// A wrong argument.
pub fn wrong(message: impl Into<String>, help: &str) -> Failure {
    Failure::Error(Error::refused(
        Diagnostic::error("usage", message).help(help),
    ))
}

thread_local! {
    /// Where this thread panicked last.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Where any thread panicked last: a panic in rayon's pool is passed on to the thread that waits for it.
static LAST: Mutex<String> = Mutex::new(String::new());

/// Makes panics write nothing: they become exceptions.
pub fn catch_panics() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map_or(String::new(), ToString::to_string);
        PLACE.with_borrow_mut(|at| at.clone_from(&place));
        *LAST.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }));
}

fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    let place = PLACE.with_borrow_mut(std::mem::take);
    let place = if place.is_empty() {
        LAST.lock().unwrap_or_else(PoisonError::into_inner).clone()
    } else {
        place
    };
    format!("{} (at {place})", text.unwrap_or_else(|| "panic".into()))
}

/// Computes something; a panic is a failure.
pub fn caught<T>(compute: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    std::panic::catch_unwind(AssertUnwindSafe(compute))
        .unwrap_or_else(|payload| Err(Failure::Panic(text_of(&*payload))))
}

/// Threads for computations, and the process that they belong to: a fork has none of its parent's.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// Computes something without the interpreter's lock, in a pool of this process: rayon's own would hang in a fork of a
/// process that has used it.
pub fn compute<T: Send>(
    py: Python<'_>,
    function: impl FnOnce() -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let computed = py.detach(|| {
        let pool = {
            let mut held = POOL.lock().unwrap_or_else(PoisonError::into_inner);
            let process = std::process::id();
            match &*held {
                Some((owner, pool)) if *owner == process => pool.clone(),
                _ => {
                    let pool = Arc::new(pool()?);
                    // Threads of a parent process cannot be told to end.
                    std::mem::forget(held.replace((process, pool.clone())));
                    pool
                }
            }
        };
        caught(|| pool.install(function))
    });
    computed.map_err(|failure| exception(py, failure))
}

/// Threads for rayon, as many as there are processors.
pub fn pool() -> Result<ThreadPool, Failure> {
    let pool = ThreadPoolBuilder::new().thread_name(|at| format!("burn_runner-{at}"));
    pool.build()
        .map_err(|e| wrong(format!("cannot start threads: {e}"), "start fewer"))
}

/// The exception for a failure: `burn_runner._errors.make` knows the classes.
pub fn exception(py: Python<'_>, failure: Failure) -> PyErr {
    let (kind, text, found) = match &failure {
        Failure::Panic(text) => ("panic", text.clone(), json!([])),
        Failure::Error(error) => {
            let text = error.render(false);
            match error {
                Error::Experiment {
                    sources,
                    diagnostics,
                } => ("experiment", text, diagnostics.to_json(sources)),
                Error::Refused(diagnostic) => ("refused", text, alone(diagnostic)),
                Error::Failed(diagnostic) => ("failed", text, alone(diagnostic)),
                Error::Interrupted(_) => ("interrupted", text, json!([])),
            }
        }
    };
    let made = py
        .import("burn_runner._errors")
        .and_then(|module| module.getattr("make"))
        .and_then(|make| make.call1((kind, text.trim_end(), found.to_string())));
    match made {
        Ok(made) => PyErr::from_value(made),
        Err(error) => error,
    }
}

fn alone(diagnostic: &Diagnostic) -> Json {
    Diagnostics(vec![diagnostic.clone()]).to_json(&Sources::default())
}

/// A text for Python.
pub fn text(py: Python<'_>, text: &str) -> Py<PyAny> {
    PyString::new(py, text).into_any().unbind()
}

/// A block of memory for Python, which NumPy reads in place.
pub fn block(py: Python<'_>, bytes: &[u8]) -> Py<PyAny> {
    PyByteArray::new(py, bytes).into_any().unbind()
}

/// Numbers as such a block, little-endian as on every supported machine.
pub fn numbers<T: Number>(py: Python<'_>, numbers: &[T]) -> Py<PyAny> {
    let size = std::mem::size_of_val(numbers);
    // SAFETY: plain numbers without padding, whose bytes may all be read.
    let bytes = unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), size) };
    block(py, bytes)
}

/// Numbers without padding.
pub trait Number: Copy {}
impl Number for f32 {}
impl Number for f64 {}
impl Number for i64 {}
impl Number for u32 {}

/// An array that Python holds in C order while a function runs.
#[derive(Clone)]
pub struct Array {
    address: usize,
    len: usize,
    /// NumPy's name of its type, such as `float32`.
    pub dtype: String,
    /// Its sizes.
    pub shape: Vec<usize>,
}

impl Array {
    /// From `(address, number of bytes, dtype, shape)`.
    pub fn of(argument: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (address, len, dtype, shape) = argument.extract()?;
        Ok(Self {
            address,
            len,
            dtype,
            shape,
        })
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: `_arrays.py` passes the memory of an array in C order that it holds until the function returns.
        unsafe { std::slice::from_raw_parts(self.address as *const u8, self.len) }
    }
}

/// A value that Python keeps until nothing refers to it.
pub fn keep<T: Send + Sync + 'static>(
    py: Python<'_>,
    value: T,
    name: &'static CStr,
) -> PyResult<Py<PyAny>> {
    Ok(PyCapsule::new_with_value(py, value, name)?
        .into_any()
        .unbind())
}

/// A kept value.
pub fn kept<T: Clone + 'static>(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<T> {
    let capsule = capsule.cast::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(name))?;
    // SAFETY: only `keep` creates capsules of this name, with a value of this type.
    Ok(unsafe { pointer.cast::<T>().as_ref() }.clone())
}

/// An optional path.
pub fn path(argument: Option<String>) -> Option<PathBuf> {
    argument.map(PathBuf::from)
}
