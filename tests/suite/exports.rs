//! Records in the formats of other programs: event files, tables.

use std::fs;
use std::path::Path;

use burn_runner::event::{Epoch, Event, Metrics, Outcome, Started};
use burn_runner::export::table::{Columns, Format, Rows, TableWriter};
use burn_runner::export::{Exported, points, tensorboard};
use burn_runner::plan::RunPlan;
use burn_runner::record::{RunFolder, RunRecord, Times};
use serde_json::{Value as Json, json};

use super::support::peers::python_with;
use super::support::{IRIS, plan};

/// Two trials with an axis that wants quotes, and an axis over lists.
pub fn runs() -> Vec<RunPlan> {
    let sweep = "[sweep.grid]\nmodel.hidden = [[8], [8, 4]]\n";
    let (plan, _) = plan("spec", &format!("{IRIS}{sweep}")).unwrap();
    plan.runs
}

/// A run with two steps per epoch that started at 12:00, with epochs of a minute.
pub fn record(folder: &Path, plan: RunPlan, epochs: usize, outcome: Option<Outcome>) -> Exported {
    let mut exported = Exported {
        folder: RunFolder(folder.join(&plan.id)),
        record: RunRecord::default(),
        times: Times::default(),
        losses: losses(),
        plan,
    };
    begin(&mut exported, 0);
    go_on(&mut exported, 1, epochs);
    if let Some(outcome) = outcome {
        end(&mut exported, outcome);
    }
    exported
}

const NOON: u64 = 1_767_268_800_000;

fn apply(run: &mut Exported, minute: usize, event: &Event) {
    run.record.apply(event);
    run.times.apply(NOON + 60_000 * minute as u64, event);
}

fn begin(run: &mut Exported, resumed_epochs: usize) {
    let started = Started {
        device: "flex".into(),
        device_name: "host".into(),
        data_digests: Default::default(),
        threads: 1,
        resumed_step: 2 * resumed_epochs,
        resumed_secs: 0.0,
        history: run.record.epochs[..resumed_epochs].to_vec(),
        rejected_checkpoints: Vec::new(),
        startup_secs: 0.0,
        kept_on_device: Default::default(),
        instructions: None,
        layers: std::collections::BTreeMap::new(),
        build: None,
    };
    let minute = if resumed_epochs > 0 { 90 } else { 0 };
    apply(run, minute, &Event::RunStarted(started));
}

/// The epochs from one to another.
pub fn go_on(run: &mut Exported, from: usize, to: usize) {
    for epoch in from..=to {
        let value = 0.1 * epoch as f64;
        let metrics = Metrics::from([
            ("train/loss".to_owned(), 1.0 - value),
            ("valid/accuracy".to_owned(), value),
        ]);
        let epoch = Epoch {
            epoch,
            step: 2 * epoch,
            metrics,
            train_secs: 50.0,
            valid_secs: 10.0,
            memory_bytes: 0,
            pool: None,
        };
        apply(run, epoch.epoch, &Event::EpochFinished(epoch));
    }
}

/// The end, with an evaluation where the run is completed.
pub fn end(run: &mut Exported, outcome: Outcome) {
    if outcome == Outcome::Completed {
        let event = Event::SplitEvaluated {
            split: "test".into(),
            epoch: 2,
            metrics: Metrics::from([("accuracy".to_owned(), 0.5)]),
        };
        apply(run, 10, &event);
    }
    let event = Event::RunFinished {
        outcome,
        wall_secs: 600.0,
        weights_digest: "d".into(),
    };
    apply(run, 10, &event);
}

fn failed() -> Option<Outcome> {
    let class = burn_runner::event::FailureClass::Panic;
    Some(Outcome::failed(class, "it said \"no\", and\nwent"))
}

/// CRC-32C by its definition: reflected, polynomial 0x1EDC6F41 (RFC 3720, section 12.1).
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0x82f6_3b78 * (crc & 1))
        })
    })
}

/// The records of an event file, with every sum checked.
fn frames(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let take = |bytes: &mut &[u8], num: usize| {
        let (head, rest) = bytes.split_at(num);
        *bytes = rest;
        head.to_vec()
    };
    while !bytes.is_empty() {
        let length = take(&mut bytes, 8);
        let check = |bytes: &[u8], sum: Vec<u8>| {
            let masked = crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8);
            assert_eq!(masked.to_le_bytes().to_vec(), sum);
        };
        check(&length, take(&mut bytes, 4));
        let num = u64::from_le_bytes(length.try_into().unwrap()) as usize;
        let frame = take(&mut bytes, num);
        check(&frame, take(&mut bytes, 4));
        frames.push(frame);
    }
    frames
}

/// The vectors of RFC 3720, appendix B.4, and the usual check value.
#[test]
fn sums_are_those_that_were_published() {
    let rising: Vec<u8> = (0..32).collect();
    let falling: Vec<u8> = (0..32).rev().collect();
    let cases: [(&[u8], u32); 5] = [
        (&[0; 32], 0x8a91_36aa),
        (&[0xff; 32], 0x62a8_ab43),
        (&rising, 0x46dd_794e),
        (&falling, 0x113f_db5c),
        (b"123456789", 0xe306_9283),
    ];
    for (bytes, sum) in cases {
        assert_eq!(crc32c(bytes), sum);
    }
}

