//! The roles of a data set's columns, and how they are encoded.

use serde::{Deserialize, Serialize};

use super::dates;
use super::files::Channels;
use super::inputs::{InputEncode, InputSpec};
use super::values::{self, ValuesSpec};
use crate::spec::document::Value;
use crate::spec::kind::Kind;
use crate::spec::section::{Section, choices};

/// Which columns are used, and how.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RolesSpec {
    /// The input columns; all others if not set.
    pub features: Option<Vec<String>>,
    /// Named groups of input columns, if the network has several inputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<InputSpec>,
    /// The target columns.
    pub target: Vec<String>,
    /// The targets of `[[losses]]` that are other columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_targets: Vec<MoreTarget>,
    /// The column of the weights of items, if they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<String>,
    /// Unused columns.
    pub ignore: Vec<String>,
    /// How missing values are handled in columns that do not set it.
    pub missing: Missing,
    /// How numeric targets are scaled.
    pub target_scale: Scale,
    /// How numeric targets are transformed before they are scaled.
    #[serde(default, skip_serializing_if = "TargetTransform::is_none")]
    pub target_transform: TargetTransform,
    /// Settings of single columns.
    pub columns: Vec<ColumnSpec>,
    /// Whether some of them can be columns of another table: of edges beside that of nodes, or the other way around.
    #[serde(skip)]
    pub has_other_table: bool,
    /// Items as windows of rows.
    pub window: Option<WindowSpec>,
    /// The value format of tables.
    #[serde(default, skip_serializing_if = "ValuesSpec::is_usual")]
    pub values: ValuesSpec,
}

/// The target columns of a table of `[[losses]]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MoreTarget {
    /// Their names.
    pub columns: Vec<String>,
    /// The number of the table, for messages.
    #[serde(skip)]
    pub table: usize,
}

impl MoreTarget {
    /// The key that names the columns.
    pub fn key(&self) -> String {
        format!("losses[{}].target", self.table)
    }
}

/// The settings of one column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnSpec {
    /// Its name.
    pub name: String,
    /// The kind of its values; inferred if not set.
    #[serde(rename = "type")]
    pub kind: Option<ColumnType>,
    /// How missing values are handled.
    pub missing: Option<Missing>,
    /// How numbers are scaled.
    pub scale: Option<Scale>,
    /// The clipping range, applied before scaling.
    pub clip: Option<[f64; 2]>,
    /// How categories are encoded.
    pub encode: Encode,
    /// Whether `encode` is written.
    #[serde(skip)]
    pub says_encode: bool,
    /// Further values that mean missing; an empty list disables all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_values: Option<Vec<String>>,
    /// The date format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date_format: Option<String>,
    /// The images that its values name, if they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageSpec>,
}

/// `image` of a column: its values are paths of images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImageSpec {
    /// The folder that they are in: one path, resolved like the data's files.
    pub folder: Vec<String>,
    /// The height and width that they are resized to.
    pub size: [usize; 2],
    /// Their channels.
    pub channels: Channels,
}

/// `[data.window]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowSpec {
    /// Rows per window.
    pub length: usize,
    /// Rows from the last one of a window to the row of its target; 0 without a target.
    pub horizon: usize,
    /// Rows between the starts of consecutive windows.
    pub stride: usize,
}

choices! {
    /// The kinds of columns.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ColumnType {
        Number "number" "A number.",
        Category "category" "A category.",
        Label "label" "0 or 1, as one of the labels of the task `multi_label`, of which there may be only one.",
        Text "text" "Text, which is tokenized.",
        Chat "chat" "A conversation: a list of messages with a `role` and a `content`, written as text by the tokenizer's chat template.",
    }
}

choices! {
    /// How missing values are handled.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Missing {
        #[default]
        Refuse "refuse" "The experiment is refused, with the number of missing values per column.",
        Drop "drop" "The item is dropped.",
        Mean "mean" "The mean over the train split; for categories, the most frequent.",
        Median "median" "The median over the train split; for categories, the most frequent.",
        MostCommon "most_common" "The most frequent value in the train split.",
        Zero "zero" "Zero, before scaling; for categories, none of them.",
    }
}

impl Missing {
    /// Whether new data may lack a value of such a column. Items like those that were dropped in training must not be
    /// dropped silently from new data, and are refused too.
    pub fn is_filled(self) -> bool {
        !matches!(self, Self::Refuse | Self::Drop)
    }
}

choices! {
    /// How numbers are scaled. Statistics are measured only on the train split.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Scale {
        #[default]
        None "none" "Unscaled; image bytes become 0 to 1.",
        Standardize "standardize" "To mean 0 and standard deviation 1 over the train split: columns separately, arrays as `scale_axis` says.",
        MinMax "min_max" "To the range 0 to 1 over the train split.",
        Normalize "normalize" "Each item to unit length.",
    }
}

