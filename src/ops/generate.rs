//! Texts continued by the network of a run.

use std::path::PathBuf;

use super::{Progress, Sink};
use crate::error::Error;
use crate::model::{Generated, Generation, Model, Options};
use runner_core::diagnostic::counted;

/// A text to continue, and the run that continues it.
#[derive(Clone, Debug)]
pub struct Generate {
    /// The folder of a run or of an experiment, or a capsule.
    pub run: PathBuf,
    /// The options for opening the run.
    pub options: Options,
    /// The text.
    pub generation: Generation,
}

impl Generate {
    /// Continues a prompt by 100 tokens.
    pub fn new(run: impl Into<PathBuf>, prompt: impl Into<String>) -> Self {
        Self {
            run: run.into(),
            options: Options::default(),
            generation: Generation::new(prompt),
        }
    }
}

/// Continues a text.
///
/// # Errors
///
/// [`Error::Refused`] if the run cannot be opened, or its network does not predict tokens.
///
/// ```no_run
/// use burn_runner::ops::{self, Generate};
///
/// let generated = ops::generate(&Generate::new("results/text", "Once upon"), &ops::quiet)?;
/// println!("{}", generated.text);
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn generate(asked: &Generate, sink: &Sink<'_>) -> Result<Generated, Error> {
    let model = Model::open(&asked.run, &asked.options).map_err(Error::Refused)?;
    if let Some(why) = &model.found().why {
        sink(Progress::Note(&format!("generating with {why}")));
    }
    let generated = model.generate(&asked.generation).map_err(Error::Refused)?;
    if generated.num_unknown > 0 {
        sink(Progress::Note(&format!(
            "{} of the {} in the prompt {} not in the vocabulary of the run",
            generated.num_unknown,
            counted(generated.num_prompt, "token"),
            if generated.num_unknown == 1 {
                "is"
            } else {
                "are"
            }
        )));
    }
    Ok(generated)
}
