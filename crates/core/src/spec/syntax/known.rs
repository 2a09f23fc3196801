//! What the keys of experiment files tell about a line.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use crate::spec::describe;
use crate::spec::section::{KeyDoc, Shape, joined};

#[derive(Default)]
struct Known {
    /// Whether a table is one of a list, by its path.
    tables: BTreeMap<String, bool>,
    /// The last names of all paths.
    names: BTreeSet<&'static str>,
}

/// Whether `[path]` or `[[path]]` is a table of experiment files, and if so, whether it is one of a list.
pub fn table(path: &str) -> Option<bool> {
    let path = match path.rsplit_once('.') {
        // Those of a block.
        Some((_, "layers")) => "model.layers",
        _ => path,
    };
    known().tables.get(path).copied()
}

/// Whether a key has this name, whichever table it is in.
pub fn is_key_name(name: &str) -> bool {
    known().names.contains(name)
}

fn known() -> &'static Known {
    static KNOWN: OnceLock<Known> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let mut known = Known::default();
        known.add(describe(), "");
        known
    })
}

impl Known {
    fn add(&mut self, keys: &'static [KeyDoc], above: &str) {
        for key in keys {
            let path = joined(above, key.key);
            if !key.key.is_empty() {
                self.names.insert(key.key);
            }
            match &key.shape {
                Shape::Table(inner) => {
                    self.add(inner, &path);
                    self.tables.insert(path, false);
                }
                Shape::Tables(inner) => {
                    self.add(inner, &path);
                    self.tables.insert(path, true);
                }
                Shape::Layers | Shape::Trials => {
                    self.tables.insert(path, true);
                }
                Shape::Axes | Shape::Distributions | Shape::Blocks | Shape::Free => {
                    self.tables.insert(path, false);
                }
                Shape::Variants(variants) => {
                    for variant in variants {
                        self.add(&variant.keys, above);
                    }
                }
                Shape::Scalar(_) | Shape::Values => {}
            }
        }
    }
}
