//! Examples in messages: a valid value for a key that a person would write.

use serde_json::Value as Json;

use super::Kind;
use crate::diagnostic::Span;
use crate::spec::document::{Document, Node};
use crate::spec::reference::unnumbered;

/// Examples by suffix of a key's path, for keys whose default or range does not provide a good one. The first matching
/// one that the key accepts is used.
const EXAMPLES: &[(&str, &str)] = &[
    ("ema.decay", "0.999"),
    ("clip.value", "1.0"),
    ("clip.norm", "1.0"),
    ("clip.global_norm", "1.0"),
    ("columns.clip", "[0.0, 100.0]"),
    ("groups.learning_rate_factor", "0.1"),
    ("augment.crop", "4"),
    ("augment.flip", "0.5"),
    ("augment.flip_vertical", "0.5"),
    ("augment.rotate", "10.0"),
    ("augment.erase", "0.25"),
    ("augment.brightness", "0.4"),
    ("augment.contrast", "0.4"),
    ("augment.saturation", "0.4"),
    ("augment.hue", "0.1"),
    ("resized_crop.scale", "[0.25, 1.0]"),
    ("resized_crop.ratio", "[0.75, 1.3333]"),
    ("mixup.alpha", "0.2"),
    ("mixup.probability", "0.5"),
    ("cutmix.alpha", "1.0"),
    ("cutmix.probability", "0.5"),
    ("data.label_noise", "0.2"),
    ("data.weight", "\"weight\""),
    ("graph.edges", "\"edges.csv\""),
    ("graph.id", "\"id\""),
    ("graph.of", "\"graph\""),
    ("graph.features", "[\"distance\"]"),
    ("edge_dim", "2"),
    ("graph.negatives", "5"),
    ("graph.neighbors", "[15, 10]"),
    ("graph.weight", "\"weight\""),
    ("hidden_features", "64"),
    ("notify.command", "[\"notify-send\", \"runner\"]"),
    ("notify.url_variable", "\"WEBHOOK_URL\""),
    ("columns.image.folder", "\"photos\""),
    ("window.length", "24"),
    ("tokens.stride", "32"),
    ("tokens.path", "\"tokenizer.json\""),
    ("tokens.template", "\"chat_template.jinja\""),
    ("search.objectives", "[\"parameters\"]"),
    ("search.constraints", "[\"memory_bytes < 2e9\"]"),
    ("search.warm_start", "[\"results/digits\"]"),
    (
        "sweep.exclude",
        "[\"optimizer.type == 'sgd' and train.batch_size > 64\"]",
    ),
    ("strategy.teacher", "\"results/digits/runs/base-s1\""),
    ("strategy.generator", "\"generator\""),
    ("strategy.discriminator", "\"discriminator\""),
    ("strategy.discriminator_steps", "5"),
    ("strategy.weight", "0.5"),
    ("strategy.temperature", "4.0"),
    ("strategy.full_steps", "20"),
    ("strategy.correction_steps", "5"),
    ("strategy.max_predict_steps", "40"),
    ("strategy.confidence_threshold", "0.85"),
    ("strategy.correction_interval", "10"),
    ("strategy.tolerance", "0.01"),
    ("strategy.snapshots", "5"),
    ("strategy.decay", "0.9"),
    ("strategy.rank", "3"),
    ("strategy.max_loss_sigma", "2.5"),
    ("strategy.max_gradient_factor", "100.0"),
    ("strategy.max_prediction_error", "0.5"),
    ("strategy.max_oscillation", "0.8"),
    ("adapters.parameters", "\"*.query.weight\""),
    ("adapters.train", "\"head.*\""),
    ("init.adapter", "\"my_adapter\""),
    ("experiment.seeds", "[1, 2, 3]"),
    ("experiment.question", "\"Does dropout help?\""),
    ("experiment.name", "\"dropout\""),
    ("objective.baseline", "\"base\""),
    ("verdict.smallest_difference", "0.005"),
    ("verdict.expected_sd", "0.004"),
    ("verdict.looks", "5"),
    ("verdict.max_seeds", "20"),
    ("checkpoint.every_steps", "100"),
    ("model.hidden", "[128]"),
    ("limits.run", "\"2h\""),
    ("limits.experiment", "\"8h\""),
    ("extends", "\"base.toml\""),
    ("axis", "0"),
    ("start_axis", "0"),
    ("dilation", "2"),
    ("output_size", "1"),
    ("output_padding", "1"),
    ("retries", "2"),
    ("epochs", "10"),
    ("steps", "100"),
    ("micro_batch_size", "16"),
    ("patience", "5"),
    ("min_delta", "1e-3"),
    ("learning_rate", "1e-3"),
    ("learning_rate_factor", "0.1"),
    ("momentum", "0.9"),
    ("dampening", "0.1"),
    ("weight_decay", "1e-2"),
    ("lr_decay", "1e-4"),
    ("gamma", "0.95"),
    ("step_size", "100"),
    ("milestones", "[30, 60]"),
    ("num_kv_heads", "2"),
    ("head_dim", "64"),
    ("window", "128"),
    ("rotary_scaling", "4.0"),
    ("rotary_length", "8192"),
    ("rotary_low", "1.0"),
    ("rotary_high", "4.0"),
    ("rotary_attention_factor", "1.2"),
    ("positive_class", "\"yes\""),
    ("period", "100"),
    ("period_factor", "2"),
    ("final_fraction", "0.01"),
    ("fraction", "0.5"),
    ("warmup_steps", "100"),
    ("warmup_epochs", "1"),
    ("std", "0.1"),
    ("out_features", "64"),
    ("out_channels", "16"),
    ("kernel_size", "3"),
    ("stride", "2"),
    ("padding", "\"same\""),
    ("padding", "1"),
    ("padding", "[[1, 1], [2, 2]]"),
    ("exponent", "0.5"),
    ("offset", "1.0"),
    ("num_heads", "4"),
    ("num_layers", "2"),
    ("feedforward_size", "128"),
    ("hidden_size", "64"),
    ("embedding_dim", "32"),
    ("num_groups", "4"),
    ("factor", "2"),
    ("size", "[32, 32]"),
    ("size", "5"),
    ("shape", "[16, -1]"),
    ("shape", "[16, 32]"),
    ("axes", "[1, 0]"),
    ("scale", "2.0"),
    ("end", "-1"),
    ("repeat", "2"),
    ("folds", "5"),
    ("fold", "1"),
    ("test", "0.1"),
    ("seed", "1"),
    ("num_trials", "20"),
    ("limit", "50"),
    ("min", "1e-4"),
    ("min", "1"),
    ("max", "0.1"),
    ("max", "10"),
    ("step", "0.1"),
    ("weights", "[1.0, 2.0]"),
    ("class_weights", "[1.0, 2.0]"),
    ("label_weights", "[1.0, 2.0]"),
    ("label_smoothing", "0.1"),
    ("focal_gamma", "2.0"),
    ("quantile", "0.9"),
    ("smoothing", "1.0"),
    ("cross_entropy_weight", "1.0"),
    ("dropout", "0.1"),
    ("outliers", "0.05"),
    ("value", "0.1"),
    ("start", "1"),
    ("when", "\"optimizer.type == 'sgd'\""),
    ("path", "\"data.csv\""),
    ("valid_path", "\"valid.csv\""),
    ("test_path", "\"test.csv\""),
    ("target_path", "\"targets.npy\""),
    ("valid_target_path", "\"valid_targets.npy\""),
    ("test_target_path", "\"test_targets.npy\""),
    ("root", "\"mnist\""),
    ("order_by", "\"date\""),
    ("group_by", "\"patient\""),
    ("target", "\"price\""),
    ("features", "[\"age\", \"height\"]"),
    ("ignore", "[\"id\"]"),
    ("columns.name", "\"age\""),
    ("losses.name", "\"age\""),
    ("losses.target", "\"items\""),
    ("output", "\"head\""),
    ("name", "\"hidden\""),
    ("share", "\"encoder\""),
    ("mask", "\"real\""),
    ("tie", "\"tokens\""),
    ("equation", "\"qd,kd->qk\""),
    ("inputs", "[\"hidden\", \"input\"]"),
    ("metrics", "[\"accuracy\"]"),
];

