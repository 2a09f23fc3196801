//! An adapter of a run for `peft`.

use std::fmt;
use std::path::Path;

use serde_json::{Map, Value as Json, json};

use super::{PREFIX, Place, file_name, name_of, places};
use crate::state::{Entry, StateDict, StateError};
use crate::tensors::{NamedTensor, TensorError, Tensors};
use runner_core::check::network::Network;
use runner_core::plan::init::InitPlan;
use runner_core::spec::hub;

/// Why an adapter cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotWritten {
    /// The network has none.
    NoAdapter,
    /// A layer is trained in part, which the layout cannot say.
    PartOfModule {
        /// The layer.
        layer: String,
        /// A trained parameter of it.
        parameter: String,
    },
    /// A tensor is missing, or there twice.
    Tensors(StateError),
}

impl From<StateError> for NotWritten {
    fn from(error: StateError) -> Self {
        Self::Tensors(error)
    }
}

impl From<TensorError> for NotWritten {
    fn from(error: TensorError) -> Self {
        Self::Tensors(error.into())
    }
}

impl fmt::Display for NotWritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAdapter => f.write_str("the run has no adapter"),
            Self::PartOfModule { layer, parameter } => write!(
                f,
                "`{parameter}` is trained, but not all of `{layer}`: peft saves whole modules"
            ),
            Self::Tensors(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NotWritten {}

/// The settings of the adapters of a network, as `peft` reads them.
///
/// # Errors
/// If the network has none, or a layer is trained in part.
pub fn config(network: &Network, init: Option<&InitPlan>) -> Result<Json, NotWritten> {
    let places = places(network, init);
    let Some(first) = places.first() else {
        return Err(NotWritten::NoAdapter);
    };
    let whole = whole(network, init)?;
    let (rank, alpha) = (first.adapter.rank, alpha(first));
    let (mut ranks, mut alphas) = (Map::new(), Map::new());
    for place in &places {
        let module = place.modules[0].clone();
        if place.adapter.rank != rank {
            ranks.insert(module.clone(), json!(place.adapter.rank));
        }
        if self::alpha(place) != alpha {
            alphas.insert(module, number(self::alpha(place)));
        }
    }
    let targets: Vec<&String> = places.iter().map(|place| &place.modules[0]).collect();
    let modules: Vec<&String> = whole.iter().map(|of| &of.module).collect();
    Ok(json!({
        "peft_type": "LORA",
        "task_type": null,
        "base_model_name_or_path": init.map(|init| base(&init.path)),
        "r": rank,
        "lora_alpha": number(alpha),
        "lora_dropout": first.adapter.dropout,
        "rank_pattern": ranks,
        "alpha_pattern": alphas,
        "target_modules": targets,
        "modules_to_save": if modules.is_empty() { Json::Null } else { json!(modules) },
        "bias": "none",
        "use_rslora": false,
        "use_dora": false,
        "fan_in_fan_out": false,
        "init_lora_weights": true,
        "inference_mode": true,
    }))
}

/// What the library takes as the place of the base: a folder of a model hub rather than a file in it.
fn base(weights: &Path) -> String {
    let name = weights.file_name().unwrap_or_default().to_string_lossy();
    let folder = weights.parent().filter(|_| hub::WEIGHTS.contains(&&*name));
    folder.unwrap_or(weights).display().to_string()
}

/// The numerator of the scale, whatever it was made from.
fn alpha(place: &Place<'_>) -> f64 {
    place.adapter.scale * place.adapter.rank as f64
}

/// A whole number without a point, as `peft` declares it.
fn number(value: f64) -> Json {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        json!(value as i64)
    } else {
        json!(value)
    }
}

/// A module that is saved as a whole beside the adapters.
struct Whole {
    /// Its path, as far as the names of its tensors say it.
    module: String,
    /// Its tensors, with their names in the file.
    tensors: Vec<(Entry, String)>,
}

/// The modules beside the adapters: those that are trained, and those that came with the adapter which the run started
/// from. Without the latter, it would belong to another base.
fn whole(network: &Network, init: Option<&InitPlan>) -> Result<Vec<Whole>, NotWritten> {
    let state = StateDict::of(network);
    let given = init.and_then(|init| init.adapter.as_ref());
    let mut whole = Vec::new();
    for (layer, module) in network.layers.iter().zip(&state.modules) {
        let base = layer.base_parameters();
        let own = format!("{}.", layer.name);
        let is_given = given.is_some_and(|given| {
            let mut names = given.tensors.iter().map(|taken| &taken.name);
            names.any(|name| name.starts_with(&own))
        });
        let is_trained = |(path, _): &&(String, u64)| !layer.frozen.contains(path);
        match base.iter().find(is_trained) {
            None if !is_given => continue,
            Some((path, _)) if !base.iter().all(|parameter| is_trained(&parameter)) => {
                return Err(NotWritten::PartOfModule {
                    layer: layer.name.clone(),
                    parameter: format!("{}.{path}", layer.name),
                });
            }
            _ => {}
        }
        let entries = state.entries.iter();
        let entries = entries.filter(|entry| entry.burn.iter().all(|name| name.starts_with(&own)));
        let tensors: Vec<_> = entries
            .map(|entry| {
                let inner = entry.torch.strip_prefix(&format!("{module}."));
                let slot = format!("{own}{}", inner.unwrap_or_default());
                let name = file_name(init, &slot).unwrap_or(&entry.torch);
                (entry.clone(), name.to_owned())
            })
            .collect();
        let first = tensors.first().and_then(|(_, name)| name.rsplit_once('.'));
        let module = first.map_or(module.as_str(), |(module, _)| module);
        whole.push(Whole {
            module: module.to_owned(),
            tensors,
        });
    }
    Ok(whole)
}

/// The tensors of a network as `peft` names them: the matrices of `adapters`, by their paths here, and those of layers
/// that are trained beside them, among `merged`, which have Burn's layout.
///
/// # Errors
/// As of [`config`], or if a tensor is missing.
pub fn tensors(
    network: &Network,
    init: Option<&InitPlan>,
    (adapters, merged): (&Tensors, &Tensors),
) -> Result<Tensors, NotWritten> {
    let mut written = Tensors::new();
    for place in places(network, init) {
        for matrix in ['a', 'b'] {
            let name = place.path(matrix);
            let found = adapters.get(&name);
            let tensor = found.ok_or(StateError::Missing { name })?;
            let name = name_of(&place.modules[0], matrix);
            written.push(tensor.transposed().named(&name))?;
        }
    }
    if written.is_empty() {
        return Err(NotWritten::NoAdapter);
    }
    for (entry, name) in whole(network, init)?.into_iter().flat_map(|of| of.tensors) {
        let parts = entry.burn.iter().map(|name| {
            let missing = || StateError::Missing { name: name.clone() };
            merged.get(name).ok_or_else(missing)
        });
        let parts: Vec<&NamedTensor> = parts.collect::<Result<_, _>>()?;
        let tensor = entry.to_torch(&parts);
        written.push(tensor.named(format!("{PREFIX}{name}")))?;
    }
    Ok(written)
}
