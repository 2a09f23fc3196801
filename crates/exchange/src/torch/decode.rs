//! The Python function that converts a network's outputs to probabilities, or to numbers in the units of the data.

use std::fmt::Write;

use runner_core::data::Transforms;
use runner_core::data::encode::{ArrayScaling, InputEncoder, Scaling, TargetEncoder, of};
use runner_core::spec::loss::LossFunction;
use runner_core::spec::task::TaskKind;

/// The function `decode`, whose results are the numbers that `runner predict` writes.
pub fn decode(transforms: &Transforms, task: TaskKind, loss: &LossFunction) -> String {
    let scaling = scalings(transforms, task);
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
            let lines = format!("    outputs = {rate}\n{}", in_units(&scaling));
            ("the expected counts", lines)
        }
        (_, LossFunction::GaussianNll) => (
            "numbers in the units of the targets, and their standard deviations",
            gaussian(&scaling),
        ),
        (TaskKind::Regression, _) => ("numbers in the units of the targets", in_units(&scaling)),
        (TaskKind::Autoencoding, _) => ("items in the units of the data", in_units(&scaling)),
        _ => ("the score of each class", "    return outputs\n".to_owned()),
    };
    format!("def decode(outputs):\n    \"\"\"The network's outputs as {meaning}.\"\"\"\n{lines}")
}

fn softmax(axis: i32) -> String {
    format!("    return outputs.softmax({axis})\n")
}

/// The scaling of each predicted number; a single one if all are equal.
fn scalings(transforms: &Transforms, task: TaskKind) -> Vec<Scaling> {
    let mut all: Vec<Scaling> = match (&transforms.target, &transforms.input) {
        (TargetEncoder::Values { columns, .. }, _) => columns
            .iter()
            .flat_map(|(column, scaling)| {
                let num = transforms
                    .columns
                    .get(*column)
                    .map_or(1, |column| column.len());
                (0..num).map(move |at| of(scaling, at))
            })
            .collect(),
        (
            _,
            InputEncoder::Array {
                shape,
                scaling,
                axis,
                unit,
                ..
            },
        ) if task == TaskKind::Autoencoding => {
            let unit = f64::from(*unit);
            let scaling = ArrayScaling::new(scaling, shape, *axis);
            (0..shape.iter().product())
                .map(|at| {
                    let Scaling { shift, factor } = scaling.at(at);
                    Scaling {
                        shift: shift * unit,
                        factor: factor / unit,
                    }
                })
                .collect()
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

fn in_units(scaling: &[Scaling]) -> String {
    if is_plain(scaling) {
        return "    return outputs.double()\n".to_owned();
    }
    let back = match scaling {
        [_] => "outputs.double() / factor + shift",
        _ => "(outputs.double().flatten(1) / factor + shift).reshape(outputs.shape)",
    };
    format!("{}    return {back}\n", constants(scaling))
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
