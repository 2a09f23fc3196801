//! A text while it is continued.

use super::{Generated, Generation};
use runner_core::data::encode::tokenizer::Tokenizer;
use runner_core::predict::Sampler;
use runner_network::stepwise::Cache;

/// The number of a prompt's last tokens that what is added to it is joined to: more than those of one character.
const LEAD: usize = 8;

/// A text and what it is continued by.
#[derive(Debug)]
pub(super) struct Text<'a> {
    pub(super) asked: &'a Generation,
    tokenizer: &'a Tokenizer,
    prompt: String,
    num_prompt: usize,
    num_unknown: usize,
    /// The tokens that end a turn.
    ends: &'a [i32],
    pub(super) sampler: Sampler,
    /// The last tokens, of the prompt and then added ones.
    pub(super) context: Vec<i32>,
    /// The last tokens of the prompt that are text, which what is added is joined to.
    lead: Vec<i32>,
    pub(super) cache: Cache,
    /// The first token of the context that is not in the cache.
    pub(super) seen: usize,
    tokens: Vec<i32>,
    /// The same as text, without the text to stop at and what follows it.
    text: String,
    /// Its length as far as it was told.
    told: usize,
    /// Whether one of the texts to stop at was found.
    is_stopped: bool,
}

impl<'a> Text<'a> {
    pub(super) fn new(
        tokenizer: &'a Tokenizer,
        asked: &'a Generation,
        prompt: String,
        context: Vec<i32>,
        ends: &'a [i32],
    ) -> Self {
        let is_unknown = |token: &&i32| tokenizer.unknown() == Some(**token);
        // The end of a turn may be the token for padding, too.
        let may_follow = |token: i32| ends.contains(&token) || tokenizer.is_text(token);
        let wanted = (0..tokenizer.vocabulary() as i32).map(may_follow);
        Self {
            lead: lead_of(&context, |token| tokenizer.is_text(token)),
            num_prompt: context.len(),
            num_unknown: context.iter().filter(is_unknown).count(),
            sampler: Sampler::new(asked.sampling, wanted.collect()),
            cache: Cache::default(),
            seen: 0,
            tokens: Vec::with_capacity(asked.max_tokens.min(1 << 16)),
            text: String::new(),
            told: 0,
            is_stopped: false,
            asked,
            tokenizer,
            prompt,
            ends,
            context,
        }
    }

    /// Keeps no more tokens than a network with positions handles.
    pub(super) fn fit(&mut self, most: Option<usize>) {
        if !self.asked.is_cached {
            (self.cache, self.seen) = (Cache::default(), 0);
        }
        let Some(most) = most.filter(|most| self.context.len() > *most) else {
            return;
        };
        let kept = if self.tokens.is_empty() {
            most
        } else {
            (most / 2).max(1)
        };
        self.context.drain(..self.context.len() - kept);
        (self.cache, self.seen) = (Cache::default(), 0);
    }

    /// Adds a token; the others are in the cache now.
    pub(super) fn push(&mut self, token: i32) {
        self.seen = self.context.len();
        self.context.push(token);
        self.tokens.push(token);
        let decode = |tokens: &[i32]| self.tokenizer.decode(tokens);
        self.text = joined(decode, &self.lead, &self.tokens, &self.prompt);
        let found = self.asked.stop.iter();
        let found = found.filter_map(|stop| self.text.find(stop));
        if let Some(end) = found.min() {
            self.text.truncate(end);
            self.is_stopped = true;
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.is_stopped
            || self.tokens.len() >= self.asked.max_tokens
            || self
                .tokens
                .last()
                .is_some_and(|last| self.ends.contains(last) || self.tokenizer.ends_text(*last))
    }

    /// Tells what was added and does not depend on later tokens.
    pub(super) fn told(&mut self, tell: &mut dyn FnMut(&str)) {
        let certain = certain(&self.text, &self.asked.stop);
        let piece = self.text.get(self.told..certain);
        if let Some(piece) = piece.filter(|piece| !piece.is_empty()) {
            tell(piece);
            self.told = certain;
        }
    }

    /// The continued text, whose rest is told.
    pub(super) fn ended(self, tell: &mut dyn FnMut(&str)) -> Generated {
        let rest = self.text.get(self.told..);
        if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
            tell(rest);
        }
        Generated {
            text: self.text,
            prompt: self.prompt,
            tokens: self.tokens,
            num_prompt: self.num_prompt,
            num_unknown: self.num_unknown,
        }
    }
}

