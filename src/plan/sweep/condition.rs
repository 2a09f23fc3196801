//! `when` and `exclude`: conditions over the keys of a trial.
//!
//! Comparisons and arithmetic are expressions as elsewhere; `and`, `or`, `not` and `is_set(key)` are
//! taken apart here, since what stands behind `and` must not be looked at when the part before it does
//! not hold: `optimizer.type == 'sgd' and optimizer.momentum > 0.9` is no mistake where adam has no
//! momentum. A key that is not written has no value, whatever its default is: that is said, not guessed.

use super::axis::Axis;
use crate::diagnostic::Diagnostic;
use crate::spec::document::{Node, Table, Value};
use crate::spec::expression::{Names, Wrong, evaluate, names_in};
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

/// A key that a condition names, with the axes that set it, a part of it or a table around it.
#[derive(Clone, Debug)]
struct Name {
    path: String,
    axes: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq)]
enum Formula {
    Any(Vec<Formula>),
    All(Vec<Formula>),
    Not(Box<Formula>),
    IsSet(String),
    Leaf(String),
}

/// What a condition looks at: the file without its sweep, the axes, and the option of each that is set.
pub struct View<'a> {
    /// The file without its sweep.
    pub base: &'a Table,
    /// All axes.
    pub axes: &'a [Axis],
    /// For each axis the option that sets it; none where it is not set.
    pub set: &'a [Option<u32>],
}

impl Condition {
    /// Reads a condition, or says what is wrong with it whatever the trial is.
    pub fn new(text: &Text, base: &Table, axes: &[Axis]) -> Result<Self, Box<Diagnostic>> {
        let formula = Formula::parse(&text.source, 0).map_err(|(message, help)| {
            let message = format!("`{}`: {message}", text.source);
            Box::new(
                Diagnostic::error("expression", message)
                    .at(text.span)
                    .help(help),
            )
        })?;
        let mut paths = Vec::new();
        formula.collect_names(&mut paths);
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

    /// Whether it holds.
    pub fn holds(&self, view: &View<'_>) -> Result<bool, Box<Diagnostic>> {
        let trial = Trial {
            condition: self,
            view,
        };
        self.formula.holds(&trial)
    }
}

/// Whether one key is the other or inside of it.
pub fn touch(a: &str, b: &str) -> bool {
    a == b || is_inside(a, b) || is_inside(b, a)
}

/// Whether the key `a` is inside of the table `b`.
pub fn is_inside(a: &str, b: &str) -> bool {
    a.strip_prefix(b).is_some_and(|rest| rest.starts_with('.'))
}

/// A key that neither the file nor an axis sets may only be asked for with `is_set`.
fn refuse_unwritten(
    path: &str,
    is_asked_for: bool,
    base: &Table,
    axes: &[Axis],
) -> Option<Diagnostic> {
    let mut known = key_paths();
    if known.iter().any(|key| key == path) {
        let message =
            format!("`{path}` is not written, and conditions see what is written, not defaults");
        let refusal = Diagnostic::error("expression", message).help(write_it(path));
        return (!is_asked_for).then_some(refusal);
    }
    written_paths(base, "", &mut known);
    known.extend(axes.iter().map(|axis| axis.key.clone()));
    let ends = |key: &&String| key.ends_with(&format!(".{path}"));
    let near = known.iter().find(ends).map(String::as_str);
    let near = near.or_else(|| nearest_path(path, known.iter().map(String::as_str)));
    let diagnostic = Diagnostic::error("unknown-key", format!("there is no key `{path}`"));
    Some(match near {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => diagnostic.help(
            "conditions name dotted keys such as `optimizer.learning_rate`; text stands in single quotes, as in `optimizer.type == 'sgd'`",
        ),
    })
}

fn written_paths(table: &Table, prefix: &str, paths: &mut Vec<String>) {
    for entry in &table.entries {
        let path = match prefix.is_empty() {
            true => entry.key.clone(),
            false => format!("{prefix}.{}", entry.key),
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
            format!("write `{key} = …` in `[{table}]`, or ask for it first: `is_set({path}) and …`")
        }
        None => format!("write `[{path}]`, or ask for it first: `is_set({path}) and …`"),
    }
}

/// The names of a condition in one trial.
struct Trial<'a> {
    condition: &'a Condition,
    view: &'a View<'a>,
}

impl Trial<'_> {
    /// The value of a key with the axes' values in place, as [`super::Expansion::tree`] has it.
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
        base.at(path).map(|entry| &entry.node)
    }
}

impl Names for Trial<'_> {
    fn value(&self, name: &str) -> Result<Node, Wrong> {
        match self.find(name) {
            None => Err((
                format!(
                    "`{name}` is not set at this point, and conditions see what is written, not defaults"
                ),
                write_it(name),
            )),
            Some(node) => match &node.value {
                Value::Str(text) if text.contains("${") => Err((
                    format!("`{name}` is `{text}` there, which is worked out only later"),
                    "name the keys that it is worked out from".into(),
                )),
                _ => Ok(node.clone()),
            },
        }
    }
}

