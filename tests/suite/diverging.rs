//! A diverging run is reported as such with any kernels.

use super::support::{folder_with, run, summary};

/// Windows at the border contain padding, and after the first update nothing else that is finite.
fn spec(pooling: &str) -> String {
    format!(
        r#"
[data]
type = "digits"

[model]
layers = [
    {{ type = "conv2d", out_channels = 16, kernel_size = 3, padding = "same" }},
    {{ {pooling} }},
    {{ type = "conv2d", out_channels = 16, kernel_size = 3, padding = "same" }},
    {{ type = "relu" }},
    {{ {pooling} }},
    {{ type = "flatten" }},
    {{ type = "linear" }},
]

[optimizer]
type = "sgd"
learning_rate = 1e38

[train]
epochs = 2
batch_size = 64
log_every = 1

[on_failure.not_finite]
retries = 1
backoff = "0s"
learning_rate_factor = 1e-40
"#
    )
}

#[test]
fn a_padded_pooling_that_diverges_is_not_finite_and_its_policy_fires() {
    for pooling in [
        r#"type = "max_pool2d", kernel_size = 3, stride = 1, padding = 1"#,
        r#"type = "max_pool2d", kernel_size = 3, stride = 2, padding = 1"#,
        r#"type = "max_pool2d", kernel_size = 3, stride = 2, padding = 1, ceil_mode = true"#,
        r#"type = "max_pool2d", kernel_size = 2, stride = 1, padding = 1, dilation = 2"#,
        r#"type = "avg_pool2d", kernel_size = 3, stride = 2, padding = 1"#,
    ] {
        let folder = folder_with(&spec(pooling));
        let (code, stdout, stderr) = run(folder.path(), &["run", "spec.toml", "--json"]);
        assert_eq!(code, 0, "{pooling}: {stderr}");
        let failed = stdout.lines().find(|line| line.contains("run_finished"));
        let failed = failed.expect("the first attempt ends");
        assert!(
            failed.contains(r#""class":"not_finite""#),
            "{pooling}: {failed}"
        );
        let retries = stdout.lines().filter(|line| line.contains("run_retried"));
        assert_eq!(retries.count(), 1, "{pooling}");
        assert_eq!(summary(folder.path(), "base-s1")["outcome"], "completed");
    }
}
