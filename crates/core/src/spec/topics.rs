//! The meaning of each table and key of the experiment file, by path: the texts of `runner explain` and of the manual's
//! reference chapters. They come from the declarations in the decode functions, as the JSON Schema does.

use serde_json::Value as Json;

use super::hints::types_with;
use super::kind::Kind;
use super::metric::{Metric, Objective};
use super::model::decode_layer;
use super::remedy;
use super::section::{self, Choice, KeyDoc, Shape, Variant, joined};
use crate::diagnostic::nearest;

/// With more names than this, a phrase contains their number, and they are listed below it.
const MANY: usize = 6;

/// A table, a type of a table, a key, or a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Topic {
    /// Its path in the file, such as `optimizer.adam` or `train.batch_size`.
    pub path: String,
    /// Its meaning.
    pub doc: String,
    /// What a key accepts and its default, as a phrase; empty for a table.
    pub expects: String,
    /// Valid lines of TOML; empty for a table.
    pub example: String,
    /// Its content: the keys of a table, the types of a table with types, the names that a key accepts.
    pub parts: Vec<Part>,
}

/// One line of a topic.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// A key, a type or a name.
    pub name: String,
    /// What a key accepts and its default, as a phrase; empty for a name.
    pub expects: String,
    /// Its meaning.
    pub doc: String,
}

/// The result of a search for a topic.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// One topic.
    One(Box<Topic>),
    /// Several paths end with the search term.
    Several(Vec<String>),
    /// None, with the nearest path if there is one.
    None(Option<String>),
}

/// Every topic, in the order of the file's tables.
///
/// ```
/// use runner_core::spec::topics::topics;
///
/// assert!(topics().iter().any(|topic| topic.path == "optimizer.adam"));
/// ```
pub fn topics() -> Vec<Topic> {
    let mut topics = Vec::new();
    add_keys(&mut topics, "", super::describe());
    add_table(
        &mut topics,
        "model.layers",
        "",
        &section::describe(decode_layer),
    );
    topics.extend(Metric::all().into_iter().map(|(_, name, doc)| Topic {
        path: format!("metrics.{name}"),
        doc: doc.to_owned(),
        expects: String::new(),
        example: format!("task.metrics = [\"{name}\"]"),
        parts: Vec::new(),
    }));
    topics
}

/// Finds a topic by its path, or by the end of its path.
pub fn find(asked: &str) -> Found {
    let topics = topics();
    // A metric of a split, such as `valid/accuracy`.
    let metric = Objective::parse(asked).ok();
    let metric = metric.map(|objective| format!("metrics.{}", objective.metric.name()));
    let asked = metric.as_deref().unwrap_or(asked);
    let matching = |topic: &&Topic| {
        let above = topic.path.strip_suffix(asked);
        above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
    };
    if let Some(topic) = topics.iter().find(|topic| topic.path == asked) {
        return Found::One(Box::new(topic.clone()));
    }
    let mut found: Vec<_> = topics.iter().filter(matching).collect();
    if found.is_empty() {
        found = without_type(asked, &topics);
    }
    match found[..] {
        [topic] => Found::One(Box::new(topic.clone())),
        [] => {
            let path = nearest(asked, topics.iter().map(|topic| topic.path.as_str()));
            let by_name = || {
                let names = topics.iter().map(|topic| last(&topic.path));
                let name = nearest(last(asked), names)?;
                // That of the outermost table.
                let named = topics.iter().filter(|topic| last(&topic.path) == name);
                let named = named.min_by_key(|topic| topic.path.matches('.').count());
                named.map(|topic| topic.path.as_str())
            };
            let near = || path.or_else(by_name).map(str::to_owned);
            Found::None(
                remedy::full_path(asked)
                    .or_else(|| remedy::objective(asked))
                    .or_else(near),
            )
        }
        _ => Found::Several(found.iter().map(|topic| topic.path.clone()).collect()),
    }
}

/// The keys of a path that leaves out the type of their table, as messages do; one if they mean the same with each type.
fn without_type<'a>(asked: &str, topics: &'a [Topic]) -> Vec<&'a Topic> {
    let Some((table, key)) = asked.rsplit_once('.') else {
        return Vec::new();
    };
    let types = types_with(table, key).into_iter();
    let paths = types.map(|name| joined(&joined(table, name), key));
    let found = paths.filter_map(|path| topics.iter().find(|topic| topic.path == path));
    let mut found: Vec<&Topic> = found.collect();
    if found
        .windows(2)
        .all(|pair| pair[0].doc == pair[1].doc && pair[0].expects == pair[1].expects)
    {
        found.truncate(1);
    }
    found
}

fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

fn add_keys(topics: &mut Vec<Topic>, path: &str, keys: &[KeyDoc]) {
    for key in keys {
        let path = joined(path, key.key);
        match &key.shape {
            Shape::Table(inner) | Shape::Tables(inner) => {
                add_table(topics, &path, key.doc, inner);
            }
            Shape::Variants(_) => {}
            _ => topics.push(Topic {
                doc: key.doc.to_owned(),
                expects: expects(key),
                example: example(&path, key),
                parts: names(&key.shape),
                path,
            }),
        }
    }
}

