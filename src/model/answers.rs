//! The answers of a language model to questions: which choice is the most probable, or what it continues a prompt with.

use super::{Generation, Model, Refusal, in_pool};
use runner_core::data::Values;
use runner_core::data::encode::InputEncoder;
use runner_core::data::encode::tokenizer::Tokenizer;
use runner_core::diagnostic::Diagnostic;
use runner_core::predict::{
    Against, Difference, Measure, OnlyRight, Question, QuestionKind, Sampling,
};
use runner_core::spec::task::TaskKind;
use runner_network::batch;
use runner_network::stepwise::unfit;
use runner_statistics::{mcnemar, percentile_interval, resample};

use super::assess::{LEVEL, NUM_RESAMPLES};

/// The metrics of choices: whether the right one has the largest log probability; the same divided by its characters,
/// by its bytes, and by its tokens.
const OF_CHOICES: [&str; 4] = ["acc", "acc_norm", "acc_bytes", "acc_tokens"];
/// The metric of answers.
const OF_ANSWERS: [&str; 1] = ["exact_match"];

/// The results of some questions.
#[derive(Clone, Debug)]
pub struct Answered {
    names: &'static [&'static str],
    /// For each question, 1 for each metric by which it is answered right, and otherwise 0.
    items: Vec<Vec<f64>>,
    /// Texts that were longer than an item, whose start was cut off.
    pub num_cut: u64,
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
        self.items.len()
    }

    /// The resamples for intervals.
    pub fn num_resamples(&self) -> usize {
        NUM_RESAMPLES
    }

    /// The fraction of right answers by each metric.
    pub fn metrics(&self) -> Vec<Measure> {
        let each = self.names.iter().enumerate();
        let each = each.map(|(at, name)| {
            let values = self.items.iter().map(|item| item[at]);
            let (value, interval) = mean(&values.collect::<Vec<_>>());
            Measure {
                name: (*name).to_owned(),
                value,
                interval,
            }
        });
        each.collect()
    }

    /// The comparison with another model's answers to the same questions.
    pub fn against(&self, other: &Self, run: String) -> Against {
        let pairs = || self.items.iter().zip(&other.items);
        let metrics = self.names.iter().enumerate().map(|(at, name)| {
            let differences: Vec<f64> = pairs().map(|(a, b)| a[at] - b[at]).collect();
            let of = |answered: &Self| {
                let sum: f64 = answered.items.iter().map(|item| item[at]).sum();
                sum / answered.items.len() as f64
            };
            Difference {
                name: (*name).to_owned(),
                value: of(self),
                other: of(other),
                interval: mean(&differences).1,
            }
        });
        let num = |first: f64, second: f64| {
            let found = pairs().filter(|(a, b)| a[0] == first && b[0] == second);
            found.count() as u64
        };
        Against {
            run,
            metrics: metrics.collect(),
            right: Some(OnlyRight {
                both: num(1.0, 1.0),
                first: num(1.0, 0.0),
                other: num(0.0, 1.0),
                neither: num(0.0, 0.0),
                p: mcnemar(num(1.0, 0.0), num(0.0, 1.0)),
            }),
        }
    }
}

