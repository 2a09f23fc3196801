//! From the tables of `[sweep]` to columns: one per varied key. Invalid axes are refused.

use std::collections::BTreeMap;

use super::Factor;
use super::axis::{Axis, Column, Form, text_of};
use super::draw::{MAX_SOBOL_AXES, draw};
use crate::diagnostic::{Diagnostic, Diagnostics, Span, nearest};
use crate::spec::distribution::Distribution;
use crate::spec::document::{Entry, MAX_PARTS, Node, Table, Value, bare_to_toml, is_inside, touch};
use crate::spec::remedy::full_path;
use crate::spec::sweep::{AxisSpec, RandomSpec, Sampler, SweepSpec};

/// What describes the experiment, not a run.
const NOT_SWEPT: [&str; 5] = ["experiment", "sweep", "search", "objective", "extends"];

/// More axes are a mistake, and every pair is compared.
const MAX_AXES: usize = 500;

/// More axis values, sampled or listed, do not fit into memory.
const MAX_SETTINGS: usize = 4_000_000;

/// More conditions are a mistake, and each is evaluated for every point.
const MAX_EXCLUDES: usize = 500;

/// Reads columns and factors.
pub struct Reader<'a> {
    /// The file without its sweep.
    pub base: &'a Table,
    /// The columns so far.
    pub columns: Vec<Column>,
    /// The factors so far.
    pub factors: Vec<Factor>,
    /// The points of a search.
    pub rows: Option<&'a [Row]>,
    /// What is wrong.
    pub diagnostics: &'a mut Diagnostics,
}

/// The values of the random axes at a point of a search; none where the condition of the axis is false.
pub type Row = Vec<Option<Node>>;

