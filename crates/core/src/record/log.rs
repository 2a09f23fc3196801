//! `events.jsonl`: what happened in a run, one JSON object per line, appended by one process.
//!
//! Each line ends with a key `"sum"`: 16 hexadecimal digits of the sha256 of the previous line's sum and of this line
//! without its own. So changed, removed, moved and added lines are detected. The first line (`log_started`) names the
//! run, so that another run's events are detected too. A kill can leave a partial line at the end, which the next
//! append cuts off; any other unreadable line is damage. Lines of a newer version have correct sums and are reported as
//! such. Logs of format 2 have no sums.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use super::damage::damaged;
use super::format::{self, of_another_version};
use super::{RunFolder, unix_millis};
use crate::event::Event;
use crate::hash::hex;
use crate::plan::RunPlan;
use crate::spec::plain_file;

/// Digits of a sum.
const NUM_DIGITS: usize = 16;
const BEFORE: &[u8] = b",\"sum\":\"";
const BEHIND: &[u8] = b"\"}";
/// The event of the first line.
const LOG_STARTED: &str = "log_started";

/// The run of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogHead {
    pub run: String,
    pub fingerprint: String,
}

#[derive(Serialize, Deserialize)]
struct Line<T> {
    time_ms: u64,
    #[serde(flatten)]
    event: T,
}

#[derive(Serialize)]
struct Named<'a> {
    event: &'static str,
    #[serde(flatten)]
    head: &'a LogHead,
}

/// The name of an event, and its time.
#[derive(Deserialize)]
struct EventHead<'a> {
    time_ms: u64,
    #[serde(borrow)]
    event: Cow<'a, str>,
}

/// The checkpoint in an event.
#[derive(Deserialize)]
struct Saved {
    step: usize,
    epoch: usize,
}

/// A log that was read completely.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub head: Option<LogHead>,
    /// Events with the times at which they arrived, in milliseconds since 1970.
    pub events: Vec<(u64, Event)>,
}

impl Log {
    /// Reads the log of a run; an empty one if there is none.
    pub fn read(folder: &RunFolder) -> io::Result<Self> {
        let path = folder.events_jsonl();
        match plain_file::read_whole(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(e) => Err(format::unreadable(&path, &e)),
            Ok(text) => Self::parse(&path, &text),
        }
    }

    /// Parses the text of a log.
    fn parse(path: &Path, text: &[u8]) -> io::Result<Self> {
        let mut reader = LogReader::default();
        let mut events = Vec::new();
        for line in whole_lines(text) {
            events.extend(reader.take(path, line)?);
        }
        reader.finish(path)?;
        let head = reader.head;
        Ok(Self { head, events })
    }

    /// Refuses events that are not those of a run.
    pub fn check_is_of(&self, folder: &RunFolder, run: &RunHead) -> io::Result<()> {
        let path = folder.events_jsonl();
        let Some(head) = &self.head else {
            if run.format >= super::seal::FIRST_SEALED && !self.events.is_empty() {
                return Err(damaged(&path, "its lines have no checksums"));
            }
            return Ok(());
        };
        if head.run != run.id {
            let reason = format!("it belongs to run `{}`, not to `{}`", head.run, run.id);
            return Err(damaged(&path, reason));
        }
        let extended = self.events.iter().any(|(_, event)| {
            matches!(event, Event::RunExtended { fingerprint, .. } if *fingerprint == run.fingerprint)
        });
        if head.fingerprint != run.fingerprint && !extended {
            let reason = "it belongs to a run with other settings (another fingerprint)";
            return Err(damaged(&path, reason));
        }
        Ok(())
    }
}

/// The keys of a `run.toml` that identify the run.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct RunHead {
    pub format: u32,
    pub id: String,
    pub fingerprint: String,
}

impl RunHead {
    /// Of a plan.
    pub fn of(plan: &RunPlan) -> Self {
        Self {
            format: plan.format,
            id: plan.id.clone(),
            fingerprint: plan.fingerprint.clone(),
        }
    }

    /// Of a folder; `None` if `run.toml` is missing or incomplete. The rest of the file, which may be long, is not
    /// parsed.
    pub fn read(folder: &RunFolder) -> io::Result<Option<Self>> {
        let text = format::read(&folder.run_toml())?.unwrap_or_default();
        let end = text.find("\n[").unwrap_or(text.len());
        Ok(toml::from_str(&text[..end]).ok())
    }
}

/// The complete lines.
pub(super) fn whole_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = text.iter().rposition(|b| *b == b'\n');
    let whole = whole.map(|end| &text[..end]);
    whole
        .into_iter()
        .flat_map(|text| text.split(|b| *b == b'\n'))
}

/// The kind of sums so far.
#[derive(Clone, Debug, Default, PartialEq)]
enum Chain {
    #[default]
    Empty,
    Summed(String),
    /// From a version before format 3.
    Unsummed,
}

