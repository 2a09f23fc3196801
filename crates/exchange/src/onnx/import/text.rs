//! Layers in the syntax of an experiment file.

mod parts;

use std::fmt::{Debug, Display, Write};

use runner_core::diagnostic::{Diagnostics, Severity};
use runner_core::spec::document::Document;
use runner_core::spec::kind::Padding;
use runner_core::spec::model::NetworkInputs;
use runner_core::spec::model::expand::expand;
use runner_core::spec::model::fourier::SpectrumPart;
use runner_core::spec::model::grid::{GridMode, GridPadding};
use runner_core::spec::model::layer::{Interpolation, LayerKind, PadMode};
use runner_core::spec::model::layer_spec::LayerSpec;
use runner_core::spec::section::{Choice, Findings};

/// The keys of a layer with `type` first; those with default values are omitted.
pub fn keys(kind: &LayerKind) -> String {
    let mut text = Keys(format!("type = {:?}", kind.type_name()));
    // No arm for all others: a type without its keys here would be read as another layer.
    match kind {
        LayerKind::Linear {
            out_features,
            bias,
            initializer,
            parametrization,
        } => {
            text.some("out_features", *out_features);
            text.unless("bias", *bias, true);
            text.initial(initializer.as_ref(), *parametrization);
        }
        LayerKind::Conv(conv) => text.conv(conv),
        LayerKind::ConvTranspose(conv) => text.conv_transpose(conv),
        LayerKind::DeformConv2d(conv) => text.deform_conv(conv),
        LayerKind::Unfold(window) => text.window(window),
        LayerKind::Norm(norm) => text.norm(norm),
        LayerKind::Pool(pool) => text.pool(pool),
        LayerKind::AdaptiveAvgPool {
            dims: _,
            output_size,
        } => text.each("output_size", output_size, 1),
        LayerKind::Recurrent(recurrent) => text.recurrent(recurrent),
        LayerKind::Dlinoss(oscillators) => text.oscillators(oscillators),
        LayerKind::MultiHeadAttention {
            num_heads,
            dropout,
            causal,
            initializer,
        } => {
            text.add("num_heads", num_heads);
            text.number("dropout", *dropout, 0.0);
            text.unless("causal", *causal, false);
            text.initializer(initializer.as_ref());
        }
        LayerKind::GroupedAttention(attention) => text.attention(attention),
        LayerKind::TransformerEncoder(stack) | LayerKind::TransformerDecoder(stack) => {
            text.transformer(stack);
        }
        LayerKind::PositionalEncoding { max_timescale } => {
            text.unless("max_timescale", *max_timescale, 10_000);
        }
        LayerKind::PositionEmbedding { max_length, std } => {
            text.add("max_length", max_length);
            text.number("std", *std, 0.02);
        }
        LayerKind::RotaryEncoding { theta } => text.number("theta", *theta, 10_000.0),
        LayerKind::Embedding {
            embedding_dim,
            initializer,
            parametrization,
        } => {
            text.some("embedding_dim", *embedding_dim);
            text.initial(initializer.as_ref(), *parametrization);
        }
        LayerKind::Dropout { probability } | LayerKind::ChannelDropout { probability } => {
            text.number("probability", *probability, 0.5);
        }
        LayerKind::Noise { size } => text.add("size", size),
        LayerKind::StochasticDepth { probability } => {
            text.number("probability", *probability, 0.1);
        }
        LayerKind::GaussianNoise { std } => text.add("std", format_args!("{std:?}")),
        LayerKind::Prelu {
            per_channel,
            initial,
        } => {
            text.unless("per_channel", *per_channel, false);
            text.number("initial", *initial, 0.25);
        }
        LayerKind::Swiglu {
            out_features,
            bias,
            initializer,
        } => {
            text.add("out_features", out_features);
            text.unless("bias", *bias, false);
            text.initializer(initializer.as_ref());
        }
        LayerKind::Activation(activation) => text.activation(activation),
        LayerKind::Flatten {
            start_axis,
            end_axis,
        } => {
            text.unless("start_axis", *start_axis, 0);
            text.unless("end_axis", *end_axis, -1);
        }
        LayerKind::Reshape { shape } => text.list("shape", shape),
        LayerKind::Permute { axes } => text.list("axes", axes),
        LayerKind::Slice { axis, start, end } => {
            text.unless("axis", *axis, 0);
            text.unless("start", *start, 0);
            text.some("end", *end);
        }
        LayerKind::PaddingMask { padding } => {
            if let Some(padding) = padding {
                text.add("padding", format_args!("{padding:?}"));
            }
        }
        LayerKind::Reduce { operation: _, axis }
        | LayerKind::Concat { axis }
        | LayerKind::Cumsum { axis }
        | LayerKind::Unsqueeze { axis }
        | LayerKind::Squeeze { axis } => text.unless("axis", *axis, 0),
        LayerKind::Interpolate {
            dims: _,
            output_size,
            scale,
            mode,
            align_corners,
        } => {
            if let Some(sizes) = output_size {
                text.list("output_size", sizes);
            }
            // One number for all dimensions.
            if let Some([first, ..]) = scale.as_deref() {
                text.add("scale", format_args!("{first:?}"));
            }
            text.choice("mode", *mode, Interpolation::Nearest);
            text.unless("align_corners", *align_corners, false);
        }
        LayerKind::PixelShuffle { factor } | LayerKind::PixelUnshuffle { factor } => {
            text.add("factor", factor);
        }
        LayerKind::Pad {
            padding,
            mode,
            value,
        } => {
            text.list("padding", padding);
            text.choice("mode", *mode, PadMode::Constant);
            text.number("value", *value, 0.0);
        }
        LayerKind::Parameter {
            shape, std, mean, ..
        } => {
            text.list("shape", shape);
            text.number("std", *std, 0.02);
            text.number("mean", *mean, 0.0);
        }
        LayerKind::LinearScan { reverse } => text.unless("reverse", *reverse, false),
        LayerKind::Fourier(fourier) => {
            text.list("axes", &fourier.axes);
            text.choice("part", fourier.part, SpectrumPart::Real);
        }
        LayerKind::Roll { axis, shift } => {
            text.unless("axis", *axis, 0);
            text.add("shift", shift);
        }
        LayerKind::TopK { k, fill } => {
            text.add("k", k);
            text.number("fill", *fill, 0.0);
        }
        LayerKind::GridSample(settings) => {
            text.choice("mode", settings.mode, GridMode::Linear);
            text.choice("padding", settings.padding, GridPadding::Zeros);
            text.unless("align_corners", settings.align_corners, false);
        }
        LayerKind::AffineGrid(settings) => {
            text.list("output_size", &settings.output_size);
            text.unless("align_corners", settings.align_corners, false);
            text.unless("add_identity", settings.add_identity, false);
        }
        LayerKind::Einsum { equation } => text.add("equation", format_args!("{equation:?}")),
        LayerKind::Message(message) => text.message(message),
        LayerKind::GraphPool { operation } => text.pooling(*operation),
        LayerKind::EdgeEnds {
            operation,
            edge_dim,
        } => text.edge_ends(*operation, *edge_dim),
        LayerKind::Own(own) => text.own(own),
        LayerKind::GaussianSample
        | LayerKind::Identity
        | LayerKind::Add
        | LayerKind::Multiply
        | LayerKind::Pairwise { operation: _ }
        | LayerKind::Matmul => {}
    }
    text.0
}

