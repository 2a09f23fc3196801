//! The `runner` binary.

#![warn(missing_docs)]

/// Burn's CPU backend allocates large buffers at every step; this allocator keeps them at hand, which
/// makes an epoch of a small network more than twice as fast.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    runner::cli::main()
}
