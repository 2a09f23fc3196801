//! Folders of model hubs: `config.json`, weights and `tokenizer.json`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json};

use super::{in_names, refuse_existing};
use crate::error::Error;
use runner_core::data::encode::tokenizer::Tokenizer;
use runner_core::diagnostic::Diagnostic;
use runner_core::record::write_whole;
use runner_core::show::plain_io_error;
use runner_core::spec::data::{TokenizerKind, TokensSpec};
use runner_core::spec::document::Value;
use runner_core::spec::plain_file;

/// Bytes of a `config.json`.
const MOST: u64 = 4 << 20;
/// Where weights are, the first that exists.
const WEIGHTS: [&str; 4] = [
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
];
/// Keys that say nothing about what a network computes in training, or how: numbers of special tokens, versions, and
/// settings of the library transformers.
const IRRELEVANT: &[&str] = &[
    "_name_or_path",
    "architectures",
    "attention_dropout",
    "bos_token_id",
    "dtype",
    "eos_token_id",
    "initializer_range",
    "is_llama_config",
    "max_position_embeddings",
    "model_type",
    "pad_token_id",
    "pretraining_tp",
    "rope_interleaved",
    "torch_dtype",
    "transformers.js_config",
    "transformers_version",
    "unk_token_id",
    "use_cache",
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

/// What is wrong, and what to do.
struct Refused {
    message: String,
    help: String,
}

fn refuse<T>(message: impl Into<String>, help: impl Into<String>) -> Result<T, Refused> {
    Err(Refused {
        message: message.into(),
        help: help.into(),
    })
}

fn config(folder: &Path) -> Result<Map<String, Json>, Refused> {
    let path = folder.join("config.json");
    let place = path.display();
    let help = "name a folder of a model hub, with `config.json`, `model.safetensors` and `tokenizer.json`";
    let bytes = match plain_file::read(&path, MOST) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return refuse(format!("`{place}` is too large"), help),
        Err(e) => {
            return refuse(
                format!("`{place}` cannot be read: {}", plain_io_error(&e)),
                help,
            );
        }
    };
    match serde_json::from_slice(&bytes) {
        Ok(Json::Object(config)) => Ok(config),
        Ok(_) => refuse(format!("`{place}` is not a table"), help),
        Err(e) => refuse(format!("`{place}` is not JSON: {e}"), help),
    }
}

/// A preset with the keys that differ from its defaults, and how its tensors are named in the file.
struct HubModel {
    kind: &'static str,
    keys: Vec<(&'static str, Value)>,
    remap: Vec<[String; 2]>,
    /// Names after `remap` of matrices that the file has the other way round.
    transpose: Option<&'static str>,
    vocabulary: usize,
}

/// Reads keys of a configuration, and notes which.
struct Keys<'a> {
    config: &'a Map<String, Json>,
    read: Vec<&'static str>,
}

