//! Terms of other tools, and their replacements.
//!
//! PyTorch, Keras, scikit-learn, Hydra, W&B, Lightning, Ludwig and Hugging Face have other terms for the same things,
//! and some things that do not exist here. One table contains the remedies: for keys, values, metrics and the command
//! line. It is consulted before similarly spelled words ([`crate::diagnostic::nearest`]), because `swish` is not a
//! misspelled `mish`. Each row contains a wrong example and the correct one; a test checks that the wrong one gets the
//! remedy and that the correct one is accepted.

mod command;
mod keys;
mod layers;
mod metrics;
mod tables;
mod values;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::describe;
use super::document::{Entry, Table, Value};
use super::hints::key_paths;
use super::metric::{Metric, Objective, ObjectiveSplit};
use super::reference::unnumbered;
use crate::diagnostic::nearest;
pub use command::{Command, FLAGS, VERBS, for_argument, for_verb};
pub use metrics::OBJECTIVES;

/// Terms of other tools in some places, and the remedy.
#[derive(Debug)]
pub struct Remedy {
    /// Where they occur, separated by spaces: tables for keys, keys for values. `/` is the top level of the file,
    /// `layer` any layer, `*` anywhere.
    pub places: &'static str,
    /// The words, separated by spaces. Case, `_` and `-` are ignored.
    pub theirs: &'static str,
    /// This program's term, if it means the same in the same place; only used where it is known.
    pub ours: &'static str,
    /// The remedy, if another term is not the whole answer.
    pub help: &'static str,
    /// An example, as edits of a file: `key = value`, separated by ` ; `. For layers, their list.
    pub wrong: &'static str,
    /// The corrected example; none if there is no replacement, and empty if it is only removed.
    pub right: Option<&'static str>,
}

/// Another term for the same.
const fn same(
    places: &'static str,
    theirs: &'static str,
    ours: &'static str,
    wrong: &'static str,
    right: &'static str,
) -> Remedy {
    Remedy {
        places,
        theirs,
        ours,
        help: "",
        wrong,
        right: Some(right),
    }
}

/// Something that is written differently.
const fn other(
    places: &'static str,
    theirs: &'static str,
    help: &'static str,
    wrong: &'static str,
    right: &'static str,
) -> Remedy {
    Remedy {
        places,
        theirs,
        ours: "",
        help,
        wrong,
        right: Some(right),
    }
}

/// Something that does not exist here.
const fn none(
    places: &'static str,
    theirs: &'static str,
    help: &'static str,
    wrong: &'static str,
) -> Remedy {
    Remedy {
        places,
        theirs,
        ours: "",
        help,
        wrong,
        right: None,
    }
}

impl Remedy {
    fn is_at(&self, place: &str) -> bool {
        let fits = |own: &str| match own.strip_prefix('*') {
            Some(end) => place.ends_with(end),
            None => own == place,
        };
        self.places.split(' ').any(fits)
    }

    /// The remedy, if the place knows this program's term.
    fn answer(&self, known: &[&str]) -> Option<String> {
        let is_known = self.ours.is_empty() || known.contains(&self.ours);
        is_known.then(|| match self.help {
            "" => format!("did you mean `{}`?", self.ours),
            help => help.to_owned(),
        })
    }
}

/// Rows by words.
struct Index(BTreeMap<String, Vec<&'static Remedy>>);

impl Index {
    fn of(rows: impl Iterator<Item = &'static Remedy>) -> Self {
        let mut index: BTreeMap<String, Vec<&'static Remedy>> = BTreeMap::new();
        for row in rows {
            for word in row.theirs.split(' ') {
                index.entry(plain(word)).or_default().push(row);
            }
        }
        Self(index)
    }

    fn rows(&self, word: &str, place: &str) -> impl Iterator<Item = &'static Remedy> + use<> {
        let rows = self.0.get(&plain(word)).into_iter().flatten().copied();
        let rows: Vec<_> = rows.filter(|row| row.is_at(place)).collect();
        rows.into_iter()
    }
}

fn keys() -> &'static Index {
    static INDEX: OnceLock<Index> = OnceLock::new();
    INDEX.get_or_init(|| Index::of(keys::ROWS.iter().chain(tables::ROWS).chain(layers::KEYS)))
}

fn values() -> &'static Index {
    static INDEX: OnceLock<Index> = OnceLock::new();
    INDEX.get_or_init(|| {
        let rows = values::ROWS.iter().chain(layers::TYPES);
        Index::of(rows.chain(metrics::ROWS))
    })
}

