//! Serves the items of a split on request: from the records, through the encoder.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::encode::{Encoder, InputEncoder, Number, TargetEncoder};
use super::noise::changed_classes;
use super::order::{Purpose, stream_seed};
use super::records::Records;
use super::{DataError, DrawnPlan, InputPlan, NodeGraph, Pairs, PairsPart, TargetValues};
use crate::spec::backend::Precision;
use crate::spec::data::AugmentSpec;

mod changes;
mod content;
mod decisive;
mod hidden;
mod moment;
mod tokens;

pub use decisive::decisive_of;
use hidden::hide;
pub use moment::Moment;
use moment::of_graph;
pub use tokens::Tokens;
pub(in crate::data) use tokens::little_endian;

/// The items of all splits and how they are encoded.
#[derive(Debug)]
pub struct Set {
    /// The records of all splits.
    pub records: Records,
    /// The encoder.
    pub encoder: Arc<Encoder>,
    /// The graph whose nodes the records are, or whose pairs of nodes.
    pub graph: Option<Arc<NodeGraph>>,
    /// The pairs of nodes, if they are the items.
    pub pairs: Option<Pairs>,
}

impl Set {
    /// The kind of an item.
    pub fn input_plan(&self) -> InputPlan {
        let mut plan = self.encoder.input.plan();
        plan.graph = self.graph.as_ref().map(|graph| graph.plan());
        if let (Some(pairs), Some(graph)) = (&self.pairs, &mut plan.graph) {
            graph.pairs = Some(pairs.plan());
            graph.drawn = graph.drawn.map(DrawnPlan::of_pairs);
        }
        plan
    }

    /// The records from which inputs are encoded.
    pub fn inputs(&self) -> &Records {
        let pairs = self.pairs.as_ref();
        let nodes = pairs.and_then(|pairs| pairs.nodes.as_deref());
        nodes.unwrap_or(&self.records)
    }
}

/// The items of one split.
#[derive(Clone, Debug)]
pub struct Split {
    set: Arc<Set>,
    /// Records in their order.
    rows: Arc<[u32]>,
    /// The start of each item, in `rows` or in `tokens`; without it each row is an item.
    starts: Option<Arc<[u32]>>,
    /// Running text.
    tokens: Tokens,
    augment: Option<AugmentSpec>,
    /// Classes that are changed on purpose, by the record of the target.
    changed: Arc<BTreeMap<u32, i32>>,
    /// The weights of the items, if they differ.
    weights: Option<Arc<Weights>>,
    /// Whether numbers are served in 64 bits.
    is_wide: bool,
}

/// The weights of the items of a split.
#[derive(Debug)]
struct Weights {
    column: usize,
    /// Their mean over the split.
    mean: f64,
}

/// Requested items, in contiguous memory.
#[derive(Clone, Debug)]
pub struct Served {
    /// The inputs: `num_items` times the product of the item's shape.
    pub values: Values,
    /// The targets.
    pub targets: TargetValues,
    /// The targets of `[[losses]]` that are other columns.
    pub more_targets: Vec<TargetValues>,
    /// With what the items are mixed, if they are.
    pub mixed: Option<Mixed>,
    /// The weights of the items, if they differ: 1 on average over the split.
    pub weights: Option<Vec<f64>>,
    /// Number of items.
    pub num_items: usize,
}

/// The other classes of mixed items.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixed {
    /// The class of the smaller part of each item. That of the larger one is its target.
    pub classes: Vec<i32>,
    /// The share of the smaller part.
    pub shares: Vec<f64>,
}

/// The inputs.
#[derive(Clone, Debug)]
pub enum Values {
    /// Numbers.
    Floats(Vec<f32>),
    /// Numbers for a network with 64 bits.
    Doubles(Vec<f64>),
    /// Tokens.
    Tokens(Vec<i32>),
    /// Nodes of a graph.
    Nodes {
        /// The graph.
        graph: Arc<NodeGraph>,
        /// The numbers of the nodes.
        rows: Vec<u32>,
    },
    /// Pairs of nodes of a graph.
    Pairs {
        /// The graph.
        graph: Arc<NodeGraph>,
        /// The pairs.
        part: PairsPart,
    },
    /// Graphs.
    Graphs {
        /// All nodes and their edges.
        graph: Box<NodeGraph>,
        /// The position of each node's graph.
        of: Vec<i32>,
    },
}

/// A token of running text, whether it is to be predicted or not.
fn plain(token: i32) -> i32 {
    if token < 0 { !token } else { token }
}

impl Split {
    /// Each row is an item.
    pub fn of_rows(set: Arc<Set>, rows: Vec<u32>) -> Self {
        Self {
            set,
            rows: rows.into(),
            starts: None,
            tokens: Vec::new().into(),
            augment: None,
            changed: Arc::default(),
            weights: None,
            is_wide: false,
        }
    }

    /// Serves numbers in the precision of a network: in 64 bits if it computes in as many.
    pub fn in_precision(self, precision: Precision) -> Self {
        Self {
            is_wide: precision == Precision::F64,
            ..self
        }
    }

