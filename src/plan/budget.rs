//! A budget sheet: what a run would hold with other batches and precisions, held against what there is, and
//! what to change where it does not fit.

use serde::Serialize;

use super::{Calibration, RunPlan};
use crate::spec::backend::Precision;
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
}

impl Verdict {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Fits => "fits",
            Verdict::Tight => "tight",
            Verdict::TooLarge => "too large",
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
    /// Whether that follows from measurements on this machine.
    pub is_calibrated: bool,
    /// How it stands; none when it is not known what there is.
    pub verdict: Option<Verdict>,
}

/// Changes that make a run fit, in the order in which they are worth trying, as far as the forecast can
/// tell. The error is that of a measured calibration at the run's own batch, which goes for the changed
/// runs too.
pub fn advice(run: &RunPlan, calibration: Option<&Calibration>, capacity: u64) -> Vec<String> {
    let items = run.train.micro_batch_size;
    let measured = calibration.map_or(1.0, |calibration| {
        calibration.bytes(items) as f64 / run.forecast.total().max(1) as f64
    });
    let bytes = |run: &RunPlan| (run.forecast.total() as f64 * measured) as u64;
    let fits = |run: &RunPlan| Verdict::of(bytes(run), capacity) != Verdict::TooLarge;
    let mut advice = Vec::new();
    let halves = std::iter::successors(Some(items / 2), |items| Some(items / 2));
    let smaller = halves
        .take_while(|items| *items > 0)
        .map(|items| in_pieces(run, items))
        .find(&fits);
    let at_least = smaller.unwrap_or_else(|| in_pieces(run, 1));
    if fits(&at_least) {
        advice.push(format!(
            "train.micro_batch_size = {}: the same updates, added up from pieces",
            at_least.train.micro_batch_size
        ));
    }
    let mut kept = run.clone();
    if !kept.train.gradient_checkpointing {
        kept.train.gradient_checkpointing = true;
        kept = kept.in_batches(items, run.precision);
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
    if !fits(&at_least) {
        advice.push(format!(
            "a smaller model: {} parameters with their states alone are too much",
            run.network.num_parameters
        ));
    }
    advice
}

/// The same updates in smaller pieces.
fn in_pieces(run: &RunPlan, items: usize) -> RunPlan {
    let batch_size = run.train.batch_size;
    let mut smaller = run.clone();
    smaller.train.batch_size = batch_size;
    smaller.train.micro_batch_size = items;
    smaller.with_forecast()
}
