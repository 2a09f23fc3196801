//! Differences between weights, as files that can be applied and averaged.

mod side;

use std::path::{Path, PathBuf};

use super::export;
use super::place::{File, apart};
use super::{Progress, Sink};
use crate::error::Error;
use crate::model::{Options, Weights as Which, refusal};
use runner_core::diagnostic::{Diagnostic, counted};
use runner_core::spec::init::InitLayout;
use runner_core::spec::section::Choice;
use runner_exchange::delta::{self, Changes, Delta, Mismatch, NotAveraged, digest};
use runner_exchange::read::Format;
use runner_exchange::tensors::{NamedTensor, Tensors};
use runner_exchange::write::{self, WriteError};
use side::Side;

/// The extension of what is written.
const EXTENSION: &str = "safetensors";
/// Mismatches that a message shows.
const SHOWN: usize = 50;

/// Two sets of weights to compare: each the folder of a run or of an experiment, a capsule, or a file of weights.
#[derive(Clone, Debug)]
pub struct DeltaDiff {
    /// The weights that the delta starts from.
    pub base: PathBuf,
    /// The weights that it leads to.
    pub target: PathBuf,
    /// The options for opening runs among them.
    pub options: Options,
    /// Which weights of the first one, if others than the options say.
    pub base_weights: Option<Which>,
    /// The file of the delta; none to compare only.
    pub out: Option<PathBuf>,
    /// Whether to replace an existing file.
    pub force: bool,
}

impl DeltaDiff {
    /// Two sets of weights to compare only.
    pub fn new(base: impl Into<PathBuf>, target: impl Into<PathBuf>) -> Self {
        Self {
            base: base.into(),
            target: target.into(),
            options: Options::default(),
            base_weights: None,
            out: None,
            force: false,
        }
    }
}

/// What differs between two sets of weights.
#[derive(Clone, Debug, PartialEq)]
pub struct DeltaFound {
    /// The first one: which weights of which run, or its file.
    pub base: String,
    /// The second one.
    pub target: String,
    /// Whether the first one is a run, which has several weights.
    pub has_choice: bool,
    /// The digest of the first one.
    pub base_digest: String,
    /// The digest of the second one.
    pub target_digest: String,
    /// How much each parameter changes.
    pub changes: Changes,
    /// Values that are kept because the sum of weight and difference does not give them.
    pub num_kept: usize,
}

/// A delta to apply.
#[derive(Clone, Debug)]
pub struct DeltaApply {
    /// The file of the delta.
    pub delta: PathBuf,
    /// The weights: the folder of a run or of an experiment, a capsule, or a file of weights.
    pub to: PathBuf,
    /// The options for opening these, if they are of a run.
    pub options: Options,
    /// The factor of the differences.
    pub scale: f64,
    /// Whether the weights may be others than those that the delta starts from.
    pub any_base: bool,
    /// The file of the sum.
    pub out: PathBuf,
    /// Whether to replace an existing file.
    pub force: bool,
}

impl DeltaApply {
    /// A delta to add as it is.
    pub fn new(delta: impl Into<PathBuf>, to: impl Into<PathBuf>, out: impl Into<PathBuf>) -> Self {
        Self {
            delta: delta.into(),
            to: to.into(),
            options: Options::default(),
            scale: 1.0,
            any_base: false,
            out: out.into(),
            force: false,
        }
    }
}

/// Weights to which a delta was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeltaApplied {
    /// The weights that it was applied to.
    pub to: String,
    /// The digest of the sum.
    pub digest: String,
    /// Whether these are exactly the weights that the delta leads to.
    pub is_target: bool,
    /// Tensors that were written.
    pub num_tensors: usize,
}

