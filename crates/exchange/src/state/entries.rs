//! The tensors of each type of layer.

use super::Entry;
use runner_core::check::network::Layer;
use runner_core::spec::model::layer::{Cell, LayerKind, Norm, Recurrent, Transformer};

/// The entries of a layer that PyTorch calls `module`.
pub fn of(layer: &Layer, module: &str) -> Vec<Entry> {
    let mut list = List {
        module,
        layer: &layer.name,
        entries: Vec::new(),
    };
    match &layer.kind {
        LayerKind::Linear { bias, .. } => list.linear("", "", *bias),
        LayerKind::Conv(conv) => list.plain(&["weight"], conv.bias),
        LayerKind::ConvTranspose(conv) => list.plain(&["weight"], conv.bias),
        LayerKind::Norm(norm) => list.norm(norm),
        LayerKind::Embedding { .. } => list.plain(&["weight"], false),
        LayerKind::Recurrent(recurrent) => list.recurrent(recurrent),
        LayerKind::MultiHeadAttention { .. } => list.attention("", ""),
        LayerKind::TransformerEncoder(stack) => list.encoder(stack),
        LayerKind::TransformerDecoder(stack) => list.decoder(stack),
        LayerKind::PositionalEncoding { .. } => list.constant("sinusoids", "sinusoids"),
        LayerKind::RotaryEncoding { .. } => list.constant("rotations", "freq_complex"),
        LayerKind::Prelu { .. } => list.add("weight", &["alpha"], false),
        LayerKind::Swiglu { bias, .. } => {
            list.linear("linear_inner.", "linear_inner.", *bias);
            list.linear("linear_outer.", "linear_outer.", *bias);
        }
        LayerKind::Pool(_)
        | LayerKind::AdaptiveAvgPool { .. }
        | LayerKind::Activation(_)
        | LayerKind::Dropout { .. }
        | LayerKind::GaussianNoise { .. }
        | LayerKind::Identity
        | LayerKind::Flatten { .. }
        | LayerKind::Reshape { .. }
        | LayerKind::Permute { .. }
        | LayerKind::Unsqueeze { .. }
        | LayerKind::Squeeze { .. }
        | LayerKind::Slice { .. }
        | LayerKind::Reduce { .. }
        | LayerKind::Interpolate { .. }
        | LayerKind::PixelShuffle { .. }
        | LayerKind::PixelUnshuffle { .. }
        | LayerKind::Add
        | LayerKind::Multiply
        | LayerKind::Concat { .. } => {}
    }
    list.entries
}

struct List<'a> {
    module: &'a str,
    layer: &'a str,
    entries: Vec<Entry>,
}

