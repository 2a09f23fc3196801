//! Two networks that train in turn, with `strategy.type = "adversarial"`.
//!
//! Both are parts of one [`Network`], so that checkpoints, optimizers and paths of parameters know them as one. A step is
//! an update of the discriminator with a batch and as many generated items; after each `discriminator_steps` of these,
//! the generator has an update with the same batch's second noise. Each update has only the gradients of its network.

use std::ops::Range;

use burn::module::{ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::{DType, Gradients, Tensor, activation};

use crate::batch::Batch;
use crate::copies::instead_of;
use crate::network::{Network, Output, Term};
use crate::numeric::{softplus, sum_axis, total};
use crate::scores::{Measured, Scores};
use crate::targets::Targets;
use crate::tensor::DynTensor;
use runner_core::check::network::pair::Pair;
use runner_core::data::order::Purpose;
use runner_core::plan::RunPlan;
use runner_core::spec::backend::Arithmetic;
use runner_core::spec::loss::LossFunction;

/// What the discriminator's losses of items are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// For the discriminator: an item of the data.
    Real,
    /// For the discriminator: a generated item.
    Generated,
    /// For the generator: a generated item.
    Fooling,
}

/// The loss of each score, \[batch\].
fn losses(loss: &LossFunction, arithmetic: Arithmetic, scores: Tensor<1>, side: Side) -> Tensor<1> {
    match (loss, side) {
        (LossFunction::Lsgan, Side::Real | Side::Fooling) => (scores - 1.0).square() * 0.5,
        (LossFunction::Lsgan, Side::Generated) => scores.square() * 0.5,
        (LossFunction::HingeGan, Side::Real) => activation::relu(scores.neg() + 1.0),
        (LossFunction::HingeGan, Side::Generated) => activation::relu(scores + 1.0),
        (
            LossFunction::HingeGan | LossFunction::Wgan { .. } | LossFunction::WganGp { .. },
            side,
        ) => match side {
            Side::Real | Side::Fooling => scores.neg(),
            Side::Generated => scores,
        },
        // Of all others, only `gan` is planned.
        (_, Side::Real | Side::Fooling) => softplus(arithmetic, scores.neg()),
        (_, Side::Generated) => softplus(arithmetic, scores),
    }
}

/// The score above which an item counts as one of the data; a critic has none.
pub fn threshold(loss: &LossFunction) -> Option<f64> {
    match loss {
        LossFunction::Gan | LossFunction::HingeGan => Some(0.0),
        LossFunction::Lsgan => Some(0.5),
        _ => None,
    }
}

/// The scores of a discriminator, \[batch\] each.
#[derive(Clone, Debug)]
pub struct Judged {
    /// Of items of the data.
    pub real: Tensor<1>,
    /// Of generated items.
    pub generated: Tensor<1>,
    /// What the items are for, in a conditional pair: \[batch, values\].
    pub condition: Option<Tensor<2>>,
}

impl Judged {
    /// The same on the device without autodiff.
    pub fn without_autodiff(self) -> Self {
        Self {
            real: self.real.without_autodiff(),
            generated: self.generated.without_autodiff(),
            condition: self.condition.map(Tensor::without_autodiff),
        }
    }
}

impl Network {
    /// The items that a generator makes from noise, for some targets in a conditional pair: \[batch, item shape\].
    pub fn generated(&self, pair: &Pair, noise: Tensor<2>, targets: Option<&Targets>) -> DynTensor {
        let condition = condition(pair, targets, noise.dtype());
        self.made(pair, noise, condition.as_ref())
    }

    /// The first items that it makes from the noise of a batch, \[items, values\].
    pub fn first_generated(&self, batch: &Batch, num: usize) -> Option<Tensor<2>> {
        let (pair, noise) = (self.pair()?, batch.noise.as_ref()?);
        let noise = noise.discriminator.clone();
        let num = num.min(noise.dims()[0]);
        let targets = batch.condition.as_ref().map(|targets| targets.first(num));
        let made = self.generated(pair, noise.narrow(0, 0, num), targets.as_ref());
        Some(made.flatten())
    }

