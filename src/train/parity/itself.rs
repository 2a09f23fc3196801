//! An isolated layer: the same inputs, weights and output gradient on several devices.

use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};

use super::host;
use super::lane::Manner;
use runner_core::check::network::Layer as LayerPlan;
use runner_core::parity::{Compared, Error, Of};
use runner_core::spec::backend::Precision;
use runner_network::layer::Layer;
use runner_network::tensor::DynTensor;

/// The inputs of a layer.
pub struct Given {
    /// Its inputs.
    pub inputs: Vec<TensorData>,
    /// The gradient of the loss with respect to its output.
    pub gradient: TensorData,
}

/// Its results, each with its kind and part.
pub type Answers = Vec<(Of, Option<String>, TensorData)>;

/// The output of a layer in a step, counted from 1, and the gradients of its inputs and parameters.
pub fn answers(
    layer: &Layer,
    plan: &LayerPlan,
    given: &Given,
    device: &Device,
    manner: &mut Manner,
    step: usize,
) -> Answers {
    let order = manner.order(given.gradient.shape()[0]);
    let put = |data: &TensorData| DynTensor::from_data(order.apply(data), device);
    let inputs: Vec<DynTensor> = given.inputs.iter().map(|i| host::tracked(put(i))).collect();
    let output = manner.forward(step, layer, plan, inputs.clone());
    let weighted = output.clone().flatten() * put(&given.gradient).flatten();
    let sum: Tensor<1> = weighted.sum();
    // Nothing is read between the passes, as in training: reading makes a device compute pending work in different
    // pieces.
    let gradients = sum.is_tracked().then(|| sum.backward());
    let mut answers: Answers = vec![(Of::Output, None, order.undo(host::get(output)))];
    let Some(gradients) = gradients else {
        // Tokens into frozen weights.
        return answers;
    };
    for (at, input) in inputs.iter().enumerate() {
        if let Some(gradient) = host::gradient(input, &gradients) {
            let part = Some((at + 1).to_string());
            answers.push((Of::InputGradient, part, order.undo(gradient)));
        }
    }
    let gradients = GradientsParams::from_grads(gradients, layer);
    for (path, gradient) in host::parameter_gradients(layer, &gradients) {
        // Below the variant's name.
        let path = path.split_once('.').map_or(path.as_str(), |(_, path)| path);
        answers.push((Of::ParameterGradient, Some(path.to_owned()), gradient));
    }
    answers
}

/// Compares results with the reference's; `noises` are those of the reference with other rounding.
pub fn compared(
    name: &str,
    kind: &str,
    reference: &Answers,
    device: &Answers,
    noises: &[Answers],
    precision: Precision,
) -> Vec<Compared> {
    let of = |answers: &Answers, (of, part, right): &(Of, Option<String>, TensorData)| -> Error {
        let found = answers.iter().find(|(o, p, _)| o == of && p == part);
        match found {
            Some((_, _, answer)) => host::error(right, answer, precision),
            None => host::error(right, &TensorData::new(Vec::<f32>::new(), [0]), precision),
        }
    };
    let each = reference.iter().map(|right| Compared {
        layer: name.to_owned(),
        kind: kind.to_owned(),
        of: right.0,
        part: right.1.clone(),
        by_itself: true,
        error: of(device, right),
        floor: largest(noises.iter().map(|noise| of(noise, right).ulps)),
    });
    each.collect()
}

/// The largest of some errors.
pub fn largest(errors: impl Iterator<Item = f64>) -> f64 {
    errors.fold(0.0, f64::max)
}
