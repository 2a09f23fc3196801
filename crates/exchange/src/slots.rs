//! How PyTorch and Burn name and lay out the tensors of each type of layer: one table for both directions.
//!
//! PyTorch's linear weights are [out, in], Burn's [in, out]; PyTorch stacks the gates of recurrent layers and the
//! projections of attention, Burn keeps them separate; norms have `weight` and `bias` in PyTorch, `gamma` and `beta` in
//! Burn.

use std::collections::BTreeMap;

use runner_core::check::network::{Layer, Network};
use runner_core::data::DataError;
use runner_core::spec::init::InitLayout;
use runner_core::spec::model::attention::Attention;
use runner_core::spec::model::layer::{Cell, LayerKind, Norm, Oscillators, Recurrent, Transformer};
use runner_core::spec::model::message::{GraphPooling, Message};
use runner_core::spec::model::parametrization::Parametrization;

use crate::state::names::identifiers;
use crate::tensors::NamedTensor;

/// A tensor of a network in one of the layouts.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// The layer's name and the path inside it.
    pub name: String,
    /// The same as in exports: with the layer's name as a Python name.
    pub exported: String,
    /// Its sizes in that layout.
    pub shape: Vec<usize>,
    /// Whether it is a constant, which has a file of its own.
    pub is_constant: bool,
}

/// A PyTorch tensor and the corresponding Burn tensors.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapping {
    /// PyTorch's path inside the layer.
    pub torch: String,
    /// Burn's paths inside the layer with their shapes: the tensor is these, one after the other along the first axis.
    pub parts: Vec<(String, Vec<usize>)>,
    /// Whether each of them is transposed.
    pub is_transposed: bool,
    /// The number of its axes in PyTorch, which may have axes of size 1 after those of Burn's.
    pub rank: usize,
}

impl Mapping {
    /// The shape in PyTorch.
    pub fn torch_shape(&self) -> Vec<usize> {
        let mut shape = self.parts[0].1.clone();
        shape.resize(self.rank, 1);
        if self.is_transposed {
            shape.reverse();
        }
        if self.parts.len() > 1 {
            let axis = if self.is_transposed { 1 } else { 0 };
            shape[0] = self.parts.iter().map(|(_, part)| part[axis]).sum();
        }
        shape
    }
}

/// The tensors of a network in a layout, in order.
pub fn slots(network: &Network, layout: InitLayout) -> Vec<Slot> {
    let mut slots = Vec::new();
    let names = || network.layers.iter().map(|layer| layer.name.as_str());
    let modules: BTreeMap<&str, String> = names().zip(identifiers(names())).collect();
    for (layer, mapping) in all(network) {
        let slot = |path: &str, shape: Vec<usize>| Slot {
            name: format!("{}.{path}", layer.name),
            exported: format!("{}.{path}", modules[layer.name.as_str()]),
            shape,
            is_constant: layer.kind.is_constant(),
        };
        if layout == InitLayout::Burn {
            slots.extend(
                mapping
                    .parts
                    .into_iter()
                    .map(|(path, shape)| slot(&path, shape)),
            );
        } else {
            slots.push(slot(&mapping.torch, mapping.torch_shape()));
        }
    }
    slots
}

/// The Burn tensors of a slot, by their paths in the network.
pub fn to_burn(
    network: &Network,
    layout: InitLayout,
    at: usize,
    tensor: NamedTensor,
) -> Result<Vec<NamedTensor>, DataError> {
    let Some(slot) = slots(network, layout).into_iter().nth(at) else {
        return Err(DataError::new(format!("the network has no tensor {at}")));
    };
    if slot.shape != tensor.shape() {
        let message = format!(
            "`{}` is {:?}, and {:?} in the file",
            slot.name,
            slot.shape,
            tensor.shape()
        );
        return Err(DataError::new(message));
    }
    if layout == InitLayout::Burn {
        return Ok(vec![tensor.named(slot.name)]);
    }
    let Some((layer, mapping)) = all(network).nth(at) else {
        return Ok(Vec::new());
    };
    let rows = tensor.shape().first().copied().unwrap_or(1) / mapping.parts.len().max(1);
    let parts = mapping
        .parts
        .iter()
        .enumerate()
        .map(|(number, (path, shape))| {
            let part = if mapping.rank > shape.len() {
                let tensor = tensor.clone();
                tensor
                    .reshaped(shape.clone())
                    .map_err(|e| DataError::new(e.to_string()))?
            } else if mapping.parts.len() == 1 {
                tensor.clone()
            } else {
                tensor.rows(number * rows, rows)
            };
            let part = if mapping.is_transposed {
                part.transposed()
            } else {
                part
            };
            Ok(part.named(format!("{}.{path}", layer.name)))
        });
    parts.collect()
}

