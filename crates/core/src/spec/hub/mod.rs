//! `model.type = "hub"`: a network in a folder in the layout of model hubs, with `config.json`, weights and
//! `tokenizer.json`.
//!
//! [`open`] replaces the table by the preset that the folder's configuration asks for, and adds what belongs to it: the
//! weights as `init.from`, and the tokenizer as `data.tokens.path`. So everything that reads a document knows such a
//! network. What a configuration says and is not computed is refused by its key.

mod bert;
mod config;
mod gpt2;
mod llama;
mod models;
mod names;
mod rotary;
mod vision;

use std::path::{Path, PathBuf};

use super::data::TokensSpec;
use super::document::{Entry, Node, Table, Value};
use super::kind::Kind;
use super::model::preset::ModelType;
use super::section::{Choice, Findings, Section, choices, read_at};
use crate::diagnostic::{Diagnostic, Span};
use crate::disk;
pub use config::Refused;
use config::{config, refuse};
pub use models::HubModel;
pub use names::{BERT, Family, GPT2, HubNames, LLAMA, RESNET, VIT};
pub use vision::{Resnet, resnet_block};

/// Where weights are, the first that exists.
pub const WEIGHTS: [&str; 2] = ["model.safetensors", "model.safetensors.index.json"];
/// The same as pickles.
const PICKLES: [&str; 2] = ["pytorch_model.bin", "pytorch_model.bin.index.json"];
/// The file of tokens.
pub const TOKENIZER: &str = "tokenizer.json";

choices! {
    /// What the last layers of a network of a hub begin with.
    pub enum HubHead {
        Keep "keep" "The weights of the folder, which must fit the task.",
        New "new" "Random values, for another task or other classes.",
    }
}

/// The keys of `[model]` with the type `hub`.
#[derive(Clone, Debug, PartialEq)]
pub struct HubSpec {
    /// The folder.
    pub path: String,
    /// What the last layers begin with.
    pub head: HubHead,
    /// The probability of all dropouts, if it is not that of the folder.
    pub dropout: Option<f64>,
    /// Height and width of the images of a vision transformer, if they are not those of the folder.
    pub image_size: Option<usize>,
}

impl HubSpec {
    /// Reads the keys.
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        Self {
            path: s
                .field(
                    "path",
                    Kind::Path,
                    "A folder of a model hub with `config.json`, `model.safetensors` (or several files and their index) and, for texts, `tokenizer.json`.",
                )
                .required(),
            head: s.choice(
                "head",
                "What the last layers begin with.",
                HubHead::Keep,
            ),
            dropout: s
                .field(
                    "dropout",
                    Kind::fraction(),
                    "Probability of all dropouts; that of `config.json` when not set.",
                )
                .optional(),
            image_size: s
                .field(
                    "image_size",
                    Kind::Int(1, 1 << 24),
                    "Height and width of the images of a vision transformer, whose table of positions is interpolated; those of `config.json` when not set.",
                )
                .optional(),
        }
    }
}

/// A folder of a hub.
#[derive(Clone, Debug)]
pub struct Hub {
    /// Its network.
    pub model: HubModel,
    /// The name of its weights: a file, or an index of several. `None` if it has only pickles.
    pub weights: Option<&'static str>,
    /// The name of its weights as a pickle.
    pub pickle: Option<&'static str>,
    /// Whether it has a tokenizer.
    pub has_tokenizer: bool,
}

