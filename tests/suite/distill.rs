//! `strategy.type = "distill"`: losses are those of PyTorch, the teacher stays as it is, and a run survives a kill and
//! the loss of its teacher.

use std::fs;
use std::path::Path;

use super::edit::Edit;
use super::sharing::difference_from_pytorch;
use super::support::peers::python_with;
use super::support::{done, folder_with, goes_on, numbers, plan_in, read_json, run, summary};

/// A teacher with statistics and random numbers, which it must not use.
const TEACHER: &str = r#"
[experiment]
name = "teacher"

[data]
type = "iris"
split = { valid = 0.2, test = 0.2 }

[model]
layers = [
  { type = "linear", out_features = 16 },
  { type = "batch_norm" },
  { type = "relu" },
  { type = "dropout", probability = 0.3 },
  { type = "linear" },
]

[optimizer]
type = "adam"
learning_rate = 1e-2

[train]
epochs = 4
batch_size = 30
"#;

const STUDENT: &str = r#"
[data]
type = "iris"
split = { valid = 0.2, test = 0.2 }

[model]
layers = [
  { type = "linear", out_features = 4 },
  { type = "relu" },
  { type = "dropout", probability = 0.1 },
  { type = "linear" },
]

[optimizer]
type = "adam"
learning_rate = 1e-2

[train]
epochs = 5
batch_size = 16

[checkpoint]
every_steps = 2

[strategy]
type = "distill"
teacher = "results/teacher/runs/base-s1"
weight = 0.75
temperature = 3.0
"#;

const RUN: &str = "results/spec/runs/base-s1";

/// A folder with a trained teacher and a student's file.
fn with_teacher(student: &str) -> tempfile::TempDir {
    let folder = folder_with(student);
    fs::write(folder.path().join("teacher.toml"), TEACHER).unwrap();
    done(folder.path(), &["run", "teacher.toml", "--quiet"]);
    folder
}

fn trained(student: &str) -> tempfile::TempDir {
    let folder = with_teacher(student);
    done(folder.path(), &["run", "spec.toml", "--quiet"]);
    folder
}

#[test]
fn students_learn_as_in_pytorch() {
    let Some(python) = python_with(&["torch", "safetensors", "numpy"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    python.run("distill_check.py", &[at, Path::new("prepare")]);
    let cases = [
        (
            "classes",
            "'kind'",
            "",
            "weight = 0.7, temperature = 3.0",
            "loss = { type = 'cross_entropy' }",
        ),
        (
            "labels",
            "['m', 'n']",
            "micro_batch_size = 10",
            "weight = 0.25",
            "loss = { type = 'binary_cross_entropy' }",
        ),
        (
            "values",
            "['m', 'n']",
            "micro_batch_size = 15",
            "weight = 0.5",
            "loss = { type = 'smooth_l1', beta = 0.5 }",
        ),
    ];
    let table = |name: &str, target: &str, folder: &str| {
        format!(
            "data = {{ type = 'csv', path = '{folder}{name}.csv', valid_path = '{folder}{name}_valid.csv', target = {target}, scale = 'none', split.test = 0 }}\n\
             backend = {{ precision = 'f64' }}\n"
        )
    };
    for (name, target, ..) in cases {
        let teacher = format!(
            "{}experiment.name = 'of_{name}'\n\
             optimizer = {{ type = 'adam', learning_rate = 0.05 }}\n\
             train = {{ epochs = 8, batch_size = 10 }}\n\
             model.layers = [
                 {{ type = 'linear', name = 'body', out_features = 16 }}, {{ type = 'batch_norm', name = 'norm' }},
                 {{ type = 'tanh' }}, {{ type = 'dropout', probability = 0.5 }}, {{ type = 'linear', name = 'head' }},
             ]\n",
            table(name, target, "")
        );
        fs::write(at.join("teacher.toml"), teacher).unwrap();
        done(at, &["run", "teacher.toml", "--quiet"]);
        let (from, to) = (
            format!("results/of_{name}/runs/base-s1"),
            format!("{name}_teacher.safetensors"),
        );
        let arguments = [
            "export",
            "weights",
            &from,
            "--format",
            "safetensors",
            "--out",
            &to,
        ];
        done(at, &arguments);
    }
    python.run("distill_check.py", &[at, Path::new("train")]);
    for (name, target, pieces, settings, loss) in cases {
        let pieces = if pieces.is_empty() {
            String::new()
        } else {
            format!(", {pieces}")
        };
        let spec = format!(
            "{}optimizer = {{ type = 'sgd', learning_rate = 0.1, momentum = 0.9 }}\n\
             scheduler = {{ type = 'constant' }}\n\
             train = {{ epochs = 20, batch_size = 30{pieces} }}\n\
             init = {{ from = '{name}.safetensors' }}\n\
             strategy = {{ type = 'distill', teacher = '../results/of_{name}/runs/base-s1', {settings} }}\n\
             {loss}\n\
             model.layers = [
                 {{ type = 'linear', name = 'inner', out_features = 4 }}, {{ type = 'tanh' }},
                 {{ type = 'linear', name = 'outer' }},
             ]\n",
            table(name, target, "../")
        );
        let largest = difference_from_pytorch(at, name, &[], &spec);
        assert!(largest < 1e-10, "{name}: {largest}");
    }
}

