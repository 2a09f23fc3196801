//! Confusion matrices: of items, of pixels, of tokens.

use burn::tensor::activation::softmax;
use burn::tensor::{Tensor, TensorReadError};

use super::samples::{Drawn, Samples};
use super::worst::Worst;
use super::{NUM_WORST, SIDE, plain};
use crate::scores::{numbers, whole_numbers};
use crate::targets::Targets;
use runner_core::data::{Pictures, Places, Split, TargetPlan, small_mask};
use runner_core::plan::RunPlan;
use runner_core::predict::Separating;
use runner_core::record::evaluation::{Confused, Confusion, Evaluated, Mistake, Sample};
use runner_core::spec::task::TaskKind;

/// Maximum number of classes with a confusion matrix.
const MOST_CLASSES: usize = 200;
/// Maximum number of tokens with a confusion matrix: at most 8 MiB of counts.
const MOST_TOKENS: usize = 1024;
/// Maximum number of listed pairs of tokens.
const NUM_CONFUSED: usize = 16;

/// Counts of classes.
pub struct Classes {
    task: TaskKind,
    num_classes: usize,
    /// The confusion matrix, one row per true class; empty if there are too many.
    counts: Vec<u64>,
    /// Items so far.
    num_items: usize,
    /// Positions so far that are not ignored.
    num_counted: u64,
    /// Whether outputs are logits, which softmax turns into probabilities.
    has_probabilities: bool,
    mistakes: Worst<Wrong>,
    separating: Option<Separating>,
    masks: Option<Masks>,
}

/// Some items with their masks.
struct Masks {
    size: [usize; 2],
    samples: Samples<Pair>,
}

/// A mask, and the predicted one.
type Pair = [Vec<i32>; 2];

impl Masks {
    /// `None` if there is not a class for each pixel.
    fn of(plan: &RunPlan, split: &Split) -> Option<Self> {
        let TargetPlan::Classes { shape, .. } = &plan.data.target else {
            return None;
        };
        let &[height, width] = shape.as_slice() else {
            return None;
        };
        Some(Self {
            size: [height, width],
            samples: Samples::new(split.num_items()),
        })
    }

    /// Adds the next items, whose first one is at a position of the split.
    fn add(&mut self, first: usize, losses: &[f64], [targets, chosen]: [&[i64]; 2]) {
        let size = self.size[0] * self.size[1];
        let items = targets.chunks_exact(size).zip(chosen.chunks_exact(size));
        for (at, ((target, chosen), loss)) in items.zip(losses).enumerate() {
            let mask = |of: &[i64]| of.iter().map(|class| *class as i32).collect();
            let known = || [mask(target), mask(chosen)];
            self.samples.add(first + at, *loss, known);
        }
    }

    fn finish(self, split: &Split, places: &Places<'_>) -> Vec<Sample> {
        self.samples.into_shown(split, places, |_, masks| {
            let [target, predicted] = masks.map(|mask| small_mask(&mask, self.size, SIDE));
            Some(Drawn {
                target,
                predicted: predicted?,
            })
        })
    }
}

/// A misclassified item.
#[derive(Clone, Debug)]
struct Wrong {
    target: usize,
    predicted: usize,
    probability: Option<f64>,
}

impl Classes {
    /// Counts nothing yet; `None` if there would be nothing to report.
    pub fn new(plan: &RunPlan, split: &Split, num_classes: usize) -> Option<Self> {
        let (task, loss) = (&plan.task, &plan.loss);
        let most = match task.kind {
            kind if kind.is_of_tokens() => MOST_TOKENS,
            _ => MOST_CLASSES,
        };
        let has_room = num_classes <= most;
        if !has_room && task.kind.is_of_tokens() {
            return None;
        }
        let has_masks = task.kind == TaskKind::Segmentation;
        Some(Self {
            task: task.kind,
            num_classes,
            counts: if has_room {
                vec![0; num_classes * num_classes]
            } else {
                Vec::new()
            },
            num_items: 0,
            num_counted: 0,
            has_probabilities: loss.function.gives_probabilities(),
            mistakes: Worst::new(NUM_WORST),
            separating: Separating::new(task, &loss.function, num_classes),
            masks: has_masks.then(|| Masks::of(plan, split)).flatten(),
        })
    }

