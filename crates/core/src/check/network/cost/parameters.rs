//! The parameters of a layer, by their paths in Burn's modules.

use super::{attended_widths, times};
use crate::check::network::Input;
use crate::spec::model::attention::Attention;
use crate::spec::model::layer::{Cell, LayerKind, Norm, Oscillators, Recurrent, Transformer};
use crate::spec::model::message::{GraphPooling, Message};
use crate::spec::model::parametrization::Parametrization;

/// Paths inside the layer with the number of elements of each.
pub fn parameters(kind: &LayerKind, inputs: &[Input], shape: &[usize]) -> Vec<(String, u64)> {
    listed(kind, inputs, shape).all
}

/// Paths inside the layer of the matrices that an adapter can be added to, with their inputs and outputs.
pub fn matrices(kind: &LayerKind, inputs: &[Input], shape: &[usize]) -> Vec<(String, [usize; 2])> {
    match kind {
        LayerKind::Linear { .. }
        | LayerKind::MultiHeadAttention { .. }
        | LayerKind::GroupedAttention(_)
        | LayerKind::TransformerEncoder(_)
        | LayerKind::TransformerDecoder(_)
        | LayerKind::Swiglu { .. } => listed(kind, inputs, shape).matrices,
        _ => Vec::new(),
    }
}

fn listed(kind: &LayerKind, inputs: &[Input], shape: &[usize]) -> Parameters {
    let first = |at: usize| inputs[0].shape.dims.get(at).copied().unwrap_or(1);
    let last = |dims: &[usize]| dims.last().copied().unwrap_or(1);
    let width = last(&inputs[0].shape.dims);
    let mut list = Parameters::default();
    match kind {
        LayerKind::Linear { bias, .. } => list.linear("", width, last(shape), *bias),
        LayerKind::Conv(conv) => {
            let area = times(&conv.kernel_size);
            let channels = times(&[first(0) / conv.groups, shape[0]]);
            list.add("weight", channels.saturating_mul(area));
            list.bias("bias", shape[0], conv.bias);
        }
        LayerKind::ConvTranspose(conv) => {
            let area = times(&conv.kernel_size);
            let channels = times(&[first(0), shape[0] / conv.groups]);
            list.add("weight", channels.saturating_mul(area));
            list.bias("bias", shape[0], conv.bias);
        }
        LayerKind::DeformConv2d(conv) => {
            let sizes = [first(0) / conv.groups, shape[0], conv.window.num_taps()];
            list.add("weight", times(&sizes));
            list.bias("bias", shape[0], conv.bias);
        }
        LayerKind::Norm(norm) => match norm {
            Norm::Layer { bias, .. } => {
                list.add("gamma", width as u64);
                list.bias("beta", width, *bias);
            }
            Norm::Batch { affine, .. }
            | Norm::Group { affine, .. }
            | Norm::Instance { affine, .. } => {
                list.bias("gamma", first(0), *affine);
                list.bias("beta", first(0), *affine);
            }
            Norm::Rms { .. } => list.add("gamma", width as u64),
            Norm::LocalResponse { .. } => {}
        },
        LayerKind::Embedding { .. } => {
            let vocabulary = inputs[0].shape.vocabulary.unwrap_or(0);
            list.add("weight", times(&[vocabulary, last(shape)]));
        }
        LayerKind::Recurrent(recurrent) => list.recurrent(recurrent, width),
        LayerKind::Dlinoss(Oscillators { state_size, .. }) => {
            for path in ["time_step", "damping", "stiffness"] {
                list.add(path, *state_size as u64);
            }
            for path in ["input_matrix", "output_matrix"] {
                list.add(path, times(&[2, *state_size, width]));
            }
            list.add("skip", width as u64);
        }
        LayerKind::MultiHeadAttention { .. } => {
            let [keys, values] = attended_widths(inputs);
            list.attention("", [width, keys, values]);
        }
        LayerKind::GroupedAttention(attention) => {
            let [keys, values] = attended_widths(inputs);
            list.grouped(attention, [width, keys, values]);
        }
        LayerKind::TransformerEncoder(stack) => list.transformer(stack, width, false),
        LayerKind::TransformerDecoder(stack) => list.transformer(stack, width, true),
        LayerKind::Prelu { per_channel, .. } => {
            list.add("alpha", if *per_channel { first(0) as u64 } else { 1 });
        }
        LayerKind::Parameter { shape, .. } => list.add("value", times(shape)),
        LayerKind::PositionEmbedding { max_length, .. } => {
            list.add("value", times(&[*max_length, width]));
        }
        LayerKind::Swiglu {
            out_features, bias, ..
        } => {
            list.linear("linear_inner.", width, *out_features, *bias);
            list.linear("linear_outer.", width, *out_features, *bias);
        }
        LayerKind::Message(message) => list.message(message, width),
        LayerKind::GraphPool {
            operation: GraphPooling::Attention,
        } => list.linear("gate.", width, 1, true),
        LayerKind::Own(own) => {
            for parameter in &own.parameters {
                list.add(parameter.path.clone(), parameter.count);
            }
        }
        _ => {}
    }
    if kind.parametrization() == Parametrization::WeightNorm {
        let lengths = match kind {
            LayerKind::Embedding { .. } => inputs[0].shape.vocabulary.unwrap_or(0),
            LayerKind::ConvTranspose(_) => first(0),
            LayerKind::Linear { .. } => last(shape),
            _ => shape[0],
        };
        let lengths = ("weight.weight_norm.scale".to_owned(), lengths as u64);
        list.all.insert(1, lengths);
    }
    list
}

