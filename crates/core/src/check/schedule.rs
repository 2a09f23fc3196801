//! The rules of `[scheduler]`: warm-up, schedules and stages must fit each other and the training.

use super::Point;
use super::recipe::contradiction;
use crate::diagnostic::Diagnostic;
use crate::spec::own::{self, Place};
use crate::spec::scheduler::{Curve, Unit};
use crate::spec::section::Choice;

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
        let message = "the warm-up is set both in steps and in epochs";
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
                "`noam` needs a warm-up, since it decays from the end of the warm-up",
            )
            .help("add `warmup_steps = 4000` (the value of the paper), or another number"),
        ),
        Curve::OneCycle { .. } if length > 0 => {
            let path = if num_steps.is_some() { steps } else { epochs };
            Some(
                contradiction(
                    point,
                    path,
                    "`one_cycle` has a built-in warm-up, but a warm-up is set too",
                )
                .help("remove the warm-up; `peak_at` sets the length of the rise"),
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
                    format!("the length of `{path}` is set both in steps and in epochs"),
                )
                .related(point.span(&format!("{path}.steps")), "in steps here")
                .help("remove one of them"),
            ),
            (false, false) if !is_last => Some(
                contradiction(
                    point,
                    &format!("{path}.type"),
                    format!("`{path}` has no length, but another stage follows it"),
                )
                .help("add `epochs = 1` or `steps = 100` to it"),
            ),
            (true, false) | (false, true) if is_last => Some(
                contradiction(
                    point,
                    &format!("{path}.{key}"),
                    format!("`{path}` is the last stage and must not have a length"),
                )
                .help(format!(
                    "remove `{key}`: the last stage covers the rest of the training"
                )),
            ),
            _ => None,
        }
    })
}

/// Steps per epoch and in the whole training.
fn steps(point: &Point<'_>) -> Option<(usize, usize)> {
    let train = &point.spec.train;
    let per_epoch = point.data?.num_train.div_ceil(train.batch_size);
    (per_epoch > 0).then_some((per_epoch, per_epoch * train.epochs))
}

fn length_of_training(point: &Point<'_>) -> String {
    let (per_epoch, num_steps) = steps(point).unwrap_or_default();
    let train = &point.spec.train;
    format!(
        "{} items in batches of {} make {per_epoch} steps per epoch, {num_steps} in {} epochs",
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
        let message = format!("`scheduler.{key}` is {num}, but the whole training has {whole}");
        contradiction(point, &format!("scheduler.{key}"), message)
            .note(length_of_training(point))
            .help("shorten the warm-up, or train longer")
    })
}

