//! `runner parity`: devices compared, on the training of a file in lock-step or on every type of layer.

mod start;
mod worker;

use std::path::Path;

use serde::Serialize;
use wildmatch::WildMatch;

use super::experiment::{plan as plan_experiment, refuse, trial};
use super::output::Output;
use super::prepare::verify_data;
use super::{FAILED, Logging, OK, ParityArgs, ParityExecArgs, SpecArgs};
use crate::check::network::examples::{self, Example as Small};
use crate::console::Mode;
use crate::diagnostic::{Diagnostic, counted};
use crate::parity::{
    Example, KindRow, Outcome, Said, Step, Style, Verdict, by_kind, layer_table, show_verdict,
    step_table, tensor_table,
};
use crate::record::RunFolder;
use crate::spec::backend::DeviceName;
use crate::spec::section::Choice;
use crate::train::parity::determinate;
pub use worker::parity_exec;

/// Two devices that are compared, with their own names.
#[derive(Clone, Debug, Serialize)]
struct Devices {
    reference: DeviceName,
    reference_name: String,
    device: DeviceName,
    device_name: String,
}

impl Devices {
    fn new(reference: DeviceName, device: DeviceName) -> Self {
        Self {
            reference,
            reference_name: String::new(),
            device,
            device_name: String::new(),
        }
    }

    /// Takes in their own names when both are open.
    fn name(&mut self, reference: String, device: String) {
        self.reference_name = reference;
        self.device_name = device;
    }

    fn show(&self) -> String {
        format!(
            "{} ({}) against {} ({})",
            self.device, self.device_name, self.reference, self.reference_name
        )
    }
}

/// What is printed of a training as JSON.
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

/// What is printed of layers as JSON.
#[derive(Serialize)]
struct Layers {
    #[serde(flatten)]
    devices: Devices,
    types: Vec<KindRow>,
    examples: Vec<Example>,
}

/// `runner parity`
pub fn parity(args: &ParityArgs, logging: &Logging, output: &mut Output) -> u8 {
    let compared = refuse_devices(&args.devices, output).and_then(|()| match &args.spec {
        Some(spec) => trainings(spec, args, logging, output),
        None => layers(args, logging, output),
    });
    match compared {
        Ok(true) => OK,
        Ok(false) => FAILED,
        Err(code) => code,
    }
}

fn refuse_devices(devices: &[DeviceName], output: &mut Output) -> Result<(), u8> {
    let wrong = |message: String, help: String, output: &mut Output| {
        Err(refuse(
            Diagnostic::error("usage", message).help(help),
            output,
        ))
    };
    if let [only] = devices {
        let message = format!("`--devices {only}` is one device, and two are compared");
        return wrong(message, format!("write `--devices flex,{only}`"), output);
    }
    match devices.iter().find(|device| !device.backend.is_compiled()) {
        None => Ok(()),
        Some(absent) => {
            let name = absent.backend.name();
            let message = format!("the device `{absent}` is not in this build");
            let help =
                format!("build with `--features {name}`; `runner devices` lists what is there");
            wrong(message, help, output)
        }
    }
}

/// The examples of the types that match, with their numbers from 1.
fn examples(only: &[String]) -> Vec<(usize, Small)> {
    let globs: Vec<_> = only.iter().map(|glob| WildMatch::new(glob)).collect();
    let matches = |kind: String| globs.is_empty() || globs.iter().any(|glob| glob.matches(&kind));
    let all = examples::examples().into_iter().enumerate();
    all.map(|(at, small)| (at + 1, small))
        .filter(|(_, small)| matches(small.kind()))
        .collect()
}

