//! `extends`: files as layers under a file.
//!
//! `extends = ["base.toml", "more.toml"]` at the top of a file, with paths relative to that file. Later files override
//! earlier ones, and the file itself overrides all of them. Tables are merged key by key; arrays and single values are
//! replaced. A table with another `type` than the one below it inherits nothing: the settings of one optimizer are
//! meaningless for another.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::document::{Entry, Node, Table, Value, parse_table};
use super::{plain_file, remedy};
use crate::diagnostic::{Diagnostic, Diagnostics, Sources, Span, circle, nearest};
use crate::show::plain_io_error;

/// Larger files are data passed by mistake.
const MAX_BYTES: u64 = 1 << 20;

/// The maximum depth of a chain of files.
const MAX_DEPTH: usize = 16;

const KEY: &str = "extends";

/// Parses a text and merges it over the files that it extends. Without a `folder` it may not extend any.
pub(super) fn compose(
    name: &str,
    text: &str,
    folder: Option<&Path>,
) -> Result<(Sources, Table), (Sources, Diagnostics)> {
    let mut reader = Reader::default();
    let source = reader.sources.add(name, text);
    let file = folder.map(|folder| {
        let folder = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        folder.join(Path::new(name).file_name().unwrap_or_default())
    });
    let root = reader.layer(source, file);
    if reader.diagnostics.has_errors() {
        Err((reader.sources, reader.diagnostics))
    } else {
        Ok((reader.sources, root))
    }
}

#[derive(Default)]
struct Reader {
    sources: Sources,
    diagnostics: Diagnostics,
    /// The files being read, each because of the one before.
    chain: Vec<(PathBuf, u16)>,
    /// Completely read files: two files may extend the same one.
    layers: BTreeMap<PathBuf, Table>,
}

impl Reader {
    /// The table of a text over those of the files that it extends.
    fn layer(&mut self, source: u16, file: Option<PathBuf>) -> Table {
        let text = self.sources.0[source as usize].text.clone();
        let mut found = Diagnostics::default();
        let mut own = parse_table(&text, source, &mut found);
        let name = &self.sources.0[source as usize].name;
        match remedy::for_format(name, &text).filter(|_| found.has_errors()) {
            Some((format, help)) => {
                let message = format!("`{name}` is {format}; an experiment file must be TOML");
                let first = found.0.first().and_then(|diagnostic| diagnostic.span);
                let mut diagnostic = Diagnostic::error("syntax", message).help(help);
                diagnostic.span = first;
                self.diagnostics.push(diagnostic);
            }
            None => found.0.into_iter().for_each(|d| self.diagnostics.push(d)),
        }
        let Some(at) = own.entries.iter().position(|entry| entry.key == KEY) else {
            return own;
        };
        let bases = self.bases(own.entries.remove(at));
        let Some(file) = file else {
            if let Some((_, span)) = bases.first() {
                let message =
                    "`extends` needs a file: this text has no folder to resolve paths from";
                self.diagnostics
                    .push(Diagnostic::error("extends", message).at(*span));
            }
            return own;
        };
        self.chain.push((identity(&file), source));
        let mut table = Table::default();
        for (base, span) in bases {
            if let Some(base) = self.base(&base, span, &file) {
                self.put(&mut table, base);
            }
        }
        self.chain.pop();
        self.put(&mut table, own);
        table
    }

    fn put(&mut self, base: &mut Table, over: Table) {
        for (anew, below) in merge(base, over) {
            let source = &mut self.sources.0[anew.source as usize];
            source.restarts.push((anew, below));
        }
    }

