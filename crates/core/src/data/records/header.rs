//! What is known of records besides their bytes: columns, parts, extents, and what was left out.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::data::oddity::Oddity;
use crate::data::sentinel::Ends;

/// One named value of every item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Its name, unique in the data set.
    pub name: String,
    /// What its values are.
    pub kind: ColumnKind,
    /// The shape of an item's value; empty for a single one.
    pub shape: Vec<usize>,
}

/// What the values of a column are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnKind {
    /// Bytes, such as pixels.
    Bytes,
    /// Numbers of 32 bits; NaN where there is none.
    Numbers,
    /// Numbers of 64 bits; NaN where there is none.
    Doubles,
    /// Whole numbers, such as classes or tokens; [`NO_NUMBER`] where there is none.
    Whole,
    /// Places in a sorted list of names; -1 where there is none.
    Categories {
        /// The names.
        names: Vec<String>,
    },
    /// A text; where there is none, its place is [`NO_TEXT`].
    Text,
}

/// Stands for a missing whole number.
pub const NO_NUMBER: i32 = i32::MIN;
/// Stands for a missing text.
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

    /// In words, for sentences.
    pub fn show(&self) -> &'static str {
        match self {
            ColumnKind::Bytes => "bytes",
            ColumnKind::Numbers | ColumnKind::Doubles => "numbers",
            ColumnKind::Whole => "whole numbers",
            ColumnKind::Categories { .. } => "categories",
            ColumnKind::Text => "texts",
        }
    }

    /// One of its values, by the word that `type` takes where it takes one.
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

    /// Values of one item.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether an item has no values here.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Which split files were given for.
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
    /// The key of the experiment file that names its files.
    pub fn key(self) -> &'static str {
        match self {
            Part::Train => "data.path",
            Part::Valid => "data.valid_path",
            Part::Test => "data.test_path",
        }
    }

    /// The key that names the files of its targets.
    pub fn target_key(self) -> &'static str {
        match self {
            Part::Train => "data.target_path",
            Part::Valid => "data.valid_target_path",
            Part::Test => "data.test_target_path",
        }
    }
}

/// An item that could not be decoded and was left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Skipped {
    /// The file, with the line or record where there is one.
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

/// What is known of records besides their bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The columns in the order in which a record holds them.
    pub columns: Vec<Column>,
    /// Records of each part, in the order train, valid, test, which is their order in the file.
    pub parts: [usize; 3],
    /// Bytes of all texts.
    pub text_bytes: u64,
    /// Items that were left out.
    pub skipped: Vec<Skipped>,
    /// What each column's values reach from and to.
    pub extents: Vec<Extent>,
    /// The first records of files, ascending.
    #[serde(default)]
    pub files: Vec<usize>,
    /// The first records of stretches, ascending: before each a file begins, or items were left out.
    #[serde(default)]
    pub stretches: Vec<usize>,
    /// Columns that were found to be no numbers although most of their values are.
    #[serde(default)]
    pub nearly_numbers: Vec<NearlyNumbers>,
    /// What else is most likely a mistake in how the files are read.
    #[serde(default)]
    pub oddities: Vec<Oddity>,
    /// The least and the largest values of each column of numbers.
    #[serde(default)]
    pub ends: Vec<Ends>,
    /// Where the files and folders were that the records were read from, in the order of the plan.
    #[serde(default)]
    pub roots: Vec<String>,
    /// The digest of what the records were read from, and of how.
    #[serde(default)]
    pub content: String,
    /// Checksums of all values and texts.
    #[serde(default)]
    pub(super) sums: Vec<u32>,
}

/// A column of categories or texts of which most values can be read as numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NearlyNumbers {
    /// Its name.
    pub column: String,
    /// Values that are numbers.
    pub numbers: u64,
    /// Values that are there.
    pub present: u64,
    /// Where the first stands that is none.
    pub place: String,
    /// That value, shortened.
    pub text: String,
}

impl NearlyNumbers {
    /// In words.
    pub fn show(&self) -> String {
        format!(
            "{} of {} values of `{}` are numbers, and {} holds `{}`",
            self.numbers, self.present, self.column, self.place, self.text
        )
    }
}

/// What the values of a column reach from and to, over all items.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Extent {
    /// The smallest number; for texts and where there is none, `None`.
    pub min: Option<f64>,
    /// The largest number.
    pub max: Option<f64>,
    /// Items of which a value is missing.
    pub missing: u64,
    /// Items of which a number is infinite.
    pub infinite: u64,
}

impl Header {
    /// Where each column's bytes stand in a record.
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

    /// What is odd about a column.
    pub fn oddity_of(&self, column: &str) -> Option<&Oddity> {
        let mut oddities = self.oddities.iter();
        oddities.find(|odd| odd.columns.iter().any(|name| name == column))
    }

    /// Names places by where the same files are now: records are found by what files hold, and may have
    /// been read elsewhere.
    pub fn move_to(&mut self, roots: &[String]) {
        let mut moves: Vec<_> = self.roots.iter().zip(roots).collect();
        // One root may begin as another one does.
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
    /// Takes in the values of one item.
    pub(super) fn see(&mut self, kind: &ColumnKind, bytes: &[u8]) {
        let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
        let (mut is_missing, mut is_infinite) = (false, false);
        match kind {
            ColumnKind::Text => is_missing = bytes == NO_TEXT,
            // The same as below, eight times as fast: pictures are large.
            ColumnKind::Bytes => {
                min = bytes.iter().min().map_or(min, |byte| f64::from(*byte));
                max = bytes.iter().max().map_or(max, |byte| f64::from(*byte));
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

/// The number that the bytes of one value hold; NaN where there is none.
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
