//! Which lines of a table's file are not rows of data.

use serde::{Deserialize, Serialize};

use crate::spec::kind::Kind;
use crate::spec::section::Section;

/// Lines of a CSV file that are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RowsSpec {
    /// Lines above the header.
    pub skip_rows: usize,
    /// Rows below the header.
    pub skip_rows_after_header: usize,
    /// Rows at the end.
    pub skip_footer: usize,
    /// What a line begins with that is left out.
    pub comment: Option<char>,
}

impl RowsSpec {
    /// Whether every line counts.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let mut lines = |key, doc| s.field(key, Kind::Int(0, 1 << 20), doc).or(0);
        let (skip_rows, skip_rows_after_header, skip_footer) = (
            lines(
                "skip_rows",
                "Lines above the header, or above the data, that are left out in each file; blank ones count.",
            ),
            lines(
                "skip_rows_after_header",
                "Rows below the header that are left out in each file, such as one of units.",
            ),
            lines(
                "skip_footer",
                "Rows at the end of each file that are left out, such as totals or notes.",
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
                "Lines that begin with it are left out.",
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
