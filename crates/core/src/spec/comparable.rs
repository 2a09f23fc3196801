//! Which metrics of trials can be compared, by the keys that trials differ in.

use super::losses::MAIN;
use super::metric::is_loss;
use super::section::Choice;
use super::task::TaskKind;

/// A setting that says what metrics measure.
pub struct Measuring {
    /// Its key in the experiment file.
    pub key: &'static str,
    /// Its key in the settings of a run.
    pub setting: &'static str,
    /// The tasks of which it does; all if there are none.
    tasks: &'static [TaskKind],
    metrics: Metrics,
}

/// Which metrics a setting changes.
enum Metrics {
    All,
    Of(&'static [&'static str]),
}

/// Metrics that are averaged over classes.
const OF_CLASSES: &[&str] = &["precision", "recall", "f_beta", "specificity", "jaccard"];
/// The same, with those over thresholds.
const OF_AVERAGES: &[&str] = &[
    "precision",
    "recall",
    "f_beta",
    "specificity",
    "jaccard",
    "auroc",
    "auc_pr",
];
/// Metrics in the units of scaled targets.
const IN_UNITS: &[&str] = &["loss", "mae", "mse", "rmse", "sliced_wasserstein"];
const TRANSFORMED: &[&str] = &["loss", "mae", "mse", "rmse", "r2"];

/// Tasks whose targets are the tokens, and the items.
const OF_TOKENS: &[TaskKind] = &[TaskKind::NextToken, TaskKind::MaskedToken];
const OF_ITEMS: &[TaskKind] = &[TaskKind::Autoencoding, TaskKind::Generation];

const fn always(key: &'static str, setting: &'static str, metrics: Metrics) -> Measuring {
    Measuring {
        key,
        setting,
        tasks: &[],
        metrics,
    }
}

const fn of_tokens(key: &'static str, setting: &'static str) -> Measuring {
    Measuring {
        key,
        setting,
        tasks: OF_TOKENS,
        metrics: Metrics::All,
    }
}

const fn of_items(key: &'static str) -> Measuring {
    Measuring {
        key,
        setting: key,
        tasks: OF_ITEMS,
        metrics: Metrics::Of(IN_UNITS),
    }
}

/// The key of the task.
pub const TASK: &str = "task.type";

/// The settings that say what metrics measure, other than those of losses.
pub const MEASURING: [Measuring; 20] = [
    always(TASK, TASK, Metrics::All),
    always("data.target", "data.files.roles.target", Metrics::All),
    always("data.target_path", "data.files.target_path", Metrics::All),
    always(
        "data.target_scale",
        "data.files.roles.target_scale",
        Metrics::Of(IN_UNITS),
    ),
    always(
        "data.target_transform",
        "data.files.roles.target_transform",
        Metrics::Of(TRANSFORMED),
    ),
    always("task.average", "task.average", Metrics::Of(OF_AVERAGES)),
    always(
        "task.positive_class",
        "task.positive",
        Metrics::Of(OF_AVERAGES),
    ),
    always(
        "task.zero_division",
        "task.zero_division",
        Metrics::Of(OF_CLASSES),
    ),
    always("task.beta", "task.beta", Metrics::Of(&["f_beta"])),
    always("task.top_k", "task.top_k", Metrics::Of(&["top_k_accuracy"])),
    of_tokens("data.tokens.tokenizer", "data.files.tokens.tokenizer"),
    of_tokens("data.tokens.path", "data.files.tokens.path"),
    of_tokens(
        "data.tokens.max_vocabulary",
        "data.files.tokens.max_vocabulary",
    ),
    of_tokens("data.tokens.lowercase", "data.files.tokens.lowercase"),
    of_tokens("data.tokens.separator", "data.files.tokens.separator"),
    of_tokens("data.tokens.masked", "data.files.tokens.masked"),
    of_tokens("data.tokens.template", "data.files.tokens.template"),
    of_tokens(
        "data.tokens.learn_prompts",
        "data.files.tokens.learn_prompts",
    ),
    of_items("data.scale"),
    of_items("data.scale_axis"),
];

impl Measuring {
    /// Whether it says what metrics of a task measure; `task` is its name, or several separated by `, `.
    pub fn is_of(&self, task: Option<&str>) -> bool {
        let mut names = task.iter().flat_map(|task| task.split(", "));
        self.tasks.is_empty() || names.any(|name| self.tasks.iter().any(|of| of.name() == name))
    }

