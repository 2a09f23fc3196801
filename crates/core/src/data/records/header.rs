//! What is known of records besides their bytes: columns, parts, extents, and what was left out.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::data::oddity::Oddity;
use crate::data::sentinel::Ends;
use crate::spec::data::RolesSpec;

/// One named value of every item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Its name, unique in the data set.
    pub name: String,
    /// The kind of its values.
    pub kind: ColumnKind,
    /// The shape of an item's value; empty for a scalar.
    pub shape: Vec<usize>,
}

/// The kind of a column's values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnKind {
    /// Bytes, such as pixels.
    Bytes,
    /// 32-bit floats; NaN if missing.
    Numbers,
    /// 64-bit floats; NaN if missing.
    Doubles,
    /// Integers, such as classes or tokens; [`NO_NUMBER`] if missing.
    Whole,
    /// Indices into a sorted list of names; -1 if missing.
    Categories {
        /// The names.
        names: Vec<String>,
    },
    /// A text; [`NO_TEXT`] as its position if missing.
    Text,
}

/// Marks a missing integer.
pub const NO_NUMBER: i32 = i32::MIN;
/// Marks a missing text.
pub const NO_TEXT: [u8; 16] = [0xff; 16];

impl ColumnKind {
    /// Bytes of one value.
    pub fn size(&self) -> usize {
        match self {
            ColumnKind::Bytes => 1,
            ColumnKind::Numbers | ColumnKind::Whole | ColumnKind::Categories { .. } => 4,
            ColumnKind::Doubles => 8,
            ColumnKind::Text => 16,
        }
    }

    /// As text, for sentences.
    pub fn show(&self) -> &'static str {
        match self {
            ColumnKind::Bytes => "bytes",
            ColumnKind::Numbers | ColumnKind::Doubles => "numbers",
            ColumnKind::Whole => "whole numbers",
            ColumnKind::Categories { .. } => "categories",
            ColumnKind::Text => "texts",
        }
    }

    /// One of its values, named by the word that `type` takes, if any.
    pub fn word(&self) -> &'static str {
        match self {
            ColumnKind::Bytes => "byte",
            ColumnKind::Numbers | ColumnKind::Doubles => "number",
            ColumnKind::Whole => "whole number",
            ColumnKind::Categories { .. } => "category",
            ColumnKind::Text => "text",
        }
    }
}

impl Column {
    /// A column of single values.
    pub fn scalar(name: impl Into<String>, kind: ColumnKind) -> Self {
        Self {
            name: name.into(),
            kind,
            shape: Vec::new(),
        }
    }

    /// Whether shorter lists in the column are filled up with missing numbers, by the roles of a run's columns.
    pub fn is_filled_up(&self, roles: &RolesSpec) -> bool {
        let is_series = self.kind == ColumnKind::Numbers && self.shape.len() == 1;
        is_series && roles.missing_of(&self.name).is_filled()
    }

    /// Values of one item.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether an item has no values here.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The split that files were given for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Items that are split by the fractions.
    Train,
    /// Items of the valid split.
    Valid,
    /// Items of the test split.
    Test,
}

impl Part {
    /// The key of the experiment file that lists its files.
    pub fn key(self) -> &'static str {
        match self {
            Part::Train => "data.path",
            Part::Valid => "data.valid_path",
            Part::Test => "data.test_path",
        }
    }

    /// The key that lists the files of its targets.
    pub fn target_key(self) -> &'static str {
        match self {
            Part::Train => "data.target_path",
            Part::Valid => "data.valid_target_path",
            Part::Test => "data.test_target_path",
        }
    }
}

/// An item that could not be decoded and was skipped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Skipped {
    /// The file, with the line or record if there is one.
    pub place: String,
    /// What is wrong with it.
    pub reason: String,
}

impl Skipped {
    /// Place and reason as one sentence.
    pub fn show(&self) -> String {
        let Self { place, reason } = self;
        if ["is ", "has ", "takes ", "cannot "]
            .iter()
            .any(|verb| reason.starts_with(verb))
        {
            format!("{place} {reason}")
        } else {
            format!("{place}: {reason}")
        }
    }
}

/// What is known about records in addition to their bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The columns in the order of a record.
    pub columns: Vec<Column>,
    /// Records of each part, in file order: train, valid, test.
    pub parts: [usize; 3],
    /// Bytes of all texts.
    pub text_bytes: u64,
    /// Skipped items.
    pub skipped: Vec<Skipped>,
    /// The range of each column's values.
    pub extents: Vec<Extent>,
    /// The first record of each file, ascending.
    #[serde(default)]
    pub files: Vec<usize>,
    /// The first record of each uninterrupted stretch, ascending: before it, a file begins or items were skipped.
    #[serde(default)]
    pub stretches: Vec<usize>,
    /// For each skipped item that others of its file follow, the record that does, ascending. `None` in files of
    /// earlier versions.
    #[serde(default)]
    pub skips: Option<Vec<usize>>,
    /// Columns that are not numeric although most of their values are numbers.
    #[serde(default)]
    pub nearly_numbers: Vec<NearlyNumbers>,
    /// Other probable mistakes in how the files are read.
    #[serde(default)]
    pub oddities: Vec<Oddity>,
    /// The least and the largest values of each numeric column.
    #[serde(default)]
    pub ends: Vec<Ends>,
    /// The paths of the files and folders that the records were read from, in the order of the plan.
    #[serde(default)]
    pub roots: Vec<String>,
    /// The digest of the sources of the records, and of how they were read.
    #[serde(default)]
    pub content: String,
    /// What belongs to the records, as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Checksums of all values and texts.
    #[serde(default)]
    pub(super) sums: Vec<u32>,
}

