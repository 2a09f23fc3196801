//! Shared helpers: the program, folders, redaction, and data that is not part of a clone.

pub mod idx;
pub mod peers;
pub mod processes;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use burn_runner::data::Folders;
use burn_runner::diagnostic::Diagnostic;
use burn_runner::exchange::init::Finder;
use burn_runner::plan::Plan;
use burn_runner::plan::init::no_files;
use burn_runner::spec::init::{InitLayout, InitSpec};
use serde_json::Value as Json;

use super::planning::planned;
pub use super::planning::{cache, machine};

/// The root of the package.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The program, in a folder, with a separate cache folder.
pub fn runner(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
    command
        .current_dir(folder)
        .env("XDG_CACHE_HOME", folder.join("cache"));
    command
}

/// Runs the program and returns exit code, standard output and standard error.
pub fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = runner(folder)
        .args(arguments)
        .output()
        .expect("runner starts");
    texts(&output)
}

pub fn texts(output: &Output) -> (i32, String, String) {
    (
        output.status.code().unwrap_or(-1),
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

/// A fresh folder with an experiment file in it.
pub fn folder_with(spec: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("spec.toml"), spec).expect("the spec is written");
    folder
}

/// `[init] from = …` without other keys.
pub fn init_from(file: &str) -> InitSpec {
    InitSpec {
        from: file.into(),
        layout: InitLayout::Auto,
        top_level_key: None,
        remap: Vec::new(),
        only: Vec::new(),
        exclude: Vec::new(),
        partial: false,
        transpose: Vec::new(),
        skip_mismatched: false,
        adapter: None,
        hub: None,
    }
}

/// The small experiment that most tests change a little.
pub const IRIS: &str = r#"
[data]
type = "iris"

[model]
type = "mlp"
hidden = [16]

[optimizer]
type = "adam"
learning_rate = 1e-2

[train]
epochs = 3
batch_size = 16
"#;

/// A run of some seconds.
pub const SLOW: &str = r#"
[data]
type = "digits"
image_size = "28x28"

[model]
type = "mlp"
hidden = [128]
dropout = 0.2

[optimizer]
type = "adam"
learning_rate = 1e-3

[train]
epochs = 40
batch_size = 20
"#;

/// Plans a text without accessing the disk.
pub fn plan(name: &str, text: &str) -> Result<(Plan, String), String> {
    plan_in(None, name, text)
}

/// The errors of a text; empty if there are none.
pub fn diagnostics(name: &str, text: &str) -> Vec<Diagnostic> {
    planned(None, name, text, &mut no_files).1.0
}

/// Plans a text that may extend files below a folder.
pub fn plan_in(folder: Option<&Path>, name: &str, text: &str) -> Result<(Plan, String), String> {
    let folders = Folders {
        base: folder.unwrap_or(Path::new("nowhere")).to_owned(),
        cache: cache(),
    };
    let mut finder = Finder::new(&folders);
    let (plan, diagnostics, sources) = planned(folder, name, text, &mut finder);
    let rendered = diagnostics.render(&sources, false);
    match plan {
        Some(plan) => Ok((plan, rendered)),
        None => Err(rendered),
    }
}

/// Says that the caller skips its test for want of something.
///
/// # Panics
/// If the variable `required_by` is set, as it is in `.ci/run`: then it must be there.
pub fn skip(what: &str, required_by: &str) {
    let is_required = std::env::var_os(required_by).is_some();
    assert!(!is_required, "{what}, and {required_by} is set");
    // What macros print is hidden when a test passes.
    let _ = writeln!(std::io::stderr(), "warning: a test is skipped: {what}");
}

/// The MNIST folder beside the checkout. Without one, the caller skips its test; `RUNNER_REQUIRE_SHARED` requires it.
pub fn mnist() -> Option<PathBuf> {
    let folder = root().join("../shared/data/mnist");
    if folder.is_dir() {
        return Some(fs::canonicalize(folder).expect("the folder is there"));
    }
    skip("there is no ../shared/data/mnist", "RUNNER_REQUIRE_SHARED");
    None
}

/// Whether there is a wgpu adapter. Without one, the caller skips its test; `RUNNER_REQUIRE_WGPU` requires it.
#[cfg(feature = "wgpu")]
pub fn wgpu_is_there() -> bool {
    let (_, devices, _) = run(root(), &["devices", "--json"]);
    let is_found = |line: &str| line.contains(r#""device":"wgpu","state":"found""#);
    if devices.lines().any(is_found) {
        return true;
    }
    skip(
        &format!("there is no wgpu adapter: {devices}"),
        "RUNNER_REQUIRE_WGPU",
    );
    false
}

/// Chromium, by one of its names. Without it, the caller skips its test; `RUNNER_REQUIRE_CHROMIUM` requires it.
pub fn chromium() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let paths = std::env::split_paths(&folders).flat_map(|f| names.map(|name| f.join(name)));
    let found = paths.into_iter().find(|path| path.is_file());
    if found.is_none() {
        skip("there is no Chromium", "RUNNER_REQUIRE_CHROMIUM");
    }
    found
}

/// Replaces what differs between machines and runs by words of the same width.
pub fn redact(text: &str, folder: &Path) -> String {
    let text = text.replace(&folder.display().to_string(), "[FOLDER]");
    let mut redacted = String::new();
    let mut is_memory = false;
    for line in text.lines() {
        // Columns are as wide as the measured numbers.
        if is_memory && line.starts_with('|') {
            continue;
        }
        is_memory = ["## Memory", "## Time"].contains(&line) || is_memory && line.is_empty();
        redacted.push_str(&redact_line(line));
        redacted.push('\n');
    }
    redacted
}

fn redact_line(line: &str) -> String {
    if line.starts_with("- runner ") {
        return "- [ENVIRONMENT]".into();
    }
    // Measured numbers: every digit of a number with a point becomes 0, so that columns keep their width.
    let mut redacted = String::new();
    let mut rest = line;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from) = rest.split_at(start);
        let end = from
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(from.len());
        let (number, after) = from.split_at(end);
        redacted.push_str(before);
        let part_of_word = before.ends_with(|c: char| c.is_ascii_alphanumeric());
        if number.contains('.') && !part_of_word {
            redacted.extend(number.chars().map(|c| if c == '.' { '.' } else { '0' }))
        } else {
            redacted.push_str(number)
        }
        rest = after;
    }
    redacted + rest
}

