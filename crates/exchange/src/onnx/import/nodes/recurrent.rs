//! Recurrent networks.

use runner_core::spec::model::layer::{Cell, LayerKind, Recurrent, Steps};

use crate::onnx::import::attributes::{flag, int, operator, text};
use crate::onnx::import::constant::Constant;
use crate::onnx::import::reader::{Live, Reader};
use crate::onnx::import::refused::Read;
use crate::onnx::import::view::{BATCH, View};
use crate::onnx::messages::NodeProto;

/// PyTorch's names of the tensors of both directions: weights and biases of the input and of the state.
pub const RECURRENT_PATHS: [[&str; 4]; 2] = [
    ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"],
    [
        "weight_ih_l0_reverse",
        "weight_hh_l0_reverse",
        "bias_ih_l0_reverse",
        "bias_hh_l0_reverse",
    ],
];

/// The cell of an operator, and the positions of PyTorch's gates among ONNX's.
pub fn gates(operator: &str) -> (Cell, &'static [usize]) {
    match operator {
        "LSTM" => (Cell::Lstm, &[0, 2, 3, 1]),
        "GRU" => (Cell::Gru, &[1, 0, 2]),
        _ => (Cell::Rnn, &[0]),
    }
}

/// The rows of all gates of a direction in PyTorch's order, starting at a row of the constant.
pub fn stacked(
    constant: &Constant,
    order: &[usize],
    [direction, directions]: [usize; 2],
    [hidden, columns, first]: [usize; 3],
) -> Vec<f32> {
    let values = constant.floats();
    let start = direction * values.len() / directions + first * columns;
    let gate = |gate: &usize| {
        let start = start + gate * hidden * columns;
        values[start..start + hidden * columns].to_vec()
    };
    order.iter().flat_map(gate).collect()
}

