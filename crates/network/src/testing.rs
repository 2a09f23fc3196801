//! Shared helpers for tests of networks, here and in the crate that trains them.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use runner_core::data::{self, Folders};
use runner_core::plan::inventory::Inventory;
use runner_core::plan::{self, RunPlan};
use runner_core::spec::document::Document;

/// A small experiment of three epochs with six steps each.
pub const IRIS: &str = "data.type = \"iris\"\nmodel = { type = \"mlp\", hidden = [8] }\n\
    optimizer = { type = \"adamw\", learning_rate = 1e-2 }\ntrain = { epochs = 3, batch_size = 25 }\n";

/// The only run of an experiment.
///
/// # Panics
/// If the text is refused.
pub fn planned(text: &str) -> RunPlan {
    let mut document = Document::parse("spec.toml", text).expect("it parses");
    document.overrides.clear();
    let folders = Folders {
        base: PathBuf::from("nowhere"),
        cache: PathBuf::from("nowhere"),
    };
    let located = &mut |spec: &_| data::locate(spec, &folders, None, &|_, _| {});
    let no_weights = &mut plan::init::no_files;
    match plan::plan(&document, "spec", located, no_weights, &Inventory::default) {
        Ok((plan, _)) => plan.runs.into_iter().next().expect("it has a run"),
        Err(refused) => panic!("{}", refused.render(&document.sources, false)),
    }
}

/// Held by each test that samples weights, since a device's generator is global.
static GENERATOR: Mutex<()> = Mutex::new(());

/// Waits until no other test samples weights.
pub fn generator() -> MutexGuard<'static, ()> {
    GENERATOR.lock().unwrap_or_else(PoisonError::into_inner)
}
