//! The keys of own parts: each can be written without quotes, and nothing else in its table has its name.

use super::{OwnData, OwnLayer, OwnLoss, OwnOptimizer, OwnSchedule, OwnStrategy, Part, is_name};
use crate::diagnostic::Reason;
use crate::spec::model::describe_layer;
use crate::spec::section::{KeyDoc, Shape, Variant};

/// Refuses a key of an installed part that a file could not set.
///
/// # Errors
/// Why, with the name of the part.
pub(super) fn are_new() -> Result<(), Reason> {
    in_tables(&describe_layer())?;
    in_tables(crate::spec::describe())
}

fn in_tables(keys: &[KeyDoc]) -> Result<(), Reason> {
    keys.iter().try_for_each(|key| match &key.shape {
        Shape::Table(inner) | Shape::Tables(inner) => in_tables(inner),
        Shape::Variants(variants) => variants.iter().try_for_each(|variant| {
            if let Some(kind) = kind_of(variant.name) {
                in_part(kind, variant, keys)?;
            }
            in_tables(&variant.keys)
        }),
        _ => Ok(()),
    })
}

/// Refuses a key of a part, in a table that has other keys too.
fn in_part(kind: &str, variant: &Variant, others: &[KeyDoc]) -> Result<(), Reason> {
    let name = variant.name;
    for (at, KeyDoc { key, .. }) in variant.keys.iter().enumerate() {
        if !is_name(key) {
            return Err(Reason(format!(
                "the {kind} `{name}` cannot have the key `{key}`: use lowercase letters, digits and `_`"
            )));
        }
        if variant.keys[..at].iter().any(|earlier| earlier.key == *key) {
            return Err(Reason(format!(
                "the {kind} `{name}` reads the key `{key}` twice: read it once, or choose another name"
            )));
        }
        if others.iter().any(|other| other.key == *key) {
            return Err(Reason(format!(
                "the {kind} `{name}` cannot have the key `{key}`, which its table already has: choose another name"
            )));
        }
    }
    Ok(())
}

/// What a type is called in messages, if it is one of the program's.
fn kind_of(name: &str) -> Option<&'static str> {
    fn kind<P: Part>(name: &str) -> Option<&'static str> {
        P::named(name).map(|_| P::KIND)
    }
    kind::<OwnLayer>(name)
        .or_else(|| kind::<OwnLoss>(name))
        .or_else(|| kind::<OwnOptimizer>(name))
        .or_else(|| kind::<OwnSchedule>(name))
        .or_else(|| kind::<OwnStrategy>(name))
        .or_else(|| kind::<OwnData>(name))
}
