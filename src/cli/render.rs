//! `runner render`: the experiment as one file, with the origin of each value.

use super::experiment::{open, show};
use super::output::Output;
use super::{OK, RenderArgs};
use crate::ops::default_name;
use runner_core::plan;
use runner_core::spec::render;

/// `runner render`
pub fn render(args: &RenderArgs, output: &mut Output) -> u8 {
    let document = match open(&args.spec, output) {
        Ok(document) => document,
        Err(code) => return code,
    };
    let (mut root, axes) = match plan::put_together(&document, args.trial.as_deref(), None) {
        Ok(found) => found,
        Err(diagnostics) => return show(&document.sources, &diagnostics, output),
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
