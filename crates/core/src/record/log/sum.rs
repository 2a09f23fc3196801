//! The sum at the end of a line.

use sha2::{Digest, Sha256};

use crate::hash::hex;

/// Digits of a sum.
const NUM_DIGITS: usize = 16;
const BEFORE: &[u8] = b",\"sum\":\"";
const BEHIND: &[u8] = b"\"}";

/// A line without its sum and closing brace, and the sum.
pub(super) fn split_sum(line: &[u8]) -> Option<(&[u8], &str)> {
    let line = line.strip_suffix(BEHIND)?;
    let (body, sum) = line.split_at_checked(line.len().checked_sub(NUM_DIGITS)?)?;
    let sum = std::str::from_utf8(sum).ok()?;
    Some((body.strip_suffix(BEFORE)?, sum))
}

/// The sum of a line, given without its closing brace, that follows a line with a sum.
pub(super) fn sum_of(before: &str, body: &[u8]) -> String {
    let mut sum = Sha256::new();
    sum.update(before);
    sum.update(body);
    sum.update(b"}");
    hex(&sum.finalize()[..NUM_DIGITS / 2])
}

/// Puts a sum at the end of a line's JSON, and a line break.
pub(super) fn summed(before: &str, json: &str) -> (String, String) {
    let body = json.strip_suffix('}').unwrap_or(json);
    let sum = sum_of(before, body.as_bytes());
    (format!("{body},\"sum\":\"{sum}\"}}\n"), sum)
}
