//! The `runner` binary.

#![warn(missing_docs)]

#[global_allocator]
static ALLOCATOR: burn_runner::train::Allocator = burn_runner::train::Allocator;

fn main() -> std::process::ExitCode {
    burn_runner::cli::main()
}
