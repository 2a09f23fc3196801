//! The export of records to other programs.

mod mlflow;
mod pass;

use std::io::{self, Write};
use std::path::PathBuf;

use super::Sink;
use super::tree::{experiments, none_there};
use crate::error::Error;
pub use mlflow::{Mlflow, SentRuns, send_to_mlflow};
use pass::Pass;
use runner_core::record::ExperimentFolder;
use runner_report::export::table::{Columns, Format, Rows, TableWriter};
use runner_report::export::{Exported, tensorboard};

/// Which event files are written, and where.
#[derive(Clone, Debug)]
pub struct EventFiles {
    /// The folder of an experiment, or a results folder for all in it.
    pub folder: PathBuf,
    /// The destination; by default the folder `tensorboard` of each experiment.
    pub to: Option<PathBuf>,
    /// Whether to continue until nothing writes to the folder any more.
    pub follow: bool,
}

/// The event files that were written.
#[derive(Clone, Debug)]
pub struct WrittenFiles {
    /// Their number.
    pub num_files: usize,
    /// The folder that contains them.
    pub place: PathBuf,
    /// Whether nothing was skipped because it is damaged.
    pub is_whole: bool,
}

/// Writes TensorBoard's event files: metrics, losses of steps, and the varied settings.
///
/// # Errors
///
/// [`Error::Refused`] if there is no experiment, or a file cannot be written.
///
/// ```
/// use burn_runner::ops::{self, EventFiles};
///
/// let options = EventFiles {
///     folder: "results/nothing".into(),
///     to: None,
///     follow: false,
/// };
/// let error = ops::write_event_files(&options, &ops::quiet).unwrap_err();
/// assert_eq!(error.exit_code(), 2);
/// ```
pub fn write_event_files(options: &EventFiles, sink: &Sink<'_>) -> Result<WrittenFiles, Error> {
    let mut pass = Pass::new(options.folder.clone(), options.follow, true);
    loop {
        let experiments = pass.experiments();
        if experiments.is_empty() {
            return Err(none_there(&options.folder));
        }
        let several = experiments.len() > 1;
        let mut num_files = 0;
        for experiment in &experiments {
            let name = experiment.0.file_name().unwrap_or_default();
            let place = match &options.to {
                Some(to) if several => to.join(name),
                Some(to) => to.clone(),
                None => experiment.tensorboard(),
            };
            let Some(plan) = pass.plan(experiment, sink) else {
                continue;
            };
            let unwritable = |e: io::Error| Error::unwritable(&place, &e);
            if options.to.is_none() {
                experiment.check_links().map_err(unwritable)?;
            }
            pass.each(experiment, plan, sink, |run| {
                let written = tensorboard::write(&place.join(&run.plan.id), run)?;
                num_files += usize::from(written.is_some());
                Ok(())
            })
            .map_err(unwritable)?;
        }
        if pass.is_last() {
            return Ok(WrittenFiles {
                num_files,
                place: match &options.to {
                    Some(to) => to.clone(),
                    None if several => options.folder.clone(),
                    None => experiments[0].tensorboard(),
                },
                is_whole: pass.is_whole,
            });
        }
        pass.wait();
    }
}

/// Which table is written.
#[derive(Clone, Debug)]
pub struct ExportTable {
    /// The folder of an experiment, or a results folder for all in it.
    pub folder: PathBuf,
    /// The kind of rows.
    pub rows: Rows,
    /// The format.
    pub format: Format,
}

/// A table whose columns are known and whose rows are still to be read.
pub struct ExportedTable {
    pass: Pass,
    experiments: Vec<ExperimentFolder>,
    columns: Columns,
    format: Format,
}

/// Determines the columns of a table from all records; [`ExportedTable::write`] writes it.
///
/// # Errors
///
/// [`Error::Refused`] if there is no experiment.
///
/// ```
/// use burn_runner::export::table::{Format, Rows};
/// use burn_runner::ops::{self, ExportTable};
///
/// let options = ExportTable {
///     folder: "results/nothing".into(),
///     rows: Rows::Runs,
///     format: Format::Csv,
/// };
/// assert!(ops::export_table(&options, &ops::quiet).is_err());
/// ```
pub fn export_table(options: &ExportTable, sink: &Sink<'_>) -> Result<ExportedTable, Error> {
    let experiments = experiments(&options.folder)?;
    let with_losses = options.rows == Rows::Steps;
    let mut pass = Pass::new(options.folder.clone(), false, with_losses);
    let mut columns = Columns::new(options.rows);
    let Ok(()) = each(&mut pass, &experiments, sink, |run| {
        columns.take(run);
        Ok::<(), std::convert::Infallible>(())
    });
    pass.be_told();
    Ok(ExportedTable {
        pass,
        experiments,
        columns,
        format: options.format,
    })
}

impl ExportedTable {
    /// Whether nothing has been skipped so far because it is damaged.
    pub fn is_whole(&self) -> bool {
        self.pass.is_whole
    }

    /// Writes the table; returns the number of its rows, and whether nothing was skipped because it is damaged.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn write(mut self, to: &mut dyn Write, sink: &Sink<'_>) -> io::Result<(usize, bool)> {
        let mut writer = TableWriter::new(self.columns, self.format, to)?;
        each(&mut self.pass, &self.experiments, sink, |run| {
            writer.add(run)
        })?;
        let num_rows = writer.num_rows();
        writer.finish()?;
        Ok((num_rows, self.pass.is_whole))
    }
}

fn each<E>(
    pass: &mut Pass,
    experiments: &[ExperimentFolder],
    sink: &Sink<'_>,
    mut see: impl FnMut(&Exported) -> Result<(), E>,
) -> Result<(), E> {
    for experiment in experiments {
        if let Some(plan) = pass.plan(experiment, sink) {
            pass.each(experiment, plan, sink, &mut see)?;
        }
    }
    Ok(())
}
