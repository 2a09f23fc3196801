//! Plain tables for pandas, DuckDB and anything else that reads CSV or JSON Lines: one row per item, one column per
//! property.

use std::collections::BTreeSet;
use std::io::{self, Write};

use serde_json::{Map, Value as Json, json};

use super::Exported;
use crate::report::value_text;
use runner_core::event::{Metrics, Outcome};
use runner_core::spec::section::Choice;

/// The kinds of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// A run, with its outcome and metrics.
    Runs,
    /// An epoch of a run, with its metrics.
    Epochs,
    /// A step of a run, with its loss.
    Steps,
}

/// The table formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values with a header (RFC 4180). Non-finite numbers are `NaN`, `inf` and `-inf`.
    Csv,
    /// One object per line. JSON has no non-finite numbers: they are `null`.
    JsonLines,
}

/// The columns of a table, collected before a row is written: runs differ in their axes and metrics.
#[derive(Clone, Debug)]
pub struct Columns {
    rows: Rows,
    axes: Vec<String>,
    metrics: BTreeSet<String>,
}

impl Columns {
    /// Those of a table without runs.
    pub fn new(rows: Rows) -> Self {
        Self {
            rows,
            axes: Vec::new(),
            metrics: BTreeSet::new(),
        }
    }

    /// Includes the columns of a run.
    pub fn take(&mut self, run: &Exported) {
        for axis in run.plan.axes.keys() {
            if !self.axes.contains(axis) {
                self.axes.push(axis.clone());
            }
        }
        match self.rows {
            Rows::Runs => {
                let metrics = run.record.summary(&run.plan).map(|s| s.metrics);
                self.metrics
                    .extend(metrics.into_iter().flatten().map(|(name, _)| name));
            }
            Rows::Epochs => {
                let epochs = run.record.epochs.iter();
                self.metrics
                    .extend(epochs.flat_map(|epoch| epoch.metrics.keys().cloned()));
            }
            Rows::Steps => {}
        }
    }

    /// The names of all columns.
    pub fn names(&self) -> Vec<String> {
        let of_run = ["experiment", "trial", "run", "seed", "device", "precision"];
        let mut names: Vec<String> = of_run.map(str::to_owned).to_vec();
        names.extend(self.axes.iter().cloned());
        let own: &[&str] = match self.rows {
            Rows::Runs => &[
                "outcome",
                "failure",
                "message",
                "fingerprint",
                "started",
                "wall_secs",
                "best_epoch",
                "epochs",
                "steps",
            ],
            Rows::Epochs => &["epoch", "step", "time", "train_secs", "valid_secs"],
            Rows::Steps => &["step", "loss"],
        };
        names.extend(own.iter().map(|name| (*name).to_owned()));
        names.extend(self.metrics.iter().cloned());
        names
    }
}

/// Writes tables row by row.
pub struct TableWriter<W: Write> {
    columns: Columns,
    names: Vec<String>,
    to: To<W>,
    num_rows: usize,
}

enum To<W: Write> {
    Csv(Box<csv::Writer<W>>),
    JsonLines(W),
}

impl<W: Write> TableWriter<W> {
    /// Writes the header, if the format has one.
    pub fn new(columns: Columns, format: Format, to: W) -> io::Result<Self> {
        let names = columns.names();
        let to = match format {
            Format::Csv => {
                let mut writer = csv::Writer::from_writer(to);
                writer.write_record(&names)?;
                To::Csv(Box::new(writer))
            }
            Format::JsonLines => To::JsonLines(to),
        };
        Ok(Self {
            columns,
            names,
            to,
            num_rows: 0,
        })
    }

