//! The network of a run as a folder of a model hub, which the library transformers reads.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::asked::{Exported, Numbers};
use super::run::{exported, open};
use super::{ExportError, cast, failed, tensors};
use crate::error::Error;
use crate::model::{Model, Options};
use crate::ops::place::Folder;
use crate::ops::{Progress, Sink};
use runner_core::data::Transforms;
use runner_core::data::encode::TargetEncoder;
use runner_core::data::encode::tokenizer::Tokenizer;
use runner_core::diagnostic::Diagnostic;
use runner_core::plan::RunPlan;
use runner_core::spec::hub::TOKENIZER;
use runner_core::spec::model::layer::LayerKind;
use runner_core::spec::task::TaskKind;
use runner_exchange::hub::{About, HubNetwork, config, tokenizer_config};
use runner_exchange::tensors::{Dtype, Tensors};
use runner_exchange::write;

/// The files of an exported folder.
const FILES: [&str; 4] = [
    "config.json",
    "model.safetensors",
    TOKENIZER,
    "tokenizer_config.json",
];

/// A network to write as a folder of a model hub.
#[derive(Clone, Debug)]
pub struct ExportHub {
    /// The folder of a run or of an experiment, or a capsule.
    pub run: PathBuf,
    /// The options for opening it.
    pub options: Options,
    /// The type of the values; by default the precision that the run was trained in.
    pub dtype: Option<Numbers>,
    /// The folder.
    pub out: PathBuf,
    /// Whether to replace a folder that an export wrote.
    pub force: bool,
}

impl ExportHub {
    /// The network of a run.
    pub fn new(run: impl Into<PathBuf>, out: impl Into<PathBuf>) -> Self {
        Self {
            run: run.into(),
            options: Options::default(),
            dtype: None,
            out: out.into(),
            force: false,
        }
    }
}

/// Writes the network of a run as a folder that the library transformers reads: `config.json`, `model.safetensors` and,
/// if texts are tokenized into subwords, `tokenizer.json` and `tokenizer_config.json`.
///
/// # Errors
/// [`Error::Refused`] if the run cannot be opened, the library has no counterpart of its network, or the folder may not
/// be written.
///
/// ```no_run
/// use burn_runner::ops;
/// use burn_runner::ops::export::{self, ExportHub};
///
/// let options = ExportHub::new("results/harbour_llama", "harbour");
/// let exported = export::export_hub(&options, &ops::quiet)?;
/// println!("{} tensors", exported.num_tensors);
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn export_hub(asked: &ExportHub, sink: &Sink<'_>) -> Result<Exported, Error> {
    let folder = Folder::new(&asked.out, asked.force, |name| {
        FILES.iter().any(|file| name == *file)
    })?;
    let model = open(&asked.run, &asked.options, false, sink)?;
    let plan = model.plan();
    let network = HubNetwork::of(plan).map_err(|error| {
        let message = format!("run `{}`: {error}", plan.id);
        let help = if plan.network.graph.is_some() {
            "export its weights with `runner export weights`"
        } else {
            "export it with `runner export pytorch`, `runner export onnx` or `runner export weights`"
        };
        Error::refused(Diagnostic::error("export", message).help(help))
    })?;
    let wrong = |error: ExportError| failed(&asked.out, &error);
    let burn = tensors(model.network().graph()).map_err(|e| wrong(e.into()))?;
    let named = network.tensors(&plan.network, &burn);
    let mut named = named.map_err(|e| wrong(e.into()))?;
    if let Some(numbers) = asked.dtype {
        named = cast(named, numbers.dtype()).map_err(|e| wrong(e.into()))?;
    }
    let transforms = model.transforms().of_new_data(&plan.data);
    let tokenizer = transforms.input.tokenizer();
    let about = about(&model, &transforms, &named);
    let settings = config(&network, &about);
    let subwords = tokenizer.and_then(|tokenizer| Some((tokenizer, tokenizer.subwords()?)));
    if subwords.is_none() && network.takes_tokens() {
        sink(Progress::Note(
            "the folder has no `tokenizer.json`: its network takes numbers of tokens",
        ));
    }
    let fill = |new: &Path| -> Result<(), ExportError> {
        write_json(&new.join("config.json"), &settings)?;
        let mut to = BufWriter::new(fs::File::create(new.join("model.safetensors"))?);
        write::safetensors(&named, &mut to)?;
        to.flush()?;
        if let Some((tokenizer, text)) = &subwords {
            fs::write(new.join(TOKENIZER), text)?;
            write_json(&new.join("tokenizer_config.json"), &beside(plan, tokenizer))?;
        }
        Ok(())
    };
    folder.write(|new| fill(new).map_err(wrong))?;
    Ok(exported(&model, &named))
}