impl Reader<'_> {
    pub(super) fn recurrent(&mut self, node: &NodeProto) -> Read {
        let (cell, order) = gates(operator(node));
        let directions = self.refuse_settings(node, cell)?;
        let mut live = self.live(node, 0)?;
        if live.view.rank() != 3 {
            return Err("its input is not a batch of sequences".into());
        }
        let is_batch_first = flag(node, "layout");
        if is_batch_first {
            live.view = live.view.permuted(&[1, 0, 2]);
        }
        if live.view.axes()[1] != [BATCH] {
            return Err("its batch is not axis 0 of the graph's input: export the module with `batch_first=True`".into());
        }
        let hidden = usize::try_from(int(node, "hidden_size").unwrap_or(0)).unwrap_or(0);
        let [length, _, width] = live.view.shape()[..] else {
            return Err("its input is not a batch of sequences".into());
        };
        let (w, r) = (self.weight(node, 1)?, self.weight(node, 2)?);
        let rows = order.len() * hidden;
        if hidden == 0
            || w.shape != [directions, rows, width]
            || r.shape != [directions, rows, hidden]
        {
            return Err(format!(
                "its weights of shapes {:?} and {:?} do not match",
                w.shape, r.shape
            )
            .into());
        }
        let bias = self.constant(node, 3);
        if bias
            .as_ref()
            .is_some_and(|bias| bias.shape != [directions, 2 * rows])
        {
            return Err("its biases do not match".into());
        }
        let is_last = !self.is_used(node, 0);
        let kind = LayerKind::Recurrent(Recurrent {
            cell,
            hidden_size: hidden,
            bidirectional: directions == 2,
            output: if is_last {
                Steps::Last
            } else {
                Steps::Sequence
            },
            bias: bias.is_some(),
            initializer: None,
        });
        let front = self.front(&live, None)?;
        let name = self.name_of(node, usize::MAX, &kind.type_name());
        let source = self.builder.add(&name, kind, &[front.source])?;
        for (direction, paths) in RECURRENT_PATHS.iter().enumerate().take(directions) {
            let part = |constant: &Constant, columns: usize, first: usize| {
                stacked(
                    constant,
                    order,
                    [direction, directions],
                    [hidden, columns, first],
                )
            };
            self.builder
                .give(source, paths[0], vec![rows, width], part(&w, width, 0));
            self.builder
                .give(source, paths[1], vec![rows, hidden], part(&r, hidden, 0));
            if let Some(bias) = &bias {
                self.builder
                    .give(source, paths[2], vec![rows], part(bias, 1, 0));
                self.builder
                    .give(source, paths[3], vec![rows], part(bias, 1, rows));
            }
        }
        self.states(node, source, [length, directions, hidden], is_batch_first)
    }

    /// Settings that differ from the standard recurrent layer.
    fn refuse_settings(&self, node: &NodeProto, cell: Cell) -> Read<usize> {
        let directions = match text(node, "direction").as_deref() {
            None | Some("forward") => 1,
            Some("bidirectional") => 2,
            Some(other) => return Err(format!("its direction is `{other}`").into()),
        };
        let has = |name: &str| {
            node.attribute
                .iter()
                .any(|attribute| attribute.name.as_deref() == Some(name))
        };
        if has("clip") || flag(node, "input_forget") {
            return Err("it clips its gates, or couples them".into());
        }
        let usual: &[&str] = match cell {
            Cell::Lstm => &["sigmoid", "tanh", "tanh"],
            Cell::Gru => &["sigmoid", "tanh"],
            Cell::Rnn => &["tanh"],
        };
        let functions = node
            .attribute
            .iter()
            .find(|attribute| attribute.name.as_deref() == Some("activations"));
        let mut functions = functions
            .into_iter()
            .flat_map(|functions| &functions.strings)
            .enumerate();
        if functions.any(|(at, name)| {
            !String::from_utf8_lossy(name).eq_ignore_ascii_case(usual[at % usual.len()])
        }) {
            return Err("its activation functions are not the usual ones".into());
        }
        if cell == Cell::Gru && !flag(node, "linear_before_reset") {
            return Err(
                "it applies the reset gate before the product (`linear_before_reset` is 0)".into(),
            );
        }
        for (at, what) in [
            (4, "lengths"),
            (5, "initial state"),
            (6, "initial cell"),
            (7, "peepholes"),
        ] {
            if node.input.get(at).is_none_or(String::is_empty) {
                continue;
            }
            let is_zero = self.constant(node, at).and_then(|state| state.single()) == Some(0.0);
            if !is_zero || at == 4 {
                return Err(format!("its {what} cannot be set").into());
            }
        }
        Ok(directions)
    }

    /// The outputs of all steps, and of the last one.
    fn states(
        &mut self,
        node: &NodeProto,
        source: runner_core::spec::model::layer_spec::Source,
        [length, directions, hidden]: [usize; 3],
        is_batch_first: bool,
    ) -> Read {
        let batch = self.batch.unwrap_or(1);
        if self.is_used(node, 2) {
            return Err("its last cell state is used".into());
        }
        let last_order = if is_batch_first { [1, 0, 2] } else { [0, 1, 2] };
        if !self.is_used(node, 0) {
            let view = View::of(
                vec![batch, directions, hidden],
                vec![vec![1], vec![BATCH], vec![2]],
            );
            return self.put_at(node, 1, source, view.permuted(&last_order));
        }
        let view = View::of(
            vec![batch, length, directions, hidden],
            vec![vec![1], vec![2], vec![BATCH], vec![3]],
        );
        let is_last_used = self.is_used(node, 1);
        let all = if is_batch_first {
            view.permuted(&[2, 0, 1, 3])
        } else {
            view.clone()
        };
        self.put_at(node, 0, source, all)?;
        if !is_last_used {
            return Ok(());
        }
        if directions == 2 {
            return Err(
                "both all of its steps and its last one are used, in two directions".into(),
            );
        }
        let live = Live { source, view };
        let mut last = self.cut(&live, 0, length - 1, length)?;
        last.view = last
            .view
            .squeezed(0)
            .ok_or("its last step does not exist")?;
        self.put_at(node, 1, last.source, last.view.permuted(&last_order))
    }
}
