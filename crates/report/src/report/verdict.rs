//! What can be claimed about a trial, in words and as short codes for tables.

use std::collections::BTreeSet;

use super::numbers::short_number;
use runner_statistics::{Finding, Reading, Verdict};

/// More additional seeds than this are not a plan, and not a reliable estimate.
const MANY: usize = 100;

/// The strongest statement that holds for a verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statement {
    /// By an exact test, or if the noise is normal where marked.
    Differs {
        /// Whether it is better.
        is_better: bool,
        /// Whether that needs normal noise.
        if_normal: bool,
    },
    /// Equal for practical purposes, if the noise is normal.
    Equal,
    /// Equal in every run.
    Identical,
    /// Nothing can be claimed; how many more seeds would be enough, if known.
    Undecided(Option<usize>),
    /// Nothing can be claimed with so few runs; how many more would be needed.
    TooFew(Option<usize>),
    /// Nothing was tested.
    NotTested,
}

/// The strongest statement of a verdict.
pub fn statement(verdict: &Verdict) -> Statement {
    let exact = |is_better| Statement::Differs {
        is_better,
        if_normal: false,
    };
    let read = verdict.if_normal;
    match (verdict.finding, read.map(|normal| normal.reading)) {
        (Finding::Better, _) => exact(true),
        (Finding::Worse, _) => exact(false),
        (_, Some(reading @ (Reading::Better | Reading::Worse))) => Statement::Differs {
            is_better: reading == Reading::Better,
            if_normal: true,
        },
        (_, Some(Reading::Equal)) => Statement::Equal,
        (Finding::NotTested { .. }, _) => Statement::NotTested,
        _ if is_identical(verdict) => Statement::Identical,
        (_, Some(Reading::Undecided)) => {
            Statement::Undecided(read.and_then(|normal| normal.about_more))
        }
        (Finding::TooFewSeeds { about_more }, None) => {
            let n = verdict.comparison.map_or(0, |c| c.design.n());
            // A second seed is what Student's t takes; where values show no spread, only the exact test is left.
            Statement::TooFew(match n {
                0 | 1 => Some(2 - n),
                _ => about_more.to_reach,
            })
        }
        (Finding::NoDifferenceShown | Finding::NoExactTest, None) => Statement::Undecided(None),
    }
}

/// Whether a verdict claims anything.
pub fn is_claim(verdict: &Verdict) -> bool {
    matches!(
        statement(verdict),
        Statement::Differs { .. } | Statement::Equal | Statement::Identical
    )
}

/// Whether all common runs have the same values.
fn is_identical(verdict: &Verdict) -> bool {
    let equal = verdict.comparison.filter(|c| c.design.n() > 1);
    equal.is_some_and(|c| c.mean_difference == 0.0 && c.interval.is_none() && c.effect.is_none())
}

/// The smallest difference that matters, if the difference is claimed to be below it.
fn small(verdict: &Verdict) -> Option<f64> {
    let equality = verdict.if_normal.and_then(|normal| normal.equality);
    let claimed = equality.filter(|equality| equality.is_claimed);
    claimed.map(|equality| equality.within)
}

/// A few words: `better`, `worse (if the noise is normal)`, `equal within 0.005 (if the noise is normal)`, `undecided: about 4
/// more seeds needed`.
pub fn in_words(verdict: &Verdict) -> String {
    let within = small(verdict).map(|within| within.to_string());
    let normal = |is: bool| if is { " (if the noise is normal)" } else { "" };
    match statement(verdict) {
        Statement::Differs {
            is_better,
            if_normal,
        } => {
            let small = within.map_or(String::new(), |within| format!(", by less than {within}"));
            format!("{}{small}{}", better(is_better), normal(if_normal))
        }
        Statement::Equal => format!(
            "equal within {}{}",
            within.unwrap_or_default(),
            normal(true)
        ),
        Statement::Identical => "equal in every run".into(),
        Statement::Undecided(Some(num)) if num > MANY => {
            format!("undecided: more than {MANY} more seeds needed")
        }
        Statement::Undecided(Some(1)) => "undecided: about 1 more seed needed".into(),
        Statement::Undecided(Some(num)) => format!("undecided: about {num} more seeds needed"),
        Statement::Undecided(None) => "no difference shown".into(),
        Statement::TooFew(Some(num)) => format!("too few runs: at least {num} more needed"),
        Statement::TooFew(None) => "too few runs".into(),
        Statement::NotTested => match &verdict.finding {
            Finding::NotTested { refusal } => format!("not tested: {refusal}"),
            _ => "not tested".into(),
        },
    }
}

