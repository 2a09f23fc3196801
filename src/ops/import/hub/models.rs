//! The networks of hubs as presets.

use serde_json::{Map, Value as Json};

use super::config::{Keys, Refused, refuse, short};
use runner_core::spec::document::Value;

/// A preset with the keys that differ from its defaults, and how its tensors are named in the file.
pub(super) struct HubModel {
    pub(super) kind: &'static str,
    pub(super) keys: Vec<(&'static str, Value)>,
    pub(super) remap: Vec<[String; 2]>,
    /// Names after `remap` of matrices that the file has the other way round.
    pub(super) transpose: Option<&'static str>,
    pub(super) vocabulary: usize,
}

/// The preset that a configuration asks for.
pub(super) fn model(config: &Map<String, Json>) -> Result<HubModel, Refused> {
    if config.contains_key("auto_map") {
        return refuse(
            "`auto_map` asks for code of the model to be executed",
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
        _ => refuse(
            format!("`model_type` is \"{kind}\""),
            "the supported networks are \"gpt2\", \"llama\" and \"mistral\"; others can come as ONNX: `runner import onnx`",
        ),
    }
}

/// GPT-2, whose linear layers are convolutions of size 1 in the file: [in, out].
fn gpt2(config: &Map<String, Json>) -> Result<HubModel, Refused> {
    let mut keys = Keys {
        config,
        read: vec!["summary_type", "task_specific_params"],
    };
    for key in [
        "summary_activation",
        "summary_first_dropout",
        "summary_proj_to_labels",
        "summary_use_proj",
        "n_ctx",
    ] {
        keys.get(key);
    }
    let d_model = keys.size("n_embd")?;
    let num_layers = keys.size("n_layer")?;
    let num_heads = keys.size("n_head")?;
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
        let found = keys.get(key).and_then(Json::as_f64).unwrap_or(0.1);
        if !(0.0..1.0).contains(&found) || dropout.is_some_and(|dropout| dropout != found) {
            return refuse(
                format!("`{key}` is {found}"),
                "all dropouts need one probability below 1",
            );
        }
        dropout = Some(found);
    }
    keys.finish()?;
    let int = |size: usize| Value::Int(size as i64);
    let rename = |from: &str, to: &str| [from.to_owned(), to.to_owned()];
    let mut remap = vec![
        rename(r"^transformer\.", ""),
        rename(r"^wpe\.weight$", "wpe.value"),
    ];
    // Copies of a layer are numbered from 1.
    for at in 0..num_layers {
        remap.push([format!(r"^h\.{at}\."), format!("h{}.", at + 1)]);
    }
    remap.extend([
        rename(r"\.c_attn\.", ".in_proj_"),
        rename(r"\.attn\.c_proj\.", ".attn.out_proj."),
        rename(r"\.mlp\.", "."),
    ]);
    Ok(HubModel {
        kind: "gpt2",
        keys: vec![
            ("d_model", int(d_model)),
            ("num_layers", int(num_layers)),
            ("num_heads", int(num_heads)),
            ("feedforward_size", int(inner)),
            ("max_length", int(max_length)),
            ("epsilon", Value::Float(epsilon)),
            ("dropout", Value::Float(dropout.unwrap_or(0.0))),
        ],
        remap,
        transpose: Some(r"(in_proj_weight|out_proj\.weight|c_fc\.weight|c_proj\.weight)$"),
        vocabulary,
    })
}

/// LLaMA and models with its network.
fn llama(config: &Map<String, Json>) -> Result<HubModel, Refused> {
    let mut keys = Keys {
        config,
        read: Vec::new(),
    };
    let d_model = keys.size("hidden_size")?;
    let num_layers = keys.size("num_hidden_layers")?;
    let num_heads = keys.size("num_attention_heads")?;
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
    let (theta, rotary_scaling) = rotary(&mut keys)?;
    let epsilon = keys.number("rms_norm_eps", 1e-6)?;
    let tie = keys
        .get("tie_word_embeddings")
        .and_then(Json::as_bool)
        .unwrap_or(false);
    keys.finish()?;
    let int = |size: usize| Value::Int(size as i64);
    let mut remap = vec![[r"^model\.".to_owned(), String::new()]];
    // Copies of a layer are numbered from 1.
    for at in 0..num_layers {
        remap.push([format!(r"^layers\.{at}\."), format!("layers{}.", at + 1)]);
    }
    remap.push([r"\.mlp\.".to_owned(), ".".to_owned()]);
    Ok(HubModel {
        kind: "llama",
        keys: vec![
            ("d_model", int(d_model)),
            ("num_layers", int(num_layers)),
            ("num_heads", int(num_heads)),
            ("num_kv_heads", int(num_kv_heads)),
            ("feedforward_size", int(inner)),
            ("theta", Value::Float(theta)),
            ("rotary_scaling", Value::Float(rotary_scaling)),
            ("epsilon", Value::Float(epsilon)),
            ("tie", Value::Bool(tie)),
        ],
        remap,
        transpose: None,
        vocabulary,
    })
}

/// The base of rotary angles, and what positions are divided by. Newer files have both in one table.
fn rotary(keys: &mut Keys<'_>) -> Result<(f64, f64), Refused> {
    let mut theta = keys.number("rope_theta", 10_000.0)?;
    let mut scaling = 1.0;
    for key in ["rope_scaling", "rope_parameters"] {
        let Some(table) = keys.get(key) else {
            continue;
        };
        let named = ["rope_type", "type"]
            .into_iter()
            .find_map(|name| table.get(name));
        let kind = named.and_then(Json::as_str).unwrap_or("default");
        let factor = table.get("factor").and_then(Json::as_f64);
        theta = table
            .get("rope_theta")
            .and_then(Json::as_f64)
            .unwrap_or(theta);
        match (kind, factor) {
            ("default", _) => {}
            ("linear", Some(factor)) if factor > 0.0 => scaling = factor,
            _ => {
                return refuse(
                    format!("`{key}` is {}, which is not supported", short(table)),
                    "only \"linear\" scaling is computed, `rotary_scaling` of the model",
                );
            }
        }
    }
    Ok((theta, scaling))
}