    fn made(&self, pair: &Pair, noise: Tensor<2>, condition: Option<&DynTensor>) -> DynTensor {
        let (layers, noise) = (pair.generator.clone(), DynTensor::R2(noise));
        self.graph().part(layers, noise, condition)
    }

    /// The scores of a discriminator for items, \[batch\].
    fn judged(&self, pair: &Pair, items: DynTensor, condition: Option<&DynTensor>) -> Tensor<1> {
        let layers = pair.discriminator.clone();
        let scores = self.graph().part(layers, items, condition);
        scores.flatten().flatten(0, 1)
    }

    /// The loss of each score, \[batch\].
    fn losses_of_scores(&self, scores: &Tensor<1>, side: Side) -> Tensor<1> {
        let arithmetic = self.arithmetic();
        losses(self.loss_function(), arithmetic, scores.clone(), side)
    }

    /// Those of the discriminator, \[batch\].
    fn opposed_losses(&self, real: &Tensor<1>, generated: &Tensor<1>) -> Tensor<1> {
        self.losses_of_scores(real, Side::Real) + self.losses_of_scores(generated, Side::Generated)
    }

    /// Both networks for a batch, as in validation: the losses of the discriminator, and that of the generator as a term.
    pub(crate) fn opposed(&self, pair: &Pair, batch: Batch) -> Output {
        let noise = batch.noise.expect("a batch of a generation has noise");
        let noise = noise.discriminator;
        let condition = condition(pair, batch.condition.as_ref(), noise.dtype());
        let condition = condition.as_ref();
        let made = self.made(pair, noise, condition);
        let generated = self.judged(pair, made.clone(), condition);
        let real = self.judged(pair, batch.inputs, condition);
        Output {
            losses: self.opposed_losses(&real, &generated),
            outputs: made.flatten(),
            targets: batch.targets,
            padding: None,
            terms: vec![Term {
                losses: self.losses_of_scores(&generated, Side::Fooling),
                compared: None,
            }],
            judged: Some(Judged {
                real,
                generated,
                condition: condition.map(|condition| condition.clone().flatten()),
            }),
        }
    }

    /// A description of where a batch first results in infinity or NaN in one of the two networks.
    pub(crate) fn first_not_finite_of(&self, pair: &Pair, batch: &Batch) -> Option<String> {
        let noise = batch.noise.as_ref()?;
        let mut found = None;
        let dtype = noise.discriminator.dtype();
        let condition = condition(pair, batch.condition.as_ref(), dtype);
        let condition = condition.as_ref();
        if condition.is_some_and(|condition| !condition.is_finite()) {
            return Some("the targets that items are generated for".into());
        }
        let mut look = |layers: Range<usize>, given: DynTensor| {
            self.graph()
                .part_outputs(layers, given, condition, |at, output| {
                    if found.is_none() && !output.is_finite() {
                        let name = self.graph().name(at);
                        found = Some(format!("the output of layer `{name}`"));
                    }
                })
        };
        let noise = DynTensor::R2(noise.discriminator.clone());
        let made = look(pair.generator.clone(), noise);
        look(pair.discriminator.clone(), made);
        look(pair.discriminator.clone(), batch.inputs.clone());
        found
    }
}

/// The turns of a training.
#[derive(Clone, Debug)]
pub struct Turns {
    pair: Pair,
    /// Updates of the discriminator for each of the generator.
    every: usize,
    /// What the discriminator's weights are clipped to.
    clip: Option<f64>,
    /// The weight of the penalty of gradients.
    penalty: Option<f64>,
    /// Whether the generator's update is next.
    is_generators: bool,
}

impl Turns {
    /// Those of a plan, if its networks train in turn.
    pub fn of(plan: &RunPlan) -> Option<Self> {
        let spec = plan.strategy.adversarial()?;
        let function = &plan.loss.function;
        Some(Self {
            pair: plan.network.pair(spec)?,
            every: spec.discriminator_steps,
            clip: match function {
                LossFunction::Wgan { clip } => Some(*clip),
                _ => None,
            },
            penalty: match function {
                LossFunction::WganGp { gradient_penalty } => Some(*gradient_penalty),
                _ => None,
            },
            is_generators: false,
        })
    }

