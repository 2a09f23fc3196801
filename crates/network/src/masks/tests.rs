//! Masks compared with PyTorch, as recorded by `tests/golden/masks.py`, and with shorter sequences: padding changes
//! neither outputs nor gradients.

use std::collections::BTreeMap;

use burn::module::{Module, ModuleMapper, Param};
use burn::optim::GradientsParams;
use burn::tensor::{DType, Device, Tensor, TensorData};
use runner_core::check::network::Network;
use runner_core::check::network::examples::{network, of_tokens};
use runner_core::spec::backend::{Arithmetic, Kernels};

use crate::graph::Graph;
use crate::leaves;
use crate::tensor::DynTensor;
use crate::testing::generator;

const PADDING: i64 = 0;
const MASK: &str = "{ type = 'padding_mask', name = 'm' }, { type = 'embedding', embedding_dim = 6, inputs = ['input'], name = 'e' }";

/// Layers over embedded tokens and a mask `m`, whose last output has one vector for an item.
const CASES: [&str; 12] = [
    "{ type = 'multi_head_attention', num_heads = 3, mask = 'm' }, { type = 'mean', mask = 'm' }",
    "{ type = 'multi_head_attention', num_heads = 2, causal = true, mask = 'm' }, { type = 'last', mask = 'm' }",
    "{ type = 'multi_head_attention', num_heads = 2, num_kv_heads = 1, mask = 'm' }, { type = 'max', mask = 'm' }",
    "{ type = 'multi_head_attention', num_heads = 2, head_dim = 4, rotary = true, window = 3, mask = 'm' }, { type = 'sum', mask = 'm' }",
    "{ type = 'slice', end = 2, name = 'q' }, { type = 'multi_head_attention', num_heads = 2, inputs = ['q', 'e'], mask = 'm' }, { type = 'last' }",
    "{ type = 'transformer_encoder', num_layers = 2, num_heads = 2, feedforward_size = 8, dropout = 0.0, mask = 'm' }, { type = 'mean', mask = 'm' }",
    "{ type = 'transformer_encoder', num_layers = 2, num_heads = 2, feedforward_size = 8, dropout = 0.0, norm_first = true, mask = 'm' }, { type = 'last', mask = 'm' }",
    "{ type = 'slice', end = 2 }, { type = 'transformer_decoder', num_layers = 1, num_heads = 2, feedforward_size = 8, dropout = 0.0, inputs = ['previous', 'e'], memory_mask = 'm' }, { type = 'mean' }",
    "{ type = 'rnn', hidden_size = 4, output = 'last', mask = 'm' }",
    "{ type = 'gru', hidden_size = 4, bidirectional = true, mask = 'm' }, { type = 'gru', hidden_size = 4, bidirectional = true, output = 'last', mask = 'm' }",
    "{ type = 'lstm', hidden_size = 4, bidirectional = true, mask = 'm' }, { type = 'max', mask = 'm' }",
    "{ type = 'lstm', hidden_size = 4, bidirectional = true, output = 'last', mask = 'm' }",
];

/// Output and gradients for items of tokens.
fn computed(
    plan: &Network,
    by: (Kernels, Arithmetic),
    weights: &Graph,
    items: &[Vec<i64>],
    device: &Device,
) -> BTreeMap<String, Vec<f64>> {
    let graph = Graph::new(plan, by, device).load_record(weights.clone().into_record());
    let length = items[0].len();
    let data = TensorData::new(items.concat(), [items.len(), length]);
    let output = graph.forward(DynTensor::Tokens(Tensor::from_data(data, device)));
    let output = output.flatten();
    let upstream = (0..output.shape().num_elements()).map(|at| (at as f32).cos());
    let upstream = TensorData::new(upstream.collect(), output.dims());
    let loss = (output.clone() * Tensor::from_data(upstream, device)).sum();
    let gradients = GradientsParams::from_grads(loss.backward(), &graph);
    let mut found = BTreeMap::new();
    let values = output.into_data().iter::<f64>().collect();
    found.insert("output".to_owned(), values);
    leaves::each(&graph, |leaf| {
        if let Some(gradient) = leaf.gradient(&gradients) {
            found.insert(leaf.path.to_owned(), gradient.iter::<f64>().collect());
        }
    });
    found
}

