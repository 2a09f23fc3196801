//! Folders of model hubs: `config.json`, weights and `tokenizer.json`.

mod config;
mod models;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use config::{Refused, config};
use models::{HubModel, model};

use super::{in_names, refuse_existing};
use crate::error::Error;
use runner_core::data::encode::tokenizer::Tokenizer;
use runner_core::diagnostic::Diagnostic;
use runner_core::record::write_whole;
use runner_core::show::plain_io_error;
use runner_core::spec::data::{TokenizerKind, TokensSpec};
use runner_core::spec::document::Value;

/// Where weights are, the first that exists.
const WEIGHTS: [&str; 4] = [
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
];

/// A request for a model in a folder of a hub.
#[derive(Clone, Debug)]
pub struct ImportHub {
    /// The folder.
    pub folder: PathBuf,
    /// The folder to write to.
    pub out: PathBuf,
    /// A text file to train on, or a pattern of such files.
    pub text: Option<PathBuf>,
    /// Tokens per item.
    pub length: usize,
    /// Whether existing files are replaced.
    pub force: bool,
}

impl ImportHub {
    /// Into the current folder, with an example text and 128 tokens per item.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            out: ".".into(),
            text: None,
            length: 128,
            force: false,
        }
    }
}

/// A model that was written as an experiment.
#[derive(Debug)]
pub struct ImportedHub {
    /// The experiment file, and an example text if there was none.
    pub files: Vec<PathBuf>,
    /// The `type` of its model.
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
    let config = config(folder).map_err(|Refused { message, help }| refused(message, &help))?;
    let of_config = |wrong: Refused| {
        let place = folder.join("config.json");
        let message = format!(
            "`{}` cannot be imported: {}",
            place.display(),
            wrong.message
        );
        refused(message, &wrong.help)
    };
    let model = model(&config).map_err(of_config)?;
    let there = |name: &&str| folder.join(name).is_file();
    let weights = WEIGHTS.into_iter().find(there).ok_or_else(|| {
        let message = format!("`{}` has no weights", folder.display());
        refused(
            message,
            &format!("download one of `{}`", WEIGHTS.join("`, `")),
        )
    })?;
    if !there(&"tokenizer.json") {
        let message = format!("`{}` has no `tokenizer.json`", folder.display());
        let help = "download it, or create it with `AutoTokenizer.from_pretrained(…).save_pretrained(…)` of transformers";
        return Err(refused(message, help));
    }
    let tokenizer = folder.join("tokenizer.json");
    let num_tokens = num_tokens(&tokenizer)?;
    if num_tokens > model.vocabulary {
        let message = format!(
            "`{}` has {num_tokens} tokens, but `vocab_size` of the model is {}",
            tokenizer.display(),
            model.vocabulary
        );
        return Err(refused(message, "use the files of one model"));
    }
    let whole = fs::canonicalize(folder).unwrap_or_else(|_| folder.clone());
    let name = in_names(&whole.file_name().unwrap_or_default().to_string_lossy());
    let mut files = vec![options.out.join(format!("{name}.toml"))];
    if options.text.is_none() {
        files.push(options.out.join(format!("{name}.example.txt")));
    }
    refuse_existing(&files, options.force)?;
    let absolute = |path: &Path| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        path.to_string_lossy().into_owned()
    };
    let text = match &options.text {
        Some(text) => absolute(text),
        None => format!("{name}.example.txt"),
    };
    let experiment = experiment(
        &model,
        &Paths {
            name: &name,
            text: &text,
            tokenizer: &absolute(&tokenizer),
            is_padded: num_tokens < model.vocabulary,
            weights: &absolute(&folder.join(weights)),
        },
        options.length,
    );
    let written = fs::create_dir_all(&options.out).and_then(|()| {
        if let Some(example) = files.get(1) {
            let line =
                "Replace this file with your own text, or set `path` in the experiment to it.\n";
            write_whole(example, line.repeat(64 + options.length / 2).as_bytes())?;
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
        model: model.kind,
    })
}

struct Paths<'a> {
    name: &'a str,
    text: &'a str,
    tokenizer: &'a str,
    weights: &'a str,
    /// Whether the network has more rows than there are tokens.
    is_padded: bool,
}

fn num_tokens(path: &Path) -> Result<usize, Error> {
    let spec = TokensSpec {
        tokenizer: TokenizerKind::File,
        path: vec![path.to_string_lossy().into_owned()],
        ..TokensSpec::default()
    };
    let tokenizer = Tokenizer::build(&spec, std::iter::empty());
    let tokenizer = tokenizer.map_err(|error| Error::refused(error.to_diagnostic()))?;
    Ok(tokenizer.vocabulary())
}

fn experiment(model: &HubModel, paths: &Paths<'_>, length: usize) -> String {
    let quoted = |text: &str| Value::Str(text.to_owned()).to_toml();
    let mut keys = String::new();
    for (key, value) in &model.keys {
        let _ = writeln!(keys, "{key} = {}", value.to_toml());
    }
    let mut remap = String::new();
    for [pattern, replacement] in &model.remap {
        let _ = writeln!(remap, "    [{}, {}],", quoted(pattern), quoted(replacement));
    }
    format!(
        "# The model in the folder {name}, to be trained further. Replace `path` with your own text.\n\n\
         [data]\n\
         type = \"text\"\n\
         path = {}\n\
         tokens = {{ path = {}, length = {length}{padded} }}\n\n\
         [task]\n\
         type = \"next_token\"\n\n\
         [init]\n\
         from = {}\n\
         remap = [\n{remap}]\n{transpose}\n\
         [model]\n\
         type = \"{}\"\n\
         {keys}\n\
         [optimizer]\n\
         type = \"adamw\"\n\
         learning_rate = 1e-5\n\
         clip = {{ global_norm = 1.0 }}\n\n\
         [train]\n\
         epochs = 1\n\
         batch_size = 4\n",
        quoted(paths.text),
        quoted(paths.tokenizer),
        quoted(paths.weights),
        model.kind,
        name = paths.name,
        transpose = match model.transpose {
            // Masks, which older files have among their weights.
            Some(names) => format!(
                "transpose = {}\nexclude = {}\n",
                quoted(names),
                quoted(r"\.attn\.(masked_)?bias$")
            ),
            None => String::new(),
        },
        padded = if paths.is_padded {
            format!(", min_vocabulary = {}", model.vocabulary)
        } else {
            String::new()
        },
    )
}
