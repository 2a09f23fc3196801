//! Recurrent networks.

use super::super::{Attribute, OnnxError};
use super::Scope;
use super::masks::Gathered;
use crate::tensors::NamedTensor;
use runner_core::spec::model::layer::{Cell, Recurrent, Steps};

/// A recurrent network with the outputs of all steps, or of the last one in each direction.
pub fn recurrent(
    scope: &mut Scope<'_>,
    recurrent: &Recurrent,
    x: &str,
    mask: Option<&str>,
) -> Result<String, OnnxError> {
    let (operator, gates): (&str, &[&str]) = match recurrent.cell {
        Cell::Rnn => ("RNN", &["gate"]),
        Cell::Gru => ("GRU", &["update_gate", "reset_gate", "new_gate"]),
        Cell::Lstm => (
            "LSTM",
            &["input_gate", "output_gate", "forget_gate", "cell_gate"],
        ),
    };
    let input = matrices(scope, recurrent, gates, "input_transform")?;
    let hidden = matrices(scope, recurrent, gates, "hidden_transform")?;
    let mut direction = vec![
        Attribute::Int("hidden_size", recurrent.hidden_size as i64),
        Attribute::Text(
            "direction",
            if recurrent.bidirectional {
                "bidirectional"
            } else {
                "forward"
            },
        ),
    ];
    if recurrent.cell == Cell::Gru {
        direction.push(Attribute::Int("linear_before_reset", 1));
    }
    let bias = if recurrent.bias {
        Some(biases(scope, recurrent, gates)?)
    } else {
        None
    };
    let (length, shape) = (scope.dims()[0], scope.layer.shape.clone());
    let graph = &mut *scope.graph;
    let real = mask.map(|mask| Gathered::new(graph, mask, length));
    let x = match &real {
        Some(real) => real.first(graph, x),
        None => x.to_owned(),
    };
    let steps_first = graph.transpose(&x, &[1, 0, 2]);
    let mut inputs = vec![&*steps_first, &input, &hidden];
    inputs.push(bias.as_deref().unwrap_or_default());
    match &real {
        Some(real) => inputs.push(&real.lengths),
        None if bias.is_none() => drop(inputs.pop()),
        None => {}
    }
    Ok(match recurrent.output {
        Steps::Sequence => {
            // [length, directions, batch, hidden]
            let [all] = graph.nodes(operator, &inputs, [true], &direction);
            let all = graph.transpose(&all, &[2, 0, 1, 3]);
            let all = graph.reshape(&all, &shape);
            match &real {
                Some(real) => real.back(graph, &all),
                None => all,
            }
        }
        Steps::Last => {
            // [directions, batch, hidden]
            let [_, last] = graph.nodes(operator, &inputs, [false, true], &direction);
            let last = graph.transpose(&last, &[1, 0, 2]);
            let last = graph.reshape(&last, &shape);
            match &real {
                Some(real) => graph.node("Mul", &[&last, &real.is_any], &[]),
                None => last,
            }
        }
    })
}

fn directions(recurrent: &Recurrent) -> &'static [&'static str] {
    if recurrent.bidirectional {
        &["forward.", "reverse."]
    } else {
        &[""]
    }
}

/// The matrices of all gates, \[directions, gates * hidden, inputs\].
fn matrices(
    scope: &mut Scope<'_>,
    recurrent: &Recurrent,
    gates: &[&str],
    transform: &str,
) -> Result<String, OnnxError> {
    let mut parts = Vec::new();
    for direction in directions(recurrent) {
        for gate in gates {
            let path = format!("{direction}{gate}.{transform}.weight");
            parts.push(scope.tensor(&path)?.transposed());
        }
    }
    let name = format!("{}.{transform}", scope.module);
    let num = directions(recurrent).len();
    let width = parts[0].shape()[1];
    let rows = gates.len() * recurrent.hidden_size;
    let stacked = NamedTensor::stacked("", &parts);
    let stacked = NamedTensor::from_f32s(name, vec![num, rows, width], &stacked.to_f32s());
    Ok(scope.graph.constant(stacked))
}

/// The biases of all gates for inputs, then for the state, \[directions, 2 * gates * hidden\].
fn biases(
    scope: &mut Scope<'_>,
    recurrent: &Recurrent,
    gates: &[&str],
) -> Result<String, OnnxError> {
    let mut values = Vec::new();
    for direction in directions(recurrent) {
        for transform in ["input_transform", "hidden_transform"] {
            for gate in gates {
                let path = format!("{direction}{gate}.{transform}.bias");
                values.extend(scope.tensor(&path)?.to_f32s());
            }
        }
    }
    let num = directions(recurrent).len();
    let shape = vec![num, values.len() / num];
    let name = format!("{}.bias", scope.module);
    Ok(scope
        .graph
        .constant(NamedTensor::from_f32s(name, shape, &values)))
}
