//! Admission of runs, so that concurrent ones fit into the memory of their shared hardware.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use runner_core::plan::inventory::HOST;

/// The demand of a run on its hardware.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The hardware, of which it uses one: [`HOST`], or GPUs, however many backends see them.
    pub cards: Vec<String>,
    /// Its forecast memory there, in bytes.
    pub bytes: u64,
    /// Whether that was measured for such runs.
    pub is_measured: bool,
    /// The bytes to leave free in addition to all runs.
    pub reserve: u64,
}

/// The waiting and active runs.
pub struct Admission {
    /// Memory of each piece of hardware in bytes, if known.
    capacities: BTreeMap<String, u64>,
    state: Mutex<State>,
    changed: Condvar,
}

/// A run on its hardware.
struct Active {
    claim: Claim,
    card: String,
}

#[derive(Default)]
struct State {
    /// In starting order, unless memory prevents it.
    waiting: Vec<(usize, Claim)>,
    running: BTreeMap<usize, Active>,
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

    /// Waits until the first run that fits next to the active ones may start, and returns it; none if no run is left,
    /// or nothing may start any more.
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

    /// Admits the first run that fits, if any.
    fn start(&self, state: &mut State) -> Option<usize> {
        let mut waiting = state.waiting.iter().enumerate();
        let (at, card) =
            waiting.find_map(|(at, (_, claim))| Some((at, self.place(claim, &state.running)?)))?;
        let (run, claim) = state.waiting.remove(at);
        state.running.insert(run, Active { claim, card });
        Some(run)
    }

    /// An active run makes its demand; waits until that fits, and returns the hardware. Returns at once if nothing may
    /// start any more.
    pub fn change(&self, run: usize, claim: Claim) -> String {
        let mut state = self.lock();
        if let Some(active) = state.running.get(&run)
            && active.claim == claim
        {
            return active.card.clone();
        }
        state.running.remove(&run);
        self.changed.notify_all();
        let card = loop {
            if let Some(card) = self.place(&claim, &state.running) {
                break card;
            }
            if state.is_closed {
                break claim.cards.first().cloned().unwrap_or_default();
            }
            state = self.wait(state);
        };
        let active = Active {
            claim,
            card: card.clone(),
        };
        state.running.insert(run, active);
        card
    }

    /// A run has ended.
    pub fn end(&self, run: usize) {
        self.lock().running.remove(&run);
        self.changed.notify_all();
    }

    /// No waiting run may start any more; active ones may still change.
    pub fn start_no_more(&self) {
        self.lock().starts_no_more = true;
        self.changed.notify_all();
    }

    /// Nothing may start any more.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Where a run fits next to others: on the hardware with the fewest of them.
    fn place(&self, claim: &Claim, running: &BTreeMap<usize, Active>) -> Option<String> {
        let mut cards: Vec<(usize, &String)> = claim
            .cards
            .iter()
            .map(|card| {
                (
                    running.values().filter(|other| other.card == *card).count(),
                    card,
                )
            })
            .collect();
        cards.sort_by_key(|(num, _)| *num);
        let mut cards = cards.into_iter().map(|(_, card)| card);
        cards.find(|card| self.fits(claim, card, running)).cloned()
    }

    /// Whether a run fits next to others. Alone it always does: whether it fits at all is not decided here.
    fn fits(&self, claim: &Claim, card: &str, running: &BTreeMap<usize, Active>) -> bool {
        let others = running.values().filter(|other| other.card == card);
        let mut all: Vec<&Claim> = others.map(|other| &other.claim).collect();
        if all.is_empty() {
            return true;
        }
        all.push(claim);
        let is_host = card == HOST;
        // A count alone does not predict well what a GPU's pool will reserve.
        if !is_host && !all.iter().all(|claim| claim.is_measured) {
            return false;
        }
        let reserve = all.iter().map(|claim| claim.reserve).max();
        let taken = all.iter().map(|claim| claim.bytes);
        let taken = taken.fold(reserve.unwrap_or(0), u64::saturating_add);
        match self.capacities.get(card) {
            Some(capacity) => taken <= *capacity,
            // The host has room for as many as there are slots; a GPU of unknown size for one.
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
            cards: vec![card.into()],
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
        // The second does not fit next to the first, but the third does; the size of `b` is unknown.
        assert_eq!(started(&admission), [0, 2, 3, 5, 6]);
        admission.end(3);
        assert_eq!(started(&admission), [4]);
        // The first moves from the GPU to the host, which is full until the other has ended.
        admission.end(5);
        admission.change(0, claim(HOST, 9));
        assert_eq!(started(&admission), [1]);
        assert_eq!(admission.next(), None);
    }

    #[test]
    fn runs_on_any_of_several_cards_are_spread_over_them() {
        let any = |bytes: u64| Claim {
            cards: vec!["a".into(), "b".into()],
            ..claim("a", bytes)
        };
        let claims = vec![any(6), any(6), any(4), any(6), claim("b", 4)];
        let admission = admission(claims, &[("a", 10), ("b", 10)]);
        let card = |run: usize| admission.lock().running[&run].card.clone();
        // The third fits next to the first; then the fourth fits nowhere, but the last next to the second.
        assert_eq!(started(&admission), [0, 1, 2, 4]);
        assert_eq!([0, 1, 2, 4].map(card), ["a", "b", "a", "b"]);
        admission.end(1);
        assert_eq!(started(&admission), [3]);
        assert_eq!(admission.change(3, any(6)), "b");
        // Nothing is left of the first card when the first two runs have ended.
        admission.end(0);
        admission.end(2);
        assert_eq!(admission.change(3, any(9)), "a");
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
