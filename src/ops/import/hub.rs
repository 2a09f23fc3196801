//! Folders of model hubs: an experiment that trains the network of one.

use std::fs;
use std::path::{Path, PathBuf};

use super::{in_names, refuse_existing};
use crate::error::Error;
use runner_core::diagnostic::Diagnostic;
use runner_core::record::write_whole;
use runner_core::show::plain_io_error;
use runner_core::spec::document::Value;
use runner_core::spec::hub::{Hub, TOKENIZER};
use runner_core::spec::model::preset::ModelType;

/// Tokens of an item, unless something else is asked for.
const LENGTH: usize = 128;

/// A request for a model in a folder of a hub.
#[derive(Clone, Debug)]
pub struct ImportHub {
    /// The folder.
    pub folder: PathBuf,
    /// The folder to write to.
    pub out: PathBuf,
    /// What to train on: a text file, or for a classifier of texts a table with the columns `text` and `label`. A pattern
    /// of such files is possible, too.
    pub text: Option<PathBuf>,
    /// Tokens per item; 128 if not set, or as many as the network has positions.
    pub length: Option<usize>,
    /// Whether existing files are replaced.
    pub force: bool,
}

impl ImportHub {
    /// Into the current folder, with an example of data.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            out: ".".into(),
            text: None,
            length: None,
            force: false,
        }
    }
}

/// A model that was written as an experiment.
#[derive(Debug)]
pub struct ImportedHub {
    /// The experiment file, and an example of the data if there was none.
    pub files: Vec<PathBuf>,
    /// The type of its network.
    pub model: &'static str,
}

/// Writes an experiment that starts from a model in a folder of a hub: its network, weights and tokenizer, which stay
/// where they are.
///
/// ```no_run
/// use burn_runner::ops::{self, ImportHub};
///
/// let imported = ops::import_hub(&ImportHub::new("SmolLM2-135M"))?;
/// println!("{}", imported.files[0].display());
/// # Ok::<(), burn_runner::Error>(())
/// ```
///
/// # Errors
/// If a file is missing, or `config.json` asks for something else than runner computes; the message names its key.
/// Nothing is written then.
pub fn import_hub(options: &ImportHub) -> Result<ImportedHub, Error> {
    let folder = &options.folder;
    let refused = |message: String, help: &str| {
        let diagnostic = Diagnostic::error("import", message);
        Error::refused(diagnostic.help(help))
    };
    let hub = Hub::read(folder).map_err(|wrong| refused(wrong.message, &wrong.help))?;
    if hub.model.vocabulary == 0 {
        let message = format!(
            "`{}` classifies images, and `import hub` writes experiments over texts",
            folder.display()
        );
        let help = "write a file with `runner init IMAGES`, and set its `[model]` to `type = \"hub\"` and `path` to the folder";
        return Err(refused(message, help));
    }
    if !hub.has_tokenizer {
        let message = format!("`{}` has no `{TOKENIZER}`", folder.display());
        let help = "download it, or create it with `AutoTokenizer.from_pretrained(…).save_pretrained(…)` of transformers";
        return Err(refused(message, help));
    }
    let most = hub.model.max_length.unwrap_or(usize::MAX);
    if let Some(length) = options.length.filter(|length| *length > most) {
        let message = format!(
            "items of {length} tokens are too long: the network in `{}` has {most} positions",
            folder.display()
        );
        let help = format!("pass at most `--length {most}`");
        return Err(refused(message, &help));
    }
    let length = options.length.unwrap_or(LENGTH.min(most));
    let whole = fs::canonicalize(folder).unwrap_or_else(|_| folder.clone());
    let name = in_names(&whole.file_name().unwrap_or_default().to_string_lossy());
    let goal = Goal::of(&hub);
    let mut files = vec![options.out.join(format!("{name}.toml"))];
    let example = format!("{name}.example.{}", goal.extension());
    if options.text.is_none() {
        files.push(options.out.join(&example));
    }
    refuse_existing(&files, options.force)?;
    let absolute = |path: &Path| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        path.to_string_lossy().into_owned()
    };
    let data = match &options.text {
        Some(text) => absolute(text),
        None => example,
    };
    // A pickle is only read if the experiment says so.
    let pickle = hub.pickle.filter(|_| hub.weights.is_none());
    let experiment = experiment(
        &goal,
        &Paths {
            name: &name,
            data: &data,
            folder: &absolute(folder),
            pickle: pickle.map(|pickle| absolute(&folder.join(pickle))),
        },
        length,
    );
    let written = fs::create_dir_all(&options.out).and_then(|()| {
        if let Some(example) = files.get(1) {
            write_whole(example, goal.example(length).as_bytes())?;
        }
        write_whole(&files[0], experiment.as_bytes())
    });
    written.map_err(|e| {
        let message = format!(
            "cannot write to `{}`: {}",
            options.out.display(),
            plain_io_error(&e)
        );
        refused(
            message,
            "free some space, or choose another folder with `--out`",
        )
    })?;
    Ok(ImportedHub {
        files,
        model: hub.model.name,
    })
}

