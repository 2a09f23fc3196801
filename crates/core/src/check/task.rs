//! The goal of a trial: the task with its loss, metrics and objective, checked against the data and each other.

use super::Point;
use super::adversarial;
use super::balance::weights_can_be_balanced;
use super::fit::*;
use super::losses;
use super::measured::objective_is_measured;
use super::network::heads::Head;
use super::padding;
use crate::data::{DataPlan, TargetPlan};
use crate::diagnostic::Diagnostic;
use crate::spec::loss::{LossFunction, LossKind, LossSpec};
use crate::spec::losses::{LossTerm, TermTarget};
use crate::spec::metric::{Metric, Objective};
use crate::spec::model::activation::Activation;
use crate::spec::model::layer::LayerKind;
use crate::spec::section::Choice;
use crate::spec::task::{Average, TaskKind, TaskSpec};

/// The task of a trial, fully resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// The task and its metrics.
    pub task: TaskSpec,
    /// The loss.
    pub loss: LossSpec,
    /// The objective that ranks epochs and trials.
    pub objective: Objective,
    /// The output shape of the network for each item.
    pub output_shape: Vec<usize>,
    /// The layer whose output is that of the network, if it is not the last one.
    pub output: Option<usize>,
    /// Losses that are added to it.
    pub terms: Vec<LossTerm>,
    /// The outputs that the file names.
    pub heads: Vec<Head>,
}

/// The column of classes of a table, which could be numbers.
fn number_column(point: &Point<'_>, data: &DataPlan) -> Option<String> {
    let files = super::data::files(point)?;
    let is_class = matches!(data.target, TargetPlan::Class { .. });
    let [column] = files.roles.target.as_slice() else {
        return None;
    };
    let is_free = files.roles.of(column).is_none();
    let names = &data.noticed.target_names;
    let are_numbers = !names.is_empty() && names.iter().all(|name| name.parse::<f64>().is_ok());
    (is_class && is_free && are_numbers && files.format.has_columns()).then(|| column.clone())
}

/// The goal of a point for its data, or everything that is wrong with it.
pub fn goal(point: &Point<'_>, data: &DataPlan) -> Result<Goal, Vec<Diagnostic>> {
    let table = &point.spec.task;
    let fitting = fitting_tasks(data);
    let kind = adversarial::task_of(point, fitting[0]);
    if let Some(wrong) = adversarial::task_fits(point, kind, data) {
        return Err(vec![wrong]);
    }
    if kind != TaskKind::Generation && !fitting.contains(&kind) {
        let message = format!(
            "`task.type` is `{}`, but the items of `{}` have {}",
            kind.name(),
            data.dataset.name(),
            data.target.show()
        );
        let diagnostic = Diagnostic::error("task", message).at(point.span("task.type"));
        let names = listed(fitting.iter().map(|kind| kind.name()));
        let diagnostic = diagnostic.help(format!("use {names}"));
        return Err(vec![match number_column(point, data) {
            _ if kind == TaskKind::MaskedToken => diagnostic
                .help("or hide tokens of a text: `masked = 0.15` in `[data.tokens]`"),
            Some(name) if kind == TaskKind::Regression => {
                diagnostic.help(format!("or {}", as_numbers(&name)))
            }
            Some(name) if kind == TaskKind::MultiLabel => diagnostic.help(format!(
                "or say that the column is a label, if its values are 0 and 1: `columns = [{{ name = \"{name}\", type = \"label\" }}]` under `[data]`"
            )),
            _ => diagnostic,
        }]);
    }
    let of_nodes = data.input.graph.and_then(|graph| {
        let pairs = graph.pairs.map(|_| "pairs of nodes");
        pairs.or(graph.num_graphs.map(|_| "graphs"))
    });
    if let (TaskKind::Autoencoding, Some(items)) = (kind, of_nodes) {
        return Err(vec![reconstructs_nodes(point, items)]);
    }
    if kind == TaskKind::Autoencoding && !data.input.parts.is_empty() {
        // Without a target and without a task, the target is missing.
        let asked = table.kind.map(|_| reconstructs_inputs(point, data));
        return Err(asked.into_iter().collect());
    }
    let loss = point.spec.loss.clone();
    let loss = loss.unwrap_or_else(|| LossSpec::default_for(kind));
    let metrics = table.metrics.clone();
    let metrics = metrics.unwrap_or_else(|| loss.default_metrics(kind).to_vec());
    let objective = point.spec.objective.metric;
    let mut goal = Goal {
        objective: objective.unwrap_or(Objective::valid(kind.default_objective(&metrics))),
        output_shape: output_shape(kind, &data.target, data, &loss),
        task: TaskSpec {
            kind,
            metrics,
            settings: table.settings,
        },
        loss,
        output: None,
        terms: Vec::new(),
        heads: Vec::new(),
    };
    let (positive, no_positive) = match positive(point, &goal, data) {
        Ok(positive) => (positive, None),
        Err(diagnostic) => (None, Some(*diagnostic)),
    };
    goal.task.settings.positive = positive;
    let mut wrong = losses::add(point, &mut goal, data);
    wrong.extend(padding::add(point, &mut goal, data));
    match adversarial::head(point, data) {
        Ok(head) => goal.heads.extend(head),
        Err(diagnostic) => wrong.push(*diagnostic),
    }
    let checked = Checked::of_task(&goal, &data.target);
    let numbers = number_column(point, data);
    let more = [
        loss_fits_task(point, &checked, numbers.as_deref()),
        weights_fit_targets(point, &checked),
        weights_can_be_balanced(point, &checked, &TermTarget::Task, data),
        metrics_fit_task(point, &checked, numbers.as_deref()),
        settings_fit(point, &goal),
        top_k_leaves_some(point, &checked, goal.task.settings.top_k),
        reduction_has_effect(point, &checked),
        counts_are_there(point, &checked, &TermTarget::Task, data),
        loss_fits_transform(point, &checked, data),
        images_fit(point, &checked, data),
        no_positive,
        probabilities_are_there(point, &checked),
        objective_is_measured(point, &goal, "objective.metric", Some(goal.objective)),
        objective_is_measured(
            point,
            &goal,
            "scheduler.metric",
            point.spec.scheduler.metric(),
        ),
        objective_is_measured(
            point,
            &goal,
            "train.early_stopping.metric",
            point
                .spec
                .train
                .early_stopping
                .and_then(|stopping| stopping.metric),
        ),
    ];
    wrong.extend(more.into_iter().flatten());
    if wrong.is_empty() {
        Ok(goal)
    } else {
        Err(wrong)
    }
}

