//! Expansion of the sweep into trials, and the names they get.

use crate::diagnostic::{Diagnostic, Diagnostics, nearest};
use crate::spec::SweepSpec;
use crate::spec::document::{Entry, Node, Table, Value};

/// More runs than this are a mistake in the file.
const MAX_RUNS: usize = 100_000;

/// Tables that say what is asked, not how a run is computed.
const NOT_SWEPT: [&str; 3] = ["experiment", "sweep", "objective"];

/// One varied key.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The dotted key.
    pub key: String,
    /// Where the key and its list are written.
    pub entry: Entry,
    /// What run ids call the key.
    pub label: String,
    /// What run ids call each value.
    pub value_labels: Vec<String>,
}

impl Axis {
    /// The values in file order.
    pub fn values(&self) -> &[Node] {
        match &self.entry.node.value {
            Value::Array(values) => values,
            _ => &[],
        }
    }
}

/// Checks the axes of a sweep; a wrong one is reported and left out.
pub fn axes(sweep: &SweepSpec, num_seeds: usize, diagnostics: &mut Diagnostics) -> Vec<Axis> {
    let mut axes: Vec<Axis> = Vec::new();
    for (key, entry) in &sweep.grid {
        match refuse(key, entry, &axes) {
            Some(diagnostic) => diagnostics.push(diagnostic),
            None => axes.push(Axis {
                key: key.clone(),
                entry: entry.clone(),
                label: String::new(),
                value_labels: Vec::new(),
            }),
        }
    }
    let lengths = axes.iter().map(|axis| axis.values().len());
    let num_runs = lengths.chain([num_seeds]).try_fold(1, usize::checked_mul);
    if num_runs.is_none_or(|num| num > MAX_RUNS)
        && let Some(axis) = axes.first()
    {
        diagnostics.push(
            Diagnostic::error("sweep", format!("the sweep has more than {MAX_RUNS} runs"))
                .at(axis.entry.key_span)
                .help("take values out of the axes, or seeds"),
        );
        axes.clear();
    }
    let keys: Vec<_> = axes.iter().map(|axis| axis.key.clone()).collect();
    for axis in &mut axes {
        axis.label = key_label(&axis.key, &keys);
        axis.value_labels = value_labels(axis.values());
    }
    axes
}

fn refuse(key: &str, entry: &Entry, axes: &[Axis]) -> Option<Diagnostic> {
    let table = key.split('.').next().unwrap_or(key);
    if NOT_SWEPT.contains(&table) {
        let diagnostic = Diagnostic::error("sweep", format!("`{key}` cannot be an axis"));
        return Some(diagnostic.at(entry.key_span).help(match key {
            "experiment.seeds" => {
                "every trial runs once for each of `experiment.seeds` already".to_owned()
            }
            _ => format!("`[{table}]` holds for the whole experiment"),
        }));
    }
    if let Some(twin) = axes.iter().find(|axis| axis.key == key) {
        return Some(
            Diagnostic::error("sweep", format!("the axis `{key}` is written twice"))
                .at(entry.key_span)
                .related(twin.entry.key_span, "first written here")
                .help("put all values into one list"),
        );
    }
    let inside = |a: &str, b: &str| a.starts_with(b) && a[b.len()..].starts_with('.');
    if let Some(other) = axes
        .iter()
        .find(|a| inside(&a.key, key) || inside(key, &a.key))
    {
        return Some(
            Diagnostic::error(
                "sweep",
                format!("the axes `{}` and `{key}` set the same key", other.key),
            )
            .at(entry.key_span)
            .related(other.entry.key_span, "the other axis")
            .help("sweep the table or the key in it, not both"),
        );
    }
    let Value::Array(values) = &entry.node.value else {
        return Some(
            Diagnostic::error(
                "sweep",
                format!(
                    "the axis `{key}` must be a list of values, found {}",
                    entry.node.value.kind()
                ),
            )
            .at(entry.node.span)
            .help(format!("write [{}]", entry.node.value.to_toml())),
        );
    };
    if values.is_empty() {
        return Some(
            Diagnostic::error("sweep", format!("the axis `{key}` has no values"))
                .at(entry.node.span)
                .help("write at least one value, or remove the axis"),
        );
    }
    for (at, node) in values.iter().enumerate() {
        if let Some(first) = values[..at].iter().find(|n| same(&n.value, &node.value)) {
            return Some(
                Diagnostic::error(
                    "repeated-value",
                    format!("the axis `{key}` holds {} twice", node.value.to_toml()),
                )
                .at(node.span)
                .related(first.span, "first written here")
                .help("remove one of them"),
            );
        }
    }
    unknown_table(key, entry)
}

/// Refuses axes over items of a list, such as layers, that are not there or are named twice.
pub fn refuse_wrong_items(axes: &[Axis], root: &Table, diagnostics: &mut Diagnostics) {
    for (at, axis) in axes.iter().enumerate() {
        let key = root.numbered(&axis.key);
        let twin = axes[..at]
            .iter()
            .find(|other| root.numbered(&other.key) == key);
        if let Some(twin) = twin {
            let message = format!(
                "the axes `{}` and `{}` set the same key",
                twin.key, axis.key
            );
            diagnostics.push(
                Diagnostic::error("sweep", message)
                    .at(axis.entry.key_span)
                    .related(twin.entry.key_span, "the other axis")
                    .help("put all values into one list"),
            );
        }
        if let Some((item, names)) = root.missing_item(&axis.key) {
            let message = format!(
                "the axis `{}`: there is no item `{item}` in the list",
                axis.key
            );
            let diagnostic = Diagnostic::error("sweep", message).at(axis.entry.key_span);
            let near = nearest(&item, names.iter().map(String::as_str));
            diagnostics.push(match near {
                Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                None => diagnostic.help(format!(
                    "its items are {}, by name or number from 0",
                    names.join(", ")
                )),
            });
        }
    }
}