/// Deltas to average.
#[derive(Clone, Debug)]
pub struct DeltaAverage {
    /// The files of the deltas.
    pub deltas: Vec<PathBuf>,
    /// A factor for each; empty for equal ones. They are divided by their sum.
    pub factors: Vec<f64>,
    /// Whether the deltas may start from different weights.
    pub any_base: bool,
    /// The file of the mean.
    pub out: PathBuf,
    /// Whether to replace an existing file.
    pub force: bool,
}

impl DeltaAverage {
    /// Deltas to average with equal factors.
    pub fn new(deltas: Vec<PathBuf>, out: impl Into<PathBuf>) -> Self {
        Self {
            deltas,
            factors: Vec::new(),
            any_base: false,
            out: out.into(),
            force: false,
        }
    }
}

/// Compares two sets of weights by parameter, and writes the differences to a file if one is asked for.
///
/// # Errors
/// [`Error::Refused`] if weights cannot be read, their names, shapes or types differ, or the file may not be written.
///
/// ```no_run
/// use burn_runner::ops::{self, DeltaDiff};
///
/// let mut options = DeltaDiff::new("results/base/runs/base-s1", "results/tuned/runs/base-s1");
/// options.out = Some("tuned.delta.safetensors".into());
/// let found = ops::delta_diff(&options, &ops::quiet)?;
/// println!("norm {}", found.changes.all.norm);
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn delta_diff(asked: &DeltaDiff, sink: &Sink<'_>) -> Result<DeltaFound, Error> {
    let out = asked.out.as_deref();
    let file = out.map(|out| destination(out, asked.force, [&asked.base, &asked.target]));
    let file = file.transpose()?;
    // Which weights is a question for runs; if there are none, a file refuses the answer.
    let has_runs = !side::is_file(&asked.base) || !side::is_file(&asked.target);
    let options = |path: &Path, own: Option<Which>| Options {
        weights: own.or(asked
            .options
            .weights
            .filter(|_| !has_runs || !side::is_file(path))),
        ..asked.options.clone()
    };
    let of_base = options(&asked.base, asked.base_weights);
    let base = Side::open(&asked.base, &of_base, sink)?;
    let target = Side::open(&asked.target, &options(&asked.target, None), sink)?;
    same_layout((base.layout, &base.shown), (target.layout, &target.shown))?;
    let delta = Delta::between(&base.tensors, &target.tensors, base.layout).map_err(|rows| {
        let message = format!("{} and {} have different parameters", base.shown, target.shown);
        mismatched(message, &rows, (&base.shown, &target.shown)).help(
            "compare weights of one network and type; `runner export weights --dtype` converts them",
        )
    });
    let delta = delta.map_err(Error::refused)?;
    if let (Some(file), Some(out)) = (file, out) {
        file.write(|to| delta::write(&delta, to).map_err(|e| unwritten(out, e)))?;
    }
    Ok(DeltaFound {
        has_choice: !side::is_file(&asked.base),
        changes: delta::changes(&delta, &base.tensors),
        num_kept: delta.num_kept(),
        base_digest: delta.base.unwrap_or_default(),
        target_digest: delta.target.unwrap_or_default(),
        base: base.shown,
        target: target.shown,
    })
}

