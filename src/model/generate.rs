//! Text generation by a language model.

use super::{Model, Refusal, in_pool};
use runner_core::data::Values;
use runner_core::data::encode::InputEncoder;
use runner_core::data::encode::tokenizer::Tokenizer;
use runner_core::data::encode::tokenizer::chat::{ChatTemplate, Conversation, Now, Renderer};
use runner_core::diagnostic::{Diagnostic, counted};
use runner_core::predict::Sampling;
use runner_core::spec::task::TaskKind;
use runner_network::stepwise::{MOST_TEXTS, has_positions, unfit};
use text::Text;

mod text;

/// A text to continue.
#[derive(Clone, Debug)]
pub struct Generation {
    /// The prompt.
    pub prompt: String,
    /// Instead of the prompt: a conversation, which the assistant answers.
    pub conversation: Option<Conversation>,
    /// What time it is, for chat templates that write the date.
    pub now: Option<Now>,
    /// Tokens to add.
    pub max_tokens: usize,
    /// How they are sampled.
    pub sampling: Sampling,
    /// Texts that end the continuation, which ends before the first of them.
    pub stop: Vec<String>,
    /// Whether keys, values and states of earlier tokens are cached. Otherwise they are recomputed for each token.
    pub is_cached: bool,
}

impl Generation {
    /// With 100 tokens, sampled from the unmodified probabilities.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self {
            prompt: prompt.into(),
            conversation: None,
            now: None,
            max_tokens: 100,
            sampling: Sampling::default(),
            stop: Vec::new(),
            is_cached: true,
        }
    }
}

/// A continued text.
#[derive(Clone, Debug, PartialEq)]
pub struct Generated {
    /// The prompt, which a chat template may have written.
    pub prompt: String,
    /// The added text.
    pub text: String,
    /// Its tokens.
    pub tokens: Vec<i32>,
    /// Tokens of the prompt.
    pub num_prompt: usize,
    /// The number of unknown tokens in the prompt.
    pub num_unknown: usize,
}

impl Model {
    /// Continues a text. The same seed gives the same tokens, cached or not.
    ///
    /// A network with positions handles at most as many tokens as in training: when that many are reached, it continues
    /// from the later half of them. A recurrent network uses all of them.
    ///
    /// # Errors
    /// If the run is not a language model, a layer needs the whole text at once, the prompt has no tokens, or the
    /// output of the network is not finite.
    pub fn generate(&self, asked: &Generation) -> Result<Generated, Refusal> {
        let mut all = self.generate_all(std::slice::from_ref(asked), &mut |_, _| {})?;
        Ok(all.pop().expect("a text was asked for"))
    }

