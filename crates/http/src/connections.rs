//! Open connections, and which of them gives way to a new one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;

/// The open connections.
#[derive(Clone)]
pub(crate) struct Connections {
    most: usize,
    there: Arc<Mutex<There>>,
}

#[derive(Default)]
struct There {
    next: u64,
    /// Ordered by age.
    open: BTreeMap<u64, Open>,
}

struct Open {
    /// Aborts it; none until its task runs.
    task: Option<AbortHandle>,
    is_answered: Arc<AtomicBool>,
    was_served: Arc<AtomicBool>,
}

/// An open connection, until it is dropped.
pub(crate) struct Slot {
    number: u64,
    /// Whether the connection is being answered, and so may not be closed for another one.
    pub is_answered: Arc<AtomicBool>,
    /// Whether a good request came over it before; such connections are closed later than others.
    pub was_served: Arc<AtomicBool>,
    there: Arc<Mutex<There>>,
}

impl Connections {
    /// An empty set with a maximum of `most`.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            there: Arc::default(),
        }
    }

    /// Makes room for a connection by closing the oldest one without a good request so far, or otherwise the oldest idle one.
    /// `None` if all are being answered.
    pub fn admit(&self) -> Option<Slot> {
        let mut there = lock(&self.there);
        if there.open.len() >= self.most {
            let idle = || {
                let open = there.open.iter();
                open.filter(|(_, open)| !open.is_answered.load(Ordering::Acquire))
            };
            let is_new = |open: &Open| !open.was_served.load(Ordering::Acquire);
            let oldest = idle().find(|(_, open)| is_new(open)).or(idle().next());
            let oldest = *oldest?.0;
            let task = there.open.remove(&oldest).and_then(|open| open.task);
            if let Some(task) = task {
                task.abort();
            }
        }
        let number = there.next;
        there.next += 1;
        let (is_answered, was_served): (Arc<AtomicBool>, Arc<AtomicBool>) = Default::default();
        let open = Open {
            task: None,
            is_answered: is_answered.clone(),
            was_served: was_served.clone(),
        };
        there.open.insert(number, open);
        Some(Slot {
            number,
            is_answered,
            was_served,
            there: self.there.clone(),
        })
    }

    /// Registers the task that serves a connection.
    pub fn serve(&self, number: u64, task: AbortHandle) {
        if let Some(open) = lock(&self.there).open.get_mut(&number) {
            open.task = Some(task);
        }
    }
}

impl Slot {
    /// The number of the connection.
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        lock(&self.there).open.remove(&self.number);
    }
}

fn lock(there: &Mutex<There>) -> MutexGuard<'_, There> {
    there.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_idle_connection_gives_way() {
        let connections = Connections::new(3);
        let slots: Vec<_> = (0..3).map(|_| connections.admit().unwrap()).collect();
        slots[0].is_answered.store(true, Ordering::Release);
        let fourth = connections.admit().unwrap();
        let open = || {
            lock(&connections.there)
                .open
                .keys()
                .copied()
                .collect::<Vec<_>>()
        };
        assert_eq!(open(), [0, 2, 3]);
        // A connection that was answered and stays open can be closed too.
        slots[0].is_answered.store(false, Ordering::Release);
        let fifth = connections.admit().unwrap();
        assert_eq!(open(), [2, 3, 4]);
        for slot in [&slots[2], &fourth, &fifth] {
            slot.is_answered.store(true, Ordering::Release);
        }
        assert!(connections.admit().is_none(), "all are being answered");
        drop(fourth);
        assert!(connections.admit().is_some());
    }

    #[test]
    fn connections_without_a_good_request_give_way_first() {
        let connections = Connections::new(3);
        let slots: Vec<_> = (0..3).map(|_| connections.admit().unwrap()).collect();
        slots[0].was_served.store(true, Ordering::Release);
        let others: Vec<_> = (0..10).map(|_| connections.admit().unwrap()).collect();
        let is_open = |slot: &Slot| lock(&connections.there).open.contains_key(&slot.number());
        assert!(is_open(&slots[0]) && is_open(&others[9]) && !is_open(&slots[1]));
        for other in &others {
            other.was_served.store(true, Ordering::Release);
        }
        let last = connections.admit().unwrap();
        assert!(is_open(&last) && !is_open(&slots[0]));
    }
}
