//! The outputs that a file names, and the losses that it adds to that of the task.

use super::Point;
use super::balance::weights_can_be_balanced;
use super::fit::*;
use super::network::heads::{Head, Needs};
use super::padding;
use super::task::{Goal, output_shape, usual_task};
use crate::data::{DataPlan, TargetPlan};
use crate::diagnostic::{Diagnostic, nearest};
use crate::spec::loss::{LossFunction, LossKind, LossSpec};
use crate::spec::losses::{ITEMS, LossTerm, MAIN, TEACHER, TermName, TermTable, TermTarget};
use crate::spec::metric::Metric;
use crate::spec::model::layer::LayerKind;
use crate::spec::model::layer_spec::{LayerSpec, Source};
use crate::spec::section::Choice;
use crate::spec::task::{Average, TaskKind};

/// The index of the layer of a name, or of the last one of a block.
pub(super) fn layer_of(layers: &[LayerSpec], name: &str) -> Option<usize> {
    let is_inside = |layer: &LayerSpec| {
        let inside = layer.name.strip_prefix(name);
        inside.is_some_and(|rest| rest.starts_with('.'))
    };
    let named = layers.iter().position(|layer| layer.name == name);
    named.or_else(|| layers.iter().rposition(is_inside))
}

/// Adds the outputs and the losses that the file names to a goal; returns what is wrong with them.
pub(super) fn add(point: &Point<'_>, goal: &mut Goal, data: &DataPlan) -> Vec<Diagnostic> {
    let mut wrong = Vec::new();
    let layers = &point.spec.model.layers;
    if let Some(name) = &point.spec.task.output {
        match output_of(point, "task.output", name) {
            Ok(at) => {
                goal.output = Some(at).filter(|at| at + 1 < layers.len());
                goal.heads.extend(goal.output.map(|layer| Head {
                    layer,
                    needs: Needs::Shape(goal.output_shape.clone()),
                    key: "task.output".into(),
                }));
            }
            Err(diagnostic) => wrong.push(*diagnostic),
        }
    }
    let tables = &point.spec.losses;
    for (at, table) in tables.iter().enumerate() {
        let path = format!("losses[{at}]");
        if let Some(diagnostic) = wrong_name(point, &path, table, &tables[..at]) {
            wrong.push(diagnostic);
        }
        match term(point, goal, data, &path, table) {
            Ok((term, heads)) => {
                goal.terms.push(term);
                goal.heads.extend(heads);
            }
            Err(diagnostics) => wrong.extend(diagnostics),
        }
    }
    wrong
}

/// The index of the layer that a key names.
pub(super) fn output_of(
    point: &Point<'_>,
    key: &str,
    name: &str,
) -> Result<usize, Box<Diagnostic>> {
    let layers = &point.spec.model.layers;
    layer_of(layers, name).ok_or_else(|| {
        let names = || layers.iter().map(|layer| layer.name.as_str());
        let message = format!("`{key}` is \"{name}\", but no layer has this name");
        let diagnostic = Diagnostic::error("unknown-value", message).at(point.span(key));
        Box::new(match nearest(name, names()) {
            Some(near) => diagnostic.help(format!("did you mean \"{near}\"?")),
            None => diagnostic.help("add `name` to the layer; `runner describe` shows all names"),
        })
    })
}

/// Names are parts of the names of metrics.
fn wrong_name(
    point: &Point<'_>,
    path: &str,
    table: &TermTable,
    before: &[TermTable],
) -> Option<Diagnostic> {
    let name = &table.name;
    let message = if name == MAIN {
        format!("`{path}` has the name `{MAIN}`, which is that of the loss of the task")
    } else if name == TEACHER && point.spec.strategy.distill().is_some() {
        format!("`{path}` has the name `{TEACHER}`, which is that of the distance to the teacher")
    } else if TermName::new(name).is_none() {
        format!(
            "`{path}` has the name `{name}`, but names of metrics have at most {} letters, digits, `-`, `_` and `.`",
            TermName::MOST
        )
    } else if before.iter().any(|other| other.name == *name) {
        format!("`{path}` has the name `{name}`, which an earlier table of `[[losses]]` has, too")
    } else {
        return None;
    };
    let place = ["name", "output", "type"].map(|key| format!("{path}.{key}"));
    let place = place.iter().find(|key| point.root.span_at(key).is_some());
    Some(
        Diagnostic::error("contradiction", message)
            .at(point.span(place.unwrap_or(&path.to_owned())))
            .help("add `name` with another name, which its metrics are named after"),
    )
}

