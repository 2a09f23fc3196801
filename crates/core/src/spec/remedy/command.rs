//! Verbs, flags and arguments of other programs.

use super::{full_path, plain};
use crate::diagnostic::nearest;
use crate::spec::{describe, key_paths};

/// A word of the command line and its replacement.
pub struct Command {
    /// The words, separated by spaces; flags without their dashes.
    pub theirs: &'static str,
    /// The remedy.
    pub help: &'static str,
    /// A wrong command, without the program name, for a file `spec.toml`.
    pub wrong: &'static str,
    /// The correct one; empty if there is none.
    pub right: &'static str,
}

const fn command(
    theirs: &'static str,
    help: &'static str,
    wrong: &'static str,
    right: &'static str,
) -> Command {
    Command {
        theirs,
        help,
        wrong,
        right,
    }
}

/// Flags, for every verb.
pub const FLAGS: &[Command] = &[
    command(
        "dry-run dryrun just-print simulate no-exec",
        "`runner plan SPEC` shows the runs without training; `runner check SPEC` only looks for errors",
        "run spec.toml --dry-run",
        "plan spec.toml",
    ),
    command(
        "resume continue auto-resume restart-from resume-from-checkpoint r ckpt checkpoint ckpt-path",
        "`runner run SPEC` resumes automatically: completed runs are skipped, and the others resume from their newest checkpoint",
        "run spec.toml --resume",
        "run spec.toml",
    ),
    command(
        "device gpu gpus accelerator cuda use-gpu backend devices d",
        "use `--set backend.device=auto` for the best available device; `runner devices` lists them",
        "check spec.toml --device cuda",
        "check spec.toml --set backend.device=auto",
    ),
    command(
        "cpu no-cuda no-gpu use-cpu",
        "use `--set backend.device=flex`",
        "check spec.toml --cpu",
        "check spec.toml --set backend.device=flex",
    ),
    command(
        "mps metal",
        "use `--set backend.device=metal`, in a build with that backend; `runner devices` lists the available devices",
        "check spec.toml --mps",
        "check spec.toml --set backend.device=metal",
    ),
    command(
        "precision amp fp16 bf16 half mixed-precision dtype",
        "use `--set backend.precision=f32`, or bf16 or f16 for all numbers; mixed precision is not supported",
        "check spec.toml --amp",
        "check spec.toml --set backend.precision=f32",
    ),
    command(
        "epochs max-epochs num-epochs n-epochs num-train-epochs e",
        "use `--set train.epochs=5`",
        "check spec.toml --epochs 5",
        "check spec.toml --set train.epochs=5",
    ),
    command(
        "lr learning-rate base-lr",
        "use `--set optimizer.learning_rate=1e-3`",
        "check spec.toml --lr 1e-3",
        "check spec.toml --set optimizer.learning_rate=1e-3",
    ),
    command(
        "batch-size bs per-device-train-batch-size train-batch-size b batch",
        "use `--set train.batch_size=32`",
        "check spec.toml --batch-size 32",
        "check spec.toml --set train.batch_size=32",
    ),
    command(
        "seed random-seed random-state seeds",
        "use `--set experiment.seeds=[1]`, a list: each trial runs once per seed",
        "check spec.toml --seed 1",
        "check spec.toml --set experiment.seeds=[1]",
    ),
    command(
        "optimizer optim opt",
        "use `--set optimizer.type=adamw`",
        "check spec.toml --optimizer adamw",
        "check spec.toml --set optimizer.type=adamw",
    ),
    command(
        "model arch network",
        "use `--set model.type=mlp`",
        "check spec.toml --model mlp",
        "check spec.toml --set model.type=mlp",
    ),
    command(
        "weight-decay wd",
        "use `--set optimizer.weight_decay=1e-2`",
        "check spec.toml --wd 1e-2",
        "check spec.toml --set optimizer.weight_decay=1e-2",
    ),
    command(
        "dropout",
        "use `--set model.dropout=0.1`",
        "check spec.toml --dropout 0.1",
        "check spec.toml --set model.dropout=0.1",
    ),
    command(
        "data data-dir dataset data-path root input",
        "the data is set in `[data]` of the file: `--set data.path=FILE` overrides it once, and `runner init --data PATH` creates a file",
        "check spec.toml --dataset iris",
        "check spec.toml --set data.type=iris",
    ),
    command(
        "config config-name config-path c spec f file experiment exp cfg conf config-dir",
        "pass the experiment file as an argument: `runner run SPEC`",
        "check --config spec.toml",
        "check spec.toml",
    ),
    command(
        "output output-dir out-dir o out logdir log-dir save-dir results-dir workdir work-dir default-root-dir outdir save-path",
        "set the results folder with `--results DIR`",
        "run spec.toml --output-dir out",
        "run spec.toml --results out",
    ),
    command(
        "workers num-workers j parallel n-jobs num-jobs threads procs num-processes concurrency nproc processes max-parallel",
        "use `--jobs N` for N concurrent runs",
        "run spec.toml --workers 2",
        "run spec.toml --jobs 2",
    ),
    command(
        "override overrides param params p D P hparams hparam x opt-override s arg args",
        "use `--set KEY=VALUE`, once per key, such as `--set train.epochs=5`",
        "check spec.toml --override train.epochs=5",
        "check spec.toml --set train.epochs=5",
    ),
    command(
        "multirun m sweep sweeps search tune hparam-search grid",
        "values to try are in `[sweep.grid]` of the file; override them once with `--set 'sweep.grid.train.batch_size=[16, 32]'`",
        "check spec.toml --multirun",
        "check spec.toml --set sweep.grid.train.batch_size=[16,32]",
    ),
    command(
        "max-runs max-trials n-trials num-trials trials num-samples count limit",
        "use `--set sweep.limit=10`; `--only GLOB` selects runs by name",
        "check spec.toml --n-trials 10",
        "check spec.toml --set sweep.limit=10",
    ),
    command(
        "name experiment-name exp-name project project-name",
        "use `--set experiment.name=NAME` to name the experiment; `--only GLOB` selects runs by name",
        "run spec.toml --name x",
        "run spec.toml --set experiment.name=x",
    ),
    command(
        "run-id run-name trial runs select filter include match",
        "use `--only GLOB` to select runs, such as `--only '*seed*'`",
        "run spec.toml --filter *",
        "run spec.toml --only *",
    ),
    command(
        "force overwrite rerun no-cache clean fresh retrain",
        "a completed run with the same fingerprint is not trained again: move its folder away, or choose another `--results DIR`",
        "run spec.toml --force",
        "run spec.toml --results out",
    ),
    command(
        "retry-failed rerun-failed only-failed failed",
        "use `--retry failed`",
        "run spec.toml --retry-failed",
        "",
    ),
    command(
        "debug trace loglevel log-level level verbosity",
        "use `-v` or `-vv`, or `--log runner=debug`",
        "check spec.toml --debug",
        "check spec.toml -v",
    ),
    command(
        "silent no-progress q disable-progress-bar disable-tqdm",
        "use `--quiet`",
        "run spec.toml --silent",
        "run spec.toml --quiet",
    ),
    command(
        "no-color nocolor color colour plain",
        "set the environment variable `NO_COLOR=1`",
        "check spec.toml --no-color",
        "check spec.toml",
    ),
    command(
        "yes y assume-yes non-interactive batch-mode no-input",
        "remove it: there are no prompts",
        "run spec.toml --yes",
        "run spec.toml",
    ),
    command(
        "format output-format as",
        "use `--json`, or `--csv` or `--md` if the verb has them",
        "plan spec.toml --format json",
        "plan spec.toml --json",
    ),
    command(
        "wandb tensorboard mlflow logger report-to tb",
        "records can be exported afterwards: `runner export tensorboard FOLDER` or `runner export mlflow FOLDER`",
        "run spec.toml --wandb",
        "",
    ),
    command(
        "fail-fast ff exitfirst stop-on-error max-failures",
        "add `[on_failure.panic]` with `then = \"stop\"` in the file, or override it once with `--set on_failure.panic.then=stop`",
        "check spec.toml --fail-fast",
        "check spec.toml --set on_failure.panic.then=stop",
    ),
    command(
        "timeout max-time time-limit walltime",
        "use `--set limits.run=2h`, or `limits.experiment`",
        "check spec.toml --timeout 2h",
        "check spec.toml --set limits.run=2h",
    ),
    command(
        "early-stopping patience",
        "use `--set train.early_stopping.patience=5`",
        "check spec.toml --patience 5",
        "check spec.toml --set train.early_stopping.patience=2",
    ),
    command(
        "follow live tail",
        "`runner watch FOLDER` shows active runs",
        "run spec.toml --follow",
        "",
    ),
    command(
        "profile profiler profile-memory",
        "`runner memory SPEC` shows the memory of a run, and `runner describe SPEC` the cost of each layer",
        "run spec.toml --profile",
        "describe spec.toml",
    ),
];

