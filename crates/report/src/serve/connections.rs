//! Concurrent connections. Idle ones give way to new ones: a connection that is not being answered is closed for a new
//! one, the oldest first, so that silent clients cannot lock out others. A browser sends its request right after
//! connecting, so that only slow senders are affected.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A connection that can be closed for another.
pub trait Closes {
    /// Closes the connection, even if a thread is waiting for it.
    fn close(&self);
}

impl Closes for TcpStream {
    fn close(&self) {
        // It may already be closed.
        let _: io::Result<()> = self.shutdown(Shutdown::Both);
    }
}

/// The open connections.
pub struct Connections<C> {
    most: usize,
    patience: Duration,
    there: Arc<Shared<C>>,
}

struct Shared<C> {
    there: Mutex<There<C>>,
    /// Notified of each closed connection.
    ended: Condvar,
}

struct There<C> {
    next: u64,
    /// By age, with whether they are being answered.
    open: BTreeMap<u64, (C, bool)>,
    /// Those that were closed for others, until their threads have noticed.
    closed: BTreeSet<u64>,
}

/// An open connection, until it is dropped.
pub struct Slot<C> {
    number: u64,
    there: Arc<Shared<C>>,
}

impl<C: Closes> Connections<C> {
    /// None yet, and at most this many. A new one waits up to `patience` until threads have noticed that their
    /// connections were closed: on a busy machine that takes a moment.
    pub fn new(most: usize, patience: Duration) -> Self {
        let there = There {
            next: 0,
            open: BTreeMap::new(),
            closed: BTreeSet::new(),
        };
        Self {
            most,
            patience,
            there: Arc::new(Shared {
                there: Mutex::new(there),
                ended: Condvar::new(),
            }),
        }
    }

    /// Makes room for a connection; `None` while all existing ones are being answered.
    pub fn admit(&self, connection: C) -> Option<Slot<C>> {
        let mut there = lock(&self.there.there);
        if there.open.len() >= self.most {
            // The number of threads that have not noticed yet must not grow without limit.
            let is_full = |there: &mut There<C>| there.closed.len() >= self.most;
            let waited = self
                .there
                .ended
                .wait_timeout_while(there, self.patience, is_full);
            there = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if there.open.len() >= self.most {
            let is_room = there.closed.len() < self.most;
            let mut silent = there
                .open
                .iter()
                .filter(|(_, (_, is_answered))| !is_answered);
            let oldest = *silent.next().filter(|_| is_room)?.0;
            if let Some((connection, _)) = there.open.remove(&oldest) {
                connection.close();
            }
            there.closed.insert(oldest);
        }
        let number = there.next;
        there.next += 1;
        there.open.insert(number, (connection, false));
        Some(Slot {
            number,
            there: self.there.clone(),
        })
    }
}

impl<C> Slot<C> {
    /// Marks the connection as being answered, so that it is not closed for another.
    pub fn is_answered(&self, is_answered: bool) {
        if let Some((_, is)) = lock(&self.there.there).open.get_mut(&self.number) {
            *is = is_answered;
        }
    }
}

impl<C> Drop for Slot<C> {
    fn drop(&mut self) {
        let mut there = lock(&self.there.there);
        there.open.remove(&self.number);
        there.closed.remove(&self.number);
        self.there.ended.notify_one();
    }
}

fn lock<C>(there: &Mutex<There<C>>) -> MutexGuard<'_, There<C>> {
    there.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    struct Told(u32, Sender<u32>);

    impl Closes for Told {
        fn close(&self) {
            self.1.send(self.0).unwrap();
        }
    }

    fn connections() -> (Connections<Told>, Sender<u32>, Receiver<u32>) {
        let (sender, receiver) = channel();
        (Connections::new(3, Duration::ZERO), sender, receiver)
    }

    #[test]
    fn the_oldest_that_is_silent_gives_way() {
        let (connections, sender, closed) = connections();
        let admit = |number| connections.admit(Told(number, sender.clone()));
        let slots: Vec<_> = (0..3).map(|number| admit(number).unwrap()).collect();
        slots[0].is_answered(true);
        let fourth = admit(3).unwrap();
        assert_eq!(closed.try_iter().collect::<Vec<_>>(), [1]);
        // One that was answered and lingers gives way too.
        slots[0].is_answered(false);
        let fifth = admit(4).unwrap();
        assert_eq!(closed.try_iter().collect::<Vec<_>>(), [0]);
        fourth.is_answered(true);
        fifth.is_answered(true);
        slots[2].is_answered(true);
        assert!(admit(5).is_none(), "all are being answered");
        drop(fourth);
        assert!(admit(6).is_some());
        assert_eq!(closed.try_iter().count(), 0);
    }

    #[test]
    fn threads_that_see_late_that_they_are_closed_are_limited() {
        let (connections, sender, closed) = connections();
        let admit = |number| connections.admit(Told(number, sender.clone()));
        let slots: Vec<_> = (0..9).map_while(admit).collect();
        assert_eq!(slots.len(), 6);
        assert_eq!(closed.try_iter().collect::<Vec<_>>(), [0, 1, 2]);
        drop(slots);
        assert!(admit(9).is_some());
    }
}
