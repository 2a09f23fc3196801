//! The positions at which tokens are predicted.

use super::{Served, Values};
use crate::data::TargetValues;
use crate::spec::task::TaskKind;

impl Served {
    /// Of networks that predict a token, the position of each item that it is predicted at: that of its first hidden token,
    /// and otherwise the last one that is not padding. Both are known from targets, or from the `mask` and `padding` tokens.
    /// `None` if it is the last one of all items, or the task is another.
    pub fn decisive(
        &self,
        task: TaskKind,
        mask: Option<i32>,
        padding: Option<u32>,
    ) -> Option<Vec<usize>> {
        let is_next = task == TaskKind::NextToken;
        if !is_next && task != TaskKind::MaskedToken {
            return None;
        }
        let each =
            |of: &[i32], is_it: &dyn Fn(i32) -> bool| positions(is_next, of, self.num_items, is_it);
        match (&self.targets, &self.values) {
            (TargetValues::Classes(targets), _) if !targets.is_empty() => {
                Some(decisive_of(task, targets, self.num_items))
            }
            (_, Values::Tokens(tokens)) if is_next => {
                let padding = padding?;
                Some(each(tokens, &|token| token as u32 != padding))
            }
            (_, Values::Tokens(tokens)) => Some(each(tokens, &|token| Some(token) == mask)),
            _ if is_next => None,
            _ => Some(vec![0; self.num_items]),
        }
    }
}

/// [`Served::decisive`] of targets, \[items, positions\], of which those below 0 are left out.
pub fn decisive_of(task: TaskKind, targets: &[i32], num_items: usize) -> Vec<usize> {
    let is_next = task == TaskKind::NextToken;
    positions(is_next, targets, num_items, &|target| target >= 0)
}

/// The first or the last position of each item that is so, or else 0.
fn positions(
    is_last: bool,
    of: &[i32],
    num_items: usize,
    is_it: &dyn Fn(i32) -> bool,
) -> Vec<usize> {
    let items = of.chunks_exact((of.len() / num_items.max(1)).max(1));
    let found = items.map(|item| {
        let mut tokens = item.iter();
        let found = if is_last {
            tokens.rposition(|token| is_it(*token))
        } else {
            tokens.position(|token| is_it(*token))
        };
        found.unwrap_or_default()
    });
    found.collect()
}
