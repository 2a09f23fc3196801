//! Adapters in the layout of the library `peft`: a folder with `adapter_config.json` and `adapter_model.safetensors`.
//!
//! Its matrices are PyTorch's, \[rank, inputs\] and \[outputs, rank\], named after the module of the adapted weight. If the
//! weights of a run come from a file with names of its own, such as that of a model hub, modules are named as there, so
//! that `peft` finds them in the network of that file.

mod read;
mod settings;
mod write;

use runner_core::check::network::adapters::Adapter;
use runner_core::check::network::{Layer, Network};
use runner_core::plan::init::InitPlan;
use runner_core::spec::init::InitLayout;

use crate::slots::mappings;
use crate::state::StateDict;
pub use read::{load, resolve};
pub use write::{NotWritten, config, tensors};

/// The file of settings.
pub const CONFIG: &str = "adapter_config.json";
/// The file of matrices.
pub const MODEL: &str = "adapter_model.safetensors";

/// The start of all names in the file: the wrapped model.
const PREFIX: &str = "base_model.model.";

/// An adapter of a network.
struct Place<'a> {
    layer: &'a Layer,
    adapter: &'a Adapter,
    /// The names of the module whose weight is adapted: the one that is written, and others that are read.
    modules: Vec<String>,
}

impl Place<'_> {
    /// The path of the first or the second matrix in the network, without its last letter.
    fn path(&self, matrix: char) -> String {
        format!("{}.{}.lora.{matrix}", self.layer.name, self.adapter.path)
    }

    /// The shape of the first or the second matrix in the file.
    fn shape(&self, matrix: char) -> Vec<usize> {
        let Adapter {
            inputs,
            outputs,
            rank,
            ..
        } = *self.adapter;
        if matrix == 'a' {
            vec![rank, inputs]
        } else {
            vec![outputs, rank]
        }
    }
}

/// The name of a matrix in the file.
fn name_of(module: &str, matrix: char) -> String {
    format!(
        "{PREFIX}{module}.lora_{}.weight",
        matrix.to_ascii_uppercase()
    )
}

/// The names that tensors of a network have in its file of initial weights, if they are PyTorch's, by those that they
/// have here.
fn file_name<'a>(init: Option<&'a InitPlan>, slot: &str) -> Option<&'a str> {
    let init = init.filter(|init| init.layout == InitLayout::Pytorch)?;
    let taken = init.tensors.iter().find(|taken| taken.name == slot)?;
    Some(&taken.from)
}

/// The adapters of a network, in order.
fn places<'a>(network: &'a Network, init: Option<&InitPlan>) -> Vec<Place<'a>> {
    let modules = StateDict::of(network).modules;
    let layers = network.layers.iter().zip(modules);
    let all = layers.flat_map(|(layer, module)| {
        let mappings = mappings(layer);
        let adapters = layer.adapters.iter();
        adapters
            .map(|adapter| {
                let mut mappings = mappings.iter();
                let mapping = mappings
                    .find(|mapping| mapping.parts.len() == 1 && mapping.parts[0].0 == adapter.path);
                // Matrices that PyTorch stacks have no module of their own there.
                let torch = mapping.map_or(adapter.path.as_str(), |mapping| &mapping.torch);
                let own = format!("{}.{torch}", layer.name);
                let named = file_name(init, &own).map(str::to_owned);
                let exported = format!("{module}.{torch}");
                let burn = format!("{}.{}", layer.name, adapter.path);
                let mut names: Vec<String> = named.into_iter().collect();
                for name in [exported, own, burn] {
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
                let module = |name: String| match name.strip_suffix(".weight") {
                    Some(module) => module.to_owned(),
                    None => name,
                };
                Place {
                    layer,
                    adapter,
                    modules: names.into_iter().map(module).collect(),
                }
            })
            .collect::<Vec<_>>()
    });
    all.collect()
}
