//! Reads a log line by line.

use std::io;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value as Json;

use super::sum::{split_sum, sum_of};
use super::{EventHead, LOG_STARTED, Line, LogHead};
use crate::event::Event;
use crate::record::damage::damaged;
use crate::record::format::of_another_version;

/// The checkpoint in an event.
#[derive(Deserialize)]
struct Saved {
    step: usize,
    epoch: usize,
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
pub(in crate::record) struct LogReader {
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
