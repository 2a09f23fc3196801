//! Built-in networks: layers with parameters, in embedded TOML files.
//!
//! A file contains `[parameters]`, each with `type`, `default` and `doc`, then `[[layers]]` and `[blocks]` as an
//! experiment has them below `[model]`. The parameters are the keys of `[model]` for this `type`.

use std::sync::OnceLock;

use crate::diagnostic::Span;
use crate::spec::document::{Document, Entry, Node, Table, Value};
use crate::spec::kind::Kind;
use crate::spec::section::{Choice, choices};

choices! {
    /// The `type` of `[model]`.
    pub enum ModelType {
        Layers "layers" "The layers of `[[model.layers]]`.",
        Mlp "mlp" "Linear layers with an activation between them.",
        Cnn "cnn" "Convolutions with an activation each, one max pooling, and linear layers.",
        Resnet "resnet" "Residual blocks of convolutions with batch norm (He et al., 2015).",
        MobilenetV2 "mobilenet_v2" "Inverted residual blocks of depthwise convolutions (Sandler et al., 2018).",
        Densenet "densenet" "DenseNet-121: layers that take the outputs of all earlier ones of their block (Huang et al., 2017).",
        EfficientnetB0 "efficientnet_b0" "Inverted residual blocks with squeeze and excitation (Tan and Le, 2019).",
        Convnext "convnext" "ConvNeXt-T: depthwise convolutions and layer norms in the manner of transformers (Liu et al., 2022).",
        Vit "vit" "ViT-B/16: a transformer over patches of an image, with a class token (Dosovitskiy et al., 2021).",
        Unet "unet" "A network that outputs a class for each pixel, with connections across a bottleneck (Ronneberger et al., 2015).",
        Vae "vae" "A variational autoencoder of images (Kingma and Welling, 2014); the divergence of its code is a loss in `[[losses]]`.",
        FtTransformer "ft_transformer" "A transformer over the features of a table, with a class token (Gorishniy et al., 2021).",
        Tcn "tcn" "Residual blocks of dilated causal convolutions over a sequence (Bai et al., 2018).",
        InceptionTime "inception_time" "Residual blocks of convolutions of several lengths over a sequence (Ismail Fawaz et al., 2020).",
        Dlinoss "dlinoss" "Blocks of damped linear oscillators over a sequence, and a linear layer on the mean (D-LinOSS; Boyer et al., 2025).",
        Eegnet "eegnet" "Filters over time, then over the channels of a recording (Lawhern et al., 2018), without limits on norms.",
        Lstm "lstm" "A long short-term memory over a sequence, and a linear layer on its last step.",
        TransformerClassifier "transformer_classifier" "A transformer encoder over a sequence, and a linear layer on its mean.",
        TransformerLm "transformer_lm" "A transformer that predicts each token from the tokens before it.",
        Bert "bert" "A transformer over texts in both directions, with learned positions and a pooler (Devlin et al., 2019).",
        Gpt2 "gpt2" "A transformer that predicts each token, with learned positions (Radford et al., 2019).",
        Llama "llama" "A transformer that predicts each token, with grouped queries, rotary positions and gated linear units (Touvron et al., 2023).",
        Hub "hub" "The network in a folder in the layout of model hubs, with its weights and its tokenizer.",
    }
}

/// Spans of preset `n` are in source `FIRST_SOURCE + n`, which no document has.
const FIRST_SOURCE: u16 = u16::MAX - 64;

/// A network with parameters.
#[derive(Debug)]
pub struct Preset {
    /// Its name, the `type` of `[model]`.
    pub name: &'static str,
    /// Its parameters in order.
    pub parameters: Vec<Parameter>,
    /// `layers` and `blocks`.
    pub model: Table,
}

/// A key of `[model]` for one preset.
#[derive(Debug)]
pub struct Parameter {
    /// The key.
    pub key: String,
    /// Its meaning.
    pub doc: String,
    /// Its default.
    pub default: Node,
    /// The axis of items whose size it has to be, and their number of axes, if any.
    pub item_axis: Option<(usize, usize)>,
    /// Whether it is how many times images are halved.
    pub halves_items: bool,
    /// The key of the preset that has to be a multiple of it, if there is one.
    pub divides: Option<String>,
    /// The allowed names, if it is a choice.
    options: Vec<String>,
    kind: String,
}

impl Preset {
    /// The preset of a model's type; `None` for `layers` and `hub`.
    pub fn of(kind: ModelType) -> Option<&'static Preset> {
        static PRESETS: OnceLock<Vec<Preset>> = OnceLock::new();
        let presets = PRESETS.get_or_init(|| {
            let types = ModelType::ALL
                .iter()
                .filter_map(|(kind, name, _)| Some((text(*kind)?, *name)));
            let numbered = types.zip(FIRST_SOURCE..);
            numbered
                .map(|((text, name), source)| Self::parse(name, text, source))
                .collect()
        });
        presets.iter().find(|preset| preset.name == kind.name())
    }

    /// # Panics If the file is invalid: a test reads all of them.
    fn parse(name: &'static str, text: &str, source: u16) -> Self {
        let document = Document::parse(name, text).unwrap_or_else(|(sources, diagnostics)| {
            panic!("preset `{name}`: {}", diagnostics.render(&sources, false))
        });
        let mut model = document.root;
        move_to(&mut model, source);
        let at = model
            .entries
            .iter()
            .position(|entry| entry.key == "parameters");
        let parameters = at.map(|at| model.entries.remove(at).node.value);
        let Some(Value::Table(parameters)) = parameters else {
            panic!("preset `{name}` has no `[parameters]`");
        };
        Self {
            name,
            parameters: parameters
                .entries
                .into_iter()
                .map(Parameter::parse)
                .collect(),
            model,
        }
    }
}

