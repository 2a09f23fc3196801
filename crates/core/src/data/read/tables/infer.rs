//! The kind of each column, inferred from all rows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::cell::{Cell, Cells, is_date, is_whole};
use super::encode::shorten;
use super::ends::is_total;
use super::odd::{Known, Looks};
use crate::data::DataError;
use crate::data::oddity::Oddity;
use crate::data::records::{Column, ColumnKind, NearlyNumbers};
use crate::data::uses::unknown;
use crate::spec::data::{ColumnType, FilesSpec, RolesSpec};

/// The maximum number of distinct texts that are categories by default.
const MAX_NAMES: usize = 1000;
/// With at most this many distinct texts, a column contains categories whatever the number of rows; and integers are
/// classes.
const FEW: usize = 20;
/// The longest text, in bytes, that is a category by default.
const MAX_NAME_LEN: usize = 100;
/// The maximum number of categories of a column declared as such, and of distinct dates.
const MAX_CATEGORIES: usize = 1 << 20;
/// The maximum number of columns.
const MAX_COLUMNS: usize = 1 << 16;
/// The maximum number of list shapes that are counted per column.
const MAX_SHAPES: usize = 1000;

/// The columns in order of first occurrence.
#[derive(Debug, Default)]
pub struct Columns {
    /// Rows that were seen.
    pub rows: u64,
    names: Names,
    seen: Vec<Seen>,
}

/// Names of columns with their indices.
#[derive(Clone, Debug, Default)]
pub struct Names {
    names: Vec<String>,
    places: BTreeMap<String, usize>,
}

impl Names {
    /// The index of a name; `guess` is its probable index.
    pub fn place(&self, name: &str, guess: usize) -> Option<usize> {
        match self.names.get(guess) {
            Some(there) if there == name => Some(guess),
            _ => self.places.get(name).copied(),
        }
    }

    /// Adds a new name.
    pub fn push(&mut self, name: &str) {
        self.places.insert(name.to_owned(), self.names.len());
        self.names.push(name.to_owned());
    }
}

/// What is known about a column.
#[derive(Debug)]
struct Seen {
    /// Present values.
    present: u64,
    /// Scalars that are not numbers.
    texts: u64,
    /// The row of the first of these in this file, with its text.
    first_text: Option<(u64, String)>,
    /// The same with its place, over all files.
    placed_text: Option<(String, String)>,
    /// The form of the texts, for a column without settings.
    looks: Looks,
    /// Texts that mean a sum over rows.
    totals: u64,
    /// Whether all scalars are integers.
    all_whole: bool,
    all_dates: bool,
    longest: usize,
    /// The distinct scalars; `None` if there are too many.
    names: Option<BTreeSet<String>>,
    /// Rows of the first list and the first scalar.
    first_list: Option<u64>,
    first_single: Option<u64>,
    /// Lists by shape; one-dimensional lists under an empty one.
    shapes: BTreeMap<Vec<usize>, u64>,
    longest_list: usize,
    shortest_list: usize,
    lists_are_whole: bool,
}

/// A column and its encoding in a record.
#[derive(Debug)]
pub struct Decided {
    /// The column.
    pub column: Column,
    /// Whether shorter lists are padded.
    pub is_padded: bool,
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

impl Columns {
    /// The names of the columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.names.iter().map(String::as_str)
    }

    /// For following rows: what they cannot change is not inspected again.
    pub fn follow(&self) -> Self {
        let follow = |seen: &Seen| Seen {
            all_dates: seen.all_dates,
            names: seen.names.as_ref().map(|_| BTreeSet::new()),
            looks: seen.looks.follow(),
            ..Seen::default()
        };
        Self {
            rows: 0,
            names: self.names.clone(),
            seen: self.seen.iter().map(follow).collect(),
        }
    }

    fn column(&mut self, name: &str, guess: usize) -> usize {
        self.names.place(name, guess).unwrap_or_else(|| {
            self.names.push(name);
            self.seen.push(Seen::default());
            self.seen.len() - 1
        })
    }

