//! Arithmetic and functions of expressions.
//!
//! Everything here gives the same result on every machine: only integers, operations that IEEE 754 rounds exactly, and
//! combinations of them are used. A whole result is an integer if its operands are.

use super::document::{Node, Value};
use crate::diagnostic::{Wrong, nearest};

/// The functions, as listed in messages.
pub(super) const FUNCTIONS: [&str; 12] = [
    "abs", "ceil", "first", "floor", "int", "len", "log2", "max", "min", "pow", "round", "sqrt",
];

/// An unknown function.
pub(super) fn unknown(name: &str) -> Wrong {
    let help = match nearest(name, FUNCTIONS) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!(
            "the functions are {}",
            FUNCTIONS.map(|f| format!("`{f}`")).join(", ")
        ),
    };
    Wrong::new(format!("there is no function `{name}`"), help)
}

/// The value of a function of [`FUNCTIONS`].
pub(super) fn call(name: &str, arguments: &[Value]) -> Result<Value, Wrong> {
    let wanted = match name {
        "min" | "max" => {
            let mut found = None;
            for value in arguments {
                number(value)?;
                let is_better = |best: &Value| {
                    let (a, b) = (number(value).unwrap_or(0.0), number(best).unwrap_or(0.0));
                    if name == "min" { a < b } else { a > b }
                };
                if found.as_ref().is_none_or(is_better) {
                    found = Some(value.clone());
                }
            }
            return found.ok_or_else(|| wrong_number(name, "at least one argument", 0));
        }
        "pow" => 2,
        _ => 1,
    };
    let [value, more @ ..] = arguments else {
        return Err(wrong_number(name, "one argument", 0));
    };
    if arguments.len() != wanted {
        let wanted = if wanted == 1 {
            "one argument"
        } else {
            "two arguments"
        };
        return Err(wrong_number(name, wanted, arguments.len()));
    }
    match (name, value) {
        ("first", Value::Array(items)) if !items.is_empty() => Ok(items[0].value.clone()),
        ("len", Value::Array(items)) => Ok(Value::Int(items.len() as i64)),
        ("first" | "len", other) => Err(Wrong::new(
            format!("`{name}` takes a list, found {}", other.to_toml()),
            "pass a list",
        )),
        ("pow", _) => power(value, &more[0]),
        ("abs", Value::Int(value)) => Ok(value
            .checked_abs()
            .map_or_else(|| Value::Float((*value as f64).abs()), Value::Int)),
        ("abs", _) => Ok(Value::Float(number(value)?.abs())),
        ("round" | "floor" | "ceil" | "int", Value::Int(value)) => Ok(Value::Int(*value)),
        ("round", _) => whole(name, number(value)?.round()),
        ("floor", _) => whole(name, number(value)?.floor()),
        ("ceil", _) => whole(name, number(value)?.ceil()),
        ("int", _) => whole(name, number(value)?.trunc()),
        ("sqrt", _) => match number(value)? {
            number if number < 0.0 => Err(Wrong::new(
                format!("`sqrt` of {} is undefined", value.to_toml()),
                "pass a number of at least 0",
            )),
            number => Ok(like(&[value], number.sqrt())),
        },
        _ => log2(value),
    }
}

fn wrong_number(name: &str, wanted: &str, found: usize) -> Wrong {
    let message = format!("`{name}` takes {wanted}, found {found}");
    let arguments = if name == "pow" { "x, 2" } else { "x" };
    Wrong::new(message, format!("write `{name}({arguments})`"))
}

/// A whole float as an integer.
fn whole(name: &str, value: f64) -> Result<Value, Wrong> {
    if value.abs() < 2f64.powi(63) {
        Ok(Value::Int(value as i64))
    } else {
        Err(Wrong::new(
            format!("`{name}` of {value:?} does not fit a 64-bit integer"),
            "pass a smaller number",
        ))
    }
}

/// A whole result of integers as an integer.
fn like(operands: &[&Value], result: f64) -> Value {
    let are_whole = operands.iter().all(|value| matches!(value, Value::Int(_)));
    if are_whole && result.fract() == 0.0 && result.abs() < 2f64.powi(53) {
        Value::Int(result as i64)
    } else {
        Value::Float(result)
    }
}

/// The logarithm to base 2, to 10 digits: more would depend on the machine.
fn log2(value: &Value) -> Result<Value, Wrong> {
    let number = number(value)?;
    if number <= 0.0 {
        return Err(Wrong::new(
            format!("`log2` of {} is undefined", value.to_toml()),
            "pass a number above 0",
        ));
    }
    let rounded = (number.log2() * 1e10).round() / 1e10;
    Ok(like(&[value], rounded))
}

/// `base ** exponent` by repeated multiplication.
pub(super) fn power(base: &Value, exponent: &Value) -> Result<Value, Wrong> {
    let (a, b) = (number(base)?, number(exponent)?);
    if b.fract() != 0.0 || b.abs() > 1024.0 {
        return Err(Wrong::new(
            format!(
                "the exponent {} must be an integer of at most 1024",
                exponent.to_toml()
            ),
            "use an integer; for a square root, use `sqrt(x)`",
        ));
    }
    if a == 0.0 && b < 0.0 {
        let help = "divide by a nonzero number";
        return Err(Wrong::new(
            format!("{} is divided by 0", Value::Int(1).to_toml()),
            help,
        ));
    }
    let mut result = Value::Int(1);
    for _ in 0..b.abs() as usize {
        result = arithmetic(&result, "*", base)?;
    }
    if b < 0.0 {
        arithmetic(&Value::Int(1), "/", &result)
    } else {
        Ok(result)
    }
}

/// A value as a number.
pub(super) fn number(value: &Value) -> Result<f64, Wrong> {
    match value {
        Value::Int(value) => Ok(*value as f64),
        Value::Float(value) => Ok(*value),
        other => Err(Wrong::new(
            format!("{} is not a number", other.to_toml()),
            "arithmetic needs numbers",
        )),
    }
}

/// Whether two values are equal: `1` is `1.0`.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    let both = |a: &[Node], b: &[Node]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(&a.value, &b.value))
    };
    match (a, b) {
        (Value::Int(int), Value::Float(float)) | (Value::Float(float), Value::Int(int)) => {
            *int as f64 == *float
        }
        (Value::Array(a), Value::Array(b)) => both(a, b),
        _ => a == b,
    }
}

/// `left sign right` for one of `+ - * / %`.
pub(super) fn arithmetic(left: &Value, sign: &str, right: &Value) -> Result<Value, Wrong> {
    let (a, b) = (number(left)?, number(right)?);
    if b == 0.0 && "/%".contains(sign) {
        let help = "divide by a nonzero number";
        return Err(Wrong::new(
            format!("{} is divided by 0", left.to_toml()),
            help,
        ));
    }
    if let (Value::Int(a), Value::Int(b)) = (left, right) {
        let whole = match sign {
            "+" => a.checked_add(*b),
            "-" => a.checked_sub(*b),
            "*" => a.checked_mul(*b),
            "%" => a.checked_rem_euclid(*b),
            _ if a.checked_rem(*b) == Some(0) => a.checked_div(*b),
            _ => None,
        };
        if let Some(whole) = whole {
            return Ok(Value::Int(whole));
        }
    }
    Ok(Value::Float(match sign {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "%" => a.rem_euclid(b),
        _ => a / b,
    }))
}
