//! A memory budget: forecasts for other batches and precisions, compared with the available memory, and remedies if it
//! is not enough.

use serde::Serialize;

use super::relief::halved;
use super::{Basis, Expected, RunPlan};
use crate::show::show_bytes;
use crate::spec::adjustment::{Adjustment, Change};
use crate::spec::backend::Precision;
use crate::spec::section::Choice;
use crate::spec::train::Recomputed;

/// How much more memory than forecast a run may use before its forecast counts as wrong. A run that fits with less room
/// than that is tight.
const MARGIN: f64 = 0.15;

/// A forecast compared with the available memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Fits, with room for an error of 15 %.
    Fits,
    /// Fits if the forecast is right.
    Tight,
    /// Does not fit.
    TooLarge,
    /// The file is invalid with these settings, whatever the memory.
    Refused,
}

impl Verdict {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Fits => "fits",
            Verdict::Tight => "tight",
            Verdict::TooLarge => "too large",
            Verdict::Refused => "refused",
        }
    }

    /// For this many bytes needed and available.
    pub fn of(bytes: u64, capacity: u64) -> Self {
        match bytes as f64 {
            held if held * (1.0 + MARGIN) <= capacity as f64 => Verdict::Fits,
            held if held <= capacity as f64 => Verdict::Tight,
            _ => Verdict::TooLarge,
        }
    }
}

/// One entry of the budget.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Items per micro-batch.
    pub items: usize,
    /// The precision.
    pub precision: Precision,
    /// The expected peak, in bytes.
    pub bytes: u64,
    /// The basis of the forecast.
    pub basis: Basis,
    /// The comparison; none if the available memory is unknown.
    pub verdict: Option<Verdict>,
}

/// Changes that make a run fit, in the order in which to try them, as far as the forecast can tell. `correction` is the
/// ratio of measured to counted memory of such runs, if measured.
pub fn advice(run: &RunPlan, correction: Option<f64>, capacity: u64) -> Vec<String> {
    let items = run.train.micro_batch_size;
    let bytes = |run: &RunPlan| Expected::unmeasured(run, correction).bytes;
    let fits = |run: &RunPlan| Verdict::of(bytes(run), capacity) != Verdict::TooLarge;
    let with = |change: Change| {
        run.adjusted(&[Adjustment {
            from_step: 0,
            change,
        }])
    };
    let mut advice = Vec::new();
    let in_pieces = |items: usize| with(Change::MicroBatchSize(items));
    let smaller = std::iter::successors(halved(items), |items| halved(*items));
    let smaller = smaller.map(in_pieces).find(&fits);
    if let Some(smaller) = &smaller {
        advice.push(format!(
            "train.micro_batch_size = {}: the same updates, with accumulated gradients",
            smaller.train.micro_batch_size
        ));
    }
    for (recomputed, written) in [
        (Recomputed::Operations, "true"),
        (Recomputed::Blocks, "\"blocks\""),
    ] {
        let now = run.train.gradient_checkpointing;
        if now == recomputed || !now.is_nothing() && recomputed == Recomputed::Operations {
            continue;
        }
        let Some(kept) = run.recomputing(recomputed) else {
            continue;
        };
        let saved = bytes(run).saturating_sub(bytes(&kept));
        let key = format!("train.gradient_checkpointing = {written}");
        match (fits(&kept), recomputed) {
            (true, Recomputed::Blocks) => {
                advice.push(format!(
                    "{key}: the same numbers, with another forward pass"
                ));
            }
            (true, _) => {
                advice.push(format!("{key}: the same numbers"));
                break;
            }
            (false, _) if saved * 20 > bytes(run) => {
                advice.push(format!("{key} helps, but is not enough alone"));
            }
            (false, _) => {}
        }
    }
    let half = run.in_batches(items, Precision::Bf16);
    if run.precision.num_bytes() > 2 && fits(&half) {
        advice.push(format!(
            "backend.precision = \"{}\", if the device supports it: pure half precision, other numbers",
            Precision::Bf16.name()
        ));
    }
    if smaller.is_none() {
        let states = run.forecast.states();
        advice.push(if states > capacity {
            format!(
                "a smaller model: {} parameters and their state take {}",
                run.network.num_parameters,
                show_bytes(states)
            )
        } else {
            format!(
                "a smaller model, or more memory: with one item at a time it would still need {}",
                show_bytes(bytes(&in_pieces(1)))
            )
        });
    }
    advice
}
