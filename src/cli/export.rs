//! `runner export`: trained networks and records for other programs.

mod mlflow;
mod network;

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};

use super::output::{Output, Stdout};
use super::tell::Teller;
use super::{FAILED, OK};
use crate::error;
use crate::ops::place::{File, unwritten};
use crate::ops::{self, EventFiles, ExportTable};
use runner_core::diagnostic::{Diagnostic, counted};
use runner_report::console::Mode;
use runner_report::export::table::{Format, Rows};

/// The export formats.
#[derive(Subcommand)]
pub enum Form {
    /// Write the weights of a run as safetensors, a PyTorch or NumPy archive, JSON, or in Burn's format
    Weights(network::WeightsArgs),
    /// Write the network of a run as a PyTorch module that checks itself
    Pytorch(network::PytorchArgs),
    /// Write the network of a run as an ONNX file
    Onnx(network::OnnxArgs),
    /// Write the network of a run as a folder of a model hub, for the library transformers
    Hub(network::HubArgs),
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
    /// The destination; `-`, the default, is standard output
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Replace a file that is there
    #[arg(long, requires = "to")]
    force: bool,
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
        Form::Tensorboard(args) => event_files(&args, output),
        Form::Mlflow(args) => mlflow::send(&args, output),
        Form::Weights(args) => network::weights(&args, output),
        Form::Pytorch(args) => network::pytorch(&args, output),
        Form::Hub(args) => network::hub(&args, output),
        Form::Onnx(args) => network::onnx(&args, output),
        Form::Csv(args) => table(&args, Format::Csv, output),
        Form::Jsonl(args) => table(&args, Format::JsonLines, output),
    }
}

fn event_files(args: &TensorboardArgs, output: &mut Output) -> u8 {
    let options = EventFiles {
        folder: args.folder.clone(),
        to: args.to.clone(),
        follow: args.follow,
    };
    let teller = Teller::new(Mode::Normal);
    let written = match ops::write_event_files(&options, &|progress| teller.tell(progress)) {
        Ok(written) => written,
        Err(error) => return output.fail(&error),
    };
    if written.num_files == 0 {
        output.say("nothing was written: no run here has recorded anything yet; `runner list` shows their progress");
    } else {
        output.say(&format!(
            "{}; view them with: tensorboard --logdir '{}'",
            counted(written.num_files, "event file"),
            written.place.display()
        ));
    }
    if written.is_whole { OK } else { FAILED }
}

/// Refuses a file whose name says another format than is written.
fn right_ending(to: Option<&Path>, format: Format) -> Result<(), error::Error> {
    let Some(path) = to else { return Ok(()) };
    let ending = path
        .extension()
        .map(|ending| ending.to_string_lossy().to_lowercase());
    let (verb, endings) = match format {
        Format::Csv => ("csv", &["csv", "txt"][..]),
        Format::JsonLines => ("jsonl", &["jsonl", "ndjson", "json", "txt"][..]),
    };
    let known = [
        "csv", "tsv", "jsonl", "ndjson", "json", "parquet", "npz", "npy", "xlsx", "db",
    ];
    let Some(ending) = ending.filter(|ending| known.contains(&ending.as_str())) else {
        return Ok(());
    };
    if endings.contains(&ending.as_str()) {
        return Ok(());
    }
    let message = format!(
        "`runner export {verb}` does not write `.{ending}` files: `{}`",
        path.display()
    );
    let wrong = Diagnostic::error("usage", message);
    let other = match ending.as_str() {
        "csv" => Some("csv"),
        "jsonl" | "ndjson" | "json" => Some("jsonl"),
        _ => None,
    };
    let renamed = path.with_extension(verb);
    let rename = format!("name the file `{}`", renamed.display());
    Err(error::Error::refused(match other {
        Some(other) => wrong.help(format!("{rename}, or use `runner export {other}`")),
        None => wrong.help(rename).note(
            "tables of runs are written as CSV or JSON lines, which pandas, DuckDB and Polars read",
        ),
    }))
}

fn table(args: &TableArgs, format: Format, output: &mut Output) -> u8 {
    if let Err(error) = right_ending(args.to.as_deref(), format) {
        return output.fail(&error);
    }
    let file = args.to.as_deref().filter(|to| to.as_os_str() != "-");
    let file = match file.map(|path| File::new(path, args.force)).transpose() {
        Ok(file) => file,
        Err(error) => return output.fail(&error),
    };
    let rows = args.rows.into();
    let options = ExportTable {
        folder: args.folder.clone(),
        rows,
        format,
    };
    let teller = Teller::new(Mode::Normal);
    let sink = |progress: ops::Progress<'_>| teller.tell(progress);
    let table = match ops::export_table(&options, &sink) {
        Ok(table) => table,
        Err(error) => return output.fail(&error),
    };
    let was_whole = table.is_whole();
    let Some(file) = file else {
        let mut stdout = BufWriter::new(Stdout);
        let written = table.write(&mut stdout, &sink);
        let written = written.and_then(|done| stdout.flush().map(|()| done));
        return match written {
            Ok((_, is_whole)) => exit_code(is_whole),
            Err(e) if !output.has_failed() && e.kind() != io::ErrorKind::BrokenPipe => {
                output.fail(&unwritten(Path::new("-"), &e))
            }
            // Problems with standard output are reported at the end; a closed pipe means that the reader is done.
            Err(_) => exit_code(was_whole),
        };
    };
    let path = file.path();
    let written = file.write(|to| table.write(to, &sink).map_err(|e| unwritten(path, &e)));
    let (num_rows, is_whole) = match written {
        Ok(written) => written,
        Err(error) => return output.fail(&error),
    };
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
    exit_code(is_whole)
}

fn exit_code(is_whole: bool) -> u8 {
    if is_whole { OK } else { FAILED }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_another_format_is_refused() {
        let refused = |name: &str, format| right_ending(Some(Path::new(name)), format).is_err();
        for name in ["t.csv", "t.CSV", "t", "t.v2", "t.txt", "-"] {
            assert!(!refused(name, Format::Csv), "{name}");
        }
        for name in ["e.parquet", "t.jsonl", "t.xlsx"] {
            assert!(refused(name, Format::Csv), "{name}");
        }
        assert!(!refused("t.jsonl", Format::JsonLines) && refused("t.csv", Format::JsonLines));
        assert!(right_ending(None, Format::Csv).is_ok());
    }
}
