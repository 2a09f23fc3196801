//! The program `own-layer`: everything that `runner` does, with one more layer type.

mod low_rank;

use burn_runner::Runner;
use low_rank::LowRank;

// Counts memory for `memory.limit`, and keeps large blocks, as `runner` itself does.
#[global_allocator]
static ALLOCATOR: burn_runner::train::Allocator = burn_runner::train::Allocator;

fn main() -> std::process::ExitCode {
    Runner::new().layer::<LowRank>().main()
}