impl Hub {
    /// Reads the configuration of a folder, and looks for its files.
    ///
    /// # Errors
    /// Why there is no network in it that can be computed.
    pub fn read(folder: &Path) -> Result<Self, Refused> {
        let place = folder.display();
        match disk::metadata(folder) {
            Err(_) => {
                return refuse(
                    format!("there is no folder `{place}`"),
                    "a path starts from the folder of the experiment file; download a model into a folder with `hf download NAME --local-dir FOLDER`",
                );
            }
            Ok(there) if !there.is_dir() => {
                return refuse(
                    format!("`{place}` is not a folder"),
                    "name the folder that contains `config.json`",
                );
            }
            Ok(_) => {}
        }
        let config = config(folder)?;
        let of_config = |wrong: Refused| Refused {
            message: format!(
                "`{}` cannot be used: {}",
                folder.join("config.json").display(),
                wrong.message
            ),
            ..wrong
        };
        let model = models::model(&config).map_err(of_config)?;
        let there = |name: &&str| disk::metadata(folder.join(name)).is_ok_and(|it| it.is_file());
        let (weights, pickle) = (
            WEIGHTS.into_iter().find(there),
            PICKLES.into_iter().find(there),
        );
        if weights.is_none() && pickle.is_none() {
            return refuse(
                format!("`{place}` has no weights"),
                format!("download one of `{}` into it", WEIGHTS.join("`, `")),
            );
        }
        Ok(Self {
            model,
            weights,
            pickle,
            has_tokenizer: there(&TOKENIZER),
        })
    }

    /// The weights that are used without being named.
    fn safe_weights(&self, path: &str) -> Result<&'static str, Refused> {
        if let Some(weights) = self.weights {
            return Ok(weights);
        }
        let pickle = self.pickle.unwrap_or_default();
        refuse(
            format!("`{path}` has its weights only as a pickle, `{pickle}`"),
            format!(
                "save the model again as `model.safetensors` with `save_pretrained` of transformers, or set `[init]` with `from = \"{}\"`: pickles are parsed here, and never executed",
                joined(path, pickle)
            ),
        )
    }
}

/// A file of a folder, as the user wrote the folder.
fn joined(folder: &str, file: &str) -> String {
    PathBuf::from(folder).join(file).display().to_string()
}

/// Replaces a `[model]` of the type `hub` by the preset in its folder, whose path starts from `base`. Returns how the
/// tensors of its file are named.
pub fn open(root: &mut Table, base: Option<&Path>, findings: &mut Findings) -> Option<HubNames> {
    let model = root.get("model")?;
    let Value::Table(table) = &model.node.value else {
        return None;
    };
    let is_hub = |value: &Value| matches!(value, Value::Str(name) if name == "hub");
    if !is_hub(&table.get("type")?.node.value) {
        return None;
    }
    // What is wrong with its keys is reported when the table is decoded.
    let mut unread = Findings::default();
    let spec = read_at(table, "model".into(), model.node.span, &mut unread, |s| {
        s.known("type");
        HubSpec::decode(s)
    });
    let path = table.get("path")?.node.span;
    let is_open = |text: &String| text.contains("${");
    if unread.diagnostics.has_errors() || is_open(&spec.path) {
        return None;
    }
    match replaced(root, &spec, base, path) {
        Ok(names) => Some(names),
        Err((key, Refused { message, help })) => {
            let at = root.span_at(key).unwrap_or(path);
            let wrong = Diagnostic::error("hub", message).at(at).help(help);
            findings.refuse("model", wrong);
            None
        }
    }
}

