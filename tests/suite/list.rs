//! Lists over synthetic runs: what is found, sorted, grouped, shown and refused.

use burn_runner::diagnostic::Wrong;
use burn_runner::event::FailureClass;
use burn_runner::record::{Index, State};
use burn_runner::report::list::{Form, Query, list};
use serde_json::{Value as Json, json};

use super::compare::{SWEEP, clear, index};
use super::support::{IRIS, completed, run};

/// The current time of the synthetic runs.
const NOW_MS: u64 = 1_790_000_000_000;
const HOUR_MS: u64 = 3_600_000;

/// The synthetic sweep with runs with other outcomes; the age of each is its seed in hours.
fn made_up() -> Index {
    let mut index = index(SWEEP, clear);
    index.settings.insert("train.epochs".into(), json!(3));
    for run in &mut index.runs {
        run.last_event_ms = Some(NOW_MS - run.seed * HOUR_MS);
    }
    let failed = &mut index.runs[1];
    failed.state = State::Failed;
    failed.failure = Some(FailureClass::OutOfMemory);
    failed.message = "out_of_memory: it held more than there is".into();
    failed.metrics.clear();
    let waiting = &mut index.runs[10];
    waiting.state = State::NotStarted;
    waiting.metrics.clear();
    waiting.last_event_ms = None;
    index.runs[20].is_adjusted = true;
    index
}

fn query() -> Query {
    Query {
        limit: Some(6),
        ..Query::default()
    }
}

const TABLE: Form = Form::Table { width: None };

fn text(query: &Query, form: Form) -> String {
    match list(&[made_up()], query, form, NOW_MS) {
        Ok(listed) => format!("{}\n{}", listed.text.trim_end(), listed.notes.join("\n")),
        Err(Wrong { message, help }) => format!("{message}\n  help: {help}"),
    }
}

