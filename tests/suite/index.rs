//! The index on disk gives the same result as reading everything, whatever happened to the files or to the index.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use burn_runner::event::{Event, Outcome};
use burn_runner::plan::Plan;
use burn_runner::record::{ExperimentFolder, Index, Locked, RunFolder};
use proptest::prelude::*;
use sha2::{Digest, Sha256};

use super::edit::Edit as _;
use super::support::{plan, run};

#[path = "../../benches/tree/mod.rs"]
mod tree;

/// Three runs, two of them of one trial.
fn made() -> (tempfile::TempDir, ExperimentFolder, Plan) {
    let text = tree::spec(4, 2).edit("epochs = 20", "epochs = 2");
    let (mut plan, _) = plan("spec.toml", &text).expect("a right file");
    plan.runs.truncate(5);
    let folder = tempfile::tempdir().unwrap();
    let experiment = tree::experiment(folder.path(), &plan);
    tree::make(&plan, &experiment);
    (folder, experiment, plan)
}

/// Long after all files were written, so that their stamps are settled.
fn later() -> SystemTime {
    SystemTime::now() + Duration::from_secs(60)
}

/// Waits until files get a later time stamp: clocks of file systems advance in steps of milliseconds.
fn next_tick(folder: &Path) {
    let probe = folder.join("probe");
    let time = || {
        fs::write(&probe, "").unwrap();
        fs::metadata(&probe).unwrap().modified().unwrap()
    };
    let before = time();
    while time() == before {}
}

fn files(folder: &RunFolder) -> [PathBuf; 5] {
    [
        folder.run_toml(),
        folder.events_jsonl(),
        folder.environment_json(),
        folder.summary_json(),
        folder.metrics_csv(),
    ]
}

#[derive(Clone, Debug)]
enum Edit {
    Append {
        run: usize,
        number: u64,
    },
    /// Replaces one digit in place.
    Change {
        run: usize,
        file: usize,
        at: usize,
    },
    Delete {
        run: usize,
        file: usize,
    },
    /// The original state.
    Restore {
        run: usize,
        file: usize,
    },
    Age {
        run: usize,
        file: usize,
        secs: u64,
    },
    DropRun {
        run: usize,
    },
    CutIndex {
        at: usize,
    },
    FlipIndex {
        at: usize,
        bit: u8,
    },
    DropIndex,
}

fn edits() -> impl Strategy<Value = Vec<(Edit, bool)>> {
    let (run, file, at) = (0..5usize, 0..5usize, 0..100_000usize);
    let edit = prop_oneof![
        (run.clone(), 0..1000u64).prop_map(|(run, number)| Edit::Append { run, number }),
        (run.clone(), file.clone(), at.clone()).prop_map(|(run, file, at)| Edit::Change {
            run,
            file,
            at
        }),
        (run.clone(), file.clone()).prop_map(|(run, file)| Edit::Delete { run, file }),
        (run.clone(), file.clone()).prop_map(|(run, file)| Edit::Restore { run, file }),
        (run.clone(), file, 0..100_000_000u64).prop_map(|(run, file, secs)| Edit::Age {
            run,
            file,
            secs
        }),
        run.prop_map(|run| Edit::DropRun { run }),
        at.clone().prop_map(|at| Edit::CutIndex { at }),
        (at, 0..8u8).prop_map(|(at, bit)| Edit::FlipIndex { at, bit }),
        Just(Edit::DropIndex),
    ];
    prop::collection::vec((edit, any::<bool>()), 1..8)
}

