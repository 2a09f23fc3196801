//! Live progress: events in, words to standard error. Bars on a terminal, plain lines without one.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::event::{Adjustment, Event, FailureClass, Outcome, Progress};
use crate::plan::RunPlan;
use crate::record::RunRecord;
use crate::report::short_number;
use crate::spec::backend::DeviceName;
use crate::spec::kind::show_duration;
use crate::spec::section::Choice;

/// How often a long run gets a line where there is no terminal.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Bars or lines.
    Normal,
    /// Nothing but failures.
    Quiet,
}

/// Shows the runs of an experiment.
pub struct Console {
    mode: Mode,
    bars: Option<Bars>,
    started: Instant,
    num_runs: usize,
    num_done: usize,
    num_failed: usize,
    /// Runs that have ended, and are counted as that.
    ended: Vec<bool>,
    /// Optimizer updates of the runs that have not ended.
    steps: Vec<Steps>,
    jobs: usize,
    /// Seconds and updates measured so far, by device: one device says nothing of another.
    measured: Vec<(DeviceName, f64, usize)>,
    last_plain: Vec<Option<Instant>>,
}

struct Bars {
    multi: MultiProgress,
    total: ProgressBar,
    runs: Vec<Option<ProgressBar>>,
}

#[derive(Clone, Copy)]
struct Steps {
    done: usize,
    num: usize,
    device: DeviceName,
}

