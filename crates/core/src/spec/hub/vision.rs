//! Classifiers of images.

use serde_json::{Map, Value as Json};

use super::config::{Keys, Refused, refuse, short};
use super::models::{HubModel, architecture, int, labels};
use super::names::{RESNET, VIT};
use crate::diagnostic::Span;
use crate::spec::document::{Entry, Node, Table, Value};
use crate::spec::model::preset::ModelType;

/// A vision transformer.
pub(super) fn vit(config: &Map<String, Json>) -> Result<HubModel, Refused> {
    // Of a pooler and of the reconstruction of images, which classifiers do not have.
    let ignored = ["encoder_stride", "pooler_act", "pooler_output_size"];
    let mut keys = Keys::new(config, &ignored);
    let d_model = keys.size("hidden_size")?;
    let num_layers = keys.size("num_hidden_layers")?;
    let num_heads = keys.heads("num_attention_heads", d_model)?;
    let inner = keys.size("intermediate_size")?;
    let image_size = keys.size("image_size")?;
    let patch_size = keys.size("patch_size")?;
    if !image_size.is_multiple_of(patch_size) {
        return refuse(
            format!(
                "`patch_size` is {patch_size}, which does not divide `image_size`, {image_size}"
            ),
            "use the `config.json` of the model",
        );
    }
    // The data has as many channels, or the weights do not fit.
    keys.get("num_channels");
    keys.only("hidden_act", &"gelu".into())?;
    keys.only("qkv_bias", &true.into())?;
    keys.no_dropout("hidden_dropout_prob")?;
    keys.no_dropout("attention_probs_dropout_prob")?;
    let epsilon = keys.number("layer_norm_eps", 1e-12)?;
    keys.finish()?;
    Ok(HubModel {
        name: "vit",
        kind: ModelType::Vit,
        keys: vec![
            ("image_size", int(image_size)),
            ("patch_size", int(patch_size)),
            ("d_model", int(d_model)),
            ("num_heads", int(num_heads)),
            ("num_layers", int(num_layers)),
            ("feedforward_size", int(inner)),
            ("epsilon", Value::Float(epsilon)),
            ("separate", Value::Bool(true)),
            ("dropout", Value::Float(0.0)),
        ],
        family: &VIT,
        names: VIT.all(num_layers),
        max_length: None,
        vocabulary: 0,
        labels: labels(config),
        architecture: architecture(config),
    })
}

/// The settings of a residual network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resnet {
    /// Channels of the first convolution.
    pub embedding_size: usize,
    /// Channels of each stage.
    pub hidden_sizes: Vec<usize>,
    /// Blocks of each stage.
    pub depths: Vec<usize>,
    /// Whether blocks have three convolutions, and not two.
    pub is_bottleneck: bool,
    /// Whether the first stage halves the image, too.
    pub downsample_in_first_stage: bool,
    /// Whether the first convolution of a block halves it, and not the second one.
    pub downsample_in_bottleneck: bool,
}

/// A residual network, whose layers no preset has.
pub(super) fn resnet(config: &Map<String, Json>) -> Result<HubModel, Refused> {
    // Which outputs other networks take from it.
    let ignored = ["num_channels", "out_features", "out_indices", "stage_names"];
    let mut keys = Keys::new(config, &ignored);
    let embedding_size = keys.size("embedding_size")?;
    let hidden_sizes = sizes(&mut keys, "hidden_sizes")?;
    let depths = sizes(&mut keys, "depths")?;
    if depths.len() != hidden_sizes.len() {
        return refuse(
            "`depths` and `hidden_sizes` have different lengths",
            "use the `config.json` of the model",
        );
    }
    let is_bottleneck = match keys.get("layer_type").and_then(Json::as_str) {
        None | Some("bottleneck") => true,
        Some("basic") => false,
        Some(other) => {
            return refuse(
                format!("`layer_type` is \"{other}\", which is not supported"),
                "only \"basic\" and \"bottleneck\" are computed",
            );
        }
    };
    keys.only("hidden_act", &"relu".into())?;
    let mut is_on = |key| keys.get(key).and_then(Json::as_bool).unwrap_or(false);
    let settings = Resnet {
        embedding_size,
        hidden_sizes,
        depths,
        is_bottleneck,
        downsample_in_first_stage: is_on("downsample_in_first_stage"),
        downsample_in_bottleneck: is_on("downsample_in_bottleneck"),
    };
    keys.finish()?;
    let (layers, names) = settings.layers();
    Ok(HubModel {
        name: "resnet",
        kind: ModelType::Layers,
        keys: vec![("layers", Value::Array(layers))],
        family: &RESNET,
        names,
        max_length: None,
        vocabulary: 0,
        labels: labels(config),
        architecture: architecture(config),
    })
}

fn sizes(keys: &mut Keys<'_>, key: &'static str) -> Result<Vec<usize>, Refused> {
    let value = keys.get(key);
    let size = |value: &Json| {
        let size = value.as_u64()?;
        (1..=1 << 20).contains(&size).then_some(size as usize)
    };
    let sizes = value
        .and_then(Json::as_array)
        .and_then(|items| items.iter().map(size).collect::<Option<Vec<usize>>>());
    match (sizes, value) {
        (Some(sizes), _) if !sizes.is_empty() && sizes.len() <= 64 => Ok(sizes),
        (_, Some(value)) => refuse(
            format!("`{key}` is {}", short(value)),
            "a list of numbers of at least 1 is needed",
        ),
        (_, None) => refuse(
            format!("it has no `{key}`"),
            "use the `config.json` of the model",
        ),
    }
}