/// All rows of keys, values and tables.
pub fn rows() -> impl Iterator<Item = &'static Remedy> {
    let keys = keys::ROWS.iter().chain(tables::ROWS).chain(layers::KEYS);
    let values = values::ROWS
        .iter()
        .chain(layers::TYPES)
        .chain(metrics::ROWS);
    keys.chain(values).chain(tables::SCALARS)
}

/// This program's terms for a key of another tool in the table at `path`.
pub fn ours_for_key(path: &str, key: &str) -> impl Iterator<Item = &'static str> + use<> {
    let rows = keys().rows(key, &place_of(path));
    rows.map(|row| row.ours).filter(|ours| !ours.is_empty())
}

/// A word in lower case without separators.
fn plain(word: &str) -> String {
    let letters = word.chars().filter(|c| !"_-./: ".contains(*c));
    letters.flat_map(char::to_lowercase).collect()
}

/// A Python class name without its modules: `AdamW` of `torch.optim.AdamW`.
fn class(word: &str) -> &str {
    let is_class = |name: &str| name.starts_with(|c: char| c.is_ascii_alphabetic());
    match word.rsplit_once('.') {
        Some((_, name)) if is_class(name) => name,
        _ => word,
    }
}

/// A table's path without list indices; all layers are equivalent.
fn place_of(path: &str) -> String {
    if path.starts_with("model.layers") || path.starts_with("model.blocks") {
        return if path.ends_with(']') {
            "layer".to_owned()
        } else {
            format!("layer.{}", path.rsplit('.').next().unwrap_or_default())
        };
    }
    // Below it, axes have arbitrary names.
    if path.starts_with("sweep.random.axes.") {
        return "sweep.random.axes".to_owned();
    }
    if path.is_empty() {
        return "/".to_owned();
    }
    unnumbered(path)
}

/// The remedy for a key that `table` at `path` does not take. `known` are those that it takes.
pub fn for_key(path: &str, entry: &Entry, table: &Table, known: &[&str]) -> Option<String> {
    let (key, value) = (entry.key.as_str(), &entry.node.value);
    let is_set = |ours: &str| table.get(ours).is_some();
    let twice =
        |ours: &str| format!("use `{ours}` instead, which means the same and is already set");
    if let Some(known) = same_letters(key, known.iter().copied()) {
        return Some(if is_set(known) {
            twice(known)
        } else {
            format!("did you mean `{known}`?")
        });
    }
    let place = place_of(path);
    // Hydra's keywords begin with an underscore, and mean something else without it.
    let is_meant = |row: &&Remedy| key.starts_with('_') || !row.theirs.starts_with('_');
    let rows = keys().rows(key, &place).filter(is_meant);
    let answers = rows.filter_map(|row| Some((row.ours, row.answer(known)?)));
    let (set, free): (Vec<_>, Vec<_>) =
        answers.partition(|(ours, _)| !ours.is_empty() && is_set(ours));
    if let Some((_, answer)) = free.into_iter().next() {
        return Some(answer);
    }
    if let Some((ours, _)) = set.first() {
        return Some(twice(ours));
    }
    let is_axis = matches!(value, Value::Array(_)) || describe().iter().any(|doc| doc.key == key);
    if place == "sweep" && is_axis {
        return Some(for_axis(key, value));
    }
    nearest(key, known.iter().copied()).map(|near| format!("did you mean `{near}`?"))
}

/// The key that is the `type` of a table without one, such as `kind`.
pub fn for_missing_type<'a>(path: &str, table: &'a Table) -> Option<&'a Entry> {
    let is_type = |entry: &&Entry| ours_for_key(path, &entry.key).any(|ours| ours == "type");
    table.entries.iter().find(is_type)
}

/// This program's term for a value of another tool, if it is one of `known`.
pub fn ours_for_value(path: &str, word: &str, known: &[&str]) -> Option<String> {
    let name = class(word);
    let rows = values().rows(word, path).chain(values().rows(name, path));
    let mut ours = rows.map(|row| row.ours).filter(|ours| known.contains(ours));
    let same = same_letters(name, known.iter().copied());
    same.map(str::to_owned)
        .or_else(|| ours.next().map(str::to_owned))
}

/// The word that differs only in case or separators.
fn same_letters<'a>(word: &str, mut known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = plain(word);
    known.find(|known| plain(known) == word && !word.is_empty())
}

