//! The profile of data that is loaded: its columns, its splits and a few items.

use super::{ColumnProfile, Profile, Role, SplitProfile};
use std::collections::BTreeSet;

use crate::data::encode::{InputEncoder, TargetEncoder};
use crate::data::picture::Picture;
use crate::data::read::text;
use crate::data::records::ColumnKind;
use crate::data::serve::{Moment, Split, Values};
use crate::data::{DataPlan, Dataset, Loaded, Pictures, TargetValues};
use crate::diagnostic::counted;
use crate::spec::data::{ColumnType, DataKind};
use crate::spec::document::Value;
use crate::spec::section::Choice;

/// Items that are shown as text.
const SHOWN: u32 = 3;
/// Values of an item, or characters of its text, that are shown.
const SHOWN_VALUES: usize = 12;
const SHOWN_CHARS: usize = 60;

impl Profile {
    /// Measures loaded data.
    pub fn of(plan: &DataPlan, loaded: &Loaded) -> Self {
        let set = loaded.train.set();
        let records = &set.records;
        let features = set.encoder.input.columns();
        let as_input = |at: usize| {
            if features.contains(&at) {
                Role::Feature
            } else {
                Role::Unused
            }
        };
        let mut columns = ColumnProfile::all(records);
        for (at, profile) in columns.iter_mut().enumerate() {
            let named = |name: &Option<String>| name.as_ref() == Some(&profile.column.name);
            profile.role = Some(if plan.weight() == Some(&profile.column.name) {
                Role::Weight
            } else if named(&plan.split.order_by) {
                Role::OrderBy
            } else if named(&plan.split.group_by) {
                Role::GroupBy
            } else if set.encoder.target.columns().contains(&at) {
                Role::Target
            } else if set.pairs.is_none() {
                as_input(at)
            } else {
                Role::Unused
            });
        }
        if set.pairs.is_some() {
            // The columns of nodes follow those of edges.
            let of_nodes = ColumnProfile::all(set.inputs()).into_iter().enumerate();
            columns.extend(of_nodes.map(|(at, profile)| ColumnProfile {
                role: Some(as_input(at)),
                ..profile
            }));
        }
        let splits = [
            ("train", Some(&loaded.train)),
            ("valid", Some(&loaded.valid)),
            ("test", loaded.test.as_ref()),
        ];
        let splits = splits.into_iter().filter_map(|(name, split)| {
            let split = split?;
            Some(SplitProfile {
                name: name.to_owned(),
                num_items: split.num_items(),
                classes: classes(split),
                digest: loaded.digests.get(name).cloned().unwrap_or_default(),
            })
        });
        let num = SHOWN.min(loaded.train.num_items() as u32);
        Self {
            source: source(plan, loaded),
            columns,
            splits: splits.collect(),
            skipped: records.header.skipped.clone(),
            items: (0..num).map(|at| item(&loaded.train, at)).collect(),
        }
    }
}

/// The description of the data, one line each.
fn source(plan: &DataPlan, loaded: &Loaded) -> Vec<String> {
    let records = &loaded.train.set().records;
    let set = loaded.train.set();
    // The records of running text are its files.
    let what = match set.encoder.input {
        InputEncoder::Stream { .. } => {
            if set.records.columns()[0].name == text::COLUMN {
                "file"
            } else {
                "text"
            }
        }
        _ => "item",
    };
    let split = match set.encoder.input {
        InputEncoder::Stream { .. } => "split in order".to_owned(),
        _ => plan.split.show(),
    };
    let mut lines = vec![format!(
        "`{}`: {}, {split}",
        plan.dataset.name(),
        match set.graph.as_ref().and_then(|graph| graph.plan().num_graphs) {
            None if set.pairs.is_some() => plan.input.show_shape(),
            None => counted(records.len(), what),
            Some(num) => {
                let nodes = counted(records.len(), "node");
                format!("{} of {nodes}", counted(num, "graph"))
            }
        }
    )];
    if loaded.num_dropped > 0 {
        lines.push(format!(
            "  {} dropped because a value is missing",
            match loaded.num_dropped {
                1 => "1 item is".to_owned(),
                num => format!("{num} items are"),
            }
        ));
    }
    if let Dataset::Files { files, .. } = &plan.dataset {
        let all = [&files.path, &files.valid_path, &files.test_path];
        lines.extend(all.into_iter().flatten().map(|path| format!("  {path}")));
        lines.push(format!(
            "  content {}",
            &plan.digest[..16.min(plan.digest.len())]
        ));
    }
    lines.push(format!(
        "items of {}, with {}",
        plan.input.show(),
        plan.target.show()
    ));
    lines.extend(taken_as(plan, loaded));
    lines
}