/// The ids of the runs that a filter keeps.
fn kept(filter: &str) -> Vec<String> {
    let query = Query {
        filter: Some(filter.into()),
        columns: vec!["run".into()],
        ..Query::default()
    };
    let listed = list(&[made_up()], &query, Form::Json, NOW_MS).expect(filter);
    let run = |line: &str| {
        serde_json::from_str::<Json>(line).unwrap()["run"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    listed.text.lines().map(run).collect()
}

#[test]
fn runs_are_listed_in_the_order_of_the_plan() {
    insta::assert_snapshot!("list_plain", text(&query(), TABLE));
}

#[test]
fn filters_name_metrics_settings_and_what_runs_are() {
    let all = made_up().runs;
    let expect = |filter: &str, wanted: &dyn Fn(&burn_runner::record::RunEntry) -> bool| {
        let wanted: Vec<_> = all
            .iter()
            .filter(|run| wanted(run))
            .map(|run| run.id.clone())
            .collect();
        assert!(!wanted.is_empty() && wanted.len() < all.len(), "{filter}");
        assert_eq!(kept(filter), wanted, "{filter}");
    };
    let accuracy = |run: &burn_runner::record::RunEntry| run.metrics.get("valid/accuracy").copied();
    expect("valid/accuracy > 0.85", &|run| accuracy(run) > Some(0.85));
    expect(
        "valid/accuracy > 0.9 and optimizer.type == \"adam\"",
        &|run| accuracy(run) > Some(0.9) && run.axes["optimizer.type"] == "adam",
    );
    expect(
        "optimizer.type in ['sgd', 'lion'] and train.batch_size == 16",
        &|run| run.axes["optimizer.type"] == "sgd",
    );
    expect(
        "outcome == 'failed' or outcome == \"not started\"",
        &|run| run.state != State::Completed,
    );
    expect("failure == 'out_of_memory'", &|run| run.failure.is_some());
    expect("age < 2.5h", &|run| {
        run.last_event_ms.is_some() && run.seed < 3
    });
    expect("age >= 1d or adjusted", &|run| run.is_adjusted);
    expect("seed % 2 == 0 and not adjusted", &|run| {
        run.seed % 2 == 0 && !run.is_adjusted
    });
    expect("wall_secs / epochs < 1 and is_set(valid/loss)", &|run| {
        accuracy(run).is_some()
    });
    expect("1 - valid/loss > 0.9", &|run| accuracy(run) > Some(0.9));
    // A missing value is neither larger nor smaller.
    let both = kept("valid/loss > 0.1").len() + kept("valid/loss <= 0.1").len();
    assert_eq!(both, all.len() - 2);
    assert_eq!(
        kept("not valid/loss > 0.1").len(),
        all.len() - kept("valid/loss > 0.1").len()
    );
}

#[test]
fn wrong_expressions_are_refused_with_the_nearest_name() {
    let wrong = [
        "valid/acuracy > 0.9",
        "optimiser.type == 'adam'",
        "learning_rat > 1",
        "hidden == [8]",
        "optimizer.type == adam",
        "outcome == failed",
        "acuracy > 0.9",
        "wall_secs/epochs < 1",
        "valid/accuracy >",
        "valid/accuracy = 0.9",
        "valid/accuracy",
        "optimizer.type > 3",
        "(outcome == 'failed'",
        "outcome == 'failed",
        "age < 2 days",
        "age < 2y",
        "outcome == 'failed' and",
        "upper(outcome) == 'FAILED'",
        "",
    ];
    let said = wrong.map(|filter| {
        let query = Query {
            filter: Some(filter.into()),
            ..query()
        };
        format!("--filter {filter}\n{}", text(&query, TABLE))
    });
    let columns = Query {
        columns: vec!["run".into(), "outcom".into()],
        ..query()
    };
    let sorted = Query {
        sort: Some("-accuracy".into()),
        ..query()
    };
    let grouped = Query {
        group: Some("type".into()),
        ..query()
    };
    let others = [columns, sorted, grouped].map(|query| text(&query, TABLE));
    insta::assert_snapshot!(
        "list_refused",
        [said.join("\n\n"), others.join("\n\n")].join("\n\n")
    );
}

#[test]
fn runs_are_sorted_and_those_without_a_value_come_last() {
    let sorted = |key: &str, reverse: bool| {
        let query = Query {
            sort: Some(key.into()),
            is_reversed: reverse,
            ..query()
        };
        let listed = list(
            &[made_up()],
            &Query {
                limit: None,
                columns: vec!["run".into(), key.trim_start_matches('-').into()],
                ..query
            },
            Form::Json,
            NOW_MS,
        );
        let listed = listed.unwrap().text;
        let value = |line: &str| serde_json::from_str::<Json>(line).unwrap();
        listed.lines().map(value).collect::<Vec<_>>()
    };
    for (key, reverse, ascending) in [
        ("valid/loss", false, true),
        ("-valid/loss", false, false),
        ("valid/loss", true, false),
        ("-valid/loss", true, true),
        // The best first, and accuracy is better when it is higher.
        ("objective", false, false),
        ("-objective", false, true),
    ] {
        let name = key.trim_start_matches('-');
        let values: Vec<Option<f64>> = sorted(key, reverse)
            .iter()
            .map(|line| line[name].as_f64())
            .collect();
        let (there, missing) = values.split_at(30);
        assert!(missing.iter().all(Option::is_none), "{key}: {values:?}");
        let pairs = there.windows(2).all(|pair| {
            if ascending {
                pair[0] <= pair[1]
            } else {
                pair[0] >= pair[1]
            }
        });
        assert!(pairs, "{key} {reverse}: {values:?}");
    }
    let texts: Vec<_> = sorted("run", false)
        .iter()
        .map(|line| line["run"].to_string())
        .collect();
    assert!(texts[0].contains("hidden=8-s1"), "{texts:?}");
}

#[test]
fn columns_groups_and_programs_get_what_they_ask_for() {
    let columns = |names: &[&str]| Query {
        columns: names.iter().map(|name| (*name).to_owned()).collect(),
        ..query()
    };
    let mut shown = vec![
        text(
            &columns(&[
                "run",
                "optimizer.type",
                "valid/loss",
                "failure",
                "age",
                "adjusted",
            ]),
            TABLE,
        ),
        text(
            &columns(&["run", "optimizer.type", "valid/loss", "failure", "age"]),
            Form::Csv,
        ),
        text(&columns(&["run", "objective", "age"]), Form::Json),
        text(&columns(&["run", "test/accuracy"]), TABLE),
        text(
            &columns(&["run", "outcome", "objective"]),
            Form::Table { width: Some(50) },
        ),
    ];
    for form in [TABLE, Form::Json, Form::Csv] {
        let query = Query {
            group: Some("optimizer.type".into()),
            ..query()
        };
        shown.push(text(&query, form));
    }
    let by_failure = Query {
        group: Some("failure".into()),
        ..query()
    };
    shown.push(text(&by_failure, TABLE));
    for (sort, is_reversed) in [
        ("objective", false),
        ("mean", false),
        ("model.hidden", true),
        ("meen", false),
    ] {
        let query = Query {
            group: Some("model.hidden".into()),
            sort: Some(sort.into()),
            is_reversed,
            ..query()
        };
        shown.push(text(&query, TABLE));
    }
    insta::assert_snapshot!("list_forms", shown.join("\n\n"));
}

#[test]
fn a_line_of_json_has_everything_of_a_run() {
    let one = Query {
        limit: Some(1),
        ..Query::default()
    };
    let listed = list(&[made_up()], &one, Form::Json, NOW_MS).unwrap();
    let line: Json = serde_json::from_str(&listed.text).unwrap();
    insta::assert_snapshot!("list_json", serde_json::to_string_pretty(&line).unwrap());
    // A single trial is not selected among others.
    assert!(listed.notes.is_empty());
    let all = list(&[made_up()], &Query::default(), Form::Json, NOW_MS).unwrap();
    assert!(!all.notes.is_empty());
    let csv = list(&[made_up()], &Query::default(), Form::Csv, NOW_MS).unwrap();
    insta::assert_snapshot!(csv.text.lines().next().unwrap(), @"experiment,run,trial,seed,outcome,objective,best_epoch,epochs,num_epochs,parameters,wall_secs,epoch_secs,memory_bytes,adjusted,failure,message,age,last_event_ms,fingerprint,weights_digest,model.hidden,optimizer.type,test/accuracy,valid/accuracy,valid/loss");
    assert_eq!(csv.text.lines().count(), 1 + 32);
}

#[test]
fn experiments_with_other_objectives_stay_apart_in_groups() {
    let other = index(
        &format!("[objective]\nmetric = \"valid/loss\"\n{SWEEP}"),
        clear,
    );
    let query = Query {
        group: Some("optimizer.type".into()),
        ..Query::default()
    };
    let listed = list(&[made_up(), other], &query, TABLE, NOW_MS).unwrap();
    insta::assert_snapshot!("list_objectives", listed.text);
}

#[test]
fn the_command_line_lists_one_experiment_or_all() {
    let folder = completed(
        &format!(
            "[experiment]\nseeds = [1, 2]\n{IRIS}\n[sweep.grid]\noptimizer.type = [\"adam\", \"adamw\"]\n"
        ),
        &[],
    );
    let list = |arguments: &[&str]| run(folder.path(), &[&["list"], arguments].concat());
    for path in ["results", "results/spec"] {
        let (code, stdout, stderr) = list(&[
            path,
            "--filter",
            "optimizer.type == \"adamw\" and valid/accuracy > 0",
            "--columns",
            "run,outcome,age",
        ]);
        assert_eq!(code, 0, "{stderr}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(stdout, @r"
             run                 outcome    age
             optimizer=adamw-s1  completed  just now
             optimizer=adamw-s2  completed  just now
            ");
        }
    }
    let (code, _, stderr) = list(&["--filter", "optimizer.typ == 'adam'"]);
    assert_eq!(code, 2);
    insta::assert_snapshot!(stderr, @r"
    error: no run has a key or metric named `optimizer.typ`
      = help: did you mean `optimizer.type`?
    ");
    let (code, stdout, stderr) = list(&[
        "--sort",
        "-run",
        "--limit",
        "1",
        "--csv",
        "--columns",
        "run,seed,test/accuracy",
    ]);
    assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
    let (code, stdout, _) = list(&[
        "--sort",
        "-run",
        "--limit",
        "1",
        "--csv",
        "--columns",
        "run,seed",
    ]);
    assert_eq!(
        (code, stdout.as_str()),
        (0, "run,seed\noptimizer=adamw-s2,2\n")
    );
}

#[test]
fn an_experiment_that_lost_its_plan_is_named() {
    let folder = completed(IRIS, &[]);
    std::fs::remove_file(folder.path().join("results/spec/plan.json")).unwrap();
    for at in ["results", "results/spec"] {
        let (code, stdout, stderr) = run(folder.path(), &["list", at]);
        assert_eq!((code, stdout.as_str()), (1, ""), "{stderr}");
        assert!(
            stderr.contains("spec: it has runs and no plan.json"),
            "{stderr}"
        );
        assert!(stderr.contains("runner run"), "{stderr}");
    }
}