/// A table, its types if it has any, and its keys.
fn add_table(topics: &mut Vec<Topic>, path: &str, doc: &str, keys: &[KeyDoc]) {
    let variants: &[Variant] = keys
        .iter()
        .find_map(|key| match &key.shape {
            Shape::Variants(variants) => Some(variants.as_slice()),
            _ => None,
        })
        .unwrap_or_default();
    let plain = || {
        keys.iter()
            .filter(|key| !matches!(key.shape, Shape::Variants(_)))
    };
    let table = |path: String, doc: &str, parts: Vec<Part>| Topic {
        path,
        doc: doc.to_owned(),
        expects: String::new(),
        example: String::new(),
        parts,
    };
    let types = variants.iter().map(|variant| Part {
        name: format!("type = \"{}\"", variant.name),
        expects: String::new(),
        doc: variant.doc.to_owned(),
    });
    // Layers are in `model`, which describes them.
    if !doc.is_empty() {
        let parts = types.chain(plain().map(part)).collect();
        topics.push(table(path.to_owned(), doc, parts));
    }
    for variant in variants {
        let path = joined(path, variant.name);
        let parts = variant.keys.iter().chain(plain()).map(part).collect();
        topics.push(table(path.clone(), variant.doc, parts));
        add_keys(topics, &path, &variant.keys);
    }
    if !doc.is_empty() {
        let plain: Vec<_> = plain().cloned().collect();
        add_keys(topics, path, &plain);
    }
}

fn part(key: &KeyDoc) -> Part {
    Part {
        name: key.key.to_owned(),
        expects: expects(key),
        doc: key.doc.to_owned(),
    }
}

/// What a key accepts and its default: `an integer of at least 1; default 64`.
fn expects(key: &KeyDoc) -> String {
    let what = match &key.shape {
        Shape::Scalar(Kind::OneOf(names)) if names.len() > MANY => {
            format!("one of {} names", names.len())
        }
        Shape::Scalar(kind) => kind.expected(),
        Shape::Table(_) | Shape::Variants(_) => "a table".to_owned(),
        Shape::Tables(_) => "a list of tables".to_owned(),
        Shape::Axes => "a table of keys, each with a list of values".to_owned(),
        Shape::Distributions => "a table of keys, each with a distribution".to_owned(),
        Shape::Trials => "a list of tables of keys, each with a value".to_owned(),
        Shape::Values => "a list of values".to_owned(),
        Shape::Layers => "a list of layers".to_owned(),
        Shape::Blocks => "tables of layers by name".to_owned(),
        Shape::Free => "a table of any keys".to_owned(),
    };
    match &key.default {
        Some(default) => format!("{what}; default {}", toml(default)),
        None if key.required => format!("{what}; required"),
        None => what,
    }
}

/// The names that a key accepts, with their meanings.
fn names(shape: &Shape) -> Vec<Part> {
    let Shape::Scalar(Kind::OneOf(names) | Kind::Indexed(names)) = shape else {
        return Vec::new();
    };
    let part = |(name, doc): &(&str, &str)| Part {
        name: format!("\"{name}\""),
        expects: String::new(),
        doc: (*doc).to_owned(),
    };
    names.iter().map(part).collect()
}

/// A line that sets the key.
fn example(path: &str, key: &KeyDoc) -> String {
    let Shape::Scalar(kind) = &key.shape else {
        return String::new();
    };
    let value = match &key.default {
        Some(default) => toml(default),
        None => kind.example(),
    };
    match path.rsplit_once('.') {
        Some((_, name)) => format!("{name} = {value}"),
        None => format!("{path} = {value}"),
    }
}

fn toml(value: &Json) -> String {
    match value {
        Json::Array(items) => {
            let items: Vec<_> = items.iter().map(toml).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_found_by_path_and_by_the_end_of_a_path() {
        let found = |asked: &str| match find(asked) {
            Found::One(topic) => topic.path,
            Found::Several(paths) => format!("{} paths", paths.len()),
            Found::None(near) => format!("near {near:?}"),
        };
        assert_eq!(found("optimizer.adam"), "optimizer.adam");
        assert_eq!(found("conv2d"), "model.layers.conv2d");
        assert_eq!(found("out_of_memory"), "on_failure.out_of_memory");
        assert_eq!(found("train.batch_size"), "train.batch_size");
        assert_eq!(found("metrics.auroc"), "metrics.auroc");
        assert_eq!(found("optimiser.adam"), "near Some(\"optimizer.adam\")");
        // Metrics of a split, and words of other tools.
        assert_eq!(found("valid/accuracy"), "metrics.accuracy");
        assert_eq!(found("val_acc"), "near Some(\"valid/accuracy\")");
        assert_eq!(found("lr"), "near Some(\"optimizer.learning_rate\")");
        assert_eq!(found("zzz"), "near None");
        // As messages name keys of tables with types.
        assert_eq!(found("loss.mask"), "loss.mse.mask");
        assert_eq!(found("launch.gpus"), "2 paths");
        assert_eq!(found("train.decay"), "near Some(\"train.ema.decay\")");
        assert!(found("dropout").ends_with("paths"), "{}", found("dropout"));
    }

    #[test]
    fn every_topic_has_a_path_of_its_own_and_says_what_it_is() {
        let mut paths: Vec<_> = topics().into_iter().map(|topic| topic.path).collect();
        let num = paths.len();
        paths.sort();
        paths.dedup();
        assert_eq!(paths.len(), num, "a path stands for two topics");
        for topic in topics() {
            assert!(!topic.doc.is_empty(), "{}", topic.path);
        }
    }
}
