//! All integration tests, in one binary.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests print and read what they wrote"
)]

mod suite;
