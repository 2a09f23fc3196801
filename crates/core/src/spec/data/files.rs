//! The user's files as data: formats and options.

use serde::{Deserialize, Serialize};

use super::values::{self, ValuesSpec};
use super::{DataKind, GraphSpec, RolesSpec, RowsSpec, TokensSpec};
use crate::spec::kind::Kind;
use crate::spec::section::{Section, choices};

/// What means missing in a table of texts, if nothing else is written.
const MISSING: [&str; 8] = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "?"];

/// Files and how they are read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FilesSpec {
    /// The format.
    pub format: Format,
    /// The files that are split by the fractions, as written.
    pub path: Vec<String>,
    /// Files of the valid split.
    pub valid_path: Vec<String>,
    /// Files of the test split.
    pub test_path: Vec<String>,
    /// How undecodable items are handled.
    pub on_bad_item: OnBadItem,
    /// Which columns are used, and how.
    pub roles: RolesSpec,
    /// How text is tokenized.
    pub tokens: TokensSpec,
    /// The edges, if items are the nodes of a graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<GraphSpec>,
}

/// The format of files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "format", rename_all = "snake_case")]
pub enum Format {
    /// Delimiter-separated values.
    Csv {
        /// The delimiter.
        delimiter: char,
        /// Whether the first row contains the column names.
        header: bool,
        /// Values that mean missing.
        missing_values: Vec<String>,
        /// Lines that are not rows of data.
        #[serde(default, skip_serializing_if = "RowsSpec::is_usual")]
        rows: RowsSpec,
    },
    /// One JSON object per line.
    JsonLines,
    /// Apache Parquet.
    Parquet,
    /// NumPy arrays, one per file.
    Npy {
        /// The arrays of targets.
        targets: Targets,
    },
    /// Named NumPy arrays.
    Npz,
    /// Named tensors.
    Safetensors,
    /// Byte arrays in the MNIST format.
    Idx {
        /// The arrays of targets.
        targets: Targets,
    },
    /// Images, in one folder per class, or with masks.
    ImageFolder {
        /// Folders of masks with the same names.
        masks: Targets,
        /// Height and width that images are resized to; unchanged if not set.
        size: Option<[usize; 2]>,
        /// The color mode.
        channels: Channels,
    },
    /// Plain text.
    Text,
}

/// Files of targets next to the files of inputs; empty if there are none.
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
    /// How undecodable items are handled.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum OnBadItem {
        Refuse "refuse" "The experiment is refused, with the location of the item.",
        Skip "skip" "The item is dropped, counted and listed.",
    }
}

choices! {
    /// The color modes.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Channels {
        Rgb "rgb" "Red, green and blue.",
        Gray "gray" "Brightness only.",
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
            "The array of targets for `valid_path`.",
            false,
        ),
        test_path: paths(
            s,
            "test_target_path",
            "The array of targets for `test_path`.",
            false,
        ),
    }
}

impl Format {
    /// Whether its columns have names.
    pub fn has_columns(&self) -> bool {
        matches!(
            self,
            Format::Csv { .. }
                | Format::JsonLines
                | Format::Parquet
                | Format::Npz
                | Format::Safetensors
        )
    }
}

impl FilesSpec {
    /// The values that mean missing in every column.
    pub fn missing_values(&self) -> &[String] {
        match &self.format {
            Format::Csv { missing_values, .. } => missing_values,
            _ => self
                .roles
                .values
                .missing_values
                .as_deref()
                .unwrap_or_default(),
        }
    }

    /// The values that mean missing in a column.
    pub fn missing_values_of(&self, column: &str) -> impl Iterator<Item = &str> {
        let own = self.roles.of(column);
        let own = own.and_then(|said| said.missing_values.as_deref());
        let all = self.missing_values().iter().chain(own.unwrap_or_default());
        all.map(|text| text.trim())
    }

    /// Those of them that are numbers.
    pub fn missing_numbers_of(&self, column: &str) -> Vec<f64> {
        let numbers = self.missing_values_of(column);
        let numbers = numbers.filter_map(|text| text.parse().ok());
        numbers.filter(|number: &f64| number.is_finite()).collect()
    }

