//! `events.jsonl`: what happened in a run, one JSON object per line, appended by one process.
//!
//! Each line ends with a key `"sum"`: 16 hexadecimal digits of the sha256 of the previous line's sum and of this line
//! without its own. So changed, removed, moved and added lines are detected. The first line (`log_started`) names the
//! run, so that another run's events are detected too. A kill can leave a partial line at the end, which the next
//! append cuts off; any other unreadable line is damage. Lines of a newer version have correct sums and are reported as
//! such. Logs of format 2 have no sums.

mod reader;
mod sum;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::damage::damaged;
use super::format;
use super::{RunFolder, unix_millis};
use crate::event::Event;
use crate::plan::RunPlan;
use crate::spec::plain_file;
pub(super) use reader::LogReader;
use sum::{split_sum, summed};

/// The event of the first line.
const LOG_STARTED: &str = "log_started";

/// The run of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogHead {
    pub run: String,
    pub fingerprint: String,
}

impl LogHead {
    /// Of a run.
    pub fn of(run: RunHead) -> Self {
        Self {
            run: run.id,
            fingerprint: run.fingerprint,
        }
    }
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

/// What the log in a folder begins with.
fn head_in(folder: &RunFolder) -> io::Result<LogHead> {
    let run = RunHead::read(folder)?;
    Ok(run.map_or_else(LogHead::default, LogHead::of))
}

/// The first line of a run's log.
fn first_line(head: &LogHead, time_ms: u64) -> io::Result<(String, String)> {
    let event = Named {
        event: LOG_STARTED,
        head,
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
        None => first_line(&head_in(folder)?, time_ms)?,
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

/// The text of the log in a folder, with these events.
pub(super) fn text_in(folder: &RunFolder, events: &[(u64, Event)]) -> io::Result<String> {
    text_of(&head_in(folder)?, events)
}

/// The text of a log with these events.
pub(super) fn text_of(head: &LogHead, events: &[(u64, Event)]) -> io::Result<String> {
    let first = events.first().map_or(0, |(time_ms, _)| *time_ms);
    let (mut text, mut before) = first_line(head, first)?;
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