#[test]
fn the_loss_is_a_mean_of_both_and_validation_has_no_teacher() {
    let folder = trained(STUDENT);
    let metrics = &summary(folder.path(), "base-s1")["metrics"];
    let of = |name: &str| {
        let value = metrics[&format!("last/{name}")].as_f64();
        value.unwrap_or_else(|| panic!("no {name} in {metrics}"))
    };
    let sum = 0.25 * of("train/main/loss") + 0.75 * of("train/teacher/loss");
    assert!((sum - of("train/loss")).abs() < 1e-6 * sum, "{metrics}");
    assert!(of("train/teacher/loss") > 0.0);
    assert!(metrics["last/valid/teacher/loss"].is_null(), "{metrics}");
    // The checkpoints and weights of a student are those of a network without a teacher.
    let alone = folder_with(&STUDENT.edit("\"distill\"\n", "\"standard\"\n").edit(
        "teacher = \"results/teacher/runs/base-s1\"\nweight = 0.75\ntemperature = 3.0\n",
        "",
    ));
    done(alone.path(), &["run", "spec.toml", "--quiet"]);
    let size = |folder: &Path, file: &str| {
        let file = folder.join(RUN).join(file);
        fs::metadata(&file)
            .unwrap_or_else(|e| panic!("{file:?}: {e}"))
            .len()
    };
    let last = 5 * 90_usize.div_ceil(16);
    for file in [
        "model/initial.bpk".to_owned(),
        "model/best.bpk".to_owned(),
        format!("checkpoints/model-{last}.bpk"),
        format!("checkpoints/optimizer-{last}.bpk"),
    ] {
        let (taught, alone) = (size(folder.path(), &file), size(alone.path(), &file));
        // The ids of parameters are random, and so is the length of their text. The teacher has 652 bytes of weights.
        assert!(taught.abs_diff(alone) < 200, "{file}: {taught}, {alone}");
    }
    assert!(!alone.path().join(RUN).join("model/teacher.bpk").exists());
    // It starts with the same weights: a teacher draws no random numbers.
    let first = |folder: &Path| {
        let digests = fs::read_to_string(folder.join(RUN).join("trace/digests.csv")).unwrap();
        let of_start = digests.lines().filter(|line| line.starts_with("0,"));
        of_start.map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(!first(folder.path()).is_empty());
    assert_eq!(first(folder.path()), first(alone.path()));
}

/// A teacher that counts fully: the student's targets have no effect.
#[test]
fn a_teacher_alone_teaches() {
    let (mut csv, mut other) = (String::from("a,b,kind\n"), String::from("a,b,kind\n"));
    for at in 0..60_i32 {
        let (a, b) = (f64::from(at * 37 % 60) / 30.0, f64::from(at % 7));
        let kind = if a + b / 7.0 > 1.4 { "x" } else { "y" };
        csv += &format!("{a},{b},{kind}\n");
        // The same split, since there are as many of each class.
        let kind = if at % 2 == 0 { "x" } else { "y" };
        other += &format!("{a},{b},{kind}\n");
    }
    let data = |file: &str| {
        format!(
            "data = {{ type = 'csv', path = '{file}', target = 'kind', scale = 'none', split = {{ valid = 0.2, test = 0, stratified = false }} }}\n"
        )
    };
    let teacher = format!(
        "{}model = {{ type = 'mlp', hidden = [16] }}\n\
         optimizer = {{ type = 'adam', learning_rate = 3e-2 }}\ntrain = {{ epochs = 30, batch_size = 16 }}\n",
        data("right.csv")
    );
    let student = |file: &str| {
        format!(
            "{}model = {{ type = 'mlp', hidden = [4] }}\n\
             optimizer = {{ type = 'adam', learning_rate = 3e-2 }}\ntrain = {{ epochs = 5, batch_size = 16 }}\n\
             strategy = {{ type = 'distill', teacher = 'results/teacher/runs/base-s1', weight = 1.0 }}\n",
            data(file)
        )
    };
    let folder = folder_with(&student("right.csv"));
    let at = folder.path();
    fs::write(at.join("right.csv"), csv).unwrap();
    fs::write(at.join("wrong.csv"), other).unwrap();
    fs::write(at.join("teacher.toml"), teacher).unwrap();
    done(at, &["run", "teacher.toml", "--quiet"]);
    done(at, &["run", "spec.toml", "--quiet"]);
    let right = numbers(at)[0].3.clone();
    fs::write(at.join("spec.toml"), student("wrong.csv")).unwrap();
    done(at, &["run", "spec.toml", "--quiet"]);
    assert_eq!(numbers(at)[0].3, right);
}

#[cfg(unix)]
#[test]
fn a_student_survives_a_kill_to_the_bit() {
    let student = format!(
        "{STUDENT}\n[sweep.grid]\ntrain.micro_batch_size = [4, 16]\ntrain.gradient_checkpointing = [false, true]\n"
    );
    let straight = trained(&student);
    let killed = with_teacher(&student);
    for moment in ["training:4", "checkpointing:16", "validating:3"] {
        let fault = format!("*@{moment}=kill");
        let arguments = ["run", "spec.toml", "--quiet", "--inject-fault", &fault];
        let (code, ..) = run(killed.path(), &arguments);
        assert_eq!(code, 1, "{moment}");
    }
    goes_on(killed.path());
    assert_eq!(numbers(straight.path()).len(), 4);
    assert_eq!(numbers(straight.path()), numbers(killed.path()));
}

#[test]
fn a_student_is_reproduced_without_its_teacher() {
    let folder = trained(STUDENT);
    let at = folder.path();
    done(at, &["bundle", RUN, "--out", "student.capsule.tar.zst"]);
    let said = done(at, &["reproduce", RUN]);
    assert!(said.contains("bitwise"), "{said}");
    // A capsule of the teacher is a teacher, and has other bytes than its weights.
    let teacher = "results/teacher/runs/base-s1";
    done(at, &["bundle", teacher, "--out", "teacher.capsule.tar.zst"]);
    fs::remove_dir_all(at.join("results/teacher")).unwrap();
    for path in [RUN, "student.capsule.tar.zst"] {
        let said = done(at, &["reproduce", path]);
        assert!(said.contains("bitwise"), "{path}: {said}");
    }
    let before = numbers(at);
    let of_capsule = STUDENT.edit("results/teacher/runs/base-s1", "teacher.capsule.tar.zst");
    fs::write(at.join("spec.toml"), of_capsule).unwrap();
    done(at, &["run", "spec.toml", "--quiet"]);
    assert_eq!(numbers(at), before);
}

/// The teacher's weights are in the identity of a run, wherever they are.
#[test]
fn the_teacher_is_in_the_fingerprint_and_in_the_forecast() {
    let folder = with_teacher(STUDENT);
    let at = folder.path();
    done(
        at,
        &[
            "run",
            "teacher.toml",
            "--quiet",
            "--set",
            "experiment.name=other",
            "--set",
            "experiment.seeds=[2]",
        ],
    );
    let copy = |from: &Path, to: &Path| {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap().flatten() {
            if entry.path().is_dir() {
                let inner = to.join(entry.file_name());
                fs::create_dir_all(&inner).unwrap();
                for file in fs::read_dir(entry.path()).unwrap().flatten() {
                    fs::copy(file.path(), inner.join(file.file_name())).unwrap();
                }
            } else {
                fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
            }
        }
    };
    copy(
        &at.join("results/teacher/runs/base-s1"),
        &at.join("base-s1"),
    );
    let of = |teacher: &str| {
        let text = STUDENT.edit("results/teacher/runs/base-s1", teacher);
        let planned = plan_in(Some(at), "spec.toml", &text);
        planned
            .unwrap_or_else(|refused| panic!("{refused}"))
            .0
            .runs
            .remove(0)
    };
    let run_of = of("results/teacher/runs/base-s1");
    assert_eq!(run_of.fingerprint, of("base-s1").fingerprint);
    assert_ne!(
        run_of.fingerprint,
        of("results/other/runs/base-s2").fingerprint
    );
    // 4 x 16 + 16, 2 x 16 and 16 x 3 + 3 weights, and 3 outputs of 16 items.
    assert_eq!(run_of.forecast.teacher, 4 * (80 + 32 + 51 + 3 * 16));
}

/// Edits of a student's file, and what the refusal says.
type Wrong<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);

