//! Networks of many families train as in PyTorch: a part of the table in docs/network-table.md, which `.ci/nightly` makes whole.

use std::path::Path;

use super::support::peers::python_with;
use super::support::root;

/// One of each: joins and blocks, dilated causal convolutions, attention with options, two inputs, a learned
/// token, weights that are computed.
const SOME: [&str; 7] = [
    "Mixture of experts",
    "WaveNet",
    "Attention with options",
    "Sequence to sequence",
    "Class token",
    "Weight norm",
    "Spectral norm",
];

#[test]
fn networks_train_as_in_pytorch() {
    let Some(python) = python_with(&["torch", "safetensors", "numpy"]) else {
        return;
    };
    let program = Path::new(env!("CARGO_BIN_EXE_runner"));
    let options = [Path::new("--runner"), program, Path::new("--only")];
    let arguments: Vec<&Path> = options.into_iter().chain(SOME.map(Path::new)).collect();
    let said = python.run("network_table_check.py", &arguments);
    assert!(said.contains("7 networks"), "{said}");
    // The page has a row for each network of the script.
    let page = std::fs::read_to_string(root().join("docs/network-table.md")).unwrap();
    for name in SOME {
        assert!(page.contains(&format!("| {name} |")), "{name}");
    }
}
