//! The adapter of a run in the layout of the library `peft`.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::asked::{Exported, Numbers};
use super::run::{exported, open};
use super::tensors::named;
use super::{ExportError, cast, failed, tensors};
use crate::error::Error;
use crate::model::{Model, Options};
use crate::ops::Sink;
use crate::ops::place::Folder;
use runner_core::diagnostic::Diagnostic;
use runner_core::plan::RunPlan;
use runner_core::spec::task::TaskKind;
use runner_exchange::peft::{self, NotWritten};
use runner_exchange::tensors::Tensors;
use runner_exchange::write;

/// An adapter to write.
#[derive(Clone, Debug)]
pub struct ExportAdapter {
    /// The folder of a run or of an experiment, or a capsule.
    pub run: PathBuf,
    /// The options for opening it.
    pub options: Options,
    /// The type of the values; by default the precision that the run was trained in.
    pub dtype: Option<Numbers>,
    /// The folder.
    pub out: PathBuf,
    /// Whether to replace a folder that an export wrote.
    pub force: bool,
}

impl ExportAdapter {
    /// The adapter of a run.
    pub fn new(run: impl Into<PathBuf>, out: impl Into<PathBuf>) -> Self {
        Self {
            run: run.into(),
            options: Options::default(),
            dtype: None,
            out: out.into(),
            force: false,
        }
    }
}

/// Writes the adapter of a run to a folder that `peft` reads: `adapter_config.json` and `adapter_model.safetensors`.
///
/// # Errors
/// [`Error::Refused`] if the run cannot be opened or has no adapter, the layout cannot hold what it trained, or the
/// folder may not be written.
///
/// ```no_run
/// use burn_runner::ops;
/// use burn_runner::ops::export::{self, ExportAdapter};
///
/// let options = ExportAdapter::new("results/tuned/runs/base-s1", "adapter");
/// let exported = export::export_adapter(&options, &ops::quiet)?;
/// println!("{} tensors", exported.num_tensors);
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn export_adapter(asked: &ExportAdapter, sink: &Sink<'_>) -> Result<Exported, Error> {
    let folder = Folder::new(&asked.out, asked.force, |name| {
        [peft::CONFIG, peft::MODEL].iter().any(|file| name == *file)
    })?;
    let model = open(&asked.run, &asked.options, false, sink)?;
    let plan = model.plan();
    let unwritten = |error: NotWritten| refused(&model, &error);
    let mut config = peft::config(&plan.network, plan.init.as_ref()).map_err(unwritten)?;
    if let Some(kind) = task_type(plan, !config["modules_to_save"].is_null()) {
        config["task_type"] = kind.into();
    }
    let wrong = |error: ExportError| failed(&asked.out, &error);
    let merged = tensors(model.network().graph()).map_err(|e| wrong(e.into()))?;
    let adapters = matrices(&model).map_err(wrong)?;
    let both = (&adapters, &merged);
    let written = peft::tensors(&plan.network, plan.init.as_ref(), both).map_err(unwritten)?;
    let written = match asked.dtype {
        Some(numbers) => cast(written, numbers.dtype()).map_err(|e| wrong(e.into()))?,
        None => written,
    };
    let fill = |new: &Path| -> Result<(), ExportError> {
        let text = serde_json::to_string_pretty(&config).map_err(io::Error::from)?;
        fs::write(new.join(peft::CONFIG), text + "\n")?;
        let mut to = BufWriter::new(fs::File::create(new.join(peft::MODEL))?);
        write::safetensors(&written, &mut to)?;
        Ok(to.flush()?)
    };
    folder.write(|new| fill(new).map_err(wrong))?;
    Ok(exported(&model, &written))
}

/// What `peft` calls the task of a network of the library transformers. Others have no name there: it would look for
/// functions that only those networks have, and with a name for classification it looks for a head that was trained.
fn task_type(plan: &RunPlan, has_head: bool) -> Option<&'static str> {
    let folder = plan.init.as_ref()?.path.parent()?;
    if !folder.join("config.json").is_file() {
        return None;
    }
    match plan.task.kind {
        TaskKind::NextToken => Some("CAUSAL_LM"),
        TaskKind::Classification if has_head && plan.network.items.vocabulary.is_some() => {
            Some("SEQ_CLS")
        }
        _ => None,
    }
}

fn matrices(model: &Model) -> Result<Tensors, ExportError> {
    let mut all = Tensors::new();
    for (name, data) in model.adapters() {
        all.push(named(name.clone(), data.clone())?)?;
    }
    Ok(all)
}

fn refused(model: &Model, error: &NotWritten) -> Error {
    let run = &model.plan().id;
    let diagnostic = Diagnostic::error("export", format!("run `{run}`: {error}"));
    Error::refused(match error {
        NotWritten::NoAdapter => {
            diagnostic.help("omit `--adapter`, or use a run of an experiment with `[[adapters]]`")
        }
        _ => diagnostic.help("export merged weights, without `--adapter`"),
    })
}
