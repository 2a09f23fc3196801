//! The program `cubecl-layer`: everything that `runner` does, with a layer that is computed by kernels written in CubeCL.

mod average;
#[cfg(feature = "wgpu")]
mod kernels;
mod layer;
#[cfg(feature = "wgpu")]
mod operation;
#[cfg(test)]
mod tests;

use burn_runner::Runner;
use layer::MovingAverage;

// Counts memory for `memory.limit`, and keeps large blocks, as `runner` itself does.
#[global_allocator]
static ALLOCATOR: burn_runner::train::Allocator = burn_runner::train::Allocator;

fn main() -> std::process::ExitCode {
    Runner::new().layer::<MovingAverage>().main()
}