/// A column of categories or texts in which most values can be parsed as numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NearlyNumbers {
    /// Its name.
    pub column: String,
    /// Numeric values.
    pub numbers: u64,
    /// Present values.
    pub present: u64,
    /// The place of the first value that is not numeric.
    pub place: String,
    /// That value, shortened.
    pub text: String,
}

impl NearlyNumbers {
    /// In words.
    pub fn show(&self) -> String {
        format!(
            "{} of {} values of `{}` are numbers, but {} contains `{}`",
            self.numbers, self.present, self.column, self.place, self.text
        )
    }
}

/// The range of a column's values, over all items.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Extent {
    /// The smallest number; `None` for texts and if there is none.
    pub min: Option<f64>,
    /// The largest number.
    pub max: Option<f64>,
    /// Items with a missing value.
    pub missing: u64,
    /// Items with an infinite number.
    pub infinite: u64,
}

impl Header {
    /// The position of each column in a record.
    pub(super) fn ranges(&self) -> Vec<Range<usize>> {
        let mut start = 0;
        let range = |column: &Column| {
            let range = start..start + column.len() * column.kind.size();
            start = range.end;
            range
        };
        self.columns.iter().map(range).collect()
    }

    pub(super) fn num_items(&self) -> usize {
        self.parts.iter().sum()
    }

    /// Oddities of a column.
    pub fn oddity_of(&self, column: &str) -> Option<&Oddity> {
        let mut oddities = self.oddities.iter();
        oddities.find(|odd| odd.columns.iter().any(|name| name == column))
    }

    /// Renames places to the current location of the files: records are found by content, and may have been read
    /// elsewhere.
    pub fn move_to(&mut self, roots: &[String]) {
        let mut moves: Vec<_> = self.roots.iter().zip(roots).collect();
        // One root may be a prefix of another.
        moves.sort_by_key(|(then, _)| std::cmp::Reverse(then.len()));
        let skipped = self.skipped.iter_mut().map(|skipped| &mut skipped.place);
        let odd = self.nearly_numbers.iter_mut().map(|odd| &mut odd.place);
        let oddities = self.oddities.iter_mut().map(|odd| &mut odd.message);
        for place in skipped.chain(odd).chain(oddities) {
            let then_now = moves.iter().find(|(then, _)| place.contains(then.as_str()));
            if let Some((then, now)) = then_now {
                *place = place.replacen(then.as_str(), now, 1);
            }
        }
        self.roots = roots.to_vec();
    }
}

impl Extent {
    /// Includes the values of one item.
    pub(super) fn see(&mut self, kind: &ColumnKind, bytes: &[u8]) {
        let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
        let (mut is_missing, mut is_infinite) = (false, false);
        match kind {
            ColumnKind::Text => is_missing = bytes == NO_TEXT,
            // The same as below in vectors, which `Iterator::min` is not compiled to: images are large. Of no bytes, the
            // least is above the largest.
            ColumnKind::Bytes => {
                min = f64::from(bytes.iter().fold(u8::MAX, |min, byte| min.min(*byte)));
                max = f64::from(bytes.iter().fold(u8::MIN, |max, byte| max.max(*byte)));
            }
            _ => {
                for value in bytes.chunks_exact(kind.size()) {
                    let value = number(kind, value);
                    let is_none = matches!(kind, ColumnKind::Categories { .. }) && value < 0.0;
                    if value.is_nan() || is_none {
                        is_missing = true;
                    } else if value.is_infinite() {
                        is_infinite = true;
                    } else {
                        min = min.min(value);
                        max = max.max(value);
                    }
                }
            }
        }
        self.missing += u64::from(is_missing);
        self.infinite += u64::from(is_infinite);
        if min <= max {
            self.min = Some(self.min.map_or(min, |known| known.min(min)));
            self.max = Some(self.max.map_or(max, |known| known.max(max)));
        }
    }
}

/// The number in the bytes of one value; NaN if missing.
pub(in crate::data) fn number(kind: &ColumnKind, bytes: &[u8]) -> f64 {
    let word = || {
        let mut word = [0; 4];
        word.copy_from_slice(bytes);
        word
    };
    match kind {
        ColumnKind::Bytes => f64::from(bytes[0]),
        ColumnKind::Numbers => f64::from(f32::from_le_bytes(word())),
        ColumnKind::Doubles => {
            let mut word = [0; 8];
            word.copy_from_slice(bytes);
            f64::from_le_bytes(word)
        }
        ColumnKind::Whole | ColumnKind::Categories { .. } => match i32::from_le_bytes(word()) {
            NO_NUMBER => f64::NAN,
            whole => f64::from(whole),
        },
        ColumnKind::Text => f64::NAN,
    }
}