/// A table of `[[losses]]` with the outputs that it needs.
fn term(
    point: &Point<'_>,
    goal: &Goal,
    data: &DataPlan,
    path: &str,
    table: &TermTable,
) -> Result<(LossTerm, Vec<Head>), Vec<Diagnostic>> {
    let key = format!("{path}.output");
    let layers = &point.spec.model.layers;
    let layer = match &table.output {
        Some(name) => output_of(point, &key, name).map_err(|wrong| vec![*wrong])?,
        None => goal.output.unwrap_or(layers.len().saturating_sub(1)),
    };
    let kind = table.loss.function.kind();
    let compared = target(point, goal, data, path, table)?;
    let metrics = match (&table.metrics, &compared) {
        (Some(metrics), _) => metrics.clone(),
        (None, Some(compared)) => table.loss.default_metrics(compared.task).to_vec(),
        (None, None) => Vec::new(),
    };
    let mut wrong = Vec::new();
    if let Some(compared) = &compared {
        let checked = Checked {
            task: compared.task,
            target: compared.plan,
            loss: &table.loss,
            metrics: &metrics,
            tables: [path, path],
        };
        wrong.extend(
            [
                loss_fits_task(point, &checked, None),
                weights_fit_targets(point, &checked),
                weights_can_be_balanced(point, &checked, &compared.target, data),
                metrics_fit_task(point, &checked, None),
                reduction_has_effect(point, &checked),
                counts_are_there(point, &checked, &compared.target, data),
                loss_fits_transform(point, &checked, data),
                images_fit(point, &checked, data),
                probabilities_are_there(point, &checked),
                ranks_are_there(point, &checked),
                top_k_leaves_some(point, &checked, goal.task.settings.top_k),
                average_is_of_all(point, goal, &checked, &compared.target),
            ]
            .into_iter()
            .flatten(),
        );
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let mask = mask(point, data, path, table, layer, compared.as_ref());
    let mask = mask.map_err(|wrong| vec![*wrong])?;
    let needs = match (&compared, kind) {
        (Some(compared), _) => Needs::Shape(output_shape(
            compared.task,
            compared.plan,
            data,
            &table.loss,
        )),
        (None, Some(LossKind::KlNormal)) => Needs::Halves,
        (None, _) => Needs::Anything,
    };
    let term = LossTerm {
        name: table.name.clone(),
        layer,
        target: compared.map(|compared| compared.target),
        weight: table.weight,
        metrics: metrics
            .into_iter()
            .filter(|metric| *metric != Metric::Loss)
            .collect(),
        loss: LossSpec {
            mask: mask.as_ref().map(|mask| layers[mask.layer].name.clone()),
            ..table.loss.clone()
        },
    };
    let head = Head { layer, needs, key };
    Ok((term, mask.into_iter().chain([head]).collect()))
}

/// The mask that a table names.
fn mask(
    point: &Point<'_>,
    data: &DataPlan,
    path: &str,
    table: &TermTable,
    output: usize,
    compared: Option<&Compared<'_>>,
) -> Result<Option<Head>, Box<Diagnostic>> {
    let Some(name) = &table.loss.mask else {
        return Ok(None);
    };
    let key = format!("{path}.mask");
    let of_numbers = compared.filter(|compared| compared.task == TaskKind::Regression);
    let needs = match (compared.map(|compared| compared.target), of_numbers) {
        (None, _) => Needs::MaskOf(output),
        (Some(TermTarget::Items), _) => Needs::Mask(padding::positions(point, &key, data)?),
        (Some(_), Some(compared)) => {
            Needs::Mask(padding::positions_of_target(point, &key, compared.plan)?)
        }
        (Some(_), None) => {
            let message = format!(
                "`{key}` is about positions of the items, but the output is compared with another target"
            );
            let help = "remove `mask`: the class -1 marks a position that does not count";
            return padding::refuse(point, &key, message, help);
        }
    };
    let metrics = table.metrics.as_deref().unwrap_or_default();
    padding::metrics_leave_out(point, [&key, &key], metrics)?;
    padding::loss_leaves_out(point, &key, &table.loss.function)?;
    let layer = output_of(point, &key, name)?;
    Ok(Some(Head { layer, needs, key }))
}

/// What an output is compared with.
struct Compared<'a> {
    target: TermTarget,
    plan: &'a TargetPlan,
    task: TaskKind,
}

