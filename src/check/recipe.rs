//! The rules of the training recipe: `[train]`, `[scheduler]` and `[optimizer]`.

use super::Point;
use crate::diagnostic::Diagnostic;
use crate::spec::backend::Precision;
use crate::spec::method::{Method, Role};
use crate::spec::scheduler::{Curve, Unit};
use crate::spec::section::Choice;

fn contradiction(point: &Point<'_>, path: &str, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("contradiction", message).at(point.span(path))
}

pub fn micro_batch_fits_batch(point: &Point<'_>) -> Option<Diagnostic> {
    let train = &point.spec.train;
    (train.micro_batch_size > train.batch_size).then(|| {
        let message = format!(
            "`train.micro_batch_size` is {}, and a batch has {} items",
            train.micro_batch_size, train.batch_size
        );
        contradiction(point, "train.micro_batch_size", message)
            .note("a batch is computed in pieces of at most that many items")
            .help(format!(
                "write a number of at most {}, or a larger `batch_size`",
                train.batch_size
            ))
    })
}

pub fn patience_can_end(point: &Point<'_>) -> Option<Diagnostic> {
    let train = &point.spec.train;
    let patience = train.early_stopping?.patience;
    (patience >= train.epochs).then(|| {
        let message = format!(
            "`train.early_stopping.patience` is {patience}, and the training has {} epochs: it could never stop early",
            train.epochs
        );
        contradiction(point, "train.early_stopping.patience", message)
            .help("write a smaller patience, more epochs, or remove `[train.early_stopping]`")
    })
}

pub fn averages_are_made(point: &Point<'_>) -> Option<Diagnostic> {
    let train = &point.spec.train;
    let watched = train.early_stopping.and_then(|stopping| stopping.metric);
    let asked = [
        ("objective.metric", Some(point.spec.objective.metric)),
        ("train.early_stopping.metric", watched),
    ];
    let asked = asked.into_iter().find_map(|(path, metric)| {
        let metric = metric.filter(|metric| metric.is_of_ema())?;
        Some((path, metric))
    });
    let (path, metric) = asked.filter(|_| train.ema.is_none())?;
    let name = metric.name();
    let message = format!("`{path}` is \"{name}\", and no average of the weights is kept");
    Some(
        contradiction(point, path, message)
            .help("add a line `[train.ema]`, or write a metric of `valid`"),
    )
}

pub fn averages_are_precise(point: &Point<'_>) -> Option<Diagnostic> {
    point.spec.train.ema?;
    let precision = point.spec.backend.precision;
    matches!(precision, Precision::F16 | Precision::Bf16).then(|| {
        let message = format!(
            "`[train.ema]` is written, and an average in {} does not follow the weights",
            precision.name()
        );
        contradiction(point, "train.ema", message)
            .note("each step changes the average by a small part, which is lost in 16 bits")
            .help("write `backend.precision = \"f32\"`, or remove `[train.ema]`")
    })
}

pub fn warmup_is_one(point: &Point<'_>) -> Option<Diagnostic> {
    let scheduler = &point.spec.scheduler;
    let written = ["warmup_steps", "warmup_epochs"].map(|key| {
        let num = match key {
            "warmup_steps" => scheduler.warmup_steps,
            _ => scheduler.warmup_epochs,
        };
        (format!("scheduler.{key}"), num)
    });
    let [(steps, num_steps), (epochs, num_epochs)] = &written;
    if num_steps.is_some() && num_epochs.is_some() {
        let message = "the warm-up is written twice, in steps and in epochs";
        return Some(
            contradiction(point, epochs, message)
                .related(point.span(steps), "in steps here")
                .help("remove one of them"),
        );
    }
    let length = num_steps.or(*num_epochs).unwrap_or(0);
    match scheduler.curve {
        Curve::Noam if length == 0 => Some(
            contradiction(
                point,
                "scheduler.type",
                "`noam` falls from the end of its warm-up on, and there is no warm-up",
            )
            .help("add `warmup_steps = 4000` (the paper's), or another number"),
        ),
        Curve::OneCycle { .. } if length > 0 => {
            let path = if num_steps.is_some() { steps } else { epochs };
            Some(
                contradiction(
                    point,
                    path,
                    "`one_cycle` rises by itself, and a warm-up is written too",
                )
                .help("remove the warm-up; `peak_at` says how long the rise takes"),
            )
        }
        _ => None,
    }
}