/// The last tokens of a prompt, without those that are no text and what is before them.
fn lead_of(context: &[i32], is_text: impl Fn(i32) -> bool) -> Vec<i32> {
    let from = context.len().saturating_sub(LEAD);
    let last = &context[from..];
    let first = last.iter().rposition(|token| !is_text(*token));
    last[first.map_or(0, |at| at + 1)..].to_vec()
}

/// The text of tokens that follow `lead`, the last tokens of `prompt`: with the space before it that both have as one
/// text, unless the prompt ends with one.
fn joined(decode: impl Fn(&[i32]) -> String, lead: &[i32], tokens: &[i32], prompt: &str) -> String {
    let (before, both) = (decode(lead), decode(&[lead, tokens].concat()));
    match both.strip_prefix(&before) {
        Some(text) if prompt.ends_with(' ') && !before.ends_with(' ') => {
            text.strip_prefix(' ').unwrap_or(text).to_owned()
        }
        Some(text) => text.to_owned(),
        // The last tokens of the prompt read differently before others.
        None => decode(tokens),
    }
}

/// The length of the beginning of a text that later tokens do not change: without the part of a character, or of a text
/// to stop at, at its end.
fn certain(text: &str, stop: &[String]) -> usize {
    let whole = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
    let begins = |from: usize| {
        let rest = &whole[from..];
        stop.iter().any(|stop| stop.starts_with(rest))
    };
    let longest = stop.iter().map(String::len).max().unwrap_or(0);
    let first = whole.len().saturating_sub(longest);
    let mut places = (first..whole.len()).filter(|at| whole.is_char_boundary(*at));
    places.find(|at| begins(*at)).unwrap_or(whole.len())
}

#[cfg(test)]
mod tests {
    use super::{certain, joined, lead_of};

    /// Words, which a space is between but for a point.
    fn decode(tokens: &[i32]) -> String {
        let mut text = String::new();
        for word in tokens.iter().map(|token| ["a", "b", "."][*token as usize]) {
            if !text.is_empty() && word != "." {
                text.push(' ');
            }
            text.push_str(word);
        }
        text
    }

    #[test]
    fn what_is_added_is_joined_to_the_prompt() {
        for (lead, tokens, prompt, text) in [
            (&[0, 1][..], &[0, 1][..], "a b", " a b"),
            (&[0, 1], &[2, 0], "a b", ". a"),
            (&[0, 1], &[0], "a b ", "a"),
            (&[], &[0, 1], "", "a b"),
        ] {
            assert_eq!(joined(decode, lead, tokens, prompt), text, "{prompt:?}");
        }
        // A lead that reads differently before another token.
        let strange = |tokens: &[i32]| format!("{}:{}", tokens.len(), decode(tokens));
        assert_eq!(joined(strange, &[0], &[1], "a"), "1:b");
    }

    #[test]
    fn marks_of_a_chat_are_not_joined() {
        let is_text = |token| token < 10;
        assert_eq!(lead_of(&[1, 2, 11, 3, 4], is_text), [3, 4]);
        assert_eq!(lead_of(&[1, 2, 11], is_text), [0; 0]);
        assert_eq!(
            lead_of(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], is_text),
            [2, 3, 4, 5, 6, 7, 8, 9]
        );
    }

    #[test]
    fn what_may_change_is_not_told() {
        let stop = ["\n\n".to_owned(), "END".to_owned()];
        for (text, told) in [
            ("a b", "a b"),
            ("a\n", "a"),
            ("a\nb", "a\nb"),
            ("aEN", "a"),
            ("E", ""),
            ("éEN", "é"),
            ("EéN", "EéN"),
            ("ab\u{fffd}", "ab"),
            ("", ""),
        ] {
            assert_eq!(&text[..certain(text, &stop)], told);
        }
    }
}
