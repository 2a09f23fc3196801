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
            "`train.micro_batch_size` is {}, but a batch has {} items",
            train.micro_batch_size, train.batch_size
        );
        contradiction(point, "train.micro_batch_size", message)
            .note("a batch is computed in pieces of at most `micro_batch_size` items")
            .help(format!(
                "set at most {}, or raise `batch_size`",
                train.batch_size
            ))
    })
}

/// Layers with batch statistics see a micro-batch instead of the batch.
pub fn pieces_have_statistics_of_their_own(point: &Point<'_>) -> Option<Diagnostic> {
    let train = &point.spec.train;
    let layers = &point.network?.layers;
    let norm = layers
        .iter()
        .find(|layer| matches!(layer.kind, LayerKind::Norm(Norm::Batch { .. })))?;
    (train.micro_batch_size < train.batch_size).then(|| {
        let message = format!(
            "`{}` computes mean and deviation over {} items at a time, not over the {} of a step",
            norm.name, train.micro_batch_size, train.batch_size
        );
        Diagnostic::warning("contradiction", message)
            .at(point.span("train.micro_batch_size"))
            .help("use `group_norm` or `layer_norm` if training must match that of whole batches")
    })
}

/// A batch norm over one value, which it makes 0.
pub fn batches_have_a_variance(point: &Point<'_>) -> Option<Diagnostic> {
    let train = &point.spec.train;
    let (network, data) = (point.network?, point.data?);
    let norm = network.layers.iter().find(|layer| {
        let is_batch_norm = matches!(layer.kind, LayerKind::Norm(Norm::Batch { .. }));
        is_batch_norm && layer.inputs[0].shape.dims[1..].iter().product::<usize>() == 1
    })?;
    let size = train.micro_batch_size.min(train.batch_size).max(1);
    // Items of the last batch, and of its last piece.
    let last = data.num_train % train.batch_size.max(1);
    let key = if train.micro_batch_size < train.batch_size {
        "train.micro_batch_size"
    } else {
        "train.batch_size"
    };
    if size == 1 {
        let message = format!(
            "`{}` computes mean and deviation over the items of a batch, which has one: everything becomes 0",
            norm.name
        );
        let wrong = Diagnostic::error("contradiction", message).at(point.span(key));
        return Some(wrong.help("use larger batches, or `layer_norm`"));
    }
    let is_single = last > 0 && last % size == 1 || train.batch_size % size == 1;
    is_single.then(|| {
        let message = format!(
            "`{}` computes mean and deviation over the items of a batch, and one in each epoch has a single item",
            norm.name
        );
        Diagnostic::warning("contradiction", message)
            .at(point.span(key))
            .note(format!("the train split has {} items", data.num_train))
            .help("choose another size, so that no batch is left with one item")
    })
}

pub fn patience_can_end(point: &Point<'_>) -> Option<Diagnostic> {
    let train = &point.spec.train;
    let patience = train.early_stopping?.patience;
    // The first epoch always counts as an improvement, and after the last one there is nothing to stop.
    (patience + 1 >= train.epochs).then(|| {
        let message = format!(
            "`train.early_stopping.patience` is {patience}, but training has {} epochs: it can never stop early",
            train.epochs
        );
        Diagnostic::warning("contradiction", message)
            .at(point.span("train.early_stopping.patience"))
            .help("lower the patience, train more epochs, or remove `[train.early_stopping]`")
    })
}

/// Burn saves Adafactor's state in 32 bits, but loads it in the precision of the run: a stopped run could not resume.
pub fn adafactor_is_resumable(point: &Point<'_>) -> Option<Diagnostic> {
    let precision = point.spec.backend.precision;
    let is_half = matches!(precision, Precision::F16 | Precision::Bf16);
    let is_adafactor = matches!(point.spec.optimizer.method, Method::Adafactor { .. });
    (is_half && is_adafactor).then(|| {
        let message = format!(
            "`adafactor` cannot resume from a checkpoint in {}",
            precision.name()
        );
        contradiction(point, "optimizer.type", message)
            .note("its state is saved in 32 bits, but Burn loads it in the precision of the run")
            .help("set `precision = \"f32\"`, or use another optimizer such as \"adamw\"")
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
                "`optimizer.nesterov` has no effect without `momentum`",
            )
            .help("set `momentum = 0.9`, or remove `nesterov`"),
        ),
        Method::Sgd {
            dampening,
            momentum: 0.0,
            ..
        } if dampening > 0.0 => Some(
            contradiction(
                point,
                "optimizer.dampening",
                "`optimizer.dampening` has no effect without `momentum`",
            )
            .help("set `momentum = 0.9`, or remove `dampening`"),
        ),
        Method::Sgd {
            dampening,
            nesterov: true,
            ..
        } if dampening > 0.0 => Some(
            contradiction(
                point,
                "optimizer.dampening",
                "`optimizer.dampening` and `optimizer.nesterov` are mutually exclusive",
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
            contradiction(point, "optimizer.clip", "`[optimizer.clip]` is empty")
                .help("set `global_norm = 1.0` (or `norm`, or `value`), or remove it"),
        ),
        [_] => None,
        [(first, _), (second, _), ..] => Some(
            contradiction(
                point,
                &format!("optimizer.clip.{second}"),
                format!("`optimizer.clip` sets both `{first}` and `{second}`"),
            )
            .related(
                point.span(&format!("optimizer.clip.{first}")),
                "the other one",
            )
            .help("remove one of them"),
        ),
    }
}

/// Burn's optimizers store their settings as 32-bit numbers.
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
        "`optimizer.{key}` is {value:e}, which rounds to {} in 32 bits",
        value as f32
    );
    Some(
        Diagnostic::error("out-of-range", message)
            .at(point.span(&format!("optimizer.{key}")))
            .note("Burn's optimizers store their settings as 32-bit numbers")
            .help("use a number between 1e-38 and 1e38, and for fractions one below 0.9999999"),
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
                "the smallest positive number in f16 is {SMALLEST_F16:e}"
            ))
            .help(format!(
                "set `{name} = 1e-4`, or another precision such as \"bf16\""
            )),
    )
}
