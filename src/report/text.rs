//! A report as a table for the terminal, as Markdown and as CSV.

use comfy_table::{ContentArrangement, Table, TableStyle, presets};
use serde_json::Value as Json;

use super::aggregate::{Mean, Report, Trial};
use super::backends::OnBackend;
use super::memory::TrialMemory;
use crate::spec::kind::show_bytes;

/// A number with the digits that a reader wants: 4 significant ones, no exponent where avoidable.
pub fn short_number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        v if !(1e-4..1e6).contains(&v) => format!("{value:.3e}"),
        v => {
            let digits = (3 - v.log10().floor() as i32).clamp(0, 6) as usize;
            format!("{value:.digits$}")
        }
    }
}

/// `0.9713 ± 0.0021`: to two digits of the standard deviation, which is all that the spread justifies.
fn mean_and_sd(mean: &Mean) -> String {
    match mean.sd {
        Some(sd) if sd > 0.0 && sd < 1e6 => {
            let digits = (1 - sd.log10().floor() as i32).clamp(0, 6) as usize;
            format!("{:.digits$} ± {sd:.digits$}", mean.mean)
        }
        Some(_) => format!("{} ± 0", short_number(mean.mean)),
        None => short_number(mean.mean),
    }
}

/// The value of an axis in a table or a name.
pub fn value_text(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        // A table is called by its type, with what else is written.
        Json::Object(table) => {
            let more = table.iter().filter(|(key, _)| *key != "type");
            let more = more.map(|(key, value)| format!("{key}={}", value_text(value)));
            let kind = table.get("type").map(value_text);
            kind.into_iter().chain(more).collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    }
}

/// The columns besides the objective that a reader wants to see: what was measured on valid and on test,
/// the loss last.
fn more_metrics(report: &Report) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for split in ["valid/", "valid_ema/", "test/", "test_ema/"] {
        let measured = report.trials.iter().flat_map(|trial| trial.metrics.keys());
        let of_split =
            measured.filter(|name| name.starts_with(split) && **name != report.objective);
        let mut of_split: Vec<&str> = of_split.map(String::as_str).collect();
        of_split.sort_by_key(|name| (name.ends_with("/loss"), *name));
        of_split.dedup();
        names.extend(of_split);
    }
    names
}

fn rows(report: &Report) -> (Vec<String>, Vec<Vec<String>>) {
    let more = more_metrics(report);
    let mut head = vec!["#".to_owned()];
    match report.axes.is_empty() {
        true => head.push("trial".into()),
        false => head.extend(report.axes.iter().cloned()),
    }
    head.push("n".into());
    head.push(report.objective.clone());
    head.extend(more.iter().map(|name| (*name).to_owned()));
    head.push("s/run".into());
    let metric =
        |trial: &Trial, name: &str| trial.metrics.get(name).map_or("-".into(), mean_and_sd);
    let row = |trial: &Trial| {
        let mut row = vec![trial.rank.map_or("-".into(), |rank| rank.to_string())];
        match report.axes.is_empty() {
            true => row.push(trial.id.clone()),
            false => row.extend(
                report
                    .axes
                    .iter()
                    .map(|key| trial.axes.get(key).map_or("-".into(), value_text)),
            ),
        }
        row.push(match trial.n == trial.runs.len() {
            true => trial.n.to_string() + mark(trial),
            false => format!("{} of {}{}", trial.n, trial.runs.len(), mark(trial)),
        });
        row.push(metric(trial, &report.objective));
        row.extend(more.iter().map(|name| metric(trial, name)));
        row.push(
            trial
                .wall_secs
                .map_or("-".into(), |secs| format!("{secs:.2}")),
        );
        row
    };
    (head, report.trials.iter().map(row).collect())
}

/// Marks a trial with runs that are not what was planned.
fn mark(trial: &Trial) -> &'static str {
    match trial.num_adjusted {
        0 => "",
        _ => "*",
    }
}

/// What the mark in a table means; none when no trial has it.
pub fn footnote(report: &Report) -> Option<&'static str> {
    let mut trials = report.trials.iter();
    let marked = trials.any(|trial| trial.num_adjusted > 0);
    marked.then_some(
        "* with runs that were adjusted, after a failure or to fit into memory: see the remarks of report.md",
    )
}