/// The same as a code for a table; [`notes`] has the words.
pub fn code(verdict: &Verdict) -> String {
    let normal = |is: bool| if is { "~" } else { "" };
    match statement(verdict) {
        Statement::Differs {
            is_better,
            if_normal,
        } => {
            let small = if small(verdict).is_some() { "<" } else { "" };
            format!("{}{small}{}", better(is_better), normal(if_normal))
        }
        Statement::Equal => "equal~".into(),
        Statement::Identical => "equal".into(),
        Statement::Undecided(Some(num)) if num > MANY => format!("open +{MANY}…"),
        Statement::Undecided(Some(num)) => format!("open +{num}"),
        Statement::Undecided(None) => "open".into(),
        Statement::TooFew(Some(num)) => format!("few +{num}"),
        Statement::TooFew(None) => "few".into(),
        Statement::NotTested => "not tested".into(),
    }
}

fn better(is_better: bool) -> &'static str {
    if is_better { "better" } else { "worse" }
}

/// What the codes of a table mean, as far as it has them.
pub fn notes<'a>(verdicts: impl Iterator<Item = &'a Verdict>) -> Option<String> {
    let verdicts: Vec<&Verdict> = verdicts.collect();
    let codes: BTreeSet<String> = verdicts.iter().map(|verdict| code(verdict)).collect();
    let has = |what: &str| codes.iter().any(|code| code.contains(what));
    let within = verdicts.iter().find_map(|verdict| small(verdict));
    let within = within.map_or(String::new(), |within| within.to_string());
    let mut notes: Vec<String> = Vec::new();
    let mut note = |is: bool, text: String| {
        if is {
            notes.push(text);
        }
    };
    note(
        has("~"),
        "`~` if the noise is normal, by Student's t".into(),
    );
    note(
        codes.contains("equal~"),
        format!("`equal~` equal within {within}"),
    );
    note(codes.contains("equal"), "`equal` in every run".into());
    note(has("<"), format!("`<` by less than {within}"));
    note(
        codes.iter().any(|code| code.starts_with("open")),
        "`open` no difference was shown, which does not mean that there is none".into(),
    );
    note(
        has("open +"),
        "`open +N` about N more seeds would show a difference as large as the observed one".into(),
    );
    note(
        has("few +"),
        "`few +N` at least N more runs are needed for a claim".into(),
    );
    note(
        has("not tested"),
        "`not tested` see the section on verdicts".into(),
    );
    (!notes.is_empty()).then(|| format!("{}.", notes.join("; ")))
}

/// The mean difference with its sign, such as `-0.0123`; `-` if nothing is compared.
pub fn difference(verdict: &Verdict) -> String {
    let compared = verdict.comparison.as_ref();
    compared.map_or("-".into(), |c| signed(c.mean_difference))
}

/// A number with its sign.
pub fn signed(value: f64) -> String {
    let sign = if value > 0.0 { "+" } else { "" };
    format!("{sign}{}", short_number(value))
}

/// The verdicts of the other trials in a sentence:
/// `Of the 5 others, 3 are worse, 1 is worse if the noise is normal, and 1 is undecided.`
pub fn tally(verdicts: &[&Verdict]) -> String {
    let num = |is: &dyn Fn(Statement) -> bool| verdicts.iter().filter(|v| is(statement(v))).count();
    let differs = |better: bool, normal: bool| {
        move |found: Statement| {
            found
                == Statement::Differs {
                    is_better: better,
                    if_normal: normal,
                }
        }
    };
    let within = verdicts.iter().find_map(|verdict| small(verdict));
    let equal = within.map_or(String::new(), |w| {
        format!("equal within {w} if the noise is normal")
    });
    let groups = [
        (num(&differs(true, false)), "better".to_owned()),
        (
            num(&differs(true, true)),
            "better if the noise is normal".into(),
        ),
        (num(&differs(false, false)), "worse".into()),
        (
            num(&differs(false, true)),
            "worse if the noise is normal".into(),
        ),
        (num(&|found| found == Statement::Equal), equal),
        (
            num(&|found| found == Statement::Identical),
            "equal in every run".into(),
        ),
        (
            num(&|found| matches!(found, Statement::Undecided(_))),
            "undecided".into(),
        ),
        (
            num(&|found| matches!(found, Statement::TooFew(_))),
            "not testable with so few runs".into(),
        ),
        (
            num(&|found| found == Statement::NotTested),
            not_tested(verdicts),
        ),
    ];
    let all = verdicts.len();
    let there: Vec<&(usize, String)> = groups.iter().filter(|(num, _)| *num > 0).collect();
    match there[..] {
        [(num, what)] if *num == all && all > 1 => format!("All {all} others are {what}."),
        _ => {
            let parts = there.iter().map(|(num, what)| match num {
                1 => format!("1 is {what}"),
                num => format!("{num} are {what}"),
            });
            let parts: Vec<String> = parts.collect();
            let (last, first) = parts
                .split_last()
                .map_or(("", &[][..]), |(l, f)| (l.as_str(), f));
            match first {
                [] => format!("Of the {all} others, {last}."),
                first => format!("Of the {all} others, {} and {last}.", first.join(", ")),
            }
        }
    }
}