/// Makes an edit; its target may no longer exist.
fn make(edit: &Edit, folder: &ExperimentFolder, plan: &Plan, texts: &[[Vec<u8>; 5]]) {
    let there = |run: usize| folder.run(&plan.runs[run].id);
    let edit_index = |change: &dyn Fn(&mut Vec<u8>)| {
        if let Ok(mut text) = fs::read(folder.index_jsonl()) {
            change(&mut text);
            fs::write(folder.index_jsonl(), text).unwrap();
        }
    };
    match *edit {
        Edit::Append { run, number } => {
            let outcome = match number % 3 {
                0 => Outcome::Completed,
                1 => Outcome::Interrupted,
                _ => Outcome::failed(burn_runner::event::FailureClass::Panic, "made up"),
            };
            let event = Event::RunFinished {
                outcome,
                wall_secs: number as f64,
                weights_digest: String::new(),
            };
            if there(run).0.is_dir() {
                // Nothing is appended to a damaged log.
                let _ = there(run).append_event(&event);
            }
        }
        Edit::Change { run, file, at } => {
            let path = &files(&there(run))[file];
            if let Ok(mut text) = fs::read(path) {
                let digits: Vec<usize> = (0..text.len())
                    .filter(|at| text[*at].is_ascii_digit())
                    .collect();
                if let Some(at) = digits.get(at % digits.len().max(1)) {
                    text[*at] = b'0' + (text[*at] - b'0' + 1) % 10;
                    fs::write(path, text).unwrap();
                }
            }
        }
        Edit::Delete { run, file } => drop(fs::remove_file(&files(&there(run))[file])),
        Edit::Restore { run, file } => {
            fs::create_dir_all(there(run).0).unwrap();
            fs::write(&files(&there(run))[file], &texts[run][file]).unwrap();
        }
        Edit::Age { run, file, secs } => {
            if let Ok(file) = File::options().append(true).open(&files(&there(run))[file]) {
                file.set_modified(
                    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + secs),
                )
                .unwrap();
            }
        }
        Edit::DropRun { run } => drop(fs::remove_dir_all(there(run).0)),
        Edit::CutIndex { at } => edit_index(&|text| text.truncate(at % (text.len() + 1))),
        Edit::FlipIndex { at, bit } => edit_index(&|text| {
            let at = at % text.len().max(1);
            if let Some(byte) = text.get_mut(at) {
                *byte ^= 1 << bit;
            }
        }),
        Edit::DropIndex => drop(fs::remove_file(folder.index_jsonl())),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_index_is_what_it_would_be_without_the_file(edits in edits()) {
        let (results, folder, plan) = made();
        let texts: Vec<[Vec<u8>; 5]> = plan
            .runs
            .iter()
            .map(|run| files(&folder.run(&run.id)).map(|path| fs::read(path).unwrap()))
            .collect();
        Index::open(&folder, false, later()).unwrap();
        for (edit, mend) in edits {
            next_tick(results.path());
            make(&edit, &folder, &plan, &texts);
            let mut index = Index::open(&folder, mend, later()).unwrap();
            // Reported once, by the writer.
            index.iter_mut().for_each(|index| index.mended.clear());
            prop_assert_eq!(index, Index::read_anew(&folder).unwrap(), "after {:?}", edit);
            // The cache is used now.
            let again = Index::open(&folder, mend, later()).unwrap();
            prop_assert_eq!(again, Index::read_anew(&folder).unwrap(), "again after {:?}", edit);
        }
    }
}

#[test]
fn another_plan_is_another_index() {
    let (results, folder, mut plan) = made();
    Index::open(&folder, false, later()).unwrap();
    next_tick(results.path());
    plan.runs.remove(1);
    plan.question = "Which?".into();
    burn_runner::record::write_json(&folder.plan_json(), &plan).unwrap();
    let index = Index::open(&folder, false, later()).unwrap().unwrap();
    assert_eq!(
        (index.runs.len(), index.plan.question.as_str()),
        (4, "Which?")
    );
    assert_eq!(Some(index), Index::read_anew(&folder).unwrap());
    fs::remove_file(folder.plan_json()).unwrap();
    assert_eq!(Index::open(&folder, false, later()).unwrap(), None);
}

