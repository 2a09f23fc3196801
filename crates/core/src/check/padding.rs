//! The positions of series that losses leave out.

use super::Point;
use super::losses::output_of;
use super::network::heads::{Head, Needs};
use super::task::Goal;
use crate::data::{DataPlan, TargetPlan};
use crate::diagnostic::Diagnostic;
use crate::spec::data::{DataSource, Scale};
use crate::spec::loss::LossFunction;
use crate::spec::metric::Metric;
use crate::spec::section::Choice;
use crate::spec::task::TaskKind;

const KEY: &str = "loss.mask";

/// Adds the mask of the loss to a goal, if the file names one; returns what is wrong with it.
pub(super) fn add(point: &Point<'_>, goal: &mut Goal, data: &DataPlan) -> Option<Diagnostic> {
    let name = goal.loss.mask.clone()?;
    let kind = goal.task.kind;
    if !matches!(kind, TaskKind::Autoencoding | TaskKind::Regression) {
        let message = format!(
            "`{KEY}` is about series of numbers that the network predicts, but the task is `{}`",
            kind.name()
        );
        let help = "remove `mask`; layers such as `mean` and `lstm` have a `mask` of their own, and the class -1 marks a position that does not count";
        let diagnostic = Diagnostic::error("task", message).at(point.span(KEY));
        return Some(diagnostic.help(help));
    }
    let positions = if kind == TaskKind::Regression {
        positions_of_target(point, KEY, &data.target)
    } else {
        positions(point, KEY, data)
    };
    let checked = positions.and_then(|positions| {
        loss_leaves_out(point, KEY, &goal.loss.function)?;
        metrics_leave_out(point, [KEY, "task.metrics"], &goal.task.metrics)?;
        Ok((positions, output_of(point, KEY, &name)?))
    });
    match checked {
        Ok((positions, layer)) => {
            goal.loss.mask = Some(point.spec.model.layers[layer].name.clone());
            goal.heads.push(Head {
                layer,
                needs: Needs::Mask(positions),
                key: KEY.into(),
            });
            None
        }
        Err(wrong) => Some(*wrong),
    }
}

/// The number of positions of items, of which the mask under a key leaves some out.
pub(super) fn positions(
    point: &Point<'_>,
    key: &str,
    data: &DataPlan,
) -> Result<usize, Box<Diagnostic>> {
    match data.input.shape[..] {
        [positions] | [positions, _] => Ok(positions),
        ref shape => refuse(
            point,
            key,
            format!(
                "`{key}` is about series of numbers, [length] or [length, features], but an item has the shape {shape:?}"
            ),
            "remove `mask`",
        ),
    }
}

/// The number of positions of a target, of which the mask under a key leaves some out.
pub(super) fn positions_of_target(
    point: &Point<'_>,
    key: &str,
    target: &TargetPlan,
) -> Result<usize, Box<Diagnostic>> {
    let positions = match target {
        TargetPlan::Values { shape } if target.size() > 1 => shape.first(),
        _ => None,
    };
    let Some(positions) = positions else {
        return refuse(
            point,
            key,
            format!("`{key}` leaves out positions, but the target of an item is one number"),
            "remove `mask`; layers such as `mean` and `lstm` have a `mask` of their own",
        );
    };
    if let DataSource::Files(files) = &point.spec.data.source {
        let roles = &files.roles;
        if roles.target_scale != Scale::None || !roles.target_transform.is_none() {
            return refuse(
                point,
                key,
                format!(
                    "`{key}` leaves out positions of the target, which would take part in its `target_scale` or `target_transform`"
                ),
                "remove these keys of `[data]`, and scale the numbers in the file if they need it",
            );
        }
    }
    Ok(*positions)
}

/// Refuses a loss that is computed from all positions beside the mask under a key.
pub(super) fn loss_leaves_out(
    point: &Point<'_>,
    key: &str,
    loss: &LossFunction,
) -> Result<(), Box<Diagnostic>> {
    match loss {
        LossFunction::Own { used, .. } => refuse(
            point,
            key,
            format!(
                "`{key}` leaves out positions, but the loss `{}` is computed from all of them",
                used.part
            ),
            "use another loss, or remove `mask`",
        ),
        _ => Ok(()),
    }
}

/// Refuses metrics that are computed from all positions beside the mask under the first key; points at the second one.
pub(super) fn metrics_leave_out(
    point: &Point<'_>,
    [key, place]: [&str; 2],
    metrics: &[Metric],
) -> Result<(), Box<Diagnostic>> {
    let mut metrics = metrics.iter();
    match metrics.find(|metric| !metric.leaves_out_positions()) {
        Some(metric) => refuse(
            point,
            place,
            format!(
                "the metric `{}` is computed from all positions, but `{key}` leaves some out",
                metric.name()
            ),
            "use `mae` or `mse`, or remove `mask`",
        ),
        None => Ok(()),
    }
}

/// What is wrong with a mask of a loss, at a key.
pub(super) fn refuse<T>(
    point: &Point<'_>,
    key: &str,
    message: String,
    help: &str,
) -> Result<T, Box<Diagnostic>> {
    let diagnostic = Diagnostic::error("task", message).at(point.span(key));
    Err(Box::new(diagnostic.help(help)))
}

/// A table of `[[losses]]` that compares with the target at padding, which `loss.mask` leaves out.
pub fn terms_leave_out_too(point: &Point<'_>) -> Option<Diagnostic> {
    point.spec.loss.as_ref()?.mask.as_ref()?;
    let mut tables = point.spec.losses.iter().enumerate();
    let (at, _) = tables.find(|(_, table)| {
        let is_of_task = table.target.is_none() && !table.loss.function.is_penalty();
        is_of_task && table.loss.mask.is_none()
    })?;
    let message = format!(
        "`losses[{at}]` also counts the positions that `{KEY}` leaves out, since it has no `mask`"
    );
    let diagnostic = Diagnostic::warning("contradiction", message);
    let diagnostic = diagnostic.at(point.span(&format!("losses.{at}.type")));
    Some(diagnostic.help("add the same `mask` to the table"))
}
