//! A loss with its metrics, of the task or of `[[losses]]`, checked against what it is about.

use super::Point;
use super::task::{Goal, listed};
use crate::data::{DataPlan, Dataset, TargetPlan};
use crate::diagnostic::Diagnostic;
use crate::spec::data::Scale;
use crate::spec::generate::{Generator, RegressionTarget, WindowTarget};
use crate::spec::loss::{LossFunction, LossSpec, LossType};
use crate::spec::losses::TermTarget;
use crate::spec::metric::Metric;
use crate::spec::section::{Choice, Types};
use crate::spec::task::TaskKind;

/// A loss with its metrics, of the task or of a term.
pub(super) struct Checked<'a> {
    /// The task of the output.
    pub(super) task: TaskKind,
    /// What it is compared with.
    pub(super) target: &'a TargetPlan,
    /// The loss.
    pub(super) loss: &'a LossSpec,
    /// The metrics.
    pub(super) metrics: &'a [Metric],
    /// The tables of the loss and of the metrics.
    pub(super) tables: [&'a str; 2],
}

impl<'a> Checked<'a> {
    pub(super) fn of_task(goal: &'a Goal, target: &'a TargetPlan) -> Self {
        Self {
            task: goal.task.kind,
            target,
            loss: &goal.loss,
            metrics: &goal.task.metrics,
            tables: ["loss", "task"],
        }
    }

    /// A key of the loss.
    pub(super) fn of_loss(&self, key: &str) -> String {
        format!("{}.{key}", self.tables[0])
    }

    /// The key of the metrics.
    pub(super) fn of_metrics(&self) -> String {
        format!("{}.metrics", self.tables[1])
    }
}

/// How to say that a column of classes has numbers.
pub(super) fn as_numbers(column: &str) -> String {
    format!(
        "say that the column has numbers: `columns = [{{ name = \"{column}\", type = \"number\" }}]` under `[data]`"
    )
}

/// `numbers` is the column of the classes, if these could be numbers.
pub(super) fn loss_fits_task(
    point: &Point<'_>,
    goal: &Checked<'_>,
    numbers: Option<&str>,
) -> Option<Diagnostic> {
    let (function, task) = (&goal.loss.function, goal.task);
    if function.tasks().contains(&task) {
        return None;
    }
    let message = format!(
        "the loss `{}` does not support the task `{}`",
        function.name(),
        task.name()
    );
    let fitting = LossType::all();
    let fitting = fitting.iter().filter(|(loss, _, _)| match loss {
        LossType::BuiltIn(kind) => kind.tasks().contains(&task),
        LossType::Own(part) => part.tasks.contains(&task),
    });
    let names = listed(fitting.map(|(_, name, _)| *name));
    let diagnostic = Diagnostic::error("task", message).at(point.span(&goal.of_loss("type")));
    let numbers = numbers.filter(|_| function.tasks().contains(&TaskKind::Regression));
    Some(match numbers {
        Some(column) => diagnostic
            .help(as_numbers(column))
            .help(format!("or use {names}")),
        None => diagnostic.help(format!("use {names}")),
    })
}

pub(super) fn weights_fit_targets(point: &Point<'_>, goal: &Checked<'_>) -> Option<Diagnostic> {
    let (key, weights, what) = match &goal.loss.function {
        LossFunction::CrossEntropy { class_weights, .. } => {
            ("class_weights", class_weights, "classes")
        }
        LossFunction::BinaryCrossEntropy { label_weights, .. } => {
            ("label_weights", label_weights, "labels")
        }
        _ => return None,
    };
    let num = match goal.target {
        TargetPlan::Class { num_classes } | TargetPlan::Classes { num_classes, .. } => *num_classes,
        TargetPlan::Labels { num_labels } => *num_labels,
        TargetPlan::Values { .. } | TargetPlan::None => return None,
    };
    (!weights.is_empty() && weights.len() != num).then(|| {
        let key = goal.of_loss(key);
        let message = format!(
            "`{key}` has {} weights, but there are {num} {what}",
            weights.len()
        );
        Diagnostic::error("task", message)
            .at(point.span(&key))
            .help(format!("list {num} numbers, one for each"))
    })
}

/// `numbers` as for [`loss_fits_task`].
pub(super) fn metrics_fit_task(
    point: &Point<'_>,
    goal: &Checked<'_>,
    numbers: Option<&str>,
) -> Option<Diagnostic> {
    let task = goal.task;
    let wrong = goal
        .metrics
        .iter()
        .find(|metric| !metric.tasks().contains(&task))?;
    let message = format!(
        "the metric `{}` does not support the task `{}`",
        wrong.name(),
        task.name()
    );
    let fitting = Metric::names_for(task);
    let names: Vec<_> = fitting.map(|name| format!("`{name}`")).collect();
    let diagnostic = Diagnostic::error("task", message).at(point.span(&goal.of_metrics()));
    let diagnostic = diagnostic.help(format!("the metrics of this task are {}", names.join(", ")));
    let numbers = numbers.filter(|_| wrong.tasks().contains(&TaskKind::Regression));
    Some(match numbers {
        Some(column) => diagnostic.help(format!("or {}", as_numbers(column))),
        None => diagnostic,
    })
}

/// More classes than `top_k`.
pub(super) fn top_k_leaves_some(
    point: &Point<'_>,
    goal: &Checked<'_>,
    top_k: usize,
) -> Option<Diagnostic> {
    let TargetPlan::Class { num_classes } = goal.target else {
        return None;
    };
    if !goal.metrics.contains(&Metric::TopKAccuracy) || top_k < *num_classes {
        return None;
    }
    let unwritten = match point.root.at("task.top_k") {
        Some(_) => "",
        None => " by default",
    };
    let message =
        format!("`task.top_k` is {top_k}{unwritten}, but there are only {num_classes} classes");
    let key = match goal.tables {
        ["loss", "task"] => "task.top_k".to_owned(),
        _ => goal.of_metrics(),
    };
    let diagnostic = Diagnostic::error("task", message).at(point.span(&key));
    Some(diagnostic.help(format!(
        "set `top_k = {}` or less: otherwise every item is correct",
        num_classes - 1
    )))
}