    /// The paths of an `extends` with their places.
    fn bases(&mut self, entry: Entry) -> Vec<(String, Span)> {
        let items = match entry.node.value {
            Value::Array(items) => items,
            value => vec![Node {
                span: entry.node.span,
                value,
            }],
        };
        let mut bases: Vec<(String, Span)> = Vec::new();
        for item in items {
            let refuse = |message: String| Diagnostic::error("extends", message).at(item.span);
            let help = "for example: `extends = [\"base.toml\"]`";
            match item.value {
                Value::Str(path) if path.contains("${") => self.diagnostics.push(
                    refuse(format!(
                        "`extends` takes plain paths, and `{path}` is an expression"
                    ))
                    .note("an experiment must not depend on the machine or on its own values")
                    .help("use a plain path, relative to this file"),
                ),
                Value::Str(path) if path.trim().is_empty() => self
                    .diagnostics
                    .push(refuse("`extends` contains an empty path".into()).help(help)),
                Value::Str(path) => {
                    match bases.iter().find(|(known, _)| *known == path) {
                        Some((_, first)) => self.diagnostics.push(
                            refuse(format!("`extends` lists `{path}` twice"))
                                .related(*first, "first listed here")
                                .help("remove one of them"),
                        ),
                        None => bases.push((path, item.span)),
                    };
                }
                other => {
                    let message = format!(
                        "`extends` must be a list of file paths, found {}",
                        other.kind()
                    );
                    self.diagnostics.push(refuse(message).help(help));
                }
            }
        }
        bases
    }

    /// The table of a file that `from` extends; `None` when it was refused.
    fn base(&mut self, path: &str, span: Span, from: &Path) -> Option<Table> {
        let above = &self.sources.0[span.source as usize];
        let name = beside(Path::new(&above.name), path).display().to_string();
        let folder = above.folder.join(path);
        let folder = folder.parent().unwrap_or(Path::new("")).to_owned();
        let file = from.parent().unwrap_or(Path::new(".")).join(path);
        let identity = identity(&file);
        if let Some(at) = self.chain.iter().position(|(known, _)| *known == identity) {
            let names = self.chain[at..]
                .iter()
                .map(|(_, source)| self.sources.0[*source as usize].name.as_str());
            let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
            self.diagnostics.push(
                Diagnostic::error("extends", circle(&names, "extends"))
                    .at(span)
                    .label("this closes the cycle")
                    .help("remove one of these files from `extends`, and move what they share into a separate file"),
            );
            return None;
        }
        if let Some(known) = self.layers.get(&identity) {
            return Some(known.clone());
        }
        if self.chain.len() >= MAX_DEPTH {
            let message = format!("`extends` is nested more than {MAX_DEPTH} files deep");
            self.diagnostics.push(
                Diagnostic::error("extends", message)
                    .at(span)
                    .help("list the files in a single `extends`"),
            );
            return None;
        }
        let text = match read_text(&file) {
            Ok(text) => text,
            Err(reason) => {
                let diagnostic = reason.diagnostic(&name).at(span);
                self.diagnostics.push(match near(&file, path) {
                    Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                    None => diagnostic.help(reason.help_for_base()),
                });
                return None;
            }
        };
        let source = self.sources.add(name, text);
        let added = &mut self.sources.0[source as usize];
        added.extended_by = Some(span.source);
        added.folder = folder;
        let table = self.layer(source, Some(file));
        self.layers.insert(identity, table.clone());
        Some(table)
    }
}

/// Identifies a file, however it is named.
fn identity(file: &Path) -> PathBuf {
    std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned())
}

/// A path relative to the folder of `file`, without steps that cancel out.
fn beside(file: &Path, path: &str) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in file
        .parent()
        .unwrap_or(Path::new(""))
        .join(path)
        .components()
    {
        let last = clean.components().next_back();
        match (component, last) {
            (Component::CurDir, _) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => {
                clean.pop();
            }
            (component, _) => clean.push(component),
        }
    }
    clean
}

/// The names of the TOML files in a folder, sorted; none if it cannot be read.
fn toml_files(folder: &Path) -> Option<Vec<String>> {
    let is_here = folder.as_os_str().is_empty();
    let folder = if is_here { Path::new(".") } else { folder };
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".toml")).collect();
    names.sort();
    Some(names)
}

/// The path of an existing file with a similar name to the missing one.
fn near(file: &Path, path: &str) -> Option<String> {
    let wanted = file.file_name()?.to_str()?;
    if file.exists() {
        return None;
    }
    let names = toml_files(file.parent()?)?;
    let near = nearest(wanted, names.iter().map(String::as_str))?;
    Some(format!("{}{near}", path.strip_suffix(wanted)?))
}