impl Reader<'_> {
    /// Reads all forms: each axis of the grid is a factor, and each other form is one.
    pub fn read(&mut self, sweep: &SweepSpec) {
        if self.refuse_size(sweep) {
            return;
        }
        for axis in &sweep.grid {
            if let Some((keys, rows)) = self.rows(axis, Form::Grid) {
                self.factors.push(Factor::new(keys.join(", "), rows.len()));
                self.add(axis, Form::Grid, keys, rows);
            }
        }
        self.read_zip(&sweep.zip);
        self.read_list(&sweep.list);
        if let Some(random) = &sweep.random {
            self.read_random(random);
        }
    }

    /// Refuses a sweep that is too large to be expanded.
    fn refuse_size(&mut self, sweep: &SweepSpec) -> bool {
        let drawn = sweep.random.iter().flat_map(|random| &random.axes);
        let axes = sweep.grid.iter().chain(&sweep.zip);
        let keys = axes.map(|axis| (&axis.key, axis.key_span));
        let keys = keys.chain(drawn.map(|axis| (&axis.key, axis.key_span)));
        let keys = keys.chain(
            sweep
                .list
                .iter()
                .flatten()
                .map(|(key, entry)| (key, entry.key_span)),
        );
        let keys: BTreeMap<&String, Span> = keys.collect();
        let num_keys = keys.keys().map(|key| key.split(',').count()).sum::<usize>();
        let num_drawn = sweep.random.as_ref().map_or(0, |random| {
            random.axes.len().saturating_mul(random.num_trials)
        });
        let num_listed = keys.len().saturating_mul(sweep.list.len());
        let message = if num_keys > MAX_AXES {
            format!("the sweep has {num_keys} axes; the limit is {MAX_AXES}")
        } else if num_drawn.max(num_listed) > MAX_SETTINGS {
            format!("the sweep has more than {MAX_SETTINGS} values in total")
        } else if sweep.exclude.len() > MAX_EXCLUDES {
            let num = sweep.exclude.len();
            format!("`sweep.exclude` has {num} conditions; the limit is {MAX_EXCLUDES}")
        } else {
            return false;
        };
        let first = keys.values().next().copied().unwrap_or_default();
        let diagnostic = Diagnostic::error("sweep", message).at(first);
        self.diagnostics
            .push(diagnostic.help("split it into several experiments"));
        true
    }

    fn read_zip(&mut self, axes: &[AxisSpec]) {
        let mut first: Option<(&AxisSpec, usize)> = None;
        for axis in axes {
            let Some((keys, rows)) = self.rows(axis, Form::Zip) else {
                continue;
            };
            match first {
                None => {
                    first = Some((axis, rows.len()));
                    self.factors.push(Factor::new("zip", rows.len()));
                }
                Some((other, num)) if num != rows.len() => {
                    let message = format!(
                        "`{}` has {num} values but `{}` has {}: zipped axes need lists of equal length",
                        other.key,
                        axis.key,
                        rows.len()
                    );
                    self.diagnostics.push(
                        Diagnostic::error("sweep", message)
                            .at(axis.values.span)
                            .related(other.values.span, format!("{num} values"))
                            .help("use lists of equal length, or move an axis to `[sweep.grid]`"),
                    );
                    continue;
                }
                Some(_) => {}
            }
            self.add(axis, Form::Zip, keys, rows);
        }
    }

    fn read_list(&mut self, trials: &[Vec<(String, Entry)>]) {
        if trials.is_empty() {
            return;
        }
        let num = trials.len();
        let first = self.columns.len();
        for (at, trial) in trials.iter().enumerate() {
            let mut own: Vec<(&str, Span)> = Vec::new();
            for (key, entry) in trial {
                if let Some((other, span)) = own.iter().find(|(other, _)| touch(other, key)) {
                    let diagnostic = overlap(other, *span, key, entry.key_span);
                    self.diagnostics.push(diagnostic);
                    continue;
                }
                own.push((key, entry.key_span));
                let known = self.columns[first..].iter().position(|c| c.key == *key);
                let column = match known {
                    Some(at) => first + at,
                    None if self.refuse_key(key, entry.key_span, Form::List, first) => continue,
                    None => {
                        self.columns.push(Column {
                            key: key.clone(),
                            key_span: entry.key_span,
                            form: Form::List,
                            factor: self.factors.len(),
                            when: None,
                            nodes: vec![None; num],
                        });
                        self.columns.len() - 1
                    }
                };
                self.columns[column].nodes[at] = Some(entry.node.clone());
            }
        }
        self.factors.push(Factor::new("list", num));
    }

    fn read_random(&mut self, random: &RandomSpec) {
        if random.sampler == Sampler::Sobol && random.axes.len() > MAX_SOBOL_AXES {
            let message = format!(
                "the Sobol sequence has {MAX_SOBOL_AXES} dimensions, but there are {} random axes",
                random.axes.len()
            );
            self.diagnostics.push(
                Diagnostic::error("sweep", message)
                    .at(random.span)
                    .help("set `sampler = \"uniform\"`"),
            );
            return;
        }
        let factor = self.factors.len();
        let mut dimension = 0;
        for (place, axis) in random.axes.iter().enumerate() {
            let keys = split_keys(&axis.key);
            let is_refused = self.refuse_keys(&keys, axis.key_span, Form::Random);
            if keys.len() > 1 && !matches!(axis.distribution, Distribution::Choice { .. }) {
                let message = format!("the axis `{}` sets {} keys at once", axis.key, keys.len());
                self.diagnostics.push(
                    Diagnostic::error("sweep", message)
                        .at(axis.span)
                        .help("sample from a `choice` of lists, with a value for each key"),
                );
                continue;
            }
            if is_refused {
                continue;
            }
            let nodes: Row = match self.rows {
                Some(rows) => rows.iter().map(|row| row[place].clone()).collect(),
                None => {
                    let drawn = draw(random, dimension, &axis.distribution, axis.span);
                    drawn.into_iter().map(Some).collect()
                }
            };
            dimension += 1;
            let set = nodes.iter().flatten().cloned().collect();
            let Some(split) = self.split_rows(&axis.key, &keys, set) else {
                continue;
            };
            let mut split = split.into_iter();
            let rows: Vec<Option<Vec<Node>>> = nodes
                .iter()
                .map(|node| node.as_ref().and_then(|_| split.next()))
                .collect();
            for (at, key) in keys.into_iter().enumerate() {
                self.columns.push(Column {
                    key,
                    key_span: axis.key_span,
                    form: Form::Random,
                    factor,
                    when: axis.when.clone(),
                    nodes: rows
                        .iter()
                        .map(|row| Some(row.as_ref()?[at].clone()))
                        .collect(),
                });
            }
        }
        self.factors.push(match self.rows {
            Some(rows) => Factor::new("search", rows.len()),
            None => Factor::new("random", random.num_trials),
        });
    }

    /// Adds the columns of an axis of the last factor.
    fn add(&mut self, axis: &AxisSpec, form: Form, keys: Vec<String>, rows: Vec<Vec<Node>>) {
        for (at, key) in keys.into_iter().enumerate() {
            self.columns.push(Column {
                key,
                key_span: axis.key_span,
                form,
                factor: self.factors.len() - 1,
                when: axis.when.clone(),
                nodes: rows.iter().map(|row| Some(row[at].clone())).collect(),
            });
        }
    }

    /// The keys of an axis, and for each of its values the value of each key.
    fn rows(&mut self, axis: &AxisSpec, form: Form) -> Option<(Vec<String>, Vec<Vec<Node>>)> {
        let keys = split_keys(&axis.key);
        if self.refuse_keys(&keys, axis.key_span, form) {
            return None;
        }
        let key = &axis.key;
        let Value::Array(values) = &axis.values.value else {
            let found = axis.values.value.kind();
            let message = format!("the axis `{key}` must be a list of values, found {found}");
            self.diagnostics.push(
                Diagnostic::error("sweep", message)
                    .at(axis.values.span)
                    .help(format!("write {}", listed(&axis.values.value))),
            );
            return None;
        };
        if values.is_empty() {
            let message = format!("the axis `{key}` has no values");
            self.diagnostics.push(
                Diagnostic::error("sweep", message)
                    .at(axis.values.span)
                    .help("list at least one value, or remove the axis"),
            );
            return None;
        }
        let mut known: BTreeMap<String, Span> = BTreeMap::new();
        for node in values.iter().filter(|_| form == Form::Grid) {
            if let Some(first) = known.insert(text_of(&node.value), node.span) {
                let message = format!("the axis `{key}` contains {} twice", node.value.to_toml());
                self.diagnostics.push(
                    Diagnostic::error("repeated-value", message)
                        .at(node.span)
                        .related(first, "first listed here")
                        .help("remove one of them"),
                );
                return None;
            }
        }
        let rows = self.split_rows(key, &keys, values.clone())?;
        Some((keys, rows))
    }

    /// The values of an axis by key. Those of several keys are lists with one value per key.
    fn split_rows(
        &mut self,
        axis: &str,
        keys: &[String],
        nodes: Vec<Node>,
    ) -> Option<Vec<Vec<Node>>> {
        if keys.len() == 1 {
            return Some(nodes.into_iter().map(|node| vec![node]).collect());
        }
        let num = keys.len();
        let mut rows = Vec::with_capacity(nodes.len());
        for node in nodes {
            let found = match node.value {
                Value::Array(items) if items.len() == num => {
                    rows.push(items);
                    continue;
                }
                Value::Array(items) => format!("a list of {}", items.len()),
                other => other.kind().to_owned(),
            };
            let message = format!("the axis `{axis}` sets {num} keys, but this value is {found}");
            self.diagnostics.push(
                Diagnostic::error("sweep", message)
                    .at(node.span)
                    .help(format!(
                        "use a list with a value for each key: [[{}], …]",
                        keys.join(", ")
                    )),
            );
            return None;
        }
        Some(rows)
    }

    fn refuse_keys(&mut self, keys: &[String], span: Span, form: Form) -> bool {
        for (at, key) in keys.iter().enumerate() {
            if let Some(other) = keys[..at].iter().find(|other| touch(other, key)) {
                self.diagnostics.push(overlap(other, span, key, span));
                return true;
            }
        }
        let all = self.columns.len();
        keys.iter().any(|key| self.refuse_key(key, span, form, all))
    }

    /// Refuses axes that are invalid in combination with the first `num` columns.
    fn refuse_key(&mut self, key: &str, span: Span, form: Form, num: usize) -> bool {
        let others = &self.columns[..num];
        let wrong = refuse_table(key, span)
            .or_else(|| refuse_twin(key, span, form, others, self.base))
            .or_else(|| refuse_missing_item(key, span, self.base));
        let is_wrong = wrong.is_some();
        wrong.into_iter().for_each(|d| self.diagnostics.push(d));
        is_wrong
    }
}