pub(super) fn reduction_has_effect(point: &Point<'_>, goal: &Checked<'_>) -> Option<Diagnostic> {
    let key = goal.of_loss("reduction");
    point.root.span_at(&key)?;
    let reason = match goal.loss.function {
        LossFunction::Dice { .. } => "`dice` is one number for each item",
        _ if goal.task == TaskKind::Generation => "an item has one score",
        _ if goal.task == TaskKind::Classification => {
            "an item has one class, so there is nothing to reduce"
        }
        _ => return None,
    };
    let message = format!("`{key}` has no effect: {reason}");
    let diagnostic = Diagnostic::error("task", message).at(point.span(&key));
    Some(diagnostic.help("remove `reduction`"))
}

pub(super) fn counts_are_there(
    point: &Point<'_>,
    goal: &Checked<'_>,
    target: &TermTarget,
    data: &DataPlan,
) -> Option<Diagnostic> {
    if !matches!(goal.loss.function, LossFunction::PoissonNll { .. }) {
        return None;
    }
    let other = "or use another loss, such as \"mse\"";
    let (negative, help) = match &data.dataset {
        Dataset::Synthetic(generated) => {
            let first = match generated.generator {
                Generator::Regression {
                    target: RegressionTarget::Values,
                    ..
                } => "set `target = \"counts\"` for the data, ",
                Generator::SineWindows {
                    target: WindowTarget::Next,
                    ..
                } => "change `data.type`, ",
                _ => return None,
            };
            let name = data.dataset.name();
            (format!("targets of `{name}` can be negative"), first)
        }
        _ => {
            let least = data.noticed.least_targets.get(target.place()?)?.as_ref();
            let (column, least) = least.filter(|(_, least)| *least < 0.0)?;
            (
                format!("the least number of the target `{column}` is {least}"),
                "fix the data, ",
            )
        }
    };
    let message = format!("the loss `poisson_nll` needs counts, but {negative}");
    let key = goal.of_loss("type");
    let diagnostic = Diagnostic::error("task", message).at(point.span(&key));
    Some(diagnostic.help(format!("{help}{other}")))
}

/// Losses whose outputs have a meaning that a transform of the targets takes away.
pub(super) fn loss_fits_transform(
    point: &Point<'_>,
    goal: &Checked<'_>,
    data: &DataPlan,
) -> Option<Diagnostic> {
    let (transform, scale) = (data.target_transform(), data.target_scale());
    let (key, name, which) = if transform.is_none() {
        ("target_scale", scale.name(), "scaled")
    } else {
        ("target_transform", transform.name(), "transformed")
    };
    let reason = match goal.loss.function {
        _ if transform.is_none() && scale == Scale::None => return None,
        LossFunction::PoissonNll { .. } => {
            format!("predicts the rate of counts, and {which} targets are not counts")
        }
        LossFunction::GaussianNll if !transform.is_none() => {
            "predicts standard deviations, which have no equivalent in the units of targets that are not transformed linearly".into()
        }
        _ => return None,
    };
    let message = format!(
        "`{key}` is \"{name}\", but the loss `{}` {reason}",
        goal.loss.function.name()
    );
    Some(
        Diagnostic::error("task", message)
            .at(point.span(&goal.of_loss("type")))
            .help(format!(
                "remove `{key}`, or use another loss, such as \"mse\" or \"quantile\""
            )),
    )
}

/// Metrics of probabilities need a loss that makes outputs probabilities.
pub(super) fn probabilities_are_there(point: &Point<'_>, goal: &Checked<'_>) -> Option<Diagnostic> {
    let metric = goal
        .metrics
        .iter()
        .find(|metric| metric.needs_probabilities())?;
    let function = &goal.loss.function;
    (!function.gives_probabilities() && metric.tasks().contains(&goal.task)).then(|| {
        let message = format!(
            "the metric `{}` needs probabilities, but outputs trained with the loss `{}` are not probabilities",
            metric.name(),
            function.name()
        );
        Diagnostic::error("task", message)
            .at(point.span(&goal.of_metrics()))
            .help("remove the metric, or use `cross_entropy` (for labels, `binary_cross_entropy`)")
    })
}

/// Metrics of images need images.
pub(super) fn images_fit(
    point: &Point<'_>,
    goal: &Checked<'_>,
    data: &DataPlan,
) -> Option<Diagnostic> {
    let refuse = |message: String, help: &str| {
        let diagnostic = Diagnostic::error("task", message).at(point.span(&goal.of_metrics()));
        Some(diagnostic.help(help))
    };
    const SSIM_WINDOW: usize = 11;
    let shape = &data.input.shape;
    if goal.metrics.contains(&Metric::Psnr) && shape.len() != 3 {
        let message = format!("the metric `psnr` needs images, but the items have shape {shape:?}");
        return refuse(message, "use `mse` instead");
    }
    let is_image = shape.len() == 3 && shape[1..].iter().all(|side| *side >= SSIM_WINDOW);
    if goal.metrics.contains(&Metric::Ssim) && !is_image {
        let message = format!(
            "the metric `ssim` needs images of at least {SSIM_WINDOW}x{SSIM_WINDOW} pixels, but the items have shape {shape:?}"
        );
        return refuse(message, "use `psnr` or `mse`, or larger images");
    }
    None
}
