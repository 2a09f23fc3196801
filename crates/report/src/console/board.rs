//! The state of an experiment's runs while they train: events in, state out. Knows no clock, terminal or disk, so that
//! a board rebuilt from `events.jsonl` equals the one that was shown.

use std::sync::OnceLock;

use super::line::plain;
use super::pace::{Pace, Rest, TimeLeft};
use runner_core::event::{Event, Outcome};
use runner_core::plan::RunPlan;
use runner_core::record::RunRecord;
use runner_core::spec::backend::DeviceName;
use runner_core::spec::section::Choice;
use runner_core::table::shortened;

/// The runs of one experiment.
#[derive(Clone, Debug)]
pub struct Board {
    /// The experiment.
    pub experiment: String,
    /// The displayed metric.
    pub objective: String,
    /// The runs, in the order in which they start.
    pub rows: Vec<Row>,
    /// Concurrent runs, if known.
    pub slots: Option<usize>,
    /// No further run starts.
    pub starts_no_more: bool,
    /// No runner is active; the command that resumes the experiment.
    pub abandoned: Option<String>,
    pub(super) pace: Pace,
    pub(super) names: OnceLock<Names>,
}

/// The names of the runs in forms for narrow terminals.
#[derive(Clone, Debug)]
pub(super) struct Names {
    /// Without what all of them have in common.
    pub differing: Vec<String>,
    /// Also without their keys, if all have the same ones, which are given too.
    pub values: Option<(Vec<String>, String)>,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Row {
    /// The run's id.
    pub id: String,
    /// Its state.
    pub state: State,
    /// Its device.
    pub device: DeviceName,
    /// The epoch in progress, from 1; 0 before the first.
    pub epoch: usize,
    /// Epochs of the whole training.
    pub epochs: usize,
    /// Optimizer updates so far.
    pub step: usize,
    /// Optimizer updates of the whole training.
    pub num_steps: usize,
    /// Recent optimizer updates per second.
    pub steps_per_sec: Option<f64>,
    /// The objective after each epoch.
    pub curve: Vec<f64>,
    /// Its memory after the last epoch, once measured.
    pub held_bytes: Option<u64>,
    pub(super) steps_per_epoch: usize,
    pub(super) may_stop_early: bool,
    /// Seconds of the epochs since the last start.
    pub(super) epoch_secs: f64,
}

/// The state of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// Not started.
    Waiting,
    /// In the queue of a cluster: `queued` or `requeued`.
    Queued(&'static str),
    /// Training.
    Running,
    /// Started, and continuing after a failure or a change; how, as text.
    Again(String),
    /// Asked to stop, but not ended yet.
    Stopping,
    /// Started, but no runner is active.
    Incomplete,
    /// Its folder is damaged.
    Unreadable,
    /// Ended.
    Ended(Outcome),
}

impl State {
    /// Whether it occupies a slot.
    pub fn is_under_way(&self) -> bool {
        matches!(self, State::Running | State::Again(_) | State::Stopping)
    }
}

impl Board {
    /// Waiting runs, of which `slots` run concurrently.
    pub fn new(experiment: &str, plans: &[RunPlan], slots: Option<usize>) -> Self {
        let mut names: Vec<String> = plans.iter().map(|plan| plan.objective.name()).collect();
        names.dedup();
        Self {
            experiment: experiment.to_owned(),
            objective: match &names[..] {
                [name] => name.clone(),
                // If runs have several devices, each shows its own.
                _ => "objective".into(),
            },
            rows: plans.iter().map(Row::new).collect(),
            slots,
            starts_no_more: false,
            abandoned: None,
            pace: Pace::default(),
            names: OnceLock::new(),
        }
    }

    /// The shorter names of the runs.
    pub(super) fn names(&self) -> &Names {
        self.names.get_or_init(|| {
            let all = || self.rows.iter().map(|row| plain(&row.id)).collect();
            let (values, keys) = shortened(all(), 0);
            Names {
                differing: shortened(all(), usize::MAX).0,
                values: keys.map(|keys| (values, keys)),
            }
        })
    }

    /// Applies an event of a run, after its record has.
    pub fn observe(&mut self, run: usize, plan: &RunPlan, event: &Event, record: &RunRecord) {
        let row = &mut self.rows[run];
        match event {
            Event::RunStarted(started) => {
                if row.state != State::Stopping {
                    row.state = State::Running;
                }
                row.device = plan.adjusted(&record.attempts.adjustments).device;
                row.step = started.resumed_step;
                row.epoch = started.resumed_step / plan.steps_per_epoch.max(1) + 1;
                row.curve.clear();
                row.epoch_secs = 0.0;
                for epoch in &started.history {
                    row.curve.push(value(plan, &epoch.metrics));
                }
            }
            Event::Progressed(progress) => {
                row.step = progress.step;
                row.epoch = progress.epoch;
                row.steps_per_sec = Some(progress.steps_per_sec);
            }
            Event::EpochFinished(epoch) => {
                // The first epoch of a resumed run may be partial.
                let began = record.started.as_ref();
                let began = began.map_or(0, |started| started.resumed_step);
                let made = epoch.step.saturating_sub(began).min(plan.steps_per_epoch);
                let secs = epoch.train_secs + epoch.valid_secs;
                self.pace.epoch(run, row.device, secs, made);
                row.epoch_secs += secs;
                row.step = epoch.step;
                row.epoch = epoch.epoch;
                row.steps_per_sec = Some(made as f64 / epoch.train_secs.max(1e-9));
                row.curve.push(value(plan, &epoch.metrics));
                let held = epoch
                    .pool
                    .map_or(epoch.memory_bytes, |pool| pool.reserved_bytes);
                row.held_bytes = Some(held).filter(|bytes| *bytes > 0);
            }
            Event::RunRetried { attempt, class, .. } => {
                row.begin_again(format!("retry {attempt} after {}", class.name()));
            }
            Event::RunAdjusted { adjustment, .. } => {
                row.begin_again(format!("continues with {}", adjustment.in_words()));
                row.device = plan.adjusted(&record.attempts.adjustments).device;
            }
            Event::RunFinished {
                outcome, wall_secs, ..
            } => {
                if *outcome == Outcome::Completed {
                    self.pace.beside(row.device, wall_secs - row.epoch_secs);
                }
                row.state = State::Ended(outcome.clone());
                row.held_bytes = None;
            }
            _ => {}
        }
    }

