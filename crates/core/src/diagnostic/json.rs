//! Messages for other programs.

use serde_json::{Value as Json, json};

use super::{Diagnostics, Severity, Sources, Span};

impl Diagnostics {
    /// A list with an object for each message: its parts, its place from line and column 1, and its whole text
    /// as a terminal shows it.
    pub fn to_json(&self, sources: &Sources) -> Json {
        let each = self.0.iter().map(|diagnostic| {
            let place = diagnostic.span.map(|span| place(sources, span));
            let (file, line, column) = place.unwrap_or_default();
            let related = diagnostic.related.iter().map(|(span, label)| {
                let (file, line, column) = self::place(sources, *span);
                json!({ "file": file, "line": line, "column": column, "label": label })
            });
            let severity = match diagnostic.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            json!({
                "severity": severity,
                "code": diagnostic.code,
                "message": diagnostic.message,
                "file": file,
                "line": line,
                "column": column,
                "marked": diagnostic.span.map(|span| sources.text(span)),
                "label": diagnostic.label,
                "notes": diagnostic.notes,
                "helps": diagnostic.helps,
                "related": related.collect::<Vec<_>>(),
                "text": diagnostic.render(sources, false).trim_end(),
            })
        });
        Json::Array(each.collect())
    }
}

/// The file, line and column of a place, from 1.
fn place(sources: &Sources, span: Span) -> (Option<String>, Option<usize>, Option<usize>) {
    let Some(source) = sources.0.get(span.source as usize) else {
        return (None, None, None);
    };
    let before = source.text.get(..span.start as usize).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    (
        Some(source.name.clone()),
        Some(1 + before.matches('\n').count()),
        Some(1 + line.chars().count()),
    )
}