/// What a model is trained further for.
enum Goal {
    /// The next token of a text.
    NextToken,
    /// Hidden tokens of a text.
    HiddenTokens,
    /// Classes of texts, by name if the configuration names them. The head is new if the model is not a classifier.
    Classes { names: Vec<String>, is_new: bool },
}

impl Goal {
    fn of(hub: &Hub) -> Self {
        let model = &hub.model;
        let architecture = model.architecture.as_deref().unwrap_or_default();
        match (model.kind, architecture) {
            (ModelType::Bert, "BertForMaskedLM") => Self::HiddenTokens,
            (ModelType::Bert, _) => Self::Classes {
                names: model.labels.clone(),
                is_new: architecture != "BertForSequenceClassification",
            },
            _ => Self::NextToken,
        }
    }

    fn extension(&self) -> &'static str {
        match self {
            Self::Classes { .. } => "csv",
            _ => "txt",
        }
    }

    /// Data to be replaced.
    fn example(&self, length: usize) -> String {
        let Self::Classes { names, .. } = self else {
            let line =
                "Replace this file with your own text, or set `path` in the experiment to it.\n";
            return line.repeat(64 + length / 2);
        };
        let usual = ["no".to_owned(), "yes".to_owned()];
        let names = if names.is_empty() {
            &usual
        } else {
            names.as_slice()
        };
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let rows = (0..64).flat_map(|at| {
            names.iter().map(move |name| {
                let text = format!("Replace row {at} of the class {name} with your own text.");
                format!("{},{}\n", quoted(&text), quoted(name))
            })
        });
        "text,label\n".to_owned() + &rows.collect::<String>()
    }

    /// The table `[data]`, without its path.
    fn data(&self, length: usize) -> String {
        match self {
            Self::NextToken => format!("type = \"text\"\ntokens = {{ length = {length} }}\n"),
            Self::HiddenTokens => {
                format!("type = \"text\"\ntokens = {{ length = {length}, masked = 0.15 }}\n")
            }
            Self::Classes { .. } => format!(
                "type = \"csv\"\ntarget = \"label\"\ncolumns = [{{ name = \"text\", type = \"text\" }}]\ntokens = {{ length = {length} }}\n"
            ),
        }
    }
}

struct Paths<'a> {
    name: &'a str,
    data: &'a str,
    folder: &'a str,
    pickle: Option<String>,
}

fn experiment(goal: &Goal, paths: &Paths<'_>, length: usize) -> String {
    let quoted = |text: &str| Value::Str(text.to_owned()).to_toml();
    let head = match goal {
        Goal::Classes { is_new: true, .. } => "head = \"new\"\n",
        _ => "",
    };
    let init = match &paths.pickle {
        Some(pickle) => format!("[init]\nfrom = {}\n\n", quoted(pickle)),
        None => String::new(),
    };
    format!(
        "# The model in the folder {}, to be trained further. Replace `path` of the data with your own.\n\n\
         [data]\n\
         path = {}\n\
         {}\n\
         [model]\n\
         type = \"hub\"\n\
         path = {}\n\
         {head}\n\
         {init}\
         [optimizer]\n\
         type = \"adamw\"\n\
         learning_rate = 1e-5\n\
         clip = {{ global_norm = 1.0 }}\n\n\
         [train]\n\
         epochs = 1\n\
         batch_size = 4\n",
        paths.name,
        quoted(paths.data),
        goal.data(length),
        quoted(paths.folder),
    )
}
