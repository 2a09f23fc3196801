//! The loss of each item. A step minimizes their mean, so that items have equal weight in batches of any size, and
//! pieces of a batch can be combined.

use burn::nn::loss::{
    GaussianNLLLossConfig, HuberLossConfig, LpLossConfig, MultiMarginLossConfig,
    SmoothL1LossConfig, SoftMarginLoss,
};
use burn::tensor::{DType, Device, Int, Tensor, TensorData};

use crate::numeric::{
    divided, exp, log, log_sigmoid, log_softmax, mean_axis, softmax, softplus, sum_axis,
};
use crate::own::{self, LossTargets};
use crate::targets::Targets;
use runner_core::spec::backend::{Arithmetic, Kernels};
use runner_core::spec::loss::{LossFunction, LossSpec, Reduction};

/// The smallest variance of a Gaussian, as in PyTorch.
const SMALLEST_VARIANCE: f64 = 1e-6;

/// The loss of each item, \[batch\]. For classes, `outputs` is \[batch * positions, classes\]; for values and labels
/// \[batch, values\], or twice as many for a loss with a variance.
pub fn item_losses(
    spec: &LossSpec,
    computed: (Kernels, Arithmetic),
    outputs: Tensor<2>,
    targets: &Targets,
) -> Tensor<1> {
    match targets {
        Targets::Classes(classes) => of_classes(spec, computed, outputs, classes),
        Targets::Values(values) => {
            let losses = of_values(&spec.function, computed.1, outputs, values.clone());
            reduced(losses, spec.reduction, computed.1).squeeze_dim(1)
        }
    }
}

/// The penalty of each item, \[batch\], on an output \[batch, positions, values\].
pub fn item_penalties(spec: &LossSpec, arithmetic: Arithmetic, output: Tensor<3>) -> Tensor<1> {
    let each = match &spec.function {
        LossFunction::L1 => output.abs(),
        LossFunction::L2 => output.square(),
        LossFunction::KlNormal => {
            let half = output.dims()[2] / 2;
            let means = output.clone().narrow(2, 0, half);
            let logs = output.narrow(2, half, half);
            let variances = exp(arithmetic, logs.clone());
            (means.square() + variances - logs - 1.0) * 0.5
        }
        other => panic!("{other:?} was planned for an output without a target"),
    };
    let [batch, positions, values] = each.dims();
    let each = each.reshape([batch, positions * values]);
    reduced(each, spec.reduction, arithmetic).squeeze_dim(1)
}

/// \[batch, elements\] to \[batch, 1\].
fn reduced(losses: Tensor<2>, reduction: Reduction, arithmetic: Arithmetic) -> Tensor<2> {
    match reduction {
        Reduction::Mean => mean_axis(arithmetic, losses, 1),
        Reduction::Sum => sum_axis(arithmetic, losses, 1),
    }
}

