//! Which metrics of trials can be compared, by the keys that trials differ in.

use super::losses::MAIN;
use super::metric::is_loss;

/// Whether a metric is another quantity in different trials, so that its values cannot be compared: all metrics if the
/// axes vary the target, errors if they vary its units, and what a setting of a metric changes. A loss is another one if
/// the axes vary it; that of a term is measured without its weight.
pub fn is_measured_differently(metric: &str, axes: &[String]) -> bool {
    let Some(name) = metric.rsplit('/').next().filter(|name| *name != metric) else {
        return false;
    };
    let is_changed = |key: &String| match key.as_str() {
        "data.target" | "data.target_path" | "task.type" => true,
        "data.target_scale" => IN_UNITS.contains(&name),
        "data.target_transform" => IN_UNITS.contains(&name) || name == "r2",
        "task.average" | "task.positive_class" => {
            OF_CLASSES.contains(&name) || matches!(name, "auroc" | "auc_pr")
        }
        "task.zero_division" => OF_CLASSES.contains(&name),
        "task.beta" => name == "f_beta",
        "task.top_k" => name == "top_k_accuracy",
        key => is_loss(metric) && is_of_loss(metric, key),
    };
    axes.iter().any(is_changed)
}

/// The keys that change what metrics measure, other than those of losses, each with its name in the settings of a run.
pub const OF_METRICS: [(&str, &str); 8] = [
    ("data.target", "data.files.roles.target"),
    ("data.target_scale", "data.files.roles.target_scale"),
    ("data.target_transform", "data.files.roles.target_transform"),
    ("task.average", "task.average"),
    ("task.beta", "task.beta"),
    ("task.positive_class", "task.positive"),
    ("task.top_k", "task.top_k"),
    ("task.zero_division", "task.zero_division"),
];

/// Metrics in the units of scaled targets.
const IN_UNITS: [&str; 4] = ["loss", "mae", "mse", "rmse"];

/// Metrics that are averaged over classes.
const OF_CLASSES: [&str; 5] = ["precision", "recall", "f_beta", "specificity", "jaccard"];

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
            |metric: &str, axis: &str| is_measured_differently(metric, &[axis.to_owned()]);
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
            |metric: &str, axis: &str| is_measured_differently(metric, &[axis.to_owned()]);
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
}
