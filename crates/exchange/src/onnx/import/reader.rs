//! Conversion of nodes to layers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

use runner_core::spec::model::layer::LayerKind;
use runner_core::spec::model::layer_spec::Source;

use super::attributes::{check, described, int, ints, module_name, operator};
use super::builder::{Builder, Built};
use super::constant::{Budget, Constant};
use super::fold;
use super::nodes::integer_inputs;
use super::refused::Read;
use super::view::{BATCH, View};
use crate::onnx::messages::{GraphProto, NodeProto};

/// The value of a name in a graph.
#[derive(Clone, Debug)]
pub enum Value {
    /// A constant, which does not depend on the inputs.
    Constant(Rc<Constant>),
    /// The output of a layer.
    Live(Live),
    /// Where the output of a layer is above a threshold.
    Above(Live, f64),
}

/// The output of a layer for a batch.
#[derive(Clone, Debug)]
pub struct Live {
    /// The layer.
    pub source: Source,
    /// Its axes.
    pub view: View,
}

/// An item's axes as those of a layer, in the order of a value's axes, with the inverse.
pub struct Front {
    /// A layer whose output has them.
    pub source: Source,
    /// For each axis of the value, its axis in an item; none if it is only the batch.
    pub places: Vec<Option<usize>>,
    /// For each axis, the position of the batch in it: before or after the rest.
    batch: Vec<Option<bool>>,
    /// The sizes of leading axes that are merged in the item.
    merged: Option<Vec<usize>>,
}

impl Front {
    /// Whether an axis contains the batch.
    pub fn is_batch(&self, axis: usize) -> bool {
        self.batch[axis].is_some()
    }
}

/// Reads the nodes of a graph in their order.
pub struct Reader<'a> {
    /// The layers so far.
    pub builder: Builder,
    values: BTreeMap<String, Value>,
    /// How many nodes use each value.
    uses: BTreeMap<String, usize>,
    /// Values of which nothing but softmax functions are computed.
    scores: BTreeSet<String>,
    /// The type of each value that is computed of integers, by ONNX's code.
    pub(super) integers: BTreeMap<String, i32>,
    /// The size of the batch; none if an item is a whole input.
    pub batch: Option<usize>,
    /// The version of the operators.
    pub opset: i64,
    folder: Option<&'a Path>,
    /// Whether the items are declared as integers.
    pub is_of_integers: bool,
    /// The remaining budget for folded constants.
    pub budget: Budget,
}

impl<'a> Reader<'a> {
    /// A reader with the values that are known before the first node.
    pub fn new(
        builder: Builder,
        values: BTreeMap<String, Value>,
        graph: &GraphProto,
        batch: Option<usize>,
        opset: i64,
        folder: Option<&'a Path>,
        is_of_integers: bool,
    ) -> Self {
        let mut uses: BTreeMap<String, usize> = BTreeMap::new();
        let names = graph.node.iter().flat_map(|node| &node.input);
        let outputs = graph
            .output
            .iter()
            .filter_map(|output| output.name.as_ref());
        for name in names.chain(outputs) {
            *uses.entry(name.clone()).or_default() += 1;
        }
        let scores = scores(graph, &uses);
        let mut integers = integer_inputs(graph);
        // Old files list their constants among the inputs.
        integers.retain(|name, _| !matches!(values.get(name), Some(Value::Constant(_))));
        let constants = values.values().map(|value| match value {
            Value::Constant(constant) => constant.len(),
            _ => 0,
        });
        let budget = Budget::of(constants.sum());
        Self {
            builder,
            values,
            uses,
            scores,
            integers,
            batch,
            opset,
            folder,
            is_of_integers,
            budget,
        }
    }

    /// Converts nodes to layers. Unsupported ones are returned with node, operator and reason.
    pub fn read(&mut self, nodes: &[&NodeProto]) -> Vec<String> {
        let mut refused: Vec<String> = Vec::new();
        for node in nodes {
            // Nodes that depend on a refused one are not reported.
            let is_known = |name: &String| name.is_empty() || self.values.contains_key(name);
            if !refused.is_empty() && !node.input.iter().all(is_known) {
                continue;
            }
            if let Err(reason) = self.node(node) {
                refused.push(format!("{}: {reason}", described(node)));
            }
        }
        refused
    }

