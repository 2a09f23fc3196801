//! The Python function that converts a network's outputs to probabilities, or to numbers in the units of the data.

use std::fmt::Write;

use runner_core::data::Transforms;
use runner_core::data::encode::{END_AGAIN, Nonlinear, Scaling, TargetEncoder};
use runner_core::spec::loss::LossFunction;
use runner_core::spec::task::TaskKind;

/// The function `decode`, whose results are the numbers that `runner predict` writes.
pub fn decode(transforms: &Transforms, task: TaskKind, loss: &LossFunction) -> String {
    let scaling = scalings(transforms, task);
    let nonlinear = match &transforms.target {
        TargetEncoder::Values { nonlinear, .. } => nonlinear.as_slice(),
        _ => &[],
    };
    let (meaning, lines) = match (task, loss) {
        (TaskKind::Classification, loss) if loss.is_of_softmax() => {
            ("the probability of each class", softmax(1))
        }
        (TaskKind::Segmentation, loss) if loss.is_of_softmax() => (
            "the probability of each class for each pixel: [items, classes, height, width]",
            softmax(1),
        ),
        (TaskKind::NextToken | TaskKind::MaskedToken, loss) if loss.is_of_softmax() => (
            "the probability of each token at each position: [items, positions, tokens]",
            softmax(-1),
        ),
        (TaskKind::MultiLabel, loss) if loss.gives_probabilities() => (
            "the probability of each label",
            "    return outputs.sigmoid()\n".to_owned(),
        ),
        (_, LossFunction::PoissonNll { log_input, .. }) => {
            let rate = if *log_input {
                "outputs.double().exp()"
            } else {
                "F.softplus(outputs.double())"
            };
            let lines = format!("    outputs = {rate}\n{}", in_units(&scaling, &[]));
            ("the expected counts", lines)
        }
        (_, LossFunction::GaussianNll) => (
            "numbers in the units of the targets, and their standard deviations",
            gaussian(&scaling),
        ),
        (TaskKind::Regression, _) => (
            "numbers in the units of the targets",
            in_units(&scaling, nonlinear),
        ),
        (TaskKind::Autoencoding | TaskKind::Generation, _) => {
            ("items in the units of the data", in_units(&scaling, &[]))
        }
        _ => ("the score of each class", "    return outputs\n".to_owned()),
    };
    format!("def decode(outputs):\n    \"\"\"The network's outputs as {meaning}.\"\"\"\n{lines}")
}

fn softmax(axis: i32) -> String {
    format!("    return outputs.softmax({axis})\n")
}

/// The scaling of each predicted number; a single one if all are equal.
fn scalings(transforms: &Transforms, task: TaskKind) -> Vec<Scaling> {
    let mut all: Vec<Scaling> = match &transforms.target {
        // Whatever the labels of the data are.
        _ if matches!(task, TaskKind::Autoencoding | TaskKind::Generation) => {
            let num = transforms.input.plan().shape.iter().product();
            transforms.input.scalings(num).unwrap_or_default()
        }
        target @ TargetEncoder::Values { .. } => {
            let units = target.units(&transforms.columns).into_iter();
            units.map(|unit| unit.scaling).collect()
        }
        _ => Vec::new(),
    };
    if all.windows(2).all(|pair| pair[0] == pair[1]) {
        all.truncate(1);
    }
    all
}

/// Whether numbers are already in the units of the data.
fn is_plain(scaling: &[Scaling]) -> bool {
    scaling
        .iter()
        .all(|one| one.shift == 0.0 && one.factor == 1.0)
}

/// Assigns `shift` and `factor`. A number that was constant in training is predicted as that constant.
fn constants(scaling: &[Scaling]) -> String {
    let mut text = String::new();
    let factor = |one: &Scaling| match one.factor {
        0.0 => "math.inf".to_owned(),
        factor => format!("{factor:?}"),
    };
    if let [one] = scaling {
        let _ = writeln!(text, "    shift, factor = {:?}, {}", one.shift, factor(one));
        return text;
    }
    let shifts: Vec<String> = scaling
        .iter()
        .map(|one| format!("{:?}", one.shift))
        .collect();
    let factors: Vec<String> = scaling.iter().map(factor).collect();
    for (name, numbers) in [("shift", shifts), ("factor", factors)] {
        let numbers = numbers.join(", ");
        let _ = writeln!(
            text,
            "    {name} = torch.tensor([{numbers}], dtype=torch.float64)"
        );
    }
    text
}

fn in_units(scaling: &[Scaling], nonlinear: &[Nonlinear]) -> String {
    let (lines, back) = match scaling {
        _ if is_plain(scaling) => (String::new(), "outputs.double()"),
        [_] => (constants(scaling), "outputs.double() / factor + shift"),
        _ => (
            constants(scaling),
            "(outputs.double().flatten(1) / factor + shift).reshape(outputs.shape)",
        ),
    };
    match nonlinear.first() {
        None => format!("{lines}    return {back}\n"),
        Some(Nonlinear::Log) => format!("{lines}    return ({back}).exp()\n"),
        Some(Nonlinear::Log1p) => format!("{lines}    return ({back}).expm1()\n"),
        Some(Nonlinear::Quantile { .. }) => {
            let each = nonlinear.iter().map(|one| match one {
                Nonlinear::Quantile { quantiles } => format!("{quantiles:?}"),
                Nonlinear::Log | Nonlinear::Log1p => String::new(),
            });
            let tables: Vec<String> = each.collect();
            let tables = tables.join(", ");
            format!(
                "{lines}    quantiles = torch.tensor([{tables}], dtype=torch.float64)\n\
                 \x20   share = torch.special.ndtr({back}).flatten(1)\n\
                 \x20   share = torch.where(share < {END_AGAIN}, 0.0, torch.where(share > 1 - {END_AGAIN}, 1.0, share))\n\
                 \x20   place = share * (quantiles.shape[1] - 1)\n\
                 \x20   below = place.long().clamp(max=quantiles.shape[1] - 2)\n\
                 \x20   low, high = (quantiles.T.gather(0, at) for at in (below, below + 1))\n\
                 \x20   return (low + (high - low) * (place - below)).reshape(outputs.shape)\n"
            )
        }
    }
}

/// The first half of the outputs are means; softplus converts the second half to variances.
fn gaussian(scaling: &[Scaling]) -> String {
    let split = "    means, variances = outputs.double().flatten(1).chunk(2, 1)\n    deviations = F.softplus(variances).sqrt()\n";
    if is_plain(scaling) {
        return format!("{split}    return means, deviations\n");
    }
    let factor = match scaling {
        [_] => "abs(factor)",
        _ => "factor.abs()",
    };
    format!(
        "{split}{}    return means / factor + shift, deviations / {factor}\n",
        constants(scaling)
    )
}
