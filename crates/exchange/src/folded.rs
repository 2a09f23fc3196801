//! Weights that are computed from other parameters, as the numbers that they are.

use std::borrow::Cow;

use crate::tensors::{NamedTensor, TensorError, Tensors};
use runner_core::check::network::{Layer, Network};
use runner_core::spec::model::parametrization::{Parametrization, Rows};

/// All tensors of a network with the weights that its layers multiply by, and without what these are computed from.
///
/// # Errors
/// If a name comes twice.
pub fn folded<'a>(network: &Network, burn: &'a Tensors) -> Result<Cow<'a, Tensors>, TensorError> {
    let layers = network.layers.iter();
    let parametrized: Vec<&Layer> = layers
        .filter(|layer| !layer.kind.parametrization().is_none() && layer.owns("weight"))
        .collect();
    if parametrized.is_empty() {
        return Ok(Cow::Borrowed(burn));
    }
    let mut all = Tensors::new();
    for tensor in burn {
        let below = |layer: &&&Layer| {
            let path = tensor.name().strip_prefix(layer.name.as_str());
            path.and_then(|path| path.strip_prefix(".weight"))
        };
        let mut layers = parametrized.iter();
        match layers.find_map(|layer| Some((*layer, below(&layer)?))) {
            Some((layer, "")) => all.push(weight(layer, tensor, burn))?,
            Some((_, rest)) if rest.starts_with('.') => {}
            _ => all.push(tensor.clone())?,
        }
    }
    Ok(Cow::Owned(all))
}

/// The weight of a layer, from what is stored of it.
fn weight(layer: &Layer, stored: &NamedTensor, burn: &Tensors) -> NamedTensor {
    let parametrization = layer.kind.parametrization();
    let state = |at: usize| {
        let name = format!("{}.{}", stored.name(), parametrization.state()[at]);
        burn.get(&name)
            .map(NamedTensor::to_f64s)
            .unwrap_or_default()
    };
    let order = parametrization.rows(&layer.kind);
    let shape = stored.shape();
    let [rows, columns] = order.sizes(shape);
    let inner: usize = shape[2..].iter().product();
    // The row and the column of each number.
    let place = |at: usize| match order {
        Rows::First => [at / columns, at % columns],
        Rows::Second | Rows::Exchanged => {
            let (block, rest) = (at / (rows * inner), at % (rows * inner));
            [rest / inner, block * inner + rest % inner]
        }
    };
    let mut values = stored.to_f64s();
    let factors: Vec<f64> = match parametrization {
        Parametrization::WeightNorm => {
            let mut squares = vec![0.0; rows];
            for (at, value) in values.iter().enumerate() {
                squares[place(at)[0]] += value * value;
            }
            let lengths = state(0).into_iter().zip(squares);
            lengths
                .map(|(length, square)| length / square.sqrt())
                .collect()
        }
        _ => {
            let (u, v) = (state(0), state(1));
            let products = values.iter().enumerate().map(|(at, value)| {
                let [row, column] = place(at);
                u[row] * value * v[column]
            });
            vec![1.0 / products.sum::<f64>(); rows]
        }
    };
    for (at, value) in values.iter_mut().enumerate() {
        *value *= factors[place(at)[0]];
    }
    let values: Vec<f32> = values.into_iter().map(|value| value as f32).collect();
    NamedTensor::from_f32s(stored.name(), shape.to_vec(), &values)
}
