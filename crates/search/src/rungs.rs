//! Which trials are trained further: all begin with few epochs, and the better ones of each rung continue. Trials that
//! meet the constraints of the search at a rung are better than those that do not, whatever their values, and of the
//! latter those that violate them less.
//!
//! A decision is a function of the results at the rungs: of nothing that depends on the speed of a machine, or on how
//! many trials are trained at a time.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// How trials are selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Asynchronous successive halving (Li et al., 2018): of the trials at a rung so far, the best 1/factor continue.
    Asha,
    /// Successive halving (Jamieson and Talwalkar, 2016): brackets of trials, each rung of which is completed before the
    /// best 1/factor continue.
    SuccessiveHalving,
    /// Hyperband (Li et al., 2016): successive halving whose brackets begin at different rungs in turn.
    Hyperband,
    /// The median rule (Golovin et al., 2017): a trial ends when it is worse than the median of the others at the rung.
    Median {
        /// The others that must have a value at the rung.
        min_trials: usize,
    },
}

/// A rule with the rungs at which it selects.
#[derive(Clone, Debug, PartialEq)]
pub struct Rungs {
    /// How trials are selected.
    pub rule: Rule,
    /// One of this many trials continues.
    pub factor: usize,
    /// The number of rungs; at the last one, a trial is trained completely.
    pub num: usize,
}

/// A trial that was trained up to its rung.
#[derive(Clone, Debug, PartialEq)]
pub struct Climber {
    /// Its bracket, from 0; 0 for rules without brackets.
    pub bracket: usize,
    /// The rung that it has reached, from 0.
    pub rung: usize,
    /// Whether it reached the rung in the newest batch.
    pub is_new: bool,
    /// Its value at each rung up to its own, of which lower is better; none where it failed before.
    pub values: Vec<Option<f64>>,
    /// How far it is from meeting the constraints at each rung: 0 if it does, infinite if that is not known.
    pub violations: Vec<f64>,
}

/// How good a trial is at a rung, of which lower is better.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Standing {
    violation: f64,
    value: f64,
}

impl Standing {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_violation = self.violation.total_cmp(&other.violation);
        by_violation.then(self.value.total_cmp(&other.value))
    }
}

impl Climber {
    /// None where it has no value.
    fn standing(&self, rung: usize) -> Option<Standing> {
        Some(Standing {
            violation: self.violations.get(rung).copied()?,
            value: self.values.get(rung).copied()??,
        })
    }
}

/// What is trained next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// A new trial, up to a rung.
    Start {
        /// Its bracket.
        bracket: usize,
        /// The rung.
        rung: usize,
    },
    /// A trial goes on to the next rung.
    Continue {
        /// Its index.
        trial: usize,
    },
}

impl Rungs {
    /// The next batch of at most `num` jobs, of which at most `num_new` start trials. All trials have reached their
    /// rungs. Empty if nothing is left to do.
    pub fn batch(&self, trials: &[Climber], num: usize, num_new: usize) -> Vec<Job> {
        match self.rule {
            Rule::Asha => self.asha(trials, num, num_new),
            Rule::Median { min_trials } => self.median(trials, num, num_new, min_trials),
            Rule::SuccessiveHalving | Rule::Hyperband => self.brackets(trials, num, num_new),
        }
    }

