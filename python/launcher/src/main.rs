//! The command `runner` of the Python package, on Linux.
//!
//! The module of the package contains the whole program: a second copy of it would double the size of the package. The
//! launcher loads the module without an interpreter, with stand-ins for what it uses of Python, and calls its
//! `runner_main`. On other systems, the package has the program itself.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod symbols;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {}