/// Adds a delta to weights, and writes the sum as safetensors.
///
/// # Errors
/// [`Error::Refused`] if the delta or the weights cannot be read or do not match, or the file may not be written.
///
/// ```no_run
/// use burn_runner::ops::{self, DeltaApply};
///
/// let options = DeltaApply::new("tuned.delta.safetensors", "results/base", "tuned.safetensors");
/// let applied = ops::delta_apply(&options, &ops::quiet)?;
/// assert!(applied.is_target);
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn delta_apply(asked: &DeltaApply, sink: &Sink<'_>) -> Result<DeltaApplied, Error> {
    if !asked.scale.is_finite() || asked.scale == 0.0 {
        let message = format!(
            "the scale {} is not a finite number other than 0",
            asked.scale
        );
        let help = "use a scale such as 0.5, or -1 to subtract the differences";
        return Err(Error::refused(
            Diagnostic::error("usage", message).help(help),
        ));
    }
    let file = destination(&asked.out, asked.force, [&asked.delta, &asked.to])?;
    let delta = read(&asked.delta)?;
    let base = Side::open(&asked.to, &asked.options, sink)?;
    let shown = format!("`{}`", asked.delta.display());
    same_layout((delta.layout, &shown), (base.layout, &base.shown))?;
    let is_base = delta.starts_from(&digest(&base.tensors));
    if !asked.any_base && !is_base {
        return Err(other_base(&delta, &shown, &base.shown));
    }
    let sum = delta.apply(&base.tensors, asked.scale).map_err(|rows| {
        let message = format!("{shown} does not fit {}", base.shown);
        let sides = ("the delta", "the weights");
        Error::refused(
            mismatched(message, &rows, sides)
                .help("apply a delta to weights of the network that it was made from"),
        )
    })?;
    let reached = digest(&sum);
    let is_target = delta.target.as_ref() == Some(&reached);
    if is_base && asked.scale == 1.0 && delta.target.is_some() && !is_target {
        let message = format!("{shown} does not lead to the weights that it names: it is damaged");
        let help = "copy the file again, or make it again with `runner delta diff`";
        return Err(Error::refused(
            Diagnostic::error("delta", message).help(help),
        ));
    }
    note_not_finite(&sum, sink);
    let num_tensors = sum.len() + base.others.len();
    let whole = base
        .with_others(sum)
        .map_err(|e| unwritten(&asked.out, e))?;
    let about = match base.layout {
        InitLayout::Burn => ("layout", base.layout.name()),
        _ => ("format", "pt"),
    };
    file.write(|to| {
        write::safetensors_about(&whole, about, to).map_err(|e| unwritten(&asked.out, e))
    })?;
    Ok(DeltaApplied {
        to: base.shown,
        digest: reached,
        is_target,
        num_tensors,
    })
}

/// Averages deltas, and writes the mean as a delta. Returns the number of its parameters.
///
/// # Errors
/// [`Error::Refused`] if a delta cannot be read, they do not match, or the file may not be written.
///
/// ```no_run
/// use burn_runner::ops::{self, DeltaAverage};
///
/// let deltas = ["a.safetensors", "b.safetensors"].map(Into::into).to_vec();
/// let mut options = DeltaAverage::new(deltas, "mean.safetensors");
/// options.factors = vec![600.0, 400.0];
/// ops::delta_average(&options)?;
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn delta_average(asked: &DeltaAverage) -> Result<usize, Error> {
    let file = destination(&asked.out, asked.force, &asked.deltas)?;
    let refused = |diagnostic: Diagnostic| Err(Error::refused(diagnostic));
    let num = asked.deltas.len();
    if !asked.factors.is_empty() && asked.factors.len() != num {
        let message = format!(
            "{} for {}",
            counted(asked.factors.len(), "factor"),
            counted(num, "delta")
        );
        let help = "pass `--factor` once for each delta, in their order, or not at all";
        return refused(Diagnostic::error("usage", message).help(help));
    }
    let deltas = asked.deltas.iter().map(|path| read(path));
    let deltas = deltas.collect::<Result<Vec<_>, _>>()?;
    let shown = |at: usize| format!("`{}`", asked.deltas[at].display());
    for (at, delta) in deltas.iter().enumerate().skip(1) {
        same_layout((deltas[0].layout, &shown(0)), (delta.layout, &shown(at)))?;
        if delta.base != deltas[0].base && !asked.any_base {
            let message = format!(
                "{} and {} start from different weights",
                shown(0),
                shown(at)
            );
            return refused(Diagnostic::error("delta", message).help(
                "average deltas from the same weights, or pass `--any-base` if these are meant",
            ));
        }
    }
    let factors = match asked.factors.as_slice() {
        [] => vec![1.0; num],
        given => given.to_vec(),
    };
    let mean = match Delta::average(&deltas, &factors) {
        Ok(mean) => mean,
        Err(NotAveraged::Mismatched(at, rows)) => {
            let sides = (shown(0), shown(at));
            let message = format!("{} and {} have different parameters", sides.0, sides.1);
            let diagnostic = mismatched(message, &rows, (&sides.0, &sides.1));
            return refused(diagnostic.help("average deltas of one network"));
        }
        Err(reason @ NotAveraged::Factors) => {
            let help = "use numbers such as the sizes of data sets: `--factor 600 --factor 400`";
            return refused(Diagnostic::error("usage", reason.to_string()).help(help));
        }
    };
    file.write(|to| delta::write(&mean, to).map_err(|e| unwritten(&asked.out, e)))?;
    Ok(mean.parameters.len())
}

