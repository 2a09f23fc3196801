//! Evaluates conditions over all points of a sweep: each once per combination of the values that it reads, detecting
//! conditions without effect.

use std::collections::BTreeMap;

use super::Sweep;
use super::condition::View;
use crate::diagnostic::{Diagnostic, Diagnostics};

/// Evaluates conditions, each once per combination of the values that it reads.
pub struct Judge<'a> {
    sweep: &'a Sweep,
    verdicts: Vec<Verdicts>,
}

/// The results of one condition.
#[derive(Clone, Default)]
struct Verdicts {
    known: BTreeMap<Vec<Option<u32>>, bool>,
    num_true: usize,
    num_false: usize,
    wrong: Option<Box<Diagnostic>>,
}

impl<'a> Judge<'a> {
    /// Nothing is evaluated yet.
    pub fn new(sweep: &'a Sweep) -> Self {
        Self {
            sweep,
            verdicts: vec![Verdicts::default(); sweep.conditions.len()],
        }
    }

    /// Whether a condition, by index, is true at a point.
    pub fn holds(&mut self, rule: usize, set: &[Option<u32>]) -> bool {
        let condition = &self.sweep.conditions[rule];
        let verdicts = &mut self.verdicts[rule];
        let axes = &self.sweep.axes;
        let value = |at: &usize| {
            let setting = axes[*at].settings[set[*at]? as usize].as_ref();
            setting.map(|setting| setting.id)
        };
        let looked_at: Vec<_> = condition.axes.iter().map(value).collect();
        let holds = match verdicts.known.get(&looked_at) {
            Some(holds) => *holds,
            None => {
                let view = View {
                    base: &self.sweep.base,
                    axes,
                    set,
                };
                let holds = condition.holds(&view).unwrap_or_else(|wrong| {
                    let id = self.sweep.id(set);
                    let note = format!("first found at the point `{id}`");
                    verdicts.wrong.get_or_insert(Box::new(wrong.note(note)));
                    false
                });
                verdicts.known.insert(looked_at, holds);
                holds
            }
        };
        if holds {
            verdicts.num_true += 1
        } else {
            verdicts.num_false += 1
        }
        holds
    }

    /// Reports conditions that are invalid or have no effect; returns whether the sweep can be used.
    pub fn report(self, diagnostics: &mut Diagnostics) -> bool {
        let mut is_right = true;
        let mut excluded_all = None;
        for (at, verdicts) in self.verdicts.into_iter().enumerate() {
            let text = &self.sweep.conditions[at].text;
            let is_exclude = self.sweep.excludes.contains(&at);
            if let Some(wrong) = verdicts.wrong {
                diagnostics.push(*wrong);
                is_right = false;
                continue;
            }
            let warn = |message: String| Diagnostic::warning("sweep", message).at(text.span);
            match (is_exclude, verdicts.num_true, verdicts.num_false) {
                (true, 0, _) => diagnostics.push(
                    warn("this condition is false for every point, and excludes nothing".into())
                        .help("correct it, or remove it"),
                ),
                (false, 0, _) => diagnostics.push(
                    warn(
                        "this condition is false for every point, so the axis is never set".into(),
                    )
                    .help("correct it, or remove the axis"),
                ),
                (false, _, 0) => diagnostics.push(
                    warn("this condition is true for every point".into())
                        .help("remove it, or correct it"),
                ),
                (true, _, 0) => excluded_all = Some(text),
                _ => {}
            }
        }
        if let Some(text) = excluded_all {
            is_right = false;
            let message = "this condition is true for every point, which leaves no trial";
            let diagnostic = Diagnostic::error("sweep", message).at(text.span);
            diagnostics.push(diagnostic.help("correct it, or remove it"));
        }
        is_right
    }
}
