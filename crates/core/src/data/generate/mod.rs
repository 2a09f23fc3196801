//! Generated data: learnable, small, equal on every machine. For experiments, never an unannounced substitute for real
//! data. Only operations that every machine rounds alike are used.

mod points;
mod sequences;
mod shapes;

use rand::rngs::ChaCha8Rng;
use rand::{Rng, RngExt, SeedableRng};

use super::order::{Purpose, stream_seed};
use super::{InputPlan, Inputs, Items, TargetPlan, TargetValues};
use crate::spec::generate::{Generated, Generator, RegressionTarget, ShapeTarget, WindowTarget};

/// The token that a generator pads items with, if it does.
pub fn padding(generated: &Generated) -> Option<u32> {
    matches!(generated.generator, Generator::Brackets { .. }).then_some(0)
}

/// The kinds of a generator's items and targets.
pub fn plans(generated: &Generated) -> (InputPlan, TargetPlan) {
    let numbers = |shape: Vec<usize>| InputPlan::single(shape, None);
    let tokens = |length, vocabulary| InputPlan::single(vec![length], Some(vocabulary));
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

/// The items of a generator. Item `n` depends only on the seed and `n`.
pub fn generate(generated: &Generated) -> Items {
    let (input, target) = plans(generated);
    let mut inputs = match input.vocabulary {
        Some(_) => Inputs::Tokens(Vec::new()),
        None => Inputs::Floats(Vec::new()),
    };
    let mut targets = match target {
        TargetPlan::Class { .. } | TargetPlan::Classes { .. } => TargetValues::Classes(Vec::new()),
        _ => TargetValues::Floats(Vec::new()),
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
                target,
            } => {
                let is_counted = target == RegressionTarget::Counts;
                let numbers = (num_features, num_targets);
                points::regression(&mut item, numbers, noise, outliers, is_counted);
            }
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

/// An item that is being generated.
struct Item<'a> {
    at: usize,
    seed: u64,
    rng: ChaCha8Rng,
    inputs: &'a mut Inputs,
    targets: &'a mut TargetValues,
}

impl Item<'_> {
    /// Random numbers that all items share, for common properties.
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
pub(in crate::data) fn uniform(rng: &mut impl Rng) -> f64 {
    rng.random::<f64>()
}

/// With mean 0 and deviation 1, approximately normal: the sum of twelve uniform numbers.
fn normal(rng: &mut impl Rng) -> f64 {
    (0..12).map(|_| uniform(rng)).sum::<f64>() - 6.0
}

/// Sine and cosine of a fraction of a full turn, by Taylor series: those of the system's library differ between
/// machines.
pub(in crate::data) fn turn(part: f64) -> (f64, f64) {
    let x = (part - part.round()) * std::f64::consts::TAU;
    let series = |first: f64, start: f64| {
        let (mut term, mut sum) = (first, first);
        for at in 0..16 {
            let n = start + 2.0 * f64::from(at);
            term *= -x * x / (n * (n + 1.0));
            sum += term;
        }
        sum
    };
    (series(x, 2.0), series(1.0, 1.0))
}

/// An integer below `bound`.
pub(in crate::data) fn below(rng: &mut impl Rng, bound: usize) -> usize {
    ((uniform(rng) * bound as f64) as usize).min(bound - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_have_the_right_sine_and_cosine() {
        for part in [-2.3, -0.5, 0.0, 0.1, 0.25, 0.49, 0.5, 7.8] {
            let (sine, cosine) = turn(part);
            let angle = part * std::f64::consts::TAU;
            assert!((sine - angle.sin()).abs() < 1e-12, "{part}");
            assert!((cosine - angle.cos()).abs() < 1e-12, "{part}");
        }
    }

    #[test]
    fn noise_has_mean_0_and_deviation_1() {
        let mut rng = stream(1, 1);
        let values: Vec<f64> = (0..20_000).map(|_| normal(&mut rng)).collect();
        let num = values.len() as f64;
        let mean = values.iter().sum::<f64>() / num;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / num;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.03);
    }

    fn all() -> Vec<Generator> {
        let shapes = |target| Generator::Shapes {
            size: 8,
            noise: 0.1,
            target,
        };
        vec![
            Generator::Blobs {
                num_classes: 3,
                num_features: 2,
                noise: 1.0,
            },
            Generator::TwoMoons { noise: 0.1 },
            Generator::Spirals {
                num_classes: 2,
                noise: 0.1,
            },
            Generator::Regression {
                num_features: 3,
                num_targets: 2,
                noise: 0.1,
                outliers: 0.1,
                target: RegressionTarget::Values,
            },
            Generator::SineWindows {
                length: 6,
                noise: 0.1,
                target: WindowTarget::Next,
            },
            Generator::CopySequence {
                length: 4,
                vocabulary: 5,
            },
            Generator::Brackets {
                length: 8,
                kinds: 2,
            },
            shapes(ShapeTarget::Class),
            shapes(ShapeTarget::Labels),
            shapes(ShapeTarget::Mask),
        ]
    }

    fn made(generator: &Generator, num_items: usize, seed: u64) -> Items {
        generate(&Generated {
            num_items,
            seed,
            generator: generator.clone(),
        })
    }

    /// The first item and its target of each, so that published numbers stay the same.
    #[test]
    fn first_items_are_pinned() {
        let shown = all().into_iter().map(|generator| {
            let items = made(&generator, 1, 0);
            format!(
                "{generator:?}\n  {:.3?}\n  {:.3?}",
                items.inputs, items.targets
            )
        });
        insta::assert_snapshot!(shown.collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn larger_sets_begin_with_smaller_ones_and_the_seed_decides() {
        for generator in all() {
            let (small, large) = (made(&generator, 10, 3), made(&generator, 20, 3));
            assert_eq!(small.len(), 10, "{generator:?}");
            match (&small.inputs, &large.inputs) {
                (Inputs::Floats(small), Inputs::Floats(large)) => {
                    assert_eq!(small[..], large[..small.len()]);
                }
                (Inputs::Tokens(small), Inputs::Tokens(large)) => {
                    assert_eq!(small[..], large[..small.len()]);
                }
                other => panic!("{other:?}"),
            }
            assert_ne!(small, made(&generator, 10, 4), "{generator:?}");
        }
    }

    #[test]
    fn brackets_are_balanced_or_not_and_counting_does_not_tell() {
        let items = made(
            &Generator::Brackets {
                length: 12,
                kinds: 3,
            },
            200,
            1,
        );
        let (Inputs::Tokens(tokens), TargetValues::Classes(classes)) =
            (items.inputs, items.targets)
        else {
            panic!("tokens with a class");
        };
        let mut num_alike = 0;
        for (word, class) in tokens.chunks(12).zip(&classes) {
            let mut open = Vec::new();
            let mut counts = [0i32; 3];
            let mut is_balanced = true;
            for token in word.iter().filter(|token| **token > 0) {
                let kind = (token - 1) / 2;
                match token % 2 {
                    1 => open.push(kind),
                    _ => is_balanced &= open.pop() == Some(kind),
                }
                counts[kind as usize] += if token % 2 == 1 { 1 } else { -1 };
            }
            assert_eq!(is_balanced && open.is_empty(), *class == 1);
            num_alike += (*class == 0 && counts == [0; 3]) as usize;
        }
        assert_eq!(classes.iter().sum::<i32>(), 100);
        assert!(
            num_alike > 50,
            "{num_alike} unbalanced words look balanced to a counter"
        );
    }
}