/// Verbs.
pub const VERBS: &[Command] = &[
    command(
        "train fit start launch exec execute go sweep agent tune search optimize hpo resume continue multirun submit",
        "use `runner run SPEC`: it trains the runs that are not completed, and resumes those that were stopped",
        "train spec.toml",
        "run spec.toml",
    ),
    command(
        "validate lint verify dry-run dryrun test-config vet",
        "use `runner check SPEC`",
        "validate spec.toml",
        "check spec.toml",
    ),
    command(
        "preview explain show-plan expand steps",
        "use `runner plan SPEC`",
        "preview spec.toml",
        "plan spec.toml",
    ),
    command(
        "summary model arch inspect architecture layers graph params",
        "use `runner describe SPEC` for the network, `runner data SPEC` for the data, or `runner list FOLDER` for runs",
        "summary spec.toml",
        "describe spec.toml",
    ),
    command(
        "dataset eda stats profile columns head",
        "use `runner data SPEC`",
        "stats spec.toml",
        "data spec.toml",
    ),
    command(
        "test eval infer inference score",
        "use `runner evaluate RUN --data PATH` for metrics, or `runner predict RUN --data PATH` for predictions; the test split is evaluated at the end of each run",
        "infer results/spec",
        "",
    ),
    command(
        "ls status ps runs history jobs experiments log logs",
        "use `runner list FOLDER`, or `runner watch FOLDER` for active runs",
        "ls results",
        "list results",
    ),
    command(
        "results show leaderboard best analyze analyse plot html",
        "use `runner report FOLDER`, or `runner compare FOLDER`",
        "leaderboard results/spec",
        "report results/spec",
    ),
    command(
        "ui dashboard board server web tensorboard view open",
        "use `runner serve FOLDER` for reports in a browser, or `runner export tensorboard FOLDER` for TensorBoard's files",
        "dashboard results",
        "",
    ),
    command(
        "monitor follow tail top live",
        "use `runner watch FOLDER`",
        "monitor results",
        "watch results --once",
    ),
    command(
        "new create generate scaffold template quickstart wizard example",
        "use `runner init --data PATH` to create an experiment file",
        "new",
        "init",
    ),
    command(
        "config print-config cfg dump resolve compose flatten",
        "use `runner render SPEC`: the file with its layers, references and edits resolved",
        "resolve spec.toml",
        "render spec.toml",
    ),
    command(
        "gpus backends info hardware env doctor",
        "use `runner devices`",
        "gpus",
        "devices",
    ),
    command(
        "pack package archive save zip share",
        "use `runner bundle RUN_FOLDER`",
        "pack results",
        "",
    ),
    command(
        "replicate rerun replay repro",
        "use `runner reproduce PATH`",
        "replay results",
        "",
    ),
    command(
        "upload sync push log-to wandb mlflow",
        "use `runner export mlflow FOLDER`",
        "upload results",
        "",
    ),
    command(
        "rm delete remove prune gc purge",
        "use `runner clean FOLDER --keep N`, which shows the runs of earlier settings that it would remove",
        "rm results",
        "clean results --keep 3",
    ),
    command(
        "stop kill abort pause scancel",
        "press Ctrl-C in the terminal of `runner run`: runs save a checkpoint, and the same command resumes them; `runner cancel FOLDER` cancels jobs of a cluster",
        "stop results",
        "",
    ),
];

