//! What a person most likely meant by a key that is wrong or missing, from the keys that there are.

use serde_json::Value as Json;

use super::section::{KeyDoc, Shape};

/// The keys that a table must have, with a value each.
pub fn required_keys(path: &str) -> String {
    let keys = super::describe();
    let Some(Shape::Table(inner)) = keys
        .iter()
        .find(|doc| doc.key == path)
        .map(|doc| &doc.shape)
    else {
        return "its keys".into();
    };
    let is_type = |doc: &&KeyDoc| matches!(doc.shape, Shape::Variants(_));
    let required = inner
        .iter()
        .filter(|doc| doc.required || is_type(doc))
        .map(|doc| match &doc.shape {
            Shape::Scalar(kind) => format!("`{} = {}`", doc.key, kind.example()),
            Shape::Variants(variants) => {
                let names: Vec<_> = variants.iter().map(|v| format!("\"{}\"", v.name)).collect();
                format!("`{} = …` ({})", doc.key, names.join(", "))
            }
            _ => format!("`{}`", doc.key),
        });
    required.collect::<Vec<_>>().join(" and ")
}

/// What other tools call the same thing.
pub fn synonym(key: &str, known: &[&'static str]) -> Option<&'static str> {
    let mut matching = SYNONYMS.iter().filter(|(theirs, _)| *theirs == key);
    matching.find_map(|(_, ours)| known.iter().copied().find(|k| k == ours))
}

/// Keys as other tools call them, with ours.
const SYNONYMS: &[(&str, &str)] = &[
    ("lr", "learning_rate"),
    ("batch", "batch_size"),
    ("bs", "batch_size"),
    ("num_epochs", "epochs"),
    ("max_epochs", "epochs"),
    ("n_epochs", "epochs"),
    ("seed", "seeds"),
    ("betas", "beta_1"),
    ("eps", "epsilon"),
    ("lr_factor", "learning_rate_factor"),
    ("max_norm", "global_norm"),
    ("clip_grad_norm", "global_norm"),
    ("t_0", "period"),
    ("t_mult", "period_factor"),
    ("pct_start", "peak_at"),
    ("warmup", "warmup_steps"),
    ("params", "parameters"),
    ("path", "root"),
    ("dir", "root"),
    ("dtype", "precision"),
    ("hidden_sizes", "hidden"),
    ("units", "out_features"),
    ("out_channels", "out_features"),
    ("channels", "out_channels"),
    ("filters", "out_channels"),
    ("p", "probability"),
    ("rate", "probability"),
    ("dropout", "probability"),
    ("d_model", "embedding_dim"),
    ("heads", "num_heads"),
    ("hidden", "hidden_size"),
    ("dim", "axis"),
    ("dims", "axes"),
    ("device", "device_lost"),
    ("oom", "out_of_memory"),
    ("nan", "not_finite"),
    ("crash", "panic"),
    ("signal", "killed"),
    ("time", "timeout"),
    ("time", "run"),
    ("retry", "retries"),
    ("attempts", "retries"),
    ("max_retries", "retries"),
    ("wait", "backoff"),
    ("delay", "backoff"),
    ("factor", "learning_rate_factor"),
    ("timeout", "run"),
    ("max_time", "run"),
    ("total", "experiment"),
    ("name", "type"),
    ("kind", "type"),
    ("target", "target_path"),
    ("targets", "target"),
    ("targets", "target_path"),
    ("label", "target"),
    ("labels", "target"),
    ("label", "target_path"),
    ("labels", "target_path"),
    ("targets_path", "target_path"),
    ("label_path", "target_path"),
    ("labels_path", "target_path"),
];

/// The known path that another one most likely means, also where its last key is what other tools say.
pub fn nearest_path<'a>(
    path: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    let theirs = path.rsplit_once('.').and_then(|(table, key)| {
        known.clone().find(|known| {
            known
                .strip_prefix(table)
                .and_then(|rest| rest.strip_prefix('.'))
                .is_some_and(|ours| SYNONYMS.contains(&(key, ours)))
        })
    });
    theirs.or_else(|| crate::diagnostic::nearest(path, known))
}

/// The table that a key belongs to, if some table of the experiment file has it.
pub fn home_of(key: &str) -> Option<String> {
    fn find(keys: &[KeyDoc], path: &str, wanted: &str) -> Option<String> {
        for doc in keys {
            if doc.key == wanted && wanted != "type" {
                return Some(path.to_owned());
            }
            let inner = match path.is_empty() {
                true => doc.key.to_owned(),
                false => format!("{path}.{}", doc.key),
            };
            let found = match &doc.shape {
                Shape::Table(keys) => find(keys, &inner, wanted),
                Shape::Variants(all) => all.iter().find_map(|v| find(&v.keys, path, wanted)),
                // A key of many tables has no home.
                Shape::Scalar(_)
                | Shape::Tables(_)
                | Shape::Axes
                | Shape::Distributions
                | Shape::Trials
                | Shape::Values
                | Shape::Free
                | Shape::Layers
                | Shape::Blocks => None,
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }
    find(&super::describe(), "", key)
}

/// The dotted paths of all keys outside of lists, tables included.
pub fn key_paths() -> Vec<String> {
    fn collect(keys: &[KeyDoc], prefix: &str, paths: &mut Vec<String>) {
        for doc in keys {
            let path = match prefix.is_empty() {
                true => doc.key.to_owned(),
                false => format!("{prefix}.{}", doc.key),
            };
            match &doc.shape {
                Shape::Table(keys) => collect(keys, &path, paths),
                Shape::Variants(all) => all.iter().for_each(|v| collect(&v.keys, prefix, paths)),
                _ => {}
            }
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    let mut paths = Vec::new();
    collect(&super::describe(), "", &mut paths);
    paths
}

/// The value, as TOML, that the key at a dotted path has when it is not written, where that does not
/// depend on a `type`.
pub fn default_of(path: &str) -> Option<String> {
    fn collect(keys: &[KeyDoc], path: &str, found: &mut Vec<String>) {
        let (head, rest) = match path.split_once('.') {
            None => (path, None),
            Some((head, rest)) => (head, Some(rest)),
        };
        for doc in keys {
            match (&doc.shape, rest) {
                (Shape::Table(inner), Some(rest)) if doc.key == head => collect(inner, rest, found),
                (Shape::Variants(_) | Shape::Scalar(_), None) if doc.key == head => {
                    found.extend(doc.default.as_ref().map(Json::to_string));
                }
                (Shape::Variants(all), _) => all.iter().for_each(|v| collect(&v.keys, path, found)),
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    collect(&super::describe(), path, &mut found);
    found.dedup();
    match found.as_slice() {
        [default] => Some(default.clone()),
        _ => None,
    }
}
