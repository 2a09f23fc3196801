//! One value of a row, before the kind of its column is known.

use std::borrow::Cow;

use crate::diagnostic::Reason;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell<'a> {
    /// None.
    Missing,
    /// A text that may be a number.
    Plain(Cow<'a, str>),
    /// A text, even if it looks like a number.
    Text(Cow<'a, str>),
    /// An integer.
    Whole(i128),
    /// A number.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// Several numbers.
    List(List),
    /// A value that contradicts the kind set for its column, as text.
    Wrong(Reason),
}

/// Cells with the names of their columns, in order.
pub type Cells<'a> = Vec<(Cow<'a, str>, Cell<'a>)>;

/// Numbers in one or more dimensions, all inner lists of equal length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct List {
    /// The sizes.
    pub shape: Vec<usize>,
    /// The numbers; NaN if missing.
    pub values: Vec<f64>,
    /// Whether all of them are integers that fit 32 bits.
    pub is_whole: bool,
}

impl List {
    /// An empty list.
    pub fn new() -> Self {
        Self {
            shape: vec![0],
            values: Vec::new(),
            is_whole: true,
        }
    }

    /// Adds a number; `None` if missing.
    pub fn push(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            let is_whole = value.fract() == 0.0 && value.abs() <= f64::from(i32::MAX);
            self.is_whole &= is_whole;
        }
        self.values.push(value.unwrap_or(f64::NAN));
        self.shape[0] += 1;
    }

    /// Adds an inner list; returns whether it is as long as those before it.
    #[must_use]
    pub fn nest(&mut self, inner: List) -> bool {
        if self.shape[0] == 0 {
            self.shape.extend(&inner.shape);
        }
        let fits = self.shape[1..] == inner.shape;
        self.values.extend(inner.values);
        self.is_whole &= inner.is_whole;
        self.shape[0] += 1;
        fits
    }
}

impl Cell<'_> {
    /// The value as text, if it is a scalar.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Cell::Missing | Cell::List(_) | Cell::Wrong(_) => return None,
            Cell::Plain(text) | Cell::Text(text) => Cow::Borrowed(text),
            Cell::Whole(value) => Cow::Owned(value.to_string()),
            Cell::Float(value) => Cow::Owned(value.to_string()),
            Cell::Bool(value) => Cow::Borrowed(if *value { "true" } else { "false" }),
        })
    }
}

/// Whether a text is an integer without a point or an exponent.
pub fn is_whole(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a text begins like `2024-01-31` or `2024-01`, followed by nothing or by a time: such texts sort by time.
pub fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = |range: std::ops::Range<usize>| {
        bytes
            .get(range)
            .is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
    };
    let month = |at: usize| {
        matches!(
            bytes.get(at..at + 2),
            Some([b'0', b'1'..=b'9'] | [b'1', b'0'..=b'2'])
        )
    };
    if !digits(0..4) || bytes.get(4) != Some(&b'-') || !month(5) {
        return false;
    }
    let Some(rest) = bytes.get(7..).filter(|rest| !rest.is_empty()) else {
        return true;
    };
    if rest[0] != b'-' || !digits(8..10) {
        return false;
    }
    match bytes.get(10..) {
        None | Some([]) => true,
        Some([b'T' | b't' | b' ', rest @ ..]) => {
            digits(11..13)
                && rest.get(2) == Some(&b':')
                && rest
                    .iter()
                    .all(|byte| byte.is_ascii_digit() || b":.+-Zz ".contains(byte))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_and_dates() {
        for text in ["0", "-12", "+7", "007"] {
            assert!(is_whole(text), "{text}");
        }
        for text in ["", "-", "1.0", "1e3", "1 2", "a"] {
            assert!(!is_whole(text), "{text}");
        }
        for text in [
            "2024-01-31",
            "2024-12",
            "1999-10-01T12:30",
            "1999-10-01 12:30:01.5+02:00",
            "1999-10-01T00:00:00Z",
        ] {
            assert!(is_date(text), "{text}");
        }
        for text in [
            "2024",
            "2024-13-01",
            "20240131",
            "2024-01-31x",
            "2024-1-3",
            "31.01.2024",
            "2024-01-31T",
            "2024-01-",
        ] {
            assert!(!is_date(text), "{text}");
        }
    }

    #[test]
    fn lists_know_their_shape() {
        let row = |values: &[f64]| {
            let mut list = List::new();
            values.iter().for_each(|value| list.push(Some(*value)));
            list
        };
        let mut list = List::new();
        assert!(list.nest(row(&[1.0, 2.0])) && list.nest(row(&[3.0, 4.0])));
        assert_eq!((list.shape.as_slice(), list.is_whole), (&[2, 2][..], true));
        assert!(!list.nest(row(&[5.0])));
        assert!(!row(&[0.5]).is_whole && !row(&[3e9]).is_whole && row(&[]).is_whole);
    }
}