impl Kind {
    /// A value for the key at `path`, as TOML: a usual one, its default, or one in its range.
    pub fn example_for(&self, path: &str, default: Option<&Json>) -> String {
        let path = unnumbered(path);
        let fits = |(end, _): &&(&str, &str)| {
            path.strip_suffix(end)
                .is_some_and(|head| head.is_empty() || head.ends_with('.'))
        };
        let mut known = EXAMPLES
            .iter()
            .filter(fits)
            .map(|(end, example)| (*end, *example));
        // What applies to one key of a table does not apply to others.
        let mut own = known.clone().filter(|(end, _)| end.contains('.'));
        let default = default
            .filter(|default| says_something(default))
            .map(Json::to_string);
        let example = own
            .find(|(_, example)| self.accepts(example))
            .map(|(_, e)| e.to_owned());
        example
            .or_else(|| default.filter(|default| self.accepts(default)))
            .or_else(|| {
                known
                    .find(|(_, example)| self.accepts(example))
                    .map(|(_, e)| e.to_owned())
            })
            .unwrap_or_else(|| self.example())
    }

    /// Whether a value, as TOML, is accepted.
    pub fn accepts(&self, toml: &str) -> bool {
        let Ok(document) = Document::parse("example", &format!("value = {toml}")) else {
            return false;
        };
        let entry = document.root.entries.into_iter().next();
        entry.is_some_and(|entry| {
            let span = Span::default();
            let value = entry.node.value;
            self.check("", &Node { span, value }).is_empty()
        })
    }
}

