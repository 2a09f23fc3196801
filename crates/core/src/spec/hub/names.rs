//! How the tensors of a network are named in the files of hubs, and here: one table for both directions.

use std::collections::BTreeMap;

/// The names of a type of network.
#[derive(Debug, PartialEq, Eq)]
pub struct Family {
    /// What names begin with, unless the file has only the network without its head.
    prefix: &'static str,
    /// Names in the file with names here. `{}` is the number of a layer, from 0 in the file and from 1 here, where a single
    /// layer with a name has none; `*` is `weight`, and then `bias`.
    tensors: &'static [(&'static str, &'static str)],
    /// The ends of names here of matrices that the file has the other way round.
    transposed: &'static [&'static str],
    /// The ends of names of tensors that follow from others, or from the settings.
    derived: &'static [&'static str],
    /// The layers that `head = "new"` trains from random values, and then those that a file without a head may lack.
    pub head: &'static [&'static str],
    /// The table of tokens.
    pub table: &'static str,
}

/// GPT-2. Masks, and a copy of the table of tokens, are in older files.
pub const GPT2: Family = Family {
    prefix: "transformer.",
    tensors: &[
        ("transformer.wte.weight", "wte.weight"),
        ("transformer.wpe.weight", "wpe.value"),
        ("transformer.h.{}.ln_1.*", "h{}.ln_1.*"),
        ("transformer.h.{}.attn.c_attn.*", "h{}.attn.in_proj_*"),
        ("transformer.h.{}.attn.c_proj.*", "h{}.attn.out_proj.*"),
        ("transformer.h.{}.ln_2.*", "h{}.ln_2.*"),
        ("transformer.h.{}.mlp.c_fc.*", "h{}.c_fc.*"),
        ("transformer.h.{}.mlp.c_proj.*", "h{}.c_proj.*"),
        ("transformer.ln_f.*", "ln_f.*"),
    ],
    transposed: &[
        "in_proj_weight",
        "out_proj.weight",
        "c_fc.weight",
        "c_proj.weight",
    ],
    derived: &["attn.bias", "attn.masked_bias", "lm_head.weight"],
    head: &[],
    table: "wte.weight",
};

/// LLaMA.
pub const LLAMA: Family = Family {
    prefix: "model.",
    tensors: &[
        ("model.embed_tokens.weight", "embed_tokens.weight"),
        (
            "model.layers.{}.input_layernorm.weight",
            "layers{}.input_layernorm.weight",
        ),
        (
            "model.layers.{}.self_attn.q_proj.weight",
            "layers{}.self_attn.q_proj.weight",
        ),
        (
            "model.layers.{}.self_attn.k_proj.weight",
            "layers{}.self_attn.k_proj.weight",
        ),
        (
            "model.layers.{}.self_attn.v_proj.weight",
            "layers{}.self_attn.v_proj.weight",
        ),
        (
            "model.layers.{}.self_attn.o_proj.weight",
            "layers{}.self_attn.o_proj.weight",
        ),
        (
            "model.layers.{}.post_attention_layernorm.weight",
            "layers{}.post_attention_layernorm.weight",
        ),
        (
            "model.layers.{}.mlp.gate_proj.weight",
            "layers{}.gate_proj.weight",
        ),
        (
            "model.layers.{}.mlp.up_proj.weight",
            "layers{}.up_proj.weight",
        ),
        (
            "model.layers.{}.mlp.down_proj.weight",
            "layers{}.down_proj.weight",
        ),
        ("model.norm.weight", "norm.weight"),
        ("lm_head.weight", "lm_head.weight"),
    ],
    transposed: &[],
    derived: &["rotary_emb.inv_freq", "lm_head.weight"],
    head: &[],
    table: "embed_tokens.weight",
};

