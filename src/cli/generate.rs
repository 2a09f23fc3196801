//! `runner generate`.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::builder::TypedValueParser;
use clap::{ArgGroup, Args};
use serde_json::json;

use super::OK;
use super::output::Output;
use super::predict::ModelArgs;
use super::tell::Teller;
use crate::error::Error;
use crate::model::Generation;
use crate::ops::{self, Generate, Progress, Samples};
use runner_core::data::encode::tokenizer::chat::{Conversation, Now};
use runner_core::diagnostic::{Diagnostic, Reason, counted};
use runner_core::predict::Sampling;
use runner_core::show::plain_io_error;
use runner_core::spec::plain_file;
use runner_report::console::Mode;

#[derive(Args)]
#[command(group = ArgGroup::new("what").args(["prompt", "messages", "out"]).required(true))]
pub(super) struct GenerateArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// The beginning of the text
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Answer the prompt as the user's message, written by the run's chat template
    #[arg(long, requires = "prompt")]
    chat: bool,
    /// Answer a conversation: a file with a JSON list of messages, each with `role` and `content`
    #[arg(long, value_name = "FILE")]
    messages: Option<PathBuf>,
    /// For a generator of items: where to write them: a file that ends in `.npy`, `.csv`, `.jsonl` or `.parquet`, or a
    /// folder for images, which ends in `/`
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// For a generator of items: how many
    #[arg(long, value_name = "N", default_value = "16", requires = "out", value_parser = clap::value_parser!(u64).range(1..=1 << 24).map(|n| n as usize))]
    num: usize,
    /// Overwrite an existing file
    #[arg(long, requires = "out")]
    force: bool,
    /// Tokens to add
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u64).range(1..=1 << 24).map(|n| n as usize))]
    max_tokens: usize,
    /// The divisor of the scores: below 1 favors probable tokens, 0 always takes the most probable one
    #[arg(long, value_name = "T", default_value = "1", value_parser = temperature)]
    temperature: f64,
    /// Sample only from the K most probable tokens
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..).map(|n| n as usize))]
    top_k: Option<usize>,
    /// Sample only from the most probable tokens whose probabilities add up to P
    #[arg(long, value_name = "P", value_parser = share)]
    top_p: Option<f64>,
    /// The seed of the sampler: the same seed gives the same text
    #[arg(long, value_name = "N", default_value = "0")]
    seed: u64,
    /// Recompute all earlier tokens for each token, instead of caching keys, values and states
    #[arg(long)]
    no_cache: bool,
    /// Print text and tokens as JSON
    #[arg(long)]
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

/// The conversation to answer, if one was asked for.
fn conversation(args: &GenerateArgs) -> Result<Option<Conversation>, Error> {
    /// Bytes of a file of messages.
    const MOST: u64 = 64 << 20;
    let refused = |message: String, help: &str| {
        Error::refused(Diagnostic::error("generate", message).help(help))
    };
    let Some(path) = &args.messages else {
        let message = json!([{ "role": "user", "content": args.prompt }]);
        return Ok(args.chat.then(|| Conversation::of(message).ok()).flatten());
    };
    let place = path.display();
    let bytes = plain_file::read(path, MOST).map_err(|e| {
        let message = format!("`{place}` cannot be read: {}", plain_io_error(&e));
        refused(
            message,
            "pass a file with a JSON list of messages to `--messages`",
        )
    })?;
    let text = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let text = text.ok_or_else(|| {
        refused(
            format!("`{place}` is larger than {} MiB", MOST >> 20),
            "pass fewer messages",
        )
    })?;
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
    let is_chat = conversation.is_some();
    let asked = Generate {
        options: args.model.options(),
        generation: Generation {
            max_tokens: args.max_tokens,
            sampling: Sampling {
                temperature: args.temperature,
                top_k: args.top_k,
                top_p: args.top_p,
                seed: args.seed,
            },
            is_cached: !args.no_cache,
            conversation,
            now: now(),
            ..Generation::new(args.prompt.as_deref().unwrap_or_default())
        },
        ..Generate::new(&args.model.run, "")
    };
    let teller = Teller::new(Mode::Normal);
    let generated = ops::generate(&asked, &|progress: Progress<'_>| teller.tell(progress));
    drop(teller);
    match generated {
        Ok(generated) => {
            if args.json {
                let object = json!({
                    "prompt": generated.prompt,
                    "text": generated.text,
                    "tokens": generated.tokens,
                    "seed": args.seed,
                });
                output.print(&object.to_string());
            } else {
                let shown = if is_chat { "" } else { &generated.prompt };
                output.print(&format!("{shown}{}", generated.text));
            }
            OK
        }
        Err(error) => output.fail(&error),
    }
}
