//! Elementary functions of single numbers, written so that loops over them can be vectorized.
//!
//! None has branches or tables, and each product and sum is rounded separately, so that every vector width gives the
//! same bits. Polynomials are minimax approximations found by Remez's algorithm for the functions here. The largest
//! error over all floats of each class is stated with each function and tested in `functions/tests.rs`, in units in the
//! last place of the correctly rounded result. Each function maps NaN to NaN.

#[cfg(test)]
mod tests;

const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// The logarithm of 2 in two parts, of which the first ends in zeros, so that its multiples are exact.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;
/// 1.5 times 2 to the 23: a number added to it is rounded to an integer, which is then in its low bits.
const ROUND: f32 = 12_582_912.0;

/// 2 to the power of `k`, which is from -126 to 127.
#[inline(always)]
fn power_of_two(k: i32) -> f32 {
    f32::from_bits((k.wrapping_add(127) as u32) << 23)
}

/// Splits x = k ln 2 + r with |r| at most about half of ln 2; `k` as an integer and as a float.
#[inline(always)]
fn reduce(x: f32) -> (i32, f32) {
    let rounded = x * LOG2_E + ROUND;
    let k = rounded - ROUND;
    let whole = (rounded.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    (whole, (x - k * LN_2_HIGH) - k * LN_2_LOW)
}

/// Clamps between two numbers; NaN is kept.
#[inline(always)]
pub fn within(x: f32, low: f32, high: f32) -> f32 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// e to the power of x. At most 1 ulp, also for subnormal results.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    exp_in_parts(x).0
}

/// The same for x from -87 to 88, whose result is never subnormal.
#[inline(always)]
fn exp_of_medium(x: f32) -> f32 {
    let (k, r) = reduce(x);
    (1.0 + exp_m1_of_reduced(r)) * power_of_two(k)
}

/// e to the power of r, minus 1, for |r| of at most about half of ln 2.
#[inline(always)]
fn exp_m1_of_reduced(r: f32) -> f32 {
    let mut p = 1.979_013_2e-4;
    p = p * r + 1.394_486_9e-3;
    p = p * r + 8.333_499e-3;
    p = p * r + 4.166_629e-2;
    p = p * r + 0.166_666_66;
    p = p * r + 0.5;
    p * (r * r) + r
}

/// e to the power of x, and the rounding error.
#[inline(always)]
fn exp_in_parts(x: f32) -> (f32, f32) {
    // Beyond these, the result is 0 or infinite.
    let (k, r) = reduce(within(x, -104.0, 89.0));
    let above = exp_m1_of_reduced(r);
    let value = 1.0 + above;
    let lost = above - (value - 1.0);
    // In two steps, since 2 to the power of k may be too large or too small for a float.
    let half = k >> 1;
    let (first, second) = (power_of_two(half), power_of_two(k.wrapping_sub(half)));
    (value * first * second, lost * first * second)
}

/// e to the power of x, minus 1. At most 2 ulp.
#[inline(always)]
pub fn exp_m1(x: f32) -> f32 {
    let (k, r) = reduce(within(x, -25.0, 89.0));
    let mut p = 1.991_444_9e-4;
    p = p * r + 1.394_120_6e-3;
    p = p * r + 8.333_272e-3;
    p = p * r + 4.166_635e-2;
    p = p * r + 0.166_666_67;
    p = p * r + 0.5;
    let below = p * (r * r) + r;
    let half = k >> 1;
    let (first, second) = (power_of_two(half), power_of_two(k.wrapping_sub(half)));
    let power = first * second;
    // For k = 0, this is `below` itself. For k = 128 the power is infinite, and the 1 is below the last place.
    let small = below * power + (power - 1.0);
    let large = (below + 1.0) * first * second;
    let value = if k > 100 { large } else { small };
    // Keeps the sign of zero and the precision of numbers near it.
    if x.abs() < 1e-7 { x } else { value }
}

/// The natural logarithm. At most 1 ulp; -infinity for zero, NaN for negative numbers.
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    let is_small = x < f32::MIN_POSITIVE;
    let scaled = if is_small { x * 8_388_608.0 } else { x };
    let shift = if is_small { -23.0 } else { 0.0 };
    let bits = scaled.to_bits() as i32;
    // Numbers from the root of one half to that of 2 have the exponent 0.
    let exponent = bits.wrapping_sub(0x3f35_04f3) >> 23;
    let mantissa = f32::from_bits(bits.wrapping_sub(exponent << 23) as u32);
    let value = ln_of_reduced(mantissa - 1.0, exponent as f32 + shift);
    let value = if x == f32::INFINITY { x } else { value };
    let value = if x == 0.0 { f32::NEG_INFINITY } else { value };
    // Both sides of the comparison fail for NaN.
    if x >= 0.0 { value } else { f32::NAN }
}

/// ln(1 + t) + k ln 2, for t from sqrt(1/2) - 1 to sqrt(2) - 1.
#[inline(always)]
fn ln_of_reduced(t: f32, k: f32) -> f32 {
    let mut p = 6.915_492e-2;
    p = p * t - 0.117_898_34;
    p = p * t + 0.118_729_316;
    p = p * t - 0.123_843_41;
    p = p * t + 0.142_186_64;
    p = p * t - 0.166_692_51;
    p = p * t + 0.200_022_27;
    p = p * t - 0.249_999_87;
    p = p * t + 0.333_333_1;
    let square = t * t;
    let below = p * t * square + k * LN_2_LOW - 0.5 * square;
    (t + below) + k * LN_2_HIGH
}