    /// Whether a step needs another update, the generator's.
    pub fn is_generators(&self) -> bool {
        self.is_generators
    }

    /// What random numbers of layers are drawn for.
    pub fn purpose(&self) -> Purpose {
        if self.is_generators {
            Purpose::GeneratorStep
        } else {
            Purpose::Step
        }
    }

    /// The gradients of the network whose turn it is, and what is measured of it.
    pub fn backward(
        &self,
        network: &Network,
        batch: Batch,
        scores: &Scores,
    ) -> (GradientsParams, Measured) {
        if self.is_generators {
            self.of_generator(network, batch)
        } else {
            self.of_discriminator(network, batch, scores)
        }
    }

    fn of_generator(&self, network: &Network, batch: Batch) -> (GradientsParams, Measured) {
        let noise = batch.noise.and_then(|noise| noise.generator);
        let noise = noise.expect("a batch of a training has noise");
        let condition = condition(&self.pair, batch.condition.as_ref(), noise.dtype());
        let condition = condition.as_ref();
        let made = network.made(&self.pair, noise, condition);
        let scores = network.judged(&self.pair, made, condition);
        let losses = network.losses_of_scores(&scores, Side::Fooling);
        let gradients = losses.clone().mean().backward();
        let measured = Measured::of_losses(losses.without_autodiff());
        let of = self.gradients_of(network, gradients, &self.pair.generator);
        (of, measured)
    }

    fn of_discriminator(
        &self,
        network: &Network,
        batch: Batch,
        scores: &Scores,
    ) -> (GradientsParams, Measured) {
        let Batch {
            inputs,
            targets,
            noise,
            condition: known,
            ..
        } = batch;
        let noise = noise.expect("a batch of a training has noise");
        let condition = condition(&self.pair, known.as_ref(), noise.discriminator.dtype());
        let condition = condition.as_ref();
        let made = network.made(&self.pair, noise.discriminator, condition);
        let dims = made.dims();
        // The generator is a constant here.
        let made = made.flatten().detach();
        let between = self.penalty.map(|weight| {
            let shares = noise.shares.expect("a batch of a training has shares");
            let (real, others) = (inputs.clone().flatten().detach(), made.clone());
            let others_share = shares.clone().neg() + 1.0;
            (weight, real * shares + others * others_share)
        });
        let judge = |items: DynTensor| network.judged(&self.pair, items, condition);
        let judge_rows = |rows: Tensor<2>| judge(DynTensor::R2(rows).reshape(&dims));
        let arithmetic = network.arithmetic();
        let penalty = between.map(|(weight, at)| penalty(arithmetic, judge_rows, at, weight));
        let generated = judge_rows(made.clone());
        let real = judge(inputs);
        let plain = network.opposed_losses(&real, &generated);
        let (minimized, losses) = match penalty {
            None => (plain.clone(), plain.without_autodiff()),
            Some(Penalty { values, slopes }) => {
                (plain.clone() + slopes, plain.without_autodiff() + values)
            }
        };
        let gradients = minimized.mean().backward();
        let output = Output {
            losses,
            outputs: made.without_autodiff(),
            targets: targets.without_autodiff(),
            padding: None,
            terms: Vec::new(),
            judged: Some(
                Judged {
                    real,
                    generated,
                    condition: None,
                }
                .without_autodiff(),
            ),
        };
        let of = self.gradients_of(network, gradients, &self.pair.discriminator);
        (of, scores.measure(output, false))
    }

    /// The gradients of some layers' parameters; the others are left out.
    fn gradients_of(
        &self,
        network: &Network,
        mut gradients: Gradients,
        layers: &Range<usize>,
    ) -> GradientsParams {
        let mut trained = Trained::default();
        network.graph().visit_part(layers.clone(), &mut trained);
        GradientsParams::from_params(&mut gradients, network, &trained.0)
    }

