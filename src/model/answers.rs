//! The answers of a language model to questions: which choice is the most probable, what it continues a prompt with, or
//! how probable a text is.

mod texts;

use super::{Generation, Model, Refusal, in_pool};
use runner_core::data::Values;
use runner_core::data::encode::InputEncoder;
use runner_core::data::encode::tokenizer::Tokenizer;
use runner_core::diagnostic::Diagnostic;
use runner_core::predict::{
    Against, Context, Difference, Measure, OnlyRight, Question, QuestionKind, Sampling,
};
use runner_core::spec::task::TaskKind;
use runner_network::batch;
use runner_network::stepwise::unfit;
use runner_statistics::{mcnemar, percentile_interval, resample};

use super::assess::{LEVEL, NUM_RESAMPLES};
use texts::Read;

/// The metrics of choices: whether the right one has the largest log probability; the same divided by its characters,
/// by its bytes, and by its tokens.
const OF_CHOICES: [&str; 4] = ["acc", "acc_norm", "acc_bytes", "acc_tokens"];
/// The metric of answers.
const OF_ANSWERS: [&str; 1] = ["exact_match"];

/// The results of some questions.
#[derive(Clone, Debug)]
pub struct Answered {
    results: Results,
    /// Texts that were longer than an item, whose start was cut off.
    pub num_cut: u64,
}

/// The result of each question.
#[derive(Clone, Debug)]
enum Results {
    /// For each question, 1 for each metric by which it is answered right, and otherwise 0.
    Right(&'static [&'static str], Vec<Vec<f64>>),
    /// For each text, how probable it is.
    Read(Vec<Read>),
}

/// The log probability of a text after another one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Likelihood {
    /// The sum over its tokens, each given all tokens before it.
    pub sum: f64,
    /// Its tokens.
    pub num_tokens: usize,
    /// Whether both together are longer than an item, so that the start was cut off.
    pub is_cut: bool,
}

/// What precedes a choice.
enum Before<'a> {
    /// A text, which a space follows unless it ends with one.
    Text(&'a str),
    /// The beginning of an assistant's message, as a chat template writes it.
    Prompt(String),
}

/// How probable a token is after others.
#[derive(Clone, Copy, Debug)]
struct Probable {
    /// The logarithm of its probability.
    log: f64,
    /// Whether no token is more probable.
    is_first: bool,
}

impl Likelihood {
    fn of(continuation: &Continuation, tokens: &[Probable]) -> Self {
        Self {
            sum: tokens.iter().map(|token| token.log).sum(),
            num_tokens: tokens.len(),
            is_cut: continuation.is_cut,
        }
    }
}

/// A context and the text after it, as tokens.
struct Continuation {
    tokens: Vec<i32>,
    /// The first token of the text.
    first: usize,
    is_cut: bool,
}

impl Answered {
    /// Questions so far.
    pub fn num_items(&self) -> usize {
        match &self.results {
            Results::Right(_, items) => items.len(),
            Results::Read(texts) => texts.len(),
        }
    }

    /// The number of resamples for intervals: none of a single item, which shows no spread.
    pub fn num_resamples(&self) -> usize {
        if self.num_items() > 1 {
            NUM_RESAMPLES
        } else {
            0
        }
    }

    /// The metrics with each item resampled so many times.
    fn values(&self, counts: &[u32]) -> Vec<(&'static str, f64)> {
        match &self.results {
            Results::Right(names, items) => {
                let num: f64 = counts.iter().map(|count| f64::from(*count)).sum();
                let of = |at: usize| {
                    let items = items.iter().zip(counts);
                    items
                        .map(|(item, count)| item[at] * f64::from(*count))
                        .sum::<f64>()
                };
                let names = names.iter().enumerate();
                names.map(|(at, name)| (*name, of(at) / num)).collect()
            }
            Results::Read(texts) => texts::metrics(texts, counts),
        }
    }

    /// The metrics of each resample.
    fn resampled(&self) -> Vec<Vec<(&'static str, f64)>> {
        let num = self.num_items();
        let all = 0..self.num_resamples() as u64;
        all.map(|at| self.values(&resample(num, at))).collect()
    }

    /// Each metric: the fraction of right answers, or how probable the texts are.
    pub fn metrics(&self) -> Vec<Measure> {
        let resampled = self.resampled();
        let all = self.values(&vec![1; self.num_items()]).into_iter();
        let each = all.enumerate().map(|(at, (name, value))| Measure {
            name: name.to_owned(),
            value,
            interval: percentile_interval(
                resampled.iter().map(|values| values[at].1).collect(),
                LEVEL,
            ),
        });
        each.collect()
    }

