//! One JSON object per line.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::cell::{Cell, Cells, List};
use super::source::{self, Limited, MAX_ROW};
use super::{Rows, Table};
use crate::data::DataError;
use crate::data::encode::tokenizer::chat::Conversation;
use crate::data::read::broken;
use crate::diagnostic::Reason;
use crate::spec::data::FilesSpec;

/// Files of objects. Lists of numbers become columns of several values; if lists have different lengths, shorter ones
/// are padded at their end, integers with -1 and others with NaN.
pub struct JsonLines<'a> {
    /// Keys that may contain anything.
    pub ignore: &'a [String],
    /// Keys of conversations, which are kept as JSON.
    pub chats: Vec<&'a str>,
}

impl<'a> JsonLines<'a> {
    /// As set in the experiment.
    pub fn of(files: &'a FilesSpec) -> Self {
        Self {
            ignore: &files.roles.ignore,
            chats: files.roles.chats().collect(),
        }
    }
}

impl Table for JsonLines<'_> {
    type Row = Vec<u8>;

    fn open(&self, path: &Path, seen: &Arc<AtomicU64>) -> Result<Rows<Vec<u8>>, DataError> {
        let limited = source::open(path, seen)?;
        let lines = Lines {
            path: path.to_owned(),
            taken: Arc::clone(&limited.taken),
            reader: BufReader::with_capacity(1 << 16, limited),
            number: 0,
        };
        let mut lines = lines.peekable();
        let shown = path.display();
        match lines.peek() {
            None => {
                return Err(DataError::new(format!("`{shown}` is empty"))
                    .help("use a file with one JSON object per line for each item"));
            }
            Some(Ok((_, line))) if line.first() == Some(&b'[') => {
                return Err(DataError::new(format!(
                    "`{shown}` is one JSON list, not one object per line"
                ))
                .help("write one object per line, for example with `jq -c '.[]'`"));
            }
            Some(Ok((_, line)))
                if line.starts_with(&[0xff, 0xfe]) || line.starts_with(&[0xfe, 0xff]) =>
            {
                return Err(
                    DataError::new(format!("`{shown}` is UTF-16 text")).help("save it as UTF-8")
                );
            }
            _ => {}
        }
        Ok(Box::new(lines))
    }

    fn cells<'r>(&self, row: &'r Vec<u8>) -> Result<Cells<'r>, Reason> {
        let text = std::str::from_utf8(row).map_err(|_| "it is not UTF-8 text")?;
        let entries: Entries = serde_json::from_str(text).map_err(|error| {
            let reason = error.to_string();
            let reason = reason.split(" at line").next().unwrap_or_default();
            match ["NaN", "Infinity"]
                .into_iter()
                .find(|word| text.contains(word))
            {
                Some(word) if error.is_syntax() => {
                    format!("it is not JSON: use `null` instead of {word}")
                }
                _ if error.is_data() => reason.to_owned(),
                _ if text == "{" => {
                    "it is not a complete JSON object; write each object on one line".to_owned()
                }
                _ => format!(
                    "it is not a complete JSON object: {reason} at column {}",
                    error.column()
                ),
            }
        })?;
        let mut seen = BTreeSet::new();
        entries
            .0
            .into_iter()
            .map(|(key, value)| {
                if !seen.insert(key.clone()) {
                    return Err(Reason(format!("the key `{key}` occurs twice")));
                }
                if self.chats.contains(&key.as_str()) && !value.is_null() {
                    return match Conversation::of(value.clone()) {
                        Ok(_) => Ok((Cow::Owned(key), Cell::Text(Cow::Owned(value.to_string())))),
                        Err(reason) => Err(Reason(format!("key `{key}`: {reason}"))),
                    };
                }
                let cell = cell(value);
                let cell = match cell {
                    Ok(cell) => cell,
                    Err(_) if self.ignore.contains(&key) => Cell::Missing,
                    Err(reason) => return Err(Reason(format!("key `{key}`: {reason}"))),
                };
                Ok((Cow::Owned(key), cell))
            })
            .collect()
    }

    fn size(row: &Vec<u8>) -> usize {
        row.len() + 32
    }
}

fn cell(value: Value) -> Result<Cell<'static>, Reason> {
    Ok(match value {
        Value::Null => Cell::Missing,
        Value::Bool(value) => Cell::Bool(value),
        Value::String(text) => Cell::Text(Cow::Owned(text)),
        Value::Number(number) => match number.as_i128() {
            Some(whole) => Cell::Whole(whole),
            None => Cell::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::Array(values) => Cell::List(list(values)?),
        Value::Object(_) => {
            return Err("a nested object; flatten its keys, for example to `size_width`, or list it in `ignore`".into());
        }
    })
}

fn list(values: Vec<Value>) -> Result<List, Reason> {
    let mut list = List::new();
    let is_nested = values.first().is_some_and(Value::is_array);
    for value in values {
        match value {
            Value::Array(inner) if is_nested => {
                if !list.nest(self::list(inner)?) {
                    return Err("its inner lists have different lengths".into());
                }
            }
            Value::Number(number) if !is_nested => list.push(number.as_f64()),
            Value::Bool(value) if !is_nested => list.push(Some(f64::from(value))),
            Value::Null if !is_nested => list.push(None),
            Value::Number(_) | Value::Bool(_) | Value::Null | Value::Array(_) => {
                return Err("a list that mixes lists and single values".into());
            }
            Value::String(_) | Value::Object(_) => {
                return Err("a list that contains something other than numbers; use a separate key for each value, or list it in `ignore`".into());
            }
        }
    }
    Ok(list)
}

/// An object with its keys in order, including duplicates.
struct Entries(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;

        impl<'de> Visitor<'de> for Keys {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object, such as {\"age\": 41, \"name\": \"a\"}")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(Keys)
    }
}

/// The nonblank lines of a file, without line endings.
struct Lines {
    path: PathBuf,
    taken: Arc<AtomicU64>,
    reader: BufReader<Limited>,
    number: u64,
}

impl Iterator for Lines {
    type Item = Result<(u64, Vec<u8>), DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            self.taken.store(0, Ordering::Relaxed);
            self.number += 1;
            let mut line = Vec::new();
            let read = (&mut self.reader)
                .take(MAX_ROW)
                .read_until(b'\n', &mut line);
            let shown = self.path.display();
            match read {
                Ok(0) => return None,
                Ok(num) if num as u64 == MAX_ROW => {
                    let message = format!(
                        "`{shown}:{}`: the line is longer than {} MiB",
                        self.number,
                        MAX_ROW >> 20
                    );
                    return Some(Err(
                        DataError::new(message).help("write one JSON object per line")
                    ));
                }
                Ok(_) => {}
                Err(error) => return Some(Err(broken(&self.path, &error))),
            }
            let start = if self.number == 1 && line.starts_with("\u{feff}".as_bytes()) {
                3
            } else {
                0
            };
            let content = line[start..].trim_ascii();
            if !content.is_empty() {
                let content = content.to_vec();
                return Some(Ok((self.number, content)));
            }
        }
    }
}
