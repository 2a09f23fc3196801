//! A run's identity: the hash of every input that can change a number, and of nothing else.
//!
//! Plans are destructured field by field, so that no field can be added without a decision. Excluded are names, paths,
//! limits, and whatever follows from other fields. `tests/suite/identity.rs` changes each value of many plans in turn
//! and knows the reason for each excluded one.

use serde::Serialize;
use serde_json::{Value as Json, json};

use super::constant::ConstantPlan;
use super::init::InitPlan;
use super::teacher::TeacherPlan;
use super::{ForkPlan, RunPlan};
use crate::check::{group_of, matches};
use crate::data::{DataPlan, Dataset, sha256_hex};
use crate::spec::backend::{Arithmetic, DeviceName, Kernels, Precision};
use crate::spec::data::{AugmentSpec, RolesSpec, Scale, SplitSpec, TokensSpec};
use crate::spec::loss::LossSpec;
use crate::spec::method::Method;
use crate::spec::metric::Objective;
use crate::spec::optimizer::OptimizerSpec;
use crate::spec::scheduler::SchedulerSpec;
use crate::spec::section::Choice;
use crate::spec::strategy::StrategySpec;
use crate::spec::task::TaskSpec;

/// The content of a fingerprint, except for the network.
#[derive(Serialize)]
struct Work<'a> {
    format: u32,
    seed: u64,
    objective: Objective,
    device: DeviceName,
    precision: Precision,
    /// Under its name from the time when only convolutions had a choice.
    #[serde(rename = "conv", skip_serializing_if = "Kernels::is_fast")]
    kernels: Kernels,
    #[serde(skip_serializing_if = "Arithmetic::is_fast")]
    arithmetic: Arithmetic,
    dataset: Json,
    split: SplitSpec,
    scale: Scale,
    /// If positions along an axis of arrays are scaled separately.
    #[serde(skip_serializing_if = "Option::is_none")]
    scale_axis: Option<usize>,
    augment: Option<&'a AugmentSpec>,
    /// If labels are changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    label_noise: Option<f64>,
    items: [usize; 3],
    train: Json,
    task: &'a TaskSpec,
    loss: Json,
    /// Losses that are added to it, if any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    losses: Vec<Json>,
    optimizer: OptimizerSpec,
    scheduler: &'a SchedulerSpec,
    #[serde(skip_serializing_if = "StrategySpec::is_standard")]
    strategy: StrategySpec,
    /// The layers of the generator and of the discriminator, in an adversarial training.
    #[serde(skip_serializing_if = "Option::is_none")]
    pair: Option<Json>,
    /// How each parameter is updated, in order; omitted if all are updated alike.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    treatments: Vec<Treatment>,
    /// If they are not derived from items and batches.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps_per_epoch: Option<usize>,
    /// The initial weights, if any come from a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    init: Option<Json>,
    /// The constants of the network, if any come from files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    constants: Vec<Json>,
    /// The teacher, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    teacher: Option<Json>,
    /// The lineage, if it begins as a copy of another run.
    #[serde(skip_serializing_if = "Option::is_none")]
    fork: Option<Json>,
}

/// The resolved settings of `[[optimizer.groups]]` and of `muon`'s patterns for one parameter.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Treatment {
    learning_rate_factor: f64,
    /// If it is not the optimizer's.
    weight_decay: Option<f64>,
    is_frozen: bool,
    is_left_to_adamw: bool,
}

/// For a parameter without settings.
const USUAL: Treatment = Treatment {
    learning_rate_factor: 1.0,
    weight_decay: None,
    is_frozen: false,
    is_left_to_adamw: false,
};

/// The version of the fingerprint rules. Names of layers are in no fingerprint, so what refers to them is resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rules {
    /// Groups, masks of losses, and both parts of an adversarial training as written. Used by runs of earlier versions.
    AsWritten,
    /// Groups, resolved for each parameter. Used by runs of earlier versions.
    Groups,
    /// Everything.
    Now,
}