#[test]
fn wrong_teachers_are_refused_where_they_are_named() {
    let folder = with_teacher(STUDENT);
    let at = folder.path();
    let teacher = "results/teacher/runs/base-s1";
    let digits = ("type = \"iris\"", "type = \"digits\"");
    let flat = (
        "[\n  { type = \"linear\", out_features = 4 }",
        "[\n  { type = \"flatten\" },\n  { type = \"linear\", out_features = 4 }",
    );
    let cases: [Wrong; 8] = [
        (&[(teacher, "nowhere")], &["nowhere` does not exist"]),
        (
            &[(teacher, "results/teacher")],
            &["is not the folder of a run", "runs/base-s1"],
        ),
        (
            &[(teacher, "results/teacher/runs/base-s1/model/best.bpk")],
            &[
                "is neither the folder of a run nor a capsule",
                "does not say it",
            ],
        ),
        (
            &[digits, flat],
            &["the teacher takes items of shape [4], but those here are of shape [1, 8, 8]"],
        ),
        (
            &[
                ("[data]", "[task]\ntype = \"autoencoding\"\n\n[data]"),
                ("temperature = 3.0\n", ""),
            ],
            &["the teacher's task is `classification`, but this one is `autoencoding`"],
        ),
        (
            &[("type = \"iris\"", "type = \"iris\"\nscale = \"min_max\"")],
            &["the teacher would see other numbers: items are prepared for it in another way"],
        ),
        (
            &[("[data]", "[experiment]\nname = \"teacher\"\n\n[data]")],
            &[
                "is a run of this experiment, `teacher`",
                "set another `experiment.name`",
            ],
        ),
        (
            &[(
                "[data]",
                "[[losses]]\nname = \"teacher\"\ntype = \"l2\"\n\n[data]",
            )],
            &["`teacher`, which is that of the distance to the teacher"],
        ),
    ];
    for (edits, parts) in cases {
        let edit = |text: String, (from, to): &(&str, &str)| text.edit(from, to);
        refused(at, &edits.iter().fold(STUDENT.to_owned(), edit), parts);
    }
    // Another split of the same data is only told.
    let other = STUDENT.edit("valid = 0.2", "seed = 5, valid = 0.2");
    let other = other.edit("type = \"iris\"", "type = \"iris\"\nscale = \"none\"");
    fs::write(at.join("spec.toml"), other).unwrap();
    fs::write(
        at.join("teacher.toml"),
        TEACHER.edit("type = \"iris\"", "type = \"iris\"\nscale = \"none\""),
    )
    .unwrap();
    done(at, &["run", "teacher.toml", "--quiet"]);
    let said = done(at, &["check", "spec.toml"]);
    assert!(
        said.contains("was trained with another split of the same data"),
        "{said}"
    );
    // A run that was changed, and one that is not complete.
    let best = at.join(teacher).join("model/best.bpk");
    let mut bytes = fs::read(&best).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&best, bytes).unwrap();
    refused(at, STUDENT, &["was changed after the run ended"]);
    fs::remove_dir_all(at.join("results/teacher")).unwrap();
    let fault = [
        "run",
        "teacher.toml",
        "--quiet",
        "--inject-fault",
        "*@training:4=panic",
    ];
    assert_eq!(run(at, &fault).0, 1);
    refused(
        at,
        STUDENT,
        &["is not completed", "complete it with `runner run`"],
    );
}