/// A graph is not a list of numbers, which a network could reconstruct.
fn reconstructs_nodes(point: &Point<'_>, items: &str) -> Diagnostic {
    let message = format!(
        "`task.type` is \"autoencoding\", which reconstructs a list of numbers, but the items are {items}"
    );
    Diagnostic::error("task", message)
        .at(point.span("task.type"))
        .help("remove `type` to predict the target")
}

/// Named inputs are not one item, which a network could reconstruct.
fn reconstructs_inputs(point: &Point<'_>, data: &DataPlan) -> Diagnostic {
    let message = "`task.type` is \"autoencoding\", which reconstructs an item, but `[[data.inputs]]` has named inputs";
    Diagnostic::error("task", message)
        .at(point.span("task.type"))
        .help(match data.target {
            TargetPlan::None => {
                "replace the inputs by `features`, or set `target` for another task"
            }
            _ => "remove `type` to predict the target, or replace the inputs by `features`",
        })
}

/// The usual task of a target.
pub fn usual_task(target: &TargetPlan, data: &DataPlan) -> TaskKind {
    match (target, data.input.vocabulary) {
        (TargetPlan::None, _) => TaskKind::Autoencoding,
        (TargetPlan::Class { .. }, _) => TaskKind::Classification,
        (TargetPlan::Labels { .. }, _) => TaskKind::MultiLabel,
        (TargetPlan::Values { .. }, _) => TaskKind::Regression,
        (TargetPlan::Classes { .. }, Some(_)) if data.masked().is_some() => TaskKind::MaskedToken,
        (TargetPlan::Classes { .. }, Some(_)) => TaskKind::NextToken,
        (TargetPlan::Classes { .. }, None) => TaskKind::Segmentation,
    }
}

/// The tasks that the data supports, the usual one first.
fn fitting_tasks(data: &DataPlan) -> Vec<TaskKind> {
    let mut tasks = vec![usual_task(&data.target, data)];
    if data.input.vocabulary.is_none() && data.target != TargetPlan::None {
        tasks.push(TaskKind::Autoencoding);
    }
    tasks
}

/// `"a"`, `"a" or "b"`.
pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.map(|name| format!("\"{name}\"")).collect();
    names.join(" or ")
}

/// The output shape of the network for each item.
pub fn output_shape(
    task: TaskKind,
    target: &TargetPlan,
    data: &DataPlan,
    loss: &LossSpec,
) -> Vec<usize> {
    match task {
        TaskKind::Autoencoding => return data.input.shape.clone(),
        // The score of the discriminator.
        TaskKind::Generation => return vec![1],
        _ => {}
    }
    match target {
        TargetPlan::None => data.input.shape.clone(),
        TargetPlan::Class { num_classes } => vec![*num_classes],
        TargetPlan::Labels { num_labels } => vec![*num_labels],
        TargetPlan::Classes { shape, num_classes } => match task {
            // Classes of pixels are channels, as convolutions give them.
            TaskKind::Segmentation => [&[*num_classes], shape.as_slice()].concat(),
            _ => [shape.as_slice(), &[*num_classes]].concat(),
        },
        TargetPlan::Values { shape } => {
            let mut shape = shape.clone();
            if let (LossFunction::GaussianNll, Some(last)) = (&loss.function, shape.last_mut()) {
                *last *= 2;
            }
            shape
        }
    }
}

