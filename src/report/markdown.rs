//! `report.md`: what the report says, without pictures.

use comfy_table::presets;

use super::model::{AxisEffect, Report, Trial};
use super::numbers::{interval, mean_and_sd, short_number, value_text};
use super::sample::Sample;
use super::table::{Columns, ranked, verdict_of};
use super::verdict;
use super::{backends, memory};
use crate::record::Environment;
use crate::spec::backend::Precision;
use crate::spec::section::Choice;
use crate::statistics::{Balance, EffectMeasure};

/// More rows than this are left to `report.csv`.
const MAX_ROWS: usize = 200;

/// The text of `report.md`.
pub fn markdown(report: &Report) -> String {
    let mut text = format!("# {}\n\n", report.experiment);
    for notice in &report.notices {
        text.push_str(&format!("> **Note.** {notice}.\n\n"));
    }
    if !report.question.is_empty() {
        text.push_str(&format!("{}\n\n", report.question));
    }
    text.push_str(&format!("{}\n\n", answer(report)));
    push_table(&mut text, ranked(report, true));
    text.push_str(&format!(
        "\nMean ± standard deviation over n seeds, of each run's best epoch by `{}`. The interval for the mean is Student's. s/run is wall time.\n",
        report.objective
    ));
    let adjusted = report.trials.iter().filter(|trial| trial.num_adjusted > 0);
    for trial in adjusted {
        text.push_str(&format!(
            "\n\\* In `{}`, {} of {} runs were not made as planned: see the remarks.\n",
            trial.id, trial.num_adjusted, trial.n
        ));
    }
    push_list(
        &mut text,
        "Not completed",
        report.problems.iter().map(|problem| {
            format!(
                "`{}` {}: {}",
                problem.run,
                problem.outcome.word(),
                problem.message
            )
        }),
    );
    push_test(report, &mut text);
    push_verdicts(report, &mut text);
    report
        .effects
        .iter()
        .for_each(|effect| push_effect(report, effect, &mut text));
    push_seeds(report, &mut text);
    push_list(&mut text, "Remarks", report.remarks.iter().cloned());
    if !report.leftovers.is_empty() {
        text.push_str("\n## Not part of this plan\n\nThe folder also holds runs of an earlier plan, which count for nothing here:\n\n");
        let ids = report.leftovers.iter();
        ids.for_each(|id| text.push_str(&format!("- `{id}`\n")));
    }
    push_backends(report, &mut text);
    push_memory(report, &mut text);
    push_provenance(report, &mut text);
    text.push_str("\n## Reproduce\n\n```sh\n");
    let is_skipped = |run: &str| {
        let mut problems = report.problems.iter();
        problems.any(|problem| problem.run == run && problem.is_skipped())
    };
    let commands = report.commands.iter().filter(|(run, _)| !is_skipped(run));
    commands.for_each(|(_, command)| text.push_str(&format!("{}\n", value_text(command))));
    text.push_str("```\n");
    text
}

/// The first sentences: which trial is ahead, and what may be claimed of it.
pub fn answer(report: &Report) -> String {
    let count = format!(
        "{} of {} runs completed",
        report.num_completed, report.num_runs
    );
    let best = report.trials.first().filter(|trial| trial.n > 0);
    let Some((best, sample)) = best.and_then(|best| Some((best, report.objective_of(best)?)))
    else {
        return format!("No run is completed ({count}).");
    };
    let student = sample.student.as_ref();
    let student = student.map_or(String::new(), |student| {
        format!(", 95 % interval {}", interval(student))
    });
    let ahead = format!(
        "Highest ranked: `{}` with {} {} (n = {}{student}); {count}.",
        best.id,
        report.objective,
        mean_and_sd(&sample.description),
        best.n,
    );
    match claim(report, best) {
        Some(claim) => format!("{ahead} {claim}"),
        None => ahead,
    }
}