fn text(kind: ModelType) -> Option<&'static str> {
    Some(match kind {
        ModelType::Layers | ModelType::Hub => return None,
        ModelType::Mlp => include_str!("presets/mlp.toml"),
        ModelType::Cnn => include_str!("presets/cnn.toml"),
        ModelType::Resnet => include_str!("presets/resnet.toml"),
        ModelType::MobilenetV2 => include_str!("presets/mobilenet_v2.toml"),
        ModelType::Densenet => include_str!("presets/densenet.toml"),
        ModelType::EfficientnetB0 => include_str!("presets/efficientnet_b0.toml"),
        ModelType::Convnext => include_str!("presets/convnext.toml"),
        ModelType::Vit => include_str!("presets/vit.toml"),
        ModelType::Unet => include_str!("presets/unet.toml"),
        ModelType::Vae => include_str!("presets/vae.toml"),
        ModelType::FtTransformer => include_str!("presets/ft_transformer.toml"),
        ModelType::Tcn => include_str!("presets/tcn.toml"),
        ModelType::InceptionTime => include_str!("presets/inception_time.toml"),
        ModelType::Dlinoss => include_str!("presets/dlinoss.toml"),
        ModelType::Eegnet => include_str!("presets/eegnet.toml"),
        ModelType::Lstm => include_str!("presets/lstm.toml"),
        ModelType::TransformerClassifier => include_str!("presets/transformer_classifier.toml"),
        ModelType::TransformerLm => include_str!("presets/transformer_lm.toml"),
        ModelType::Bert => include_str!("presets/bert.toml"),
        ModelType::Gpt2 => include_str!("presets/gpt2.toml"),
        ModelType::Llama => include_str!("presets/llama.toml"),
    })
}

/// Whether a place is in a preset rather than in the user's text.
pub fn is_in_preset(span: Span) -> bool {
    span.source >= FIRST_SOURCE
}

fn move_to(table: &mut Table, source: u16) {
    for entry in &mut table.entries {
        entry.key_span.source = source;
        move_node(&mut entry.node, source);
    }
}

fn move_node(node: &mut Node, source: u16) {
    node.span.source = source;
    match &mut node.value {
        Value::Array(items) => items.iter_mut().for_each(|item| move_node(item, source)),
        Value::Table(table) => move_to(table, source),
        _ => {}
    }
}

impl Parameter {
    fn parse(entry: Entry) -> Self {
        let Value::Table(table) = entry.node.value else {
            panic!("parameter `{}` is not a table", entry.key);
        };
        let text = |key: &str| match table.get(key).map(|entry| &entry.node.value) {
            Some(Value::Str(text)) => text.clone(),
            _ => panic!("parameter `{}` has no `{key}`", entry.key),
        };
        let options = match table.get("options").map(|entry| &entry.node.value) {
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| match &item.value {
                    Value::Str(name) => name.clone(),
                    other => panic!("{} is not a name", other.to_toml()),
                })
                .collect(),
            _ => Vec::new(),
        };
        let number = |key: &str| match table.get(key).map(|entry| &entry.node.value) {
            Some(Value::Int(number)) => usize::try_from(*number).ok(),
            _ => None,
        };
        let axis = number("item_axis").map(|axis| (axis, number("item_rank").expect("a rank")));
        Self {
            doc: text("doc"),
            kind: text("type"),
            item_axis: axis,
            halves_items: table.get("halves_items").is_some(),
            divides: table.get("divides").is_some().then(|| text("divides")),
            options,
            default: table.get("default").expect("a default").node.clone(),
            key: entry.key,
        }
    }

    /// What the parameter accepts.
    pub fn kind(&'static self) -> Kind {
        match self.kind.as_str() {
            "size" => Kind::Int(1, 1 << 20),
            "count" => Kind::Int(1, 1024),
            "sizes" => Kind::list(Kind::Int(1, 1 << 20), 0),
            "some_sizes" => Kind::list(Kind::Int(1, 1 << 20), 1),
            "fraction" => Kind::fraction(),
            "factors" => Kind::list(Kind::positive(), 0),
            "positive" => Kind::positive(),
            "bool" => Kind::Bool,
            "choice" => Kind::OneOf(
                self.options
                    .iter()
                    .map(|name| (name.as_str(), ""))
                    .collect(),
            ),
            other => panic!("`{other}` is not a parameter type"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_right_and_accepts_its_defaults() {
        for (kind, name, _) in ModelType::ALL {
            let Some(preset) = Preset::of(*kind) else {
                continue;
            };
            assert_eq!(preset.name, *name);
            for parameter in &preset.parameters {
                let wrong = parameter.kind().check(&parameter.key, &parameter.default);
                assert!(wrong.is_empty(), "{name}.{}: {wrong:?}", parameter.key);
            }
        }
    }
}
