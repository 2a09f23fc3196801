//! What attention keeps of earlier tokens in text generation: their keys and values.

use burn::nn::Linear;
use burn::tensor::Tensor;
#[cfg(feature = "flex")]
use burn::tensor::TensorData;
use runner_core::spec::backend::Arithmetic;

use crate::numeric;

/// \[items, heads, tokens, size\] each.
#[derive(Clone, Debug)]
pub struct KeysValues {
    /// Keys, rotated by their positions.
    pub keys: Tensor<4>,
    /// Values.
    pub values: Tensor<4>,
}

/// The keys and values of the tokens of a text so far.
#[derive(Clone, Debug, Default)]
pub enum Past {
    /// There are none.
    #[default]
    Nothing,
    /// On a device.
    Tensors(Box<KeysValues>),
    /// In the host's memory.
    #[cfg(feature = "flex")]
    Host(runner_kernels::past::Past),
}

impl Past {
    /// The context of new tokens of one text, \[1, tokens, heads * size\], whose keys and values are added.
    ///
    /// A single token is computed by a kernel, which lets `change` change the scores of each head; several by `attend`,
    /// which gets the keys and values of earlier tokens, and returns those of all.
    pub fn context(
        &mut self,
        projected: [Tensor<4>; 3],
        arithmetic: Arithmetic,
        change: impl Fn(usize, &mut [f32]) + Sync,
        attend: impl FnOnce([Tensor<4>; 3], Option<KeysValues>) -> (Tensor<3>, KeysValues),
    ) -> Tensor<3> {
        #[cfg(feature = "flex")]
        if arithmetic.is_fast()
            && projected.iter().all(crate::fast::operation::is_ours)
            && !projected[0].device().is_autodiff()
        {
            return self.of_host(projected, change, attend);
        }
        let _ = (arithmetic, change);
        let earlier = match std::mem::take(self) {
            Past::Tensors(earlier) => Some(*earlier),
            _ => None,
        };
        let (context, all) = attend(projected, earlier);
        *self = Past::Tensors(Box::new(all));
        context
    }

    #[cfg(feature = "flex")]
    fn of_host(
        &mut self,
        [query, keys, values]: [Tensor<4>; 3],
        change: impl Fn(usize, &mut [f32]) + Sync,
        attend: impl FnOnce([Tensor<4>; 3], Option<KeysValues>) -> (Tensor<3>, KeysValues),
    ) -> Tensor<3> {
        let device = query.device();
        let [_, num_heads, num, size] = query.dims();
        let heads = keys.dims()[1];
        let mut past = match std::mem::take(self) {
            Past::Host(past) => past,
            _ => runner_kernels::past::Past::new(heads, size),
        };
        let read = |tensor: Tensor<4>| tensor.into_data().iter::<f32>().collect::<Vec<f32>>();
        let context = if num == 1 {
            past.push(&read(keys), &read(values));
            let context = past.attend(&read(query), change);
            let dims = [1, 1, num_heads * size];
            Tensor::from_data(TensorData::new(context, dims), &device)
        } else {
            let before = past.num();
            let earlier = (before > 0).then(|| {
                let of = |all: Vec<f32>| {
                    let data = TensorData::new(all, [1, heads, before, size]);
                    Tensor::<4>::from_data(data, &device)
                };
                let [keys, values] = past.all().map(of);
                KeysValues { keys, values }
            });
            past.push(&read(keys.clone()), &read(values.clone()));
            attend([query, keys, values], earlier).0
        };
        *self = Past::Host(past);
        context
    }
}

/// The contexts of texts, each computed by `of` from its projections, its index and its past.
pub fn each_text(
    projected: [Tensor<3>; 3],
    pasts: &mut [&mut Past],
    mut of: impl FnMut([Tensor<3>; 3], usize, &mut Past) -> Tensor<3>,
) -> Tensor<3> {
    if let [past] = pasts {
        return of(projected, 0, past);
    }
    let texts = pasts.iter_mut().enumerate().map(|(at, past)| {
        let one = projected.clone().map(|all| all.narrow(0, at, 1));
        of(one, at, past)
    });
    Tensor::cat(texts.collect(), 0)
}

/// The output of a linear layer for few rows, as in a step of text generation, or for many.
pub fn few(arithmetic: Arithmetic, layer: &Linear, x: Tensor<3>) -> Tensor<3> {
    #[cfg(feature = "flex")]
    if crate::fast::thin::suits(&x, arithmetic) {
        return crate::fast::thin::linear(layer, x);
    }
    numeric::linear(arithmetic, layer, x)
}
