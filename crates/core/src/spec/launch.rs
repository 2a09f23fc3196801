//! `[launch]`: where runs are trained: on this machine, or as jobs of a cluster. Not part of a run's identity.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::kind::{Bytes, Kind};
use super::section::{Section, choices};
use crate::diagnostic::Diagnostic;
use crate::show::show_duration;

/// The most runs that one job trains one after the other.
const MAX_RUNS_PER_JOB: i64 = 10_000;

/// The most jobs at once, and the most processors or devices of a job.
const MAX_COUNT: i64 = 1_000_000;

/// The `[launch]` table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LaunchSpec {
    /// What runs the jobs.
    #[serde(flatten)]
    pub system: System,
    /// Runs that one job trains one after the other; one if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_per_job: Option<usize>,
    /// Shell commands before the training, such as `module load cuda`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<String>,
}

/// What trains runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum System {
    /// This machine.
    Local(Local),
    /// A cluster with SLURM.
    Slurm(Slurm),
    /// Any other cluster, through commands.
    Command(Commands),
}

impl Default for System {
    fn default() -> Self {
        Self::Local(Local::default())
    }
}

/// What a run gets of this machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Local {
    /// GPUs of a run, any of those that are equal; if not set, the one that `backend.device` names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<usize>,
}

/// What a job of SLURM requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Slurm {
    /// The partition; that of the cluster if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// The account that is charged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The time limit of a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Duration>,
    /// How long before the time limit a job saves its checkpoint.
    pub grace: Duration,
    /// Processors of a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<usize>,
    /// GPUs of a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<usize>,
    /// Memory of a job in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The maximum number of concurrent jobs, if it is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_running: Option<usize>,
    /// More arguments of `sbatch`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
}

/// The commands of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Commands {
    /// Submits jobs, and prints the id of the job as the last word.
    pub submit: String,
    /// Prints the state of a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Cancels a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<String>,
    /// The environment variable that contains the number of an array's element; without it, each job is submitted
    /// separately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
}

choices! {
    /// What trains runs.
    pub enum SystemKind {
        Local "local" "Processes on this machine.",
        Slurm "slurm" "Job arrays of SLURM.",
        Command "command" "Jobs of any other cluster, through commands to submit, query and cancel them.",
    }
}

impl LaunchSpec {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let doc = "What trains the runs. `runner run --launch TYPE` overrides it.";
        s.variant(doc, Some(SystemKind::Local), |s, kind| match kind {
            SystemKind::Local => Self {
                system: System::Local(Local::decode(s)),
                ..Self::default()
            },
            SystemKind::Slurm => Self::of_jobs(s, |s| System::Slurm(Slurm::decode(s))),
            SystemKind::Command => Self::of_jobs(s, |s| System::Command(Commands::decode(s))),
        })
    }

    fn of_jobs(s: &mut Section<'_>, system: impl Fn(&mut Section<'_>) -> System) -> Self {
        let texts = || Kind::list(Kind::Text, 0);
        Self {
            system: system(s),
            runs_per_job: s
                .field(
                    "runs_per_job",
                    Kind::Int(1, MAX_RUNS_PER_JOB),
                    "Runs that one job trains one after the other: starting a job takes a cluster about a second, so short runs should share one. One when not set.",
                )
                .optional(),
            setup: s
                .field(
                    "setup",
                    texts(),
                    "Shell commands that a job executes first, such as `module load cuda`; if one fails, the job ends.",
                )
                .or(Vec::new()),
        }
    }

    /// The name of the system.
    pub fn kind(&self) -> SystemKind {
        match self.system {
            System::Local(_) => SystemKind::Local,
            System::Slurm(_) => SystemKind::Slurm,
            System::Command(_) => SystemKind::Command,
        }
    }

    /// The same with another system. Settings of the file's own type are kept; `None` if the other one needs settings
    /// that the file does not have.
    pub fn on(&self, kind: SystemKind) -> Option<Self> {
        if self.kind() == kind {
            return Some(self.clone());
        }
        match kind {
            SystemKind::Local => Some(Self {
                system: System::Local(Local {
                    gpus: self.gpus().filter(|num| *num == 1),
                }),
                ..Self::default()
            }),
            SystemKind::Slurm => Some(Self {
                system: System::Slurm(Slurm {
                    grace: GRACE,
                    ..Slurm::default()
                }),
                ..Self::default()
            }),
            SystemKind::Command => None,
        }
    }

    /// Whether runs are trained on this machine.
    pub fn is_local(&self) -> bool {
        matches!(self.system, System::Local(_))
    }

    /// The GPUs of a run or job, if the file says so.
    pub fn gpus(&self) -> Option<usize> {
        match &self.system {
            System::Local(local) => local.gpus,
            System::Slurm(slurm) => slurm.gpus,
            System::Command(_) => None,
        }
    }
}

