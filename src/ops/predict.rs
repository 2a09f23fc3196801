//! Predictions of a run's network for new data, or for a split of the run's own data.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use super::place::{File, Folder, apart, unwritten};
use super::{Progress, Sink};
use crate::error::Error;
use crate::model::{Model, Options, averaged, refusal};
use runner_core::data::incoming::{Piece, kind_of};
use runner_core::data::{self, DataError, Places, Split};
use runner_core::diagnostic::{Diagnostic, counted};
use runner_core::predict::{Layout, OutputFormat, Prediction, Writer, pictures_of};
use runner_core::record::decoded_folder;
use runner_core::spec::data::DataKind;

/// The default number of items that are computed at a time: enough for every core, with little memory.
const BATCH_SIZE: usize = 256;

/// The table beside masks.
const TABLE: &str = "predictions.csv";

/// The data to predict.
#[derive(Clone, Debug)]
pub enum Asked {
    /// The items of a file or folder, with a name for messages if it is a copy.
    File(PathBuf, Option<String>),
    /// The items of a split of the run's own data: `train`, `valid` or `test`.
    Split(String),
}

impl Asked {
    /// The file or folder of new items.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path, _) => Some(path),
            Self::Split(_) => None,
        }
    }
}

/// A request for predictions.
#[derive(Clone, Debug)]
pub struct Predict {
    /// The folder of a run or of an experiment, or a capsule.
    pub run: PathBuf,
    /// The items.
    pub asked: Asked,
    /// The file of edges between new nodes, if the items are graphs.
    pub edges: Option<PathBuf>,
    /// The type of the file, if it does not follow from its name.
    pub kind: Option<DataKind>,
    /// Whether items that cannot be used are skipped instead of refused.
    pub skips_bad: bool,
    /// Columns of a table that are copied to the output.
    pub keep: Vec<String>,
    /// Columns of a table that are not part of the network's array.
    pub ignore: Vec<String>,
    /// Items that are computed at a time; by default, the validation batch size for a split, and otherwise 256.
    pub batch_size: Option<usize>,
    /// The number of seeds of the trial whose predictions are averaged.
    pub ensemble: usize,
    /// The file or folder of predictions; it must not exist.
    pub out: Option<PathBuf>,
    /// Whether an existing file is replaced.
    pub force: bool,
    /// The output format; by default the one that `out` implies, or CSV.
    pub format: Option<OutputFormat>,
    /// The options for opening the run.
    pub options: Options,
}

/// The outcome of a prediction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Predicted {
    /// The number of items with a prediction.
    pub num_items: u64,
    /// Skipped items.
    pub num_skipped: u64,
}

impl Predict {
    /// Predictions for a file.
    pub fn new(run: impl Into<PathBuf>, data: impl Into<PathBuf>) -> Self {
        Self {
            run: run.into(),
            asked: Asked::File(data.into(), None),
            edges: None,
            kind: None,
            skips_bad: false,
            keep: Vec::new(),
            ignore: Vec::new(),
            batch_size: None,
            ensemble: 1,
            out: None,
            force: false,
            format: None,
            options: Options::default(),
        }
    }

    /// Refuses a run or an output that cannot be used. For callers that first have to get the data, such as from
    /// standard input.
    ///
    /// # Errors
    ///
    /// As those of [`predict`], other than those of the data.
    pub fn check(&self) -> Result<(), Error> {
        let format = self.format()?;
        if let (Some(out), true) = (&self.out, format != OutputFormat::Png) {
            File::new(out, self.force)?;
        }
        open(self, &super::quiet).map(drop)
    }

    fn format(&self) -> Result<OutputFormat, Error> {
        format_of(self.format, self.out.as_deref())
    }
}