/// Reads a log line by line.
#[derive(Clone, Debug, Default)]
pub(super) struct LogReader {
    pub head: Option<LogHead>,
    chain: Chain,
    num_lines: usize,
    /// An unsummed partial line, which a start of the run must follow.
    broken: Option<usize>,
}

impl LogReader {
    /// Reads the next line; `None` if it is not an event.
    pub fn take(&mut self, path: &Path, line: &[u8]) -> io::Result<Option<(u64, Event)>> {
        self.num_lines += 1;
        let number = self.num_lines;
        let Some((body, sum)) = split_sum(line) else {
            return match self.chain {
                Chain::Summed(_) => Err(damaged(
                    path,
                    format_args!("line {number} was changed: its checksum is missing"),
                )),
                Chain::Empty | Chain::Unsummed => self.take_unsummed(path, line),
            };
        };
        let before = match &self.chain {
            Chain::Summed(before) => before.as_str(),
            Chain::Empty => "",
            Chain::Unsummed => {
                let reason =
                    format_args!("line {} was changed: its checksum is missing", number - 1);
                return Err(damaged(path, reason));
            }
        };
        if sum_of(before, body) != sum {
            let reason = "does not follow from what precedes it: a line was changed, removed, moved or added (its checksum is wrong)";
            return Err(damaged(path, format_args!("line {number} {reason}")));
        }
        let is_first = self.chain == Chain::Empty;
        self.chain = Chain::Summed(sum.to_owned());
        if is_first {
            let head = serde_json::from_slice::<EventHead<'_>>(line);
            if head.is_ok_and(|head| head.event == LOG_STARTED)
                && let Ok(head) = serde_json::from_slice(line)
            {
                self.head = Some(head);
                return Ok(None);
            }
            return Err(damaged(path, "its first lines are missing"));
        }
        let newer = |what: String| {
            let wrote =
                format!("was written by a newer version of runner: line {number} has {what}");
            of_another_version(path, wrote)
        };
        match read_event(line) {
            Some((time_ms, event)) => {
                let line = Line { time_ms, event };
                if let Some(key) = unknown_key(&line, body) {
                    return Err(newer(format!("the unknown key `{key}`")));
                }
                Ok(Some((time_ms, line.event)))
            }
            None => {
                let head = serde_json::from_slice::<EventHead<'_>>(line);
                Err(newer(match head {
                    Ok(head) => {
                        format!("the unknown event `{}`", head.event)
                    }
                    Err(_) => "content that this version cannot read".into(),
                }))
            }
        }
    }

    fn take_unsummed(&mut self, path: &Path, line: &[u8]) -> io::Result<Option<(u64, Event)>> {
        let number = self.num_lines;
        let cannot = |number| damaged(path, format_args!("line {number} cannot be read"));
        self.chain = Chain::Unsummed;
        let event = read_event(line);
        if let Some(broken) = self.broken.take()
            && !matches!(event, Some((_, Event::RunStarted(_))))
        {
            return Err(cannot(broken));
        }
        if event.is_none() {
            // Earlier versions closed a line that a full disk or a kill had cut off, and continued after it. The
            // following start then counts.
            let parsed = serde_json::from_slice::<serde::de::IgnoredAny>(line);
            if !parsed.is_err_and(|e| e.is_eof()) {
                return Err(cannot(number));
            }
            self.broken = Some(number);
        }
        Ok(event)
    }

    /// Refuses a log that ends in an unreadable line.
    pub fn finish(&self, path: &Path) -> io::Result<()> {
        match self.broken {
            Some(number) => Err(damaged(path, format_args!("line {number} cannot be read"))),
            None => Ok(()),
        }
    }
}

/// A line without its sum and closing brace, and the sum.
fn split_sum(line: &[u8]) -> Option<(&[u8], &str)> {
    let line = line.strip_suffix(BEHIND)?;
    let (body, sum) = line.split_at_checked(line.len().checked_sub(NUM_DIGITS)?)?;
    let sum = std::str::from_utf8(sum).ok()?;
    Some((body.strip_suffix(BEFORE)?, sum))
}

/// The sum of a line, given without its closing brace, that follows a line with a sum.
fn sum_of(before: &str, body: &[u8]) -> String {
    let mut sum = Sha256::new();
    sum.update(before);
    sum.update(body);
    sum.update(b"}");
    hex(&sum.finalize()[..NUM_DIGITS / 2])
}

/// Puts a sum at the end of a line's JSON, and a line break.
fn summed(before: &str, json: &str) -> (String, String) {
    let body = json.strip_suffix('}').unwrap_or(json);
    let sum = sum_of(before, body.as_bytes());
    (format!("{body},\"sum\":\"{sum}\"}}\n"), sum)
}

/// A key of a line that the parsed event does not have. Empty values do not matter.
fn unknown_key(line: &Line<Event>, body: &[u8]) -> Option<String> {
    let ours = serde_json::to_string(line).ok()?;
    if ours
        .strip_suffix('}')
        .is_some_and(|ours| ours.as_bytes() == body)
    {
        return None;
    }
    let theirs: Json = serde_json::from_slice(&[body, b"}"].concat()).ok()?;
    let ours: Json = serde_json::from_str(&ours).ok()?;
    missing_key(&theirs, &ours)
}

