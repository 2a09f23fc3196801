//! Tables at several widths.

use super::*;

#[test]
fn names_for_plots_keep_what_differs() {
    let named = |names: &[&str], most| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        shortened(names, most)
    };
    let names = ["lr=0.1,hidden=8,act=relu", "lr=0.1,hidden=16,act=tanh"];
    assert_eq!(
        named(&names, 28).0,
        ["hidden=8,act=relu", "hidden=16,act=tanh"]
    );
    let names = [
        "rate=0.1,hidden=8,activation=relu",
        "rate=0.1,hidden=16,activation=tanh",
    ];
    let (short, keys) = named(&names, 20);
    assert_eq!(short, ["8, relu", "16, tanh"]);
    assert_eq!(keys.as_deref(), Some("hidden, activation"));
    assert_eq!(named(&["a", "b"], 28), (vec!["a".into(), "b".into()], None));
}

fn columns() -> Columns {
    let row = |cells: [&str; 5]| cells.map(str::to_owned).to_vec();
    Columns {
        head: row(["#", "trial", "n", "valid/accuracy", "s/run"]),
        rows: vec![
            row([
                "1 tied",
                "batch=64,optimizer=adamw,rate=0.01",
                "3",
                "0.9824 ± 0.0032",
                "0.47",
            ]),
            row([
                "1 tied",
                "batch=64,optimizer=adam,rate=0.01",
                "3",
                "0.9824 ± 0.0043",
                "0.48",
            ]),
            row(["3", "batch=64,optimizer=sgd,rate=0.001", "2 of 3", "-", "-"]),
        ],
    }
}

fn at(width: u16) -> Fitted {
    fit(columns(), Some(width), &["s/run"])
}

