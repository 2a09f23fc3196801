//! Masks of a layer: keys that name earlier layers, which become its last inputs.

use super::expand::{Expander, Scope};
use super::layer_spec::{MaskKey, Source};
use crate::spec::document::{Table, Value};

/// A row of the table of keys: key, name and documentation.
type Row = (MaskKey, &'static str, &'static str);

impl Expander<'_> {
    /// The masks that a layer's table names under some keys; `None` if one of them was refused. A mask that `when`
    /// removes masks nothing.
    pub(super) fn masks(
        &mut self,
        table: &Table,
        keys: &[Row],
        scope: &Scope,
    ) -> Option<Vec<(MaskKey, Source)>> {
        let mut masks = Vec::new();
        for (key, name, _) in keys {
            let Some(entry) = table.get(name) else {
                continue;
            };
            let Value::Str(named) = &entry.node.value else {
                return None; // It was refused.
            };
            let given = || scope.given(named);
            let earlier = self.earlier(named, scope).map(|part| part.output);
            match earlier.or_else(given) {
                Some(source) => masks.push((*key, source)),
                None if scope.left_out.contains(named) => {}
                None if self.is_wrong() => return None,
                None => {
                    let diagnostic = self.unknown(name, named, entry.node.span, scope);
                    self.refuse(diagnostic);
                    return None;
                }
            }
        }
        Some(masks)
    }
}
