//! The training recipe: every optimizer and schedule, and that resuming changes none of them.

use super::edit::Edit;
use super::support::{IRIS, completed, folder_with, goes_on, numbers, plan, run};

/// Every optimizer as an axis, with a learning rate that suits it.
const OPTIMIZERS: &str = r#"
[sweep.grid]
optimizer = [
  { type = "sgd", learning_rate = 0.1, momentum = 0.9, dampening = 0.1, weight_decay = 1e-4, clip = { value = 0.5 } },
  { type = "adam", learning_rate = 1e-2, amsgrad = true },
  { type = "adamw", learning_rate = 1e-2, cautious_weight_decay = true },
  { type = "adagrad", learning_rate = 0.1, lr_decay = 1e-3 },
  { type = "rmsprop", learning_rate = 1e-2, momentum = 0.5, centered = true },
  { type = "adafactor", learning_rate = 0.1 },
  { type = "adan", learning_rate = 1e-2, weight_decay = 1e-3, clip = { norm = 1.0 } },
  { type = "lamb", learning_rate = 3e-2 },
  { type = "lion", learning_rate = 1e-3, weight_decay = 0.1 },
  { type = "muon", learning_rate = 2e-2, adamw = { learning_rate = 1e-2 } },
]
"#;

#[test]
fn every_optimizer_trains_and_goes_on_to_the_same_numbers() {
    let spec = format!("{IRIS}{OPTIMIZERS}").edit("epochs = 3", "epochs = 8");
    let straight = completed(&spec, &[]);
    let metrics = numbers(straight.path());
    assert_eq!(metrics.len(), 10);
    for (id, csv, ..) in &metrics {
        let rows: Vec<Vec<&str>> = csv.lines().map(|row| row.split(',').collect()).collect();
        let at = rows[0].iter().position(|name| *name == "train/loss");
        let loss = |row: &[&str]| row[at.unwrap()].parse::<f64>().unwrap();
        let (first, last) = (loss(&rows[1]), loss(&rows[8]));
        assert!(last < 0.8 * first, "{id}: from {first} to {last}");
    }
    let stopped = folder_with(&spec);
    let arguments = ["run", "spec.toml", "--quiet", "--inject-fault", "*@4"];
    run(stopped.path(), &arguments);
    goes_on(stopped.path());
    assert_eq!(metrics, numbers(stopped.path()));
}

#[test]
fn what_is_frozen_stays_so_when_training_goes_on() {
    let group = "[[optimizer.groups]]\nparameters = \"linear_1.*\"\nfreeze = true\n";
    let spec = format!("{IRIS}log_gradient_norms = \"parameters\"\n{group}").edit("adam", "adamw");
    let straight = completed(&spec, &[]);
    let stopped = folder_with(&spec);
    let arguments = ["run", "spec.toml", "--quiet", "--inject-fault", "*@3"];
    run(stopped.path(), &arguments);
    goes_on(stopped.path());
    let numbers = numbers(stopped.path());
    assert_eq!(super::support::numbers(straight.path()), numbers);
    // Frozen parameters have no gradient, also in the epoch after the checkpoint was loaded.
    let metrics = numbers[0].2.as_object().unwrap();
    let norms: Vec<_> = metrics
        .keys()
        .filter(|key| key.starts_with("last/train/gradient_norm/"))
        .collect();
    assert_eq!(
        norms,
        [
            "last/train/gradient_norm/linear_2.bias",
            "last/train/gradient_norm/linear_2.weight"
        ]
    );
}

#[test]
fn every_schedule_is_what_it_was() {
    let schedules = [
        r#"type = "constant""#,
        r#"type = "constant", warmup_steps = 4"#,
        r#"type = "linear", warmup_epochs = 1"#,
        r#"type = "linear", final_fraction = 0.1, unit = "epoch""#,
        r#"type = "cosine""#,
        r#"type = "cosine", warmup_epochs = 1, unit = "epoch""#,
        r#"type = "exponential", gamma = 0.5"#,
        r#"type = "exponential", gamma = 0.5, unit = "epoch""#,
        r#"type = "step", step_size = 7"#,
        r#"type = "step", step_size = 2, gamma = 0.5, unit = "epoch""#,
        r#"type = "noam", warmup_steps = 5"#,
        r#"type = "cosine_restarts", period = 3, period_factor = 2"#,
        r#"type = "cosine_restarts", period = 2, final_fraction = 0.2, unit = "epoch""#,
        r#"type = "one_cycle""#,
        r#"type = "sequence", warmup_epochs = 1, stages = [{ type = "constant", epochs = 1 }, { type = "linear", final_fraction = 0.5, steps = 5 }, { type = "cosine", fraction = 0.5 }]"#,
    ];
    let mut text = String::new();
    for schedule in schedules {
        // 20 steps in 5 epochs of 4.
        let spec = IRIS.edit("epochs = 3\nbatch_size = 16", "epochs = 5\nbatch_size = 30");
        let spec = format!("scheduler = {{ {schedule} }}\n{spec}").edit("1e-2", "1.0");
        let (plan, _) = plan("spec.toml", &spec).unwrap_or_else(|message| panic!("{message}"));
        let run = &plan.runs[0];
        assert_eq!(run.num_steps(), 20);
        let rates = (0..20).map(|step| format!("{:.4}", run.learning_rate(step)));
        let rates: Vec<_> = rates.collect();
        text.push_str(&format!("{schedule}\n  {}\n", rates.join(" ")));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn training_that_gets_no_better_stops_early_and_says_so() {
    let spec = format!(
        "{IRIS}\n[train.early_stopping]\nmetric = \"train/loss\"\npatience = 2\nmin_delta = 10\n"
    )
    .edit("epochs = 3", "epochs = 9");
    let folder = folder_with(&spec);
    let stderr = goes_on(folder.path());
    assert!(stderr.contains("stopped early after epoch 3"), "{stderr}");
    let (_, csv, ..) = &numbers(folder.path())[0];
    assert_eq!(csv.lines().count(), 4, "{csv}");
    let report = std::fs::read_to_string(folder.path().join("results/spec/report.md")).unwrap();
    let line = "`base-s1` was stopped early after epoch 3 of 9: no better train/loss for 2 epochs";
    assert!(report.contains(line), "{report}");
    // Everything derived from the history is derived again after a failure.
    let stopped = folder_with(&spec);
    let arguments = ["run", "spec.toml", "--quiet", "--inject-fault", "*@3"];
    run(stopped.path(), &arguments);
    goes_on(stopped.path());
    assert_eq!(numbers(folder.path()), numbers(stopped.path()));
}

#[test]
fn a_global_norm_clips_all_gradients_together() {
    let spec =
        format!("{IRIS}log_gradient_norms = \"global\"\n[optimizer.clip]\nglobal_norm = 1e-3\n")
            .edit("adam", "sgd");
    let column = |spec: &str, name: &str| -> f64 {
        let folder = completed(spec, &[]);
        let summary = super::support::summary(folder.path(), "base-s1");
        summary["metrics"][format!("last/train/{name}")]
            .as_f64()
            .unwrap()
    };
    // Every step is clipped to almost nothing, so the loss hardly falls.
    assert_eq!(column(&spec, "clipped_fraction"), 1.0);
    assert!(column(&spec, "gradient_norm") > 0.1);
    let free = spec.edit("1e-3", "1e3");
    assert_eq!(column(&free, "clipped_fraction"), 0.0);
    assert!(column(&free, "loss") < column(&spec, "loss") - 0.01);
}
