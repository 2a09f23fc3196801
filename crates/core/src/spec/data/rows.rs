//! Lines of a table's file that are not rows of data.

use serde::{Deserialize, Serialize};

use crate::spec::kind::Kind;
use crate::spec::section::Section;

/// Skipped lines of a CSV file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RowsSpec {
    /// Lines above the header.
    pub skip_rows: usize,
    /// Rows below the header.
    pub skip_rows_after_header: usize,
    /// Rows at the end.
    pub skip_footer: usize,
    /// The prefix of skipped lines.
    pub comment: Option<char>,
}

impl RowsSpec {
    /// Whether no line is skipped.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let mut lines = |key, doc| s.field(key, Kind::Int(0, 1 << 20), doc).or(0);
        let (skip_rows, skip_rows_after_header, skip_footer) = (
            lines(
                "skip_rows",
                "Lines to skip above the header, or above the data, in each file; blank lines count.",
            ),
            lines(
                "skip_rows_after_header",
                "Rows to skip below the header in each file, such as a row of units.",
            ),
            lines(
                "skip_footer",
                "Rows to skip at the end of each file, such as totals or notes.",
            ),
        );
        let comment: Option<String> = s
            .field(
                "comment",
                Kind::OneOf(vec![
                    ("#", "A hash."),
                    ("%", "A percent sign."),
                    ("!", "An exclamation mark."),
                    (";", "A semicolon."),
                    ("*", "An asterisk."),
                ]),
                "Lines that begin with it are skipped.",
            )
            .optional();
        Self {
            skip_rows,
            skip_rows_after_header,
            skip_footer,
            comment: comment.and_then(|text| text.chars().next()),
        }
    }
}
