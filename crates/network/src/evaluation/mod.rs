//! The errors of the best weights, in one pass over the valid split after training.
//!
//! It uses the batches of validation, so that its counts match the metrics. A batch is read and counted before the next
//! one is computed, and the kept data has a bound that does not depend on the data.

mod classes;
mod constant;
mod generated;
mod items;
mod labels;
mod samples;
mod texts;
mod values;
mod worst;

use burn::tensor::{Device, TensorReadError};

use self::classes::Classes;
use self::constant::Constant;
use self::generated::Generated;
use self::items::Items;
use self::labels::Labels;
use self::values::Values;
use crate::network::{Network, Output};
use crate::scores::{Scores, numbers};
use runner_core::data::{Places, Split, TargetPlan};
use runner_core::plan::{FORMAT, RunPlan};
use runner_core::record::evaluation::{Evaluated, Evaluation};
use runner_core::spec::task::TaskKind;

/// Maximum number of items that are listed because of their losses.
const NUM_WORST: usize = 16;
/// Pixels of the longer side of an image.
const SIDE: usize = 64;

/// The counts, by task.
enum Counted {
    Classes(Classes),
    Items(Items),
    Generated(Generated),
    Labels(Labels),
    Values(Values),
    /// Nothing: only texts are continued.
    Texts,
}

impl Counted {
    /// `None` if there is nothing to report about single items.
    fn new(plan: &RunPlan, split: &Split, scores: &Scores) -> Option<Self> {
        let num_classes = scores.num_classes;
        Some(match plan.task.kind {
            TaskKind::Classification
            | TaskKind::Segmentation
            | TaskKind::NextToken
            | TaskKind::MaskedToken => match Classes::new(plan, split, num_classes) {
                Some(classes) => Counted::Classes(classes),
                None => texts::are_continued(plan, split).then_some(Counted::Texts)?,
            },
            TaskKind::MultiLabel => {
                Counted::Labels(Labels::new(&plan.task, num_classes, &plan.loss))
            }
            TaskKind::Regression => {
                let has_mask = plan.loss.mask.is_some();
                Counted::Values(Values::new(split, plan.data.target.size(), has_mask))
            }
            TaskKind::Autoencoding => Counted::Items(Items::new(split)?),
            TaskKind::Generation => Counted::Generated(Generated::new(plan, split)?),
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
            padding: _,
            terms: _,
            judged: _,
        } = output;
        let losses = numbers(losses)?;
        match self {
            Counted::Classes(classes) => classes.add(&losses, outputs, targets),
            Counted::Items(items) => items.add(&losses, outputs, targets, scores),
            Counted::Generated(generated) => generated.add(outputs),
            Counted::Labels(labels) => labels.add(outputs, targets),
            Counted::Values(values) => values.add(&losses, outputs, targets, scores),
            Counted::Texts => Ok(()),
        }?;
        Ok(losses.len())
    }

    fn finish(self, plan: &RunPlan, split: &Split) -> Evaluated {
        let places = Places::new(&plan.data, split);
        match self {
            Counted::Classes(classes) => classes.finish(split, &places),
            Counted::Items(items) => items.finish(split, &places),
            Counted::Generated(generated) => generated.finish(split),
            Counted::Labels(labels) => labels.finish(split),
            Counted::Values(values) => values.finish(&places),
            Counted::Texts => Evaluated::NextToken {
                num_items: split.num_items() as u64,
                num_tokens: (split.num_items() * plan.data.target.size()) as u64,
                confused: Vec::new(),
                texts: Vec::new(),
            },
        }
    }
}

/// The errors of weights on the items of a split, which are added in their order.
pub struct Errors<'a> {
    counted: Counted,
    /// None where it would not be counted as the loss is.
    constant: Option<Constant>,
    plan: &'a RunPlan,
    split: &'a Split,
    scores: &'a Scores,
    num_items: usize,
}

impl<'a> Errors<'a> {
    /// Counts nothing yet; `None` if there is nothing to report.
    pub fn new(plan: &'a RunPlan, split: &'a Split, scores: &'a Scores) -> Option<Self> {
        Some(Self {
            counted: Counted::new(plan, split, scores)?,
            constant: (plan.data.target != TargetPlan::None && plan.loss.mask.is_none())
                .then(|| Constant::new(plan, scores, plan.data.target.size())),
            plan,
            split,
            scores,
            num_items: 0,
        })
    }

    /// Adds the next items of the split.
    pub fn add(&mut self, output: Output) -> Result<(), TensorReadError> {
        if let Some(constant) = &mut self.constant {
            constant.add(&output.targets)?;
        }
        self.num_items += self.counted.add(output, self.scores)?;
        Ok(())
    }

    /// Whether the items are needed at all.
    pub fn needs_items(&self) -> bool {
        !matches!(self.counted, Counted::Texts)
    }

    /// The number of added items.
    pub fn num_items(&self) -> usize {
        self.num_items
    }

    /// The errors of an epoch's weights, those of a network, on the valid split.
    pub fn finish(
        self,
        network: &Network,
        device: &Device,
        epoch: usize,
    ) -> Result<Evaluation, TensorReadError> {
        let constant = self.constant.filter(|_| self.num_items > 0);
        let constant = constant.map(|constant| constant.metrics(self.plan));
        let mut found = self.counted.finish(self.plan, self.split);
        if let Evaluated::NextToken { texts, .. } = &mut found {
            *texts = texts::continued(self.plan, self.split, network, device)?;
        }
        Ok(Evaluation {
            format: FORMAT,
            split: "valid".into(),
            epoch,
            constant: constant.unwrap_or_default(),
            found,
        })
    }
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
