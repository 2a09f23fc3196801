//! The positions of series that the loss of an autoencoder leaves out.

use super::Point;
use super::losses::output_of;
use super::network::heads::{Head, Needs};
use super::task::Goal;
use crate::data::DataPlan;
use crate::diagnostic::Diagnostic;
use crate::spec::loss::LossFunction;
use crate::spec::metric::Metric;
use crate::spec::section::Choice;
use crate::spec::task::TaskKind;

const KEY: &str = "loss.mask";

/// Adds the mask of the loss to a goal, if the file names one; returns what is wrong with it.
pub(super) fn add(point: &Point<'_>, goal: &mut Goal, data: &DataPlan) -> Option<Diagnostic> {
    let name = goal.loss.mask.clone()?;
    let refuse = |key: &str, message: String, help: &str| {
        let diagnostic = Diagnostic::error("task", message).at(point.span(key));
        Some(diagnostic.help(help))
    };
    if goal.task.kind != TaskKind::Autoencoding {
        let message = format!(
            "`{KEY}` is about series that the network reconstructs, but the task is `{}`",
            goal.task.kind.name()
        );
        let help = "remove `mask`; layers such as `mean` and `lstm` have a `mask` of their own, and the class -1 marks a position that does not count";
        return refuse(KEY, message, help);
    }
    let shape = &data.input.shape;
    if !matches!(shape.len(), 1 | 2) {
        let message = format!(
            "`{KEY}` is about series of numbers, [length] or [length, features], but an item has the shape {shape:?}"
        );
        return refuse(KEY, message, "remove `mask`");
    }
    if let LossFunction::Own { used, .. } = &goal.loss.function {
        let message = format!(
            "`{KEY}` leaves out positions, but the loss `{}` is computed from all of them",
            used.part
        );
        return refuse(KEY, message, "use another loss, or remove `mask`");
    }
    let mut metrics = goal.task.metrics.iter();
    if let Some(metric) = metrics.find(|metric| matches!(metric, Metric::Own(_))) {
        let message = format!(
            "the metric `{}` is computed from all positions, but `{KEY}` leaves some out",
            metric.name()
        );
        return refuse(
            "task.metrics",
            message,
            "use `mae` or `mse`, or remove `mask`",
        );
    }
    match output_of(point, KEY, &name) {
        Ok(layer) => {
            goal.loss.mask = Some(point.spec.model.layers[layer].name.clone());
            goal.heads.push(Head {
                layer,
                needs: Needs::Mask(shape[0]),
                key: KEY.into(),
            });
            None
        }
        Err(wrong) => Some(*wrong),
    }
}