    /// The network that gives a value.
    pub fn finish(mut self, output: &str) -> Read<Built> {
        let live = match self.values.get(output) {
            Some(Value::Live(live)) => live.clone(),
            Some(Value::Constant(_)) => {
                return Err(format!("its output `{output}` does not depend on its input").into());
            }
            Some(Value::Above(..)) => {
                return Err(format!("its output `{output}` is of booleans").into());
            }
            None => return Err(format!("no node computes its output `{output}`").into()),
        };
        let batch_first = live
            .view
            .axes()
            .first()
            .is_some_and(|axis| axis == &[BATCH]);
        if self.batch.is_some() && !batch_first {
            return Err(format!("the first axis of its output `{output}` is not the batch").into());
        }
        let front = self.front(&live, None)?;
        self.builder.finish(front.source)
    }

    fn node(&mut self, node: &NodeProto) -> Read {
        let domain = node.domain.as_deref().unwrap_or_default();
        if !domain.is_empty() && domain != "ai.onnx" {
            return Err(format!(
                "it is an operator of `{domain}`, but only ONNX's operators are supported"
            )
            .into());
        }
        check(node)?;
        let mut names = node.input.iter().filter(|name| !name.is_empty());
        if let Some(missing) = names.find(|name| !self.values.contains_key(*name)) {
            return Err(format!("no node before it computes its input `{missing}`").into());
        }
        if operator(node) == "Shape"
            && let Some(Value::Live(live)) =
                node.input.first().and_then(|name| self.values.get(name))
        {
            let shape = fold::shape_of(node, &live.view.shape());
            return self.put_constant(node, shape);
        }
        if let ("CastLike", Some(constant)) = (operator(node), self.constant(node, 0)) {
            let like = self.constant(node, 1).map(|like| fold::type_like(&like));
            let of_value = || {
                let kind = node.input.get(1).and_then(|name| self.integers.get(name));
                kind.map_or(1, |kind| i64::from(*kind))
            };
            let cast = fold::cast(&constant, like.unwrap_or_else(of_value));
            return self.put_constant(node, cast);
        }
        let inputs: Vec<Option<Rc<Constant>>> = (0..node.input.len())
            .map(|at| self.constant(node, at))
            .collect();
        let given = node.input.iter().zip(&inputs);
        let mut given = given.filter(|(name, _)| !name.is_empty());
        if given.all(|(_, constant)| constant.is_some()) {
            let inputs: Vec<Option<&Constant>> = inputs.iter().map(Option::as_deref).collect();
            if let ("Split", Some(value)) = (operator(node), inputs.first().copied().flatten()) {
                let sizes = self.list(node, "split", 1);
                let parts = fold::places::split(node, value, sizes.as_deref())?;
                for (name, part) in node.output.iter().zip(parts) {
                    self.values
                        .insert(name.clone(), Value::Constant(Rc::new(part)));
                }
                return Ok(());
            }
            let folded = fold::folded(node, &inputs, self.folder, &mut self.budget);
            return match folded {
                Some(constant) => constant.and_then(|constant| self.put_constant(node, constant)),
                None => Err(
                    "there is no layer for it, and it cannot be computed for constants either"
                        .into(),
                ),
            };
        }
        self.layer(node)
    }

    /// Makes a constant the first output of a node.
    pub fn put_constant(&mut self, node: &NodeProto, constant: Constant) -> Read {
        let name = node.output.first().ok_or("it has no output")?;
        let value = Value::Constant(Rc::new(constant));
        self.values.insert(name.clone(), value);
        Ok(())
    }

    /// Sets the first output of a node to the output of a layer.
    pub fn put(&mut self, node: &NodeProto, source: Source, view: View) -> Read {
        self.put_at(node, 0, source, view)
    }

    /// The same for any output.
    pub fn put_at(&mut self, node: &NodeProto, at: usize, source: Source, view: View) -> Read {
        let name = node.output.get(at).ok_or("it has no output")?;
        let live = Live { source, view };
        self.values.insert(name.clone(), Value::Live(live));
        Ok(())
    }

