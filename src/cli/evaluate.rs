//! `runner evaluate`.

use std::path::PathBuf;

use clap::Args;

use super::OK;
use super::output::Output;
use super::predict::{ItemsArgs, ModelArgs};
use super::tell::Teller;
use crate::ops::place::{File, apart};
use crate::ops::{self, Evaluate, Predict, Progress};
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
    /// Replace an existing page
    #[arg(long, requires = "html")]
    force: bool,
}

/// Evaluates and prints.
pub(super) fn evaluate(args: &EvaluateArgs, output: &mut Output) -> u8 {
    let page = args.html.as_deref();
    let page = match page.map(|path| File::new(path, args.force)).transpose() {
        Ok(page) => page,
        Err(error) => return output.fail(&error),
    };
    let teller = Teller::new(Mode::Normal);
    let sink = |progress: Progress<'_>| teller.tell(progress);
    let model = Predict {
        options: args.model.options(),
        ..Predict::new(&args.model.run, "")
    };
    let found = args.items.asked(&model).and_then(|(asked, copied)| {
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
        if let Some(page) = &args.html {
            let read = [
                asked.asked.path(),
                asked.targets.as_deref(),
                asked.edges.as_deref(),
            ];
            apart(page, read.into_iter().flatten())?;
        }
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
    if let (Some(page), Some(path)) = (page, &args.html) {
        if let Err(error) = page.whole(assessment::html(&found).as_bytes()) {
            return output.fail(&error);
        }
        output.say(&format!("page: {}", path.display()));
    }
    OK
}
