//! A budget sheet: what a run would hold with other batches and precisions, held against what there is, and
//! what to change where it does not fit.

use serde::Serialize;

use super::relief::halved;
use super::{Basis, Expected, RunPlan};
use crate::spec::adjustment::{Adjustment, Change};
use crate::spec::backend::Precision;
use crate::spec::kind::show_bytes;
use crate::spec::section::Choice;

/// How much more than forecast a run may hold before its forecast would be called wrong. What fits with
/// less room than that is tight.
const MARGIN: f64 = 0.15;

/// How a forecast stands against what there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// With room for an error of 15 %.
    Fits,
    /// As far as the forecast is right.
    Tight,
    /// More than there is.
    TooLarge,
    /// The file cannot be run so, whatever it holds.
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

    /// Of so many bytes against so many.
    pub fn of(bytes: u64, capacity: u64) -> Self {
        match bytes as f64 {
            held if held * (1.0 + MARGIN) <= capacity as f64 => Verdict::Fits,
            held if held <= capacity as f64 => Verdict::Tight,
            _ => Verdict::TooLarge,
        }
    }
}

/// One field of the sheet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Items that are computed at a time.
    pub items: usize,
    /// In what precision.
    pub precision: Precision,
    /// The peak that is to be expected, in bytes.
    pub bytes: u64,
    /// What that rests on.
    pub basis: Basis,
    /// How it stands; none when it is not known what there is.
    pub verdict: Option<Verdict>,
}

/// Changes that make a run fit, in the order in which they are worth trying, as far as the forecast can
/// tell. `correction` is what the count of such runs was off by where one was measured.
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
            "train.micro_batch_size = {}: the same updates, added up from pieces",
            smaller.train.micro_batch_size
        ));
    }
    if !run.train.gradient_checkpointing {
        let kept = with(Change::GradientCheckpointing(true));
        let saved = bytes(run).saturating_sub(bytes(&kept));
        match fits(&kept) {
            true => advice.push("train.gradient_checkpointing = true: the same numbers".into()),
            false if saved * 20 > bytes(run) => advice.push(
                "train.gradient_checkpointing = true helps, and is not enough by itself".into(),
            ),
            false => {}
        }
    }
    let half = run.in_batches(items, Precision::Bf16);
    if run.precision.num_bytes() > 2 && fits(&half) {
        advice.push(format!(
            "backend.precision = \"{}\", where the device has it: pure half, other numbers",
            Precision::Bf16.name()
        ));
    }
    if smaller.is_none() {
        let states = run.forecast.states();
        advice.push(if states > capacity {
            format!(
                "a smaller model: {} parameters with their states alone take {}",
                run.network.num_parameters,
                show_bytes(states)
            )
        } else {
            format!(
                "a smaller model, or more room: with one item at a time it would still hold {}",
                show_bytes(bytes(&in_pieces(1)))
            )
        });
    }
    advice
}
