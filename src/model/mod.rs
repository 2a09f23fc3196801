//! A loaded trained network: its plan, its transforms, its weights, and its device.
//!
//! Everything that uses a trained network uses [`Model`]: `predict`, `evaluate`, `generate`, and programs that serve
//! predictions. A model is read once and never changes, so any number of threads can use it at once.
//!
//! ```no_run
//! use burn_runner::model::{Model, Options};
//!
//! let model = Model::open("results/iris_csv/runs/hidden=16-s1".as_ref(), &Options::default()).unwrap();
//! let rows = [r#"{"sepal_length": 5.1, "sepal_width": 3.5, "petal_length": 1.4, "petal_width": 0.2}"#];
//! println!("{:?}", model.predict_objects(&rows).unwrap());
//! ```

mod answers;
mod assess;
mod find;
mod generate;
mod samples;
mod weights;

use std::path::Path;
use std::sync::Arc;

use burn::tensor::{Device, TensorData};
use rayon::prelude::*;

pub use answers::{Answered, Likelihood};
pub use assess::{Assessed, LEVEL};
pub(crate) use find::yet_to_begin;
pub use find::{Found, find, find_seeds};
pub use generate::{Generated, Generation};
pub use samples::Wanted;
pub use weights::Weights;
use weights::{adapters_of, load, weights_of};

use crate::train::{device, predictions};
use runner_core::data::encode::InputEncoder;
use runner_core::data::encode::tokenizer::Tokenizer;
use runner_core::data::encode::tokenizer::chat::Conversation;
use runner_core::data::incoming::{Incoming, KnownNodes, Piece};
use runner_core::data::{DataError, Served, Set, Split, Transforms, Values};
use runner_core::diagnostic::Diagnostic;
use runner_core::plan::RunPlan;
use runner_core::predict::{Meaning, Prediction, TextColumn};
use runner_core::record::{RunRecord, file_remedy, remedy};
use runner_core::show::plain_io_error;
use runner_core::spec::backend::{Backend, DeviceName, FLEX};
use runner_core::spec::task::TaskKind;
use runner_network::batch;
use runner_network::network::Network;
use runner_network::stepwise::{takes_any_length, unfit};

/// Less work than so many multiply-adds is done by one thread.
const DIVIDED: u64 = 1 << 20;
/// Batches of less work than so many multiply-adds have a thread each: within them, there is little to divide.
const SHARED: u64 = 1 << 26;

/// Why a model cannot be opened or used, with a remedy.
pub type Refusal = Box<Diagnostic>;

/// Options for opening a run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which weights; by default those of the best epoch, or the last ones if there is no best epoch.
    pub weights: Option<Weights>,
    /// The device; by default the one that it was trained on.
    pub device: Option<DeviceName>,
    /// For an experiment: a trial other than the selected one.
    pub trial: Option<String>,
    /// The maximum unpacked size of a capsule in bytes.
    pub max_unpacked: Option<u64>,
}

/// A trained network that can be used from any thread.
#[derive(Debug)]
pub struct Model {
    plan: RunPlan,
    transforms: Transforms,
    meaning: Meaning,
    network: Network,
    adapters: Vec<(String, TensorData)>,
    backend: Backend,
    device: Device,
    found: Found,
    weights: &'static str,
    /// The nodes that the run was trained with, if items are pairs of them.
    nodes: KnownNodes,
}

impl Model {
    /// Opens the run of a folder, the selected trial of an experiment's folder, or the run of a capsule.
    pub fn open(path: &Path, options: &Options) -> Result<Self, Refusal> {
        Self::of(find(path, options)?, options)
    }

    /// Opens several seeds of one trial, best first.
    pub fn open_seeds(path: &Path, num: usize, options: &Options) -> Result<Vec<Self>, Refusal> {
        let found = find_seeds(path, num, options)?;
        found
            .into_iter()
            .map(|found| Self::of(found, options))
            .collect()
    }

