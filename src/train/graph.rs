//! The layers of a plan as one module: each takes outputs of earlier ones.

use burn::module::Module;
use burn::tensor::Device;

use super::initial::redraw;
use super::layer::Layer;
use super::tensor::DynTensor;
use crate::check::network::Network as NetworkPlan;

/// A graph of layers in an order in which they can be computed.
#[derive(Module, Debug)]
pub struct Graph {
    layers: Vec<Layer>,
    #[module(skip)]
    plan: NetworkPlan,
    /// The last layer that takes each layer's output: after it the output is dropped.
    #[module(skip)]
    last_uses: Vec<usize>,
}

impl Graph {
    /// The graph of a plan, with weights still to be drawn.
    pub fn new(plan: &NetworkPlan, device: &Device) -> Self {
        let layers = plan.layers.iter().map(|layer| {
            let module = Layer::new(layer, device);
            let module = match layer.kind.initializer() {
                Some(initializer) => redraw(module, initializer, layer.kind.groups()),
                None => module,
            };
            if layer.freeze {
                module.no_grad()
            } else {
                module
            }
        });
        Self {
            layers: layers.collect(),
            plan: plan.clone(),
            last_uses: plan.last_uses(),
        }
    }

    /// The name of a layer.
    pub fn name(&self, at: usize) -> &str {
        &self.plan.layers[at].name
    }

    /// \[batch, item shape\] to \[batch, output shape\].
    pub fn forward(&self, items: DynTensor) -> DynTensor {
        self.outputs(items, |_, _| {})
    }