#[track_caller]
fn refused(at: &Path, student: &str, parts: &[&str]) {
    fs::write(at.join("spec.toml"), student).unwrap();
    let (code, _, said) = run(at, &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 2, "{said}");
    assert!(
        parts.iter().all(|part| said.contains(part)),
        "{parts:?}: {said}"
    );
    assert!(!at.join("results/spec").exists(), "{said}");
}

/// An output means what its place among the classes means.
#[test]
fn classes_have_the_same_order() {
    let table = |names: [&str; 3]| {
        let rows = (0..45).map(|at| format!("{}.5,{},{}\n", at * 7 % 11, at % 3, names[at % 3]));
        format!("a,b,kind\n{}", rows.collect::<String>())
    };
    let spec = |file: &str, more: &str| {
        format!(
            "{more}data = {{ type = 'csv', path = '{file}', target = 'kind', scale = 'none' }}\n\
             model = {{ type = 'mlp', hidden = [4] }}\n\
             optimizer = {{ type = 'adam', learning_rate = 1e-2 }}\ntrain = {{ epochs = 1, batch_size = 8 }}\n"
        )
    };
    let strategy = "strategy = { type = 'distill', teacher = 'results/teacher/runs/base-s1' }\n";
    let folder = folder_with(&spec("other.csv", strategy));
    let at = folder.path();
    fs::write(at.join("teacher.toml"), spec("rows.csv", "")).unwrap();
    fs::write(at.join("rows.csv"), table(["ant", "bee", "cat"])).unwrap();
    fs::write(at.join("other.csv"), table(["ant", "bug", "cat"])).unwrap();
    done(at, &["run", "teacher.toml", "--quiet"]);
    let parts = ["output 1 of the teacher is \"bee\", but here it is \"bug\""];
    refused(at, &spec("other.csv", strategy), &parts);
    fs::write(at.join("other.csv"), table(["ant", "bee", "bee"])).unwrap();
    let parts = [
        "the teacher's output has shape [3], but the output here has shape [2]",
        "3 classes",
        "2 classes",
    ];
    refused(at, &spec("other.csv", strategy), &parts);
}

/// The copy of a teacher that a run keeps is among its sealed files.
#[test]
fn the_copy_of_the_teacher_is_sealed() {
    let folder = trained(STUDENT);
    let copy = folder.path().join(RUN).join("model/teacher.bpk");
    let record = read_json(&folder.path().join(RUN).join("summary.json"));
    assert!(copy.is_file(), "{record}");
    let mut bytes = fs::read(&copy).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&copy, bytes).unwrap();
    let (_, text, said) = run(folder.path(), &["reproduce", RUN]);
    assert!(
        format!("{text}{said}").contains("model/teacher.bpk"),
        "{text}{said}"
    );
}
