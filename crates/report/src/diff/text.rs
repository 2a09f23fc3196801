//! A difference as text and tables.
//!
//! The norm of a parameter's difference is the Euclidean one, relative to that of the first run's; the largest difference
//! of two values is also given in units in the last place of the parameter's largest value.

use serde_json::Value as Json;

use super::{Compared, Diff, Numbers, Weights};
use crate::report::{short_number, value_text};
use runner_core::table::{Columns, fit};

/// Displayed parameters and metrics; the rest is counted.
const MAX_ROWS: usize = 40;

/// Everything, subject by subject, with tables of a width.
pub fn show(diff: &Diff, width: Option<u16>) -> String {
    let mut text = String::new();
    for (name, [folder, outcome]) in [("a", &diff.a), ("b", &diff.b)] {
        line(&mut text, name, &format!("{folder} ({outcome})"));
    }
    if let Some(settings) = &diff.settings {
        subject((&mut text, width), "settings", settings, "key");
        if let Some(network) = &diff.network {
            text.push_str(&format!("  {network}\n"));
        }
    }
    if let Some(environment) = &diff.environment {
        subject((&mut text, width), "environment", environment, "fact");
    }
    if let Some(data) = &diff.data {
        subject((&mut text, width), "data", data, "split");
    }
    if let Some(code) = &diff.code {
        if code.differences.is_empty() {
            line(&mut text, "code", "equal")
        } else {
            subject((&mut text, width), "code", code, "fact")
        }
        if let Some(note) = &diff.code_note {
            text.push_str(&format!("  {note}\n"));
        }
    }
    if let Some(found) = &diff.weights {
        weights((&mut text, width), found);
    }
    if let Some(found) = &diff.numbers {
        numbers((&mut text, width), found);
    }
    for not in &diff.not_compared {
        text.push_str(&format!("not compared: {}: {}\n", not.what, not.why));
    }
    let subjects = diff.subjects();
    let verdict = match (subjects.is_empty(), diff.is_equal) {
        (true, true) => "equal".to_owned(),
        (true, false) => "equal as far as compared".to_owned(),
        (false, _) => format!("they differ in {}", subjects.join(", ")),
    };
    line(&mut text, "verdict", &verdict);
    text
}

/// One line for a pair of runs.
pub fn brief(diff: &Diff) -> String {
    let mut parts: Vec<String> = Vec::new();
    for subject in diff.subjects() {
        let count = match subject {
            "settings" => diff.settings.as_ref().map(|s| s.differences.len()),
            "environment" => diff.environment.as_ref().map(|e| e.differences.len()),
            _ => None,
        };
        let first = diff.numbers.as_ref().and_then(|numbers| {
            let step = numbers.first_loss.map(|(step, ..)| format!("step {step}"));
            let epoch = numbers.first_epoch.as_ref();
            step.or_else(|| Some(format!("epoch {}", epoch?.0)))
        });
        parts.push(match (subject, count, first) {
            ("settings", Some(num), _) if num > 0 => format!("settings ({})", named(diff, num)),
            (_, Some(num), _) if num > 0 => format!("{subject} ({num})"),
            ("metrics", _, Some(first)) => format!("metrics (from {first} on)"),
            ("outcome", ..) => format!("outcome ({}, {})", diff.a[1], diff.b[1]),
            _ => subject.to_owned(),
        });
    }
    let not: Vec<_> = diff.not_compared.iter().map(|n| n.what.as_str()).collect();
    match (parts.is_empty(), not.is_empty()) {
        (true, true) => "equal".into(),
        (true, false) => format!(
            "equal, except for what was not compared: {}",
            not.join(", ")
        ),
        (false, true) => parts.join(", "),
        (false, false) => format!("{}; not compared: {}", parts.join(", "), not.join(", ")),
    }
}

/// The settings that differ, starting with the first.
fn named(diff: &Diff, num: usize) -> String {
    const SHOWN: usize = 3;
    let differences = diff
        .settings
        .iter()
        .flat_map(|settings| &settings.differences);
    let names: Vec<&str> = differences.take(SHOWN).map(|d| d.name.as_str()).collect();
    match num {
        num if num > SHOWN => format!("{} and {} more", names.join(", "), num - SHOWN),
        _ => names.join(", "),
    }
}

fn line(text: &mut String, name: &str, what: &str) {
    text.push_str(&format!("{name:<12} {what}\n"));
}

