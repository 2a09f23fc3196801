//! The rules, one function each.

use super::Point;
use crate::check::network::Network;
use crate::data::DataPlan;
use crate::diagnostic::Diagnostic;
use crate::spec::ExperimentSpec;
use crate::spec::backend::Precision;
use crate::spec::data::{DataSource, MnistPart};
use crate::spec::kind::show_bytes;
use crate::spec::optimizer::OptimizerSpec;
use crate::spec::section::Choice;

pub fn split_leaves_items(point: &Point<'_>) -> Option<Diagnostic> {
    let split = &point.spec.data.split;
    if split.valid + split.test >= 1.0 {
        let message = format!(
            "`data.split` holds out {} for valid and {} for test, which leaves nothing to train on",
            split.valid, split.test
        );
        return Some(
            Diagnostic::error("contradiction", message)
                .at(point.span("data.split.valid"))
                .help("the two fractions must add up to less than 1"),
        );
    }
    let data = point.data?;
    let empty = [
        ("train", data.num_train, true),
        ("valid", data.num_valid, true),
        ("test", data.num_test, split.test > 0.0),
    ];
    let (name, _, _) = empty
        .into_iter()
        .find(|(_, num, wanted)| *wanted && *num == 0)?;
    let key = if name == "train" { "valid" } else { name };
    Some(
        Diagnostic::error("contradiction", format!("the {name} split has no items"))
            .at(point.span(&format!("data.split.{key}")))
            .note(sizes(data))
            .help("choose a larger fraction for it"),
    )
}

pub fn one_test_split(point: &Point<'_>) -> Option<Diagnostic> {
    let split = &point.spec.data.split;
    let official = matches!(
        point.spec.data.source,
        DataSource::Mnist {
            part: MnistPart::All,
            ..
        }
    );
    (official && split.test > 0.0).then(|| {
        Diagnostic::error(
            "contradiction",
            "`data.split.test` is set, and MNIST has a test part of its own",
        )
        .at(point.span("data.split.test"))
        .help("remove `test`, or write `part = \"train\"` to split the 60,000 images alone")
    })
}

pub fn batch_fits_split(point: &Point<'_>) -> Option<Diagnostic> {
    let data = point.data?;
    let batch_size = point.spec.train.batch_size;
    (batch_size > data.num_train && data.num_train > 0).then(|| {
        let message = format!(
            "`train.batch_size` is {batch_size}, and the train split has {} items",
            data.num_train
        );
        Diagnostic::error("contradiction", message)
            .at(point.span("train.batch_size"))
            .note(sizes(data))
            .help(format!("write a batch size of at most {}", data.num_train))
    })
}

fn sizes(data: &DataPlan) -> String {
    let test = match data.num_test {
        0 => "no test split".into(),
        num => format!("{num} test items"),
    };
    format!(
        "`{}` is split into {} train items, {} valid items and {test}",
        data.dataset.name(),
        data.num_train,
        data.num_valid
    )
}

pub fn warmup_ends(point: &Point<'_>) -> Option<Diagnostic> {
    let data = point.data?;
    let train = &point.spec.train;
    let num_steps = data.num_train.div_ceil(train.batch_size) * train.epochs;
    let warmup_steps = point.spec.scheduler.warmup_steps;
    (warmup_steps >= num_steps.max(1)).then(|| {
        let message = format!(
            "`scheduler.warmup_steps` is {warmup_steps}, and the whole training has {num_steps} steps"
        );
        Diagnostic::error("contradiction", message)
            .at(point.span("scheduler.warmup_steps"))
            .note(format!(
                "{} items in batches of {} make {} steps an epoch, for {} epochs",
                data.num_train,
                train.batch_size,
                data.num_train.div_ceil(train.batch_size),
                train.epochs
            ))
            .help("write fewer warm-up steps, or train longer")
    })
}

pub fn nesterov_has_momentum(point: &Point<'_>) -> Option<Diagnostic> {
    let OptimizerSpec::Sgd {
        momentum, nesterov, ..
    } = &point.spec.optimizer
    else {
        return None;
    };
    (*nesterov && *momentum == 0.0).then(|| {
        Diagnostic::error(
            "contradiction",
            "`optimizer.nesterov` is set, and there is no momentum to look ahead with",
        )
        .at(point.span("optimizer.nesterov"))
        .help("write a `momentum` such as 0.9, or remove `nesterov`")
    })
}

