//! The program `own-parts`: everything that `runner` does, with seven more parts, and a function at each event.

mod low_rank;
mod margin;
mod poly;
mod polynomial;
mod signum;
mod svmlight;
mod weight_noise;

// Burn's derive of `RecordState` expects these at the root of the crate.
use burn::optim::{RecordState, StateSink, StateSource};
use burn_runner::Runner;
use burn_runner::event::Event;
use low_rank::LowRank;
use margin::Margin;
use poly::Poly;
use polynomial::Polynomial;
use signum::Signum;
use svmlight::Svmlight;
use weight_noise::WeightNoise;

// Counts memory for `memory.limit`, and keeps large blocks, as `runner` itself does.
#[global_allocator]
static ALLOCATOR: burn_runner::train::Allocator = burn_runner::train::Allocator;

fn main() -> std::process::ExitCode {
    let runner = Runner::new().layer::<LowRank>().loss::<Poly>();
    let runner = runner.optimizer::<Signum>();
    let runner = runner.schedule::<Polynomial>().strategy::<WeightNoise>();
    let runner = runner.metric::<Margin>().data::<Svmlight>();
    let runner = runner.on_event(|run, event| {
        if let Event::RunFinished { wall_secs, .. } = event {
            eprintln!("own-parts: {} ended after {wall_secs:.1} s", run.id);
        }
    });
    runner.main()
}
