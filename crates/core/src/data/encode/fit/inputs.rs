//! Named inputs: each is fitted to its columns as if it were the only one.

use super::Fitting;
use crate::data::DataError;
use crate::data::encode::{EncodedInput, Indexed, InputEncoder};
use crate::data::records::ColumnKind;
use crate::spec::data::{InputEncode, Missing};

/// The indices that 32-bit floats can tell apart.
const MAX_INDICES: usize = 1 << 24;

impl Fitting<'_> {
    pub(super) fn inputs(&self) -> Result<InputEncoder, DataError> {
        let named = self.roles.inputs.iter().zip(&self.uses.inputs).enumerate();
        let inputs = named.map(|(number, (input, columns))| {
            let key = format!("data.inputs[{number}].columns");
            let encoder = match input.encode {
                InputEncode::Columns => self.of_columns(columns),
                InputEncode::Embedding => self.indices(columns),
            };
            let encoder = encoder.map_err(|error| error.or_key(&key))?;
            match encoder.plan().vocabulary {
                Some(num) if num > MAX_INDICES => Err(DataError::new(format!(
                    "the input `{}` has {num} different indices, but at most {MAX_INDICES} are possible beside other inputs",
                    input.name
                ))
                .key(key)
                .help("use fewer categories, or smaller integers")),
                _ => Ok(EncodedInput {
                    name: input.name.clone(),
                    encoder,
                }),
            }
        });
        Ok(InputEncoder::Inputs {
            inputs: inputs.collect::<Result<_, DataError>>()?,
        })
    }

    /// Categories as indices.
    fn indices(&self, columns: &[usize]) -> Result<InputEncoder, DataError> {
        if let [at] = *columns
            && self.column(at).kind == ColumnKind::Whole
            && !self.column(at).shape.is_empty()
        {
            return self.tokens(at);
        }
        let mut first = 0;
        let mut all = Vec::with_capacity(columns.len());
        for at in columns {
            let indexed = self.indexed(*at, first)?;
            first += indexed.num;
            all.push(indexed);
        }
        Ok(InputEncoder::Indices { columns: all })
    }

    fn indexed(&self, at: usize, first: usize) -> Result<Indexed, DataError> {
        let column = self.column(at);
        let name = column.name.clone();
        let ColumnKind::Categories { names } = &column.kind else {
            let extent = self.records.header.extents[at];
            if let Some(min) = extent.min.filter(|min| *min < 0.0) {
                return Err(DataError::new(format!(
                    "column `{name}` contains {min}, but categories are numbered from 0"
                ))
                .help("number the categories from 0"));
            }
            return Ok(Indexed {
                column: at,
                name,
                indices: Vec::new(),
                num: extent.max.unwrap_or(0.0) as usize + 2,
                first,
                fill: 0,
            });
        };
        let counts = self.counts(at, names.len());
        let mut num = 1;
        let mut index = |count: &u64| {
            if *count == 0 {
                return 0;
            }
            num += 1;
            num - 1
        };
        let indices: Vec<usize> = counts.iter().map(&mut index).collect();
        let largest = counts.iter().max().copied().unwrap_or(0);
        let most_common = counts.iter().position(|count| *count == largest);
        let fill = match self.roles.missing_of(&name) {
            Missing::Zero => 0,
            _ => most_common.map_or(0, |code| indices[code]),
        };
        Ok(Indexed {
            column: at,
            name,
            indices,
            num,
            first,
            fill,
        })
    }
}
