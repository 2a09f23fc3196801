//! Refused keys: unknown ones, the word for `type` in other tools, and a missing `type`.

use super::{Mode, Section};
use crate::diagnostic::Diagnostic;
use crate::spec::hints::{home_of, types_with};
use crate::spec::remedy;

impl Section<'_> {
    /// Refuses a key that is the `type` in other tools, if there is no `type`; the other keys cannot be checked then.
    pub(super) fn refuse_other_word_for_type(&mut self) -> bool {
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
        findings.refuse(self.path.clone(), unknown.help("did you mean `type`?"));
        (*table, *silent) = (None, true);
        true
    }

    /// Refuses a table without a `type` of which other keys tell what was meant; they are not checked then.
    pub(in crate::spec) fn refuse_missing_type(&mut self, help: &str) {
        if self.refuse_other_word_for_type() {
            return;
        }
        let place = self.place();
        let path = self.path_of("type");
        let Mode::Read {
            table: table @ Some(_),
            span,
            findings,
            silent,
        } = &mut self.mode
        else {
            return;
        };
        if *silent || table.is_some_and(|table| table.get("type").is_some()) {
            return;
        }
        let missing = Diagnostic::error("missing-key", format!("missing key `type` in {place}"))
            .at(*span)
            .label("`type` must be set here")
            .help(help);
        findings.refuse(path, missing);
        (*table, *silent) = (None, true);
    }

    pub(super) fn refuse_unknown_keys(&mut self) {
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
            // Presets with other keys are other networks.
            let answer = answer.or_else(|| of_types(&entry.key, &path).filter(|_| path != "model"));
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

/// The types with which the table has the key, if there are such.
fn of_types(key: &str, path: &str) -> Option<String> {
    const MOST: usize = 4;
    let types = types_with(path, key);
    let named = types.iter().take(MOST).map(|name| format!("\"{name}\""));
    let named: Vec<String> = named.collect();
    let last = if types.len() > MOST { ", …" } else { "" };
    let named = named.join(", ");
    (!types.is_empty()).then(|| format!("`{key}` is a key for `type` {named}{last}"))
}

/// The table to which a misplaced key belongs.
fn belongs(key: &str, home: &str) -> String {
    match home {
        "" => format!("`{key}` belongs at the top level of the file"),
        _ => format!("`{key}` is a key of `[{home}]`"),
    }
}
