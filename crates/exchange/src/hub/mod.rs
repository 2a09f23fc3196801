//! A network as a folder of a model hub: the settings and the names of the library transformers.
//!
//! The other way, from a folder to a network, is `runner_core::spec::hub`; both share the table of names. A network can
//! be written if it is one of the presets that are read: [`HubNetwork::of`] finds its settings, lays out the preset
//! with them, and compares all layers.

mod config;

use std::collections::BTreeMap;
use std::fmt;

use runner_core::check::network::{Items, Layer, Network, lay_out};
use runner_core::plan::RunPlan;
use runner_core::spec::document::{Entry, Node, Table, Value};
use runner_core::spec::hub::{BERT, Family, GPT2, LLAMA, RESNET, Resnet, VIT, resnet_block};
use runner_core::spec::init::InitLayout;
use runner_core::spec::model::NetworkInputs;
use runner_core::spec::model::expand::expand;
use runner_core::spec::model::layer::{LayerKind, Norm};
use runner_core::spec::model::layer_spec::LayerSpec;
use runner_core::spec::model::preset::{ModelType, Preset};
use runner_core::spec::section::{Choice, Findings};

pub use config::{About, config, tokenizer_config};

use crate::slots::slots;
use crate::state::{StateDict, StateError};
use crate::tensors::{NamedTensor, Tensors};

/// A network that transformers has, too.
#[derive(Debug)]
pub struct HubNetwork {
    /// The preset.
    pub kind: ModelType,
    /// Its keys.
    pub keys: Vec<(&'static str, Value)>,
    family: &'static Family,
    num_layers: usize,
    /// The settings of a residual network, which is no preset.
    resnet: Option<Resnet>,
}

/// Why a network cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotWritten {
    /// It is none of the presets.
    OtherNetwork,
    /// It is a preset with a layer that was changed.
    OtherLayer {
        /// The preset.
        preset: &'static str,
        /// The layer.
        layer: String,
    },
}

impl fmt::Display for NotWritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherNetwork => f.write_str(
                "transformers has no counterpart of the network: only the presets `bert`, `gpt2`, `llama` and, with `separate = true`, `vit`, and residual networks from a folder of a hub can be written as one",
            ),
            Self::OtherLayer { preset, layer } => write!(
                f,
                "the network is not the preset `{preset}`: its layer `{layer}` differs, and transformers has no counterpart of it"
            ),
        }
    }
}

impl std::error::Error for NotWritten {}

impl HubNetwork {
    /// The settings of the network of a run.
    ///
    /// # Errors
    /// If it is none of the presets with any settings.
    pub fn of(plan: &RunPlan) -> Result<Self, NotWritten> {
        let network = &plan.network;
        let found = Settings(&network.layers);
        if let Some(resnet) = found.resnet() {
            let made = Self {
                kind: ModelType::Layers,
                keys: resnet_keys(&resnet),
                family: &RESNET,
                num_layers: 0,
                resnet: Some(resnet),
            };
            made.is_same_as(plan)?;
            return Ok(made);
        }
        let (kind, family, block, keys) = if let Some(keys) = found.gpt2() {
            (ModelType::Gpt2, &GPT2, "h", keys)
        } else if let Some(keys) = found.llama() {
            (ModelType::Llama, &LLAMA, "layers", keys)
        } else if let Some(keys) = found.bert() {
            (ModelType::Bert, &BERT, "layer", keys)
        } else if let Some(keys) = found.vit() {
            (ModelType::Vit, &VIT, "encoder_layer_", keys)
        } else {
            return Err(NotWritten::OtherNetwork);
        };
        let made = Self {
            kind,
            keys,
            family,
            num_layers: found.num_blocks(block),
            resnet: None,
        };
        made.is_same_as(plan)?;
        Ok(made)
    }

    /// Whether its items are tokens, and not images.
    pub fn takes_tokens(&self) -> bool {
        !matches!(self.kind, ModelType::Vit | ModelType::Layers)
    }

