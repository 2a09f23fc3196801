//! Recurrent networks, attention and positions.

use super::call::Call;
use super::helpers::Helper;
use super::{Names, Piece};
use runner_core::check::network::Layer;
use runner_core::spec::model::attention::{Attention, RotaryType};
use runner_core::spec::model::layer::{
    Cell, FeedforwardActivation, LayerKind, Recurrent, Steps, Transformer,
};
use runner_core::spec::model::layer_spec::MaskKey;
use runner_core::spec::section::Choice;

/// A recurrent network with the outputs of all steps, or of the last one in each direction.
pub fn recurrent(recurrent: &Recurrent, layer: &Layer, names: &Names<'_>) -> Piece {
    let class = match recurrent.cell {
        Cell::Rnn => "nn.RNN",
        Cell::Gru => "nn.GRU",
        Cell::Lstm => "nn.LSTM",
    };
    let hidden = recurrent.hidden_size;
    let module = Call::new(class)
        .arg(layer.inputs[0].shape.dims[1])
        .arg(hidden)
        .flag("bias", recurrent.bias, true)
        .flag("batch_first", true, false)
        .flag("bidirectional", recurrent.bidirectional, false)
        .end();
    let x = &names.output;
    if let Some(mask) = names.mask(MaskKey::Mask) {
        let call = Call::new("recur")
            .arg(format!("self.{}", names.module))
            .arg(names.input())
            .arg(mask)
            .flag("last", recurrent.output == Steps::Last, false);
        return Piece {
            module: Some(module),
            helpers: vec![Helper::Recur],
            ..Piece::expression(names, call.end())
        };
    }
    let call = format!("{x}, _ = self.{}({})", names.module, names.input());
    let mut lines = vec![call];
    match (recurrent.output, recurrent.bidirectional) {
        (Steps::Sequence, _) => {}
        (Steps::Last, false) => lines.push(format!("{x} = {x}[:, -1]")),
        (Steps::Last, true) => lines.push(format!(
            "{x} = torch.cat(({x}[:, -1, :{hidden}], {x}[:, 0, {hidden}:]), dim=1)"
        )),
    }
    Piece {
        module: Some(module),
        lines,
        ..Piece::default()
    }
}

/// Self-attention, or attention of the first input to the second.
pub fn attention(layer: &Layer, names: &Names<'_>) -> Piece {
    let LayerKind::MultiHeadAttention {
        num_heads,
        dropout,
        causal,
        ..
    } = &layer.kind
    else {
        return Piece::expression(names, names.input());
    };
    let [wide, of_values] = layer.attended_widths();
    let module = Call::new("nn.MultiheadAttention")
        .arg(layer.shape[1])
        .arg(num_heads)
        .unless("dropout", format!("{dropout:?}"), "0.0".to_owned())
        .flag("batch_first", true, false)
        .unless("kdim", wide, layer.shape[1])
        .unless("vdim", of_values, layer.shape[1])
        .end();
    let query = names.input();
    let memory = names.inputs.get(1).map_or(query, String::as_str);
    let values = names.inputs.get(2).map_or(memory, String::as_str);
    if let Some(mask) = names.mask(MaskKey::Mask) {
        let call = Call::new("attend")
            .arg(format!("self.{}", names.module))
            .arg(query)
            .arg(memory)
            .arg(mask)
            .flag("causal", *causal, false)
            .unless("values", values, memory);
        return Piece {
            module: Some(module),
            helpers: vec![Helper::CausalMask, Helper::Attend],
            ..Piece::expression(names, call.end())
        };
    }
    let call = Call::new(format!("self.{}", names.module))
        .arg(query)
        .arg(memory)
        .arg(values)
        .flag("need_weights", false, true);
    let (call, helpers) = if *causal {
        let mask = format!("causal_mask({query}, {memory})");
        (call.named("attn_mask", mask), vec![Helper::CausalMask])
    } else {
        (call, Vec::new())
    };
    Piece {
        module: Some(module),
        lines: vec![format!("{}, _ = {}", names.output, call.end())],
        helpers,
    }
}