/// BERT with either head. The weights of the one that is not trained, and of the prediction of the next sentence, are
/// left out.
pub const BERT: Family = Family {
    prefix: "bert.",
    tensors: &[
        (
            "bert.embeddings.word_embeddings.weight",
            "word_embeddings.weight",
        ),
        (
            "bert.embeddings.position_embeddings.weight",
            "position_embeddings.value",
        ),
        (
            "bert.embeddings.token_type_embeddings.weight",
            "token_type_embeddings.value",
        ),
        ("bert.embeddings.LayerNorm.*", "embeddings_norm.*"),
        (
            "bert.encoder.layer.{}.attention.self.query.*",
            "layer{}.attention.q_proj.*",
        ),
        (
            "bert.encoder.layer.{}.attention.self.key.*",
            "layer{}.attention.k_proj.*",
        ),
        (
            "bert.encoder.layer.{}.attention.self.value.*",
            "layer{}.attention.v_proj.*",
        ),
        (
            "bert.encoder.layer.{}.attention.output.dense.*",
            "layer{}.attention.o_proj.*",
        ),
        (
            "bert.encoder.layer.{}.attention.output.LayerNorm.*",
            "layer{}.attention_norm.*",
        ),
        (
            "bert.encoder.layer.{}.intermediate.dense.*",
            "layer{}.intermediate.*",
        ),
        ("bert.encoder.layer.{}.output.dense.*", "layer{}.output.*"),
        (
            "bert.encoder.layer.{}.output.LayerNorm.*",
            "layer{}.output_norm.*",
        ),
        ("bert.pooler.dense.*", "pooler.*"),
        ("classifier.*", "classifier.*"),
        ("cls.predictions.transform.dense.*", "transform.*"),
        ("cls.predictions.transform.LayerNorm.*", "transform_norm.*"),
        ("cls.predictions.bias", "decoder.bias"),
    ],
    transposed: &[],
    derived: &[
        "embeddings.position_ids",
        "cls.predictions.decoder.weight",
        "cls.predictions.decoder.bias",
        "cls.seq_relationship.weight",
        "cls.seq_relationship.bias",
    ],
    head: &[
        "classifier",
        "transform",
        "transform_norm",
        "decoder",
        "pooler",
    ],
    table: "word_embeddings.weight",
};

/// A vision transformer that classifies images. The tables of its class token and of its positions have a first axis of
/// size 1 in the file.
pub const VIT: Family = Family {
    prefix: "vit.",
    tensors: &[
        ("vit.embeddings.cls_token", "class_token.value"),
        ("vit.embeddings.position_embeddings", "positions.value"),
        ("vit.embeddings.patch_embeddings.projection.*", "conv2d_1.*"),
        (
            "vit.encoder.layer.{}.layernorm_before.*",
            "encoder_layer_{}.layer_norm_1.*",
        ),
        (
            "vit.encoder.layer.{}.attention.attention.query.*",
            "encoder_layer_{}.multi_head_attention_1.q_proj.*",
        ),
        (
            "vit.encoder.layer.{}.attention.attention.key.*",
            "encoder_layer_{}.multi_head_attention_1.k_proj.*",
        ),
        (
            "vit.encoder.layer.{}.attention.attention.value.*",
            "encoder_layer_{}.multi_head_attention_1.v_proj.*",
        ),
        (
            "vit.encoder.layer.{}.attention.output.dense.*",
            "encoder_layer_{}.multi_head_attention_1.o_proj.*",
        ),
        (
            "vit.encoder.layer.{}.layernorm_after.*",
            "encoder_layer_{}.layer_norm_2.*",
        ),
        (
            "vit.encoder.layer.{}.intermediate.dense.*",
            "encoder_layer_{}.linear_1.*",
        ),
        (
            "vit.encoder.layer.{}.output.dense.*",
            "encoder_layer_{}.linear_2.*",
        ),
        ("vit.layernorm.*", "layer_norm_1.*"),
        ("classifier.*", "linear_1.*"),
    ],
    transposed: &[],
    derived: &["pooler.dense.weight", "pooler.dense.bias"],
    head: &["linear_1"],
    table: "",
};

/// The last layer of a residual network; the names of the others depend on its settings.
pub const RESNET: Family = Family {
    prefix: "resnet.",
    tensors: &[("classifier.1.*", "classifier.*")],
    transposed: &[],
    derived: &[],
    head: &["classifier"],
    table: "",
};

