//! The answer in sentences, and what belongs to the ranked table.

use super::looks::is_left;
use super::mixture::{data_in_words, environments_in_words, other_items};
use super::model::{Problem, Report, Trial, Unbeaten};
use super::numbers::{interval, mean_and_sd, short_number};
use super::sample::{ALPHA, bounds, is_beyond};
use super::table::shows_last;
use super::varied::{collapsed, failed, varied};
use super::verdict::{self, Statement};
use runner_core::diagnostic::counted;
use runner_statistics::Verdict;

/// The first sentences: which trial is ahead, and the verdict about it.
pub fn answer(report: &Report) -> String {
    let pruned = match report.num_pruned {
        0 => String::new(),
        num => format!(", {num} pruned"),
    };
    let count = format!(
        "{} of {} runs completed{pruned}",
        report.num_completed, report.num_runs
    );
    if report.trials.iter().all(|trial| trial.n == 0) {
        return format!("No run is completed ({count}).");
    }
    let best = report.selected();
    if best.is_none() && report.trials.iter().any(|trial| !trial.is_feasible()) {
        return format!("No trial is ranked: none meets the constraints of the search; {count}.");
    }
    let Some((best, sample)) = best.and_then(|best| Some((best, report.objective_of(best)?)))
    else {
        return format!(
            "No trial is ranked: `{}` {}; {count}.",
            report.objective,
            if report.is_measured_differently(&report.objective) {
                "is another quantity in different trials"
            } else if report.trials.iter().any(Trial::has_mixed_data) {
                "is not averaged over runs that read different data"
            } else {
                "is not a number in any of them"
            }
        );
    };
    let student = sample.student.as_ref();
    let student = student.map_or(String::new(), |student| {
        format!(", 95 % interval {}", interval(student))
    });
    let is_left = |problem: &Problem| is_left(problem.outcome);
    let so_far = if report.problems.iter().any(is_left) {
        " so far"
    } else {
        ""
    };
    let ahead = format!(
        "Highest ranked{so_far}: `{}` with {} {} (n = {}{student}){}; {count}.",
        best.id,
        report.objective,
        mean_and_sd(&sample.description),
        best.n_in_words(),
        tied(report),
    );
    let claim = claim(report, best);
    let missing = report.missing_baseline.as_ref().map(|baseline| {
        format!("The baseline `{baseline}` has no value, so nothing is compared with it.")
    });
    let parts = [
        Some(ahead),
        infeasible(report),
        confirmed(report),
        claim,
        missing,
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// How many trials are not ranked because they do not meet the constraints of the search.
fn infeasible(report: &Report) -> Option<String> {
    let num = report.search.as_ref()?.num_infeasible;
    match num {
        0 => None,
        1 => Some("1 trial does not meet the constraints, and is not ranked.".into()),
        num => Some(format!(
            "{num} trials do not meet the constraints, and are not ranked."
        )),
    }
}

/// The best of the trials that were trained with other seeds after a search.
fn confirmed(report: &Report) -> Option<String> {
    let all = &report.search.as_ref()?.confirmed;
    let best = all.first()?;
    let sample = best.sample.as_ref()?;
    let student = sample.student.as_ref();
    let student = student.map_or(String::new(), |student| {
        format!(", 95 % interval {}", interval(student))
    });
    Some(format!(
        "With other seeds, `{}` is the best of {}: {} {} (n = {}{student}); {} in the search.",
        best.trial,
        counted(all.len(), "confirmed trial"),
        report.objective,
        mean_and_sd(&sample.description),
        sample.description.n,
        short_number(best.searched),
    ))
}

/// The trials exactly equal to the highest ranked one.
fn tied(report: &Report) -> String {
    match report.num_first() {
        0 | 1 => String::new(),
        2 => format!(
            ", tied with `{}`, which comes later in the file",
            report.trials[1].id
        ),
        num => format!(", the first in the file of {num} tied trials"),
    }
}

/// The verdict on the highest ranked trial against the baseline, or on the others against it.
fn claim(report: &Report, best: &Trial) -> Option<String> {
    let baseline = report.baseline.as_ref()?;
    if let Some(unbeaten) = &baseline.unbeaten {
        return Some(no_claim(&baseline.trial, &report.objective, unbeaten));
    }
    if !baseline.is_picked {
        return Some(match &best.verdict {
            Some(verdict) => format!(
                "Against the baseline `{}`: {}.",
                baseline.trial,
                verdict::in_words(verdict)
            ),
            None => match others(report)[..] {
                [] => "It is the baseline.".into(),
                [(other, verdict)] => format!(
                    "It is the baseline; the other, `{}`: {}.",
                    other.id,
                    verdict::in_words(verdict)
                ),
                ref all => format!("It is the baseline. {}", tally(all)),
            },
        });
    }
    Some(match others(report)[..] {
        [] => return None,
        [(other, verdict)] => format!(
            "Against the other, `{}`: {}.",
            other.id,
            verdict::in_words(verdict)
        ),
        ref all => {
            let is_worse = |found: &Verdict| {
                matches!(
                    verdict::statement(found),
                    Statement::Differs {
                        is_better: false,
                        ..
                    }
                )
            };
            let next = all.iter().find(|(_, found)| !is_worse(found));
            let next = next.map_or(String::new(), |(trial, found)| {
                format!(" The next, `{}`: {}.", trial.id, verdict::in_words(found))
            });
            match among(report, all) {
                Some(among) => among,
                None => format!("{}{next}", tally(all)),
            }
        }
    })
}

/// Why nothing is claimed against a baseline that learned nothing.
pub fn no_claim(baseline: &str, value: &str, unbeaten: &Unbeaten) -> String {
    format!(
        "No claim: the baseline `{baseline}` has not beaten the best constant prediction, which reaches {value} {}.",
        short_number(unbeaten.objective)
    )
}

/// Which trials may be the best, unless the verdicts against the highest ranked say more about all of them.
fn among(report: &Report, others: &[(&Trial, &Verdict)]) -> Option<String> {
    let candidates = report.candidates.as_ref()?;
    let num_claims = others.iter().filter(|(_, v)| verdict::is_claim(v)).count();
    if num_claims == others.len() {
        return None;
    }
    let (all, num) = (others.len() + 1, candidates.len());
    if num == all {
        return Some(format!(
            "Any of the {all} trials may be the best: none is ruled out by t tests at 5 %."
        ));
    }
    let named: Vec<String> = candidates
        .iter()
        .take(MOST_NAMED)
        .map(|id| format!("`{id}`"))
        .collect();
    let more = match num.saturating_sub(MOST_NAMED) {
        0 => String::new(),
        num => format!(" and {num} more"),
    };
    let claims = match num_claims {
        0 => String::new(),
        _ => format!(" {}", tally(others)),
    };
    Some(if num == 1 {
        format!(
            "With 95 % confidence it is the best of the {all} trials, if the noise is normal.{claims}"
        )
    } else {
        format!(
            "With 95 % confidence, the best of the {all} trials is one of {num}, if the noise is normal: {}{more}.{claims}",
            named.join(", ")
        )
    })
}

/// More candidates are counted.
const MOST_NAMED: usize = 5;

/// The trials with values that have a verdict, best first.
fn others(report: &Report) -> Vec<(&Trial, &Verdict)> {
    let judged = report.trials.iter().filter(|trial| trial.n > 0);
    judged
        .filter_map(|trial| Some((trial, trial.verdict.as_ref()?)))
        .collect()
}

fn tally(others: &[(&Trial, &Verdict)]) -> String {
    verdict::tally(
        &others
            .iter()
            .map(|(_, verdict)| *verdict)
            .collect::<Vec<_>>(),
    )
}

/// The meaning of the numbers in the ranked table.
pub fn about_table(report: &Report) -> String {
    let n = match report.folds {
        Some(folds) => format!("n runs, the {folds} folds of cross-validation for each seed"),
        None => "n seeds".into(),
    };
    let mut text = format!(
        "Mean ± standard deviation over {n}, at each run's best epoch by `{}`: {}. Intervals for the mean are Student's. s/run is wall time.",
        report.objective,
        report.ties.in_words(&report.objective)
    );
    if shows_last(report) {
        text.push_str(" The mean at the last epoch is listed too.");
    }
    if report.folds.is_some() {
        text.push_str(" Differences are paired by both and averaged by fold.");
    }
    let is_partial = |trial: &Trial| trial.n > 0 && trial.n < trial.runs.len();
    if report.trials.iter().any(is_partial) {
        text.push_str(" Where not all seeds are completed, as in \"2 of 3\", all numbers of a trial are over the completed ones; learning curves also have runs that have not ended.");
    }
    if report.trials.iter().any(|trial| {
        let student = report.objective_of(trial).and_then(|s| s.student);
        student.is_some_and(|student| is_beyond(&report.objective, &student))
    }) {
        text.push_str(&format!(" {}", about_bounds(&report.objective)));
    }
    text
}

/// Further remarks on the ranked table: the meaning of its spread, and runs that do not belong together.
pub fn about_runs(report: &Report) -> Vec<String> {
    let warnings = data_in_words(report).into_iter();
    let warnings = warnings.chain(other_items(report));
    let warnings = warnings.chain(environments_in_words(report));
    let warnings = warnings.map(|warning| format!("Warning: {warning}"));
    let varied = varied(report).into_iter();
    let looking = report
        .looks
        .as_ref()
        .and_then(|looks| looks.in_words(ALPHA));
    let looking = looking.filter(|_| report.has_tests() || !report.is_provisional());
    varied
        .chain(collapsed(report))
        .chain(failed(report))
        .chain(looking)
        .chain(warnings)
        .collect()
}

/// Why an interval extends beyond the range of its metric.
pub fn about_bounds(metric: &str) -> String {
    let (low, high) = bounds(metric);
    let ends = match (low.is_finite(), high.is_finite()) {
        (true, true) => format!("from {low} to {high}"),
        (true, false) => format!("at least {low}"),
        _ => format!("at most {high}"),
    };
    format!(
        "`{metric}` is {ends}: Student's interval ignores this bound, and values beyond it are impossible."
    )
}

/// The trials with a mark in the ranked table.
pub fn adjusted(report: &Report) -> Vec<String> {
    let adjusted = report.trials.iter().filter(|trial| trial.num_adjusted > 0);
    let lines = adjusted.map(|trial| {
        format!(
            "* In `{}`, {} of {} runs were not trained as planned: see the remarks.",
            trial.id, trial.num_adjusted, trial.n
        )
    });
    lines.collect()
}