/// The place of a refusal, and the refusal.
type At<T> = Result<T, (&'static str, Refused)>;

fn replaced(root: &mut Table, spec: &HubSpec, base: Option<&Path>, at: Span) -> At<HubNames> {
    let of_path = |wrong: Refused| ("model.path", wrong);
    let Some(base) = base else {
        let wrong = refuse(
            "a folder of a model hub cannot be opened here",
            "train the file with `runner run`, or write the layers of the network: `runner describe SPEC --as-layers` prints them",
        );
        return wrong.map_err(of_path);
    };
    let hub = Hub::read(&base.join(&spec.path)).map_err(of_path)?;
    let is_text = matches!(root.value_at("data.type"), Some(Value::Str(kind)) if kind == "text");
    let is_masked = root.at("data.tokens.masked").is_some();
    let keys = keys(&hub, spec, (is_text, is_masked))?;
    let node = |value| Node { span: at, value };
    let text = |text: String| node(Value::Str(text));
    match root.at("init").map(|entry| &entry.node.value) {
        Some(Value::Table(init)) if init.get("from").is_some() => {}
        init => {
            let refused = match init {
                Some(Value::Table(init)) => refuse_names(init),
                _ => Ok(()),
            };
            let weights = hub.safe_weights(&spec.path).map_err(of_path)?;
            root.set("init.from", at, text(joined(&spec.path, weights)));
            refused?;
        }
    }
    add_tokens(root, spec, &hub, at)?;
    let positions = interpolated(&hub, spec)?;
    root.remove("model");
    let name = hub.model.kind.name();
    root.set("model.type", at, text(name.to_owned()));
    for (key, value) in keys {
        root.set(&format!("model.{key}"), at, moved(value, at));
    }
    let mut names = HubNames::new(&hub.model, spec.head == HubHead::New);
    names.positions = positions;
    Ok(names)
}

/// The patches along a side of the folder's images, if the table of their positions is interpolated.
fn interpolated(hub: &Hub, spec: &HubSpec) -> At<Option<usize>> {
    let Some(size) = spec.image_size else {
        return Ok(None);
    };
    let of_key = |message: String, help: String| {
        refuse(message, help).map_err(|wrong| ("model.image_size", wrong))
    };
    let key = |key: &str| {
        let mut keys = hub.model.keys.iter();
        keys.find_map(|(known, value)| match value {
            Value::Int(value) if *known == key => usize::try_from(*value).ok(),
            _ => None,
        })
    };
    let (Some(folders), Some(patch)) = (key("image_size"), key("patch_size")) else {
        let name = hub.model.name;
        return of_key(
            format!("`image_size` has no effect on `{name}`"),
            "remove `image_size`".into(),
        );
    };
    if !size.is_multiple_of(patch) {
        let near = (size / patch).max(1) * patch;
        return of_key(
            format!(
                "`image_size` is {size}, but images are divided into patches of {patch}x{patch}"
            ),
            format!(
                "resize the images to a multiple of {patch}, and set `image_size` to it, such as {near}"
            ),
        );
    }
    Ok((size != folders).then_some(folders / patch))
}

/// A value whose parts are all at a place.
fn moved(value: Value, at: Span) -> Node {
    let value = match value {
        Value::Array(items) => {
            let items = items.into_iter().map(|item| moved(item.value, at));
            Value::Array(items.collect())
        }
        Value::Table(table) => {
            let entries = table.entries.into_iter().map(|entry| Entry {
                key_span: at,
                node: moved(entry.node.value, at),
                ..entry
            });
            Value::Table(Table {
                entries: entries.collect(),
            })
        }
        value => value,
    };
    Node { span: at, value }
}

/// The keys of the preset.
fn keys(
    hub: &Hub,
    spec: &HubSpec,
    (is_text, is_masked): (bool, bool),
) -> At<Vec<(&'static str, Value)>> {
    let HubModel {
        kind, family, name, ..
    } = &hub.model;
    let mut keys = hub.model.keys.clone();
    if *kind == ModelType::Bert {
        if is_text && !is_masked {
            let wrong = refuse(
                "BERT sees all tokens of a text, so it cannot predict the next one",
                "set `masked = 0.15` in `data.tokens` to predict hidden tokens, or use a table with a target",
            );
            return wrong.map_err(|wrong| ("model.path", wrong));
        }
        let head = if is_masked { "tokens" } else { "target" };
        keys.push(("head", Value::Str(head.into())));
    }
    if spec.head == HubHead::New && family.head.is_empty() {
        let wrong = refuse(
            format!("`head = \"new\"` has no effect on `{name}`, which predicts tokens"),
            "remove `head`",
        );
        return wrong.map_err(|wrong| ("model.head", wrong));
    }
    if let Some(size) = spec.image_size {
        for (_, value) in keys.iter_mut().filter(|(key, _)| *key == "image_size") {
            *value = Value::Int(size as i64);
        }
    }
    let Some(dropout) = spec.dropout else {
        return Ok(keys);
    };
    let mut dropouts = keys
        .iter_mut()
        .filter(|(key, _)| key.ends_with("dropout"))
        .peekable();
    if dropouts.peek().is_none() {
        let wrong = refuse(
            format!("`dropout` has no effect on `{name}`, which has none"),
            "remove `dropout`",
        );
        return wrong.map_err(|wrong| ("model.dropout", wrong));
    }
    for (_, value) in dropouts {
        *value = Value::Float(dropout);
    }
    Ok(keys)
}

/// The names in the folder's weights are known: keys that change them would have no effect.
fn refuse_names(init: &Table) -> At<()> {
    let keys = [
        ("remap", "init.remap"),
        ("transpose", "init.transpose"),
        ("layout", "init.layout"),
        ("top_level_key", "init.top_level_key"),
    ];
    let Some((key, path)) = keys.into_iter().find(|(key, _)| init.get(key).is_some()) else {
        return Ok(());
    };
    let wrong = refuse(
        format!("`init.{key}` has no effect: the names of tensors in a folder of a hub are known"),
        format!("remove `{key}`, or set `from` to a file of other weights"),
    );
    wrong.map_err(|wrong| (path, wrong))
}

/// Texts are tokenized by the folder's tokenizer, unless the file names another one.
fn add_tokens(root: &mut Table, spec: &HubSpec, hub: &Hub, at: Span) -> At<()> {
    let is_text =
        |value: &Value| matches!(value, Value::Str(name) if name == "text" || name == "chat");
    let typed = |table: &Table| table.get("type").is_some_and(|it| is_text(&it.node.value));
    let has_texts = match root.at("data").map(|entry| &entry.node.value) {
        Some(Value::Table(data)) if data.get("inputs").is_none() => {
            let columns = match data.get("columns").map(|entry| &entry.node.value) {
                Some(Value::Array(columns)) => columns.as_slice(),
                _ => &[],
            };
            let of_text =
                |node: &Node| matches!(&node.value, Value::Table(column) if typed(column));
            match data.get("tokens").map(|entry| &entry.node.value) {
                Some(Value::Table(_)) => true,
                // What it should be instead is reported when it is decoded.
                Some(_) => false,
                None => typed(data) || columns.iter().any(of_text),
            }
        }
        _ => false,
    };
    if !has_texts || hub.model.vocabulary == 0 {
        return Ok(());
    }
    let is_set = |key: &str| root.at(&format!("data.tokens.{key}")).is_some();
    let (is_named, is_padded) = (
        is_set("path") || is_set("tokenizer"),
        is_set("min_vocabulary"),
    );
    if !is_named && !hub.has_tokenizer {
        let wrong = refuse(
            format!("`{}` has no `{TOKENIZER}`", spec.path),
            "download it, or create it with `AutoTokenizer.from_pretrained(…).save_pretrained(…)` of transformers",
        );
        return wrong.map_err(|wrong| ("model.path", wrong));
    }
    let node = |value| Node { span: at, value };
    if !is_named {
        let path = Value::Str(joined(&spec.path, TOKENIZER));
        root.set("data.tokens.path", at, node(path));
    }
    if !is_padded {
        let rows = Value::Int(hub.model.vocabulary as i64);
        root.set("data.tokens.min_vocabulary", at, node(rows));
    }
    if let Some(most) = hub.model.max_length {
        let length = match root.at("data.tokens.length").map(|entry| &entry.node.value) {
            Some(Value::Int(length)) => Some((*length).max(0) as usize),
            Some(_) => Some(0),
            None => None,
        };
        if let Some(length) = length.filter(|length| *length > most) {
            let wrong = refuse(
                format!(
                    "`length` is {length}, but the network in `{}` has only {most} positions",
                    spec.path
                ),
                format!("set it to at most {most}"),
            );
            return wrong.map_err(|wrong| ("data.tokens.length", wrong));
        }
        if length.is_none() && TokensSpec::default().length > most {
            root.set("data.tokens.length", at, node(Value::Int(most as i64)));
        }
    }
    Ok(())
}