/// An axis directly in `[sweep]`.
fn for_axis(key: &str, value: &Value) -> String {
    let (path, value) = match value {
        // `optimizer.learning_rate = […]` below `[sweep]`.
        Value::Table(table) if table.entries.len() == 1 => {
            let entry = &table.entries[0];
            (format!("{key}.{}", entry.key), &entry.node.value)
        }
        value => (key.to_owned(), value),
    };
    let path = full_path(&path).unwrap_or(path);
    let values = match value {
        Value::Array(_) => value.to_toml(),
        _ => "[…]".to_owned(),
    };
    format!(
        "axes belong in `[sweep.grid]`, under the dotted path of their key: add `[sweep.grid]` with `{path} = {values}`"
    )
}

/// The dotted path of the key that a word means anywhere in the file, if it is unique.
pub fn full_path(word: &str) -> Option<String> {
    let paths = key_paths();
    if paths.iter().any(|path| path == word) {
        return None;
    }
    let (table, key) = word.rsplit_once('.').unwrap_or(("/", word));
    // From the remedy of another word, only a path that takes the same value.
    let moved = |row: &'static Remedy| {
        let (_, value) = row.wrong.split_once(" = ")?;
        let (path, same) = row.right?.split_once(" = ")?;
        let is_same = value == same || path == "experiment.seeds";
        (is_same && paths.iter().any(|known| known == path)).then(|| path.to_owned())
    };
    if let Some(path) = keys().rows(key, table).find_map(moved) {
        return Some(path);
    }
    let end = format!(".{word}");
    let is_own = |path: &&String| path.ends_with(&end) && !path.starts_with("search.");
    let own: Vec<_> = paths.iter().filter(is_own).collect();
    // The least nested one is not inside something special.
    let depth = |path: &&&String| path.matches('.').count();
    let least = own.iter().map(|path| depth(&path)).min()?;
    let mut least = own.iter().filter(|path| depth(path) == least);
    match (least.next(), least.next()) {
        (Some(path), None) if word != "type" && !path.starts_with("sweep.") => {
            Some((*path).clone())
        }
        _ => None,
    }
}

/// The remedy for a word that is not a value of the key at `path`. `known` are its values.
pub fn for_value<'a>(
    path: &str,
    word: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Option<String> {
    let name = class(word);
    if let Some(known) = same_letters(name, known.clone()).filter(|known| *known != word) {
        return Some(format!("did you mean `{known}`?"));
    }
    let all: Vec<&str> = known.clone().collect();
    let place = match path.rsplit_once('.') {
        Some((table, key)) => format!(
            "{}.{}",
            place_of(table),
            key.split('[').next().unwrap_or(key)
        ),
        None => path.to_owned(),
    };
    let rows = values()
        .rows(word, &place)
        .chain(values().rows(name, &place));
    if let Some(answer) = rows.into_iter().find_map(|row| row.answer(&all)) {
        return Some(answer);
    }
    let near = nearest(name, known).filter(|near| *near != word);
    near.map(|near| format!("did you mean `{near}`?"))
}

/// What a text that is not a metric of a split means.
enum Meant {
    /// This metric, by another name.
    Known(Objective),
    /// Probably this metric.
    Near(Objective),
    /// Something else, with a remedy.
    Other(&'static str),
}

/// The remedy for a text that is not a metric of a split, such as `val_acc`; the text is known to be wrong.
pub fn for_objective(text: &str) -> Option<String> {
    Some(match meant(text)? {
        Meant::Known(objective) => format!("use `{}`", objective.name()),
        Meant::Near(objective) => format!("did you mean `{}`?", objective.name()),
        Meant::Other(help) => help.to_owned(),
    })
}

/// The metric of a split that other tools call by this name, such as `val_acc`.
pub fn objective(text: &str) -> Option<String> {
    let is_of_split = text.contains(['_', '/', '.', '-']);
    match meant(text).filter(|_| is_of_split)? {
        Meant::Known(objective) | Meant::Near(objective) => Some(objective.name()),
        Meant::Other(_) => None,
    }
}

fn meant(text: &str) -> Option<Meant> {
    let lower = text.to_lowercase();
    let splits = [
        (
            ObjectiveSplit::Valid,
            &["valid", "validation", "val", "eval", "dev", "test"][..],
        ),
        (ObjectiveSplit::Train, &["train", "training"]),
    ];
    let mut found = (ObjectiveSplit::Valid, lower.as_str());
    'all: for (ours, theirs) in splits {
        for name in theirs {
            let rest = lower
                .strip_prefix(name)
                .and_then(|rest| rest.strip_prefix(['/', '_', '.', '-']));
            if let Some(rest) = rest {
                found = (ours, rest);
                break 'all;
            }
        }
    }
    let (split, name) = found;
    let names = || Metric::all().into_iter().map(|(_, name, _)| name);
    let of = |name: &str| {
        let metric = Metric::named(name)?;
        Some(Objective {
            split,
            term: None,
            metric,
        })
    };
    if let Some(objective) = of(name) {
        return Some(Meant::Known(objective));
    }
    if let Some(known) = same_letters(name, names()) {
        return of(known).map(Meant::Near);
    }
    let all: Vec<&str> = names().collect();
    let mut rows = values().rows(name, "task.metrics");
    if let Some(row) = rows.find(|row| row.answer(&all).is_some()) {
        return match row.help {
            "" => of(row.ours).map(Meant::Near),
            help => Some(Meant::Other(help)),
        };
    }
    of(nearest(name, names())?).map(Meant::Near)
}