/// What may be said of the highest ranked trial against the baseline, or of the others against it.
fn claim(report: &Report, best: &Trial) -> Option<String> {
    let baseline = report.baseline.as_ref()?;
    if !baseline.is_picked {
        return Some(match &best.verdict {
            Some(verdict) => format!(
                "Against the baseline `{}`: {}.",
                baseline.trial,
                verdict::in_words(verdict)
            ),
            None => "It is the baseline.".into(),
        });
    }
    let judged = report.trials.iter().filter(|trial| trial.n > 0);
    let judged: Vec<&Trial> = judged.filter(|trial| trial.verdict.is_some()).collect();
    let is_worse = |trial: &&&Trial| verdict_of(report, trial) == "worse";
    let num_worse = judged.iter().filter(is_worse).count();
    let next = judged.iter().find(|trial| !is_worse(trial));
    Some(match (num_worse, next) {
        (_, None) if judged.is_empty() => return None,
        (_, None) => format!("All {num_worse} others are worse."),
        (num, Some(next)) => format!(
            "{num} of {} others are worse; against the next, `{}`: {}.",
            judged.len(),
            next.id,
            verdict_of(report, next)
        ),
    })
}

fn push_table(text: &mut String, mut columns: Columns) {
    let num = columns.rows.len();
    columns.rows.truncate(MAX_ROWS);
    text.push_str(&columns.lay_out(presets::ASCII_MARKDOWN));
    text.push('\n');
    if num > MAX_ROWS {
        text.push_str(&format!(
            "\nThe first {MAX_ROWS} of {num} rows; `report.csv` has all.\n"
        ));
    }
}

fn push_list(text: &mut String, title: &str, lines: impl Iterator<Item = String>) {
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        return;
    }
    text.push_str(&format!("\n## {title}\n\n"));
    for line in lines.iter().take(MAX_ROWS) {
        text.push_str(&format!("- {line}\n"));
    }
    if lines.len() > MAX_ROWS {
        let more = lines.len() - MAX_ROWS;
        text.push_str(&format!("- and {more} more; `report.json` has all\n"));
    }
}

fn columns<const N: usize>(head: [&str; N], rows: Vec<Vec<String>>) -> Columns {
    Columns {
        head: head.map(str::to_owned).to_vec(),
        rows,
    }
}

fn push_test(report: &Report, text: &mut String) {
    let Some(best) = report.trials.first().filter(|_| !report.test.is_empty()) else {
        return;
    };
    text.push_str(&format!(
        "\n## Test\n\nOf `{}` alone, which was selected by `{}`, evaluated once with the weights of the best epoch:\n\n",
        best.id, report.objective
    ));
    for (name, sample) in &report.test {
        text.push_str(&format!("- {name} {}\n", in_full(sample)));
    }
}

/// `0.9713 ± 0.0021 (n = 3, 95 % interval 0.966 to 0.977)`.
fn in_full(sample: &Sample) -> String {
    let student = sample.student.as_ref();
    let student = student.map_or(String::new(), |student| {
        format!(", 95 % interval {}", interval(student))
    });
    format!(
        "{} (n = {}{student})",
        mean_and_sd(&sample.description),
        sample.description.n
    )
}

