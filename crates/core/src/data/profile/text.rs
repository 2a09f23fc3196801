//! A profile as text for the terminal.

use super::{ColumnProfile, Profile, Role, SplitProfile, ValueProfile};
use crate::table::{Columns, fit_sentences};

/// Categories of a column, or classes of a split, that are listed.
const NAMED: usize = 8;
/// Skipped items that are listed.
const LISTED: usize = 10;

impl Profile {
    /// The profile as text of several lines, its tables no wider than `width` if possible.
    pub fn show(&self, width: u16) -> String {
        let mut blocks = vec![self.source.join("\n")];
        if !self.columns.is_empty() {
            blocks.push(columns(&self.columns, width));
        }
        if !self.splits.is_empty() {
            blocks.push(splits(&self.splits, width));
        }
        if !self.skipped.is_empty() {
            let num = self.skipped.len();
            let shown = self.skipped.iter().take(LISTED);
            let mut lines = vec![match num {
                1 => "1 item was skipped:".to_owned(),
                _ => format!("{num} items were skipped:"),
            }];
            lines.extend(shown.map(|skipped| format!("  {}", skipped.show())));
            if num > LISTED {
                lines.push(format!("  and {} more", num - LISTED));
            }
            blocks.push(lines.join("\n"));
        }
        if !self.items.is_empty() {
            let lines = self.items.iter().map(|item| format!("\n  {item}"));
            blocks.push(format!("items:{}", lines.collect::<String>()));
        }
        blocks.retain(|block| !block.is_empty());
        blocks.join("\n\n")
    }
}

impl Role {
    /// As one word.
    pub fn show(self) -> &'static str {
        match self {
            Role::Feature => "feature",
            Role::Target => "target",
            Role::Weight => "weight",
            Role::OrderBy => "order",
            Role::GroupBy => "group",
            Role::Unused => "-",
        }
    }
}

impl ColumnProfile {
    /// Kind and shape: `number`, `byte [1, 28, 28]`.
    pub fn show_kind(&self) -> String {
        let kind = self.column.kind.word();
        if self.column.shape.is_empty() {
            kind.to_owned()
        } else {
            format!("{kind} {:?}", self.column.shape)
        }
    }
}

impl ValueProfile {
    /// As one line.
    pub fn show(&self) -> String {
        match self {
            ValueProfile::Nothing => String::new(),
            ValueProfile::Numbers(numbers) => {
                let range = if numbers.min == numbers.max {
                    short(numbers.min)
                } else {
                    format!(
                        "{} to {}, mean {}, deviation {}",
                        short(numbers.min),
                        short(numbers.max),
                        short(numbers.mean),
                        short(numbers.deviation)
                    )
                };
                match &numbers.different {
                    Some(all) if numbers.is_whole && all.len() > 1 && all.len() <= NAMED => {
                        let counts = all.iter().map(|(value, num)| (short(*value), *num));
                        format!("{range}; {}", counted(counts, all.len()))
                    }
                    _ => range,
                }
            }
            ValueProfile::Categories(counts) => {
                let all = counted(counts.iter().cloned(), counts.len());
                format!("{}: {all}", counts.len())
            }
            ValueProfile::Texts {
                num,
                shortest,
                longest,
                total,
            } => match num {
                1 => format!("{longest} characters"),
                _ => format!(
                    "{shortest} to {longest} characters, mean {}",
                    short(*total as f64 / *num as f64)
                ),
            },
        }
    }
}

/// `a 5, b 3 and 7 more`
fn counted(counts: impl Iterator<Item = (String, u64)>, num: usize) -> String {
    let named: Vec<_> = counts
        .take(NAMED)
        .map(|(name, num)| format!("{name} {num}"))
        .collect();
    if num > NAMED {
        format!("{} and {} more", named.join(", "), num - NAMED)
    } else {
        named.join(", ")
    }
}

fn columns(columns: &[ColumnProfile], width: u16) -> String {
    let has_roles = columns.iter().any(|column| column.role.is_some());
    let has_missing = columns.iter().any(|column| column.missing > 0);
    let has_notes = columns.iter().any(|column| !column.notes.is_empty());
    let mut head = vec!["column", "type"];
    head.extend(has_roles.then_some("for"));
    head.extend(has_missing.then_some("missing"));
    head.push("values");
    head.extend(has_notes.then_some("notes"));
    let mut rows = Vec::new();
    for column in columns {
        let mut row = vec![column.column.name.clone(), column.show_kind()];
        if has_roles {
            row.push(column.role.map_or("", Role::show).to_owned());
        }
        if has_missing {
            row.push(column.missing.to_string());
        }
        row.push(column.values.show());
        if has_notes {
            row.push(column.notes.join(", "));
        }
        rows.push(row);
    }
    let head = head.into_iter().map(str::to_owned).collect();
    fit_sentences(Columns { head, rows }, width, &["missing"])
}

fn splits(splits: &[SplitProfile], width: u16) -> String {
    let has_classes = splits.iter().any(|split| !split.classes.is_empty());
    let mut table = Columns::named(["split", "items", "digest"]);
    table.head.extend(has_classes.then(|| "classes".to_owned()));
    for split in splits {
        let mut row = vec![
            split.name.clone(),
            split.num_items.to_string(),
            split.digest.chars().take(12).collect(),
        ];
        if has_classes {
            let counts = split.classes.iter();
            let counts = counts.map(|(name, num)| (name.clone(), *num as u64));
            row.push(counted(counts, split.classes.len()));
        }
        table.rows.push(row);
    }
    fit_sentences(table, width, &["items"])
}

/// A number with four digits, integers as they are.
pub(crate) fn short(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return format!("{value}");
    }
    let magnitude = value.abs().log10().floor();
    if !(-4.0..15.0).contains(&magnitude) {
        return format!("{value:.3e}");
    }
    let digits = (3.0 - magnitude).clamp(0.0, 7.0) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}