impl RunPlan {
    /// The same with an updated fingerprint.
    pub fn with_fingerprint(mut self) -> Self {
        self.fingerprint = self.compute_fingerprint(&self.network.work().to_string());
        self
    }

    /// Whether the fingerprint matches the plan, by the rules of this version or of an earlier one.
    pub fn is_as_fingerprinted(&self) -> bool {
        let network = self.network.work().to_string();
        [Rules::Now, Rules::Groups, Rules::AsWritten]
            .iter()
            .any(|rules| self.fingerprint_by(&network, *rules) == self.fingerprint)
    }

    /// A description of the first parameter that the same patterns treat differently in `now`, because layers have
    /// other names.
    pub fn change_of_groups(&self, now: &Self) -> Option<String> {
        if self.optimizer != now.optimizer {
            return None;
        }
        let (before, after) = (self.treatments(), now.treatments());
        let of = |treatments: &[Treatment], at: usize| treatments.get(at).cloned().unwrap_or(USUAL);
        let mut parameters = now.network.named_parameters().enumerate();
        let (at, (_, path, _)) = parameters.find(|(at, _)| of(&before, *at) != of(&after, *at))?;
        let was = self.network.parameter_paths();
        let was = was.get(at).map_or("", String::as_str);
        let (was_usual, is_usual) = (of(&before, at) == USUAL, of(&after, at) == USUAL);
        let words = if was_usual {
            ["in no group", "in one"]
        } else if is_usual {
            ["in a group", "in none"]
        } else {
            ["in a group", "in another one"]
        };
        Some(format!(
            "`optimizer.groups`: `{was}` was {}, and is {} as `{path}`",
            words[0], words[1]
        ))
    }

    /// `network` is the serialized network.
    pub(super) fn compute_fingerprint(&self, network: &str) -> String {
        self.fingerprint_by(network, Rules::Now)
    }

    fn fingerprint_by(&self, network: &str, rules: Rules) -> String {
        let mut text = serde_json::to_string(&self.work(rules)).unwrap_or_default();
        // The serialized network is shared by the trials of a sweep, and is hashed as it is.
        text.truncate(text.len().saturating_sub(1));
        text.push_str(",\"network\":");
        text.push_str(network);
        text.push('}');
        sha256_hex(text.as_bytes())[..16].to_owned()
    }

