//! From read records to the items of a piece.

use std::sync::Arc;

use super::graphs::Known;
use super::windows::Windows;
use super::{Incoming, Piece, Raw};
use crate::data::DataError;
use crate::data::encode::tokenizer::chat::{Conversation, Renderer};
use crate::data::encode::{Encoder, InputEncoder, TargetEncoder};
use crate::data::records::{Records, Skipped};
use crate::data::serve::{Set, Split};
use crate::spec::data::Missing;

/// From read records to items.
pub(super) struct Pieces<'a> {
    pub(super) incoming: &'a Incoming<'a>,
    pub(super) encoder: Arc<Encoder>,
    /// Columns that must have a value in an item.
    needed: Vec<usize>,
    windows: Option<Windows>,
    /// The nodes of the run, if items are pairs of them.
    known: Option<Arc<Known>>,
    /// The column of conversations with the template that writes them, if items are such.
    chats: Option<(usize, Renderer)>,
    /// Whether the items are rows of a program instead of a file, so that no flag can skip them.
    pub(super) are_objects: bool,
    num_skipped: usize,
    first_skipped: Option<Skipped>,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(incoming: &'a Incoming<'a>) -> Result<Self, DataError> {
        let transforms = incoming.transforms;
        let roles = incoming.trained_on().map(|files| &files.roles);
        let is_needed = |at: &usize| {
            let name = &transforms.columns[*at].name;
            let policy = roles.map_or(Missing::Refuse, |roles| roles.missing_of(name));
            !policy.is_filled()
        };
        let used = incoming.used().into_iter();
        let targets = transforms.targets();
        let is_needed = |at: &usize| targets.contains(at) || is_needed(at);
        let needed: Vec<usize> = used.filter(is_needed).collect();
        let window = match &transforms.input {
            InputEncoder::Features { window, .. } => window.clone(),
            _ => None,
        };
        Ok(Self {
            encoder: Arc::new(transforms.encoder(incoming.has_targets)),
            windows: window.map(|window| Windows::new(window, incoming.has_targets)),
            needed,
            known: Known::of(incoming)?,
            chats: incoming.chats(),
            incoming,
            are_objects: false,
            num_skipped: 0,
            first_skipped: None,
        })
    }

    /// The items of some records.
    pub(super) fn piece(&mut self, raw: Raw) -> Result<Piece, DataError> {
        let Raw {
            records,
            origins,
            bad,
            left_out: mut skipped,
            place,
        } = raw;
        let shown = self.incoming.name();
        let mut breaks: Vec<usize> = bad.iter().map(|(before, _)| *before).collect();
        let mut bad = bad.into_iter().peekable();
        let mut rows = Vec::with_capacity(records.len());
        let mut pairs = Vec::new();
        for (row, origin) in origins.iter().enumerate() {
            while let Some((_, wrong)) = bad.next_if(|(before, _)| *before <= row) {
                self.refuse_or_skip(wrong, &mut skipped)?;
            }
            let ends = self.known.as_ref().map(|known| known.ends(origin));
            let unknown = ends.clone().and_then(Result::err);
            pairs.extend(ends.map(Result::unwrap_or_default));
            match self.wrong(&records, row).or(unknown) {
                None => rows.push(row as u32),
                Some(reason) => {
                    breaks.extend([row, row + 1]);
                    let place = place(&shown, origin);
                    self.refuse_or_skip(Skipped { place, reason }, &mut skipped)?;
                }
            }
        }
        for (_, wrong) in bad {
            self.refuse_or_skip(wrong, &mut skipped)?;
        }
        let encoder = self.encoder.clone();
        if let Some(windows) = &mut self.windows {
            let (split, ids, kept) = windows.items(records, origins, &rows, &breaks, encoder);
            return Ok(Piece {
                split,
                ids,
                kept,
                skipped,
            });
        }
        let known = self.known.as_ref();
        let (graph, pairs) = known.map(|known| known.pairs(&records, pairs)).unzip();
        let set = Arc::new(Set {
            records,
            encoder,
            graph,
            pairs,
        });
        let mut ids = Vec::with_capacity(rows.len());
        let mut kept = Vec::with_capacity(rows.len());
        let mut good = rows.iter().peekable();
        for (row, origin) in origins.into_iter().enumerate() {
            if good.next_if(|at| **at as usize == row).is_some() {
                ids.push(origin.id.show());
                kept.push(origin.kept);
            }
        }
        Ok(Piece {
            split: Split::of_rows(set, rows),
            ids,
            kept,
            skipped,
        })
    }

    fn refuse_or_skip(
        &mut self,
        wrong: Skipped,
        skipped: &mut Vec<Skipped>,
    ) -> Result<(), DataError> {
        if !self.incoming.skips_bad {
            let error = DataError::new(wrong.show());
            return Err(if self.are_objects {
                error
            } else {
                error.help("correct it, or pass `--on-bad-item skip` to skip such items")
            });
        }
        self.num_skipped += 1;
        if self.first_skipped.is_none() {
            self.first_skipped = Some(wrong.clone());
        }
        skipped.push(wrong);
        Ok(())
    }

    /// Why a record cannot be used, if so.
    pub(super) fn wrong(&self, records: &Records, row: usize) -> Option<String> {
        for at in &self.needed {
            if records.lacks(row, *at) {
                let column = &records.columns()[*at];
                return Some(if column.shape.is_empty() {
                    format!("column `{}` has no value", column.name)
                } else {
                    // Targets may be in a file of their own.
                    let is_target = self.incoming.transforms.targets().contains(at);
                    let file = self.incoming.targets.filter(|_| is_target);
                    let file =
                        file.map_or(String::new(), |path| format!(" in `{}`", path.display()));
                    let name = &column.name;
                    format!("`{name}`{file} contains a number that is missing or NaN")
                });
            }
        }
        if let (Some(reason), None) = (self.encoder.input.unknown(records, row), &self.known) {
            return Some(reason);
        }
        if let Some((column, renderer)) = &self.chats {
            let text = records.text(row, *column).unwrap_or_default();
            // Anything else is a text that is continued.
            let written = Conversation::parse(text).map(|chat| renderer.render(&chat, true));
            if let Ok(Err(reason)) = written {
                return Some(format!("the chat template {reason}"));
            }
        }
        if let (TargetEncoder::HiddenTokens { .. }, false) =
            (&self.incoming.transforms.target, self.incoming.has_targets)
        {
            return self.encoder.input.without_mask(records, row);
        }
        let targets = [&self.encoder.target].into_iter();
        let mut targets = targets.chain(&self.encoder.more_targets);
        let reason = targets.find_map(|target| {
            unknown_class(target, records, row).or_else(|| {
                let (column, value, nonlinear) = target.refused(records, row)?;
                let name = &records.columns()[column].name;
                let reason = nonlinear.refusal(value)?;
                Some(format!("the target `{name}` is {value}, which {reason}"))
            })
        })?;
        Some(match self.incoming.targets {
            Some(path) => format!("{reason} (in `{}`)", path.display()),
            None => reason,
        })
    }

    /// No usable items.
    pub(super) fn nothing_left(&self) -> DataError {
        let name = self.incoming.name();
        match (&self.first_skipped, &self.windows) {
            (Some(first), _) => DataError::new(match self.num_skipped {
                1 => format!("the only item of {name} cannot be used"),
                num => format!("none of the {num} items of {name} can be used"),
            })
            .note(first.show())
            .help("correct the file, or use another one"),
            (None, Some(windows)) => DataError::new(format!(
                "{name} has too few rows: an item is a window of {} consecutive rows",
                windows.num_rows()
            ))
            .help("use a file with more rows"),
            (None, None) => DataError::new(format!("{name} has no items"))
                .help("use a file with one row per item"),
        }
    }
}

/// Why a row has a class that the run was not trained on.
fn unknown_class(target: &TargetEncoder, records: &Records, row: usize) -> Option<String> {
    // Positions may have no class, items may not.
    let (column, num_classes, least) = match target {
        TargetEncoder::Class {
            column,
            num_classes,
        } => (*column, *num_classes, 0.0),
        TargetEncoder::Classes {
            column,
            num_classes,
            ..
        } => (*column, *num_classes, -1.0),
        _ => return None,
    };
    let mut wrong = None;
    records.numbers(row, column, |class| {
        if class.is_nan() || class < least || class >= num_classes as f64 {
            wrong = wrong.or(Some(class));
        }
    });
    wrong.map(|class| {
        let last = num_classes - 1;
        format!("the class {class} is unknown: the run was trained on classes 0 to {last}")
    })
}