fn all(network: &Network) -> impl Iterator<Item = (&Layer, Mapping)> {
    let layers = network.layers.iter();
    layers.flat_map(|layer| {
        mappings(layer)
            .into_iter()
            .map(move |mapping| (layer, mapping))
    })
}

/// The tensors of a layer, without those that it uses of another.
pub fn mappings(layer: &Layer) -> Vec<Mapping> {
    let input = &layer.inputs[0].shape.dims;
    let (first, width) = (input[0], input[input.len() - 1]);
    let mut list = Mappings(Vec::new());
    match &layer.kind {
        LayerKind::Linear { bias, .. } => {
            list.linear("", "", width, layer.shape[layer.shape.len() - 1], *bias);
        }
        LayerKind::Conv(conv) => {
            let shape = [
                &[layer.shape[0], first / conv.groups],
                conv.kernel_size.as_slice(),
            ]
            .concat();
            list.same("weight", &shape);
            list.same_if(conv.bias, "bias", &[layer.shape[0]]);
        }
        LayerKind::ConvTranspose(conv) => {
            let shape = [
                &[first, layer.shape[0] / conv.groups],
                conv.kernel_size.as_slice(),
            ]
            .concat();
            list.same("weight", &shape);
            list.same_if(conv.bias, "bias", &[layer.shape[0]]);
        }
        LayerKind::DeformConv2d(conv) => {
            let kernel = conv.window.kernel_size.as_slice();
            let shape = [&[layer.shape[0], first / conv.groups], kernel].concat();
            list.same("weight", &shape);
            list.same_if(conv.bias, "bias", &[layer.shape[0]]);
        }
        LayerKind::Norm(norm) => list.norm(norm, first, width),
        LayerKind::Embedding { .. } => {
            let vocabulary = layer.inputs[0].shape.vocabulary.unwrap_or(1);
            list.same("weight", &[vocabulary, layer.shape[1]]);
        }
        LayerKind::Recurrent(recurrent) => list.recurrent(recurrent, width),
        LayerKind::Dlinoss(Oscillators { state_size, .. }) => {
            for path in ["time_step", "damping", "stiffness"] {
                list.same(path, &[*state_size]);
            }
            list.same("input_matrix", &[width, 2 * state_size]);
            list.same("output_matrix", &[2 * state_size, width]);
            list.same("skip", &[width]);
        }
        LayerKind::MultiHeadAttention { .. } => {
            let widths = layer.attended_widths();
            if widths == [width; 2] {
                list.attention("", "", width);
            } else {
                list.cross_attention(width, widths);
            }
        }
        LayerKind::GroupedAttention(attention) => {
            let [keys, values] = layer.attended_widths();
            list.grouped(attention, [width, keys, values]);
        }
        LayerKind::TransformerEncoder(stack) => list.transformer(stack, width, false),
        LayerKind::TransformerDecoder(stack) => list.transformer(stack, width, true),
        LayerKind::Prelu { per_channel, .. } => {
            let num = if *per_channel { first } else { 1 };
            list.renamed("weight", "alpha", &[num]);
        }
        LayerKind::Parameter { shape, .. } => list.same("value", shape),
        LayerKind::PositionEmbedding { max_length, .. } => {
            list.same("value", &[*max_length, width]);
        }
        LayerKind::Message(message) => list.message(message, width),
        LayerKind::GraphPool {
            operation: GraphPooling::Attention,
        } => list.linear("gate_nn.", "gate.", width, 1, true),
        LayerKind::Swiglu {
            out_features, bias, ..
        } => {
            list.linear(
                "linear_inner.",
                "linear_inner.",
                width,
                *out_features,
                *bias,
            );
            list.linear(
                "linear_outer.",
                "linear_outer.",
                width,
                *out_features,
                *bias,
            );
        }
        _ => {}
    }
    list.parametrized(&layer.kind);
    // A tensor belongs to a layer as a whole.
    list.0.retain(|mapping| layer.owns(&mapping.parts[0].0));
    list.0
}

struct Mappings(Vec<Mapping>);

impl Mappings {
    fn add(&mut self, torch: String, parts: Vec<(String, Vec<usize>)>, is_transposed: bool) {
        self.0.push(Mapping {
            torch,
            rank: parts[0].1.len(),
            parts,
            is_transposed,
        });
    }

    fn renamed(&mut self, torch: &str, burn: &str, shape: &[usize]) {
        self.add(torch.into(), vec![(burn.into(), shape.to_vec())], false);
    }

    fn same(&mut self, path: &str, shape: &[usize]) {
        self.renamed(path, path, shape);
    }