fn of_classes(
    spec: &LossSpec,
    (kernels, arithmetic): (Kernels, Arithmetic),
    outputs: Tensor<2>,
    classes: &Tensor<2, Int>,
) -> Tensor<1> {
    let [batch, positions] = classes.dims();
    let [_, num_classes] = outputs.dims();
    let flat = classes.clone().reshape([batch * positions]);
    // An ignored position is computed as class 0 with weight 0.
    let counted = flat.clone().greater_equal_scalar(0).float();
    let flat = flat.clamp_min(0);
    let mut losses = match &spec.function {
        LossFunction::MultiMargin { margin, p } => MultiMarginLossConfig::new()
            .with_margin(*margin)
            .with_p(*p as i32)
            .init()
            .forward_no_reduction(outputs, flat.clone()),
        LossFunction::Mse => {
            let wanted: Tensor<2> = flat.clone().one_hot(num_classes).float();
            let squares = (outputs - wanted).square();
            mean_axis(arithmetic, squares, 1).squeeze_dim(1)
        }
        LossFunction::CrossEntropy {
            label_smoothing,
            focal_gamma,
            ..
        } => {
            let entropies = |smoothing| cross_entropies(kernels, outputs.clone(), &flat, smoothing);
            let losses = entropies(*label_smoothing);
            if *focal_gamma > 0.0 {
                losses * focus(entropies(0.0), *focal_gamma, arithmetic)
            } else {
                losses
            }
        }
        LossFunction::Dice {
            smoothing,
            cross_entropy_weight,
        } => {
            let counted = counted.reshape([batch, positions]);
            let overlap = dice_losses(outputs.clone(), &flat, &counted, *smoothing, arithmetic);
            if *cross_entropy_weight == 0.0 {
                return overlap;
            }
            let entropies = cross_entropies(kernels, outputs, &flat, 0.0);
            let entropies = entropies.reshape([batch, positions]) * counted.clone();
            let num = sum_axis(arithmetic, counted, 1).clamp_min(1.0);
            let mean = sum_axis(arithmetic, entropies, 1) / num;
            return overlap + mean.squeeze_dim(1) * *cross_entropy_weight;
        }
        LossFunction::Own { used, .. } => {
            let classes = LossTargets::Classes(flat.clone());
            own::losses(used, outputs, classes).squeeze_dim(1)
        }
        other => panic!("{other:?} was planned for classes"),
    };
    if let LossFunction::CrossEntropy { class_weights, .. } = &spec.function
        && !class_weights.is_empty()
    {
        losses = losses * weights(class_weights, &flat.device()).gather(0, flat);
    }
    of_positions(
        losses,
        counted,
        [batch, positions],
        spec.reduction,
        arithmetic,
    )
}

/// The loss of each item, \[batch\], from that of each of its positions; `counted` is 0 for those that are ignored.
fn of_positions(
    losses: Tensor<1>,
    counted: Tensor<1>,
    shape: [usize; 2],
    reduction: Reduction,
    arithmetic: Arithmetic,
) -> Tensor<1> {
    if shape[1] == 1 {
        return losses * counted;
    }
    let losses = (losses * counted.clone()).reshape(shape);
    let sums = sum_axis(arithmetic, losses, 1);
    let items = match reduction {
        Reduction::Sum => sums,
        // An item whose positions are all ignored has no loss.
        Reduction::Mean => {
            let counted = counted.reshape(shape);
            sums / sum_axis(arithmetic, counted, 1).clamp_min(1.0)
        }
    };
    items.squeeze_dim(1)
}

/// How far the outputs for each item, \[batch\], are from those of a teacher, in the forms that [`item_losses`] takes:
/// for classes and labels the Kullback-Leibler divergence of the probabilities at a temperature, times its square; for
/// values the squared error.
pub fn item_distances(
    spec: &LossSpec,
    arithmetic: Arithmetic,
    temperature: Option<f64>,
    [outputs, wanted]: [Tensor<2>; 2],
    targets: &Targets,
) -> Tensor<1> {
    let elements = |each: Tensor<2>| reduced(each, spec.reduction, arithmetic).squeeze_dim(1);
    let Some(temperature) = temperature else {
        return elements((outputs - wanted).square());
    };
    // The gradient of the divergence shrinks with the square of the temperature.
    let factor = temperature * temperature;
    // Not a division, whose gradient has a factor of 32 bits in Burn.
    let [outputs, wanted] = [outputs, wanted].map(|logits| logits * (1.0 / temperature));
    match targets {
        Targets::Classes(classes) => {
            let shape = classes.dims();
            let counted = classes.clone().reshape([shape[0] * shape[1]]);
            let counted = counted.greater_equal_scalar(0).float();
            let [ours, theirs] = [outputs, wanted].map(|logits| log_softmax(arithmetic, logits));
            let each = exp(arithmetic, theirs.clone()) * (theirs - ours);
            let each = sum_axis(arithmetic, each, 1).squeeze_dim::<1>(1) * factor;
            let counted = counted.cast(each.dtype());
            of_positions(each, counted, shape, spec.reduction, arithmetic)
        }
        Targets::Values(_) => {
            let divergence = |ours: Tensor<2>, theirs: Tensor<2>| {
                let theirs = log_sigmoid(arithmetic, theirs);
                exp(arithmetic, theirs.clone()) * (theirs - log_sigmoid(arithmetic, ours))
            };
            let yes = divergence(outputs.clone(), wanted.clone());
            let no = divergence(outputs.neg(), wanted.neg());
            elements((yes + no) * factor)
        }
    }
}

