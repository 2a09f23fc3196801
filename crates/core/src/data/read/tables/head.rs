//! The format of a table, inferred from its first lines: the delimiter, the header, and what is above it.

use std::io::Read;
use std::path::Path;

use super::number::Dressed;
use crate::data::DataError;
use crate::data::read::{broken, open};

/// Bytes that are inspected.
const BYTES: u64 = 1 << 16;
/// Rows that are inspected.
const ROWS: usize = 50;
/// The maximum number of lines of one row.
const LINES_OF_ROW: usize = 50;
/// The maximum number of lines above a header.
const ABOVE: usize = 40;

/// The rows at the beginning of a file, as texts.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// Rows that are not blank, each with the number of its first line, from 1.
    rows: Vec<(usize, String)>,
}

/// The format of a table, as far as its first lines show it.
#[derive(Clone, Debug, PartialEq)]
pub struct Dialect {
    /// The delimiter.
    pub delimiter: char,
    /// Whether the first row contains the column names.
    pub header: bool,
    /// Lines above the first row.
    pub skip_rows: usize,
    /// The prefix of lines that are not rows.
    pub comment: Option<char>,
}

/// Possible delimiters.
const DELIMITERS: [char; 5] = [',', ';', '\t', '|', ' '];
/// Possible prefixes of comments.
const COMMENTS: [char; 3] = ['#', '%', '!'];

impl Head {
    /// From a file, decompressed if its name ends in `.gz`.
    pub fn read(path: &Path) -> Result<Self, DataError> {
        let mut bytes = Vec::new();
        let read = open(path)?.take(BYTES).read_to_end(&mut bytes);
        read.map_err(|e| broken(path, &e))?;
        Ok(Self::of(
            &String::from_utf8_lossy(&bytes),
            bytes.len() as u64 == BYTES,
        ))
    }

    /// From a text; the last line of a truncated one is skipped.
    pub fn of(text: &str, is_cut: bool) -> Self {
        let text = text.trim_start_matches('\u{feff}');
        let text = match text.rsplit_once('\n') {
            Some((whole, _)) if is_cut => whole,
            _ => text,
        };
        // Old files end lines with a carriage return only.
        let lines: Vec<&str> = if text.contains('\n') {
            text.lines().collect()
        } else {
            text.split('\r').collect()
        };
        let mut rows: Vec<(usize, String)> = Vec::new();
        let mut at = 0;
        while at < lines.len() && rows.len() < ROWS + ABOVE {
            let number = at + 1;
            let mut row = lines[at].to_owned();
            at += 1;
            let mut more = 0;
            // A quoted value may span several lines.
            while row.matches('"').count() % 2 == 1 && at < lines.len() && more < LINES_OF_ROW {
                row.push('\n');
                row.push_str(lines[at]);
                at += 1;
                more += 1;
            }
            if !row.trim().is_empty() {
                rows.push((number, row));
            }
        }
        Self { rows }
    }

    /// The same without lines above the table and without comments.
    pub fn without(&self, skip_rows: usize, comment: Option<char>) -> Self {
        let rows = self.rows.iter().filter(|(number, row)| {
            *number > skip_rows && comment.is_none_or(|sign| !row.starts_with(sign))
        });
        Self {
            rows: rows.cloned().collect(),
        }
    }

    /// The rows.
    pub fn num_rows(&self) -> usize {
        self.rows.len()
    }

    /// The values of each row, with the number of its line.
    pub fn fields(&self, delimiter: char) -> Vec<(usize, Vec<String>)> {
        let rows = self.rows.iter();
        rows.map(|(number, row)| (*number, fields(row, delimiter)))
            .collect()
    }

    /// The format of the table.
    pub fn dialect(&self) -> Dialect {
        let comment = self.comment();
        let head = self.without(0, comment);
        let found = DELIMITERS
            .iter()
            .filter_map(|delimiter| head.split_by(*delimiter));
        // The first of equal ones.
        let best = found.rev().max_by_key(|split| split.rank());
        let (delimiter, skip_rows) =
            best.map_or((',', 0), |split| (split.delimiter, split.skip_rows));
        let rows = head.without(skip_rows, None).fields(delimiter);
        let rows: Vec<Vec<String>> = rows.into_iter().map(|(_, row)| row).collect();
        let header = rows
            .split_first()
            .is_none_or(|(first, rest)| !is_data(first, rest));
        Dialect {
            delimiter,
            header,
            skip_rows,
            comment,
        }
    }

    /// Whether a delimiter gives all lines the same number of values.
    pub fn is_table(&self) -> bool {
        const FEWEST: usize = 3;
        let is_even = |delimiter: &char| {
            let rows = self.fields(*delimiter);
            let num = rows.first().map_or(0, |(_, row)| row.len());
            let is_even = num > 1 && rows.iter().all(|(_, row)| row.len() == num);
            is_even && (*delimiter != ' ' || self.split_by(' ').is_some())
        };
        self.rows.len() >= FEWEST && DELIMITERS.iter().any(is_even)
    }

