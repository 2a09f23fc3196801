//! Devices compared on every type of layer.

use serde::Serialize;

use super::super::{Progress, Sink};
use super::{Comparing, DevicePair, DeviceParity, Job, Parities, examples};
use crate::error::Error;
use runner_core::check::network::examples::Example as Small;
use runner_core::diagnostic::{Diagnostic, Reason};
use runner_core::parity::{Example, KindRow, Outcome, Said, by_kind};
use runner_core::spec::backend::DeviceName;

/// Two devices compared on types of layers.
#[derive(Clone, Debug, Serialize)]
pub struct LayerParity {
    /// The devices.
    #[serde(flatten)]
    pub devices: DevicePair,
    /// The types, each summarized.
    pub types: Vec<KindRow>,
    /// The compared networks.
    pub examples: Vec<Example>,
}

impl LayerParity {
    /// Whether no difference was found.
    pub fn is_good(&self) -> bool {
        self.types.iter().all(KindRow::is_good)
    }
}

/// How the work of a process ended.
enum Ended {
    /// All of its examples were compared.
    Whole,
    /// In an example: the next process continues after it.
    In(usize),
    /// The device is lost, for this reason.
    Lost(String),
    /// The comparison is to end.
    Stopped,
}

impl Comparing<'_> {
    /// Compares all devices with the reference on the matching types of layers.
    pub(super) fn layers(&self, only: &[String], sink: &Sink<'_>) -> Result<Parities, Error> {
        let all = examples(only).map_err(|Reason(broken)| {
            let diagnostic = Diagnostic::error("own-part", broken);
            Error::refused(diagnostic.help("correct the part in the source of this program"))
        })?;
        if all.is_empty() {
            let message = format!(
                "no type of layer matches `--only {}`",
                only.join(" --only ")
            );
            let diagnostic = Diagnostic::error("usage", message);
            return Err(Error::refused(
                diagnostic.help("types are those of `[[model.layers]]`, such as `conv2d`"),
            ));
        }
        let mut found = Vec::new();
        for device in &self.options.devices[1..] {
            let layers = self.layers_on(*device, &all, only, sink)?;
            if layers.examples.is_empty() {
                self.go_on()?;
            }
            // Kernels can take minutes, so that a part is shown too.
            let compared = DeviceParity::Layers(layers);
            sink(Progress::Compared(&compared));
            self.go_on()?;
            found.push(compared);
        }
        Ok(Parities(found))
    }

    fn layers_on(
        &self,
        device: DeviceName,
        all: &[(usize, Small)],
        only: &[String],
        sink: &Sink<'_>,
    ) -> Result<LayerParity, Error> {
        let last = all.last().map_or(0, |(number, _)| *number);
        let mut names = None;
        let mut done: Vec<Example> = Vec::new();
        // A crashing worker loses one example; the next one continues after it.
        let mut from = 1;
        while from <= last {
            let job = Job {
                folder: None,
                devices: [self.reference(), device],
                steps: 1,
                from,
                only: only.to_vec(),
            };
            let mut watch = |said: &Said| {
                let Said::Tried(example) = said else { return };
                for KindRow { kind, verdict, .. } in by_kind(std::slice::from_ref(example)) {
                    let of = format!("{kind} ({} of {last}): {verdict}", example.number);
                    sink(Progress::Step(&of));
                }
            };
            match self.some_layers(&job, all, (&mut names, &mut done), &mut watch) {
                Ended::Whole | Ended::Stopped => break,
                Ended::In(number) => from = number + 1,
                Ended::Lost(reason) if done.is_empty() => {
                    return Err(Error::refused(Diagnostic::error("device", reason)));
                }
                Ended::Lost(reason) => {
                    // Earlier comparisons are valid.
                    let left = all.iter().filter(|(number, _)| *number >= from);
                    let left: Vec<_> = left
                        .filter(|(number, _)| done.iter().all(|example| example.number != *number))
                        .map(|(number, small)| lost(*number, small, &reason))
                        .collect();
                    done.extend(left);
                    break;
                }
            }
        }
        Ok(LayerParity {
            devices: DevicePair::new(self.reference(), device, names),
            types: by_kind(&done),
            examples: done,
        })
    }

    /// The work of one process.
    fn some_layers(
        &self,
        job: &Job,
        all: &[(usize, Small)],
        (names, done): (&mut Option<(String, String)>, &mut Vec<Example>),
        watch: &mut dyn FnMut(&Said),
    ) -> Ended {
        let (heard, ended) = self.hear(job, watch);
        if names.is_none() {
            *names = heard.names;
        }
        done.extend(heard.examples);
        if self.go_on().is_err() {
            return Ended::Stopped;
        }
        match (heard.refused.or(heard.failed), heard.began, ended) {
            (Some(reason), _, _) => Ended::Lost(reason),
            (None, Some((number, _)), ended) => {
                let is_tried = done.last().is_some_and(|example| example.number == number);
                let begun = all.iter().find(|(at, _)| *at == number && !is_tried);
                if let (Some((number, small)), Err(Reason(reason))) = (begun, ended) {
                    done.push(lost(*number, small, &reason));
                }
                Ended::In(number)
            }
            (None, None, Ok(())) => Ended::Whole,
            (None, None, Err(Reason(reason))) => Ended::Lost(reason),
        }
    }
}

/// An example without a result.
fn lost(number: usize, small: &Small, reason: &str) -> Example {
    Example {
        number,
        kind: small.kind(),
        layers: small.layers.clone(),
        outcome: Outcome::Failed {
            reason: reason.to_owned(),
        },
    }
}
