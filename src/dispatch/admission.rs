//! Which run may start now, so that those at once fit into the memory of the hardware that they share.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use runner_core::plan::inventory::HOST;

/// What a run takes of the hardware that it is computed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The hardware: [`HOST`], or a card, however many backends it is seen through.
    pub card: String,
    /// The bytes that it is forecast to hold there.
    pub bytes: u64,
    /// Whether that was measured of such runs.
    pub is_measured: bool,
    /// The bytes that are to stay free beside all runs.
    pub reserve: u64,
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
            if let Some(run) = self.start(&mut state) {
                return Some(run);
            }
            state = self.wait(state);
        }
    }

    /// Lets the first run go that fits, if one does.
    fn start(&self, state: &mut State) -> Option<usize> {
        let fits = |(_, claim): &(usize, Claim)| self.fits(claim, &state.running);
        let at = state.waiting.iter().position(fits)?;
        let (run, claim) = state.waiting.remove(at);
        state.running.insert(run, claim);
        Some(run)
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

    /// Whether a run fits beside others. Alone it always does: whether it fits at all is not decided here.
    fn fits(&self, claim: &Claim, running: &BTreeMap<usize, Claim>) -> bool {
        let others = running.values().filter(|other| other.card == claim.card);
        let mut all: Vec<&Claim> = others.collect();
        if all.is_empty() {
            return true;
        }
        all.push(claim);
        let is_host = claim.card == HOST;
        // What is counted alone says too little of what a card's pool will reserve.
        if !is_host && !all.iter().all(|claim| claim.is_measured) {
            return false;
        }
        let reserve = all.iter().map(|claim| claim.reserve).max();
        let taken = all.iter().map(|claim| claim.bytes);
        let taken = taken.fold(reserve.unwrap_or(0), u64::saturating_add);
        match self.capacities.get(&claim.card) {
            Some(capacity) => taken <= *capacity,
            // The host has room for as many as there are slots; a card of unknown size for one.
            None => is_host,
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
            is_measured: true,
            reserve: 0,
        }
    }

    fn admission(claims: Vec<Claim>, sizes: &[(&str, u64)]) -> Admission {
        let sizes = sizes
            .iter()
            .map(|(card, bytes)| ((*card).to_owned(), *bytes));
        Admission::new(claims, sizes.collect())
    }

    /// The runs that may start now.
    fn started(admission: &Admission) -> Vec<usize> {
        let mut state = admission.lock();
        std::iter::from_fn(|| admission.start(&mut state)).collect()
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
        ];
        let admission = admission(claims, &[("a", 10), (HOST, 10)]);
        // The second does not fit beside the first, but the third does; of `b` nobody knows the size.
        assert_eq!(started(&admission), [0, 2, 3, 5, 6]);
        admission.end(3);
        assert_eq!(started(&admission), [4]);
        // The first leaves the card for the host, which is full until the other has ended.
        admission.end(5);
        admission.change(0, claim(HOST, 9));
        assert_eq!(started(&admission), [1]);
        assert_eq!(admission.next(), None);
    }

    #[test]
    fn a_card_takes_no_second_run_by_what_was_counted_alone() {
        let counted = |card: &str| Claim {
            is_measured: false,
            ..claim(card, 1)
        };
        let claims = vec![
            counted("a"),
            counted("a"),
            claim("a", 1),
            counted(HOST),
            counted(HOST),
        ];
        let admission = admission(claims, &[("a", 10), (HOST, 10)]);
        assert_eq!(started(&admission), [0, 3, 4]);
        admission.end(0);
        assert_eq!(started(&admission), [1]);
        admission.end(1);
        assert_eq!(started(&admission), [2]);
    }

    #[test]
    fn what_is_reserved_stays_free_beside_all_runs() {
        let reserving = |reserve: u64| Claim {
            reserve,
            ..claim("a", 3)
        };
        let claims = vec![reserving(0), reserving(5), reserving(4), reserving(0)];
        let admission = admission(claims, &[("a", 10)]);
        assert_eq!(started(&admission), [0, 2]);
        admission.end(0);
        assert_eq!(started(&admission), [3]);
        admission.end(2);
        assert_eq!(started(&admission), [] as [usize; 0]);
        admission.end(3);
        assert_eq!(started(&admission), [1]);
    }

    #[test]
    fn what_fits_nowhere_is_let_go_alone() {
        let claims = vec![claim(HOST, 50), claim(HOST, 50)];
        let admission = admission(claims, &[(HOST, 10)]);
        assert_eq!(started(&admission), [0]);
        admission.end(0);
        assert_eq!(started(&admission), [1]);
        admission.end(1);
        admission.close();
        assert_eq!(admission.next(), None);
    }
}