/// `"a, b"` are two keys.
fn split_keys(keys: &str) -> Vec<String> {
    keys.split(',').map(|key| key.trim().to_owned()).collect()
}

/// A key outside all tables is reported here once, and not for each trial.
fn refuse_table(key: &str, span: Span) -> Option<Diagnostic> {
    if key.split('.').count() > MAX_PARTS {
        let message = format!("the key of this axis has more than {MAX_PARTS} parts");
        let diagnostic = Diagnostic::error("unknown-key", message).at(span);
        return Some(
            diagnostic.help("use the dotted path of a key, such as `\"optimizer.learning_rate\"`"),
        );
    }
    let table = key.split('.').next().unwrap_or(key);
    if NOT_SWEPT.contains(&table) {
        let diagnostic = Diagnostic::error("sweep", format!("`{key}` cannot be an axis"));
        return Some(diagnostic.at(span).help(match key {
            "experiment.seeds" => {
                "every trial already runs once for each of `experiment.seeds`".to_owned()
            }
            "extends" => "its files are read before axes are: make the keys that they differ in axes, with `[[sweep.list]]` for several at a time".to_owned(),
            _ => format!("`[{table}]` applies to the whole experiment"),
        }));
    }
    let keys = crate::spec::describe();
    if keys.iter().any(|doc| doc.key == table) {
        return None;
    }
    let message = format!("the axis `{key}` is not a key of the experiment file");
    let diagnostic = Diagnostic::error("unknown-key", message).at(span);
    if let Some(path) = full_path(key) {
        return Some(diagnostic.help(format!("did you mean `{path}`?")));
    }
    Some(match nearest(table, keys.iter().map(|doc| doc.key)) {
        Some(near) => diagnostic.help(format!("did you mean `{}`?", key.replacen(table, near, 1))),
        None => {
            diagnostic.help("use the dotted path of a key, such as `\"optimizer.learning_rate\"`")
        }
    })
}

