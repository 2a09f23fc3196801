//! Durations as text, such as `"1h 30m"`.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::Scalar;
use crate::diagnostic::Reason;
use crate::show::show_duration;
use crate::spec::document::Value;

/// The longest duration, which clocks can still represent.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// The accepted form, for the schema.
pub const PATTERN: &str = "^([0-9]+(\\.[0-9]+)? ?(ms|s|m|h|d) ?)+$";

/// Parses `5s`, `1h 30m`, `1.5h`. The error contains a remedy. Months and years, which `humantime` knows, are refused:
/// `M` is too similar to `m`.
pub fn parse_duration(text: &str) -> Result<Duration, Reason> {
    let units = "the units are ms, s, m (minutes), h and d, as in \"90s\" or \"1h 30m\"";
    let is_part_of_number = |c: char| c.is_ascii_digit() || c == '.' || c.is_whitespace();
    let mut written = text
        .split(is_part_of_number)
        .filter(|unit| !unit.is_empty());
    let is_known = |unit| ["ms", "s", "m", "h", "d"].contains(&unit);
    if text.trim() != text || written.clone().next().is_none() || !written.all(is_known) {
        return Err(units.into());
    }
    let duration = humantime::parse_duration(text).map_err(|_| units.to_owned())?;
    if duration <= LONGEST {
        Ok(duration)
    } else {
        Err(Reason(format!("use at most \"365d\"; {units}")))
    }
}

impl Scalar for Duration {
    fn from_value(value: &Value) -> Self {
        match value {
            Value::Str(text) => parse_duration(text).unwrap_or(Self::stand_in()),
            _ => Self::stand_in(),
        }
    }
    fn to_json(&self) -> Json {
        json!(show_duration(*self))
    }
    fn stand_in() -> Self {
        Duration::from_secs(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_units() {
        let secs = |text| parse_duration(text).map(|d| d.as_secs_f64()).ok();
        assert_eq!(secs("90s"), Some(90.0));
        assert_eq!(secs("1h 30m"), Some(5400.0));
        assert_eq!(secs("1h30m"), Some(5400.0));
        assert_eq!(secs("1.5h"), Some(5400.0));
        assert_eq!(secs("250 ms"), Some(0.25));
        assert_eq!(secs("0s"), Some(0.0));
        for wrong in [
            "",
            "5",
            "5 parsecs",
            "1M",
            "2y",
            "-5s",
            "s",
            " 5s",
            "400d",
            "1..5s",
        ] {
            assert_eq!(secs(wrong), None, "{wrong}");
        }
        let huge = format!("{}d", u64::MAX);
        assert_eq!(secs(&huge), None);
        assert_eq!(show_duration(Duration::from_secs(5400)), "1h 30m");
    }

    #[test]
    fn the_pattern_takes_what_is_read() {
        let pattern = regex::Regex::new(PATTERN).unwrap();
        for text in ["90s", "1h 30m", "1h30m", "1.5h", "250 ms", "0s"] {
            assert!(pattern.is_match(text), "{text}");
        }
        for text in ["", "5", "5 parsecs", "1M", "-5s"] {
            assert!(!pattern.is_match(text), "{text}");
        }
    }
}
