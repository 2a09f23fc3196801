//! `runner render`: the experiment as one file, with the origin of each value.

use super::output::Output;
use super::{OK, RenderArgs};
use crate::error::Error;
use crate::ops::{default_name, open};
use runner_core::plan;
use runner_core::spec::render;

/// `runner render`
pub fn render(args: &RenderArgs, output: &mut Output) -> u8 {
    let document = match open(&args.spec.experiment()) {
        Ok(document) => document,
        Err(error) => return output.fail(&error),
    };
    let (mut root, axes) = match plan::put_together(&document, args.trial.as_deref(), None) {
        Ok(found) => found,
        Err(diagnostics) => {
            return output.fail(&Error::experiment(&document.sources, diagnostics));
        }
    };
    if args.defaults {
        let axes = if args.trial.is_some() {
            &[]
        } else {
            axes.as_slice()
        };
        root = render::with_defaults(&root, axes);
    }
    let name = default_name(&args.spec.spec);
    output.print(&render::render(&document, &root, &axes, &name));
    OK
}
