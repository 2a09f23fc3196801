//! Texts continued by the network of a run.

use std::path::PathBuf;

use super::{Progress, Sink};
use crate::error::Error;
use crate::model::{Generated, Generation, Model, Options};
use runner_core::diagnostic::counted;

/// Texts to continue, and the run that continues them.
#[derive(Clone, Debug)]
pub struct Generate {
    /// The folder of a run or of an experiment, or a capsule.
    pub run: PathBuf,
    /// The options for opening the run.
    pub options: Options,
    /// The texts.
    pub generations: Vec<Generation>,
}

impl Generate {
    /// Continues a prompt by 100 tokens.
    pub fn new(run: impl Into<PathBuf>, prompt: impl Into<String>) -> Self {
        Self {
            run: run.into(),
            options: Options::default(),
            generations: vec![Generation::new(prompt)],
        }
    }
}

/// Continues texts, several at a time. `told` gets the parts of each in their order, as soon as they are certain, with
/// the index of the text.
///
/// # Errors
///
/// [`Error::Refused`] if the run cannot be opened, or its network does not predict tokens.
///
/// ```no_run
/// use burn_runner::ops::{self, Generate};
///
/// let asked = Generate::new("results/text", "Once upon");
/// let generated = ops::generate(&asked, &mut |_, piece| print!("{piece}"), &ops::quiet)?;
/// println!("\n{} tokens", generated[0].tokens.len());
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn generate(
    asked: &Generate,
    told: &mut (dyn FnMut(usize, &str) + Send),
    sink: &Sink<'_>,
) -> Result<Vec<Generated>, Error> {
    let model = Model::open(&asked.run, &asked.options).map_err(Error::Refused)?;
    if let Some(why) = &model.found().why {
        sink(Progress::Note(&format!("generating with {why}")));
    }
    let generated = model.generate_all(&asked.generations, told);
    let generated = generated.map_err(Error::Refused)?;
    let sum = |of: fn(&Generated) -> usize| generated.iter().map(of).sum::<usize>();
    let num_unknown = sum(|one| one.num_unknown);
    if num_unknown > 0 {
        sink(Progress::Note(&format!(
            "{num_unknown} of the {} in the {} {} not in the vocabulary of the run",
            counted(sum(|one| one.num_prompt), "token"),
            if generated.len() == 1 {
                "prompt"
            } else {
                "prompts"
            },
            if num_unknown == 1 { "is" } else { "are" }
        )));
    }
    Ok(generated)
}
