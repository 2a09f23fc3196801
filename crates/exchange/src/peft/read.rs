//! An adapter of `peft` for a network with adapters of the same shapes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::settings::Settings;
use super::{CONFIG, MODEL, PREFIX, Place, file_name, name_of, places};
use crate::init::Digest;
use crate::read::{Entry, Weights};
use crate::slots::{self, Slot};
use crate::tensors::{Dtype, NamedTensor};
use runner_core::check::network::Network;
use runner_core::data::{DataError, sha256_hex};
use runner_core::plan::init::{AdapterInit, InitPlan, Taken, TakenMatrix};
use runner_core::spec::init::InitLayout;

/// Pickles of older versions of `peft`.
const PICKLE: &str = "adapter_model.bin";

/// Decides which tensors of a folder a network takes that has adapters, with its other initial weights.
///
/// # Errors
/// Why the folder is not that of an adapter of the network.
pub fn resolve(
    folder: &Path,
    network: &Network,
    init: &InitPlan,
    digest: Digest<'_>,
) -> Result<AdapterInit, DataError> {
    let model = files(folder)?;
    let places = places(network, Some(init));
    if places.is_empty() {
        let message = format!(
            "`{}` is an adapter, but the network has none",
            folder.display()
        );
        return Err(DataError::new(message).help(
            "add `[[adapters]]` with the `parameters` and the `rank` of the adapter, or remove `adapter`",
        ));
    }
    let settings = Settings::read(folder)?;
    let weights = Weights::open(&model, None)?;
    let by_name: BTreeMap<&str, &Entry> = weights
        .entries()
        .iter()
        .map(|entry| (entry.name.as_str(), entry))
        .collect();
    let (mut matrices, mut used) = (Vec::new(), BTreeSet::new());
    for place in &places {
        let module = place.module_in(&by_name, folder)?;
        for matrix in ['a', 'b'] {
            let from = name_of(&module, matrix);
            fits(
                by_name.get(from.as_str()).copied(),
                &from,
                place,
                matrix,
                folder,
            )?;
            used.insert(from.clone());
            matrices.push(TakenMatrix {
                path: place.path(matrix),
                from,
            });
        }
        settings.target(&module)?;
        place.has_scale_of(&settings, &module, folder)?;
    }
    let tensors = others(network, init, &by_name, &used, folder)?;
    let wanted = matrices.iter().map(|matrix| matrix.from.as_str());
    let wanted = wanted.chain(tensors.iter().map(|taken| taken.from.as_str()));
    finite(&weights, &wanted.collect(), &model)?;
    Ok(AdapterInit {
        path: folder.to_owned(),
        digest: digest_of(folder, digest)?,
        matrices,
        tensors,
    })
}

/// The tensors that a plan takes from an adapter, by their paths in the network and in Burn's layout.
///
/// # Errors
/// If the adapter has changed, or cannot be read.
pub fn load(
    adapter: &AdapterInit,
    network: &Network,
    digest: Digest<'_>,
) -> Result<BTreeMap<String, NamedTensor>, DataError> {
    let model = files(&adapter.path)?;
    if digest_of(&adapter.path, digest)? != adapter.digest {
        let place = adapter.path.display();
        let message = format!("`{place}` has changed since the run was planned");
        return Err(DataError::new(message)
            .help("restore the original files, or plan the run again with `runner run`"));
    }
    let weights = Weights::open(&model, None)?;
    let paths: BTreeMap<&str, &str> = adapter
        .matrices
        .iter()
        .map(|matrix| (matrix.from.as_str(), matrix.path.as_str()))
        .collect();
    let others: BTreeMap<&str, &Taken> = adapter
        .tensors
        .iter()
        .map(|taken| (taken.from.as_str(), taken))
        .collect();
    let wanted = paths.keys().chain(others.keys()).copied().collect();
    let mut loaded = BTreeMap::new();
    weights.read(&wanted, &mut |tensor| {
        if let Some(path) = paths.get(tensor.name()) {
            loaded.insert((*path).to_owned(), tensor.transposed().named(*path));
        } else if let Some(taken) = others.get(tensor.name()) {
            for part in slots::to_burn(network, InitLayout::Pytorch, taken.at, tensor)? {
                loaded.insert(part.name().to_owned(), part);
            }
        }
        Ok(())
    })?;
    Ok(loaded)
}

/// The file of matrices of a folder.
fn files(folder: &Path) -> Result<PathBuf, DataError> {
    let place = folder.display();
    let model = folder.join(MODEL);
    if model.is_file() && folder.join(CONFIG).is_file() {
        return Ok(model);
    }
    if folder.join(PICKLE).is_file() && !model.is_file() {
        let message = format!("`{place}` has its matrices in `{PICKLE}`, which is a pickle");
        return Err(DataError::new(message)
            .note("pickles can execute code when they are read")
            .help("save it again with `model.save_pretrained(folder, safe_serialization=True)`"));
    }
    let lacks = if model.is_file() { CONFIG } else { MODEL };
    let message = format!("`{place}` is not the folder of an adapter: it has no `{lacks}`");
    Err(DataError::new(message).help(
        "use a folder that `peft` saved, or that `runner export weights RUN --adapter` wrote",
    ))
}

/// The sha256 of both files.
fn digest_of(folder: &Path, digest: Digest<'_>) -> Result<String, DataError> {
    let both = digest(&folder.join(CONFIG))? + &digest(&folder.join(MODEL))?;
    Ok(sha256_hex(both.as_bytes()))
}

