//! Matches the tensors of a file with those of a network.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use runner_core::check::network::Network;
use runner_core::data::DataError;
use runner_core::plan::init::{InitFate, InitRefusal, InitReport, InitRow, Taken};
use runner_core::spec::hub::HubNames;
use runner_core::spec::init::{InitLayout, InitSpec};

use super::{Opened, words};
use crate::read::Entry;
use crate::slots::{self, Slot};

/// Tensors that follow from the settings of layers, or the batch counters of PyTorch's batch norms: no network here
/// needs them.
const DERIVED: &[&str] = &["num_batches_tracked", "sinusoids", "rotations"];

/// Whether a tensor of a file follows from the settings of a network, or from how often it was trained.
pub fn is_derived(name: &str) -> bool {
    DERIVED.iter().any(|derived| name.ends_with(derived))
}

/// The tensors that a network takes from a file.
pub struct Matched {
    /// The tensors that are loaded.
    pub taken: Vec<Taken>,
    /// The fate of all tensors.
    pub report: InitReport,
}

/// Matches the tensors of a file with those of a network by name. The error explains why they do not match.
pub fn matched(
    spec: &InitSpec,
    network: &Network,
    layout: InitLayout,
    opened: &Opened,
) -> Result<Matched, InitRefusal> {
    let slots = slots::slots(network, layout);
    let entries = opened.weights.entries();
    // A run, and a file in Burn's layout, have the names of the network.
    let hub = spec.hub.as_ref().filter(|_| layout != InitLayout::Burn);
    if let Some(hub) = hub
        && let Some(table) = slots.iter().find(|slot| slot.name == hub.family.table)
        && table.shape[0] != hub.vocabulary
        && !spec.skip_mismatched
    {
        return Err(words::other_tokens(table.shape[0], hub.vocabulary));
    }
    let names = new_names(spec, hub, entries)?;
    let only = regexes(&spec.only);
    let exclude = regexes(&spec.exclude);
    let transpose = regexes(&spec.transpose);
    let is_in = |name: &str| {
        (only.is_empty() || only.iter().any(|regex| regex.is_match(name)))
            && !exclude.iter().any(|regex| regex.is_match(name))
    };
    let by_name: BTreeMap<&str, &Entry> = names.iter().map(String::as_str).zip(entries).collect();
    let (mut taken, mut rows, mut used) = (Vec::new(), Vec::new(), BTreeSet::new());
    for (at, slot) in slots.iter().enumerate() {
        let called = called(slot, &by_name);
        let entry = by_name.get(called.as_str()).copied();
        let is_transposed = entry.is_some_and(|entry| entry.shape.len() == 2)
            && (transpose.iter().any(|regex| regex.is_match(&called))
                || hub.is_some_and(|hub| hub.family.is_transposed(&called)));
        used.insert(called);
        let is_interpolated = entry.is_some_and(|entry| {
            let is = |hub: &HubNames| hub.is_interpolated(&slot.name, &entry.shape);
            hub.is_some_and(is) && entry.shape.last() == slot.shape.last()
        });
        let fits = |entry: &Entry| {
            if is_transposed {
                entry.shape.iter().rev().eq(&slot.shape)
            } else {
                entry.shape == slot.shape
                    || is_interpolated
                    || (hub.is_some() && is_one_more(&entry.shape, &slot.shape))
            }
        };
        let fate = match entry {
            _ if !is_in(&slot.name) => InitFate::Excluded,
            _ if hub.is_some_and(|hub| hub.is_new(&slot.name, entry.is_some())) => {
                InitFate::Excluded
            }
            None if slot.is_constant => InitFate::Excluded,
            None => InitFate::Missing,
            Some(entry) if slot.is_constant && !fits(entry) => InitFate::Excluded,
            Some(entry) if !fits(entry) => InitFate::Mismatched,
            Some(entry) if !entry.dtype.is_float() => return Err(words::not_floats(spec, entry)),
            Some(entry) => {
                taken.push(Taken {
                    at,
                    name: slot.name.clone(),
                    from: entry.name.clone(),
                    is_transposed,
                    is_interpolated,
                });
                InitFate::Matched
            }
        };
        rows.push(row(fate, Some(slot), entry));
    }
    for (name, entry) in names.iter().zip(entries) {
        if used.contains(name.as_str()) || is_derived(name) {
            continue;
        }
        let is_needless = hub.is_some_and(|hub| hub.is_needless(&entry.name));
        let fate = if is_in(name) && !is_needless {
            InitFate::Unused
        } else {
            InitFate::Excluded
        };
        let mut row = row(fate, None, Some(entry));
        // What `remap` made of its name, which nothing has.
        if hub.is_none() && *name != entry.name && fate == InitFate::Unused {
            row.ours = Some((name.clone(), entry.shape.clone()));
        }
        rows.push(row);
    }
    let report = InitReport { rows };
    match words::misfit(spec, &report, &slots, &names) {
        Some(refusal) => Err(refusal),
        None => Ok(Matched { taken, report }),
    }
}

