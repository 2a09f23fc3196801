//! The command line of the program, for `python/launcher`.

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::panic;

/// Exits as a Rust program that panicked.
const PANICKED: u8 = 101;

/// The version of the program, which the launcher compares with its own.
#[unsafe(no_mangle)]
pub extern "C" fn runner_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// What `runner` does with the arguments of this process; returns its exit code. Records name the build of the module.
///
/// # Safety
/// `module` is the path of this module, and ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn runner_main(module: *const c_char) -> u8 {
    // SAFETY: the caller's promise.
    let module = unsafe { CStr::from_ptr(module) };
    let module = OsStr::from_bytes(module.to_bytes());
    burn_runner::record::use_program(module.as_ref());
    panic::catch_unwind(burn_runner::cli::code).unwrap_or(PANICKED)
}
