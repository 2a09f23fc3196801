//! A file of the cache: records under a name, which are checked before they are used.

use std::fs;
use std::path::{Path, PathBuf};

use crate::data::DataError;
use crate::data::known::{Known, Trust};
use crate::data::read::unwritable;
use crate::data::records::{Opened, Records, Writer};
use crate::diagnostic::Reason;
use crate::show::plain_io_error;

/// A file of the cache with its content, which its header has too.
pub(in crate::data) struct Cached {
    folder: PathBuf,
    path: PathBuf,
    content: String,
}

impl Cached {
    /// The file of a name in the folder of the cache.
    pub(in crate::data) fn new(folder: &Path, name: &str, content: String) -> Self {
        Self {
            folder: folder.to_owned(),
            path: folder.join(name),
            content,
        }
    }

    /// The records, if they are there and sound. With [`Trust::Bytes`], all of them are checked; otherwise only if the
    /// stamp of the file does not prove that they were checked before.
    pub(in crate::data) fn open(&self, trust: Trust) -> Option<Records> {
        self.sound(trust).unwrap_or_else(|Reason(reason)| {
            self.warn(&reason);
            None
        })
    }

    /// Says why the file is written again.
    pub(in crate::data) fn warn(&self, reason: &str) {
        tracing::warn!(
            "the cached file {} cannot be used and is rebuilt from the data: {reason}",
            self.path.display()
        );
    }

    /// A writer of the records, which has the content.
    pub(in crate::data) fn writer(&self) -> Result<Writer, DataError> {
        fs::create_dir_all(&self.folder).map_err(|e| unwritable(&e))?;
        let mut writer = Writer::in_folder(&self.folder).map_err(|e| unwritable(&e))?;
        writer.note_content(&self.content);
        Ok(writer)
    }

    /// Puts what was written in place, and reads it back.
    pub(in crate::data) fn persist(&self, writer: Writer) -> Result<Records, DataError> {
        writer.persist(&self.path).map_err(|e| unwritable(&e))?;
        let found = self.sound(Trust::Bytes);
        let found = found.and_then(|records| records.ok_or_else(|| "it does not exist".into()));
        found.map_err(|Reason(reason)| {
            let message = format!(
                "the cached file {} cannot be read back: {reason}",
                self.path.display()
            );
            DataError::new(message).help("check that the disk is healthy and not full")
        })
    }

    /// The records. `None` if there are none, or those of an older format; the error says what is wrong with the file.
    fn sound(&self, trust: Trust) -> Result<Option<Records>, Reason> {
        let records = match Records::open(&self.path) {
            Ok(Opened::Records(records)) => *records,
            Ok(Opened::Damaged(reason)) => return Err(reason),
            Ok(Opened::Older) => return Ok(None),
            Err(_) if !self.path.exists() => return Ok(None),
            Err(error) => return Err(Reason(plain_io_error(&error))),
        };
        if records.header.content != self.content {
            return Err("its content does not match its name".into());
        }
        let mut known = Known::of_cached(&self.folder, trust);
        let checked = known.sum("", &self.path, 0, &mut || match records.first_damage() {
            None => Ok(self.content.clone()),
            Some(at) => Err(DataError::new(format!(
                "its checksum does not match in the MiB from byte {at}"
            ))),
        });
        known.write();
        match checked {
            Ok(_) => Ok(Some(records)),
            Err(damage) => Err(Reason(damage.message)),
        }
    }
}
