//! Planning: expansion, names, fingerprints, and what a fingerprint covers.

use super::edit::Edit;
use super::support::{IRIS, folder_with, plan, run};

fn ids(text: &str) -> Vec<String> {
    let (plan, _) = plan("spec.toml", text).unwrap_or_else(|message| panic!("{message}"));
    plan.runs.into_iter().map(|run| run.id).collect()
}

#[test]
fn a_grid_expands_in_file_order_times_seeds() {
    let text = format!(
        "[experiment]\nseeds = [5, 3]\n{IRIS}\n[sweep.grid]\noptimizer.type = [\"sgd\", \"adam\"]\nmodel.hidden = [[], [8, 4]]\n"
    );
    insta::assert_snapshot!(ids(&text).join("\n"));
}

#[test]
fn axes_may_be_whole_tables_and_nested_keys() {
    let text = format!(
        "{IRIS}\n[sweep.grid]\noptimizer = [{{ type = \"sgd\", learning_rate = 0.1, momentum = 0.9 }}, {{ type = \"adam\", learning_rate = 1e-3 }}]\n\"data.split.seed\" = [1, 2]\nmodel.dropout = [0, 0.5]\n"
    );
    insta::assert_snapshot!(ids(&text).join("\n"));
}

#[test]
fn a_plan_is_printed_as_a_table_and_as_json() {
    let folder = folder_with(&format!(
        "{IRIS}\n[sweep.grid]\noptimizer.learning_rate = [1e-3, 1e-2]\n"
    ));
    let (code, table, _) = run(folder.path(), &["plan", "spec.toml"]);
    assert_eq!(code, 0);
    insta::assert_snapshot!("plan_table", table);
    let (code, json, _) = run(folder.path(), &["plan", "spec.toml", "--json"]);
    assert_eq!(code, 0);
    insta::assert_snapshot!("plan_json", json);
}

fn fingerprint(text: &str) -> String {
    let (plan, _) = plan("spec.toml", text).unwrap_or_else(|message| panic!("{message}"));
    plan.runs[0].fingerprint.clone()
}

#[test]
fn a_fingerprint_covers_what_changes_numbers_and_nothing_else() {
    let plain = fingerprint(IRIS);
    for cosmetic in [
        "[experiment]\nname = \"other\"\nquestion = \"why?\"\n",
        "# a comment\n[checkpoint]\nkeep_last = 3\n",
        "[memory]\nlimit = \"1GiB\"\nreserve = \"2GiB\"\n",
        "[limits]\nrun = \"1h\"\nexperiment = \"2h\"\n",
        "[on_failure.killed]\nretries = 2\nthen = \"stop\"\n",
        "[loss]\ntype = \"cross_entropy\"\n",
        "[scheduler]\ntype = \"constant\"\n",
    ] {
        assert_eq!(
            fingerprint(&format!("{cosmetic}{IRIS}")),
            plain,
            "{cosmetic}"
        );
    }
    for effective in [
        "[experiment]\nseeds = [2]\n",
        "[loss]\ntype = \"mse\"\n",
        "[backend]\nprecision = \"f64\"\n",
        "[scheduler]\nwarmup_steps = 2\n",
        "[scheduler]\ntype = \"step\"\nstep_size = 1\nunit = \"epoch\"\n",
        "[optimizer.clip]\nvalue = 1.0\n",
        "[[optimizer.groups]]\nparameters = \"*.bias\"\nfreeze = true\n",
        "[train.early_stopping]\npatience = 2\n",
        "[train.ema]\n",
        "[data.split]\nseed = 4\n",
    ] {
        assert_ne!(
            fingerprint(&format!("{effective}{IRIS}")),
            plain,
            "{effective}"
        );
    }
}

#[test]
fn a_fingerprint_covers_the_pieces_of_a_batch() {
    let written = |size| fingerprint(&format!("{IRIS}micro_batch_size = {size}\n"));
    assert_eq!(written(16), fingerprint(IRIS), "the whole batch at a time");
    assert_ne!(written(8), fingerprint(IRIS));
}

#[test]
fn an_axis_may_supply_a_required_key() {
    let text = IRIS.edit("learning_rate = 1e-2\n", "");
    assert!(plan("spec.toml", &text).is_err());
    assert_eq!(
        ids(&format!(
            "{text}\n[sweep.grid]\noptimizer.learning_rate = [0.1]\n"
        )),
        ["learning_rate=0.1-s1"]
    );
}
