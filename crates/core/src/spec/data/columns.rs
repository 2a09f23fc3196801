//! What the columns of a data set are for, and how they become what a network is given.

use serde::{Deserialize, Serialize};

use super::dates;
use super::values::{self, ValuesSpec};
use crate::spec::kind::Kind;
use crate::spec::section::{Section, choices};

/// Which columns are used, and how.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RolesSpec {
    /// The columns that the network is given; all others when not written.
    pub features: Option<Vec<String>>,
    /// The columns that it is to give.
    pub target: Vec<String>,
    /// Columns that are not used.
    pub ignore: Vec<String>,
    /// What becomes of missing values, where a column does not say.
    pub missing: Missing,
    /// How targets that are numbers are scaled.
    pub target_scale: Scale,
    /// What is said of single columns.
    pub columns: Vec<ColumnSpec>,
    /// Items as windows of rows.
    pub window: Option<WindowSpec>,
    /// How the values of tables are written.
    #[serde(default, skip_serializing_if = "ValuesSpec::is_usual")]
    pub values: ValuesSpec,
}

/// What is said of one column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnSpec {
    /// Its name.
    pub name: String,
    /// What its values are; found out when not written.
    #[serde(rename = "type")]
    pub kind: Option<ColumnType>,
    /// What becomes of missing values.
    pub missing: Option<Missing>,
    /// How numbers are scaled.
    pub scale: Option<Scale>,
    /// Numbers are brought between these two first.
    pub clip: Option<[f64; 2]>,
    /// How categories become numbers.
    pub encode: Encode,
    /// Further values that stand for a missing one; an empty list says that none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_values: Option<Vec<String>>,
    /// How its dates are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date_format: Option<String>,
}

/// `[data.window]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowSpec {
    /// Rows of a window.
    pub length: usize,
    /// Rows from a window's last one to the row that the target is of.
    pub horizon: usize,
    /// Rows from one window's start to the next one's.
    pub stride: usize,
}

/// `[data.tokens]`: how texts become tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokensSpec {
    /// What a token is.
    pub tokenizer: TokenizerKind,
    /// Tokens of an item.
    pub length: usize,
    /// Tokens from one item's start to the next one's, for next-token prediction; `length` when not written.
    pub stride: Option<usize>,
    /// The most tokens that there are; the most frequent are kept.
    pub max_vocabulary: usize,
    /// Whether capitals are made small first.
    pub lowercase: bool,
}

choices! {
    /// What a token is.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TokenizerKind {
        Char "char" "A character.",
        Byte "byte" "A byte of UTF-8: 256 tokens, and nothing is unknown.",
        Word "word" "A word, a number or a sign.",
    }
}

choices! {
    /// What a column's values are.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ColumnType {
        Number "number" "A number.",
        Category "category" "One of several names.",
        Text "text" "A text, which becomes tokens.",
    }
}

choices! {
    /// What becomes of missing values.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Missing {
        #[default]
        Refuse "refuse" "The experiment is refused, with their number by column.",
        Drop "drop" "The item is left out.",
        Mean "mean" "The mean over the train split; for categories the most common.",
        Median "median" "The median over the train split; for categories the most common.",
        MostCommon "most_common" "The most common value in the train split.",
        Zero "zero" "Zero, before scaling; for categories none of them.",
    }
}

choices! {
    /// How numbers are scaled. What it takes is measured on the train split alone.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Scale {
        #[default]
        None "none" "As they are; bytes of pictures from 0 to 1.",
        Standardize "standardize" "To mean 0 and deviation 1 over the train split: arrays of several dimensions as a whole, columns each by itself.",
        MinMax "min_max" "From 0 to 1 over the train split.",
        Normalize "normalize" "Each item to length 1.",
    }
}

choices! {
    /// How categories become numbers.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Encode {
        #[default]
        OneHot "one_hot" "A number for each category of the train split, 1 for the item's; all 0 for one that it lacks.",
        Ordinal "ordinal" "The category's place in the sorted list of the train split's from 0; -1 for one that it lacks.",
    }
}

fn names(s: &mut Section<'_>, key: &'static str, doc: &'static str) -> Option<Vec<String>> {
    let kind = Kind::one_or_many(Kind::Text);
    s.field(key, kind, doc).optional()
}

