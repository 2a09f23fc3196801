//! A comparison as text: for a terminal, as Markdown and as CSV.

use comfy_table::{TableStyle, presets};

use super::{Compared, Comparison, Front, Pivot};
use crate::report::answer::{about_bounds, no_claim};
use crate::report::backends::rows as backend_rows;
use crate::report::escaped::prose;
use crate::report::numbers::{interval, mean_and_sd, percent, short_number, value_text};
use crate::report::sample::is_beyond;
use crate::report::sections::{effect_columns, effect_note};
use crate::report::table::lay_out;
use crate::report::{csv::line, verdict};
use runner_core::show::show_bytes;
use runner_core::table::{Columns, fit};

/// The columns that are omitted for lack of space.
const COST_COLUMNS: [&str; 4] = ["s/epoch", "speed", "memory", "times"];

/// For a terminal of `width` columns.
pub fn plain(comparison: &Comparison, width: u16) -> String {
    Text {
        style: presets::NOTHING,
        heading: "",
        width: Some(width),
    }
    .write(comparison)
}

/// As Markdown.
pub fn markdown(comparison: &Comparison) -> String {
    Text {
        style: presets::ASCII_MARKDOWN,
        heading: "## ",
        width: None,
    }
    .write(comparison)
}

struct Text {
    style: TableStyle,
    heading: &'static str,
    width: Option<u16>,
}

impl Text {
    fn write(&self, comparison: &Comparison) -> String {
        let mut text = self.ranked(comparison);
        text.push_str(&format!("\n{}\n", self.prose(&basis(comparison))));
        let is_beyond = |trial: &Compared| {
            let student = trial.sample.as_ref().and_then(|s| s.student.as_ref());
            student.is_some_and(|student| is_beyond(&comparison.value, student))
        };
        if comparison.trials.iter().any(is_beyond) {
            text.push_str(&format!(
                "\n{}\n",
                self.prose(&about_bounds(&comparison.value))
            ));
        }
        for note in &comparison.notes {
            text.push_str(&format!("\nNote: {}.\n", self.prose(note)));
        }
        let mut section = |title: &str, columns: Columns, after: &str| {
            text.push_str(&format!("\n{}{}\n\n", self.heading, self.prose(title)));
            text.push_str(&self.table(columns));
            text.push('\n');
            if !after.is_empty() {
                text.push_str(&format!("\n{}\n", self.prose(after)));
            }
        };
        if let Some(pivot) = &comparison.pivot {
            let title = format!(
                "`{}` by `{}` and `{}`",
                comparison.value, pivot.row_key, pivot.column_key
            );
            section(
                &title,
                pivot_columns(pivot),
                "Mean ± standard deviation over seeds, of each seed's mean over all other settings, with the number of seeds.",
            );
        }
        if let Some(front) = &comparison.pareto {
            let [a, b] = &front.values;
            let title = format!("Best trade-offs of `{a}` and `{b}`");
            let after = format!(
                "{} of {} trials; no other trial is at least as good in both means and better in one. Means over few seeds vary, and so does the front.",
                front.trials.len(),
                front.num_compared
            );
            section(&title, front_columns(front), &after);
        }
        if !comparison.backends.is_empty() {
            section(
                "By backend",
                backend_rows(&comparison.backends, &comparison.value),
                "Each trial compared with the same trial on its first backend; speed and memory as factors.",
            );
        }
        for effect in &comparison.effects {
            let title = format!("Effect of `{}`", effect.key);
            section(
                &title,
                effect_columns(effect, &comparison.value),
                &effect_note(effect),
            );
        }
        text
    }

    /// A table in the available width.
    fn table(&self, columns: Columns) -> String {
        match self.width {
            Some(_) => fit(columns, self.width, &[]).text,
            None => lay_out(columns, self.style),
        }
    }

    /// A paragraph: in Markdown without anything that a renderer would interpret.
    fn prose(&self, text: &str) -> String {
        if self.width.is_some() {
            text.to_owned()
        } else {
            prose(text)
        }
    }