/// The format that is set, or that the name of the file implies; without both, CSV.
pub(super) fn format_of(
    format: Option<OutputFormat>,
    out: Option<&Path>,
) -> Result<OutputFormat, Error> {
    let (None, Some(out)) = (format, out) else {
        return Ok(format.unwrap_or(OutputFormat::Csv));
    };
    OutputFormat::of(out).ok_or_else(|| {
        let message = format!("the name of `{}` does not tell its format", out.display());
        let help = "let it end in `.csv`, `.jsonl`, `.npy` or `.parquet`, or in `/` for a folder of images; or pass `--format`";
        Error::refused(Diagnostic::error("usage", message).help(help))
    })
}

/// Predicts and writes the file or folder `out`, which appears when all predictions are complete.
///
/// # Errors
///
/// [`Error::Refused`] if the run or the data cannot be used, and [`Error::Failed`] if the file cannot be written;
/// nothing is written then.
///
/// ```no_run
/// use burn_runner::ops::{self, Predict};
///
/// let mut options = Predict::new("results/iris_csv", "flowers.csv");
/// options.out = Some("predictions.csv".into());
/// let predicted = ops::predict(&options, &ops::quiet)?;
/// println!("{}", predicted.in_words());
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn predict(asked: &Predict, sink: &Sink<'_>) -> Result<Predicted, Error> {
    let Some(out) = &asked.out else {
        return predict_to(asked, &mut io::sink(), sink);
    };
    apart(
        out,
        asked.asked.path().into_iter().chain(asked.edges.as_deref()),
    )?;
    let format = asked.format()?;
    write_to((out, asked.force), format, TABLE, |to, folder| {
        run(asked, to, folder, sink)
    })
}

/// Lets `write` write a file, or the table of a folder of images, which appears when it is complete.
pub(super) fn write_to<T>(
    (out, force): (&Path, bool),
    format: OutputFormat,
    table: &str,
    write: impl FnOnce(&mut dyn Write, Option<&Path>) -> Result<T, Error>,
) -> Result<T, Error> {
    if format != OutputFormat::Png {
        return File::new(out, force)?.write(|file| write(file, None));
    }
    let own = pictures_of(&out.join(table));
    let is_own = |name: &OsStr| {
        let is_picture = name.to_str().is_some_and(|name| own.contains(name));
        name == table || is_picture
    };
    Folder::new(out, force, is_own)?.write(|folder| {
        let failed = |e: io::Error| unwritten(out, &e);
        let mut rows = BufWriter::new(fs::File::create(folder.join(table)).map_err(failed)?);
        let written = write(&mut rows, Some(folder))?;
        rows.flush().map_err(failed)?;
        Ok(written)
    })
}

/// Predicts and writes the predictions to a stream as they are computed.
///
/// # Errors
///
/// Like [`predict`], but output that was written before an error remains.
///
/// ```no_run
/// use burn_runner::ops::{self, Predict};
///
/// let mut csv = Vec::new();
/// ops::predict_to(&Predict::new("results/iris_csv", "flowers.csv"), &mut csv, &ops::quiet)?;
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn predict_to(
    asked: &Predict,
    out: &mut dyn Write,
    sink: &Sink<'_>,
) -> Result<Predicted, Error> {
    run(asked, out, None, sink)
}

fn run(
    asked: &Predict,
    out: &mut dyn Write,
    folder: Option<&Path>,
    sink: &Sink<'_>,
) -> Result<Predicted, Error> {
    let models = open(asked, sink)?;
    let model = &models[0];
    let id = id_of(asked, model);
    let layout = Layout {
        id,
        is_numbered: id != "file" && matches!(asked.asked, Asked::File(..)),
        keep: asked.keep.clone(),
    };
    let refused = |e: DataError| Error::Refused(refusal(&e));
    let writer = Writer::new(asked.format()?, layout, model.meaning(), out, folder);
    let mut predicting = Predicting {
        models: &models,
        writer: writer.map_err(refused)?,
        predicted: Predicted::default(),
        not_finite: NotFinite::default(),
        sink,
    };
    match &asked.asked {
        Asked::File(path, shown) => predicting.file(asked, path, shown.as_deref())?,
        Asked::Split(name) => predicting.split(asked, name)?,
    }
    let Predicting {
        writer,
        predicted,
        not_finite,
        ..
    } = predicting;
    not_finite.tell(id, sink);
    writer.finish(model.meaning()).map_err(unwritable)?;
    Ok(predicted)
}

