//! `runner watch`: the board of another process' runs, built only from the results tree.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::follow::look;
use super::output::Output;
use super::tell::Teller;
use super::{FAILED, OK, WatchArgs};
use crate::ops::tree::{experiments, pass_over, pass_over_experiment};
use crate::ops::{Progress, quiet, refresh_jobs};
use runner_core::event::Event;
use runner_core::plan::{Plan, RunPlan};
use runner_core::record::{
    ExperimentFolder, Index, RunFolder, RunRecord, State as RunState, Tail, is_damaged, remedy,
};
use runner_report::console::{Board, Command, Console, Mode, State, TICK};

/// How often the tree is read.
const INTERVAL: Duration = Duration::from_millis(500);

/// Shows the events in an experiment's folder, or in those of a results folder, until nothing runs there.
pub fn watch(args: &WatchArgs, output: &mut Output) -> u8 {
    let found = match experiments(&args.folder) {
        Ok(found) => found,
        Err(error) => return output.fail(&error),
    };
    let teller = Teller::new(Mode::Normal);
    let sink = |progress: Progress<'_>| teller.tell(progress);
    let mut is_whole = true;
    let mut watched = Vec::new();
    for folder in found {
        match Watched::new(folder) {
            Ok(Some(new)) => watched.push(new),
            Ok(None) => {}
            Err((path, error)) => is_whole &= !pass_over_experiment(&path, &error, &sink),
        }
    }
    if watched.is_empty() {
        return FAILED;
    }
    let mut unreadable = Vec::new();
    for (at, run) in watched.iter().enumerate().flat_map(|(at, watched)| {
        let runs = watched.runs.iter().enumerate();
        runs.map(move |(number, run)| ((at, number), run))
    }) {
        let plan = &watched[at.0].plan.runs[at.1];
        if let Err(e) = RunRecord::read_for(&run.folder, plan) {
            unreadable.push(at);
            if pass_over(&run.folder.0, &e, &sink) {
                is_whole = false;
                output.say(&format!("  help: {}", remedy(&e)));
            }
        }
    }
    let boards = watched.iter().map(Watched::board).collect();
    let mut console = Console::new(boards, look(Mode::Normal, false, false));
    for (at, number) in unreadable {
        console.boards_mut()[at].rows[number].state = State::Unreadable;
    }
    // Existing events are on the board, or summarized, and not shown line by line.
    let mut is_first = true;
    loop {
        let mut is_over = true;
        for (at, watched) in watched.iter_mut().enumerate() {
            watched.look(at, &mut console, is_first);
            is_over &= !watched.is_written;
        }
        if is_first && !console.has_board() {
            output.print(&console.plain());
        }
        is_first = false;
        if is_over || args.once {
            console.leave();
            return if is_whole { OK } else { FAILED };
        }
        for _ in 0..(INTERVAL.as_millis() / TICK.as_millis()) {
            if console.tick().contains(&Command::Quit) {
                console.leave();
                return OK;
            }
            std::thread::sleep(TICK);
        }
    }
}

/// An experiment's folder with the content read so far.
struct Watched {
    folder: ExperimentFolder,
    plan: Plan,
    plan_written: Option<SystemTime>,
    runs: Vec<Run>,
    /// Whether a `runner run` is writing there.
    is_written: bool,
}

struct Run {
    folder: RunFolder,
    tail: Tail,
    record: RunRecord,
    /// Whether the folder belongs to the planned run, and not to other work of the same name; of a run that has not
    /// begun, there is none.
    is_planned: bool,
    /// When its `run.toml` was written.
    plan_written: Option<SystemTime>,
}

impl Watched {
    /// `None` if it is no longer an experiment's folder.
    fn new(folder: ExperimentFolder) -> Result<Option<Self>, (PathBuf, std::io::Error)> {
        let plan_written = written(&folder.plan_json());
        let plan = folder.read_plan();
        let Some(plan) = plan.map_err(|e| (folder.0.clone(), e))? else {
            return Ok(None);
        };
        let runs = plan.runs.iter().map(|run| Run::new(folder.run(&run.id)));
        Ok(Some(Self {
            runs: runs.collect(),
            folder,
            plan,
            plan_written,
            is_written: false,
        }))
    }