    /// All columns if they fit, otherwise without costs.
    fn ranked(&self, comparison: &Comparison) -> String {
        let text = lay_out(ranked_columns(comparison, true), self.style);
        let num_columns = text.lines().map(runner_core::table::width).max();
        if self
            .width
            .is_none_or(|width| num_columns <= Some(width.into()))
        {
            return text + "\n";
        }
        let least: Vec<&str> = COST_COLUMNS.into_iter().chain(["95 % interval"]).collect();
        let fitted = fit(ranked_columns(comparison, true), self.width, &least);
        if fitted.left_out.is_empty() {
            return fitted.text + "\n";
        }
        format!(
            "{}\n\nOmitted for lack of space: {}; see `--csv` or `--json`.\n",
            fitted.text,
            fitted.left_out.join(", ")
        )
    }
}

fn ranked_columns(comparison: &Comparison, with_costs: bool) -> Columns {
    let dash = || "-".to_owned();
    let times = |factor: f64| format!("{} x", short_number(factor));
    let mut head = vec![
        "#".to_owned(),
        "trial".into(),
        "n".into(),
        if comparison.is_common {
            comparison.value.clone()
        } else {
            format!("{} †", comparison.value)
        },
    ];
    head.extend(["95 % interval", "difference", "verdict"].map(str::to_owned));
    if with_costs {
        head.extend(COST_COLUMNS.map(str::to_owned));
    }
    let is_baseline = |trial: &Compared| {
        let baseline = comparison.baseline.as_ref();
        baseline.is_some_and(|baseline| baseline.trial == trial.id)
    };
    let is_unbeaten = comparison
        .baseline
        .as_ref()
        .is_some_and(|baseline| baseline.unbeaten.is_some());
    let ranks: Vec<usize> = comparison.trials.iter().filter_map(|t| t.rank).collect();
    let row = |trial: &Compared| {
        let sample = trial.sample.as_ref();
        let found = trial.verdict.as_ref();
        let mark = if trial.num_adjusted > 0 { "*" } else { "" };
        let mut row = vec![
            match trial.rank {
                Some(rank) if ranks.iter().filter(|other| **other == rank).count() > 1 => {
                    format!("{rank} tied")
                }
                Some(rank) => rank.to_string(),
                None => dash(),
            },
            trial.id.clone(),
            match sample.map_or(0, |s| s.description.n) {
                n if n == trial.num_runs => format!("{n}{mark}"),
                n => format!("{n} of {}{mark}", trial.num_runs),
            },
            sample.map_or_else(dash, |s| mean_and_sd(&s.description)),
            sample
                .and_then(|s| s.student.as_ref())
                .map_or_else(dash, interval),
            found.map_or_else(dash, verdict::difference),
            match found {
                _ if is_baseline(trial) => "baseline".into(),
                _ if trial.has_other_items => "other items".into(),
                None if is_unbeaten && sample.is_some() => "no claim".into(),
                Some(found) if sample.is_some() => verdict::code(found),
                _ => dash(),
            },
        ];
        if with_costs {
            row.extend([
                trial.epoch_secs.map_or_else(dash, short_number),
                trial.speed.map_or_else(dash, times),
                trial.memory_bytes.map_or_else(dash, show_bytes),
                trial.memory.map_or_else(dash, times),
            ]);
        }
        row
    };
    Columns {
        head,
        rows: comparison.trials.iter().map(row).collect(),
    }
}

