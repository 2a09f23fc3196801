//! The native half of the Python module `burn_runner`: a table of functions on numbers, texts, JSON and blocks of
//! memory. The Python half in `burn_runner/` has the classes, their documentation, and all conversions of Python's
//! types.
//!
//! A function takes a tuple of plain arguments and returns plain objects. Everything that takes time runs without the
//! interpreter's lock, and a panic becomes a Python exception. PyO3's macros are not used: see `Cargo.toml`.

mod border;
#[cfg(target_os = "linux")]
mod command;
mod experiments;
mod models;
mod networks;
mod results;
mod tables;

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicI64, Ordering};

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyModule, PyTuple};

use border::Native;

/// Burn's CPU backend requests the same large blocks again and again.
#[global_allocator]
static ALLOCATOR: burn_runner::train::Allocator = burn_runner::train::Allocator;

/// Every function, by its name in `burn_runner/_native.pyi`, which has the types.
const FUNCTIONS: [(&CStr, Native); 30] = [
    (c"version", experiments::version),
    (c"use_program", experiments::use_program),
    (c"toml", experiments::toml),
    (c"toml_value", experiments::toml_value),
    (c"check", experiments::check),
    (c"plan", experiments::plan),
    (c"cancel", experiments::cancel),
    (c"cancel_now", experiments::cancel_now),
    (c"run", experiments::run),
    (c"runs", results::runs),
    (c"experiments", results::experiments),
    (c"report", results::report),
    (c"compare", results::compare),
    (c"run_plan", results::run_plan),
    (c"losses", results::losses),
    (c"table", results::table),
    (c"run_table", results::run_table),
    (c"table_of_rows", tables::of_rows),
    (c"table_columns", tables::columns),
    (c"table_arrow", tables::arrow),
    (c"open_model", models::open),
    (c"state_dict", models::state_dict),
    (c"write_pytorch", models::write_pytorch),
    (c"weights_digest", models::weights_digest),
    (c"predict_array", models::predict_array),
    (c"predict_rows", models::predict_rows),
    (c"predict_path", models::predict_path),
    (c"forward", networks::forward),
    (c"gradients", networks::gradients),
    (c"time_predictions", models::time_predictions),
];

/// The interpreter that has imported the module; -1 for none.
static INTERPRETER: AtomicI64 = AtomicI64::new(-1);

/// What the interpreter reads when it imports the module.
#[repr(transparent)]
struct Shared<T>(UnsafeCell<T>);

// SAFETY: only the interpreter writes to it, under its lock.
unsafe impl<T> Sync for Shared<T> {}

/// A function that fills a new module: it is called for every interpreter, unlike `PyInit__native`.
static SLOTS: Shared<[ffi::PyModuleDef_Slot; 2]> = Shared(UnsafeCell::new([
    ffi::PyModuleDef_Slot {
        slot: ffi::Py_mod_exec,
        value: fill as *mut c_void,
    },
    ffi::PyModuleDef_Slot {
        slot: 0,
        value: std::ptr::null_mut(),
    },
]));

static DEFINITION: Shared<ffi::PyModuleDef> = Shared(UnsafeCell::new(ffi::PyModuleDef {
    m_base: ffi::PyModuleDef_HEAD_INIT,
    m_name: c"_native".as_ptr(),
    m_doc: std::ptr::null(),
    m_size: 0,
    m_methods: std::ptr::null_mut(),
    m_slots: SLOTS.0.get().cast(),
    m_traverse: None,
    m_clear: None,
    m_free: None,
}));

/// Defines the module; called by the interpreter on import.
///
/// # Safety
/// The caller holds the interpreter's lock.
#[allow(non_snake_case, reason = "the interpreter looks for this name")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PyInit__native() -> *mut ffi::PyObject {
    // SAFETY: the definition is static.
    unsafe { ffi::PyModuleDef_Init(DEFINITION.0.get()) }
}

extern "C" fn fill(module: *mut ffi::PyObject) -> c_int {
    // SAFETY: the interpreter calls this with its lock held, and a module.
    let (py, module) = unsafe {
        let py = Python::assume_attached();
        (py, Bound::from_borrowed_ptr(py, module))
    };
    match add_functions(py, &module) {
        Ok(()) => 0,
        Err(error) => {
            error.restore(py);
            -1
        }
    }
}

fn add_functions(py: Python<'_>, module: &Bound<'_, PyAny>) -> PyResult<()> {
    // SAFETY: the lock is held. Objects that PyO3 keeps belong to the interpreter that created them.
    let this = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    let before = INTERPRETER.compare_exchange(-1, this, Ordering::SeqCst, Ordering::SeqCst);
    if before.is_err_and(|first| first != this) {
        return Err(PyImportError::new_err(
            "burn_runner can be imported by one interpreter of a process; use another process",
        ));
    }
    border::catch_panics();
    let module = module.cast::<PyModule>()?;
    for (name, function) in FUNCTIONS {
        let call = move |args: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
            function(args.py(), args)
        };
        let function = PyCFunction::new_closure(py, Some(name), None, call)?;
        module.add(name.to_str().unwrap_or_default(), function)?;
    }
    Ok(())
}
