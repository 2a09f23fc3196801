//! `runner export`: trained networks and records for other programs.

mod mlflow;
mod network;
mod pass;

use std::error::Error;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};

use super::list::none_there;
use super::output::{Output, Stdout};
use crate::error;
use pass::Pass;
use runner_core::diagnostic::counted;
use runner_core::record::{ExperimentFolder, write_whole_by};
use runner_report::export::table::{Columns, Format, Rows, TableWriter};
use runner_report::export::{Exported, tensorboard};

/// The export formats.
#[derive(Subcommand)]
pub enum Form {
    /// Write the weights of a run as safetensors, PyTorch's or NumPy's archives, JSON, or in Burn's format
    Weights(network::WeightsArgs),
    /// Write the network of a run as a module of PyTorch that checks itself
    Pytorch(network::PytorchArgs),
    /// Write the network of a run as an ONNX file
    Onnx(network::OnnxArgs),
    /// Write TensorBoard's event files: metrics, losses of steps, and the varied settings
    Tensorboard(TensorboardArgs),
    /// Send runs to an MLflow server: settings, metrics, outcomes
    Mlflow(mlflow::MlflowArgs),
    /// Print a table as comma-separated values
    Csv(TableArgs),
    /// Print a table as one JSON object per line
    Jsonl(TableArgs),
}

#[derive(Args)]
pub struct TensorboardArgs {
    /// The folder of an experiment, or a results folder for all in it
    folder: PathBuf,
    /// The destination; by default the folder `tensorboard` of each experiment
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Continue until nothing writes to the folder any more
    #[arg(long)]
    follow: bool,
}

#[derive(Args)]
pub struct TableArgs {
    /// The folder of an experiment, or a results folder for all in it
    folder: PathBuf,
    /// The kind of rows
    #[arg(long, value_name = "WHAT", value_enum, default_value = "epochs")]
    rows: RowsArg,
    /// The destination; standard output by default
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum RowsArg {
    /// a run, with its outcome and summary
    Runs,
    /// an epoch of a run, with its metrics
    Epochs,
    /// a step of a run, with its loss
    Steps,
}

impl From<RowsArg> for Rows {
    fn from(rows: RowsArg) -> Self {
        match rows {
            RowsArg::Runs => Rows::Runs,
            RowsArg::Epochs => Rows::Epochs,
            RowsArg::Steps => Rows::Steps,
        }
    }
}

/// Exports records in a format.
pub fn export(form: Form, output: &mut Output) -> u8 {
    match form {
        Form::Weights(args) => network::weights(&args, output),
        Form::Pytorch(args) => network::pytorch(&args, output),
        Form::Onnx(args) => network::onnx(&args, output),
        Form::Tensorboard(args) => event_files(&args, output),
        Form::Mlflow(args) => mlflow::send(&args, output),
        Form::Csv(args) => table(&args, Format::Csv, output),
        Form::Jsonl(args) => table(&args, Format::JsonLines, output),
    }
}

fn event_files(args: &TensorboardArgs, output: &mut Output) -> u8 {
    let mut pass = Pass::new(args.folder.clone(), args.follow, true);
    loop {
        let experiments = pass.experiments();
        if experiments.is_empty() {
            return none_there(&args.folder, output);
        }
        let several = experiments.len() > 1;
        let mut num_written = 0;
        for experiment in &experiments {
            let name = experiment.0.file_name().unwrap_or_default();
            let place = match &args.to {
                Some(to) if several => to.join(name),
                Some(to) => to.clone(),
                None => experiment.tensorboard(),
            };
            let Some(plan) = pass.plan(experiment, output) else {
                continue;
            };
            if args.to.is_none()
                && let Err(e) = experiment.check_links()
            {
                return output.fail(&error::Error::unwritable(&place, &e));
            }
            let written = pass.each(experiment, plan, output, |run| {
                let written = tensorboard::write(&place.join(&run.plan.id), run)?;
                num_written += usize::from(written.is_some());
                Ok(())
            });
            if let Err(e) = written {
                return output.fail(&error::Error::unwritable(&place, &e));
            }
        }
        if pass.is_last() {
            let place = match &args.to {
                Some(to) => to.clone(),
                None if several => args.folder.clone(),
                None => experiments[0].tensorboard(),
            };
            if num_written == 0 {
                output.say("nothing was written: no run here has recorded anything yet; `runner list` shows their progress");
                return pass.code;
            }
            output.say(&format!(
                "{}; view them with: tensorboard --logdir '{}'",
                counted(num_written, "event file"),
                place.display()
            ));
            return pass.code;
        }
        pass.wait();
    }
}

fn table(args: &TableArgs, format: Format, output: &mut Output) -> u8 {
    let rows = args.rows.into();
    let mut pass = Pass::new(args.folder.clone(), false, rows == Rows::Steps);
    let experiments = pass.experiments();
    if experiments.is_empty() {
        return none_there(&args.folder, output);
    }
    let mut columns = Columns::new(rows);
    let collected = each(&mut pass, &experiments, output, |run| {
        columns.take(run);
        Ok(())
    });
    pass.be_told();
    let mut num_rows = 0;
    let write = |to: &mut dyn Write| {
        let mut writer = TableWriter::new(columns, format, to)?;
        each(&mut pass, &experiments, output, |run| writer.add(run))?;
        num_rows = writer.num_rows();
        writer.finish()
    };
    let written = collected.and_then(|()| match &args.to {
        None => {
            let mut stdout = BufWriter::new(Stdout);
            write(&mut stdout).and_then(|()| stdout.flush())
        }
        Some(path) => write_whole_by(path, |file| write(file)),
    });
    match (written, &args.to) {
        (Err(e), Some(path)) => output.fail(&error::Error::unwritable(path, &e)),
        (Err(e), None) if !output.has_failed() && !is_closed_pipe(&e) => {
            output.fail(&error::Error::unwritable(Path::new("-"), &e))
        }
        // Problems with standard output are reported at the end; a closed pipe means that the reader is done.
        (written, to) => {
            if let (Ok(()), Some(path)) = (&written, to) {
                let what = match rows {
                    Rows::Runs => "run",
                    Rows::Epochs => "epoch",
                    Rows::Steps => "step",
                };
                output.say(&format!(
                    "wrote {} to {}",
                    counted(num_rows, what),
                    path.display()
                ));
            }
            pass.code
        }
    }
}

/// Whether nobody reads any more; a table writer wraps that in its own errors.
fn is_closed_pipe(error: &io::Error) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let inner = error.downcast_ref::<io::Error>();
        if inner.is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe) {
            return true;
        }
        cause = match inner.and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    false
}

fn each(
    pass: &mut Pass,
    experiments: &[ExperimentFolder],
    output: &mut Output,
    mut see: impl FnMut(&Exported) -> io::Result<()>,
) -> io::Result<()> {
    for experiment in experiments {
        if let Some(plan) = pass.plan(experiment, output) {
            pass.each(experiment, plan, output, &mut see)?;
        }
    }
    Ok(())
}
