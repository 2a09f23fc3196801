//! Measures the decisions of a search that prunes: 1,000 trials with 27 rungs, 8 jobs at a time.

#![expect(clippy::print_stdout, reason = "its output is its purpose")]

use std::time::Instant;

use runner_search::{Climber, Job, Rule, Rungs};

const NUM_TRIALS: usize = 1000;

fn main() {
    let rules = [
        ("asha", Rule::Asha),
        ("successive halving", Rule::SuccessiveHalving),
        ("hyperband", Rule::Hyperband),
        ("median", Rule::Median { min_trials: 5 }),
        (
            "median, all continue",
            Rule::Median {
                min_trials: NUM_TRIALS,
            },
        ),
    ];
    for (name, rule) in rules {
        let rungs = Rungs {
            rule,
            factor: 2,
            num: 27,
        };
        let began = Instant::now();
        let (num_jobs, num_complete) = scheduled(&rungs);
        println!(
            "{name}: {num_jobs} jobs, {num_complete} trials complete, {:.3} s",
            began.elapsed().as_secs_f64()
        );
    }
}

fn scheduled(rungs: &Rungs) -> (usize, usize) {
    let mut trials: Vec<Climber> = Vec::new();
    let mut num_jobs = 0;
    loop {
        let batch = rungs.batch(&trials, 8, NUM_TRIALS - trials.len());
        if batch.is_empty() {
            let complete = trials.iter().filter(|trial| trial.rung + 1 == rungs.num);
            return (num_jobs, complete.count());
        }
        num_jobs += batch.len();
        trials.iter_mut().for_each(|trial| trial.is_new = false);
        for job in batch {
            let at = match job {
                Job::Start { bracket, rung } => {
                    trials.push(Climber {
                        bracket,
                        rung,
                        is_new: true,
                        values: Vec::new(),
                        violations: Vec::new(),
                    });
                    trials.len() - 1
                }
                Job::Continue { trial } => {
                    trials[trial].rung += 1;
                    trial
                }
            };
            let trial = &mut trials[at];
            trial.is_new = true;
            // The order of trials changes a little from rung to rung.
            let value = |rung: usize| ((at * 7919 + rung * 31) % 10_007) as f64;
            trial.values = (0..=trial.rung).map(|rung| Some(value(rung))).collect();
            trial.violations = vec![0.0; trial.rung + 1];
        }
    }
}