#[test]
fn names_lose_what_they_have_in_common_before_columns_go() {
    insta::assert_snapshot!(fit(columns(), None, &[]).text, @r"
    #       trial                               n       valid/accuracy   s/run
    1 tied  batch=64,optimizer=adamw,rate=0.01  3       0.9824 ± 0.0032  0.47
    1 tied  batch=64,optimizer=adam,rate=0.01   3       0.9824 ± 0.0043  0.48
    3       batch=64,optimizer=sgd,rate=0.001   2 of 3  -                -
    ");
    insta::assert_snapshot!(at(74).text, @r"
    #       trial                      n       valid/accuracy   s/run
    1 tied  optimizer=adamw,rate=0.01  3       0.9824 ± 0.0032  0.47
    1 tied  optimizer=adam,rate=0.01   3       0.9824 ± 0.0043  0.48
    3       optimizer=sgd,rate=0.001   2 of 3  -                -
    ");
    insta::assert_snapshot!(at(64).text, @r"
    #       trial (optimizer, rate)  n       valid/accuracy   s/run
    1 tied  adamw, 0.01              3       0.9824 ± 0.0032  0.47
    1 tied  adam, 0.01               3       0.9824 ± 0.0043  0.48
    3       sgd, 0.001               2 of 3  -                -
    ");
    let narrow = at(60);
    insta::assert_snapshot!(narrow.text, @r"
    #       trial (optimizer, rate)  n       valid/accuracy
    1 tied  adamw, 0.01              3       0.9824 ± 0.0032
    1 tied  adam, 0.01               3       0.9824 ± 0.0043
    3       sgd, 0.001               2 of 3  -
    ");
    assert_eq!(narrow.left_out, ["s/run"]);
}

#[test]
fn what_does_not_fit_is_set_row_by_row_and_nothing_is_cut() {
    for width in [20, 30, 40, 50] {
        let text = at(width).text;
        let wide = text
            .lines()
            .filter(|line| line.chars().count() > width.into());
        assert_eq!(wide.collect::<Vec<_>>(), Vec::<&str>::new(), "{text}");
        assert!(!text.contains('…'), "{text}");
        for number in ["0.9824 ± 0.0032", "0.9824 ± 0.0043", "2 of 3"] {
            let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(joined.contains(number), "{number} in {text}");
        }
    }
    insta::assert_snapshot!(at(40).text, @r"
    #  trial (optimizer, rate)
    1 tied  adamw, 0.01
      n 3  valid/accuracy 0.9824 ± 0.0032
    1 tied  adam, 0.01
      n 3  valid/accuracy 0.9824 ± 0.0043
    3  sgd, 0.001
      n 2 of 3
    ");
}

#[test]
fn lines_are_broken_at_spaces_and_names_at_their_parts() {
    let lines = wrap("a note on `valid/accuracy` of all trials", 20, "  ");
    assert_eq!(
        lines,
        ["a note on", "  `valid/accuracy`", "  of all trials"]
    );
    let lines = wrap("optimizer=adam,learning_rate=0.01", 20, "  ");
    assert_eq!(lines, ["optimizer=adam,", "  learning_rate=0.01"]);
    assert_eq!(wrap("unbreakable", 4, ""), ["unbreakable"]);
    assert_eq!(wrap("", 4, ""), [""]);
    for width in 1..40 {
        let text = "names, such as a_b/c=1,d=[2, 3] and more ones ±0.01";
        let all = wrap(text, width, " ").concat().replace(' ', "");
        assert_eq!(all, text.replace(' ', ""), "{width}");
    }
}

/// Numbers as tables have them.
fn number(seed: u64) -> String {
    let value = seed as f64 / 977.0;
    match seed % 6 {
        0 => format!("{:.4} ± {:.4}", value, value / 50.0),
        1 => format!("{value:.3e}"),
        2 => format!("-{value:.5} to {value:.5}"),
        3 => format!("{seed}"),
        4 => format!("{:.1} MiB", value),
        _ => "-".into(),
    }
}

/// Whatever a table has in it, no number of it is broken, no word is lost, and lines are as narrow as their words
/// allow.
#[test]
fn no_number_of_any_table_is_cut() {
    let names = ["learning_rate", "model.hidden", "optimizer.type", "p"];
    for seed in 0..400_u64 {
        let part = |salt: u64| (seed + 1).wrapping_mul(salt) >> 33;
        let num_columns = 2 + (part(0x9e37_79b9_7f4a_7c15) % 9) as usize;
        let num_rows = 1 + (part(0xc2b2_ae3d_27d4_eb4f) % 5) as usize;
        let name = |row: usize| {
            let keys = names.iter().take(1 + seed as usize % names.len());
            let keys = keys.enumerate();
            let keys = keys.map(|(at, key)| format!("{key}={}", number(3 + 6 * (row + at) as u64)));
            keys.collect::<Vec<_>>().join(",")
        };
        let mut head = vec!["trial".to_owned()];
        head.extend((1..num_columns).map(|at| match at % 4 {
            0 => "valid/balanced_accuracy".to_owned(),
            1 => "95 % interval".to_owned(),
            2 => "n".to_owned(),
            _ => format!("s/run {at}"),
        }));
        let row = |row: usize| {
            let cells = (1..num_columns)
                .map(|at| number(part(0xff51_afd7_ed55_8ccd) + (7 * row + at) as u64));
            std::iter::once(name(row)).chain(cells).collect()
        };
        let table = Columns {
            head,
            rows: (0..num_rows).map(row).collect(),
        };
        let words = |text: &str| -> BTreeSet<String> {
            let is_part = |c: char| c.is_ascii_digit() || ".+-eE".contains(c);
            let words = text.split(|c| !is_part(c)).map(str::to_owned);
            let has_digit = |word: &String| word.contains(|c: char| c.is_ascii_digit());
            words.filter(has_digit).collect()
        };
        let all = words(&in_columns(&table, &[]));
        for width in [20, 40, 60, 80, 120] {
            let numbers = fit_numbers(table.clone(), Some(width), &[], &["n"]).text;
            for text in [numbers, fit_sentences(table.clone(), width, &[])] {
                let found = words(&text);
                assert!(
                    found.is_subset(&all),
                    "{:?} in\n{text}",
                    found.difference(&all)
                );
                let values = table.rows.iter().flat_map(|row| &row[1..]);
                for value in values.filter(|value| *value != "-") {
                    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
                    let parts = words(value);
                    assert!(parts.is_subset(&words(&flat)), "{value} in\n{text}");
                }
                let wide = text
                    .lines()
                    .filter(|line| line.chars().count() > width.into());
                assert_eq!(
                    wide.collect::<Vec<_>>(),
                    Vec::<&str>::new(),
                    "{width}\n{text}"
                );
            }
        }
    }
}

/// Chinese characters take two columns of a terminal, and combining marks none.
#[test]
fn wide_characters_take_two_columns() {
    let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
    let columns = || Columns {
        head: row(["trial", "n", "valid/accuracy"]),
        rows: vec![
            row(["数据=手写数字,优化器=亚当", "3", "0.9824 ± 0.0032"]),
            row(["数据=手写数字,优化器=e\u{301}", "3", "0.9824 ± 0.0043"]),
        ],
    };
    insta::assert_snapshot!(fit(columns(), None, &[]).text, @r"
    trial                      n  valid/accuracy
    数据=手写数字,优化器=亚当  3  0.9824 ± 0.0032
    数据=手写数字,优化器=é     3  0.9824 ± 0.0043
    ");
    for most in [20, 30, 40, 47] {
        let text = fit(columns(), Some(most), &[]).text;
        let wide = text.lines().filter(|line| width(line) > most.into());
        assert_eq!(wide.collect::<Vec<_>>(), Vec::<&str>::new(), "{text}");
    }
    let lines = wrap("优化器 优化器 优化器", 14, "  ");
    assert_eq!(lines, ["优化器 优化器", "  优化器"]);
}

/// A head with many keys does not make a narrow table a stack of rows.
#[test]
fn keys_without_room_in_the_head_are_above_the_table() {
    let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
    let columns = Columns {
        head: row(["run", "to do"]),
        rows: vec![
            row(["learning_rate=0.1,optimizer=adam,hidden=8-s1", "done"]),
            row(["learning_rate=0.01,optimizer=sgd,hidden=16-s1", "train"]),
        ],
    };
    insta::assert_snapshot!(fit(columns, Some(30), &[]).text, @r"
    run by learning_rate,
     optimizer, hidden
    run               to do
    0.1, adam, 8-s1   done
    0.01, sgd, 16-s1  train
    ");
}