    /// What follows the update of the network whose turn it was, which ended `num_steps` steps if it was the
    /// discriminator's. Returns whether the step is over.
    pub fn after_update(&mut self, network: Network, num_steps: usize) -> (Network, bool) {
        if self.is_generators {
            self.is_generators = false;
            return (network, true);
        }
        let network = match self.clip {
            Some(clip) => network.map_graph(|graph| {
                graph.map_part(self.pair.discriminator.clone(), &mut Clip(clip))
            }),
            None => network,
        };
        self.is_generators = num_steps.is_multiple_of(self.every);
        (network, !self.is_generators)
    }
}

/// What a conditional pair generates items for, \[batch, shape\].
fn condition(pair: &Pair, targets: Option<&Targets>, precision: DType) -> Option<DynTensor> {
    let shape = pair.condition.as_ref()?;
    let targets = targets.expect("a batch of a conditional pair has targets");
    Some(targets.as_condition(shape, precision))
}

/// The penalty of gradients, \[batch\] each.
struct Penalty {
    /// Without autodiff.
    values: Tensor<1>,
    /// Numbers with the gradients of these, and other values.
    slopes: Tensor<1>,
}

/// The penalty of the gradients of scores at some points, \[batch, values\].
///
/// Burn has no gradients of gradients. But the derivative of the length of g = dD/dx by the weights is that of the
/// score's slope along u = g / |g|, for a u that stays as it is: d/dw |g| = d/dw (D(x + h u) - D(x - h u)) / 2h, up
/// to O(h^2). So the slope times the derivative of the penalty by |g| has the gradients of the penalty.
fn penalty(
    arithmetic: Arithmetic,
    judge: impl Fn(Tensor<2>) -> Tensor<1>,
    at: Tensor<2>,
    weight: f64,
) -> Penalty {
    let length = |of: Tensor<2>| sum_axis(arithmetic, of.square(), 1).sqrt();
    let at = at.detach().require_grad();
    let gradients = total(arithmetic, judge(at.clone())).backward();
    let slope = at.grad(&gradients).expect("scores depend on the items");
    let lengths = length(slope.clone());
    let step = length(at.clone().without_autodiff()).clamp_min(1.0) * relative_step(slope.dtype());
    let shape = slope.dims();
    let wide = |column: Tensor<2>| column.expand(shape);
    let along = slope / wide(lengths.clone().clamp_min(f64::from(f32::MIN_POSITIVE)));
    let by = as_constant(along * wide(step.clone()), &at);
    let point = as_constant(at.clone().without_autodiff(), &at);
    let difference = judge(point.clone() + by.clone()) - judge(point.clone() - by);
    let beyond = lengths - 1.0;
    let factors = beyond.clone() * (2.0 * weight) / (step * 2.0);
    let factors = as_constant(factors, &point).flatten(0, 1);
    Penalty {
        values: (beyond.square() * weight).flatten(0, 1),
        slopes: difference * factors,
    }
}

/// The relative step of differences: rounding is as bad as the curvature for the third root of the precision.
fn relative_step(precision: DType) -> f64 {
    let epsilon = match precision {
        DType::F64 => f64::EPSILON,
        _ => f64::from(f32::EPSILON),
    };
    libm::cbrt(epsilon)
}

/// A tensor without autodiff as a constant beside one with it.
fn as_constant<const D: usize, const E: usize>(value: Tensor<D>, beside: &Tensor<E>) -> Tensor<D> {
    let constant = value.autodiff();
    match beside.gradient_checkpointing_strategy() {
        Some(strategy) => constant.with_gradient_checkpointing_strategy(strategy),
        None => constant,
    }
}

/// The ids of parameters.
#[derive(Default)]
struct Trained(Vec<ParamId>);

impl ModuleVisitor for Trained {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.push(param.id);
    }
}

/// Limits the size of each trained weight.
struct Clip(f64);

impl ModuleMapper for Clip {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if !param.is_require_grad() {
            return param;
        }
        param.map(|weights| {
            let clipped = weights.clone().without_autodiff().clamp(-self.0, self.0);
            instead_of(&weights, clipped)
        })
    }
}
