//! Dates that are read as categories.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::{Known, Looks, quoted};
use crate::data::oddity::{Fix, Oddity};
use crate::data::time::instant;
use crate::spec::data::DateFormat;

/// Date formats that are tried on texts.
const DATES: [&str; 18] = [
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%d.%m.%Y",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%m-%d-%Y",
    "%d-%m-%Y",
    "%d.%m.%y",
    "%m/%d/%y",
    "%d/%m/%y",
    "%b %d, %Y",
    "%b %d %Y",
    "%d %b %Y",
    "%d. %b %Y",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%b-%Y",
    "%Y-%m-%d",
];
/// And formats of times after them.
const TIMES: [&str; 6] = [
    "",
    " %H:%M",
    " %H:%M:%S",
    " %I:%M %p",
    " %I:%M:%S %p",
    ", %H:%M",
];

pub(super) static FORMATS: LazyLock<Vec<(String, DateFormat)>> = LazyLock::new(|| {
    let both = DATES
        .iter()
        .flat_map(|date| TIMES.iter().map(move |time| format!("{date}{time}")));
    let formats = both.filter_map(|text| Some((text.clone(), DateFormat::new(&text).ok()?)));
    formats.collect()
});

impl Looks {
    /// Dates that are read as categories.
    pub(super) fn unusual_dates(&self, known: &Known<'_>) -> Option<Oddity> {
        let formats = FORMATS.iter().enumerate();
        let formats = formats.filter(|(at, _)| self.dates & (1 << at) != 0);
        let mut formats: Vec<&str> = formats.map(|(_, (text, _))| text.as_str()).collect();
        if known.texts != known.present {
            return None;
        }
        // Without leading zeros, they do not sort by time as texts.
        let is_sorted = |names: &BTreeSet<String>| names.iter().all(|name| instant(name).is_some());
        if formats.iter().any(|text| text.starts_with("%Y-%m-%d"))
            && known.names.is_none_or(is_sorted)
        {
            return None;
        }
        // A space in a format also matches nothing, so a shorter one may match as well.
        formats.dedup_by(|a, b| a.replace(", ", " ") == b.replace(", ", " "));
        let shown = known.names.and_then(BTreeSet::first)?;
        let name = known.name;
        let several: Vec<_> = formats
            .iter()
            .map(|text| format!("`date_format = {}`", quoted(text)))
            .collect();
        let first = formats.first()?;
        let message = format!(
            "`{name}` contains dates such as `{shown}`, which are read as categories and not sorted by time"
        );
        let odd = Oddity::new(vec![name.to_owned()], message);
        let odd = match several.as_slice() {
            [only] => Oddity {
                fix: Fix {
                    date_format: Some((*first).to_owned()),
                    ..Fix::default()
                },
                ..odd.help(format!("set {only} under `[data]`"))
            },
            _ => odd
                .note("no day is above 12, so it is ambiguous which number is the month")
                .help(format!(
                    "set one of these under `[data]`: {}",
                    several.join(" or ")
                )),
        };
        Some(odd.help(format!(
            "or list the column in `ignore = [{}]`",
            quoted(name)
        )))
    }
}
