//! Metrics of the program.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use super::{Entry, Part};
use crate::spec::task::TaskKind;

/// A metric of the program.
#[derive(Clone, Copy)]
pub struct OwnMetric {
    /// Its name. It has no keys.
    pub entry: Entry,
    /// Whether more is better.
    pub higher_is_better: bool,
    /// The tasks that it supports.
    pub tasks: &'static [TaskKind],
    /// What the crate of networks measures it with.
    pub module: &'static (dyn Any + Send + Sync),
}

/// A metric of a program by its name, as plans and records have it: every program can rank runs by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MetricName {
    name: &'static str,
    higher_is_better: bool,
}

impl MetricName {
    /// That of a metric of this program.
    pub fn of(metric: &OwnMetric) -> Self {
        Self {
            name: metric.entry.name,
            higher_is_better: metric.higher_is_better,
        }
    }

    /// The name.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Whether more is better.
    pub fn higher_is_better(self) -> bool {
        self.higher_is_better
    }

    /// The metric, if this program has it.
    pub fn installed(self) -> Option<&'static OwnMetric> {
        OwnMetric::named(self.name)
    }

    /// As plans and records have it, which say the direction: `profit:max`.
    pub(crate) fn recorded(self) -> String {
        let direction = if self.higher_is_better { "max" } else { "min" };
        format!("{}:{direction}", self.name)
    }

    /// Reads what [`Self::recorded`] wrote.
    pub(crate) fn from_record(text: &str) -> Option<Self> {
        let (name, direction) = text.split_once(':')?;
        let higher_is_better = match direction {
            "max" => true,
            "min" => false,
            _ => return None,
        };
        super::is_name(name).then(|| Self {
            name: kept(name),
            higher_is_better,
        })
    }
}

/// The same name for as long as the program runs: there are few.
fn kept(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &'static str = Box::leak(name.into());
    names.insert(name);
    name
}
