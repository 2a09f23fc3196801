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
