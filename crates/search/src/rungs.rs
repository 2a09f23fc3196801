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
mod tests;
