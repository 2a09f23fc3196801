//! The values of arrays: how files store them, and how records do.

use crate::data::records::{ColumnKind, NO_NUMBER};
use crate::diagnostic::Reason;

/// The type of an array's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// 0 or 1, in a byte.
    Bool,
    /// An unsigned integer of some bytes.
    Unsigned(usize),
    /// A signed integer of some bytes.
    Signed(usize),
    /// A float of 2, 4 or 8 bytes.
    Float(usize),
    /// The upper half of a 4-byte float.
    BFloat16,
}

/// How a file stores the values of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Their type.
    pub element: Element,
    /// Whether they are big-endian.
    pub big_endian: bool,
}

impl Element {
    /// Bytes of a value.
    pub fn size(self) -> usize {
        match self {
            Element::Bool => 1,
            Element::BFloat16 => 2,
            Element::Unsigned(size) | Element::Signed(size) | Element::Float(size) => size,
        }
    }

    /// The column kind of such values. Bytes stay bytes, such as pixels, except in targets, where they are classes.
    pub fn kind(self, is_target: bool) -> ColumnKind {
        match self {
            Element::Unsigned(1) if !is_target => ColumnKind::Bytes,
            Element::Bool | Element::Unsigned(_) | Element::Signed(_) => ColumnKind::Whole,
            Element::Float(8) => ColumnKind::Doubles,
            Element::Float(_) | Element::BFloat16 => ColumnKind::Numbers,
        }
    }
}

impl Layout {
    /// Writes the values of an item as those of a column; describes a value that cannot be converted.
    pub fn convert(
        self,
        raw: &[u8],
        is_target: bool,
        missing_is_bad: bool,
        out: &mut [u8],
    ) -> Result<(), Reason> {
        let values = raw.chunks_exact(self.element.size());
        match self.element.kind(is_target) {
            ColumnKind::Bytes => out.copy_from_slice(raw),
            ColumnKind::Doubles => {
                for (out, value) in out.chunks_exact_mut(8).zip(values) {
                    let value = f64::from_bits(self.word(value));
                    check(value, missing_is_bad)?;
                    out.copy_from_slice(&value.to_le_bytes());
                }
            }
            // The same as below, without inspecting each value.
            ColumnKind::Numbers if self.is_plain(raw, missing_is_bad) => out.copy_from_slice(raw),
            ColumnKind::Numbers => {
                for (out, value) in out.chunks_exact_mut(4).zip(values) {
                    let value = self.float(value);
                    check(f64::from(value), missing_is_bad)?;
                    out.copy_from_slice(&value.to_le_bytes());
                }
            }
            _ => {
                for (out, value) in out.chunks_exact_mut(4).zip(values) {
                    out.copy_from_slice(&self.whole(value)?.to_le_bytes());
                }
            }
        }
        Ok(())
    }

    /// Whether values are stored as records store them, and all of them can be used.
    fn is_plain(self, raw: &[u8], missing_is_bad: bool) -> bool {
        let is_good = |b: &[u8]| {
            let value = f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
            value.is_finite() | (value.is_nan() & !missing_is_bad)
        };
        self.element == Element::Float(4)
            && !self.big_endian
            && raw
                .chunks_exact(4)
                .fold(true, |all, value| all & is_good(value))
    }

    /// The bytes of a value as a word, in the lowest bits.
    fn word(self, bytes: &[u8]) -> u64 {
        let push = |word: u64, byte: &u8| word << 8 | u64::from(*byte);
        if self.big_endian {
            bytes.iter().fold(0, push)
        } else {
            bytes.iter().rev().fold(0, push)
        }
    }

    fn float(self, bytes: &[u8]) -> f32 {
        let word = self.word(bytes) as u32;
        match self.element {
            Element::Float(2) => half(word as u16),
            Element::BFloat16 => f32::from_bits(word << 16),
            _ => f32::from_bits(word),
        }
    }

    fn whole(self, bytes: &[u8]) -> Result<i32, Reason> {
        let word = self.word(bytes);
        let value = match self.element {
            Element::Bool => i128::from(word != 0),
            Element::Signed(size) => {
                let unused = 64 - 8 * size as u32;
                i128::from((word << unused) as i64 >> unused)
            }
            _ => i128::from(word),
        };
        match i32::try_from(value) {
            Ok(value) if value != NO_NUMBER => Ok(value),
            _ => Err(Reason(format!(
                "{value} does not fit a 32-bit integer; store such numbers as f64"
            ))),
        }
    }
}