/// Burn's optimizers take their settings as 32-bit numbers.
pub fn numbers_fit_f32(point: &Point<'_>) -> Option<Diagnostic> {
    let optimizer = &point.spec.optimizer;
    let mut numbers = vec![("learning_rate", optimizer.learning_rate(), f32::MAX)];
    match optimizer {
        OptimizerSpec::Sgd {
            momentum,
            weight_decay,
            ..
        } => numbers.extend([
            ("momentum", *momentum, 1.0),
            ("weight_decay", *weight_decay, f32::MAX),
        ]),
        OptimizerSpec::Adam(adam) | OptimizerSpec::Adamw(adam) => numbers.extend([
            ("beta_1", adam.beta_1, 1.0),
            ("beta_2", adam.beta_2, 1.0),
            ("epsilon", adam.epsilon, f32::MAX),
            ("weight_decay", adam.weight_decay, f32::MAX),
        ]),
    }
    let wrong = |(_, value, bound): &(&str, f64, f32)| {
        let rounded = *value as f32;
        rounded >= *bound || (*value > 0.0 && rounded == 0.0)
    };
    let (key, value, _) = numbers.into_iter().find(wrong)?;
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
    let (OptimizerSpec::Adam(adam) | OptimizerSpec::Adamw(adam)) = &point.spec.optimizer else {
        return None;
    };
    (point.spec.backend.precision == Precision::F16 && adam.epsilon < SMALLEST_F16).then(|| {
        let message = format!(
            "`optimizer.epsilon` is {:e}, which is 0 in f16: updates would divide by zero",
            adam.epsilon
        );
        Diagnostic::error("contradiction", message)
            .at(point.span("optimizer.epsilon"))
            .note(format!(
                "the smallest number above 0 in f16 is {SMALLEST_F16:e}"
            ))
            .help("write `epsilon = 1e-4`, or another precision such as \"bf16\"")
    })
}

pub fn device_is_compiled(point: &Point<'_>) -> Option<Diagnostic> {
    let device = point.spec.backend.device;
    let name = device.backend.name();
    let refuse = |message| Diagnostic::error("device", message).at(point.span("backend.device"));
    if !device.backend.is_compiled() {
        return Some(
            refuse(format!("this build of runner has no `{name}` backend"))
                .help(format!(
                    "build it in: cargo run --release --features {name} -- …"
                ))
                .help("`runner devices` lists what this build has"),
        );
    }
    (device.backend.is_host() && device.index > 0).then(|| {
        refuse(format!(
            "there is one `{name}` device, and `{device}` asks for another"
        ))
        .help(format!("write \"{name}\""))
    })
}

pub fn memory_suffices(point: &Point<'_>) -> Option<Diagnostic> {
    let limit = point.spec.memory.limit?.0;
    let needed = least_memory(point.spec, point.data?, point.network?);
    (needed > limit).then(|| {
        let message = format!(
            "`memory.limit` is {}, and a run holds at least {}",
            show_bytes(limit),
            show_bytes(needed)
        );
        Diagnostic::error("memory", message)
            .at(point.span("memory.limit"))
            .note("that is the items, the weights with their gradients and optimizer state, and the activations of one batch")
            .help("raise the limit, or choose a smaller batch or model")
    })
}

/// The bytes that a run cannot do without: its items, its weights with their gradients and optimizer
/// state, and one batch with the activations that the backward pass needs. What the program itself and
/// its allocator hold comes on top.
pub fn least_memory(spec: &ExperimentSpec, data: &DataPlan, network: &Network) -> u64 {
    let float = spec.backend.precision.num_bytes();
    let item: u64 = data.item_shape.iter().product::<usize>() as u64;
    let num_items = (data.num_train + data.num_valid + data.num_test) as u64;
    let tensors_per_parameter = 2 + spec.optimizer.num_states();
    let batch = spec.train.batch_size as u64;
    num_items * item * 4
        + network.num_parameters * tensors_per_parameter * float
        + batch * (item + network.activations_per_item) * float
}
