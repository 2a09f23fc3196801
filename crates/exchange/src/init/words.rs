//! Messages about weights that do not match a network.

use runner_core::data::DataError;
use runner_core::diagnostic::{Diagnostic, counted};
use runner_core::plan::init::{InitFate, InitRefusal, InitReport, InitRow};
use runner_core::spec::hub::HubNames;
use runner_core::spec::init::InitSpec;

use super::order::Order;
use crate::read::Entry;
use crate::slots::Slot;

/// Rows of each fate that a message shows.
const SHOWN: usize = 6;

/// A refusal at a key, or at the key that the error itself names.
pub fn refusal(key: &'static str, error: &DataError) -> InitRefusal {
    let key = match error.key.as_str() {
        "init.top_level_key" => "init.top_level_key",
        _ => key,
    };
    InitRefusal {
        key,
        diagnostic: Box::new(Diagnostic {
            notes: error.notes.clone(),
            helps: error.helps.clone(),
            ..Diagnostic::error("weights", error.message.clone())
        }),
    }
}

/// A tensor of integers where weights are expected.
pub fn not_floats(spec: &InitSpec, entry: &Entry) -> InitRefusal {
    let message = format!(
        "`{}` of `{}` is of type {}, but weights must be floats",
        entry.name, spec.from, entry.dtype
    );
    let error =
        DataError::new(message).help("save the weights as f32; dequantize quantized weights first");
    refusal("init.from", &error)
}

/// Why the tensors of a file do not match those of the network; none if they do, or if the settings allow it.
pub fn misfit(
    spec: &InitSpec,
    report: &InitReport,
    slots: &[Slot],
    names: &[String],
) -> Option<InitRefusal> {
    let is_refused = |fate: InitFate| match fate {
        InitFate::Matched | InitFate::Excluded => false,
        InitFate::Missing | InitFate::Unused => !spec.partial,
        InitFate::Mismatched => !spec.skip_mismatched,
    };
    let num_matched = report.num(InitFate::Matched);
    let is_wrong = report.rows.iter().any(|row| is_refused(row.fate));
    if num_matched > 0 && !is_wrong {
        return None;
    }
    let message = if num_matched == 0 {
        format!(
            "no tensor of `{}` is loaded into the network: {}",
            spec.from,
            report.counts()
        )
    } else {
        format!(
            "`{}` does not fit the network: {}",
            spec.from,
            report.counts()
        )
    };
    let mut diagnostic = Diagnostic::error("weights", message);
    for fate in [
        InitFate::Mismatched,
        InitFate::Missing,
        InitFate::Unused,
        InitFate::Excluded,
    ] {
        // Excluded tensors are only mentioned if nothing is loaded.
        if is_refused(fate) || num_matched == 0 {
            diagnostic = with_rows(diagnostic, report, fate);
        }
    }
    diagnostic = match spec.hub.as_ref() {
        Some(hub) => of_hub(diagnostic, hub, spec, report, &is_refused),
        None => of_file(diagnostic, spec, report, (slots, names), &is_refused),
    };
    Some(InitRefusal {
        key: "init.from",
        diagnostic: Box::new(diagnostic),
    })
}

/// What to do about a file whose names could be any.
fn of_file(
    diagnostic: Diagnostic,
    spec: &InitSpec,
    report: &InitReport,
    (slots, names): (&[Slot], &[String]),
    is_refused: &dyn Fn(InitFate) -> bool,
) -> Diagnostic {
    match prefix(slots, names) {
        Some(pair) => diagnostic.help(format!(
            "set `remap = [{pair}]`, which changes the names to those of the network"
        )),
        None => {
            let by_order = Order::of(report).filter(|_| {
                spec.remap.is_empty()
                    && [InitFate::Missing, InitFate::Unused]
                        .iter()
                        .all(|fate| is_refused(*fate))
            });
            if let Some(order) = by_order {
                return with_order(diagnostic, &order);
            }
            let num_matched = report.num(InitFate::Matched);
            with_helps(diagnostic, spec, report, num_matched, is_refused)
        }
    }
}

/// The layers that the modules of a file are by their order.
fn with_order(diagnostic: Diagnostic, order: &Order<'_>) -> Diagnostic {
    let rows = order.modules.iter().chain(&order.tensors);
    let rows = rows.map(|(from, to)| {
        let is_transposed = order.transposed.contains(to);
        let turned = if is_transposed { " (transposed)" } else { "" };
        format!("`{from}` -> `{to}`{turned}")
    });
    let rows: Vec<String> = rows.collect();
    let note = format!(
        "in order, the tensors of the file have the shapes of the layers: {}",
        rows.join(", ")
    );
    let transpose = order.transpose();
    let transpose = transpose.map(|list| format!(" and `transpose = {list}`"));
    diagnostic.note(note).help(format!(
        "if these are the same layers, set `remap = {}`{}",
        order.remap(),
        transpose.unwrap_or_default()
    ))
}

/// Data whose tokens are not those of the network of a hub.
pub fn other_tokens(ours: usize, theirs: usize) -> InitRefusal {
    let message = format!("the data has {ours} tokens, and the network of the folder {theirs}");
    let error = DataError::new(message);
    let error = if ours > theirs {
        error.help("use the `tokenizer.json` and the `config.json` of the same model")
    } else {
        error.help(
            "use texts, and the tokenizer of the model: numbers of tokens in arrays are not padded to those of a network",
        )
    };
    refusal("init.from", &error)
}

