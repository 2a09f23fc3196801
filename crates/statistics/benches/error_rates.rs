//! The tables of docs/verdicts.md: how often verdicts are wrong, and how often they detect existing differences.
//! `cargo bench -p burn-runner-statistics --bench error_rates`

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod crossed;
mod selection;
mod sequential;
mod simulation;

use crossed::{Crossed, crossed};
use selection::{Many, selection};
use sequential::{Found, Sequence, sequential};
use simulation::{NUM_TRIALS, Noise, Rates, Setting, simulate};

/// Experiments per row: the standard error of a rate of 5 % is about 0.2 %.
const NUM: usize = 10_000;

fn main() {
    println!("{NUM} experiments a row, {NUM_TRIALS} trials against a named baseline.\n");
    println!(
        "| noise | seeds | exact | if normal | exact, no common seed | if normal, no common seed | equality |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for (noise, name) in Noise::ALL {
        for seeds in [3, 5, 10] {
            let null = |is_paired| rates(noise, seeds, is_paired, 0.0, 1.0);
            let (paired, free) = (null(true), null(false));
            // Each trial is better by exactly the smallest difference that matters, so that every claim of equality is
            // wrong.
            let apart = rates(noise, seeds, true, 2.0, 2.0);
            let shown = [
                paired.exact,
                paired.if_normal,
                free.exact,
                free.if_normal,
                apart.equal,
            ];
            println!("| {name} | {seeds} | {} |", shown.map(percent).join(" | "));
        }
    }
    println!(
        "\n| true difference | seeds | exact | if normal | equal within 2 sd |\n| --- | --- | --- | --- | --- |"
    );
    for difference in [0.0, 1.0, 3.0, 10.0, 20.0] {
        for seeds in [3, 5, 10] {
            let found = rates(Noise::Normal, seeds, true, difference, 2.0);
            let shown = [found.found_exact, found.found_if_normal, found.found_equal];
            println!(
                "| {difference} sd | {seeds} | {} |",
                shown.map(percent).join(" | ")
            );
        }
    }
    looks();
    best_of_many();
    folds_and_seeds();
}

/// The table of folds with several seeds.
fn folds_and_seeds() {
    println!(
        "\n| values vary by | seeds | folds | interval | same seeds | other seeds | equality | best of 3 |\n| --- | --- | --- | --- | --- | --- | --- | --- |"
    );
    for (parts, name) in crossed::ALL {
        for (seeds, folds) in [(2, 3), (2, 5), (2, 10), (3, 5), (5, 5), (10, 5), (10, 10)] {
            let setting = Crossed {
                parts,
                seeds,
                folds,
            };
            let wrong = crossed(setting, NUM, 25);
            let shown = [
                wrong.interval,
                wrong.paired,
                wrong.unpaired,
                wrong.equal,
                wrong.best,
            ];
            let shown = shown.map(percent).join(" | ");
            println!("| {name} | {seeds} | {folds} | {shown} |");
        }
    }
}

/// The table of the best of many trials.
fn best_of_many() {
    println!(
        "\n| noise | seeds | best of 27 equal ruled out | best of 27 ruled out | trials that may be best |\n| --- | --- | --- | --- | --- |"
    );
    for (noise, name) in Noise::ALL {
        if noise == Noise::SkewedApart {
            continue;
        }
        for seeds in [3, 5, 10] {
            let many = |step| Many {
                noise,
                trials: 27,
                seeds,
                step,
            };
            let (equal, (lost, kept)) = (
                selection(many(0.0), NUM, 23).0,
                selection(many(1.0), NUM, 24),
            );
            let (equal, lost) = (percent(equal), percent(lost));
            println!("| {name} | {seeds} | {equal} | {lost} | {kept:.1} |");
        }
    }
}

/// The tables of looks at growing samples.
fn looks() {
    println!(
        "\n| noise | exact, looks not planned | exact, 5 looks planned | if normal, looks not planned | if normal, 5 looks planned |\n| --- | --- | --- | --- | --- |"
    );
    for (noise, name) in Noise::ALL {
        if noise == Noise::SkewedApart {
            continue;
        }
        let (free, planned) = (at_looks(noise, false, 0.0), at_looks(noise, true, 0.0));
        let shown = [free.exact, planned.exact, free.if_normal, planned.if_normal];
        println!("| {name} | {} |", shown.map(percent).join(" | "));
    }
    println!("\n| true difference | all decided | mean seeds |\n| --- | --- | --- |");
    for difference in [0.0, 1.0, 2.0, 3.0, 10.0] {
        let found = at_looks(Noise::Normal, true, difference);
        let decided = percent(found.decided);
        println!("| {difference} sd | {decided} | {:.1} |", found.seeds);
    }
}

/// Looks at 3, 6, 9, 12 and 15 seeds.
fn at_looks(noise: Noise, is_planned: bool, difference: f64) -> Found {
    let sequence = Sequence {
        noise,
        seeds: &[3, 6, 9, 12, 15],
        is_planned,
        difference,
    };
    sequential(sequence, NUM, 22)
}

fn rates(noise: Noise, seeds: usize, is_paired: bool, difference: f64, smallest: f64) -> Rates {
    let setting = Setting {
        noise,
        seeds,
        is_paired,
        difference,
        smallest,
    };
    simulate(setting, NUM, 21)
}

fn percent(rate: f64) -> String {
    format!("{:.1} %", 100.0 * rate)
}