    /// The prefix of the first lines, if the others do not have it and are a table without them.
    fn comment(&self) -> Option<char> {
        let first = self.rows.first()?.1.chars().next()?;
        let sign = COMMENTS.into_iter().find(|sign| *sign == first)?;
        let rest = self.without(0, Some(sign));
        let below = rest.rows.first()?.1.as_str();
        let num_below = |delimiter: char| fields(below, delimiter).len();
        let num_above = |delimiter: char| fields(&self.rows[0].1, delimiter).len();
        // `#id,age` above rows of two values contains the column names.
        let names_columns = self.rows.len() == rest.rows.len() + 1
            && DELIMITERS
                .iter()
                .any(|d| num_below(*d) > 1 && num_below(*d) == num_above(*d));
        (!names_columns).then_some(sign)
    }

    /// The rows by a delimiter, if it makes a table of them.
    fn split_by(&self, delimiter: char) -> Option<Split> {
        let all = self.fields(delimiter);
        let (above, num) = above(&all)?;
        let rows = all.get(above..)?;
        let is_blank = delimiter == ' ';
        let others = |text: &str| {
            DELIMITERS[1..4]
                .iter()
                .any(|other| *other != delimiter && text.contains(*other))
        };
        // Splitting numbers at spaces did not go far enough.
        let is_row = |text: &String| {
            let mut words = text.split_whitespace();
            text.contains(char::is_whitespace) && words.all(|word| word.parse::<f64>().is_ok())
        };
        let is_clean =
            |text: &String| Dressed::of(text).is_some() || !others(text) && !is_row(text);
        let is_number = |text: &String| text.parse::<f64>().is_ok() || Dressed::of(text).is_some();
        let below = rows.iter().skip(1).flat_map(|(_, row)| row);
        let (mut clean, mut numbers, mut total) = (0, 0, 0);
        for text in below {
            total += 1;
            clean += usize::from(is_clean(text));
            numbers += usize::from(is_number(text));
        }
        // Words of a text are separated by spaces too.
        if num < 2 || is_blank && (numbers * 2 < total || above > 0) {
            return None;
        }
        Some(Split {
            delimiter,
            skip_rows: match above {
                0 => 0,
                _ => rows[0].0 - 1,
            },
            num,
            clean: (100 * clean).checked_div(total).unwrap_or(100),
        })
    }
}

/// Rows above the table, and the number of values in each of its rows; `None` if most rows do not have the same number.
/// A few shorter rows at the end may be notes.
pub fn above(rows: &[(usize, Vec<String>)]) -> Option<(usize, usize)> {
    const NOTES: usize = 3;
    let lengths: Vec<usize> = rows.iter().map(|(_, row)| row.len()).collect();
    let often = |num: usize| lengths.iter().filter(|len| **len == num).count();
    let num = lengths
        .iter()
        .copied()
        .max_by_key(|num| (often(*num), *num))?;
    let start = lengths.iter().position(|len| *len == num)?;
    let end = lengths.iter().rposition(|len| *len == num)? + 1;
    let (above, below) = (&lengths[..start], &lengths[end..]);
    let is_even = lengths[start..end].iter().all(|len| *len == num);
    let are_less = above.iter().chain(below).all(|len| *len < num);
    let is_enough = start == 0 || start <= ABOVE && end - start >= 3;
    (is_even && are_less && is_enough && below.len() <= NOTES).then_some((start, num))
}

/// A delimiter that makes a table.
struct Split {
    delimiter: char,
    skip_rows: usize,
    num: usize,
    clean: usize,
}

impl Split {
    fn rank(&self) -> (bool, bool, bool, usize, usize) {
        const MOSTLY: usize = 80;
        (
            self.skip_rows == 0,
            self.clean >= MOSTLY,
            self.delimiter != ' ',
            self.clean,
            self.num,
        )
    }
}

/// The values of a row.
pub fn fields(row: &str, delimiter: char) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    let mut was_quoted = vec![false];
    for c in row.chars() {
        let c = if delimiter == ' ' && c == '\t' {
            ' '
        } else {
            c
        };
        let last = fields.len() - 1;
        if c == '"' {
            is_quoted = !is_quoted;
            was_quoted[last] = true;
        } else if c == delimiter && !is_quoted {
            fields.push(String::new());
            was_quoted.push(false);
        } else {
            fields[last].push(c);
        }
    }
    let mut quoted = was_quoted.into_iter();
    // Several spaces count as one.
    fields.retain(|field| quoted.next().unwrap_or(false) || delimiter != ' ' || !field.is_empty());
    fields
        .iter_mut()
        .for_each(|field| *field = field.trim().to_owned());
    fields
}

