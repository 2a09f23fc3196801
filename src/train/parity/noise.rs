//! The reference with the rounding of a different summation order.
//!
//! Inputs, weights and outputs of each layer are randomly perturbed by about one unit in the last place (Parker, Monte
//! Carlo Arithmetic, UCLA CSD-970002, 1997), and input features or channels of a matrix product or convolution are
//! permuted together with the weights, so that the same terms are summed in a different order. The caller permutes the
//! items of a batch.

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::host::Order;
use runner_core::check::network::Layer as LayerPlan;
use runner_core::data::order::{Purpose, stream_seed};
use runner_core::spec::backend::Precision;
use runner_network::layer::Layer;
use runner_network::tensor::{DynTensor, map_rank};

/// A source of perturbations, all of them functions of its seed.
pub struct Noise {
    rng: ChaCha8Rng,
    /// The distance from 1 to the next number.
    epsilon: f64,
}

impl Noise {
    /// The noise of a number.
    pub fn new(number: u64, precision: Precision) -> Self {
        Self {
            rng: ChaCha8Rng::seed_from_u64(stream_seed(number, Purpose::Rounding, 0)),
            epsilon: f64::powi(2.0, -precision.mantissa_bits()),
        }
    }

    /// Another order of the items of a batch.
    pub fn order(&mut self, num: usize) -> Order {
        Order::new(self.places(num))
    }

    fn places(&mut self, num: usize) -> Vec<u32> {
        let mut places: Vec<u32> = (0..num as u32).collect();
        places.shuffle(&mut self.rng);
        places
    }

    /// Each value unchanged, or one unit in the last place up or down. 0 stays.
    fn changed<const D: usize>(&mut self, tensor: Tensor<D>) -> Tensor<D> {
        let shape = tensor.shape();
        let mut factor = || 1.0 + self.epsilon * f64::from(self.rng.random_range(-1_i8..=1));
        let factors: Vec<f64> = (0..shape.num_elements()).map(|_| factor()).collect();
        let factors = Tensor::from_data(TensorData::new(factors, shape), &tensor.device());
        tensor * factors
    }

    /// The same for a tensor of any rank; tokens stay.
    pub fn change(&mut self, tensor: DynTensor) -> DynTensor {
        match tensor {
            DynTensor::Tokens(_) => tensor,
            numbers => map_rank!(numbers, t => self.changed(t)),
        }
    }

    /// The output of a layer.
    pub fn forward(
        &mut self,
        layer: &Layer,
        plan: &LayerPlan,
        inputs: Vec<DynTensor>,
    ) -> DynTensor {
        let inputs = inputs.into_iter();
        let inputs: Vec<DynTensor> = inputs.map(|input| self.change(input)).collect();
        let layer = layer.clone().map(self);
        let (layer, inputs) = self.reordered(layer, inputs);
        let output = layer.forward(plan, inputs);
        self.change(output)
    }

    /// A layer that sums products over its inputs' features or channels, with both permuted.
    fn reordered(
        &mut self,
        mut layer: Layer,
        mut inputs: Vec<DynTensor>,
    ) -> (Layer, Vec<DynTensor>) {
        // Channels stay in their group: all groups are permuted alike.
        macro_rules! conv {
            ($conv:ident, $axis:literal) => {{
                let channels = inputs[0].dims()[1];
                let order = self.places(channels / $conv.groups);
                let of_group = |group: usize| {
                    let first = (group * order.len()) as i64;
                    order.iter().map(move |place| first + i64::from(*place))
                };
                let all: Vec<i64> = (0..$conv.groups).flat_map(of_group).collect();
                let weights = match $axis {
                    0 => all.clone(),
                    _ => of_group(0).collect(),
                };
                $conv.weight = selected(&$conv.weight, $axis, weights);
                Some((1, all))
            }};
        }
        let moved = match &mut layer {
            Layer::Linear(linear) => {
                let [features, _] = linear.weight.val().dims();
                let order = self.places(features).into_iter().map(i64::from);
                let order: Vec<i64> = order.collect();
                linear.weight = selected(&linear.weight, 0, order.clone());
                Some((inputs[0].rank() - 1, order))
            }
            Layer::Conv1d(conv) => conv!(conv, 1),
            Layer::Conv2d(conv) => conv!(conv, 1),
            Layer::Conv3d(conv) => conv!(conv, 1),
            Layer::ConvTranspose1d(conv) => conv!(conv, 0),
            Layer::ConvTranspose2d(conv) => conv!(conv, 0),
            Layer::ConvTranspose3d(conv) => conv!(conv, 0),
            _ => None,
        };
        if let Some((axis, order)) = moved {
            let input = inputs.remove(0);
            let input = map_rank!(input, t => {
                let order = indices(order, &t.device());
                t.select(axis, order)
            });
            inputs.insert(0, input);
        }
        (layer, inputs)
    }
}

fn indices(order: Vec<i64>, device: &Device) -> Tensor<1, Int> {
    let num = order.len();
    Tensor::from_data(TensorData::new(order, [num]), device)
}

/// A permuted parameter. Its gradient goes to the original parameter.
fn selected<const D: usize>(
    param: &Param<Tensor<D>>,
    axis: usize,
    order: Vec<i64>,
) -> Param<Tensor<D>> {
    let value = param.val();
    let order = indices(order, &value.device());
    Param::initialized(param.id, value.select(axis, order))
}

impl ModuleMapper for Noise {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        // Untrained tensors are not rounded operands, and running statistics are shared between clones.
        if !param.is_require_grad() {
            return param;
        }
        let changed = self.changed(param.val());
        Param::initialized(param.id, changed)
    }
}
