//! `runner plan --explain`: what happened to every point of the sweep.

use super::output::Output;
use super::tell::Teller;
use super::{OK, SpecArgs};
use crate::ops;
use runner_core::diagnostic::Sources;
use runner_core::plan::sweep::Account;
use runner_core::table::{Columns, fit_numbers};
use runner_report::console::Mode;

/// `runner plan --explain`
pub fn explain(args: &SpecArgs, json: bool, output: &mut Output) -> u8 {
    let teller = Teller::new(Mode::Normal);
    let sweep = match ops::account(&args.experiment(), &|progress| teller.tell(progress)) {
        Ok(sweep) => sweep,
        Err(error) => return output.fail(&error),
    };
    if json {
        output.print(&serde_json::to_string_pretty(&sweep.account).unwrap_or_default());
    } else {
        output.print_fitted(&table(&sweep.account, &sweep.sources));
    }
    OK
}

fn table(account: &Account, sources: &Sources) -> String {
    let mut table = Columns::named(["", "number", "where", "why", "the first of them"]);
    let factors = account.factors.iter();
    let factors: Vec<_> = factors
        .map(|(name, num)| format!("{name} ({num})"))
        .collect();
    let product = if factors.is_empty() {
        "no axes".to_owned()
    } else {
        factors.join(" x ")
    };
    let number = |num: usize, sign: &str| format!("{sign}{num}");
    let plain = |what: &str, num: usize, why: String| {
        vec![
            what.to_owned(),
            number(num, ""),
            String::new(),
            why,
            String::new(),
        ]
    };
    table
        .rows
        .push(plain("points", account.num_points, product));
    let rules = [
        ("excluded", &account.excluded),
        ("merged", &account.merged),
        ("cut off", &account.cut),
    ];
    for (what, dropped) in rules {
        for rule in dropped {
            table.rows.push(vec![
                what.to_owned(),
                number(rule.num, "-"),
                rule.span.map_or(String::new(), |span| sources.line(span)),
                rule.rule.clone(),
                rule.first.clone(),
            ]);
        }
    }
    table
        .rows
        .push(plain("trials", account.num_trials, String::new()));
    for narrowed in &account.narrowed {
        table.rows.push(vec![
            "of these".to_owned(),
            number(narrowed.num, ""),
            narrowed
                .span
                .map_or(String::new(), |span| sources.line(span)),
            narrowed.rule.clone(),
            narrowed.first.clone(),
        ]);
    }
    let seeds = match account.num_seeds {
        1 => "1 seed".to_owned(),
        num => format!("{num} seeds each"),
    };
    table.rows.push(plain("runs", account.num_runs, seeds));
    fit_numbers(table, Output::table_width(), &[], &["number"]).text
}