fn found(words: &[Command], word: &str) -> Option<String> {
    let wanted = plain(word);
    let has = |command: &&Command| {
        command
            .theirs
            .split(' ')
            .any(|theirs| plain(theirs) == wanted)
    };
    words
        .iter()
        .find(has)
        .map(|command| command.help.to_owned())
}

/// The remedy for a verb that `program` does not have. `known` are those that it has.
pub fn for_verb(program: &str, verb: &str, known: &[String]) -> Option<String> {
    if let Some(help) = found(VERBS, verb).filter(|_| program == "runner") {
        return Some(help);
    }
    if verb.ends_with(".yaml") || verb.ends_with(".yml") || verb.ends_with(".json") {
        return Some("start with a verb; experiments are TOML files: `runner init` creates one, `runner run FILE.toml` trains it".into());
    }
    if verb.ends_with(".toml") {
        return Some(format!(
            "start with a verb: `runner run {verb}`, or `runner check {verb}`"
        ));
    }
    if verb.contains('=') && !verb.starts_with('-') {
        return Some(
            "start with a verb and an experiment file: `runner run SPEC --set KEY=VALUE`"
                .to_owned(),
        );
    }
    let near = nearest(verb, known.iter().map(String::as_str))?;
    Some(format!("did you mean `{program} {near}`?"))
}

