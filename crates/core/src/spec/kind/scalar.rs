//! The Rust types of checked values.

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::parse_bytes;
use crate::spec::document::Value;

/// A Rust type that a checked value converts to.
pub trait Scalar: Sized {
    /// Converts a value that its `Kind` has accepted.
    fn from_value(value: &Value) -> Self;
    /// The value in the schema.
    fn to_json(&self) -> Json;
    /// The placeholder for a missing value that was reported.
    fn stand_in() -> Self;
}

macro_rules! scalar {
    ($type:ty, $stand_in:expr, $($pattern:pat => $value:expr),+) => {
        impl Scalar for $type {
            fn from_value(value: &Value) -> Self {
                match value {
                    $($pattern => $value,)+
                    _ => Self::stand_in(),
                }
            }
            fn to_json(&self) -> Json {
                json!(self)
            }
            fn stand_in() -> Self {
                $stand_in
            }
        }
    };
}

scalar!(bool, false, Value::Bool(v) => *v);
scalar!(u64, 1, Value::Int(v) => *v as u64);
scalar!(usize, 1, Value::Int(v) => *v as usize);
scalar!(i64, 1, Value::Int(v) => *v);
scalar!(f64, 1.0, Value::Float(v) => *v, Value::Int(v) => *v as f64);
scalar!(String, String::new(), Value::Str(v) => v.clone());

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl Scalar for Bytes {
    fn from_value(value: &Value) -> Self {
        match value {
            Value::Str(text) => Bytes(parse_bytes(text).unwrap_or(1)),
            _ => Self::stand_in(),
        }
    }
    fn to_json(&self) -> Json {
        json!(format!("{}B", self.0))
    }
    fn stand_in() -> Self {
        Bytes(1)
    }
}

/// A single value, if its kind allows one, is a list of one.
impl<T: Scalar> Scalar for Vec<T> {
    fn from_value(value: &Value) -> Self {
        match value {
            Value::Array(items) => items.iter().map(|n| T::from_value(&n.value)).collect(),
            single => vec![T::from_value(single)],
        }
    }
    fn to_json(&self) -> Json {
        self.iter().map(Scalar::to_json).collect()
    }
    fn stand_in() -> Self {
        Vec::new()
    }
}

impl Scalar for Value {
    fn from_value(value: &Value) -> Self {
        value.clone()
    }
    fn to_json(&self) -> Json {
        Value::to_json(self)
    }
    fn stand_in() -> Self {
        Value::Bool(false)
    }
}

/// Padding of an input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Padding {
    /// Nothing.
    Valid,
    /// Zero padding that keeps the size, divided by the stride.
    Same,
    /// As much zero padding at the start as a window exceeds a position by.
    Causal,
    /// Zeros on each side of every dimension.
    Zeros(Vec<usize>),
}

impl Scalar for Padding {
    fn from_value(value: &Value) -> Self {
        match value {
            Value::Str(name) if name == "same" => Padding::Same,
            Value::Str(name) if name == "causal" => Padding::Causal,
            Value::Str(_) => Padding::Valid,
            sizes => Padding::Zeros(Vec::from_value(sizes)),
        }
    }
    fn to_json(&self) -> Json {
        match self {
            Padding::Valid => json!("valid"),
            Padding::Same => json!("same"),
            Padding::Causal => json!("causal"),
            Padding::Zeros(sizes) => sizes.to_json(),
        }
    }
    fn stand_in() -> Self {
        Padding::Valid
    }
}