/// The ranked trials for a terminal of `width` columns: all metrics where they fit, else the objective
/// alone, else a line for each trial.
pub fn table(report: &Report, width: u16) -> String {
    let fits = |text: &String| {
        text.lines()
            .all(|line| line.chars().count() <= width as usize)
    };
    let (head, rows) = rows(report);
    let full = lay_out(head, rows, presets::NOTHING);
    if fits(&full) {
        return full;
    }
    let objective = |trial: &Trial| {
        trial
            .metrics
            .get(&report.objective)
            .map_or("-".into(), mean_and_sd)
    };
    let rank = |trial: &Trial| {
        trial
            .rank
            .map_or("-".into(), |rank: usize| rank.to_string())
    };
    let row = |trial: &Trial| {
        vec![
            rank(trial),
            trial.id.clone(),
            trial.n.to_string() + mark(trial),
            objective(trial),
        ]
    };
    let head = ["#", "trial", "n", report.objective.as_str()].map(str::to_owned);
    let short = lay_out(
        head.to_vec(),
        report.trials.iter().map(row).collect(),
        presets::NOTHING,
    );
    if fits(&short) {
        return short;
    }
    let line = |trial: &Trial| {
        let (rank, id, mark) = (rank(trial), &trial.id, mark(trial));
        format!("{rank}. {id}{mark}\n   {}\n", objective(trial))
    };
    report.trials.iter().map(line).collect()
}

fn lay_out(head: Vec<String>, rows: Vec<Vec<String>>, style: TableStyle) -> String {
    let mut table = Table::new();
    table.load_style(style);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(head);
    table.add_rows(rows);
    table.trim_fmt()
}

/// `report.md`.
pub fn markdown(report: &Report) -> String {
    let mut text = format!("# {}\n\n", report.experiment);
    for notice in &report.notices {
        text.push_str(&format!("> **Note.** {notice}.\n\n"));
    }
    if !report.question.is_empty() {
        text.push_str(&format!("{}\n\n", report.question));
    }
    text.push_str(&format!("{}\n\n", answer(report)));
    let (head, rows) = rows(report);
    text.push_str(&lay_out(head, rows, presets::ASCII_MARKDOWN));
    text.push_str(&format!(
        "\n\nMean ± standard deviation over n seeds, of each run's best epoch by `{}`; a test split is evaluated once, with that epoch's weights. s/run is wall time.\n",
        report.objective
    ));
    let adjusted = report.trials.iter().filter(|trial| trial.num_adjusted > 0);
    for trial in adjusted {
        text.push_str(&format!(
            "\n\\* In `{}`, {} of {} runs were not made as planned: see the remarks.\n",
            trial.id, trial.num_adjusted, trial.n
        ));
    }
    if !report.problems.is_empty() {
        text.push_str("\n## Not completed\n\n");
        for problem in &report.problems {
            text.push_str(&format!(
                "- `{}` {}: {}\n",
                problem.run, problem.outcome, problem.message
            ));
        }
    }
    if !report.remarks.is_empty() {
        text.push_str("\n## Remarks\n\n");
        for remark in &report.remarks {
            text.push_str(&format!("- {remark}\n"));
        }
    }
    if !report.leftovers.is_empty() {
        text.push_str("\n## Not part of this plan\n\nThe folder also holds runs of an earlier plan, which count for nothing here:\n\n");
        report
            .leftovers
            .iter()
            .for_each(|id| text.push_str(&format!("- `{id}`\n")));
    }
    push_backends(report, &mut text);
    push_memory(report, &mut text);
    text.push_str("\n## Data\n\n");
    for used in &report.provenance.data {
        text.push_str(&format!("- {}\n", used.what));
        for (split, digest) in &used.digests {
            text.push_str(&format!("  - sha256 of {split}: `{digest}`\n"));
        }
    }
    text.push_str("\n## Environment\n\n");
    for environment in &report.provenance.environments {
        let worker = environment.worker.as_ref();
        let commit = match (&environment.git_commit, environment.git_dirty) {
            (Some(commit), Some(true)) => format!(", git {commit} with changes"),
            (Some(commit), _) => format!(", git {commit}"),
            (None, _) => String::new(),
        };
        text.push_str(&format!(
            "- runner {}, Burn {}{commit}; {} ({} threads a run); {}, {} cores, {:.0} GiB; {} on {}\n",
            environment.runner_version,
            environment.burn_version,
            worker.map_or("", |w| w.device_name.as_str()),
            worker.map_or(0, |w| w.threads),
            environment.cpu,
            environment.cores,
            environment.memory_bytes as f64 / f64::from(1 << 30),
            environment.os,
            environment.host,
        ));
    }
    text.push_str("\n## Reproduce\n\n```sh\n");
    report
        .commands
        .values()
        .for_each(|command| text.push_str(&format!("{}\n", value_text(command))));
    text.push_str("```\n");
    text
}

