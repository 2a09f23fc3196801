//! Keys of presets that say how large items are: a wrong one is refused at the key, and not where the layers no longer
//! fit.

use super::span;
use crate::data::InputPlan;
use crate::diagnostic::Diagnostic;
use crate::spec::document::{Table, Value};
use crate::spec::model::preset::{ModelType, Parameter, Preset};
use crate::spec::section::by_name;

/// The key of the preset of an experiment that does not fit the items, if there is one.
pub fn misfit(root: &Table, input: &InputPlan) -> Option<Diagnostic> {
    let Some(Value::Str(kind)) = root.value_at("model.type") else {
        return None;
    };
    let preset = Preset::of(by_name::<ModelType>(kind)?)?;
    if !input.parts.is_empty() || input.vocabulary.is_some() {
        return None;
    }
    let items = input.shape.as_slice();
    let mut parameters = preset.parameters.iter();
    parameters.find_map(|parameter| wrong(root, preset, parameter, items))
}

fn wrong(
    root: &Table,
    preset: &Preset,
    parameter: &Parameter,
    items: &[usize],
) -> Option<Diagnostic> {
    let (name, key) = (preset.name, parameter.key.as_str());
    let path = format!("model.{key}");
    let is_set = root.at(&path).is_some();
    let value = size(root, parameter)?;
    let said = if is_set {
        format!("`{key}` is {value}")
    } else {
        format!("`{key}` of the preset `{name}` is {value} by default")
    };
    let at = span(root, if is_set { &path } else { "model.type" });
    let refuse =
        |message: String, help: String| Some(Diagnostic::error("shape", message).at(at).help(help));
    if parameter.halves_items && items.len() == 3 {
        let sides = &items[1..];
        let fitting = sides.iter().map(|side| side.trailing_zeros()).min()? as usize;
        if fitting >= value {
            return None;
        }
        let message = format!(
            "{said}, but images of {}x{} can be halved {fitting} times",
            sides[0], sides[1]
        );
        let help = if fitting == 0 {
            format!(
                "resize the images to a multiple of {}, such as with `data.image_size`",
                1_u64 << value.min(32)
            )
        } else {
            format!(
                "set `{key} = {fitting}`, or resize the images to a multiple of {}",
                1_u64 << value.min(32)
            )
        };
        return refuse(message, help);
    }
    if let Some(multiple) = &parameter.divides {
        let other = preset.parameters.iter().find(|of| of.key == *multiple)?;
        let whole = size(root, other)?;
        if value > 0 && whole.is_multiple_of(value) {
            return None;
        }
        let parts: Vec<String> = (1..=whole.min(2 * value))
            .filter(|part| whole.is_multiple_of(*part))
            .map(|part| part.to_string())
            .collect();
        return refuse(
            format!("{said}, which does not divide the `{multiple}` of {whole}"),
            format!("set `{key}` to one of {}", parts.join(", ")),
        );
    }
    let (axis, rank) = parameter.item_axis?;
    if items.len() != rank {
        return None;
    }
    if key == "image_size" && items[1] != items[2] {
        let message = format!("the preset `{name}` takes square images, got items of {items:?}");
        let wrong = Diagnostic::error("shape", message).at(span(root, "model.type"));
        return Some(wrong.help("resize the images to squares, such as with `data.image_size`"));
    }
    let found = items[axis];
    if found == value {
        return None;
    }
    let message = format!("{said}, but items have the shape {items:?}");
    refuse(message, format!("set `{key} = {found}`"))
}

/// The value of a parameter, if it is a size.
fn size(root: &Table, parameter: &Parameter) -> Option<usize> {
    let set = root.value_at(&format!("model.{}", parameter.key));
    match set.unwrap_or(&parameter.default.value) {
        Value::Int(value) => usize::try_from(*value).ok(),
        _ => None,
    }
}
