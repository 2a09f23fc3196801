//! `runner parity`: comparison of devices, on the training of a file in lock-step or on every type of layer.

mod start;
mod worker;

use std::path::Path;

use serde::Serialize;
use wildmatch::WildMatch;

use super::output::Output;
use super::signals::listen_for_signals;
use super::tell::Teller;
use super::{FAILED, Logging, OK, ParityArgs, ParityExecArgs, SpecArgs};
use crate::dispatch::{Cancel, Urgency};
use crate::error::Error;
use crate::ops::{self, Scratch, verify_data};
use crate::train::parity::determinate;
use runner_core::check::network::examples::{self, Example as Small};
use runner_core::data::Trust;
use runner_core::diagnostic::{Diagnostic, Reason, counted};
use runner_core::parity::{
    Example, KindRow, Outcome, Said, Step, Style, Verdict, by_kind, layer_table, show_untold,
    show_verdict, step_table, tensor_table,
};
use runner_core::record::RunFolder;
use runner_core::spec::backend::{DeviceName, FLEX};
use runner_core::spec::section::Choice;
use runner_report::console::Mode;
pub use worker::parity_exec;

/// Two compared devices, with their own names.
#[derive(Clone, Debug, Serialize)]
struct Devices {
    reference: DeviceName,
    reference_name: String,
    device: DeviceName,
    device_name: String,
}

impl Devices {
    /// Their own names are known once both were opened.
    fn new(reference: DeviceName, device: DeviceName, names: Option<(String, String)>) -> Self {
        let (reference_name, device_name) = names.unwrap_or_default();
        Self {
            reference,
            reference_name,
            device,
            device_name,
        }
    }

    fn show(&self) -> String {
        format!(
            "{} ({}) compared with {} ({})",
            self.device, self.device_name, self.reference, self.reference_name
        )
    }
}

/// The JSON output for a training.
#[derive(Serialize)]
struct Training {
    #[serde(flatten)]
    devices: Devices,
    trial: String,
    seed: u64,
    precision: &'static str,
    notes: Vec<String>,
    steps: Vec<Step>,
    #[serde(flatten)]
    verdict: Verdict,
}

/// The JSON output for layers.
#[derive(Serialize)]
struct Layers {
    #[serde(flatten)]
    devices: Devices,
    types: Vec<KindRow>,
    examples: Vec<Example>,
}

/// The messages of a worker.
#[derive(Default)]
struct Heard {
    /// The own names of the reference and the other device.
    names: Option<(String, String)>,
    /// The last step or example that it began, with its number.
    began: Option<(usize, String)>,
    steps: Vec<Step>,
    examples: Vec<Example>,
    /// Why a device cannot be opened.
    refused: Option<String>,
    /// Why it cannot continue.
    failed: Option<String>,
}

impl Heard {
    fn take(&mut self, said: Said) {
        match said {
            Said::Opened { reference, device } => self.names = Some((reference, device)),
            Said::Began { number, what } => self.began = Some((number, what)),
            Said::Stepped(step) => self.steps.push(step),
            Said::Tried(example) => self.examples.push(example),
            Said::Refused { reason } => self.refused = Some(reason),
            Said::Failed { reason } => self.failed = Some(reason),
        }
    }
}

/// Compares devices.
struct Comparing<'a> {
    args: &'a ParityArgs,
    logging: &'a Logging,
    place: Scratch,
    cancel: Cancel,
}

impl Comparing<'_> {
    /// Makes a worker compare one device with the reference. The second value is the outcome, a phrase if it ended
    /// early.
    fn hear(
        &self,
        device: DeviceName,
        folder: Option<&Path>,
        from: usize,
        progress: &mut dyn FnMut(&Said),
    ) -> Result<(Heard, Result<(), Reason>), Error> {
        let args = ParityExecArgs {
            folder: folder.map(Path::to_owned),
            devices: vec![self.args.devices[0], device],
            steps: self.args.steps,
            from,
            only: self.args.only.clone(),
            inject_error: self.args.inject_error.clone(),
        };
        let mut heard = Heard::default();
        let log = self.place.path().join("log");
        let ended = start::worker(&args, self.logging, &log, &self.cancel, &mut |said| {
            progress(&said);
            heard.take(said);
        });
        match self.cancel.urgency() {
            Urgency::None => Ok((heard, ended)),
            _ => Err(Error::Interrupted("stopped".into())),
        }
    }
}

