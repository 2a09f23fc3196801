//! LLaMA, and models with its network.

use serde_json::{Map, Value as Json};

use super::config::{Keys, Refused, refuse};
use super::models::{HubModel, architecture, int};
use super::names::LLAMA;
use super::rotary::rotary;
use crate::spec::document::Value;
use crate::spec::model::preset::ModelType;

/// LLaMA and models with its network.
pub(super) fn llama(config: &Map<String, Json>) -> Result<HubModel, Refused> {
    // Rotations need no largest number of positions.
    let mut keys = Keys::new(config, &["max_position_embeddings"]);
    let d_model = keys.size("hidden_size")?;
    let num_layers = keys.size("num_hidden_layers")?;
    let num_heads = keys.heads("num_attention_heads", d_model)?;
    // What transformers takes a missing key for differs.
    let is_mistral = config.get("model_type") == Some(&"mistral".into());
    let num_kv_heads = if is_mistral { 8 } else { num_heads };
    let num_kv_heads = keys.size_or("num_key_value_heads", num_kv_heads)?;
    let inner = keys.size("intermediate_size")?;
    let vocabulary = keys.size("vocab_size")?;
    keys.only("hidden_act", &"silu".into())?;
    keys.only("attention_bias", &false.into())?;
    keys.only("mlp_bias", &false.into())?;
    keys.only("head_dim", &(d_model / num_heads).into())?;
    keys.only("sliding_window", &Json::Null)?;
    if is_mistral && !config.contains_key("sliding_window") {
        return refuse(
            "`sliding_window` is missing, which is a window of 4096 positions for `mistral` and is not supported",
            "for texts of at most 4096 tokens, which such a window does not change, write `\"sliding_window\": null` into a copy of the file",
        );
    }
    keys.no_dropout("attention_dropout")?;
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
