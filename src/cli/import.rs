//! `runner import`: networks of other programs as experiments.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::output::Output;
use super::tell::Teller;
use crate::error::OK;
use crate::ops::{ImportHub, ImportOnnx, import_hub, import_onnx};
use runner_core::diagnostic::{counted, grouped};
use runner_report::console::Mode;

/// The formats of networks.
#[derive(Subcommand)]
pub enum Source {
    /// Convert an ONNX file to an experiment file with its layers, and a file with its weights
    Onnx(OnnxArgs),
    /// Write an experiment that starts from a model in a folder of a model hub
    Hub(HubArgs),
}

#[derive(Args)]
pub struct HubArgs {
    /// The folder with `config.json`, the weights and `tokenizer.json`
    folder: PathBuf,
    /// The folder to write the experiment file to
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// The text to train on, or a table with the columns `text` and `label` for a classifier; without it, an example is written
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// Tokens per item; 128 if not given, or as many as the network has positions
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..))]
    length: Option<u16>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
}

#[derive(Args)]
pub struct OnnxArgs {
    /// The ONNX file
    file: PathBuf,
    /// The folder to write the experiment file, the weights and an example to
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// The shape of an input whose sizes are not fixed, such as `input=1,3,224,224`; the first is the batch
    #[arg(long, value_name = "NAME=SIZES", value_parser = shape)]
    shape: Vec<(String, Vec<usize>)>,
    /// The output of the graph to import, if there are several
    #[arg(long, value_name = "NAME")]
    output: Option<String>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
}

/// `input=1,3,224,224`.
fn shape(text: &str) -> Result<(String, Vec<usize>), String> {
    let wrong = || "expected a name and sizes, such as `input=1,3,224,224`".to_owned();
    let (name, sizes) = text.rsplit_once('=').ok_or_else(wrong)?;
    let size = |text: &str| {
        text.trim()
            .parse()
            .ok()
            .filter(|size| (1..=1 << 24).contains(size))
    };
    let sizes: Option<Vec<usize>> = sizes.split([',', 'x']).map(size).collect();
    match sizes {
        Some(sizes) if !name.is_empty() => Ok((name.to_owned(), sizes)),
        _ => Err(wrong()),
    }
}

/// `runner import`
pub fn import(source: &Source, output: &mut Output) -> u8 {
    match source {
        Source::Onnx(args) => onnx(args, output),
        Source::Hub(args) => hub(args, output),
    }
}

fn hub(args: &HubArgs, output: &mut Output) -> u8 {
    let asked = ImportHub {
        out: args.out.clone(),
        text: args.text.clone(),
        length: args.length.map(usize::from),
        force: args.force,
        ..ImportHub::new(&args.folder)
    };
    match import_hub(&asked) {
        Ok(imported) => {
            output.say(&format!("a model of type `{}`", imported.model));
            written(&imported.files, output)
        }
        Err(error) => output.fail(&error),
    }
}

fn onnx(args: &OnnxArgs, output: &mut Output) -> u8 {
    let asked = ImportOnnx {
        out: args.out.clone(),
        shapes: args.shape.iter().cloned().collect(),
        output: args.output.clone(),
        force: args.force,
        ..ImportOnnx::new(&args.file)
    };
    let teller = Teller::new(Mode::Normal);
    let outcome = import_onnx(&asked, &|progress| teller.tell(progress));
    drop(teller);
    match outcome {
        Ok(imported) => {
            let network = &imported.network;
            let shape = network
                .layers
                .last()
                .map(|last| last.shape.clone())
                .unwrap_or_default();
            output.say(&format!(
                "{}, {} parameters: items of shape {}, outputs of shape {shape:?}",
                counted(network.layers.len(), "layer"),
                grouped(network.num_parameters),
                network.items.show(),
            ));
            written(&imported.files, output)
        }
        Err(error) => output.fail(&error),
    }
}

/// Prints the files of an experiment, the experiment file first.
fn written(files: &[PathBuf], output: &mut Output) -> u8 {
    for file in files {
        output.print(&file.display().to_string());
    }
    output.say(&format!(
        "check it with: runner check '{}'",
        files[0].display()
    ));
    OK
}
