//! Reports and comparisons over synthetic values, so that every number in them is known.

use std::collections::BTreeSet;
use std::fs;

use burn_runner::diagnostic::Wrong;
use burn_runner::record::{Index, RunEntry, State};
use burn_runner::report::compare::{Comparison, Question, Source, compare, csv, markdown, plain};
use burn_runner::report::{Brief, Report, Trial, aggregate, of_all_metrics};
use burn_runner::statistics::{Finding, Reading, Test};
use serde_json::json;

use super::edit::Edit;
use super::support::{IRIS, folder_with, plan, run};

/// Two optimizers with two widths, each with seeds 1 to 8.
pub const SWEEP: &str = "\n[experiment]\nname = \"made_up\"\nquestion = \"Which optimizer?\"\nseeds = [1, 2, 3, 4, 5, 6, 7, 8]\n[sweep.grid]\noptimizer.type = [\"adam\", \"sgd\"]\nmodel.hidden = [[8], [16]]\n";

/// A report as `runner report` makes it in the usual folder.
pub fn summed_up(index: &Index, leftovers: Vec<String>) -> Report {
    aggregate(index, &index.plan.command(), leftovers)
}

/// An experiment of which every run is completed with a value of the objective, by trial and seed.
pub fn index(text: &str, value: impl Fn(&str, u64) -> f64) -> Index {
    let (mut plan, _) = plan("spec.toml", &format!("{text}{IRIS}")).expect("a right file");
    let runs = std::mem::take(&mut plan.runs);
    let entry = |run: &burn_runner::plan::RunPlan| -> RunEntry {
        let value = value(&run.trial, run.seed);
        let entry = json!({
            "id": run.id, "trial": run.trial, "seed": run.seed, "axes": run.axes,
            "settings": run.axes, "device": run.device.to_string(), "precision": "f32", "fingerprint": run.fingerprint,
            "num_parameters": run.network.num_parameters, "num_epochs": run.train.epochs, "state": "completed", "epochs": run.train.epochs,
            "metrics": {"valid/accuracy": value, "valid/loss": 1.0 - value, "test/accuracy": value - 0.01},
            "wall_secs": 2.0, "epoch_secs": 0.5, "data": 0,
        });
        serde_json::from_value(entry).expect("an entry")
    };
    Index {
        runs: runs.iter().map(entry).collect(),
        plan,
        settings: serde_json::from_value(json!({"train.batch_size": 16})).unwrap(),
        data: serde_json::from_value(
            json!([{"what": "`iris`", "digests": {"train": "a", "valid": "b"}}]),
        )
        .unwrap(),
        environments: Vec::new(),
        mended: Vec::new(),
        looks: Vec::new(),
    }
}

/// Adam is 0.1 better for every seed, and the width only adds noise.
pub fn clear(trial: &str, seed: u64) -> f64 {
    let noise = [0.003, -0.002, 0.004, 0.001, -0.003, 0.002, -0.001, 0.0][seed as usize % 8];
    let of_width = if trial.contains("hidden=16") {
        2.0 * noise
    } else {
        -noise
    };
    let of_optimizer = if trial.contains("adam") { 0.9 } else { 0.8 };
    of_optimizer + of_width + 0.001 * seed as f64
}

