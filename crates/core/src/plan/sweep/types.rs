//! Axes over a `type`: keys of the file that one type has and another does not.
//!
//! `momentum` in `[optimizer]` and an axis over `optimizer.type` from `sgd` to `adam` are compatible: the key is for
//! `sgd`, and is removed from trials of `adam`. A key that no type of the axis has is kept, and refused.

use std::collections::BTreeSet;

use super::axis::Axis;
use crate::diagnostic::Span;
use crate::spec::document::{Table, Value};
use crate::spec::keys_of_types;

/// A key of the file that not all types of an axis have.
#[derive(Clone, Debug)]
pub struct Narrowed {
    /// The dotted key, with list items by index.
    pub key: String,
    /// Its place.
    pub span: Span,
    /// The types that have it, in the order of the axis.
    pub having: Vec<String>,
    /// Those that do not.
    pub lacking: Vec<String>,
}

/// Finds the keys of the file that not all types of each axis over a `type` have.
pub fn narrow(axes: &mut [Axis], base: &Table) {
    for axis in axes {
        axis.narrowed = narrowed(axis, base).unwrap_or_default();
    }
}

fn narrowed(axis: &Axis, base: &Table) -> Option<Vec<Narrowed>> {
    let table = axis.key.strip_suffix(".type")?;
    let table = base.numbered(table);
    let Value::Table(written) = base.value_at(&table)? else {
        return None;
    };
    let mut types: Vec<String> = Vec::new();
    let set = axis.settings.iter().flatten();
    let values = set.map(|setting| &setting.node.value);
    // If the axis is not set, the file's own type counts.
    let own = written.get("type").map(|entry| &entry.node.value);
    for value in values.chain(own.filter(|_| !axis.is_always_set())) {
        match value {
            Value::Str(name) if !types.contains(name) => types.push(name.clone()),
            _ => {}
        }
    }
    let keys = keys_of_types(&table, base)?;
    let mut found = Vec::new();
    for entry in written.entries.iter().filter(|entry| entry.key != "type") {
        let has = |name: &&String| keys.has(name, &entry.key);
        // An unknown type is refused elsewhere.
        let is_known = |name: &&String| keys.is_type(name);
        let (having, lacking): (Vec<_>, Vec<_>) = types
            .iter()
            .filter(is_known)
            .cloned()
            .partition(|name| has(&name));
        if !having.is_empty() && !lacking.is_empty() {
            found.push(Narrowed {
                key: format!("{table}.{}", entry.key),
                span: entry.key_span,
                having,
                lacking,
            });
        }
    }
    Some(found)
}

impl Axis {
    /// The keys of the file that are removed for a trial with this option.
    pub fn left_out(&self, option: u32) -> impl Iterator<Item = &Narrowed> {
        let setting = self.settings[option as usize].as_ref();
        let name = setting.and_then(|setting| match &setting.node.value {
            Value::Str(name) => Some(name.as_str()),
            _ => None,
        });
        self.narrowed.iter().filter(move |narrowed| {
            name.is_some_and(|name| narrowed.lacking.iter().any(|lacking| lacking == name))
        })
    }
}

/// The notice about removed keys. `used` are the types of the trials, by axis.
pub fn notices(
    axes: &[Axis],
    used: &[BTreeSet<String>],
    line: &dyn Fn(Span) -> String,
) -> Vec<String> {
    let mut notices = Vec::new();
    for (axis, used) in axes.iter().zip(used) {
        for narrowed in &axis.narrowed {
            let quoted = |names: &[String]| {
                let names = names.iter().filter(|name| used.contains(*name));
                let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
                names.join(", ")
            };
            let (lacking, having) = (quoted(&narrowed.lacking), quoted(&narrowed.having));
            if lacking.is_empty() {
                continue;
            }
            let only = if having.is_empty() {
                "no trial has it".to_owned()
            } else {
                format!("it is a key of {having}")
            };
            notices.push(format!(
                "`{}` ({}) is not set in trials with `{}` {lacking}: {only}",
                narrowed.key,
                line(narrowed.span),
                axis.key,
            ));
        }
    }
    notices
}
