//! `config.json`: its keys are read one by one, and those that nothing read are refused.

use std::path::Path;

use serde_json::{Map, Value as Json};

use crate::show::plain_io_error;
use crate::spec::plain_file;

/// Bytes of a `config.json`.
const MOST: u64 = 4 << 20;

/// Keys that say nothing about what a network computes in training, or how: numbers of special tokens, versions, and
/// settings of the library transformers.
const IRRELEVANT: &[&str] = &[
    "_name_or_path",
    "architectures",
    "bos_token_id",
    "dtype",
    "eos_token_id",
    "finetuning_task",
    "id2label",
    "initializer_range",
    "is_llama_config",
    "label2id",
    "model_type",
    "pad_token_id",
    "pretraining_tp",
    "problem_type",
    "rope_interleaved",
    "torch_dtype",
    "transformers.js_config",
    "transformers_version",
    "unk_token_id",
    "use_cache",
];

/// What is wrong with a folder, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}

/// A refusal.
pub(super) fn refuse<T>(message: impl Into<String>, help: impl Into<String>) -> Result<T, Refused> {
    Err(Refused {
        message: message.into(),
        help: help.into(),
    })
}

/// The `config.json` of a folder.
pub(super) fn config(folder: &Path) -> Result<Map<String, Json>, Refused> {
    let path = folder.join("config.json");
    let place = path.display();
    let help = "name a folder of a model hub, with `config.json`, `model.safetensors` and `tokenizer.json`";
    let bytes = match plain_file::read(&path, MOST) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return refuse(format!("`{place}` is too large"), help),
        Err(e) => {
            return refuse(
                format!("`{place}` cannot be read: {}", plain_io_error(&e)),
                help,
            );
        }
    };
    match serde_json::from_slice(&bytes) {
        Ok(Json::Object(config)) => Ok(config),
        Ok(_) => refuse(format!("`{place}` is not a table"), help),
        Err(e) => refuse(format!("`{place}` is not JSON: {e}"), help),
    }
}

/// Reads keys of a configuration, and notes which.
pub(super) struct Keys<'a> {
    config: &'a Map<String, Json>,
    read: Vec<&'static str>,
}

impl<'a> Keys<'a> {
    /// A reader to which `ignored` keys of this type of network mean nothing.
    pub(super) fn new(config: &'a Map<String, Json>, ignored: &[&'static str]) -> Self {
        Self {
            config,
            read: ignored.to_vec(),
        }
    }

    pub(super) fn get(&mut self, key: &'static str) -> Option<&'a Json> {
        self.read.push(key);
        self.config.get(key).filter(|value| !value.is_null())
    }

    pub(super) fn size(&mut self, key: &'static str) -> Result<usize, Refused> {
        match self.get(key).map(|value| (value, value.as_u64())) {
            Some((_, Some(size))) if (1..=1 << 24).contains(&size) => Ok(size as usize),
            Some((value, _)) => refuse(
                format!("`{key}` is {}", short(value)),
                "a number of at least 1 is needed",
            ),
            None => refuse(
                format!("it has no `{key}`"),
                "use the `config.json` of the model",
            ),
        }
    }

    /// A size that a network has even if the key is missing.
    pub(super) fn size_or(&mut self, key: &'static str, usual: usize) -> Result<usize, Refused> {
        match self.get(key) {
            Some(_) => self.size(key),
            None => Ok(usual),
        }
    }

    /// The number of heads, which share the features evenly.
    pub(super) fn heads(&mut self, key: &'static str, d_model: usize) -> Result<usize, Refused> {
        let num = self.size(key)?;
        if d_model.is_multiple_of(num) {
            return Ok(num);
        }
        refuse(
            format!("`{key}` is {num}, which does not divide the {d_model} features of a position"),
            "use the `config.json` of the model",
        )
    }

    pub(super) fn number(&mut self, key: &'static str, usual: f64) -> Result<f64, Refused> {
        match self.get(key).map(|value| (value, value.as_f64())) {
            None => Ok(usual),
            Some((_, Some(number))) if number > 0.0 && number.is_finite() => Ok(number),
            Some((value, _)) => refuse(
                format!("`{key}` is {}", short(value)),
                "a number above 0 is needed",
            ),
        }
    }

    /// The probability of a dropout.
    pub(super) fn dropout(&mut self, key: &'static str, usual: f64) -> Result<f64, Refused> {
        match self.get(key).map(|value| (value, value.as_f64())) {
            None => Ok(usual),
            Some((_, Some(number))) if (0.0..1.0).contains(&number) => Ok(number),
            Some((value, _)) => refuse(
                format!("`{key}` is {}", short(value)),
                "a probability below 1 is needed",
            ),
        }
    }

    /// The key of a dropout that is not computed: a probability above 0 is refused.
    pub(super) fn no_dropout(&mut self, key: &'static str) -> Result<(), Refused> {
        if self.dropout(key, 0.0)? == 0.0 {
            return Ok(());
        }
        self.only(key, &0.0.into())
    }

    /// A key that may only have one value.
    pub(super) fn only(&mut self, key: &'static str, wanted: &Json) -> Result<(), Refused> {
        match self.get(key) {
            Some(other) if other != wanted => refuse(
                format!("`{key}` is {}, which is not supported", short(other)),
                format!("this network is only computed with {wanted}"),
            ),
            _ => Ok(()),
        }
    }

    /// Refuses keys that nothing read.
    pub(super) fn finish(self) -> Result<(), Refused> {
        let is_off = |value: &Json| matches!(value, Json::Null | Json::Bool(false));
        let mut rest = self.config.iter().filter(|(key, value)| {
            let key = key.as_str();
            !self.read.contains(&key) && !IRRELEVANT.contains(&key) && !is_off(value)
        });
        match rest.next() {
            Some((key, value)) => refuse(
                format!("`{key}` is {}, whose meaning is not known", short(value)),
                "if it changes nothing that the network computes, remove it from the file",
            ),
            None => Ok(()),
        }
    }
}

/// A value, without the end of a long one.
pub(super) fn short(value: &Json) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
