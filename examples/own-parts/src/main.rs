//! The program `own-parts`: everything that `runner` does, with five more parts.

mod low_rank;
mod margin;
mod poly;
mod polynomial;
mod signum;

// Burn's derive of `RecordState` expects these at the root of the crate.
use burn::optim::{RecordState, StateSink, StateSource};
use burn_runner::Runner;
use low_rank::LowRank;
use margin::Margin;
use poly::Poly;
use polynomial::Polynomial;
use signum::Signum;

// Counts memory for `memory.limit`, and keeps large blocks, as `runner` itself does.
#[global_allocator]
static ALLOCATOR: burn_runner::train::Allocator = burn_runner::train::Allocator;

fn main() -> std::process::ExitCode {
    let runner = Runner::new().layer::<LowRank>().loss::<Poly>();
    let runner = runner.optimizer::<Signum>();
    let runner = runner.schedule::<Polynomial>();
    runner.metric::<Margin>().main()
}
