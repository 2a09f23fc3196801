//! What may be claimed of a trial, in words.

use super::numbers::short_number;
use crate::statistics::{AboutMore, Finding, Verdict};

/// So many more seeds are no plan, and no figure to rely on.
const MANY: usize = 100;

/// A few words for a table: `better`, `worse`, `no difference shown`, `too few seeds: about 4 more needed`.
pub fn in_words(verdict: &Verdict) -> String {
    match &verdict.finding {
        Finding::Better => "better".into(),
        Finding::Worse => "worse".into(),
        Finding::NoDifferenceShown => "no difference shown".into(),
        Finding::TooFewSeeds { about_more } => too_few(about_more),
        Finding::NotTested { refusal } => format!("not tested: {refusal}"),
    }
}

/// How many more seeds to ask for: about those that would show a difference as large as the one that is seen; where
/// none is seen or its spread is not known, at least those with which any claim is possible.
fn too_few(about: &AboutMore) -> String {
    match (about.for_power, about.to_reach) {
        (Some(num), _) if num > MANY => format!("too few seeds: more than {MANY} more needed"),
        (Some(num), _) => format!("too few seeds: about {num} more needed"),
        (None, Some(num)) => format!("too few seeds: at least {num} more needed"),
        (None, None) => "too few seeds".into(),
    }
}

/// The mean difference with its sign, such as `-0.0123`; `-` where nothing is compared.
pub fn difference(verdict: &Verdict) -> String {
    let compared = verdict.comparison.as_ref();
    compared.map_or("-".into(), |c| signed(c.mean_difference))
}

/// A number with its sign.
pub fn signed(value: f64) -> String {
    let sign = if value > 0.0 { "+" } else { "" };
    format!("{sign}{}", short_number(value))
}