/// Every file below a folder, as sorted relative paths.
pub fn tree(folder: &Path) -> Vec<String> {
    let mut paths = Vec::new();
    let mut queue = vec![folder.to_owned()];
    while let Some(next) = queue.pop() {
        for entry in fs::read_dir(next)
            .expect("the folder is readable")
            .flatten()
        {
            let path = entry.path();
            if path.is_dir() {
                queue.push(path)
            } else {
                paths.push(
                    path.strip_prefix(folder)
                        .expect("it is below")
                        .display()
                        .to_string(),
                )
            }
        }
    }
    paths.sort();
    paths
}

pub fn read_json(path: &Path) -> Json {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap()
}

pub fn summary(folder: &Path, run: &str) -> Json {
    read_json(
        &folder
            .join("results/spec/runs")
            .join(run)
            .join("summary.json"),
    )
}

/// What must be equal between two results: each run's metrics, weights and trace.
pub fn numbers(folder: &Path) -> Vec<(String, String, Json, Json, String)> {
    let runs = folder.join("results/spec/runs");
    let mut ids: Vec<_> = fs::read_dir(&runs)
        .unwrap()
        .flatten()
        .map(|e| e.file_name().into_string().unwrap())
        .collect();
    ids.sort();
    let numbers = ids.into_iter().map(|id| {
        let run = runs.join(&id);
        let metrics = fs::read_to_string(run.join("metrics.csv")).unwrap();
        let summary = summary(folder, &id);
        let losses = fs::read(run.join("trace/losses.f64")).unwrap();
        let norms = fs::read(run.join("trace/gradient_norms.f64")).unwrap_or_default();
        let losses = losses.iter().chain(&norms);
        let losses = losses.map(|byte| format!("{byte:02x}"));
        let digests = fs::read_to_string(run.join("trace/digests.csv")).unwrap();
        (
            id,
            metrics,
            summary["metrics"].clone(),
            summary["weights_digest"].clone(),
            digests + &losses.collect::<String>(),
        )
    });
    numbers.collect()
}

pub fn completed(spec: &str, arguments: &[&str]) -> tempfile::TempDir {
    let folder = folder_with(spec);
    let (code, _, stderr) = run(
        folder.path(),
        &[&["run", "spec.toml", "--quiet"], arguments].concat(),
    );
    assert_eq!(code, 0, "{stderr}");
    folder
}

/// Runs the same command again, which must complete everything, and returns its messages.
pub fn goes_on(folder: &Path) -> String {
    let (code, _, stderr) = run(folder, &["run", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    stderr
}

/// What a command prints, which must succeed: its output and then its messages.
#[track_caller]
pub fn done(folder: &Path, arguments: &[&str]) -> String {
    let (code, text, said) = run(folder, arguments);
    assert_eq!(code, 0, "{arguments:?}: {text}{said}");
    text + &said
}

/// A `.npy` file of an element type such as `<f4`, a shape as Python writes it, and the bytes of the elements.
pub fn npy(kind: &str, shape: &str, bytes: &[u8]) -> Vec<u8> {
    let head = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
    let head = format!("{head:<117}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((head.len() as u16).to_le_bytes());
    file.extend(head.as_bytes());
    file.extend(bytes);
    file
}

/// The same of items of 32-bit floats.
pub fn npy_of<const N: usize>(items: &[[f32; N]]) -> Vec<u8> {
    let values = items.iter().flatten();
    let bytes: Vec<u8> = values.flat_map(|value| value.to_le_bytes()).collect();
    npy("<f4", &format!("({}, {N})", items.len()), &bytes)
}
