//! `config.json` and `tokenizer_config.json`.

use serde_json::{Map, Value as Json, json};

use super::HubNetwork;
use runner_core::data::encode::tokenizer::chat::{ChatTemplate, SPECIAL_TOKENS};
use runner_core::spec::model::preset::ModelType;

/// What a configuration says besides the settings of the network.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The number of tokens.
    pub vocabulary: usize,
    /// The number of a token that fills short items, if the tokenizer has one.
    pub padding: Option<i32>,
    /// The numbers of the tokens that end a text or a turn.
    pub ends: Vec<i32>,
    /// The channels of images.
    pub num_channels: usize,
    /// The names of classes or targets, if items have any.
    pub labels: Vec<String>,
    /// What the outputs mean, in transformers' words.
    pub problem: Option<&'static str>,
    /// The type of the numbers, in PyTorch's words.
    pub dtype: &'static str,
}

/// The settings of a network, as transformers reads them.
pub fn config(network: &HubNetwork, about: &About) -> Json {
    let key = |key: &str| network.key(key).map_or(Json::Null, |value| value.to_json());
    let mut config = Map::new();
    let mut add = |key: &str, value: Json| config.insert(key.to_owned(), value);
    add("dtype", json!(about.dtype));
    add("torch_dtype", json!(about.dtype));
    if network.takes_tokens() {
        add("vocab_size", json!(about.vocabulary));
        add("pad_token_id", json!(about.padding));
        // Without them, transformers takes numbers of its own, which are other tokens here.
        add("bos_token_id", Json::Null);
        add(
            "eos_token_id",
            match about.ends[..] {
                [] => Json::Null,
                [end] => json!(end),
                _ => json!(about.ends),
            },
        );
    }
    let layers = json!(network.num_layers);
    let keys: Vec<(&str, Json)> = match network.kind {
        ModelType::Gpt2 => vec![
            ("architectures", json!(["GPT2LMHeadModel"])),
            ("model_type", json!("gpt2")),
            ("n_embd", key("d_model")),
            ("n_layer", layers),
            ("n_head", key("num_heads")),
            ("n_inner", key("feedforward_size")),
            ("n_positions", key("max_length")),
            ("activation_function", json!("gelu_new")),
            ("layer_norm_epsilon", key("epsilon")),
            ("resid_pdrop", key("dropout")),
            ("embd_pdrop", key("dropout")),
            ("attn_pdrop", key("dropout")),
            ("tie_word_embeddings", json!(true)),
        ],
        ModelType::Bert => {
            let is_of_tokens = key("head") == json!("tokens");
            let architecture = if is_of_tokens {
                "BertForMaskedLM"
            } else {
                "BertForSequenceClassification"
            };
            let mut keys = vec![
                ("architectures", json!([architecture])),
                ("model_type", json!("bert")),
                ("hidden_size", key("d_model")),
                ("num_hidden_layers", layers),
                ("num_attention_heads", key("num_heads")),
                ("intermediate_size", key("feedforward_size")),
                ("max_position_embeddings", key("max_length")),
                ("type_vocab_size", key("segments")),
                ("hidden_act", json!("gelu")),
                ("layer_norm_eps", key("epsilon")),
                ("hidden_dropout_prob", key("dropout")),
                ("attention_probs_dropout_prob", key("attention_dropout")),
                ("tie_word_embeddings", json!(true)),
            ];
            if !is_of_tokens {
                keys.extend(labels(about));
            }
            keys
        }
        ModelType::Vit => {
            let mut keys = vec![
                ("architectures", json!(["ViTForImageClassification"])),
                ("model_type", json!("vit")),
                ("image_size", key("image_size")),
                ("patch_size", key("patch_size")),
                ("num_channels", json!(about.num_channels)),
                ("hidden_size", key("d_model")),
                ("num_hidden_layers", layers),
                ("num_attention_heads", key("num_heads")),
                ("intermediate_size", key("feedforward_size")),
                ("hidden_act", json!("gelu")),
                ("layer_norm_eps", key("epsilon")),
                ("qkv_bias", json!(true)),
                ("hidden_dropout_prob", key("dropout")),
                ("attention_probs_dropout_prob", json!(0.0)),
            ];
            keys.extend(labels(about));
            keys
        }
        ModelType::Layers => {
            let mut keys = vec![
                ("architectures", json!(["ResNetForImageClassification"])),
                ("model_type", json!("resnet")),
                ("num_channels", json!(about.num_channels)),
                ("hidden_act", json!("relu")),
            ];
            let settings = network.keys.iter();
            keys.extend(settings.map(|(key, value)| (*key, value.to_json())));
            keys.extend(labels(about));
            keys
        }
        _ => llama(layers, &key),
    };
    for (key, value) in keys {
        add(key, value);
    }
    Json::Object(config)
}

