//! Missing trials of a sweep: keys that are not set in some, values without any trial, and a batch that is larger than
//! the data.

use super::edit::Edit;
use super::support::{IRIS, folder_with, plan, run};

/// Momentum for one of the compared optimizers.
fn over_types(types: &str, more: &str) -> String {
    let sgd = IRIS.edit("type = \"adam\"", "type = \"sgd\"\nmomentum = 0.9");
    format!("{sgd}\n[sweep.grid]\noptimizer.type = {types}\n{more}")
}

#[test]
fn an_axis_over_types_keeps_what_a_type_has_and_leaves_out_the_rest() {
    let (swept, warnings) = plan("spec.toml", &over_types("[\"sgd\", \"adam\"]", "")).unwrap();
    assert_eq!(warnings, "");
    assert_eq!(
        swept.notices,
        [
            "`optimizer.momentum` (spec.toml:11) is not set in trials with `optimizer.type` `adam`: it is a key of `sgd`"
        ]
    );
    // Excluded keys are not part of a run's identity.
    let (alone, _) = plan("spec.toml", IRIS).unwrap();
    assert_eq!(swept.runs[1].fingerprint, alone.runs[0].fingerprint);
    let sgd = over_types("[\"sgd\", \"adam\"]", "");
    let sgd = sgd.split("[sweep").next().unwrap();
    assert_eq!(
        swept.runs[0].fingerprint,
        plan("spec.toml", sgd).unwrap().0.runs[0].fingerprint
    );
}

#[test]
fn a_key_that_no_type_of_the_axis_has_is_refused() {
    let wrong = plan("spec.toml", &over_types("[\"adam\", \"adamw\"]", "")).unwrap_err();
    assert!(
        wrong.contains("unknown key `momentum` in `optimizer` (type `adam`)"),
        "{wrong}"
    );
    assert!(wrong.contains("spec.toml:11"), "{wrong}");
    let misspelled = over_types("[\"sgd\", \"adam\"]", "").edit("momentum", "momentun");
    let wrong = plan("spec.toml", &misspelled).unwrap_err();
    assert!(wrong.contains("unknown key `momentun`"), "{wrong}");
    // An axis over such a key is a mistake that a condition corrects.
    let text = over_types("[\"sgd\", \"adam\"]", "optimizer.momentum = [0.5, 0.9]\n");
    let wrong = plan("spec.toml", &text).unwrap_err();
    assert!(
        wrong.contains("when = \"optimizer.type == 'sgd'\""),
        "{wrong}"
    );
    let text = over_types(
        "[\"sgd\", \"adam\"]",
        "optimizer.momentum = { values = [0.5, 0.9], when = \"optimizer.type == 'sgd'\" }\n",
    );
    assert_eq!(plan("spec.toml", &text).unwrap().0.runs.len(), 3);
}

#[test]
fn types_of_schedules_models_data_and_layers_are_narrowed_too() {
    let texts = [
        (
            "[scheduler]\ntype = \"step\"\nstep_size = 2\nwarmup_steps = 1\n[sweep.grid]\nscheduler.type = [\"step\", \"cosine\"]\n",
            "`scheduler.step_size`",
        ),
        (
            "[model]\ntype = \"cnn\"\nchannels = [4]\nhidden = [8]\n[data]\ntype = \"digits\"\n[sweep.grid]\nmodel.type = [\"cnn\", \"mlp\"]\n",
            "`model.channels`",
        ),
        (
            "[data]\ntype = \"blobs\"\nnum_classes = 3\nnoise = 0.5\n[sweep.grid]\ndata.type = [\"blobs\", \"two_moons\"]\n",
            "`data.num_classes`",
        ),
        (
            "[model]\nlayers = [{ type = \"leaky_relu\", name = \"act\", negative_slope = 0.1 }, { type = \"linear\" }]\n[sweep.grid]\nmodel.layers.act.type = [\"leaky_relu\", \"relu\"]\n",
            "`model.layers.0.negative_slope`",
        ),
        (
            "[loss]\ntype = \"cross_entropy\"\nlabel_smoothing = 0.1\n[sweep.grid]\nloss.type = [\"cross_entropy\", \"mse\"]\n",
            "`loss.label_smoothing`",
        ),
    ];
    for (text, key) in texts {
        let mut whole = text.to_owned();
        for table in IRIS.split("\n[").skip(1) {
            let name = table.split(']').next().unwrap();
            if !text.contains(&format!("[{name}]")) {
                whole.push_str(&format!("\n[{table}"));
            }
        }
        let (planned, _) =
            plan("spec.toml", &whole).unwrap_or_else(|wrong| panic!("{whole}\n{wrong}"));
        assert_eq!(planned.runs.len(), 2, "{text}");
        assert!(
            planned.notices.iter().any(|notice| notice.starts_with(key)),
            "{key}: {:?}",
            planned.notices
        );
    }
}