    /// Includes a row.
    pub fn see(&mut self, roles: &RolesSpec, cells: Cells<'_>, number: u64) {
        self.rows += 1;
        for (guess, (name, cell)) in cells.into_iter().enumerate() {
            let at = self.column(&name, guess);
            let forced = kind_of(roles, &name) == Some(ColumnType::Category);
            if is_free(roles, &name) {
                self.seen[at].look(&cell, number);
            }
            self.seen[at].see(&cell, number, forced);
        }
    }

    /// Includes the findings of following rows.
    pub fn merge(&mut self, other: Self, roles: &RolesSpec) {
        self.rows += other.rows;
        for (guess, (name, seen)) in other.names.names.iter().zip(other.seen).enumerate() {
            let at = self.column(name, guess);
            let forced = kind_of(roles, name) == Some(ColumnType::Category);
            self.seen[at].merge(seen, forced);
        }
    }

    /// Refuses implausibly many columns.
    pub fn check_number(&self, path: &Path) -> Result<(), DataError> {
        if self.seen.len() > MAX_COLUMNS {
            Err(DataError::new(format!(
                "`{}` has more than {MAX_COLUMNS} columns",
                path.display()
            ))
            .help(
                "use keys that all rows share; a row with many numbers can be a list under one key",
            ))
        } else {
            Ok(())
        }
    }

    /// Resolves the places in a file of values that messages may mention.
    pub fn place(&mut self, place: impl Fn(u64) -> String) {
        for seen in &mut self.seen {
            seen.placed_text = seen
                .first_text
                .take()
                .map(|(number, text)| (place(number), text));
            seen.looks.place(&place);
        }
    }

    /// Columns of numbers except for one row, with the content of that row.
    pub fn texts_of_row_alone(&self, row: u64, roles: &RolesSpec) -> Vec<(String, String)> {
        const FEWEST: u64 = 4;
        let seen = self.names.names.iter().zip(&self.seen);
        let alone = seen.filter_map(|(name, seen)| {
            let (at, text) = seen.first_text.as_ref()?;
            let is_alone = seen.texts == 1 && seen.present >= FEWEST && *at == row;
            (is_alone && is_free(roles, name)).then(|| (name.clone(), text.clone()))
        });
        alone.collect()
    }

    /// The columns in which one row contains a word for a sum over rows.
    pub fn totals(&self) -> Vec<&str> {
        let seen = self.names.names.iter().zip(&self.seen);
        let named = seen.filter(|(_, seen)| seen.totals == 1);
        named.map(|(name, _)| name.as_str()).collect()
    }

    /// Oddities of columns without settings.
    pub fn oddities(&self, roles: &RolesSpec, has_types: bool) -> Vec<Oddity> {
        let seen = self.names.names.iter().zip(&self.seen);
        let odd = seen.filter_map(|(name, seen)| {
            let known = Known {
                name,
                present: seen.present,
                texts: seen.texts,
                names: seen.names.as_ref(),
                values: &roles.values,
                has_types,
            };
            let is_free = is_free(roles, name) && seen.first_list.is_none();
            is_free.then(|| seen.looks.oddity(&known)).flatten()
        });
        odd.collect()
    }

    /// Columns that are not numeric because of a few values: a mistyped number turns a whole column into categories.
    pub fn nearly_numbers(&self, roles: &RolesSpec) -> Vec<NearlyNumbers> {
        let seen = self.names.names.iter().zip(&self.seen);
        let nearly = seen.filter_map(|(name, seen)| {
            let numbers = seen.present - seen.texts.min(seen.present);
            let is_nearly = seen.texts > 0 && numbers * 10 >= seen.present * 9;
            let (place, text) = seen.placed_text.clone()?;
            (is_nearly && is_free(roles, name) && seen.first_list.is_none()).then(|| {
                NearlyNumbers {
                    column: name.clone(),
                    numbers,
                    present: seen.present,
                    place,
                    text,
                }
            })
        });
        nearly.collect()
    }

