//! The weights of a run: which there are, and a network with them.

use std::path::Path;

use burn::module::Module;
use burn::tensor::{Device, TensorData};

use super::{Options, Refusal};
use crate::train::content;
use crate::train::device::quietly;
use runner_core::diagnostic::Diagnostic;
use runner_core::plan::RunPlan;
use runner_core::record::{RunFolder, RunRecord};
use runner_core::show::plain_io_error;
use runner_network::held;
use runner_network::network::Network;
use runner_network::values;

/// Which weights of a run are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// Those of the best epoch by the objective.
    Best,
    /// Those of the last step.
    Final,
    /// Their moving average at the last step.
    Ema,
    /// Their mean at regular intervals (stochastic weight averaging).
    Swa,
    /// Those before the first step.
    Initial,
}

impl Weights {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Best, Self::Final, Self::Ema, Self::Swa, Self::Initial];

    /// The name of their file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Best => "best",
            Self::Final => "final",
            Self::Ema => "ema",
            Self::Swa => "swa",
            Self::Initial => "initial",
        }
    }
}

/// The name of the requested weights, if they exist.
pub(super) fn weights_of(
    folder: &RunFolder,
    plan: &RunPlan,
    record: &RunRecord,
    options: &Options,
) -> Result<&'static str, Refusal> {
    let wanted = options.weights.map(Weights::name);
    let names = match wanted {
        Some(name) => vec![name],
        None => vec!["best", "final"],
    };
    // A recorded file that is gone is not replaced by another one.
    let is_recorded = |name: &str| record.files.contains_key(&format!("model/{name}.bpk"));
    let mut there = names
        .into_iter()
        .filter(|name| folder.model(name).is_file() || is_recorded(name));
    if let Some(name) = there.next() {
        return Ok(name);
    }
    let message = match wanted {
        Some(name) => format!("run `{}` has no weights `{name}`", plan.id),
        None => format!(
            "run `{}` has no weights: its training has not ended",
            plan.id
        ),
    };
    let others: Vec<_> = Weights::ALL
        .map(Weights::name)
        .into_iter()
        .filter(|name| folder.model(name).is_file())
        .map(|name| format!("`{name}`"))
        .collect();
    let diagnostic = Diagnostic::error("results", message);
    Err(Box::new(if others.is_empty() || wanted.is_none() {
        diagnostic.help("complete it with `runner run` on its experiment file, or use a completed run; `runner list` shows them")
    } else {
        diagnostic.help(format!("it has {}", others.join(", ")))
    }))
}

/// The matrices of adapters.
pub(super) fn adapters_of(network: &Network) -> Vec<(String, TensorData)> {
    let mut all = values::of_graph(network.graph());
    all.retain(|(path, _)| path.contains(".lora."));
    all
}

/// A network with the weights of a file, on its device.
pub(super) fn load(
    network: Network,
    plan: &RunPlan,
    path: &Path,
    is_partial: bool,
    device: &Device,
) -> Result<Network, Refusal> {
    let damaged = |reason: String| -> Refusal {
        let message = format!("the weights `{}` cannot be used: {reason}", path.display());
        Box::new(
            Diagnostic::error("results", message)
                .help("copy the folder of the run again, or repeat the run"),
        )
    };
    // A damaged file can make Burn's reader panic.
    let loaded = quietly(|| {
        // Burn would read a file when its numbers are first used, which may be after it is gone.
        let bytes = content(path).map_err(|e| plain_io_error(&e))?;
        let record =
            held::record(bytes, (&plan.network, plan.kernels), device)?.allow_partial(is_partial);
        network.try_load_record(record).map_err(|e| e.to_string())
    });
    loaded
        .map_err(String::from)
        .and_then(|loaded| loaded)
        .map_err(damaged)
}