/// The layers of some lines, as an experiment file with them has them. The error says why it would be refused.
pub fn read(lines: &[String]) -> Result<Vec<LayerSpec>, String> {
    let text = format!("layers = [\n{}\n]", lines.join(",\n"));
    let first = |found: &Diagnostics| {
        let mut errors = found.0.iter();
        let error = errors.find(|one| one.severity == Severity::Error);
        error.map(|one| one.message.clone())
    };
    let document = Document::parse("layers", &text)
        .map_err(|(_, wrong)| first(&wrong).unwrap_or_else(|| "it is not valid TOML".into()))?;
    let mut findings = Findings::default();
    let layers = expand(
        &document.root,
        Vec::new(),
        None,
        &NetworkInputs::default(),
        &mut findings,
    );
    match first(&findings.diagnostics) {
        Some(wrong) => Err(wrong),
        None => Ok(layers),
    }
}

/// One number if all are the same, or a list.
fn sizes(sizes: &[usize]) -> String {
    match sizes {
        [first, rest @ ..] if rest.iter().all(|size| size == first) => first.to_string(),
        several => format!("{several:?}"),
    }
}

struct Keys(String);

impl Keys {
    fn add(&mut self, key: &str, value: impl Display) {
        let _ = write!(self.0, ", {key} = {value}");
    }

    fn some<T: Display>(&mut self, key: &str, value: Option<T>) {
        if let Some(value) = value {
            self.add(key, value);
        }
    }

    fn list<T: Debug>(&mut self, key: &str, values: &[T]) {
        let _ = write!(self.0, ", {key} = {values:?}");
    }

    fn unless<T: PartialEq + Display>(&mut self, key: &str, value: T, usual: T) {
        if value != usual {
            self.add(key, value);
        }
    }

