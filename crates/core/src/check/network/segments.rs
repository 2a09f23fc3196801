//! Where a forward pass is cut when blocks are recomputed: gradient checkpointing (Chen et al., 2016).
//!
//! The backward pass computes one segment after the other again, from the last to the first, and needs only the outputs
//! that cross a cut. Cuts are at the ends of blocks of the file and between the layers of a stack of transformers; in a
//! network without blocks, after any layer. Of those, the ones are taken with which the least is kept.
//!
//! Gradients of an output with several uses are summed in the order of a backward pass, from the last use to the first.
//! No cut changes this order, so that numbers are the same to the bit.

use std::collections::BTreeMap;
use std::ops::Range;

use super::memory::values;
use super::{Layer, Network};
use crate::spec::model::activation::Activation;
use crate::spec::model::layer::LayerKind;
use crate::spec::model::layer_spec::Weights;

/// A layer, or one of the layers of a stack of transformers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The layer.
    pub layer: usize,
    /// Which part of it.
    pub part: usize,
    /// How many parts it has.
    pub num_parts: usize,
}

/// The steps of a forward pass, and how they are cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segments {
    /// The steps in order.
    pub steps: Vec<Step>,
    /// The segments.
    pub ranges: Vec<Range<usize>>,
    /// For each layer the step with its output.
    pub ends: Vec<usize>,
    /// For each step the steps that use its output, twice if they use it more than once. A use that is the number of all
    /// steps is that of a loss.
    pub uses: Vec<Vec<usize>>,
}

impl Step {
    /// Whether it is the first part of its layer, which gets the first input of the layer.
    pub fn is_first(&self) -> bool {
        self.part == 0
    }
}

impl Network {
    /// The segments with which a training keeps the least.
    pub fn segments(&self) -> Segments {
        self.segments_with(&[])
    }

    /// The same if losses use the outputs of some layers.
    pub fn segments_with(&self, used_by_losses: &[usize]) -> Segments {
        let uncut = self.uncut(used_by_losses);
        let ends = self.ends_of_blocks(&uncut.steps);
        let weights = self.uses_of_weights(&uncut.ends);
        let each: Vec<u64> = uncut.steps.iter().map(|step| self.kept_by(*step)).collect();
        let total: u64 = each.iter().sum();
        let most = ends.len() as u64 + 1;
        let cut = |num: u64| uncut.clone().cut(&each, &ends, total / num);
        let found = (1..=most).map(cut).filter(|cut| cut.keeps_order(&weights));
        let kept = |cut: &Segments| {
            let of = |range: &Range<usize>| each[range.clone()].iter().sum::<u64>();
            let largest = cut.ranges.iter().map(of).max().unwrap_or(0);
            largest.saturating_add(cut.crossing_values(self))
        };
        found.min_by_key(kept).unwrap_or(uncut)
    }

    /// Every step as a segment, for tests: some cuts change the order of sums.
    pub fn single_steps(&self) -> Segments {
        let uncut = self.uncut(&[]);
        let num = uncut.steps.len();
        Segments {
            ranges: (0..num).map(|at| at..at + 1).collect(),
            ..uncut
        }
    }

    /// Whether cuts leave the order of sums as it is.
    pub fn keeps_order(&self, cut: &Segments) -> bool {
        cut.keeps_order(&self.uses_of_weights(&cut.ends))
    }

    fn uncut(&self, used_by_losses: &[usize]) -> Segments {
        let (mut steps, mut ends) = (Vec::new(), Vec::new());
        for (layer, plan) in self.layers.iter().enumerate() {
            let num_parts = plan.num_parts();
            steps.extend((0..num_parts).map(|part| Step {
                layer,
                part,
                num_parts,
            }));
            ends.push(steps.len() - 1);
        }
        let mut uses = vec![Vec::new(); steps.len()];
        for (at, step) in steps.iter().enumerate() {
            let layer = &self.layers[step.layer];
            for (number, input) in layer.inputs.iter().enumerate() {
                let from = match input.layer {
                    _ if number == 0 && !step.is_first() => at - 1,
                    Some(from) => ends[from],
                    None => continue,
                };
                uses[from].extend(vec![at; layer.num_uses()]);
            }
        }
        let num = steps.len();
        used_by_losses
            .iter()
            .for_each(|layer| uses[ends[*layer]].push(num));
        Segments {
            ranges: std::iter::once(0..num).collect(),
            steps,
            ends,
            uses,
        }
    }

    /// The steps after which the pass can be cut.
    fn ends_of_blocks(&self, steps: &[Step]) -> Vec<usize> {
        let block = |step: &Step| {
            let name = &self.layers[step.layer].name;
            name.rsplit_once('.').map_or("", |(block, _)| block)
        };
        let has_blocks = steps.iter().any(|step| !block(step).is_empty());
        let is_end = |at: &usize| {
            let (step, next) = (&steps[*at], &steps[at + 1]);
            step.layer == next.layer || !has_blocks || {
                let (of, of_next) = (block(step), block(next));
                of != of_next || of.is_empty()
            }
        };
        (0..steps.len().saturating_sub(1)).filter(is_end).collect()
    }

