//! Deltas as safetensors files.
//!
//! Each parameter is a tensor of 64-bit floats. Values that are kept are two further tensors: `NAME//at` with their
//! places, and `NAME//to` with the values in the type of the weights.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;

use runner_core::data::DataError;
use runner_core::spec::init::InitLayout;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Delta, Parameter};
use crate::read::{Weights, damaged};
use crate::tensors::{Dtype, NamedTensor, Tensors};
use crate::write::{WriteError, safetensors_about};

/// The metadata key that makes a file a delta. Its value is JSON.
pub const KEY: &str = "runner_delta";
/// The version of the format.
const VERSION: u64 = 1;

/// What the metadata says.
#[derive(Serialize, Deserialize)]
struct About {
    version: u64,
    layout: InitLayout,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<String>,
}

/// The ends of names of tensors with places and with values.
const AT: &str = "//at";
const TO: &str = "//to";

/// Writes a delta.
///
/// # Errors
/// If two tensors would have one name, or the writer fails.
pub fn write(delta: &Delta, to: impl Write) -> Result<(), WriteError> {
    let mut tensors = Tensors::new();
    let parameters = delta.parameters.iter();
    let names: BTreeSet<&str> = parameters.map(|it| it.name.as_str()).collect();
    for parameter in &delta.parameters {
        if is_part(&parameter.name, &names) {
            let name = parameter.name.clone();
            return Err(WriteError::Repeated { name });
        }
        let Parameter {
            name,
            shape,
            differences,
            at,
            to,
        } = parameter;
        let bytes = differences.iter().flat_map(|value| value.to_le_bytes());
        let tensor = NamedTensor::new(name, shape.clone(), Dtype::F64, bytes.collect());
        push(&mut tensors, tensor.expect("the values fit the shape"))?;
        if let Some(to) = to {
            let bytes = at.iter().flat_map(|at| at.to_le_bytes()).collect();
            let places = NamedTensor::new(name.clone() + AT, vec![at.len()], Dtype::U64, bytes);
            push(&mut tensors, places.expect("a place is 8 bytes"))?;
            push(&mut tensors, to.clone().named(name.clone() + TO))?;
        }
    }
    let about = About {
        version: VERSION,
        layout: delta.layout,
        base: delta.base.clone(),
        target: delta.target.clone(),
    };
    let about = serde_json::to_string(&about).map_err(io::Error::from)?;
    safetensors_about(&tensors, (KEY, &about), to)
}

/// Whether a tensor of this name has places or values of one of these parameters.
fn is_part(name: &str, names: &BTreeSet<&str>) -> bool {
    [AT, TO].iter().any(|end| {
        let owner = name.strip_suffix(end);
        owner.is_some_and(|owner| names.contains(owner))
    })
}

fn push(tensors: &mut Tensors, tensor: NamedTensor) -> Result<(), WriteError> {
    let name = tensor.name().to_owned();
    tensors
        .push(tensor)
        .map_err(|_| WriteError::Repeated { name })
}

/// Reads a delta.
///
/// # Errors
/// If the file cannot be read, is not a delta, or is damaged.
pub fn read(path: &Path) -> Result<Delta, DataError> {
    let weights = Weights::open_any(path, None)?;
    let place = path.display();
    let Some(about) = weights.about().get(KEY) else {
        let message = format!("`{place}` is not a weight delta");
        return Err(DataError::new(message)
            .help("use a file of `runner delta diff` or `runner delta average`"));
    };
    let about = about_of(about).map_err(|reason| damaged(path, reason))?;
    let names: BTreeSet<&str> = weights
        .entries()
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    let mut tensors = BTreeMap::new();
    weights.read(&names, &mut |tensor| {
        tensors.insert(tensor.name().to_owned(), tensor);
        Ok(())
    })?;
    let mut parameters = Vec::new();
    for name in &names {
        if is_part(name, &names) {
            continue;
        }
        let kept = (
            tensors.remove(&format!("{name}{AT}")),
            tensors.remove(&format!("{name}{TO}")),
        );
        let Some(tensor) = tensors.remove(*name) else {
            continue;
        };
        let parameter = parameter(tensor, kept);
        parameters.push(parameter.map_err(|reason| damaged(path, format!("`{name}` {reason}")))?);
    }
    Ok(Delta {
        layout: about.layout,
        base: about.base,
        target: about.target,
        parameters,
    })
}

/// The metadata, or why it is not valid.
fn about_of(text: &str) -> Result<About, String> {
    let version = serde_json::from_str::<Value>(text).ok();
    let version = version.and_then(|about| about.get("version")?.as_u64());
    match version {
        Some(VERSION) => serde_json::from_str(text)
            .ok()
            .filter(|about: &About| about.layout != InitLayout::Auto)
            .ok_or_else(|| "its metadata is not that of a weight delta".into()),
        Some(version) => Err(format!(
            "it is a weight delta of version {version}, but this program reads version {VERSION}"
        )),
        None => Err("its metadata has no version".into()),
    }
}

/// A parameter from its tensors, or what is wrong with it, as a continuation of its name.
fn parameter(
    tensor: NamedTensor,
    kept: (Option<NamedTensor>, Option<NamedTensor>),
) -> Result<Parameter, &'static str> {
    if tensor.dtype() != Dtype::F64 {
        return Err("is not of 64-bit floats");
    }
    let (at, to) = match kept {
        (None, None) => (Vec::new(), None),
        (Some(at), Some(to)) => {
            let places = at.to_i64s().filter(|_| at.dtype() == Dtype::U64);
            let places: Option<Vec<u64>> =
                places.map(|all| all.iter().map(|at| *at as u64).collect());
            let are_places = |at: &Vec<u64>| {
                at.is_sorted_by(|one, next| one < next)
                    && at.iter().all(|at| *at < tensor.num_values() as u64)
            };
            let places = places.filter(are_places);
            let places = places.ok_or("keeps values at places that it does not have")?;
            if to.shape() != [places.len()] || !to.dtype().is_float() {
                return Err("does not keep a value for each of its places");
            }
            (places, Some(to.named(tensor.name())))
        }
        _ => return Err("has places without values, or values without places"),
    };
    Ok(Parameter {
        name: tensor.name().to_owned(),
        shape: tensor.shape().to_vec(),
        differences: tensor.to_f64s(),
        at,
        to,
    })
}
