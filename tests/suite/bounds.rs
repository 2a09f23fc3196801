//! Files that could take forever, or all memory: work and memory are bounded.

use std::fmt::Write as _;
use std::fs;

use super::edit::Edit;
use super::support::{IRIS, folder_with, plan, run};

const HEAD: &str = r#"
[data]
type = "iris"

[optimizer]
type = "adam"
learning_rate = 1e-3

[train]
epochs = 1
"#;

/// Blocks that each use the next one twice.
fn chained(num: usize, parameters: &str, used: &str) -> String {
    let mut text =
        format!("{HEAD}\n[model]\nlayers = [{{ type = \"b0\" }}, {{ type = \"linear\" }}]\n");
    for at in 0..num {
        let next = at + 1;
        let layer = format!("{{ type = \"b{next}\"{used} }}");
        writeln!(
            text,
            "[model.blocks.b{at}]\nparameters = {{ {parameters} }}\nlayers = [{layer}, {layer}]"
        )
        .unwrap();
    }
    writeln!(text, "[model.blocks.b{num}]\nparameters = {{ {parameters} }}\nlayers = [{{ type = \"relu\", when = false }}]").unwrap();
    text
}

#[test]
fn blocks_of_blocks_are_bounded_by_what_is_walked() {
    let deep = plan("spec.toml", &chained(33, "", "")).unwrap_err();
    assert!(
        deep.contains("blocks are nested more than 32 deep, down to `b32`"),
        "{deep}"
    );
    // Not too deep, but 2^30 paths without a layer at their ends.
    let wide = plan("spec.toml", &chained(30, "", "")).unwrap_err();
    assert!(
        wide.contains("expand to more than 65536 parts, most of them without a layer"),
        "{wide}"
    );
    for wrong in [deep, wide] {
        assert!(wrong.ends_with("1 error\n"), "{wrong}");
    }
    let few = plan("spec.toml", &chained(5, "", "")).unwrap().0;
    assert_eq!(few.runs.len(), 1);
}

#[test]
fn parameters_that_hold_each_other_twice_are_refused() {
    let lists = chained(30, "x = []", ", x = [\"${x}\", \"${x}\"]");
    let wrong = plan("spec.toml", &lists).unwrap_err();
    assert!(
        wrong.contains("the parameters of this layer expand to too many values"),
        "{wrong}"
    );
    let texts = chained(30, "x = \"ab\"", ", x = \"${x}${x}\"");
    let wrong = plan("spec.toml", &texts).unwrap_err();
    assert!(
        wrong.contains("the parameters of this layer expand to too many values"),
        "{wrong}"
    );
}

#[test]
fn very_many_wrong_values_make_few_messages() {
    let items = vec!["\"x\""; 20_000].join(", ");
    let text = IRIS.edit("hidden = [16]", &format!("hidden = [{items}]"));
    let wrong = plan("spec.toml", &text).unwrap_err();
    assert!(wrong.contains("and 19,980 more like this"), "{wrong}");
    assert!(wrong.ends_with("20,000 errors\n"), "{wrong}");
    assert!(wrong.len() < 100_000, "{} bytes", wrong.len());
    // Each item is invalid, and all are equal.
    let text = format!(
        "{IRIS}\n[experiment]\nseeds = [{}]\n",
        vec!["7"; 20_000].join(", ")
    );
    let wrong = plan("spec.toml", &text).unwrap_err();
    assert!(wrong.contains("contains 7 twice"), "{wrong}");
    // Tables.
    let mut text = IRIS.to_owned();
    (0..5_000).for_each(|_| text.push_str("[[optimizer.groups]]\nwd = 1\n"));
    let wrong = plan("spec.toml", &text).unwrap_err();
    assert!(wrong.contains("and 4,980 more like this"), "{wrong}");
    // Keys.
    let mut text = IRIS.to_owned();
    (0..4_000).for_each(|at| writeln!(text, "hiden_layer_{at} = 1").unwrap());
    let wrong = plan("spec.toml", &text).unwrap_err();
    assert!(wrong.contains("and 3,980 more like this"), "{wrong}");
}

#[test]
fn very_many_references_are_resolved_in_one_pass() {
    let mut text = format!("{IRIS}\n[values]\n");
    (0..4_000).for_each(|at| writeln!(text, "v{at} = {at}").unwrap());
    let used: Vec<_> = (0..4_000)
        .map(|at| format!("\"${{values.v{at}}}\""))
        .collect();
    let seeds = format!("\n[experiment]\nseeds = [{}]\n", used.join(", "));
    let (planned, warnings) = plan("spec.toml", &format!("{text}{seeds}")).unwrap();
    assert_eq!((planned.runs.len(), warnings.as_str()), (4_000, ""));
    let wrong: Vec<_> = (0..20_000)
        .map(|at| format!("\"${{values.w{at}}}\""))
        .collect();
    let seeds = format!("\n[experiment]\nseeds = [{}]\n", wrong.join(", "));
    let wrong = plan("spec.toml", &format!("{text}{seeds}")).unwrap_err();
    assert!(wrong.contains("more like this"), "{wrong}");
}

