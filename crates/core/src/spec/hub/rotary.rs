//! How a configuration rotates queries and keys, as keys of the preset `llama`.

use serde_json::{Map, Value as Json};

use super::config::{Keys, Refused, refuse, short};
use crate::spec::document::Value;
use crate::spec::model::rotary::Stretch;

type Set = Vec<(&'static str, Value)>;

/// Keys that every table may have.
const COMMON: [&str; 4] = ["rope_type", "type", "rope_theta", "factor"];

/// The table of rotations, whose name depends on the version of transformers.
struct Scaling<'a> {
    key: &'static str,
    table: &'a Map<String, Json>,
}

/// The base of rotary angles, and which are scaled. Newer files have both in one table.
pub(super) fn rotary(keys: &mut Keys<'_>) -> Result<Set, Refused> {
    let mut theta = keys.number("rope_theta", 10_000.0)?;
    let max_length = keys
        .get("max_position_embeddings")
        .and_then(Json::as_u64)
        .unwrap_or(2048);
    let mut scaled = vec![("rotary_scaling", Value::Float(1.0))];
    for key in ["rope_scaling", "rope_parameters"] {
        let Some(value) = keys.get(key) else {
            continue;
        };
        let Some(table) = value.as_object() else {
            return refuse(
                format!("`{key}` is {}", short(value)),
                "use the `config.json` of the model",
            );
        };
        let scaling = Scaling { key, table };
        theta = scaling.number("rope_theta")?.unwrap_or(theta);
        scaled = scaling.keys(max_length)?;
    }
    scaled.push(("theta", Value::Float(theta)));
    Ok(scaled)
}

impl Scaling<'_> {
    fn keys(&self, max_length: u64) -> Result<Set, Refused> {
        let named = ["rope_type", "type"]
            .into_iter()
            .find_map(|name| self.table.get(name));
        let kind = named.and_then(Json::as_str).unwrap_or("default");
        match kind {
            "default" => {
                self.only(&[])?;
                Ok(vec![("rotary_scaling", Value::Float(1.0))])
            }
            "linear" => {
                self.only(&[])?;
                Ok(vec![("rotary_scaling", self.required("factor")?)])
            }
            "llama3" => {
                self.only(&[
                    "low_freq_factor",
                    "high_freq_factor",
                    "original_max_position_embeddings",
                ])?;
                let low = self.required("low_freq_factor")?;
                let high = self.required("high_freq_factor")?;
                self.stretched("llama3", [low, high], max_length)
            }
            "yarn" => {
                self.only(&[
                    "beta_slow",
                    "beta_fast",
                    "original_max_position_embeddings",
                    "attention_factor",
                    "mscale",
                    "mscale_all_dim",
                    "truncate",
                ])?;
                let or = |key: &str, usual: f64| {
                    Ok::<_, Refused>(Value::Float(self.number(key)?.unwrap_or(usual)))
                };
                let turns = [or("beta_slow", 1.0)?, or("beta_fast", 32.0)?];
                let mut keys = self.stretched("yarn", turns, max_length)?;
                let factor = Value::Float(self.attention_factor()?);
                keys.push(("rotary_attention_factor", factor));
                Ok(keys)
            }
            "dynamic" => self.refuse(
                "\"dynamic\" scaling depends on the length of each sequence, and is not computed; \"linear\", \"llama3\" and \"yarn\" are",
            ),
            _ => self.refuse("only \"linear\", \"llama3\" and \"yarn\" scaling are computed"),
        }
    }

    /// The scaling of slow rotations, which turn less often than the first of two numbers.
    fn stretched(
        &self,
        kind: &str,
        [low, high]: [Value; 2],
        max_length: u64,
    ) -> Result<Set, Refused> {
        let key = "original_max_position_embeddings";
        let length = match self.table.get(key).filter(|value| !value.is_null()) {
            None => Some(max_length),
            Some(value) => value.as_u64(),
        };
        let Some(length) = length.filter(|length| (1..=1 << 20).contains(length)) else {
            return self.refuse(&format!(
                "`{key}` needs to be a number from 1 to {}",
                1 << 20
            ));
        };
        if let (Value::Float(low), Value::Float(high)) = (&low, &high)
            && low >= high
        {
            return self.refuse(&format!(
                "the slow rotations end at {low} turns, which needs to be below {high}"
            ));
        }
        Ok(vec![
            ("rotary_type", Value::Str(kind.into())),
            ("rotary_scaling", self.required("factor")?),
            ("rotary_length", Value::Int(length as i64)),
            ("rotary_low", low),
            ("rotary_high", high),
        ])
    }

    /// What YaRN multiplies queries and keys by.
    fn attention_factor(&self) -> Result<f64, Refused> {
        if let Some(truncate) = self.table.get("truncate")
            && !matches!(truncate, Json::Null | Json::Bool(true))
        {
            return self.refuse("`truncate` is only computed with true");
        }
        if let Some(factor) = self.number("attention_factor")? {
            return Ok(factor);
        }
        let factor = self.number("factor")?.unwrap_or(1.0);
        let of = |scale: f64| 1.0 + scale * (Stretch::usual_factor(factor) - 1.0);
        Ok(
            match (self.number("mscale")?, self.number("mscale_all_dim")?) {
                (Some(scale), Some(all)) => of(scale) / of(all),
                _ => of(1.0),
            },
        )
    }

    /// Refuses keys whose meaning is not known.
    fn only(&self, known: &[&str]) -> Result<(), Refused> {
        let unknown = self.table.iter().find(|(key, value)| {
            let is_known = COMMON.contains(&key.as_str()) || known.contains(&key.as_str());
            !is_known && !value.is_null()
        });
        match unknown {
            None => Ok(()),
            Some((key, _)) => self.refuse(&format!(
                "`{key}` is not computed: if it changes nothing, remove it from the file"
            )),
        }
    }

    fn required(&self, key: &str) -> Result<Value, Refused> {
        match self.number(key)? {
            Some(number) => Ok(Value::Float(number)),
            None => self.refuse(&format!("`{key}` is missing")),
        }
    }

    fn number(&self, key: &str) -> Result<Option<f64>, Refused> {
        match self.table.get(key) {
            None | Some(Json::Null) => Ok(None),
            Some(value) => match value.as_f64() {
                Some(number) if number > 0.0 && number.is_finite() => Ok(Some(number)),
                _ => self.refuse(&format!("`{key}` needs to be a number above 0")),
            },
        }
    }

    fn refuse<T>(&self, help: &str) -> Result<T, Refused> {
        let table = short(&Json::Object(self.table.clone()));
        refuse(
            format!("`{}` is {table}, which is not supported", self.key),
            help,
        )
    }
}