/// Refuses a `--set` of a key that an axis sets anyway.
pub fn refuse_overridden(axes: &[Axis], overrides: &[String], diagnostics: &mut Diagnostics) {
    for assignment in overrides {
        let key = assignment.split('=').next().unwrap_or(assignment).trim();
        let covers = |axis: &&Axis| {
            let rest = key.strip_prefix(axis.key.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if let Some(axis) = axes.iter().find(covers) {
            let message = format!(
                "`--set {assignment}` has no effect: `{}` is an axis",
                axis.key
            );
            diagnostics.push(
                Diagnostic::error("bad-override", message)
                    .at(axis.entry.key_span)
                    .help(format!(
                        "set the axis instead: --set 'sweep.grid.{}=[…]'",
                        axis.key
                    )),
            );
        }
    }
}

/// A key of no table at all is reported here once, and not for each trial.
fn unknown_table(key: &str, entry: &Entry) -> Option<Diagnostic> {
    let keys = crate::spec::describe();
    let table = key.split('.').next().unwrap_or(key);
    if keys.iter().any(|doc| doc.key == table) {
        return None;
    }
    let diagnostic = Diagnostic::error(
        "unknown-key",
        format!("the axis `{key}` names no key of the experiment file"),
    )
    .at(entry.key_span);
    Some(match nearest(table, keys.iter().map(|doc| doc.key)) {
        Some(near) => diagnostic.help(format!("did you mean `{}`?", key.replacen(table, near, 1))),
        None => {
            diagnostic.help("write the dotted path of a key, such as `\"optimizer.learning_rate\"`")
        }
    })
}

/// Whether two values mean the same: `1` is `1.0`.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Int(int), Value::Float(float)) | (Value::Float(float), Value::Int(int)) => {
            *int as f64 == *float
        }
        _ => a == b,
    }
}

/// The indices of one trial's values, one for each axis; the last axis varies fastest.
pub fn combinations(axes: &[Axis]) -> impl Iterator<Item = Vec<usize>> + '_ {
    let num: usize = axes.iter().map(|axis| axis.values().len()).product();
    (0..num).map(move |mut at| {
        let mut indices = vec![0; axes.len()];
        for (index, axis) in indices.iter_mut().zip(axes).rev() {
            *index = at % axis.values().len();
            at /= axis.values().len();
        }
        indices
    })
}

/// The document with the values of one trial in place.
pub fn apply(root: &Table, axes: &[Axis], indices: &[usize]) -> Table {
    let mut root = root.clone();
    for (axis, index) in axes.iter().zip(indices) {
        let node = axis.values()[*index].clone();
        root.set(&axis.key, axis.entry.key_span, node);
    }
    root
}

/// What a trial is called: `learning_rate=0.01,hidden=128`, or `base` without axes.
pub fn trial_id(axes: &[Axis], indices: &[usize]) -> String {
    const MAX_LEN: usize = 96;
    let parts = axes.iter().zip(indices);
    let parts: Vec<_> = parts
        .map(|(axis, index)| format!("{}={}", axis.label, axis.value_labels[*index]))
        .collect();
    let id = match parts.is_empty() {
        true => "base".to_owned(),
        false => parts.join(","),
    };
    match id.len() <= MAX_LEN {
        true => id,
        // Ids are folders' names: a long one keeps its head and is made unique by its hash.
        false => format!(
            "{}~{}",
            &id[..MAX_LEN - 9],
            &crate::data::sha256_hex(id.as_bytes())[..8]
        ),
    }
}

/// The shortest end of a dotted key that no other axis shares; `optimizer.type` is called `optimizer`.
fn key_label(key: &str, keys: &[String]) -> String {
    let short = |key: &str| key.strip_suffix(".type").unwrap_or(key).to_owned();
    let own = short(key);
    let segments: Vec<_> = own.split('.').collect();
    let suffix_of = |num: usize| segments[segments.len() - num..].join(".");
    let shared = |suffix: &str| {
        let ends = |other: &String| {
            let other = short(other);
            other == suffix || other.ends_with(&format!(".{suffix}"))
        };
        keys.iter().filter(|other| ends(other)).count() > 1
    };
    let num = (1..=segments.len()).find(|num| !shared(&suffix_of(*num)));
    sanitize(&suffix_of(num.unwrap_or(segments.len())))
}

fn value_labels(values: &[Node]) -> Vec<String> {
    let mut labels: Vec<_> = values
        .iter()
        .map(|node| sanitize(&value_label(&node.value)))
        .collect();
    for at in 0..labels.len() {
        while labels[..at].contains(&labels[at]) || labels[at].is_empty() {
            labels[at] = format!("{}.{}", labels[at], at + 1);
        }
    }
    labels
}

fn value_label(value: &Value) -> String {
    match value {
        // Of an expression, what stands in it.
        Value::Str(text) => text.replace("${", "").replace([' ', '}'], ""),
        Value::Array(items) if items.is_empty() => "none".into(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(|n| value_label(&n.value)).collect();
            items.join("x")
        }
        Value::Table(table) => match table.get("type").map(|e| &e.node.value) {
            Some(Value::Str(name)) => name.clone(),
            _ => "table".into(),
        },
        other => other.to_toml(),
    }
}

/// Keeps what is safe in a folder's name on every system.
fn sanitize(text: &str) -> String {
    let keep = |c: char| match c.is_ascii_alphanumeric() || "._+-".contains(c) {
        true => c,
        false => '-',
    };
    text.chars().map(keep).collect()
}
