//! A whole trial: its data found, its network laid out, every rule applied.

use std::rc::Rc;

use super::network::heads::Head;
use super::network::{Items, Network, lay_out};
use super::task::Goal;
use super::{Point, adversarial, preset_sizes, span, task};
use crate::data::{DataError, DataPlan, Located};
use crate::diagnostic::{Diagnostic, counted};
use crate::spec::ExperimentSpec;
use crate::spec::adapters::AdapterSpec;
use crate::spec::data::DataSpec;
use crate::spec::document::Table;
use crate::spec::model::layer_spec::LayerSpec;
use crate::spec::section::Findings;

/// Finds the data of a spec, as [`crate::data::locate`] does.
pub type Locate<'a> = &'a mut dyn FnMut(&DataSpec) -> Result<Located, DataError>;

/// Checks trials one after the other and caches what they share.
pub struct Checker<'a> {
    locate: Locate<'a>,
    located: Vec<(DataSpec, Result<Located, DataError>)>,
    /// Notices about batches that would not fit.
    lowered: Vec<String>,
    /// Notices about class weights that follow from the data.
    balanced: Vec<String>,
    /// The previous network, since neighboring trials usually share it.
    last: Option<(Blueprint, Rc<LaidOut>)>,
}

/// The result for a trial; anything that could not be determined is `None`, with the reason in the findings.
pub struct Checked {
    /// The spec, with what follows from its data.
    pub spec: ExperimentSpec,
    /// What it trains on.
    pub data: Option<DataPlan>,
    /// The same for each seed, if each has a separate split; otherwise empty.
    pub by_seed: Vec<DataPlan>,
    /// What it learns.
    pub goal: Option<Goal>,
    /// Its network.
    pub laid_out: Option<Rc<LaidOut>>,
}

/// What a network is planned from.
#[derive(PartialEq)]
struct Blueprint {
    layers: Vec<LayerSpec>,
    items: Items,
    output: Vec<usize>,
    heads: Vec<Head>,
    adapters: Vec<AdapterSpec>,
}

/// A network with its serialized form.
pub struct LaidOut {
    /// Its layers.
    pub network: Network,
    /// Everything that determines its outputs, as text.
    pub work: String,
}

impl<'a> Checker<'a> {
    /// An empty cache.
    pub fn new(locate: Locate<'a>) -> Self {
        Self {
            locate,
            located: Vec::new(),
            lowered: Vec::new(),
            balanced: Vec::new(),
            last: None,
        }
    }

    /// Notices about data.
    pub fn data_notices(&self) -> Vec<String> {
        let located = self.located.iter();
        let located = located.filter_map(|(_, result)| result.as_ref().ok());
        let mut notices: Vec<String> = Vec::new();
        for notice in located.filter_map(|located| located.notice.clone()) {
            if !notices.contains(&notice) {
                notices.push(notice);
            }
        }
        notices
    }

    /// Notices about what follows from the data: batch sizes that were lowered, class weights.
    pub fn resolved(&self) -> impl Iterator<Item = &String> {
        self.lowered.iter().chain(&self.balanced)
    }

    fn lay_out(&mut self, blueprint: Blueprint) -> Result<Rc<LaidOut>, Box<Diagnostic>> {
        if let Some((last, laid_out)) = &self.last
            && *last == blueprint
        {
            return Ok(laid_out.clone());
        }
        let Blueprint {
            layers,
            items,
            output,
            heads,
            adapters,
        } = &blueprint;
        let network = lay_out(layers, items, output, heads)?.adapted(adapters);
        let work = network.work().to_string();
        let laid_out = Rc::new(LaidOut { network, work });
        self.last = Some((blueprint, laid_out.clone()));
        Ok(laid_out)
    }

    fn data_of(&mut self, spec: &DataSpec) -> Result<DataPlan, DataError> {
        if !self.located.iter().any(|(known, _)| known == spec) {
            let result = (self.locate)(spec);
            self.located.push((spec.clone(), result));
        }
        let found = self.located.iter().find(|(known, _)| known == spec);
        found
            .expect("it was just put there")
            .1
            .clone()
            .map(|located| located.plan)
    }