    fn work(&self, rules: Rules) -> Work<'_> {
        let Self {
            format,
            // Names.
            experiment: _,
            id: _,
            trial: _,
            axes: _,
            seed,
            // Computed here.
            fingerprint: _,
            objective,
            device,
            precision,
            kernels,
            arithmetic,
            // Limits end a run or change it by adjustments, which are recorded.
            memory_limit_bytes: _,
            memory_reserve_bytes: _,
            on_exceed: _,
            time_limit_secs: _,
            on_failure: _,
            skip: _,
            forecast: _,
            // When weights are saved; those of the best epoch always are.
            checkpoint: _,
            // Files that are written after the last number.
            predictions: _,
            steps_per_epoch,
            train,
            data,
            task,
            loss,
            losses,
            optimizer,
            scheduler,
            strategy,
            init,
            constants,
            teacher,
            fork,
            // Its text is appended.
            network: _,
        } = self;
        let DataPlan {
            dataset: _,
            digest: _,
            // Only for reports.
            stands_in_for: _,
            noticed: _,
            scale,
            scale_axis,
            augment,
            label_noise,
            // The content of the data determines these: the digest covers them, and loading checks them.
            input: _,
            target: _,
            more_targets: _,
            split,
            num_train,
            num_valid,
            num_test,
        } = data;
        let usual_steps = num_train.div_ceil(self.train.batch_size.max(1));
        let mut train = json!(train);
        // It determines when numbers are read, not their values.
        if let Some(train) = train.as_object_mut() {
            train.remove("log_every");
        }
        let (has_groups, is_now) = (rules >= Rules::Groups, rules == Rules::Now);
        // The reason for a run's split does not affect any number.
        let split = SplitSpec {
            by_run: false,
            ..split.clone()
        };
        Work {
            format: *format,
            seed: *seed,
            objective: *objective,
            device: *device,
            precision: *precision,
            kernels: *kernels,
            arithmetic: *arithmetic,
            dataset: dataset_of(data),
            split,
            scale: *scale,
            scale_axis: *scale_axis,
            augment: augment.as_ref(),
            label_noise: Some(*label_noise).filter(|noise| *noise > 0.0),
            items: [*num_train, *num_valid, *num_test],
            train,
            task,
            loss: self.loss_work(json!(loss), loss, is_now),
            losses: losses
                .iter()
                .map(|term| self.loss_work(json!(term), &term.loss, is_now))
                .collect(),
            optimizer: if has_groups {
                without_patterns(optimizer)
            } else {
                optimizer.clone()
            },
            scheduler,
            strategy: if is_now {
                without_parts(strategy)
            } else {
                strategy.clone()
            },
            pair: strategy.adversarial().filter(|_| is_now).map(|spec| {
                let pair = self.network.pair(spec);
                json!(pair.map(|pair| [pair.generator, pair.discriminator]))
            }),
            treatments: if has_groups {
                self.treatments()
            } else {
                Vec::new()
            },
            steps_per_epoch: Some(*steps_per_epoch).filter(|num| has_groups && *num != usual_steps),
            init: init.as_ref().map(weights_of),
            constants: constants.iter().map(ConstantPlan::work).collect(),
            teacher: teacher.as_ref().map(|teacher| {
                let TeacherPlan {
                    weights,
                    network,
                    warning: _,
                } = teacher;
                json!([weights_of(weights), network.work()])
            }),
            fork: fork.as_ref().map(|fork| {
                let ForkPlan {
                    // A name.
                    run: _,
                    fingerprint,
                    epoch,
                } = fork;
                json!([fingerprint, epoch])
            }),
        }
    }

    /// A loss as JSON, with the index of the layer that is its mask.
    fn loss_work(&self, mut work: Json, loss: &LossSpec, is_now: bool) -> Json {
        if let (Some(name), true) = (&loss.mask, is_now) {
            work["mask"] = json!(self.network.layer(name));
        }
        work
    }

    /// The resolved optimizer settings of each parameter; empty if there are none.
    fn treatments(&self) -> Vec<Treatment> {
        let OptimizerSpec { method, groups, .. } = &self.optimizer;
        let adamw = match method {
            Method::Muon { adamw, .. } => Some(adamw.parameters.as_slice()),
            _ => None,
        };
        if groups.is_empty() && adamw.is_none_or(<[String]>::is_empty) {
            return Vec::new();
        }
        let treatment = |path: &str| {
            let mut treatment = USUAL;
            treatment.is_left_to_adamw = adamw.is_some_and(|parameters| matches(parameters, path));
            if let Some(group) = group_of(groups, path) {
                // Frozen parameters have no other settings.
                if group.freeze {
                    return Treatment {
                        is_frozen: true,
                        ..USUAL
                    };
                }
                treatment.learning_rate_factor = group.learning_rate_factor;
                // With `muon`, the default depends on the parameter.
                let is_other = |decay: &f64| adamw.is_some() || *decay != method.weight_decay();
                treatment.weight_decay = group.weight_decay.filter(is_other);
            }
            treatment
        };
        let parameters = self.network.named_parameters();
        let treatments: Vec<_> = parameters
            // The network itself records a layer that is frozen as a whole.
            .map(|(layer, path, _)| {
                if layer.freeze {
                    USUAL
                } else {
                    treatment(&path)
                }
            })
            .collect();
        if treatments.iter().all(|treatment| *treatment == USUAL) {
            return Vec::new();
        }
        treatments
    }
}

