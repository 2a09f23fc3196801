//! `runner predict`.

use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::PathBuf;

use clap::Args;
use clap::builder::TypedValueParser;

use super::OK;
use super::output::{Output, Stdout};
use super::tell::Teller;
use crate::error::Error;
use crate::model::{Options, Weights};
use crate::ops::{self, Asked, Predict, Progress};
use runner_core::data::read;
use runner_core::diagnostic::{Diagnostic, Reason};
use runner_core::predict::OutputFormat;
use runner_core::show::plain_io_error;
use runner_core::spec::backend::DeviceName;
use runner_core::spec::data::DataKind;
use runner_report::console::Mode;

/// Options for opening a trained network.
#[derive(Args)]
pub(super) struct ModelArgs {
    /// The folder of a run, of an experiment for its selected trial, or a capsule of `runner bundle`
    pub(super) run: PathBuf,
    /// For an experiment: a trial other than the selected one
    #[arg(long, value_name = "ID")]
    pub(super) trial: Option<String>,
    /// Which weights: `best`, `final`, `ema`, `swa` or `initial`; by default those of the best epoch
    #[arg(long, value_name = "WHICH", value_parser = weights)]
    pub(super) weights: Option<Weights>,
    /// A device other than the one that the run was trained on, such as `flex`
    #[arg(long, value_name = "DEVICE")]
    pub(super) device: Option<DeviceName>,
    /// Unpack capsules up to this size, as in 4GiB; by default up to 200 times their packed size
    #[arg(long, value_name = "SIZE", value_parser = super::bundle::size)]
    pub(super) max_unpacked: Option<u64>,
}

impl ModelArgs {
    pub(super) fn options(&self) -> Options {
        Options {
            weights: self.weights,
            device: self.device,
            trial: self.trial.clone(),
            max_unpacked: self.max_unpacked,
        }
    }
}

/// Which items.
#[derive(Args)]
pub(super) struct ItemsArgs {
    /// A table, an array, an image or a folder of images, or a text; `-` for standard input
    #[arg(long, value_name = "PATH", required_unless_present = "split")]
    pub(super) data: Option<PathBuf>,
    /// The items of a split of the run's own data: `train`, `valid` or `test`
    #[arg(long, value_name = "SPLIT", conflicts_with = "data", value_parser = ["train", "valid", "test"])]
    pub(super) split: Option<String>,
    /// If items are graphs: the file of edges, with the columns of the run's edges; `--data` is the table of nodes
    #[arg(long, value_name = "PATH", conflicts_with = "split")]
    pub(super) edges: Option<PathBuf>,
    /// The type of the data if it does not follow from its name: `csv`, `json_lines`, `npy`, `text`, …
    #[arg(long, value_name = "TYPE", value_parser = kind, conflicts_with = "split")]
    pub(super) data_type: Option<DataKind>,
    /// What to do with invalid items: `refuse`, or `skip` to skip and list them
    #[arg(long, value_name = "WHAT", default_value = "refuse", value_parser = ["refuse", "skip"])]
    pub(super) on_bad_item: String,
    /// A column of a table that is not part of the network's array; may be repeated
    #[arg(long, value_name = "COLUMN", conflicts_with = "split")]
    pub(super) ignore: Vec<String>,
    /// Items that are computed at a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20).map(|n| n as usize))]
    pub(super) batch_size: Option<usize>,
}

#[derive(Args)]
pub(super) struct PredictArgs {
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    items: ItemsArgs,
    /// Where to write: a file that ends in `.csv`, `.jsonl`, `.npy` or `.parquet`, or a folder for masks or images, which
    /// ends in `/`; `-`, the default, is standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
    /// The output format if it does not follow from a name: `csv`, `jsonl`, `npy`, `parquet` or `png`
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    format: Option<OutputFormat>,
    /// A column of a table to copy next to each prediction; may be repeated
    #[arg(long, value_name = "COLUMN", conflicts_with = "split")]
    keep: Vec<String>,
    /// Average the predictions of this many seeds of the trial
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u64).range(1..=1024).map(|n| n as usize))]
    ensemble: usize,
}

pub(super) fn weights(text: &str) -> Result<Weights, Reason> {
    let mut all = Weights::ALL.into_iter();
    all.find(|weights| weights.name() == text)
        .ok_or_else(|| "expected `best`, `final`, `ema`, `swa` or `initial`".into())
}

fn kind(text: &str) -> Result<DataKind, Reason> {
    use runner_core::spec::section::by_name;
    let other = match text {
        "jsonl" => "json_lines",
        "image" | "images" => "image_folder",
        other => other,
    };
    by_name::<DataKind>(other)
        .filter(|kind| kind.is_files())
        .ok_or_else(|| {
            "expected `csv`, `json_lines`, `parquet`, `npy`, `npz`, `safetensors`, `idx`, `image_folder` or `text`".into()
        })
}

fn format(text: &str) -> Result<OutputFormat, Reason> {
    Ok(match text {
        "csv" => OutputFormat::Csv,
        "jsonl" | "json_lines" => OutputFormat::JsonLines,
        "npy" => OutputFormat::Npy,
        "parquet" => OutputFormat::Parquet,
        "png" => OutputFormat::Png,
        _ => return Err("expected `csv`, `jsonl`, `npy`, `parquet` or `png`".into()),
    })
}

/// Standard input in a temporary file, which can be read more than once.
pub(super) struct Copied(Option<(tempfile::NamedTempFile, tempfile::TempDir)>);