#[test]
fn conditions_do_not_see_what_is_left_out() {
    // It removed all trials of adam because of a momentum that they do not have.
    let text = over_types(
        "[\"sgd\", \"adam\"]",
        "[sweep]\nexclude = [\"optimizer.momentum > 0.8\"]\n",
    );
    let text = text
        .edit("[sweep.grid]\n", "")
        .edit("optimizer.type = [", "grid.optimizer.type = [");
    let (head, rest) = text.split_once("grid.optimizer").unwrap();
    let text = format!(
        "{head}[sweep]\ngrid.optimizer{}",
        rest.edit("[sweep]\n", "")
    );
    let wrong = plan("spec.toml", &text).unwrap_err();
    assert!(
        wrong.contains("the type at this point does not have the key `optimizer.momentum`"),
        "{wrong}"
    );
    assert!(wrong.contains("is_set(optimizer.momentum) and"), "{wrong}");
    let text = text.edit(
        "optimizer.momentum > 0.8",
        "is_set(optimizer.momentum) and optimizer.momentum > 0.8",
    );
    let (planned, warnings) = plan("spec.toml", &text).unwrap();
    assert_eq!(planned.runs.len(), 1);
    assert!(
        warnings.contains("no trial has `optimizer.type` = \"sgd\""),
        "{warnings}"
    );
}

#[test]
fn values_that_no_trial_is_left_with_are_named_with_the_cause() {
    let sweep = |text: &str| plan("spec.toml", &format!("{IRIS}\n{text}")).unwrap().1;
    let excluded = sweep(
        "[sweep]\nexclude = [\"train.epochs > 2\", \"train.epochs == 2 and train.batch_size > 8\"]\n[sweep.grid]\ntrain.epochs = [1, 2, 3]\ntrain.batch_size = [8, 16]\n",
    );
    let cut = sweep(
        "[sweep]\nlimit = 2\n[sweep.grid]\ntrain.epochs = [1, 2, 3]\ntrain.batch_size = [8, 16]\n",
    );
    let merged = sweep(
        "[[sweep.list]]\n\n[[sweep.list]]\noptimizer.learning_rate = 1e-2\n\n[[sweep.list]]\noptimizer.learning_rate = 1e-3\n",
    );
    let when = sweep(
        "[sweep.zip]\noptimizer.type = [\"sgd\", \"adam\"]\noptimizer.momentum = { values = [0.5, 0.9], when = \"optimizer.type == 'sgd'\" }\n",
    );
    let none = sweep(
        "[sweep]\nexclude = [\"train.epochs == 2 and train.batch_size > 8\"]\n[sweep.grid]\ntrain.epochs = [1, 2]\ntrain.batch_size = [8, 16]\n",
    );
    assert_eq!(none, "");
    insta::assert_snapshot!(format!("{excluded}\n{cut}\n{merged}\n{when}"));
}

#[test]
fn plan_and_its_explanation_say_which_trials_are_without_a_key() {
    let folder = folder_with(&over_types("[\"sgd\", \"adam\", \"adamw\"]", ""));
    let (code, _, stderr) = run(folder.path(), &["plan", "spec.toml"]);
    assert_eq!(code, 0);
    assert!(stderr.contains("note: `optimizer.momentum` (spec.toml:11) is not set in trials with `optimizer.type` `adam`, `adamw`: it is a key of `sgd`"), "{stderr}");
    let (code, stdout, _) = run(folder.path(), &["plan", "spec.toml", "--explain"]);
    assert_eq!(code, 0);
    insta::assert_snapshot!(stdout);
}

#[test]
fn a_default_batch_that_does_not_fit_is_lowered_and_a_set_one_is_refused() {
    let small = "[data]\ntype = \"two_moons\"\nnum_items = 40\n";
    let text = IRIS
        .edit("[data]\ntype = \"iris\"\n", small)
        .edit("batch_size = 16\n", "");
    let (planned, warnings) = plan("spec.toml", &text).unwrap();
    assert_eq!(warnings, "");
    let run_plan = &planned.runs[0];
    assert_eq!(
        (
            run_plan.train.batch_size,
            run_plan.train.micro_batch_size,
            run_plan.steps_per_epoch
        ),
        (32, 32, 1)
    );
    assert_eq!(
        planned.notices.last().unwrap(),
        "`train.batch_size` is lowered from its default 64 to 32: the train split of `two_moons` has 32 items"
    );
    // As resolved: the same as an explicit setting.
    let (set, _) = plan(
        "spec.toml",
        &text.edit("epochs = 3", "epochs = 3\nbatch_size = 32"),
    )
    .unwrap();
    assert_eq!(set.runs[0].fingerprint, run_plan.fingerprint);
    assert!(!set.notices.iter().any(|notice| notice.contains("lowered")));
    let wrong = plan(
        "spec.toml",
        &text.edit("epochs = 3", "epochs = 3\nbatch_size = 64"),
    )
    .unwrap_err();
    assert!(
        wrong.contains("`train.batch_size` is 64, but the train split has 32 items"),
        "{wrong}"
    );
    let wrong = plan(
        "spec.toml",
        &text.edit("epochs = 3", "epochs = 3\nmicro_batch_size = 40"),
    )
    .unwrap_err();
    assert!(wrong.contains("train.micro_batch_size"), "{wrong}");
    // Every verb reports it, and runs train with it.
    let folder = folder_with(&text);
    for verb in ["check", "data", "plan", "run"] {
        let (code, _, stderr) = run(folder.path(), &[verb, "spec.toml"]);
        assert_eq!(code, 0, "{verb}: {stderr}");
        assert!(
            stderr.contains("is lowered from its default 64 to 32"),
            "{verb}: {stderr}"
        );
    }
    let plan = std::fs::read_to_string(folder.path().join("results/spec/plan.json")).unwrap();
    assert!(
        plan.contains("is lowered from its default 64 to 32"),
        "{plan}"
    );
}
