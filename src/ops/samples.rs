//! Items that the generator of an adversarial training makes, as a file or a folder of images.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::predict::{format_of, split_of, unwritable, write_to};
use super::{Progress, Sink};
use crate::error::Error;
use crate::model::{Model, Options, Wanted, refusal};
use runner_core::predict::{Layout, OutputFormat, Writer};

/// Items that are computed at a time.
const BATCH_SIZE: usize = 256;
/// The table beside images.
const TABLE: &str = "samples.csv";

/// A request for generated items.
#[derive(Clone, Debug)]
pub struct Samples {
    /// The folder of a run or of an experiment, or a capsule.
    pub run: PathBuf,
    /// The options for opening the run.
    pub options: Options,
    /// The number of items.
    pub num: usize,
    /// The class to generate items of, by a conditional pair; by default each in turn.
    pub class: Option<String>,
    /// The split for whose targets items are generated instead: `train`, `valid` or `test`.
    pub split: Option<String>,
    /// The seed of the noise: the same seed gives the same items.
    pub seed: u64,
    /// The file, or the folder of images.
    pub out: PathBuf,
    /// Whether an existing one is replaced.
    pub force: bool,
    /// The output format; by default the one that `out` implies.
    pub format: Option<OutputFormat>,
}

impl Samples {
    /// Sixteen items in a file or a folder.
    pub fn new(run: impl Into<PathBuf>, out: impl Into<PathBuf>) -> Self {
        Self {
            run: run.into(),
            options: Options::default(),
            num: 16,
            class: None,
            split: None,
            seed: 0,
            out: out.into(),
            force: false,
            format: None,
        }
    }
}

/// Generates items and writes them in the units of the data.
///
/// # Errors
///
/// [`Error::Refused`] if the run cannot be opened or has no generator, or the file may not be written.
///
/// ```no_run
/// use burn_runner::ops::{self, Samples};
///
/// ops::samples(&Samples::new("results/digits_gan", "samples.npy"), &ops::quiet)?;
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn samples(asked: &Samples, sink: &Sink<'_>) -> Result<(), Error> {
    let format = format_of(asked.format, Some(&asked.out))?;
    let to = (asked.out.as_path(), asked.force);
    write_to(to, format, TABLE, |out, folder| {
        run(asked, format, (out, folder), sink)
    })
}

fn run(
    asked: &Samples,
    format: OutputFormat,
    (out, folder): (&mut dyn Write, Option<&Path>),
    sink: &Sink<'_>,
) -> Result<(), Error> {
    let model = Model::open(&asked.run, &asked.options).map_err(Error::Refused)?;
    if let Some(why) = &model.found().why {
        sink(Progress::Note(&format!("generating with {why}")));
    }
    let wanted = match (&asked.class, &asked.split) {
        (_, Some(split)) => Wanted::TargetsOf(Box::new(split_of(&model, split, sink)?)),
        (Some(class), None) => Wanted::Class(class.clone()),
        (None, None) => Wanted::EachClass,
    };
    let sampler = model.sampler(asked.seed, wanted);
    let sampler = sampler.map_err(Error::Refused)?;
    let layout = Layout {
        id: "item",
        is_numbered: true,
        keep: if sampler.has_classes() {
            vec!["class".to_owned()]
        } else {
            Vec::new()
        },
    };
    let meaning = model.meaning();
    let writer = Writer::new(format, layout, meaning, out, folder);
    let mut writer = writer.map_err(|e| Error::Refused(refusal(&e)))?;
    for first in (0..asked.num).step_by(BATCH_SIZE) {
        let items = first..(first + BATCH_SIZE).min(asked.num);
        let classes = sampler.classes(items.clone());
        for (number, item) in sampler.items(items.clone()).into_iter().enumerate() {
            let id = (items.start + number + 1).to_string();
            let class = classes.as_ref().map(|classes| classes[number].clone());
            let kept: Vec<String> = class.into_iter().collect();
            let written = writer.add(meaning, &id, &kept, (&item, &[]));
            written.map_err(unwritable)?;
        }
    }
    writer.finish(meaning).map_err(unwritable)?;
    Ok(())
}