    /// Compares the layers of a run with those of the preset.
    fn is_same_as(&self, plan: &RunPlan) -> Result<(), NotWritten> {
        let mut findings = Findings::default();
        let (name, layers) = match &self.resnet {
            Some(resnet) => {
                let (layers, _) = resnet.layers();
                let layers = Entry {
                    key: "layers".to_owned(),
                    key_span: Default::default(),
                    node: Node {
                        span: Default::default(),
                        value: Value::Array(layers),
                    },
                };
                let model = Table {
                    entries: vec![layers],
                };
                let layers = expand(
                    &model,
                    Vec::new(),
                    None,
                    &NetworkInputs::default(),
                    &mut findings,
                );
                ("resnet", layers)
            }
            None => self.of_preset(&mut findings)?,
        };
        let network = &plan.network;
        let padding = network.layers.iter().find_map(|layer| match layer.kind {
            LayerKind::PaddingMask { padding } => padding.map(|padding| padding as u32),
            _ => None,
        });
        let items = Items::of(&plan.data.input, &[padding], None);
        let output = network.layers.last().map(|last| last.shape.clone());
        let same = lay_out(&layers, &items, &output.unwrap_or_default(), &[]);
        let same = same.map_err(|_| NotWritten::OtherNetwork)?;
        let differs = |(ours, theirs): &(&Layer, &Layer)| {
            let of = |layer: &Layer| {
                let Layer { kind, inputs, .. } = layer;
                // What items are padded with is only known while they are planned, and the mask has it.
                let from = inputs.iter().map(|input| (input.layer, input.part));
                (layer.name.clone(), kind.clone(), from.collect::<Vec<_>>())
            };
            let rest = |layer: &Layer| (layer.masks.clone(), layer.shape.clone(), layer.weights);
            of(ours) != of(theirs) || rest(ours) != rest(theirs)
        };
        let other = |layer: &Layer| NotWritten::OtherLayer {
            preset: name,
            layer: layer.name.clone(),
        };
        let mut both = network.layers.iter().zip(&same.layers);
        if let Some((ours, _)) = both.find(differs) {
            return Err(other(ours));
        }
        let num = network.layers.len().min(same.layers.len());
        let longer = network.layers.get(num).or(same.layers.get(num));
        longer.map_or(Ok(()), |layer| Err(other(layer)))
    }

    /// The name and the layers of the preset.
    fn of_preset(
        &self,
        findings: &mut Findings,
    ) -> Result<(&'static str, Vec<LayerSpec>), NotWritten> {
        let Some(preset) = Preset::of(self.kind) else {
            return Err(NotWritten::OtherNetwork);
        };
        let mut keys = self.keys.clone();
        keys.push(("num_layers", Value::Int(self.num_layers as i64)));
        let arguments = preset.parameters.iter().map(|parameter| {
            let set = keys.iter().find(|(key, _)| *key == parameter.key);
            let value = set.map_or_else(
                || parameter.default.value.clone(),
                |(_, value)| value.clone(),
            );
            let span = parameter.default.span;
            (parameter.key.clone(), Node { span, value })
        });
        let place = (preset.name, Default::default());
        let layers = expand(
            &preset.model,
            arguments.collect(),
            Some(place),
            &NetworkInputs::default(),
            findings,
        );
        Ok((preset.name, layers))
    }

    /// Every name of transformers with the name here.
    fn names(&self) -> Vec<(String, String)> {
        match &self.resnet {
            Some(resnet) => resnet.layers().1,
            None => self.family.all(self.num_layers),
        }
    }

    /// The value of a key of the preset.
    fn key(&self, key: &str) -> Option<&Value> {
        let mut keys = self.keys.iter();
        keys.find_map(|(known, value)| (*known == key).then_some(value))
    }

    /// The tensors of a network in Burn's layout under the names of transformers.
    ///
    /// # Errors
    /// If one is missing.
    pub fn tensors(&self, network: &Network, burn: &Tensors) -> Result<Tensors, StateError> {
        let all = self.names().into_iter();
        let theirs: BTreeMap<String, String> = all.map(|(theirs, ours)| (ours, theirs)).collect();
        let torch = StateDict::of(network).to_torch(burn)?;
        let mut written = Tensors::new();
        for slot in slots(network, InitLayout::Pytorch) {
            let missing = || StateError::Missing {
                name: slot.name.clone(),
            };
            let tensor = torch.get(&slot.exported).ok_or_else(missing)?;
            let name = theirs.get(&slot.name).ok_or_else(missing)?;
            let tensor = if self.family.is_transposed(&slot.name) && tensor.shape().len() == 2 {
                tensor.transposed()
            } else {
                tensor.clone()
            };
            // Tables that are added to every image.
            let tensor = if self.kind == ModelType::Vit && slot.name.ends_with(".value") {
                let shape = [&[1], tensor.shape()].concat();
                tensor.reshaped(shape)?
            } else {
                tensor
            };
            if let Some(norm) = name.strip_suffix("running_mean") {
                // The batches that PyTorch's norms have seen, which nothing is computed from.
                let count = format!("{norm}num_batches_tracked");
                written.push(NamedTensor::from_i64s(count, Vec::new(), &[0]))?;
            }
            written.push(tensor.named(name))?;
        }
        Ok(written)
    }
}

