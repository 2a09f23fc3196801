//! Finds the module beside the command, and calls it.

use std::ffi::{CStr, CString, OsStr, c_char, c_void};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The module within the package.
const MODULE: &str = "burn_runner/_native.abi3.so";
/// The exit code of a wrong command.
const WRONG: u8 = 2;

/// Runs the program with the arguments of this process.
pub fn main() -> ExitCode {
    std::hint::black_box(super::symbols::STAND_INS);
    let mut notes = String::new();
    let beside = match std::env::current_exe() {
        Ok(path) => modules(&path),
        Err(e) => {
            let _ = write!(
                notes,
                "\n  = note: where this command is cannot be read: {e}"
            );
            Vec::new()
        }
    };
    for path in &beside {
        match run(path) {
            Ok(code) => return ExitCode::from(code),
            Err(reason) => {
                let _ = write!(notes, "\n  = note: {}: {reason}", path.display());
            }
        }
    }
    let _ = writeln!(
        io::stderr(),
        "error: the package `burn_runner` of this command is not installed beside it{notes}\n  \
         = help: install both with `pip install --force-reinstall burn-runner`"
    );
    ExitCode::from(WRONG)
}

/// The modules that may belong to a command at a path.
#[expect(
    clippy::disallowed_methods,
    reason = "`pip` writes the file of an editable installation"
)]
fn modules(command: &Path) -> Vec<PathBuf> {
    let Some(bin) = command.parent() else {
        return Vec::new();
    };
    // `pip install --target DIR` makes `DIR/bin` beside the packages.
    let mut places = vec![bin.join("..")];
    for lib in ["lib", "lib64"].map(|lib| bin.join("..").join(lib)) {
        for version in pythons(&lib) {
            places.push(version.join("site-packages"));
            places.push(version.join("dist-packages"));
        }
    }
    // An editable installation has a file with the path of the package's folder.
    let editable: Vec<PathBuf> = places
        .iter()
        .filter_map(|place| fs::read_to_string(place.join("burn_runner.pth")).ok())
        .filter_map(|text| Some(PathBuf::from(text.lines().next()?.trim())))
        .collect();
    let mut found: Vec<PathBuf> = Vec::new();
    for place in places.into_iter().chain(editable) {
        // `lib64` is often another name of `lib`.
        if let Ok(module) = fs::canonicalize(place.join(MODULE))
            && !found.contains(&module)
        {
            found.push(module);
        }
    }
    found
}

/// The folders of Python's versions, in their order.
fn pythons(lib: &Path) -> Vec<PathBuf> {
    let is_wanted = |name: &str| name.starts_with("python3");
    let mut found: Vec<PathBuf> = fs::read_dir(lib)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_str().is_some_and(is_wanted))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

/// Calls a module's program; the error is why it is not the one of this command.
fn run(module: &Path) -> Result<u8, String> {
    let path = CString::new(module.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
    // SAFETY: the path ends with a zero. The module's initializers are those of the program.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
    if handle.is_null() {
        return Err(last_error());
    }
    let version = symbol(handle, c"runner_version")?;
    // SAFETY: the module defines it with this type.
    let version: extern "C" fn() -> *const c_char = unsafe { std::mem::transmute(version) };
    // SAFETY: it returns a constant text.
    let version = unsafe { CStr::from_ptr(version()) };
    if version.to_bytes() != env!("CARGO_PKG_VERSION").as_bytes() {
        let version = OsStr::from_bytes(version.to_bytes()).display();
        return Err(format!("it is of version {version}"));
    }
    let main = symbol(handle, c"runner_main")?;
    // SAFETY: the module defines it with this type.
    let main: extern "C" fn(*const c_char) -> u8 = unsafe { std::mem::transmute(main) };
    Ok(main(path.as_ptr()))
}

fn symbol(handle: *mut c_void, name: &CStr) -> Result<*mut c_void, String> {
    // SAFETY: the handle is open, and the name ends with a zero.
    let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
    if found.is_null() {
        Err(last_error())
    } else {
        Ok(found)
    }
}

fn last_error() -> String {
    // SAFETY: the text is valid until the next call in this thread.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "it cannot be loaded".to_owned();
    }
    // SAFETY: as above.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}