impl Family {
    /// Every name in the file with the name here, for a number of layers.
    pub fn all(&self, num_layers: usize) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for (theirs, ours) in self.tensors {
            let copies = if theirs.contains("{}") { num_layers } else { 1 };
            let kinds: &[&str] = if theirs.contains('*') {
                &["weight", "bias"]
            } else {
                &[""]
            };
            for at in 0..copies {
                for kind in kinds {
                    let theirs = theirs.replace("{}", &at.to_string()).replace('*', kind);
                    let number = if copies == 1 && !ours.contains("_{}") {
                        String::new()
                    } else {
                        (at + 1).to_string()
                    };
                    let ours = ours.replace("{}", &number).replace('*', kind);
                    all.push((theirs, ours));
                }
            }
        }
        all
    }

    /// Whether the network can have a head of its own for tokens.
    pub fn has_head(&self) -> bool {
        let mut tensors = self.tensors.iter();
        tensors.any(|(_, ours)| *ours == "lm_head.weight")
    }

    /// Whether the file has a matrix, by its name here, the other way round.
    pub fn is_transposed(&self, ours: &str) -> bool {
        self.transposed.iter().any(|end| ours.ends_with(end))
    }
}

/// The names of a network's tensors in the file of a hub.
#[derive(Clone, Debug, PartialEq)]
pub struct HubNames {
    /// The type of network.
    pub family: &'static Family,
    /// Names here by names in the file.
    names: BTreeMap<String, String>,
    /// Whether the head begins with random values.
    pub is_head_new: bool,
    /// The names of the classes of the file by number, if it names any.
    pub labels: Vec<String>,
    /// The number of tokens.
    pub vocabulary: usize,
    /// The patches along a side of the images of the file, if its table of positions is interpolated.
    pub positions: Option<usize>,
}

impl HubNames {
    /// The names of a model.
    pub(super) fn new(model: &super::HubModel, is_head_new: bool) -> Self {
        let family = model.family;
        let mut names = BTreeMap::new();
        for (theirs, ours) in &model.names {
            if let Some(bare) = theirs.strip_prefix(family.prefix) {
                names.insert(bare.to_owned(), ours.clone());
            }
            names.insert(theirs.clone(), ours.clone());
        }
        Self {
            family,
            names,
            is_head_new,
            labels: model.labels.clone(),
            vocabulary: model.vocabulary,
            positions: None,
        }
    }

    /// Whether a tensor of the network, by its name here, is interpolated from one of the file, which has this shape.
    pub fn is_interpolated(&self, ours: &str, theirs: &[usize]) -> bool {
        let Some(side) = self.positions else {
            return false;
        };
        ours == "positions.value" && matches!(*theirs, [1, rows, _] if rows == side * side + 1)
    }

    /// The name here of a tensor of the file. Norms of the oldest files have `gamma` and `beta`.
    pub fn ours(&self, theirs: &str) -> Option<&str> {
        let known = |name: &str| self.names.get(name).map(String::as_str);
        let renamed = |old: &str, new: &str| {
            let start = theirs.strip_suffix(old)?;
            known(&format!("{start}{new}"))
        };
        let found = known(theirs).or_else(|| renamed("LayerNorm.gamma", "LayerNorm.weight"));
        found.or_else(|| renamed("LayerNorm.beta", "LayerNorm.bias"))
    }

    /// Whether a tensor of the file that the network has no place for changes nothing: it follows from others, or
    /// belongs to another head.
    pub fn is_needless(&self, theirs: &str) -> bool {
        let family = self.family;
        let is_derived = family.derived.iter().any(|end| theirs.ends_with(end));
        let is_of_head = |ours: &str| family.head.contains(&layer_of(ours));
        is_derived || self.is_head_new || self.ours(theirs).is_some_and(is_of_head)
    }

    /// Whether a tensor of the network, by its name here, begins with random values. A pooler does only if the file has
    /// none.
    pub fn is_new(&self, ours: &str, is_in_file: bool) -> bool {
        let layer = layer_of(ours);
        self.is_head_new && self.is_of_head(ours) && !(layer == "pooler" && is_in_file)
    }

    /// Whether a tensor of the network is of its head.
    pub fn is_of_head(&self, ours: &str) -> bool {
        self.family.head.contains(&layer_of(ours))
    }
}

/// The layer of a tensor.
fn layer_of(ours: &str) -> &str {
    ours.rsplit_once('.').map_or(ours, |(layer, _)| layer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_on_both_sides() {
        for family in [&GPT2, &LLAMA, &BERT, &VIT] {
            let all = family.all(3);
            let (theirs, ours): (BTreeMap<_, _>, BTreeMap<_, _>) = all
                .iter()
                .map(|(theirs, ours)| ((theirs, ()), (ours, ())))
                .unzip();
            assert_eq!((theirs.len(), ours.len()), (all.len(), all.len()));
            assert!(family.table.is_empty() || ours.contains_key(&family.table.to_owned()));
        }
    }
}
