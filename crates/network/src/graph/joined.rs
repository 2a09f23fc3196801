//! Norms whose kernel also applies the activation after them: the numbers are in a cache then, and the backward pass
//! computes again what the activation read. Results have the bits of one layer after the other.

use std::ops::Range;

use super::Graph;
use crate::layer::Layer;
use crate::tensor::DynTensor;
use runner_core::check::network::Layer as LayerPlan;
use runner_core::spec::model::activation::Activation;

impl Graph {
    /// Computes some layers in a row from their inputs, one by one; a norm whose own output is not `seen` is computed
    /// with its activation, whose layer then returns what it gets.
    pub(super) fn joined(
        &self,
        layers: Range<usize>,
        is_seen: impl Fn(usize) -> bool,
    ) -> impl FnMut(usize, &Layer, &LayerPlan, Vec<DynTensor>) -> DynTensor {
        let mut is_done = false;
        move |at, layer, plan, mut inputs| {
            if std::mem::take(&mut is_done) {
                return inputs.remove(0);
            }
            let both = self.activations[at].as_ref();
            let both = both.filter(|_| layers.contains(&(at + 1)) && !is_seen(at));
            let output = both.and_then(|activation| with_activation(layer, &inputs[0], activation));
            is_done = output.is_some();
            output.unwrap_or_else(|| layer.forward(plan, inputs))
        }
    }
}

#[cfg(feature = "flex")]
fn with_activation(layer: &Layer, input: &DynTensor, activation: &Activation) -> Option<DynTensor> {
    use crate::fast::{activation, norm};

    let then = Some(activation::of(activation)?);
    macro_rules! of_rank {
        ($($rank:ident)*) => {
            match (input, layer) {
                $(
                    (DynTensor::$rank(x), Layer::BatchNorm(of)) => {
                        norm::batch(of, x, then).map(DynTensor::$rank)
                    }
                    (DynTensor::$rank(x), Layer::GroupNorm(of)) => {
                        norm::group(of, x, then).map(DynTensor::$rank)
                    }
                    (DynTensor::$rank(x), Layer::InstanceNorm(of)) => {
                        norm::instance(of, x, then).map(DynTensor::$rank)
                    }
                )*
                _ => None,
            }
        };
    }
    of_rank!(R2 R3 R4 R5)
}

#[cfg(not(feature = "flex"))]
fn with_activation(_: &Layer, _: &DynTensor, _: &Activation) -> Option<DynTensor> {
    None
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::module::Module;
    use burn::optim::GradientsParams;
    use burn::tensor::{Device, TensorData};

    use super::*;
    use crate::leaves;
    use crate::testing::{generator, planned};

    /// Among them a norm whose output another layer uses as well, a frozen one, and an activation of pairs of numbers.
    const LAYERS: &str = r#"
data.type = "digits"
optimizer = { type = "adam", learning_rate = 1e-3 }
train = { epochs = 1, batch_size = 8 }
[model]
layers = [
    { type = "conv2d", out_channels = 6, kernel_size = 3 },
    { type = "batch_norm" },
    { type = "relu" },
    { type = "conv2d", out_channels = 6, kernel_size = 3 },
    { type = "batch_norm", name = "used" },
    { type = "gelu", name = "once" },
    { type = "add", inputs = ["once", "used"] },
    { type = "group_norm", num_groups = 2 },
    { type = "silu" },
    { type = "instance_norm" },
    { type = "relu6" },
    { type = "batch_norm" },
    { type = "glu" },
    { type = "batch_norm", freeze = true },
    { type = "tanh" },
    { type = "flatten" },
    { type = "linear", out_features = 20 },
    { type = "batch_norm" },
    { type = "leaky_relu" },
    { type = "linear" },
]
"#;

    #[test]
    fn norms_with_their_activations_have_the_bits_of_both_layers() {
        let _generator = generator();
        let network = planned(LAYERS).network;
        for device in [
            Device::flex().autodiff(),
            Device::flex().autodiff().gradient_checkpointing(),
            Device::flex(),
        ] {
            let values = (0..8 * 64).map(|at| (at as f32 * 0.7 + 0.3).sin());
            let values: Vec<f32> = values.collect();
            let first = Graph::new(&network, Default::default(), &device);
            let record = first.clone().into_record();
            let computed = |is_seen: bool| {
                let graph = Graph::new(&network, Default::default(), &device);
                let graph = graph.load_record(record.clone());
                let items = DynTensor::from_values(values.clone(), &[8, 1, 8, 8], &device);
                let output = if is_seen {
                    graph.outputs(items, |_, _| {})
                } else {
                    graph.forward(items)
                };
                let output = output.flatten();
                let mut found = vec![output.to_data()];
                if device.is_autodiff() {
                    let of_outputs = (0..output.shape().num_elements()).map(|at| (at as f32).cos());
                    let of_outputs = TensorData::new(of_outputs.collect(), output.dims());
                    let of_outputs = burn::tensor::Tensor::from_data(of_outputs, &device);
                    let gradients = (output * of_outputs).sum().backward();
                    let gradients = GradientsParams::from_grads(gradients, &graph);
                    leaves::each(&graph, |leaf| {
                        found.extend(leaf.gradient(&gradients));
                        found.push(leaf.values());
                    });
                }
                let bits = |data: &TensorData| data.iter::<f32>().map(f32::to_bits).collect();
                found.iter().map(bits).collect::<Vec<Vec<u32>>>()
            };
            let (joined, apart) = (computed(false), computed(true));
            assert!(joined.len() == 1 || joined.len() > 30);
            assert!(joined == apart);
        }
        let graph = Graph::new(&network, Default::default(), &Device::flex());
        let joined = graph.activations.iter().map(|of| u8::from(of.is_some()));
        let joined: Vec<u8> = joined.collect();
        assert_eq!(
            joined,
            [0, 1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]
        );
    }
}