fn write_json(path: &Path, value: &serde_json::Value) -> Result<(), ExportError> {
    let text = serde_json::to_string_pretty(value).map_err(io::Error::from)?;
    Ok(fs::write(path, text + "\n")?)
}

/// What the configuration says about the data of a run.
fn about(model: &Model, transforms: &Transforms, named: &Tensors) -> About {
    let network = &model.plan().network;
    let tokenizer = transforms.input.tokenizer();
    let outputs = network
        .layers
        .last()
        .map_or(0, |last| match last.shape[..] {
            [outputs] => outputs,
            _ => 1,
        });
    let names = model.meaning().names();
    let problem = match transforms.target {
        TargetEncoder::Class { .. } => Some("single_label_classification"),
        TargetEncoder::Labels { .. } => Some("multi_label_classification"),
        TargetEncoder::Values { .. } => Some("regression"),
        _ => None,
    };
    let is_named = names.len() == outputs;
    let labels = (0..outputs).map(|at| match names.get(at) {
        Some(name) if is_named => name.clone(),
        _ => format!("LABEL_{at}"),
    });
    let is_wide = named.iter().any(|tensor| tensor.dtype() == Dtype::F64);
    let is = |dtype: Dtype| named.iter().any(|tensor| tensor.dtype() == dtype);
    About {
        vocabulary: network.items.vocabulary.unwrap_or(0),
        padding: tokenizer.map(Tokenizer::padding),
        ends: tokenizer.map(ends).unwrap_or_default(),
        num_channels: network.items.dims.first().copied().unwrap_or(0),
        labels: labels.collect(),
        problem: problem.filter(|_| is_named || names.is_empty()),
        dtype: if is_wide {
            "float64"
        } else if is(Dtype::F16) {
            "float16"
        } else if is(Dtype::Bf16) {
            "bfloat16"
        } else {
            "float32"
        },
    }
}

/// The tokens after which nothing follows.
fn ends(tokenizer: &Tokenizer) -> Vec<i32> {
    let mut ends: Vec<i32> = tokenizer.separator().into_iter().collect();
    ends.extend(tokenizer.turn_ends());
    ends.sort_unstable();
    ends.dedup();
    ends
}

/// What is written beside a tokenizer.
fn beside(plan: &RunPlan, tokenizer: &Tokenizer) -> serde_json::Value {
    let mask = tokenizer.mask().map(|token| tokenizer.name(token));
    let padding = tokenizer.name(tokenizer.padding());
    let network = &plan.network;
    let length = network.items.dims.first().map(|length| *length as i64);
    let mut config = tokenizer_config(
        length,
        Some(&padding),
        mask.as_deref(),
        tokenizer.chat.as_ref(),
    );
    let mut layers = network.layers.iter();
    let masks = layers.any(|layer| matches!(layer.kind, LayerKind::PaddingMask { .. }));
    if !masks && plan.task.kind != TaskKind::NextToken {
        // The network was trained to read padding, which the library would mask. Where only earlier tokens are seen, the
        // library's mask of padding changes nothing.
        config["model_input_names"] = json!(["input_ids", "token_type_ids"]);
    }
    config
}
