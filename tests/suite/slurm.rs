//! Runs as jobs of SLURM, whose programs are stood in for by scripts; `.ci/slurm` uses the real ones.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value as Json;

use super::clusters::{runs_of_submissions, until_epoch};
use super::edit::Edit;
use super::support::processes::signal;
use super::support::{IRIS, SLOW, completed, folder_with, numbers, runner, texts};

/// The queue is a folder with a file for each element of an array: `ARRAY_ELEMENT` contains what `squeue` prints.
const SBATCH: &str = r#"
[ "$1" = --version ] && exec echo slurm 22.05.8
printf '%s\n' "$@" >>arguments
script= first=
for word; do
    case $word in
        --array=*) last=${word#--array=0-}; last=${last%%%*} ;;
        --output=*) log=${word#--output=} ;;
        --job-name=*) name=${word#--job-name=} ;;
        --partition=nowhere) echo "sbatch: error: invalid partition specified: nowhere" >&2; exit 1 ;;
        --*) ;;
        *) if [ -z "$script" ]; then script=$word; else first=$word; fi ;;
    esac
done
id=1
until mkdir id-$id 2>/dev/null; do id=$((id + 1)); done
for element in $(seq 0 $last); do
    printf '%s\n' "$script" "$first" "${log%/*}" >job/${id}_$element
    echo "$name|$id|$element|PENDING|Priority" >queue/${id}_$element
done
[ -e is_automatic ] && setsid sh ./node >/dev/null 2>&1 &
echo $id
"#;

