//! The source in `init.from`: a file of weights, the folder of a run, or a capsule.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use runner_core::check::network::Network;
use runner_core::check::network::adapters::Adapter;
use runner_core::data::{DataError, sha256_hex};
use runner_core::plan::RunPlan;
#[cfg(feature = "native")]
use runner_core::record::capsule;
use runner_core::record::{ExperimentFolder, RunFolder, RunRecord, file_remedy};
use runner_core::show::plain_io_error;
use runner_core::spec::init::InitLayout;
use tempfile::TempDir;

use crate::read::{Format, Weights};
use crate::tensors::{Dtype, NamedTensor, TensorError, Tensors};

/// The file extension of capsules.
const CAPSULE: &str = ".capsule.tar.zst";
/// The prefix of Burn's paths in a saved network.
const GRAPH: &str = "graph.";

/// Weights with the file of their digest.
pub struct Opened {
    /// The weights.
    pub weights: Weights,
    /// The file.
    pub file: PathBuf,
    /// Where a capsule was unpacked; removed with this.
    _unpacked: Option<TempDir>,
}

impl Opened {
    /// Opens the file at a path; plain Burn files are assumed to be of a network like `network`.
    pub fn open(path: &Path, key: Option<&str>, network: &Network) -> Result<Self, DataError> {
        if is_capsule(path) {
            return Self::of_capsule(path, key);
        }
        if path.is_dir() {
            let (weights, file) = of_run(&RunFolder(path.to_owned()), key)?;
            return Ok(Self {
                weights,
                file,
                _unpacked: None,
            });
        }
        let mut weights = Weights::open(path, key)?;
        if Format::of(path) == Some(Format::Burnpack) {
            weights = in_words_of_users(weights, network);
        }
        Ok(Self {
            weights,
            file: path.to_owned(),
            _unpacked: None,
        })
    }

    /// The digest of the file, and of those that its values are in.
    pub fn digest(&self, of: super::Digest<'_>) -> Result<String, DataError> {
        let own = of(&self.file)?;
        let beside = self.weights.beside();
        if beside.is_empty() {
            return Ok(own);
        }
        let mut all = own;
        for file in beside {
            all += &of(file)?;
        }
        Ok(sha256_hex(all.as_bytes()))
    }

    #[cfg(not(feature = "native"))]
    fn of_capsule(path: &Path, _: Option<&str>) -> Result<Self, DataError> {
        let message = format!("`{}` cannot be unpacked here", path.display());
        Err(DataError::new(message).help("use the run's weights, such as `model/best.bpk` in it"))
    }

    #[cfg(feature = "native")]
    fn of_capsule(path: &Path, key: Option<&str>) -> Result<Self, DataError> {
        let (folder, unpacked) = unpacked(path)?;
        let (weights, _) = of_run(&folder, key)?;
        Ok(Self {
            weights,
            file: path.to_owned(),
            _unpacked: Some(unpacked),
        })
    }
}

/// Whether a path is that of a capsule.
fn is_capsule(path: &Path) -> bool {
    let name = path.file_name();
    name.is_some_and(|name| name.to_string_lossy().ends_with(CAPSULE))
}

/// The run of a capsule, and the folder that is removed when the capsule is no longer needed.
#[cfg(feature = "native")]
fn unpacked(path: &Path) -> Result<(RunFolder, TempDir), DataError> {
    let failed = |e: std::io::Error| {
        let (place, reason) = (path.display(), plain_io_error(&e));
        DataError::new(format!("`{place}` cannot be unpacked: {reason}"))
    };
    let folder = tempfile::tempdir().map_err(failed)?;
    let place = folder.path().join("capsule");
    let unpacked = capsule::unpack(path, &place, None).map_err(|error| DataError {
        notes: error.notes,
        helps: error.helps,
        ..DataError::new(error.message)
    })?;
    Ok((unpacked.folder, folder))
}

/// The run of a folder or of a capsule, with its plan.
#[cfg(feature = "native")]
pub(super) struct OpenedRun {
    /// The folder.
    pub(super) folder: RunFolder,
    /// The plan.
    pub(super) plan: RunPlan,
    /// Whether it is a capsule.
    pub(super) is_capsule: bool,
    /// Where a capsule was unpacked; removed with this.
    _unpacked: Option<TempDir>,
}

#[cfg(feature = "native")]
impl OpenedRun {
    /// Opens the run at a path.
    pub(super) fn open(path: &Path) -> Result<Self, DataError> {
        let place = path.display();
        let is_capsule = is_capsule(path);
        if !path.exists() {
            return Err(DataError::new(format!("`{place}` does not exist")).help(
                "use the folder of a completed run, such as `results/digits/runs/base-s1`, or a capsule; a path starts from the folder of this file",
            ));
        }
        if !is_capsule && !path.is_dir() {
            return Err(DataError::new(format!(
                "`{place}` is neither the folder of a run nor a capsule"
            ))
            .note("the network of a teacher has to be known, and a file of weights does not say it")
            .help("use the folder of a completed run, or a capsule of `runner bundle`"));
        }
        let (folder, unpacked) = if is_capsule {
            let (folder, unpacked) = unpacked(path)?;
            (folder, Some(unpacked))
        } else {
            (RunFolder(path.to_owned()), None)
        };
        Ok(Self {
            plan: plan_of(&folder, "a capsule")?,
            folder,
            is_capsule,
            _unpacked: unpacked,
        })
    }
}