/// How the integers of a target were interpreted, if that is ambiguous, and how to change it.
fn taken_as(plan: &DataPlan, loaded: &Loaded) -> Option<String> {
    const FEW: usize = 20;
    let Dataset::Files { files, .. } = &plan.dataset else {
        return None;
    };
    let set = loaded.train.set();
    let (column, is_class) = match &set.encoder.target {
        TargetEncoder::Class { column, .. } => (*column, true),
        TargetEncoder::Values { columns, .. } => match columns[..] {
            [(column, _)] => (column, false),
            _ => return None,
        },
        _ => return None,
    };
    let of = &set.records.columns()[column];
    let is_said = files
        .roles
        .of(&of.name)
        .is_some_and(|said| said.kind.is_some());
    if of.len() != 1 || is_said {
        return None;
    }
    let number = |row| match &of.kind {
        ColumnKind::Categories { names } => {
            let code = set.records.category(row, column)?;
            names[code].parse::<f64>().ok()
        }
        _ => Some(set.records.number(row, column, 0)).filter(|number| !number.is_nan()),
    };
    let mut seen = BTreeSet::new();
    for row in 0..set.records.len() {
        if set.records.lacks(row, column) {
            continue;
        }
        let number = number(row).filter(|number| number.fract() == 0.0)?;
        seen.insert(number as i64);
        if seen.len() > FEW {
            return None;
        }
    }
    let (are, other, kind) = if is_class {
        ("classes", "for the number itself", ColumnType::Number)
    } else {
        ("amounts", "for classes", ColumnType::Category)
    };
    let how = match (files.kind(), is_class) {
        (DataKind::Csv | DataKind::JsonLines | DataKind::Parquet, _) => format!(
            "add `[[data.columns]]` with `name = {}` and `type = \"{}\"`",
            Value::Str(of.name.clone()).to_toml(),
            kind.name()
        ),
        (_, true) => "save them as floats, for example with `y.astype(np.float32)`".to_owned(),
        (_, false) => "number them from 0 and save them as integers".to_owned(),
    };
    Some(format!(
        "the {} integers of the target `{}` are read as {are}; {other} {how}",
        seen.len(),
        of.name
    ))
}

/// How many items of each class a split has.
fn classes(split: &Split) -> Vec<(String, usize)> {
    let set = split.set();
    let TargetEncoder::Class {
        column,
        num_classes,
    } = set.encoder.target
    else {
        return Vec::new();
    };
    let mut counts = vec![0; num_classes];
    for start in (0..split.num_items() as u32).step_by(1024) {
        let places: Vec<u32> = (start..(start + 1024).min(split.num_items() as u32)).collect();
        for class in split.classes(&places) {
            if let Some(count) = counts.get_mut(class as usize) {
                *count += 1;
            }
        }
    }
    let named = counts.into_iter().enumerate();
    named
        .map(|(class, count)| (set.records.columns()[column].class_name(class), count))
        .collect()
}

