//! Reading a run's events while they are written.

use std::io::{self, Read, Seek, SeekFrom};

use super::log::{LogReader, whole_lines};
use super::{RunFolder, format};
use crate::event::Event;
use crate::spec::plain_file;

/// A position in a run's `events.jsonl`.
#[derive(Debug, Default)]
pub struct Tail {
    offset: u64,
    reader: LogReader,
}

/// The new content.
#[derive(Debug, PartialEq)]
pub struct News {
    /// The file was replaced: everything read from it before is invalid.
    pub is_anew: bool,
    /// The events since the last time.
    pub events: Vec<Event>,
}

impl Tail {
    /// The events since the last read. An incomplete line is left for the next read; a damaged one is an error from
    /// then on.
    pub fn read(&mut self, folder: &RunFolder) -> io::Result<News> {
        let path = folder.events_jsonl();
        let mut news = News {
            is_anew: false,
            events: Vec::new(),
        };
        let mut file = match plain_file::open(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                news.is_anew = std::mem::take(self).offset > 0;
                return Ok(news);
            }
            other => other.map_err(|e| format::unreadable(&path, &e))?,
        };
        let mut read = || -> io::Result<Vec<u8>> {
            if file.metadata()?.len() < self.offset {
                // It only grows, so a shorter file is a different one.
                *self = Self::default();
                news.is_anew = true;
            }
            file.seek(SeekFrom::Start(self.offset))?;
            let mut text = Vec::new();
            file.read_to_end(&mut text)?;
            Ok(text)
        };
        let text = read().map_err(|e| format::unreadable(&path, &e))?;
        let whole = text
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |at| at + 1);
        let mut reader = self.reader.clone();
        for line in whole_lines(&text) {
            match reader.take(&path, line) {
                Ok(event) => news.events.extend(event.map(|(_, event)| event)),
                // The file of another run may also be longer.
                Err(_) if self.offset > 0 => {
                    *self = Self::default();
                    let anew = self.read(folder)?;
                    return Ok(News {
                        is_anew: true,
                        ..anew
                    });
                }
                Err(e) => return Err(e),
            }
        }
        self.reader = reader;
        self.offset += whole as u64;
        Ok(news)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn whole_lines_are_read_once() {
        let place = tempfile::tempdir().unwrap();
        let folder = RunFolder(place.path().to_owned());
        let mut tail = Tail::default();
        let saved = |step| Event::CheckpointSaved { step, epoch: 1 };
        assert_eq!(tail.read(&folder).unwrap().events, []);
        folder.append_event(&saved(1)).unwrap();
        folder.append_event(&saved(2)).unwrap();
        assert_eq!(tail.read(&folder).unwrap().events, [saved(1), saved(2)]);
        assert_eq!(tail.read(&folder).unwrap().events, []);
        // Partial, and then complete.
        folder.append_event(&saved(3)).unwrap();
        let text = fs::read(folder.events_jsonl()).unwrap();
        fs::write(folder.events_jsonl(), &text[..text.len() - 5]).unwrap();
        assert_eq!(tail.read(&folder).unwrap().events, []);
        fs::write(folder.events_jsonl(), &text).unwrap();
        assert_eq!(tail.read(&folder).unwrap().events, [saved(3)]);
        // Another run's.
        fs::remove_file(folder.events_jsonl()).unwrap();
        folder.append_event(&saved(4)).unwrap();
        let news = tail.read(&folder).unwrap();
        assert_eq!((news.is_anew, news.events), (true, vec![saved(4)]));
    }
}
