//! Which run may start now, so that those at once fit into the memory of the hardware that they share.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The hardware by which the host's memory is known.
pub const HOST: &str = "host";

/// What a run takes of the hardware that it is computed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The hardware: [`HOST`], or a card, however many backends it is seen through.
    pub card: String,
    /// The bytes that it is forecast to hold there.
    pub bytes: u64,
    /// Whether that rests on a measurement.
    pub is_measured: bool,
}

/// The runs that wait and those that are under way.
pub struct Admission {
    /// Bytes of each piece of hardware, where they are known.
    capacities: BTreeMap<String, u64>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// In the order in which they start where nothing stands against it.
    waiting: Vec<(usize, Claim)>,
    running: BTreeMap<usize, Claim>,
    starts_no_more: bool,
    is_closed: bool,
}

impl Admission {
    /// Nothing runs yet.
    pub fn new(claims: Vec<Claim>, capacities: BTreeMap<String, u64>) -> Self {
        Self {
            capacities,
            state: Mutex::new(State {
                waiting: claims.into_iter().enumerate().collect(),
                ..State::default()
            }),
            changed: Condvar::new(),
        }
    }

    /// Waits until the first run that fits beside those under way may start, and says which it is; none when no
    /// run is left, or nothing may start any more.
    pub fn next(&self) -> Option<usize> {
        let mut state = self.lock();
        loop {
            if state.is_closed || state.starts_no_more || state.waiting.is_empty() {
                return None;
            }
            let fits = |(_, claim): &(usize, Claim)| self.fits(claim, &state.running);
            if let Some(at) = state.waiting.iter().position(fits) {
                let (run, claim) = state.waiting.remove(at);
                state.running.insert(run, claim);
                return Some(run);
            }
            state = self.wait(state);
        }
    }

    /// A run under way takes something else from now on; waits until that fits. Returns at once when nothing
    /// may start any more.
    pub fn change(&self, run: usize, claim: Claim) {
        let mut state = self.lock();
        if state.running.get(&run) == Some(&claim) {
            return;
        }
        state.running.remove(&run);
        self.changed.notify_all();
        while !state.is_closed && !self.fits(&claim, &state.running) {
            state = self.wait(state);
        }
        state.running.insert(run, claim);
    }

    /// A run has ended.
    pub fn end(&self, run: usize) {
        self.lock().running.remove(&run);
        self.changed.notify_all();
    }

    /// No waiting run is to start any more; those under way may still change.
    pub fn start_no_more(&self) {
        self.lock().starts_no_more = true;
        self.changed.notify_all();
    }

    /// Nothing is to start any more.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// The bytes of a piece of hardware, where they are known.
    pub fn capacity(&self, card: &str) -> Option<u64> {
        self.capacities.get(card).copied()
    }

    /// Whether a run fits beside others. Alone it always does: whether it fits at all is not decided here.
    fn fits(&self, claim: &Claim, running: &BTreeMap<usize, Claim>) -> bool {
        let others = running.values().filter(|other| other.card == claim.card);
        let taken: Vec<u64> = others.map(|other| other.bytes).collect();
        if taken.is_empty() {
            return true;
        }
        let sum = taken
            .iter()
            .fold(claim.bytes, |sum, b| sum.saturating_add(*b));
        match self.capacity(&claim.card) {
            Some(capacity) => sum <= capacity,
            // The host has room for as many as there are slots; a card of unknown size for one.
            None => claim.card == HOST,
        }
    }

    fn wait<'a>(&'a self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let waited = self.changed.wait(state);
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(card: &str, bytes: u64) -> Claim {
        Claim {
            card: card.into(),
            bytes,
            is_measured: card != "c",
        }
    }

    #[test]
    fn a_card_has_one_run_at_a_time_unless_two_are_known_to_fit() {
        let claims = vec![
            claim("a", 6),
            claim("a", 6),
            claim("a", 4),
            claim("b", 1),
            claim("b", 1),
            claim(HOST, 9),
            claim(HOST, 1),
            claim("c", 1),
            claim("c", 1),
        ];
        let capacities = ["a", "c", HOST].map(|card| (card.to_owned(), 10));
        let capacities = BTreeMap::from(capacities);
        let admission = Admission::new(claims, capacities);
        // The second does not fit beside the first, but the third does; of `b` nobody knows the size, and of
        // those on `c` what they take.
        let started: Vec<_> = (0..6).map(|_| admission.next().unwrap()).collect();
        assert_eq!(started, [0, 2, 3, 5, 6, 7]);
        admission.end(3);
        assert_eq!(admission.next(), Some(4));
        // The first leaves the card for the host, which is full until the others have ended.
        admission.end(5);
        admission.change(0, claim(HOST, 9));
        assert_eq!(admission.next(), Some(1));
        admission.end(7);
        assert_eq!(admission.next(), Some(8));
        assert_eq!(admission.next(), None);
    }

    #[test]
    fn what_fits_nowhere_is_let_go_alone() {
        let capacities = BTreeMap::from([(HOST.to_owned(), 10)]);
        let admission = Admission::new(vec![claim(HOST, 50), claim(HOST, 50)], capacities);
        assert_eq!(admission.next(), Some(0));
        admission.end(0);
        assert_eq!(admission.next(), Some(1));
        admission.end(1);
        admission.close();
        assert_eq!(admission.next(), None);
    }
}