    fn number(&mut self, key: &str, value: f64, usual: f64) {
        if value != usual {
            let _ = write!(self.0, ", {key} = {value:?}");
        }
    }

    fn choice<T: Choice + PartialEq + Copy>(&mut self, key: &str, value: T, usual: T) {
        if value != usual {
            self.add(key, format_args!("{:?}", value.name()));
        }
    }

    fn each(&mut self, key: &str, values: &[usize], usual: usize) {
        if values.iter().any(|value| *value != usual) {
            self.add(key, sizes(values));
        }
    }

    fn padding(&mut self, padding: &Padding) {
        match padding {
            Padding::Valid => {}
            Padding::Same => self.add("padding", "\"same\""),
            Padding::Causal => self.add("padding", "\"causal\""),
            Padding::Zeros(zeros) => match zeros.as_slice() {
                [both] => self.add("padding", both),
                several => self.list("padding", several),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use runner_core::check::network::Layer;
    use runner_core::check::network::examples::{examples, graph_examples};
    use serde_json::{Value as Json, json};

    use super::*;

    /// A layer in the syntax of a file, with as many inputs as it needs.
    fn line(kind: &LayerKind, num_inputs: usize) -> String {
        let inputs = vec!["\"input\""; num_inputs].join(", ");
        format!("{{ {}, inputs = [{inputs}] }}", keys(kind))
    }

    /// The values that a setting may have instead: all of its numbers, or one of the words of some key.
    fn others(value: &Json) -> Vec<Json> {
        const WORDS: [&str; 14] = [
            "linear",
            "cubic",
            "reflect",
            "replicate",
            "last",
            "sum",
            "max",
            "mean",
            "relu",
            "same",
            "causal",
            "attention",
            "weight_norm",
            "spectral_norm",
        ];
        match value {
            Json::Bool(is) => vec![json!(!is)],
            Json::Number(number) if number.is_f64() => {
                let number = number.as_f64().unwrap_or(0.0);
                vec![json!(number * 0.75 + 0.03125), json!(number + 0.3)]
            }
            Json::Number(number) => vec![json!(number.as_i64().unwrap_or(0) + 1)],
            Json::String(_) => WORDS.iter().map(|word| json!(word)).collect(),
            Json::Array(all) => {
                let each: Vec<Vec<Json>> = all.iter().map(others).collect();
                let first = each.iter().map(|all| all.first().cloned());
                first
                    .collect::<Option<Vec<_>>>()
                    .map(Json::Array)
                    .into_iter()
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    /// The same layer with each of its settings changed, also those inside its tables.
    fn changed(value: &Json) -> Vec<Json> {
        let Json::Object(table) = value else {
            return others(value);
        };
        let mut all = Vec::new();
        // The number of dimensions is part of the type's name, and determines the length of lists.
        for (key, inner) in table.iter().filter(|(key, _)| *key != "dims") {
            for other in changed(inner) {
                let mut copy = table.clone();
                copy.insert(key.clone(), other);
                all.push(Json::Object(copy));
            }
        }
        all
    }

    #[test]
    fn every_layer_is_read_from_its_text_as_it_was() {
        let (mut num_read, mut num_changed) = (0, 0);
        for example in examples().into_iter().chain(graph_examples()) {
            for layer in &example.network.layers {
                let Layer { kind, .. } = layer;
                // No import has one: the file of a constant is not in its plan.
                if kind.is_constant() {
                    continue;
                }
                let inputs = layer.values().len();
                let text = line(kind, inputs);
                let read = read(std::slice::from_ref(&text));
                let read = read.unwrap_or_else(|wrong| panic!("{text}: {wrong}"));
                assert_eq!(&read[0].kind, kind, "{text}");
                num_read += 1;
                for other in changed(&serde_json::to_value(kind).unwrap()) {
                    let Ok(other) = serde_json::from_value::<LayerKind>(other) else {
                        continue;
                    };
                    let text = line(&other, inputs);
                    // Values that no file may have.
                    let Ok(read) = super::read(std::slice::from_ref(&text)) else {
                        continue;
                    };
                    // Without any of its options, a file has the other attention.
                    let is_usual = matches!(read[0].kind, LayerKind::MultiHeadAttention { .. });
                    if is_usual && matches!(other, LayerKind::GroupedAttention(_)) {
                        continue;
                    }
                    assert_eq!(read[0].kind, other, "{text}");
                    num_changed += 1;
                }
            }
        }
        assert!(
            num_read > 100 && num_changed > 500,
            "{num_read} {num_changed}"
        );
    }
}
