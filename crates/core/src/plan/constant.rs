//! Constant tensors of a network from files.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::init::{FindWeights, InitRefusal};
use crate::check::trial::Checked;
use crate::diagnostic::Diagnostic;
use crate::spec::model::layer::{ConstantFile, LayerKind};
use crate::spec::section::Findings;

/// The file of a constant of a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConstantPlan {
    /// The layer, by its index.
    pub layer: usize,
    /// The file.
    pub path: PathBuf,
    /// sha256 of the file.
    pub digest: String,
    /// The name of the array in a file of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<String>,
}

impl ConstantPlan {
    /// What a run's numbers depend on.
    pub(super) fn work(&self) -> Json {
        let Self {
            layer,
            path: _,
            digest,
            array,
        } = self;
        json!([layer, digest, array])
    }
}

/// A constant that is refused because its files are not looked at.
///
/// # Errors
/// Always.
pub fn no_constant(_: &ConstantFile, _: &[usize]) -> Result<ConstantPlan, InitRefusal> {
    let wrong = Diagnostic::error("weights", "files of constants are not read here");
    Err(InitRefusal {
        key: "path",
        diagnostic: Box::new(wrong.help("use the file with `runner run`")),
    })
}

/// The constants of the network of a trial; errors are added to the findings.
pub(super) fn constants(
    files: FindWeights<'_>,
    checked: &Checked,
    findings: &mut Findings,
) -> Vec<ConstantPlan> {
    if checked.laid_out.is_none() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (at, layer) in checked.spec.model.layers.iter().enumerate() {
        let LayerKind::Parameter {
            shape,
            file: Some(file),
            ..
        } = &layer.kind
        else {
            continue;
        };
        if layer.weights.is_some() {
            continue;
        }
        match files.constant(file, shape) {
            Ok(constant) => found.push(ConstantPlan {
                layer: at,
                ..constant
            }),
            Err(InitRefusal { key, diagnostic }) => {
                findings.diagnostics.push(layer.point(*diagnostic, key));
            }
        }
    }
    found
}
