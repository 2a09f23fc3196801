//! The `runner` binary.

#![warn(missing_docs)]

#[global_allocator]
static ALLOCATOR: runner::train::Allocator = runner::train::Allocator;

fn main() -> std::process::ExitCode {
    runner::cli::main()
}