/// Merges the entries of `over` into `base`. Returns the tables that inherit nothing, with the ones that they replace.
pub(super) fn merge(base: &mut Table, over: Table) -> Vec<(Span, Span)> {
    let mut restarts = Vec::new();
    let sweep = base.entries.iter_mut().find(|entry| entry.key == "sweep");
    if let (Some(below), Some(over)) = (sweep, over.get("sweep"))
        && let (Value::Table(below), Value::Table(over)) = (&mut below.node.value, &over.node.value)
    {
        let mut spellings = Vec::new();
        collect_spellings(over, &[], &mut spellings);
        let mut by_path: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
        for keys in spellings {
            by_path.entry(keys.join(".")).or_default().push(keys);
        }
        drop_respelled(below, &[], &by_path);
    }
    for entry in over.entries {
        put(base, entry, &mut restarts);
    }
    restarts
}

/// The keys of all entries, from the root of the table down.
fn collect_spellings(table: &Table, above: &[String], spellings: &mut Vec<Vec<String>>) {
    for entry in &table.entries {
        let keys = [above, std::slice::from_ref(&entry.key)].concat();
        if let Value::Table(inner) = &entry.node.value {
            collect_spellings(inner, &keys, spellings);
        }
        spellings.push(keys);
    }
}

/// An axis is written `optimizer.type` or `"optimizer.type"`. In another file, the other form is the same axis.
fn drop_respelled(
    table: &mut Table,
    above: &[String],
    spellings: &BTreeMap<String, Vec<Vec<String>>>,
) {
    table.entries.retain_mut(|entry| {
        let keys = [above, std::slice::from_ref(&entry.key)].concat();
        let path = keys.join(".");
        let same = spellings.get(&path);
        if same.is_some_and(|same| !same.contains(&keys)) {
            return false;
        }
        match &mut entry.node.value {
            Value::Table(inner) => {
                drop_respelled(inner, &keys, spellings);
                !inner.entries.is_empty()
            }
            _ => true,
        }
    });
}

fn put(base: &mut Table, entry: Entry, restarts: &mut Vec<(Span, Span)>) {
    let Some(known) = base.entries.iter_mut().find(|known| known.key == entry.key) else {
        return base.entries.push(entry);
    };
    match (&mut known.node.value, entry.node.value) {
        (Value::Table(below), Value::Table(over)) if !is_another(below, &over) => {
            for entry in over.entries {
                put(below, entry, restarts);
            }
        }
        (below, over) => {
            if matches!((&*below, &over), (Value::Table(_), Value::Table(_))) {
                restarts.push((entry.key_span, known.key_span));
            }
            *below = over;
        }
    }
    known.key_span = entry.key_span;
    known.node.span = entry.node.span;
}

/// Whether a table declares another type than the one below it.
fn is_another(below: &Table, over: &Table) -> bool {
    let name = |table: &Table| match table.get("type").map(|entry| &entry.node.value) {
        Some(Value::Str(name)) => Some(name.clone()),
        _ => None,
    };
    name(over).is_some_and(|over| name(below) != Some(over))
}

/// Why a file cannot be read as text.
pub(super) enum Unreadable {
    Io(String),
    TooLarge(u64),
    NotUtf8 { line: usize, byte: usize },
}

/// The text of an experiment file.
pub(super) fn read_text(path: &Path) -> Result<String, Unreadable> {
    let io = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::IsADirectory => Unreadable::Io("it is a directory".into()),
        _ => Unreadable::Io(plain_io_error(&e)),
    };
    let Some(bytes) = plain_file::read(path, MAX_BYTES).map_err(io)? else {
        let size = std::fs::metadata(path).map_or(0, |meta| meta.len());
        return Err(Unreadable::TooLarge(size));
    };
    String::from_utf8(bytes).map_err(|e| {
        let byte = e.utf8_error().valid_up_to();
        let line = 1 + e.as_bytes()[..byte].iter().filter(|b| **b == b'\n').count();
        Unreadable::NotUtf8 { line, byte }
    })
}