impl Place<'_> {
    /// The name of its module in a file.
    fn module_in(
        &self,
        by_name: &BTreeMap<&str, &Entry>,
        folder: &Path,
    ) -> Result<String, DataError> {
        let has = |module: &&String| by_name.contains_key(name_of(module, 'a').as_str());
        let Self { layer, adapter, .. } = self;
        if let Some(module) = self.modules.iter().find(has) {
            return Ok(module.clone());
        }
        let weight = format!("{}.{}", layer.name, adapter.path);
        let message = format!(
            "`{}` lacks the adapter of `{weight}`: it has no `{}`",
            folder.display(),
            name_of(&self.modules[0], 'a')
        );
        let mut names = by_name.keys().filter(|name| name.contains(".lora_A."));
        let error = DataError::new(message);
        let error = match names.next() {
            Some(name) => error.note(format!("it has, for example, `{name}`")),
            None => error.note("it has no matrix of an adapter"),
        };
        Err(error
            .help("let `parameters` in `[[adapters]]` name the weights that the adapter is for"))
    }

    /// Whether the factor of the product is that of the settings.
    fn has_scale_of(
        &self,
        settings: &Settings,
        module: &str,
        folder: &Path,
    ) -> Result<(), DataError> {
        let rank = self.adapter.rank as f64;
        let alpha = settings.alpha(module)?;
        let is_rooted = settings.is_rooted();
        let scale = alpha / if is_rooted { rank.sqrt() } else { rank };
        let ours = self.adapter.scale;
        if (scale - ours).abs() <= 1e-9 * ours.abs() {
            return Ok(());
        }
        let scaling = if is_rooted { "rslora" } else { "standard" };
        let message = format!(
            "`{}` scales the adapter of `{}.{}` by {scale}, the experiment by {ours}",
            folder.display(),
            self.layer.name,
            self.adapter.path
        );
        Err(DataError::new(message).help(format!(
            "set `alpha = {alpha:?}` and `scaling = \"{scaling}\"` in `[[adapters]]`"
        )))
    }
}

/// Refuses a matrix that does not fit its place.
fn fits(
    entry: Option<&Entry>,
    name: &str,
    place: &Place<'_>,
    matrix: char,
    folder: &Path,
) -> Result<(), DataError> {
    let folder = folder.display();
    let Some(entry) = entry else {
        let message = format!("`{folder}` lacks `{name}`");
        return Err(DataError::new(message).help("save the adapter again"));
    };
    if !entry.dtype.is_float() {
        let message = format!("`{name}` of `{folder}` is of type {}", entry.dtype);
        return Err(DataError::new(message).help("save the adapter as f32"));
    }
    let wanted = place.shape(matrix);
    if entry.shape == wanted {
        return Ok(());
    }
    let (found, weight) = (
        &entry.shape,
        format!("{}.{}", place.layer.name, place.adapter.path),
    );
    let message = format!(
        "`{name}` of `{folder}` is {found:?}, but the adapter of `{weight}` needs {wanted:?}"
    );
    let axis = if matrix == 'a' { 0 } else { 1 };
    let is_other_rank = found.len() == 2 && found[1 - axis] == wanted[1 - axis];
    Err(DataError::new(message).help(if is_other_rank {
        format!("set `rank = {}` in `[[adapters]]`", found[axis])
    } else {
        "use an adapter of this network".to_owned()
    }))
}

/// The tensors beside matrices: of modules that were trained as a whole.
fn others(
    network: &Network,
    init: &InitPlan,
    by_name: &BTreeMap<&str, &Entry>,
    used: &BTreeSet<String>,
    folder: &Path,
) -> Result<Vec<Taken>, DataError> {
    let slots = slots::slots(network, InitLayout::Pytorch);
    let is_called = |slot: &Slot, name: &str| {
        slot.exported == name
            || slot.name == name
            || file_name(Some(init), &slot.name) == Some(name)
    };
    let mut taken = Vec::new();
    for (full, entry) in by_name.iter().filter(|(name, _)| !used.contains(**name)) {
        let name = full.strip_prefix(PREFIX).unwrap_or(full);
        let refuse =
            |what: String| DataError::new(format!("`{full}` of `{}` {what}", folder.display()));
        let found = slots.iter().position(|slot| is_called(slot, name));
        let Some(at) = found else {
            let help = if full.contains(".lora_") {
                "add the weight to `parameters` in `[[adapters]]`, or use an adapter of this network"
            } else {
                "use an adapter of this network"
            };
            return Err(refuse("belongs to nothing in the network".into()).help(help));
        };
        let slot = &slots[at];
        if entry.shape != slot.shape {
            let message = format!(
                "is {:?}, but `{}` is {:?}",
                entry.shape, slot.name, slot.shape
            );
            return Err(refuse(message).help("use an adapter of this network"));
        }
        if !entry.dtype.is_float() {
            return Err(
                refuse(format!("is of type {}", entry.dtype)).help("save the adapter as f32")
            );
        }
        taken.push(Taken {
            at,
            name: slot.name.clone(),
            from: entry.name.clone(),
            is_transposed: false,
            is_interpolated: false,
        });
    }
    Ok(taken)
}

fn finite(weights: &Weights, wanted: &BTreeSet<&str>, path: &Path) -> Result<(), DataError> {
    weights.read(wanted, &mut |tensor| {
        let is_finite = match tensor.dtype() {
            Dtype::F64 => tensor.to_f64s().iter().all(|value| value.is_finite()),
            _ => tensor.to_f32s().iter().all(|value| value.is_finite()),
        };
        if is_finite {
            return Ok(());
        }
        let (place, name) = (path.display(), tensor.name());
        let message =
            format!("`{place}` cannot be used: `{name}` has values that are infinite or NaN");
        Err(DataError::new(message).help("use the adapter of an earlier step"))
    })
}
