//! Files of the user as data: their formats and options.

use serde::{Deserialize, Serialize};

use super::values::{self, ValuesSpec};
use super::{DataKind, RolesSpec, RowsSpec, TokensSpec};
use crate::diagnostic::Span;
use crate::spec::document::{Entry, Node, Table, Value};
use crate::spec::kind::Kind;
use crate::spec::section::{self, Findings, Section, choices};

/// Files and how they are read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FilesSpec {
    /// How they are read.
    pub format: Format,
    /// The files that are split by the fractions, as written.
    pub path: Vec<String>,
    /// Files of the valid split.
    pub valid_path: Vec<String>,
    /// Files of the test split.
    pub test_path: Vec<String>,
    /// What becomes of an item that cannot be decoded.
    pub on_bad_item: OnBadItem,
    /// Which columns are used, and how.
    pub roles: RolesSpec,
    /// How texts become tokens.
    pub tokens: TokensSpec,
}

/// How files are read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "format", rename_all = "snake_case")]
pub enum Format {
    /// Rows of values with a separator.
    Csv {
        /// What stands between two values.
        delimiter: char,
        /// Whether the first row names the columns.
        header: bool,
        /// What stands for a missing value.
        missing_values: Vec<String>,
        /// Lines that are not rows of data.
        #[serde(default, skip_serializing_if = "RowsSpec::is_usual")]
        rows: RowsSpec,
    },
    /// One JSON object a line.
    JsonLines,
    /// Apache Parquet.
    Parquet,
    /// NumPy arrays, a file each.
    Npy {
        /// The arrays of targets.
        targets: Targets,
    },
    /// NumPy arrays by name.
    Npz,
    /// Tensors by name.
    Safetensors,
    /// Arrays of bytes in MNIST's format.
    Idx {
        /// The arrays of targets.
        targets: Targets,
    },
    /// Pictures, a folder for each class, or with masks.
    ImageFolder {
        /// Folders of masks under the same names.
        masks: Targets,
        /// Height and width that pictures are brought to; as they are when not written.
        size: Option<[usize; 2]>,
        /// What a pixel holds.
        channels: Channels,
    },
    /// Plain text.
    Text,
}

/// Files of targets beside the files of inputs; empty where there are none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Targets {
    /// Beside `path`.
    pub path: Vec<String>,
    /// Beside `valid_path`.
    pub valid_path: Vec<String>,
    /// Beside `test_path`.
    pub test_path: Vec<String>,
}

choices! {
    /// What becomes of an item that cannot be decoded.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum OnBadItem {
        Refuse "refuse" "The experiment is refused, with the item's place.",
        Skip "skip" "It is left out, counted and listed.",
    }
}

choices! {
    /// What a pixel holds.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Channels {
        Rgb "rgb" "Red, green and blue.",
        Gray "gray" "Brightness alone.",
    }
}

fn paths(s: &mut Section<'_>, key: &'static str, doc: &'static str, required: bool) -> Vec<String> {
    let kind = Kind::one_or_many(Kind::Path);
    if required {
        s.field(key, kind, doc).required()
    } else {
        s.field(key, kind, doc).optional().unwrap_or_default()
    }
}

fn targets(s: &mut Section<'_>, doc: &'static str) -> Targets {
    Targets {
        path: paths(s, "target_path", doc, false),
        valid_path: paths(
            s,
            "valid_target_path",
            "The same beside `valid_path`.",
            false,
        ),
        test_path: paths(s, "test_target_path", "The same beside `test_path`.", false),
    }
}

