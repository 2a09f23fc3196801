//! Data that is made up: learnable, small, the same on every machine. For trying things out, never a
//! stand-in for real data without a word.

mod points;
mod sequences;
mod shapes;

use rand::rngs::ChaCha8Rng;
use rand::{Rng, RngExt, SeedableRng};

use super::order::{Purpose, stream_seed};
use super::{InputPlan, Inputs, Items, TargetPlan, TargetValues};
use crate::spec::generate::{Generated, Generator, ShapeTarget, WindowTarget};

/// What the items and targets of a generator are.
pub fn plans(generated: &Generated) -> (InputPlan, TargetPlan) {
    let numbers = |shape: Vec<usize>| InputPlan {
        shape,
        vocabulary: None,
    };
    let tokens = |length, vocabulary| InputPlan {
        shape: vec![length],
        vocabulary: Some(vocabulary),
    };
    let class = |num_classes| TargetPlan::Class { num_classes };
    match generated.generator {
        Generator::Blobs {
            num_classes,
            num_features,
            ..
        } => (numbers(vec![num_features]), class(num_classes)),
        Generator::TwoMoons { .. } => (numbers(vec![2]), class(2)),
        Generator::Spirals { num_classes, .. } => (numbers(vec![2]), class(num_classes)),
        Generator::Regression {
            num_features,
            num_targets,
            ..
        } => {
            let shape = vec![num_targets];
            (numbers(vec![num_features]), TargetPlan::Values { shape })
        }
        Generator::SineWindows { length, target, .. } => {
            let target = match target {
                WindowTarget::Class => class(sequences::NUM_FORMS),
                WindowTarget::Next => TargetPlan::Values { shape: vec![1] },
            };
            (numbers(vec![length, 1]), target)
        }
        Generator::CopySequence { length, vocabulary } => {
            let target = TargetPlan::Classes {
                shape: vec![2 * length],
                num_classes: vocabulary,
            };
            (tokens(2 * length, vocabulary), target)
        }
        Generator::Brackets { length, kinds } => (tokens(length, 1 + 2 * kinds), class(2)),
        Generator::Shapes { size, target, .. } => {
            let target = match target {
                ShapeTarget::Class => class(shapes::NUM_SHAPES),
                ShapeTarget::Labels => TargetPlan::Labels {
                    num_labels: shapes::NUM_SHAPES,
                },
                ShapeTarget::Mask => TargetPlan::Classes {
                    shape: vec![size, size],
                    num_classes: 1 + shapes::NUM_SHAPES,
                },
            };
            (numbers(vec![1, size, size]), target)
        }
    }
}

/// The items of a generator. Item `n` depends on the seed and `n` alone.
pub fn generate(generated: &Generated) -> Items {
    let (input, target) = plans(generated);
    let mut inputs = match input.vocabulary {
        Some(_) => Inputs::Tokens(Vec::new()),
        None => Inputs::Floats(Vec::new()),
    };
    let mut targets = match target {
        TargetPlan::Class { .. } | TargetPlan::Classes { .. } => TargetValues::Classes(Vec::new()),
        TargetPlan::Labels { .. } | TargetPlan::Values { .. } => TargetValues::Floats(Vec::new()),
    };
    for at in 0..generated.num_items {
        let mut item = Item {
            at,
            seed: generated.seed,
            rng: stream(generated.seed, 1 + at as u64),
            inputs: &mut inputs,
            targets: &mut targets,
        };
        match generated.generator {
            Generator::Blobs {
                num_classes,
                num_features,
                noise,
            } => points::blob(&mut item, num_classes, num_features, noise),
            Generator::TwoMoons { noise } => points::moon(&mut item, noise),
            Generator::Spirals { num_classes, noise } => {
                points::spiral(&mut item, num_classes, noise);
            }
            Generator::Regression {
                num_features,
                num_targets,
                noise,
                outliers,
            } => points::regression(&mut item, num_features, num_targets, noise, outliers),
            Generator::SineWindows {
                length,
                noise,
                target,
            } => sequences::window(&mut item, length, noise, target),
            Generator::CopySequence { length, vocabulary } => {
                sequences::copy(&mut item, length, vocabulary);
            }
            Generator::Brackets { length, kinds } => sequences::brackets(&mut item, length, kinds),
            Generator::Shapes {
                size,
                noise,
                target,
            } => shapes::image(&mut item, size, noise, target),
        }
    }
    Items {
        input,
        inputs,
        target,
        targets,
    }
}

fn stream(seed: u64, index: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(stream_seed(seed, Purpose::Generate, index))
}

/// An item that is being made.
struct Item<'a> {
    at: usize,
    seed: u64,
    rng: ChaCha8Rng,
    inputs: &'a mut Inputs,
    targets: &'a mut TargetValues,
}

impl Item<'_> {
    /// A generator that all items share, for what they have in common.
    fn shared(&self) -> ChaCha8Rng {
        stream(self.seed, 0)
    }

    fn number(&mut self, value: f64) {
        if let Inputs::Floats(values) = self.inputs {
            values.push(value as f32);
        }
    }

    fn token(&mut self, token: usize) {
        if let Inputs::Tokens(tokens) = self.inputs {
            tokens.push(token as i32);
        }
    }

    fn class(&mut self, class: i32) {
        if let TargetValues::Classes(classes) = self.targets {
            classes.push(class);
        }
    }

    fn target(&mut self, value: f64) {
        if let TargetValues::Floats(values) = self.targets {
            values.push(value as f32);
        }
    }
}

/// A number from 0 up to 1.
fn uniform(rng: &mut impl Rng) -> f64 {
    rng.random::<f64>()
}

/// A draw from the standard normal distribution (Box and Muller, 1958).
fn normal(rng: &mut impl Rng) -> f64 {
    let radius = (-2.0 * (1.0 - uniform(rng)).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform(rng)).cos()
}

/// A whole number below `bound`.
fn below(rng: &mut impl Rng, bound: usize) -> usize {
    ((uniform(rng) * bound as f64) as usize).min(bound - 1)
}