/// How long before its time limit a job saves a checkpoint by default.
const GRACE: Duration = Duration::from_secs(120);

impl Local {
    fn decode(s: &mut Section<'_>) -> Self {
        let gpus = s
            .field(
                "gpus",
                Kind::Int(1, MAX_COUNT),
                "1: each run on `cuda` or `rocm` gets one of the GPUs of this machine that are equal to the first one, so that several train at once, each on its own. When not set, all train on the GPU that `backend.device` names.",
            )
            .optional();
        if let Some((num, at)) = gpus.filter(|num| *num > 1).zip(s.written_at("gpus")) {
            let message = format!("`gpus` is {num}, but a run trains on one GPU");
            let wrong = Diagnostic::error("out-of-range", message).at(at);
            let help = "set `gpus = 1`: as many runs as there are GPUs train at once";
            s.refuse("gpus", wrong.help(help));
        }
        Self { gpus }
    }
}

impl Slurm {
    fn decode(s: &mut Section<'_>) -> Self {
        let slurm = Self::read(s);
        slurm.check_grace(s);
        slurm.check_arguments(s);
        slurm
    }

    fn read(s: &mut Section<'_>) -> Self {
        let span = |allows_zero| Kind::Duration { allows_zero };
        let count = || Kind::Int(1, MAX_COUNT);
        Self {
            partition: s
                .field("partition", Kind::Text, "The partition; that of the cluster when not set.")
                .optional(),
            account: s.field("account", Kind::Text, "The account that is charged.").optional(),
            time: s
                .field(
                    "time",
                    span(false),
                    "The time limit of a job. A run that needs more saves a checkpoint in time, is queued again and resumes. SLURM counts whole minutes.",
                )
                .optional(),
            grace: s
                .field(
                    "grace",
                    span(false),
                    "How long before the time limit a job saves its checkpoint. SLURM may be up to a minute late.",
                )
                .or(GRACE),
            cpus: s.field("cpus", count(), "Processors of a job, which are the threads of its run.").optional(),
            gpus: s.field("gpus", count(), "GPUs of a job.").optional(),
            memory_bytes: s
                .field("memory", Kind::Bytes, "Memory of a job, such as `16GiB`.")
                .optional()
                .map(|Bytes(bytes)| bytes),
            max_running: s
                .field(
                    "max_running",
                    Kind::Int(1, MAX_COUNT),
                    "The maximum number of jobs that run at once; without it, the cluster decides.",
                )
                .optional(),
            arguments: s
                .field(
                    "arguments",
                    Kind::list(Kind::Text, 0),
                    "More arguments of `sbatch`, such as `--qos=long`.",
                )
                .or(Vec::new()),
        }
    }
}

impl Slurm {
    /// The time limit as SLURM counts it.
    pub fn minutes(time: Duration) -> u64 {
        time.as_secs().div_ceil(60).max(1)
    }

    /// Refuses a job that would have to save its checkpoint as soon as it starts.
    fn check_grace(&self, s: &mut Section<'_>) {
        let Some(time) = self.time else {
            return;
        };
        let limit = Duration::from_secs(60 * Self::minutes(time));
        let at = s.written_at("grace").or(s.written_at("time"));
        let (Some(at), true) = (at, self.grace >= limit) else {
            return;
        };
        let message = format!(
            "a job of {} would save its checkpoint {} before its end, which is before it trains",
            show_duration(limit),
            show_duration(self.grace)
        );
        let wrong = Diagnostic::error("contradiction", message).at(at);
        let shorter = show_duration(limit / 4);
        let help = format!("set `grace = \"{shorter}\"` or shorter, or a longer `time`");
        s.refuse("grace", wrong.help(help));
    }

    /// Refuses options that runner sets itself, or that have a key.
    fn check_arguments(&self, s: &mut Section<'_>) {
        let Some(at) = s.written_at("arguments") else {
            return;
        };
        for argument in &self.arguments {
            let name = option_of(argument);
            let own = OWN_OPTIONS.iter().find(|names| names.contains(&name));
            let keyed = KEYED_OPTIONS
                .iter()
                .find(|(names, _)| names.contains(&name));
            let (why, help) = match (own, keyed) {
                (Some(_), _) => (
                    "runner sets it itself, or relies on what it changes".to_owned(),
                    "remove it".to_owned(),
                ),
                (_, Some((_, key))) => (
                    format!("`launch.{key}` is the key for it"),
                    format!("remove it, and set `{key}` in `[launch]`"),
                ),
                _ => continue,
            };
            let message = format!("`launch.arguments` must not contain `{name}`: {why}");
            let wrong = Diagnostic::error("contradiction", message).at(at);
            s.refuse("arguments", wrong.help(help));
            return;
        }
    }
}

