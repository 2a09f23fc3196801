use std::fs;

use super::*;

fn saved(step: usize) -> Event {
    Event::CheckpointSaved { step, epoch: 1 }
}

fn logged(num: usize) -> (tempfile::TempDir, RunFolder, String) {
    let place = tempfile::tempdir().unwrap();
    let folder = RunFolder(place.path().to_owned());
    for step in 1..=num {
        folder.append_event(&saved(step)).unwrap();
    }
    let text = fs::read_to_string(folder.events_jsonl()).unwrap_or_default();
    (place, folder, text)
}

fn steps(folder: &RunFolder) -> io::Result<Vec<usize>> {
    steps_of(&Log::read(folder)?)
}

fn steps_of(log: &Log) -> io::Result<Vec<usize>> {
    let steps = log.events.iter().map(|(_, event)| match event {
        Event::CheckpointSaved { step, .. } => *step,
        other => panic!("{other:?}"),
    });
    Ok(steps.collect())
}

#[test]
fn every_flipped_bit_is_seen_but_for_what_a_kill_leaves() {
    let (_place, folder, text) = logged(3);
    assert_eq!(steps(&folder).unwrap(), [1, 2, 3]);
    for at in 0..text.len() {
        for bit in 0..8 {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1 << bit;
            let log = Log::parse(&folder.events_jsonl(), &bytes);
            match log.and_then(|log| steps_of(&log)) {
                Err(e) => assert!(super::super::is_damaged(&e), "byte {at}: {e}"),
                // Without its end, the last line was cut off by a kill.
                Ok(steps) => assert_eq!((at, steps), (text.len() - 1, vec![1, 2])),
            }
        }
    }
}

#[test]
fn lines_that_are_removed_moved_or_added_are_seen() {
    let (_place, folder, text) = logged(4);
    let lines: Vec<&str> = text.lines().collect();
    let orders: [&[usize]; 7] = [
        &[1, 2, 3, 4],
        &[0, 2, 3, 4],
        &[0, 1, 2, 4],
        &[0, 1, 3, 2, 4],
        &[0, 1, 1, 2, 3, 4],
        &[0, 1, 2, 3, 4, 4],
        &[0, 1, 2, 3, 4, 0],
    ];
    for order in orders {
        let text: String = order.iter().map(|at| format!("{}\n", lines[*at])).collect();
        fs::write(folder.events_jsonl(), text).unwrap();
        let error = steps(&folder).unwrap_err();
        assert!(super::super::is_damaged(&error), "{order:?}: {error}");
    }
    // A log does not reveal that it had more lines: other knowledge about the run does.
    fs::write(
        folder.events_jsonl(),
        format!("{}\n{}\n", lines[0], lines[1]),
    )
    .unwrap();
    assert_eq!(steps(&folder).unwrap(), [1]);
}

#[test]
fn what_a_kill_left_is_cut_off_by_the_next_append() {
    let (_place, folder, text) = logged(2);
    for cut in [1, 7, 40] {
        fs::write(folder.events_jsonl(), &text[..text.len() - cut]).unwrap();
        assert_eq!(steps(&folder).unwrap(), [1]);
        folder.append_event(&saved(9)).unwrap();
        assert_eq!(steps(&folder).unwrap(), [1, 9]);
    }
    fs::write(folder.events_jsonl(), &text[..10]).unwrap();
    folder.append_event(&saved(7)).unwrap();
    assert_eq!(steps(&folder).unwrap(), [7]);
}

#[test]
fn lines_of_any_length_are_appended_to() {
    let (_place, folder, _) = logged(1);
    let event = Event::StoppedEarly {
        epoch: 1,
        reason: "long ".repeat(20_000),
    };
    folder.append_event(&event).unwrap();
    folder.append_event(&saved(2)).unwrap();
    assert_eq!(Log::read(&folder).unwrap().events.len(), 3);
}

#[test]
fn what_a_newer_version_wrote_is_called_that() {
    let (_place, folder, text) = logged(2);
    for (ours, theirs) in [
        ("checkpoint_saved", "checkpoint_praised"),
        ("\"epoch\":1", "\"epoch\":1,\"extra\":2"),
    ] {
        let changed = text.replacen(ours, theirs, 1);
        fs::write(folder.events_jsonl(), renewed(&changed)).unwrap();
        let error = steps(&folder).unwrap_err();
        assert!(super::super::is_other_format(&error), "{error}");
        // Without a sum that fits it is damage.
        fs::write(folder.events_jsonl(), changed).unwrap();
        assert!(super::super::is_damaged(&steps(&folder).unwrap_err()));
    }
}

#[test]
fn logs_without_sums_may_break_off_before_a_start_alone() {
    let line = r#"{"time_ms":1,"event":"checkpoint_saved","step":1,"epoch":1}"#;
    let start = r#"{"time_ms":2,"event":"run_started","device_name":"flex","data_digests":{},"threads":1,"resumed_step":0,"resumed_secs":0.0,"history":[],"rejected_checkpoints":[],"startup_secs":0.1}"#;
    let (_place, folder, _) = logged(0);
    let num = |lines: &[&str]| {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(folder.events_jsonl(), text).unwrap();
        Log::read(&folder).map(|log| log.events.len())
    };
    assert_eq!(num(&[line, start, line]).unwrap(), 3);
    assert_eq!(num(&[line, &line[..20], start]).unwrap(), 2);
    assert!(num(&[line, &line[..20], line]).is_err());
    assert!(num(&[line, &line[..20]]).is_err());
    let flipped = line.replace("step", "stap");
    assert!(num(&[line, &flipped, start]).is_err());
    let run = |format| RunHead {
        format,
        id: "base-s1".into(),
        fingerprint: "f".into(),
    };
    num(&[line]).unwrap();
    let log = Log::read(&folder).unwrap();
    assert!(log.check_is_of(&folder, &run(2)).is_ok());
    assert!(log.check_is_of(&folder, &run(3)).is_err());
}