impl Console {
    /// Shows `runs`, of which `jobs` are under way at once.
    pub fn new(runs: &[RunPlan], jobs: usize, mode: Mode) -> Self {
        let live = mode == Mode::Normal && std::io::stderr().is_terminal();
        let bars = live.then(|| {
            let multi = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(8));
            let total = multi.add(ProgressBar::new(runs.len() as u64));
            total.set_style(style("{pos}/{len} runs  {wide_msg}"));
            total.tick();
            Bars {
                multi,
                total,
                runs: runs.iter().map(|_| None).collect(),
            }
        });
        Self {
            mode,
            bars,
            started: Instant::now(),
            num_runs: runs.len(),
            num_done: 0,
            num_failed: 0,
            ended: vec![false; runs.len()],
            steps: runs
                .iter()
                .map(|run| Steps {
                    done: 0,
                    num: run.num_steps(),
                    device: run.device,
                })
                .collect(),
            jobs,
            measured: Vec::new(),
            last_plain: vec![None; runs.len()],
        }
    }

    /// Shows an event of a run, after its record has taken it in.
    pub fn observe(&mut self, run: usize, plan: &RunPlan, event: &Event, record: &RunRecord) {
        match event {
            Event::RunStarted(started) => {
                self.steps[run].done = started.resumed_step;
                for rejected in &started.rejected_checkpoints {
                    self.line(&format!("{}: passed over {rejected}", plan.id));
                }
                if let Some(bars) = &mut self.bars {
                    let bar = bars
                        .multi
                        .insert_before(&bars.total, ProgressBar::new(plan.num_steps() as u64));
                    bar.set_style(style("{wide_msg}"));
                    bar.set_position(started.resumed_step as u64);
                    bar.set_message(plan.id.clone());
                    bars.runs[run] = Some(bar);
                }
            }
            Event::Progressed(progress) => {
                self.steps[run].done = progress.step;
                let message = progress_message(plan, progress, record);
                self.show_progress(run, plan, message, progress.step);
            }
            Event::EpochFinished(epoch) => {
                let before = self.steps[run].done.min(epoch.step);
                let num = plan.steps_per_epoch;
                self.measure(plan.device, epoch.train_secs + epoch.valid_secs, num);
                self.steps[run].done = epoch.step.max(before);
                let progress = Progress {
                    epoch: epoch.epoch,
                    step: epoch.step,
                    num_steps: plan.num_steps(),
                    steps_per_sec: num as f64 / epoch.train_secs.max(1e-9),
                };
                let message = progress_message(plan, &progress, record);
                self.show_progress(run, plan, message, epoch.step);
            }
            Event::RunRetried {
                attempt,
                class,
                after_secs,
                adjustment,
            } => {
                self.count_again(run);
                self.retried(plan, (*attempt, *class), *after_secs, adjustment.as_ref());
            }
            Event::RunAdjusted { adjustment, reason } => {
                self.count_again(run);
                let adjusted = adjustment.in_words();
                self.line(&format!(
                    "{}  {reason}: it goes on with {adjusted}",
                    plan.id
                ));
            }
            Event::MemoryGrew(growth) => {
                let growth = growth.in_words(&plan.device.to_string(), plan.train.batch_size);
                self.line(&format!("{}: {growth}", plan.id));
            }
            Event::MemoryCalibrated { .. }
            | Event::MemoryMeasured(_)
            | Event::StoppedEarly { .. }
            | Event::RunExtended { .. }
            | Event::CheckpointDropped { .. }
            | Event::CheckpointSaved { .. }
            | Event::KernelsChosen(_)
            | Event::SplitEvaluated { .. } => {}
            Event::RunFinished { outcome, .. } => self.finished(run, plan, outcome, record),
        }
        if let Some(bars) = &self.bars {
            bars.total.set_message(self.time_left());
        }
    }

    /// A run that failed is tried again. A failure of an earlier command was not counted in this one.
    fn count_again(&mut self, run: usize) {
        if std::mem::take(&mut self.ended[run]) {
            self.num_done -= 1;
            self.num_failed -= 1;
            self.steps[run].done = 0;
        }
    }

    fn show_progress(&mut self, run: usize, plan: &RunPlan, message: String, step: usize) {
        if let Some(bar) = self.bars.as_ref().and_then(|bars| bars.runs[run].as_ref()) {
            bar.set_position(step as u64);
            bar.set_message(message);
            return;
        }
        let last = self.last_plain[run].unwrap_or(self.started);
        let complete = step == plan.num_steps();
        if last.elapsed() > PLAIN_INTERVAL && !complete {
            self.last_plain[run] = Some(Instant::now());
            let left = self.time_left();
            self.line(&format!("{message}; all runs: {left}"));
        }
    }

    fn finished(&mut self, run: usize, plan: &RunPlan, outcome: &Outcome, record: &RunRecord) {
        self.num_done += 1;
        self.ended[run] = true;
        self.num_failed += matches!(outcome, Outcome::Failed { .. }) as usize;
        self.steps[run].done = self.steps[run].num;
        if let Some(bars) = &mut self.bars {
            if let Some(bar) = bars.runs[run].take() {
                bar.finish_and_clear();
            }
            bars.total.set_position(self.num_done as u64);
        }
        let name = plan.objective.name();
        let best = record
            .best_epoch(plan)
            .and_then(|epoch| Some((epoch.epoch, *epoch.metrics.get(&name)?)));
        let number = match best {
            Some((epoch, value)) => format!("  {name} {} in epoch {epoch}", short_number(value)),
            None => String::new(),
        };
        let detail = match outcome {
            Outcome::Completed => match &record.stopped_early {
                Some((epoch, _)) => format!("completed{number}, stopped early after epoch {epoch}"),
                None => format!("completed{number}"),
            },
            Outcome::Interrupted => "interrupted, can be resumed".to_owned(),
            Outcome::Skipped { reason } => format!("skipped: {reason}"),
            Outcome::Failed { class, message, .. } => {
                format!("failed ({}): {message}", class.name())
            }
        };
        let line = format!(
            "[{}/{}] {}  {detail}  {:.1} s",
            self.num_done, self.num_runs, plan.id, record.wall_secs
        );
        match outcome {
            Outcome::Failed { .. } => self.always(&line),
            _ => self.line(&line),
        }
    }

    fn retried(
        &self,
        plan: &RunPlan,
        (attempt, class): (u32, FailureClass),
        after_secs: f64,
        adjustment: Option<&Adjustment>,
    ) {
        let granted = plan.on_failure.get(&class);
        let granted = granted.map_or(attempt, |policy| policy.retries);
        let wait = Duration::try_from_secs_f64(after_secs).unwrap_or_default();
        let when = match wait.is_zero() {
            true => "now".to_owned(),
            false => format!("in {}", show_duration(wait)),
        };
        let adjusted = adjustment.map_or(String::new(), |adjustment| {
            format!(", with {}", adjustment.in_words())
        });
        self.always(&format!(
            "{}: retry {attempt} of {granted} after `{}` {when}{adjusted}",
            plan.id,
            class.name()
        ));
    }

    fn measure(&mut self, device: DeviceName, secs: f64, num_steps: usize) {
        match self
            .measured
            .iter_mut()
            .find(|(known, _, _)| *known == device)
        {
            Some((_, all_secs, all_steps)) => {
                *all_secs += secs;
                *all_steps += num_steps;
            }
            None => self.measured.push((device, secs, num_steps)),
        }
    }

    /// Seconds a step on each device, times the steps that are left there, over the runs at once. Said
    /// only once a whole epoch was measured on every device that is still needed.
    fn time_left(&self) -> String {
        let failed = match self.num_failed {
            0 => String::new(),
            num => format!("{num} failed, "),
        };
        let mut secs = 0.0;
        for steps in self.steps.iter().filter(|steps| steps.done < steps.num) {
            let measured = self
                .measured
                .iter()
                .find(|(device, _, _)| *device == steps.device);
            let Some((_, all_secs, all_steps)) = measured else {
                return format!("{failed}time left: measuring");
            };
            secs += all_secs / *all_steps as f64 * (steps.num - steps.done) as f64;
        }
        if secs == 0.0 {
            return failed.trim_end_matches(", ").to_owned();
        }
        let slots = self.jobs.min(self.num_runs - self.num_done).max(1);
        format!("{failed}about {} left", duration(secs / slots as f64))
    }

    /// Writes a line above the bars.
    pub fn line(&self, text: &str) {
        if self.mode == Mode::Normal {
            self.always(text);
        }
    }

    fn always(&self, text: &str) {
        match &self.bars {
            Some(bars) => bars.multi.suspend(|| eprintln_lossy(text)),
            None => eprintln_lossy(text),
        }
    }

    /// Takes the bars away.
    pub fn close(&self) {
        if let Some(bars) = &self.bars {
            bars.total.finish_and_clear();
        }
    }
}

