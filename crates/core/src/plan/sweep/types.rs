//! Axes over a `type`: what the file sets for one type and another type does not have.
//!
//! `momentum` in `[optimizer]` and an axis over `optimizer.type` from `sgd` to `adam` belong together: the key is for
//! `sgd`, and trials of `adam` are without it. A key that no type of the axis has stays where it is, and is refused.

use std::collections::BTreeSet;

use super::axis::Axis;
use crate::diagnostic::Span;
use crate::spec::document::{Table, Value};
use crate::spec::keys_of_types;

/// A key of the file that not all types of an axis have.
#[derive(Clone, Debug)]
pub struct Narrowed {
    /// The dotted key, with items of lists by number.
    pub key: String,
    /// Where it is written.
    pub span: Span,
    /// The types that have it, in the order of the axis.
    pub having: Vec<String>,
    /// Those that do not.
    pub lacking: Vec<String>,
}

/// Finds for each axis over a `type` the keys of the file that not all of its types have.
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
    // Where the axis does not set it, the file's own type counts.
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
        // A type that is not known is refused by itself.
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
    /// The keys of the file that a trial with this option is without.
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

/// What the user is told: which keys which trials are without. `used` are the types that trials have, by axis.
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
                "`{}` ({}) is left out of trials with `{}` {lacking}: {only}",
                narrowed.key,
                line(narrowed.span),
                axis.key,
            ));
        }
    }
    notices
}
