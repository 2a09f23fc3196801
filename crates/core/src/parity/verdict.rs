//! The verdict on a device, from all compared steps.

use serde::Serialize;

use super::{Compared, Step};

/// A tensor that is beyond tolerance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beyond {
    /// The step, from 1.
    pub step: usize,
    /// The tensor.
    #[serde(flatten)]
    pub compared: Compared,
}

/// Whether a device computes the same as the reference.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// Every tensor of every step is within tolerance.
    Agrees,
    /// Some layers are beyond tolerance in isolation.
    Differs {
        /// The first tensor beyond tolerance in training, if any.
        first: Option<Beyond>,
        /// The first tensor of each layer that is beyond tolerance in isolation.
        wrong: Vec<Beyond>,
    },
    /// Tensors are beyond tolerance in training, but no isolated layer is: small errors accumulated, or the update
    /// differs.
    Drifts {
        /// The first one.
        first: Beyond,
    },
    /// Nothing is beyond tolerance, but some tensors cannot be judged: the reference's noise is infinite.
    NotCompared {
        /// The first one.
        first: Beyond,
    },
    /// The comparison did not finish.
    Failed {
        /// Why, as a phrase.
        reason: String,
    },
}

impl Verdict {
    /// Judges steps in order.
    pub fn of(steps: &[Step]) -> Self {
        let those = |which: fn(&Compared) -> bool| {
            let each = steps.iter().flat_map(|step| {
                let compared = step.compared.iter();
                compared.map(|compared| (step.step, compared))
            });
            each.filter(move |(_, compared)| which(compared))
                .map(|(step, compared)| Beyond {
                    step,
                    compared: compared.clone(),
                })
        };
        let mut wrong: Vec<Beyond> = Vec::new();
        for beyond in those(|compared| compared.by_itself && compared.is_beyond()) {
            let is_known = |known: &Beyond| known.compared.layer == beyond.compared.layer;
            if !wrong.iter().any(is_known) {
                wrong.push(beyond);
            }
        }
        let first = those(|compared| !compared.by_itself && compared.is_beyond()).next();
        match (first, wrong.is_empty()) {
            (None, true) => match those(Compared::is_lost).next() {
                None => Verdict::Agrees,
                Some(first) => Verdict::NotCompared { first },
            },
            (Some(first), true) => Verdict::Drifts { first },
            (first, false) => Verdict::Differs { first, wrong },
        }
    }

    /// Whether nothing is beyond tolerance.
    pub fn is_good(&self) -> bool {
        *self == Verdict::Agrees
    }
}
