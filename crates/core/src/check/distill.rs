//! The rules of `[strategy] type = "distill"` that need no teacher.

use super::Point;
use super::recipe::contradiction;
use super::task::usual_task;
use crate::diagnostic::Diagnostic;
use crate::spec::loss::LossSpec;
use crate::spec::section::Choice;
use crate::spec::task::TaskKind;

/// The task of a training with a teacher.
fn task(point: &Point<'_>) -> Option<TaskKind> {
    point.spec.strategy.distill()?;
    let data = point.data?;
    let kind = point.spec.task.kind;
    Some(kind.unwrap_or_else(|| usual_task(&data.target, data)))
}

/// Why outputs that were trained with a loss cannot be compared with those of a teacher; continues a sentence.
pub fn incomparable(task: TaskKind, loss: &LossSpec) -> Option<&'static str> {
    let function = &loss.function;
    if task.has_probabilities() {
        (!function.gives_probabilities()).then_some("does not make outputs probabilities")
    } else {
        (!function.gives_values()).then_some("makes outputs the parameters of a distribution")
    }
}

/// Values have no temperature.
pub fn temperature_softens(point: &Point<'_>) -> Option<Diagnostic> {
    let task = task(point).filter(|task| !task.has_probabilities())?;
    point.spec.strategy.distill()?.temperature?;
    let message = format!(
        "`strategy.temperature` has no effect on the task `{}`",
        task.name()
    );
    Some(
        contradiction(point, "strategy.temperature", message)
            .note("values are compared with those of the teacher by their squared differences")
            .help("remove `temperature`"),
    )
}

/// Outputs that mean nothing that can be compared with a teacher's.
pub fn outputs_are_comparable(point: &Point<'_>) -> Option<Diagnostic> {
    let task = task(point)?;
    let loss = point.spec.loss.clone();
    let loss = loss.unwrap_or_else(|| LossSpec::default_for(task));
    let what = incomparable(task, &loss)?;
    let message = format!(
        "`strategy.type = \"distill\"` compares outputs with those of a teacher, but the loss `{}` {what}",
        loss.function.name()
    );
    let help = match task {
        TaskKind::MultiLabel => "use `binary_cross_entropy`",
        task if task.has_probabilities() => "use `cross_entropy`",
        _ => "use `mse`, `mae` or `huber`",
    };
    Some(contradiction(point, "loss.type", message).help(help))
}
