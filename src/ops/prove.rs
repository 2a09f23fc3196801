//! Which of the guarantees hold for an experiment file on this machine, tested on a shortened run of it.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde::Serialize;

use super::program::{kernels_argument, num_cores};
use super::reproduce::side;
use super::scratch::Scratch;
use super::verify::verify_data;
use super::{Experiment, Progress, Sink, plan_with_data, trial};
use crate::dispatch::{environment, lines};
use crate::error::Error;
use runner_core::data::Trust;
use runner_core::diagnostic::{Diagnostic, counted};
use runner_core::event::{Event, FailureClass, Outcome};
use runner_core::plan::RunPlan;
use runner_core::record::{ExperimentFolder, RunFolder, RunRecord};
use runner_core::reproduce::{AtLeast, Comparison, Grade, Side};
use runner_core::spec::section::Choice;

/// The maximum size of a shortened run.
const EPOCHS: usize = 3;
const STEPS_PER_EPOCH: usize = 40;

/// A guarantee and its result.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The guarantee.
    pub guarantee: String,
    /// Whether it holds.
    pub holds: bool,
    /// To what extent it holds, or where it breaks and why.
    pub detail: String,
}

/// The trial whose guarantees are tested.
#[derive(Clone, Debug, Default)]
pub struct Prove {
    /// The experiment file, and the program that trains its runs.
    pub experiment: Experiment,
    /// The trial; the first one by default.
    pub trial: Option<String>,
}

impl Prove {
    /// The first trial of an experiment.
    pub fn new(experiment: Experiment) -> Self {
        Self {
            experiment,
            trial: None,
        }
    }
}

/// The results for all guarantees.
#[derive(Clone, Debug, Serialize)]
pub struct Proof {
    /// Each guarantee.
    pub findings: Vec<Finding>,
}

impl Proof {
    /// Whether all guarantees hold.
    pub fn holds(&self) -> bool {
        self.findings.iter().all(|finding| finding.holds)
    }
}

/// Tests on a shortened run of an experiment which guarantees hold on this machine: equal numbers when repeated, after
/// kills, next to another run, and with one thread.
///
/// # Errors
///
/// Like [`plan_with_data`]; [`Error::Refused`] if the trial cannot be trained here.
///
/// ```no_run
/// use burn_runner::ops::{self, Experiment, Program, Prove};
///
/// let mut experiment = Experiment::new("experiments/iris_csv.toml");
/// experiment.program = Program::at("target/release/runner");
/// let proof = ops::prove(&Prove::new(experiment), &ops::quiet)?;
/// assert!(proof.holds(), "{:?}", proof.findings);
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn prove(options: &Prove, sink: &Sink<'_>) -> Result<Proof, Error> {
    let program = &options.experiment.program;
    let planned = plan_with_data(&options.experiment, sink)?;
    verify_data(&planned, Trust::Bytes)?;
    let run = trial(&planned.plan, options.trial.as_deref())?;
    if let Some(reason) = &run.skip {
        let message = format!("trial `{}` cannot be tested: {reason}", run.trial);
        return Err(Error::refused(Diagnostic::error("device", message)));
    }
    let short = shortened(run);
    sink(Progress::Step(&format!(
        "trial `{}` on {} {}, shortened to {} of {}",
        short.trial,
        short.device,
        short.precision.name(),
        counted(short.train.epochs, "epoch"),
        counted(short.steps_per_epoch, "step"),
    )));
    let internal = |e: io::Error| {
        Error::refused(Diagnostic::error(
            "internal",
            format!("cannot test it: {e}"),
        ))
    };
    let place = Scratch::new().map_err(internal)?;
    let mut arguments = program.worker_arguments();
    let experiment = ExperimentFolder(place.path().to_owned());
    arguments.extend(kernels_argument(&experiment));
    let trials = Trials {
        program: program.find()?.to_owned(),
        place: place.path().to_owned(),
        arguments,
        threads: num_cores(),
    };
    match trials.findings(&short) {
        Ok(findings) => Ok(Proof { findings }),
        Err(reason) => {
            let diagnostic = Diagnostic::error("run", reason.to_string());
            Err(Error::refused(diagnostic.help(
                "correct the file first: `runner run` would end in the same way",
            )))
        }
    }
}

