//! Documents in items of running text that are kept apart.

use super::Point;
use super::network::{Documents, mixes_documents};
use crate::data::DataPlan;
use crate::diagnostic::Diagnostic;
use crate::spec::data::TokensSpec;

const MASK: &str = "data.tokens.document_mask";

fn tokens(data: &DataPlan) -> Option<&TokensSpec> {
    Some(&data.files()?.tokens)
}

/// Documents can be told apart where a token ends each of them, in text whose next tokens are predicted.
pub fn documents_have_an_end(point: &Point<'_>) -> Option<Diagnostic> {
    let data = point.data?;
    let tokens = tokens(data)?;
    let contradiction = |message: &str| Diagnostic::error("contradiction", message);
    if !tokens.document_mask {
        let positions = point.root.span_at("data.tokens.document_positions")?;
        let message = "`document_positions` has no effect without `document_mask`";
        return Some(
            contradiction(message)
                .at(positions)
                .help("set `document_mask = true` too, or remove `document_positions`"),
        );
    }
    let (message, help) = if tokens.masked.is_some() {
        (
            "`document_mask` is for texts whose next token is predicted, but `masked` hides tokens",
            "remove `document_mask`; rows of a table are items of their own with `masked`",
        )
    } else if tokens.separator.is_none() {
        (
            "`document_mask` needs a token that ends each document, but there is no `separator`",
            "set `separator` to a token of the tokenizer, such as its end of a text",
        )
    } else if data.noticed.document_end.is_none() {
        (
            "`document_mask` has no effect: each item is a text of its own",
            "remove it, or use text without a target, whose items are pieces of running text",
        )
    } else {
        return None;
    };
    Some(contradiction(message).at(point.span(MASK)).help(help))
}

/// Only layers that treat each document on its own keep them apart.
pub fn documents_stay_apart(point: &Point<'_>) -> Option<Diagnostic> {
    let data = point.data?;
    let documents = Documents::of(data).filter(|_| data.masked().is_none())?;
    let layers = point.network?.layers.iter();
    let mut layers = layers.zip(&point.spec.model.layers);
    layers.find_map(|(layer, written)| {
        let reason = mixes_documents(layer, documents)?;
        let message = format!(
            "`document_mask` keeps the documents of an item apart, but `{}` {reason}",
            layer.name
        );
        let diagnostic = Diagnostic::error("contradiction", message);
        let help = match layer.kind.type_name().as_str() {
            "rotary_encoding" => "use `multi_head_attention` with `rotary = true`, or set `document_positions = \"continue\"`",
            _ => "use layers of attention and layers that treat each position alike, such as those of `llama` and `gpt2`, or remove `document_mask`",
        };
        Some(written.point(diagnostic, "type").related(point.span(MASK), "set here").help(help))
    })
}
