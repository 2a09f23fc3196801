//! Pictures of the items that the generator of an adversarial training makes after each epoch, always from the same
//! noise: that of the first items of the valid split.

use std::fs;
use std::io;

use burn::data::dataloader::DataLoader;
use burn::tensor::ExecutionError;

use runner_core::data::picture::data_url;
use runner_core::data::{Pictures, Split};
use runner_core::event::{FailureClass, Outcome};
use runner_core::plan::RunPlan;
use runner_core::record::evaluation::EpochPicture;
use runner_core::record::{RunFolder, write_whole};
use runner_core::spec::plain_file;
use runner_network::batch::Batch;
use runner_network::network::Network;

/// Items in the picture of an epoch.
const NUM_ITEMS: usize = 20;
/// Items in a row of it.
const NUM_COLUMNS: usize = 10;
/// Pixels of the longer side of an item.
const SIDE: usize = 64;
/// The maximum number of epochs that an evaluation shows.
const MAX_SHOWN: usize = 10;
/// The maximum size of a picture in bytes: one without any compression is smaller.
const MAX_BYTES: u64 = 4 << 20;

/// Whether there are such pictures: items are generated, and are images.
pub fn are_drawn(plan: &RunPlan, split: &Split) -> bool {
    plan.strategy.adversarial().is_some() && Pictures::of(split.set()).is_some()
}

/// Draws what a network generates after an epoch for the first items of the valid split.
pub fn write(
    folder: &RunFolder,
    network: &Network,
    (split, valid): (&Split, &dyn DataLoader<Batch>),
    epoch: usize,
) -> Result<(), Outcome> {
    let Some(pictures) = Pictures::of(split.set()) else {
        return Ok(());
    };
    let width: usize = pictures.shape.iter().product();
    let mut items: Vec<Vec<f32>> = Vec::new();
    for batch in valid.iter() {
        let batch = batch.map_err(|e| Outcome::failed(FailureClass::Data, e.to_string()))?;
        let batch = batch.without_autodiff();
        let made = network.first_generated(&batch, NUM_ITEMS - items.len());
        let unread = |e: ExecutionError| Outcome::failed(FailureClass::DeviceLost, e.to_string());
        let values = made.map(|made| made.try_into_data().map_err(unread));
        let values: Vec<f32> = match values.transpose()? {
            Some(values) => values.iter::<f32>().collect(),
            None => break,
        };
        items.extend(values.chunks_exact(width).map(<[f32]>::to_vec));
        if items.len() >= NUM_ITEMS {
            break;
        }
    }
    let Some(png) = pictures.sheet(&items, SIDE, NUM_COLUMNS) else {
        return Ok(());
    };
    let path = folder.sample(epoch);
    write_whole(&path, &png).map_err(|e| unusable(&path, &e))
}

/// Removes the pictures of later epochs, which are left by a training that starts again.
pub fn forget_after(folder: &RunFolder, epoch: usize) -> Result<(), Outcome> {
    for later in folder.sampled_epochs() {
        if later > epoch {
            let path = folder.sample(later);
            fs::remove_file(&path).map_err(|e| unusable(&path, &e))?;
        }
    }
    Ok(())
}

/// The pictures of some epochs that are spread evenly over the training, with the first and the last one.
pub fn of_epochs(folder: &RunFolder) -> Result<Vec<EpochPicture>, Outcome> {
    let epochs = folder.sampled_epochs();
    let num = MAX_SHOWN.min(epochs.len());
    let mut shown: Vec<usize> = (0..num)
        .map(|at| epochs[at * (epochs.len() - 1) / (num - 1).max(1)])
        .collect();
    shown.dedup();
    let read = |epoch: usize| {
        let path = folder.sample(epoch);
        let png = plain_file::read(&path, MAX_BYTES).map_err(|e| unusable(&path, &e))?;
        Ok(EpochPicture {
            epoch,
            picture: data_url(&png.unwrap_or_default()),
        })
    };
    shown.into_iter().map(read).collect()
}

fn unusable(path: &std::path::Path, error: &io::Error) -> Outcome {
    Outcome::failed(FailureClass::Disk, format!("{}: {error}", path.display()))
}
