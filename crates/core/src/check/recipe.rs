//! The rules of the training recipe: `[train]` and `[optimizer]`.

use super::Point;
use crate::diagnostic::Diagnostic;
use crate::spec::backend::Precision;
use crate::spec::method::{Method, Role};
use crate::spec::model::layer::{LayerKind, Norm};
use crate::spec::section::Choice;

pub(super) fn contradiction(
    point: &Point<'_>,
    path: &str,
    message: impl Into<String>,
) -> Diagnostic {
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

/// Pieces of a batch are not the batch where a layer looks at all of it.
pub fn pieces_have_statistics_of_their_own(point: &Point<'_>) -> Option<Diagnostic> {
    let train = &point.spec.train;
    let layers = &point.network?.layers;
    let norm = layers
        .iter()
        .find(|layer| matches!(layer.kind, LayerKind::Norm(Norm::Batch { .. })))?;
    (train.micro_batch_size < train.batch_size).then(|| {
        let message = format!(
            "`{}` finds mean and deviation over {} items at a time, not over the {} of a step",
            norm.name, train.micro_batch_size, train.batch_size
        );
        Diagnostic::warning("contradiction", message)
            .at(point.span("train.micro_batch_size"))
            .help("use `group_norm` or `layer_norm` if training is to equal that of whole batches")
    })
}

pub fn patience_can_end(point: &Point<'_>) -> Option<Diagnostic> {
    let train = &point.spec.train;
    let patience = train.early_stopping?.patience;
    // The first epoch is never waited for, and after the last nothing is left to stop.
    (patience + 1 >= train.epochs).then(|| {
        let message = format!(
            "`train.early_stopping.patience` is {patience}, and the training has {} epochs: it could never stop early",
            train.epochs
        );
        Diagnostic::warning("contradiction", message)
            .at(point.span("train.early_stopping.patience"))
            .help("write a smaller patience, more epochs, or remove `[train.early_stopping]`")
    })
}

pub fn averages_are_made(point: &Point<'_>) -> Option<Diagnostic> {
    let train = &point.spec.train;
    let watched = train.early_stopping.and_then(|stopping| stopping.metric);
    let asked = [
        ("objective.metric", point.spec.objective.metric),
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

/// Burn keeps Adafactor's state in 32 bits, and reads it back in the run's precision: a run that was
/// stopped could not go on.
pub fn adafactor_is_resumable(point: &Point<'_>) -> Option<Diagnostic> {
    let precision = point.spec.backend.precision;
    let is_half = matches!(precision, Precision::F16 | Precision::Bf16);
    let is_adafactor = matches!(point.spec.optimizer.method, Method::Adafactor { .. });
    (is_half && is_adafactor).then(|| {
        let message = format!(
            "`adafactor` cannot go on from a checkpoint in {}",
            precision.name()
        );
        contradiction(point, "optimizer.type", message)
            .note("its state is kept in 32 bits, and Burn reads it back in the run's precision")
            .help("write `precision = \"f32\"`, or another optimizer such as \"adamw\"")
    })
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