/// `runner parity`
pub fn parity(args: &ParityArgs, logging: &Logging, output: &mut Output) -> u8 {
    let compare = |output: &mut Output| {
        refuse_devices(&args.devices)?;
        let comparing = Comparing {
            args,
            logging,
            place: Scratch::new().map_err(|e| internal(&e))?,
            cancel: Cancel::default(),
        };
        listen_for_signals(comparing.cancel.clone());
        match &args.spec {
            Some(spec) => trainings(spec, &comparing, output),
            None => layers(&comparing, output),
        }
    };
    let compared = compare(output);
    match compared {
        Ok(true) => OK,
        Ok(false) => FAILED,
        Err(error) => output.fail(&error),
    }
}

fn refuse_devices(devices: &[DeviceName]) -> Result<(), Error> {
    let wrong = |message: String, help: String| {
        Err(Error::refused(
            Diagnostic::error("usage", message).help(help),
        ))
    };
    if let [only] = devices {
        let message = format!("`--devices {only}` is a single device, but two are needed");
        let both = if *only == FLEX {
            "flex,wgpu".to_owned()
        } else {
            format!("flex,{only}")
        };
        let help = format!("use `--devices {both}`; `runner devices` lists the available ones");
        return wrong(message, help);
    }
    match devices.iter().find(|device| !device.backend.is_compiled()) {
        None => Ok(()),
        Some(absent) => {
            let name = absent.backend.name();
            let message = format!("the device `{absent}` is not in this build");
            let help = format!(
                "build with `--features {name}`; `runner devices` lists the available ones"
            );
            wrong(message, help)
        }
    }
}

/// The examples of the matching types, with their numbers from 1.
fn examples(only: &[String]) -> Vec<(usize, Small)> {
    let globs: Vec<_> = only.iter().map(|glob| WildMatch::new(glob)).collect();
    let matches = |kind: String| globs.is_empty() || globs.iter().any(|glob| glob.matches(&kind));
    let all = examples::examples().into_iter().enumerate();
    all.map(|(at, small)| (at + 1, small))
        .filter(|(_, small)| matches(small.kind()))
        .collect()
}

/// Compares devices on the training of a file; returns whether all agree.
fn trainings(spec: &Path, comparing: &Comparing<'_>, output: &mut Output) -> Result<bool, Error> {
    let args = comparing.args;
    let spec = SpecArgs {
        spec: spec.to_owned(),
        set: args.set.clone(),
    };
    let teller = Teller::new(Mode::Normal);
    let planned = ops::plan_with_data(&spec.experiment(), &|progress| teller.tell(progress));
    let planned = planned?;
    verify_data(&planned, Trust::Bytes)?;
    let plan = &planned.plan;
    let run = ops::trial(plan, args.trial.as_deref())?;
    if args.steps > run.num_steps() {
        let message = format!(
            "`--steps {}` is more than the {} of the training",
            args.steps,
            run.num_steps()
        );
        let diagnostic = Diagnostic::error("usage", message);
        return Err(Error::refused(diagnostic.help("use fewer steps")));
    }
    let (run, notes) = determinate(run.clone());
    output.say(&format!(
        "trial `{}` with seed {} for {} in {}",
        run.trial,
        run.seed,
        counted(args.steps, "step"),
        run.precision.name(),
    ));
    notes
        .iter()
        .for_each(|note| output.say(&format!("note: {note}")));
    let folder = RunFolder(comparing.place.path().join("run"));
    folder.write_plan(&run).map_err(|e| internal(&e))?;
    let mut all_agree = true;
    for device in &args.devices[1..] {
        let mut progress = |said: &Said| {
            if let Said::Stepped(step) = said {
                output.say(&format!("{device}: step {} of {}", step.step, args.steps));
            }
        };
        let (heard, ended) = comparing.hear(*device, Some(&folder.0), 1, &mut progress)?;
        if let Some(reason) = heard.refused {
            return Err(Error::refused(Diagnostic::error("device", reason)));
        }
        let devices = Devices::new(args.devices[0], *device, heard.names);
        let steps = heard.steps;
        let verdict = match (heard.failed.or(ended.err().map(String::from)), heard.began) {
            (Some(reason), None) => Verdict::Failed { reason },
            (Some(reason), Some((_, what))) => Verdict::Failed {
                reason: format!("in {what}: {reason}"),
            },
            (None, _) => Verdict::of(&steps),
        };
        all_agree &= verdict.is_good();
        let training = Training {
            devices,
            trial: run.trial.clone(),
            seed: run.seed,
            precision: run.precision.name(),
            notes: notes.clone(),
            steps,
            verdict,
        };
        if args.json {
            output.print(&serde_json::to_string(&training).unwrap_or_default())
        } else {
            show_training(&training, style(args), output)
        }
    }
    Ok(all_agree)
}