pub fn stages_have_lengths(point: &Point<'_>) -> Option<Diagnostic> {
    let Curve::Sequence { stages } = &point.spec.scheduler.curve else {
        return None;
    };
    let num = stages.len();
    stages.iter().enumerate().find_map(|(at, stage)| {
        let path = format!("scheduler.stages[{at}]");
        let is_last = at + 1 == num;
        let key = if stage.steps.is_some() {
            "steps"
        } else {
            "epochs"
        };
        match (stage.steps.is_some(), stage.epochs.is_some()) {
            (true, true) => Some(
                contradiction(
                    point,
                    &format!("{path}.epochs"),
                    format!("`{path}` has its length twice, in steps and in epochs"),
                )
                .related(point.span(&format!("{path}.steps")), "in steps here")
                .help("remove one of them"),
            ),
            (false, false) if !is_last => Some(
                contradiction(
                    point,
                    &format!("{path}.type"),
                    format!("`{path}` has no length, and another stage comes after it"),
                )
                .help("add `epochs = …` or `steps = …` below it"),
            ),
            (true, false) | (false, true) if is_last => Some(
                contradiction(
                    point,
                    &format!("{path}.{key}"),
                    format!("`{path}` is the last stage, and has a length"),
                )
                .help(format!(
                    "remove `{key}`: the last stage takes what is left of the training"
                )),
            ),
            _ => None,
        }
    })
}

/// Steps of an epoch and of the whole training.
fn steps(point: &Point<'_>) -> Option<(usize, usize)> {
    let train = &point.spec.train;
    let per_epoch = point.data?.num_train.div_ceil(train.batch_size);
    (per_epoch > 0).then_some((per_epoch, per_epoch * train.epochs))
}

fn length_of_training(point: &Point<'_>) -> String {
    let (per_epoch, num_steps) = steps(point).unwrap_or_default();
    let train = &point.spec.train;
    format!(
        "{} items in batches of {} make {per_epoch} steps an epoch, {num_steps} in {} epochs",
        point.data.map_or(0, |data| data.num_train),
        train.batch_size,
        train.epochs
    )
}

pub fn warmup_ends(point: &Point<'_>) -> Option<Diagnostic> {
    let (per_epoch, num_steps) = steps(point)?;
    let scheduler = &point.spec.scheduler;
    let (key, num, whole) = match (scheduler.warmup_steps, scheduler.warmup_epochs) {
        (_, Some(num)) => (
            "warmup_epochs",
            num,
            format!("{} epochs", point.spec.train.epochs),
        ),
        (Some(num), _) => ("warmup_steps", num, format!("{num_steps} steps")),
        (None, None) => return None,
    };
    (scheduler.warmup(per_epoch) >= num_steps).then(|| {
        let message = format!("`scheduler.{key}` is {num}, and the whole training has {whole}");
        contradiction(point, &format!("scheduler.{key}"), message)
            .note(length_of_training(point))
            .help("write a shorter warm-up, or train longer")
    })
}

/// Each curve of the schedule with its path, the step that it begins at and its length.
fn curves<'a>(point: &Point<'a>) -> Vec<(String, &'a Curve, usize, usize)> {
    let Some((per_epoch, num_steps)) = steps(point) else {
        return Vec::new();
    };
    let scheduler = &point.spec.scheduler;
    let mut start = scheduler.warmup(per_epoch);
    let rest = |start: usize| num_steps.saturating_sub(start);
    match &scheduler.curve {
        // Without the lengths nothing can be said of what comes after them.
        Curve::Sequence { .. } if stages_have_lengths(point).is_some() => Vec::new(),
        Curve::Sequence { stages } => {
            let stages = stages.iter().enumerate().map(|(at, stage)| {
                let length = stage.num_steps(per_epoch).unwrap_or(rest(start));
                let curve = (
                    format!("scheduler.stages[{at}]"),
                    &stage.curve,
                    start,
                    length,
                );
                start = start.saturating_add(length);
                curve
            });
            stages.collect()
        }
        curve => vec![("scheduler".into(), curve, start, rest(start))],
    }
}

pub fn stages_are_reached(point: &Point<'_>) -> Option<Diagnostic> {
    let (_, num_steps) = steps(point)?;
    let mut stages = curves(point).into_iter();
    let (path, _, start, _) = stages.find(|(path, _, start, _)| {
        *start >= num_steps && path != "scheduler" && !path.ends_with("[0]")
    })?;
    let message = format!(
        "`{path}` would begin at step {start}, and the whole training has {num_steps} steps"
    );
    Some(
        contradiction(point, &format!("{path}.type"), message)
            .note(length_of_training(point))
            .help("write shorter stages before it, or train longer"),
    )
}

pub fn epoch_units_begin_with_epochs(point: &Point<'_>) -> Option<Diagnostic> {
    let (per_epoch, _) = steps(point)?;
    let (path, _, start, _) = curves(point).into_iter().find(|(_, curve, start, _)| {
        curve.unit() == Unit::Epoch && !start.is_multiple_of(per_epoch)
    })?;
    let message = format!(
        "`{path}.unit` is \"epoch\", and it begins at step {start}, in the middle of an epoch of {per_epoch} steps"
    );
    Some(
        contradiction(point, &format!("{path}.unit"), message)
            .help("write what comes before it in epochs: `warmup_epochs`, and `epochs` in stages"),
    )
}

