//! Events as text, one line each: for the scrolling lines above the board, and for output without a board.

use std::time::Duration;

use super::board::{Board, Row, State};
use crate::report::short_number;
use runner_core::event::{Adjustment, Event, FailureClass, Outcome};
use runner_core::plan::RunPlan;
use runner_core::record::RunRecord;
use runner_core::show::show_duration;
use runner_core::spec::section::Choice;

/// A line about an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The line.
    pub text: String,
    /// Whether it is also shown with `--quiet`.
    pub is_trouble: bool,
}

/// The text of an event, after the record and the board have applied it; `counts` are ended runs, and all.
pub fn of(event: &Event, plan: &RunPlan, record: &RunRecord, counts: (usize, usize)) -> Vec<Said> {
    let id = &plan.id;
    let usual = |text: String| Said {
        text,
        is_trouble: false,
    };
    let trouble = |text: String| Said {
        text,
        is_trouble: true,
    };
    match event {
        Event::RunStarted(started) => {
            let rejected = started.rejected_checkpoints.iter();
            rejected
                .map(|rejected| usual(format!("{id}: skipped {rejected}")))
                .collect()
        }
        Event::RunRetried {
            attempt,
            class,
            after_secs,
            adjustment,
        } => vec![trouble(retried(
            plan,
            (*attempt, *class),
            *after_secs,
            adjustment.as_ref(),
        ))],
        Event::RunAdjusted { adjustment, reason } => {
            let adjusted = adjustment.in_words();
            vec![usual(format!(
                "{id}  {reason}: it continues with {adjusted}"
            ))]
        }
        Event::TraceLost { steps, .. } => vec![trouble(format!(
            "{id}: the trace was deleted or changed: the losses of the first {steps} updates are lost, and the run cannot be compared step by step; its training continues"
        ))],
        Event::MemoryGrew(growth) => {
            let growth = growth.in_words(&plan.device.to_string(), plan.train.batch_size);
            vec![usual(format!("{id}: {growth}"))]
        }
        Event::RunFinished { outcome, .. } => {
            let text = finished(plan, outcome, record, counts);
            vec![match outcome {
                Outcome::Failed { .. } => trouble(text),
                _ => usual(text),
            }]
        }
        Event::Progressed(_)
        | Event::EpochFinished(_)
        | Event::MemoryCalibrated { .. }
        | Event::MemoryMeasured(_)
        | Event::StoppedEarly { .. }
        | Event::RunExtended { .. }
        | Event::CheckpointDropped { .. }
        | Event::CheckpointSaved { .. }
        | Event::KernelsChosen { .. }
        | Event::FilesRecorded { .. }
        | Event::SplitEvaluated { .. } => Vec::new(),
    }
}

/// The progress of an active run.
pub fn progress(plan: &RunPlan, row: &Row, record: &RunRecord) -> String {
    let name = plan.objective.name();
    let newest = record.epochs.last();
    let newest = newest.and_then(|epoch| epoch.metrics.get(&name));
    let number = newest.map_or(String::new(), |value| {
        format!("  {name} {}", short_number(*value))
    });
    let rate = if row.is_selecting() {
        "selecting kernels".to_owned()
    } else {
        format!("{:.0} steps/s", row.steps_per_sec.unwrap_or(0.0))
    };
    format!(
        "{}  epoch {}/{}{number}  {rate}",
        plan.id, row.epoch, plan.train.epochs
    )
}

/// How a run ended.
fn finished(
    plan: &RunPlan,
    outcome: &Outcome,
    record: &RunRecord,
    (num_ended, num_runs): (usize, usize),
) -> String {
    let name = plan.objective.name();
    let best = record
        .best_epoch(plan)
        .and_then(|epoch| Some((epoch.epoch, *epoch.metrics.get(&name)?)));
    let number = match best {
        Some((epoch, value)) => format!("  {name} {} in epoch {epoch}", short_number(value)),
        None => String::new(),
    };
    let detail = match outcome {
        Outcome::Completed => match &record.stopped_early {
            Some((epoch, _)) => format!("completed{number}, stopped early after epoch {epoch}"),
            None => format!("completed{number}"),
        },
        Outcome::Interrupted => "interrupted, can be resumed".to_owned(),
        Outcome::Pruned { .. } => {
            let how = outcome.pruned_by().unwrap_or_default();
            format!("pruned{number}, {how}")
        }
        Outcome::Skipped { reason } => format!("skipped: {reason}"),
        Outcome::Failed { class, message, .. } => {
            format!("failed ({}): {message}", class.name())
        }
    };
    format!(
        "[{num_ended}/{num_runs}] {}  {detail}  {:.1} s",
        plan.id, record.wall_secs
    )
}

fn retried(
    plan: &RunPlan,
    (attempt, class): (u32, FailureClass),
    after_secs: f64,
    adjustment: Option<&Adjustment>,
) -> String {
    let granted = plan.on_failure.get(&class);
    let granted = granted.map_or(attempt, |policy| policy.retries);
    let wait = Duration::try_from_secs_f64(after_secs).unwrap_or_default();
    let when = if wait.is_zero() {
        "now".to_owned()
    } else {
        format!("in {}", show_duration(wait))
    };
    let adjusted = adjustment.map_or(String::new(), |adjustment| {
        format!(", with {}", adjustment.in_words())
    });
    format!(
        "{}: retry {attempt} of {granted} after `{}` {when}{adjusted}",
        plan.id,
        class.name()
    )
}

/// A board as lines: the experiment, then each run.
pub fn board(board: &Board) -> String {
    let (num_ended, num_failed) = board.num_ended();
    let mut lines = vec![format!(
        "{}: {num_ended} of {} runs ended, {num_failed} failed",
        board.experiment,
        board.rows.len()
    )];
    if board.num_interrupted() > 0 {
        lines[0] += &format!(", {} interrupted", board.num_interrupted());
    }
    let left = board.time_left();
    if !left.is_empty() {
        lines[0] += &format!(", {left}");
    }
    if let Some(go_on) = board.go_on() {
        lines[0] += &format!("; {go_on}");
    }
    for row in &board.rows {
        let state = match &row.state {
            State::Waiting if board.abandoned.is_some() => "not started".to_owned(),
            State::Waiting => "waiting".to_owned(),
            State::Queued(word) => (*word).to_owned(),
            State::Running | State::Stopping => "active".to_owned(),
            State::Again(how) => how.clone(),
            State::Incomplete => "incomplete, no runner is active".to_owned(),
            State::Unreadable => "cannot be read".to_owned(),
            State::Ended(Outcome::Failed { class, .. }) => format!("failed ({})", class.name()),
            State::Ended(outcome) => outcome.word().to_owned(),
        };
        let mut line = format!("  {}  {state}", row.id);
        if row.epoch > 0 {
            line += &format!("  epoch {}/{}", row.epoch, row.epochs);
        }
        if let Some(value) = row.curve.last().filter(|value| value.is_finite()) {
            line += &format!("  {} {} last", board.objective, short_number(*value));
        }
        lines.push(line);
    }
    lines.join("\n")
}
