//! `runner lr-find`: a learning rate range test.

use super::output::Output;
use super::tell::Teller;
use super::{LrFindArgs, OK};
use crate::ops::{self, Ended, LrFind, LrFound, Progress};
use runner_report::console::Mode;
use runner_report::rates::{RatePlot, page, plot};

/// `runner lr-find`
pub fn lr_find(args: &LrFindArgs, output: &mut Output) -> u8 {
    let files = [&args.svg, &args.html].map(|path| {
        let path = path.as_deref();
        path.map(|path| args.spec.destination(path, args.force))
            .transpose()
    });
    let files = match files {
        [Ok(plot), Ok(page)] => [plot, page],
        [Err(error), _] | [_, Err(error)] => return output.fail(&error),
    };
    let options = LrFind {
        trial: args.trial.clone(),
        min: args.min,
        max: args.max,
        steps: args.steps,
        ..LrFind::new(args.spec.experiment())
    };
    let teller = Teller::new(Mode::Normal);
    let sink = |progress: Progress<'_>| teller.tell(progress);
    let found = match ops::lr_find(&options, &sink) {
        Ok(found) => found,
        Err(error) => return output.fail(&error),
    };
    let drawn = RatePlot {
        run: &found.run,
        device: &found.device,
        points: &found.points,
        suggestions: &suggestions(&found),
    };
    let draw: [fn(&RatePlot<'_>) -> String; 2] = [plot, page];
    for (file, draw) in files.iter().zip(draw) {
        if let Some(file) = file
            && let Err(error) = file.whole(draw(&drawn).as_bytes())
        {
            return output.fail(&error);
        }
    }
    if args.json {
        output.print(&serde_json::to_string(&found).unwrap_or_default());
    } else {
        show(&found, output);
    }
    OK
}

/// The suggested learning rates, with how each was found.
fn suggestions(found: &LrFound) -> Vec<(&'static str, f64)> {
    let both = [
        ("steepest descent", found.steepest),
        ("a tenth of the minimum", found.tenth_of_minimum),
    ];
    let known = both.into_iter();
    known.filter_map(|(how, rate)| Some((how, rate?))).collect()
}

fn show(found: &LrFound, output: &mut Output) {
    let num = found.points.len();
    let last = found.points.last().map_or(0.0, |point| point.learning_rate);
    output.say(&format!(
        "{num} updates of `{}` on {}, up to a learning rate of {last:.2e}{}",
        found.run,
        found.device,
        match found.ended {
            Ended::Completed => "; the loss has not diverged",
            Ended::Diverged => ", where the loss has diverged",
            Ended::NotFinite => ", after which the loss is infinite or NaN",
        }
    ));
    let suggestions = suggestions(found);
    if suggestions.is_empty() {
        output.say("the loss did not fall by more than its noise at any learning rate, so none is suggested");
    }
    for (how, rate) in suggestions {
        output.print(&format!("learning_rate = {rate:.2e}  # {how}"));
    }
}
