//! A single declaration of a table's keys, used for two purposes.
//!
//! Each spec type has one `decode` function that requests its keys from a [`Section`]. With a document the section
//! reads, checks and reports; without one it records the keys, and the JSON Schema is generated from that record. So
//! the checker and the schema cannot disagree, and every default is defined once.

use serde_json::Value as Json;

use super::document::{Entry, Node, Table, Value};
use super::hints::{home_of, keys_of_types, required_keys};
use super::kind::{Kind, Scalar};
use super::remedy;
use crate::diagnostic::{Diagnostic, Diagnostics, Span};

/// The findings of reading a document.
#[derive(Debug, Default)]
pub struct Findings {
    /// The messages.
    pub diagnostics: Diagnostics,
    /// Paths whose values are invalid and were replaced by a placeholder: rules that need them are not run.
    pub poisoned: Vec<String>,
}

impl Findings {
    /// Whether the value at `path`, or one above or below it, is a placeholder.
    pub fn is_poisoned(&self, path: &str) -> bool {
        let under = |a: &str, b: &str| {
            a.is_empty() || a == b || (b.starts_with(a) && b".[".contains(&b.as_bytes()[a.len()]))
        };
        let mut poisoned = self.poisoned.iter();
        poisoned.any(|p| under(p, path) || under(path, p))
    }
}

/// A key as the schema shows it.
#[derive(Clone, Debug)]
pub struct KeyDoc {
    /// The key.
    pub key: &'static str,
    /// Its meaning.
    pub doc: &'static str,
    /// Its content.
    pub shape: Shape,
    /// Its default.
    pub default: Option<Json>,
    /// Whether it is required.
    pub required: bool,
    /// Whether a table that is not set is absent, rather than one of defaults.
    pub is_optional: bool,
}

/// The content of a key.
#[derive(Clone, Debug)]
pub enum Shape {
    /// A value or a list of values.
    Scalar(Kind),
    /// A table.
    Table(Vec<KeyDoc>),
    /// A list of tables.
    Tables(Vec<KeyDoc>),
    /// The `type` key of a table, with the keys that each type adds to it.
    Variants(Vec<Variant>),
    /// A table whose keys are dotted paths of other keys and whose values are lists for them.
    Axes,
    /// A table whose keys are dotted paths of other keys and whose values are distributions.
    Distributions,
    /// A list of tables of dotted paths with a value each.
    Trials,
    /// A list of values of any type.
    Values,
    /// A list of layers.
    Layers,
    /// Tables of layers by name.
    Blocks,
    /// A table of any keys.
    Free,
}

/// One type of a table with a `type` key.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The value of the `type` key.
    pub name: &'static str,
    /// Its meaning.
    pub doc: &'static str,
    /// The keys it adds.
    pub keys: Vec<KeyDoc>,
}

/// A fixed set of names, in the order in which messages and schemas show them.
pub trait Choice: Copy + PartialEq + 'static {
    /// Every value with its name in the file and its meaning.
    const ALL: &'static [(Self, &'static str, &'static str)];

    /// The name in the file.
    fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(value, _, _)| *value == self);
        found.map_or("", |(_, name, _)| name)
    }
}