    /// Forgets the state of a run.
    pub fn begin_anew(&mut self, run: usize, plan: &RunPlan) {
        self.rows[run] = Row::new(plan);
    }

    /// Ended runs, and how many of those failed. Interrupted ones are to be resumed.
    pub fn num_ended(&self) -> (usize, usize) {
        let ended = self.rows.iter().filter_map(|row| match &row.state {
            State::Ended(Outcome::Interrupted) => None,
            State::Ended(outcome) => Some(matches!(outcome, Outcome::Failed { .. })),
            _ => None,
        });
        ended.fold((0, 0), |(num, failed), is_failed| {
            (num + 1, failed + usize::from(is_failed))
        })
    }

    /// Runs that were interrupted and wait to be resumed.
    pub fn num_interrupted(&self) -> usize {
        let stopped = State::Ended(Outcome::Interrupted);
        self.rows.iter().filter(|row| row.state == stopped).count()
    }

    /// How to continue, if no runner is active and work remains.
    pub fn go_on(&self) -> Option<String> {
        let (num_ended, _) = self.num_ended();
        let is_left = num_ended < self.rows.len();
        let command = self.abandoned.as_ref().filter(|_| is_left)?;
        Some(format!("no runner is active; resume with: {command}"))
    }

    /// The indices of the active runs.
    pub fn under_way(&self) -> impl Iterator<Item = usize> {
        let rows = self.rows.iter().enumerate();
        rows.filter(|(_, row)| row.state.is_under_way())
            .map(|(run, _)| run)
    }

    /// The remaining time, as text; empty if nothing is left.
    pub fn time_left(&self) -> String {
        let mut left = self.rows.iter().filter(|row| self.is_to_do(row));
        let at_most = left.any(|row| row.may_stop_early);
        let rest: Vec<Rest> = self
            .rows
            .iter()
            .enumerate()
            .filter(|(_, row)| self.is_to_do(row))
            .map(|(run, row)| Rest {
                run,
                device: row.device,
                steps: row.num_steps.saturating_sub(row.step),
                steps_per_epoch: row.steps_per_epoch,
                has_begun: row.state.is_under_way(),
            })
            .collect();
        let slots = self.slots.unwrap_or_else(|| self.under_way().count());
        match self.pace.left(&rest, slots) {
            TimeLeft::Unknown if self.under_way().next().is_none() => String::new(),
            left => left.in_words(at_most),
        }
    }

    fn is_to_do(&self, row: &Row) -> bool {
        match row.state {
            State::Running | State::Again(_) => true,
            State::Waiting => !self.starts_no_more && self.abandoned.is_none(),
            State::Queued(_) => true,
            State::Stopping | State::Incomplete | State::Unreadable | State::Ended(_) => false,
        }
    }
}

impl Row {
    /// Whether it is on a GPU and has made no step yet: kernels are selected in the first one.
    pub fn is_selecting(&self) -> bool {
        let is_before = self.state.is_under_way() && self.steps_per_sec.is_none();
        is_before && !self.device.backend.is_host()
    }

    fn new(plan: &RunPlan) -> Self {
        Self {
            id: plan.id.clone(),
            state: State::Waiting,
            device: plan.device,
            epoch: 0,
            epochs: plan.train.epochs,
            step: 0,
            num_steps: plan.num_steps(),
            steps_per_sec: None,
            curve: Vec::new(),
            held_bytes: None,
            steps_per_epoch: plan.steps_per_epoch,
            may_stop_early: plan.train.early_stopping.is_some(),
            epoch_secs: 0.0,
        }
    }

    fn begin_again(&mut self, how: String) {
        if self.state != State::Stopping {
            self.state = State::Again(how);
        }
        self.steps_per_sec = None;
        self.held_bytes = None;
    }

    /// The completed fraction of the training, from 0 to 1.
    pub fn done(&self) -> f64 {
        (self.step as f64 / self.num_steps.max(1) as f64).min(1.0)
    }
}

fn value(plan: &RunPlan, metrics: &runner_core::event::Metrics) -> f64 {
    let value = metrics.get(&plan.objective.name());
    value.copied().unwrap_or(f64::NAN)
}
