//! How well a run was reproduced: two traces compared step by step, with a grade.

mod grade;
mod numbers;
mod spread;
mod weights;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use grade::{AtLeast, Grade};
pub use numbers::FirstNumbers;
pub use spread::{Spread, prediction_interval};
pub use weights::WeightDistance;

use crate::event::{Epoch, Metrics};
use crate::record::{
    Digests, Environment, INSTRUCTIONS, KERNELS, OPERATING_SYSTEM, OPTIMIZER, PROCESSOR, Trace,
};
use crate::spec::backend::Arithmetic;

/// The label of the number of threads.
const THREADS: &str = "threads";

/// What is known about one of two compared runs.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Its trace.
    pub trace: Trace,
    /// Its epochs with their metrics.
    pub epochs: Vec<Epoch>,
    /// The evaluations after training, by split.
    pub evaluations: BTreeMap<String, Metrics>,
    /// The objective in the best epoch, if the run ended.
    pub objective: Option<f64>,
    /// sha256 of its final weights; empty if it has none.
    pub weights_digest: String,
}

/// What two runs have in common, and where they diverge.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Updates whose losses were compared.
    pub num_steps: usize,
    /// Whether that was requested, and is not the whole training.
    pub is_partial: bool,
    /// The first update whose loss differs, from 1, with original and new loss.
    pub first_loss: Option<(usize, f64, f64)>,
    /// The first step whose digests differ, and the parameters that do.
    pub first_parameters: Option<(usize, Vec<String>)>,
    /// Compared metrics, of epochs and evaluations.
    #[serde(default)]
    pub num_numbers: usize,
    /// The first metrics that differ.
    #[serde(default)]
    pub first_numbers: Option<FirstNumbers>,
    /// The largest distance of two losses.
    pub loss_distance: Distance,
    /// The largest distance of two metrics.
    #[serde(default)]
    pub number_distance: Distance,
    /// The largest distance of two final weights, if both exist.
    pub weight_distance: Option<Distance>,
    /// The original and new objective, if both are known.
    pub objective: Option<(f64, f64)>,
    /// What could not be compared, and why. Anything here prevents the grade `bitwise`.
    pub not_compared: Vec<String>,
    /// What was changed in the original's record after it was written, and the evidence.
    #[serde(default)]
    pub edited: Vec<String>,
}

/// The distance of two numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distance {
    /// In units in the last place of 32-bit floats, of the largest number of the tensor.
    pub ulps: f64,
    /// Where: `step 7`, or a parameter.
    pub place: String,
}

impl Distance {
    /// Keeps the larger one.
    pub fn widen(&mut self, ulps: f64, place: impl FnOnce() -> String) {
        // NaN is as far away as possible.
        let ulps = if ulps.is_nan() { f64::INFINITY } else { ulps };
        if ulps > self.ulps {
            *self = Self {
                ulps,
                place: place(),
            };
        }
    }
}

/// The distance from one 32-bit float of this size to the next.
pub fn ulp(size: f64) -> f64 {
    let size = (size.abs() as f32).max(f32::MIN_POSITIVE);
    f64::from(f32::from_bits(size.to_bits() + 1)) - f64::from(size)
}

impl Comparison {
    /// Compares the first `steps` updates of two runs, or all of them. `weights` are the distances of final weights, if
    /// compared.
    pub fn of(
        then: &Side,
        now: &Side,
        steps: Option<usize>,
        weights: Option<&[WeightDistance]>,
    ) -> Self {
        let mut comparison = Self {
            is_partial: steps.is_some(),
            ..Self::default()
        };
        comparison.compare_losses(&then.trace, &now.trace, steps);
        comparison.compare_digests(&then.trace.digests, &now.trace.digests, steps);
        comparison.compare_numbers(then, now, steps);
        if steps.is_none() {
            comparison.objective = then.objective.zip(now.objective);
            if then.weights_digest != now.weights_digest && comparison.first_parameters.is_none() {
                comparison.first_parameters =
                    Some((comparison.num_steps, vec!["the final weights".into()]));
            }
        }
        comparison.weight_distance = weights.map(|weights| {
            let mut distance = Distance::default();
            for weight in weights {
                distance.widen(weight.ulps, || weight.parameter.clone());
            }
            distance
        });
        comparison
    }

    fn compare_losses(&mut self, then: &Trace, now: &Trace, steps: Option<usize>) {
        if then.losses.is_empty() {
            let what = "the losses of the steps, which have no trace";
            self.not_compared.push(what.into());
            return;
        }
        let num = steps.unwrap_or(then.losses.len().max(now.losses.len()));
        let pairs = then.losses.iter().zip(&now.losses).take(num);
        let mut num_lost = 0;
        for (at, (a, b)) in pairs.enumerate() {
            if a.is_nan() && !b.is_nan() {
                // It was lost, not measured.
                num_lost += 1;
                continue;
            }
            self.num_steps += 1;
            if a.to_bits() != b.to_bits() {
                self.first_loss.get_or_insert((at + 1, *a, *b));
                let ulps = (a - b).abs() / ulp(a.abs().max(b.abs()));
                self.loss_distance
                    .widen(ulps, || format!("the loss of step {}", at + 1));
            }
        }
        let (before, after) = (then.losses.len(), now.losses.len());
        if steps.is_none() && before < after {
            // Shorter than the training: the file was truncated, which final weights distinguish from an early end.
            num_lost += after - before;
        }
        if steps.is_none() && after < before {
            let at = after;
            self.first_loss
                .get_or_insert((at + 1, then.losses[at], f64::NAN));
            self.loss_distance
                .widen(f64::INFINITY, || format!("step {}", at + 1));
        }
        if num_lost > 0 {
            let what = format!("the losses of {num_lost} steps, which are missing from the trace");
            self.not_compared.push(what);
        }
    }