/// The same with the options of language models.
pub fn grouped(attention: &Attention, layer: &Layer, names: &Names<'_>) -> Piece {
    let width = layer.inputs[0].shape.dims[1];
    let [keys, values] = layer.attended_widths();
    let number = |value: f64| format!("{value:?}");
    let mut call = Call::new("GroupedAttention")
        .arg(width)
        .arg(attention.num_heads)
        .arg(attention.num_kv_heads)
        .arg(attention.head_dim(width))
        .flag("bias", attention.bias, true);
    if let Some(rotary) = &attention.rotary {
        call = call.named("theta", number(rotary.theta)).unless(
            "scaling",
            number(rotary.scaling),
            number(1.0),
        );
        if let Some(stretch) = &rotary.stretch {
            call = call
                .named("rotary_type", format!("\"{}\"", stretch.form.name()))
                .named("length", stretch.length)
                .unless("factor", number(stretch.attention_factor), number(1.0));
            if stretch.form == RotaryType::Longrope {
                call = call
                    .named("short", format!("{:?}", stretch.short))
                    .named("long", format!("{:?}", stretch.long));
            } else if !stretch.form.depends_on_length() {
                call = call
                    .named("low", number(stretch.low))
                    .named("high", number(stretch.high));
            }
        }
    }
    if let Some(window) = attention.window {
        call = call.named("window", window);
    }
    let call = call
        .flag("qk_norm", attention.qk_norm, false)
        .flag("alibi", attention.alibi, false)
        .flag("causal", attention.causal, false)
        .unless("dropout", number(attention.dropout), number(0.0))
        .unless("memory_width", keys, width)
        .unless("value_width", values, keys);
    let piece = Piece::module(names, call.end()).with(Helper::GroupedAttention);
    let Some(mask) = names.mask(MaskKey::Mask) else {
        return piece;
    };
    let call = Call::new(format!("self.{}", names.module))
        .arg(names.inputs.join(", "))
        .named("mask", mask);
    Piece {
        lines: Piece::expression(names, call.end()).lines,
        ..piece
    }
}

/// A layer of a stack, of a class.
fn stacked(stack: &Transformer, class: &str, width: usize) -> String {
    let activation = match stack.activation {
        FeedforwardActivation::Gelu => "\"gelu\"",
        FeedforwardActivation::Relu => "\"relu\"",
    };
    Call::new(class)
        .arg(width)
        .arg(stack.num_heads)
        .arg(stack.feedforward_size)
        .arg(format!("{:?}", stack.dropout))
        .unless("activation", activation, "\"relu\"")
        .flag("batch_first", true, false)
        .flag("norm_first", stack.norm_first, false)
        .end()
}

/// A call that is too long for one line.
fn on_lines(class: &str, [first, rest]: [&str; 2]) -> String {
    format!("{class}(\n            {first},\n            {rest},\n        )")
}

/// Layers of self-attention and feed-forward networks.
pub fn encoder(stack: &Transformer, layer: &Layer, names: &Names<'_>) -> Piece {
    let one = stacked(stack, "nn.TransformerEncoderLayer", layer.shape[1]);
    let rest = format!("{}, enable_nested_tensor=False", stack.num_layers);
    if names.masks.is_empty() {
        let module = on_lines("nn.TransformerEncoder", [&one, &rest]);
        return masked(stack, module, "mask", names);
    }
    let module = on_lines("MaskedEncoder", [&one, &rest]);
    without_padding(stack, module, names).with(Helper::MaskedEncoder)
}

/// The same with attention to a second input in between.
pub fn decoder(stack: &Transformer, layer: &Layer, names: &Names<'_>) -> Piece {
    let one = stacked(stack, "nn.TransformerDecoderLayer", layer.shape[1]);
    let rest = stack.num_layers.to_string();
    if names.masks.is_empty() {
        let module = on_lines("nn.TransformerDecoder", [&one, &rest]);
        return masked(stack, module, "tgt_mask", names);
    }
    let module = on_lines("MaskedDecoder", [&one, &rest]);
    without_padding(stack, module, names).with(Helper::MaskedDecoder)
}

/// A stack that does not attend to padding.
fn without_padding(stack: &Transformer, module: String, names: &Names<'_>) -> Piece {
    let call = Call::new(format!("self.{}", names.module)).arg(names.inputs.join(", "));
    let call = names
        .masks
        .iter()
        .fold(call, |call, (key, mask)| call.named(key.name(), mask));
    let call = call.flag("causal", stack.causal, false);
    Piece {
        module: Some(module),
        helpers: vec![Helper::CausalMask, Helper::Attend],
        ..Piece::expression(names, call.end())
    }
}

fn masked(stack: &Transformer, module: String, key: &str, names: &Names<'_>) -> Piece {
    if !stack.causal {
        return Piece::module(names, module);
    }
    let x = names.input();
    let call = Call::new(format!("self.{}", names.module))
        .arg(names.inputs.join(", "))
        .named(key, format!("causal_mask({x}, {x})"));
    Piece {
        module: Some(module),
        helpers: vec![Helper::CausalMask],
        ..Piece::expression(names, call.end())
    }
}

/// Positional encodings; their values come with the weights.
pub fn positions(layer: &Layer, names: &Names<'_>) -> Piece {
    let (length, width) = (layer.shape[0], layer.shape[1]);
    let (class, helper) = match layer.kind {
        LayerKind::RotaryEncoding { .. } => ("RotaryEncoding", Helper::RotaryEncoding),
        _ => ("PositionalEncoding", Helper::PositionalEncoding),
    };
    Piece::module(names, format!("{class}({length}, {width})")).with(helper)
}
