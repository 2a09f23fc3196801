//! Possibly infinite numbers in JSON, which has none: as `null`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Writes non-finite numbers as `null`.
pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    value.is_finite().then_some(*value).serialize(serializer)
}

/// Reads `null` as infinity.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let value = Option::<f64>::deserialize(deserializer)?;
    Ok(value.unwrap_or(f64::INFINITY))
}