/// Compares devices on the training of a file; whether all agree.
fn trainings(
    spec: &Path,
    args: &ParityArgs,
    logging: &Logging,
    output: &mut Output,
) -> Result<bool, u8> {
    let spec = SpecArgs {
        spec: spec.to_owned(),
        set: args.set.clone(),
    };
    let (document, plan) = plan_experiment(&spec, Some(Mode::Normal), output)?;
    verify_data(&document, &plan, output)?;
    let run = trial(&plan, args.trial.as_deref(), output)?;
    if args.steps > run.num_steps() {
        let message = format!(
            "`--steps {}` is more than the {} of the training",
            args.steps,
            run.num_steps()
        );
        let diagnostic = Diagnostic::error("usage", message);
        return Err(refuse(diagnostic.help("ask for fewer"), output));
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
    let place = temporary(output)?;
    let folder = RunFolder(place.path().join("run"));
    folder.write_plan(&run).map_err(|e| internal(&e, output))?;
    let mut all_agree = true;
    for device in &args.devices[1..] {
        let mut devices = Devices::new(args.devices[0], *device);
        let mut steps = Vec::new();
        let (mut refused, mut failed, mut last) = (None, None, String::new());
        let worker = worker_args(args, *device, Some(folder.0.clone()), 1);
        let ended =
            start::worker(
                &worker,
                logging,
                &place.path().join("log"),
                &mut |said| match said {
                    Said::Opened { reference, device } => devices.name(reference, device),
                    Said::Began { what, .. } => last = what,
                    Said::Stepped(step) => steps.push(step),
                    Said::Refused { reason } => refused = Some(reason),
                    Said::Failed { reason } => failed = Some(reason),
                    Said::Tried(_) => {}
                },
            );
        if let Some(reason) = refused {
            return Err(refuse(Diagnostic::error("device", reason), output));
        }
        let failed = failed.or(ended.err());
        let verdict = match failed {
            Some(reason) if last.is_empty() => Verdict::Failed { reason },
            Some(reason) => Verdict::Failed {
                reason: format!("in {last}: {reason}"),
            },
            None => Verdict::of(&steps),
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
        match args.json {
            true => output.print(&serde_json::to_string(&training).unwrap_or_default()),
            false => show_training(&training, style(args), output),
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
        output.print("\nlargest error of all steps, against its tolerance");
        output.print(&tensor_table(&training.steps, style));
        output.print("");
    }
    let (reference, device) = (reference.to_string(), device.to_string());
    output.print(&show_verdict(&training.verdict, &reference, &device));
}

/// Compares devices on every type of layer; whether none was found to differ.
fn layers(args: &ParityArgs, logging: &Logging, output: &mut Output) -> Result<bool, u8> {
    let all = examples(&args.only);
    let Some((last, _)) = all.last() else {
        let message = format!(
            "no type of layer matches `--only {}`",
            args.only.join(" --only ")
        );
        let diagnostic = Diagnostic::error("usage", message);
        return Err(refuse(
            diagnostic.help("types are those of `[[model.layers]]`, such as `conv2d`"),
            output,
        ));
    };
    let place = temporary(output)?;
    let mut is_good = true;
    for device in &args.devices[1..] {
        let mut devices = Devices::new(args.devices[0], *device);
        let mut done: Vec<Example> = Vec::new();
        let mut refused = None;
        // A worker that dies takes one example with it; the next one goes on behind it.
        let mut from = 1;
        while from <= *last {
            let mut began = None;
            let worker = worker_args(args, *device, None, from);
            let ended =
                start::worker(
                    &worker,
                    logging,
                    &place.path().join("log"),
                    &mut |said| match said {
                        Said::Opened { reference, device } => devices.name(reference, device),
                        Said::Began { number, .. } => began = Some(number),
                        Said::Tried(example) => done.push(example),
                        Said::Refused { reason } | Said::Failed { reason } => {
                            refused = Some(reason)
                        }
                        Said::Stepped(_) => {}
                    },
                );
            let reason = match (refused.take(), began) {
                (None, Some(number)) => {
                    let is_tried = done.last().is_some_and(|example| example.number == number);
                    let lost = all.iter().find(|(at, _)| *at == number && !is_tried);
                    if let (Some((number, small)), Err(reason)) = (lost, ended) {
                        done.push(Example {
                            number: *number,
                            kind: small.kind(),
                            layers: small.layers.clone(),
                            outcome: Outcome::Failed { reason },
                        });
                    }
                    from = number + 1;
                    continue;
                }
                (Some(reason), _) => reason,
                (None, None) => match ended {
                    // There was nothing left to try.
                    Ok(()) => break,
                    Err(reason) => reason,
                },
            };
            return Err(refuse(Diagnostic::error("device", reason), output));
        }
        let types = by_kind(&done);
        is_good &= types.iter().all(KindRow::is_good);
        match args.json {
            true => {
                let layers = Layers {
                    devices,
                    types,
                    examples: done,
                };
                output.print(&serde_json::to_string(&layers).unwrap_or_default());
            }
            false => show_layers(&devices, &types, style(args), output),
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
        "{} agree, {} differ, {} failed, {} not compared: they draw random numbers",
        count("agrees"),
        count("differs"),
        count("failed"),
        count("random")
    ));
}

fn style(args: &ParityArgs) -> Style {
    match args.md {
        true => Style::Markdown,
        false => Style::Text,
    }
}

fn worker_args(
    args: &ParityArgs,
    device: DeviceName,
    folder: Option<std::path::PathBuf>,
    from: usize,
) -> ParityExecArgs {
    ParityExecArgs {
        folder,
        devices: vec![args.devices[0], device],
        steps: args.steps,
        from,
        only: args.only.clone(),
        inject_error: args.inject_error.clone(),
    }
}

fn temporary(output: &mut Output) -> Result<tempfile::TempDir, u8> {
    tempfile::tempdir().map_err(|e| internal(&e, output))
}

fn internal(error: &std::io::Error, output: &mut Output) -> u8 {
    let message = format!("cannot compare devices: {error}");
    refuse(Diagnostic::error("internal", message), output)
}