/// Options of `sbatch` on which submission, output, signals and requeueing of jobs depend.
const OWN_OPTIONS: [&[&str]; 10] = [
    &["--array", "-a"],
    &["--job-name", "-J"],
    &["--output", "-o"],
    &["--open-mode"],
    &["--parsable"],
    &["--requeue", "--no-requeue"],
    &["--signal"],
    &["--test-only"],
    &["--wait", "-W"],
    &["--wrap"],
];

/// Options of `sbatch` with the key that sets them.
const KEYED_OPTIONS: [(&[&str], &str); 6] = [
    (&["--partition", "-p"], "partition"),
    (&["--account", "-A"], "account"),
    (&["--time", "-t"], "time"),
    (&["--cpus-per-task", "-c"], "cpus"),
    (&["--gpus", "-G"], "gpus"),
    (&["--mem"], "memory"),
];

/// The name of the option in an argument of `sbatch`: `--name=value`, `-n value` or `-nvalue`.
fn option_of(argument: &str) -> &str {
    if argument.starts_with("--") {
        return argument.split('=').next().unwrap_or(argument);
    }
    let is_short = argument.starts_with('-') && argument.is_char_boundary(2);
    if is_short { &argument[..2] } else { argument }
}

impl Commands {
    fn decode(s: &mut Section<'_>) -> Self {
        let submit: String = s
                .field(
                    "submit",
                    Kind::Text,
                    "The shell command that submits jobs and prints the id of the job as its last word. `{script}` is the script, `{name}` a name, `{log}` a file for its output, `{element}` the number of the job; with `index`, `{last}` is the number of the last element and `{count}` how many there are.",
                )
                .required();
        if !submit.contains("{script}")
            && !s.is_refused("submit")
            && let Some(span) = s.written_at("submit")
        {
            let message = "`launch.submit` does not submit the script of the jobs";
            let wrong = Diagnostic::error("out-of-range", message).at(span);
            let help = "add `{script}` where the command expects the script, as in `qsub {script}`";
            s.refuse("submit", wrong.help(help));
        }
        let commands = Self {
            submit,
            status: s
                .field(
                    "status",
                    Kind::Text,
                    "The shell command that prints the state of `{job}`: `queued` or `running`, for arrays one line `NUMBER queued` or `NUMBER running` for each element; nothing once it has ended.",
                )
                .optional(),
            cancel: s.field("cancel", Kind::Text, "The shell command that cancels `{job}`.").optional(),
            index: s
                .field(
                    "index",
                    Kind::Text,
                    "The environment variable with the number of an array's element, from 0, such as `PBS_ARRAY_INDEX`. When set, all jobs are submitted at once.",
                )
                .optional(),
        };
        commands.check(s);
        commands
    }

    /// Refuses placeholders that are missing, or would be filled in with nothing useful.
    fn check(&self, s: &mut Section<'_>) {
        let has = |name: &str| self.submit.contains(name);
        let is_array = self.index.is_some();
        let counts = has("{last}") || has("{count}");
        let mut refuse = |key: &str, message: &str, help: &str| {
            if let Some(at) = s.written_at(key).filter(|_| !s.is_refused(key)) {
                let wrong = Diagnostic::error("out-of-range", message).at(at);
                s.refuse(key, wrong.help(help));
            }
        };
        if is_array && !counts {
            refuse(
                "submit",
                "`launch.submit` does not say how many jobs the array has",
                "add `{last}`, the number of the last one, or `{count}`, as in `qsub -J 0-{last} {script}`; or remove `index`, so that each job is submitted separately",
            );
        } else if !is_array && counts {
            refuse(
                "submit",
                "`{last}` and `{count}` are of an array, and without `launch.index` each job is submitted separately",
                "set `index` to the variable with the number of an array's element, such as \"PBS_ARRAY_INDEX\", or remove them",
            );
        } else if is_array && has("{element}") {
            refuse(
                "submit",
                "`{element}` is the same for all jobs of an array",
                "remove it: the number of a job is in the variable of `launch.index`",
            );
        }
        let commands = [("status", &self.status), ("cancel", &self.cancel)];
        for (key, command) in commands {
            if command.as_ref().is_some_and(|it| !it.contains("{job}")) {
                refuse(
                    key,
                    &format!("`launch.{key}` does not name the job"),
                    "add `{job}` where the command expects the id of the job",
                );
            }
        }
        let is_name = |name: &str| {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            name.chars().all(is_part) && !name.starts_with(|c: char| c.is_ascii_digit())
        };
        if self.index.as_ref().is_some_and(|name| !is_name(name)) {
            refuse(
                "index",
                "`launch.index` is not the name of an environment variable",
                "write the name alone, such as \"PBS_ARRAY_INDEX\", without `$` and braces",
            );
        }
    }
}