    /// Rows written so far.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Writes the rows of a run.
    pub fn add(&mut self, run: &Exported) -> io::Result<()> {
        let plan = &run.plan;
        let head: [Json; 6] = [
            json!(plan.experiment),
            json!(plan.trial),
            json!(plan.id),
            json!(plan.seed),
            json!(plan.device.to_string()),
            json!(plan.precision.name()),
        ];
        let axes = self.columns.axes.iter();
        let axes = axes.map(|key| plan.axes.get(key).cloned().unwrap_or(Json::Null));
        let head: Vec<Json> = head.into_iter().chain(axes).collect();
        match self.columns.rows {
            Rows::Runs => {
                let row = self.of_run(run);
                self.row(&head, row)
            }
            Rows::Epochs => {
                for epoch in &run.record.epochs {
                    let time = run.times.epochs.get(&epoch.epoch);
                    let own = vec![
                        json!(epoch.epoch),
                        json!(epoch.step),
                        json!(time.map(|time| clock(*time))),
                        self.number(epoch.train_secs),
                        self.number(epoch.valid_secs),
                    ];
                    self.row(&head, self.with_metrics(own, &epoch.metrics))?;
                }
                Ok(())
            }
            Rows::Steps => {
                for (at, loss) in run.losses.iter().enumerate() {
                    self.row(&head, vec![json!(at + 1), self.number(*loss)])?;
                }
                Ok(())
            }
        }
    }

    fn of_run(&self, run: &Exported) -> Vec<Json> {
        let record = &run.record;
        let summary = record.summary(&run.plan);
        let failure = summary.as_ref().and_then(|s| s.failure.as_ref());
        let message = match &record.outcome {
            Some(Outcome::Skipped { reason }) => Some(reason),
            _ => failure.map(|failure| &failure.message),
        };
        let is_begun = record.started.is_some();
        let own = vec![
            json!(run.outcome()),
            json!(failure.map(|failure| &failure.class)),
            json!(message),
            json!(run.plan.fingerprint),
            json!(run.times.started.map(clock)),
            json!(is_begun.then_some(record.wall_secs)),
            json!(record.best_epoch(&run.plan).map(|best| best.epoch)),
            json!(record.epochs.len()),
            json!(record.epochs.last().map_or(0, |last| last.step)),
        ];
        let metrics = summary.map(|summary| summary.metrics).unwrap_or_default();
        self.with_metrics(own, &metrics)
    }

    fn with_metrics(&self, mut own: Vec<Json>, metrics: &Metrics) -> Vec<Json> {
        let names = self.columns.metrics.iter();
        own.extend(names.map(|name| metrics.get(name).map_or(Json::Null, |v| self.number(*v))));
        own
    }

    fn number(&self, value: f64) -> Json {
        match &self.to {
            To::Csv(_) if !value.is_finite() => json!(value.to_string()),
            // JSON has `null` for non-finite numbers.
            _ => json!(value),
        }
    }

    fn row(&mut self, head: &[Json], own: Vec<Json>) -> io::Result<()> {
        let values = head.iter().chain(&own);
        self.num_rows += 1;
        match &mut self.to {
            To::Csv(writer) => {
                let cells = values.map(|value| match value {
                    Json::Null => String::new(),
                    other => value_text(other),
                });
                writer.write_record(cells).map_err(|e| match e.into_kind() {
                    csv::ErrorKind::Io(error) => error,
                    other => io::Error::other(format!("{other:?}")),
                })
            }
            To::JsonLines(writer) => {
                let names = self.names.iter().cloned();
                let object: Map<_, _> = names.zip(values.cloned()).collect();
                serde_json::to_writer(&mut *writer, &object)?;
                writer.write_all(b"\n")
            }
        }
    }

    /// Writes the rest.
    pub fn finish(self) -> io::Result<()> {
        match self.to {
            To::Csv(mut writer) => writer.flush(),
            To::JsonLines(mut writer) => writer.flush(),
        }
    }
}

/// A time as RFC 3339, in UTC.
fn clock(time_ms: u64) -> String {
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_millis(time_ms);
    humantime::format_rfc3339_millis(time).to_string()
}