    /// The states of runs that jobs of a cluster have.
    fn jobs(&self) -> BTreeMap<String, RunState> {
        if !self.folder.launch().is_dir() {
            return BTreeMap::new();
        }
        refresh_jobs(&self.folder, &quiet);
        let index = Index::read(&self.folder).ok().flatten();
        let runs = index.into_iter().flat_map(|index| index.runs);
        let busy = |state: RunState| {
            use RunState::{Queued, Requeued, Running};
            matches!(state, Queued | Requeued | Running)
        };
        let runs = runs.filter(|run| busy(run.state));
        runs.map(|run| (run.id, run.state)).collect()
    }

    fn board(&self) -> Board {
        Board::new(&self.plan.experiment, &self.plan.runs, None)
    }

    /// Reads new events. What is temporarily unreadable is retried next time.
    fn look(&mut self, at: usize, console: &mut Console, is_first: bool) {
        // Checked before reading: so the last events are read.
        let jobs = self.jobs();
        self.is_written = self.folder.is_in_use() || !jobs.is_empty();
        let mut is_first = is_first;
        if written(&self.folder.plan_json()) != self.plan_written
            && let Ok(Some(new)) = Self::new(self.folder.clone())
        {
            let is_written = self.is_written;
            *self = Self { is_written, ..new };
            console.replace(at, self.board());
            is_first = true;
        }
        for (number, (run, plan)) in self.runs.iter_mut().zip(&self.plan.runs).enumerate() {
            if !run.is_of(plan) {
                continue;
            }
            let job = jobs.get(&plan.id).copied();
            let news = match run.tail.read(&run.folder) {
                Ok(news) => news,
                Err(e) => {
                    if is_damaged(&e) {
                        console.boards_mut()[at].rows[number].state = State::Unreadable;
                    }
                    continue;
                }
            };
            if news.is_anew {
                *run = Run::new(run.folder.clone());
                let board = &mut console.boards_mut()[at];
                board.begin_anew(number, plan);
                continue;
            }
            for event in &news.events {
                run.record.apply(event);
                if is_first {
                    console.boards_mut()[at].observe(number, plan, event, &run.record)
                } else {
                    console.observe((at, number), plan, event, &run.record)
                }
            }
            let state = &mut console.boards_mut()[at].rows[number].state;
            if let Some(outcome) = &run.record.outcome {
                // A `runner run` that will continue a run removes its summary first, and one that has just ended it
                // writes that last.
                match (run.folder.summary_json().exists(), self.is_written) {
                    (true, _) => *state = State::Ended(outcome.clone()),
                    (false, true) => *state = State::Waiting,
                    (false, false) => {}
                }
            }
            // Also one that was interrupted, and waits to be resumed.
            if let Some(word) = job.filter(|job| *job != RunState::Running) {
                *state = State::Queued(word.word());
                continue;
            }
            if matches!(state, State::Ended(_)) {
                continue;
            }
            let has_begun = run.record.started.is_some();
            let is_trained = job.is_some() || run.folder.is_trained();
            if is_trained
                && let Some(progress) = run.folder.read_progress()
                && progress.step > console.boards()[at].rows[number].step
                && has_begun
            {
                let event = Event::Progressed(progress);
                console.observe((at, number), plan, &event, &run.record);
            }
            let board = &mut console.boards_mut()[at];
            let state = &mut board.rows[number].state;
            match (is_trained, self.is_written) {
                _ if !has_begun => {}
                (false, false) => *state = State::Incomplete,
                (true, _) if matches!(state, State::Incomplete | State::Queued(_)) => {
                    *state = State::Running;
                }
                // A new `runner run` has not reached it yet.
                (false, true) if is_first || *state == State::Incomplete => {
                    *state = State::Waiting;
                }
                _ => {}
            }
        }
        let command = (!self.is_written).then(|| self.folder.command(&self.plan));
        let board = &mut console.boards_mut()[at];
        board.abandoned = command.filter(|_| board.under_way().next().is_none());
    }
}

impl Run {
    fn new(folder: RunFolder) -> Self {
        Self {
            folder,
            tail: Tail::default(),
            record: RunRecord::default(),
            is_planned: true,
            plan_written: None,
        }
    }

    fn is_of(&mut self, plan: &RunPlan) -> bool {
        let plan_written = written(&self.folder.run_toml());
        if plan_written != self.plan_written {
            self.plan_written = plan_written;
            let there = self.folder.read_plan();
            self.is_planned = match there {
                Ok(Some(there)) => there.fingerprint == plan.fingerprint,
                Ok(None) => true,
                Err(_) => false,
            };
        }
        self.is_planned
    }
}

fn written(path: &Path) -> Option<SystemTime> {
    path.metadata().ok()?.modified().ok()
}