/// Writes a line to standard error; when nobody reads it, nothing is lost that the record lacks.
pub fn eprintln_lossy(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Seconds in words, to the precision that a guess deserves.
pub fn duration(secs: f64) -> String {
    match secs {
        s if s < 60.0 => format!("{:.0} s", s.max(1.0)),
        s if s < 3600.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

fn progress_message(plan: &RunPlan, progress: &Progress, record: &RunRecord) -> String {
    let name = plan.objective.name();
    let newest = record
        .epochs
        .last()
        .and_then(|epoch| epoch.metrics.get(&name));
    let number = newest.map_or(String::new(), |value| {
        format!("  {name} {}", short_number(*value))
    });
    format!(
        "{}  epoch {}/{}{number}  {:.0} steps/s",
        plan.id, progress.epoch, plan.train.epochs, progress.steps_per_sec
    )
}

/// A bar before the rest, where the terminal is wide enough for both.
fn style(rest: &str) -> ProgressStyle {
    let width = terminal_size::terminal_size_of(std::io::stderr()).map_or(80, |(width, _)| width.0);
    let template = match width {
        0..60 => rest.to_owned(),
        _ => format!("{{bar:20}} {rest}"),
    };
    let style = ProgressStyle::with_template(&template);
    style
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

/// A bar for a download, or lines where there is no terminal.
pub struct Fetching {
    bar: ProgressBar,
}

impl Fetching {
    /// A bar over the bytes of a download. It shows itself with the first of them.
    pub fn download(mode: Mode) -> Self {
        Self::new(mode, "{bytes}/{total_bytes}  {wide_msg}")
    }

    /// A bar over what is decoded, in the reader's unit.
    pub fn decoding(mode: Mode) -> Self {
        Self::new(mode, "{percent} %  {wide_msg}")
    }

    fn new(mode: Mode, template: &str) -> Self {
        let target = match mode {
            Mode::Normal => ProgressDrawTarget::stderr(),
            Mode::Quiet => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(style(template));
        Self { bar }
    }

    /// Shows how far a file is.
    pub fn show(&self, file: &str, received: u64, total: Option<u64>) {
        if let Some(total) = total {
            self.bar.set_length(total);
        }
        self.bar.set_message(file.to_owned());
        self.bar.set_position(received);
    }
}

impl Drop for Fetching {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
