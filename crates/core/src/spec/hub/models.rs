//! The networks of hubs as presets.

use serde_json::{Map, Value as Json};

use super::bert::bert;
use super::config::{Refused, refuse};
use super::gpt2::gpt2;
use super::llama::llama;
use super::names::Family;
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
        "t5" | "mt5" | "umt5" | "longt5" | "bart" | "mbart" | "marian" | "pegasus" => refuse(
            format!(
                "`model_type` is \"{kind}\": such a network reads a text with an encoder and writes another one with a decoder, and no task here has texts as targets"
            ),
            format!(
                "train a network that continues texts on `prompt, answer` as one text; {SUPPORTED}"
            ),
        ),
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