    /// The comparison with another model's answers to the same questions.
    pub fn against(&self, other: &Self, run: String) -> Against {
        let (ours, theirs) = (self.resampled(), other.resampled());
        let whole = vec![1; self.num_items()];
        let values = self.values(&whole).into_iter().zip(other.values(&whole));
        let has_same = match (&self.results, &other.results) {
            (Results::Read(ours), Results::Read(theirs)) => texts::have_same_tokens(ours, theirs),
            _ => true,
        };
        let metrics = values
            .enumerate()
            .filter(|(_, ((name, _), _))| has_same || name.contains("byte"))
            .map(|(at, ((name, value), (_, other)))| {
                let differences = ours.iter().zip(&theirs);
                let differences = differences.map(|(a, b)| a[at].1 - b[at].1);
                Difference {
                    name: name.to_owned(),
                    value,
                    other,
                    interval: percentile_interval(differences.collect(), LEVEL),
                }
            });
        let metrics = metrics.collect();
        let right = match (&self.results, &other.results) {
            (Results::Right(_, ours), Results::Right(_, theirs)) => {
                let num = |first: f64, second: f64| {
                    let pairs = ours.iter().zip(theirs);
                    let found = pairs.filter(|(a, b)| a[0] == first && b[0] == second);
                    found.count() as u64
                };
                Some(OnlyRight {
                    both: num(1.0, 1.0),
                    first: num(1.0, 0.0),
                    other: num(0.0, 1.0),
                    neither: num(0.0, 0.0),
                    p: mcnemar(num(1.0, 0.0), num(0.0, 1.0)),
                })
            }
            _ => None,
        };
        Against {
            run,
            metrics,
            right,
        }
    }
}

impl Model {
    /// Answers questions, which all have choices or none.
    ///
    /// The text of a choice follows its context after a space. Its log probability is the sum over its tokens, each
    /// given all tokens before it. An answer without choices is the first line of the most probable continuation.
    ///
    /// # Errors
    /// If the run is not a language model, a choice is longer than an item, or a context has no tokens.
    pub fn answer(&self, questions: &[Question]) -> Result<Answered, Refusal> {
        self.of_text()?;
        if questions
            .iter()
            .any(|question| question.kind == QuestionKind::Text)
        {
            return self.read(questions);
        }
        let at = |question: &Question, error| at_line(question.line, error);
        // All choices are prepared first: those of several questions are computed together.
        let (mut continuations, mut asked) = (Vec::new(), Vec::new());
        for question in questions {
            match &question.kind {
                QuestionKind::Choice { choices, .. } => {
                    let context = self.prompt(&question.context);
                    let context = context.map_err(|error| at(question, error))?;
                    for choice in choices {
                        let tokens = self.continuation(&context, choice);
                        continuations.push(tokens.map_err(|error| at(question, error))?);
                    }
                }
                QuestionKind::Answer(answer) => {
                    let generation = self.asked(&question.context, answer);
                    asked.push(generation.map_err(|error| at(question, error))?);
                }
                QuestionKind::Text => {}
            }
        }
        let likelihoods = in_pool(|| self.together(&continuations));
        let mut likelihoods = likelihoods.into_iter();
        let mut made = self.generate_all(&asked, &mut |_, _| {})?.into_iter();
        let (mut names, mut num_cut) = (&OF_ANSWERS[..], 0);
        let mut items = Vec::with_capacity(questions.len());
        for question in questions {
            let right = match &question.kind {
                QuestionKind::Choice { choices, right } => {
                    names = &OF_CHOICES;
                    let each: Vec<_> = likelihoods.by_ref().take(choices.len()).collect();
                    num_cut += each.iter().filter(|one| one.is_cut).count() as u64;
                    chosen(choices, &each).map(|at| at == *right).to_vec()
                }
                QuestionKind::Answer(answer) => {
                    let made = made.next().map(|made| made.tokens).unwrap_or_default();
                    vec![self.is_answer(&made, answer)?]
                }
                QuestionKind::Text => Vec::new(),
            };
            let right = right.into_iter().map(|is| f64::from(u8::from(is)));
            items.push(right.collect());
        }
        Ok(Answered {
            results: Results::Right(names, items),
            num_cut,
        })
    }