    /// Whether only the node that is read uses a layer, so that the layer's weights may be changed: no layer has it as
    /// an input, and no value of it, of which nodes that do nothing make several, is used twice.
    pub fn is_alone(&self, source: Source) -> bool {
        let once = |(name, value): (&String, &Value)| match value {
            Value::Live(live) | Value::Above(live, _) if live.source == source => {
                self.uses.get(name).is_none_or(|uses| *uses == 1)
            }
            _ => true,
        };
        !self.builder.is_input(source) && self.values.iter().all(once)
    }

    /// Whether nothing but a softmax is computed of a node's output: any number that is low enough masks there.
    pub fn is_of_scores(&self, node: &NodeProto) -> bool {
        let name = node.output.first();
        name.is_some_and(|name| self.scores.contains(name))
    }

    /// Adds a layer over the items of a value; its output becomes that of a node.
    pub fn put_layer(
        &mut self,
        node: &NodeProto,
        front: &Front,
        name: &str,
        kind: LayerKind,
    ) -> Read<Source> {
        self.put_layer_of(node, front, name, kind, &[front.source])
    }

    /// The same of a layer with several inputs; its output has the axes of a value.
    pub fn put_layer_of(
        &mut self,
        node: &NodeProto,
        front: &Front,
        name: &str,
        kind: LayerKind,
        sources: &[Source],
    ) -> Read<Source> {
        let source = self.builder.add(name, kind, sources)?;
        let view = self.back(front, source)?;
        self.put(node, source, view)?;
        Ok(source)
    }

    /// Whether an output has a name and is used.
    pub fn is_used(&self, node: &NodeProto, at: usize) -> bool {
        let name = node.output.get(at).filter(|name| !name.is_empty());
        name.is_some_and(|name| self.uses.contains_key(name))
    }

    /// An input that depends on those of the graph.
    pub fn live(&self, node: &NodeProto, at: usize) -> Read<Live> {
        match node.input.get(at).and_then(|name| self.values.get(name)) {
            Some(Value::Live(live)) => Ok(live.clone()),
            Some(Value::Constant(_)) => Err("its input is a constant".into()),
            Some(Value::Above(..)) => Err("its input is of booleans".into()),
            None => Err("it is missing an input".into()),
        }
    }

    /// An input that marks where a value is above a threshold.
    pub fn above(&self, node: &NodeProto, at: usize) -> Option<(Live, f64)> {
        match node.input.get(at).and_then(|name| self.values.get(name)) {
            Some(Value::Above(live, number)) => Some((live.clone(), *number)),
            _ => None,
        }
    }

    /// Sets the output of a node to where a value is above a threshold.
    pub fn put_above(&mut self, node: &NodeProto, live: Live, number: f64) -> Read {
        let name = node.output.first().ok_or("it has no output")?;
        self.values.insert(name.clone(), Value::Above(live, number));
        Ok(())
    }

    /// An input that is a constant.
    pub fn constant(&self, node: &NodeProto, at: usize) -> Option<Rc<Constant>> {
        match node.input.get(at).and_then(|name| self.values.get(name)) {
            Some(Value::Constant(constant)) => Some(Rc::clone(constant)),
            _ => None,
        }
    }

    /// Weights of a node.
    pub fn weight(&self, node: &NodeProto, at: usize) -> Read<Rc<Constant>> {
        let constant = self.constant(node, at);
        constant.ok_or_else(|| "its weights are computed from the inputs of the graph".into())
    }

    /// A list that is an attribute or, in later versions, an input.
    pub fn list(&self, node: &NodeProto, name: &str, at: usize) -> Option<Vec<i64>> {
        ints(node, name).or_else(|| Some(self.constant(node, at)?.integers().to_vec()))
    }

    /// A name for the layer of some weights.
    pub fn name_of(&self, node: &NodeProto, weight: usize, usual: &str) -> String {
        module_name(node, weight).unwrap_or_else(|| usual.to_owned())
    }

