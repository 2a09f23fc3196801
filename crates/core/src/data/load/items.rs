//! Embedded or generated items as records.

use std::sync::Arc;

use super::Splits;
use crate::data::encode::{Encoder, InputEncoder, Scaling, TargetEncoder, array_scaling};
use crate::data::records::{Part, Records};
use crate::data::serve::{Set, Split};
use crate::data::split::{Known, assign};
use crate::data::{
    DataError, DataPlan, Edges, Inputs, Items, NodeGraph, TargetPlan, TargetValues, mnist,
};
use crate::spec::data::Scale;

/// What records of one input and one target do not say themselves.
pub(super) struct Described {
    /// The shape of an item.
    shape: Vec<usize>,
    /// The number of tokens, if the items consist of them.
    vocabulary: Option<usize>,
    /// The factor of a value.
    unit: f32,
    target: TargetPlan,
    /// The class of each item to split, if it has one.
    classes: Option<Vec<i32>>,
}

impl Described {
    fn of(items: &Items) -> Self {
        Self {
            shape: items.input.shape.clone(),
            vocabulary: items.input.vocabulary,
            unit: match items.inputs {
                Inputs::Bytes { scale, .. } => scale,
                Inputs::Floats(_) | Inputs::Tokens(_) => 1.0,
            },
            target: items.target.clone(),
            classes: match (&items.target, &items.targets) {
                (TargetPlan::Class { .. }, TargetValues::Classes(classes)) => Some(classes.clone()),
                _ => None,
            },
        }
    }

    /// The records of [`mnist::records`].
    pub(super) fn mnist(records: &Records) -> Self {
        let num = records.header.parts[Part::Train as usize];
        Self {
            shape: mnist::SHAPE.to_vec(),
            vocabulary: None,
            unit: mnist::UNIT,
            target: TargetPlan::Class {
                num_classes: mnist::NUM_CLASSES,
            },
            classes: Some((0..num).map(|at| records.number(at, 1, 0) as i32).collect()),
        }
    }
}

/// Embedded or generated items as records of one input and one target, and the nodes of a graph if there are edges.
pub(super) fn of_items(
    items: Items,
    official_test: Option<Items>,
    edges: Option<Edges>,
    plan: &DataPlan,
) -> Result<Splits, DataError> {
    let described = Described::of(&items);
    let records = items.into_records(official_test.as_ref());
    of_records(described, records, edges, plan)
}

/// The same for items that are records already.
pub(super) fn of_records(
    described: Described,
    records: Records,
    edges: Option<Edges>,
    plan: &DataPlan,
) -> Result<Splits, DataError> {
    let Described {
        shape,
        vocabulary,
        unit,
        target,
        classes,
    } = described;
    let known = Known {
        classes: classes.as_deref(),
        ..Known::default()
    };
    let num = records.header.parts[Part::Train as usize];
    let mut assigned = assign(num, known, &plan.split);
    if num < records.len() {
        assigned.test = (num as u32..records.len() as u32).collect();
    }
    let input = match vocabulary {
        Some(vocabulary) => InputEncoder::Tokens {
            column: 0,
            shape,
            vocabulary,
            shift: 0,
        },
        None => InputEncoder::Array {
            column: 0,
            shape,
            scaling: array_scaling(
                &records,
                0,
                &assigned.train,
                (plan.scale, plan.scale_axis),
                unit,
            ),
            axis: plan.scale_axis,
            unit,
            // Images are made from 0 to 1, except for noise.
            range: None,
            normalize: plan.scale == Scale::Normalize,
        },
    };
    let target = match target {
        TargetPlan::None => TargetEncoder::None,
        TargetPlan::Class { num_classes } => TargetEncoder::Class {
            column: 1,
            num_classes,
        },
        TargetPlan::Classes { shape, num_classes } => TargetEncoder::Classes {
            column: 1,
            shape,
            num_classes,
        },
        TargetPlan::Labels { num_labels } => TargetEncoder::Labels {
            columns: vec![1],
            num_labels,
        },
        TargetPlan::Values { shape } => TargetEncoder::Values {
            columns: vec![(1, vec![Scaling::NONE])],
            shape,
            nonlinear: Vec::new(),
        },
    };
    let graph = edges.map(|edges| NodeGraph::new(edges, &records, &input, None, Vec::new()));
    let graph = graph.transpose()?;
    let set = Arc::new(Set {
        records,
        encoder: Arc::new(Encoder {
            input,
            target,
            more_targets: Vec::new(),
        }),
        graph,
        pairs: None,
    });
    let split = |rows: Vec<u32>| Split::of_rows(set.clone(), rows);
    Ok(Splits {
        train: split(assigned.train)
            .augmented(plan.augment.clone())
            .with_label_noise(plan.label_noise, plan.split.seed),
        valid: split(assigned.valid),
        test: (!assigned.test.is_empty()).then(|| split(assigned.test)),
        num_dropped: 0,
    })
}
