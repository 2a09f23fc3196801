//! `runner generate`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::builder::TypedValueParser;
use clap::{ArgGroup, Args};
use serde_json::json;

use super::OK;
use super::output::{Output, Stdout};
use super::predict::ModelArgs;
use super::tell::Teller;
use crate::error::Error;
use crate::model::{Generated, Generation};
use crate::ops::{self, Generate, Progress, Samples};
use runner_core::data::encode::tokenizer::chat::{Conversation, Now};
use runner_core::diagnostic::{Diagnostic, Reason, counted, printable_lines};
use runner_core::predict::Sampling;
use runner_core::show::plain_io_error;
use runner_core::spec::plain_file;
use runner_report::console::Mode;

/// What is continued, which has no use for the flags of a generator of items. That they need `--out` is not enough: an
/// argument that conflicts with one that is there is never missing.
const TEXTS: [&str; 3] = ["prompt", "messages", "prompts"];

#[derive(Args)]
#[command(group = ArgGroup::new("what").args(["prompt", "messages", "prompts", "out"]).required(true))]
pub(super) struct GenerateArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// The beginning of the text
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Answer the prompt as the user's message, written by the run's chat template
    #[arg(long, requires = "prompt", conflicts_with_all = ["messages", "prompts", "out"])]
    chat: bool,
    /// Answer a conversation: a file with a JSON list of messages, each with `role` and `content`
    #[arg(long, value_name = "FILE")]
    messages: Option<PathBuf>,
    /// Continue the prompts of a file, several at a time: JSON lines, each a text, an object with `prompt`, or a
    /// conversation; or a text with a prompt in each line
    #[arg(long, value_name = "FILE")]
    prompts: Option<PathBuf>,
    /// For a generator of items: where to write them: a file that ends in `.npy`, `.csv`, `.jsonl` or `.parquet`, or a
    /// folder for images, which ends in `/`
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// For a generator of items: how many
    #[arg(long, value_name = "N", default_value = "16", requires = "out", conflicts_with_all = TEXTS, value_parser = clap::value_parser!(u64).range(1..=1 << 24).map(|n| n as usize))]
    num: usize,
    /// For a conditional generator: the class to generate items of, by default each in turn
    #[arg(long, value_name = "NAME", requires = "out", conflicts_with_all = TEXTS)]
    class: Option<String>,
    /// For a conditional generator: generate items for the targets of the items of this split, in their order
    #[arg(long, value_name = "SPLIT", requires = "out", conflicts_with = "class", conflicts_with_all = TEXTS, value_parser = ["train", "valid", "test"])]
    split: Option<String>,
    /// Overwrite an existing file
    #[arg(long, requires = "out", conflicts_with_all = TEXTS)]
    force: bool,
    /// Tokens to add
    #[arg(long, conflicts_with = "out", value_name = "N", default_value = "100", value_parser = clap::value_parser!(u64).range(1..=1 << 24).map(|n| n as usize))]
    max_tokens: usize,
    /// The divisor of the scores: below 1 favors probable tokens, 0 always takes the most probable one
    #[arg(long, conflicts_with = "out", value_name = "T", default_value = "1", value_parser = temperature)]
    temperature: f64,
    /// Sample only from the K most probable tokens
    #[arg(long, conflicts_with = "out", value_name = "K", value_parser = clap::value_parser!(u64).range(1..).map(|n| n as usize))]
    top_k: Option<usize>,
    /// Sample only from the most probable tokens whose probabilities add up to P
    #[arg(long, conflicts_with = "out", value_name = "P", value_parser = share)]
    top_p: Option<f64>,
    /// The seed of the sampler: the same seed gives the same text
    #[arg(long, value_name = "N", default_value = "0")]
    seed: u64,
    /// End before this text, which can be given several times
    #[arg(long, conflicts_with = "out", value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    stop: Vec<String>,
    /// Recompute all earlier tokens for each token, instead of caching keys, values and states
    #[arg(long, conflicts_with = "out")]
    no_cache: bool,
    /// Print text and tokens as JSON, one object in a line for each prompt
    #[arg(long, conflicts_with = "out")]
    json: bool,
}

