//! A Python with the programs that runner exchanges files with: PyTorch, ONNX, onnxruntime, safetensors, NumPy,
//! TensorBoard.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::OnceLock;

use super::{root, skip};

/// A Python that imports `modules`: that of `RUNNER_PYTHON`, or the system's. Without one, the caller skips its test; a
/// warning is printed.
///
/// # Panics If there is none and `RUNNER_REQUIRE_PEERS` requires it.
pub fn python_with(modules: &[&str]) -> Option<Python> {
    let python = std::env::var("RUNNER_PYTHON").unwrap_or_else(|_| "python3".into());
    let missing: Vec<_> = modules
        .iter()
        .filter(|module| !found(&python).iter().any(|found| found == *module))
        .collect();
    if missing.is_empty() {
        return Some(Python(python));
    }
    skip(
        &format!("`{python}` cannot import {missing:?}"),
        "RUNNER_REQUIRE_PEERS",
    );
    None
}

/// The peers that a Python has, found without importing them.
fn found(python: &str) -> &'static [String] {
    static FOUND: OnceLock<Vec<String>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let script = "import importlib.util as u\n\
            for m in ['torch', 'torchvision', 'onnx', 'onnxruntime', 'safetensors', 'numpy', 'tensorboard', 'transformers', 'tokenizers', 'peft', 'torch_geometric', 'optuna', 'scipy']:\n    \
                print(m) if u.find_spec(m) else None";
        let output = Command::new(python).args(["-c", script]).output();
        let names = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        names
            .unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect()
    })
}

/// The command of a Python with the requested modules.
pub struct Python(String);

impl Python {
    /// Runs a script of `tests/` and returns what it printed.
    ///
    /// # Panics
    /// If it fails, with what it wrote to standard error.
    pub fn run(&self, script: &str, arguments: &[&Path]) -> String {
        let output = self.output(&root().join("tests").join(script), arguments);
        let (stdout, stderr) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(output.status.success(), "{script}: {stdout}{stderr}");
        stdout.into_owned()
    }

    /// Runs any script, whether it fails or not.
    pub fn output(&self, script: &Path, arguments: &[&Path]) -> Output {
        Command::new(&self.0)
            .arg(script)
            .args(arguments)
            // One thread for each test: cargo runs as many as there are cores.
            .env("OMP_NUM_THREADS", "1")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .output()
            .expect("Python starts")
    }
}
