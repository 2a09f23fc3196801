//! Unknown verbs and arguments, with suggestions.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};

use super::Cli;
use runner_core::diagnostic::Diagnostic;
use runner_core::spec::remedy::{for_argument, for_verb};

/// The error for an unknown verb or argument; `None` for other errors, which clap words well.
pub fn refusal(error: &clap::Error, arguments: &[String]) -> Option<Diagnostic> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let root = Cli::command();
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let verb = text(ContextKind::InvalidSubcommand)?;
            let (name, command) = asked_for(&root, arguments);
            let verbs: Vec<String> = visible(command).map(str::to_owned).collect();
            let answer = for_verb(&name, &verb, &verbs);
            let help = answer.unwrap_or_else(|| format!("`{name} --help` lists its verbs"));
            let message = format!("`{name}` has no verb `{verb}`");
            Some(Diagnostic::error("usage", message).help(help))
        }
        ErrorKind::UnknownArgument => {
            let argument = text(ContextKind::InvalidArg)?;
            let (name, command) = asked_for(&root, arguments);
            // In a group of short flags, clap names the single unknown one.
            let written = arguments
                .iter()
                .find(|written| written.starts_with(&argument));
            let flags = flags(command);
            // Verbs without an experiment file have no edits of it, and others write no results.
            let has = |name: &str| flags.iter().any(|flag| flag == name);
            let written = with_value(written.unwrap_or(&argument), arguments);
            let takes_file = command.get_positionals().any(|it| it.get_id() == "spec");
            let answer = for_argument(&written, &flags)
                .filter(|answer| has("set") || !answer.contains("--set "))
                .filter(|answer| has("results") || !answer.contains("--results "))
                .filter(|answer| takes_file || !answer.contains("experiment file"));
            // What `run` calls so is not a key that ends in the same word.
            let of_run = of_run(&root, &argument, &flags);
            let help = of_run
                .or(answer)
                .unwrap_or_else(|| format!("`{name} --help` lists its arguments"));
            let message = if argument.starts_with('-') {
                format!("`{name}` has no flag `{argument}`")
            } else {
                format!("`{name}` takes no argument `{argument}`")
            };
            Some(Diagnostic::error("usage", message).help(help))
        }
        _ => None,
    }
}

/// Says that a flag is one of `runner run`, which this verb lacks: it selects or controls runs.
fn of_run(root: &Command, argument: &str, known: &[String]) -> Option<String> {
    /// Those that other verbs have too.
    const COMMON: [&str; 7] = ["set", "results", "quiet", "json", "verbose", "log", "help"];
    let name = argument.strip_prefix("--")?;
    let run = flags(root.find_subcommand("run")?);
    let is_one = !COMMON.contains(&name) && run.iter().any(|flag| flag == name);
    let is_known = known.iter().any(|known| known == name);
    (is_one && !is_known).then(|| format!("`--{name}` is a flag of `runner run`"))
}

/// A flag with the value that follows it: `--seed 3` as `--seed=3`.
fn with_value(flag: &str, arguments: &[String]) -> String {
    let at = arguments.iter().position(|argument| argument == flag);
    let next = at.and_then(|at| arguments.get(at + 1));
    match next.filter(|next| !flag.contains('=') && !next.starts_with('-')) {
        Some(value) if flag.starts_with("--") => format!("{flag}={value}"),
        _ => flag.to_owned(),
    }
}

fn visible(command: &Command) -> impl Iterator<Item = &str> {
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    verbs.map(Command::get_name)
}

/// The verb of a command line, as written, with its arguments.
fn asked_for<'a>(root: &'a Command, arguments: &[String]) -> (String, &'a Command) {
    let (mut name, mut command) = ("runner".to_owned(), root);
    for argument in arguments {
        if let Some(verb) = command.find_subcommand(argument) {
            name.push_str(&format!(" {argument}"));
            command = verb;
        }
    }
    (name, command)
}

fn flags(command: &Command) -> Vec<String> {
    let shown = command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set());
    let flags = shown.filter_map(|argument| argument.get_long());
    flags
        .chain(["help", "log", "verbose"])
        .map(str::to_owned)
        .collect()
}