    /// Adds the next items: their losses, \[batch * positions, classes\], and \[batch, positions\].
    pub fn add(
        &mut self,
        losses: &[f64],
        outputs: Tensor<2>,
        targets: Targets,
    ) -> Result<(), TensorReadError> {
        let Targets::Classes(targets) = targets else {
            return Ok(());
        };
        let targets = whole_numbers(targets.flatten(0, 1))?;
        let chosen = whole_numbers(outputs.clone().argmax(1).flatten(0, 1))?;
        if let Some(masks) = &mut self.masks {
            masks.add(self.num_items, losses, [&targets, &chosen]);
        }
        let pairs = targets.iter().zip(&chosen).enumerate();
        // Ignored positions are below 0.
        let counted = pairs.filter_map(|(at, (target, chosen))| {
            Some((at, usize::try_from(*target).ok()?, *chosen as usize))
        });
        let mut wrong = Vec::new();
        for (at, target, predicted) in counted {
            self.num_counted += 1;
            let pair = target * self.num_classes + predicted;
            if let Some(count) = self.counts.get_mut(pair) {
                *count += 1;
            }
            if target != predicted && self.task == TaskKind::Classification {
                wrong.push((at, target, predicted));
            }
        }
        let probabilities = if self.has_probabilities && self.separating.is_some() {
            let all = numbers::<1>(softmax(outputs, 1).flatten(0, 1))?;
            let all: Vec<f32> = all.into_iter().map(|number| number as f32).collect();
            if let Some(separating) = &mut self.separating {
                let targets = targets.iter().map(|target| *target as i32);
                separating.add_classes(&all, &targets.collect::<Vec<_>>());
            }
            let items = all.chunks_exact(self.num_classes);
            let largest = |item: &[f32]| f64::from(item.iter().copied().fold(0.0, f32::max));
            items.map(largest).collect()
        } else if self.has_probabilities && !wrong.is_empty() {
            numbers::<1>(softmax(outputs, 1).max_dim(1).flatten(0, 1))?
        } else {
            Vec::new()
        };
        for (at, target, predicted) in wrong {
            let known = || Wrong {
                target,
                predicted,
                probability: probabilities.get(at).copied(),
            };
            self.mistakes.add(self.num_items + at, losses[at], known);
        }
        self.num_items += losses.len();
        Ok(())
    }

    /// The result.
    pub fn finish(self, split: &Split, places: &Places<'_>) -> Evaluated {
        let names = split.set().target_names();
        let name = |class: usize| names.get(class).cloned().unwrap_or_default();
        match self.task {
            TaskKind::Classification => Evaluated::Classification {
                num_items: self.num_counted,
                confusion: self.confusion(&names),
                mistakes: {
                    let pictures = Pictures::of(split.set());
                    let shown = |item| {
                        let pictures = pictures.as_ref()?;
                        pictures.thumbnail(split.row(item)?, SIDE)
                    };
                    let kept = self.mistakes.into_kept().into_iter();
                    kept.map(|kept| Mistake {
                        item: kept.item,
                        target: name(kept.known.target),
                        predicted: name(kept.known.predicted),
                        probability: kept.known.probability.map(plain),
                        loss: plain(kept.loss),
                        place: places.of(kept.item),
                        picture: shown(kept.item),
                    })
                    .collect()
                },
                separations: self
                    .separating
                    .map_or_else(Vec::new, |separating| separating.finish(&names)),
            },
            TaskKind::NextToken | TaskKind::MaskedToken => Evaluated::NextToken {
                num_items: self.num_items as u64,
                num_tokens: self.num_counted,
                confused: self
                    .most_confused()
                    .into_iter()
                    .map(|(target, predicted, count)| Confused {
                        target: name(target),
                        predicted: name(predicted),
                        count,
                    })
                    .collect(),
                texts: Vec::new(),
            },
            _ => Evaluated::Segmentation {
                num_items: self.num_items as u64,
                num_pixels: self.num_counted,
                confusion: self.confusion(&names),
                samples: self
                    .masks
                    .map_or_else(Vec::new, |masks| masks.finish(split, places)),
            },
        }
    }

    fn confusion(&self, names: &[String]) -> Confusion {
        if self.counts.is_empty() {
            let num = self.num_classes;
            return Confusion {
                left_out: Some(format!(
                    "there are {num} classes, but a confusion matrix has at most {MOST_CLASSES}"
                )),
                ..Confusion::default()
            };
        }
        let rows = self.counts.chunks(self.num_classes);
        Confusion {
            classes: names.to_vec(),
            confusion: rows.map(<[u64]>::to_vec).collect(),
            left_out: None,
        }
    }

    /// The confused pairs and their counts, the largest first; equal ones in order.
    fn most_confused(&self) -> Vec<(usize, usize, u64)> {
        let num = self.num_classes;
        let all = self.counts.iter().enumerate();
        let pairs = all.map(|(at, count)| (at / num, at % num, *count));
        let mut pairs: Vec<_> = pairs.filter(|(a, b, count)| a != b && *count > 0).collect();
        pairs.sort_by_key(|(.., count)| std::cmp::Reverse(*count));
        pairs.truncate(NUM_CONFUSED);
        pairs
    }
}