    /// Continues texts, several at a time, which does not change them. `told` gets what each is continued by as soon as it
    /// is certain, with the index of the text.
    ///
    /// # Errors
    /// As for one.
    pub fn generate_all(
        &self,
        asked: &[Generation],
        told: &mut (dyn FnMut(usize, &str) + Send),
    ) -> Result<Vec<Generated>, Refusal> {
        let tokenizer = self.continuing()?;
        let started = asked.iter().map(|asked| self.started(tokenizer, asked));
        let mut waiting = started
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .enumerate();
        let mut done: Vec<Option<Generated>> = vec![None; asked.len()];
        in_pool(|| {
            let mut running: Vec<(usize, Text<'_>)> = Vec::new();
            loop {
                let free = MOST_TEXTS - running.len();
                running.extend(waiting.by_ref().take(free));
                let (ended, others): (Vec<_>, Vec<_>) =
                    running.into_iter().partition(|(_, text)| text.is_done());
                running = others;
                let is_changed = !ended.is_empty();
                for (at, text) in ended {
                    done[at] = Some(text.ended(&mut |piece| told(at, piece)));
                }
                if running.is_empty() {
                    if is_changed {
                        continue;
                    }
                    break;
                }
                self.advance(&mut running)?;
                for (at, text) in &mut running {
                    text.told(&mut |piece| told(*at, piece));
                }
            }
            Ok(done.into_iter().flatten().collect())
        })
    }

    /// The tokenizer of a run that continues texts.
    fn continuing(&self) -> Result<&Tokenizer, Refusal> {
        let InputEncoder::Stream { tokenizer, .. } = &self.transforms.input else {
            return Err(self.not_of_text());
        };
        if self.plan.task.kind != TaskKind::NextToken {
            return Err(self.not_of_text());
        }
        if let Some(reason) = unfit(&self.plan.network) {
            let message = format!("run `{}` cannot continue texts: {reason}", self.plan.id);
            let help = "train a network that processes text from left to right, such as `transformer_lm` or an LSTM";
            return Err(Box::new(Diagnostic::error("generate", message).help(help)));
        }
        Ok(tokenizer)
    }

    fn started<'a>(
        &self,
        tokenizer: &'a Tokenizer,
        asked: &'a Generation,
    ) -> Result<Text<'a>, Refusal> {
        let prompt = match &asked.conversation {
            Some(conversation) => self.written(tokenizer, conversation, asked.now)?,
            None => asked.prompt.clone(),
        };
        let ends = match asked.conversation {
            Some(_) => tokenizer.turn_ends(),
            None => &[],
        };
        let encoded = tokenizer.encode(&prompt);
        let context = encoded.map_err(|error| Box::new(error.to_diagnostic()))?;
        if context.is_empty() {
            let message = "the prompt has no tokens";
            let help = "pass at least one character or word with `--prompt`";
            return Err(Box::new(Diagnostic::error("usage", message).help(help)));
        }
        Ok(Text::new(tokenizer, asked, prompt, context, ends))
    }

    /// Adds a token to each text.
    fn advance(&self, texts: &mut [(usize, Text<'_>)]) -> Result<(), Refusal> {
        let InputEncoder::Stream { length, .. } = &self.transforms.input else {
            return Err(self.not_of_text());
        };
        let most = has_positions(&self.plan.network).then_some(*length);
        texts.iter_mut().for_each(|(_, text)| text.fit(most));
        let (mut tokens, mut caches) = (Vec::new(), Vec::new());
        for (_, text) in texts.iter_mut().filter(|(_, text)| text.asked.is_cached) {
            tokens.push(&text.context[text.seen..]);
            caches.push(&mut text.cache);
        }
        let cached = (self.network).next_outputs(&tokens, &mut caches, &self.device);
        let cached = cached.map_err(|error| -> Refusal {
            let message = format!("the device failed: {error}");
            Box::new(Diagnostic::error("device", message))
        })?;
        let mut cached = cached.into_iter();
        for (_, text) in texts {
            let scores = if text.asked.is_cached {
                cached.next().unwrap_or_default()
            } else {
                self.last_outputs(&text.context)
            };
            let Some(token) = text.sampler.next(&scores) else {
                let message = format!(
                    "the network of run `{}` outputs scores that are NaN",
                    self.plan.id
                );
                let help =
                    "use other weights with `--weights`, or train it with a lower learning rate";
                return Err(Box::new(Diagnostic::error("generate", message).help(help)));
            };
            text.push(token as i32);
        }
        Ok(())
    }

    /// A conversation as text, up to the start of the assistant's answer.
    pub(super) fn written(
        &self,
        tokenizer: &Tokenizer,
        conversation: &Conversation,
        now: Option<Now>,
    ) -> Result<String, Refusal> {
        let template = self.template(tokenizer)?;
        let written =
            Renderer::new(template, now).and_then(|renderer| renderer.render(conversation, true));
        written.map_err(|reason| -> Refusal {
            let message = format!("the chat template of run `{}` {reason}", self.plan.id);
            let help = "change the messages, or use a run with another template";
            Box::new(Diagnostic::error("generate", message).help(help))
        })
    }

    /// The chat template of a run.
    pub(super) fn template<'a>(
        &self,
        tokenizer: &'a Tokenizer,
    ) -> Result<&'a ChatTemplate, Refusal> {
        tokenizer.chat.as_ref().ok_or_else(|| -> Refusal {
            let message = format!("run `{}` has no chat template", self.plan.id);
            let help = "use a run whose `data.tokens.path` is beside a `chat_template.jinja` or a `tokenizer_config.json` with a `chat_template`, or use texts instead of conversations";
            Box::new(Diagnostic::error("generate", message).help(help))
        })
    }

    /// The output of the whole network after a text, computed as in training.
    fn last_outputs(&self, tokens: &[i32]) -> Vec<f32> {
        let num = tokens.len();
        let inputs = runner_network::batch::of_shape(
            Values::Tokens(tokens.to_vec()),
            1,
            &[num],
            &self.device,
        );
        let outputs = self.network.outputs(inputs);
        let last = outputs.narrow(0, num - 1, 1);
        last.into_data().iter::<f32>().collect()
    }

    pub(super) fn not_of_text(&self) -> Refusal {
        let what = match self.plan.task.kind {
            TaskKind::MaskedToken => "it predicts hidden tokens, not the next one".to_owned(),
            TaskKind::NextToken => "its tokens are numbers without a known text".to_owned(),
            _ => format!(
                "it was trained for another task on {}",
                counted_shape(&self.plan.data.input.shape)
            ),
        };
        let message = format!("run `{}` cannot continue texts: {what}", self.plan.id);
        let help = match self.plan.task.kind {
            TaskKind::Generation => {
                "pass `--num` and `--out` instead of a prompt: it generates items from noise"
            }
            _ => {
                "use a run that predicts the next token of `type = \"text\"` data; use `runner predict` for other runs"
            }
        };
        Box::new(Diagnostic::error("generate", message).help(help))
    }
}

fn counted_shape(shape: &[usize]) -> String {
    format!("items of {}", counted(shape.iter().product(), "value"))
}
