//! `report.csv`: one line per trial, in rank order.

use super::escaped::field;
use super::infeasible::{has_constraints, violation};
use super::model::{Report, Trial};
use super::numbers::value_text;
use super::table::verdict_of;

/// The text of `report.csv`. Numbers have all their digits.
pub fn csv(report: &Report) -> String {
    let measured = report.trials.iter().flat_map(|trial| trial.metrics.keys());
    let mut names: Vec<&String> = measured.collect();
    names.sort();
    names.dedup();
    let mut head = vec!["rank".to_owned(), "trial".into()];
    head.extend(report.axes.iter().cloned());
    head.extend(["num_runs", "n"].map(str::to_owned));
    for name in &names {
        head.extend([format!("{name}/mean"), format!("{name}/sd")]);
    }
    let of_objective =
        ["low", "high", "best", "worst"].map(|what| format!("{}/{what}", report.objective));
    head.extend(of_objective);
    head.extend(
        [
            "difference",
            "p",
            "p_corrected",
            "verdict",
            "wall_secs",
            "epoch_secs",
        ]
        .map(str::to_owned),
    );
    head.extend(["memory_bytes", "num_adjusted", "data_sets", "differing"].map(str::to_owned));
    head.extend(has_constraints(report).then(|| "violation".to_owned()));
    let mut text = line(&head);
    for trial in &report.trials {
        text.push_str(&line(&row(report, trial, &names)));
    }
    text
}

fn row(report: &Report, trial: &Trial, names: &[&String]) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let mut row = vec![
        trial.rank.map_or(String::new(), |rank| rank.to_string()),
        trial.id.clone(),
    ];
    let value = |key: &String| trial.axes.get(key).map_or(String::new(), value_text);
    row.extend(report.axes.iter().map(value));
    row.extend([trial.runs.len().to_string(), trial.n.to_string()]);
    for name in names {
        let sample = trial.metrics.get(*name).map(|sample| &sample.description);
        row.push(number(sample.map(|sample| sample.mean)));
        row.push(number(sample.and_then(|sample| sample.sd)));
    }
    let sample = report.objective_of(trial);
    let student = sample.and_then(|sample| sample.student);
    row.extend([
        number(student.map(|interval| interval.low)),
        number(student.map(|interval| interval.high)),
        number(sample.and_then(|sample| sample.best)),
        number(sample.and_then(|sample| sample.worst)),
    ]);
    let compared = trial.verdict.as_ref().and_then(|v| v.comparison.as_ref());
    let differing: Vec<&str> = trial.differing.iter().map(|it| it.what.as_str()).collect();
    row.extend([
        number(compared.map(|compared| compared.mean_difference)),
        number(compared.map(|compared| compared.test.p)),
        number(trial.verdict.as_ref().and_then(|v| v.p_corrected)),
        match verdict_of(report, trial).as_str() {
            "-" => String::new(),
            words => words.to_owned(),
        },
        number(trial.wall_secs),
        number(trial.epoch_secs),
        trial
            .memory
            .map_or(String::new(), |memory| memory.measured.bytes().to_string()),
        trial.num_adjusted.to_string(),
        trial.mixed_data.len().max(trial.n.min(1)).to_string(),
        differing.join("; "),
    ]);
    // Empty if it is not known.
    let violation = Some(violation(trial)).filter(|sum| trial.n > 0 && sum.is_finite());
    row.extend(has_constraints(report).then(|| number(violation)));
    row
}

/// A line of a CSV file (RFC 4180) in which no text is a formula.
pub fn line(fields: &[String]) -> String {
    let fields: Vec<String> = fields.iter().map(|text| field(text)).collect();
    fields.join(",") + "\n"
}