/// ln(1 + x) for x of at least 0, as after an exponential. At most 2 ulp.
#[inline(always)]
pub fn ln_1p(x: f32) -> f32 {
    let sum = 1.0 + x;
    // Corrects the rounding error of the sum, to first order.
    let lost = x - (sum - 1.0);
    let value = ln(sum) + lost / sum;
    let value = if x < 1e-4 { x - 0.5 * x * x } else { value };
    if x == f32::INFINITY { x } else { value }
}

/// The hyperbolic tangent. At most 2 ulp.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let size = x.abs();
    let square = x * x;
    let mut p = -5.717_043_3e-3;
    p = p * square + 2.065_058_6e-2;
    p = p * square - 5.374_349_7e-2;
    p = p * square + 0.133_314_91;
    p = p * square - 0.333_332_84;
    let near = p * square * x + x;
    // From 9.02 on, the result is 1.
    let far = 1.0 - 2.0 / (exp_of_medium(2.0 * within(size, 0.0, 10.0)) + 1.0);
    // The sign of zero is kept.
    let value = if size < 0.625 { near } else { far };
    value.copysign(x)
}

/// 1 / (1 + exp(-x)). At most 2 ulp, also for subnormal results.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    let (small, beside) = exp_in_parts(-x.abs());
    let sum = 1.0 + small;
    let inverse = 1.0 / sum;
    // Corrects the rounding errors of the exponential and the sum, to first order.
    let lost = small - (sum - 1.0) + beside;
    let correction = inverse * (lost * inverse);
    let below = small * inverse + (beside * inverse - small * correction);
    if x < 0.0 { below } else { inverse - correction }
}

/// The error function. At most 2 ulp.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    let size = within(x.abs(), 0.0, 4.0);
    let square = x * x;
    let mut p = -9.680_143e-6;
    p = p * square + 1.127_054_7e-4;
    p = p * square - 8.484_712e-4;
    p = p * square + 5.221_075e-3;
    p = p * square - 2.686_544_5e-2;
    p = p * square + 0.112_837_83;
    p = p * square - 0.376_126_38;
    p = p * square + 0.128_379_17;
    let near = p * x + x;
    // The logarithm of 1 - erf(x).
    let mut q = 2.121_376_5e-7;
    q = q * size - 2.475_499_2e-5;
    q = q * size + 4.603_625_6e-4;
    q = q * size - 4.270_653e-3;
    q = q * size + 2.534_896_1e-2;
    q = q * size - 0.108_606_644;
    q = q * size - 0.633_065_7;
    q = q * size - 1.129_649_4;
    q = q * size + 2.020_207e-4;
    let far = 1.0 - exp_of_medium(q);
    let value = if size < 1.0 { near } else { far };
    value.copysign(x)
}

/// 2 to the power of y from -126 to 0. At most 2 ulp.
#[inline(always)]
fn exp2_of_negative(y: f32) -> f32 {
    let rounded = y + ROUND;
    let r = y - (rounded - ROUND);
    let mut p = 1.534_581_2e-4;
    p = p * r + 1.339_993_1e-3;
    p = p * r + 9.618_489e-3;
    p = p * r + 5.550_328_6e-2;
    p = p * r + 0.240_226_46;
    p = p * r + std::f32::consts::LN_2;
    p = p * r + 1.0;
    let whole = (rounded.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    p * power_of_two(whole)
}

/// Beyond this, less than one in a hundred million normal numbers.
const NORMAL_END: f32 = 5.7;

/// The probability that a normal number is below x. At most 1.2e-7 from it, for negative x also at most 1e-5 times it,
/// and exactly 0 and 1 beyond -5.7 and 5.7.
#[inline(always)]
pub fn normal_below(x: f32) -> f32 {
    let size = within(x.abs(), 0.0, NORMAL_END);
    // The logarithm to base 2 of the probability beyond.
    let mut q = 1.479_228_3e-7;
    q = q * size - 3.703_256e-6;
    q = q * size + 3.660_805_3e-5;
    q = q * size - 1.523_743_6e-4;
    q = q * size - 2.409_117_9e-4;
    q = q * size + 7.211_270_7e-3;
    q = q * size - 5.259_952_7e-2;
    q = q * size - 0.459_175_2;
    q = q * size - 1.151_109_1;
    q = q * size - 1.0;
    of_side(x, size, exp2_of_negative(q))
}

/// The derivative of x times [`normal_below`], the GELU (Hendrycks and Gimpel, 2016). At most 2e-7 from it, and exactly 0
/// and 1 beyond -5.7 and 5.7.
#[inline(always)]
pub fn gelu_slope(x: f32) -> f32 {
    let size = within(x.abs(), 0.0, NORMAL_END);
    // At -size, in units of exp(-size^2 / 2).
    let mut p = -1.990_511_3e-7;
    p = p * size + 5.446_106e-6;
    p = p * size - 6.622_767e-5;
    p = p * size + 4.797_458_5e-4;
    p = p * size - 2.359_773_7e-3;
    p = p * size + 8.607_131e-3;
    p = p * size - 2.504_313_5e-2;
    p = p * size + 6.164_179e-2;
    p = p * size - 0.132_699_89;
    p = p * size + 0.249_952_63;
    p = p * size - 0.797_881_4;
    p = p * size + 0.499_999_97;
    of_side(x, size, p * exp2_of_negative(-0.5 * LOG2_E * (size * size)))
}

/// A value at x from that at -|x|, of a function whose values at both add to 1. `size` is |x|, at most [`NORMAL_END`].
#[inline(always)]
fn of_side(x: f32, size: f32, below: f32) -> f32 {
    let below = if size >= NORMAL_END { 0.0 } else { below };
    if x < 0.0 { below } else { 1.0 - below }
}
