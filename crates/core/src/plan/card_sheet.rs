//! Memory budgets from a published sheet for a GPU with 16 GB, compared with what follows from the models themselves.
//! Of 16,384 MB the sheet reserves 2,400 for the system, programs and safety.
//!
//! The sheet states neither the length of its sequences nor its method; runner's budget counts weights, gradients and
//! Adam's two states (16 bytes per parameter in f32, 8 in pure half), and the values of a token that the backward pass
//! needs. Attention scores, which grow with the square of the length, are extra.

/// Bytes that the sheet leaves for training.
pub const USABLE_BYTES: u64 = 13_984 * 1_000_000;

/// A row of the sheet.
pub struct Declared {
    /// The model's name.
    pub model: &'static str,
    /// Bytes of a number.
    pub float: u64,
    /// Items of a batch.
    pub batch: u64,
    /// Whether with gradient checkpointing.
    pub gradient_checkpointing: bool,
    /// The memory according to the sheet.
    pub declared: &'static str,
    /// Whether the sheet calls that safe.
    pub is_safe: bool,
    shape: Shape,
}

/// What determines a model's memory.
enum Shape {
    /// Widths from the items to the classes.
    Layers(&'static [u64]),
    /// A transformer decoder with gated feed-forward networks and rotary positions.
    Decoder(Decoder),
}

#[derive(Clone, Copy)]
struct Decoder {
    vocabulary: u64,
    width: u64,
    num_layers: u64,
    /// Width of keys and values, which groups of heads share.
    key_width: u64,
    feedforward: u64,
    /// Whether input and output share their embedding table.
    is_tied: bool,
}

const SMOLLM2_135M: Decoder = Decoder {
    vocabulary: 49_152,
    width: 576,
    num_layers: 30,
    key_width: 192,
    feedforward: 1_536,
    is_tied: true,
};
const TINYLLAMA: Decoder = Decoder {
    vocabulary: 32_000,
    width: 2_048,
    num_layers: 22,
    key_width: 256,
    feedforward: 5_632,
    is_tied: false,
};
/// As OpenLLaMA 3B.
const LLAMA_3B: Decoder = Decoder {
    vocabulary: 32_000,
    width: 3_200,
    num_layers: 26,
    key_width: 3_200,
    feedforward: 8_640,
    is_tied: false,
};
const LLAMA_7B: Decoder = Decoder {
    vocabulary: 32_000,
    width: 4_096,
    num_layers: 32,
    key_width: 4_096,
    feedforward: 11_008,
    is_tied: false,
};

/// The rows, in the order of the sheet.
pub const DECLARED: [Declared; 9] = [
    row(
        "SimpleMLP",
        4,
        64,
        false,
        "0.7 GB",
        true,
        Shape::Layers(&[784, 128, 10]),
    ),
    row(
        "SmolLM2-135M",
        2,
        16,
        false,
        "4.2 GB",
        true,
        Shape::Decoder(SMOLLM2_135M),
    ),
    row(
        "SmolLM2-135M",
        2,
        32,
        false,
        "5.8 GB",
        true,
        Shape::Decoder(SMOLLM2_135M),
    ),
    row(
        "TinyLlama-1.1B",
        4,
        4,
        false,
        "18.5 GB",
        false,
        Shape::Decoder(TINYLLAMA),
    ),
    row(
        "TinyLlama-1.1B",
        2,
        4,
        false,
        "12.8 GB",
        true,
        Shape::Decoder(TINYLLAMA),
    ),
    row(
        "TinyLlama-1.1B",
        2,
        2,
        true,
        "8.4 GB",
        true,
        Shape::Decoder(TINYLLAMA),
    ),
    row(
        "TinyLlama-1.1B",
        2,
        1,
        true,
        "7.9 GB",
        true,
        Shape::Decoder(TINYLLAMA),
    ),
    row(
        "LLaMA-3B",
        2,
        1,
        true,
        "~22 GB",
        false,
        Shape::Decoder(LLAMA_3B),
    ),
    row(
        "LLaMA-7B",
        2,
        1,
        true,
        "~40 GB",
        false,
        Shape::Decoder(LLAMA_7B),
    ),
];

const fn row(
    model: &'static str,
    float: u64,
    batch: u64,
    gradient_checkpointing: bool,
    declared: &'static str,
    is_safe: bool,
    shape: Shape,
) -> Declared {
    Declared {
        model,
        float,
        batch,
        gradient_checkpointing,
        declared,
        is_safe,
        shape,
    }
}

impl Declared {
    /// Trainable parameters.
    pub fn num_parameters(&self) -> u64 {
        match &self.shape {
            Shape::Layers(widths) => widths.windows(2).map(|w| (w[0] + 1) * w[1]).sum(),
            Shape::Decoder(d) => {
                let attention = 2 * d.width * d.width + 2 * d.width * d.key_width;
                let norms = 2 * d.width;
                let layer = attention + 3 * d.width * d.feedforward + norms;
                let tables = d.vocabulary * d.width * if d.is_tied { 1 } else { 2 };
                tables + d.num_layers * layer + d.width
            }
        }
    }

    /// Bytes of weights, gradients and Adam's two states.
    pub fn state_bytes(&self) -> u64 {
        4 * self.float * self.num_parameters()
    }

    /// Bytes that an item, or a token of a decoder, keeps for the backward pass.
    pub fn kept_bytes(&self) -> u64 {
        let values = match &self.shape {
            // Each hidden width twice, before and after its activation.
            Shape::Layers(widths) => {
                let (last, before) = widths.split_last().unwrap_or((&0, &[]));
                before[0] + 2 * before[1..].iter().sum::<u64>() + last
            }
            Shape::Decoder(d) => {
                // Two norms, queries before and after rotation, the output of attention, its projection, and the
                // projection of the feed-forward network; the two sums are recomputed if requested.
                let sums = if self.gradient_checkpointing { 0 } else { 2 };
                let gates = if self.gradient_checkpointing { 2 } else { 4 };
                let layer = (7 + sums) * d.width + 3 * d.key_width + gates * d.feedforward;
                d.num_layers * layer + 2 * d.vocabulary + d.width
            }
        };
        self.float * values
    }

    /// How many items or tokens fit in addition to the states; none if the states alone are too large.
    pub fn num_that_fit(&self) -> Option<u64> {
        let left = USABLE_BYTES.checked_sub(self.state_bytes())?;
        Some(left / self.kept_bytes())
    }

    /// The counted unit, with its article.
    pub fn unit(&self) -> &'static str {
        match self.shape {
            Shape::Layers(_) => "an item",
            Shape::Decoder(_) => "a token",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_those_that_are_published() {
        let counts: Vec<u64> = DECLARED.iter().map(Declared::num_parameters).collect();
        assert_eq!(counts[0], 101_770);
        assert_eq!(counts[1], 134_515_008);
        assert_eq!(counts[3], 1_100_048_384);
        assert_eq!(counts[7], 3_426_473_600);
        assert_eq!(counts[8], 6_738_415_616);
        assert_eq!(DECLARED[3].state_bytes(), 16 * counts[3]);
        assert_eq!(DECLARED[4].state_bytes(), 8 * counts[3]);
    }
}
