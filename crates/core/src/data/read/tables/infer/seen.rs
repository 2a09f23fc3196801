//! What is known about a column, and the kind that follows.

use std::collections::{BTreeMap, BTreeSet};

use super::Decided;
use crate::data::DataError;
use crate::data::read::tables::cell::{Cell, is_date, is_whole};
use crate::data::read::tables::encode::shorten;
use crate::data::read::tables::ends::is_total;
use crate::data::read::tables::odd::Looks;
use crate::data::records::{Column, ColumnKind};
use crate::spec::data::ColumnType;

/// The maximum number of distinct texts that are categories by default.
const MAX_NAMES: usize = 1000;

/// The maximum number of categories of a column declared as such, and of distinct dates.
const MAX_CATEGORIES: usize = 1 << 20;

/// The maximum number of list shapes that are counted per column.
const MAX_SHAPES: usize = 1000;

/// The longest text, in bytes, that is a category by default.
const MAX_NAME_LEN: usize = 100;

/// With at most this many distinct texts, a column contains categories whatever the number of rows; and integers are
/// classes.
const FEW: usize = 20;

/// What a column is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// An input, or nothing.
    Input,
    /// It is the target: few integers are classes.
    Target,
    /// One of several columns of a target: integers are labels if they are 0 and 1, and otherwise numbers.
    OneTarget,
}

/// What is known about a column.
#[derive(Debug)]
pub(super) struct Seen {
    /// Present values.
    pub(super) present: u64,
    /// Scalars that are not numbers.
    pub(super) texts: u64,
    /// The row of the first of these in this file, with its text.
    pub(super) first_text: Option<(u64, String)>,
    /// The same with its place, over all files.
    pub(super) placed_text: Option<(String, String)>,
    /// The form of the texts, for a column without settings.
    pub(super) looks: Looks,
    /// Texts that mean a sum over rows.
    pub(super) totals: u64,
    /// Whether all scalars are integers.
    pub(super) all_whole: bool,
    pub(super) all_dates: bool,
    pub(super) longest: usize,
    /// The distinct scalars; `None` if there are too many.
    pub(super) names: Option<BTreeSet<String>>,
    /// Rows of the first list and the first scalar.
    pub(super) first_list: Option<u64>,
    pub(super) first_single: Option<u64>,
    /// Lists by shape; one-dimensional lists under an empty one.
    pub(super) shapes: BTreeMap<Vec<usize>, u64>,
    pub(super) longest_list: usize,
    pub(super) shortest_list: usize,
    pub(super) lists_are_whole: bool,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            present: 0,
            texts: 0,
            first_text: None,
            placed_text: None,
            looks: Looks::default(),
            totals: 0,
            all_whole: true,
            all_dates: true,
            longest: 0,
            names: Some(BTreeSet::new()),
            first_list: None,
            first_single: None,
            shapes: BTreeMap::new(),
            longest_list: 0,
            shortest_list: usize::MAX,
            lists_are_whole: true,
        }
    }
}

impl Seen {
    /// Includes the form of a value.
    pub(super) fn look(&mut self, cell: &Cell<'_>, number: u64) {
        match cell {
            Cell::Plain(text) if text.parse::<f64>().is_ok() => {
                self.looks.see_number(Some(text), number);
            }
            Cell::Plain(text) | Cell::Text(text) => {
                self.totals += u64::from(is_total(text));
                self.looks.see_text(text, number);
            }
            Cell::Missing | Cell::Wrong(_) => {}
            Cell::Whole(_) | Cell::Float(_) | Cell::Bool(_) | Cell::List(_) => {
                self.looks.see_number(None, number);
            }
        }
    }