impl List<'_> {
    fn add(&mut self, torch: &str, burn: &[&str], is_transposed: bool) {
        let burn = burn.iter().map(|path| format!("{}.{path}", self.layer));
        self.entries.push(Entry {
            torch: format!("{}.{torch}", self.module),
            burn: burn.collect(),
            is_transposed,
            is_constant: false,
        });
    }

    fn constant(&mut self, torch: &str, burn: &str) {
        self.add(torch, &[burn], false);
        if let Some(entry) = self.entries.last_mut() {
            entry.is_constant = true;
        }
    }

    fn plain(&mut self, names: &[&str], bias: bool) {
        for name in names.iter().chain(bias.then_some(&"bias")) {
            self.add(name, &[name], false);
        }
    }

    fn linear(&mut self, torch: &str, burn: &str, bias: bool) {
        self.add(&format!("{torch}weight"), &[&format!("{burn}weight")], true);
        if bias {
            self.add(&format!("{torch}bias"), &[&format!("{burn}bias")], false);
        }
    }

    fn scale_and_shift(&mut self, torch: &str, burn: &str) {
        self.add(&format!("{torch}weight"), &[&format!("{burn}gamma")], false);
        self.add(&format!("{torch}bias"), &[&format!("{burn}beta")], false);
    }

    fn norm(&mut self, norm: &Norm) {
        match norm {
            Norm::Batch { .. } => {
                self.scale_and_shift("", "");
                self.plain(&["running_mean", "running_var"], false);
            }
            Norm::Layer { bias: true, .. }
            | Norm::Group { affine: true, .. }
            | Norm::Instance { affine: true, .. } => self.scale_and_shift("", ""),
            Norm::Layer { bias: false, .. } | Norm::Rms { .. } => {
                self.add("weight", &["gamma"], false);
            }
            Norm::Group { affine: false, .. }
            | Norm::Instance { affine: false, .. }
            | Norm::LocalResponse { .. } => {}
        }
    }

    /// PyTorch has the matrices of all gates in one.
    fn recurrent(&mut self, recurrent: &Recurrent) {
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
        let sides = [("ih", "input_transform"), ("hh", "hidden_transform")];
        let kinds: &[(&str, bool)] = if recurrent.bias {
            &[("weight", true), ("bias", false)]
        } else {
            &[("weight", true)]
        };
        for (direction, suffix) in directions {
            for (kind, is_transposed) in kinds {
                for (side, transform) in sides {
                    let path = |gate: &&str| format!("{direction}{gate}.{transform}.{kind}");
                    let paths: Vec<String> = gates.iter().map(path).collect();
                    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
                    self.add(&format!("{kind}_{side}_l0{suffix}"), &paths, *is_transposed);
                }
            }
        }
    }

    /// PyTorch has the matrices of query, key and value in one.
    fn attention(&mut self, torch: &str, burn: &str) {
        for (kind, is_transposed) in [("weight", true), ("bias", false)] {
            let paths = ["query", "key", "value"].map(|part| format!("{burn}{part}.{kind}"));
            self.add(
                &format!("{torch}in_proj_{kind}"),
                &paths.each_ref().map(String::as_str),
                is_transposed,
            );
        }
        self.linear(
            &format!("{torch}out_proj."),
            &format!("{burn}output."),
            true,
        );
    }

    /// A stack of layers: attentions, feed-forward network, norms, each with PyTorch's name and Burn's.
    fn stack(&mut self, num: usize, attentions: &[[&str; 2]], norms: &[[&str; 2]]) {
        for layer in 0..num {
            let prefix = format!("layers.{layer}.");
            for [torch, burn] in attentions {
                self.attention(&format!("{prefix}{torch}."), &format!("{prefix}{burn}."));
            }
            for (torch, burn) in [("linear1", "linear_inner"), ("linear2", "linear_outer")] {
                let burn = format!("{prefix}pwff.{burn}.");
                self.linear(&format!("{prefix}{torch}."), &burn, true);
            }
            for [torch, burn] in norms {
                self.scale_and_shift(&format!("{prefix}{torch}."), &format!("{prefix}{burn}."));
            }
        }
    }

    /// Norms are numbered by where they are in PyTorch, and in Burn by where they are if they come last.
    fn encoder(&mut self, stack: &Transformer) {
        let norms = if stack.norm_first {
            [["norm1", "norm_2"], ["norm2", "norm_1"]]
        } else {
            [["norm1", "norm_1"], ["norm2", "norm_2"]]
        };
        self.stack(stack.num_layers, &[["self_attn", "mha"]], &norms);
    }

    fn decoder(&mut self, stack: &Transformer) {
        let norms = if stack.norm_first {
            [
                ["norm1", "norm_3"],
                ["norm2", "norm_1"],
                ["norm3", "norm_2"],
            ]
        } else {
            [
                ["norm1", "norm_1"],
                ["norm2", "norm_2"],
                ["norm3", "norm_3"],
            ]
        };
        let attentions = [["self_attn", "self_attn"], ["multihead_attn", "cross_attn"]];
        self.stack(stack.num_layers, &attentions, &norms);
    }
}
