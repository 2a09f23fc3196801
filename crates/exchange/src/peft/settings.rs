//! The settings of an adapter: what `peft` computes from its matrices, and with which weights.

use std::path::{Path, PathBuf};

use regex::Regex;
use serde_json::Value as Json;

use super::CONFIG;
use runner_core::data::DataError;
use runner_core::show::plain_io_error;
use runner_core::spec::plain_file;

/// The largest file of settings.
const MAX_CONFIG: u64 = 1 << 20;

/// The numerator of the scale in files without one.
const ALPHA: f64 = 8.0;

/// Keys of other products than that of two matrices.
const OTHERS: [&str; 8] = [
    "use_dora",
    "lora_bias",
    "use_qalora",
    "use_bdlora",
    "alora_invocation_tokens",
    "arrow_config",
    "kasa_config",
    "layer_replication",
];

/// The starts of initial values that `peft` subtracts from the weights of the base.
const SUBTRACTED: [&str; 5] = ["pissa", "corda", "olora", "loftq", "lora_ga"];

/// The settings of plain LoRA.
#[derive(Debug)]
pub(super) struct Settings {
    path: PathBuf,
    config: Json,
}

impl Settings {
    /// The settings of a folder.
    ///
    /// # Errors
    /// If they cannot be read, or ask for something else than plain LoRA.
    pub(super) fn read(folder: &Path) -> Result<Self, DataError> {
        let path = folder.join(CONFIG);
        let place = path.display();
        let text = plain_file::read(&path, MAX_CONFIG).map_err(|e| {
            DataError::new(format!("`{place}` cannot be read: {}", plain_io_error(&e)))
        })?;
        let config: Json = serde_json::from_slice(&text.unwrap_or_default())
            .map_err(|e| DataError::new(format!("`{place}` is not JSON: {e}")))?;
        let settings = Self { path, config };
        settings.is_plain()?;
        Ok(settings)
    }

    fn is_plain(&self) -> Result<(), DataError> {
        let config = &self.config;
        let Some(kind) = config["peft_type"].as_str() else {
            return Err(self.wrong("has no `peft_type`").help(
                "use a folder that `peft` saved, or that `runner export weights RUN --adapter` wrote",
            ));
        };
        let refuse = |what: &str| {
            Err(self.wrong(&format!("asks for {what}")).help(
                "only plain LoRA is supported: merge the adapter with `peft`, and use the merged weights",
            ))
        };
        if kind != "LORA" {
            return refuse(&format!("`peft_type` = \"{kind}\""));
        }
        if let Some(key) = OTHERS.iter().find(|key| is_set(&config[**key])) {
            return refuse(&format!("`{key}`"));
        }
        let initial = config["init_lora_weights"].as_str().unwrap_or_default();
        let lower = initial.to_lowercase();
        if SUBTRACTED.iter().any(|start| lower.starts_with(start)) {
            let what = format!("`init_lora_weights` = \"{initial}\"");
            let error = self.wrong(&format!("asks for {what}"));
            return Err(error
                .note("the weights of the base were changed before the adapter was trained")
                .help("convert it with `path_initial_model_for_weight_conversion` of `save_pretrained`, or merge it with `peft`, and use the merged weights"));
        }
        Ok(())
    }

    /// Refuses matrices of a module that `peft` does not adapt, so that they would have no effect there.
    pub(super) fn target(&self, module: &str) -> Result<(), DataError> {
        let is_called = |name: &str| module == name || module.ends_with(&format!(".{name}"));
        let targets = &self.config["target_modules"];
        let is_target = match targets {
            Json::Array(names) => names.iter().filter_map(Json::as_str).any(is_called),
            Json::String(all) if all.eq_ignore_ascii_case("all-linear") => true,
            // Python's expressions have parts that cannot be read here.
            Json::String(names) => {
                Regex::new(&format!("^(?:{names})$")).map_or(true, |names| names.is_match(module))
            }
            _ => true,
        };
        if is_target {
            return Ok(());
        }
        let message = format!(
            "has matrices of `{module}`, which its `target_modules` = {targets} does not name"
        );
        Err(self
            .wrong(&message)
            .help("name the module in `target_modules`, or use the folder as `peft` saved it"))
    }

    /// The numerator of the scale of a module's product.
    ///
    /// # Errors
    /// If it is not a number, or is that of modules that cannot be told.
    pub(super) fn alpha(&self, module: &str) -> Result<f64, DataError> {
        let mut of_module = &self.config["lora_alpha"];
        let special = self.config["alpha_pattern"].as_object();
        for (names, value) in special.into_iter().flatten() {
            let found = Regex::new(&format!("^(?:.*\\.)?(?:{names})$"));
            let Ok(found) = found else {
                let message = format!("has `{names}` in `alpha_pattern`, which cannot be read");
                return Err(self
                    .wrong(&message)
                    .help("use names of modules instead of an expression"));
            };
            if found.is_match(module) {
                of_module = value;
                break;
            }
        }
        if of_module.is_null() {
            return Ok(ALPHA);
        }
        of_module.as_f64().ok_or_else(|| {
            let message = format!("has {of_module} as the `lora_alpha` of `{module}`");
            self.wrong(&message).help("set it to a number")
        })
    }

    /// Whether the root of the rank is the denominator.
    pub(super) fn is_rooted(&self) -> bool {
        self.config["use_rslora"].as_bool() == Some(true)
    }

