//! The errors of the best weights, in one pass over the valid split after training.
//!
//! It uses the batches of validation, so that its counts match the metrics. A batch is read and counted before the next
//! one is computed, and the kept data has a bound that does not depend on the data.

mod classes;
mod labels;
mod values;
mod worst;

use burn::data::dataloader::DataLoader;
use burn::tensor::TensorReadError;

use self::classes::Classes;
use self::labels::Labels;
use self::values::Values;
use super::loader::{Loader, WrongCount};
use super::wrong_count;
use runner_core::data::{Places, Split};
use runner_core::event::{FailureClass, Outcome};
use runner_core::plan::{FORMAT, RunPlan};
use runner_core::record::evaluation::{Evaluated, Evaluation};
use runner_core::spec::task::TaskKind;
use runner_network::network::{Network, Output};
use runner_network::scores::{Scores, numbers};

/// Maximum number of items that are listed because of their losses.
const NUM_WORST: usize = 16;

/// The counts, by task.
enum Counted {
    Classes(Classes),
    Labels(Labels),
    Values(Values),
}

impl Counted {
    /// `None` if there is nothing to report about single items.
    fn new(plan: &RunPlan, split: &Split, scores: &Scores) -> Option<Self> {
        let num_classes = scores.num_classes;
        Some(match plan.task.kind {
            TaskKind::Classification | TaskKind::Segmentation | TaskKind::NextToken => {
                Counted::Classes(Classes::new(&plan.task, num_classes, &plan.loss)?)
            }
            TaskKind::MultiLabel => {
                Counted::Labels(Labels::new(&plan.task, num_classes, &plan.loss))
            }
            TaskKind::Regression => Counted::Values(Values::new(split, plan.data.target.size())),
            TaskKind::Autoencoding => return None,
        })
    }

    /// Adds the next items of the split.
    ///
    /// Returns how many there were.
    fn add(&mut self, output: Output, scores: &Scores) -> Result<usize, TensorReadError> {
        let Output {
            losses,
            outputs,
            targets,
        } = output;
        let losses = numbers(losses)?;
        match self {
            Counted::Classes(classes) => classes.add(&losses, outputs, targets),
            Counted::Labels(labels) => labels.add(outputs, targets),
            Counted::Values(values) => values.add(&losses, outputs, targets, scores),
        }?;
        Ok(losses.len())
    }

    fn finish(self, plan: &RunPlan, split: &Split) -> Evaluated {
        let places = Places::new(&plan.data, split);
        match self {
            Counted::Classes(classes) => classes.finish(split, &places),
            Counted::Labels(labels) => labels.finish(split),
            Counted::Values(values) => values.finish(&places),
        }
    }
}

/// The errors of an epoch's weights on the items of a loader; `None` if there is nothing to report.
pub fn of(
    network: &Network,
    valid: &Loader,
    scores: &Scores,
    plan: &RunPlan,
    epoch: usize,
) -> Result<Option<Evaluation>, Outcome> {
    let Some(mut counted) = Counted::new(plan, valid.split(), scores) else {
        return Ok(None);
    };
    let mut num_items = 0;
    for batch in valid.iter() {
        let batch = batch.map_err(|e| Outcome::failed(FailureClass::Data, e.to_string()))?;
        let added = counted.add(network.output(batch), scores);
        num_items += added.map_err(|e| Outcome::failed(FailureClass::DeviceLost, e.to_string()))?;
    }
    WrongCount::check(valid.name(), num_items, valid.num_items()).map_err(wrong_count)?;
    Ok(Some(Evaluation {
        format: FORMAT,
        split: "valid".into(),
        epoch,
        found: counted.finish(plan, valid.split()),
    }))
}

/// A number as it is written: one in single precision with its shortest digits.
fn plain(value: f64) -> f64 {
    let single = value as f32;
    if f64::from(single) == value {
        single.to_string().parse().unwrap_or(value)
    } else {
        value
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn numbers_are_written_short_and_stay_what_they_are() {
        for value in [0.1_f32, 1e-30, 3.4e38, -0.0, 7.0] {
            assert_eq!(plain(f64::from(value)) as f32, value);
        }
        assert_eq!(plain(f64::from(0.1_f32)), 0.1);
        assert_eq!(plain(0.123_456_789_012), 0.123_456_789_012);
    }
}