fn temperature(text: &str) -> Result<f64, Reason> {
    let value = text.parse::<f64>().ok();
    value
        .filter(|value| (0.0..=100.0).contains(value))
        .ok_or_else(|| "expected a number from 0 to 100, such as 0.8".into())
}

fn share(text: &str) -> Result<f64, Reason> {
    let value = text.parse::<f64>().ok();
    value
        .filter(|value| *value > 0.0 && *value <= 1.0)
        .ok_or_else(|| "expected a probability above 0 and up to 1, such as 0.9".into())
}

/// The text of a file that a flag names.
fn text_of(path: &Path, flag: &str) -> Result<String, Error> {
    /// Bytes of a file of prompts or messages.
    const MOST: u64 = 64 << 20;
    let place = path.display();
    let refused = |message: String, help: String| {
        Error::refused(Diagnostic::error("generate", message).help(help))
    };
    let bytes = plain_file::read(path, MOST).map_err(|e| {
        let message = format!("`{place}` cannot be read: {}", plain_io_error(&e));
        refused(message, format!("pass an existing file to `--{flag}`"))
    })?;
    let bytes = bytes.ok_or_else(|| {
        refused(
            format!("`{place}` is larger than {} MiB", MOST >> 20),
            "divide it into several files".into(),
        )
    })?;
    let text = String::from_utf8(bytes);
    text.map_err(|_| refused(format!("`{place}` is not UTF-8"), "save it as UTF-8".into()))
}

/// The prompts of a file.
fn prompts(path: &Path, common: &Generation) -> Result<Vec<Generation>, Error> {
    let text = text_of(path, "prompts")?;
    let place = path.display();
    let is_json = path
        .extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("jsonl"));
    let lines = text.strip_prefix('\u{feff}').unwrap_or(&text).lines();
    let lines = (1..).zip(lines).filter(|(_, line)| !line.trim().is_empty());
    let prompts = lines.map(|(number, line)| {
        let of = |prompt: &str| Generation {
            prompt: prompt.to_owned(),
            ..common.clone()
        };
        if !is_json {
            return Ok(of(line));
        }
        let refused = |reason: String| {
            let help = "write a text in quotes, {\"prompt\": \"Once upon\"}, or {\"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]} in each line";
            let message = format!("`{place}:{number}`: {reason}");
            Error::refused(Diagnostic::error("generate", message).help(help))
        };
        let value: serde_json::Value = serde_json::from_str(line)
            .map_err(|e| refused(format!("invalid JSON at column {}", e.column())))?;
        if let Some(prompt) = value.as_str().or_else(|| value.get("prompt")?.as_str()) {
            if prompt.is_empty() {
                return Err(refused("the prompt is empty".into()));
            }
            return Ok(of(prompt));
        }
        Ok(Generation {
            conversation: Some(Conversation::of(value).map_err(refused)?),
            ..common.clone()
        })
    });
    let prompts = prompts.collect::<Result<Vec<_>, Error>>()?;
    if prompts.is_empty() {
        let message = format!("`{place}` has no prompts");
        let help = "write a prompt in each line";
        return Err(Error::refused(
            Diagnostic::error("generate", message).help(help),
        ));
    }
    Ok(prompts)
}

/// The conversation to answer, if one was asked for.
fn conversation(args: &GenerateArgs) -> Result<Option<Conversation>, Error> {
    let refused = |message: String, help: &str| {
        Error::refused(Diagnostic::error("generate", message).help(help))
    };
    let Some(path) = &args.messages else {
        let message = json!([{ "role": "user", "content": args.prompt }]);
        return Ok(args.chat.then(|| Conversation::of(message).ok()).flatten());
    };
    let place = path.display();
    let text = text_of(path, "messages")?;
    let found = Conversation::parse(&text).map_err(|reason| {
        let help = "write a list of messages, such as [{\"role\": \"user\", \"content\": \"Hello\"}], or an object with `messages` and `tools`";
        refused(format!("`{place}`: {reason}"), help)
    })?;
    Ok(Some(found))
}

/// The time, in UTC.
fn now() -> Option<Now> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Some(Now(since.as_secs().try_into().ok()?))
}

