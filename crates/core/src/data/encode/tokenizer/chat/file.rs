//! Templates in the files of a model hub.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json};

use super::ChatTemplate;
use crate::data::DataError;
use crate::disk;
use crate::spec::plain_file;

/// A template in a file of its own.
pub const TEMPLATE: &str = "chat_template.jinja";
/// The file of a template for conversations with tools, if there are several templates, and its folder.
const TOOLS: [&str; 2] = ["tool_use.jinja", "additional_chat_templates"];
/// The settings of a tokenizer, which may contain a template.
pub const CONFIG: &str = "tokenizer_config.json";
/// Special tokens, in older folders.
const SPECIAL: &str = "special_tokens_map.json";
/// What ends a text, the first that exists.
const ENDS: [&str; 2] = ["generation_config.json", "config.json"];
/// Bytes of each of them.
const MOST: u64 = 16 << 20;
/// The names of special tokens in templates.
pub const SPECIAL_TOKENS: [&str; 7] = [
    "bos_token",
    "eos_token",
    "unk_token",
    "sep_token",
    "pad_token",
    "cls_token",
    "mask_token",
];

/// The files that a template and its special tokens are in: the named one, or those beside a tokenizer.
pub fn files_of(named: Option<&Path>, tokenizer: Option<&Path>) -> Vec<PathBuf> {
    let beside = named.or(tokenizer).map(disk::folder_of);
    let there = |name: &str| {
        let path = beside?.join(name);
        disk::exists(&path).then_some(path)
    };
    let is_config = |path: &Path| path.extension().is_some_and(|it| it == "json");
    let [tools, folder] = TOOLS;
    let of_tools = || there(&format!("{folder}/{tools}"));
    let found = match named {
        Some(named) if is_config(named) => [Some(named.to_owned()), None, None],
        Some(named) if named.ends_with(TEMPLATE) => {
            [Some(named.to_owned()), of_tools(), there(CONFIG)]
        }
        Some(named) => [Some(named.to_owned()), None, there(CONFIG)],
        None => [there(TEMPLATE), of_tools(), there(CONFIG)],
    };
    found.into_iter().flatten().collect()
}

impl ChatTemplate {
    /// Reads a template from files as [`files_of`] finds them; `None` if they have none. `token` is the number of a
    /// token by its text.
    ///
    /// # Errors
    /// If a file cannot be read, or is not what it should be.
    pub fn read(
        files: &[PathBuf],
        token: impl Fn(&str) -> Option<i32>,
    ) -> Result<Option<Self>, DataError> {
        let (mut own, mut of_tools, mut config) = (None, None, Map::new());
        for path in files {
            if path.extension().is_some_and(|it| it == "json") {
                config = table(path)?;
            } else if own.is_some() && path.ends_with(TOOLS[0]) {
                of_tools = Some(text(path)?);
            } else {
                own = Some(text(path)?);
            }
        }
        let tools = of_tools.or_else(|| named(&config, "tool_use"));
        let Some(text) = own.or_else(|| default(&config)) else {
            return Ok(None);
        };
        let folder = files.last().map(|path| disk::folder_of(path));
        let beside = |name: &str| {
            let path = folder?.join(name);
            disk::exists(&path).then_some(path)
        };
        let older = beside(SPECIAL)
            .map(|path| table(&path))
            .transpose()?
            .unwrap_or_default();
        let more = config.get("extra_special_tokens").and_then(Json::as_object);
        // Templates name them as the others, whose variables they must not replace.
        let more = more.into_iter().flatten();
        let more = more.filter(|(name, _)| name.ends_with("_token"));
        let more = more.filter_map(|(name, token)| Some((name.clone(), content(Some(token))?)));
        let special = SPECIAL_TOKENS.into_iter().filter_map(|name| {
            let token = content(config.get(name)).or_else(|| content(older.get(name)))?;
            Some((name.to_owned(), token))
        });
        let special: std::collections::BTreeMap<String, String> = more.chain(special).collect();
        let mut ends: Vec<i32> = special
            .get("eos_token")
            .and_then(|text| token(text))
            .into_iter()
            .collect();
        if let Some(path) = ENDS.into_iter().find_map(beside) {
            let number = |value: &Json| value.as_i64().and_then(|at| i32::try_from(at).ok());
            match table(&path)?.get("eos_token_id") {
                Some(Json::Array(numbers)) => ends.extend(numbers.iter().filter_map(number)),
                Some(other) => ends.extend(number(other)),
                None => {}
            }
        }
        ends.sort_unstable();
        ends.dedup();
        Ok(Some(Self {
            text,
            tools,
            special,
            ends,
        }))
    }
}

/// The template of a configuration: a text, or the one of several that is for conversations without tools.
fn default(config: &Map<String, Json>) -> Option<String> {
    let text = config.get("chat_template")?.as_str().map(str::to_owned);
    text.or_else(|| named(config, "default"))
}

/// The template of several in a configuration that has a name.
fn named(config: &Map<String, Json>, name: &str) -> Option<String> {
    let several = config.get("chat_template")?.as_array()?;
    let named = several.iter().find(|one| one["name"] == name)?;
    named["template"].as_str().map(str::to_owned)
}

/// The text of a token, which older files describe by a table.
fn content(token: Option<&Json>) -> Option<String> {
    match token? {
        Json::String(text) => Some(text.clone()),
        Json::Object(table) => table.get("content")?.as_str().map(str::to_owned),
        _ => None,
    }
}

fn wrong(path: &Path, what: &str) -> DataError {
    DataError::new(format!("`{}` {what}", path.display()))
        .key("data.tokens.template")
        .help("use the `chat_template.jinja` or the `tokenizer_config.json` of a model")
}

fn text(path: &Path) -> Result<String, DataError> {
    let bytes = plain_file::read(path, MOST)
        .map_err(|error| wrong(path, &format!("cannot be read: {error}")))?;
    let bytes = bytes.ok_or_else(|| wrong(path, &format!("is larger than {} MiB", MOST >> 20)))?;
    String::from_utf8(bytes).map_err(|_| wrong(path, "is not UTF-8"))
}

fn table(path: &Path) -> Result<Map<String, Json>, DataError> {
    match serde_json::from_str(&text(path)?) {
        Ok(Json::Object(table)) => Ok(table),
        Ok(_) => Err(wrong(path, "is not a table of settings")),
        Err(error) => Err(wrong(path, &format!("is not JSON: {error}"))),
    }
}