    /// Opens a run that was found.
    pub fn of(found: Found, options: &Options) -> Result<Self, Refusal> {
        let folder = &found.folder;
        let plan = found.plan.clone();
        let unreadable = |e: &std::io::Error| -> Refusal {
            Box::new(Diagnostic::error("results", plain_io_error(e)).help(remedy(e)))
        };
        let record = RunRecord::read_for(folder, &plan).map_err(|e| unreadable(&e))?;
        let name = weights_of(folder, &plan, &record, options)?;
        let base = plan
            .network
            .has_adapters()
            .then_some(Weights::Initial.name());
        let weights = [Some(name), base.filter(|base| *base != name)];
        let weights = weights.into_iter().flatten();
        let files = weights.map(|name| format!("model/{name}.bpk"));
        for file in ["transforms.json".to_owned()].into_iter().chain(files) {
            folder.check_file(&record, &file).map_err(|e| -> Refusal {
                let help = file_remedy(&e);
                Box::new(Diagnostic::error("results", plain_io_error(&e)).help(help))
            })?;
        }
        let path = folder.transforms_json();
        let text = folder.read_transforms().map_err(|e| -> Refusal {
            let message = format!(
                "`{}` cannot be read: {}",
                path.display(),
                plain_io_error(&e)
            );
            Box::new(
                Diagnostic::error("results", message)
                    .help("the run ended before its first epoch; run the experiment again"),
            )
        })?;
        let transforms = Transforms::parse(&path, &text).map_err(|e| refusal(&e))?;
        fits(&transforms, &plan, &path)?;
        has_parts(plan.unusable_part())?;
        let place = options.device.unwrap_or(plan.device);
        let device = device::open(place, plan.precision).map_err(|reason| -> Refusal {
            let diagnostic = Diagnostic::error("device", reason);
            Box::new(if place == FLEX {
                diagnostic
            } else {
                diagnostic.help("pass `--device flex` to compute on the processor")
            })
        })?;
        let network = Network::undrawn(&plan, &device);
        // The other weights of a run with adapters lack those under them.
        let network = match base {
            Some(base) => load(network, &plan, &folder.model(base), false, &device)?,
            None => network,
        };
        let network = load(network, &plan, &folder.model(name), base.is_some(), &device)?;
        let adapters = match base {
            Some(_) => adapters_of(&network),
            None => Vec::new(),
        };
        // What reads weights from here on needs no adapters.
        let network = match base {
            Some(_) => network.merged(),
            None => network,
        };
        Ok(Self {
            meaning: Meaning::new(&plan, &transforms),
            plan,
            transforms,
            network,
            adapters,
            backend: place.backend,
            device,
            found,
            weights: name,
            nodes: KnownNodes::default(),
        })
    }

    /// Whether it generates items from noise.
    pub fn generates(&self) -> bool {
        self.plan.task.kind == TaskKind::Generation
    }

    /// The same, if it predicts something about items.
    ///
    /// # Errors
    /// If it generates items from noise.
    pub fn predicting(self) -> Result<Self, Refusal> {
        if !self.generates() {
            return Ok(self);
        }
        let message = format!(
            "run `{}` generates items from noise, and predicts nothing about items",
            self.plan.id
        );
        let help = "`runner generate` writes generated items, and `runner evaluate` measures how far they are from those of a split";
        Err(Box::new(Diagnostic::error("usage", message).help(help)))
    }

    /// The run.
    pub fn plan(&self) -> &RunPlan {
        &self.plan
    }

