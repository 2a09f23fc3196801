//! Text generation by a language model.

use super::{Model, Refusal, in_pool};
use runner_core::data::Values;
use runner_core::data::encode::InputEncoder;
use runner_core::data::encode::tokenizer::Tokenizer;
use runner_core::data::encode::tokenizer::chat::{Conversation, Now, Renderer};
use runner_core::diagnostic::{Diagnostic, counted};
use runner_core::predict::{Sampler, Sampling};
use runner_core::spec::task::TaskKind;
use runner_network::stepwise::{Cache, has_positions, unfit};

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
    /// If the run is not a language model, a layer needs the whole text at once, the prompt has no tokenss, or the
    /// output of the network is not finite.
    pub fn generate(&self, asked: &Generation) -> Result<Generated, Refusal> {
        in_pool(|| self.continued(asked))
    }

    fn continued(&self, asked: &Generation) -> Result<Generated, Refusal> {
        let InputEncoder::Stream {
            tokenizer, length, ..
        } = &self.transforms.input
        else {
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
        let prompt = match &asked.conversation {
            Some(conversation) => self.written(tokenizer, conversation, asked.now)?,
            None => asked.prompt.clone(),
        };
        let ends = match asked.conversation {
            Some(_) => tokenizer.turn_ends(),
            None => &[],
        };
        let encoded = tokenizer.encode(&prompt);
        let mut context = encoded.map_err(|error| Box::new(error.to_diagnostic()))?;
        if context.is_empty() {
            let message = "the prompt has no tokens";
            let help = "pass at least one character or word with `--prompt`";
            return Err(Box::new(Diagnostic::error("usage", message).help(help)));
        }
        let num_prompt = context.len();
        let is_unknown = |token: &&i32| tokenizer.unknown() == Some(**token);
        let num_unknown = context.iter().filter(is_unknown).count();
        let most = has_positions(&self.plan.network).then_some(*length);
        if let Some(most) = most {
            context.drain(..num_prompt.saturating_sub(most));
        }
        // The end of a turn may be the token for padding, too.
        let may_follow = |token: i32| ends.contains(&token) || tokenizer.is_text(token);
        let mut sampler = Sampler::new(asked.sampling, |token| may_follow(token as i32));
        let mut cache = Cache::default();
        // The first token that is not in the cache.
        let mut seen = 0;
        let mut tokens = Vec::with_capacity(asked.max_tokens.min(1 << 16));
        for _ in 0..asked.max_tokens {
            if most.is_some_and(|most| context.len() > most) {
                let half = context.len() - (most.unwrap_or(0) / 2).max(1);
                context.drain(..half);
                (cache, seen) = (Cache::default(), 0);
            }
            if !asked.is_cached {
                (cache, seen) = (Cache::default(), 0);
            }
            let scores = if asked.is_cached {
                let scores = self
                    .network
                    .next_outputs(&context[seen..], &mut cache, &self.device);
                seen = context.len();
                scores
            } else {
                self.last_outputs(&context)
            };
            let Some(token) = sampler.next(&scores) else {
                let message = format!(
                    "the network of run `{}` outputs scores that are NaN",
                    self.plan.id
                );
                let help =
                    "use other weights with `--weights`, or train it with a lower learning rate";
                return Err(Box::new(Diagnostic::error("generate", message).help(help)));
            };
            context.push(token as i32);
            tokens.push(token as i32);
            let is_end = ends.contains(&(token as i32));
            if is_end || tokenizer.separator() == Some(token as i32) {
                break;
            }
        }
        Ok(Generated {
            prompt,
            text: tokenizer.decode(&tokens),
            tokens,
            num_prompt,
            num_unknown,
        })
    }

    /// A conversation as text, up to the start of the assistant's answer.
    fn written(
        &self,
        tokenizer: &Tokenizer,
        conversation: &Conversation,
        now: Option<Now>,
    ) -> Result<String, Refusal> {
        let refuse = |message: String, help: &str| -> Refusal {
            Box::new(Diagnostic::error("generate", message).help(help))
        };
        let Some(template) = &tokenizer.chat else {
            let message = format!("run `{}` has no chat template", self.plan.id);
            let help = "use a run whose `data.tokens.path` is beside a `chat_template.jinja` or a `tokenizer_config.json` with a `chat_template`, or continue a text with `--prompt`";
            return Err(refuse(message, help));
        };
        let written =
            Renderer::new(template, now).and_then(|renderer| renderer.render(conversation, true));
        written.map_err(|reason| {
            let message = format!("the chat template of run `{}` {reason}", self.plan.id);
            refuse(
                message,
                "change the messages, or use a run with another template",
            )
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