/// The layers of a network, from which settings are read.
struct Settings<'a>(&'a [Layer]);

fn int(size: usize) -> Value {
    Value::Int(size as i64)
}

/// The settings of a residual network, in the words of transformers.
fn resnet_keys(resnet: &Resnet) -> Keys {
    let node = |size: &usize| Node {
        span: Default::default(),
        value: int(*size),
    };
    let list = |sizes: &[usize]| Value::Array(sizes.iter().map(node).collect());
    let layer_type = if resnet.is_bottleneck {
        "bottleneck"
    } else {
        "basic"
    };
    vec![
        ("embedding_size", int(resnet.embedding_size)),
        ("hidden_sizes", list(&resnet.hidden_sizes)),
        ("depths", list(&resnet.depths)),
        ("layer_type", Value::Str(layer_type.into())),
        (
            "downsample_in_first_stage",
            Value::Bool(resnet.downsample_in_first_stage),
        ),
        (
            "downsample_in_bottleneck",
            Value::Bool(resnet.downsample_in_bottleneck),
        ),
    ]
}

type Keys = Vec<(&'static str, Value)>;

impl Settings<'_> {
    fn kind(&self, name: &str) -> Option<&LayerKind> {
        let mut layers = self.0.iter();
        layers.find_map(|layer| (layer.name == name).then_some(&layer.kind))
    }

    /// The number of copies of a named group of layers.
    fn num_blocks(&self, name: &str) -> usize {
        let is_there = |at: &usize| {
            let start = format!("{name}{at}.");
            self.0.iter().any(|layer| layer.name.starts_with(&start))
        };
        (1..).take_while(is_there).count().max(1)
    }

    /// A layer of the first copy of a named group, which has no number if there is only one.
    fn first(&self, block: &str, layer: &str) -> String {
        let numbered = format!("{block}1.{layer}");
        match self.kind(&numbered) {
            Some(_) => numbered,
            None => format!("{block}.{layer}"),
        }
    }

    fn width(&self, embedding: &str) -> Option<Value> {
        match self.kind(embedding)? {
            LayerKind::Embedding {
                embedding_dim: Some(width),
                ..
            } => Some(int(*width)),
            _ => None,
        }
    }

    fn outputs(&self, linear: &str) -> Option<Value> {
        match self.kind(linear)? {
            LayerKind::Linear {
                out_features: Some(size),
                ..
            } => Some(int(*size)),
            _ => None,
        }
    }

    fn max_length(&self, positions: &str) -> Option<Value> {
        match self.kind(positions)? {
            LayerKind::PositionEmbedding { max_length, .. } => Some(int(*max_length)),
            _ => None,
        }
    }

    fn epsilon(&self, norm: &str) -> Option<Value> {
        match self.kind(norm)? {
            LayerKind::Norm(Norm::Layer { epsilon, .. } | Norm::Rms { epsilon }) => {
                Some(Value::Float(*epsilon))
            }
            _ => None,
        }
    }

    fn dropout(&self) -> Value {
        let found = self.0.iter().find_map(|layer| match layer.kind {
            LayerKind::Dropout { probability } => Some(probability),
            _ => None,
        });
        Value::Float(found.unwrap_or(0.0))
    }

    fn gpt2(&self) -> Option<Keys> {
        let Some(LayerKind::MultiHeadAttention { num_heads, .. }) =
            self.kind(&self.first("h", "attn"))
        else {
            return None;
        };
        Some(vec![
            ("d_model", self.width("wte")?),
            ("num_heads", int(*num_heads)),
            ("feedforward_size", self.outputs(&self.first("h", "c_fc"))?),
            ("max_length", self.max_length("wpe")?),
            ("epsilon", self.epsilon("ln_f")?),
            ("dropout", self.dropout()),
        ])
    }

    fn llama(&self) -> Option<Keys> {
        let Some(LayerKind::GroupedAttention(attention)) =
            self.kind(&self.first("layers", "self_attn"))
        else {
            return None;
        };
        let rotary = attention.rotary.as_ref()?;
        let mut layers = self.0.iter();
        let head = layers.find(|layer| layer.name == "lm_head")?;
        let list = |values: &[f64]| Value::floats(values);
        let stretch = rotary.stretch.as_ref().map_or_else(Vec::new, |stretch| {
            vec![
                ("rotary_type", Value::Str(stretch.form.name().into())),
                ("rotary_length", int(stretch.length)),
                ("rotary_low", Value::Float(stretch.low)),
                ("rotary_high", Value::Float(stretch.high)),
                (
                    "rotary_attention_factor",
                    Value::Float(stretch.attention_factor),
                ),
                ("rotary_short", list(&stretch.short)),
                ("rotary_long", list(&stretch.long)),
            ]
        });
        let keys = vec![
            ("d_model", self.width("embed_tokens")?),
            ("num_heads", int(attention.num_heads)),
            ("num_kv_heads", int(attention.num_kv_heads)),
            (
                "feedforward_size",
                self.outputs(&self.first("layers", "gate_proj"))?,
            ),
            ("theta", Value::Float(rotary.theta)),
            ("rotary_scaling", Value::Float(rotary.scaling)),
            ("epsilon", self.epsilon("norm")?),
            ("tie", Value::Bool(head.weights.is_some())),
        ];
        Some([keys, stretch].concat())
    }

    fn vit(&self) -> Option<Keys> {
        let block = "encoder_layer_1";
        let attention = self.kind(&format!("{block}.multi_head_attention_1"));
        let Some(LayerKind::GroupedAttention(attention)) = attention else {
            return None;
        };
        let Some(LayerKind::Parameter { shape, .. }) = self.kind("positions") else {
            return None;
        };
        let Some(LayerKind::Conv(conv)) = self.kind("conv2d_1") else {
            return None;
        };
        let (patch_size, num_patches) = (conv.kernel_size[0], shape.first()?.checked_sub(1)?);
        Some(vec![
            ("image_size", int(patch_size * num_patches.isqrt())),
            ("patch_size", int(patch_size)),
            ("d_model", int(*shape.get(1)?)),
            ("num_heads", int(attention.num_heads)),
            (
                "feedforward_size",
                self.outputs(&format!("{block}.linear_1"))?,
            ),
            ("epsilon", self.epsilon("layer_norm_1")?),
            ("separate", Value::Bool(true)),
            ("dropout", self.dropout()),
        ])
    }

    /// The settings of a residual network, as folders of hubs are opened.
    fn resnet(&self) -> Option<Resnet> {
        let conv = |name: &str| match self.kind(name)? {
            LayerKind::Conv(conv) => Some(conv),
            _ => None,
        };
        let of = |stage, block, at| conv(&format!("{}_conv{at}", resnet_block(stage, block)));
        let depth = |stage| {
            (1..)
                .take_while(|block| of(stage, *block, 1).is_some())
                .count()
        };
        let depths: Vec<usize> = (1..).map(depth).take_while(|depth| *depth > 0).collect();
        let is_bottleneck = of(1, 1, 3).is_some();
        let last = if is_bottleneck { 3 } else { 2 };
        let sizes = (1..=depths.len()).map(|stage| of(stage, 1, last)?.out_channels);
        let halves =
            |stage, at| of(stage, 1, at).is_some_and(|conv| conv.stride.first() == Some(&2));
        let mut stages = 1..=depths.len();
        Some(Resnet {
            embedding_size: conv("stem")?.out_channels?,
            hidden_sizes: sizes
                .collect::<Option<_>>()
                .filter(|all: &Vec<_>| !all.is_empty())?,
            is_bottleneck,
            downsample_in_first_stage: (1..=last).any(|at| halves(1, at)),
            downsample_in_bottleneck: is_bottleneck && stages.any(|stage| halves(stage, 1)),
            depths,
        })
    }

    fn bert(&self) -> Option<Keys> {
        let Some(LayerKind::GroupedAttention(attention)) =
            self.kind(&self.first("layer", "attention"))
        else {
            return None;
        };
        let Some(LayerKind::Parameter { shape, .. }) = self.kind("token_type_embeddings") else {
            return None;
        };
        let is_of_tokens = self.kind("transform").is_some();
        let head = if is_of_tokens { "tokens" } else { "target" };
        Some(vec![
            ("head", Value::Str(head.into())),
            ("d_model", self.width("word_embeddings")?),
            ("num_heads", int(attention.num_heads)),
            (
                "feedforward_size",
                self.outputs(&self.first("layer", "intermediate"))?,
            ),
            ("max_length", self.max_length("position_embeddings")?),
            ("segments", int(*shape.first()?)),
            ("epsilon", self.epsilon("embeddings_norm")?),
            ("dropout", self.dropout()),
            ("attention_dropout", Value::Float(attention.dropout)),
            ("mask", Value::Bool(self.kind("real").is_some())),
        ])
    }
}
