//! The rules, one function each.

use super::Point;
use super::forecast::{Demand, FORECAST_REMEDY, Forecast};
use crate::data::DataPlan;
use crate::diagnostic::{Diagnostic, counted};
use crate::spec::backend::{Backend, DeviceName};
use crate::spec::kind::show_bytes;
use crate::spec::memory::OnExceed;
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
        let message = format!(
            "`train.batch_size` is {batch_size}, and the train split has {}",
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

pub fn on_exceed_is_one_way(point: &Point<'_>) -> Option<Diagnostic> {
    let rungs = &point.spec.memory.on_exceed;
    let twice = rungs
        .iter()
        .enumerate()
        .find(|(at, rung)| rungs[..*at].contains(rung));
    let (message, help) = match twice {
        Some((_, rung)) => (
            format!("`memory.on_exceed` holds \"{}\" twice", rung.name()),
            "write it once: each is done as often as it helps",
        ),
        None if rungs.len() > 1 && rungs.contains(&OnExceed::Refuse) => (
            "`memory.on_exceed` holds \"refuse\" and other ways".to_owned(),
            "write \"refuse\" alone, or leave it out: a run fails anyway when nothing else is left",
        ),
        None => return None,
    };
    let diagnostic = Diagnostic::error("contradiction", message);
    Some(diagnostic.at(point.span("memory.on_exceed")).help(help))
}

pub fn memory_suffices(point: &Point<'_>) -> Option<Diagnostic> {
    let limit = point.spec.memory.limit?.0;
    let spec = point.spec;
    // What `auto` will be is not known here: a card holds no items of the host, and the host has kernels of its own.
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
            conv: spec.backend.conv,
            network,
            optimizer: &spec.optimizer,
            train: &spec.train,
            data,
        };
        Forecast::least_after(&demand, &spec.memory.on_exceed)
    });
    let needed = needed.min()??;
    (needed > limit).then(|| {
        let message = format!(
            "`memory.limit` is {}, and a run holds at least {}",
            show_bytes(limit),
            show_bytes(needed)
        );
        Diagnostic::error("memory", message)
            .at(point.span("memory.limit"))
            .note("that is the items, the weights with their gradients and optimizer state, and the activations of one batch")
            .help(FORECAST_REMEDY)
    })
}