/// What to do about the weights in a folder of a hub.
fn of_hub(
    diagnostic: Diagnostic,
    hub: &HubNames,
    spec: &InitSpec,
    report: &InitReport,
    is_refused: &dyn Fn(InitFate) -> bool,
) -> Diagnostic {
    let rows = || report.rows.iter().filter(|row| is_refused(row.fate));
    let ours = || rows().filter_map(|row| row.ours.as_ref());
    let is_of_head = ours().next().is_some() && ours().all(|(name, _)| hub.is_of_head(name));
    if is_of_head {
        return diagnostic.help(
            "set `head = \"new\"` in `[model]` to begin with random values in the last layers",
        );
    }
    if spec.exclude.is_empty() && spec.only.is_empty() {
        return diagnostic.help("use the `config.json` and the weights of one model");
    }
    diagnostic.help("change `only` and `exclude` in `[init]`, or remove them")
}

fn with_rows(diagnostic: Diagnostic, report: &InitReport, fate: InitFate) -> Diagnostic {
    let rows: Vec<_> = report.rows.iter().filter(|row| row.fate == fate).collect();
    let shown = rows.iter().take(SHOWN).map(|row| shown(row));
    let more = match rows.len().saturating_sub(SHOWN) {
        0 => String::new(),
        num => format!(" and {}", counted(num, "other")),
    };
    match rows.len() {
        0 => diagnostic,
        _ => diagnostic.note(format!(
            "{}: {}{more}",
            fate.name(),
            shown.collect::<Vec<_>>().join(", ")
        )),
    }
}

/// A row as text.
fn shown(row: &InitRow) -> String {
    match (&row.ours, &row.theirs) {
        (Some((name, shape)), Some((_, other))) if row.fate == InitFate::Mismatched => {
            let how = if shape == other {
                ", but transposed"
            } else {
                ""
            };
            format!("`{name}` is {shape:?}, in the file {other:?}{how}")
        }
        (Some((new, _)), Some((name, shape))) if row.fate == InitFate::Unused => {
            format!("`{name}` {shape:?} (`{new}` by `remap`)")
        }
        (Some((name, shape)), _) | (None, Some((name, shape))) => format!("`{name}` {shape:?}"),
        (None, None) => String::new(),
    }
}

fn with_helps(
    mut diagnostic: Diagnostic,
    spec: &InitSpec,
    report: &InitReport,
    num_matched: usize,
    is_refused: &dyn Fn(InitFate) -> bool,
) -> Diagnostic {
    if num_matched == 0 && report.num(InitFate::Unused) + report.num(InitFate::Mismatched) == 0 {
        return diagnostic.help("change `only` or `exclude` so that at least one tensor is loaded");
    }
    if report.num(InitFate::Mismatched) > 0 && is_refused(InitFate::Mismatched) {
        let rows = report
            .rows
            .iter()
            .filter(|row| row.fate == InitFate::Mismatched);
        let names = rows
            .filter_map(|row| row.ours.as_ref())
            .map(|(name, _)| name.as_str());
        let help = match one_layer(names) {
            Some(layer) => format!(
                "for a new `{layer}`, set `exclude = '^{}\\.'`, or `skip_mismatched = true`",
                layer.replace('.', "\\.")
            ),
            None => {
                "set `skip_mismatched = true` to keep random values for these, as for a new head"
                    .into()
            }
        };
        diagnostic = diagnostic.help(help);
    }
    let (missing, unused) = (report.num(InitFate::Missing), report.num(InitFate::Unused));
    if missing > 0 && unused > 0 && is_refused(InitFate::Missing) {
        diagnostic = diagnostic.help(
            "rename the tensors in the file with `remap = [['^their_name\\.', 'our_name.']]`",
        );
    }
    if num_matched > 0 && missing + unused > 0 && !spec.partial {
        diagnostic = diagnostic.help(if missing > 0 {
            "set `partial = true` to keep random values for the missing tensors"
        } else {
            "set `partial = true` to ignore the other tensors in the file"
        });
    }
    diagnostic
}

/// The layer that all of some tensors belong to.
fn one_layer<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut layers = names.filter_map(|name| Some(name.rsplit_once('.')?.0));
    let first = layers.next()?;
    layers.all(|layer| layer == first).then_some(first)
}

/// A pair for `remap` that turns every name of a file into one of the network by changing a prefix; none if there is no
/// such pair.
fn prefix(slots: &[Slot], names: &[String]) -> Option<String> {
    let known = |name: &str| slots.iter().any(|slot| slot.name == name);
    let is_counter = |name: &&String| !name.ends_with("num_batches_tracked");
    let names: Vec<&String> = names.iter().filter(is_counter).collect();
    if names.is_empty() || names.iter().any(|name| known(name)) {
        return None;
    }
    let first = names.first()?;
    let cut = first
        .match_indices('.')
        .map(|(at, _)| &first[..=at])
        .find(|start| {
            names
                .iter()
                .all(|name| name.strip_prefix(start).is_some_and(known))
        });
    if let Some(start) = cut {
        return Some(format!("['^{}', '']", start.replace('.', "\\.")));
    }
    let inner = slots.first()?.name.as_str();
    let added = inner
        .match_indices('.')
        .map(|(at, _)| &inner[..=at])
        .find(|start| names.iter().all(|name| known(&format!("{start}{name}"))));
    added.map(|start| format!("['^', '{start}']"))
}
