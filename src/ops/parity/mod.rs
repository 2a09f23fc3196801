//! The comparison of devices: the training of an experiment in lockstep, or every type of layer in isolation.

mod layers;
mod start;
mod training;

use std::io;
use std::path::PathBuf;

use serde::Serialize;
use wildmatch::WildMatch;

use super::{Experiment, Program, Progress, Scratch, Sink};
use crate::dispatch::{Cancel, Urgency};
use crate::error::{Error, FAILED, OK};
use crate::train::parity::WrongLayer;
pub use layers::LayerParity;
use runner_core::check::network::examples::{self, Example as Small};
use runner_core::diagnostic::{Diagnostic, Reason};
use runner_core::parity::{Example, Said, Step};
use runner_core::spec::backend::{DeviceName, FLEX};
use runner_core::spec::section::Choice;
pub use training::TrainingParity;

/// The devices to compare, and what they compute.
#[derive(Clone)]
pub struct Parity {
    /// The devices: all others are compared with the first.
    pub devices: Vec<DeviceName>,
    /// What they compute.
    pub subject: Subject,
    /// The program that computes.
    pub program: Program,
    /// A mistake of the other device, for tests.
    pub inject_error: Option<WrongLayer>,
    /// Cancels the comparison, from [`Progress::MayCancel`] on.
    pub cancel: Cancel,
}

/// What compared devices compute.
#[derive(Clone, Debug)]
pub enum Subject {
    /// The training of a run, in lockstep.
    Training {
        /// The experiment file.
        experiment: Experiment,
        /// The trial; the first one by default.
        trial: Option<String>,
        /// The number of updates.
        steps: usize,
    },
    /// Small networks of each type of layer.
    Layers {
        /// Patterns of types, such as `conv*`; all types if there is none.
        only: Vec<String>,
    },
}

impl Parity {
    /// Compares devices on some subject.
    pub fn new(devices: Vec<DeviceName>, subject: Subject, program: Program) -> Self {
        Self {
            devices,
            subject,
            program,
            inject_error: None,
            cancel: Cancel::default(),
        }
    }
}

/// Two compared devices, with their own names.
#[derive(Clone, Debug, Serialize)]
pub struct DevicePair {
    /// The reference.
    pub reference: DeviceName,
    /// The own name of the reference; empty if it was not opened.
    pub reference_name: String,
    /// The other device.
    pub device: DeviceName,
    /// The own name of the other device; empty if it was not opened.
    pub device_name: String,
}

impl DevicePair {
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
}

/// The comparison of a device with the reference.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum DeviceParity {
    /// On a training.
    Training(TrainingParity),
    /// On layers.
    Layers(LayerParity),
}

impl DeviceParity {
    /// Whether no difference was found.
    pub fn is_good(&self) -> bool {
        match self {
            Self::Training(training) => training.verdict.is_good(),
            Self::Layers(layers) => layers.is_good(),
        }
    }
}

/// The comparisons of all devices with the reference.
#[derive(Clone, Debug)]
pub struct Parities(pub Vec<DeviceParity>);

impl Parities {
    /// 1 if a difference was found.
    pub fn exit_code(&self) -> u8 {
        if self.0.iter().all(DeviceParity::is_good) {
            OK
        } else {
            FAILED
        }
    }
}

/// Compares devices in separate processes, since drivers may crash. The sink receives each comparison as
/// [`Progress::Compared`].
///
/// # Errors
///
/// [`Error::Refused`] if a device is not in this build or cannot be opened, or the trial, the number of steps or the type
/// of layer does not exist; [`Error::Experiment`] if the file is invalid; [`Error::Interrupted`] if it was cancelled.
/// Devices that differ are not an error.
///
/// ```
/// use burn_runner::ops::{self, Parity, Program, Subject};
/// use burn_runner::spec::backend::FLEX;
///
/// let layers = Subject::Layers { only: Vec::new() };
/// let options = Parity::new(vec![FLEX], layers, Program::default());
/// let error = ops::parity(&options, &ops::quiet).unwrap_err();
/// assert_eq!(error.to_string(), "`--devices flex` is a single device, but two are needed");
/// ```
pub fn parity(options: &Parity, sink: &Sink<'_>) -> Result<Parities, Error> {
    refuse_devices(&options.devices)?;
    let comparing = Comparing {
        options,
        place: Scratch::new().map_err(|e| internal(&e))?,
    };
    sink(Progress::MayCancel);
    match &options.subject {
        Subject::Training {
            experiment,
            trial,
            steps,
        } => comparing.trainings(experiment, trial.as_deref(), *steps, sink),
        Subject::Layers { only } => comparing.layers(only, sink),
    }
}

/// The small networks of the matching types of layers, with their numbers from 1: of runner's types, and of the
/// program's own.
///
/// # Errors
/// If an example of the program is not valid.
pub(crate) fn examples(only: &[String]) -> Result<Vec<(usize, Small)>, Reason> {
    let globs: Vec<_> = only.iter().map(|glob| WildMatch::new(glob)).collect();
    let matches = |kind: String| globs.is_empty() || globs.iter().any(|glob| glob.matches(&kind));
    let all = examples::examples().into_iter();
    let all = all.chain(examples::own_examples()?).enumerate();
    let all = all.map(|(at, small)| (at + 1, small));
    Ok(all.filter(|(_, small)| matches(small.kind())).collect())
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

/// What a worker computes.
struct Job {
    /// The folder of a planned run; none for layers.
    folder: Option<PathBuf>,
    devices: [DeviceName; 2],
    steps: usize,
    /// The number of the first example.
    from: usize,
    only: Vec<String>,
}

/// Compares devices.
struct Comparing<'a> {
    options: &'a Parity,
    place: Scratch,
}

impl Comparing<'_> {
    fn reference(&self) -> DeviceName {
        self.options.devices[0]
    }

    /// Makes a worker compare one device with the reference. The second value is the outcome, a phrase if it ended
    /// early.
    fn hear(&self, job: &Job, progress: &mut dyn FnMut(&Said)) -> (Heard, Result<(), Reason>) {
        let mut heard = Heard::default();
        let log = self.place.path().join("log");
        let ended = start::worker(job, self.options, &log, &mut |said| {
            progress(&said);
            heard.take(said);
        });
        (heard, ended)
    }

    /// An error if the comparison is to end.
    fn go_on(&self) -> Result<(), Error> {
        match self.options.cancel.urgency() {
            Urgency::None => Ok(()),
            _ => Err(Error::Interrupted("stopped".into())),
        }
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

fn internal(error: &io::Error) -> Error {
    let message = format!("cannot compare devices: {error}");
    Error::refused(Diagnostic::error("internal", message))
}