/// The remedy for an argument that a verb does not take, such as `--lr` or `train.epochs=5`. `known` are its flags.
pub fn for_argument(argument: &str, known: &[String]) -> Option<String> {
    let Some(flag) = argument.strip_prefix('-') else {
        return for_assignment(argument.trim_start_matches('+'));
    };
    let flag = flag.trim_start_matches('-');
    let (name, value) = match flag.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (flag, None),
    };
    if let Some(known) = known.iter().find(|known| plain(known) == plain(name)) {
        return Some(format!("did you mean `--{known}`?"));
    }
    if let Some(help) = found(FLAGS, name) {
        return Some(with_value(&help, value).unwrap_or(help));
    }
    // `--train.epochs=5`, as in Lightning and argparse.
    if name.contains('.') || full_path(&name.replace('-', "_")).is_some() {
        let assignment = format!("{}={}", name.replace('-', "_"), value.unwrap_or("VALUE"));
        return for_assignment(&assignment);
    }
    let near = nearest(name, known.iter().map(String::as_str))?;
    Some(format!("did you mean `--{near}`?"))
}

/// The help with the number that was written instead of that of its example; none if either has none.
fn with_value(help: &str, value: Option<&str>) -> Option<String> {
    let is_number = |text: &str| text.trim_matches(['[', ']']).parse::<f64>().is_ok();
    let value = value.filter(|value| is_number(value))?;
    let (assignment, rest) = help.strip_prefix("use `--set ")?.split_once('`')?;
    let (path, example) = assignment.split_once('=')?;
    let of_list = |value: &str| match (example.starts_with('['), value.starts_with('[')) {
        (true, false) => format!("[{value}]"),
        _ => value.to_owned(),
    };
    is_number(example).then(|| format!("use `--set {path}={}`{rest}", of_list(value)))
}

/// `key=value` without `--set`.
fn for_assignment(argument: &str) -> Option<String> {
    let (key, value) = argument.split_once('=')?;
    let key = key.trim_start_matches(['+', '~']);
    let top = key.split('.').next().unwrap_or(key);
    let path = if key_paths().iter().any(|path| path == key) {
        key.to_owned()
    } else {
        full_path(key).unwrap_or_else(|| key.to_owned())
    };
    let is_table = describe().iter().any(|doc| doc.key == top);
    if path == key && !is_table {
        return Some(
            "override keys with `--set KEY=VALUE`, with the dotted path of a key: `--set train.epochs=5`".to_owned(),
        );
    }
    let is_list = |value: &str| value.contains(',') && !value.contains(['[', '{', '"', '\'', '(']);
    if path != "experiment.seeds" && is_list(value) {
        // As Hydra's multirun has it.
        return Some(format!(
            "for an axis, use `--set 'sweep.grid.{path}=[{value}]'`"
        ));
    }
    let value = if path == "experiment.seeds" && !value.starts_with('[') {
        format!("[{value}]")
    } else {
        value.to_owned()
    };
    let quote = if value.contains([' ', '[', '{', '*', '"']) {
        "'"
    } else {
        ""
    };
    Some(format!("use `--set {quote}{path}={value}{quote}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedies_keep_the_value() {
        let remedy = |argument: &str| for_argument(argument, &[]).unwrap();
        assert_eq!(remedy("--epochs=3"), "use `--set train.epochs=3`");
        assert_eq!(remedy("--epochs"), "use `--set train.epochs=5`");
        assert!(remedy("--seed=3").starts_with("use `--set experiment.seeds=[3]`, a list"));
        assert!(remedy("--lr=3e-4").contains("=3e-4`"));
        // What is no number may be the next argument.
        assert_eq!(remedy("--epochs=spec.toml"), "use `--set train.epochs=5`");
    }
}