fn push_verdicts(report: &Report, text: &mut String) {
    let Some(baseline) = &report.baseline else {
        return;
    };
    let judged = report
        .trials
        .iter()
        .filter_map(|trial| Some((trial, trial.verdict.as_ref()?)));
    let judged: Vec<_> = judged
        .filter(|(_, verdict)| verdict.comparison.is_some())
        .collect();
    let Some((_, first)) = judged.first() else {
        return;
    };
    let why = match baseline.is_picked {
        true => format!(
            "`{}`, the highest ranked. It was picked for its values, so they are corrected for the {} comparisons of all trials with each other; `objective.baseline` names another trial",
            baseline.trial, first.num_comparisons
        ),
        false => format!(
            "`{}`, the baseline of the file, corrected for {} comparisons",
            baseline.trial, first.num_comparisons
        ),
    };
    text.push_str(&format!(
        "\n## Verdicts\n\nBy `{}` against {why}. Differences are paired by seed and tested with the exact sign-flip test, or with the exact Mann-Whitney test where no seed is common; all claims together are wrong with a probability of at most {} (Holm). \"No difference shown\" is no claim that there is none.\n\n",
        report.objective,
        percent(first.alpha),
    ));
    let rows = judged.iter().map(|(trial, found)| {
        let compared = found.comparison.as_ref();
        let number = |value: Option<f64>| value.map_or("-".into(), short_number);
        vec![
            trial.id.clone(),
            verdict::difference(found),
            compared
                .and_then(|c| c.interval.as_ref())
                .map_or("-".into(), interval),
            compared
                .and_then(|c| c.effect)
                .map_or("-".into(), |effect| {
                    let name = match effect.measure {
                        EffectMeasure::CohensDz => "d_z",
                        EffectMeasure::HedgesG => "g",
                    };
                    format!("{name} {:.1}", effect.value)
                }),
            number(compared.map(|c| c.test.p)),
            number(found.p_corrected),
            verdict::in_words(found),
        ]
    });
    let head = [
        "trial",
        "difference",
        "95 % interval",
        "effect",
        "p",
        "p corrected",
        "verdict",
    ];
    push_table(text, columns(head, rows.collect()));
}

fn push_effect(report: &Report, effect: &AxisEffect, text: &mut String) {
    text.push_str(&format!("\n## Effect of `{}`\n\n", effect.key));
    push_table(text, effect_columns(effect, &report.objective));
    text.push_str(&format!("\n{}\n", effect_note(effect)));
}

/// A row for each value of an axis.
pub fn effect_columns(effect: &AxisEffect, value: &str) -> Columns {
    let rows = effect.marginal.levels.iter().map(|level| {
        vec![
            level.level.clone(),
            level.num_rows.to_string(),
            level.n.to_string(),
            short_number(level.mean),
            level.interval.as_ref().map_or("-".into(), interval),
        ]
    });
    let head = [effect.key.as_str(), "runs", "seeds", value, "95 % interval"];
    columns(head, rows.collect())
}

/// How the rows are to be read.
pub fn effect_note(effect: &AxisEffect) -> String {
    let note =
        "The mean over all other settings for each seed, and Student's interval over the seeds.";
    match effect.marginal.balance {
        Balance::Balanced => note.into(),
        Balance::Unbalanced { missing, repeated } => format!(
            "{note} Not every value was tried with the same others ({missing} combinations are missing, {repeated} are there more than once), so a difference may be that of the others."
        ),
    }
}

