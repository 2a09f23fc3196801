//! Test, verdicts in detail, and the value of each seed.

use super::{Section, head};
use crate::report::model::{Report, Trial};
use crate::report::numbers::{interval, mean_and_sd, percent, short_number};
use crate::report::sample::{Repeat, Sample};
use crate::report::table::all_metrics;
use crate::report::varied::varied_briefly;
use crate::report::verdict;
use runner_core::diagnostic::counted;
use runner_statistics::{Design, EffectMeasure, Verdict};

/// Test metrics, only of the highest ranked trial.
pub fn test(report: &Report) -> Option<Section> {
    let best = report.selected().filter(|_| !report.test.is_empty())?;
    let mut section = Section::new("test", "Test").intro(format!(
        "Only of `{}`, which was selected by `{}`, evaluated once with the weights of the best epoch:",
        best.id, report.objective
    ));
    let measured = report.test.iter();
    let lines = measured.map(|(name, sample)| format!("`{name}` {}", in_full(sample, best)));
    section.list = lines.collect();
    section.notes.extend(varied_briefly(report));
    Some(section)
}

/// `0.9713 ± 0.0021 (n = 3, 95 % interval 0.966 to 0.977)`.
fn in_full(sample: &Sample, trial: &Trial) -> String {
    let student = sample.student.as_ref();
    let student = student.map_or(String::new(), |student| {
        format!(", 95 % interval {}", interval(student))
    });
    let n = trial.n_in_words();
    format!("{} (n = {n}{student})", mean_and_sd(&sample.description))
}

/// The basis of each verdict.
pub fn verdicts(report: &Report) -> Option<Section> {
    let baseline = report.baseline.as_ref()?;
    let judged = report.trials.iter();
    let judged = judged.filter_map(|trial| Some((trial, trial.verdict.as_ref()?)));
    let judged: Vec<_> = judged
        .filter(|(_, verdict)| verdict.comparison.is_some())
        .collect();
    let (_, first) = judged.first()?;
    let why = match (baseline.is_picked, first.num_comparisons) {
        (true, 1) => format!(
            "`{}`, the highest ranked; `objective.baseline` selects another trial",
            baseline.trial
        ),
        (false, 1) => format!("`{}`, the baseline of the file", baseline.trial),
        (true, num) => format!(
            "`{}`, the highest ranked. It was selected by its values, so they are corrected for the {num} comparisons of all trials with each other; `objective.baseline` selects another trial",
            baseline.trial
        ),
        (false, num) => format!(
            "`{}`, the baseline of the file, corrected for {num} comparisons",
            baseline.trial
        ),
    };
    let rows = judged.iter().map(|(trial, found)| {
        let compared = found.comparison.as_ref();
        let number = |value: Option<f64>| value.map_or_else(super::dash, short_number);
        let effect = compared.and_then(|c| c.effect).map(|effect| {
            let name = match effect.measure {
                EffectMeasure::CohensDz => "d_z",
                EffectMeasure::HedgesG => "g",
            };
            format!("{name} {:.1}", effect.value)
        });
        let between = compared.and_then(|c| c.interval.as_ref());
        vec![
            trial.id.clone(),
            compared.map_or_else(super::dash, |c| paired(c.design)),
            verdict::difference(found),
            between.map_or_else(super::dash, interval),
            effect.unwrap_or_else(super::dash),
            number(compared.map(|c| c.test.p)),
            number(found.p_corrected),
            number(found.if_normal.map(|normal| normal.p_corrected)),
            verdict::in_words(found),
        ]
    });
    let names = head([
        "trial",
        "compared",
        "difference",
        "95 % interval",
        "effect",
        "p",
        "p corrected",
        "if normal",
        "verdict",
    ]);
    let mut section = Section::new("verdicts", "Verdicts").intro(format!(
        "By `{}` against {why}. {}",
        report.objective,
        how(report, first.alpha)
    ));
    section.notes.extend(unpaired(&judged));
    Some(
        section
            .table(names, rows.collect())
            .notes(varied_briefly(report)),
    )
}