#[derive(Default)]
struct Parameters {
    all: Vec<(String, u64)>,
    /// Those of linear layers.
    matrices: Vec<(String, [usize; 2])>,
}

impl Parameters {
    fn add(&mut self, path: impl Into<String>, count: u64) {
        self.all.push((path.into(), count));
    }

    fn bias(&mut self, path: impl Into<String>, count: usize, is_there: bool) {
        if is_there {
            self.add(path, count as u64);
        }
    }

    fn linear(&mut self, prefix: &str, inputs: usize, outputs: usize, bias: bool) {
        let path = format!("{prefix}weight");
        self.matrices.push((path.clone(), [inputs, outputs]));
        self.add(path, times(&[inputs, outputs]));
        self.bias(format!("{prefix}bias"), outputs, bias);
    }

    fn message(&mut self, message: &Message, width: usize) {
        match *message {
            Message::Gcn {
                out_features, bias, ..
            } => {
                self.linear("linear.", width, out_features, false);
                self.bias("bias", out_features, bias);
            }
            Message::Sage { out_features, bias } => {
                self.linear("neighbors.", width, out_features, bias);
                self.linear("own.", width, out_features, false);
            }
            Message::Gat {
                out_features,
                num_heads,
                bias,
                edge_dim,
                ..
            } => {
                let inner = out_features.saturating_mul(num_heads);
                self.linear("linear.", width, inner, false);
                self.add("att_src", inner as u64);
                self.add("att_dst", inner as u64);
                if edge_dim > 0 {
                    self.linear("edges.", edge_dim, inner, false);
                    self.add("att_edge", inner as u64);
                }
                self.bias("bias", message.width(), bias);
            }
            Message::Gin {
                out_features,
                hidden_features,
                learn_epsilon,
                edge_dim,
                ..
            } => {
                if edge_dim > 0 {
                    self.linear("edges.", edge_dim, width, true);
                }
                self.linear("first.", width, hidden_features, true);
                self.linear("second.", hidden_features, out_features, true);
                self.bias("epsilon", 1, learn_epsilon);
            }
            Message::EdgeConv {
                out_features,
                hidden_features,
                edge_dim,
                ..
            } => {
                let inputs = width.saturating_mul(2).saturating_add(edge_dim);
                self.linear("first.", inputs, hidden_features, true);
                self.linear("second.", hidden_features, out_features, true);
            }
        }
    }

    fn recurrent(&mut self, recurrent: &Recurrent, width: usize) {
        let gates: &[&str] = match recurrent.cell {
            Cell::Rnn => &["gate"],
            Cell::Gru => &["update_gate", "reset_gate", "new_gate"],
            Cell::Lstm => &["input_gate", "forget_gate", "output_gate", "cell_gate"],
        };
        let directions: &[&str] = if recurrent.bidirectional {
            &["forward.", "reverse."]
        } else {
            &[""]
        };
        let hidden = recurrent.hidden_size;
        for direction in directions {
            for gate in gates {
                let prefix = format!("{direction}{gate}");
                self.linear(
                    &format!("{prefix}.input_transform."),
                    width,
                    hidden,
                    recurrent.bias,
                );
                self.linear(
                    &format!("{prefix}.hidden_transform."),
                    hidden,
                    hidden,
                    recurrent.bias,
                );
            }
        }
    }

    fn grouped(&mut self, attention: &Attention, [width, wide, values]: [usize; 3]) {
        let head_dim = attention.head_dim(width);
        let [queries, keys] =
            [attention.num_heads, attention.num_kv_heads].map(|num| num.saturating_mul(head_dim));
        self.linear("query.", width, queries, attention.bias);
        self.linear("key.", wide, keys, attention.bias);
        self.linear("value.", values, keys, attention.bias);
        self.linear("output.", queries, width, attention.bias);
        if attention.qk_norm {
            self.add("query_norm.gamma", head_dim as u64);
            self.add("key_norm.gamma", head_dim as u64);
        }
    }

    fn attention(&mut self, prefix: &str, [width, keys, values]: [usize; 3]) {
        let inputs = [
            ("query", width),
            ("key", keys),
            ("value", values),
            ("output", width),
        ];
        for (part, inputs) in inputs {
            self.linear(&format!("{prefix}{part}."), inputs, width, true);
        }
    }

    fn transformer(&mut self, stack: &Transformer, width: usize, is_decoder: bool) {
        for layer in 0..stack.num_layers {
            let prefix = format!("layers.{layer}");
            let (attentions, norms): (&[&str], &[&str]) = if is_decoder {
                (
                    &["cross_attn", "self_attn"],
                    &["norm_1", "norm_2", "norm_3"],
                )
            } else {
                (&["mha"], &["norm_1", "norm_2"])
            };
            for attention in attentions {
                self.attention(&format!("{prefix}.{attention}."), [width; 3]);
            }
            let inner = stack.feedforward_size;
            self.linear(&format!("{prefix}.pwff.linear_inner."), width, inner, true);
            self.linear(&format!("{prefix}.pwff.linear_outer."), inner, width, true);
            for norm in norms {
                self.add(format!("{prefix}.{norm}.gamma"), width as u64);
                self.add(format!("{prefix}.{norm}.beta"), width as u64);
            }
        }
    }
}
