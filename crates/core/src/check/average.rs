//! The rules of averaged weights: `[train.ema]` and `[strategy]`.

use super::Point;
use super::recipe::contradiction;
use crate::diagnostic::Diagnostic;
use crate::spec::backend::Precision;
use crate::spec::section::Choice;
use crate::spec::strategy::StrategySpec;

pub fn averages_are_made(point: &Point<'_>) -> Option<Diagnostic> {
    let train = &point.spec.train;
    let is_made = |average: &str| match average {
        "ema" => train.ema.is_some(),
        _ => matches!(point.spec.strategy, StrategySpec::Swa { .. }),
    };
    let watched = train.early_stopping.and_then(|stopping| stopping.metric);
    let asked = [
        ("objective.metric", point.spec.objective.metric),
        ("train.early_stopping.metric", watched),
        ("scheduler.metric", point.spec.scheduler.metric()),
    ];
    let (path, metric, average) = asked.into_iter().find_map(|(path, metric)| {
        let average = metric?.average().filter(|average| !is_made(average))?;
        Some((path, metric?, average))
    })?;
    let name = metric.name();
    let (table, add) = match average {
        "ema" => ("`[train.ema]`", "`[train.ema]`"),
        _ => (
            "`strategy.type = \"swa\"`",
            "`[strategy]` with `type = \"swa\"` and `start_epoch`",
        ),
    };
    let message = format!("`{path}` is \"{name}\", which needs {table}");
    Some(contradiction(point, path, message).help(format!("add {add}, or use a metric of `valid`")))
}

/// An average that starts after the training, or a synchronization that is never reached.
pub fn averages_start(point: &Point<'_>) -> Option<Diagnostic> {
    let train = &point.spec.train;
    if let StrategySpec::Swa { start_epoch, .. } = point.spec.strategy
        && start_epoch > train.epochs
    {
        let message = format!(
            "`strategy.start_epoch` is {start_epoch}, but training has {} epochs: no weights would be averaged",
            train.epochs
        );
        return Some(
            contradiction(point, "strategy.start_epoch", message)
                .help("start earlier (averaging the last quarter of a training is usual), or train more epochs"),
        );
    }
    let per_epoch = point.data?.num_train.div_ceil(train.batch_size.max(1));
    let num_steps = train.epochs.saturating_mul(per_epoch);
    if let Some(ema) = train.ema
        && ema.start_step >= num_steps
    {
        let message = format!(
            "`train.ema.start_step` is {}, but training has {num_steps} updates: nothing would be averaged",
            ema.start_step
        );
        return Some(
            contradiction(point, "train.ema.start_step", message)
                .help("start earlier, or train more epochs"),
        );
    }
    let (key, interval, left) = match point.spec.strategy {
        StrategySpec::Standard
        | StrategySpec::Hybrid(_)
        | StrategySpec::Distill(_)
        | StrategySpec::Adversarial(_)
        | StrategySpec::Own { .. } => return None,
        StrategySpec::Lookahead { sync_steps, .. } => ("sync_steps", sync_steps, num_steps),
        StrategySpec::Swa {
            start_epoch,
            every_steps,
        } => {
            let before = (start_epoch - 1).saturating_mul(per_epoch);
            let left = num_steps.saturating_sub(before);
            ("every_steps", every_steps?, left)
        }
    };
    (interval > left).then(|| {
        let path = format!("strategy.{key}");
        let message = format!(
            "`{path}` is {interval}, but {} {left} updates: {}",
            if key == "sync_steps" {
                "training has"
            } else {
                "the epochs from `start_epoch` on have"
            },
            if key == "sync_steps" {
                "the weights would never be synchronized"
            } else {
                "no weights would be averaged"
            },
        );
        contradiction(point, &path, message)
            .help(format!("set at most {left}, or train more epochs"))
    })
}

pub fn averages_are_precise(point: &Point<'_>) -> Option<Diagnostic> {
    let is_swa = matches!(point.spec.strategy, StrategySpec::Swa { .. });
    const AVERAGED: &str = "changes the average by a small amount, which is lost in 16 bits";
    let (table, path, note) = if point.spec.train.ema.is_some() {
        (
            "`[train.ema]`",
            "train.ema",
            format!("each step {AVERAGED}"),
        )
    } else if is_swa {
        (
            "`strategy.type = \"swa\"`",
            "strategy.type",
            format!("each new point {AVERAGED}"),
        )
    } else if point.spec.strategy.hybrid().is_some() {
        (
            "`strategy.type = \"hybrid\"`",
            "strategy.type",
            "updates are predicted from small changes of the weights, which are lost in 16 bits"
                .to_owned(),
        )
    } else {
        return None;
    };
    let precision = point.spec.backend.precision;
    matches!(precision, Precision::F16 | Precision::Bf16).then(|| {
        let message = format!("{table} does not work in {}", precision.name());
        contradiction(point, path, message).note(note).help(format!(
            "set `backend.precision = \"f32\"`, or remove {table}"
        ))
    })
}