    /// Trials at or above a rung, the best first; those without a value are last.
    fn ranked(&self, trials: &[Climber], of: impl Fn(&Climber) -> bool, rung: usize) -> Ranked {
        let members = trials.iter().enumerate();
        let members = members.filter(|(_, trial)| trial.rung >= rung && of(trial));
        let mut order: Vec<(usize, Option<Standing>)> = members
            .map(|(at, trial)| (at, trial.standing(rung)))
            .collect();
        order.sort_by(|(_, a), (_, b)| match (a, b) {
            (Some(a), Some(b)) => a.cmp(b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        });
        let num_values = order.iter().filter(|(_, value)| value.is_some()).count();
        Ranked {
            order: order.into_iter().map(|(at, _)| at).collect(),
            num_values,
        }
    }

    /// From the highest rung down, the trials among the best that have not continued, and then new ones.
    fn asha(&self, trials: &[Climber], num: usize, num_new: usize) -> Vec<Job> {
        let mut jobs = Vec::new();
        for rung in (0..self.num.saturating_sub(1)).rev() {
            let ranked = self.ranked(trials, |_| true, rung);
            let num_best = (ranked.order.len() / self.factor).min(ranked.num_values);
            jobs.extend(waiting(trials, &ranked.order[..num_best], rung));
        }
        jobs.truncate(num);
        let new = (num - jobs.len()).min(num_new);
        let start = Job::Start {
            bracket: 0,
            rung: 0,
        };
        jobs.extend(std::iter::repeat_n(start, new));
        jobs
    }

    /// The trials that have just reached a rung and are not worse than the median of the others there, and new ones.
    fn median(
        &self,
        trials: &[Climber],
        num: usize,
        num_new: usize,
        min_trials: usize,
    ) -> Vec<Job> {
        let at_rung = |rung: usize| -> Vec<Standing> {
            let all = trials.iter().filter_map(|trial| trial.standing(rung));
            let mut all: Vec<Standing> = all.collect();
            all.sort_by(Standing::cmp);
            all
        };
        let new = trials.iter().enumerate();
        let new = new.filter(|(_, trial)| trial.is_new && trial.rung + 1 < self.num);
        let reached: BTreeSet<usize> = new.clone().map(|(_, trial)| trial.rung).collect();
        let rungs: BTreeMap<usize, Vec<Standing>> = reached
            .into_iter()
            .map(|rung| (rung, at_rung(rung)))
            .collect();
        let continues = |trial: &Climber| {
            let Some(own) = trial.standing(trial.rung) else {
                return false;
            };
            let all = &rungs[&trial.rung];
            all.len() <= min_trials.max(1) || is_in_better_half(all, own)
        };
        let mut jobs: Vec<Job> = new
            .filter(|(_, trial)| continues(trial))
            .map(|(trial, _)| Job::Continue { trial })
            .collect();
        let start = Job::Start {
            bracket: 0,
            rung: 0,
        };
        let more = num.saturating_sub(jobs.len()).min(num_new);
        jobs.extend(std::iter::repeat_n(start, more));
        jobs
    }

    /// The number of trials that a bracket begins with, and its first rung.
    pub fn bracket(&self, bracket: usize) -> (usize, usize) {
        let top = self.num - 1;
        let power = |exponent: usize| self.factor.saturating_pow(exponent as u32);
        match self.rule {
            Rule::Hyperband => {
                let halvings = top - bracket % (top + 1);
                let num = (top + 1).saturating_mul(power(halvings));
                (num.div_ceil(halvings + 1), top - halvings)
            }
            _ => (power(top), 0),
        }
    }

    /// Bracket by bracket: new trials until it is complete, and at each rung, once all of its trials are there, the best
    /// ones. Where a bracket has to wait for its trials, the next one begins.
    fn brackets(&self, trials: &[Climber], num: usize, num_new: usize) -> Vec<Job> {
        let mut jobs: Vec<Job> = Vec::new();
        let mut num_new = num_new;
        let last = trials.iter().map(|trial| trial.bracket).max().unwrap_or(0);
        for bracket in 0.. {
            if jobs.len() >= num || bracket > last && num_new == 0 {
                break;
            }
            let (size, first) = self.bracket(bracket);
            let of = |trial: &Climber| trial.bracket == bracket;
            let begun = trials.iter().filter(|trial| of(trial)).count();
            let start = Job::Start {
                bracket,
                rung: first,
            };
            let more = size
                .saturating_sub(begun)
                .min(num_new)
                .min(num - jobs.len());
            jobs.extend(std::iter::repeat_n(start, more));
            num_new -= more;
            if more > 0 {
                continue;
            }
            // Of the last bracket, fewer trials may be left.
            let mut expected = begun;
            for rung in first..self.num - 1 {
                let ranked = self.ranked(trials, of, rung);
                if ranked.order.len() < expected {
                    break;
                }
                expected = (expected / self.factor).max(1).min(ranked.num_values);
                jobs.extend(waiting(trials, &ranked.order[..expected], rung));
            }
            jobs.truncate(num);
        }
        jobs
    }
}

/// Trials at a rung.
struct Ranked {
    /// Their indices, the best first.
    order: Vec<usize>,
    num_values: usize,
}

/// Those of some trials that have not left a rung.
fn waiting(trials: &[Climber], best: &[usize], rung: usize) -> impl Iterator<Item = Job> {
    let here = best.iter().filter(move |at| trials[**at].rung == rung);
    here.map(|trial| Job::Continue { trial: *trial })
        .collect::<Vec<_>>()
        .into_iter()
}

/// Whether one of some sorted trials is not worse than the median of the others: of their violations, and if those in the
/// middle violate the constraints equally, such as not at all, of their values.
fn is_in_better_half(sorted: &[Standing], own: Standing) -> bool {
    let at = sorted.partition_point(|other| other.cmp(&own) == Ordering::Less);
    let other = |index: usize| sorted[index + usize::from(index >= at)];
    let num = sorted.len() - 1;
    let (low, high) = (other((num - 1) / 2), other(num / 2));
    if low.violation == high.violation {
        let middle = Standing {
            violation: low.violation,
            value: (low.value + high.value) / 2.0,
        };
        return own.cmp(&middle) != Ordering::Greater;
    }
    // One that is not known is not in between.
    let is_known = high.violation.is_finite();
    let middle = if is_known {
        (low.violation + high.violation) / 2.0
    } else {
        low.violation
    };
    own.violation <= middle
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rungs(rule: Rule, num: usize) -> Rungs {
        Rungs {
            rule,
            factor: 3,
            num,
        }
    }

    /// Runs a search whose trials have these values at each rung.
    fn run(
        rungs: &Rungs,
        nums: (usize, usize),
        value: impl Fn(usize, usize) -> Option<f64>,
    ) -> (Vec<Climber>, Vec<Vec<Job>>) {
        run_with(rungs, nums, value, |_| 0.0)
    }

    /// The same with violations of constraints.
    fn run_with(
        rungs: &Rungs,
        (num_trials, parallel): (usize, usize),
        value: impl Fn(usize, usize) -> Option<f64>,
        violation: impl Fn(usize) -> f64,
    ) -> (Vec<Climber>, Vec<Vec<Job>>) {
        let (mut trials, mut batches): (Vec<Climber>, Vec<_>) = (Vec::new(), Vec::new());
        loop {
            let batch = rungs.batch(&trials, parallel, num_trials - trials.len());
            if batch.is_empty() {
                return (trials, batches);
            }
            assert!(batches.len() < 100_000, "it ends");
            trials.iter_mut().for_each(|trial| trial.is_new = false);
            for job in &batch {
                let (at, rung) = match *job {
                    Job::Start { bracket, rung } => {
                        trials.push(Climber {
                            bracket,
                            rung,
                            is_new: true,
                            values: Vec::new(),
                            violations: Vec::new(),
                        });
                        (trials.len() - 1, rung)
                    }
                    Job::Continue { trial } => (trial, trials[trial].rung + 1),
                };
                let trial = &mut trials[at];
                (trial.rung, trial.is_new) = (rung, true);
                trial.values = (0..=rung).map(|rung| value(at, rung)).collect();
                trial.violations = (0..=rung).map(|_| violation(at)).collect();
            }
            batches.push(batch);
        }
    }

    fn reached(trials: &[Climber], num: usize) -> Vec<usize> {
        let at = |rung| trials.iter().filter(|trial| trial.rung >= rung).count();
        (0..num).map(at).collect()
    }

    /// An order of trials without a pattern.
    fn scrambled(at: usize, _: usize) -> Option<f64> {
        Some(((at * 7919 + 13) % 1009) as f64)
    }

    #[test]
    fn asha_continues_the_best_of_each_rung() {
        for parallel in [1, 4, 9] {
            let rungs = rungs(Rule::Asha, 4);
            let (trials, _) = run(&rungs, (81, parallel), scrambled);
            let reached = reached(&trials, 4);
            // A trial that was among the best of those before it may have continued too early.
            assert_eq!(reached[0], 81);
            assert!((27..=36).contains(&reached[1]), "{reached:?}");
            assert!((9..=14).contains(&reached[2]), "{reached:?}");
            assert!((3..=6).contains(&reached[3]), "{reached:?}");
            let best = (0..81).min_by_key(|at| scrambled(*at, 0).unwrap() as u64);
            assert_eq!(trials[best.unwrap()].rung, 3);
        }
    }

    #[test]
    fn asha_follows_the_algorithm_of_the_paper() {
        // Lower trials are better. With one job at a time, the third result makes the first trial promotable.
        let (_, batches) = run(&rungs(Rule::Asha, 2), (6, 1), |at, _| Some(at as f64));
        let start = Job::Start {
            bracket: 0,
            rung: 0,
        };
        let go_on = |trial| Job::Continue { trial };
        let expected = [start, start, start, go_on(0), start, start, start, go_on(1)];
        assert_eq!(batches.concat(), expected);
    }

    #[test]
    fn failed_trials_do_not_continue() {
        for rule in [
            Rule::Asha,
            Rule::SuccessiveHalving,
            Rule::Hyperband,
            Rule::Median { min_trials: 3 },
        ] {
            let fails = |at: usize, rung| {
                (!at.is_multiple_of(4))
                    .then(|| scrambled(at, rung))
                    .flatten()
            };
            let (trials, _) = run(&rungs(rule, 3), (40, 4), fails);
            assert_eq!(trials.len(), 40);
            assert!(trials.iter().any(|trial| trial.rung == 2), "{rule:?}");
            for (at, trial) in trials.iter().enumerate() {
                let first = if rule == Rule::Hyperband {
                    rungs(rule, 3).bracket(trial.bracket).1
                } else {
                    0
                };
                assert!(
                    !at.is_multiple_of(4) || trial.rung == first,
                    "{rule:?} {at}"
                );
            }
            // If everything fails, it ends too.
            let (trials, _) = run(&rungs(rule, 3), (40, 4), |_, _| None);
            assert_eq!(trials.len(), 40);
        }
    }

    #[test]
    fn successive_halving_completes_each_rung_first() {
        let (trials, batches) = run(&rungs(Rule::SuccessiveHalving, 3), (9, 4), scrambled);
        assert_eq!(reached(&trials, 3), [9, 3, 1]);
        let mut order: Vec<usize> = (0..9).collect();
        order.sort_by_key(|at| scrambled(*at, 0).unwrap() as u64);
        let continued: Vec<Job> = batches.concat()[9..].to_vec();
        let expected = [order[0], order[1], order[2], order[0]];
        assert_eq!(continued, expected.map(|trial| Job::Continue { trial }));
        // A second bracket, and one that is cut short.
        let (trials, _) = run(&rungs(Rule::SuccessiveHalving, 3), (20, 4), scrambled);
        assert_eq!(reached(&trials, 3), [20, 7, 3]);
    }

    #[test]
    fn hyperband_has_the_brackets_of_its_paper() {
        // Table 1 of Li et al.: R = 81, a factor of 3.
        let hyperband = rungs(Rule::Hyperband, 5);
        let sizes: Vec<_> = (0..5).map(|bracket| hyperband.bracket(bracket)).collect();
        assert_eq!(sizes, [(81, 0), (34, 1), (15, 2), (8, 3), (5, 4)]);
        let (trials, _) = run(&hyperband, (81 + 34 + 15 + 8 + 5, 8), scrambled);
        for (bracket, (size, first)) in sizes.into_iter().enumerate() {
            let of: Vec<_> = trials
                .iter()
                .filter(|t| t.bracket == bracket)
                .cloned()
                .collect();
            let reached = reached(&of, 5);
            assert_eq!((of.len(), reached[first]), (size, size));
            for rung in first + 1..5 {
                assert_eq!(reached[rung], (reached[rung - 1] / 3).max(1));
            }
        }
    }

    #[test]
    fn the_median_rule_ends_the_worse_half() {
        let (trials, _) = run(
            &rungs(Rule::Median { min_trials: 4 }, 3),
            (9, 9),
            |at, _| Some(at as f64),
        );
        let rungs_of: Vec<_> = trials.iter().map(|trial| trial.rung).collect();
        // Of nine, the best five are not above the median of the eight others; of those five, three.
        assert_eq!(rungs_of, [2, 2, 2, 1, 1, 0, 0, 0, 0]);
        // Too few others.
        let (trials, _) = run(&rungs(Rule::Median { min_trials: 9 }, 3), (9, 9), scrambled);
        assert_eq!(reached(&trials, 3), [9, 9, 9]);
    }

    #[test]
    fn trials_that_meet_constraints_continue_first() {
        // Only every fourth trial meets the constraints; the others have better values.
        let is_feasible = |at: usize| at.is_multiple_of(4);
        let violation = |at: usize| {
            if is_feasible(at) {
                0.0
            } else {
                (at % 7 + 1) as f64
            }
        };
        let value = |at: usize, rung| {
            scrambled(at, rung).map(|value| value - if is_feasible(at) { 0.0 } else { 1e4 })
        };
        for rule in [Rule::Asha, Rule::SuccessiveHalving, Rule::Hyperband] {
            let (trials, _) = run_with(&rungs(rule, 3), (34, 4), value, violation);
            let num_complete = trials.iter().filter(|trial| trial.rung == 2).count();
            assert!(num_complete > 0, "{rule:?}");
            if rule == Rule::Asha {
                let mut all = trials.iter().enumerate();
                assert!(
                    all.all(|(at, trial)| trial.rung < 2 || is_feasible(at)),
                    "{rule:?}"
                );
                continue;
            }
            // In a bracket, one that does not meet them only continues if all that meet them do.
            for (at, trial) in trials.iter().enumerate() {
                let first = rungs(rule, 3).bracket(trial.bracket).1;
                let reached = first + 1..=trial.rung;
                for rung in reached.filter(|_| !is_feasible(at)) {
                    let mut others = trials.iter().enumerate();
                    let is_ended = |(at, other): (usize, &Climber)| {
                        other.bracket == trial.bracket && is_feasible(at) && other.rung < rung
                    };
                    assert!(!others.any(is_ended), "{rule:?} {at}");
                }
            }
        }
        // If none meets them, those that violate them least continue; what is not known is worst.
        let unknown = |at: usize| match at {
            0 => f64::INFINITY,
            _ => (9 - at) as f64,
        };
        let halving = rungs(Rule::SuccessiveHalving, 3);
        let (trials, _) = run_with(&halving, (9, 9), scrambled, unknown);
        let reached: Vec<_> = trials.iter().map(|trial| trial.rung).collect();
        assert_eq!(reached, [0, 0, 0, 0, 0, 0, 1, 1, 2]);
        let median = rungs(Rule::Median { min_trials: 4 }, 3);
        let (trials, _) = run_with(&median, (9, 9), scrambled, unknown);
        let reached: Vec<_> = trials.iter().map(|trial| trial.rung).collect();
        assert_eq!(reached, [0, 0, 0, 0, 1, 1, 2, 2, 2]);
    }

    #[test]
    fn more_trials_continue_a_search() {
        for rule in [Rule::Asha, Rule::SuccessiveHalving, Rule::Hyperband] {
            let rungs = rungs(rule, 3);
            let (few, _) = run(&rungs, (20, 4), scrambled);
            assert!(rungs.batch(&few, 4, 0).is_empty());
            assert!(!rungs.batch(&few, 4, 10).is_empty());
        }
    }
}