/// What to write for a table that was set to a single value, such as `clip = 1.0` or `loss = "mse"`.
pub fn for_scalar(path: &str, value: &Value) -> Option<String> {
    let place = place_of(path);
    let row = tables::SCALARS.iter().find(|row| row.is_at(&place))?;
    let is_off = match value {
        Value::Bool(false) => true,
        Value::Int(0) => true,
        Value::Str(text) => {
            ["", "none", "null", "off", "no", "false"].contains(&plain(text).as_str())
        }
        _ => false,
    };
    if is_off {
        Some("remove the key to disable it".to_owned())
    } else {
        Some(row.help.to_owned())
    }
}

/// The content of `${…}` in other tools.
pub fn for_expression(inner: &str) -> Option<String> {
    let inner = inner.trim();
    let environment = ["oc.env:", "oc.env,", "env.", "ENV:", "ENV.", "environ."];
    if let Some(name) = environment
        .iter()
        .find_map(|prefix| inner.strip_prefix(prefix))
    {
        let (name, default) = match name.split_once([',', ':']) {
            Some((name, default)) => (
                name,
                format!(":-{}", default.trim().trim_matches(['\'', '"'])),
            ),
            None => (name, String::new()),
        };
        return Some(format!("use `${{env:{}{default}}}`", name.trim()));
    }
    if inner.starts_with("hydra:") || inner.starts_with("now:") {
        return Some(
            "results are in a folder named after the experiment, with a folder for each run; set the parent folder with `--results DIR`".to_owned(),
        );
    }
    let resolvers = [
        "oc.select:",
        "oc.decode:",
        "oc.create:",
        "oc.dict.keys:",
        "oc.dict.values:",
        "oc.deprecated:",
        "eval:",
    ];
    let rest = resolvers
        .iter()
        .find_map(|prefix| inner.strip_prefix(prefix))?;
    Some(format!(
        "resolvers are not supported: use the dotted key or the expression itself, such as `${{{}}}`",
        rest.split(',')
            .next()
            .unwrap_or(rest)
            .trim()
            .trim_matches(['\'', '"'])
    ))
}

/// The remedy for a text in a different format than TOML, by its name and its first bytes.
pub fn for_format(name: &str, text: &str) -> Option<(&'static str, String)> {
    let end = name
        .rsplit_once('.')
        .map_or("", |(_, end)| end)
        .to_lowercase();
    let first = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with('#'));
    let first = first.unwrap_or_default();
    let is_yaml_line = first
        .strip_suffix(':')
        .is_some_and(|key| !key.contains(['=', '[', '"']));
    let toml = "an experiment file is TOML, with a line `[optimizer]` for a table and `learning_rate = 1e-3` for a key below it: `runner init` creates one";
    match end.as_str() {
        "json" | "jsonc" | "json5" => Some(("JSON", toml.to_owned())),
        _ if first.starts_with('{') => Some(("JSON", toml.to_owned())),
        "yaml" | "yml" => Some(("YAML", toml.to_owned())),
        _ if first == "---" || is_yaml_line => Some(("YAML", toml.to_owned())),
        "py" | "ipynb" => Some(("Python", toml.to_owned())),
        "csv" | "tsv" | "parquet" | "npy" | "npz" => Some((
            "data",
            format!(
                "list data files under `[data]` of an experiment file: `runner init --data {name}` creates one"
            ),
        )),
        _ => None,
    }
}