/// A share as a percentage, such as `5 %`.
pub fn percent(share: f64) -> String {
    let digits = format!("{:.4}", 100.0 * share);
    format!("{} %", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// The objective of each seed.
fn push_seeds(report: &Report, text: &mut String) {
    let sampled = report
        .trials
        .iter()
        .filter_map(|trial| Some((trial, report.objective_of(trial)?)));
    let sampled: Vec<(&Trial, &Sample)> = sampled.collect();
    let mut seeds: Vec<u64> = sampled
        .iter()
        .flat_map(|(_, sample)| sample.by_seed.iter().map(|(seed, _)| *seed))
        .collect();
    seeds.sort_unstable();
    seeds.dedup();
    // Of more seeds than fit into a line nobody reads the values.
    if !(2..=10).contains(&seeds.len()) {
        return;
    }
    text.push_str(&format!(
        "\n## Each seed\n\n`{}` by seed.\n\n",
        report.objective
    ));
    let mut head = vec!["trial".to_owned()];
    head.extend(seeds.iter().map(u64::to_string));
    head.extend(["best", "worst"].map(str::to_owned));
    let rows = sampled.iter().map(|(trial, sample)| {
        let number = |value: Option<f64>| value.map_or("-".into(), short_number);
        let of_seed = |seed: &u64| {
            sample
                .by_seed
                .iter()
                .find(|(s, _)| s == seed)
                .map(|(_, v)| *v)
        };
        let mut row = vec![trial.id.clone()];
        row.extend(seeds.iter().map(|seed| number(of_seed(seed))));
        row.extend([number(sample.best), number(sample.worst)]);
        row
    });
    let rows = rows.collect();
    push_table(text, Columns { head, rows });
}

/// The trials on several backends.
fn push_backends(report: &Report, text: &mut String) {
    if report.backends.is_empty() {
        return;
    }
    text.push_str("\n## By backend\n\n");
    push_table(text, backends::rows(&report.backends, &report.objective));
    text.push_str("\nEach trial against the same on its first backend: the difference of the means with its verdict, how many times faster an epoch's training is (the median epoch of each run, without validation), and how many times the memory it held at its peak, of the process on the CPU and of the device's pool on a GPU. All see the same batches and begin with the same weights");
    let f64 = Precision::F64.name();
    let draws_its_own = |trial: &Trial| trial.precision == f64;
    text.push_str(match report.trials.iter().any(draws_its_own) {
        true => ", but for those in f64, which draw their own.\n",
        false => ".\n",
    });
}

/// What the trials held of memory.
fn push_memory(report: &Report, text: &mut String) {
    let trials = report.trials.iter();
    let rows = trials.filter_map(|trial| {
        let memory = trial.memory.as_ref()?;
        Some([vec![trial.id.clone()], memory::row(memory)].concat())
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return;
    }
    let head = ["trial"].into_iter().chain(memory::HEAD);
    let head = head.map(str::to_owned).collect();
    text.push_str("\n## Memory\n\n");
    push_table(text, Columns { head, rows });
    text.push_str("\nThe peak over a trial's runs as counted beforehand, as foretold by measurements (`runner memory --calibrate`), and as measured: the process without mapped files; and what is in use and reserved of the device's pool, on the CPU of the process. The error is that of the better forecast against what is reserved.\n");
}

fn push_provenance(report: &Report, text: &mut String) {
    text.push_str("\n## Data\n\n");
    let data = &report.provenance.data;
    for (at, used) in data.iter().enumerate() {
        // What no run has read yet has no digests, and is left out beside the same with digests.
        let is_same = |other: &&crate::record::DataUsed| other.what == used.what;
        let is_first = data.iter().position(|other| other.what == used.what) == Some(at);
        let is_known = data
            .iter()
            .filter(is_same)
            .any(|other| !other.digests.is_empty());
        if used.digests.is_empty() && (is_known || !is_first) {
            continue;
        }
        text.push_str(&format!("- {}\n", used.what));
        for (split, digest) in &used.digests {
            text.push_str(&format!("  - sha256 of {split}: `{digest}`\n"));
        }
    }
    text.push_str("\n## Environment\n\n");
    for environment in &report.provenance.environments {
        text.push_str(&format!("- {}\n", environment_in_words(environment)));
    }
}

/// Versions, device and machine in a line.
pub fn environment_in_words(environment: &Environment) -> String {
    let worker = environment.worker.as_ref();
    let commit = match (&environment.git_commit, environment.git_dirty) {
        (Some(commit), Some(true)) => format!(", git {commit} with changes"),
        (Some(commit), _) => format!(", git {commit}"),
        (None, _) => String::new(),
    };
    format!(
        "runner {}, Burn {}{commit}; {} ({} threads a run); {}, {} cores, {:.0} GiB; {} on {}",
        environment.runner_version,
        environment.burn_version,
        worker.map_or("", |w| w.device_name.as_str()),
        worker.map_or(0, |w| w.threads),
        environment.cpu,
        environment.cores,
        environment.memory_bytes as f64 / f64::from(1 << 30),
        environment.os,
        environment.host,
    )
}
