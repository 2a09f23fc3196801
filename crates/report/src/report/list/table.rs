//! Tables of very many rows, cut to the width of a terminal.

use std::borrow::Cow;

use crate::report::table::Columns;
use runner_core::spec::printable;

/// What stands between two columns.
const GAP: &str = "  ";

/// The least characters that a column is cut to.
const LEAST: usize = 8;

/// Lays columns out, each as wide as what stands in it. What does not fit into `width` is cut in the middle, the widest
/// columns first: ends of names tell runs apart. The library for tables measures and wraps every cell, which takes
/// seconds for ten thousand rows.
pub fn fit(mut columns: Columns, width: Option<u16>) -> String {
    for cell in columns.rows.iter_mut().flatten().chain(&mut columns.head) {
        // Names and messages come from files of others.
        if let Cow::Owned(shown) = printable(cell) {
            *cell = shown;
        }
    }
    let lines = || std::iter::once(&columns.head).chain(&columns.rows);
    let mut widths = vec![0; columns.head.len()];
    for line in lines() {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let gaps = 1 + GAP.len() * widths.len().saturating_sub(1);
    if let Some(width) = width {
        let room = usize::from(width).saturating_sub(gaps);
        narrow(&mut widths, room);
    }
    let mut text = String::new();
    for line in lines() {
        let mut row = String::from(" ");
        for (at, (cell, width)) in line.iter().zip(&widths).enumerate() {
            if at > 0 {
                row.push_str(GAP);
            }
            let len = cell.chars().count();
            if len > *width {
                row.push_str(&cut(cell, len, *width))
            } else {
                row.push_str(cell);
                row.extend(std::iter::repeat_n(' ', width - len));
            }
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text.pop();
    text
}

/// Makes the widest columns narrower until all fit, or none may be made narrower any more.
fn narrow(widths: &mut [usize], room: usize) {
    while widths.iter().sum::<usize>() > room {
        let Some(widest) = widths.iter_mut().max_by_key(|width| **width) else {
            return;
        };
        if *widest <= LEAST {
            return;
        }
        *widest -= 1;
    }
}

/// The beginning and the end of a text of `len` characters.
fn cut(text: &str, len: usize, width: usize) -> String {
    let kept = width.saturating_sub(1);
    let end = kept / 2;
    let head = text.chars().take(kept - end);
    let tail = text.chars().skip(len - end);
    head.chain(['…']).chain(tail).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Columns {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        Columns {
            head: row(["run", "outcome", "objective"]),
            rows: vec![
                row([
                    "optimizer=adamw,learning_rate=0.001-s12",
                    "completed",
                    "valid/loss 0.2 ± x",
                ]),
                row(["b", "-", ""]),
            ],
        }
    }

    #[test]
    fn what_does_not_fit_is_cut_in_the_middle() {
        insta::assert_snapshot!(fit(columns(), None), @r"
        run                                      outcome    objective
        optimizer=adamw,learning_rate=0.001-s12  completed  valid/loss 0.2 ± x
        b                                        -
        ");
        insta::assert_snapshot!(fit(columns(), Some(52)), @r"
        run                   outcome    objective
        optimizer=…0.001-s12  completed  valid/loss 0.2 ± x
        b                     -
        ");
        insta::assert_snapshot!(fit(columns(), Some(10)), @r"
        run       outcome   obje…ive
        opti…s12  comp…ted  vali…± x
        b         -
        ");
    }
}
