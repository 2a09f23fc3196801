//! Requests that are read, and those that are refused.

use super::*;

fn metadata() -> Metadata {
    let column = |name: &str, kind, shape: &[usize]| Column {
        name: name.into(),
        kind,
        shape: shape.to_vec(),
    };
    let names = vec!["a".to_owned()];
    Metadata {
        inputs: vec![
            column("x", ColumnKind::Numbers, &[]),
            column("kind", ColumnKind::Categories { names }, &[]),
            column("image", ColumnKind::Bytes, &[2, 2]),
        ],
        outputs: vec![Output {
            name: "class",
            datatype: "BYTES",
            shape: Vec::new(),
        }],
    }
}

fn parse(inputs: &Value) -> Result<Vec<String>, Reason> {
    let body = json!({ "inputs": inputs }).to_string();
    Call::parse(body.as_bytes(), &metadata()).map(|(_, rows)| rows)
}

#[test]
fn tensors_become_rows() {
    let rows = parse(&json!([
        {"name": "x", "datatype": "FP32", "shape": [2, 1], "data": [[1.5], [2]]},
        {"name": "kind", "datatype": "BYTES", "shape": [2], "data": ["a", "b"]},
        {"name": "image", "datatype": "UINT8", "shape": [2, 2, 2], "data": [1, 2, 3, 4, 5, 6, 7, 8]},
    ]));
    let expected = [
        r#"{"x":1.5,"kind":"a","image":[[1,2],[3,4]]}"#,
        r#"{"x":2,"kind":"b","image":[[5,6],[7,8]]}"#,
    ];
    assert_eq!(rows.unwrap(), expected);
}

#[test]
fn wrong_tensors_are_refused_by_name() {
    for (input, reason) in [
        (json!({"datatype": "FP32"}), "input 1 has no `name`"),
        (
            json!({"name": "y"}),
            "no input `y`; its inputs are `x`, `kind`, `image`",
        ),
        (json!({"name": "x"}), "input `x` has no `datatype`"),
        (
            json!({"name": "x", "datatype": "COMPLEX"}),
            "unknown datatype `COMPLEX`",
        ),
        (json!({"name": "x", "datatype": "BYTES"}), "needs `FP32`"),
        (json!({"name": "x", "datatype": "FP32"}), "has no `shape`"),
        (
            json!({"name": "x", "datatype": "FP32", "shape": [-1]}),
            "not a list of sizes",
        ),
        (
            json!({"name": "x", "datatype": "FP32", "shape": []}),
            "no dimension of items",
        ),
        (
            json!({"name": "x", "datatype": "FP32", "shape": [2, 3]}),
            "items of shape [3]",
        ),
        (
            json!({"name": "x", "datatype": "FP32", "shape": [2], "data": [1]}),
            "needs 2",
        ),
        (
            json!({"name": "image", "datatype": "UINT8", "shape": [18446744073709551615_u64, 2, 2], "data": [1]}),
            "has 1 values",
        ),
    ] {
        let error = parse(&json!([input])).unwrap_err();
        assert!(error.0.contains(reason), "{error}");
    }
    let error = parse(&json!([
        {"name": "x", "datatype": "FP32", "shape": [1], "data": [1]},
        {"name": "kind", "datatype": "BYTES", "shape": [2], "data": ["a", "b"]},
    ]));
    assert!(error.unwrap_err().0.contains("has 2 items"));
    assert!(parse(&json!(1)).unwrap_err().0.contains("list of tensors"));
    assert!(parse(&json!([])).unwrap_err().0.contains("is empty"));
}

