//! Settings of conversations.

use super::Point;
use crate::diagnostic::Diagnostic;

/// Templates and what is learned of conversations need a column of them.
pub fn chats_have_a_column(point: &Point<'_>) -> Option<Diagnostic> {
    let files = point.data?.files()?;
    if files.roles.chats().next().is_some() {
        return None;
    }
    let key = ["template", "learn_prompts"].into_iter().find(|key| {
        let path = format!("data.tokens.{key}");
        point.root.span_at(&path).is_some()
    })?;
    let message = format!("`{key}` has no effect without a column of conversations");
    let place = point.span(&format!("data.tokens.{key}"));
    Some(
        Diagnostic::error("contradiction", message)
            .at(place)
            .help(format!("set `columns = [{{ name = \"messages\", type = \"chat\" }}]` in `data`, or remove `{key}`")),
    )
}
