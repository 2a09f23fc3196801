//! The kernels that a backend selected by timing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The selections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kernels {
    /// Number of selections.
    pub num: usize,
    /// sha256 of all of them.
    pub digest: String,
    /// The name of the selected kernel, by a digest of its key.
    #[serde(default)]
    pub choices: BTreeMap<String, String>,
}

impl Kernels {
    /// How many selections differ, and how many keys both have.
    pub fn differing(&self, other: &Self) -> (usize, usize) {
        let both = self.choices.iter();
        let both = both.filter_map(|(place, name)| Some((name, other.choices.get(place)?)));
        let both: Vec<_> = both.collect();
        (both.iter().filter(|(a, b)| a != b).count(), both.len())
    }
}
