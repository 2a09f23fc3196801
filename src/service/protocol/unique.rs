//! JSON whose objects have each key once. Of a key that occurs twice, `serde_json` would keep the last value silently.

use std::fmt;

use runner_core::diagnostic::Reason;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::{Map, Value};

/// Reads the body of a request.
pub fn read(body: &[u8]) -> Result<Value, Reason> {
    let Unique(value) = serde_json::from_slice(body).map_err(|e| {
        Reason(match e.classify() {
            // A key that occurs twice.
            Category::Data => e.to_string(),
            _ => format!("the body is not JSON: {e}"),
        })
    })?;
    Ok(value)
}

struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OfAny).map(Self)
    }
}

struct OfAny;

impl<'de> Visitor<'de> for OfAny {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Unique(value)) = all.next_element()? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = all.next_key::<String>()? {
            let Unique(value) = all.next_value()?;
            if object.contains_key(&key) {
                return Err(de::Error::custom(format!("the key `{key}` occurs twice")));
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}
