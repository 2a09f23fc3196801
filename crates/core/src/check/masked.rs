//! The networks that predict hidden tokens.

use super::Point;
use crate::diagnostic::Diagnostic;
use crate::spec::model::layer::LayerKind;

/// A hidden token is predicted from the tokens before and after it: a causal layer does not see the later ones, and
/// trains for next tokens in a poor way. Recurrent layers may be used on purpose.
pub fn later_tokens_are_seen(point: &Point<'_>) -> Option<Diagnostic> {
    point.data?.masked()?;
    let layers = &point.spec.model.layers;
    let causal = layers.iter().find(|layer| match &layer.kind {
        LayerKind::MultiHeadAttention { causal, .. } => *causal,
        LayerKind::GroupedAttention(attention) => attention.causal,
        LayerKind::TransformerEncoder(stack) => stack.causal,
        _ => false,
    });
    if let Some(layer) = causal {
        let message = format!(
            "`data.tokens.masked` hides tokens, which are predicted from those on both sides, but `{}` is causal: it does not see later tokens",
            layer.name
        );
        let diagnostic = Diagnostic::error("contradiction", message);
        return Some(
            layer.point(diagnostic, "causal")
                .help("use layers without `causal`, such as those of the preset `bert` with `head = \"tokens\"`, or remove `masked` to predict the next token"),
        );
    }
    let one_way = layers.iter().find(
        |layer| matches!(&layer.kind, LayerKind::Recurrent(recurrent) if !recurrent.bidirectional),
    )?;
    let message = format!(
        "`data.tokens.masked` hides tokens, which are predicted from those on both sides, but `{}` sees only earlier tokens",
        one_way.name
    );
    let diagnostic = Diagnostic::warning("no-effect", message);
    Some(
        one_way
            .point(diagnostic, "type")
            .help("set `bidirectional = true`"),
    )
}