#[test]
fn what_no_person_writes_is_refused_before_it_is_looked_at() {
    let refused = |more: &str, part: &str| {
        let wrong = plan("spec.toml", &format!("{IRIS}\n{more}")).unwrap_err();
        assert!(wrong.contains(part), "{wrong}");
        assert!(wrong.len() < 200_000, "{} bytes", wrong.len());
    };
    let mut keys = "[values]\n".to_owned();
    (0..40_000).for_each(|at| writeln!(keys, "v{at} = 1").unwrap());
    refused(&keys, "a table has 40,000 keys; the limit is 4,096");
    let deep = vec!["a"; 60_000].join(".");
    refused(
        &format!("[sweep.grid]\n\"values.{deep}\" = [1, 2]\n"),
        "has more than 64 parts",
    );
    refused(
        &format!("[values]\nx = \"${{values.{deep}}}\"\n"),
        "is not set in this file",
    );
    let mut axes = "[sweep.grid]\n".to_owned();
    (0..3_000).for_each(|at| writeln!(axes, "values.v{at} = [1]").unwrap());
    refused(&axes, "the sweep has 3000 axes; the limit is 500");
    let many: Vec<_> = (1..1_001).collect();
    let points = format!(
        "[sweep]\nexclude = [\"train.batch_size > 3\"]\n[sweep.grid]\ntrain.batch_size = {many:?}\ntrain.log_every = {many:?}\ntrain.epochs = {many:?}\n"
    );
    refused(&points, "more than 1000000 points before exclusions");
    let rules: Vec<_> = (0..600)
        .map(|at| format!("\"train.epochs > {at}\""))
        .collect();
    let rules = format!(
        "[sweep]\nexclude = [{}]\n[sweep.grid]\ntrain.batch_size = [1, 2]\n",
        rules.join(", ")
    );
    refused(&rules, "`sweep.exclude` has 600 conditions");
    let numbers =
        "[limits]\nrun = \"99999999999999999999h\"\n[memory]\nlimit = \"99999999999TiB\"\n";
    refused(numbers, "2 errors");
}

#[cfg(unix)]
#[test]
fn only_regular_files_are_read() {
    let folder = folder_with(IRIS);
    let fifo = folder.path().join("fifo");
    let made = std::process::Command::new("mkfifo")
        .arg(&fifo)
        .status()
        .unwrap();
    assert!(made.success());
    let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    let places = ["fifo", "socket", "/dev/zero", "/dev/tty", "empty"];
    for place in places {
        let (code, _, stderr) = run(folder.path(), &["check", place]);
        assert_eq!(code, 2, "{place}: {stderr}");
        let what = if place == "empty" {
            "it is a directory"
        } else {
            ""
        };
        assert!(stderr.contains(what), "{place}: {stderr}");
        fs::write(
            folder.path().join("over.toml"),
            format!("extends = [\"{place}\"]\n{IRIS}"),
        )
        .unwrap();
        let (code, _, stderr) = run(folder.path(), &["check", "over.toml"]);
        assert_eq!(code, 2, "{place}: {stderr}");
        for kind in [
            "csv",
            "json_lines",
            "npz",
            "safetensors",
            "text",
            "npy",
            "idx",
        ] {
            let target = match kind {
                "npy" | "idx" => format!("target_path = \"{place}\""),
                "text" => String::new(),
                _ => "target = \"y\"".to_owned(),
            };
            let data = format!("[data]\ntype = \"{kind}\"\npath = \"{place}\"\n{target}\n");
            let text = IRIS.edit("[data]\ntype = \"iris\"\n", &data);
            fs::write(folder.path().join("data.toml"), text).unwrap();
            let (code, _, stderr) = run(folder.path(), &["check", "data.toml"]);
            assert_eq!(code, 2, "{kind} {place}: {stderr}");
            let is_named = [
                "only regular files are read",
                "is a folder",
                "does not exist",
            ];
            assert!(
                is_named.iter().any(|what| stderr.contains(what)),
                "{kind} {place}: {stderr}"
            );
        }
    }
    // It claims to be empty.
    let (code, _, stderr) = run(folder.path(), &["check", "/proc/self/maps"]);
    assert_eq!(code, 2, "{stderr}");
    let (code, _, stderr) = run(folder.path(), &["report", "nowhere", "--template", "fifo"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(
        stderr.contains("a named pipe; only regular files are read"),
        "{stderr}"
    );
}