/// The plan of a run; `other` is what could be used instead of one.
fn plan_of(folder: &RunFolder, other: &str) -> Result<RunPlan, DataError> {
    let place = folder.0.display();
    let plan = folder
        .read_plan()
        .map_err(|e| DataError::new(plain_io_error(&e)))?;
    let Some(plan) = plan else {
        let experiment = ExperimentFolder(folder.0.clone());
        let error = DataError::new(format!(
            "`{place}` is not the folder of a run: it has no run.toml"
        ));
        return Err(match experiment.run_ids().first() {
            Some(id) => error.help(format!(
                "use one of its runs, such as `{}`",
                experiment.run(id).0.display()
            )),
            None => error.help(format!(
                "use a folder such as `results/digits/runs/base-s1`, or {other}"
            )),
        });
    };
    Ok(plan)
}

/// The best weights of a run, with their file.
fn of_run(folder: &RunFolder, key: Option<&str>) -> Result<(Weights, PathBuf), DataError> {
    let place = folder.0.display();
    let plan = plan_of(folder, "a file of weights")?;
    let file = folder.model("best");
    let files = ["model/best.bpk", "model/initial.bpk"];
    let files = &files[..1 + usize::from(plan.network.has_adapters())];
    let checked = RunRecord::read_for(folder, &plan).and_then(|record| {
        let mut files = files.iter();
        files.try_for_each(|file| folder.check_file(&record, file))
    });
    // Weights that are not those of the run would be another beginning than the file says.
    checked.map_err(|e| DataError::new(plain_io_error(&e)).help(file_remedy(&e)))?;
    if !file.exists() {
        let message = format!("`{place}` has no best weights: it has no model/best.bpk");
        return Err(
            DataError::new(message).help("complete the run with `runner run`, or use another one")
        );
    }
    if plan.network.has_adapters() {
        let base = folder.model("initial");
        let merged = merged(&file, &base, &plan.network)?;
        let weights = Weights::of(&file, merged, InitLayout::Burn).and_file(base);
        return Ok((weights, file));
    }
    let weights = Weights::open(&file, key)?;
    Ok((in_words_of_users(weights, &plan.network), file))
}

/// The weights of a run with adapters: those that it saved over those under them, with the products of the adapters.
fn merged(best: &Path, base: &Path, network: &Network) -> Result<Tensors, DataError> {
    let mut all: BTreeMap<String, NamedTensor> = BTreeMap::new();
    for file in [base, best] {
        let weights = in_words_of_users(Weights::open(file, None)?, network);
        let names = weights.entries().iter().map(|entry| entry.name.as_str());
        weights.read(&names.collect(), &mut |tensor| {
            all.insert(tensor.name().to_owned(), tensor);
            Ok(())
        })?;
    }
    for layer in &network.layers {
        for adapter in &layer.adapters {
            let path = format!("{}.{}", layer.name, adapter.path);
            let mut take = |name: String| {
                let found = all.remove(&name);
                found.ok_or_else(|| {
                    DataError::new(format!("`{}` has no `{name}`", best.display()))
                        .help("repeat the run, or copy its folder again")
                })
            };
            let [a, b] = ["a", "b"].map(|matrix| take(format!("{path}.lora.{matrix}")));
            let weight = take(path.clone())?;
            let sum = sum(&weight, (&a?, &b?), adapter)
                .map_err(|e| DataError::new(format!("`{}` cannot be used: {e}", best.display())))?;
            all.insert(path, sum);
        }
    }
    let mut tensors = Tensors::new();
    for tensor in all.into_values() {
        let pushed = tensors.push(tensor);
        pushed.map_err(|e| DataError::new(format!("`{}` cannot be used: {e}", best.display())))?;
    }
    Ok(tensors)
}

/// A weight plus the product of the matrices of its adapter.
fn sum(
    weight: &NamedTensor,
    (a, b): (&NamedTensor, &NamedTensor),
    adapter: &Adapter,
) -> Result<NamedTensor, TensorError> {
    let Adapter {
        inputs,
        outputs,
        rank,
        scale,
        ..
    } = *adapter;
    let (mut values, a, b) = (weight.to_f64s(), a.to_f64s(), b.to_f64s());
    if values.len() != inputs * outputs || a.len() != inputs * rank || b.len() != rank * outputs {
        return Err(TensorError::Size {
            name: weight.name().to_owned(),
            shape: weight.shape().to_vec(),
            dtype: weight.dtype(),
            found: weight.bytes().len(),
        });
    }
    for (row, a) in values.chunks_exact_mut(outputs).zip(a.chunks_exact(rank)) {
        for (a, b) in a.iter().zip(b.chunks_exact(outputs)) {
            for (value, b) in row.iter_mut().zip(b) {
                *value += scale * a * b;
            }
        }
    }
    let is_wide = weight.dtype() == Dtype::F64;
    let bytes = if is_wide {
        values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect()
    } else {
        let narrow = values.iter().map(|value| *value as f32);
        narrow.flat_map(f32::to_le_bytes).collect()
    };
    let dtype = if is_wide { Dtype::F64 } else { Dtype::F32 };
    NamedTensor::new(weight.name(), weight.shape().to_vec(), dtype, bytes)
}

/// The same with the names that users know: the layer's and Burn's path inside it.
fn in_words_of_users(weights: Weights, network: &Network) -> Weights {
    weights.renamed(|name| {
        let inner = name
            .strip_prefix(GRAPH)
            .and_then(|path| network.user_path(path));
        inner.unwrap_or_else(|| name.to_owned())
    })
}
