//! Verbs, flags and arguments that other programs have.

use super::{full_path, plain};
use crate::diagnostic::nearest;
use crate::spec::{describe, key_paths};

/// A word of the command line and what to write instead.
pub struct Command {
    /// The words, with blanks between several; flags without their dashes.
    pub theirs: &'static str,
    /// What to do.
    pub help: &'static str,
    /// A wrong command, without the program, for a file `spec.toml`.
    pub wrong: &'static str,
    /// The right one; empty where none takes its place.
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

/// Flags, whatever the verb.
pub const FLAGS: &[Command] = &[
    command(
        "dry-run dryrun just-print simulate no-exec",
        "`runner plan SPEC` shows the runs and trains nothing; `runner check SPEC` only looks for mistakes",
        "run spec.toml --dry-run",
        "plan spec.toml",
    ),
    command(
        "resume continue auto-resume restart-from resume-from-checkpoint r ckpt checkpoint ckpt-path",
        "`runner run SPEC` resumes by itself: completed runs are skipped, and others go on from their newest checkpoint",
        "run spec.toml --resume",
        "run spec.toml",
    ),
    command(
        "device gpu gpus accelerator cuda use-gpu backend devices d",
        "write `--set backend.device=auto` for the best device that is there; `runner devices` lists them",
        "check spec.toml --device cuda",
        "check spec.toml --set backend.device=auto",
    ),
    command(
        "cpu no-cuda no-gpu use-cpu",
        "write `--set backend.device=flex`",
        "check spec.toml --cpu",
        "check spec.toml --set backend.device=flex",
    ),
    command(
        "mps metal",
        "write `--set backend.device=metal`, in a build with that backend; `runner devices` lists what is there",
        "check spec.toml --mps",
        "check spec.toml --set backend.device=metal",
    ),
    command(
        "precision amp fp16 bf16 half mixed-precision dtype",
        "write `--set backend.precision=f32`, or bf16 or f16 for all numbers: there is no mixed precision",
        "check spec.toml --amp",
        "check spec.toml --set backend.precision=f32",
    ),
    command(
        "epochs max-epochs num-epochs n-epochs num-train-epochs e",
        "write `--set train.epochs=5`",
        "check spec.toml --epochs 5",
        "check spec.toml --set train.epochs=5",
    ),
    command(
        "lr learning-rate base-lr",
        "write `--set optimizer.learning_rate=1e-3`",
        "check spec.toml --lr 1e-3",
        "check spec.toml --set optimizer.learning_rate=1e-3",
    ),
    command(
        "batch-size bs per-device-train-batch-size train-batch-size b batch",
        "write `--set train.batch_size=32`",
        "check spec.toml --batch-size 32",
        "check spec.toml --set train.batch_size=32",
    ),
    command(
        "seed random-seed random-state seeds",
        "write `--set experiment.seeds=[1]`, a list with a run of each trial for each",
        "check spec.toml --seed 1",
        "check spec.toml --set experiment.seeds=[1]",
    ),
    command(
        "optimizer optim opt",
        "write `--set optimizer.type=adamw`",
        "check spec.toml --optimizer adamw",
        "check spec.toml --set optimizer.type=adamw",
    ),
    command(
        "model arch network",
        "write `--set model.type=mlp`",
        "check spec.toml --model mlp",
        "check spec.toml --set model.type=mlp",
    ),
    command(
        "weight-decay wd",
        "write `--set optimizer.weight_decay=1e-2`",
        "check spec.toml --wd 1e-2",
        "check spec.toml --set optimizer.weight_decay=1e-2",
    ),
    command(
        "dropout",
        "write `--set model.dropout=0.1`",
        "check spec.toml --dropout 0.1",
        "check spec.toml --set model.dropout=0.1",
    ),
    command(
        "data data-dir dataset data-path root input",
        "the data is named in `[data]` of the file: `--set data.path=FILE` for this time, and `runner init --data PATH` writes a first file",
        "check spec.toml --dataset iris",
        "check spec.toml --set data.type=iris",
    ),
    command(
        "config config-name config-path c spec f file experiment exp cfg conf config-dir",
        "the experiment file is given as it is: `runner run SPEC`",
        "check --config spec.toml",
        "check spec.toml",
    ),
    command(
        "output output-dir out-dir o out logdir log-dir save-dir results-dir workdir work-dir default-root-dir outdir save-path",
        "results go below `--results DIR`",
        "run spec.toml --output-dir out",
        "run spec.toml --results out",
    ),
    command(
        "workers num-workers j parallel n-jobs num-jobs threads procs num-processes concurrency nproc processes max-parallel",
        "write `--jobs N`: how many runs there are at once",
        "run spec.toml --workers 2",
        "run spec.toml --jobs 2",
    ),
    command(
        "override overrides param params p D P hparams hparam x opt-override s arg args",
        "write `--set KEY=VALUE`, once for each key, such as `--set train.epochs=5`",
        "check spec.toml --override train.epochs=5",
        "check spec.toml --set train.epochs=5",
    ),
    command(
        "multirun m sweep sweeps search tune hparam-search grid",
        "values to try are in `[sweep.grid]` of the file, or for this time `--set 'sweep.grid.train.batch_size=[16, 32]'`",
        "check spec.toml --multirun",
        "check spec.toml --set sweep.grid.train.batch_size=[16,32]",
    ),
    command(
        "max-runs max-trials n-trials num-trials trials num-samples count limit",
        "write `--set sweep.limit=10`; `--only GLOB` picks runs by their names",
        "check spec.toml --n-trials 10",
        "check spec.toml --set sweep.limit=10",
    ),
    command(
        "run-id run-name name trial runs select filter include match",
        "write `--only GLOB` for some of the runs, such as `--only '*seed*'`",
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
        "write `--retry failed`",
        "run spec.toml --retry-failed",
        "",
    ),
    command(
        "debug trace loglevel log-level level verbosity",
        "write `-v` or `-vv`, or `--log runner=debug`",
        "check spec.toml --debug",
        "check spec.toml -v",
    ),
    command(
        "silent no-progress q disable-progress-bar disable-tqdm",
        "write `--quiet`",
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
        "leave it out: nothing is asked",
        "run spec.toml --yes",
        "run spec.toml",
    ),
    command(
        "format output-format as",
        "write `--json`, or `--csv` or `--md` where the verb has them",
        "plan spec.toml --format json",
        "plan spec.toml --json",
    ),
    command(
        "wandb tensorboard mlflow logger report-to tb",
        "records are exported afterwards: `runner export tensorboard FOLDER` or `runner export mlflow FOLDER`",
        "run spec.toml --wandb",
        "",
    ),
    command(
        "fail-fast ff exitfirst stop-on-error max-failures",
        "write `[on_failure.panic]` with `then = \"stop\"` in the file, or for this time `--set on_failure.panic.then=stop`",
        "check spec.toml --fail-fast",
        "check spec.toml --set on_failure.panic.then=stop",
    ),
    command(
        "timeout max-time time-limit walltime",
        "write `--set limits.run=2h`, or `limits.experiment`",
        "check spec.toml --timeout 2h",
        "check spec.toml --set limits.run=2h",
    ),
    command(
        "early-stopping patience",
        "write `--set train.early_stopping.patience=5`",
        "check spec.toml --patience 2",
        "check spec.toml --set train.early_stopping.patience=2",
    ),
    command(
        "follow live tail",
        "`runner watch FOLDER` shows runs under way",
        "run spec.toml --follow",
        "",
    ),
    command(
        "profile profiler profile-memory",
        "`runner memory SPEC` shows what a run holds, and `runner describe SPEC` what each layer costs",
        "run spec.toml --profile",
        "describe spec.toml",
    ),
];

/// Verbs.
pub const VERBS: &[Command] = &[
    command(
        "train fit start launch exec execute go sweep agent tune search optimize hpo resume continue multirun submit",
        "write `runner run SPEC`: it trains what is not completed yet, and resumes what was stopped",
        "train spec.toml",
        "run spec.toml",
    ),
    command(
        "validate lint verify dry-run dryrun test-config vet",
        "write `runner check SPEC`",
        "validate spec.toml",
        "check spec.toml",
    ),
    command(
        "preview explain show-plan expand steps",
        "write `runner plan SPEC`",
        "preview spec.toml",
        "plan spec.toml",
    ),
    command(
        "summary model arch inspect architecture layers graph params",
        "write `runner describe SPEC` for the network, `runner data SPEC` for the data, or `runner list FOLDER` for runs",
        "summary spec.toml",
        "describe spec.toml",
    ),
    command(
        "dataset eda stats profile columns head",
        "write `runner data SPEC`",
        "stats spec.toml",
        "data spec.toml",
    ),
    command(
        "test eval evaluate predict infer inference score",
        "write `runner run SPEC`: the test split is measured at the end of each run; nothing is predicted afterwards",
        "evaluate spec.toml",
        "run spec.toml",
    ),
    command(
        "ls status ps runs history jobs experiments log logs",
        "write `runner list FOLDER`, or `runner watch FOLDER` for runs under way",
        "ls results",
        "list results",
    ),
    command(
        "results show leaderboard best analyze analyse plot html",
        "write `runner report FOLDER`, or `runner compare FOLDER`",
        "leaderboard results/spec",
        "report results/spec",
    ),
    command(
        "ui dashboard board server web tensorboard view open",
        "write `runner serve FOLDER` for reports in a browser, or `runner export tensorboard FOLDER` for TensorBoard's files",
        "dashboard results",
        "",
    ),
    command(
        "monitor follow tail top live",
        "write `runner watch FOLDER`",
        "monitor results",
        "watch results --once",
    ),
    command(
        "new create generate scaffold template quickstart wizard example",
        "write `runner init --data PATH`: a first experiment file",
        "new",
        "init",
    ),
    command(
        "config print-config cfg dump resolve compose flatten",
        "write `runner render SPEC`: the file with its layers, references and edits put together",
        "resolve spec.toml",
        "render spec.toml",
    ),
    command(
        "gpus backends info hardware env doctor",
        "write `runner devices`",
        "gpus",
        "devices",
    ),
    command(
        "pack package archive save zip share",
        "write `runner bundle RUN_FOLDER`",
        "pack results",
        "",
    ),
    command(
        "replicate rerun replay repro",
        "write `runner reproduce PATH`",
        "replay results",
        "",
    ),
    command(
        "upload sync push log-to wandb mlflow",
        "write `runner export mlflow FOLDER`",
        "upload results",
        "",
    ),
    command(
        "clean rm delete remove prune gc purge",
        "nothing is deleted by this program: remove the folder of a run or of an experiment yourself",
        "clean results",
        "",
    ),
    command(
        "stop kill cancel abort pause",
        "press Ctrl-C in the terminal of `runner run`: runs save a checkpoint, and the same command resumes them",
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

/// What to do about a verb that `program` does not have. `known` are those that it has.
pub fn for_verb(program: &str, verb: &str, known: &[String]) -> Option<String> {
    if let Some(help) = found(VERBS, verb).filter(|_| program == "runner") {
        return Some(help);
    }
    if verb.ends_with(".yaml") || verb.ends_with(".yml") || verb.ends_with(".json") {
        return Some("a verb comes first, and experiments are TOML files: `runner init` writes one, `runner run FILE.toml` trains it".into());
    }
    if verb.ends_with(".toml") {
        return Some(format!(
            "a verb comes first: `runner run {verb}`, or `runner check {verb}`"
        ));
    }
    if verb.contains('=') && !verb.starts_with('-') {
        return Some(
            "a verb and an experiment file come first: `runner run SPEC --set KEY=VALUE`"
                .to_owned(),
        );
    }
    let near = nearest(verb, known.iter().map(String::as_str))?;
    Some(format!("did you mean `{program} {near}`?"))
}

/// What to do about an argument that a verb does not take, such as `--lr` or `train.epochs=5`. `known` are the flags that
/// it takes.
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
        return Some(help);
    }
    // `--train.epochs=5`, as Lightning and argparse have it.
    if name.contains('.') || full_path(&name.replace('-', "_")).is_some() {
        let assignment = format!("{}={}", name.replace('-', "_"), value.unwrap_or("VALUE"));
        return for_assignment(&assignment);
    }
    let near = nearest(name, known.iter().map(String::as_str))?;
    Some(format!("did you mean `--{near}`?"))
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
            "edits of the file are given as `--set KEY=VALUE`, with the dotted path of a key: `--set train.epochs=5`".to_owned(),
        );
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
    Some(format!("write `--set {quote}{path}={value}{quote}`"))
}
