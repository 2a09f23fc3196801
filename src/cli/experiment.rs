//! From a path and `--set` to a plan, with warnings shown.

use super::SpecArgs;
use super::tell::Teller;
use crate::error::Error;
use crate::ops::{self, Planned};
use runner_report::console::Mode;

/// Reads, checks and plans an experiment file.
pub fn plan(args: &SpecArgs) -> Result<Planned, Error> {
    let teller = Teller::new(Mode::Normal);
    ops::plan(&args.experiment(), &|progress| teller.tell(progress))
}