pub fn schedule_changes(point: &Point<'_>) -> Option<Diagnostic> {
    let (per_epoch, _) = steps(point)?;
    curves(point).into_iter().find_map(|(path, curve, _, length)| {
        let length = match curve.unit() {
            Unit::Step => length,
            Unit::Epoch => length.div_ceil(per_epoch),
        };
        let (key, size, what) = match curve {
            Curve::Step { step_size, .. } => ("step_size", *step_size, "change"),
            Curve::CosineRestarts { period, .. } => ("period", *period, "restart"),
            _ => return None,
        };
        (size >= length && length > 0).then(|| {
            let unit = curve.unit().name();
            let message = format!(
                "`{path}.{key}` is {size} {unit}s, and the schedule lasts {length}: it would never {what}"
            );
            contradiction(point, &format!("{path}.{key}"), message)
                .note(length_of_training(point))
                .help(match curve.unit() {
                    Unit::Step => "write a smaller number, or count in epochs with `unit = \"epoch\"`",
                    Unit::Epoch => "write a smaller number, or train longer",
                })
        })
    })
}

pub fn momentum_is_there(point: &Point<'_>) -> Option<Diagnostic> {
    match point.spec.optimizer.method {
        Method::Sgd {
            nesterov: true,
            momentum: 0.0,
            ..
        } => Some(
            contradiction(
                point,
                "optimizer.nesterov",
                "`optimizer.nesterov` is set, and there is no momentum to look ahead with",
            )
            .help("write a `momentum` such as 0.9, or remove `nesterov`"),
        ),
        Method::Sgd {
            dampening,
            momentum: 0.0,
            ..
        } if dampening > 0.0 => Some(
            contradiction(
                point,
                "optimizer.dampening",
                "`optimizer.dampening` is set, and there is no momentum to dampen",
            )
            .help("write a `momentum` such as 0.9, or remove `dampening`"),
        ),
        Method::Sgd {
            dampening,
            nesterov: true,
            ..
        } if dampening > 0.0 => Some(
            contradiction(
                point,
                "optimizer.dampening",
                "`optimizer.dampening` is set, and Nesterov's momentum is not defined with it",
            )
            .help("remove `dampening`, or remove `nesterov`"),
        ),
        _ => None,
    }
}

pub fn clip_is_one(point: &Point<'_>) -> Option<Diagnostic> {
    let clip = point.spec.optimizer.clip.as_ref()?;
    let limits = [
        ("value", clip.value),
        ("norm", clip.norm),
        ("global_norm", clip.global_norm),
    ];
    let keys: Vec<_> = limits.iter().filter(|(_, limit)| limit.is_some()).collect();
    match keys.as_slice() {
        [] => Some(
            contradiction(
                point,
                "optimizer.clip",
                "`[optimizer.clip]` does not say how gradients are clipped",
            )
            .help("add `global_norm = 1.0` below it (or `norm`, or `value`), or remove it"),
        ),
        [_] => None,
        [(first, _), (second, _), ..] => Some(
            contradiction(
                point,
                &format!("optimizer.clip.{second}"),
                format!("`optimizer.clip` has both `{first}` and `{second}`"),
            )
            .related(
                point.span(&format!("optimizer.clip.{first}")),
                "the other one",
            )
            .help("remove one of them"),
        ),
    }
}

/// Burn's optimizers take their settings as 32-bit numbers.
pub fn numbers_fit_f32(point: &Point<'_>) -> Option<Diagnostic> {
    let mut settings = point.spec.optimizer.settings().into_iter();
    let (key, value, _) = settings.find(|(_, value, role)| {
        let rounded = *value as f32;
        let bound = match role {
            Role::Share => 1.0,
            Role::Scale | Role::Divisor => f32::MAX,
        };
        rounded >= bound || (*value > 0.0 && rounded == 0.0)
    })?;
    let message = format!(
        "`optimizer.{key}` is {value:e}, which 32 bits round to {}",
        value as f32
    );
    Some(
        Diagnostic::error("out-of-range", message)
            .at(point.span(&format!("optimizer.{key}")))
            .note("Burn's optimizers take their settings as 32-bit numbers")
            .help("write a number between 1e-38 and 1e38, and for shares one below 0.9999999"),
    )
}

/// The smallest number above zero in IEEE half precision.
const SMALLEST_F16: f64 = 5.97e-8;

pub fn epsilon_is_not_zero(point: &Point<'_>) -> Option<Diagnostic> {
    if point.spec.backend.precision != Precision::F16 {
        return None;
    }
    let mut settings = point.spec.optimizer.settings().into_iter();
    let (key, value, _) =
        settings.find(|(_, value, role)| *role == Role::Divisor && *value < SMALLEST_F16)?;
    let message =
        format!("`optimizer.{key}` is {value:e}, which is 0 in f16: updates would divide by zero");
    let name = key.rsplit('.').next().unwrap_or(&key);
    Some(
        contradiction(point, &format!("optimizer.{key}"), message)
            .note(format!(
                "the smallest number above 0 in f16 is {SMALLEST_F16:e}"
            ))
            .help(format!(
                "write `{name} = 1e-4`, or another precision such as \"bf16\""
            )),
    )
}
