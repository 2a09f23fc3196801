//! Sweeps: every form and their product, conditions, what is dropped and why, and sampled values.

use std::collections::BTreeSet;

use burn_runner::plan::Plan;
use proptest::prelude::*;

use super::edit::Edit;
use super::support::{IRIS, folder_with, plan, root, run};

fn planned(sweep: &str) -> (Plan, String) {
    plan_of(sweep).unwrap_or_else(|message| panic!("{message}"))
}

fn plan_of(more: &str) -> Result<(Plan, String), String> {
    plan("spec.toml", &format!("{IRIS}\n{more}"))
}

fn ids(sweep: &str) -> Vec<String> {
    planned(sweep)
        .0
        .runs
        .into_iter()
        .map(|run| run.id)
        .collect()
}

/// Every form at once.
const ALL_FORMS: &str = r#"
[sweep]
exclude = ["optimizer.type == 'adam' and train.batch_size > 16"]
limit = 40

[sweep.grid]
optimizer.type = ["sgd", "adam"]
"train.batch_size, optimizer.learning_rate" = [[16, 1e-2], [32, 2e-2]]
optimizer.momentum = { values = [0.0, 0.9], when = "optimizer.type == 'sgd'" }

[sweep.zip]
model.hidden = [[16], [32]]
train.epochs = [2, 4]

[[sweep.list]]
model.dropout = 0.1

[[sweep.list]]
data.split = { valid = 0.3, seed = 2 }

[sweep.random]
num_trials = 2
seed = 3

[sweep.random.axes]
optimizer.weight_decay = { type = "log_uniform", min = 1e-6, max = 1e-2 }
"#;

#[test]
fn all_forms_are_factors_of_one_product() {
    insta::assert_snapshot!(ids(ALL_FORMS).join("\n"));
}

#[test]
fn it_is_explained_which_rule_dropped_what() {
    let folder = folder_with(&format!("{IRIS}\n{ALL_FORMS}"));
    let (code, table, _) = run(folder.path(), &["plan", "spec.toml", "--explain"]);
    assert_eq!(code, 0);
    insta::assert_snapshot!("explained", table);
    let (_, json, _) = run(folder.path(), &["plan", "spec.toml", "--explain", "--json"]);
    let account: serde_json::Value = serde_json::from_str(&json).unwrap();
    let dropped = |what: &str| -> u64 {
        let rules = account[what].as_array().unwrap().iter();
        rules.map(|rule| rule["num"].as_u64().unwrap()).sum()
    };
    let left = account["num_points"].as_u64().unwrap()
        - dropped("excluded")
        - dropped("merged")
        - dropped("cut");
    assert_eq!(account["num_trials"], left);
}

#[test]
fn a_plan_without_a_sweep_is_explained_too() {
    let folder = folder_with(IRIS);
    let (code, table, _) = run(folder.path(), &["plan", "spec.toml", "--explain"]);
    assert_eq!(code, 0);
    insta::assert_snapshot!("explained_without_a_sweep", table);
}

#[test]
fn keys_that_a_trial_leaves_alone_are_not_its_axes() {
    let (plan, _) = planned(
        "[[sweep.list]]\n\"train.epochs\" = 2\n[[sweep.list]]\nmodel.hidden = [8]\ntrain.epochs = 4\n[[sweep.list]]\n",
    );
    let axes = plan.runs.iter().map(|run| {
        let values = serde_json::Value::from(run.axes.clone()).to_string();
        format!("{} {values} {} epochs", run.id, run.train.epochs)
    });
    insta::assert_snapshot!(axes.collect::<Vec<_>>().join("\n"));
    assert_eq!(plan.axes, ["train.epochs", "model.hidden"]);
}

#[test]
fn an_inline_table_is_a_value_and_dotted_keys_are_not() {
    let base = "optimizer.clip = { norm = 1.0 }\n";
    let text = |trial: &str| {
        let iris = IRIS.edit("[data]", &format!("{base}[data]"));
        let iris = iris.edit("[optimizer]\ntype = \"adam\"\nlearning_rate = 1e-2\n", "");
        let iris = iris.edit(
            base,
            &format!("optimizer.type = \"adam\"\noptimizer.learning_rate = 1e-2\n{base}"),
        );
        format!("{iris}\n[[sweep.list]]\n{trial}\n")
    };
    let clip = |trial: &str| {
        let (plan, _) = plan("spec.toml", &text(trial)).unwrap_or_else(|m| panic!("{m}"));
        plan.runs[0].optimizer.clip.is_some()
    };
    assert!(clip("optimizer.learning_rate = 0.1"));
    assert!(!clip("optimizer = { type = \"sgd\", learning_rate = 0.1 }"));
}

