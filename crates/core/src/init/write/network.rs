//! A first network for the items of a file, and the axis to vary it by.

use super::draft::Draft;
use crate::init::guess::{Guess, Item};
use crate::init::{Found, Line};
use crate::spec::task::TaskKind;

impl Found {
    /// Writes the network; returns the axis to vary.
    pub(super) fn model(&self, guess: &Guess, out: &mut Draft) -> Option<Line> {
        let width = match self.num_train() {
            0..1_000 => 32,
            1_000..50_000 => 64,
            _ => 128,
        };
        if guess.task == TaskKind::Segmentation {
            return out.convolutions();
        }
        if guess.task == TaskKind::Autoencoding {
            return self.autoencoder(guess, out);
        }
        out.table("[model]");
        if matches!(&guess.item, Item::Array(shape) if matches!(shape[..], [_, _, 1 | 3 | 4])) {
            out.raw.push_str(
                "# These look like images with channels last, but convolutions need [channels, height, width]: transpose the\n# array with NumPy, `x.transpose(0, 3, 1, 2)`, and set `type = \"cnn\"`.\n",
            );
        }
        let both = |key: &str, small: String, large: String, meaning: &str| {
            Some(Line::new(key, format!("[{small}, {large}]"), meaning))
        };
        match &guess.item {
            Item::Row | Item::Array(_) => {
                out.mlp(width);
                out.line(
                    "dropout",
                    "0.1",
                    "fraction of activations dropped in training, to reduce overfitting",
                );
                let meaning = "one layer of this width, or two";
                both(
                    "model.hidden",
                    format!("[{width}]"),
                    format!("[{width}, {width}]"),
                    meaning,
                )
            }
            Item::Picture([_, height, width]) if *height.min(width) < 10 => {
                out.text("type", "mlp", "linear layers, since the images are small");
                out.line("hidden", "[64]", "widths of the hidden layers");
                both(
                    "model.hidden",
                    "[64]".into(),
                    "[128]".into(),
                    "narrow or wide",
                )
            }
            Item::Picture([_, height, width]) if *height.max(width) <= 32 => {
                out.text("type", "cnn", "convolutions, then linear layers");
                out.line("channels", "[16, 32]", "channels of each convolution");
                out.line("hidden", "[64]", "widths of the hidden linear layers");
                both(
                    "model.channels",
                    "[8, 16]".into(),
                    "[16, 32]".into(),
                    "narrow or wide",
                )
            }
            Item::Picture(_) => {
                out.text(
                    "type",
                    "resnet",
                    "a residual network, which suits larger images",
                );
                out.line(
                    "channels",
                    "[16, 32, 64]",
                    "channels of each stage; each stage halves the sides",
                );
                both(
                    "model.channels",
                    "[8, 16, 32]".into(),
                    "[16, 32, 64]".into(),
                    "narrow or wide",
                )
            }
            Item::Series => {
                out.text(
                    "type",
                    "lstm",
                    "a recurrent network, which reads the sequence step by step",
                );
                out.line("hidden_size", "32", "size of its memory");
                both(
                    "model.hidden_size",
                    "32".into(),
                    "64".into(),
                    "size of its memory",
                )
            }
            Item::Text | Item::Note => {
                let (preset, what) = match guess.item {
                    Item::Text => (
                        "transformer_lm",
                        "a transformer that predicts the next token",
                    ),
                    _ => (
                        "transformer_classifier",
                        "a transformer that reads the whole text",
                    ),
                };
                out.text("type", preset, what);
                out.line("d_model", "64", "features per position");
                out.line("num_layers", "2", "number of layers");
                both("model.d_model", "32".into(), "64".into(), "narrow or wide")
            }
        }
    }

    /// Layers down to a few numbers and back up to the item.
    fn autoencoder(&self, guess: &Guess, out: &mut Draft) -> Option<Line> {
        let shape = match &guess.item {
            Item::Picture(shape) => shape.to_vec(),
            Item::Array(shape) => shape.clone(),
            _ => Vec::new(),
        };
        let layer = |out: &mut Draft, kind: &str, lines: &[Line], meaning: &str| {
            out.table("[[model.layers]]");
            out.text("type", kind, meaning);
            out.lines.extend_from_slice(lines);
        };
        if !shape.is_empty() {
            layer(out, "flatten", &[], "flattens an item into one row");
        }
        layer(
            out,
            "linear",
            &[
                Line::text("name", "code", "its name, used by the sweep below"),
                Line::new(
                    "out_features",
                    "8",
                    "the number of values that an item is reconstructed from",
                ),
            ],
            "weighted sums",
        );
        layer(
            out,
            "linear",
            &[Line::new("out_features", "64", "the width of the layer")],
            "weighted sums",
        );
        layer(out, "gelu", &[], "the nonlinearity");
        if shape.is_empty() {
            layer(out, "linear", &[], "as wide as the item")
        } else {
            let num: usize = shape.iter().product();
            let num = Line::new("out_features", num.to_string(), "the numbers of an item");
            layer(out, "linear", &[num], "weighted sums");
            let shape = Line::new("shape", format!("{shape:?}"), "the item's shape");
            layer(out, "reshape", &[shape], "reshapes the row into an item");
        }
        Some(Line::new(
            "\"model.layers.code.out_features\"",
            "[2, 8]",
            "how many numbers are enough",
        ))
    }
}

impl Draft {
    /// A hidden layer of a width.
    pub(super) fn mlp(&mut self, width: usize) {
        self.text("type", "mlp", "linear layers with ReLU between them");
        self.line(
            "hidden",
            format!("[{width}]"),
            "widths of the hidden layers",
        );
    }

    fn convolutions(&mut self) -> Option<Line> {
        for (name, meaning) in [
            ("first", "filters over the image"),
            ("second", "filters over their outputs"),
        ] {
            self.table("[[model.layers]]");
            self.text("type", "conv2d", meaning);
            self.text("name", name, "its name");
            self.line("out_channels", "16", "number of filters");
            self.line(
                "kernel_size",
                "3",
                "side of the square that a filter covers",
            );
            self.text(
                "padding",
                "same",
                "zero padding, which keeps the size of the image",
            );
            self.table("[[model.layers]]");
            self.text("type", "relu", "the nonlinearity");
        }
        self.table("[[model.layers]]");
        self.text("type", "conv2d", "one channel per class");
        self.line("kernel_size", "1", "each pixel separately");
        Some(Line::new(
            "\"model.layers.first.out_channels\"",
            "[8, 16]",
            "few or many filters",
        ))
    }
}