    fn same_if(&mut self, is_there: bool, path: &str, shape: &[usize]) {
        if is_there {
            self.same(path, shape);
        }
    }

    fn linear(&mut self, torch: &str, burn: &str, inputs: usize, outputs: usize, bias: bool) {
        let weight = (format!("{burn}weight"), vec![inputs, outputs]);
        self.add(format!("{torch}weight"), vec![weight], true);
        if bias {
            self.renamed(&format!("{torch}bias"), &format!("{burn}bias"), &[outputs]);
        }
    }

    /// With the names of PyTorch's `torch.nn.utils.parametrizations`, whose weight is the first of the list.
    fn parametrized(&mut self, kind: &LayerKind) {
        let parametrization = kind.parametrization();
        if parametrization.is_none() {
            return;
        }
        let weight = &self.0[0].parts[0].1;
        let [rows, columns] = parametrization.rows(kind).sizes(weight);
        let rank = weight.len();
        let vector = |torch: &str, state: &str, size: usize, rank: usize| Mapping {
            torch: format!("parametrizations.weight.{torch}"),
            parts: vec![(format!("weight.{state}"), vec![size])],
            is_transposed: false,
            rank,
        };
        let state = parametrization.state();
        let (original, own) = match parametrization {
            Parametrization::WeightNorm => {
                ("original1", vec![vector("original0", state[0], rows, rank)])
            }
            _ => (
                "original",
                vec![
                    vector("0._u", state[0], rows, 1),
                    vector("0._v", state[1], columns, 1),
                ],
            ),
        };
        self.0[0].torch = format!("parametrizations.weight.{original}");
        self.0.splice(1..1, own);
    }

    fn affine(&mut self, torch: &str, burn: &str, size: usize, bias: bool) {
        self.renamed(&format!("{torch}weight"), &format!("{burn}gamma"), &[size]);
        if bias {
            self.renamed(&format!("{torch}bias"), &format!("{burn}beta"), &[size]);
        }
    }

    /// With the names of PyTorch Geometric.
    fn message(&mut self, message: &Message, width: usize) {
        match *message {
            Message::Gcn {
                out_features, bias, ..
            } => {
                self.linear("lin.", "linear.", width, out_features, false);
                self.same_if(bias, "bias", &[out_features]);
            }
            Message::Sage { out_features, bias } => {
                self.linear("lin_l.", "neighbors.", width, out_features, bias);
                self.linear("lin_r.", "own.", width, out_features, false);
            }
            Message::Gat {
                out_features,
                num_heads,
                bias,
                edge_dim,
                ..
            } => {
                self.linear("lin.", "linear.", width, out_features * num_heads, false);
                let shape = [1, num_heads, out_features];
                self.same("att_src", &shape);
                self.same("att_dst", &shape);
                if edge_dim > 0 {
                    let inner = out_features * num_heads;
                    self.linear("lin_edge.", "edges.", edge_dim, inner, false);
                    self.same("att_edge", &shape);
                }
                self.same_if(bias, "bias", &[message.width()]);
            }
            Message::Gin {
                out_features,
                hidden_features,
                learn_epsilon,
                edge_dim,
                ..
            } => {
                if edge_dim > 0 {
                    self.linear("lin.", "edges.", edge_dim, width, true);
                }
                self.linear("nn.0.", "first.", width, hidden_features, true);
                self.linear("nn.2.", "second.", hidden_features, out_features, true);
                if learn_epsilon {
                    self.renamed("eps", "epsilon", &[1]);
                }
            }
            Message::EdgeConv {
                out_features,
                hidden_features,
                edge_dim,
                ..
            } => {
                self.linear(
                    "nn.0.",
                    "first.",
                    2 * width + edge_dim,
                    hidden_features,
                    true,
                );
                self.linear("nn.2.", "second.", hidden_features, out_features, true);
            }
        }
    }

    /// With the names of LLaMA in the library `transformers`.
    fn grouped(&mut self, attention: &Attention, [width, wide, values]: [usize; 3]) {
        let (head_dim, bias) = (attention.head_dim(width), attention.bias);
        let [queries, keys] =
            [attention.num_heads, attention.num_kv_heads].map(|num| num * head_dim);
        self.linear("q_proj.", "query.", width, queries, bias);
        self.linear("k_proj.", "key.", wide, keys, bias);
        self.linear("v_proj.", "value.", values, keys, bias);
        self.linear("o_proj.", "output.", queries, width, bias);
        if attention.qk_norm {
            self.affine("q_norm.", "query_norm.", head_dim, false);
            self.affine("k_norm.", "key_norm.", head_dim, false);
        }
    }

