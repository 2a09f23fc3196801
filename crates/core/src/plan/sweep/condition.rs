//! `when` and `exclude`: conditions over the keys of a trial.
//!
//! `optimizer.type == 'sgd' and optimizer.momentum > 0.9` is valid even if adam has no momentum, since the part after
//! `and` is then not evaluated. A key that is not set has no value, whatever its default: this is an error, not a
//! guess.

use super::axis::Axis;
use crate::diagnostic::{Diagnostic, Wrong};
use crate::spec::document::{Node, Table, Value, is_inside, touch};
use crate::spec::expression::{Dialect, Formula, Names, holds};
use crate::spec::remedy::full_path;
use crate::spec::sweep::Text;
use crate::spec::{key_paths, nearest_path};

/// A condition over the keys of a trial.
#[derive(Clone, Debug)]
pub struct Condition {
    /// As written.
    pub text: Text,
    /// The axes that it depends on, in order.
    pub axes: Vec<usize>,
    formula: Formula,
    names: Vec<Name>,
}

/// A key in a condition, with the axes that set it, a part of it or a table around it.
#[derive(Clone, Debug)]
struct Name {
    path: String,
    axes: Vec<usize>,
}

/// The context of a condition: the file without its sweep, the axes, and the option of each that is set.
pub struct View<'a> {
    /// The file without its sweep.
    pub base: &'a Table,
    /// All axes.
    pub axes: &'a [Axis],
    /// The option that sets each axis; none if it is not set.
    pub set: &'a [Option<u32>],
}

impl Condition {
    /// Parses a condition, or returns what is wrong with it in every trial.
    pub fn new(text: &Text, base: &Table, axes: &[Axis]) -> Result<Self, Box<Diagnostic>> {
        let formula = Formula::parse(&text.source).map_err(|Wrong { message, help }| {
            let message = format!("`{}`: {message}", text.source);
            Box::new(
                Diagnostic::error("expression", message)
                    .at(text.span)
                    .help(help),
            )
        })?;
        let paths = formula.names(Dialect::File);
        let mut condition = Self {
            text: text.clone(),
            axes: Vec::new(),
            formula,
            names: Vec::new(),
        };
        for (path, is_asked_for) in paths {
            let numbered = base.numbered(&path);
            let touches = |axis: &Axis| touch(&base.numbered(&axis.key), &numbered);
            let touching = (0..axes.len()).filter(|at| touches(&axes[*at]));
            let touching: Vec<_> = touching.collect();
            // Whether the key exists depends on the type too.
            let narrows = |at: &usize| axes[*at].narrowed.iter().any(|n| touch(&n.key, &numbered));
            condition.axes.extend((0..axes.len()).filter(narrows));
            if touching.is_empty()
                && base.at(&path).is_none()
                && let Some(refusal) = refuse_unwritten(&path, is_asked_for, base, axes)
            {
                return Err(Box::new(refusal.at(text.span)));
            }
            condition.axes.extend(&touching);
            condition.names.push(Name {
                path,
                axes: touching,
            });
        }
        condition.axes.sort_unstable();
        condition.axes.dedup();
        Ok(condition)
    }

    /// Whether it is true.
    pub fn holds(&self, view: &View<'_>) -> Result<bool, Box<Diagnostic>> {
        let trial = Trial {
            condition: self,
            view,
        };
        let is_set = |name: &str| trial.find(name).is_some();
        let span = self.text.span;
        self.formula
            .holds(&is_set, &mut |source| holds(source, span, &trial))
    }
}

/// A key that neither the file nor an axis sets may only be used in `is_set`.
fn refuse_unwritten(
    path: &str,
    is_asked_for: bool,
    base: &Table,
    axes: &[Axis],
) -> Option<Diagnostic> {
    let mut known = key_paths();
    if known.iter().any(|key| key == path) {
        let message = format!("`{path}` is not set, and conditions ignore defaults");
        let refusal = Diagnostic::error("expression", message).help(write_it(path));
        return (!is_asked_for).then_some(refusal);
    }
    written_paths(base, "", &mut known);
    known.extend(axes.iter().map(|axis| axis.key.clone()));
    let ends = |key: &&String| key.ends_with(&format!(".{path}"));
    let near = known.iter().find(ends).map(String::as_str);
    let near = near.or_else(|| nearest_path(path, known.iter().map(String::as_str)));
    let diagnostic = Diagnostic::error("unknown-key", format!("there is no key `{path}`"));
    let meant = full_path(path).or_else(|| near.map(str::to_owned));
    Some(match meant {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => diagnostic.help(
            "conditions name dotted keys such as `optimizer.learning_rate`; quote text with single quotes, as in `optimizer.type == 'sgd'`",
        ),
    })
}

fn written_paths(table: &Table, prefix: &str, paths: &mut Vec<String>) {
    for entry in &table.entries {
        let path = if prefix.is_empty() {
            entry.key.clone()
        } else {
            format!("{prefix}.{}", entry.key)
        };
        if let Value::Table(inner) = &entry.node.value {
            written_paths(inner, &path, paths);
        }
        paths.push(path);
    }
}

fn write_it(path: &str) -> String {
    match path.rsplit_once('.') {
        Some((table, key)) => {
            format!("set `{key} = …` in `[{table}]`, or test for it first: `is_set({path}) and …`")
        }
        None => format!("add `[{path}]`, or test for it first: `is_set({path}) and …`"),
    }
}

/// The names of a condition in one trial.
struct Trial<'a> {
    condition: &'a Condition,
    view: &'a View<'a>,
}

impl Trial<'_> {
    /// The value of a key with the values of the axes, as [`super::Expansion::tree`] has it.
    fn find(&self, path: &str) -> Option<&Node> {
        let View { base, axes, set } = self.view;
        let name = self.condition.names.iter().find(|n| n.path == path)?;
        for at in name.axes.iter().rev() {
            let axis = &axes[*at];
            let Some(option) = set[*at] else { continue };
            let setting = axis.settings[option as usize].as_ref()?;
            let (key, path) = (base.numbered(&axis.key), base.numbered(path));
            if key == path {
                return Some(&setting.node);
            }
            if is_inside(&path, &key) {
                return match &setting.node.value {
                    Value::Table(table) => Some(&table.at(&path[key.len() + 1..])?.node),
                    _ => None,
                };
            }
        }
        if self.is_left_out(path) {
            None
        } else {
            base.at(path).map(|entry| &entry.node)
        }
    }

    /// Whether the trial's type does not have a key that the file sets.
    fn is_left_out(&self, path: &str) -> bool {
        let View { base, axes, set } = self.view;
        let path = base.numbered(path);
        let mut left_out = axes.iter().zip(*set).filter_map(|(axis, option)| {
            let mut left_out = axis.left_out((*option)?);
            left_out.find(|narrowed| narrowed.key == path || is_inside(&path, &narrowed.key))
        });
        left_out.next().is_some()
    }
}

impl Names for Trial<'_> {
    fn value(&self, name: &str) -> Result<Node, Wrong> {
        match self.find(name) {
            None if self.is_left_out(name) => Err(Wrong::new(
                format!("the type at this point does not have the key `{name}`"),
                format!("test for it first: `is_set({name}) and …`"),
            )),
            None => Err(Wrong::new(
                format!("`{name}` is not set at this point, and conditions ignore defaults"),
                write_it(name),
            )),
            Some(node) => match &node.value {
                Value::Str(text) if text.contains("${") => Err(Wrong::new(
                    format!("`{name}` is `{text}` at this point, which is evaluated later"),
                    "use the keys that it is computed from",
                )),
                _ => Ok(node.clone()),
            },
        }
    }
}