    /// Finds the data of a trial, lays out its network and applies the rules. Problems are added to `findings`, and
    /// anything that depends on them is `None`.
    pub fn check(
        &mut self,
        root: &Table,
        spec: ExperimentSpec,
        findings: &mut Findings,
    ) -> Checked {
        let mut spec = spec;
        if let Some(first) = spec.experiment.seeds.first() {
            spec.data.split = spec.data.split.of_run(*first);
        }
        let data = if findings.is_poisoned("data") {
            None
        } else {
            match self.data_of(&spec.data) {
                Ok(data) => Some(data),
                Err(error) => {
                    findings.diagnostics.push(refused(&error, root));
                    None
                }
            }
        };
        let spec = match &data {
            Some(data) => self.with_batch_that_fits(spec, root, data, findings),
            None => spec,
        };
        let by_seed = match &data {
            Some(data) => self.splits_by_seed(&spec, data, root, findings),
            None => Vec::new(),
        };
        let point = |data, network| Point {
            root,
            spec: &spec,
            data,
            network,
        };
        let mut goal = None;
        // The names of outputs, and of two networks, are those of layers.
        let mut goes_in = vec![
            "task",
            "loss",
            "losses",
            "objective",
            "scheduler",
            "train.early_stopping",
        ];
        if spec.has_outputs() || spec.strategy.adversarial().is_some() {
            goes_in.push("model");
        }
        if let Some(data) = &data
            && !goes_in.iter().any(|path| findings.is_poisoned(path))
        {
            match task::goal(&point(None, None), data) {
                Ok(found) => goal = Some(found),
                Err(wrong) => wrong.into_iter().for_each(|d| findings.diagnostics.push(d)),
            }
        }
        if let (Some(goal), Some(data)) = (&goal, &data) {
            self.balance(goal, data, &by_seed, root, findings);
        }
        let mut laid_out = None;
        if let (Some(data), Some(goal), false) = (&data, &goal, findings.is_poisoned("model")) {
            let blueprint = Blueprint {
                layers: goal.layers(&spec.model.layers),
                items: adversarial::items(&spec, data),
                output: goal.output_shape.clone(),
                heads: goal.heads.clone(),
                adapters: if findings.is_poisoned("adapters") {
                    Vec::new()
                } else {
                    spec.adapters.clone()
                },
            };
            let used = goal.all_are_used(&spec.model.layers);
            let misfit = preset_sizes::misfit(root, &data.input);
            match (misfit, used.and_then(|()| self.lay_out(blueprint))) {
                (Some(diagnostic), _) => findings.diagnostics.push(diagnostic),
                (None, Ok(found)) => laid_out = Some(found),
                (None, Err(diagnostic)) => findings.diagnostics.push(*diagnostic),
            }
        }
        let network = laid_out.as_deref().map(|laid_out| &laid_out.network);
        super::check(&point(data.as_ref(), network), findings);
        Checked {
            spec,
            data,
            by_seed,
            goal,
            laid_out,
        }
    }

    /// The data of each seed, if each has a separate split. Everything except the items of the splits has to be the
    /// same as for the first seed; otherwise the network would differ.
    fn splits_by_seed(
        &mut self,
        spec: &ExperimentSpec,
        first: &DataPlan,
        root: &Table,
        findings: &mut Findings,
    ) -> Vec<DataPlan> {
        let mut all = Vec::new();
        if !spec.data.split.by_run || findings.is_poisoned("experiment.seeds") {
            return all;
        }
        for seed in &spec.experiment.seeds {
            let mut data = spec.data.clone();
            data.split = data.split.of_run(*seed);
            let wrong = match self.data_of(&data) {
                Err(error) => refused(&error, root),
                Ok(other)
                    if (&other.input, &other.target, &other.more_targets)
                        != (&first.input, &first.target, &first.more_targets) =>
                {
                    other_split("changes the network's inputs or outputs", root)
                }
                Ok(other) if other.num_valid == 0 || other.num_train < spec.train.batch_size => {
                    other_split("leaves too few items", root)
                }
                Ok(other) => {
                    all.push(other);
                    continue;
                }
            };
            let note = format!("with the split of seed {seed}, as `data.split.seed` is \"run\"");
            findings.diagnostics.push(wrong.note(note));
            break;
        }
        all
    }

    /// Notes class weights that follow from the data, and refuses splits of seeds that do not determine them.
    fn balance(
        &mut self,
        goal: &Goal,
        data: &DataPlan,
        by_seed: &[DataPlan],
        root: &Table,
        findings: &mut Findings,
    ) {
        let mut texts = goal.balanced_in_words(data);
        texts.retain(|text| !self.balanced.contains(text));
        self.balanced.extend(texts);
        if let Some(other) = by_seed.iter().find(|data| goal.lacks_classes(data)) {
            let note = format!(
                "with the split of seed {}, as `data.split.seed` is \"run\"",
                other.split.seed
            );
            let wrong = other_split("leaves a class without items for training", root);
            findings.diagnostics.push(wrong.note(note));
        }
    }

    /// The default batch size is lowered to a smaller train split if the file does not set it: a default is not a
    /// mistake of the file.
    fn with_batch_that_fits(
        &mut self,
        mut spec: ExperimentSpec,
        root: &Table,
        data: &DataPlan,
        findings: &Findings,
    ) -> ExperimentSpec {
        let train = &mut spec.train;
        let (default, fits) = (train.batch_size, data.num_train);
        let is_set =
            root.at("train.batch_size").is_some() || findings.is_poisoned("train.batch_size");
        if is_set || default <= fits || fits == 0 {
            return spec;
        }
        train.batch_size = fits;
        if root.at("train.micro_batch_size").is_none() {
            train.micro_batch_size = fits;
        }
        let notice = format!(
            "`train.batch_size` is lowered from its default {default} to {fits}: the train split of `{}` has {}",
            data.dataset.name(),
            counted(fits, "item")
        );
        if !self.lowered.contains(&notice) {
            self.lowered.push(notice);
        }
        spec
    }
}

/// What is wrong with the data, at the affected key.
fn refused(error: &DataError, root: &Table) -> Diagnostic {
    let usual = match root.at("data.path") {
        Some(_) => "data.path",
        None => "data.type",
    };
    let key = if error.key.is_empty() {
        usual
    } else {
        &error.key
    };
    error.to_diagnostic().at(span(root, key))
}

/// Why the split of a seed cannot be used for a run.
fn other_split(why: &str, root: &Table) -> Diagnostic {
    Diagnostic::error("contradiction", format!("the split of a seed {why}"))
        .at(span(root, "data.split.seed"))
        .help("write one seed for all runs, such as `seed = 0`, or leave out that seed")
}