    /// Whether it says what a metric measures, which is named without its split.
    fn changes(&self, name: &str) -> bool {
        match self.metrics {
            Metrics::All => true,
            Metrics::Of(names) => names.contains(&name),
        }
    }

    /// Whether an axis varies it: its key, or a table within a section with it.
    fn is_varied_by(&self, axis: &str) -> bool {
        let inside = self.key.strip_prefix(axis);
        inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('.') && axis.contains('.'))
    }
}

/// Whether a metric is another quantity in different trials, so that its values cannot be compared: all metrics if the
/// axes vary the target, errors if they vary its units, and what a setting of a metric changes. Where items are their own
/// targets, settings of items are those of targets. A loss is another one if the axes vary it; that of a term is measured
/// without its weight. `task` is the name of the task, or of several separated by `, `.
pub fn is_measured_differently(metric: &str, axes: &[String], task: Option<&str>) -> bool {
    let Some(name) = metric.rsplit('/').next().filter(|name| *name != metric) else {
        return false;
    };
    axes.iter().any(|axis| {
        let mut measuring = MEASURING.iter().filter(|of| of.is_varied_by(axis));
        measuring.any(|of| of.is_of(task) && of.changes(name))
            || is_loss(metric) && is_of_loss(metric, axis)
    })
}

/// Whether a key changes the function of a loss.
fn is_of_loss(metric: &str, key: &str) -> bool {
    let term = metric.split('/').nth(1).filter(|term| *term != "loss");
    match (key.split(['.', '[']).next(), term) {
        (Some("loss"), None | Some(MAIN)) | (Some("losses"), None) => true,
        (Some("losses"), Some(term)) => term != MAIN && !key.ends_with(".weight"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_compared_unless_an_axis_changes_them() {
        let several =
            |metric: &str, axis: &str| is_measured_differently(metric, &[axis.to_owned()], None);
        for axis in ["loss.type", "losses.age.weight", "losses[0].type"] {
            assert!(several("valid/loss", axis), "{axis}");
            assert!(!several("valid/accuracy", axis), "{axis}");
        }
        assert!(!several("valid/loss", "optimizer.type"));
        assert!(several("valid/main/loss", "loss.type"));
        assert!(!several("valid/main/loss", "losses.age.weight"));
        assert!(!several("valid/age/loss", "losses.age.weight"));
        assert!(several("valid/age/loss", "losses.age.type"));
        assert!(!several("valid/age/loss", "loss.type"));
    }

    #[test]
    fn metrics_are_compared_unless_an_axis_changes_what_they_measure() {
        let several =
            |metric: &str, axis: &str| is_measured_differently(metric, &[axis.to_owned()], None);
        for (metric, axis) in [
            ("valid/mae", "data.target_scale"),
            ("valid/loss", "data.target_transform"),
            ("valid/r2", "data.target_transform"),
            ("valid/accuracy", "data.target"),
            ("valid/target_mae", "data.target"),
            ("valid/f_beta", "task.average"),
            ("valid/auroc", "task.average"),
            ("valid_ema/f_beta", "task.beta"),
            ("valid/top_k_accuracy", "task.top_k"),
        ] {
            assert!(several(metric, axis), "{metric} {axis}");
        }
        for (metric, axis) in [
            ("valid/target_mae", "data.target_scale"),
            ("valid/r2", "data.target_scale"),
            ("valid/accuracy", "task.average"),
            ("valid/f_beta", "task.top_k"),
            ("valid/loss", "data.scale"),
            ("wall_secs", "data.target"),
        ] {
            assert!(!several(metric, axis), "{metric} {axis}");
        }
    }

    #[test]
    fn items_that_are_their_own_targets_are_measured_by_their_settings() {
        let several = |task, metric: &str, axis: &str| {
            is_measured_differently(metric, &[axis.to_owned()], Some(task))
        };
        for axis in [
            "data.tokens.tokenizer",
            "data.tokens.max_vocabulary",
            "data.tokens",
        ] {
            assert!(several("next_token", "valid/perplexity", axis), "{axis}");
            assert!(several("masked_token", "valid/loss", axis), "{axis}");
            assert!(!several("classification", "valid/loss", axis), "{axis}");
        }
        assert!(!several("next_token", "valid/loss", "data.tokens.length"));
        assert!(!several("next_token", "valid/loss", "data"));
        assert!(several("autoencoding", "valid/loss", "data.scale"));
        assert!(!several("autoencoding", "valid/psnr", "data.scale"));
        assert!(!several("regression", "valid/loss", "data.scale"));
    }
}