fn subject(
    (text, width): (&mut String, Option<u16>),
    name: &str,
    compared: &Compared,
    thing: &str,
) {
    let num = compared.num;
    let things = if num == 1 {
        thing.to_owned()
    } else {
        format!("{thing}s")
    };
    match compared.differences.len() {
        0 => line(text, name, &format!("equal in {num} {things}")),
        differing => line(
            text,
            name,
            &format!("differ in {differing} of {num} {things}"),
        ),
    }
    let value = |value: &Json| match value {
        Json::Null => "-".to_owned(),
        other => value_text(other),
    };
    let rows = compared.differences.iter();
    let rows = rows.map(|d| vec![d.name.clone(), value(&d.a), value(&d.b)]);
    table(text, width, &["", "a", "b"], rows.collect());
}

fn weights((text, width): (&mut String, Option<u16>), weights: &Weights) {
    if weights.is_equal {
        return line(text, "weights", "equal");
    }
    let all = &weights.parameters;
    let differing: Vec<_> = all.iter().filter(|w| w.ulps > 0.0).collect();
    if all.is_empty() {
        line(text, "weights", "differ by their digests")
    } else {
        let what = format!("differ in {} of {} parameters", differing.len(), all.len());
        line(text, "weights", &what);
    }
    let shape = |shape: &Option<Vec<usize>>| match shape {
        Some(shape) => format!("{shape:?}"),
        None => "nothing".into(),
    };
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), short_number);
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut are_apart = false;
    for weight in differing {
        let [a, b] = &weight.shapes;
        let is_apart = weight.relative_norm.is_none() || weight.largest.is_none();
        are_apart |= is_apart;
        rows.push(vec![
            weight.parameter.clone(),
            number(weight.relative_norm),
            number(weight.largest),
            number((!is_apart).then_some(weight.ulps)),
            if is_apart {
                format!("{} in a, {} in b", shape(a), shape(b))
            } else {
                "-".into()
            },
        ]);
    }
    let mut head = vec!["parameter", "|b - a| / |a|", "largest", "in ulp", "shape"];
    if !are_apart {
        head.pop();
        rows.iter_mut().for_each(|row| drop(row.pop()));
    }
    table(text, width, &head, rows);
}

fn numbers((text, width): (&mut String, Option<u16>), numbers: &Numbers) {
    let [a, b] = numbers.steps;
    match numbers.first_loss {
        Some((step, a, b)) => line(
            text,
            "losses",
            &format!("differ from step {step} on: {a} in a, {b} in b"),
        ),
        None if a.min(b) > 0 => {
            line(text, "losses", &format!("equal in {} steps", a.min(b)));
        }
        None => {}
    }
    if a != b && a.min(b) > 0 {
        text.push_str(&format!("  a has {a} steps, b {b}\n"));
    }
    if let Some((step, paths)) = &numbers.first_parameters {
        let more = match paths.len() {
            0 | 1 => String::new(),
            num => format!(" and {} more", num - 1),
        };
        let first = paths.first().map_or("", String::as_str);
        line(
            text,
            "parameters",
            &format!("differ after step {step}: {first}{more}"),
        );
    }
    let [a, b] = numbers.epochs;
    match &numbers.first_epoch {
        Some((epoch, names)) => line(
            text,
            "metrics",
            &format!("differ from epoch {epoch} on: {}", names.join(", ")),
        ),
        None if a.min(b) > 0 => {
            line(text, "metrics", &format!("equal in {} epochs", a.min(b)));
        }
        None => line(text, "metrics", "no common epoch"),
    }
    if a != b {
        text.push_str(&format!("  a has {a} epochs, b {b}\n"));
    }
    if numbers.is_equal() {
        return;
    }
    let value = |value: Option<f64>| value.map_or("-".into(), short_number);
    let rows = numbers.metrics.iter().map(|metric| {
        vec![
            metric.name.clone(),
            value(metric.last[0]),
            value(metric.last[1]),
            value(metric.difference),
            metric
                .largest
                .map_or("-".into(), |(epoch, size)| match size {
                    0.0 => "0".into(),
                    size => format!("{} in epoch {epoch}", short_number(size)),
                }),
        ]
    });
    let head = ["last value", "a", "b", "b - a", "largest difference"];
    table(text, width, &head, rows.collect());
}

fn table(text: &mut String, width: Option<u16>, head: &[&str], mut rows: Vec<Vec<String>>) {
    if rows.is_empty() {
        return;
    }
    let left_out = rows.len().saturating_sub(MAX_ROWS);
    rows.truncate(MAX_ROWS);
    let head = head.iter().map(|name| (*name).to_owned()).collect();
    text.push_str(&fit(Columns { head, rows }, width, &[]).text);
    text.push('\n');
    if left_out > 0 {
        text.push_str(&format!("  and {left_out} more; `--json` lists all\n"));
    }
}