    /// The text before a choice: for a conversation, up to the start of the assistant's message.
    fn prompt<'a>(&self, context: &'a Context) -> Result<Before<'a>, Refusal> {
        Ok(match context {
            Context::Text(text) => Before::Text(text),
            Context::Chat(conversation) => {
                let (tokenizer, _) = self.of_text()?;
                Before::Prompt(self.written(tokenizer, conversation, None)?)
            }
        })
    }

    /// The most probable continuation, as far as it is compared with an answer.
    fn asked(&self, context: &Context, answer: &str) -> Result<Generation, Refusal> {
        /// Tokens beyond those of the answer, so that a longer one is seen.
        const MORE: usize = 8;
        let (tokenizer, _) = self.of_text()?;
        let encoded = tokenizer.encode(answer);
        let tokens = encoded.map_err(|error| -> Refusal { Box::new(error.to_diagnostic()) })?;
        let generation = match context {
            Context::Text(text) => Generation::new(text.clone()),
            Context::Chat(conversation) => Generation {
                conversation: Some(conversation.clone()),
                ..Generation::new("")
            },
        };
        Ok(Generation {
            max_tokens: 2 * tokens.len() + MORE,
            sampling: Sampling {
                temperature: 0.0,
                ..Sampling::default()
            },
            ..generation
        })
    }

    /// The tokenizer of a model that continues texts, and the tokens of its items.
    fn of_text(&self) -> Result<(&Tokenizer, usize), Refusal> {
        let InputEncoder::Stream {
            tokenizer, length, ..
        } = &self.transforms.input
        else {
            return Err(self.not_of_text());
        };
        if self.plan.task.kind != TaskKind::NextToken || !self.meaning.has_probabilities() {
            return Err(self.not_of_text());
        }
        match unfit(&self.plan.network) {
            None => Ok((tokenizer, *length)),
            Some(reason) => {
                let message = format!("run `{}` cannot continue texts: {reason}", self.plan.id);
                let help = "use a network that processes text from left to right, such as `llama`";
                Err(Box::new(Diagnostic::error("evaluate", message).help(help)))
            }
        }
    }

    /// The log probability of a text after a context. They are joined by a space, unless the context ends with white
    /// space.
    ///
    /// # Errors
    /// If the run is not a language model, the text has no tokens or more than an item, or nothing precedes it.
    pub fn likelihood(&self, context: &str, text: &str) -> Result<Likelihood, Refusal> {
        let continuation = self.continuation(&Before::Text(context), text)?;
        Ok(Likelihood::of(
            &continuation,
            &self.likelihood_of(&[&continuation])[0],
        ))
    }

    /// The log probabilities of texts after contexts, as [`likelihood`](Self::likelihood) gives them except for rounding:
    /// those of similar lengths are computed together.
    ///
    /// # Errors
    /// As for one.
    pub fn likelihoods(&self, all: &[(&str, &str)]) -> Result<Vec<Likelihood>, Refusal> {
        let each = all
            .iter()
            .map(|(context, text)| self.continuation(&Before::Text(context), text));
        let each = each.collect::<Result<Vec<_>, _>>()?;
        Ok(in_pool(|| self.together(&each)))
    }

    /// The tokens of a text after a context.
    fn continuation(&self, before: &Before<'_>, text: &str) -> Result<Continuation, Refusal> {
        let (tokenizer, length) = self.of_text()?;
        let refuse = |message: String, help: &str| {
            Err::<Continuation, Refusal>(Box::new(
                Diagnostic::error("evaluate", message).help(help),
            ))
        };
        let encode = |text: &str| {
            let tokens = tokenizer.encode(text);
            tokens.map_err(|error| -> Refusal { Box::new(error.to_diagnostic()) })
        };
        // Spaces at the end of a context belong to the tokens of what follows.
        let (trimmed, spaces) = match before {
            Before::Text(context) => {
                let trimmed = context.trim_end();
                match &context[trimmed.len()..] {
                    "" => (trimmed, " "),
                    spaces => (trimmed, spaces),
                }
            }
            Before::Prompt(prompt) => (prompt.as_str(), ""),
        };
        let before = encode(trimmed)?;
        let mut tokens = encode(&format!("{trimmed}{spaces}{text}"))?;
        let mut first = before.len().min(tokens.len());
        if first == 0 {
            let Some(start) = tokenizer.separator() else {
                return refuse(
                    "the context has no tokens, and the run has no `separator` to begin a text with".into(),
                    "write a context, or use a run whose `data.tokens` have a `separator`",
                );
            };
            tokens.insert(0, start);
            first = 1;
        }
        let num_tokens = tokens.len() - first;
        if num_tokens == 0 {
            return refuse(format!("`{text}` has no tokens"), "write another text");
        }
        if num_tokens > length {
            return refuse(
                format!("`{text}` has {num_tokens} tokens, but the items of the run have {length}"),
                "use shorter texts, or a run with a larger `data.tokens.length`",
            );
        }
        let cut = tokens.len().saturating_sub(length + 1);
        tokens.drain(..cut);
        Ok(Continuation {
            first: first - cut,
            tokens,
            is_cut: cut > 0,
        })
    }

    /// The log probabilities of continuations, in their order.
    fn together(&self, all: &[Continuation]) -> Vec<Likelihood> {
        let each = all.iter().zip(self.each_token(all));
        each.map(|(one, tokens)| Likelihood::of(one, &tokens))
            .collect()
    }

    /// How probable each token of continuations is, in their order.
    fn each_token(&self, all: &[Continuation]) -> Vec<Vec<Probable>> {
        /// Outputs that are held at a time: 128 MiB.
        const MOST_OUTPUTS: usize = 32 << 20;
        /// More texts at a time gain nothing.
        const MOST_TEXTS: usize = 32;
        let num_outputs = self.plan.network.items.vocabulary.unwrap_or(1);
        let mut order: Vec<usize> = (0..all.len()).collect();
        // Stable: what is computed together is the same each time.
        order.sort_by_key(|at| all[*at].tokens.len());
        let mut found = vec![Vec::new(); all.len()];
        let mut rest = order.as_slice();
        while !rest.is_empty() {
            let fits = |num: &usize| {
                let longest = all[rest[num - 1]].tokens.len();
                num * longest * num_outputs <= MOST_OUTPUTS
            };
            let num = (2..=rest.len().min(MOST_TEXTS))
                .take_while(fits)
                .last()
                .unwrap_or(1);
            let (these, others) = rest.split_at(num);
            let texts: Vec<&Continuation> = these.iter().map(|at| &all[*at]).collect();
            for (at, tokens) in these.iter().zip(self.likelihood_of(&texts)) {
                found[*at] = tokens;
            }
            rest = others;
        }
        found
    }

    /// How probable the tokens of continuations are, computed together. Shorter ones are padded at their end, which the network
    /// sees only after them.
    fn likelihood_of(&self, texts: &[&Continuation]) -> Vec<Vec<Probable>> {
        let padding = self
            .transforms
            .input
            .tokenizer()
            .map_or(0, Tokenizer::padding);
        let length = texts
            .iter()
            .map(|text| text.tokens.len() - 1)
            .max()
            .unwrap_or(1);
        let mut inputs = Vec::with_capacity(texts.len() * length);
        for text in texts {
            let before = inputs.len();
            inputs.extend(&text.tokens[..text.tokens.len() - 1]);
            inputs.resize(before + length, padding);
        }
        let inputs = batch::of_shape(Values::Tokens(inputs), texts.len(), &[length], &self.device);
        // One row for each position.
        let outputs = self.network.outputs(inputs);
        let of_text = |(at, text): (usize, &&Continuation)| {
            let num_tokens = text.tokens.len() - text.first;
            let outputs = outputs
                .clone()
                .narrow(0, at * length + text.first - 1, num_tokens);
            let logits: Vec<f64> = outputs.into_data().iter::<f64>().collect();
            let rows = logits.chunks_exact(logits.len() / num_tokens);
            let each = rows.zip(&text.tokens[text.first..]).map(|(row, token)| {
                let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = row.iter().map(|x| (x - most).exp()).sum();
                let own = row[*token as usize];
                Probable {
                    log: own - most - sum.ln(),
                    is_first: own >= most,
                }
            });
            each.collect()
        };
        texts.iter().enumerate().map(of_text).collect()
    }

    /// Whether the first line of a continuation is an answer.
    fn is_answer(&self, made: &[i32], answer: &str) -> Result<bool, Refusal> {
        let (tokenizer, _) = self.of_text()?;
        let is_end = |token: &i32| {
            tokenizer.separator() == Some(*token) || tokenizer.turn_ends().contains(token)
        };
        let tokens = match made.split_last() {
            Some((last, others)) if is_end(last) => others,
            _ => made,
        };
        let text = tokenizer.decode(tokens);
        let line = text.trim_start().lines().next().unwrap_or_default();
        Ok(line.trim() == answer.trim())
    }
}

/// The refusal of a question of a file.
fn at_line(line: u64, mut error: Refusal) -> Refusal {
    error.message = format!("line {line}: {}", error.message);
    error
}

/// The choice by each metric: the first of equal ones.
fn chosen(choices: &[String], each: &[Likelihood]) -> [usize; 4] {
    let by = |size: &dyn Fn(usize) -> usize| {
        let score = |at: usize| each[at].sum / size(at) as f64;
        (1..each.len()).fold(
            0,
            |best, at| if score(at) > score(best) { at } else { best },
        )
    };
    [
        by(&|_| 1),
        by(&|at| choices[at].chars().count()),
        by(&|at| choices[at].len()),
        by(&|at| each[at].num_tokens),
    ]
}