impl FilesSpec {
    pub(super) fn decode(s: &mut Section<'_>, kind: DataKind) -> Self {
        let path = paths(
            s,
            "path",
            "The file or files, relative to this one; `*` and `?` stand for parts of names.",
            true,
        );
        let format = match kind {
            DataKind::Csv => Format::Csv {
                delimiter: delimiter(s),
                header: s
                    .field("header", Kind::Bool, "Whether the first row names the columns; without one they are `column_1`, `column_2`, ….")
                    .or(true),
                missing_values: values::missing_marks_or(
                    s,
                    "What stands for a missing value, in every column; a number stands for every way to write it.",
                    &["", "NA", "N/A", "NaN", "nan", "null", "NULL", "?"],
                ),
                rows: RowsSpec::decode(s),
            },
            DataKind::JsonLines => Format::JsonLines,
            DataKind::Parquet => Format::Parquet,
            DataKind::Npy => Format::Npy {
                targets: targets(s, "The array of targets: its first dimension is that of `path`."),
            },
            DataKind::Npz => Format::Npz,
            DataKind::Safetensors => Format::Safetensors,
            DataKind::Idx => Format::Idx {
                targets: targets(s, "The file of targets: as many as `path` has items."),
            },
            DataKind::ImageFolder => Format::ImageFolder {
                masks: targets(s, "The folder of masks, one for each picture, under the same name: the value of a pixel is its class."),
                size: s
                    .field("size", Kind::sizes(1, 2), "Height and width that pictures are brought to; as they are when not written.")
                    .optional()
                    .and_then(|sizes: Vec<usize>| match sizes[..] {
                        [side] => Some([side; 2]),
                        [height, width] => Some([height, width]),
                        _ => None,
                    }),
                channels: s.choice("channels", "What a pixel holds.", Channels::Rgb),
            },
            _ => Format::Text,
        };
        let is_text = format == Format::Text;
        let has_names = !is_text
            && !matches!(
                format,
                Format::Npy { .. } | Format::Idx { .. } | Format::ImageFolder { .. }
            );
        let has_texts = is_text
            || matches!(
                format,
                Format::Csv { .. } | Format::JsonLines | Format::Parquet
            );
        Self {
            roles: match (has_names, &format) {
                (true, _) => RolesSpec {
                    values: if has_texts {
                        ValuesSpec::decode(s, kind)
                    } else {
                        ValuesSpec::of_arrays(s)
                    },
                    ..RolesSpec::decode(s)
                },
                (false, Format::Npy { .. } | Format::Idx { .. }) => RolesSpec {
                    values: ValuesSpec::of_arrays(s),
                    missing: RolesSpec::decode_missing(
                        s,
                        "What becomes of items that lack a number.",
                    ),
                    ..RolesSpec::default()
                },
                (false, _) => RolesSpec::default(),
            },
            tokens: if has_texts {
                s.table(
                    "tokens",
                    "How texts become tokens.",
                    false,
                    TokensSpec::decode,
                )
            } else {
                TokensSpec::default()
            },
            format,
            path,
            valid_path: paths(
                s,
                "valid_path",
                "Files of the valid split; `path` then gives the others.",
                false,
            ),
            test_path: paths(s, "test_path", "Files of the test split.", false),
            on_bad_item: s.choice(
                "on_bad_item",
                "What becomes of an item that cannot be decoded.",
                OnBadItem::Refuse,
            ),
        }
    }

    /// A file, or a pattern of files, of which nothing else is said.
    pub fn usual(kind: DataKind, path: String) -> Self {
        let span = Span::default();
        let value = Value::Str(path);
        let entry = Entry {
            key: "path".into(),
            key_span: span,
            node: Node { span, value },
        };
        let table = Table {
            entries: vec![entry],
        };
        section::read(&table, &mut Findings::default(), |s| Self::decode(s, kind))
    }

    /// The name in the experiment file.
    pub fn kind(&self) -> DataKind {
        match self.format {
            Format::Csv { .. } => DataKind::Csv,
            Format::JsonLines => DataKind::JsonLines,
            Format::Parquet => DataKind::Parquet,
            Format::Npy { .. } => DataKind::Npy,
            Format::Npz => DataKind::Npz,
            Format::Safetensors => DataKind::Safetensors,
            Format::Idx { .. } => DataKind::Idx,
            Format::ImageFolder { .. } => DataKind::ImageFolder,
            Format::Text => DataKind::Text,
        }
    }
}

fn delimiter(s: &mut Section<'_>) -> char {
    let text: String = s
        .field(
            "delimiter",
            Kind::OneOf(vec![
                (",", "A comma."),
                (";", "A semicolon."),
                ("\t", "A tab."),
                ("|", "A bar."),
                (" ", "A space."),
            ]),
            "What stands between two values.",
        )
        .or(",".to_owned());
    text.chars().next().unwrap_or(',')
}
