//! `[data.tokens]`: how text becomes tokens.

use serde::{Deserialize, Serialize};

use crate::spec::kind::Kind;
use crate::spec::section::{Section, choices};

/// `[data.tokens]`: tokenization.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokensSpec {
    /// The unit of a token.
    pub tokenizer: TokenizerKind,
    /// For [`TokenizerKind::File`], its file: resolved like the data's files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// A token after each text of running text, if one is added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separator: Option<String>,
    /// Whether the documents that separators end are kept apart where several are in an item.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub document_mask: bool,
    /// How positions are counted then.
    #[serde(default, skip_serializing_if = "DocumentPositions::is_restarting")]
    pub document_positions: DocumentPositions,
    /// Tokens per item.
    pub length: usize,
    /// Tokens between the starts of consecutive items, for next-token prediction; `length` if not set.
    pub stride: Option<usize>,
    /// Maximum vocabulary size; the most frequent tokens are kept.
    pub max_vocabulary: usize,
    /// Minimum vocabulary size: further numbers stand for nothing.
    #[serde(default, skip_serializing_if = "crate::spec::is_zero")]
    pub min_vocabulary: usize,
    /// Whether to lower-case the text.
    pub lowercase: bool,
    /// The fraction of the tokens of each item that are hidden, if they are to be predicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masked: Option<f64>,
    /// The files of the chat template, for columns of conversations: resolved like the data's files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub template: Vec<String>,
    /// Whether all tokens of conversations are predicted, not only the assistant's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub learn_prompts: bool,
}

choices! {
    /// The tokenizers.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TokenizerKind {
        Char "char" "A character.",
        Byte "byte" "A byte of UTF-8: 256 tokens, none unknown.",
        Word "word" "A word, a number or a punctuation mark.",
        Bpe "bpe" "A subword of bytes, as in GPT-2: byte pair encoding, trained on the train split. Nothing is unknown.",
        Wordpiece "wordpiece" "A lower-case subword, as in BERT, trained on the train split.",
        File "file" "A subword of the tokenizer in `path`.",
    }
}

impl TokenizerKind {
    /// Whether its tokens are parts of words.
    pub fn is_of_subwords(self) -> bool {
        matches!(self, Self::Bpe | Self::Wordpiece | Self::File)
    }
}

choices! {
    /// How positions are counted in an item of several documents.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum DocumentPositions {
        #[default]
        Restart "restart" "Each document begins at position 0, as it does alone.",
        Continue "continue" "Positions are those in the item.",
    }
}

impl DocumentPositions {
    /// Whether each document begins at 0.
    pub fn is_restarting(&self) -> bool {
        *self == Self::Restart
    }
}

impl Default for TokensSpec {
    fn default() -> Self {
        Self {
            tokenizer: TokenizerKind::Char,
            path: Vec::new(),
            separator: None,
            document_mask: false,
            document_positions: DocumentPositions::Restart,
            length: 64,
            stride: None,
            max_vocabulary: 10_000,
            min_vocabulary: 0,
            lowercase: false,
            masked: None,
            template: Vec::new(),
            learn_prompts: false,
        }
    }
}

impl TokensSpec {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let doc = "A `tokenizer.json` of the library tokenizers, for `tokenizer = \"file\"`.";
        let path: Option<String> = s.field("path", Kind::Text, doc).optional();
        let usual = match path {
            Some(_) => TokenizerKind::File,
            None => TokenizerKind::Char,
        };
        Self {
            tokenizer: s.choice("tokenizer", "The unit of a token.", usual),
            path: path.into_iter().collect(),
            separator: s
                .field("separator", Kind::AnyText, "A token that follows each text of running text, such as \"<|endoftext|>\".")
                .optional(),
            document_mask: s
                .field("document_mask", Kind::Bool, "Whether the tokens of a document attend only to each other where an item has several. `separator` ends a document, and predicts nothing.")
                .or(false),
            document_positions: s.choice(
                "document_positions",
                "How positions are counted with `document_mask`.",
                DocumentPositions::Restart,
            ),
            length: s
                .field("length", Kind::Int(1, 1 << 16), "Tokens per item; longer texts are truncated, shorter ones padded.")
                .or(64),
            stride: s
                .field("stride", Kind::Int(1, 1 << 20), "Tokens between the starts of consecutive items of running text; `length` when not set.")
                .optional(),
            max_vocabulary: s
                .field("max_vocabulary", Kind::Int(3, 1 << 20), "Maximum vocabulary size; the most frequent tokens of the train split are kept.")
                .or(10_000),
            min_vocabulary: s
                .field("min_vocabulary", Kind::Int(0, 1 << 20), "Minimum vocabulary size, for networks with more rows than the tokenizer has tokens.")
                .or(0),
            lowercase: s
                .field("lowercase", Kind::Bool, "Whether to lower-case the text first.")
                .or(false),
            masked: s
                .field("masked", MASKED, "The fraction of the tokens of each item that are hidden and predicted, as in the training of BERT (0.15 there): of these, 80 % become the mask token, 10 % a random token, and 10 % stay. The rows of a table are the items.")
                .optional(),
            template: {
                let doc = "The chat template for columns of the type \"chat\": a file in Jinja, or a `tokenizer_config.json`; the one beside the tokenizer in `path` when not set.";
                let template: Option<String> = s.field("template", Kind::Text, doc).optional();
                template.into_iter().collect()
            },
            learn_prompts: s
                .field("learn_prompts", Kind::Bool, "Whether the loss and the metrics of conversations include the tokens that the assistant did not write.")
                .or(false),
        }
    }
}

/// Hiding nothing leaves nothing to predict, and hiding everything nothing to predict it from.
const MASKED: Kind = Kind::Float {
    min: 0.0,
    open_min: true,
    max: 1.0,
    open_max: true,
};
