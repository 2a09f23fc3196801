//! The kind of each column, inferred from all rows.

mod seen;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::cell::{Cell, Cells};
use super::image;
use super::odd::Known;
use crate::data::DataError;
use crate::data::oddity::Oddity;
use crate::data::records::{Column, NearlyNumbers};
use crate::data::uses::unknown;
use crate::spec::data::{ColumnType, FilesSpec, RolesSpec};
use seen::{Seen, Use};

/// The maximum number of columns.
const MAX_COLUMNS: usize = 1 << 16;

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

/// A column and its encoding in a record.
#[derive(Debug)]
pub struct Decided {
    /// The column.
    pub column: Column,
    /// Whether shorter lists are padded.
    pub is_padded: bool,
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
            let forced = roles.kind_of(&name) == Some(ColumnType::Category);
            if is_free(roles, &name) {
                self.seen[at].look(&cell, number);
            }
            self.seen[at].see(&cell, number, forced);
        }
    }

    /// Includes the marks around the numbers of a row, which are stripped before it is read.
    pub fn see_marks(&mut self, cells: &Cells<'_>) {
        for (guess, (name, cell)) in cells.iter().enumerate() {
            if let Cell::Plain(text) | Cell::Text(text) = cell {
                let at = self.column(name, guess);
                self.seen[at].looks.see_marks(text);
            }
        }
    }

    /// Includes the findings of following rows.
    pub fn merge(&mut self, other: Self, roles: &RolesSpec) {
        self.rows += other.rows;
        for (guess, (name, seen)) in other.names.names.iter().zip(other.seen).enumerate() {
            let at = self.column(name, guess);
            let forced = roles.kind_of(name) == Some(ColumnType::Category);
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
        if files.roles.has_other_table {
            // They are looked up in both, once both were read.
            return Ok(());
        }
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
                let use_of = match (roles.is_one_of_several(&name), roles.is_target(&name)) {
                    (true, _) => Use::OneTarget,
                    (false, true) => Use::Target,
                    (false, false) => Use::Input,
                };
                match roles.image_of(&name) {
                    Some(image) => Ok(Decided {
                        column: image::column(name, image),
                        is_padded: false,
                    }),
                    None => {
                        let kind = roles.kind_of(&name);
                        let said = roles.columns.iter().position(|of| of.name == name);
                        seen.decide(kind, use_of, name).map_err(|error| match said {
                            Some(at) if kind == Some(ColumnType::Label) => {
                                error.key(format!("data.columns[{at}].type"))
                            }
                            _ => error,
                        })
                    }
                }
            })
            .collect()
    }
}

/// Whether a column has no settings.
fn is_free(roles: &RolesSpec, name: &str) -> bool {
    roles.kind_of(name).is_none() && !roles.ignore.iter().any(|other| other == name)
}