/// The trials on several backends.
fn push_backends(report: &Report, text: &mut String) {
    if report.backends.is_empty() {
        return;
    }
    let dash = || "-".to_owned();
    let row = |on: &OnBackend| {
        let against = on.against_first.as_ref();
        let times = |factor: f64| format!("{} x", short_number(factor));
        vec![
            on.trial.clone(),
            on.backend.clone(),
            on.n.to_string(),
            on.objective.as_ref().map_or_else(dash, mean_and_sd),
            against.map_or_else(dash, |a| {
                let sign = if a.difference > 0.0 { "+" } else { "" };
                format!("{sign}{}", short_number(a.difference))
            }),
            on.epoch_secs.map_or_else(dash, short_number),
            against.map_or_else(dash, |a| times(a.speed)),
            on.memory_bytes.map_or_else(dash, show_bytes),
            against.and_then(|a| a.memory).map_or_else(dash, times),
        ]
    };
    let head = [
        "trial",
        "backend",
        "n",
        report.objective.as_str(),
        "difference",
        "s/epoch",
        "speed",
        "memory",
        "times",
    ];
    text.push_str("\n## By backend\n\n");
    text.push_str(&lay_out(
        head.map(str::to_owned).to_vec(),
        report.backends.iter().map(row).collect(),
        presets::ASCII_MARKDOWN,
    ));
    text.push_str("\n\nEach trial against the same on its first backend: the difference of the means, how many times faster an epoch's training is (the median epoch of each run, without validation), and how many times the memory it held at its peak, of the process on the CPU and of the device's pool on a GPU. All begin with the same weights and see the same batches.\n");
}

/// What the trials held of memory.
fn push_memory(report: &Report, text: &mut String) {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for trial in &report.trials {
        if let Some(memory) = &trial.memory {
            rows.push([vec![trial.id.clone()], memory.row()].concat());
        }
    }
    if rows.is_empty() {
        return;
    }
    let head = ["trial"].into_iter().chain(TrialMemory::HEAD);
    let head = head.map(str::to_owned).collect();
    text.push_str("\n## Memory\n\n");
    text.push_str(&lay_out(head, rows, presets::ASCII_MARKDOWN));
    text.push_str("\n\nThe peak over a trial's runs as counted beforehand, as foretold by measurements (`runner memory --calibrate`), and as measured: the process without mapped files; and what is in use and reserved of the device's pool, on the CPU of the process. The error is that of the better forecast against what is reserved.\n");
}

/// The first sentence: which trial is ahead, by its mean. It claims no more than that.
fn answer(report: &Report) -> String {
    let count = format!(
        "{} of {} runs completed",
        report.num_completed, report.num_runs
    );
    let Some(best) = report.trials.first().filter(|trial| trial.n > 0) else {
        return format!("No run is completed ({count}).");
    };
    let mean = best
        .metrics
        .get(&report.objective)
        .map_or("-".into(), mean_and_sd);
    format!(
        "Highest ranked: `{}` with {} {mean} (n = {}); {count}.",
        best.id, report.objective, best.n
    )
}

/// `report.csv`: one line for each trial, in rank order.
pub fn csv(report: &Report) -> String {
    let mut names: Vec<&String> = report
        .trials
        .iter()
        .flat_map(|trial| trial.metrics.keys())
        .collect();
    names.sort();
    names.dedup();
    let mut text = String::from("rank,trial");
    report
        .axes
        .iter()
        .for_each(|key| text.push_str(&format!(",{}", field(key))));
    text.push_str(",num_runs,n");
    names
        .iter()
        .for_each(|name| text.push_str(&format!(",{name}/mean,{name}/sd")));
    text.push_str(",wall_secs,num_adjusted\n");
    for trial in &report.trials {
        let rank = trial.rank.map_or(String::new(), |rank| rank.to_string());
        text.push_str(&format!("{rank},{}", field(&trial.id)));
        for key in &report.axes {
            text.push_str(&format!(
                ",{}",
                field(&trial.axes.get(key).map_or(String::new(), value_text))
            ));
        }
        text.push_str(&format!(",{},{}", trial.runs.len(), trial.n));
        for name in &names {
            let mean = trial.metrics.get(*name);
            let sd = mean.and_then(|mean| mean.sd);
            let number = |value: Option<f64>| value.map_or(String::new(), |v| v.to_string());
            text.push_str(&format!(",{},{}", number(mean.map(|m| m.mean)), number(sd)));
        }
        let secs = trial
            .wall_secs
            .map_or(String::new(), |secs| secs.to_string());
        text.push_str(&format!(",{secs},{}\n", trial.num_adjusted));
    }
    text
}

/// A field of a CSV file (RFC 4180).
fn field(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_the_spread_justifies() {
        let shown = |mean, sd| mean_and_sd(&Mean { mean, sd });
        assert_eq!(shown(0.971_312, Some(0.002_14)), "0.9713 ± 0.0021");
        assert_eq!(shown(12.345, Some(1.5)), "12.3 ± 1.5");
        assert_eq!(shown(0.971_312, None), "0.9713");
        assert_eq!(short_number(0.000_012_3), "1.230e-5");
    }
}