/// Declares a fixed set of names: `Variant "name" "meaning",` for each.
macro_rules! choices {
    ($(#[$meta:meta])* $vis:vis enum $choice:ident {
        $($(#[$mark:meta])* $variant:ident $name:literal $doc:literal,)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        // The texts are messages too, and contain shapes such as [hidden].
        #[allow(rustdoc::broken_intra_doc_links)]
        $vis enum $choice {
            $($(#[$mark])* #[doc = $doc] $variant,)+
        }

        impl $crate::spec::section::Choice for $choice {
            const ALL: &'static [(Self, &'static str, &'static str)] =
                &[$(($choice::$variant, $name, $doc),)+];
        }
    };
}
pub(super) use choices;

/// A table of the experiment file while it is being decoded.
pub struct Section<'a> {
    path: String,
    /// What messages append to the path, such as the type of the table.
    remark: String,
    mode: Mode<'a>,
    known: Vec<&'static str>,
}

enum Mode<'a> {
    Read {
        table: Option<&'a Table>,
        span: Span,
        findings: &'a mut Findings,
        /// A placeholder for a table that was already reported.
        silent: bool,
    },
    Describe(&'a mut Vec<KeyDoc>),
}

/// Decodes the root table of a document.
pub fn read<T>(root: &Table, findings: &mut Findings, decode: impl Fn(&mut Section<'_>) -> T) -> T {
    let mode = Mode::Read {
        table: Some(root),
        span: Span::default(),
        findings,
        silent: false,
    };
    run_section(String::new(), mode, decode)
}

/// Decodes a table at `path`; `span` is where a missing key is reported.
pub fn read_at<T>(
    table: &Table,
    path: String,
    span: Span,
    findings: &mut Findings,
    decode: impl Fn(&mut Section<'_>) -> T,
) -> T {
    let mode = Mode::Read {
        table: Some(table),
        span,
        findings,
        silent: false,
    };
    run_section(path, mode, decode)
}

/// Records the keys that `decode` requests.
pub fn describe<T>(decode: impl Fn(&mut Section<'_>) -> T) -> Vec<KeyDoc> {
    let mut keys = Vec::new();
    run_section(String::new(), Mode::Describe(&mut keys), decode);
    keys
}

fn run_section<T>(path: String, mode: Mode<'_>, decode: impl Fn(&mut Section<'_>) -> T) -> T {
    let mut section = Section {
        path,
        remark: String::new(),
        mode,
        known: Vec::new(),
    };
    let value = decode(&mut section);
    section.refuse_unknown_keys();
    value
}

/// Describes a table, or the tables of a list, among the keys of the one above.
fn describe_table<T>(
    keys: &mut Vec<KeyDoc>,
    (key, doc, required): (&'static str, &'static str, bool),
    path: String,
    shape: impl Fn(Vec<KeyDoc>) -> Shape,
    decode: impl Fn(&mut Section<'_>) -> T,
) -> T {
    let mut inner = Vec::new();
    let value = run_section(path, Mode::Describe(&mut inner), decode);
    keys.push(KeyDoc {
        key,
        doc,
        shape: shape(inner),
        default: None,
        required,
        is_optional: false,
    });
    value
}

impl<'a> Section<'a> {
    /// Requests a value; the returned [`Field`] determines what happens if it is not set.
    pub fn field<T: Scalar>(
        &mut self,
        key: &'static str,
        kind: Kind,
        doc: &'static str,
    ) -> Field<'_, 'a, T> {
        self.known.push(key);
        Field {
            section: self,
            key,
            kind,
            doc,
            marker: std::marker::PhantomData,
        }
    }

    /// One of a fixed set of names, with `default` if it is not set.
    pub fn choice<T: Choice>(&mut self, key: &'static str, doc: &'static str, default: T) -> T {
        let name: String = self
            .field(key, Kind::of_choice::<T>(), doc)
            .or(default.name().to_owned());
        by_name(&name).unwrap_or(default)
    }

    /// A list of tables, `[[…]]`, whose keys `decode` requests; empty if it is not set.
    pub fn tables<T>(
        &mut self,
        key: &'static str,
        doc: &'static str,
        required: bool,
        decode: impl Fn(&mut Section<'_>) -> T,
    ) -> Vec<T> {
        self.known.push(key);
        let path = self.path_of(key);
        let place = self.place();
        let (table, span, findings, silent) = match &mut self.mode {
            Mode::Describe(keys) => {
                let tables = |inner| Shape::Tables(inner);
                return vec![describe_table(
                    keys,
                    (key, doc, required),
                    path,
                    tables,
                    decode,
                )];
            }
            Mode::Read {
                table,
                span,
                findings,
                silent,
            } => (table, span, findings, silent),
        };
        let help =
            format!("add `[[{path}]]` on a separate line for each table, with its keys below");
        let Some(entry) = table.and_then(|t| t.get(key)) else {
            if required && !*silent {
                let message = format!("missing `[[{path}]]` in {place}");
                let missing = Diagnostic::error("missing-table", message).at(*span);
                findings.diagnostics.push(missing.help(help));
                findings.poisoned.push(path);
            }
            return Vec::new();
        };
        let Value::Array(items) = &entry.node.value else {
            let found = entry.node.value.kind();
            let message = format!("`{path}` must be a list of tables, found {found}");
            let at = match &entry.node.value {
                Value::Table(_) => entry.key_span,
                _ => entry.node.span,
            };
            let wrong = Diagnostic::error("wrong-type", message).at(at);
            findings.diagnostics.push(wrong.help(help));
            findings.poisoned.push(path);
            return Vec::new();
        };
        if required && items.is_empty() {
            let wrong = Diagnostic::error("out-of-range", format!("`{path}` is empty"));
            findings
                .diagnostics
                .push(wrong.at(entry.node.span).help(help));
            findings.poisoned.push(path);
            return Vec::new();
        }
        let mut decoded = Vec::new();
        for (at, node) in items.iter().enumerate() {
            let path = format!("{path}[{at}]");
            let Value::Table(inner) = &node.value else {
                let message = format!("`{path}` must be a table, found {}", node.value.kind());
                let wrong = Diagnostic::error("wrong-type", message).at(node.span);
                findings.diagnostics.push(wrong.help(help.as_str()));
                findings.poisoned.push(path);
                continue;
            };
            let num_before = findings.diagnostics.num_found();
            let mode = Mode::Read {
                table: Some(inner),
                span: node.span,
                findings,
                silent: false,
            };
            decoded.push(run_section(path.clone(), mode, &decode));
            if findings.diagnostics.num_found() > num_before {
                // An item without a misspelled key would be refused a second time.
                findings.poisoned.push(path);
            }
        }
        decoded
    }

    /// A table whose keys `decode` requests. If it is not set, neither are its keys.
    pub fn table<T>(
        &mut self,
        key: &'static str,
        doc: &'static str,
        required: bool,
        decode: impl Fn(&mut Section<'_>) -> T,
    ) -> T {
        self.known.push(key);
        let path = self.path_of(key);
        match &mut self.mode {
            Mode::Describe(keys) => {
                let table = |inner| Shape::Table(inner);
                describe_table(keys, (key, doc, required), path, table, decode)
            }
            Mode::Read {
                table,
                findings,
                silent,
                span,
            } => {
                let entry = table.and_then(|t| t.get(key));
                let (inner, inner_span, inner_silent) = match entry.map(|e| (&e.node.value, e)) {
                    Some((Value::Table(inner), entry)) => (Some(inner), entry.key_span, *silent),
                    Some((other, entry)) => {
                        let message = format!("`{path}` must be a table, found {}", other.kind());
                        let help = match (remedy::for_scalar(&path, other), path.contains('[')) {
                            (Some(help), _) => help,
                            (None, true) => format!("use a table: `{key} = {{ … }}`"),
                            (None, false) => {
                                let keys = keys_for(&path, other);
                                format!("add `[{path}]` on a separate line, and {keys}")
                            }
                        };
                        findings.diagnostics.push(
                            Diagnostic::error("wrong-type", message)
                                .at(entry.node.span)
                                .help(help),
                        );
                        findings.poisoned.push(path.clone());
                        (None, entry.key_span, true)
                    }
                    None => {
                        if required && !*silent {
                            let keys = required_keys(&path);
                            let help =
                                format!("add a line `[{path}]`, and below it at least {keys}");
                            findings.diagnostics.push(
                                Diagnostic::error(
                                    "missing-table",
                                    format!("missing table `[{path}]`"),
                                )
                                .at(*span)
                                .help(help),
                            );
                            findings.poisoned.push(path.clone());
                        }
                        (None, *span, required || *silent)
                    }
                };
                let mode = Mode::Read {
                    table: inner,
                    span: inner_span,
                    findings,
                    silent: inner_silent,
                };
                run_section(path, mode, decode)
            }
        }
    }

    /// A table that may be absent.
    pub fn optional_table<T>(
        &mut self,
        key: &'static str,
        doc: &'static str,
        decode: impl Fn(&mut Section<'_>) -> T,
    ) -> Option<T> {
        if self.is_written(key) {
            let value = self.table(key, doc, false, decode);
            if let Mode::Describe(keys) = &mut self.mode
                && let Some(doc) = keys.last_mut()
            {
                doc.is_optional = true;
            }
            Some(value)
        } else {
            self.known.push(key);
            None
        }
    }

    /// Whether the key is set; always true in the schema.
    pub fn is_written(&self, key: &str) -> bool {
        match &self.mode {
            Mode::Describe(_) => true,
            Mode::Read { table, .. } => table.is_some_and(|t| t.get(key).is_some()),
        }
    }

    /// Marks a key as handled elsewhere.
    pub fn known(&mut self, key: &'static str) {
        self.known.push(key);
    }

    /// The place of a key's value.
    pub fn written_at(&self, key: &str) -> Option<Span> {
        match &self.mode {
            Mode::Describe(_) => None,
            Mode::Read { table, .. } => Some(table.as_ref()?.get(key)?.node.span),
        }
    }

    /// The value of a key with its place, or `default`.
    pub fn argument(
        &mut self,
        key: &'static str,
        kind: Kind,
        doc: &'static str,
        default: &Node,
    ) -> Node {
        let read = self
            .field::<Value>(key, kind, doc)
            .take(Some(default.value.to_json()), false);
        match (&self.mode, read) {
            (Mode::Read { table, .. }, Some(_)) => {
                let entry = table.and_then(|t| t.get(key));
                entry.map_or_else(|| default.clone(), |entry| entry.node.clone())
            }
            _ => default.clone(),
        }
    }

    /// The entry of a key that is decoded elsewhere.
    pub fn raw(&mut self, key: &'static str, doc: &'static str, shape: Shape) -> Option<Entry> {
        self.known.push(key);
        match &mut self.mode {
            Mode::Describe(keys) => {
                keys.push(KeyDoc {
                    key,
                    doc,
                    shape,
                    default: None,
                    required: false,
                    is_optional: false,
                });
                None
            }
            Mode::Read { table, .. } => table.and_then(|t| t.get(key)).cloned(),
        }
    }

    /// The place of this table and the destination of its findings; `None` if there is nothing to read, or if the table
    /// was already refused.
    pub fn reading(&mut self) -> Option<(Span, &mut Findings)> {
        match &mut self.mode {
            Mode::Read {
                span,
                findings,
                silent: false,
                ..
            } => Some((*span, findings)),
            _ => None,
        }
    }

    /// Whether the value of a key was refused.
    pub fn is_refused(&self, key: &str) -> bool {
        match &self.mode {
            Mode::Describe(_) => false,
            Mode::Read { findings, .. } => findings.is_poisoned(&self.path_of(key)),
        }
    }

    /// Refuses the value of a key for other reasons than its kind.
    pub fn refuse(&mut self, key: &str, diagnostic: Diagnostic) {
        let path = self.path_of(key);
        if let Some((_, findings)) = self.reading() {
            findings.diagnostics.push(diagnostic);
            findings.poisoned.push(path);
        }
    }

    /// The `type` key of this table: `decode` requests the keys that the type adds. Without a `default` the key is
    /// required.
    pub fn variant<T: Choice, O>(
        &mut self,
        doc: &'static str,
        default: Option<T>,
        decode: impl Fn(&mut Section<'_>, T) -> O,
    ) -> O {
        const KEY: &str = "type";
        if let Mode::Describe(keys) = &mut self.mode {
            let mut variants = Vec::new();
            let mut first = None;
            for &(value, name, doc) in T::ALL {
                let mut inner = Vec::new();
                let mode = Mode::Describe(&mut inner);
                let decoded = run_section(self.path.clone(), mode, |s| decode(s, value));
                first.get_or_insert(decoded);
                variants.push(Variant {
                    name,
                    doc,
                    keys: inner,
                });
            }
            keys.push(KeyDoc {
                key: KEY,
                doc,
                shape: Shape::Variants(variants),
                default: default.map(|d| d.name().into()),
                required: default.is_none(),
                is_optional: false,
            });
            return first.expect("a choice has at least one value");
        }
        if default.is_none() && self.refuse_other_word_for_type() {
            return decode(self, T::ALL[0].0);
        }
        let field = self.field::<String>(KEY, Kind::of_choice::<T>(), doc);
        let name = match default {
            // An invalid name does not select the default.
            Some(default) => match field.take(None, false) {
                None if !self.is_written(KEY) => default.name().to_owned(),
                name => name.unwrap_or_default(),
            },
            None => field.required(),
        };
        match by_name(&name) {
            Some(value) => {
                self.remark = format!(" (type `{name}`)");
                decode(self, value)
            }
            None => {
                // The type is wrong, so the other keys cannot be checked.
                if let Mode::Read { table, silent, .. } = &mut self.mode {
                    (*table, *silent) = (None, true);
                }
                decode(self, T::ALL[0].0)
            }
        }
    }

    /// Refuses a key that is the `type` in other tools, if there is no `type`; the other keys cannot be checked then.
    fn refuse_other_word_for_type(&mut self) -> bool {
        let place = self.place();
        let Mode::Read {
            table: table @ Some(_),
            findings,
            silent,
            ..
        } = &mut self.mode
        else {
            return false;
        };
        let written = table.filter(|table| table.get("type").is_none());
        let Some(entry) = written.and_then(|table| remedy::for_missing_type(&self.path, table))
        else {
            return false;
        };
        let message = format!("unknown key `{}` in {place}", entry.key);
        let unknown = Diagnostic::error("unknown-key", message).at(entry.key_span);
        findings
            .diagnostics
            .push(unknown.help("did you mean `type`?"));
        findings.poisoned.push(self.path.clone());
        (*table, *silent) = (None, true);
        true
    }

    /// The entries of a table of axes: dotted paths, or nested tables, that end in a value that is not a table, or in a
    /// table that `is_axis`.
    pub fn axes(
        &mut self,
        key: &'static str,
        doc: &'static str,
        shape: Shape,
        example: &str,
        is_axis: impl Fn(&Entry, &Table) -> bool,
    ) -> Vec<(String, Entry)> {
        let path = self.path_of(key);
        let Some(entry) = self.raw(key, doc, shape) else {
            return Vec::new();
        };
        let mut axes = Vec::new();
        match (&entry.node.value, self.reading()) {
            (Value::Table(table), _) => collect_axes(table, "", &is_axis, &mut axes),
            (other, Some((_, findings))) => {
                let message = format!("`{path}` must be a table of axes, found {}", other.kind());
                findings.diagnostics.push(
                    Diagnostic::error("wrong-type", message)
                        .at(entry.node.span)
                        .help(format!(
                            "add `[{path}]`, with lines such as `{example}` below it"
                        )),
                );
                findings.poisoned.push(path);
            }
            _ => {}
        }
        axes
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    fn place(&self) -> String {
        if self.path.is_empty() {
            "the experiment file".into()
        } else {
            format!("`{}`{}", self.path, self.remark)
        }
    }

    fn refuse_unknown_keys(&mut self) {
        let place = self.place();
        let path = self.path.clone();
        let Mode::Read {
            table: Some(table),
            span: at,
            findings,
            silent: false,
        } = &mut self.mode
        else {
            return;
        };
        let at = *at;
        for entry in &table.entries {
            if self.known.contains(&entry.key.as_str()) {
                continue;
            }
            let message = format!("unknown key `{}` in {place}", entry.key);
            let mut diagnostic = Diagnostic::error("unknown-key", message).at(entry.key_span);
            let answer = remedy::for_key(&path, entry, table, &self.known);
            // A misspelled key is also missing, which would report the same mistake twice.
            let near = answer.as_ref().and_then(|answer| {
                let names = |known: &&&str| {
                    let is_key = |end: &str| answer.contains(&format!("`{known}{end}"));
                    table.get(known).is_none() && (is_key("`") || is_key(" = "))
                };
                self.known.iter().find(names).copied()
            });
            if let Some(near) = near {
                let missing = format!("missing key `{near}` in {place}");
                let is_twice = |d: &Diagnostic| {
                    d.code == "missing-key" && d.span == Some(at) && d.message == missing
                };
                findings
                    .diagnostics
                    .0
                    .retain(|diagnostic| !is_twice(diagnostic));
            }
            // Keys of presets are unrelated to a layer's keys.
            let home =
                || home_of(&entry.key).filter(|home| !path.starts_with("model.") && *home != path);
            diagnostic = match answer.or_else(|| Some(belongs(&entry.key, &home()?))) {
                Some(answer) => diagnostic.help(answer),
                None if self.known.is_empty() => diagnostic.help("this table takes no keys"),
                None => {
                    let known: Vec<_> = self.known.iter().map(|k| format!("`{k}`")).collect();
                    diagnostic.help(format!("the keys here are {}", known.join(", ")))
                }
            };
            findings.diagnostics.push(diagnostic);
        }
    }
}

/// What to write below the header of a table that was set to a name, such as `optimizer = "adam"`.
fn keys_for(path: &str, value: &Value) -> String {
    let types = keys_of_types(path, &Table::default());
    match (value, types) {
        (Value::Str(name), Some(types)) if types.is_type(name) => {
            format!("with `type = \"{name}\"` below it")
        }
        (Value::Str(name), Some(types)) => {
            match remedy::ours_for_value(&format!("{path}.type"), name, &types.names()) {
                Some(ours) => format!("with `type = \"{ours}\"` below it"),
                None => "with its `type` and other keys below it".to_owned(),
            }
        }
        _ => "its keys below it".to_owned(),
    }
}

/// The table to which a misplaced key belongs.
fn belongs(key: &str, home: &str) -> String {
    match home {
        "" => format!("`{key}` belongs at the top level of the file"),
        _ => format!("`{key}` is a key of `[{home}]`"),
    }
}

/// The entries below a table, by their path from it: tables are walked into unless they are axes.
pub(super) fn collect_axes(
    table: &Table,
    prefix: &str,
    is_axis: &dyn Fn(&Entry, &Table) -> bool,
    axes: &mut Vec<(String, Entry)>,
) {
    for entry in &table.entries {
        let path = if prefix.is_empty() {
            entry.key.clone()
        } else {
            format!("{prefix}.{}", entry.key)
        };
        match &entry.node.value {
            Value::Table(inner) if !is_axis(entry, inner) => {
                collect_axes(inner, &path, is_axis, axes)
            }
            _ => axes.push((path, entry.clone())),
        }
    }
}

/// The value of a name.
pub fn by_name<T: Choice>(name: &str) -> Option<T> {
    let found = T::ALL.iter().find(|(_, n, _)| *n == name);
    found.map(|(value, _, _)| *value)
}

/// A requested key.
pub struct Field<'s, 'a, T> {
    section: &'s mut Section<'a>,
    key: &'static str,
    kind: Kind,
    doc: &'static str,
    marker: std::marker::PhantomData<T>,
}

impl<T: Scalar> Field<'_, '_, T> {
    /// The value, or `default` if it is not set.
    pub fn or(self, default: T) -> T {
        let shown = default.to_json();
        self.take(Some(shown), false).unwrap_or(default)
    }

    /// The value, if it is set.
    pub fn optional(self) -> Option<T> {
        self.take(None, false)
    }

    /// The value, which is required.
    pub fn required(self) -> T {
        self.take(None, true).unwrap_or_else(T::stand_in)
    }

    fn take(self, default: Option<Json>, required: bool) -> Option<T> {
        if let Mode::Read { table, .. } = &self.section.mode {
            // Most values are valid or not set, and a sweep reads very many: no text is formatted for those.
            match table.and_then(|table| table.get(self.key)) {
                Some(entry) if self.kind.check("", &entry.node).is_empty() => {
                    return Some(T::from_value(&entry.node.value));
                }
                None if !required => return None,
                _ => {}
            }
        }
        let path = self.section.path_of(self.key);
        let place = self.section.place();
        match &mut self.section.mode {
            Mode::Describe(keys) => {
                keys.push(KeyDoc {
                    key: self.key,
                    doc: self.doc,
                    shape: Shape::Scalar(self.kind),
                    default,
                    required,
                    is_optional: false,
                });
                None
            }
            Mode::Read {
                table,
                span,
                findings,
                silent,
            } => match table.and_then(|t| t.get(self.key)) {
                Some(entry) => {
                    let wrong = self.kind.check_as(&path, &entry.node, default.as_ref());
                    wrong.into_iter().for_each(|d| findings.diagnostics.push(d));
                    findings.poisoned.push(path);
                    None
                }
                None if required && !*silent => {
                    let message = format!("missing key `{}` in {place}", self.key);
                    findings.diagnostics.push(
                        Diagnostic::error("missing-key", message)
                            .at(*span)
                            .label(format!("`{}` must be set here", self.key))
                            .help(format!("add `{} = …`, {}", self.key, self.kind.expected())),
                    );
                    findings.poisoned.push(path);
                    None
                }
                None => None,
            },
        }
    }
}