/// The baseline of the verdicts, and their reliability.
fn basis(comparison: &Comparison) -> String {
    let Some(baseline) = &comparison.baseline else {
        return if comparison.is_common {
            "There is only one trial, so nothing is compared.".into()
        } else {
            "† Another quantity in different trials.".into()
        };
    };
    if let Some(unbeaten) = &baseline.unbeaten {
        return no_claim(&baseline.trial, &comparison.value, unbeaten);
    }
    let verdict = comparison
        .trials
        .iter()
        .find_map(|trial| trial.verdict.as_ref());
    let num = verdict.map_or(0, |verdict| verdict.num_comparisons);
    let picked = if baseline.is_picked {
        ", the highest ranked: it was selected by its values, so all pairs of trials count; `--baseline` selects another"
    } else {
        ""
    };
    let num = match num {
        1 => "1 comparison".to_owned(),
        num => format!("all {num} comparisons"),
    };
    let wrong = percent(comparison.alpha);
    let how = match comparison.overlap {
        Some(_) => format!(
            "Differences are paired where runs are shared, and averaged by split; the t test allows for training items that splits share (Nadeau and Bengio, 2003) and adds the variance over seeds that several splits share. If the noise is normal, the probability of any wrong claim is at most {wrong} for {num} together (Holm)."
        ),
        None => format!(
            "Differences are paired by seed where enough seeds are shared. `better` and `worse` follow from exact tests, those with `~` from Student's t; for each kind, the probability of any wrong claim is at most {wrong} for {num} together (Holm)."
        ),
    };
    let codes = verdict::notes(comparison.trials.iter().filter_map(|t| t.verdict.as_ref()));
    let codes = codes.map_or(String::new(), |codes| format!("\n\nVerdicts: {codes}"));
    format!(
        "Verdicts are against `{}`{picked}. {how}{codes}",
        baseline.trial
    )
}

fn pivot_columns(pivot: &Pivot) -> Columns {
    let mut head = vec![pivot.row_key.clone()];
    head.extend(pivot.columns.iter().cloned());
    let rows = pivot.rows.iter().zip(&pivot.cells).map(|(name, cells)| {
        let mut row = vec![name.clone()];
        row.extend(cells.iter().map(|cell| match cell {
            Some(cell) => format!("{} ({})", mean_and_sd(&cell.over_seeds), cell.over_seeds.n),
            None => "-".into(),
        }));
        row
    });
    let rows = rows.collect();
    Columns { head, rows }
}

fn front_columns(front: &Front) -> Columns {
    let show = |name: &str, value: f64| match name {
        "memory_bytes" => show_bytes(value as u64),
        _ => short_number(value),
    };
    let [a, b] = &front.values;
    let rows = front
        .trials
        .iter()
        .map(|(id, [x, y])| vec![id.clone(), show(a, *x), show(b, *y)]);
    Columns {
        head: vec!["trial".into(), a.clone(), b.clone()],
        rows: rows.collect(),
    }
}

/// One line per trial, with all digits.
pub fn csv(comparison: &Comparison) -> String {
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let mut head = vec!["rank".to_owned(), "trial".into()];
    head.extend(comparison.axes.iter().cloned());
    head.extend(
        [
            "backend",
            "n",
            "mean",
            "sd",
            "low",
            "high",
            "best",
            "worst",
            "difference",
            "p",
            "p_corrected",
            "verdict",
            "epoch_secs",
            "speed",
            "memory_bytes",
            "memory",
            "num_adjusted",
        ]
        .map(str::to_owned),
    );
    let mut text = line(&head);
    for trial in &comparison.trials {
        let sample = trial.sample.as_ref();
        let described = sample.map(|sample| &sample.description);
        let student = sample.and_then(|sample| sample.student);
        let compared = trial.verdict.as_ref().and_then(|v| v.comparison);
        let mut row = vec![
            trial.rank.map_or(String::new(), |rank| rank.to_string()),
            trial.id.clone(),
        ];
        let value = |key: &String| trial.axes.get(key).map_or(String::new(), value_text);
        row.extend(comparison.axes.iter().map(value));
        row.extend([
            trial.backend.clone(),
            described.map_or(0, |d| d.n).to_string(),
            number(described.map(|d| d.mean)),
            number(described.and_then(|d| d.sd)),
            number(student.map(|interval| interval.low)),
            number(student.map(|interval| interval.high)),
            number(sample.and_then(|s| s.best)),
            number(sample.and_then(|s| s.worst)),
            number(compared.map(|c| c.mean_difference)),
            number(compared.map(|c| c.test.p)),
            number(trial.verdict.as_ref().and_then(|v| v.p_corrected)),
            trial
                .verdict
                .as_ref()
                .map_or(String::new(), verdict::in_words),
            number(trial.epoch_secs),
            number(trial.speed),
            trial
                .memory_bytes
                .map_or(String::new(), |bytes| bytes.to_string()),
            number(trial.memory),
            trial.num_adjusted.to_string(),
        ]);
        text.push_str(&line(&row));
    }
    text
}
