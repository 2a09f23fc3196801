//! `[[data.inputs]]`: groups of columns that different branches of a network take.

use serde::{Deserialize, Serialize};

use crate::spec::kind::Kind;
use crate::spec::section::{Section, choices};

/// A named input of the network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputSpec {
    /// Its name in the layers' `inputs`.
    pub name: String,
    /// Its columns; if not set, those of no other input.
    pub columns: Option<Vec<String>>,
    /// What its values become.
    pub encode: InputEncode,
}

choices! {
    /// What the values of an input become.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum InputEncode {
        #[default]
        Columns "columns" "Numbers, scaled, and categories as `[[data.columns]]` says; tokens, if the only column is a text; or an array in its shape.",
        Embedding "embedding" "An index for each column, whose values are categories: 0 for a missing value or a category that is not in the train split, then the categories of the train split. The indices of each column follow those of the one before, so that one `embedding` layer serves all.",
    }
}

impl InputSpec {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        Self {
            name: s
                .field("name", Kind::Slug, "The name of the input in the `inputs` of layers.")
                .required(),
            columns: s
                .field(
                    "columns",
                    Kind::one_or_many(Kind::Text),
                    "Its columns; when not set, which is possible for one input, all features that no other input has.",
                )
                .optional(),
            encode: s.choice(
                "encode",
                "What its values become.",
                InputEncode::Columns,
            ),
        }
    }
}
