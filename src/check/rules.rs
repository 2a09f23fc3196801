//! The rules, one function each.

use super::Point;
use super::forecast::{Demand, FORECAST_REMEDY, Forecast};
use crate::data::DataPlan;
use crate::diagnostic::{Diagnostic, counted};
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
    let spec = point.spec;
    let needed = Forecast::of(&Demand {
        device: spec.backend.device,
        precision: spec.backend.precision,
        network: point.network?,
        optimizer: &spec.optimizer,
        train: &spec.train,
        data: point.data?,
    })
    .least();
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
