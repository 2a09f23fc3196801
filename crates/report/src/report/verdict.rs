//! What may be claimed of a trial, in words.

use super::numbers::short_number;
use runner_statistics::{AboutMore, Finding, Verdict};

/// So many more seeds are no plan, and no figure to rely on.
const MANY: usize = 100;

/// A few words for a table: `better`, `worse`, `no difference shown`, `too few seeds: about 4 more needed`. `folds` is
/// how many folds count as seeds do, if they do.
pub fn in_words(verdict: &Verdict, folds: Option<usize>) -> String {
    match &verdict.finding {
        Finding::Better => "better".into(),
        Finding::Worse => "worse".into(),
        Finding::NoDifferenceShown => "no difference shown".into(),
        Finding::TooFewSeeds { about_more } => match folds {
            Some(folds) => too_few_in_folds(about_more, folds),
            None => too_few(about_more),
        },
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

/// The same in a cross-validation. One more run is nothing that anybody can ask for there: more folds are other folds,
/// and a further seed is a run in each of them.
fn too_few_in_folds(about: &AboutMore, folds: usize) -> String {
    let each = format!("in each of the {folds} folds");
    let seeds = |num: usize| match num.div_ceil(folds.max(1)) {
        1 => format!("1 more seed {each}"),
        num => format!("{num} more seeds {each}"),
    };
    match (about.for_power, about.to_reach) {
        (Some(num), _) if num.div_ceil(folds.max(1)) > MANY => {
            format!("too few runs: more than {MANY} more seeds {each} needed")
        }
        (Some(num), _) => format!("too few runs: about {} needed", seeds(num)),
        (None, Some(num)) => format!("too few runs: at least {} needed", seeds(num)),
        (None, None) => "too few runs".into(),
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