fn llama(layers: Json, key: &dyn Fn(&str) -> Json) -> Vec<(&'static str, Json)> {
    let mut keys = vec![
        ("architectures", json!(["LlamaForCausalLM"])),
        ("model_type", json!("llama")),
        ("hidden_size", key("d_model")),
        ("num_hidden_layers", layers),
        ("num_attention_heads", key("num_heads")),
        ("num_key_value_heads", key("num_kv_heads")),
        ("intermediate_size", key("feedforward_size")),
        ("hidden_act", json!("silu")),
        ("rms_norm_eps", key("epsilon")),
        ("rope_theta", key("theta")),
        ("rope_scaling", rope_scaling(key)),
        ("attention_bias", json!(false)),
        ("mlp_bias", json!(false)),
        ("tie_word_embeddings", key("tie")),
    ];
    if key("rotary_type") == json!("dynamic") {
        // There, transformers takes this for the length before the scaling.
        keys.push(("max_position_embeddings", key("rotary_length")));
    }
    keys
}

/// How rotations are scaled, in the keys of transformers.
fn rope_scaling(key: &dyn Fn(&str) -> Json) -> Json {
    let (kind, factor) = (key("rotary_type"), key("rotary_scaling"));
    let (low, high) = (key("rotary_low"), key("rotary_high"));
    let length = key("rotary_length");
    match kind.as_str() {
        Some("llama3") => json!({
            "type": kind, "rope_type": kind, "factor": factor, "low_freq_factor": low,
            "high_freq_factor": high, "original_max_position_embeddings": length,
        }),
        Some("yarn") => json!({
            "type": kind, "rope_type": kind, "factor": factor, "beta_slow": low, "beta_fast": high,
            "original_max_position_embeddings": length,
            "attention_factor": key("rotary_attention_factor"),
        }),
        Some("dynamic") => json!({ "type": kind, "rope_type": kind, "factor": factor }),
        Some("longrope") => json!({
            "type": kind, "rope_type": kind, "factor": factor,
            "short_factor": key("rotary_short"), "long_factor": key("rotary_long"),
            "original_max_position_embeddings": length,
            "attention_factor": key("rotary_attention_factor"),
        }),
        _ if factor.as_f64() == Some(1.0) => Json::Null,
        _ => json!({ "type": "linear", "rope_type": "linear", "factor": factor }),
    }
}

/// The classes of a classifier.
fn labels(about: &About) -> Vec<(&'static str, Json)> {
    let numbers = || about.labels.iter().enumerate();
    let names: Map<String, Json> = numbers()
        .map(|(at, name)| (at.to_string(), json!(name)))
        .collect();
    let numbers: Map<String, Json> = numbers()
        .map(|(at, name)| (name.clone(), json!(at)))
        .collect();
    vec![
        ("id2label", Json::Object(names)),
        ("label2id", Json::Object(numbers)),
        ("problem_type", json!(about.problem)),
    ]
}

/// What transformers needs beside `tokenizer.json`. `padding` and `mask` are tokens.
pub fn tokenizer_config(
    max_length: Option<i64>,
    padding: Option<&str>,
    mask: Option<&str>,
    chat: Option<&ChatTemplate>,
) -> Json {
    let mut config = json!({ "tokenizer_class": "PreTrainedTokenizerFast" });
    if let Some(chat) = chat {
        config["chat_template"] = match &chat.tools {
            Some(tools) => json!([
                { "name": "default", "template": chat.text },
                { "name": "tool_use", "template": tools },
            ]),
            None => json!(chat.text),
        };
        for (name, token) in &chat.special {
            if SPECIAL_TOKENS.contains(&name.as_str()) {
                config[name] = json!(token);
            } else {
                config["extra_special_tokens"][name] = json!(token);
            }
        }
    }
    let rest = [
        ("model_max_length", max_length.map(|length| json!(length))),
        ("pad_token", padding.map(|token| json!(token))),
        ("mask_token", mask.map(|token| json!(token))),
    ];
    for (key, value) in rest {
        if let Some(value) = value {
            config[key] = value;
        }
    }
    config
}