    pub(super) fn decode(s: &mut Section<'_>, kind: DataKind) -> Self {
        let path = paths(
            s,
            "path",
            "The file or files, relative to this one; `*` and `?` match parts of names.",
            true,
        );
        let format = match kind {
            DataKind::Csv => Format::Csv {
                delimiter: delimiter(s),
                header: s
                    .field("header", Kind::Bool, "Whether the first row contains the column names; otherwise they are `column_1`, `column_2`, ….")
                    .or(true),
                missing_values: values::missing_marks_or(
                    s,
                    "Values that mean missing, in every column; a number matches every way to write it.",
                    &MISSING,
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
                targets: targets(s, "The file of targets, one for each item in `path`."),
            },
            DataKind::ImageFolder => Format::ImageFolder {
                masks: targets(s, "The folder of masks, one per image, with the same names: the value of a pixel is its class."),
                size: s
                    .field("size", Kind::sizes(1, 2), "Height and width that images are resized to; unchanged when not set.")
                    .optional()
                    .and_then(|sizes: Vec<usize>| match sizes[..] {
                        [side] => Some([side; 2]),
                        [height, width] => Some([height, width]),
                        _ => None,
                    }),
                channels: s.choice("channels", "The color mode of the images.", Channels::Rgb),
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
                        "How items with NaN or infinite values are handled.",
                    ),
                    ..RolesSpec::default()
                },
                (false, _) => RolesSpec::default(),
            },
            graph: if has_names {
                s.optional_table(
                    "graph",
                    "Makes each row or item the node of one graph, whose edges are in files of their own.",
                    GraphSpec::decode,
                )
            } else {
                None
            },
            tokens: if has_texts {
                s.table(
                    "tokens",
                    "How text is tokenized.",
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
                "Files of the valid split; `path` then contains the others.",
                false,
            ),
            test_path: paths(s, "test_path", "Files of the test split.", false),
            on_bad_item: s.choice(
                "on_bad_item",
                "How items that cannot be decoded are handled.",
                OnBadItem::Refuse,
            ),
        }
    }

    /// A file, or a pattern of files, as if nothing else was written. Nothing is decoded: what trains in a browser has no
    /// code for experiment files.
    pub fn usual(kind: DataKind, path: String) -> Self {
        let targets = Targets::default;
        let format = match kind {
            DataKind::Csv => Format::Csv {
                delimiter: ',',
                header: true,
                missing_values: MISSING.map(str::to_owned).to_vec(),
                rows: RowsSpec::default(),
            },
            DataKind::JsonLines => Format::JsonLines,
            DataKind::Parquet => Format::Parquet,
            DataKind::Npy => Format::Npy { targets: targets() },
            DataKind::Npz => Format::Npz,
            DataKind::Safetensors => Format::Safetensors,
            DataKind::Idx => Format::Idx { targets: targets() },
            DataKind::ImageFolder => Format::ImageFolder {
                masks: targets(),
                size: None,
                channels: Channels::Rgb,
            },
            _ => Format::Text,
        };
        Self::of_format(format, vec![path])
    }

    /// Files of a format, without settings of other tables.
    pub fn of_format(format: Format, path: Vec<String>) -> Self {
        Self {
            format,
            path,
            valid_path: Vec::new(),
            test_path: Vec::new(),
            on_bad_item: OnBadItem::Refuse,
            roles: RolesSpec::default(),
            tokens: TokensSpec::default(),
            graph: None,
        }
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
            "The character between values.",
        )
        .or(",".to_owned());
    text.chars().next().unwrap_or(',')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Span;
    use crate::spec::document::{Entry, Node, Table, Value};
    use crate::spec::section::{self, Findings};

    const KINDS: [DataKind; 9] = [
        DataKind::Csv,
        DataKind::JsonLines,
        DataKind::Parquet,
        DataKind::Npy,
        DataKind::Npz,
        DataKind::Safetensors,
        DataKind::Idx,
        DataKind::ImageFolder,
        DataKind::Text,
    ];

    #[test]
    fn what_is_usual_is_what_a_file_without_settings_says() {
        for kind in KINDS {
            let span = Span::default();
            let value = Value::Str("rows".into());
            let entry = Entry {
                key: "path".into(),
                key_span: span,
                node: Node { span, value },
            };
            let table = Table {
                entries: vec![entry],
            };
            let decode = |s: &mut Section<'_>| FilesSpec::decode(s, kind);
            let decoded = section::read(&table, &mut Findings::default(), decode);
            assert_eq!(FilesSpec::usual(kind, "rows".into()), decoded, "{kind:?}");
        }
    }
}
