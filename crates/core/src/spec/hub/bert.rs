//! BERT.

use serde_json::{Map, Value as Json};

use super::config::{Keys, Refused};
use super::models::{HubModel, architecture, int, labels};
use super::names::BERT;
use crate::spec::document::Value;
use crate::spec::model::preset::ModelType;

/// BERT, whose head depends on what is trained.
pub(super) fn bert(config: &Map<String, Json>) -> Result<HubModel, Refused> {
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
    let segments = keys.size_or("type_vocab_size", 2)?;
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