    /// For each layer whose weights others use, the steps that use them.
    fn uses_of_weights(&self, ends: &[usize]) -> Vec<Vec<usize>> {
        let mut uses: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, layer) in self.layers.iter().enumerate() {
            if let Some(owner) = layer.weights.map(Weights::owner) {
                let num = self.layers[owner].num_uses();
                let of_owner = uses.entry(owner);
                let of_owner = of_owner.or_insert_with(|| vec![ends[owner]; num]);
                of_owner.extend(vec![ends[at]; num]);
            }
        }
        uses.into_values().collect()
    }

    /// Values of one item that a step keeps.
    fn kept_by(&self, step: Step) -> u64 {
        self.layers[step.layer].activations_per_item / step.num_parts as u64
    }
}

impl Layer {
    /// How often it uses its inputs and weights, as far as gradients are summed: once, or several times.
    fn num_uses(&self) -> usize {
        let is_once = matches!(
            self.kind,
            LayerKind::Linear { .. }
                | LayerKind::Embedding { .. }
                | LayerKind::Conv(_)
                | LayerKind::ConvTranspose(_)
                | LayerKind::Pool(_)
                | LayerKind::AdaptiveAvgPool { .. }
                | LayerKind::Interpolate { .. }
                | LayerKind::Dropout { .. }
                | LayerKind::Activation(Activation::Relu | Activation::Tanh | Activation::Sigmoid)
                | LayerKind::Add
                | LayerKind::Multiply
                | LayerKind::Concat { .. }
                | LayerKind::Matmul
                | LayerKind::Flatten { .. }
                | LayerKind::Reshape { .. }
                | LayerKind::Permute { .. }
                | LayerKind::Unsqueeze { .. }
                | LayerKind::Squeeze { .. }
                | LayerKind::Slice { .. }
                | LayerKind::Identity
        );
        let is_plain = self.adapters.is_empty() && self.kind.parametrization().is_none();
        if is_once && is_plain { 1 } else { 2 }
    }

    /// The layers of a stack of transformers, which can be computed one by one.
    fn num_parts(&self) -> usize {
        match &self.kind {
            LayerKind::TransformerEncoder(stack) => stack.num_layers,
            // One without a memory attends to its first input in each layer.
            LayerKind::TransformerDecoder(stack) if self.values().len() > 1 => stack.num_layers,
            _ => 1,
        }
    }
}

impl Segments {
    /// Cut so that each segment keeps at most this much, if its blocks do.
    fn cut(self, each: &[u64], ends: &[usize], most: u64) -> Self {
        let (mut ranges, mut from) = (Vec::new(), 0);
        // The last place where the current segment can end.
        let mut end: Option<usize> = None;
        let places = ends.iter().map(|end| end + 1).chain([self.steps.len()]);
        for place in places {
            let kept: u64 = each[from..place].iter().sum();
            if let (true, Some(last)) = (kept > most, end) {
                ranges.push(from..last);
                from = last;
            }
            end = Some(place);
        }
        ranges.push(from..self.steps.len());
        Self { ranges, ..self }
    }

    /// The segment of a step; that of losses is the last one.
    pub fn segment_of(&self, step: usize) -> usize {
        let later = self.ranges.partition_point(|range| range.end <= step);
        later.min(self.ranges.len() - 1)
    }

    /// Whether a later segment uses the output of a step.
    pub fn is_crossing(&self, step: usize) -> bool {
        let own = self.segment_of(step);
        self.uses[step]
            .iter()
            .any(|user| self.segment_of(*user) > own)
    }

    /// Values of one item that cross cuts.
    pub fn crossing_values(&self, network: &Network) -> u64 {
        let crossing = (0..self.steps.len()).filter(|step| self.is_crossing(*step));
        let values = crossing.map(|step| values(&network.layers[self.steps[step].layer].shape));
        values.fold(0, u64::saturating_add)
    }

    /// Whether gradients of all outputs and weights are summed in the order without cuts: only the last segment that
    /// uses something may use it more than once.
    fn keeps_order(&self, weights: &[Vec<usize>]) -> bool {
        self.uses.iter().chain(weights).all(|uses| {
            let mut segments: Vec<usize> = uses.iter().map(|at| self.segment_of(*at)).collect();
            segments.sort_unstable();
            let last = segments.last().copied().unwrap_or(0);
            segments
                .windows(2)
                .all(|pair| pair[0] != pair[1] || pair[0] == last)
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::check::network::examples::network;

    fn ranges(layers: &str) -> Vec<(usize, usize)> {
        let segments = network(&[8], layers).segments();
        let ranges = segments.ranges.iter();
        ranges.map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn a_chain_is_cut_where_the_least_is_kept() {
        let pair = "{ type = 'linear', out_features = 8 }, { type = 'tanh' }";
        assert_eq!(ranges(pair), [(0, 2)]);
        let chain = [pair; 8].join(", ");
        assert_eq!(ranges(&chain), [(0, 4), (4, 8), (8, 12), (12, 16)]);
    }

    #[test]
    fn sums_of_gradients_keep_their_order() {
        // The second layer has three uses: no cut is between them.
        let wide = "{ type = 'linear', out_features = 8 }, { type = 'linear', name = 'a', out_features = 8 }, \
            { type = 'tanh', name = 't' }, { type = 'tanh', inputs = ['a'], name = 'b' }, \
            { type = 'add', inputs = ['a', 'b', 't'] }, { type = 'linear', out_features = 8 }";
        let segments = network(&[8], wide).segments_with(&[1]);
        let of_use = |at: usize| segments.segment_of(at);
        assert!(segments.ranges.len() > 1, "{segments:?}");
        assert!(of_use(2) != of_use(3) || of_use(2) == segments.ranges.len() - 1);
    }
}