/// Whether a default is a good example: 0, an empty list and `false` are not.
fn says_something(default: &Json) -> bool {
    match default {
        Json::Number(number) => number.as_f64() != Some(0.0),
        Json::Array(items) => items.iter().all(says_something) && !items.is_empty(),
        Json::String(text) => text != "0B",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::spec::section::{KeyDoc, Shape, joined};

    fn collect(keys: &[KeyDoc], path: &str, lines: &mut Vec<String>) {
        for doc in keys {
            let path = joined(path, doc.key);
            match &doc.shape {
                Shape::Scalar(kind) => {
                    let example = kind.example_for(&path, doc.default.as_ref());
                    assert!(kind.accepts(&example), "{path} = {example}");
                    lines.push(format!("{path} = {example}"));
                }
                Shape::Table(inner) | Shape::Tables(inner) => collect(inner, &path, lines),
                Shape::Variants(variants) => {
                    let path = path
                        .strip_suffix("type")
                        .unwrap_or(&path)
                        .trim_end_matches('.');
                    for variant in variants {
                        collect(&variant.keys, path, lines);
                    }
                }
                _ => {}
            }
        }
    }

    /// Every example in messages, for review by a person.
    #[test]
    fn every_example_is_accepted_by_its_key() {
        let mut lines = Vec::new();
        collect(crate::spec::describe(), "", &mut lines);
        collect(&crate::spec::model::describe_layer(), "layer", &mut lines);
        collect(
            &crate::spec::sweep::describe_distribution(),
            "axis",
            &mut lines,
        );
        collect(
            &crate::spec::sweep::describe_long_axis(),
            "axis",
            &mut lines,
        );
        lines.sort();
        lines.dedup();
        insta::assert_snapshot!(lines.join("\n"));
    }
}