    /// The same; `see` is shown every layer's place and output.
    pub fn outputs(&self, items: DynTensor, mut see: impl FnMut(usize, &DynTensor)) -> DynTensor {
        let mut outputs: Vec<Option<DynTensor>> = vec![None; self.layers.len()];
        for (at, (layer, plan)) in self.layers.iter().zip(&self.plan.layers).enumerate() {
            let mut inputs = Vec::with_capacity(plan.inputs.len());
            for (number, input) in plan.inputs.iter().enumerate() {
                let Some(from) = input.layer else {
                    inputs.push(items.clone());
                    continue;
                };
                // The same output may be taken twice by one layer.
                let again = plan.inputs[number + 1..]
                    .iter()
                    .any(|later| later.layer == Some(from));
                let output = match self.last_uses[from] == at && !again {
                    true => outputs[from].take(),
                    false => outputs[from].clone(),
                };
                inputs.push(output.expect("a layer takes outputs of earlier ones"));
            }
            let output = layer.forward(plan, inputs);
            see(at, &output);
            outputs[at] = Some(output);
        }
        outputs.pop().flatten().unwrap_or(items)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use burn::module::{ModuleVisitor, Param};
    use burn::tensor::{Tensor, TensorData};

    use super::*;
    use crate::check::network::{Shape, infer};
    use crate::spec::document::Document;
    use crate::spec::model::expand::expand;
    use crate::spec::model::layer::{LayerKind, LayerType};
    use crate::spec::section::{Choice, Findings};

    /// Items as `length` tokens of 7, or numbers of a shape, and layers over them.
    const CASES: &[(&[usize], &str)] = &[
        (&[5], "{ type = 'linear', out_features = 3 }"),
        (
            &[4, 5],
            "{ type = 'linear', out_features = 3, bias = false, initializer = { type = 'normal' } }",
        ),
        (
            &[3, 9],
            "{ type = 'conv1d', out_channels = 6, kernel_size = 3, stride = 2, padding = 1, dilation = 2, groups = 3 }",
        ),
        (
            &[3, 9],
            "{ type = 'conv1d', out_channels = 2, kernel_size = 4, padding = 'same', dilation = 2, bias = false }",
        ),
        (
            &[2, 8, 9],
            "{ type = 'conv2d', out_channels = 4, kernel_size = [3, 2], stride = [2, 1], padding = 'same', groups = 2, initializer = { type = 'orthogonal' } }",
        ),
        (
            &[2, 8, 9],
            "{ type = 'conv2d', out_channels = 4, kernel_size = 3, padding = [0, 2], dilation = [1, 2] }",
        ),
        (
            &[2, 6, 5, 4],
            "{ type = 'conv3d', out_channels = 4, kernel_size = [3, 1, 2], stride = [1, 2, 1], padding = 1, groups = 2 }",
        ),
        (
            &[2, 6, 5, 4],
            "{ type = 'conv3d', out_channels = 4, kernel_size = 3, padding = 'same', dilation = 2 }",
        ),
        (
            &[4, 9],
            "{ type = 'conv_transpose1d', out_channels = 6, kernel_size = 3, stride = 2, padding = 1, output_padding = 1, groups = 2 }",
        ),
        (
            &[4, 5, 6],
            "{ type = 'conv_transpose2d', out_channels = 3, kernel_size = [3, 2], stride = 2, dilation = 2, padding = [1, 0] }",
        ),
        (
            &[2, 3, 4, 3],
            "{ type = 'conv_transpose3d', out_channels = 3, kernel_size = 2, stride = [1, 2, 1], bias = false }",
        ),
        (&[6], "{ type = 'batch_norm' }"),
        (&[6, 4, 4], "{ type = 'batch_norm', momentum = 0.2 }"),
        (&[4, 6], "{ type = 'layer_norm' }"),
        (&[4, 6], "{ type = 'layer_norm', bias = false }"),
        (&[6, 4], "{ type = 'group_norm', num_groups = 3 }"),
        (
            &[6, 4, 3],
            "{ type = 'group_norm', num_groups = 2, affine = false }",
        ),
        (&[6, 4, 3], "{ type = 'instance_norm' }"),
        (&[4, 6], "{ type = 'rms_norm' }"),
        (&[6, 4, 3], "{ type = 'local_response_norm', size = 3 }"),
        (&[6], "{ type = 'dropout' }"),
        (&[6], "{ type = 'gaussian_noise', std = 0.1 }"),
        (&[], "{ type = 'embedding', embedding_dim = 6 }"),
        (
            &[3, 9],
            "{ type = 'max_pool1d', kernel_size = 3, stride = 2, padding = 1 }",
        ),
        (
            &[3, 10],
            "{ type = 'max_pool1d', kernel_size = 3, dilation = 2, ceil_mode = true, stride = 2 }",
        ),
        (&[3, 9, 8], "{ type = 'max_pool2d', kernel_size = 2 }"),
        (
            &[3, 9, 8],
            "{ type = 'max_pool2d', kernel_size = [2, 3], stride = 2, padding = 'same' }",
        ),
        (
            &[3, 9, 7],
            "{ type = 'max_pool2d', kernel_size = 2, stride = 2, ceil_mode = true }",
        ),
        (
            &[3, 9],
            "{ type = 'avg_pool1d', kernel_size = 3, padding = 1, count_include_pad = false }",
        ),
        (
            &[3, 9, 8],
            "{ type = 'avg_pool2d', kernel_size = 3, stride = 2, ceil_mode = true, padding = 1 }",
        ),
        (
            &[3, 9, 8],
            "{ type = 'avg_pool2d', kernel_size = 2, padding = 'same', stride = 1 }",
        ),
        (&[3, 9], "{ type = 'adaptive_avg_pool1d', output_size = 4 }"),
        (
            &[3, 9, 8],
            "{ type = 'adaptive_avg_pool2d', output_size = [2, 3] }",
        ),
        (
            &[3, 6, 6, 4],
            "{ type = 'adaptive_avg_pool3d', output_size = 2 }",
        ),
        (&[5, 4], "{ type = 'rnn', hidden_size = 3 }"),
        (
            &[5, 4],
            "{ type = 'rnn', hidden_size = 3, bidirectional = true, output = 'last', bias = false }",
        ),
        (
            &[5, 4],
            "{ type = 'gru', hidden_size = 3, output = 'last' }",
        ),
        (
            &[5, 4],
            "{ type = 'gru', hidden_size = 3, bidirectional = true }",
        ),
        (
            &[5, 4],
            "{ type = 'lstm', hidden_size = 3, initializer = { type = 'uniform' } }",
        ),
        (
            &[5, 4],
            "{ type = 'lstm', hidden_size = 3, bidirectional = true, output = 'last' }",
        ),
        (
            &[5, 6],
            "{ type = 'multi_head_attention', num_heads = 3, causal = true }",
        ),
        (
            &[5, 6],
            "{ type = 'slice', end = 3, name = 'head' }, { type = 'multi_head_attention', num_heads = 2, inputs = ['head', 'input'] }",
        ),
        (
            &[5, 6],
            "{ type = 'transformer_encoder', num_layers = 2, num_heads = 3, feedforward_size = 7, causal = true }",
        ),
        (
            &[5, 6],
            "{ type = 'slice', end = 3, name = 'head' }, { type = 'transformer_decoder', num_layers = 2, num_heads = 3, feedforward_size = 7, causal = true, inputs = ['input', 'head'], norm_first = true, activation = 'relu' }",
        ),
        (&[5, 6], "{ type = 'positional_encoding' }"),
        (&[5, 6], "{ type = 'rotary_encoding' }"),
        (&[3, 4], "{ type = 'prelu', per_channel = true }"),
        (&[3, 4], "{ type = 'prelu' }"),
        (&[3, 4], "{ type = 'glu' }"),
        (
            &[3, 4],
            "{ type = 'swiglu', out_features = 5, bias = true }",
        ),
        (&[3, 4], "{ type = 'identity' }"),
        (&[3, 4, 2], "{ type = 'flatten' }"),
        (&[3, 4, 2], "{ type = 'flatten', start_axis = 1 }"),
        (&[3, 4, 2], "{ type = 'reshape', shape = [2, -1, 3, 1] }"),
        (&[3, 4, 2], "{ type = 'permute', axes = [2, 0, -2] }"),
        (&[3, 4], "{ type = 'unsqueeze', axis = -1 }"),
        (&[3, 1, 4], "{ type = 'squeeze', axis = 1 }"),
        (
            &[8, 4],
            "{ type = 'slice', axis = 0, start = -6, end = -1 }",
        ),
        (&[8, 4], "{ type = 'mean' }"),
        (&[8, 4], "{ type = 'max', axis = -1 }"),
        (&[8], "{ type = 'sum' }"),
        (
            &[3, 4],
            "{ type = 'interpolate1d', output_size = 9, mode = 'linear' }",
        ),
        (&[3, 4], "{ type = 'interpolate1d', scale = 1.6 }"),
        (
            &[3, 4, 5],
            "{ type = 'interpolate2d', scale = 1.5, mode = 'linear', align_corners = true }",
        ),
        (
            &[3, 4, 5],
            "{ type = 'interpolate2d', output_size = [8, 9], mode = 'cubic' }",
        ),
        (&[8, 3, 2], "{ type = 'pixel_shuffle', factor = 2 }"),
        (&[2, 6, 9], "{ type = 'pixel_unshuffle', factor = 3 }"),
        (
            &[3, 4],
            "{ type = 'relu', name = 'a' }, { type = 'add', inputs = ['a', 'input', 'a'] }",
        ),
        (
            &[3, 4],
            "{ type = 'mean', name = 'm' }, { type = 'unsqueeze', name = 'u' }, { type = 'multiply', inputs = ['input', 'u'] }",
        ),
        (
            &[3, 4],
            "{ type = 'tanh', name = 'a' }, { type = 'concat', axis = -1, inputs = ['a', 'input'] }",
        ),
    ];

    fn network(items: &[usize], layers: &str) -> NetworkPlan {
        let text = format!("layers = [{layers}]");
        let document = Document::parse("test", &text).unwrap();
        let mut findings = Findings::default();
        let layers = expand(&document.root, Vec::new(), None, &mut findings);
        let messages = findings.diagnostics.render(&document.sources, false);
        assert!(messages.is_empty(), "{messages}");
        let items = match items.is_empty() {
            true => Shape {
                dims: vec![6],
                vocabulary: Some(7),
            },
            false => Shape::numbers(items),
        };
        infer(&layers, &items, &[])
            .unwrap_or_else(|d| panic!("{}", d.render(&document.sources, false)))
    }

    /// Burn's own parameters: path below the layer's index, and how many numbers.
    #[derive(Default)]
    struct Found {
        path: Vec<String>,
        counts: BTreeMap<String, u64>,
    }

    impl ModuleVisitor for Found {
        fn enter_module(&mut self, name: &str, _: &str) {
            self.path.push(name.to_owned());
        }
        fn exit_module(&mut self, _: &str, _: &str) {
            self.path.pop();
        }
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if param.is_require_grad() {
                let count = param.shape().num_elements() as u64;
                self.counts.insert(self.path.join("."), count);
            }
        }
    }