impl Formula {
    fn parse(source: &str, depth: usize) -> Result<Self, Wrong> {
        const MAX_DEPTH: usize = 64;
        if depth > MAX_DEPTH {
            return Err(("it is nested too deeply".into(), "write it shorter".into()));
        }
        let all = |parts: Vec<&str>| -> Result<Vec<Self>, Wrong> {
            let parts = parts.into_iter();
            parts.map(|part| Self::parse(part, depth + 1)).collect()
        };
        let source = source.trim();
        if source.is_empty() {
            let help = "write a comparison, as in `optimizer.type == 'sgd'`";
            return Err(("a condition is missing".into(), help.into()));
        }
        match split(source, "or")? {
            parts if parts.len() > 1 => return Ok(Self::Any(all(parts)?)),
            _ => {}
        }
        match split(source, "and")? {
            parts if parts.len() > 1 => return Ok(Self::All(all(parts)?)),
            _ => {}
        }
        if let Some(rest) = source.strip_prefix("not")
            && !rest.starts_with(is_word)
        {
            return Ok(Self::Not(Box::new(Self::parse(rest, depth + 1)?)));
        }
        if let Some(inner) = in_parentheses(source) {
            return Self::parse(inner, depth + 1);
        }
        let asked = source.strip_prefix("is_set").map(str::trim_start);
        if let Some(asked) = asked.filter(|rest| rest.starts_with('(')) {
            let name = in_parentheses(asked).unwrap_or_default().trim();
            let is_key = !name.is_empty() && name.chars().all(|c| is_word(c) || c == '-');
            return match is_key {
                true => Ok(Self::IsSet(name.to_owned())),
                false => Err((
                    format!("`{source}` does not name one key"),
                    "write it as in `is_set(optimizer.momentum)`".into(),
                )),
            };
        }
        Ok(Self::Leaf(source.to_owned()))
    }

    /// The keys that are named, each with whether it is only asked for.
    fn collect_names(&self, found: &mut Vec<(String, bool)>) {
        let mut add = |name: &str, asked| match found.iter_mut().find(|(n, _)| n == name) {
            Some((_, known)) => *known &= asked,
            None => found.push((name.to_owned(), asked)),
        };
        match self {
            Self::Any(parts) | Self::All(parts) => {
                parts.iter().for_each(|part| part.collect_names(found));
            }
            Self::Not(part) => part.collect_names(found),
            Self::IsSet(name) => add(name, true),
            Self::Leaf(source) => names_in(source)
                .into_iter()
                .for_each(|name| add(name, false)),
        }
    }

    fn holds(&self, trial: &Trial<'_>) -> Result<bool, Box<Diagnostic>> {
        match self {
            Self::Any(parts) => {
                for part in parts {
                    if part.holds(trial)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::All(parts) => {
                for part in parts {
                    if !part.holds(trial)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Not(part) => Ok(!part.holds(trial)?),
            Self::IsSet(name) => Ok(trial.find(name).is_some()),
            Self::Leaf(source) => {
                let span = trial.condition.text.span;
                match evaluate(source, span, trial)? {
                    Value::Bool(holds) => Ok(holds),
                    other => Err(Box::new(
                        Diagnostic::error(
                            "expression",
                            format!(
                                "`{source}` is {}, which is neither true nor false",
                                other.to_toml()
                            ),
                        )
                        .at(span)
                        .help("compare it, as in `train.batch_size > 64`"),
                    )),
                }
            }
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || "_.".contains(c)
}

/// Splits at a word that stands outside of quotes and parentheses.
fn split<'a>(source: &'a str, word: &str) -> Result<Vec<&'a str>, Wrong> {
    let mut parts = Vec::new();
    let (mut start, mut depth, mut in_quotes) = (0, 0usize, false);
    let mut before = ' ';
    for (at, c) in source.char_indices() {
        match c {
            '\'' => in_quotes = !in_quotes,
            _ if in_quotes => {}
            '(' => depth += 1,
            ')' if depth == 0 => return Err(("`)` without `(`".into(), "remove it".into())),
            ')' => depth -= 1,
            _ if depth == 0 && !is_word(before) && source[at..].starts_with(word) => {
                let behind = at + word.len();
                if !source[behind..].starts_with(is_word) {
                    parts.push(&source[start..at]);
                    start = behind;
                }
            }
            _ => {}
        }
        before = c;
    }
    if in_quotes {
        return Err(("`'` is not closed".into(), "add `'`".into()));
    }
    if depth > 0 {
        return Err(("`(` is not closed".into(), "add `)`".into()));
    }
    parts.push(&source[start..]);
    Ok(parts)
}

/// What stands between a first `(` and a last `)` that belong together.
fn in_parentheses(source: &str) -> Option<&str> {
    let inner = source.strip_prefix('(')?.strip_suffix(')')?;
    let (mut depth, mut in_quotes) = (0i32, false);
    for c in inner.chars() {
        match c {
            '\'' => in_quotes = !in_quotes,
            '(' if !in_quotes => depth += 1,
            ')' if !in_quotes => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return None;
        }
    }
    Some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(source: &str) -> String {
        match Formula::parse(source, 0) {
            Ok(formula) => format!("{formula:?}"),
            Err((message, help)) => format!("{message}; {help}"),
        }
    }

    #[test]
    fn conditions_are_taken_apart_where_evaluation_may_end_early() {
        let sources = [
            "a.b == 'x or y' or c.d > 1 and not e.f",
            "(a.b == 1 or c.d == 2) and (e.f + 1) * 2 > 3",
            "not (a.b == 1) and is_set(c.d)",
            "order.ordinal == android.band",
            "is_set()",
            "is_set(a.b, c.d)",
            "a.b == 1 and",
            "(a.b == 1",
            "a.b == 1)",
            "a.b == 'x",
            " ",
        ];
        let shown = sources.map(|source| format!("{source}\n  {}", parsed(source)));
        insta::assert_snapshot!(shown.join("\n"));
        assert!(parsed(&"(".repeat(9999)).contains("not closed"));
        let deep = format!("{}a.b == 1{}", "(".repeat(999), ")".repeat(999));
        assert!(parsed(&deep).contains("too deeply"));
    }
}
