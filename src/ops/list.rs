//! The runs of a results folder: filtered, sorted, grouped.

use std::path::PathBuf;

use super::tree::{none_there, pass_over_experiment, pass_over_lost};
use super::{Progress, Sink, refresh_jobs};
use crate::error::{Error, FAILED, OK};
use runner_core::diagnostic::{Diagnostic, counted};
use runner_core::record::{ExperimentFolder, Index, State, unix_millis};
use runner_report::report::list::{self, Form, Listed, Query};

/// Which runs are listed, and in which form.
#[derive(Clone, Debug)]
pub struct List {
    /// A results folder, or the folder of one experiment.
    pub folder: PathBuf,
    /// The filter, the order and the columns.
    pub query: Query,
    /// Whether runs of earlier settings are listed too.
    pub all: bool,
    /// The form of the text.
    pub form: Form,
}

/// The selected runs.
#[derive(Debug)]
pub struct Listing {
    /// The text in the requested form, with notes.
    pub listed: Listed,
    /// The number of all runs, selected or not.
    pub num_runs: usize,
    /// Whether no run was skipped because it is damaged.
    pub is_whole: bool,
}

impl Listing {
    /// 1 if damaged runs were skipped.
    pub fn exit_code(&self) -> u8 {
        if self.is_whole { OK } else { FAILED }
    }
}

/// Lists the runs of one experiment's folder, or of every experiment in a results folder. Skipped runs are
/// reported as [`Progress::Step`].
///
/// # Errors
///
/// [`Error::Refused`] if there is no experiment, or the query is invalid or names a value that no run has.
///
/// ```
/// use burn_runner::ops::{self, List};
/// use burn_runner::report::list::{Form, Query};
///
/// let options = List {
///     folder: "results/nothing".into(),
///     query: Query::default(),
///     all: false,
///     form: Form::Json,
/// };
/// let error = ops::list(&options, &ops::quiet).unwrap_err();
/// assert_eq!(error.exit_code(), 2);
/// ```
pub fn list(options: &List, sink: &Sink<'_>) -> Result<Listing, Error> {
    let mut is_whole = true;
    let mut indexes = Vec::new();
    let mut num_earlier = 0;
    let experiments = ExperimentFolder::all(&options.folder);
    let are_lost = pass_over_lost(&options.folder, sink);
    if experiments.is_empty() && !are_lost {
        return Err(none_there(&options.folder));
    }
    is_whole &= !are_lost;
    for experiment in experiments {
        refresh_jobs(&experiment, sink);
        match Index::read(&experiment) {
            Ok(Some(index)) => {
                is_whole &= tell_left_out(&experiment, &index, sink);
                let index = if options.all {
                    match experiment.with_earlier(index) {
                        Ok(index) => index,
                        Err(e) => {
                            is_whole &= !pass_over_experiment(&experiment.0, &e, sink);
                            continue;
                        }
                    }
                } else {
                    num_earlier += experiment.num_earlier(&index);
                    index
                };
                indexes.push(index);
            }
            Ok(None) => {}
            Err(e) => is_whole &= !pass_over_experiment(&experiment.0, &e, sink),
        }
    }
    let listed = list::list(&indexes, &options.query, options.form, unix_millis());
    let mut listed = listed.map_err(|wrong| {
        Error::refused(Diagnostic::error("list", wrong.message).help(wrong.help))
    })?;
    if num_earlier > 0 {
        listed.notes.push(format!(
            "note: {} of earlier settings not shown; `--all` shows them",
            counted(num_earlier, "run")
        ));
    }
    Ok(Listing {
        listed,
        num_runs: indexes.iter().map(|index| index.runs.len()).sum(),
        is_whole,
    })
}

/// Reports which runs of an experiment are skipped; returns whether none of them is damaged.
fn tell_left_out(experiment: &ExperimentFolder, index: &Index, sink: &Sink<'_>) -> bool {
    let left_out = index.runs.iter().filter(|run| run.state.is_unreadable());
    let mut is_whole = true;
    for run in left_out {
        let folder = experiment.run(&run.id).0;
        sink(Progress::Step(&format!(
            "skipped {}: {}",
            folder.display(),
            run.message
        )));
        is_whole &= run.state != State::Unreadable;
    }
    is_whole
}