    /// Every kind of layer gives the planned shape, has the planned parameters, and passes gradients.
    #[test]
    fn plans_are_what_burn_does() {
        let device = Device::flex().autodiff();
        let activations = LayerType::ALL.iter().filter_map(|(_, name, _)| {
            let text = format!("{{ type = '{name}' }}");
            let document = Document::parse("test", &format!("layers = [{text}]")).unwrap();
            let layers = expand(&document.root, Vec::new(), None, &mut Findings::default());
            let is_activation = matches!(layers.first()?.kind, LayerKind::Activation(_));
            is_activation.then_some(text)
        });
        let activations: Vec<String> = activations.collect();
        let cases = CASES.iter().map(|(items, layers)| (*items, *layers));
        let activations = activations
            .iter()
            .map(|layers| (&[3, 4][..], layers.as_str()));
        let mut covered = BTreeSet::new();
        for (items, layers) in cases.chain(activations) {
            let plan = network(items, layers);
            let graph = Graph::new(&plan, &device).materialize();
            let dims = &plan.items.dims;
            let items = match plan.items.vocabulary {
                Some(_) => DynTensor::Tokens(Tensor::from_data(
                    TensorData::new((0..12i64).map(|at| at % 7).collect(), [2, 6]),
                    &device,
                )),
                None => {
                    let num = 2 * dims.iter().product::<usize>();
                    let values = (0..num).map(|at| (at as f32 * 0.7).sin()).collect();
                    DynTensor::from_values(values, &[&[2], dims.as_slice()].concat(), &device)
                }
            };
            let output = graph.outputs(items, |at, output| {
                let planned = [&[2], plan.layers[at].shape.as_slice()].concat();
                assert_eq!(output.dims(), planned, "{layers}");
            });
            let mut found = Found::default();
            graph.visit(&mut found);
            let num_found = found.counts.values().sum::<u64>();
            assert_eq!(
                num_found, plan.num_parameters,
                "{layers}: {:?}",
                found.counts
            );
            let planned: BTreeSet<_> = plan.parameter_paths().into_iter().collect();
            let shown = found
                .counts
                .keys()
                .map(|path| plan.user_path(path).unwrap());
            assert_eq!(shown.collect::<BTreeSet<_>>(), planned, "{layers}");
            if plan.num_parameters > 0 {
                let gradients = output.flatten().sum().backward();
                let gradients = burn::optim::GradientsParams::from_grads(gradients, &graph);
                assert_eq!(gradients.len(), found.counts.len(), "{layers}");
            }
            let types = layers.split("type = '").skip(1);
            covered.extend(types.filter_map(|text| Some(text.split_once('\'')?.0.to_owned())));
        }
        let missing: Vec<_> = LayerType::ALL
            .iter()
            .filter(|(_, name, _)| !covered.contains(*name))
            .collect();
        assert!(missing.is_empty(), "no case for {missing:?}");
    }
}