/// Executes the jobs that wait, as the only node of the cluster.
const NODE: &str = r#"
for path in queue/*; do
    job=${path#queue/}
    if grep -q PENDING queue/$job; then
        { read -r script; read -r first; read -r logs; } <job/$job
        sed -i 's/PENDING.*/RUNNING|None/' queue/$job
        export SLURM_ARRAY_JOB_ID=${job%_*} SLURM_ARRAY_TASK_ID=${job#*_}
        sh "$script" "$first" >>$logs/$job.log 2>&1 </dev/null &
        echo $! >pid.$job
        if wait $!; then state=COMPLETED; else state=FAILED; fi
        if [ -e requeue.$job ]; then rm requeue.$job; state=PENDING; fi
        # What the cluster says about the first end of a job, if the test has decided it.
        if [ -e ends_as ]; then state=$(cat ends_as); rm ends_as; fi
        sed -i "s/RUNNING.*/$state|None/" queue/$job
    fi
done
"#;

const SQUEUE: &str = r#"
[ -e is_down ] && { echo "slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2; exit 1; }
for word; do case $word in --name=*) names=${word#--name=} ;; esac; done
grep -h -E 'PENDING|RUNNING' queue/* | while read -r line; do
    case ,$names, in *,"${line%%|*}",*) echo "$line" ;; esac
done
true
"#;

const SCONTROL: &str = r#"
case $1 in
    requeue) touch requeue.$2 ;;
    show)
        [ $2 = config ] && exec echo 'MaxArraySize            = 2'
        for path in queue/$3_*; do
            IFS='|' read -r name id element state reason <$path
            echo "JobId=9$element ArrayJobId=$id ArrayTaskId=$element JobName=$name JobState=$state Reason=$reason"
        done ;;
esac
"#;

const SCANCEL: &str = r#"
for path in queue/$1_*; do
    grep -q RUNNING $path && kill -TERM $(cat pid.${path#queue/})
    sed -i 's/PENDING.*/CANCELLED|None/' $path
done
"#;

pub(super) const LAUNCH: &str = r#"
[launch]
type = "slurm"
time = "90m"
gpus = 1
memory = "1GiB"
max_running = 6
"#;

pub(super) const SEEDS: &str = "\n[experiment]\nseeds = [1, 2, 3]\n";

/// A cluster in the folder of an experiment.
pub(super) struct Cluster {
    folder: tempfile::TempDir,
    programs: PathBuf,
}

impl Cluster {
    pub(super) fn new(spec: &str) -> Self {
        let folder = folder_with(spec);
        let programs = folder.path().join("programs");
        for name in ["programs", "queue", "job"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("node"), NODE).unwrap();
        let no_accounts = "echo Slurm accounting storage is disabled >&2; exit 1";
        let scripts = [
            ("sbatch", SBATCH),
            ("squeue", SQUEUE),
            ("scontrol", SCONTROL),
            ("scancel", SCANCEL),
            ("sacct", no_accounts),
        ];
        for (name, script) in scripts {
            let path = programs.join(name);
            let home = folder.path().display();
            fs::write(&path, format!("#!/bin/sh\ncd '{home}' || exit 1\n{script}")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self { folder, programs }
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn with_programs<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", self.programs.display()))
    }

    pub(super) fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let mut command = runner(self.path());
        texts(
            &self
                .with_programs(&mut command)
                .args(arguments)
                .output()
                .unwrap(),
        )
    }

    /// Executes a command that must succeed; returns what it says.
    pub(super) fn go(&self, arguments: &[&str]) -> String {
        let (code, stdout, stderr) = self.run(arguments);
        assert_eq!(code, 0, "{arguments:?}: {stdout}{stderr}");
        stdout + &stderr
    }

    /// Whether each job starts as soon as it is submitted.
    pub(super) fn starts_jobs(&self) {
        fs::write(self.path().join("is_automatic"), "").unwrap();
    }

    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    fn node(&self) -> Child {
        let mut node = Command::new("sh");
        let node = node.arg("node").current_dir(self.path());
        self.with_programs(node).spawn().unwrap()
    }

    /// Executes the jobs that wait.
    pub(super) fn execute(&self) {
        assert!(self.node().wait().unwrap().success());
    }

    /// The process of a job.
    fn process(&self, job: &str) -> u32 {
        let text = fs::read_to_string(self.path().join(format!("pid.{job}"))).unwrap();
        text.trim().parse().unwrap()
    }

    fn states(&self) -> Vec<String> {
        let rows = self.go(&["list", "--json"]);
        let rows = rows.lines().filter(|line| line.starts_with('{'));
        let rows = rows.map(|row| serde_json::from_str::<Json>(row).unwrap());
        rows.map(|row| row["outcome"].as_str().unwrap().to_owned())
            .collect()
    }
}

#[test]
fn arrays_give_the_numbers_of_a_local_run() {
    let text = format!("{IRIS}{SEEDS}");
    let local = completed(&text, &[]);
    let cluster = Cluster::new(&format!("{text}{LAUNCH}"));
    let said = cluster.go(&["run", "spec.toml"]);
    // The cluster accepts arrays of two.
    let wanted = "submitted 3 runs in 3 jobs as jobs 1 to 2";
    assert!(said.contains(wanted), "{said}");
    let arguments = fs::read_to_string(cluster.path().join("arguments")).unwrap();
    for argument in [
        "--array=0-1%3",
        "--array=0-0%3",
        "--time=90",
        "--gpus=1",
        "--mem=1024M",
        "--signal=B:USR1@120",
        "--requeue",
    ] {
        assert!(arguments.lines().any(|it| it == argument), "{arguments}");
    }
    assert_eq!(cluster.states(), ["queued"; 3]);
    cluster.execute();
    assert_eq!(cluster.states(), ["completed"; 3]);
    assert_eq!(numbers(local.path()), numbers(cluster.path()));
    let said = cluster.go(&["run", "spec.toml"]);
    assert!(said.contains("3 of 3 runs completed"), "{said}");
    assert!(!said.contains("submitted"), "{said}");
}

#[test]
fn refusals_of_the_cluster_are_shown() {
    let nowhere = LAUNCH.edit("gpus = 1", "partition = \"nowhere\"");
    let cluster = Cluster::new(&format!("{IRIS}{nowhere}"));
    let (code, _, said) = cluster.run(&["run", "spec.toml"]);
    assert_eq!(code, 1, "{said}");
    let words = "the cluster accepted no job: sbatch: error: invalid partition specified: nowhere";
    assert!(said.contains(words), "{said}");
    assert_eq!(cluster.states(), ["not started"]);
    // Without the programs of SLURM.
    fs::remove_file(cluster.programs.join("sbatch")).unwrap();
    let output = runner(cluster.path())
        .args(["run", "spec.toml"])
        .env("PATH", &cluster.programs)
        .output();
    let (code, _, said) = texts(&output.unwrap());
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("the program `sbatch` was not found"),
        "{said}"
    );
    assert!(said.contains("--launch local"), "{said}");
    // Nothing is followed where nothing is submitted.
    let (code, _, said) = cluster.run(&["run", "spec.toml", "--launch", "local", "--follow"]);
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("`--follow` waits for the jobs of a cluster"),
        "{said}"
    );
}

#[test]
fn jobs_that_end_before_they_train_say_why() {
    let setup = "setup = [\"echo loading\", \"missing-command cuda\"]\n";
    let cluster = Cluster::new(&format!("{IRIS}{SEEDS}{LAUNCH}{setup}"));
    cluster.starts_jobs();
    let (code, _, said) = cluster.run(&["run", "spec.toml", "--follow"]);
    assert_eq!(code, 1, "{said}");
    let wanted = "job 1_0 ended as FAILED and did not begin 1 run; its output ends with `";
    assert!(said.contains(wanted), "{said}");
    assert!(said.contains("missing-command: not found` ("), "{said}");
    assert!(
        said.contains("; the same applies to 2 other jobs"),
        "{said}"
    );
    assert_eq!(cluster.states(), ["not started"; 3]);
}

#[test]
fn a_job_at_its_time_limit_is_queued_again() {
    let straight = completed(SLOW, &[]);
    let cluster = Cluster::new(&format!("{SLOW}{LAUNCH}"));
    cluster.go(&["run", "spec.toml"]);
    let mut node = cluster.node();
    until_epoch(cluster.path(), 3);
    // SLURM sends it before the limit; the second one comes while the job saves.
    let job = cluster.process("1_0");
    signal("-USR1", job);
    signal("-TERM", job);
    assert!(node.wait().unwrap().success());
    assert_eq!(cluster.states(), ["requeued"]);
    let board = cluster.go(&["watch", "--once"]);
    assert!(board.contains("  requeued"), "{board}");
    cluster.execute();
    assert_eq!(cluster.states(), ["completed"]);
    let logs = cluster.path().join("results/spec/launch");
    let logs = fs::read_dir(logs).unwrap().flatten();
    let log = logs
        .map(|it| it.path().join("1_0.log"))
        .find(|it| it.is_file());
    let log = fs::read_to_string(log.unwrap()).unwrap();
    assert!(log.contains("job 1_0 is queued again"), "{log}");
    assert_eq!(numbers(straight.path()), numbers(cluster.path()));
    let events = cluster
        .path()
        .join("results/spec/runs/base-s1/events.jsonl");
    let events = fs::read_to_string(events).unwrap();
    assert_eq!(events.matches("\"run_started\"").count(), 2, "{events}");
}

#[test]
fn a_job_that_its_limit_killed_has_the_retries_of_timeouts() {
    let straight = completed(SLOW, &[]);
    let retried = "\n[on_failure.timeout]\nretries = 1\n";
    let cluster = Cluster::new(&format!("{SLOW}{LAUNCH}{retried}"));
    fs::write(cluster.path().join("ends_as"), "TIMEOUT").unwrap();
    cluster.starts_jobs();
    let mut command = runner(cluster.path());
    let command = cluster.with_programs(&mut command);
    let follower = command
        .args(["run", "spec.toml", "--follow"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let follower = follower.spawn().unwrap();
    until_epoch(cluster.path(), 3);
    signal("-KILL", cluster.process("1_0"));
    let (code, _, said) = texts(&follower.wait_with_output().unwrap());
    assert_eq!(code, 0, "{said}");
    let failed = "base-s1 failed (timeout): job 1_0 ended as TIMEOUT";
    assert!(said.contains(failed), "{said}");
    assert!(said.contains("as job 2"), "{said}");
    assert_eq!(numbers(straight.path()), numbers(cluster.path()));
}

#[test]
fn how_jobs_end_is_how_their_runs_fail() {
    let cluster = Cluster::new(&format!("{SLOW}{LAUNCH}").edit("epochs = 40", "epochs = 4000"));
    let ends = [
        ("NODE_FAIL", "node_failure"),
        ("OUT_OF_MEMORY", "out_of_memory"),
        ("FAILED", "killed"),
        ("CANCELLED", "cancelled"),
    ];
    cluster.go(&["run", "spec.toml"]);
    for (number, (state, class)) in (1..).zip(ends) {
        fs::write(cluster.path().join("ends_as"), state).unwrap();
        let mut node = cluster.node();
        until_epoch(cluster.path(), 3 * number);
        signal("-KILL", cluster.process(&format!("{number}_0")));
        assert!(node.wait().unwrap().success());
        // A controller that is down says nothing: the run has not failed.
        let down = cluster.path().join("is_down");
        fs::write(&down, "").unwrap();
        let said = cluster.go(&["run", "spec.toml"]);
        assert!(
            said.contains("Unable to contact slurm controller"),
            "{said}"
        );
        assert!(said.contains("1 run already queued or running"), "{said}");
        fs::remove_file(down).unwrap();
        let said = cluster.go(&["run", "spec.toml"]);
        let failed = format!("base-s1 failed ({class}): job {number}_0 ended as {state}");
        assert!(said.contains(&failed), "{said}");
        let next = format!("submitted 1 run in 1 job as job {}", number + 1);
        assert!(said.contains(&next), "{said}");
    }
}

#[test]
fn cancelled_jobs_keep_their_checkpoints() {
    let straight = completed(SLOW, &[]);
    let cluster = Cluster::new(&format!("{SLOW}{LAUNCH}"));
    cluster.go(&["run", "spec.toml"]);
    let mut node = cluster.node();
    until_epoch(cluster.path(), 3);
    assert_eq!(cluster.states(), ["running"]);
    let said = cluster.go(&["cancel", "results/spec"]);
    assert!(
        said.contains("cancelled 0 queued jobs and 1 running job"),
        "{said}"
    );
    assert!(node.wait().unwrap().success());
    assert_eq!(cluster.states(), ["interrupted"]);
    // It is submitted again, waits, and is cancelled before it starts.
    cluster.go(&["run", "spec.toml"]);
    let said = cluster.go(&["cancel"]);
    assert!(
        said.contains("cancelled 1 queued job and 0 running jobs"),
        "{said}"
    );
    assert_eq!(cluster.states(), ["interrupted"]);
    cluster.go(&["run", "spec.toml", "--launch", "local"]);
    assert_eq!(numbers(straight.path()), numbers(cluster.path()));
}

/// A command on a file system whose locks give `error`; with 0, they seem to be taken and keep nobody out, as where each
/// machine has locks of its own.
fn with_locks_that_give(error: u32, command: &mut Command) -> &mut Command {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const IS: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const GIVE: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let filter = [
        step(LOAD, 0, 0, 0),
        step(IS, 0, 1, libc::SYS_flock as u32),
        step(GIVE, 0, 0, libc::SECCOMP_RET_ERRNO | error),
        step(GIVE, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let apply = move || {
        let mut filter = filter;
        let program = libc::sock_fprog {
            len: filter.len() as u16,
            filter: filter.as_mut_ptr(),
        };
        // SAFETY: only changes the process that is about to be executed; the filter lives during the call.
        let is_applied = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(
                    libc::PR_SET_SECCOMP,
                    libc::SECCOMP_MODE_FILTER,
                    &raw const program,
                ) == 0
        };
        if is_applied {
            Ok(())
        } else {
            Err(std::io::Error::last_os_error())
        }
    };
    // SAFETY: system calls only, without allocations.
    unsafe { command.pre_exec(apply) }
}

#[test]
fn without_locks_one_command_submits_and_jobs_train_the_same() {
    let text = format!("{IRIS}{SEEDS}");
    let local = completed(&text, &[]);
    for error in [libc::ENOLCK as u32, 0] {
        let cluster = Cluster::new(&format!("{text}{LAUNCH}"));
        let go = |arguments: &[&str]| {
            let mut command = runner(cluster.path());
            let command = with_locks_that_give(error, cluster.with_programs(&mut command));
            texts(&command.args(arguments).output().unwrap())
        };
        // The cluster is slow to accept jobs.
        let sbatch = cluster.programs.join("sbatch");
        let script = fs::read_to_string(&sbatch).unwrap();
        let slow = "printf '%s\\n' \"$@\" >>arguments\nuntil [ -e is_open ]; do true; done\n";
        fs::write(
            &sbatch,
            script.edit_first("printf '%s\\n' \"$@\" >>arguments\n", slow),
        )
        .unwrap();
        let mut first = runner(cluster.path());
        let first = with_locks_that_give(error, cluster.with_programs(&mut first));
        let first = first
            .args(["run", "spec.toml"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let first = first.spawn().unwrap();
        while !cluster.path().join("arguments").exists() {
            std::thread::yield_now();
        }
        let (code, _, said) = go(&["run", "spec.toml"]);
        assert_eq!(code, 2, "{said}");
        assert!(
            said.contains("another `runner run` is writing to"),
            "{said}"
        );
        assert!(
            said.contains(&format!("it is process {} on", first.id())),
            "{said}"
        );
        // What is being submitted is not taken for jobs that have ended.
        assert_eq!(cluster.states(), ["queued"; 3]);
        fs::write(cluster.path().join("is_open"), "").unwrap();
        let (code, _, said) = texts(&first.wait_with_output().unwrap());
        assert_eq!(code, 0, "{said}");
        let (code, _, said) = go(&["run", "spec.toml"]);
        assert_eq!(code, 0, "{said}");
        assert!(said.contains("3 runs already queued or running"), "{said}");
        assert_eq!(runs_of_submissions(cluster.path()), 3);
        let mut node = Command::new("sh");
        let node = node.arg("node").current_dir(cluster.path());
        let node = with_locks_that_give(error, cluster.with_programs(node));
        assert!(node.status().unwrap().success());
        assert_eq!(numbers(local.path()), numbers(cluster.path()));
    }
}

#[test]
fn without_locks_nothing_is_trained_here() {
    let folder = folder_with(IRIS);
    let mut command = runner(folder.path());
    let command = with_locks_that_give(libc::ENOLCK as u32, &mut command);
    let (code, _, said) = texts(&command.args(["run", "spec.toml"]).output().unwrap());
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("has no locks"), "{said}");
    assert!(said.contains("--results DIR"), "{said}");
}
