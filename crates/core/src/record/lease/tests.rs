//! Tests of leases.

use super::*;

fn experiment() -> (tempfile::TempDir, ExperimentFolder) {
    let folder = tempfile::tempdir().unwrap();
    let experiment = ExperimentFolder(folder.path().to_owned());
    let run = experiment.run("a-s1").0;
    fs::create_dir_all(run.join("checkpoints")).unwrap();
    fs::write(run.join("events.jsonl"), "one\n").unwrap();
    fs::write(run.join("checkpoints/model-5.bpk"), "weights").unwrap();
    (folder, experiment)
}

fn tenant(pid: u32) -> Tenant {
    Tenant {
        pid,
        ..Tenant::default()
    }
}

fn take(experiment: &ExperimentFolder, pid: u32, has_ended: bool) -> Leased {
    let alive = Alive {
        has_ended: &|_| has_ended,
        pause: &|_| true,
    };
    experiment.lease("a-s1", &tenant(pid), &alive).unwrap()
}

fn taken(leased: Leased) -> Lease {
    match leased {
        Leased::Taken(lease) => lease,
        Leased::Busy(tenant) => panic!("busy: {tenant:?}"),
    }
}

#[test]
fn a_released_run_is_taken_as_it_is() {
    let (_guard, experiment) = experiment();
    let before = inode(&experiment.run("a-s1").0);
    taken(take(&experiment, 1, false)).release().unwrap();
    let lease = taken(take(&experiment, 2, false));
    assert_eq!(lease.number, 2);
    assert_eq!(inode(&experiment.run("a-s1").0), before);
    let held = experiment.held("a-s1").unwrap().unwrap();
    assert_eq!((held.tenant, held.is_released), (Some(tenant(2)), false));
}

#[test]
fn a_holder_that_shows_itself_keeps_the_run() {
    let (_guard, experiment) = experiment();
    let lease = taken(take(&experiment, 1, false));
    let count = std::cell::Cell::new(0);
    let alive = Alive {
        has_ended: &|_| false,
        pause: &|_| {
            count.set(count.get() + 1);
            lease.beat(count.get()).is_ok()
        },
    };
    let leased = experiment.lease("a-s1", &tenant(2), &alive).unwrap();
    assert!(matches!(leased, Leased::Busy(Some(by)) if by == tenant(1)));
    assert!(lease.is_current().unwrap());
}

#[cfg(target_os = "linux")]
#[test]
fn a_late_writer_writes_where_nobody_reads() {
    use std::os::fd::AsRawFd;

    let (_guard, experiment) = experiment();
    let late = taken(take(&experiment, 1, false));
    #[expect(clippy::disallowed_methods, reason = "a folder")]
    let opened = fs::File::open(experiment.run("a-s1").0).unwrap();
    let by_handle = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
    let new = taken(take(&experiment, 2, true));
    // It writes after it was believed dead, in every way in which a run is written.
    let events = by_handle.join("events.jsonl");
    let mut file = OpenOptions::new().append(true).open(events).unwrap();
    file.write_all(b"late\n").unwrap();
    fs::write(by_handle.join("checkpoints/model-5.bpk"), "other").unwrap();
    super::super::write_whole(&by_handle.join("summary.json"), b"late").unwrap();
    let run = experiment.run("a-s1").0;
    let read = |name: &str| fs::read_to_string(run.join(name)).unwrap();
    assert_eq!(read("events.jsonl"), "one\n");
    assert_eq!(read("checkpoints/model-5.bpk"), "weights");
    assert!(!run.join("summary.json").exists());
    assert!(!late.is_current().unwrap());
    assert!(new.is_current().unwrap());
}

#[test]
fn whoever_is_late_to_move_a_folder_moves_nothing() {
    let (_guard, experiment) = experiment();
    let run = experiment.run("a-s1").0;
    let first = inode(&run).unwrap();
    let _dead = taken(take(&experiment, 1, false));
    let new = taken(take(&experiment, 2, true));
    let moved = experiment.launch().join(format!("fenced/a-s1@{first}"));
    assert!(moved.join("events.jsonl").exists());
    // One that had seen the first folder, and stalled before it moved it.
    let error = fs::rename(&run, &moved).unwrap_err();
    assert!(is_taken(&error), "{error}");
    // One that had not yet put its copy in its place.
    let stale = Lease {
        experiment: experiment.clone(),
        place: experiment.leases("a-s1"),
        run: "a-s1".into(),
        number: 1,
    };
    assert!(!stale.put_a_copy().unwrap());
    assert!(run.join("events.jsonl").exists());
    assert!(new.is_current().unwrap());
}