/// A softmax before a loss that includes one makes gradients small, and is rarely intended.
pub fn one_softmax(point: &Point<'_>) -> Option<Diagnostic> {
    let layers = &point.spec.model.layers;
    let last = match &point.spec.task.output {
        Some(name) => &layers[losses::layer_of(layers, name)?],
        None => layers.last()?,
    };
    let is_softmax = matches!(
        last.kind,
        LayerKind::Activation(Activation::Softmax | Activation::LogSoftmax)
    );
    let loss = match &point.spec.loss {
        Some(loss) => loss.function.kind(),
        None => {
            let usual = fitting_tasks(point.data?)[0];
            let task = adversarial::task_of(point, usual);
            LossSpec::default_for(task).function.kind()
        }
    };
    (is_softmax && loss == Some(LossKind::CrossEntropy)).then(|| {
        let message = format!(
            "`{}` is the {}, but cross-entropy already includes the softmax",
            last.name,
            match point.spec.task.output {
                Some(_) => "output of the task",
                None => "last layer",
            }
        );
        last.point(Diagnostic::warning("task", message), "type")
            .help("remove the layer")
    })
}

fn settings_fit(point: &Point<'_>, goal: &Goal) -> Option<Diagnostic> {
    let refuse = |key: &str, message: String, help: String| {
        let diagnostic = Diagnostic::error("task", message).at(point.span(key));
        Some(diagnostic.help(help))
    };
    let terms = goal.terms.iter().flat_map(|term| &term.metrics);
    let metrics: Vec<&Metric> = goal.task.metrics.iter().chain(terms).collect();
    let has_any = |wanted: &[Metric]| metrics.iter().any(|metric| wanted.contains(metric));
    let averaged: Vec<Metric> = Metric::ALL
        .iter()
        .map(|(metric, ..)| *metric)
        .filter(|metric| metric.is_averaged())
        .collect();
    let of_ranks = match goal.task.settings.average {
        Average::Weighted | Average::Binary => vec![Metric::Auroc, Metric::AucPr],
        Average::Macro | Average::Micro => Vec::new(),
    };
    let with_ranks = [averaged.as_slice(), &of_ranks].concat();
    let unused = [
        ("task.top_k", &[Metric::TopKAccuracy][..], "top_k_accuracy"),
        ("task.beta", &[Metric::FBeta], "f_beta"),
        ("task.average", &with_ranks, "f_beta"),
        ("task.zero_division", &averaged, "f_beta"),
    ];
    for (key, wanted, name) in unused {
        if point.root.at(key).is_some() && !has_any(wanted) {
            let message = format!("`{key}` is set, but no metric uses it");
            let help = format!("add \"{name}\" to `task.metrics`, or remove the key");
            return refuse(key, message, help);
        }
    }
    None
}

/// The number of the class that `average = "binary"` is about.
fn positive(
    point: &Point<'_>,
    goal: &Goal,
    data: &DataPlan,
) -> Result<Option<usize>, Box<Diagnostic>> {
    let asked = point.spec.task.positive_class.as_deref();
    let refuse = |key: &str, message: String, help: String| {
        let diagnostic = Diagnostic::error("task", message).at(point.span(key));
        Err(Box::new(diagnostic.help(help)))
    };
    if goal.task.settings.average != Average::Binary {
        return match asked {
            None => Ok(None),
            Some(_) => refuse(
                "task.positive_class",
                "`task.positive_class` is set, but `task.average` is not \"binary\"".into(),
                "set `average = \"binary\"`, or remove the key".into(),
            ),
        };
    }
    let (num, usual, what) = match data.target {
        TargetPlan::Class { num_classes } => {
            (num_classes, (num_classes == 2).then_some(1), "classes")
        }
        TargetPlan::Labels { num_labels } => (num_labels, (num_labels == 1).then_some(0), "labels"),
        // No metric of these tasks is averaged so.
        _ => return Ok(None),
    };
    let names = match &data.noticed.target_names {
        names if names.len() == num => names.clone(),
        _ => (0..num).map(|class| class.to_string()).collect(),
    };
    let listed = || {
        let shown = names.iter().take(8).map(|name| format!("{name:?}"));
        let shown: Vec<_> = shown.collect();
        let more = if num > shown.len() { ", …" } else { "" };
        format!("the {what} are {}{more}", shown.join(", "))
    };
    match asked {
        Some(asked) => match names.iter().position(|name| name == asked) {
            Some(at) => Ok(Some(at)),
            None => refuse(
                "task.positive_class",
                format!("`task.positive_class` is {asked:?}, which is not one of the {what}"),
                listed(),
            ),
        },
        None if usual.is_some() => Ok(usual),
        None => refuse(
            "task.average",
            format!("`task.average` is \"binary\", but there are {num} {what}"),
            format!(
                "name one in `positive_class` ({}), or set `average = \"macro\"`",
                listed()
            ),
        ),
    }
}