pub(super) fn unwritable(error: DataError) -> Error {
    Error::Failed(Box::new(Diagnostic {
        helps: error.helps,
        ..Diagnostic::error("output", error.message)
    }))
}

/// The models whose predictions are averaged.
fn open(asked: &Predict, sink: &Sink<'_>) -> Result<Vec<Model>, Error> {
    let models = Model::open_seeds(&asked.run, asked.ensemble.max(1), &asked.options);
    let models = models.map_err(Error::Refused)?.into_iter();
    let models: Result<Vec<Model>, _> = models.map(Model::predicting).collect();
    let models = models.map_err(Error::Refused)?;
    for model in &models {
        if let Some(why) = &model.found().why {
            sink(Progress::Note(&format!("predicting with {why}")));
        }
    }
    let first = &models[0];
    let differs = |model: &&Model| model.transforms() != first.transforms();
    if let Some(other) = models.iter().find(differs) {
        let message = format!(
            "runs `{}` and `{}` were trained on different train splits, so their transforms differ",
            first.plan().id,
            other.plan().id
        );
        let help =
            "predict with each of them separately: their folders are in `runs/` of the experiment";
        return Err(Error::refused(
            Diagnostic::error("usage", message).help(help),
        ));
    }
    Ok(models)
}

/// The identifiers of items.
fn id_of(asked: &Predict, model: &Model) -> &'static str {
    let Asked::File(path, _) = &asked.asked else {
        return "item";
    };
    let kind = asked.kind.or_else(|| kind_of(path));
    match kind.or(model.incoming(path).kind_of_run()) {
        _ if path.is_dir() => "file",
        Some(DataKind::ImageFolder) => "file",
        Some(DataKind::Npy | DataKind::Npz | DataKind::Safetensors | DataKind::Idx) => "item",
        Some(DataKind::Text) => "line",
        _ => "row",
    }
}

/// Predictions as they are computed.
struct Predicting<'a, W: Write> {
    models: &'a [Model],
    writer: Writer<W>,
    predicted: Predicted,
    not_finite: NotFinite,
    sink: &'a Sink<'a>,
}

/// Predictions with numbers that are infinite or NaN.
#[derive(Default)]
struct NotFinite {
    num: usize,
    first: String,
}

impl NotFinite {
    fn see(&mut self, id: &str, prediction: &Prediction, more: &[Prediction]) {
        if !prediction.is_finite() || !more.iter().all(Prediction::is_finite) {
            if self.num == 0 {
                id.clone_into(&mut self.first);
            }
            self.num += 1;
        }
    }

    fn tell(&self, id: &str, sink: &Sink<'_>) {
        if self.num > 0 {
            let num = counted(self.num, "prediction");
            sink(Progress::Note(&format!(
                "{num} with infinite numbers or NaN, the first for {id} `{}`: its values are too large for the network",
                self.first
            )));
        }
    }
}