/// Why the shortened run cannot be used for a test.
#[derive(Debug)]
enum NotTried {
    NotStarted(io::Error),
    NoTrace(io::Error),
    Lost,
    Failed(FailureClass, String),
    Unfinished,
}

impl fmt::Display for NotTried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = "the shortened run does not finish";
        match self {
            Self::NotStarted(e) => write!(f, "cannot start a worker: {e}"),
            Self::NoTrace(e) => write!(f, "{e}"),
            Self::Lost => f.write_str("a worker was lost"),
            Self::Failed(class, message) => write!(f, "{end}: {}: {message}", class.name()),
            Self::Unfinished => f.write_str(end),
        }
    }
}

/// The same work for fewer epochs and steps. Validation and evaluation are complete.
fn shortened(run: &RunPlan) -> RunPlan {
    let mut short = run.clone();
    short.train.epochs = run.train.epochs.min(EPOCHS);
    short.steps_per_epoch = run.steps_per_epoch.min(STEPS_PER_EPOCH);
    short.checkpoint.every_epochs = 1;
    short.checkpoint.every_steps = Some((short.steps_per_epoch / 4).max(1));
    short.checkpoint.keep_last = 2;
    short.with_fingerprint()
}

/// Trains runs in a separate folder.
struct Trials {
    program: PathBuf,
    place: PathBuf,
    arguments: Vec<String>,
    threads: usize,
}

/// A run that was trained.
struct Made {
    record: RunRecord,
    side: Side,
}

impl Trials {
    fn findings(&self, plan: &RunPlan) -> Result<Vec<Finding>, NotTried> {
        let mut findings = Vec::new();
        let straight = self.made(plan, "straight", self.threads)?;
        let again = self.made(plan, "again", self.threads)?;
        let mut twice = finding("the same numbers twice", &straight, &again);
        if !twice.holds {
            let third = self.made(plan, "third", self.threads)?;
            twice.detail += match grade(&again, &third) {
                Grade::Bitwise => {
                    "; a third run is equal to the second: the first one tuned kernels, and later ones reused its selections"
                }
                _ => "; a third run differs too: a kernel of this device is not deterministic",
            };
        }
        findings.push(twice);
        let (killed, num_kills) = self.killed(plan)?;
        let name = format!("killed {} and resumed", counted_times(num_kills));
        findings.push(finding(&name, &straight, &killed));
        let [first, _] = self.two_at_once(plan)?;
        findings.push(finding(
            "next to another run, with half of the threads",
            &straight,
            &first,
        ));
        if self.threads > 1 && plan.device.backend.is_host() {
            let alone = self.made(plan, "one-thread", 1)?;
            findings.push(finding("with one thread", &straight, &alone));
        }
        // A failure of the device itself does not break the guarantee.
        if findings.first().is_some_and(|twice| !twice.holds) {
            for finding in findings.iter_mut().skip(1).filter(|finding| !finding.holds) {
                finding.detail += "; the same happens without that";
            }
        }
        Ok(findings)
    }

    fn start(
        &self,
        plan: &RunPlan,
        name: &str,
        threads: usize,
        fault: Option<&str>,
    ) -> Result<Child, NotTried> {
        let wrong = NotTried::NotStarted;
        let folder = RunFolder(self.place.join(name));
        folder.write_plan(plan).map_err(wrong)?;
        let mut command = Command::new(&self.program);
        command
            .arg("exec")
            .arg(&folder.0)
            .args(["--threads", &threads.to_string()])
            .args(&self.arguments)
            .envs(environment(plan.device))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        if let Some(fault) = fault {
            command.args(["--inject-fault", fault]);
        }
        command.spawn().map_err(wrong)
    }