/// Whether the first row contains values rather than names.
pub fn is_data(first: &[String], rest: &[Vec<String>]) -> bool {
    let numbers: Vec<f64> = first.iter().filter_map(|text| text.parse().ok()).collect();
    let is_whole = |text: &&String| text.bytes().all(|byte| byte.is_ascii_digit());
    let texts: Vec<(usize, &String)> = first
        .iter()
        .enumerate()
        .filter(|(_, text)| !text.is_empty() && text.parse::<f64>().is_err())
        .collect();
    let rises = numbers.windows(2).all(|pair| pair[0] < pair[1]);
    // Decimals, also with a decimal comma.
    let is_dressed = |text: &String| {
        let dressed = Dressed::of(text);
        dressed.is_some_and(|dressed| dressed.prefix.is_empty() && dressed.suffix.is_empty())
    };
    let has_other = first
        .iter()
        .any(|text| is_dressed(text) && !is_whole(&text));
    if numbers.len() == first.len() && !numbers.is_empty() {
        // Numbered columns, or years.
        let is_even = numbers.windows(3).all(|n| n[1] - n[0] == n[2] - n[1]);
        let by_one = numbers.windows(2).all(|n| n[1] - n[0] == 1.0);
        return has_other || !rises || !is_even || numbers.len() < 3 && !by_one;
    }
    if has_other || !numbers.is_empty() && !rises {
        return true;
    }
    // A name that occurs again below is a value.
    let comes_again = |(at, text): &&(usize, &String)| {
        let mut below = rest.iter().filter(|row| row.as_slice() != first);
        below.any(|row| row.get(*at) == Some(text))
    };
    let again = texts.iter().filter(comes_again).count();
    if numbers.is_empty() {
        again * 2 >= texts.len() && again >= 2
    } else {
        again > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialect(text: &str) -> (char, bool, usize, Option<char>) {
        let found = Head::of(text, false).dialect();
        (
            found.delimiter,
            found.header,
            found.skip_rows,
            found.comment,
        )
    }

    #[test]
    fn the_way_a_table_is_written_is_found_out() {
        for (text, expected) in [
            ("a,b\n1,2\n", (',', true, 0, None)),
            ("a;b\n1,5;2\n1;2,5\n", (';', true, 0, None)),
            ("a;b\n1,5;2,5\n3,5;4,5\n", (';', true, 0, None)),
            ("a\tb c\n1\t2, 3\n", ('\t', true, 0, None)),
            ("1,5\t2,5\n3,5\t4,5\n", ('\t', false, 0, None)),
            ("1|7\n3|4\n", ('|', false, 0, None)),
            ("\"a;b;c\",d\n\"1;2\",3\n", (',', true, 0, None)),
            ("\u{feff}\"1.5\",x\n", (',', false, 0, None)),
            ("name\nAnn\n", (',', true, 0, None)),
            ("", (',', true, 0, None)),
            ("x y\n1.5  2\n10.0 3\n", (' ', true, 0, None)),
            (
                "18.0   8   307.0\t\"chevrolet\"\n15.0   8   350.0\t\"buick\"\n",
                (' ', false, 0, None),
            ),
            (
                "text\nsome words here\nand a few more words\n",
                (',', true, 0, None),
            ),
            ("Report of 2024\n\na,b\n1,2\n3,4\n", (',', true, 2, None)),
            (
                "# made by x\n# on Monday\na,b\n1,2\n",
                (',', true, 0, Some('#')),
            ),
            ("#id,b\n1,2\n3,4\n", (',', true, 0, None)),
            ("a,b\r1,2\r3,4\r", (',', true, 0, None)),
            ("a,b\n\"x\ny\",2\n3,4\n", (',', true, 0, None)),
            (
                "5.1,3.5,Iris-setosa\n4.9,3.0,Iris-setosa\n",
                (',', false, 0, None),
            ),
            ("39,State,77516\n50,Self,83311\n", (',', true, 0, None)),
            ("39,State,13\n50,Self,83\n", (',', false, 0, None)),
            ("p,x,s\ne,x,y\np,x,y\n", (',', false, 0, None)),
            (
                "country,2000,2005,2010\nA,1,2,3\nB,1,2,3\n",
                (',', true, 0, None),
            ),
            ("0,1,2\n5,6,7\n", (',', true, 0, None)),
            ("1,5\n2,6\n", (',', false, 0, None)),
        ] {
            assert_eq!(dialect(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_last_line_of_a_head_may_be_cut() {
        let head = Head::of("a,b\n1,2\n3", true);
        assert_eq!(head.num_rows(), 2);
        assert_eq!(
            above(&Head::of("T\na,b\n1,2\n3,4\n", false).fields(',')),
            Some((1, 2))
        );
        assert_eq!(
            above(&Head::of("a,b,c\n1,2\n3,4\n", false).fields(',')),
            None
        );
    }
}