impl DataPlan {
    /// Whether the same transforms are fitted to this data and to another one, since nothing differs that they follow
    /// from.
    pub fn is_prepared_like(&self, other: &Self) -> bool {
        let of = |data: &Self| {
            let split = SplitSpec {
                by_run: false,
                ..data.split.clone()
            };
            json!([
                dataset_of(data),
                data.scale,
                data.scale_axis,
                data.label_noise,
                split,
                [data.num_train, data.num_valid, data.num_test],
            ])
        };
        of(self) == of(other)
    }
}

/// The data set without the paths of its files: the same files at a different path do not change it.
fn dataset_of(data: &DataPlan) -> Json {
    let mut dataset = match &data.dataset {
        Dataset::Mnist {
            part,
            folder: _,
            cache: _,
        } => json!({ "type": "mnist", "part": part }),
        Dataset::Files { files, cache: _ } => json!({
            "type": files.kind().name(),
            "digest": data.digest,
            // The digest contains the content of folders of images, too.
            "roles": without_names(&files.roles),
            // The digest contains the content of the files of the tokenizer and the template.
            "tokens": TokensSpec { path: Vec::new(), template: Vec::new(), ..files.tokens.clone() },
        }),
        Dataset::Own { source, folder: _ } => json!({ "type": "own", "source": source }),
        other @ (Dataset::Digits { .. }
        | Dataset::Iris
        | Dataset::KarateClub
        | Dataset::Synthetic(_)) => json!(other),
    };
    // Plans of earlier versions contain it only for files.
    if let Some(dataset) = dataset.as_object_mut()
        && !data.digest.is_empty()
    {
        dataset.insert("digest".into(), json!(data.digest));
    }
    dataset
}

/// Roles of columns without the names of inputs, which layers refer to by their position.
fn without_names(roles: &RolesSpec) -> RolesSpec {
    let mut roles = roles.clone();
    let images = roles.columns.iter_mut();
    for image in images.filter_map(|column| column.image.as_mut()) {
        image.folder.clear();
    }
    for input in &mut roles.inputs {
        input.name.clear();
    }
    roles
}

/// The file of initial weights by its content, and the tensor that each tensor of the network is loaded from. Names of
/// layers and patterns add nothing to that.
fn weights_of(init: &InitPlan) -> Json {
    let InitPlan {
        path: _,
        digest,
        layout,
        top_level_key,
        tensors,
        adapter,
        report: _,
    } = init;
    let tensors = tensors.iter().map(|taken| {
        if taken.is_transposed {
            json!([taken.at, taken.from, "transposed"])
        } else {
            json!([taken.at, taken.from])
        }
    });
    let base = json!([digest, layout, top_level_key, tensors.collect::<Vec<_>>()]);
    let Some(adapter) = adapter else {
        return base;
    };
    let matrices = adapter.matrices.iter().map(|matrix| &matrix.from);
    let tensors = adapter.tensors.iter();
    let tensors = tensors.map(|taken| json!([taken.at, taken.from]));
    json!({
        "base": base,
        "adapter": adapter.digest,
        "matrices": matrices.collect::<Vec<_>>(),
        "tensors": tensors.collect::<Vec<_>>(),
    })
}

/// The optimizer without its patterns, which are meaningless without the names that they match.
fn without_patterns(optimizer: &OptimizerSpec) -> OptimizerSpec {
    let mut optimizer = optimizer.clone();
    optimizer.groups.clear();
    if let Method::Muon { adamw, .. } = &mut optimizer.method {
        adamw.parameters.clear();
    }
    optimizer
}

/// The strategy without the names of the two networks of an adversarial training.
fn without_parts(strategy: &StrategySpec) -> StrategySpec {
    let mut strategy = strategy.clone();
    if let StrategySpec::Adversarial(spec) = &mut strategy {
        spec.generator.clear();
        spec.discriminator.clear();
    }
    strategy
}
