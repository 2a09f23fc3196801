//! The text of a value in a table, for people and for programs.

use serde_json::Value as Json;

use super::{REASON, Run};
use crate::report::numbers::{short_number, value_text};
use crate::report::plot::cut;
use runner_core::record::{RunEntry, State};
use runner_core::show::show_bytes;

/// The heading of a column.
pub fn title(name: &str) -> String {
    match name {
        "wall_secs" => "seconds".into(),
        other => other.into(),
    }
}

/// Maximum length of a reason: the message contains all of it.
const MOST_OF_REASON: usize = 60;

/// Why a run failed, was skipped or pruned, in a few words.
pub fn reason(run: &RunEntry) -> Option<String> {
    let is_told = matches!(run.state, State::Failed | State::Skipped | State::Pruned);
    let first = run.message.lines().next().filter(|_| is_told)?;
    // Remedies and source locations are only in the message.
    let first = first.split("; ").next().unwrap_or_default();
    let place = first.rfind(" (").filter(|at| first[*at..].contains(".rs:"));
    Some(cut(&first[..place.unwrap_or(first.len())], MOST_OF_REASON))
}

/// The value of a column for a run.
pub fn cell(run: &Run<'_>, name: &str) -> String {
    if name == REASON {
        return reason(run.entry).unwrap_or_default();
    }
    let Some(value) = run.value(name) else {
        return "-".into();
    };
    match (name, value.as_f64()) {
        ("objective", Some(number)) => {
            format!(
                "{} {}",
                run.index.plan.objective.name(),
                short_number(number)
            )
        }
        ("epochs", _) => format!("{}/{}", run.entry.epochs, run.entry.num_epochs),
        ("wall_secs", Some(secs)) => format!("{secs:.1}"),
        ("memory_bytes", _) => run
            .entry
            .memory
            .map_or("-".into(), |memory| show_bytes(memory.measured.bytes())),
        ("age", Some(secs)) => age(secs),
        ("adjusted", _) => {
            if run.entry.is_adjusted {
                "yes".into()
            } else {
                "no".into()
            }
        }
        _ => match &value {
            Json::Number(number) if number.is_f64() && !is_setting(run, name) => {
                short_number(number.as_f64().unwrap_or_default())
            }
            other => value_text(other),
        },
    }
}

/// Settings are shown as they were set, measurements with a readable number of digits.
fn is_setting(run: &Run<'_>, name: &str) -> bool {
    run.entry.settings.contains_key(name) || run.index.settings.contains_key(name)
}

/// An age, in one unit.
pub fn age(secs: f64) -> String {
    let units = [(86_400.0, "d"), (3_600.0, "h"), (60.0, "min")];
    let unit = units.into_iter().find(|(unit, _)| secs >= *unit);
    match unit {
        Some((unit, name)) => format!("{} {name} ago", (secs / unit).floor()),
        None => "just now".into(),
    }
}

/// A value with all digits; empty for none.
pub fn raw(value: Option<Json>) -> String {
    value.map_or(String::new(), |value| raw_text(&value))
}

/// A value with all digits.
pub fn raw_text(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::age;

    #[test]
    fn ages_are_in_one_unit() {
        let ages = [0.0, 59.9, 60.0, 3_599.0, 7_200.0, 86_399.0, 864_000.0].map(age);
        let words = [
            "just now",
            "just now",
            "1 min ago",
            "59 min ago",
            "2 h ago",
            "23 h ago",
            "10 d ago",
        ];
        assert_eq!(ages, words);
    }
}