/// Writes generated items.
fn samples(args: &GenerateArgs, out: &Path, output: &mut Output) -> u8 {
    let asked = Samples {
        options: args.model.options(),
        num: args.num,
        class: args.class.clone(),
        split: args.split.clone(),
        seed: args.seed,
        force: args.force,
        ..Samples::new(&args.model.run, out)
    };
    let teller = Teller::new(Mode::Normal);
    let made = ops::samples(&asked, &|progress: Progress<'_>| teller.tell(progress));
    drop(teller);
    match made {
        Ok(()) => {
            output.say(&format!(
                "{} in {}",
                counted(args.num, "item"),
                out.display()
            ));
            OK
        }
        Err(error) => output.fail(&error),
    }
}

/// Continues a text and prints it with its beginning, or writes generated items.
pub(super) fn generate(args: &GenerateArgs, output: &mut Output) -> u8 {
    if let Some(out) = &args.out {
        return samples(args, out, output);
    }
    let conversation = match conversation(args) {
        Ok(conversation) => conversation,
        Err(error) => return output.fail(&error),
    };
    let common = Generation {
        max_tokens: args.max_tokens,
        sampling: Sampling {
            temperature: args.temperature,
            top_k: args.top_k,
            top_p: args.top_p,
            seed: args.seed,
        },
        stop: args.stop.clone(),
        is_cached: !args.no_cache,
        conversation,
        now: now(),
        ..Generation::new(args.prompt.as_deref().unwrap_or_default())
    };
    let generations = match &args.prompts {
        None => vec![common],
        Some(path) => match prompts(path, &common) {
            Ok(generations) => generations,
            Err(error) => return output.fail(&error),
        },
    };
    let asked = Generate {
        options: args.model.options(),
        generations,
        ..Generate::new(&args.model.run, "")
    };
    let teller = Teller::new(Mode::Normal);
    // A single text is shown as it is made.
    let is_single = asked.generations.len() == 1;
    let mut shown = Shown::new(is_single && !args.json, &asked.generations[0]);
    let told = &mut |_: usize, piece: &str| shown.piece(piece);
    let generated = ops::generate(&asked, told, &|progress: Progress<'_>| {
        teller.tell(progress)
    });
    drop(teller);
    match generated {
        Ok(generated) => {
            for (asked, generated) in asked.generations.iter().zip(&generated) {
                if args.json {
                    let object = json!({
                        "prompt": generated.prompt,
                        "text": generated.text,
                        "tokens": generated.tokens,
                        "seed": args.seed,
                    });
                    output.print(&object.to_string());
                } else if is_single {
                    shown.end(generated);
                } else {
                    let prompt = start(asked);
                    output.print(&format!("{prompt}{}\n", generated.text));
                }
            }
            OK
        }
        Err(error) => {
            shown.newline();
            output.fail(&error)
        }
    }
}

/// The beginning of what is printed: the prompt, but not a conversation.
fn start(asked: &Generation) -> &str {
    match asked.conversation {
        Some(_) => "",
        None => &asked.prompt,
    }
}

/// A text that is printed while it is made.
struct Shown<'a> {
    is_on: bool,
    start: Option<&'a str>,
    ends_line: bool,
}

impl<'a> Shown<'a> {
    fn new(is_on: bool, asked: &'a Generation) -> Self {
        Self {
            is_on,
            start: Some(start(asked)),
            ends_line: true,
        }
    }

    fn piece(&mut self, piece: &str) {
        if !self.is_on {
            return;
        }
        let start = self.start.take().unwrap_or_default();
        for text in [start, piece].into_iter().filter(|text| !text.is_empty()) {
            // Errors are kept, and reported in the end.
            let _ = Stdout.write_all(printable_lines(text).as_bytes());
            self.ends_line = text.ends_with('\n');
        }
        let _ = Stdout.flush();
    }

    /// The end of a text.
    fn end(&mut self, generated: &Generated) {
        if self.start.is_some() {
            self.piece("");
        }
        // As the text as a whole is printed.
        if !self.ends_line || generated.text.is_empty() && generated.prompt.is_empty() {
            let _ = Stdout.write_all(b"\n");
        }
        let _ = Stdout.flush();
    }

    /// The end of the line that a message would follow.
    fn newline(&mut self) {
        if self.is_on && !self.ends_line {
            let _ = Stdout.write_all(b"\n").and_then(|()| Stdout.flush());
        }
    }
}