impl RolesSpec {
    pub(super) fn decode_missing(s: &mut Section<'_>, doc: &'static str) -> Missing {
        s.choice("missing", doc, Missing::Refuse)
    }

    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        Self {
            features: names(
                s,
                "features",
                "The columns that the network is given; all but the targets and `ignore` when not written.",
            ),
            target: names(
                s,
                "target",
                "The column, or columns, that the network is to give.",
            )
            .unwrap_or_default(),
            ignore: names(
                s,
                "ignore",
                "Columns that are not used, such as row numbers.",
            )
            .unwrap_or_default(),
            missing: Self::decode_missing(
                s,
                "What becomes of missing values, where a column does not say.",
            ),
            target_scale: s.choice(
                "target_scale",
                "How targets that are numbers are scaled; metrics are of scaled targets.",
                Scale::None,
            ),
            columns: s.tables(
                "columns",
                "What is said of single columns.",
                false,
                ColumnSpec::decode,
            ),
            window: s.optional_table(
                "window",
                "Items as windows of consecutive rows; the target is that of a later row.",
                WindowSpec::decode,
            ),
            values: ValuesSpec::default(),
        }
    }
}

impl ColumnSpec {
    /// A column of which nothing is said yet.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind: None,
            missing: None,
            scale: None,
            clip: None,
            encode: Encode::OneHot,
            missing_values: None,
            date_format: None,
        }
    }

    fn decode(s: &mut Section<'_>) -> Self {
        Self {
            name: s.field("name", Kind::Text, "The column's name.").required(),
            kind: s
                .field("type", Kind::of_choice::<ColumnType>(), "What its values are; found out when not written.")
                .optional()
                .and_then(|name: String| crate::spec::section::by_name(&name)),
            missing: s
                .field("missing", Kind::of_choice::<Missing>(), "What becomes of missing values; `data.missing` when not written.")
                .optional()
                .and_then(|name: String| crate::spec::section::by_name(&name)),
            scale: s
                .field("scale", Kind::of_choice::<Scale>(), "How its numbers are scaled; `data.scale` when not written.")
                .optional()
                .and_then(|name: String| crate::spec::section::by_name(&name)),
            clip: s
                .field("clip", Kind::Tuple { item: Box::new(Kind::any()), len: 2 }, "The least and the largest value that numbers are brought to before they are scaled.")
                .optional()
                .and_then(|bounds: Vec<f64>| <[f64; 2]>::try_from(bounds).ok()),
            encode: s.choice("encode", "How categories become numbers.", Encode::OneHot),
            missing_values: values::missing_marks(
                s,
                "Values of this column that stand for a missing one, such as -999, besides those of `data.missing_values`; an empty list says that none of its numbers does.",
            ),
            date_format: dates::decode(
                s,
                "How its dates are written, such as \"%d.%m.%Y\"; ISO 8601 needs no format.",
                false,
            ),
        }
    }
}

impl WindowSpec {
    fn decode(s: &mut Section<'_>) -> Self {
        let mut rows = |key, doc, default| {
            let field = s.field(key, Kind::Int(1, 1 << 20), doc);
            match default {
                Some(default) => field.or(default),
                None => field.required(),
            }
        };
        Self {
            length: rows("length", "Rows of a window.", None),
            horizon: rows(
                "horizon",
                "Rows from a window's last one to the row that the target is of.",
                Some(1),
            ),
            stride: rows(
                "stride",
                "Rows from one window's start to the next one's.",
                Some(1),
            ),
        }
    }
}

impl Default for TokensSpec {
    fn default() -> Self {
        Self {
            tokenizer: TokenizerKind::Char,
            length: 64,
            stride: None,
            max_vocabulary: 10_000,
            lowercase: false,
        }
    }
}

impl TokensSpec {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        Self {
            tokenizer: s.choice("tokenizer", "What a token is.", TokenizerKind::Char),
            length: s
                .field("length", Kind::Int(1, 1 << 16), "Tokens of an item; longer texts are cut, shorter ones filled up.")
                .or(64),
            stride: s
                .field("stride", Kind::Int(1, 1 << 20), "Tokens from one item's start to the next one's in running text; `length` when not written.")
                .optional(),
            max_vocabulary: s
                .field("max_vocabulary", Kind::Int(3, 1 << 20), "The most tokens that there are; the most frequent in the train split are kept.")
                .or(10_000),
            lowercase: s
                .field("lowercase", Kind::Bool, "Whether capitals are made small first.")
                .or(false),
        }
    }
}