fn check(value: f64, missing_is_bad: bool) -> Result<(), Reason> {
    if value.is_infinite() || missing_is_bad && value.is_nan() {
        return Err(Reason(format!(
            "it contains {value}, which is not a finite number"
        )));
    }
    // Networks compute with 32 bits.
    if value.abs() > f64::from(f32::MAX) {
        Err(Reason(format!(
            "it contains {value:e}, which is too large for a 32-bit float"
        )))
    } else {
        Ok(())
    }
}

/// A 16-bit float: a sign, 5 bits of exponent, 10 of fraction.
fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
    let size = match exponent {
        0 => fraction * 2_f32.powi(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1024.0 + fraction) * 2_f32.powi(exponent - 25),
    };
    sign * size
}

#[cfg(test)]
mod tests {
    use super::*;

    fn convert(element: Element, big_endian: bool, raw: &[u8]) -> Result<Vec<u8>, Reason> {
        let num = raw.len() / element.size();
        let mut out = vec![0; num * element.kind(false).size()];
        let layout = Layout {
            element,
            big_endian,
        };
        layout.convert(raw, false, false, &mut out).map(|()| out)
    }

    #[test]
    fn halves_are_exact() {
        let cases = [
            (0x0000, 0.0),
            (0x0001, 5.960_464_5e-8),
            (0x03ff, 6.097_555e-5),
            (0x0400, 6.103_515_6e-5),
            (0x3c00, 1.0),
            (0x3555, 0.333_251_95),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
        ];
        for (bits, value) in cases {
            assert_eq!(half(bits), value, "{bits:04x}");
        }
        assert!(half(0x7c01).is_nan() && half(0xfc00) == f32::NEG_INFINITY);
    }

    #[test]
    fn every_type_in_either_order() {
        for big in [false, true] {
            let bytes = |le: &[u8]| {
                if big {
                    le.iter().rev().copied().collect::<Vec<u8>>()
                } else {
                    le.to_vec()
                }
            };
            let whole = |element, le: &[u8]| {
                convert(element, big, &bytes(le))
                    .map(|out| i32::from_le_bytes(out.try_into().unwrap()))
            };
            assert_eq!(whole(Element::Bool, &[1]), Ok(1));
            assert_eq!(whole(Element::Signed(1), &[0xff]), Ok(-1));
            assert_eq!(
                whole(Element::Signed(2), &(-300_i16).to_le_bytes()),
                Ok(-300)
            );
            assert_eq!(
                whole(Element::Unsigned(2), &60_000_u16.to_le_bytes()),
                Ok(60_000)
            );
            assert_eq!(whole(Element::Signed(4), &(-7_i32).to_le_bytes()), Ok(-7));
            assert_eq!(whole(Element::Signed(8), &(-7_i64).to_le_bytes()), Ok(-7));
            assert_eq!(whole(Element::Unsigned(8), &7_u64.to_le_bytes()), Ok(7));
            for too_large in [i64::MAX, i64::MIN, 1 << 31, -(1 << 31)] {
                assert!(whole(Element::Signed(8), &too_large.to_le_bytes()).is_err());
            }
            assert!(whole(Element::Unsigned(4), &u32::MAX.to_le_bytes()).is_err());
            assert!(whole(Element::Unsigned(8), &u64::MAX.to_le_bytes()).is_err());
            let float = |element, le: &[u8]| {
                convert(element, big, &bytes(le))
                    .map(|out| f32::from_le_bytes(out.try_into().unwrap()))
            };
            assert_eq!(float(Element::Float(4), &0.1_f32.to_le_bytes()), Ok(0.1));
            assert_eq!(float(Element::BFloat16, &[0x80, 0xbf]), Ok(-1.0));
            assert_eq!(float(Element::Float(2), &[0x00, 0x3c]), Ok(1.0));
            assert!(
                float(Element::Float(4), &f32::NAN.to_le_bytes())
                    .unwrap()
                    .is_nan()
            );
            assert!(float(Element::Float(4), &f32::INFINITY.to_le_bytes()).is_err());
            let double = convert(Element::Float(8), big, &bytes(&0.1_f64.to_le_bytes()));
            assert_eq!(double, Ok(0.1_f64.to_le_bytes().to_vec()));
        }
        assert_eq!(
            convert(Element::Unsigned(1), false, &[3, 200]),
            Ok(vec![3, 200])
        );
    }
}
