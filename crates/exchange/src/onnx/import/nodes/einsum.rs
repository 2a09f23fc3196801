//! Sums of products that are written as an equation of axes.

use runner_core::spec::model::layer::{LayerKind, Reduction};

use crate::onnx::import::attributes::text;
use crate::onnx::import::constant::Constant;
use crate::onnx::import::reader::{Live, Reader};
use crate::onnx::import::refused::Read;
use crate::onnx::messages::NodeProto;

/// A factor of an equation, with a letter for each of its axes.
struct Term {
    letters: Vec<char>,
    value: Factor,
}

enum Factor {
    Constant(Constant),
    Live(Live),
}

impl Term {
    fn sizes(&self) -> Vec<usize> {
        match &self.value {
            Factor::Constant(constant) => constant.shape.clone(),
            Factor::Live(live) => live.view.shape(),
        }
    }

    fn size(&self, letter: char) -> usize {
        let at = self.letters.iter().position(|own| *own == letter);
        at.map_or(1, |at| self.sizes()[at])
    }

    fn permuted(mut self, letters: &[char]) -> Self {
        let place = |letter: &char| self.letters.iter().position(|own| own == letter);
        let order: Vec<usize> = letters.iter().filter_map(place).collect();
        match &mut self.value {
            Factor::Constant(constant) => *constant = constant.permuted(&order),
            Factor::Live(live) => live.view = live.view.permuted(&order),
        }
        self.letters = letters.to_vec();
        self
    }
}

/// The letters of each factor, and of the result; dots stand for capital letters that are not used otherwise.
fn equation(text: &str, ranks: &[usize]) -> Read<(Vec<Vec<char>>, Vec<char>)> {
    let wrong = || format!("its equation is `{text}`");
    let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = match plain.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (plain.as_str(), None),
    };
    let terms: Vec<&str> = left.split(',').collect();
    if terms.len() != ranks.len() {
        return Err(wrong().into());
    }
    // Axes behind dots are counted from the last one.
    let dots: Vec<char> = ('\u{e000}'..'\u{e040}').collect();
    let expand = |term: &str, num: usize| -> Option<Vec<char>> {
        let letters = match term.split_once("...") {
            Some((before, after)) => {
                let own = dots.get(..num)?.iter().rev();
                before
                    .chars()
                    .chain(own.copied())
                    .chain(after.chars())
                    .collect()
            }
            None => term.chars().collect::<Vec<_>>(),
        };
        let is_letter = |c: &char| c.is_ascii_alphabetic() || dots.contains(c);
        letters.iter().all(is_letter).then_some(letters)
    };
    let mut most = 0;
    let mut all = Vec::new();
    for (term, rank) in terms.iter().zip(ranks) {
        let named = term.replace("...", "").chars().count();
        let num = rank.checked_sub(named).ok_or_else(wrong)?;
        most = most.max(if term.contains("...") { num } else { 0 });
        let letters = expand(term, num).filter(|letters| letters.len() == *rank);
        all.push(letters.ok_or_else(wrong)?);
    }
    let result = match right {
        Some(right) => expand(right, most).ok_or_else(wrong)?,
        None => {
            let letters = all.concat();
            let num = |letter: &char| letters.iter().filter(|own| *own == letter).count();
            let mut once: Vec<char> = letters.iter().filter(|it| num(it) == 1).copied().collect();
            once.sort_unstable();
            once
        }
    };
    let is_once =
        |letters: &Vec<char>| (1..letters.len()).all(|at| !letters[..at].contains(&letters[at]));
    if !all.iter().all(is_once) || !is_once(&result) {
        return Err(format!("{}, with an axis that is named twice", wrong()).into());
    }
    Ok((all, result))
}

