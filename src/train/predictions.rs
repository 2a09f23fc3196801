//! Predictions for the run's own data, which are written when its training ends: those of `runner predict --split`.

use std::fs;
use std::io;
use std::path::Path;

use burn::data::dataloader::DataLoader;
use burn::tensor::Tensor;

use super::Job;
use super::loader::Loader;
use runner_core::data::{DataError, Places, Transforms, decisive_of};
use runner_core::event::{FailureClass, Outcome};
use runner_core::predict::{Layout, Meaning, OutputFormat, Writer};
use runner_core::record::write_whole_by;
use runner_core::spec::predictions::PredictionsFormat;
use runner_core::spec::task::TaskKind;
use runner_network::failure::{WrongCount, wrong_count};
use runner_network::network::Network;
use runner_network::targets::Targets;
use runner_network::tensor::DynTensor;

/// The identifiers of items of a split: where they are in the run's data.
pub const ITEMS: Layout = Layout {
    id: "item",
    is_numbered: false,
    keep: Vec::new(),
};

/// The outputs of a network, item after item, as [`Meaning::activate`] returns them: that of the task, and those of
/// [`Meaning::more`].
pub fn activated(network: &Network, meaning: &Meaning, inputs: DynTensor) -> Vec<f32> {
    let read = |outputs: Tensor<2>, meaning: &Meaning| {
        let outputs = outputs.into_data();
        let mut numbers: Vec<f32> = outputs.iter::<f32>().collect();
        meaning.activate(&mut numbers);
        numbers
    };
    if meaning.more().is_empty() {
        return read(network.outputs(inputs), meaning);
    }
    let num_items = inputs.dims()[0];
    let (output, more) = network.all_outputs(inputs);
    let meanings = meaning.more().iter().map(|(_, meaning)| meaning);
    let more = more.into_iter().zip(meanings);
    let more = more.map(|(output, meaning)| read(output, meaning));
    let all: Vec<Vec<f32>> = [read(output, meaning)].into_iter().chain(more).collect();
    let of_item = |item: usize| {
        all.iter().flat_map(move |numbers| {
            let size = numbers.len() / num_items;
            &numbers[item * size..(item + 1) * size]
        })
    };
    (0..num_items).flat_map(of_item).copied().collect()
}

/// Writes the predictions of a network for some splits, each with the name of its file. Those of an earlier end of the
/// run are removed.
pub fn write(
    job: &Job,
    network: &Network,
    transforms: &Transforms,
    splits: &[(&Loader, String)],
) -> Result<(), Outcome> {
    let folder = job.folder.predictions();
    match fs::remove_dir_all(&folder) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(unwritten(&folder, &e)),
        _ => {}
    }
    let meaning = Meaning::new(&job.plan, transforms);
    for (loader, name) in splits {
        let path = folder.join(name);
        let mut failure = None;
        let written = write_whole_by(&path, |file| {
            let write = write_split(job, network, &meaning, loader, file);
            write.map_err(|error| match error {
                Wrong::Output(error) => io::Error::other(error.message),
                Wrong::Run(outcome) => {
                    failure = Some(outcome);
                    io::Error::other("no predictions")
                }
            })
        });
        match (failure, written) {
            (Some(outcome), _) => return Err(outcome),
            (None, Err(e)) => return Err(unwritten(&path, &e)),
            (None, Ok(())) => {}
        }
    }
    Ok(())
}

/// Why predictions are incomplete.
enum Wrong {
    /// They cannot be written.
    Output(DataError),
    /// They cannot be computed.
    Run(Outcome),
}

fn write_split(
    job: &Job,
    network: &Network,
    meaning: &Meaning,
    loader: &Loader,
    out: impl io::Write,
) -> Result<(), Wrong> {
    let format = match job.plan.predictions.format {
        PredictionsFormat::Csv => OutputFormat::Csv,
        PredictionsFormat::Jsonl => OutputFormat::JsonLines,
        PredictionsFormat::Npy => OutputFormat::Npy,
        PredictionsFormat::Parquet => OutputFormat::Parquet,
    };
    let writer = Writer::new(format, ITEMS, meaning, out, None);
    let mut writer = writer.map_err(Wrong::Output)?;
    let places = Places::new(&job.plan.data, loader.split());
    let mut at = 0;
    for batch in loader.iter() {
        let batch =
            batch.map_err(|e| Wrong::Run(Outcome::failed(FailureClass::Data, e.to_string())))?;
        let num = batch.inputs.dims()[0];
        let mut numbers = activated(network, meaning, batch.inputs);
        if let Targets::Classes(targets) = batch.targets
            && matches!(meaning.task(), TaskKind::MaskedToken | TaskKind::NextToken)
        {
            let targets: Vec<i32> = targets.into_data().iter::<i32>().collect();
            let positions = decisive_of(meaning.task(), &targets, num);
            numbers = meaning.at_positions(&numbers, &positions);
        }
        for (prediction, more) in meaning.decide_outputs(&numbers, num) {
            let added = writer.add(meaning, &places.of(at), &[], (&prediction, &more));
            added.map_err(Wrong::Output)?;
            at += 1;
        }
    }
    WrongCount::check(loader.name(), at, loader.num_items())
        .map_err(|wrong| Wrong::Run(wrong_count(wrong)))?;
    writer.finish(meaning).map_err(Wrong::Output)?;
    Ok(())
}

fn unwritten(path: &Path, error: &io::Error) -> Outcome {
    let message = format!("`{}` cannot be written: {error}", path.display());
    Outcome::failed(FailureClass::Disk, message)
}
