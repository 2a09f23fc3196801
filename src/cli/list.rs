//! `runner list`: the runs of a results folder.

use super::ListArgs;
use super::output::Output;
use super::tell::Teller;
use crate::ops::{self, List};
use runner_core::diagnostic::counted;
use runner_report::console::Mode;
use runner_report::report::list::{Form, Query};

/// Lists the runs of one experiment's folder, or of every experiment in a results folder.
pub fn list(args: &ListArgs, output: &mut Output) -> u8 {
    let options = List {
        folder: args.folder.clone(),
        query: Query {
            filter: args.filter.clone(),
            sort: args.sort.clone(),
            is_reversed: args.reverse,
            columns: args.columns.clone(),
            group: args.group.clone(),
            offset: 0,
            limit: args.limit,
        },
        all: args.all,
        form: match (args.json, args.csv) {
            (true, _) => Form::Json,
            (_, true) => Form::Csv,
            _ => Form::Table {
                width: Output::table_width(),
            },
        },
    };
    let teller = Teller::new(Mode::Normal);
    let listing = match ops::list(&options, &|progress| teller.tell(progress)) {
        Ok(listing) => listing,
        Err(error) => return output.fail(&error),
    };
    let text = &listing.listed.text;
    if !text.is_empty() {
        output.print(text);
    } else if let Some(filter) = &args.filter {
        output.say(&format!(
            "no run matches `{filter}`, of {}",
            counted(listing.num_runs, "run")
        ));
    }
    listing
        .listed
        .notes
        .iter()
        .for_each(|note| output.say(note));
    listing.exit_code()
}