impl Reader<'_> {
    pub(super) fn einsum(&mut self, node: &NodeProto) -> Read {
        let text = text(node, "equation").ok_or("it has no equation")?;
        let mut terms = Vec::new();
        for at in 0..node.input.len() {
            terms.push(match self.constant(node, at) {
                Some(constant) => Factor::Constant(constant.as_ref().clone()),
                None => Factor::Live(self.live(node, at)?),
            });
        }
        let mut terms: Vec<Term> = terms
            .into_iter()
            .map(|value| Term {
                letters: Vec::new(),
                value,
            })
            .collect();
        let ranks: Vec<usize> = terms.iter().map(|term| term.sizes().len()).collect();
        let (letters, result) = equation(&text, &ranks)?;
        for (term, letters) in terms.iter_mut().zip(letters) {
            term.letters = letters;
        }
        let mut rest = terms.into_iter();
        let mut product = rest.next().ok_or("it has no inputs")?;
        let rest: Vec<Term> = rest.collect();
        let mut later: Vec<Vec<char>> = (0..rest.len())
            .map(|at| {
                rest[at + 1..]
                    .iter()
                    .flat_map(|term| term.letters.clone())
                    .collect()
            })
            .collect();
        for (term, later) in rest.into_iter().zip(&mut later) {
            later.extend(&result);
            product = self.multiplied(product, term, later)?;
        }
        let product = self.summed(product, &result)?;
        if !result.iter().all(|letter| product.letters.contains(letter)) {
            return Err(format!("its equation is `{text}`").into());
        }
        match product.permuted(&result).value {
            Factor::Live(live) => self.put(node, live.source, live.view),
            Factor::Constant(constant) => self.put_constant(node, constant),
        }
    }

    /// Without the axes that nothing needs any more.
    fn summed(&mut self, mut term: Term, needed: &[char]) -> Read<Term> {
        while let Some(at) = term.letters.iter().position(|own| !needed.contains(own)) {
            let Factor::Live(live) = &term.value else {
                return Err("it sums up a constant".into());
            };
            let live = self.reduced(live, at, Reduction::Sum)?;
            term.value = Factor::Live(live);
            term.letters.remove(at);
        }
        Ok(term)
    }

    /// The products of two factors, summed over the axes that both have and nothing needs any more.
    fn multiplied(&mut self, a: Term, b: Term, needed: &[char]) -> Read<Term> {
        let (a, b) = match (&a.value, &b.value) {
            (Factor::Constant(_), Factor::Constant(_)) => {
                return Err("two of its inputs are constants".into());
            }
            (Factor::Constant(_), _) => (b, a),
            _ => (a, b),
        };
        let own = |term: &Term, other: &Term| -> Vec<char> {
            let letters = term.letters.iter().copied();
            letters
                .filter(|letter| needed.contains(letter) || other.letters.contains(letter))
                .collect()
        };
        let (of_a, of_b) = (own(&a, &b), own(&b, &a));
        let (a, b) = (self.summed(a, &of_a)?, self.summed(b, &of_b)?);
        let is_shared = |letter: &&char| b.letters.contains(letter);
        let both: Vec<char> = a.letters.iter().filter(is_shared).copied().collect();
        let (kept, gone): (Vec<char>, Vec<char>) =
            both.iter().partition(|letter| needed.contains(letter));
        let alone = |term: &Term| -> Vec<char> {
            let letters = term.letters.iter().copied();
            letters.filter(|letter| !both.contains(letter)).collect()
        };
        let (rows, columns) = (alone(&a), alone(&b));
        let size = |term: &Term, letters: &[char]| -> Vec<usize> {
            letters.iter().map(|letter| term.size(*letter)).collect()
        };
        let outer: Vec<usize> = size(&a, &kept);
        if both.iter().any(|letter| a.size(*letter) != b.size(*letter)) {
            return Err("its axes have different sizes".into());
        }
        let (of_rows, of_columns) = (size(&a, &rows), size(&b, &columns));
        let num = |sizes: &[usize]| sizes.iter().product::<usize>();
        let (depth, width) = (num(&size(&a, &gone)), num(&of_columns));
        let letters = [kept.clone(), rows.clone(), columns.clone()].concat();
        let sizes = [outer.clone(), of_rows.clone(), of_columns].concat();
        let a = a.permuted(&[kept.clone(), rows, gone.clone()].concat());
        let Factor::Live(a) = a.value else {
            return Err("it has no inputs that depend on those of the graph".into());
        };
        let value = match b.value {
            // Constant matrices without an axis of their own for each row are a linear layer.
            Factor::Constant(_) if kept.is_empty() => {
                let b = b.permuted(&[columns, gone].concat());
                let Factor::Constant(b) = b.value else {
                    return Err("it has no inputs".into());
                };
                let a = self.cut_through(&a, &[of_rows, vec![depth]].concat())?;
                let matrix = b.reshaped(vec![width, depth])?;
                let (source, view) = self.linear("einsum", &a, &matrix, 1.0, None)?;
                Live { source, view }
            }
            value => {
                let height = num(&of_rows);
                let a = self.cut_through(&a, &[outer.clone(), vec![height, depth]].concat())?;
                let b = Term {
                    letters: b.letters,
                    value,
                };
                let b = b.permuted(&[kept, gone, columns].concat());
                let whole = [outer, vec![depth, width]].concat();
                let (source, view) = match b.value {
                    Factor::Live(b) => {
                        let b = self.cut_through(&b, &whole)?;
                        self.product(&a, &b)?
                    }
                    Factor::Constant(b) => {
                        let front = self.front(&a, None)?;
                        let matrices = self.parameter(&b.reshaped(whole)?, &front, "matrices")?;
                        let inputs = [front.source, matrices];
                        let source = self.builder.plain(LayerKind::Matmul, &inputs)?;
                        let view = self.back(&front, source)?;
                        (source, view)
                    }
                };
                Live { source, view }
            }
        };
        let value = Factor::Live(self.cut_through(&value, &sizes)?);
        Ok(Term { letters, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_are_read_with_dots_and_without_a_result() {
        let letters = |text: &str, ranks: &[usize]| -> Read<_> {
            let (terms, result) = equation(text, ranks)?;
            Ok((terms.len(), terms.concat().len(), result.len()))
        };
        assert_eq!(letters("bij, bjk -> bik", &[3, 3]), Ok((2, 6, 3)));
        assert_eq!(letters("...ij,...jk->...ik", &[4, 3]), Ok((2, 7, 4)));
        assert_eq!(letters("ij,jk", &[2, 2]), Ok((2, 4, 2)));
        for (wrong, ranks) in [
            ("ij,jk->ik", &[2][..]),
            ("ii->i", &[2]),
            ("ij->i1", &[2]),
            ("ijk->i", &[2]),
        ] {
            assert!(letters(wrong, ranks).is_err(), "{wrong}");
        }
    }
}
