//! The rules, one function each.

use super::Point;
use crate::check::network::Network;
use crate::data::DataPlan;
use crate::diagnostic::{Diagnostic, counted};
use crate::spec::ExperimentSpec;
use crate::spec::kind::show_bytes;
use crate::spec::section::Choice;

pub fn batch_fits_split(point: &Point<'_>) -> Option<Diagnostic> {
    let data = point.data?;
    let batch_size = point.spec.train.batch_size;
    let split = &point.spec.data.split;
    if split.folds.is_none() && split.valid + split.test >= 1.0 {
        // Refused by itself.
        return None;
    }
    (batch_size > data.num_train && data.num_train > 0).then(|| {
        let unwritten = match point.root.at("train.batch_size") {
            Some(_) => "",
            None => " when not written",
        };
        let message = format!(
            "`train.batch_size` is {batch_size}{unwritten}, and the train split has {}",
            counted(data.num_train, "item")
        );
        Diagnostic::error("contradiction", message)
            .at(point.span("train.batch_size"))
            .note(sizes(data))
            .help(format!("write a batch size of at most {}", data.num_train))
    })
}

pub(super) fn sizes(data: &DataPlan) -> String {
    let test = match data.num_test {
        0 => "no test split".into(),
        num => counted(num, "test item"),
    };
    format!(
        "`{}` is split into {}, {} and {test}",
        data.dataset.name(),
        counted(data.num_train, "train item"),
        counted(data.num_valid, "valid item")
    )
}

pub fn host_is_one_device(point: &Point<'_>) -> Option<Diagnostic> {
    let device = point.spec.backend.device?;
    let name = device.backend.name();
    (device.backend.is_host() && device.index > 0).then(|| {
        let message = format!("there is one `{name}` device, and `{device}` asks for another");
        Diagnostic::error("device", message)
            .at(point.span("backend.device"))
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

/// The bytes that a run cannot do without: its items where they are not in a mapped file, its weights with their gradients and optimizer
/// state, and one batch with the activations that the backward pass needs. What the program itself and
/// its allocator hold comes on top.
pub fn least_memory(spec: &ExperimentSpec, data: &DataPlan, network: &Network) -> u64 {
    let float = spec.backend.precision.num_bytes();
    let item: u64 = data.input.shape.iter().product::<usize>() as u64;
    let train = &spec.train;
    let is_in_pieces = train.micro_batch_size < train.batch_size;
    let tensors_per_parameter =
        2 + spec.optimizer.method.num_states() + is_in_pieces as u64 + train.ema.is_some() as u64;
    let batch = train.micro_batch_size as u64;
    let parameters = network
        .num_parameters
        .saturating_mul(tensors_per_parameter * float);
    let activations = item.saturating_add(network.activations_per_item);
    data.held_bytes()
        .saturating_add(parameters)
        .saturating_add(activations.saturating_mul(batch * float))
}
