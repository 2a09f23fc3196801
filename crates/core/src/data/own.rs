//! Data sources of a program's own.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{DataError, Inputs, Items, TargetPlan, TargetValues};
use crate::spec::own::{Entry, OwnData, Part, REMEDY, Settings, Unfit, Used, recorded, restored};
use crate::spec::section::Section;

/// A data source, written in Rust: items in memory, from settings.
///
/// They are asked for when an experiment is planned, and in each process that trains. They must be the same each time:
/// their digest is part of a run's identity, and a process that gets others than were planned refuses to train.
///
/// ```
/// use std::path::Path;
///
/// use runner_core::data::own::DataPart;
/// use runner_core::data::Items;
/// use runner_core::spec::kind::Kind;
/// use runner_core::spec::own::Unfit;
/// use runner_core::spec::section::Section;
///
/// use serde::{Deserialize, Serialize};
///
/// struct Parity;
///
/// #[derive(Serialize, Deserialize)]
/// struct Settings {
///     num_bits: usize,
/// }
///
/// impl DataPart for Parity {
///     const NAME: &'static str = "parity";
///     const DOC: &'static str = "All words of some bits; the class is their sum modulo 2.";
///     type Settings = Settings;
///
///     fn settings(section: &mut Section<'_>) -> Settings {
///         let num_bits = section.field("num_bits", Kind::Int(1, 16), "Bits of a word.");
///         Settings { num_bits: num_bits.or(8) }
///     }
///
///     fn items(settings: &Settings, _folder: &Path) -> Result<Items, Unfit> {
///         let words = 0..1_usize << settings.num_bits;
///         let bits = |word: usize| (0..settings.num_bits).map(move |at| (word >> at & 1) as f32);
///         let classes = words.clone().map(|word| word.count_ones() as i32 % 2).collect();
///         let items = Items::of_numbers(vec![settings.num_bits], words.flat_map(bits).collect());
///         Ok(items.with_classes(2, classes))
///     }
/// }
/// ```
pub trait DataPart: 'static {
    /// Its `type` in experiment files: lowercase letters, digits and `_`.
    const NAME: &'static str;
    /// Its meaning, as one sentence.
    const DOC: &'static str;
    /// Its settings: a struct. They are written to `run.toml` as serde serializes them, and determine a run's
    /// fingerprint.
    type Settings: Serialize + DeserializeOwned;

    /// Reads the keys.
    fn settings(section: &mut Section<'_>) -> Self::Settings;

    /// The items. `folder` is that of the experiment file: paths in the settings start from it.
    ///
    /// # Errors
    /// Why there are none: the key of the message and what to do about it.
    fn items(settings: &Self::Settings, folder: &Path) -> Result<Items, Unfit>;

    /// The items of the test split, if the data has an official one; otherwise it is taken from [`items`](Self::items).
    ///
    /// # Errors
    /// As those of [`items`](Self::items).
    fn test_items(settings: &Self::Settings, folder: &Path) -> Result<Option<Items>, Unfit> {
        let _ = (settings, folder);
        Ok(None)
    }
}

/// The entry of a data source in the table of parts.
pub fn data<D: DataPart>() -> OwnData {
    OwnData {
        entry: Entry {
            name: D::NAME,
            doc: D::DOC,
            decode: |section| recorded(&D::settings(section)),
        },
        module: const {
            &Source {
                items: |settings, folder| {
                    let settings = restored(settings);
                    Ok((
                        D::items(&settings, folder)?,
                        D::test_items(&settings, folder)?,
                    ))
                },
            }
        },
    }
}

/// What [`OwnData::module`] refers to.
struct Source {
    items: fn(&Settings, &Path) -> Result<Both, Unfit>,
}

/// Items, and those of an official test split.
pub(super) type Both = (Items, Option<Items>);