/// Each schedule with its path, first step and length.
fn curves<'a>(point: &Point<'a>) -> Vec<(String, &'a Curve, usize, usize)> {
    let Some((per_epoch, num_steps)) = steps(point) else {
        return Vec::new();
    };
    let scheduler = &point.spec.scheduler;
    let mut start = scheduler.warmup(per_epoch);
    let rest = |start: usize| num_steps.saturating_sub(start);
    match &scheduler.curve {
        // Without the lengths, what follows cannot be checked.
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
    let (per_epoch, num_steps) = steps(point)?;
    if point.spec.scheduler.warmup(per_epoch) >= num_steps {
        // Already reported.
        return None;
    }
    let mut stages = curves(point).into_iter();
    let (path, _, start, _) = stages.find(|(path, _, start, _)| {
        *start >= num_steps && path != "scheduler" && !path.ends_with("[0]")
    })?;
    let message = format!(
        "`{path}` would begin at step {start}, but the whole training has {num_steps} steps"
    );
    Some(
        contradiction(point, &format!("{path}.type"), message)
            .note(length_of_training(point))
            .help("shorten the stages before it, or train longer"),
    )
}

pub fn epoch_units_begin_with_epochs(point: &Point<'_>) -> Option<Diagnostic> {
    let (per_epoch, _) = steps(point)?;
    let (path, _, start, _) = curves(point).into_iter().find(|(_, curve, start, _)| {
        curve.unit() == Unit::Epoch && !start.is_multiple_of(per_epoch)
    })?;
    let message = format!(
        "`{path}.unit` is \"epoch\", but the stage begins at step {start}, in the middle of an epoch of {per_epoch} steps"
    );
    Some(
        contradiction(point, &format!("{path}.unit"), message)
            .help("set what comes before it in epochs: `warmup_epochs`, and `epochs` in stages"),
    )
}

pub fn plateau_can_come(point: &Point<'_>) -> Option<Diagnostic> {
    let Curve::ReduceOnPlateau { patience, .. } = point.spec.scheduler.curve else {
        return None;
    };
    let epochs = point.spec.train.epochs;
    // The first epoch always counts as an improvement, and a rate after the last one is not used.
    (patience + 2 >= epochs).then(|| {
        let message = format!(
            "`scheduler.patience` is {patience}, but training has {epochs} epochs: the learning rate can never be lowered"
        );
        Diagnostic::warning("contradiction", message)
            .at(point.span("scheduler.patience"))
            .help("lower the patience, or train more epochs")
    })
}

pub fn milestones_are_in_order(point: &Point<'_>) -> Option<Diagnostic> {
    let curve = &point.spec.scheduler.curve;
    let stages = match curve {
        Curve::Sequence { stages } => stages.as_slice(),
        _ => &[],
    };
    let stages = stages.iter().enumerate();
    let stages = stages.map(|(at, stage)| (format!("scheduler.stages[{at}]"), &stage.curve));
    let all = [("scheduler".to_owned(), curve)].into_iter().chain(stages);
    all.into_iter().find_map(|(path, curve)| {
        let Curve::MultiStep { milestones, .. } = curve else {
            return None;
        };
        let at = (1..milestones.len()).find(|at| milestones[at - 1] >= milestones[*at])?;
        let mut sorted = milestones.clone();
        sorted.sort_unstable();
        let message = format!(
            "`{path}.milestones` is not in increasing order: {} follows {}",
            milestones[at],
            milestones[at - 1]
        );
        let diagnostic = contradiction(point, &format!("{path}.milestones[{at}]"), message);
        Some(diagnostic.help(format!("use `milestones = {sorted:?}`")))
    })
}

/// Factors of a schedule of the program's own, at a sample of its steps.
pub fn own_factors_are_rates(point: &Point<'_>) -> Option<Diagnostic> {
    const SAMPLE: usize = 10_000;
    let (steps_per_epoch, _) = steps(point)?;
    curves(point)
        .into_iter()
        .find_map(|(path, curve, _, num_steps)| {
            let Curve::Own(used) = curve else {
                return None;
            };
            let apart = num_steps.div_ceil(SAMPLE).max(1);
            let sample = (0..num_steps).step_by(apart);
            let wrong = sample.chain(num_steps.checked_sub(1)).find_map(|step| {
                let place = Place {
                    step,
                    num_steps,
                    steps_per_epoch,
                };
                own::factor(used, place).err()
            })?;
            let at = point.span(&format!("{path}.type"));
            Some(
                Diagnostic::error("own-part", wrong)
                    .at(at)
                    .help(own::REMEDY),
            )
        })
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
            Curve::MultiStep { milestones, .. } => ("milestones[0]", milestones[0], "change"),
            _ => return None,
        };
        (size >= length && length > 0).then(|| {
            let unit = curve.unit().name();
            let message = format!(
                "`{path}.{key}` is {size} {unit}s, but the schedule lasts {length}: it would never {what}"
            );
            contradiction(point, &format!("{path}.{key}"), message)
                .note(length_of_training(point))
                .help(match curve.unit() {
                    Unit::Step => "use a smaller number, or count in epochs with `unit = \"epoch\"`",
                    Unit::Epoch => "use a smaller number, or train longer",
                })
        })
    })
}