/// The factor of the focal loss: (1 - p)^gamma, where `entropies` are -ln p.
fn focus<const D: usize>(entropies: Tensor<D>, gamma: f64, arithmetic: Arithmetic) -> Tensor<D> {
    // The power has no finite gradient at 0.
    let right = exp(arithmetic, entropies.neg());
    let missing = right.neg().add_scalar(1.0).clamp_min(1e-7);
    if arithmetic.is_portable() {
        return exp(arithmetic, log(arithmetic, missing) * gamma);
    }
    missing.powf_scalar(gamma)
}

/// 1 - the Dice coefficient of each item, averaged over the classes, \[batch\]. `outputs` is \[batch * positions,
/// classes\] and `counted` \[batch, positions\]: 0 for positions that are ignored.
fn dice_losses(
    outputs: Tensor<2>,
    classes: &Tensor<1, Int>,
    counted: &Tensor<2>,
    smoothing: f64,
    arithmetic: Arithmetic,
) -> Tensor<1> {
    let [batch, positions] = counted.dims();
    let [_, num_classes] = outputs.dims();
    let shape = [batch, positions, num_classes];
    let counted = counted.clone().unsqueeze_dim::<3>(2);
    let found = softmax(arithmetic, outputs).reshape(shape) * counted.clone();
    let wanted: Tensor<2> = classes.clone().one_hot(num_classes).float();
    let wanted = wanted.cast(found.dtype()).reshape(shape) * counted;
    let sum = |each: Tensor<3>| sum_axis(arithmetic, each, 1).squeeze_dim::<2>(1);
    let both = sum(found.clone() * wanted.clone());
    let all = sum(found) + sum(wanted);
    let dice = (both * 2.0 + smoothing) / (all + smoothing);
    mean_axis(arithmetic, dice.neg() + 1.0, 1).squeeze_dim(1)
}

/// The cross-entropy of each row, by runner's kernel if supported.
pub(crate) fn cross_entropies(
    kernels: Kernels,
    outputs: Tensor<2>,
    classes: &Tensor<1, Int>,
    smoothing: f64,
) -> Tensor<1> {
    #[cfg(feature = "flex")]
    if kernels.is_fast()
        && let Some(losses) = crate::fast::entropy::losses(&outputs, classes, smoothing)
    {
        return losses;
    }
    let _ = kernels;
    let logs = burn::tensor::activation::log_softmax(outputs, 1);
    let right = logs.clone().gather(1, classes.clone().unsqueeze_dim(1));
    let right = right.squeeze_dim::<1>(1).neg();
    if smoothing > 0.0 {
        let even = logs.mean_dim(1).squeeze_dim::<1>(1).neg();
        right * (1.0 - smoothing) + even * smoothing
    } else {
        right
    }
}

fn weights(values: &[f64], device: &Device) -> Tensor<1> {
    let data = TensorData::new(values.to_vec(), [values.len()]);
    Tensor::from_data(data, device)
}