#[test]
fn values_that_are_added_anywhere_leave_the_names_of_others() {
    let before = ids("[sweep.grid]\nstrategy = [\n\
        { type = \"lookahead\" },\n\
        { sync_steps = 10, type = \"lookahead\" },\n\
        { type = \"lookahead\", sync_steps = 10, alpha = 0.25 },\n]\n");
    insta::assert_snapshot!(before.join("\n"));
    let after = ids("[sweep.grid]\nstrategy = [\n\
        { type = \"lookahead\", alpha = 0.25 },\n\
        { type = \"lookahead\", sync_steps = 10 },\n\
        { type = \"lookahead\", alpha = 0.25, sync_steps = 10 },\n\
        { type = \"standard\" },\n\
        { type = \"lookahead\" },\n]\n");
    for id in &before {
        assert!(after.contains(id), "{id} is not in {after:?}");
    }
}

/// An axis may vary a key through an expression, or inside of a table.
#[test]
fn what_depends_on_an_axis_varies_too() {
    let loss = "[objective]\nmetric = \"valid/loss\"\n";
    let smoothing = "[values]\nls = 0.0\n[loss]\ntype = \"cross_entropy\"\nlabel_smoothing = \"${values.ls}\"\n";
    let (plan, said) = planned(&format!(
        "{loss}{smoothing}[sweep.grid]\n\"values.ls\" = [0.0, 0.2]\n"
    ));
    assert_eq!(plan.depending, ["loss.label_smoothing"]);
    let quantity = "`valid/loss` is another quantity for each value of";
    assert!(
        said.contains(&format!("{quantity} `loss.label_smoothing`")),
        "{said}"
    );
    let (plan, said) = planned(
        "[values]\nk = 2\n[sweep.grid]\ntask = [{ metrics = [\"f_beta\"], average = \"macro\" }, { metrics = [\"f_beta\"], average = \"micro\" }]\n\
         [objective]\nmetric = \"valid/f_beta\"\n",
    );
    assert_eq!(plan.depending, ["task.average"]);
    assert!(said.contains("for each value of `task.average`"), "{said}");
    // Others are not affected.
    let (plan, said) =
        planned("[values]\na = 1\n[sweep.grid]\noptimizer.learning_rate = [0.1, 0.2]\n");
    assert!(
        plan.depending.is_empty() && !said.contains("another quantity"),
        "{said}"
    );
    let search = "[search]\ntype = \"tpe\"\nnum_trials = 4\n";
    let refused = |more: &str, axis: &str, what: &str| {
        let spec = format!("{more}{search}[sweep.random.axes]\n{axis}\n");
        let said = plan_of(&spec).unwrap_err();
        assert!(said.contains(what), "{said}");
    };
    let choice = |values: &str| format!("{{ type = \"choice\", values = {values} }}");
    refused(
        &format!("{loss}{smoothing}"),
        &format!("\"values.ls\" = {}", choice("[0.0, 0.2]")),
        quantity,
    );
    let easiest = "a search would choose those that are easiest";
    for axis in ["data.split.fold", "data.split.stratified", "data.split"] {
        let values = match axis {
            "data.split.fold" => "[0, 1]",
            "data.split" => "[{ folds = 3, seed = 1 }, { folds = 3, seed = 2 }]",
            _ => "[true, false]",
        };
        let more = "[data.split]\nfolds = 3\n";
        refused(more, &format!("\"{axis}\" = {}", choice(values)), easiest);
    }
    refused(
        "[values]\nseed = 1\n[data.split]\nseed = \"${values.seed}\"\n",
        &format!("\"values.seed\" = {}", choice("[1, 2]")),
        easiest,
    );
}

#[test]
fn folds_without_an_axis_are_reported() {
    let said = |more: &str| {
        plan_of(&format!("[data.split]\nfolds = 3\n{more}"))
            .unwrap()
            .1
    };
    let warning = said("");
    assert!(
        warning.contains("only the first of 3 folds is held out")
            && warning.contains("`data.split.fold = [0, 1, 2]`"),
        "{warning}"
    );
    for more in ["fold = 0\n", "[sweep.grid]\ndata.split.fold = [0, 1, 2]\n"] {
        assert_eq!(said(more), "");
    }
}