/// Refuses two axes over the same key, however items of lists are named.
fn refuse_twin(
    key: &str,
    span: Span,
    form: Form,
    others: &[Column],
    base: &Table,
) -> Option<Diagnostic> {
    let numbered = base.numbered(key);
    let touching = |other: &&Column| touch(&base.numbered(&other.key), &numbered);
    let other = others.iter().find(touching)?;
    if other.key == key {
        let message = format!("the axis `{key}` is defined twice");
        return Some(
            Diagnostic::error("sweep", message)
                .at(span)
                .related(other.key_span, "first defined here")
                .help(if other.form == form {
                    "put all values into a single list"
                } else {
                    "keep one of the two"
                }),
        );
    }
    Some(overlap(&other.key, other.key_span, key, span))
}

fn overlap(other: &str, other_span: Span, key: &str, span: Span) -> Diagnostic {
    let message = if other == key {
        format!("`{key}` is set twice")
    } else {
        format!("the axes `{other}` and `{key}` set the same key")
    };
    let diagnostic = Diagnostic::error("sweep", message).at(span);
    let diagnostic = if other_span == span {
        diagnostic
    } else {
        diagnostic.related(other_span, "the other axis")
    };
    diagnostic.help(if is_inside(other, key) || is_inside(key, other) {
        "sweep the table or a key in it, not both"
    } else {
        "put all values into a single list"
    })
}

/// Refuses axes over list items, such as layers, that do not exist.
fn refuse_missing_item(key: &str, span: Span, base: &Table) -> Option<Diagnostic> {
    let (item, names) = base.missing_item(key)?;
    let message = format!("the axis `{key}`: the list has no item `{item}`");
    let diagnostic = Diagnostic::error("sweep", message).at(span);
    let near = nearest(&item, names.iter().map(String::as_str));
    Some(match near {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => diagnostic.help(format!(
            "its items are {}, by name or number from 0",
            names.join(", ")
        )),
    })
}

/// Refuses a `--set` of a key that an axis sets anyway.
pub fn refuse_overridden(axes: &[Axis], overrides: &[String], diagnostics: &mut Diagnostics) {
    for assignment in overrides {
        let key = assignment.split('=').next().unwrap_or(assignment).trim();
        let covers =
            |axis: &&Axis| axis.is_always_set() && (key == axis.key || is_inside(key, &axis.key));
        if let Some(axis) = axes.iter().find(covers) {
            let message = format!(
                "`--set {assignment}` has no effect: `{}` is an axis",
                axis.key
            );
            let diagnostic = Diagnostic::error("bad-override", message).at(axis.key_span);
            let key = &axis.key;
            diagnostics.push(diagnostic.help(match axis.form {
                Form::Grid => format!("set the axis instead: --set 'sweep.grid.{key}=[…]'"),
                Form::Zip => format!("set the axis instead: --set 'sweep.zip.{key}=[…]'"),
                Form::List => format!("set it in a trial instead: --set 'sweep.list.0.{key}=…'"),
                Form::Random => {
                    format!("set the axis instead: --set 'sweep.random.axes.{key}={{ type = … }}'")
                }
            }));
        }
    }
}

/// A value as a list; a text such as `16,32`, which a shell has passed, as its parts.
fn listed(value: &Value) -> String {
    let Value::Str(text) = value else {
        return format!("[{}]", value.to_toml());
    };
    let inner = text.trim().trim_start_matches('[').trim_end_matches(']');
    let parts = inner
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let parts = parts.map(bare_to_toml);
    format!("[{}]", parts.collect::<Vec<_>>().join(", "))
}
