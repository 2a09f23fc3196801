//! Sizes of memory, such as `4GiB`.

use crate::diagnostic::Reason;

/// The units in bytes.
const UNITS: [(&str, f64); 9] = [
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("KiB", 1024.0),
    ("MiB", 1024.0 * 1024.0),
    ("GiB", 1024.0 * 1024.0 * 1024.0),
    ("TiB", 1024.0 * 1024.0 * 1024.0 * 1024.0),
];

/// Parses `4GiB`, `512 MiB`, `1.5GB` into bytes. The error contains a remedy.
pub fn read(text: &str) -> Result<u64, Reason> {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(at.unwrap_or(text.len()));
    let unit = unit.trim_start();
    let wrong_unit = || {
        Reason::from(
            "the units are B, kB, MB, GB, TB (powers of 1000) and KiB, MiB, GiB, TiB (powers of 1024)",
        )
    };
    let number: f64 = number.parse().map_err(|_| wrong_unit())?;
    let Some((_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        let meant = UNITS
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(unit));
        return Err(match meant {
            Some((name, _)) => Reason(format!("add the unit, as in `{name}`: \"{number}{name}\"")),
            None => wrong_unit(),
        });
    };
    match number * factor {
        bytes if bytes < 1.0 => {
            Err("it rounds to zero: use a larger size, or remove the key".into())
        }
        bytes if bytes < u64::MAX as f64 => Ok(bytes as u64),
        _ => Err(
            "it exceeds the memory of any machine: use a smaller size, or remove the key".into(),
        ),
    }
}

/// The same, without the reason.
pub fn parse_bytes(text: &str) -> Option<u64> {
    read(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_size_is_told() {
        assert_eq!(read("1.5 KiB"), Ok(1536));
        let help = |text: &str| read(text).unwrap_err().to_string();
        insta::assert_snapshot!(
            ["4gib", "0MiB", "99999999TiB", "12", "GiB"].map(help).join("\n"),
            @r#"
        add the unit, as in `GiB`: "4GiB"
        it rounds to zero: use a larger size, or remove the key
        it exceeds the memory of any machine: use a smaller size, or remove the key
        the units are B, kB, MB, GB, TB (powers of 1000) and KiB, MiB, GiB, TiB (powers of 1024)
        the units are B, kB, MB, GB, TB (powers of 1000) and KiB, MiB, GiB, TiB (powers of 1024)
        "#
        );
    }
}
