//! How probable texts are to a language model: held-out documents, or what the assistant wrote in conversations.

use super::{Answered, Continuation, Model, Refusal, Results, at_line};
use crate::model::in_pool;
use runner_core::data::encode::tokenizer::Tokenizer;
use runner_core::data::encode::tokenizer::chat::{Conversation, Renderer};
use runner_core::diagnostic::Diagnostic;
use runner_core::predict::{Context, Question};

/// How probable a text is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Read {
    /// The sum of the logarithms of the probabilities of its tokens, each given those before it.
    log: f64,
    num_tokens: usize,
    /// Tokens that no other token is more probable than.
    num_first: usize,
    /// Bytes of the tokens.
    num_bytes: usize,
}

/// The metrics of texts that count so many times each.
pub(super) fn metrics(texts: &[Read], counts: &[u32]) -> Vec<(&'static str, f64)> {
    let sum = |of: fn(&Read) -> f64| -> f64 {
        let texts = texts.iter().zip(counts);
        texts
            .map(|(text, count)| of(text) * f64::from(*count))
            .sum()
    };
    let (log, num) = (sum(|text| text.log), sum(|text| text.num_tokens as f64));
    let bytes = sum(|text| text.num_bytes as f64);
    let loss = -log / num;
    vec![
        ("loss", loss),
        ("accuracy", sum(|text| text.num_first as f64) / num),
        ("perplexity", loss.exp()),
        ("byte_perplexity", (-log / bytes).exp()),
        ("bits_per_byte", -log / bytes / std::f64::consts::LN_2),
    ]
}

/// Whether two models divide the texts into as many tokens. Otherwise, only what is divided by bytes can be compared.
pub(super) fn have_same_tokens(one: &[Read], other: &[Read]) -> bool {
    let tokens = |texts: &[Read]| texts.iter().map(|text| text.num_tokens).collect::<Vec<_>>();
    tokens(one) == tokens(other)
}

/// A text as tokens.
struct Encoded {
    /// With whether each is counted; the first never is.
    tokens: Vec<(i32, bool)>,
    num_bytes: usize,
}

impl Model {
    /// How probable the texts of questions without an answer are.
    pub(super) fn read(&self, questions: &[Question]) -> Result<Answered, Refusal> {
        let (tokenizer, length) = self.of_text()?;
        let (mut windows, mut texts) = (Vec::new(), Vec::new());
        for (number, question) in questions.iter().enumerate() {
            let encoded = self.encoded(tokenizer, &question.context);
            let encoded = encoded.map_err(|error| at_line(question.line, error))?;
            let num_tokens = encoded.tokens.iter().filter(|(_, counts)| *counts).count();
            if num_tokens == 0 {
                let message = match question.context {
                    Context::Text(_) => "the text has no token after its first one",
                    Context::Chat(_) => "the assistant wrote nothing in the conversation",
                };
                let help = match question.context {
                    Context::Text(_) => "write a longer text, or remove the row",
                    Context::Chat(_) => {
                        "add a message of the assistant, `choices` or an `answer`, or remove the row"
                    }
                };
                let wrong: Refusal = Box::new(Diagnostic::error("evaluate", message).help(help));
                return Err(at_line(question.line, wrong));
            }
            texts.push(Read {
                num_tokens,
                num_bytes: encoded.num_bytes,
                ..Read::default()
            });
            windows.extend(pieces(&encoded.tokens, length).map(|piece| (number, piece)));
        }
        let (numbers, pieces): (Vec<usize>, Vec<(Continuation, Vec<bool>)>) =
            windows.into_iter().unzip();
        let (pieces, counts): (Vec<_>, Vec<_>) = pieces.into_iter().unzip();
        let found = in_pool(|| self.each_token(&pieces));
        for ((number, counts), tokens) in numbers.into_iter().zip(counts).zip(found) {
            let tokens = tokens.iter().zip(counts);
            for (token, _) in tokens.filter(|(_, counts)| *counts) {
                texts[number].log += token.log;
                texts[number].num_first += usize::from(token.is_first);
            }
        }
        Ok(Answered {
            results: Results::Read(texts),
            num_cut: 0,
        })
    }

