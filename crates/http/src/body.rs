//! Request bodies, with a limit on their total size in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Incoming};

/// The first bytes of each body are not counted, so that small requests are read regardless of the number of large
/// ones.
const FREE: usize = 64 << 10;

/// The memory for the bodies of all requests.
#[derive(Debug)]
pub(crate) struct Room {
    used: Arc<AtomicUsize>,
    most: usize,
}

/// The memory reserved by a body until this is dropped.
#[derive(Debug)]
pub(crate) struct Taken {
    used: Arc<AtomicUsize>,
    bytes: usize,
}

/// Why a body was not read.
#[derive(Debug, PartialEq)]
pub(crate) enum Unread {
    /// It exceeds the size limit.
    TooLarge,
    /// The bodies of other requests use all the memory.
    Full,
    /// The connection ended, or the body is malformed.
    Incomplete,
}

impl Room {
    /// Memory for `most` bytes.
    pub fn new(most: usize) -> Self {
        Self {
            used: Arc::default(),
            most,
        }
    }

    /// Reads a body of at most `most` bytes. Memory is reserved as bytes arrive, not for the announced size.
    pub async fn read(&self, body: Incoming, most: usize) -> Result<(Bytes, Taken), Unread> {
        // A body that announces its size is refused before any of it arrives.
        if body.size_hint().lower() > most as u64 {
            return Err(Unread::TooLarge);
        }
        let mut body = Limited::new(body, most);
        let mut taken = Taken {
            used: self.used.clone(),
            bytes: 0,
        };
        let mut all = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|e| {
                if e.is::<LengthLimitError>() {
                    Unread::TooLarge
                } else {
                    Unread::Incomplete
                }
            })?;
            if let Ok(data) = frame.into_data() {
                taken.grow(all.len() + data.len(), self.most)?;
                all.extend_from_slice(&data);
            }
        }
        Ok((all.into(), taken))
    }
}

impl Taken {
    /// Reserves memory for a body with this many bytes so far.
    fn grow(&mut self, bytes: usize, most: usize) -> Result<(), Unread> {
        let more = bytes.saturating_sub(FREE).saturating_sub(self.bytes);
        let fits = |used: usize| used.checked_add(more).filter(|used| *used <= most);
        let grown = self
            .used
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, fits);
        grown.map_err(|_| Unread::Full)?;
        self.bytes += more;
        Ok(())
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_bodies_share_the_room_and_small_ones_need_none() {
        let room = Room::new(1 << 20);
        let body = || Taken {
            used: room.used.clone(),
            bytes: 0,
        };
        let (mut a, mut b, mut c) = (body(), body(), body());
        assert_eq!(a.grow(FREE + (1 << 19), room.most), Ok(()));
        assert_eq!(b.grow(FREE + (1 << 19), room.most), Ok(()));
        assert_eq!(c.grow(FREE, room.most), Ok(()));
        assert_eq!(c.grow(FREE + 1, room.most), Err(Unread::Full));
        drop(a);
        assert_eq!(c.grow(FREE + 1, room.most), Ok(()));
        drop((b, c));
        assert_eq!(room.used.load(Ordering::Acquire), 0);
    }
}