/// The list of experiments and the report name the same best trial, whatever is completed and equal; and both say how many
/// of its seeds that is over.
#[test]
fn the_index_and_the_report_name_the_same_winner() {
    for seed in 0..60_u64 {
        // Few values, so that many are equal.
        let part = |trial: &str, salt: u64| {
            let text: u64 = trial.bytes().map(u64::from).sum();
            (text + 31 * salt + 7 * seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61
        };
        let text = if seed % 2 == 0 {
            SWEEP.to_owned()
        } else {
            format!("[objective]\nmetric = \"valid/loss\"\n{SWEEP}")
        };
        let mut index = index(&text, |trial, run| 0.5 + part(trial, run) as f64 / 32.0);
        for entry in &mut index.runs {
            if part(&entry.trial, 100 + entry.seed) > seed % 8 {
                entry.state = State::Incomplete;
            }
        }
        let report = summed_up(&index, Vec::new());
        let brief = Brief::of(&index, false);
        let Some(best) = report.selected() else {
            assert_eq!(brief.best, None, "{seed}");
            continue;
        };
        let shown = brief.best.expect("there is one");
        assert!(
            shown.ends_with(&format!(": {}", best.id)),
            "{seed}: {shown}, {}",
            best.id
        );
        let n = if best.n == 8 {
            "8".to_owned()
        } else {
            format!("{} of 8", best.n)
        };
        assert!(shown.contains(&format!("(n = {n})")), "{seed}: {shown}");
        let said = burn_runner::report::markdown(&report);
        assert!(said.contains(&format!("(n = {n}")), "{seed}: {said}");
    }
}

fn ask() -> Question {
    Question {
        value: None,
        baseline: None,
        alpha: 0.05,
        pivot: None,
        pareto: None,
    }
}

fn sources(reports: Vec<(&str, Report)>) -> Vec<Source> {
    let source = |(name, report): (&str, Report)| Source {
        name: name.into(),
        report,
        folder: None,
    };
    reports.into_iter().map(source).collect()
}

fn compared(question: &Question) -> Comparison {
    let report = of_all_metrics(&index(SWEEP, clear));
    compare(&sources(vec![("made_up", report)]), question).expect("a comparison")
}

#[test]
fn a_report_says_what_may_be_claimed() {
    let report = summed_up(&index(SWEEP, clear), Vec::new());
    insta::assert_snapshot!("made_up_report", burn_runner::report::markdown(&report));
    // Test is only reported for the selected trial.
    assert!(
        report
            .trials
            .iter()
            .all(|trial| !trial.metrics.contains_key("test/accuracy"))
    );
    assert_eq!(report.test["test/accuracy"].description.n, 8);
}

#[test]
fn a_baseline_of_the_file_is_what_others_are_compared_with() {
    let text = format!("[objective]\nbaseline = \"optimizer=sgd,hidden=8\"\n{SWEEP}");
    let report = summed_up(&index(&text, clear), Vec::new());
    let baseline = report.baseline.expect("a baseline");
    assert_eq!(
        (baseline.trial.as_str(), baseline.is_picked),
        ("optimizer=sgd,hidden=8", false)
    );
    let best = &report.trials[0];
    // Eight differences of one sign: p = 2 / 2^8, three times that for three comparisons.
    let verdict = best.verdict.as_ref().expect("a verdict");
    assert_eq!(verdict.comparison.unwrap().test.p, 2.0 / 256.0);
    assert_eq!(verdict.p_corrected, Some(3.0 * 2.0 / 256.0));
}

#[test]
fn comparisons_answer_in_every_form() {
    let question = Question {
        baseline: Some("optimizer=sgd,hidden=8".into()),
        pivot: Some(("optimizer.type".into(), "model.hidden".into())),
        pareto: Some(("valid/accuracy".into(), "epoch_secs".into())),
        ..ask()
    };
    let comparison = compared(&question);
    insta::assert_snapshot!("compare_plain", plain(&comparison, 200));
    insta::assert_snapshot!(
        "compare_narrow",
        plain(&comparison, 60)
            .lines()
            .take(5)
            .collect::<Vec<_>>()
            .join("\n")
    );
    insta::assert_snapshot!("compare_md", markdown(&comparison));
    insta::assert_snapshot!("compare_csv", csv(&comparison));
    let json = serde_json::to_value(&comparison).unwrap();
    assert_eq!(
        serde_json::from_value::<Comparison>(json).unwrap(),
        comparison
    );
}

#[test]
fn what_does_not_compare_is_said() {
    let longer = of_all_metrics(&index(SWEEP, clear));
    let mut other = of_all_metrics(&index(SWEEP, |trial, seed| clear(trial, seed) + 0.02));
    other.provenance.data[0]
        .digests
        .insert("valid".into(), "other".into());
    other.trials[0].num_epochs = 99;
    other.trials[1].num_adjusted = 2;
    other.trials[2].metrics.clear();
    other.trials[2].n = 0;
    let two = sources(vec![("one", longer), ("two", other)]);
    let question = Question {
        baseline: Some("one/optimizer=sgd,hidden=8".into()),
        value: Some("test/accuracy".into()),
        ..ask()
    };
    let comparison = compare(&two, &question).expect("a comparison");
    insta::assert_snapshot!(comparison.notes.join("\n"), @r#"
    excluded, since no completed run has `test/accuracy`: `two/optimizer=sgd,hidden=16`
    with runs that were adjusted, after a failure or to fit into memory: `two/optimizer=adam,hidden=8`
    planned for a different number of epochs than the baseline's 3: `two/optimizer=adam,hidden=16`
    ± is over initial weights and batch order; all runs share one split with valid items, so it says nothing about other splits
    test was evaluated for all 7 trials: the value of a trial selected by it is biased
    "#);
    let question = Question {
        value: None,
        ..question
    };
    let comparison = compare(&two, &question).expect("a comparison");
    insta::assert_snapshot!(comparison.notes.join("\n"), @r#"
    excluded, since no completed run has `valid/accuracy`: `two/optimizer=sgd,hidden=16`
    with runs that were adjusted, after a failure or to fit into memory: `two/optimizer=adam,hidden=8`
    measured on other `valid` items than the baseline, so there are no verdicts: `two/optimizer=adam,hidden=16`, `two/optimizer=adam,hidden=8`, `two/optimizer=sgd,hidden=8`
    planned for a different number of epochs than the baseline's 3: `two/optimizer=adam,hidden=16`
    ± is over initial weights and batch order; all runs share one split with valid items, so it says nothing about other splits
    effects of axes, tables and Pareto fronts are over the trials that were measured on the baseline's items; `--baseline` chooses another one
    "#);
    // Losses of other items may be other functions: those that share items are still ranked and judged.
    let question = Question {
        value: Some("valid/loss".into()),
        ..question
    };
    let comparison = compare(&two, &question).expect("a comparison");
    let ranks = comparison.trials.iter().map(|trial| {
        let verdict = trial.verdict.is_some();
        format!("{:?} {} {verdict}", trial.rank, trial.id)
    });
    insta::assert_snapshot!(ranks.collect::<Vec<_>>().join("\n"), @r"
    None two/optimizer=adam,hidden=16 false
    None two/optimizer=adam,hidden=8 false
    Some(1) one/optimizer=adam,hidden=16 true
    Some(2) one/optimizer=adam,hidden=8 true
    None two/optimizer=sgd,hidden=8 false
    Some(3) one/optimizer=sgd,hidden=16 true
    Some(4) one/optimizer=sgd,hidden=8 false
    None two/optimizer=sgd,hidden=16 false
    ");
    assert!(
        comparison
            .notes
            .last()
            .unwrap()
            .starts_with("ranks, effects of axes, tables")
    );
}

#[test]
fn one_seed_is_no_ground_for_a_claim() {
    let report = of_all_metrics(&index(
        &SWEEP.edit("[1, 2, 3, 4, 5, 6, 7, 8]", "[1]"),
        clear,
    ));
    let comparison = compare(&sources(vec![("made_up", report)]), &ask()).expect("a comparison");
    insta::assert_snapshot!(plain(&comparison, 200).lines().take(5).collect::<Vec<_>>().join("\n"), @r#"
    #  trial                     n  valid/accuracy  95 % interval  difference  verdict   s/epoch  speed    memory  times
    1  optimizer=adam,hidden=8   1  0.9030          -              -           baseline  0.5000   -        -       -
    2  optimizer=adam,hidden=16  1  0.8970          -              -0.006000   few +1    0.5000   1.000 x  -       -
    3  optimizer=sgd,hidden=8    1  0.8030          -              -0.1000     few +1    0.5000   1.000 x  -       -
    4  optimizer=sgd,hidden=16   1  0.7970          -              -0.1060     few +1    0.5000   1.000 x  -       -
    "#);
}

#[test]
fn equal_trials_have_one_rank() {
    // All runs of one optimizer are bitwise equal.
    let equal =
        |trial: &str, seed: u64| 0.5 + 0.1 * f64::from(trial.contains("adam")) + 0.01 * seed as f64;
    let report = summed_up(&index(SWEEP, equal), Vec::new());
    let ranks: Vec<_> = report.trials.iter().map(|trial| trial.rank).collect();
    assert_eq!(ranks, [1, 1, 3, 3].map(Some));
    let text = burn_runner::report::markdown(&report);
    assert!(
        text.contains("| 1 tied | adam") && text.contains("| 3 tied | sgd"),
        "{text}"
    );
    assert!(
        text.contains(", tied with `optimizer=adam,hidden=16`, which comes later in the file; "),
        "{text}"
    );
    let all = of_all_metrics(&index(SWEEP, equal));
    let compared = compare(&sources(vec![("a", all)]), &ask()).unwrap();
    let ranks: Vec<_> = compared.trials.iter().map(|trial| trial.rank).collect();
    assert_eq!(ranks, [1, 1, 3, 3].map(Some));
    assert!(plain(&compared, 200).contains(" 3 tied  optimizer=sgd,hidden=8 "));
}

#[test]
fn losses_of_different_functions_are_not_ranked() {
    let text = format!(
        "[objective]\nmetric = \"valid/loss\"\n{}",
        SWEEP.edit(
            "model.hidden = [[8], [16]]",
            "loss.type = [\"cross_entropy\", \"mse\"]"
        )
    );
    let index = index(&text, clear);
    let report = summed_up(&index, Vec::new());
    assert!(
        report
            .trials
            .iter()
            .all(|trial| trial.rank.is_none() && trial.verdict.is_none())
    );
    assert!(report.test.is_empty());
    let text = burn_runner::report::markdown(&report);
    assert!(
        text.contains("No trial is ranked: `valid/loss` is another quantity in different trials")
            && text.contains("| valid/loss † ")
            && text.contains("\n† Another quantity in different trials"),
        "{text}"
    );
    let page = burn_runner::report::html(&report, None).unwrap();
    assert!(!page.contains("<tr class=\"first\">") && !page.contains("class=\"plot parallel\""));
    let source = sources(vec![("a", of_all_metrics(&index))]);
    let comparison = compare(&source, &ask()).unwrap();
    let text = plain(&comparison, 200);
    assert!(
        text.contains(" -  optimizer=") && text.contains("there are no ranks and no verdicts"),
        "{text}"
    );
    // The shared metrics are compared.
    let question = Question {
        value: Some("valid/accuracy".into()),
        ..ask()
    };
    let comparison = compare(&source, &question).unwrap();
    assert_eq!(comparison.trials[0].rank, Some(1));
    assert!(comparison.is_common && comparison.trials[3].verdict.is_some());
}

/// Units and settings of metrics are no results.
#[test]
fn metrics_in_other_units_are_not_ranked() {
    let text = format!(
        "[objective]\nmetric = \"valid/f_beta\"\n[task]\nmetrics = [\"f_beta\"]\n{}",
        SWEEP.edit(
            "model.hidden = [[8], [16]]",
            "task.average = [\"macro\", \"micro\"]"
        )
    );
    let report = summed_up(&index(&text, clear), Vec::new());
    let has_rank = |trial: &Trial| trial.rank.is_some() || trial.verdict.is_some();
    assert!(!report.trials.iter().any(has_rank));
}

/// The same of the settings of two experiments.
#[test]
fn metrics_of_experiments_in_other_units_are_not_ranked() {
    let text = SWEEP.edit("model.hidden = [[8], [16]]\n", "");
    let report = |average: &str| {
        let mut index = index(&text, clear);
        index.settings.insert("task.average".into(), json!(average));
        for run in &mut index.runs {
            run.metrics
                .insert("valid/f_beta".into(), clear(&run.trial, run.seed));
        }
        of_all_metrics(&index)
    };
    let compared = |second: &str, value: &str| {
        let question = Question {
            value: Some(value.into()),
            ..ask()
        };
        let sources = sources(vec![("a", report("macro")), ("b", report(second))]);
        compare(&sources, &question).unwrap()
    };
    assert!(!compared("micro", "valid/f_beta").is_common);
    assert!(compared("micro", "valid/accuracy").is_common);
    assert!(compared("macro", "valid/f_beta").is_common);
}

/// Values on other items are ranked, but nothing is claimed of their differences.
#[test]
fn other_items_are_no_ground_for_a_claim() {
    let text = SWEEP.edit("model.hidden = [[8], [16]]", "data.split.seed = [1, 2]");
    let mut index = index(&text, clear);
    index.data = serde_json::from_value(json!([
        {"what": "`iris`", "digests": {"train": "a", "valid": "b"}},
        {"what": "`iris`", "digests": {"train": "c", "valid": "d"}},
    ]))
    .unwrap();
    for run in &mut index.runs {
        run.data = usize::from(run.trial.contains("seed=2"));
    }
    let report = summed_up(&index, Vec::new());
    let first = &report.trials[0];
    let is_other = |trial: &Trial| trial.data != first.data;
    for trial in &report.trials[1..] {
        assert_eq!(trial.has_other_items, is_other(trial), "{}", trial.id);
        assert_eq!(trial.verdict.is_none(), is_other(trial), "{}", trial.id);
    }
    assert_eq!(report.candidates, None);
    // The best of all was picked, so the pair of the other split counts as well.
    let judged = report
        .trials
        .iter()
        .find_map(|trial| trial.verdict.as_ref());
    assert_eq!(judged.map(|verdict| verdict.num_comparisons), Some(2));
    let compared = compare(&sources(vec![("a", report.clone())]), &ask()).unwrap();
    let judged = compared
        .trials
        .iter()
        .find_map(|trial| trial.verdict.as_ref());
    assert_eq!(judged.map(|verdict| verdict.num_comparisons), Some(2));
    let keys: Vec<&str> = report
        .effects
        .iter()
        .map(|effect| effect.key.as_str())
        .collect();
    assert_eq!(keys, ["optimizer.type"]);
    let text = burn_runner::report::markdown(&report);
    assert!(text.contains("| other items"), "{text}");
    assert!(text.contains("so there is no verdict on it"), "{text}");
}

/// Names that were cut off contain a digest of the whole, with the fold.
#[test]
fn folds_of_long_names_are_one_trial() {
    let widths = |of: usize| vec![of.to_string(); 40].join(", ");
    let text = SWEEP
        .edit("seeds = [1, 2, 3, 4, 5, 6, 7, 8]", "seeds = [1, 2]")
        .edit("[sweep.grid]", "[data.split]\nfolds = 4\n[sweep.grid]")
        .edit(
            "model.hidden = [[8], [16]]",
            &format!(
                "model.hidden = [[{}], [{}]]\ndata.split.fold = [0, 1, 2, 3]",
                widths(8),
                widths(9)
            ),
        );
    let report = summed_up(&index(&text, |_, seed| 0.5 + 0.1 * seed as f64), Vec::new());
    assert_eq!((report.folds, report.trials.len()), (Some(4), 4));
    assert!(report.trials.iter().all(|trial| trial.n == 8));
    let names: BTreeSet<&str> = report
        .trials
        .iter()
        .map(|trial| trial.id.as_str())
        .collect();
    assert_eq!(names.len(), 4);
    assert!(
        names
            .iter()
            .all(|name| name.len() < 100 && name.contains('~'))
    );
    // The baseline may be named as in the report.
    let text = SWEEP
        .edit(
            "[sweep.grid]",
            "[data.split]\nfolds = 3\n[sweep.grid]\ndata.split.fold = [0, 1, 2]",
        )
        .edit("model.hidden = [[8], [16]]\n", "");
    let named = |name: &str| {
        let file = format!("objective.baseline = \"{name}\"\n{text}{IRIS}");
        plan("spec.toml", &file).map(|(plan, _)| plan.baseline)
    };
    assert_eq!(named("optimizer=adam"), Ok(Some("optimizer=adam".into())));
    assert!(
        named("optimizer=adom")
            .unwrap_err()
            .contains("did you mean `optimizer=adam`?")
    );
}

/// Trials that differ only in their fold are one, over folds and seeds.
#[test]
fn folds_count_as_seeds() {
    let text = SWEEP
        .edit("seeds = [1, 2, 3, 4, 5, 6, 7, 8]", "seeds = [1, 2]")
        .edit(
            "[sweep.grid]",
            "[data.split]\nfolds = 4\n[sweep.grid]\ndata.split.fold = [0, 1, 2, 3]",
        )
        .edit("model.hidden = [[8], [16]]\n", "");
    let of_fold = |trial: &str, seed: u64| {
        let fold: u64 = trial[5..6].parse().unwrap();
        let more = f64::from(trial.contains("adam")) * 1e-3 * fold as f64;
        clear(trial, seed + 2 * fold) + more
    };
    let index = index(&text, of_fold);
    let report = summed_up(&index, Vec::new());
    assert_eq!(
        (report.folds, report.axes.len(), report.trials.len()),
        (Some(4), 1, 2)
    );
    assert_eq!(report.trials[0].id, "optimizer=adam");
    assert_eq!((report.trials[0].n, report.trials[0].runs.len()), (8, 8));
    // Eight pairs by seed and fold, averaged to four folds that share items: no exact test, the corrected t alone.
    let verdict = report.trials[1].verdict.as_ref().unwrap();
    assert_eq!(verdict.finding, Finding::NoExactTest);
    assert_eq!(verdict.if_normal.unwrap().reading, Reading::Worse);
    let compared = verdict.comparison.unwrap();
    assert_eq!(
        (compared.design.n(), compared.test.test),
        (4, Test::CorrectedResampledT)
    );
    let text = burn_runner::report::markdown(&report);
    for said in [
        "± is over the 4 folds, initial weights and batch order; the items were assigned to folds once",
        "Differences are paired by seed and fold and averaged by split.",
        "| worse~",
        "worse (if the noise is normal)",
        "| 4 pairs",
    ] {
        assert!(text.contains(said), "{said} in {text}");
    }
    let saved: Report = serde_json::from_value(serde_json::to_value(&report).unwrap()).unwrap();
    assert_eq!(saved, report);
    let comparison = compare(&sources(vec![("a", of_all_metrics(&index))]), &ask()).unwrap();
    assert!(plain(&comparison, 200).contains("averaged by split"));
    let there = comparison.trials[1].verdict.as_ref().unwrap();
    assert_eq!(there.comparison.unwrap().test, compared.test);
}

/// Two seeds on four folds are two seeds: what only they explain is not claimed, and not left out of intervals.
#[test]
fn more_folds_are_no_further_seeds() {
    let text = SWEEP
        .edit("seeds = [1, 2, 3, 4, 5, 6, 7, 8]", "seeds = [1, 2]")
        .edit(
            "[sweep.grid]",
            "[data.split]\nfolds = 4\n[sweep.grid]\ndata.split.fold = [0, 1, 2, 3]",
        )
        .edit("model.hidden = [[8], [16]]\n", "");
    // The means of both trials are those of their seeds; folds and runs hardly matter.
    let by_seed = |trial: &str, seed: u64| {
        let fold: u64 = trial[5..6].parse().unwrap();
        let of_seed = if trial.contains("adam") {
            [0.70, 0.90]
        } else {
            [0.75, 0.79]
        };
        of_seed[seed as usize - 1] + 1e-3 * ((fold + seed) % 3) as f64
    };
    let index = index(&text, by_seed);
    let report = summed_up(&index, Vec::new());
    let interval = |trial: usize| {
        let sample = &report.trials[trial].metrics[&report.objective];
        let student = sample.student.unwrap();
        student.high - student.low
    };
    // With one degree of freedom: 2 * 12.7 * 0.2 / 2 for adam.
    assert!(interval(0) > 2.5, "{}", interval(0));
    let verdict = report.trials[1].verdict.as_ref().unwrap();
    assert_eq!(verdict.if_normal.unwrap().reading, Reading::Undecided);
    let comparison = compare(&sources(vec![("a", of_all_metrics(&index))]), &ask()).unwrap();
    let there = comparison.trials[1].verdict.as_ref().unwrap();
    assert_eq!(there.if_normal.unwrap().reading, Reading::Undecided);
    assert_eq!(comparison.trials[0].sample.as_ref().unwrap().student, {
        report.trials[0].metrics[&report.objective].student
    });
}

#[test]
fn costs_and_seeds_are_compared_too() {
    let question = Question {
        value: Some("epoch_secs".into()),
        pivot: Some(("seed".into(), "optimizer.type".into())),
        ..ask()
    };
    let comparison = compared(&question);
    assert_eq!(comparison.trials[0].sample.as_ref().unwrap().mean(), 0.5);
    let pivot = comparison.pivot.as_ref().unwrap();
    assert_eq!((pivot.rows.len(), pivot.columns.len()), (8, 2));
    let text = plain(&comparison, 60);
    assert!(
        text.contains("Omitted for lack of space: s/epoch, speed, memory, times"),
        "{text}"
    );
}

#[test]
fn wrong_questions_are_answered_with_what_to_ask() {
    let report = of_all_metrics(&index(SWEEP, clear));
    let one = sources(vec![("made_up", report.clone())]);
    let mut of_loss = report;
    of_loss.objective = "valid/loss".into();
    let two = sources(vec![("a", one[0].report.clone()), ("b", of_loss)]);
    let wrong = |sources: &[Source], question: Question| {
        let Wrong { message, help } = compare(sources, &question).expect_err("a refusal");
        format!("{message}; {help}")
    };
    let pivot = |rows: &str, cols: &str| Some((rows.to_owned(), cols.to_owned()));
    let all = [
        wrong(
            &one,
            Question {
                value: Some("valid/acuracy".into()),
                ..ask()
            },
        ),
        wrong(
            &one,
            Question {
                value: Some("valid/f_beta".into()),
                ..ask()
            },
        ),
        wrong(
            &one,
            Question {
                baseline: Some("optimizer=sdg".into()),
                ..ask()
            },
        ),
        wrong(&two, ask()),
        wrong(
            &two,
            Question {
                baseline: Some("optimizer=sgd,hidden=8".into()),
                value: Some("valid/loss".into()),
                ..ask()
            },
        ),
        wrong(
            &one,
            Question {
                pivot: pivot("optimizer.type", "hidden"),
                ..ask()
            },
        ),
        wrong(
            &one,
            Question {
                pareto: pivot("valid/accuracy", "seconds"),
                ..ask()
            },
        ),
    ];
    insta::assert_snapshot!(all.join("\n"), @r#"
    there is no metric `valid/acuracy`; did you mean `valid/accuracy`? the metrics are `epoch_secs`, `test/accuracy`, `valid/accuracy`, `valid/loss`, `wall_secs`
    no trial has `valid/f_beta`; the recorded metrics are `epoch_secs`, `test/accuracy`, `valid/accuracy`, `valid/loss`, `wall_secs`
    the baseline trial `optimizer=sdg` does not exist; the trials are `optimizer=adam,hidden=16`, `optimizer=adam,hidden=8`, `optimizer=sgd,hidden=16`, `optimizer=sgd,hidden=8`
    the objectives differ: `valid/accuracy` and `valid/loss`; choose what to compare, for example with `--value valid/accuracy`
    `optimizer=sgd,hidden=8` is the name of 2 trials; choose one: `a/optimizer=sgd,hidden=8`, `b/optimizer=sgd,hidden=8`
    `hidden` is not an axis of this comparison; did you mean `model.hidden`? tables can use `optimizer.type`, `model.hidden`, `experiment`, `backend.device`, `backend.precision`, `seed`
    no trial has `seconds`; trade-offs can use `epoch_secs`, `memory_bytes`, `test/accuracy`, `valid/accuracy`, `valid/loss`, `wall_secs`
    "#);
}

#[test]
fn experiments_runs_patterns_and_saved_reports_can_be_named() {
    let folder = folder_with(&format!("{}{IRIS}", SWEEP.edit(", 3, 4, 5, 6, 7, 8", "")));
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let trials = |what: &[&str]| -> Vec<String> {
        let arguments = [&["compare", "--csv"], what].concat();
        let (code, stdout, stderr) = run(folder.path(), &arguments);
        assert_eq!(code, 0, "{stderr}");
        let mut ids: Vec<String> = stdout
            .lines()
            .skip(1)
            .map(|line| line.split('"').nth(1).unwrap_or(line).to_owned())
            .collect();
        ids.sort();
        ids
    };
    let all = trials(&["results/made_up"]);
    assert_eq!(all.len(), 4, "{all:?}");
    assert_eq!(trials(&["results"]), all);
    assert_eq!(trials(&["results/made_up/report.json"]), all);
    assert_eq!(trials(&["results/m*/runs/*adam*-s1"]).len(), 2);
    // A report in the compared folder is skipped, and one in another folder is not.
    let report = "results/made_up/report.json";
    assert_eq!(trials(&["results/made_up", report]), all);
    fs::copy(
        folder.path().join(report),
        folder.path().join("before.json"),
    )
    .unwrap();
    let twice = trials(&["results/made_up", "before.json"]);
    assert!(
        twice.contains(&"made_up@2/optimizer=adam,hidden=8".to_owned()),
        "{twice:?}"
    );
    fs::write(folder.path().join("no.json"), "{\"format\": 2}").unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    let refused = ["nowhere", "no*where", "no.json", "empty", "spec.toml"].map(|what| {
        let (code, stdout, stderr) = run(folder.path(), &["compare", what]);
        assert_eq!((code, stdout.as_str()), (2, ""));
        stderr
    });
    insta::assert_snapshot!("compare_refused", refused.join("\n"));
}

#[test]
fn a_seed_that_collapsed_is_pointed_out() {
    let report = |collapsed: f64| {
        let value = |trial: &str, seed: u64| {
            let is_it = trial.contains("sgd") && trial.contains("hidden=8") && seed == 3;
            if is_it { collapsed } else { clear(trial, seed) }
        };
        burn_runner::report::markdown(&summed_up(&index(SWEEP, value), Vec::new()))
    };
    let said = report(0.1);
    assert!(
        said.contains("seed 3 of `optimizer=sgd,hidden=8` collapsed: valid/accuracy 0.1000"),
        "{said}"
    );
    assert!(!report(0.79).contains("collapsed"));
}
