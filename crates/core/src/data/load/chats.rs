//! Conversations as running text: written by the chat template, with what the assistant wrote.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rayon::prelude::*;

use crate::data::DataError;
use crate::data::encode::tokenizer::Tokenizer;
use crate::data::encode::tokenizer::chat::{
    ChatTemplate, Conversation, NotMarked, Rendered, Renderer,
};
use crate::data::records::Records;
use crate::spec::data::FilesSpec;

/// The conversations of a column.
pub(super) struct Chats {
    /// By row; none for rows without a conversation.
    rendered: Vec<Option<Rendered>>,
    /// The rows by the addresses of their texts.
    rows: BTreeMap<usize, usize>,
}

impl Chats {
    /// Writes all conversations of a column; `None` if it has none.
    ///
    /// # Errors
    /// If there is no template, or it refuses a conversation.
    pub(super) fn of(
        files: &FilesSpec,
        records: &Records,
        column: usize,
    ) -> Result<Option<Self>, DataError> {
        let name = &records.columns()[column].name;
        if !files.roles.chats().any(|chat| chat == name) {
            return Ok(None);
        }
        if files.tokens.masked.is_some() {
            return Err(DataError::new(
                "conversations are for predicting the next token, but `masked` hides tokens",
            )
            .key("data.tokens.masked")
            .help("remove `masked`, or use a column of texts"));
        }
        let paths: Vec<PathBuf> = files.tokens.template.iter().map(PathBuf::from).collect();
        let template = ChatTemplate::read(&paths, |_| None)?;
        let template = template.ok_or_else(|| {
            let first = files.tokens.template.first().map_or("", String::as_str);
            DataError::new(format!("`{first}` has no `chat_template`"))
                .key("data.tokens")
                .help("set `template` to a file with a chat template in Jinja")
        })?;
        let wrong = |reason: &str| DataError::new(format!("the chat template {reason}"));
        let of_template = |error: DataError| {
            error
                .key("data.tokens")
                .help("correct the template, or set `template` to another one")
        };
        // Without the date: the same data gives the same tokens every day.
        let renderer = Renderer::new(&template, None);
        let renderer = renderer.map_err(|reason| of_template(wrong(&reason)))?;
        let written = (0..records.len()).into_par_iter().map(|row| {
            let Some(text) = records.text(row, column) else {
                return Ok(None);
            };
            let place = |reason: &NotMarked| {
                wrong(&format!("{reason}, for the conversation {} of `{name}`", row + 1))
            };
            let conversation = Conversation::parse(text).map_err(|reason| {
                let message = format!("the conversation {} of `{name}` cannot be used: {reason}", row + 1);
                DataError::new(message)
                    .key("data.columns")
                    .help("write a list of messages, such as [{\"role\": \"user\", \"content\": \"Hello\"}]")
            })?;
            let rendered = if files.tokens.learn_prompts {
                let text = renderer.render(&conversation, false);
                text.map(|text| Rendered { text, assistant: Vec::new() }).map_err(NotMarked::Refused)
            } else {
                renderer.marked(&conversation)
            };
            rendered.map(Some).map_err(|reason| match reason {
                NotMarked::Mixed(_) => place(&reason)
                    .key("data.tokens")
                    .help("enclose what the assistant wrote in `{% generation %}` and `{% endgeneration %}` in the template, or set `learn_prompts = true`"),
                NotMarked::Refused(_) => of_template(place(&reason)),
            })
        });
        let rendered = written.collect::<Result<Vec<_>, DataError>>()?;
        let mut each = rendered.iter().flatten().peekable();
        if !files.tokens.learn_prompts
            && each.peek().is_some()
            && each.all(|rendered| rendered.assistant.is_empty())
        {
            let message = format!(
                "no message of `{name}` has the role `assistant`, whose texts are what is learned"
            );
            return Err(DataError::new(message)
                .key("data.columns")
                .help("name the role of the messages to learn `assistant`, or set `learn_prompts = true` to learn all"));
        }
        let rows = rendered.iter().enumerate();
        let rows = rows.filter_map(|(row, of)| Some((of.as_ref()?.text.as_ptr() as usize, row)));
        Ok(Some(Self {
            rows: rows.collect(),
            rendered,
        }))
    }

    /// The text of a row.
    pub(super) fn text(&self, row: usize) -> Option<&str> {
        self.rendered[row]
            .as_ref()
            .map(|rendered| rendered.text.as_str())
    }

    /// The tokens of a text of a row. Those that are not to be predicted are complemented, as `serve` expects it.
    pub(super) fn tokens(&self, text: &str, tokenizer: &Tokenizer) -> Result<Vec<i32>, DataError> {
        let row = self.rows.get(&(text.as_ptr() as usize));
        let rendered = row.and_then(|row| self.rendered[*row].as_ref());
        let marked = rendered.map_or(&[][..], |rendered| &rendered.assistant);
        let mut tokens = tokenizer.encode_marked(text, marked)?;
        // It follows what the assistant wrote last.
        let ends = marked
            .last()
            .is_some_and(|last| text[last.end..].trim().is_empty());
        tokens.extend(tokenizer.separator().map(|token| (token, ends)));
        let tokens = tokens.into_iter();
        Ok(tokens
            .map(|(token, is_learned)| if is_learned { token } else { !token })
            .collect())
    }
}