    pub(super) fn see(&mut self, cell: &Cell<'_>, number: u64, forced: bool) {
        let (is_number, whole) = match cell {
            Cell::Missing | Cell::Wrong(_) => return,
            Cell::List(list) => {
                self.present += 1;
                self.first_list.get_or_insert(number);
                let shape = match list.shape[..] {
                    [len] => {
                        self.longest_list = self.longest_list.max(len);
                        self.shortest_list = self.shortest_list.min(len);
                        Vec::new()
                    }
                    _ => list.shape.clone(),
                };
                if self.shapes.len() < MAX_SHAPES || self.shapes.contains_key(&shape) {
                    *self.shapes.entry(shape).or_default() += 1;
                }
                self.lists_are_whole &= list.is_whole;
                return;
            }
            Cell::Plain(text) => (text.parse::<f64>().is_ok(), is_whole(text)),
            Cell::Whole(_) => (true, true),
            Cell::Float(_) => (true, false),
            Cell::Text(_) | Cell::Bool(_) => (false, false),
        };
        self.present += 1;
        self.first_single.get_or_insert(number);
        self.texts += u64::from(!is_number);
        if let (false, None, Some(text)) = (is_number, &self.first_text, cell.text()) {
            self.first_text = Some((number, shorten(&text)));
        }
        self.all_whole &= whole;
        let limit = if forced || self.all_dates {
            MAX_CATEGORIES
        } else {
            MAX_NAMES
        };
        if !self.all_dates && self.names.is_none() {
            return;
        }
        let Some(text) = cell.text() else {
            return;
        };
        self.all_dates &= is_date(&text);
        self.longest = self.longest.max(text.len());
        if let Some(names) = &mut self.names {
            if !names.contains(text.as_ref()) {
                names.insert(text.into_owned());
            }
            if names.len() > limit || self.longest > MAX_NAME_LEN && !forced {
                self.names = None;
            }
        }
    }

    pub(super) fn merge(&mut self, other: Self, forced: bool) {
        // Before the first value, everything holds for all values.
        self.present += other.present;
        self.texts += other.texts;
        self.first_text = self.first_text.take().or(other.first_text);
        self.placed_text = self.placed_text.take().or(other.placed_text);
        self.looks.merge(other.looks);
        self.totals += other.totals;
        self.all_whole &= other.all_whole;
        self.all_dates &= other.all_dates;
        self.longest = self.longest.max(other.longest);
        self.first_list = self.first_list.or(other.first_list);
        self.first_single = self.first_single.or(other.first_single);
        for (shape, num) in other.shapes {
            if self.shapes.len() < MAX_SHAPES || self.shapes.contains_key(&shape) {
                *self.shapes.entry(shape).or_default() += num;
            }
        }
        self.longest_list = self.longest_list.max(other.longest_list);
        self.shortest_list = self.shortest_list.min(other.shortest_list);
        self.lists_are_whole &= other.lists_are_whole;
        self.names = match (self.names.take(), other.names) {
            (Some(mut names), Some(mut others)) => {
                names.append(&mut others);
                Some(names)
            }
            _ => None,
        };
        let limit = if forced || self.all_dates {
            MAX_CATEGORIES
        } else {
            MAX_NAMES
        };
        if self.names.as_ref().is_some_and(|names| names.len() > limit) {
            self.names = None;
        }
    }

    pub(super) fn decide(
        self,
        forced: Option<ColumnType>,
        use_of: Use,
        name: String,
    ) -> Result<Decided, DataError> {
        if self.first_list.is_some() {
            return self.decide_list(forced, use_of, name);
        }
        let kind = match forced {
            Some(ColumnType::Number) => ColumnKind::Doubles,
            Some(ColumnType::Text | ColumnType::Chat) => ColumnKind::Text,
            Some(ColumnType::Category) => {
                let Some(names) = self.names else {
                    return Err(DataError::new(format!(
                        "the column `{name}` has more than {MAX_CATEGORIES} distinct values, too many for categories"
                    ))
                    .help("set its `type` to \"number\" or \"text\", or list it in `ignore`"));
                };
                categories(names)
            }
            Some(ColumnType::Label) => {
                let names = self.names.as_ref();
                let other = names.map(|names| names.iter().find(|name| !is_label(name)));
                if let Some(None) = other {
                    ColumnKind::Whole
                } else {
                    let found = match other.flatten() {
                        Some(name) => format!("`{}`", shorten(name)),
                        None => "other values".to_owned(),
                    };
                    return Err(DataError::new(format!(
                        "the column `{name}` contains {found}, but labels are 0 and 1"
                    ))
                    .help("write 1 for yes and 0 for no, or remove its `type`"));
                }
            }
            None => self.find_out(use_of),
        };
        Ok(Decided {
            column: Column::scalar(name, kind),
            is_padded: false,
        })
    }