/// What the output of a table is compared with; nothing for a penalty.
fn target<'a>(
    point: &Point<'_>,
    goal: &Goal,
    data: &'a DataPlan,
    path: &str,
    table: &TermTable,
) -> Result<Option<Compared<'a>>, Vec<Diagnostic>> {
    let function = &table.loss.function;
    let refuse = |key: &str, message: String, help: String| {
        let at = point.span(&format!("{path}.{key}"));
        Err(vec![Diagnostic::error("task", message).at(at).help(help)])
    };
    if function.is_penalty() {
        let unused = [
            ("target", table.target.is_some()),
            ("metrics", table.metrics.is_some()),
        ];
        return match unused.into_iter().find(|(_, is_set)| *is_set) {
            None => Ok(None),
            Some((key, _)) => refuse(
                key,
                format!(
                    "`{path}.{key}` has no effect: `{}` is about the output alone",
                    function.name()
                ),
                match function {
                    LossFunction::L1 => {
                        format!("remove `{key}`, or use `mae` for the error of a target")
                    }
                    LossFunction::L2 => {
                        format!("remove `{key}`, or use `mse` for the error of a target")
                    }
                    _ => format!("remove `{key}`"),
                },
            ),
        };
    }
    let of_task = || {
        Ok(Some(Compared {
            target: TermTarget::Task,
            plan: &data.target,
            task: goal.task.kind,
        }))
    };
    let Some(columns) = table.columns() else {
        if table.target.is_none() {
            return of_task();
        }
        if data.input.vocabulary.is_some() {
            return refuse(
                "target",
                format!("`{path}.target` is \"{ITEMS}\", but the items are tokens"),
                "remove `target`: a loss is only of numbers, or of the target of the task".into(),
            );
        }
        if !data.input.parts.is_empty() {
            return refuse(
                "target",
                format!("`{path}.target` is \"{ITEMS}\", but `[[data.inputs]]` has named inputs"),
                "compare the output with columns, or replace the inputs by `features`".into(),
            );
        }
        return Ok(Some(Compared {
            target: TermTarget::Items,
            plan: &TargetPlan::None,
            task: TaskKind::Autoencoding,
        }));
    };
    let mut known = data.more_columns().iter().zip(&data.more_targets);
    if let Some(at) = known.position(|(more, _)| more.columns == columns) {
        let plan = &data.more_targets[at];
        return Ok(Some(Compared {
            target: TermTarget::More(at),
            plan,
            task: usual_task(plan, data),
        }));
    }
    let columns = columns.join("\", \"");
    refuse(
        "target",
        format!(
            "`{path}.target` is \"{columns}\", but the items of `{}` have no columns with names",
            data.dataset.name()
        ),
        format!(
            "use \"{ITEMS}\" for the items themselves, or remove `target` for the target of the task"
        ),
    )
}

/// `average = "binary"` is about one class of the target of the task.
fn average_is_of_all(
    point: &Point<'_>,
    goal: &Goal,
    checked: &Checked<'_>,
    target: &TermTarget,
) -> Option<Diagnostic> {
    let is_binary = goal.task.settings.average == Average::Binary;
    let metric = checked.metrics.iter().find(|metric| metric.is_averaged())?;
    (is_binary && *target != TermTarget::Task).then(|| {
        let message = format!(
            "`task.average` is \"binary\", but the metric `{}` is about another target",
            metric.name()
        );
        Diagnostic::error("task", message)
            .at(point.span(&checked.of_metrics()))
            .help("remove the metric, or set `average = \"macro\"` under `[task]`")
    })
}

/// Curves over all items are only computed for the output of the task.
fn ranks_are_there(point: &Point<'_>, goal: &Checked<'_>) -> Option<Diagnostic> {
    let metric = goal.metrics.iter().find(|metric| metric.needs_scores())?;
    let message = format!(
        "the metric `{}` is only available in `task.metrics`",
        metric.name()
    );
    let diagnostic = Diagnostic::error("task", message).at(point.span(&goal.of_metrics()));
    Some(diagnostic.help("remove it; `log_loss` also judges probabilities"))
}

impl Goal {
    /// The layers of the network, the last of which has its output.
    pub(super) fn layers(&self, layers: &[LayerSpec]) -> Vec<LayerSpec> {
        let mut layers = layers.to_vec();
        if let Some(at) = self.output {
            let source = &layers[at];
            let mut name = "output".to_owned();
            while layers.iter().any(|layer| layer.name == name) {
                name.push('_');
            }
            layers.push(LayerSpec {
                name,
                kind: LayerKind::Identity,
                inputs: vec![Source::Layer(at)],
                masks: Vec::new(),
                freeze: false,
                weights: None,
                table: source.table.clone(),
                place: source.place.clone(),
            });
        }
        layers
    }

    /// Refuses a layer whose output is not used, which is a mistake in `inputs`.
    pub(super) fn all_are_used(&self, layers: &[LayerSpec]) -> Result<(), Box<Diagnostic>> {
        let mut used = vec![false; layers.len()];
        let output = self.output.or(layers.len().checked_sub(1));
        let named = self.heads.iter().map(|head| head.layer).chain(output);
        let inputs = layers.iter().flat_map(|layer| &layer.inputs);
        let inputs = inputs.filter_map(|source| match source {
            Source::Layer(at) => Some(*at),
            Source::Items | Source::Part(_) => None,
        });
        for at in inputs.chain(named) {
            used[at] = true;
        }
        let Some(at) = used.iter().position(|used| !used) else {
            return Ok(());
        };
        let message = format!(
            "the output of the layer `{}` is never used",
            layers[at].name
        );
        let diagnostic = layers[at].point(Diagnostic::error("contradiction", message), "type");
        Err(Box::new(diagnostic.help(
            "name it in the `inputs` of a later layer or as the `output` of `[[losses]]`, or remove it",
        )))
    }
}
