//! A linear layer whose matrix is the product of two thin ones, so that it has fewer parameters.

use burn::module::Module;
use burn::nn::{Dropout, DropoutConfig, Linear, LinearConfig};
use burn_runner::parts::{
    Device, Dims, DynTensor, Kind, LayerExample, LayerPart, Section, Unfit, map_rank,
};
use serde::{Deserialize, Serialize};

/// `dropout(x A) B + bias`, where A has `rank` columns and B has `rank` rows.
#[derive(Module, Debug)]
pub struct LowRank {
    inner: Linear,
    dropout: Dropout,
    outer: Linear,
}

/// The keys of the layer in an experiment file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    out_features: usize,
    rank: usize,
    dropout: f64,
}

impl LayerPart for LowRank {
    const NAME: &'static str = "low_rank";
    const DOC: &'static str = "A linear layer whose matrix is a product of two thin ones.";
    const EXAMPLES: &'static [LayerExample] = &[
        (&[5], "{ type = 'low_rank', out_features = 6, rank = 2 }"),
        (&[3, 4], "{ type = 'low_rank', out_features = 2, rank = 1 }"),
    ];
    type Settings = Settings;

    fn settings(section: &mut Section<'_>) -> Settings {
        Settings {
            out_features: section
                .field("out_features", Kind::Int(1, 1 << 20), "Output features.")
                .required(),
            rank: section
                .field("rank", Kind::Int(1, 1 << 20), "Rank of the matrix.")
                .or(4),
            dropout: section
                .field(
                    "dropout",
                    Kind::fraction(),
                    "Probability that a value between the two matrices is zeroed in training.",
                )
                .or(0.0),
        }
    }

    fn output_shape(settings: &Settings, inputs: &[Dims]) -> Result<Dims, Unfit> {
        let mut shape = inputs[0].clone();
        let Some(width) = shape.last_mut() else {
            return Err(Unfit::new("type", "needs at least one axis", "add an axis"));
        };
        let most = (*width).min(settings.out_features);
        if settings.rank > most {
            return Err(Unfit::new(
                "rank",
                format!(
                    "has rank {}, which is more than a matrix of {width} by {} can have",
                    settings.rank, settings.out_features
                ),
                format!("set `rank` to at most {most}"),
            ));
        }
        *width = settings.out_features;
        Ok(shape)
    }

    fn new(settings: &Settings, inputs: &[Dims], device: &Device) -> Self {
        let width = inputs[0][inputs[0].len() - 1];
        Self {
            inner: LinearConfig::new(width, settings.rank)
                .with_bias(false)
                .init(device),
            dropout: DropoutConfig::new(settings.dropout).init(),
            outer: LinearConfig::new(settings.rank, settings.out_features).init(device),
        }
    }

    fn forward(&self, mut inputs: Vec<DynTensor>) -> DynTensor {
        let x = inputs.remove(0);
        map_rank!(x, x => self.outer.forward(self.dropout.forward(self.inner.forward(x))))
    }

    fn multiply_adds(settings: &Settings, inputs: &[Dims]) -> u64 {
        let num: usize = inputs[0].iter().product();
        let width = inputs[0][inputs[0].len() - 1];
        let rows = num / width.max(1);
        (rows * settings.rank * (width + settings.out_features)) as u64
    }

    fn kept_values(settings: &Settings, inputs: &[Dims], output: &Dims) -> u64 {
        let width = inputs[0][inputs[0].len() - 1];
        let rows = inputs[0].iter().product::<usize>() / width.max(1);
        (rows * settings.rank + output.iter().product::<usize>()) as u64
    }
}