/// A mean with its bootstrap interval.
fn mean(values: &[f64]) -> (f64, Option<[f64; 2]>) {
    let num = values.len() as f64;
    let resampled = (0..NUM_RESAMPLES as u64).map(|at| {
        let counts = resample(values.len(), at);
        let sum: f64 = (counts.iter().zip(values))
            .map(|(count, value)| f64::from(*count) * value)
            .sum();
        sum / num
    });
    let interval = percentile_interval(resampled.collect(), LEVEL);
    (values.iter().sum::<f64>() / num, interval)
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
        in_pool(|| {
            let mut answered = Answered {
                names: &OF_ANSWERS,
                items: Vec::with_capacity(questions.len()),
                num_cut: 0,
            };
            // All choices are prepared first: those of several questions are computed together.
            let mut continuations = Vec::new();
            for question in questions {
                if let QuestionKind::Choice { choices, .. } = &question.kind {
                    for choice in choices {
                        let tokens = self.continuation(&question.context, choice);
                        continuations.push(tokens.map_err(|error| at_line(question.line, error))?);
                    }
                }
            }
            let mut likelihoods = self.together(&continuations).into_iter();
            for question in questions {
                let right = match &question.kind {
                    QuestionKind::Choice { choices, right } => {
                        answered.names = &OF_CHOICES;
                        let each: Vec<_> = likelihoods.by_ref().take(choices.len()).collect();
                        answered.num_cut += each.iter().filter(|one| one.is_cut).count() as u64;
                        chosen(choices, &each).map(|at| at == *right).to_vec()
                    }
                    QuestionKind::Answer(answer) => {
                        let right = self.continues_with(&question.context, answer);
                        vec![right.map_err(|error| at_line(question.line, error))?]
                    }
                };
                let right = right.into_iter().map(|is| f64::from(u8::from(is)));
                answered.items.push(right.collect());
            }
            Ok(answered)
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
        Ok(self.likelihood_of(&[&self.continuation(context, text)?])[0])
    }

    /// The log probabilities of texts after contexts, as [`likelihood`](Self::likelihood) gives them except for rounding:
    /// those of similar lengths are computed together.
    ///
    /// # Errors
    /// As for one.
    pub fn likelihoods(&self, all: &[(&str, &str)]) -> Result<Vec<Likelihood>, Refusal> {
        let each = all
            .iter()
            .map(|(context, text)| self.continuation(context, text));
        let each = each.collect::<Result<Vec<_>, _>>()?;
        Ok(in_pool(|| self.together(&each)))
    }

    /// The tokens of a text after a context.
    fn continuation(&self, context: &str, text: &str) -> Result<Continuation, Refusal> {
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
        let trimmed = context.trim_end();
        let spaces = match &context[trimmed.len()..] {
            "" => " ",
            spaces => spaces,
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
        /// Outputs that are held at a time: 128 MiB.
        const MOST_OUTPUTS: usize = 32 << 20;
        /// More texts at a time gain nothing.
        const MOST_TEXTS: usize = 32;
        let num_outputs = self.plan.network.items.vocabulary.unwrap_or(1);
        let mut order: Vec<usize> = (0..all.len()).collect();
        // Stable: what is computed together is the same each time.
        order.sort_by_key(|at| all[*at].tokens.len());
        let mut found = vec![Likelihood::default(); all.len()];
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
            for (at, likelihood) in these.iter().zip(self.likelihood_of(&texts)) {
                found[*at] = likelihood;
            }
            rest = others;
        }
        found
    }

    /// The log probabilities of continuations, computed together. Shorter ones are padded at their end, which the network
    /// sees only after them.
    fn likelihood_of(&self, texts: &[&Continuation]) -> Vec<Likelihood> {
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
                row[*token as usize] - most - sum.ln()
            });
            Likelihood {
                sum: each.sum(),
                num_tokens,
                is_cut: text.is_cut,
            }
        };
        texts.iter().enumerate().map(of_text).collect()
    }

    /// Whether the first line of the most probable continuation is an answer.
    fn continues_with(&self, context: &str, answer: &str) -> Result<bool, Refusal> {
        /// Tokens beyond those of the answer, so that a longer one is seen.
        const MORE: usize = 8;
        let (tokenizer, _) = self.of_text()?;
        let encoded = tokenizer.encode(answer);
        let tokens = encoded.map_err(|error| -> Refusal { Box::new(error.to_diagnostic()) })?;
        let made = self.generate(&Generation {
            max_tokens: 2 * tokens.len() + MORE,
            sampling: Sampling {
                temperature: 0.0,
                ..Sampling::default()
            },
            ..Generation::new(context)
        })?;
        let mut tokens = made.tokens.as_slice();
        if let Some((last, others)) = tokens.split_last()
            && tokenizer.separator() == Some(*last)
        {
            tokens = others;
        }
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