#[test]
fn an_event_file_is_framed_and_grows_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("events");
    let plan = runs().remove(1);
    let mut run = record(folder.path(), plan, 2, None);
    let first = tensorboard::write(&place, &run).unwrap().unwrap();
    let name = first.file_name().unwrap().to_str().unwrap();
    assert_eq!(name, "events.out.tfevents.1767268800.unknown.runner");
    let before = fs::read(&first).unwrap();
    // The version, the settings, four losses, two metrics of two epochs.
    assert_eq!(frames(&before).len(), 2 + 4 + 4);
    let frame = &frames(&before)[0];
    assert!(frame.ends_with(b"\x1a\x0dbrain.Event:2"), "{frame:?}");
    let frame = frames(&before)[4].clone();
    // Wall time, step 2, and of the summary's value the tag and 0.5 as a float.
    let mut expected = vec![9];
    expected.extend((NOON as f64 / 1000.0 + 60.0).to_le_bytes());
    assert_eq!(frame[..9], expected);
    assert_eq!(frame[9..13], [0x10, 2, 0x2a, frame.len() as u8 - 13]);

    go_on(&mut run, 3, 3);
    end(&mut run, Outcome::Completed);
    // A kill leaves a partial end; the next export repairs it.
    fs::write(&first, &before[..before.len() - 3]).unwrap();
    assert_eq!(tensorboard::write(&place, &run).unwrap().unwrap(), first);
    let after = fs::read(&first).unwrap();
    assert!(after.starts_with(&before));
    assert_eq!(frames(&after).len(), 2 + 6 + 6 + 1 + 1 + 3);
    assert_eq!(after, tensorboard::event_file(&run));

    // A program with an open file finds the rest of a resumed run in a new one; foreign files stay.
    fs::write(place.join("events.out.tfevents.1.other"), "").unwrap();
    begin(&mut run, 1);
    let second = tensorboard::write(&place, &run).unwrap().unwrap();
    assert!(second > first && !first.exists());
    assert_eq!(fs::read_dir(&place).unwrap().count(), 2);
}

fn losses() -> Vec<f64> {
    (0..6).map(|step| 1.0 / f64::from(step + 1)).collect()
}

#[test]
fn curves_have_steps_and_times_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let run = record(folder.path(), runs().remove(0), 2, failed());
    let shown = points(&run).into_iter().map(|point| {
        let seconds = (point.time_ms - NOON) / 1000;
        format!("{} {} {}s {}", point.key, point.step, seconds, point.value)
    });
    insta::assert_snapshot!(shown.collect::<Vec<_>>().join("\n"), @r"
    train/step_loss 1 30s 1
    train/step_loss 2 60s 0.5
    train/loss 2 60s 0.9
    valid/accuracy 2 60s 0.1
    train/step_loss 3 90s 0.3333333333333333
    train/step_loss 4 120s 0.25
    train/loss 4 120s 0.8
    valid/accuracy 4 120s 0.2
    train/step_loss 5 360s 0.2
    train/step_loss 6 600s 0.16666666666666666
    ");
}

#[test]
fn tables_have_a_row_for_each_thing() {
    let folder = tempfile::tempdir().unwrap();
    let mut plans = runs().into_iter();
    let runs = [
        record(folder.path(), plans.next().unwrap(), 2, failed()),
        record(
            folder.path(),
            plans.next().unwrap(),
            3,
            Some(Outcome::Completed),
        ),
    ];
    let mut text = String::new();
    for format in [Format::Csv, Format::JsonLines] {
        for rows in [Rows::Runs, Rows::Epochs] {
            let mut columns = Columns::new(rows);
            runs.iter().for_each(|run| columns.take(run));
            let mut table = Vec::new();
            let mut writer = TableWriter::new(columns, format, &mut table).unwrap();
            runs.iter().for_each(|run| writer.add(run).unwrap());
            writer.finish().unwrap();
            text += &format!(
                "{format:?} {rows:?}\n{}\n",
                String::from_utf8(table).unwrap()
            );
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn a_loss_that_is_no_number_is_none_in_json() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = record(folder.path(), runs().remove(0), 1, failed());
    run.losses = vec![1.0, f64::NAN, f64::NEG_INFINITY];
    let table = |format| {
        let mut columns = Columns::new(Rows::Steps);
        columns.take(&run);
        let mut table = Vec::new();
        let mut writer = TableWriter::new(columns, format, &mut table).unwrap();
        writer.add(&run).unwrap();
        writer.finish().unwrap();
        String::from_utf8(table).unwrap()
    };
    let csv = table(Format::Csv);
    let last: Vec<_> = csv
        .lines()
        .filter_map(|line| line.rsplit(',').next())
        .collect();
    assert_eq!(last, ["loss", "1.0", "NaN", "-inf"]);
    let json = table(Format::JsonLines);
    let losses = json.lines().map(|line| {
        let row: Json = serde_json::from_str(line).unwrap();
        row["loss"].clone()
    });
    assert_eq!(
        losses.collect::<Vec<_>>(),
        [json!(1.0), Json::Null, Json::Null]
    );
}

#[test]
fn tensorboard_reads_all_of_it() {
    let Some(python) = python_with(&["tensorboard"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let run = record(folder.path(), runs().remove(1), 3, Some(Outcome::Completed));
    tensorboard::write(&folder.path().join("events"), &run).unwrap();
    let read = python.run("tensorboard_check.py", &[&folder.path().join("events")]);
    let read: Json = serde_json::from_str(&read).unwrap();
    let mut expected = serde_json::Map::new();
    for point in points(&run) {
        let curve = expected.entry(point.key).or_insert_with(|| json!([]));
        let time = point.time_ms as f64 / 1000.0;
        let value = f64::from(point.value as f32);
        curve
            .as_array_mut()
            .unwrap()
            .push(json!([time, point.step, value]));
    }
    assert_eq!(read["scalars"], Json::Object(expected));
    let hparams = json!({
        "group": run.plan.trial, "hparams": {"model.hidden": "[8,4]"},
        "start": NOON as f64 / 1000.0, "end": NOON as f64 / 1000.0 + 600.0, "status": 1,
    });
    assert_eq!(read["hparams"], hparams);
}