/// Whether a shape is another one behind axes of size 1, as tables of positions have in files of hubs.
fn is_one_more(shape: &[usize], of: &[usize]) -> bool {
    shape
        .strip_suffix(of)
        .is_some_and(|first| first.iter().all(|size| *size == 1))
}

/// The name of a slot in a file: unchanged, as a Python name as in exports, or without dots as in flat JSON.
fn called(slot: &Slot, by_name: &BTreeMap<&str, &Entry>) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
    let plain: String = slot
        .name
        .chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect();
    let flat = plain.replace('.', "_");
    let flat_export = slot.exported.replace('.', "_");
    let mut names = [&slot.exported, &flat_export, &plain, &flat].into_iter();
    let found = names.find(|name| by_name.contains_key(name.as_str()));
    match found {
        Some(other) if !by_name.contains_key(slot.name.as_str()) => other.clone(),
        _ => slot.name.clone(),
    }
}

fn row(fate: InitFate, slot: Option<&Slot>, entry: Option<&Entry>) -> InitRow {
    InitRow {
        fate,
        ours: slot.map(|slot| (slot.name.clone(), slot.shape.clone())),
        theirs: entry.map(|entry| (entry.name.clone(), entry.shape.clone())),
    }
}

/// The names of a file after `remap`; two tensors must not get the same name.
fn new_names(
    spec: &InitSpec,
    hub: Option<&HubNames>,
    entries: &[Entry],
) -> Result<Vec<String>, InitRefusal> {
    let pairs = spec.remap.iter().filter_map(|pair| {
        let [pattern, replacement] = pair.as_slice() else {
            return None;
        };
        Some((Regex::new(pattern).ok()?, groups(replacement)))
    });
    let pairs: Vec<_> = pairs.collect();
    let renamed = entries.iter().map(|entry| {
        let name = pairs
            .iter()
            .fold(entry.name.clone(), |name, (regex, replacement)| {
                regex.replace_all(&name, replacement.as_str()).into_owned()
            });
        match hub.and_then(|hub| hub.ours(&name)) {
            Some(ours) => ours.to_owned(),
            None => name,
        }
    });
    let names: Vec<String> = renamed.collect();
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, entry) in names.iter().zip(entries) {
        if let Some(other) = seen.insert(name, &entry.name) {
            if spec.remap.is_empty() {
                let message = format!(
                    "`{}` has the tensor `{name}` twice, as `{other}` and `{}`",
                    spec.from, entry.name
                );
                let error = DataError::new(message).help("use the file of one model");
                return Err(words::refusal("init.from", &error));
            }
            let message = format!(
                "`remap` makes `{other}` and `{}` the same name, `{name}`",
                entry.name
            );
            let error = DataError::new(message)
                .help("make the patterns more specific: `^` and `$` match the start and the end of a name");
            return Err(words::refusal("init.remap", &error));
        }
    }
    Ok(names)
}

/// A replacement in which `$1x` and `\1x` are the first group before an `x`, as in Python and sed.
fn groups(replacement: &str) -> String {
    let mut text = String::new();
    let mut rest = replacement.chars().peekable();
    while let Some(c) = rest.next() {
        let is_group = matches!(c, '$' | '\\') && rest.peek().is_some_and(char::is_ascii_digit);
        if !is_group {
            text.push(c);
            continue;
        }
        text.push_str("${");
        while let Some(digit) = rest.next_if(char::is_ascii_digit) {
            text.push(digit);
        }
        text.push('}');
    }
    text
}

fn regexes(patterns: &[String]) -> Vec<Regex> {
    // They were checked when they were written.
    patterns
        .iter()
        .filter_map(|pattern| Regex::new(pattern).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_end_with_their_digits() {
        let cases = [
            ("$1", "${1}"),
            (r"\1_x", "${1}_x"),
            ("a$1b$22c", "a${1}b${22}c"),
            ("$name $", "$name $"),
            ("", ""),
        ];
        for (written, expected) in cases {
            assert_eq!(groups(written), expected, "{written}");
        }
    }
}
