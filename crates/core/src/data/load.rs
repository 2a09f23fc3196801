//! From a plan to the items of its splits: read, assigned, fitted and digested.

mod chats;
mod edges;
mod files;
mod items;
mod running_text;
mod stored;
mod targets;

use std::collections::BTreeMap;

use super::encode::Pixels;
use super::read::Watch;
use super::serve::Split;
use super::{
    DataError, DataPlan, Dataset, Items, Trust, cache, content, embedded, generate, mnist, own,
};
use crate::spec::data::ScaleAxis;
pub(super) use files::Reading;
use items::{Described, of_items, of_records};

/// A data set, ready to be trained on.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The train split.
    pub train: Split,
    /// The valid split, which epochs are compared on.
    pub valid: Split,
    /// The test split, which is evaluated once.
    pub test: Option<Split>,
    /// What brings values of images back to pixels.
    pub pixels: Pixels,
    /// sha256 of each split's items in order, by split.
    pub digests: BTreeMap<String, String>,
    /// Items that were dropped because a value is missing.
    pub num_dropped: usize,
}

/// The splits of a data set, before fitting and digests.
pub(super) struct Splits {
    pub(super) train: Split,
    pub(super) valid: Split,
    pub(super) test: Option<Split>,
    pub(super) num_dropped: usize,
}

/// Reads, checks and splits the items of a plan. Files that certainly did not change are not read again.
pub fn load(plan: &DataPlan, watch: Watch<'_>) -> Result<Loaded, DataError> {
    load_by(plan, Trust::Stamps, watch)
}

/// The same; with [`Trust::Bytes`] every file is read to its end.
pub fn load_by(plan: &DataPlan, trust: Trust, watch: Watch<'_>) -> Result<Loaded, DataError> {
    let splits = splits(plan, trust, watch)?;
    let mut digests = BTreeMap::new();
    let named = [
        ("train", Some(&splits.train)),
        ("valid", Some(&splits.valid)),
        ("test", splits.test.as_ref()),
    ];
    for (name, split) in named {
        if let Some(split) = split {
            digests.insert(name.to_owned(), split.digest());
        }
    }
    Ok(Loaded {
        pixels: splits.train.set().encoder.input.pixels(),
        train: splits.train,
        valid: splits.valid,
        test: splits.test,
        digests,
        num_dropped: splits.num_dropped,
    })
}

/// The items of a plan, checked and split.
pub(super) fn splits(plan: &DataPlan, trust: Trust, watch: Watch<'_>) -> Result<Splits, DataError> {
    let splits = match &plan.dataset {
        Dataset::Files { files, cache } => {
            let [now, former] = cache::digest_and_former(files, cache, trust)?;
            if plan.digest != former {
                as_planned(plan, &now)?;
            }
            let reading = Reading {
                split: &plan.split,
                scale: plan.scale,
                scale_axis: match plan.scale_axis {
                    None => ScaleAxis::All,
                    Some(_) if !plan.input.parts.is_empty() => ScaleAxis::Auto,
                    Some(axis) => ScaleAxis::Along(axis as i64),
                },
                augment: plan.augment.as_ref(),
                label_noise: plan.label_noise,
                measure: true,
            };
            reading.files(files, &now, cache, watch)?
        }
        Dataset::Iris => embedded(embedded::iris()?, plan)?,
        Dataset::KarateClub => {
            as_planned(plan, &content::of_karate_club())?;
            let (items, edges) = embedded::karate_club();
            of_items(items, None, Some(edges), plan)?
        }
        Dataset::Digits { image_size } => embedded(embedded::digits(*image_size)?, plan)?,
        Dataset::Mnist {
            folder,
            part,
            cache,
        } => {
            let (records, digest) = mnist::records(folder, *part, cache, trust)?;
            as_planned(plan, &digest)?;
            of_records(Described::mnist(&records), records, None, plan)?
        }
        Dataset::Synthetic(generated) => {
            as_planned(plan, &content::of_generated(generated))?;
            of_items(generate::generate(generated), None, None, plan)?
        }
        Dataset::Own { source, folder } => {
            let (items, test) = own::items(source, folder)?;
            as_planned(plan, &content::of_both(&items, test.as_ref()))?;
            of_items(items, test, None, plan)?
        }
    };
    items_as_planned(plan, &splits)?;
    Ok(splits)
}

/// Embedded data.
fn embedded(items: Items, plan: &DataPlan) -> Result<Splits, DataError> {
    as_planned(plan, &content::of_items(&items))?;
    of_items(items, None, None, plan)
}

fn changed(how: &str) -> DataError {
    DataError::new(format!(
        "the data changed since the experiment was planned: {how}"
    ))
    .help("restore the data as it was, or run `runner run` on the experiment again to train on what it is now")
}

/// Refuses data with a different digest than the plan's. Plans of earlier versions may have none.
fn as_planned(plan: &DataPlan, digest: &str) -> Result<(), DataError> {
    if plan.digest.is_empty() || plan.digest == digest {
        return Ok(());
    }
    Err(match &plan.dataset {
        Dataset::Mnist { .. } | Dataset::Files { .. } => {
            changed("the content of its files changed")
        }
        Dataset::Digits { .. } | Dataset::Iris | Dataset::KarateClub | Dataset::Synthetic(_) => {
            let message = format!(
                "this build of runner has a different data set `{}` than the run was planned with",
                plan.dataset.name()
            );
            DataError::new(message).help("run `runner run` on the experiment again")
        }
        Dataset::Own { source, .. } => {
            let message = format!(
                "the data source `{}` gave other items than the run was planned with",
                source.part
            );
            let error = DataError::new(message).note(
                "its items must be functions of its settings, and of files that do not change",
            );
            error.help("run `runner run` on the experiment again if a file changed; otherwise correct the data source")
        }
    })
}

/// Refuses items whose number, shape or kind differs from the plan.
fn items_as_planned(plan: &DataPlan, splits: &Splits) -> Result<(), DataError> {
    let num = |split: &Split| split.num_items();
    let num_test = splits.test.as_ref().map_or(0, num);
    let expected = (plan.num_train, plan.num_valid, plan.num_test);
    let found = (num(&splits.train), num(&splits.valid), num_test);
    if expected != found {
        return Err(changed(&format!(
            "expected {} train, {} valid and {} test items, found {}, {} and {}",
            expected.0, expected.1, expected.2, found.0, found.1, found.2
        )));
    }
    let encoder = &splits.train.set().encoder;
    let input = splits.train.set().input_plan();
    let target = encoder.target.plan(&input);
    let more = encoder.more_plans(&input);
    if input != plan.input || target != plan.target || more != plan.more_targets {
        return Err(changed(&format!(
            "expected items of {} with {}, found {} with {}",
            plan.input.show(),
            plan.target.show(),
            input.show(),
            target.show()
        )));
    }
    Ok(())
}
