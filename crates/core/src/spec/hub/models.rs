//! The networks of hubs as presets.

use serde_json::{Map, Value as Json};

use super::config::{Keys, Refused, refuse};
use super::names::{BERT, Family, GPT2, LLAMA};
use super::rotary::rotary;
use super::vision::{resnet, vit};
use crate::spec::document::Value;
use crate::spec::model::preset::ModelType;

/// A preset with the keys that a configuration sets.
#[derive(Clone, Debug)]
pub struct HubModel {
    /// Its name in messages.
    pub name: &'static str,
    /// The preset; `layers` if the keys have the layers.
    pub kind: ModelType,
    /// Its keys.
    pub keys: Vec<(&'static str, Value)>,
    /// How its tensors are named in the file.
    pub family: &'static Family,
    /// The names of its tensors in the file, with those here.
    pub names: Vec<(String, String)>,
    /// The largest number of tokens of an item, if it is limited.
    pub max_length: Option<usize>,
    /// The number of its tokens.
    pub vocabulary: usize,
    /// The names of its classes by number, if the configuration names any.
    pub labels: Vec<String>,
    /// The network with its head, such as `BertForMaskedLM`, if the configuration says it.
    pub architecture: Option<String>,
}

/// The networks that are supported, for messages.
const SUPPORTED: &str = "the supported networks are \"bert\", \"gpt2\", \"llama\", \"mistral\", \"resnet\" and \"vit\"; others can come as ONNX: `runner import onnx`";

/// The preset that a configuration asks for.
pub(super) fn model(config: &Map<String, Json>) -> Result<HubModel, Refused> {
    if config.contains_key("auto_map") || config.contains_key("trust_remote_code") {
        let key = ["auto_map", "trust_remote_code"]
            .into_iter()
            .find(|key| config.contains_key(*key))
            .unwrap_or_default();
        return refuse(
            format!("`{key}` asks for code of the model to be executed"),
            "no code from a model is executed: use a model whose network is built in",
        );
    }
    let Some(kind) = config.get("model_type").and_then(Json::as_str) else {
        return refuse(
            "it has no `model_type`",
            "use the `config.json` of the model",
        );
    };
    match kind {
        "llama" | "mistral" => llama(config),
        "gpt2" => gpt2(config),
        "bert" => bert(config),
        "vit" => vit(config),
        "resnet" => resnet(config),
        _ => refuse(format!("`model_type` is \"{kind}\""), SUPPORTED),
    }
}

pub(super) fn int(size: usize) -> Value {
    Value::Int(size as i64)
}

/// The names of classes by number; none if they have only their numbers as names.
pub(super) fn labels(config: &Map<String, Json>) -> Vec<String> {
    let Some(table) = config.get("id2label").and_then(Json::as_object) else {
        return Vec::new();
    };
    let name = |at: usize| table.get(&at.to_string()).and_then(Json::as_str);
    let names = (0..table.len()).map_while(name).map(str::to_owned);
    let names: Vec<String> = names.collect();
    let is_numbered = |(at, name): (usize, &String)| *name == format!("LABEL_{at}");
    if names.iter().enumerate().all(is_numbered) {
        return Vec::new();
    }
    names
}

pub(super) fn architecture(config: &Map<String, Json>) -> Option<String> {
    let named = config.get("architectures")?.as_array()?.first()?;
    named.as_str().map(str::to_owned)
}

/// GPT-2, whose linear layers are convolutions of size 1 in the file: [in, out].
fn gpt2(config: &Map<String, Json>) -> Result<HubModel, Refused> {
    let mut keys = Keys::new(
        config,
        &[
            "summary_type",
            "task_specific_params",
            "summary_activation",
            "summary_first_dropout",
            "summary_proj_to_labels",
            "summary_use_proj",
            "n_ctx",
        ],
    );
    let d_model = keys.size("n_embd")?;
    let num_layers = keys.size("n_layer")?;
    let num_heads = keys.heads("n_head", d_model)?;
    let max_length = keys.size("n_positions")?;
    let vocabulary = keys.size("vocab_size")?;
    let inner = match keys.get("n_inner") {
        Some(_) => keys.size("n_inner")?,
        None => 4 * d_model,
    };
    keys.only("activation_function", &"gelu_new".into())?;
    keys.only("scale_attn_weights", &true.into())?;
    keys.only("tie_word_embeddings", &true.into())?;
    keys.only("add_cross_attention", &false.into())?;
    let epsilon = keys.number("layer_norm_epsilon", 1e-5)?;
    // One number for all dropouts, as in every published model.
    let mut dropout = None;
    for key in ["resid_pdrop", "embd_pdrop", "attn_pdrop"] {
        let found = keys.dropout(key, 0.1)?;
        if dropout.is_some_and(|dropout| dropout != found) {
            return refuse(
                format!("`{key}` is {found}"),
                "all dropouts need one probability below 1",
            );
        }
        dropout = Some(found);
    }
    keys.finish()?;
    Ok(HubModel {
        name: "gpt2",
        kind: ModelType::Gpt2,
        keys: vec![
            ("d_model", int(d_model)),
            ("num_layers", int(num_layers)),
            ("num_heads", int(num_heads)),
            ("feedforward_size", int(inner)),
            ("max_length", int(max_length)),
            ("epsilon", Value::Float(epsilon)),
            ("dropout", Value::Float(dropout.unwrap_or(0.0))),
        ],
        family: &GPT2,
        names: GPT2.all(num_layers),
        max_length: Some(max_length),
        vocabulary,
        labels: Vec::new(),
        architecture: architecture(config),
    })
}

/// LLaMA and models with its network.
fn llama(config: &Map<String, Json>) -> Result<HubModel, Refused> {
    // Rotations need no largest number of positions.
    let mut keys = Keys::new(config, &["max_position_embeddings"]);
    let d_model = keys.size("hidden_size")?;
    let num_layers = keys.size("num_hidden_layers")?;
    let num_heads = keys.heads("num_attention_heads", d_model)?;
    let num_kv_heads = match keys.get("num_key_value_heads") {
        Some(_) => keys.size("num_key_value_heads")?,
        None => num_heads,
    };
    let inner = keys.size("intermediate_size")?;
    let vocabulary = keys.size("vocab_size")?;
    keys.only("hidden_act", &"silu".into())?;
    keys.only("attention_bias", &false.into())?;
    keys.only("mlp_bias", &false.into())?;
    keys.only("head_dim", &(d_model / num_heads).into())?;
    keys.only("sliding_window", &Json::Null)?;
    if keys.dropout("attention_dropout", 0.0)? != 0.0 {
        keys.only("attention_dropout", &0.0.into())?;
    }
    let rotary = rotary(&mut keys)?;
    let epsilon = keys.number("rms_norm_eps", 1e-6)?;
    let tie = keys
        .get("tie_word_embeddings")
        .and_then(Json::as_bool)
        .unwrap_or(false);
    keys.finish()?;
    let sizes = vec![
        ("d_model", int(d_model)),
        ("num_layers", int(num_layers)),
        ("num_heads", int(num_heads)),
        ("num_kv_heads", int(num_kv_heads)),
        ("feedforward_size", int(inner)),
        ("epsilon", Value::Float(epsilon)),
        ("tie", Value::Bool(tie)),
    ];
    Ok(HubModel {
        name: "llama",
        kind: ModelType::Llama,
        keys: [sizes, rotary].concat(),
        family: &LLAMA,
        names: LLAMA.all(num_layers),
        max_length: None,
        vocabulary,
        labels: Vec::new(),
        architecture: architecture(config),
    })
}

/// BERT, whose head depends on what is trained.
fn bert(config: &Map<String, Json>) -> Result<HubModel, Refused> {
    // A pooler of convolutions, which the code that reads these keys does not have.
    let mut keys = Keys::new(
        config,
        &[
            "directionality",
            "pooler_fc_size",
            "pooler_num_attention_heads",
            "pooler_num_fc_layers",
            "pooler_size_per_head",
            "pooler_type",
        ],
    );
    let d_model = keys.size("hidden_size")?;
    let num_layers = keys.size("num_hidden_layers")?;
    let num_heads = keys.heads("num_attention_heads", d_model)?;
    let inner = keys.size("intermediate_size")?;
    let max_length = keys.size("max_position_embeddings")?;
    let segments = match keys.get("type_vocab_size") {
        Some(_) => keys.size("type_vocab_size")?,
        None => 2,
    };
    let vocabulary = keys.size("vocab_size")?;
    keys.only("hidden_act", &"gelu".into())?;
    keys.only("position_embedding_type", &"absolute".into())?;
    keys.only("is_decoder", &false.into())?;
    keys.only("add_cross_attention", &false.into())?;
    keys.only("tie_word_embeddings", &true.into())?;
    keys.only("chunk_size_feed_forward", &0.into())?;
    let epsilon = keys.number("layer_norm_eps", 1e-12)?;
    let dropout = keys.dropout("hidden_dropout_prob", 0.1)?;
    let attention_dropout = keys.dropout("attention_probs_dropout_prob", 0.1)?;
    keys.only("classifier_dropout", &dropout.into())?;
    keys.finish()?;
    Ok(HubModel {
        name: "bert",
        kind: ModelType::Bert,
        keys: vec![
            ("d_model", int(d_model)),
            ("num_layers", int(num_layers)),
            ("num_heads", int(num_heads)),
            ("feedforward_size", int(inner)),
            ("max_length", int(max_length)),
            ("segments", int(segments)),
            ("epsilon", Value::Float(epsilon)),
            ("dropout", Value::Float(dropout)),
            ("attention_dropout", Value::Float(attention_dropout)),
        ],
        family: &BERT,
        names: BERT.all(num_layers),
        max_length: Some(max_length),
        vocabulary,
        labels: labels(config),
        architecture: architecture(config),
    })
}