#[test]
fn one_process_submits_at_a_time() {
    let (_guard, experiment) = experiment();
    let take = |pid: u32, has_ended: bool| {
        let alive = Alive {
            has_ended: &|_| has_ended,
            pause: &|_| false,
        };
        experiment.lease_submitting(&tenant(pid), &alive).unwrap()
    };
    let first = taken(take(1, false));
    let Leased::Busy(Some(holder)) = take(2, false) else {
        panic!("it is held")
    };
    assert_eq!(holder.pid, 1);
    first.release().unwrap();
    let second = taken(take(2, false));
    // It was killed.
    let third = taken(take(3, true));
    assert!(!second.is_current().unwrap());
    assert!(third.is_current().unwrap());
    // No run was moved.
    assert!(!experiment.launch().join("fenced").exists());
}

#[test]
fn of_many_processes_one_takes_a_run() {
    let (_guard, experiment) = experiment();
    let _dead = taken(take(&experiment, 0, false));
    let all: Vec<Leased> = std::thread::scope(|scope| {
        let ended = |it: &Tenant| it.pid == 0;
        let threads: Vec<_> = (1..=8)
            .map(|pid| {
                let experiment = &experiment;
                scope.spawn(move || {
                    let alive = Alive {
                        has_ended: &ended,
                        pause: &|_| false,
                    };
                    experiment.lease("a-s1", &tenant(pid), &alive).unwrap()
                })
            })
            .collect();
        threads.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let taken = all.iter().filter(|it| matches!(it, Leased::Taken(_)));
    assert_eq!(taken.count(), 1);
    let run = experiment.run("a-s1").0;
    assert!(run.join("checkpoints/model-5.bpk").exists());
}

#[test]
fn a_run_whose_folder_was_moved_by_a_process_that_was_killed_is_found() {
    let (_guard, experiment) = experiment();
    let run = experiment.run("a-s1").0;
    let _dead = taken(take(&experiment, 1, false));
    // It had copied the folder and moved it aside, and did not put the copy in its place.
    let fenced = experiment.launch().join("fenced");
    fs::create_dir_all(&fenced).unwrap();
    let longest = fenced.join("a-s1@12");
    fs::rename(&run, &longest).unwrap();
    // An earlier one, and one of another run.
    for (name, events) in [("a-s1@70", ""), ("a-s10@80", "one\ntwo\nthree\n")] {
        fs::create_dir(fenced.join(name)).unwrap();
        fs::write(fenced.join(name).join("events.jsonl"), events).unwrap();
    }
    let copy = experiment.launch().join("stage/a-s1@1");
    copy_folder(&longest, &copy).unwrap();
    let new = taken(take(&experiment, 2, true));
    assert!(new.is_current().unwrap());
    let read = |name: &str| fs::read_to_string(run.join(name)).unwrap();
    assert_eq!(read("events.jsonl"), "one\n");
    assert_eq!(read("checkpoints/model-5.bpk"), "weights");
    assert!(!copy.exists());
    assert!(longest.exists());
}

#[test]
fn a_run_that_its_dead_holder_has_not_begun_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = ExperimentFolder(folder.path().to_owned());
    let run = experiment.run("a-s1").0;
    let dead = taken(take(&experiment, 1, false));
    let new = taken(take(&experiment, 2, true));
    assert!(new.is_current().unwrap() && !dead.is_current().unwrap());
    assert_eq!(fs::read_dir(&run).unwrap().count(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_late_writer_that_has_just_begun_a_run_writes_where_nobody_reads() {
    use std::os::fd::AsRawFd;

    let folder = tempfile::tempdir().unwrap();
    let experiment = ExperimentFolder(folder.path().to_owned());
    let run = experiment.run("a-s1").0;
    let late = taken(take(&experiment, 1, false));
    fs::create_dir_all(&run).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a folder")]
    let opened = fs::File::open(&run).unwrap();
    assert!(late.is_current().unwrap());
    // It is cut off here, and is back when another process has the run.
    let new = taken(take(&experiment, 2, true));
    let by_handle = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
    super::super::write_whole(&by_handle.join("run.toml"), b"late").unwrap();
    assert_eq!(fs::read_dir(&run).unwrap().count(), 0);
    assert!(new.is_current().unwrap());
}
