//! Plans texts on a synthetic machine, like `check`. Also included by the tests of `runner_core`, so it only uses that
//! crate.

use std::path::{Path, PathBuf};

use runner_core::data::{self, Folders};
use runner_core::diagnostic::{Diagnostics, Sources};
use runner_core::plan::init::FindWeights;
use runner_core::plan::inventory::Inventory;
use runner_core::plan::{self, Plan};
use runner_core::spec::document::Document;

/// A machine with a GPU that one backend sees and that supports two precisions.
pub fn machine() -> Inventory {
    let listed = r#"
        {"device":"flex","state":"found","name":"host","precisions":["f32","f64","f16","bf16"],"kind":"host","card":"host"}
        {"device":"wgpu","state":"found","name":"Some Card","precisions":["f32","f16"],"kind":"gpu","card":"0000:01:00.0"}
        {"device":"cuda","state":"missing","reason":"this machine has no adapter for it","remedy":"install a driver"}
        {"device":"rocm","state":"missing","reason":"it is not in this build","remedy":"build it in"}
    "#;
    let lines = listed.lines().filter(|line| !line.trim().is_empty());
    let listed = lines.map(|line| serde_json::from_str(line).expect("a device"));
    Inventory(listed.collect())
}

/// The cache folder of tests.
pub fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache")
}

/// Plans a text that may extend and read files below a folder. Returns the plan unless there are errors,
/// everything that is reported, and the texts that it points into. `weights` looks at files of weights.
pub fn planned(
    folder: Option<&Path>,
    name: &str,
    text: &str,
    weights: FindWeights<'_>,
) -> (Option<Plan>, Diagnostics, Sources) {
    let document = match Document::compose(name, text, folder) {
        Ok(document) => document,
        Err((sources, diagnostics)) => return (None, diagnostics, sources),
    };
    let folders = Folders {
        base: folder.unwrap_or(Path::new("nowhere")).to_owned(),
        cache: cache(),
    };
    let locate = &mut |spec: &_| data::locate(spec, &folders, None, &|_, _| {});
    let (plan, diagnostics) = match plan::plan(&document, "spec", locate, weights, &machine) {
        Ok((plan, warnings)) => (Some(plan), warnings),
        Err(diagnostics) => (None, diagnostics),
    };
    (plan, diagnostics, document.sources)
}
