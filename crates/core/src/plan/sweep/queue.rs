//! The points of a search that are in the file, and tried first.

use super::draw::position_of;
use crate::diagnostic::{Diagnostic, Span, counted, nearest};
use crate::spec::search::SearchSpec;
use crate::spec::sweep::RandomAxisSpec;

/// The points, in order.
pub(super) struct Queue {
    pub(super) points: Vec<Queued>,
    /// What is wrong with their keys and values.
    pub(super) refusals: Vec<Diagnostic>,
}

/// A point.
pub(super) struct Queued {
    /// For each axis, the position of its value; none if it is sampled.
    pub(super) positions: Vec<Option<f64>>,
    /// The place of its first key.
    pub(super) span: Span,
}

impl Queue {
    /// The points of a search over these axes.
    pub(super) fn of<'a>(
        spec: &SearchSpec,
        axes: impl Iterator<Item = &'a RandomAxisSpec>,
    ) -> Self {
        let axes: Vec<&RandomAxisSpec> = axes.collect();
        let mut queue = Self {
            points: Vec::new(),
            refusals: Vec::new(),
        };
        for (at, entries) in spec.enqueue.iter().enumerate() {
            if entries.is_empty() {
                let message =
                    format!("`search.enqueue[{at}]` sets no axis, so it is no known point");
                let wrong = Diagnostic::error("contradiction", message).at(spec.span);
                queue.refusals.push(wrong.help(
                    "set values of axes in it, such as `optimizer.learning_rate = 1e-3`, or remove it",
                ));
            }
            let mut positions = vec![None; axes.len()];
            for (key, entry) in entries {
                let Some(at) = axes.iter().position(|axis| axis.key == *key) else {
                    let message = format!("`{key}` is not an axis of the search");
                    let wrong = Diagnostic::error("unknown-key", message).at(entry.key_span);
                    let near = nearest(key, axes.iter().map(|axis| axis.key.as_str()));
                    queue.refusals.push(match near {
                        Some(near) => wrong.help(format!("did you mean `{near}`?")),
                        None => wrong.help("add it to `[sweep.random.axes]`, or remove it"),
                    });
                    continue;
                };
                let value = &entry.node.value;
                positions[at] = position_of(&axes[at].distribution, &value.to_json());
                if positions[at].is_none() {
                    let message = format!("{} is not among the values of `{key}`", value.to_toml());
                    let wrong = Diagnostic::error("out-of-range", message).at(entry.node.span);
                    let wrong = wrong.related(axes[at].span, "its values");
                    let help = "use one of these values, or extend the axis";
                    queue.refusals.push(wrong.help(help));
                }
            }
            let is_sampled = |(position, axis): (&Option<f64>, &&RandomAxisSpec)| {
                position.is_none() && axis.when.is_none()
            };
            let is_whole = !positions.iter().zip(&axes).any(is_sampled);
            let first = queue
                .points
                .iter()
                .find(|known| known.positions == positions);
            if let (true, Some(first), Some((_, entry))) = (is_whole, first, entries.first()) {
                let message = "this point is enqueued twice, and would be trained once";
                let wrong = Diagnostic::error("repeated-value", message).at(entry.key_span);
                let wrong = wrong.related(first.span, "the same point");
                queue.refusals.push(wrong.help("remove one of them"));
            }
            queue.points.push(Queued {
                positions,
                span: entries
                    .first()
                    .map_or(spec.span, |(_, entry)| entry.key_span),
            });
        }
        if let Some(num) = spec.num_trials.filter(|num| *num < queue.points.len()) {
            let all = counted(queue.points.len(), "point");
            let message = format!("`search.num_trials` is {num}, and {all} are enqueued");
            let wrong = Diagnostic::error("contradiction", message).at(spec.span);
            queue.refusals.push(wrong.help(format!(
                "set `num_trials` to at least {}, or enqueue fewer points",
                queue.points.len()
            )));
        }
        queue
    }

    /// Positions with those that the point with this number sets.
    pub(super) fn placed(&self, number: usize, positions: &[f64]) -> Vec<f64> {
        let mut placed = positions.to_vec();
        let set = self.points.get(number).map(|point| &point.positions);
        for (position, set) in placed.iter_mut().zip(set.into_iter().flatten()) {
            *position = set.unwrap_or(*position);
        }
        placed
    }
}

#[cfg(test)]
mod tests {
    use super::super::search::tests::searched;
    use super::super::search::{Search, TrialResult};
    use crate::spec::document::Document;
    use crate::spec::search::SuggestedBy;

    const SPEC: &str = r#"
[search]
type = "tpe"
num_trials = 14

[[search.enqueue]]
optimizer.learning_rate = 0.01
optimizer.type = "sgd"

[[search.enqueue]]
optimizer.learning_rate = 0.25

[sweep]
exclude = ["optimizer.learning_rate > 0.5"]

[sweep.random.axes]
"optimizer.type" = { type = "choice", values = ["sgd", "adam"] }
"optimizer.learning_rate" = { type = "log_uniform", min = 1e-4, max = 1.0 }
"optimizer.momentum" = { type = "uniform", min = 0.0, max = 0.9, when = "optimizer.type == 'sgd'" }
"#;

    #[test]
    fn enqueued_points_come_first() {
        let all = searched(SPEC, |known| {
            TrialResult::of(known.values["optimizer.learning_rate"].as_f64().unwrap())
        });
        assert_eq!(all.len(), 14);
        let first = &all[0].values;
        assert_eq!(
            (&first["optimizer.learning_rate"], &first["optimizer.type"]),
            (&0.01.into(), &"sgd".into())
        );
        assert!(first["optimizer.momentum"].is_number(), "it is sampled");
        assert_eq!(all[1].values["optimizer.learning_rate"], 0.25);
        let from_file = all.iter().filter(|known| known.by == SuggestedBy::File);
        assert_eq!(from_file.count(), 2);
        assert!(
            all[2..10]
                .iter()
                .all(|known| known.by == SuggestedBy::Sample)
        );
        assert!(all[10..].iter().all(|known| known.by == SuggestedBy::Model));
    }

    #[test]
    fn points_that_cannot_be_tried_are_refused() {
        for (from, to, expected) in [
            (
                "learning_rate = 0.25",
                "learning_rate = 2",
                "2 is not among the values",
            ),
            (
                "learning_rate = 0.25",
                "learning_rat = 0.25",
                "is not an axis of the search",
            ),
            (
                "learning_rate = 0.25",
                "learning_rate = 0.7",
                "`sweep.exclude` excludes this point",
            ),
            ("num_trials = 14", "num_trials = 1", "2 points are enqueued"),
            (
                "type = \"sgd\"",
                "type = \"adam\"\noptimizer.momentum = 0.5",
                "the condition of `optimizer.momentum` is false",
            ),
            (
                "type = \"sgd\"",
                "type = 3",
                "3 is not among the values of `optimizer.type`",
            ),
        ] {
            let text = SPEC.replacen(from, to, 1);
            assert_ne!(text, SPEC);
            let document = Document::compose("spec.toml", &text, None).ok().unwrap();
            let refusals = Search::of(&document).unwrap().refusals();
            let messages: Vec<_> = refusals.into_iter().map(|wrong| wrong.message).collect();
            assert_eq!(messages.len(), 1, "{messages:?}");
            assert!(messages[0].contains(expected), "{messages:?}");
        }
    }
}
