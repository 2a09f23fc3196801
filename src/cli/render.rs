//! `runner render`: the experiment as one file, with the origin of each value.

use super::output::Output;
use super::{OK, RenderArgs};
use crate::ops::{self, Render};

/// `runner render`
pub fn render(args: &RenderArgs, output: &mut Output) -> u8 {
    let options = Render {
        experiment: args.spec.experiment(),
        trial: args.trial.clone(),
        results: Some(args.results.clone()),
        defaults: args.defaults,
    };
    match ops::render(&options, &ops::quiet) {
        Ok(rendered) => {
            output.print(&rendered.text);
            OK
        }
        Err(error) => output.fail(&error),
    }
}
