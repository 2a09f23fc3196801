//! Items in memory, embedded in the binary or generated.

use std::borrow::Cow;
use std::io;

use super::plan::{InputPlan, TargetPlan};
use super::records::{Column, ColumnKind, Part, Records, Writer};

/// Items of one shape with a target each, in contiguous memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Items {
    /// The kind of an item.
    pub input: InputPlan,
    /// All items in order.
    pub inputs: Inputs,
    /// The kind of the targets.
    pub target: TargetPlan,
    /// All targets in order.
    pub targets: TargetValues,
}

/// The values of items in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Inputs {
    /// Bytes, to be multiplied by a scale.
    Bytes {
        /// The bytes.
        bytes: Vec<u8>,
        /// The factor of a byte.
        scale: f32,
    },
    /// Numbers.
    Floats(Vec<f32>),
    /// Tokens.
    Tokens(Vec<i32>),
}

/// The targets of items in order.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetValues {
    /// Classes, of items or of their positions; -1 for an ignored position.
    Classes(Vec<i32>),
    /// Numbers, or labels that are 0 or 1.
    Floats(Vec<f32>),
    /// The same for a network with 64 bits.
    Doubles(Vec<f64>),
}

impl TargetValues {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        match self {
            TargetValues::Classes(classes) => classes.len(),
            TargetValues::Floats(values) => values.len(),
            TargetValues::Doubles(values) => values.len(),
        }
    }

    /// The numbers in 32 bits; none if they are classes.
    pub fn singles(&self) -> Option<Cow<'_, [f32]>> {
        match self {
            TargetValues::Classes(_) => None,
            TargetValues::Floats(values) => Some(values.into()),
            TargetValues::Doubles(values) => {
                Some(values.iter().map(|value| *value as f32).collect())
            }
        }
    }
}

impl Items {
    /// Items of bytes with one class each.
    pub fn of_bytes(
        shape: Vec<usize>,
        bytes: Vec<u8>,
        scale: f32,
        labels: &[u8],
        num_classes: usize,
    ) -> Self {
        Self {
            input: InputPlan::single(shape, None),
            inputs: Inputs::Bytes { bytes, scale },
            target: TargetPlan::Class { num_classes },
            targets: TargetValues::Classes(labels.iter().map(|label| i32::from(*label)).collect()),
        }
    }

    /// Items of numbers, one item after the other, without targets.
    pub fn of_numbers(shape: Vec<usize>, values: Vec<f32>) -> Self {
        Self {
            input: InputPlan::single(shape, None),
            inputs: Inputs::Floats(values),
            target: TargetPlan::None,
            targets: TargetValues::Classes(Vec::new()),
        }
    }

    /// Items of `length` tokens from 0 to below `vocabulary`, one item after the other, without targets.
    pub fn of_tokens(length: usize, vocabulary: usize, tokens: Vec<i32>) -> Self {
        Self {
            input: InputPlan::single(vec![length], Some(vocabulary)),
            inputs: Inputs::Tokens(tokens),
            target: TargetPlan::None,
            targets: TargetValues::Classes(Vec::new()),
        }
    }

    /// The same with a class for each item, from 0 to below `num_classes`.
    #[must_use]
    pub fn with_classes(self, num_classes: usize, classes: Vec<i32>) -> Self {
        Self {
            target: TargetPlan::Class { num_classes },
            targets: TargetValues::Classes(classes),
            ..self
        }
    }

    /// The same with a class for each position of an item, such as the next token, or the class of a pixel; -1 for a
    /// position that does not count.
    #[must_use]
    pub fn with_classes_of_positions(
        self,
        shape: Vec<usize>,
        num_classes: usize,
        classes: Vec<i32>,
    ) -> Self {
        Self {
            target: TargetPlan::Classes { shape, num_classes },
            targets: TargetValues::Classes(classes),
            ..self
        }
    }

    /// The same with labels for each item, each 0 or 1.
    #[must_use]
    pub fn with_labels(self, num_labels: usize, labels: Vec<f32>) -> Self {
        Self {
            target: TargetPlan::Labels { num_labels },
            targets: TargetValues::Floats(labels),
            ..self
        }
    }

    /// The same with numbers of a shape for each item. They are not scaled.
    #[must_use]
    pub fn with_values(self, shape: Vec<usize>, values: Vec<f32>) -> Self {
        Self {
            target: TargetPlan::Values { shape },
            targets: TargetValues::Floats(values),
            ..self
        }
    }

    /// Values of one item.
    pub fn item_size(&self) -> usize {
        self.input.shape.iter().product()
    }

    /// Values of all items.
    pub(super) fn num_values(&self) -> usize {
        match &self.inputs {
            Inputs::Bytes { bytes, .. } => bytes.len(),
            Inputs::Floats(values) => values.len(),
            Inputs::Tokens(tokens) => tokens.len(),
        }
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.num_values() / self.item_size()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The items as records in memory; see [`Items::write`].
    pub(super) fn into_records(self, test: Option<&Items>) -> Records {
        let mut writer = Writer::in_memory();
        // Writing to memory cannot fail.
        let _ = self.write(test, &mut writer);
        writer.into_records()
    }

    /// Writes the items as records of a column `input` and a column `target`, followed by those of a test part.
    pub(super) fn write(&self, test: Option<&Items>, writer: &mut Writer) -> io::Result<()> {
        let (input, target) = (
            match &self.inputs {
                Inputs::Bytes { .. } => ColumnKind::Bytes,
                Inputs::Floats(_) => ColumnKind::Numbers,
                Inputs::Tokens(_) => ColumnKind::Whole,
            },
            match &self.targets {
                TargetValues::Classes(_) => ColumnKind::Whole,
                TargetValues::Floats(_) => ColumnKind::Numbers,
                TargetValues::Doubles(_) => ColumnKind::Doubles,
            },
        );
        let (size, target_size) = (self.item_size(), self.target.size());
        writer.begin(vec![
            Column {
                name: "input".into(),
                kind: input,
                shape: self.input.shape.clone(),
            },
            Column {
                name: "target".into(),
                kind: target,
                shape: vec![target_size],
            },
        ]);
        writer.reserve(self.len() + test.map_or(0, Items::len));
        let parts = [(Part::Train, Some(self)), (Part::Test, test)];
        let mut record = Vec::new();
        for (part, items) in parts {
            let Some(items) = items else { continue };
            writer.part(part);
            for at in 0..items.len() {
                record.clear();
                let range = at * size..(at + 1) * size;
                match &items.inputs {
                    Inputs::Bytes { bytes, .. } => record.extend(&bytes[range]),
                    Inputs::Floats(all) => all[range]
                        .iter()
                        .for_each(|value| record.extend(value.to_le_bytes())),
                    Inputs::Tokens(all) => all[range]
                        .iter()
                        .for_each(|value| record.extend(value.to_le_bytes())),
                }
                let range = at * target_size..(at + 1) * target_size;
                match &items.targets {
                    TargetValues::Classes(all) => all[range]
                        .iter()
                        .for_each(|value| record.extend(value.to_le_bytes())),
                    TargetValues::Floats(all) => all[range]
                        .iter()
                        .for_each(|value| record.extend(value.to_le_bytes())),
                    TargetValues::Doubles(all) => all[range]
                        .iter()
                        .for_each(|value| record.extend(value.to_le_bytes())),
                }
                writer.push(&record)?;
            }
        }
        Ok(())
    }
}