/// Writes another number into the cached data of a run, with a correct sum: a trusted cache shows it.
fn plant(folder: &ExperimentFolder, run: usize) {
    let text = fs::read_to_string(folder.index_jsonl()).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let line = &mut lines[2 + run];
    let at = line.find("\"wall_secs\":").unwrap() + "\"wall_secs\":".len();
    let end = at + line[at..].find(',').unwrap();
    line.replace_range(at..end, "12345.0");
    let body: String = lines[1..].iter().map(|line| format!("{line}\n")).collect();
    let sum: String = Sha256::digest(body.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let mut head: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
    head["sha256"] = sum.into();
    fs::write(folder.index_jsonl(), format!("{head}\n{body}")).unwrap();
}

fn is_believed(folder: &ExperimentFolder, run: usize, mend: bool, time: SystemTime) -> bool {
    let index = Index::open(folder, mend, time).unwrap().unwrap();
    index.runs[run].wall_secs == 12345.0
}

#[test]
fn what_is_kept_is_believed_for_as_long_as_nothing_speaks_against_it() {
    let (_results, folder, plan) = made();
    let planted = |mend: bool, time: SystemTime| {
        fs::remove_file(folder.index_jsonl()).ok();
        Index::open(&folder, mend, time).unwrap();
        plant(&folder, 1);
    };
    planted(false, later());
    assert!(is_believed(&folder, 1, false, later()));
    // Derived files were not checked.
    assert!(!is_believed(&folder, 1, true, later()));
    planted(true, later());
    assert!(is_believed(&folder, 1, true, later()));
    assert!(is_believed(&folder, 1, false, later()));
    // The files are as new as the index.
    planted(false, SystemTime::now());
    assert!(!is_believed(&folder, 1, false, later()));
    // Another program wrote it.
    for (ours, theirs) in [
        ("\"format\":", "\"format\":9"),
        ("\"runner\":\"", "\"runner\":\"9"),
    ] {
        planted(false, later());
        let text = fs::read_to_string(folder.index_jsonl()).unwrap();
        fs::write(folder.index_jsonl(), text.edit_first(ours, theirs)).unwrap();
        assert!(!is_believed(&folder, 1, false, later()), "{theirs}");
    }
    // A run without an end may be active.
    let there = folder.run(&plan.runs[1].id);
    let events = fs::read_to_string(there.events_jsonl()).unwrap();
    let begun: Vec<&str> = events.lines().take(2).collect();
    fs::write(there.events_jsonl(), begun.join("\n") + "\n").unwrap();
    fs::remove_file(there.summary_json()).unwrap();
    planted(false, later());
    assert!(is_believed(&folder, 1, false, later()));
    let Ok(Locked::Taken(lock)) = there.try_lock() else {
        panic!("nobody has it")
    };
    assert!(!is_believed(&folder, 1, false, later()));
    drop(lock);
}

#[test]
fn settings_are_called_as_in_the_file() {
    let (_results, folder, _) = made();
    let index = Index::read(&folder).unwrap().unwrap();
    let own: Vec<_> = index
        .runs
        .iter()
        .map(|run| serde_json::to_string(&run.settings).unwrap())
        .collect();
    let shared: Vec<_> = index
        .settings
        .iter()
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    insta::assert_snapshot!(format!("{}\n\n{}", shared.join("\n"), own.join("\n")));
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_written_to_is_listed_without_a_word() {
    let (results, folder, _) = made();
    // Even root cannot rename a file over a folder.
    fs::create_dir(folder.index_jsonl()).unwrap();
    let (code, stdout, stderr) = run(results.path(), &["list", "."]);
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    assert_eq!(stdout.lines().count(), 1 + 5);
}

#[test]
fn runs_that_have_not_begun_are_listed_as_if_their_folders_were_read() {
    let (_guard, folder, plan) = made();
    let [first, second] = [&plan.runs[0], &plan.runs[3]];
    let [one, other] = [first, second].map(|run| folder.run(&run.id).0);
    let aside = folder.0.join("aside");
    for run in [&one, &other] {
        fs::rename(run, aside.with_extension(run.file_name().unwrap())).unwrap();
    }
    for mend in [false, true] {
        let _ = fs::remove_file(folder.index_jsonl());
        let absent = Index::open(&folder, mend, later()).unwrap().unwrap();
        assert!(!one.exists() && !other.exists());
        // The folder of a run that is there and has nothing in it is read.
        fs::create_dir(&one).unwrap();
        fs::create_dir(&other).unwrap();
        fs::remove_file(folder.index_jsonl()).unwrap();
        let empty = Index::open(&folder, mend, later()).unwrap().unwrap();
        assert_eq!(absent, empty);
        fs::remove_dir_all(&one).unwrap();
        fs::remove_dir_all(&other).unwrap();
    }
    let before = Index::open(&folder, false, later()).unwrap().unwrap();
    fs::rename(aside.with_extension(one.file_name().unwrap()), &one).unwrap();
    let begun = Index::open(&folder, false, later()).unwrap().unwrap();
    assert_ne!(before.runs[0], begun.runs[0]);
    assert_eq!(Index::read_anew(&folder).unwrap().unwrap(), begun);
    assert_eq!(begun.runs[3].state, before.runs[3].state);
}