    /// The axes of a value as axes of an item, in their order. If there are more than an item can have, those before
    /// the last `trailing` are merged.
    pub fn front(&mut self, live: &Live, trailing: Option<usize>) -> Read<Front> {
        const MOST: usize = 4;
        let mut items: Vec<Vec<usize>> = Vec::new();
        let (mut places, mut batch) = (Vec::new(), Vec::new());
        for axis in live.view.axes() {
            let is_wide = |factor: &&usize| live.view.factor(**factor) != 1;
            let at = axis.iter().position(|factor| *factor == BATCH);
            batch.push(match at {
                None => None,
                Some(at) if axis[..at].iter().filter(is_wide).count() == 0 => Some(true),
                Some(at) if axis[at + 1..].iter().filter(is_wide).count() == 0 => Some(false),
                Some(_) => return Err("it mixes the batch with other axes".into()),
            });
            let own: Vec<usize> = axis
                .iter()
                .copied()
                .filter(|factor| *factor != BATCH)
                .collect();
            if at.is_some() && live.view.size(&own) == 1 {
                places.push(None);
            } else {
                places.push(Some(items.len()));
                items.push(own);
            }
        }
        let mut merged = None;
        if let Some(trailing) = trailing
            && items.len() > MOST
            && trailing < MOST
        {
            let last = items.split_off(items.len() - trailing);
            merged = Some(items.iter().map(|axis| live.view.size(axis)).collect());
            items = vec![items.concat()];
            items.extend(last);
        }
        let source = self.arranged(live, &items)?;
        Ok(Front {
            source,
            places,
            batch,
            merged,
        })
    }

    /// Converts the axes of a layer's output back to those of the value; an item has as many axes as before.
    pub fn back(&self, front: &Front, source: Source) -> Read<View> {
        let dims = self.builder.dims(source).to_vec();
        let mut factors = vec![self.batch.unwrap_or(1)];
        match &front.merged {
            Some(merged) => factors.extend(merged.iter().chain(&dims[1..])),
            None => factors.extend(&dims),
        }
        let num = front.places.iter().flatten().count();
        // An item without axes is one number.
        if factors.len() != num + 1 && !(num == 0 && dims == [1]) {
            return Err("its layer changes the number of axes".into());
        }
        let axes = front.places.iter().zip(&front.batch).map(|(place, batch)| {
            let own = place.map(|place| place + 1);
            match batch {
                None => own.into_iter().collect(),
                Some(true) => [BATCH].into_iter().chain(own).collect(),
                Some(false) => own.into_iter().chain([BATCH]).collect::<Vec<usize>>(),
            }
        });
        Ok(View::of(factors, axes.collect()))
    }

    /// The same without an axis that the layer removed.
    pub fn back_without(&self, mut front: Front, axis: usize, source: Source) -> Read<View> {
        let place = front.places.remove(axis).ok_or("it removes the batch")?;
        front.batch.remove(axis);
        for other in front.places.iter_mut().flatten() {
            *other -= usize::from(*other > place);
        }
        self.back(&front, source)
    }

    /// The items of images: the batch first, and the channels next.
    pub fn images(&mut self, live: &Live) -> Read<Front> {
        let front = self.front(live, None)?;
        let is_first =
            front.places.first() == Some(&None) && front.places[1..].iter().all(Option::is_some);
        if is_first {
            Ok(front)
        } else {
            Err("the first axis of its input is not the batch".into())
        }
    }

    /// A layer whose output has these axes, each consisting of factors of a value's layer.
    fn arranged(&mut self, live: &Live, items: &[Vec<usize>]) -> Read<Source> {
        if self.builder.is_tokens(live.source) {
            return Ok(live.source);
        }
        let plan = live.view.arrangement(items);
        let mut source = live.source;
        let shape = if plan.shape.is_empty() {
            vec![1]
        } else {
            plan.shape
        };
        let is_moved = plan.order.windows(2).any(|pair| pair[0] > pair[1]);
        if is_moved {
            if let Some(shuffled) = self.shuffled(source, &plan.split, &plan.order, &shape)? {
                return Ok(shuffled);
            }
            source = self.reshaped(source, &plan.split)?;
            let axes = plan.order.iter().map(|at| *at as i64).collect();
            source = self.builder.plain(LayerKind::Permute { axes }, &[source])?;
        }
        self.reshaped(source, &shape)
    }