choices! {
    /// How numeric targets are transformed before they are scaled.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TargetTransform {
        #[default]
        None "none" "Not transformed.",
        Log "log" "The natural logarithm, for targets above 0 that vary by factors, such as prices.",
        Log1p "log1p" "The natural logarithm of the target plus 1, for targets of 0 and more, such as counts.",
        Quantile "quantile" "To a normal distribution, by up to 1,000 quantiles of the train split, for targets with a skewed distribution or outliers.",
    }
}

impl TargetTransform {
    /// Whether targets are only scaled.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

impl Scale {
    /// Whether it needs statistics of the train split.
    pub fn is_measured(self) -> bool {
        matches!(self, Self::Standardize | Self::MinMax)
    }
}

/// Which values of an array are scaled together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScaleAxis {
    /// As usual for its shape; see [`ScaleAxis::resolve`].
    #[default]
    Auto,
    /// All of them.
    All,
    /// Those of a position along an axis of the item, counted from the end if negative.
    Along(i64),
}

impl ScaleAxis {
    /// The axis of items of a shape whose positions are scaled separately, if any is: of series \[steps, values\] the
    /// last, and otherwise the first, the channels of an image. Gray images of bytes have none.
    ///
    /// # Errors
    /// If items have no such axis.
    pub fn resolve(self, shape: &[usize], is_bytes: bool) -> Result<Option<usize>, i64> {
        let axis = match (self, shape.len()) {
            (Self::All, _) | (Self::Auto, 0 | 1) => None,
            (Self::Auto, 2) => (!is_bytes).then_some(1),
            (Self::Auto, _) => Some(0),
            (Self::Along(axis), rank) => {
                let from_start = if axis < 0 { axis + rank as i64 } else { axis };
                let at = usize::try_from(from_start).ok();
                Some(at.filter(|at| *at < rank).ok_or(axis)?)
            }
        };
        // One position is all of them.
        Ok(axis.filter(|axis| shape[*axis] > 1))
    }

    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        const DOC: &str = "Which values of arrays and images are scaled together: \"all\", or those of a position along this axis of an item, such as 0 for the channels of an image or -1 for the last axis. When not set: the last axis of items with two axes, the first of items with more, and \"all\" for two axes of bytes.";
        let all = Kind::OneOf(vec![("all", "All values of an item.")]);
        let axes = Kind::Int(-MAX_AXES, MAX_AXES - 1);
        let kind = Kind::Either(Box::new(all), Box::new(axes));
        match s.field::<Value>("scale_axis", kind, DOC).optional() {
            None => Self::Auto,
            Some(Value::Int(axis)) => Self::Along(axis),
            Some(_) => Self::All,
        }
    }
}

/// The most axes of an item.
const MAX_AXES: i64 = 8;

choices! {
    /// How categories are encoded.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Encode {
        #[default]
        OneHot "one_hot" "One-hot: one input per category of the train split; all 0 for an unknown category.",
        Ordinal "ordinal" "The index of the category in the sorted list of categories in the train split, from 0; -1 for an unknown category.",
    }
}

fn names(s: &mut Section<'_>, key: &'static str, doc: &'static str) -> Option<Vec<String>> {
    let kind = Kind::one_or_many(Kind::Text);
    s.field(key, kind, doc).optional()
}

impl RolesSpec {
    /// Whether a column is a target, of the task or of `[[losses]]`.
    pub fn is_target(&self, name: &String) -> bool {
        self.targets().any(|target| target == name)
    }

    /// Whether a column is one of several of a target.
    pub fn is_one_of_several(&self, name: &String) -> bool {
        let more = self.more_targets.iter().map(|more| &more.columns);
        let mut all = more.chain([&self.target]);
        all.any(|columns| columns.len() > 1 && columns.contains(name))
    }

    /// The names of all targets.
    pub fn targets(&self) -> impl Iterator<Item = &String> {
        let more = self.more_targets.iter();
        self.target
            .iter()
            .chain(more.flat_map(|more| &more.columns))
    }

    pub(super) fn decode_missing(s: &mut Section<'_>, doc: &'static str) -> Missing {
        s.choice("missing", doc, Missing::Refuse)
    }

    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        Self {
            has_other_table: false,
            features: names(
                s,
                "features",
                "The input columns; all except the targets and `ignore` when not set.",
            ),
            inputs: s.tables(
                "inputs",
                "Named inputs of the network, each for layers of its own.",
                false,
                InputSpec::decode,
            ),
            target: names(s, "target", "The column or columns to predict.").unwrap_or_default(),
            more_targets: Vec::new(),
            weight: s
                .field(
                    "weight",
                    Kind::Text,
                    "The column of the weight of each item of the train split in the loss: 0 or more, relative to their mean; it is not a feature.",
                )
                .optional(),
            ignore: s
                .field(
                    "ignore",
                    Kind::Either(
                        Box::new(Kind::Text),
                        Box::new(Kind::list(Kind::Text, 0)),
                    ),
                    "Columns that are not used, such as row numbers.",
                )
                .optional()
                .unwrap_or_default(),
            missing: Self::decode_missing(
                s,
                "How missing values are handled in columns that do not set it themselves.",
            ),
            target_scale: s.choice(
                "target_scale",
                "How numeric targets are scaled; metrics refer to the scaled targets.",
                Scale::None,
            ),
            target_transform: s.choice(
                "target_transform",
                "How numeric targets are transformed before they are scaled; metrics refer to the transformed targets, except `target_mae`, `target_rmse` and `mape`.",
                TargetTransform::None,
            ),
            columns: s.tables(
                "columns",
                "Settings for single columns.",
                false,
                ColumnSpec::decode,
            ),
            window: s.optional_table(
                "window",
                "Makes each item a window of consecutive rows; the target, if there is one, comes from a later row.",
                WindowSpec::decode,
            ),
            values: ValuesSpec::default(),
        }
    }
}