    /// The column of running text that the run was trained on, if it read a table of such.
    pub fn text_column(&self) -> Option<TextColumn<'_>> {
        let (column, is_chat) = self.incoming(Path::new("")).text_column()?;
        let name = &self.transforms.columns.get(column)?.name;
        Some(TextColumn { name, is_chat })
    }

    /// The run, and why it was chosen.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// Which weights it has: `best`, `final`, `ema`, `swa` or `initial`.
    pub fn weights(&self) -> &'static str {
        self.weights
    }

    /// The matrices of its adapters by path, which are already a part of its weights.
    pub fn adapters(&self) -> &[(String, TensorData)] {
        &self.adapters
    }

    /// How new data is transformed.
    pub fn transforms(&self) -> &Transforms {
        &self.transforms
    }

    /// The meaning of its outputs.
    pub fn meaning(&self) -> &Meaning {
        &self.meaning
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// A file of new data, as it is read for this model.
    pub fn incoming<'a>(&'a self, path: &'a Path) -> Incoming<'a> {
        Incoming {
            nodes: Some(&self.nodes),
            ..Incoming::new(&self.transforms, &self.plan.data, path)
        }
    }

    /// The outputs of the network for some items of a split, concatenated: probabilities, or numbers in the network's
    /// own scale, as [`Meaning::activate`] returns them.
    pub fn activated(&self, split: &Split, places: &[u32]) -> Vec<f32> {
        let served = self.served(split, places);
        let input = &self.transforms.input;
        let mask = input.tokenizer().and_then(Tokenizer::mask);
        let padding = input.padding().first().copied().flatten();
        let positions = served.decisive(self.plan.task.kind, mask, padding);
        let all = self.activated_values(served.values, served.num_items);
        match positions {
            Some(positions) => self.meaning.at_positions(&all, &positions),
            None => all,
        }
    }

    /// Items of a split in the precision of the network.
    pub fn served(&self, split: &Split, places: &[u32]) -> Served {
        let split = split.clone().in_precision(self.plan.precision);
        split.serve(places, None)
    }

    /// Whether it predicts hidden tokens of a text.
    fn is_masked(&self) -> bool {
        self.plan.task.kind == TaskKind::MaskedToken
    }

    /// The same for values that are already encoded.
    pub fn activated_values(&self, values: Values, num_items: usize) -> Vec<f32> {
        if num_items == 0 {
            return Vec::new();
        }
        let inputs = match &values {
            // Texts may be shorter than those in training.
            Values::Tokens(tokens) if self.is_of_running_text() => {
                let shape = [tokens.len() / num_items];
                batch::of_shape(values, num_items, &shape, &self.device)
            }
            _ => batch::inputs(values, num_items, &self.plan.data.input, &self.device),
        };
        predictions::activated(&self.network, &self.meaning, inputs)
    }

    /// Whether items are pieces of continuous text.
    pub fn is_of_running_text(&self) -> bool {
        matches!(self.transforms.input, InputEncoder::Stream { .. })
    }

    /// Items of a split in parts of a size; by default those of validation, so that sums have the same order.
    pub fn parts<'a>(
        &self,
        all: &'a [u32],
        size: Option<usize>,
    ) -> impl Iterator<Item = &'a [u32]> {
        let train = &self.plan.train;
        let (batch, piece) = match size {
            Some(size) => (size, size),
            None => (train.batch_size, train.micro_batch_size),
        };
        all.chunks(batch.max(1))
            .flat_map(move |batch| batch.chunks(piece.max(1)))
    }

    /// Predictions for some items of a split.
    pub fn predict(&self, split: &Split, places: &[u32]) -> Vec<Prediction> {
        self.decided(&self.activated(split, places), places.len())
    }

    /// Predictions for rows, each a JSON object with a value for each column of the run's data.
    pub fn predict_objects(&self, rows: &[&str]) -> Result<Vec<Prediction>, Refusal> {
        let incoming = self.incoming(Path::new("request"));
        let piece = incoming.read_objects(rows).map_err(|e| refusal(&e))?;
        Ok(self.predict_piece(&piece, piece.split.num_items().max(1)))
    }

    /// Predictions for the items of a piece of new data, `batch_size` at a time.
    pub fn predict_piece(&self, piece: &Piece, batch_size: usize) -> Vec<Prediction> {
        let activated = self.activated_piece(piece, batch_size);
        activated
            .iter()
            .flat_map(|(numbers, num)| self.decided(numbers, *num))
            .collect()
    }

    /// The outputs for a piece, with the number of items in each part.
    pub fn activated_piece(&self, piece: &Piece, batch_size: usize) -> Vec<(Vec<f32>, usize)> {
        if let InputEncoder::Stream { column, .. } = self.transforms.input {
            return in_pool(|| {
                if self.is_masked() {
                    self.hidden_tokens(piece, column)
                } else {
                    self.next_tokens(piece, column)
                }
            });
        }
        let all: Vec<u32> = (0..piece.split.num_items() as u32).collect();
        let compute = |places: &[u32]| (self.activated(&piece.split, places), places.len());
        let batch_size = batch_size.max(1);
        let per_item = self.plan.network.multiply_adds_per_item;
        let cost = |num: usize| per_item.saturating_mul(num as u64);
        if cost(all.len()) < DIVIDED {
            return all.chunks(batch_size).map(compute).collect();
        }
        let is_on_flex = self.backend == Backend::Flex;
        if is_on_flex && cost(batch_size.min(all.len())) < SHARED {
            return all.par_chunks(batch_size).map(compute).collect();
        }
        in_pool(|| all.chunks(batch_size).map(compute).collect())
    }

    /// The probabilities of the token after each text.
    fn next_tokens(&self, piece: &Piece, column: usize) -> Vec<(Vec<f32>, usize)> {
        let InputEncoder::Stream {
            tokenizer, length, ..
        } = &self.transforms.input
        else {
            return Vec::new();
        };
        let Set { records, .. } = piece.split.set();
        let vocabulary = tokenizer.vocabulary();
        let is_whole = unfit(&self.plan.network).is_some();
        let is_chat = self.incoming(Path::new("")).chat_column() == Some(column);
        let rows = piece.split.rows().iter();
        rows.map(|row| {
            let text = records.text(*row as usize, column).unwrap_or_default();
            // That the template accepts it was checked when it was read.
            let written = (is_chat.then(|| Conversation::parse(text).ok()).flatten())
                .and_then(|conversation| self.written(tokenizer, &conversation, None).ok());
            let text = written.as_deref().unwrap_or(text);
            let mut tokens = tokenizer.encode(text).unwrap_or_default();
            tokens.drain(..tokens.len().saturating_sub(*length));
            if tokens.is_empty() {
                tokens.push(tokenizer.unknown().unwrap_or(tokenizer.padding()));
            }
            if is_whole {
                let missing = length - tokens.len();
                tokens.splice(0..0, std::iter::repeat_n(tokenizer.padding(), missing));
            }
            let all = self.activated_values(Values::Tokens(tokens), 1);
            (all[all.len() - vocabulary..].to_vec(), 1)
        })
        .collect()
    }

    /// The probabilities of the first hidden token of each text.
    fn hidden_tokens(&self, piece: &Piece, column: usize) -> Vec<(Vec<f32>, usize)> {
        let InputEncoder::Stream {
            tokenizer, length, ..
        } = &self.transforms.input
        else {
            return Vec::new();
        };
        let Set { records, .. } = piece.split.set();
        let mask = tokenizer.mask();
        let may_be_shorter = takes_any_length(&self.plan.network);
        let rows = piece.split.rows().iter();
        rows.map(|row| {
            let text = records.text(*row as usize, column).unwrap_or_default();
            let mut tokens = tokenizer.encode(text).unwrap_or_default();
            // Texts without a mask were refused when they were read.
            let hidden = tokens.iter().position(|token| Some(*token) == mask);
            let hidden = hidden.unwrap_or_default();
            // Of a longer text what is around the hidden token.
            let most = tokens.len().saturating_sub(*length);
            let first = hidden.saturating_sub(length / 2).min(most);
            tokens.drain(..first);
            tokens.truncate(*length);
            if !may_be_shorter || tokens.is_empty() {
                tokens.resize(*length, tokenizer.padding());
            }
            let all = self.activated_values(Values::Tokens(tokens), 1);
            (self.meaning.at_positions(&all, &[hidden - first]), 1)
        })
        .collect()
    }

    /// The predictions of several items by the output of the task.
    pub fn decided(&self, activated: &[f32], num_items: usize) -> Vec<Prediction> {
        let all = self.meaning.decide_outputs(activated, num_items);
        all.into_iter().map(|(prediction, _)| prediction).collect()
    }
}

