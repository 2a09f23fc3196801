//! The random numbers that the items of an adversarial training are generated from.
//!
//! Each is a function of the seed and of the place of an item, not of the device, the size of batches or the number of
//! threads: the items of an epoch have their positions in its order, those of other splits their positions in the split.

use std::ops::Range;

use burn::tensor::{Device, Tensor, TensorData};
use runner_core::data::order::{Purpose, normal, uniform};
use runner_core::plan::RunPlan;

/// Draws the random numbers of a training.
#[derive(Clone, Copy, Debug)]
pub struct Draws {
    seed: u64,
    /// How many numbers an item is generated from.
    size: usize,
}

/// The random numbers of an item.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// As [`Noise::discriminator`].
    pub discriminator: Vec<f64>,
    /// As [`Noise::generator`].
    pub generator: Vec<f64>,
    /// As [`Noise::shares`].
    pub share: f64,
}

/// The random numbers of the items of a batch.
#[derive(Clone, Debug)]
pub struct Noise {
    /// \[batch, size\]: what the generated items are made from that the discriminator is trained with.
    pub discriminator: Tensor<2>,
    /// \[batch, size\]: the same for the generator's update, in training.
    pub generator: Option<Tensor<2>>,
    /// Numbers from 0 to 1, \[batch, 1\], in training: the shares of the items of the data in points between them and
    /// generated ones.
    pub shares: Option<Tensor<2>>,
}

impl Draws {
    /// What the training of a plan draws; none if nothing is generated.
    pub fn of(plan: &RunPlan) -> Option<Self> {
        let pair = plan.network.pair(plan.strategy.adversarial()?)?;
        Some(Self {
            seed: plan.seed,
            size: pair.noise,
        })
    }

    /// Those that a run of a seed draws, `size` for each item.
    pub fn new(seed: u64, size: usize) -> Self {
        Self { seed, size }
    }

    /// The numbers at a position of a training epoch, from 1; of another split, those for the discriminator of epoch 0.
    pub fn drawn(&self, epoch: usize, place: usize) -> Drawn {
        let index = ((epoch as u64) << 32) | place as u64;
        let mut both = normal(2 * self.size, self.seed, Purpose::Noise, index);
        let share = uniform(1, 0.5, self.seed, Purpose::Shares, index);
        Drawn {
            generator: both.split_off(self.size),
            discriminator: both,
            share: 0.5 + share[0],
        }
    }

    /// Those of the items at some positions of a training epoch, from 1.
    pub fn of_epoch(&self, epoch: usize, places: Range<usize>, device: &Device) -> Noise {
        let num = places.len();
        let (mut first, mut second, mut shares) = (Vec::new(), Vec::new(), Vec::new());
        for place in places {
            let drawn = self.drawn(epoch, place);
            first.extend(drawn.discriminator);
            second.extend(drawn.generator);
            shares.push(drawn.share);
        }
        let of = |values, width| Tensor::from_data(TensorData::new(values, [num, width]), device);
        Noise {
            discriminator: of(first, self.size),
            generator: Some(of(second, self.size)),
            shares: Some(of(shares, 1)),
        }
    }

    /// Those of the items at some positions of a split that is not trained on. They are the same in each epoch, so that
    /// its metrics differ only by the weights.
    pub fn of_split(&self, places: Range<usize>, device: &Device) -> Noise {
        let num = places.len();
        // No epoch has the number 0.
        let drawn = places.flat_map(|at| self.drawn(0, at).discriminator);
        let data = TensorData::new(drawn.collect(), [num, self.size]);
        Noise {
            discriminator: Tensor::from_data(data, device),
            generator: None,
            shares: None,
        }
    }
}

impl Noise {
    /// The same on the device without autodiff.
    pub fn without_autodiff(self) -> Self {
        Self {
            discriminator: self.discriminator.without_autodiff(),
            generator: self.generator.map(Tensor::without_autodiff),
            shares: self.shares.map(Tensor::without_autodiff),
        }
    }
}