impl<W: Write> Predicting<'_, W> {
    fn file(&mut self, asked: &Predict, path: &Path, shown: Option<&str>) -> Result<(), Error> {
        let models = self.models;
        let incoming = data::incoming::Incoming {
            shown,
            edges: asked.edges.as_deref(),
            kind: asked.kind,
            skips_bad: asked.skips_bad,
            keep: &asked.keep,
            ignore: &asked.ignore,
            ..models[0].incoming(path)
        };
        let batch_size = asked.batch_size.unwrap_or(BATCH_SIZE);
        // The next piece is read while predictions of one are computed and written.
        thread::scope(|scope| {
            let (give, pieces) = mpsc::sync_channel(0);
            let reader = scope.spawn(move || {
                incoming.read(&mut |piece| match give.send(piece) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                })
            });
            for piece in &pieces {
                // The reader stops when nobody takes its pieces.
                self.piece(&piece, batch_size).map_err(unwritable)?;
            }
            let read = reader.join().unwrap_or_else(|panic| resume_unwind(panic));
            read.map_err(|e| Error::Refused(refusal(&e)))
        })
    }

    fn piece(&mut self, piece: &Piece, batch_size: usize) -> Result<(), DataError> {
        for skipped in &piece.skipped {
            self.predicted.num_skipped += 1;
            (self.sink)(Progress::Note(&format!("skipped: {}", skipped.show())));
        }
        let (first, others) = (&self.models[0], &self.models[1..]);
        let others: Vec<_> = others
            .iter()
            .map(|model| model.activated_piece(piece, batch_size))
            .collect();
        let mut at = 0;
        for (part, (numbers, num)) in first
            .activated_piece(piece, batch_size)
            .into_iter()
            .enumerate()
        {
            let others = others.iter().map(|parts| parts[part].0.clone());
            let mean = averaged(std::iter::once(numbers).chain(others).collect());
            for (prediction, more) in first.meaning().decide_outputs(&mean, num) {
                let (id, kept) = (&piece.ids[at], &piece.kept[at]);
                self.not_finite.see(id, &prediction, &more);
                let both = (&prediction, more.as_slice());
                self.writer.add(first.meaning(), id, kept, both)?;
                at += 1;
            }
        }
        self.predicted.num_items += at as u64;
        Ok(())
    }

    fn split(&mut self, asked: &Predict, name: &str) -> Result<(), Error> {
        let (first, plan) = (&self.models[0], self.models[0].plan());
        let split = split_of(first, name, self.sink)?;
        let places = Places::new(&plan.data, &split);
        let all: Vec<u32> = (0..split.num_items() as u32).collect();
        for part in first.parts(&all, asked.batch_size) {
            let each = self.models.iter();
            let mean = averaged(each.map(|model| model.activated(&split, part)).collect());
            let decided = first.meaning().decide_outputs(&mean, part.len());
            for (item, (prediction, more)) in part.iter().zip(decided) {
                let id = places.of(*item as usize);
                self.not_finite.see(&id, &prediction, &more);
                let both = (&prediction, more.as_slice());
                let written = self.writer.add(first.meaning(), &id, &[], both);
                written.map_err(unwritable)?;
            }
        }
        self.predicted.num_items = split.num_items() as u64;
        Ok(())
    }
}

/// A split of the data that a run was trained on.
pub(super) fn split_of(model: &Model, name: &str, sink: &Sink<'_>) -> Result<Split, Error> {
    let watch = |done, total| sink(Progress::Advanced("reading data", done, total));
    // Whoever trained it may have had another cache.
    let data = model.plan().data.clone();
    let loaded = data::load(&data.relocated(&|_, _| None, &decoded_folder()), &watch);
    let loaded = loaded.map_err(|e| Error::Refused(refusal(&e)))?;
    let split = match name {
        "train" => Some(loaded.train),
        "valid" => Some(loaded.valid),
        _ => loaded.test,
    };
    split.ok_or_else(|| {
        let message = format!("run `{}` has no split `{name}`", model.plan().id);
        let help = "its data is split into `train` and `valid`";
        Error::refused(Diagnostic::error("usage", message).help(help))
    })
}

impl Predicted {
    /// In words.
    pub fn in_words(&self) -> String {
        let items = counted(self.num_items as usize, "prediction");
        match self.num_skipped {
            0 => items,
            num => format!("{items}, {} skipped", counted(num as usize, "item")),
        }
    }
}
