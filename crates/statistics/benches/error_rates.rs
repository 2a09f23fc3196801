//! The tables of docs/verdicts.md: how often verdicts are wrong, and how often they detect existing differences.
//! `cargo bench -p burn-runner-statistics --bench error_rates`

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod simulation;

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
