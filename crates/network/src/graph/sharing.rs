//! Layers with the weights of others give what copies of them give, and the weights get the sum of their gradients.

use burn::module::{Module, ModuleMapper, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};

use super::Graph;
use crate::leaves;
use crate::tensor::DynTensor;
use crate::testing::generator;
use runner_core::check::network::examples::network;
use runner_core::spec::backend::{Arithmetic, Kernels};

/// Sets the parameters in order.
struct Set(std::vec::IntoIter<Vec<f32>>);

impl ModuleMapper for Set {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let dims: [usize; D] = param.lazy_shape().dims();
        let values = self.0.next().expect("values of each parameter");
        let data = TensorData::new(values, dims);
        Param::from_tensor(Tensor::from_data(data, &param.lazy_device()))
    }
}

/// The output of layers over \[3, 4\] numbers with these weights, and the gradients of the sum of its squares.
fn trained(layers: &str, weights: Vec<Vec<f32>>, kernels: Kernels) -> (Vec<f32>, Vec<Vec<f32>>) {
    let _generator = generator();
    let device = Device::flex().autodiff();
    let plan = network(&[4], layers);
    let graph = Graph::new(&plan, (kernels, Arithmetic::Fast), &device);
    let graph = graph.map(&mut Set(weights.into_iter()));
    let items = DynTensor::from_values(waves(12, 0.3), &[3, 4], &device);
    let output = graph.forward(items).flatten();
    let gradients = output.clone().square().sum().backward();
    let gradients = GradientsParams::from_grads(gradients, &graph);
    let mut found = Vec::new();
    leaves::each(&graph, |leaf| {
        let gradient = leaf.gradient(&gradients).expect("a gradient");
        found.push(gradient.iter().collect());
    });
    (output.into_data().iter().collect(), found)
}

fn waves(num: usize, from: f32) -> Vec<f32> {
    (0..num).map(|at| (from + 0.9 * at as f32).sin()).collect()
}

fn transposed(values: &[f32], rows: usize) -> Vec<f32> {
    let columns = values.len() / rows;
    let place = |at: usize| at % rows * columns + at / rows;
    (0..values.len()).map(|at| values[place(at)]).collect()
}

fn assert_near(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (a, b) in found.iter().zip(expected) {
        assert!(
            (a - b).abs() <= 1e-5 * b.abs().max(1.0),
            "{found:?}\n{expected:?}"
        );
    }
}

fn sum(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

#[test]
fn a_layer_computed_again_trains_as_a_copy_with_equal_weights() {
    let (weight, bias) = (waves(16, 0.1), waves(4, 0.5));
    let first = "{ type = 'linear', name = 'a', out_features = 4 }, { type = 'tanh' }";
    for kernels in [Kernels::Fast, Kernels::Reference] {
        let own = [weight.clone(), bias.clone()];
        let (again, shared) = trained(
            &format!("{first}, {{ share = 'a' }}"),
            own.to_vec(),
            kernels,
        );
        let copy = format!("{first}, {{ type = 'linear', out_features = 4 }}");
        let (output, copied) = trained(&copy, [own.clone(), own].concat(), kernels);
        assert_eq!(again, output);
        assert_eq!(shared.len(), 2);
        assert_near(&shared[0], &sum(&copied[0], &copied[2]));
        assert_near(&shared[1], &sum(&copied[1], &copied[3]));
    }
}

#[test]
fn a_tied_layer_trains_as_a_copy_with_the_transposed_matrix() {
    let (weight, bias, other) = (waves(12, 0.1), waves(3, 0.5), waves(4, 0.2));
    let first = "{ type = 'linear', name = 'a', out_features = 3 }, { type = 'tanh' }";
    for kernels in [Kernels::Fast, Kernels::Reference] {
        let layers = format!("{first}, {{ type = 'linear', tie = 'a' }}");
        let own = [weight.clone(), bias.clone(), other.clone()];
        let (again, tied) = trained(&layers, own.to_vec(), kernels);
        let copy = format!("{first}, {{ type = 'linear', out_features = 4 }}");
        let turned = transposed(&weight, 4);
        let all = [weight.clone(), bias.clone(), turned, other.clone()];
        let (output, copied) = trained(&copy, all.to_vec(), kernels);
        assert_near(&again, &output);
        assert_eq!(tied.len(), 3);
        assert_near(&tied[0], &sum(&copied[0], &transposed(&copied[2], 3)));
        assert_near(&tied[1], &copied[1]);
        assert_near(&tied[2], &copied[3]);
    }
}