    /// Waits for a worker and applies its events.
    fn wait(&self, mut child: Child, plan: &RunPlan, name: &str) -> Result<Made, NotTried> {
        // The leash is held until the worker ends on its own.
        let leash = child.stdin.take();
        let mut record = RunRecord::default();
        for line in child.stdout.take().into_iter().flat_map(lines) {
            if let Ok(event) = serde_json::from_str::<Event>(&line) {
                record.apply(&event);
            }
        }
        let _ = child.wait();
        drop(leash);
        let folder = RunFolder(self.place.join(name));
        let side = side(&folder, plan, &record).map_err(NotTried::NoTrace)?;
        Ok(Made { record, side })
    }

    /// A run that must finish.
    fn made(&self, plan: &RunPlan, name: &str, threads: usize) -> Result<Made, NotTried> {
        let child = self.start(plan, name, threads, None)?;
        completed(self.wait(child, plan, name)?)
    }

    fn killed(&self, plan: &RunPlan) -> Result<(Made, usize), NotTried> {
        let (epochs, steps) = (plan.train.epochs, plan.steps_per_epoch);
        let mut moments = vec!["loading".to_owned()];
        for epoch in 1..=epochs {
            let start = (epoch - 1) * steps;
            moments.push(format!("training:{}", start + steps.div_ceil(3)));
            moments.push(format!("validating:{epoch}"));
            moments.push(format!("checkpointing:{}", epoch * steps));
        }
        moments.push("evaluating".into());
        let mut num_kills = 0;
        for moment in moments {
            let fault = format!("{moment}=kill");
            let child = self.start(plan, "killed", self.threads, Some(&fault))?;
            let made = self.wait(child, plan, "killed")?;
            if made.record.outcome == Some(Outcome::Completed) {
                // A run that ends early does not reach all moments.
                break;
            }
            num_kills += 1;
        }
        let made = self.made(plan, "killed", self.threads)?;
        Ok((made, num_kills))
    }

    fn two_at_once(&self, plan: &RunPlan) -> Result<[Made; 2], NotTried> {
        let other = RunPlan {
            seed: plan.seed + 1,
            ..plan.clone()
        };
        let other = other.with_fingerprint();
        let threads = (self.threads / 2).max(1);
        let first = self.start(plan, "first", threads, None)?;
        let second = self.start(&other, "second", threads, None)?;
        std::thread::scope(|scope| {
            let second = scope.spawn(|| self.wait(second, &other, "second"));
            let first = completed(self.wait(first, plan, "first")?)?;
            let second = second.join().map_err(|_| NotTried::Lost)?;
            Ok([first, completed(second?)?])
        })
    }
}

fn completed(made: Made) -> Result<Made, NotTried> {
    match &made.record.outcome {
        Some(Outcome::Completed) => Ok(made),
        Some(Outcome::Failed { class, message, .. }) => {
            Err(NotTried::Failed(*class, message.clone()))
        }
        _ => Err(NotTried::Unfinished),
    }
}

fn grade(then: &Made, now: &Made) -> Grade {
    let comparison = Comparison::of(&then.side, &now.side, None, None);
    Grade::of(&comparison, None, AtLeast::Bitwise)
}

fn finding(guarantee: &str, straight: &Made, other: &Made) -> Finding {
    let grade = grade(straight, other);
    let (holds, detail) = match &grade {
        Grade::Bitwise => {
            let losses = straight.side.trace.losses.len();
            let digests: usize = straight
                .side
                .trace
                .digests
                .iter()
                .map(|digests| digests.parameters.len())
                .sum();
            (
                true,
                format!(
                    "{losses} losses, {} and all metrics are equal",
                    counted(digests, "digest")
                ),
            )
        }
        grade => (false, grade.to_string()),
    };
    Finding {
        guarantee: guarantee.into(),
        holds,
        detail,
    }
}

fn counted_times(num: usize) -> String {
    match num {
        1 => "once".into(),
        num => format!("{num} times"),
    }
}