/// How differences are tested, and the meaning of the columns of p-values.
fn how(report: &Report, alpha: f64) -> String {
    let wrong = percent(alpha);
    let equal = report.smallest_difference.map_or(String::new(), |within| {
        format!(
            " Equality within {within} is claimed with two one-sided t tests; the probability of any wrong claim is at most {wrong} for all of them together."
        )
    });
    if report.overlap.is_some() {
        return format!(
            "Differences are paired by {} and averaged by split. Runs on several splits share training items, so no exact test is valid for them. The t test is that of Nadeau and Bengio (2003), whose variance allows for this; with several seeds on each split, the variance over seeds is added. If the noise is normal, the probability of any wrong claim is at most {wrong} for all claims together (Holm).{equal}",
            report.repeats()
        );
    }
    format!(
        "Differences are paired by {} where enough seeds are shared. `p` is the p-value of the exact sign-flip test, or of the exact Mann-Whitney test without pairs, on which `better` and `worse` are based. Where there are too few seeds for an exact test, `if normal` is the corrected p-value of Student's t test, paired or Welch's. For each of the two, the probability of any wrong claim is at most {wrong} for all claims together (Holm), for the second if the noise is normal.{equal}",
        report.repeats()
    )
}

/// What was compared: `3 pairs`, `5 pairs of 10 and 10`, `10 against 10`.
fn paired(design: Design) -> String {
    match design {
        Design::Paired {
            pairs,
            only_first: 0,
            only_second: 0,
        } => counted(pairs, "pair"),
        Design::Paired {
            pairs,
            only_first,
            only_second,
        } => format!(
            "{} of {} and {}",
            counted(pairs, "pair"),
            pairs + only_first,
            pairs + only_second
        ),
        Design::Independent { first, second, .. } => format!("{first} against {second}"),
    }
}

/// Why some trials were not paired, although they share seeds.
fn unpaired(judged: &[(&Trial, &Verdict)]) -> Option<String> {
    let has_some =
        |design: Design| matches!(design, Design::Independent { common, .. } if common > 0);
    let compared = judged
        .iter()
        .filter_map(|(trial, found)| Some((trial, found.comparison?)));
    let mut few = compared.filter(|(_, compared)| has_some(compared.design));
    let (first, _) = few.next()?;
    let more = match few.count() {
        0 => String::new(),
        num => format!(" and {num} more"),
    };
    Some(format!(
        "`{}`{more} and the baseline share so few seeds that pairs would be less informative than all values without pairs; this is decided by the seeds, not by the values.",
        first.id
    ))
}

/// The other metrics, if the ranked table has no room for them.
pub fn metrics(report: &Report) -> Option<Section> {
    let section = Section::new("metrics", "All metrics").intro(format!(
        "Mean ± standard deviation over the runs of a trial, at each run's best epoch by `{}`.",
        report.objective
    ));
    let section = section.columns(all_metrics(report)?);
    Some(section.notes(varied_briefly(report)))
}

/// The objective of each seed.
pub fn seeds(report: &Report) -> Option<Section> {
    let sampled = report.trials.iter();
    let sampled = sampled.filter_map(|trial| Some((trial, report.objective_of(trial)?)));
    let sampled: Vec<(&Trial, &Sample)> = sampled.collect();
    let all = sampled.iter().flat_map(|(_, sample)| &sample.by_seed);
    let mut seeds: Vec<Repeat> = all.map(|(seed, _)| *seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    // With more seeds than fit into a line, nobody reads the values.
    if !(2..=10).contains(&seeds.len()) {
        return None;
    }
    let mut names = head(["trial"]);
    names.extend(seeds.iter().map(Repeat::to_string));
    names.extend(["best", "worst"].map(str::to_owned));
    let rows = sampled.iter().map(|(trial, sample)| {
        let number = |value: Option<f64>| value.map_or_else(super::dash, short_number);
        let of_seed = |seed: &Repeat| {
            let found = sample.by_seed.iter().find(|(s, _)| s == seed);
            found.map(|(_, value)| *value)
        };
        let mut row = vec![trial.id.clone()];
        row.extend(seeds.iter().map(|seed| number(of_seed(seed))));
        row.extend([number(sample.best), number(sample.worst)]);
        row
    });
    let rows = rows.collect();
    let section = Section::new("seeds", "Each seed");
    Some(
        section
            .intro(format!("`{}` by {}.", report.objective, report.repeats()))
            .table(names, rows),
    )
}
