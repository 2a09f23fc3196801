//! `runner prove`: which of the guarantees hold for a spec on this machine, tried on a shortened run of it.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde::Serialize;

use super::experiment::{plan as plan_experiment, refuse, trial};
use super::output::Output;
use super::prepare::verify_data;
use super::reproduce::side;
use super::scratch::Scratch;
use super::{FAILED, Logging, OK, ProveArgs};
use crate::dispatch::{environment, lines};
use runner_core::data::Trust;
use runner_core::diagnostic::{Diagnostic, counted};
use runner_core::event::{Event, Outcome};
use runner_core::plan::RunPlan;
use runner_core::record::{ExperimentFolder, RunFolder, RunRecord};
use runner_core::reproduce::{AtLeast, Comparison, Grade, Side};
use runner_core::spec::section::Choice;

/// What a shortened run has at most.
const EPOCHS: usize = 3;
const STEPS_PER_EPOCH: usize = 40;

/// A guarantee and what became of it.
#[derive(Serialize)]
struct Finding {
    guarantee: String,
    holds: bool,
    /// How far it holds, or where it breaks and why.
    detail: String,
}

/// Tries the guarantees on one run of an experiment file.
pub fn prove(args: &ProveArgs, logging: &Logging, output: &mut Output) -> u8 {
    match try_prove(args, logging, output) {
        Ok(code) | Err(code) => code,
    }
}

fn try_prove(args: &ProveArgs, logging: &Logging, output: &mut Output) -> Result<u8, u8> {
    let (document, plan) = plan_experiment(
        &args.spec,
        Some(runner_report::console::Mode::Normal),
        output,
    )?;
    verify_data(&document, &plan, Trust::Bytes, output)?;
    let run = trial(&plan, args.trial.as_deref(), output)?;
    if let Some(reason) = &run.skip {
        let message = format!("trial `{}` cannot be tried: {reason}", run.trial);
        return Err(refuse(Diagnostic::error("device", message), output));
    }
    let short = shortened(run);
    output.say(&format!(
        "trial `{}` on {} {}, shortened to {} of {}",
        short.trial,
        short.device,
        short.precision.name(),
        counted(short.train.epochs, "epoch"),
        counted(short.steps_per_epoch, "step"),
    ));
    let internal = |e: std::io::Error, output: &mut Output| {
        refuse(
            Diagnostic::error("internal", format!("cannot try it: {e}")),
            output,
        )
    };
    let place = Scratch::new().map_err(|e| internal(e, output))?;
    let program = std::env::current_exe().map_err(|e| internal(e, output))?;
    let mut arguments = super::run::worker_arguments(logging, None);
    arguments.extend(super::run::build_argument());
    let experiment = ExperimentFolder(place.path().to_owned());
    arguments.extend(super::run::kernels_argument(&experiment));
    let trials = Trials {
        program,
        place: place.path().to_owned(),
        arguments,
        threads: std::thread::available_parallelism().map_or(1, |n| n.get()),
    };
    let findings = match trials.findings(&short) {
        Ok(findings) => findings,
        Err(reason) => {
            let diagnostic = Diagnostic::error("run", reason);
            return Err(refuse(
                diagnostic.help("let it complete with `runner run` first"),
                output,
            ));
        }
    };
    let holds = findings.iter().all(|finding| finding.holds);
    if args.json {
        output.print(&serde_json::to_string(&findings).unwrap_or_default());
    } else {
        for finding in &findings {
            let word = if finding.holds { "holds " } else { "BROKEN" };
            output.print(&format!(
                "{word}  {:<44}  {}",
                finding.guarantee, finding.detail
            ));
        }
    }
    Ok(if holds { OK } else { FAILED })
}

/// The same work for fewer epochs and steps. Validation and evaluation are whole.
fn shortened(run: &RunPlan) -> RunPlan {
    let mut short = run.clone();
    short.train.epochs = run.train.epochs.min(EPOCHS);
    short.steps_per_epoch = run.steps_per_epoch.min(STEPS_PER_EPOCH);
    short.checkpoint.every_epochs = 1;
    short.checkpoint.every_steps = Some((short.steps_per_epoch / 4).max(1));
    short.checkpoint.keep_last = 2;
    short.with_fingerprint()
}

/// Makes runs in a folder of their own.
struct Trials {
    program: PathBuf,
    place: PathBuf,
    arguments: Vec<String>,
    threads: usize,
}

/// A run that was made.
struct Made {
    record: RunRecord,
    side: Side,
}

impl Trials {
    fn findings(&self, plan: &RunPlan) -> Result<Vec<Finding>, String> {
        let mut findings = Vec::new();
        let straight = self.made(plan, "straight", self.threads)?;
        let again = self.made(plan, "again", self.threads)?;
        let mut twice = finding("the same numbers twice", &straight, &again);
        if !twice.holds {
            let third = self.made(plan, "third", self.threads)?;
            twice.detail += match grade(&again, &third) {
                Grade::Bitwise => {
                    "; a third run is equal to the second: the first one tuned kernels, and later ones took its choices"
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
            "beside another run, with half of the threads",
            &straight,
            &first,
        ));
        if self.threads > 1 && plan.device.backend.is_host() {
            let alone = self.made(plan, "one-thread", 1)?;
            findings.push(finding("with one thread", &straight, &alone));
        }
        // What is broken by the device alone is no fault of what was tried.
        if findings.first().is_some_and(|twice| !twice.holds) {
            for finding in findings.iter_mut().skip(1).filter(|finding| !finding.holds) {
                finding.detail += "; as it is without that";
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
    ) -> Result<Child, String> {
        let wrong = |e: std::io::Error| format!("cannot start a worker: {e}");
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

    /// Waits for a worker and takes in what it says.
    fn wait(&self, mut child: Child, plan: &RunPlan, name: &str) -> Result<Made, String> {
        // The leash is held until the worker ends by itself.
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
        let side = side(&folder, plan, &record).map_err(|e| e.to_string())?;
        Ok(Made { record, side })
    }

    /// A run that must come to its end.
    fn made(&self, plan: &RunPlan, name: &str, threads: usize) -> Result<Made, String> {
        let child = self.start(plan, name, threads, None)?;
        completed(self.wait(child, plan, name)?)
    }

    fn killed(&self, plan: &RunPlan) -> Result<(Made, usize), String> {
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
                // A run that ends early does not come to all moments.
                break;
            }
            num_kills += 1;
        }
        let made = self.made(plan, "killed", self.threads)?;
        Ok((made, num_kills))
    }

    fn two_at_once(&self, plan: &RunPlan) -> Result<[Made; 2], String> {
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
            let second = second.join().map_err(|_| "a worker was lost".to_owned())?;
            Ok([first, completed(second?)?])
        })
    }
}

fn completed(made: Made) -> Result<Made, String> {
    match &made.record.outcome {
        Some(Outcome::Completed) => Ok(made),
        Some(Outcome::Failed { class, message, .. }) => Err(format!(
            "the shortened run does not come to its end: {}: {message}",
            class.name()
        )),
        _ => Err("the shortened run does not come to its end".into()),
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