impl ItemsArgs {
    /// The request. Standard input is copied to a file, once `check` finds nothing wrong with the rest.
    pub(super) fn asked(&self, check: &Predict) -> Result<(Asked, Copied), Error> {
        match (&self.data, &self.split) {
            (_, Some(split)) => Ok((Asked::Split(split.clone()), Copied(None))),
            (Some(data), _) if data.as_os_str() == "-" => {
                check.check()?;
                let copied = copy_stdin().map_err(|e| {
                    let message = format!("standard input cannot be read: {}", plain_io_error(&e));
                    Error::failed(Diagnostic::error("input", message))
                })?;
                let path = copied.0.path().to_owned();
                let asked = Asked::File(path, Some("standard input".into()));
                Ok((asked, Copied(Some(copied))))
            }
            (Some(data), _) => Ok((Asked::File(data.clone(), None), Copied(None))),
            (None, None) => unreachable!("one of them is required"),
        }
    }

    /// The type of standard input, which has no name.
    pub(super) fn kind(&self, copied: &Copied) -> Option<DataKind> {
        let sniffed = || {
            let mut head = Vec::new();
            let file = read::open(copied.0.as_ref()?.0.path()).ok()?;
            file.take(8).read_to_end(&mut head).ok()?;
            match head.trim_ascii_start() {
                [b'{', ..] => Some(DataKind::JsonLines),
                [0x93, b'N', ..] => Some(DataKind::Npy),
                [0x89, b'P', b'N', b'G', ..] | [0xff, 0xd8, 0xff, ..] => {
                    Some(DataKind::ImageFolder)
                }
                [b'P', b'A', b'R', b'1', ..] => Some(DataKind::Parquet),
                _ => None,
            }
        };
        self.data_type.or_else(sniffed)
    }
}

/// The file's name is the same each time, since that of an image identifies it. It says whether it is compressed.
fn copy_stdin() -> io::Result<(tempfile::NamedTempFile, tempfile::TempDir)> {
    let folder = tempfile::tempdir()?;
    let mut stdin = io::stdin().lock();
    let mut head = Vec::new();
    stdin.by_ref().take(2).read_to_end(&mut head)?;
    let is_packed = head == [0x1f, 0x8b];
    let mut named = tempfile::Builder::new();
    named
        .prefix("stdin")
        .suffix(if is_packed { ".gz" } else { "" })
        .rand_bytes(0);
    let mut file = named.tempfile_in(&folder)?;
    file.write_all(&head)?;
    io::copy(&mut BufReader::new(stdin), &mut file)?;
    file.flush()?;
    Ok((file, folder))
}

/// Predicts, and writes the predictions to a file or to standard output.
pub(super) fn predict(args: &PredictArgs, output: &mut Output) -> u8 {
    let out = args.out.as_ref().filter(|out| out.as_os_str() != "-");
    let teller = Teller::new(Mode::Normal);
    let sink = |progress: Progress<'_>| teller.tell(progress);
    let without = Predict {
        edges: args.items.edges.clone(),
        skips_bad: args.items.on_bad_item == "skip",
        keep: args.keep.clone(),
        ignore: args.items.ignore.clone(),
        batch_size: args.items.batch_size,
        ensemble: args.ensemble,
        out: out.cloned(),
        force: args.force,
        format: args.format,
        options: args.model.options(),
        ..Predict::new(&args.model.run, "")
    };
    let made = args.items.asked(&without).and_then(|(asked, copied)| {
        let kind = args.items.kind(&copied);
        let asked = Predict {
            asked,
            kind,
            ..without
        };
        if out.is_some() {
            return ops::predict(&asked, &sink);
        }
        if asked.skips_bad && !Output::is_terminal() {
            let mut out = BufWriter::new(Stdout);
            let predicted = ops::predict_to(&asked, &mut out, &sink);
            let _ = out.flush();
            return predicted;
        }
        // Nothing is printed if the data is refused in the end.
        held_back(&asked, &sink, output)
    });
    drop(teller);
    match made {
        Ok(predicted) => {
            let to = out.map_or(String::new(), |out| format!(" in {}", out.display()));
            output.say(&format!("{}{to}", predicted.in_words()));
            OK
        }
        Err(error) => output.fail(&error),
    }
}

/// Prints all predictions after the last of them.
fn held_back(
    asked: &Predict,
    sink: &ops::Sink<'_>,
    output: &mut Output,
) -> Result<ops::Predicted, Error> {
    let failed = |e: io::Error| {
        let message = format!("the predictions cannot be stored: {}", plain_io_error(&e));
        Error::failed(
            Diagnostic::error("output", message)
                .help("free some space in the folder for temporary files"),
        )
    };
    let mut held = tempfile::SpooledTempFile::new(1 << 22);
    let predicted = {
        let mut out = BufWriter::new(&mut held);
        let predicted = ops::predict_to(asked, &mut out, sink)?;
        out.flush().map_err(failed)?;
        predicted
    };
    held.rewind().map_err(failed)?;
    if Output::is_terminal() {
        let mut text = String::new();
        if held.read_to_string(&mut text).is_err() {
            let message = "an array is not printed to a terminal";
            let help = "choose a file with `--out`, or redirect the output with `|`";
            return Err(Error::refused(
                Diagnostic::error("usage", message).help(help),
            ));
        }
        output.print(&text);
        return Ok(predicted);
    }
    let mut out = BufWriter::new(Stdout);
    // Errors of standard output are reported when the program ends.
    let _ = io::copy(&mut held, &mut out);
    let _ = out.flush();
    Ok(predicted)
}
