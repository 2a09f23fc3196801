//! Products of tensors that are summed over axes, as products of matrices.

use crate::tensor::{DynTensor, map_rank};
use runner_core::check::network::einsum::Equation;
use runner_core::spec::backend::Arithmetic;

/// A tensor with a letter for each axis after the batch.
struct Lettered {
    tensor: DynTensor,
    letters: Vec<char>,
}

impl Lettered {
    /// Sums over the axes of all letters that are not kept.
    fn summed(mut self, is_kept: impl Fn(&char) -> bool) -> Self {
        while let Some(at) = self.letters.iter().position(|letter| !is_kept(letter)) {
            self.letters.remove(at);
            let mut dims = self.tensor.dims();
            dims.remove(1 + at);
            let sum = map_rank!(self.tensor, t => t.sum_dim(1 + at));
            self.tensor = sum.reshape(&dims);
        }
        self
    }

    /// The tensor with its axes in the order of these letters.
    fn ordered(self, letters: &[char]) -> DynTensor {
        let place = |letter| self.letters.iter().position(|own| own == letter);
        let axes = letters.iter().filter_map(place).map(|at| 1 + at as isize);
        let axes: Vec<isize> = [0].into_iter().chain(axes).collect();
        self.tensor.permute(&axes)
    }

    fn size(&self, letter: &char) -> Option<usize> {
        let at = self.letters.iter().position(|own| own == letter)?;
        Some(self.tensor.dims()[1 + at])
    }
}

/// The output of an equation, which the planner has checked.
pub fn summed(equation: &str, inputs: Vec<DynTensor>, arithmetic: Arithmetic) -> DynTensor {
    let equation = Equation::parse(equation).expect("a planned equation");
    let output = &equation.output;
    let operands = inputs.into_iter().zip(&equation.operands);
    let mut operands = operands.map(|(tensor, letters)| Lettered {
        tensor,
        letters: letters.clone(),
    });
    let first = operands.next().expect("a planned input");
    let Some(second) = operands.next() else {
        return first
            .summed(|letter| output.contains(letter))
            .ordered(output);
    };
    let [all_a, all_b] = [&first.letters, &second.letters].map(Clone::clone);
    let a = first.summed(|letter| output.contains(letter) || all_b.contains(letter));
    let b = second.summed(|letter| output.contains(letter) || all_a.contains(letter));
    let of = |choice: &dyn Fn(bool, bool, bool) -> bool| -> Vec<char> {
        let all = a
            .letters
            .iter()
            .chain(b.letters.iter().filter(|c| !a.letters.contains(c)));
        let chosen = all.filter(|letter| {
            let is_in = |letters: &[char]| letters.contains(letter);
            choice(is_in(&a.letters), is_in(&b.letters), is_in(output))
        });
        chosen.copied().collect()
    };
    let both = of(&|a, b, kept| a && b && kept);
    let contracted = of(&|a, b, kept| a && b && !kept);
    let (rows, columns) = (of(&|a, b, _| a && !b), of(&|a, b, _| !a && b));
    let size = |letter: &char| a.size(letter).or(b.size(letter)).unwrap_or(1);
    let sizes = |letters: &[char]| letters.iter().map(size).collect::<Vec<usize>>();
    let count = |letters: &[char]| sizes(letters).iter().product::<usize>();
    let batch = a.tensor.dims()[0];
    let order: Vec<char> = [both.as_slice(), &rows, &columns].concat();
    let shape = [&[batch], sizes(&order).as_slice()].concat();
    let [num, height, inner, width] = [&both, &rows, &contracted, &columns].map(|l| count(l));
    let left = a.ordered(&[both.as_slice(), &rows, &contracted].concat());
    let right = b.ordered(&[both.as_slice(), &contracted, &columns].concat());
    let left = left.reshape(&[batch, num, height, inner]);
    let product = left.matmul(right.reshape(&[batch, num, inner, width]), arithmetic);
    let product = Lettered {
        tensor: product.reshape(&shape),
        letters: order,
    };
    product.ordered(output)
}
