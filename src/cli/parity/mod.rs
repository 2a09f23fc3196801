//! `runner parity`: comparison of devices, on the training of a file in lockstep or on every type of layer.

mod worker;

use super::output::Output;
use super::tell::{Teller, this_program};
use super::{Logging, ParityArgs, SpecArgs};
use crate::ops::{
    self, DevicePair, DeviceParity, LayerParity, Parity, Progress, Subject, TrainingParity,
};
use runner_core::parity::{
    Style, layer_table, show_untold, show_verdict, step_table, tensor_table,
};
use runner_report::console::Mode;
pub use worker::parity_exec;

/// `runner parity`
pub fn parity(args: &ParityArgs, logging: &Logging, output: &mut Output) -> u8 {
    let subject = match &args.spec {
        Some(spec) => Subject::Training {
            experiment: SpecArgs {
                spec: spec.clone(),
                set: args.set.clone(),
            }
            .experiment(),
            trial: args.trial.clone(),
            steps: args.steps,
        },
        None => Subject::Layers {
            only: args.only.clone(),
        },
    };
    let options = Parity {
        inject_error: args.inject_error.clone(),
        ..Parity::new(args.devices.clone(), subject, this_program(Some(logging)))
    };
    let teller = Teller::new(Mode::Normal).with_cancel(&options.cancel);
    let sink = |progress: Progress<'_>| match progress {
        Progress::Compared(compared) => show(compared, args, &mut Output),
        progress => teller.tell(progress),
    };
    match ops::parity(&options, &sink) {
        Ok(compared) => compared.exit_code(),
        Err(error) => output.fail(&error),
    }
}

fn show(compared: &DeviceParity, args: &ParityArgs, output: &mut Output) {
    let style = if args.md {
        Style::Markdown
    } else {
        Style::Text
    };
    match compared {
        _ if args.json => output.print(&serde_json::to_string(compared).unwrap_or_default()),
        DeviceParity::Training(training) => show_training(training, style, output),
        DeviceParity::Layers(layers) => show_layers(layers, style, output),
    }
}

fn heading(devices: &DevicePair) -> String {
    format!(
        "{} ({}) compared with {} ({})",
        devices.device, devices.device_name, devices.reference, devices.reference_name
    )
}

fn show_training(training: &TrainingParity, style: Style, output: &mut Output) {
    let DevicePair {
        reference, device, ..
    } = &training.devices;
    output.say(&heading(&training.devices));
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

fn show_layers(layers: &LayerParity, style: Style, output: &mut Output) {
    let types = &layers.types;
    output.say(&heading(&layers.devices));
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
