//! Metrics of a run's network on new data, and of two networks on the same data.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::predict::split_of;
use super::{Asked, Progress, Sink};
use crate::error::Error;
use crate::model::{Assessed, LEVEL, Model, Options, Refusal, has_parts, refusal};
use runner_core::data::incoming::Incoming;
use runner_core::data::{DataError, TargetValues};
use runner_core::diagnostic::{Diagnostic, counted};
use runner_core::predict::Assessment;
use runner_core::spec::data::DataKind;
use runner_core::spec::task::TaskKind;

/// The default number of items that are computed at a time.
const BATCH_SIZE: usize = 256;

/// A network to evaluate.
#[derive(Clone, Debug)]
pub struct Evaluate {
    /// The folder of a run or of an experiment, or a capsule.
    pub run: PathBuf,
    /// Another run, compared with it on the same items.
    pub against: Option<PathBuf>,
    /// The items, with their targets.
    pub asked: Asked,
    /// The file or folder of targets, if they are not next to the inputs.
    pub targets: Option<PathBuf>,
    /// The file of edges between new nodes, if the items are graphs.
    pub edges: Option<PathBuf>,
    /// The type of the file, if it does not follow from its name.
    pub kind: Option<DataKind>,
    /// Whether items that cannot be used are skipped instead of refused.
    pub skips_bad: bool,
    /// Columns of a table that are not part of the network's array.
    pub ignore: Vec<String>,
    /// Items that are computed at a time; by default, the validation batch size for a split, and otherwise 256.
    pub batch_size: Option<usize>,
    /// The options for opening the runs.
    pub options: Options,
}

impl Evaluate {
    /// An evaluation on a file.
    pub fn new(run: impl Into<PathBuf>, data: impl Into<PathBuf>) -> Self {
        Self {
            run: run.into(),
            against: None,
            asked: Asked::File(data.into(), None),
            targets: None,
            edges: None,
            kind: None,
            skips_bad: false,
            ignore: Vec::new(),
            batch_size: None,
            options: Options::default(),
        }
    }
}

/// Evaluates a network, and compares it with another one if requested.
///
/// # Errors
///
/// [`Error::Refused`] if a run or the data cannot be used, or if the two runs cannot be compared.
///
/// ```no_run
/// use burn_runner::ops::{self, Evaluate};
///
/// let mut options = Evaluate::new("results/iris_csv", "labelled.csv");
/// options.against = Some("results/other".into());
/// let assessment = ops::evaluate(&options, &ops::quiet)?;
/// println!("{} items", assessment.num_items);
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn evaluate(asked: &Evaluate, sink: &Sink<'_>) -> Result<Assessment, Error> {
    let open = |run: &Path| -> Result<Model, Error> {
        let model = Model::open(run, &asked.options).map_err(Error::Refused)?;
        has_parts(model.plan().missing_in_measuring()).map_err(Error::Refused)?;
        if let Some(why) = &model.found().why {
            sink(Progress::Note(&format!("evaluating {why}")));
        }
        Ok(model)
    };
    let mut models = vec![open(&asked.run)?];
    if let Some(other) = &asked.against {
        models.push(open(other)?);
    }
    if let Asked::File(path, shown) = &asked.asked
        && models[0].is_of_running_text()
    {
        return questions(asked, &models, path, shown.as_deref(), sink);
    }
    if let [first, second] = &models[..] {
        comparable(first, second)?;
    }
    let mut assessed: Vec<Assessed> = models.iter().map(Assessed::new).collect();
    let mut targets = Vec::new();
    let mut num_skipped = 0;
    for (model, assessed) in models.iter().zip(&mut assessed) {
        let mut seen = Vec::new();
        let skipped = match &asked.asked {
            Asked::Split(name) => {
                let split = split_of(model, name, sink)?;
                let size = asked.batch_size.unwrap_or(model.plan().train.batch_size);
                seen.push(split.digest());
                let measured = model.assess(&split, size, assessed);
                measured.map_err(Error::Refused)?;
                0
            }
            Asked::File(path, shown) => file(
                asked,
                model,
                path,
                shown.as_deref(),
                assessed,
                &mut seen,
                sink,
            )?,
        };
        num_skipped = skipped;
        targets.push(seen);
    }
    if let [first, second] = &targets[..]
        && first != second
    {
        let message = "the two runs use different targets of the data, so they cannot be compared item by item";
        let help = "compare runs that were trained on the same task and classes; `runner compare` compares their recorded metrics";
        return Err(Error::refused(
            Diagnostic::error("usage", message).help(help),
        ));
    }
    let (model, first) = (&models[0], &assessed[0]);
    let names = model.meaning().names();
    let (run, other) = called(asked, &models);
    Ok(Assessment {
        run,
        weights: model.weights().to_owned(),
        data: match &asked.asked {
            Asked::Split(name) => format!("{name} split of {}", model.plan().data.dataset.name()),
            Asked::File(path, shown) => shown.clone().unwrap_or_else(|| path.display().to_string()),
        },
        num_items: first.num_items() as u64,
        num_skipped,
        level: LEVEL,
        num_resamples: first.num_resamples(),
        metrics: first.metrics(),
        confusion: first.confusion(names),
        separations: first.separations(names),
        residuals: first.residuals(names),
        against: match (&assessed[..], other) {
            ([first, second], Some(other)) => Some(first.against(second, other)),
            _ => None,
        },
    })
}