/// One item as text: input and target.
fn item(split: &Split, at: u32) -> String {
    let set = split.set();
    let served = split.serve(&[at], None);
    let given = match (&served.values, &set.encoder.input) {
        (Values::Floats(values), InputEncoder::Inputs { inputs }) => {
            let mut rest = values.as_slice();
            let each = inputs.iter().map(|input| {
                let (own, after) = rest.split_at(input.part().size());
                rest = after;
                let shown = if input.encoder.is_tokens() {
                    let tokens: Vec<i32> = own.iter().map(|token| *token as i32).collect();
                    shown_tokens(&tokens, &input.encoder)
                } else {
                    listed(own.iter().map(|value| short(*value)))
                };
                format!("{} {shown}", input.name)
            });
            each.collect::<Vec<_>>().join(", ")
        }
        (Values::Tokens(tokens), encoder) => shown_tokens(tokens, encoder),
        (Values::Floats(values), _) => listed(values.iter().map(|value| short(*value))),
        (Values::Doubles(values), _) => listed(values.iter().map(|value| short(*value as f32))),
        (Values::Graphs { graph, .. }, _) => {
            let plan = graph.plan();
            let nodes = counted(plan.num_nodes, "node");
            format!("{nodes} with {}", counted(plan.num_edges, "edge"))
        }
        (Values::Pairs { graph, part }, _) => {
            let [from, to] = [0, 1].map(|end| {
                let row = part.ends[end][0] as usize;
                let values = &graph.features[row * graph.width..(row + 1) * graph.width];
                listed(values.iter().map(|value| short(*value as f32)))
            });
            format!("nodes {from} and {to}")
        }
        (Values::Nodes { graph, rows }, _) => {
            let row = rows[0] as usize;
            let values = &graph.features[row * graph.width..(row + 1) * graph.width];
            format!(
                "node {row} {}",
                listed(values.iter().map(|value| short(*value as f32)))
            )
        }
    };
    let asked = match (&served.targets, &set.encoder.target) {
        (_, TargetEncoder::None) => return given,
        (_, TargetEncoder::NextTokens) => "the next tokens".to_owned(),
        (TargetValues::Classes(classes), TargetEncoder::HiddenTokens { .. }) => {
            let hidden = classes.iter().filter(|token| **token >= 0);
            let hidden: Vec<i32> = hidden.copied().collect();
            format!(
                "the hidden tokens {}",
                shown_tokens(&hidden, &set.encoder.input)
            )
        }
        (TargetValues::Classes(classes), TargetEncoder::Class { column, .. }) => {
            set.records.columns()[*column].class_name(classes[0] as usize)
        }
        (TargetValues::Classes(classes), _) => listed(classes.iter().map(ToString::to_string)),
        (targets, _) => {
            let values = targets.singles().unwrap_or_default();
            listed(values.iter().map(|value| short(*value)))
        }
    };
    format!("{given} -> {asked}")
}

/// Tokens of a text as the text, and others as numbers.
fn shown_tokens(tokens: &[i32], encoder: &InputEncoder) -> String {
    let Some(tokenizer) = encoder.tokenizer() else {
        return listed(tokens.iter().map(ToString::to_string));
    };
    let text = tokenizer.decode(tokens);
    let shown: String = text.chars().take(SHOWN_CHARS).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    format!("{}{more}", Value::Str(shown).to_toml())
}

fn short(value: f32) -> String {
    let text = format!("{value:.4}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

fn listed(values: impl ExactSizeIterator<Item = String>) -> String {
    let num = values.len();
    let mut shown: Vec<String> = values.take(SHOWN_VALUES).collect();
    if num > SHOWN_VALUES {
        shown.push(format!("… {num} in total"));
    }
    match num {
        1 => shown.concat(),
        _ => format!("[{}]", shown.join(", ")),
    }
}

/// Images of a split for a sheet, spread evenly over it, as the network receives them at a moment except for the
/// scaling; none if items are not images.
pub fn pictures(split: &Split, num: usize, moment: Moment) -> Vec<Picture> {
    let set = split.set();
    let (Some(scaling), Some(pictures)) = (set.encoder.input.array_scaling(), Pictures::of(set))
    else {
        return Vec::new();
    };
    let [_, height, width] = pictures.shape;
    let picture = |place: usize| {
        let served = split.serve(&[place as u32], Some(moment));
        let Values::Floats(values) = served.values else {
            return None;
        };
        let pixel =
            |(at, value): (usize, f32)| pictures.shade(scaling.at(at).undo(f64::from(value)));
        let (caption, mask) = match (&set.encoder.target, served.targets) {
            (TargetEncoder::Class { column, .. }, TargetValues::Classes(classes)) => {
                let class = set.records.columns()[*column].class_name(classes[0] as usize);
                (class, None)
            }
            (TargetEncoder::Classes { shape, .. }, TargetValues::Classes(classes))
                if shape[..] == [height, width] =>
            {
                (format!("item {place}"), Some(classes))
            }
            _ => (format!("item {place}"), None),
        };
        Some(Picture {
            caption,
            shape: pictures.shape,
            pixels: values.into_iter().enumerate().map(pixel).collect(),
            mask,
        })
    };
    let num_items = split.num_items();
    let num = num.min(num_items);
    (0..num)
        .filter_map(|at| picture(at * num_items / num))
        .collect()
}
