//! The names of nodes, which edges use.

use std::collections::BTreeMap;

use crate::data::DataError;
use crate::data::exact::refuse_rounded;
use crate::data::records::{ColumnKind, Records};
use crate::diagnostic::nearest;
use crate::spec::data::GraphSpec;

/// The numbers of nodes by their names.
#[derive(Clone, Debug)]
pub struct NodeNames {
    /// The column of the names, and the names; none if rows are numbered.
    names: Option<(String, BTreeMap<String, u32>)>,
    num: usize,
}

impl NodeNames {
    /// From the column `id` of records, if it is given.
    pub(in crate::data) fn of_records(
        graph: &GraphSpec,
        records: &Records,
    ) -> Result<Self, DataError> {
        let id = graph.id.as_deref();
        let column = id.and_then(|id| records.column(id)).unwrap_or_default();
        if let Some(id) = id {
            refuse_rounded(records, column, "data.graph.id", id)?;
        }
        Self::new(id, records.len(), |row| name_of(records, row, column))
    }

    /// From the name of each row in the column `id`, if it is given.
    pub(super) fn new(
        id: Option<&str>,
        num: usize,
        given: impl Fn(usize) -> Option<String>,
    ) -> Result<Self, DataError> {
        let Some(id) = id else {
            return Ok(Self { names: None, num });
        };
        let mut names = BTreeMap::new();
        for row in 0..num {
            let Some(name) = given(row) else {
                let message = format!("the node in row {} has no name in `{id}`", row + 1);
                return Err(DataError::new(message)
                    .key("data.graph.id")
                    .help("give every node a name, or remove `id` to number the rows from 0"));
            };
            if let Some(first) = names.insert(name.clone(), row as u32) {
                let message = format!(
                    "two nodes have the name `{name}` in `{id}`: those in row {} and row {}",
                    first + 1,
                    row + 1
                );
                return Err(DataError::new(message)
                    .key("data.graph.id")
                    .help("give each node a name of its own"));
            }
        }
        Ok(Self {
            names: Some((id.to_owned(), names)),
            num,
        })
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.num
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.num == 0
    }

    /// The name of each node.
    pub fn all(&self) -> Vec<String> {
        let Some((_, names)) = &self.names else {
            return (0..self.num).map(|at| at.to_string()).collect();
        };
        let mut all = vec![String::new(); self.num];
        for (name, at) in names {
            all[*at as usize].clone_from(name);
        }
        all
    }

    /// The number of a node, or why there is none.
    pub(in crate::data) fn find(&self, name: &str) -> Result<u32, DataError> {
        match &self.names {
            Some((id, names)) => names.get(name).copied().ok_or_else(|| {
                let error = DataError::new(format!("`{name}` is no node: no row has it in `{id}`"));
                match nearest(name, names.keys().map(String::as_str)) {
                    Some(near) => error.help(format!("did you mean `{near}`?")),
                    None => error.help("add the node, or remove the edge"),
                }
            }),
            None => {
                let found = name.parse().ok().filter(|at| (*at as usize) < self.num);
                found.ok_or_else(|| {
                    let last = self.num.saturating_sub(1);
                    DataError::new(format!("`{name}` is no node: they have the numbers 0 to {last}"))
                        .help("nodes are numbered from 0 by their rows; if they have names, set `id` to the column of the names")
                })
            }
        }
    }
}

/// A value as the name of a node: whole numbers without decimals.
pub(in crate::data) fn name_of(records: &Records, row: usize, column: usize) -> Option<String> {
    match &records.columns()[column].kind {
        ColumnKind::Text => records.text(row, column).map(str::to_owned),
        ColumnKind::Categories { names } => {
            let code = records.category(row, column)?;
            names.get(code).cloned()
        }
        _ => {
            let value = records.number(row, column, 0);
            value.is_finite().then(|| value.to_string())
        }
    }
}
