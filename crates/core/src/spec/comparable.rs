//! Which metrics of trials can be compared, by the keys that trials differ in.

use self::Metrics::{All, Of};
use super::losses::MAIN;
use super::metric::is_loss;
use super::section::Choice;
use super::task::TaskKind;

/// A setting that says what metrics measure.
pub struct Measuring {
    /// Its key in the experiment file.
    pub key: &'static str,
    /// Its key in the settings of a run; none if it only says where to find what it measures.
    pub setting: Option<&'static str>,
    /// The tasks of which it does; all if there are none.
    tasks: &'static [TaskKind],
    metrics: Metrics,
}

/// Which metrics a setting changes.
enum Metrics {
    All,
    Of(&'static [&'static [&'static str]]),
}

/// Metrics that are averaged over classes.
const OF_CLASSES: &[&str] = &["precision", "recall", "f_beta", "specificity", "jaccard"];
/// Metrics over thresholds, averaged over classes too.
const OF_THRESHOLDS: &[&str] = &["auroc", "auc_pr"];
/// Metrics in the units of scaled targets.
const IN_UNITS: &[&str] = &["loss", "mae", "mse", "rmse", "sliced_wasserstein"];
const TRANSFORMED: &[&str] = &["loss", "mae", "mse", "rmse", "r2"];

const ANY: &[TaskKind] = &[];
/// Tasks whose targets are the tokens, and the items.
const OF_TOKENS: &[TaskKind] = &[TaskKind::NextToken, TaskKind::MaskedToken];
const OF_ITEMS: &[TaskKind] = &[TaskKind::Autoencoding, TaskKind::Generation];

const fn of(
    tasks: &'static [TaskKind],
    key: &'static str,
    setting: Option<&'static str>,
    metrics: Metrics,
) -> Measuring {
    Measuring {
        key,
        setting,
        tasks,
        metrics,
    }
}

/// The key of the task.
pub const TASK: &str = "task.type";

/// The settings that say what metrics measure, other than those of losses.
pub static MEASURING: [Measuring; 20] = [
    of(ANY, TASK, Some(TASK), All),
    of(ANY, "data.target", Some("data.files.roles.target"), All),
    of(ANY, "data.target_path", None, All),
    of(
        ANY,
        "data.target_scale",
        Some("data.files.roles.target_scale"),
        Of(&[IN_UNITS]),
    ),
    of(
        ANY,
        "data.target_transform",
        Some("data.files.roles.target_transform"),
        Of(&[TRANSFORMED]),
    ),
    of(
        ANY,
        "task.average",
        Some("task.average"),
        Of(&[OF_CLASSES, OF_THRESHOLDS]),
    ),
    of(
        ANY,
        "task.positive_class",
        Some("task.positive"),
        Of(&[OF_CLASSES, OF_THRESHOLDS]),
    ),
    of(
        ANY,
        "task.zero_division",
        Some("task.zero_division"),
        Of(&[OF_CLASSES]),
    ),
    of(ANY, "task.beta", Some("task.beta"), Of(&[&["f_beta"]])),
    of(
        ANY,
        "task.top_k",
        Some("task.top_k"),
        Of(&[&["top_k_accuracy"]]),
    ),
    of(
        OF_TOKENS,
        "data.tokens.tokenizer",
        Some("data.files.tokens.tokenizer"),
        All,
    ),
    of(
        OF_TOKENS,
        "data.tokens.path",
        Some("data.files.tokens.path"),
        All,
    ),
    of(
        OF_TOKENS,
        "data.tokens.max_vocabulary",
        Some("data.files.tokens.max_vocabulary"),
        All,
    ),
    of(
        OF_TOKENS,
        "data.tokens.lowercase",
        Some("data.files.tokens.lowercase"),
        All,
    ),
    of(
        OF_TOKENS,
        "data.tokens.separator",
        Some("data.files.tokens.separator"),
        All,
    ),
    of(
        OF_TOKENS,
        "data.tokens.masked",
        Some("data.files.tokens.masked"),
        All,
    ),
    of(
        OF_TOKENS,
        "data.tokens.template",
        Some("data.files.tokens.template"),
        All,
    ),
    of(
        OF_TOKENS,
        "data.tokens.learn_prompts",
        Some("data.files.tokens.learn_prompts"),
        All,
    ),
    of(OF_ITEMS, "data.scale", Some("data.scale"), Of(&[IN_UNITS])),
    of(
        OF_ITEMS,
        "data.scale_axis",
        Some("data.scale_axis"),
        Of(&[IN_UNITS]),
    ),
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
            All => true,
            Of(lists) => lists.iter().any(|names| names.contains(&name)),
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