/// Computes in a thread of rayon's pool: otherwise each operation that divides its work hands it over, and waits.
fn in_pool<T: Send>(compute: impl FnOnce() -> T + Send) -> T {
    rayon::scope(|_| compute())
}

/// The mean of the outputs of several networks.
pub fn averaged(mut all: Vec<Vec<f32>>) -> Vec<f32> {
    let num = all.len() as f32;
    let mut mean = all.pop().unwrap_or_default();
    for other in &all {
        for (sum, value) in mean.iter_mut().zip(other) {
            *sum += value;
        }
    }
    if num > 1.0 {
        mean.iter_mut().for_each(|value| *value /= num);
    }
    mean
}

/// Data that cannot be used, as a diagnostic.
pub fn refusal(error: &DataError) -> Refusal {
    Box::new(error.to_diagnostic())
}

/// Refuses a run that this program lacks a part for, with the message that says which.
pub(crate) fn has_parts(missing: Option<String>) -> Result<(), Refusal> {
    missing.map_or(Ok(()), |missing| {
        let remedy = "use the program that trained the run";
        Err(Box::new(
            Diagnostic::error("own-part", missing).help(remedy),
        ))
    })
}

/// Refuses transforms of another run: the plan defines the inputs and outputs of the network.
fn fits(transforms: &Transforms, plan: &RunPlan, path: &Path) -> Result<(), Refusal> {
    let mut input = transforms.input.plan();
    // The edges are those of the data.
    input.graph = plan.data.input.graph;
    let target = transforms.target.plan(&input);
    let more = transforms.more_targets.iter();
    let more: Vec<_> = more.map(|target| target.plan(&input)).collect();
    let data = &plan.data;
    if input == data.input && target == data.target && more == data.more_targets {
        return Ok(());
    }
    let message = format!(
        "`{}` does not belong to run `{}`: it creates items of {} with {}, but the network takes {} with {}",
        path.display(),
        plan.id,
        input.show(),
        target.show(),
        plan.data.input.show(),
        plan.data.target.show()
    );
    Err(Box::new(
        Diagnostic::error("results", message).help("copy the folder of the run again"),
    ))
}

/// Shared by threads without locks.
const _: fn() = || {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Model>();
    is_shared::<Arc<Model>>();
};