impl<'a> Keys<'a> {
    fn get(&mut self, key: &'static str) -> Option<&'a Json> {
        self.read.push(key);
        self.config.get(key).filter(|value| !value.is_null())
    }

    fn size(&mut self, key: &'static str) -> Result<usize, Refused> {
        match self.get(key).map(|value| (value, value.as_u64())) {
            Some((_, Some(size))) if (1..=1 << 24).contains(&size) => Ok(size as usize),
            Some((value, _)) => refuse(
                format!("`{key}` is {value}"),
                "a number of at least 1 is needed",
            ),
            None => refuse(
                format!("it has no `{key}`"),
                "use the `config.json` of the model",
            ),
        }
    }

    fn number(&mut self, key: &'static str, usual: f64) -> Result<f64, Refused> {
        match self.get(key).map(|value| (value, value.as_f64())) {
            None => Ok(usual),
            Some((_, Some(number))) if number > 0.0 && number.is_finite() => Ok(number),
            Some((value, _)) => refuse(format!("`{key}` is {value}"), "a number above 0 is needed"),
        }
    }

    /// A key that may only have one value.
    fn only(&mut self, key: &'static str, wanted: &Json) -> Result<(), Refused> {
        match self.get(key) {
            Some(other) if other != wanted => refuse(
                format!("`{key}` is {other}, which is not supported"),
                format!("this network is only computed with {wanted}"),
            ),
            _ => Ok(()),
        }
    }

    /// Refuses keys that nothing read.
    fn finish(self) -> Result<(), Refused> {
        let is_off = |value: &Json| matches!(value, Json::Null | Json::Bool(false));
        let mut rest = self.config.iter().filter(|(key, value)| {
            let key = key.as_str();
            !self.read.contains(&key) && !IRRELEVANT.contains(&key) && !is_off(value)
        });
        match rest.next() {
            Some((key, value)) => refuse(
                format!("`{key}` is {}, whose meaning is not known", short(value)),
                "if it changes nothing that the network computes, remove it from the file",
            ),
            None => Ok(()),
        }
    }
}

fn short(value: &Json) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn model(config: &Map<String, Json>) -> Result<HubModel, Refused> {
    if config.contains_key("auto_map") {
        return refuse(
            "`auto_map` asks for code of the model to be executed",
            "no code from a model is executed: use a model whose network is built in",
        );
    }
    let Some(kind) = config.get("model_type").and_then(Json::as_str) else {
        return refuse(
            "it has no `model_type`",
            "use the `config.json` of the model",
        );
    };
    match kind {
        "llama" | "mistral" => llama(config),
        "gpt2" => gpt2(config),
        _ => refuse(
            format!("`model_type` is \"{kind}\""),
            "the supported networks are \"gpt2\", \"llama\" and \"mistral\"; others can come as ONNX: `runner import onnx`",
        ),
    }
}

/// GPT-2, whose linear layers are convolutions of size 1 in the file: [in, out].
fn gpt2(config: &Map<String, Json>) -> Result<HubModel, Refused> {
    let mut keys = Keys {
        config,
        read: vec!["summary_type", "task_specific_params"],
    };
    for key in [
        "summary_activation",
        "summary_first_dropout",
        "summary_proj_to_labels",
        "summary_use_proj",
        "n_ctx",
    ] {
        keys.get(key);
    }
    let d_model = keys.size("n_embd")?;
    let num_layers = keys.size("n_layer")?;
    let num_heads = keys.size("n_head")?;
    let max_length = keys.size("n_positions")?;
    let vocabulary = keys.size("vocab_size")?;
    let inner = match keys.get("n_inner") {
        Some(_) => keys.size("n_inner")?,
        None => 4 * d_model,
    };
    keys.only("activation_function", &"gelu_new".into())?;
    keys.only("scale_attn_weights", &true.into())?;
    keys.only("tie_word_embeddings", &true.into())?;
    keys.only("add_cross_attention", &false.into())?;
    let epsilon = keys.number("layer_norm_epsilon", 1e-5)?;
    // One number for all dropouts, as in every published model.
    let mut dropout = None;
    for key in ["resid_pdrop", "embd_pdrop", "attn_pdrop"] {
        let found = keys.get(key).and_then(Json::as_f64).unwrap_or(0.1);
        if !(0.0..1.0).contains(&found) || dropout.is_some_and(|dropout| dropout != found) {
            return refuse(
                format!("`{key}` is {found}"),
                "all dropouts need one probability below 1",
            );
        }
        dropout = Some(found);
    }
    keys.finish()?;
    let int = |size: usize| Value::Int(size as i64);
    let rename = |from: &str, to: &str| [from.to_owned(), to.to_owned()];
    let mut remap = vec![
        rename(r"^transformer\.", ""),
        rename(r"^wpe\.weight$", "wpe.value"),
    ];
    // Copies of a layer are numbered from 1.
    for at in 0..num_layers {
        remap.push([format!(r"^h\.{at}\."), format!("h{}.", at + 1)]);
    }
    remap.extend([
        rename(r"\.c_attn\.", ".in_proj_"),
        rename(r"\.attn\.c_proj\.", ".attn.out_proj."),
        rename(r"\.mlp\.", "."),
    ]);
    Ok(HubModel {
        kind: "gpt2",
        keys: vec![
            ("d_model", int(d_model)),
            ("num_layers", int(num_layers)),
            ("num_heads", int(num_heads)),
            ("feedforward_size", int(inner)),
            ("max_length", int(max_length)),
            ("epsilon", Value::Float(epsilon)),
            ("dropout", Value::Float(dropout.unwrap_or(0.0))),
        ],
        remap,
        transpose: Some(r"(in_proj_weight|out_proj\.weight|c_fc\.weight|c_proj\.weight)$"),
        vocabulary,
    })
}

/// LLaMA and models with its network.
fn llama(config: &Map<String, Json>) -> Result<HubModel, Refused> {
    let mut keys = Keys {
        config,
        read: Vec::new(),
    };
    let d_model = keys.size("hidden_size")?;
    let num_layers = keys.size("num_hidden_layers")?;
    let num_heads = keys.size("num_attention_heads")?;
    let num_kv_heads = match keys.get("num_key_value_heads") {
        Some(_) => keys.size("num_key_value_heads")?,
        None => num_heads,
    };
    let inner = keys.size("intermediate_size")?;
    let vocabulary = keys.size("vocab_size")?;
    keys.only("hidden_act", &"silu".into())?;
    keys.only("attention_bias", &false.into())?;
    keys.only("mlp_bias", &false.into())?;
    keys.only("head_dim", &(d_model / num_heads).into())?;
    keys.only("sliding_window", &Json::Null)?;
    let (theta, rotary_scaling) = rotary(&mut keys)?;
    let epsilon = keys.number("rms_norm_eps", 1e-6)?;
    let tie = keys
        .get("tie_word_embeddings")
        .and_then(Json::as_bool)
        .unwrap_or(false);
    keys.finish()?;
    let int = |size: usize| Value::Int(size as i64);
    let mut remap = vec![[r"^model\.".to_owned(), String::new()]];
    // Copies of a layer are numbered from 1.
    for at in 0..num_layers {
        remap.push([format!(r"^layers\.{at}\."), format!("layers{}.", at + 1)]);
    }
    remap.push([r"\.mlp\.".to_owned(), ".".to_owned()]);
    Ok(HubModel {
        kind: "llama",
        keys: vec![
            ("d_model", int(d_model)),
            ("num_layers", int(num_layers)),
            ("num_heads", int(num_heads)),
            ("num_kv_heads", int(num_kv_heads)),
            ("feedforward_size", int(inner)),
            ("theta", Value::Float(theta)),
            ("rotary_scaling", Value::Float(rotary_scaling)),
            ("epsilon", Value::Float(epsilon)),
            ("tie", Value::Bool(tie)),
        ],
        remap,
        transpose: None,
        vocabulary,
    })
}

/// The base of rotary angles, and what positions are divided by. Newer files have both in one table.
fn rotary(keys: &mut Keys<'_>) -> Result<(f64, f64), Refused> {
    let mut theta = keys.number("rope_theta", 10_000.0)?;
    let mut scaling = 1.0;
    for key in ["rope_scaling", "rope_parameters"] {
        let Some(table) = keys.get(key) else {
            continue;
        };
        let named = ["rope_type", "type"]
            .into_iter()
            .find_map(|name| table.get(name));
        let kind = named.and_then(Json::as_str).unwrap_or("default");
        let factor = table.get("factor").and_then(Json::as_f64);
        theta = table
            .get("rope_theta")
            .and_then(Json::as_f64)
            .unwrap_or(theta);
        match (kind, factor) {
            ("default", _) => {}
            ("linear", Some(factor)) if factor > 0.0 => scaling = factor,
            _ => {
                return refuse(
                    format!("`{key}` is {}, which is not supported", short(table)),
                    "only \"linear\" scaling is computed, `rotary_scaling` of the model",
                );
            }
        }
    }
    Ok((theta, scaling))
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
