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

/// Numbers of positions.
#[derive(Clone, Copy)]
struct Lengths {
    /// Of the network.
    most: u64,
    /// Before it was scaled, if that is beside the table.
    original: Option<u64>,
}

/// The base of rotary angles, and which are scaled. Newer files have both in one table.
pub(super) fn rotary(keys: &mut Keys<'_>) -> Result<Set, Refused> {
    let mut theta = keys.number("rope_theta", 10_000.0)?;
    let mut length = |key| keys.get(key).and_then(Json::as_u64);
    let lengths = Lengths {
        most: length("max_position_embeddings").unwrap_or(2048),
        original: length("original_max_position_embeddings"),
    };
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
        scaled = scaling.keys(lengths)?;
    }
    scaled.push(("theta", Value::Float(theta)));
    Ok(scaled)
}

impl Scaling<'_> {
    fn keys(&self, lengths: Lengths) -> Result<Set, Refused> {
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
                self.stretched("llama3", [low, high], lengths)
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
                let mut keys = self.stretched("yarn", turns, lengths)?;
                let factor = Value::Float(self.attention_factor()?);
                keys.push(("rotary_attention_factor", factor));
                Ok(keys)
            }
            "dynamic" => {
                self.only(&[])?;
                // As in transformers, whatever the length before that.
                let length = self.length(Some(lengths.most))?;
                Ok(vec![
                    ("rotary_type", Value::Str(kind.into())),
                    ("rotary_scaling", self.required("factor")?),
                    ("rotary_length", length),
                ])
            }
            "longrope" => self.by_pairs(lengths),
            _ => self.refuse(
                "only \"linear\", \"llama3\", \"yarn\", \"dynamic\" and \"longrope\" scaling are computed",
            ),
        }
    }

    /// The scaling of slow rotations, which turn less often than the first of two numbers.
    fn stretched(
        &self,
        kind: &str,
        [low, high]: [Value; 2],
        lengths: Lengths,
    ) -> Result<Set, Refused> {
        let length = self.length(self.original(lengths))?;
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
            ("rotary_length", length),
            ("rotary_low", low),
            ("rotary_high", high),
        ])
    }

    /// The scaling of each pair of features on its own.
    fn by_pairs(&self, lengths: Lengths) -> Result<Set, Refused> {
        self.only(&[
            "short_factor",
            "long_factor",
            "original_max_position_embeddings",
            "attention_factor",
        ])?;
        let original = self.original(lengths);
        let length = self.length(original)?;
        let before = original.unwrap_or(1);
        let scaling = match self.number("factor")? {
            Some(factor) => factor,
            None => lengths.most as f64 / before as f64,
        };
        let factor = match self.number("attention_factor")? {
            Some(factor) => factor,
            None => Stretch::usual_long_factor(scaling, before as usize),
        };
        Ok(vec![
            ("rotary_type", Value::Str("longrope".into())),
            ("rotary_scaling", Value::Float(scaling)),
            ("rotary_length", length),
            ("rotary_attention_factor", Value::Float(factor)),
            ("rotary_short", self.factors("short_factor")?),
            ("rotary_long", self.factors("long_factor")?),
        ])
    }

    /// A number above 0 for each pair of features.
    fn factors(&self, key: &str) -> Result<Value, Refused> {
        let list = self.table.get(key).and_then(Json::as_array);
        let Some(list) = list.filter(|list| !list.is_empty()) else {
            return self.refuse(&format!("`{key}` needs to be a list of numbers"));
        };
        let usable = |number: &f64| *number > 0.0 && number.is_finite();
        let numbers = list.iter().map(|number| number.as_f64().filter(usable));
        match numbers.collect::<Option<Vec<f64>>>() {
            Some(numbers) => Ok(Value::floats(&numbers)),
            None => self.refuse(&format!("the numbers of `{key}` need to be above 0")),
        }
    }

    /// The positions that the network was trained for before it was scaled.
    fn original(&self, lengths: Lengths) -> Option<u64> {
        let written = self.table.get("original_max_position_embeddings");
        match written.filter(|value| !value.is_null()) {
            None => Some(lengths.original.unwrap_or(lengths.most)),
            Some(value) => value.as_u64(),
        }
    }

    fn length(&self, length: Option<u64>) -> Result<Value, Refused> {
        match length.filter(|length| (1..=1 << 20).contains(length)) {
            Some(length) => Ok(Value::Int(length as i64)),
            None => self.refuse(&format!(
                "`original_max_position_embeddings` needs to be a number from 1 to {}",
                1 << 20
            )),
        }
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