    fn wrong(&self, what: &str) -> DataError {
        DataError::new(format!("`{}` {what}", self.path.display()))
    }
}

/// Whether a key asks for something.
fn is_set(value: &Json) -> bool {
    match value {
        Json::Null | Json::Bool(false) => false,
        Json::Array(values) => !values.is_empty(),
        Json::Object(values) => !values.is_empty(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The settings that `peft` writes, with other values of some keys.
    fn read(changes: &Json) -> Result<Settings, String> {
        let mut config = json!({
            "peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q_proj", "layers.0.v_proj"],
            "modules_to_save": null, "rank_pattern": {}, "alpha_pattern": {}, "use_dora": false,
            "use_bdlora": null, "arrow_config": null, "layer_replication": null, "init_lora_weights": true,
        });
        for (key, value) in changes.as_object().expect("a table of keys") {
            config[key] = value.clone();
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(CONFIG);
        std::fs::write(&path, config.to_string()).expect("a file");
        let said = |error: DataError| error.message.replace(&path.display().to_string(), "PATH");
        Settings::read(folder.path()).map_err(said)
    }

    #[test]
    fn other_adapters_than_plain_ones_are_refused_by_key() {
        for (changes, message) in [
            (
                json!({ "peft_type": "LOHA" }),
                "asks for `peft_type` = \"LOHA\"",
            ),
            (json!({ "peft_type": null }), "has no `peft_type`"),
            (json!({ "peft_type": ["LORA"] }), "has no `peft_type`"),
            (json!({ "use_dora": true }), "asks for `use_dora`"),
            (
                json!({ "use_bdlora": { "nblocks": 2 } }),
                "asks for `use_bdlora`",
            ),
            (
                json!({ "layer_replication": [[0, 4]] }),
                "asks for `layer_replication`",
            ),
            (
                json!({ "alora_invocation_tokens": [5] }),
                "asks for `alora_invocation_tokens`",
            ),
            (
                json!({ "init_lora_weights": "PiSSA_niter_4" }),
                "asks for `init_lora_weights` = \"PiSSA_niter_4\"",
            ),
            (
                json!({ "init_lora_weights": "olora" }),
                "asks for `init_lora_weights` = \"olora\"",
            ),
        ] {
            let said = read(&changes).expect_err("it is refused");
            assert_eq!(said, format!("`PATH` {message}"));
        }
        for initial in [
            json!(false),
            json!("gaussian"),
            json!("eva"),
            json!("orthogonal"),
        ] {
            assert!(
                read(&json!({ "init_lora_weights": initial })).is_ok(),
                "{initial}"
            );
        }
        assert!(read(&json!({ "layer_replication": [] })).is_ok());
    }

    #[test]
    fn modules_are_targets_as_in_peft() {
        for (targets, module, is_target) in [
            (json!(["q_proj"]), "model.layers.0.q_proj", true),
            (json!(["q_proj"]), "model.layers.0.kq_proj", false),
            (json!(["layers.0.q_proj"]), "model.layers.1.q_proj", false),
            (json!([]), "q_proj", false),
            (json!(["nothing"]), "q_proj", false),
            (json!("all-linear"), "q_proj", true),
            (json!(r".*\.[01]\.q_proj"), "model.layers.1.q_proj", true),
            (json!(r".*\.[01]\.q_proj"), "model.layers.11.q_proj", false),
            (json!("q_proj"), "model.layers.0.q_proj", false),
            // Not an expression here, but one in Python.
            (json!("(?!k).*_proj"), "q_proj", true),
            (json!(null), "q_proj", true),
        ] {
            let settings = read(&json!({ "target_modules": targets })).expect("it is plain");
            let found = settings.target(module);
            assert_eq!(found.is_ok(), is_target, "{targets} of {module}");
        }
        let settings = read(&json!({ "target_modules": ["nothing"] })).expect("it is plain");
        let said = settings.target("q_proj").expect_err("it is not a target");
        assert!(
            said.message.ends_with(
                "has matrices of `q_proj`, which its `target_modules` = [\"nothing\"] does not name"
            ),
            "{}",
            said.message
        );
    }

    #[test]
    fn the_alpha_of_a_module_is_that_of_its_pattern() {
        let patterns = json!({ "v_proj": 16, r"layers\.[0-3]\.q_proj": 32.0, "^up_proj": 64 });
        let settings = read(&json!({ "alpha_pattern": patterns })).expect("it is plain");
        for (module, alpha) in [
            ("model.layers.7.v_proj", 16.0),
            ("model.layers.2.q_proj", 32.0),
            ("model.layers.7.q_proj", 4.0),
            ("model.layers.7.kv_proj", 4.0),
            ("up_proj", 64.0),
            ("model.up_proj", 4.0),
        ] {
            assert_eq!(settings.alpha(module).expect("a number"), alpha, "{module}");
        }
        let default = read(&json!({ "lora_alpha": null })).expect("it is plain");
        assert_eq!(default.alpha("q_proj").expect("a number"), 8.0);
        for changes in [
            json!({ "alpha_pattern": { "(": 1 } }),
            json!({ "lora_alpha": "four" }),
        ] {
            let settings = read(&changes).expect("it is plain");
            assert!(settings.alpha("q_proj").is_err(), "{changes}");
        }
    }
}
