//! A Python file with a model: imports, the network, its weights, and a check against an example.

use std::fmt::Write;

use crate::error::Unsupported;
use crate::state::StateDict;
use runner_core::check::network::Network;

/// The tolerance for PyTorch's output, relative to the largest value.
pub const TOLERANCE: f64 = 1e-5;

/// The remaining content of the file.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The origin of the network, as a sentence.
    pub origin: String,
    /// Functions between the network and the check: [`transforms::functions`](super::transforms::functions).
    pub functions: String,
    /// Whether the example has `rows` of the data, which `encode` converts to its input.
    pub has_rows: bool,
}

/// The whole of `model.py`, which expects `weights.safetensors` and `example.json` beside it.
///
/// # Errors
/// If PyTorch has no counterpart of a layer.
pub fn model_py(
    network: &Network,
    state: &StateDict,
    about: &About,
) -> Result<String, Unsupported> {
    let mut text = format!("\"\"\"{}\n", about.origin);
    let classes = super::network(network, state)?;
    // Only what the functions and classes use.
    let mut imports = String::new();
    for module in ["decimal", "math", "re", "tokenizers"] {
        let used = format!("{module}.");
        let is_in_class = module == "math" && classes.contains(&used);
        if is_in_class || about.functions.contains(&used) {
            let _ = writeln!(imports, "import {module}");
        }
    }
    text += &HEAD.replace("IMPORTS", &imports);
    text += &classes;
    text += "\n\n";
    text += LOAD;
    if !about.functions.is_empty() {
        let _ = write!(text, "\n\n{}", about.functions);
    }
    let [items, call, rows] = match state.inputs.as_slice() {
        [] => [
            "torch.tensor(example[\"input\"])".to_owned(),
            "items".into(),
            ROWS.into(),
        ],
        inputs => {
            let names: Vec<String> = inputs.iter().map(|name| format!("\"{name}\"")).collect();
            [
                format!(
                    "[torch.tensor(example[f\"input_{{name}}\"]) for name in ({},)]",
                    names.join(", ")
                ),
                "*items".into(),
                ROWS_OF_INPUTS.into(),
            ]
        }
    };
    let check = CHECK.replace("ITEMS", &items).replace("CALL", &call);
    let check = check.replace("ROWS", if about.has_rows { &rows } else { "" });
    text += &check.replace("TOLERANCE", &format!("{TOLERANCE:?}"));
    Ok(text)
}

const HEAD: &str = r#"
`python model.py` loads the weights and compares what the network gives for an example with what runner computed.
"""

import json
IMPORTSimport sys
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn

HERE = Path(__file__).resolve().parent


"#;

const LOAD: &str = r#"def load():
    """The network with its weights, ready to predict."""
    network = Network()
    network.load_state_dict(load_file(HERE / "weights.safetensors"))
    return network.eval()
"#;

const CHECK: &str = r#"

def check():
    """The largest difference from the example's output, relative to its largest value."""
    example = json.loads((HERE / "example.json").read_text())
    items, expected = ITEMS, torch.tensor(example["output"])
ROWS    with torch.no_grad():
        output = load()(CALL)
    if output.shape != expected.shape:
        raise SystemExit(f"the output has shape {tuple(output.shape)}, expected {tuple(expected.shape)}")
    return ((output - expected).abs().max() / expected.abs().max().clamp(min=1e-30)).item()


def main():
    error = check()
    print(f"largest relative difference from the example: {error:.1e}")
    # Comparisons with NaN are false.
    return 0 if error <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
"#;

const ROWS_OF_INPUTS: &str = r#"    for encoded, given in zip(encode(example["rows"]), items, strict=True):
        if encoded.shape != given.shape or not torch.allclose(encoded, given, rtol=1e-6, atol=1e-6):
            raise SystemExit("encode() does not reproduce the example's inputs for its rows")
"#;

const ROWS: &str = r#"    encoded = encode(example["rows"])
    if encoded.shape != items.shape or not torch.allclose(encoded, items, rtol=1e-6, atol=1e-6):
        raise SystemExit("encode() does not reproduce the example's input for its rows")
"#;