impl Unreadable {
    pub(super) fn diagnostic(&self, name: &str) -> Diagnostic {
        match self {
            Unreadable::Io(reason) => {
                Diagnostic::error("unreadable-file", format!("cannot read `{name}`: {reason}"))
            }
            // A file of /proc, for example, claims to be empty.
            Unreadable::TooLarge(bytes) if *bytes <= MAX_BYTES => Diagnostic::error(
                "file-too-large",
                format!(
                    "`{name}` is larger than {} MiB, the limit for an experiment file",
                    MAX_BYTES >> 20
                ),
            ),
            Unreadable::TooLarge(bytes) => Diagnostic::error(
                "file-too-large",
                format!(
                    "`{name}` has {:.1} MiB; the limit for an experiment file is {} MiB",
                    *bytes as f64 / (1 << 20) as f64,
                    MAX_BYTES >> 20
                ),
            ),
            Unreadable::NotUtf8 { line, byte } => Diagnostic::error(
                "not-utf8",
                format!("`{name}` is not UTF-8 text: line {line} is invalid at byte {byte}"),
            ),
        }
    }

    /// The experiment files that may have been meant: those of a folder that was named instead of a file, and those
    /// with a similar name.
    pub(super) fn near(&self, path: &Path) -> Option<String> {
        const MAX: usize = 4;
        let Unreadable::Io(_) = self else {
            return None;
        };
        if path.join("plan.json").exists() && path.join("runs").is_dir() {
            return Some(
                "it contains results: name the file that they were trained from, or train a run of it again with `runner reproduce RUN_FOLDER`".into(),
            );
        }
        let (folder, there) = if path.is_dir() {
            (path, "name a file in it")
        } else {
            (path.parent()?, "files with a similar name")
        };
        let mut names = toml_files(folder)?;
        if !path.is_dir() {
            let asked = path.file_stem()?.to_str()?.to_lowercase();
            let stem = |name: &str| name.trim_end_matches(".toml").to_lowercase();
            let stems: Vec<String> = names.iter().map(|name| stem(name)).collect();
            let near = nearest(&asked, stems.iter().map(String::as_str));
            names.retain(|name| {
                let stem = stem(name);
                (asked.len() > 2 && stem.contains(&asked)) || near == Some(stem.as_str())
            });
        }
        if names.is_empty() {
            return None;
        }
        let shown = names.iter().take(MAX);
        let shown = shown.map(|name| format!("`{}`", folder.join(name).display()));
        let shown = shown.collect::<Vec<_>>().join(", ");
        let more = names.len().saturating_sub(MAX);
        Some(match more {
            0 => format!("{there}: {shown}"),
            more => format!("{there}: {shown}, and {more} more"),
        })
    }

    /// The remedy for a file that was named on the command line.
    pub(super) fn help(&self) -> &'static str {
        match self {
            Unreadable::Io(_) => {
                "give the path of an experiment file, such as `experiments/mnist_sweep.toml`"
            }
            other => other.help_for_base(),
        }
    }

    fn help_for_base(&self) -> &'static str {
        match self {
            Unreadable::Io(_) => "paths in `extends` are relative to the file that contains them",
            Unreadable::TooLarge(_) => {
                "is this a data file? List data files under `[data]` of an experiment file"
            }
            Unreadable::NotUtf8 { .. } => "save the experiment file as TOML in UTF-8",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_similar_names_are_named() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["iris_csv.toml", "iris_npy.toml", "mnist.toml", "notes.txt"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let near = |name: &str| {
            let path = folder.path().join(name);
            let refused = read_text(&path).unwrap_err();
            let help = refused.near(&path)?;
            Some(help.replace(&format!("{}/", folder.path().display()), ""))
        };
        let files = "files with a similar name:";
        let pair = format!("{files} `iris_csv.toml`, `iris_npy.toml`");
        assert_eq!(near("iris.toml"), Some(pair.clone()));
        assert_eq!(near("iris"), Some(pair));
        assert_eq!(near("minst.toml"), Some(format!("{files} `mnist.toml`")));
        assert_eq!(near("speech.toml"), None);
        assert_eq!(near("i.toml"), None);
        let all = "name a file in it: `iris_csv.toml`, `iris_npy.toml`, `mnist.toml`";
        assert_eq!(near(""), Some(all.to_owned()));
    }
}