#[test]
fn padding_changes_neither_outputs_nor_gradients() {
    let _generator = generator();
    let device = Device::flex().autodiff();
    let real: [Vec<i64>; 2] = [vec![3, 1, 6, 2, 5, 1], vec![4, 4, 1, 3, 2, 6]];
    let all = [
        (Kernels::Fast, Arithmetic::Fast),
        (Kernels::Fast, Arithmetic::Portable),
        (Kernels::Reference, Arithmetic::Fast),
    ];
    for layers in CASES {
        let [plan, longer] = [6, 9].map(|num| of_tokens(num, &format!("{MASK}, {layers}")));
        let weights = Graph::new(&plan, all[0], &device).materialize();
        for by in all {
            let short = computed(&plan, by, &weights, &real, &device);
            let padded = real.clone().map(|mut item| {
                item.resize(9, PADDING);
                item
            });
            let long = computed(&longer, by, &weights, &padded, &device);
            let paths = |found: &BTreeMap<String, _>| found.keys().cloned().collect::<Vec<_>>();
            assert_eq!(paths(&short), paths(&long));
            for (path, short) in short {
                let size = short.iter().fold(1.0f64, |size, x| size.max(x.abs()));
                for (short, long) in short.iter().zip(&long[&path]) {
                    assert!(
                        (short - long).abs() <= 2e-6 * size,
                        "{path} is {short}, and {long} with padding, by {by:?}: {layers}"
                    );
                }
            }
        }
    }
}

#[derive(serde::Deserialize)]
struct Golden {
    cases: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Case {
    layers: String,
    output: Vec<f64>,
    gradients: Vec<Vec<f64>>,
}

/// The `number`-th tensor, as the script has it.
fn formula(number: usize, dims: &[usize]) -> TensorData {
    let value = |at: usize| (1.0 + 0.5 * number as f64 + 0.37 * at as f64).sin();
    let values: Vec<f64> = (0..dims.iter().product()).map(value).collect();
    TensorData::new(values, dims.to_vec())
}

/// Sets every parameter in order.
struct Weights {
    number: usize,
    device: Device,
    dtype: DType,
}

impl ModuleMapper for Weights {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        self.number += 1;
        let dims: [usize; D] = param.lazy_shape().dims();
        let fan = if D == 2 { dims[0] as f64 } else { 1.0 };
        let values = Tensor::from_data(formula(self.number, &dims), (&self.device, self.dtype));
        Param::from_tensor(values.div_scalar(fan.sqrt()))
    }
}

#[test]
fn outputs_and_gradients_are_those_of_pytorch() {
    let golden = include_str!("../../../../tests/golden/masks.json");
    let golden: Golden = serde_json::from_str(golden).unwrap();
    assert_eq!(golden.cases.len(), 8);
    let device = Device::flex().autodiff();
    for case in golden.cases {
        let layers = format!("{{ type = 'padding_mask', name = 'm' }}, {}", case.layers);
        let plan = network(&[5, 6], &layers);
        // Burn's recurrent layers have buffers of the device's precision, which all tests share.
        let is_recurrent = ["'rnn'", "'gru'", "'lstm'"]
            .iter()
            .any(|kind| layers.contains(kind));
        // The epsilon of Burn's norms has 32 bits in any precision.
        let precisions = [(DType::F32, 1e-5), (DType::F64, 1e-8)];
        for (dtype, tolerance) in precisions
            .into_iter()
            .take(if is_recurrent { 1 } else { 2 })
        {
            let (number, device) = (0, device.clone());
            let graph = Graph::new(&plan, Default::default(), &device);
            let mut weights = Weights {
                number,
                device: device.clone(),
                dtype,
            };
            let graph = graph.map(&mut weights);
            let mut items: Vec<f64> = formula(0, &[2, 5, 6]).iter().collect();
            items[3 * 6..5 * 6].fill(0.0);
            let items = TensorData::new(items, [2, 5, 6]);
            let items = Tensor::from_data(items, (&device, dtype));
            let output = graph.forward(DynTensor::R3(items)).flatten();
            let upstream = formula(50, &output.dims());
            let upstream = Tensor::from_data(upstream, (&device, dtype));
            let gradients = (output.clone() * upstream).sum().backward();
            let gradients = GradientsParams::from_grads(gradients, &graph);
            let mut found = vec![output.into_data().iter::<f64>().collect::<Vec<_>>()];
            leaves::each(&graph, |leaf| {
                let gradient = leaf.gradient(&gradients).expect("each weight has one");
                found.push(gradient.iter::<f64>().collect());
            });
            let wanted = [vec![case.output.clone()], case.gradients.clone()].concat();
            assert_eq!(found.len(), wanted.len(), "{layers}");
            for (number, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
                assert_eq!(found.len(), wanted.len(), "{number} of {layers}");
                for (found, wanted) in found.iter().zip(wanted) {
                    assert!(
                        (found - wanted).abs() < tolerance,
                        "{found} for {wanted} of {number} in {dtype:?}: {layers}"
                    );
                }
            }
        }
    }
}