    /// Windows of rows, by the position of their first row.
    pub fn of_windows(set: Arc<Set>, rows: Vec<u32>, starts: Vec<u32>) -> Self {
        Self {
            starts: Some(starts.into()),
            ..Self::of_rows(set, rows)
        }
    }

    /// Pieces of running text, by the position of their first token.
    pub fn of_tokens(set: Arc<Set>, tokens: Tokens, starts: Vec<u32>) -> Self {
        Self {
            tokens,
            ..Self::of_windows(set, Vec::new(), starts)
        }
    }

    /// Augments its images when they are served with a moment.
    pub fn augmented(self, augment: Option<AugmentSpec>) -> Self {
        Self { augment, ..self }
    }

    /// Changes the classes of a fraction of the items on purpose, if each item has one.
    pub fn with_label_noise(self, fraction: f64, seed: u64) -> Self {
        let TargetEncoder::Class { num_classes, .. } = self.set.encoder.target else {
            return self;
        };
        if fraction == 0.0 {
            return self;
        }
        let all: Vec<u32> = (0..self.num_items() as u32).collect();
        let changed = changed_classes(&self.classes(&all), num_classes, fraction, seed);
        let by_row = changed.into_iter().filter_map(|(item, class)| {
            let row = self.row(item as usize)?;
            Some((row as u32, class))
        });
        Self {
            changed: Arc::new(by_row.collect()),
            ..self
        }
    }

    /// Weights its items by a column, if one is named, relative to their mean: so that the mean loss of all items is
    /// their weighted mean, and a batch of any size has its share of it.
    ///
    /// # Errors
    /// If all weights are 0.
    pub fn weighted(self, column: Option<usize>) -> Result<Self, DataError> {
        let Some(column) = column else {
            return Ok(self);
        };
        let records = &self.set.records;
        let weight = |item: usize| Some(records.number(self.row(item)?, column, 0));
        let sum: f64 = (0..self.num_items()).filter_map(weight).sum();
        if sum <= 0.0 && self.num_items() > 0 {
            let name = &records.columns()[column].name;
            let message = format!("the weights `{name}` are 0 for all items of the train split");
            return Err(DataError::new(message)
                .key("data.weight")
                .help("use another column, or remove `weight`"));
        }
        let mean = sum / self.num_items() as f64;
        Ok(Self {
            weights: Some(Arc::new(Weights { column, mean })),
            ..self
        })
    }

    /// Number of items.
    pub fn num_items(&self) -> usize {
        self.starts
            .as_ref()
            .map_or(self.rows.len(), |starts| starts.len())
    }

    /// The items and their encoder.
    pub fn set(&self) -> &Set {
        &self.set
    }

    /// The records of the items, in order; empty for running text.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// The record of an item's target; `None` for running text.
    pub fn row(&self, item: usize) -> Option<usize> {
        let at = self.start(item as u32) + self.ahead();
        self.rows.get(at).map(|row| *row as usize)
    }

    /// Whether images are augmented when they are served with a moment.
    pub fn is_augmented(&self) -> bool {
        self.augment.is_some()
    }

    /// The items of a range.
    pub fn slice(&self, items: Range<usize>) -> Self {
        let mut part = self.clone();
        match &self.starts {
            Some(starts) => part.starts = Some(starts[items].into()),
            None => part.rows = self.rows[items].into(),
        }
        part
    }

    /// The items at some positions, in that order. With a moment, images are augmented, and other tokens are hidden and
    /// other neighbors drawn in each epoch.
    pub fn serve(&self, places: &[u32], moment: Option<Moment>) -> Served {
        if self.is_wide {
            self.serve_as::<f64>(places, moment)
        } else {
            self.serve_as::<f32>(places, moment)
        }
    }