    pub(super) fn find_out(self, use_of: Use) -> ColumnKind {
        let is_target = use_of != Use::Input;
        let num = self.names.as_ref().map_or(usize::MAX, BTreeSet::len);
        let are_categories = match (self.present, self.texts) {
            (0, _) => false,
            (_, 0) => use_of == Use::Target && self.all_whole && num <= FEW,
            (present, _) => {
                let are_repeated = is_target || num as u64 <= present / 2;
                num <= FEW || num <= MAX_NAMES && are_repeated || self.all_dates
            }
        };
        match self.names {
            Some(names) if use_of == Use::OneTarget && names.iter().all(|name| is_label(name)) => {
                ColumnKind::Whole
            }
            Some(names) if are_categories => categories(names),
            _ if self.texts == 0 => ColumnKind::Doubles,
            _ => ColumnKind::Text,
        }
    }

    pub(super) fn decide_list(
        self,
        forced: Option<ColumnType>,
        use_of: Use,
        name: String,
    ) -> Result<Decided, DataError> {
        if let Some(ColumnType::Text | ColumnType::Chat) = forced {
            return Err(DataError::new(format!(
                "the column `{name}` contains lists, which must be numbers"
            ))
            .help("remove its `type`, or use single values"));
        }
        let are_tokens = forced == Some(ColumnType::Category);
        if are_tokens && !self.lists_are_whole {
            return Err(DataError::new(format!(
                "the column `{name}` contains lists of numbers that are not integers, but tokens are"
            ))
            .help("remove its `type` or `encode`, or write the numbers of tokens"));
        }
        // The most frequent shape; of two, the one with fewer dimensions.
        let most = self.shapes.values().max().copied();
        let shape = self.shapes.iter().find(|(_, num)| Some(**num) == most);
        let shape = shape.map(|(shape, _)| shape.clone()).unwrap_or_default();
        let (shape, is_padded) = if shape.is_empty() {
            (
                vec![self.longest_list],
                self.longest_list != self.shortest_list,
            )
        } else {
            (shape, false)
        };
        if shape.contains(&0) {
            return Err(
                DataError::new(format!("the lists of the column `{name}` are empty"))
                    .help("list the column in `ignore`, or remove it from the file"),
            );
        }
        // Tokens of a target that are padding are ignored.
        if is_padded && use_of != Use::Input && !are_tokens {
            let (least, most) = (self.shortest_list, self.longest_list);
            return Err(DataError::new(format!(
                "the lists of the target `{name}` have different lengths, from {least} to {most}"
            ))
            .note("shorter lists would be padded, and padding would count in losses and metrics")
            .help("make the lists of a target equally long, or keep one number of each"));
        }
        // What follows the end of a list is padding for tokens, and missing for numbers.
        let is_whole = self.lists_are_whole
            && match forced {
                Some(ColumnType::Category | ColumnType::Label) => true,
                Some(_) => false,
                None => !is_padded,
            };
        let kind = if is_whole {
            ColumnKind::Whole
        } else {
            ColumnKind::Numbers
        };
        Ok(Decided {
            column: Column { name, kind, shape },
            is_padded,
        })
    }
}

fn is_label(name: &str) -> bool {
    name == "0" || name == "1"
}

/// Names in numeric order if they are numbers, otherwise in text order.
fn categories(names: BTreeSet<String>) -> ColumnKind {
    let mut names: Vec<_> = names.into_iter().collect();
    let numbers: Option<Vec<f64>> = names
        .iter()
        .map(|name| name.parse().ok().filter(|number: &f64| !number.is_nan()))
        .collect();
    if let Some(numbers) = numbers {
        let mut pairs: Vec<_> = numbers.into_iter().zip(names).collect();
        pairs.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        names = pairs.into_iter().map(|(_, name)| name).collect();
    }
    ColumnKind::Categories { names }
}