    /// Refuses names in `[[data.columns]]` that are not columns.
    pub fn check_names(&self, files: &FilesSpec) -> Result<(), DataError> {
        let names: Vec<&str> = self.names().collect();
        let said = files.roles.columns.iter().enumerate();
        let mut wrong = said.filter(|(_, said)| !names.contains(&said.name.as_str()));
        match wrong.next() {
            None => Ok(()),
            Some((at, said)) => {
                let key = format!("data.columns[{at}].name");
                Err(unknown(&said.name, &key, &names, files))
            }
        }
    }

    /// Refuses columns of a file that contain both lists and scalars.
    pub fn check_lists(&self, place: impl Fn(u64) -> String) -> Result<(), DataError> {
        for (name, seen) in self.names.names.iter().zip(&self.seen) {
            if let (Some(list), Some(single)) = (seen.first_list, seen.first_single) {
                return Err(DataError::new(format!(
                    "the column `{name}` contains a list at {} and a single value at {}",
                    place(list),
                    place(single)
                ))
                .help("use lists in all rows, or in none"));
            }
        }
        Ok(())
    }

    /// Decides the kind of each column.
    pub fn decide(self, roles: &RolesSpec) -> Result<Vec<Decided>, DataError> {
        let names = self.names.names.into_iter().zip(self.seen);
        names
            .map(|(name, seen)| {
                let is_target = roles.target.contains(&name);
                seen.decide(kind_of(roles, &name), is_target, name)
            })
            .collect()
    }
}

/// The kind that the experiment sets for a column.
fn kind_of(roles: &RolesSpec, name: &str) -> Option<ColumnType> {
    let column = roles.columns.iter().find(|column| column.name == name);
    column.and_then(|column| column.kind)
}

/// Whether a column has no settings.
fn is_free(roles: &RolesSpec, name: &str) -> bool {
    kind_of(roles, name).is_none() && !roles.ignore.iter().any(|other| other == name)
}

impl Seen {
    /// Includes the form of a value.
    fn look(&mut self, cell: &Cell<'_>, number: u64) {
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

    fn see(&mut self, cell: &Cell<'_>, number: u64, forced: bool) {
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

    fn merge(&mut self, other: Self, forced: bool) {
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

    fn decide(
        self,
        forced: Option<ColumnType>,
        is_target: bool,
        name: String,
    ) -> Result<Decided, DataError> {
        if self.first_list.is_some() {
            return self.decide_list(forced, name);
        }
        let kind = match forced {
            Some(ColumnType::Number) => ColumnKind::Doubles,
            Some(ColumnType::Text) => ColumnKind::Text,
            Some(ColumnType::Category) => {
                let Some(names) = self.names else {
                    return Err(DataError::new(format!(
                        "the column `{name}` has more than {MAX_CATEGORIES} distinct values, too many for categories"
                    ))
                    .help("set its `type` to \"number\" or \"text\", or list it in `ignore`"));
                };
                categories(names)
            }
            None => self.find_out(is_target),
        };
        Ok(Decided {
            column: Column::scalar(name, kind),
            is_padded: false,
        })
    }

    fn find_out(self, is_target: bool) -> ColumnKind {
        let num = self.names.as_ref().map_or(usize::MAX, BTreeSet::len);
        let are_categories = match (self.present, self.texts) {
            (0, _) => false,
            (_, 0) => is_target && self.all_whole && num <= FEW,
            (present, _) => {
                let are_repeated = is_target || num as u64 <= present / 2;
                num <= FEW || num <= MAX_NAMES && are_repeated || self.all_dates
            }
        };
        match self.names {
            Some(names) if are_categories => categories(names),
            _ if self.texts == 0 => ColumnKind::Doubles,
            _ => ColumnKind::Text,
        }
    }

    fn decide_list(self, forced: Option<ColumnType>, name: String) -> Result<Decided, DataError> {
        if let Some(ColumnType::Category | ColumnType::Text) = forced {
            return Err(DataError::new(format!(
                "the column `{name}` contains lists, which must be numbers"
            ))
            .help("remove its `type`, or use single values"));
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
        let is_whole = self.lists_are_whole && forced.is_none();
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
