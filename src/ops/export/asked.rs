//! What exports of a run are asked for, and what they say.

use std::path::PathBuf;

use crate::model::Options;
use runner_core::spec::section::Choice;
use runner_exchange::tensors::Dtype;

/// The format of a weight file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// safetensors, for Hugging Face's libraries and others.
    Safetensors,
    /// A state dict in PyTorch's format (.pt, .pth).
    Pytorch,
    /// JSON with PyTorch's names and shapes.
    PytorchJson,
    /// A NumPy archive.
    Npz,
    /// Burn's format.
    Bpk,
}

impl Choice for Format {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (
            Self::Safetensors,
            "safetensors",
            "safetensors, for Hugging Face's libraries and others.",
        ),
        (
            Self::Pytorch,
            "pytorch",
            "A state dict in PyTorch's format (.pt, .pth).",
        ),
        (
            Self::PytorchJson,
            "pytorch-json",
            "JSON with PyTorch's names and shapes.",
        ),
        (Self::Npz, "npz", "A NumPy archive."),
        (Self::Bpk, "bpk", "Burn's format."),
    ];
}

/// The convention for names and shapes of tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// Those of PyTorch's modules: linear weights as \[outputs, inputs\], norms with `weight` and `bias`.
    Pytorch,
    /// Those of Burn's modules: linear weights as \[inputs, outputs\], norms with `gamma` and `beta`.
    Burn,
}

impl Choice for Naming {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (
            Self::Pytorch,
            "pytorch",
            "Those of PyTorch's modules: linear weights as [outputs, inputs], norms with `weight` and `bias`.",
        ),
        (
            Self::Burn,
            "burn",
            "Those of Burn's modules: linear weights as [inputs, outputs], norms with `gamma` and `beta`.",
        ),
    ];
}

/// The types that weights may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// 64-bit floats.
    F64,
    /// 32-bit floats.
    F32,
    /// 16-bit floats.
    F16,
    /// The upper half of 32-bit floats.
    Bf16,
}

impl Choice for Numbers {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::F64, "f64", "64-bit floats."),
        (Self::F32, "f32", "32-bit floats."),
        (Self::F16, "f16", "16-bit floats."),
        (Self::Bf16, "bf16", "The upper half of 32-bit floats."),
    ];
}

impl Numbers {
    pub(super) fn dtype(self) -> Dtype {
        match self {
            Self::F64 => Dtype::F64,
            Self::F32 => Dtype::F32,
            Self::F16 => Dtype::F16,
            Self::Bf16 => Dtype::Bf16,
        }
    }
}

/// Weights to write.
#[derive(Clone, Debug)]
pub struct ExportWeights {
    /// The folder of a run or of an experiment, or a capsule.
    pub run: PathBuf,
    /// The options for opening it.
    pub options: Options,
    /// The format.
    pub format: Format,
    /// The convention for names; PyTorch's by default, and Burn's in Burn's format.
    pub names: Option<Naming>,
    /// The type of the values; by default the precision that the run was trained in.
    pub dtype: Option<Numbers>,
    /// For JSON, whether to include the layers and the origin of the weights.
    pub full: bool,
    /// The file.
    pub out: PathBuf,
    /// Whether to replace an existing file.
    pub force: bool,
}

impl ExportWeights {
    /// Weights of a run in a format.
    pub fn new(run: impl Into<PathBuf>, format: Format, out: impl Into<PathBuf>) -> Self {
        Self {
            run: run.into(),
            options: Options::default(),
            format,
            names: None,
            dtype: None,
            full: false,
            out: out.into(),
            force: false,
        }
    }
}

/// A network to write as PyTorch source code.
#[derive(Clone, Debug)]
pub struct ExportPytorch {
    /// The folder of a run or of an experiment, or a capsule.
    pub run: PathBuf,
    /// The options for opening it.
    pub options: Options,
    /// The folder.
    pub out: PathBuf,
    /// Whether to replace a folder that an export wrote.
    pub force: bool,
}

impl ExportPytorch {
    /// The network of a run.
    pub fn new(run: impl Into<PathBuf>, out: impl Into<PathBuf>) -> Self {
        Self {
            run: run.into(),
            options: Options::default(),
            out: out.into(),
            force: false,
        }
    }
}

/// A network to write as an ONNX graph.
#[derive(Clone, Debug)]
pub struct ExportOnnx {
    /// The folder of a run or of an experiment, or a capsule.
    pub run: PathBuf,
    /// The options for opening it.
    pub options: Options,
    /// Whether the graph takes untransformed data, and outputs probabilities and names, or numbers in their units.
    pub with_transforms: bool,
    /// The file.
    pub out: PathBuf,
    /// Whether to replace an existing file.
    pub force: bool,
}

impl ExportOnnx {
    /// The network of a run.
    pub fn new(run: impl Into<PathBuf>, out: impl Into<PathBuf>) -> Self {
        Self {
            run: run.into(),
            options: Options::default(),
            with_transforms: false,
            out: out.into(),
            force: false,
        }
    }
}

/// What was exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The run.
    pub run: String,
    /// Which of its weights: `best`, `final`, `ema`, `swa` or `initial`.
    pub weights: &'static str,
    /// Tensors that were written.
    pub num_tensors: usize,
    /// Numbers in them.
    pub num_values: usize,
}