/// `not tested`, with the reason if all have the same.
fn not_tested(verdicts: &[&Verdict]) -> String {
    let untested = verdicts
        .iter()
        .filter(|verdict| statement(verdict) == Statement::NotTested);
    let words: BTreeSet<String> = untested.map(|verdict| in_words(verdict)).collect();
    match words.len() {
        1 => words.into_iter().collect(),
        _ => "not tested".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_statistics::{Claims, Direction, Looks, verdicts};

    fn keyed(values: &[f64]) -> Vec<(u64, f64)> {
        (1..).zip(values.iter().copied()).collect()
    }

    /// The verdicts of trials against a baseline, higher values being better.
    fn found(
        baseline: &[f64],
        trials: &[&[f64]],
        smallest_difference: Option<f64>,
    ) -> Vec<Verdict> {
        let trials: Vec<_> = trials.iter().map(|trial| keyed(trial)).collect();
        let claims = Claims {
            direction: Direction::HigherIsBetter,
            alpha: 0.05,
            num_comparisons: 0,
            smallest_difference,
            overlap: None,
            looks: None,
        };
        verdicts(&keyed(baseline), &trials, &claims).unwrap()
    }

    #[test]
    fn statements_are_graded() {
        let base = [0.957, 0.961, 0.965];
        let words = |trial: &[f64], smallest| {
            let found = &found(&base, &[trial], smallest)[0];
            (in_words(found), code(found))
        };
        let both = |words: &str, code: &str| (words.to_owned(), code.to_owned());
        assert_eq!(
            words(&[0.733, 0.745, 0.757], None),
            both("worse (if the noise is normal)", "worse~")
        );
        assert_eq!(
            words(&[0.956, 0.9612, 0.9652], Some(0.005)),
            both("equal within 0.005 (if the noise is normal)", "equal~")
        );
        assert_eq!(words(&base, None), both("equal in every run", "equal"));
        assert_eq!(
            words(&[0.95, 0.965, 0.96], None),
            both("undecided: about 37 more seeds needed", "open +37")
        );
        assert_eq!(
            words(&[0.95], None),
            both("too few runs: at least 1 more needed", "few +1")
        );
        // Certain, and too small to matter.
        let above = [0.9571, 0.9611, 0.96511];
        assert_eq!(
            words(&above, Some(0.005)),
            both(
                "better, by less than 0.005 (if the noise is normal)",
                "better<~"
            )
        );
    }

    #[test]
    fn a_tally_says_what_can_be_said() {
        let base = [0.957, 0.961, 0.965];
        let bad = [0.733, 0.745, 0.757];
        let near = [0.95, 0.965, 0.96];
        let all = found(&base, &[&bad, &near, &near], None);
        assert_eq!(
            tally(&all.iter().collect::<Vec<_>>()),
            "Of the 3 others, 1 is worse if the noise is normal and 2 are undecided."
        );
        let single = found(&base[..1], &[&bad[..1], &near[..1]], None);
        assert_eq!(
            tally(&single.iter().collect::<Vec<_>>()),
            "All 2 others are not testable with so few runs."
        );
        let baseline = keyed(&base);
        let trials = [keyed(&bad), keyed(&near)];
        let claims = Claims {
            direction: Direction::HigherIsBetter,
            alpha: 0.05,
            num_comparisons: 0,
            smallest_difference: None,
            overlap: None,
            looks: Some(Looks {
                number: 3,
                planned: 2,
            }),
        };
        let late = verdicts(&baseline, &trials, &claims).unwrap();
        let late = tally(&late.iter().collect::<Vec<_>>());
        assert!(
            late.starts_with("All 2 others are not tested: ") && late.contains("looks"),
            "{late}"
        );
        let notes = notes(all.iter()).unwrap();
        assert!(
            notes.contains("`~` if the noise is normal") && notes.contains("`open +N`"),
            "{notes}"
        );
    }
}