/// Layers that are listed one after the other, with the names of their tensors.
#[derive(Default)]
struct Listed {
    layers: Vec<Node>,
    names: Vec<(String, String)>,
}

fn text(text: &str) -> Value {
    Value::Str(text.to_owned())
}

fn node(value: Value) -> Node {
    Node {
        span: Span::default(),
        value,
    }
}

impl Listed {
    fn add(&mut self, kind: &str, name: &str, keys: Vec<(&str, Value)>) {
        let all = [("type", text(kind)), ("name", text(name))];
        let entries = all.into_iter().chain(keys).map(|(key, value)| Entry {
            key: key.to_owned(),
            key_span: Span::default(),
            node: node(value),
        });
        let table = Table {
            entries: entries.collect(),
        };
        self.layers.push(node(Value::Table(table)));
    }

    /// A convolution and a norm: `name` and `name_norm` here, and below `theirs` in the file.
    fn convolution(
        &mut self,
        name: &str,
        theirs: &str,
        (channels, kernel_size, stride): (usize, usize, usize),
        input: Option<&str>,
    ) {
        let mut keys = vec![
            ("out_channels", int(channels)),
            ("kernel_size", int(kernel_size)),
            ("stride", int(stride)),
            ("padding", int(kernel_size / 2)),
            ("bias", Value::Bool(false)),
        ];
        if let Some(input) = input {
            keys.push(("inputs", Value::Array(vec![node(text(input))])));
        }
        self.add("conv2d", name, keys);
        let norm = format!("{name}_norm");
        self.add("batch_norm", &norm, Vec::new());
        let weight = "convolution.weight";
        self.names
            .push((format!("{theirs}.{weight}"), format!("{name}.weight")));
        for tensor in ["weight", "bias", "running_mean", "running_var"] {
            let theirs = format!("{theirs}.normalization.{tensor}");
            self.names.push((theirs, format!("{norm}.{tensor}")));
        }
    }
}

/// The block of a stage, both from 1 on: the name of its last layer, and what those of its other layers begin with.
pub fn resnet_block(stage: usize, block: usize) -> String {
    format!("stage{stage}_block{block}")
}

impl Resnet {
    /// The layers, and the names of their tensors in the file with those here.
    pub fn layers(&self) -> (Vec<Node>, Vec<(String, String)>) {
        let mut listed = Listed::default();
        let stem = (self.embedding_size, 7, 2);
        listed.convolution("stem", "resnet.embedder.embedder", stem, None);
        listed.add("relu", "stem_relu", Vec::new());
        let pool = vec![
            ("kernel_size", int(3)),
            ("stride", int(2)),
            ("padding", int(1)),
        ];
        listed.add("max_pool2d", "stem_pool", pool);
        let (mut input, mut channels) = ("stem_pool".to_owned(), self.embedding_size);
        for (stage, (size, depth)) in self.hidden_sizes.iter().zip(&self.depths).enumerate() {
            for at in 0..*depth {
                let halves = at == 0 && (stage > 0 || self.downsample_in_first_stage);
                let name = resnet_block(stage + 1, at + 1);
                let theirs = format!("resnet.encoder.stages.{stage}.layers.{at}");
                let stride = if halves { 2 } else { 1 };
                self.block(
                    &mut listed,
                    (&name, &theirs),
                    &input,
                    (channels, *size),
                    stride,
                );
                (input, channels) = (name, *size);
            }
        }
        listed.add("adaptive_avg_pool2d", "pool", Vec::new());
        listed.add("flatten", "features", Vec::new());
        listed.add("linear", "classifier", Vec::new());
        listed.names.extend(RESNET.all(0));
        (listed.layers, listed.names)
    }

    /// A residual block, whose last layer has its name.
    fn block(
        &self,
        listed: &mut Listed,
        (name, theirs): (&str, &str),
        input: &str,
        (channels, size): (usize, usize),
        stride: usize,
    ) {
        let inner = (size / 4).max(1);
        let convolutions = if !self.is_bottleneck {
            vec![(size, 3, stride), (size, 3, 1)]
        } else if self.downsample_in_bottleneck {
            vec![(inner, 1, stride), (inner, 3, 1), (size, 1, 1)]
        } else {
            vec![(inner, 1, 1), (inner, 3, stride), (size, 1, 1)]
        };
        let last = convolutions.len();
        for (at, convolution) in convolutions.into_iter().enumerate() {
            let ours = format!("{name}_conv{}", at + 1);
            let from = (at == 0).then_some(input);
            listed.convolution(&ours, &format!("{theirs}.layer.{at}"), convolution, from);
            if at + 1 < last {
                listed.add("relu", &format!("{name}_relu{}", at + 1), Vec::new());
            }
        }
        let mut shortcut = input.to_owned();
        if channels != size || stride != 1 {
            let ours = format!("{name}_shortcut");
            let projection = (size, 1, stride);
            listed.convolution(
                &ours,
                &format!("{theirs}.shortcut"),
                projection,
                Some(input),
            );
            shortcut = format!("{ours}_norm");
        }
        let inputs = [format!("{name}_conv{last}_norm"), shortcut];
        let inputs = inputs.iter().map(|name| node(text(name))).collect();
        let add = vec![("inputs", Value::Array(inputs))];
        listed.add("add", &format!("{name}_sum"), add);
        listed.add("relu", name, Vec::new());
    }
}