    /// An item in a different shape, by the most specific layer.
    pub fn reshaped(&mut self, source: Source, shape: &[usize]) -> Read<Source> {
        let dims = self.builder.dims(source).to_vec();
        if dims == shape {
            return Ok(source);
        }
        let kind = if shape.len() == 1 {
            LayerKind::Flatten {
                start_axis: 0,
                end_axis: -1,
            }
        } else {
            LayerKind::Reshape {
                shape: shape.iter().map(|size| *size as i64).collect(),
            }
        };
        // Consecutive reshapes are merged.
        let inner = match self.builder.layer(source) {
            Some((LayerKind::Reshape { .. }, [inner])) => *inner,
            _ => source,
        };
        if self.builder.dims(inner) == shape {
            return Ok(inner);
        }
        self.builder.plain(kind, &[inner])
    }

    /// A pixel shuffle or unshuffle as one layer: factors [c, r, r, h, w] in the order [c, h, r, w, r], or those in the
    /// order [c, r, r, h, w].
    fn shuffled(
        &mut self,
        source: Source,
        split: &[usize],
        order: &[usize],
        shape: &[usize],
    ) -> Read<Option<Source>> {
        let [channels, height, width] = *shape else {
            return Ok(None);
        };
        let shuffle = match (split, order) {
            ([_, r, s, h, w], [0, 3, 1, 4, 2]) => Some((r, s, h, w)),
            ([r, s, h, w], [2, 0, 3, 1]) => Some((r, s, h, w)),
            _ => None,
        };
        if let Some((r, s, h, w)) = shuffle
            && r == s
            && [height, width] == [h * r, w * r]
        {
            let source = self.reshaped(source, &[channels * r * r, *h, *w])?;
            let kind = LayerKind::PixelShuffle { factor: *r };
            return self.builder.plain(kind, &[source]).map(Some);
        }
        let unshuffle = match (split, order) {
            ([_, h, r, w, s], [0, 2, 4, 1, 3]) => Some((r, s, h, w)),
            ([h, r, w, s], [1, 3, 0, 2]) => Some((r, s, h, w)),
            _ => None,
        };
        if let Some((r, s, h, w)) = unshuffle
            && r == s
            && [height, width] == [*h, *w]
        {
            let source = self.reshaped(source, &[channels / (r * r), h * r, w * r])?;
            let kind = LayerKind::PixelUnshuffle { factor: *r };
            return self.builder.plain(kind, &[source]).map(Some);
        }
        Ok(None)
    }

    /// An axis that an attribute names.
    pub fn axis(&self, node: &NodeProto, usual: i64, rank: usize) -> Read<usize> {
        super::attributes::axis(int(node, "axis").unwrap_or(usual), rank)
    }
}

/// The values of a graph of which nothing but softmax functions are computed, directly or of the same numbers in another
/// shape or type. `uses` is how often each value is used.
fn scores(graph: &GraphProto, uses: &BTreeMap<String, usize>) -> BTreeSet<String> {
    const SAME: [&str; 7] = [
        "Cast",
        "Identity",
        "Reshape",
        "Transpose",
        "Flatten",
        "Squeeze",
        "Unsqueeze",
    ];
    let mut found = BTreeSet::new();
    let mut softened: BTreeMap<&str, usize> = BTreeMap::new();
    // Each node stands after those that it uses.
    for node in graph.node.iter().rev() {
        let is_score = |name: &String| softened.get(name.as_str()) == uses.get(name);
        if let Some(name) = node.output.first().filter(|name| is_score(name)) {
            found.insert(name.clone());
        }
        let op = operator(node);
        let is_soft = op == "Softmax"
            || SAME.contains(&op) && node.output.first().is_some_and(|name| found.contains(name));
        if let Some(name) = node.input.first().filter(|_| is_soft) {
            *softened.entry(name.as_str()).or_default() += 1;
        }
    }
    found
}
