//! All integration tests, in one binary.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests print and read what they wrote"
)]
#![cfg_attr(
    not(unix),
    allow(
        dead_code,
        unused_imports,
        unused_variables,
        reason = "tests that kill processes or make links are for Unix"
    )
)]

mod suite;
