//! Runs that match a condition.
//!
//! The syntax is that of conditions in experiment files, over other names. A comparison that uses something that a run
//! does not have is false, and so is an impossible one, such as of a number with a text; if it is impossible for every
//! run, that is an error.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::Run;
use super::names::Known;
use runner_core::diagnostic::Wrong;
use runner_core::spec::document::{Node, Value};
use runner_core::spec::expression::{Dialect, Formula, Names, holds, names_by};

/// A condition over runs.
pub struct Filter {
    formula: Formula,
    /// The names in it.
    pub names: BTreeMap<String, bool>,
    parts: BTreeMap<String, Part>,
}

/// An expression in the condition.
#[derive(Default)]
struct Part {
    names: Vec<String>,
    was_computed: bool,
    mistake: Option<Wrong>,
}

impl Filter {
    /// Parses a condition. The error is a phrase with a remedy.
    pub fn new(text: &str, known: &Known) -> Result<Self, Wrong> {
        let formula = Formula::parse(text).map_err(|Wrong { message, help }| {
            Wrong::new(format!("`{text}`: {message}"), in_names_of_lists(&help))
        })?;
        let names: BTreeMap<String, bool> = formula.names(Dialect::Filter).into_iter().collect();
        names.keys().try_for_each(|name| known.check(name))?;
        Ok(Self {
            formula,
            names,
            parts: BTreeMap::new(),
        })
    }

    /// The runs that match.
    pub fn keep<'a>(&mut self, runs: Vec<Run<'a>>) -> Result<Vec<Run<'a>>, Wrong> {
        let (formula, parts) = (&self.formula, &mut self.parts);
        let mut kept = Vec::new();
        for run in runs {
            let is_set = |name: &str| run.value(name).is_some();
            let mut part = |source: &str| -> Result<bool, std::convert::Infallible> {
                let part = match parts.get_mut(source) {
                    Some(part) => part,
                    None => parts
                        .entry(source.to_owned())
                        .or_insert_with(|| Part::of(source)),
                };
                Ok(part.holds(source, &run))
            };
            let Ok(is_kept) = formula.holds(&is_set, &mut part);
            if is_kept {
                kept.push(run);
            }
        }
        let mut parts = std::mem::take(&mut self.parts).into_values();
        match parts.find_map(|part| part.mistake.filter(|_| !part.was_computed)) {
            Some(mistake) => Err(mistake),
            None => Ok(kept),
        }
    }
}

/// A remedy with examples for lists instead of experiment files.
fn in_names_of_lists(help: &str) -> String {
    let examples = [
        ("optimizer.type == 'sgd'", "valid/accuracy > 0.9"),
        ("${2 * channels}", "1 - valid/accuracy < 0.1"),
        ("${num_layers > 1}", "epochs > 1"),
        (
            "${model.type in ['mlp', 'cnn']}",
            "optimizer.type in ['adam', 'sgd']",
        ),
    ];
    let mut help = help.to_owned();
    for (theirs, ours) in examples {
        help = help.replace(theirs, ours);
    }
    help
}

impl Part {
    fn of(source: &str) -> Self {
        let names = names_by(source, Dialect::Filter).into_iter();
        Self {
            names: names.map(str::to_owned).collect(),
            ..Self::default()
        }
    }

    fn holds(&mut self, source: &str, run: &Run<'_>) -> bool {
        if self.names.iter().any(|name| run.value(name).is_none()) {
            return false;
        }
        match holds(source, Default::default(), run) {
            Ok(holds) => {
                self.was_computed = true;
                holds
            }
            Err(refusal) => {
                let helps = refusal.helps.join("; ");
                let wrong = || Wrong::new(refusal.message.clone(), in_names_of_lists(&helps));
                self.mistake.get_or_insert_with(wrong);
                false
            }
        }
    }
}

impl Names for Run<'_> {
    fn value(&self, name: &str) -> Result<Node, Wrong> {
        let value = Run::value(self, name);
        let missing = || Wrong::new(format!("it has no `{name}`"), "");
        Ok(node(&value.ok_or_else(missing)?))
    }

    fn dialect(&self) -> Dialect {
        Dialect::Filter
    }
}

fn node(value: &Json) -> Node {
    let value = match value {
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(number) => Value::Int(number),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::Str(text.clone()),
        Json::Array(items) => Value::Array(items.iter().map(node).collect()),
        // Tables are split into their keys, except those in lists.
        Json::Null | Json::Object(_) => Value::Str(value.to_string()),
    };
    Node {
        span: Default::default(),
        value,
    }
}