#[test]
fn a_condition_may_test_first_whether_a_key_is_set() {
    let ids = ids(
        "[sweep]\nexclude = [\"is_set(scheduler.type) and scheduler.type == 'cosine'\"]\n[sweep.grid]\noptimizer.learning_rate = [0.1, 0.2]\n",
    );
    assert_eq!(ids.len(), 2);
}

#[test]
fn more_trials_and_more_axes_leave_the_earlier_draws() {
    let sweep = |num: usize, more: &str| {
        format!(
            "[sweep.random]\nnum_trials = {num}\n[sweep.random.axes]\noptimizer.learning_rate = {{ type = \"log_uniform\", min = 1e-4, max = 1e-1 }}\n{more}"
        )
    };
    let few = ids(&sweep(5, ""));
    assert_eq!(ids(&sweep(12, ""))[..5], few);
    let more = ids(&sweep(
        5,
        "model.dropout = { type = \"uniform\", min = 0.0, max = 0.5 }\n",
    ));
    for (more, few) in more.iter().zip(&few) {
        assert!(
            more.starts_with(few.trim_end_matches("-s1")),
            "{more} {few}"
        );
    }
    insta::assert_snapshot!(few.join("\n"));
}

#[test]
fn a_sweep_can_be_set_on_the_command_line() {
    let folder = folder_with(&format!(
        "{IRIS}\n[sweep.grid]\n\"model.dropout\" = [0.0, 0.5]\n\n[sweep.random]\nnum_trials = 3\n\n[sweep.random.axes]\n\"optimizer.learning_rate\" = {{ type = \"log_uniform\", min = 1e-4, max = 1e-1 }}\n"
    ));
    let planned = |sets: &[&str]| {
        let mut arguments = vec!["plan", "spec.toml"];
        arguments.extend(sets.iter().flat_map(|set| ["--set", set]));
        let (code, table, stderr) = run(folder.path(), &arguments);
        assert_eq!(code, 0, "{stderr}");
        table.lines().count() - 1
    };
    assert_eq!(planned(&[]), 6);
    assert_eq!(planned(&["sweep.random.num_trials=5"]), 10);
    assert_eq!(planned(&["sweep.limit=4"]), 4);
    assert_eq!(planned(&["sweep.grid.model.dropout=[0.1]"]), 3);
    assert_eq!(
        planned(&["sweep.random.axes.optimizer.learning_rate.max=1e-2"]),
        6
    );
    assert_eq!(planned(&["sweep.exclude=['model.dropout > 0.1']"]), 3);
    assert_eq!(planned(&["sweep.exclude=[]"]), 6);
    let wrong = [
        "optimizer.learning_rate=0.1",
        "sweep.random.axes.optimizer.learning_rate.max=1e-5",
        "sweep.exclude=['model.droput > 0.1']",
    ];
    let messages = wrong.map(|set| {
        let (code, _, stderr) = run(folder.path(), &["check", "spec.toml", "--set", set]);
        assert_eq!(code, 2);
        format!("$ --set {set}\n{stderr}")
    });
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn conditions_that_decide_nothing_are_warned_of() {
    let (_, warnings) = planned(
        r#"
[sweep]
exclude = ["train.batch_size > 64"]

[sweep.grid]
train.batch_size = { values = [8, 32], when = "optimizer.type == 'adam'" }
optimizer.weight_decay = { values = [0.0, 0.1], when = "optimizer.type == 'adan'" }
"#,
    );
    insta::assert_snapshot!(warnings);
}

#[test]
fn conditions_look_only_at_what_they_must() {
    // Without a momentum there is nothing to compare, and `and` ends early.
    let (plan, _) = planned(
        r#"
[sweep]
exclude = [
    "optimizer.type == 'sgd' and optimizer.momentum > 0.5",
    "is_set(optimizer.momentum) and not (optimizer.momentum > 0 or train.epochs == 3)",
]

[sweep.grid]
optimizer.type = ["sgd", "adam"]
optimizer.momentum = { values = [0.1, 0.9], when = "optimizer.type == 'sgd'" }
"#,
    );
    assert_eq!(plan.runs.len(), 2);
    assert_eq!(plan.runs[1].id, "optimizer=adam-s1");
}

#[test]
fn conditions_see_inside_of_swept_tables_and_lists() {
    let text = format!(
        "{}\n[[model.layers]]\ntype = \"linear\"\nname = \"wide\"\nout_features = 8\n[[model.layers]]\ntype = \"linear\"\n{}",
        IRIS.edit("type = \"mlp\"\nhidden = [16]\n", ""),
        "[sweep]\nexclude = [\"model.layers.wide.out_features > 16 and optimizer.learning_rate < 0.1\"]\n[sweep.grid]\nmodel.layers.0.out_features = [8, 32]\noptimizer = [{ type = \"sgd\", learning_rate = 0.1 }, { type = \"adam\", learning_rate = 0.01 }]\n"
    );
    let (plan, _) = plan("spec.toml", &text).unwrap_or_else(|m| panic!("{m}"));
    let ids: Vec<_> = plan.runs.iter().map(|run| run.id.as_str()).collect();
    insta::assert_snapshot!(ids.join("\n"));
}

#[test]
fn more_runs_than_reasonable_are_refused() {
    let text = |limit: &str| {
        format!(
            "[experiment]\nseeds = [1, 2]\n{IRIS}\n[sweep]\n{limit}\n[sweep.random]\nnum_trials = 60000\n[sweep.random.axes]\noptimizer.learning_rate = {{ type = \"uniform\", min = 1e-4, max = 1e-1 }}\n[sweep.grid]\nmodel.dropout = [0.0, 0.1]\n"
        )
    };
    assert!(plan("spec.toml", &text("limit = 10")).is_ok());
    insta::assert_snapshot!(plan("spec.toml", &text("")).unwrap_err());
}

#[test]
fn more_dimensions_than_sobol_has_are_refused() {
    let axes: String = (0..257)
        .map(|at| format!("optimizer.k{at} = {{ type = \"uniform\", min = 0, max = 1 }}\n"))
        .collect();
    let text = format!("{IRIS}\n[sweep.random]\nnum_trials = 2\n[sweep.random.axes]\n{axes}");
    insta::assert_snapshot!(plan("spec.toml", &text).unwrap_err());
}

#[test]
fn refusals_of_very_many_trials_end() {
    let text = format!(
        "{}\n[sweep.grid]\nmodel.kernel_size = {:?}\n",
        IRIS.edit("epochs = 3", "epochs = 0"),
        (1..=2).collect::<Vec<_>>()
    );
    let few = plan("spec.toml", &text).unwrap_err();
    assert!(!few.contains("were not checked"), "{few}");
    let sizes: Vec<_> = (200..1200).collect();
    let text = format!("{IRIS}\n[sweep.grid]\ntrain.batch_size = {sizes:?}\n");
    let many = plan("spec.toml", &text).unwrap_err();
    assert!(many.contains("were not checked"), "{many}");
    assert!(many.ends_with("100 errors\n"), "{many}");
}

#[test]
fn reports_leave_out_what_a_trial_does_not_set() {
    let sweep = r#"
[sweep.grid]
optimizer.type = ["sgd", "adam"]

[sweep.random]
num_trials = 1

[sweep.random.axes]
optimizer.momentum = { type = "uniform", min = 0.5, max = 0.9, when = "optimizer.type == 'sgd'" }
"#;
    let folder = super::support::completed(&format!("{IRIS}\n{sweep}"), &[]);
    let csv = folder.path().join("results/spec/report.csv");
    let csv = std::fs::read_to_string(csv).unwrap();
    let head = csv.lines().next().unwrap();
    assert!(
        head.starts_with("rank,trial,optimizer.type,optimizer.momentum,"),
        "{csv}"
    );
    let adam = csv.lines().find(|line| line.contains(",adam,")).unwrap();
    assert!(adam.contains(",optimizer=adam,adam,,1,1,"), "{csv}");
}

/// Conditions, with what they mean over batch size, epochs and optimizer.
type Meaning = fn(i64, i64, &str) -> bool;
const CONDITIONS: [(&str, Meaning); 4] = [
    ("optimizer.type == 'sgd'", |_, _, kind| kind == "sgd"),
    ("train.batch_size > 8", |batch, _, _| batch > 8),
    (
        "train.batch_size * train.epochs >= 32 or not optimizer.type == 'adam'",
        |batch, epochs, kind| batch * epochs >= 32 || kind != "adam",
    ),
    (
        "(optimizer.type == 'adamw' or train.epochs < 2) and train.batch_size % 8 != 0",
        |batch, epochs, kind| (kind == "adamw" || epochs < 2) && batch % 8 != 0,
    ),
];

fn sweep_text() -> impl Strategy<Value = (String, Vec<usize>)> {
    let kinds = prop::sample::subsequence(vec!["sgd", "adam", "adamw"], 1..=3);
    let batches = prop::sample::subsequence(vec![4, 8, 12, 16, 32], 1..=4);
    let conditions = prop::sample::subsequence(vec![0, 1, 2, 3], 0..=2);
    let random = (1..6usize, any::<u32>(), any::<bool>(), 0..4usize);
    (kinds, batches, 0..4u8, conditions, random, prop::option::of(1..9usize)).prop_map(
        |(kinds, batches, form, excludes, (num, seed, sobol, when), limit)| {
            let mut text = "[sweep]\n".to_owned();
            let quoted = excludes.iter().map(|at| format!("{:?}", CONDITIONS[*at].0));
            if !excludes.is_empty() {
                let quoted: Vec<_> = quoted.collect();
                text.push_str(&format!("exclude = [{}]\n", quoted.join(", ")));
            }
            if let Some(limit) = limit {
                text.push_str(&format!("limit = {limit}\n"));
            }
            let epochs: Vec<_> = (1..=batches.len()).collect();
            let mut random = String::new();
            match form {
                0 => text.push_str(&format!("[sweep.grid]\ntrain.batch_size = {batches:?}\n")),
                1 => text.push_str(&format!(
                    "[sweep.zip]\ntrain.batch_size = {batches:?}\ntrain.epochs = {epochs:?}\n"
                )),
                2 => batches.iter().for_each(|batch| {
                    text.push_str(&format!("[[sweep.list]]\ntrain.batch_size = {batch}\n"));
                }),
                _ => random.push_str(
                    "train.batch_size = { type = \"integer\", min = 4, max = 32, step = 4 }\n",
                ),
            }
            if form > 0 {
                text.push_str("[sweep.grid]\n");
            }
            text.push_str(&format!("optimizer.type = {kinds:?}\n"));
            let sampler = if sobol { "sobol" } else { "uniform" };
            text.push_str(&format!(
                "[sweep.random]\nnum_trials = {num}\nseed = {seed}\nsampler = \"{sampler}\"\n[sweep.random.axes]\n{random}model.dropout = {{ type = \"uniform\", min = 0.0, max = 0.9, when = {:?} }}\n",
                CONDITIONS[when].0
            ));
            (text, [vec![when], excludes].concat())
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_trial_satisfies_its_conditions((sweep, rules) in sweep_text()) {
        let text = format!("{IRIS}\n{sweep}");
        let (first, _) = match plan("spec.toml", &text) {
            Ok(planned) => planned,
            Err(message) => {
                let is_empty = message.contains("leaves no trial") || message.contains("every point");
                prop_assert!(is_empty, "{sweep}\n{message}");
                return Ok(());
            }
        };
        prop_assert_eq!(&plan("spec.toml", &text).unwrap().0, &first);
        let ids: BTreeSet<_> = first.runs.iter().map(|run| &run.id).collect();
        prop_assert_eq!(ids.len(), first.runs.len());
        let fingerprints: BTreeSet<_> = first.runs.iter().map(|run| &run.fingerprint).collect();
        prop_assert_eq!(fingerprints.len(), first.runs.len());
        for run in &first.runs {
            let kind = run.axes["optimizer.type"].as_str().unwrap();
            let holds = |rule: usize| {
                CONDITIONS[rule].1(run.train.batch_size as i64, run.train.epochs as i64, kind)
            };
            prop_assert_eq!(run.axes.contains_key("model.dropout"), holds(rules[0]), "{}", run.id);
            prop_assert!(!rules[1..].iter().any(|rule| holds(*rule)), "{}", run.id);
        }
    }
}

#[test]
fn the_schema_takes_every_form() {
    let schema = burn_runner::spec::schema::experiment_schema();
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let search = std::fs::read_to_string(root().join("experiments/random_search.toml")).unwrap();
    for text in [format!("{IRIS}\n{ALL_FORMS}"), search] {
        let experiment: serde_json::Value = toml::from_str(&text).unwrap();
        assert!(super::schema::accepts(&schema, &experiment));
    }
}

#[test]
fn the_shipped_search_says_what_it_leaves_out() {
    // Columns are as wide as the path.
    let arguments = ["plan", "experiments/random_search.toml", "--explain"];
    let (code, table, _) = run(root(), &arguments);
    assert_eq!(code, 0);
    insta::assert_snapshot!(table);
}
