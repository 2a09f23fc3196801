//! `runner export weights`, `pytorch` and `onnx`: trained networks for other programs.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::cli::OK;
use crate::cli::output::Output;
use crate::cli::predict::ModelArgs;
use crate::cli::tell::Teller;
use crate::error::Error;
use crate::ops::Sink;
use crate::ops::export::{
    ExportAdapter, ExportHub, ExportOnnx, ExportPytorch, ExportWeights, Exported, Format, Naming,
    Numbers, export_adapter, export_hub, export_onnx, export_pytorch, export_weights,
};
use runner_core::diagnostic::{Diagnostic, counted};
use runner_core::spec::section::{Choice, by_name};
use runner_report::console::Mode;

#[derive(Args)]
pub struct WeightsArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// The format of the file
    #[arg(long, value_name = "FORMAT", value_parser = one_of::<Format>())]
    format: Format,
    /// Whose names and shapes the tensors have; by default PyTorch's, and Burn's in its own format
    #[arg(long, value_name = "NAMES", value_parser = one_of::<Naming>())]
    names: Option<Naming>,
    /// The type of the numbers; by default the precision that the run was trained in
    #[arg(long, value_name = "TYPE", value_parser = one_of::<Numbers>())]
    dtype: Option<Numbers>,
    /// Of JSON, the layers and where the weights come from, too
    #[arg(long)]
    full: bool,
    /// Only the adapter, as a folder that peft reads; the other weights are left out
    #[arg(long, conflicts_with_all = ["names", "full"])]
    adapter: bool,
    /// The file to write, or with `--adapter` the folder
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Replace a file or folder that is there
    #[arg(long)]
    force: bool,
}

#[derive(Args)]
pub struct PytorchArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// The folder to write
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Replace a folder that an export wrote
    #[arg(long)]
    force: bool,
}

#[derive(Args)]
pub struct OnnxArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// The file to write
    #[arg(long, value_name = "FILE.onnx")]
    out: PathBuf,
    /// Take the data's own values, and give probabilities and class names, or numbers in their units
    #[arg(long)]
    with_transforms: bool,
    /// Replace a file that is there
    #[arg(long)]
    force: bool,
}

#[derive(Args)]
pub struct HubArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// The folder to write
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The type of the numbers; by default the precision that the run was trained in
    #[arg(long, value_name = "TYPE", value_parser = one_of::<Numbers>())]
    dtype: Option<Numbers>,
    /// Replace a folder that an export wrote
    #[arg(long)]
    force: bool,
}

/// A choice by its name, each with what it means.
fn one_of<C: Choice + Clone + Send + Sync + 'static>() -> impl TypedValueParser<Value = C> {
    let values = C::ALL
        .iter()
        .map(|(_, name, doc)| PossibleValue::new(*name).help(doc.trim_end_matches('.')));
    PossibleValuesParser::new(values)
        .try_map(|name| by_name::<C>(&name).ok_or("it is not one of the names"))
}

/// `runner export weights`
pub fn weights(args: &WeightsArgs, output: &mut Output) -> u8 {
    if args.adapter {
        return adapter(args, output);
    }
    let asked = ExportWeights {
        options: args.model.options(),
        names: args.names,
        dtype: args.dtype,
        full: args.full,
        force: args.force,
        ..ExportWeights::new(&args.model.run, args.format, &args.out)
    };
    done(&args.out, output, |sink| export_weights(&asked, sink))
}

fn adapter(args: &WeightsArgs, output: &mut Output) -> u8 {
    if args.format != Format::Safetensors {
        let diagnostic = Diagnostic::error("usage", "only safetensors supports `--adapter`");
        let help = "pass `--format safetensors`, or omit `--adapter` for merged weights";
        return output.fail(&Error::refused(diagnostic.help(help)));
    }
    let asked = ExportAdapter {
        options: args.model.options(),
        dtype: args.dtype,
        force: args.force,
        ..ExportAdapter::new(&args.model.run, &args.out)
    };
    done(&args.out, output, |sink| export_adapter(&asked, sink))
}

/// `runner export pytorch`
pub fn pytorch(args: &PytorchArgs, output: &mut Output) -> u8 {
    let asked = ExportPytorch {
        options: args.model.options(),
        force: args.force,
        ..ExportPytorch::new(&args.model.run, &args.out)
    };
    let code = done(&args.out, output, |sink| export_pytorch(&asked, sink));
    if code == OK {
        let place = args.out.join("model.py");
        output.say(&format!("check it with: python '{}'", place.display()));
    }
    code
}

/// `runner export onnx`
pub fn onnx(args: &OnnxArgs, output: &mut Output) -> u8 {
    let asked = ExportOnnx {
        options: args.model.options(),
        with_transforms: args.with_transforms,
        force: args.force,
        ..ExportOnnx::new(&args.model.run, &args.out)
    };
    done(&args.out, output, |sink| export_onnx(&asked, sink))
}

/// `runner export hub`
pub fn hub(args: &HubArgs, output: &mut Output) -> u8 {
    let asked = ExportHub {
        options: args.model.options(),
        dtype: args.dtype,
        force: args.force,
        ..ExportHub::new(&args.model.run, &args.out)
    };
    done(&args.out, output, |sink| export_hub(&asked, sink))
}

fn done(
    place: &Path,
    output: &mut Output,
    export: impl FnOnce(&Sink<'_>) -> Result<Exported, Error>,
) -> u8 {
    let teller = Teller::new(Mode::Normal);
    let outcome = export(&|progress| teller.tell(progress));
    drop(teller);
    match outcome {
        Ok(exported) => {
            let Exported {
                run,
                weights,
                num_tensors,
                num_values,
            } = exported;
            output.say(&format!(
                "wrote {} to {}: {weights} weights of run `{run}`, {}",
                counted(num_tensors, "tensor"),
                place.display(),
                counted(num_values, "number"),
            ));
            OK
        }
        Err(error) => output.fail(&error),
    }
}