fn show_training(training: &Training, style: Style, output: &mut Output) {
    let Devices {
        reference, device, ..
    } = &training.devices;
    output.say(&training.devices.show());
    if !training.steps.is_empty() {
        output.print(&step_table(&training.steps, style));
        output.print("\nlargest error of all steps, relative to its tolerance");
        output.print(&tensor_table(&training.steps, style));
        output.print("");
    }
    let (reference, device) = (reference.to_string(), device.to_string());
    output.print(&show_verdict(&training.verdict, &reference, &device));
    if let Some(untold) = show_untold(&training.steps, &reference) {
        output.print(&untold);
    }
}

/// Compares devices on every type of layer; returns whether no difference was found.
fn layers(comparing: &Comparing<'_>, output: &mut Output) -> Result<bool, Error> {
    let args = comparing.args;
    let all = examples(&args.only);
    let Some((last, _)) = all.last() else {
        let message = format!(
            "no type of layer matches `--only {}`",
            args.only.join(" --only ")
        );
        let diagnostic = Diagnostic::error("usage", message);
        return Err(Error::refused(
            diagnostic.help("types are those of `[[model.layers]]`, such as `conv2d`"),
        ));
    };
    let mut is_good = true;
    for device in &args.devices[1..] {
        let mut names = None;
        let mut done: Vec<Example> = Vec::new();
        // A crashing worker loses one example; the next one continues after it.
        let mut from = 1;
        while from <= *last {
            let (heard, ended) = comparing.hear(*device, None, from, &mut |_| {})?;
            names = names.or(heard.names);
            done.extend(heard.examples);
            let lost = |number: usize, small: &Small, reason: &str| Example {
                number,
                kind: small.kind(),
                layers: small.layers.clone(),
                outcome: Outcome::Failed {
                    reason: reason.to_owned(),
                },
            };
            let reason = match (heard.refused.or(heard.failed), heard.began) {
                (None, Some((number, _))) => {
                    let is_tried = done.last().is_some_and(|example| example.number == number);
                    let begun = all.iter().find(|(at, _)| *at == number && !is_tried);
                    if let (Some((number, small)), Err(Reason(reason))) = (begun, ended) {
                        done.push(lost(*number, small, &reason));
                    }
                    from = number + 1;
                    continue;
                }
                (Some(reason), _) => reason,
                (None, None) => match ended {
                    // Nothing was left to compare.
                    Ok(()) => break,
                    Err(Reason(reason)) => reason,
                },
            };
            if done.is_empty() {
                return Err(Error::refused(Diagnostic::error("device", reason)));
            }
            // The device is lost for good, but earlier comparisons are valid.
            let left = all.iter().filter(|(number, _)| *number >= from);
            let left: Vec<_> = left
                .filter(|(number, _)| done.iter().all(|example| example.number != *number))
                .map(|(number, small)| lost(*number, small, &reason))
                .collect();
            done.extend(left);
            break;
        }
        let devices = Devices::new(args.devices[0], *device, names);
        let types = by_kind(&done);
        is_good &= types.iter().all(KindRow::is_good);
        if args.json {
            let layers = Layers {
                devices,
                types,
                examples: done,
            };
            output.print(&serde_json::to_string(&layers).unwrap_or_default());
        } else {
            show_layers(&devices, &types, style(args), output)
        }
    }
    Ok(is_good)
}

fn show_layers(devices: &Devices, types: &[KindRow], style: Style, output: &mut Output) {
    output.say(&devices.show());
    output.print(&layer_table(types, style));
    for row in types {
        for reason in &row.reasons {
            output.print(&format!("failed: {reason}"));
        }
    }
    let count = |verdict: &str| types.iter().filter(|row| row.verdict == verdict).count();
    output.say(&format!(
        "{} agree, {} differ, {} failed, {} not compared, {} not compared because they are random",
        count("agrees"),
        count("differs"),
        count("failed"),
        count("not compared"),
        count("random")
    ));
}

fn style(args: &ParityArgs) -> Style {
    if args.md {
        Style::Markdown
    } else {
        Style::Text
    }
}

fn internal(error: &std::io::Error) -> Error {
    let message = format!("cannot compare devices: {error}");
    Error::refused(Diagnostic::error("internal", message))
}