fn missing_key(theirs: &Json, ours: &Json) -> Option<String> {
    match (theirs, ours) {
        (Json::Object(theirs), Json::Object(ours)) => {
            theirs.iter().find_map(|(key, value)| match ours.get(key) {
                Some(ours) => missing_key(value, ours),
                None if is_empty(value) => None,
                None => Some(key.clone()),
            })
        }
        (Json::Array(theirs), Json::Array(ours)) => {
            theirs.iter().zip(ours).find_map(|(a, b)| missing_key(a, b))
        }
        _ => None,
    }
}

fn is_empty(value: &Json) -> bool {
    match value {
        Json::Null | Json::Bool(false) => true,
        Json::String(text) => text.is_empty(),
        Json::Array(items) => items.is_empty(),
        Json::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// An event with its time; `None` for anything else. Most events are epochs and checkpoints, which parse several times
/// as fast if that is known beforehand.
fn read_event(line: &[u8]) -> Option<(u64, Event)> {
    let head: EventHead<'_> = serde_json::from_slice(line).ok()?;
    let event = match &*head.event {
        "epoch_finished" => Event::EpochFinished(serde_json::from_slice(line).ok()?),
        "checkpoint_saved" => {
            let Saved { step, epoch } = serde_json::from_slice(line).ok()?;
            Event::CheckpointSaved { step, epoch }
        }
        _ => serde_json::from_slice::<Line<Event>>(line).ok()?.event,
    };
    Some((head.time_ms, event))
}

/// The first line of a run's log.
fn first_line(folder: &RunFolder, time_ms: u64) -> io::Result<(String, String)> {
    let run = RunHead::read(folder)?;
    let head = run.map_or_else(LogHead::default, |run| LogHead {
        run: run.id,
        fingerprint: run.fingerprint,
    });
    let event = Named {
        event: LOG_STARTED,
        head: &head,
    };
    let json = serde_json::to_string(&Line { time_ms, event }).map_err(io::Error::other)?;
    Ok(summed("", &json))
}

/// Appends an event with the current time. A partial line that a kill left is cut off first.
pub(super) fn append(folder: &RunFolder, event: &Event) -> io::Result<()> {
    let path = folder.events_jsonl();
    let mut file = OpenOptions::new()
        .create(true)
        .read(true)
        .append(true)
        .open(&path)?;
    let (whole, last) = last_line(&mut file)?;
    if whole < file.metadata()?.len() {
        file.set_len(whole)?;
    }
    let time_ms = unix_millis();
    let (mut text, before) = match last {
        None => first_line(folder, time_ms)?,
        Some(line) => match split_sum(&line) {
            Some((_, sum)) => (String::new(), sum.to_owned()),
            None => return Err(damaged(&path, "its last line has no checksum")),
        },
    };
    let event = event.clone();
    let json = serde_json::to_string(&Line { time_ms, event }).map_err(io::Error::other)?;
    text.push_str(&summed(&before, &json).0);
    file.write_all(text.as_bytes())
}

/// The end of the last complete line, and that line without its line break.
fn last_line(file: &mut File) -> io::Result<(u64, Option<Vec<u8>>)> {
    let len = file.metadata()?.len();
    let mut size = 4096;
    loop {
        let from = len.saturating_sub(size);
        file.seek(SeekFrom::Start(from))?;
        let mut text = vec![0; (len - from) as usize];
        file.read_exact(&mut text)?;
        if let Some(end) = text.iter().rposition(|b| *b == b'\n') {
            let start = text[..end].iter().rposition(|b| *b == b'\n');
            if start.is_some() || from == 0 {
                let line = &text[start.map_or(0, |at| at + 1)..end];
                return Ok((from + end as u64 + 1, Some(line.to_vec())));
            }
        } else if from == 0 {
            return Ok((0, None));
        }
        size *= 8;
    }
}

/// The text of a log with these events.
pub(super) fn text_of(folder: &RunFolder, events: &[(u64, Event)]) -> io::Result<String> {
    let first = events.first().map_or(0, |(time_ms, _)| *time_ms);
    let (mut text, mut before) = first_line(folder, first)?;
    for (time_ms, event) in events {
        let (time_ms, event) = (*time_ms, event.clone());
        let json = serde_json::to_string(&Line { time_ms, event }).map_err(io::Error::other)?;
        let (line, sum) = summed(&before, &json);
        text.push_str(&line);
        before = sum;
    }
    Ok(text)
}

/// The text of a log with correct sums. For tests that change logs on purpose.
pub(super) fn renewed(text: &str) -> String {
    let mut before = String::new();
    let lines = text.lines().map(|line| {
        let body = split_sum(line.as_bytes()).map(|(body, _)| String::from_utf8_lossy(body) + "}");
        let (line, sum) = summed(&before, body.as_deref().unwrap_or(line));
        before = sum;
        line
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
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
}
