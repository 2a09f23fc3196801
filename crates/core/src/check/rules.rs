//! The rules, one function each.

use super::Point;
use super::forecast::{Demand, FORECAST_REMEDY, Forecast};
use crate::data::DataPlan;
use crate::diagnostic::{Diagnostic, counted};
use crate::show::show_bytes;
use crate::spec::backend::{Backend, DeviceName};
use crate::spec::memory::OnExceed;
use crate::spec::section::Choice;

pub fn batch_fits_split(point: &Point<'_>) -> Option<Diagnostic> {
    let data = point.data?;
    let batch_size = point.spec.train.batch_size;
    let split = &point.spec.data.split;
    if split.folds.is_none() && split.valid + split.test >= 1.0 {
        // Already refused.
        return None;
    }
    (batch_size > data.num_train && data.num_train > 0).then(|| {
        let message = format!(
            "`train.batch_size` is {batch_size}, but the train split has {}",
            counted(data.num_train, "item")
        );
        Diagnostic::error("contradiction", message)
            .at(point.span("train.batch_size"))
            .note(sizes(data))
            .help(format!("set a batch size of at most {}", data.num_train))
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
        let message =
            format!("this machine has one `{name}` device, and `{device}` does not exist");
        Diagnostic::error("device", message)
            .at(point.span("backend.device"))
            .help(format!("write \"{name}\""))
    })
}

pub fn kernels_have_their_name(point: &Point<'_>) -> Option<Diagnostic> {
    let backend = &point.spec.backend;
    if !backend.has_former_name {
        return None;
    }
    if point.root.span_at("backend.kernels").is_some() {
        let message = "`backend.conv` is the former name of `backend.kernels`, and both are set";
        let diagnostic = Diagnostic::error("contradiction", message);
        return Some(
            diagnostic
                .at(point.span("backend.conv"))
                .help("remove `conv`"),
        );
    }
    let name = backend.kernels.name();
    let diagnostic = Diagnostic::warning("deprecated", "`backend.conv` is now `backend.kernels`")
        .at(point.span("backend.conv"))
        .note("it decides about all layers that runner has kernels for, not only convolutions")
        .help(format!("write `kernels = \"{name}\"`"));
    Some(diagnostic)
}

pub fn on_exceed_is_one_way(point: &Point<'_>) -> Option<Diagnostic> {
    let rungs = &point.spec.memory.on_exceed;
    let twice = rungs
        .iter()
        .enumerate()
        .find(|(at, rung)| rungs[..*at].contains(rung));
    let (message, help) = match twice {
        Some((_, rung)) => (
            format!("`memory.on_exceed` contains \"{}\" twice", rung.name()),
            "list it once: each remedy is applied as often as it helps",
        ),
        None if rungs.len() > 1 && rungs.contains(&OnExceed::Refuse) => (
            "`memory.on_exceed` contains \"refuse\" and other remedies".to_owned(),
            "use \"refuse\" on its own, or remove it: a run fails anyway when no remedy is left",
        ),
        None => return None,
    };
    let diagnostic = Diagnostic::error("contradiction", message);
    Some(diagnostic.at(point.span("memory.on_exceed")).help(help))
}

pub fn memory_suffices(point: &Point<'_>) -> Option<Diagnostic> {
    let limit = point.spec.memory.limit?.0;
    let spec = point.spec;
    // The device behind `auto` is not known here: a GPU keeps no items on the host, and the host has other kernels.
    let any = [Backend::Wgpu, Backend::Flex].map(|backend| DeviceName { backend, index: 0 });
    let devices = spec
        .backend
        .device
        .map_or(any.to_vec(), |device| vec![device]);
    let (network, data) = (point.network?, point.data?);
    let needed = devices.into_iter().map(|device| {
        let demand = Demand {
            device,
            precision: spec.backend.precision,
            kernels: spec.backend.kernels,
            network,
            optimizer: &spec.optimizer,
            train: &spec.train,
            strategy: &spec.strategy,
            loss: spec.loss.as_ref(),
            // It is found after the rules.
            teacher: None,
            data,
        };
        Forecast::least_after(&demand, &spec.memory.on_exceed)
    });
    let needed = needed.min()??;
    (needed > limit).then(|| {
        let message = format!(
            "`memory.limit` is {}, but a run needs at least {}",
            show_bytes(limit),
            show_bytes(needed)
        );
        Diagnostic::error("memory", message)
            .at(point.span("memory.limit"))
            .note("this covers the items, the weights with their gradients and optimizer state, and the activations of one batch")
            .help(FORECAST_REMEDY)
    })
}