#[test]
fn rows_come_in_three_forms() {
    for body in [r#"{"x": 1}"#, r#"[{"x": 1}]"#, r#"{"rows": [{"x": 1}]}"#] {
        assert_eq!(rows(body.as_bytes()).unwrap(), [r#"{"x":1}"#]);
    }
    assert!(rows(b"[1]").unwrap_err().0.contains("item 1 is not"));
    assert!(rows(b"{").unwrap_err().0.contains("not JSON"));
    assert!(
        rows(br#"{"rows": [], "y": 1}"#)
            .unwrap_err()
            .0
            .contains("`rows`: y")
    );
}

/// Which of two values is meant is not known.
#[test]
fn keys_that_occur_twice_are_refused() {
    let twice = |key: &str| format!("the key `{key}` occurs twice at line 1 column ");
    let refused = |body: &str| rows(body.as_bytes()).unwrap_err().0;
    for body in [
        r#"{"x": 1, "x": 2}"#,
        r#"{"rows": [{"x": 1, "kind": "a", "x": 1}]}"#,
        r#"[{"x": 1}, {"kind": {"x": [], "x": null}}]"#,
    ] {
        assert!(refused(body).starts_with(&twice("x")), "{}", refused(body));
    }
    let body = r#"{"inputs": [], "inputs": []}"#;
    let found = Call::parse(body.as_bytes(), &metadata()).unwrap_err().0;
    assert!(found.starts_with(&twice("inputs")), "{found}");
    let broken = refused(r#"{"x": 1"#);
    assert!(broken.starts_with("the body is not JSON: "), "{broken}");
    // Numbers are read as they are.
    let kept = rows(br#"{"a": [1, -2, 0.1, 1e300, 18446744073709551615], "b": null}"#).unwrap();
    assert_eq!(
        kept,
        [r#"{"a":[1,-2,0.1,1e+300,18446744073709551615],"b":null}"#]
    );
}

#[test]
fn integers_outside_of_their_datatype_are_refused_by_name() {
    let one = |datatype: &str, value: Value| {
        parse(&json!([{"name": "x", "datatype": datatype, "shape": [2], "data": [0, value]}]))
    };
    let ends: [(&str, Value, Value); 9] = [
        ("BOOL", json!(true), json!(2)),
        ("UINT8", json!(255), json!(256)),
        ("UINT16", json!(65_535), json!(-1)),
        ("UINT32", json!(4_294_967_295_u64), json!(4_294_967_296_u64)),
        ("UINT64", json!(u64::MAX), json!(-1)),
        ("INT8", json!(-128), json!(2000)),
        ("INT16", json!(32_767), json!(32_768)),
        (
            "INT32",
            json!(-2_147_483_648_i64),
            json!(-2_147_483_649_i64),
        ),
        ("INT64", json!(i64::MIN), json!(u64::MAX)),
    ];
    for (datatype, good, bad) in ends {
        assert!(one(datatype, good.clone()).is_ok(), "{datatype} {good}");
        for bad in [bad, json!(0.5), json!("1")] {
            let Reason(reason) = one(datatype, bad.clone()).unwrap_err();
            let expected = format!("value 2 of its `data` is {bad}, which is not an integer from");
            assert!(
                reason.contains(&format!("`{datatype}`")) && reason.contains(&expected),
                "{datatype}: {reason}"
            );
        }
        assert!(one(datatype, json!(1.0)).is_ok(), "{datatype}");
    }
    assert!(one("FP32", json!(2000.5)).is_ok());
}

/// A missing value has its place, and nested lists have the shape that is said.
#[test]
fn values_stay_in_their_places() {
    let missing = parse(&json!([
        {"name": "x", "datatype": "FP32", "shape": [3], "data": [1.5, null, 2]},
    ]));
    let expected = [r#"{"x":1.5}"#, r#"{"x":null}"#, r#"{"x":2}"#];
    assert_eq!(missing.unwrap(), expected);
    for (shape, data, reason) in [
        (json!([2]), json!([1.0, null, 20.0]), "3 values"),
        (
            json!([1, 2, 2]),
            json!([[1, 2, 3], [4]]),
            "do not have the shape [1, 2, 2]",
        ),
        (
            json!([1, 2, 2]),
            json!([[[1, 2, 3], [4]]]),
            "do not have the shape [1, 2, 2]",
        ),
        (
            json!([1, 2, 2]),
            json!([[[1, 2], 3, 4]]),
            "do not have the shape [1, 2, 2]",
        ),
        (json!([1, 2, 2]), json!(null), "has no list `data`"),
    ] {
        let name = if shape == json!([2]) { "x" } else { "image" };
        let refused =
            parse(&json!([{"name": name, "datatype": "UINT8", "shape": shape, "data": data}]));
        let refused = refused.unwrap_err().0;
        assert!(refused.contains(reason), "{refused}");
    }
}