fn of_values(
    function: &LossFunction,
    arithmetic: Arithmetic,
    outputs: Tensor<2>,
    targets: Tensor<2>,
) -> Tensor<2> {
    let [_, num_values] = targets.dims();
    let is_double = outputs.dtype() == DType::F64;
    match function {
        LossFunction::Mse => (outputs - targets).square(),
        LossFunction::Mae => (outputs - targets).abs(),
        LossFunction::Quantile { quantile } => {
            let errors = targets - outputs;
            // Below the prediction, the error is negative.
            errors.clone().clamp_min(0.0) * *quantile - errors.clamp_max(0.0) * (1.0 - quantile)
        }
        LossFunction::Lp { p } => {
            let loss = LpLossConfig::new(*p).init();
            loss.forward_no_reduction(outputs, targets)
        }
        // Burn's modules have settings of 32 bits.
        LossFunction::Huber { delta } if arithmetic.is_portable() || is_double => {
            huber((outputs - targets).abs(), *delta)
        }
        LossFunction::SmoothL1 { beta } if arithmetic.is_portable() || is_double => {
            divided(huber((outputs - targets).abs(), *beta), *beta)
        }
        LossFunction::Huber { delta } => {
            let loss = HuberLossConfig::new(*delta as f32).init();
            loss.forward_no_reduction(outputs, targets)
        }
        LossFunction::SmoothL1 { beta } => {
            let loss = SmoothL1LossConfig::new().with_beta(*beta as f32).init();
            loss.forward(outputs, targets)
        }
        // Burn's version reads targets from the device to refuse negative ones, which the planner did.
        LossFunction::PoissonNll { log_input, full } => {
            let losses = match log_input {
                true => exp(arithmetic, outputs.clone()) - targets.clone() * outputs,
                false => {
                    // A rate cannot be negative, whatever the network outputs.
                    let rates = softplus(arithmetic, outputs);
                    rates.clone() - targets.clone() * log(arithmetic, rates + 1e-8)
                }
            };
            match full {
                true => losses + stirling(targets, arithmetic),
                false => losses,
            }
        }
        LossFunction::GaussianNll => {
            let means = outputs.clone().narrow(1, 0, num_values);
            let variances = outputs.narrow(1, num_values, num_values);
            let variances = softplus(arithmetic, variances);
            // Its value is at least this, and its gradient that of the variance, as in PyTorch: otherwise a variance that
            // fell below could not rise again.
            let raised = variances.clone().clamp_min(SMALLEST_VARIANCE) - variances.clone();
            let variances = variances + raised.detach();
            if arithmetic.is_portable() {
                // Burn's formula.
                let squares = (means - targets).square();
                return (log(arithmetic, variances.clone()) + squares / variances) * 0.5;
            }
            let loss = GaussianNLLLossConfig::new()
                .with_eps(0.5 * SMALLEST_VARIANCE)
                .init();
            loss.forward_no_reduction(means, targets, variances)
        }
        LossFunction::SoftMargin => {
            let signs = targets * 2.0 - 1.0;
            if arithmetic.is_portable() {
                return log_sigmoid(arithmetic, signs * outputs).neg();
            }
            SoftMarginLoss::new().forward_no_reduction(outputs, signs)
        }
        LossFunction::BinaryCrossEntropy {
            label_smoothing,
            label_weights,
            focal_gamma,
        } => {
            let labels = targets.clone();
            let targets = if *label_smoothing > 0.0 {
                targets * (1.0 - label_smoothing) + label_smoothing / num_values as f64
            } else {
                targets
            };
            let entropies = |targets: Tensor<2>| {
                let right = targets.clone() * log_sigmoid(arithmetic, outputs.clone());
                let wrong = (targets.neg() + 1.0) * log_sigmoid(arithmetic, outputs.clone().neg());
                (right + wrong).neg()
            };
            let mut losses = entropies(targets);
            if *focal_gamma > 0.0 {
                losses = losses * focus(entropies(labels), *focal_gamma, arithmetic);
            }
            if label_weights.is_empty() {
                losses
            } else {
                let weights = weights(label_weights, &losses.device());
                losses * weights.unsqueeze::<2>()
            }
        }
        LossFunction::Own { used, .. } => own::losses(used, outputs, LossTargets::Values(targets)),
        other => panic!("{other:?} was planned for values"),
    }
}

/// Half the square of an error up to `delta`, and linear beyond.
fn huber(errors: Tensor<2>, delta: f64) -> Tensor<2> {
    let near = errors.clone().clamp_max(delta);
    near.clone().square() * 0.5 + (errors - near) * delta
}

/// Stirling's approximation of the logarithm of a factorial, for counts above 1.
fn stirling(counts: Tensor<2>, arithmetic: Arithmetic) -> Tensor<2> {
    let above = counts.clone().greater_scalar(1.0).float();
    let counts = counts.clamp_min(1.0);
    let roots = log(arithmetic, counts.clone() * std::f64::consts::TAU) * 0.5;
    (counts.clone() * log(arithmetic, counts.clone()) - counts + roots) * above
}

#[cfg(all(test, feature = "flex"))]
mod tests;