    fn encoded(&self, tokenizer: &Tokenizer, context: &Context) -> Result<Encoded, Refusal> {
        let wrong =
            |error: runner_core::data::DataError| -> Refusal { Box::new(error.to_diagnostic()) };
        let (mut tokens, mut num_bytes) = match context {
            Context::Text(text) => {
                let tokens = tokenizer.encode(text).map_err(wrong)?;
                let tokens = tokens.into_iter().map(|token| (token, true));
                (tokens.collect::<Vec<_>>(), text.len())
            }
            Context::Chat(conversation) => {
                let rendered = self.marked(tokenizer, conversation)?;
                let tokens = tokenizer.encode_marked(&rendered.text, &rendered.assistant);
                let num_bytes = rendered.assistant.iter().map(ExactSizeIterator::len).sum();
                (tokens.map_err(wrong)?, num_bytes)
            }
        };
        // Nothing precedes the first token, unless texts follow each other.
        if let Some(separator) = tokenizer.separator() {
            tokens.insert(0, (separator, false));
        }
        // As in training: a document does not follow from the one before it.
        let end = tokenizer.document_end();
        for at in 0..tokens.len() {
            let is_start = at == 0 || end.is_some_and(|end| tokens[at - 1].0 == end);
            let (token, counts) = &mut tokens[at];
            if is_start && std::mem::take(counts) {
                num_bytes -= tokenizer.num_bytes(*token).min(num_bytes);
            }
        }
        Ok(Encoded { tokens, num_bytes })
    }

    /// A conversation as text, with what the assistant wrote.
    fn marked(
        &self,
        tokenizer: &Tokenizer,
        conversation: &Conversation,
    ) -> Result<runner_core::data::encode::tokenizer::chat::Rendered, Refusal> {
        let template = self.template(tokenizer)?;
        let renderer = Renderer::new(template, None);
        let marked = renderer
            .map_err(|reason| reason.to_string())
            .and_then(|renderer| {
                let marked = renderer.marked(conversation);
                marked.map_err(|reason| reason.to_string())
            });
        marked.map_err(|reason| -> Refusal {
            let message = format!("the chat template of run `{}` {reason}", self.plan.id);
            let help = "change the messages, or use a run whose template encloses what the assistant wrote in `{% generation %}` and `{% endgeneration %}`";
            Box::new(Diagnostic::error("evaluate", message).help(help))
        })
    }
}

/// A text in pieces of at most `length` tokens and one more. All but the first begin with the half of the piece before
/// that precedes what is counted, so that tokens have a context.
fn pieces(
    tokens: &[(i32, bool)],
    length: usize,
) -> impl Iterator<Item = (Continuation, Vec<bool>)> {
    let mut first = 1;
    std::iter::from_fn(move || {
        if first >= tokens.len() {
            return None;
        }
        let start = if first == 1 {
            0
        } else {
            first - 1 - length / 2
        };
        let end = (start + length + 1).min(tokens.len());
        let piece = Continuation {
            tokens: tokens[start..end].iter().map(|(token, _)| *token).collect(),
            first: first - start,
            is_cut: false,
        };
        let counts = tokens[first..end].iter().map(|(_, counts)| *counts);
        let counts = counts.collect();
        first = end;
        Some((piece, counts))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_but_the_first_is_counted_once() {
        for (num, length) in [
            (1, 4),
            (2, 4),
            (5, 4),
            (6, 4),
            (40, 7),
            (41, 8),
            (9, 1),
            (3, 2),
        ] {
            let tokens: Vec<(i32, bool)> = (0..num).map(|at| (at, at % 2 == 0)).collect();
            let mut next = 1;
            for (piece, counts) in pieces(&tokens, length) {
                assert!(piece.tokens.len() <= length + 1 && piece.first > 0);
                assert!(next == 1 || piece.first > length / 2);
                for (token, counts) in piece.tokens[piece.first..].iter().zip(counts) {
                    assert_eq!((*token, counts), (next, next % 2 == 0));
                    next += 1;
                }
            }
            assert_eq!(next, num.max(1));
        }
    }
}