/// The answers of language models to the questions of a file.
fn questions(
    asked: &Evaluate,
    models: &[Model],
    path: &Path,
    shown: Option<&str>,
    sink: &Sink<'_>,
) -> Result<Assessment, Error> {
    let unused = [
        ("targets", asked.targets.is_some()),
        ("edges", asked.edges.is_some()),
        ("ignore", !asked.ignore.is_empty()),
        ("on-bad-item", asked.skips_bad),
        ("batch-size", asked.batch_size.is_some()),
    ];
    if let Some((flag, _)) = unused.iter().find(|(_, is_set)| *is_set) {
        let message = format!("`--{flag}` has no effect on questions for a language model");
        let help = format!("remove `--{flag}`; each question has its answer in its row");
        return Err(Error::refused(
            Diagnostic::error("usage", message).help(help),
        ));
    }
    let name = shown.map_or_else(|| path.display().to_string(), str::to_owned);
    let renamed = |mut error: DataError| {
        error.message = error.message.replace(&path.display().to_string(), &name);
        Error::Refused(refusal(&error))
    };
    let columns: Vec<_> = models.iter().filter_map(Model::text_column).collect();
    let questions = runner_core::predict::questions(path, asked.kind, &columns).map_err(renamed)?;
    let answered = models.iter().map(|model| {
        let answered = model.answer(&questions).map_err(Error::Refused)?;
        if answered.num_cut > 0 {
            let note = format!(
                "run `{}`: {} with a context are longer than an item, and their start was cut off",
                model.plan().id,
                counted(answered.num_cut as usize, "choice")
            );
            sink(Progress::Note(&note));
        }
        Ok(answered)
    });
    let answered = answered.collect::<Result<Vec<_>, Error>>()?;
    let first = &answered[0];
    let (run, other) = called(asked, models);
    Ok(Assessment {
        run,
        weights: models[0].weights().to_owned(),
        data: name,
        num_items: first.num_items() as u64,
        num_skipped: 0,
        level: LEVEL,
        num_resamples: first.num_resamples(),
        metrics: first.metrics(),
        confusion: None,
        separations: Vec::new(),
        residuals: Vec::new(),
        against: match (&answered[..], other) {
            ([first, second], Some(other)) => Some(first.against(second, other)),
            _ => None,
        },
    })
}

/// The names of the run and of the other, if there is one: their ids, after their experiments if the ids are the same, or
/// their paths.
fn called(asked: &Evaluate, models: &[Model]) -> (String, Option<String>) {
    let id = |model: &Model| model.plan().id.clone();
    let (first, Some(other)) = (&models[0], models.get(1)) else {
        return (id(&models[0]), None);
    };
    let whole = |model: &Model| format!("{}/{}", model.plan().experiment, model.plan().id);
    let of = |name: &dyn Fn(&Model) -> String| {
        let (first, other) = (name(first), name(other));
        (first != other).then_some((first, Some(other)))
    };
    of(&id).or_else(|| of(&whole)).unwrap_or_else(|| {
        let other = asked
            .against
            .as_deref()
            .map(|path| path.display().to_string());
        (asked.run.display().to_string(), other)
    })
}

/// Refuses two networks of different tasks or classes.
fn comparable(a: &Model, b: &Model) -> Result<(), Error> {
    let are_same =
        a.plan().task.kind == b.plan().task.kind && a.meaning().names() == b.meaning().names();
    if are_same {
        return Ok(());
    }
    let message = format!(
        "runs `{}` and `{}` have different targets, so they cannot be compared item by item",
        a.plan().id,
        b.plan().id
    );
    let help = "use two runs with the same task and the same classes or targets";
    Err(Error::refused(
        Diagnostic::error("usage", message).help(help),
    ))
}

/// Measures the items of a file; returns how many were skipped.
fn file(
    asked: &Evaluate,
    model: &Model,
    path: &Path,
    shown: Option<&str>,
    assessed: &mut Assessed,
    seen: &mut Vec<String>,
    sink: &Sink<'_>,
) -> Result<u64, Error> {
    let plan = model.plan();
    // What is reconstructed is its own target, whatever the data of the run had.
    let is_own_target =
        plan.task.kind == TaskKind::Autoencoding && plan.data.more_targets.is_empty();
    let incoming = Incoming {
        shown,
        kind: asked.kind,
        targets: asked.targets.as_deref(),
        edges: asked.edges.as_deref(),
        has_targets: !is_own_target,
        skips_bad: asked.skips_bad,
        ignore: &asked.ignore,
        ..model.incoming(path)
    };
    let size = asked.batch_size.unwrap_or(BATCH_SIZE);
    let (mut num_skipped, mut failure): (u64, Option<Refusal>) = (0, None);
    let read = incoming.read(&mut |piece| {
        for skipped in &piece.skipped {
            num_skipped += 1;
            sink(Progress::Note(&format!("skipped: {}", skipped.show())));
        }
        let all: Vec<u32> = (0..piece.split.num_items() as u32).collect();
        if asked.against.is_some() {
            let targets = match piece.split.serve(&all, None).targets {
                TargetValues::Classes(classes) => format!("{classes:?}"),
                TargetValues::Floats(_) | TargetValues::Doubles(_) => piece.ids.join(","),
            };
            seen.push(runner_core::data::sha256_hex(targets.as_bytes()));
        }
        match model.assess(&piece.split, size, assessed) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    if let Some(error) = failure {
        return Err(Error::Failed(error));
    }
    read.map_err(|e| Error::Refused(refusal(&e)))?;
    Ok(num_skipped)
}