/// The file to write, which is none of those that are read. `[init]` finds the format by the extension.
fn destination<'a, 'b>(
    path: &'a Path,
    force: bool,
    read: impl IntoIterator<Item = &'b PathBuf>,
) -> Result<File<'a>, Error> {
    apart(path, read.into_iter().map(PathBuf::as_path))?;
    if Format::of(path) != Some(Format::Safetensors) {
        let message = format!(
            "`{}` does not end in `.{EXTENSION}`, the format of what is written",
            path.display()
        );
        let name = path.with_extension(EXTENSION);
        let help = format!("name it `{}`", name.display());
        return Err(Error::refused(
            Diagnostic::error("usage", message).help(help),
        ));
    }
    File::new(path, force)
}

fn read(path: &Path) -> Result<Delta, Error> {
    delta::read(path).map_err(|e| Error::Refused(refusal(&e)))
}

fn unwritten(path: &Path, error: WriteError) -> Error {
    export::failed(path, &error.into())
}

fn same_layout(
    (one, first): (InitLayout, &str),
    (other, second): (InitLayout, &str),
) -> Result<(), Error> {
    if one == other {
        return Ok(());
    }
    let message = format!(
        "{first} has the names of `{}`, and {second} those of `{}`",
        one.name(),
        other.name()
    );
    let help = "export both with `runner export weights`, in the same names";
    Err(Error::refused(
        Diagnostic::error("weights", message).help(help),
    ))
}

fn other_base(delta: &Delta, shown: &str, base: &str) -> Error {
    let message = match &delta.base {
        Some(_) => format!("{shown} does not start from {base}: their digests differ"),
        None => format!("{shown} is a mean of deltas that start from different weights"),
    };
    Error::refused(Diagnostic::error("delta", message).help(
        "use the weights that the delta was made from, or pass `--any-base` to add the differences to these",
    ))
}

/// A diagnostic that lists mismatches.
fn mismatched(message: String, rows: &[Mismatch], (first, second): (&str, &str)) -> Diagnostic {
    let shown = rows.iter().take(SHOWN);
    let diagnostic = Diagnostic::error("weights", message);
    let diagnostic = shown.fold(diagnostic, |diagnostic, row| {
        diagnostic.note(row.show(first, second))
    });
    match rows.len().saturating_sub(SHOWN) {
        0 => diagnostic,
        num => diagnostic.note(format!("and {}", counted(num, "other mismatch"))),
    }
}

/// Tells which sums cannot start a training.
fn note_not_finite(tensors: &Tensors, sink: &Sink<'_>) {
    let is_wrong = |tensor: &&NamedTensor| tensor.to_f64s().iter().any(|value| !value.is_finite());
    let wrong: Vec<String> = tensors
        .iter()
        .filter(is_wrong)
        .map(|tensor| format!("`{}`", tensor.name()))
        .collect();
    if !wrong.is_empty() {
        sink(Progress::Note(&format!(
            "values that are infinite or NaN: {}; `[init]` does not take them",
            wrong.join(", ")
        )));
    }
}
