use super::*;
use crate::data::records::{NO_NUMBER, NO_TEXT, Part, Writer};

/// Single numbers, arrays, categories and texts, with gaps at some places.
fn records(num: i32) -> Records {
    let mut writer = Writer::in_memory();
    writer.begin(vec![
        Column::scalar("row", ColumnKind::Whole),
        Column::scalar("price", ColumnKind::Doubles),
        Column::scalar(
            "colour",
            ColumnKind::Categories {
                names: ["blue", "green", "none", "red"].map(str::to_owned).to_vec(),
            },
        ),
        Column {
            name: "picture".into(),
            kind: ColumnKind::Bytes,
            shape: vec![1, 2, 2],
        },
        Column::scalar("note", ColumnKind::Text),
        Column::scalar("grade", ColumnKind::Whole),
        Column::scalar("empty", ColumnKind::Doubles),
        Column::scalar("same", ColumnKind::Numbers),
    ]);
    writer.part(Part::Train);
    for at in 0..num {
        let price = match at % 10 {
            3 => f64::NAN,
            4 if at == 4 => f64::INFINITY,
            _ => 1e6 + f64::from(at % 7) * 0.25,
        };
        let colour = [0, 3, 3, 1, -1][at as usize % 5];
        let note = match at % 4 {
            1 => NO_TEXT,
            _ => writer.text(&"ä".repeat(at as usize % 6)).unwrap(),
        };
        let grade = match at {
            2 => NO_NUMBER,
            _ => 1 - at % 3,
        };
        let mut record = Vec::new();
        record.extend((at + 100).to_le_bytes());
        record.extend(price.to_le_bytes());
        record.extend(i32::to_le_bytes(colour));
        record.extend([at as u8, 0, 255, 7]);
        record.extend(note);
        record.extend(grade.to_le_bytes());
        record.extend(f64::NAN.to_le_bytes());
        record.extend(2.5_f32.to_le_bytes());
        writer.push(&record).unwrap();
    }
    writer.into_records()
}

fn shown(records: &Records) -> String {
    let mut columns = ColumnProfile::all(records);
    let roles = [Role::Unused, Role::Target, Role::Feature, Role::OrderBy];
    for (column, role) in columns.iter_mut().zip(roles) {
        column.role = Some(role);
    }
    let skipped = |line| Skipped {
        place: format!("`houses.csv`, line {line}"),
        reason: "7 values, and there are 8 columns".into(),
    };
    let split = |name: &str, num_items, classes: &[(&str, usize)]| SplitProfile {
        name: name.into(),
        num_items,
        classes: classes.iter().map(|(n, c)| ((*n).to_owned(), *c)).collect(),
        digest: "0123456789abcdef0123456789abcdef".into(),
    };
    let profile = Profile {
        source: vec!["csv of 1 file, 12 items".into(), "houses.csv".into()],
        columns,
        splits: vec![
            split("train", 10, &[("blue", 3), ("red", 7)]),
            split("valid", 2, &[("blue", 1), ("red", 1)]),
        ],
        skipped: (1..13).map(skipped).collect(),
        items: vec!["row 100, colour blue -> price 1000000".into()],
    };
    profile.show(160)
}

#[test]
fn a_data_set_is_shown() {
    insta::assert_snapshot!(shown(&records(12)));
}

/// Several chunks, and one thread or more: bitwise equal numbers, which match a single sum.
#[test]
fn chunks_and_threads_do_not_show() {
    let records = records(100_000);
    assert!(records.len() * records.record_size() > 4 * CHUNK);
    let columns = ColumnProfile::all(&records);
    let alone = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .unwrap();
    assert_eq!(alone.install(|| ColumnProfile::all(&records)), columns);
    let numbers = |name: &str| {
        let found = columns.iter().find(|column| column.column.name == name);
        match &found.unwrap().values {
            ValueProfile::Numbers(numbers) => numbers.clone(),
            other => panic!("{other:?}"),
        }
    };
    let prices: Vec<f64> = (0..records.len())
        .map(|item| records.number(item, 1, 0))
        .filter(|price| price.is_finite())
        .collect();
    let (num, price) = (prices.len() as f64, numbers("price"));
    let mean = prices.iter().sum::<f64>() / num;
    let squares = prices.iter().map(|price| (price - mean) * (price - mean));
    let deviation = (squares.sum::<f64>() / num).sqrt();
    assert_eq!(price.num, prices.len() as u64);
    assert!((price.mean - mean).abs() < 1e-6, "{price:?} {mean}");
    assert!(
        (price.deviation - deviation).abs() < 1e-9,
        "{price:?} {deviation}"
    );
    assert_eq!(price.different.as_ref().map(Vec::len), Some(7));
    assert_eq!(columns[1].missing, 10_000);
    assert_eq!(columns[1].notes, ["1 infinite"]);
    let row = numbers("row");
    assert!(row.is_counting && row.different.is_none());
    let grade = numbers("grade");
    assert_eq!(
        grade
            .different
            .unwrap()
            .iter()
            .map(|(value, _)| *value)
            .collect::<Vec<_>>(),
        [-1.0, 0.0, 1.0]
    );
    assert!(!grade.is_counting && grade.is_whole);
    assert_eq!(numbers("picture").num, 400_000);
}

#[test]
fn nothing_is_no_mistake() {
    let columns = ColumnProfile::all(&records(0));
    assert!(
        columns
            .iter()
            .all(|column| column.values == ValueProfile::Nothing)
    );
    assert_eq!(Profile::default().show(80), "");
    let mut writer = Writer::in_memory();
    writer.begin(Vec::new());
    assert_eq!(ColumnProfile::all(&writer.into_records()), []);
}

#[test]
fn numbers_are_short() {
    let shown = [
        0.0,
        -3.0,
        5.84333,
        0.000123456,
        123456.789,
        1.5e-9,
        1e20,
        f64::NAN,
    ];
    let shown = shown.map(text::short);
    insta::assert_snapshot!(shown.join(" "), @"0 -3 5.843 0.0001235 123457 1.500e-9 1.000e20 NaN");
}
