//! Element-wise functions of constants.

use crate::onnx::import::attributes::{flag, float};
use crate::onnx::import::constant::{Budget, Constant, broadcast};
use crate::onnx::import::refused::Read;
use crate::onnx::messages::NodeProto;

/// An element-wise function; `None` if it is not supported here.
pub fn unary(op: &str, value: &Constant) -> Option<Read<Constant>> {
    let of: fn(f32) -> f32 = match op {
        "Neg" | "Not" | "Abs" if value.is_integer() => {
            let of: fn(i64) -> i64 = match op {
                "Neg" => i64::wrapping_neg,
                "Abs" => i64::wrapping_abs,
                _ => |value| i64::from(value == 0),
            };
            let values = value.integers().iter().copied().map(of).collect();
            return Some(Ok(Constant::integers_of(value.shape.clone(), values)));
        }
        "Neg" => |v| -v,
        "Abs" => f32::abs,
        "Sqrt" => f32::sqrt,
        "Exp" => f32::exp,
        "Log" => f32::ln,
        "Reciprocal" => |v| 1.0 / v,
        "Floor" => f32::floor,
        "Ceil" => f32::ceil,
        "Sin" => f32::sin,
        "Cos" => f32::cos,
        "Tanh" => f32::tanh,
        "Sigmoid" => |v| 1.0 / (1.0 + (-v).exp()),
        "Relu" => |v| v.max(0.0),
        "Sign" => |v| if v == 0.0 { 0.0 } else { v.signum() },
        "Round" => f32::round_ties_even,
        "Softplus" => |v| v.max(0.0) + (-v.abs()).exp().ln_1p(),
        "IsNaN" | "IsInf" => {
            let is = if op == "IsNaN" {
                f32::is_nan
            } else {
                f32::is_infinite
            };
            let values = value.floats().iter().map(|v| i64::from(is(*v))).collect();
            return Some(Ok(Constant::integers_of(value.shape.clone(), values)));
        }
        _ => return None,
    };
    let values = value.floats().iter().copied().map(of).collect();
    Some(Ok(Constant::floats_of(value.shape.clone(), values)))
}

/// Whether an operator is element-wise with two operands.
pub fn is_binary(op: &str) -> bool {
    const OPERATORS: [&str; 16] = [
        "Add",
        "Sub",
        "Mul",
        "Div",
        "Pow",
        "Mod",
        "Min",
        "Max",
        "Equal",
        "Less",
        "Greater",
        "LessOrEqual",
        "GreaterOrEqual",
        "And",
        "Or",
        "Xor",
    ];
    OPERATORS.contains(&op)
}

/// An operator of two constants.
pub fn binary(
    node: &NodeProto,
    op: &str,
    a: &Constant,
    b: &Constant,
    budget: &mut Budget,
) -> Read<Constant> {
    let shape = broadcast(&a.shape, &b.shape)?;
    let (a, b) = (a.expanded(&shape, budget)?, b.expanded(&shape, budget)?);
    if compared(op, &0, &0, &0).is_some() {
        // Large integers differ that are equal as floats.
        let found: Vec<Option<bool>> = if a.is_integer() && b.is_integer() {
            let (a, b) = (a.integers(), b.integers());
            let both = a.iter().zip(b.iter());
            both.map(|(a, b)| compared(op, a, b, &0)).collect()
        } else {
            let (a, b) = (a.floats(), b.floats());
            let both = a.iter().zip(b.iter());
            both.map(|(a, b)| compared(op, a, b, &0.0)).collect()
        };
        let found = found.into_iter().flatten().map(i64::from).collect();
        return Ok(Constant::integers_of(shape, found));
    }
    if a.is_integer() && b.is_integer() {
        let of = |(a, b): (&i64, &i64)| match op {
            "Add" => a.checked_add(*b),
            "Sub" => a.checked_sub(*b),
            "Mul" => a.checked_mul(*b),
            "Div" => a.checked_div(*b),
            "Mod" if flag(node, "fmod") => a.checked_rem(*b),
            "Mod" => a.checked_rem(*b).map(|rest| {
                if rest != 0 && (rest < 0) != (*b < 0) {
                    rest + b
                } else {
                    rest
                }
            }),
            "Min" => Some(*a.min(b)),
            "Max" => Some(*a.max(b)),
            _ => a.checked_pow(u32::try_from(*b).ok()?),
        };
        let values: Option<Vec<i64>> = a
            .integers()
            .iter()
            .zip(b.integers().iter())
            .map(of)
            .collect();
        let values = values.ok_or("its numbers are too large, or divided by 0")?;
        return Ok(Constant::integers_of(shape, values));
    }
    let of = |(a, b): (&f32, &f32)| match op {
        "Add" => a + b,
        "Sub" => a - b,
        "Mul" => a * b,
        "Div" => a / b,
        "Mod" => a % b,
        // As in ONNX Runtime, NaN stays.
        "Min" if a.is_nan() || a < b => *a,
        "Max" if a.is_nan() || a > b => *a,
        "Min" | "Max" => *b,
        _ => a.powf(*b),
    };
    let values: Vec<f32> = a.floats().iter().zip(b.floats().iter()).map(of).collect();
    // Powers of integers are integers whatever the exponent is.
    if op == "Pow" && a.is_integer() {
        let values = values.into_iter().map(|value| value as i64).collect();
        return Ok(Constant::integers_of(shape, values));
    }
    Ok(Constant::floats_of(shape, values))
}

/// What an operator that compares says about two numbers; `None` for others.
fn compared<T: PartialOrd>(op: &str, a: &T, b: &T, zero: &T) -> Option<bool> {
    Some(match op {
        "Equal" => a == b,
        "Less" => a < b,
        "Greater" => a > b,
        "LessOrEqual" => a <= b,
        "GreaterOrEqual" => a >= b,
        "And" => a != zero && b != zero,
        "Or" => a != zero || b != zero,
        "Xor" => (a != zero) != (b != zero),
        _ => return None,
    })
}

/// Numbers between two bounds, which are inputs or attributes.
pub fn clipped(node: &NodeProto, inputs: &[Option<&Constant>], value: &Constant) -> Constant {
    let bound = |name: &str, at: usize, usual: f32| {
        let given = inputs.get(at).copied().flatten().and_then(Constant::single);
        given.unwrap_or_else(|| float(node, name, f64::from(usual)) as f32)
    };
    let (low, high) = (bound("min", 1, f32::MIN), bound("max", 2, f32::MAX));
    let shape = value.shape.clone();
    if value.is_integer() {
        let of = |v: &i64| (*v).max(low as i64).min(high as i64);
        return Constant::integers_of(shape, value.integers().iter().map(of).collect());
    }
    let of = |v: &f32| {
        if v.is_nan() { *v } else { v.max(low).min(high) }
    };
    Constant::floats_of(shape, value.floats().iter().map(of).collect())
}
