//! The kernels that a backend chose by timing them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What was chosen for what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kernels {
    /// How many choices.
    pub num: usize,
    /// sha256 of all of them.
    pub digest: String,
    /// The kernel's name, by a digest of what it was chosen for.
    #[serde(default)]
    pub choices: BTreeMap<String, String>,
}

impl Kernels {
    /// How many choices differ from others, and for how many places there are both.
    pub fn differing(&self, other: &Self) -> (usize, usize) {
        let both = self.choices.iter();
        let both = both.filter_map(|(place, name)| Some((name, other.choices.get(place)?)));
        let both: Vec<_> = both.collect();
        (both.iter().filter(|(a, b)| a != b).count(), both.len())
    }
}