impl RolesSpec {
    /// The kind that is set for a column, by itself or because its input takes categories.
    pub fn kind_of(&self, name: &str) -> Option<ColumnType> {
        let said = self.columns.iter().find(|column| column.name == name);
        let is_embedded = || self.embedded().any(|column| column == name);
        let said = said.and_then(|column| column.kind);
        let of_image = self.image_of(name).map(|_| ColumnType::Text);
        said.or(of_image)
            .or_else(|| is_embedded().then_some(ColumnType::Category))
    }

    /// The images that a column names, if it does.
    pub fn image_of(&self, name: &str) -> Option<&ImageSpec> {
        self.of(name)?.image.as_ref()
    }

    /// The columns of conversations.
    pub fn chats(&self) -> impl Iterator<Item = &str> {
        let columns = self.columns.iter();
        let chats = columns.filter(|column| column.kind == Some(ColumnType::Chat));
        chats.map(|column| column.name.as_str())
    }

    /// The columns that are listed in inputs of categories.
    pub fn embedded(&self) -> impl Iterator<Item = &str> {
        let inputs = self.inputs.iter();
        let inputs = inputs.filter(|input| input.encode == InputEncode::Embedding);
        let columns = inputs.flat_map(|input| input.columns.iter().flatten());
        columns.map(String::as_str)
    }
}

impl ColumnSpec {
    /// A column without settings.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind: None,
            missing: None,
            scale: None,
            clip: None,
            encode: Encode::OneHot,
            says_encode: false,
            missing_values: None,
            date_format: None,
            image: None,
        }
    }

    fn decode(s: &mut Section<'_>) -> Self {
        Self {
            name: s
                .field("name", Kind::Text, "The name of the column.")
                .required(),
            kind: s
                .field(
                    "type",
                    Kind::of_choice::<ColumnType>(),
                    "The type of its values; inferred when not set.",
                )
                .optional()
                .and_then(|name: String| crate::spec::section::by_name(&name)),
            missing: s
                .field(
                    "missing",
                    Kind::of_choice::<Missing>(),
                    "How missing values are handled; `data.missing` when not set.",
                )
                .optional()
                .and_then(|name: String| crate::spec::section::by_name(&name)),
            scale: s
                .field(
                    "scale",
                    Kind::of_choice::<Scale>(),
                    "How numbers are scaled; `data.scale` when not set.",
                )
                .optional()
                .and_then(|name: String| crate::spec::section::by_name(&name)),
            clip: s
                .field(
                    "clip",
                    Kind::Tuple {
                        item: Box::new(Kind::any()),
                        len: 2,
                    },
                    "The range that numbers are clipped to before scaling.",
                )
                .optional()
                .and_then(|bounds: Vec<f64>| <[f64; 2]>::try_from(bounds).ok()),
            says_encode: s.is_written("encode"),
            encode: s.choice("encode", "How categories are encoded.", Encode::OneHot),
            missing_values: values::missing_marks(
                s,
                "Values of this column that mean missing, such as -999, in addition to `data.missing_values`; an empty list treats every number as data.",
            ),
            date_format: dates::decode(
                s,
                "The date format, such as \"%d.%m.%Y\"; ISO 8601 needs none.",
                false,
            ),
            image: s.optional_table(
                "image",
                "Makes the column one of images (png, jpeg): its values are paths in a folder.",
                ImageSpec::decode,
            ),
        }
    }
}

impl ImageSpec {
    fn decode(s: &mut Section<'_>) -> Self {
        let folder: String = s
            .field(
                "folder",
                Kind::Path,
                "The folder of the images, which the values of the column are paths in.",
            )
            .required();
        let sizes: Vec<usize> = s
            .field(
                "size",
                Kind::sizes(1, 2),
                "Height and width that images are resized to.",
            )
            .required();
        Self {
            folder: vec![folder],
            size: match sizes[..] {
                [height, width] => [height, width],
                _ => [sizes.first().copied().unwrap_or(1); 2],
            },
            channels: s.choice("channels", "The color mode of the images.", Channels::Rgb),
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
            length: rows("length", "Rows per window.", None),
            horizon: rows(
                "horizon",
                "Rows from the last one of a window to the row of its target, if it has one.",
                Some(1),
            ),
            stride: rows(
                "stride",
                "Rows between the starts of consecutive windows.",
                Some(1),
            ),
        }
    }
}