    fn serve_as<N: Number>(&self, places: &[u32], moment: Option<Moment>) -> Served {
        let Set {
            records,
            encoder,
            graph,
            pairs,
        } = &*self.set;
        let mut inputs: Vec<N> = Vec::new();
        let mut tokens = Vec::new();
        let (mut classes, mut numbers) = (Vec::new(), Vec::<N>::new());
        let more = encoder.more_targets.iter();
        let mut more: Vec<TargetValues> = more.map(TargetEncoder::no_values::<N>).collect();
        let ahead = self.ahead();
        for (done, place) in places.iter().enumerate() {
            if done == 1 {
                // All items have the size of the first: growing buffers could reach twice the size.
                let rest = places.len() - 1;
                inputs.reserve_exact(inputs.len() * rest);
                numbers.reserve_exact(numbers.len() * rest);
                tokens.reserve_exact(tokens.len() * rest);
                classes.reserve_exact(classes.len() * rest);
            }
            let start = self.start(*place);
            let first = tokens.len();
            let row = |at: usize| self.rows[at] as usize;
            // The row of the target.
            let asked = start + ahead;
            match &encoder.input {
                InputEncoder::Features {
                    window: Some(window),
                    ..
                } => {
                    for at in start..start + window.length {
                        encoder.input.numbers(records, row(at), &mut inputs);
                    }
                }
                InputEncoder::Stream { length, .. } => {
                    let after = usize::from(encoder.target == TargetEncoder::NextTokens);
                    let read = self.tokens.part(start..start + length + after);
                    tokens.extend(read[..*length].iter().map(|token| plain(*token)));
                    if encoder.target == TargetEncoder::NextTokens {
                        let end = encoder.input.document_end();
                        // The next document does not follow from this one.
                        let next = |at: usize| {
                            if Some(plain(read[at])) == end {
                                -1
                            } else {
                                read[at + 1].max(-1)
                            }
                        };
                        classes.extend((0..*length).map(next));
                    }
                }
                _ if graph.is_some() => {}
                input if input.is_tokens() => input.tokens(records, row(start), &mut tokens),
                input => input.numbers(records, row(start), &mut inputs),
            }
            match &encoder.target {
                TargetEncoder::None | TargetEncoder::NextTokens => {}
                TargetEncoder::HiddenTokens { share } => {
                    let seed = self.hidden_seed(start, moment, done);
                    if let Some(tokenizer) = encoder.input.tokenizer() {
                        classes.extend(hide(tokenizer, *share, seed, &mut tokens[first..]));
                    }
                }
                TargetEncoder::Values { .. } | TargetEncoder::Labels { .. } => {
                    encoder.target.numbers(records, row(asked), &mut numbers);
                }
                TargetEncoder::Class { .. } | TargetEncoder::Classes { .. } => {
                    encoder.target.classes(records, row(asked), &mut classes);
                    self.change_class(row(asked), &mut classes);
                }
            }
            for (target, values) in encoder.more_targets.iter().zip(&mut more) {
                if let TargetValues::Classes(classes) = values {
                    target.classes(records, row(asked), classes);
                } else if let Some(numbers) = N::of_targets(values) {
                    target.numbers(records, row(asked), numbers);
                }
            }
            if let (Some(spec), Some(moment)) = (&self.augment, moment) {
                let seed = moment.augment_seed(self.rows[start], done);
                self.change(spec, seed, &mut inputs, &mut classes);
            }
        }
        Served {
            values: if let Some(graph) = graph {
                let rows: Vec<u32> = places.iter().map(|at| self.rows[*at as usize]).collect();
                of_graph(graph, pairs.as_ref(), rows, moment)
            } else if encoder.input.is_tokens() {
                Values::Tokens(tokens)
            } else {
                N::values(inputs)
            },
            targets: if encoder.target.is_classes() {
                TargetValues::Classes(classes)
            } else {
                N::targets(numbers)
            },
            more_targets: more,
            mixed: None,
            weights: {
                let weights = self.weights.as_deref();
                weights.map(|weights| self.weights_of(weights, places))
            },
            num_items: places.len(),
        }
    }

    /// The seed of the tokens that are hidden in an item, which is served with this number: the same each time outside
    /// of training.
    fn hidden_seed(&self, start: usize, moment: Option<Moment>, number: usize) -> u64 {
        // Running text has no rows.
        let record = self.rows.get(start).map_or(start as u32, |row| *row);
        let (seed, index) = match moment {
            Some(moment) => (moment.augment_seed(record, number), 0),
            None => (0, u64::from(record)),
        };
        stream_seed(seed, Purpose::HiddenTokens, index)
    }

    fn weights_of(&self, weights: &Weights, places: &[u32]) -> Vec<f64> {
        let Weights { column, mean } = *weights;
        let ahead = self.ahead();
        let row = |place: &u32| self.rows[self.start(*place) + ahead] as usize;
        let weight = |place: &u32| self.set.records.number(row(place), column, 0) / mean;
        places.iter().map(weight).collect()
    }

    /// The classes of the items at some positions, if each has one.
    pub fn classes(&self, places: &[u32]) -> Vec<i32> {
        self.classes_of(&self.set.encoder.target, places)
    }

    /// The classes of a target of the items at some positions; several for each item if its positions have classes.
    pub(super) fn classes_of(&self, target: &TargetEncoder, places: &[u32]) -> Vec<i32> {
        let records = &self.set.records;
        let ahead = self.ahead();
        let mut classes = Vec::with_capacity(places.len());
        for place in places {
            let row = self.rows[self.start(*place) + ahead] as usize;
            target.classes(records, row, &mut classes);
            if std::ptr::eq(target, &self.set.encoder.target) {
                self.change_class(row, &mut classes);
            }
        }
        classes
    }

    /// Changes the class of a record that was added last, if it is one of those to change.
    fn change_class(&self, row: usize, classes: &mut [i32]) {
        if let (Some(class), Some(last)) = (self.changed.get(&(row as u32)), classes.last_mut()) {
            *last = *class;
        }
    }

    /// The start of the item at a position, in `rows` or in `tokens`.
    fn start(&self, place: u32) -> usize {
        match &self.starts {
            Some(starts) => starts[place as usize] as usize,
            None => place as usize,
        }
    }

    /// Rows from an item's start to the one of its target.
    fn ahead(&self) -> usize {
        let window = self.set.encoder.input.window();
        window.map_or(0, |window| window.length - 1 + window.horizon)
    }
}
