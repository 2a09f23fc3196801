//! The weights on a side of a comparison.

use std::collections::BTreeSet;
use std::path::Path;

use crate::error::Error;
use crate::model::{Options, Weights as Which, refusal};
use crate::ops::Sink;
use crate::ops::export::{self, ExportError};
use runner_core::data::DataError;
use runner_core::diagnostic::Diagnostic;
use runner_core::spec::init::InitLayout;
use runner_exchange::init::is_derived;
use runner_exchange::read::{Entry, Format, Weights};
use runner_exchange::state::StateDict;
use runner_exchange::tensors::{NamedTensor, Tensors};
use runner_exchange::write::WriteError;

/// Weights that were read.
pub struct Side {
    /// Those that are compared.
    pub tensors: Tensors,
    /// Tensors of the file that are not learned, such as counters of batches.
    pub others: Vec<NamedTensor>,
    /// Whose names and layouts they have.
    pub layout: InitLayout,
    /// Where they are from, for messages.
    pub shown: String,
}

/// Whether a path is that of a file of weights, by its name.
pub fn is_file(path: &Path) -> bool {
    Format::of(path).is_some() && !path.is_dir()
}

impl Side {
    /// Opens a file of weights, a run or a capsule.
    pub fn open(path: &Path, options: &Options, sink: &Sink<'_>) -> Result<Self, Error> {
        if is_file(path) {
            Self::of_file(path, options)
        } else {
            Self::of_run(path, options, sink)
        }
    }

    fn of_file(path: &Path, options: &Options) -> Result<Self, Error> {
        let shown = format!("`{}`", path.display());
        let refused = |message: String, help: &str| {
            Error::refused(Diagnostic::error("weights", message).help(help))
        };
        if let Some(which) = options.weights.map(Which::name) {
            let message = format!("{shown} is a file, which has no choice of `{which}` weights");
            return Err(refused(
                message,
                "use the folder of a run, or omit the choice",
            ));
        }
        if Format::of(path) == Some(Format::Burnpack) {
            let message = format!("{shown} has Burn's names, which need the plan of its run");
            let help = "use the folder of the run, or a file of `runner export weights --format safetensors`";
            return Err(refused(message, help));
        }
        let data = |e: &_| Error::Refused(refusal(e));
        let weights = Weights::open(path, None).map_err(|e| data(&e))?;
        let is_wrong = |it: &&Entry| !it.dtype.is_float() && !is_derived(&it.name);
        if let Some(entry) = weights.entries().iter().find(is_wrong) {
            let message = format!(
                "`{}` of {shown} is of type {}, but weights must be floats",
                entry.name, entry.dtype
            );
            let help = "save the weights as f32; dequantize quantized weights first";
            return Err(refused(message, help));
        }
        let entries = weights.entries().iter();
        let names: BTreeSet<&str> = entries.map(|entry| entry.name.as_str()).collect();
        let (mut tensors, mut others) = (Tensors::new(), Vec::new());
        let read = weights.read(&names, &mut |tensor| {
            if is_derived(tensor.name()) {
                others.push(tensor);
                return Ok(());
            }
            let pushed = tensors.push(tensor);
            pushed.map_err(|e| DataError::new(e.to_string()))
        });
        read.map_err(|e| data(&e))?;
        Ok(Self {
            tensors,
            others,
            layout: weights.layout(),
            shown,
        })
    }

    /// Under PyTorch's names, as exports have them; those of a program's own layers, which PyTorch does not have, under
    /// their paths.
    fn of_run(path: &Path, options: &Options, sink: &Sink<'_>) -> Result<Self, Error> {
        let model = export::open(path, options, false, sink)?;
        let wrong = |error: ExportError| export::failed(path, &error);
        let burn = export::tensors(model.network().graph()).map_err(|e| wrong(e.into()))?;
        let state = StateDict::of(&model.plan().network);
        let named = state.to_torch(&burn).map_err(|e| wrong(e.into()))?;
        let known = state.entries.iter().flat_map(|it| &it.burn);
        let known: BTreeSet<&str> = known.map(String::as_str).collect();
        let own = burn.iter().filter(|tensor| !known.contains(tensor.name()));
        let mut tensors = Tensors::new();
        let mut others = Vec::new();
        for tensor in named.into_iter().chain(own.cloned()) {
            if is_derived(tensor.name()) {
                others.push(tensor);
            } else {
                tensors.push(tensor).map_err(|e| wrong(e.into()))?;
            }
        }
        Ok(Self {
            tensors,
            others,
            layout: InitLayout::Pytorch,
            shown: format!("the {} weights of `{}`", model.weights(), path.display()),
        })
    }

    /// Other values for the same tensors, with those that are not learned.
    pub fn with_others(&self, mut tensors: Tensors) -> Result<Tensors, WriteError> {
        for other in &self.others {
            let name = other.name().to_owned();
            let pushed = tensors.push(other.clone());
            pushed.map_err(|_| WriteError::Repeated { name })?;
        }
        Ok(tensors)
    }
}
