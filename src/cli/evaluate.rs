//! `runner evaluate`.

use std::path::PathBuf;

use clap::Args;

use super::output::Output;
use super::predict::{ItemsArgs, ModelArgs};
use super::tell::Teller;
use super::{FAILED, OK};
use crate::ops::{self, Evaluate, Progress};
use runner_core::diagnostic::Diagnostic;
use runner_core::record::write_whole;
use runner_core::show::plain_io_error;
use runner_report::console::Mode;
use runner_report::report::assessment;

#[derive(Args)]
pub(super) struct EvaluateArgs {
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    items: ItemsArgs,
    /// The array of targets, or the folder of masks, if they are not next to the inputs
    #[arg(long, value_name = "PATH", conflicts_with = "split")]
    targets: Option<PathBuf>,
    /// Compare with another run on the same items
    #[arg(long, value_name = "RUN")]
    against: Option<PathBuf>,
    /// Print everything as one JSON object
    #[arg(long)]
    json: bool,
    /// Also write an HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Evaluates and prints.
pub(super) fn evaluate(args: &EvaluateArgs, output: &mut Output) -> u8 {
    let teller = Teller::new(Mode::Normal);
    let sink = |progress: Progress<'_>| teller.tell(progress);
    let found = args.items.asked().and_then(|(asked, copied)| {
        let asked = Evaluate {
            asked,
            against: args.against.clone(),
            targets: args.targets.clone(),
            edges: args.items.edges.clone(),
            kind: args.items.kind(&copied),
            skips_bad: args.items.on_bad_item == "skip",
            ignore: args.items.ignore.clone(),
            batch_size: args.items.batch_size,
            options: args.model.options(),
            ..Evaluate::new(&args.model.run, "")
        };
        ops::evaluate(&asked, &sink)
    });
    drop(teller);
    let found = match found {
        Ok(found) => found,
        Err(error) => return output.fail(&error),
    };
    if args.json {
        output.print(&serde_json::to_string_pretty(&found).unwrap_or_default());
    } else {
        output.print_fitted(&assessment::text(&found, Output::table_width()));
    }
    if let Some(path) = &args.html {
        if let Err(e) = write_whole(path, assessment::html(&found).as_bytes()) {
            let message = format!("cannot write `{}`: {}", path.display(), plain_io_error(&e));
            output.refuse(Diagnostic::error("output", message));
            return FAILED;
        }
        output.say(&format!("page: {}", path.display()));
    }
    OK
}
