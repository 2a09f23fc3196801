//! The build of this program that trains a run.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A build of this program. Two builds of one version may round differently, so the version alone does not tell them
/// apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Build {
    /// Its version.
    pub version: String,
    /// sha256 of the executable.
    pub sha256: String,
    /// The name of the program, if it is not `runner` but one with parts of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The git commit that it was built from, if set at build time (`RUNNER_COMMIT`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The features that it was built with.
    #[serde(default)]
    pub features: Vec<String>,
}

/// Digits of a digest that identify it for a reader.
const SHOWN: usize = 12;

impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digest: String = self.sha256.chars().take(SHOWN).collect();
        match &self.program {
            Some(program) => write!(f, "{program} with {} (sha256 {digest})", self.version),
            None => write!(f, "{} (sha256 {digest})", self.version),
        }
    }
}