    fn norm(&mut self, norm: &Norm, channels: usize, width: usize) {
        match norm {
            Norm::Batch { affine, .. } => {
                if *affine {
                    self.affine("", "", channels, true);
                }
                self.same("running_mean", &[channels]);
                self.same("running_var", &[channels]);
            }
            Norm::Layer { bias, .. } => self.affine("", "", width, *bias),
            Norm::Rms { .. } => self.affine("", "", width, false),
            Norm::Group { affine, .. } | Norm::Instance { affine, .. } => {
                if *affine {
                    self.affine("", "", channels, true);
                }
            }
            Norm::LocalResponse { .. } => {}
        }
    }

    fn recurrent(&mut self, recurrent: &Recurrent, width: usize) {
        // PyTorch's orders of the gates.
        let gates: &[&str] = match recurrent.cell {
            Cell::Rnn => &["gate"],
            Cell::Gru => &["reset_gate", "update_gate", "new_gate"],
            Cell::Lstm => &["input_gate", "forget_gate", "cell_gate", "output_gate"],
        };
        let directions: &[(&str, &str)] = if recurrent.bidirectional {
            &[("forward.", ""), ("reverse.", "_reverse")]
        } else {
            &[("", "")]
        };
        let hidden = recurrent.hidden_size;
        for (burn, suffix) in directions {
            for (torch, transform, inputs) in [
                ("ih", "input_transform", width),
                ("hh", "hidden_transform", hidden),
            ] {
                let parts = |leaf: &str, shape: &[usize]| {
                    let path =
                        |gate: &&str| (format!("{burn}{gate}.{transform}.{leaf}"), shape.to_vec());
                    gates.iter().map(path).collect::<Vec<_>>()
                };
                self.add(
                    format!("weight_{torch}_l0{suffix}"),
                    parts("weight", &[inputs, hidden]),
                    true,
                );
                if recurrent.bias {
                    self.add(
                        format!("bias_{torch}_l0{suffix}"),
                        parts("bias", &[hidden]),
                        false,
                    );
                }
            }
        }
    }

    fn attention(&mut self, torch: &str, burn: &str, width: usize) {
        let parts = |leaf: &str, shape: &[usize]| {
            let path = |part: &str| (format!("{burn}{part}.{leaf}"), shape.to_vec());
            ["query", "key", "value"].map(path).to_vec()
        };
        self.add(
            format!("{torch}in_proj_weight"),
            parts("weight", &[width, width]),
            true,
        );
        self.add(
            format!("{torch}in_proj_bias"),
            parts("bias", &[width]),
            false,
        );
        self.linear(
            &format!("{torch}out_proj."),
            &format!("{burn}output."),
            width,
            width,
            true,
        );
    }

    /// PyTorch's names where keys or values have another width (`kdim`, `vdim`).
    fn cross_attention(&mut self, width: usize, [keys, values]: [usize; 2]) {
        let parts = [
            ("q", "query", width),
            ("k", "key", keys),
            ("v", "value", values),
        ];
        for (torch, burn, inputs) in parts {
            let weight = (format!("{burn}.weight"), vec![inputs, width]);
            self.add(format!("{torch}_proj_weight"), vec![weight], true);
        }
        let biases = parts.map(|(_, burn, _)| (format!("{burn}.bias"), vec![width]));
        self.add("in_proj_bias".to_owned(), biases.to_vec(), false);
        self.linear("out_proj.", "output.", width, width, true);
    }

    fn transformer(&mut self, stack: &Transformer, width: usize, is_decoder: bool) {
        for layer in 0..stack.num_layers {
            let at = format!("layers.{layer}.");
            let attentions: &[(&str, &str)] = if is_decoder {
                &[("self_attn", "self_attn"), ("multihead_attn", "cross_attn")]
            } else {
                &[("self_attn", "mha")]
            };
            for (torch, burn) in attentions {
                self.attention(&format!("{at}{torch}."), &format!("{at}{burn}."), width);
            }
            let inner = stack.feedforward_size;
            for (torch, burn, inputs, outputs) in [
                ("linear1", "linear_inner", width, inner),
                ("linear2", "linear_outer", inner, width),
            ] {
                self.linear(
                    &format!("{at}{torch}."),
                    &format!("{at}pwff.{burn}."),
                    inputs,
                    outputs,
                    true,
                );
            }
            let num = attentions.len() + 1;
            for norm in 1..=num {
                // If norms come first, Burn's last one is the one before the first attention.
                let ours = match (stack.norm_first, norm) {
                    (false, _) => norm,
                    (true, 1) => num,
                    (true, _) => norm - 1,
                };
                self.affine(
                    &format!("{at}norm{norm}."),
                    &format!("{at}norm_{ours}."),
                    width,
                    true,
                );
            }
        }
    }
}
