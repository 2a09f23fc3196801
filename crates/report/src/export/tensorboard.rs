//! TensorBoard's event files: framed records, each a protocol buffer.
//!
//! A file is a function of the run's record, and for a running run a prefix of its later content. So a file is extended
//! by appending whenever possible: an open TensorBoard sees the new part. After a resume the file has another name,
//! which TensorBoard switches to.
//!
//! Values are 32-bit floats. Times of single steps are interpolated between those of epochs; `test/…` is at the step of
//! the evaluated epoch; the seeds of a trial form one group of hyperparameters.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::proto::Message;
use super::{Exported, points};
use runner_core::event::Outcome;
use runner_core::record::{refuse_links, unwritable, write_whole};
use runner_core::spec::plain_file;

/// The suffix of files written here. Others are left alone.
const SUFFIX: &str = ".runner";

/// Writes the event file of a run into a separate folder; `None` if the run has not started.
pub fn write(folder: &Path, run: &Exported) -> io::Result<Option<PathBuf>> {
    let Some(attempt) = run.times.attempt else {
        return Ok(None);
    };
    let environment = run.folder.read_environment().ok().flatten();
    let host = environment.map_or_else(|| "unknown".into(), |e| plain(&e.host));
    let path = folder.join(format!(
        "events.out.tfevents.{:010}.{host}{SUFFIX}",
        attempt / 1000
    ));
    // A results tree may come from anyone: nothing outside it is appended to.
    if let (Some(all), Some(name)) = (folder.parent(), folder.file_name()) {
        refuse_links(all, &[&name.to_string_lossy()])?;
    }
    if let Some(name) = path.file_name() {
        refuse_links(folder, &[&name.to_string_lossy()])?;
    }
    let bytes = event_file(run);
    put(&path, &bytes).map_err(|e| unwritable(&path, e))?;
    let others = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in others {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_ours = name.starts_with("events.out.tfevents.") && name.ends_with(SUFFIX);
        if is_ours && entry.path() != path {
            fs::remove_file(entry.path()).map_err(|e| unwritable(&entry.path(), e))?;
        }
    }
    Ok(Some(path))
}

/// Writes a file with these bytes, by appending if its content is a prefix of them.
fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let there = match plain_file::read_whole(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
        other => other?,
    };
    match bytes.strip_prefix(there.as_slice()) {
        Some([]) => Ok(()),
        Some(rest) if !there.is_empty() => {
            OpenOptions::new().append(true).open(path)?.write_all(rest)
        }
        _ => write_whole(path, bytes),
    }
}

/// The complete event file of a run: the version, the varied settings, the curves, the end.
///
/// Messages and fields are those of `tensorflow/core/util/event.proto`, `framework/summary.proto`, `framework/tensor.proto`
/// and `tensorboard/plugins/hparams/plugin_data.proto`. Values are 32-bit floats there.
pub fn event_file(run: &Exported) -> Vec<u8> {
    let mut bytes = Vec::new();
    let started = run.times.started.unwrap_or_default();
    // Event { wall_time: 1, step: 2, file_version: 3, summary: 5 }
    let event = |time_ms: u64, step: usize| {
        let event = Message::default().double(1, time_ms as f64 / 1000.0);
        event.int(2, step as u64)
    };
    let version = Message::default().double(1, started as f64 / 1000.0);
    push_record(&mut bytes, &version.bytes(3, "brain.Event:2").0);
    let start = hparams("session_start_info", 3, session_start(run));
    push_record(&mut bytes, &event(started, 0).message(5, start).0);
    for point in points(run) {
        // Summary.value: 1 { tag: 1, simple_value: 2 }
        let value = Message::default().bytes(1, point.key.as_bytes());
        let value = value.float(2, point.value as f32);
        let summary = Message::default().message(1, value);
        push_record(
            &mut bytes,
            &event(point.time_ms, point.step).message(5, summary).0,
        );
    }
    if let Some((outcome, ended)) = run.record.outcome.as_ref().zip(run.times.ended) {
        // Status: 1 success, 2 failure. SessionEndInfo { status: 1, end_time_secs: 2 }
        let status = match outcome {
            Outcome::Completed => 1,
            _ => 2,
        };
        let end = Message::default().int(1, status);
        let end = hparams("session_end_info", 4, end.double(2, ended as f64 / 1000.0));
        push_record(&mut bytes, &event(ended, 0).message(5, end).0);
    }
    bytes
}

/// SessionStartInfo { hparams: 1 (a map), group_name: 4, start_time_secs: 5 }: the seeds of a trial are a group.
fn session_start(run: &Exported) -> Message {
    let mut info = Message::default();
    for (key, value) in &run.plan.axes {
        // google.protobuf.Value { number_value: 2, string_value: 3, bool_value: 4 }
        let value = match value {
            Json::Number(number) => {
                Message::default().double(2, number.as_f64().unwrap_or(f64::NAN))
            }
            Json::Bool(value) => Message::default().int(4, u64::from(*value)),
            other => Message::default().bytes(3, crate::report::value_text(other)),
        };
        let entry = Message::default().bytes(1, key).message(2, value);
        info = info.message(1, entry);
    }
    let started = run.times.started.unwrap_or_default();
    info.bytes(4, &run.plan.trial)
        .double(5, started as f64 / 1000.0)
}

/// A summary of the hyperparameter plugin: HParamsPluginData { version: 1, session_start_info: 3, session_end_info: 4 }
/// as the content of the metadata, with an empty tensor.
fn hparams(tag: &str, field: u32, info: Message) -> Message {
    let data = Message::default().int(1, 0).message(field, info);
    // PluginData { plugin_name: 1, content: 2 } in SummaryMetadata { plugin_data: 1, data_class: 4 (tensor: 2) }
    let plugin = Message::default().bytes(1, "hparams").message(2, data);
    let metadata = Message::default().message(1, plugin).int(4, 2);
    // TensorProto { dtype: 1 (float: 1), tensor_shape: 2, float_val: 5 } of one 0
    let shape = Message::default().message(2, Message::default().int(1, 1));
    let tensor = Message::default().int(1, 1).message(2, shape).float(5, 0.0);
    // Summary.value: 1 { tag: 1, tensor: 8, metadata: 9 }
    let value = Message::default().bytes(1, format!("_hparams_/{tag}"));
    let value = value.message(8, tensor).message(9, metadata);
    Message::default().message(1, value)
}

/// A record in TensorFlow's framing: the length in 8 bytes, its masked checksum, the bytes, their masked checksum.
fn push_record(bytes: &mut Vec<u8>, record: &[u8]) {
    let length = (record.len() as u64).to_le_bytes();
    bytes.extend(length);
    bytes.extend(masked(&length).to_le_bytes());
    bytes.extend(record);
    bytes.extend(masked(record).to_le_bytes());
}

/// CRC-32C, rotated and offset, so that a checksum over bytes that contain checksums is effective
/// (`tensorflow/core/lib/hash/crc32c.h`).
pub(super) fn masked(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
        .rotate_right(15)
        .wrapping_add(0xa282_ead8)
}

/// A machine's name as part of a file name.
fn plain(name: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    name.chars()
        .map(|c| if keep(c) { c } else { '-' })
        .collect()
}
