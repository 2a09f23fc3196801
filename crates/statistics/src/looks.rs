//! Several looks at growing samples.

use serde::{Deserialize, Serialize};

use super::Refusal;

/// One of several looks at the same comparisons, between which seeds are added.
///
/// Each look is given an equal part of the level, so that by Bonferroni's inequality the probability of a wrong claim
/// at any look is at most the level, however the looks depend on each other, whatever the tests are, and however many
/// seeds each look has. That is a spending function in the sense of Lan and DeMets (1983, Discrete Sequential
/// Boundaries for Clinical Trials) whose increments are used without the joint distribution of the looks, which is not
/// known for exact tests of few values; with equal parts as in Pocock (1977, Group Sequential Methods in the Design and
/// Analysis of Clinical Trials). A p-value times the number of looks is a sequential p-value (Liu and Anderson, 2008,
/// On Adaptive Extensions of Group Sequential Trials for Clinical Investigations), to which Holm's method may be
/// applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Looks {
    /// The number of this look, from 1.
    pub number: usize,
    /// The number of looks that were planned before the first.
    pub planned: usize,
}

impl Looks {
    /// The part of the level that this look may use.
    ///
    /// Refuses a look beyond those that were planned: nothing is left for it.
    pub fn share(self) -> Result<f64, Refusal> {
        if (1..=self.planned).contains(&self.number) {
            Ok(1.0 / self.planned as f64)
        } else {
            Err(Refusal::NoLooksLeft {
                planned: self.planned,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planned_looks_share_the_level_and_others_get_nothing() {
        let share = |number, planned| Looks { number, planned }.share();
        for planned in [1, 2, 5, 1000] {
            let total: f64 = (1..=planned).map(|n| share(n, planned).unwrap()).sum();
            assert!((total - 1.0).abs() < 1e-12, "{planned}: {total}");
            let refused = Err(Refusal::NoLooksLeft { planned });
            assert_eq!(share(planned + 1, planned), refused);
            assert_eq!(share(0, planned), refused);
        }
    }
}
