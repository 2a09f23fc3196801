//! GPT-2.

use serde_json::{Map, Value as Json};

use super::config::{Keys, Refused, refuse};
use super::models::{HubModel, architecture, int};
use super::names::GPT2;
use crate::spec::document::Value;
use crate::spec::model::preset::ModelType;

/// GPT-2, whose linear layers are convolutions of size 1 in the file: [in, out].
pub(super) fn gpt2(config: &Map<String, Json>) -> Result<HubModel, Refused> {
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
    let inner = keys.size_or("n_inner", 4 * d_model)?;
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