    fn compare_digests(&mut self, then: &[Digests], now: &[Digests], steps: Option<usize>) {
        let mut is_any = false;
        let mut num_lost = 0;
        let is_meant = |path: &String| steps.is_none() || !path.starts_with(OPTIMIZER);
        for after in now {
            let before = then.iter().find(|before| before.step == after.step);
            // The first steps may end within an epoch, where a whole training leaves no digests.
            if before.is_none() && steps.is_some() && after.step > 0 {
                continue;
            }
            let before = before.map_or(&[][..], |before| &before.parameters);
            let is_there = |path: &String| before.iter().any(|(known, _)| known == path);
            let paths = after.parameters.iter().map(|(path, _)| path);
            num_lost += paths.filter(|p| is_meant(p) && !is_there(p)).count();
        }
        for before in then {
            let Some(after) = now.iter().find(|after| after.step == before.step) else {
                continue;
            };
            is_any = true;
            let after: BTreeMap<&String, &String> =
                after.parameters.iter().map(|(p, d)| (p, d)).collect();
            let differs = |(path, digest): &&(String, String)| {
                is_meant(path) && after.get(path).is_none_or(|after| **after != *digest)
            };
            let parameters: Vec<_> = before.parameters.iter().filter(differs).collect();
            if !parameters.is_empty() {
                let paths = parameters.into_iter().map(|(path, _)| path.clone());
                self.first_parameters = Some((before.step, paths.collect()));
                return;
            }
        }
        if !is_any {
            let what = "the parameters by path, which have no digests";
            self.not_compared.push(what.into());
        } else if num_lost > 0 {
            let what =
                format!("{num_lost} digests of parameters, which are missing from the trace");
            self.not_compared.push(what);
        }
    }

    /// Whether everything compared is equal.
    pub fn is_bitwise(&self) -> bool {
        let has_equal_weights = self
            .weight_distance
            .as_ref()
            .is_none_or(|far| far.ulps == 0.0);
        self.first_loss.is_none()
            && self.first_parameters.is_none()
            && self.first_numbers.is_none()
            && has_equal_weights
    }

    /// Whether both started with the same weights, as far as is known.
    pub fn begins_alike(&self) -> bool {
        !matches!(self.first_parameters, Some((0, _)))
    }

    /// The largest of all distances.
    pub fn distance(&self) -> &Distance {
        let others = [Some(&self.number_distance), self.weight_distance.as_ref()];
        let others = others.into_iter().flatten();
        others.fold(&self.loss_distance, |most, other| {
            if other.ulps > most.ulps { other } else { most }
        })
    }
}

/// Differences between the environments of the original run and its reproduction that numbers may depend on and that
/// are known on both sides: name, original, new. Numbers of portable arithmetic depend on fewer.
pub fn environment_differences(
    then: &Environment,
    now: &Environment,
    arithmetic: Arithmetic,
) -> Vec<[String; 3]> {
    let pairs = environment_facts(then)
        .into_iter()
        .zip(environment_facts(now));
    let both = pairs.filter_map(|((name, then), (_, now))| Some([name.to_owned(), then?, now?]));
    let both = both.filter(|[name, then, now]| name != KERNELS && then != now);
    // Those change no bit of a run whose arithmetic is portable.
    let both = both.filter(|[name, ..]| {
        arithmetic.is_fast()
            || ![OPERATING_SYSTEM, PROCESSOR, INSTRUCTIONS, THREADS].contains(&name.as_str())
    });
    let mut differing: Vec<_> = both.collect();
    // Other runs may have added selections since; only keys that both have selected count.
    if let (Some(then), Some(now)) = (then.kernels(), now.kernels())
        && let (num @ 1.., of) = now.differing(then)
    {
        differing.push([
            KERNELS.to_owned(),
            format!("one for each of {of} places"),
            format!("a different one for {num} of them"),
        ]);
    }
    differing
}

/// Facts about a run's environment that numbers may depend on, by name.
pub fn environment_facts(e: &Environment) -> Vec<(&'static str, Option<String>)> {
    let worker = e.worker.as_ref();
    let kernels = e.kernels();
    let mut facts = e.facts();
    facts.extend([
        (THREADS, worker.map(|w| w.threads.to_string())),
        (
            KERNELS,
            kernels.map(|kernels| kernels.digest.chars().take(16).collect()),
        ),
    ]);
    facts
}

#[cfg(test)]
mod tests;
