//! `${env:NAME}`: environment variables, only in paths.

use std::collections::BTreeSet;

use super::resolver::Resolver;
use super::values::expressions;
use crate::diagnostic::{Diagnostic, Span};
use crate::spec::document::Table;

impl Resolver<'_> {
    /// The value of an environment variable.
    pub(super) fn variable(
        &self,
        path: &str,
        inner: &str,
        span: Span,
    ) -> Result<String, Box<Diagnostic>> {
        let (name, default) = environment(inner).unwrap_or_default();
        let refuse = |message: String| {
            let message = format!("`${{{inner}}}`: {message}");
            Diagnostic::error("environment", message).at(span)
        };
        if !self.references.is_path(path) {
            let set = if path.contains('[') {
                String::new()
            } else {
                format!(", or pass it with `--set {path}=…`")
            };
            let keys = self
                .references
                .path_keys()
                .iter()
                .filter(|key| *key != "extends");
            let keys: Vec<_> = keys.map(|key| format!("`{key}`")).collect();
            let note = format!(
                "environment variables are only allowed in paths ({}): the same file must mean the same work on every machine",
                keys.join(", ")
            );
            return Err(Box::new(
                refuse(format!("`{path}` cannot come from the environment"))
                    .note(note)
                    .help(format!("set the value here{set}")),
            ));
        }
        let is_name = |name: &str| {
            let is_fit = |c: char| c.is_ascii_alphanumeric() || c == '_';
            !name.is_empty() && name.chars().all(is_fit)
        };
        if !is_name(name) {
            return Err(Box::new(
                refuse(format!(
                    "`{name}` is not a valid name of an environment variable"
                ))
                .help("for example: `${env:DATA}`, or with a default: `${env:DATA:-data}`"),
            ));
        }
        let environment = &self.references.document.environment;
        let value = environment.get(name).cloned().flatten();
        match (value.filter(|value| !value.is_empty()), default) {
            (Some(value), _) => Ok(value),
            (None, Some(default)) => Ok(default.to_owned()),
            (None, None) => Err(Box::new(
                refuse(format!("the environment variable `{name}` is not set"))
                    .help(format!("set it: {name}=… runner …"))
                    .help(format!("or give a default: `${{env:{name}:-path}}`")),
            )),
        }
    }
}

/// The variable and the default of `env:NAME:-default`.
fn environment(inner: &str) -> Option<(&str, Option<&str>)> {
    let asked = inner.trim().strip_prefix("env:")?;
    Some(match asked.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (asked, None),
    })
}

pub(super) fn is_environment(inner: &str) -> bool {
    environment(inner).is_some()
}

/// The environment variables that a tree uses.
pub(in crate::spec) fn environment_names(root: &Table, names: &mut BTreeSet<String>) {
    expressions(root, &mut |inner| {
        names.extend(environment(inner).map(|(name, _)| name.to_owned()));
    });
}