/// The items of a data source, and those of its test split.
pub(super) fn items(used: &Used, folder: &Path) -> Result<Both, DataError> {
    let name = &used.part;
    let wrong = |message: String| DataError::new(message).help(REMEDY);
    let Some(part) = OwnData::named(name) else {
        let missing = OwnData::missing(name).unwrap_or_default();
        return Err(DataError::new(missing).help("use the program that has it"));
    };
    let source: &Source = part.module.downcast_ref().expect("`data` made it");
    let get = || (source.items)(&used.settings, folder);
    let both = OwnData::guarded(name, "while it made its items", get).map_err(wrong)?;
    let (items, test) = both.map_err(|unfit| {
        let message = format!("the data source `{name}` {}", unfit.message);
        let error = DataError::new(message).help(unfit.help);
        error.key(format!("data.{}", unfit.key))
    })?;
    let promise = is_sound(&items).and_then(|()| match &test {
        None => Ok(()),
        Some(test) if (&test.input, &test.target) != (&items.input, &items.target) => Err(format!(
            "items of the test split have {} with {}, and the others {} with {}",
            test.input.show(),
            test.target.show(),
            items.input.show(),
            items.target.show()
        )),
        Some(test) => is_sound(test).map_err(|e| format!("of the test split, {e}")),
    });
    promise.map_err(|broken| wrong(OwnData::broken(name, broken)))?;
    Ok((items, test))
}

/// What is wrong with items, if anything is.
fn is_sound(items: &Items) -> Result<(), String> {
    let shape = &items.input.shape;
    if shape.is_empty() || shape.contains(&0) {
        return Err(format!(
            "items have the shape {shape:?}, and every item needs at least one value"
        ));
    }
    let (num_values, size) = (items.num_values(), items.item_size());
    if num_values == 0 {
        return Err("there are no items".into());
    }
    if num_values % size != 0 {
        return Err(format!(
            "there are {num_values} values, not a multiple of the {size} of an item"
        ));
    }
    let (num, target_size) = (items.len(), items.target.size());
    if u32::try_from(num).is_err() {
        return Err(format!(
            "there are {num} items, and {} are the most",
            u32::MAX
        ));
    }
    let expected = num.saturating_mul(target_size);
    if items.targets.len() != expected {
        return Err(format!(
            "there are {} target values, and {num} items with {} need {expected}",
            items.targets.len(),
            items.target.show()
        ));
    }
    inputs_are_sound(items, size)?;
    targets_are_sound(items, target_size)
}

fn inputs_are_sound(items: &Items, size: usize) -> Result<(), String> {
    match (&items.inputs, items.input.vocabulary) {
        (Inputs::Floats(values), _) => first(values, |value| value.is_finite())
            .map_or(Ok(()), |(at, value)| {
                Err(format!("item {} has the value {value}", at / size))
            }),
        (Inputs::Tokens(tokens), Some(vocabulary)) => {
            let is_known =
                |token: i32| usize::try_from(token).is_ok_and(|token| token < vocabulary);
            first(tokens, is_known).map_or(Ok(()), |(at, token)| {
                Err(format!(
                    "item {} has the token {token}, and the vocabulary has {vocabulary}",
                    at / size
                ))
            })
        }
        _ => Ok(()),
    }
}

fn targets_are_sound(items: &Items, size: usize) -> Result<(), String> {
    let at_item = |at: usize| at / size.max(1);
    match (&items.targets, &items.target) {
        (
            TargetValues::Classes(classes),
            target @ (TargetPlan::Class { num_classes } | TargetPlan::Classes { num_classes, .. }),
        ) => {
            let may_ignore = matches!(target, TargetPlan::Classes { .. });
            let is_known = |class: i32| match usize::try_from(class) {
                Ok(class) => class < *num_classes,
                Err(_) => may_ignore && class == -1,
            };
            first(classes, is_known).map_or(Ok(()), |(at, class)| {
                Err(format!(
                    "item {} has the class {class}, and there are {num_classes} classes",
                    at_item(at)
                ))
            })
        }
        (TargetValues::Floats(values), TargetPlan::Labels { .. }) => {
            first(values, |value| value == 0.0 || value == 1.0).map_or(Ok(()), |(at, value)| {
                Err(format!(
                    "item {} has the label {value}, which is neither 0 nor 1",
                    at_item(at)
                ))
            })
        }
        (targets, _) => {
            let values = targets.singles().unwrap_or_default();
            first(&values, f32::is_finite).map_or(Ok(()), |(at, value)| {
                Err(format!("item {} has the target {value}", at_item(at)))
            })
        }
    }
}

/// The first value that is not as it should be, with its position.
fn first<T: Copy>(values: &[T], is_right: impl Fn(T) -> bool) -> Option<(usize, T)> {
    let mut all = values.iter().copied().enumerate();
    all.find(|(_, value)| !is_right(*value))
}
